# SPDX-License-Identifier: MIT
"""The numbers of the trace server's views against babeltrace2's text, counted here by other means."""
import array
import bisect
import os
import re
import subprocess
from collections import Counter

from tsp_server import EVENTS, HISTOGRAM, Server
from weft_e2e import DATA, Case, have, load, main, need, new_dice, scenario, scratch

CPU = "org.eclipse.tracecompass.analysis.os.linux.core.cpuusage.CpuUsageDataProvider"
DISK = "org.eclipse.tracecompass.analysis.os.linux.core.inputoutput.DisksIODataProvider"
SEGMENTS = "org.eclipse.tracecompass.analysis.timing.core.segmentstore."
SYSCALLS = "org.eclipse.tracecompass.analysis.os.linux.latency.syscall"
SCATTER = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.scatter.dataprovider"
PATH = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"
LINE = re.compile(r"^\[(\d+)\.(\d{9})\] \S+ (\S+): \{ cpu_id = (\d+) \}, \{ ?(.*?) ?\}$", re.M)


def events(host):
    """(ns, name, cpu, text of the fields) of a host's trace, by babeltrace2."""
    text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", os.path.join(scenario("three-tier"), host)],
                          stdout=subprocess.PIPE, check=True).stdout.decode()
    return [(int(s) * 1000000000 + int(ns), name, int(cpu), fields) for s, ns, name, cpu, fields in LINE.findall(text)]


def field(text, name):
    found = re.search(r"\b" + name + r" = (-?\d+)", text)
    return int(found.group(1))


class Numbers(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        need("babeltrace2")
        cls.server = Server(scenario("three-tier"))
        cls.x = cls.server.first()
        cls.outputs = f"/experiments/{cls.x['UUID']}/outputs"
        cls.events = {host: events(host) for host in ("client", "web", "db")}

    @classmethod
    def tearDownClass(cls):
        if hasattr(cls, "server"):
            cls.server.__exit__()

    def model(self, kind, output, operation, **parameters):
        return self.server.model(f"{self.outputs}/{kind}/{output}/{operation}", parameters)

    def entries(self, kind, output, **parameters):
        return self.model(kind, output, "tree", **parameters)["entries"]

    def host_of(self, entry):
        return entry["metadata"]["hostId"][0]

    def test_rows_last_as_long_as_their_machine_was_traced(self):
        spans = {host: (e[0][0], e[-1][0]) for host, e in self.events.items()}
        reference = next(h["host"] for h in self.json("sync", scenario("three-tier"), "--store", scratch())["hosts"]
                         if h["category"] == "reference")
        linux = "org.eclipse.tracecompass.internal.analysis.os.linux.core."
        for output in (linux + "threadstatus.ResourcesStatusDataProvider",
                       "org.eclipse.tracecompass.internal.tmf.core.statesystem.provider.StateSystemDataProvider"):
            entries = self.entries("timeGraph", output)
            self.assertEqual(entries[0]["start"], self.x["start"])
            for e in entries[1:]:
                begin, end = spans[self.host_of(e)]
                self.assertAlmostEqual(e["end"] - e["start"], end - begin, delta=1000000)  # clocks drift
                if self.host_of(e) == reference:
                    self.assertEqual((e["start"], e["end"]), (begin, end))

    def test_event_count(self):
        self.assertEqual(self.x["nbEvents"], sum(map(len, self.events.values())))
        lines = self.model("table", EVENTS, "lines", requested_table_index=0, requested_table_count=1)
        self.assertEqual(lines["size"], self.x["nbEvents"])

    def running(self, host):
        """{tid: ns} from sched_switch alone; idle is left out, and so is who ran before a CPU's first switch (since
        when, the text does not say)."""
        since, sums, early = {}, Counter(), set()
        for t, name, cpu, fields in self.events[host]:
            if name == "sched_switch":
                if cpu in since:
                    sums[since[cpu][0]] += t - since[cpu][1]
                else:
                    early.add(field(fields, "prev_tid"))
                since[cpu] = (field(fields, "next_tid"), t)
        end = self.events[host][-1][0]
        for tid, t in since.values():
            sums[tid] += end - t
        return Counter({tid: ns for tid, ns in sums.items() if tid and tid not in early})

    def test_cpu_usage(self):
        """Per thread: percent times range equals the sum of sched_switch intervals; the XY line integrates to the same.
        """
        span = self.x["end"] - self.x["start"]
        rows = [e for e in self.entries("XY", CPU) if e["parentId"] != -1]
        for host in self.events:
            truth = self.running(host)
            ours = Counter()
            for e in rows:
                if self.host_of(e) == host:
                    ours[int(e["labels"][1])] += float(e["labels"][2].split()[0]) / 100 * span
            for tid, ns in truth.most_common(12):
                self.assertAlmostEqual(ours[tid] / 1e6, ns / 1e6, delta=max(0.2, 0.002 * ns / 1e6), msg=f"{host} {tid}")
        busiest = max(rows, key=lambda e: float(e["labels"][2].split()[0]))
        xy = self.model("XY", CPU, "xy", requested_items=[busiest["id"]],
                               requested_timerange={"start": self.x["start"], "end": self.x["end"], "nbTimes": 1001})
        line = next(s for s in xy["series"] if s["seriesId"] == busiest["id"])
        area = sum(y / 100 * (b - a) for y, a, b in zip(line["yValues"][1:], line["xValues"], line["xValues"][1:]))
        self.assertAlmostEqual(area / span * 100, float(busiest["labels"][2].split()[0]), delta=0.05)

    def test_machines(self):
        """Payload by the packets' headers, waiting by the table of latencies: of all, and of a part."""
        packets = {host: [(ts, field(text, "tot_len") - 4 * field(text, "ihl") - 4 * field(text, "data_offset"))
                          for ts, name, _, text in e if name in ("net_dev_queue", "net_if_receive_skb")
                          and '"_tcp"' in text] for host, e in self.events.items()}
        waits = self.latency_lines("org.eclipse.tracecompass.analysis.os.linux.core.swslatency.sws", 0, 1000000)
        for e in self.entries("timeGraph", "weft.machines"):
            host = self.host_of(e)
            self.assertEqual(e["metadata"]["moved"], [sum(n for _, n in packets[host])])
            self.assertGreater(e["metadata"]["moved"][0], 100)
            self.assertEqual(e["metadata"]["waited"], [sum(int(l[2]) for l in waits if l[4] == host)])
        third = (self.x["end"] - self.x["start"]) // 3
        begin, end = self.x["start"] + third, self.x["end"] - third
        for e in self.entries("timeGraph", "weft.machines", requested_timerange={"start": begin, "end": end}):
            of = [l for l in waits if l[4] == self.host_of(e) and begin <= int(l[0]) <= end]
            self.assertGreater(len(of), 10)
            self.assertEqual(e["metadata"]["waited"], [sum(int(l[2]) for l in of)])

    def test_system_calls(self):
        """Count per call: entries that have their exit on the same thread, from the text."""
        current, open_calls, counts = {}, {}, Counter()
        for host in self.events:
            current.clear()
            open_calls.clear()
            for _, name, cpu, fields in self.events[host]:
                if name == "sched_switch":
                    current[cpu] = field(fields, "next_tid")
                elif name.startswith("syscall_entry_") and cpu in current:
                    open_calls[current[cpu]] = name[len("syscall_entry_"):]
                elif name.startswith("syscall_exit_") and cpu in current:
                    call = name[len("syscall_exit_"):]
                    if open_calls.pop(current[cpu], None) == call:
                        counts[host, call] += 1
        rows = {tuple(e["labels"][0].split("/")): int(e["labels"][5])
                for e in self.entries("data", SEGMENTS + "SegmentStoreStatisticsDataProvider:" + SYSCALLS)
                if e["parentId"] != -1}
        # calls that the tracer calls "unknown" have their names by number here, so a name may have more
        for key, n in counts.items():
            if key[1] != "unknown":
                self.assertGreaterEqual(rows[key], n - 2, str(key))
        # calls open before a CPU's first switch are seen by one side only
        self.assertAlmostEqual(sum(rows.values()), sum(counts.values()), delta=6)
        lines = self.model("table", SEGMENTS + "SegmentStoreTableDataProvider:" + SYSCALLS, "lines",
                           requested_table_index=0, requested_table_count=5)
        self.assertEqual(lines["size"], sum(rows.values()))
        starts = [int(line["cells"][0]["content"]) for line in lines["lines"]]
        self.assertEqual(starts, sorted(starts))

    def latency_lines(self, analysis, index, count):
        model = self.model("table", SEGMENTS + "SegmentStoreTableDataProvider:" + analysis, "lines",
                           requested_table_index=index, requested_table_count=count)
        return [[c["content"] for c in line["cells"]] for line in model["lines"]]

    def test_latencies_of_all_machines(self):
        """The table is in order over the machines however it is asked for; points and figures are those of its lines.
        """
        for analysis in (SYSCALLS, "org.eclipse.tracecompass.analysis.os.linux.core.swslatency.sws"):
            lines = []
            while more := self.latency_lines(analysis, len(lines), 5000):
                lines += more
            begins = [int(l[0]) for l in lines]
            self.assertEqual(begins, sorted(begins))
            self.assertEqual({l[4] for l in lines}, {"client", "web", "db"})
            names = [c["name"] for c in self.model("table", SEGMENTS + "SegmentStoreTableDataProvider:" + analysis,
                                                   "columns")]
            self.assertEqual("Return value" in names, analysis == SYSCALLS)  # only system calls return a value
            self.assertEqual({len(l) for l in lines}, {len(names)})
            for index in new_dice(1).sample(range(len(lines)), 40):
                self.assertEqual(self.latency_lines(analysis, index, 2), lines[index:index + 2])
            beyond = self.model("table", SEGMENTS + "SegmentStoreTableDataProvider:" + analysis, "lines",
                                requested_times=[begins[-1] + 1], requested_table_count=3)
            self.assertEqual((beyond["lowIndex"], beyond["lines"]), (len(lines), []))
            entries = [e for e in self.entries("XY", SCATTER + ":" + analysis) if e["hasData"]]
            start, end, n = self.x["start"], self.x["end"], 301
            xy = self.model("XY", SCATTER + ":" + analysis, "xy", requested_items=[e["id"] for e in entries],
                            requested_timerange={"start": start, "end": end, "nbTimes": n})
            edges = [start + k * ((end - start) // (n - 1)) for k in range(n - 1)]
            truth, of = {}, {}
            for l in lines:
                bucket = truth.setdefault((l[4], l[3] if analysis == SYSCALLS else "All threads"),
                                          {}).setdefault(bisect.bisect_right(edges, int(l[0])) - 1, [])
                bucket.append(int(l[2]))
            for series in xy["series"]:
                entry = next(e for e in entries if e["id"] == series["seriesId"])
                points = {}
                for x, y in zip(series["xValues"], series["yValues"]):
                    points.setdefault(bisect.bisect_right(edges, x) - 1, []).append(y)
                key = self.host_of(entry), entry["labels"][0]
                self.assertEqual({k: (min(v), max(v)) for k, v in points.items()},
                                 {k: (min(v), max(v)) for k, v in truth[key].items()}, str(key))
                self.assertEqual(series["xValues"], sorted(series["xValues"]))
                of[key] = sum(len(v) for v in truth[key].values())
            rows = {e["labels"][0]: e["labels"] for e in self.entries("data",
                                                                      SEGMENTS + "SegmentStoreStatisticsDataProvider:"
                                                                      + analysis) if e["parentId"] != -1}
            self.assertEqual({k: int(v[5]) for k, v in rows.items()}, {f"{h}/{name}": n for (h, name), n in of.items()})
            density = self.model("genericXY", SEGMENTS.replace("analysis.timing", "internal.analysis.timing")
                                 + "SegmentStoreDensityDataProvider:" + analysis,
                                 "xy", requested_items=[self.entries("genericXY",
                                                                     SEGMENTS.replace("analysis.timing",
                                                                                      "internal.analysis.timing") +
                                                                     "SegmentStoreDensityDataProvider:"
                                                                     + analysis)[0]["id"]],
                                 requested_timerange={"start": start, "end": end, "nbSamples": 100})["series"][0]
            durations = [int(l[2]) for l in lines]
            self.assertEqual(density["yValues"], [sum(a <= d < b for d in durations) for r in density["xRanges"] for a,
                                                  b in [(r["start"], r["end"])]])
            self.check_ratios(analysis, start, end, durations)

    def check_ratios(self, analysis, start, end, durations):
        density = SEGMENTS.replace("analysis.timing", "internal.analysis.timing") \
            + "SegmentStoreDensityDataProvider:" + analysis
        bars = self.model("genericXY", density, "xy", requested_items=[self.entries("genericXY", density)[0]["id"]],
                          requested_timerange={"start": start, "end": end, "nbSamples": 100},
                          x_scale="logarithmic")["series"][0]
        ranges = [(r["start"], r["end"]) for r in bars["xRanges"]]
        self.assertEqual(bars["yValues"], [sum(a <= d < b for d in durations) for a, b in ranges])
        self.assertEqual(sum(bars["yValues"]), len(durations))
        self.assertTrue(ranges[0][0] <= min(durations) < ranges[0][1])
        self.assertTrue(ranges[-1][0] <= max(durations) < ranges[-1][1])
        for (a, b), after in zip(ranges, ranges[1:] + [(ranges[-1][1],)]):
            self.assertEqual(b, after[0])
            self.assertLessEqual(b - a, max(1, a / 4), "four for each doubling")

    def test_latency_points(self):
        entries = self.entries("XY", SCATTER + ":" + SYSCALLS)
        sleep = next(e for e in entries if e["labels"][0] == "clock_nanosleep" and self.host_of(e) == "db")
        xy = self.model("XY", SCATTER + ":" + SYSCALLS, "xy", requested_items=[sleep["id"]],
                               requested_timerange={"start": self.x["start"], "end": self.x["end"], "nbTimes": 2001})
        slept = [y for s in xy["series"] for y in s["yValues"]]
        asked = [l["sleep_us"] * 1000 for l in load(scenario("three-tier"), "ground-truth.json")["log"]["db"]
                 if l["sleep_us"]]
        for ns in asked:
            self.assertTrue(any(ns <= y < ns + 5e6 for y in slept), f"no sleep of {ns} ns among {slept}")

    def test_flows(self):
        """Packets per direction: as matched by their full headers when the traces were recorded."""
        lines = self.model("table", "weft.flows", "lines", requested_table_index=0, requested_table_count=1000)["lines"]
        got = Counter()
        for line in lines:
            cell = [c["content"] for c in line["cells"]]
            self.assertEqual(cell[2], "TCP")
            got[cell[3], cell[4]] += int(cell[6])
            self.assertEqual(cell[8], "0")
            self.assertGreater(int(cell[9]), 0)
        self.assertEqual(got, {("client", "web"): 15, ("web", "client"): 22, ("web", "db"): 20, ("db", "web"): 16})

    def test_disks(self):
        """Bytes per disk and direction: completed requests of the text."""
        truth = Counter()
        for host in self.events:
            for _, name, _, fields in self.events[host]:
                if name == "block_rq_complete":
                    kind = "write" if field(fields, "rwbs") & 1 else "read" if field(fields, "rwbs") & 4 else None
                    truth[host, kind] += field(fields, "nr_sector") * 512
        entries = self.entries("XY", DISK)
        leaves = [e for e in entries if e["hasData"]]
        xy = self.model("XY", DISK, "xy", requested_items=[e["id"] for e in leaves],
                               requested_timerange={"start": self.x["start"] - 1, "end": self.x["end"], "nbTimes": 101})
        label = {e["id"]: (self.host_of(e), e["labels"][0]) for e in leaves}
        got = Counter()
        for s in xy["series"]:
            got[label[s["seriesId"]]] += sum(y * (b - a) / 1e9 for y, a,
                                             b in zip(s["yValues"][1:], s["xValues"], s["xValues"][1:]))
        for key in set(truth) | set(got):
            if key[1]:
                self.assertAlmostEqual(got[key], truth[key], delta=1 + truth[key] * 1e-6, msg=str(key))

    def test_clocks(self):
        """The table says what `weft sync` says."""
        lines = self.model("table", "weft.clocks", "lines", requested_table_index=0, requested_table_count=10)["lines"]
        answer = self.json("sync", scenario("three-tier"), "--store", scratch())
        self.assertEqual({l["cells"][0]["content"]: l["cells"][3]["content"] for l in lines},
                         {h["host"]: h["category"] for h in answer["hosts"]})

    def test_critical_path(self):
        """A derived output for a thread has the totals of `weft critpath` on the same interval."""
        log = load(scenario("three-tier"), "ground-truth.json")["log"]["client"][4]
        offset = load(scenario("three-tier"), "true-sync.json")["to_host_tsc_ns"]["client"]["metadata_clock_offset_ns"]
        store = scratch()
        shift = int(self.json("critpath", scenario("three-tier"), "--store", store, "--thread", "client:204", "--begin",
                              log["t_send"] + offset,
                              "--end", log["t_recv"] + offset)["query"]["begin"])
        begin, end = shift, shift + log["t_recv"] - log["t_send"]
        truth = self.critpath(scenario("three-tier"), store, "client:204", begin, end)
        made = self.server.ask("POST", f"{self.outputs}/{PATH}", {
            "name": "request 5", "sourceTypeId": self.server.get(f"{self.outputs}/{PATH}/configTypes").json[0]["id"],
            "parameters": {"thread": "client:204", "begin": begin, "end": end}})
        self.assertEqual(made.status, 200, made)
        derived = made.json
        entries = self.entries("timeGraph", derived["id"])
        rows = self.model("timeGraph", derived["id"], "states", requested_items=[e["id"] for e in entries],
                                 requested_timerange={"start": begin, "end": end, "nbTimes": 20001})["rows"]
        ours, total = Counter(), Counter()
        for row in rows:
            for s in row["states"]:
                if s.get("style"):
                    ours[s["style"]["parentKey"].split(",")[0].lower().replace("_", "-")] += s["end"] - s["start"]
        for t in truth["totals"]:
            total[t["state"]] += t["duration"]
        for state, ns in total.items():
            self.assertAlmostEqual(ours[state], ns, delta=0.02 * (end - begin), msg=f"{state}: {ours} {total}")
        self.assertTrue(self.model("timeGraph", derived["id"], "arrows",
                                   requested_timerange={"start": begin, "end": end, "nbTimes": 1000}))


class Histograms(Case):
    """Bin for bin, whatever the size: of kernel and user space, with losses, of one clock and of several; and of the
    trace that WEFT_TRACE names."""

    SIZES = (1, 2, 3, 10, 47, 200, 300, 1000, 1500, 2000, 3000, 20000)

    def counts(self, times, at):
        before = [bisect.bisect_right(times, t) for t in at]
        return [before[0] - bisect.bisect_left(times, at[0])] + [b - a for a, b in zip(before, before[1:])]

    @staticmethod
    def times_of(path):
        times = array.array("q")
        with subprocess.Popen(["babeltrace2", "--clock-seconds", "--no-delta", path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL) as run:
            times.extend(int(line[1:21].replace(b".", b"")) for line in run.stdout)
        if run.returncode:
            raise AssertionError(f"babeltrace2 {path} ended with {run.returncode}")
        return times

    def check(self, path):
        times = self.times_of(path)
        dice = new_dice(12)
        with Server(path, "--no-sync") as server:
            x = server.first()
            output = f"/experiments/{x['UUID']}/outputs/XY/{HISTOGRAM}"
            entries = server.model(f"{output}/tree")["entries"]
            totals = [e["id"] for e in entries if e["labels"][0] == "Total"]
            one = times[dice.randrange(len(times))]
            for begin, end in ((x["start"], x["end"]), (one - 10**7, one + 10**7), (one, one)):
                for n in self.SIZES:
                    with self.subTest(trace=path, begin=begin, end=end, n=n):
                        series = server.model(f"{output}/xy", {
                            "requested_timerange": {"start": begin, "end": end, "nbTimes": n},
                            "requested_items": totals})["series"]
                        by_id = {s["seriesId"]: s for s in series}
                        self.assertEqual(set(by_id), set(totals))
                        truth = self.counts(times, series[0]["xValues"])
                        self.assertEqual(by_id[totals[0]]["yValues"], truth)
                        if len(totals) > 1:
                            each = zip(*(by_id[i]["yValues"] for i in totals[1:]))
                            self.assertEqual([sum(v) for v in each], truth)

    def test_of_recordings(self):
        need("babeltrace2")
        for name in ("traces/three-tier", "traces/lost-events", "traces-public/context-switches-ust"):
            path = os.path.join(DATA, name)
            if have(path):
                self.check(path)
        if "WEFT_TRACE" in os.environ:
            self.check(os.environ["WEFT_TRACE"])

    def test_of_a_large_one(self):
        need("babeltrace2", "zstd")
        archive = os.path.join(DATA, "traces-large", "big-20s.tar.zst")
        if have(archive):
            folder = scratch()
            subprocess.run(["tar", "-C", folder, "--zstd", "-xf", archive], check=True)
            self.check(os.path.join(folder, "big-20s"))


if __name__ == "__main__":
    main()
