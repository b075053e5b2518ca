#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weft coordinate over a weft server and two that behave as the Java trace server (java_server.py). Together they
answer as one weft server with all traces, except for data that the Java server does not have."""
import itertools
import time

from coordinated import BY_SERVER, HOSTS, KINDS, Coordinator, Shop, named, plain
from java_server import METADATA, PATH, JavaServer, has, unstated
from test_coordinate import STATISTICS
from tsp_server import EVENTS, THREAD_STATUS
from weft_e2e import SLOWDOWN, Case, main, new_dice, scratch

DISKS = "org.eclipse.tracecompass.analysis.os.linux.core.inputoutput.DisksIODataProvider"
SYSCALLS = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider:" \
    "org.eclipse.tracecompass.analysis.os.linux.latency.syscall"
RESOURCES = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ResourcesStatusDataProvider"
JAVA = ("web", "db")


def told(entry, output):
    """Returns the parts of an entry that the Java server has."""
    its = unstated(plain(entry))
    of = its.pop("metadata", {})
    if output == THREAD_STATUS:
        its["metadata"] = {METADATA.get(k, k): v for k, v in of.items() if k in METADATA or k in METADATA.values()}
    return its


class Mixed(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shop = Shop()
        cls.one, cls.uuid = cls.shop.all, cls.shop.uuid
        cls.java = {h: JavaServer(cls.shop.servers[h]) for h in JAVA}
        cls.many = cls.coordinator()
        cls.at = f"/experiments/{cls.uuid}/outputs"
        cls.whole = cls.one.get(f"/experiments/{cls.uuid}").json
        cls.range = {"start": cls.whole["start"], "end": cls.whole["end"], "nbTimes": 120}
        cls.many.opened(cls.uuid)

    @classmethod
    def tearDownClass(cls):
        for s in [cls.many, *cls.java.values(), cls.shop]:
            s.stop()

    @classmethod
    def coordinator(cls, *options):
        urls = {h: cls.java[h].url if h in cls.java else cls.shop.servers[h].url for h in HOSTS}
        return Coordinator(*[f"--server={h}={url}" for h, url in urls.items()], *options)

    def both(self, path, parameters=None):
        return [s.model(f"{self.at}/{path}", parameters) for s in (self.one, self.many)]

    # ---- contents

    def test_experiments_and_traces(self):
        x = self.many.get(f"/experiments/{self.uuid}").json
        for key in ("name", "UUID", "nbEvents", "start", "end", "indexingStatus"):
            self.assertEqual(x[key], self.whole[key], key)
        self.assertEqual([t["properties"]["server"] for t in x["traces"]], list(HOSTS))
        self.assertIn("version", x)
        traces = self.many.get("/traces").json
        self.assertEqual([t["properties"] for t in traces], [{"server": h} for h in HOSTS])
        for t in traces:
            self.assertEqual(self.many.get(f"/traces/{t['UUID']}").json, t)

    def test_outputs(self):
        listed = {o["id"] for o in self.many.get(self.at).json}
        self.assertEqual(listed, {o["id"] for o in self.shop.servers["client"].get(self.at).json})
        self.assertEqual(self.many.get(f"{self.at}/{THREAD_STATUS}").json["type"], "TIME_GRAPH")
        self.assertEqual(self.many.get(f"{self.at}/none").status, 404)
        self.assertEqual(self.many.post(f"{self.at}/timeGraph/none/tree").json,
                         {"title": "Analysis cannot run", "code": "NOT_OFFERED"})
        self.assertEqual(self.many.post(f"{self.at}/timeGraph/none/tree").status, 405)
        types = self.many.get(f"{self.at}/{PATH}/configTypes").json
        self.assertEqual([t["id"] for t in types], ["weft.critical-path"])

    def test_views_that_the_java_server_lacks(self):
        answer = self.many.post(f"{self.at}/XY/weft.network.io/tree").json
        self.assertNotIn("hosts", answer)
        of_client = self.shop.servers["client"].model(f"{self.at}/XY/weft.network.io/tree")
        self.assertEqual({p: plain(e) for p, e in named(answer["model"]).items()},
                         {p: plain(e) for p, e in named(of_client).items()})

    # ---- views

    def test_trees_states_arrows_series(self):
        compared, rows = 0, 0
        for o in self.one.get(self.at).json:
            if o["type"] not in KINDS or not has(o["id"]) or any(part in o["id"] for part in BY_SERVER):
                continue
            kind = KINDS[o["type"]]
            with self.subTest(o["id"]):
                if kind == "data":
                    continue  # row below
                one, many = self.both(f"{kind}/{o['id']}/tree")
                a, b = named(one), named(many)
                self.assertEqual(one["headers"], many["headers"])
                self.assertEqual(set(a), set(b))
                for path in a:
                    x, y = told(a[path], o["id"]), told(b[path], o["id"])
                    for key in ("start", "end"):  # row that lasts as long as its server's traces
                        if y.get(key) in {t[key] for t in self.whole["traces"]}:
                            x.pop(key), y.pop(key)
                    self.assertEqual(x, y)
                ids = [e["id"] for e in many["entries"]]
                self.assertTrue(all(0 < i < 1 << 52 for i in ids))
                self.assertEqual(len(ids), len(set(ids)))
                compared += len(ids)
                rows += self.check_rows(kind, o["id"], a, b)
        self.assertGreater(compared, 300)
        self.assertGreater(rows, 300)

    def check_rows(self, kind, output, a, b):
        what, rows, key = ("states", "rows", "entryId") if kind == "timeGraph" else ("xy", "series", "seriesId")
        said = []
        for server, entries in ((self.one, a), (self.many, b)):
            of = {e["id"]: path for path, e in entries.items()}
            at = f"{self.at}/{kind}/{output}"
            model = server.model(f"{at}/{what}", {"requested_timerange": self.range, "requested_items": list(of)})
            found = {of[r[key]]: unstated({k: v for k, v in r.items() if k != key}) for r in model[rows]}
            arrows = kind == "timeGraph" and server.model(f"{at}/arrows", {"requested_timerange": self.range})
            said.append((found, sorted((of[x["sourceId"]], of[x["targetId"]], x["start"], x["end"])
                                       for x in arrows or [])))
        self.assertEqual(*said)
        return len(said[0][0])

    def test_densities(self):
        """The total is of all, also of those that number their entries as they come up."""
        asked, said = {"start": self.whole["start"], "end": self.whole["end"], "nbSamples": 12}, []
        for server in self.one, self.many:
            ids = [e["id"] for e in server.model(f"{self.at}/genericXY/{SYSCALLS}/tree")["entries"]]
            (series,) = server.model(f"{self.at}/genericXY/{SYSCALLS}/xy",
                                     {"requested_timerange": asked, "requested_items": ids})["series"]
            said.append((series["seriesName"], series["xRanges"], series["yValues"]))
        self.assertEqual(*said)
        self.assertGreater(sum(said[0][2]), 1000)

    def test_statistics_without_numbers_are_each_servers(self):
        """Statistics without numbers, of each server: their texts cannot be summed, so that no row claims to be the sum
        of all."""
        output = f"data/{STATISTICS}:lttng.analysis.irq/tree"
        many = self.many.model(f"{self.at}/{output}")
        got = {tuple(e["labels"]) for e in many["entries"]}
        expected = set()
        for h in HOSTS:
            for e in self.shop.servers[h].model(f"{self.at}/{output}")["entries"]:
                name = f"{h}/{e['labels'][0]}" if e["parentId"] == -1 else e["labels"][0]
                expected.add((name, *e["labels"][1:]))
        self.assertEqual(got, expected)
        self.assertEqual(sum(e["parentId"] == -1 for e in many["entries"]), 3)

    def test_tooltips_are_the_owners(self):
        one, many = self.both(f"timeGraph/{THREAD_STATUS}/tree")
        a, b, seen = named(one), named(many), 0
        when = (self.whole["start"] + self.whole["end"]) // 2
        for path in [p for p in a if a[p]["hasData"]][::7]:
            tips = [
                s.model(f"{self.at}/timeGraph/{THREAD_STATUS}/tooltip",
                        {"requested_times": [when], "requested_items": [e[path]["id"]], "requested_element":
                         {"elementType": "state", "time": when, "duration": 0, "entryId": e[path]["id"]}})
                for s, e in ((self.one, a), (self.many, b))
            ]
            self.assertEqual(tips[0] or None, tips[1] or None)  # empty tooltip: {}, or null
            seen += bool(tips[0])
        self.assertGreater(seen, 3)

    def test_styles_annotations_markers(self):
        for path in (f"{THREAD_STATUS}/style", f"{THREAD_STATUS}/annotations"):
            parameters = {"requested_timerange": self.range} if "annotations" in path else {}
            self.assertEqual(*self.both(path, parameters))
        for path in (f"{THREAD_STATUS}/annotations", "markerSets"):
            one, many = (s.get(f"{self.at}/{path}").json for s in (self.one, self.many))
            self.assertEqual(one["model"], many["model"])

    # ---- tables

    def test_lines_by_number_time_and_text(self):
        """Table in order of time, though columns have other numbers on each server, which change."""
        columns = [{c["name"]: c["id"] for c in s.model(f"{self.at}/table/{EVENTS}/columns")}
                   for s in (self.one, self.many)]
        self.assertEqual(list(columns[0]), list(columns[1]))
        n, dice = self.whole["nbEvents"], new_dice(0)
        asks = [{"requested_table_index": i} for i in [0, n - 3, *(dice.randrange(n) for _ in range(6))]]
        asks += [{"requested_times": [dice.randrange(self.whole["start"], self.whole["end"])]} for _ in range(3)]
        asks += [{"requested_table_index": dice.randrange(n), "table_search_direction": way, "find": what}
                 for way in ("NEXT", "PREVIOUS")
                 for what in ({"Event type": "net_dev"}, {"Trace": "^db$", "Event type": "sched_switch"},
                              {"Event type": "no such event"})]
        for ask in asks:
            said = []
            for server, column in zip((self.one, self.many), columns):
                p = {k: v for k, v in ask.items() if k != "find"}
                if "find" in ask:
                    p["table_search_expressions"] = {str(column[k]): v for k, v in ask["find"].items()}
                m = server.model(f"{self.at}/table/{EVENTS}/lines", {**p, "requested_table_count": 7})
                place = {i: k for k, i in column.items()}
                said.append((m["size"], [(li["index"], li.get("tags", 0), {place[c]: cell["content"] for c, cell in
                                          zip(m["columnIds"], li["cells"])}) for li in m["lines"]]))
            self.assertEqual(*said, ask)

    def test_filters_that_are_not_of_the_protocol(self):
        answer = self.many.post(f"{self.at}/table/{EVENTS}/lines", {
            "requested_table_index": 0, "requested_table_count": 1,
            "table_filter_expressions": {"4": "sched_switch"}}).json
        self.assertEqual([(x["host"], x["status"]) for x in answer["hosts"]["lacking"]],
                         [(h, "PARTIAL") for h in JAVA])

    # ---- derived outputs

    def test_opening_and_experiments(self):
        traces = {t["properties"]["server"]: t for t in self.many.get("/traces").json}
        opened = self.many.post("/traces", {"uri": f"db:{traces['db']['path']}", "name": "db"})
        self.assertEqual((opened.status, opened.json["UUID"]), (200, traces["db"]["UUID"]))
        self.assertEqual(self.many.post("/traces", {"uri": "db:/nothing/here"}).status, 404)
        made = self.many.post("/experiments", {"name": "two", "traces": [traces[h]["UUID"] for h in ("client", "db")]})
        self.assertEqual(made.status, 200, made)
        x = self.many.opened(made.json["UUID"])
        self.assertEqual([t["properties"]["server"] for t in x["traces"]], ["client", "db"])
        self.assertEqual(x["nbEvents"], sum(t["nbEvents"] for t in self.whole["traces"] if t["name"] != "web"))
        at = f"/experiments/{x['UUID']}/bookmarks"
        mark = self.many.post(at, {"name": "here", "start": 1, "end": 2}).json
        self.assertEqual(self.many.get(at).json, [mark])
        self.assertEqual(self.many.delete(f"/experiments/{x['UUID']}").status, 200)
        self.assertEqual(self.many.get(f"/experiments/{x['UUID']}").status, 404)

    def test_configuration_opens_and_makes(self):
        config = f"{scratch()}/c.yml"
        path = self.shop.servers["web"].get("/traces").json[0]["path"]
        with open(config, "w", encoding="utf-8") as f:
            f.write(f'trace-servers:\n  - {{name: web, url: "{self.java["web"].url}", traces-path: ["{path}"]}}\n'
                    f"experiments:\n  - {{name: configured, traces-path: [three-tier]}}\n")
        other = Coordinator("--config", config)
        try:
            until = time.monotonic() + 30 * SLOWDOWN
            while "configured" not in (names := [x["name"] for x in other.get("/experiments").json]):
                self.assertLess(time.monotonic(), until, names)
                time.sleep(0.05)
            made = next(x for x in other.get("/experiments").json if x["name"] == "configured")
            self.assertEqual(other.opened(made["UUID"])["nbEvents"],
                             next(t["nbEvents"] for t in self.whole["traces"] if t["name"] == "web"))
            self.assertEqual(other.delete(f"/experiments/{made['UUID']}").status, 200)
        finally:
            other.stop()

    def test_critical_paths(self):
        """A path derived by weft is its own; one chosen beside the Java server is shown, and marked."""
        base = next(o for o in self.many.get(self.at).json if o["id"] == PATH)
        self.assertIn("web, db", base["description"])
        self.assertIn("alone", base["description"])
        answer = self.many.post(f"{self.at}/timeGraph/{PATH}/tree").json
        self.assertEqual((answer["model"]["entries"], answer["status"]), ([], "COMPLETED"))
        threads = self.shop.servers["web"].model(f"{self.at}/timeGraph/{THREAD_STATUS}/tree")["entries"]
        tid = next(e["labels"][1] for e in threads if e["labels"][0] == "tier")
        self.java["web"].choose(self.uuid, f"web:{tid}")
        try:
            path = self.java["web"].chosen
            own = self.shop.servers["web"].model(f"{self.at}/timeGraph/{path}/tree")["entries"]
            tree = self.many.model(f"{self.at}/timeGraph/{PATH}/tree")
            self.assertEqual([(e["labels"][0], e["start"], e["end"]) for e in tree["entries"]],
                             [(e["labels"][0], e["start"], e["end"]) for e in own])
            ids = [e["id"] for e in tree["entries"]]
            asked = {"requested_timerange": self.range}
            states = self.many.model(f"{self.at}/timeGraph/{PATH}/states", {**asked, "requested_items": ids})["rows"]
            its = self.shop.servers["web"].model(f"{self.at}/timeGraph/{path}/states", {
                **asked, "requested_items": [e["id"] for e in own]})["rows"]
            self.assertEqual([r["states"] for r in states], [r["states"] for r in its])
            self.assertTrue(states)
            self.assertIn("NETWORK", self.many.model(f"{self.at}/{PATH}/style")["styles"])
        finally:
            self.java["web"].chosen = None

    def test_a_path_is_made_where_it_can_be(self):
        threads = self.many.model(f"{self.at}/timeGraph/{THREAD_STATUS}/tree")["entries"]
        body = lambda e: {"name": "p", "sourceTypeId": "weft.critical-path",
                          "parameters": {"thread": e["labels"][1], "id": e["id"]}}
        above = {e["id"]: e for e in threads}
        top = lambda e: e["labels"][0] if e["parentId"] == -1 else top(above[e["parentId"]])
        of = lambda host: next(e for e in threads if top(e) == host and e["labels"][0] == "tier")
        made = self.many.ask("POST", f"{self.at}/{PATH}", body(of("client")))
        self.assertEqual(made.status, 200, made)
        self.assertEqual(self.many.delete(f"{self.at}/{PATH}/{made.json['id']}").status, 200)
        refused = self.many.ask("POST", f"{self.at}/{PATH}", body(of("db")))
        self.assertEqual(refused.status, 404, refused)
        self.assertIn("title", refused.json)

    # ---- failures

    def test_failed_that_later_runs(self):
        java = self.java["web"]
        java.says[DISKS] = [("FAILED", "it broke"), ("RUNNING", "Running")]
        tree = f"{self.at}/XY/{DISKS}/tree"
        answer = self.many.post(tree).json
        self.assertEqual(answer["status"], "COMPLETED")
        self.assertEqual(answer["hosts"]["lacking"], [{"host": "web", "status": "FAILED", "statusMessage": "it broke"}])
        self.assertNotIn("web", {e["labels"][0] for e in answer["model"]["entries"]})
        answer = self.many.post(tree).json
        self.assertEqual((answer["status"], "hosts" in answer), ("RUNNING", False))
        self.assertEqual({p: plain(e)["labels"] for p, e in named(self.many.model(tree)).items()},
                         {p: plain(e)["labels"] for p, e in named(self.one.model(tree)).items()})

    def test_columns_that_fail(self):
        java = JavaServer(self.shop.servers["db"])
        java.says[EVENTS] = [("FAILED", "no columns"), ("RUNNING", "Running")]
        other = Coordinator(f"--server=client={self.shop.servers['client'].url}", f"--server=db={java.url}")
        try:
            for why in ("no columns", "Running"):
                answer = other.post(f"{self.at}/table/{EVENTS}/lines",
                                    {"requested_table_index": 0, "requested_table_count": 1}).json
                self.assertEqual([(x["host"], x["statusMessage"]) for x in answer["hosts"]["lacking"]], [("db", why)])
            answer = other.post(f"{self.at}/table/{EVENTS}/lines",
                                {"requested_table_index": 0, "requested_table_count": 1}).json
            self.assertNotIn("hosts", answer)
            self.assertEqual(answer["model"]["size"],
                             sum(t["nbEvents"] for t in self.whole["traces"] if t["name"] != "web"))
        finally:
            other.stop()
            java.stop()

    def test_errors_that_are_no_json(self):
        java = self.java["db"]
        java.broken = True
        try:
            answer = self.many.post(f"{self.at}/timeGraph/{THREAD_STATUS}/tree").json
            self.assertEqual([(x["host"], x["statusMessage"]) for x in answer["hosts"]["lacking"]],
                             [("db", "status 500")])
            self.assertEqual({e["labels"][0] for e in answer["model"]["entries"] if e["parentId"] == -1},
                             {"client", "web"})
            self.assertIn("db: status 500", self.many.get(self.at).headers["Warning"])
            made = self.many.get(f"/experiments/{self.uuid}").json
            self.assertEqual([x["host"] for x in made["hosts"]["lacking"]], ["db"])
        finally:
            java.broken = False

    def test_a_restart_mixes_nothing(self):
        """Numbers from before a restart mean other entries, since the counters begin again: no client is shown
        those."""
        java = JavaServer(self.shop.servers["web"])
        other = Coordinator(f"--server=web={java.url}", f"--server=client={self.shop.servers['client'].url}")
        try:
            tree = f"{self.at}/timeGraph/{THREAD_STATUS}/tree"
            states = tree.replace("/tree", "/states")
            lines = f"{self.at}/table/{EVENTS}/lines"
            before = named(other.model(tree))
            ids = [e["id"] for p, e in before.items() if p[0].startswith("web") and e["hasData"]]
            of_client = {p: e["id"] for p, e in before.items() if p[0].startswith("client")}
            columns = {c["name"]: c["id"] for c in other.model(f"{self.at}/table/{EVENTS}/columns")}
            asked = {"requested_timerange": self.range, "requested_items": ids}
            page = {"requested_table_index": 4000, "requested_table_count": 20,
                    "requested_table_column_ids": [columns[c] for c in ("Timestamp", "Trace", "Contents")]}
            table = other.model(lines, page)
            self.assertEqual(len(other.model(states, asked)["rows"]), len(ids))
            version = other.get(f"/experiments/{self.uuid}").json["version"]
            java.stop()
            until = time.monotonic() + 10 * SLOWDOWN
            while "hosts" not in other.post(states, asked).json:
                self.assertLess(time.monotonic(), until, "nobody misses it")
            java.start()
            # Request of another view first, so that earlier numbers of threads are now its rows'.
            java.value("POST", f"{self.at}/timeGraph/{RESOURCES}/tree", {})
            java.value("POST", tree, {})
            java.column = itertools.count(7)
            while "hosts" in (answer := other.post(states, asked).json):
                self.assertLess(time.monotonic(), until + 10 * SLOWDOWN, "it does not come back")
                time.sleep(0.05)
            self.assertEqual(answer["model"]["rows"] if answer["model"] else [], [])
            after = named(other.model(tree))
            self.assertEqual(set(after), set(before))
            self.assertEqual({p: after[p]["id"] for p in of_client}, of_client)
            self.assertFalse({e["id"] for p, e in after.items() if p not in of_client} & set(ids))
            again = other.model(states, {**asked, "requested_items": [e["id"] for p, e in after.items()
                                                                      if p[0].startswith("web") and e["hasData"]]})
            self.assertEqual(len(again["rows"]), len(ids))
            self.assertEqual(other.model(lines, page), table)  # table whose columns keep their numbers
            self.assertNotEqual(other.get(f"/experiments/{self.uuid}").json["version"], version)
        finally:
            other.stop()
            java.stop()

    def restart(self, java):
        """Request of another view first, so that earlier numbers of threads are its rows'."""
        java.stop()
        java.start()
        for view in (RESOURCES, THREAD_STATUS):
            java.value("POST", f"{self.at}/timeGraph/{view}/tree", {})

    def watched(self, java):
        return Coordinator(f"--server=web={java.url}", f"--server=client={self.shop.servers['client'].url}")

    def threads(self, many):
        return {e["id"] for p, e in named(many.model(f"{self.at}/timeGraph/{THREAD_STATUS}/tree")).items()
                if p[0].startswith("web") and e["hasData"]}

    def is_nobodys(self, many, ids):
        """Checks queries by ids from before a restart, from the very moment on: missing, or empty."""
        asked = {"requested_timerange": self.range, "requested_items": list(ids)}
        until = time.monotonic() + 20 * SLOWDOWN
        while True:
            answer = many.post(f"{self.at}/timeGraph/{THREAD_STATUS}/states", asked).json
            self.assertEqual(answer["model"]["rows"] if answer["model"] else [], [])
            if "hosts" not in answer:
                break
            self.assertLess(time.monotonic(), until, "it does not come back")
            time.sleep(0.02)
        after = self.threads(many)
        self.assertEqual(len(after), len(ids))
        self.assertFalse(after & ids)
        return after

    def test_a_restart_that_no_probe_meets(self):
        java = JavaServer(self.shop.servers["web"])
        other = self.watched(java)
        try:
            other.opened(self.uuid)
            ids = self.threads(other)
            for _ in range(4):
                self.restart(java)
                ids = self.is_nobodys(other, ids)
        finally:
            other.stop()
            java.stop()

    def test_a_restart_in_the_middle_of_a_question(self):
        """Restart during a query: a repeated query is answered by the next process."""
        java = JavaServer(self.shop.servers["web"])
        other = self.watched(java)
        answer = java.answer

        def ends(method, path, body):
            if path.endswith("/states"):
                java.answer = answer
                self.restart(java)
            return answer(method, path, body)

        try:
            other.opened(self.uuid)
            ids = self.threads(other)
            for _ in range(4):
                java.answer = ends
                ids = self.is_nobodys(other, ids)
        finally:
            other.stop()
            java.stop()

    def test_connections_that_end_in_order_are_no_restart(self):
        for per_connection, idle_s in ((4, None), (None, 1.5), (1, None)):
            java = JavaServer(self.shop.servers["web"])
            java.stop()
            java.per_connection, java.idle_s = per_connection, idle_s
            java.start()
            other = self.watched(java)
            try:
                with self.subTest(per_connection=per_connection, idle_s=idle_s):
                    other.opened(self.uuid)
                    ids = self.threads(other)
                    before, seen = java.connections, java.asked.count("/health")
                    until, rounds = time.monotonic() + 30 * SLOWDOWN, 9 if per_connection != 1 else 3
                    while java.asked.count("/health") < seen + rounds:
                        self.assertLess(time.monotonic(), until, "it is not asked whether it is well")
                        time.sleep(0.05)
                    self.assertGreater(java.connections, before)
                    self.assertEqual(self.threads(other), ids)
                    if per_connection != 1:  # held requests are impossible there
                        self.restart(java)
                        self.is_nobodys(other, ids)
            finally:
                other.stop()
                java.stop()


if __name__ == "__main__":
    main()
