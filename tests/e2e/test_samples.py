# SPDX-License-Identifier: MIT
"""Samples on the pages equal the program's output. A block that begins with `$ weft …` and names a recording below
examples/ is run as it stands, and its lines are compared. WEFT_WRITE_SAMPLES=1 writes the output into the pages
instead. Commands that the README suggests are run, too."""
import glob
import os
import re
import subprocess
import tarfile

from weft_e2e import BIN, ROOT, SLOWDOWN, Case, main, need, scratch

BLOCK = re.compile(r"^```\n\$ (weft [^\n]*examples/[^\n]*)\n(.*?)^```$", re.M | re.S)
PAGES = [os.path.join(ROOT, "README.md"), *sorted(glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True))]


class Samples(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = scratch()
        os.mkdir(os.path.join(cls.place, "bin"))
        os.symlink(BIN, os.path.join(cls.place, "bin", "weft"))

    def said(self, command):
        for name in re.findall(r"examples/([\w-]+)", command):
            if not os.path.exists(os.path.join(self.place, "examples", name)):
                with tarfile.open(need(os.path.join(ROOT, "examples", name + ".tar.xz"))) as tar:
                    tar.extractall(os.path.join(self.place, "examples"))
        env = dict(os.environ, PATH=self.place + "/bin:" + os.environ["PATH"], LC_ALL="C.UTF-8", NO_COLOR="1")
        done = subprocess.run(["bash", "-c", "set -o pipefail; " + command], cwd=self.place, env=env,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120 * SLOWDOWN)
        self.assertIn(done.returncode, (0, 141), f"{command}\n{done.stderr}")
        return done.stdout

    def test_blocks(self):
        found = 0
        for page in PAGES:
            with open(page, encoding="utf-8") as f:
                text = f.read()
            new = text
            for block in BLOCK.finditer(text):
                found += 1
                command, shown = block.groups()
                said = re.sub(r" +$", "", self.said(command), flags=re.M)
                if os.environ.get("WEFT_WRITE_SAMPLES"):
                    new = new.replace(block[0], f"```\n$ {command}\n{said}```")
                    continue
                with self.subTest(f"{os.path.relpath(page, ROOT)}: {command}"):
                    self.assertEqual(shown, said)
            if new != text:
                with open(page, "w", encoding="utf-8") as f:
                    f.write(new)
        self.assertGreaterEqual(found, 5)

    def test_what_the_readme_tells_to_try(self):
        with open(os.path.join(ROOT, "README.md"), encoding="utf-8") as f:
            text = f.read().replace("\\\n", "")
        commands = re.findall(r"^build/(weft (?!serve)[^\n]*)$", text, re.M)
        self.assertGreaterEqual(len(commands), 3)
        for command in commands:
            self.assertTrue(self.said(command).strip(), command)


main()
