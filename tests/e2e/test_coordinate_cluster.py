#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weft coordinate --cluster: nodes of a cluster are its servers. They appear, leave, die and come back by themselves,
also at another address, and while the broker is restarted; data that are not where they are announced are named."""
import itertools
import json
import os
import shutil
import threading
import time

from cluster_of import Cluster, wait_for
from coordinated import COMPARISON, HOSTS, Coordinator, named, plain, serve
from test_coordinate_config import write
from tsp_server import THREAD_STATUS, Server
from weft_e2e import Case, main, scenario, scratch, weft

NODES = "weft_weft_nodes"
PATH = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"
THREAD = "client:204"


def start(cluster, host, *options):
    return cluster.add(host, f"{host}={scenario('three-tier')}/{host}", store=scratch(),
                       options=("--no-sync", "--name", "shop", *options))


class Found(Case):
    def setUp(self):
        self.cluster = Cluster({})
        self.addCleanup(self.cluster.stop)

    def coordinator(self, *options):
        many = Coordinator("--cluster", self.cluster.broker.url, *options)
        self.addCleanup(many.stop)
        return many

    def servers(self, many):
        return {s["name"]: s["status"] for s in many.get("/servers").json}

    def until(self, many, what, wanted):
        wait_for(what, lambda: self.servers(many) == wanted)

    def tree(self, many, uuid):
        return many.model(f"/experiments/{uuid}/outputs/timeGraph/{THREAD_STATUS}/tree")

    def hosts(self, many, uuid):
        return {e["labels"][0] for e in self.tree(many, uuid)["entries"] if e["parentId"] == -1}

    def check_groups(self, many, uuid, there):
        """Groups of machines whose members are names and patterns of nodes: of those that are there."""
        at, x = f"/experiments/{uuid}/outputs/timeGraph/weft.summary", many.get(f"/experiments/{uuid}").json
        tree = {(p[0].split()[0], p[1].split()[0]): e for p, e in named(many.model(f"{at}/tree")).items() if p[1:]}
        rows = {p: e["metadata"]["rows"][0] for p, e in tree.items()}
        groups = {g: there & members for g, members in (("fronts", {"client", "web"}), ("all", set(HOSTS)))}
        self.assertEqual({p[0] for p in rows}, there | set(groups))
        for group, members in groups.items():
            for line in ("CPUs", "Threads"):
                self.assertEqual(rows[group, line], sum(rows[m, line] for m in members))
        ids = [e["id"] for p, e in tree.items() if p[0] in groups]
        times = {"start": x["start"], "end": x["end"], "nbTimes": 50}
        states = many.model(f"{at}/states", {"requested_timerange": times, "requested_items": ids})["rows"]
        self.assertEqual([r["entryId"] for r in states], ids)
        for r in states:
            self.assertTrue(any(s.get("style") for s in r["states"]), r)

    def test_comes_and_goes(self):
        many = self.coordinator("--config", write("groups: {fronts: [client, 'w*'], all: ['*']}\n"))
        self.assertIn("has no node yet", many.errors())
        self.assertEqual((many.get("/servers").json, many.get("/health").status), ([], 503))
        self.assertEqual(many.get("/experiments").json, [])
        for host in HOSTS[:2]:
            start(self.cluster, host)
        self.until(many, "two nodes", {"client": "UP", "web": "UP"})
        one = serve(*HOSTS, store=scratch())
        self.addCleanup(one.stop)
        uuid = one.first()["UUID"]
        wait_for("their traces", lambda: self.hosts(many, uuid) == {"client", "web"})
        before = named(self.tree(many, uuid))
        start(self.cluster, "db")
        self.until(many, "a third one", {host: "UP" for host in HOSTS})
        wait_for("its trace", lambda: self.hosts(many, uuid) == set(HOSTS))
        all_there = named(self.tree(many, uuid))
        self.assertEqual({p: e["id"] for p, e in all_there.items() if p in before},
                         {p: e["id"] for p, e in before.items()})
        self.assertEqual({p: plain(e)["labels"] for p, e in all_there.items()},
                         {p: plain(e)["labels"] for p, e in named(self.tree(one, uuid)).items()})
        self.check_groups(many, uuid, set(HOSTS))
        # Killed: it is away, by name. Back, at another port: it is the same.
        self.cluster.nodes["web"].kill()
        self.until(many, "web is away", {"client": "UP", "web": "AWAY", "db": "UP"})
        answer = many.post(f"/experiments/{uuid}/outputs/timeGraph/{THREAD_STATUS}/tree").json
        self.assertEqual([x["host"] for x in answer["hosts"]["lacking"]], ["web"])
        self.cluster.nodes["web"].start()
        self.until(many, "web is back", {host: "UP" for host in HOSTS})
        wait_for("all of it", lambda: self.hosts(many, uuid) == set(HOSTS))
        self.assertEqual({p: e["id"] for p, e in named(self.tree(many, uuid)).items()},
                         {p: e["id"] for p, e in all_there.items()})
        # Server stopped in order: not reported missing.
        self.assertEqual(self.cluster.nodes["web"].leave(), 0)
        self.until(many, "web has left", {"client": "UP", "db": "UP"})
        answer = many.post(f"/experiments/{uuid}/outputs/timeGraph/{THREAD_STATUS}/tree").json
        self.assertNotIn("hosts", answer)
        self.assertEqual(self.hosts(many, uuid), {"client", "db"})
        self.check_groups(many, uuid, {"client", "db"})
        self.cluster.nodes["web"].start()
        self.until(many, "web has joined again", {host: "UP" for host in HOSTS})
        wait_for("all again", lambda: self.hosts(many, uuid) == set(HOSTS))
        self.assertEqual({p: e["id"] for p, e in named(self.tree(many, uuid)).items()},
                         {p: e["id"] for p, e in all_there.items()})

    def test_nodes_tell(self):
        """The coordinator has the output of `weft status` for its page: nodes that are away, and what answers lack."""
        def told():
            return many.get("/cluster").json

        def states():
            return {n["node"]: n["state"] for n in told()["nodes"]}

        def status():
            return json.loads(weft("status", "--cluster", self.cluster.broker.url, "--format", "json").out)

        for host in HOSTS[:2]:
            start(self.cluster, host)
        many = self.coordinator()
        self.assertIs(many.get("/identifier").json["cluster"], True)
        wait_for("both are open", lambda: states() == {"client": "open", "web": "open"})
        steady = ("node", "state", "release", "hosts", "unrelated", "bytes", "events", "cpus")
        wait_for("what status says", lambda: [{k: n.get(k) for k in steady} for n in told()["nodes"]] ==
                 [{k: n.get(k) for k in steady} for n in status()["nodes"]])
        self.assertEqual(told()["missing"], [])
        self.cluster.broker.put(NODES, "odd", b"no card")
        wait_for("what is missing", lambda: [m["node"] for m in told()["missing"]] == ["odd"])
        self.assertEqual(told()["missing"], status()["missing"])
        self.cluster.nodes["web"].kill()
        wait_for("web is away", lambda: states()["web"] == "away")
        self.cluster.broker.kill()
        wait_for("the broker is away", lambda: many.get("/cluster").status == 503)
        one = Server(os.path.join(scenario("three-tier"), "db"))
        self.addCleanup(one.stop)
        others = Coordinator(f"--server=db={one.url}")
        self.addCleanup(others.stop)
        self.assertIs(others.get("/identifier").json["cluster"], False)
        self.assertEqual(others.get("/cluster").status, 404)

    def test_readers_do_not_wait_while_nodes_are_asked(self):
        """Readers do not wait while one request waits for a node that does not answer: they get the nodes' last
        answers."""
        for host in HOSTS[:2]:
            start(self.cluster, host)
        many, told, moments, noticed = self.coordinator(), [], itertools.count(), threading.Event()

        def state():
            return {n["node"]: n["state"] for n in many.get("/cluster").json["nodes"]}.get("web")

        def read():
            while not noticed.is_set():
                begin, now = next(moments), state()
                told.append((begin, next(moments), now))
                if now != "open":
                    noticed.set()

        wait_for("web is open", lambda: state() == "open")
        self.cluster.nodes["web"].freeze()
        readers = [threading.Thread(target=read) for _ in range(2)]
        try:
            for r in readers:
                r.start()
            for r in readers:
                r.join()
        finally:
            self.cluster.nodes["web"].thaw()
        asked, others = [t for t in told if t[2] != "open"], [t for t in told if t[2] == "open"]
        self.assertTrue(any(a[0] < t[0] and t[1] < a[1] for a in asked for t in others), told[-4:])

    def test_broker(self):
        """Servers stay while the broker is away, and when it is back, with or without its data; changes arrive then."""
        start(self.cluster, "client")
        start(self.cluster, "web")
        many = self.coordinator()
        self.until(many, "two nodes", {"client": "UP", "web": "UP"})
        for keep in (True, False):
            self.cluster.broker.kill()
            time.sleep(1.5)
            self.assertEqual(self.servers(many), {"client": "UP", "web": "UP"})
            self.cluster.broker.restart(keep=keep)
            wait_for("told again", lambda: len(self.cluster.broker.table("weft_weft_servers")) == 2)
            self.assertEqual(self.servers(many), {"client": "UP", "web": "UP"})
        self.assertNotIn("has left", many.errors())
        self.assertEqual(self.cluster.nodes["web"].leave(), 0)
        self.until(many, "web has left", {"client": "UP"})

    def test_address(self):
        """Address in a node's entry: its own, or the one by which it talks to the broker, or the given one."""
        def told(name):
            """The entry, and its flags: behind a byte and two strings."""
            entry = self.cluster.broker.table("weft_weft_servers")[name]
            behind_name = 2 + entry[1]
            return entry, entry[behind_name + 1 + entry[behind_name]]
        start(self.cluster, "client", "--listen", "0.0.0.0:0")
        start(self.cluster, "web", "--public-url", "http://web.example:81/sub")
        many = self.coordinator()
        wait_for("two nodes", lambda: set(self.servers(many)) == {"client", "web"})
        urls = {s["name"]: s["url"] for s in many.get("/servers").json}
        self.assertRegex(urls["client"], r"^http://127\.0\.0\.1:\d+$")
        self.assertEqual(urls["web"], "http://web.example:81/sub")
        self.until(many, "who answers", {"client": "UP", "web": "AWAY"})
        entry, flags = told("client")
        self.assertEqual((flags, told("web")[1]), (1, 0), "only the one on loopback is for its machine alone")
        # Entry as of another machine.
        with self.cluster.broker.connect() as f:
            other = entry[:-8] + bytes(x ^ 255 for x in entry[-8:])
            f.write(b"PUB $KV.weft_weft_servers.client %d\r\n%s\r\nPING\r\n" % (len(other), other))
            f.flush()
            while not f.readline().startswith(b"PONG"):
                pass
        self.until(many, "client is elsewhere", {"client": "AWAY", "web": "AWAY"})
        self.assertIn("on its own machine only", {s["name"]: s for s in many.get("/servers").json}["client"]
                      ["statusMessage"])

    def test_hostile(self):
        """Senseless entries of the table are no servers."""
        start(self.cluster, "client")
        many = self.coordinator()
        self.until(many, "a node", {"client": "UP"})
        good = self.cluster.broker.table("weft_weft_servers")["client"]

        def entry(node, url, version=1, flags=0, rest=b""):
            text = [bytes([len(s)]) + s for s in (node, url)]
            return bytes([version]) + text[0] + text[1] + bytes([flags]) + good[-8:] + rest
        bad = {"a": entry(b"a", b"file:///etc/passwd"), "b": entry(b"b", b"http://x y"),
               "c": entry(b"other", b"http://x"), "d": entry(b"d", b"http://u:p@x"),
               "e": entry(b"e", b"http://x", version=2), "f": b"", "g": good[:-1],
               "h": entry(b"h", b"http://x", rest=b"!"), "i": entry(b"i", b"http://x", flags=2),
               "j": entry(b"j", b"http://x\r\nHost: y")}
        with self.cluster.broker.connect() as f:
            for key, data in [*bad.items(), ("zoo", entry(b"zoo", b"http://127.0.0.1:1"))]:
                f.write(b"PUB $KV.weft_weft_servers.%s %d\r\n%s\r\n" % (key.encode(), len(data), data))
            f.flush()
            self.until(many, "the last of them", {"client": "UP", "zoo": "AWAY"})

    def test_with_others(self):
        """Servers of the configuration and nodes add up; a node that is named there is that server. One that is called
        as a group is has its lines."""
        db = serve("db", store=scratch())
        self.addCleanup(db.stop)
        start(self.cluster, "client")
        start(self.cluster, "web")
        groups = write("groups: {fronts: [client, web], client: ['*']}\n")
        many = self.coordinator("--config", groups, "--server", f"db={db.url}", "--server", "web=http://127.0.0.1:1")
        self.until(many, "all", {"db": "UP", "web": "AWAY", "client": "UP"})
        self.assertIn("is called as a group is: give the group another name", many.errors())
        uuid = db.first()["UUID"]
        at = f"/experiments/{uuid}/outputs/timeGraph/weft.summary"
        wait_for("their traces", lambda: self.hosts(many, uuid) == {"client", "db"})
        ids = [e["id"] for e in many.model(f"{at}/tree")["entries"] if e["parentId"] != -1]
        x = many.get(f"/experiments/{uuid}").json
        rows = many.model(f"{at}/states", {"requested_times": [x["start"], x["end"]], "requested_items": ids})["rows"]
        self.assertEqual((len(ids), {r["entryId"] for r in rows}), (8, set(ids)))

    def test_arguments(self):
        for args, said in (
            (("serve", "--public-url", "http://x", "."), "give --cluster URL --node NAME"),
            (("serve", "--cluster", "nats://127.0.0.1:1", "--node", "n", "--public-url", "x:80", "."), "give http://"),
            (("coordinate", "--node-token-file", "/dev/null", "--server", "http://x"), "give --cluster URL"),
            (("coordinate", "--cluster", "http://x"), "--cluster"),
            (("coordinate", "--cluster", "nats://127.0.0.1:1", "--config", write("rotation-groups: {web: [x]}\n")),
             "there is no server called x"),
            (("coordinate", "--cluster", "nats://127.0.0.1:1", "--config", write("groups: {g: x, g: y}\n")),
             "the group g is there twice"),
        ):
            run = weft(*args)
            self.assertEqual(run.code, 2, args)
            self.assertIn(said, run.message)


class Paths(Case):
    """Critical path of a coordinator of nodes: over all their machines, as on one server with all traces, and in the
    verb."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        traces = scenario("three-tier")
        # Traces given by the directory: clocks found of hosts in another order differ by some hundred ns.
        cls.one = Server("--name", "shop", "--reference", "client", traces, store=scratch())
        cls.addClassCleanup(cls.one.stop)
        cls.truth = json.loads(weft("critpath", traces, "--store", scratch(), "--thread", THREAD, "--reference",
                                    "client", "--format", "json").out)
        cls.cluster = Cluster({})
        cls.addClassCleanup(cls.cluster.stop)
        for host in HOSTS:
            cls.cluster.add(host, f"{host}={traces}/{host}", store=scratch(), options=("--name", "shop"))
        cls.cluster.settle()
        cls.many = Coordinator("--cluster", cls.cluster.broker.url)
        cls.addClassCleanup(cls.many.stop)
        cls.uuid = cls.one.first()["UUID"]
        wait_for("all machines", lambda: len(cls.many.opened(cls.uuid)["traces"]) == len(HOSTS))
        cls.outputs = f"/experiments/{cls.uuid}/outputs"

    def derive(self, server, **parameters):
        body = {"name": "path", "sourceTypeId": "weft.critical-path", "parameters": parameters}
        return server.ask("POST", f"{self.outputs}/{PATH}", body)

    def shown(self, server, path):
        """Tree, states and arrows, without ids."""
        entries = server.model(f"{self.outputs}/timeGraph/{path}/tree")["entries"]
        rows = {e["id"]: tuple(e["labels"][:2]) for e in entries}
        figures = {(rows[e["id"]]): (e["labels"][2:], {k: v for k, v in e["metadata"].items() if k != "key"})
                   for e in entries}
        begin, end = self.truth["query"]["begin"], self.truth["query"]["end"]
        times = sorted({(s["begin"] + s["end"]) // 2 for s in self.truth["segments"]})
        states = server.model(f"{self.outputs}/timeGraph/{path}/states",
                              {"requested_times": times, "requested_items": [e["id"] for e in entries]})["rows"]
        arrows = server.model(f"{self.outputs}/timeGraph/{path}/arrows",
                              {"requested_timerange": {"start": begin, "end": end}})
        return ([rows[e["id"]] for e in entries], figures,
                {(rows[r["entryId"]][1], x["start"], x["end"], x["style"]["parentKey"])
                 for r in states for x in r["states"] if x.get("style", {}).get("parentKey")},
                sorted((a["start"], a["end"], rows[a["sourceId"]], rows[a["targetId"]]) for a in arrows))

    def test_is_that_of_one_server(self):
        paths = []
        for server in (self.one, self.many):
            made = self.derive(server, thread=THREAD)
            self.assertEqual(made.status, 200, made)
            self.assertNotIn("alone", made.json["description"])
            paths.append(made.json["id"])
        (rows, figures, states, arrows), its = (self.shown(s, p) for s, p in zip((self.one, self.many), paths))
        self.assertEqual(its[0], rows)
        for row, told in figures.items():
            self.assertEqual(its[1][row], told, row)
        self.assertEqual(its[2], states)
        self.assertEqual(its[3], arrows)
        self.assertEqual(its[2], {(s["host"], s["begin"], s["end"], s["state"].upper().replace("-", "_"))
                                  for s in self.truth["segments"]})
        self.assertEqual([a[:2] for a in its[3]],
                         sorted((a["from"]["time"], a["to"]["time"]) for a in self.truth["links"]))
        self.assertIn("sentence", its[1][("client", "client")][1])
        self.assertEqual(self.many.delete(f"{self.outputs}/{PATH}/{paths[1]}").status, 200)

    def test_several_are_meant(self):
        """A number that threads of two machines have is refused, as one server does, and nothing is left of it."""
        for server in (self.one, self.many):
            made = self.derive(server, thread="204")
            self.assertEqual(made.status, 400, made)
            self.assertIn("HOST:TID", made.body.decode())
        self.assertEqual([o for o in self.many.get(self.outputs).json if o.get("parentId") == PATH], [])
        for parameters in ({"thread": "db:204"}, {"thread": "204", "host": "db"}):
            made = self.derive(self.many, **parameters)
            self.assertEqual(made.status, 200, made)
            tree = self.many.model(f"{self.outputs}/timeGraph/{made.json['id']}/tree")["entries"]
            self.assertEqual(tree[0]["labels"][0], "db")
            self.assertEqual(self.many.delete(f"{self.outputs}/{PATH}/{made.json['id']}").status, 200)

    def test_comparison(self):
        """Comparison of two paths of one machine's threads, each over all machines."""
        at, begin, end = f"{self.outputs}/{COMPARISON}", self.truth["query"]["begin"], self.truth["query"]["end"]
        half = (begin + end) // 2
        sides = {"a": {"thread": THREAD, "begin": begin, "end": half},
                 "b": {"thread": THREAD, "begin": half, "end": end}}
        told = []
        for server in (self.one, self.many):
            made = server.ask("POST", at, {"name": "both", "sourceTypeId": COMPARISON, "parameters": sides})
            self.assertEqual(made.status, 200, made)
            entries = server.model(f"{self.outputs}/data/{made.json['id']}/tree")["entries"]
            told.append([(e["labels"], {k: v for k, v in e["metadata"].items() if k != "key"}) for e in entries])
            self.assertEqual(server.delete(f"{at}/{made.json['id']}").status, 200)
        self.assertGreater(len(told[0]), 3)
        self.assertEqual(told[1], told[0])
        # Sides given by entries of the other views: the machine that has them is meant.
        tree = self.many.model(f"{self.outputs}/timeGraph/{THREAD_STATUS}/tree")["entries"]
        entry = next(e for e in tree if e["labels"][1] == "204" and e["metadata"].get("hostId") == ["db"])
        by_id = {k: {**v, "thread": "204", "id": entry["id"]} for k, v in sides.items()}
        made = self.many.ask("POST", at, {"name": "db", "sourceTypeId": COMPARISON, "parameters": by_id})
        self.assertEqual(made.status, 200, made)
        self.assertEqual(made.json["configuration"]["parameters"]["a"]["id"], entry["id"])
        self.assertEqual(self.many.delete(f"{at}/{made.json['id']}").status, 200)
        # Sides on two nodes: each path is over all machines, by its own machine's clock, as begin and end would be.
        sides["b"] = {"thread": "db:204"}
        told = []
        for server in (self.one, self.many):
            told.append({tuple(str(p.get(k)) for k in ("host", "comm", "state", "detail", "from")): p
                         for p in (e["metadata"] for e in server.model(f"{self.outputs}/data/{COMPARISON}/tree", sides)
                                   ["entries"])})
        self.assertEqual(set(told[0]), set(told[1]))
        self.assertGreater(len({p[0] for p in told[0]}), 2)
        for part, p in told[0].items():
            for side in "ab":
                self.assertAlmostEqual(p[side][0], told[1][part][side][0], delta=5e-4 * p[side][0] + 1e5)
        sides["a"] = sides["b"] = {"thread": "204"}
        made = self.many.ask("POST", at, {"name": "both", "sourceTypeId": COMPARISON, "parameters": sides})
        self.assertEqual(made.status, 400, made)

    def share(self, host):
        """Adds a node, whose server has no experiment, with the host's trace from common storage."""
        top = os.path.realpath(scratch())
        shutil.copytree(f"{scenario('three-tier')}/{host}", os.path.join(top, host),
                        ignore=shutil.ignore_patterns(".weft"))
        self.cluster.add("spare", share=top, store=None)
        wait_for("a node more", lambda: "spare" in self.cluster.cards())
        self.ok("index", "--cluster", self.cluster.broker.url, "--share", top)
        wait_for("its trace", lambda: self.cluster.cards()["spare"].hosts)

    def test_a_node_is_away(self):
        """Piece of a missing node: it is reported under its name, the rest is present; all returns with the node. Paths
        of its own threads are answered if another node has its trace."""
        end = self.truth["query"]["end"]

        def machines(end):
            made = self.derive(self.many, thread=THREAD, begin=self.truth["query"]["begin"], end=end)
            self.assertEqual(made.status, 200, made)
            path = made.json["id"]
            tree = self.many.model(f"{self.outputs}/timeGraph/{path}/tree")["entries"]
            notes = self.many.model(f"{self.outputs}/{path}/annotations",
                                    {"requested_timerange": {"start": self.truth["query"]["begin"], "end": end}})
            self.many.delete(f"{self.outputs}/{PATH}/{path}")
            return {e["labels"][1] for e in tree}, json.dumps(notes)
        self.cluster.nodes["db"].kill()
        there, notes = machines(end - 1)
        self.assertEqual(there, {"client", "web"})
        self.assertIn("offline-node: db", notes)
        self.assertNotIn("offline-node: web", notes)
        made = self.derive(self.many, thread="db:204")
        self.assertEqual(made.status, 400, made)
        self.assertIn("without db: ", made.body.decode())
        self.share("db")
        paths = []
        for server, asked in ((self.one, {"thread": "db:204"}), (self.many, {"thread": "204", "host": "db"})):
            made = self.derive(server, **asked)
            self.assertEqual(made.status, 200, made)
            paths.append(self.shown(server, made.json["id"]))
            self.assertEqual(server.delete(f"{self.outputs}/{PATH}/{made.json['id']}").status, 200)
        self.assertEqual(*paths)
        for asked, why in (({"thread": "db:4711"}, "no such thread on any node"),
                           ({"thread": "db:204", "begin": "?"}, "parameters: begin")):
            made = self.derive(self.many, **asked)
            self.assertEqual(made.status, 400, made)
            self.assertIn(why, made.body.decode())
        self.assertIn("no node of a cluster", self.derive(self.one, thread="db:204", elsewhere=True).body.decode())
        self.assertEqual(self.cluster.nodes["spare"].leave(), 0)
        before = self.cluster.cards()["db"].instance
        self.cluster.nodes["db"].start()
        wait_for("db is back", lambda: self.cluster.cards()["db"].instance != before)
        self.cluster.settle()
        wait_for("db is up", lambda: all(s["status"] == "UP" for s in self.many.get("/servers").json))
        there, notes = machines(end - 2)
        self.assertEqual(there, set(HOSTS))
        self.assertNotIn("offline-node", notes)

    def test_without_a_cluster_it_says_so(self):
        servers = [serve(h, store=scratch()) for h in HOSTS]
        many = Coordinator(*[f"--server={s.url}" for s in servers])
        for s in [many, *servers]:
            self.addCleanup(s.stop)
        for s in servers:
            s.opened(self.uuid)
        made = self.derive(many, thread=THREAD)
        self.assertEqual(made.status, 200, made)
        said = f"(as {servers[0].host} alone tells it)"
        self.assertIn(said, made.json["description"])
        listed = [o["description"] for o in many.get(self.outputs).json if o["id"] == made.json["id"]]
        self.assertEqual(len(listed), 1)
        self.assertIn(said, listed[0])
        tree = many.model(f"{self.outputs}/timeGraph/{made.json['id']}/tree")["entries"]
        self.assertEqual({e["labels"][1] for e in tree}, {"client"})


if __name__ == "__main__":
    main()
