#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weft coordinate puts servers on one clock: servers that know nothing of each other's clocks, and are told what
`weft sync` found of them, answer as one server that synchronised all traces itself. And a server of another make, on a
clock that the configuration states: what it is asked, and what is made of its answers, is computed here."""
import json
import math
import os
from fractions import Fraction

import test_coordinate
from coordinated import BY_SERVER, HOSTS, PATH, Coordinator, Shop, StandIn
from test_coordinate_config import write
from tsp_server import EVENTS, THREAD_STATUS
from weft_e2e import Case, main, new_dice, scenario, scratch, weft


def clocks():
    run = weft("sync", "--format", "json", "--store", scratch(), *[f"{h}={scenario('three-tier')}/{h}" for h in HOSTS])
    return write(run.text, "clocks.json"), json.loads(run.text)


def close(a, b):
    """Shares of a range: a duration by the machine's own clock, over one by everybody's. In no piece of its map does
    one of these run faster or slower than the reference by more than some 230 ppm."""
    return abs(a - b) <= 5e-4 * max(abs(a), abs(b))


class Near(float):
    def __eq__(self, other):
        return close(self, other)


class OneClock(test_coordinate.Answers):
    # outputs about the quality of clocks, which only the server that synchronised them has
    by_server = (*BY_SERVER, "weft.clocks", "weft.clocks.maps", "weft.clocks.error")

    @staticmethod
    def make_shop():
        OneClock.path, OneClock.said = clocks()
        return Shop(f"--clocks={OneClock.path}", sync=True)

    @staticmethod
    def rounded(entry):
        entry = test_coordinate.Answers.rounded(
            {k: v for k, v in entry.items() if k not in ("Clock error", "Duration")}
        )
        if "metadata" in entry:
            entry["metadata"] = {k: v for k, v in entry["metadata"].items() if k != "clockError"}
        if "labels" in entry:
            entry["labels"] = [Near(s[:-2]) if s.endswith(" %") else s for s in entry["labels"] if "±" not in s and s]
        if "yValues" in entry:
            entry["yValues"] = [Near(y) for y in entry["yValues"]]
        return entry

    def same_parts(self, one, many):
        """Durations are by the clock of the path's server, and so are words about them."""
        said = [{tuple(str(p.get(k)) for k in ("host", "comm", "state", "detail", "TID")): [Near(p[x][0]) for x in "ab"]
                 for p in (e["metadata"] for e in entries)} for entries in (one, many)]
        self.assertEqual(said[0], said[1])

    def test_clocks_differ(self):
        """Clocks differ; else the other tests would check nothing."""
        moved = [h for h in HOSTS if self.shop.servers[h].first()["start"] != self.trace(h)["start"]]
        self.assertEqual(moved, ["client", "db"])
        self.assertTrue(any(len({p["drift"] for p in h["pieces"]}) > 1 for h in self.said["hosts"]))

    def trace(self, host):
        return next(t for t in self.whole["traces"] if t["name"] == host)

    def test_traces_have_their_times(self):
        by = {t["name"]: t for t in self.many.get(f"/experiments/{self.uuid}").json["traces"]}
        for h in HOSTS:
            self.assertEqual([by[h][k] for k in ("start", "end")], [self.trace(h)[k] for k in ("start", "end")])

    def test_any_range(self):
        """Samples of any range are at the requested times, to the last ns, and equal one server's."""
        dice, begin, end = new_dice(3), self.whole["start"], self.whole["end"]
        for _ in range(12):
            a, b = sorted(dice.randrange(begin, end) for _ in range(2))
            times = {"start": a, "end": b, "nbTimes": dice.choice([2, 3, 50, 777])}
            for kind, output in (("timeGraph", THREAD_STATUS), ("XY", test_coordinate.CPU)):
                one, many = (
                    test_coordinate.named(m)
                    for m in self.both(f"{kind}/{output}/tree", {"requested_timerange": {"start": a, "end": b}})
                )
                self.assertEqual(set(one), set(many))
                self.check_rows(kind, output, one, many, times)

    def test_times_are_found_in_tables(self):
        line = self.lines(self.one, requested_table_index=40000, requested_table_count=1)["lines"][0]
        columns = self.both(f"table/{EVENTS}/columns", {})[1]
        for name in ("Timestamp", "Timestamp ns"):
            column = next(c["id"] for c in columns if c["name"] == name)
            cell = line["cells"][next(i for i, c in enumerate(columns) if c["name"] == name)]["content"]
            for how in (
                {"table_filter_expressions": {str(column): cell}},
                {"table_search_expressions": {str(column): cell}, "table_search_direction": "NEXT"},
            ):
                model = self.same_lines(requested_table_index=0, requested_table_count=1, **how)
                self.assertEqual(
                    [c["content"] for c in model["lines"][0]["cells"]], [c["content"] for c in line["cells"]]
                )

    def test_path_within_a_range(self):
        """Begin and end are by everybody's clock."""
        begin = self.trace("db")["start"] + 500_000_000
        at = f"/experiments/{self.uuid}/outputs/{PATH}"
        body = {
            "name": "path",
            "sourceTypeId": "weft.critical-path",
            "parameters": {"thread": "db:tier", "begin": begin, "end": begin + 700_000_000},
        }
        made = self.many.ask("POST", at, body)
        self.assertEqual(made.status, 200, made)
        entries = self.many.model(f"/experiments/{self.uuid}/outputs/timeGraph/{made.json['id']}/tree")["entries"]
        for n in (15000, 60000):  # numbers above the limit of a query
            rows = self.many.model(
                f"/experiments/{self.uuid}/outputs/timeGraph/{made.json['id']}/states",
                {
                    "requested_timerange": {"start": self.whole["start"], "end": self.whole["end"], "nbTimes": n},
                    "requested_items": [e["id"] for e in entries],
                },
            )["rows"]
            spans = [(s["start"], s["end"]) for r in rows for s in r["states"] if s.get("style")]
            self.assertTrue(spans)
            self.assertEqual((min(s for s, _ in spans), max(e for _, e in spans)), (begin, begin + 700_000_000))
        self.assertEqual(self.many.delete(f"{at}/{made.json['id']}").status, 200)

    def test_a_server_of_another_name(self):
        """Clock given by `clock: HOST`, for a server of another name."""
        config = write(
            f"clocks: {self.path}\ntrace-servers:\n  - url: {self.shop.servers['db'].url}\n    name: other\n"
            "    clock: db\n"
        )
        other = Coordinator("--config", config)
        try:
            x = other.get(f"/experiments/{self.uuid}").json
            self.assertEqual((x["start"], x["end"]), tuple(self.trace("db")[k] for k in ("start", "end")))
        finally:
            other.stop()


class Stated(Case):
    """A server of another make whose clock is fast by a tenth and far off."""

    DRIFT, OFFSET = Fraction("0.9"), Fraction("5000000000.25")
    UUID = "9af5f5ea-1c2b-3d4e-8f00-000000000001"

    def setUp(self):
        self.asked = {}
        self.server = StandIn(self.answer)
        config = write(
            f"trace-servers:\n  - url: {self.server.url}\n    name: a\n"
            f'    clock: {{drift: "{float(self.DRIFT)}", offset-ns: "{float(self.OFFSET)}"}}\n'
        )
        self.many = Coordinator("--config", config)

    def tearDown(self):
        self.assertEqual(self.many.stop(), 0)
        self.server.stop()

    def shown(self, t):
        return self.DRIFT * t + self.OFFSET

    def answer(self, path, parameters):
        what = path.rsplit("/", 1)[-1]
        self.asked[what] = parameters
        t, done = 1_795_225_075_376_113_629, {"status": "COMPLETED"}
        x = {
            "name": "x",
            "UUID": self.UUID,
            "nbEvents": 3,
            "start": t,
            "end": t + 1000,
            "traces": [],
            "indexingStatus": "COMPLETED",
        }
        models = {
            "tree": {
                "headers": [{"name": "Name"}, {"name": "At", "dataType": "TIME_RANGE"}],
                "entries": [{"id": 1, "parentId": -1, "labels": ["n", f"[{t},{t + 7}]"], "start": t, "end": t + 9}],
            },
            "states": {"rows": [{"entryId": 1, "states": [{"start": t, "end": t + 100, "tags": 1}]}]},
            "arrows": [{"start": t, "end": t + 10, "sourceId": 1, "targetId": 1}],
            "xy": {
                "series": [{"seriesId": 1, "xValues": (parameters or {}).get("requested_times", []), "yValues": []}]
            },
            "annotations": {"annotations": {"c": [{"time": t, "duration": 50, "entryId": 1, "type": "CHART"}]}},
            "tooltip": {"Start": "2026-11-21 01:37:55.376 113 629", "Count": "1795225075376113629"},
            "columns": [
                {"id": 3, "name": "Timestamp", "type": "STRING"},
                {"id": 4, "name": "Timestamp ns", "type": "TIMESTAMP"},
            ],
            "lines": {
                "lowIndex": 0,
                "size": 1,
                "columnIds": [3, 4],
                "lines": [{"index": 0, "cells": [{"content": "03:37:55.376 113 629"}, {"content": str(t)}]}],
            },
        }
        if path == "/experiments":
            return [x]
        if path == f"/experiments/{self.UUID}":
            return x
        return {"model": models[what], **done} if what in models else None

    def near(self, shown, own):
        self.assertLessEqual(abs(shown - self.shown(own)), 1, (shown, own))

    def test_all_times(self):
        t, at = 1_795_225_075_376_113_629, f"/experiments/{self.UUID}"
        x = self.many.get(at).json
        self.near(x["start"], t)
        self.near(x["end"], t + 1000)
        tree = self.many.model(f"{at}/outputs/timeGraph/v/tree", {})["entries"][0]
        begin, end = json.loads(tree["labels"][1])
        for shown, own in zip([tree["start"], tree["end"], begin], [t, t + 9, t]):
            self.near(shown, own)
        self.assertEqual(end - begin, 7)
        items = {"requested_items": [tree["id"]]}
        state = self.many.model(f"{at}/outputs/timeGraph/v/states", items)["rows"][0]["states"][0]
        self.near(state["start"], t)
        self.near(state["end"], t + 100)
        self.assertEqual(state["tags"], 1)
        arrow = self.many.model(f"{at}/outputs/timeGraph/v/arrows", {})[0]
        self.near(arrow["start"], t)
        self.near(arrow["end"], t + 10)
        mark = self.many.model(f"{at}/outputs/v/annotations", {})["annotations"]["c"][0]
        self.near(mark["time"], t)
        self.near(mark["time"] + mark["duration"], t + 50)
        tip = self.many.model(
            f"{at}/outputs/timeGraph/v/tooltip",
            {
                **items,
                "requested_times": [x["start"]],
                "requested_element": {"elementType": "state", "time": x["start"], "duration": 90},
            },
        )
        self.assertLessEqual(abs(self.asked["tooltip"]["requested_times"][0] - t), 2)
        element = self.asked["tooltip"]["requested_element"]
        self.assertLessEqual(abs(element["time"] - t), 2)
        self.assertLessEqual(abs(element["duration"] - 90 / self.DRIFT), 2)
        self.assertEqual(tip["Count"], str(t))
        seconds, ns = tip["Start"].split(".")
        # 2026-11-21 01:37:55 is 1795225075
        day = 1_795_225_075 - (1 * 3600 + 37 * 60 + 55)
        moved = math.floor(self.shown(t))
        self.assertLessEqual(abs(int(ns.replace(" ", "")) - moved % 10**9), 1)
        self.assertNotEqual(seconds.split(" ")[0], "2026-11-21")
        line = self.many.model(
            f"{at}/outputs/table/{EVENTS}/lines", {"requested_times": [x["start"]], "requested_table_count": 1}
        )["lines"][0]
        self.near(int(line["cells"][1]["content"]), t)
        hours = int(line["cells"][0]["content"].split(":")[0])
        self.assertEqual(hours, ((moved // 10**9 - day) // 3600 + 2) % 24)  # local time, unchanged

    def test_all_questions(self):
        at = f"/experiments/{self.UUID}"
        tree = self.many.model(
            f"{at}/outputs/timeGraph/v/tree", {"requested_timerange": {"start": 9**19, "end": 9**19 + 9}}
        )
        items = {"requested_items": [tree["entries"][0]["id"]]}
        dice = new_dice(5)
        for _ in range(20):
            a = dice.randrange(10**18, 2 * 10**18)
            b, n = a + dice.randrange(10**6, 10**10), dice.randrange(3, 200)
            times = {"start": a, "end": b, "nbTimes": n}
            series = self.many.model(f"{at}/outputs/XY/v/xy", {"requested_timerange": times, **items})["series"][0]
            step = (b - a) // (n - 1)
            wanted = [a + i * step for i in range((b - a + step - 1) // step)] + [b]
            self.assertEqual(series["xValues"], wanted)
            for own, t in zip(self.asked["xy"]["requested_times"], wanted):
                # the last one of its times that is not after t
                self.assertLessEqual(self.shown(own), t + 1)
                self.assertGreater(self.shown(own + 2), t - 1)
            self.many.model(f"{at}/outputs/table/v/lines", {"requested_times": [a], "requested_table_count": 1})
            self.many.model(f"{at}/outputs/timeGraph/v/arrows", {"requested_timerange": {"start": a, "end": b}})
            for own, t in zip(self.asked["arrows"]["requested_timerange"].values(), (a, b)):
                self.assertLessEqual(abs(self.shown(own) - t), 3)


class Slow(Stated):
    """Slow clock: not every time of the common clock is one of its own."""

    DRIFT, OFFSET = Fraction("1.75"), Fraction("-900000000.5")


class Wrong(Case):
    def test_what_is_wrong_is_said_with_its_place(self):
        hosts = lambda *pieces: write(json.dumps({"hosts": [{"host": "a", "pieces": pieces}]}), "clocks.json")
        piece = {"begin": 0, "end": 9, "drift": "1", "offset_ns": "0"}
        server = "trace-servers:\n  - host: h\n    name: a\n"
        for text, where in (
            (server + "    clock: {drift: fast}\n", 'line 4, column 20: drift "fast": a decimal'),
            (server + "    clock: {drift: 9}\n", "line 4, column 20: drift"),
            (server + "    clock: {drift: 0.2}\n", "line 4, column 20: drift"),
            (server + "    clock: {offset-ns: 1e9}\n", "line 4, column 24: offset"),
            (server + "    clock: {offset: 1}\n", "line 4, column 13: 'offset' is no key of a clock"),
            (server + "    clock: a\n", "line 4, column 12: clock names a host of a file of clocks: say which"),
            (server + f"    clock: b\nclocks: {hosts(piece)}\n", "line 4, column 12: no host b is in"),
            (server + "clocks: /nothing/here\n", "/nothing/here"),
            (server + f"clocks: {hosts()}\n", "host a: nothing relates its clock"),
            (server + f"clocks: {hosts(piece, piece)}\n", "not in order of time"),
            (server + f"clocks: {hosts(piece, {**piece, 'begin': 9, 'offset_ns': '-50'})}\n", "do not meet"),
            (server + f"clocks: {hosts({**piece, 'through': [7, 7000]})}\n", "does not go through"),
            (server + f"clocks: {write('[', 'clocks.json')}\n", "this is no JSON"),
            (server + f"clocks: {write('{}', 'clocks.json')}\n", "this has no hosts"),
        ):
            with self.subTest(text):
                run = weft("coordinate", "--check", "--config", write(text))
                self.assertIn(run.code, (1, 2), run)
                self.assertIn(where, run.message)

    def test_a_host_that_is_not_in_the_file_is_a_note(self):
        path = write(json.dumps({"hosts": [{"host": "b", "pieces": []}]}), "clocks.json")
        run = weft("coordinate", "--check", "--server", "a=http://h:1", "--clocks", path)
        self.assertEqual(run.code, 0, run)
        self.assertIn("no host a is in it", run.message)


if __name__ == "__main__":
    main()
