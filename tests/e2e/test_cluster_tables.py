# SPDX-License-Identifier: MIT
"""Data that the nodes share through the broker's tables: clocks survive the loss of the host that relates the others,
and damaged or purged entries are restored by their owners."""
import json

from cluster_of import Cluster, wait_for
from test_cluster import Compared, bare, hosts_of
from weft_e2e import SLOWDOWN, main, scenario, weft

THREAD = "client:204"
TIMEOUT = ("--timeout", f"{4 * min(SLOWDOWN, 5)}s")
CLOCKS, NODES, ROUTES, SERVERS = ("weft_weft_" + name for name in ("clocks", "nodes", "routes", "servers"))


class Three(Compared):
    """Three machines, a node each: client talks to web, and web to db, so web alone relates the other two."""

    def setUp(self):
        self.recording = scenario("three-tier")
        self.hosts = hosts_of(self.recording)
        self.cluster = Cluster({})
        self.addCleanup(self.cluster.stop)
        for host in ("client", "db", "web"):
            self.cluster.add(host, self.hosts[host])
            self.cluster.settle()
        self.full = self.same(self.cluster, [self.recording], THREAD)

    def keeper(self):
        return wait_for("one keeps the clocks",
                        lambda: self.cluster.broker.table("weft_weft_keeper").get("keeper")).decode()

    def head(self):
        return self.cluster.broker.table(CLOCKS)["head"]

    def flows(self):
        return weft("flows", "--cluster", self.cluster.broker.url, "--format", "json", *TIMEOUT)


class Clocks(Three):
    def lose(self):
        """Kills web, then the clock leader, which has gathered packets; another node becomes leader."""
        self.cluster.nodes["web"].kill()
        if self.keeper() != "web":
            first = self.cluster.nodes[self.keeper()]
            first.kill()
            wait_for("another one keeps them", lambda: self.keeper() not in ("web", first.name))
            first.start()
            wait_for("it is back", lambda: self.cluster.is_its(first.name, self.cluster.cards()[first.name]))
        self.assertNotEqual(self.keeper(), "web")

    def has_packets(self):
        run = self.flows()
        return run.code == 3 and "being gathered" not in run.message

    def related(self, *options):
        """A path on the clock of a host that only web relates."""
        run = self.cluster.ask(THREAD, "--reference", "db", *TIMEOUT, *options)
        self.assertEqual(run.code, 3, run)  # web is away
        self.assertNotIn("relates", run.message)
        near = self.local([self.recording], self.cluster.store, THREAD, "--reference", "db")
        query = json.loads(near.out)["query"]
        self.assertEqual({k: json.loads(run.out)["query"][k] for k in query}, query)

    def test_a_question_that_only_reads(self):
        """The packets that it needs are gathered anew, without those of web: clocks stay."""
        self.lose()
        head = self.head()
        wait_for("packets were gathered", self.has_packets)
        self.assertEqual(self.head(), head)
        self.related()
        self.cluster.nodes["web"].start()
        self.cluster.settle()
        self.assertEqual(bare(self.same(self.cluster, [self.recording], THREAD)), bare(self.full))

    def test_another_machine_comes(self):
        """New clocks are found while web is away: what was known of it stays."""
        self.lose()
        head = self.head()
        other = hosts_of(scenario("bsp"))["n1"]
        self.cluster.add("n1", other)
        wait_for("new clocks", lambda: self.head() != head)
        self.related()
        self.cluster.nodes["web"].start()
        self.cluster.settle()
        self.same(self.cluster, [self.recording, other], THREAD)


class Damaged(Three):
    """Damaged tables: no query waits for more than some seconds."""

    def put(self, table, key, data):
        with self.cluster.broker.connect() as f:
            f.write(b"PUB $KV.%s.%s %d\r\n%s\r\nPING\r\n" % (table.encode(), key.encode(), len(data), data))
            f.flush()
            while not f.readline().startswith(b"PONG"):
                pass

    def purge(self, table):
        """Purges a table without any message about it."""
        answer = self.cluster.broker.ask(f"$JS.API.STREAM.PURGE.KV_{table}")
        self.assertTrue(answer.get("success"), answer)
        self.assertEqual(self.cluster.broker.table(table), {})

    def recovers(self):
        self.same(self.cluster, [self.recording], THREAD)

    def test_all(self):
        for damage in (self.head_of_the_clocks, self.part_of_the_clocks, self.purged_clocks, self.cards,
                       self.purged_cards, self.purged_routes_and_servers, self.damaged_route):
            with self.subTest(damage.__name__):
                damage()

    def again(self, what, table, *keys):
        wait_for(f"{what} is there again", lambda: set(keys) <= set(self.cluster.broker.table(table)))

    def head_of_the_clocks(self):
        for garbage in (b"", b"garbage", self.head()[:-3], b"\1" + 200 * b"\xff"):
            self.put(CLOCKS, "head", garbage)
            wait_for("it is good again", lambda: self.head()[:1] == b"\1" and len(self.head()) > 60
                     and self.head() != garbage)
            self.recovers()

    def part_of_the_clocks(self):
        part = next(key for key in self.cluster.broker.table(CLOCKS) if key != "head")
        self.put(CLOCKS, part, b"garbage")
        wait_for("another one", lambda: self.cluster.broker.table(CLOCKS).get(part) != b"garbage")
        self.recovers()

    def purged_clocks(self):
        self.purge(CLOCKS)
        self.again("the head", CLOCKS, "head")
        self.recovers()

    def cards(self):
        good = self.cluster.broker.table(NODES)
        for garbage in (b"", b"garbage", good["web"][:-5], good["db"]):
            self.put(NODES, "web", garbage)
            wait_for("it is good again", lambda: self.cluster.broker.table(NODES)["web"] not in (garbage, b""))
            self.assertEqual(self.cluster.cards()["web"].hosts, 1)
        self.recovers()

    def purged_cards(self):
        self.purge(NODES)
        self.again("each card", NODES, "client", "db", "web")
        self.recovers()

    def purged_routes_and_servers(self):
        before = {table: set(self.cluster.broker.table(table)) for table in (ROUTES, SERVERS)}
        for table, keys in before.items():
            self.assertEqual(len(keys), 3)
            self.purge(table)
        for table, keys in before.items():
            self.again(f"all of {table}", table, *keys)
        self.recovers()

    def damaged_route(self):
        routes = self.cluster.broker.table(ROUTES)
        key = sorted(routes)[0]
        self.put(ROUTES, key, b"garbage")
        wait_for("it is good again", lambda: self.cluster.broker.table(ROUTES).get(key) == routes[key])


if __name__ == "__main__":
    main()
