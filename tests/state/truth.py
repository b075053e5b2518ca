#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Judges the state store of recorded traces by what babeltrace2 prints of them: truth.py DUMP (the program built from
dump.c).

Reads the text once with rules of its own (who runs on each CPU by sched_switch alone, system calls by their entries and
exits, bytes by block and packet events) and compares exactly. Exit status 77 (skipped) when babeltrace2 or the recorded
traces are absent.
"""
import bisect
import collections
import os
import re
import struct
import subprocess
import sys
import unittest

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from needed import need, run  # noqa: E402

DATA = os.path.abspath(os.environ.get("WEFT_DATA") or os.path.join(ROOT, "..", "shared", "data"))
TRACES = ["three-tier/client", "three-tier/web", "three-tier/db", "three-tier-disk/db", "scp-net/n1", "mpi/n1"]

LINE = re.compile(r"\[(\d+)\.(\d{9})\] (?:\(\S+\) )?(?:\S+ )?([\w:]+): \{ cpu_id = (\d+) \}, (?:\{.*?\}, )??\{ ?(.*?) "
                  r"?\}$")
NUMBER = re.compile(r"(\w+) = (-?\d+|0x[0-9A-Fa-f]+)\b")
TEXT = re.compile(r"(\w+) = \"([^\"]*)\"")
ENTRY, EXIT = (re.compile(rf"(irq_softirq|irq_handler|x86_irq_vectors_\w+)_{edge}$") for edge in ("entry", "exit"))

FIRST_WITHOUT_NUMBER = 32768  # first number of interrupts known by name only
HANDLERS = {"irq_handler_entry": ("irq-line", "irq"), "irq_softirq_entry": ("vector", "vec")}

# Operations of futex(2) that wait and that wake, as linux/futex.h numbers them.
FUTEX = {0: "WAIT", 1: "WAKE", 3: "REQUEUE", 4: "CMP_REQUEUE", 5: "WAKE_OP", 6: "LOCK_PI", 7: "UNLOCK_PI",
         9: "WAIT_BITSET", 10: "WAKE_BITSET",
         11: "WAIT_REQUEUE_PI", 12: "CMP_REQUEUE_PI", 13: "LOCK_PI2"}


class Truth:
    """States according to the text of a trace. Times in ns."""

    def __init__(self, path):
        self.ran = collections.Counter()
        self.busy = collections.Counter()
        self.calls = collections.Counter()
        self.call_list, self.lock_list, self.futex_list = [], [], []
        self.softirqs = collections.Counter()
        self.handled = collections.defaultdict(list)  # (what, number): (begin, end, CPU)
        self.wakes = []
        self.disk = collections.Counter()
        self.packets = collections.Counter()
        self.events = 0
        self.call_time = collections.Counter()
        self.interrupted = collections.Counter()
        self.waiting = {"blocked": collections.Counter(), "ready": collections.Counter()}
        self.read(path)

    def read(self, path):
        text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout
        lines = text.decode("utf-8", "replace").splitlines()
        switches = [self.parse(line) for line in lines]
        self.events = len(switches)
        self.end = switches[-1][0]
        current, since, first = {}, {}, {}
        # Threads before a CPU's first switch are known by that switch.
        for ts, name, cpu, fields in switches:
            first.setdefault(cpu, ts)
            if name == "sched_switch" and cpu not in current:
                current[cpu] = int(fields["prev_tid"])
                since[cpu] = first[cpu]
        self.walk(switches, current, since)

    @staticmethod
    def parse(line):
        m = LINE.match(line)
        if not m:
            raise AssertionError(f"line not understood: {line}")
        fields = dict(NUMBER.findall(m[5]))
        fields.update(TEXT.findall(m[5]))
        return int(m[1]) * 10**9 + int(m[2]), m[3], int(m[4]), fields

    def run(self, cpu, tid, begin, end):
        if tid:
            self.ran[tid] += end - begin
            self.busy[cpu] += end - begin

    def walk(self, events, current, since):
        in_call, off, woken_at, depth, entered, exiting, futex, handling = ({}, {}, {}, collections.Counter(), {},
                                                                            set(), {}, {})
        for ts, name, cpu, fields in events:
            tid = current.get(cpu)
            if name == "sched_switch":
                prev, following = int(fields["prev_tid"]), int(fields["next_tid"])
                assert prev == tid, (ts, prev, tid)
                self.run(cpu, prev, since[cpu], ts)
                current[cpu], since[cpu] = following, ts
                state = int(fields["prev_state"])
                if not state & 0x30 and not (prev in exiting and state & 0xc0):
                    off[prev] = ("blocked" if state & 0xcf else "ready", ts)
                if following in woken_at:
                    self.wakes.append((following, woken_at.pop(following), ts))
                if following in off:
                    kind, at = off.pop(following)
                    if following:
                        self.waiting[kind][following] += ts - at
            elif name in ("sched_waking", "sched_wakeup"):
                woken = int(fields["tid"])
                if off.get(woken, ("", 0))[0] == "blocked":
                    self.waiting["blocked"][woken] += ts - off[woken][1]
                if off.get(woken, ("blocked", 0))[0] == "blocked" and woken not in current.values():
                    off[woken] = ("ready", ts)
                    woken_at[woken] = ts
            elif name == "sched_process_exit":
                exiting.add(tid)
                if tid in futex:
                    self.futex_list.append((*futex.pop(tid), ts, 0, 1))
            elif name == "sched_process_fork":
                off[int(fields["child_tid"])] = ("ready", ts)
                woken_at.pop(int(fields["child_tid"]), None)
            elif name == "sched_wakeup_new":
                off.setdefault(int(fields["tid"]), ("ready", ts))
                if int(fields["tid"]) not in current.values():
                    woken_at[int(fields["tid"])] = ts
            elif name.startswith("syscall_entry_"):
                # FUTEX_WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2; flags are above
                waits = name == "syscall_entry_futex" and int(fields["op"], 0) & 0x7f in (0, 6, 9, 11, 13)
                in_call[tid] = (name[14:], ts, int(fields["uaddr"], 0) if waits else None)
                if name == "syscall_entry_futex" and FUTEX.get(int(fields["op"], 0) & 0x7f):
                    futex[tid] = (int(fields["uaddr"], 0), tid, ts, FUTEX[int(fields["op"], 0) & 0x7f])
            elif name.startswith("syscall_exit_"):
                begun = in_call.pop(tid, None)
                if tid in futex:
                    self.futex_list.append((*futex.pop(tid), ts, int(fields["ret"], 0), 0))
                if begun and begun[0] == name[13:]:
                    self.calls[begun[0]] += 1
                    self.call_list.append((tid, begun[1], ts, int(fields.get("ret", "0"), 0)))
                    if begun[2]:
                        self.lock_list.append((begun[2], *self.call_list[-1]))
            elif ENTRY.match(name):
                depth[cpu] += 1
                if depth[cpu] == 1:
                    entered[cpu] = ts
                self.softirqs[int(fields["vec"]) if "vec" in fields else "irq"] += 1
                if name in HANDLERS:
                    handling[name, int(fields[HANDLERS[name][1]]), cpu] = ts
            elif EXIT.match(name):
                entry = name[:-4] + "entry"
                if entry in HANDLERS:
                    what, number = HANDLERS[entry][0], int(fields[HANDLERS[entry][1]])
                    self.handled[what, number].append((handling.pop((entry, number, cpu)), ts, cpu))
                if depth[cpu]:
                    depth[cpu] -= 1
                    if not depth[cpu] and tid:
                        self.interrupted[tid] += ts - entered[cpu]
            elif name == "block_rq_complete":
                flags = int(fields["rwbs"])
                if not flags & 2 and int(fields.get("error", 0)) == 0:
                    kind = "write" if flags & 1 else "read" if flags & 4 else None
                    if kind:
                        self.disk[kind] += 512 * int(fields["nr_sector"])
            elif name in ("net_dev_queue", "net_if_receive_skb", "netif_receive_skb"):
                self.packets[fields["name"]] += 1
        for (entry, number, cpu), begin in handling.items():
            self.handled[HANDLERS[entry][0], number].append((begin, self.end, cpu))
        self.futex_list += [(*call, self.end, 0, 1) for call in futex.values()]
        for cpu, tid in current.items():
            self.run(cpu, tid, since[cpu], self.end)
        for tid, (kind, at) in off.items():
            self.waiting[kind][tid] += self.end - at


def latest(handled):
    """Returns the CPU that began last among those in the handler, as (begin, end, CPU); of two in the same ns the
    higher one."""
    out = []
    changes = sorted({t for begin, end, _ in handled for t in (begin, end)})
    handled, open_ = sorted(handled), []
    following = iter(handled)
    ahead = next(following, None)
    for t, until in zip(changes, changes[1:]):
        while ahead and ahead[0] <= t:
            open_.append(ahead)
            ahead = next(following, None)
        open_ = [h for h in open_ if h[1] > t]
        if not open_:
            continue
        cpu = max((begin, cpu) for begin, _, cpu in open_)[1]
        if out and out[-1][1:] == (t, cpu):
            out[-1] = (out[-1][0], until, cpu)
        else:
            out.append((t, until, cpu))
    return out


DISCARDED = re.compile(r"discarded (\d+) events? between \[(\d+)\.(\d{9})\] and \[(\d+)\.(\d{9})\].*stream ID: (\d+)\)")


class Holes:
    """Gaps in which a trace has no events although the tracer had some: around the borders of the packets that report
    discarded events. Times in ns."""

    def __init__(self, path):
        run = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, check=True)
        times = collections.defaultdict(list)
        for line in run.stdout.decode("utf-8", "replace").splitlines():
            ts, _, cpu, _ = Truth.parse(line)
            times[cpu].append(ts)
        self.count, self.by_cpu = 0, collections.defaultdict(list)
        told = collections.defaultdict(list)
        for m in DISCARDED.finditer(run.stderr.decode()):
            told[int(m[6])].append((int(m[2]) * 10**9 + int(m[3]), int(m[4]) * 10**9 + int(m[5])))
            self.count += int(m[1])
        for cpu, windows in told.items():
            for (begin, end), (follows, precedes) in zip(windows,
                                                         self.packets(os.path.join(path, "index", f"ch_{cpu}.idx"))):
                # A packet that begins when the one before ends begins with the event of that time; else that event
                # ended the one before.
                first = (bisect.bisect_left if follows else bisect.bisect_right)(times[cpu], begin)
                if first < len(times[cpu]) and times[cpu][first] > begin:
                    self.by_cpu[cpu].append((begin, min(end, times[cpu][first])))
                last = (bisect.bisect_left if precedes else bisect.bisect_right)(times[cpu], end) - 1
                if last >= 0 and begin < times[cpu][last] < end:
                    self.by_cpu[cpu].append((times[cpu][last], end))

    @staticmethod
    def packets(path):
        """Returns, for each packet of a stream that reports discarded events, whether it begins at the end of the one
        before, and whether the next begins at its end."""
        with open(path, "rb") as f:
            data = f.read()
        size = struct.unpack(">4I", data[:16])[3]
        entries = [struct.unpack(">7Q", data[at:at + 56]) for at in range(16, len(data) - 55, size)]
        for i, (_, _, _, begin, end, discarded, _) in enumerate(entries):
            if discarded > (entries[i - 1][5] if i else 0):
                yield i > 0 and entries[i - 1][4] == begin, i + 1 < len(entries) and entries[i + 1][3] == end


def dumped(program, *args):
    """The dump's lines by their first word."""
    out = collections.defaultdict(list)
    for line in subprocess.run([program, *args], stdout=subprocess.PIPE, check=True).stdout.decode().splitlines():
        words = line.split()
        out[words[0]].append(words[1:])
    return out


class StatesAgainstText(unittest.TestCase):
    program = ""

    @staticmethod
    def by_tid(dump, value):
        sums = collections.Counter()
        for words in dump["thread"]:
            sums[int(words[0])] += sum(int(w.split("=")[1]) for w in words[1:] if w.split("=")[0] in value)
        return +sums

    def check(self, truth, dump):
        self.assertEqual(int(dump["events"][0][0]), truth.events)
        ran = collections.Counter()
        for tid, ns in dump["ran"]:
            ran[int(tid)] += int(ns)
        self.assertEqual(+ran, +truth.ran, "running time per thread")
        self.assertEqual(self.by_tid(dump, ("usermode", "syscall", "interrupted")), +truth.ran,
                         "states in which a thread runs")
        self.assertEqual(self.by_tid(dump, ("interrupted",)), +truth.interrupted, "interrupted")
        self.assertEqual({int(c): int(ns) for c, ns in dump["busy"]}, dict(truth.busy), "busy time per CPU")
        for kind in ("ready", "blocked"):
            theirs = {tid: ns for tid, ns in truth.waiting[kind].items() if tid and ns}
            self.assertEqual(dict(self.by_tid(dump, (kind,))), theirs, kind)
        wakes = sorted((int(w[2]), int(w[3]), int(w[4])) for w in dump["latency"] if w[0] == "sched")
        self.assertEqual(wakes, sorted(truth.wakes), "wake to run")
        # A CPU is busy in these states, less the interrupts that came while it idled.
        for words in dump["cpu"]:
            totals = {k: int(v) for k, v in (w.split("=") for w in words[1:])}
            working = totals["usermode"] + totals["syscall"]
            self.assertLessEqual(working, truth.busy[int(words[0])])
            self.assertEqual(sum(totals.values()), int(dump["span"][0][1]) - int(dump["span"][0][0]))
        self.check_calls(truth, dump)
        self.check_bytes(truth, dump)
        self.check_lines(truth, dump)

    def check_calls(self, truth, dump):
        calls = [w for w in dump["latency"] if w[0] == "syscall"]
        ours = collections.Counter(w[1] for w in calls)
        known = {name: n for name, n in truth.calls.items() if name != "unknown"}
        self.assertEqual({name: n for name, n in ours.items() if name in known}, known, "system calls by name")
        self.assertEqual(sum(ours.values()), sum(truth.calls.values()), "system calls")
        self.assertEqual(sorted((int(w[2]), int(w[3]), int(w[4]), int(w[5])) for w in calls), sorted(truth.call_list),
                         "each call's thread, begin, end, result")
        locks = [(int(w[1].split(":")[-1], 0), *map(int, w[2:6])) for w in dump["latency"] if w[0] == "lock"]
        self.assertEqual(sorted(locks), sorted(truth.lock_list), "waits for locks")
        futexes = [(int(w[0].split(":")[-1], 0), int(w[1]), int(w[2]), w[4], int(w[3]), int(w[5]), int(w[6]))
                   for w in dump["futex"]]
        self.assertEqual(sorted(futexes), sorted(truth.futex_list), "waits and wakes of futexes")
        begins = [int(w[3]) for w in calls]
        self.assertEqual(begins, sorted(begins))

    def check_bytes(self, truth, dump):
        disk = collections.Counter()
        for kind, *_, value in dump["counter"]:  # names may have blanks
            disk[kind] += int(value)
        self.assertEqual((disk["read"], disk["write"]), (truth.disk["read"], truth.disk["write"]), "disk bytes")
        handlers = collections.Counter(w[0] for w in dump["latency"])
        self.assertEqual(handlers["softirq"], sum(n for v, n in truth.softirqs.items() if v != "irq"),
                         "softirq handlers")
        self.assertEqual(handlers["irq"], truth.softirqs["irq"], "irq handlers")

    def check_lines(self, truth, dump):
        for what in ("irq-line", "vector"):
            ours = collections.defaultdict(list)
            for number, begin, end, value, cpu, *_ in dump[what]:
                self.assertEqual(value, "active")
                ours[what, int(number)].append((int(begin), int(end), int(cpu)))
            theirs = {key: latest(handled) for key, handled in truth.handled.items() if key[0] == what}
            self.assertEqual({key: handled for key, handled in ours.items() if key[1] < FIRST_WITHOUT_NUMBER}, theirs,
                             "over all CPUs")

    def test_recorded_traces(self):
        for trace in TRACES:
            path = os.path.join(DATA, "traces", trace)
            with self.subTest(trace=trace):
                self.check(Truth(path), dumped(self.program, path))

    def test_lost_events(self):
        """Lost events on a CPU: meanwhile it has no known thread, and threads keep a state only if other CPUs are seen
        to run them."""
        path = os.path.join(DATA, "traces", "lost-events", "solo", "kernel")
        holes, dump = Holes(path), dumped(self.program, path, "intervals")
        self.assertEqual(sum(int(w[3]) for w in dump["loss"]), holes.count)
        self.assertGreater(holes.count, 0)
        occupied = collections.defaultdict(list)
        for cpu, begin, end, _, thread in dump["occupant"]:
            if thread != "-1":
                occupied[int(cpu)].append((int(begin), int(end), thread))
        end_of_trace = int(dump["span"][0][1])
        checked = 0
        for cpu, windows in holes.by_cpu.items():
            for h0, h1 in windows:
                if h1 > end_of_trace or h1 - h0 < 2:
                    continue
                for begin, end, thread in occupied[cpu]:
                    self.assertFalse(begin < h1 and end > h0, f"CPU {cpu} is said to be thread {thread}'s at {h0}")
                for thread, begin, end, value, _ in dump["state"]:
                    if value in ("unknown", "none") or not (int(begin) < h1 and int(end) > h0):
                        continue
                    checked += 1
                    # Part of the state within the hole: must lie where another CPU runs the thread.
                    elsewhere = [(b, e) for c, list_ in occupied.items() if c != cpu for b, e,
                                 t in list_ if t == thread]
                    lo, hi = max(int(begin), h0), min(int(end), h1)
                    self.assertTrue(any(b <= lo and e >= hi for b, e in elsewhere),
                                    f"thread {thread} is said to be {value} at {lo}, where events are missing")
        self.assertGreater(checked, 0)


if __name__ == "__main__":
    run(lambda: need("babeltrace2", *(os.path.join(DATA, "traces", t) for t in TRACES)))
    StatesAgainstText.program = os.path.abspath(sys.argv.pop(1))
    unittest.main()
