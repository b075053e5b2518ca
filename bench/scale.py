#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Indexing against the length of a trace: events per second of processor time, memory, and what lies on disk. All three
stay what they are, if the trace is ten times as long.

    bench/scale.py [--build DIR] [--dir DIR] [--memory SIZE] [--made] [EVENTS…]

EVENTS: lengths (10M 100M; 1G needs 51 GB for the trace, 25 GB for its stores and some minutes). The traces are written
by tests/e2e/long_trace.py: two threads that wake each other. --made: by bench/make_trace, with 8 CPUs, 400 threads,
packets, disks and files: slower to write. Each trace is removed once it is measured.

Anonymous memory is what the program itself has; resident memory counts the trace's pages that it maps, too, which the
system takes back when it needs them."""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(ROOT, "tests", "e2e"))
import long_trace  # noqa: E402

UNITS = {"K": 10**3, "M": 10**6, "G": 10**9}
LOOK_S = 0.02


def number(text):
    return int(float(text[:-1]) * UNITS[text[-1]]) if text[-1] in UNITS else int(text)


def bytes_below(top):
    return sum(os.path.getsize(os.path.join(d, f)) for d, _, names in os.walk(top) for f in names)


def anonymous_bytes(process):
    try:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as f:
            return next((int(line.split()[1]) * 1024 for line in f if line.startswith("RssAnon")), 0)
    except OSError:
        return 0


def index(options, trace, store):
    """(processor seconds, wall seconds, most anonymous bytes, most resident bytes)"""
    begin, most = time.monotonic(), 0
    command = [os.path.join(options.build, "weft"), "index", "--quiet", trace, "--store", store, "--threads", "1"]
    process = subprocess.Popen(command + (["--memory", options.memory] if options.memory else []),
                               stdout=subprocess.DEVNULL)
    while True:
        pid, status, used = os.wait4(process.pid, os.WNOHANG)
        if pid:
            break
        most = max(most, anonymous_bytes(process))
        time.sleep(LOOK_S)
    process.returncode = status
    if status:
        sys.exit(f"{' '.join(command)}: status {status}")
    return used.ru_utime + used.ru_stime, time.monotonic() - begin, most, used.ru_maxrss * 1024


def make(options, events, trace):
    """Returns how many there are."""
    if not options.made:
        return long_trace.write(trace, max(1, events // long_trace.PER_PACKET))[0]
    done = subprocess.run([os.path.join(options.build, "bench", "make_trace"), trace, str(events)], check=True,
                          stdout=subprocess.PIPE)
    return json.loads(done.stdout)["events"]


def measure(options, wanted, top):
    trace, store = os.path.join(top, "trace"), os.path.join(top, "store")
    events = make(options, wanted, trace)
    on_disk = bytes_below(trace)
    cpu_s, wall_s, anonymous, resident = index(options, trace, store)
    chunks = sum(name.startswith("chunk.") for _, _, names in os.walk(store) for name in names)
    asked = time.monotonic()
    subprocess.run([os.path.join(options.build, "weft"), "threads", trace, "--store", store], check=True,
                   stdout=subprocess.DEVNULL)
    asked = time.monotonic() - asked
    print(f"| {events / 1e6:.0f} M | {on_disk / 1e6:.0f} | {bytes_below(store) / 1e6:.0f} | {chunks} "
          f"| {events / cpu_s / 1e6:.2f} | {wall_s:.1f} | {anonymous / 1e6:.0f} | {resident / 1e6:.0f} "
          f"| {asked * 1000:.0f} |", flush=True)
    shutil.rmtree(trace)
    shutil.rmtree(store)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("events", nargs="*", default=["10M", "100M"])
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--dir", help="where traces and stores are put")
    p.add_argument("--memory", help="as of weft index")
    p.add_argument("--made", action="store_true", help="traces of bench/make_trace")
    options = p.parse_args()
    print("| events | trace, MB | stores, MB | chunks | M events per second of processor time | wall clock, s "
          "| anonymous memory, MB | resident memory, MB | `threads` then, ms |\n" + "| --- " * 9 + "|")
    for events in map(number, options.events):
        top = tempfile.mkdtemp(prefix="weft-scale-", dir=options.dir)
        try:
            measure(options, events, top)
        finally:
            shutil.rmtree(top, ignore_errors=True)


if __name__ == "__main__":
    main()
