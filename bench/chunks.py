#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same questions to a recording's store of one pass and to one of many chunks: processor time of each, and how many
times as much the chunks cost.

    bench/chunks.py [--build DIR] [--events N] [--chunks N] [--trace DIR] [--rounds N] [--instructions] [--most RATIO]

Asks two servers, one on each store, in turn, the least of several rounds counts; and verbs, likewise. --instructions:
counts instructions instead, by callgrind (some minutes): other work on the machine does not change them. Exit status 1
when a question costs more than --most times as much (1.1), as long as the difference is more than a microsecond or
10 000 instructions a request.
The trace is made by bench/make_trace unless one is named."""
import argparse
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time

from serve import EVENTS, THREAD_STATUS, Server

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
RESOURCES = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ResourcesStatusDataProvider"
CPU = "org.eclipse.tracecompass.analysis.os.linux.core.cpuusage.CpuUsageDataProvider"
IO = "org.eclipse.tracecompass.incubator.kernel.core.io.per.process"
DISKS = "org.eclipse.tracecompass.analysis.os.linux.core.inputoutput.DisksIODataProvider"
HISTOGRAM = "org.eclipse.tracecompass.internal.tmf.core.histogram.HistogramDataProvider"
TYPES = "org.eclipse.tracecompass.analysis.os.linux.core.statistics.StatisticsDataProvider"
PATH = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"
LATENCY = "org.eclipse.tracecompass.analysis.timing.core.segmentstore."
DENSITY = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider:"
SCATTER = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.scatter.dataprovider:"
SYSCALLS = "org.eclipse.tracecompass.analysis.os.linux.latency.syscall"
LEAST = {"us": 1, "instructions": 10_000}  # less than this is no difference that anybody notices


class Asked(Server):
    """A server on one store, whose costs are counted."""

    def __init__(self, options, store, trace):
        self.dumps = tempfile.mkdtemp(dir=options.dir) if options.instructions else None
        counted = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={self.dumps}/out",
                   "--vgdb-poll=1000000"] if self.dumps else []
        super().__init__(*counted, os.path.join(options.build, "weft"), "serve", "--quiet", "--listen", "127.0.0.1:0",
                         "--store", store, trace)
        self.x = self.opened()
        self.outputs = f"/tsp/api/experiments/{self.x['UUID']}/outputs"
        self.line = http.client.HTTPConnection(self.host, timeout=600)
        self.counts = 0

    def post(self, what, body):
        """Status and text of the answer."""
        for _ in range(10000):
            self.line.request("POST", self.outputs + what, json.dumps(body))
            answer = self.line.getresponse()
            data = answer.read()
            if b'"status":"RUNNING"' not in data:
                return answer.status, data
            time.sleep(0.001)
        sys.exit(f"{what} does not end")

    def control(self, what):
        subprocess.run(["callgrind_control", what, str(self.process.pid)], check=True, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)

    def cost_of(self, requests):
        """Processor time in us, or instructions."""
        if self.dumps:
            self.control("--zero")
        clock = ~self.process.pid << 3 | 2  # CPUCLOCK_SCHED of the process
        before = time.clock_gettime_ns(clock)
        said = [self.post(*r) for r in requests]
        spent = (time.clock_gettime_ns(clock) - before) / 1000
        if self.dumps:
            self.counts += 1
            self.control("--dump")
            with open(f"{self.dumps}/out.{self.counts}", encoding="utf-8") as f:
                spent = int(re.search(r"^(?:summary|totals): (\d+)", f.read(), re.M)[1])
        return spent, said


def questions(server, dice, number):
    """(name, [(what, body), …]); another place in each round, so that none finds what another left."""
    x = server.x
    length = x["end"] - x["start"]

    def tree(kind, output):
        model = json.loads(server.post(f"/{kind}/{output}/tree", {"parameters": {}})[1])["model"]
        return [e["id"] for e in (model or {"entries": []})["entries"] if e.get("hasData", True)]

    def span(share):
        begin = x["start"] + dice.randint(0, int(length * (1 - share)))
        return {"start": begin, "end": begin + int(length * share)}

    def rows(kind, operation, output, some, share, n, times=1):
        return [(f"/{kind}/{output}/{operation}", {"parameters": {
            "requested_timerange": {**span(share), "nbTimes": n, "nbSamples": n}, "requested_items": some}})
            for _ in range(times)]

    threads, resources = tree("timeGraph", THREAD_STATUS), tree("timeGraph", RESOURCES)
    for name, output, ids in (("threads", THREAD_STATUS, threads), ("CPUs and interrupts", RESOURCES, resources)):
        some = sorted(dice.sample(ids, min(30, len(ids))))
        for share in (1, 0.1, 0.001):
            yield (f"states of {len(some)} {name} × 1000, {share:g} of the time",
                   rows("timeGraph", "states", output, some, share, 1000))
    yield "arrows, a hundredth", rows("timeGraph", "arrows", THREAD_STATUS, threads, 0.01, 1000)
    yield "100 tooltips", [(f"/timeGraph/{THREAD_STATUS}/tooltip", {"parameters": {
        "requested_times": [span(0)["start"]], "requested_items": [entry],
        "requested_element": {"elementType": "state", "entryId": entry}}}) for entry in dice.choices(threads, k=100)]
    for name, output in (("threads", THREAD_STATUS), ("CPUs and interrupts", RESOURCES)):
        yield f"tree of {name}", [(f"/timeGraph/{output}/tree", {"parameters": {}})]
    for name, output in (("CPU usage", CPU), ("bytes of threads", IO), ("bytes of disks", DISKS),
                         ("histogram", HISTOGRAM)):
        ids = tree("XY", output)
        some = sorted(dice.sample(ids, min(30, len(ids))))
        for share in (1, 0.01):
            yield f"{name}, {len(some)} × 1000, {share:g} of the time", rows("XY", "xy", output, some, share, 1000)
    in_range = lambda output, share: [(f"/data/{output}/tree", {"parameters": {
        "requested_timerange": span(share), "isFiltered": True}})]
    yield "statistics of system calls, a tenth", in_range(LATENCY + "SegmentStoreStatisticsDataProvider:" + SYSCALLS,
                                                          0.1)
    yield "event types, a tenth", in_range(TYPES, 0.1)
    for name, output, kind in (("points", SCATTER + SYSCALLS, "XY"), ("density", DENSITY + SYSCALLS, "genericXY")):
        yield f"{name} of system calls, a tenth", rows(kind, "xy", output, tree(kind, output), 0.1, 1000)
    for name, output in (("system calls", LATENCY + "SegmentStoreTableDataProvider:" + SYSCALLS),
                         ("flows", "weft.flows"), ("events", EVENTS)):
        first = json.loads(server.post(f"/table/{output}/lines", {"parameters": {
            "requested_table_index": 0, "requested_table_count": 1}})[1])["model"]
        yield f"20 pages of the table of {name}", [(f"/table/{output}/lines", {"parameters": {
            "requested_table_index": dice.randrange(max(1, first["size"] - 50)), "requested_table_count": 50}})
            for _ in range(20)]
    entries = json.loads(server.post(f"/timeGraph/{THREAD_STATUS}/tree", {"parameters": {}})[1])["model"]["entries"]
    named = sorted({f"{e['metadata']['hostId'][0]}:{e['metadata']['TID'][0]}" for e in entries
                    if "TID" in e.get("metadata", {}) and e["metadata"]["TID"][0] > 0})
    yield "40 critical paths, a tenth", [(f"/{PATH}", {"name": f"{number} {i}", "sourceTypeId": "weft.critical-path",
                                                       "parameters": {"thread": thread, **span(0.1)}})
                                         for i, thread in enumerate(dice.choices(named, k=40))]


def ask_paths(server, made):
    """Trees of the paths that were asked for: they are walked then."""
    return [(f"/timeGraph/{json.loads(data)['id']}/tree", {"parameters": {}}) for status, data in made if status == 200]


class Table:
    def __init__(self, options):
        self.options, self.best, self.n = options, {}, {}
        self.unit = "instructions" if options.instructions else "us"

    def add(self, name, costs, n):
        """costs: of the one pass and of the chunks, for n requests."""
        old = self.best.get(name, costs)
        self.best[name] = tuple(map(min, old, costs))
        self.n[name] = n

    def show(self):
        """Prints the table; are all within the limit?"""
        good = True
        print(f"| question | one pass, {self.unit} | chunks | ratio |\n| --- | --- | --- | --- |")
        for name, (one, many) in self.best.items():
            ratio = many / one if one else 1
            over = ratio > self.options.most and (many - one) / self.n[name] > LEAST[self.unit]
            good &= not over
            print(f"| {name} | {one:,.0f} | {many:,.0f} | {'**' * over}{ratio:.2f}{'**' * over} |")
        return good


def ask_servers(options, trace, stores, table):
    servers = [Asked(options, store, trace) for store in stores]
    try:
        for number in range(options.rounds):
            for name, requests in questions(servers[0], random.Random(number), number):
                both = [s.cost_of(requests) for s in servers]
                table.add(name, [cost for cost, _ in both], len(requests))
                derived = "critical" in name  # answers tell when they were made
                if both[0][1] != both[1][1] and not derived:
                    sys.exit(f"{name}: the chunks say something else")
                if derived:
                    both = [s.cost_of(ask_paths(s, said)) for s, (_, said) in zip(servers, both)]
                    table.add(f"trees of {name}", [cost for cost, _ in both], len(requests))
    finally:
        for s in servers:
            s.line.close()
            s.stop()


def spent_by(options, *verb):
    """Processor time of a run in us, or its instructions."""
    if options.instructions:
        out = os.path.join(options.dir, "verb")
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", *verb], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(out, encoding="utf-8") as f:
            return int(re.search(r"^(?:summary|totals): (\d+)", f.read(), re.M)[1])
    child = subprocess.Popen(verb, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = status
    return (used.ru_utime + used.ru_stime) * 1e6


def ask_verbs(options, trace, stores, table):
    weft = os.path.join(options.build, "weft")
    said = subprocess.run([weft, "threads", trace, "--store", stores[0], "--all", "--format", "json"], check=True,
                          stdout=subprocess.PIPE).stdout
    threads = [f"{t['host']}:{t['tid']}" for t in json.loads(said)]
    thread = random.Random(1).choice([t for t in threads if threads.count(t) == 1])
    for _ in range(options.rounds):
        for verb in (("threads", "--all"), ("sync",), ("critpath", "--thread", thread)):
            table.add(f"weft {verb[0]}", [spent_by(options, weft, verb[0], trace, "--store", store, *verb[1:])
                                          for store in stores], 1)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--events", type=int, default=2_000_000)
    p.add_argument("--chunks", type=int, default=16)
    p.add_argument("--trace")
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--instructions", action="store_true")
    p.add_argument("--most", type=float, default=1.1)
    options = p.parse_args()
    options.dir = tempfile.mkdtemp(prefix="weft-chunks-")
    try:
        trace, weft = options.trace, os.path.join(options.build, "weft")
        if not trace:
            trace = os.path.join(options.dir, "trace")
            subprocess.run([os.path.join(options.build, "bench", "make_trace"), trace, str(options.events)], check=True,
                           stdout=subprocess.DEVNULL)
        stores = [os.path.join(options.dir, name) for name in ("one", "many")]
        for store, chunks in zip(stores, (1, options.chunks)):
            memory = 32 * (options.events * 2 if chunks == 1 else options.events // chunks + 1)
            subprocess.run([weft, "index", "--quiet", trace, "--store", store, "--threads", "1", "--memory",
                            f"{max(memory, 4096 * 32) / 1024:.0f}K"], check=True, stdout=subprocess.DEVNULL)
            print(sum(name.startswith("chunk.") for _, _, names in os.walk(store) for name in names), "chunks",
                  file=sys.stderr)
        table = Table(options)
        ask_servers(options, trace, stores, table)
        ask_verbs(options, trace, stores, table)
        sys.exit(0 if table.show() else 1)
    finally:
        shutil.rmtree(options.dir, ignore_errors=True)


if __name__ == "__main__":
    main()
