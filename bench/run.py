#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures weft beside babeltrace2 on the same files and prints a Markdown table (`make bench`).

Goals and floors are those of DESIGN section 9, for one core of its reference machine. Absolute figures move with the
machine; the last column, weft against babeltrace2 in the same run, does not. Files are read once before each
measurement (warm page cache); the best of several runs counts.

Opening many traces is measured with 8 of them for babeltrace2 and scaled up.

The long trace is made by bench/make_trace (100 M events, 2.5 GB, and its stores, in --tmp; --made N for another length,
0 for none); beside it stands a short one of the same making, which shows what grows with the length.

Traces: $WEFT_DATA/traces-large/big-20s.tar.zst (2.84 M events, 2 streams), unpacked to a temporary directory, or --big
DIR.
"""
import argparse
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

import serve

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import postgres_server  # noqa: E402

DATA = os.environ.get("WEFT_DATA") or os.path.join(ROOT, "..", "shared", "data")
MARK = ("<!-- table: made by bench/run.py -->", "<!-- end of table -->")


def run(args, repeat=1, one_core=True, check=True):
    """(seconds of the fastest run, stdout of the last run). One core: the whole process is kept on one CPU."""
    if one_core and shutil.which("taskset"):
        args = ["taskset", "-c", str(max(os.sched_getaffinity(0)))] + args
    best, out = None, b""
    for _ in range(repeat):
        begin = time.perf_counter()
        done = subprocess.run(args, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        seconds = time.perf_counter() - begin
        if check and done.returncode:
            sys.exit(f"{' '.join(args)}: exit {done.returncode}: {done.stderr.decode()[-500:]}")
        best, out = min(best or seconds, seconds), done.stdout
    return best, out


def run_to_null(args, repeat=1):
    """Like run, with the output thrown away unread, as in `… > /dev/null`."""
    return run(["sh", "-c", 'exec "$@" >/dev/null', "sh"] + args, repeat)[0]


class Bench:
    def __init__(self, options):
        self.options = options
        self.build = os.path.abspath(options.build)
        self.weft = os.path.join(self.build, "weft")
        self.dir = tempfile.mkdtemp(prefix="weft-bench-", dir=options.tmp)
        self.rows = []
        self.babeltrace = None if options.alone else shutil.which("babeltrace2")

    def row(self, what, goal, floor, measured, unit, against=None, less_is_better=False, peer="babeltrace2"):
        """measured, against (the peer's figure), goal and floor: numbers in `unit`, or None."""
        ratio = None
        if measured and against:
            ratio = against / measured if less_is_better else measured / against
        held = ""
        if measured is not None and floor is not None:
            held = "yes" if (measured <= floor if less_is_better else measured >= floor) else "**no**"
        def show(v):
            return "" if v is None else (f"{v:,.3g} {unit}" if v < 1000 else f"{v:,.0f} {unit}").replace(",", " ")

        self.rows.append((what, show(goal), show(floor), show(measured), f"{peer}: {show(against)}" if against else "",
                          "" if ratio is None else f"{ratio:.3g}×" if ratio < 1000 else f"{ratio:.0f}×", held))
        print(f"{what}: {show(measured)}" + (f" ({peer}: {show(against)})" if against else ""), file=sys.stderr)

    def program(self, name, *args, repeat=None):
        """JSON objects that a bench program prints; the fastest run per name of measurement. None when it is not built.
        """
        path = os.path.join(self.build, "bench", "bench_" + name)
        if not os.path.exists(path):
            print(f"bench_{name} is not built", file=sys.stderr)
            return {}
        best = {}
        for _ in range(repeat or self.options.repeat):
            _, out = run([path, *args])
            for line in out.splitlines():
                found = json.loads(line)
                key = found["bench"]
                if key not in best or found.get("seconds", 0) < best[key].get("seconds", 0):
                    best[key] = found
        return best

    # ---- traces
    # ---------------------------------------------------------------------------------------------------------------

    def unpack(self):
        if self.options.big:
            return os.path.abspath(self.options.big)
        archive = os.path.join(DATA, "traces-large", "big-20s.tar.zst")
        if not os.path.exists(archive):
            sys.exit(f"{archive} is absent: set WEFT_DATA, or name a trace with --big DIR")
        with subprocess.Popen(["zstd", "-dc", archive], stdout=subprocess.PIPE) as unpacked:
            subprocess.run(["tar", "-xf", "-", "-C", self.dir], stdin=unpacked.stdout, check=True)
        return os.path.join(self.dir, "big-20s")

    def many(self, trace, n):
        """n traces of distinct hosts: metadata of their own (host name, clock), stream files shared with the original
        by links."""
        source = trace_dir(trace)
        text = plain_metadata(os.path.join(source, "metadata"))
        top = os.path.join(self.dir, f"many-{n}")
        for i in range(n):
            own = text
            for pattern, value in ((r'hostname = "[^"]*"', f'hostname = "node{i:03}"'),
                                   (r'(clock \{[^}]*uuid = )"[^"]*"', rf'\1"{uuid.UUID(int=0x1000000 + i)}"'),
                                   (r"(clock \{[^}]*offset = )(\d+)", lambda m: m[1] + str(int(m[2]) + 1000003 * i))):
                own, changed = re.subn(pattern, value, own, count=1)
                assert changed, f"the metadata has no {pattern}"
            place = os.path.join(top, f"node{i:03}", "kernel")
            os.makedirs(os.path.join(place, "index"))
            with open(os.path.join(place, "metadata"), "w", encoding="utf-8") as f:
                f.write(own)
            for name in os.listdir(source):
                if name not in ("metadata", "index") and os.path.isfile(os.path.join(source, name)):
                    link(os.path.join(source, name), os.path.join(place, name))
            for name in os.listdir(os.path.join(source,
                                                "index")) if os.path.isdir(os.path.join(source, "index")) else []:
                link(os.path.join(source, "index", name), os.path.join(place, "index", name))
        return top

    # ---- measurements
    # ---------------------------------------------------------------------------------------------------------

    def decode(self, trace, events):
        against = None
        if self.babeltrace:
            against = events / run_to_null([self.babeltrace, "-o", "dummy", trace], 2) / 1e6
        path, speeds, opening = os.path.join(self.build, "bench", "bench_decode"), {}, 0
        if os.path.exists(path):
            text = run([path, trace])[1].decode()  # makes its own rounds and tells the best
            opening = float(re.search(r"opened in ([0-9.]+) ms", text)[1]) / 1e3
            for what, n, ms in re.findall(r"(?m)^(\w[^\d]*?) +(\d+) events +([0-9.]+) ms", text):
                speeds[what] = int(n) / (opening + float(ms) / 1e3) / 1e6
        for key, what, goal, floor in (("one stream, fields", "decode + kernel fields, one stream", 100, 60),
                                       ("merged, fields", "decode + kernel fields, merged (2 streams)", 60, 40)):
            self.row(what, goal, floor, speeds.get(key), "M events/s", against)

    def text(self, trace, events):
        # What starting costs (metadata) is part of both.
        mine = run_to_null([self.weft, "events", trace], self.options.repeat)
        other = self.babeltrace and run_to_null([self.babeltrace, "--clock-seconds", "--no-delta", trace])
        self.row("`events` text output", other and 10 * events / other / 1e6, other and 6 * events / other / 1e6,
                 events / mine / 1e6, "M events/s",
                 other and events / other / 1e6)

    def index(self, trace, events, name="big-20s", repeat=None):
        seconds = None
        for i in range(repeat or self.options.repeat):
            store = os.path.join(self.dir, f"store-{i}-{events}")
            s, _ = run([self.weft, "index", trace, "--store", store])
            seconds = min(seconds or s, s)
        self.row(f"`index` (graph, flows, states), {name}", 15, 8, events / seconds / 1e6, "M events/s")
        self.row(f"states store, {name}: share of the trace", None, 50,
                 100 * bytes_below(store, "states") / bytes_below(trace), "%", less_is_better=True)
        return store

    def paths(self, trace, store, name):
        found = self.program("path", store, trace)
        if "open indexed" in found:
            self.row(f"open when indexed, {name}", 0.3, None, found["open indexed"]["seconds"], "s",
                     less_is_better=True)
        if "path first" in found:
            self.row(f"critical path in process, {name}: the first one, beyond 1 µs per segment", 1, 20,
                     found["path first"]["worst_beyond_1us_per_segment_ms"], "ms", less_is_better=True)
        whole, short = found.get("path whole life"), found.get("path thousandth of life")
        if whole:
            self.row(f"critical path in process, {name}: worst of {whole['walks']} threads, beyond 1 µs per segment", 1,
                     20,
                     whole["worst_beyond_1us_per_segment_ms"], "ms", less_is_better=True)
            self.row(f"critical path in process, {name}: per segment", 1, 5, whole["us_per_segment"], "µs",
                     less_is_better=True)
        if short:
            self.row(f"critical path in process, {name}: short windows, mean", None, None, short["mean_ms"], "ms",
                     less_is_better=True)

    def clocks(self, trace):
        """1000 hosts with 10 peers each: only pairs that talk are looked at, and every map holds the truth."""
        found = self.program("sync", trace, repeat=1)
        if not found:
            return
        sync, again = found["sync"], found["another reference"]
        if sync["wrong"] or again["wrong"]:
            sys.exit(f"bench_sync: {sync['wrong']} and {again['wrong']} maps do not hold the truth")
        packets = f"{sync['packets'] / 1e6:.3g} M packets"
        self.row(f"clocks of 1000 hosts, {sync['pairs']} of {sync['of']} pairs talk, {packets}", None, 10,
                 sync["seconds"], "s", less_is_better=True)
        self.row("another reference of 1000 hosts, from the store", None, 2, again["seconds"], "s", less_is_better=True)

    def spans(self):
        """What `weft-span run` adds to a command: processor time of it and its processes, and time that passes."""
        def cost(*args, runs=300):
            before, begin = os.times(), time.perf_counter()
            for _ in range(runs):
                os.waitpid(os.posix_spawnp(args[0], args, env), 0)
            after, passed = os.times(), time.perf_counter() - begin
            return [1000 * s / runs for s in (after.children_user + after.children_system - before.children_user
                                              - before.children_system, passed)]

        env = {"PATH": os.environ["PATH"], "WEFT_SPAN_SPOOL": os.path.join(self.dir, "spans")}
        plain = cost("true")
        wrapped = cost(os.path.join(self.build, "weft-span"), "run", "true")
        for i, what in enumerate(("processor time", "time")):
            self.row(f"`weft-span run true`, kept in the spool, beyond `true`: {what}", 1.5, 5,
                     wrapped[i] - plain[i], "ms", plain[i], less_is_better=True, peer="true")

    def collected(self):
        """Spans into the collector's log and its database: by processor time, so that a slow disk does not count."""
        found = self.program("spans")
        if found:
            self.row("spans of OTLP protobuf, batches of 512, acknowledged (synced log)", 200, 65,
                     found["acknowledged"]["per_cpu_s"] / 1e3, "k/s")
            self.row("spans into the collector's database", None, None, found["database"]["per_cpu_s"] / 1e3, "k/s",
                     found["plain"]["per_cpu_s"] / 1e3, peer="plain SQLite inserts")
        self.asked("SQLite", os.path.join(self.dir, "asked"))
        try:
            server = postgres_server.Postgres()
        except (unittest.SkipTest, AssertionError) as why:
            print(f"PostgreSQL is not measured: {why}", file=sys.stderr)
            return
        found = self.program("spans", "500000", server.url())
        self.asked("PostgreSQL", server.url(server.new_schema()))
        server.remove()
        for plain, peer in (("plain copy", "plain COPY"), ("plain insert", "plain INSERTs")):
            if found:
                self.row(f"spans into PostgreSQL, both sides' processor time, beside {peer}", None, None,
                         found["postgres"]["per_cpu_s"] / 1e3, "k/s", found[plain]["per_cpu_s"] / 1e3, peer=peer)

    def asked(self, kind, store, spans=10**6):
        """Queries over HTTP to a store of many spans; the middle time of many."""
        _, out = run([sys.executable, os.path.join(ROOT, "bench", "spans_asked.py"), store, str(spans)], one_core=False)
        found = {line["bench"]: line for line in map(json.loads, out.splitlines())}
        for key in ("trace by id", "20 newest of a service", "20 newest by a tag that 1 of 100 000 has",
                    "filter: an attribute that 1 of 100 000 has", "filter: an attribute that none has",
                    "filter: an operation", "filter: a service and an attribute that 1 of 100 000 has", "dependencies"):
            self.row(f"a million spans in {kind}: {key}", 10 if key == "trace by id" else 100, 1000,
                     found[key]["p50_ms"], "ms", less_is_better=True)

    def json(self):
        found = self.program("json")
        for key, what in (("json states", "JSON of a states answer (30 rows of 1000), into memory"),
                          ("json xy", "JSON of an XY answer (30 series of 1000)")):
            if key in found:
                self.row(what, 1, None, found[key]["gb_per_second"], "GB/s", found[key]["memcpy_gb_per_second"],
                         peer="memcpy")

    def queries(self, trace, store, name):
        """Sampled queries before any JSON is written."""
        found = self.program("states", "--queries", store, trace, repeat=1)
        for key, what in (("threads full range", "full range"), ("threads tenth", "a tenth"),
                          ("threads thousandth", "a thousandth")):
            q = found.get("states " + key)
            if q:
                self.row(f"time-graph query, {name}: {q['rows']} rows × {q['times']} pixels, {what}", 5, 20, q["ms"],
                         "ms", less_is_better=True)

    def event_lines(self, trace, store, name):
        """Lines of the events table at any place."""
        found = self.program("table", store, trace)
        if "table first" in found:
            self.row(f"line of the events table, {name}: the first after opening", 5, None, found["table first"]["ms"],
                     "ms", less_is_better=True)
            self.row(f"line of the events table, {name}: median of 400 places", 1, 5, found["table line"]["median_ms"],
                     "ms", less_is_better=True)

    def make(self, events, *more):
        trace = os.path.join(self.dir, f"made-{events}")
        _, out = run([os.path.join(self.build, "bench", "make_trace"), trace, *map(str, (events, *more))])
        return trace, json.loads(out)["events"]

    def made(self, wanted, requests=False):
        """A generated trace; removed when it has been measured."""
        trace, events = self.make(wanted)
        name = f"made, {events / 1e6:.3g} M events"
        run_to_null(["find", trace, "-type", "f", "-exec", "cat", "{}", "+"])
        store = self.index(trace, events, name, 1)
        self.queries(trace, store, name)
        self.event_lines(trace, store, name)
        self.paths(trace, store, name)
        if requests:
            serve.measure(self, trace, store)
        serve.viewer(self, trace, store, name)
        shutil.rmtree(trace)
        shutil.rmtree(store)

    def live(self, wanted):
        """What is fed packet by packet, beside the same as files."""
        trace, events = self.make(wanted)
        stores = os.path.join(self.dir, "store-live")
        found = self.program("live", trace, stores, "10", repeat=1)["live"]
        name = f"made, {events / 1e6:.3g} M events"
        self.row(f"indexing what is fed packet by packet, {name}", 3, None, found["live_mevents_s"], "M events/s",
                 found["index_mevents_s"], peer="files")
        self.row(f"… and asked {found['questions']} times", 1, None, found["asked_mevents_s"], "M events/s",
                 found["index_mevents_s"], peer="files")
        shutil.rmtree(trace)
        shutil.rmtree(stores)

    def many_files(self, wanted):
        """Bytes of threads that use thousands of files at a time: each has a row of its own."""
        cpus, threads, files = 1, 2, 5000
        trace, events = self.make(wanted, cpus, threads, files)
        store = os.path.join(self.dir, "store-files")
        run([self.weft, "index", trace, "--store", store])
        q = self.program("states", "--queries", store, trace, repeat=1).get("states bytes read full range")
        if q:
            self.row(f"bytes read over time, made, {events / 1e6:.3g} M events: {q['rows']} threads × {q['times']} "
                     f"pixels, {files} files each", 5, 20, q["ms"], "ms",
                     less_is_better=True)
        shutil.rmtree(trace)
        shutil.rmtree(store)

    def open(self, trace):
        n = self.options.traces
        top = self.many(trace, n)
        found = self.program("open", top).get("open")
        against = memory = None
        if self.babeltrace:
            against, memory = babeltrace_open(self.babeltrace, self.many(trace, 8))
            against, memory = against / 8 * n, memory / 8
        if found and found["traces"] != n:
            sys.exit(f"bench_open found {found['traces']} of {n} traces")
        self.row(f"{n} traces opened", 1 * n / 256, 2 * n / 256, found and found["seconds"], "s", against,
                 less_is_better=True)
        self.row("memory per further trace", 100, None, found and found["bytes_per_further_trace"] / 1000, "kB",
                 memory and memory / 1000, less_is_better=True)
        m = self.program("merge", top, repeat=1).get("merge")
        self.row(f"decode, merged ({m['streams'] if m else 2 * n} streams)", 25, 15,
                 m and m["events"] / m["seconds"] / 1e6, "M events/s")

    def all(self):
        big = self.unpack()
        events = json.load(open(os.path.join(big,
                                             "verify.json"))) if os.path.exists(os.path.join(big,
                                                                                             "verify.json")) else None
        events = sum(t["events"] for t in events["traces"].values()) if events else self.options.events
        if not events:
            sys.exit("how many events does --big hold? say so with --events N")
        print(f"{events} events in {big}", file=sys.stderr)
        run_to_null(["find", big, "-type", "f", "-exec", "cat", "{}", "+"])
        self.decode(big, events)
        self.text(big, events)
        store = self.index(big, events)
        self.queries(big, store, "big-20s")
        self.event_lines(big, store, "big-20s")
        self.paths(big, store, "big-20s")
        if self.options.made:
            self.made(self.options.made // 30, requests=True)
            self.made(self.options.made)
            self.many_files(self.options.made // 12)
            self.live(self.options.made // 30)
        self.clocks(big)
        self.json()
        self.spans()
        self.collected()
        self.open(big)

    def table(self):
        head = ("what", "goal", "floor", "weft", "peer, same run", "ratio", "floor held")
        lines = ["| " + " | ".join(r) + " |" for r in [head, ("---",) * len(head)] + self.rows]
        version = subprocess.run([self.babeltrace, "--version"], capture_output=True,
                                 text=True).stdout.split("\n")[0] if self.babeltrace else ""
        note = f"{cpu_model()}, Linux {platform.release()}, one core, page cache warm. {version}"
        return "\n".join([*lines, "", note.strip()])


def bytes_below(top, name=None):
    """Size of all files, or of those of that name."""
    return sum(os.path.getsize(os.path.join(path, f)) for path, _,
               files in os.walk(top) for f in files if name in (None, f))


def trace_dir(trace):
    """The one directory below `trace` that holds a metadata file."""
    found = [d for d, _, names in os.walk(trace) if "metadata" in names]
    if len(found) != 1:
        sys.exit(f"{trace}: {len(found)} traces, one is needed")
    return found[0]


def link(source, target):
    try:
        os.link(source, target)
    except OSError:  # another file system
        os.symlink(source, target)


def plain_metadata(path):
    """The text of a metadata file, taken out of its packets."""
    with open(path, "rb") as f:
        data = f.read()
    if data[:4] != struct.pack("<I", 0x75D11D57):
        return data.decode()
    text, at = b"", 0
    while at + 37 <= len(data):
        content, packet = struct.unpack_from("<II", data, at + 24)
        text += data[at + 37:at + content // 8]
        at += packet // 8
    return "/* CTF 1.8 */\n" + text.decode()


def babeltrace_open(program, top):
    """Seconds and resident bytes of babeltrace2 opening the traces below `top` and reading nothing more than it must.
    """
    begin = time.perf_counter()
    child = subprocess.Popen([program, "-o", "dummy", "--end=1", top], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    _, _, usage = os.wait4(child.pid, 0)
    return time.perf_counter() - begin, usage.ru_maxrss * 1024


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        m = re.search(r"model name\s*:\s*(.*)", f.read())
    return m[1] if m else platform.machine()


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--big", help="the unpacked big-20s (or another single trace, with --events)")
    p.add_argument("--events", type=int, help="events in --big")
    p.add_argument("--traces", type=int, default=256, help="distinct hosts to open at once")
    p.add_argument("--made", type=int, default=100_000_000, help="events of the generated trace (0: none)")
    p.add_argument("--repeat", type=int, default=3)
    p.add_argument("--alone", action="store_true", help="do not run babeltrace2")
    p.add_argument("--tmp", help="where to put traces and stores")
    p.add_argument("--save", help="replace the table in this Markdown file, e.g. docs/performance.md")
    options = p.parse_args()
    bench = Bench(options)
    try:
        bench.all()
        table = bench.table()
    finally:
        shutil.rmtree(bench.dir, ignore_errors=True)
    print(table)
    if options.save:
        with open(options.save, encoding="utf-8") as f:
            before, rest = f.read().split(MARK[0])
        with open(options.save, "w", encoding="utf-8") as f:
            f.write(before + MARK[0] + "\n" + table + "\n" + MARK[1] + rest.split(MARK[1])[1])


if __name__ == "__main__":
    main()
