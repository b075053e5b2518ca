#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weft coordinate as a server of weft coordinate: what the upper one answers is what one server with all traces does,
who is missing below is named, and coordinators that ask each other in a circle end it."""
import os
import signal
import time

import test_coordinate
import test_coordinate_cluster
from cluster_of import free_port, wait_for
from coordinated import HOSTS, Coordinator, Shop
from tsp_server import EVENTS, THREAD_STATUS
from weft_e2e import SLOWDOWN, Case, main

PATH = test_coordinate.PATH


class Stack(Shop):
    """Two of the three machines below a coordinator of their own."""

    def coordinator(self, *options, hosts=HOSTS):
        self.below = super().coordinator(hosts=HOSTS[:2])
        return Coordinator(f"--server=below={self.below.url}", f"--server=db={self.servers['db'].url}", *options)

    def stop(self):
        self.below.stop()
        super().stop()


class Stacked(test_coordinate.Answers):
    # Tests of a single server, or of its restarts, are those of one level. If names are equal on both levels, the upper
    # one has no more than the way below.
    test_roots_that_are_no_sums_are_told_apart = None
    test_one_server_is_itself = test_ids_stay = test_bookmarks_are_kept = test_coordinators_stack = None
    servers = ["below/client", "below/web", "db"]

    @staticmethod
    def make_shop():
        return Stack()

    def both(self, path, parameters=None):
        """Returns both answers; labels of servers, which contain the way to them, are shortened."""
        one, many = super().both(path, parameters)
        if path.endswith("/tree"):
            for e in many["entries"]:
                e["labels"][0] = e["labels"][0].removeprefix("below/")
        return one, many

    def test_experiment(self):
        x = self.many.get(f"/experiments/{self.uuid}").json
        for key in ("name", "UUID", "nbEvents", "start", "end", "indexingStatus"):
            self.assertEqual(x[key], self.whole[key], key)
        self.assertEqual([t["properties"]["server"] for t in x["traces"]], self.servers)
        self.assertNotIn("hosts", x)

    def test_opening_names_its_server(self):
        where = self.shop.servers["web"].get("/traces").json[0]["path"]
        self.assertEqual(self.many.post("/traces", {"uri": f"below:{where}"}).status, 400)
        opened = self.many.post("/traces", {"uri": f"below:web:{where}", "name": "web"})
        self.assertEqual((opened.status, opened.json["properties"]["server"]), (200, "below/web"))

    def test_experiments_are_made_of_traces_of_several_servers(self):
        by = {t["properties"]["server"]: t["UUID"] for t in self.many.get("/traces").json}
        made = self.many.post("/experiments", {"name": "two", "traces": [by["below/web"], by["db"]]})
        self.assertEqual(made.status, 200, made)
        x = self.many.opened(made.json["UUID"])
        self.assertEqual([t["properties"]["server"] for t in x["traces"]], ["below/web", "db"])
        self.assertEqual(x["nbEvents"], sum(self.shop.servers[h].opened(x["UUID"])["nbEvents"] for h in ("web", "db")))
        self.assertEqual(self.many.delete(f"/experiments/{x['UUID']}").status, 200)
        self.assertEqual(self.shop.servers["web"].get(f"/experiments/{x['UUID']}").status, 404)

    def test_the_viewer_is_served(self):
        page = self.many.ask("GET", "/", base="")
        self.assertEqual((page.status, page.body), (200, self.one.ask("GET", "/", base="").body))
        self.assertEqual([s["name"] for s in self.many.get("/servers").json], ["below", "db"])

    def test_arrows_and_ids_are_of_one_tree(self):
        at = f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}"
        ids = {e["id"] for e in self.many.model(f"{at}/tree")["entries"]}
        times = {"start": self.whole["start"], "end": self.whole["end"], "nbTimes": 100}
        arrows = self.many.model(f"{at}/arrows", {"requested_timerange": times})
        self.assertGreater(len(arrows), 100)
        self.assertLessEqual({a[k] for a in arrows for k in ("sourceId", "targetId")}, ids)

    def test_a_path_is_marked_once(self):
        """A path of one machine alone is marked once, by the level that knows it."""
        at = f"/experiments/{self.uuid}/outputs/{PATH}"
        threads = self.shop.servers["web"].model(f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tree")
        tid = next(e["labels"][1] for e in threads["entries"] if e["labels"][0] == "tier")
        made = self.many.ask("POST", at, {"name": "p", "sourceTypeId": "weft.critical-path",
                                          "parameters": {"thread": f"web:{tid}"}})
        self.assertEqual(made.status, 200, made)
        self.assertIn("(as web alone tells it)", made.json["description"])
        self.assertEqual(made.json["description"].count("alone tells it"), 1)
        self.assertEqual(self.many.delete(f"{at}/{made.json['id']}").status, 200)


class Missing(Case):
    def setUp(self):
        self.shop = Stack()
        self.addCleanup(self.shop.stop)
        self.many, self.uuid = self.shop.many, self.shop.uuid
        self.many.opened(self.uuid)
        self.at = f"/experiments/{self.uuid}/outputs"

    def lacking(self, answer):
        return [x["host"] for x in answer.json.get("hosts", {}).get("lacking", [])]

    def test_who_is_away_below_is_named(self):
        tree = f"{self.at}/timeGraph/{THREAD_STATUS}/tree"
        lines = f"{self.at}/table/{EVENTS}/lines", {"requested_table_index": 100, "requested_table_count": 5}
        self.many.post(*lines)
        web = self.shop.servers["web"].process
        os.kill(web.pid, signal.SIGSTOP)
        try:
            wait_for("web is missed", lambda: self.lacking(self.many.post(tree)) == ["web"])
            answer = self.many.post(tree)
            self.assertIn("without web: ", answer.json["statusMessage"])
            self.assertEqual({e["labels"][0] for e in answer.json["model"]["entries"] if e["parentId"] == -1},
                             {"client", "db"})
            self.assertEqual(self.lacking(self.many.post(*lines)), ["web"])
            x = self.many.get(f"/experiments/{self.uuid}")
            self.assertEqual((self.lacking(x), x.json["hosts"]["complete"]), (["web"], 2))
            for path in ("/experiments", "/traces", self.at):
                self.assertIn("without web: ", self.many.get(path).headers["Warning"])
        finally:
            os.kill(web.pid, signal.SIGCONT)
        wait_for("web is back", lambda: self.lacking(self.many.post(tree)) == [])
        self.shop.below.stop(signal.SIGKILL)
        wait_for("all below are missed", lambda: self.lacking(self.many.post(tree)) == ["below"])

    def test_servers_that_are_called_alike(self):
        """Servers with the same name below two coordinators: both are named."""
        web = self.shop.servers["web"].process
        url = {h: self.shop.servers[h].url for h in HOSTS}
        one = Coordinator(f"--server=web={url['web']}", f"--server=db={url['db']}")
        two = Coordinator(f"--server=web={url['web']}", f"--server=client={url['client']}")
        top = Coordinator(f"--server=one={one.url}", f"--server=two={two.url}")
        try:
            for c in (one, two, top):
                c.opened(self.uuid)
            os.kill(web.pid, signal.SIGSTOP)
            wait_for("both", lambda: self.lacking(top.post(f"{self.at}/timeGraph/{THREAD_STATUS}/tree")) == ["web"] * 2)
        finally:
            os.kill(web.pid, signal.SIGCONT)
            for c in (top, one, two):
                c.stop()

    def test_a_circle_ends(self):
        listen = f"127.0.0.1:{free_port('127.0.0.1')}"
        a = Coordinator("--server=self=http://" + listen, f"--server=db={self.shop.servers['db'].url}", listen=listen)
        b = Coordinator(f"--server=a={a.url}")
        try:
            wait_for("it is there", lambda: {s["status"] for s in a.get("/servers").json} == {"UP"})
            begun = time.monotonic()
            answer = a.post(f"{self.at}/timeGraph/{THREAD_STATUS}/tree")
            self.assertEqual(self.lacking(answer), ["self"])
            self.assertIn("in a circle", answer.json["statusMessage"])
            self.assertIn("db", {e["labels"][0] for e in answer.json["model"]["entries"]})
            self.assertEqual(self.lacking(b.post(f"{self.at}/timeGraph/{THREAD_STATUS}/tree")), ["self"])
            self.assertLess(time.monotonic() - begun, 5 * SLOWDOWN)
        finally:
            b.stop()
            a.stop()


class OverNodes(test_coordinate_cluster.Paths):
    """The upper one shows the path of all machines that the nodes below found together."""

    test_several_are_meant = test_comparison = test_a_node_is_away = test_without_a_cluster_it_says_so = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.below, cls.many = cls.many, Coordinator(f"--server=below={cls.many.url}")
        cls.addClassCleanup(cls.many.stop)
        cls.many.opened(cls.uuid)


if __name__ == "__main__":
    main()
