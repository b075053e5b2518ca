# SPDX-License-Identifier: MIT
"""`weft requests` on nginx, an application behind it, and PostgreSQL under load, against what the client and the
application logged: every request is found with its times, and groups name the queries that were slow, and why."""
import collections

from tsp_server import Server
from weft_e2e import Case, Truth, load, main, scenario, scratch

MS = 1_000_000
PATHS = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"
SLOW = ("compute", "disk", "hold", "lock")
TIERS = ("nginx", "webapp", "postgres")


class Web(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace, cls.store = scenario("nginx-postgresql"), scratch()
        cls.truth, log = Truth(cls.trace), load(cls.trace, "ground-truth.json")
        cls.asked = sorted(log["client"], key=lambda x: x["t_send"])
        cls.app = {x["id"]: x for x in log["app"] if x["id"]}

    def setUp(self):
        self.maps = self.sync(self.trace, self.store, "--reference", "client")[1]
        self.answer = self.json("requests", self.trace, "--store", self.store, "--reference", "client", "-q")
        self.groups = {g["id"]: g for g in self.answer["groups"]}
        self.told = collections.defaultdict(list)
        for r in sorted(self.answer["requests"], key=lambda r: r["begin"]):
            self.told[r["comm"]].append(r)

    def of_web(self, monotonic):
        return self.maps["web"].to_reference(self.truth.trace_time("web", monotonic))

    def by_id(self):
        """{tier: {id: request}}, by threads and times alone."""
        out = {tier: {} for tier in TIERS}
        for x in self.asked:
            sent = self.truth.trace_time("client", x["t_send"])
            out["nginx"][x["id"]] = self.one("nginx", "client", x["tid"], sent)
        for i, x in self.app.items():
            out["postgres"][i] = self.one("postgres", "web", x["tid"], self.of_web(x["t_query"]))
            # Last message of the application's thread before its database query.
            out["webapp"][i] = [r for r in self.told["webapp"]
                                if r["tid"] == x["tid"] and r["begin"] <= self.of_web(x["t_query"])][-1]
        return out

    def one(self, tier, host, tid, sent):
        """Query of that thread, soon after."""
        found = next(r for r in self.told[tier] if (r["client"]["host"], r["client"]["tid"]) == (host, tid)
                     and r["client"]["begin"] >= sent - 1000)
        self.assertLess(found["client"]["begin"] - sent, 10 * MS)
        return found

    def test_every_request(self):
        self.assertEqual({tier: len(found) for tier, found in self.told.items()},
                         {tier: len(self.asked) for tier in TIERS})
        found = self.by_id()
        for tier in TIERS:
            self.assertEqual(len({(r["tid"], r["begin"]) for r in found[tier].values()}), len(self.asked))
        for x in self.asked:
            with self.subTest(x=x):
                front, back, app = found["nginx"][x["id"]], found["postgres"][x["id"]], self.app[x["id"]]
                came = self.truth.trace_time("client", x["t_recv"])
                self.assertTrue(0 <= came - front["client"]["end"] < 5 * MS, came - front["client"]["end"])
                self.assertTrue(0 <= x["t_recv"] - x["t_send"] - (front["end"] - front["begin"]) < 10 * MS)
                self.assertEqual(back["tid"], app["backend"])
                self.assertTrue(0 <= app["t_answer"] - app["t_query"] - (back["end"] - back["begin"]) < 10 * MS)
                self.assertEqual(found["webapp"][x["id"]]["client"]["comm"], "nginx")

    def groups_of(self, tier):
        """{kind: {group: count}}"""
        out, found = collections.defaultdict(collections.Counter), self.by_id()[tier]
        for x in self.asked:
            out[x["kind"]][found[x["id"]]["group"]] += 1
        return out

    def most(self, group):
        """Returns the greatest part of the group's requests."""
        p = self.groups[group]["shape"][0]
        return p["host"], "another " * p.get("another", False) + p["comm"], p["state"]

    def test_what_was_slow(self):
        for tier in TIERS:
            with self.subTest(tier=tier):
                kinds = self.groups_of(tier)
                (disk, n), = kinds["disk"].items()
                self.assertEqual((n, self.most(disk)), (4, ("db", "postgres", "block-device")))
                self.assertLessEqual(self.groups[disk]["count"], 5)
                (hold, n), = kinds["hold"].items()
                self.assertEqual((n, self.most(hold)), (3, ("db", "postgres", "timer")))
                self.assertFalse({disk, hold} & set(kinds["key"]) and tier == "nginx")
                # Locks that were waited for: what held them slept.
                lock, n = kinds["lock"].most_common(1)[0]
                self.assertEqual(self.most(lock), ("db", "another postgres", "timer"))
                self.assertEqual(self.groups[lock]["count"], n)
                self.assertEqual(n, 2 if tier == "nginx" else 3)  # the third came with another reply
                self.check_compute(tier, kinds)

    def check_compute(self, tier, kinds):
        """Checks computing tiers: even if most of a quick request is computing, it is what grew."""
        (compute, n), = kinds["compute"].items()
        group = self.groups[compute]
        self.assertEqual((n, self.most(compute)), (4, ("db", "postgres", "running")))
        if tier == "nginx":
            self.assertEqual(group["count"], 4)
            return
        self.assertEqual(group["count"], 4 + kinds["key"][compute])
        grew = group["grew"][0]
        self.assertEqual((grew["host"], grew["comm"], grew["state"]), ("db", "postgres", "running"))
        self.assertGreater(grew["slow"], 8 * grew["typical"])

    def test_others_are_left_out(self):
        """nginx serves four connections with one thread: what a request waited for is not what clients waited for in
        between, to ask the next thing. (But where two messages came while it slept, the first one shows.)"""
        clients = [r for r in self.told["nginx"] if "client" in r["machines"]]
        self.assertLess(len(clients), len(self.asked) // 10)
        found = self.by_id()["nginx"]
        for x in self.asked:
            if x["kind"] in ("compute", "disk", "hold"):
                self.check_own(x, found[x["id"]])

    def check_own(self, x, front):
        self.assertEqual(front["machines"], ["web", "db"])
        sent, came = (self.truth.trace_time("client", x[k]) for k in ("t_send", "t_recv"))
        for thread, begin, end in ((f"client:{x['tid']}", sent, came), (f"web:{front['tid']}", front["begin"],
                                                                        front["end"])):
            asked = (self.trace, self.store, thread, begin, end, "--reference", "client")
            path = self.critpath(*asked, "--request")
            self.assertLessEqual({(s["host"], s["tid"]) for s in path["segments"] if s["host"] == "client"},
                                 {("client", x["tid"])})
            took, state = collections.Counter(), {"compute": "running", "disk": "block-device", "hold": "timer"}
            for s in path["segments"]:
                took[s["host"], s["tid"], s["state"]] += s["end"] - s["begin"]
            most, ns = took.most_common(1)[0]
            self.assertEqual(most, ("db", self.app[x["id"]]["backend"], state[x["kind"]]))
            self.assertGreater(ns, (came - sent) * 3 // 4)
            if x["kind"] == "hold":
                self.assertTrue(0 <= ns - 250 * MS < 5 * MS, ns)
            # Path of the thread, with everything that happened meanwhile.
            everything = self.critpath(*asked)["segments"]
            self.assertTrue(any(s["host"] == "client" and s["tid"] != x["tid"] for s in everything))

    def test_served(self):
        """A path in a viewer is that of the verb."""
        with Server(self.trace, store=self.store) as server:
            tree = f"/experiments/{server.first()['UUID']}/outputs/timeGraph/{PATHS}/tree"
            slowest = self.json("requests", self.trace, "--store", self.store, "-q")["requests"][0]
            thread, begin, end = f"{slowest['host']}:{slowest['tid']}", slowest["begin"], slowest["end"]
            said = set()
            for options, more in (((), {}), (("--request",), {"request": True})):
                path = self.critpath(self.trace, self.store, thread, begin, end, *options)
                asked = {"thread": thread, "begin": begin, "end": end, **more}
                first = server.model(tree, asked)["entries"][0]
                self.assertEqual(first["metadata"]["sentence"], [path["sentence"]])
                said.add(path["sentence"])
            self.assertEqual(len(said), 2)


if __name__ == "__main__":
    main()
