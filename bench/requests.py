#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A busy server's requests, made: what `weft requests` takes to find them and to tell groups.

    bench/requests.py [--requests N] [--connections N] [--weft build/weft] [--dir DIR]

One CPU, eight workers; a tenth of the requests waits for a disk. Prints JSON: wall clock and processor time, the best
of three, of the table and of JSON, which lists a thousand requests; and how soon a server that has just opened the
trace answers with the first hundred requests, any other hundred, the groups, and how many took how long."""
import argparse
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from types import SimpleNamespace

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
import world_trace  # noqa: E402

IDLE, WORKERS = ("swapper/0", 0), [(f"worker-{i}", 100 + i) for i in range(8)]
SERVER, SLEEPING, DISK_SLEEP, NET_RX, DISK_IRQ = (10, 0, 0, 1), 1, 2, 3, 14
PORTS = 20000  # of one client


class Server:
    def __init__(self, connections):
        self.dice, self.now, self.packets = random.Random(1), 1000, 0
        self.recording = world_trace.Recording("server", 1)
        self.clients = [SimpleNamespace(address=((10, 1, i // PORTS, 2), 40000 + i % PORTS), came=1000, went=1000)
                        for i in range(connections)]
        for name, tid in WORKERS:
            self.emit("lttng_statedump_process_state", 10, struct.pack("<iii", tid, tid, 1) + world_trace.comm(name)
                      + struct.pack("<iiiiIQ", 0, 5, 0, 5, 0, 0))

    def emit(self, name, after, payload):
        self.now += after
        self.recording.add(0, self.now, name, payload)

    def switch(self, prev, state, following, after):
        self.emit("sched_switch", after, world_trace.comm(prev[0]) + struct.pack("<iiq", prev[1], 20, state)
                  + world_trace.comm(following[0]) + struct.pack("<ii", following[1], 20))

    def wake(self, worker):
        self.emit("sched_waking", 100, world_trace.comm(worker[0]) + struct.pack("<iii", worker[1], 20, 0))

    def packet(self, client, sent, after):
        n = self.dice.randint(50, 1400)
        ends = [(SERVER, 80), client.address]
        (source, sport), (target, dport) = ends if sent else ends[::-1]
        seq, ack = (client.went, client.came) if sent else (client.came, client.went)
        self.packets += 1
        p = SimpleNamespace(protocol=world_trace.TCP, source=source, sport=sport, target=target, dport=dport, seq=seq,
                            ack=ack, flags=0x18, bytes=n, ip_id=self.packets & 0xffff)
        self.emit("net_dev_queue" if sent else "net_if_receive_skb", after,
                  world_trace.packet("eth0", self.packets, p))
        if sent:
            client.went += n
        else:
            client.came += n

    def wait_for_disk(self, worker):
        self.switch(worker, DISK_SLEEP, IDLE, 1000)
        self.emit("irq_handler_entry", self.dice.randint(50000, 200000), struct.pack("<i", DISK_IRQ) + b"disk\0")
        self.emit("block_rq_complete", 50, struct.pack("<IQIiI", 8 << 20, 5, 8, 0, 1))
        self.wake(worker)
        self.emit("irq_handler_exit", 50, struct.pack("<ii", DISK_IRQ, 1))
        self.switch(IDLE, 0, worker, 100)

    def serve(self, client):
        worker = self.dice.choice(WORKERS)
        self.emit("irq_softirq_entry", 2000, struct.pack("<I", NET_RX))
        self.packet(client, False, 100)
        self.wake(worker)
        self.emit("irq_softirq_exit", 100, struct.pack("<I", NET_RX))
        self.switch(IDLE, 0, worker, 300)
        if self.dice.random() < 0.1:
            self.wait_for_disk(worker)
        self.packet(client, True, self.dice.randint(5000, 20000))
        self.switch(worker, SLEEPING, IDLE, 500)


def measure(*asked):
    begin = time.monotonic()
    p = subprocess.Popen(asked, stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(p.pid, 0)
    if status:
        sys.exit(f"{' '.join(asked)}: status {status}")
    return {"s": round(time.monotonic() - begin, 3), "cpu_s": round(used.ru_utime + used.ru_stime, 3)}


def best(*asked):
    return min((measure(*asked) for _ in range(3)), key=lambda r: r["cpu_s"])


def ask(url, path, parameters):
    body = json.dumps({"parameters": parameters}).encode()
    question = urllib.request.Request(url + path, body, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(question))


def serve(weft, trace, store):
    """Seconds by what was asked."""
    p = subprocess.Popen([weft, "serve", "--listen", "127.0.0.1:0", "--store", store, trace], stdout=subprocess.PIPE)
    try:
        url = p.stdout.readline().decode().split("listening on ")[1].strip() + "/tsp/api"
        [x] = json.load(urllib.request.urlopen(url + "/experiments"))
        while x["indexingStatus"] != "COMPLETED":
            time.sleep(0.05)
            x = json.load(urllib.request.urlopen(f"{url}/experiments/{x['UUID']}"))
        at = f"/experiments/{x['UUID']}/outputs"
        span, seconds = {"start": x["start"], "end": x["end"]}, {}
        for name, path, more in (
                ("first page", "/table/weft.requests/lines", {"requested_table_index": 0}),
                ("other page", "/table/weft.requests/lines", {"requested_table_index": 777}),
                ("groups", "/data/weft.requests.groups/tree", {"requested_timerange": span}),
                ("durations", "/genericXY/weft.requests.durations/xy",
                 {"requested_timerange": dict(span, nbSamples=2), "requested_items": []})):
            begin = time.monotonic()
            while ask(url, at + path, {"requested_table_count": 100, **more})["status"] == "RUNNING":
                pass
            seconds[name] = round(time.monotonic() - begin, 4)
        return seconds
    finally:
        p.terminate()
        p.wait()


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--requests", type=int, default=100000)
    options.add_argument("--connections", type=int, default=1000)
    options.add_argument("--weft", default="build/weft")
    options.add_argument("--dir")
    o = options.parse_args()
    with tempfile.TemporaryDirectory(dir=o.dir) as top:
        server, trace, store = Server(o.connections), os.path.join(top, "trace"), os.path.join(top, "store")
        for i in range(o.requests):
            server.serve(server.clients[i % o.connections])
        server.recording.write(trace)
        subprocess.run([o.weft, "index", trace, "--store", store, "-q"], stdout=subprocess.DEVNULL, check=True)
        asked = [o.weft, "requests", trace, "--store", store, "-q"]
        print(json.dumps({"requests": o.requests, "connections": o.connections, "table": best(*asked),
                          "json": best(*asked, "--format", "json"),
                          "served": serve(o.weft, trace, store)}))


if __name__ == "__main__":
    main()
