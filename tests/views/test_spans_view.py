# SPDX-License-Identifier: MIT
"""Spans as a time graph: what the OTLP given says, `weft spans critpath`, and recorded glideins."""
import collections
import json
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
import urllib.request

from graph_client import DATA, ROOT, WEFT, Server, have, key, run

SPANS = "weft.spans"
T0 = 1_700_000_000_000_000_000
MS = 1_000_000


def attribute(name, value):
    kind = "intValue" if isinstance(value, int) else "stringValue"
    return {"key": name, "value": {kind: str(value)}}


class World:
    """Spans by service and host, as OTLP JSON."""

    def __init__(self):
        self.spans, self.origins = [], collections.defaultdict(list)

    def add(self, trace, ident, parent, name, begin, end, service="front", host="web", pid=None, **more):
        span = {"traceId": "%032x" % trace, "spanId": "%016x" % ident, "name": name, "kind": 2,
                "startTimeUnixNano": str(begin), "endTimeUnixNano": str(end), **more}
        if parent:
            span["parentSpanId"] = "%016x" % parent
        self.origins[service, host, pid].append(span)
        self.spans.append(dict(trace=trace, id=ident, parent=parent, name=name, begin=begin, end=end, service=service,
                               host=host, **more))
        return ident

    def write(self, path):
        resources = []
        for (service, host, pid), spans in self.origins.items():
            about = [attribute("service.name", service)] + ([attribute("host.name", host)] if host else [])
            about += [attribute("process.pid", pid)] if pid else []
            resources.append({"resource": {"attributes": about}, "scopeSpans": [{"spans": spans}]})
        with open(path, "w") as f:
            json.dump({"resourceSpans": resources}, f)
        return path


class Rows:
    """The tree, and where each span is in it."""

    def __init__(self, server):
        self.server, self.tree = server, server.tree(SPANS)
        self.by_id = {e["id"]: e for e in self.tree}
        self.children = collections.defaultdict(list)
        for e in self.tree:
            self.children[e["parentId"]].append(e)
        self.traces = {e["metadata"]["Trace id"][0]: e for e in self.children[-1] if "metadata" in e}

    def lanes(self, trace):
        """{label of service and host: its rows}."""
        return {p["labels"][0]: self.children[p["id"]] for p in self.children[self.traces["%032x" % trace]["id"]]
                if not p["labels"][0].startswith("critical path")}

    def states(self, items, times, **more):
        rows = self.server.model("/timeGraph/%s/states" % SPANS, requested_times=times, requested_items=items,
                                 **more)["rows"]
        return {r["entryId"]: [s for s in r["states"] if "label" in s] for r in rows}

    def find(self, trace, spans):
        """Row (place, number) by (name, begin, end) of all that its lanes show at the spans' begins."""
        found = collections.defaultdict(list)
        times = sorted({s["begin"] for s in spans})
        for place, rows in self.lanes(trace).items():
            shown = self.states([r["id"] for r in rows], times)
            for number, r in enumerate(rows):
                last = 0
                for s in shown[r["id"]]:
                    assert s["start"] >= last, (place, number, s)
                    last = s["end"]
                    found[s["label"], s["start"], s["end"]].append((place, number, r["id"], key(s)))
        return found


def tree_world():
    w = World()
    root = w.add(1, 1, 0, "GET /", T0, T0 + 100 * MS, pid=196)
    w.add(1, 2, root, "auth", T0 + 10 * MS, T0 + 30 * MS, "auth", "db")
    w.add(1, 3, root, "query", T0 + 40 * MS, T0 + 80 * MS + 7, "store", "db.example.org",
          status={"code": 2, "message": "it broke"}, attributes=[attribute("rows", 7), attribute("Odd Key", "x")],
          events=[{"timeUnixNano": str(T0 + 50 * MS), "name": "exception",
                   "attributes": [attribute("exception.type", "Timeout")]},
                  {"timeUnixNano": str(T0 + 60 * MS + 1), "name": "retry"}])
    # The second is there while the first and the third are; its part begins when both have ended.
    for i, (begin, end, part) in enumerate(((82, 85, 83), (83, 96, 92), (86, 90, 87))):
        w.add(1, 10 + i, root, "render %d" % i, T0 + begin * MS, T0 + end * MS)
        w.add(1, 20 + i, 10 + i, "part", T0 + part * MS, T0 + (part + 1) * MS)
    w.add(1, 30, root, "instant", T0 + 5 * MS, T0 + 5 * MS)
    w.add(2, 40, 0, "job", T0 + 200 * MS, T0 + 300 * MS, "worker", None,
          links=[{"traceId": "%032x" % 1, "spanId": "%016x" % 1}])
    w.add(2, 41, 40, "still open", T0 + 210 * MS, T0 + 220 * MS, "worker", None,
          attributes=[attribute("weft.state", "open")])
    return w


def check_place(w, rows, trace):
    """Checks that every span is one state, of its times; below its parent if both are of one service and host."""
    spans = [s for s in w.spans if s["trace"] == trace]
    found, at = rows.find(trace, spans), {}
    for s in spans:
        (at[s["id"]],) = found.pop((s["name"], s["begin"], max(s["end"], s["begin"] + 1)))
        place = "%s (%s)" % (s["service"], s["host"]) if s["host"] else s["service"]
        assert at[s["id"]][0] == place, (s, at[s["id"]])
        error, is_open = s.get("status", {}).get("code") == 2, "open" in s["name"]
        assert (at[s["id"]][3] == "Error") == error and (at[s["id"]][3] == "Not ended") == is_open, at[s["id"]]
    assert not found, found
    n = 0
    for s in spans:
        if s["parent"] in at and at[s["parent"]][0] == at[s["id"]][0]:
            assert at[s["id"]][1] > at[s["parent"]][1], (s, at)
            n += 1
    assert n, "no child has a row below its parent"
    return {i: a[2] for i, a in at.items()}


def check_tree(w, path):
    with Server("--spans", path) as server:
        assert server.experiment["nbEvents"] == len(w.spans) and server.experiment["name"] == os.path.basename(path)
        offered = {o["id"]: o for o in server.get(server.outputs)}
        assert offered[SPANS]["type"] == "TIME_GRAPH" and "critical path" in offered[SPANS]["description"]
        rows = Rows(server)
        assert [e["labels"][0].split(" · ")[0] for e in rows.children[-1]] == ["front: GET /", "worker: job"]
        assert [e["labels"][2:] for e in rows.children[-1]] == [["10", "1"], ["2", ""]]
        entry = {**check_place(w, rows, 1), **check_place(w, rows, 2)}
        # renders 0 and 2 do not overlap and share a row; 1 overlaps both
        assert entry[10] == entry[12] != entry[11] and entry[20] == entry[21] == entry[22], entry
        check_events(server, w, rows, entry)
        check_arrows(server, w, entry)
        check_tips(server, entry)
        check_path(server, rows, path, 1)
        filters = {"strategy": "SAMPLED", "filter_expressions_map": {"1": ['label matches "^que"']}}
        shown = rows.states([entry[2], entry[3]], [T0 + 20 * MS, T0 + 50 * MS], filter_query_parameters=filters)
        assert [s.get("tags", 0) for i in (entry[2], entry[3]) for s in shown[i]] == [1, 0], shown
        styles = server.model("/%s/style" % SPANS)["styles"]
        assert {"Error", "Not ended", "Call", "Link"} <= set(styles)


def check_events(server, w, rows, entry):
    assert server.get("%s/%s/annotations" % (server.outputs, SPANS))["model"]["annotationCategories"] == ["Span events"]
    told = [(int(v["timeUnixNano"]), v["name"], entry[s["id"]]) for s in w.spans for v in s.get("events", [])]
    found = server.model("/%s/annotations" % SPANS, requested_items=list(rows.by_id), requested_timerange={
        "start": server.begin, "end": server.end, "nbTimes": 1000})["annotations"]["Span events"]
    assert sorted((a["time"], a["label"], a["entryId"]) for a in found) == sorted(told) and len(told) == 2
    none = server.model("/%s/annotations" % SPANS, requested_items=[entry[2]], requested_timerange={
        "start": server.begin, "end": server.end, "nbTimes": 1000})["annotations"]
    assert not none.get("Span events"), none


def check_arrows(server, w, entry):
    by_id = {s["id"]: s for s in w.spans}
    told = [(s["begin"], s["begin"], entry[s["parent"]], entry[s["id"]]) for s in w.spans
            if s["parent"] and (by_id[s["parent"]]["service"], by_id[s["parent"]]["host"]) != (s["service"], s["host"])]
    assert len(told) == 2
    told.append((by_id[1]["end"], by_id[40]["begin"], entry[1], entry[40]))  # the link
    found = server.model("/timeGraph/%s/arrows" % SPANS, requested_timerange={
        "start": server.begin, "end": server.end, "nbTimes": 1000})
    assert sorted((a["start"], a["end"], a["sourceId"], a["targetId"]) for a in found) == sorted(told), found
    (between,) = server.arrows(SPANS, by_id[1]["end"] + MS, by_id[40]["begin"] - MS)  # range between the traces
    assert (between["sourceId"], between["targetId"]) == (entry[1], entry[40]), between


def check_tips(server, entry):
    tip = server.tooltip(SPANS, entry[3], T0 + 50 * MS)
    want = {"Operation": "query", "Service": "store", "Host": "db.example.org", "Status": "error: it broke",
            "Kind": "server", "Trace": "%032x" % 1, "Span": "%016x" % 3, "Parent": "%016x" % 1, "rows": "7",
            "attribute Odd Key": "x", "resource host.name": "db.example.org",
            "Event 1, +10 ms": "exception: exception.type=Timeout", "Event 2, +20 ms": "retry"}
    for k, v in want.items():
        assert {n.replace("10.00 ", "10 ").replace("20.00 ", "20 "): x for n, x in tip.items()}.get(k) == v, (k, tip)
    assert server.tooltip(SPANS, entry[3], T0 + 90 * MS) == {}
    assert server.tooltip(SPANS, entry[40], T0 + 250 * MS)["Link 1"] == "%032x %016x" % (1, 1)
    assert "it may still run" in server.tooltip(SPANS, entry[41], T0 + 215 * MS)["End"]


def critpath(path, trace):
    out = subprocess.run([WEFT, "spans", "critpath", "--trace", "%032x" % trace, "--format", "json", path],
                         check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    return [s for u in json.loads(out)["units"] for s in u["sections"]]


def check_path(server, rows, path, trace):
    """The row is what the verb says."""
    told = [(s["begin"], s["end"], s["stage"]) for s in critpath(path, trace)]
    root = rows.traces["%032x" % trace]["id"]
    row = next(e for e in rows.children[root] if e["labels"][0] == "critical path")
    found = rows.states([row["id"]], sorted(t[0] for t in told))[row["id"]]
    assert [(s["start"], s["end"], s["label"]) for s in found] == told and len(told) > 5, (found, told)


def check_glideins(path):
    """The seed's table: ends as recorded, begins as its repair is known."""
    truth = json.load(open(os.path.join(DATA, "spans", "glidein-expected.json")))
    with Server("--spans", path) as server:
        rows = Rows(server)
        trace = int(truth["traceID"], 16)
        spans = [dict(begin=(s["end_us"] - s.get("corrected_us", s["duration_us"])) * 1000, end=s["end_us"] * 1000,
                      name=s["stage"]) for g in truth["glideins"] for s in g["stages"]]
        found = rows.find(trace, spans)
        assert sorted(found) == sorted((s["name"], s["begin"], s["end"]) for s in spans) and len(found) == 24, found
        assert server.experiment["nbEvents"] == truth["spans"]
        # A glidein's stages come one after the other: in one row.
        for g in truth["glideins"]:
            assert len({at[2] for s in g["stages"] for (name, _, end), (at,) in found.items()
                        if (name, end) == (s["stage"], s["end_us"] * 1000)}) == 1, g


def check_spool(w, place):
    """A directory of files is what is in all of them."""
    spool = os.path.join(place, "spool")
    os.mkdir(spool)
    first, second = World(), World()
    for s in w.spans:
        half = first if s["trace"] == 1 else second
        half.add(**{k if k != "id" else "ident": v for k, v in s.items()})
    first.write(os.path.join(spool, "1.json"))
    second.write(os.path.join(spool, "2.jsonl"))
    with Server("--spans", spool) as server:
        assert server.experiment["nbEvents"] == len(w.spans)
        rows = Rows(server)
        check_tips(server, {**check_place(w, rows, 1), **check_place(w, rows, 2)})


def check_hostile(place):
    w, deep = World(), 30000
    w.add(1, 1, 2, "a", T0, T0 + 10)
    w.add(1, 2, 1, "b", T0, T0 + 10)
    w.add(1, 3, 99, "orphan", T0 + 20, T0 + 30)
    w.add(1, 4, 4, "its own parent", T0 + 40, T0 + 50)
    w.add(2, 5, 0, "backwards", T0 + 100, T0 + 90)
    for i in range(deep):
        w.add(3, i + 1, i, "deep", T0 + i, T0 + 10 * deep - i)
    w.add(4, 1, 0, "wide", T0, T0 + 2 * deep)
    for i in range(deep):
        w.add(4, i + 2, 1, "at once", T0 + i, T0 + 2 * deep - i, "s%d" % (i % 300))
    w.origins["front", "web", None].append({"traceId": "0" * 32, "spanId": "%016x" % 1, "name": "no trace",
                                            "startTimeUnixNano": str(T0), "endTimeUnixNano": str(T0 + 1)})
    with Server("--spans", w.write(os.path.join(place, "hostile.json"))) as server:
        assert server.experiment["nbEvents"] == len(w.spans)
        rows = Rows(server)
        assert len(rows.traces) == 4 and len(rows.tree) < 20000, len(rows.tree)
        found = rows.find(1, [s for s in w.spans if s["trace"] == 1])
        assert sorted(n for n, _, _ in found) == ["a", "b", "its own parent", "orphan"], found
        (back,) = rows.find(2, [w.spans[4]])
        assert back == ("backwards", T0 + 100, T0 + 101), back
        (deepest,) = rows.lanes(3).items()
        assert deepest[0] == "front (web) (%d more have no row)" % (deep - 200) and len(deepest[1]) == 200, deepest[0]
        wide = rows.lanes(4)
        assert len(wide) == 64 and sum(len(v) for v in wide.values()) <= 64 * 200, len(wide)
        rest = sum(int(label.split("(")[-1].split()[0]) for label in wide if "have no row" in label)
        assert sum(int(r["labels"][2]) for v in wide.values() for r in v) + rest == deep + 1
        text = json.dumps(server.tooltip(SPANS, deepest[1][0]["id"], T0 + 5))
        assert "deep" in text
        # maximum number of states: as many as requested
        items = [r["id"] for v in wide.values() for r in v][:300]
        shown = server.states(SPANS, items, server.begin, server.end, 50)
        assert max(len(s) for s in shown.values()) <= 100


def check_many(place):
    """Checks limits: of more traces than a tree lists the newest are listed, and of a range those in it."""
    w, n = World(), 3000
    for i in range(n):
        w.add(i + 1, 1, 0, "job", T0 + i * MS, T0 + i * MS + MS // 2)
    with Server("--spans", w.write(os.path.join(place, "many.json"))) as server:
        tree = server.tree(SPANS)
        roots = [e for e in tree if e["parentId"] == -1]
        assert roots[0]["labels"][0].startswith("2500 more traces"), roots[0]
        assert [int(e["metadata"]["Trace id"][0], 16) for e in roots[1:]] == list(range(2501, 3001))
        for first in (0, 2000):
            begin = T0 + first * MS
            found = [e for e in server.tree(SPANS, requested_timerange={"start": begin, "end": begin + 9 * MS,
                                                                        "nbTimes": 100}) if e["parentId"] == -1]
            assert [int(e["metadata"]["Trace id"][0], 16) for e in found] == list(range(first + 1, first + 11)), found
        lane = next(e for e in server.tree(SPANS, requested_timerange={"start": T0, "end": T0 + MS // 4, "nbTimes": 9})
                    if e["labels"][0] == "job")
        shown = [s for s in server.states(SPANS, [lane["id"]], T0, T0 + MS, 100)[lane["id"]] if "label" in s]
        assert [(s["start"], s["end"]) for s in shown] == [(T0, T0 + MS // 2)], shown


def host_times(traces, store, host, *more):
    out = subprocess.run([WEFT, "events", "--store", store, "--format", "json", "--names", "sched_process_fork",
                          *more, traces], check=True, capture_output=True, text=True).stdout
    found = [json.loads(line) for line in out.splitlines()]
    return [e["ts"] for e in found if e["host"] == host]


def check_kernel(place):
    """Checks spans beside kernel traces: times by the clock of the host that the span names, as in `weft events` by
    that host's clock and, with --sync, by the reference."""
    with tarfile.open(os.path.join(ROOT, "examples", "three-tier.tar.xz")) as tar:
        tar.extractall(place)
    traces, store = os.path.join(place, "three-tier"), os.path.join(place, "store")
    told = 0
    w = World()
    ends = {}
    for number, host in enumerate(("client", "web", "db"), 1):
        own, joint = host_times(traces, store, host), host_times(traces, store, host, "--sync")
        if len(own) < 3 or not own[0] < own[1] < own[-1]:
            continue
        w.add(number, 1, 0, "on " + host, own[0], own[-1], "s", host + ".example.org", pid=1)
        w.add(number, 2, 1, "part", own[0], own[1], "s", host, pid=1)
        ends[number] = joint[0], joint[1], joint[-1], host
        told += own != joint
    assert told, "no host's clock is another one"
    with Server("--spans", w.write(os.path.join(place, "kernel.json")), traces) as server:
        assert server.experiment["name"] == "three-tier"
        rows = Rows(server)
        for number, (begin, middle, end, host) in ends.items():
            path = next(e for e in rows.children[rows.traces["%032x" % number]["id"]] if "path" in e["labels"][0])
            found = rows.states([path["id"]], [begin + 1, end - 1])[path["id"]]
            assert [(s["start"], s["end"]) for s in found] == [(begin, middle), (middle, end)], (found, ends[number])
            (lane,) = next(v for k, v in rows.lanes(number).items() if "example.org" in k)
            found = rows.states([lane["id"]], [begin + 1])[lane["id"]]
            assert [(s["start"], s["end"]) for s in found] == [(begin, end)], (host, found, begin, end)
            tip = server.tooltip(SPANS, lane["id"], begin + 1)
            assert tip["Thread"] == host + ":1", tip
            assert lane["metadata"]["hostId"] == [host], lane


def check_store(w, place):
    """The store of a collector."""
    path, store = w.write(os.path.join(place, "tree.json")), os.path.join(place, "collected")
    collector = subprocess.Popen([WEFT, "collect", "--store", store, "--otlp-http", "127.0.0.1:0", "--jaeger", "none",
                                  "--otlp-grpc", "none", "--zipkin", "none", "--query", "none"],
                                 stdout=subprocess.PIPE, text=True)
    try:
        base = re.search(r"http://[\w.:]+", collector.stdout.readline()).group(0)
        sent = urllib.request.Request(base + "/v1/traces", open(path, "rb").read(),
                                      {"Content-Type": "application/json"})
        with urllib.request.urlopen(sent, timeout=30) as answer:
            assert answer.status == 200
    finally:
        collector.terminate()
        assert collector.wait(60) == 0  # acknowledged spans are in the database then
    with Server("--spans", store) as server:
        assert server.experiment["name"] == "collected"
        rows = Rows(server)
        check_tips(server, {**check_place(w, rows, 1), **check_place(w, rows, 2)})


def main():
    place = tempfile.mkdtemp(prefix="weft-spans-view-")
    try:
        w = tree_world()
        check_tree(w, w.write(os.path.join(place, "tree.json")))
        check_store(w, place)
        check_spool(w, place)
        check_hostile(place)
        check_many(place)
        check_kernel(place)
        glideins = os.path.join(DATA, "spans", "glidein-otlp.json")
        if have(glideins):
            check_glideins(glideins)
    finally:
        shutil.rmtree(place)


run(main)
