#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Containers of two machines, by thread, against the pods' logs and the contexts of the recorded events."""
import json
import os
import re
import subprocess

from cluster_of import Cluster
from coordinated import PATH, Coordinator
from tsp_server import THREAD_STATUS, Server
from weft_e2e import Case, Truth, load, main, need, scenario, scratch, weft

BY_CONTAINER = "weft.selection.containers"

EVENT = re.compile(r" (\w+): \{ cpu_id = (\d+) \}, \{ pid_ns = (\d+), net_ns = (\d+),")
SWITCH = re.compile(r"prev_tid = (\d+).*next_tid = (\d+)")


def last_networks(path):
    """Returns {tid: network namespace of its last event}."""
    out = subprocess.run(["babeltrace2", path], check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    runs, last = {}, {}
    for line in out.decode().splitlines():
        found = EVENT.search(line)
        if not found:
            continue
        name, cpu, _, net = found.groups()
        switch = SWITCH.search(line) if name == "sched_switch" else None
        tid = int(switch[1]) if switch else runs.get(cpu)
        if tid and net != "0": # 0: it exits, and has left
            last[tid] = int(net)
        if switch:
            runs[cpu] = int(switch[2])
    return last


def tid_of(entry):
    return entry["metadata"].get("TID", [0])[0]


def container_of(entry):
    return entry["metadata"].get("Container", [None])[0]


def under(tree):
    """{id: (entry, first labels of the entries above, from the machine on)}"""
    out = {}
    for e in tree["entries"]:
        above = out.get(e["parentId"])
        out[e["id"]] = (e, (*above[1], above[0]["labels"][0]) if above else ())
    return out


class Pods(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = scenario("pods")
        cls.store = scratch()
        cls.truth = load(cls.path, "ground-truth.json")

    def threads(self, *more):
        run = self.ok("threads", "--store", self.store, "--format", "json", *more, self.path)
        return json.loads(run.text)

    def inits(self, host):
        return {name: line for name, pod in self.truth["log"].items() if pod["node"] == host
                for line in pod["lines"] if line["role"] == "init"}

    def test_what_pods_logged(self):
        where = {(t["host"], t["tid"]): t["container"] for t in self.threads()}
        n = 0
        for pod in self.truth["log"].values():
            for line in pod["lines"]:
                name = line["pod"]
                for tid in {line["pid"], line.get("tid", line["pid"])}:
                    told = where[pod["node"], tid]
                    self.assertTrue(told == name or (name == "agent" and told.endswith(f" {self.net_of(name)}")),
                                    (name, tid, told))
                    n += 1
        self.assertGreater(n, 100)

    def net_of(self, name):
        return next(line["net_ns"] for line in self.truth["log"][name]["lines"] if line["role"] == "init")

    def test_contexts(self):
        need("babeltrace2")
        threads, n = self.threads("--all"), 0
        for host in self.truth["nodes"]:
            names = {line["net_ns"]: name for name, line in self.inits(host).items()}
            last = last_networks(os.path.join(self.path, host))
            for t in (t for t in threads if t["host"] == host and t["tid"] in last):
                name = names.get(last[t["tid"]])
                told = t["container"]
                if name == "agent":
                    self.assertTrue(told.endswith(f" {last[t['tid']]}"), t)
                else:
                    self.assertEqual(told, name, t)
                n += bool(told)
        self.assertGreater(n, 20)

    def test_chosen(self):
        of_db = self.threads("--container", "db")
        self.assertEqual({(t["host"], t["container"]) for t in of_db}, {("node-a", "db")})
        self.assertEqual(len(of_db), len([t for t in self.threads() if t["container"] == "db"]))
        self.assertEqual({t["container"] for t in self.threads("--container", "c*")}, {"client", "cron"})
        self.assertEqual(self.threads("--container", "nobody"), [])
        self.assertNotIn("container", self.ok("threads", "--store", self.store, "--thread", "init", self.path).text)

    def test_cluster(self):
        """Nodes select by container, name containers, and give the container of a path."""
        with Cluster({host: [os.path.join(self.path, host)] for host in self.truth["nodes"]}) as cluster:
            for more in ([], ["--container", "*p*"]):
                run = self.ok("threads", "--cluster", cluster.broker.url, "--format", "json", *more)
                said, here = ({(t["host"], t["tid"], t["container"], t["running"]) for t in threads}
                              for threads in (json.loads(run.text), self.threads(*more)))
                self.assertEqual(said, here)
            self.assertEqual({c for _, _, c, _ in here if c.isalpha()}, {"proxy", "app"})
            self.shares_over(cluster)

    def shares_over(self, cluster):
        """Sums of paths are those of the traces, byte for byte."""
        thread, (_, interval) = ("--thread", "node-a:269"), next(self.requests_of_client())
        for asked in ((*thread, *interval), (*thread, "--format", "csv"), (*thread, "--format", "json", *interval),
                      ("--requests", "all"), ("--requests", "group=1,slowest=50%", "--format", "json")):
            far, near = (self.ok("critpath", *asked, "--by", "container", "--reference", "node-a", "-q", *of).text
                         for of in (("--cluster", cluster.broker.url), ("--store", self.store, self.path)))
            self.assertEqual(far, near, asked)
            self.assertIn("proxy", far)

    def requests_of_client(self):
        """(id, begin and end as options) of each that went over connections that were there"""
        truth = Truth(self.path)
        for line in self.truth["log"]["client"]["lines"]:
            if line["role"] == "client" and line["id"] > 1:
                yield line, [f"--{end}={truth.trace_time('node-a', line[t])}"
                             for end, t in (("begin", "t_send"), ("end", "t_recv"))]

    def path_of(self, *more):
        return self.json("critpath", "--store", self.store, "--thread", "node-a:269", "--reference", "node-a", "-q",
                         *more, self.path)

    def test_shares_of_paths(self):
        """Shares of a request's path: each pod has at least the time its program logged from message to message."""
        served = {name: {x["id"]: x for x in self.truth["log"][name]["lines"] if x["role"] == "server"}
                  for name in ("proxy", "app", "db")}
        n = 0
        for line, interval in self.requests_of_client():
            sums = self.path_of("--by", "container", *interval)
            self.assertEqual(sum(x["duration"] for x in sums), line["t_recv"] - line["t_send"])
            self.assertEqual([x["duration"] for x in sums], sorted((x["duration"] for x in sums), reverse=True))
            had = {x["container"]: x for x in sums if x["container"]}
            self.assertEqual(set(had), {"client", *served}, line)
            for name, of in served.items():
                x = of[line["id"]]
                alone = x["t_reply"] - x["t_recv"] - (x["t_down_recv"] - x["t_down_send"])
                self.assertEqual(had[name]["host"], self.truth["log"][name]["node"])
                self.assertGreaterEqual(had[name]["duration"] - had[name]["network"], alone, (name, line))
                n += 1
        self.assertEqual(n, 57)

    def test_shares_are_those_of_threads(self):
        where = {(t["host"], t["tid"]): t["container"] for t in self.threads("--all") if t["tid"]}
        _, interval = next(self.requests_of_client())
        sums, network = {}, {}
        for x in self.path_of(*interval)["totals"]:
            key = x["host"], where.get((x["host"], x["tid"]))
            sums[key] = sums.get(key, 0) + x["duration"]
            network[key] = network.get(key, 0) + (x["duration"] if x["state"] == "network" else 0)
        told = {(x["host"], x["container"]): x for x in self.path_of("--by", "container", *interval)}
        self.assertEqual({key: x["duration"] for key, x in told.items()}, sums)
        self.assertEqual({key: x["network"] for key, x in told.items()}, network)

    def test_shares_of_many_paths(self):
        def totals(*more):
            return self.json("critpath", "--store", self.store, "--requests", "all", "-q", *more, self.path)
        by_name, by_container = totals(), totals("--by", "container")
        self.assertEqual({x["container"] for x in by_container["totals"] if x["host"] == "node-a"},
                         {None, "proxy", "db"})
        for host in self.truth["nodes"]:
            all_of = [[x["duration"] for x in told["totals"] if x["host"] == host] for told in (by_name, by_container)]
            self.assertEqual(*map(sum, all_of))

    def test_shares_are_refused(self):
        for words, why in ((["--by", "pod"], "--by pod: give container"),
                           (["--by", "container", "--compare", "node-a:269,,"], "leave --aggregate, --by")):
            run = weft("critpath", "--thread", "node-a:269", *words, self.path, "--store", self.store)
            self.assertEqual(run.code, 2, run)
            self.assertIn(why, run.message)

    def test_server(self):
        with Server(self.path, store=self.store) as server:
            self.served(server, server.first())

    def test_coordinator(self):
        """Coordinator of a server for each machine: containers are identified by machine and name."""
        paths = {host: f"{host}={os.path.join(self.path, host)}" for host in self.truth["nodes"]}
        servers = [Server("--no-sync", "--name", "pods", path, store=scratch()) for path in paths.values()]
        try:
            uuid = servers[0].first()["UUID"]
            servers[1].opened(uuid)
            with Coordinator(*[f"--server={h}={s.url}" for h, s in zip(paths, servers)]) as many:
                self.served(many, many.opened(uuid))
        finally:
            for s in servers:
                s.stop()

    def served(self, server, x):
        """Checks that the server's containers equal those of `weft threads`."""
        at = f"/experiments/{x['UUID']}/outputs"
        told = {(t["host"], t["tid"]): t["container"] for t in self.threads("--all") if t["tid"]}
        status = f"{at}/timeGraph/{THREAD_STATUS}"
        plain, grouped = (under(server.model(f"{status}/tree", p)) for p in ({}, {"group_by": "container"}))
        of = {i: container_of(e) for i, (e, above) in plain.items() if tid_of(e)}
        self.assertEqual({(above[0], tid_of(e)): of[i] for i, (e, above) in plain.items() if i in of}, told)
        groups = {i: (*above, e["labels"][0]) for i, (e, above) in grouped.items()
                  if "TID" not in e["metadata"] and above}
        self.assertEqual(set(groups.values()), {(host, c) for (host, _), c in told.items() if c})
        self.assertEqual(len(groups), len(set(groups.values())))
        self.assertEqual(set(grouped) - set(groups), set(plain))
        for e, above in (grouped[i] for i in of):
            below = above[1] if (above[0], *above[1:2]) in groups.values() else None
            self.assertEqual(below, told[above[0], tid_of(e)], above)
        self.filtered(server, status, x, of)
        times = under(server.model(f"{at}/data/{BY_CONTAINER}/tree",
                                   {"requested_timerange": {"start": x["start"], "end": x["end"]}}))
        parts = [(above[0], e) for e, above in times.values() if above]
        self.assertEqual({(host, container_of(e)) for host, e in parts if container_of(e)}, set(groups.values()))
        for e in (e for e, above in times.values() if not above):
            of_parts = [p["metadata"]["running"][0] for host, p in parts if host == e["labels"][0]]
            self.assertEqual(sum(of_parts), e["metadata"]["running"][0])
            self.assertGreater(min(of_parts), 0)

    def test_path_served(self):
        """View of a path with containers, and grouped by them: sums are those of `weft critpath`."""
        line, interval = next(self.requests_of_client())
        begin, end = (int(word.split("=")[1]) for word in interval)
        told = {(x["host"], x["container"]): x for x in self.path_of("--by", "container", *interval)}
        where = {(t["host"], t["tid"]): t["container"] for t in self.threads("--all") if t["tid"]}
        with Server("--reference", "node-a", self.path, store=self.store) as server:
            at = f"/experiments/{server.first()['UUID']}/outputs/timeGraph/{PATH}"
            asked = {"thread": "node-a:269", "begin": begin, "end": end}
            plain, grouped = (under(server.model(f"{at}/tree", {**asked, **more}))
                              for more in ({}, {"group_by": "container"}))
        threads = {i: e for i, (e, _) in plain.items() if "TID" in e["metadata"]}
        self.assertEqual({i: container_of(e) for i, e in threads.items()},
                         {i: where[e["labels"][1], tid_of(e)] for i, e in threads.items()})
        groups = {i: e for i, (e, above) in grouped.items() if above and i not in plain}
        self.assertEqual({(e["labels"][1], container_of(e)): e["metadata"]["sum"][0] for e in groups.values()},
                         {key: x["duration"] for key, x in told.items() if key[1]})
        self.assertEqual({e["metadata"].get("network", [0])[0] for e in groups.values()},
                         {x["network"] for key, x in told.items() if key[1]})
        self.assertEqual(set(grouped) - set(groups), set(plain))
        for i, e in threads.items():
            self.assertEqual(grouped[i][1], (e["labels"][1], container_of(e)))

    def filtered(self, server, status, x, of):
        """States of the threads of one container pass a filter for it, all others do not."""
        model = server.model(f"{status}/states", {
            "requested_timerange": {"start": x["start"], "end": x["end"], "nbTimes": 200}, "requested_items": list(of),
            "filter_query_parameters": {"strategy": "DEEP", "filter_expressions_map": {"4": ["container == proxy"]}}})
        left = {r["entryId"] for r in model["rows"] if any(s.get("style") or s.get("label") for s in r["states"])}
        self.assertEqual({of[i] for i in left}, {"proxy"})


if __name__ == "__main__":
    main()
