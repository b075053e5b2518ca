# SPDX-License-Identifier: MIT
"""Cluster of many nodes, each a process with a small trace, at one broker: a path over a great part of them, many
killed at once, all restarted one after the other while a client queries. Answers are the true path of the threads,
or name the missing nodes. WEFT_NODES=N: number of nodes (40; 200 take some minutes)."""
import json
import os
import sys
import threading

import test_cluster_patterns as patterns
import weft_e2e
from cluster_of import Cluster, Node, wait_for
from weft_e2e import SANITIZER, SLOWDOWN, Case, main, new_dice

sys.path.insert(0, os.path.join(weft_e2e.ROOT, "bench"))
from nodes import private_bytes  # noqa: E402

DICE = new_dice(47)
NODES = int(os.environ.get("WEFT_NODES", 40 if not SANITIZER else 8))
ON_PATH = min(20, NODES // 3)
KILLED = min(20, NODES // 2)
TIMEOUT_S = 5 * SLOWDOWN
MOST_IDLE_BYTES = 12 << 20


def since(t, rows):
    return [(*s[:2], max(t, s[2]), *s[3:]) for s in rows if s[3] > t]


class Many(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.made = patterns.make("mpi", NODES, "mix=random", "ranks=2", "skew=0")
        cls.cluster = Cluster({h.name: [os.path.join(cls.made.folder, h.name)] for h in cls.made.hosts})
        cls.addClassCleanup(cls.cluster.stop)
        paths = [(w, cls.made.expected(*w)) for w in DICE.sample(list(cls.made.windows()), min(NODES, 40))]
        cls.window, cls.expected = max(paths, key=lambda p: len({s[0] for s in p[1]}))
        cls.hosts = {s[0] for s in cls.expected}
        cls.home = cls.window[0].host.name

    def ask(self, window=None, timeout_s=TIMEOUT_S):
        thread, begin, end = window or self.window
        return self.cluster.ask(str(thread), *patterns.window(begin, end), "--no-sync", "--timeout",
                                f"{timeout_s}s")

    def whole(self):
        run = self.ask()
        self.assertEqual(run.code, 0, run)
        answer = json.loads(run.out)
        self.assertEqual(patterns.rows(answer), self.expected)
        return answer

    def partly(self, run, gone):
        """Checks that missing nodes are named, and that nothing above them differs. Returns the names of nodes that do
        not answer."""
        answer = json.loads(run.out)
        self.check_path(answer, str(run))
        away = [u for u in answer["unexplained"] if u["reason"] in ("offline-node", "untraced-peer")]
        self.assertGreater(len(away), 0, run)
        names = {u["peer"].split(" ")[0] for u in away if u["reason"] == "offline-node"}
        self.assertLessEqual(names, gone)
        top = max(u["end"] for u in away) - patterns.START_NS
        self.assertEqual(*(since(top, rows) for rows in (patterns.rows(answer), self.expected)))
        return names

    def all_again(self, gone):
        for name in gone:
            self.cluster.nodes[name].start()
        wait_for("all is there again", lambda: self.ask().code == 0)
        self.whole()

    def test_a_path_over_many(self):
        self.assertGreaterEqual(len(self.hosts), ON_PATH)
        answer = self.whole()
        self.assertLessEqual(self.hosts, set(answer["cost"]["nodes"]))
        self.assertLessEqual(answer["cost"]["messages"], 2 * len(answer["cost"]["nodes"]) * answer["cost"]["rounds"])

    def test_killed_at_once(self):
        asked = set(self.whole()["cost"]["nodes"])
        on, off = ([h.name for h in self.made.hosts if h.name != self.home and (h.name in asked) == there]
                   for there in (True, False))
        for gone in (DICE.sample(off, min(KILLED, len(off))), DICE.sample(on + off, KILLED)):
            for name in gone:
                self.cluster.nodes[name].signal(9)
            for name in gone:
                self.cluster.nodes[name].process.wait()
            if set(gone) & asked:
                run = self.ask()
                self.assertEqual(run.code, 3, run)
                self.assertGreater(len(self.partly(run, set(gone))), 0)
            else:
                self.whole()
            window = next(w for w in self.made.windows() if w[0].host.name == gone[0])
            run = self.ask(window)
            self.assertEqual(run.code, 1, run)
            self.assertIn(f"node {gone[0]}: ", run.message)
            self.all_again(gone)

    def answers_meanwhile(self, end, check):
        """Ends all nodes, one after the other, and starts them again, while two ask; check(run) what they get."""
        stop, wrong, codes = threading.Event(), [], []

        def ask():
            while not stop.is_set() and not wrong:
                run = self.ask(timeout_s=SLOWDOWN)  # half of the time-out passes if a node dies during its query
                codes.append(run.code)
                try:
                    if run.code == 1:  # missing: its own node
                        self.assertRegex(run.message, "node [^ ]+: |no such thread|not seen")
                    else:
                        check(run)
                except (AssertionError, ValueError) as e:
                    wrong.append(f"{e}\n{run}")
        askers = [threading.Thread(target=ask) for _ in range(2)]
        for asker in askers:
            asker.start()
        try:
            for node in self.cluster.nodes.values():
                end(node)
                asked = len(codes)
                wait_for("an answer without it", lambda asked=asked: len(codes) > asked + 1 or wrong)
                node.start()
        finally:
            stop.set()
            for asker in askers:
                asker.join()
        self.assertEqual(wrong, [])
        wait_for("all is there again", lambda: self.ask().code == 0)
        self.cluster.settle()
        self.whole()
        print(f"{len(codes)} answers meanwhile, {codes.count(0)} of them complete", flush=True)

    def test_killed_and_started_one_after_the_other(self):
        def check(run):
            if run.code == 3:
                self.partly(run, set(self.cluster.nodes))
            else:
                self.assertEqual(run.code, 0)
                self.assertEqual(patterns.rows(json.loads(run.out)), self.expected)
        self.answers_meanwhile(Node.kill, check)

    def test_left_and_started_one_after_the_other(self):
        """A node that ends in order removes its traces: meanwhile answers are those without them."""
        def leave(node):
            self.assertEqual(node.leave(), 0)

        def check(run):
            self.assertIn(run.code, (0, 3))
            self.check_path(json.loads(run.out), str(run))
        self.answers_meanwhile(leave, check)

    def test_idle(self):
        memory = [private_bytes(n.process.pid) for n in self.cluster.nodes.values()]
        print(f"{NODES} nodes: {sum(memory) / len(memory) / 1e6:.2f} MB each, {max(memory) / 1e6:.2f} at most")
        if not SANITIZER:
            self.assertLess(max(memory), MOST_IDLE_BYTES)


if __name__ == "__main__":
    main()
