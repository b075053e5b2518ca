#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Judges the call stacks of traces by what babeltrace2 prints of them: truth.py DUMP WRITE (the programs built from
dump.c, ust_write.c).

Replays the text's entries and exits with a list per thread and compares every interval exactly. Exit status 77
(skipped) when babeltrace2 is absent.
"""
import bisect
import collections
import os
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from needed import need, needs, run, seed  # noqa: E402

DATA = os.path.abspath(os.environ.get("WEFT_DATA") or os.path.join(ROOT, "..", "shared", "data"))
RECORDED = os.path.join(DATA, "traces-public", "context-switches-ust")
LOST = re.compile(r'discarded \d+ events? between \[(\d+)\.(\d{9})\] and \[(\d+)\.(\d{9})\] .* within stream '
                  r'".*channel0_(\d+)"')
LINE = re.compile(r"\[(\d+)\.(\d{9})\] (\S+) (\S+): (.*)$")


class Replay:
    """Text of a trace replayed: calls as (pid, tid, level, begin, end, how, address)."""

    def __init__(self, path):
        run = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, check=True)
        lines = run.stdout.decode().splitlines()
        resets = self.find_resets(lines, run.stderr.decode())
        self.calls, self.names, self.threads = [], {}, {}
        self.events = self.strange = self.missing = 0
        stacks, self.sizes = collections.defaultdict(list), {}
        self.memory = collections.defaultdict(list)
        self.last = {}
        # State after lost events, by thread: the functions that were open then, and the time since which each level is
        # unknown.
        self.ghosts, self.unknown = collections.defaultdict(list), collections.defaultdict(list)
        for number, line in enumerate(lines):
            for since in resets.get(number, ()):
                self.reset(stacks, since)
            found = LINE.match(line)
            at, kind, fields = int(found[1]) * 10**9 + int(found[2]), found[4], found[5]
            self.events += 1
            if not kind.startswith(("lttng_ust_cyg_profile:", "lttng_ust_libc:")):
                continue
            pid = re.search(r"\bvpid = (\d+)", fields)
            name = re.search(r'procname = "([^"]*)"', fields)[1]
            thread = (int(pid[1]) if pid else -1, int(re.search(r"\bvtid = (\d+)", fields)[1]))
            self.names[thread] = name
            self.last[thread] = at
            if kind.startswith("lttng_ust_libc:"):
                self.allocate(thread, at, kind.split(":")[1], fields)
                continue
            address = int(re.search(r"\baddr = 0x([0-9A-F]+)", fields)[1], 16)
            stack = stacks[thread]
            if kind.endswith(":func_entry"):
                if not stack:
                    self.end_ghosts(thread, stack, address, at)
                self.tell_unknown(thread, len(stack), at)
                stack.append((at, address))
            elif address not in (a for _, a in stack):
                self.strange += 1
                self.end_ghosts(thread, stack, address, at)
            else:
                while stack[-1][1] != address:
                    self.end(thread, stack, at, "cut")
                    self.missing += 1
                self.end(thread, stack, at, "whole")
        for since in resets.get(len(lines), ()):
            self.reset(stacks, since)
        for thread, stack in stacks.items():
            for level in range(len(stack), len(self.unknown[thread])):
                self.tell_unknown(thread, level, at)
            while stack:
                self.end(thread, stack, at, "cut")

    def find_resets(self, lines, warnings):
        """{number of the line before which it happens: [since]}: when what threads do becomes uncertain, and since
        when. Events are missing after the packet before, up to the packet's first event, and after its last."""
        times = []
        for line in lines:
            found = LINE.match(line)
            times.append((int(found[1]) * 10**9 + int(found[2]), re.search(r"cpu_id = (\d+)", found[5])[1]))
        found, deaf = collections.defaultdict(list), []
        self.losses = 0
        for a, a_ns, b, b_ns, cpu in LOST.findall(warnings):
            begin, end = int(a) * 10**9 + int(a_ns), int(b) * 10**9 + int(b_ns)
            within = [i for i, (t, c) in enumerate(times) if c == cpu and begin < t <= end]
            found[bisect.bisect_right(times, (begin, "~"))].append(begin)
            if within:
                found[within[0]].append(begin)
                found[within[-1] + 1].append(end)
                deaf.append((bisect.bisect_right(times, (begin, "~")), within[0], begin))
            self.losses += 1
        # Losses of several CPUs at once count from the earliest.
        return {i: [min([since] + [begin for first, last, begin in deaf if first <= i <= last]) for since in all_of_it]
                for i, all_of_it in found.items()}

    def reset(self, stacks, since):
        for thread, stack in stacks.items():
            if not stack:
                continue
            cut, levels, unknown = max(since, self.last[thread]), len(stack), self.unknown[thread]
            self.ghosts[thread] += [address for _, address in stack]
            while stack:
                self.end(thread, stack, cut, "cut")
            unknown += [cut] * (levels - len(unknown))

    def tell_unknown(self, thread, level, at):
        """Records that the level is unknown up to now, or without a call of its own."""
        unknown = self.unknown[thread]
        if level < len(unknown) and unknown[level] < at:
            self.calls.append((*thread, level, unknown[level], at, "unknown", "-"))

    def end_ghosts(self, thread, stack, address, at):
        """The innermost call of the function that was open when events were lost is over, and so are those in it."""
        ghosts, unknown = self.ghosts[thread], self.unknown[thread]
        if address not in ghosts:
            return
        left = len(ghosts) - 1 - ghosts[::-1].index(address)
        for level in range(max(left, len(stack)), len(unknown)):
            self.tell_unknown(thread, level, at)
        del ghosts[left:], unknown[left:]

    def allocate(self, thread, at, what, fields):
        """Memory as [(time, bytes held from then on)] by thread; an allocation at a taken address ends the one before.
        """
        value = {name: int(number, 0) for name, number in re.findall(r"\b(ptr|in_ptr|size|nmemb) = (\w+)", fields)}
        change, held = 0, self.memory[thread]
        size, result = value.get("size", 0) * value.get("nmemb", 1), value["ptr"]
        if what == "realloc" and not result and size:
            return
        gone = {"free": result, "realloc": value.get("in_ptr")}.get(what)
        if gone:
            change -= self.sizes.pop((thread[0], gone), 0)
        if what != "free" and result:
            change += size - self.sizes.get((thread[0], result), 0)
            self.sizes[thread[0], result] = size
        held.append((at, (held[-1][1] if held else 0) + change))

    def end(self, thread, stack, at, how):
        begin, address = stack.pop()
        self.calls.append((*thread, len(stack), begin, at, how, f"0x{address:x}"))
        if len(stack) < len(self.unknown[thread]):
            self.unknown[thread][len(stack)] = at


class Truth(unittest.TestCase):
    maxDiff = 3000

    def judge(self, path):
        truth = Replay(path)
        lines = subprocess.run([DUMP, path], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines()
        calls, names, totals = [], {}, None
        for line in lines:
            what, *words = line.split(" ")
            if what == "totals":
                totals = tuple(map(int, words))
            elif what == "thread":
                names[int(words[0]), int(words[1])] = words[2]
            else:
                calls.append((*map(int, words[:5]), words[5], words[6]))
        self.assertEqual(totals, (truth.events, sum(c[5] != "unknown" for c in truth.calls), truth.strange,
                                  truth.missing))
        self.assertEqual(names, truth.names)
        self.assertEqual(sorted(calls), sorted(truth.calls))
        return truth

    @needs(RECORDED)
    def test_recorded(self):
        self.assertEqual(len(self.judge(RECORDED).calls), 1948)

    def test_random(self):
        with tempfile.TemporaryDirectory() as place:
            first = seed(1)
            for made in map(str, range(first, first + 3)):
                path = os.path.join(place, made)
                subprocess.run([WRITE, "random", path, made, "20000"], check=True)
                truth = self.judge(path)
                self.assertGreater(min(truth.strange, truth.missing), 20)
                self.assertGreater(max(c[4] - c[3] for c in truth.calls), 2**32)

    def test_lossy(self):
        with tempfile.TemporaryDirectory() as place:
            first = seed(10)
            for made in map(str, range(first, first + 6)):
                path = os.path.join(place, made)
                subprocess.run([WRITE, "lossy", path, made, "4000"], check=True)
                truth = self.judge(path)
                self.assertGreater(truth.losses, 10)
                self.assertGreater(sum(c[5] == "unknown" for c in truth.calls), 20)


if __name__ == "__main__":
    run(lambda: need("babeltrace2"))
    DUMP, WRITE = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1], verbosity=2)
