# SPDX-License-Identifier: MIT
"""weft spans outliers, compare and clusters: what is planted in made-up jobs is found and named, with its number, its
sample and examples; where nothing is planted nothing is claimed."""
import math
import os
import statistics

from span_world import EPOCH, S, World, tree
from test_spans import answer
from weft_e2e import Case, main, new_dice, scratch, weft

STAGES = {"init": S // 5, "pre_setup": S * 2 // 5, "setup": 5 * S, "main": 600 * S}
MINUTE = 60 * S


class Found(Case):
    def write(self, w):
        return w.write(os.path.join(scratch(), "w.jsonl"))


class Outliers(Found):
    def test_slow_and_fast_ones(self):
        w = World(new_dice(101))
        planted = {17: ("setup", 12), 44: ("setup", 9), 60: ("main", 1 / 8)}
        roots = w.jobs(120, STAGES, change=lambda i, name, ns: round(ns * planted[i][1])
                       if i in planted and planted[i][0] == name else ns)
        told = answer("outliers", self.write(w))
        stages = [o for o in told["outliers"] if o["stage"] != "job"]
        self.assertEqual({(o["trace"], o["stage"], o["what"]) for o in stages},
                         {(roots[i]["trace"], name, "slow" if by > 1 else "fast") for i, (name, by) in planted.items()})
        self.assertEqual(told["looked"], len(w.spans))
        setup = [s["end"] - s["begin"] for s in w.spans if s["name"] == "setup"]
        logs = [math.log(ns + 1000) for ns in setup]
        middle = statistics.median(logs)
        spread = 1.4826 * statistics.median(abs(x - middle) for x in logs)
        for o in stages:
            self.assertEqual(o["n"], 120)
            self.assertLess(o["p"], 0.05)
            if o["stage"] == "setup":
                self.assertAlmostEqual(o["typical"], math.exp(middle) - 1000, delta=10)
                self.assertAlmostEqual(o["z"], (math.log(o["duration"] + 1000) - middle) / spread, places=6)
        advice, = [a for a in told["suggestions"] if a["text"].startswith("setup")]
        slow = [o for o in stages if o["stage"] == "setup"]
        self.assertAlmostEqual(advice["ns"], sum(o["duration"] - o["typical"] for o in slow), delta=1)
        self.assertEqual((advice["n"], advice["of"], set(advice["traces"])), (2, 120, {o["trace"] for o in slow}))

    def test_nothing_is_there(self):
        """False claims: without an effect, at most one world in twenty may have one. Equal times of all others are no
        reason: a thousandth more is nothing."""
        claims = 0
        for world in range(20):
            w = World(new_dice(200 + world))
            w.jobs(60, {**STAGES, "same": 7 * S}, spread=0.4,
                   change=lambda i, name, ns: 7 * S + (i == 9) * S // 200 if name == "same" else ns)
            claims += bool(answer("outliers", self.write(w))["outliers"])
        self.assertLessEqual(claims, 3)

    def test_by(self):
        """Usual times of one site are slow at another."""
        w = World(new_dice(103))
        w.jobs(80, STAGES, tell=lambda i: {"site": "far" if i % 5 < 3 else "near"},
               change=lambda i, name, ns: ns * (100 if i == 4 else 10) if name == "setup" and (i % 5 < 3 or i == 4)
               else ns)
        path = self.write(w)
        slow = [o for o in answer("outliers", "--by", "site", path)["outliers"] if o["stage"] == "setup"]
        self.assertEqual([o["trace"] for o in slow], [[s for s in w.spans if s["name"] == "job"][4]["trace"]])
        self.assertEqual([o for o in answer("outliers", path)["outliers"] if o["stage"] == "setup"], [])

    def test_sequences(self):
        w = World(new_dice(105))
        roots = w.jobs(40, STAGES)
        by_trace = {r["trace"]: [s for s in w.spans if s["trace"] == r["trace"]] for r in roots}
        traces = [r["trace"] for r in roots]
        w.spans.remove(next(s for s in by_trace[traces[3]] if s["name"] == "pre_setup"))
        end = by_trace[traces[5]][0]["end"]
        w.add(traces[5], "repair", end - S, end, by_trace[traces[5]][0]["id"])
        a, b = by_trace[traces[7]][1:3]
        a["name"], b["name"] = b["name"], a["name"]
        next(s for s in by_trace[traces[9]] if s["name"] == "main")["error"] = True
        next(s for s in by_trace[traces[11]] if s["name"] == "main")["attributes"]["weft.state"] = "lost"
        told = answer("outliers", self.write(w))["outliers"]
        self.assertEqual({(o["what"], o["trace"], o["stage"]) for o in told if o["what"] not in ("slow", "fast")},
                         {("missing", traces[3], "pre_setup"), ("extra", traces[5], "repair"),
                          ("reordered", traces[7], "pre_setup"), ("failed", traces[9], "main"),
                          ("no end", traces[11], "main")})

    def test_too_few(self):
        w = World(new_dice(107))
        w.jobs(7, STAGES, change=lambda i, name, ns: ns * 50 if i == 3 else ns)
        told = answer("outliers", self.write(w))
        self.assertEqual((told["outliers"], told["suggestions"], told["looked"], told["few"]), ([], [], 0, 35))
        self.assertIn("too few", weft("spans", "outliers", self.write(w)).message)


class Compare(Found):
    def test_two_versions(self):
        """setup takes 1.5 s more in the new version; main is as before."""
        w = World(new_dice(111))
        w.jobs(160, STAGES, tell=lambda i: {"version": "1.1" if i % 2 else "1.0"},
               change=lambda i, name, ns: ns + 3 * S // 2 if name == "setup" and i % 2 else ns)
        path = self.write(w)
        told = answer("compare", "--by", "version=1.0,1.1", path)
        stages = {s["stage"]: s for s in told["stages"]}
        self.assertEqual({name: s["verdict"] for name, s in stages.items() if name != "job"},
                         {"setup": "slower", "init": "no difference", "pre_setup": "no difference",
                          "main": "no difference"})
        setup = stages["setup"]
        version = {s["trace"]: s["attributes"]["version"] for s in w.spans if s["name"] == "job"}
        self.assertEqual(setup["n"], [80, 80])
        self.assertLess(setup["shift_interval"][0], 1.5 * S)
        self.assertGreater(setup["shift_interval"][1], 1.5 * S)
        a, b = ([s["end"] - s["begin"] for s in w.spans if s["name"] == "setup" and version[s["trace"]] == v]
                for v in ("1.0", "1.1"))
        self.assertAlmostEqual(setup["shift"], statistics.median(y - x for x in a for y in b), delta=1)
        self.assertAlmostEqual(setup["p50"][1], statistics.median(b), delta=1)
        self.assertLess(setup["p95_interval"][0], setup["p95_shift"])
        self.assertLess(setup["p"], 1e-6)
        advice = told["suggestions"][0]
        self.assertTrue(advice["text"].startswith("setup: 1."), advice)
        self.assertTrue(advice["traces"])
        other = answer("compare", "--by", "version=1.1,1.0", path)
        self.assertEqual({s["stage"]: s["verdict"] for s in other["stages"]}["setup"], "faster")
        self.assertIn("version = 9", weft("spans", "compare", "--by", "version=1.0,9", path).message)

    def test_two_windows(self):
        w = World(new_dice(113))
        w.jobs(100, STAGES, change=lambda i, name, ns: ns * 2 if name == "init" and i >= 50 else ns)
        told = answer("compare", "--split", str(EPOCH + 50 * MINUTE), self.write(w))
        self.assertEqual(told["sides"], ["before", "since"])
        self.assertEqual({s["stage"] for s in told["stages"] if s["verdict"] == "slower"}, {"init"})

    def test_changes(self):
        """Changes, and changes back, with their times."""
        w = World(new_dice(115))
        w.jobs(150, STAGES, change=lambda i, name, ns: ns * 3 if name == "setup" and 60 <= i < 110 else ns)
        told = answer("compare", self.write(w))
        self.assertEqual([c["stage"] for c in told["changes"]], ["setup", "setup"])
        for change, job in zip(told["changes"], (60, 110), strict=True):
            self.assertLess(abs(change["at"] - EPOCH - job * MINUTE), 4 * MINUTE)
            self.assertLess(change["p"], 0.01)
        self.assertGreater(told["changes"][0]["p50"][1], 2.5 * told["changes"][0]["p50"][0])
        self.assertEqual(len(told["suggestions"]), 2)

    def test_nothing_is_there(self):
        claims = 0
        for world in range(15):
            w = World(new_dice(300 + world))
            many = {f"step{k}": S for k in range(12)}  # number of tests: one by one, some would be significant
            w.jobs(60, {**STAGES, **many}, spread=0.5, tell=lambda i: {"version": str(i % 2)})
            path = self.write(w)
            claims += bool(answer("compare", "--by", "version=0,1", path)["suggestions"])
            claims += bool(answer("compare", path)["changes"])
        self.assertLessEqual(claims, 4)  # claims of 30

    def test_too_few(self):
        w = World(new_dice(117))
        w.jobs(14, STAGES, change=lambda i, name, ns: ns * 9 if i % 2 else ns, tell=lambda i: {"v": str(i % 2)})
        path = self.write(w)
        told = answer("compare", "--by", "v=0,1", path)
        self.assertEqual({s["verdict"] for s in told["stages"]}, {"too few"})
        self.assertEqual({s["p"] for s in told["stages"]}, {None})
        self.assertEqual(answer("compare", path)["changes"], [])


class Clusters(Found):
    def test_slow_site(self):
        """A tenth of the jobs, nearly all of them at one site, take long in setup."""
        w = World(new_dice(121))
        slow = {i for i in range(200) if i % 10 == 3}
        site = {i: "T2_SLOW" if i in slow and i != 13 or i in (50, 90) else f"T2_{i % 7}" for i in range(200)}
        roots = w.jobs(200, STAGES, tell=lambda i: {"site": site[i], "number": i},
                       change=lambda i, name, ns: ns * 4 if name == "setup" and i in slow else ns)
        told = answer("clusters", self.write(w))
        self.assertEqual(sorted(c["n"] for c in told["clusters"]), [20, 180])
        small, large = sorted(told["clusters"], key=lambda c: c["n"])
        self.assertEqual(set(small["traces"]), {roots[i]["trace"] for i in slow})
        self.assertGreater(small["stages"]["setup"], 3 * large["stages"]["setup"])
        trait = small["traits"][0]
        self.assertEqual((trait["key"], trait["value"], trait["in"], trait["of"], trait["elsewhere"],
                          trait["of_others"]), ("site", "T2_SLOW", 19, 20, 2, 180))
        hypergeometric = sum(math.comb(21, k) * math.comb(179, 20 - k) for k in (19, 20)) / math.comb(200, 20)
        self.assertGreaterEqual(trait["p"], hypergeometric * (1 - 1e-9))
        self.assertLess(trait["p"], 1e-10)
        self.assertNotIn("number", {t["key"] for t in small["traits"]})
        advice, *more = told["suggestions"]
        self.assertIn("site=T2_SLOW in 19 of 20, 2 of 180 others", advice["text"])
        self.assertEqual((advice["n"], advice["of"]), (20, 200))
        self.assertLessEqual(set(advice["traces"]), set(small["traces"]))

        self.assertEqual([(f["key"], f["value"], f["stage"], f["n"], f["others"]) for f in told["factors"]],
                         [("site", "T2_SLOW", "setup", 21, 179)])
        self.assertEqual([a["text"].split(":")[0] for a in more], ["site=T2_SLOW"])

    def test_one_site_of_two(self):
        """Slow site of two: no outliers, and no clusters of their own, because the site explains all stages."""
        for times in (2, 10):
            w = World(new_dice(131 + times))
            w.jobs(50, STAGES, spread=0.4, tell=lambda i: {"site": "ab"[i % 2], "number": i},
                   change=lambda i, name, ns, times=times: ns * (times if i % 2 else 1))
            path = self.write(w)
            for command in ("clusters", "outliers"):
                told = answer(command, path)
                factor, = told["factors"]
                self.assertEqual((factor["key"], factor["value"], factor["stage"], factor["n"], factor["others"]),
                                 ("site", "b", "main", 25, 25))
                self.assertLess(factor["p"], 0.05)
                main = {v: statistics.median(s["end"] - s["begin"] for i, r in enumerate(
                    [s for s in w.spans if s["name"] == "job"]) for s in w.spans
                    if s["trace"] == r["trace"] and s["name"] == "main" and "ab"[i % 2] == v) for v in "ab"}
                self.assertEqual((factor["p50"], factor["p50_others"]), (main["b"], main["a"]))
                self.assertIn("site=b: main takes", weft("spans", command, path).text)

    def test_many(self):
        """Number of units above the limit of clustering one by one."""
        w = World(new_dice(123))
        roots = w.jobs(1500, STAGES, change=lambda i, name, ns: ns * 6 if name == "setup" and i % 5 == 0 else ns)
        told = answer("clusters", "--limit", "2000", self.write(w))
        small = min(told["clusters"], key=lambda c: c["n"])
        self.assertEqual(set(small["traces"]), {r["trace"] for r in roots[::5]})
        self.assertEqual(small["traits"], [])
        self.assertIn("no attribute explains it", told["suggestions"][0]["text"])

    def test_failures_explain(self):
        w = World(new_dice(125))
        roots = w.jobs(100, STAGES, change=lambda i, name, ns: ns // 50 if name == "main" and i % 4 == 0 else ns)
        for root in roots[::4]:
            next(s for s in w.spans if s["trace"] == root["trace"] and s["name"] == "main")["error"] = True
        small = min(answer("clusters", self.write(w))["clusters"], key=lambda c: c["n"])
        self.assertEqual((small["traits"][0]["key"], small["traits"][0]["value"]), ("status", "error"))

    def test_nothing_is_there(self):
        """False clusters: none in normal logarithms, also of a single stage, where any cut in two looks good, nor in
        waiting times, which are skewed."""
        claims = 0
        for world in range(12):
            w = World(new_dice(400 + world))
            if world % 3:
                w.jobs(80, STAGES if world % 3 == 1 else {"main": S}, spread=0.4)
            else:
                w.jobs(80, STAGES, change=lambda i, name, ns: max(1, round(ns * w.dice.expovariate(1))))
            claims += bool(answer("clusters", self.write(w))["clusters"])
        self.assertLessEqual(claims, 1)

    def test_too_few(self):
        w = World(new_dice(127))
        w.jobs(15, STAGES, change=lambda i, name, ns: ns * 30 if i % 2 else ns)
        path = self.write(w)
        self.assertEqual(answer("clusters", path)["clusters"], [])
        self.assertIn("too few", weft("spans", "clusters", path).text)

    def test_random_trees(self):
        """Whatever comes: an answer."""
        w = World(new_dice(129))
        for _ in range(60):
            tree(w)
        told = answer("clusters", self.write(w))
        self.assertEqual(told["units"], 60)


if __name__ == "__main__":
    main()
