#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weft coordinate joins pieces of one machine's session on several servers: they answer as one server that has the
whole session. Documented differences (docs/coordinator.md) are left out, or measured here."""
import os
import subprocess
import time

import test_coordinate
from cluster_of import free_port
from coordinated import BY_SERVER, COMPARISON, KINDS, PATH, Coordinator, StandIn, named, plain
from test_coordinate_config import write
from test_coordinate import CPU
from test_cuts import tool
from tsp_server import EVENTS, THREAD_STATUS, Server
from weft_e2e import SLOWDOWN, Case, main, scenario, scratch, weft

# Outputs with data across pieces: things that begin in one piece and end in another, names that only another piece
# knows, and times between two pieces, which are unmeasured.
ACROSS = ("latency.syscall", "file.access", "io.access", "futex.uaddrvswaiter", "StateSystemDataProvider",
          "weft.selection.cpus", "weft.selection.threads", "weft.summary")
SHARES = "weft.machines"  # outputs about the time between two samples


def cut(seed, cuts):
    """The machine web, in pieces."""
    out = scratch()
    subprocess.run([tool("CUT_TRACE", "tests", "e2e", "cut_trace"), f"{scenario('three-tier')}/web", out, str(seed),
                    str(cuts)], check=True, stdout=subprocess.DEVNULL)
    return [os.path.join(out, part) for part in sorted(os.listdir(out))]


def wait_for(test, condition):
    end = time.monotonic() + 60 * SLOWDOWN
    while not condition():
        test.assertLess(time.monotonic(), end)
        time.sleep(0.1)


class Pieces(Case):
    @staticmethod
    def serve(*traces, listen=None):
        return Server("--no-sync", "--name", "shop", *traces, store=scratch(),
                      listen=listen or f"127.0.0.1:{free_port('127.0.0.1')}")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.parts = cut(2, 3)
        cls.names = [f"web-{i}" for i in range(len(cls.parts))]
        cls.pieces = [cls.serve(f"web={part}") for part in cls.parts]
        db = f"db={scenario('three-tier')}/db"
        cls.db, cls.one = cls.serve(db), cls.serve(f"web={scenario('three-tier')}/web", db)
        cls.whole = cls.one.first()
        cls.uuid = cls.whole["UUID"]
        cls.ranges = [(x["start"], x["end"]) for x in (s.first() for s in cls.pieces)]
        cls.db.first()
        servers = zip(("db", *cls.names), (cls.db, *cls.pieces))
        cls.config = write("trace-servers:\n" + "".join(f"  - {{name: {n}, url: '{s.url}'}}\n" for n, s in servers)
                           + f"rotation-groups: {{web: [{', '.join(cls.names)}]}}\n")
        cls.many = Coordinator("--config", cls.config)
        cls.many.opened(cls.uuid)
        cls.times = {"start": cls.whole["start"], "end": cls.whole["end"], "nbTimes": 200}

    @classmethod
    def tearDownClass(cls):
        for s in (cls.many, cls.one, cls.db, *cls.pieces):
            s.stop()

    def both(self, path, parameters=None):
        path = f"/experiments/{self.uuid}/outputs/{path}"
        return self.one.model(path, parameters), self.many.model(path, parameters)

    def outputs(self):
        for o in self.one.get(f"/experiments/{self.uuid}/outputs").json:
            if o["type"] in KINDS and not any(part in o["id"] for part in (*BY_SERVER, *ACROSS)):
                yield o["id"], KINDS[o["type"]]

    def between(self):
        """The times between one piece and the next."""
        return [(end, begin) for (_, end), (begin, _) in zip(self.ranges, self.ranges[1:])]

    def in_gap(self, t):
        return any(a <= t < b for a, b in self.between())

    def test_experiment(self):
        x = self.many.get(f"/experiments/{self.uuid}").json
        for key in ("name", "UUID", "nbEvents", "start", "end", "indexingStatus"):
            self.assertEqual(x[key], self.whole[key], key)
        groups = {t["properties"]["server"]: t["properties"].get("rotation group") for t in x["traces"]}
        self.assertEqual(groups, {"db": None, **dict.fromkeys(self.names, "web")})
        self.assertGreaterEqual(len(self.parts), 3)

    def test_trees(self):
        """Rows are those of the whole session, with their figures of all of it, also within a range over a cut."""
        compared = joined = 0
        cut_at = self.ranges[1][0]
        db = self.db.first()
        begins, ends = {db["start"], self.ranges[0][0]}, {db["end"], self.ranges[-1][1]}
        for range_of in (self.times, {"start": cut_at - 10**8, "end": cut_at + 10**8, "nbTimes": 2}):
            gaps = sum(b - a for a, b in self.between())
            for output, kind in self.outputs():
                with self.subTest(output, range=range_of):
                    one, many = self.both(f"{kind}/{output}/tree", {"requested_timerange": range_of})
                    a, b = named(one), named(many)
                    self.assertEqual(set(a), set(b))
                    self.assertEqual(one["headers"], many["headers"])
                    self.assertEqual(len({e["id"] for e in many["entries"]}), len(many["entries"]))
                    for path in a:
                        x, y = (test_coordinate.Answers.rounded(plain(e[path])) for e in (a, b))
                        # Rows of db begin and end with db, those of web with web.
                        if y.get("start") in begins or y.get("end") in ends:
                            self.assertLessEqual((x.pop("start"), -x.pop("end")), (y.pop("start"), -y.pop("end")))
                        # Running time between two pieces is unmeasured.
                        ran = [e.get("metadata", {}).pop("time", [0])[0] if output == CPU else 0 for e in (x, y)]
                        self.assertTrue(0 <= ran[0] - ran[1] <= gaps, path)
                        if ran[0] != ran[1]:
                            x["labels"], y["labels"] = x["labels"][:2], y["labels"][:2]
                        if output == SHARES:
                            share = [e["metadata"].pop("busy", [0])[0] for e in (x, y)]
                            self.assertAlmostEqual(*share, delta=gaps / (range_of["end"] - range_of["start"]))
                            for e in (x, y):
                                e.get("labels", ["", "", ""])[2] = ""
                        self.assertEqual(x, y, path)
                        joined += not path[0].startswith("db")
                    compared += len(a)
        self.assertGreater(joined, 600)

    def rows(self, output, times):
        """{path: states} of both."""
        said = []
        for server in (self.one, self.many):
            at = f"/experiments/{self.uuid}/outputs/timeGraph/{output}"
            tree = named(server.model(f"{at}/tree", {"requested_timerange": self.times}))
            of = {e["id"]: path for path, e in tree.items()}
            model = server.model(f"{at}/states", {"requested_timerange": times, "requested_items": list(of)})
            said.append({of[r["entryId"]]: r["states"] for r in model["rows"]})
        return said

    @staticmethod
    def in_force(states, t):
        found = [s for s in states if s["start"] <= t < s["end"]]
        return [(s.get("label"), s.get("style")) for s in found if s.get("style")]

    def test_states(self):
        """Samples of states equal one server's, except where a piece's last event began something unknown to the next:
        there it is the earlier state."""
        compared = late = 0
        begin, end = self.whole["start"], self.whole["end"]
        at_cut = [{"start": b - 3 * 10**6, "end": b + 3 * 10**6, "nbTimes": 100} for b, _ in self.ranges[1:]]
        for output, kind in self.outputs():
            if kind != "timeGraph" or output == SHARES:
                continue
            for times in (self.times, *(at_cut if output == THREAD_STATUS else [])):
                step = (times["end"] - times["start"]) // (times["nbTimes"] - 1)
                one, many = self.rows(output, times)
                self.assertLessEqual(set(one) - set(many), {p for p in one if not any(s.get("style") for s in one[p])})
                for path, states in one.items():
                    mine = many.get(path, [])
                    for before, after in zip(mine, mine[1:]):
                        self.assertLessEqual(before["end"], after["start"])
                    for t in range(times["start"], times["end"], step):
                        a, b = self.in_force(states, t), self.in_force(mine, t)
                        if a != b:
                            began = max((s["start"] for s in states if s["start"] <= t), default=begin)
                            self.assertTrue(self.in_gap(began) or self.in_gap(t), f"{output} {path} {t} {a} {b}")
                            late += 1
                        compared += bool(a)
                        self.assertLess(t, end)
        self.assertGreater(compared, 10000)
        self.assertLess(late, compared / 100)

    def test_series(self):
        compared = 0
        for output, kind in self.outputs():
            if kind != "XY":
                continue
            said = []
            for server in (self.one, self.many):
                at = f"/experiments/{self.uuid}/outputs/XY/{output}"
                tree = named(server.model(f"{at}/tree", {"requested_timerange": self.times}))
                of = {e["id"]: path for path, e in tree.items()}
                model = server.model(f"{at}/xy", {"requested_timerange": self.times, "requested_items": list(of)})
                said.append({of[s["seriesId"]]: s for s in model["series"]})
            self.assertEqual(set(said[0]), set(said[1]))
            for path, a in said[0].items():
                b = said[1][path]
                if a["style"]["values"]["series-type"] == "scatter":
                    # Samples are the shortest and the longest of each range; with a cut, of both its parts.
                    self.assertLessEqual(set(zip(a["xValues"], a["yValues"])), set(zip(b["xValues"], b["yValues"])))
                    self.assertEqual(b["xValues"], sorted(b["xValues"]))
                    continue
                self.assertEqual(a["xValues"], b["xValues"])
                for n, (x, y) in enumerate(zip(a["yValues"], b["yValues"])):
                    near = any(a["xValues"][n - 1] <= e and g <= a["xValues"][n] for e, g in self.between())
                    self.assertTrue(abs(x - y) <= 1e-9 * abs(x) or (near and output == CPU and y < x), (path, n, x, y))
                    compared += 1
        self.assertGreater(compared, 5000)

    def test_tables(self):
        """Tables line by line, also where pieces meet; the column Trace names the machine. Packets are those of the
        pieces; the running thread is unknown before its first event in a piece."""
        at = f"/experiments/{self.uuid}/outputs/table/{EVENTS}"
        columns = [c["name"] for c in self.one.model(f"{at}/columns", {})]
        first = sum(s.first()["nbEvents"] for s in self.pieces[:1])
        for index in (0, first - 100, first + 5000, self.whole["nbEvents"] - 200):
            wanted = {"requested_table_index": index, "requested_table_count": 200}
            one, many = ([dict(zip(columns, (c["content"] for c in line["cells"])))
                          for line in s.model(f"{at}/lines", wanted)["lines"]] for s in (self.one, self.many))
            for a, b in zip(one, many, strict=True):
                self.assertEqual({k: v for k, v in a.items() if k in b and b[k] and k != "Packet context"},
                                 {k: v for k, v in b.items() if v and k != "Packet context"})
                self.assertLessEqual({k for k in a if a[k] and not b[k]}, {"TID", "PID", "Prio"})
            self.assertEqual({line["Trace"] for line in many} - {"web", "db"}, set())
        alone = Coordinator(*[f"--config={self.only_pieces()}"])
        try:
            self.assertNotIn("Trace", [c["name"] for c in alone.model(f"{at}/columns", {})])
        finally:
            alone.stop()

    def test_pieces_have_a_clock_of_their_own(self):
        """Times of the machine, also in queries, are by the common clock."""
        ahead = 1_234_567_891
        servers = zip(self.names, self.pieces)
        other = Coordinator("--config", write(
            "trace-servers:\n" + "".join(
                f"  - {{name: {n}, url: '{s.url}', clock: {{offset-ns: '{ahead}'}}}}\n" for n, s in servers)
            + f"rotation-groups: {{web: [{', '.join(self.names)}]}}\n"))
        same = Coordinator("--config", self.only_pieces())
        moved = lambda v, by: {k: x + by if k in ("start", "end", "time") else x for k, x in v.items()}
        try:
            for output, kind in ((THREAD_STATUS, "timeGraph"), (CPU, "XY"), (test_coordinate.STATISTICS
                                                                            + ":lttng.analysis.irq", "data")):
                said = []
                for server, by in ((same, 0), (other, ahead)):
                    server.opened(self.uuid)
                    at = f"/experiments/{self.uuid}/outputs/{kind}/{output}"
                    tree = named(server.model(f"{at}/tree", {"requested_timerange": moved(self.times, by)}))
                    ids = {e["id"]: p for p, e in tree.items()}
                    entries = {p: moved(plain(e), -by) for p, e in tree.items()}
                    for e in entries.values():
                        e.get("labels", [])[7:] = []  # times of the shortest and the longest
                        for key in ("minimumBegin", "maximumBegin"):
                            if key in e.get("metadata", {}):
                                e["metadata"][key] = [e["metadata"][key][0] - by]
                    rows = {}
                    if kind == "timeGraph":
                        model = server.model(f"{at}/states", {"requested_timerange": moved(self.times, by),
                                                              "requested_items": list(ids)})
                        rows = {ids[r["entryId"]]: [moved(s, -by) for s in r["states"]] for r in model["rows"]}
                    elif kind == "XY":
                        model = server.model(f"{at}/xy", {"requested_timerange": moved(self.times, by),
                                                          "requested_items": list(ids)})
                        rows = {ids[r["seriesId"]]: ([x - by for x in r["xValues"]], r["yValues"])
                                for r in model["series"]}
                    said.append((entries, rows))
                self.assertEqual(*said)
                self.assertTrue(said[0][0])
        finally:
            same.stop()
            other.stop()

    def test_what_nobody_said_is_noted(self):
        """Note about two servers with pieces of one session: once, and not if the configuration declares it."""
        other = Coordinator(*[f"--server={n}={s.url}" for n, s in zip(self.names[:2], self.pieces)],
                            f"--server=all={self.one.url}")
        try:
            note = "rotation-groups: {web: [web-0, web-1]}"
            wait_for(self, lambda: note in other.errors())
            other.opened(self.uuid)
            self.assertEqual(other.errors().count("rotation-groups"), 1)
        finally:
            other.stop()
        self.assertNotIn("rotation-groups", self.many.errors())

    def only_pieces(self):
        servers = zip(self.names, self.pieces)
        return write("trace-servers:\n" + "".join(f"  - {{name: {n}, url: '{s.url}'}}\n" for n, s in servers)
                     + f"rotation-groups: {{web: [{', '.join(self.names)}]}}\n")

    def test_tooltips(self):
        """Tooltips of states within a piece equal one server's; of states that go on into the next, they have the known
        part."""
        one, many = self.rows(THREAD_STATUS, self.times)
        trees = [named(m) for m in self.both(f"timeGraph/{THREAD_STATUS}/tree")]
        within = over = 0
        for path in sorted(many):
            for s in [s for s in many[path] if s.get("style")][::3]:
                if path[0].startswith("db") or s["start"] in self.ranges[0]:
                    continue
                tips = []
                for server, tree in zip((self.one, self.many), trees):
                    when = (s["start"] + s["end"]) // 2
                    tips.append(server.model(
                        f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tooltip",
                        {"requested_times": [when], "requested_items": [tree[path]["id"]],
                         "requested_element": {"elementType": "state", "time": when, "duration": 0,
                                               "entryId": tree[path]["id"]}}))
                if any(a < s["start"] and s["end"] < b for a, b in self.ranges) and s in one[path]:
                    self.assertEqual(*tips)
                    within += 1
                elif tips[0]:
                    self.assertTrue(tips[1], (path, s))
                    over += 1
        self.assertGreater(within, 25)
        self.assertGreater(over, 2)

    def path(self, server, parameters):
        at = f"/experiments/{self.uuid}/outputs"
        made = server.ask("POST", f"{at}/{PATH}",
                          {"name": "p", "sourceTypeId": "weft.critical-path", "parameters": parameters})
        self.assertEqual(made.status, 200, made)
        entries = server.model(f"{at}/timeGraph/{made.json['id']}/tree")["entries"]
        rows = server.model(f"{at}/timeGraph/{made.json['id']}/states", {
            "requested_timerange": {"start": parameters["begin"], "end": parameters["end"], "nbTimes": 500},
            "requested_items": [e["id"] for e in entries]})["rows"]
        return sorted((s["start"], s["end"], str(s.get("style"))) for r in rows for s in r["states"])

    def test_paths_are_those_of_the_piece(self):
        """A path is of the piece with its begin, whether the thread or its entry is named."""
        tree = named(self.many.model(f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tree"))
        thread = next(e for p, e in tree.items() if p[0].startswith("web") and e["labels"][1] == "15")
        sides = [{"thread": "web:15", "begin": begin + (end - begin) // 4, "end": end - (end - begin) // 4}
                 for begin, end in self.ranges]
        for piece, asked in zip(self.pieces, sides):
            wanted = self.path(piece, asked)
            self.assertTrue(wanted)
            self.assertEqual(self.path(self.many, asked), wanted)
            self.assertEqual(self.path(self.many, {**asked, "id": thread["id"]}), wanted)
        # Thread before and after a cut: the parts of either side are those of its piece.
        at = f"/experiments/{self.uuid}/outputs/data/{COMPARISON}/tree"

        def spent(server, a, b, side):
            parts = [e["metadata"] for e in server.model(at, {"a": a, "b": b})["entries"]]
            return {tuple(str(p.get(k)) for k in ("comm", "state", "reason")): p[side] for p in parts if p[side] != [0]}
        for i in range(1, len(sides)):
            with_ids = [{**s, "id": thread["id"]} for s in sides[i - 1 : i + 1]]
            for a, b in (sides[i - 1 : i + 1], with_ids):
                for side, own, piece in (("a", sides[i - 1], self.pieces[i - 1]), ("b", sides[i], self.pieces[i])):
                    self.assertEqual(spent(self.many, a, b, side), spent(piece, own, own, side))

    def test_ids_stay(self):
        """Ids stay the same, also for clients without a tree, and for a coordinator that was just started."""
        at = f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}"
        ids = [e["id"] for e in self.many.model(f"{at}/tree")["entries"]]
        asked = {"requested_timerange": self.times, "requested_items": ids}
        other = Coordinator("--config", self.config)
        try:
            by = lambda model: {r["entryId"]: r["states"] for r in model["rows"]}
            self.assertEqual(by(other.model(f"{at}/states", asked)), by(self.many.model(f"{at}/states", asked)))
        finally:
            other.stop()

    def test_a_piece_is_away(self):
        """The stretch of a missing piece is missing, under its name; the rest is unchanged, and it returns."""
        at = f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}"
        tree = self.many.model(f"{at}/tree")
        asked = {"requested_timerange": self.times, "requested_items": [e["id"] for e in tree["entries"]]}
        by = lambda model: {r["entryId"]: r["states"] for r in model["rows"]}
        before = by(self.many.model(f"{at}/states", asked))
        begin, end = self.ranges[1]
        self.pieces[1].stop()
        try:
            answer = self.many.post(f"{at}/states", asked).json
            self.assertEqual([lack["host"] for lack in answer["hosts"]["lacking"]], ["web-1"])
            self.assertIn("without web-1", answer["statusMessage"])
            now = by(answer["model"])
            machine = {e["id"]: e.get("metadata", {}).get("hostId") for e in tree["entries"]}
            self.assertLessEqual(set(now), set(before))
            told = 0
            for row, states in now.items():
                if machine[row] == ["db"]:
                    self.assertEqual(states, before[row])
                    continue
                self.assertFalse([s for s in states if s["start"] < end and s["end"] > begin], machine[row])
                lasting = [s for s in before[row] if s["end"] < self.ranges[0][1] or s["start"] > self.ranges[2][0]]
                self.assertLessEqual({str(s) for s in lasting}, {str(s) for s in states})
                told += len(lasting)
            self.assertGreater(told, 200)
            again = self.many.model(f"{at}/tree")
            self.assertLessEqual({e["id"] for e in again["entries"]}, {e["id"] for e in tree["entries"]})
        finally:
            type(self).pieces[1] = self.serve(f"web={self.parts[1]}", listen=self.pieces[1].host)
            self.pieces[1].first()
        wait_for(self, lambda: "hosts" not in self.many.post(f"{at}/states", asked).json)
        self.assertEqual(by(self.many.model(f"{at}/states", asked)), before)


SUMMARY, USAGE = "weft.summary", "weft.summary.cpu"
WEIGHTS = {"web": 1, "db": 2.5, "client": 4}
GROUPS = {"backs": ("web", "db"), "all": ("client", "db", "web")}


class Groups(Case):
    """Lines of groups of machines, computed here from the machines' own lines."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.parts = cut(2, 3)
        traces = {h: [f"{h}={scenario('three-tier')}/{h}"] for h in ("db", "client")}
        traces |= {f"web-{i}": [f"web={part}"] for i, part in enumerate(cls.parts)}
        cls.servers = {name: Pieces.serve(*t) for name, t in traces.items()}
        for s in cls.servers.values():
            cls.uuid = s.first()["UUID"]
        # The weight of web is that of its first piece.
        weights = {n: f", weight: {WEIGHTS[n.split('-')[0]]}" for n in ("db", "client", "web-0")}
        cls.config = write(
            "trace-servers:\n" + "".join(
                f"  - {{name: {n}, url: '{s.url}'{weights.get(n, '')}}}\n" for n, s in cls.servers.items())
            + f"rotation-groups: {{web: [{', '.join(n for n in cls.servers if n.startswith('web'))}]}}\n"
            + f"groups: {{backs: [{', '.join(GROUPS['backs'])}], all: [c*, 'd[a-d]', w?b]}}\n")
        cls.many = Coordinator("--config", cls.config)
        x = cls.many.opened(cls.uuid)
        cls.times = {"start": x["start"], "end": x["end"], "nbTimes": 300}
        step = (x["end"] - x["start"]) // 299
        cls.samples = [*range(x["start"], x["end"], step), x["end"]]

    @classmethod
    def tearDownClass(cls):
        for s in (cls.many, *cls.servers.values()):
            s.stop()

    def tree(self, server, output, kind):
        return named(server.model(f"/experiments/{self.uuid}/outputs/{kind}/{output}/tree"))

    def rows(self, server, output, kind, ids):
        what, array, key = ("states", "rows", "entryId") if kind == "timeGraph" else ("xy", "series", "seriesId")
        model = server.model(f"/experiments/{self.uuid}/outputs/{kind}/{output}/{what}",
                             {"requested_timerange": self.times, "requested_items": ids})
        return {r[key]: r for r in model[array]}

    def lines(self, output, kind, wanted=lambda path: True):
        """{(machine or group, line): row}"""
        of = {e["id"]: (p[0].split()[0], p[1].split()[0]) for p, e in self.tree(self.many, output, kind).items()
              if len(p) > 1 and wanted(p)}
        return {of[i]: row for i, row in self.rows(self.many, output, kind, list(of)).items()}

    @staticmethod
    def look(row, t):
        found = [s.get("style", {}).get("parentKey") for s in row["states"] if s["start"] <= t < s["end"]]
        return found[0] if found else None

    def test_tree(self):
        tree = self.tree(self.many, SUMMARY, "timeGraph")
        rows = {(p[0].split()[0], p[1].split()[0]): e["metadata"]["rows"][0] for p, e in tree.items() if len(p) > 1}
        self.assertEqual({p[0] for p in rows}, {*WEIGHTS, *GROUPS})
        for group, members in GROUPS.items():
            for line in ("CPUs", "Threads"):
                self.assertEqual(rows[group, line], sum(rows[m, line] for m in members))
        self.assertEqual(len({e["id"] for e in tree.values()}), len(tree))

    def test_dominant_states_are_weighted(self):
        lines = self.lines(SUMMARY, "timeGraph")
        compared, differ = 0, 0
        for group, members in GROUPS.items():
            for line in ("CPUs", "Threads"):
                for t in self.samples:
                    votes = {}
                    for m in members:
                        look = self.look(lines[m, line], t)
                        if look:
                            votes[look] = votes.get(look, 0) + WEIGHTS[m]
                    found = self.look(lines[group, line], t)
                    if not votes:
                        self.assertIsNone(found)
                        continue
                    self.assertEqual(votes.get(found), max(votes.values()), (group, line, t, votes, found))
                    compared += 1
                    differ += len(votes) > 1
        self.assertGreater(compared, 1000)
        self.assertGreater(differ, 100)

    def test_usage(self):
        lines = self.lines(USAGE, "XY")
        for group, members in GROUPS.items():
            for what, joined in (
                ("Minimum", lambda v: min(v.values())), ("Maximum", lambda v: max(v.values())),
                ("Mean", lambda v: sum(WEIGHTS[m] * y for m, y in v.items()) / sum(WEIGHTS[m] for m in v)),
            ):
                found = lines[group, what]
                for m in members:
                    self.assertEqual(found["xValues"], lines[m, what]["xValues"])
                for n, y in enumerate(found["yValues"]):
                    wanted = joined({m: lines[m, what]["yValues"][n] for m in members})
                    self.assertAlmostEqual(y, wanted, delta=1e-9 * (1 + abs(wanted)))
                self.assertGreater(len(set(found["yValues"])), 50)

    def test_who_is_asked_for_is_told(self):
        """Queries of groups alone, without a tree, to a coordinator that was just started; and answers of a machine's
        own server equal the coordinator's."""
        ids = {p: e["id"] for p, e in self.tree(self.many, SUMMARY, "timeGraph").items()}
        groups = [i for p, i in ids.items() if len(p) > 1 and p[0].split()[0] in GROUPS]
        other = Coordinator("--config", self.config)
        try:
            rows = self.rows(other, SUMMARY, "timeGraph", groups)
            self.assertEqual(set(rows), set(groups))
            self.assertEqual(rows, self.rows(self.many, SUMMARY, "timeGraph", groups))
        finally:
            other.stop()
        own = self.tree(self.servers["db"], SUMMARY, "timeGraph")
        mine = {p[1].split()[0]: e["id"] for p, e in own.items() if len(p) > 1}
        said = self.rows(self.servers["db"], SUMMARY, "timeGraph", list(mine.values()))
        for line, row in self.lines(SUMMARY, "timeGraph", lambda p: p[0].startswith("db")).items():
            self.assertEqual(row["states"], said[mine[line[1]]]["states"])

    def tip(self, entry, t):
        answer = self.many.post(f"/experiments/{self.uuid}/outputs/timeGraph/{SUMMARY}/tooltip", {
            "requested_times": [t], "requested_items": [entry],
            "requested_element": {"elementType": "state", "time": t, "duration": 1, "entryId": entry}}).json
        self.assertEqual(answer["status"], "COMPLETED", answer)
        return answer

    def test_tooltips(self):
        lines = self.lines(SUMMARY, "timeGraph")
        ids = {(p[0].split()[0], p[1].split()[0]): e["id"]
               for p, e in self.tree(self.many, SUMMARY, "timeGraph").items() if len(p) > 1}
        several = 0
        for group, members in GROUPS.items():
            for line in ("CPUs", "Threads"):
                for t in self.samples[::60]:
                    looks = {m: self.look(lines[m, line], t) for m in members}
                    shown = {}
                    for m, look in looks.items():
                        if look:
                            shown.setdefault(look, []).append(WEIGHTS[m])
                    tip = self.tip(ids[group, line], t)["model"]
                    words = {
                        look: f"{len(w)} machine{'s' * (len(w) > 1)}" + (f", weight {sum(w):g}" * (sum(w) != len(w)))
                        for look, w in shown.items()}
                    words["Machines"] = f"{sum(map(len, shown.values()))} of {len(members)}"
                    silent = sorted(f"{m}: shows nothing then" for m, look in looks.items() if not look)
                    self.assertEqual(sorted(filter(None, tip.pop("Without", "").split("; "))), silent)
                    self.assertEqual(tip, words, (group, line, t))
                    if shown:
                        self.assertEqual(sum(shown[next(iter(tip))]), max(map(sum, shown.values())), tip)
                    several += len(shown) > 1
        self.assertGreater(several, 3)

    def test_a_machine_is_away(self):
        ids = [e["id"] for p, e in self.tree(self.many, SUMMARY, "timeGraph").items() if p[0].startswith("backs")]
        self.servers["db"].stop()
        try:
            answer = self.many.post(f"/experiments/{self.uuid}/outputs/timeGraph/{SUMMARY}/states",
                                    {"requested_timerange": self.times, "requested_items": ids}).json
            self.assertEqual([lack["host"] for lack in answer["hosts"]["lacking"]], ["db"])
            backs = {tuple(str((s["start"], s["end"], s["style"])) for s in r["states"] if s.get("style"))
                     for r in answer["model"]["rows"]}
            self.assertEqual(len(backs), 2)
            tip = self.tip(ids[1], self.samples[150])
            self.assertEqual([lack["host"] for lack in tip["hosts"]["lacking"]], ["db"])
            self.assertEqual(tip["model"]["Machines"], "1 of 2")
            self.assertEqual(tip["model"]["Without"], "db: " + tip["hosts"]["lacking"][0]["statusMessage"])
            web = self.lines(SUMMARY, "timeGraph", lambda p: p[0].startswith("web"))
            for row in answer["model"]["rows"]:
                line = "CPUs" if row["entryId"] == ids[1] else "Threads"
                for t in self.samples:
                    self.assertEqual(self.look(row, t), self.look(web["web", line], t))
        finally:
            self.servers["db"] = Pieces.serve(f"db={scenario('three-tier')}/db", listen=self.servers["db"].host)
            self.servers["db"].first()
        wait_for(self, lambda: "hosts" not in self.many.post(
            f"/experiments/{self.uuid}/outputs/timeGraph/{SUMMARY}/states",
            {"requested_timerange": self.times, "requested_items": ids}).json)


def foreign(ids, begin, end, entries, states):
    """A server that numbers rows as it likes. entries: (name, above, start, end); states by name."""
    x = {"name": "s", "UUID": "9af5f5ea-1c2b-3d4e-8f00-000000000001", "nbEvents": 5, "start": begin, "end": end,
         "indexingStatus": "COMPLETED", "traces": []}
    done = {"status": "COMPLETED", "statusMessage": "Completed"}
    number = {name: ids + i for i, (name, *_) in enumerate(entries)}

    def answer(path, parameters):
        what = path.rsplit("/", 1)[-1]
        if path == "/experiments":
            return [x]
        if what == x["UUID"]:
            return x
        if what == "tree":
            return {"model": {"headers": [{"name": "Name"}], "entries": [
                {"id": number[n], "parentId": number.get(above, -1), "labels": [n.rstrip("*")], "start": a, "end": b}
                for n, above, a, b in entries]}, **done}
        if what == "states":
            of = {i: n for n, i in number.items()}
            return {"model": {"rows": [
                {"entryId": i, "states": [{"start": a, "end": b, "label": label, "style": {"parentKey": label}}
                                          for a, b, label in states.get(of[i], [])]}
                for i in parameters["requested_items"] if i in of]}, **done}
        return None

    return StandIn(answer)


class Foreign(Case):
    """Servers of other makes, whose numbers of rows mean nothing elsewhere."""

    def test_rows_of_one_name_are_one(self):
        first = foreign(1, 100, 200, [("m", None, 100, 200), ("lasts", "m", 100, 200), ("ends", "m", 100, 150)],
                        {"lasts": [(100, 140, "a"), (140, 200, "b")], "ends": [(100, 150, "c")]})
        second = foreign(2, 210, 300, [("m", None, 210, 300), ("new", "m", 250, 300), ("ends", "m", 210, 300),
                                       ("lasts", "m", 210, 300)],
                         {"lasts": [(210, 260, "b"), (260, 300, "a")], "ends": [(230, 300, "d")],
                          "new": [(250, 300, "e")]})
        many = Coordinator("--config", write(
            f"trace-servers: [{{name: late, url: '{second.url}'}}, {{name: early, url: '{first.url}'}}]\n"
            "rotation-groups: {m: [late, early]}\n"))
        at = "/experiments/9af5f5ea-1c2b-3d4e-8f00-000000000001/outputs/timeGraph/view"
        try:
            tree = many.model(f"{at}/tree")["entries"]
            self.assertEqual([(e["labels"][0], e["start"], e["end"]) for e in tree], [
                ("m", 100, 300), ("lasts", 100, 300), ("ends", 100, 150), ("new", 250, 300), ("ends", 100, 300)])
            self.assertEqual({e["parentId"] for e in tree[1:]}, {tree[0]["id"]})
            rows = many.model(f"{at}/states", {
                "requested_timerange": {"start": 100, "end": 300, "nbTimes": 201},
                "requested_items": [e["id"] for e in tree]})["rows"]
            states = {r["entryId"]: [(s["start"], s["end"], s["label"]) for s in r["states"]] for r in rows}
            self.assertEqual([states[e["id"]] for e in tree], [
                [], [(100, 140, "a"), (140, 260, "b"), (260, 300, "a")], [(100, 150, "c")], [(250, 300, "e")],
                [(230, 300, "d")]])
        finally:
            many.stop()
            for s in (first, second):
                s.stop()


class Configuration(Case):
    def test_what_is_wrong_is_said_with_its_place(self):
        servers = "trace-servers: [{host: a, name: x}, {host: b, name: y}]\n"
        for text, where in (
            ("rotation-groups: [x]\n", "line 2, column 18: groups are expected"),
            ("rotation-groups: {web: {x: y}}\n", "line 2, column 24: a text or a list"),
            ("rotation-groups: {web: [x, z]}\n", "line 2, column 28: there is no server called z"),
            ("rotation-groups: {web: [x, x]}\n", "line 2, column 28: the server x is in a rotation group already"),
            ("rotation-groups: {web: x, db: x}\n", "line 2, column 31: the server x is in"),
            ("rotation-groups: {y: [x]}\n", "line 2, column 19: a server is called y, too"),
            ("rotation-groups: {w: x, w: y}\n", "line 2, column 25: the group w is there twice"),
        ):
            with self.subTest(text):
                run = weft("coordinate", "--check", "--config", write(servers + text))
                self.assertIn(run.code, (1, 2), run)
                self.assertIn(where, run.message)
        for text, where in (
            ("groups: 7\n", "line 2, column 9: groups are expected"),
            ("groups: {g: [x, w]}\n", "line 2, column 17: there is no server called w"),
            ("groups: {g: [x, x]}\n", "line 2, column 17: the server x is in a group already"),
            ("groups: {g: [x, 'x*', 'x*']}\n", "line 2, column 23: the server x* is in a group already"),
            ("groups: {g: ['[::1]:80']}\n", "line 2, column 14: there is no server called [::1]:80"),
            ("rotation-groups: {web: ['x*']}\n", "line 2, column 25: there is no server called x*"),
            ("groups: {x: [y]}\n", "line 2, column 10: a server is called x, too"),
            ("rotation-groups: {w: [x]}\ngroups: {w: [y]}\n", "line 3, column 10: the group w is there twice"),
        ):
            with self.subTest(text):
                self.assertIn(where, weft("coordinate", "--check", "--config", write(servers + text)).message)
        for weight in ("0", "-1", "much", "2 kg", "[1]", "1e10", "inf"):
            run = weft("coordinate", "--check", "--config",
                       write(f"trace-servers:\n  - host: a\n    weight: {weight}\n"))
            self.assertIn("line 3, column 13: a ", run.message)
        run = weft("coordinate", "--check", "--config", write(
            "trace-servers: [{host: a, name: x, weight: 2.5}, {host: b, name: y, weight: 16}]\n"
            "rotation-groups: {web: [x]}\ngroups: {a: [web, y], b: y}\n"))
        self.assertEqual(run.code, 0, run)


if __name__ == "__main__":
    main()
