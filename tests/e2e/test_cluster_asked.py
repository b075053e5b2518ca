# SPDX-License-Identifier: MIT
"""Random threads and intervals of each recording, asked for while a node is being killed and started again: an answer
is the one of all traces in one place, or names who is away, and is never another explanation.

WEFT_QUESTIONS=N: so many of each recording (1000 take some minutes)."""
import json
import os
import subprocess
import threading

from cluster_of import Cluster, wait_for
from test_cluster import Compared, EachRecording, hosts_of
from weft_e2e import ROOT, SLOWDOWN, main, need, new_dice, scenario, scratch

DICE = new_dice(46)
QUESTIONS = int(os.environ.get("WEFT_QUESTIONS", max(10, 60 // SLOWDOWN)))
TIMEOUT_MS = 2000 * SLOWDOWN
EXPLAINED = ("query", "segments", "links", "totals", "unexplained")


def askers():
    return need(os.path.abspath(os.environ.get("ASK_PATHS") or
                                os.path.join(ROOT, "build", "tests", "e2e", "ask_paths")))


def answers(how, reference, *args, questions):
    """Returns the answers of ask_paths, unchanged."""
    log = os.path.join(scratch(), "stderr")
    with open(log, "wb") as said, subprocess.Popen([askers(), how, reference, *map(str, args)], stderr=said,
                                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE) as asker:
        lines = "".join("%s %d %d\n" % question for question in questions).encode()
        writer = threading.Thread(target=lambda: (asker.stdin.write(lines), asker.stdin.close()))
        writer.start()
        n = 0
        for line in asker.stdout:
            n += 1
            yield json.loads(line)
        writer.join()
    with open(log, encoding="utf-8") as said:
        assert (asker.returncode, n) == (0, len(questions)), said.read()


class Asker:
    """Sends one query after the other, and caches the nodes' answers (ask_paths memory)."""

    def __init__(self, reference, url, timeout_ms=30000 * SLOWDOWN):
        self.process = subprocess.Popen([askers(), "memory", reference, url, str(timeout_ms)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def ask(self, *question):
        self.process.stdin.write("%s %d %d\n" % question)
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def stop(self):
        self.process.stdin.close()
        self.process.stdout.close()
        return self.process.wait()


def away(answer):
    return [u for u in answer["unexplained"] if u["reason"] == "offline-node"]


class Restarts(threading.Thread):
    """Kills nodes, one at a time, and restarts them, until stopped."""

    def __init__(self, cluster):
        super().__init__()
        self.cluster, self.ended, self.kills, self.wrong = cluster, threading.Event(), 0, []

    def run(self):
        try:
            while not self.ended.is_set():
                self.restart(DICE.choice(sorted(self.cluster.nodes)))
                self.ended.wait(0.3 * DICE.random())
        except Exception as e:  # pylint: disable=broad-except
            self.wrong.append(repr(e))

    def restart(self, name):
        before = self.cluster.cards()[name].instance
        self.cluster.nodes[name].kill()
        self.kills += 1
        self.ended.wait(0.1 * DICE.random())
        self.cluster.nodes[name].start()
        wait_for(f"{name} is back", lambda: self.cluster.cards()[name].instance != before)

    def end(self):
        self.ended.set()
        self.join()


class WhileKilled(EachRecording, Compared):
    def random_questions(self, recording, store, reference):
        """(thread, begin, end): lives and parts of them, of threads that did much or little."""
        rows = [r for r in self.json("threads", recording, "--store", store, "--all") if r["tid"] > 0]
        _, maps = self.sync(recording, store, "--reference", reference)
        for _ in range(QUESTIONS):
            r = DICE.choice(rows[:40] if DICE.random() < 0.7 else rows)
            begin, end = sorted(r["begin"] + DICE.randint(0, r["life"]) for _ in range(2))
            if DICE.random() < 0.2:
                begin, end = r["begin"], r["begin"] + r["life"]
            begin, end = (int(maps[r["host"]].to_reference(t)) for t in (begin, end + 1))
            yield f"{r['host']}:{r['tid']}", begin, end

    def compare(self, far, near, thread, hosts):
        """True: it is whole."""
        if "error" in far and "error" not in near:
            self.assertIn("node", far["error"])
            return False
        if "error" in near or not away(far):
            self.assertEqual({k: far.get(k) for k in (*EXPLAINED, "error")},
                             {k: near.get(k) for k in (*EXPLAINED, "error")}, thread)
            return True
        self.assertLessEqual({u["peer"].split(" ")[0] for u in away(far)}, hosts)
        self.no_other_explanation(far, near, thread)
        return False

    def no_other_explanation(self, far, near, thread):
        """Checks that the path equals the near one above its first unknown part (paths are told backwards)."""
        top = max(u["end"] for u in away(far))
        known = [[dict(s, begin=max(top, s["begin"])) for s in answer["segments"] if s["end"] > top]
                 for answer in (far, near)]
        self.assertEqual(*known, f"{thread}: above {top}")

    def recorded(self, name):
        recording = scenario(name)
        hosts = hosts_of(recording)
        reference = sorted(hosts)[0]
        with Cluster({h: [path] for h, path in hosts.items()}) as cluster:
            questions = list(self.random_questions(recording, cluster.store, reference))
            near = list(answers("local", reference, cluster.store, recording, questions=questions))
            self.assertTrue(any("segments" in a for a in near))
            restarts, whole = Restarts(cluster), 0
            restarts.start()
            try:
                how = DICE.choice(("cluster", "memory"))
                far = answers(how, reference, cluster.broker.url, TIMEOUT_MS, questions=questions)
                for question, f, n in zip(questions, far, near):
                    with self.subTest(recording=name, question=question):
                        whole += self.compare(f, n, question[0], set(hosts))
            finally:
                restarts.end()
            self.assertEqual(restarts.wrong, [])
            self.assertGreater(restarts.kills, 0)
            print(f"{name}, {how}: {whole} of {QUESTIONS} were whole, {restarts.kills} times was a node killed",
                  flush=True)
            cluster.settle()
            far = list(answers("cluster", reference, cluster.broker.url, TIMEOUT_MS, questions=questions[:20]))
            for f, n in zip(far, near):
                self.assertTrue(self.compare(f, n, "again", set()))


if __name__ == "__main__":
    main()
