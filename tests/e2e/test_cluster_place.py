# SPDX-License-Identifier: MIT
"""`weft place`: traces are moved between nodes in separate processes, and nothing is lost whichever is killed."""
import filecmp
import json
import os
import re
import shutil
import subprocess
import time

import tracedat
from cluster_of import Cluster, wait_for
from test_cluster import bare, example, hosts_of
from test_cuts import tool
from weft_e2e import BIN, SLOWDOWN, Case, main, need, new_dice, scenario, scratch, weft

DICE = new_dice(43)


def files_of(directory):
    """{path below the directory: its file}, but stores."""
    return {os.path.relpath(os.path.join(at, name), directory): os.path.join(at, name)
            for at, _, names in os.walk(directory) for name in names
            if ".weft" not in at and not name.startswith(".")}


def arrived(directory):
    """Names of what has come there, and of what is on its way; not of what has moved on."""
    names = sorted(os.listdir(directory)) if os.path.isdir(directory) else []
    return ([n for n in names if not n.startswith(".")],
            [n for n in names if n.startswith((".arriving-", ".snipping-"))])


class Placed(Case):
    def start(self, hosts, takers, giving=True, **limits):
        """A cluster of a node per host; takers: those that receive, each in a directory of its own."""
        c = Cluster({})
        self.addCleanup(c.stop)
        self.directory = {name: os.path.join(scratch(), "received") for name in takers}
        for name in sorted(set(hosts) | set(takers)):
            options = ["--give"] if giving else []
            if name in takers:
                options += ["--receive", self.directory[name]]
            if name in limits:
                options += ["--receive-limit", limits[name]]
            c.add(name, *([hosts[name]] if name in hosts else []), store=scratch(), options=options)
        c.settle(*(set(takers) - set(hosts)))
        wait_for("all nodes say something", lambda: set(c.cards()) == set(c.nodes))
        return c

    def place(self, c, *options, code=0, timeout=None):
        run = weft("place", "--cluster", c.broker.url, "--format", "json", *options,
                   **({"timeout": timeout} if timeout else {}))
        self.assertEqual(run.code, code, run.message)
        return json.loads(run.out) if run.out else run.message

    def node_of(self, c, host):
        return {h["host"]: h["node"] for h in self.place(c)["hosts"]}[host]

    def same_files(self, a, b):
        a, b = files_of(a), files_of(b)
        self.assertEqual(len(a), len(b))
        for name, path in a.items():
            other = [p for n, p in b.items() if n == name or n.endswith("/" + name)]
            self.assertEqual(len(other), 1, name)
            self.assertTrue(filecmp.cmp(path, other[0], shallow=False), name)


class ThreeTier(Placed):
    def setUp(self):
        self.hosts = hosts_of(example("three-tier"))
        self.thread = "client:204"

    def answer(self, c):
        run = c.ask(self.thread)
        self.assertEqual(run.code, 0, run.message)
        return json.loads(run.out)

    def local(self):
        run = weft("critpath", *self.hosts.values(), "--store", scratch(), "--thread", self.thread, "--format", "json")
        self.assertEqual(run.code, 0, run.message)
        return json.loads(run.out)


class Moves(ThreeTier):
    def test_tables(self):
        c = self.start(self.hosts, [])
        said = self.place(c)
        self.assertEqual([n["node"] for n in said["nodes"]], ["client", "db", "web"])
        for host in said["hosts"]:
            files = files_of(self.hosts[host["host"]])
            streams = sum(os.path.getsize(p) for n, p in files.items()
                          if os.path.basename(n) != "metadata" and "/index/" not in "/" + n)
            self.assertEqual(host["bytes"], streams, "a host's bytes are those of its streams")
            self.assertGreater(host["events"], 0)
        pairs = {(t["host"], t["other"]) for t in said["talk"]}
        self.assertEqual(pairs, {("client", "web"), ("db", "web")})
        self.assertEqual(said["moves"], [], "nobody receives")
        self.assertEqual(said["between"], sum(t["packets"] for t in said["talk"]))
        table = weft("place", "--cluster", c.broker.url)
        self.assertIn("hosts that talk", table.text)
        csv = weft("place", "--cluster", c.broker.url, "--format", "csv", "--table", "hosts")
        self.assertEqual(len(csv.text.splitlines()), 4)

    def test_the_new_node_is_asked_and_says_the_same(self):
        c = self.start(self.hosts, ["client", "db"])
        want = self.local()
        self.assertEqual(bare(self.answer(c)), bare(want))
        self.assertIn("web", self.answer(c)["cost"]["nodes"])
        said = self.place(c, "--move", "web=client")
        self.assertEqual([(m["host"], m["from"], m["to"], m["result"]) for m in said["moves"]],
                         [("web", "web", "client", "moved; the old copy is kept")])
        self.assertEqual(self.node_of(c, "web"), "client")
        wait_for("clocks are found", c.has_clocks)
        again = self.answer(c)
        self.assertEqual(bare(again), bare(want))
        self.assertEqual(again["cost"]["nodes"].count("web"), 0, "the old node is not asked any more")
        came = arrived(self.directory["client"])[0][0]
        self.same_files(self.hosts["web"], os.path.join(self.directory["client"], came))

        c.nodes["web"].kill()
        self.assertEqual(bare(self.answer(c)), bare(want), "nothing is missing without the old node")

        # Second move, to a third node: data received by a move are put aside after it, and never removed.
        said = self.place(c, "--move", "web=db", code=3)
        self.assertEqual([m["result"] for m in said["moves"]], ["moved"])
        self.assertEqual(arrived(self.directory["client"]), ([], []))
        left = [n for n in os.listdir(self.directory["client"]) if n.startswith(".left-")]
        self.same_files(self.hosts["web"], os.path.join(self.directory["client"], left[0]))
        wait_for("clocks are found", c.has_clocks)
        self.assertEqual(bare(self.answer(c)), bare(want))
        self.assertNotIn("client", {h["node"] for h in self.place(c, code=3)["hosts"] if h["host"] == "web"})

        # A restarted node still has what came to it.
        c.nodes["db"].kill()
        c.nodes["db"].start()
        wait_for("it has it again", lambda: self.node_of_quietly(c, "web") == "db")
        wait_for("clocks are found", c.has_clocks)
        self.assertEqual(bare(self.answer(c)), bare(want))

    def node_of_quietly(self, c, host):
        run = weft("place", "--cluster", c.broker.url, "--format", "json", "--timeout", "2s")
        return {h["host"]: h["node"] for h in json.loads(run.out)["hosts"]}.get(host) if run.out else None

    def test_advice_is_followed(self):
        c = self.start(self.hosts, ["hub"])
        said = self.place(c, "--balance", "1000")
        self.assertTrue(said["moves"] and all(m["to"] == "hub" for m in said["moves"]) or not said["moves"])
        c2 = self.start(self.hosts, list(self.hosts))
        said = self.place(c2, "--balance", "1000", "--apply")
        self.assertEqual({m["result"] for m in said["moves"]}, {"moved; the old copy is kept"})
        after = self.place(c2, "--balance", "1000")
        self.assertEqual((after["between"], after["moves"]), (said["between_after"], []))
        self.assertLess(after["between"], said["between"])

    def test_refusals(self):
        solo = os.path.join(scratch(), "trace.dat")
        made = tracedat.Made()
        with open(solo, "wb") as f:
            f.write(made.version7([[made.full_page(1000, made.data(1, made.record(tracedat.WAKING, b"w", 9, 1, 0)))]],
                                  [tracedat.UNAME]))
        c = self.start({**self.hosts, "solo": solo}, ["client"], giving=False)
        for move, why in (("web=db", "--receive"), ("web=client", "--give"), ("solo=client", "trace-cmd")):
            run = weft("place", "--cluster", c.broker.url, "--move", move)
            self.assertEqual(run.code, 1, run.message)
            self.assertIn(why, run.message)
        for move in ("nobody=client", "web=nobody", "web"):
            self.assertEqual(weft("place", "--cluster", c.broker.url, "--move", move).code, 2)
        self.assertEqual(weft("place").code, 2)
        self.assertEqual(arrived(self.directory["client"])[0], [])

    def test_links_lead_nowhere(self):
        """A link in a trace may lead to anything on its machine: it is not given away."""
        top = os.path.join(scratch(), "web")
        shutil.copytree(self.hosts["web"], top)
        for path, _, names in os.walk(top):
            for name in names:
                os.utime(os.path.join(path, name), (1, 1))
        secret = os.path.join(scratch(), "secret")
        with open(secret, "w", encoding="utf-8") as f:
            f.write("secret")
        stream = next(p for n, p in files_of(top).items() if os.path.basename(n) == "metadata")
        os.symlink(secret, os.path.join(os.path.dirname(stream), "notes"))
        c = self.start({**self.hosts, "web": top}, ["client"])
        run = weft("place", "--cluster", c.broker.url, "--move", "web=client")
        self.assertEqual(run.code, 1, run.message)
        self.assertIn("is a link", run.message)
        self.assertEqual(arrived(self.directory["client"])[0], [])

    def test_no_more_than_the_limit(self):
        c = self.start(self.hosts, ["client"], client="10K")
        run = weft("place", "--cluster", c.broker.url, "--move", "web=client")
        self.assertEqual(run.code, 1)
        self.assertIn("no room", run.message)
        self.assertEqual(arrived(self.directory["client"]), ([], []))

    def test_what_is_written_to_stays(self):
        stream = next(p for n, p in files_of(self.hosts["web"]).items() if os.path.basename(n) != "metadata")
        c = self.start(self.hosts, ["client"])
        os.utime(stream)
        run = weft("place", "--cluster", c.broker.url, "--move", "web=client", "--timeout", "1s")
        self.assertEqual(run.code, 1)
        self.assertTrue("being recorded" in run.message or "may have grown" in run.message, run.message)


def seconds(ns):
    return f"{ns // 10**9}.{ns % 10**9:09}"


def babeltrace2(trace, begin, end, *options):
    """Returns babeltrace2's output of the recording for that time, as text by default."""
    return subprocess.run(["babeltrace2", "convert", trace, "--begin", seconds(begin), "--end", seconds(end),
                           *(options or ["--clock-seconds", "--no-delta"])], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout.decode()


class Snips(ThreeTier):
    def cut(self, c, move, begin, end, **how):
        return self.place(c, "--move", move, "--begin", begin, "--end", end, **how)

    def limits(self, directory):
        """Returns the limits by the host's clock."""
        with open(os.path.join(directory, arrived(directory)[0][0], ".moved"), encoding="utf-8") as f:
            words = f.read().split()
        self.assertEqual(words[0], "weft-snip")
        return int(words[7]), int(words[8])

    def test_the_whole_is_asked_as_long_as_it_answers(self):
        c = self.start(self.hosts, ["client", "db"])
        want = self.local()
        begin, end = want["query"]["begin"], want["query"]["end"]
        middle = (begin + (end - begin) * 2 // 5, begin + (end - begin) * 3 // 5)
        narrower = [begin + (end - begin) * n // 20 for n in (9, 11)]
        said = self.cut(c, "web=client", *middle)
        self.assertEqual([m["result"] for m in said["moves"]], ["the snip is there"])
        hosts = {h["host"]: h for h in self.place(c)["hosts"]}
        self.assertEqual((hosts["web"]["node"], hosts["web"]["snips"]), ("web", "client"))
        whole = self.answer(c)
        self.assertEqual(bare(whole), bare(want))
        self.assertIn("web", whole["cost"]["nodes"])
        part = json.loads(c.ask(self.thread, "--begin", narrower[0], "--end", narrower[1]).out)
        self.assertEqual(part["unexplained"], [])
        self.assertIn("web", {s["host"] for s in part["segments"]})
        run = c.ask(self.thread, "--begin", narrower[0], "--end", narrower[1], "--snips")
        self.assertEqual((run.code, bare(json.loads(run.out))), (0, bare(part)), "all of it lies within the snip")
        self.assertNotIn("web", json.loads(run.out)["cost"]["nodes"])
        self.assertLess(json.loads(run.out)["cost"]["rounds"], part["cost"]["rounds"])

        c.nodes["web"].kill()
        run = c.ask(self.thread, "--begin", narrower[0], "--end", narrower[1])
        self.assertEqual(run.code, 0, run.message)
        self.assertIn("node client has what was recorded from", run.message)
        self.assertEqual(bare(json.loads(run.out)), bare(part), "all of it lies within the snip")
        self.assertNotIn("web", json.loads(run.out)["cost"]["nodes"])
        run = c.ask(self.thread)
        self.assertEqual(run.code, 3)
        for u in json.loads(run.out)["unexplained"]:
            self.assertEqual((u["reason"], u["peer"].split(" ")[0]), ("offline-node", "web"))
        for verb in ("threads", "flows"):  # verbs that would count less than before
            run = weft(verb, "--cluster", c.broker.url, "--timeout", f"{2 * SLOWDOWN}s", "--format", "json")
            self.assertEqual(run.code, 3, run.message)

        c.nodes["web"].start()
        wait_for("it is back", lambda: bare(json.loads(c.ask(self.thread).out or b"{}") or want) == bare(want))
        # Whole traces replace excerpts, never the other way.
        self.place(c, "--move", "web=client")
        self.same_files(self.hosts["web"], os.path.join(self.directory["client"],
                                                        arrived(self.directory["client"])[0][0]))
        run = weft("place", "--cluster", c.broker.url, "--move", "web=client", "--begin", middle[0])
        self.assertIn("has all of that trace", run.message)
        self.assertEqual(run.code, 1)
        self.assertEqual(bare(self.answer(c)), bare(want))

    def test_it_answers_as_a_tracer_that_ran_only_then(self):
        """Answers from an excerpt after the node with the trace has left: the same as from babeltrace2's own cut of the
        trace."""
        need("babeltrace2")
        c = self.start(self.hosts, ["client", "db"])
        query = self.local()["query"]
        length = query["end"] - query["begin"]
        self.cut(c, "web=client", query["begin"] + length * 2 // 5, query["begin"] + length * 3 // 5)
        ours, cut = self.limits(self.directory["client"]), os.path.join(scratch(), "web")
        babeltrace2(self.hosts["web"], *ours, "--output-format=ctf", "-w", cut)
        self.assertEqual(c.nodes.pop("web").leave(), 0)
        self.place(c, "--move", "web=db")  # a snip moves on as any trace does
        self.assertEqual(arrived(self.directory["client"]), ([], []))
        self.assertEqual(self.limits(self.directory["db"]), ours)
        wait_for("clocks are found", c.has_clocks)
        run = c.ask(self.thread)
        self.assertEqual(run.code, 3)
        got = json.loads(run.out)
        want = json.loads(weft("critpath", self.hosts["client"], self.hosts["db"], f"web={cut}", "--store", scratch(),
                               "--thread", self.thread, "--format", "json").out)
        self.assertIn("web", {s["host"] for s in got["segments"]})
        for key in ("query", "segments", "links", "totals"):
            self.assertEqual(got[key], want[key], key)
        self.assertEqual([u["end"] for u in got["unexplained"]], [u["end"] for u in want["unexplained"]])
        self.assertEqual({(u["reason"], u["peer"].split(" ")[0]) for u in got["unexplained"]},
                         {("offline-node", "web")})

    def test_packets_are_what_is_cut(self):
        """An excerpt has all that babeltrace2 reads of that time, and little more; losses, too."""
        need("babeltrace2")
        solo = os.path.join(scenario("lost-events"), "solo")
        c = self.start({"solo": solo}, ["taker"])
        host = self.place(c)["hosts"][0]["host"]
        lines = babeltrace2(solo, 0, 2**62).splitlines()
        first, last = (int(line[1:line.index("]")].replace(".", "")) for line in (lines[0], lines[-1]))
        for begin, end in ((4, 5), (0, 1), (9, 10)):
            interval = [first + (last - first) * n // 10 for n in (begin, end)]
            self.cut(c, f"{host}=taker", *interval)
            came = os.path.join(self.directory["taker"], arrived(self.directory["taker"])[0][0])
            told = [re.sub('"[^"]*"', '""', babeltrace2(d, *interval)) for d in (came, solo)]
            self.assertEqual(*told)  # except strings: babeltrace2 shows an earlier one in place of an empty one
            sizes = [sum(os.path.getsize(p) for n, p in files_of(d).items() if "/ch_" in "/" + n) for d in (solo, came)]
            self.assertLess(sizes[1], sizes[0] * 0.4)
        run = weft("place", "--cluster", c.broker.url, "--move", f"{host}=taker", "--begin", last + 10**9)
        self.assertIn("recorded nothing then", run.message)
        self.assertEqual(run.code, 2)

    def test_wrong_use(self):
        for options in (("--begin", "+1s"), ("--end", "+1s", "--apply"), ("--auto", "--begin", "+1s")):
            self.assertEqual(weft("place", "--cluster", "nats://127.0.0.1:1", *options).code, 2, options)


class ByItself(ThreeTier):
    """`weft place --auto`. This machine is busy with tests, and what idle nodes are is tested elsewhere."""

    def auto(self, c, *options):
        log = os.path.join(scratch(), "said")
        with open(log, "wb") as out:
            process = subprocess.Popen(
                [BIN, "place", "--cluster", c.broker.url, "--auto", "--balance", "1000", "--idle-load", "100000",
                 "--idle", "300ms", "--every", "200ms", *options], stdout=out, stderr=out)
        self.addCleanup(process.kill)

        def says():
            with open(log, encoding="utf-8") as f:
                return f.read()
        return process, says

    def test_it_follows_the_advice_whoever_ends(self):
        c = self.start(self.hosts, list(self.hosts))
        want, plan = self.local(), self.place(c, "--balance", "1000", "--gain", "5")
        self.assertGreater(len(plan["moves"]), 1)
        first, first_says = self.auto(c)
        wait_for("one decides", lambda: " goes from node " in first_says())
        first.kill()
        second, second_says = self.auto(c)
        wait_for("the other waits for its seat", lambda: f"process {first.pid} of" in second_says())
        c.broker.restart()  # restart that loses the leases
        after = wait_for("all is moved", lambda: next(
            (p for p in [self.place_quietly(c)] if p and not p["moves"] and p["between"] < plan["between"]), None))
        self.assertEqual(after["between"], plan["between_after"])
        wait_for("there is nothing to do", lambda: second_says().splitlines()[-1].startswith("every trace is well"))
        second.terminate()
        self.assertEqual(second.wait(timeout=20 * SLOWDOWN), 0)
        moves = sum(says().count(" goes from node ") for says in (first_says, second_says))
        self.assertLessEqual(moves, len(plan["moves"]) + 1, "nothing goes to and fro")
        wait_for("clocks are found", c.has_clocks)
        self.assertEqual(bare(self.answer(c)), bare(want))
        once, once_says = self.auto(c, "--once")
        self.assertEqual(once.wait(timeout=20 * SLOWDOWN), 0)
        self.assertIn("every trace is well where it is", once_says())

    def place_quietly(self, c):
        run = weft("place", "--cluster", c.broker.url, "--format", "json", "--balance", "1000", "--gain", "5")
        return json.loads(run.out) if run.code == 0 else None

    def test_a_move_that_was_not_brought_to_its_end(self):
        """Whoever moved it was killed before the older copy was put aside: it is now, without advice."""
        c = self.start(self.hosts, ["client", "db"])
        self.place(c, "--move", "web=client")
        self.place(c, "--move", "web=db")
        left = next(n for n in os.listdir(self.directory["client"]) if n.startswith(".left-"))
        c.nodes["client"].kill()
        os.rename(os.path.join(self.directory["client"], left),
                  os.path.join(self.directory["client"], arrived(self.directory["db"])[0][0]))
        c.nodes["client"].start()
        wait_for("both say that they have it", lambda: len(c.cards()) == 3 and c.cards()["client"].hosts == 2)
        process, says = self.auto(c, "--once")
        self.assertEqual(process.wait(timeout=20 * SLOWDOWN), 0, says())
        self.assertIn("web came to two nodes by moves", says())
        self.assertEqual(arrived(self.directory["client"]), ([], []))
        self.assertEqual(self.node_of(c, "web"), "db")

    def test_wrong_use(self):
        for options in (("--once",), ("--idle", "1s"), ("--auto", "--apply"), ("--auto", "--format", "json"),
                        ("--auto", "--idle", "soon"), ("--auto", "--gain", "101")):
            self.assertEqual(weft("place", "--cluster", "nats://127.0.0.1:1", *options).code, 2, options)


class Killed(Placed):
    """kill -9 of either side, and of the broker, at any time: the same command, given again, ends well."""

    def begin(self, c, move, *options):
        return subprocess.Popen([BIN, "place", "--cluster", c.broker.url, "--move", move, "--timeout",
                                 f"{20 * SLOWDOWN}s", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def strike(self, c, victim):
        if victim == "broker":
            c.broker.restart()
        else:
            c.nodes[victim].kill()

    def revive(self, c):
        for node in c.nodes.values():
            if node.process.poll() is not None:
                node.start()
        wait_for("all answer", lambda: weft("place", "--cluster", c.broker.url).code == 0)

    def test_nothing_is_lost(self):
        """The recording is with one of two nodes, and moved to and fro; who recorded it is gone."""
        top = scratch()
        big = os.path.join(top, "big")
        subprocess.run([tool("WEFT_MAKE_TRACE", "bench", "make_trace"), big, "2000000"], check=True,
                       stdout=subprocess.DEVNULL)
        wait_for("it is not being recorded any more",
                 lambda: time.time() - max(os.stat(p).st_mtime for p in files_of(big).values()) > 2.5)
        c = self.start({"origin": big}, ["a", "b"])
        host = self.place(c)["hosts"][0]["host"]
        self.place(c, "--move", f"{host}=a")
        self.assertEqual(c.nodes.pop("origin").leave(), 0)
        half = 0
        for victim in ("a", "b", "broker") * 2:
            holder = self.node_of(c, host)
            other = "b" if holder == "a" else "a"
            move = self.begin(c, f"{host}={other}")
            if DICE.random() < 0.8:
                wait_for("something comes", lambda: any(arrived(self.directory[other])) or move.poll() is not None)
            time.sleep(DICE.uniform(0, 0.4) * SLOWDOWN)
            self.strike(c, victim)
            half += bool(arrived(self.directory[other])[1])
            if DICE.random() < 0.5:
                move.kill()
                move.wait()
            whole = [os.path.join(self.directory[n], entry) for n in "ab" for entry in arrived(self.directory[n])[0]]
            self.assertTrue(whole, "one of them has it")
            for entry in whole:
                self.same_files(big, entry)
            self.revive(c)
            move.wait(timeout=120 * SLOWDOWN)
            self.place(c, "--move", f"{host}={other}", "--timeout", f"{60 * SLOWDOWN}s")
            self.assertEqual(self.node_of(c, host), other)
            self.assertEqual(arrived(self.directory[holder]), ([], []), "it is with one node")
            self.assertEqual(len(arrived(self.directory[other])[0]), 1)
        self.assertGreater(half, 0, "somebody was killed half way")

    def test_a_snip_is_whole_or_not_there(self):
        """Whoever is killed while it is copied: what appears are bytes of the recording, one after the other."""
        big = os.path.join(scratch(), "big")
        subprocess.run([tool("WEFT_MAKE_TRACE", "bench", "make_trace"), big, "300000"], check=True,
                       stdout=subprocess.DEVNULL)
        for path in files_of(big).values():
            os.utime(path, (1, 1))
        c = self.start({"origin": big}, ["taker"])
        host = self.place(c)["hosts"][0]
        for i, victim in enumerate(("taker", DICE.choice(("origin", "broker")))):
            interval = [f"+{host['life'] * n // 10}ns" for n in (1 + i, 6 + i)]
            move = self.begin(c, f"{host['host']}=taker", "--begin", interval[0], "--end", interval[1])
            wait_for("something comes", lambda: arrived(self.directory["taker"])[1] or move.poll() is not None)
            time.sleep(DICE.uniform(0, 0.1) * SLOWDOWN)
            self.strike(c, victim)
            if DICE.random() < 0.5:
                move.kill()
                move.wait()
            self.revive(c)
            move.wait(timeout=120 * SLOWDOWN)
            self.place(c, "--move", f"{host['host']}=taker", "--begin", interval[0], "--end", interval[1])
            self.assertEqual([len(v) for v in arrived(self.directory["taker"])], [1, 0])
            came = files_of(os.path.join(self.directory["taker"], arrived(self.directory["taker"])[0][0]))
            whole = files_of(big)
            self.assertEqual(set(came), {os.path.join(os.path.basename(big), n) for n in whole if "index/" not in n})
            for name, path in came.items():
                with open(path, "rb") as f, open(whole[os.path.relpath(name, os.path.basename(big))], "rb") as g:
                    part, all_of_it = f.read(), g.read()
                self.assertIn(part, all_of_it, name)
            self.assertLess(*(sum(map(os.path.getsize, v)) for v in (came.values(), whole.values())))

    def test_what_an_interrupted_copy_left_is_checked(self):
        """A file that was on its way is damaged: it is fetched once more."""
        hosts = hosts_of(example("three-tier"))
        c = self.start(hosts, ["client"], client="1G")
        c.nodes["web"].freeze()
        weft("place", "--cluster", c.broker.url, "--move", "web=client", "--timeout", "1s")
        c.nodes["web"].thaw()
        self.place(c, "--move", "web=client")
        entry = arrived(self.directory["client"])[0][0]
        key = entry.rsplit("-", 1)[1]
        with open(os.path.join(self.directory["client"], entry, ".moved"), encoding="utf-8") as f:
            digest = f.read().split()[3]
        c.nodes["client"].kill()
        half = os.path.join(self.directory["client"], f".arriving-{key}-{digest}")
        os.rename(os.path.join(self.directory["client"], entry), half)
        victim = max(files_of(half).values(), key=os.path.getsize)
        with open(victim, "r+b") as f:
            f.seek(os.path.getsize(victim) // 2)
            f.write(bytes([DICE.randrange(256) for _ in range(64)]))
        c.nodes["client"].start()
        wait_for("both answer", lambda: weft("place", "--cluster", c.broker.url).code == 0)
        wait_for("the client has it no more", lambda: self.node_of(c, "web") == "web")
        self.place(c, "--move", "web=client")
        self.same_files(hosts["web"], os.path.join(self.directory["client"], entry))


if __name__ == "__main__":
    main()
