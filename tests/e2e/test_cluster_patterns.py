# SPDX-License-Identifier: MIT
"""Copying and computing clusters (bench/make_cluster) with known truth: the path equals the one of their history,
exactly on one clock, to the clocks' error on separate clocks, and the same from node to node."""
import os
import subprocess
import sys

import weft_e2e
from weft_e2e import Case, absent, scratch, time_in

sys.path.insert(0, os.path.join(weft_e2e.ROOT, "bench"))
from made_cluster import START_NS, Cluster  # noqa: E402
from nodes import NATS_SERVER, Nodes  # noqa: E402

MAKE = os.environ.get("WEFT_MAKE_CLUSTER") or os.path.join(weft_e2e.ROOT, "build", "bench", "make_cluster")
PATTERNS = [("scp", 3, "files=3"), ("mpi", 3, "mix=even"), ("mpi", 3, "mix=slow"), ("mpi", 2, "mix=rotating"),
            ("mpi", 3, "mix=random")]
EVERY = 1 if not weft_e2e.SANITIZER else 6  # threads are asked for


def make(pattern, nodes, *more):
    folder = os.path.join(scratch(), "cluster")
    subprocess.run([MAKE, folder, pattern, str(nodes), "rounds=8", *more], check=True, stdout=subprocess.DEVNULL)
    return Cluster(folder)


def rows(answer):
    """Returns segments as in the history: if only the detail changes they are one."""
    out = []
    for s in answer["segments"]:
        row = (s["host"], s["tid"], s["begin"] - START_NS, s["end"] - START_NS, s["state"])
        if out and out[-1][:2] == row[:2] and out[-1][4] == row[4]:
            out[-1] = out[-1][:3] + row[3:]
        else:
            out.append(row)
    return out


def differences(a, b):
    """Returns the lengths of stretches in which two paths differ, both known."""
    begin, end = max(a[0][2], b[0][2]), min(a[-1][3], b[-1][3])
    cuts = sorted({begin, end} | {t for row in a + b for t in row[2:4] if begin < t < end})
    out, i, k = [0], 0, 0
    for since, until in zip(cuts, cuts[1:]):
        while a[i][3] <= since:
            i += 1
        while b[k][3] <= since:
            k += 1
        if a[i][:2] + a[i][4:] == b[k][:2] + b[k][4:]:
            out.append(0)
        else:
            out[-1] += until - since
    return out


def window(begin, end):
    return "--begin", START_NS + begin, "--end", START_NS + end


class ClusterPatterns(Case):
    def asked(self, cluster, thread, begin, end, *more):
        return self.json("critpath", *cluster.traces(), "--thread", thread, *window(begin, end), "--store",
                         cluster.folder + ".stores", "-q", *more)

    def test_on_one_clock(self):
        for pattern in PATTERNS:
            cluster = make(*pattern, "skew=0")
            for thread, begin, end in list(cluster.windows())[::EVERY]:
                with self.subTest(pattern=pattern, thread=str(thread)):
                    got = rows(self.asked(cluster, thread, begin, end, "--no-sync"))
                    self.assertEqual(got, cluster.expected(thread, begin, end))

    def test_on_clocks_of_their_own(self):
        for pattern in PATTERNS:
            cluster = make(*pattern, "events=40000")
            reference = ("--reference", cluster.hosts[0].name)
            maps = self.json("sync", *cluster.traces(), *reference, "--store", cluster.folder + ".stores", "-q")
            error = max(max(p["error_ns_begin"], p["error_ns_end"]) for h in maps["hosts"] for p in h["pieces"])
            self.assertLess(error, 100000)
            for thread, begin, end in list(cluster.windows())[::EVERY * 3]:
                with self.subTest(pattern=pattern, thread=str(thread)):
                    expected = cluster.expected(thread, begin, end)
                    wrong = differences(rows(self.asked(cluster, thread, begin, end, *reference)), expected)
                    self.assertLess(max(wrong), error)
                    self.assertLess(sum(wrong), (end - begin) * 0.02)

    def test_the_slow_rank_is_named(self):
        """Known without any history: in each superstep the others compute for 1 ms, then wait as long for it."""
        cluster = make("mpi", 3, "mix=slow", "skew=0")
        thread, begin, end = next(cluster.windows())
        answer = self.asked(cluster, thread, begin, end, "--no-sync")
        slow = cluster.threads[len(cluster.threads) // 2]
        computed = time_in(answer, *(START_NS + t for t in (begin, end)), host=slow.host.name, tid=slow.tid,
                           state="running")
        self.assertGreater(computed, cluster.rounds * 900_000)

    def test_from_node_to_node(self):
        if not os.path.exists(NATS_SERVER):
            absent("nats-server is not installed")
        for pattern in (PATTERNS[0], PATTERNS[3]):
            cluster, folder = make(*pattern), scratch()
            questions = list(cluster.windows())[::EVERY * 3]
            with Nodes(weft_e2e.BIN, folder) as nodes:
                for host in cluster.hosts:
                    nodes.add(host.name, [os.path.join(cluster.folder, host.name)])
                reference = ("--reference", cluster.hosts[0].name)
                nodes.first_path(questions[0][0], *reference)
                for thread, begin, end in questions:
                    how = (*window(begin, end), *reference)
                    with self.subTest(pattern=pattern, thread=str(thread)):
                        code, asked, said = nodes.path(thread, *how)
                        self.assertEqual(code, 0, said)
                        here = self.asked(cluster, thread, begin, end, *reference)
                        for what in ("query", "segments", "links", "totals", "unexplained"):
                            self.assertEqual(asked.answer[what], here[what])
                        if pattern[0] == "scp":  # pattern whose path stays on one machine
                            far = cluster.threads[cluster.threads.index(thread) | 1].host.name
                            self.assertEqual(sorted(asked.cost["nodes"]), ["main", far])


if __name__ == "__main__":
    weft_e2e.main()
