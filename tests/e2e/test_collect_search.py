# SPDX-License-Identifier: MIT
"""weft collect: searches for traces, and calls between services. The judges are lists of all spans that were sent."""
import collections
import contextlib
import json
import sqlite3

import otlp_made as made
from collect_server import PROTOBUF, Collect
from span_collector import span
from weft_e2e import SLOWDOWN, Case, main, new_dice, scratch


class Search(Case):
    """The newest traces that have spans of some kind, in a store of several groups of 8192 spans. A list judges."""
    N, BASE, MANY = 30_000, 1_700_000_000_000_000_000, 20_000

    @classmethod
    def setUpClass(cls):
        dice = new_dice(18)
        cls.sent = []
        for n in range(cls.N):
            lasted = dice.randrange(10**9) if n % 4000 else 30 * 10**9
            values = {"user": {"stringValue": f"u{dice.randrange(5000)}"}, "retry": {"boolValue": n % 3 == 0},
                      "code": {"intValue": str(dice.choice((200, 404, 500)))},
                      "load": {"doubleValue": dice.randrange(4) / 4}, "ids": {"arrayValue": {"values": [
                          {"intValue": str(n % 7)}]}}, "rare": {"stringValue": "yes" if n % 9001 == 7 else "no"}}
            span = made.made(f"{n // 2 + 1:032x}", n % 2 + 1, f"op {n % 50}",
                             cls.BASE + n * 10**6 - dice.randrange(3 * 10**9), lasted, kind=1 + n % 5,
                             attributes=[{"key": k, "value": v} for k, v in values.items()],
                             status={"code": 2, "message": "broken"} if n % 1000 == 5 else {},
                             events=[{"timeUnixNano": str(cls.BASE), "name": "late", "attributes": [
                                 made.text("why", f"w{n}")]}] if n % 100 == 1 else [])
            cls.sent.append((f"s{n % 6}", f"h{n // 10000}", span))
        cls.c = Collect("--keep", "none")
        cls.send(0, cls.N)

    @classmethod
    def send(cls, begin, end):
        for k in range(begin, end, 2000):
            parts = {}
            for service, host, span in cls.sent[k:k + 2000]:
                parts.setdefault((service, host), []).append(span)
            cls.c.send(made.request({"resourceSpans": [r for (service, host), spans in parts.items()
                                                       for r in made.of(spans, service, host=host)["resourceSpans"]]}),
                       kind=PROTOBUF)
        assert cls.c.until(lambda: cls.c.get("/health").json()["waitingBytes"] == 0)

    @classmethod
    def tearDownClass(cls):
        assert cls.c.stop() == 0, cls.c.said

    def wanted(self, holds, limit):
        newest = sorted((s for s in self.sent if holds(*s)), key=lambda s: -int(s[2]["startTimeUnixNano"]))
        return list(dict.fromkeys(s[2]["traceId"] for s in newest))[:limit]

    def found(self, limit=20, **query):
        answer = self.c.get("/api/v3/trace-summaries", **{
            "query.startTimeMin": "2023-01-01T00:00:00Z", "query.startTimeMax": "2024-01-01T00:00:00Z",
            "query.search_depth": limit, **{"query." + k: v for k, v in query.items()}}).json()
        return [s["traceId"] for s in answer["summaries"]]

    def test_found(self):
        def value(span, key):
            kind_and_value, = [a["value"] for a in span["attributes"] if a["key"] == key]
            return next(iter(kind_and_value.values()))
        for query, holds in (
                ({}, lambda v, h, s: True), ({"service_name": "s3"}, lambda v, h, s: v == "s3"),
                ({"operation_name": "op 7"}, lambda v, h, s: s["name"] == "op 7"),
                ({"duration_min": "20s"}, lambda v, h, s: int(s["endTimeUnixNano"]) - int(s["startTimeUnixNano"]) >
                 20 * 10**9),
                ({"attributes": '{"rare":"yes"}'}, lambda v, h, s: value(s, "rare") == "yes"),
                ({"attributes": '{"user":"u77"}'}, lambda v, h, s: value(s, "user") == "u77"),
                ({"attributes": '{"code":"404","retry":"true"}', "service_name": "s0"},
                 lambda v, h, s: v == "s0" and value(s, "code") == "404" and value(s, "retry")),
                ({"attributes": '{"retry":"true"}', "service_name": "s1"},
                 lambda v, h, s: v == "s1" and value(s, "retry")),  # condition without matches
                ({"attributes": '{"load":"0.25"}'}, lambda v, h, s: value(s, "load") == 0.25),
                ({"attributes": '{"host":"h1","error":"true"}'}, lambda v, h, s: h == "h1" and s["status"]),
                ({"attributes": '{"event":"late","why":"w5501"}'}, lambda v, h, s: any(
                    e["attributes"][0]["value"]["stringValue"] == "w5501" for e in s["events"])),
                ({"attributes": '{"span.kind":"server","host":"h0","otel.scope.name":"made"}'},
                 lambda v, h, s: s["kind"] == 2 and h == "h0"),
                ({"attributes": '{"otel.status_description":"broken"}'}, lambda v, h, s: s["status"]),
                ({"attributes": '{"user":"nobody"}'}, lambda v, h, s: False)):
            for limit in 3, self.MANY:
                with self.subTest(query=query, limit=limit):
                    self.assertEqual(self.found(limit, **query), self.wanted(holds, limit))
        self.assertTrue(self.found(attributes='{"ids":"[3]"}'))

    def test_cost(self):
        """Rare or missing values are found without reading all spans."""
        before = self.c.processor_s()
        for n in range(100):
            self.assertEqual(self.found(attributes=json.dumps({"user": f"nobody {n}"})), [])
        self.assertLess(self.c.processor_s() - before, 2.5 * SLOWDOWN)  # looking at all takes more than 5


class Indexed(Case):
    """What a search by filter reads: only spans that have what its equalities ask for. All others are damaged."""

    def collect(self, store=None):
        return Collect("--keep", "none", store=store)

    def damage(self, c):
        with contextlib.closing(sqlite3.connect(c.store + "/spans.db")) as db:
            db.execute("UPDATE spans SET body = x'ff' WHERE name <> (SELECT number FROM texts WHERE text = 'kept')")
            db.commit()

    def test_others_are_not_read(self):
        begin, kept = 1_700_000_000_000_000_000, 4711
        spans = [made.made(f"{n + 1:032x}", 1, "kept" if n == kept else "other", begin + n * 1000, kind=3,
                           attributes=[{"key": "code", "value": {"intValue": str(n)}}, made.text("user", f"u{n}")],
                           events=[{"timeUnixNano": str(begin), "name": f"e{n}", "attributes": []}])
                 for n in range(8200)]  # a group has 8192
        with self.collect() as c:
            for k in range(0, len(spans), 2000):
                request = made.of(spans[k:k + 2000], zone=f"z{k}")
                c.send(made.request(request), kind=PROTOBUF)
            self.assertTrue(c.until(lambda: c.get("/health").json()["waitingBytes"] == 0))
            self.assertEqual((c.stop(), c.said), (0, ""))
        self.damage(c)

        def eq(what, value):
            return {"op": "eq", "args": [what, {"scalar": {"value": value}}]}
        user, event = {"attr": {"key": "user"}}, {"field": {"level": "event", "name": "name"}}
        name, service = ({"field": {"level": level, "name": n}} for level, n in (("span", "name"),
                                                                                 ("resource", "service")))
        with self.collect(c.store) as c:
            for asked in ([eq(user, f"u{kept}")], [eq({"attr": {"key": "code"}}, str(kept))], [eq(event, f"e{kept}")],
                          [eq(name, "kept")], [eq(service, "shop"), eq(name, "kept")],
                          [eq(service, "shop"), eq(user, f"u{kept}"), eq({"attr": {"key": "zone"}}, "z4000")]):
                filter_ = asked[0] if len(asked) == 1 else {"op": "and", "args": [{"call": a} for a in asked]}
                answer = c.get("/api/v3/trace-summaries", **{
                    "query.startTimeMin": "2023-01-01T00:00:00Z", "query.startTimeMax": "2024-01-01T00:00:00Z",
                    "query.filter": json.dumps(filter_)})
                self.assertEqual(answer.status, 200, (asked, answer.body))
                self.assertEqual([s["traceId"] for s in answer.json()["summaries"]], [f"{kept + 1:032x}"])
            self.assertEqual((c.stop(), c.said), (0, ""))


class Dependencies(Case):
    """Numbers of calls between services, in whole seconds, against a list of all pairs of spans."""
    BASE = 1_700_000_000_000  # ms

    def collect(self, *options, store=None):
        return Collect(*options, store=store)

    def random_spans(self, dice, n):
        """Makes spans with few ids, so that spans of several services share one, and arrive as children and parents of
        each other."""
        out = []
        for k in range(n):
            trace, begin = f"{dice.randrange(40) + 1:032x}", self.BASE * 10**6 + dice.randrange(3 * 86400 * 10**9)
            if dice.randrange(8) == 0:
                begin = dice.choice([1, 10**6 - 1, 60 * 10**9, self.BASE * 10**6])
            number = dice.randrange(30) + 1
            parent = dice.choice([None, *(n for n in range(1, 30) if n != number)])
            out.append((f"s{dice.randrange(5)}", made.made(trace, number, f"op {k}", begin, parent=parent)))
        return out

    def pairs(self, spans):
        """Returns, for each pair of spans, the services of parent and child, at the child's begin in ms."""
        by_id = collections.defaultdict(list)
        for service, s in spans:
            by_id[s["traceId"], s["spanId"]].append(service)
        return [(int(s["startTimeUnixNano"]) // 10**6, parent, service) for service, s in spans
                for parent in by_id[s["traceId"], s.get("parentSpanId")] if parent != service]

    def check(self, c, pairs, begin, end):
        count = collections.Counter((parent, child) for at, parent, child in pairs
                                    if begin // 1000 <= at // 1000 < -(-end // 1000))
        self.assertEqual(c.data("/api/dependencies", endTs=end, lookback=end - begin),
                         [{"parent": p, "child": c, "callCount": n} for (p, c), n in sorted(count.items())],
                         (begin, end))

    def send(self, c, spans):
        parts = collections.defaultdict(list)
        for service, s in spans:
            parts[service].append(s)
        body = {"resourceSpans": [r for service, some in parts.items()
                                  for r in made.of(some, service)["resourceSpans"]]}
        self.assertEqual(c.send(body).status, 200)

    def compare(self, c, spans, dice, others=4):
        pairs = self.pairs(spans)
        edges = [0, 1, 60_000, self.BASE, self.BASE + 86400_000, self.BASE + 10 * 86400_000,
                 *(self.BASE + dice.randrange(3 * 86400_000) for _ in range(others))]
        for begin in edges:
            for end in edges:
                if begin < end:
                    self.check(c, pairs, begin, end)

    def test_random(self):
        dice = new_dice(25)
        spans = self.random_spans(dice, 1500)
        with self.collect("--keep", "none") as c:
            at = 0
            while at < len(spans):
                n = dice.choice((1, 2, 30, 200))
                self.send(c, spans[at:at + n])
                if dice.randrange(4) == 0:  # duplicates
                    self.send(c, dice.sample(spans[:at + 1], min(at + 1, 20)))
                if dice.randrange(4) == 0:
                    self.assertTrue(c.until(lambda: c.get("/health").json()["waitingBytes"] == 0))
                at += n
            self.compare(c, spans, dice)
            self.assertEqual((c.stop(), c.said), (0, ""))

    def test_ended_spans_replace_open_ones(self):
        """An ended span replaces an open one, also with another service or time; the calls of the open one are
        removed."""
        begin = self.BASE * 10**6
        open_state = [made.text("weft.state", "open")]
        trace, day = "5" * 32, 86400 * 10**9
        old = [("a", made.made(trace, 1, begin=begin, attributes=open_state)),
               ("b", made.made(trace, 2, begin=begin, parent=1)),
               ("b", made.made(trace, 3, begin=begin, parent=1, attributes=open_state))]
        new = [("c", made.made(trace, 1, begin=begin)), old[1], ("d", made.made(trace, 3, begin=begin + day, parent=1))]
        with self.collect("--keep", "none") as c:
            for spans, sent in ((old, old), (new, new[2:] + new[:1])):
                for one in sent:
                    self.send(c, [one])
                self.assertTrue(c.until(lambda: c.get("/health").json()["waitingBytes"] == 0))
                for end in (self.BASE + 1, self.BASE + 2 * 86400_000):
                    self.check(c, self.pairs(spans), 0, end)

    def left(self, c, spans):
        """Returns the spans that are left in the store."""
        there = {(s["traceId"], s["spanId"], s["name"]) for trace in {s["traceId"] for _, s in spans}
                 for _, _, s in c.spans(trace)}
        return [(service, s) for service, s in spans if (s["traceId"], s["spanId"], s["name"]) in there]

    def used(self, c):
        return c.used()

    def test_retention(self):
        """Calls go with either of their spans."""
        dice = new_dice(26)
        store, spans = scratch(), self.random_spans(dice, 2500)
        for _, s in spans:
            s["attributes"] = [made.text("k", dice.randbytes(300).hex())]
        with self.collect("--keep", "none", store=store) as c:
            for k in range(0, len(spans), 100):
                self.send(c, spans[k:k + 100])
            self.assertTrue(c.until(lambda: c.get("/health").json()["waitingBytes"] == 0))
            self.assertEqual(c.stop(), 0)
        most = self.used(c) * 2 // 3
        with self.collect("--keep-size", str(most), store=store) as c:
            self.assertTrue(c.until(lambda: self.used(c) <= most), (self.used(c), most))
            left = self.left(c, spans)
            self.assertTrue(0 < len(left) < len(spans), len(left))
            self.compare(c, left, dice)
            self.assertEqual(c.stop(), 0)

    def make_older(self, c):
        """Makes the store as weft left it before it counted calls."""
        with contextlib.closing(sqlite3.connect(c.store + "/spans.db")) as db:
            db.executescript("DROP TABLE children; DROP TABLE calls; PRAGMA user_version = 3")

    def uncounted(self, c):
        with contextlib.closing(sqlite3.connect(c.store + "/spans.db")) as db:
            (left,), = db.execute("SELECT max(0, (SELECT value FROM about WHERE key = 'calls to') -"
                                  " (SELECT value FROM about WHERE key = 'calls from'))")
        return left

    def test_older_store(self):
        """An older store is counted in steps; answers are right meanwhile, and while spans come."""
        dice = new_dice(27)
        store, spans = scratch(), self.random_spans(dice, 8000)
        with self.collect("--keep", "none", store=store) as c:
            for k in range(0, 6000, 500):
                self.send(c, spans[k:k + 500])
            self.assertEqual(c.stop(), 0)
        self.make_older(c)
        for part in range(4):  # starts; each continues where the last one ended
            with self.collect("--keep", "none", store=store) as c:
                at = 6000 + part * 500
                self.send(c, spans[at:at + 500])
                self.compare(c, spans[:at + 500], dice, 1)
                if part == 3:
                    self.assertTrue(c.until(lambda: not self.uncounted(c)))
                    self.compare(c, spans, dice)
                self.assertEqual((c.stop(), c.said), (0, ""))


if __name__ == "__main__":
    main()
