# SPDX-License-Identifier: MIT
"""Cluster under test: a broker with tables in files, and nodes, all of them separate processes, stopped by their ids.
Registry entries are read from the broker's tables with a few lines of the NATS protocol, which share nothing with
the program."""
import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time

from weft_e2e import BIN, SLOWDOWN, need, scratch, weft

PATIENCE_S = 40 * SLOWDOWN
GONE = ("KV-Operation: DEL", "KV-Operation: PURGE", "Nats-Marker-Reason")


def wait_for(what, condition, patience=PATIENCE_S):
    """Waits until the condition is true; returns its value."""
    end = time.monotonic() + patience
    while True:
        said = condition()
        if said:
            return said
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {patience} s")
        time.sleep(0.05)


def broker_program():
    return need("nats-server")


def free_port(address):
    """Returns a free port outside the range of ephemeral ports, so that a stopped broker can return to its port."""
    while True:
        port = 10000 + int.from_bytes(os.urandom(2), "big") % 20000
        with socket.socket() as s:
            try:
                s.bind((address, port))
                return port
            except OSError:
                pass


class Broker:
    """Broker of a cluster. address: of this machine; or within: network namespace, which has the address for itself."""

    def __init__(self, address="127.0.0.1", within=(), arguments=(), alone=True):
        """arguments: additional ones of the program. alone: it answers without other brokers."""
        self.program, self.within, self.arguments, self.alone = broker_program(), within, arguments, alone
        self.address, self.port, self.directory = address, 4222 if within else free_port(address), scratch()
        self.url = f"nats://{address}:{self.port}"
        self.process = None
        self.start()

    def start(self):
        with open(os.path.join(scratch(), "broker.log"), "wb") as log:
            self.process = subprocess.Popen(
                [*self.within, self.program, "-a", self.address, "-p", str(self.port), "-js", "-sd", self.directory,
                 *self.arguments],
                stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        if self.alone:
            wait_for("the broker answers", self.answers)

    def answers(self):
        try:
            return self.ask("$JS.API.INFO") is not None
        except OSError:
            return False

    @contextlib.contextmanager
    def connect(self):
        with socket.create_connection((self.address, self.port), timeout=10) as s, s.makefile("rwb") as f:
            f.readline()  # INFO
            f.write(b'CONNECT {"verbose":false,"headers":true}\r\n')
            yield f

    def ask(self, subject, **body):
        """Returns JetStream's answer. A broker disconnects clients that do not run for two seconds after connecting:
        then the question is repeated."""
        for _ in range(4):
            with contextlib.suppress(ConnectionResetError, BrokenPipeError):
                answer = self.ask_once(subject, body)
                if answer is not None:
                    return answer
        raise OSError(f"{subject}: the broker hangs up")

    def ask_once(self, subject, body):
        with self.connect() as f:
            question = json.dumps(body).encode() if body else b""
            f.write(b"SUB _INBOX.test 1\r\n")
            if not self.alone:  # entries must reach the other brokers
                f.flush()
                time.sleep(0.1)
            f.write(b"PUB %s _INBOX.test %d\r\n%s\r\n" % (subject.encode(), len(question), question))
            f.flush()
            while True:
                line = f.readline()
                if not line or b"Authentication Timeout" in line:
                    return None
                if line.startswith(b"-ERR"):
                    raise OSError(f"{subject}: {line!r}")
                if line.startswith(b"PING"):
                    f.write(b"PONG\r\n")
                    f.flush()
                if line.startswith(b"MSG "):
                    return json.loads(f.read(int(line.split()[-1])))

    def table(self, name):
        """Returns {key: value} of a table."""
        subjects = self.ask(f"$JS.API.STREAM.INFO.KV_{name}", subjects_filter=">").get("state", {}).get("subjects", {})
        entries = {}
        for subject in subjects or {}:
            answer = self.ask(f"$JS.API.STREAM.MSG.GET.KV_{name}", last_by_subj=subject)
            headers = base64.b64decode(answer.get("message", {}).get("hdrs", "")).decode()
            if "message" in answer and not any(mark in headers for mark in GONE):
                entries[subject.split(".", 2)[2]] = base64.b64decode(answer["message"].get("data", ""))
        return entries

    def put(self, table, key, value):
        """Writes an entry as a node would."""
        with self.connect() as f:
            f.write(b"PUB $KV.%s.%s %d\r\n%s\r\nPING\r\n" % (table.encode(), key.encode(), len(value), value))
            f.flush()
            while f.readline() != b"PONG\r\n":
                pass

    def remove(self, table, key):
        mark = b"NATS/1.0\r\nKV-Operation: DEL\r\n\r\n"
        with self.connect() as f:
            f.write(b"HPUB $KV.%s.%s %d %d\r\n%s\r\nPING\r\n" %
                    (table.encode(), key.encode(), len(mark), len(mark), mark))
            f.flush()
            while f.readline() != b"PONG\r\n":
                pass

    def kill(self):
        self.process.kill()
        self.process.wait()

    def restart(self, keep=True):
        self.kill()
        if not keep:
            shutil.rmtree(self.directory)
        self.start()


class Brokers:
    """Three brokers of one cluster; nodes get the URL of all."""

    def __init__(self):
        routes = [f"nats://127.0.0.1:{free_port('127.0.0.1')}" for _ in range(3)]
        self.all = [Broker(alone=False, arguments=("-n", f"broker-{i}", "-cluster_name", "brokers", "-cluster", route,
                                                   "-routes", ",".join(routes))) for i, route in enumerate(routes)]
        self.url = ",".join(b.url for b in self.all)
        for b in self.all:
            wait_for("the brokers have a leader", lambda b=b: self.has_leader(b))

    def has_leader(self, broker):
        with contextlib.suppress(OSError):
            return broker.ask("$JS.API.STREAM.NAMES") is not None
        return False

    def running(self):
        return next(b for b in self.all if b.process)

    def table(self, name):
        return self.running().table(name)

    def kill(self):
        for b in self.all:
            b.kill()


class Node:
    """Node: weft serve. options: of the program, too; within: its network namespace; program: another one."""

    def __init__(self, url, name, *traces, store=None, within=(), cluster=None, share=None, options=(), program=BIN):
        self.name, self.traces = name, [str(t) for t in traces]
        self.log, self.temporary = os.path.join(scratch(), "stderr"), scratch()
        self.said = os.path.join(os.path.dirname(self.log), "stdout")
        self.command = [*within, program, "serve", "--listen", "127.0.0.1:0", "--cluster", url, "--node", name,
                        *(["--store", store] if store else []), *(["--cluster-name", cluster] if cluster else []),
                         *(["--share", share] if share else []), *options, *self.traces]
        self.process = None
        self.start()

    def start(self):
        with open(self.log, "ab") as log, open(self.said, "wb") as out:
            self.process = subprocess.Popen(self.command, stdout=out, stderr=log,
                                            stdin=subprocess.DEVNULL, env=dict(os.environ, TMPDIR=self.temporary))

    @property
    def errors(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def address(self):
        """Address of its trace server, which it prints when it is ready."""
        def said():
            with open(self.said, encoding="utf-8") as f:
                return next((line.split()[-1] for line in f if line.endswith("\n") and "listening on" in line), None)
        return wait_for(f"{self.name} listens", said)

    def signal(self, which):
        self.process.send_signal(which)

    def kill(self):
        self.process.kill()
        self.process.wait()

    def leave(self):
        """Stops it; returns its exit status."""
        self.signal(signal.SIGTERM)
        return self.process.wait(timeout=30 * SLOWDOWN)

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)


class Card:
    """Beginning of a node's registry entry: a byte, two strings, two numbers."""

    def __init__(self, data):
        self.at, self.data = 1, data
        self.node, self.instance = self.string(), self.string()
        self.serial, self.hosts = self.number(), self.number()

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def string(self):
        n = self.number()
        self.at += n
        return self.data[self.at - n:self.at].decode()


def cards_of(table):
    """Returns the registry entries in a table of nodes. Keys of several tokens are none."""
    return [Card(value) for key, value in table.items() if "." not in key]


class Cluster:
    """Cluster. nodes: {name: its TRACE arguments}."""

    def __init__(self, nodes, store=None, broker=None):
        self.store = store or scratch()
        self.broker = broker or Broker()
        self.nodes = {}
        self.settled = {}  # {node: (its process, the instance of its card)}
        try:
            for name, traces in nodes.items():
                self.add(name, *traces)
            self.settle()
        except BaseException:
            self.stop()
            raise

    def add(self, name, *traces, url=None, **how):
        """Adds a node. url: another way to the broker."""
        how.setdefault("store", self.store)
        self.nodes[name] = Node(url or self.broker.url, name, *traces, **how)
        return self.nodes[name]

    def cards(self):
        """Returns {node: Card}."""
        return {c.node: c for c in cards_of(self.broker.table("weft_weft_nodes"))}

    def is_its(self, name, card):
        """Returns whether the entry is the running node's. That of a killed node stays for some time, also while the
        next process of that name begins."""
        process, instance = self.settled.get(name, (None, None))
        return process is self.nodes[name].process or card.instance != instance

    def settle(self, *left_out):
        """Waits until all running nodes, except those left out, have announced their data, and its clocks are found."""
        if not self.nodes:
            return
        running = {name for name, node in self.nodes.items() if node.process.poll() is None} - set(left_out)
        wait_for(f"the nodes {sorted(running)} say what they have",
                 lambda: running <= {name for name, card in self.cards().items()
                                     if card.hosts and (name not in running or self.is_its(name, card))})
        cards = self.cards()
        self.settled.update((name, (self.nodes[name].process, cards[name].instance)) for name in running & set(cards))
        wait_for("clocks are found", self.has_clocks)

    def has_clocks(self):
        """Returns whether there are clocks: then a query for an unknown name is answered, either that there is none, or
        that a node does not answer."""
        run = self.ask("nobody:1")
        return ("no such thread" in run.message or "nobody serves" in run.message) and "have grown" not in run.message

    def ask(self, thread, *options, **how):
        """Runs critpath by querying the nodes."""
        return weft("critpath", "--cluster", self.broker.url, "--thread", thread, "--format", "json", *options, **how)

    def stop(self):
        for node in self.nodes.values():
            if node.process.poll() is None:
                node.thaw()
                node.signal(signal.SIGTERM)
        for node in self.nodes.values():
            try:
                node.process.wait(timeout=20 * SLOWDOWN)
            except subprocess.TimeoutExpired:
                node.kill()
        self.broker.kill()
        for node in self.nodes.values():
            if "Sanitizer" in node.errors or "runtime error:" in node.errors:
                raise AssertionError(f"node {node.name}: {node.errors}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
