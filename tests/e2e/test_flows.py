# SPDX-License-Identifier: MIT
"""`weft flows`: what went between hosts against the events as babeltrace2 shows them, and against made worlds of which
every packet is known; the same of a cluster's nodes as of traces in one place."""
import collections
import ipaddress
import json
import math
import os
import re
import subprocess

import test_worlds
from cluster_of import Cluster, wait_for
from test_cluster import example, hosts_of
from weft_e2e import SLOWDOWN, Case, main, need, new_dice, scenario, scratch, weft
from world import TCP, UDP, World
from world_trace import START_NS

DICE = new_dice(57)
RECORDED = ("three-tier", "mpi", "scp-net", "bsp", "clocks")
FIELD = re.compile(r"(\w+) = (0x[0-9A-Fa-f]+|\d+)\b")
ADDRESS = re.compile(r"([sd])addr = \[ (.*?) \]")
ELEMENT = re.compile(r"\] = (\d+)")


class Went:
    """Known figures of one direction of a connection."""

    def __init__(self):
        self.sent, self.received, self.again, self.delays = [], [], 0, []  # (time, bytes); packets; ns
        self.hosts = [None, None]


def percentile(values, p):
    return sorted(values)[math.ceil(len(values) * p / 100) - 1]


def endpoint(address, port):
    return f"{ipaddress.ip_address(bytes(address))}:{port}"


def shown_packets(trace):
    """(whether it was sent, protocol, source, destination, payload) of each packet with ports, by babeltrace2."""
    text = subprocess.run(["babeltrace2", trace], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
    for line in text.decode().splitlines():
        sent = " net_dev_queue: " in line
        if not (sent or " net_if_receive_skb: " in line) or '"_ipv4"' not in line:
            continue
        f = {name: int(value, 0) for name, value in FIELD.findall(line)}
        address = {way: [int(x) for x in ELEMENT.findall(text)] for way, text in ADDRESS.findall(line)}
        tcp = '( "_tcp" : container = 1 )' in line
        if not tcp and '( "_udp" : container = 2 )' not in line:
            continue
        payload = f["tot_len"] - 4 * f["ihl"] - (4 * f["data_offset"] if tcp else 8)
        yield (sent, "tcp" if tcp else "udp", endpoint(address["s"], f["source_port"]),
               endpoint(address["d"], f["dest_port"]), payload)


class Flows(Case):
    def flows(self, *args):
        rows = self.json("flows", *args, "-q")
        for r in rows:
            self.assertLessEqual(r["begin"], r["end"], r)
        return rows


class Recorded(Flows):
    def check(self, name):
        need("babeltrace2")
        recording = scenario(name)
        events = {}
        for host, path in hosts_of(recording).items():
            for sent, protocol, source, target, n in shown_packets(path):
                at = events.setdefault((protocol, source, target), ({}, {}))[not sent].setdefault(host, [0, 0])
                at[0] += 1
                at[1] += n
        rows = self.flows(recording, "--store", scratch(), "--connections")
        shown = {(r["protocol"], r["source"], r["destination"], r["from"], r["to"]): r for r in rows}
        self.assertEqual(len(shown), len(rows))
        seen = collections.Counter()
        for (protocol, source, target, a, b), r in shown.items():
            sent, received = events.get((protocol, source, target), ({}, {}))
            if r["source"].startswith("["):
                continue  # IPv6
            known = sent.get(a) or received.get(b)
            self.assertEqual([r["packets"], r["bytes"]], known, r)
            if r["received_packets"] is not None:
                self.assertEqual([r["received_packets"], r["received_bytes"]], received.get(b, [0, 0]), r)
            seen.update([("sent", a, protocol, source, target)] if a in sent else [])
            seen.update([("received", b, protocol, source, target)] if b in received else [])
        for (protocol, source, target), (sent, received) in events.items():
            for host in sent:
                self.assertGreaterEqual(seen["sent", host, protocol, source, target], 1)
            for host in received:
                self.assertEqual(seen["received", host, protocol, source, target], 1)
        self.sums(rows, self.flows(recording, "--store", scratch()))
        return rows

    def sums(self, lines, pairs):
        """Returns the sums of the connections of two hosts."""
        for pair in pairs:
            mine = [r for r in lines if (r["from"], r["to"]) == (pair["from"], pair["to"])]
            self.assertEqual(pair["connections"], len(mine))
            for what in ("packets", "bytes", "retransmitted", "retransmitted_bytes", "received_packets", "matched"):
                self.assertEqual(pair[what] or 0, sum(r[what] or 0 for r in mine), what)
            self.assertEqual(pair["begin"], min(r["begin"] for r in mine))
            self.assertEqual(pair["end"], max(r["end"] for r in mine))
            known = [r for r in mine if r["matched"]]
            if known:
                self.assertEqual(pair["delay_min"], min(r["delay_min"] for r in known))
                self.assertEqual(pair["delay_max"], max(r["delay_max"] for r in known))
        self.assertEqual(sum(p["connections"] for p in pairs), len(lines))

    def test_recorded(self):
        for name in RECORDED:
            with self.subTest(name):
                self.assertTrue(self.check(name))

    def test_windows_between_ends(self):
        """A packet that left before the window and came within it, and one that left within it and came behind it."""
        recording, store = scenario("three-tier"), scratch()
        text = subprocess.run(["babeltrace2", "--clock-seconds", hosts_of(recording)["client"]], check=True,
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode()
        sent = [int(line[1:11]) * 10**9 + int(line[12:21]) for line in text.splitlines()
                if " net_dev_queue: " in line and "dest_port = 8080" in line]
        self.assertGreater(len(sent), 5)
        seen = 0
        for one, other in zip(sent, sent[1:]):
            rows = self.flows(recording, "--store", store, "--connections", "--reference", "client",
                              "--begin", one + 50_000, "--end", other + 50_000)
            for r in rows:
                if r["from"] == "client" and r["packets"] and r["received_packets"]:
                    self.assertTrue(r["begin"] < other <= r["end"], (r, other))
                    seen += 1
        self.assertGreater(seen, 0)

    def test_network_of_known_delay(self):
        """Network delay between n1 and n2: each packet was held for 30 ms; the others were not delayed."""
        rows = {(r["from"], r["to"]): r for r in self.flows(scenario("scp-net"), "--store", scratch())}
        for way in (("n1", "n2"), ("n2", "n1")):
            r = rows[way]
            self.assertLess(abs(r["delay_min"] - 30_000_000), 2_000_000)
            self.assertGreater(r["delay_min"] + r["delay_error"], 30_000_000)
        self.assertLess(rows["n1", "n3"]["delay_p50"], 10_000_000)


class Watched(World):
    """A world that writes down every packet. Its hosts' devices do not lie on each other."""

    def __init__(self, *args, **how):
        self.went = collections.defaultdict(Went)
        super().__init__(*args, **how)

    def of(self, p):
        return self.went[{TCP: "tcp", UDP: "udp"}[p.protocol], endpoint(p.source, p.sport), endpoint(p.target, p.dport)]

    def put_on_wire(self, host, cpu, devices, p):
        super().put_on_wire(host, cpu, devices, p)
        if host in self.forwarders:
            return
        w, p.left = self.of(p), self.now
        w.hosts[0] = host.name
        w.sent.append((self.now, p.bytes))

    def take_off_wire(self, host, cpu, p):
        super().take_off_wire(host, cpu, p)
        w = self.of(p)
        w.hosts[1] = host.name
        w.received.append((self.now, p.bytes))
        w.delays.append((self.now, self.now - p.left))

    def resend(self, end, p, attempt):
        self.of(p).again += 1
        super().resend(end, p, attempt)


class Made(Flows):
    """Worlds of which every packet is known."""

    def world(self, seed, **how):
        dice = new_dice(seed)
        world = Watched(dice, 3, **how)
        hosts = [h for h in world.hosts if h not in world.forwarders]
        for i in range(6):
            ours, theirs = world.connect(hosts[i % 3], hosts[(i + 1 + i // 3) % 3],
                                         UDP if i == 5 and not world.loss else TCP)
            world.spawn(theirs.host, "server", test_worlds.server(dice, theirs, []))
            world.spawn(ours.host, "client", test_worlds.client(dice, [ours]))
        world.run(world.now + test_worlds.LENGTH_NS)
        folder = scratch()
        for host in world.hosts:
            host.recording.write(os.path.join(folder, host.name, "boot0"))
        return world, folder

    def check(self, world, folder, *options, begin=-math.inf, end=math.inf):
        rows = self.flows(folder, "--store", folder + ".stores", "--connections", *options)
        known = {}
        for key, w in world.went.items():
            sent = [x for x in w.sent if begin <= x[0] <= end]
            received = [x for x in w.received if begin <= x[0] <= end]
            if sent or received:
                known[key] = (w, sent, received, [d for t, d in w.delays if begin <= t <= end])
        self.assertEqual({(r["protocol"], r["source"], r["destination"]) for r in rows}, set(known))
        self.assertEqual(len(rows), len(known))
        for r in rows:
            w, sent, received, delays = known[r["protocol"], r["source"], r["destination"]]
            with self.subTest(source=r["source"], destination=r["destination"]):
                self.assertEqual(r["packets"], len(sent or received))
                self.assertEqual(r["bytes"], sum(n for _, n in sent or received))
                self.assertEqual(r["from"], w.hosts[0])
                self.assertEqual(r["received_packets"], len(received))
                self.assertEqual(r["received_bytes"], sum(n for _, n in received))
                if begin == -math.inf:
                    self.assertEqual(r["retransmitted"], w.again)
                    self.assertEqual(r["to"], w.hosts[1] or r["to"])
                self.check_delays(r, delays if r["from"] != r["to"] else [])
        return rows

    def check_delays(self, r, delays):
        self.assertEqual(r["matched"] or 0, len(delays))
        if delays:
            error = r["delay_error"] or 0
            for what, true in (("min", min(delays)), ("p50", percentile(delays, 50)), ("p99", percentile(delays, 99)),
                               ("max", max(delays))):
                self.assertLessEqual(abs(r[f"delay_{what}"] - true), error, what)

    def test_nothing_lost(self):
        world, folder = self.world(1)
        rows = self.check(world, folder, "--no-sync")
        self.assertFalse(any(r["retransmitted"] for r in rows))
        self.assertTrue(all(r["delay_error"] is None for r in rows))

    def test_loss(self):
        for seed in range(2, 5):
            world, folder = self.world(seed, loss=0.15)
            rows = self.check(world, folder, "--no-sync")
            self.assertTrue(any(r["retransmitted"] for r in rows))
            self.assertTrue(any(r["received_packets"] < r["packets"] for r in rows))

    def test_reordered(self):
        world, folder = self.world(5, reorder=0.5)
        self.check(world, folder, "--no-sync")

    def test_forwarders(self):
        """Forwarding machines are no ends."""
        world, folder = self.world(6, forwarders=1)
        names = {h.name for h in world.forwarders}
        rows = self.check(world, folder, "--no-sync")
        self.assertFalse(names & {r[side] for r in rows for side in ("from", "to")})

    def test_clocks_apart(self):
        """Delays are right within the stated error, whatever the clocks show."""
        ahead = {"h0": (0, 1), "h1": (-3_000_000_000, 1.00002), "h2": (700_000_000, 0.99997)}

        def clock(host, t):
            offset, drift = ahead[host.name]
            return 10**10 + offset + int(t * drift)
        world, folder = self.world(7, clock=clock)
        rows = self.flows(folder, "--store", folder + ".stores", "--connections", "--reference", "h0")
        self.assertTrue(all(r["delay_error"] is not None for r in rows if r["matched"]))
        self.assertTrue(any(r["delay_error"] > 0 for r in rows if r["matched"]))
        for r in rows:
            w = world.went[r["protocol"], r["source"], r["destination"]]
            self.check_delays(r, [d for _, d in w.delays])
            self.assertEqual(r["packets"], len(w.sent))

    def test_window(self):
        world, folder = self.world(8, loss=0.05)
        first, last = 20_000_000, 40_000_000
        self.check(world, folder, "--no-sync", "--begin", START_NS + first, "--end", START_NS + last, begin=first,
                   end=last)

    def test_a_host_that_is_not_there(self):
        """An absent host is named by its address, and there are no delays."""
        world, folder = self.world(9)
        rows = self.flows(*(os.path.join(folder, h) for h in ("h0", "h1")), "--store", scratch(), "--no-sync")
        shown = {(r["from"], r["to"]): r for r in rows}
        lines = [w for w in world.went.values() if w.hosts == ["h0", "h2"]]
        r = shown["h0", "10.0.0.3"]
        self.assertEqual((r["packets"], r["received_packets"], r["matched"]),
                         (sum(len(w.sent) for w in lines), None, None))
        r = shown["10.0.0.3", "h0"]
        lines = [w for w in world.went.values() if w.hosts == ["h2", "h0"]]
        self.assertEqual((r["packets"], r["retransmitted"]), (sum(len(w.received) for w in lines), None))

    def test_what_is_chosen(self):
        world, folder = self.world(10, loss=0.1)
        store = scratch()
        rows = self.flows(folder, "--store", store, "--no-sync")
        mine = self.flows(folder, "--store", store, "--no-sync", "--host", "h1")
        self.assertEqual(mine, [r for r in rows if "h1" in (r["from"], r["to"])])
        for sort, key in (("bytes", "bytes"), ("packets", "packets"), ("retransmitted", "retransmitted"),
                          ("connections", "connections"), ("delay", "delay_p99")):
            ordered = [r[key] if r[key] is not None else -math.inf
                       for r in self.flows(folder, "--store", store, "--no-sync", "--sort", sort)]
            self.assertEqual(ordered, sorted(ordered, reverse=True), sort)
        begins = [r["begin"] for r in self.flows(folder, "--store", store, "--no-sync", "--sort", "begin")]
        self.assertEqual(begins, sorted(begins))
        self.assertEqual(self.flows(folder, "--store", store, "--no-sync", "--limit", "2"), rows[:2])
        for wrong in (("--host", "nobody"), ("--sort", "size"), ("--begin", "+2s", "--end", "+1s"),
                      ("--reference", "nobody")):
            self.assertEqual(weft("flows", folder, "--store", store, *wrong).code, 2, wrong)


class OfCluster(Flows):
    """Flows of a cluster: the same as of traces in one place."""

    def same(self, cluster, traces, store, *options):
        for form in ("json", "csv", "table"):
            far = self.ok("flows", "--cluster", cluster.broker.url, *options, "--format", form)
            near = self.ok("flows", *traces, "--store", store, *options, "--format", form)
            self.assertEqual((far.text, far.message), (near.text, near.message), f"{options} {form}")
        return near

    def test_recorded(self):
        for name, host in (("three-tier", "web"), ("mpi", "n1"), ("scp-net", "n2"), ("vm", "guest1")):
            recording, store = scenario(name), scratch()
            with Cluster({h: [path] for h, path in hosts_of(recording).items()}, store=store) as cluster:
                for asked in ((), ("--connections",), ("--sort", "delay"), ("--host", host), ("--no-sync",),
                              ("--reference", host), ("--begin", "+1s", "--end", "+2.5s", "--connections")):
                    self.same(cluster, [recording], store, *asked)

    def test_ten_machines(self):
        recording, store = example("ten-machines"), scratch()
        hosts = list(hosts_of(recording).items())
        nodes = {f"node{i}": [path for _, path in hosts[i::4]] for i in range(4)}
        with Cluster(nodes, store=store) as cluster:
            self.same(cluster, [recording], store)
            self.same(cluster, [recording], store, "--connections")

    def test_made(self):
        for i, how in enumerate(({"loss": 0.1}, {"forwarders": 2}, {"stacked": True})):
            world = test_worlds.make(new_dice(70 + i), **how)
            folder, store = scratch(), scratch()
            for host in world.hosts:
                host.recording.write(os.path.join(folder, host.name, "boot0"))
            with Cluster({h: [path] for h, path in hosts_of(folder).items()}, store=store) as cluster:
                self.same(cluster, [folder], store, "--connections")
                self.same(cluster, [folder], store)

    def test_a_node_that_is_away(self):
        """Flows of a missing node's hosts are shown as the others saw them, with a note."""
        recording = scenario("three-tier")
        with Cluster({h: [path] for h, path in hosts_of(recording).items()}) as cluster:
            asked = ("flows", "--cluster", cluster.broker.url, "--format", "json", "--timeout", "20s")
            before = {(r["from"], r["to"]): r for r in json.loads(self.ok(*asked).out)}
            keeper = cluster.broker.table("weft_weft_keeper")["keeper"].decode()
            gone = next(name for name in ("web", "db") if name != keeper)
            cluster.nodes[gone].kill()
            part = self.partly(*asked)
            self.assertIn(f"node {gone}: ", part.message)
            after = {(r["from"], r["to"]): r for r in json.loads(part.out)}
            self.assertEqual(set(after), set(before))
            for way, r in after.items():
                self.assertEqual(r["delay_p50"], before[way]["delay_p50"], way)
                if gone == way[0]:
                    self.assertEqual((r["packets"], r["retransmitted"]), (before[way]["received_packets"], None))
                if gone == way[1]:
                    self.assertEqual((r["packets"], r["received_packets"]), (before[way]["packets"], None))
            cluster.nodes[gone].start()
            cluster.settle()
            wait_for("all is there again", lambda: weft(*asked).code == 0)
            self.assertEqual({(r["from"], r["to"]): r for r in json.loads(self.ok(*asked).out)}, before)

    def test_another_keeper(self):
        """The packets are gathered anew by who keeps the clocks next."""
        recording = scenario("three-tier")
        with Cluster({h: [path] for h, path in hosts_of(recording).items()}) as cluster:
            asked = ("flows", "--cluster", cluster.broker.url, "--format", "json")
            before = self.ok(*asked)
            keeper = cluster.broker.table("weft_weft_keeper")["keeper"].decode()
            cluster.nodes[keeper].leave()
            cluster.nodes[keeper].start()
            cluster.settle()
            self.assertEqual(self.ok(*asked, "--timeout", f"{60 * SLOWDOWN}s").text, before.text)

    def test_wrong_use(self):
        for wrong in (("--cluster", "nats://127.0.0.1:1", scenario("three-tier")), ("--timeout", "2s", "x"), ()):
            self.assertEqual(weft("flows", *wrong).code, 2, wrong)


if __name__ == "__main__":
    main()
