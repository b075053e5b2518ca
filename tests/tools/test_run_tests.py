# SPDX-License-Identifier: MIT
"""Repetition of failed tests alone, and only of those: a stand-in for meson plays each result."""
import os
import stat
import subprocess
import sys
import tempfile
import unittest

TOOL = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "tools", "run-tests"))
# Tests of $PLAY are "name=first/second": the results in the first run, and alone. "race" fails with a report.
MESON = """#!%s
import json, os, sys
arguments = sys.argv[1:]
build = arguments[arguments.index("-C") + 1]
base = arguments[arguments.index("--logbase") + 1]
again = base != "testlog"
tests = dict(word.split("=") for word in os.environ["PLAY"].split())
if again:
    tests = {arguments[-1]: tests[arguments[-1]]}
    assert "--suite" not in arguments, arguments
os.makedirs(os.path.join(build, "meson-logs"), exist_ok=True)
bad = False
with open(os.path.join(build, "meson-logs", base + ".json"), "w") as f:
    for name, plays in tests.items():
        play = plays.split("/")[again]
        said = "WARNING: ThreadSanitizer: data race" if play == "race" else ""
        result = {"ok": "OK", "skip": "SKIP", "late": "TIMEOUT"}.get(play, "FAIL")
        bad = bad or result not in ("OK", "SKIP")
        f.write(json.dumps({"name": "weft:unit / " + name, "result": result, "stderr": said}) + "\\n")
sys.exit(bad)
""" % sys.executable


class RunTests(unittest.TestCase):
    def run_tests(self, play):
        with tempfile.TemporaryDirectory() as folder:
            meson = os.path.join(folder, "meson")
            with open(meson, "w", encoding="utf-8") as f:
                f.write(MESON)
            os.chmod(meson, stat.S_IRWXU)
            done = subprocess.run([TOOL, os.path.join(folder, "build"), "--suite", "threads"], text=True,
                                  stdout=subprocess.PIPE, timeout=60,
                                  env={**os.environ, "PLAY": play, "PATH": folder + ":" + os.environ["PATH"]})
        return done.returncode, done.stdout.splitlines()

    def test_all_pass(self):
        self.assertEqual(self.run_tests("a=ok/ok b=skip/skip"), (0, ["1 passed, 0 failed, 1 skipped"]))

    def test_passes_alone(self):
        self.assertEqual(self.run_tests("a=ok/no b=late/ok c=skip/no"),
                         (0, ["1 flaky: weft:unit / b", "2 passed, 0 failed, 1 skipped"]))

    def test_fails_alone(self):
        self.assertEqual(self.run_tests("a=ok/no b=late/ok c=no/no"),
                         (1, ["1 flaky: weft:unit / b", "2 passed, 1 failed, 0 skipped"]))

    def test_a_report_is_believed(self):
        self.assertEqual(self.run_tests("a=race/ok"), (1, ["0 passed, 1 failed, 0 skipped"]))

    def test_many_failures_are_no_accident(self):
        play = " ".join(f"t{i}=no/ok" for i in range(6))
        self.assertEqual(self.run_tests(play), (1, ["0 passed, 6 failed, 0 skipped"]))

    def test_nothing_ran(self):
        self.assertEqual(self.run_tests(""), (1, ["0 passed, 1 failed, 0 skipped"]))


if __name__ == "__main__":
    unittest.main()
