# SPDX-License-Identifier: MIT
"""User-space traces alone and beside kernel traces: verbs, stores. Made traces; the recorded ones (ust-live,
context-switches-ust) where they are."""
import glob
import os
import shutil
import struct
import subprocess
import sys
import unittest
from collections import Counter, defaultdict

import small_trace
from tsp_server import EVENTS, HISTOGRAM, THREAD_STATUS, Server
from weft_e2e import DATA, ROOT, Case, main, need, needs, scratch, weft

sys.path.insert(0, os.path.join(ROOT, "tests", "stack"))
from truth import Replay

UST_WRITE = os.environ.get("UST_WRITE") or os.path.join(ROOT, "build", "tests", "stack", "ust_write")
LIVE = os.path.join(DATA, "traces", "ust-live")
RECORDED = os.path.join(DATA, "traces-public", "context-switches-ust")


FLAME_CHART = "org.eclipse.tracecompass.internal.analysis.profiling.callstack.provider.CallStackDataProvider"
STATISTICS = "org.eclipse.tracecompass.internal.analysis.profiling.core.callgraph.callgraphanalysis.statistics"
DENSITY = "org.eclipse.tracecompass.analysis.profiling.core.callstack.functiondensity.provider"
EVENT_TYPES = "org.eclipse.tracecompass.analysis.os.linux.core.statistics.StatisticsDataProvider"
MEMORY = "org.eclipse.tracecompass.lttng2.ust.core.analysis.memory.UstMemoryUsageDataProvider"
ANALYSIS = ":org.eclipse.linuxtools.lttng2.ust.analysis.callstack"
CALL_TABLE = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreTableDataProvider" + ANALYSIS
CALL_SCATTER = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.scatter.dataprovider" + ANALYSIS
CALL_STATISTICS = ("org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreStatisticsDataProvider"
                   + ANALYSIS)
CALL_DENSITY = ("org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider"
                + ANALYSIS)
FLAME_GRAPH = ("org.eclipse.tracecompass.analysis.profiling.core.flamegraph:"
               "org.eclipse.tracecompass.lttng2.ust.core.analysis.callstack")
UNITS = {"ns": 1, "µs": 1e3, "ms": 1e6, "s": 1e9}


def nanoseconds(text):
    """Returns the ns of a shown duration: four digits at most."""
    number, unit = text.split()
    return float(number) * UNITS[unit]


def sample(path, host="small"):
    """The made trace of tests/stack/ust_world.c: 27 events of 3 threads, 12 calls, 5 lost events."""
    subprocess.run([UST_WRITE, "sample", path, host], check=True)
    return path


def both():
    """A session directory with a kernel trace and a user-space trace of one host."""
    place = scratch()
    small_trace.write(os.path.join(place, "kernel"))
    sample(os.path.join(place, "ust"))
    return place


def babeltrace(path):
    return subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=True).stdout.decode()


class Made(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        need(UST_WRITE)


class Verbs(Made):
    def test_info(self):
        traces = {t["domain"]: t for t in self.json("info", both())}
        self.assertEqual({t["host"] for t in traces.values()}, {"small"})
        self.assertEqual((traces["ust"]["events"], traces["ust"]["lost_events"], traces["ust"]["tracer"]),
                         (27, 5, "lttng-ust 2.13"))
        self.assertEqual(traces["kernel"]["events"], sum(map(len, small_trace.PACKETS)))

    @needs("babeltrace2")
    def test_events(self):
        """Alone and merged with the kernel's, line for line as babeltrace2 prints them."""
        place = both()
        for path in (os.path.join(place, "ust"), place):
            self.assertEqual(self.ok("events", path).text, babeltrace(path))

    def test_problems_are_told(self):
        """Problems found when a user-space trace is opened are reported beside a kernel trace of its host too."""
        place = both()
        shutil.rmtree(os.path.join(place, "ust", "index"))
        stream = os.path.join(place, "ust", "channel0_0")
        with open(stream, "r+b") as f:
            f.truncate(os.path.getsize(stream) - 5)
        for path in (os.path.join(place, "ust"), place):
            self.assertIn("channel0_0", self.partly("events", path).message)

    def test_incomplete_calls_are_told(self):
        """Exits that were never entered, calls that longjmp left, and levels that the store does not hold."""
        message = self.ok("index", sample(scratch() + "/ust"), "--store", scratch()).message
        self.assertRegex(message, "exits of functions whose entry was not recorded, or was lost: 2\n")
        self.assertRegex(message, r"calls without a recorded exit \(longjmp, .*: 2\n")
        deep = scratch() + "/deep"
        subprocess.run([UST_WRITE, "deep", deep, "20001"], check=True)
        run = self.ok("index", deep, "--store", scratch())
        self.assertIn("calls deeper than 1024 levels, which are neither shown nor in the figures of functions: 18977\n",
                      run.message)

    def test_one_host(self):
        """Traces given as two arguments, in any order, are still of one host."""
        place, store = both(), scratch()
        for args in ((place,), (place + "/ust", place + "/kernel"), (place + "/kernel", place + "/ust")):
            rows = self.json("index", *args, "--store", store)
            self.assertEqual([(r["host"], r["domain"]) for r in rows], [("small", "kernel"), ("small", "user")])
        rows = self.json("index", f"a={place}/kernel", f"b={place}/ust", "--store", store)
        self.assertEqual([r["host"] for r in rows], ["a", "b"])

    def test_kernel_verbs_want_a_kernel_trace(self):
        for verb in (["threads"], ["critpath", "--thread", "1"], ["sync"]):
            run = weft(*verb, sample(scratch() + "/ust"), "--store", scratch())
            self.assertEqual(run.code, 1, run)
            self.assertIn("no kernel trace", run.message)


class Stores(Made):
    def setUp(self):
        self.trace, self.store = sample(scratch() + "/ust"), scratch()

    def index(self, *more):
        rows = self.json("index", self.trace, "--store", self.store, *more)
        self.assertEqual(len(rows), 1)
        return rows[0]

    def test_only_what_changed(self):
        row = self.index()
        self.assertEqual((row["events"], row["lost"], row["threads"], row["calls"], row["done"]),
                         (27, 5, 3, 12, "built"))
        self.assertEqual(self.index()["done"], "up to date")
        os.utime(os.path.join(self.trace, "channel0_0"), ns=(1, 1))
        self.assertEqual(self.index()["done"], "built")
        self.assertEqual(self.index("--force")["done"], "built")

    def test_damage(self):
        self.index()
        stacks = glob.glob(self.store + "/*/chunk.1")[0]
        with open(stacks, "rb") as f:
            good = f.read()
        for damaged in (good[:-1], good[:700] + bytes([good[700] ^ 1]) + good[701:], b"", None):
            os.unlink(stacks)
            if damaged is not None:
                with open(stacks, "wb") as f:
                    f.write(damaged)
                self.partly("verify", self.trace, "--store", self.store)
            self.assertEqual(self.index()["done"], "built")
            with open(stacks, "rb") as f:
                self.assertEqual(f.read(), good)
            self.ok("verify", self.trace, "--store", self.store)

    def test_no_room(self):
        run = weft("index", self.trace, "--store", "/proc/self/nowhere")
        self.assertEqual(run.code, 1, run)

    @needs(RECORDED)
    def test_recorded(self):
        row = self.json("index", RECORDED, "--store", self.store)[0]
        self.assertEqual((row["host"], row["events"], row["lost"], row["threads"], row["calls"]),
                         ("qemu1", 3934, 0, 7, 1948))


class Served(Made):
    """Single trace through the server."""

    def serve(self, *traces):
        self.server = Server(*traces)
        self.addCleanup(self.server.__exit__)
        self.x = self.server.first()
        self.outputs = f"/experiments/{self.x['UUID']}/outputs"
        self.listed = {o["id"]: o for o in self.server.get(self.outputs).json}

    def model(self, kind, output, operation, **parameters):
        return self.server.model(f"{self.outputs}/{kind}/{output}/{operation}", parameters)

    def entries(self, kind, output, **parameters):
        return {e["id"]: e for e in self.model(kind, output, "tree", **parameters)["entries"]}

    def whole(self, **more):
        return {"start": self.x["start"], "end": self.x["end"], **more}

    def levels(self, output=FLAME_CHART, **parameters):
        """{(process label, tid, level): entry id} of the flame chart or graph."""
        entries, found = self.entries("timeGraph", output, **parameters), {}
        for e in entries.values():
            if e["hasData"]:
                thread = entries[e["parentId"]]
                process = entries[thread["parentId"]]
                self.assertEqual(entries[process["parentId"]]["parentId"], -1)
                found[process["labels"][1], thread["metadata"].get("TID", [-1])[0], int(e["labels"][0]) - 1] = e["id"]
        return found

    def states(self, items, times, output=FLAME_CHART, **more):
        rows = self.model("timeGraph", output, "states", requested_items=items, requested_times=times, **more)["rows"]
        return {row["entryId"]: row["states"] for row in rows}


class Calls(Served):
    """Recorded and random calls: all views against a replay of babeltrace2's text."""

    def setUp(self):
        need("babeltrace2")

    def judge(self, path):
        truth = Replay(path)
        self.serve(path)
        self.assertEqual(self.x["nbEvents"], truth.events)
        self.check_chart(truth)
        for output in (STATISTICS, CALL_STATISTICS):
            self.check_statistics(truth, output)
        for output in (DENSITY, CALL_DENSITY):
            self.check_density(truth, output)
        self.check_table(truth)
        self.check_scatter(truth)
        self.check_graph(truth, None)
        part = (self.x["end"] - self.x["start"]) // 12
        for i in (4, 5, 6, 4, 7, 8, 9, 4, 5):  # sequence of more than are cached, with repetitions
            self.check_graph(truth, [self.x["start"] + i * part, self.x["start"] + (i + 4) * part])
        if truth.memory:
            self.check_memory(truth)
        else:
            self.assertNotIn(MEMORY, self.listed)

    def check_graph(self, truth, selection):
        """The flame graph's boxes: paths added up here by containment, laid out the largest first."""
        low, high = selection or (self.x["start"], self.x["end"])
        more = {"selection_range": selection} if selection else {}
        threads = defaultdict(lambda: defaultdict(list))
        for pid, tid, level, begin, end, _, name in truth.calls:
            if end >= low and begin <= high:
                threads[str(pid) if pid >= 0 else "", tid][level].append((begin, end, name))
        levels = self.levels(FLAME_GRAPH, **more)
        for thread, rows in threads.items():
            totals, paths = Counter(), {}
            for level in sorted(rows):
                for begin, end, name in rows[level]:
                    above = next((paths[level - 1, b, e] for b, e,
                                  _ in rows.get(level - 1, ()) if b <= begin and end <= e and b < e), ())
                    if begin < end:
                        paths[level, begin, end] = above + (name,)
                        totals[above + (name,)] += min(end, high) - max(begin, low)
            boxes, at = defaultdict(list), defaultdict(int)
            for path in sorted(totals, key=lambda p: (len(p), [(-totals[p[:k + 1]], p[k]) for k in range(len(p))])):
                start = at[path[:-1]]
                at[path], at[path[:-1]] = start, start + totals[path]
                boxes[len(path) - 1].append((start, start + totals[path], path[-1]))
            for level, wanted in boxes.items():
                wanted = [b for b in wanted if b[0] < b[1]]
                entry = levels[(*thread, level)]
                got = self.states([entry], [b[0] for b in wanted] or [0], FLAME_GRAPH, **more)[entry]
                self.assertEqual([(s["start"], s["end"], s["label"]) for s in got if "label" in s], wanted,
                                 (thread, level))

    def check_memory(self, truth):
        """Checks every thread, every process and the total at 400 times."""
        entries = self.entries("XY", MEMORY)
        xy = self.model("XY", MEMORY, "xy", requested_items=list(entries), requested_timerange=self.whole(nbTimes=400))
        lines = {s["seriesId"]: s for s in xy["series"]}
        self.assertEqual(set(lines), set(entries))

        def held(thread, t):
            before = [held for at, held in truth.memory[thread] if at <= t]
            return before[-1] if before else 0
        for entry, line in lines.items():
            _, pid, tid = entries[entry]["labels"]
            threads = [t for t in truth.memory if pid in ("", str(t[0])) and tid in ("", str(t[1]))]
            self.assertEqual(len(threads) > 1, not tid)
            self.assertEqual(line["yValues"], [sum(held(thread, t) for thread in threads) for t in line["xValues"]],
                             entries[entry])

    def check_chart(self, truth):
        rows = defaultdict(list)
        for pid, tid, level, begin, end, _, name in truth.calls:
            rows[str(pid) if pid >= 0 else "", tid, level].append((begin, end, name))
        levels = self.levels()
        self.assertEqual(set(levels), set(rows))
        for key, calls in rows.items():
            got = self.states([levels[key]], sorted({begin for begin, _, _ in calls}))[levels[key]]
            self.assertEqual([(s["start"], s["end"], s["label"]) for s in got if "label" in s],
                             sorted(c for c in calls if c[0] < c[1]))
            for before, after in zip(got, got[1:]):
                self.assertLessEqual(before["end"], after["start"])

    def check_statistics(self, truth, output):
        low = self.x["start"] + (self.x["end"] - self.x["start"]) // 3
        high = low + (self.x["end"] - self.x["start"]) // 3
        tree = self.model("data", output, "tree", requested_timerange={"start": low, "end": high})
        self.assertEqual(len(tree["headers"]), 10)
        entries = {e["id"]: e for e in tree["entries"]}
        got = defaultdict(list)
        for e in entries.values():
            parent = entries.get(e["parentId"])
            root = entries.get(parent["parentId"]) if parent else None
            if root:
                got[root["labels"][0], e["labels"][0]].append(e["labels"][1:])
        for what, inside in (("Total", lambda c: True), ("Selection", lambda c: low <= c[3] <= high)):
            durations = defaultdict(list)
            for call in truth.calls:
                if call[5] == "whole" and inside(call):
                    durations[call[0], call[6]].append((call[4] - call[3], call[3]))
            if what == "Total":
                self.check_self_time(truth, got)
            wanted = sorted((name, str(len(d)), f"{min(d)[0]}", f"{max(d)[0]}") for (_, name), d in durations.items())
            have = sorted((name, row[4], *(str(int(r[1:-1].split(",")[1]) - int(r[1:-1].split(",")[0]))
                                           for r in row[6:8]))
                          for (root, name), rows in got.items() if root == what for row in rows)
            self.assertEqual(have, wanted)
            sums = Counter()
            for (_, name), d in durations.items():
                sums[name] += sum(ns for ns, _ in d)
            for name, ns in sums.items():
                self.assertAlmostEqual(sum(nanoseconds(row[5]) for row in got[what, name]), ns, delta=1 + ns * 2e-3)

    def check_self_time(self, truth, got):
        """Duration without that of the calls one level below within it, by brute force over each thread."""
        threads, own = defaultdict(list), Counter()
        for call in truth.calls:
            threads[call[:2]].append(call)
        for calls in threads.values():
            by_level = defaultdict(list)
            for c in calls:
                by_level[c[2]].append(c)
            for _, _, level, begin, end, how, name in calls:
                if how == "whole":
                    own[name] += end - begin - sum(c[4] - c[3] for c in by_level[level + 1] if begin <= c[3]
                                                   and c[4] <= end)
        for name, ns in own.items():
            self.assertAlmostEqual(sum(nanoseconds(row[8]) for row in got["Total", name]), ns,
                                   delta=10 + abs(ns) * 2e-3, msg=name)

    def check_density(self, truth, output):
        durations = [c[4] - c[3] for c in truth.calls if c[5] == "whole"]
        items = [e["id"] for e in self.entries("genericXY", output).values() if e["hasData"]]
        xy = self.model("genericXY", output, "xy", requested_timerange=self.whole(nbSamples=50), requested_items=items)
        self.assertEqual([s["seriesId"] for s in xy["series"]], items)
        counts = Counter()
        for s in xy["series"]:
            self.assertEqual((len(s["xRanges"]), s["xValuesDescription"]["label"]), (50, "Execution Time"))
            for r, y in zip(s["xRanges"], s["yValues"]):
                counts[r["start"], r["end"]] += y
        self.assertEqual(sum(counts.values()), len(durations))
        for (low, high), n in counts.items():
            self.assertEqual(n, sum(low <= d < high for d in durations))

    def lines(self, **parameters):
        """(size, first index, [cells by column name]) of the table of calls."""
        names = [c["name"] for c in self.model("table", CALL_TABLE, "columns")]
        model = self.model("table", CALL_TABLE, "lines", **parameters)
        return model["size"], model["lowIndex"], [dict(zip(names, (c["content"] for c in line["cells"])))
                                                  for line in model["lines"]]

    def check_table(self, truth):
        """Checks the table: every call whose entry and exit were seen, in order of its entry; pages, places by time,
        searches in both directions."""
        calls = sorted((begin, end, name, "" if tid < 0 else str(tid), "" if pid < 0 else str(pid), str(level + 1))
                       for pid, tid, level, begin, end, how, name in truth.calls if how == "whole")
        row = lambda cells: (int(cells["Start Time"]), int(cells["End Time"]), cells["Name"], cells["TID"],
                             cells["PID"], cells["Depth"])
        got = []
        while len(got) < len(calls):
            size, low, lines = self.lines(requested_table_index=len(got), requested_table_count=700)
            self.assertEqual((size, low, bool(lines)), (len(calls), len(got), True))
            self.assertTrue(all(int(c["Duration"]) == int(c["End Time"]) - int(c["Start Time"]) and c["Host"]
                                for c in lines))
            got += map(row, lines)
        self.assertEqual([c[0] for c in got], [c[0] for c in calls])
        self.assertEqual(sorted(got), calls)
        for index in (0, 1, len(calls) // 3, len(calls) - 1):
            self.assertEqual(list(map(row, self.lines(requested_table_index=index, requested_table_count=2)[2])),
                             got[index:index + 2])
        for time in (self.x["start"], got[len(got) // 2][0], got[len(got) // 2][0] + 1, self.x["end"] + 1):
            first = sum(c[0] < time for c in got)
            self.assertEqual(self.lines(requested_times=[time], requested_table_count=1)[1:],
                             (first, [dict(r) for r in self.lines(requested_table_index=first,
                                                                  requested_table_count=1)[2]]))
        name, middle = got[len(got) // 2][2], len(got) // 2
        named = [i for i, c in enumerate(got) if c[2] == name]
        for direction, start, wanted in (("NEXT", middle + 1, [i for i in named if i > middle][:1]),
                                         ("PREVIOUS", middle - 1, [i for i in named if i < middle][-1:])):
            _, low, lines = self.lines(requested_table_index=start, requested_table_count=1,
                                       table_search_expressions={"3": name.replace("+", "[+]") + "$"},
                                       table_search_direction=direction)
            self.assertEqual(list(map(row, lines)), [got[i] for i in wanted], direction)

    def check_scatter(self, truth):
        """Checks the scatter chart: by function, and between two samples, the shortest and the longest call."""
        entries = self.entries("XY", CALL_SCATTER)
        items = [e["id"] for e in entries.values() if e["hasData"]]
        low = self.x["start"] + (self.x["end"] - self.x["start"]) // 4
        xy = self.model("XY", CALL_SCATTER, "xy", requested_items=items,
                        requested_timerange={"start": low, "end": self.x["end"], "nbTimes": 23})
        step = (self.x["end"] - low) // 22
        edges = [*range(low, self.x["end"], step), self.x["end"] + 1]
        shown, wanted = defaultdict(list), defaultdict(list)
        for s in xy["series"]:
            function = entries[s["seriesId"]]
            process = entries[function["parentId"]]["labels"][0]
            shown[process, function["labels"][0]] += zip(s["xValues"], s["yValues"])
        calls = defaultdict(list)
        for pid, tid, _, begin, end, how, name in truth.calls:
            if how == "whole":
                calls[pid, name].append((begin, end - begin))
        for (process, name), points in shown.items():
            pids = {pid for pid, n in calls if n == name
                    and (f"({pid})" in process or pid < 0 or process == f"process {pid}")}
            mine = [c for pid in pids for c in calls[pid, name]]
            for a, b in zip(edges, edges[1:]):
                part = [c for c in mine if a <= c[0] < b]
                there = [c for c in points if a <= c[0] < b]
                self.assertLessEqual(len(there), 2)
                self.assertLessEqual(set(there), set(part))
                self.assertEqual({d for _, d in there},
                                 {min(d for _, d in part), max(d for _, d in part)} if part else set())
        self.assertTrue(any(shown.values()))

    @needs(RECORDED)
    def test_recorded(self):
        self.judge(RECORDED)

    @needs(RECORDED)
    def test_published(self):
        """The tests of the Trace Compass server tell figures of this trace. They count calls that are still open at its
        end, as if they ended 1 ns later; without those it are the figures here."""
        self.serve(RECORDED)
        truth = Replay(RECORDED)
        durations = [c[4] - c[3] + (c[5] == "cut" and c[4] == self.x["end"]) for c in truth.calls]
        self.assertEqual((len(durations), min(durations), max(durations)),
                         (1948, 1, 1450193728261604656 - 1450193722283061910))
        self.assertEqual((round(sum(durations) / 1e9, 3), round(sum(durations) / len(durations) / 1e6, 3)),
                         (21.127, 10.845))
        tree = self.model("data", CALL_STATISTICS, "tree", requested_timerange=self.whole())
        self.assertEqual([h["name"] for h in tree["headers"]][:9],
                         ["Label", "Minimum", "Maximum", "Average", "Std Dev", "Count", "Total", "Min Time Range",
                          "Max Time Range"])
        total = tree["entries"][0]["labels"]
        whole = [c for c in truth.calls if c[5] == "whole"]
        self.assertEqual((total[0], total[2], total[5], total[8]),
                         ("Total", "5.979 s", str(len(whole)), "[1450193722283061910,1450193728261604656]"))
        self.assertEqual(self.listed[CALL_TABLE]["name"], "LTTng-UST CallStack - Latency Table")
        self.assertEqual(self.listed[CALL_SCATTER]["name"], "LTTng-UST CallStack - Latency vs Time")
        self.assertEqual(self.listed[CALL_STATISTICS]["name"], "LTTng-UST CallStack - Latency Statistics")

    def test_random(self):
        path = scratch() + "/random"
        subprocess.run([UST_WRITE, "random", path, "7", "3000"], check=True)
        self.judge(path)


class Sample(Served):
    """The made trace, by hand."""
    START = 1700000000 * 10**9

    def setUp(self):
        self.serve(sample(scratch() + "/ust"))

    def test_listed(self):
        self.assertEqual(self.listed[FLAME_CHART]["type"], "TIME_GRAPH")
        self.assertEqual(self.listed[STATISTICS]["type"], "DATA_TREE")
        self.assertEqual(self.listed[DENSITY]["type"], "TREE_GENERIC_XY")
        self.assertEqual(self.listed[MEMORY]["type"], "TREE_TIME_XY")
        self.assertNotIn(THREAD_STATUS, self.listed)
        self.assertFalse([i for i in self.listed if i.startswith("weft.stacks")])

    def test_states(self):
        levels = self.levels()
        self.assertEqual(set(levels), {("100", 100, 0), ("100", 100, 1), ("100", 101, 0), ("200", 200, 0),
                                       ("200", 200, 1), ("200", 200, 2)})
        times = [self.START + t for t in range(1000, 8001, 50)]
        got = self.states([levels["100", 100, 0], 999999], times)
        self.assertEqual(set(got), {levels["100", 100, 0]})
        shown = [(s["start"] - self.START, s["end"] - self.START, s.get("label"), "style" in s)
                 for s in got[levels["100", 100, 0]]]
        self.assertEqual(shown, [(1000, 2000, None, False), (2000, 2970, "app+0x10", True), (2970, 6000, None, True),
                                 (6000, 7000, None, True),
                                 (7000, 8000, "app+0x70", True)])
        styles = self.server.post(f"{self.outputs}/{FLAME_CHART}/style").json["model"]["styles"]
        for row in self.states(list(levels.values()), times).values():
            for s in row:
                self.assertIn(s.get("style", {"parentKey": "Unknown"})["parentKey"], styles)

    def test_tooltip(self):
        entry = self.levels()["200", 200, 1]
        tip = self.model("timeGraph", FLAME_CHART, "tooltip", requested_times=[self.START + 3200],
                         requested_items=[entry],
                         requested_element={"elementType": "state", "time": self.START + 3100, "duration": 300})
        self.assertLessEqual({"Function": "tool@0x400900", "Address": "0x400900", "Duration": "300 ns", "Depth": "2",
                              "Exit": "not seen",
                              "Process": "tool", "PID": "200", "TID": "200"}.items(), tip.items())
        tip = self.model("timeGraph", FLAME_CHART, "tooltip", requested_times=[self.START + 3000],
                         requested_items=[self.levels()["100", 101, 0]],
                         requested_element={"elementType": "state", "time": self.START + 3000, "duration": 1})
        self.assertIn("lost", tip["State"])

    def test_filter(self):
        """A call between two samples is found by a deep search; what does not fit is dimmed or left out."""
        entry = self.levels()["100", 100, 1]
        ends = [self.START + 1000, self.START + 8000]
        asked = {"strategy": "DEEP", "filter_expressions_map": {"1": ["parse"]}}
        labels = [s.get("label") for s in self.states([entry], ends, filter_query_parameters=asked)[entry]]
        self.assertIn("parse(char const*)", labels)
        asked = {"strategy": "SAMPLED", "filter_expressions_map": {"1": ["duration > 200"]}}
        tags = {s.get("label"): s.get("tags", 0) for s in self.states([entry], [self.START + 2100, self.START + 2600],
                                                                      filter_query_parameters=asked)[entry]}
        self.assertEqual(tags, {"app+0x20": 0, "parse(char const*)": 1})

    def test_flame_graph(self):
        self.assertEqual((self.listed[FLAME_GRAPH]["type"], self.listed[FLAME_GRAPH]["name"]),
                         ("GANTT_CHART", "LTTng-UST CallStack - Flame Graph"))
        roots = [e for e in self.entries("timeGraph", FLAME_GRAPH).values() if e["parentId"] == -1]
        self.assertEqual([(e["start"], e["end"]) for e in roots], [(0, 1970)])
        levels = self.levels(FLAME_GRAPH)
        rows = self.states([levels["100", 100, 0], levels["100", 100, 1]], list(range(0, 1971, 10)), FLAME_GRAPH)
        shown = [[(s["start"], s["end"], s.get("label")) for s in row] for row in rows.values()]
        self.assertEqual(shown, [[(0, 1000, "app+0x70"), (1000, 1970, "app+0x10")],
                                 [(0, 1000, None), (1000, 1400, "app+0x20"), (1400, 1500, "parse(char const*)"),
                                  (1500, 1550, "plugin.so+0x100"), (1550, 1970, None)]])
        tip = self.model("timeGraph", FLAME_GRAPH, "tooltip", requested_times=[1000],
                         requested_items=[levels["100", 100, 0]],
                         requested_element={"elementType": "state", "time": 1000, "duration": 970})
        self.assertEqual(tip, {"Function": "app+0x10", "Address": "0x10010", "Depth": "1", "Calls": "1",
                               "Total": "970 ns", "Share": "49.2 %",
                               "Self Time": "420 ns", "Average": "970 ns", "Minimum": "970 ns", "Maximum": "970 ns"})

    def test_memory(self):
        entries = self.entries("XY", MEMORY)
        thread = next(e for e in entries.values() if e["labels"][2])
        self.assertEqual(thread["labels"], ["app", "100", "100"])
        times = [self.START + t for t in (2149, 2150, 2969, 2970, 5299, 5300, 8000)]
        xy = self.model("XY", MEMORY, "xy", requested_items=[thread["id"], 10**9], requested_times=times)
        self.assertEqual([s["yValues"] for s in xy["series"]], [[0, 4096, 4096, 0, 0, 1000, 1000]] * 2)

    def test_losses(self):
        got = self.server.post(f"{self.outputs}/{FLAME_CHART}/annotations",
                               {"requested_timerange": self.whole(nbTimes=10)}).json["model"]["annotations"]
        self.assertEqual([(a["time"] - self.START, a["duration"], a["label"].split()[0]) for a in got["Lost Events"]],
                         [(2970, 3030, "5")])


class Killed(Served):
    """Memory of a killed process is freed once the kernel trace shows its end; else there is a note."""
    START = 1700000000 * 10**9
    TIMES = (25000, 31000, 69000, 71000, 80000, 90000)
    EXIT = 4  # number of the event's class
    METADATA = small_trace.METADATA + """event { name = "sched_process_exit"; id = 4; stream_id = 0; fields := struct {
	letter _comm[16]; int32_t _tid; int32_t _prio; }; };
"""

    def held(self, *paths):
        self.serve(*paths)
        entries = {e["labels"][0]: e["id"] for e in self.entries("XY", MEMORY).values()}
        times = [self.START + t for t in self.TIMES]
        xy = self.model("XY", MEMORY, "xy", requested_items=[entries["beta"], entries["other"]], requested_times=times)
        return {s["seriesName"].split(":", 1)[1].split(" ")[0]: s["yValues"] for s in xy["series"]}

    def kernel(self, place, later=()):
        """Thread 11 ends at 69.5 µs."""
        *packets, last = small_trace.PACKETS
        gone = (69500, (self.EXIT, small_trace.comm("beta") + struct.pack("<ii", 11, 20)))
        packets = [*packets, [*last[:-1], gone, last[-1], *later]]
        stream = (small_trace.packet(i, events) for i, events in enumerate(packets))
        small_trace.write(place, self.METADATA, b"".join(stream))

    def write(self, place):
        subprocess.run([UST_WRITE, "killed", place, "small"], check=True)
        return place

    def test_kernel_trace_shows_the_end(self):
        place = scratch()
        self.kernel(os.path.join(place, "kernel"))
        self.write(os.path.join(place, "ust"))
        self.assertEqual(self.held(place), {
            "11": [0, 4096, 4096, 0, 0, 0], "300": [100] * 5 + [200], "total": [100, 4196, 4196, 100, 100, 200]})
        message = self.ok("index", place, "--store", scratch()).message
        self.assertNotIn("held memory", message)

    def test_number_is_used_again(self):
        """Reused process number: while the new process, without user-space events, lives, the old memory does not come
        back."""
        place = scratch()
        again = ("gamma", 11)
        self.kernel(os.path.join(place, "kernel"), [
            (72000, small_trace.switch(small_trace.IDLE, 0, small_trace.A)),
            (74000, small_trace.fork(small_trace.A, again)), (75000, small_trace.waking(again)),
            (76000, small_trace.switch(small_trace.A, 1, again)), (95000, small_trace.waking(small_trace.A))])
        self.write(os.path.join(place, "ust"))
        self.assertEqual(self.held(place), {
            "11": [0, 4096, 4096, 0, 0, 0], "300": [100] * 5 + [200], "total": [100, 4196, 4196, 100, 100, 200]})

    def test_many_traces_of_a_host(self):
        """Buffers per process: each is a trace of its own, of a process that the one kernel trace shows."""
        place = scratch()
        self.kernel(os.path.join(place, "kernel"))
        self.write(os.path.join(place, "ust-1"))
        sample(os.path.join(place, "ust-2"))
        self.assertEqual(self.held(place)["11"], [0, 4096, 4096, 0, 0, 0])

    def test_nothing_shows_it(self):
        place = self.write(scratch() + "/ust")
        self.assertEqual(self.held(place)["11"], [0] + [4096] * 5)
        message = self.ok("index", place, "--store", scratch()).message
        self.assertRegex(message, "processes that held memory to the recording's end, or were killed before, .*: 2\n")


class Live(Served):
    """A recorded trace without functions: 200 events of one type."""

    @needs(LIVE, "babeltrace2")
    def test_events(self):
        text = babeltrace(LIVE)
        self.assertEqual(self.ok("events", LIVE).text, text)
        lines = text.splitlines()
        self.assertEqual(len(lines), 200)
        self.serve(LIVE)
        ends = [int(line[1:21].replace(".", "")) for line in (lines[0], lines[-1])]
        self.assertEqual([self.x[k] for k in ("nbEvents", "start", "end")], [200, *ends])
        self.assertEqual({o["type"] for o in self.listed.values()}, {"TABLE", "TREE_TIME_XY", "DATA_TREE", "NONE"})
        root, one = (e["labels"] for e in self.entries("data", EVENT_TYPES).values())
        self.assertEqual(root[1:4:2], ["200", "200"])
        self.assertEqual(one[:4:3], [lines[0].split()[2].rstrip(":"), "200"])
        rows = self.model("table", EVENTS, "lines", requested_table_index=199, requested_table_count=5)
        self.assertEqual((rows["size"], len(rows["lines"])), (200, 1))
        xy = self.model("XY", HISTOGRAM, "xy", requested_items=list(self.entries("XY", HISTOGRAM)),
                        requested_timerange=self.whole(nbTimes=30))
        self.assertEqual(max(sum(s["yValues"]) for s in xy["series"]), 200)


class Together(Served):
    """A kernel and a user-space trace of one host, as one directory and as two traces of the protocol."""

    def check(self, *traces):
        self.serve(*traces)
        kernel = sum(map(len, small_trace.PACKETS))
        self.assertEqual(self.x["nbEvents"], kernel + 27)
        lines = self.model("table", EVENTS, "lines", requested_table_index=0, requested_table_count=1)
        self.assertGreaterEqual(lines["size"], kernel + 27)
        self.assertLessEqual({FLAME_CHART, THREAD_STATUS, STATISTICS, DENSITY}, set(self.listed))
        for output in (FLAME_CHART, THREAD_STATUS):
            roots = [e for e in self.entries("timeGraph", output).values() if e["parentId"] == -1]
            self.assertEqual([e["labels"][0] for e in roots], ["small"])
        roots = [e["labels"] for e in self.entries("data", EVENT_TYPES).values() if e["parentId"] == -1]
        self.assertEqual({(root[0], root[1], root[3]) for root in roots},
                         {("small", str(kernel), str(kernel)), ("small (user space)", "27", "27")})
        entries = self.entries("XY", HISTOGRAM)
        totals = [e["id"] for e in entries.values() if e["labels"][0] == "Total"]
        self.assertEqual(len({e["labels"][0] for e in entries.values() if e["parentId"] == -1}), 3)
        xy = self.model("XY", HISTOGRAM, "xy", requested_items=totals, requested_timerange=self.whole(nbTimes=50))
        self.assertEqual(sorted(sum(s["yValues"]) for s in xy["series"]), sorted([kernel, 27, kernel + 27]))

    def test_one_trace(self):
        self.check(both())

    def test_two_traces(self):
        place = both()
        self.check(place + "/ust", place + "/kernel")


if __name__ == "__main__":
    main()
