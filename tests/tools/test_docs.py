# SPDX-License-Identifier: MIT
"""The documentation fits the program and itself: the page of a verb names exactly the options of its --help, and links
lead somewhere."""
import ast
import os
import re
import subprocess
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
BIN = os.path.abspath(os.environ.get("WEFT_BIN") or os.path.join(ROOT, "build", "weft"))
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
VERBS = ["info", "events", "index", "flows", "threads", "sync", "critpath", "requests", "serve", "coordinate",
         "status", "place", "span", "collect", "spans", "verify", "config", "completion"]
EVERY_VERB = {"--help", "--no-color", "--quiet"}  # options documented once, in docs/verbs/README.md


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def pages():
    for top in ("", "docs", "docs/verbs", "docs/formats", "docs/decisions", "examples", "fuzz"):
        directory = os.path.join(ROOT, top)
        for name in sorted(os.listdir(directory)) if os.path.isdir(directory) else []:
            if name.endswith(".md"):
                yield os.path.join(top, name)


def links_of(page):
    """The files that a page links to, as it names them."""
    text = re.sub(r"```.*?```|`[^`\n]*`", "", text_of(page), flags=re.S)
    return [target.split("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)
            if not re.match(r"[a-z]+:|#", target)]


def headings_of(page):
    """The names under which a link finds the headings of a page, as GitHub makes them, and its anchors."""
    text = re.sub(r"(?ms)^```.*?^```", "", text_of(page))
    headings = re.findall(r"(?m)^#+ (.*)$", text)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in plain} | set(
        re.findall(r'<a id="([^"]+)">', text))


def files_below(source):
    """A file, or all files below a directory."""
    top = os.path.join(ROOT, source)
    if not os.path.isdir(top):
        return [source]
    return [os.path.relpath(os.path.join(directory, name), ROOT) for directory, below, names in os.walk(top)
            for name in names if "node_modules" not in directory and "__pycache__" not in directory]


class Docs(unittest.TestCase):
    def test_links_lead_somewhere(self):
        broken, seen = [], 0
        for page in pages():
            for target in links_of(page):
                seen += 1
                if not os.path.exists(os.path.join(ROOT, os.path.dirname(page), target)):
                    broken.append(f"{page}: {target}")
        self.assertEqual(broken, [])
        self.assertGreater(seen, 20)

    def test_links_to_headings(self):
        broken, seen = [], 0
        for page in pages():
            text = re.sub(r"```.*?```|`[^`\n]*`", "", text_of(page), flags=re.S)
            for target, heading in re.findall(r"\]\(([^)\s:#]*)#([^)\s]+)\)", text):
                to = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
                seen += 1
                if to.endswith(".md") and heading not in headings_of(to):
                    broken.append(f"{page}: {target}#{heading}")
        self.assertEqual(broken, [])
        self.assertGreater(seen, 20)

    def test_installed_pages(self):
        """Installed files of the Debian package do not overwrite each other, and links of pages lead to installed
        files."""
        installed = {}
        for listed, below in (("weft.docs", ""), ("weft.examples", "examples/")):
            for source in text_of("debian", listed).split():
                for path in files_below(source):
                    place = below + os.path.basename(source) + path[len(source):]
                    self.assertNotIn(place, installed, f"{installed.get(place)} and {path}")
                    installed[place] = path
        for source, where in (line.split() for line in text_of("debian", "weft.install").splitlines()):
            if where.startswith("usr/share/doc/weft"):
                place = os.path.join(where, os.path.basename(source)).removeprefix("usr/share/doc/weft/")
                self.assertNotIn(place, installed)
                installed[place] = source
        dead, seen = [], 0
        for place, path in installed.items():
            for target in links_of(path) if path.endswith(".md") else ():
                seen += 1
                to = os.path.normpath(os.path.join(os.path.dirname(place), target))
                if not any(other == to or other.startswith(to + "/") for other in installed):
                    dead.append(f"{place}: {target}")
        self.assertEqual(dead, [])
        self.assertGreater(seen, 50)

    def test_every_page_is_in_the_index_of_its_folder(self):
        for folder in ("formats", "decisions"):
            index = text_of("docs", folder, "README.md")
            for name in os.listdir(os.path.join(ROOT, "docs", folder)):
                if name != "README.md":
                    self.assertIn(f"({name})", index, f"docs/{folder}/README.md")

    def test_verbs(self):
        """`weft --help` lists the verbs there are, each has a page, and the README names them in the same order."""
        shown = subprocess.run([BIN, "--help"], capture_output=True, text=True, check=True).stdout
        listed = re.search(r"(?ms)^Verbs:\n(.*?)^\S", shown).group(1)
        self.assertEqual(re.findall(r"(?m)^  (\w+) ", listed), VERBS)
        self.assertEqual(re.findall(r"(?m)^\| \[`(\w+)`\]", text_of("README.md")), VERBS)
        self.assertEqual(sorted(os.listdir(os.path.join(ROOT, "docs", "verbs"))),
                         sorted(["README.md"] + [v + ".md" for v in VERBS]))
        for verb in VERBS:
            with self.subTest(verb):
                run = subprocess.run([BIN, verb, "--help"], capture_output=True, text=True)
                self.assertEqual((run.returncode, run.stderr), (0, ""))
                self.assertIn(f"weft {verb} ", run.stdout)

    def test_options_of_each_verb(self):
        for page in sorted(os.listdir(os.path.join(ROOT, "docs", "verbs"))):
            verb = page[:-3]
            if verb == "README":
                continue
            with self.subTest(verb):
                shown = subprocess.run([BIN, verb, "--help"], capture_output=True, text=True, check=True).stdout
                options = set(re.findall(r"(?m)^ +(?:-\w, )?(--[a-z][a-z-]+)", shown)) - EVERY_VERB
                # Options of other tools may be mentioned in code of their own command.
                other = r"`(?:babeltrace2|lttng) [^`]*`|(?m:^Try: weft .*$)"
                told = set(OPTION.findall(re.sub(other, "", text_of("docs", "verbs", page)))) - EVERY_VERB
                self.assertEqual(told, options)
                self.assertIn(verb, text_of("README.md"))

    def test_map_of_the_house(self):
        """CONTRIBUTING lists the folders of src/, each with the rooms that it uses, as tools/check-layers has them."""
        house = text_of("CONTRIBUTING.md").split("## Habits")[0]
        table = dict(re.findall(r"(?m)^\| `(\w+)` \|.*\| ?(.*?) ?\|$", house))
        arrows, wings = (ast.literal_eval(re.search(rf"(?ms)^{name} = (\{{.*?^\}})",
                                                    text_of("tools", "check-layers")).group(1))
                         for name in ("USES", "WINGS"))
        folders = {wing: sorted(os.listdir(os.path.join(ROOT, "src", wing))) if wing != "base" else ["base"]
                   for wing in os.listdir(os.path.join(ROOT, "src"))}
        rooms = sorted(room for found in folders.values() for room in found)
        self.assertEqual(sorted(table), rooms)
        # The rooms of each wing stand below its line, the wings in their order.
        lines = re.findall(r"(?m)^\| (?:\*\*)?`(\w+)(/?)`", house)
        self.assertEqual([name for name, wing in lines if wing], [name for name in wings if name != "base"])
        wing = "base"
        for name, is_wing in lines:
            wing = name if is_wing else wing
            self.assertTrue(is_wing or name in folders[wing], f"{name} in {wing}")
        for room, used in arrows.items():
            with self.subTest(room):
                self.assertEqual(sorted(re.findall(r"\w+", table[room])), sorted(set(used.split()) & set(rooms)))

    def test_views_of_the_page_compile(self):
        """The files that docs/add-a-view.md shows are whole: they compile as they stand."""
        shown = re.findall(r"(?ms)^```c\n(.*?)^```", text_of("docs", "add-a-view.md"))
        self.assertEqual(len(shown), 2)
        for text in shown:
            with self.subTest(text.split("\n")[0]):
                run = subprocess.run(["cc", "-std=gnu17", "-D_GNU_SOURCE", "-Wall", "-Werror", "-fsyntax-only",
                                      *("-I" + os.path.join(ROOT, "src", wing)
                                        for wing in ("", "net", "input", "store", "answer", "serve")), "-xc", "-"],
                                     input=text, capture_output=True, text=True)
                self.assertEqual((run.returncode, run.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
