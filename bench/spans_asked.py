#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""How long questions about many spans take: spans_asked.py [STORE [SPANS]]. STORE is a directory or PostgreSQL's URL;
if it has no spans, SPANS are made (bench_spans --fill; 10 million) and stay. Without it, one is made and removed. The
collector answers over HTTP on loopback, one question at a time, over one connection.
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
    def __init__(self, store, log):
        options = [x for door in ("--otlp-http", "--otlp-grpc", "--jaeger", "--zipkin") for x in (door, "none")]
        options += ["--log", log] if log != store else []
        self.process = subprocess.Popen([WEFT, "collect", "--store", store, "--keep", "none", "--query", "127.0.0.1:0",
                                         *options], stdout=subprocess.PIPE, text=True)
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


def filtered(*equal):
    """A search by filter, in the whole time. equal: (what, value)."""
    calls = [{"op": "eq", "args": [what, {"scalar": {"value": value}}]} for what, value in equal]
    tree = calls[0] if len(calls) == 1 else {"op": "and", "args": [{"call": c} for c in calls]}
    return "/api/v3/trace-summaries?" + urllib.parse.urlencode({
        "query.startTimeMin": "2023-01-01T00:00:00Z", "query.startTimeMax": "2100-01-01T00:00:00Z",
        "query.searchDepth": 20, "query.filter": json.dumps(tree)})


def ask_filters(c):
    target, service, name = {"attr": {"key": "http.target"}}, {"field": {"level": "resource", "name": "service"}}, {
        "field": {"level": "span", "name": "name"}}
    some = range(20)
    tell("filter: an attribute that 1 of 100 000 has", [c.ask(filtered((target, f"/shop/item/{n}")))[1] for n in some])
    tell("filter: an attribute that none has", [c.ask(filtered((target, f"/shop/none/{n}")))[1] for n in some])
    tell("filter: a service", [c.ask(filtered((service, f"shop-{n % SERVICES}")))[1] for n in some])
    tell("filter: an operation", [c.ask(filtered((name, "SELECT")))[1] for _ in some])
    tell("filter: a service and an attribute that 1 of 100 000 has", [c.ask(filtered(
        (service, f"shop-{n % SERVICES}"), (target, f"/shop/item/{n}")))[1] for n in some])


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
    ask_filters(c)
    tell("dependencies", [c.ask(f"/api/dependencies?endTs={BEGIN_US // 500}&lookback={BEGIN_US // 500 - n}")[1]
                          for n in range(len(services))])
    tell("services", [c.ask("/api/services")[1] for _ in services])
    tell("operations", [c.ask(f"/api/services/{s}/operations")[1] for s in services])


def provide(store, log, spans):
    """The collector of a store that has spans."""
    c = Collector(store, log)
    if not json.loads(c.ask("/api/services")[0])["data"]:
        c.stop()
        url = [store] if store != log else []
        subprocess.run([os.path.join(BUILD, "bench", "bench_spans"), "--fill", log, str(spans), *url], check=True)
        c = Collector(store, log)
    return c


def tell_stats(store):
    begin = os.times()
    subprocess.run([WEFT, "spans", "stats", "--store", store, "--format", "json", "--begin", "1700000000.0",
                    "--end", "1700000100.0"], check=True, stdout=subprocess.DEVNULL)
    end = os.times()
    print(json.dumps({"bench": "stats over 1 million of them", "s": round(end.elapsed - begin.elapsed, 3),
                      "cpu_s": round(end.children_user + end.children_system - begin.children_user -
                                     begin.children_system, 3)}))


def main():
    spans = int(sys.argv[2]) if len(sys.argv) > 2 else 10**7
    made = tempfile.mkdtemp(prefix="weft-bench-")
    store = sys.argv[1] if len(sys.argv) > 1 else made
    try:
        c = provide(store, made if store.startswith("postgresql://") else store, spans)
        try:
            ask_all(c, random.Random(0), spans)
        finally:
            c.stop()
        tell_stats(store)
    finally:
        shutil.rmtree(made)


main()
