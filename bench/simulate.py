#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A cluster of more nodes than there are machines for: a discrete-event simulation with measured costs.

    bench/simulate.py [--build DIR] [--nodes N…]        what happens with so many nodes: the tables of docs/scale.md
    bench/simulate.py --check N [--dir DIR]             the same numbers beside those of N real nodes on this machine

What is simulated: nodes start and say what they have; the keeper asks them and shares the clocks; recordings go on, so
that cards change; people ask for critical paths. The broker serves one message after the other, as fast as was
measured; the keeper and who asks have one thread each. What happens by chance comes from one seed.

Measured on this machine by each run: what N hosts cost the keeper and who asks (bench_hosts N). Measured before, and
written down here: COSTS. Assumed, and options: the network, how often cards change, how long paths are."""
import argparse
import heapq
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import ROOT, make, other_threads, question  # noqa: E402
from nodes import Nodes, cpu_s, private_bytes  # noqa: E402

# Of real nodes (--check 20 and 200): processor time of the broker in steps of 10 ms, on two loaded cores.
COSTS = {
    "broker_message_s": 30e-6,    # one message, in or out, among many
    "broker_beat_s": 170e-6,      # one sign of life of a watch, each by a timer of its own
    "broker_start_s": 2e-3,       # a node that connects and makes its watches
    "broker_node_bytes": 190e3,   # of memory: the broker at 200 nodes less the broker at 20
    "node_question_s": 0.3e-3,    # a round's question at a node
    "asker_message_s": 0.1e-3,    # a round's answer at who asks, walking included
    "asker_start_s": 12e-3,       # a program that starts, connects, and writes what it found
    "extract_bytes": 3.2e3,       # the packets of a tiny trace that clocks need, with frames
    "extract_open_s": 0.5e-3,     # the clock leader checks and opens them
}
# Counts and times of src/serve/cluster and src/net/bus: constants of the code, not measured.
CARD_EXTRA = 97                   # subject, headers and reply subject of a card that is delivered
EXTRACT_ADDRESS, QUESTION_EXTRA = 6, 150
START_IN, START_OUT = 8, 11       # messages of a node that starts, cards of others aside
QUIET_S, LATEST_S, BEAT_S, LOOK_S, SEAT_S = 0.2, 1, 2, 60, 15
EXTRACT_PATIENCE_S, AT_ONCE, AGAIN_S = 8, 64, 2
ASKER_WAITS_S = 5                 # for clocks that are those of the cards
WATCHES, POLL_S = 2, 0.01


class Counts:
    def __init__(self):
        self.into, self.out, self.bytes, self.busy_s = 0, 0, 0, 0.0

    def since(self, before):
        c = Counts()
        c.into, c.out = self.into - before.into, self.out - before.out
        c.bytes, c.busy_s = self.bytes - before.bytes, self.busy_s - before.busy_s
        return c

    def copy(self):
        return self.since(Counts())


class World:
    """Events in order of time. What takes time is a generator: it yields until when it waits."""

    def __init__(self, options, nodes, hosts):
        self.options, self.n, self.hosts = options, nodes, hosts
        self.now, self.queue, self.number = 0.0, [], 0
        self.random = random.Random(nodes)
        self.broker_free, self.counts = 0.0, Counts()
        self.card = hosts["card_bytes"] + CARD_EXTRA
        self.cards = self.version = 0       # cards in the table; how often any was put
        self.clocks_of = self.clocks_version = 0
        self.keeper_busy, self.gathers, self.longest, self.seats_lost = 0.0, 0, 0.0, 0
        self.changed_at, self.stale_s, self.stale_since = None, 0.0, None
        self.asked = []

    def start(self, process, at=None):
        self.number += 1
        heapq.heappush(self.queue, (self.now if at is None else at, self.number, process))

    def run(self, until):
        while self.queue and self.queue[0][0] <= until:
            self.now, _, process = heapq.heappop(self.queue)
            wait = next(process, None)
            if wait is not None:
                self.start(process, max(self.now, wait))
        self.now = until

    def broker(self, into, out, size):
        """Messages that the broker takes and gives; returns when the last one has arrived."""
        c, o = self.counts, self.options
        c.into, c.out, c.bytes = c.into + into, c.out + out, c.bytes + size
        work = (into + out) * COSTS["broker_message_s"] / o.broker_cores
        wire = size * 8 / o.bits_per_s
        c.busy_s += work
        self.broker_free = max(self.broker_free, self.now) + max(work, wire)
        return self.broker_free + 2 * o.latency_s

    def beats(self):
        """Signs of life, and the keeper's word that it is there, which all are told."""
        c = self.counts
        while True:
            watches, looks = WATCHES * self.cards, self.cards * BEAT_S / LOOK_S
            c.into += 1 + 2 * looks
            c.out += watches + self.cards + 1 + 2 * looks
            c.bytes += 70 * watches + 100 * self.cards
            spent = (watches * COSTS["broker_beat_s"] + self.cards * COSTS["broker_message_s"]) / \
                self.options.broker_cores
            c.busy_s += spent
            self.broker_free = max(self.broker_free, self.now) + spent
            yield self.now + BEAT_S

    def put_card(self, fresh):
        self.cards += fresh
        self.version += 1
        if self.stale_since is None:
            self.stale_since = self.now
        return self.broker(1, 2, 2 * self.card)

    def node(self):
        self.counts.busy_s += COSTS["broker_start_s"] / self.options.broker_cores
        self.broker_free = max(self.broker_free, self.now) + COSTS["broker_start_s"] / self.options.broker_cores
        yield self.broker(START_IN - 1, START_OUT - 2, 150 * (START_IN + START_OUT))
        yield self.put_card(True)
        pause = self.options.rotation_s * self.random.random()
        while self.options.rotation_s:
            yield self.now + pause
            pause = self.options.rotation_s
            yield self.put_card(False)

    def keeper(self):
        told = 0  # states of hosts of which flows were told
        lacking = 0
        while True:
            if self.version == self.clocks_version and not lacking:
                yield self.now + POLL_S
                continue
            latest, seen, until = self.now + LATEST_S, self.version, self.now + QUIET_S
            while self.now < min(until, latest):
                yield self.now + POLL_S
                if self.version != seen:
                    seen, until = self.version, self.now + QUIET_S
            begin, n, version, hosts = self.now, self.cards, self.version, self.hosts
            yield self.broker(n, n, n * self.card) + hosts["roster_s"] * n / self.n
            new = version - told
            yield self.broker(2 * new, 2 * new, new * 400)
            told = version
            # All are asked when there are other addresses; else those that have changed, and whom they talk to.
            ask = min(n, n if n != self.clocks_of else new * (1 + self.options.peers) + lacking)
            per_keeper = hosts["gather_s"] / self.n * n / self.n + COSTS["extract_open_s"]
            done, until = 0, self.now + EXTRACT_PATIENCE_S
            while done < ask and self.now < until:
                some = min(AT_ONCE, ask - done)
                size = some * 2 * (n * EXTRACT_ADDRESS + QUESTION_EXTRA + COSTS["extract_bytes"] *
                                   self.options.extract)
                arrives = self.broker(2 * some, 2 * some, size)
                yield max(arrives, self.now + some * per_keeper)
                done += some
            lacking = ask - done
            solve = hosts["solve_s"] * (n / self.n) ** 1.5 + hosts["share_s"]
            yield self.now + solve
            yield self.broker(hosts["clocks_parts"] + 1, hosts["clocks_parts"] + 1, hosts["clocks_bytes"] * n / self.n)
            if self.now < begin + self.options.gather_s:
                yield begin + self.options.gather_s
            self.clocks_of, self.clocks_version = n, version
            if self.version == version and self.stale_since is not None:
                self.stale_s += self.now - self.stale_since
                self.stale_since = None
            took = self.now - begin
            self.keeper_busy += took
            self.gathers += 1
            self.longest = max(self.longest, took)
            self.seats_lost += took > SEAT_S
            if lacking:
                yield self.now + AGAIN_S

    def ask(self):
        """A question for a path: cards, clocks, the thread, then the rounds."""
        o, h, begin = self.options, self.hosts, self.now
        give_up = begin + ASKER_WAITS_S
        yield self.now + COSTS["asker_start_s"]
        pause = 0.05
        while True:
            yield self.broker(4, self.cards + 4, self.cards * self.card) + h["roster_s"]
            if self.clocks_version == self.version or self.now >= give_up:
                break
            yield self.now + pause
            pause = min(2 * pause, 1)
        waited = self.now
        parts = h["clocks_parts"] + 1
        yield self.broker(parts, parts, h["clocks_bytes"]) + h["path_begin_s"] + (
            h["clocks_load_named_s"] if o.reference else h["clocks_load_s"])
        yield self.broker(2, 2, 1000)
        for _ in range(o.path_rounds):
            some = o.path_questions / o.path_rounds
            arrives = self.broker(2 * some, 2 * some, 2 * o.path_bytes / o.path_rounds)
            yield arrives + 2 * o.latency_s + COSTS["node_question_s"] + some * COSTS["asker_message_s"]
        self.asked.append((self.now - begin, waited - begin, self.clocks_version == self.version))

    def asking(self):
        while True:
            self.start(self.ask())
            yield self.now + self.random.expovariate(self.options.asks_per_s)


def host_costs(options, n, peers):
    done = subprocess.run([os.path.join(options.build, "bench", "bench_hosts"), str(n), str(peers)],
                          stdout=subprocess.PIPE, check=True)
    return json.loads(done.stdout)


def begin(options, n, hosts, start_s):
    """All nodes start within start_s; returns the world once the clocks of all are shared."""
    world = World(options, n, hosts)
    for i in range(n):
        world.start(world.node(), start_s * i / n)
    world.start(world.beats(), 0.01)
    world.start(world.keeper(), 0.02)
    while world.clocks_of < n and world.now < 7200:
        world.run(world.now + 0.05)
    return world


# ---- what is told


def row(*cells):
    print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)


def number(v, unit=""):
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if v >= size:
            return f"{v / size:.3g} {letter}{unit}"
    return f"{v:.3g} {unit}".strip()


def simulate(options):
    print(f"cards change every {options.rotation} s, {options.asks_per_s} questions a second, paths of "
          f"{options.path_questions} questions in {options.path_rounds} rounds\n")
    row("nodes", "start: until clocks, s", "messages", "MB", "broker busy, s", "gatherings, longest, s",
        "idle: messages/s", "broker busy", "recording: clocks behind", "keeper busy", "broker busy",
        "a path, s, half of them", "of it waiting for clocks", "cards, MB", "clocks, MB", "who asks, MB", "broker, MB")
    print("| --- " * 17 + "|")
    for n in options.nodes:
        hosts = host_costs(options, n, options.peers)
        options.rotation_s = 0
        w = begin(options, n, hosts, options.start)
        started, first, gathers, longest = w.now, w.counts.copy(), w.gathers, w.longest
        w.run(w.now + 20)
        before = w.counts.copy()
        w.run(w.now + 60)
        idle = w.counts.since(before)
        options.rotation_s = options.rotation
        w = begin(options, n, hosts, options.start)
        w.run(w.now + 2 * options.rotation)
        w.start(w.asking())
        w.stale_s, w.stale_since, w.keeper_busy = 0.0, w.stale_since and w.now, 0.0
        before, since = w.counts.copy(), w.now
        w.run(w.now + options.watch)
        spent, watched = w.counts.since(before), w.now - since
        stale = w.stale_s + (w.now - w.stale_since if w.stale_since is not None else 0)
        paths = [a[0] for a in w.asked] or [float("inf")]
        waits = [a[1] for a in w.asked] or [float("inf")]
        asker = hosts["roster_bytes"] + hosts["clocks_bytes"] + hosts["clocks_memory_bytes"] + hosts["path_begin_bytes"]
        row(n, f"{started:.1f}", number(first.into + first.out), f"{first.bytes / 1e6:.0f}", f"{first.busy_s:.1f}",
            f"{gathers}, {longest:.1f}", number((idle.into + idle.out) / 60), f"{100 * idle.busy_s / 60:.0f} %",
            f"{100 * stale / watched:.0f} %", f"{100 * min(1, w.keeper_busy / watched):.0f} %",
            f"{100 * spent.busy_s / watched:.0f} %", f"{statistics.median(paths):.2f}",
            f"{statistics.median(waits):.2f}", f"{n * hosts['card_bytes'] / 1e6:.2f}",
            f"{hosts['clocks_bytes'] / 1e6:.2f}", f"{asker / 1e6:.1f}",
            f"{(8e6 + n * COSTS['broker_node_bytes']) / 1e6:.0f}")


# ---- beside real nodes


class Seen:
    """What the broker has counted."""

    def __init__(self, nodes):
        said = nodes.broker_says("varz")
        self.at, self.busy_s = time.monotonic(), cpu_s(nodes.broker.pid)
        self.into, self.out = said["in_msgs"], said["out_msgs"]
        self.bytes = said["in_bytes"] + said["out_bytes"]


def beside(what, real, simulated, real_before=None):
    before = real_before or Counts()
    for name in ("into", "out", "bytes", "busy_s"):
        is_, told = getattr(real, name) - getattr(before, name), getattr(simulated, name)
        row(what, {"into": "messages in", "out": "messages out", "busy_s": "broker, CPU s"}.get(name, name),
            number(is_), number(told), f"{told / is_:.2f}" if is_ else "")


def shared(nodes):
    """How often clocks were shared: each time at least a part and the head, and then the part before is removed."""
    streams = nodes.broker_says("jsz?streams=1")["account_details"][0]["stream_detail"]
    puts = next(s["state"]["last_seq"] for s in streams if s["name"].endswith("_clocks"))
    return max(1, (puts + 1) // 3)


def check(options):
    n, idle_s = options.check, LOOK_S
    top = tempfile.mkdtemp(prefix="weft-simulate-", dir=options.dir)
    try:
        cluster = make(options, top, "mpi", n, "random", 0, 4)
        with Nodes(options.weft, top) as nodes:
            first = Seen(nodes)
            for host in cluster.hosts:
                nodes.add(host.name, [os.path.join(cluster.folder, host.name)])
            start_s = time.monotonic() - first.at
            nodes.first_path(*(lambda t, how: (t, *how))(*question(cluster, other_threads(cluster)[0])))
            until_clocks = time.monotonic() - first.at
            gathers = shared(nodes)
            time.sleep(options.settle)
            started, asked, spent = Seen(nodes), [], []
            for window in other_threads(cluster)[1:6]:
                before = Seen(nodes)
                thread, how = question(cluster, window)
                code, answer, said = nodes.path(thread, *how)
                if code:
                    sys.exit(said)
                after = Seen(nodes)
                asked.append(answer)
                spent.append((after.into - before.into, after.out - before.out, after.bytes - before.bytes))
            before = Seen(nodes)
            time.sleep(idle_s)
            idle = Seen(nodes)
            keeper = max(cpu_s(p.pid) for p in nodes.nodes)
            memory = [private_bytes(p.pid) for p in nodes.nodes], private_bytes(nodes.broker.pid)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    hosts = host_costs(options, n, 2)  # a rank talks to the next, the previous, and those of a tree
    options.rotation_s, options.broker_cores = 0, 1
    options.path_rounds = round(statistics.mean(a.cost["rounds"] for a in asked))
    options.path_questions = statistics.mean(a.cost["messages"] for a in asked) / 2
    options.path_bytes = statistics.mean(a.cost["bytes"] for a in asked)
    options.gather_s = max(0, until_clocks / gathers - LATEST_S)
    w = begin(options, n, hosts, start_s)
    clocks_s = w.now
    w.run(started.at - first.at)
    print(f"{n} nodes, started in {start_s:.1f} s: clocks after {until_clocks:.1f} s, simulated {clocks_s:.1f} s; "
          f"shared {gathers} times, simulated {w.gathers}; the busiest node used {keeper:.2f} s\n")
    row("", "", "real", "simulated", "simulated / real")
    print("| --- " * 5 + "|")
    beside("start", started, w.counts, first)
    told = w.counts.copy()
    w.start(w.ask())
    w.run(w.now + 3 * BEAT_S)
    path = w.counts.since(told)
    quiet = w.counts.copy()
    w.run(w.now + 3 * BEAT_S)
    quiet = w.counts.since(quiet)
    for name, real, is_ in (("messages in", 0, path.into - quiet.into), ("messages out", 1, path.out - quiet.out),
                            ("bytes", 2, path.bytes - quiet.bytes)):
        mean = statistics.median(s[real] for s in spent)
        row("a path", name, number(mean), number(is_), f"{is_ / mean:.2f}")
    cpu = statistics.mean(a.asker_cpu_s for a in asked)
    is_ = (COSTS["asker_start_s"] + hosts["roster_s"] + hosts["path_begin_s"] + hosts["clocks_load_named_s"] +
           options.path_questions * COSTS["asker_message_s"])
    row("a path", "CPU of who asks, s", f"{cpu:.3f}", f"{is_:.3f}", f"{is_ / cpu:.2f}")
    told = w.counts.copy()
    w.run(w.now + idle_s)
    beside(f"idle, {idle_s} s", idle, w.counts.since(told), before)
    print(f"\na node has {statistics.mean(memory[0]) / 1e6:.1f} MB (most {max(memory[0]) / 1e6:.1f}), the broker "
          f"{memory[1] / 1e6:.0f} MB, who asks {statistics.mean(a.asker_bytes for a in asked) / 1e6:.1f} MB; a path: "
          f"{statistics.mean(len(a.cost['nodes']) for a in asked):.0f} nodes, {options.path_questions:.0f} questions, "
          f"{options.path_rounds} rounds, {options.path_bytes / 1e3:.0f} kB")


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--dir", help="--check: where traces and stores are put")
    p.add_argument("--nodes", type=int, action="append")
    p.add_argument("--check", type=int, metavar="N")
    p.add_argument("--settle", type=float, default=10, help="--check: seconds for nodes that have just started")
    p.add_argument("--start", type=float, default=10, help="all nodes start within so many seconds")
    p.add_argument("--rotation", type=float, default=60, help="seconds between two changes of a card")
    p.add_argument("--watch", type=float, default=120, help="so many seconds are simulated of recording")
    p.add_argument("--peers", type=int, default=6, help="hosts that each sends to")
    p.add_argument("--asks-per-s", type=float, default=1)
    p.add_argument("--reference", action="store_true", help="who asks names a reference clock")
    p.add_argument("--path-questions", type=float, default=50)
    p.add_argument("--path-rounds", type=int, default=10)
    p.add_argument("--path-bytes", type=float, default=200e3)
    p.add_argument("--extract", type=float, default=1, help="packets that clocks need, as against a tiny trace's")
    p.add_argument("--latency-s", type=float, default=100e-6)
    p.add_argument("--bits-per-s", type=float, default=1e9)
    p.add_argument("--broker-cores", type=float, default=4)
    options = p.parse_args()
    options.weft = os.path.join(options.build, "weft")
    options.gather_s = 0
    options.nodes = options.nodes or [20, 200, 1000, 10000]
    if options.check:
        check(options)
    else:
        simulate(options)


if __name__ == "__main__":
    main()
