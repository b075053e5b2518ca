#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weft coordinate: many servers answer as one that holds all their traces. Compared by labels; values of single servers
(ids, uuids) and documented differences (docs/coordinator.md) are left out."""
import json
import os
import signal
import time

from coordinated import COMPARISON, HOSTS, KINDS, PATH, Compared, Coordinator, Shop, StandIn, named, plain
from tsp_server import EVENTS, HISTOGRAM, THREAD_STATUS, Server
from weft_e2e import SLOWDOWN, Case, main, new_dice, scenario, scratch

CPU = "org.eclipse.tracecompass.analysis.os.linux.core.cpuusage.CpuUsageDataProvider"
IRQ_TABLE = (
    "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreTableDataProvider:lttng.analysis.irq"
)
STATISTICS = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreStatisticsDataProvider"


class Answers(Compared, Case):
    @staticmethod
    def make_shop():
        return Shop()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shop = cls.make_shop()
        cls.one, cls.many, cls.uuid = cls.shop.all, cls.shop.many, cls.shop.uuid
        cls.whole = cls.one.get(f"/experiments/{cls.uuid}").json
        cls.many.first()
        alone = cls.whole["traces"]
        cls.begins, cls.ends = {x["start"] for x in alone}, {x["end"] for x in alone}

    @classmethod
    def tearDownClass(cls):
        cls.shop.stop()

    def test_experiment(self):
        x = self.many.get(f"/experiments/{self.uuid}").json
        for key in ("name", "UUID", "nbEvents", "start", "end", "indexingStatus"):
            self.assertEqual(x[key], self.whole[key], key)
        self.assertEqual([t["properties"]["server"] for t in x["traces"]], list(HOSTS))
        self.assertEqual(self.many.get("/experiments").json, [x])
        self.assertNotIn("hosts", x)

    def test_traces(self):
        listed = self.many.get("/traces").json
        self.assertEqual(sorted(t["name"] for t in listed), sorted(HOSTS))
        for t in listed:
            self.assertEqual(self.many.get(f"/traces/{t['UUID']}").json, t)
        self.assertEqual(self.many.get(f"/traces/{self.uuid}").status, 404)

    def test_outputs(self):
        one, many = (s.get(f"/experiments/{self.uuid}/outputs").json for s in (self.one, self.many))
        key = lambda o: (o["id"], o["type"])
        one = [o for o in one if o["id"] not in self.by_server or o in many]
        self.assertEqual(sorted(one, key=key), sorted(many, key=key))
        self.assertEqual(self.many.get(f"/experiments/{self.uuid}/outputs/{CPU}").json["name"], "CPU Usage")
        self.assertEqual(self.many.get(f"/experiments/{self.uuid}/outputs/none").status, 404)

    def test_trees_states_arrows_series(self):
        self.compare_views(500)

    def test_first_entry_begins_with_the_experiment(self):
        tree = self.many.model(f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tree")
        self.assertEqual(tree["entries"][0]["start"], self.whole["start"])

    def test_statistics_are_sums_over_all_machines(self):
        """Statistics: Total and Selection, of the whole and of a range; each row below names its machine."""
        middle = {"start": self.whole["start"] + 10**9, "end": self.whole["end"] - 10**9}
        compared = 0
        for what in ("irq", "futex"):
            for range_of in ({}, {"requested_timerange": middle}, {"requested_timerange": middle, "isFiltered": True}):
                models = self.both(f"data/{STATISTICS}:lttng.analysis.{what}/tree", range_of)
                one, many = ({p: self.rounded(plain(e)) for p, e in named(m).items()} for m in models)
                self.assertEqual(one, many)
                roots = [e["labels"][0] for e in models[1]["entries"] if e["parentId"] == -1]
                self.assertEqual(len(roots), len(set(roots)))
                self.assertIn("Total", roots)
                compared += len(one)
        self.assertGreater(compared, 100)

    def test_histogram_of_the_whole_experiment(self):
        """Histogram of the whole experiment: only its line is requested, which no server has."""
        times = {"start": self.whole["start"], "end": self.whole["end"], "nbTimes": 77}
        said = []
        for server, tree in zip((self.one, self.many), self.both(f"XY/{HISTOGRAM}/tree")):
            root, total = tree["entries"][:2]
            self.assertEqual((root["labels"], total["labels"]), ([self.whole["name"]], ["Total"]))
            self.assertEqual((total["parentId"], total["isDefault"]), (root["id"], True))
            asked = {"requested_timerange": times, "requested_items": [root["id"], total["id"]]}
            model = server.model(f"/experiments/{self.uuid}/outputs/XY/{HISTOGRAM}/xy", asked)
            self.assertEqual([s.pop("seriesId") for s in model["series"]], [total["id"]])
            said.append(model)
        self.assertEqual(*said)
        self.assertEqual(sum(said[1]["series"][0]["yValues"]), self.whole["nbEvents"])

    def test_densities_are_of_all_machines(self):
        """Densities in ranges of equal width, up to the longest of all; and by ratio, which are the same on all
        servers."""
        compared, middle = 0, (self.whole["start"] + self.whole["end"]) // 2
        for o in self.one.get(f"/experiments/{self.uuid}/outputs").json:
            if "SegmentStoreDensity" not in o["id"]:
                continue
            trees = self.both(f"genericXY/{o['id']}/tree")
            self.assertEqual(*[[plain(e) for e in tree["entries"]] for tree in trees])
            for begin, scale in ((self.whole["start"], {}), (self.whole["start"], {"x_scale": "logarithmic"}),
                                 (middle, {}), (middle, {"x_scale": "logarithmic"})):
                said = []
                for server, tree in zip((self.one, self.many), trees):
                    asked = {"requested_timerange": {"start": begin, "end": self.whole["end"], "nbSamples": 5},
                             "requested_items": [tree["entries"][0]["id"]], **scale}
                    model = server.model(f"/experiments/{self.uuid}/outputs/genericXY/{o['id']}/xy", asked)
                    self.assertEqual([s.pop("seriesId") for s in model["series"]], asked["requested_items"])
                    said.append(model)
                self.assertEqual(*said, o["id"])
                compared += sum(said[0]["series"][0]["yValues"]) > 10
        self.assertGreater(compared, 8)

    def test_tooltip_is_the_owners(self):
        seen = 0
        one, many = self.both(f"timeGraph/{THREAD_STATUS}/tree")
        a, b = named(one), named(many)
        when = (self.whole["start"] + self.whole["end"]) // 2
        for path in [p for p in a if a[p]["hasData"]][::9]:
            tips = []
            for server, e in ((self.one, a[path]), (self.many, b[path])):
                tips.append(
                    server.model(
                        f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tooltip",
                        {
                            "requested_times": [when],
                            "requested_items": [e["id"]],
                            "requested_element": {
                                "elementType": "state",
                                "time": when,
                                "duration": 0,
                                "entryId": e["id"],
                            },
                        },
                    )
                )
            self.assertEqual(self.rounded(tips[0]), self.rounded(tips[1]))
            seen += bool(tips[0])
        self.assertGreater(seen, 10)

    def test_styles_and_annotations(self):
        self.assertEqual(*self.both(f"{THREAD_STATUS}/style"))
        path = f"/experiments/{self.uuid}/outputs/{THREAD_STATUS}/annotations"
        self.assertEqual(*[s.get(path).json for s in (self.one, self.many)])
        times = {"start": self.whole["start"], "end": self.whole["end"], "nbTimes": 10}
        self.assertEqual(*self.both(f"{THREAD_STATUS}/annotations", {"requested_timerange": times}))

    def test_ids_of_nobody(self):
        times = {"start": self.whole["start"], "end": self.whole["end"], "nbTimes": 10}
        for items in ([], [1, 2, 3]):
            model = self.many.model(
                f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/states",
                {"requested_timerange": times, "requested_items": items},
            )
            self.assertEqual(model["rows"], [])

    def test_what_is_wrong_with_a_question(self):
        at = f"/experiments/{self.uuid}/outputs"
        for path, parameters in (
            (f"timeGraph/{THREAD_STATUS}/states", {}),
            (f"timeGraph/{THREAD_STATUS}/states", {"requested_items": []}),
            (f"table/{EVENTS}/lines", {}),
            (f"table/{EVENTS}/lines", {"requested_table_index": 0}),
            (f"table/{EVENTS}/lines", {"requested_table_index": -1, "requested_table_count": 1}),
            ("timeGraph/nothing/tree", {}),
            (f"XY/{EVENTS}/xy", {"requested_items": []}),
        ):
            one, many = (s.post(f"{at}/{path}", parameters) for s in (self.one, self.many))
            self.assertEqual(one.status, many.status, f"{path} {one} {many}")
        self.assertEqual(self.many.ask("POST", f"{at}/timeGraph/{THREAD_STATUS}/tree", "{", raw=True).status, 400)
        self.assertEqual(self.many.get("/experiments/nothing/outputs").status, 404)
        self.assertEqual(self.many.ask("PUT", "/experiments").status, 405)
        self.assertEqual(self.many.post("/upload").status, 501)

    # ---- tables

    def test_columns(self):
        self.assertEqual(
            *[[(c["id"], c["name"], c["type"]) for c in m] for m in self.both(f"table/{EVENTS}/columns", {})]
        )

    def test_lines_by_number_and_time(self):
        n = self.same_lines(requested_table_index=0, requested_table_count=1)["size"]
        self.assertEqual(n, self.whole["nbEvents"])
        dice = new_dice(1)
        for at in [0, n - 1, n - 10, n, n + 5] + [dice.randrange(n) for _ in range(25)]:
            self.same_lines(requested_table_index=at, requested_table_count=30)
        for at in [30000 + 40 * k for k in range(10)] + [30000 - 40 * k for k in range(10)]:  # scrolling
            self.same_lines(requested_table_index=at, requested_table_count=40, requested_table_column_ids=[5, 1, 11])
        begin, end = self.whole["start"], self.whole["end"]
        for t in [begin, end, end + 1, begin - 5] + [dice.randrange(begin, end) for _ in range(15)]:
            self.same_lines(requested_times=[t], requested_table_count=5)

    def test_lines_of_equal_times(self):
        """Lines of equal times: every line has the number given by those before it in time, however it is reached."""
        model = self.lines(self.many, IRQ_TABLE, requested_table_index=0, requested_table_count=1000)
        begins = [int(line["cells"][0]["content"]) for line in model["lines"]]
        self.assertEqual(begins, sorted(begins))
        self.assertEqual(len(begins), model["size"])
        for at in (0, 7, len(begins) - 1):
            again = self.lines(self.many, IRQ_TABLE, requested_table_index=at, requested_table_count=1)
            self.assertEqual(again["lines"], model["lines"][at : at + 1])

    def test_searches(self):
        n, dice = self.whole["nbEvents"], new_dice(1)
        for at in [0, n - 1] + [dice.randrange(n) for _ in range(6)]:
            for way in ("NEXT", "PREVIOUS"):
                for what in (
                    {"4": "sched_switch"},
                    {"1": "web"},
                    {"4": "net_dev", "1": "^db$"},
                    {"4": "no such event"},
                ):
                    self.same_lines(
                        requested_table_index=at,
                        requested_table_count=3,
                        table_search_expressions=what,
                        table_search_direction=way,
                    )
            self.same_lines(
                requested_table_index=at, requested_table_count=20, table_search_expressions={"4": "sched"}
            )

    def test_filters(self):
        for what in (
            {"table_filter_expressions": {"4": "sched_switch"}},
            {"table_filter_expressions": {"1": "^(web|db)$"}},
            {"filter_query_parameters": {"filter_expressions_map": {"4": ['name == "sched_waking"']}}},
        ):
            for at in (0, 3, 150, 700):
                self.same_lines(requested_table_index=at, requested_table_count=10, **what)

    # ---- derived outputs

    def test_critical_path_is_made_where_its_thread_is(self):
        at = f"/experiments/{self.uuid}/outputs/{PATH}"
        threads = self.many.model(f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tree")["entries"]
        web, db = (
            next(
                e for e in threads if e["metadata"].get("hostId") == [h] and e["hasData"] and e["labels"][0] == "tier"
            )
            for h in ("web", "db")
        )
        body = {
            "name": "path",
            "sourceTypeId": "weft.critical-path",
            "parameters": {"thread": f"web:{web['labels'][1]}"},
        }
        made = self.many.ask("POST", at, body)
        self.assertEqual(made.status, 200, made)
        path = made.json["id"]
        listed = [o["id"] for o in self.many.get(f"/experiments/{self.uuid}/outputs").json]
        self.assertIn(path, listed)
        its = self.shop.servers["web"].ask("POST", at, body).json
        self.assertEqual(its["id"], path)
        a, b = (
            named(s.model(f"/experiments/{self.uuid}/outputs/timeGraph/{path}/tree"))
            for s in (self.shop.servers["web"], self.many)
        )
        self.assertEqual({p: plain(e)["labels"] for p, e in a.items()}, {p: plain(e)["labels"] for p, e in b.items()})
        body["parameters"] = {"thread": db["labels"][1], "host": "db", "id": db["id"]}
        other = self.many.ask("POST", at, body)
        self.assertEqual(other.status, 200, other)
        self.assertEqual(self.many.delete(f"{at}/{other.json['id']}").status, 200)
        self.assertEqual(self.many.delete(f"{at}/{path}").status, 200)
        self.assertEqual(self.many.delete(f"{at}/{path}").status, 404)
        self.assertEqual(self.many.ask("POST", at, {**body, "parameters": {"thread": "nowhere:1"}}).status, 400)

    # ---- two paths beside each other

    def compared(self, server, a, b):
        answer = server.post(f"/experiments/{self.uuid}/outputs/data/{COMPARISON}/tree", {"a": a, "b": b})
        while answer.json["status"] == "RUNNING":
            answer = server.post(f"/experiments/{self.uuid}/outputs/data/{COMPARISON}/tree", {"a": a, "b": b})
        return answer.json

    @staticmethod
    def parts(entries):
        return [(e["labels"], {k: v for k, v in e["metadata"].items() if k != "key"}) for e in entries]

    def same_parts(self, one, many):
        self.assertEqual(self.parts(one), self.parts(many))

    def stays_at_home(self, host):
        """A thread of the machine whose path in the middle of all does not leave it, and consists of many parts."""
        quarter = (self.whole["end"] - self.whole["start"]) // 4
        when = {"begin": self.whole["start"] + quarter, "end": self.whole["end"] - quarter}
        best = ()
        tree = self.one.model(f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tree")["entries"]
        for e in [e for e in tree if e["metadata"].get("hostId") == [host] and e["metadata"].get("TID", [-1])[0] > 0]:
            asked = {"thread": e["metadata"]["TID"][0], "host": host, **when}
            answer = self.compared(self.one, asked, asked)
            if answer["status"] == "COMPLETED":
                of = [e["metadata"] for e in answer["model"]["entries"]]
                if all(p["host"] == [host] and "from" not in p and "reason" not in p for p in of):
                    best = max(best, (len(of), asked["thread"]))
        self.assertGreater(best[0], 3)
        return {"thread": best[1], "host": host, **when}

    def test_paths_of_two_servers_are_compared(self):
        web, db = (self.stays_at_home(h) for h in ("web", "db"))
        for a, b in ((web, db), (db, web), (db, db)):
            one, many = (self.compared(s, a, b) for s in (self.one, self.many))
            self.assertEqual((many["status"], many["statusMessage"]), (
                "COMPLETED", f"a: as {a['host']} alone tells it; b: as {b['host']} alone tells it"))
            self.assertNotIn("hosts", many)
            self.assertEqual(many["model"]["headers"], one["model"]["headers"])
            self.same_parts(one["model"]["entries"], many["model"]["entries"])
        ids = [e["id"] for e in self.compared(self.many, web, db)["model"]["entries"]]
        self.assertEqual(len(set(ids)), len(ids))
        # Derived output of both: the same, with its owner.
        at = f"/experiments/{self.uuid}/outputs/{COMPARISON}"
        tree = self.many.model(f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tree")["entries"]
        for q in (web, db):
            q["id"] = next(e["id"] for e in tree if e["metadata"].get("hostId") == [q["host"]]
                           and e["metadata"].get("TID") == [q["thread"]])
        made = self.many.ask("POST", at, {"name": "two", "sourceTypeId": COMPARISON,
                                          "parameters": {"a": web, "b": db}})
        self.assertEqual(made.status, 200, made)
        self.assertTrue(made.json["description"].endswith(" alone tells it)"), made.json)
        self.assertIn("b as db", made.json["description"])
        kept = made.json["configuration"]["parameters"]["a"]
        self.assertEqual({k: kept[k] for k in ("thread", "host", "id")}, {k: web[k] for k in ("thread", "host", "id")})
        for key in ("begin", "end"):  # requested time: the last one of its own clock until then
            self.assertLessEqual(0, web[key] - kept[key])
            self.assertLessEqual(web[key] - kept[key], 1)
        path = f"/experiments/{self.uuid}/outputs/data/{made.json['id']}/tree"
        derived = self.many.model(path)["entries"]
        self.assertEqual(derived, self.compared(self.many, web, db)["model"]["entries"])
        self.assertEqual(derived, self.compared(self.many, kept, db)["model"]["entries"])
        self.assertEqual({e["id"] for e in derived}, set(ids))
        its = self.shop.servers["web"].post(path).json
        self.assertEqual(its["status"], "FAILED")
        self.assertIn("another server, db: ask the coordinator", its["statusMessage"])
        self.assertEqual(self.many.delete(f"{at}/{made.json['id']}").status, 200)
        self.assertNotEqual(self.many.post(path).status, 200)

    def test_paths_of_nobody_are_not_compared(self):
        end = {"begin": self.whole["end"] - 10**9, "end": self.whole["end"] - 10**8}
        good = self.stays_at_home("db")
        for wrong, words in (({"thread": "nowhere:1"}, "No server tells the path of {}; "),
                             ({"thread": 1, **end}, "threads of several machines are meant"),
                             ({}, "Missing query parameters: thread (of {})")):
            for a, b, side in ((wrong, good, "a"), (good, wrong, "b")):
                answer = self.compared(self.many, a, b)
                self.assertEqual((answer["status"], answer["model"]), ("FAILED", None))
                self.assertIn(words.format(side), answer["statusMessage"])
                made = self.many.ask("POST", f"/experiments/{self.uuid}/outputs/{COMPARISON}", {
                    "name": "two", "sourceTypeId": COMPARISON, "parameters": {"a": a, "b": b}})
                self.assertEqual(made.status, 400, made)
        self.assertEqual([o for o in self.many.get(f"/experiments/{self.uuid}/outputs").json
                          if o.get("parentId") == COMPARISON], [])

    def test_experiments_are_made_of_traces_of_several_servers(self):
        by = {t["properties"]["server"]: t["UUID"] for t in self.many.get("/traces").json}
        made = self.many.post("/experiments", {"name": "two", "traces": [by["web"], by["db"]]})
        self.assertEqual(made.status, 200, made)
        x = self.many.opened(made.json["UUID"])
        alone = [self.shop.servers[h].opened(x["UUID"]) for h in ("web", "db")]
        self.assertEqual(x["nbEvents"], sum(a["nbEvents"] for a in alone))
        self.assertEqual([t["properties"]["server"] for t in x["traces"]], ["web", "db"])
        self.assertEqual(self.many.post("/experiments", {"name": "two", "traces": [by["web"], by["db"]]}).status, 200)
        self.assertEqual(self.many.post("/experiments", {"name": "three", "traces": [self.uuid]}).status, 404)
        clash = self.many.post("/experiments", {"name": "shop", "traces": [by["web"], by["web"]]})
        self.assertEqual((clash.status, clash.json["experiment"]["name"]), (409, "shop"))
        self.assertEqual(self.many.delete(f"/experiments/{x['UUID']}").status, 200)
        self.assertEqual(self.many.get(f"/experiments/{x['UUID']}").status, 404)
        self.assertEqual(self.shop.servers["web"].get(f"/experiments/{x['UUID']}").status, 404)

    def test_opening_names_its_server(self):
        where = self.shop.servers["web"].get("/traces").json[0]["path"]
        self.assertEqual(self.many.post("/traces", {"uri": where}).status, 400)
        opened = self.many.post("/traces", {"uri": f"web:{where}", "name": "web"})
        self.assertEqual(opened.status, 200, opened)
        self.assertEqual(opened.json["properties"]["server"], "web")
        self.assertEqual(self.many.post("/traces", {"uri": "web:/nothing/here"}).status, 404)

    def test_one_server_is_itself(self):
        alone = self.shop.coordinator(hosts=("web",))
        try:
            server = self.shop.servers["web"]
            for path, parameters in (
                (f"XY/{CPU}/tree", {}),
                (f"data/{HISTOGRAM}/tree", {}),
                (f"table/{EVENTS}/columns", {}),
            ):
                a, b = (s.post(f"/experiments/{self.uuid}/outputs/{path}", parameters) for s in (server, alone))
                self.assertEqual(a.status, b.status)
                if "tree" in path and a.status == 200:
                    self.assertEqual(
                        [plain(e) for e in a.json["model"]["entries"]], [plain(e) for e in b.json["model"]["entries"]]
                    )
                elif a.status == 200:
                    self.assertEqual(a.json, b.json)
        finally:
            alone.stop()

    def test_ids_stay(self):
        """Ids stay the same over a restart, with or without a state, with any servers in any order; also for clients
        that query by ids without a tree."""
        tree = named(self.many.model(f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tree"))
        ids = {p: e["id"] for p, e in tree.items()}
        times = {"requested_timerange": {"start": self.whole["start"], "end": self.whole["end"], "nbTimes": 30}}
        some = {p: i for p, i in ids.items() if p[0].startswith("db") and tree[p]["hasData"]}
        states = f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/states"
        rows = self.many.model(states, {**times, "requested_items": list(some.values())})["rows"]
        self.assertGreater(len(rows), 10)
        state = scratch()
        for hosts, options in (
            (HOSTS, ()),
            (("db", "client"), ()),
            (HOSTS[::-1], ("--state", state)),
            (("db",), ("--state", state)),
        ):
            other = self.shop.coordinator(*options, hosts=hosts)
            try:
                self.assertEqual(other.model(states, {**times, "requested_items": list(some.values())})["rows"], rows)
                now = named(other.model(f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tree"))
                self.assertEqual({p: e["id"] for p, e in now.items()}, {p: i for p, i in ids.items() if p in now})
            finally:
                self.assertEqual(other.stop(), 0)

    def test_bookmarks_are_kept(self):
        state = scratch()
        at = f"/experiments/{self.uuid}/bookmarks"
        one = self.shop.coordinator("--state", state)
        made = one.post(at, {"name": "here", "start": 5, "end": 9}).json
        other = one.post(at, {"name": "there", "start": 1, "end": 1}).json
        self.assertEqual(one.post(at, {"name": "wrong", "start": 9, "end": 5}).status, 400)
        self.assertEqual(
            one.ask("PUT", f"{at}/{made['uuid']}", {"parameters": {"name": "moved", "start": 6, "end": 9}}).status, 200
        )
        self.assertEqual(one.delete(f"{at}/{other['uuid']}").json, other)
        self.assertEqual(one.stop(), 0)
        one = self.shop.coordinator("--state", state)
        kept = [{"uuid": made["uuid"], "name": "moved", "start": 6, "end": 9}]
        self.assertEqual(one.get(at).json, kept)
        # Failure to store is reported.
        os.remove(os.path.join(state, "bookmarks.json"))
        os.makedirs(os.path.join(state, "bookmarks.json", "in the way"))
        for refused in (
            one.post(at, {"name": "late", "start": 1, "end": 1}),
            one.ask("PUT", f"{at}/{made['uuid']}", {"parameters": {"name": "late", "start": 1, "end": 1}}),
            one.delete(f"{at}/{made['uuid']}"),
        ):
            self.assertEqual(refused.status, 507, refused)
        self.assertEqual(one.get(at).json, kept)
        one.stop()

    def test_the_viewer_is_served(self):
        page = self.many.ask("GET", "/", base="")
        self.assertEqual((page.status, page.body), (200, self.one.ask("GET", "/", base="").body))
        self.assertEqual(self.many.get("/health").json, {"status": "UP"})
        self.assertEqual(self.many.get("/identifier").json["launcherName"], "weft coordinate")
        self.assertEqual({s["name"]: s["status"] for s in self.many.get("/servers").json}, dict.fromkeys(HOSTS, "UP"))

    def test_coordinators_stack(self):
        above = Coordinator(f"--server=below={self.many.url}", f"--server=rest={self.shop.servers['db'].url}")
        try:
            x = above.get(f"/experiments/{self.uuid}").json
            self.assertEqual(
                x["nbEvents"],
                self.whole["nbEvents"] + self.shop.servers["db"].get(f"/experiments/{self.uuid}").json["nbEvents"],
            )
        finally:
            above.stop()


def foreign(counter, label, fails=()):
    """A server as others make them: ids are small numbers, the same on each; tables have columns of their own."""
    x = {
        "name": "mixed",
        "UUID": "9af5f5ea-1c2b-3d4e-8f00-000000000001",
        "nbEvents": 3,
        "start": 100,
        "end": 200,
        "indexingStatus": "COMPLETED",
        "traces": [],
    }
    entries = [
        {"id": counter, "parentId": -1, "labels": [label], "start": 100, "end": 200, "extra": {"kept": 1.50}},
        {"id": counter + 1, "parentId": counter, "labels": ["child"], "start": 100, "end": 200},
    ]

    def answer(path, parameters):
        done = {"status": "COMPLETED", "statusMessage": "Completed"}
        what = path.rsplit("/", 1)[-1]
        if what in fails:
            return {"model": None, "status": "FAILED", "statusMessage": "it broke"}
        if path == "/experiments":
            return [x]
        if path == f"/experiments/{x['UUID']}":
            return x
        if what == "outputs":
            return [{"id": "view", "name": "View", "description": "", "type": "TIME_GRAPH"}]
        if what == "tree":
            return {
                "model": {
                    "headers": [{"name": label}, {"name": "Common"}] if label == "b" else [{"name": "Common"}],
                    "entries": entries,
                },
                **done,
            }
        if what == "states":
            return {
                "model": {
                    "rows": [
                        {
                            "entryId": i,
                            "states": [{"start": 1795225075332063164, "end": 1795225075332063165, "label": label}],
                        }
                        for i in parameters["requested_items"]
                    ]
                },
                **done,
            }
        if what == "arrows":
            return {"model": [{"start": 1, "end": 2, "sourceId": counter, "targetId": counter + 1}], **done}
        return None

    return StandIn(answer)


class Foreign(Case):
    """Servers of other makes."""

    def setUp(self):
        self.servers = [foreign(1, "a"), foreign(1, "b")]
        self.many = Coordinator(f"--server=a={self.servers[0].url}", f"--server=b={self.servers[1].url}")
        self.at = "/experiments/9af5f5ea-1c2b-3d4e-8f00-000000000001"

    def tearDown(self):
        self.assertEqual(self.many.stop(), 0)
        for s in self.servers:
            s.stop()

    def test_equal_ids_are_told_apart(self):
        x = self.many.get(self.at).json
        self.assertEqual((x["nbEvents"], x["start"], x["end"]), (6, 100, 200))
        tree = self.many.model(f"{self.at}/outputs/timeGraph/view/tree")
        self.assertEqual([h["name"] for h in tree["headers"]], ["Common", "b"])
        self.assertEqual([e["labels"] for e in tree["entries"]], [["a", ""], ["child", ""], ["", "b"], ["", "child"]])
        ids = [e["id"] for e in tree["entries"]]
        self.assertEqual(len(set(ids)), 4)
        self.assertEqual([e["parentId"] for e in tree["entries"]], [-1, ids[0], -1, ids[2]])
        self.assertEqual(tree["entries"][0]["extra"], {"kept": 1.5})
        rows = self.many.model(f"{self.at}/outputs/timeGraph/view/states", {"requested_items": [ids[3], ids[0]]})[
            "rows"
        ]
        self.assertEqual({r["entryId"]: r["states"][0]["label"] for r in rows}, {ids[0]: "a", ids[3]: "b"})
        self.assertEqual(rows[0]["states"][0]["start"], 1795225075332063164)
        arrows = self.many.model(f"{self.at}/outputs/timeGraph/view/arrows", {})
        self.assertEqual([(a["sourceId"], a["targetId"]) for a in arrows], [(ids[0], ids[1]), (ids[2], ids[3])])

    def test_a_failure_is_told(self):
        self.servers.append(foreign(5, "c", fails=("tree",)))
        other = Coordinator(*[f"--server={n}={s.url}" for n, s in zip("abc", self.servers)])
        try:
            answer = other.post(f"{self.at}/outputs/timeGraph/view/tree").json
            self.assertEqual(answer["status"], "COMPLETED")
            self.assertEqual(
                answer["hosts"],
                {"complete": 2, "lacking": [{"host": "c", "status": "FAILED", "statusMessage": "it broke"}]},
            )
            self.assertIn("without c: it broke", answer["statusMessage"])
            self.assertEqual(len(answer["model"]["entries"]), 4)
        finally:
            other.stop()


class Protocol(Case):
    """Protocol of statuses, on two servers that open traces named by clients."""

    def setUp(self):
        top = scenario("three-tier")
        self.servers = [Server("--trace-root", top, store=scratch()) for _ in range(2)]
        for s in self.servers:
            self.addCleanup(s.stop)
        self.state = scratch()
        self.start()
        self.client, self.db, self.web = (self.good(self.many.post("/traces", {"uri": f"s{i}:{top}/{host}"}))["UUID"]
                                          for i, host in ((0, "client"), (0, "db"), (1, "web")))

    def start(self):
        self.many = Coordinator("--state", self.state, *[f"--server=s{i}={s.url}" for i, s in enumerate(self.servers)])
        self.addCleanup(self.many.stop)

    def good(self, answer):
        self.assertEqual(answer.status, 200, answer)
        return answer.json

    def make(self, *traces, name="x"):
        return self.many.post("/experiments", {"name": name, "traces": list(traces)})

    def test_a_name_is_of_one_experiment(self):
        """Whatever servers the traces are on; and nothing is made where it is refused."""
        made = self.good(self.make(self.client))
        for traces in ([self.web], [self.client, self.web], [self.db], [self.client] * 2):
            clash = self.make(*traces)
            self.assertEqual(clash.status, 409, clash)
            there = clash.json["experiment"]
            self.assertEqual((there["UUID"], [t["UUID"] for t in there["traces"]]), (made["UUID"], [self.client]))
        self.assertEqual(self.servers[1].get("/experiments").json, [])
        self.assertEqual(self.good(self.make(self.client))["UUID"], made["UUID"])
        both = self.good(self.make(self.web, self.client, name="both"))
        self.assertEqual(self.good(self.make(self.client, self.web, name="both"))["UUID"], both["UUID"])
        clash = self.make(self.web, name="both")
        self.assertEqual((clash.status, {t["UUID"] for t in clash.json["experiment"]["traces"]}),
                         (409, {self.client, self.web}))

    def stop_server(self, number):
        """Stops the server; it is away until SIGCONT."""
        process = self.servers[number].process
        self.addCleanup(lambda: process.poll() is None and os.kill(process.pid, signal.SIGCONT))
        os.kill(process.pid, signal.SIGSTOP)
        return process.pid

    def wait_until(self, status, number):
        end = time.monotonic() + 60 * SLOWDOWN
        while {s["name"]: s["status"] for s in self.many.get("/servers").json}[f"s{number}"] != status:
            self.assertLess(time.monotonic(), end)
            time.sleep(0.05)

    def test_what_was_made_while_a_server_was_away_is_completed(self):
        self.assertEqual(len(self.many.get("/traces").json), 3)  # places of traces are known from now on
        pid = self.stop_server(1)
        made = self.good(self.make(self.client, self.web))
        self.assertEqual(([t["UUID"] for t in made["traces"]], [h["host"] for h in made["hosts"]["lacking"]]),
                         ([self.client], ["s1"]))
        os.kill(pid, signal.SIGCONT)
        self.wait_until("UP", 1)
        for traces in ([self.client, self.web, self.db], [self.web], [self.db, self.web]):
            self.assertEqual(self.make(*traces).status, 409)
        self.assertEqual(self.servers[1].get("/experiments").json, [])
        whole = self.good(self.make(self.web, self.client))
        self.assertEqual(whole["UUID"], made["UUID"])
        self.assertEqual({t["UUID"] for t in whole["traces"]}, {self.client, self.web})
        self.assertNotIn("hosts", whole)
        self.assertEqual(len(self.servers[1].get("/experiments").json), 1)
        self.assertEqual(self.make(self.client).status, 409)

    def test_a_restart_forgets_no_experiment(self):
        """Created again of the same traces, it is the same, also if a server was away the first time."""
        self.assertEqual(len(self.many.get("/traces").json), 3)
        both = self.good(self.make(self.client, self.db, name="both"))
        pid = self.stop_server(1)
        made = self.good(self.make(self.client, self.web))
        self.assertEqual([t["UUID"] for t in made["traces"]], [self.client])
        self.many.stop()
        os.kill(pid, signal.SIGCONT)
        self.start()
        self.wait_until("UP", 1)
        self.assertEqual(self.good(self.make(self.db, self.client, name="both"))["UUID"], both["UUID"])
        for traces in ([self.client, self.web, self.db], [self.web], [self.db, self.web]):
            self.assertEqual(self.make(*traces).status, 409)
        whole = self.good(self.make(self.web, self.client))
        self.assertEqual((whole["UUID"], {t["UUID"] for t in whole["traces"]}), (made["UUID"], {self.client, self.web}))
        self.good(self.many.delete(f"/experiments/{made['UUID']}"))
        self.many.stop()
        self.start()
        self.assertEqual(self.good(self.make(self.client))["UUID"], made["UUID"])

    def test_a_part_that_a_server_has_lost_is_made_again(self):
        made = self.good(self.make(self.client, self.web))
        self.good(self.servers[1].delete(f"/experiments/{made['UUID']}"))
        self.assertEqual(self.make(self.client, self.web, self.db).status, 409)
        whole = self.good(self.make(self.client, self.web))
        self.assertEqual({t["UUID"] for t in whole["traces"]}, {self.client, self.web})

    def test_a_trace_in_use_stays(self):
        traces = {t["UUID"]: t for t in self.many.get("/traces").json}
        made = self.good(self.make(self.client, self.web))
        for trace in (self.client, self.web):
            used = self.many.delete(f"/traces/{trace}")
            self.assertEqual((used.status, used.json["trace"]), (409, traces[trace]))
        self.good(self.many.delete(f"/traces/{self.db}"))
        self.good(self.many.delete(f"/experiments/{made['UUID']}"))
        for trace in (self.client, self.web):
            self.assertEqual(self.good(self.many.delete(f"/traces/{trace}")), traces[trace])
            self.assertEqual(self.many.delete(f"/traces/{trace}").status, 404)
        self.assertEqual(self.many.get("/traces").json, [])
        self.assertEqual([s.get("/traces").json for s in self.servers], [[], []])

    def test_configuration_types(self):
        self.assertEqual(self.many.get("/config/types").json, [])
        for method, below in (("GET", ""), ("POST", ""), ("GET", "/configs"), ("POST", "/configs"),
                              ("GET", "/configs/x"), ("PUT", "/configs/x"), ("DELETE", "/configs/x")):
            for s in (self.many, self.servers[0]):
                answer = s.ask(method, f"/config/types/none{below}", {"name": "n", "parameters": {}})
                self.assertEqual(answer.status, 404, f"{method} {below} {answer}")
        self.assertEqual(self.many.post("/config/types/weft.markers/configs").status, 501)

    def test_a_tree_that_is_there_is_a_tree(self):
        """Available trees, also of outputs that must be configured first."""
        made = self.good(self.make(self.client, self.web))
        self.many.opened(made["UUID"])
        for s in (self.many, self.servers[0]):
            asked = 0
            for o in s.get(f"/experiments/{made['UUID']}/outputs").json:
                kind = {**KINDS, "TREE_GENERIC_XY": "genericXY"}.get(o["type"])
                if not kind:
                    continue
                answer = self.good(s.post(f"/experiments/{made['UUID']}/outputs/{kind}/{o['id']}/tree"))
                if answer["status"] == "COMPLETED":
                    self.assertIsInstance(answer["model"]["headers"], list, o["id"])
                    self.assertIsInstance(answer["model"]["entries"], list, o["id"])
                    asked += o["id"] in (PATH, COMPARISON)
            self.assertEqual(asked, 2)
            compared = s.model(f"/experiments/{made['UUID']}/outputs/data/{COMPARISON}/tree")
            self.assertEqual([h["name"] for h in compared["headers"]][-3:], ["a", "b", "b − a"])
            self.assertEqual(compared["entries"], [])


if __name__ == "__main__":
    main()
