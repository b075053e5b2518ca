# SPDX-License-Identifier: MIT
"""The worked example of pilot jobs, run as it stands: a factory and its glideins, some of which fare badly. The judge
is a stand-in collector, the exit statuses that the factory saw, and the clock of this process."""
import glob
import os
import re
import subprocess
import time

from span_collector import NOBODY, SPAN, Collector, attributes, environment
from weft_e2e import ROOT, SLOWDOWN, Case, main, need, scratch

EXAMPLE = os.path.join(ROOT, "examples", "glidein")
STAGES = ["init", "pre_setup", "setup", "main", "cleanup"]
LOST = ["main"]  # spans running when it was killed, beside the glidein itself
WORK_S = 2


def factory(endpoint, out, *arguments):
    return subprocess.run([os.path.join(EXAMPLE, "factory.py"), "--collector", endpoint, "--out", out, "--work",
                           str(WORK_S), *arguments], capture_output=True, text=True, timeout=120 * SLOWDOWN,
                          env=environment(WEFT_SPAN=SPAN, PYTHONDONTWRITEBYTECODE="1"))


def duration_s(span):
    return (int(span["endTimeUnixNano"]) - int(span["startTimeUnixNano"])) / 1e9


class Glideins(Case):
    def setUp(self):
        need(SPAN, "bash")

    def test_a_batch_in_which_things_go_wrong(self):
        out, begin = os.path.join(scratch(), "run"), time.time()
        with Collector() as c:
            run = factory(c.url, out, "--batch", "CE_one:frontend_x", "--glideins", "5", "--remove", "1", "--kill", "2",
                          "--no-collector", "3", "--slow-disk", "4")
            took_s, spans = time.time() - begin, c.spans()
        self.assertEqual(run.returncode, 0, run)
        self.assertIn("[[0, 143, -9, 0, 0]]", run.stdout)
        self.assertEqual(len({s["traceId"] for s in spans}), 1)
        self.assertEqual(len({s["spanId"] for s in spans}), len(spans), "nothing came twice")
        parent, = (s for s in spans if s["name"] == "parent")
        self.assertNotIn("parentSpanId", parent)
        said = attributes(parent)
        self.assertEqual((said["entry"], said["client"]), ("CE_one", "frontend_x"))

        glideins = [s for s in spans if s["name"] == "glidein"]
        self.assertEqual([g["parentSpanId"] for g in glideins], [parent["spanId"]] * 5)
        below = {g["spanId"]: sorted((s for s in spans if s.get("parentSpanId") == g["spanId"]),
                                     key=lambda s: int(s["startTimeUnixNano"])) for g in glideins}
        self.assertEqual(sum(map(len, below.values())) + 6, len(spans))
        ends = {}
        for g in glideins:
            stages, lost = below[g["spanId"]], attributes(g).get("weft.state") == "lost"
            self.assertEqual({attributes(s)["UUID"] for s in stages}, {attributes(g)["UUID"]})
            self.assertEqual([s["name"] for s in stages], STAGES[:4] if lost else STAGES)
            for before, after in zip(stages, stages[1:]):
                self.assertLessEqual(int(before["endTimeUnixNano"]), int(after["startTimeUnixNano"]), "one by one")
            self.assertEqual([s["name"] for s in stages if attributes(s).get("weft.state") == "lost"],
                             LOST if lost else [])
            if not lost:
                self.assertTrue(0 < duration_s(g) - sum(map(duration_s, stages)) < took_s - WORK_S / 2)
                ends.setdefault(g["status"].get("message", ""), []).append(stages)
        self.assertEqual({why: len(all_) for why, all_ in ends.items()}, {"": 3, "exit 143": 1})
        removed, = ends["exit 143"]
        self.assertEqual(removed[3]["status"]["code"], 2)
        self.assertTrue(duration_s(removed[3]) < WORK_S)
        for stages in ends[""]:
            self.assertTrue(WORK_S <= duration_s(stages[3]) < took_s)
            self.assertEqual([s["status"].get("code") for s in stages], [None] * 5)
        # Eight blocks, each of them a tenth of a second late.
        self.assertGreaterEqual(max(duration_s(stages[2]) for stages in ends[""]), 0.8)
        self.assertEqual(glob.glob(os.path.join(out, "*", "spans", "*.jsonl")), [], "nothing waits")
        left = [home for home in glob.glob(os.path.join(out, "*")) if glob.glob(os.path.join(home, "glide_*"))]
        self.assertEqual([os.path.basename(home) for home in left], ["CE_one.2"], "who is killed leaves its directory")

    def test_without_weft_span(self):
        """Glidein without weft-span: it runs as if there were no tracing."""
        out = os.path.join(scratch(), "run")
        env = {"PATH": os.environ["PATH"], "WEFT_SPAN": "/nonexistent/weft-span", "PYTHONDONTWRITEBYTECODE": "1"}
        code = "import glideinTracer as g; t = g.Tracer(); t.initial_trace({'entry': 'e'}); print(t.GLIDEIN_TRACE_ID)"
        run = subprocess.run(["python3", "-c", code], cwd=EXAMPLE, env=env, capture_output=True, text=True, check=True)
        self.assertEqual(run.stdout, "None\n")
        os.makedirs(out)
        run = subprocess.run([os.path.join(EXAMPLE, "glidein_startup.sh"), "-traceid", "None", "-work", "0"], cwd=out,
                             env=env, capture_output=True, timeout=60 * SLOWDOWN)
        self.assertEqual((run.returncode, run.stderr), (0, b""))

    def test_an_early_failure(self):
        """Early failure: if nothing can be written, the first stage fails, and so does the glidein."""
        with Collector() as c:
            run = subprocess.run([os.path.join(EXAMPLE, "glidein_startup.sh"), "-entry", "e"], cwd="/proc",
                                 capture_output=True, timeout=60 * SLOWDOWN,
                                 env=environment(c.url, WEFT_SPAN=SPAN, WEFT_SPAN_SPOOL=scratch()))
            self.assertEqual(run.returncode, 1, run)
            told = {s["name"]: s["status"] for s in c.spans()}
        failed = {"code": 2, "message": "exit 1"}
        self.assertEqual(told, {"init": failed, "cleanup": {}, "glidein": failed})

    def test_the_drop_in(self):
        """Classes and methods of the factory's library: a process that ends at once has sent its span, and a child has
        the parent that it was given."""
        code = ("import os, glideinTracer as g\n"
                "t = g.Tracer(os.environ['COLLECTOR'])\n"
                "t.initial_trace({'entry': 'e', 'client': 'c'})\n"
                "c = g.Trace(t.tracer, t.carrier)\n"
                "c.send_span()\n"
                "c.get_span_ID()\n"
                "print(t.GLIDEIN_TRACE_ID, flush=True)\n"
                "os._exit(0)\n")
        with Collector() as c:
            run = subprocess.run(["python3", "-c", code], cwd=EXAMPLE, capture_output=True, text=True, check=True,
                                 env=environment(WEFT_SPAN=SPAN, COLLECTOR=c.url, TRACE_ID="1:2:0:1",
                                                 PYTHONDONTWRITEBYTECODE="1"))
            child, parent = c.spans()[::-1]
        ids = [re.fullmatch(r"([0-9a-f]{32}):([0-9a-f]{16}):([0-9a-f]{1,16}):01", line).groups()
               for line in run.stdout.split()]
        self.assertEqual([(i[0], i[1]) for i in ids],
                         [(child["traceId"], child["spanId"]), (parent["traceId"], parent["spanId"])])
        self.assertEqual(child["parentSpanId"], parent["spanId"])
        self.assertNotIn("parentSpanId", parent)
        self.assertEqual((parent["name"], child["name"]), ("parent", "child"))

    def test_nobody_listens(self):
        out = os.path.join(scratch(), "run")
        run = factory(NOBODY, out, "--glideins", "2")
        self.assertIn("[[0, 0]]", run.stdout)
        self.assertEqual(run.returncode, 1, "and it says that spans wait")
        self.assertEqual(len(glob.glob(os.path.join(out, "*", "spans", "*.jsonl"))), 2)


if __name__ == "__main__":
    main()
