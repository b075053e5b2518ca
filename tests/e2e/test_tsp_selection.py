# SPDX-License-Identifier: MIT
"""Figures of a range: against `weft threads`, and against events counted here."""
import json
import os
from collections import Counter

from tsp_server import Server, ServerCase
from weft_e2e import main, new_dice, scenario, scratch

THREADS, CPUS, DEVICES = "weft.selection.threads", "weft.selection.cpus", "weft.selection.devices"
STATES = ["running", "preempted", "blocked", "timer", "network", "block-device", "other"]
READ = {"read", "pread64", "readv", "preadv", "recvfrom", "recvmsg"}
WRITE = {"write", "pwrite64", "writev", "pwritev", "sendto", "sendmsg"}


def payload(header):
    """Bytes that a packet carries above TCP or UDP, by its headers."""
    ip = header.get("ipv4", {})
    transport = ip.get("transport_header", {})
    if "tcp" in transport:
        return ip["tot_len"] - 4 * ip["ihl"] - 4 * transport["tcp"]["data_offset"]
    return transport["udp"]["len"] - 8 if "udp" in transport else 0


class Selection(ServerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.store, cls.dice = scratch(), new_dice(12)

    def tree(self, server, x, output, *span):
        span = {"requested_timerange": {"start": span[0], "end": span[1]}} if span else {}
        return server.model(f"/experiments/{x['UUID']}/outputs/data/{output}/tree", span)

    def lines(self, server, x, output, *span):
        """{machine: {labels that name the row: numbers}} and {machine: its own numbers}."""
        model = self.tree(server, x, output, *span)
        roots = {e["id"]: e for e in model["entries"] if e["parentId"] < 0}
        self.assertEqual(len(roots), len({e["labels"][0] for e in roots.values()}))
        below, own = {e["labels"][0]: {} for e in roots.values()}, {}
        for e in model["entries"]:
            numbers = {k: v[0] for k, v in e["metadata"].items() if k not in ("hostId", "TID")}
            self.assertEqual(len(e["labels"]), len(model["headers"]))
            self.assertTrue(all(isinstance(v, int) for v in numbers.values()), e)
            machine = roots.get(e["parentId"], e)["labels"][0]
            if e["parentId"] < 0:
                own[machine] = numbers
                continue
            key = (e["labels"][0], *e["labels"][1:len(e["labels"]) - len(numbers)])
            self.assertNotIn((key, e["id"]), below[machine])
            below[machine][key, e["id"]] = numbers
        for machine, rows in below.items():  # a machine's figures are those of its rows
            for k, v in own[machine].items():
                self.assertEqual(sum(r[k] for r in rows.values()), v, (machine, k))
        return below, own

    def ranges(self, begin, end, n):
        yield begin, end
        for _ in range(n):
            a, b = sorted(self.dice.randrange(begin, end) for _ in range(2))
            yield a, b
        yield begin + (end - begin) // 2, begin + (end - begin) // 2

    def events(self, trace, host, *names):
        all_ = self.ok("events", "--format", "json", *(["--names", ",".join(names)] if names else []), trace).text
        return [e for e in map(json.loads, all_.splitlines()) if e["host"] == host]

    def test_threads_as_the_verb_tells(self):
        for name, hosts in (("three-tier", ("client", "db")), ("lost-events", ("solo",)), ("rotated", None)):
            trace = scenario(name)
            for host in hosts or [self.json("threads", "--store", self.store, "--limit", "1", trace)[0]["host"]]:
                with Server("--reference", host, trace, store=self.store) as server:
                    x = server.first()
                    for begin, end in self.ranges(x["start"], x["end"], 6):
                        below, _ = self.lines(server, x, THREADS, begin, end)
                        asked = [] if (begin, end) == (x["start"], x["end"]) else ["--begin", begin, "--end", end]
                        wanted = self.json("threads", "--store", self.store, "--host", host, *asked, trace)
                        self.assertEqual(
                            sorted((k[0], k[1], k[2], *(v[s] for s in STATES)) for (k, _), v in below[host].items()),
                            sorted((t["comm"], str(t["tid"]), str(t["pid"]), *(t[s] for s in STATES)) for t in wanted),
                            (name, host, begin, end))
                        self.assertTrue(asked or len(wanted) > 10)

    def test_those_with_the_most(self):
        with Server(scenario("three-tier"), store=self.store) as server:
            x = server.first()
            at = f"/experiments/{x['UUID']}/outputs/data/{THREADS}/tree"
            everything = [e for e in server.model(at)["entries"] if e["parentId"] >= 0]
            for n in (1, 3, 10 ** 6):
                told = server.model(at, {"most": n})["entries"]
                wanted = set()
                for state in STATES[:-1]:
                    times = sorted((e["metadata"][state][0] for e in everything), reverse=True)
                    least = max(1, times[min(n, len(times)) - 1])
                    wanted |= {e["id"] for e in everything if e["metadata"][state][0] >= least}
                self.assertEqual({e["id"] for e in told if e["parentId"] >= 0}, wanted)
                self.assertEqual([e["labels"][0] for e in told if e["parentId"] < 0], ["client", "db", "web"])
                self.assertTrue(n > 3 or len(wanted) < 3 * len(STATES))

    def test_cpus_as_their_switches_tell(self):
        trace = scenario("three-tier")
        for host in ("web", "client"):
            switches = self.events(trace, host, "sched_switch")
            with Server("--reference", host, trace, store=self.store) as server:
                x = server.first()
                first = max(next(e["ts"] for e in switches if e["cpu"] == c) for c in {e["cpu"] for e in switches})
                for begin, end in list(self.ranges(first, switches[-1]["ts"], 5)):
                    below, _ = self.lines(server, x, CPUS, begin, end)
                    busy, since = Counter(), {}
                    for e in [*switches, *({"ts": end, "cpu": c, "fields": {"next_tid": 0}} for c in range(64))]:
                        at = min(max(e["ts"], begin), end)
                        if e["cpu"] in since:
                            busy[e["cpu"]] += at - since.pop(e["cpu"])
                        if e["fields"]["next_tid"]:
                            since[e["cpu"]] = at
                    got = {k[0]: v for (k, _), v in below[host].items()}
                    self.assertEqual(set(got), {f"CPU {e['cpu']}" for e in switches})
                    for cpu in {e["cpu"] for e in switches}:
                        v = got[f"CPU {cpu}"]
                        self.assertEqual((v["busy"], v["idle"], v["unknown"]),
                                         (busy[cpu], end - begin - busy[cpu], 0), (host, cpu, begin, end))

    def test_cpus_as_their_idle_threads_tell(self):
        """CPU times by their idle threads, also with lost events: unknown times are reported."""
        for name, host in (("lost-events", "solo"), ("rotated", None), ("three-tier", "db")):
            trace, unknown = scenario(name), 0
            host = host or self.json("threads", "--store", self.store, "--limit", "1", trace)[0]["host"]
            with Server("--reference", host, trace, store=self.store) as server:
                x = server.first()
                for begin, end in self.ranges(x["start"], x["end"], 6):
                    below, _ = self.lines(server, x, CPUS, begin, end)
                    got = {k[0]: (v["busy"], v["idle"], v["unknown"]) for (k, _), v in below[host].items()}
                    threads = self.json("threads", "--store", self.store, "--host", host, "--all", "--thread", "0",
                                        "--begin", begin, "--end", end, trace)
                    idle = [t for t in threads if t["comm"].startswith("swapper/")]
                    self.assertEqual({cpu: v[:2] for cpu, v in got.items()}, {
                        f"CPU {t['comm'].split('/')[1]}": (t["preempted"], t["running"]) for t in idle},
                        (name, begin, end))
                    for v in got.values():  # the idle thread is not there before it is first seen
                        self.assertTrue(0 < sum(v) <= end - begin or end == begin)
                    unknown += sum(v[2] for v in got.values())
            self.assertTrue(unknown or name != "lost-events", name)

    def test_bytes_of_devices_as_the_packets_tell(self):
        trace = scenario("three-tier")
        packets = self.events(trace, "db", "net_dev_queue", "net_if_receive_skb")
        ways = {"net_dev_queue": "sent", "net_if_receive_skb": "received"}
        with Server("--reference", "db", trace, store=self.store) as server:
            x = server.first()
            for begin, end in self.ranges(x["start"], x["end"], 5):
                below, _ = self.lines(server, x, DEVICES, begin, end)
                wanted = Counter()
                for p in packets:
                    if begin <= p["ts"] <= end:
                        wanted[p["fields"]["name"], ways[p["name"]]] += payload(p["fields"]["network_header"])
                wanted += Counter()  # drops zeros
                got = Counter({(k[0], way): v[way] for (k, _), v in below["db"].items() if k[1] == "network"
                               for way in ("sent", "received") if v[way]})
                self.assertEqual(got, wanted, (begin, end))

    def test_bytes_of_threads_as_their_calls_tell(self):
        trace = scenario("three-tier")
        with Server("--reference", "web", trace, store=self.store) as server:
            x = server.first()
            events = self.events(trace, "web")
            for begin, end in self.ranges(x["start"], x["end"], 5):
                _, own = self.lines(server, x, THREADS, begin, end)
                wanted = Counter()
                for e in events:
                    call = e["name"].removeprefix("syscall_exit_")
                    if begin <= e["ts"] <= end and call in READ | WRITE and e["fields"]["ret"] > 0:
                        wanted["read" if call in READ else "written"] += e["fields"]["ret"]
                self.assertEqual((own["web"]["read"], own["web"]["written"]), (wanted["read"], wanted["written"]))

    def test_ids_are_those_of_the_threads(self):
        with Server(scenario("three-tier"), store=self.store) as server:
            x = server.first()
            threads = {e["id"]: (e["labels"][0], e["labels"][1]) for e in server.model(
                f"/experiments/{x['UUID']}/outputs/timeGraph/org.eclipse.tracecompass.internal.analysis.os.linux.core."
                "threadstatus.ThreadStatusDataProvider/tree")["entries"]}
            whole = self.tree(server, x, THREADS)["entries"]
            part = self.tree(server, x, THREADS, x["start"], (x["start"] + x["end"]) // 2)["entries"]
            self.assertGreater(len(whole), 100)
            for e in whole + part:
                if e["parentId"] >= 0:
                    self.assertEqual(threads[e["id"]], (e["labels"][0], e["labels"][1]))
            for output in (CPUS, DEVICES):
                named = {}
                for span in ((), (x["start"], x["start"] + 1), (x["end"] - 10 ** 9, x["end"])):
                    for e in self.tree(server, x, output, *span)["entries"]:
                        key = (e["metadata"]["hostId"][0], *e["labels"][:1])
                        self.assertEqual(named.setdefault(e["id"], key), key)
                self.assertEqual(len(set(named.values())), len(named))

    def test_user_space_alone_has_none(self):
        trace = scenario("ust-live")
        with Server(os.path.join(trace), store=self.store) as server:
            listed = {o["id"]: o["type"] for o in server.get(f"/experiments/{server.first()['UUID']}/outputs").json}
            kernel = any(i.endswith("ThreadStatusDataProvider") for i in listed)
            self.assertEqual(THREADS in listed, kernel)


if __name__ == "__main__":
    main()
