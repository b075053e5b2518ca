# SPDX-License-Identifier: MIT
"""Stand-in for a span collector on loopback, which records what it receives, and helpers that run weft-span against
it."""
import http.server
import json
import os
import subprocess
import threading
import time

from weft_e2e import BIN, SLOWDOWN, Case, need, scratch

SPAN = os.path.abspath(os.environ.get("WEFT_SPAN") or os.path.join(os.path.dirname(BIN), "weft-span"))
NOBODY = "http://127.0.0.1:1"  # a port that refuses


class Collector:
    """`answer(body)` returns (status, headers), or "hang", or "close"."""

    def __init__(self, answer=lambda body: (200, {})):
        self.answer, self.requests, self.open = answer, [], True
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                answer = outer.answer(body)
                if answer == "hang":
                    while outer.open:
                        time.sleep(0.05)
                if isinstance(answer, str):
                    self.close_connection = True
                    return
                status, headers = answer
                if status // 100 == 2:
                    outer.requests.append((self.path, self.headers, body))
                self.send_response(status)
                for name, value in {"Content-Length": "2", **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads, request_queue_size = True, 1024

            def handle_error(self, *_):  # the client may have gone
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.open = False
        self.server.shutdown()
        self.server.server_close()

    def all_spans(self):
        """(resource, span) of everything, in the order of arrival."""
        return [found for _, _, body in self.requests for found in spans_of(body)]

    def spans(self, open_too=False):
        return [span for _, span in self.all_spans() if open_too or attributes(span).get("weft.state") != "open"]


def spans_of(body):
    return [(r["resource"], span) for r in json.loads(body)["resourceSpans"] for s in r["scopeSpans"]
            for span in s["spans"]]


def attributes(of):
    """{key: value}; numbers are strings in OTLP JSON."""
    return {a["key"]: int(a["value"]["intValue"]) if "intValue" in a["value"] else a["value"]["stringValue"]
            for a in of["attributes"]}


def environment(endpoint=None, spool=None, **more):
    """Environment of the program, without this process's own contexts and settings."""
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C", "XDG_STATE_HOME": spool or scratch()}
    if endpoint:
        env["OTEL_EXPORTER_OTLP_ENDPOINT"] = endpoint
    return {**env, **{name: value for name, value in more.items() if value is not None}}


def span(*args, env, program=SPAN, stdin=b"", **more):
    return subprocess.run([program, *args], env=env, input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          timeout=60 * SLOWDOWN, **more)


def spool_of(env):
    return env.get("WEFT_SPAN_SPOOL") or os.path.join(env["XDG_STATE_HOME"], "weft", "spans")


def spooled(env):
    """Returns the spans that wait."""
    found = []
    for name in sorted(os.listdir(spool_of(env))):
        if name.endswith(".jsonl"):
            with open(os.path.join(spool_of(env), name), "rb") as f:
                found += [span for line in f for _, span in spans_of(line)]
    return found


class Span(Case):
    """Base of tests that run weft-span."""

    def setUp(self):
        need(SPAN)

    def run_ok(self, *args, env, code=0, **more):
        run = span(*args, env=env, **more)
        self.assertEqual(run.returncode, code, run)
        return run
