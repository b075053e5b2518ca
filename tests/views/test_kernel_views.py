# SPDX-License-Identifier: MIT
"""Views of what only some kernel traces tell (memory …), through the server, against babeltrace2's text:
test_kernel_views.py MAKER.

The MAKER (make_trace.c) makes traces at random; recorded ones are asked too where they are."""
import bisect
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter

from graph_client import DATA, RESOURCES, Server, check_row, have, key, need, run, sample_times, seed
from graph_oracle import Oracle
from kernel_text import FIELD, LINE, Steps, Text, check_steps, dice, offered, some_range

COUNTERS = "org.eclipse.tracecompass.analysis.counters.core.CounterDataProvider"
REQUESTS = "org.eclipse.tracecompass.incubator.kernel.core.inputoutput.DiskRequestDataProvider"
IO_PER_PROCESS = "org.eclipse.tracecompass.incubator.kernel.core.io.per.process"
KVM_EXITS = "org.eclipse.incubator.overhead.xy.rate.dataprovider"
EVENT_TYPES = "org.eclipse.tracecompass.analysis.os.linux.core.statistics.StatisticsDataProvider"
MEMORY = "org.eclipse.tracecompass.analysis.os.linux.core.kernelmemoryusage"
PAGE = 4096
SWS = "org.eclipse.tracecompass.analysis.os.linux.core.swslatency.sws"
PRIORITIES = ("org.eclipse.tracecompass.internal.analysis.os.linux.core.segmentstore.PriorityStatisticsDataProvider:"
              + SWS)
PRIORITIES_NAMES = ("org.eclipse.tracecompass.internal.analysis.os.linux.core.segmentstore."
                    "PriorityThreadNameStatisticsDataProvider:" + SWS)
STATES = "org.eclipse.tracecompass.internal.tmf.core.statesystem.provider.StateSystemDataProvider"
QUEUE_STATISTICS = ["org.eclipse.tracecompass.kernel.core.inputoutput." + of + "queuestatistics"
                    for of in ("wait", "exec")]
TIMING = "org.eclipse.tracecompass.%sanalysis.timing.core.segmentstore."
LATENCY_TABLE, LATENCY_STATISTICS = (TIMING % "" + "SegmentStore" + of + "DataProvider:"
                                     for of in ("Table", "Statistics"))
LATENCY_DENSITY, LATENCY_SCATTER = (TIMING % "internal." + of
                                    for of in ("SegmentStoreDensityDataProvider:", "scatter.dataprovider:"))


def xy(server, output, items, begin, end, n, **more):
    model = server.model("/XY/%s/xy" % output, requested_timerange={"start": begin, "end": end, "nbTimes": n},
                         requested_items=items, **more)
    times = sample_times(begin, end, n)
    for s in model["series"]:
        assert s["xValues"] == times, (len(s["xValues"]), len(times))
    return times, {s["seriesId"]: s for s in model["series"]}


def xy_tree(server, output, **parameters):
    return server.model("/XY/%s/tree" % output, **parameters)["entries"]


# ---- memory ----------------------------------------------------------------------------------------------------------

def check_memory(server, text):
    assert offered(server)[MEMORY]["type"] == "TREE_TIME_XY" and offered(server)[MEMORY]["name"] == "Memory Usage"
    entries = xy_tree(server, MEMORY)
    roots = [e for e in entries if e["parentId"] == -1]
    assert len(roots) == 1 and roots[0]["labels"][1] == "Total"
    who = {roots[0]["id"]: "total"}
    for e in entries:
        if e["parentId"] != -1:
            assert e["parentId"] == roots[0]["id"] and e["metadata"]["TID"] == [int(e["labels"][1])]
            who[e["id"]] = int(e["labels"][1]) or ("idle", int(e["labels"][0].split("/")[1]))
    lives = list(who.values())
    assert set(lives) == set(text.memory), set(lives) ^ set(text.memory)
    assert len(lives) == len(set(lives)), "the traces of this test use no tid twice"
    n = 0
    for _ in range(40):
        begin, end = some_range(text)
        times, series = xy(server, MEMORY, list(who), begin, end, dice.choice((2, 30, 500)))
        assert set(series) == set(who)
        for entry, s in series.items():
            truth = text.memory[who[entry]]
            least = truth.least()
            assert s["yValues"] == [PAGE * (truth.at(t) - least) for t in times], (who[entry], begin, end)
            n += len(times)
        assert all(s["yValuesDescription"]["unit"] == "B" for s in series.values())
        active = xy_tree(server, MEMORY, isFiltered=True, requested_timerange={"start": begin, "end": end})
        moved = {w for w, steps in text.memory.items()
                 if any(begin < t <= end and steps.at(t) != steps.at(t - 1) for t in steps.times)}
        assert {who[e["id"]] for e in active} == moved | {"total"}, (begin, end, moved)
    print("memory: %d values of %d threads" % (n, len(who) - 1))


# ---- counters --------------------------------------------------------------------------------------------------------

def check_counters(server, text):
    assert offered(server)[COUNTERS]["name"] == "Counters" and offered(server)[COUNTERS]["type"] == "TREE_TIME_XY"
    entries = {e["id"]: e for e in xy_tree(server, COUNTERS)}
    who = {}
    for e in entries.values():
        path, at = [], e
        while at:
            path.insert(0, at["labels"][0])
            at = entries.get(at["parentId"])
        if e["hasData"]:
            assert path[1:3] == ["Grouped", "CPU"] and len(path) == 5, path
            who[e["id"]] = (int(path[3]), path[4])
    assert set(who.values()) == set(text.counters) and len(who) == len(text.counters) > 0
    n = 0
    for _ in range(40):
        begin, end = some_range(text)
        count = dice.choice((2, 30, 500))
        times, counted = xy(server, COUNTERS, list(who), begin, end, count)
        _, shown = xy(server, COUNTERS, list(who), begin, end, count, isCumulative=True)
        assert set(counted) == set(shown) == set(who)
        before = [times[0] - (times[1] - times[0])] + times
        for entry, (cpu, name) in who.items():
            steps = text.counters[cpu, name]
            values = [steps.at(max(t, steps.times[0])) for t in before]
            assert shown[entry]["yValues"] == values[1:], (cpu, name, begin, end)
            assert counted[entry]["yValues"] == [b - a for a, b in zip(values, values[1:])], (cpu, name, begin, end)
            n += len(times)
    assert xy(server, COUNTERS, [], text.first, text.last, 10)[1] == {}
    whole = xy(server, COUNTERS, list(who), text.first, text.last, 7)[1]
    for entry, key in who.items():
        assert (sum(whole[entry]["yValues"])
                == text.counters[key].values[-1] - text.counters[key].at(text.counters[key].times[0]))
    print("counters: %d values of %d" % (n, len(who)))


# ---- frequencies -----------------------------------------------------------------------------------------------------

def frequency_text(khz):
    if khz is not None:
        return "%.7g GHz" % (khz / 1e6) if khz >= 1e6 else "%.7g MHz" % (khz / 1e3)


def check_frequencies(server, text):
    entries = {e["id"]: e for e in server.tree(RESOURCES)}
    rows = {e["id"]: e["metadata"]["cpu"][0] for e in entries.values() if e["labels"][0].endswith(" Frequency")}
    assert sorted(rows.values()) == sorted(text.frequency) and len(text.frequency) > 1
    for entry, cpu in rows.items():
        assert entries[entry]["labels"] == ["CPU %d Frequency" % cpu]
        assert entries[entries[entry]["parentId"]]["labels"] == ["CPU %d States" % cpu]
    n = check_steps(server, text, RESOURCES, {e: text.frequency[cpu] for e, cpu in rows.items()}, frequency_text)
    most = max(v for steps in text.frequency.values() for v in steps.values)
    styles = server.model("/%s/style" % RESOURCES)["styles"]
    for entry, cpu in rows.items():
        t = text.frequency[cpu].times[len(text.frequency[cpu].times) // 2]
        khz = text.frequency[cpu].at(t)
        tip = server.tooltip(RESOURCES, entry, t)
        assert tip["Frequency"] == frequency_text(khz) and tip["CPU"] == str(cpu), tip
        state = server.states(RESOURCES, [entry], t, t + 1, 2)[entry][0]
        assert 0 <= styles[key(state)]["values"]["height"] - khz / most < 0.1, (state, khz, most)
    print("frequencies: %d states of %d CPUs" % (n, len(rows)))


# ---- everything that is stored ---------------------------------------------------------------------------------------

def paths_of(entries):
    by_id, paths = {e["id"]: e for e in entries}, {}
    for e in entries:
        path, at = [], e
        while at:
            path.insert(0, at["labels"][0])
            at = by_id.get(at["parentId"])
        paths.setdefault("/".join(path[1:]), []).append(e)
    return paths


def raw(value):
    return None if value is None else str(value)


def check_histories(server, text, oracle, rows):
    """States of threads and CPUs. rows: {entry: (what, history or TID, number of a CPU)}."""
    n = 0
    cpu_of = {entry: row[2] for entry, row in rows.items() if len(row) > 2}
    for _ in range(15):
        begin, end = some_range(text)
        count = dice.choice((2, 40, 400))
        times = sample_times(begin, end, count)
        for entry, states in server.states(STATES, list(rows), begin, end, count).items():
            what, history, *_ = rows[entry]
            for t, state in check_row(states, times, text.first, text.last).items():
                if t == text.last:
                    continue
                shown = (key(state), state.get("label"))
                if what == "Current_cpu":
                    there = [(cpu, h.at(t)) for cpu, h in oracle.cpus.items() if h.at(t)[0] == history]
                    if there:
                        cpu, (_, since, until) = there[0]
                        assert shown[1] == str(cpu) and (state["start"],
                                                         state["end"]) == (since, until or text.last), (state, there)
                    elif all(h.at(t)[0] is not None for h in oracle.cpus.values()):
                        assert shown == (None, None), (state, t)
                    n += 1
                    continue
                value, since, until = history.at(t)
                if value in (None, "before"):
                    continue
                if what == "Cpu_status":  # separate status of each thread
                    occupant = oracle.cpus[cpu_of[entry]].at(t)
                    since, until = max(since, occupant[1]), min(until or text.last, occupant[2] or text.last)
                if what in ("Status", "Cpu_status"):
                    expected = (value[0], value[0])
                elif what == "System_call":
                    expected = ("System call", value[1]) if value[0] == "System call" else (None, None)
                    if value[1] == "unknown":  # unknown to the tracer
                        expected = (expected[0], shown[1])
                else:
                    expected = (shown[0], str(value))
                assert shown == expected, (what, state, value)
                assert state["end"] == (until or text.last) and (since == history.times[0] or state["start"]
                                                                 == since), (what, state, since, until)
                n += 1
    return n


def check_states(server, text, path, old=False):
    """old: a tracer whose system calls the oracle does not know."""
    oracle = Oracle(path)
    assert (offered(server)[STATES]["type"] == "TIME_GRAPH" and offered(server)[STATES]["name"]
            == "State System Explorer")
    entries = server.tree(STATES)
    assert entries[0]["start"] == text.first and entries[0]["parentId"] == -1
    paths = paths_of(entries)
    steps = {}

    def put(path, truth):
        assert len(paths[path]) == 1, path
        steps[paths[path][0]["id"]] = truth

    for who, truth in text.memory.items():
        if who == "total":
            if truth.times:
                put("Memory", truth.stored())
        elif not isinstance(who, tuple) and len(paths["Threads/%d" % who]) == 1:
            put("Threads/%d/Memory" % who, truth.stored())
    for cpu, truth in text.frequency.items():
        put("CPUs/%d/Current_frequency" % cpu, truth)
    for (cpu, name), truth in text.counters.items():
        put("CPUs/%d/Counters/%s" % (cpu, name), truth)
    for (cpu, irq), truth in text.irqs.items():
        put("CPUs/%d/IRQs/%d" % (cpu, irq), truth)
    for irq, truth in text.irq_lines.items():
        put("IRQs/%d" % irq, truth)
    n = check_steps(server, text, STATES, steps, raw) if steps else 0

    rows = {}
    for tid, thread in oracle.threads.items():
        if not old and tid and tid not in oracle.gone and len(paths["Threads/%d" % tid]) == 1:
            for what, history in (("Status", thread.history), ("System_call", thread.history), ("Current_cpu", tid)):
                rows[paths["Threads/%d/%s" % (tid, what)][0]["id"]] = what, history
    for cpu in oracle.cpus:
        if not old:
            rows[paths["CPUs/%d/Status" % cpu][0]["id"]] = "Cpu_status", oracle.cpu_states[cpu], cpu
        rows[paths["CPUs/%d/Current_thread" % cpu][0]["id"]] = "Current_thread", oracle.cpus[cpu]
    m = check_histories(server, text, oracle, rows)
    assert m > 1000, m
    # query of every row at once: no failure, and each row with data is present
    everything = [e["id"] for e in entries if e["hasData"]]
    assert set(server.states(STATES, everything, text.first, text.last, 20)) == set(everything)
    middle = (text.first + text.last) // 2
    cpu = min(oracle.cpus)
    tip = server.tooltip(STATES, paths["CPUs/%d/Current_thread" % cpu][0]["id"], middle)
    assert tip["Attribute path"].endswith("/CPUs/%d/Current_thread" % cpu), tip
    assert tip["Value"] == str(oracle.cpus[cpu].at(middle)[0]), tip
    wanted = tip["Value"]
    filtered = server.states(STATES, list(rows), text.first, text.last, 50,
                             filter_query_parameters={"strategy": "SAMPLED",
                                                      "filter_expressions_map": {"1": ["label==" + wanted]}})
    shown = [s for states in filtered.values() for s in states if key(s)]
    assert shown and all(bool(s.get("tags", 0) & 1) == (s["label"] != wanted) for s in shown)
    print("attributes: %d states of %d counters and interrupts, %d of %d rows of threads and CPUs" % (n, len(steps), m,
                                                                                                      len(rows)))


def check_disks(server, text):
    """Checks the total of bytes read and written."""
    truth = {"Bytes_read": 0, "Bytes_written": 0}
    for _, name, fields, _ in text.events:
        if name == "block_rq_complete" and fields["rwbs"] & 7 in (1, 4) and not fields["error"]:
            truth["Bytes_written" if fields["rwbs"] & 1 else "Bytes_read"] += 512 * fields["nr_sector"]
    ours = dict.fromkeys(truth, 0)
    for path, entries in paths_of(server.tree(STATES)).items():
        if path.startswith("Disks/") and path.count("/") == 2:
            state = server.states(STATES, [entries[0]["id"]], text.last - 1, text.last, 2)[entries[0]["id"]][-1]
            ours[path.split("/")[2]] += int(state.get("label", 0))
    assert ours == truth and any(truth.values()), (ours, truth)


# ---- threads' reads and writes, exits of virtual CPUs
# ------------------------------------------------------------------

READS = {"read", "pread64", "readv", "preadv", "preadv2", "recv", "recvfrom", "recvmsg"}
WRITES = {"write", "pwrite64", "writev", "pwritev", "pwritev2", "send", "sendto", "sendmsg"}
COPIES = {"sendfile", "sendfile64", "splice", "copy_file_range"}


def count_threads(text):
    """Returns by thread: bytes read, bytes written, exits from the guest; only of threads known by switches."""
    counted = ({}, {}, {})
    current = text.before_first_switch()
    for t, name, fields, cpu in text.events:
        who = current.get(cpu)
        call = name[len("syscall_exit_"):] if name.startswith("syscall_exit_") else None
        if name == "sched_switch":
            current[cpu] = Text.who(fields["next_tid"], cpu)
        elif call and fields["ret"] > 0 and who is not None:
            for steps, calls in ((counted[0], READS), (counted[1], WRITES)):
                if call in calls or call in COPIES:
                    steps.setdefault(who, Steps(0)).add(t, fields["ret"])
        elif name in ("kvm_x86_exit", "kvm_exit") and who is not None:
            counted[2].setdefault(who, Steps(0)).add(t, 1)
    return counted


def check_thread_counters(server, text, output, name, labels, counted):
    """labels: of the entries below a thread's, or none when the thread's own has data; counted: for each {thread:
    Steps}."""
    assert (offered(server)[output]["type"], offered(server)[output]["name"]) == ("TREE_TIME_XY", name)
    n = 0
    ranges = [(text.first, text.last), (text.first, text.first + 1)] + [some_range(text) for _ in range(25)]
    for begin, end in ranges:
        entries = {e["id"]: e for e in xy_tree(server, output, requested_timerange={"start": begin, "end": end})}
        threads = {e["id"]: e["metadata"]["TID"][0] for e in entries.values() if "TID" in e.get("metadata", {})
                   and e["labels"][1]}
        grown = {w: [c[w].at(end) - c[w].at(begin - 1) if w in c else 0 for c in counted] for c in counted for w in c}
        assert sorted(threads.values()) == sorted(w for w, g in grown.items() if any(g)), (begin, end)
        root = next(e for e in entries.values() if e["parentId"] == -1)
        assert root["labels"][2:] == [str(sum(g[k] for g in grown.values())) for k in range(len(counted))]
        rows = {}
        for e in entries.values():
            if e["id"] in threads:
                assert e["labels"][2:] == [str(g) for g in grown[threads[e["id"]]]], (e, grown[threads[e["id"]]])
            if e["hasData"]:
                rows[e["id"]] = (threads[e["parentId"]],
                                 labels.index(e["labels"][0])) if labels else (threads[e["id"]], 0)
        times, series = xy(server, output, list(rows), begin, end, dice.choice((2, 30, 500)))
        assert set(series) == set(rows)
        before = [times[0] - (times[1] - times[0])] + times
        for entry, (who, k) in rows.items():
            steps = counted[k].get(who, Steps(0))
            for y, a, b in zip(series[entry]["yValues"], before, times):
                truth = (steps.at(b) - steps.at(a)) / (b - a) * 1e9
                assert abs(y - truth) <= 1e-9 * truth, (who, a, b, y, truth)
                n += 1
    print("%s: %d values of %d threads" % (name, n, len(set().union(*counted))))


def check_io(server, text):
    read, written, _ = count_threads(text)
    assert read
    check_thread_counters(server, text, IO_PER_PROCESS, "IO per process", ["Read", "Write"], [read, written])


# ---- requests of disks -----------------------------------------------------------------------------------------------

class Queues:
    """Places of the queues of disks in order of first use: (disk, waits or driver, place) -> Steps of (type, sectors).
    spans: for each queue (begin, ns, disk, type, bytes, who handed it over (None before its
    CPU's first switch), CPU of the end) of the requests that were seen to leave."""

    def __init__(self, text):
        self.places, self.steps, disks = {}, {}, []
        self.spans, current = ([], []), {}
        for t, name, fields, self.cpu in text.events:
            if name == "sched_switch":
                current[self.cpu] = Text.who(fields["next_tid"], self.cpu)
            if name not in ("block_rq_insert", "block_rq_issue", "block_rq_requeue", "block_rq_complete"):
                continue
            if fields["dev"] not in disks:
                disks.append(fields["dev"])
            disk, sector, n = disks.index(fields["dev"]), fields["sector"], fields["nr_sector"]
            if name in ("block_rq_requeue", "block_rq_complete"):
                for key, held in sorted(self.places.items()):
                    bare = held and not n and not held[1] and held[2] == self.kind(fields)
                    if key[:2] == (disk, 1) and held and (bare or (held[1] and held[0] == sector)):
                        if name == "block_rq_requeue":
                            self.put(t, key, None, done=False)
                        elif n >= held[1] or fields["error"]:
                            self.put(t, key, None)
                        else:
                            held[0], held[1] = sector + n, held[1] - n
                        break
                continue
            if name == "block_rq_issue":
                for key, held in sorted(self.places.items()):
                    if key[:2] == (disk, 0) and held and not n and not held[1] and held[2] == self.kind(fields):
                        self.put(t, key, None)
                        break
                    if key[:2] == (disk, 0) and held and held[1] and sector <= held[0] < sector + n:
                        self.put(t, key, None)
            queue = int(name == "block_rq_issue")
            place = next(i for i in range(1000) if not self.places.get((disk, queue, i)))
            kind = self.kind(fields)
            self.put(t, (disk, queue, place), [sector, n, kind, (t, 512 * n, current.get(self.cpu))], (kind, n, sector))

    @staticmethod
    def kind(fields):
        """Returns the kind. Requests of a flush have no sectors, and another place when they complete."""
        flags = fields["rwbs"]
        return "read" if flags & 4 else "write" if flags & 1 else "flush" if flags & 256 else "other"

    def put(self, t, key, held, shown=None, done=True):
        if held is None and done:
            (begin, size, who), kind = self.places[key][3], self.places[key][2]
            self.spans[key[1]].append((begin, t - begin, key[0], kind, size, who, self.cpu))
        self.places[key] = held
        self.steps.setdefault(key, Steps()).set(t, shown)


def request_text(value):
    return value and ("%s %d KiB" % (value[0], value[1] // 2) if value[1] else value[0])


NANOSECONDS = {"ns": 1, "µs": 1000, "ms": 10**6, "s": 10**9}


def shows(label, ns):
    """Returns whether the label is that duration, in four digits."""
    number, unit = label.split()
    return abs(float(number) * NANOSECONDS[unit] - ns) <= max(1, ns / 999)


def check_figures(labels, spans):
    lengths = [s[1] for s in spans]
    mean = sum(lengths) / len(lengths)
    least, most = (tuple(map(int, labels[i].strip("[]").split(","))) for i in (7, 8))
    ranges = {(s[0], s[0] + s[1]) for s in spans}
    assert int(labels[5]) == len(spans) and least in ranges and most in ranges, (labels, spans)
    assert (least[1] - least[0], most[1] - most[0]) == (min(lengths), max(lengths)), (labels, lengths)
    assert shows(labels[1], min(lengths)) and shows(labels[2],
                                                    max(lengths)) and shows(labels[3],
                                                                            mean) and shows(labels[6],
                                                                                            sum(lengths)), labels
    if len(lengths) > 2:
        assert shows(labels[4], (sum((x - mean) ** 2 for x in lengths) / (len(lengths) - 1)) ** 0.5), labels


def check_queues(server, text, queues, disks):
    """Checks the times of requests in queues and in drivers; disks: names by number."""
    for queue, (output, suffix, words) in enumerate(zip(QUEUE_STATISTICS, ("weft.disk.wait", "weft.disk.exec"),
                                                        ("Wait Queue", "Exec Queue"))):
        spans, name_of = sorted(queues.spans[queue]), lambda s: "%s: %s" % (disks[s[2]], s[3])
        others = [LATENCY_TABLE + suffix, LATENCY_DENSITY + suffix, LATENCY_SCATTER + suffix]
        outputs = offered(server)
        assert [o in outputs for o in [output]
                + others] == [bool(spans)] * 4 and LATENCY_STATISTICS + suffix not in outputs, (output, len(spans))
        if not spans:
            continue
        assert (outputs[output]["name"], outputs[output]["type"]) == (words + " Statistics", "DATA_TREE")
        assert outputs[others[0]]["name"] == "Disk " + words + " - Latency Table"
        for begin, end in [(text.first, text.last)] + [some_range(text) for _ in range(20)]:
            entries = server.model("/data/%s/tree" % output,
                                   requested_timerange={"start": begin, "end": end})["entries"]
            roots = {e["labels"][0]: e for e in entries if e["parentId"] == -1}
            within = [s for s in spans if begin <= s[0] <= end]
            assert set(roots) == {"Total"} | ({"Selection"} if within and (begin, end) != (text.first, text.last)
                                              else set()), (roots, begin, end)
            for root, some in (("Total", spans), ("Selection", within)):
                if root in roots:
                    check_figures(roots[root]["labels"], some)
                    rows = {e["labels"][0]: e["labels"] for e in entries if e["parentId"] == roots[root]["id"]}
                    assert set(rows) == {name_of(s) for s in some}, (rows, some)
                    for name, labels in rows.items():
                        check_figures(labels, [s for s in some if name_of(s) == name])
        columns = [c["name"] for c in server.model("/table/%s/columns" % others[0])]
        assert columns == ["Start Time", "End Time", "Duration", "Name", "Host", "TID", "CPU", "Bytes"], columns
        lines = server.model("/table/%s/lines" % others[0], requested_table_index=0,
                             requested_table_count=len(spans) + 1)["lines"]
        shown = [[c["content"] for c in line["cells"]] for line in lines]
        tid = lambda who: "" if who is None else "0" if isinstance(who, tuple) else str(who)
        truth = [[str(s[0]), str(s[0] + s[1]), str(s[1]), name_of(s), tid(s[5]), str(s[6]), str(s[4])] for s in spans]
        assert sorted(l[:4] + l[5:] for l in shown) == sorted(truth)
        assert [l[0] for l in shown] == [l[0] for l in truth]
        model = server.model("/genericXY/%s/xy" % others[1],
                             requested_items=[server.model("/genericXY/%s/tree" % others[1])["entries"][0]["id"]],
                             requested_timerange={"start": text.first, "end": text.last, "nbSamples": 100})
        assert sum(model["series"][0]["yValues"]) == len(spans)
        names = {e["id"]: e["labels"][0] for e in xy_tree(server, others[2]) if e["hasData"]}
        model = server.model("/XY/%s/xy" % others[2],
                             requested_timerange={"start": text.first, "end": text.last, "nbTimes": 100},
                             requested_items=list(names))
        for series in model["series"]:
            of = {(s[0], s[1]) for s in spans if name_of(s) == names[series["seriesId"]]}
            points = set(zip(series["xValues"], series["yValues"]))
            assert points <= of and max(ns for _, ns in points) == max(ns for _,
                                                                       ns in of), (points - of, series["seriesId"])
        assert {names[s["seriesId"]] for s in model["series"]} == {name_of(s) for s in spans}
    print("queues: %d waited, drivers had %d" % tuple(map(len, queues.spans)))


def check_requests(server, text, most, recorded=False):
    queues = Queues(text)
    assert offered(server)[REQUESTS] and offered(server)[REQUESTS]["type"] == "TIME_GRAPH"
    entries = {e["id"]: e for e in server.tree(REQUESTS)}
    rows, disks, numbers = {}, [], sorted({key[0] for key in queues.steps})
    for e in entries.values():
        if e["hasData"]:
            queue = entries[e["parentId"]]
            if queue["parentId"] not in disks:
                disks.append(queue["parentId"])
            which = ["Waiting Queue", "Driver Queue"].index(queue["labels"][0])
            rows[e["id"]] = queues.steps[numbers[disks.index(queue["parentId"])], which, int(e["labels"][0])]
    assert len(rows) == len(queues.steps) >= most, (len(rows), len(queues.steps))
    n = check_steps(server, text, REQUESTS, rows, request_text)
    for entry, steps in rows.items():
        t, value = next((t, v) for t, v in zip(steps.times, steps.values) if v and steps.at(t) == v)
        tip = server.tooltip(REQUESTS, entry, t)
        assert (tip["Type"], tip["Bytes"], tip["Sector"]) == (value[0], str(512 * value[1]),
                                                              str(value[2])), (tip, value)
    assert not recorded or not [key for key, held in queues.places.items() if held
                                and not held[1]], "flushes that never complete"
    print("requests: %d states of %d places" % (n, len(rows)))
    check_queues(server, text, queues, {n: entries[e]["labels"][0] for n, e in zip(numbers, disks)})


# ---- event types -----------------------------------------------------------------------------------------------------

def check_event_types(server, text):
    """Checks the number of events of each name, in all and within random ranges."""
    assert offered(server)[EVENT_TYPES]["type"] == "DATA_TREE"
    names = Counter(name for _, name, _, _ in text.events)
    times = [t for t, _, _, _ in text.events]
    ranges = [(text.first, text.last), (text.first, text.first),
              (text.last, text.last)] + [some_range(text) for _ in range(20)]
    for begin, end in ranges + [(times[i], times[i + 3]) for i in range(5, 100, 9)]:
        root, *rows = server.model("/data/%s/tree" % EVENT_TYPES,
                                   requested_timerange={"start": begin, "end": end})["entries"]
        within = Counter(e[1] for e in text.events[bisect.bisect_left(times, begin):bisect.bisect_right(times, end)])
        total = sum(within.values())
        share = lambda n, of: "%.3f %%" % (100 * n / of if of else 0)
        assert root["labels"][1:] == [str(len(times)), "100.000 %", str(total), share(total, total)], (root, begin, end)
        shown = [e["labels"][0] for e in rows]
        assert shown == sorted(names, key=lambda n: (-names[n], n)), (shown, names)
        for e in rows:
            name = e["labels"][0]
            assert e["parentId"] == root["id"]
            assert e["labels"][1:] == [str(names[name]), share(names[name], len(times)), str(within[name]),
                                       share(within[name], total)], (e, begin, end)
    print("event types: %d of %d events" % (len(names), len(times)))


# ---- priorities ------------------------------------------------------------------------------------------------------

class Waits(list):
    """(begin, ns, priority, name) of each wait for a CPU: from the waking of a thread that does not run to when it next
    runs."""

    def __init__(self, path):
        out = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, check=True).stdout
        woken, running = {}, {}
        for line in out.decode("utf-8", "replace").splitlines():
            m = LINE.match(line)
            t, name, rest = int(m[1]) * 10**9 + int(m[2]), m[4], m[5]
            number = {k: int(v, 16 if "x" in v else 10) for k, v in FIELD.findall(rest)}
            if name == "sched_switch":
                running[number["cpu_id"]] = number["next_tid"]
                if number["next_tid"] in woken:
                    begin = woken.pop(number["next_tid"])
                    self.append((begin, t - begin, number["next_prio"], re.search(r'next_comm = "([^"]*)"', rest)[1]))
            elif name == "sched_waking" and number["tid"] not in running.values():
                woken.setdefault(number["tid"], t)


def check_priorities(server, text, path):
    waits = Waits(path)
    assert len({w[2] for w in waits}) > 1
    for output, group in ((PRIORITIES, lambda w: "Priority %d" % w[2]),
                          (PRIORITIES_NAMES, lambda w: "Priority %d/%s" % w[2:])):
        assert offered(server)[output]["type"] == "DATA_TREE" and "Priority" in offered(server)[output]["name"]
        for begin, end in [(text.first, text.last)] + [some_range(text) for _ in range(10)]:
            entries = server.model("/data/%s/tree" % output,
                                   requested_timerange={"start": begin, "end": end})["entries"]
            roots = {e["labels"][0]: e["id"] for e in entries if e["parentId"] == -1}
            for root, some in (("Total", waits), ("Selection", [w for w in waits if begin <= w[0] <= end])):
                if root == "Selection" and (begin, end) == (text.first, text.last):
                    assert root not in roots
                    continue
                groups = {}
                for w in some:
                    groups.setdefault(group(w), []).append(w)
                assert (root in roots) == bool(groups)
                rows = {e["labels"][0]: e["labels"] for e in entries if groups and e["parentId"] == roots[root]}
                assert set(rows) == set(groups), (root, set(rows) ^ set(groups))
                for name, of in groups.items():
                    least, most = (tuple(map(int, rows[name][i].strip("[]").split(","))) for i in (7, 8))
                    assert int(rows[name][5]) == len(of), (rows[name], of)
                    assert least[1] - least[0] == min(w[1] for w in of) and least in [(w[0], w[0] + w[1]) for w in of]
                    assert most[1] - most[0] == max(w[1] for w in of) and most in [(w[0], w[0] + w[1]) for w in of]
                if groups:
                    total = next(e["labels"] for e in entries if e["id"] == roots[root])
                    assert int(total[5]) == len(some)
    print("priorities: %d waits" % len(waits))


# ---- traces ----------------------------------------------------------------------------------------------------------

def check_made(maker, seed, perf):
    path = tempfile.mkdtemp(prefix="weft-made-")
    try:
        subprocess.run([maker, path, str(seed)] + (["perf"] if perf else []), check=True)
        text = Text(path)
        with Server(path) as server:
            assert (server.begin, server.end) == (text.first, text.last)
            check_event_types(server, text)
            check_memory(server, text)
            check_frequencies(server, text)
            check_states(server, text, path)
            check_priorities(server, text, path)
            check_io(server, text)
            check_requests(server, text, 6)
            if perf:
                check_counters(server, text)
            else:
                check_absent(server, COUNTERS)
    finally:
        shutil.rmtree(path)


def check_absent(server, output):
    """Checks that outputs without events in the trace are not offered."""
    assert output not in offered(server), output
    status, _ = server.request("POST", "%s/XY/%s/tree" % (server.outputs, output), {"parameters": {}})
    assert status == 405, status


def check_lossy(maker, seed):
    """Checks that sums over a loss continue from the recorded events."""
    path = tempfile.mkdtemp(prefix="weft-made-")
    try:
        subprocess.run([maker, path, str(seed), "perf", "lossy"], check=True)
        text = Text(path)
        with Server(path) as server:
            paths = {path: entries[0]["id"] for path, entries in paths_of(server.tree(STATES)).items()}
            steps = {paths["CPUs/%d/Counters/%s" % key]: truth for key, truth in text.counters.items()}
            steps.update({paths["CPUs/%d/Current_frequency" % cpu]: truth for cpu, truth in text.frequency.items()})
            steps[paths["Memory"]] = text.memory["total"].stored()
            print("with losses: %d states of %d counters" % (check_steps(server, text, STATES, steps, raw), len(steps)))
            assert sum(int(a["label"].split()[0])
                       for a in server.annotations(RESOURCES, text.first, text.last)["Lost events by CPU"]) == 3 * 8
    finally:
        shutil.rmtree(path)


def check_recorded():
    path = os.path.join(DATA, "traces-public", "single-host", "bug446190")
    if have(path):
        text = Text(path)
        with Server(path) as server:
            check_memory(server, text)
            check_states(server, text, path, old=True)
    else:
        print("skipped: no " + path)
    path = os.path.join(DATA, "traces", "three-tier", "db", "kernel")
    if have(path):
        with Server(path) as server:
            check_absent(server, MEMORY)
            check_absent(server, COUNTERS)
            text = Text(path)
            check_event_types(server, text)
            check_states(server, text, path)
            check_disks(server, text)
            check_io(server, text)
            check_requests(server, text, 1, recorded=True)
            check_absent(server, KVM_EXITS)
    path = os.path.join(DATA, "traces", "three-tier-disk", "db", "kernel")
    if have(path):
        text = Text(path)
        with Server(path) as server:
            check_requests(server, text, 2, recorded=True)
    path = os.path.join(DATA, "traces", "vm", "vmhost", "kernel")
    if have(path):
        text = Text(path)
        with Server(path) as server:
            check_thread_counters(server, text, KVM_EXITS, "KVM Exit Rate", [], [count_threads(text)[2]])


def main():
    need("babeltrace2")
    first = seed(1)
    for made in (first, first + 1):
        check_made(sys.argv[1], made, perf=False)
        check_made(sys.argv[1], made, perf=True)
    check_lossy(sys.argv[1], first + 2)
    check_recorded()


run(main)
