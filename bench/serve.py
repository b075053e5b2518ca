# SPDX-License-Identifier: MIT
"""The trace server under load, beside a minimal libmicrohttpd program that serves the same bytes from memory
(bench/run.py runs this)."""
import gzip
import http.client
import json
import os
import random
import shutil
import subprocess
import sys
import time

THREAD_STATUS = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ThreadStatusDataProvider"
EVENTS = "org.eclipse.tracecompass.internal.provisional.tmf.core.model.events.TmfEventTableDataProvider"
CONNECTIONS, SECONDS, ROUNDS = 8, 2, 3


class Server:
    """A program that prints "listening on http://…" and serves until its standard input ends or it is told to stop."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline().decode()
        if "listening on " not in line:
            sys.exit(f"{command[0]} did not start: {line}")
        self.url = line.split("listening on ")[1].strip()
        self.host = self.url.split("//")[1]

    def ask(self, method, path, parameters=None, encoding="identity"):
        connection = http.client.HTTPConnection(self.host, timeout=60)
        try:
            body = None if parameters is None else json.dumps({"parameters": parameters})
            connection.request(method, path, body, {"Accept-Encoding": encoding})
            answer = connection.getresponse()
            data = answer.read()
            if answer.status != 200:
                sys.exit(f"{method} {path}: {answer.status} {data[:300]!r}")
            return data
        finally:
            connection.close()

    def model(self, path, parameters):
        for _ in range(200):
            answer = json.loads(self.ask("POST", path, parameters))
            if answer["status"] != "RUNNING":
                return answer["model"]
            time.sleep(0.05)
        sys.exit(f"{path} does not end")

    def opened(self):
        """The first experiment, when its traces are open."""
        uuid = json.loads(self.ask("GET", "/tsp/api/experiments"))[0]["UUID"]
        for _ in range(6000):
            x = json.loads(self.ask("GET", f"/tsp/api/experiments/{uuid}"))
            if x["indexingStatus"] != "RUNNING":
                return x
            time.sleep(0.02)
        sys.exit("the experiment does not open")

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def requests(host, method, path, several, encoding):
    return b"".join(request(host, method, path, parameters, encoding) for parameters in several)


def request(host, method, path, parameters, encoding):
    body = b"" if parameters is None else json.dumps({"parameters": parameters}).encode()
    head = (f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept-Encoding: "
            f"{encoding}\r\nContent-Length: {len(body)}\r\n\r\n")
    return head.encode() + body


def load(build, server, data):
    """The best of several runs of the client against a server; cpu_us: what the server itself spent on a request, which
    other work on the machine changes less."""
    client, best = os.path.join(build, "bench", "bench_http"), None
    for _ in range(ROUNDS):
        before = server.cpu_seconds()
        done = subprocess.run([client, server.host, str(CONNECTIONS), str(SECONDS)], input=data, stdout=subprocess.PIPE,
                              check=True)
        found = json.loads(done.stdout)
        found["cpu_us"] = (server.cpu_seconds() - before) / found["requests"] * 1e6
        best = found if best is None or found["per_second"] > best["per_second"] else best
    return best


def questions(server):
    """What a viewer asks most: (name, method, path, [parameters, …]): the client asks one after the other."""
    x = server.opened()
    base = f"/tsp/api/experiments/{x['UUID']}/outputs"
    tree = server.model(f"{base}/timeGraph/{THREAD_STATUS}/tree", {})
    rows = [e["id"] for e in tree["entries"] if e["hasData"]][:30]
    middle, span = (x["start"] + x["end"]) // 2, (x["end"] - x["start"]) // 20
    states = {"requested_timerange": {"start": middle, "end": middle + span, "nbTimes": 1000}, "requested_items": rows}
    lines = lambda first: {"requested_table_index": first, "requested_table_count": 50}
    places = random.Random(7)
    return [("states of 30 rows × 1000 samples", "POST", f"{base}/timeGraph/{THREAD_STATUS}/states", [states]),
            ("50 lines of the events table", "POST", f"{base}/table/{EVENTS}/lines", [lines(x["nbEvents"] // 2)]),
            ("50 lines at any of 500 places", "POST", f"{base}/table/{EVENTS}/lines",
             [lines(places.randrange(x["nbEvents"] - 50)) for _ in range(500)]),
            ("list of outputs", "GET", base, [None])]


def viewer(bench, trace, store, name):
    """The page on an indexed trace; nothing without node, playwright-core or Chromium."""
    node = shutil.which("node")
    if not node:
        return
    weft = Server(bench.weft, "serve", "--listen", "127.0.0.1:0", "--store", store, trace)
    try:
        weft.opened()
        done = subprocess.run([node, os.path.join(os.path.dirname(os.path.abspath(__file__)), "viewer.mjs"), weft.url],
                              stdout=subprocess.PIPE, check=False)
    finally:
        weft.stop()
    if done.returncode == 77:
        print("the viewer is not measured: Chromium or web/node_modules are not there", file=sys.stderr)
        return
    if done.returncode:
        sys.exit("bench/viewer.mjs failed")
    found = {f["bench"]: f for f in map(json.loads, done.stdout.splitlines())}
    bench.row(f"viewer, {name}: rows on the screen after navigation", 1000, None, found["first paint"]["ms"], "ms",
              less_is_better=True)
    frame, scroll = found["frame"], found["scroll"]
    bench.row(f"viewer, {name}: a draw while {scroll['rows']} rows are scrolled through, 95 of 100", 16, None,
              scroll["ms"], "ms", less_is_better=True)
    bench.row(f"viewer, {name}: a frame of {frame['rows']} rows, {frame['states']} states", 16, None, frame["ms"], "ms",
              less_is_better=True)


def measure(bench, trace, store):
    """Rows of requests per second; the same client asks weft and the plain server, one after the other."""
    weft = Server(bench.weft, "serve", "--listen", "127.0.0.1:0", "--store", store, trace)
    try:
        for name, method, path, several in questions(weft):
            for encoding in ("identity", "gzip"):
                content = weft.ask(method, path, several[0], encoding)
                if encoding == "gzip" and content[:2] != b"\x1f\x8b":
                    continue  # too small to be worth it
                mine = load(bench.build, weft, requests(weft.host, method, path, several, encoding))
                file = os.path.join(bench.dir, "plain")
                with open(file, "wb") as f:
                    f.write(content)
                plain = Server(os.path.join(bench.build, "bench", "plain_server"), file)
                other = load(bench.build, plain, requests(plain.host, method, path, several, encoding))
                plain.stop()
                size = f"{len(content) / 1000:.3g} kB" + (f" of {len(gzip.decompress(content)) / 1000:.3g}, gzip"
                                                          if encoding == "gzip" else "")
                bench.row(f"requests, {name} ({size})", None, None, mine["per_second"], "/s", other["per_second"],
                          peer="file")
                bench.row("… processor time of the server for one", None, None, mine["cpu_us"], "µs", other["cpu_us"],
                          less_is_better=True, peer="file")
                bench.row("… 99 of 100 answered within", None, None, mine["p99_ms"], "ms", other["p99_ms"],
                          less_is_better=True, peer="file")
    finally:
        weft.stop()
