#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sessions of one machine in one boot, as each job of a batch system makes one: on whatever nodes they are, each is
present once."""
import json
import os
import random
import shutil

import test_worlds
from cluster_of import Cluster, wait_for
from coordinated import Coordinator
from test_cluster import Compared
from test_cluster_place import Placed
from tsp_server import THREAD_STATUS, Server
from weft_e2e import main, new_dice, scratch, weft
from world_path import Oracle
from world_trace import START_NS

DICE = new_dice(71)
LENGTH_NS = 10 * test_worlds.LENGTH_NS


class Sessions(Compared, Placed):
    """Two jobs on the machines h0, h1, …, each recorded by a session of its own."""

    def setUp(self):
        self.seeds = [DICE.getrandbits(32) for _ in range(2)]
        self.top = scratch()
        self.jobs = [self.job(number) for number in range(2)]

    def job(self, number, boot=0):
        """Makes a job's world; the traces are in TOP/job-NUMBER/HOST."""
        world = test_worlds.make(random.Random(self.seeds[number]), boot=boot, session=number,
                                 begin=1000 + number * LENGTH_NS)
        for host in world.hosts:
            host.recording.write(os.path.join(self.top, f"job-{number}", host.name, "kernel"))
        return world

    def near(self, verb, *options):
        return weft(verb, self.top, "--store", self.store, *options)

    def far(self, cluster, verb, *options):
        return weft(verb, "--cluster", cluster.broker.url, *options)

    def compare(self, cluster):
        """Checks that the cluster's answers equal those of one program with both."""
        for options in (("threads", "--all"), ("threads", "--sort", "network"), ("sync",), ("flows",)):
            near, far = (run(*options, "--format", "json") for run in (
                self.near, lambda verb, *more: self.far(cluster, verb, *more)))
            self.assertEqual((far.code, far.message, far.text), (near.code, near.message, near.text), options)
        for number, world in enumerate(self.jobs):
            for host in world.hosts[:2]:
                thread = max(host.threads, key=lambda t: len(t.intervals))
                begin, end = thread.intervals[1].begin, thread.intervals[-1].begin
                name = host.name + ("#2" if number and len(self.jobs[0].hosts) > host.number else "")
                for options in (["--no-sync"], []):
                    answer = self.same(cluster, [self.top], f"{name}:{thread.tid}", "--begin", START_NS + begin,
                                       "--end", START_NS + end, "-q", *options, store=self.store)
                    if options:
                        self.check_world(answer, thread, begin, end)
        near, far = (run("critpath", "--requests", "all", "--format", "json") for run in (
            self.near, lambda verb, *more: self.far(cluster, verb, *more)))
        self.assertEqual((far.code, far.message, far.text), (near.code, near.message, near.text))

    def check_world(self, answer, thread, begin, end):
        """The path is what happened in the job, by the machines' names alone."""
        rows = [(host.split("#")[0], *rest) for host, *rest in test_worlds.Worlds.rows(answer)]
        self.assertEqual(rows, Oracle().path(thread, begin, end))

    def test_each_is_there_once(self):
        self.store = scratch()
        hosts = {f"n{number}": os.path.join(self.top, f"job-{number}") for number in range(2)}
        threads = json.loads(self.near("threads", "--all", "--format", "json").text)
        self.assertEqual(sum(len(h.threads) for world in self.jobs for h in world.hosts),
                         sum(t["tid"] >= 100 for t in threads))
        cluster = self.start(hosts, ["n2"])
        self.compare(cluster)
        for host in sorted(json.loads(self.far(cluster, "place", "--format", "json").text)["hosts"],
                           key=lambda h: h["host"]):
            moved = self.place(cluster, "--move", f"{host['host']}=n2")
            self.assertEqual([m["result"] for m in moved["moves"]], ["moved; the old copy is kept"])
        wait_for("clocks are found", cluster.has_clocks)
        self.compare(cluster)
        for name in hosts:
            cluster.nodes[name].leave()
        self.rename(cluster.nodes["n2"])
        cluster.settle(*hosts)
        self.compare(cluster)

    def test_copies(self):
        """A copy of a session is that session, whatever else its node has."""
        self.store, copy = scratch(), scratch()
        shutil.copytree(self.top, copy, dirs_exist_ok=True)
        cluster = Cluster({"n0": [os.path.join(self.top, "job-0")], "n1": [copy],
                           "n2": [os.path.join(self.top, "job-1")]})
        self.addCleanup(cluster.stop)
        self.compare(cluster)
        for gone in ("n1", "n0"):
            cluster.nodes[gone].leave()
            if gone == "n1":
                self.compare(cluster)
        cluster.settle("n0", "n1")
        threads = json.loads(self.far(cluster, "threads", "--all", "--format", "json").text)
        self.assertEqual(sum(len(h.threads) for h in self.jobs[1].hosts), sum(t["tid"] >= 100 for t in threads))

    def test_coordinator(self):
        """Servers that have a session each: every thread of both is there."""
        servers = [Server("--name", "jobs", "--no-sync", os.path.join(self.top, f"job-{number}"), store=scratch())
                   for number in range(2)]
        for s in servers:
            self.addCleanup(s.stop)
        uuid = servers[0].first()["UUID"]
        for s in servers:
            s.opened(uuid)
        many = Coordinator(*[f"--server=s{i}={s.url}" for i, s in enumerate(servers)])
        self.addCleanup(many.stop)
        many.opened(uuid)
        entries = many.model(f"/experiments/{uuid}/outputs/timeGraph/{THREAD_STATUS}/tree")["entries"]
        self.assertEqual(len({e["id"] for e in entries}), len(entries))
        found = sorted(int(e["labels"][1]) for e in entries if e["parentId"] != -1 and int(e["labels"][1]) >= 100)
        self.assertEqual(found, sorted(t.tid for world in self.jobs for h in world.hosts for t in h.threads))

    def rename(self, node):
        """Traces received while keys were of a boot, whatever the session, are known by the session's key once
        opened."""
        directory = self.directory[node.name]
        notes = {os.path.join(directory, name, ".moved"): name for name in sorted(os.listdir(directory))
                 if not name.startswith(".")}
        self.assertEqual(len(notes), sum(len(world.hosts) for world in self.jobs))
        self.assertEqual(node.leave(), 0)
        before = {path: read(path) for path in notes}
        for path, name in notes.items():
            key = name[-16:]
            self.assertIn(key, before[path])
            with open(path, "w", encoding="ascii") as f:
                f.write(before[path].replace(key, "0123456789abcdef"))
        node.start()
        wait_for("the notes are written anew", lambda: {path: read(path) for path in notes} == before)


class Spread(Compared):
    """Sessions of several boots, each trace on nodes at random, some as copies. WEFT_SPREADS=N makes so many
    clusters."""

    def make(self, top):
        """{directory of a trace: world}"""
        traces = {}
        begin = 1000
        for boot in range(DICE.randint(1, 2)):
            for session in range(DICE.randint(1, 3)):
                world = test_worlds.make(random.Random(DICE.getrandbits(32)), boot=boot, session=session, begin=begin)
                begin += LENGTH_NS
                for host in world.hosts:
                    if not any(host.recording.cpus):
                        continue  # traces without events have no order in time, which names sessions
                    path = os.path.join(top, f"{boot}-{session}", host.name)
                    host.recording.write(os.path.join(path, "kernel"))
                    traces[path] = world
        return traces

    def spread(self, traces):
        """{node: directories}: each trace is on one node, or on two as a copy."""
        nodes = {f"n{i}": [] for i in range(DICE.randint(2, 4))}
        for path in sorted(traces):
            first, *others = DICE.sample(sorted(nodes), DICE.choice((1, 1, 2)))
            nodes[first].append(path)
            for node in others:
                nodes[node].append(shutil.copytree(path, os.path.join(scratch(), os.path.basename(path))))
        return {name: paths for name, paths in nodes.items() if paths}

    def compare(self, number):
        top, store = scratch(), scratch()
        traces = self.make(top)
        nodes = self.spread(traces)
        with self.subTest(number=number, nodes=nodes), Cluster(nodes, store=store) as cluster:
            far = weft("threads", "--all", "--cluster", cluster.broker.url, "--format", "json")
            near = weft("threads", "--all", top, "--store", store, "--format", "json")
            self.assertEqual((far.code, far.message, far.text), (near.code, near.message, near.text))
            rows = [r for r in json.loads(near.text) if r["tid"] >= 100]
            self.assertEqual(len(rows), sum(len(h.threads) for world in set(traces.values()) for h in world.hosts))
            for row in DICE.sample(rows, min(4, len(rows))):
                begin = row["begin"] + row["life"] // 4
                self.same(cluster, [top], f"{row['host']}:{row['tid']}", "--begin", begin, "--end",
                          begin + row["life"] // 2, "-q", store=store)

    def test_random(self):
        for number in range(int(os.environ.get("WEFT_SPREADS", 2))):
            self.compare(number)


def read(path):
    with open(path, encoding="ascii") as f:
        return f.read()


if __name__ == "__main__":
    main()
