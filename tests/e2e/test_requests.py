# SPDX-License-Identifier: MIT
"""`weft requests` against what the recorded programs logged (ground-truth.json), and against made worlds of which every
request, path and group is known: the definitions of docs/concepts.md, written down a second time."""
import collections
import csv
import io
import math
import os
import re

from tsp_server import Server
from weft_e2e import Case, Truth, load, main, new_dice, scenario, scratch, weft
from world import TCP, UDP, Semaphore, World
from world_path import Oracle
from world_trace import START_NS

MS = 1_000_000
FOLDED = ("preempted", "interrupted", "ipi", "stolen", "hypervisor")


class Requests(Case):
    def requests(self, *args):
        answer = self.json("requests", *args, "-q")
        self.assertEqual(set(answer), {"requests", "groups", "found", "looked"})
        took = [r["end"] - r["begin"] for r in answer["requests"]]
        self.assertEqual(took, sorted(took, reverse=True), "the slowest first")
        for r in answer["requests"]:
            self.assertEqual(set(r), {"host", "tid", "comm", "client", "local", "begin", "end", "bytes", "machines",
                                      "group"})
            self.assertLessEqual(r["begin"], r["end"])
            self.assertTrue(all(n > 0 for n in r["bytes"]), r)
            self.assertEqual(len(set(r["machines"])), len(r["machines"]))
        self.assertEqual([g["id"] for g in answer["groups"]], list(range(1, len(answer["groups"]) + 1)))
        self.assertEqual(sum(g["count"] for g in answer["groups"]), answer["found"])
        for g in answer["groups"]:
            self.assertLessEqual(g["p50"], g["p90"])
            self.assertLessEqual(g["p99"], g["max"])
            grew = [x["slow"] - x["typical"] for x in g["grew"]]
            self.assertEqual(grew, sorted(grew, reverse=True))
            self.assertTrue(all(x > 0 for x in grew))
        return answer


def plain(r):
    """A request of the verb as the cells of a line."""
    seen = r["client"] if isinstance(r["client"], dict) else {}
    cells = {"Begin": r["begin"], "Duration": r["end"] - r["begin"], "Server": r["host"], "TID": r["tid"],
             "Thread": r["comm"], "Client": seen.get("host", r["client"]), "Client TID": seen.get("tid"),
             "Client thread": seen.get("comm"), "Client begin": seen.get("begin"), "Client end": seen.get("end"),
             "Bytes in": r["bytes"][0], "Bytes out": r["bytes"][1], "Group": r["group"],
             "Machines": " ".join(r["machines"])}
    return {k: "" if v is None else str(v) for k, v in cells.items()}


class Requested:
    """The table of requests of an experiment."""

    def __init__(self, server, uuid):
        self.server, self.base = server, f"/experiments/{uuid}/outputs"
        self.columns = server.model(f"{self.base}/table/weft.requests/columns")

    def id(self, name):
        return str(next(c["id"] for c in self.columns if c["name"] == name))

    def lines(self, index, count, more=None):
        model = self.server.model(f"{self.base}/table/weft.requests/lines",
                                  {"requested_table_index": index, "requested_table_count": count, **(more or {})})
        names = {c["id"]: c["name"] for c in self.columns}
        return [dict(zip((names[i] for i in model["columnIds"]), (c["content"] for c in line["cells"])))
                for line in model["lines"]]


class Logged(Requests):
    """Client, web and database logged each request, when they did what."""

    name = "three-tier"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace, cls.store = scenario(cls.name), scratch()
        cls.truth, cls.log = Truth(cls.trace), load(cls.trace, "ground-truth.json")["log"]

    def at(self, host, monotonic):
        t = self.truth.trace_time(host, monotonic)
        return t if host == "client" else int(self.maps[host].to_reference(t))

    def test_every_request(self):
        self.maps = self.sync(self.trace, self.store, "--reference", "client")[1]
        answer = self.requests(self.trace, "--store", self.store, "--reference", "client")
        in_time = sorted(answer["requests"], key=lambda r: r["begin"])
        for host, above in (("web", "client"), ("db", "web")):
            told = [r for r in in_time if r["host"] == host]
            logged = sorted((x for x in self.log[host] if x.get("t_reply")), key=lambda x: x["t_recv"])
            self.assertEqual(len(told), len(logged))
            for r, line in zip(told, logged):
                with self.subTest(host=host, id=line["id"]):
                    self.check(r, line, host, above)

    def check(self, r, line, host, above):
        self.assertEqual(r["tid"], line["tid"])
        self.assertFalse(r["local"])
        # The program had read what came, and was about to send: at most the time in the kernel lies between. Its host's
        # clock is mapped once here, and once there.
        came, went = (self.at(host, line[key]) for key in ("t_recv", "t_reply"))
        self.assertTrue(-1000 <= came - r["begin"] < 8 * MS, came - r["begin"])
        self.assertTrue(-1000 <= r["end"] - went < 8 * MS, r["end"] - went)
        c = next(x for x in self.log[above] if x["id"] == line["id"])
        client = r["client"]
        self.assertEqual((client["host"], client["tid"]), (above, c["tid"]))
        sent, received = (self.at(above, c[key]) for key in
                          (("t_send", "t_recv") if above == "client" else ("t_down_send", "t_down_recv")))
        self.assertLess(abs(client["begin"] - sent), 8 * MS)
        self.assertTrue(-1000 <= received - client["end"] < 8 * MS, received - client["end"])
        self.assertLess(client["begin"], r["begin"] + MS)
        self.assertLess(r["end"], client["end"] + MS)
        if above == "client":
            self.assertEqual(r["bytes"][0], len(c["spec"]) + 1)
        asks_db = host == "db" or line["t_down_send"]
        self.assertEqual("db" in r["machines"], bool(asks_db), r)

    def test_machines_are_those_of_the_path(self):
        for r in self.requests(self.trace, "--store", self.store)["requests"]:
            path = self.critpath(self.trace, self.store, f"{r['host']}:{r['tid']}", r["begin"], r["end"],
                                 "--request")
            self.assertEqual(r["machines"], list(dict.fromkeys(s["host"] for s in path["segments"])))

    def test_sums_of_sets(self):
        """The totals of a set are those of its requests' own paths, to the ns; where the thread was forked for the
        request, the question for its path alone begins with its life, and what was before is in the set's only."""
        answer = self.requests(self.trace, "--store", self.store)
        groups = range(1, len(answer["groups"]) + 1)
        self.assertGreater(len(groups), 2)
        of_group = {n: [r for r in answer["requests"] if r["group"] == n] for n in groups}
        large = max(groups, key=lambda n: len(of_group[n]))
        tenth = max(1, int(len(of_group[large]) * 0.4 + 0.5))
        sets = {"all": answer["requests"], "host=db": [r for r in answer["requests"] if r["host"] == "db"],
                **{f"group={n}": of_group[n] for n in groups}, f"group={large},slowest=40%": of_group[large][:tenth],
                f"fastest=40%,group={large}": of_group[large][-tenth:]}
        paths, whole = {}, []
        for r in answer["requests"]:
            path = self.critpath(self.trace, self.store, f"{r['host']}:{r['tid']}", r["begin"], r["end"], "--request")
            paths[r["begin"], r["tid"]] = path
        for name, requests in sets.items():
            told = self.json("critpath", "--requests", name, self.trace, "--store", self.store)
            wanted, unborn = {}, 0
            for r in requests:
                path = paths[r["begin"], r["tid"]]
                unborn += path["query"]["begin"] - r["begin"] + r["end"] - path["query"]["end"]
                for t in path["totals"]:
                    key = t["host"], t["comm"], t["state"]
                    wanted[key] = wanted.get(key, 0) + t["duration"]
            with self.subTest(name):
                got = {(t["host"], t["comm"], t["state"]): t["duration"] for t in told["totals"]}
                if unborn:
                    self.assertGreaterEqual(min(got[key] - wanted[key] for key in wanted), 0)
                else:
                    whole.append(name)
                    self.assertEqual(got, wanted)
                self.assertEqual(sum(got.values()), sum(wanted.values()) + unborn)
                self.assertEqual((told["requests"], told["of"], told["left_out"], told["duration"]),
                                 (len(requests), len(sets["host=db"] if name == "host=db" else answer["requests"]), 0,
                                  sum(r["end"] - r["begin"] for r in requests)))
        self.assertGreater(len(whole), 3)
        self.assertGreater(len(of_group[large]), 3)
        self.check_two_sets(f"group={large},slowest=40%", "host=db")

    def check_two_sets(self, a, b):
        """Checks two sets side by side: means of each by itself, greatest difference first."""
        asked = (self.trace, "--store", self.store)
        sets = [self.json("critpath", "--requests", x, *asked) for x in (a, b)]
        told = self.json("critpath", "--requests", a, "--compare", b, *asked)
        for name, x in zip("ab", sets):
            self.assertEqual(told[name], {k: x[k] for k in ("requests", "of", "left_out", "duration")})
            self.assertEqual({(p["host"], p["comm"], p["state"]): p[name] for p in told["parts"] if p[name]},
                             {(t["host"], t["comm"], t["state"]): t["each"] for t in x["totals"] if t["each"]})
        apart = [abs(p["b"] - p["a"]) for p in told["parts"]]
        self.assertEqual(apart, sorted(apart, reverse=True))
        self.assertGreater(apart[0], 0)
        rows = csv.DictReader(io.StringIO(self.ok("critpath", "--requests", a, "--compare", b, *asked, "--format",
                                                  "csv").text))
        self.assertEqual([int(r["difference"]) for r in rows], [p["b"] - p["a"] for p in told["parts"]])

    def test_wrong_sets(self):
        for words, why in ((["--requests", "group=0"], "is no number of a group"),
                           (["--requests", "group=99"], "there is no group 99"),
                           (["--requests", "slowest=10"], "give one as slowest=10%"),
                           (["--requests", "slowest=1%,fastest=1%"], "not both"), (["--requests", "web"], "is none of"),
                           (["--requests", "all", "--thread", "1"], "leave --thread out"),
                           (["--requests", "all", "--polling", "assume"], "sums up many paths"),
                           (["--requests", "group=1,group=2"], "'group=2' is given twice"),
                           (["--requests", "all", "--compare", "client:1,0,1"], "is none of all, group=N"),
                           (["--requests", "all", "--segments"], "sums up many paths")):
            run = weft("critpath", *words, self.trace, "--store", self.store)
            self.assertNotEqual(run.code, 0, words)
            self.assertIn(why, run.message)

    def test_choices(self):
        asked = (self.trace, "--store", self.store, "--reference", "client")
        everything = self.requests(*asked)
        n = len(everything["requests"])
        self.assertEqual(self.requests(*asked, "--limit", 3)["requests"], everything["requests"][:3])
        slow = self.requests(*asked, "--slower", "50ms")
        self.assertEqual(slow["requests"], [r for r in everything["requests"] if r["end"] - r["begin"] >= 50 * MS])
        self.assertEqual(slow["groups"], everything["groups"])
        of_db = self.requests(*asked, "--host", "db")
        self.assertEqual(of_db["found"], sum(r["host"] == "db" for r in everything["requests"]))
        middle = sorted(everything["requests"], key=lambda r: r["begin"])[n // 2]["begin"]
        early, late = (self.requests(*asked, side, middle)["requests"] for side in ("--end", "--begin"))
        self.assertEqual(len(early), sum(r["begin"] <= middle for r in everything["requests"]))
        self.assertEqual(len(late), sum(r["end"] >= middle for r in everything["requests"]))

    def test_forms(self):
        asked = ("requests", self.trace, "--store", self.store, "-q", "--reference", "db")
        told = self.json(*asked)["requests"]
        rows = list(csv.DictReader(io.StringIO(self.ok(*asked, "--format", "csv").text)))
        self.assertEqual(len(rows), len(told))
        for row, r in zip(rows, told):
            self.assertEqual([row[k] for k in ("host", "tid", "begin", "end", "group", "client", "client_begin")],
                             [str(x) for x in (r["host"], r["tid"], r["begin"], r["end"], r["group"],
                                               r["client"]["host"], r["client"]["begin"])])
            self.assertEqual((row["machines"], row["local"]), (" ".join(r["machines"]), "false"))
        table = self.ok(*asked).text
        self.assertEqual(len(re.findall(r"(?m)^ *\+.* tier ", table)), len(told))
        self.assertEqual(self.ok(*asked).text, table)
        # The path that is offered is that of the slowest.
        words = re.search(r"(?m)^Try: weft (critpath) TRACE… (.*)$", table).group(2).split()
        path = self.json("critpath", self.trace, "--store", self.store, *words)
        self.assertEqual([path["query"][k] for k in ("host", "tid", "begin", "end")],
                         [told[0][k] for k in ("host", "tid", "begin", "end")])

    def test_served(self):
        """Served tables: equal to the verb's lines, and to the programs' logs."""
        verb = self.requests(self.trace, "--store", self.store)
        with Server(self.trace, store=self.store) as server:
            uuid = server.first()["UUID"]
            table = Requested(server, uuid)
            told = table.lines(0, 1000)
            self.assertEqual(told, [plain(r) for r in verb["requests"]])
            self.assertEqual(table.lines(3, 2), told[3:5])
            slow = table.lines(0, 1000, {"table_filter_expressions": {table.id("Server"): "^db$"}})
            self.assertEqual(slow, [r for r in told if r["Server"] == "db"])
            groups = server.model(f"{table.base}/data/weft.requests.groups/tree")
            self.check_groups(groups, verb)
            self.check_paths(server.model(f"{table.base}/data/weft.requests.paths/tree"), groups, verb)
            self.check_bars(server, table.base, told)
        for host, above in (("web", "client"), ("db", "web")):
            logged = sorted((x for x in self.log[host] if x.get("t_reply")), key=lambda x: x["t_recv"])
            mine = sorted((r for r in told if r["Server"] == host), key=lambda r: int(r["Begin"]))
            self.assertEqual(len(mine), len(logged))
            for r, line in zip(mine, logged):
                self.assertEqual(r["TID"], str(line["tid"]))
                self.assertTrue(-1000 <= int(r["Duration"]) - (line["t_reply"] - line["t_recv"]) < 16 * MS, r)
                self.assertEqual(r["Client"], above)
        self.assertEqual(sum(r["Client"] == "client" for r in told), 10, "ten requests were made")

    def check_groups(self, tree, verb):
        names = [h["name"] for h in tree["headers"]]
        told = [dict(zip(names, e["labels"])) for e in tree["entries"]]
        self.assertEqual([(int(t["Group"]), t["Server"], int(t["Count"])) for t in told],
                         [(g["id"], f"{g['host']} {g['comm']}", g["count"]) for g in verb["groups"]])
        for e, t, g in zip(tree["entries"], told, verb["groups"]):
            self.assertEqual([e["metadata"][k][0] for k in ("count", "p50", "p90", "p99", "maximum")],
                             [g[k] for k in ("count", "p50", "p90", "p99", "max")])
            shape = [self.words_of(p) for p in g["shape"]]
            self.assertEqual(t["Path"].split(" · "), shape[:3] + ["…"] * (len(shape) > 3))
            grew = t["Grew in the slow ones"]
            self.assertEqual([x.split(" ", 2)[2] for x in grew.split(" · ")] if grew else [],
                             [self.words_of(p) for p in g["grew"]][:2])

    def check_paths(self, tree, groups, verb):
        """Checks all parts of the paths: as `critpath --requests` sums them up, and with the growth in the groups."""
        names, below, roots = [h["name"] for h in tree["headers"]], collections.defaultdict(list), []
        for e in tree["entries"]:
            (roots if e["parentId"] == -1 else below[e["parentId"]]).append(e)
        self.assertEqual(sum(len(x) for x in below.values()) + len(roots), len(tree["entries"]))
        label = lambda e, name: e["labels"][names.index(name)]  # noqa: E731
        number = lambda e, key: e["metadata"][key][0]  # noqa: E731
        for root, of, g in zip(roots, groups["entries"], verb["groups"], strict=True):
            self.assertEqual((label(root, "Group"), label(root, "Element")), tuple(of["labels"][:2]))
            self.assertEqual([root["metadata"][k] for k in ("group", "count", "first")],
                             [of["metadata"][k] for k in ("group", "count", "first")])
            told = self.json("critpath", "--requests", f"group={g['id']}", self.trace, "--store", self.store)
            wanted = collections.Counter()
            for t in told["totals"]:
                folded = re.sub(r"(?<=[^A-Za-z0-9])\d+", "#", t["comm"]) or "interrupt"
                wanted[f"{t['host']} {folded}", t["state"]] += t["duration"]
            parts, got = below[root["id"]], collections.Counter()
            for p in parts:
                got[label(p, "Element").replace(" another ", " "), label(p, "State")] += number(p, "total")
                self.assertEqual(number(p, "mean"), number(p, "total") // g["count"])
                self.assertEqual(label(p, "Share"), f"{100 * number(p, 'total') / told['duration']:.1f} %")
            self.assertEqual(got, wanted)
            self.assertEqual(number(root, "total"), told["duration"])
            totals = [number(p, "total") for p in parts]
            self.assertEqual(totals, sorted(totals, reverse=True))
            figures = {f"{label(p, 'Element')} {label(p, 'State')}": (number(p, "typical"), number(p, "slow"))
                       for p in parts}
            for grown in g["grew"]:
                self.assertEqual(figures[self.words_of(grown)], (grown["typical"], grown["slow"]))
        self.assertTrue(any(g["grew"] for g in verb["groups"]))

    @staticmethod
    def words_of(part):
        return f"{part['host']} {'another ' * part.get('another', False)}{part['comm'] or 'interrupt'} {part['state']}"

    def check_bars(self, server, base, told):
        output, x = f"{base}/genericXY/weft.requests.durations", server.first()
        item = server.model(f"{output}/tree")["entries"][0]["id"]

        def bars(begin, end):
            asked = {"requested_timerange": {"start": begin, "end": end, "nbSamples": 10}, "requested_items": [item]}
            [series] = server.model(f"{output}/xy", asked)["series"]
            return [(r["start"], r["end"], n) for r, n in zip(series["xRanges"], series["yValues"])]

        everything = bars(x["start"], x["end"])
        for begin, end, n in everything:
            self.assertAlmostEqual(end / begin, 10 ** 0.125, places=3)
            self.assertEqual(n, sum(begin <= int(r["Duration"]) < end for r in told))
        self.assertEqual(sum(n for *_, n in everything), len(told))
        first = min(told, key=lambda r: int(r["Begin"]))
        self.assertEqual(sum(n for *_, n in bars(x["start"], int(first["Begin"]))), 1)

    def test_none_there(self):
        run = self.ok("requests", self.trace, "--store", self.store, "--host", "client")
        self.assertIn("no requests there", run.message)

    def test_wrong_use(self):
        for wrong in (("--slower", "fast"), ("--slower", "-1s"), ("--host", "nobody"), ("--limit", "many"),
                      ("--begin", "+2s", "--end", "+1s"), ("--reference", "nobody"), ("--format", "xml")):
            run = weft("requests", self.trace, "--store", self.store, *wrong)
            self.assertEqual(run.code, 2, run)
        self.assertEqual(weft("requests").code, 2)


class Recorded(Requests):
    def test_slow_disk(self):
        """The database's disk took 40 writes a second: that is what slow requests waited for."""
        answer = self.requests(scenario("three-tier-disk"), "--store", scratch())
        slow = [g for g in answer["groups"] if g["max"] > 80 * MS and g["grew"]]
        disk = [g for g in slow if g["grew"][0]["state"] == "block-device" and g["grew"][0]["host"] == "db"]
        self.assertGreater(sum(g["count"] for g in disk), answer["found"] / 4)
        self.assertTrue(any(g["grew"][0]["slow"] > 60 * MS for g in disk))

    def test_a_copy_is_one_request(self):
        """scp copied 3 MB to each of three machines: most bytes of each are in one request, and none is in two."""
        trace, store = scenario("scp-net"), scratch()
        told = self.requests(trace, "--store", store)["requests"]
        flows = self.json("flows", trace, "--store", store, "--connections", "-q")
        for host in ("n2", "n3", "n4"):
            ins = [r["bytes"][0] for r in told if r["host"] == host]
            moved = sum(f["bytes"] for f in flows if f["to"] == host and f["protocol"] == "tcp")
            self.assertGreater(max(ins), 1_500_000)
            self.assertLessEqual(sum(ins), moved)
            self.assertGreater(sum(ins), 3_000_000)

    def test_local(self):
        answer = self.requests(scenario("live-relayd"), "--store", scratch())
        local = [r for r in answer["requests"] if r["local"]]
        self.assertGreater(len(local), 100)
        for r in local:
            self.assertEqual((r["client"]["host"], r["machines"]), (r["host"], [r["host"]]))
            self.assertLessEqual(r["client"]["begin"], r["begin"])
            self.assertLessEqual(r["end"], r["client"]["end"])

    def test_a_sample(self):
        """Sample of the pairs of four machines that sent each other 6583 requests."""
        run = self.ok("requests", scenario("clocks"), "--store", scratch(), "--limit", "5")
        self.assertIn("groups are told by the paths of 3000 of 6583 requests", run.message)

    def test_nothing_there(self):
        run = self.ok("requests", scenario("rotated"), "--store", scratch())
        self.assertIn("no requests", run.message)


# ---- made worlds ----

Asked = collections.namedtuple("Asked", "n m work")


class Line:
    """Connection whose client sends one request after the other, with the times of all bytes."""

    def __init__(self, ours, theirs, asked):
        self.ours, self.theirs, self.asked = ours, theirs, asked
        self.who = {ours: [], theirs: []}  # sent each message
        self.starts = {ours: ours.seq, theirs: theirs.seq}
        self.sent, self.came = {ours: [], theirs: []}, {ours: [], theirs: []}  # messages by sender: (time, first, past)


class Served(World):
    """A world whose packets are written down by connection."""

    def __init__(self, *args, **how):
        self.lines = {}
        super().__init__(*args, **how)

    def note(self, p, what):
        line = self.lines.get((p.source, p.sport, p.target, p.dport))
        if line:
            sender = line.ours if line.ours.address == (p.source, p.sport) else line.theirs
            first = (p.seq - line.starts[sender]) if p.protocol == TCP else p.order
            getattr(line, what)[sender].append((self.now, first, first + p.bytes))

    def do_send(self, thread, end, n):
        self.lines[(*end.address, *end.peer.address)].who[end].append(thread)
        return super().do_send(thread, end, n)

    def put_on_wire(self, host, cpu, devices, p):
        if p.protocol == UDP:
            line = self.lines[p.source, p.sport, p.target, p.dport]
            sender = line.ours if line.ours.address == (p.source, p.sport) else line.theirs
            p.order = sum(past - first for _, first, past in line.sent[sender])
        super().put_on_wire(host, cpu, devices, p)
        if host not in self.forwarders:
            self.note(p, "sent")

    def take_off_wire(self, host, cpu, p):
        super().take_off_wire(host, cpu, p)
        self.note(p, "came")


def client(dice, line):
    for a in line.asked:
        yield "send", line.ours, a.n
        if dice.random() < 0.3:
            yield "compute", dice.randint(1000, 100000)
        yield "receive", line.ours, a.m
        yield "sleep", dice.randint(10000, 800000)


def work(a):
    yield "compute", a.work["compute"]
    if a.work["disk"]:
        yield "disk", a.work["disk"]
    if a.work["below"]:
        below, n = a.work["below"]
        yield "send", below.ours, n
        yield "receive", below.ours, below.asked[0].m


def server(line):
    for a in line.asked:
        yield "receive", line.theirs, a.n
        yield from work(a)
        yield "send", line.theirs, a.m


def reader(line, ready, done):
    for a in line.asked:
        yield "receive", line.theirs, a.n
        yield "post", ready
        yield "wait", done


def worker(line, ready, done):
    for a in line.asked:
        yield "wait", ready
        yield from work(a)
        yield "send", line.theirs, a.m
        yield "post", done


def forker(line, done):
    """Server with a thread for each request, created after the request arrived."""
    def child(a):
        yield from work(a)
        yield "send", line.theirs, a.m
        yield "post", done
    for a in line.asked:
        yield "receive", line.theirs, a.n
        yield "fork", "child", child(a)
        yield "wait", done


def of_bytes(list_of, first, past):
    """The first packet that held any of the bytes, and the first that held the last one."""
    return (next(t for t, a, b in list_of if a < past and b > first),
            next((t for t, a, b in list_of if a < past <= b), None))


class Made(Requests):
    """Worlds of which every request is known: when its first byte came, and when its last one first went."""

    def world(self, seed, udp=False, **how):
        dice = new_dice(seed)
        world = Served(dice, 3, **how)
        hosts = [h for h in world.hosts if h not in world.forwarders]
        lines = []
        for i in range(5):
            ours, theirs = world.connect(hosts[i % 3], hosts[(i + 1 + i // 4) % 3], UDP if udp and i == 3 else TCP)
            ours.address = (ours.address[0], 40000 + i)  # port number as Linux assigns it to clients
            asked = [Asked(dice.randint(1, 3000), dice.randint(1, 3000), self.piece(dice, i)) for _ in range(40)]
            line = Line(ours, theirs, asked)
            lines.append(line)
            for a, b in ((ours, theirs), (theirs, ours)):
                world.lines[(*a.address, *b.address)] = line
            if i == 4:
                world.spawn(theirs.host, "forker", forker(line, Semaphore()))
            elif i % 2:
                ready, done = Semaphore(), Semaphore()
                world.spawn(theirs.host, "reader" if i == 1 else f"worker-{i + 1}", reader(line, ready, done))
                world.spawn(theirs.host, f"worker-{i}", worker(line, ready, done))
            else:
                world.spawn(theirs.host, "server", server(line))
            world.spawn(ours.host, "client", client(dice, line))
        world.run(world.now + 60 * MS)
        folder = scratch()
        for host in world.hosts:
            host.recording.write(os.path.join(folder, host.name, "boot0"))
        return world, folder, lines

    @staticmethod
    def piece(dice, i):
        slow = dice.random() < 0.15
        return {"compute": dice.randint(100000, 300000) * (4 if slow and i % 2 else 1),
                "disk": dice.randint(200000, 500000) * (4 if slow else 1) if i in (1, 2) else 0, "below": None}

    @staticmethod
    def known(lines):
        """Returns the answered requests: (begin, end, host, thread, its client's thread, begin, end, bytes)."""
        for line in lines:
            first_in = first_out = 0
            for i, a in enumerate(line.asked):
                past_in, past_out = first_in + a.n, first_out + a.m
                if not any(b >= past_out for _, _, b in line.sent[line.theirs]):
                    # Replies incomplete at the end of the world are reported as far as they went.
                    begun = [x for x in line.sent[line.theirs] if x[1] < past_out and x[2] > first_out]
                    if begun:
                        yield None
                    break
                begin, _ = of_bytes(line.came[line.ours], first_in, past_in)
                asked, _ = of_bytes(line.sent[line.ours], first_in, past_in)
                _, end = of_bytes(line.sent[line.theirs], first_out, past_out)
                had = [t for t, first, past in line.came[line.theirs] if first < past_out <= past]
                yield (begin, end, line.theirs.host.name, line.who[line.theirs][i], line.who[line.ours][i], asked,
                       min(had, default=None), [a.n, a.m])
                first_in, first_out = past_in, past_out

    def check(self, world, folder, lines):
        answer = self.requests(folder, "--store", folder + ".stores", "--no-sync")
        known = list(self.known(lines))
        self.assertNotIn(None, known, "choose another seed: a reply is cut by the world's end")
        self.assertGreater(len(known), 60)
        at = lambda t: None if t is None else START_NS + t  # noqa: E731
        true = sorted((at(begin), at(end), host, thread.tid, thread.name, n,
                       {"host": c.host.name, "tid": c.tid, "comm": c.name, "begin": at(asked), "end": at(had)})
                      for begin, end, host, thread, c, asked, had, n in known)
        told = sorted((r["begin"], r["end"], r["host"], r["tid"], r["comm"], r["bytes"], r["client"])
                      for r in answer["requests"])
        self.assertEqual(told, true)
        self.check_groups(answer, known)

    # ---- groups, by the definition ----

    @staticmethod
    def parts(known):
        """Returns the parts of a request: (host, name, state, another) -> ns."""
        begin, end, _, thread, *_ = known
        names = {(t.host.name, t.tid): re.sub(r"(?<=[^A-Za-z0-9])\d+", "#", t.name)
                 for h in thread.host.world.hosts for t in h.threads}
        sums, last, oracle = collections.Counter(), {}, Oracle()
        path = oracle.path(thread, begin, end, request=True)
        for host, tid, _, until, _ in path:
            last[host, tid] = until
        woke = {(who.host.name, who.tid) for who, _, woken in oracle.signals if woken and who is not woken and
                names[who.host.name, who.tid] == names[woken.host.name, woken.tid]}
        for host, tid, since, until, state in path:
            another = (host, tid) in woke and any(
                h == host and names[h, other] == names[host, tid] and t > last[host, tid]
                for (h, other), t in last.items())
            sums[host, names[host, tid], state, another] += until - since
        return sums, (thread.host.name, names[thread.host.name, thread.tid])

    @staticmethod
    def folded(parts):
        out = collections.Counter()
        for (host, name, state, another), ns in parts.items():
            out[host, name, "running" if state in FOLDED else state, another] += ns
        return out

    def check_groups(self, answer, known):
        groups = []
        for k in sorted(known, key=lambda k: k[0]):
            parts, served_by = self.parts(k)
            took, folded = k[1] - k[0], self.folded(parts)
            whole = {p for p, ns in folded.items() if ns and ns >= took // 20}
            core = {p for p, ns in folded.items() if ns and ns >= took // 5 and p[2] != "network"}
            member = (took, k[0], parts, folded, whole)
            for g in groups:
                if g["by"] == served_by and core <= g["whole"] and g["core"] <= whole:
                    g["members"].append(member)
                    break
            else:
                groups.append({"by": served_by, "whole": whole, "core": core, "members": [member]})
        groups.sort(key=lambda g: -len(g["members"]))
        self.assertEqual([g["count"] for g in answer["groups"]], [len(g["members"]) for g in groups])
        for told, g in zip(answer["groups"], groups):
            self.assertEqual((told["host"], told["comm"]), g["by"])
            self.check_group(told, sorted(g["members"], key=lambda m: m[:2]))

    def check_group(self, told, members):
        def rank(p):
            return math.ceil(len(members) * p / 100) - 1
        for p in (50, 90, 99):
            self.assertEqual(told[f"p{p}"], members[rank(p)][0])
        self.assertEqual(told["max"], members[-1][0])
        parts = {p for m in members for p in m[4]}
        shape = [p for p in parts if 2 * sum(p in m[4] for m in members) >= len(members)]
        time = {p: sum(m[3][p] for m in members if p in m[4]) for p in shape}
        self.assertEqual([self.told_part(x) for x in told["shape"]],
                         sorted(shape, key=lambda p: -time[p]))
        half, slow = members[:rank(50) + 1], members[rank(90):]
        grew = {}
        for p in {p for m in slow for p in m[2]} if slow[0][0] > half[-1][0] else ():
            typical = sorted(m[2][p] for m in half)[math.ceil(len(half) / 2) - 1]
            mean = math.floor(sum(m[2][p] for m in slow) / len(slow) + 0.5)
            if mean > typical:
                grew[p] = (typical, mean)
        everything = sum(b - a for a, b in grew.values())
        expected = {p: x for p, x in grew.items() if x[1] - x[0] >= everything // 20}
        self.assertEqual({self.told_part(x): (x["typical"], x["slow"]) for x in told["grew"]}, expected)

    @staticmethod
    def told_part(x):
        return x["host"], x["comm"], x["state"], x.get("another", False)

    def test_nothing_lost(self):
        self.check(*self.world(1))

    def test_datagrams(self):
        self.check(*self.world(2, udp=True))

    def test_loss(self):
        self.check(*self.world(3, loss=0.05))

    def test_reordered(self):
        self.check(*self.world(4, reorder=0.5))

    def test_forwarders(self):
        self.check(*self.world(5, forwarders=1))

    def test_lost_events(self):
        """Lost events may hide or shorten requests; no request is joined of two, or assigned to another thread."""
        dice = new_dice(6)
        for i in range(3):
            world, _, lines = self.world(10 + i)
            folder, n = scratch(), 0
            for host in world.hosts:
                events = [len(c) for c in host.recording.cpus]
                lost = [(cpu, dice.randrange(k), dice.randint(1, 40)) for cpu, k in enumerate(events) if k > 100
                        for _ in range(6)]
                host.recording.write(os.path.join(folder, host.name, "boot0"), lost)
            known = [k for k in self.known(lines) if k]
            for r in self.requests(folder, "--store", folder + ".stores", "--no-sync")["requests"]:
                # The forker's children cannot be distinguished if its switch was lost.
                around = [k for k in known if (k[2], k[3].name) == (r["host"], r["comm"])
                          and (r["tid"] == k[3].tid or r["comm"] == "child")
                          and START_NS + k[0] <= r["begin"] and r["end"] <= START_NS + k[1]]
                self.assertEqual(len(around), 1, r)
                n += 1
            self.assertGreater(n, len(known) // 3)


if __name__ == "__main__":
    main()
