#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weft coordinate over servers one of which rewords everything (rewording.py): merging and decisions are the same."""
import os

import small_trace
import test_coordinate_faults as faults
from coordinated import BY_SERVER, COMPARISON, HOSTS, KINDS, PATH, Coordinator, StandIn, named, serve
from rewording import Older, Renaming, Rewording, Spacing
from test_coordinate import STATISTICS
from test_coordinate_config import write
from test_coordinate_groups import cut
from test_names import made, write_events
from tsp_server import EVENTS, Server
from weft_e2e import Case, main, scratch

SWITCHES = f"data/{STATISTICS}:org.eclipse.tracecompass.analysis.os.linux.core.swslatency.sws"
FLOWS = "weft.flows"
IO = "timeGraph/org.eclipse.tracecompass.incubator.kernel.core.io.access.dataprovider"
THREADS = "data/weft.selection.threads"
BARS, OTHER_BARS = "weft.requests.durations", "some.other.histogram"
DENSITY = "org.eclipse.tracecompass.internal.analysis.timing.core.segmentstore.SegmentStoreDensityDataProvider"


def made_once(path):
    """A small trace in which thread 11 lives once."""
    idle, one, two = small_trace.IDLE, ("one", 10), ("two", 11)
    return write_events(path, [
        (1000, small_trace.switch(idle, 0, one)), (2000, small_trace.waking(two)),
        (3000, small_trace.switch(one, 1, two)), (4000, small_trace.waking(one)),
        (5000, small_trace.switch(two, 1, one)), (6000, small_trace.switch(one, 1, idle))])


class Messages(Case):
    """A server with two machines, and one with the third: as they are, and the first one in other words."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.two, cls.db = serve("client", "web", store=scratch()), serve("db", store=scratch())
        cls.other = Rewording(cls.two)
        cls.uuid = cls.two.first()["UUID"]
        cls.db.opened(cls.uuid)
        cls.older = Older(cls.two)
        cls.plain, cls.words, cls.mixed = (Coordinator(f"--server=two={two.url}", f"--server=db={cls.db.url}")
                                           for two in (cls.two, cls.other, cls.older))
        cls.whole = cls.plain.opened(cls.uuid)
        cls.words.opened(cls.uuid), cls.mixed.opened(cls.uuid)

    @classmethod
    def tearDownClass(cls):
        for s in (cls.plain, cls.words, cls.mixed, cls.other, cls.older, cls.two, cls.db):
            s.stop()

    def compared(self, server, a, b):
        return server.post(f"/experiments/{self.uuid}/outputs/data/{COMPARISON}/tree", {"a": a, "b": b}).json

    def test_a_number_of_several_machines_is_refused(self):
        """Thread 1 is on every machine: the one of db must not be taken for the one that is meant."""
        when = {"begin": self.whole["end"] - 10**9, "end": self.whole["end"] - 10**8}
        codes, named, meant = [], {"thread": "db:1", **when}, {"thread": 1, **when}
        for a, b in ((meant, named), (named, meant)):
            for server in (self.plain, self.words):
                answer = self.compared(server, a, b)
                self.assertEqual((answer["status"], answer["model"]), ("FAILED", None))
                codes.append(answer.get("code"))
                made = server.ask("POST", f"/experiments/{self.uuid}/outputs/{COMPARISON}", {
                    "name": "two", "sourceTypeId": COMPARISON, "parameters": {"a": a, "b": b}})
                self.assertEqual(made.status, 400, made)
                codes.append(made.json.get("code"))
        self.assertEqual(codes, ["AMBIGUOUS_THREAD"] * 8)

    def derived(self, server, parameters, output=PATH, kind="weft.critical-path"):
        return server.ask("POST", f"/experiments/{self.uuid}/outputs/{output}", {
            "name": "made", "sourceTypeId": kind, "parameters": parameters})

    def kept(self, server):
        return [o["id"] for o in server.get(f"/experiments/{self.uuid}/outputs").json if "configuration" in o]

    def test_a_path_of_a_number_of_several_machines_is_refused(self):
        """A path of an ambiguous thread is refused, also if only one server can make one, and nothing made by it
        stays."""
        with Coordinator(f"--server=below={self.two.url}") as below:
            with Coordinator(f"--server=below={below.url}", f"--server=db={self.db.url}") as upper:
                upper.opened(self.uuid)
                for server in (self.two, below, self.plain, self.words, upper):
                    before = self.kept(server)
                    made = self.derived(server, {"thread": 1})
                    self.assertEqual((made.status, made.json.get("code")), (400, "AMBIGUOUS_THREAD"), made)
                    self.assertEqual(self.kept(server), before)
                for server, thread in ((self.plain, "db:1"), (upper, "db:1")):
                    self.assertEqual(self.derived(server, {"thread": thread}).status, 200)

    def test_a_comparison_on_one_server_says_what_is_ambiguous(self):
        both = {"a": {"thread": 1}, "b": {"thread": "client:1"}}
        for server in (self.two, self.plain):
            made = self.derived(server, both, COMPARISON, COMPARISON)
            self.assertEqual((made.status, made.json.get("code")), (400, "AMBIGUOUS_THREAD"), made)

    def test_a_number_of_several_machines_below_is_refused(self):
        """A coordinator passes on what its only server finds ambiguous, or does not know."""
        when = {"begin": self.whole["end"] - 10**9, "end": self.whole["end"] - 10**8}
        named, meant = {"thread": "db:1", **when}, {"thread": 1, **when}
        with Coordinator(f"--server=below={self.two.url}") as below:
            with Coordinator(f"--server=below={below.url}", f"--server=db={self.db.url}") as upper:
                upper.opened(self.uuid)
                for a, b in ((meant, named), (named, meant)):
                    answer = self.compared(upper, a, b)
                    self.assertEqual((answer["status"], answer["model"], answer["code"]),
                                     ("FAILED", None, "AMBIGUOUS_THREAD"))
                answer = self.compared(upper, named, named)
                self.assertEqual((answer["status"], answer["code"]), ("COMPLETED", "LOCAL_PATH"), answer)
                self.assertNotIn("hosts", answer)

    def test_an_older_version_is_not_guessed_at(self):
        """An error of an older version has no code: the thread may be ambiguous, or missing."""
        when = {"begin": self.whole["end"] - 10**9, "end": self.whole["end"] - 10**8}
        named, meant = {"thread": "db:1", **when}, {"thread": 1, **when}
        answer = self.compared(self.mixed, meant, named)
        self.assertEqual((answer["status"], answer["model"], answer["code"]), ("FAILED", None, "AMBIGUOUS_THREAD"))
        self.assertEqual(self.compared(self.mixed, named, named)["status"], "COMPLETED")

    def test_a_thread_that_one_server_does_not_know(self):
        """The server that knows the thread answers; the other one's refusal is no lack, whatever its words."""
        answers = [self.compared(s, {"thread": "db:1"}, {"thread": "db:1"}) for s in (self.plain, self.words)]
        for answer in answers:
            self.assertEqual(answer["status"], "COMPLETED", answer)
            self.assertEqual(answer["code"], "LOCAL_PATH")
            self.assertNotIn("hosts", answer)
        self.assertEqual(*answers)
        nobody = {"thread": "db:1", "host": "nowhere"}
        for server in (self.plain, self.words):
            answer = self.compared(server, nobody, {"thread": "db:1"})
            self.assertEqual((answer["status"], answer["code"]), ("FAILED", "INVALID_QUERY"), answer)

    def test_usual_words_are_no_notes(self):
        """Messages that only repeat the status are not shown as notes."""
        path = f"/experiments/{self.uuid}/outputs/table/weft.notes/columns"
        self.assertIn(self.two.post(path).status, (200, 405))
        for kind, output in (("timeGraph", "weft.summary"), ("data", "weft.selection.threads")):
            said = [s.post(f"/experiments/{self.uuid}/outputs/{kind}/{output}/tree").json
                    for s in (self.two, self.plain, self.words)]
            self.assertEqual([(a["status"], a["statusMessage"], a.get("code")) for a in said],
                             [("COMPLETED", "Completed", None)] * 3)


class Again(Case):
    """A machine that used the number of a thread twice, and one on another server that used it once."""

    def setUp(self):
        self.again, self.once = (
            Server("--no-sync", "--name", "shop", f"{host}={trace(os.path.join(scratch(), host))}", store=scratch())
            for host, trace in (("again", made), ("once", made_once)))
        self.many = Coordinator(f"--server=again={self.again.url}", f"--server=once={self.once.url}")
        for s in (self.again, self.once, self.many):
            self.addCleanup(s.stop)
        self.uuid = self.again.first()["UUID"]
        self.once.opened(self.uuid)
        self.many.opened(self.uuid)

    def test_no_life_is_guessed_at(self):
        at = f"/experiments/{self.uuid}/outputs"
        other = {"thread": "once:10"}
        for thread in (11, "again:11"):
            for sides in ({"a": {"thread": thread}, "b": other}, {"a": other, "b": {"thread": thread}}):
                answer = self.many.post(f"{at}/data/{COMPARISON}/tree", sides).json
                self.assertEqual((answer["status"], answer["code"]), ("FAILED", "AMBIGUOUS_THREAD"), answer)
            made_of = self.many.ask("POST", f"{at}/{PATH}", {
                "name": "path", "sourceTypeId": "weft.critical-path", "parameters": {"thread": thread}})
            self.assertEqual((made_of.status, made_of.json["code"]), (400, "AMBIGUOUS_THREAD"), made_of)
        self.assertIn("the number was used again", made_of.json["title"])
        self.assertIn("the number was used again", answer["statusMessage"])
        answer = self.many.post(f"{at}/data/{COMPARISON}/tree", {"a": {"thread": "once:11"}, "b": other}).json
        self.assertEqual(answer["status"], "COMPLETED", answer)


def plain_words(model):
    """A tree, or columns, with keys in place of what a server calls a column or a row."""
    if isinstance(model, dict):
        model.pop("title", None)
    tree = model if isinstance(model, dict) and "entries" in model else {}
    for place, column in enumerate(tree.get("headers", model if isinstance(model, list) else [])):
        if "name" in column and ("key" in column or not place):
            column |= {"name": column.get("key", ""), "tooltip": "", "description": ""}
    for e in tree.get("entries", []):
        if e.get("key"):
            e["labels"][0] = e["key"]
    return model


class Merged(Case):
    """Answers of two coordinators, `plain` and `words`, are equal."""

    def whole_range(self):
        return {"start": self.whole["start"], "end": self.whole["end"], "nbTimes": 60}

    def model(self, server, path, parameters=None):
        return server.model(f"/experiments/{self.uuid}/outputs/{path}", parameters)

    def same(self, path, parameters=None):
        a, b = (plain_words(self.model(s, path, parameters)) for s in (self.plain, self.words))
        self.assertEqual(a, b, path)
        return a

    def same_views(self):
        """Trees, states, arrows, series of all views; returns how many entries there are."""
        entries, times = 0, self.whole_range()
        for o in self.plain.get(f"/experiments/{self.uuid}/outputs").json:
            kind = KINDS.get(o["type"])
            if not kind or any(part in o["id"] for part in BY_SERVER):
                continue
            with self.subTest(o["id"]):
                tree = self.same(f"{kind}/{o['id']}/tree", {"requested_timerange": times})
                ids = [e["id"] for e in tree["entries"]]
                entries += len(ids)
                if kind != "data":
                    what = "states" if kind == "timeGraph" else "xy"
                    self.same(f"{kind}/{o['id']}/{what}", {"requested_timerange": times, "requested_items": ids})
        return entries


class Titles(Merged):
    """A server for each machine; the second one, or the first, in other words."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.servers = {h: serve(h, store=scratch()) for h in HOSTS}
        cls.uuid = cls.servers["db"].first()["UUID"]
        for s in cls.servers.values():
            s.opened(cls.uuid)
        cls.proxies = {"web": Rewording(cls.servers["web"]), "client": Rewording(cls.servers["client"]),
                       "older": Older(cls.servers["web"]), "spaced": Spacing(cls.servers["web"])}
        cls.renamed = [Renaming(s, BARS, OTHER_BARS) for s in cls.servers.values()]
        cls.plain = cls.coordinator()
        cls.words = cls.coordinator(web=cls.proxies["web"])
        cls.first = cls.coordinator(client=cls.proxies["client"])
        cls.older = cls.coordinator(web=cls.proxies["older"])
        cls.spaced = cls.coordinator(web=cls.proxies["spaced"])
        cls.other = cls.coordinator(**dict(zip(cls.servers, cls.renamed)))
        cls.many = cls.plain, cls.words, cls.first, cls.older, cls.spaced, cls.other
        cls.whole = [s.opened(cls.uuid) for s in cls.many][0]

    @classmethod
    def coordinator(cls, **instead):
        urls = {h: instead.get(h, cls.servers[h]).url for h in HOSTS}
        config = "trace-servers:\n" + "".join(f"  - {{name: {h}, url: '{url}'}}\n" for h, url in urls.items())
        return Coordinator("--config", write(config + f"groups: {{all: [{', '.join(HOSTS)}]}}\n"))

    @classmethod
    def tearDownClass(cls):
        for s in (*cls.many, *cls.renamed, *cls.proxies.values(), *cls.servers.values()):
            s.stop()

    def test_all_views(self):
        self.assertGreater(self.same_views(), 600)

    def test_averages_are_of_all_machines(self):
        """Whatever the first server calls its columns, and the row."""
        trees = [self.model(s, f"{SWITCHES}/tree") for s in (self.plain, self.first)]
        names = [[h["name"] for h in t["headers"]] for t in trees]
        self.assertIn("Average", names[0])
        self.assertIn("Mean", names[1])
        roots = [[e for e in t["entries"] if e["parentId"] == -1] for t in trees]
        self.assertEqual(roots[0][0]["labels"][1:], roots[1][0]["labels"][1:])
        self.assertEqual([[e["labels"][0] for e in r] for r in roots], [["Total"], ["Sum"]])
        count = [self.model(s, f"{SWITCHES}/tree")["entries"][0]["metadata"]["count"][0]
                 for s in self.servers.values()]
        self.assertEqual(roots[1][0]["metadata"]["count"], [sum(count)])
        self.assertGreater(sum(c > 0 for c in count), 1)

    def test_densities(self):
        output, some = f"genericXY/{DENSITY}:org.eclipse.tracecompass.analysis.os.linux.latency.syscall", 0
        tree = self.same(f"{output}/tree")
        ids = [e["id"] for e in tree["entries"]]
        self.assertEqual([e["labels"] for e in tree["entries"]], [["total"]])
        for scale in ({}, {"x_scale": "logarithmic"}):
            asked = {"start": self.whole["start"], "end": self.whole["end"], "nbSamples": 12}
            (series,) = self.same(f"{output}/xy", {"requested_timerange": asked, "requested_items": ids, **scale})[
                "series"]
            some += sum(series["yValues"])
        own = [self.model(s, f"{output}/xy", {"requested_timerange": asked, "requested_items": [
            e["id"] for e in self.model(s, f"{output}/tree")["entries"]]})["series"][0]["yValues"]
            for s in self.servers.values()]
        self.assertEqual(some, 2 * sum(map(sum, own)))

    def test_dominant_states_are_compared_by_value(self):
        """A server that writes the same in other bytes counts as the others."""
        output, times, states = "timeGraph/weft.summary", self.whole_range(), []
        for server in (self.plain, self.spaced):
            tree = self.model(server, f"{output}/tree", {"requested_timerange": times})
            ids = [e["id"] for e in tree["entries"]]
            asked = {"requested_timerange": times, "requested_items": ids}
            rows = self.model(server, f"{output}/states", asked)["rows"]
            states.append([r["states"] for i in ids for r in rows if r["entryId"] == i])
        self.assertEqual(*states)
        self.assertTrue(any(states[0]))

    def bars(self, server, output, ids=None):
        tree = self.model(server, f"genericXY/{output}/tree")
        ids = ids or [e["id"] for e in tree["entries"]]
        asked = {"start": self.whole["start"], "end": self.whole["end"], "nbTimes": 2}
        series = self.model(server, f"genericXY/{output}/xy", {"requested_timerange": asked, "requested_items": ids})
        return tree["entries"], series["series"]

    def test_counts_are_added_by_what_the_row_states(self):
        """Whatever the output is called."""
        found = [self.bars(s, o) for s, o in ((self.plain, BARS), (self.other, OTHER_BARS))]
        for entries, series in found:
            self.assertEqual([(e["labels"], e["merge"]) for e in entries], [(["Total"], "COUNTS")])
            self.assertEqual([s["seriesId"] for s in series], [entries[0]["id"]])
        self.assertEqual(*[series[0] | {"seriesId": 0} for _, series in found])
        own = [self.bars(s, BARS)[1] for s in self.servers.values() if self.offers(s)]
        counts = [sum(s["yValues"]) for series in own for s in series]
        self.assertGreater(sum(c > 0 for c in counts), 1)
        self.assertEqual(sum(found[0][1][0]["yValues"]), sum(counts))

    def test_counts_that_nobody_states_are_not_added(self):
        """Rows of an older version's server are not added: each server keeps its own."""
        entries, series = self.bars(self.older, BARS)
        self.assertGreater(len(entries), 1)
        self.assertEqual(len({e["labels"][0] for e in entries}), len(entries))
        own = [s["yValues"] for server in self.servers.values()
               if self.offers(server) for s in self.bars(server, BARS)[1]]
        self.assertEqual(sorted(s["yValues"] for s in series), sorted(own))

    def offers(self, server):
        return any(o["id"] == BARS for o in server.get(f"/experiments/{self.uuid}/outputs").json)

    def test_tables(self):
        for table in (EVENTS, FLOWS):
            columns = self.same(f"table/{table}/columns")
            self.assertEqual(len({c["id"] for c in columns}), len(columns))
        for at in (0, 20000, self.whole["nbEvents"] - 9):
            lines = self.same(f"table/{EVENTS}/lines", {"requested_table_index": at, "requested_table_count": 9})
            self.assertEqual(len(lines["lines"]), 9)

    def test_older_servers_keep_their_rows(self):
        """Rows of some machines are never shown as those of all."""
        entries = self.model(self.older, f"{SWITCHES}/tree")["entries"]
        roots = {e["labels"][0]: e for e in entries if e["parentId"] == -1}
        self.assertEqual(set(roots), {f"{h}/Total" for h in HOSTS})
        for h in HOSTS:
            own = self.model(self.servers[h], f"{SWITCHES}/tree")["entries"][0]
            self.assertEqual(roots[f"{h}/Total"]["labels"][1:], own["labels"][1:])


class Pieces(Merged):
    """Pieces of one machine's session, the second of which rewords everything."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.pieces = [Server("--no-sync", "--name", "shop", f"web={part}", store=scratch()) for part in cut(2, 2)]
        cls.whole = [p.first() for p in cls.pieces][0]
        cls.uuid = cls.whole["UUID"]
        cls.proxies = [Rewording(cls.pieces[1]), *map(Older, cls.pieces)]
        cls.plain, cls.words, cls.older = map(cls.coordinator, (
            cls.pieces, [cls.pieces[0], cls.proxies[0], *cls.pieces[2:]], cls.proxies[1:]))
        cls.whole = [s.opened(cls.uuid) for s in (cls.plain, cls.words, cls.older)][0]

    @classmethod
    def coordinator(cls, servers):
        urls = {f"web-{i}": s.url for i, s in enumerate(servers)}
        config = "trace-servers:\n" + "".join(f"  - {{name: {n}, url: '{url}'}}\n" for n, url in urls.items())
        return Coordinator("--config", write(config + f"rotation-groups: {{web: [{', '.join(urls)}]}}\n"))

    @classmethod
    def tearDownClass(cls):
        for s in (cls.plain, cls.words, cls.older, *cls.proxies, *cls.pieces):
            s.stop()

    def test_all_views(self):
        self.assertGreater(self.same_views(), 300)

    def test_an_older_piece_invents_no_number(self):
        """Columns without merge rules are empty, unless all pieces have the same value."""
        empty = kept = 0
        for output in IO, THREADS:
            tree, own = self.model(self.older, f"{output}/tree"), [self.model(p, f"{output}/tree") for p in self.pieces]
            of = [{path: e["labels"] for path, e in named(t).items()} for t in own]
            rows = named(tree)
            for path, e in rows.items():
                if "again" in path or (*path, "again") in rows:
                    continue  # rows not declared equal: they stay separate
                for k, label in enumerate(e["labels"]):
                    said = {labels[path][k] for labels in of if path in labels} - {"", "-1"}
                    if k and len(said) > 1:
                        self.assertEqual(label, "", e)
                        empty += 1
                        key = tree["headers"][k]["name"].lower()
                        self.assertNotIn(key, e["metadata"])
                    elif said:
                        self.assertIn(label, said)
                        kept += 1
        self.assertGreater(min(empty, kept), 10)


class Progress(Case):
    """Progress of the servers that still work."""

    def test_it_is_added_up_where_all_state_it(self):
        uuid, says = faults.X["UUID"], {}
        known = {"/experiments": [faults.X], f"/experiments/{uuid}": faults.X}
        servers = [StandIn(lambda path, _, name=name: {**faults.TREE, **says[name]} if "/tree" in path
                           else known.get(path)) for name in "ab"]
        many = Coordinator(*(f"--server={n}={s.url}" for n, s in zip("ab", servers)))

        def running(done, of):
            return {"status": "RUNNING", "statusMessage": "99 %", "progress": {"done": done, "of": of}}

        bare = {"status": "RUNNING", "statusMessage": "99 %"}
        try:
            for a, b, together in ((running(1, 4), running(30, 60), {"done": 31, "of": 64}),
                                   (running(1, 4), {}, {"done": 1, "of": 4}), (running(1, 4), bare, None),
                                   (bare, running(1, 4), None), (running(5, 4), running(1, 4), None),
                                   (running(-1, 4), running(1, 4), None), (running(0, 0), {}, None),
                                   (running(1, 2**63 - 1), running(1, 2**63 - 1), {"done": 2, "of": 2**64 - 2}),
                                   ({}, {}, None)):
                says.update(a=a, b=b)
                answer = many.post(f"/experiments/{uuid}/outputs/timeGraph/v/tree").json
                self.assertEqual(answer["status"], "RUNNING" if a or b else "COMPLETED", answer)
                self.assertEqual(answer.get("progress"), together, answer)
        finally:
            for s in (many, *servers):
                s.stop()


class Errors(Case):
    """Errors have codes."""

    def test_codes(self):
        server = serve("db", store=scratch())
        try:
            uuid = server.first()["UUID"]
            many = Coordinator(f"--server=db={server.url}")
            many.opened(uuid)
            for s in (server, many):
                self.assertTrue(s.get("/identifier").json["codes"])
                for method, path, body, status, code in (
                        ("GET", "/experiments/none", None, 404, "NOT_FOUND"),
                        ("GET", "/nothing", None, 404, "NOT_FOUND"),
                        ("PUT", "/traces", {}, 405, "NOT_OFFERED"),
                        ("POST", f"/experiments/{uuid}/outputs/timeGraph/none/tree", {}, 405, "NOT_OFFERED"),
                        ("POST", f"/experiments/{uuid}/outputs/timeGraph/weft.summary/states", {}, 400,
                         "INVALID_QUERY"),
                        ("POST", "/traces", {"parameters": {}}, 400, "INVALID_QUERY")):
                    with self.subTest(path=path, coordinator=s is many):
                        answer = s.ask(method, path, body)
                        self.assertEqual((answer.status, answer.json.get("code")), (status, code), answer)
            many.stop()
        finally:
            server.stop()


if __name__ == "__main__":
    main()
