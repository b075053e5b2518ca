# SPDX-License-Identifier: MIT
"""A broker and the nodes of a cluster, each a process: started on free ports of the loopback, with all that they write
in one directory, and stopped by their ids."""
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

NATS_SERVER = shutil.which("nats-server") or "/usr/sbin/nats-server"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PATIENCE_S = 120


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cpu_s(pid):
    """What a process has used so far."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as f:
        after_name = f.read().rsplit(")", 1)[1].split()
    return (int(after_name[11]) + int(after_name[12])) / TICKS_PER_S


def private_bytes(pid):
    """Memory of a process that no other shares, and no file holds."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith("Anonymous:"))


class Asked:
    """A question that was put: the answer, and what it cost who asked, and the nodes."""

    def __init__(self, answer, wall_s, asker_cpu_s, nodes_cpu_s, asker_bytes):
        self.answer, self.wall_s, self.asker_cpu_s, self.nodes_cpu_s = answer, wall_s, asker_cpu_s, nodes_cpu_s
        self.asker_bytes = asker_bytes  # of memory, at most
        self.cost = answer["cost"]

    @property
    def cpu_s(self):
        return self.asker_cpu_s + self.nodes_cpu_s


def ask(program, args, nodes=()):
    """Runs weft; (exit code, answer or None, what it said). JSON."""
    before = sum(cpu_s(p.pid) for p in nodes)
    begin = time.monotonic()
    process = subprocess.Popen([program, *map(str, args), "--format", "json"], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    out, said = process.stdout.read(), process.stderr.read().decode("utf-8", "replace")
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.monotonic() - begin
    for pipe in (process.stdout, process.stderr):
        pipe.close()
    spent = sum(cpu_s(p.pid) for p in nodes) - before
    asked = Asked(json.loads(out), wall, used.ru_utime + used.ru_stime, spent, used.ru_maxrss * 1024) if out else None
    return process.returncode, asked, said


class Nodes:
    """folder: for the broker's tables, stores and what processes say; it has to exist."""

    def __init__(self, program, folder):
        self.program, self.folder, self.nodes = program, folder, []
        self.traces = {}  # how many each node was given
        self.port, self.monitor_port = free_port(), free_port()
        self.url = self.nodes_url = f"nats://127.0.0.1:{self.port}"  # nodes_url: another way to it
        self.broker = self._start("broker", [NATS_SERVER, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd",
                                             os.path.join(folder, "broker"), "-m", str(self.monitor_port)])
        self._wait_for_broker()

    def _start(self, name, command):
        with open(os.path.join(self.folder, name + ".log"), "wb") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def _wait_for_broker(self):
        give_up = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if time.monotonic() > give_up or self.broker.poll() is not None:
                    raise
                time.sleep(0.02)

    def broker_says(self, page):
        """What the broker tells of itself: page varz, jsz, …, of NATS' monitoring."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.monitor_port}/{page}", timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def add(self, name, traces, prefix=()):
        """prefix: a command that runs the node (valgrind)."""
        node = self._start(name, [*prefix, self.program, "serve", "--listen", "127.0.0.1:0", "--frozen", "--cluster",
                                  self.nodes_url, "--node", name, "--store", os.path.join(self.folder, "stores"),
                                  *traces])
        self.nodes.append(node)
        self.traces[name] = len(traces)
        return node

    def _all_there(self):
        """Do all nodes say what traces they have? Until then a sender is one that was not traced."""
        run = subprocess.run([self.program, "place", "--cluster", self.url, "--table", "hosts", "--format", "json"],
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
        there = [host["node"] for host in json.loads(run.stdout or "[]")]
        return all(there.count(name) >= count for name, count in self.traces.items())

    def path(self, thread, *args):
        """(exit code, Asked or None, what was said)"""
        return ask(self.program, ["critpath", "--cluster", self.url, "--thread", thread, *args], self.nodes)

    def first_path(self, thread, *args):
        """Once all nodes are there, and their clocks are known."""
        give_up = time.monotonic() + PATIENCE_S
        while True:
            code, asked, said = self.path(thread, *args) if self._all_there() else (1, None, "nodes are missing")
            if code == 0 and "have grown" not in said:
                return asked
            if time.monotonic() > give_up or any(n.poll() is not None for n in self.nodes):
                raise RuntimeError(f"no path of {thread}: {said}")
            time.sleep(0.02)

    def stop(self):
        for process in [*self.nodes, self.broker]:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in [*self.nodes, self.broker]:
            process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
