# SPDX-License-Identifier: MIT
"""Containers on two machines, joined by VXLAN behind bridges and translated addresses (examples/pods.tar.xz), against
what their programs logged, what babeltrace2 counted at each card, and the clocks as they were."""
import collections
import itertools
import re

from weft_e2e import Case, Truth, load, main, scenario, scratch

CHAIN = ("proxy", "app", "db")
MACHINES = ("10.77.0.11", "10.77.0.12")
COUNTED = re.compile(r"(\d+) packets of tunnels are not counted; what (\d+) of them carried")
TRANSLATED = re.compile(r"(\d+) datagrams had their addresses translated")


class Pods(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace, cls.store = scenario("pods"), scratch()
        cls.truth, cls.log = Truth(cls.trace), load(cls.trace, "ground-truth.json")["log"]
        cls.cards = load(cls.trace, "verify.json")["cards"]
        # (machine, thread): pod
        cls.pod = {(pod["node"], x.get("tid", x["pid"])): name
                   for name, pod in cls.log.items() for x in pod["lines"]}
        cls.asked = sorted((x for name in ("client", "cron") for x in cls.log[name]["lines"] if x["role"] == "client"),
                           key=lambda x: x["t_send"])

    def trace_time(self, pod, monotonic):
        return self.truth.trace_time(self.log[pod]["node"], monotonic)

    def served(self, pod):
        """{id of the request: what its server logged}"""
        return {x["id"]: x for x in self.log[pod]["lines"] if x["role"] == "server"}

    def counted(self, event, device, by):
        """{(source, destination): packets} of a kind of device, over both machines, by babeltrace2."""
        out = collections.Counter()
        for machine, seen in self.cards.items():
            for x in seen:
                if x["event"] == event and x["device"] == device and x["protocol"] in by:
                    out[machine, x["source"], x["destination"]] += x["packets"]
        return out

    def test_each_packet_counts_once(self):
        run = self.ok("flows", self.trace, "--store", self.store, "--connections", "--format", "json")
        rows = self.json("flows", self.trace, "--store", self.store, "--connections", "-q")
        sent, came = collections.Counter(), collections.Counter()
        for r in rows:
            ends = tuple(r[end].rsplit(":", 1)[0] for end in ("source", "destination"))
            self.assertFalse(set(ends) & set(MACHINES), f"what carries others is nobody's: {r}")
            if r["from"] in self.cards:
                sent[(r["from"], *ends)] += r["packets"]
            if r["to"] in self.cards:
                came[(r["to"], *ends)] += r["received_packets"]
        protocols = ("_tcp", "_udp")
        out = self.counted("net_dev_queue", "eth0", protocols)
        around = sum(n for (_, source, _), n in out.items() if source in MACHINES)
        # Pods' cards and machines' have one name. A machine's shows what comes out of the tunnel under its addresses.
        cards, tunnel = (self.counted("net_if_receive_skb", device, protocols) for device in ("eth0", "flannel.1"))
        self.assertEqual(sent, collections.Counter({k: n for k, n in out.items() if k[1] not in MACHINES}))
        self.assertEqual(came, cards - tunnel)
        self.assertEqual([int(n) for n in COUNTED.search(run.message).groups()], [around, 0])
        service = self.counted("net_dev_queue", "eth0", ("_udp",))
        translated = sum(n for (_, source, to), n in service.items() if "10.96.0.53" in (source, to)) * 2
        self.assertGreater(translated, 0)
        self.assertEqual(int(TRANSLATED.search(run.message)[1]), translated)

    def test_who_asked(self):
        found = self.json("requests", self.trace, "--store", self.store, "--reference", "node-a", "-q")["requests"]
        maps = self.sync(self.trace, self.store, "--reference", "node-a")[1]
        by_thread = collections.defaultdict(list)
        for r in sorted(found, key=lambda r: r["begin"]):
            by_thread[r["host"], r["tid"]].append(r)
        askers = {x["id"]: (self.log["client" if x["id"] < 100 else "cron"]["node"], x["tid"]) for x in self.asked}
        self.assertEqual(len(askers), 26)
        for pod in CHAIN:
            machine, next_askers, right = self.log[pod]["node"], {}, 0
            for i, x in self.served(pod).items():
                got = maps[machine].to_reference(self.trace_time(pod, x["t_recv"]))
                r = [r for r in by_thread[machine, x["tid"]] if r["begin"] <= got][-1]
                self.assertLessEqual(got, r["end"], (pod, i))
                self.assertEqual((r["client"]["host"], r["client"]["tid"]), askers[i], (pod, i))
                next_askers[i] = (machine, x["tid"])
                right += 1
            self.assertEqual(right, 26, pod)
            self.assertEqual(sum(len(by_thread[key]) for key in set(next_askers.values())), 26, pod)
            askers = next_askers

    def test_paths_go_through_all(self):
        before = {}
        for x in self.asked:
            pod = "client" if x["id"] < 100 else "cron"
            begin, end = (self.trace_time(pod, x[t]) for t in ("t_send", "t_recv"))
            if pod == "cron":  # pod that connects first; its peer begins to serve then
                begin = before.get(pod, begin)
            before[pod] = end
            answer = self.critpath(self.trace, self.store, f"node-a:{x['tid']}", begin, end, "--reference", "node-a",
                                   "-q")
            self.assertEqual(answer["unexplained"], [], x["id"])
            way = [self.pod.get((s["host"], s["tid"])) for s in answer["segments"]]
            way = [name for name, _ in itertools.groupby(name for name in way if name)]
            self.assertEqual(list(dict.fromkeys(way)), [pod, *CHAIN], (x["id"], way))
            back = way[len(way) - 1 - way[::-1].index("db"):]
            self.assertEqual(back, ["db", "app", "proxy", pod], (x["id"], way))

    def test_clocks(self):
        maps = self.sync(self.trace, self.store, "--reference", "node-a")[1]
        pieces = maps["node-b"].pieces
        for p in pieces:
            for end in ("begin", "end"):
                true = self.truth.convert("node-b", "node-a", p[end])
                self.assertLessEqual(abs(maps["node-b"].to_reference(p[end]) - true), p[f"error_ns_{end}"] + 1)
        self.assertLess(min(p[f"error_ns_{end}"] for p in pieces for end in ("begin", "end")), 400_000)


if __name__ == "__main__":
    main()
