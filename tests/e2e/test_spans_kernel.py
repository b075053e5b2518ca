# SPDX-License-Identifier: MIT
"""Spans joined with the kernel's traces: which stage, and why. Spans are what the programs of three-tier logged of
themselves; the judge is `weft critpath`, and how long they say they computed and slept."""
import json
import os
import re

from weft_e2e import Case, load, main, scenario, scratch, weft


def attribute(key, value):
    return {"key": key, "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value}}


class Log:
    """Requests as spans, of the threads that served them; times of the machines' own clocks, which are 0.1 s apart. No
    parent relates db's spans to web's."""

    def __init__(self, traces):
        truth, clocks = load(traces, "ground-truth.json"), load(traces, "true-sync.json")["to_host_tsc_ns"]
        self.spans, self.by_id = [], {}
        for host in ("web", "db"):
            for x in truth["log"][host]:
                offset = clocks[host]["metadata_clock_offset_ns"]
                self.by_id[host, x["id"]] = {k: v + offset if k.startswith("t_") and v else v for k, v in x.items()}
        for (host, n), x in self.by_id.items():
            trace = f"{n if host == 'web' else n + 1000:032x}"
            own = n * 10 + (1 if host == "web" else 5)
            self.add(host, x["tid"], trace, own, "", "request" if host == "web" else "query", x["t_recv"], x["t_reply"])
            if host == "web":
                self.add(host, x["tid"], trace, n * 10 + 4, f"{own:016x}", "compute", x["t_recv"], x["t_burn_done"])
            if host == "web" and x["t_down_send"]:
                self.add(host, x["tid"], trace, n * 10 + 2, f"{own:016x}", "ask", x["t_down_send"], x["t_down_recv"])

    def add(self, host, tid, trace, own, parent, name, begin, end):
        self.spans.append((host, {"traceId": trace, "spanId": f"{own:016x}", "parentSpanId": parent, "name": name,
                                  "startTimeUnixNano": str(begin), "endTimeUnixNano": str(end),
                                  "attributes": [attribute("process.pid", tid)]}))

    def file(self, domain=""):
        path = os.path.join(scratch(), "spans.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            for host, span in self.spans:
                f.write(json.dumps({"resourceSpans": [{"resource": {"attributes": [
                    attribute("service.name", "shop"), attribute("host.name", host + domain)]},
                    "scopeSpans": [{"spans": [span]}]}]}) + "\n")
        return path


WHY = {"running": "running", "preempted": "preempted", "interrupted": "preempted", "block-device": "disk",
       "network": "network", "timer": "timer", "blocked": "blocked", "unknown": "not known"}


class Joined(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.traces, cls.store = scenario("three-tier"), scratch()
        cls.log = Log(cls.traces)

    def spans(self, *args):
        return weft("spans", "critpath", "--kernel", self.traces, "--trace-store", self.store, *args)

    def told(self, path):
        run = self.spans("--format", "json", path)
        self.assertEqual(run.code, 0, run)
        return json.loads(run.text)

    def judge(self, host, tid, begin, end):
        run = weft("critpath", "--store", self.store, "--thread", f"{host}:{tid}", "--reference", host, "--begin",
                   str(begin), "--end", str(end), "--format", "json", self.traces)
        return json.loads(run.text)

    def test_each_piece_is_what_critpath_tells(self):
        told = self.told(self.log.file(".cluster.example"))
        threads = {s["spanId"]: (host, int(s["attributes"][0]["value"]["intValue"])) for host, s in self.log.spans}
        pieces, others = 0, 0
        for x in (x for u in told["units"] for x in u["sections"]):
            host, tid = threads[x["span"]]
            wanted, got = self.judge(host, tid, x["begin"], x["end"]), x["kernel"]
            self.assertLessEqual(abs(got["traced"] - (x["end"] - x["begin"])), 10000, x)
            self.assertEqual(sum(got["why"].values()), got["traced"])
            # Work of db's thread for web is in its own span, except for its surroundings.
            most, least = (dict.fromkeys(got["why"], 0) for _ in "ab")
            for s in wanted["segments"]:
                ns, foreign = s["end"] - s["begin"], (s["host"], s["tid"]) == ("db", 204) and host == "web"
                most[WHY[s["state"]]] += ns
                least[WHY[s["state"]]] += 0 if foreign else ns
                most["other span"] += ns if foreign else 0
            for why in least:
                self.assertTrue(least[why] - 10000 <= got["why"][why] <= most[why] + 10000, (why, x, least, most))
            pieces, others = pieces + 1, others + (got["why"]["other span"] > 0)
            self.assertRegex(got["sentence"], r"^[\d.]+ [mµ]s: ")
        self.assertGreater(pieces, 30)
        self.assertEqual(others, 9, "the pieces that asked db")

    def test_computed_as_they_said(self):
        causes = {c["stage"]: c for c in self.told(self.log.file())["causes"] if c["kind"] == "span"}
        burnt = {host: sum(x["burn_us"] for (h, _), x in self.log.by_id.items() if h == host) * 1000
                 for host in ("web", "db")}
        self.assertGreaterEqual(causes["compute"]["why"]["running"], burnt["web"])
        self.assertLess(causes["compute"]["why"]["timer"], 0.01 * causes["compute"]["traced"])
        slept = sum(x["sleep_us"] for (h, _), x in self.log.by_id.items() if h == "db") * 1000
        self.assertGreaterEqual(causes["query"]["why"]["running"], burnt["db"])
        self.assertGreaterEqual(causes["query"]["why"]["timer"], slept)

    def test_the_process_of_another_span(self):
        """A query without a parent: web waited for another span's process."""
        causes = {c["stage"]: c for c in self.told(self.log.file())["causes"]}
        ask, query = causes["ask"]["why"], sum(x["t_reply"] - x["t_recv"] for (h, _), x in self.log.by_id.items()
                                               if h == "db")
        self.assertLess(abs(ask["other span"] - query), 0.25 * query)
        self.assertGreater(ask["other span"], 0.5 * causes["ask"]["traced"])

    def test_words_and_tables(self):
        path = self.log.file()
        text = self.spans("--trace", "1", path).text
        self.assertRegex(text, r"\n  compute, [\d.]+ ms: 100 % 196 tier computed")
        self.assertRegex(text, r"\n  ask, [\d.]+ ms: .*db, of which 204 tier computed ")
        text = self.spans(path).text
        head, = (line for line in text.splitlines() if line.startswith("why "))
        self.assertEqual(re.split("  +", head), ["why", "on the path", "traced", "running", "preempted", "disk",
                                                 "network", "timer", "blocked", "other span", "not known"])
        self.assertRegex(text, r"\ncompute +[\d.]+ ms +\d+\.\d %")

    def test_what_cannot_be_joined(self):
        run = self.spans(self.log.file("x"))
        self.assertEqual(run.code, 0)
        self.assertIn("host.name and process.pid", run.message)
        run = weft("spans", "stats", "--kernel", self.traces, self.log.file())
        self.assertEqual(run.code, 2)
        self.assertIn("--kernel is for critpath", run.message)
        run = weft("spans", "critpath", "--kernel", "/nonexistent", self.log.file())
        self.assertNotEqual(run.code, 0)


main()
