# SPDX-License-Identifier: MIT
"""Helpers of the end-to-end tests: places of the program and the recorded traces, running it, and rules for every
answer.

Environment: WEFT_BIN (the program; default build/weft), WEFT_DATA (the recorded traces; default ../shared/data
beside the source tree).
A test file ends with `main()`: exit status 77 (skipped) when not one of its tests could run."""
import atexit
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from fractions import Fraction

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from needed import absent, have, need, needs, new_dice, seed  # noqa: E402,F401
BIN = os.path.abspath(os.environ.get("WEFT_BIN") or os.path.join(ROOT, "build", "weft"))
DATA = os.path.abspath(os.environ.get("WEFT_DATA") or os.path.join(ROOT, "..", "shared", "data"))
TIMEOUT_S = 120
GIB = 1 << 30

_scratch = []


def scratch(prefix="weft-test-"):
    """Returns a directory, which is removed when the test program ends, as is the one beside it with `.stores`
    appended."""
    path = tempfile.mkdtemp(prefix=prefix)
    if not _scratch:
        atexit.register(lambda: [shutil.rmtree(p + suffix, ignore_errors=True) for p in _scratch
                                 for suffix in ("", ".stores")])
    _scratch.append(path)
    return path


def sanitizer():
    """'address', 'thread' or None: sanitizer of the program. Sanitizers reserve terabytes of address space, so limits
    on it do not work."""
    with open(BIN, "rb") as f:
        program = f.read()
    for mark, name in ((b"__asan_init", "address"), (b"__tsan_init", "thread")):
        if mark in program:
            return name
    return None


SANITIZER = sanitizer() if os.path.exists(BIN) else None
os.environ.setdefault("WEFT_CONFIG", os.devnull)  # settings of this machine's users must not affect the tests
SLOWDOWN = {None: 1, "address": 5, "thread": 15}[SANITIZER]

_unpacked = {}


def scenario(name):
    """Path of a recorded scenario; the bundled one is unpacked if the recorded traces are absent. Skips the test if
    there is none."""
    path = os.path.join(DATA, "traces", name)
    if os.path.isdir(path):
        return path
    bundle = os.path.join(ROOT, "examples", name + ".tar.xz")
    if not os.path.exists(bundle):
        absent(f"no recorded traces: {path} is absent (set WEFT_DATA)")
    if name not in _unpacked:
        _unpacked[name] = scratch()
        with tarfile.open(bundle) as tar:
            tar.extractall(_unpacked[name])
    return os.path.join(_unpacked[name], name)


def load(*parts):
    with open(os.path.join(*parts), encoding="utf-8") as f:
        return json.load(f)


class Run:
    """Finished run of the program."""

    def __init__(self, args, code, out, err):
        self.args, self.code, self.out, self.err = args, code, out, err

    @property
    def text(self):
        return self.out.decode("utf-8", "replace")

    @property
    def message(self):
        return self.err.decode("utf-8", "replace")

    def __str__(self):
        return f"weft {' '.join(a[:300] for a in self.args)}\n  exit {self.code}\n  stderr: {self.message[-2000:]}"


def weft(*args, memory=None, file_size=None, timeout=TIMEOUT_S, program=None, stdout=subprocess.PIPE, **more):
    """Runs the program. memory, file_size: limits in bytes. `code` is negative for a death by signal, None for a
    time-out."""
    args = [str(a) for a in args]
    # Limits by prlimit(1): code between fork and exec is not safe in a Python that runs threads.
    limits = ["prlimit", "--core=0"]
    if memory and not SANITIZER:
        limits.append(f"--as={memory}")
    if file_size is not None:
        limits.append(f"--fsize={file_size}")
    env = dict(os.environ, NO_COLOR="1", COLUMNS="120", LC_ALL="C.UTF-8", **more.pop("env", {}))
    try:
        done = subprocess.run(limits + [program or BIN] + args, stdin=subprocess.DEVNULL, stdout=stdout,
                              stderr=subprocess.PIPE,
                              timeout=timeout * SLOWDOWN, env=env, restore_signals=False, **more)
    except subprocess.TimeoutExpired as late:
        return Run(args, None, late.stdout or b"", late.stderr or b"")
    return Run(args, done.returncode, done.stdout or b"", done.stderr)


class Case(unittest.TestCase):
    maxDiff = 4000

    @classmethod
    def setUpClass(cls):
        need(BIN)

    def ok(self, *args, **how):
        run = weft(*args, **how)
        self.assertEqual(run.code, 0, run)
        return run

    def partly(self, *args, **how):
        """Answer that lacks damaged or missing parts."""
        run = weft(*args, **how)
        self.assertEqual(run.code, 3, run)
        return run

    def json(self, *args, **how):
        run = self.ok(*args, "--format", "json", **how)
        try:
            return json.loads(run.out)
        except ValueError as problem:
            self.fail(f"{run}\n  not one JSON value: {problem}\n  {run.text[:500]}")

    def survived(self, run):
        """Checks the rules for any input: the program ends by itself, in time, with one of its four exit codes, and
        gives the reason if it failed or answered in part."""
        self.assertIn(run.code, (0, 1, 2, 3), f"{run}\n  (negative: killed by that signal; None: took too long)")
        for word in ("Sanitizer", "runtime error:"):
            self.assertNotIn(word, run.message, run)
        if run.code and not (run.code == 3 and run.args[0] == "info"):  # exception: its page gives the reason
            self.assertRegex(run.message, r"^weft: ", run)

    # ---- clock maps
    # -----------------------------------------------------------------------------------------------------------

    def sync(self, trace, store, *options):
        """Returns {host: Map} of `weft sync`, checked against the contract of its JSON."""
        answer = self.json("sync", trace, "--store", store, *options)
        self.assertLessEqual({"reference", "hosts", "pairs"}, set(answer))
        names = [h["host"] for h in answer["hosts"]]
        self.assertEqual(len(set(names)), len(names), "host names are unique")
        self.assertIn(answer["reference"], names)
        maps = {}
        for h in answer["hosts"]:
            self.assertIn(h["category"], CATEGORIES)
            if h["host"] == answer["reference"]:
                self.assertEqual((h["category"], h["predecessor"]), ("reference", None))
            if h["predecessor"] is not None:
                self.assertIn(h["predecessor"], names)
            maps[h["host"]] = Map(h)
            for before, after in zip(h["pieces"], h["pieces"][1:]):
                self.assertEqual(before["end"], after["begin"], f"{h['host']}: pieces follow each other")
            for p in h["pieces"]:
                self.assertIsInstance(p["drift"], str)
                self.assertIsInstance(p["offset_ns"], str)
                self.assertLessEqual(p["begin"], p["end"])
                self.assertGreaterEqual(min(p["error_ns_begin"], p["error_ns_end"]), 0)
        for p in answer["pairs"]:
            self.assertIn(p["a"], names)
            self.assertIn(p["b"], names)
            self.assertIn(p["category"], CATEGORIES)
            self.assertEqual(len(p["messages"]), 2)
        reference = maps[answer["reference"]]
        for p in reference.pieces:
            self.assertEqual((Fraction(p["drift"]), Fraction(p["offset_ns"]), p["error_ns_begin"], p["error_ns_end"]),
                             (1, 0, 0, 0))
        return answer, maps

    # ---- critical paths
    # -------------------------------------------------------------------------------------------------------

    def critpath(self, trace, store, thread, begin=None, end=None, *options):
        args = ["critpath", trace, "--store", store, "--thread", thread, *options]
        if begin is not None:
            args += ["--begin", begin, "--end", end]
        answer = self.json(*args)
        self.check_path(answer, " ".join(map(str, args)), assumed="assume" in options)
        return answer

    def check_words(self, answer, what):
        """Checks the sentence, and its parts, against docs/concepts.md."""
        length = answer["query"]["end"] - answer["query"]["begin"]
        sentence, parts = answer["sentence"], answer["parts"]
        self.assertEqual(sentence == "", length == 0, what)
        self.assertLessEqual(len(sentence), 140, what)
        self.assertLessEqual(sentence.count(" · "), 3, what)
        shares = [int(n) for n in re.findall(r"(?:: | · )(\d+) %", sentence)]
        if length:
            self.assertLessEqual(abs(sum(shares) - 100), 3, f"{what}: {sentence}")
        told = shares[:-1] if sentence.endswith("rest") else shares
        self.assertEqual(told, sorted(told, reverse=True), f"{what}: {sentence}")
        durations = [p["duration"] for p in parts]
        self.assertEqual(durations, sorted(durations, reverse=True), what)
        self.assertLessEqual(sum(durations), length, what)
        for p in parts:
            self.assertAlmostEqual(p["share"], p["duration"] / length, 5, what)

    def check_path(self, answer, what, assumed=False):
        """Checks the contract of `critpath --format json`, first of all the cover invariant. assumed: assumed waits are
        allowed."""
        self.assertEqual(set(answer), {"query", "method", "sentence", "parts", "segments", "links", "totals",
                                       "unexplained", "cost"}, what)
        self.assertLessEqual({"host", "tid", "comm", "begin", "end"}, set(answer["query"]), what)
        self.assertLessEqual({"nodes", "messages", "bytes", "rounds", "windows", "windows_unused", "seconds"},
                             set(answer["cost"]), what)
        begin, end = answer["query"]["begin"], answer["query"]["end"]
        at, sums = begin, {}
        for s in answer["segments"]:
            told = {"assumed"} & set(s)
            self.assertEqual(set(s) - told, {"host", "tid", "comm", "begin", "end", "state", "detail"}, what)
            if told:
                self.assertTrue(assumed, f"{what}: assumed without being asked: {s}")
                self.assertEqual((s["assumed"], s["state"]), (True, "network"), what)
            self.assertEqual(s["begin"], at, f"{what}: a gap or an overlap at {s}")
            self.assertLess(s["begin"], s["end"], f"{what}: {s}")
            self.assertIn(s["state"], STATES, what)
            at = s["end"]
            key = (s["host"], s["tid"], s["state"], s.get("assumed"))
            sums[key] = sums.get(key, 0) + s["end"] - s["begin"]
        self.assertEqual(at, end, f"{what}: the segments end at {at}, the interval at {end}")
        totals = {}
        for t in answer["totals"]:
            key = (t["host"], t["tid"], t["state"], t.get("assumed"))
            totals[key] = totals.get(key, 0) + t["duration"]
        self.assertEqual(totals, sums, f"{what}: totals differ from the segments")
        durations = [t["duration"] for t in answer["totals"]]
        self.assertEqual(durations, sorted(durations, reverse=True), f"{what}: totals are largest first")
        self.check_words(answer, what)
        for link in answer["links"]:
            self.assertIn(link["kind"], LINKS, what)
            for side in ("from", "to"):
                self.assertLessEqual({"host", "tid", "time"}, set(link[side]), what)
        for u in answer["unexplained"]:
            self.assertIn(u["reason"], REASONS, what)
            self.assertTrue(begin <= u["begin"] < u["end"] <= end, f"{what}: {u}")
            for s in answer["segments"]:
                if s["state"] == "network" and u["reason"] not in OF_PEERS:
                    self.assertFalse(s["begin"] < u["end"] and u["begin"] < s["end"],
                                     f"{what}: a gap is painted network: {u} {s}")


CATEGORIES = {"reference", "accurate", "trusted", "approximate", "one-sided", "one-way", "absent"}
STATES = {"running", "preempted", "interrupted", "blocked", "timer", "network", "block-device", "user-input", "ipi",
          "hypervisor", "stolen",
          "unknown"}
LINKS = {"wakeup", "fork", "network", "disk", "vm", "span"}
OF_PEERS = {"untraced-peer", "offline-node", "no-clock"}  # reasons for a network wait whose peer is known
REASONS = {"lost-events", "no-waker"} | OF_PEERS


class Map:
    """Clock map of a host: exact arithmetic on the decimals that weft prints."""

    def __init__(self, host):
        self.pieces, self.category, self.predecessor = host["pieces"], host["category"], host["predecessor"]

    def piece(self, t):
        for p in self.pieces:
            if t < p["end"]:
                return p
        return self.pieces[-1]

    def to_reference(self, t):
        p = self.piece(t)
        return Fraction(p["drift"]) * t + Fraction(p["offset_ns"])

    def error_ns(self, t):
        """Returns the stated error at host time t, linear within a piece; beyond the pieces, the line is extended."""
        p = self.piece(t)
        span = p["end"] - p["begin"]
        if not span:
            return Fraction(max(p["error_ns_begin"], p["error_ns_end"]))
        return (Fraction(p["error_ns_begin"])
                + Fraction(p["error_ns_end"] - p["error_ns_begin"]) * (t - p["begin"]) / span)

    def drift(self, t):
        return Fraction(self.piece(t)["drift"])


class Truth:
    """True relation of a scenario's clocks (true-sync.json)."""

    def __init__(self, path):
        answer = load(path, "true-sync.json")
        self.pairs = answer["pairs"]
        self.hosts = sorted(answer["to_host_tsc_ns"])
        self.offsets = {h: v["metadata_clock_offset_ns"] for h, v in answer["to_host_tsc_ns"].items()}

    def trace_time(self, host, monotonic):
        """ground-truth.json logs CLOCK_MONOTONIC; traces show it plus the offset in their metadata."""
        return monotonic + self.offsets[host]

    def convert(self, a, b, t):
        """Returns the time on b's clock when a's shows t."""
        if a == b:
            return Fraction(t)
        p = self.pairs[f"{a}->{b}"]
        return p["is_b_ns"] + Fraction(p["scale"]) * (t - p["at_a_ns"])

    def scale(self, a, b):
        return Fraction(self.pairs[f"{a}->{b}"]["scale"]) if a != b else Fraction(1)


def time_in(answer, begin, end, **like):
    """Returns the ns of [begin, end] that the path spends in segments with these properties; a value may be a set of
    values."""
    total = 0
    for s in answer["segments"]:
        for key, wanted in like.items():
            if s[key] not in (wanted if isinstance(wanted, (set, frozenset)) else {wanted}):
                break
        else:
            total += max(0, min(s["end"], end) - max(s["begin"], begin))
    return total


def main():
    """Runs the tests of the calling file; exit status 77 when all were skipped."""
    program = unittest.main(module="__main__", exit=False, verbosity=2)
    result = program.result
    if not result.wasSuccessful():
        sys.exit(1)
    # A class that skips in setUpClass counts as one skip and no test.
    sys.exit(77 if result.skipped and len(result.skipped) >= result.testsRun else 0)
