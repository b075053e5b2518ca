# SPDX-License-Identifier: MIT
"""Three brokers of which one is lost: with tables that all three keep, every question is answered as before."""
from cluster_of import Brokers, Cluster, wait_for
from test_cluster import Compared, hosts_of
from weft_e2e import main, scenario, weft

THREAD = "client:204"


class Replicas(Compared):
    def setUp(self):
        self.recording = scenario("three-tier")
        self.cluster = Cluster({}, broker=Brokers())
        self.addCleanup(self.cluster.stop)

    def start(self, *options):
        for host, path in hosts_of(self.recording).items():
            self.cluster.add(host, path, options=options)
        self.cluster.settle()

    def ask(self, thread):
        """An answer. A table may lose its leader again while brokers are slow: that the question failed is said, and it
        is asked again."""
        def answer():
            run = self.cluster.ask(thread)
            return run if run.code != 1 or "in time" not in run.message else None
        return wait_for("an answer", answer)

    def replicas(self):
        """{stream: how many brokers have it}"""
        broker = self.cluster.broker.running()
        names = broker.ask("$JS.API.STREAM.NAMES")["streams"]
        return {n: broker.ask(f"$JS.API.STREAM.INFO.{n}")["config"]["num_replicas"] for n in names}

    def test_each_may_be_lost(self):
        self.start("--replicas", "3")
        self.assertEqual(set(self.replicas().values()), {3}, self.replicas())
        self.same(self.cluster, [self.recording], THREAD)
        for broker in self.cluster.broker.all:
            broker.kill()
            wait_for("the others have a leader", lambda: self.cluster.ask(THREAD).code == 0)
            for _ in range(5):
                self.same(self.cluster, [self.recording], THREAD, ask=self.ask)
            broker.start()
            wait_for("it is back", lambda broker=broker: self.cluster.broker.has_leader(broker))

    def test_tables_that_one_broker_has_are_given_to_three(self):
        self.start()
        self.assertEqual(set(self.replicas().values()), {1}, self.replicas())
        run = weft("threads", "--cluster", self.cluster.broker.url, "--replicas", "3")
        self.assertEqual(run.code, 0, run)
        self.assertEqual(self.replicas()["KV_weft_weft_nodes"], 3)

    def test_more_than_there_are(self):
        run = weft("threads", "--cluster", self.cluster.broker.url, "--replicas", "5")
        self.assertEqual(run.code, 1, run)
        self.assertRegex(run.message, r"table weft_weft_\w+: there are too few brokers .* 5 times")


if __name__ == "__main__":
    main()
