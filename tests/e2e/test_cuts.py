# SPDX-License-Identifier: MIT
"""Stores of many chunks say what those of one say, byte for byte: by every verb, and by every output of the server.
Recordings that are cut at random moments into archives that come one by one, and recordings indexed with so little
memory that they are cut every few thousand events.

WEFT_CUTTINGS=N: so many random cuttings of each recording (50 for a bench run)."""
import json
import os
import random
import re
import shutil
import subprocess
import tarfile

import test_worlds
from said import Talk, Verb
from weft_e2e import DATA, ROOT, SANITIZER, SLOWDOWN, Case, main, need, scenario, scratch, seed, weft

RECORDINGS = ("three-tier", "bsp", "scp-net", "lost-events", "snapshot", "three-tier-disk", "rotated", "mpi", "vm",
              "clocks", "live-relayd", "perf-ctf", "ust-live")
PUBLIC = ("many-threads", "flipping-endianness", "hello-lost", "bug446190")
# Packets in which events were lost are not cut, so that archives of these end at another time on each CPU: a thread may
# be seen in one whose fork is in the next, and then keeps its id from before the fork was known
# (docs/decisions/chunks.md).
UNEVEN = ("many-threads",)
CUTTINGS = int(os.environ.get("WEFT_CUTTINGS", "1" if SANITIZER else "2"))
MOST_CUTS = 8
MOST_STEPS = 3  # maximum number of steps in which archives come
MOST_THREADS = 30 // (SLOWDOWN + 1)  # number of threads whose paths are queried; distributed over the cuttings
SEED = seed(29)


def tool(variable, *where):
    return need(os.path.abspath(os.environ.get(variable) or os.path.join(ROOT, "build", *where)))


def chunks(store):
    return sum(name.startswith("chunk.") for _, _, names in os.walk(store) for name in names)


def has_trace(path):
    return any("metadata" in names for _, _, names in os.walk(path))


def place_in_session(path):
    """Returns LTTng's place of the trace in a session's directory, and in each archive of it."""
    directory = next(d for d, _, names in os.walk(path) if "metadata" in names)
    found = re.search(r"/(kernel|ust/.*)$", directory)
    return found[1] if found else ""


def hosts(recording):
    """{name: directory} of the traces of a recording: one each in its directories, or the recording itself."""
    if os.path.exists(os.path.join(recording, "metadata")):
        return {"trace": recording}
    return {name: os.path.join(recording, name) for name in sorted(os.listdir(recording))
            if has_trace(os.path.join(recording, name))}


class Compared:
    """Recording in one pass, with its output."""

    def __init__(self, trace, dice):
        self.trace, self.store, self.dice, self.said = trace, scratch(), dice, {}
        self.verb, self.talk, self.paths = Verb(trace, self.store), Talk(dice), []

    def start(self, test):
        test.ok("index", self.trace, "--store", self.store)
        run = weft("threads", self.trace, "--all", "--store", self.store, "--format", "json")
        self.has_threads = run.code in (0, 3)  # true unless the trace has only calls of user space
        threads = json.loads(run.out) if self.has_threads else []
        names = [f"{t['host']}:{t['tid']}" for t in threads]
        self.threads = [n for n in names if names.count(n) == 1]
        self.talk.start(self.trace, self.store, self.dice.sample(self.threads, min(2, len(self.threads))))

    def verbs(self):
        """Returns every verb, and paths of some threads, all of them in turn."""
        if not self.has_threads:
            return
        yield "threads", "--all"
        yield ("sync",)
        yield ("threads",)
        yield ("requests",)
        for _ in range(min(len(self.threads), max(1, MOST_THREADS // CUTTINGS))):
            if not self.paths:
                self.paths = self.dice.sample(self.threads, len(self.threads))
            yield "critpath", "--thread", self.paths.pop()

    def same(self, test, trace, store, in_order=True):
        """in_order: ids are the same, too. What came late extends rows, which keep theirs."""
        verb = Verb(trace, store)
        for asked in self.verbs():
            if asked not in self.said:
                self.said[asked] = self.verb(*asked)
            test.assertEqual(verb(*asked), self.said[asked], asked)
        found = self.talk.differences(trace, store) if in_order else []
        test.assertEqual(len(found), 0, str(found[:1])[:4000])


class Cuts(Case):
    def cut(self, recording, top, dice):
        """The recording's traces in archives: (number in order of time, where it lies, its place below top)."""
        for name, path in hosts(recording).items():
            out = scratch()
            subprocess.run([tool("CUT_TRACE", "tests", "e2e", "cut_trace"), path, out, str(dice.getrandbits(63)),
                            str(dice.randint(1, MOST_CUTS))], check=True, stdout=subprocess.DEVNULL)
            for number, part in enumerate(sorted(os.listdir(out))):
                yield number, os.path.join(out, part), os.path.join(top, name, "archives", part, place_in_session(path))

    def grow(self, one, dice):
        """Makes archives arrive a few at a time, indexed in between."""
        top, store = scratch(), scratch()
        coming, in_order = sorted(self.cut(one.trace, top, dice)), dice.random() < 0.8
        if not in_order:
            dice.shuffle(coming)
        for step in range(MOST_STEPS, 0, -1):
            for _ in range(len(coming) if step == 1 else dice.randint(0, len(coming))):
                _, part, place = coming.pop(0)
                os.makedirs(os.path.dirname(place.rstrip("/")), exist_ok=True)
                os.rename(part, place)
            if os.listdir(top):
                how = ("threads",) if one.has_threads and dice.random() < 0.7 else ("index", "--memory", "1K")
                self.ok(*how, top, "--store", store)
        return top, store, in_order

    def random_cuttings(self, name, recording):
        one = Compared(recording, random.Random(f"{SEED} {name}"))
        one.start(self)
        several = 0
        for number in range(CUTTINGS):
            with self.subTest(recording=name, cutting=number):
                trace, store, in_order = self.grow(one, one.dice)
                several += chunks(store) > chunks(one.store)
                one.same(self, trace, store, in_order and name not in UNEVEN)
                shutil.rmtree(trace)
                shutil.rmtree(store)
        # Single cuttings may have found their chunks joined again.
        self.assertGreaterEqual(several, min(CUTTINGS - 1, 1))
        return one

    def compare(self, name, recording):
        one = self.random_cuttings(name, recording)
        many = scratch()
        self.ok("index", recording, "--store", many, "--memory", "1K")
        one.same(self, recording, many)

    def test_worlds(self):
        """Made ones: machines that talk, with and without packets that are lost; calls of user space."""
        dice = random.Random(SEED)
        for how in ({"loss": 0.05, "reorder": 0.2}, {"forwarders": 2, "stacked": True})[:2 // SLOWDOWN or 1]:
            self.compare(f"world {how}", test_worlds.Worlds().write(test_worlds.make(dice, **how)))
        for how in ("random", "lossy"):
            trace = os.path.join(scratch(), "made")
            subprocess.run([tool("UST_WRITE", "tests", "stack", "ust_write"), how, trace, str(dice.randrange(10**6)),
                            "5000"], check=True)
            self.compare(how, os.path.dirname(trace))
        trace = os.path.join(scratch(), "made")
        subprocess.run([tool("WEFT_MAKE_TRACE", "bench", "make_trace"), trace, "20000", "4", "40"], check=True,
                       stdout=subprocess.DEVNULL)
        self.compare("busy", os.path.dirname(trace))

    def test_ten_machines(self):
        top = scratch()
        with tarfile.open(os.path.join(ROOT, "examples", "ten-machines.tar.xz")) as tar:
            tar.extractall(top)
        self.compare("ten-machines", os.path.join(top, "ten-machines"))


for recording in RECORDINGS[:5] if SANITIZER else RECORDINGS:
    setattr(Cuts, "test_" + recording.replace("-", "_"),
            lambda self, name=recording: self.compare(name, scenario(name)))
for recording in () if SANITIZER else PUBLIC:
    setattr(Cuts, "test_public_" + recording.replace("-", "_"), lambda self, name=recording: self.compare(
        name, need(os.path.join(DATA, "traces-public", "single-host", name))))


if __name__ == "__main__":
    main()
