#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Requests on a coordinator of nodes are those of one server with all traces: one list in one order, one numbering of
groups, one histogram, paths over all machines, and what they consist of together."""
import os
import re

from cluster_of import Cluster, free_port, wait_for
from coordinated import Coordinator, Shop
from tsp_server import Server
from weft_e2e import Case, main, scenario, scratch, weft

LIST, GROUPS, BARS = "weft.requests", "weft.requests.groups", "weft.requests.durations"
PATHS = "weft.requests.paths"
(DURATION, BEGIN, SERVER, TID, THREAD, CLIENT, CLIENT_TID, CLIENT_THREAD, CLIENT_BEGIN, CLIENT_END, BYTES_IN, BYTES_OUT,
 GROUP, MACHINES) = range(14)
# Durations are by the clock of the machine, on one server by the reference's: some parts in a million.
DRIFT = 3e-4
# Delays of messages are known to some µs, and differ a little with the composition of clocks.
APART_NS = 10_000


class World:
    """A node for each machine, a coordinator of them on one clock, and one server with all traces."""

    def __init__(self, traces, hosts, reference):
        self.hosts, self.stopping = hosts, []
        # Traces given by the directory: clocks found of hosts in another order differ by some hundred ns.
        self.one = self.keep(Server("--name", "all", "--reference", reference, traces, store=scratch()))
        self.uuid = self.one.first()["UUID"]
        clocks = os.path.join(scratch(), "clocks.json")
        with open(clocks, "wb") as f:
            f.write(weft("sync", traces, "--store", scratch(), "--reference", reference, "--format", "json").out)
        self.cluster = self.keep(Cluster({}))
        at = {h: f"127.0.0.1:{free_port('127.0.0.1')}" for h in hosts}
        for h in hosts:
            self.cluster.add(h, f"{h}={traces}/{h}", store=scratch(), options=("--name", "all", "--listen", at[h]))
        self.cluster.settle()
        self.many = self.keep(Coordinator(*[f"--server={h}=http://{at[h]}" for h in hosts], "--clocks", clocks,
                                          "--cluster", self.cluster.broker.url))
        wait_for("all machines", lambda: len(self.many.opened(self.uuid)["traces"]) == len(hosts))

    def keep(self, what):
        self.stopping.insert(0, what)
        return what

    def stop(self):
        for x in self.stopping:
            x.stop()

    def ask(self, server, path, **parameters):
        """The whole answer, once it is there."""
        return wait_for(path, lambda: (lambda a: a["status"] != "RUNNING" and a)(
            server.post(f"/experiments/{self.uuid}/outputs/{path}", parameters).json))

    def model(self, server, path, **parameters):
        answer = self.ask(server, path, **parameters)
        assert answer["status"] == "COMPLETED" and "hosts" not in answer, answer
        return answer["model"]

    def lines(self, server, index=0, count=10000, **more):
        model = self.model(server, f"table/{LIST}/lines", requested_table_index=index, requested_table_count=count,
                           **more)
        return model, [(x["index"], [c["content"] for c in x["cells"]]) for x in model["lines"]]

    def groups(self, server):
        return self.model(server, f"data/{GROUPS}/tree")["entries"]

    def paths(self, server):
        """Returns the root of each group, and the rows below it."""
        return roots_of(self.model(server, f"data/{PATHS}/tree"))


def roots_of(model):
    """Roots, each with what is below it by element and state."""
    names, roots = [h["name"] for h in model["headers"]], []
    for e in model["entries"]:
        e["is"] = dict(zip(names, e["labels"]))
        if e["parentId"] == -1:
            roots.append((e, {}))
            continue
        root, below = roots[-1]
        assert e["parentId"] == root["id"] and (e["is"]["Element"], e["is"]["State"]) not in below, e
        below[e["is"]["Element"], e["is"]["State"]] = e
    return roots


class Compared(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.world = cls.make()
        cls.addClassCleanup(cls.world.stop)
        cls.one, cls.many = cls.world.one, cls.world.many

    @staticmethod
    def make():
        return World(scenario("three-tier"), ("client", "web", "db"), "client")

    def close(self, a, b):
        self.assertLessEqual(abs(a - b), DRIFT * b + 1)

    def same_words(self, a, b):
        """"+58.02 ms db tier running": but for the clock, and its rounding to four digits."""
        number = re.compile(r"[\d.]+(?= (?:ns|µs|ms|s) )")
        self.assertEqual(number.sub("N", a), number.sub("N", b))
        for x, y in zip(number.findall(a), number.findall(b)):
            self.assertLessEqual(abs(float(x) - float(y)), 0.002 * float(y))

    def same_lines(self, many, one):
        self.assertEqual([i for i, _ in many], [i for i, _ in one])
        for (_, a), (_, b) in zip(many, one):
            self.close(int(a[DURATION]), int(b[DURATION]))
            self.assertEqual(a[BEGIN:], b[BEGIN:])

    def same_groups(self, many, one):
        self.assertEqual(len(many), len(one))
        for a, b in zip(many, one):
            for label in (0, 1, 2, 7):
                self.assertEqual(a["labels"][label], b["labels"][label])
            self.same_words(a["labels"][8], b["labels"][8])
            for key in ("group", "count", "first", "hostId"):
                self.assertEqual(a["metadata"][key], b["metadata"][key], key)
            for key in ("p50", "p90", "p99", "maximum"):
                self.close(a["metadata"][key][0], b["metadata"][key][0])


    def same_paths(self, many, one):
        self.assertEqual(len(many), len(one))
        for (a, parts), (b, parts_of_one) in zip(many, one):
            for key in ("group", "count", "first"):
                self.assertEqual(a["metadata"][key], b["metadata"][key], key)
            self.assertEqual(parts.keys(), parts_of_one.keys())
            for x, y in [(a, b)] + [(parts[k], parts_of_one[k]) for k in parts]:
                for name in ("Element", "Group", "State"):
                    self.assertEqual(x["is"][name], y["is"][name])
                self.assertEqual(x["metadata"].get("hostId"), y["metadata"].get("hostId") if x is a or
                                 y["metadata"].get("hostId") == a["metadata"]["hostId"] else None)
                self.assertLessEqual(abs(float(x["is"]["Share"][:-2]) - float(y["is"]["Share"][:-2])), 0.11)
                for key in ("total", "mean", "typical", "slow"):
                    times = a["metadata"]["count"][0] if key == "total" else 1
                    was, told = y["metadata"][key][0], x["metadata"][key][0]
                    self.assertLessEqual(abs(told - was), DRIFT * was + APART_NS * times, (key, x["is"]))


class Requests(Compared):
    def test_list(self):
        (of_one, one), (of_many, many) = (self.world.lines(s) for s in (self.one, self.many))
        self.assertEqual(of_many["size"], of_one["size"])
        self.assertEqual(of_many["columnIds"], of_one["columnIds"])
        self.assertEqual([i for i, _ in many], list(range(min(of_many["size"], 10000))))
        self.same_lines(many, one)
        columns = [self.world.model(s, f"table/{LIST}/columns") for s in (self.one, self.many)]
        # Columns that the coordinator cannot offer are excluded.
        self.assertEqual([{k: v for k, v in c.items() if k != "foundBy"} for c in columns[0]], columns[1])

    def test_any_page_is_of_that_list(self):
        of_many, many = self.world.lines(self.many)
        step = max(1, len(many) // 40)
        for i in [*range(0, len(many), step), len(many) - 1]:
            for count in (1, 3):
                self.assertEqual(self.world.lines(self.many, i, count)[1], many[i:i + count])
        self.assertEqual(self.world.lines(self.many, len(many) + 5, 3)[1], [])
        for i in range(0, len(many), step):
            model = self.world.model(self.many, f"table/{LIST}/lines", requested_value=int(many[i][1][DURATION]),
                                     requested_table_count=1, requested_table_column_ids=[DURATION])
            self.assertEqual(model["lines"][0]["cells"][0]["content"], many[i][1][DURATION])
            self.assertLessEqual(model["lowIndex"], i)

    def test_groups(self):
        one, many = (self.world.groups(s) for s in (self.one, self.many))
        self.assertGreater(len(one), 3)
        self.assertGreater(len({h for e in one for h in e["metadata"]["hostId"]}), 1)
        self.same_groups(many, one)
        self.assertEqual(len({e["id"] for e in many}), len(many))

    def test_paths(self):
        one, many = (self.world.paths(s) for s in (self.one, self.many))
        self.same_paths(many, one)
        numbers = [e["labels"][0] for e in self.world.groups(self.many)]
        self.assertEqual([root["is"]["Group"] for root, _ in many], numbers)
        # Requests whose paths continue on the other machines.
        of_web = [below for root, below in many if root["metadata"]["hostId"] == ["web"]]
        self.assertTrue(any(name.startswith("db ") for below in of_web for name, _ in below))
        ids = [e["id"] for root, below in many for e in (root, *below.values())]
        self.assertEqual(len(set(ids)), len(ids))

    def test_groups_are_found_in_the_list(self):
        for group in {e["labels"][0] for e in self.world.groups(self.one)[:12]}:
            for direction, start in (("NEXT", 0), ("PREVIOUS", self.world.lines(self.one, 0, 1)[0]["size"] - 1)):
                found = [self.world.lines(s, start, 1, table_search_expressions={str(GROUP): f"^{group}$"},
                                          table_search_direction=direction)[1] for s in (self.many, self.one)]
                self.assertEqual(found[1][0][1][GROUP], group)
                self.same_lines(*found)
            kept = [self.world.lines(s, 0, 50, table_filter_expressions={str(GROUP): f"^{group}$"})
                    for s in (self.many, self.one)]
            self.assertEqual(kept[0][0]["size"], kept[1][0]["size"])
            self.same_lines(kept[0][1], kept[1][1])

    def test_bars(self):
        bars = []
        for s in (self.one, self.many):
            tree = self.world.model(s, f"genericXY/{BARS}/tree")["entries"]
            self.assertEqual([e["labels"] for e in tree], [["Total"]])
            xy = self.world.model(s, f"genericXY/{BARS}/xy", requested_items=[tree[0]["id"]],
                                  requested_timerange={"start": 0, "end": 1 << 62, "nbTimes": 2})
            self.assertEqual([x["seriesId"] for x in xy["series"]], [tree[0]["id"]])
            bars.append(xy)
        x, y = bars[1]["series"][0]["xRanges"], bars[1]["series"][0]["yValues"]
        took = [int(cells[DURATION]) for _, cells in self.world.lines(self.many)[1]]
        self.assertEqual(y, [sum(r["start"] <= t < r["end"] for t in took) for r in x])
        self.assertEqual(sum(y), len(took))
        self.assertEqual(sum(y), sum(bars[0]["series"][0]["yValues"]))
        self.assertEqual(bars[1]["series"][0] | {"seriesId": 0, "yValues": 0},
                         bars[0]["series"][0] | {"seriesId": 0, "yValues": 0})


class Many(Compared):
    """Thousands of requests on each of three machines, whose groups are computed from a sample. Requests of nearly
    equal duration have another order by other clocks."""

    @staticmethod
    def make():
        return World(scenario("clocks"), ("n1", "n2", "n3", "n4"), "n1")

    def test_list(self):
        (of_one, one), (of_many, many) = (self.world.lines(s) for s in (self.one, self.many))
        self.assertEqual(of_many["size"], of_one["size"])
        self.assertGreater(of_one["size"], 5000)
        took = [int(x[DURATION]) for _, x in many]
        self.assertEqual(took, sorted(took, reverse=True))
        who = lambda lines: sorted(tuple(x[BEGIN:]) for _, x in lines)
        self.assertEqual(who(many), who(one))

    def test_pages(self):
        of_many, many = self.world.lines(self.many)
        for i in (0, 99, 2500, of_many["size"] - 7):
            self.assertEqual(self.world.lines(self.many, i, 20)[1], many[i:i + 20])

    def test_groups(self):
        self.same_groups(self.world.groups(self.many), self.world.groups(self.one))
        self.same_paths(self.world.paths(self.many), self.world.paths(self.one))
        said = self.world.ask(self.many, f"data/{GROUPS}/tree")["statusMessage"]
        of = [int(n) for n in re.findall(r"by the paths of 1000 of (\d+) requests", said)]
        self.assertEqual(len(of), 3)
        self.assertEqual(sum(of), self.world.lines(self.one, 0, 1)[0]["size"])


class Faults(Compared):
    def test_one_is_killed(self):
        """The others' groups and requests remain, and who is missing is named; with it all are back."""
        cluster, one, many = self.world.cluster, self.one, self.many
        before, paths = self.world.groups(many), self.world.paths(many)
        cluster.nodes["db"].kill()
        answer = self.world.ask(many, f"data/{GROUPS}/tree")
        self.assertEqual([x["host"] for x in answer["hosts"]["lacking"]], ["db"])
        self.assertIn("without db", answer["statusMessage"])
        left = answer["model"]["entries"]
        self.assertEqual([e["labels"][1:] for e in left],
                         [e["labels"][1:] for e in before if e["metadata"]["hostId"] == ["web"]])
        self.assertEqual([e["labels"][0] for e in left], [str(i + 1) for i in range(len(left))])
        answer = self.world.ask(many, f"data/{PATHS}/tree")
        self.assertEqual([x["host"] for x in answer["hosts"]["lacking"]], ["db"])
        now = roots_of(answer["model"])
        self.assertEqual([root["is"]["Group"] for root, _ in now], [e["labels"][0] for e in left])
        # Parts of db that web has been told are known.
        self.assertEqual([{k: e["metadata"]["total"] for k, e in below.items()} for _, below in now],
                         [{k: e["metadata"]["total"] for k, e in below.items()} for root, below in paths
                          if root["metadata"]["hostId"] == ["web"]])
        answer = self.world.ask(many, f"table/{LIST}/lines", requested_table_index=0, requested_table_count=100)
        self.assertEqual([x["host"] for x in answer["hosts"]["lacking"]], ["db"])
        lines = [[c["content"] for c in x["cells"]] for x in answer["model"]["lines"]]
        self.assertEqual({x[SERVER] for x in lines}, {"web"})
        self.assertLessEqual({x[GROUP] for x in lines}, {e["labels"][0] for e in left})
        # web, restarted meanwhile, returns paths that end where db would go on, with a note, and queries again later.
        cluster.nodes["web"].kill()
        wait_for("web is away", lambda: self.stages()["web"] == "AWAY")
        cluster.nodes["web"].start()
        wait_for("web is back", lambda: self.stages()["web"] == "UP")
        wait_for("its groups", lambda: self.groups_now(many) and "web: without what db" in self.said(many))
        cluster.nodes["db"].start()
        wait_for("db is back", lambda: self.stages()["db"] == "UP")
        wait_for("all groups", lambda: self.said(many) == "Completed" and len(self.groups_now(many)) == len(before))
        self.same_groups(self.world.groups(many), self.world.groups(one))
        self.same_paths(self.world.paths(many), self.world.paths(one))

    def stages(self):
        return {s["name"]: s["status"] for s in self.many.get("/servers").json}

    def said(self, server):
        return self.world.ask(server, f"data/{GROUPS}/tree")["statusMessage"]

    def groups_now(self, server):
        return (self.world.ask(server, f"data/{GROUPS}/tree")["model"] or {"entries": []})["entries"]


class Alone(Case):
    """Servers that are no nodes, each on its own clock, as one server that does not synchronise."""

    def test_who_asked(self):
        shop = Shop()
        self.addCleanup(shop.stop)
        lines = []
        for server in (shop.all, shop.many):
            path = f"/experiments/{shop.uuid}/outputs/table/{LIST}/lines"
            model = server.model(path, {"requested_table_index": 0, "requested_table_count": 100})
            lines.append([[c["content"] for c in x["cells"]] for x in model["lines"]])
        self.assertEqual([x[:GROUP] for x in lines[1]], [x[:GROUP] for x in lines[0]])
        self.assertEqual({x[CLIENT] for x in lines[1]}, {"client", "web"})
        # The path is of its machine alone.
        self.assertEqual({x[MACHINES] for x in lines[1] if x[SERVER] == "web"}, {"web"})
        groups = shop.many.model(f"/experiments/{shop.uuid}/outputs/data/{GROUPS}/tree")["entries"]
        self.assertTrue(any("web tier network" in e["labels"][7] for e in groups))
        # Senseless trails belong to no server.
        for trails in (["", "zz", "01", 1, None, "01" * 5000], "x", []):
            answer = shop.servers["web"].post(path, {"requested_table_index": 0, "requested_table_count": 1,
                                                     "requested_trails": trails, "requested_times": [None]})
            self.assertEqual(answer.status, 200)
            if isinstance(trails, list):
                self.assertEqual(answer.json["model"]["lines"], [])


if __name__ == "__main__":
    main()
