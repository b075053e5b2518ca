#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What is known of a cluster that make_cluster wrote, and what its critical paths are: told from the history of the
threads by tests/e2e/world_path.py, which has nothing in common with the program.

    bench/made_cluster.py DIR [HOST:TID…]     writes DIR/expected.json: the paths of these threads, or of all
"""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
from world import READY, RUN, WAIT, Interval  # noqa: E402
from world_path import Oracle  # noqa: E402

START_NS = 1700000000 * 10**9  # of a clock that shows 0
KINDS = {"running": RUN, "preempted": READY, "wait": WAIT}


class Host:
    def __init__(self, name, offset_ns, drift_ppm):
        self.name, self.offset_ns, self.drift_ppm = name, offset_ns, drift_ppm


class Thread:
    """begin, end: when it first ran, and when it ended."""

    def __init__(self, host, tid, begin, end):
        self.host, self.tid, self.begin, self.end = host, tid, begin, end
        self.intervals, self.parent = [], None

    def __str__(self):
        return f"{self.host.name}:{self.tid}"


class Cluster:
    def __init__(self, folder):
        with open(os.path.join(folder, "cluster.json"), encoding="ascii") as f:
            told = json.load(f)
        self.folder, self.pattern, self.rounds, self.events = folder, told["pattern"], told["rounds"], told["events"]
        self.hosts = [Host(**h) for h in told["hosts"]]
        self.threads = [Thread(self.hosts[t["host"]], t["tid"], t["begin"], t["end"]) for t in told["threads"]]
        self._oracle = None

    def traces(self):
        return [os.path.join(self.folder, h.name) for h in self.hosts]

    def windows(self):
        """(thread, begin, end) worth to be asked for: of a copy, its time; of a rank, its life."""
        for i, t in enumerate(self.threads):
            begin = self.threads[i & ~1].begin if self.pattern == "scp" else t.begin
            yield t, max(begin, t.begin), t.end

    def _read_history(self):
        threads = {(t.host.name, str(t.tid)): t for t in self.threads}
        with open(os.path.join(self.folder, "history.txt"), encoding="ascii") as f:
            for line in f:
                host, tid, begin, end, state, *cause = line.split()
                i = Interval(int(begin), KINDS[state])
                i.end = int(end)
                if cause[0] == "end":
                    i.cause = tuple(cause)
                elif cause[0] != "-":
                    i.cause = (cause[0], threads[cause[1], cause[2]], int(cause[3]))
                threads[host, tid].intervals.append(i)

    def expected(self, thread, begin, end):
        """[(host, tid, begin, end, state)]"""
        if not self._oracle:
            self._oracle = Oracle()
            self._read_history()
        return self._oracle.path(thread, begin, end)


def main():
    cluster = Cluster(sys.argv[1])
    names = ("host", "tid", "begin", "end", "state")
    paths = [{"thread": str(t), "begin": begin, "end": end,
              "segments": [dict(zip(names, s)) for s in cluster.expected(t, begin, end)]}
             for t, begin, end in cluster.windows() if not sys.argv[2:] or str(t) in sys.argv[2:]]
    with open(os.path.join(cluster.folder, "expected.json"), "w", encoding="ascii") as f:
        json.dump(paths, f, indent=1)


if __name__ == "__main__":
    main()
