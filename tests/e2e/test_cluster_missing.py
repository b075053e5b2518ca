# SPDX-License-Identifier: MIT
"""Data that a node cannot give are reported missing by every verb, with exit status 3. Registry entries of other
releases are written here as those releases write them."""
import json
import os
import shutil
import subprocess

from cluster_of import Cluster, cards_of, wait_for
from mounts import mount_memory, own_mounts, resize_memory, unmount
from test_cluster import Compared, bare, hosts_of
from weft_e2e import ROOT, main, need, new_dice, scenario, scratch, weft

DICE = new_dice(51)
THREAD = "client:204"  # thread with a path over all three
NODES = "weft_weft_nodes"
OPENING, OPEN, FAILED = range(3)


def number(value):
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def string(text):
    return number(len(text.encode())) + text.encode()


def empty_card(node, version=2, serial=0):
    return bytes([version]) + string(node) + string("of-" + node) + number(serial) + number(0)


def condition(node, state, text="", problems=(), serial=0, questions=(3, 3)):
    """Returns a condition as in docs/cluster-protocol.md."""
    return (b"\1" + string(node) + string("of-" + node) + string("0.0") + number(serial) + number(questions[0]) +
            number(questions[1]) + number(state) + string(text) + number(len(problems)) + number(len(problems)) +
            b"".join(string(p) for p in problems))


class Asked(Compared):
    VERBS = (("threads",), ("flows",), ("sync",), ("critpath", "--thread", THREAD),
             ("critpath", "--requests", "host=web"))

    def setUp(self):
        self.recording = scenario("three-tier")
        self.hosts = hosts_of(self.recording)

    def start(self, *names):
        self.cluster = Cluster({name: [self.hosts[name]] for name in names or self.hosts})
        self.addCleanup(self.cluster.stop)
        self.broker = self.cluster.broker

    def answers(self):
        """{verb: its answer}: none lacks anything."""
        return {verb: self.ok(*verb, "--cluster", self.broker.url, "--format", "json").out for verb in self.VERBS}

    def compare(self, verb, far, near):
        """Compares the answers, without the cost that critpath states."""
        far, near = json.loads(far), json.loads(near)
        self.assertEqual(*map(bare, (far, near)) if "--thread" in verb else (far, near), verb)


class Missing(Asked):
    def named(self, note, full):
        """Checks that every verb names the missing data, and answers from the rest."""
        for verb in self.VERBS:
            run = self.partly(*verb, "--cluster", self.broker.url, "--format", "json")
            self.assertEqual([line for line in run.message.splitlines() if line.startswith("weft: note: node ")],
                             [f"weft: note: {note}"], verb)
            self.compare(verb, run.out, full[verb])
        run = self.partly("place", "--cluster", self.broker.url)  # verb that shows the load of nodes
        self.assertIn(f"weft: note: {note}\n", run.message)

    def gone(self, *keys):
        for key in keys:
            self.broker.remove(NODES, key)

    def test_what_the_registry_says(self):
        self.start()
        full = self.answers()
        self.broker.put(NODES, "later", b"\x09" + empty_card("later")[1:])
        self.named("node later: its registry entry has version 9, this program reads 2: update the older one", full)
        self.broker.put(NODES, "later", b"\2?")
        self.named("node later: its registry entry makes no sense", full)
        self.broker.put(NODES, "later", empty_card("another"))
        self.named("node later: its registry entry is one of node another", full)
        self.broker.put(NODES, "later", empty_card("later"))  # entry that a release without conditions writes first
        self.named("node later has not said yet which traces it has", full)
        self.broker.put(NODES, "later.state", condition("later", OPENING))
        self.named("node later has not opened its traces yet: they are being indexed", full)
        self.broker.put(NODES, "later.state", condition("later", FAILED, "/t: No space left on device"))
        self.named("node later could not open its traces: /t: No space left on device", full)
        self.broker.put(NODES, "later.state", condition("later", OPEN, serial=1))  # state before its entry
        self.named("node later has not opened its traces yet: they are being indexed", full)
        self.broker.put(NODES, "later", empty_card("later", serial=1))
        for verb, answer in self.answers().items():  # node without entry
            self.compare(verb, answer, full[verb])
        self.broker.put(NODES, "later.state", condition("later", OPEN, serial=1, problems=["/t/b: is left out\x1b[2J"]))
        self.named("node later: /t/b: is left out?[2J", full)
        self.broker.put(NODES, "later.state", condition("later", OPEN, serial=1, questions=(8, 9)))
        self.named("node later (weft 0.0) answers questions of versions 8 to 9, this program asks those of 3 to 3: "
                   "update the older one", full)
        self.gone("later")
        self.broker.put(NODES, "later.state", condition("later", OPEN, serial=1))
        self.named("node later: its entry is not in the registry any more", full)
        self.gone("later.state")
        self.answers()

    def test_entries_of_neighbouring_releases(self):
        """Entries without a condition, as of the release before, and those with additions at their end, as of a later
        release, count as they are: copies of a host, which are queried when its node is away."""
        self.start()
        full = self.answers()
        table = self.broker.table(NODES)
        card, name = table["web"], string("web")
        self.assertEqual(card[1:1 + len(name)], name)
        rest = card[1 + len(name):]
        for node, more in (("before", b""), ("later", b"something that only a later release knows")):
            self.broker.put(NODES, node, card[:1] + string(node) + rest + more)
        self.broker.put(NODES, "web.other", b"an entry of a kind that only a later release knows")
        for verb, answer in self.answers().items():
            self.compare(verb, answer, full[verb])
        self.assertIn("before", [c.node for c in cards_of(self.broker.table(NODES))])
        run = self.partly("place", "--cluster", self.broker.url, "--table", "nodes", "--format", "json")
        self.assertEqual([n["node"] for n in json.loads(run.out)], ["before", "client", "db", "later", "web"])

    def test_senders_on_nodes_that_are_not_known(self):
        """A message without a known sender does not count as untraced while there are nodes whose data are unknown."""
        self.start("client")
        run = self.ok("critpath", "--cluster", self.broker.url, "--thread", THREAD, "--format", "json")
        untraced = [u["peer"] for u in json.loads(run.out)["unexplained"] if u["reason"] == "untraced-peer"]
        self.assertTrue(untraced)
        self.broker.put(NODES, "web.state", condition("web", OPENING))
        self.broker.put(NODES, "web", empty_card("web"))
        run = self.partly("critpath", "--cluster", self.broker.url, "--thread", THREAD, "--format", "json")
        self.assertEqual({u["peer"] for u in json.loads(run.out)["unexplained"] if u["reason"] == "offline-node"},
                         {f"web ({peer})" for peer in untraced})
        self.assertNotIn(b"untraced-peer", run.out)
        self.assertRegex(run.message, "missing: no answer from web")

    def test_nobody_else(self):
        """Error without any data to answer from: it names the missing nodes."""
        self.start("client")
        self.cluster.nodes["client"].leave()
        self.broker.put(NODES, "web", empty_card("web"))
        run = weft("threads", "--cluster", self.broker.url)
        self.assertEqual(run.code, 1, run)
        self.assertIn("node web has not said yet which traces it has; no other node", run.message)


class Copies(Asked):
    """Copy of some archives of a session on another node: never queried while the node that has all answers; then its
    data are used, and the rest is missing."""
    CUTS, COPIES = 7, {"first": range(0, 4), "last": range(4, 8), "ends": (0, 1, 6, 7), "middle": range(2, 6),
                       "each other": range(0, 8, 2)}

    def archives(self):
        """The session of db, and what it consists of."""
        cutter = need(os.path.abspath(os.environ.get("CUT_TRACE") or
                                      os.path.join(ROOT, "build", "tests", "e2e", "cut_trace")))
        out, session = scratch(), os.path.join(scratch(), "db")
        subprocess.run([cutter, self.hosts["db"], out, str(DICE.getrandbits(63)), str(self.CUTS)], check=True,
                       stdout=subprocess.DEVNULL)
        self.parts = sorted(os.listdir(out))
        for part in self.parts:
            place = os.path.join(session, "archives", part, "kernel")
            os.makedirs(os.path.dirname(place))
            os.rename(os.path.join(out, part), place)
        return session

    def copy(self, session, chosen):
        copy = os.path.join(scratch(), "db")
        for i in chosen:
            part = os.path.join("archives", self.parts[i])
            shutil.copytree(os.path.join(session, part), os.path.join(copy, part))
        return copy

    def questions(self):
        """Threads of all machines, over all of their time and in parts of it."""
        rows = [r for r in self.json("threads", self.recording, "--store", self.cluster.store, "--limit", 60)
                if r["tid"] > 0]
        for r in [next(r for r in rows if f"{r['host']}:{r['tid']}" == THREAD), *DICE.sample(rows, 12)]:
            yield f"{r['host']}:{r['tid']}", []

    def explained(self, far, near, thread):
        """Checks that nothing differs above the first unknown part (paths are told backwards)."""
        away = [u["end"] for u in far["unexplained"] if u["reason"] == "offline-node"]
        top = max(away, default=far["query"]["begin"])
        end = min(far["query"]["end"], near["query"]["end"])
        known = [[dict(s, begin=max(top, s["begin"]), end=min(end, s["end"])) for s in answer["segments"]
                  if s["end"] > top and max(top, s["begin"]) < end] for answer in (far, near)]
        for s, full in zip(*known):
            s["detail"] = s["detail"] or full["detail"]  # the call that a wait was in may have begun before
        self.assertEqual(*known, f"{thread}: above {top}")

    def ask_all(self, near, whole):
        missing = 0
        for thread, answer in near.items():
            run = self.cluster.ask(thread, "--reference", "client")
            if run.code == 1:  # missing in the copy
                missing += 1
                self.assertRegex(run.message, "note: db: node db, .* does not answer; node a copy has")
                continue
            self.assertIn(run.code, (0, 3), run)
            far = json.loads(run.out)
            if run.code == 0:
                self.assertEqual(bare(far), bare(answer), thread)
                continue
            missing += 1
            self.assertIn("db", run.message)
            untraced = [[u for u in a["unexplained"] if u["reason"] == "untraced-peer"] for a in (far, answer)]
            self.assertEqual([u for u in untraced[0] if u not in untraced[1]], [], run)
            self.explained(far, answer, thread)
        self.assertEqual(whole, not missing)
        return missing

    def copied(self, near, full):
        self.ask_all(near, True)
        for verb, answer in full.items():
            self.compare(verb, self.ok(*verb, "--cluster", self.broker.url, "--format", "json").out, answer)
        self.cluster.nodes["db"].kill()
        self.ask_all(near, False)
        for verb in full:
            run = self.partly(*verb, "--cluster", self.broker.url, "--format", "json")
            self.assertRegex(run.message, r"note: db: node db, which has all of its trace, does not answer; "
                             r"node a copy has a copy with \d+ of \d+ events, recorded from ")

    def test_some_archives(self):
        self.recording = scenario("three-tier")
        session = self.archives()
        self.cluster = Cluster({h: [session if h == "db" else self.hosts[h]] for h in self.hosts})
        self.addCleanup(self.cluster.stop)
        self.broker = self.cluster.broker
        traces = [session, self.hosts["client"], self.hosts["web"]]
        near = {thread: json.loads(self.local(traces, self.cluster.store, thread, "--reference", "client").out)
                for thread, _ in self.questions()}
        full = {verb: out for verb, out in self.answers().items() if verb[0] in ("threads", "flows")}
        for name, chosen in self.COPIES.items():
            with self.subTest(copy=name):
                node = self.cluster.add("a copy", self.copy(session, chosen), store=scratch())
                self.cluster.settle()
                try:
                    self.copied(near, full)
                finally:
                    node.leave()
                    self.cluster.nodes["db"].kill()
                    self.cluster.nodes["db"].start()
                    wait_for("its copy has left", lambda: "a copy" not in self.cluster.cards())
                    self.cluster.settle()

    def test_all_archives(self):
        """A copy with all of it, whose files have other times, is as good."""
        session = self.archives()
        copy = os.path.join(scratch(), "db")
        shutil.copytree(session, copy, copy_function=shutil.copyfile)
        self.cluster = Cluster({h: [session if h == "db" else self.hosts[h]] for h in self.hosts})
        self.addCleanup(self.cluster.stop)
        self.broker = self.cluster.broker
        full = self.answers()
        self.cluster.add("a copy", copy, store=scratch())
        self.cluster.settle()
        self.cluster.nodes["db"].kill()
        for verb, answer in self.answers().items():
            self.compare(verb, answer, full[verb])


class Traces(Asked):
    """Nodes that have traces which they cannot open."""

    def note(self, begin):
        """Returns the note that the cluster's answers contain."""
        def told():
            run = weft("threads", "--cluster", self.broker.url)
            lines = [line for line in run.message.splitlines() if line.startswith(f"weft: note: {begin}")]
            self.assertEqual(run.code, 3 if any("note: node" in line for line in run.message.splitlines()) else 0, run)
            return lines and lines[0]
        return wait_for(f"answers tell: {begin}", told)

    def test_one_of_several(self):
        """Remarks of one program about the traces are also in the cluster's answers."""
        broken = os.path.join(scratch(), "broken")
        os.makedirs(broken)
        for name, content in (("metadata", b"\x57\x1d\xd1\x75 no such thing"), ("channel_0", b"\xc1\x1f\xfc\xc1")):
            with open(os.path.join(broken, name), "wb") as f:
                f.write(content)
        self.start("client")
        run = self.partly("threads", self.hosts["web"], broken, "--store", self.cluster.store)
        said = run.message.splitlines()[0].removeprefix("weft: note: ")
        self.assertIn(broken, said)
        self.cluster.add("web", self.hosts["web"], broken)
        self.cluster.settle()
        self.assertEqual(self.note("node web: "), f"weft: note: node web: {said}")

    def test_full_disk(self):
        own_mounts()
        disk = scratch()
        mount_memory(disk, "64k")
        self.addCleanup(unmount, disk)
        self.start("client")
        node = self.cluster.add("web", self.hosts["web"], store=os.path.join(disk, "stores"))
        self.assertRegex(self.note("node web could"), "open its traces: .*: No space left on device")
        resize_memory(disk, "64m")
        self.cluster.settle()
        self.ok("threads", "--cluster", self.broker.url)
        node.leave()


class Status(Asked):
    def status(self):
        """The nodes by name, and what is missing."""
        run = weft("status", "--cluster", self.broker.url, "--format", "json", "--timeout", "2s")
        told = json.loads(run.out)
        return run, {n["node"]: n for n in told["nodes"]}, told["missing"]

    def test_status(self):
        self.start()
        keeper = wait_for("one keeps the clocks",
                          lambda: self.broker.table("weft_weft_keeper").get("keeper", b"").decode())
        run, nodes, missing = self.status()
        self.assertEqual((run.code, run.message, missing, sorted(nodes)), (0, "", [], sorted(self.hosts)))
        self.assertEqual([name for name, n in nodes.items() if n["keeper"]], [keeper])
        release = self.ok("--version").out.decode().split()[1]
        disk = os.statvfs(self.cluster.store)
        for name, node in nodes.items():
            self.assertEqual((node["state"], node["hosts"], node["unrelated"], node["text"], node["release"]),
                             ("open", 1, 0, "", release))
            self.assertEqual(node["bytes"], sum(
                os.path.getsize(os.path.join(d, f)) for d, _, files in os.walk(self.hosts[name]) for f in files
                if f != "metadata" and "metadata" in files))
            self.assertEqual(node["cpus"], os.cpu_count())
            self.assertLessEqual(abs(node["clock_ahead_ns"]), node["clock_error_ns"])  # clock is the same
            self.assertTrue(os.path.isdir(node["disk"]["path"]))
            self.assertEqual(node["disk"]["bytes"], disk.f_blocks * disk.f_frsize)
        self.cluster.nodes["db"].kill()
        self.broker.put(NODES, "later", b"\x09" + empty_card("later")[1:])
        self.broker.put(NODES, "old.state", condition("old", FAILED, "no space"))
        self.broker.put(NODES, "old", empty_card("old"))
        run, nodes, missing = self.status()
        self.assertEqual(run.code, 3)
        self.assertIn("3 of 5 nodes do not answer", run.message)
        self.assertEqual([(m["node"], m["kind"]) for m in missing], [("later", "version"), ("old", "failed")])
        self.assertEqual({name: n["state"] for name, n in nodes.items()},
                         {"client": "open", "db": "away", "later": "away", "old": "away", "web": "open"})
        self.assertIn("not connected to the broker", nodes["db"]["text"])
        run = self.partly("status", "--cluster", self.broker.url, "--timeout", "2s")
        self.assertEqual([line.split()[0] for line in run.out.decode().splitlines()],
                         ["node", "client", "db", "later", "old", "web"])

    def test_failed(self):
        """A failed node is reported with the reason it gives itself, not only its registry entry."""
        own_mounts()
        disk = scratch()
        mount_memory(disk, "64k")
        self.addCleanup(unmount, disk)
        self.start("client")
        node = self.cluster.add("web", self.hosts["web"], store=disk)
        run, nodes, missing = wait_for(
            "it has failed", lambda: "failed" in [m["kind"] for m in self.status()[2]] and self.status())
        self.assertEqual((run.code, nodes["web"]["state"]), (3, "failed"), run)
        self.assertRegex(nodes["web"]["text"], "No space left on device")
        self.assertEqual((nodes["web"]["disk"]["path"], nodes["web"]["disk"]["bytes"]), (disk, 64 << 10))
        self.assertIn(nodes["web"]["text"], missing[0]["text"])
        node.leave()

    def test_nobody(self):
        self.start("client")
        self.cluster.nodes["client"].leave()
        run, nodes, missing = self.status()
        self.assertEqual((run.code, nodes, missing), (0, {}, []))
        self.assertIn("has no node: start one", run.message)
        self.assertEqual(weft("status").code, 2)
        self.assertEqual(weft("status", "--cluster", self.broker.url, self.recording).code, 2)


class Previous(Asked):
    """Nodes and askers of the release before, WEFT_PREVIOUS, together with those of this one."""

    def test_together(self):
        if not os.environ.get("WEFT_PREVIOUS"):
            self.skipTest("WEFT_PREVIOUS is not set: the program of the release before")
        before = need(os.path.abspath(os.environ["WEFT_PREVIOUS"]))
        self.start()
        full = self.answers()
        for old in (("web",), ("client", "db"), ("client", "db", "web")):
            for name in old:
                self.cluster.nodes[name].leave()
                self.cluster.add(name, self.hosts[name], program=before)
            self.cluster.settle()
            told = json.loads(self.ok("status", "--cluster", self.broker.url, "--format", "json").out)["nodes"]
            self.assertEqual({n["node"]: n["state"] for n in told},
                             {name: "older release" if name in old else "open" for name in self.hosts})
            for program in (None, before):
                for verb in self.VERBS:
                    run = self.ok(*verb, "--cluster", self.broker.url, "--format", "json", program=program)
                    self.compare(verb, run.out, full[verb])
            for name in old:
                self.cluster.nodes[name].leave()
                self.cluster.add(name, self.hosts[name])
            self.cluster.settle()


if __name__ == "__main__":
    main()
