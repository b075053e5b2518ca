#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`weft critpath --requests` over a cluster: nodes report the requests they served, the paths are followed from node to
node, and their sums are those of all traces in one place."""
import json

from cluster_of import Cluster
from test_cluster import hosts_of
from weft_e2e import Case, main, scenario, scratch, weft


class Asked(Case):
    recording = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.traces, cls.store = scenario(cls.recording), scratch()
        cls.cluster = Cluster({name: [path] for name, path in hosts_of(cls.traces).items()}, store=cls.store)
        cls.addClassCleanup(cls.cluster.stop)

    def far(self, requests, *options):
        return weft("critpath", "--cluster", self.cluster.broker.url, "--requests", requests, *options)

    def near(self, requests, *options):
        return weft("critpath", self.traces, "--store", self.store, "--requests", requests, *options)

    def same(self, requests, *options):
        far, near = self.far(requests, *options), self.near(requests, *options)
        self.assertEqual((far.code, far.message, far.text), (near.code, near.message, near.text), requests)
        return far


class Sets(Asked):
    recording = "three-tier"

    def test_the_same_as_of_traces(self):
        groups = self.json("requests", self.traces, "--store", self.store, "-q")["groups"]
        self.assertGreater(len(groups), 3)
        for requests in ("all", "host=db", "slowest=10%", "fastest=30%,host=web", "group=1,slowest=40%",
                         *(f"group={g['id']}" for g in groups[::3])):
            told = json.loads(self.same(requests, "--format", "json").text)
            self.assertGreater(told["requests"], 0)
            self.assertEqual(sum(t["duration"] for t in told["totals"]), told["duration"])
        # Requests whose paths continue on the other machine.
        told = json.loads(self.same("host=web", "--format", "json").text)
        self.assertLessEqual({"web", "db"}, {t["host"] for t in told["totals"]})

    def test_forms_and_intervals(self):
        self.same("all")
        self.same("all", "--format", "csv", "--reference", "db")
        middle = self.json("requests", self.traces, "--store", self.store, "-q")["requests"][0]["begin"]
        whole, part = self.same("all", "--format", "json"), self.same("all", "--format", "json", "--begin", middle)
        self.assertLess(json.loads(part.text)["requests"], json.loads(whole.text)["requests"])
        self.same("all", "--begin", middle, "--end", middle + 1000)
        self.same("host=client")
        for form in ("table", "json", "csv"):
            self.same("group=1,slowest=30%", "--compare", "host=web", "--format", form)

    def test_refused(self):
        self.same("group=99")
        for wrong in (("--refine",), ("--snips",), ("--method", "broadcast"), ("--segments",)):
            run = self.far("all", *wrong)
            self.assertEqual(run.code, 2, run)
            self.assertIn("sums up many paths", run.message)


class Many(Asked):
    recording = "clocks"

    def test_the_same_as_of_traces(self):
        told = json.loads(self.same("all", "--format", "json").text)
        self.assertGreater(told["requests"], 5000)
        self.same("group=1,slowest=1%", "--format", "json")


class Interrupts(Asked):
    """Replies whose last bytes were released by an acknowledgement: their paths begin where the interrupt was
    handled."""
    recording = "scp-net"

    def test_the_same_as_of_traces(self):
        for requests in ("all", "group=1"):
            self.same(requests, "--format", "json")


class Away(Asked):
    recording = "three-tier"

    def test_a_node_is_killed(self):
        """Requests served by a killed node are missing, and its part of others' paths; both are reported, and return
        with it."""
        before = self.far("host=web", "--format", "json")
        self.cluster.nodes["db"].kill()
        run = self.far("all", "--format", "json", "--timeout", "20s")
        told, of_web = json.loads(run.text), json.loads(before.text)
        self.assertEqual(run.code, 3, run)
        self.assertIn("requests of 1 machine are missing", run.message)
        self.assertIn("of the paths are missing: no answer from db", run.message)
        self.assertEqual((told["requests"], told["duration"]), (of_web["requests"], of_web["duration"]))
        self.assertEqual({t["host"] for t in told["totals"] if t["state"] not in ("network", "unknown")}, {"web"})
        run = self.far("group=1", "--timeout", "20s")
        self.assertEqual(run.code, 3, run)
        self.assertIn("the group is told without what db", run.message)
        self.cluster.nodes["db"].start()
        self.cluster.settle()
        self.same("all")


if __name__ == "__main__":
    main()
