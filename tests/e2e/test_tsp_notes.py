# SPDX-License-Identifier: MIT
"""Trace Notes: what is wrong with a trace is told to those who open it in the trace server, as the verbs tell it;
listed only when there is something to tell."""
import json
import os
import re
import shutil
import subprocess
import unittest

import otlp_made as made
from tsp_server import THREAD_STATUS, Server, ServerCase
from weft_e2e import ROOT, main, needs, scenario, scratch, weft

UST_WRITE = os.environ.get("UST_WRITE") or os.path.join(ROOT, "build", "tests", "stack", "ust_write")
NOTES = "weft.notes"


def copy_of(source):
    target = os.path.join(scratch(), "trace")
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for d, _, _ in os.walk(target):
        os.chmod(d, 0o755)
    return target


def overwrite(path, at, data):
    with open(path, "r+b") as f:
        f.seek(at, os.SEEK_END if at < 0 else os.SEEK_SET)
        f.write(data)


class Notes(ServerCase):
    def setUp(self):
        self.trace, self.store = copy_of(scenario("three-tier")), scratch()

    def notes(self, *args, uuid=None, server=None):
        """The table's lines as dictionaries by column; None: it is not listed."""
        if server is None:
            with Server(*args, store=self.store) as one:
                return self.notes(uuid=uuid, server=one)
        x = server.opened(uuid) if uuid else server.first()
        base = f"/experiments/{x['UUID']}/outputs"
        if NOTES not in [o["id"] for o in server.get(base).json]:
            return None
        columns = server.model(f"{base}/table/{NOTES}/columns")
        names = {c["id"]: c["name"] for c in columns}
        self.assertEqual([c["name"] for c in columns], ["Host", "Note", "Times", "What to do", "File"])
        model = server.model(f"{base}/table/{NOTES}/lines", {"requested_table_index": 0, "requested_table_count": 1000})
        self.assertEqual(len(model["lines"]), model["size"])
        rows = [{names[i]: c["content"] for i, c in zip(model["columnIds"], line["cells"])} for line in model["lines"]]
        for row in rows:
            self.assertTrue(row["What to do"] and row["Note"] and row["Host"] and int(row["Times"]) > 0, row)
        return rows

    @staticmethod
    def as_the_verbs(rows):
        return sorted(f"{r['Host']}: {r['File']}{': ' if r['File'] else ''}{r['Note']}"
                      + (f" ({r['Times']} times)" if int(r["Times"]) > 1 else "")
                      for r in rows or [] if "lost while" not in r["Note"] and "clock" not in r["Note"])

    def told_by_the_verb(self, *traces):
        """The notes of `weft index` on the same stores."""
        notes = re.findall(r"^weft: note: (.*)$", weft("index", "--store", scratch(), *traces).message, re.M)
        return sorted(n for n in notes if "events indexed" not in n)

    def test_nothing(self):
        self.assertEqual(self.told_by_the_verb(self.trace), [])
        self.assertIsNone(self.notes(self.trace))

    def test_damage(self):
        """A packet without its head, a stream that ends in a packet, a trace without metadata that can be read."""
        overwrite(os.path.join(self.trace, "web", "kernel", "ch_0"), 0, b"\0\0\0\0")
        cut = os.path.join(self.trace, "db", "kernel", "ch_1")
        os.truncate(cut, os.path.getsize(cut) - 100)
        overwrite(os.path.join(self.trace, "client", "kernel", "metadata"), 0, b"nonsense" * 20)
        rows = self.notes(self.trace)
        self.assertEqual(self.as_the_verbs(rows), self.told_by_the_verb(self.trace))
        rows = [r for r in rows if "clock" not in r["Note"]]  # a trace of which nothing is left has no packets either
        self.assertEqual({r["File"] for r in rows},
                         {os.path.join(self.trace, *p)
                          for p in (("web", "kernel", "ch_0"), ("db", "kernel", "ch_1"),
                                    ("client", "kernel", "metadata"))})
        by_file = {os.path.relpath(r["File"], self.trace): r for r in rows}
        self.assertEqual(by_file["web/kernel/ch_0"]["Host"], "web")
        self.assertRegex(by_file["web/kernel/ch_0"]["Note"], "byte 0: no packet starts here")
        self.assertRegex(by_file["db/kernel/ch_1"]["Note"], "cut off by the end of the file")
        self.assertEqual(by_file["db/kernel/ch_1"]["Host"], "db")

    def test_every_answer_says_who_lacks_what(self):
        """A machine that is there in part, one that cannot be read at all, and one that is whole."""
        statistics = "org.eclipse.tracecompass.analysis.os.linux.core.statistics.StatisticsDataProvider"
        overwrite(os.path.join(self.trace, "db", "kernel", "ch_0"), 0, b"\0\0\0\0")
        overwrite(os.path.join(self.trace, "client", "kernel", "metadata"), 0, b"nonsense" * 20)
        with Server(self.trace, store=self.store) as server:
            base = f"/experiments/{server.first()['UUID']}/outputs"
            for path in (f"{base}/timeGraph/{THREAD_STATUS}/tree", f"{base}/data/{statistics}/tree",
                         f"{base}/{THREAD_STATUS}/style", f"{base}/timeGraph/{THREAD_STATUS}/arrows"):
                answer = server.post(path, {"requested_timerange": {"start": 0, "end": 1, "nbTimes": 2}}).json
                self.assertEqual(answer["status"], "COMPLETED")
                self.assertEqual(answer["hosts"]["complete"], 1, answer["hosts"])
                lacking = {os.path.basename(h["host"]): h for h in answer["hosts"]["lacking"]}
                self.assertEqual({name: h["status"] for name, h in lacking.items()},
                                 {"db": "PARTIAL", "client": "FAILED"})
                self.assertIn("no packet starts here", lacking["db"]["statusMessage"])
                self.assertIn("closes nothing", lacking["client"]["statusMessage"])

    def test_nothing_lacks(self):
        with Server(self.trace, store=self.store) as server:
            base = f"/experiments/{server.first()['UUID']}/outputs"
            self.assertNotIn("hosts", server.post(f"{base}/timeGraph/{THREAD_STATUS}/tree").json)

    def test_given_twice(self):
        with Server("--trace-root", self.trace, store=self.store) as server:
            traces = [server.post("/traces", {"uri": os.path.join(self.trace, d), "name": n}).json["UUID"] for d,
                      n in ((".", "all"), ("web", "web"))]
            x = server.post("/experiments", {"name": "twice", "traces": traces}).json
            rows = self.notes(uuid=x["UUID"], server=server)
            self.assertEqual([(os.path.realpath(r["Host"]), r["Note"]) for r in rows],
                             [(os.path.join(self.trace, "web"), "was given before; it counts once")])

    @needs(UST_WRITE)
    def test_lost_and_without_clock(self):
        """The made trace lost 5 events, and no packet ties its machine to the others."""
        made = os.path.join(scratch(), "made")
        subprocess.run([UST_WRITE, "sample", made, "small"], check=True)
        rows = self.notes(self.trace, made)
        absent = [h["host"] for h in self.json("sync", self.trace, made, "--store", scratch())["hosts"] if h["category"]
                  == "absent"]
        self.assertEqual([r["Host"] for r in rows if "not on the clock" in r["Note"]], absent)
        self.assertEqual(absent, ["small"])
        self.assertEqual([(r["Host"], r["File"], r["Times"]) for r in rows if r["Note"]
                          == "5 events were lost while it was recorded"], [("small", made, "5")])
        self.assertEqual([(r["Host"], r["File"]) for r in rows if "whose entry was not recorded" in r["Note"]
                          or "without a recorded exit" in r["Note"]
                          or "held memory" in r["Note"]],
                         3 * [("small", made)])
        self.assertEqual(len(rows), 5)

    def test_store(self):
        """A store that is damaged is built again, told once."""
        self.assertIsNone(self.notes(self.trace))
        chunk = next(os.path.join(d, "chunk.1") for d, _, names in os.walk(self.store) if "chunk.1" in names)
        overwrite(chunk, -64, b"\x55" * 64)
        rows = self.notes(self.trace)
        self.assertEqual([r["File"] for r in rows], [chunk])
        self.assertRegex(rows[0]["Note"], "damaged.*; built again$")
        self.assertIn(rows[0]["Host"], ("client", "web", "db"))
        self.assertIsNone(self.notes(self.trace))

    def test_spans(self):
        """Spans that could not be read, or contradict each other: as `weft spans` says, and in every answer."""
        spans, begin = os.path.join(scratch(), "spans"), 1_700_000_000 * 10**9
        os.mkdir(spans)
        for name, parts in (
                ("good.json", [("a", [made.made("1" * 32, 1, kind=3)]),
                               ("b", [made.made("1" * 32, 2, kind=2, begin=begin + 10**9, parent=1)])]),
                ("bad.json", [("c", [made.made("0" * 32, n) for n in (3, 4)]), ("c", [made.made("2" * 32, 5)])])):
            with open(os.path.join(spans, name), "w", encoding="utf-8") as f:
                json.dump({"resourceSpans": [r for service, some in parts
                                             for r in made.of(some, service)["resourceSpans"]]}, f)
        run = weft("spans", "table", spans)
        said = re.findall(r"^weft: note: (.*)$", run.message, re.M)
        self.assertEqual(len(said), 2, said)
        for traces, whole in ([], 0), ([self.trace], 3):
            with Server(*traces, "--spans", spans, store=self.store) as server:
                rows = self.notes(server=server)
                self.assertEqual(sorted((r["File"] and r["File"] + ": ") + r["Note"] for r in rows), sorted(said))
                self.assertEqual([(r["Host"], r["Times"]) for r in rows], [(spans, "2"), (spans, "1")])
                base = f"/experiments/{server.first()['UUID']}/outputs"
                answer = server.post(f"{base}/timeGraph/weft.spans/tree").json
                self.assertEqual(answer["hosts"]["complete"], whole)
                lacking, = answer["hosts"]["lacking"]
                self.assertEqual((lacking["host"], lacking["status"]), (spans, "PARTIAL"))
                self.assertIn("2 spans left out: ", lacking["statusMessage"])


if __name__ == "__main__":
    main()
