# SPDX-License-Identifier: MIT
"""Rules for absent files and programs: all tests skip through tests/needed.py, tests/base/test.h or tests/web/run.mjs,
where WEFT_REQUIRE_DATA makes it a failure; and random numbers come from a seed that is printed."""
import os
import re
import subprocess
import sys
import unittest

TESTS = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
DOORS = {"needed.py", "base/test.h", "web/run.mjs", "tools/test_needs.py"}
FORBIDDEN = {
    ".c": r"\bskip\(\)|\bexit\(77\)|return 77",
    ".h": r"\bskip\(\)|\bexit\(77\)|return 77",
    ".py": r"\.skip(If|Unless|Test)?\(|SkipTest|exit\(77\)|shutil\.which|find_executable"
           r"|(?<!self\.)\brandom\.(random|randint|randrange|choice|sample|uniform|shuffle)\(",
    ".mjs": r"process\.exit\(77\)|\bskip:|\.skip\(|Math\.random\(",
}
ALLOWED = {"e2e/test_robust.py": 'skipTest("cannot mount',  # a right, not data
           "e2e/test_package.py": "SkipTest(made",
           "e2e/test_cluster_missing.py": "WEFT_PREVIOUS is not set",  # an earlier release, which nobody need have
           "e2e/test_memory.py": "skipIf(SANITIZER,"}  # sanitizers bring their own allocator


def run(code, required):
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
    if required:
        env["WEFT_REQUIRE_DATA"] = "1"
    done = subprocess.run([sys.executable, "-c", "import needed\n" + code], cwd=TESTS, env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True)
    return done.returncode, done.stdout


class Needs(unittest.TestCase):
    maxDiff = None

    def test_the_package_is_built_with_what_is_installed_for_a_build(self):
        root = os.path.dirname(TESTS)
        with open(os.path.join(root, "tools", "install-deps"), encoding="utf-8") as f:
            installed = set(" ".join(re.findall(r"""^build=['"](?:\$build )?([^'"]*)""", f.read(), re.M)).split())
        with open(os.path.join(root, "debian", "control"), encoding="utf-8") as f:
            field = re.search(r"^Build-Depends:((?:.|\n )*)", f.read(), re.M)[1]
        needed_there = {word.split()[0] for word in field.split(",")}
        # Packages of every build, and those only for tests and pictures, excepted.
        self.assertEqual(installed - {"gcc", "libc6-dev", "make", "libcmocka-dev", "xz-utils"},
                         needed_there - {"debhelper-compat"})

    def test_one_way_to_skip(self):
        found, read = [], 0
        for directory, below, names in os.walk(TESTS):
            below[:] = [d for d in below if d not in ("node_modules", "json-bigint")]
            for name in names:
                path = os.path.relpath(os.path.join(directory, name), TESTS)
                pattern = FORBIDDEN.get(os.path.splitext(name)[1])
                if path in DOORS or not pattern:
                    continue
                read += 1
                with open(os.path.join(TESTS, path), encoding="utf-8") as f:
                    for number, line in enumerate(f, 1):
                        if re.search(pattern, line) and ALLOWED.get(path, "\0") not in line:
                            found.append(f"tests/{path}:{number}: {line.strip()}")
        self.assertEqual(found, [])
        self.assertGreater(read, 100)

    def test_absent_is_skipped_or_fails(self):
        for code in ("needed.run(lambda: needed.need('/nowhere'))",
                     "needed.run(lambda: needed.need('no-such-program'))"):
            self.assertEqual(run(code, required=False)[0], 77, code)
            self.assertEqual(run(code, required=True)[0], 1, code)
        self.assertEqual(run("assert not needed.have('/nowhere')", required=False)[0], 0)
        self.assertEqual(run("assert not needed.have('/nowhere')", required=True)[0], 1)
        self.assertEqual(run("needed.need('/'); assert needed.have('sh')", required=True)[0], 0)

    def test_seed(self):
        self.assertEqual(run("print(needed.seed(7))", required=False), (0, "random numbers: WEFT_SEED=0\n7\n"))
        self.assertEqual(run("import os; os.environ['WEFT_SEED'] = '5'; print(needed.seed(7), needed.seed(None))",
                             required=False)[1].split()[-2:],
                         ["12", "5"])


if __name__ == "__main__":
    unittest.main()
