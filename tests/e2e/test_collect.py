# SPDX-License-Identifier: MIT
"""weft collect: what was sent comes back whole, what cannot be is refused, what was acknowledged stays. The judges are
the files that were sent, protobuf by its published field numbers, and Jaeger's published mapping of OTLP."""
import base64
import contextlib
import csv
import glob
import gzip
import json
import os
import re
import resource
import shutil
import signal
import socket
import sqlite3
import struct
import subprocess
import threading
import time

import otlp_made as made
from collect_server import DOORS, JSON, PROTOBUF, Collect, call
from span_collector import SPAN, environment, span
from weft_e2e import BIN, DATA, SLOWDOWN, Case, main, need, new_dice, scratch

SEED = os.path.join(DATA, "spans", "glidein-otlp.json")
TRACE = "0102030405060708090a0b0c0d0e0f10"
DEEP = 5000


def flat(request):
    """[(resource, scope, span)] as the newer interface is read back; an empty status is none."""
    return [(r["resource"], s["scope"], span) for r in request["resourceSpans"] for s in r["scopeSpans"]
            for span in s["spans"]]


def sound(spans):
    """Returns the spans in a fixed order, without empty members."""
    return sorted(([r, s, {k: v for k, v in span.items() if v not in ({}, [])}] for r, s, span in spans),
                  key=lambda x: (x[2]["traceId"], x[2]["spanId"], json.dumps(x)))


def rich():
    """A span with all there is."""
    many = [made.text("text", "naïve ✓ \U0001f600 \"quoted\" \\ \n\t\u0000 end"),
            {"key": "yes", "value": {"boolValue": True}}, {"key": "no", "value": {"boolValue": False}},
            {"key": "beyond", "value": {"intValue": str(2**53 + 1)}},
            {"key": "least", "value": {"intValue": str(-2**63)}},
            {"key": "most", "value": {"intValue": str(2**63 - 1)}},
            {"key": "zero", "value": {"intValue": "0"}}, {"key": "real", "value": {"doubleValue": 0.1}},
            {"key": "small", "value": {"doubleValue": 5e-324}}, {"key": "large", "value": {"doubleValue": -1.5e300}},
            {"key": "raw", "value": {"bytesValue": base64.b64encode(bytes(range(256))).decode()}},
            {"key": "empty", "value": {"stringValue": ""}},
            {"key": "list", "value": {"arrayValue": {"values": [{"intValue": "1"}, {"stringValue": "two"},
                                                                  {"arrayValue": {"values": [{"boolValue": True}]}}]}}},
            {"key": "map", "value": {"kvlistValue": {"values": [
                {"key": "inner", "value": {"kvlistValue": {"values": [made.text("deep", "x")]}}}]}}}]
    return made.made(TRACE, 2, "rich ☃", parent=1, lasted=123_456_789, kind=3, traceState="a=1,b=2", flags=257,
                     attributes=many, droppedAttributesCount=3, droppedEventsCount=4, droppedLinksCount=5,
                     events=[{"timeUnixNano": "1700000000000000001", "name": "exception", "attributes": many,
                              "droppedAttributesCount": 1},
                             {"timeUnixNano": "1600000000000000000", "name": "before the span"}],
                     links=[{"traceId": "ff" * 16, "spanId": "ee" * 8, "traceState": "c=3", "attributes": many,
                             "droppedAttributesCount": 2, "flags": 1}],
                     status={"code": 2, "message": "it broke"})


class Back(Case):
    """Answers equal what was sent."""

    @classmethod
    def setUpClass(cls):
        cls.c = Collect()

    @classmethod
    def tearDownClass(cls):
        assert cls.c.stop() == 0, cls.c.said
        assert cls.c.said == "", cls.c.said

    def test_seed(self):
        need(SEED)
        with open(SEED, encoding="utf-8") as f:
            sent = json.load(f)
        self.assertEqual(self.c.send(sent).json(), {})
        trace = flat(sent)[0][2]["traceId"]
        self.assertEqual(sound(self.c.spans(trace)), sound(flat(sent)))
        self.assertIn("glidein", self.c.data("/api/services"))

    def test_seed_table(self):
        """The scripts that tabulate: their two requests, their columns."""
        need(SEED)
        with open(SEED, "rb") as f:
            self.assertEqual(self.c.send(f.read()).status, 200)
        traces = self.c.data("/api/traces", limit=20000, service="glidein", start=0)
        self.assertEqual(len(traces), 1)
        rows = []
        for s in traces[0]["spans"]:
            entry = next((t["value"] for x in traces[0]["spans"] for t in x["tags"] if t["key"] == "entry"), "None")
            rows.append([s["traceID"] + ":" + s["spanID"], s["references"][0]["spanID"], entry, entry,
                         time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(s["startTime"] / 1e6)), str(s["duration"])])
        with open(os.path.join(DATA, "spans", "glidein-table.tsv"), encoding="utf-8", newline="") as f:
            expected = list(csv.reader(f, delimiter="\t"))[1:]
        self.assertEqual(sorted(rows), sorted(expected))

    def test_every_encoding(self):
        for n, (kind, packed) in enumerate([(JSON, False), (JSON, True), (PROTOBUF, False), (PROTOBUF, True)]):
            with self.subTest(kind=kind, packed=packed):
                s = rich()
                s["traceId"] = f"{n + 0xabc0:032x}"
                sent = made.of([s], service=f"enc {n}", version="7")
                sent["resourceSpans"][0]["schemaUrl"] = "https://example.org/1"
                sent["resourceSpans"][0]["scopeSpans"][0]["scope"] |= {"version": "v1",
                                                                      "attributes": [made.text("s", "t")]}
                body = made.request(sent) if kind == PROTOBUF else sent
                answer = self.c.send(body, kind + ("; charset=utf-8" if kind == JSON else ""), packed)
                self.assertEqual((answer.status, answer.headers["Content-Type"]), (200, kind))
                self.assertEqual(answer.body, b"{}" if kind == JSON else b"")
                self.assertEqual(sound(self.c.spans(s["traceId"])), sound(flat(sent)))

    def test_older_interface(self):
        """The mapping that Jaeger documents."""
        s = rich()
        s["traceId"] = "0" * 28 + "5afe"
        self.c.send(made.of([s], service="mapped", zone="z"))
        trace, = self.c.data("/api/traces/5afe")
        self.assertEqual(list(trace["processes"].values()),
                         [{"serviceName": "mapped", "tags": [{"key": "zone", "type": "string", "value": "z"}]}])
        got, = trace["spans"]
        tags = {t["key"]: (t["type"], t["value"]) for t in got["tags"]}
        self.assertEqual((got["operationName"], got["startTime"], got["duration"]),
                         ("rich ☃", 1_700_000_000_000_000, 123_456))
        self.assertEqual(got["references"],
                         [{"refType": "CHILD_OF", "traceID": s["traceId"], "spanID": f"{1:016x}"},
                          {"refType": "FOLLOWS_FROM", "traceID": "ff" * 16, "spanID": "ee" * 8}])
        for key, expected in {
                "text": ("string", "naïve ✓ \U0001f600 \"quoted\" \\ \n\t\u0000 end"), "yes": ("bool", True),
                "beyond": ("int64", str(2**53 + 1)), "zero": ("int64", 0), "real": ("float64", 0.1),
                "raw": ("binary", base64.b64encode(bytes(range(256))).decode()), "span.kind": ("string", "client"),
                "error": ("bool", True), "otel.status_code": ("string", "ERROR"),
                "otel.status_description": ("string", "it broke"), "otel.scope.name": ("string", "made"),
                "w3c.tracestate": ("string", "a=1,b=2")}.items():
            self.assertEqual(tags[key], expected)
        self.assertEqual(json.loads(tags["list"][1]), [1, "two", [True]])
        self.assertEqual(json.loads(tags["map"][1]), {"inner": {"deep": "x"}})
        self.assertEqual([e["timestamp"] for e in got["logs"]], [1_700_000_000_000_000, 1_600_000_000_000_000])
        self.assertEqual(got["logs"][0]["fields"][0], {"key": "event", "type": "string", "value": "exception"})

    def test_search(self):
        base = int(time.time() * 1e9)
        for n in range(10):
            self.c.send(made.of([
                made.made(f"{n + 1:030x}aa", 1, "get" if n % 2 else "put", base + n * 10**9, (n + 1) * 10**8,
                          attributes=[made.text("user", f"u{n % 3}")], status={"code": 2} if n == 7 else {}),
                made.made(f"{n + 1:030x}aa", 2, "inner", base + n * 10**9, 1, parent=1)], service="found", zone="z"))

        def ids(**query):
            return [int(t["traceID"], 16) >> 8 for t in self.c.data("/api/traces", service="found", **query)]

        at = base // 1000
        in_time = {"start": at - 1, "end": at + 60_000_000}
        self.assertEqual(ids(**in_time), list(range(10, 0, -1)))
        self.assertEqual(ids(limit=3, **in_time), [10, 9, 8])
        self.assertEqual(ids(operation="get", **in_time), [10, 8, 6, 4, 2])
        self.assertEqual(ids(minDuration="850ms", **in_time), [10, 9])
        self.assertEqual(ids(operation="put", maxDuration="0.35s", **in_time), [3, 1])
        self.assertEqual(ids(tags='{"user":"u1"}', **in_time), [8, 5, 2])
        self.assertEqual(ids(tag=["user:u1", "zone:z"], **in_time), [8, 5, 2])
        self.assertEqual(ids(tags='{"error":"true"}', **in_time), [8])
        self.assertEqual(ids(tags='{"span.kind":"client"}', **in_time), [])
        self.assertEqual(ids(start=at + 2_500_000, end=at + 4_500_000), [5, 4])
        self.assertEqual(ids(start=at + 3_000_000, end=at + 3_000_000), [4])
        self.assertEqual(self.c.data("/api/services/found/operations"), ["get", "inner", "put"])
        self.assertEqual(len(self.c.data("/api/traces", service="found", **in_time)[0]["spans"]), 2)
        rfc = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(base // 10**9 + s)) for s in (-1, 60)]
        wanted = {"query.serviceName": "found", "query.startTimeMin": rfc[0] + "Z", "query.search_depth": 2,
                  "query.start_time_max": rfc[1] + " 00:00"}
        summaries = self.c.get("/api/v3/trace-summaries", **wanted).json()["summaries"]
        self.assertEqual([(s["traceId"], s["rootOperationName"], s["spanCount"], s["orphanSpanCount"])
                          for s in summaries], [(f"{n:030x}aa", "get" if n % 2 == 0 else "put", 2, 0) for n in (10, 9)])

    def test_wrong_questions(self):
        for path, status in {"/api/traces": 400, "/api/traces?service=x&limit=no": 400,
                             "/api/traces?service=x&minDuration=5": 400, "/api/traces?service=x&tags=%5B%5D": 400,
                             "/api/traces?service=x&minDuration=2s&maxDuration=1s": 400, "/api/traces/xyz": 400,
                             "/api/traces?service=x&start=-1": 400, "/api/traces/abcdef": 404, "/api/nothing": 404,
                             "/api/operations": 400, "/api/v3/traces": 400, "/api/v3/traces/" + "12" * 16: 404,
                             "/api/traces?service=nobody": 200, "/api/dependencies?endTs=x": 400}.items():
            with self.subTest(path):
                answer = call(self.c.query + path)
                self.assertEqual(answer.status, status)
                if status != 200 and "/v3/" not in path:
                    self.assertEqual(answer.json()["errors"][0]["code"], status)
                elif status != 200:
                    self.assertEqual(answer.json()["error"]["httpCode"], status)
        self.assertEqual(call(self.c.query + "/api/services", b"", method="POST").status, 405)

    def test_dependencies(self):
        trace = "d" * 32
        for n, (service, parent) in enumerate([("front", None), ("back", 1), ("back", 1), ("db", 2)]):
            self.c.send(made.of([made.made(trace, n + 1, begin=10**18 + n, parent=parent)], service="dep " + service))
        calls = self.c.data("/api/dependencies", endTs=10**12 + 1, lookback=2)
        self.assertEqual(calls, [{"parent": "dep back", "child": "dep db", "callCount": 1},
                                 {"parent": "dep front", "child": "dep back", "callCount": 2}])
        self.assertEqual(self.c.data("/api/dependencies", endTs=10**12 - 5, lookback=2), [])

    def test_repeated(self):
        trace = "e" * 32
        sent = made.of([made.made(trace, n, attributes=[made.text("n", str(n))]) for n in range(1, 500)])
        for body, kind in ((sent, JSON), (made.request(sent), PROTOBUF), (sent, JSON)):
            self.assertEqual(self.c.send(body, kind).status, 200)
        self.assertEqual(sound(self.c.spans(trace)), sound(flat(sent)))

    def test_same_id_other_contents(self):
        """Client and server of one call."""
        trace = "f" * 32
        for kind, service in ((3, "asks"), (2, "answers")):
            self.c.send(made.of([made.made(trace, 1, kind=kind)], service=service))
        self.assertEqual(sorted(s["kind"] for _, _, s in self.c.spans(trace)), [2, 3])

    def test_scripts(self):
        """weft-span, to the collector and out of the questions."""
        env = environment(self.c.otlp, OTEL_SERVICE_NAME="script")
        before = time.time()
        run = span("run", "--name", "stage", "--attribute", "entry=E", "--", "sh", "-c", "exit 3", env=env)
        self.assertEqual((run.returncode, run.stderr), (3, b""))
        trace, = self.c.data("/api/traces", service="script")
        got, = trace["spans"]
        tags = {t["key"]: t["value"] for t in got["tags"]}
        self.assertEqual((got["operationName"], tags["entry"], tags["process.exit.code"], tags["error"]),
                         ("stage", "E", 3, True))
        self.assertTrue(before - 1 < got["startTime"] / 1e6 < time.time() + 1)

    def test_scripts_of_pfeil(self):
        """Jaeger's Thrift format."""
        program = os.path.join(scratch(), "pfeil")
        os.symlink(SPAN, program)
        env = environment(JAEGER_ENDPOINT=self.c.jaeger + "/api/traces?format=jaeger.thrift", JAEGER_SERVICE_NAME="p")
        run = span("-t", "UUID=u 1", "stage", "sh", "-c", "exit 2", env=env, program=program)
        self.assertEqual((run.returncode, run.stderr), (2, b""))
        trace, = self.c.data("/api/traces", service="p")
        got, = trace["spans"]
        tags = {t["key"]: t["value"] for t in got["tags"]}
        self.assertEqual((got["operationName"], tags["UUID"], tags["error"], tags["span.kind"]),
                         ("stage", "u 1", True, "server"))
        process = trace["processes"][got["processID"]]
        self.assertEqual((process["serviceName"], {t["key"]: t["value"] for t in process["tags"]}["host.name"]),
                         ("p", socket.gethostname()))
        self.assertTrue(run.stdout.decode().startswith(got["traceID"] + ":" + got["spanID"]), run.stdout)

    def test_zipkin_of_b3(self):
        """Short ids, fractions of a microsecond, shared ids, endpoints."""
        send = [{"traceId": "00000000000000aa", "id": "b", "kind": "CLIENT"},
                {"traceId": "48485a3953bb6124", "id": "000000000000000b", "kind": "CLIENT", "name": "Get",
                 "timestamp": 1700000000000000.7, "duration": 5,
                 "localEndpoint": {"serviceName": "z1", "ipv4": "10.0.0.1"},
                 "remoteEndpoint": {"serviceName": "far", "ipv4": "10.0.0.2", "port": 80},
                 "tags": {"error": "boom", "a": "b"},
                 "annotations": [{"timestamp": 1700000000000001, "value": "sent"}]},
                {"traceId": "48485a3953bb6124", "id": "000000000000000b", "kind": "SERVER", "name": "Get",
                 "timestamp": 1700000000000001, "duration": 3, "localEndpoint": {"serviceName": "z2"}, "shared": True}]
        answer = call(self.c.zipkin + "/api/v2/spans", json.dumps(send).encode(), {"Content-Type": JSON})
        self.assertEqual((answer.status, answer.body), (202, b""))
        trace, = self.c.data("/api/traces/48485a3953bb6124")
        one, two = trace["spans"]
        self.assertEqual((one["startTime"], one["duration"], one["operationName"]), (1700000000000000, 5, "Get"))
        self.assertEqual({t["key"]: t["value"] for t in one["tags"]},
                         {"a": "b", "peer.service": "far", "peer.ipv4": "10.0.0.2", "peer.port": 80,
                          "span.kind": "client", "error": True, "otel.status_code": "ERROR",
                          "otel.status_description": "boom"})
        self.assertEqual(one["logs"], [{"timestamp": 1700000000000001,
                                        "fields": [{"key": "event", "type": "string", "value": "sent"}]}])
        self.assertEqual([trace["processes"][s["processID"]]["serviceName"] for s in (one, two)], ["z1", "z2"])

    def test_open_spans(self):
        """An open span is seen; the ended one takes its place, whichever comes first."""
        for trace, order in (("a1" * 16, "open ended"), ("a2" * 16, "ended open"), ("a3" * 16, "open open lost ended"),
                             ("a4" * 16, "open lost")):
            words = order.split()
            for n, state in enumerate(words):
                more = {} if state == "ended" else {"attributes": [made.text("weft.state", state)]}
                self.c.send(made.of([made.made(trace, 1, lasted=n + 5, **more)]))
                self.assertEqual(len(self.c.spans(trace)), 1)
            (_, _, got), = self.c.spans(trace)
            best = "ended" if "ended" in words else "lost"
            self.assertEqual(int(got["endTimeUnixNano"]) - int(got["startTimeUnixNano"]), 5 + words.index(best), order)


class Hostile(Case):
    @classmethod
    def setUpClass(cls):
        cls.c = Collect()

    @classmethod
    def tearDownClass(cls):
        assert (cls.c.stop(), cls.c.said) == (0, ""), cls.c.said

    def status(self, body, kind=JSON, **more):
        return self.c.send(body, kind, **more).status

    def test_status_codes(self):
        empty = json.dumps({"resourceSpans": []}).encode()
        self.assertEqual(self.c.send(empty).body, b"{}")
        self.assertEqual(self.c.send(b"{}").status, 200)
        self.assertEqual(self.c.send(b"", PROTOBUF).body, b"")
        self.assertEqual(self.status(empty, "text/plain"), 415)
        self.assertEqual(self.status(empty, "application/jsonx"), 415)
        self.assertEqual(self.c.send(empty, **{"Content-Encoding": "br"}).status, 415)
        self.assertEqual(call(self.c.otlp + "/v1/traces").status, 405)
        self.assertEqual(call(self.c.otlp + "/v1/metrics", b"", {"Content-Type": JSON}).status, 404)
        for bad in (b"", b"[]", b"{", b"null", b'{"resourceSpans":5}', b'{"resourceSpans":[5]}',
                    json.dumps(made.of([made.made(TRACE, 1) | {"name": 5}])).encode(),
                    json.dumps(made.of([made.made(TRACE, 1) | {"kind": "SPAN_KIND_SERVER"}])).encode(),
                    json.dumps(made.of([made.made(TRACE, 1) | {"endTimeUnixNano": "-5"}])).encode()):
            answer = self.c.send(bad)
            self.assertEqual((answer.status, answer.headers["Content-Type"]), (400, JSON), bad)
            self.assertTrue(answer.json()["message"])
        good = made.request(made.of([made.made(TRACE, 1)]))
        for bad in (b"\xff", good[:-1], b"\x0a\x05abc"):
            answer = self.c.send(bad, PROTOBUF)
            self.assertEqual((answer.status, answer.headers["Content-Type"]), (400, PROTOBUF))
            self.assertEqual(answer.body[:1], b"\x12")  # message of google.rpc.Status
        self.assertEqual(self.status(b"no gzip", **{"Content-Encoding": "gzip"}), 400)
        self.assertEqual(self.status(gzip.compress(empty)[:-9], **{"Content-Encoding": "gzip"}), 400)

    def test_status_codes_of_older(self):
        thrift, zipkin = self.c.jaeger + "/api/traces", self.c.zipkin + "/api/v2/spans"
        for url, body, kind, status in ((thrift, b"\0", "application/x-thrift", 400),
                                        (thrift, b"", JSON, 400), (thrift + "x", b"", JSON, 404),
                                        (thrift, b"\x0c\0\1" * 100000, "application/x-thrift", 400),
                                        (thrift, b"\x0f\0\2\x0c\x7f\xff\xff\xff", "application/x-thrift", 400),
                                        (zipkin, b"[]", JSON, 202), (zipkin, b"{}", JSON, 400),
                                        (zipkin, b"[5]", JSON, 400),
                                        (zipkin, b"[{}]", JSON, 400), (zipkin, b"[]", "application/x-protobuf", 415)):
            with self.subTest(url=url, body=body[:20]):
                self.assertEqual(call(url, body, {"Content-Type": kind}).status, status)
        self.assertEqual(call(zipkin).status, 405)

    def test_partial(self):
        bad = [made.made("0" * 32, 1), made.made("5" * 32, 0), made.made("5" * 31, 1), made.made("5" * 32, 1) |
               {"startTimeUnixNano": str(2**63)}, made.made("5" * 32, 2) | {"parentSpanId": "xx"}]
        sent = made.of([*bad, made.made("5" * 32, 9)])
        answer = self.c.send(sent).json()["partialSuccess"]
        self.assertEqual(answer["rejectedSpans"], "5")
        self.assertIn("zero", answer["errorMessage"])
        self.assertEqual([s["spanId"] for _, _, s in self.c.spans("5" * 32)], [f"{9:016x}"])
        answer = self.c.send(made.request(made.of([made.made("0" * 32, 1), made.made("5" * 32, 9)])), PROTOBUF)
        # ExportTraceServiceResponse{1: {1: rejected, 2: message}}
        self.assertEqual((answer.status, answer.body[0], answer.body[2:4]), (200, 0x0a, b"\x08\x01"))

    def test_gzip_members(self):
        """Gzip bodies: all members are read (RFC 1952, 2.2); invalid members make the gzip invalid."""
        def packed(number):
            return gzip.compress(made.request(made.of([made.made("d4" * 16, number)])))
        self.assertEqual(self.status(packed(1) + packed(2), PROTOBUF, **{"Content-Encoding": "gzip"}), 200)
        self.assertEqual([int(s["spanId"], 16) for _, _, s in self.c.spans("d4" * 16)], [1, 2])
        for garbage in (b"garbage", packed(4)[:-5], b"\x1f\x8b", b"\0"):
            self.assertEqual(self.status(packed(3) + garbage, PROTOBUF, **{"Content-Encoding": "gzip"}), 400)
        self.assertEqual(len(self.c.spans("d4" * 16)), 2)

    def test_other_spellings(self):
        """Members by the names of the protobuf fields, and containers by those of older versions."""
        def snake(v):
            if isinstance(v, list):
                return [snake(x) for x in v]
            if isinstance(v, dict):
                return {re.sub("[A-Z]", lambda m: "_" + m.group(0).lower(), k): snake(x) for k, x in v.items()}
            return v

        def ids_replaced(r, trace, by):
            return json.loads(json.dumps(r).replace(trace, by))

        sent = ids_replaced(made.of([rich()]), TRACE, "a0" * 16)
        self.assertEqual(self.c.send(sent).body, b"{}")
        self.assertEqual(self.c.send(snake(ids_replaced(sent, "a0" * 16, "a1" * 16))).body, b"{}")
        older = json.loads(json.dumps(ids_replaced(sent, "a0" * 16, "a2" * 16)).replace('"scopeSpans"',
                           '"instrumentationLibrarySpans"').replace('"scope"', '"instrumentationLibrary"'))
        self.assertEqual(self.c.send(older).body, b"{}")
        self.assertEqual(self.c.send(snake(ids_replaced(older, "a2" * 16, "a3" * 16))).body, b"{}")
        wanted = sound(flat(sent))
        for trace in ("a0" * 16, "a1" * 16, "a2" * 16, "a3" * 16):
            self.assertEqual(sound(ids_replaced(self.c.spans(trace), trace, "a0" * 16)), wanted, trace)
        span_of = made.span(made.made("a4" * 16, 1))  # ResourceSpans.instrumentation_library_spans = 1000
        self.assertEqual(self.c.send(made.blob(1, made.blob(1000, made.blob(2, span_of))), PROTOBUF).body, b"")
        self.assertEqual(len(self.c.spans("a4" * 16)), 1)

    def test_not_understood(self):
        """A body in which parts are not understood is not answered as if all were well."""
        one = made.made("a5" * 16, 1)
        for body, word in (({"resourceSpan": [{}]}, "resourceSpan"), ({"resourceLogs": []}, "resourceLogs"),
                           ({"resourceSpans": [{"librarySpans": [{"spans": [one]}]}]}, "librarySpans"),
                           ({"resourceSpans": [{"scopeSpans": [{"span": [one]}]}]}, "span"),
                           ({"resourceSpans": [*made.of([one])["resourceSpans"], {"scopespans": []}]}, "scopespans")):
            with self.subTest(word):
                answer = self.c.send(body)
                self.assertEqual(answer.status, 200)
                partial = answer.json()["partialSuccess"]
                self.assertEqual(partial["rejectedSpans"], "0")
                self.assertIn(f'"{word}"', partial["errorMessage"])
        self.assertEqual(len(self.c.spans("a5" * 16)), 1)
        for body in (made.blob(7, b"x"), made.blob(1, made.blob(9, b"x")),
                     made.blob(1, made.blob(2, made.blob(9, b"")))):
            answer = self.c.send(body, PROTOBUF)
            self.assertEqual((answer.status, answer.body[:1]), (200, b"\x0a"))  # partial_success
            self.assertIn(b"not understood", answer.body)

    def test_more_spans_than_an_answer_has(self):
        """Traces above the limit of 200 000 spans: missing ones are reported, and summaries are of all."""
        trace, small, n, base = "ee" * 16, "e0" * 16, 200_007, int(time.time() * 1e9) // 1000 * 1000
        head = made.blob(1, bytes.fromhex(trace))
        spans = [made.blob(2, head + made.blob(2, struct.pack(">Q", i)) + b"\x2a\x01x" +
                             made.fixed(7, base + 1000 * i) + made.fixed(8, base + 1000 * i + 1))
                   for i in range(1, n + 1)]
        resource = made.blob(1, made.pairs(1, [made.text("service.name", "large")]))
        for k in range(0, n, 50000):
            body = made.blob(1, resource + made.blob(2, b"".join(spans[k:k + 50000])))
            self.assertEqual(self.c.send(body, PROTOBUF).status, 200)
        self.c.send(made.of([made.made(small, 1, begin=base - 10**9)], "large"))
        self.assertTrue(self.c.until(lambda: self.c.get("/health").json()["waitingBytes"] == 0))
        summary, = self.c.get("/api/v3/trace-summaries", **{
            "query.serviceName": "large", "query.startTimeMin": "2000-01-01T00:00:00Z", "query.search_depth": 1,
            "query.startTimeMax": "2100-01-01T00:00:00Z"}).json()["summaries"]
        self.assertEqual((summary["spanCount"], summary["maxEndTimeUnixNano"], summary["services"][0]["spanCount"]),
                         (n, str(base + 1000 * n + 1), n))
        answer = self.c.get("/api/v3/traces/" + trace).json()
        self.assertIn("more spans", answer["warnings"][0])
        first = answer["result"]["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
        self.assertEqual([a["key"] for a in first["attributes"]], ["@jaeger@warnings"])
        answer = self.c.get("/api/traces", service="large", limit=30000).json()
        self.assertEqual((len(answer["data"]), answer["total"]), (1, 2))
        self.assertIn("1 of 2 traces", answer["errors"][0]["msg"])
        self.assertIn("more spans", answer["data"][0]["warnings"][0])
        answer = self.c.get("/api/traces", traceID=[small, "e1" * 16]).json()
        self.assertEqual([e["traceID"] for e in answer["errors"]], ["e1" * 16])
        self.assertEqual(len(answer["data"]), 1)

    def test_put_right(self):
        trace = "6" * 32
        odd = [made.made(trace, 1, lasted=-500), made.made(trace, 2, name=""), made.made(trace, 3, parent=3),
               made.made(trace, 4, kind=99, attributes=[made.text("k", "old"), made.text("k", "new")])]
        answer = self.c.send(made.of(odd, service=None)).json()["partialSuccess"]
        self.assertEqual(answer["rejectedSpans"], "0")
        self.assertIn("4 spans", answer["errorMessage"])
        got = {int(s["spanId"], 16): s for _, _, s in self.c.spans(trace)}
        self.assertEqual(int(got[1]["endTimeUnixNano"]) - int(got[1]["startTimeUnixNano"]), 1)
        self.assertTrue(got[2]["name"])
        self.assertNotIn("parentSpanId", got[3])
        self.assertEqual(got[4]["attributes"], [made.text("k", "new")])
        self.assertIn("unknown_service", self.c.data("/api/services"))

    def test_texts(self):
        """Invalid UTF-8, in either encoding."""
        s = made.made("7" * 32, 1, "MARK", attributes=[made.text("MARK", "MARK")])
        raw = made.request(made.of([s])).replace(b"MARK", b"a\xff\x80b")
        self.assertEqual(self.status(raw, PROTOBUF), 200)
        raw = made.request(made.of([{**s, "traceId": "a7" * 16}])).replace(b"MARK", b"a\0\xffb")
        self.assertEqual(self.status(raw, PROTOBUF), 200)
        (_, _, got), = self.c.spans("a7" * 16)
        self.assertEqual((got["name"], got["attributes"]), ("a��b", [made.text("a��b", "a\0�b")]))
        s["traceId"] = "8" * 32
        self.assertEqual(self.status(json.dumps(made.of([s])).encode().replace(b"MARK", b"a\xff\x80b")), 200)
        s["traceId"] = "9" * 32
        self.assertEqual(self.status(json.dumps(made.of([s])).encode().replace(b"MARK", rb"a\ud800\udfff\udc00b")), 200)
        for trace, expected in (("7" * 32, "a��b"), ("8" * 32, "a��b"), ("9" * 32, "a\U000103ff�b")):
            (_, _, got), = self.c.spans(trace)
            self.assertEqual(got["name"], expected)
            self.assertEqual(got["attributes"], [made.text(expected, expected)])

    def test_deep(self):
        dice = new_dice(5)

        def new_trace():
            return f"{dice.getrandbits(128):032x}"

        v = b"\x0a\x01x"
        for n in range(DEEP):
            pair = made.blob(1, made.blob(1, "k") + made.blob(2, v))
            v = made.blob(5, made.blob(1, v)) if n % 2 else made.blob(6, pair)
        s = made.span(made.made("b" * 32, 1)) + made.blob(9, made.blob(1, "deep") + made.blob(2, v))
        body = made.blob(1, made.blob(2, made.blob(2, s)))
        self.assertEqual(self.status(body, PROTOBUF), 200)
        self.assertEqual(len(self.c.spans("b" * 32)), 1)
        text = json.dumps(made.of([made.made("c" * 32, 1, attributes=[made.text("deep", "HERE")])])).encode()
        for n in (1, 9, 10, 11, 12, 30):
            for open_, close in ((b'{"arrayValue":{"values":[', b"]}}"),
                                 (b'{"kvlistValue":{"values":[{"key":"k","value":', b"}]}}")):
                trace = new_trace()
                nested = open_ * n + b'{"stringValue":"in"}' + close * n
                sent = text.replace(b'{"stringValue": "HERE"}', nested).replace(b"c" * 32, trace.encode())
                self.assertEqual(self.status(sent), 200, n)
                got = self.c.spans(trace)
                self.assertEqual(len(got), 1)
                if n <= 10:
                    self.assertEqual(sound(got), sound(flat(json.loads(sent))))
                self.assertEqual(len(self.c.data("/api/traces/" + trace)[0]["spans"]), 1)
        nested = b'{"arrayValue":{"values":[' * DEEP + b"{}" + b"]}}" * DEEP
        self.assertEqual(self.status(text.replace(b'{"stringValue": "HERE"}', nested)), 413)
        self.assertEqual(self.status(b"[" * 10_000_000), 413)

    def test_bombs(self):
        zeros = gzip.compress(bytes(80 << 20), 9)
        self.assertEqual(self.status(zeros, PROTOBUF, **{"Content-Encoding": "gzip"}), 413)
        self.assertEqual(self.status(bytes((64 << 20) + 1), PROTOBUF), 413)
        # Millions of empty parts: attributes of one span, spans, values of an array.
        for part, wrap in ((b"\x4a\x00", lambda b: made.blob(1, made.blob(2, made.blob(2, b)))),
                           (b"\x12\x00", lambda b: made.blob(1, made.blob(2, b)))):
            body = gzip.compress(wrap(part * (15 << 20)))
            self.assertIn(self.status(body, PROTOBUF, **{"Content-Encoding": "gzip"}), (200, 413))
        body = gzip.compress(b'{"resourceSpans":[' + b"{}," * (10 << 20) + b"{}]}")
        self.assertEqual(self.status(body, **{"Content-Encoding": "gzip"}), 413)
        with open(f"/proc/{self.c.process.pid}/status", encoding="ascii") as f:
            peak = next(int(line.split()[1]) for line in f if line.startswith("VmHWM"))
        self.assertLess(peak, (1 << 20) * (1 if SLOWDOWN == 1 else 8), "KiB")

    def test_circles(self):
        trace = "d" * 32
        self.c.send(made.of([made.made(trace, n, parent=n % 5 + 1) for n in range(1, 6)]))
        self.assertEqual(len(self.c.spans(trace)), 5)
        self.assertEqual(len(self.c.data("/api/traces/" + trace)[0]["spans"]), 5)
        self.assertEqual(self.c.get("/api/dependencies", endTs=2 * 10**12, lookback=2 * 10**12).status, 200)

    def test_garbage(self):
        dice = new_dice(4)
        good = made.request(made.of([rich()]))
        text = json.dumps(made.of([rich()])).encode()
        for n in range(400 // SLOWDOWN):
            for body, kind in ((good, PROTOBUF), (text, JSON)):
                b = bytearray(body)
                for _ in range(dice.randint(1, 4)):
                    b[dice.randrange(len(b))] = dice.randrange(256)
                self.assertIn(self.status(bytes(b), kind), (200, 400, 413))
        self.assertEqual(self.c.get("/api/services").status, 200)


class Kept(Case):
    """Acknowledged spans are kept."""

    def test_killed(self):
        """Senders in parallel, kill -9 in between: what was acknowledged is there once, whole."""
        store, acknowledged, lock = scratch(), set(), threading.Lock()
        for round_number in range(4):
            c = Collect(store=store)

            def sender(number, c=c, round_number=round_number):
                for n in range(100000):
                    trace = f"{round_number + 1:08x}{number + 1:08x}{n:016x}"
                    try:
                        if c.send(made.of([made.made(trace, i) for i in range(1, 40)])).status == 200:
                            with lock:
                                acknowledged.add(trace)
                    except OSError:
                        return
            threads = [threading.Thread(target=sender, args=(n,)) for n in range(4)]
            for t in threads:
                t.start()
            time.sleep(0.5 * SLOWDOWN)
            c.stop(signal.SIGKILL)
            for t in threads:
                t.join()
        self.assertGreater(len(acknowledged), 20)
        with Collect(store=store) as c:
            for trace in acknowledged:
                self.assertEqual([int(s["spanId"], 16) for _, _, s in c.spans(trace)], list(range(1, 40)))

    def test_torn(self):
        """The log's end was not written whole."""
        store = scratch()
        with Collect(store=store) as c:
            c.send(made.of([made.made(TRACE, 1)]))
            c.stop(signal.SIGKILL)
        c.lose_database()
        path, = glob.glob(store + "/log/*.log")
        with open(path, "ab") as f:
            f.write(b"\x40\0\0\0torn")
        with Collect(store=store) as c:  # the database was lost, too: the log has all
            self.assertEqual(len(c.spans(TRACE)), 1)
            c.send(made.of([made.made(TRACE, 2)]))
            self.assertEqual(len(c.spans(TRACE)), 2)

    def test_log_lost(self):
        """A log that begins anew is read from its begin, however far the one before it was."""
        store = scratch()
        for _ in range(3):  # log number, which grows with each start
            with Collect(store=store) as c:
                c.send(made.of([made.made(TRACE, 1)]))
                self.assertEqual(len(c.spans(TRACE)), 1)
        shutil.rmtree(store + "/log")
        with Collect(store=store) as c:
            c.send(made.of([made.made(TRACE, 2)]))
            self.assertEqual(len(c.spans(TRACE)), 2)

    def test_full_disk(self):
        """Files may not grow: what cannot be written is not acknowledged, and may come again."""
        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, resource.RLIM_INFINITY))

        with Collect(preexec_fn=limit) as c:
            taken, refused = 0, 0
            for n in range(1, 60):
                answer = c.send(made.of([made.made(f"{n:032x}", i, attributes=[made.text("k", "v" * 1000)])
                                         for i in range(1, 100)]))
                self.assertIn(answer.status, (200, 503))
                taken += answer.status == 200
                refused += answer.status == 503
                if answer.status == 503:
                    self.assertTrue(int(answer.headers["Retry-After"]) > 0)
                    break
            self.assertTrue(taken and refused, (taken, refused))
            resource.prlimit(c.process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
            self.assertEqual(c.send(made.of([made.made("ab" * 16, 1)])).status, 200)
            self.assertTrue(c.until(lambda: len(c.spans("ab" * 16)) == 1))
            for n in range(1, taken + 1):
                self.assertEqual(len(c.spans(f"{n:032x}")), 99)

    def test_one_at_a_time(self):
        with Collect() as c:
            with self.assertRaisesRegex(AssertionError, "another collector"):
                Collect(store=c.store)

    def test_retention(self):
        store = scratch()

        with Collect(store=store) as c:
            dice = new_dice(9)
            for n in range(1, 41):
                c.send(made.of([made.made(f"{dice.getrandbits(128):032x}", i, f"op {n}",
                                          attributes=[made.text("k", dice.randbytes(300).hex())])
                                for i in range(1, 200)]))
            c.send(made.of([made.made(TRACE, 1)]))
            self.assertEqual(len(c.spans(TRACE)), 1)
            self.assertEqual(c.stop(), 0)
        self.assertGreater(c.used(), 6 << 20)
        with Collect("--keep-size", "2M", store=store) as c:
            self.assertTrue(c.until(lambda: c.used() <= 2 << 20), c.used())
            self.assertEqual(len(c.spans(TRACE)), 1)  # the newest
            names = c.data("/api/services/shop/operations")
            self.assertTrue(1 < len(names) < c.most_names, names)
            self.assertEqual(c.stop(), 0)
        time.sleep(1.1)
        with Collect("--keep", "1s", store=store) as c:
            self.assertTrue(c.until(lambda: not c.data("/api/services")))
            self.assertEqual(c.spans(TRACE), [])
            self.assertTrue(c.until(lambda: c.used() < 1 << 20), c.used())  # pages go after the spans



class Directory(Case):
    """Functions only of a store in a directory."""

    def many_names(self, n):
        """A collector that makes a store of so many operations' spans a quarter as large."""
        store = scratch()
        with Collect("--keep", "none", store=store) as c:
            for k in range(0, n, 4000):
                c.send(made.request(made.of([made.made(f"{k + i + 1:032x}", 1, f"GET /item/{k + i}")
                                             for i in range(4000)])), kind=PROTOBUF)
            self.assertEqual(c.stop(), 0)
        most = c.used() // 4
        return Collect("--keep-size", str(most), store=store), most

    def test_retention_of_many_names(self):
        """Retention costs as much as is deleted, and spans received meanwhile are present at once."""
        took = []
        for n in (8000, 32000):
            c, most = self.many_names(n)
            with c:
                c.send(made.of([made.made(TRACE, 1)]))
                self.assertEqual(c.get("/api/traces/" + TRACE).status, 200)
                self.assertTrue(c.until(lambda: c.used() <= most), (c.used(), most))
                self.assertGreater(c.used(), most // 2)  # limit of deletion
                self.assertGreater(len(c.data("/api/services/shop/operations")), n // 8)
                took.append(c.processor_s())
                self.assertEqual(c.stop(), 0)
        self.assertLess(took[1], 8 * took[0] + 0.2, took)

    def test_several_traces_while_one_waits(self):
        """Query of several traces: existing ones are answered, missing ones named; a single missing one may come
        soon."""
        with Collect("--keep", "none") as c:
            c.send(made.of([made.made("1" * 32, 1)]))
            self.assertEqual(len(c.spans("1" * 32)), 1)
            with contextlib.closing(sqlite3.connect(c.store + "/spans.db", isolation_level=None)) as db:
                db.execute("BEGIN IMMEDIATE")  # lock against other writers
                c.send(made.of([made.made("2" * 32, 1)]))
                answer = c.get("/api/traces", traceID=["2" * 32, "1" * 32])
                self.assertEqual(answer.status, 200, answer.body)
                self.assertEqual([t["traceID"] for t in answer.json()["data"]], ["1" * 32])
                self.assertEqual([(x["code"], x.get("traceID")) for x in answer.json()["errors"]],
                                 [(206, None), (503, "2" * 32)])
                self.assertEqual(c.get("/api/traces/" + "2" * 32).status, 503)
                db.execute("ROLLBACK")
            self.assertEqual(len(c.spans("2" * 32)), 1)
            answer = c.get("/api/traces", traceID=["2" * 32, "3" * 32]).json()
            self.assertEqual([(x["code"], x.get("traceID")) for x in answer["errors"]], [(404, "3" * 32)])

    def test_pages_that_cannot_be_given_back(self):
        """A database restored from a dump has no pointer map: weft does not try for ever to give back its pages."""
        store = scratch()
        with Collect("--keep", "none", store=store) as c:
            for k in range(20):
                c.send(made.of([made.made(f"{k * 100 + n + 1:032x}", 1) for n in range(100)]))
            self.assertEqual(c.stop(), 0)
        with contextlib.closing(sqlite3.connect(store + "/spans.db")) as db:
            db.execute("PRAGMA journal_mode = DELETE")
            db.execute("PRAGMA auto_vacuum = NONE")
            db.execute("VACUUM")
        time.sleep(1.1)
        with Collect("--keep", "1s", store=store) as c:
            self.assertTrue(c.until(lambda: c.data("/api/services") == []))
            c.send(made.of([made.made(TRACE, 1, "kept")]))
            before = c.processor_s()
            time.sleep(3)
            self.assertLess(c.processor_s() - before, 0.3 * SLOWDOWN)  # limit: else it takes a third, or all
            self.assertEqual(c.stop(), 0)

    def test_store_of_schema_1(self):
        store = scratch()
        with Collect(store=store) as c:
            c.send(made.of([made.made(TRACE, i, f"op {i}") for i in range(1, 9)]))
            self.assertEqual(c.stop(), 0)
        with contextlib.closing(sqlite3.connect(store + "/spans.db")) as db:  # former state
            for table in "texts", "origins", "operations":
                db.execute(f"DROP INDEX {table}_by_last")
                db.execute(f"ALTER TABLE {table} DROP COLUMN last")
            for table in "terms", "groups", "children", "calls":
                db.execute(f"DROP TABLE {table}")
            db.execute("DELETE FROM about WHERE key = 'next number'")
            db.execute("PRAGMA user_version = 1")
            db.commit()
        listed = subprocess.run([BIN, "spans", "table", "--store", store, "--format", "csv"], capture_output=True,
                                text=True, check=True).stdout
        self.assertEqual(len([line for line in listed.splitlines() if TRACE in line]), 8, listed)
        with Collect(store=store) as c:
            c.send(made.of([made.made("77" * 16, 1, "new")], "new"))
            self.assertEqual(len(c.spans("77" * 16)), 1)
            self.assertEqual(len(c.spans(TRACE)), 8)
            self.assertEqual(c.stop(), 0)
        time.sleep(1.1)
        with Collect("--keep", "1s", store=store) as c:
            self.assertTrue(c.until(lambda: c.data("/api/services") == []))
            self.assertEqual(c.spans(TRACE), [])
            self.assertEqual(c.stop(), 0)


class Closed(Case):
    def test_wrong_use(self):
        for args, told in ((["there"], "takes no arguments"), (["--keep", "soon"], "--keep soon"),
                           (["--keep-size", "big"], "--keep-size big"),
                           ([x for door in DOORS for x in ("--" + door, "none")],
                            "at least one to listen on"), (["--otlp-http", "here"], "ADDRESS:PORT")):
            run = subprocess.run([BIN, "collect", "--store", scratch(), *args], capture_output=True, text=True,
                                 timeout=60 * SLOWDOWN, check=False)
            self.assertEqual((run.returncode, run.stdout), (2, ""), run)
            self.assertRegex(run.stderr, rf"\Aweft: [^\n]*{told}[^\n]*\n\Z")

    def test_token(self):
        token = os.path.join(scratch(), "token")
        with open(token, "w", encoding="ascii") as f:
            f.write("secret\n")
        with Collect("--token-file", token) as c:
            sent = made.of([made.made(TRACE, 1)])
            self.assertEqual(c.send(sent).status, 401)
            self.assertEqual(c.get("/api/services").status, 401)
            right = {"Authorization": "Bearer secret"}
            self.assertEqual(c.send(sent, **right).status, 200)
            self.assertEqual(call(c.query + "/api/services", headers=right).json()["data"], ["shop"])

    def test_pages_of_others(self):
        with Collect() as c:
            self.assertEqual(c.send(made.of([]), Origin="https://evil.example").status, 403)
            self.assertEqual(call(c.query + "/api/services", headers={"Host": "evil.example"}).status, 421)

    def test_files_are_the_users_alone(self):
        store = os.path.join(scratch(), "new")
        with Collect(store=store) as c:
            c.send(made.of([made.made(TRACE, 1)]))
            for path in [store, *glob.glob(store + "/*"), *glob.glob(store + "/log/*")]:
                self.assertEqual(os.stat(path).st_mode & 0o077, 0, path)


if __name__ == "__main__":
    main()
