# SPDX-License-Identifier: MIT
"""Nodes and brokers that are killed, stopped, cut off, return, leave or lie: an answer comes in time, names missing
data and their nodes, and is right in all else."""
import concurrent.futures
import json
import os
import signal
import subprocess
import threading
import time
import urllib.request

from cluster_of import Broker, Cluster, Node, cards_of, wait_for
from namespaces import Network
from test_cluster import Compared, bare, hosts_of
from weft_e2e import ROOT, SANITIZER, SLOWDOWN, main, need, new_dice, scenario, scratch, weft

DICE = new_dice(43)
THREAD, GONE = "client:204", "db"  # thread with a path over all three
TIMEOUT_S = 2 * min(SLOWDOWN, 5)
SLACK_S = SLOWDOWN if not SANITIZER else 3 * SLOWDOWN  # sanitizers look for leaks at the end
TIMEOUT = ("--timeout", f"{TIMEOUT_S}s")


class Faults(Compared):
    """The three machines of three-tier, a node each."""

    def setUp(self):
        self.recording = scenario("three-tier")
        self.hosts = hosts_of(self.recording)
        self.cluster = Cluster({h: [path] for h, path in self.hosts.items()})
        self.addCleanup(self.cluster.stop)
        self.full = self.whole()

    def whole(self):
        """Checks that nothing is missing, and that the answer equals one program's."""
        return self.same(self.cluster, [self.recording], THREAD)

    def without(self, gone, run, stopped=False):
        """Checks that only the pieces of the missing node's host are missing, as in the answer of one program without
        its trace."""
        self.assertEqual(run.code, 3, run)
        self.assertRegex(run.message, f"^weft: note: .* of the path .* missing: no answer from {gone}\n")
        answer = json.loads(run.out)
        self.check_path(answer, str(run))
        rest = [path for host, path in self.hosts.items() if host != gone]
        near = json.loads(self.local(rest, self.cluster.store, THREAD, "--reference", "client").out)
        self.assertEqual((answer["segments"], answer["links"]), (near["segments"], near["links"]))
        address = f"{gone} (10.77.0.1"
        away = [u for u in answer["unexplained"] if u["reason"] == "offline-node"]
        self.assertGreater(len(away), 0)
        for u in away:
            self.assertTrue(u["peer"].startswith(address), u)
            u["reason"], u["peer"] = "untraced-peer", u["peer"].split(" (")[1].rstrip(")")
        doubts = [u for u in away if u not in near["unexplained"]]
        self.assertEqual([u for u in answer["unexplained"] if u not in doubts], near["unexplained"])
        for u in doubts:  # thread's state is known there, but not whether the path came back to it
            within = [s for s in answer["segments"] if s["begin"] < u["end"] and s["end"] > u["begin"]]
            self.assertTrue({s["state"] for s in within} <= {"running", "preempted", "interrupted"}, within)

    def ask(self, *options):
        """Queries the path on the client's clock, which does not depend on the other nodes, within a time limit."""
        begin = time.monotonic()
        run = self.cluster.ask(THREAD, "--reference", "client", *TIMEOUT, *options)
        self.assertLess(time.monotonic() - begin, TIMEOUT_S + SLACK_S, run)
        return run

    def nothing_left(self):
        self.cluster.stop()
        for node in self.cluster.nodes.values():
            self.assertEqual(os.listdir(node.temporary), [], node.name)


class Nodes(Faults):
    def test_killed_before(self):
        node = self.cluster.nodes[GONE]
        node.kill()
        self.without(GONE, self.ask())
        node.start()
        wait_for("it answers again", lambda: self.ask().code == 0)
        self.assertEqual(bare(self.whole()), bare(self.full))

    def test_killed_one_after_the_other(self):
        """Whoever finds the clocks is among them: they stay known."""
        for name in ("web", "client", "db"):
            self.cluster.nodes[name].kill()
            run = self.ask()
            self.assertIn(run.code, (1, 3), run)
            if name == "client":
                self.assertRegex(run.message, "node client: .*nobody serves")
            else:
                self.without(name, run)
            self.cluster.nodes[name].start()
            wait_for(f"{name} answers again", lambda: self.ask().code == 0)
            self.whole()

    def test_killed_meanwhile(self):
        """Answers to many clients during a failure are complete, or name the missing node; afterwards they are complete
        again."""
        whole, late = bare(self.full), []

        def ask(_):
            run = self.cluster.ask(THREAD, *TIMEOUT)
            if run.code == 0:
                self.assertEqual(bare(json.loads(run.out)), whole)
            elif run.code == 1:  # a busy machine: no node could be asked within that time, which is no answer
                self.assertRegex(run.message, "the time was over|in time")
            else:
                self.assertEqual(run.code, 3, run)
                self.assertEqual({u["peer"].split(" ")[0] for u in json.loads(run.out)["unexplained"]
                                  if u["reason"] == "offline-node"}, {GONE}, run)
            late.append(run.code)

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            asked = [pool.submit(ask, i) for i in range(60 // SLOWDOWN)]
            for _ in range(3):
                time.sleep(DICE.random() * SLOWDOWN)
                self.cluster.nodes[GONE].kill()
                time.sleep(DICE.random() * SLOWDOWN)
                self.cluster.nodes[GONE].start()
            for one in asked:
                one.result()
        wait_for("it answers again", lambda: self.ask().code == 0)
        self.whole()
        self.nothing_left()

    def test_stopped(self):
        """A node that has it but does not answer: half of the time is for going on without it."""
        node = self.cluster.nodes[GONE]
        node.freeze()
        begin = time.monotonic()
        self.without(GONE, self.ask())
        self.assertGreater(time.monotonic() - begin, TIMEOUT_S / 4)
        node.thaw()
        wait_for("it answers again", lambda: self.ask().code == 0)
        self.whole()

    def test_stopped_in_the_middle_of_the_path(self):
        self.cluster.nodes["web"].freeze()
        self.without("web", self.ask())

    def test_stopped_where_the_thread_is(self):
        self.cluster.nodes["client"].freeze()
        run = self.ask()
        self.assertEqual(run.code, 1, run)
        self.assertRegex(run.message, "node client: ")

    def test_copies(self):
        """A node that does not answer, and another that has the same."""
        copy = self.cluster.add("a-copy", self.hosts[GONE])
        self.cluster.settle()
        for node in (copy, self.cluster.nodes[GONE]):
            node.freeze()
            run = self.ask()
            self.assertEqual(run.code, 0, run)
            self.assertEqual((json.loads(run.out)["segments"], json.loads(run.out)["links"]), self.on_client_clock())
            self.assertEqual(self.threads(), self.threads(self.recording))
            node.thaw()
        for node in (copy, self.cluster.nodes[GONE]):
            node.freeze()
        rest = [t for t in self.threads(self.recording, limit=10000) if t["host"] != GONE]
        self.assertEqual(self.threads(), rest[:50])

    def threads(self, *recording, limit=50):
        where = recording or ("--cluster", self.cluster.broker.url, *TIMEOUT)
        run = weft("threads", *where, "--sort", "network", "--limit", str(limit), "--format", "json",
                   *(("--store", self.cluster.store) if recording else ()))
        self.assertIn(run.code, (0, 3), run)
        return json.loads(run.out)

    def on_client_clock(self):
        near = json.loads(self.local([self.recording], self.cluster.store, THREAD, "--reference", "client").out)
        return near["segments"], near["links"]

    def test_leaves(self):
        """A node that ends in order reports it: its machine is removed from the cluster."""
        self.assertEqual(self.cluster.nodes[GONE].leave(), 0)
        self.assertEqual(set(self.cluster.cards()), {"client", "web"})
        self.cluster.settle()
        run = self.ask()
        self.assertEqual(run.code, 0, run)
        rest = [path for host, path in self.hosts.items() if host != GONE]
        near = self.local(rest, self.cluster.store, THREAD, "--reference", "client")
        self.assertEqual(bare(json.loads(run.out)), bare(json.loads(near.out)))
        self.cluster.nodes[GONE].start()
        self.cluster.settle()
        self.whole()
        self.nothing_left()

    def test_all_leave(self):
        for node in self.cluster.nodes.values():
            self.assertEqual(node.leave(), 0)
        self.assertEqual(self.cluster.cards(), {})
        run = self.ask()
        self.assertEqual(run.code, 1, run)
        self.assertRegex(run.message, "^weft: no node of cluster weft has a trace")

    def test_second_of_a_name(self):
        card = self.cluster.cards()["web"].instance
        second = Node(self.cluster.broker.url, "web", self.hosts["web"], store=self.cluster.store)
        self.assertEqual(second.process.wait(timeout=30 * SLOWDOWN), 2, second.errors)
        self.assertIn("there is a node named web already", second.errors)
        self.assertEqual(self.cluster.cards()["web"].instance, card)
        self.whole()

    def test_a_restart_takes_the_name(self):
        """A restarted node takes its name, also if the one before was killed."""
        card = self.cluster.cards()["web"].instance
        self.cluster.nodes["web"].kill()
        self.cluster.nodes["web"].start()
        wait_for("its card is another", lambda: self.cluster.cards()["web"].instance != card)
        self.cluster.settle()
        self.whole()

    def test_traces_that_cannot_be_opened(self):
        """Nodes whose traces cannot be opened are present, with the reason; others answer."""
        empty = os.path.join(scratch(), "empty")
        os.makedirs(empty)
        node = self.cluster.add("empty", empty)
        wait_for("it says why", lambda: "empty" in node.errors or node.process.poll() is not None)
        self.assertRegex(node.errors, "weft: .*empty")
        self.whole()


class Brokers(Faults):
    def test_restarted(self):
        """A restarted broker has kept its tables; while it is away, queries fail at once with a message."""
        self.cluster.broker.kill()
        run = weft("critpath", "--cluster", self.cluster.broker.url, "--thread", THREAD, timeout=10)
        self.assertEqual(run.code, 1, run)
        self.assertRegex(run.message, f"^weft: --cluster: .*{self.cluster.broker.port}")
        self.cluster.broker.start()
        self.cluster.settle()
        wait_for("nodes are back", lambda: self.cluster.ask(THREAD, *TIMEOUT).code == 0)
        self.whole()

    def test_lost_everything(self):
        for keep in (False, True, False):
            self.cluster.broker.restart(keep)
            self.cluster.settle()
            wait_for("nodes are back", lambda: self.cluster.ask(THREAD, *TIMEOUT).code == 0)
            self.whole()

    def test_cards_that_are_said_again_and_again(self):
        """Whoever reads all cards meanwhile takes each for one node's, and comes to an end."""
        card, end = self.cluster.broker.table("weft_weft_nodes")[GONE], threading.Event()

        def say():
            with self.cluster.broker.connect() as f:
                while not end.wait(0.003):
                    f.write(b"PUB $KV.weft_weft_nodes.%s %d\r\n%s\r\n" % (GONE.encode(), len(card), card))
                    f.flush()
        sayer = threading.Thread(target=say)
        sayer.start()
        try:
            for _ in range(max(5, 40 // SLOWDOWN)):
                run = self.cluster.ask(f"{GONE}:1", "--no-sync", "-q", *TIMEOUT)
                self.assertEqual(run.code, 0, run)
        finally:
            end.set()
            sayer.join()

    def test_nodes_end_without_it(self):
        self.cluster.broker.kill()
        for node in self.cluster.nodes.values():
            begin = time.monotonic()
            self.assertEqual(node.leave(), 0)
            self.assertLess(time.monotonic() - begin, 20 * SLOWDOWN)

    def test_killed_meanwhile(self):
        """Queries during failures never hang, and every answer is right."""
        stop, wrong, codes = threading.Event(), [], []

        def ask():
            while not stop.is_set():
                begin = time.monotonic()
                run = self.cluster.ask(THREAD, *TIMEOUT)
                codes.append(run.code)
                if run.code not in (0, 1, 3) or time.monotonic() - begin > 5 + TIMEOUT_S + 2 * SLOWDOWN:
                    wrong.append(f"{time.monotonic() - begin} s: {run}")
                if run.code == 0 and bare(json.loads(run.out)) != bare(self.full):
                    wrong.append(str(run))
        askers = [threading.Thread(target=ask) for _ in range(2)]
        for asker in askers:
            asker.start()
        try:
            for _ in range(3):
                time.sleep(0.5 + DICE.random())
                self.cluster.broker.kill()
                time.sleep(DICE.random())
                self.cluster.broker.start()
            self.cluster.settle()
            wait_for("nodes are back", lambda: self.cluster.ask(THREAD, *TIMEOUT).code == 0)
        finally:
            stop.set()
            for asker in askers:
                asker.join()
        self.assertEqual(wrong, [])
        self.assertIn(0, codes)
        self.whole()


class LateBrokers(Compared):
    """Nodes started before their broker wait for it, report it once, and serve their viewers meanwhile."""

    def setUp(self):
        self.recording = scenario("three-tier")
        self.hosts = hosts_of(self.recording)
        self.cluster = Cluster({})
        self.addCleanup(self.cluster.stop)

    def nodes(self):
        for host, path in self.hosts.items():
            self.cluster.add(host, path)
        for node in self.cluster.nodes.values():
            wait_for("it says that it waits", lambda node=node: "waits for it" in node.errors)

    def all_join(self):
        self.cluster.settle()
        self.same(self.cluster, [self.recording], THREAD)
        for node in self.cluster.nodes.values():
            self.assertEqual(node.errors.count("waits for it"), 1, node.errors)
            self.assertIn("has joined", node.errors)
            self.assertEqual(node.leave(), 0)

    def test_not_there_yet(self):
        self.cluster.broker.kill()
        self.nodes()
        node = self.cluster.nodes["web"]
        with urllib.request.urlopen(node.address() + "/tsp/api/experiments", timeout=10) as answer:
            self.assertEqual(answer.status, 200)
        self.cluster.broker.start()
        self.all_join()

    def test_too_slow(self):
        """Broker that accepts connections and is silent, for longer than a node used to wait."""
        self.cluster.broker.process.send_signal(signal.SIGSTOP)
        try:
            self.nodes()
            time.sleep(5 * SLOWDOWN)
            for node in self.cluster.nodes.values():
                self.assertIsNone(node.process.poll(), node.errors)
        finally:
            self.cluster.broker.process.send_signal(signal.SIGCONT)
        self.all_join()

    def test_stopped_while_it_waits(self):
        self.cluster.broker.kill()
        self.nodes()
        for node in self.cluster.nodes.values():
            self.assertEqual(node.leave(), 0)


class Keepers(Compared):
    """The clock leader queries copies if a node is gone, and does without data that no node has."""

    def start(self, **nodes):
        """The first of them keeps the clocks, before the others come."""
        self.cluster = Cluster({})
        self.addCleanup(self.cluster.stop)
        for name, traces in nodes.items():
            self.cluster.add(name, *traces)
            self.cluster.settle()
        return self.cluster.nodes[self.keeper()]

    def keeper(self):
        """Waits until there is a leader; returns its name."""
        table = "weft_weft_keeper"
        return wait_for("one keeps the clocks", lambda: self.cluster.broker.table(table).get("keeper")).decode()

    def test_copies(self):
        """The leader is gone, with all it had gathered; then another one takes over."""
        few, many = scenario("three-tier"), scenario("bsp")
        first = self.start(a=[few], b=[few])
        self.assertEqual(first.name, "a")
        first.kill()
        wait_for("another keeps them", lambda: self.keeper() == "b")
        self.cluster.add("c", many)
        self.cluster.settle()
        self.same(self.cluster, [few, many], THREAD)
        self.same(self.cluster, [few, many], "n1:210", "--reference", "n2")

    def test_what_nobody_has(self):
        """Clocks of the other hosts are found, without waiting for the missing one's; when it comes back, all are."""
        recording = scenario("three-tier")
        hosts = hosts_of(recording)
        first = self.start(db=[hosts["db"]], client=[hosts["client"]])
        self.assertEqual(first.name, "db")
        first.kill()
        wait_for("another keeps them", lambda: self.keeper() == "client")
        self.cluster.add("web", hosts["web"])
        self.cluster.settle()
        begin = time.monotonic()
        run = self.cluster.ask(THREAD, "--reference", "client")
        self.assertLess(time.monotonic() - begin, 2 * SLOWDOWN)
        self.assertEqual(run.code, 3, run)
        found = {s["host"] for s in json.loads(run.out)["segments"]}
        self.assertIn("web", found)
        first.start()
        wait_for("all is there", lambda: bare(json.loads(self.cluster.ask(THREAD).out)) ==
                 bare(json.loads(self.local([recording], self.cluster.store, THREAD).out)))


class Split(Compared):
    """Nodes in network namespaces of their own, whose links go down."""

    def start(self, recording):
        hosts = hosts_of(recording)
        self.network = Network(self.addCleanup, len(hosts))
        self.cluster = Cluster({}, broker=Broker(self.network.address))
        self.addCleanup(self.cluster.stop)
        for i, (host, path) in enumerate(hosts.items()):
            self.cluster.add(host, path, within=self.network.within(i))
        self.cluster.settle()
        return list(hosts)

    def test_a_link_goes_down_and_up(self):
        recording = scenario("three-tier")
        hosts = self.start(recording)
        self.same(self.cluster, [recording], THREAD)
        for times in range(2):
            self.network.link(hosts.index(GONE), "down")
            begin = time.monotonic()
            run = self.cluster.ask(THREAD, "--reference", "client", *TIMEOUT)
            self.assertLess(time.monotonic() - begin, TIMEOUT_S + SLACK_S, run)
            self.assertEqual(run.code, 3, run)
            self.assertEqual({u["peer"].split(" ")[0] for u in json.loads(run.out)["unexplained"]
                              if u["reason"] == "offline-node"}, {GONE})
            self.network.link(hosts.index(GONE), "up")
            wait_for("the link is up", lambda: self.cluster.ask(THREAD, *TIMEOUT).code == 0)
            self.same(self.cluster, [recording], THREAD)


class Liars(Compared):
    """Node with false answers about paths, alone or beside an honest one with the same data. The honest one answers in
    another cluster of the broker, too, where the liar queries it."""

    # Answers that are rejected; and those that are accepted, or may be.
    SENSELESS = ("garbage", "cut", "vast", "refuses", "silent")
    PLAUSIBLE = ("flips", "huge", "before", "nothing", "rows", "hosts", "loops")

    def setUp(self):
        self.recording = scenario("three-tier")
        self.hosts = hosts_of(self.recording)
        self.cluster = Cluster({"client": [self.hosts["client"]]})
        self.addCleanup(self.cluster.stop)
        self.honest = [self.hosts["web"], self.hosts["db"]]
        truth = Node(self.cluster.broker.url, "truth", *self.honest, store=self.cluster.store, cluster="truths")
        self.addCleanup(truth.leave)
        wait_for("the truth is there",
                 lambda: any(c.hosts for c in cards_of(self.cluster.broker.table("weft_truths_nodes"))))

    def lie(self, how):
        """A liar, whose name is the first of all."""
        program = need(os.path.abspath(os.environ.get("CLUSTER_LIAR") or
                                       os.path.join(ROOT, "build", "tests", "e2e", "cluster_liar")))
        liar = subprocess.Popen([program, self.cluster.broker.url, "truths", "truth", "weft", "a-liar", how,
                                 str(DICE.getrandbits(60))], stdout=subprocess.PIPE)
        self.addCleanup(liar.stdout.close)
        self.addCleanup(liar.kill)
        self.assertEqual(liar.stdout.readline(), b"ready\n")
        self.cluster.settle()
        return liar

    def ask(self):
        begin = time.monotonic()
        run = self.cluster.ask(THREAD, *TIMEOUT)
        self.assertLess(time.monotonic() - begin, TIMEOUT_S + SLACK_S, run)
        self.survived(run)
        return run

    def end(self, liar):
        liar.send_signal(signal.SIGTERM)
        self.assertEqual(liar.wait(timeout=30 * SLOWDOWN), 0)

    def test_alone(self):
        for how in self.SENSELESS + self.PLAUSIBLE:
            liar = self.lie(how)
            for _ in range(4 if how in self.PLAUSIBLE else 1):
                with self.subTest(how=how):
                    run = self.ask()
                    if how in self.SENSELESS:
                        self.assertEqual(run.code, 3, run)
                        self.assertEqual({u["peer"].split(" ")[0] for u in json.loads(run.out)["unexplained"]
                                          if u["reason"] == "offline-node"}, {"a-liar"}, run)
                    if run.code in (0, 3):
                        self.covers(json.loads(run.out))
            self.end(liar)

    def covers(self, answer):
        at = answer["query"]["begin"]
        for s in answer["segments"]:
            self.assertEqual(s["begin"], at)
            self.assertLess(at, s["end"])
            at = s["end"]
        self.assertEqual(at, answer["query"]["end"])

    def test_who_claims_the_addresses_of_others(self):
        """False claims of addresses, or of contents, change nothing: a claimant, queried in vain, answers that it did
        not send."""
        for how in ("claims", "hash"):
            with self.subTest(how=how):
                liar = self.lie(how)
                answer = self.same(self.cluster, [self.recording], THREAD)
                self.assertEqual(set(answer["cost"]["nodes"]), {"client", "a-liar"})
                self.end(liar)

    def test_a_node_that_knows_no_containers(self):
        """A node of an older version gives sums, and a note about their missing parts."""
        liar = self.lie("older")
        self.same(self.cluster, [self.recording], THREAD)
        for asked in (("--thread", THREAD), ("--requests", "all")):
            near, far = (weft("critpath", *asked, "--by", "container", *of, "--format", "csv") for of in (
                ("--store", self.cluster.store, self.recording), ("--cluster", self.cluster.broker.url, *TIMEOUT)))
            self.assertEqual((far.code, far.text), (3, near.text), far)
            self.assertIn("containers of 2 machines are not known, their threads count to none: node a-liar: not known",
                          far.message)
        self.end(liar)

    def test_a_path_without_end(self):
        """A path without end (each row was made by another one, at the same time) ends at the deadline, and names the
        node waited for."""
        liar = self.lie("endless")
        run = self.ask()
        self.assertEqual(run.code, 3, run)
        answer = json.loads(run.out)
        self.covers(answer)
        self.assertEqual({u["peer"].split(" ")[0] for u in answer["unexplained"] if u["reason"] == "offline-node"},
                         {"a-liar"}, run)
        self.assertGreater(answer["cost"]["rounds"], 20)
        self.end(liar)

    def test_beside_an_honest_one(self):
        self.cluster.add("honest", *self.honest)
        self.cluster.settle()
        for how in self.SENSELESS:
            liar = self.lie(how)
            with self.subTest(how=how):
                self.assertEqual(self.ask().code, 0)
                self.same(self.cluster, [self.recording], THREAD)
            self.end(liar)
            self.cluster.settle()
        self.same(self.cluster, [self.recording], THREAD)


if __name__ == "__main__":
    main()
