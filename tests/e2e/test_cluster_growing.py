# SPDX-License-Identifier: MIT
"""Sessions that grow on several nodes during queries: answers equal one program's from the same archives."""
import json
import os
import subprocess
import threading

import test_cluster_patterns as patterns
from cluster_of import Cluster, wait_for
from test_cluster import MOST_QUESTIONS, Compared, bare, hosts_of
from test_cluster_asked import EXPLAINED, Asker
from test_cuts import tool
from weft_e2e import main, new_dice, scenario, scratch

DICE = new_dice(41)


class Growing(Compared):
    """Archives that arrive during queries."""

    def cut(self, path, dice):
        out = scratch()
        subprocess.run([tool("CUT_TRACE", "tests", "e2e", "cut_trace"), path, out, str(dice.getrandbits(63)), "4"],
                       check=True, stdout=subprocess.DEVNULL)
        return [os.path.join(out, part) for part in sorted(os.listdir(out))]

    def same(self, cluster, traces, thread, *options, store=None):
        far, near = cluster.ask(thread, *options), self.local(traces, store, thread, *options)
        self.assertEqual((far.code, far.message), (near.code, near.message), f"{far}\n{near}")
        if near.code:
            return
        self.assertEqual(bare(json.loads(far.out)), bare(json.loads(near.out)))

    def same_again(self, asker, traces, store, thread):
        """Checks that a client that queried before the archives came gets the same answers as a new one."""
        near = self.local(traces, store, thread, "--reference", "client")
        if near.code:
            return
        near = json.loads(near.out)
        question = (thread, near["query"]["begin"], near["query"]["end"])
        far, again = asker.ask(*question), asker.ask(*question)
        for answer in far, again:
            self.assertEqual({k: answer.get(k) for k in EXPLAINED}, {k: near[k] for k in EXPLAINED}, answer)
        self.assertEqual([again["cost"][k] for k in ("nodes", "messages", "bytes", "rounds")], [[], 0, 0, 0])

    def test_archives_that_arrive(self):
        recording, top = scenario("three-tier"), scratch()
        coming, nodes = [], {}
        for host, path in hosts_of(recording).items():
            parts = self.cut(path, DICE)
            place = os.path.join(top, host, "archives")
            os.makedirs(place)
            os.rename(parts[0], os.path.join(place, "0"))
            coming += [(number, host, part) for number, part in enumerate(parts) if number]
            nodes[host] = [os.path.join(top, host)]
        coming.sort()
        stop, wrong, asked = threading.Event(), [], []
        with Cluster(nodes) as cluster:
            memory = Asker("client", cluster.broker.url)
            self.addCleanup(memory.stop)

            def ask_all_the_while():
                while not stop.is_set():
                    run = cluster.ask("client:204")
                    asked.append(run.code)
                    if run.code not in (0, 3) and "no such thread" not in run.message:
                        wrong.append(str(run))
            asker = threading.Thread(target=ask_all_the_while)
            asker.start()
            try:
                for number, host, part in coming:
                    serial = cluster.cards()[host].serial
                    os.rename(part, os.path.join(top, host, "archives", str(number)))
                    took = wait_for("it is opened anew", lambda: cluster.cards()[host].serial > serial)
                    self.assertTrue(took)
                    cluster.settle()
                    fresh = scratch()
                    for thread in ("client:204", "web:196"):
                        with self.subTest(archive=number, host=host, thread=thread):
                            self.same(cluster, [top], thread, store=fresh)
                            self.same_again(memory, [top], fresh, thread)
            finally:
                stop.set()
                asker.join()
            self.assertEqual(wrong, [])
            self.assertIn(0, asked)
            whole = self.local([recording], scratch(), "client:204")
            self.assertEqual(bare(json.loads(cluster.ask("client:204").out)), bare(json.loads(whole.out)))

    def windows_of(self, made, dice, since, until):
        """(thread, begin, end) within a time, of any thread that lived then."""
        while True:
            thread, born, died = dice.choice(list(made.windows()))
            begin, end = sorted(dice.randint(since, until) for _ in range(2))
            if born < begin < end < died:
                yield thread, begin, end

    def ask_made(self, cluster, thread, begin, end):
        return cluster.ask(str(thread), *patterns.window(begin, end), "--no-sync", "-q")

    def moves_in(self, parts, top, number):
        """The archive of that number of all hosts, as near to at once as can be."""
        for host, paths in parts.items():
            if number < len(paths):
                os.rename(paths[number], os.path.join(top, host, "archives", str(number)))

    def test_the_last_minute_of_sessions(self):
        """Sessions of all nodes grow. A path over the latest data equals the true one as soon as one program reports it
        from the same archives, and stays the same while more arrives."""
        made, dice, top = patterns.make("mpi", 3, "mix=random", "skew=0"), new_dice(48), scratch()
        parts = {h.name: self.cut(os.path.join(made.folder, h.name), dice) for h in made.hosts}
        for host in parts:
            os.makedirs(os.path.join(top, host, "archives"))
        self.moves_in(parts, top, 0)
        right, wrong, asked, stop = [], [], [], threading.Event()
        with Cluster({host: [os.path.join(top, host)] for host in parts}) as cluster:
            def ask_all_the_while():
                while not stop.is_set():
                    if right:
                        window = right[-1 - len(asked) % min(len(right), 10)]
                        run = self.ask_made(cluster, *window)
                        asked.append(run.code)
                        if run.code or patterns.rows(json.loads(run.out)) != made.expected(*window):
                            wrong.append(str(run))
            asker = threading.Thread(target=ask_all_the_while)
            asker.start()
            try:
                for number in range(max(map(len, parts.values()))):
                    if number:
                        self.all_opened(cluster, {h for h, paths in parts.items() if number < len(paths)},
                                        lambda n=number: self.moves_in(parts, top, n))
                    right += self.right_now(cluster, made, dice, top)
            finally:
                stop.set()
                asker.join()
            self.assertEqual(wrong, [])
            self.assertGreater(len(asked), 0)
            self.assertGreater(len(right), 5)

    def all_opened(self, cluster, hosts, change):
        before = {name: card.serial for name, card in cluster.cards().items()}
        change()
        wait_for("cards are others", lambda: all(cluster.cards()[host].serial > before[host] for host in hosts))
        cluster.settle()

    def right_now(self, cluster, made, dice, top):
        """Returns those windows at the end of the data for which one program reports the truth; nodes must report it,
        too."""
        born, fresh, found = [t for _, t, _ in made.windows()], scratch(), []
        died = max(t for _, _, t in made.windows())
        for _, window in zip(range(MOST_QUESTIONS // 3), self.windows_of(made, dice, max(born), died)):
            near = self.local([top], fresh, str(window[0]), *patterns.window(*window[1:]), "--no-sync", "-q")
            far = self.ask_made(cluster, *window)
            if near.code == 0 and patterns.rows(json.loads(near.out)) == made.expected(*window):
                self.assertEqual(far.code, 0, far)
                self.assertEqual(bare(json.loads(far.out)), bare(json.loads(near.out)))
                found.append(window)
        return found


if __name__ == "__main__":
    main()
