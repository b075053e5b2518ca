# SPDX-License-Identifier: MIT
"""weft spans where the clocks of clients and servers differ, where client and server share an id, and where a span only
follows from another: what is told is what the makers of these spans know."""
import json
import os

from collect_server import Collect, call
from weft_e2e import Case, main, scratch, weft

T, MS = 1_790_000_000 * 10**9, 10**6
INTERNAL, SERVER, CLIENT, PRODUCER, CONSUMER = range(1, 6)


def attribute(key, value):
    return {"key": key, "value": {"stringValue": value}}


class Tree:
    def __init__(self):
        self.lines, self.n = [], 0

    def span(self, name, begin, end, parent=None, kind=INTERNAL, host=None, service=None, id=None, links=(), trace=1,
             error=False):
        """Times in ms."""
        self.n += 1
        id = id or f"{self.n:016x}"
        resource = [attribute("service.name", service or host or "s")]
        resource += [attribute("host.name", host)] if host else []
        span = {"traceId": f"{trace:032x}", "spanId": id, "name": name, "kind": kind,
                "startTimeUnixNano": str(T + round(begin * MS)), "endTimeUnixNano": str(T + round(end * MS)),
                "links": [{"traceId": f"{trace:032x}", "spanId": link,
                           "attributes": [attribute("opentracing.ref_type", kind)] if kind else []}
                          for link, kind in links]}
        if parent:
            span["parentSpanId"] = parent
        if error:
            span["status"] = {"code": 2}
        self.lines.append({"resourceSpans": [{"resource": {"attributes": resource},
                                              "scopeSpans": [{"spans": [span]}]}]})
        return id

    def write(self):
        path = os.path.join(scratch(), "t.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.writelines(json.dumps(line) + "\n" for line in self.lines)
        return path


def ask(command, path, *args):
    run = weft("spans", command, "--format", "json", *args, path)
    assert run.code == 0, run
    return json.loads(run.out), run.message


def shares(path, *args):
    told, said = ask("critpath", path, *args)
    return {c["stage"] or c["kind"]: c["path"] / MS for c in told["causes"]}, said


class Clocks(Case):
    def calls(self, off, **more):
        """Twenty requests, 100 ms each: 20 ms to the server and back, where 40 of 80 ms are the database's."""
        t = Tree()
        for i in range(20):
            at = 1000 * i
            root = t.span("get", at, at + 100, kind=CLIENT, host="a", trace=i + 1, **more)
            server = t.span("serve", at + 10 + off, at + 90 + off, root, SERVER, "b", trace=i + 1)
            t.span("query", at + 30 + off, at + 70 + off, server, INTERNAL, "b", trace=i + 1)
        return t

    def test_the_order_is_restored(self):
        for off in (-10_000, -50, -8, 0, 9, 50, 120, 10_000):
            t = self.calls(off)
            path = t.write()
            told, said = shares(path)
            self.assertEqual(told, {"get": 400, "serve": 800, "query": 800}, off)
            moved = abs(off) > 10
            self.assertEqual("clocks" in said, moved, (off, said))
            stats, _ = ask("stats", path)
            self.assertEqual([u["queue"] for u in stats["units"]], [None] * 20)
            self.assertEqual({len(u["spans"]) for u in stats["units"]}, {3})
            for unit in stats["units"]:
                for span in unit["spans"]:
                    self.assertEqual(span["shift"], -off * MS if moved and span["stage"] != "get" else 0)
            # Recorded times are unchanged.
            table = weft("spans", "table", path).text.splitlines()[1:]
            self.assertEqual(sorted(int(line.split("\t")[5]) for line in table), [40_000] * 20 + [80_000] * 20 +
                             [100_000] * 20)
            self.assertEqual({s["n"] for s in stats["stages"]}, {20})

    def test_no_hosts(self):
        """Services distinguish machines if nothing else does; a client and its server are never one process."""
        for services in (("shop", "stock"), ("shop", "shop")):
            t = Tree()
            root = t.span("get", 0, 100, kind=CLIENT, service=services[0])
            t.span("serve", 60, 140, root, SERVER, service=services[1])
            self.assertEqual(shares(t.write())[0], {"get": 20, "serve": 80})

    def test_back_and_forth(self):
        """A call back to the first machine has the first machine's times."""
        t = Tree()
        root = t.span("get", 0, 100, kind=CLIENT, host="a")
        server = t.span("serve", 5010, 5090, root, SERVER, "b")
        back = t.span("ask", 5020, 5080, server, CLIENT, "b")
        t.span("answer", 30, 70, back, SERVER, "a")
        told, said = shares(t.write())
        self.assertEqual(told, {"get": 20, "serve": 20, "ask": 20, "answer": 40})
        self.assertIn("1 server span", said)
        self.assertIn("5.000 s", said)

    def test_what_may_be_right_is_left(self):
        """A client that gave up; a server that did more after its answer; one machine's clock; a batch system."""
        for client, server in (
                (dict(begin=0, end=100, kind=CLIENT, host="a", error=True), dict(begin=150, end=200, host="b")),
                (dict(begin=0, end=100, kind=CLIENT, host="a"), dict(begin=10, end=300, host="b")),
                (dict(begin=0, end=100, kind=CLIENT, host="a"), dict(begin=120, end=150, host="a")),
                (dict(begin=0, end=100, kind=PRODUCER, host="a"), dict(begin=500, end=600, host="b", kind=CONSUMER)),
                (dict(begin=0, end=100, kind=INTERNAL, host="a"), dict(begin=500, end=600, host="b", kind=INTERNAL))):
            t = Tree()
            root = t.span("get", **client)
            t.span("serve", parent=root, **{"kind": SERVER, **server})
            stats, said = ask("stats", t.write())
            self.assertNotIn("clocks", said)
            self.assertEqual([s["shift"] for u in stats["units"] for s in u["spans"]], [0, 0])
            late = server["begin"] > client["end"]
            self.assertEqual([u["queue"] for u in stats["units"]],
                             [None, (server["begin"] - 100) * MS] if late else [None])

    def test_a_server_longer_than_its_client(self):
        t = Tree()
        root = t.span("get", 0, 100, kind=CLIENT, host="a")
        t.span("serve", -500, -300, root, SERVER, "b")
        stats, said = ask("stats", t.write())
        self.assertEqual([s["shift"] for u in stats["units"] for s in u["spans"] if s["stage"] == "serve"], [500 * MS])
        self.assertIn("clocks", said)

    def test_hostile_times(self):
        t = Tree()
        root = t.span("get", 0, 100, kind=CLIENT, host="a")
        server = t.span("serve", -T // MS + 1, -T // MS + 50, root, SERVER, "b")
        t.span("far", 7 * 10**12, 7.1 * 10**12, server, INTERNAL, "b")
        told, said = shares(t.write())
        self.assertEqual(told["serve"], 49)
        self.assertIn("clocks", said)


class Shared(Case):
    """Client and server with one id, as Brave sends them by default."""

    def zipkin(self):
        spans, trace = [], "0af7651916cd43dd8448eb211c80319c"

        def add(id, parent, name, kind, begin, lasted, service, **more):
            spans.append({"traceId": trace, "id": id, "name": name, "timestamp": T // 1000 + begin * 1000,
                          "duration": lasted * 1000,
                          "localEndpoint": {"serviceName": service, "ipv4": f"10.0.0.{len(service)}"},
                          **({"kind": kind} if kind else {}), **({"parentId": parent} if parent else {}), **more})

        add("000000000000000a", None, "get /", "CLIENT", 0, 100, "front")
        add("000000000000000a", None, "get /", "SERVER", 10, 80, "backend", shared=True)
        add("000000000000000b", "000000000000000a", "work", None, 15, 10, "backend")
        add("000000000000000c", "000000000000000a", "query", "CLIENT", 30, 40, "backend")
        add("000000000000000c", "000000000000000a", "query", "SERVER", 40, 20, "database", shared=True)
        add("000000000000000d", "000000000000000a", "parse", None, 92, 5, "front")
        return spans

    def check(self, *args):
        stats = json.loads(weft("spans", "stats", "--format", "json", *args).out)
        self.assertEqual([len(u["spans"]) for u in stats["units"]], [6])
        causes = json.loads(weft("spans", "critpath", "--format", "json", *args).out)["causes"]
        self.assertEqual({(c["service"], c["stage"]): c["path"] // MS for c in causes}, {
            ("front", "get /"): 15, ("front", "parse"): 5, ("backend", "get /"): 30, ("backend", "work"): 10,
            ("backend", "query"): 20, ("database", "query"): 20})

    def test_client_and_server_are_joined(self):
        for spans in (self.zipkin(), self.zipkin()[::-1]):
            path = os.path.join(scratch(), "z.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(spans, f)
            self.check(path)
            with Collect() as c:
                self.assertEqual(call(c.zipkin + "/api/v2/spans", json.dumps(spans).encode(),
                                      {"Content-Type": "application/json"}).status, 202)
                c.get("/api/services")  # request that waits for the database
                self.check("--store", c.store)

    def test_many_with_one_id(self):
        """Spans with one id, more than are searched one by one, and two servers that answered to one client."""
        t = Tree()
        root = t.span("get", 0, 100, kind=CLIENT, host="a")
        for k in range(2):
            t.span("serve", 10 + 40 * k, 40 + 40 * k, kind=SERVER, host=f"b{k}", service="b", id=root)
            for i in range(20):
                t.span(f"part{k}", 10 + 40 * k + i, 11 + 40 * k + i, root, host=f"b{k}", service="b")
        self.assertEqual(shares(t.write())[0], {"get": 40, "serve": 20, "part0": 20, "part1": 20})


class Follows(Case):
    def test_nobody_waits_for_it(self):
        """A span without an answer is not waited for, whether it begins meanwhile or later, in a file or from a
        store."""
        for kind, blocks in (("follows_from", False), ("", False), ("child_of", True)):
            t = Tree()
            root = t.span("get", 0, 100)
            t.span("log", 40, 100, root, links=[(root, kind)])
            t.span("late", 150, 170, root, links=[(root, kind)])
            t.span("other", 10, 30, root, links=[("00000000000000ff", kind)])
            path = t.write()
            with Collect() as c:
                for line in t.lines:
                    self.assertEqual(c.send(line).status, 200)
                c.get("/api/services")
                for args in ([path], ["--store", c.store]):
                    told, _ = ask("critpath", *args[-1:], *args[:-1])
                    units = {u["name"]: {s.get("stage") for s in u["sections"]} for u in told["units"]}
                    self.assertEqual(units["get"], {"get", "other"} | ({"log"} if blocks else set()), (kind, args))
                    self.assertEqual(len(units), 2 if blocks else 3)
                    queue, = [c["path"] for c in told["causes"] if c["kind"] == "queue"]
                    self.assertEqual(queue, 50 * MS)

    def test_jaeger(self):
        spans = [{"traceID": "1", "spanID": "a", "operationName": "get", "startTime": T // 1000, "duration": 100_000,
                  "processID": "p", "references": [], "tags": []},
                 {"traceID": "1", "spanID": "b", "operationName": "log", "startTime": T // 1000 + 40_000,
                  "duration": 60_000, "processID": "p", "tags": [],
                  "references": [{"refType": "FOLLOWS_FROM", "traceID": "1", "spanID": "a"}]}]
        path = os.path.join(scratch(), "j.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"data": [{"traceID": "1", "spans": spans, "processes": {"p": {"serviceName": "s"}}}]}, f)
        told, _ = ask("critpath", path)
        self.assertEqual({u["name"]: {s.get("stage") for s in u["sections"]} for u in told["units"]},
                         {"get": {"get"}, "log": {"log"}})


if __name__ == "__main__":
    main()
