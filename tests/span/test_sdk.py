# SPDX-License-Identifier: MIT
"""The OpenTelemetry SDK for JavaScript sends to weft collect; what is answered is what the SDK itself says of its
spans. Skips when there is no node, or npm cannot fetch the SDK."""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import http.server

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "e2e"))
from collect_server import Collect  # noqa: E402
from weft_e2e import SLOWDOWN, Case, absent, main, need  # noqa: E402


def sdk_directory():
    """A directory with sdk.mjs and its modules: this one when they are installed here, else a copy in which npm
    installs them."""
    need("node")
    here = os.path.join(HERE, "sdk")
    if os.path.isdir(os.path.join(here, "node_modules", "@opentelemetry", "exporter-trace-otlp-grpc")):
        return here
    need("npm")
    directory = os.path.join(os.environ.get("WEFT_NODE")
                             or os.path.join(tempfile.gettempdir(), f"weft-node-{os.getuid()}"), "sdk")
    os.makedirs(directory, exist_ok=True)
    for name in ("package.json", "package-lock.json", "sdk.mjs", ".npmrc"):
        shutil.copy(os.path.join(here, name), directory)
    done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund"], cwd=directory, capture_output=True, check=False)
    if done.returncode:
        absent(f"npm cannot fetch the SDK: {done.stderr.decode()[-300:]}")
    return directory


def plain(value):
    """A value of OTLP JSON as JavaScript has it."""
    (kind, v), = value.items() if value else [("none", None)]
    if kind == "intValue":
        return int(v)
    if kind == "bytesValue":
        return {"bytes": base64.b64encode(base64.b64decode(v)).decode()}
    if kind == "arrayValue":
        return [plain(x) for x in v["values"]]
    if kind == "kvlistValue":
        return attributes(v["values"])
    return v


def attributes(of):
    return {a["key"]: plain(a["value"]) for a in of}


class Unsteady:
    """Proxy before a collector: every other request is answered with 503, before or after it was forwarded."""

    def __init__(self, to):
        self.n, lock, outer = 0, threading.Lock(), self

        class Handler(http.server.BaseHTTPRequestHandler):
            def body(self):
                if "Content-Length" in self.headers:
                    return self.rfile.read(int(self.headers["Content-Length"]))
                parts = []
                while n := int(self.rfile.readline(), 16):
                    parts.append(self.rfile.read(n))
                    self.rfile.readline()
                self.rfile.readline()
                return b"".join(parts)

            def do_POST(self):
                body = self.body()
                with lock:
                    outer.n += 1
                    n = outer.n
                if n % 4 != 1:
                    answer = to.send(body, self.headers["Content-Type"],
                                     **{k: v for k, v in self.headers.items() if k == "Content-Encoding"})
                status = answer.status if n % 2 == 0 else 503
                self.send_response(status)
                self.send_header("Content-Length", "0")
                if status == 503:
                    self.send_header("Retry-After", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


class Sdk(Case):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.directory = sdk_directory()

    def sent_by(self, exporter, url, compression, spans=0):
        done = subprocess.run(["node", os.path.join(self.directory, "sdk.mjs"), exporter, url, compression, str(spans)],
                              capture_output=True, timeout=120 * SLOWDOWN, check=False,
                              env={"PATH": os.environ["PATH"]})
        self.assertEqual(done.returncode, 0, done.stderr.decode())
        sent = json.loads(done.stdout)
        self.assertEqual(sent["failures"], [])
        return sent

    def check(self, collect, sent):
        expected = {s["id"]: s for s in sent["spans"]}
        got = [x for trace in {s["trace"] for s in sent["spans"]} for x in collect.spans(trace)]
        self.assertEqual(sorted(s["spanId"] for _, _, s in got), sorted(expected))
        for resource, scope, s in got:
            e = expected[s["spanId"]]
            self.assertEqual(attributes(resource["attributes"]), sent["resource"])
            self.assertEqual((scope["name"], scope["version"]), (e["scope"]["name"], e["scope"]["version"]))
            self.assertEqual((s["traceId"], s.get("parentSpanId"), s["name"], s["kind"], s["startTimeUnixNano"],
                              s["endTimeUnixNano"]),
                             (e["trace"], e["parent"], e["name"], e["kind"], e["begin"], e["end"]))
            self.assertEqual((s["status"].get("code", 0), s["status"].get("message")),
                             (e["status"]["code"], e["status"].get("message")))
            self.assertEqual(attributes(s.get("attributes", [])), e["attributes"])
            self.assertEqual([{"name": x["name"], "time": x["timeUnixNano"],
                               "attributes": attributes(x.get("attributes", []))} for x in s.get("events", [])],
                             e["events"])
            self.assertEqual([{"trace": x["traceId"], "id": x["spanId"],
                               "attributes": attributes(x.get("attributes", []))} for x in s.get("links", [])],
                             e["links"])

    def test_exporters(self):
        with Collect() as c:
            for exporter, url in (("http", c.otlp + "/v1/traces"), ("proto", c.otlp + "/v1/traces"), ("grpc", c.grpc)):
                for compression in ("none", "gzip"):
                    with self.subTest(exporter=exporter, compression=compression):
                        sent = self.sent_by(exporter, url, compression)
                        self.check(c, sent)
                        names = c.data(f"/api/services/sdk-{exporter}-{compression}/operations")
                        self.assertEqual(names, sorted({s["name"] for s in sent["spans"]}))

    def older(self, collect, sent):
        """Returns the fields of both older formats: [(span in the SDK, in the older interface's answer, its tags)]."""
        got = {s["spanID"]: s for t in {s["trace"] for s in sent["spans"]}
               for s in collect.data("/api/traces/" + t)[0]["spans"]}
        self.assertEqual(sorted(got), sorted(s["id"] for s in sent["spans"]))
        kinds = ["internal", "server", "client", "producer", "consumer"]
        for e in sent["spans"]:
            s = got[e["id"]]
            tags = {t["key"]: t["value"] for t in s["tags"]}
            self.assertEqual((s["operationName"], s["startTime"], tags.get("span.kind", "internal")),
                             (e["name"], int(e["begin"]) // 1000, kinds[e["kind"] - 1]))
            self.assertLessEqual(abs(s["duration"] - (int(e["end"]) - int(e["begin"])) / 1000), 1)
            self.assertEqual([r["spanID"] for r in s["references"] if r["refType"] == "CHILD_OF"],
                             [e["parent"]] if e["parent"] else [])
            self.assertEqual(tags.get("error"), True if e["status"]["code"] == 2 else None)
            self.assertEqual(tags.get("otel.status_code"), [None, "OK", "ERROR"][e["status"]["code"]])
            self.assertEqual(tags.get("otel.status_description"), e["status"].get("message"))
            yield e, s, tags

    def test_jaeger_thrift(self):
        """Numbers are doubles in it, what is not plain a text."""
        with Collect() as c:
            sent = self.sent_by("jaeger", c.jaeger + "/api/traces", "none")
            for e, s, tags in self.older(c, sent):
                for key, value in e["attributes"].items():
                    if isinstance(value, list):
                        self.assertIsInstance(tags[key], str)
                    else:
                        self.assertEqual(tags[key], value)
                fields = [{f["key"]: f["value"] for f in x["fields"]} for x in s["logs"]]
                self.assertEqual(fields, [{"event": x["name"], **x["attributes"]} for x in e["events"]])
                self.assertEqual([(r["traceID"], r["spanID"]) for r in s["references"]
                                  if r["refType"] == "FOLLOWS_FROM"], [(x["trace"], x["id"]) for x in e["links"]])
            trace, = c.data("/api/traces/" + sent["spans"][0]["trace"])
            process, = trace["processes"].values()
            self.assertEqual(process["serviceName"], "sdk-jaeger-none")
            self.assertEqual(tags["host.name"], "knoten-ü")  # resource attribute, sent with each span

    def test_zipkin(self):
        """Zipkin's format: all tags are texts, and there are no links."""
        with Collect() as c:
            sent = self.sent_by("zipkin", c.zipkin + "/api/v2/spans", "none")
            for e, s, tags in self.older(c, sent):
                for key, value in e["attributes"].items():
                    self.assertIsInstance(tags[key], str)
                    if isinstance(value, str):
                        self.assertEqual(tags[key], value)
                    elif not isinstance(value, list):
                        self.assertEqual(json.loads(tags[key]), value)
                for x, event in zip(s["logs"], e["events"], strict=True):
                    self.assertIn(event["name"], x["fields"][0]["value"])
                    self.assertLessEqual(abs(x["timestamp"] - int(event["time"]) / 1000), 1)  # rounded
            self.assertEqual(c.data("/api/services"), ["sdk-zipkin-none"])

    def test_retries(self):
        """Retries after 503, accepted or not: nothing is lost or duplicated."""
        with Collect() as c, Unsteady(c) as u:
            self.check(c, self.sent_by("proto", u.url + "/v1/traces", "gzip", 2000))
            self.assertGreaterEqual(u.n, 8)  # number of batches, each refused once

    def test_many_by_grpc(self):
        with Collect() as c:
            self.check(c, self.sent_by("grpc", c.grpc, "gzip", 10000))


if __name__ == "__main__":
    main()
