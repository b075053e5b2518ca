# SPDX-License-Identifier: MIT
"""tools/check-layers: the tree obeys DESIGN section 3, and trees that do not are refused."""
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
CHECK = os.path.join(ROOT, "tools", "check-layers")
WINGS = {"bus": "net", "ctf": "input", "kernel": "input", "live": "input", "flow": "store", "index": "store",
         "http": "net", "cli": "program"}


def place(path):
    """ROOM/FILE with the wing of ROOM before it."""
    wing = WINGS.get(path.split("/")[0])
    return f"{wing}/{path}" if wing else path


def check(files, circles=()):
    """Runs the checker over a tree made of {ROOM/FILE: text}, with that table of known circles; returns (exit status,
    stderr)."""
    with tempfile.TemporaryDirectory() as root:
        tool = os.path.join(root, "check-layers")
        with open(CHECK, encoding="utf-8") as f, open(tool, "w", encoding="utf-8") as copy:
            text = f.read()
            for table, value in ("CIRCLES", dict(circles)), ("PREFIXED", {"bus"}):
                text, n = re.subn(rf"^{table} = .*$", f"{table} = {value!r}", text, flags=re.M)
                assert n == 1, f"{table} is one line of the tool"
            copy.write(text)
        for path, text in files.items():
            full = os.path.join(root, "src", place(path))
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)
        run = subprocess.run([sys.executable, tool, root], stderr=subprocess.PIPE, text=True)
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
            "cli/main.c": 'int main(void)\n{\n}\n#include "path/path.h"\n#include "ctf/ctf.h"\n#include <sys/stat.h>\n',
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
        self.refused("ctf/reader.c", "#include <jansson.h>\n", "belongs to base, coord, span, tsp, views alone")

    def test_unlisted_library(self):
        self.refused("base/x.h", "#include <glib.h>\n", "<glib.h> is in no list")

    def test_unknown_room(self):
        status, message = check({"utils/x.c": ""})
        self.assertEqual(status, 1)
        self.assertIn("src/utils: no such wing", message)
        self.refused("base/x.c", '#include "utils/x.h"\n', "'utils' is no room")

    def test_room_in_another_wing(self):
        for path in ("net/ctf/x.c", "input/x/x.c", "store/cli/x.c"):
            status, message = check({path: ""})
            self.assertEqual(status, 1, path)
            self.assertIn("no such room", message)

    def test_way_out_of_src(self):
        self.refused("base/x.c", '#include "base/../ctf/ctf.h"\n', "includes start at src/")

    def test_arrow_that_nobody_uses(self):
        kernel = {"ctf/ctf.h": "", "kernel/x.c": ""}
        status, message = check(kernel)
        self.assertEqual(status, 1)
        self.assertIn("nobody in room kernel uses room ctf", message)
        self.assertEqual(check({**kernel, "kernel/y.h": '#include "ctf/ctf.h"\n'}), (0, ""))
        self.assertEqual(check({"kernel/x.c": ""}), (0, ""), "where room ctf is not there, nothing can use it")
        self.assertEqual(check({"base/x.c": "", "ctf/ctf.c": "", "cli/main.c": ""}), (0, ""),
                         "cli may use all, all may use base")

    def test_future_room(self):
        status, message = check({"live/live.c": ""})
        self.assertEqual(status, 1)
        self.assertIn("src/input/live: the room is there", message)
        self.refused("ctf/x.c", '#include "live/live.h"\n', "room ctf may not use room live")

    def clash(self, first, second, what):
        status, message = check({"ctf/" + first[0]: first[1], "http/" + second[0]: second[1]})
        self.assertEqual(status, 1, (first, second))
        self.assertRegex(message,
                         rf"^src/\w+/\w+/\w\.[ch]:\d+: room \w+ calls something of its own {re.escape(what)}, as "
                         rf"room \w+ does")

    def harmony(self, first, second):
        self.assertEqual(check({"ctf/" + first[0]: first[1], "http/" + second[0]: second[1]}), (0, ""), (first, second))

    def test_function_of_two_rooms(self):
        calls = "int x(int a,\n    int b)\n{\n}\n"
        self.clash(("a.c", calls), ("b.c", "struct y *x(void)\n{\n}\n"), "x()")
        self.clash(("a.c", calls), ("b.h", "static inline int x(int a)\n{\n}\n"), "x()")
        self.clash(("a.c", calls), ("b.c", "\nstatic int x(int a)\n{\n}\n"), "x()")
        self.harmony(("a.c", "static " + calls), ("b.c", "static " + calls))
        self.harmony(("a.c", calls), ("b.c",
                                      "int x(int a, int b);\n/*\nint x(int a)\n{ */\nchar s[] = \"\\\nint x(void) "
                                      "{\";\n"))

    def test_function_without_its_prefix(self):
        self.refused("bus/wire.c", "static int x(void)\n{\n}\nint loop_start(int a)\n{\n}\n",
                     ":4: loop_start() is external: its name begins with bus_")
        self.assertEqual(check({"bus/wire.c": "int bus_loop_start(int a)\n{\n}\nstatic int x(void)\n{\n}\n"}), (0, ""))

    def test_circles_of_calls(self):
        def ring(n, word="y{}();"):
            """n files, each with a function that mentions the next file's; the last one mentions the first's."""
            return {f"http/f{i}.c": f"int y{i}(void)\n{{\n {word.format((i + 1) % n)}\n}}\n" for i in range(n)}

        self.assertEqual(check(ring(4)), (0, ""))
        status, message = check(ring(5))
        self.assertEqual(status, 1)
        self.assertIn("room http: 5 files call each other in a circle, at most 4 may: f0.c f1.c f2.c f3.c f4.c",
                      message)
        self.assertEqual(check({**ring(5), "http/f2.c": "int y2(void)\n{\n}\n"}), (0, ""), "a chain is no circle")
        for word in ("/* y{} */", "x->y{} = 1;", "struct y{} *x;"):
            self.assertEqual(check(ring(5, word)), (0, ""), word)
        self.assertEqual(check({path.replace("http/f4", "flow/f4"): text for path, text in ring(5).items()}), (0, ""),
                         "a circle through another room is a matter of the rooms' arrows")
        self.assertEqual(check(ring(5), {"http": 5}), (0, ""))
        self.assertEqual(check(ring(6), {"http": 5})[0], 1)
        for n, room_for, advice in ((5, 6, "write 5"), (4, 5, "out of CIRCLES")):
            status, message = check(ring(n), {"http": room_for})
            self.assertEqual(status, 1)
            self.assertIn(f"room http: the largest circle of calls has {n} files; ", message)
            self.assertIn(advice, message)

    def test_tag_of_two_rooms(self):
        for kind in ("struct", "union", "enum"):
            self.clash(("a.h", kind + " x {\n"), ("b.h", f"typedef {kind} __attribute__((packed)) x {{ int a; }} y;\n"),
                       kind + " x")
            self.clash(("a.h", kind + " x {\n"), ("b.c", f"\nstatic {kind} x {{\n"), kind + " x")
            self.harmony(("a.c", kind + " x {\n"), ("b.c", kind + " x {\n"))
            self.harmony(("a.h", kind + " x {\n"), ("b.h", f"{kind} x;\nvoid f({kind} x *);\n"))

    def test_nothing_to_check(self):
        self.assertEqual(check({"base/readme.txt": ""})[0], 1)


if __name__ == "__main__":
    unittest.main()
