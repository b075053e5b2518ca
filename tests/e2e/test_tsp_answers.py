# SPDX-License-Identifier: MIT
"""Rules for every answer of every output, whatever the trace: those of the protocol and those that its clients rely on
beyond it."""

import os

from tsp_server import Server
from weft_e2e import DATA, Case, main, need, scenario, scratch

ENDPOINT = {"TIME_GRAPH": "timeGraph", "GANTT_CHART": "timeGraph", "TREE_TIME_XY": "XY", "TREE_GENERIC_XY": "genericXY",
            "DATA_TREE": "data"}
DATA_TYPES = {"NUMBER", "BINARY_NUMBER", "TIMESTAMP", "DURATION", "STRING", "TIME_RANGE"}
SERIES = {"line", "area", "scatter", "bar"}
UNKNOWN_IDS = [2**31 - 1, 999999999, 0, -5]
DAY = 86400 * 10**9
SAMPLED = ("weft.machines", "weft.summary")  # outputs whose states are made from the samples
INOUT = "org.eclipse.tracecompass.incubator.inandout.core.analysis.inAndOutdataProviderFactory"
INOUT_TYPE = "org.eclipse.tracecompass.incubator.internal.inandout.core.config"
# Something that every trace has: calls and handlers by CPU, turns of threads.
PAIRS = [{"label": "{0}", "inRegex": "(.*)entry.*", "outRegex": ".*exit.*", "classifier": "CPU"},
         {"label": "turn", "inRegex": "(?:sched:)?sched_switch", "outRegex": "(?:sched:)?sched_switch",
          "contextInRegex": "next_.id=(.*?),", "contextOutRegex": "prev_.id=(.*?),"}]

# The names of the states of two outputs, threads' and frequencies' colours (which are numbered) apart.
LOOKS = {"Thread Status": {"Usermode", "System call", "Interrupt", "Wait for CPU", "Wait blocked", "Wait", "Idle",
                           "Unknown", "CPU transition"},
         "Resources Status": {"Idle", "Usermode", "System call", "IRQ", "Soft IRQ", "Soft IRQ raised", "Unknown"}}


def samples(begin, end, n):
    """The times that a range with a count means: equal steps of whole nanoseconds, and the end."""
    step = max(1, (end - begin) // max(1, n - 1))
    return [*range(begin, end, step), end]


def is_int(v, bits=63):
    return type(v) is int and -(1 << bits) <= v < 1 << bits


class Answers(Case):
    def walk(self, name):
        with Server(name if os.path.isabs(name) else scenario(name), store=scratch()) as server:
            self.server, self.x = server, server.first()
            self.assertEqual(self.x["indexingStatus"], "COMPLETED")
            self.base = f"/experiments/{self.x['UUID']}/outputs"
            self.begin, self.end = self.x["start"], self.x["end"]
            made = server.ask("POST", f"{self.base}/{INOUT}",
                              {"name": "by expressions", "sourceTypeId": INOUT_TYPE,
                               "parameters": {"specifiers": PAIRS}})
            self.assertEqual(made.status, 200, made)
            outputs = server.get(self.base).json
            self.assertEqual(len({o["id"] for o in outputs}), len(outputs))
            self.assertIn(made.json, outputs)
            for o in outputs:
                with self.subTest(trace=name, output=o["name"]):
                    self.assertEqual(server.get(f"{self.base}/{o['id']}").json, o)
                    self.one(o)
            self.assertEqual(server.stop(), 0)
            self.assertEqual(server.errors(), "")

    def one(self, o):
        if o["type"] == "NONE":
            return self.assertEqual(set(o["capabilities"]) & {"canCreate", "canDelete"}, set(o["capabilities"]))
        if o["type"] == "TABLE":
            return self.table(o)
        kind = ENDPOINT[o["type"]]
        tree = self.server.model(f"{self.base}/{kind}/{o['id']}/tree", self.range(2))
        if tree is None:  # a template without anything made from it
            self.assertTrue(o["capabilities"]["canCreate"])
            return None
        self.tree(tree, o["type"])
        for parameters in ({}, {"requested_times": [self.begin, self.end]}, {"unknown": 1}):
            again = self.server.model(f"{self.base}/{kind}/{o['id']}/tree", parameters)
            self.assertEqual([e["id"] for e in again["entries"]], [e["id"] for e in tree["entries"]])
        self.annotations(o, tree)
        return {"timeGraph": self.time_graph, "XY": self.xy, "genericXY": self.generic_xy,
                "data": lambda *_: None}[kind](o, tree)

    def range(self, n, items=None, begin=None, end=None, key="nbTimes", **more):
        parameters = {"requested_timerange": {"start": self.begin if begin is None else begin,
                                              "end": self.end if end is None else end, key: n}, **more}
        return parameters if items is None else dict(parameters, requested_items=items)

    # ---- trees
    # ------------------------------------------------------------------------------------------------------------------

    def tree(self, tree, type_):
        for h in tree["headers"]:
            self.assertIn(h.get("dataType", "STRING"), DATA_TYPES)
            self.assertTrue(h["name"])
        seen = set()
        for e in tree["entries"]:
            self.assertTrue(is_int(e["id"], 52) and e["id"] > 0, e)
            self.assertNotIn(e["id"], seen)
            if e.get("parentId", -1) != -1:
                self.assertIn(e["parentId"], seen, f"a parent comes before its children: {e}")
            seen.add(e["id"])
            self.assertTrue(e["labels"] and all(isinstance(s, str) for s in e["labels"]), e)
            self.assertNotEqual(e["labels"][0], "", e)
            self.assertNotEqual(e["labels"][0][-1], "/", e)
            self.assertLessEqual(len(e["labels"]), max(1, len(tree["headers"])), e)
            for values in e.get("metadata", {}).values():
                self.assertEqual(len({type(v) for v in values} - {float}) <= 1, True, e)
            self.numbers(e, tree["headers"])
            if ENDPOINT[type_] == "timeGraph":
                self.assertLessEqual(e["start"], e["end"])
        if type_ == "TIME_GRAPH" and tree["entries"]:
            self.assertEqual(tree["entries"][0]["start"], self.begin)

    def numbers(self, e, headers):
        """Checks that numbers in a label are also given as numbers, so that they can be added to another server's."""
        numbers = [v for values in e.get("metadata", {}).values() for v in values if type(v) in (int, float)]
        for header, text in zip(headers, e["labels"]):
            if header.get("dataType") in ("NUMBER", "BINARY_NUMBER") and text.isdigit():
                self.assertIn(int(text), numbers, (header, e))
            elif header.get("dataType") == "DURATION" and text not in ("", "---"):
                self.assertTrue(numbers, (header, e))

    def annotations(self, o, tree):
        path = f"{self.base}/{o['id']}/annotations"
        categories = self.server.get(path).json["model"]["annotationCategories"]
        ids = [e["id"] for e in tree["entries"]]
        # Maximum number of samples that a client may name: annotations are not sampled.
        found = self.server.model(path, self.range(65536, ids + list(range(10**6, 10**6 + 200))))["annotations"]
        for category, list_ in found.items():
            self.assertIn(category, categories)
            for a in list_:
                self.assertTrue(a["entryId"] == -1 or a["entryId"] in ids, a)
                self.assertTrue(is_int(a["time"]) and is_int(a["duration"]) and a["duration"] >= 0, a)
                self.assertIn(a["type"], ("CHART", "TREE"))

    # ---- time graphs
    # ------------------------------------------------------------------------------------------------------------

    def styled(self, style, styles, below=()):
        for key in filter(None, (style or {}).get("parentKey", "").split(",")):
            self.assertIn(key, styles)
            self.assertNotIn(key, below)
            self.styled(styles[key], styles, (*below, key))

    def states(self, o, parameters, styles, bounds):
        rows = self.server.model(f"{self.base}/timeGraph/{o['id']}/states", parameters)["rows"]
        self.assertEqual(len({r["entryId"] for r in rows}), len(rows))
        self.assertLessEqual({r["entryId"] for r in rows}, set(parameters["requested_items"]))
        for r in rows:
            before = None
            for s in r["states"]:
                self.assertLess(s["start"], s["end"])
                self.assertTrue(before is None or before <= s["start"],
                                f"row {r['entryId']}: {s} begins before {before}")
                before = s["end"]
                self.styled(s.get("style"), styles)
                self.assertNotIn("tags", s)
                if o["id"] not in SAMPLED:
                    self.assertEqual(bounds.setdefault((r["entryId"], s["start"]), s["end"]), s["end"],
                                     "the same state has other bounds")
        return {r["entryId"]: r["states"] for r in rows}

    def time_graph(self, o, tree):
        styles = self.server.model(f"{self.base}/{o['id']}/style")["styles"]
        for style in styles.values():
            self.styled(style, styles)
        if o["name"] in LOOKS:  # viewers make their legends of them
            self.assertEqual(LOOKS[o["name"]] - set(styles), set())
            self.assertEqual({s for s in styles if not s[-1].isdigit()} - LOOKS[o["name"]], set())
        ids, bounds = [e["id"] for e in tree["entries"]], {}
        begin, end = self.begin, self.end
        if o["type"] == "GANTT_CHART":  # axis without times
            begin, end = min(e["start"] for e in tree["entries"]), max(e["end"] for e in tree["entries"])
        with_data = {e["id"] for e in tree["entries"] if e.get("hasData", True)}
        for n in (2, 7, 500):
            rows = self.states(o, self.range(n, ids, begin, end), styles, bounds)
            self.assertLessEqual(with_data, set(rows))
            self.sampled(o, rows, samples(begin, end, n))
        self.assertEqual(self.states(o, self.range(10, []), styles, bounds), {})
        some = self.states(o, self.range(10, UNKNOWN_IDS + ids[:3]), styles, bounds)
        self.assertLessEqual(set(some), set(ids[:3]))
        for far in (begin - DAY, end + DAY):
            away = self.states(o, self.range(10, ids, far, far + DAY // 2), styles, bounds)
            self.assertFalse(any(away.values()), "states where there is no trace")
        explicit = [begin, (begin + end) // 2, end]
        self.states(o, {"requested_times": explicit, "requested_items": ids}, styles, bounds)
        self.arrows(o, ids, styles)
        self.tooltips(o, [(i, s) for i, states in rows.items() for s in states if s.get("label")][:5])

    def sampled(self, o, rows, times):
        """Checks samples: between a row's first and last state one state is in force, and every state is in force at a
        sample. The last sample also shows the state at the trace's end."""
        for row, states in rows.items():
            at = 0
            for t in times:
                if not states or t < states[0]["start"] or t >= states[-1]["end"]:
                    continue
                while states[at]["end"] <= t:
                    at += 1
                self.assertLessEqual(states[at]["start"], t, f"row {row}: a hole at {t}")
            if o["id"] in SAMPLED:
                continue
            for s in states:
                inside = any(s["start"] <= t < s["end"] for t in times)
                self.assertTrue(inside or s["end"] == times[-1], f"row {row}: no sample in {s}")

    def arrows(self, o, ids, styles):
        for end in (self.end, (self.begin + self.end) // 2):
            answer = self.server.post(f"{self.base}/timeGraph/{o['id']}/arrows",
                                      self.range(500, begin=self.begin, end=end))
            if answer.status == 405:
                return
            for a in answer.json["model"] or []:
                self.assertIn(a["sourceId"], ids)
                self.assertIn(a["targetId"], ids)
                self.assertTrue(a["start"] <= a["end"] and a["start"] <= end and a["end"] >= self.begin, a)
                self.styled(a.get("style"), styles)

    def tooltips(self, o, states):
        path = f"{self.base}/timeGraph/{o['id']}/tooltip"
        for row, s in states:
            element = {"elementType": "State", "time": s["start"], "duration": s["end"] - s["start"], "entryId": row}
            shown = self.server.model(path, {"requested_times": [s["start"]], "requested_items": [row],
                                             "requested_element": element})
            self.assertTrue(shown and all(isinstance(v, str) for v in shown.values()), f"{s}: {shown}")
            nowhere = self.server.model(path, {"requested_times": [self.begin - DAY],
                                               "requested_items": UNKNOWN_IDS[:1], "requested_element": element})
            self.assertTrue(nowhere is None or isinstance(nowhere, dict))
            marks = self.server.model(path, {"requested_times": [s["start"]], "requested_items": [row],
                                             "requested_element": {**element, "elementType": "annotation"}})
            self.assertFalse(marks, "a state's tooltip is no annotation's")

    # ---- curves
    # -----------------------------------------------------------------------------------------------------------------

    def series(self, path, parameters):
        model = self.server.model(path, parameters)
        self.assertEqual(len({s["seriesId"] for s in model["series"]}), len(model["series"]))
        for s in model["series"]:
            (x,) = [k for k in ("xValues", "xCategories", "xRanges") if k in s]
            self.assertEqual(len(s[x]), len(s["yValues"]))
            self.assertIn(s["style"]["values"]["series-type"], SERIES)
            for axis in ("xValuesDescription", "yValuesDescription"):
                self.assertIn(s[axis]["dataType"], DATA_TYPES)
                self.assertTrue({"label", "unit"} <= set(s[axis]))
        return model["series"]

    def xy(self, o, tree):
        path, ids = f"{self.base}/XY/{o['id']}/xy", [e["id"] for e in tree["entries"]]
        for n in (0, 1, 2, 7, 1000):
            times = samples(self.begin, self.end, n)
            for s in self.series(path, self.range(n, ids)):
                if s["style"]["values"]["series-type"] != "scatter":
                    self.assertEqual(s["xValues"], times)
                else:
                    self.assertEqual(s["xValues"], sorted(s["xValues"]))
        self.series(path, self.range(10, UNKNOWN_IDS))
        self.series(path, self.range(10, []))
        self.series(path, {"requested_times": [self.begin, self.end], "requested_items": ids})

    def generic_xy(self, o, tree):
        path, ids = f"{self.base}/genericXY/{o['id']}/xy", [e["id"] for e in tree["entries"]]
        for n in (1, 2, 100):
            self.series(path, self.range(n, ids, key="nbSamples"))
        self.assertEqual(self.server.post(path, {"requested_timerange": {"start": self.begin, "end": self.end},
                                                 "requested_items": ids}).status, 400)
        self.series(path, self.range(10, UNKNOWN_IDS, key="nbSamples"))

    # ---- tables
    # -----------------------------------------------------------------------------------------------------------------

    def table(self, o):
        path = f"{self.base}/table/{o['id']}"
        columns = self.server.model(f"{path}/columns")
        ids = [c["id"] for c in columns]
        self.assertEqual(len(set(ids)), len(ids))
        for c in columns:
            self.assertTrue(c["name"] and isinstance(c["description"], str) and c["type"] in DATA_TYPES, c)

        def lines(**parameters):
            m = self.server.model(f"{path}/lines", parameters)
            for k, line in enumerate(m["lines"]):
                self.assertEqual(line["index"], m["lowIndex"] + k)
                self.assertEqual(len(line["cells"]), len(m["columnIds"]))
                self.assertTrue(all(isinstance(c["content"], str) for c in line["cells"]))
            return m

        m = lines(requested_table_index=0, requested_table_count=10)
        self.assertEqual(m["columnIds"], ids)
        size = m["size"]
        self.assertEqual(len(m["lines"]), min(10, size))
        self.assertEqual(len(lines(requested_table_index=max(0, size - 3), requested_table_count=50)["lines"]),
                         min(3, size))
        for index in (size, size + 7, 2**40):
            self.assertEqual(lines(requested_table_index=index, requested_table_count=5)["lines"], [])
        chosen = ids[2:0:-1]
        self.assertEqual(lines(requested_table_index=0, requested_table_count=3,
                               requested_table_column_ids=chosen)["columnIds"], chosen)
        self.assertEqual(lines(requested_table_index=0, requested_table_count=0)["lines"], [])

    def test_several_machines(self):
        self.walk("three-tier")

    def test_lost_events(self):
        self.walk("lost-events")

    def test_perf(self):
        self.walk("perf-ctf")

    def test_user_space(self):
        self.walk("ust-live")

    def test_functions(self):
        path = os.path.join(DATA, "traces-public", "context-switches-ust")
        self.walk(need(path))

    def test_virtual_machines(self):
        self.walk("vm")


if __name__ == "__main__":
    main()
