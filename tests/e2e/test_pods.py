#!/usr/bin/env python3
"""Containers of two machines: which one each thread is in, against what the pods logged and what the contexts of the
recorded events say."""
import json
import os
import re
import subprocess

from weft_e2e import Case, load, main, need, scenario, scratch

EVENT = re.compile(r" (\w+): \{ cpu_id = (\d+) \}, \{ pid_ns = (\d+), net_ns = (\d+),")
SWITCH = re.compile(r"prev_tid = (\d+).*next_tid = (\d+)")


def last_networks(path):
    """{tid: the network namespace that its last event tells}"""
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


if __name__ == "__main__":
    main()
