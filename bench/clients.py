#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The trace server among many clients: 200 of them for a minute, one of them hostile, the server on one core and the
clients on another. Prints what was answered per second, what was refused, how long small questions took by the server's
own clock (Server-Timing), and the most anonymous memory it had. `--other BIN`: the same with another build, in turns.

Clients are those of tests/e2e/test_tsp_load.py: they draw, walk tables, ask for critical paths, bookmark, close
experiments under each other, hang up."""
import argparse
import collections
import os
import random
import re
import socket
import sys
import threading
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
SMALL = re.compile(r"(GET .*(/health|/identifier|/bookmarks|/outputs|/annotations)"
                   r"|POST .*(/style|/tooltip|/annotations))$")
KEPT = re.compile(r"POST .*/bookmarks$")  # is on the disk before it is answered


class Hostile(threading.Thread):
    """Sends garbage, heads without end, bodies that never come, and hangs up."""

    def __init__(self, host, until):
        super().__init__()
        self.address, self.until, self.sent = host.split(":"), until, 0

    def run(self):
        dice, held = random.Random(1), collections.deque()
        while time.monotonic() < self.until:
            try:
                c = socket.create_connection((self.address[0], int(self.address[1])), timeout=1)
                c.sendall(dice.choice([
                    b"GET /" + b"a" * 9000, dice.randbytes(300) + b"\r\n\r\n",
                    b"POST /tsp/api/traces HTTP/1.1\r\nHost: localhost\r\nContent-Length: 999999999999\r\n\r\n",
                    b"POST /tsp/api/experiments HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
                    b"GET /tsp/api/experiments HTTP/1.1\r\nHost: evil.example\r\n\r\n"]))
                self.sent += 1
                held.append(c)
                if len(held) > 20:
                    held.popleft().close()
            except OSError:
                time.sleep(0.01)


def anonymous_mib(pid):
    with open(f"/proc/{pid}/status", encoding="utf-8") as f:
        return int(re.search(r"RssAnon:\s+(\d+)", f.read())[1]) / 1024


def measure(options):
    import test_tsp_load as load  # reads WEFT_BIN
    case = load.Load()
    case.setUp()
    server, times, kept, statuses = case.server, [], [], collections.Counter()
    os.sched_setaffinity(server.process.pid, {options.server_core})
    for task in os.listdir(f"/proc/{server.process.pid}/task"):
        os.sched_setaffinity(int(task), {options.server_core})
    os.sched_setaffinity(0, {options.client_core})
    ask = server.ask

    def timed(method, path, *args, **more):
        answer = ask(method, path, *args, **more)
        statuses[answer.status] += 1
        said = re.findall(r"dur=([\d.]+)", answer.headers.get("Server-Timing", ""))
        what = f"{method} {path}"
        if said and (SMALL.match(what) or KEPT.match(what)):
            took = sum(map(float, said)), float(said[0]), path.rsplit("/", 1)[-1]
            (kept if KEPT.match(what) else times).append(took)
        return answer
    server.ask = timed
    until = time.monotonic() + options.seconds
    clients = [load.Client(server, case.experiments, case.traces, f"1 {n}", until) for n in range(options.clients - 1)]
    clients.append(Hostile(server.host, until))
    most = 0
    for c in clients:
        c.start()
    while time.monotonic() < until:
        most = max(most, anonymous_mib(server.process.pid))
        time.sleep(0.2)
    for c in clients:
        c.join()
    wrong = [w for c in clients[:-1] for w in c.wrong]
    at = lambda share, of=0, what=None: sorted(t[of] for t in times if what in (None, t[2]))[
        int(share * (sum(what in (None, t[2]) for t in times) - 1))]
    ok = sum(n for status, n in statuses.items() if status == 200)
    refused = {status: n for status, n in sorted(statuses.items()) if status != 200}
    print(f"{os.environ['WEFT_BIN']}: {ok / options.seconds:.0f} answers/s, refused {refused}, "
          f"{len(times)} small ones: p50 {at(.5):.2f} ms, p99 {at(.99):.2f} ms, max {at(1):.2f} ms, "
          f"of it waiting for others p99 {at(.99, 1):.2f} ms; "
          f"/health p99 {at(.99, 0, 'health'):.2f} ms, max {at(1, 0, 'health'):.2f} ms; "
          f"bookmarks kept p99 {sorted(kept)[int(.99 * (len(kept) - 1))][0]:.2f} ms; "
          f"{most:.0f} MiB anonymous at most; hostile: {clients[-1].sent} connections; wrong: {len(wrong)} {wrong[:3]}",
          flush=True)
    server.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default=os.path.join(ROOT, "build", "weft"))
    parser.add_argument("--other", help="another build, measured in turns")
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--server-core", type=int, default=0)
    parser.add_argument("--client-core", type=int, default=1)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        measure(options)
        return
    for program in filter(None, (options.weft, options.other, options.weft if options.other else None)):
        # A process each: what was imported knows its program, and affinities are a process's.
        os.spawnve(os.P_WAIT, sys.executable, [sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--one"],
                   {**os.environ, "WEFT_BIN": os.path.abspath(program)})


if __name__ == "__main__":
    main()
