#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A thread has the name that it had then: in paths, tooltips and expressions, against what babeltrace2 prints (names in
sched_switch, sched_process_fork and _exec, and the state dump), of recorded traces and of one made for it."""
import bisect
import collections
import json
import os
import re
import struct
import subprocess

import small_trace
from tsp_server import THREAD_STATUS, ServerCase, Server
from weft_e2e import main, need, new_dice, scenario, scratch, seed, weft

RESOURCES = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ResourcesStatusDataProvider"
PATH = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"
RECORDED = ["three-tier/client", "vm/vmhost"]
LINE = re.compile(r"^\[(\d+)\.(\d{9})\] (?:\S+ )?(\w+): \{ cpu_id = (\d+) \}, (.*)$")
NUMBER, TEXT = re.compile(r"\b(\w+) = (-?\d+)\b"), re.compile(r'\b(\w+) = "([^"]*)"')
dice = new_dice(seed(9))


def cut(name):
    """Returns the name as the kernel stores it."""
    return name.encode()[:15].decode("utf-8", "ignore")


class Truth:
    """names[tid]: [(time, name)], a name from when the text first shows it; runs: (cpu, begin, end, tid);
    events: (time, cpu, name, the thread's name then), where a switch told who runs."""

    def __init__(self, path):
        need("babeltrace2")
        text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout.decode("utf-8", "replace")
        self.names, self.runs, self.events = collections.defaultdict(list), [], []
        running = {}
        for line in text.splitlines():
            m = LINE.match(line)
            ts, event, cpu = int(m[1]) * 10**9 + int(m[2]), m[3], int(m[4])
            n, s = dict(NUMBER.findall(m[5])), dict(TEXT.findall(m[5]))
            if event == "sched_switch":
                self.seen(int(n["prev_tid"]), ts, s["prev_comm"])
                self.seen(int(n["next_tid"]), ts, s["next_comm"])
                if cpu in running:
                    self.runs.append((cpu, running[cpu][1], ts, running[cpu][0]))
                running[cpu] = int(n["next_tid"]), ts
            elif event == "sched_process_fork":
                self.seen(int(n["child_tid"]), ts, s["child_comm"])
            elif event == "sched_process_exec":
                self.seen(int(n["tid"]), ts, cut(s["filename"].rsplit("/", 1)[-1]))
            elif event == "lttng_statedump_process_state":
                self.seen(int(n["tid"]), ts, s["name"])
            if event == "sched_switch":
                self.events.append((ts, cpu, event, s["prev_comm"]))
            elif cpu in running:
                tid = running[cpu][0]
                self.events.append((ts, cpu, event, self.at(tid, ts) if tid else f"swapper/{cpu}"))

    def seen(self, tid, ts, name):
        if tid and (not self.names[tid] or self.names[tid][-1][1] != name):
            self.names[tid].append((ts, name))

    def at(self, tid, t):
        known = self.names[tid]
        return known[max(0, bisect.bisect_right(known, (t, "\U0010ffff")) - 1)][1] if known else None

    def longest(self, tid, begin, end):
        changes = [begin] + [ts for ts, _ in self.names[tid] if begin < ts < end] + [end]
        held = [(b - a, -a) for a, b in zip(changes, changes[1:])]
        return self.at(tid, -max(held)[1])

    def renamed(self):
        return [tid for tid, known in self.names.items() if len(known) > 1]


def write_events(path, events):
    small_trace.write(path, stream=small_trace.packet(0, events))
    return path


def made(path):
    """Forked, execs twice, is renamed by prctl and dies; its tid is used again 20 µs later; then one that was renamed
    while it ran dies while runnable."""
    shell, child = ("shell", 10), lambda name: (name, 11)
    idle, switch, exec_, fork, waking = (small_trace.IDLE, small_trace.switch, small_trace.exec_, small_trace.fork,
                                         small_trace.waking)
    last, dead = ("last", 12), 16
    events = [(1000, switch(idle, 0, shell)), (2000, fork(shell, child("shell"))), (3000, waking(child("shell"))),
              (10000, switch(shell, 1, child("shell"))), (20000, exec_("/bin/env", 11)), (21000, waking(shell)),
              (60000, exec_("/usr/bin/a-program-with-a-long-name", 11)), (100000, switch(child("main"), 1, shell)),
              (110000, waking(child("main"))), (120000, switch(shell, 1, child("main"))), (130000, waking(shell)),
              (140000, switch(child("main"), dead, shell)), (160000, fork(shell, child("shell"))),
              (165000, fork(shell, last)), (166000, waking(last)), (167000, waking(child("shell"))),
              (170000, switch(shell, 1, child("shell"))), (180000, exec_("/bin/second", 11)),
              (200000, switch(child("second"), 0, last)), (210000, waking(shell)),
              (220000, switch(("worker", 12), dead, child("second"))), (230000, switch(child("second"), 1, shell)),
              (240000, switch(shell, 1, idle))]
    return write_events(path, events)


class Names(ServerCase):
    def traces(self):
        yield made(os.path.join(scratch(), "made"))
        for name in RECORDED:
            yield os.path.join(scenario(name.split("/")[0]), name.split("/")[1], "kernel")

    def test_life_by_id(self):
        """Life of a reused tid: the id of its entry selects the life of a path."""
        server = Server(made(os.path.join(scratch(), "made")))
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0, server.errors()))
        outputs = f"/experiments/{server.first()['UUID']}/outputs"
        lives = [e for e in server.model(f"{outputs}/timeGraph/{THREAD_STATUS}/tree")["entries"]
                 if e.get("metadata", {}).get("TID") == [11] or e["labels"][1:2] == ["11"]]
        self.assertEqual(len({e["id"] for e in lives}), 2, lives)

        def ask(parameters):
            return server.ask("POST", f"{outputs}/{PATH}", {
                "name": "mine", "sourceTypeId": "weft.critical-path", "parameters": {"thread": 11, **parameters}})
        self.assertEqual(ask({}).status, 400)
        self.assertEqual(ask({"id": 1}).status, 400)
        self.assertEqual(ask({"id": "x"}).status, 400)
        spans = []
        for life in lives:
            answer = ask({"id": life["id"]})
            self.assertEqual(answer.status, 200, answer)
            path, x = f"{outputs}/timeGraph/{answer.json['id']}", server.first()
            rows = server.model(f"{path}/states", {
                "requested_timerange": {"start": x["start"], "end": x["end"], "nbTimes": 2000},
                "requested_items": [e["id"] for e in server.model(f"{path}/tree")["entries"]]})["rows"]
            states = [s for row in rows for s in row["states"] if s.get("style")]
            spans.append((min(s["start"] for s in states), max(s["end"] for s in states)))
            self.assertEqual(spans[-1], (life["start"], life["end"]))
        self.assertNotEqual(*spans)

    def test_paths(self):
        for path in self.traces():
            truth, store, shown = Truth(path), scratch(), 0
            renamed = truth.renamed()
            self.assertTrue(renamed, path)
            for tid in dice.sample(renamed, min(len(renamed), 12)):
                threads = self.json("threads", "--thread", tid, "--store", store, path)
                for life in threads:
                    self.assertEqual(life["comm"], truth.at(tid, life["begin"] + life["life"]), (path, tid))
                    # Names of a thread all find it.
                    for ts, name in truth.names[tid]:
                        if life["begin"] <= ts < life["begin"] + life["life"]:
                            found = self.json("threads", "--thread", name, "--store", store, path)
                            self.assertIn((tid, life["begin"]), [(f["tid"], f["begin"]) for f in found], name)
                    if life["life"]:
                        shown += self.path_of(path, store, truth, tid, life)
            self.assertGreater(shown, 0, path)

    def path_of(self, path, store, truth, tid, life):
        begin, end = life["begin"], life["begin"] + life["life"]
        answer = self.json("critpath", "--thread", tid, "--begin", begin, "--end", end, "--store", store, path)
        for s in answer["segments"]:
            if s["tid"] > 0:
                self.assertEqual(s["comm"], truth.longest(s["tid"], s["begin"], s["end"]), s)
        for s in answer["totals"]:
            if s["tid"] > 0:
                self.assertEqual(s["comm"], truth.at(s["tid"], end), s)
        return len(answer["segments"])

    def test_thread_that_takes_over_its_process(self):
        """A thread other than its process' first calls exec: it has the first one's number from then on."""
        path, leader, worker, after = os.path.join(scratch(), "made"), ("leader", 20), ("worker", 21), ("next", 20)
        idle, switch, waking, fork = small_trace.IDLE, small_trace.switch, small_trace.waking, small_trace.fork
        exec_ = 2, b"/bin/next\0" + struct.pack("<ii", 20, 21)
        write_events(path, [(1000, switch(idle, 0, leader)), (2000, fork(leader, ("leader", 21))),
                            (3000, waking(("leader", 21))), (9000, switch(leader, 1, ("leader", 21))),
                            (20000, switch(worker, 1, idle)), (22000, waking(worker)), (25000, switch(idle, 0, worker)),
                            (40000, exec_), (50000, switch(after, 1, idle)), (55000, waking(after)),
                            (60000, switch(idle, 0, after)), (70000, switch(after, 16, idle))])
        start, store = small_trace.OFFSET_NS, scratch()

        def asked(thread, begin, end):
            segments = self.json("critpath", "--thread", thread, "--begin", start + begin, "--end", start + end,
                                 "--store", store, path)["segments"]
            return [(s["tid"], s["comm"], s["begin"] - start, s["end"] - start) for s in segments]

        self.assertEqual(asked(21, 9000, 70000),
                         [(21, "leader", 9000, 20000), (21, "worker", 20000, 22000), (21, "worker", 22000, 25000),
                          (21, "worker", 25000, 50000), (20, "next", 50000, 55000), (20, "next", 55000, 60000),
                          (20, "next", 60000, 70000)])
        # Numbers mean the thread that had them then.
        self.assertEqual({(tid, name) for tid, name, _, _ in asked(20, 1000, 8000)}, {(20, "leader")})
        self.assertEqual(asked(20, 41000, 50000), [(20, "next", 41000, 50000)])
        self.assertEqual(weft("critpath", "--thread", 21, "--begin", start + 41000, "--store", store, path).code, 1)
        self.assertEqual(weft("critpath", "--thread", 20, "--store", store, path).code, 2)
        for tid, times in ((20, [2000, 3000, 9000, 40000, 50000, 70000]), (21, [20000])):
            lines = self.ok("events", "--format", "json", "--tid", tid, path).text.splitlines()
            self.assertEqual([json.loads(line)["ts"] - start for line in lines], times)

    def test_views(self):
        for path in self.traces():
            truth = Truth(path)
            with Server(path) as server:
                uuid = server.get("/experiments").json[0]["UUID"]
                while server.get(f"/experiments/{uuid}").json["indexingStatus"] == "RUNNING":
                    pass
                base = f"/experiments/{uuid}/outputs/timeGraph"

                def ask(output, what, **parameters):
                    return server.model(f"{base}/{output}/{what}", parameters)

                entries = ask(THREAD_STATUS, "tree")["entries"]
                lives = [e for e in entries if e["labels"][1] and int(e["labels"][1]) in truth.renamed()]
                self.assertTrue(lives)
                for e in lives:
                    tid = int(e["labels"][1])
                    self.assertEqual(e["labels"][0], truth.at(tid, e["end"]), e)
                    for _ in range(10):
                        t = dice.choice([dice.randint(e["start"], e["end"]),
                                         dice.choice(truth.names[tid])[0] + dice.choice((-1, 0, 1))])
                        first = max([ts for ts, _ in truth.names[tid] if ts <= e["start"]] or [0])
                        if first <= t <= e["end"] and e["start"] <= t:
                            tip = ask(THREAD_STATUS, "tooltip", requested_times=[t], requested_items=[e["id"]],
                                      requested_element={"elementType": "state", "time": t, "duration": 0})
                            self.assertEqual(tip["Process"], truth.at(tid, t), (e, t))
                self.on_cpus(truth, ask)

    def on_cpus(self, truth, ask):
        """The thread on a CPU, as Resources Status labels it."""
        rows = {e["labels"][0]: e["id"] for e in ask(RESOURCES, "tree")["entries"]}
        rows = {int(m[1]): i for label, i in rows.items() if (m := re.match(r"CPU (\d+) Threads?$", label))}
        self.assertTrue(rows)
        runs = [r for r in truth.runs if r[3] in truth.renamed() and r[0] in rows and r[2] > r[1]]
        for cpu, begin, end, tid in dice.sample(runs, min(len(runs), 50)):
            states = ask(RESOURCES, "states", requested_items=[rows[cpu]],
                         requested_timerange={"start": begin, "end": end - 1, "nbTimes": 2})["rows"][0]["states"]
            at = [s for s in states if s["start"] <= begin < s["end"]]
            self.assertEqual([s["label"] for s in at], [truth.longest(tid, begin, end)], (cpu, begin, end, tid))

    def test_expressions(self):
        """`comm` of events is the thread's name then."""
        for path in self.traces():
            truth, checked = Truth(path), 0
            ours = collections.defaultdict(set)
            names = {name for tid in truth.renamed() for _, name in truth.names[tid]}
            for name in dice.sample(sorted(names), min(len(names), 6)):
                run = self.ok("events", "--format", "json", "--where", f'comm == "{name}"', path)
                for e in map(json.loads, run.text.splitlines()):
                    ours[name].add((e["ts"], e["cpu"], e["name"]))
                theirs = {e[:3] for e in truth.events if e[3] == name}
                known = {e[:3] for e in truth.events}
                self.assertEqual(ours[name] & known, theirs, name)
                checked += len(theirs)
                self.from_within(path, name, truth.events)
            self.assertGreater(checked, 0)

    def from_within(self, path, name, events):
        """A page that begins anywhere knows who runs, also when an exec comes before the first switch."""
        first = dice.randrange(len(events))
        begin, end = events[first][0] + 1, events[min(first + 1000, len(events) - 1)][0] + 1
        theirs = {e[:3] for e in events if e[3] == name and begin <= e[0] <= end}
        run = self.ok("events", "--format", "json", "--begin", begin, "--end", end, "--where", f'comm == "{name}"',
                      path)
        ours = {(e["ts"], e["cpu"], e["name"]) for e in map(json.loads, run.text.splitlines())}
        self.assertEqual(ours & {e[:3] for e in events}, theirs, (name, begin, end))


if __name__ == "__main__":
    main()
