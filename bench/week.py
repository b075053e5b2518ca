#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A week of rotation archives, made small: what a further archive costs when there are n, how many files the stores
have, what it takes to open all, a path over the last minute, and a server on it (week_traces.py says what is recorded).

    bench/week.py [--archives N] [--hosts N] [--weft build/weft] [--dir DIR] [--quick]

Prints JSON; "limits" says which of the figures have one, and how much of it they take. Times are wall clock and
processor time, the best of three where nothing is built; memory is the highest, in MB."""
import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

import serve
from week_traces import EVENTS, Week

OPENING_S, SERVER_MB, STORE_FILES, PATH_FILES, NOTICED_S = 1, 1000, 100, 20, 1


def run(*args):
    """Seconds and memory."""
    begin = time.monotonic()
    p = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = p.stdout.read().decode()
    p.stdout.close()
    _, status, used = os.wait4(p.pid, 0)
    p.returncode = os.waitstatus_to_exitcode(status)
    if p.returncode:
        sys.exit(f"{' '.join(args)}: {said}")
    return {"s": round(time.monotonic() - begin, 4), "cpu_s": round(used.ru_utime + used.ru_stime, 4),
            "mb": round(used.ru_maxrss / 1024)}


def best(*args):
    return min((run(*args) for _ in range(3)), key=lambda r: r["s"])


def opened(store, *args):
    """How many files of the stores are opened."""
    said = subprocess.run(["strace", "-f", "-e", "trace=openat", *args], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, check=False).stderr.decode()
    return len({path for path in re.findall(r'openat\([^"]*"([^"]*)"[^\n]*= \d', said) if path.startswith(store)
                and os.path.isfile(path)})


def memory_mb(pid):
    """Of a process: the pages that it holds, those of mapped files among them."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return round(int(re.search(r"Pss:\s+(\d+)", f.read())[1]) / 1024)


def wait_for(server, experiment, events):
    begin = time.monotonic()
    while time.monotonic() - begin < 600:
        x = json.loads(server.ask("GET", f"/tsp/api/experiments/{experiment}"))
        if x["nbEvents"] > events and x["indexingStatus"] != "RUNNING":
            return round(time.monotonic() - begin, 4)
        time.sleep(0.01)
    sys.exit("the archive is not shown")


def served(weft, store, week, number):
    """A server on all: until it shows all, and, when archives of one host and then of all hosts appear, until it shows
    these."""
    begin = time.monotonic()
    server = serve.Server(weft, "serve", "--listen", "127.0.0.1:0", "--store", store, week.top)
    try:
        x = server.opened()
        pid = server.process.pid
        found = {"opened_s": round(time.monotonic() - begin, 4), "cpu_s": server.cpu_seconds(), "mb": memory_mb(pid)}
        tree = server.model(f"/tsp/api/experiments/{x['UUID']}/outputs/timeGraph/{serve.THREAD_STATUS}/tree", {})
        found["rows"] = len(tree["entries"])
        for what, hosts in ("one_host", [0]), ("all_hosts", range(week.hosts)):
            time.sleep(5)  # until the trees are known
            before, events = server.cpu_seconds(), x["nbEvents"]
            for host in hosts:
                week.archive(host, number)
            found[f"archive_of_{what}_shown_s"] = wait_for(server, x["UUID"], events + EVENTS * len(hosts) - 1)
            found[f"archive_of_{what}_cpu_s"] = round(server.cpu_seconds() - before, 4)
            x = server.opened()
            number += 1
        found["mb_grown"] = memory_mb(pid)
        before = server.cpu_seconds()
        time.sleep(10)
        found["idle_cpu_share"] = round((server.cpu_seconds() - before) / 10, 4)
        return found
    finally:
        server.stop()


def grow(o, week, store, marks):
    """The cost of the archive behind so many."""
    found, number = [], 0
    for mark in marks:
        while number < mark:
            week.archives(number)
            number += 1
        build = run(o.weft, "index", week.top, "--store", store)
        idle = best(o.weft, "threads", week.top, "--store", store)
        week.archive(0, number)
        one = run(o.weft, "index", week.top, "--store", store)
        for host in range(1, week.hosts):
            week.archive(host, number)
        number += 1
        every = run(o.weft, "index", week.top, "--store", store)
        found.append({"n": mark, "build": build, "open": idle, "archive_of_one_host": one,
                      "archives_of_the_others": every})
    return found


def limits(found):
    last = found["growth"][-1]
    figures = [("opening, s", last["open"]["s"], OPENING_S),
               ("store files per host", found["store_files_per_host"], STORE_FILES),
               ("memory of a server, MB", found["server"]["mb_grown"], SERVER_MB),
               ("until a server shows an archive, s", found["server"]["archive_of_one_host_shown_s"], NOTICED_S)]
    per_host = found["path_of_last_minute"].get("store_files_opened_per_host")
    if per_host:
        figures.append(("store files per host that a path opens", per_host, PATH_FILES))
    return [{"what": what, "is": is_, "limit": limit, "ratio": round(is_ / limit, 3)} for what, is_, limit in figures]


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--archives", type=int, default=10080)
    p.add_argument("--hosts", type=int, default=1)
    p.add_argument("--weft", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "weft"))
    p.add_argument("--dir", help="where to make them; default: a temporary directory, removed at the end")
    p.add_argument("--quick", action="store_true", help="only when all archives are there, not while they come")
    o = p.parse_args()
    top = o.dir or tempfile.mkdtemp(prefix="weft-week-")
    store = os.path.join(top, "store")
    week = Week(os.path.join(top, "traces"), o.hosts, o.archives, time.time_ns())
    found = {"archives": o.archives, "hosts": o.hosts, "events_per_archive": EVENTS}
    marks = [] if o.quick else [n for n in (10, 100, 1000, 3000, 10000) if n < o.archives]
    found["growth"] = grow(o, week, store, marks + [o.archives - 1])
    path = (o.weft, "critpath", week.top, "--store", store, "--thread", "host-0:10", "--begin",
            f"{week.end_s(o.archives) - 60:.1f}")
    found["path_of_last_minute"] = best(*path)
    if shutil.which("strace"):
        found["path_of_last_minute"]["store_files_opened_per_host"] = opened(store, *path) / o.hosts
    found["server"] = served(o.weft, store, week, o.archives)
    found["store_files_per_host"] = sum(len(names) for _, _, names in os.walk(store)) / o.hosts
    found["limits"] = limits(found)
    print(json.dumps(found, indent=1))
    if not o.dir:
        shutil.rmtree(top)


main()
