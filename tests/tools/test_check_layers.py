"""tools/check-layers: the tree obeys DESIGN section 3, and trees that do not are refused."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CHECK = os.path.join(ROOT, "tools", "check-layers")


def check(files):
    """Runs the checker over a tree made of {path below src/: text}; returns (exit status, stderr)."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, "src", path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)
        run = subprocess.run([sys.executable, CHECK, root], stderr=subprocess.PIPE, text=True)
        return run.returncode, run.stderr


class CheckLayers(unittest.TestCase):
    def refused(self, path, text, why):
        status, message = check({path: text, "base/err.h": ""})
        self.assertEqual(status, 1, text)
        self.assertIn(path, message)
        self.assertIn(why, message)

    def test_this_tree(self):
        run = subprocess.run([sys.executable, CHECK], stderr=subprocess.PIPE, text=True)
        self.assertEqual((run.returncode, run.stderr), (0, ""))

    def test_allowed(self):
        self.assertEqual(check({
            "base/json.c": '#include "base/json.h"\n#include <jansson.h>\n#include <stdio.h>\n',
            "kernel/kernel.h": '#include "ctf/ctf.h"\n#include "base/mem.h"\n',
            "kernel/bind.c": '#include "kernel/private.h"\n/* #include "path/path.h" */\n',
            "cli/main.c": '#include "path/path.h"\n#include "ctf/ctf.h"\n#include <sys/stat.h>\n',
        }), (0, ""))

    def test_arrow_upwards(self):
        self.refused("ctf/reader.c", '#include "kernel/kernel.h"\n', "room ctf may not use room kernel")
        self.refused("base/err.c", '#include "ctf/ctf.h"\n', "room base may not use room ctf")
        self.refused("index/index.c", '#include "path/path.h"\n', "room index may not use room path")

    def test_arrow_round_another_room(self):
        self.refused("flow/flow.c", '#include "ctf/ctf.h"\n', "room flow may not use room ctf")

    def test_private_header(self):
        self.refused("flow/flow.c", '\n#  include "kernel/bind.h"\n', ":2: kernel/bind.h is private")

    def test_library_in_the_wrong_room(self):
        self.refused("ctf/reader.c", "#include <jansson.h>\n", "belongs to base, tsp alone")

    def test_unlisted_library(self):
        self.refused("base/x.h", "#include <glib.h>\n", "<glib.h> is in no list")

    def test_unknown_room(self):
        status, message = check({"utils/x.c": ""})
        self.assertEqual(status, 1)
        self.assertIn("src/utils: no such room", message)
        self.refused("base/x.c", '#include "utils/x.h"\n', "'utils' is no room")

    def test_way_out_of_src(self):
        self.refused("base/x.c", '#include "base/../ctf/ctf.h"\n', "includes start at src/")

    def test_nothing_to_check(self):
        self.assertEqual(check({"base/readme.txt": ""})[0], 1)


if __name__ == "__main__":
    unittest.main()
