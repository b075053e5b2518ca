# SPDX-License-Identifier: MIT
"""`weft index --cluster`: nodes index traces on common storage, each once, and keep them open: a node that leaves is
replaced by the others, one that comes back has its share again, and clients notice nothing."""
import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
import time

import small_trace
from cluster_of import Cluster, Node, wait_for
from growing_session import PERIOD, Session
from test_cluster import Compared, bare
from weft_e2e import BIN, SLOWDOWN, main, need, new_dice, scenario, scratch, weft

DICE = new_dice(43)
THREAD = "client:204"
HOSTS = ("client", "db", "web")
TABLE, QUEUE = "weft_weft_shared", "WEFT_QUEUE_weft_weft_work"


def copy_without_stores(name, into):
    return shutil.copytree(scenario(name), into, ignore=shutil.ignore_patterns(".weft"))


def wire_string(text):
    data, n, out = text.encode(), len(text.encode()), b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n]) + data


class Entry:
    """Table entry of a trace: version, path, state, flags, a number, node, text, …"""
    WAITING, BUILT, CURRENT, PARTLY, FAILED = range(5)

    def __init__(self, data):
        n, at = data[1], 2
        if n > 127:
            n, at = n & 127 | data[2] << 7, 3
        self.path, self.state, self.shared = data[at:at + n].decode(), data[at + n], bool(data[at + n + 1] & 1)


def waiting(path):
    return b"\1" + wire_string(path) + b"\0\0\0" + wire_string("") + wire_string("") + b"\0\0"


class Shared(Compared):
    NODES = "abc"

    def setUp(self):
        self.top = os.path.realpath(scratch())
        self.cluster = Cluster({})
        self.addCleanup(self.cluster.stop)
        self.broker = self.cluster.broker
        for name in self.NODES:
            self.add(name)
        self.up(self.NODES)

    def add(self, name, *traces):
        return self.cluster.add(name, *traces, store=None, share=self.top)

    def up(self, names):
        wait_for("nodes are there", lambda: set(names) <= set(self.cluster.cards()))

    def kill(self, name):
        self.cluster.nodes[name].kill()

    def index(self, *paths, **how):
        how.setdefault("timeout", 60)
        return weft("index", "--cluster", self.broker.url, "--share", self.top, "--format", "json", *paths, **how)

    def begin(self, *paths):
        """Starts it without waiting."""
        process = subprocess.Popen([BIN, "index", "--cluster", self.broker.url, "--share", self.top, "--format", "json",
                                    *paths], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        return process

    def end(self, process):
        """Exit status, rows, stderr."""
        out, err = process.communicate(timeout=60 * SLOWDOWN)
        return process.returncode, json.loads(out or b"[]"), err.decode()

    def indexed(self, run, **done):
        """Rows of a run that went well; done: {word: how many}."""
        self.assertEqual(run.code, 0, run)
        rows = json.loads(run.out)
        for word, n in done.items():
            self.assertEqual(sum(r["done"] == word.replace("_", " ") for r in rows), n, rows)
        return rows

    def hosts(self):
        """{node: how many hosts its card has}, of nodes that run"""
        return {name: card.hosts for name, card in self.cluster.cards().items()
                if self.cluster.nodes[name].process.poll() is None}

    def shared_out(self, n):
        """Waits until each of n hosts is with one node that runs."""
        wait_for(f"{n} hosts are with one node each", lambda: sum(self.hosts().values()) == n)
        return self.hosts()

    def entries(self):
        return {e.path: e for e in map(Entry, self.broker.table(TABLE).values())}

    def taken(self):
        return self.broker.ask(f"$JS.API.CONSUMER.INFO.{QUEUE}.workers").get("num_ack_pending", 0)

    def small(self, path, name, number=None):
        """A small trace of a machine of that name."""
        text = small_trace.METADATA.replace('"small"', f'"{name}"')
        text = text.replace("name = monotonic;", 'name = monotonic; uuid = "%s";' % self.uuid(name))
        small_trace.write(os.path.join(self.top, path), metadata=text)

    def uuid(self, name):
        h = hashlib.md5(name.encode()).hexdigest()
        return "-".join((h[:8], h[8:12], h[12:16], h[16:20], h[20:]))

    def large(self, path, events=3000000):
        make = need(os.path.abspath(os.environ["WEFT_MAKE_TRACE"]))
        subprocess.run([make, os.path.join(self.top, path), str(events * (1 if SLOWDOWN == 1 else 0.1)).split(".")[0]],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Once(Shared):
    def test_each_once_then_shared_out(self):
        recording = copy_without_stores("three-tier", os.path.join(self.top, "run"))
        rows = self.indexed(self.index(recording, recording, os.path.join(recording, "web")), built=3)
        self.assertEqual(sorted(r["trace"] for r in rows), [f"run/{h}" for h in HOSTS])
        self.assertLessEqual({r["node"] for r in rows}, set(self.NODES))
        self.assertTrue(all(r["events"] > 0 and r["problem"] is None for r in rows), rows)
        self.shared_out(3)
        self.assertEqual({e.state for e in self.entries().values()}, {Entry.BUILT})
        self.cluster.settle(*(n for n, hosts in self.hosts().items() if not hosts))
        self.same(self.cluster, [recording], THREAD, store=scratch())
        self.indexed(self.index(), up_to_date=3)
        self.indexed(self.index("--force", os.path.join(recording, "db")), built=1)
        self.same(self.cluster, [recording], THREAD, store=scratch())
        run = weft("index", "--cluster", self.broker.url, "--share", self.top, "--forget", recording)
        self.assertEqual(run.code, 0, run)
        self.assertIn("3 traces are closed on the nodes", run.message)
        self.shared_out(0)
        self.assertEqual(self.entries(), {})

    def test_beside_traces_of_its_own(self):
        """A node's own traces stay its own; what it shares comes and goes."""
        recording = copy_without_stores("three-tier", os.path.join(self.top, "run"))
        self.add("d", scenario("bsp"))
        self.cluster.settle("a", "b", "c")
        own = self.hosts()["d"]
        self.indexed(self.index(), built=3)
        self.shared_out(3 + own)
        self.same(self.cluster, [recording, scenario("bsp")], THREAD, store=scratch())

    def test_a_thousand(self):
        n = 1000 if SLOWDOWN == 1 else 60
        for i in range(n):
            self.small(f"{i % 7}/{i}", f"m{i}")
        rows = self.indexed(self.index(timeout=300), built=n)
        self.assertEqual(len({r["trace"] for r in rows}), n)
        self.assertEqual({r["node"] for r in rows}, set(self.NODES))
        for hosts in self.shared_out(n).values():
            self.assertGreater(hosts, n / 6)
        self.kill("a")
        self.shared_out(n)

    def test_who_else_indexes(self):
        """Somebody with the storage at hand builds the same stores at the same time."""
        recording = copy_without_stores("three-tier", os.path.join(self.top, "run"))
        for _ in range(3):
            process = self.begin("--force")
            run = weft("index", recording, "--force")
            code, rows, err = self.end(process)
            self.assertEqual((run.code, code, len(rows)), (0, 0, 3), f"{run} {err}")
        self.assertEqual(weft("verify", recording).code, 0)

    def test_it_grows(self):
        session = Session.__new__(Session)
        session.top, session.aside, session.made = os.path.join(self.top, "session"), scratch(), 0
        os.makedirs(os.path.join(session.top, "archives"))
        session.move_in()
        self.indexed(self.index(session.top), built=1)
        session.move_in()
        self.indexed(self.index(session.top), built=1)
        self.assertEqual(set(self.entries()), {"session"}, "named by more than its first archive")
        self.shared_out(1)
        self.cluster.settle(*(n for n, hosts in self.hosts().items() if not hosts))
        for _ in range(3):
            session.move_in()
            wait_for("the answer is of all archives", lambda: self.life() > (session.made - 1) * PERIOD)
        self.indexed(self.index(), built=0)

    def life(self):
        run = self.cluster.ask("small:10", "--no-sync")
        return json.loads(run.out)["query"]["end"] - small_trace.OFFSET_NS if run.code == 0 else 0


class Gone(Shared):
    """Nodes that leave and return during queries."""

    def setUp(self):
        super().setUp()
        self.recording = copy_without_stores("three-tier", os.path.join(self.top, "run"))
        self.indexed(self.index(), built=3)
        self.shared_out(3)
        self.cluster.settle(*(n for n, hosts in self.hosts().items() if not hosts))
        self.full = json.loads(self.cluster.ask(THREAD).out)
        self.owner = next(name for name, hosts in self.hosts().items() if hosts)

    def ask_all_the_while(self, codes):
        """Asks until the test ends it by the function returned, which gives the codes that it saw."""
        stop, seen, wrong = threading.Event(), set(), []

        def ask():
            while not stop.is_set():
                run = self.cluster.ask(THREAD, "--reference", self.full["query"]["host"], "--timeout", "5s")
                seen.add(run.code)
                if run.code not in codes or (run.code == 0 and self.explained(run) != self.expected):
                    wrong.append(str(run))
        self.expected = self.explained(self.cluster.ask(THREAD, "--reference", self.full["query"]["host"]))
        asker = threading.Thread(target=ask)
        asker.start()

        def end():
            stop.set()
            asker.join()
            self.assertEqual(wrong, [])
            return seen
        return end

    def explained(self, run):
        return bare(json.loads(run.out))

    def test_killed_and_back(self):
        end = self.ask_all_the_while({0, 3})
        self.kill(self.owner)
        self.shared_out(3)
        self.cluster.nodes[self.owner].start()
        wait_for("it has its share again", lambda: self.hosts().get(self.owner) and sum(self.hosts().values()) == 3)
        self.assertIn(0, end())
        self.assertEqual(self.explained(self.cluster.ask(THREAD)), bare(self.full))

    def test_leaves_and_comes_back(self):
        """Node that leaves in order and returns: nothing is ever missing."""
        end = self.ask_all_the_while({0})
        self.assertEqual(self.cluster.nodes[self.owner].leave(), 0)
        self.shared_out(3)
        self.cluster.nodes[self.owner].start()
        wait_for("it has its share again", lambda: self.hosts().get(self.owner) and sum(self.hosts().values()) == 3)
        self.assertEqual(end(), {0})

    def test_all_but_one(self):
        rest = next(name for name in self.NODES if name != self.owner)
        for name in self.NODES:
            if name != rest:
                self.kill(name)
        self.assertEqual(self.shared_out(3), {rest: 3})
        self.assertEqual(self.cluster.nodes[rest].leave(), 0)
        self.cluster.nodes[rest].start()
        self.assertEqual(self.shared_out(3), {rest: 3})

    def test_broker_restarted(self):
        for keep in (True, False):
            self.broker.restart(keep)
            wait_for("the table is back", lambda: len(self.entries()) == 3)
            self.shared_out(3)
            wait_for("answers", lambda: self.cluster.ask(THREAD, "--timeout", "5s").code == 0)

    def test_a_trace_is_removed(self):
        os.rename(os.path.join(self.recording, "db"), os.path.join(scratch(), "db"))
        self.add("d")
        self.up("abcd")
        run = self.index()
        self.assertEqual((run.code, len(json.loads(run.out))), (0, 2), run)


class Work(Shared):
    """Changes while work is in progress, or waiting."""
    NODES = "a"

    def setUp(self):
        super().setUp()
        self.large("large")

    def begin_large(self):
        process = self.begin()
        wait_for("it is taken", self.taken)
        return process

    def test_worker_killed(self):
        process = self.begin_large()
        self.kill("a")
        self.add("b")
        code, rows, err = self.end(process)
        self.assertEqual((code, [(r["node"], r["done"]) for r in rows]), (0, [("b", "built")]), err)
        self.assertEqual(weft("verify", self.top).code, 0)

    def test_worker_leaves(self):
        """Work begun by a node that leaves is taken over at once."""
        process = self.begin_large()
        self.add("b")
        self.up("ab")
        self.assertEqual(self.cluster.nodes["a"].leave(), 0)
        code, rows, err = self.end(process)
        self.assertEqual((code, [r["node"] for r in rows]), (0, ["b"]), err)

    def waits(self):
        return any(e.state == Entry.WAITING for e in self.entries().values())

    def test_broker_restarted(self):
        """Restart of the broker between the entry and the item, or during work."""
        for keep, begun in ((True, self.waits), (True, self.taken), (False, self.taken)):
            wait_for("nothing is taken", lambda: not self.taken())
            process = self.begin("--force")
            wait_for("it is begun", begun)
            self.broker.restart(keep)
            code, rows, err = self.end(process)
            self.assertEqual((code, len(rows)), (0, 1), err)

    def test_asker_killed(self):
        process = self.begin_large()
        process.kill()
        process.wait()
        wait_for("it is done nevertheless", lambda: self.entries()["large"].state == Entry.BUILT)
        self.shared_out(1)
        self.indexed(self.index(), up_to_date=1)

    def test_asker_stopped(self):
        """Client stopped by ctrl-C: work not yet begun is withdrawn."""
        for i in range(20):
            self.small(f"small/{i}", f"m{i}")
        self.cluster.nodes["a"].freeze()
        process = self.begin()
        wait_for("all is asked for", lambda: len(self.entries()) == 21)
        process.send_signal(signal.SIGINT)
        code, _, err = self.end(process)
        self.assertEqual(code, 1, err)
        self.assertRegex(err, "stopped: 0 of 21 traces are indexed; the waiting ones are withdrawn")
        self.assertEqual(self.entries(), {})
        self.cluster.nodes["a"].thaw()
        wait_for("nothing waits", lambda: not self.broker.ask(f"$JS.API.STREAM.INFO.{QUEUE}")["state"]["messages"])
        self.assertEqual(self.hosts(), {"a": 0})
        self.assertFalse(os.path.exists(os.path.join(self.top, "small", "7", ".weft")))

    def test_nobody_there(self):
        self.assertEqual(self.cluster.nodes["a"].leave(), 0)
        run = self.index()
        self.assertEqual(run.code, 1, run)
        self.assertRegex(run.message, "no node of the cluster takes work: `weft serve .*--share DIR` starts one")
        self.assertEqual(self.entries(), {})

    def test_two_askers(self):
        askers = [self.begin() for _ in range(3)]
        for asker in askers:
            code, rows, err = self.end(asker)
            self.assertEqual((code, len(rows)), (0, 1), err)
        self.shared_out(1)


class Hostile(Shared):
    """Storage and bus that others write to."""
    NODES = "ab"

    def put(self, path, key=None, data=None):
        """An entry and an item for it, as anybody who may speak there could put them."""
        key = key or "f" * 32
        data = data if data is not None else waiting(path)
        for subject, what in ((f"$KV.{TABLE}.{key}", data), (f"weft.queue.weft_weft_work.{key}", b"x")):
            with self.broker.connect() as f:
                f.write(b"PUB %s %d\r\n%s\r\nPING\r\n" % (subject.encode(), len(what), what))
                f.flush()
                while f.readline().strip() != b"PONG":
                    pass

    def test_a_link_that_leads_out(self):
        """The trace itself, a file of it, and where its stores would be."""
        self.small("good", "good")
        self.small("linked-file", "linked")
        self.small("linked-store", "store")
        outside = scratch()
        small_trace.write(os.path.join(outside, "t"))
        os.remove(os.path.join(self.top, "linked-file", "ch_0"))
        os.symlink(os.path.join(outside, "t", "ch_0"), os.path.join(self.top, "linked-file", "ch_0"))
        os.symlink(outside, os.path.join(self.top, "linked-store", ".weft"))
        os.symlink(os.path.join(outside, "t"), os.path.join(self.top, "linked-trace"))
        run = self.index()
        rows = {r["trace"]: r["done"] for r in json.loads(run.out)}
        self.assertEqual((run.code, rows),
                         (3, {"good": "built", "linked-file": "failed", "linked-store": "failed"}), run)
        self.assertIn("a link leads there: it is left out", run.message)
        self.assertRegex(run.message, "linked-store, not indexed by node [ab]: .*a link that leads out of")
        self.assertIn("1 of 3 traces indexed, 2 failed", run.message)
        self.assertEqual(os.listdir(outside), ["t"])
        self.shared_out(1)

    def test_entries_that_make_no_sense(self):
        self.small("good", "good")
        outside = os.path.join(os.path.dirname(self.top), "outside")
        for path in ("../outside", "/etc", "a/../../x", "a//b", "", "./a", "a" * 2000):
            self.put(path)
            self.put(path, hashlib.md5(path.encode()).hexdigest())
        for _ in range(50):
            self.put("", "%032x" % DICE.getrandbits(128), data=DICE.randbytes(DICE.randint(0, 60)))
        self.indexed(self.index(), built=1)
        self.shared_out(1)
        wait_for("nothing waits", lambda: not self.broker.ask(f"$JS.API.STREAM.INFO.{QUEUE}")["state"]["messages"])
        self.assertFalse(os.path.exists(outside))
        for node in self.cluster.nodes.values():
            self.assertIsNone(node.process.poll(), node.errors)

    def test_what_cannot_be_indexed(self):
        """A trace that cannot be indexed is reported, and stops nothing else."""
        for i in range(5):
            self.small(f"good{i}", f"good{i}")
        self.small("bad", "bad")
        os.makedirs(os.path.join(self.top, "worse"))
        with open(os.path.join(self.top, "bad", "ch_0"), "wb") as f:
            f.write(os.urandom(5000))
        with open(os.path.join(self.top, "worse", "metadata"), "wb") as f:
            f.write(b"no metadata at all {")
        run = self.index()
        rows = {r["trace"]: r["done"] for r in json.loads(run.out)}
        self.assertEqual(run.code, 3, run)
        self.assertEqual({k: v for k, v in rows.items() if v == "built"}, {f"good{i}": "built" for i in range(5)}, run)
        self.assertIn("worse", run.message)
        self.assertIn("bad", run.message)
        shared = {path for path, e in self.entries().items() if e.shared}
        self.assertLessEqual({f"good{i}" for i in range(5)}, shared)
        self.shared_out(len(shared))

    def test_a_node_without_the_storage(self):
        """Node with an empty directory, as when it was not mounted: the other node does the work."""
        self.cluster.add("z", share=scratch(), store=None)
        self.up("abz")
        for i in range(30):
            self.small(f"{i}", f"m{i}")
        rows = self.indexed(self.index(), built=30)
        self.assertNotIn("z", {r["node"] for r in rows})


class Namesakes(Shared):
    NODES = ""

    def test_at_the_same_moment(self):
        self.small("t", "t")
        for i in range(6):
            name = f"n{i}"
            nodes = [Node(self.broker.url, name, os.path.join(self.top, "t"), store=scratch()) for _ in range(3)]
            self.addCleanup(lambda some=nodes: [n.kill() for n in some if n.process.poll() is None])
            wait_for("all but one end", lambda some=nodes: sum(n.process.poll() is not None for n in some) >= 2, 150)
            wait_for("one says what it has",
                     lambda of=name: of in self.cluster.cards() and self.cluster.cards()[of].hosts == 1)
            left = [n for n in nodes if n.process.poll() is None]
            self.assertEqual(len(left), 1, [n.errors for n in nodes])
            for node in nodes:
                if node not in left:
                    self.assertEqual(node.process.returncode, 2, node.errors)
                    self.assertIn(f"there is a node named {name} already", node.errors)
            self.assertEqual(left[0].leave(), 0)


class Usage(Shared):
    NODES = ""

    def test_wrong_use(self):
        elsewhere = scratch()
        for args, what in (
                (("index", "--cluster", self.broker.url, self.top), "--share is missing"),
                (("index", "--share", self.top, self.top), "give --cluster URL"),
                (("index", "--forget", self.top), "give --cluster URL"),
                (("index", "--cluster", self.broker.url, "--share", self.top, "--memory", "1G"), "each node's own"),
                (("index", "--cluster", self.broker.url, "--share", self.top, elsewhere), "is not below"),
                (("serve", "--share", self.top), "give --cluster URL and --node NAME"),
                (("serve", "--cluster", self.broker.url, "--node", "x"), "a directory of traces")):
            with self.subTest(args=args):
                run = weft(*args)
                self.assertEqual(run.code, 2, run)
                self.assertIn(what, run.message)
        run = weft("index", "--cluster", self.broker.url, "--share", os.path.join(self.top, "absent"))
        self.assertEqual(run.code, 1, run)
        run = weft("serve", "--listen", "127.0.0.1:0", "--cluster", self.broker.url, "--node", "x", "--share",
                   os.path.join(self.top, "absent"))
        self.assertEqual(run.code, 1, run)
        self.assertIn("--share", run.message)


if __name__ == "__main__":
    main()
