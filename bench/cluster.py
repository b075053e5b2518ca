#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Critical paths of clusters: the three methods side by side, on made clusters (make_cluster).

    bench/cluster.py [--build DIR] [--dir DIR] [--quick] [--pattern scp|mpi] [--nodes N…] [--methods METHOD…]
    bench/cluster.py --idle N          N nodes with tiny traces, which mostly wait
    bench/cluster.py --delay MS        nodes so far from the broker, each way: times against (depth + 2) round trips

local: all traces in one process. index: nodes are asked that hold a piece of the path. broadcast: all nodes are asked.
*first*: from nothing but traces to the first path: stores are made, clocks found. *again*: stores and nodes are there,
ten times another thread each; mean ± standard deviation. *in all* is from the start of the program to its end, *path*
what the answer itself says of it. All nodes, the broker and who asks share the machine."""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from made_cluster import START_NS, Cluster  # noqa: E402  (which finds tests/e2e)
from delaying import Delay, depth_of  # noqa: E402
from nodes import Nodes, ask, cpu_s, private_bytes  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
REPETITIONS = 10
MIXES = ("even", "slow", "rotating", "random")
PAPER_NODES = (1, 2, 3, 10, 20)


def make(options, top, pattern, nodes, mix, events, rounds):
    folder = os.path.join(top, f"{pattern}-{nodes}-{mix}")
    machines = nodes + (pattern == "scp")
    done = subprocess.run([os.path.join(options.build, "bench", "make_cluster"), folder, pattern, str(nodes),
                           f"mix={mix}", f"rounds={rounds}", f"events={events * machines}", "history=0"],
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True)
    json.loads(done.stdout)
    return Cluster(folder)


def bytes_below(paths):
    return sum(os.path.getsize(os.path.join(d, f)) for top in paths for d, _, names in os.walk(top) for f in names)


def other_threads(cluster):
    """Another one for each repetition, each time also on another machine as far as there are."""
    windows = list(cluster.windows())
    by_host = {}
    for w in windows:
        by_host.setdefault(w[0].host.name, []).append(w)
    lists = list(by_host.values())
    mixed = [ws[i] for i in range(max(map(len, lists))) for ws in lists if i < len(ws)]
    return [mixed[i % len(mixed)] for i in range(REPETITIONS + 1)]


def question(cluster, window):
    thread, begin, end = window
    return thread, ("--begin", START_NS + begin, "--end", START_NS + end, "--reference", cluster.hosts[0].name)


class Figures:
    """first: seconds, and what each process used; again: what was Asked."""

    def __init__(self, first_s, first_cpu_s, again):
        self.first_s, self.first_cpu_s, self.again = first_s, first_cpu_s, again

    def mean(self, what):
        values = [what(a) for a in self.again]
        return statistics.mean(values), statistics.stdev(values)


def measure_local(options, cluster, folder):
    store = ("--method", "local", "--store", os.path.join(folder, "stores"))
    first, *others = [question(cluster, w) for w in other_threads(cluster)]

    def put(thread, how):
        code, asked, said = ask(options.weft, ["critpath", *cluster.traces(), "--thread", thread, *how, *store])
        if code:
            sys.exit(said)
        return asked

    begun = put(*first)
    return Figures(begun.wall_s, [begun.cpu_s], [put(*q) for q in others])


def measure_cluster(options, cluster, folder, method):
    first, *others = [question(cluster, w) for w in other_threads(cluster)]
    begin = time.monotonic()
    with Nodes(options.weft, folder) as nodes:
        for host in cluster.hosts:
            nodes.add(host.name, [os.path.join(cluster.folder, host.name)])
        nodes.first_path(first[0], *first[1], "--method", method)
        first_s, used = time.monotonic() - begin, [cpu_s(p.pid) for p in nodes.nodes]
        time.sleep(0.5)  # what nodes tidy up once they answer
        again = []
        for thread, how in others:
            code, asked, said = nodes.path(thread, *how, "--method", method)
            if code:
                sys.exit(said)
            again.append(asked)
    return Figures(first_s, used, again)


def measure(options, cluster):
    out = {}
    for method in options.methods:
        folder = tempfile.mkdtemp(prefix="weft-cluster-", dir=options.dir)
        try:
            out[method] = (measure_local(options, cluster, folder) if method == "local" else
                           measure_cluster(options, cluster, folder, method))
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return out


# ---- tables


def row(*cells):
    print("| " + " | ".join(str(c) for c in cells) + " |", flush=True)


def ms(pair):
    return f"{pair[0] * 1000:.1f} ± {pair[1] * 1000:.1f}"


def heads(options):
    row("pattern", "machines", "events", "MB", "method", "first, s", "first, CPU s", "of the busiest, s",
        "again in all, ms", "again path, ms", "CPU of all, ms", "of who asks, ms",
        "segments", "nodes asked", "messages", "rounds", "kB moved",
        "first against local", "again against local")
    print("| --- " * 19 + "|")


def tell(what, cluster, figures):
    local = figures.get("local")
    for method, f in figures.items():
        mean = f.mean
        ratios = ("1", "1") if method == "local" or not local else (
            f"{local.first_s / f.first_s:.2f}×",
            f"{local.mean(lambda a: a.wall_s)[0] / mean(lambda a: a.wall_s)[0]:.2f}×")
        row(what, len(cluster.hosts), f"{cluster.events / 1e6:.2f} M", f"{bytes_below(cluster.traces()) / 1e6:.0f}",
            method, f"{f.first_s:.2f}", f"{sum(f.first_cpu_s):.2f}", f"{max(f.first_cpu_s):.2f}",
            ms(mean(lambda a: a.wall_s)), ms(mean(lambda a: a.cost["seconds"])),
            ms(mean(lambda a: a.cpu_s)), ms(mean(lambda a: a.asker_cpu_s)),
            f"{mean(lambda a: len(a.answer['segments']))[0]:.0f}", f"{mean(lambda a: len(a.cost['nodes']))[0]:.1f}",
            f"{mean(lambda a: a.cost['messages'])[0]:.0f}", f"{mean(lambda a: a.cost['rounds'])[0]:.1f}",
            f"{mean(lambda a: a.cost['bytes'])[0] / 1000:.1f}", *ratios)
    index, broadcast = figures.get("index"), figures.get("broadcast")
    if index and broadcast:
        moved = [f.mean(lambda a: a.cost["bytes"])[0] for f in (index, broadcast)]
        print(f"\n{what}, {len(cluster.hosts)} machines: index moves {100 * (moved[0] / moved[1] - 1):+.1f} % of "
              "the bytes against broadcast\n" if moved[1] else "")


def compare(options):
    heads(options)
    for pattern in options.pattern:
        for nodes in options.nodes:
            for mix in MIXES[:1] if pattern == "scp" else MIXES[3:] if options.quick else MIXES:
                top = tempfile.mkdtemp(prefix="weft-cluster-", dir=options.dir)
                try:
                    cluster = make(options, top, pattern, nodes, mix, options.events, options.rounds)
                    tell(f"{pattern} {mix}" if pattern == "mpi" else pattern, cluster, measure(options, cluster))
                finally:
                    shutil.rmtree(top, ignore_errors=True)


# ---- nodes far from the broker


def far(options):
    row("pattern", "machines", "depth", "rounds", "again in all, ms", "(depth + 2) × 2 × delay + 200 ms", "ratio")
    print("| --- " * 7 + "|")
    for pattern in options.pattern:
        for nodes in options.nodes:
            top = tempfile.mkdtemp(prefix="weft-cluster-", dir=options.dir)
            try:
                cluster = make(options, top, pattern, nodes, MIXES[3], options.events, options.rounds)
                measure_far(options, cluster, top)
            finally:
                shutil.rmtree(top, ignore_errors=True)


def measure_far(options, cluster, folder):
    first, *others = [question(cluster, w) for w in other_threads(cluster)]
    with Nodes(options.weft, folder) as nodes:
        delay = Delay(nodes.port, options.delay / 1000)
        try:
            nodes.nodes_url = delay.url
            for host in cluster.hosts:
                nodes.add(host.name, [os.path.join(cluster.folder, host.name)])
            nodes.first_path(first[0], *first[1])
            for thread, how in others:
                code, asked, said = nodes.path(thread, *how)
                if code:
                    sys.exit(said)
                depth = depth_of(asked.answer)
                promised = (depth + 2) * 2 * options.delay + 200
                row(cluster.pattern, len(cluster.hosts), depth, asked.cost["rounds"], f"{asked.wall_s * 1000:.0f}",
                    promised, f"{asked.wall_s * 1000 / promised:.2f}")
        finally:
            delay.stop()


# ---- many nodes that wait


def idle(options):
    top = tempfile.mkdtemp(prefix="weft-cluster-", dir=options.dir)
    try:
        cluster, begin = make(options, top, "mpi", options.idle, "random", 0, 4), time.monotonic()
        with Nodes(options.weft, top) as nodes:
            for host in cluster.hosts:
                nodes.add(host.name, [os.path.join(cluster.folder, host.name)])
            thread, how = question(cluster, other_threads(cluster)[0])
            asked = nodes.first_path(thread, *how)
            print(f"{options.idle} nodes, from the start of the first to the first path: "
                  f"{time.monotonic() - begin:.2f} s, CPU {sum(cpu_s(p.pid) for p in nodes.nodes):.2f} s; the path "
                  f"asked {len(asked.cost['nodes'])} nodes, {asked.cost['messages']} messages, "
                  f"{asked.cost['rounds']} rounds, {asked.cost['bytes'] / 1000:.0f} kB")
            repeated = [nodes.path(*question(cluster, w)[:1], *question(cluster, w)[1]) for w in
                        other_threads(cluster)[1:]]
            walls = [a.wall_s for code, a, _ in repeated if code == 0]
            paths = [a.cost["seconds"] for code, a, _ in repeated if code == 0]
            print(f"again: {ms((statistics.mean(walls), statistics.stdev(walls)))} ms in all, "
                  f"{ms((statistics.mean(paths), statistics.stdev(paths)))} ms the path ({len(walls)} answers)")
            time.sleep(5)
            before, watched = [cpu_s(p.pid) for p in [*nodes.nodes, nodes.broker]], options.watch
            time.sleep(watched)
            spent = [cpu_s(p.pid) - b for p, b in zip([*nodes.nodes, nodes.broker], before)]
            memory = [private_bytes(p.pid) for p in nodes.nodes]
            print(f"idle: {statistics.mean(memory) / 1e6:.2f} MB of private memory each (most "
                  f"{max(memory) / 1e6:.2f}), {100 * statistics.mean(spent[:-1]) / watched:.3f} % of a CPU each, "
                  f"the broker {100 * spent[-1] / watched:.2f} % and {private_bytes(nodes.broker.pid) / 1e6:.0f} MB")
    finally:
        shutil.rmtree(top, ignore_errors=True)


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--build", default=os.path.join(ROOT, "build"))
    p.add_argument("--dir", help="where traces and stores are put")
    p.add_argument("--quick", action="store_true", help="small traces, 1, 3 and 20 nodes, one load mix")
    p.add_argument("--pattern", action="append", choices=("scp", "mpi"))
    p.add_argument("--nodes", type=int, action="append")
    p.add_argument("--methods", nargs="+", default=["local", "broadcast", "index"])
    p.add_argument("--events", type=int, help="of each machine, about")
    p.add_argument("--rounds", type=int, help="pieces of a file, supersteps")
    p.add_argument("--idle", type=int, metavar="N", help="N nodes that wait")
    p.add_argument("--delay", type=int, metavar="MS", help="nodes are so far from the broker")
    p.add_argument("--watch", type=int, default=20, help="--idle: for so many seconds")
    options = p.parse_args()
    options.weft = os.path.join(options.build, "weft")
    options.pattern = options.pattern or ["scp", "mpi"]
    options.nodes = options.nodes or ([1, 3, 20] if options.quick else PAPER_NODES)
    options.events = options.events or (20_000 if options.quick else 200_000)
    options.rounds = options.rounds or (20 if options.quick else 100)
    if options.idle:
        idle(options)
    elif options.delay:
        far(options)
    else:
        compare(options)


if __name__ == "__main__":
    main()
