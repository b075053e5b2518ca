# SPDX-License-Identifier: MIT
"""weft spans table, stats and critpath: the seed's table, made-up jobs and trees with known results, and hostile
input."""
import csv
import io
import json
import os
import statistics
import subprocess
import unittest

from collect_server import Collect
from span_collector import SPAN
from span_world import EPOCH, S, World, critical_path, tree
from weft_e2e import BIN, DATA, Case, main, need, new_dice, scratch, weft

SEED = os.path.join(DATA, "spans")
MANY = int(os.environ.get("WEFT_SPANS_MANY", "100000"))  # spans of the largest trace


def answer(command, *args, code=0):
    run = weft("spans", command, "--format", "json", *args)
    assert run.code == code, run
    return json.loads(run.out)


class Seed(Case):
    """24 spans of four pilot jobs, their begins cut to the second; what is true of them was computed apart."""

    def setUp(self):
        self.otlp = need(os.path.join(SEED, "glidein-otlp.json"))
        with open(os.path.join(SEED, "glidein-expected.json"), encoding="utf-8") as f:
            self.expected = json.load(f)

    def without_index(self):
        """Returns the spans without the attribute that distinguishes the jobs."""
        with open(self.otlp, encoding="utf-8") as f:
            data = json.load(f)
        spans = data["resourceSpans"][0]["scopeSpans"][0]["spans"]
        for span in spans:
            span["attributes"] = [a for a in span["attributes"] if a["key"] != "gwms.glidein_index"]
        spans.reverse()
        path = os.path.join(scratch(), "seed.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(data, f)
        return path

    def test_table(self):
        with open(os.path.join(SEED, "glidein-table.tsv"), "rb") as f:
            table = f.read()
        for path in (self.otlp, self.without_index()):
            self.assertEqual(subprocess.run([BIN, "spans", "table", path], stdout=subprocess.PIPE).stdout, table)
        rows = [line.split("\t") for line in table.decode().splitlines()]
        told = list(csv.reader(io.StringIO(weft("spans", "table", "--format", "csv", self.otlp).text)))
        self.assertEqual([[cell or "None" for cell in row] for row in told], rows)
        for row, told in zip(rows[1:], answer("table", self.otlp), strict=True):
            self.assertEqual([str(told[name]) for name in rows[0]], row)

    def test_jobs(self):
        for path in (self.otlp, self.without_index()):
            units = answer("stats", path)["units"]
            self.assertEqual(len(units), 4)
            for unit, job in zip(units, self.expected["glideins"], strict=True):
                self.assertTrue(unit["synthetic"])
                self.assertEqual(unit["guessed"], path != self.otlp)
                self.assertEqual(unit["end"], job["last_end_us"] * 1000)
                for span, stage in zip(unit["spans"], job["stages"], strict=True):
                    self.assertEqual((span["span"], span["stage"]), (stage["spanID"], stage["stage"]))
                    self.assertEqual(span["recorded_begin"], stage["start_us"] * 1000)
                    repaired = stage.get("corrected_us", stage["duration_us"])  # the first: nothing came before it
                    self.assertEqual(span["end"] - span["begin"], repaired * 1000)
                    self.assertEqual(span["cut"], "corrected_us" not in stage)

    def test_figures(self):
        for args, figures in (((), "corrected"), (("--as-recorded",), "table")):
            stages = answer("stats", *args, self.otlp)["stages"]
            self.assertEqual([s["stage"] for s in stages], list(self.expected["per_stage"]))
            for stage in stages:
                job = self.expected["per_stage"][stage["stage"]]
                wanted = job[figures] or job["table"]
                self.assertEqual(stage["n"], job["n"])
                for mine, theirs in (("min", "min"), ("p50", "median"), ("max", "max"), ("mean", "mean")):
                    self.assertAlmostEqual(stage[mine], wanted[theirs] * 1000, delta=0.5)
        total = sum(s["total"] for s in stages)
        for stage in stages:
            self.assertAlmostEqual(stage["share"], stage["total"] / total, places=9)

    def test_too_few(self):
        """24 spans: numbers, and no claims."""
        for command, empty in (("outliers", "outliers"), ("compare", "changes"), ("clusters", "clusters")):
            told = answer(command, self.otlp)
            self.assertEqual((told[empty], told["suggestions"]), ([], []))
        self.assertEqual(answer("critpath", self.otlp)["suggestions"], [])
        told = answer("compare", "--split", "2022-08-12T19:00:00Z", self.otlp)
        self.assertEqual({s["verdict"] for s in told["stages"]}, {"too few"})
        self.assertEqual(told["suggestions"], [])


class Jobs(Case):
    """Pilot jobs as sent by GlideinWMS' scripts: a short span of the factory, and hours later the stages of each job,
    flat, with begins cut to the second, ends in µs."""

    STAGES = ("pretracing", "init", "setup", "main")

    def make(self, jobs, uuid, host):
        w = World(new_dice(3))
        trace = w.new_id(32)
        factory = w.add(trace, "parent", EPOCH, EPOCH + 3_000_000, service="factory", entry="CMS_T2", client="frontend")
        self.truth = []
        for i in range(jobs):
            at = EPOCH + w.dice.randrange(60 * S, 4000 * S) // 1000 * 1000
            extra = {"UUID": f"job-{i}"} if uuid else {}
            spans, first = [], at
            for name in self.STAGES:
                end = at + w.dice.randrange(2_000_000, (900 if name == "main" else 4) * S) // 1000 * 1000
                w.add(trace, name, at // S * S, end, factory["id"], resource={"host.name": f"n{i}"} if host else {},
                      **extra)
                spans.append((name, at, end))
                at = end
            self.truth.append((first, spans))
        self.truth.sort(key=lambda t: t[1][0][1] // S * S)
        return w.write(os.path.join(scratch(), "jobs.jsonl"))

    def check(self, told):
        units = [u for u in told["units"] if u["synthetic"]]
        self.assertEqual(len(units), len(self.truth))
        self.assertEqual({u["name"] for u in units}, {"pilot"})
        found = sorted(tuple((s["stage"], s["end"]) for s in u["spans"]) for u in units)
        self.assertEqual(found, sorted(tuple((name, end) for name, _, end in spans) for _, spans in self.truth))
        begins = {end: begin for _, spans in self.truth for _, begin, end in spans}
        for unit in units:
            first, *others = unit["spans"]
            self.assertEqual((first["cut"], first["begin"]), (True, begins[first["end"]] // S * S))
            for span in others:
                self.assertEqual((span["cut"], span["begin"]), (False, begins[span["end"]]))
            self.assertEqual(unit["queue"], unit["begin"] - EPOCH - 3_000_000)
        return units

    def test_jobs_told_apart_by_an_attribute(self):
        path = self.make(40, uuid=True, host=False)
        for unit in self.check(answer("stats", path)):
            self.assertFalse(unit["guessed"])

    def test_jobs_told_apart_by_their_times(self):
        for unit in self.check(answer("stats", self.make(40, uuid=False, host=True))):
            self.assertTrue(unit["guessed"])

    def test_group(self):
        """An attribute that only this site has."""
        w = World(new_dice(5))
        trace = w.new_id(32)
        for i in range(6):
            for k in range(3):
                w.add(trace, f"step{k}", EPOCH + (5 * k + i) * S + 17, EPOCH + (5 * k + i + 4) * S, "0" * 15 + "9",
                      **{"our.job": f"j{i}"})
        path = w.write(os.path.join(scratch(), "g.jsonl"))
        self.assertEqual(len(answer("stats", path)["units"]), 18)
        units = answer("stats", "--group", "our.job", path)["units"]
        self.assertEqual([[s["stage"] for s in u["spans"]] for u in units], [["step0", "step1", "step2"]] * 6)

    def test_queue_and_waste(self):
        path = self.make(20, uuid=True, host=False)
        told = answer("stats", "--by", "entry", path)
        group, = told["groups"]
        self.assertEqual(group["by"], {"entry": "CMS_T2"})
        units = [u for u in told["units"] if u["synthetic"]]
        useful = sum(s["end"] - s["begin"] for u in units for s in u["spans"] if s["stage"] == "main")
        total = sum(u["end"] - u["begin"] for u in told["units"])
        self.assertEqual((group["units"], group["waited"], group["total"]), (21, 20, total))
        self.assertEqual(group["queue"], sum(u["queue"] for u in units))
        self.assertAlmostEqual(group["waste"], 1 - useful / total, places=9)
        paths = answer("critpath", path)
        for unit in paths["units"]:
            if unit["synthetic"]:
                first = unit["sections"][0]
                self.assertEqual((first["kind"], first["begin"]), ("queue", EPOCH + 3_000_000))
        queue, = [c for c in paths["causes"] if c["kind"] == "queue"]
        self.assertEqual(queue["path"], group["queue"])

    def test_table_names_entry_and_client_everywhere(self):
        table = weft("spans", "table", self.make(2, uuid=False, host=False)).text.splitlines()
        self.assertEqual(len(table), 10)
        for line in table[1:]:
            self.assertEqual(line.split("\t")[2:4], ["CMS_T2", "frontend"])


class Figures(Case):
    def test_figures(self):
        """Figures equal Python's own statistics; services, attributes and nested spans."""
        w = World(new_dice(7))
        sites = ["A", "B", "C"]
        w.jobs(60, {"fetch": 3 * S, "work": 20 * S}, tell=lambda i: {"site": sites[i % 3]})
        path = w.write(os.path.join(scratch(), "f.jsonl"))
        stages = answer("stats", "--by", "site", path)["stages"]
        self.assertEqual([(s["by"]["site"], s["stage"]) for s in stages],
                         [(site, name) for site in sites for name in ("fetch", "job", "work")])
        trace_site = {s["trace"]: s["attributes"]["site"] for s in w.spans if s["name"] == "job"}
        for stage in stages:
            v = [s["end"] - s["begin"] for s in w.spans
                 if s["name"] == stage["stage"] and trace_site[s["trace"]] == stage["by"]["site"]]
            cuts = statistics.quantiles(v, n=100, method="inclusive")
            self.assertEqual((stage["n"], stage["min"], stage["max"], stage["total"]), (20, min(v), max(v), sum(v)))
            for name, value in (("p50", cuts[49]), ("p90", cuts[89]), ("p99", cuts[98])):
                self.assertAlmostEqual(stage[name], value, delta=1)
            self.assertEqual(stage["self"], 0 if stage["stage"] == "job" else sum(v))
        self.assertAlmostEqual(sum(s["share"] for s in stages if s["by"]["site"] == "A"), 1, places=9)

    def test_self_time(self):
        w = World(new_dice(9))
        trace = w.new_id(32)
        root = w.add(trace, "root", EPOCH, EPOCH + 100 * S)
        for begin, end in ((10, 30), (20, 40), (35, 36), (60, 70), (95, 130), (5, 8)):
            w.add(trace, "part", EPOCH + begin * S, EPOCH + end * S, root["id"])
        told = answer("stats", w.write(os.path.join(scratch(), "s.jsonl")))
        own = {s["stage"]: s["self"] for s in told["stages"]}
        self.assertEqual(own["root"], (100 - 30 - 10 - 5 - 3) * S)


class Critpath(Case):
    def sections(self, path, *args):
        return answer("critpath", *args, path)

    def test_random_trees(self):
        w = World(new_dice(11))
        for _ in range(60):
            tree(w)
        told = self.sections(w.write(os.path.join(scratch(), "t.jsonl")), "--limit", "1000")
        units = {u["trace"]: u for u in told["units"]}
        self.assertEqual(len(units), 60)
        totals = {}
        for trace, unit in units.items():
            spans = [s for s in w.spans if s["trace"] == trace]
            wanted = critical_path(spans)
            self.assertEqual([(s["begin"], s["end"], s["span"]) for s in unit["sections"]], wanted)
            self.assertEqual(wanted[0][0], unit["begin"])  # the path covers the whole, without gap or overlap
            self.assertEqual(wanted[-1][1], unit["end"])
            self.assertEqual([a[1] for a in wanted[:-1]], [b[0] for b in wanted[1:]])
            names = {s["id"]: s["name"] for s in spans}
            for begin, end, span in wanted:
                totals[names[span]] = totals.get(names[span], 0) + end - begin
        self.assertEqual({c["stage"]: c["path"] for c in told["causes"]}, totals)
        self.assertEqual(told["total"], sum(totals.values()))
        self.assertGreater(len(totals), 5)

    def test_drag(self):
        """Two at a time, then one: what shortening each brings is known."""
        w = World(new_dice(13))
        for i in range(10):
            trace = w.new_id(32)
            root = w.add(trace, "root", EPOCH, EPOCH + 100 * S)
            w.add(trace, "long", EPOCH, EPOCH + 50 * S, root["id"])
            w.add(trace, "beside", EPOCH, EPOCH + 30 * S, root["id"])
            w.add(trace, "after", EPOCH + 50 * S, EPOCH + 90 * S, root["id"])
        told = self.sections(w.write(os.path.join(scratch(), "d.jsonl")))
        causes = {c["stage"]: (c["path"] // S, c["drag"] // S, c["half"] // S) for c in told["causes"]}
        self.assertEqual(causes, {"long": (500, 200, 200), "after": (400, 400, 200), "root": (100, 100, 50)})
        first = told["suggestions"][0]
        self.assertEqual((first["ns"], first["n"], first["of"]), (200 * S, 10, 10))
        self.assertTrue(first["traces"])

    def test_one_trace(self):
        w = World(new_dice(15))
        traces = [tree(w) for _ in range(3)]
        path = w.write(os.path.join(scratch(), "o.jsonl"))
        rows = list(csv.DictReader(io.StringIO(
            weft("spans", "critpath", "--format", "csv", "--trace", traces[1].upper(), path).text)))
        wanted = critical_path([s for s in w.spans if s["trace"] == traces[1]])
        self.assertEqual([(int(r["begin"]), int(r["begin"]) + int(r["took"]), r["span"]) for r in rows], wanted)


class Hostile(Case):
    def told(self, w, *args, code=0):
        path = w.write(os.path.join(scratch(), "h.jsonl"))
        for command in ("table", "outliers", "compare", "clusters"):
            self.assertEqual(weft("spans", command, *args, path).code, code)
        return answer("stats", path, code=code), answer("critpath", path, code=code)

    def test_circles(self):
        w = World(new_dice(17))
        trace = w.new_id(32)
        loop = [w.add(trace, f"n{i}", EPOCH + i * S, EPOCH + (i + 50) * S) for i in range(30)]
        for i, span in enumerate(loop):
            span["parent"] = loop[(i + 1) % 30]["id"]
        alone = w.add(trace, "alone", EPOCH, EPOCH + 5 * S)
        alone["parent"] = alone["id"]
        stats, paths = self.told(w)
        self.assertEqual(sum(s["n"] for s in stats["stages"]), 31)
        self.assertEqual(len(paths["units"]), 2)
        self.assertIn("forebears", weft("spans", "stats", w.write(os.path.join(scratch(), "h.jsonl"))).message)

    def test_no_time_and_odd_names(self):
        w = World(new_dice(19))
        trace = w.new_id(32)
        root = w.add(trace, "root", EPOCH, EPOCH)
        names = ["tab\there", "line\nbreak", "ünïcödé 😀", "a,\"b\"", " ", "x" * 5000]
        for name in names:
            w.add(trace, name, EPOCH, EPOCH, root["id"])
        stats, paths = self.told(w)
        self.assertEqual({s["stage"] for s in stats["stages"]} & set(names[2:5]), set(names[2:5]))
        self.assertEqual(sum(s["n"] for s in stats["stages"]), 7)
        self.assertEqual([u["sections"] for u in paths["units"]], [[]])
        table = weft("spans", "table", w.write(os.path.join(scratch(), "h.jsonl"))).text
        self.assertEqual({line.count("\t") for line in table.splitlines()}, {5})

    def test_deep_and_wide(self):
        """A chain and a fan of very many spans in one trace: neither recursion nor squares."""
        w = World(new_dice(21))
        trace, parent, n = w.new_id(32), None, MANY // 2
        for i in range(n):
            parent = w.add(trace, "deep", EPOCH + i, EPOCH + 2 * n * 1000 - i, parent)["id"]
        fan = w.add(w.new_id(32), "fan", EPOCH, EPOCH + n * 1000)
        for i in range(n):
            w.add(fan["trace"], "wide", EPOCH + i * 1000, EPOCH + (i + 1) * 1000, fan["id"])
        path = w.write(os.path.join(scratch(), "many.jsonl"))
        told = answer("critpath", "--limit", "0", path)
        self.assertEqual({c["stage"]: (c["path"], c["spans"]) for c in told["causes"]},
                         {"deep": (2 * n * 1000, n), "wide": (n * 1000, n)})
        self.assertEqual(sum(s["n"] for s in answer("stats", "--limit", "0", path)["stages"]), 2 * n + 1)

    def test_many_orphans_at_once(self):
        """Orphans at the same instants below one missing span: they are not compared each with each."""
        w = World(new_dice(23))
        trace = w.new_id(32)
        for i in range(MANY // 5):
            w.add(trace, f"s{i % 3}", EPOCH + i % 3 * S, EPOCH + (i % 3 + 1) * S, "0" * 15 + "7")
        path = w.write(os.path.join(scratch(), "orphans.jsonl"))
        self.assertEqual(sum(s["n"] for s in answer("stats", "--limit", "0", path)["stages"]), MANY // 5)

    def test_told_twice(self):
        w = World(new_dice(25))
        w.jobs(5, {"a": S, "b": S})
        where = scratch()
        one = w.write(os.path.join(where, "one.jsonl"))
        two = w.write(os.path.join(where, "two.jsonl"))
        for args in ((one, two), (where,)):
            self.assertEqual(sum(s["n"] for s in answer("stats", *args)["stages"]), 15)

    def test_damage(self):
        w = World(new_dice(27))
        w.jobs(3, {"a": S})
        where = scratch()
        good = w.write(os.path.join(where, "good.jsonl"))
        with open(good, encoding="utf-8") as f:
            lines = f.readlines()
        torn = os.path.join(where, "torn.jsonl")
        with open(torn, "w", encoding="utf-8") as f:
            f.write(lines[0] + lines[1][:80] + "\n" + "".join(lines[2:]))
        self.assertEqual(sum(s["n"] for s in answer("stats", torn, code=3)["stages"]), 5)
        run = weft("spans", "stats", good, os.path.join(where, "absent.jsonl"))
        self.assertEqual((run.code, "absent.jsonl" in run.message), (3, True))
        self.assertEqual(weft("spans", "stats", os.path.join(where, "absent.jsonl")).code, 1)
        self.assertEqual(weft("spans", "stats", scratch()).code, 1)

    def test_wrong_use(self):
        good = World(new_dice(29))
        good.jobs(2, {"a": S})
        path = good.write(os.path.join(scratch(), "w.jsonl"))
        for args in ((), ("statz", path), ("stats", "--by", ",", path), ("stats", "--by", "a,b,c,d,e", path),
                     ("table", "--trace", "xyz", path), ("table", "--trace", "0" * 33, path),
                     ("stats", "--begin", "5", "--end", "4", path), ("stats", "--store", "d", path),
                     ("compare", "--by", "site", path), ("compare", "--by", "site=a", path),
                     ("compare", "--by", "site=a,b", "--split", "5", path), ("stats", "--format", "xml", path)):
            run = weft("spans", *args)
            self.assertEqual((run.code, run.out), (2, b""), args)
            self.assertTrue(run.message.startswith("weft: "), run)

    def test_choices(self):
        w = World(new_dice(31))
        w.jobs(4, {"a": S})
        w.add(w.new_id(32), "other", EPOCH, EPOCH + 1, service="another")
        path = w.write(os.path.join(scratch(), "c.jsonl"))
        self.assertEqual(len(answer("table", "--service", "another", path)), 1)
        self.assertEqual(len(answer("table", "--begin", str(EPOCH + 60 * S), "--end", str(EPOCH + 120 * S), path)), 2)
        self.assertEqual(len(answer("table", "--trace", w.spans[0]["trace"], path)), 2)
        self.assertEqual(len(answer("table", "--limit", "3", path)), 3)
        empty = weft("spans", "stats", "--service", "nobody", path)
        self.assertEqual((empty.code, "no spans of that choice" in empty.message), (0, True))


class Store(Case):
    """A collector's store gives the same answers as the files sent to it."""

    def test_same_answers(self):
        w = World(new_dice(33))
        w.jobs(30, {"init": S // 5, "setup": 5 * S, "main": 600 * S}, tell=lambda i: {"site": f"T2_{i % 3}"},
               change=lambda i, name, ns: ns * 9 if i == 7 and name == "setup" else ns)
        tree(w)
        where = scratch()
        path = w.write(os.path.join(where, "w.jsonl"))
        home = scratch()
        with Collect(store=os.path.join(home, "weft", "collect")) as collect:
            for span in w.spans:
                self.assertEqual(collect.send(json.loads(w.line(span))).status, 200)
            if os.path.isdir(SEED):
                with open(os.path.join(SEED, "glidein-otlp.json"), "rb") as f:
                    self.assertEqual(collect.send(f.read()).status, 200)
        for args in (("table",), ("stats", "--by", "site"), ("outliers",), ("compare",),
                     ("compare", "--by", "site=T2_0,T2_1"), ("clusters",), ("critpath",),
                     ("critpath", "--trace", w.spans[0]["trace"])):
            kept = weft("spans", *args, "--format", "json", "--service", "pilot", "--store", collect.where)
            read = weft("spans", *args, "--format", "json", "--service", "pilot", path)
            self.assertEqual((kept.code, kept.out), (0, read.out))
        if os.path.isdir(SEED):
            with open(os.path.join(SEED, "glidein-table.tsv"), "rb") as f:
                kept = self.ok("spans", "table", "--service", "glidein", "--store", collect.where)
                self.assertEqual(kept.out, f.read())
        if collect.where != collect.store:
            return
        usual = self.ok("spans", "stats", "--service", "pilot", "--format", "json", env={"XDG_STATE_HOME": home})
        self.assertEqual(usual.out, weft("spans", "stats", "--service", "pilot", "--format", "json", path).out)

    def test_no_store(self):
        run = weft("spans", "stats", "--store", os.path.join(scratch(), "none"))
        self.assertEqual((run.code, run.out), (1, b""))
        self.assertEqual(weft("spans", "stats", env={"XDG_STATE_HOME": scratch()}).code, 1)


class Spool(Case):
    def test_what_weft_span_left(self):
        """Stages of a script, as weft-span keeps them while there is no collector."""
        spool = scratch()
        env = {k: v for k, v in os.environ.items() if not k.startswith(("OTEL_", "TRACE", "JAEGER"))}
        env["WEFT_SPAN_SPOOL"] = spool
        subprocess.run([need(SPAN), "run", "--name", "job", "--", "sh", "-c",
                        f"{SPAN} run --name setup -- sleep 0.05; {SPAN} run --name main -- false"], env=env)
        told = answer("stats", spool)
        self.assertEqual({s["stage"]: (s["n"], s["errors"]) for s in told["stages"]},
                         {"job": (1, 1), "setup": (1, 0), "main": (1, 1)})
        path = answer("critpath", spool)
        self.assertEqual([u["name"] for u in path["units"]], ["job"])
        self.assertIn("setup", {s.get("stage") for s in path["units"][0]["sections"]})


if __name__ == "__main__":
    main()
