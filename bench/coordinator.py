#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The coordinator beside one server that has all traces: 20 made machines on 20 servers, on 4, and on one. Prints
  * for small questions: medians, how much more that is than one server takes, and the processor time (ms) that one
    takes of the coordinator and of all servers together, which may have to share fewer cores than they are;
  * for large answers: merged MB per second of the coordinator's processor time;
  * for 1000 questions at once, of which a third is read slowly and a third given up: the most memory the coordinator
    had, and what connections it has after them.

    bench/coordinator.py [--weft BIN] [--rounds N] [--events N] [latency] [throughput] [crowd]
"""
import argparse
import http.client
import json
import os
import socket
import statistics
import sys
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
MACHINES, GOAL_MS, GOAL_MB_PER_S, CROWD = 20, 2.0, 500, 1000


class Asking:
    """Questions over one connection that stays open."""

    def __init__(self, server, uuid):
        self.server, self.uuid = server, uuid
        self.connection = http.client.HTTPConnection(server.host, timeout=120)

    def ask(self, method, path, parameters=None):
        body = None if parameters is None else json.dumps({"parameters": parameters})
        self.connection.request(method, f"/tsp/api/experiments/{self.uuid}{path}", body,
                                {"Content-Type": "application/json"})
        answer = self.connection.getresponse()
        data = answer.read()
        if answer.status != 200:
            sys.exit(f"{method} {path}: {answer.status} {data[:300]!r}")
        return data


def questions(server, uuid, x, rows):
    """(name, method, path, parameters): each names the entries as this server does."""
    from tsp_server import EVENTS, HISTOGRAM, THREAD_STATUS
    times = {"start": x["start"], "end": x["end"], "nbTimes": 100}
    states, xy = f"/outputs/timeGraph/{THREAD_STATUS}", f"/outputs/XY/{HISTOGRAM}"
    ids = server.rows(uuid, rows)
    series = [e["id"] for e in server.model(f"/experiments/{uuid}{xy}/tree")["entries"]]
    at = x["nbEvents"] // 2
    lines = f"/outputs/table/{EVENTS}/lines"
    return [
        ("experiment", "GET", "", None),
        ("outputs", "GET", "/outputs", None),
        ("tree of threads", "POST", f"{states}/tree", {}),
        ("states of 5 threads", "POST", f"{states}/states", {"requested_timerange": times, "requested_items": ids[:5]}),
        ("tooltip", "POST", f"{states}/tooltip", 
         {"requested_items": ids[:1], "requested_times": [x["start"] + 1000],
          "requested_element": {"elementType": "state", "time": x["start"] + 1000, "duration": 1}}),
        ("histogram", "POST", f"{xy}/xy", {"requested_timerange": times, "requested_items": series}),
        ("50 lines again", "POST", lines, {"requested_table_index": at, "requested_table_count": 50}),
        ("50 lines at a time", "POST", lines, {"requested_times": [x["start"] + (x["end"] - x["start"]) // 3],
                                               "requested_table_count": 50}),
    ]


def servers_cpu(farms, side):
    """Of the servers behind the coordinator of that side; 0 is the one that has all."""
    return sum(s.cpu_seconds() for s in farms[side - 1].servers.values()) if side else 0


def latency(options, farms, one):
    sides = [("one", one.all)] + [(str(len(f.servers)), f.many) for f in farms]
    asking = [Asking(server, one.uuid) for _, server in sides]
    asked = [questions(server, one.uuid, one.whole, 400) for _, server in sides]
    print(f"{'':22}{'one, ms':>9}" + "".join(f"{'over ' + n:>9}{'more':>7}{'own CPU':>9}{'servers':>9}"
                                               for n, _ in sides[1:]))
    for k, (name, *_) in enumerate(asked[0]):
        took, cpu, below = [[] for _ in sides], [0] * len(sides), [0] * len(sides)
        for side, (_, server) in enumerate(sides):  # blocks, as processor time is counted in ticks
            for _ in range(20):
                asking[side].ask(*asked[side][k][1:])
            before, theirs = server.cpu_seconds(), servers_cpu(farms, side)
            for _ in range(options.rounds):
                begin = time.monotonic()
                asking[side].ask(*asked[side][k][1:])
                took[side].append(1000 * (time.monotonic() - begin))
            cpu[side] = 1000 * (server.cpu_seconds() - before) / options.rounds
            below[side] = 1000 * (servers_cpu(farms, side) - theirs) / options.rounds
        middle = [statistics.median(t) for t in took]
        columns = zip(middle[1:], cpu[1:], below[1:])
        print(f"{name:22}{middle[0]:9.2f}" + "".join(
            f"{ms:9.2f}{ms - middle[0]:+7.2f}{own:9.2f}{theirs:9.2f}" for ms, own, theirs in columns), flush=True)
    print(f"(goal: {GOAL_MS} ms more than the slowest server)\n")


def throughput(options, farms, one):
    from tsp_server import THREAD_STATUS
    cpu_view = "org.eclipse.tracecompass.analysis.os.linux.core.cpuusage.CpuUsageDataProvider"
    for farm in farms:
        a = Asking(farm.many, farm.uuid)
        ids = farm.many.rows(farm.uuid, 10**6)
        tree = farm.many.model(f"/experiments/{farm.uuid}/outputs/XY/{cpu_view}/tree")["entries"]
        times = {"start": farm.whole["start"], "end": farm.whole["end"], "nbTimes": 4000}
        for name, path, items in (("states", f"/outputs/timeGraph/{THREAD_STATUS}/states", ids),
                                  ("series", f"/outputs/XY/{cpu_view}/xy", [e["id"] for e in tree])):
            parameters = {"requested_timerange": times, "requested_items": items}
            n, begin = len(a.ask("POST", path, parameters)), farm.many.cpu_seconds()
            times_asked = max(2, int(options.megabytes * 1e6 / n))
            for _ in range(times_asked):
                a.ask("POST", path, parameters)
            cpu = max(0.01, farm.many.cpu_seconds() - begin)
            print(f"{name} of {len(items)} entries over {len(farm.servers)}: {n / 1e6:.1f} MB an answer, "
                  f"{times_asked * n / 1e6 / cpu:.0f} MB/s of the coordinator's CPU (goal {GOAL_MB_PER_S})", flush=True)
    print()


def sockets(server):
    """Connections that a process has open."""
    folder, n = f"/proc/{server.process.pid}/fd", 0
    for fd in os.listdir(folder):
        try:
            n += os.readlink(f"{folder}/{fd}").startswith("socket:")
        except OSError:
            pass
    return n


def read_all(s):
    begin = b""
    try:
        while data := s.recv(1 << 20):
            begin = begin or data[:20]
    except OSError:
        pass
    s.close()
    return begin


def crowd(options, farms, one):
    from tsp_server import THREAD_STATUS
    for farm in farms:
        server, ids = farm.many, farm.many.rows(farm.uuid, 10**6)
        times = {"start": farm.whole["start"], "end": farm.whole["end"], "nbTimes": 500}
        body = json.dumps({"parameters": {"requested_timerange": times, "requested_items": ids}}).encode()
        head = (f"POST /tsp/api/experiments/{farm.uuid}/outputs/timeGraph/{THREAD_STATUS}/states HTTP/1.1\r\n"
                f"Host: {server.host}\r\nConnection: close\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode()
        host, port = server.host.split(":")
        before, begin = sockets(server), time.monotonic()
        server.watch_memory()
        waiting = []
        for _ in range(CROWD):
            s = socket.create_connection((host, int(port)), timeout=300)
            s.sendall(head + body)
            waiting.append(s)
        for s in waiting[2::3]:
            s.close()  # nobody waits any more
        answers = [read_all(s) for s in waiting[0::3] + waiting[1::3]]  # the second third reads when the first is done
        answered, refused = (sum(a.startswith(b"HTTP/1.1 " + status) for a in answers) for status in (b"200", b"503"))
        peak = server.peak_bytes()
        farm.many.get(f"/experiments/{farm.uuid}")
        until = time.monotonic() + 30
        while sockets(server) > before + 200 and time.monotonic() < until:
            time.sleep(0.1)
        print(f"{CROWD} at once over {len(farm.servers)}: {answered} answered, {refused} refused with 503, "
              f"{time.monotonic() - begin:.1f} s, {peak >> 20} MiB at most, connections {before} before, "
              f"{sockets(server)} after", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weft", default=os.path.join(ROOT, "build", "src", "program", "cli", "weft"))
    parser.add_argument("--rounds", type=int, default=200, help="times that each small question is asked")
    parser.add_argument("--events", type=int, default=1000000, help="of all machines")
    parser.add_argument("--megabytes", type=int, default=300, help="of each kind of large answers")
    parser.add_argument("what", nargs="*", help="latency, throughput, crowd (all)")
    options = parser.parse_args()
    os.environ["WEFT_BIN"] = os.path.abspath(options.weft)
    import coordinated  # reads WEFT_BIN
    farms = [coordinated.Farm([MACHINES // n] * n, events=options.events, history=0) for n in (4, MACHINES)]
    try:
        for run in (latency, throughput, crowd):
            if not options.what or run.__name__ in options.what:
                run(options, farms, farms[0])
    finally:
        for farm in farms:
            farm.stop()


if __name__ == "__main__":
    main()
