# SPDX-License-Identifier: MIT
"""In-and-out analyses: pairs of events by a user's own expressions. Their numbers against babeltrace2's text, paired
here independently; rules of their lifetime; expressions that are too expensive."""
import os
import re
import struct
import subprocess
import time
from collections import Counter, defaultdict

import small_trace
from test_tsp_hostile import made_trace
from tsp_server import Server, ServerCase
from weft_e2e import SLOWDOWN, main, need, scenario, scratch

TEMPLATE = "org.eclipse.tracecompass.incubator.inandout.core.analysis.inAndOutdataProviderFactory"
KIND = "org.eclipse.tracecompass.incubator.internal.inandout.core.config"
DERIVED = "org.eclipse.tracecompass.incubator.inandout.analysis"
CHART = "org.eclipse.tracecompass.analysis.profiling.core.flamechart"
TABLE = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreTableDataProvider"
SCATTER = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.scatter.dataprovider"
STATISTICS = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreStatisticsDataProvider"
DENSITY = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider"
TYPES = {CHART: "TIME_GRAPH", TABLE: "TABLE", SCATTER: "TREE_TIME_XY", STATISTICS: "DATA_TREE",
         DENSITY: "TREE_GENERIC_XY"}
LINE = re.compile(r"^\[(\d+)\.(\d{9})\] \S+ (\S+): \{ cpu_id = (\d+) \}, \{ ?(.*?) ?\}$", re.M)


def specifier(label, opens, closes, context_in="", context_out="", classifier=""):
    return {"label": label, "inRegex": opens, "outRegex": closes, "contextInRegex": context_in,
            "contextOutRegex": context_out, "classifier": classifier}


SYSCALLS = specifier("{0}", "syscall_entry_(.*)", "syscall_exit_.*", classifier="TID")


class InoutCase(ServerCase):
    """Base of tests with one server and experiment for a class; `args` starts it."""

    @classmethod
    def start(cls, *args, **how):
        cls.server = Server(*args, **how)
        cls.x = cls.server.first()
        cls.outputs = f"/experiments/{cls.x['UUID']}/outputs"

    @classmethod
    def tearDownClass(cls):
        if hasattr(cls, "server"):
            code, errors = cls.server.stop(), cls.server.errors()
            assert code == 0 and "Sanitizer" not in errors, f"exit {code}: {errors}"

    def ask(self, *specifiers, name="mine", **more):
        return self.server.ask("POST", f"{self.outputs}/{TEMPLATE}",
                               {"name": name, "sourceTypeId": KIND, "parameters": {"specifiers": specifiers}, **more})

    def derive(self, *specifiers, **more):
        return self.good(self.ask(*specifiers, **more))["id"]

    def model(self, kind, view, derived, operation, **parameters):
        return self.server.model(f"{self.outputs}/{kind}/{view}:{derived}/{operation}", parameters)

    def lines(self, derived):
        found = []
        while True:
            table = self.model("table", TABLE, derived, "lines", requested_table_index=len(found),
                               requested_table_count=5000)
            found += [[c["content"] for c in line["cells"]] for line in table["lines"]]
            if not table["lines"]:
                self.assertEqual(len(found), table["size"])
                return found

    def pairs(self, *specifiers):
        """(begin, end, label, host, classifier, context) of each pair, by the table; checked against its own duration.
        """
        found = []
        for begin, end, duration, *what in self.lines(self.derive(*specifiers)):
            self.assertEqual(int(duration), int(end) - int(begin))
            found.append((int(begin), int(end), *what))
        self.assertEqual([f[0] for f in found], sorted(f[0] for f in found))
        return found


class Numbers(InoutCase):
    """Numbers of one machine: its times are as recorded."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        need("babeltrace2")
        path = os.path.join(scenario("three-tier"), "db")
        cls.start(path)
        text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], stdout=subprocess.PIPE,
                              check=True).stdout.decode()
        cls.events = [(int(s) * 10**9 + int(ns), name, int(cpu), fields) for s, ns, name, cpu,
                      fields in LINE.findall(text)]

    def threads(self):
        """The thread of each event: of the last switch on its CPU, before the first one of what that switched from."""
        current = {}
        for _, name, cpu, fields in self.events:
            if name == "sched_switch":
                current.setdefault(cpu, re.search(r"prev_tid = (\d+)", fields).group(1))
        for _, name, cpu, fields in self.events:
            yield current.get(cpu)
            if name == "sched_switch":
                current[cpu] = re.search(r"next_tid = (\d+)", fields).group(1)

    def expected(self, opens, closes):
        """Pairs of the events for which the functions give a key (and a label); the last one opened is closed first."""
        going, found = defaultdict(list), []
        for event, tid in zip(self.events, self.threads()):
            key = closes(event, tid)
            if key is not None and going[key]:
                begin, label = going[key].pop()
                found.append((begin, event[0], label, "db", *key))
            opened = opens(event, tid)
            if opened is not None:
                going[opened[1]].append((event[0], opened[0]))
        return found

    def test_calls_by_thread(self):
        def opens(event, tid):
            return (event[1][len("syscall_entry_"):],
                    (f"TID {tid}", "")) if event[1].startswith("syscall_entry_") and tid else None

        def closes(event, tid):
            return (f"TID {tid}", "") if event[1].startswith("syscall_exit_") and tid else None

        expected = self.expected(opens, closes)
        self.assertGreater(len(expected), 10000)
        self.assertEqual(Counter(self.pairs(SYSCALLS)), Counter(expected))

    def test_context_of_fields(self):
        def timer(event, name):
            return ("", "0x" + re.search(r"hrtimer = 0x([0-9A-F]+)",
                                         event[3]).group(1).lower()) if event[1] == name else None

        expected = self.expected(lambda e, _: ("timer", timer(e, "timer_hrtimer_expire_entry"))
                                 if timer(e, "timer_hrtimer_expire_entry") else None,
                                 lambda e, _: timer(e, "timer_hrtimer_expire_exit"))
        self.assertGreater(len({e[5] for e in expected}), 3, "several timers")
        context = r"hrtimer=(0x[0-9a-f]+)"
        found = self.pairs(specifier("timer", "timer_hrtimer_expire_entry", "timer_hrtimer_expire_exit", context,
                                     context))
        self.assertEqual(Counter(found), Counter(expected))

    def test_one_kind_of_event_closes_and_opens(self):
        """Pairs from switch to switch: the thread on the CPU."""
        def opens(event, _):
            if event[1] != "sched_switch":
                return None
            tid = re.search(r"next_tid = (\d+)", event[3]).group(1)
            return tid, (f"CPU {event[2]}", tid)

        def closes(event, _):
            return (f"CPU {event[2]}", re.search(r"prev_tid = (\d+)",
                                                 event[3]).group(1)) if event[1] == "sched_switch" else None

        expected = self.expected(opens, closes)
        found = self.pairs(specifier("{2}", "sched_switch", "sched_switch", r"next_tid=(\d+)", r"prev_tid=(\d+)",
                                     "CPU"))
        self.assertEqual(Counter(found), Counter(expected))
        self.assertGreater(len(found), 500)

    def test_specifiers_do_not_mix(self):
        """Specifiers are independent: each closes only its own pairs, and sees all events; labels from each of the four
        expressions."""
        vec = r"vec=(\d+)"
        one = specifier("{3}", "irq_softirq_entry", "irq_softirq_exit", vec, vec, "cpu")
        other = specifier("{1}", "irq_softirq_(raise)", "irq_softirq_(?:entry|(raise_))", vec, vec, "cpu")
        self.assertEqual(Counter(self.pairs(one, other)), Counter(self.pairs(one)) + Counter(self.pairs(other)))
        self.assertTrue(all(p[2] == p[5] for p in self.pairs(one)))
        self.assertEqual({p[2] for p in self.pairs(other)}, {"{1}"},
                         "what captures nothing leaves the label as it stands")
        self.assertGreater(len(self.pairs(other)), 1000)

    def test_names_fit_whole(self):
        self.assertEqual(self.pairs(specifier("x", "syscall_entry", "syscall_exit_.*")), [])
        self.assertEqual(self.pairs(specifier("x", "syscall_entry_.*", "exit_read")), [])

    def test_figures(self):
        derived = self.derive(SYSCALLS)
        pairs = self.pairs(SYSCALLS)
        middle = pairs[len(pairs) // 2][0]
        by_name = defaultdict(list)
        for begin, end, name, *_ in pairs:
            by_name[name].append((end - begin, begin, end))
        tree = self.model("data", STATISTICS, derived, "tree",
                          requested_timerange={"start": self.x["start"], "end": middle})["entries"]
        total, selection = (e for e in tree if e["parentId"] == -1)
        self.assertEqual([total["labels"][0], total["labels"][5]], ["Total", str(len(pairs))])
        self.assertEqual([selection["labels"][0], selection["labels"][5]],
                         ["Selection", str(sum(p[0] <= middle for p in pairs))])
        rows = {e["labels"][0]: e["labels"] for e in tree if e["parentId"] == total["id"]}
        self.assertEqual({name: int(row[5]) for name, row in rows.items()},
                         {name: len(d) for name, d in by_name.items()})
        for name, durations in by_name.items():
            for place, one in ((7, min(durations)), (8, max(durations))):
                begin, end = map(int, rows[name][place].strip("[]").split(","))
                self.assertEqual(end - begin, one[0])
                self.assertIn((end - begin, begin, end), durations)
        density = self.model("genericXY", DENSITY, derived, "xy",
                             requested_items=[self.model("genericXY", DENSITY, derived, "tree")["entries"][0]["id"]],
                             requested_timerange={"start": self.x["start"], "end": middle,
                                                  "nbSamples": 10})["series"][0]
        durations = [end - begin for begin, end, *_ in pairs if begin <= middle]
        self.assertEqual(density["yValues"], [sum(r["start"] <= d < r["end"] for d in durations)
                                              for r in density["xRanges"]])
        self.assertEqual(sum(density["yValues"]), len(durations))

    def test_points(self):
        derived = self.derive(SYSCALLS)
        entries = self.model("XY", SCATTER, derived, "tree")["entries"]
        names = {e["id"]: e["labels"][0] for e in entries if e["parentId"] != -1}
        width = (self.x["end"] - self.x["start"]) // 20
        times = [self.x["start"] + k * width for k in range(20)] + [self.x["end"]]
        series = self.model("XY", SCATTER, derived, "xy", requested_times=times,
                            requested_items=sorted(names))["series"]
        expected = defaultdict(set)
        pieces = defaultdict(list)
        for begin, end, name, *_ in self.pairs(SYSCALLS):
            pieces[name, min((begin - self.x["start"]) // width, 19)].append((end - begin, begin))
        for (name, _), within in pieces.items():
            expected[name] |= {min(within)[0], max(within)[0]}
        self.assertEqual({names[s["seriesId"]]: set(s["yValues"]) for s in series if s["yValues"]}, dict(expected))

    def test_chart(self):
        """States of the chart are the table's pairs; in a row they do not overlap; open ones last to the end."""
        derived = self.derive(specifier("call", "syscall_entry_.*", "syscall_exit_.*", classifier="CPU"), name="nested")
        tree = self.model("timeGraph", CHART, derived, "tree")["entries"]
        parents = {e["id"]: e for e in tree}
        self.assertEqual({parents[e["parentId"]]["labels"][0] for e in tree if e["labels"][0].startswith("CPU ")},
                         {"db"})
        self.assertTrue(any(e["labels"][0] == "2" and parents[e["parentId"]]["labels"][0].startswith("CPU ")
                            for e in tree), "threads switch within calls: several levels")
        pairs = [p for p in self.pairs(specifier("call", "syscall_entry_.*", "syscall_exit_.*", classifier="CPU"))
                 if p[0] < p[1]]
        classifier = {e["id"]: e["labels"][0] if e["labels"][0].startswith("CPU ")
                      else parents[e["parentId"]]["labels"][0] for e in tree if e["parentId"] != -1}
        self.assertGreater(len(pairs), 10000)
        times = sorted({p[0] for p in pairs})
        found, unclosed = Counter(), []
        for first in range(0, len(times), 20000):
            rows = self.model("timeGraph", CHART, derived, "states", requested_times=times[first:first + 20000],
                              requested_items=sorted(classifier))["rows"]
            for row in rows:
                for a, b in zip(row["states"], row["states"][1:]):
                    self.assertLessEqual(a["end"], b["start"])
                for s in row["states"]:
                    if "style" in s and times[first] <= s["start"]:
                        (unclosed.append((row["entryId"], s)) if s["end"] == self.x["end"]
                         else found.update([(s["start"], s["end"], classifier[row["entryId"]])]))
        self.assertEqual(found, Counter((p[0], p[1], p[4]) for p in pairs))
        entry, s = unclosed[-1]
        tip = self.model("timeGraph", CHART, derived, "tooltip", requested_times=[s["start"]], requested_items=[entry],
                         requested_element={"elementType": "state", "time": s["start"],
                                            "duration": s["end"] - s["start"]})
        self.assertEqual((tip["Name"], tip["Out"], tip["Classifier"]), ("call", "not seen", classifier[entry]))
        styles = self.server.model(f"{self.outputs}/{CHART}:{derived}/style")["styles"]
        self.assertIn(s["style"]["parentKey"], styles)

    def test_filter(self):
        derived = self.derive(SYSCALLS)
        entries = [e["id"] for e in self.model("timeGraph", CHART, derived, "tree")["entries"]]
        reads = {p[:2] for p in self.pairs(SYSCALLS) if p[2] == "read"}
        rows = self.model("timeGraph", CHART, derived, "states", requested_times=sorted(p[0] for p in reads),
                          requested_items=entries,
                          filter_query_parameters={"filter_expressions_map": {"1": ["label == read"]}})["rows"]
        bright = {(s["start"], s["end"]) for row in rows for s in row["states"] if "style" in s and not s.get("tags")
                  and s["end"] < self.x["end"]}
        self.assertEqual(bright, {p for p in reads if p[0] < p[1]})


class Life(InoutCase):
    """Lifetime, by status and body."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.start(scenario("three-tier"))

    def test_template(self):
        template = self.good(self.server.get(f"{self.outputs}/{TEMPLATE}"))
        self.assertEqual((template["type"], template["capabilities"]), ("NONE", {"canCreate": True}))
        kind, = self.good(self.server.get(f"{self.outputs}/{TEMPLATE}/configTypes"))
        self.assertEqual((kind["id"], kind["name"]), (KIND, "In And Out Analysis"))
        self.assertEqual(self.good(self.server.get(f"{self.outputs}/{TEMPLATE}/configTypes/{KIND}")), kind)
        properties = kind["schema"]["properties"]["specifiers"]["items"]["properties"]
        self.assertEqual(set(properties), {"label", "inRegex", "outRegex", "contextInRegex", "contextOutRegex",
                                           "classifier"})
        self.refused(self.server.get(f"{self.outputs}/{TEMPLATE}/configTypes/other"), 404)
        self.refused(self.server.post(f"{self.outputs}/data/{TEMPLATE}/tree"), 405, "Analysis cannot run")

    def test_outputs(self):
        one = self.good(self.ask(SYSCALLS, name="calls", description="by thread"))
        self.assertTrue(re.fullmatch(re.escape(DERIVED) + r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", one["id"]),
                        one["id"])
        self.assertEqual((one["name"], one["description"], one["type"], one["parentId"], one["capabilities"]),
                         ("calls", "by thread", "NONE", TEMPLATE, {"canDelete": True}))
        self.assertEqual(one["configuration"]["parameters"], {"specifiers": [SYSCALLS]})
        self.assertEqual(self.good(self.ask(SYSCALLS, name="calls")), one, "the same again is itself")
        self.assertEqual(self.good(self.server.get(f"{self.outputs}/{one['id']}")), one)
        listed = {o["id"]: o for o in self.good(self.server.get(self.outputs))}
        self.assertEqual(listed[one["id"]], one)
        for view, kind in TYPES.items():
            shown = listed[f"{view}:{one['id']}"]
            self.assertEqual((shown["type"], shown["parentId"], shown["configuration"]),
                             (kind, one["id"], one["configuration"]))
            self.assertTrue(shown["name"].startswith("calls - "))
            self.assertNotIn("capabilities", shown)
            self.assertEqual(self.good(self.server.get(f"{self.outputs}/{shown['id']}")), shown)
            self.assertEqual(self.good(self.server.get(f"{self.outputs}/{shown['id']}/configTypes")), [])
            self.refused(self.server.delete(f"{self.outputs}/{TEMPLATE}/{shown['id']}"), 404)
        self.refused(self.server.post(f"{self.outputs}/data/{one['id']}/tree"), 405)
        self.refused(self.server.post(f"{self.outputs}/data/{TABLE}:{one['id']}/tree"), 405)
        self.refused(self.server.post(f"{self.outputs}/table/{TABLE}:{DERIVED}/lines"), 405)
        self.assertEqual(self.good(self.server.delete(f"{self.outputs}/{TEMPLATE}/{one['id']}")), one)
        self.refused(self.server.delete(f"{self.outputs}/{TEMPLATE}/{one['id']}"), 404)
        self.refused(self.server.get(f"{self.outputs}/{TABLE}:{one['id']}"), 404)
        self.refused(self.server.post(f"{self.outputs}/table/{TABLE}:{one['id']}/columns"), 405)

    def test_machines_are_apart(self):
        """Thread numbers of one machine mean nothing on another: all together are as many as each by itself."""
        found = self.pairs(SYSCALLS)
        hosts = Counter(p[3] for p in found)
        self.assertEqual(set(hosts), {"client", "web", "db"})
        for host in hosts:
            with Server(os.path.join(scenario("three-tier"), host)) as alone:
                outputs = f"/experiments/{alone.first()['UUID']}/outputs"
                derived = self.good(alone.ask("POST", f"{outputs}/{TEMPLATE}",
                                              {"name": "x", "sourceTypeId": KIND,
                                               "parameters": {"specifiers": [SYSCALLS]}}))["id"]
                size = alone.model(f"{outputs}/table/{TABLE}:{derived}/lines",
                                   {"requested_table_index": 0, "requested_table_count": 1})["size"]
            self.assertEqual(size, hosts[host])
        names = {e["labels"][0] for e in self.model("data", STATISTICS, self.derive(SYSCALLS), "tree")["entries"]}
        self.assertLessEqual({"client/read", "web/read", "db/read"}, names)

    def test_what_is_refused(self):
        good = specifier("a", "b", "c", "d", "e", "CPU")

        def refused(title, *specifiers):
            self.assertIn(title, self.refused(self.ask(*specifiers), 400)["title"])

        base = f"{self.outputs}/{TEMPLATE}"
        self.refused(self.server.ask("POST", base, {"name": "x", "sourceTypeId": KIND, "parameters": {}}), 400,
                     "Missing query parameters: specifiers")
        for wrong in ([], {}, "x", None, [good] * 65):
            self.refused(self.server.ask("POST", base,
                                         {"name": "x", "sourceTypeId": KIND, "parameters": {"specifiers": wrong}}), 400,
                         "specifiers")
        refused("specifiers[1]", good, 7)
        for key in ("label", "inRegex", "outRegex"):
            refused(f"Missing query parameters: specifiers[1].{key}", good, {k: v for k, v in good.items() if k != key})
            refused(f"Invalid query parameters: specifiers[0].{key}", dict(good, **{key: 5}))
            refused(f"Invalid query parameters: specifiers[0].{key}", dict(good, **{key: ""}))
        for key in ("inRegex", "outRegex", "contextInRegex", "contextOutRegex"):
            refused(f"specifiers[0].{key}", dict(good, **{key: "main("}))
            refused(f"specifiers[0].{key}", dict(good, **{key: "x" * 5000}))
            refused(f"specifiers[0].{key}", dict(good, **{key: "(" * 300 + ")" * 300}))
        refused("specifiers[0].label", dict(good, label="x" * 257))
        refused("no column Weather", dict(good, classifier="Weather"))
        self.good(self.ask({"label": "a", "inRegex": "b", "outRegex": "c"}))
        self.good(self.ask(dict(good, contextInRegex="ALL", contextOutRegex=" ", classifier=" ")))
        self.refused(self.server.ask("POST", base,
                                     {"name": "x", "sourceTypeId": "weft.critical-path",
                                      "parameters": {"specifiers": [good]}}), 400, "sourceTypeId")
        self.refused(self.server.ask("POST", f"{self.outputs}/{self.derive(good)}",
                                     {"name": "x", "sourceTypeId": KIND, "parameters": {}}), 400)

    def test_survives_a_restart(self):
        state, store, root = scratch(), scratch(), scenario("three-tier")
        with Server("--state", state, "--trace-root", root, os.path.join(root, "web"), store=store) as s:
            outputs = f"/experiments/{s.first()['UUID']}/outputs"
            made = self.good(s.ask("POST", f"{outputs}/{TEMPLATE}",
                                   {"name": "kept", "sourceTypeId": KIND, "parameters": {"specifiers": [SYSCALLS]}}))
            before = [o for o in self.good(s.get(outputs)) if made["id"] in o["id"]]
            lines = s.model(f"{outputs}/table/{TABLE}:{made['id']}/lines",
                            {"requested_table_index": 100, "requested_table_count": 50})
            self.assertEqual(s.stop(), 0)
        with Server("--state", state, "--trace-root", root, os.path.join(root, "web"), store=store) as s:
            s.first()
            self.assertEqual([o for o in self.good(s.get(outputs)) if made["id"] in o["id"]], before)
            self.assertEqual(s.model(f"{outputs}/table/{TABLE}:{made['id']}/lines",
                                     {"requested_table_index": 100, "requested_table_count": 50}), lines)


class Losses(InoutCase):
    """Lost events: no pair spans them."""

    def setUp(self):
        path, packets = os.path.join(scratch(), "lossy"), []
        os.makedirs(path)
        with open(os.path.join(path, "metadata"), "w", encoding="ascii") as f:
            f.write(small_trace.METADATA)
        for i, events in enumerate(small_trace.PACKETS):
            p = bytearray(small_trace.packet(i, events))
            discarded = 4 + 16 + 4 + 8 * 5
            # five are gone between the first packet and the second
            p[discarded:discarded + 8] = struct.pack("<Q", 5 if i else 0)
            packets.append(bytes(p))
        with open(os.path.join(path, "ch_0"), "wb") as f:
            f.write(b"".join(packets))
        type(self).start(path)

    def test_losses(self):
        # Wakes that end with the next switch to the thread: of beta at 6000 by 9000; of alpha at 20000 by 25000; …
        wake = specifier("{2}", "sched_waking", "sched_switch", r"\btid=(\d+)", r"next_tid=(\d+)")
        origin = small_trace.OFFSET_NS
        self.assertEqual([(p[0] - origin, p[1] - origin, p[2]) for p in self.pairs(wake)],
                         [(6000, 9000, "11"), (20000, 25000, "10"), (31000, 33000, "11"), (41000, 45000, "10")])
        # Pairs from one fork to the next waking of it: events in between are irrelevant.
        switches = specifier("ran", "sched_switch", "sched_switch", r"next_tid=(\d+)", r"prev_tid=(\d+)")
        ran = [(p[0] - origin, p[1] - origin, p[5]) for p in self.pairs(switches)]
        self.assertIn((1000, 9000, "10"), ran)
        self.assertNotIn((9000, 25000, "11"), ran,
                         "it went to sleep and came back among the lost ones, for all that is known")
        self.assertIn((25000, 33000, "10"), ran)
        derived = self.derive(switches)
        entries = self.model("timeGraph", CHART, derived, "tree")["entries"]
        beta = next(e["id"] for e in entries if e["labels"][0] == "11")
        states = self.model("timeGraph", CHART, derived, "states",
                            requested_times=[origin + t for t in (9500, 15000, 24000)],
                            requested_items=[beta])["rows"][0]["states"]
        open_ones = [s for s in states if "style" in s]
        self.assertEqual([s["start"] - origin for s in open_ones], [9000])
        self.assertLessEqual(open_ones[0]["end"] - origin, 20000)
        tip = self.model("timeGraph", CHART, derived, "tooltip", requested_times=[origin + 9500],
                         requested_items=[beta], requested_element={"elementType": "state"})
        self.assertEqual(tip["Out"], "not seen")


class Hostile(InoutCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace, cls.store = made_trace(3000000), scratch()
        cls.start(cls.trace, store=cls.store)
        # Expressions within the limits for each event, which would take many minutes for all.
        cls.slow = specifier("x", ".*", "nothing", r"(?:..)*(?:..)*[#%]")

    def failure(self, *specifiers):
        path = f"{self.outputs}/data/{STATISTICS}:{self.derive(*specifiers)}/tree"
        end = time.monotonic() + 120 * SLOWDOWN
        while True:
            answer = self.good(self.server.post(path))
            if answer["status"] != "RUNNING" or time.monotonic() > end:
                break
            time.sleep(0.1)
        self.assertEqual((answer["status"], answer["model"]), ("FAILED", None), answer)
        return answer["statusMessage"]

    def test_costly_expressions_end(self):
        self.assertIn("specifiers[1].contextInRegex needs too many steps on events sched_switch",
                      self.failure(specifier("x", "a", "b"), specifier("x", "sched_switch", "b", r"(\w+\W*)+[#%]")))
        self.assertIn("specifiers[0].outRegex needs too many steps",
                      self.failure(specifier("x", "a", r"(\w+\w*)+[#%]")))

    def test_too_much_told_apart(self):
        self.assertIn("tell more than 131072 things apart",
                      self.failure(specifier("x", ".*", "nothing", classifier="Timestamp")))
        self.assertEqual(self.server.get("/health").status, 200)

    def test_first_it_runs_and_deletion_ends_it(self):
        derived = self.derive(self.slow)
        answer = self.good(self.server.post(f"{self.outputs}/data/{STATISTICS}:{derived}/tree"))
        self.assertEqual((answer["status"], answer["model"]), ("RUNNING", None), answer)
        self.assertRegex(answer["statusMessage"], r"^Looking for pairs: \d+ % of the events read$")
        progress = answer["progress"]
        self.assertLessEqual(progress["done"], progress["of"])
        self.assertEqual(answer["statusMessage"].split(" %")[0].split()[-1],
                         f"{100 * progress['done'] / progress['of']:.0f}")
        table = self.good(self.server.post(f"{self.outputs}/table/{TABLE}:{derived}/lines",
                                           {"requested_table_index": 0, "requested_table_count": 5}))
        self.assertEqual((table["status"], table["model"]["size"], table["model"]["lines"]), ("RUNNING", 0, []))
        self.assertEqual(len(self.good(self.server.post(f"{self.outputs}/table/{TABLE}:{derived}/columns"))["model"]),
                         7)
        self.good(self.server.delete(f"{self.outputs}/{TEMPLATE}/{derived}"))
        # Queries keep it alive: it would end 8 s after the last one.
        for _ in range(5 * SLOWDOWN):
            before = self.server.cpu_seconds()
            time.sleep(1)
            if self.server.cpu_seconds() - before < 0.05:
                return
        self.fail("it goes on reading")

    def test_reading_does_not_hold_up_the_end(self):
        with Server(self.trace, store=self.store) as s:
            outputs = f"/experiments/{s.first()['UUID']}/outputs"
            derived = self.good(s.ask("POST", f"{outputs}/{TEMPLATE}",
                                      {"name": "x", "sourceTypeId": KIND,
                                       "parameters": {"specifiers": [self.slow]}}))["id"]
            self.assertEqual(self.good(s.post(f"{outputs}/data/{STATISTICS}:{derived}/tree"))["status"], "RUNNING")
            self.assertEqual(s.stop(), 0)


if __name__ == "__main__":
    main()
