"""`weft critpath --cluster`: nodes that have a host each, several, or copies of one, say together what one program with
all their traces says; only who has a piece of the path is asked."""
import json
import os
import subprocess
import tarfile
import threading

import test_worlds
from cluster_of import Cluster, Node, wait_for
from test_cuts import tool
from weft_e2e import ROOT, SLOWDOWN, Case, load, main, new_dice, scenario, scratch, weft
from world import TCP, World
from world_path import Oracle
from world_trace import START_NS

DICE = new_dice(41)
MOST_QUESTIONS = max(8, 40 // SLOWDOWN)


def example(name):
    """Of examples/, unpacked."""
    directory = scratch()
    with tarfile.open(os.path.join(ROOT, "examples", name + ".tar.xz")) as tar:
        tar.extractall(directory)
    return os.path.join(directory, name)


def hosts_of(recording):
    """{name: directory}"""
    return {name: os.path.join(recording, name) for name in sorted(os.listdir(recording))
            if os.path.isdir(os.path.join(recording, name))}


def named_threads(said, hosts, host=None):
    """(host or None, number) of the threads that a ground truth names, however it is laid out."""
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
    """Those that the answer tells of: whose path it is, where it is, where links come from, and who is missing."""
    found = {answer["query"]["host"]} | {s["host"] for s in answer["segments"]}
    found |= {link[side]["host"] for link in answer["links"] for side in ("from", "to")}
    return found | {u["peer"].split(" (")[0] for u in answer["unexplained"] if u["reason"] == "offline-node"}


class Compared(Case):
    """What a cluster says, and what one program with the traces says."""

    def local(self, traces, store, thread, *options):
        return weft("critpath", *traces, "--store", store, "--thread", thread, "--format", "json", *options)

    def same(self, cluster, traces, thread, *options, store=None):
        """The cluster's answer, or None where the question has none."""
        far = cluster.ask(thread, *options)
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
        """holders: {host: names of its nodes}. For a whole life nobody is asked whose hosts have no part in the answer;
        the way to a part of it may lead over others, before its begin."""
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
            options += DICE.choice((["--polling", "assume"], ["--no-early-return"], ["--no-sync"], [], [], []))
            if "--no-sync" in options and "--reference" in options:
                options.remove("--no-sync")
            yield f"{host}:{tid}" if DICE.random() < 0.9 else str(tid), options


class Recorded(Compared):
    """Each recording of several machines, a node a machine."""

    def one_node_a_host(self, name, fewest=3):
        recording = scenario(name)
        hosts = hosts_of(recording)
        with Cluster({f"node-of-{h}": [path] for h, path in hosts.items()}) as cluster:
            answers = 0
            for thread, options in self.questions(recording, cluster.store, MOST_QUESTIONS):
                with self.subTest(thread=thread, options=options):
                    answer = self.same(cluster, [recording], thread, *options)
                    if answer:
                        answers += 1
                        self.check_cost(answer, {h: [f"node-of-{h}"] for h in hosts}, "--begin" in options)
            self.assertGreaterEqual(answers, fewest)

    def test_three_tier(self):
        self.one_node_a_host("three-tier")

    def test_three_tier_disk(self):
        self.one_node_a_host("three-tier-disk")

    def test_bsp(self):
        self.one_node_a_host("bsp")

    def test_scp_net(self):
        self.one_node_a_host("scp-net")

    def test_mpi(self):
        self.one_node_a_host("mpi")

    def test_clocks(self):
        self.one_node_a_host("clocks")

    def test_vm(self):
        self.one_node_a_host("vm")

    def test_the_example(self):
        """Every request of it, as the client saw it, on each machine's clock."""
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
    """Where the traces lie makes no difference."""

    def ask_some(self, cluster, recording, holders, n=MOST_QUESTIONS // 2):
        answers = 0
        for thread, options in self.questions(recording, cluster.store, n):
            with self.subTest(thread=thread, options=options):
                answer = self.same(cluster, [recording], thread, *options)
                if answer:
                    self.check_cost(answer, holders, "--begin" in options)
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
        """Each host on two nodes: any one node may be killed, and nothing is missing."""
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
        """They know nothing of each other."""
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
    """The other things that a cluster is asked."""

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
        """All nodes are asked, and say the same."""
        few, all_nodes = (json.loads(cluster.ask("client:1", *how).out) for how in ((), ("--method", "broadcast")))
        self.assertEqual(bare(few), bare(all_nodes))
        few, all_nodes = (json.loads(cluster.ask("client:204", *how).out) for how in ((), ("--method", "broadcast")))
        self.assertEqual(bare(few), bare(all_nodes))
        self.assertEqual(set(all_nodes["cost"]["nodes"]), set(hosts_of(recording)))
        self.assertGreater(all_nodes["cost"]["bytes"], few["cost"]["bytes"])
        self.assertGreater(all_nodes["cost"]["messages"], few["cost"]["messages"])

    def refine(self, cluster):
        """Each round knows more, and the last all."""
        lines = cluster.ask("client:204", "--refine").text.splitlines()
        paths = [json.loads(line) for line in lines]
        self.assertEqual(bare(paths[-1]), bare(json.loads(cluster.ask("client:204").out)))
        self.assertEqual(len(paths), paths[-1]["cost"]["rounds"])
        pending = [sum(g["end"] - g["begin"] for g in p["unexplained"] if g["reason"] == "pending") for p in paths]
        self.assertEqual(pending[-1], 0)
        self.assertGreater(pending[0], 0)
        for p in paths:
            self.assertEqual(sum(t["duration"] for t in p["totals"]), p["query"]["end"] - p["query"]["begin"])


class Made(Compared, test_worlds.Worlds):
    """Worlds of which all is known, and no clocks need to be found."""

    questions = test_worlds.Worlds.questions
    test_clocks = test_lost_events = None  # these ask no cluster

    def compare(self, number, folder, world, questions):
        if number:
            return  # one of each kind
        oracle, store = Oracle(), folder + ".stores"
        with Cluster({name: [path] for name, path in hosts_of(folder).items()}, store=store) as cluster:
            for thread, begin, end in self.questions(world, max(questions, MOST_QUESTIONS // 2)):
                with self.subTest(boot=world.boot, thread=str(thread), begin=begin, end=end):
                    answer = self.same(cluster, [folder], f"{thread.host.name}:{thread.tid}", "--begin",
                                       START_NS + begin, "--end", START_NS + end, "--no-sync", "-q")
                    self.assertEqual(self.rows(answer), oracle.path(thread, begin, end))

    def test_twenty_machines(self):
        """Each with a server that asks the next one's, and a client."""
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


class Growing(Compared):
    """Archives that arrive while somebody asks."""

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
            finally:
                stop.set()
                asker.join()
            self.assertEqual(wrong, [])
            self.assertIn(0, asked)
            whole = self.local([recording], scratch(), "client:204")
            self.assertEqual(bare(json.loads(cluster.ask("client:204").out)), bare(json.loads(whole.out)))


if __name__ == "__main__":
    main()
