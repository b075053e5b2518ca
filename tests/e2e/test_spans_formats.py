# SPDX-License-Identifier: MIT
"""weft spans reads what other programs save: Jaeger's downloads and answers, OTLP in its envelopes, Zipkin's answers,
packed or with a byte order mark. What it cannot read it refuses with the reason."""
import gzip
import json
import os

from collect_server import Collect, call
from otlp_made import text
from weft_e2e import Case, main, scratch, weft

T, US = 1_790_000_000_000_000, 1000  # µs since the epoch; ns
TRACE, ROOT, PART, LATE = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7", "00f067aa0ba902b8"


def saved(content, name="saved.json"):
    path = os.path.join(scratch(), name)
    with open(path, "wb") as f:
        f.write(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def rows(*paths, code=0):
    run = weft("spans", "table", *paths)
    assert run.code == code, run
    return [line.split("\t") for line in run.text.splitlines()[1:]]


def otlp(span_id, name, begin, end, parent=""):
    return {"traceId": TRACE, "spanId": span_id, "parentSpanId": parent, "name": name, "kind": 1,
            "startTimeUnixNano": str(begin * US), "endTimeUnixNano": str(end * US),
            "attributes": [text("entry", "CMS")]}


OTLP = {"resourceSpans": [{"resource": {"attributes": [text("service.name", "pilot")]}, "scopeSpans": [{"spans": [
    otlp(ROOT, "job", T, T + 9_000_000), otlp(PART, "main", T + 1_000_000, T + 8_000_001, ROOT)]}]}]}
ROWS = [[f"{TRACE}:{PART}", ROOT, "CMS", "None", "2026-09-21 14:13:21", "7000001"],
        [f"{TRACE}:{ROOT}", "None", "CMS", "None", "2026-09-21 14:13:20", "9000000"]]
ZIPKIN = [{"traceId": TRACE, "id": ROOT, "name": "job", "timestamp": T, "duration": 9_000_000,
           "tags": {"entry": "CMS"}},
          {"traceId": TRACE, "id": PART, "parentId": ROOT, "name": "main", "timestamp": T + 1_000_000,
           "duration": 7_000_001, "tags": {}}]


class Read(Case):
    def test_what_the_collector_answers(self):
        with Collect() as c:
            self.assertEqual(c.send(OTLP).status, 200)
            for path in (f"/api/traces/{TRACE}", "/api/traces?service=pilot&start=0&end=" + str(2 * T),
                         f"/api/v3/traces/{TRACE}"):
                self.assertEqual(rows(saved(call(c.query + path).body)), ROWS, path)

    def test_jaeger(self):
        """Jaeger's files, as its page saves a trace: ids without leading zeros, references of both kinds, integers as
        texts."""
        trace = {"traceID": "9c", "spans": [
            {"traceID": "9c", "spanID": "b1", "flags": 1, "operationName": "get", "references": [], "startTime": T,
             "duration": 9_000_000, "processID": "p1", "warnings": None, "logs": [
                 {"timestamp": T + 5, "fields": [{"key": "event", "type": "string", "value": "retry"}]}],
             "tags": [{"key": "span.kind", "type": "string", "value": "client"},
                      {"key": "error", "type": "bool", "value": True},
                      {"key": "site", "type": "string", "value": "north"},
                      {"key": "bytes", "type": "int64", "value": "9007199254740993"}]},
            {"traceID": "9c", "spanID": "b2", "operationName": "take", "startTime": T + 1_000_000,
             "duration": 7_000_001,
             "references": [{"refType": "FOLLOWS_FROM", "traceID": "77", "spanID": "1"},
                            {"refType": "CHILD_OF", "traceID": "9c", "spanID": "b1"}],
             "processID": "p2", "tags": [], "logs": []}],
            "processes": {"p1": {"serviceName": "shop", "tags": [{"key": "hostname", "type": "string", "value": "w1"}]},
                          "p2": {"serviceName": "stock", "tags": []}}, "warnings": None}
        wide = "0" * 30 + "9c"
        table = [[f"{wide}:{'0' * 14}b2", "0" * 14 + "b1", "None", "None", "2026-09-21 14:13:21", "7000001"],
                 [f"{wide}:{'0' * 14}b1", "None", "None", "None", "2026-09-21 14:13:20", "9000000"]]
        answer = {"data": [trace], "total": 0, "limit": 0, "offset": 0, "errors": None}
        for content in (answer, trace, [trace], [answer]):
            self.assertEqual(rows(saved(content)), table)
        path = saved(answer)
        stages = json.loads(weft("spans", "stats", "--by", "site", "--format", "json", path).out)["stages"]
        self.assertEqual({(s["service"], s["stage"], s["errors"]) for s in stages},
                         {("shop", "get", 1), ("stock", "take", 0)})
        stages = json.loads(weft("spans", "stats", "--by", "bytes,host", "--format", "json", path).out)["stages"]
        self.assertIn({"bytes": "9007199254740993", "host": "w1"}, [s["by"] for s in stages])

    def test_cut_off_traces_are_partial(self):
        trace = {"traceID": TRACE, "spans": [], "processes": {}, "warnings": ["more spans than are shown"]}
        run = weft("spans", "table", saved({"data": [trace], "errors": None}))
        self.assertEqual(run.code, 3)
        self.assertIn("more spans than are shown", run.message)

    def test_zipkin(self):
        for content in (ZIPKIN, [ZIPKIN]):
            self.assertEqual(rows(saved(content)), ROWS)

    def test_envelopes(self):
        line, enveloped = json.dumps(OTLP).encode(), json.dumps({"result": OTLP}).encode()
        mark = b"\xef\xbb\xbf"
        two = [{"resourceSpans": [{**OTLP["resourceSpans"][0], "scopeSpans": [{"spans": [span]}]}]}
               for span in OTLP["resourceSpans"][0]["scopeSpans"][0]["spans"]]
        for content in (line, mark + line, b"\n \n" + line, enveloped, mark + enveloped + b"\n" + line,
                        json.dumps(OTLP, indent=2).encode(), json.dumps(two).encode(),
                        b"".join(json.dumps({"result": o}).encode() + b"\r\n" for o in two)):
            self.assertEqual(rows(saved(content)), ROWS, content[:60])
            self.assertEqual(rows(saved(gzip.compress(content), "saved.json.gz")), ROWS)
        members = b"".join(gzip.compress(json.dumps(o).encode() + b"\n") for o in two)
        directory = os.path.dirname(saved(members, "spans.jsonl.gz"))
        self.assertEqual(rows(directory), ROWS)

    def test_what_is_no_span(self):
        event = {"name": "job", "ph": "X", "ts": 1, "dur": 2, "pid": 3, "tid": 4}
        for content, why in (
                ({"traceEvents": [event]}, "Chrome"), ([event], "Chrome"),
                ({"resourceLogs": []}, "logs"), ({"resourceMetrics": []}, "metrics"),
                ({"data": None, "errors": [{"code": 404, "msg": "trace not found"}]}, "trace not found"),
                ({"error": {"httpCode": 404, "message": "No traces found"}}, "No traces found"),
                ({}, "resourceSpans"), ({"data": {"result": []}}, "resourceSpans"), ([1], "resourceSpans"),
                (5, "resourceSpans"), (b"", "empty"), (b"\x00\x01", "no JSON"), (gzip.compress(b"{}")[:-9], "gzip"),
                (gzip.compress(b"nothing"), "no JSON")):
            run = weft("spans", "table", saved(content))
            self.assertEqual((run.code, run.text), (1, ""), content)
            self.assertIn(why, run.message)
        run = weft("spans", "table", saved(json.dumps(OTLP).encode() + b'\n{"traceEvents": []}'))
        self.assertEqual(run.code, 3)
        self.assertIn("Chrome", run.message)

    def test_empty_answers(self):
        """Empty answers are no error."""
        for content in ({"resourceSpans": []}, {"data": [], "errors": None}, {"result": {"resourceSpans": []}}, []):
            run = weft("spans", "table", saved(content))
            self.assertEqual(run.code, 0)
            self.assertIn("no spans", run.message)


if __name__ == "__main__":
    main()
