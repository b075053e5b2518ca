#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Recordings of trace-cmd: what weft reads of them, compared with the text of `trace-cmd report`, and with what was
written by the format's man pages."""
import json
import lzma
import os
import re
import shutil
import subprocess
import unittest

import tracedat
from weft_e2e import DATA, Case, main, need, scratch, weft

STATES = {"R": (0, 256), "I": (128,), "S": (1,), "D": (2,), "Z": (32,), "X": (16,), "T": (4,), "t": (8,), "P": (64,)}
# What the report shows of an event, and the fields that it is made of. Left out: what libtraceevent computes (names of
# softirqs and functions).
TEXTS = {
    "sched_switch": r"(?P<prev_comm>.*):(?P<prev_pid>\d+) \[(?P<prev_prio>\d+)\] (?P<prev_state>\S+) ==> "
                    r"(?P<next_comm>.*):(?P<next_pid>\d+) \[(?P<next_prio>\d+)\]",
    "sched_waking": r"comm=(?P<comm>.*) pid=(?P<pid>\d+) prio=(?P<prio>\d+) target_cpu=(?P<target_cpu>\d+)",
    "sched_wakeup": r"(?P<comm>.*):(?P<pid>\d+) \[(?P<prio>\d+)\] CPU:(?P<target_cpu>\d+)",
    "sched_wakeup_new": r"(?P<comm>.*):(?P<pid>\d+) \[(?P<prio>\d+)\] CPU:(?P<target_cpu>\d+)",
    "sched_migrate_task": r"comm=(?P<comm>.*) pid=(?P<pid>\d+) prio=(?P<prio>\d+) orig_cpu=(?P<orig_cpu>\d+) "
                          r"dest_cpu=(?P<dest_cpu>\d+)",
    "sched_process_exec": r"filename=(?P<filename>.*) pid=(?P<pid>\d+) old_pid=(?P<old_pid>\d+)",
    "sched_process_exit": r"comm=(?P<comm>.*) pid=(?P<pid>\d+) prio=(?P<prio>\d+) group_dead=(?P<group_dead>\w+)",
    "sched_process_fork": r"comm=(?P<parent_comm>.*) pid=(?P<parent_pid>\d+) child_comm=(?P<child_comm>.*) "
                          r"child_pid=(?P<child_pid>\d+)",
    "irq_handler_entry": r"irq=(?P<irq>\d+) name=(?P<name>.*)",
    "irq_handler_exit": r"irq=(?P<irq>\d+) ret=(?P<ret>\w+)",
    "softirq_entry": r"vec=(?P<vec>\d+) \[action=\w+\]",
    "softirq_exit": r"vec=(?P<vec>\d+) \[action=\w+\]",
    "hrtimer_expire_entry": r"hrtimer=(?P<hrtimer>0x\w+) now=(?P<now>\d+) function=\S+",
    "hrtimer_expire_exit": r"hrtimer=(?P<hrtimer>0x\w+)",
    "net_dev_queue": r"dev=(?P<name>\S+) skbaddr=(?P<skbaddr>0x\w+) len=(?P<len>\d+) net_cookie=(?P<net_cookie>\d+)",
    "netif_receive_skb": r"dev=(?P<name>\S+) skbaddr=(?P<skbaddr>0x\w+) len=(?P<len>\d+) "
                         r"net_cookie=(?P<net_cookie>\d+)",
    "block_rq_issue": r"(?P<dev>\d+,\d+) (?P<rwbs>\w+) (?P<bytes>\d+) \((?P<cmd>.*)\) (?P<sector>\d+) \+ "
                      r"(?P<nr_sector>\d+) \S+ \[(?P<comm>.*)\]",
    "block_rq_complete": r"(?P<dev>\d+,\d+) (?P<rwbs>\w+) \((?P<cmd>.*)\) (?P<sector>\d+) \+ (?P<nr_sector>\d+) \S+ "
                         r"\[(?P<error>-?\d+)\]",
}
LINE = re.compile(r" *(.+)-(\d+) +\[(\d+)\] (\S+) +(\d+)\.(\d{9}): (\w+): +(.*)")


def shown(name, value):
    """A value of weft's as the report shows it."""
    if name == "dev":
        return f"{value >> 20},{value & 0xfffff}"
    if name in ("hrtimer", "skbaddr"):
        return hex(value)
    if name == "group_dead":
        return "true" if value else "false"
    if name == "ret":
        return "handled" if value == 1 else "unhandled"
    return str(value)


class Recorded(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = scratch()

    def recording(self, scenario, name):
        """The path of a recording, unpacked."""
        path = os.path.join(DATA, "traces", scenario, name)
        if not os.path.exists(path):
            packed, path = path + ".zst", os.path.join(self.place, name)
            need("zstd", packed)
            subprocess.run(["zstd", "-dqf", packed, "-o", path], check=True)
        return path


class Report(Recorded):
    """Event by event."""

    def bundled(self, name):
        """The path of a file beside the tests: 11 pages of scenario tracedat, without names of functions."""
        path = os.path.join(self.place, name)
        with lzma.open(os.path.join(os.path.dirname(__file__), "recorded", name + ".xz")) as f, open(path, "wb") as out:
            out.write(f.read())
        return path

    def compare(self, line, event):
        _, pid, cpu, flags, seconds, ns, name, text = line
        context = event["context"]
        self.assertEqual((event["ts"], event["cpu"], event["name"], context["common_pid"]),
                         (int(seconds) * 10 ** 9 + int(ns), int(cpu), name, int(pid)), line)
        count = context["common_preempt_count"]
        self.assertEqual(flags[3], f"{count & 15:x}" if count & 15 else ".", line)
        values = re.fullmatch(TEXTS[name], text)
        self.assertTrue(values, line)
        for field, value in values.groupdict().items():
            if field == "prev_state":
                self.assertIn(event["fields"][field], STATES[value], line)
            elif field.endswith("_cpu"):
                self.assertEqual(event["fields"][field], int(value), line)
            else:
                self.assertEqual(shown(field, event["fields"][field]), value, line)

    def test_events(self):
        self.compare_all(self.recording("tracedat", "v7.dat"), self.recording("tracedat", "report.txt"))

    def test_events_bundled(self):
        self.compare_all(self.bundled("tracedat.dat"), self.bundled("tracedat.txt"))

    def test_directory(self):
        """A directory with a recording: the error names the file to give."""
        where = scratch()
        shutil.copy(self.bundled("tracedat.dat"), os.path.join(where, "some.dat"))
        run = weft("info", where)
        self.assertEqual(run.code, 1, run)
        self.assertIn(f"give the file {where}/some.dat", run.message)

    def compare_all(self, path, report):
        """Equal times lie in any order."""
        with open(report, encoding="utf-8") as f:
            lines = [LINE.fullmatch(line.rstrip("\n")).groups() for line in f if not line.startswith("cpus=")]
        events = [json.loads(line) for line in self.ok("events", "--format", "json", path).text.splitlines()]
        self.assertEqual(len(events), len(lines))
        events.sort(key=lambda event: (event["ts"], event["cpu"]))
        lines.sort(key=lambda line: (int(line[4]), int(line[5]), int(line[2])))
        for line, event in zip(lines, events):
            self.compare(line, event)

    def test_forms(self):
        """Of one recording: version 7 compressed by zstd and zlib, version 6 without compression."""
        expected = self.ok("events", self.recording("tracedat", "v7.dat")).out
        for scenario, name in (("tracedat-v7-zlib", "v7z.dat"), ("tracedat-v6", "v6.dat")):
            with self.subTest(name):
                self.assertEqual(self.ok("events", self.recording(scenario, name)).out, expected)


class Analyses(Recorded):
    """The same seconds as LTTng recorded them. The recorders read the clock each for itself, so times differ by up to
    some ms on the emulated CPU. Without addresses of packets, waits for the network are blocked; what a thread waits
    for since before the recording is known where it began earlier."""
    BEGIN, END = 65_300_000_000, 69_300_000_000  # both recorded all of it; CLOCK_MONOTONIC
    WAITS = ("blocked", "timer", "network", "block-device", "other")

    def both(self):
        """(path, offset of its clock) of both recordings."""
        packed = os.path.join(DATA, "traces", "tracedat", "traces.tar.zst")
        need("zstd", packed)
        place = scratch()
        subprocess.run(["tar", "-C", place, "--zstd", "-xf", packed], check=True)
        lttng = os.path.join(place, "solo", "ctf-1.8")
        return ((self.recording("tracedat", "v7.dat"), 0), (lttng, self.json("info", lttng)[0]["clock"]["offset_ns"]))

    def test_threads_and_paths(self):
        threads, paths, store = [], [], ["--store", scratch()]
        for path, offset in self.both():
            window = ["--begin", str(self.BEGIN + offset), "--end", str(self.END + offset), *store]
            threads.append({t["tid"]: t for t in self.json("threads", path, *window)})
            paths.append(self.json("critpath", path, "--thread", "metronome", *window))
        ours, lttngs = threads
        self.assertLessEqual(set(lttngs), set(ours))
        for tid, theirs in lttngs.items():
            mine = ours[tid]
            self.assertEqual(mine["comm"], theirs["comm"])
            for state in ("running", "preempted"):
                self.assertLess(abs(mine[state] - theirs[state]), 10e6, (mine, theirs))
            if mine["begin"] > self.BEGIN:
                self.assertLess(abs(sum(mine[k] - theirs[k] for k in self.WAITS)), 15e6, (mine, theirs))
        states = [[s["state"] for s in path["segments"]] for path in paths]
        self.assertEqual(*states)
        for one, other in zip(*(path["totals"] for path in paths)):
            self.assertEqual(one["state"], other["state"])
            self.assertLess(abs(one["duration"] - other["duration"]), 4e6)

    def test_info(self):
        """What such a recording cannot tell is said."""
        self.assertIn("packets have no addresses", self.ok("info", self.recording("tracedat", "v7.dat")).text)


class Written(Case):
    """Files made by the man pages."""

    def file(self, data):
        path = os.path.join(scratch(), "trace.dat")
        with open(path, "wb") as f:
            f.write(data)
        return path

    def events(self, data, code=0):
        run = weft("events", "--format", "json", self.file(data))
        self.assertEqual(run.code, code, run)
        return [json.loads(line) for line in run.out.decode().splitlines()]

    def worlds(self, cpus, **more):
        """The same recording in all forms and byte orders. cpus: makes the pages."""
        for order in "<>":
            made = tracedat.Made(order)
            buffers = {name: pages(made) for name, pages in more.items()}
            yield "6" + order, made.version6(cpus(made), [tracedat.UNAME], buffers)
            for compression in ("none", "zlib"):
                yield (f"7{order} {compression}",
                       made.version7(cpus(made), [tracedat.UNAME], buffers, compression=compression))

    def test_fields(self):
        """Texts, lists and arrays of any place; both byte orders."""
        def pages(made):
            return [[made.full_page(
                1000, made.data(5, made.record(tracedat.EXEC, b"/bin/x", 7, 8, pid=7, flags=1, preempt=2)),
                made.data(6, made.record(tracedat.SYS_ENTER, 257, [1, 2, 3, 4, 5, 1 << 63])),
                made.data(7, made.record(tracedat.CPUS_ALLOWED, [3, 1 << 40], 0xfff0, [1, 2, 3, 4, 5, 255])),
                made.data(8, made.record(tracedat.PRINT, 0xffff, b"words\n")),
                made.data(9, made.record(tracedat.SWITCH, b"a" * 16, 1, 120, -1, b"b", 2, -100)))]]

        for name, data in self.worlds(pages):
            with self.subTest(name):
                events = self.events(data)
                self.assertEqual([(e["ts"], e["name"], e["host"], e["cpu"]) for e in events],
                                 [(1005, "sched_process_exec", "solo", 0), (1011, "sys_enter", "solo", 0),
                                  (1018, "cpus_allowed", "solo", 0), (1026, "print", "solo", 0),
                                  (1035, "sched_switch", "solo", 0)])
                self.assertEqual(events[0]["context"], {"common_flags": 1, "common_preempt_count": 2, "common_pid": 7})
                self.assertEqual(events[0]["fields"], {"filename": "/bin/x", "pid": 7, "old_pid": 8})
                self.assertEqual(events[1]["fields"], {"id": 257, "args": [1, 2, 3, 4, 5, 1 << 63]})
                self.assertEqual(events[2]["fields"], {"_mask_length": 2, "mask": [3, 1 << 40], "where": 0xfff0,
                                                       "mac": [1, 2, 3, 4, 5, 255]})
                self.assertEqual(events[3]["fields"], {"ip": 0xffff, "buf": "words\n"})
                self.assertEqual(events[4]["fields"]["prev_comm"], "a" * 16)
                self.assertEqual(events[4]["fields"]["prev_state"], -1)
                self.assertEqual(events[4]["fields"]["next_prio"], -100)

    def test_times(self):
        """Long steps, absolute times whose upper bits the page has, discarded events, long records."""
        base = 0xf8 << 56 | 5 << 40

        def pages(made):
            wake = made.record(tracedat.WAKING, b"w", 9, 1, 0)
            long = made.record(tracedat.PRINT, 1, b"x" * 300)
            return [[made.full_page(3 << 40, made.data(1, wake), made.extend(1 << 30 | 77), made.data(2, wake),
                                    made.padding(12, 3), made.data(4, long), made.stamp(4 << 40), made.data(5, wake),
                                    made.word(29, 0), b"\xff" * 40)], [],
                    [made.full_page(base - (200 << 56), made.stamp(6 << 40), made.data(1, wake))]]

        for name, data in self.worlds(pages):
            with self.subTest(name):
                first, second = 3 << 40, (base - (200 << 56)) & 0xf8 << 56 | 6 << 40
                self.assertEqual([e["ts"] for e in self.events(data)],
                                 [first + 1, first + (1 << 30 | 77) + 3, first + (1 << 30 | 77) + 10, (4 << 40) + 5,
                                  second + 1])

    def test_buffers(self):
        """Named buffers beside the top one."""
        def pages(event):
            return lambda made: [[made.full_page(100 * k, made.data(cpu, made.record(event, b"w", 9, 1, cpu)))
                                  for k in range(1, 40)] for cpu in range(2)]

        for name, data in self.worlds(pages(tracedat.WAKING), foo=pages(tracedat.WAKING)):
            with self.subTest(name):
                events = self.events(data)
                self.assertEqual(len(events), 2 * 2 * 39)
                self.assertEqual([e["ts"] for e in events], sorted(100 * k + cpu for k in range(1, 40)
                                                                   for cpu in (0, 0, 1, 1)))

    def test_guest(self):
        """A guest's times are the host's by the relation that trace-cmd recorded; both have one clock then."""
        made, host_id = tracedat.Made(), 0x1234567890abcdef
        samples = [[1000, 5000, 9000], [100, 300, 100], [3, 3, 3], [1, 1, 1]]  # times, offsets, scaling, fractions
        shift = made.pack("QIII", host_id, 1, 1, 3) + b"".join(made.pack("3Q", *column) for column in samples)
        times = [500, 1000, 3000, 5000, 8001, 20000]

        def to_host(time):
            i = max(k for k in (0, 1) if k == 0 or samples[0][k] <= time)
            by = (time - samples[0][i]) * (samples[1][i + 1] - samples[1][i]) + (samples[0][i + 1] - samples[0][i]) // 2
            by = abs(by) // (samples[0][i + 1] - samples[0][i]) * (1 if by > 0 else -1)
            return (time * 3 >> 1) + samples[1][i] + by

        wake = made.record(tracedat.WAKING, b"w", 9, 1, 0)
        switch = made.record(tracedat.SWITCH, b"a", 1, 120, 1, b"b", 2, 120)
        place = scratch()
        for name, pages, options in (
                ("host", [made.full_page(100, made.data(0, switch), made.data(40000, switch))],
                 [tracedat.UNAME, (11, made.pack("Q", host_id)), (13, b"guest\0" + made.pack("QIII", 77, 1, 0, 9))]),
                ("guest", [made.full_page(time, made.data(0, switch if time == 500 else wake)) for time in times],
                 [(5, b"Linux guest 6.1.0 x86_64\0"), (11, made.pack("Q", 77)), (12, shift)])):
            with open(os.path.join(place, name), "wb") as f:
                f.write(made.version6([pages], options))
        paths = [os.path.join(place, name) for name in ("host", "guest")]
        events = [json.loads(line) for line in self.ok("events", "--format", "json", paths[1]).text.splitlines()]
        self.assertEqual([e["ts"] for e in events], [to_host(time) for time in times])
        hosts = {host["host"]: host for host in self.json("sync", *paths, "--reference", "solo")["hosts"]}
        self.assertEqual(sorted(hosts), ["guest", "solo"])
        for piece in hosts["guest"]["pieces"]:
            self.assertEqual((float(piece["drift"]), float(piece["offset_ns"])), (1, 0))
            self.assertLessEqual(max(piece["error_ns_begin"], piece["error_ns_end"]), 1)
        self.assertTrue(hosts["guest"]["pieces"])

    def test_damaged(self):
        """What is not damaged is read, and the exit status is 3."""
        made = tracedat.Made()
        pages = [[made.full_page(1000 * k, made.data(cpu, made.record(tracedat.WAKING, b"w", 9, 1, cpu)))
                  for k in range(1, 30)] for cpu in range(2)]
        whole = made.version6(pages)
        self.assertEqual(len(self.events(whole[:-7 * made.page - 5], code=3)), 2 * 29 - 8)
        packed = bytearray(made.version7(pages, compression="zlib"))
        at = packed.index(made.pack("I", 3), made.page)  # three blocks
        packed[at + 40] ^= 0x55
        events = self.events(bytes(packed), code=3)
        self.assertEqual(len([e for e in events if "lost_events" not in e]), 2 * 29 - 10)
        self.assertEqual([e["lost_events"] for e in events if "lost_events" in e], [1])
        at = whole.index(b"flyrecord\0") + 10  # both CPUs get the data of both
        twice = whole[:at] + made.pack("QQ", len(whole) - 58 * made.page, 58 * made.page) * 2 + whole[at + 32:]
        self.assertEqual(len(self.events(twice, code=3)), 58)
        run = weft("events", self.file(packed[:made.page * 2]))
        self.assertEqual(run.code, 1)
        self.assertIn("cut off", run.message)

    def test_lost(self):
        """Losses lie before their page, counted or not; pages without events pass them on."""
        def pages(made):
            wake = made.data(1, made.record(tracedat.WAKING, b"w", 9, 1, 0))
            return [[made.full_page(1000, wake), made.full_page(2000, wake, lost=5), made.full_page(3000, wake),
                     made.full_page(4000, lost=7), made.full_page(5000, wake, lost=-1)]]

        for name, data in self.worlds(pages):
            with self.subTest(name):
                path = self.file(data)
                events = [json.loads(line) for line in self.ok("events", "--format", "json", path).text.splitlines()]
                self.assertEqual([(e["ts"], e.get("lost_events"), e.get("end")) for e in events],
                                 [(1001, None, None), (1001, 5, 2001), (2001, None, None), (3001, None, None),
                                  (3001, 8, 5001), (5001, None, None)])
                self.assertEqual(self.json("info", path)[0]["lost_events"], 13)
                self.assertIn("did not count", self.ok("info", path).text)


if __name__ == "__main__":
    main()
