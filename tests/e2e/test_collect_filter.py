#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""query.filter of Jaeger's newer interface: each operator as defined by its RFC 0005, implemented once more in Python,
on spans that were sent."""
import json
import time

import otlp_made as made
from collect_server import Collect, call
from weft_e2e import Case, main

KINDS = ("unspecified", "internal", "server", "client", "producer", "consumer")
STATUSES = ("unset", "ok", "error")


def attr(key, level=None):
    return {"attr": {"key": key, **({"level": level} if level else {})}}


def field(level, name):
    return {"field": {"name": name, "level": level}}


def scalar(value, kind=None):
    return {"scalar": {"value": value, **({"type": kind} if kind else {})}}


def values(*v):
    return {"list": {"values": list(v)}}


def op(name, *args):
    return {"op": name, "args": [{"call": a} if "op" in a else a for a in args]}


def number(key, n):
    return {"key": key, "value": {"doubleValue" if isinstance(n, float) else "intValue": n if isinstance(n, float)
                                  else str(n)}}


class Filters(Case):
    @classmethod
    def setUpClass(cls):
        cls.c, cls.base = Collect(), int(time.time()) * 10**9
        for n in range(12):
            attributes = [made.text("user", f"u{n % 3}"), number("code", 200 + 100 * (n % 4)),
                          {"key": "cached", "value": {"boolValue": n % 2 == 0}}]
            attributes += [made.text("rare", "here"), number("share", n / 8)] if n > 7 else []
            attributes += [made.text("size", str(n * 100))] if n < 4 else []
            events = [{"timeUnixNano": str(cls.base + n * 10**9 + k * 1000), "name": f"step {k}",
                       "attributes": [made.text("ok", "yes" if k == n % 3 else "no")]} for k in range(n % 4)]
            links = [{"traceId": "ab" * 16, "spanId": f"{n:016x}", "attributes": [made.text("why", f"w{n}")]}] if (
                n in (5, 6)) else []
            x = made.made(f"{n + 1:032x}", 1, "get" if n % 2 else "put", cls.base + n * 10**9, (n + 1) * 10**8,
                          kind=n % 6, attributes=attributes, events=events, links=links,
                          status={"code": n % 3, "message": "broke" if n % 3 == 2 else ""})
            service = "front" if n < 6 else "back"
            request = made.of([x], service=service, zone=f"z{n % 2}")
            request["resourceSpans"][0]["scopeSpans"][0]["scope"]["attributes"] = [made.text("of", "here")]
            cls.c.send(request)

    @classmethod
    def tearDownClass(cls):
        assert cls.c.stop() == 0, cls.c.said

    def ask(self, filter_, path="/api/v3/trace-summaries", **more):
        return self.c.get(path, **{
            "query.startTimeMin": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.base // 10**9 - 1)),
            "query.startTimeMax": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.base // 10**9 + 60)),
            "query.filter": filter_ if isinstance(filter_, str) else json.dumps(filter_), **more})

    def found(self, filter_):
        answer = self.ask(filter_)
        self.assertEqual(answer.status, 200, (filter_, answer.body))
        return sorted(int(s["traceId"], 16) - 1 for s in answer.json()["summaries"])

    def test_what_each_asks(self):
        base = self.base
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(base // 10**9 + 4)) + ".000000001Z"
        ok_at = {n: {k for k in range(n % 4) if k == n % 3} for n in range(12)}
        for asked, holds in (
                (op("eq", attr("user"), scalar("u1")), lambda n: n % 3 == 1),
                (op("eq", scalar("u1"), attr("user")), lambda n: n % 3 == 1),
                (op("eq", attr("zone"), scalar("z1")), lambda n: n % 2 == 1),
                (op("eq", attr("zone", "resource"), scalar("z1")), lambda n: n % 2 == 1),
                (op("eq", attr("zone", "span"), scalar("z1")), lambda n: False),
                (op("eq", attr("code"), scalar("300")), lambda n: n % 4 == 1),
                (op("eq", attr("code"), scalar("300", "string")), lambda n: False),
                (op("eq", attr("code"), scalar("300.0", "double")), lambda n: n % 4 == 1),
                (op("eq", attr("code"), scalar("0300")), lambda n: n % 4 == 1),
                (op("eq", attr("code"), scalar("3e2")), lambda n: n % 4 == 1),
                (op("in", attr("code"), values("300")), lambda n: n % 4 == 1),
                (op("eq", attr("share"), scalar("1.25")), lambda n: n == 10),
                (op("eq", attr("share"), scalar("1")), lambda n: n == 8),
                (op("eq", attr("share"), scalar("1", "int")), lambda n: n == 8),
                (op("eq", attr("cached"), scalar("true")), lambda n: n % 2 == 0),
                (op("eq", attr("cached"), scalar("true", "bool")), lambda n: n % 2 == 0),
                (op("gte", attr("code"), scalar("400", "int")), lambda n: n % 4 > 1),
                (op("lt", scalar("400"), attr("code")), lambda n: n % 4 == 3),
                (op("gt", attr("share"), scalar("1.2")), lambda n: n > 9),
                (op("gt", attr("size"), scalar("99")), lambda n: 0 < n < 4),   # a text that is a number
                (op("exists", attr("rare")), lambda n: n > 7),
                (op("not", op("exists", attr("rare"))), lambda n: n < 8),
                (op("ne", attr("rare"), scalar("there")), lambda n: n > 7),    # spans with the attribute
                (op("ne", attr("user"), scalar("u0")), lambda n: n % 3),
                (op("in", attr("user"), values("u0", "u2")), lambda n: n % 3 != 1),
                (op("not_in", attr("user"), values("u0", "u2")), lambda n: n % 3 == 1),
                (op("not_in", attr("rare"), values("x")), lambda n: n > 7),
                (op("regex", attr("user"), scalar("[01]$")), lambda n: n % 3 < 2),
                (op("regex", field("span", "name"), scalar("^p")), lambda n: n % 2 == 0),
                (op("gt", field("span", "duration"), scalar("950ms")), lambda n: n > 8),
                (op("lte", field("span", "startTime"), scalar(at)), lambda n: n < 5),
                (op("lt", field("span", "startTime"), field("span", "endTime")), lambda n: True),
                (op("eq", field("span", "kind"), scalar("client")), lambda n: KINDS[n % 6] == "client"),
                (op("in", field("span", "status"), values("ok", "error")), lambda n: STATUSES[n % 3] != "unset"),
                (op("eq", field("span", "statusMessage"), scalar("broke")), lambda n: n % 3 == 2),
                (op("eq", field("span", "traceID"), scalar(f"{5:032x}")), lambda n: n == 4),
                (op("exists", field("span", "parentSpanID")), lambda n: False),
                (op("gt", field("span", "name"), scalar("h")), lambda n: n % 2 == 0),
                (op("eq", field("resource", "service"), scalar("back")), lambda n: n > 5),
                (op("and", op("eq", field("resource", "service"), scalar("back")),
                    op("eq", field("span", "name"), scalar("get")), op("lt", attr("code"), scalar("400"))),
                 lambda n: n > 5 and n % 2 and n % 4 < 2),
                (op("or", op("eq", field("resource", "service"), scalar("back")), op("eq", attr("user"), scalar("u0"))),
                 lambda n: n > 5 or n % 3 == 0),
                (op("eq", field("event", "name"), scalar("step 2")), lambda n: n % 4 > 2),
                (op("eq", attr("ok", "event"), scalar("yes")), lambda n: ok_at[n]),
                (op("gt", field("event", "timeSinceStart"), scalar("1us")), lambda n: n % 4 > 2),
                (op("some", {"nested": {"level": "event"}}, op("and", op("eq", attr("ok", "event"), scalar("yes")),
                                                                op("eq", field("event", "name"), scalar("step 1")))),
                 lambda n: 1 in ok_at[n]),
                (op("some", {"nested": {"level": "link"}}, op("eq", field("link", "spanID"), scalar(f"{6:016x}"))),
                 lambda n: n == 6),
                (op("some", {"nested": {"level": "link"}}, op("eq", attr("why", "link"), scalar("w6"))),
                 lambda n: n == 6),
                (op("eq", attr("why", "link"), scalar("w6")), lambda n: n == 6),
                (op("eq", attr("of", "scope"), scalar("here")), lambda n: True),
                (op("eq", field("scope", "name"), scalar("made")), lambda n: True),
                (op("eq", field("span", "kind"), scalar("unspecified")), lambda n: n % 6 == 0),
                (op("eq", field("span", "status"), scalar("unset")), lambda n: n % 3 == 0),
                (op("eq", field("span", "status"), scalar("error")), lambda n: n % 3 == 2),
                (op("exists", field("link", "traceID")), lambda n: n in (5, 6))):
            with self.subTest(json.dumps(asked)):
                self.assertEqual(self.found(asked), [n for n in range(12) if holds(n)])

    def test_what_is_refused(self):
        """Conditions that are refused, never ignored: ignoring them would answer with more than was requested."""
        deep = op("exists", attr("user"))
        for _ in range(40):
            deep = op("not", deep)
        eq = op("eq", attr("user"), scalar("u1"))
        for asked, why in (
                ("{", "JSON"), ("[]", "operator"), ("{}", "operator"),
                (op("matches", attr("a"), scalar("b")), "matches"),
                (op("eq", attr("a")), "arguments"), (op("eq", scalar("1"), scalar("1")), "arguments"),
                (op("and", eq), "arguments"), (op("not", attr("a")), "arguments"),
                (op("in", attr("a"), scalar("b")), "arg"),
                (op("eq", attr("a", "pod"), scalar("b")), "pod"), (op("eq", attr(""), scalar("b")), "key"),
                (op("eq", field("span", "colour"), scalar("b")), "colour"), (op("eq", {"ref": {}}, scalar("b")), "ref"),
                (op("gt", field("span", "duration"), scalar("long")), "duration"),
                (op("gt", field("span", "startTime"), scalar("noon")), "time"),
                (op("eq", attr("a"), scalar("x", "int")), "type"), (op("eq", attr("a"), scalar("x", "date")), "date"),
                (op("gt", field("span", "kind"), scalar("client")), "order"),
                (op("regex", attr("a"), scalar("(")), "parenthesis"),
                (op("regex", field("span", "duration"), scalar("1")), "text"), (deep, "32"),
                (op("some", {"nested": {"level": "span"}}, eq), "nested"),
                (op("some", {"nested": {"level": "link"}}, op("some", {"nested": {"level": "event"}}, eq)), "another"),
                (op("eq", attr("a", "event"), attr("b", "link")), "within some"),
                (op("in", attr("a"), values()), "values"),
                (op("eq", {"attr": {"key": "a"}, "scalar": {"value": "b"}}, scalar("b")), "one of")):
            with self.subTest(str(asked)[:60]):
                answer = self.ask(asked)
                self.assertEqual(answer.status, 400, answer.body)
                self.assertIn(why, answer.json()["error"]["message"])
        for more in ({"query.serviceName": "back"}, {"query.attributes": '{"a":"b"}'}, {"query.durationMin": "1s"}):
            self.assertEqual(self.ask(eq, **more).status, 400)

    def test_how_many(self):
        answer = self.ask(op("exists", attr("user")), **{"query.num_traces": 3})
        self.assertEqual([int(s["traceId"], 16) for s in answer.json()["summaries"]], [12, 11, 10])

    def test_what_can_be_asked(self):
        search = call(self.c.query + "/api/v3/capabilities").json()["search"]
        self.assertEqual(search["filter"]["levels"], ["span", "resource", "scope", "event", "link"])
        self.assertEqual(len(search["filter"]["operators"]), 14)
        self.assertTrue(search["withoutServiceName"])


main()
