# SPDX-License-Identifier: MIT
"""Rights of a broker's users in a cluster: deploy/nats/make-rights gives an administrator, a client and nodes their
rights. All functions work with them, and no user can speak or write for another. With one token for all, a first
answer in another's name is not believed."""
import contextlib
import json
import os
import socket
import subprocess

from cluster_of import Broker, Cluster, wait_for
from test_cluster import Compared, hosts_of
from weft_e2e import ROOT, main, need, scenario, scratch, weft

THREAD = "client:204"
PASSWORD = "pass-of-{}"
MISSING = r'does not let this user publish to "\$JS.API.STREAM.CREATE.KV_weft_weft_\w+"'


class Rights(Broker):
    """A broker with users. The test itself speaks as the administrator."""

    def __init__(self, nodes):
        self.users = ["administrator", "asker", *nodes]
        rights = subprocess.run(["sh", os.path.join(ROOT, "deploy", "nats", "make-rights"), *nodes], check=True,
                                stdout=subprocess.PIPE).stdout
        self.configuration = os.path.join(scratch(), "rights.conf")
        with open(self.configuration, "wb") as f:
            f.write(rights)
        for i, user in enumerate(self.users):
            name = f"WEFT_NODE_{i - 1}" if i > 1 else f"WEFT_{user.upper()}"
            os.environ[name] = PASSWORD.format(user)
        super().__init__(arguments=("-c", self.configuration))

    def user_file(self, user):
        path = os.path.join(scratch(), "user")
        with open(path, "w", encoding="utf-8") as f:
            f.write(f"{user}:{PASSWORD.format(user)}\n")
        return path

    @contextlib.contextmanager
    def connect(self, user="administrator"):
        with socket.create_connection((self.address, self.port), timeout=10) as s, s.makefile("rwb") as f:
            f.readline()
            f.write(b'CONNECT {"verbose":false,"user":"%s","pass":"%s"}\r\n' % (
                user.encode(), PASSWORD.format(user).encode()))
            yield f

    def refused(self, user, line):
        """Returns the broker's error for it; "": none."""
        with self.connect(user) as f:
            f.write(line.encode() + b"\r\nPING\r\n")
            f.flush()
            said = b""
            while b"PONG" not in said:
                said += f.readline()
            return said.replace(b"PONG", b"").strip().decode()


class WithRights(Compared):
    def setUp(self):
        self.recording = scenario("three-tier")
        self.hosts = hosts_of(self.recording)
        self.broker = Rights(sorted(self.hosts))
        self.cluster = Cluster({}, broker=self.broker)
        self.addCleanup(self.cluster.stop)
        self.asker = self.broker.user_file("asker")

    def ask(self, *options, user=None):
        return weft("critpath", "--cluster", self.broker.url, "--thread", THREAD, "--format", "json",
                    "--nats-user-file", user or self.asker, *options)

    def test_each_does_its_own(self):
        for host, path in self.hosts.items():
            self.cluster.add(host, path, options=("--nats-user-file", self.broker.user_file(host)))
        wait_for("all have joined", 
                 lambda: set(self.hosts) <= {c.node for c in self.cluster.cards().values() if c.hosts})
        wait_for("asked with the least rights, all is answered", lambda: self.ask("--signed-only").code == 0)
        run = self.ask("--signed-only")
        self.assertEqual((run.code, run.message), (0, ""), run)
        near = weft("critpath", self.recording, "--store", self.cluster.store, "--thread", THREAD, "--format", "json")
        for part in ("segments", "links", "unexplained"):
            self.assertEqual(json.loads(run.out)[part], json.loads(near.out)[part])
        for verb in ("threads", "flows", "sync"):
            self.assertEqual(weft(verb, "--cluster", self.broker.url, "--nats-user-file", self.asker).code, 0, verb)
        for node in self.cluster.nodes.values():
            self.assertNotIn("does not let", node.errors)
            self.assertNotIn("has no key", node.errors)
        self.liars()

    def liars(self):
        """Checks that no user writes for another, answers for another or receives another's queries."""
        self.assertEqual(self.broker.refused("db", "PUB $KV.weft_weft_servers.db 0\r\n"), "")
        for user, line in (("asker", "PUB $KV.weft_weft_keys.web 0\r\n"),
                           ("asker", "PUB $KV.weft_weft_nodes.web 0\r\n"),
                           ("db", "PUB $KV.weft_weft_keys.web 0\r\n"), ("db", "PUB $KV.weft_weft_nodes.web 0\r\n"),
                           ("db", "PUB $KV.weft_weft_servers.web 0\r\n"), ("db", "PUB _INBOX.weft-1.1 0\r\n"),
                           ("asker", "PUB _INBOX.weft-1.1 0\r\n"), ("asker", "PUB $KV.weft_weft_clocks.head 0\r\n"),
                           ("db", "SUB weft.weft.ask.web 1"), ("asker", "SUB weft.weft.ask.web 1"),
                           ("asker", "SUB > 1"), ("asker", "SUB _INBOX.> 1"), ("asker", "SUB _INBOX.*.> 1"),
                           ("asker", "SUB _INBOX.web.> 1"), ("db", "SUB _INBOX.asker.> 1"), ("db", "SUB _INBOX.> 1"),
                           ("db", "SUB _INBOX.web.> 1"), ("db", "PUB _INBOX.web.1 0\r\n"),
                           ("asker", "PUB _INBOX.db.1 0\r\n"),
                           ("db", "PUB $JS.API.STREAM.PURGE.KV_weft_weft_keys 0\r\n"),
                           ("db", "PUB $JS.API.STREAM.DELETE.KV_weft_weft_nodes 0\r\n"),
                           ("db", "PUB $JS.API.STREAM.UPDATE.KV_weft_weft_nodes 0\r\n"),
                           ("asker", "PUB $JS.API.STREAM.CREATE.KV_weft_weft_nodes 0\r\n")):
            self.assertIn("Permissions Violation", self.broker.refused(user, line), (user, line))

    def test_a_right_that_is_missing_is_named(self):
        """An asker as a node, and the administrator's tables are not there yet."""
        node = self.cluster.add("web", self.hosts["web"], options=("--nats-user-file", self.asker))
        wait_for("it gives up", lambda: node.process.poll() is not None)
        self.assertRegex(node.errors, "weft: .*" + MISSING)
        run = self.ask()
        self.assertEqual(run.code, 1, run)
        self.assertRegex(run.message, MISSING)


class OneToken(Compared):
    """Nodes with equal rights of all: another process answers at once in the name of a node."""

    def test_who_answers_first(self):
        recording = scenario("three-tier")
        program = need(os.path.abspath(os.environ.get("CLUSTER_LIAR") or
                                       os.path.join(ROOT, "build", "tests", "e2e", "cluster_liar")))
        with Cluster({host: [path] for host, path in hosts_of(recording).items()}) as cluster:
            liars = [subprocess.Popen([program, cluster.broker.url, "none", "none", "weft", host, "first", "1"],
                                      stdout=subprocess.PIPE) for host in ("web", "db")]
            try:
                for liar in liars:
                    self.assertEqual(liar.stdout.readline(), b"ready\n")
                for _ in range(10):
                    self.same(cluster, [recording], THREAD)
            finally:
                for liar in liars:
                    liar.terminate()
                    liar.wait()
                    liar.stdout.close()


if __name__ == "__main__":
    main()
