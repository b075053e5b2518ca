#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Machine Summary: what is dominant at each sample, and the least, mean and greatest use of CPUs, computed here from
the rows that other outputs show."""
from collections import Counter

from coordinated import named
from test_coordinate import CPU
from tsp_server import THREAD_STATUS, Server
from weft_e2e import Case, main, scenario, scratch

RESOURCES = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ResourcesStatusDataProvider"
WAITING = ("Wait blocked", "Wait", "Unknown")
ORDER = ("Usermode", "System call", "Interrupt", "Wait for CPU", "Wait blocked", "Wait", "Idle", "IRQ", "Soft IRQ",
         "Unknown")


def look(state):
    style = state.get("style") or {}
    return style.get("parentKey") or style.get("styleKey")


def dominant(counts, threads):
    some = {k: n for k, n in counts.items() if not (threads and k in WAITING)} or counts
    return max(some, key=lambda k: (some[k], -ORDER.index(k)), default=None)


def samples_of(times):
    step = max(1, (times["end"] - times["start"]) // (times["nbTimes"] - 1))
    return [*range(times["start"], times["end"], step), times["end"]]


class Summary(Case):
    recording = "three-tier"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = Server(scenario(cls.recording), store=scratch())
        cls.x = cls.server.first()
        cls.at = f"/experiments/{cls.x['UUID']}/outputs"
        begin, end = cls.x["start"], cls.x["end"]
        third = (end - begin) // 3
        cls.ranges = [{"start": begin, "end": end, "nbTimes": 150},
                      {"start": begin + third, "end": begin + third + 10**7, "nbTimes": 80}]

    @classmethod
    def tearDownClass(cls):
        cls.server.stop()

    def rows(self, output, times, wanted):
        """{(machine, …labels): states} of the rows of a time graph that are wanted."""
        tree = named(self.server.model(f"{self.at}/timeGraph/{output}/tree"))
        of = {e["id"]: path for path, e in tree.items() if wanted(path, e)}
        model = self.server.model(f"{self.at}/timeGraph/{output}/states",
                                  {"requested_timerange": times, "requested_items": list(of)})
        return {of[r["entryId"]]: r["states"] for r in model["rows"]}

    def expected(self, times, samples):
        """{(machine, line): {sample: Counter}}"""
        out = {}
        idle = lambda e: e["labels"][0].startswith("swapper/")
        for line, output, wanted in (
            ("CPUs", RESOURCES, lambda p, e: e["labels"][0].endswith(" States")),
            ("Threads", THREAD_STATUS, lambda p, e: e["hasData"] and not idle(e)),
        ):
            for path, states in self.rows(output, times, wanted).items():
                for s in states:
                    for t in samples:
                        if s["start"] <= t < s["end"] or t == s["end"] == self.x["end"]:
                            if look(s):
                                out.setdefault((path[0].split()[0], line), {}).setdefault(t, Counter())[look(s)] += 1
        return out

    def test_dominant_states(self):
        compared, kinds = 0, set()
        for asked in self.ranges:
            samples = samples_of(asked)
            wanted = self.expected(asked, samples)
            lines = self.rows("weft.summary", asked, lambda p, e: e["hasData"])
            self.assertEqual({(p[0].split()[0], p[1].split()[0]) for p in lines}, set(wanted))
            for path, states in lines.items():
                key = path[0].split()[0], path[1].split()[0]
                for before, after in zip(states, states[1:]):
                    self.assertLessEqual(before["end"], after["start"])
                for t in samples:
                    found = [look(s) for s in states if s["start"] <= t < s["end"]]
                    counts = wanted[key].get(t, Counter())
                    most = dominant(counts, key[1] == "Threads")
                    self.assertEqual(found[0] if found else None, most, (key, t, counts))
                    compared += 1
                    kinds.update(found)
        self.assertGreater(compared, 900)
        self.assertGreater(len(kinds), 4)

    def test_tooltip_counts(self):
        when = (self.x["start"] + self.x["end"]) // 2
        wanted = self.expected({"start": when, "end": when + 1, "nbTimes": 2}, [when])
        for path, e in named(self.server.model(f"{self.at}/timeGraph/weft.summary/tree")).items():
            if not e["hasData"]:
                continue
            tip = self.server.model(f"{self.at}/timeGraph/weft.summary/tooltip", {
                "requested_times": [when], "requested_items": [e["id"]],
                "requested_element": {"elementType": "state", "time": when, "duration": 0, "entryId": e["id"]}})
            counts = wanted[path[0].split()[0], path[1].split()[0]][when]
            self.assertEqual(tip, {k: str(n) for k, n in counts.items()})

    def test_usage_is_between_least_and_most(self):
        """The mean of the CPUs times their number is the total that CPU Usage tells."""
        for times in self.ranges:
            curves, totals = {}, {}
            for output, into in (("weft.summary.cpu", curves), (CPU, totals)):
                tree = named(self.server.model(f"{self.at}/XY/{output}/tree", {"requested_timerange": times}))
                of = {e["id"]: p for p, e in tree.items()}
                for s in self.server.model(f"{self.at}/XY/{output}/xy", {
                        "requested_timerange": times, "requested_items": list(of)})["series"]:
                    if s["seriesId"] in of:
                        into[of[s["seriesId"]]] = s["yValues"]
            machines = {p[0] for p in curves}
            for m in machines:
                least, mean, most = (curves[m, name] for name in ("Minimum", "Mean", "Maximum"))
                total = next(y for p, y in totals.items() if len(p) == 1 and p[0].split()[0] == m.strip())
                cpus = self.cpus(m.strip())
                for a, b, c, t in zip(least, mean, most, total, strict=True):
                    self.assertTrue(a - 1e-9 <= b <= c + 1e-9, (a, b, c))
                    self.assertAlmostEqual(b * cpus, t, delta=1e-6 * (1 + t))
            self.assertEqual(len(machines), len(self.x_machines()))

    def x_machines(self):
        return self.server.model(f"{self.at}/timeGraph/weft.machines/tree")["entries"]

    def cpus(self, machine):
        return next(e["metadata"]["cpus"][0] for e in self.x_machines() if e["labels"][0] == machine)


class SeveralCpus(Summary):
    recording = "mpi"


if __name__ == "__main__":
    main()
