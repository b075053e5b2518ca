#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long questions about many spans take: spans_asked.py [DIR [SPANS]]. DIR is a store that is there, or is made
with SPANS spans (bench_spans --fill; 10 million) and stays; without it, one is made and removed. The collector answers
over HTTP on loopback, one question at a time, over one connection.
Prints JSON lines: ms, the middle one of many and the 99th of a hundred."""
import http.client
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.parse

BUILD = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "build")
WEFT = os.environ.get("WEFT_BIN", os.path.join(BUILD, "weft"))
BEGIN_US, STEP_NS = 1700000000 * 10**6, 100000  # of the spans that bench_spans makes
SERVICES, TIMES = 10, 1000


class Collector:
    def __init__(self, store):
        doors = [x for door in ("--otlp-http", "--otlp-grpc", "--jaeger", "--zipkin") for x in (door, "none")]
        self.process = subprocess.Popen([WEFT, "collect", "--store", store, "--keep", "none", "--query", "127.0.0.1:0",
                                         *doors], stdout=subprocess.PIPE, text=True)
        self.host = re.search(r"127\.0\.0\.1:\d+", self.process.stdout.readline()).group(0)
        self.connection = http.client.HTTPConnection(self.host)

    def ask(self, path):
        """The answer, and how many ms it took."""
        begin = time.perf_counter()
        self.connection.request("GET", path)
        answer = self.connection.getresponse().read()
        return answer, (time.perf_counter() - begin) * 1000

    def stop(self):
        self.connection.close()
        self.process.terminate()
        self.process.wait()


def tell(name, times):
    times = sorted(times)
    print(json.dumps({"bench": name, "n": len(times), "p50_ms": round(times[len(times) // 2], 3),
                      "p99_ms": round(times[len(times) * 99 // 100], 3)}), flush=True)


def search(service, **more):
    return "/api/traces?" + urllib.parse.urlencode({"service": service, "limit": 20, "start": 0, **more})


def ask_all(c, dice, spans):
    length_us = spans * STEP_NS // 1000
    ids = []
    for _ in range(TIMES):
        at = BEGIN_US + dice.randrange(length_us)
        answer, _ = c.ask(search(f"shop-{dice.randrange(SERVICES)}", end=at, limit=1))
        ids += [t["traceID"] for t in json.loads(answer)["data"]]
    tell("trace by id", [c.ask("/api/traces/" + i)[1] for i in dice.choices(ids, k=TIMES)])
    services = [f"shop-{i % SERVICES}" for i in range(TIMES // 10)]
    tell("20 newest of a service", [c.ask(search(s, end=BEGIN_US * 2))[1] for s in services])
    tell("20 newest of an operation", [c.ask(search(s, end=BEGIN_US * 2, operation="SELECT"))[1] for s in services])
    tell("20 newest that took longer than 99.9 of 100 ms",
         [c.ask(search(s, end=BEGIN_US * 2, minDuration="99900us"))[1] for s in services])
    tell("20 newest by a tag that 1 of 100 000 has",
         [c.ask(search(s, end=BEGIN_US * 2, tags='{"http.target":"/shop/item/7"}'))[1] for s in services[:5]])
    tell("summaries of the 20 newest", [c.ask("/api/v3/trace-summaries?" + urllib.parse.urlencode({
        "query.serviceName": s, "query.startTimeMin": "2023-01-01T00:00:00Z",
        "query.startTimeMax": "2100-01-01T00:00:00Z", "query.searchDepth": 20}))[1] for s in services])
    tell("dependencies", [c.ask(f"/api/dependencies?endTs={BEGIN_US // 500}&lookback={BEGIN_US // 500 - n}")[1]
                          for n in range(len(services))])
    tell("services", [c.ask("/api/services")[1] for _ in services])
    tell("operations", [c.ask(f"/api/services/{s}/operations")[1] for s in services])


def main():
    spans = int(sys.argv[2]) if len(sys.argv) > 2 else 10**7
    made = None if len(sys.argv) > 1 else tempfile.mkdtemp(prefix="weft-bench-")
    store = made or sys.argv[1]
    try:
        if not os.path.exists(os.path.join(store, "spans.db")):
            subprocess.run([os.path.join(BUILD, "bench", "bench_spans"), "--fill", store, str(spans)], check=True)
        c = Collector(store)
        try:
            ask_all(c, random.Random(0), spans)
        finally:
            c.stop()
        begin = os.times()
        subprocess.run([WEFT, "spans", "stats", "--store", store, "--format", "json", "--begin", "1700000000.0",
                        "--end", "1700000100.0"], check=True, stdout=subprocess.DEVNULL)
        end = os.times()
        print(json.dumps({"bench": "stats over 1 million of them", "s": round(end.elapsed - begin.elapsed, 3),
                          "cpu_s": round(end.children_user + end.children_system - begin.children_user -
                                         begin.children_system, 3)}))
    finally:
        if made:
            shutil.rmtree(made)


main()
