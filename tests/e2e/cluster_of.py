# SPDX-License-Identifier: MIT
"""A cluster under test: a broker with tables in files, and nodes, all of them processes of their own, which are stopped
by their ids. What nodes say of themselves is read from the broker's tables with a few lines of the NATS protocol, which
share nothing with the program."""
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
    """What the condition says once it is true."""
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
    """Not one that others are given when they ask for any: a broker that was stopped comes back to its own."""
    while True:
        port = 10000 + int.from_bytes(os.urandom(2), "big") % 20000
        with socket.socket() as s:
            try:
                s.bind((address, port))
                return port
            except OSError:
                pass


class Broker:
    """address: of this machine; or within: what it runs in, which has the address for itself."""

    def __init__(self, address="127.0.0.1", within=(), arguments=(), alone=True):
        """arguments: more, of the program. alone: it answers without others."""
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
        """What JetStream answers. A broker hangs up on who does not get to run for two seconds after it has connected:
        then it is asked again."""
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
            if not self.alone:  # the others have to hear of it
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
        """{key: value} of a table."""
        subjects = self.ask(f"$JS.API.STREAM.INFO.KV_{name}", subjects_filter=">").get("state", {}).get("subjects", {})
        entries = {}
        for subject in subjects or {}:
            answer = self.ask(f"$JS.API.STREAM.MSG.GET.KV_{name}", last_by_subj=subject)
            headers = base64.b64decode(answer.get("message", {}).get("hdrs", "")).decode()
            if "message" in answer and not any(mark in headers for mark in GONE):
                entries[subject.split(".", 2)[2]] = base64.b64decode(answer["message"].get("data", ""))
        return entries

    def put(self, table, key, value):
        """As if a node had."""
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
    """Three that are one: what nodes are given is the URL of all."""

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
    """weft serve as a node. options: also of the program; within: what it runs in; program: another one."""

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
        """Where its trace server listens, which it says when it is ready."""
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
        """Exit status, after it was told to stop."""
        self.signal(signal.SIGTERM)
        return self.process.wait(timeout=30 * SLOWDOWN)

    def freeze(self):
        self.signal(signal.SIGSTOP)

    def thaw(self):
        self.signal(signal.SIGCONT)


class Card:
    """The beginning of what a node says of itself: a byte, two strings, two numbers."""

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
    """What a table of nodes holds. Keys of several tokens are no cards."""
    return [Card(value) for key, value in table.items() if "." not in key]


class Cluster:
    """nodes: {name: its TRACE arguments}."""

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
        """url: another way to the broker."""
        how.setdefault("store", self.store)
        self.nodes[name] = Node(url or self.broker.url, name, *traces, **how)
        return self.nodes[name]

    def cards(self):
        """{node: Card}"""
        return {c.node: c for c in cards_of(self.broker.table("weft_weft_nodes"))}

    def is_its(self, name, card):
        """The card of a node that was killed stays for some time, also while the next process of that name begins."""
        process, instance = self.settled.get(name, (None, None))
        return process is self.nodes[name].process or card.instance != instance

    def settle(self, *left_out):
        """Waits until all nodes that run, but those left out, have said what they have, and its clocks are found."""
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
        """Nobody is named so, which is told, or who cannot be asked, once there are clocks."""
        run = self.ask("nobody:1")
        return ("no such thread" in run.message or "nobody serves" in run.message) and "have grown" not in run.message

    def ask(self, thread, *options, **how):
        """critpath, by asking the nodes."""
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
