# SPDX-License-Identifier: MIT
"""`weft sync` against the measured relation of the clocks (true-sync.json of each scenario)."""
import csv
import io
import itertools
import os
from fractions import Fraction

import weft_e2e
from weft_e2e import Case, Truth, load, scenario, scratch

# The traffic of each pair with messages in both directions, by the clock of the first host: its first and last packet
# to the other (net_dev_queue, IPv4 header; times as babeltrace2 prints them).
TRAFFIC = {
    "three-tier": {("client", "web"): (1795225077664440373, 1795225078386713366),
                   ("web", "db"): (1795225077694536719, 1795225078341514424)},
    "bsp": {("n1", "n2"): (1795226894529558675, 1795226895926106949),
            ("n1", "n3"): (1795226894503622032, 1795226895911241761),
            ("n1", "n4"): (1795226894466503192, 1795226895933145631)},
    "scp-net": {("n1", "n2"): (1795224743575196953, 1795224750024067961),
                ("n1", "n3"): (1795224743611732306, 1795224748021575921),
                ("n1", "n4"): (1795224743641710504, 1795224748790453231)},
    "mpi": {("n1", "n2"): (1795226430087637892, 1795226437848993447),
            ("n1", "n3"): (1795226430083806815, 1795226437868115451),
            ("n1", "n4"): (1795226430013066899, 1795226437869676167),
            ("n2", "n4"): (1795226436526850738, 1795226437583038090),
            ("n3", "n4"): (1795226436719479682, 1795226437785295149)},
    # Hosts all talk all the time; their narrowest place may lie anywhere.
    "ten-machines": {},
    "clocks": {("n1", "n2"): (1795224955521323354, 1795225025571899439),
               ("n1", "n3"): (1795224955464888071, 1795225025527055333),
               ("n1", "n4"): (1795224955535225405, 1795225025570249278),
               ("n2", "n3"): (1795224956702714027, 1795225026737111958),
               ("n2", "n4"): (1795224956675280821, 1795225026728528356),
               ("n3", "n4"): (1795224947256614542, 1795225017290105670)},
}
# Factor of the half sum of the least delays. No corridor is narrower than the half sum, and the fastest packets lie
# apart in time. If it is narrowest in the middle half of the traffic, this must hold.
WIDTH_FACTOR = Fraction(13, 10)


def middle(traffic, steps=64):
    """Times that cover the middle half of the traffic."""
    first, last = traffic
    return [first + (last - first) * (steps + 2 * i) // (4 * steps) for i in range(steps + 1)]


def by_hosts(key):
    """"n1/kernel -> n2/kernel" as ("n1", "n2")."""
    return tuple(side.split("/")[0] for side in key.split(" -> "))


class SyncTruth:
    """Mixed into one class per scenario."""

    name = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = scenario(cls.name)
        cls.store = scratch()
        cls.truth = Truth(cls.trace)
        # Figures measured with babeltrace2 and the true clocks: spans of the traces, segments matched by addresses,
        # ports, sequence numbers, flags and length, least true one-way delays.
        known = load(cls.trace, "verify.json")
        cls.spans = {key.split("/")[0]: (t["first_ns"], t["last_ns"]) for key, t in known["traces"].items()}
        cls.delays = {by_hosts(key): Fraction(str(d["true_min_us"])) * 1000 for key, d in known["delays"].items()}
        cls.segments = {by_hosts(key): n for key,
                        n in known["tcp_matched_same_addresses_ports_seq_ack_flags_len"].items()}

    def holds(self, maps, host, reference, t, what):
        """Host time t: the true reference time lies within the stated error of the map."""
        off = maps[host].to_reference(t) - self.truth.convert(host, reference, t)
        error = maps[host].error_ns(t)
        self.assertLessEqual(abs(off), error + 2,
                             f"{what} at {t}: off by {float(off):.0f} ns, stated error {float(error):.0f} ns")

    def test_pairs_in_both_directions(self):
        for (a, b), traffic in TRAFFIC[self.name].items():
            for host, reference in ((b, a), (a, b)):
                with self.subTest(host=host, reference=reference):
                    _, maps = self.sync(self.trace, self.store, "--reference", reference)
                    m, (begin, end) = maps[host], self.spans[host]
                    self.assertEqual(m.category, "accurate")
                    self.assertNotEqual(m.pieces, [])
                    middles = [int(self.truth.convert(a, host, t)) for t in middle(traffic)]
                    for t in (begin, (begin + end) // 2, *middles, end):
                        self.holds(maps, host, reference, t, f"{host} to {reference}")
                    limit = WIDTH_FACTOR * (self.delays[a, b] + self.delays[b, a]) / 2
                    width = min(m.error_ns(t) for t in middles)
                    self.assertLessEqual(width, limit,
                                         f"{host} to {reference}: half width in mid-traffic {float(width):.0f} ns of "
                                         f"{float(limit):.0f}")

    def test_every_host_has_a_true_map(self):
        answer, maps = self.sync(self.trace, self.store)
        self.assertEqual(sorted(maps), self.truth.hosts)
        for host, m in maps.items():
            self.assertIn(m.category, ("reference", "accurate"))
            begin, end = self.spans[host]
            self.assertLessEqual(m.pieces[0]["begin"], begin + 1)
            self.assertGreaterEqual(m.pieces[-1]["end"], end - 1)
            for t in (begin, (begin + end) // 2, end):
                self.holds(maps, host, answer["reference"], t, f"{host} to {answer['reference']}")

    def test_drift_bounds_hold_the_truth(self):
        answer, _ = self.sync(self.trace, self.store)
        seen = set()
        for p in answer["pairs"]:
            pair = (p["a"], p["b"])
            seen.add(frozenset(pair))
            if p["category"] != "accurate":
                continue
            true = self.truth.scale(p["a"], p["b"])
            low, high = Fraction(str(p["drift_min"])), Fraction(str(p["drift_max"]))
            self.assertLessEqual(low, high)
            # Whichever way round the factor is meant, the true one of that way lies between the bounds.
            self.assertTrue(low <= true <= high or low <= 1 / true <= high,
                            f"{pair}: {float(true)} is not in [{float(low)}, {float(high)}]")
        for pair in TRAFFIC[self.name]:
            self.assertIn(frozenset(pair), seen)

    def test_shown_drifts_hold_the_truth(self):
        """Drifts are within the bound beside each; with digits that CSV shows."""
        shown = self.ok("sync", self.trace, "--store", self.store, "--format", "csv").text
        rows = list(csv.DictReader(io.StringIO(shown)))
        self.assertEqual(sorted(row["host"] for row in rows), self.truth.hosts)
        for row in rows:
            true = self.truth.scale(row["host"], row["reference"]) - 1
            off = abs(Fraction(row["drift_ppm"]) / 10**6 - true)
            self.assertLessEqual(off, (Fraction(row["drift_error_ppm"]) + Fraction(1, 10**5)) / 10**6, row)

    def test_messages(self):
        """Messages include every segment that babeltrace2's output matches by its full header; merged or retransmitted
        ones may differ."""
        answer, _ = self.sync(self.trace, self.store)
        for p in answer["pairs"]:
            for count, pair in zip(p["messages"], ((p["a"], p["b"]), (p["b"], p["a"]))):
                known = self.segments.get(pair, 0)
                self.assertGreaterEqual(count, known * 0.99 - 0.5, f"{pair}: {known} segments match by their headers")


class ThreeTier(SyncTruth, Case):
    name = "three-tier"

    def test_hosts_that_never_talk(self):
        _, maps = self.sync(self.trace, self.store, "--reference", "client")
        self.assertEqual(maps["db"].predecessor, "web")
        _, from_web = self.sync(self.trace, self.store, "--reference", "web")
        mid = int(self.truth.convert("web", "db", sum(TRAFFIC["three-tier"]["web", "db"]) // 2))
        self.holds(maps, "db", "client", mid, "db to client")
        here = maps["db"].error_ns(mid)
        sum_of_errors = from_web["db"].error_ns(mid) + from_web["client"].error_ns(int(self.truth.convert("db",
                                                                                                          "client",
                                                                                                          mid)))
        self.assertLessEqual(abs(here - sum_of_errors), sum_of_errors / 20,
                             "the error is the sum of the errors on the way")

    def test_table(self):
        text = self.ok("sync", self.trace, "--store", self.store).text
        for host in self.truth.hosts:
            self.assertRegex(text, rf"(?m)^\s*{host}\b")

    def test_unknown_reference(self):
        run = weft_e2e.weft("sync", self.trace, "--store", self.store, "--reference", "nobody")
        self.assertEqual(run.code, 2, run)
        self.assertIn("nobody", run.message)


    def test_reference_fits_nothing_again(self):
        """Stored pairs are the same file for every reference, and give the same result as a run without it."""
        store = scratch()
        self.sync(self.trace, store)
        files = [os.path.join(d, f) for d, _, names in os.walk(store) for f in names if f.startswith("clocks-")]
        self.assertEqual(len(files), 1)
        before = os.stat(files[0])
        for reference in self.truth.hosts:
            kept = self.ok("sync", self.trace, "--store", store, "--reference", reference, "--format", "json").text
            alone = self.ok("sync", self.trace, "--store", scratch(), "--reference", reference, "--format", "json").text
            self.assertEqual(kept, alone)
        after = os.stat(files[0])
        self.assertEqual((before.st_ino, before.st_mtime_ns), (after.st_ino, after.st_mtime_ns))

    def test_reference_that_nothing_relates(self):
        """client and db never talk: without web nothing relates them."""
        two = [os.path.join(self.trace, h) for h in ("client", "db")]
        for verb in (["sync"], ["critpath", "--thread", "client:204"], ["events", "--sync"]):
            run = weft_e2e.weft(*verb, *two, "--store", self.store, "--reference", "db")
            self.assertEqual(run.code, 2, run)
            self.assertEqual(run.out, b"")
            self.assertRegex(run.message, "--reference db: no message relates its clock to .*client")
        run = self.ok("critpath", *two, "--thread", "client:204", "--store", self.store, "--reference", "client")
        self.assertRegex(run.message, "note: db: no messages relate its clock to that of client; the path does not go")

    def test_trust_relates_islands(self):
        """Clocks of the islands were 170.7 ms apart: the truth is within an error of 200 ms, and of nothing less."""
        two = [os.path.join(self.trace, h) for h in ("client", "db")]
        answer, maps = self.sync(two[0], self.store, two[1], "--reference", "client", "--trust", "client,db=200ms")
        self.assertEqual(answer["trust"], [{"hosts": ["client", "db"], "error_ns": 200000000}])
        self.assertEqual((maps["db"].category, maps["db"].predecessor), ("trusted", "client"))
        begin, end = self.spans["db"]
        for t in (begin, (begin + end) // 2, end):
            self.holds(maps, "db", "client", t, "db to client by trust")
            self.assertEqual(maps["db"].to_reference(t), t)
            self.assertEqual(maps["db"].error_ns(t), 200000000)
        run = self.ok("critpath", *two, "--thread", "client:204", "--store", self.store, "--trust", "*=200ms")
        self.assertNotIn("the path does not go there", run.message)

    def test_trust_and_messages(self):
        """Messages narrow what is trusted; what contradicts them is told, and not believed."""
        _, alone = self.sync(self.trace, self.store, "--reference", "web")
        answer, maps = self.sync(self.trace, self.store, "--reference", "web", "--trust", "*=200ms")
        self.assertEqual(answer["contradictions"], [])
        for host in ("client", "db"):
            for t in self.spans[host]:
                self.holds(maps, host, "web", t, f"{host} to web")
                self.assertLessEqual(maps[host].error_ns(t), alone[host].error_ns(t) + 2)
        answer, maps = self.sync(self.trace, self.store, "--reference", "web", "--trust", "web,db=1ms")
        (told,) = answer["contradictions"]
        self.assertEqual({told["a"], told["b"]}, {"web", "db"})
        self.assertTrue(told["out_of_trust"])
        # 125.46 ms apart, 1 ms is stated, and the messages know it to 0.7 ms
        self.assertTrue(123_700_000 <= told["apart_ns"] <= 124_500_000, told)
        for t in self.spans["db"]:
            self.holds(maps, "db", "web", t, "db to web")
        for verb in (["critpath", "--thread", "client:204"], ["events", "--sync", "--limit", "1"], ["sync", "--format",
                                                                                                    "csv"]):
            run = self.ok(*verb, self.trace, "--store", self.store, "--trust", "web,db=1ms")
            self.assertRegex(run.message, "note: (web|db) is left out of --trust: by its messages with (web|db)")
        self.assertRegex(self.ok("sync", self.trace, "--store", self.store, "--trust", "web,db=1ms").text,
                         "(?m)^(web|db) is left out of --trust")

    def test_no_sync(self):
        """Clocks stay as they are; only what is trusted relates them."""
        answer, maps = self.sync(self.trace, self.store, "--no-sync")
        self.assertEqual((answer["pairs"], len(answer["islands"])), ([], 3))
        _, maps = self.sync(self.trace, self.store, "--no-sync", "--trust", "*=200ms", "--reference", "db")
        for host, m in maps.items():
            for t in self.spans[host]:
                self.assertEqual(m.to_reference(t), t)
                self.holds(maps, host, "db", t, f"{host} to db")
        own = self.ok("events", self.trace, "--limit", "20").text
        self.assertEqual(self.ok("events", self.trace, "--sync", "--no-sync", "--limit", "20").text, own)
        self.assertNotEqual(self.ok("events", self.trace, "--sync", "--limit", "20", "--store", self.store).text, own)
        paths = [self.json("critpath", trace, "--thread", "client:204", "--store", self.store, "--no-sync")
                 for trace in (self.trace, os.path.join(self.trace, "client"))]
        self.assertEqual(paths[0]["query"], paths[1]["query"])  # times by client's own clock

    def test_order_of_arguments(self):
        """Clocks do not depend on the order of arguments."""
        hosts = [f"{h}={self.trace}/{h}" for h in ("client", "web", "db")]
        for options in ((), ("--reference", "web")):
            answers = [self.ok("sync", "--format", "json", "--store", self.store, *order, *options).text
                       for order in itertools.permutations(hosts)]
            self.assertEqual(len(set(answers)), 1, options)

    def test_wrong_trust(self):
        for value, said in (("client,nobody=1ms", "nobody"), ("client,db=1parsec", "1parsec"), ("=1ms", "=1ms"),
                            ("client,db=-1ms", "-1ms")):
            run = weft_e2e.weft("sync", self.trace, "--store", self.store, "--trust", value)
            self.assertEqual(run.code, 2, run)
            self.assertIn(said, run.message)


class Bsp(SyncTruth, Case):
    name = "bsp"


class ScpNet(SyncTruth, Case):
    name = "scp-net"


class Mpi(SyncTruth, Case):
    name = "mpi"


class Clocks(SyncTruth, Case):
    name = "clocks"

    def test_drift(self):
        """Drifts of up to 148 ppm, injected and measured; weft's are within 2 ppm of them."""
        for reference in self.truth.hosts:
            _, maps = self.sync(self.trace, self.store, "--reference", reference)
            for host in self.truth.hosts:
                begin, end = self.spans[host]
                off = maps[host].drift((begin + end) // 2) - self.truth.scale(host, reference)
                self.assertLess(abs(off), Fraction(2, 10**6),
                                f"{host} to {reference}: off by {float(off) * 1e6:.3f} ppm")


class TenMachines(SyncTruth, Case):
    name = "ten-machines"

    def test_whoever_is_the_reference(self):
        """Drifts and offsets of all hosts to each: the truth lies inside what is stated."""
        for reference in self.truth.hosts:
            _, maps = self.sync(self.trace, self.store, "--reference", reference)
            self.assertEqual(sorted(maps), self.truth.hosts)
            for host in self.truth.hosts:
                begin, end = self.spans[host]
                for t in range(begin, end, (end - begin) // 16):
                    self.holds(maps, host, reference, t, f"{host} to {reference}")

    def test_no_threads_without_scheduler_events(self):
        run = self.ok("threads", self.trace, "--store", self.store)
        self.assertIn("sched_switch", run.message)


if __name__ == "__main__":
    weft_e2e.main()
