#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Critical Path of a server that is a node of a cluster: it continues on the other nodes. The view equals `weft
critpath` of all traces in one place, by the clock of the server's own machine."""
import json
import os
import unittest

from cluster_of import Broker, Cluster, wait_for
from tsp_server import Server, THREAD_STATUS
from weft_e2e import Case, scenario, scratch, weft

PATH = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"
HOSTS = ("client", "web", "db")
THREAD = "client:204"


def key(state):
    return state.get("style", {}).get("parentKey")


def machines_of(tree):
    return {e["labels"][0] for e in tree["entries"] if e["parentId"] == -1}


class Views(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.traces = scenario("three-tier")
        cls.truth = json.loads(weft("critpath", cls.traces, "--store", scratch(), "--thread", THREAD, "--reference",
                                    "client", "--format", "json").out)
        cls.broker = Broker()
        cls.cluster = Cluster({h: [os.path.join(cls.traces, h)] for h in HOSTS[1:]}, broker=cls.broker)
        cls.server = Server(os.path.join(cls.traces, "client"), "--cluster", cls.broker.url, "--node", "client")
        cls.addClassCleanup(cls.server.stop)
        cls.addClassCleanup(cls.cluster.stop)
        wait_for("the node says what it has", lambda: [c.hosts for c in cls.cluster.cards().values()] == 3 * [1]
                 and cls.cluster.has_clocks())

    def setUp(self):
        self.x = self.server.first()
        self.outputs = f"/experiments/{self.x['UUID']}/outputs"

    def ask(self, what, **parameters):
        return self.server.model(f"{self.outputs}/timeGraph/{PATH}/{what}", parameters)

    def test_all_machines(self):
        tree = self.ask("tree", thread=THREAD)["entries"]
        names = {e["id"]: e["labels"][0] for e in tree}
        hosts = {e["id"]: e["labels"][1] for e in tree}
        self.assertEqual({e["labels"][0] for e in tree if e["parentId"] == -1}, set(HOSTS))
        rows = [e["id"] for e in tree if e.get("hasData", True) and e["parentId"] != -1]
        truth = self.truth
        for s in truth["segments"]:
            t = (s["begin"] + s["end"]) // 2
            shown = [(r["entryId"], x) for r in self.ask("states", thread=THREAD, requested_times=[t],
                                                         requested_items=rows)["rows"] for x in r["states"] if key(x)]
            self.assertEqual(len(shown), 1, s)
            row, x = shown[0]
            who = f",{s['tid']}]" if s["tid"] >= 0 else "[interrupt context]"  # whatever it was called meanwhile
            self.assertTrue(names[row].endswith(who), (names[row], s))
            self.assertEqual((hosts[row], x["start"], x["end"], key(x)),
                             (s["host"], s["begin"], s["end"], s["state"].upper().replace("-", "_")))
        span = {"start": truth["query"]["begin"], "end": truth["query"]["end"]}
        arrows = self.ask("arrows", thread=THREAD, requested_timerange=span)
        self.assertEqual(sorted((a["start"], a["end"], hosts[a["sourceId"]], hosts[a["targetId"]]) for a in arrows),
                         sorted((a["from"]["time"], a["to"]["time"], a["from"]["host"], a["to"]["host"])
                                for a in truth["links"]))

    def test_own_threads_are_those_of_other_views(self):
        status = self.server.model(f"{self.outputs}/timeGraph/{THREAD_STATUS}/tree")["entries"]
        tid = {e["id"]: e for e in status}
        tree = self.ask("tree", thread=THREAD)["entries"]
        own = [e["id"] for e in tree if e["labels"][1] == "client" and e["labels"][0] == "[tier,204]"]
        self.assertEqual(len(own), 1)
        self.assertIn(own[0], tid)

    def test_ids_stay(self):
        first, again = ({e["labels"][1] + e["labels"][0]: e["id"]
                         for e in self.ask("tree", thread=THREAD, **more)["entries"]}
                        for more in ({}, {"begin": "+2.3s"}))
        for name in set(first) & set(again):
            self.assertEqual(first[name], again[name], name)

    def machines(self, server, outputs, **parameters):
        return machines_of(server.model(f"{outputs}/timeGraph/{PATH}/tree", dict(parameters, thread=THREAD)))

    def newcomer(self, name):
        """Starts another server with the client's traces, without knowledge yet; returns it with its outputs."""
        server = Server(os.path.join(self.traces, "client"), "--cluster", self.broker.url, "--node", name)
        self.addCleanup(server.stop)
        outputs = f"/experiments/{server.first()['UUID']}/outputs"
        wait_for("the node says what it has", lambda: name in self.cluster.cards() and self.cluster.cards()[name].hosts)
        return server, outputs

    def test_fills_in(self):
        """Partial views: while one machine delays its answer, the others' parts are present."""
        server, outputs = self.newcomer("curious")
        asked = f"{outputs}/timeGraph/{PATH}"
        self.cluster.nodes["db"].freeze()
        self.addCleanup(self.cluster.nodes["db"].thaw)

        def with_web():
            answer = server.post(f"{asked}/tree", {"thread": THREAD}).json
            self.assertEqual(answer["status"], "RUNNING", answer["statusMessage"])
            return answer if "web" in machines_of(answer["model"]) else None
        answer = wait_for("the piece of web", with_web)
        self.assertIn("as far as other machines have told", answer["statusMessage"])
        self.assertEqual(machines_of(answer["model"]), {"client", "web"})
        told = [s for s in self.truth["segments"] if s["host"] == "web"]
        rows = {e["id"]: e["labels"] for e in answer["model"]["entries"] if e["labels"][1] == "web"}
        span = {"start": told[0]["begin"], "end": told[-1]["end"], "nbTimes": 10000}
        shown = server.post(f"{asked}/states", {"thread": THREAD, "requested_items": list(rows),
                                                "requested_timerange": span}).json["model"]["rows"]
        shown = [(x["start"], x["end"], key(x)) for row in shown for x in row["states"] if key(x)]
        told = [(s["begin"], s["end"], s["state"].upper().replace("-", "_")) for s in told]
        self.assertGreater(len(set(shown) & set(told)), 0)
        self.assertIn("PENDING", {state for _, _, state in shown})
        for begin, end, state in shown:  # exact instant at which the path leaves the row may be unknown yet
            if state != "PENDING":
                self.assertTrue(any(b < end and begin < e and state == s for b, e, s in told), (begin, end, state))
        self.cluster.nodes["db"].thaw()
        self.assertEqual(self.machines(server, outputs), set(HOSTS))

    def test_away(self):
        """Node that is gone: it is named where its piece is missing; the rest is present. All returns with it. Clients
        that had the piece keep it."""
        end = self.truth["query"]["end"]
        self.assertEqual(self.machines(self.server, self.outputs), set(HOSTS))
        self.cluster.nodes["web"].kill()
        self.assertEqual(self.machines(self.server, self.outputs, end=end - 1), set(HOSTS))
        other, outputs = self.newcomer("other")
        self.assertEqual(self.machines(other, outputs, end=end - 1), {"client"})
        notes = other.model(f"{outputs}/{PATH}/annotations",
                            {"thread": THREAD, "end": end - 1, "requested_timerange": {
                                "start": self.truth["query"]["begin"], "end": end}})["annotations"]
        self.assertIn("offline-node: web (10.77.0.12:8080)", json.dumps(notes))
        before = self.cluster.cards()["web"].instance
        self.cluster.nodes["web"].start()
        wait_for("web is back", lambda: self.cluster.cards()["web"].instance != before)
        self.cluster.settle()
        self.assertEqual(self.machines(other, outputs, end=end - 2), set(HOSTS))


class NoBroker(Case):
    def test_own_path_remains(self):
        """Path of the server's own traces: shown without a broker, with the reason for missing parts."""
        traces = scenario("three-tier")
        broker = Broker()
        self.addCleanup(broker.kill)
        server = Server(os.path.join(traces, "client"), "--cluster", broker.url, "--node", "client")
        self.addCleanup(server.stop)
        x = server.first()
        broker.kill()
        path = f"/experiments/{x['UUID']}/outputs/timeGraph/{PATH}/tree"
        answer = wait_for("the path", lambda: (lambda a: a if a["status"] != "RUNNING" else None)(
            server.post(path, {"thread": THREAD}).json))
        self.assertEqual(answer["status"], "COMPLETED")
        self.assertIn("not connected to the broker", answer["statusMessage"])
        self.assertEqual(machines_of(answer["model"]), {"client"})


if __name__ == "__main__":
    unittest.main()
