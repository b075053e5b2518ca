# SPDX-License-Identifier: MIT
"""Server under test: weft collect, with methods to start, query and kill it."""
import glob
import gzip
import json
import os
import signal
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request

from weft_e2e import BIN, SLOWDOWN, scratch

DOORS = "otlp-http", "otlp-grpc", "jaeger", "zipkin", "query"
JSON, PROTOBUF = "application/json", "application/x-protobuf"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    def json(self):
        return json.loads(self.body)


def call(url, data=None, headers=None, method=None):
    request = urllib.request.Request(url, data=data, headers=headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60 * SLOWDOWN) as reply:
            return Answer(reply.status, reply.headers, reply.read())
    except urllib.error.HTTPError as e:
        with e:
            return Answer(e.code, e.headers, e.read())


class Collect:
    """Collector with a store of its own, or a given one."""

    def __init__(self, *options, store=None, **more):
        self.process = subprocess.Popen(
            [BIN, "collect", *self.place(store), *(x for door in DOORS for x in ("--" + door, "127.0.0.1:0")),
             *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)
        lines = [self.process.stdout.readline() for _ in DOORS]
        if not all(line.startswith("weft: listening on http") for line in lines):
            self.process.kill()
            raise AssertionError((lines, self.process.communicate()))
        self.otlp, self.grpc, self.jaeger, self.zipkin, self.query = (line.split()[3] for line in lines)

    def place(self, store):
        """Returns the options for the store of spans. `where`: the store, for other programs that ask for it."""
        self.store = self.where = store or scratch()
        return ["--store", self.store]

    most_names = 20  # number left of 41 operations, once a third of the spans is left

    def used(self):
        """Returns the bytes of the database on disk."""
        return sum(os.stat(p).st_blocks * 512 for p in glob.glob(self.store + "/spans.db*"))

    def processor_s(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")

    def lose_database(self):
        for path in glob.glob(self.store + "/spans.db*"):
            os.unlink(path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.stop()

    def stop(self, number=signal.SIGTERM):
        self.process.send_signal(number)
        self.said = self.process.communicate(timeout=60 * SLOWDOWN)[1]
        return self.process.returncode

    def send(self, body, kind=JSON, packed=False, **headers):
        data = json.dumps(body).encode() if isinstance(body, dict) else body
        headers = {"Content-Type": kind, **({"Content-Encoding": "gzip"} if packed else {}), **headers}
        return call(self.otlp + "/v1/traces", gzip.compress(data) if packed else data, headers)

    def get(self, path, **query):
        return call(self.query + path + ("?" + urllib.parse.urlencode(query, doseq=True) if query else ""))

    def data(self, path, **query):
        """Data of the older query interface."""
        return self.get(path, **query).json()["data"]

    def spans(self, trace_id):
        """Spans of the newer query interface: [(resource, scope, span)]; none if there is no such trace. Repeats the
        request while the database is busy (503)."""
        for _ in range(30 * SLOWDOWN):
            answer = self.get("/api/v3/traces/" + trace_id)
            if answer.status != 503:
                break
            time.sleep(int(answer.headers["Retry-After"]))
        if answer.status == 404:
            return []
        return [(r["resource"], s["scope"], span) for r in answer.json()["result"]["resourceSpans"]
                for s in r["scopeSpans"] for span in s["spans"]]

    def until(self, what):
        """Waits until it is true, for a limited time."""
        for _ in range(300 * SLOWDOWN):
            if what():
                return True
            time.sleep(0.1)
        return False
