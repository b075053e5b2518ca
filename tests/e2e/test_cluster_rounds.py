# SPDX-License-Identifier: MIT
"""Nodes that are far from their broker: a query costs as many round trips as the rounds in its answer, and one for
finding the thread; each node is queried once per round. Durations: bench/cluster.py --delay."""
import json
import os

import test_cluster_patterns as patterns
from cluster_of import Broker, Cluster
from delaying import Delay, depth_of
from test_cluster import Compared, hosts_of
from test_cluster_asked import Asker
from weft_e2e import SLOWDOWN, main, new_dice, scenario

DELAY_S = 0.02
DICE = new_dice(45)
QUESTIONS = max(3, 12 // SLOWDOWN)


class FarBroker(Compared):
    def start(self, hosts):
        """Starts a cluster. hosts: {name: traces}. The client is beside the broker."""
        broker = Broker()
        self.delay = Delay(broker.port, DELAY_S)
        self.addCleanup(self.delay.stop)
        cluster = Cluster({}, broker=broker)
        self.addCleanup(cluster.stop)
        for name, path in hosts.items():
            cluster.add(name, path, url=self.delay.url)
        cluster.settle()
        return cluster

    def asked(self, cluster, thread, *options):
        """Returns the answer, or None if there is none."""
        self.delay.forget()
        run = cluster.ask(thread, *options)
        if run.code:
            return None
        answer = json.loads(run.out)
        rounds = answer["cost"]["rounds"]
        self.assertEqual(self.delay.trips, rounds + 1, answer["cost"])
        self.assertLessEqual(set(self.delay.questions), set(answer["cost"]["nodes"]) | {answer["query"]["host"]})
        for node, questions in self.delay.questions.items():
            self.assertLessEqual(questions, rounds + (node == answer["query"]["host"]), node)
        return answer

    def test_recorded(self):
        recording = scenario("three-tier")
        cluster = self.start(hosts_of(recording))
        answers = [self.asked(cluster, thread, *options)
                   for thread, options in self.questions(recording, cluster.store, QUESTIONS) if thread.count(":")]
        self.assertTrue(any(a["cost"]["rounds"] > 1 for a in answers if a))

    def made(self, *how):
        made = patterns.make(*how)
        cluster = self.start({h.name: os.path.join(made.folder, h.name) for h in made.hosts})
        for thread, begin, end in DICE.sample(list(made.windows()), QUESTIONS):
            yield self.asked(cluster, thread, *patterns.window(begin, end), "--reference", made.hosts[0].name)

    def test_copies(self):
        """A copy goes back and forth between two machines, many times: rounds are by how deep it is, not how long."""
        for answer in self.made("scp", 4, "files=3"):
            self.assertLessEqual(answer["cost"]["rounds"], depth_of(answer) + 1)
            self.assertLessEqual(depth_of(answer), 2)
            self.assertGreater(sum(link["kind"] == "network" for link in answer["links"]), 8)

    def test_supersteps(self):
        for answer in self.made("mpi", 4, "mix=random"):
            self.assertGreater(answer["cost"]["rounds"], 1)


class Remembers(Compared):
    def test_tables_are_read_when_they_have_changed(self):
        """The second question reads no card and no clock; one after a node came reads cards."""
        traces = hosts_of(scenario("three-tier"))
        with Cluster({h: [path] for h, path in traces.items()}) as cluster:
            delay = Delay(cluster.broker.port, 0)
            self.addCleanup(delay.stop)
            asker = Asker("client", delay.url)
            self.addCleanup(asker.stop)
            thread = json.loads(cluster.ask("client:204", "--reference", "client").out)["query"]
            question = ("client:204", thread["begin"], thread["end"])
            looks = [("STREAM.INFO", "weft_weft_clocks"), ("STREAM.INFO", "weft_weft_nodes")]
            first = asker.ask(*question)
            self.assertIn(("CONSUMER.CREATE", "weft_weft_nodes"), delay.of_tables)
            self.assertGreater(first["cost"]["messages"], 0)
            for _ in range(2):
                delay.forget()
                again = asker.ask(*question)
                self.assertEqual(again["segments"], first["segments"])
                self.assertEqual(sorted(delay.of_tables), looks)
            delay.forget()
            cluster.add("another", traces["db"])
            cluster.settle()
            self.assertEqual(asker.ask(*question)["segments"], first["segments"])
            self.assertIn(("CONSUMER.CREATE", "weft_weft_nodes"), delay.of_tables)


if __name__ == "__main__":
    main()
