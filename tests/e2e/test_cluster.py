# SPDX-License-Identifier: MIT
"""`weft critpath --cluster`: nodes that have a host each, several, or copies of one, together give the answer of one
program with all their traces; only nodes with a piece of the path are queried."""
import itertools
import json
import os
import tarfile
from fractions import Fraction

import test_cluster_patterns as patterns
import test_worlds
from cluster_of import Cluster, Node, wait_for
from weft_e2e import ROOT, SLOWDOWN, Case, Map, Truth, load, main, new_dice, scenario, scratch, weft
from world import TCP, UDP, World
from world_path import Oracle
from world_trace import START_NS

DICE = new_dice(41)
MOST_QUESTIONS = max(8, 40 // SLOWDOWN)


def example(name):
    """Returns a recording of examples/, unpacked."""
    directory = scratch()
    with tarfile.open(os.path.join(ROOT, "examples", name + ".tar.xz")) as tar:
        tar.extractall(directory)
    return os.path.join(directory, name)


def hosts_of(recording):
    """{name: directory}"""
    return {name: os.path.join(recording, name) for name in sorted(os.listdir(recording))
            if os.path.isdir(os.path.join(recording, name))}


def named_threads(said, hosts, host=None):
    """Returns (host or None, number) of the threads in a ground truth, whatever its layout."""
    if isinstance(said, dict):
        host = said.get("host", host)
        yield from ((host, said[key]) for key in ("tid", "pid") if isinstance(said.get(key), int))
        for key, value in said.items():
            yield from named_threads(value, hosts, key if key in hosts else host)
    elif isinstance(said, list):
        for value in said:
            yield from named_threads(value, hosts, host)


def bare(answer):
    return {key: value for key, value in answer.items() if key not in ("cost", "method")}


def hosts_in(answer):
    """Returns the hosts in an answer: of the path, its segments, the origins of links, and missing ones."""
    found = {answer["query"]["host"]} | {s["host"] for s in answer["segments"]}
    found |= {link[side]["host"] for link in answer["links"] for side in ("from", "to")}
    return found | {u["peer"].split(" (")[0] for u in answer["unexplained"] if u["reason"] == "offline-node"}


class Compared(Case):
    """Comparison of a cluster's answers with those of one program that has the traces."""

    def local(self, traces, store, thread, *options):
        return weft("critpath", *traces, "--store", store, "--thread", thread, "--format", "json", *options)

    def same(self, cluster, traces, thread, *options, store=None, ask=None):
        """The cluster's answer, or None where the question has none."""
        far = (ask or cluster.ask)(thread, *options)
        near = self.local(traces, store or cluster.store, thread, *options)
        notes = "".join(line for line in near.message.splitlines(True) if "polls" not in line and "polling" not in line)
        self.assertEqual((far.code, far.message), (near.code, notes), f"{far}\n{near}")
        if near.code:
            return None
        far, near = json.loads(far.out), json.loads(near.out)
        self.assertEqual((far["method"], near["method"]), ("index", "local"))
        self.assertEqual(bare(far), bare(near), f"{thread} {options}")
        return far

    def check_cost(self, answer, holders, part=False):
        """Checks that nodes without a part in the answer are not queried. holders: {host: names of its nodes}. With
        `part` others may be queried, where the walk checks how far back the explanation of a wait goes."""
        cost, told = answer["cost"], holders if part else hosts_in(answer)
        asked = set(cost["nodes"])
        self.assertEqual(len(asked), len(cost["nodes"]), cost)
        self.assertLessEqual(asked, {node for host in told for node in holders[host]}, answer)
        self.assertLessEqual(cost["messages"], 2 * len(asked) * cost["rounds"], cost)
        self.assertGreater(cost["rounds"], 0)

    def questions(self, recording, store, n):
        """Threads that the recording names, and any others, over their lives and parts of them."""
        rows = self.json("threads", recording, "--store", store, "--all")
        life = {(r["host"], r["tid"]): r for r in rows if r["tid"] > 0}
        hosts = {host for host, _ in life}
        truth = os.path.join(recording, "ground-truth.json")
        told = named_threads(load(truth), hosts) if os.path.exists(truth) else ()
        told = sorted({(h, tid) for host, tid in told for h in ([host] if host else hosts)} & set(life))
        chosen = DICE.sample(told, min(n // 2, len(told)))
        chosen += DICE.sample(sorted(life), min(n - len(chosen), len(life)))
        for host, tid in chosen:
            row, options = life[host, tid], []
            if DICE.random() < 0.6:
                begin, end = sorted(row["begin"] + DICE.randint(0, row["life"]) for _ in range(2))
                options += ["--begin", begin, "--end", max(end, begin + 1)]
            options += DICE.choice((["--reference", DICE.choice(sorted(hosts))], [], []))
            options += DICE.choice((["--polling", "assume"], ["--no-early-return"], ["--request"], ["--no-sync"], [],
                                    []))
            if "--no-sync" in options and "--reference" in options:
                options.remove("--no-sync")
            yield f"{host}:{tid}" if DICE.random() < 0.9 else str(tid), options


class EachRecording:
    """Tests of all recordings of several machines: each by `recorded`."""

    def test_three_tier(self):
        self.recorded("three-tier")

    def test_three_tier_disk(self):
        self.recorded("three-tier-disk")

    def test_bsp(self):
        self.recorded("bsp")

    def test_scp_net(self):
        self.recorded("scp-net")

    def test_mpi(self):
        self.recorded("mpi")

    def test_clocks(self):
        self.recorded("clocks")

    def test_vm(self):
        self.recorded("vm")


class Recorded(EachRecording, Compared):
    """Recordings of several machines, with a node for each machine."""

    def recorded(self, name, fewest=3):
        recording = scenario(name)
        hosts = hosts_of(recording)
        with Cluster({f"node-of-{h}": [path] for h, path in hosts.items()}) as cluster:
            answers = 0
            for thread, options in self.questions(recording, cluster.store, MOST_QUESTIONS):
                with self.subTest(thread=thread, options=options):
                    answer = self.same(cluster, [recording], thread, *options)
                    if answer:
                        answers += 1
                        self.check_cost(answer, {h: [f"node-of-{h}"] for h in hosts},
                                        bool({"--begin", "--request"} & set(options)))
            self.assertGreaterEqual(answers, fewest)

    def test_peers_that_were_not_traced(self):
        """Peers that were not traced: messages from an unowned address may be anyone's, behind a router; but no node
        that did not send is queried."""
        for name, thread, gone in (("scp-net", "n1", "n2"), ("mpi", "n1", "n3"), ("bsp", "n2", "n1")):
            recording = scenario(name)
            hosts = {h: path for h, path in hosts_of(recording).items() if h != gone}
            strangers = 0
            with Cluster({h: [path] for h, path in hosts.items()}) as cluster:
                rows = self.json("threads", *hosts.values(), "--store", cluster.store, "--host", thread,
                                 "--sort", "network", "--limit", 12)
                for tid in sorted({r["tid"] for r in rows if r["tid"] > 0}):
                    answer = self.same(cluster, list(hosts.values()), f"{thread}:{tid}")
                    self.check_cost(answer, {h: [h] for h in hosts})
                    strangers += any(u["reason"] == "untraced-peer" for u in answer["unexplained"])
            self.assertGreater(strangers, 0, name)

    def test_an_answer_out_of_an_interrupt(self):
        """The sender's row is a CPU's, and its causes are queried once the explanation reaches further back."""
        recording = scenario("vm")
        with Cluster({h: [path] for h, path in hosts_of(recording).items()}) as cluster:
            for row in self.json("threads", recording, "--store", cluster.store):
                if row["host"] == "vmhost":
                    self.same(cluster, [recording], f"vmhost:{row['tid']}")

    def test_the_example(self):
        """Requests of the example, as the client saw them, on each machine's clock."""
        recording = example("three-tier")
        hosts = hosts_of(recording)
        truth, log = load(recording, "true-sync.json"), load(recording, "ground-truth.json")["log"]["client"]
        offset = truth["to_host_tsc_ns"]["client"]["metadata_clock_offset_ns"]
        with Cluster({h: [path] for h, path in hosts.items()}) as cluster:
            for c in log:
                answer = self.same(cluster, [recording], f"client:{c['tid']}", "--reference", "client",
                                   "--begin", c["t_send"] + offset, "--end", c["t_recv"] + offset)
                self.check_cost(answer, {h: [h] for h in hosts})
                asked = {"client", "web", "db"} - ({"db"} if c["id"] == 6 else set())
                self.assertEqual(set(answer["cost"]["nodes"]), asked, f"request {c['id']}")

    def test_two_paths_beside_each_other(self):
        top = example("three-tier")
        with Cluster({h: [path] for h, path in hosts_of(top).items()}) as cluster:
            options = ("--end", 1795225078 * 10**9, "--compare", "web:196,1795225078000000000,")
            far, near = cluster.ask("client:204", *options), self.local([top], cluster.store, "client:204", *options)
            self.assertEqual((far.code, near.code), (0, 0), far)
            far, near = json.loads(far.out), json.loads(near.out)
            for side in ("a", "b"):
                self.assertEqual(bare(far.pop(side)), bare(near.pop(side)))
            self.assertEqual(far, near)

    def test_machines_without_threads(self):
        """Ten machines beside the three: their clocks are part of what there is, and the span of times."""
        few, many = example("three-tier"), example("ten-machines")
        hosts = {**hosts_of(few), **hosts_of(many)}
        self.assertEqual(len(hosts), 13)
        with Cluster({h: [path] for h, path in hosts.items()}) as cluster:
            for options in ([], ["--begin", "+1ms"], ["--reference", "n7"], ["--reference", "client"],
                            ["--begin", "+400ms", "--reference", "n3"]):
                for thread in ("client:204", "web:171", "n3:1", "204"):
                    self.same(cluster, [few, many], thread, *options)


class Placed(Compared):
    """Answers do not depend on the place of the traces."""

    def ask_some(self, cluster, recording, holders, n=MOST_QUESTIONS // 2):
        answers = 0
        for thread, options in self.questions(recording, cluster.store, n):
            with self.subTest(thread=thread, options=options):
                answer = self.same(cluster, [recording], thread, *options)
                if answer:
                    self.check_cost(answer, holders, bool({"--begin", "--request"} & set(options)))
                    answers += 1
        self.assertGreater(answers, 0)

    def test_two_nodes_of_two_hosts(self):
        recording = scenario("bsp")
        h = hosts_of(recording)
        with Cluster({"a": [h["n1"], h["n3"]], "b": [h["n4"], h["n2"]]}) as cluster:
            self.ask_some(cluster, recording, {"n1": ["a"], "n3": ["a"], "n2": ["b"], "n4": ["b"]})

    def test_one_node_of_all(self):
        recording = scenario("bsp")
        with Cluster({"all": [recording]}) as cluster:
            self.ask_some(cluster, recording, {h: ["all"] for h in hosts_of(recording)})

    def test_names_that_are_no_subjects(self):
        recording = scenario("three-tier")
        h = hosts_of(recording)
        names = {"web": "web 1.example/ü*>", "client": ".", "db": "x" * 60}
        with Cluster({names[host]: [path] for host, path in h.items()}) as cluster:
            self.ask_some(cluster, recording, {host: [name] for host, name in names.items()}, 4)

    def test_copies(self):
        """Copies of each host on two nodes: any one node may be killed, and nothing is missing."""
        recording = scenario("bsp")
        h = hosts_of(recording)
        places = {"a": ["n1", "n2"], "b": ["n2", "n3"], "c": ["n3", "n4"], "d": ["n4", "n1"]}
        holders = {host: [n for n, held in places.items() if host in held] for host in h}
        with Cluster({n: [h[host] for host in held] for n, held in places.items()}) as cluster:
            self.ask_some(cluster, recording, holders, 6)
            for name in places:
                cluster.nodes[name].kill()
                for host in h:
                    for tid in self.some_threads(recording, cluster.store, host):
                        self.same(cluster, [recording], f"{host}:{tid}")
                cluster.nodes[name].start()
                cluster.settle()

    def some_threads(self, recording, store, host, n=2):
        rows = self.json("threads", recording, "--store", store)
        return [r["tid"] for r in rows if r["host"] == host and r["comm"] == "bsp"][:n]

    def test_two_clusters_on_one_broker(self):
        """Two clusters on one broker are independent."""
        recording, others = scenario("three-tier"), scenario("bsp")
        with Cluster({host: [path] for host, path in hosts_of(recording).items()}) as cluster:
            other = Node(cluster.broker.url, "web", others, store=cluster.store, cluster="another")
            try:
                wait_for("the other cluster has a card", lambda: cluster.broker.table("weft_another_nodes"))
                self.ask_some(cluster, recording, {h: [h] for h in hosts_of(recording)}, 4)
                self.assertIn("no such thread", cluster.ask("n1:210").message)
                wait_for("the other cluster answers",
                         lambda: cluster.ask("n1:210", "--cluster-name", "another").code == 0)
            finally:
                other.leave()


class Verbs(Compared):
    """Further queries of a cluster."""

    def test_the_same_as_of_traces(self):
        recording, store = scenario("three-tier"), scratch()
        with Cluster({h: [path] for h, path in hosts_of(recording).items()}, store=store) as cluster:
            asked = ("--cluster", cluster.broker.url)
            for verb in (("threads",), ("threads", "--host", "web", "--sort", "network", "--all"), ("sync",),
                         ("sync", "--reference", "db"), ("threads", "--thread", "tier")):
                for form in ("json", "csv", "table"):
                    far = self.ok(*verb, *asked, "--format", form)
                    near = self.ok(*verb, recording, "--store", store, "--format", form)
                    self.assertEqual((far.text, far.message), (near.text, near.message), f"{verb} {form}")
            self.broadcast(cluster, recording)
            self.refine(cluster)
            cluster.nodes["web"].kill()
            part = self.partly("threads", *asked, "--format", "json", "--timeout", "2s")
            self.assertEqual({r["host"] for r in json.loads(part.out)}, {"client", "db"})
            self.assertIn("node web: ", part.message)

    def broadcast(self, cluster, recording):
        """Checks that all nodes answer a broadcast, with the same result."""
        few, all_nodes = (json.loads(cluster.ask("client:1", *how).out) for how in ((), ("--method", "broadcast")))
        self.assertEqual(bare(few), bare(all_nodes))
        few, all_nodes = (json.loads(cluster.ask("client:204", *how).out) for how in ((), ("--method", "broadcast")))
        self.assertEqual(bare(few), bare(all_nodes))
        self.assertEqual(set(all_nodes["cost"]["nodes"]), set(hosts_of(recording)))
        self.assertGreater(all_nodes["cost"]["bytes"], few["cost"]["bytes"])
        self.assertGreater(all_nodes["cost"]["messages"], few["cost"]["messages"])

    def refine(self, cluster):
        """Checks that each round adds knowledge, and the last one completes it."""
        lines = cluster.ask("client:204", "--refine").text.splitlines()
        paths = [json.loads(line) for line in lines]
        self.assertEqual(bare(paths[-1]), bare(json.loads(cluster.ask("client:204").out)))
        self.assertEqual(len(paths), paths[-1]["cost"]["rounds"])
        pending = [sum(g["end"] - g["begin"] for g in p["unexplained"] if g["reason"] == "pending") for p in paths]
        self.assertEqual(pending[-1], 0)
        self.assertGreater(pending[0], 0)
        for p in paths:
            self.assertEqual(sum(t["duration"] for t in p["totals"]), p["query"]["end"] - p["query"]["begin"])


# Seconds that each clock is behind, as the founding experiment's table has them; and drifts of less than 1 ppm, of
# which it shows only that.
FOUNDING = [(2.551684, 0.2), (1.547687, -0.3), (0, 0), (0.574083, 0.4), (8.693471, -0.1), (5.586227, 0.3),
            (6.626211, -0.2), (7.674116, 0.1), (4.577534, 0.45), (3.585022, -0.45)]
FOUNDING_LATEST_S = 9


class Clocks(Compared):
    """Ten machines with clocks of their own, a node each, as the project's founding experiment had them."""

    def maps(self, cluster, traces, reference):
        """{host: Map}, the same as all traces in one place give."""
        far = self.ok("sync", "--cluster", cluster.broker.url, "--reference", reference, "--format", "json")
        near = self.ok("sync", *traces, "--reference", reference, "--format", "json", "--store", cluster.store)
        self.assertEqual(far.text, near.text)
        return {h["host"]: Map(h) for h in json.loads(far.out)["hosts"]}

    def test_recorded(self):
        recording = example("ten-machines")
        hosts, truth = hosts_of(recording), Truth(recording)
        with Cluster({h: [path] for h, path in hosts.items()}) as cluster:
            for reference in DICE.sample(sorted(hosts), 3):
                maps = self.maps(cluster, [recording], reference)
                self.assertEqual(sorted(maps), sorted(hosts))
                for host, m in maps.items():
                    for p in m.pieces:
                        for t in range(p["begin"], p["end"], (p["end"] - p["begin"]) // 8 + 1):
                            true = truth.convert(host, reference, t)
                            self.assertLessEqual(abs(m.to_reference(t) - true), m.error_ns(t) + 1, (host, reference))

    def test_made(self):
        """Node n is n ms ahead and 3 n ppm too fast: that is the table of offsets and drifts."""
        made = patterns.make("mpi", 10, "mix=random", "rounds=100", "history=0")
        with Cluster({h.name: [os.path.join(made.folder, h.name)] for h in made.hosts}) as cluster:
            maps = self.maps(cluster, [made.folder], made.hosts[0].name)
            for h in made.hosts:
                m = maps[h.name]
                for p in m.pieces:
                    drift_off = abs(Fraction(p["drift"]) * (1 + Fraction(h.drift_ppm) / 10**6) - 1)
                    self.assertLessEqual(drift_off * (p["end"] - p["begin"]), p["error_ns_begin"] + p["error_ns_end"])
                    for t in (p["begin"], (p["begin"] + p["end"]) // 2, p["end"]):
                        true = (t - patterns.START_NS - h.offset_ns) / (1 + Fraction(h.drift_ppm) / 10**6)
                        off = abs(m.to_reference(t) - patterns.START_NS - true)
                        self.assertLessEqual(off, m.error_ns(t) + 2, h.name)
                        self.assertLess(m.error_ns(t), 100000)

    def test_founding(self):
        """Ten machines that send each other pings, with the clocks of the founding experiment: its table of offsets and
        drifts comes out, and then no pong is before its ping; without, most are."""
        clocks = ",".join(f"{round((FOUNDING_LATEST_S - s) * 1e9)}:{ppm}" for s, ppm in FOUNDING)
        made = patterns.make("pingpong", 10, "rounds=100", "pause=4000", "history=0", f"clocks={clocks}")
        reference = made.hosts[FOUNDING.index((0, 0))].name
        with Cluster({h.name: [os.path.join(made.folder, h.name)] for h in made.hosts}) as cluster:
            maps = self.maps(cluster, [made.folder], reference)
            for h, (offset_s, ppm) in zip(made.hosts, FOUNDING):
                m = maps[h.name]
                begin = m.pieces[0]["begin"]
                offset_ns, error_ns = m.to_reference(begin) - begin, m.error_ns(begin)
                self.assertLessEqual(abs(offset_ns - offset_s * 1e9), error_ns + 10000 * abs(ppm), h.name)
                self.assertLess(error_ns, 50000)
                drift = 1 / (1 + Fraction(ppm) / 10**6)
                self.assertLess(abs(Fraction(m.pieces[0]["drift"]) - drift), Fraction(5, 10**7), h.name)
            early = {clock: self.early(cluster, made, *options) for clock, options in
                     (("one", ("--sync", "--reference", reference)), ("own", ()))}
        self.assertEqual(early["one"], 0)
        self.assertGreater(early["own"], 1000)

    def early(self, cluster, made, *options):
        """Returns the number of packets received before they were sent."""
        sent, early = {}, 0
        run = self.ok("events", made.folder, "--store", cluster.store, "--format", "json", "--names",
                      "net_dev_queue,net_if_receive_skb", *options)
        events = [json.loads(line) for line in run.text.splitlines()]
        for e in sorted(events, key=lambda e: e["name"]):  # sends first
            header = e["fields"]["network_header"]["ipv4"]
            key = json.dumps([header["saddr"], header["daddr"], header["transport_header"]])
            if e["name"] == "net_dev_queue":
                sent.setdefault(key, e["ts"])
            else:
                early += e["ts"] < sent[key]
        return early


class Made(Compared, test_worlds.Worlds):
    """Worlds of which all is known, and no clocks need to be found."""

    questions = test_worlds.Worlds.questions
    test_clocks = test_lost_events = None  # tests without cluster queries

    def compare(self, number, folder, world, questions):
        if number:
            return  # single one of each kind
        oracle, store = Oracle(), folder + ".stores"
        with Cluster({name: [path] for name, path in hosts_of(folder).items()}, store=store) as cluster:
            for thread, begin, end in self.questions(world, max(questions, MOST_QUESTIONS // 2)):
                with self.subTest(boot=world.boot, thread=str(thread), begin=begin, end=end):
                    answer = self.same(cluster, [folder], f"{thread.host.name}:{thread.tid}", "--begin",
                                       START_NS + begin, "--end", START_NS + end, "--no-sync", "-q")
                    self.assertEqual(self.rows(answer), oracle.path(thread, begin, end))

    def ask_of_namesakes(self, world, questions):
        """Checks that only nodes with a part are queried. questions: (thread, begin, end, names of those with a part,
        each a node)."""
        folder, oracle = self.write(world), Oracle()
        with Cluster({name: [path] for name, path in hosts_of(folder).items()}) as cluster:
            for thread, begin, end, parts in questions:
                answer = self.same(cluster, [folder], str(thread), "--begin", START_NS + begin, "--end",
                                   START_NS + end, "--no-sync", "-q")
                self.assertEqual(self.rows(answer), oracle.path(thread, begin, end))
                self.assertEqual(set(answer["cost"]["nodes"]), parts, thread)

    @staticmethod
    def connect(world, number, client, server, protocol=TCP):
        """Numbers of bytes that no other connection has: a router might have made one's out of the other's."""
        ours, theirs = world.connect(client, server, protocol)
        ours.seq = theirs.next = number << 26
        theirs.seq = ours.next = (number << 26) + (1 << 25)
        return ours, theirs

    @staticmethod
    def between(thread, first, last):
        """Returns what is known of the thread from its interval number `first` to number `last`."""
        return thread.intervals[first].begin, thread.intervals[last].begin

    def test_an_address_of_two_machines(self):
        """Address of two machines in two private networks: the sender of the bytes is queried, and not its namesake."""
        world = World(new_dice(12), 4)
        one, asker, other, other_asker = world.hosts
        one.address = other.address = (192, 168, 0, 7)
        pairs = itertools.product(((one, asker), (other, other_asker)), (TCP, UDP))
        for number, ((server, client), protocol) in enumerate(pairs, 1):
            ours, theirs = self.connect(world, number, client, server, protocol)
            world.spawn(server, "server", test_worlds.server(world.dice, theirs, []))
            world.spawn(client, "client", test_worlds.client(world.dice, [ours]))
        world.run(world.now + test_worlds.LENGTH_NS)
        self.ask_of_namesakes(world, [(thread, *self.between(thread, 1, -1), {server.name, client.name})
                                      for server, client in ((one, asker), (other, other_asker))
                                      for thread in client.threads])

    def test_an_address_that_changes_hands(self):
        """Address that changes from one machine to another: each is queried about its own time."""
        world = World(new_dice(13), 3)
        first, asker, second = world.hosts
        first.address = second.address = (192, 168, 0, 7)
        before, after = [self.connect(world, i, asker, server) for i, server in ((1, first), (2, second))]
        for _, theirs in before, after:
            world.spawn(theirs.host, "server", test_worlds.server(world.dice, theirs, []))
        thread = world.spawn(asker, "client", itertools.chain(
            itertools.islice(test_worlds.client(world.dice, before[:1]), 60), [("sleep", 5000000)],
            test_worlds.client(world.dice, after[:1])))
        world.run(world.now + 4 * test_worlds.LENGTH_NS)
        handed = max(range(len(thread.intervals)), key=lambda i: (thread.intervals[i].cause == ("end", "timer"),
                     (thread.intervals[i].end or 0) - thread.intervals[i].begin))
        self.ask_of_namesakes(world, [(thread, *self.between(thread, 1, handed), {first.name, asker.name}),
                                      (thread, *self.between(thread, handed + 1, -1), {second.name, asker.name})])

    def test_twenty_machines(self):
        """Twenty machines, each with a server that calls the next one's, and a client."""
        world = World(new_dice(8), 20)
        ends = []
        for i, host in enumerate(world.hosts):
            ours, theirs = world.connect(host, world.hosts[(i + 1) % 20], TCP)
            ends.append((ours, theirs))
        for i, (_, theirs) in enumerate(ends):
            below = [ends[i + 1][0]] if i % 5 and i + 1 < 20 else []
            world.spawn(theirs.host, "server", test_worlds.server(world.dice, theirs, below))
        for i, (ours, _) in enumerate(ends):
            if not (i and (i - 1) % 5):
                world.spawn(ours.host, "client", test_worlds.client(world.dice, [ours]))
        world.run(world.now + test_worlds.LENGTH_NS)
        self.compare(0, self.write(world), world, MOST_QUESTIONS)


if __name__ == "__main__":
    main()
