#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weft coordinate while its servers are stopped, killed, restarted or send nonsense: the others' data arrive, missing
servers are named, and no client waits for them longer than documented."""
import http.client
import json
import os
import signal
import threading
import time

from coordinated import COMPARISON, HOSTS, PATH, Coordinator, Shop, StandIn, serve
from tsp_server import EVENTS, THREAD_STATUS
from weft_e2e import SLOWDOWN, Case, main, scratch

NOTICED_S = 3 + 2 * SLOWDOWN  # limit: one round of probes, its time-out, and the delay of a busy machine
BACK_S = 5 * SLOWDOWN


class Faults(Case):
    def setUp(self):
        self.shop = Shop()
        self.many = self.shop.many
        self.uuid = self.shop.uuid
        self.whole = self.many.opened(self.uuid)
        self.tree = f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tree"
        self.lines = f"/experiments/{self.uuid}/outputs/table/{EVENTS}/lines"

    def tearDown(self):
        self.shop.stop()

    def roots(self, answer):
        return [e["labels"][0] for e in answer.json["model"]["entries"] if e["parentId"] == -1]

    def ask(self, path, parameters=None):
        begun = time.monotonic()
        answer = self.many.post(path, parameters)
        self.assertLess(time.monotonic() - begun, NOTICED_S, f"{path} waited for a server that is away")
        self.assertEqual(answer.status, 200, answer)
        return answer

    @staticmethod
    def is_told(line):
        return not any(" is away)" in cell["content"] for cell in line["cells"])

    def lacking(self, host, seen=True):
        """Checks that every operation gives the others' data and names the missing host. seen: the table was read
        before."""
        others = [h for h in HOSTS if h != host]
        answer = self.ask(self.tree)
        self.assertEqual(self.roots(answer), others)
        self.assertEqual(answer.json["status"], "COMPLETED")
        self.assertEqual([(x["host"], x["status"]) for x in answer.json["hosts"]["lacking"]], [(host, "FAILED")])
        self.assertIn(f"without {host}: ", answer.json["statusMessage"])
        answer = self.ask(self.lines, {"requested_table_index": 100, "requested_table_count": 50})
        self.assertEqual([x["host"] for x in answer.json["hosts"]["lacking"]], [host])
        told = {line["cells"][1]["content"] for line in answer.json["model"]["lines"] if self.is_told(line)}
        self.assertLessEqual(told, set(others))
        self.assertEqual(len(answer.json["model"]["lines"]), 50)
        rest = sum(self.shop.servers[h].get(f"/experiments/{self.uuid}").json["nbEvents"] for h in others)
        self.assertEqual(answer.json["model"]["size"], self.whole["nbEvents"] if seen else rest)
        x = self.many.get(f"/experiments/{self.uuid}").json
        self.assertEqual((x["nbEvents"], [n["host"] for n in x["hosts"]["lacking"]]), (rest, [host]))
        self.assertNotEqual(x["version"], self.whole["version"])
        traces = self.many.get("/traces")
        self.assertIn(host, traces.headers["Warning"])
        self.assertEqual(len(traces.json), len(HOSTS), "where traces are is remembered")
        self.assertIn(host, self.many.get(f"/experiments/{self.uuid}/outputs").headers["Warning"])
        self.assertEqual(self.many.get("/health").status, 200)
        self.assertEqual({s["name"]: s["status"] for s in self.many.get("/servers").json}[host], "AWAY")

    def back(self, host):
        until = time.monotonic() + BACK_S
        while self.roots(answer := self.ask(self.tree)) != list(HOSTS):
            self.assertLess(time.monotonic(), until, f"{host} is not back")
            time.sleep(0.1)
        self.assertNotIn("hosts", answer.json)
        self.assertEqual(answer.json["statusMessage"], "Completed")
        self.assertEqual(self.many.opened(self.uuid)["nbEvents"], self.whole["nbEvents"])

    def test_stopped(self):
        self.many.get("/traces")
        before = self.ask(self.lines, {"requested_table_index": 900, "requested_table_count": 50}).json
        web = self.shop.servers["web"].process
        os.kill(web.pid, signal.SIGSTOP)
        try:
            self.lacking("web")
        finally:
            os.kill(web.pid, signal.SIGCONT)
        self.back("web")
        after = self.ask(self.lines, {"requested_table_index": 900, "requested_table_count": 50}).json
        self.assertEqual(before, after)
        self.assertIn("server web", self.many.errors())
        self.assertIn("is there again", self.many.errors())

    def page(self, **asked):
        return self.ask(self.lines, asked).json["model"]

    def test_lines_keep_their_numbers(self):
        """Lines of a server that is away are gaps, at the places where a client has seen them."""
        columns = [c["name"] for c in self.ask(self.lines.replace("/lines", "/columns")).json["model"]]
        trace, exact = columns.index("Trace"), columns.index("Timestamp ns")
        n = self.whole["nbEvents"]
        asked = [{"requested_table_index": at, "requested_table_count": 60} for at in (0, 900, n // 2, n - 30)]
        before = [self.page(**how) for how in asked]
        gaps = [line for page in before for line in page["lines"] if line["cells"][trace]["content"] == "web"]
        self.assertGreater(len(gaps), 5)
        web = self.shop.servers["web"]
        has = web.get(f"/experiments/{self.uuid}").json["nbEvents"]
        os.kill(web.process.pid, signal.SIGSTOP)
        try:
            self.page(**asked[0])  # detects that it is away
            begun = time.monotonic()
            for how, was in zip(asked, before):
                now = self.page(**how)
                self.assertEqual((now["size"], now["lowIndex"]), (was["size"], was["lowIndex"]))
                self.assertEqual(len(now["lines"]), len(was["lines"]))
                for one, other in zip(now["lines"], was["lines"]):
                    if other["cells"][trace]["content"] != "web":
                        self.assertEqual(one, other)
                        continue
                    self.assertFalse(self.is_told(one), one)
                    self.assertEqual(one["index"], other["index"])
                    for column in (trace, exact):
                        self.assertEqual(one["cells"][column], other["cells"][column])
            self.assertLess(time.monotonic() - begun, SLOWDOWN, "it is away and nobody is to wait for it")
            self.whole_while_away(n, has, exact)
            found = self.page(requested_table_index=0, requested_table_count=1, table_search_direction="NEXT",
                              table_search_expressions={str(trace): "web|db"})
            self.assertEqual(found["lines"][0]["cells"][trace]["content"], "db", "nobody knows what is in a gap")
        finally:
            os.kill(web.process.pid, signal.SIGCONT)
        self.back("web")
        self.assertEqual([self.page(**how) for how in asked], before)

    def whole_while_away(self, n, gaps, exact):
        """Reads the whole table, also unseen parts: each line of the others occurs once, in their order, with one
        number."""
        lines = []
        while len(lines) < n:
            page = self.page(requested_table_index=len(lines), requested_table_count=10000)
            self.assertEqual((page["lowIndex"], page["size"]), (len(lines), n))
            lines += page["lines"]
        self.assertEqual([line["index"] for line in lines], list(range(n)))
        told = [line for line in lines if self.is_told(line)]
        self.assertEqual(n - len(told), gaps)
        times = [int(line["cells"][exact]["content"]) for line in told]
        self.assertEqual(times, sorted(times))
        for k in (len(told) // 3, len(told) // 2, len(told) - 2):
            first = next(i for i in range(k + 1) if times[i] == times[k])
            page = self.page(requested_times=[times[k]], requested_table_count=200)
            at = next(line for line in page["lines"] if self.is_told(line))
            self.assertEqual(at, told[first])
            for back in (1, 7):
                alone = self.page(requested_table_index=told[k]["index"] - back, requested_table_count=back + 1)
                self.assertEqual(alone["lines"][-1], told[k])

    def test_outputs_of_a_server_that_is_away_stay_listed(self):
        """Outputs of a server that is away stay listed, also derived ones, with a note about their place; deleted ones
        do not return."""
        at = f"/experiments/{self.uuid}/outputs"
        tier = next(e for e in self.ask(self.tree).json["model"]["entries"]
                    if e["metadata"].get("hostId") == ["web"] and e["hasData"] and e["labels"][0] == "tier")
        made = [self.many.ask("POST", f"{at}/{PATH}", {
            "name": name, "sourceTypeId": "weft.critical-path",
            "parameters": {"thread": f"web:{tier['labels'][1]}", **more}}).json
                for name, more in (("all", {}), ("some", {"begin": self.whole["start"] + 10**9}))]
        before = self.many.get(at).json
        self.assertLess({o["id"] for o in made}, {o["id"] for o in before})
        self.assertEqual(self.many.delete(f"{at}/{PATH}/{made[1]['id']}").status, 200)
        path, tree = made[0]["id"], f"{at}/timeGraph/{made[0]['id']}/tree"
        sides = {h: {"thread": "1", "host": h} for h in HOSTS}
        pair = self.many.ask("POST", f"{at}/{COMPARISON}", {"name": "pair", "sourceTypeId": COMPARISON, "parameters": {
            "a": sides["db"], "b": sides["web"]}}).json["id"]
        before = self.many.get(at).json
        parts = self.many.model(f"{at}/data/{pair}/tree")
        whole = self.many.model(tree)
        others = {o["id"] for h in ("client", "db") for o in self.shop.servers[h].get(at).json}
        self.assertNotIn(path, others)
        web = self.shop.servers["web"]
        os.kill(web.process.pid, signal.SIGSTOP)
        try:
            self.ask(self.tree)  # detects that it is away
            answer = self.many.get(at)
            self.assertIn("web", answer.headers["Warning"])
            expected = [o for o in before if o["id"] != made[1]["id"]]
            self.assertEqual([o["id"] for o in answer.json], [o["id"] for o in expected])
            for o, was in zip(answer.json, expected):
                if o["id"] not in others:
                    self.assertTrue(o["description"].endswith(" (web is away)"), o)
                    o["description"] = o["description"].removesuffix(" (web is away)")
                self.assertEqual(o, was)
            one = self.many.get(f"{at}/{path}")
            self.assertTrue(one.json["description"].endswith(" (web is away)"), one)
            self.assertEqual(self.many.get(f"{at}/{made[1]['id']}").status, 404)
            answer = self.ask(tree).json
            self.assertEqual((answer["status"], answer["model"]), ("FAILED", None))
            self.assertEqual([x["host"] for x in answer["hosts"]["lacking"]], ["web"])
            self.assertEqual(self.many.delete(f"{at}/{PATH}/{path}").status, 503)
            self.comparing_without_web(at, pair, sides)
        finally:
            os.kill(web.process.pid, signal.SIGCONT)
        self.back("web")
        self.assertEqual(self.many.get(at).json, expected)
        self.assertEqual(self.many.model(tree), whole)
        self.assertEqual(self.many.model(f"{at}/data/{pair}/tree"), parts)

    def comparing_without_web(self, at, pair, sides):
        """Half of a comparison would be wrong; one of others lacks nothing."""
        compare = f"{at}/data/{COMPARISON}/tree"
        for path, asked in ((compare, {"a": sides["web"], "b": sides["db"]}),
                            (compare, {"a": sides["db"], "b": sides["web"]}), (f"{at}/data/{pair}/tree", None)):
            answer = self.ask(path, asked).json
            self.assertEqual((answer["status"], answer["model"]), ("FAILED", None))
            self.assertIn("without web: ", answer["statusMessage"])
            self.assertEqual([x["host"] for x in answer["hosts"]["lacking"]], ["web"])
        made = self.many.ask("POST", f"{at}/{COMPARISON}", {"name": "pair", "sourceTypeId": COMPARISON, "parameters": {
            "a": sides["db"], "b": sides["web"]}})
        self.assertEqual(made.status, 503, made)
        answer = self.ask(compare, {"a": sides["db"], "b": sides["client"]}).json
        while answer["status"] == "RUNNING":
            answer = self.ask(compare, {"a": sides["db"], "b": sides["client"]}).json
        self.assertEqual(answer["status"], "COMPLETED", answer)
        self.assertNotIn("hosts", answer)

    def test_killed_and_started_again(self):
        ids = {e["id"]: e["labels"] for e in self.ask(self.tree).json["model"]["entries"]}
        self.many.get("/traces")
        db = self.shop.servers["db"]
        db.stop(signal.SIGKILL)
        self.lacking("db", seen=False)
        self.shop.servers["db"] = serve("db", store=self.shop.stores["db"], listen=db.host)
        self.shop.servers["db"].opened(self.uuid)
        self.back("db")
        self.assertEqual({e["id"]: e["labels"] for e in self.ask(self.tree).json["model"]["entries"]}, ids)

    def test_all_away(self):
        for s in self.shop.servers.values():
            s.stop(signal.SIGKILL)
        answer = self.ask(self.tree)
        self.assertEqual((answer.json["status"], answer.json["model"]), ("FAILED", None))
        self.assertEqual([x["host"] for x in answer.json["hosts"]["lacking"]], list(HOSTS))
        for path in (f"/experiments/{self.uuid}", f"/experiments/{self.uuid}/outputs"):
            self.assertEqual(self.many.get(path).status, 503)
        self.assertEqual(self.many.get("/health").status, 503)

    def test_away_from_the_start(self):
        """The contents of a server that was never there are unknown, so it is named in every answer."""
        web = self.shop.servers["web"]
        os.kill(web.process.pid, signal.SIGSTOP)
        try:
            late = self.shop.coordinator()
            answer = late.post(self.tree)
            self.assertEqual([x["host"] for x in answer.json["hosts"]["lacking"]], ["web"])
            self.assertEqual(late.get("/experiments/none").status, 404)
        finally:
            os.kill(web.process.pid, signal.SIGCONT)
        until = time.monotonic() + BACK_S
        while "hosts" in late.post(self.tree).json:
            self.assertLess(time.monotonic(), until, "web is not noticed")
            time.sleep(0.1)
        self.assertEqual(late.stop(), 0)

    def test_many_requests_at_once(self):
        """Simultaneous requests, also while one server is stopped: memory is limited, and all are answered."""
        ids = [e["id"] for e in self.ask(self.tree).json["model"]["entries"]]
        states = self.tree.replace("/tree", "/states")
        times = {"start": self.whole["start"], "end": self.whole["end"], "nbTimes": 500}
        wrong = []

        def client(n):
            for k in range(4):
                path, parameters = [
                    (self.tree, {}),
                    (states, {"requested_timerange": times, "requested_items": ids}),
                    (self.lines, {"requested_table_index": 997 * (n + k), "requested_table_count": 100}),
                ][k % 3]
                answer = self.many.post(path, parameters, timeout=120)
                if answer.status != 200 or answer.json["status"] == "FAILED":
                    wrong.append(str(answer))

        threads = [threading.Thread(target=client, args=(n,)) for n in range(40)]
        web = self.shop.servers["web"].process
        for t in threads:
            t.start()
        time.sleep(0.2)
        os.kill(web.pid, signal.SIGSTOP)
        try:
            for t in threads:
                t.join()
        finally:
            os.kill(web.pid, signal.SIGCONT)
        self.assertEqual(wrong, [])
        self.assertLess(self.many.peak_bytes(), (600 << 20) * SLOWDOWN)
        self.back("web")


X = {
    "name": "x",
    "UUID": "9af5f5ea-1c2b-3d4e-8f00-000000000001",
    "nbEvents": 1,
    "start": 1,
    "end": 2,
    "indexingStatus": "COMPLETED",
    "traces": [],
}
TREE = {
    "model": {"headers": [], "entries": [{"id": 1, "parentId": -1, "labels": ["good"]}]},
    "status": "COMPLETED",
    "statusMessage": "Completed",
}


def endless(handler):
    handler.send_response(200)
    handler.send_header("Content-Type", "application/json")
    handler.end_headers()
    while True:
        handler.wfile.write(b"[" * 65536)


def cut(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "1000")
    handler.end_headers()
    handler.wfile.write(b'{"model":')


def silent(handler):
    time.sleep(4)


class Garbage(Case):
    """Senseless answers of one of two servers, which is healthy otherwise."""

    def test_nonsense(self):
        said = {}
        good = StandIn(
            lambda path, p: [X]
            if path == "/experiments"
            else X
            if path.endswith(X["UUID"])
            else [{"id": "v", "type": "TIME_GRAPH"}]
            if path.endswith("/outputs")
            else TREE
            if "/tree" in path
            else None
        )
        bad = StandIn(
            lambda path, p: None if path == "/health" else [X] if path == "/experiments" else said.get("now")
        )
        config = os.path.join(scratch(), "two.yml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"trace-servers:\n- name: good\n  url: {good.url}\n- name: bad\n  url: {bad.url}\n  timeout: 2s\n")
        many = Coordinator("--config", config)
        tree = f"/experiments/{X['UUID']}/outputs/timeGraph/v/tree"
        try:
            for now, why in (
                (b"not json", "no JSON"),
                (b"", "no JSON"),
                (b"[" * 100000, "no JSON"),
                (b'{"model":{"entries":[1e,2]}}', "no JSON (byte "),
                (b'{"a":"\xff"}', "no JSON"),
                ([], "none of the protocol"),
                ({"model": {}}, "none of the protocol"),
                (7, "none of the protocol"),
                ({"model": [], "status": "COMPLETED"}, "no entries"),
                ({"model": {"entries": {}}, "status": "COMPLETED"}, "no entries"),
                ({"model": None, "status": "what"}, "failed"),
                ((500, {"title": "it burns"}), "it burns"),
                ((500, b"<html>"), "status 500"),
                (endless, "no JSON"),
                (cut, "connection broke"),
                (silent, "no answer in 2.0 s"),
            ):
                said["now"] = now
                with self.subTest(str(now)[:60]):
                    answer = many.post(tree)
                    self.assertEqual(answer.status, 200, answer)
                    self.assertEqual([e["labels"] for e in answer.json["model"]["entries"]], [["good"]])
                    self.assertEqual(answer.json["status"], "COMPLETED")
                    lack = answer.json["hosts"]["lacking"]
                    self.assertEqual([x["host"] for x in lack], ["bad"])
                    if now is not endless:
                        self.assertIn(why, lack[0]["statusMessage"])
                    for path in (
                        f"/experiments/{X['UUID']}",
                        f"/experiments/{X['UUID']}/outputs",
                        "/experiments",
                        "/traces",
                    ):
                        if now not in (endless, silent):
                            self.assertLess(many.get(path).status, 500, path)
                until = time.monotonic() + BACK_S
                while any(s["status"] == "AWAY" for s in many.get("/servers").json) and time.monotonic() < until:
                    time.sleep(0.1)
            self.assertLess(many.peak_bytes(), (800 << 20) * SLOWDOWN)  # sanitizers take a multiple
            said["now"] = TREE
            self.assertEqual(len(many.post(tree).json["model"]["entries"]), 2)
        finally:
            many.stop()
            good.stop()
            bad.stop()


class Comparing(Case):
    """Senseless paths of one of two servers are not passed on to the other."""

    def test_nonsense(self):
        none = {"model": None, "status": "FAILED", "statusMessage": "Invalid query parameters: host",
                "code": "INVALID_QUERY"}
        said, told = {"c:1": none}, []
        good = {"model": {"headers": [], "entries": [{"id": 7, "parentId": -1, "labels": ["x"], "metadata": {
            "host": ["x"], "comm": ["y"], "state": ["running"], "a": [5], "b": [5]}}]}, "status": "COMPLETED"}

        def answer(mine, path, p):
            if path == "/experiments" or path.endswith(X["UUID"]):
                return [X] if path == "/experiments" else X
            if not p:
                return None
            told.append((mine, p))
            asked = [p[side]["thread"] for side in "ab" if "thread" in p[side]]
            if any(thread != mine for thread in asked):
                return said.get(mine, none)
            return said["now"] if mine == "b:1" else good
        servers = [StandIn(lambda path, p, mine=mine: answer(mine, path, p)) for mine in ("c:1", "a:1", "b:1")]
        many = Coordinator(*[f"--server={name}={s.url}" for name, s in zip(("third", "one", "two"), servers)])
        at, entry = f"/experiments/{X['UUID']}/outputs/data/{COMPARISON}/tree", good["model"]["entries"][0]
        try:
            bad = [{**entry["metadata"], **wrong}
                   for wrong in ({"b": [-1]}, {"b": ["5"]}, {"b": 5}, {"host": []}, {"state": [{}]})]
            models = [None, {"entries": {}}, {"entries": [1]}, *({"entries": [entry, {"metadata": m}]} for m in bad)]
            for now in (b"no json", (500, {"title": "it burns"}), [], {**good, "status": "CANCELLED"},
                        *({**good, "model": model} for model in models)):
                said["now"] = now
                with self.subTest(str(now)[:60]):
                    told.clear()
                    got = many.post(at, {"a": {"thread": "a:1"}, "b": {"thread": "b:1"}}).json
                    self.assertEqual((got["status"], got["model"]), ("FAILED", None))
                    self.assertEqual([x["host"] for x in got["hosts"]["lacking"]], ["two"])
                    self.assertIn("without two: ", got["statusMessage"])
                    self.assertFalse([p for _, p in told if p["a"].get("thread") and p["b"].get("parts")])
            said["now"] = {**good, "model": None, "status": "RUNNING", "statusMessage": "b: still looking"}
            got = many.post(at, {"a": {"thread": "a:1"}, "b": {"thread": "b:1"}}).json
            self.assertEqual((got["status"], got["statusMessage"]), ("RUNNING", "b: still looking"))
            said["now"] = {**good, "status": "RUNNING", "statusMessage": "b: so far"}
            got = many.post(at, {"a": {"thread": "a:1"}, "b": {"thread": "b:1"}}).json
            self.assertEqual((got["status"], got["statusMessage"], len(got["model"]["entries"])),
                             ("RUNNING", "b: so far", 1))
            self.assertEqual(told[-1], ("a:1", {"a": {"thread": "a:1"}, "b": {"parts": [entry["metadata"]]}}))
            # A server that does not know its data yet is waited for only if no other knows the thread.
            said["now"], said["c:1"] = good, {"model": None, "status": "RUNNING", "statusMessage": "Opening"}
            got = many.post(at, {"a": {"thread": "a:1"}, "b": {"thread": "b:1"}}).json
            self.assertEqual((got["status"], len(got["model"]["entries"])), ("COMPLETED", 1))
            got = many.post(at, {"a": {"thread": "a:1"}, "b": {"thread": "b:2"}}).json
            self.assertEqual((got["status"], got["statusMessage"], got["model"]), ("RUNNING", "Opening", None))
        finally:
            for s in (many, *servers):
                s.stop()


class Busy(Case):
    """A server that is well, and takes long over more questions than there are connections to it."""

    def test_it_is_not_taken_to_be_away(self):
        go_on, counted, counts = threading.Event(), threading.Condition(), {"/health": 0, "tree": 0}

        def answer(path, parameters):
            what = "tree" if "/tree" in path else path
            with counted:
                counts[what] = counts.get(what, 0) + 1
                counted.notify_all()
            if what == "tree":
                go_on.wait(120 * SLOWDOWN)
                return TREE
            return {"/experiments": [X], f"/experiments/{X['UUID']}": X}.get(path)

        def wait_for(what, n):
            with counted:
                self.assertTrue(counted.wait_for(lambda: counts[what] >= n, 60 * SLOWDOWN), f"{what}: {counts}")

        slow = StandIn(answer)
        config = os.path.join(scratch(), "one.yml")
        with open(config, "w", encoding="utf-8") as f:
            f.write(f"trace-servers:\n- name: slow\n  url: {slow.url}\n  timeout: 300s\n")
        many = Coordinator("--config", config)
        tree, answers = f"/experiments/{X['UUID']}/outputs/timeGraph/v/tree", []
        threads = [threading.Thread(target=lambda: answers.append(many.post(tree, timeout=120 * SLOWDOWN)))
                   for _ in range(40)]
        try:
            for t in threads:
                t.start()
            wait_for("tree", 32)
            wait_for("/health", counts["/health"] + 4)
            self.assertEqual([s["status"] for s in many.get("/servers").json], ["UP"])
        finally:
            go_on.set()
            for t in threads:
                t.join()
            many.stop()
            slow.stop()
        self.assertEqual([(a.status, "hosts" in a.json) for a in answers], [(200, False)] * 40)

    def test_nothing_is_made_for_a_client_that_has_gone(self):
        asked, go_on, made = threading.Event(), threading.Event(), []

        def answer(path, parameters):
            if path == "/experiments" and parameters:
                made.append(parameters)
            elif path == "/experiments" and client:
                asked.set()
                go_on.wait(120 * SLOWDOWN)
            return {"/experiments": [X], "/traces": [{"name": "t", "UUID": X["UUID"]}]}.get(path)

        client, slow = [], StandIn(answer)
        many = Coordinator(f"--server=slow={slow.url}")
        body = json.dumps({"parameters": {"name": "new", "traces": [many.get("/traces").json[0]["UUID"]]}})
        client.append(http.client.HTTPConnection(many.host))
        client[0].request("POST", "/tsp/api/experiments", body, {"Content-Type": "application/json"})
        self.assertTrue(asked.wait(60 * SLOWDOWN))
        client[0].close()
        many.stop()  # end of its handlers
        go_on.set()
        slow.stop()
        self.assertEqual(made, [])

    def test_memory_that_others_have(self):
        """A question for which there is no memory now is to come again; it is not answered without servers that are
        well. Alone it is answered.

        The second question begins once the coordinator holds the large answer to the first: it has closed the
        connection that the answer came over. Otherwise either of the two could find no memory.
        """
        go_on, waits, held = threading.Event(), threading.Event(), threading.Event()
        wide = {**TREE, "model": {"headers": [], "entries": [
            {"id": n, "parentId": -1, "labels": [f"{n:0100}"]} for n in range(15000)]}}

        def known(path):
            return {"/experiments": [X], f"/experiments/{X['UUID']}": X}.get(path)

        def answer_wide(handler):
            handler.reply(200, wide, last=True)
            handler.connection.settimeout(60 * SLOWDOWN)
            if not handler.rfile.read(1):
                held.set()

        def hold(path, parameters):
            if "/tree" not in path:
                return known(path)
            first = not waits.is_set()
            waits.set()
            if first:
                go_on.wait(120 * SLOWDOWN)
            return TREE

        large, small = StandIn(lambda path, p: answer_wide if "/tree" in path else known(path)), StandIn(hold)
        many = Coordinator("--server", f"large={large.url}", "--server", f"small={small.url}", "--answers", "3M")
        tree, first = f"/experiments/{X['UUID']}/outputs/timeGraph/v/tree", []
        thread = threading.Thread(target=lambda: first.append(many.post(tree, timeout=120 * SLOWDOWN)))
        try:
            thread.start()
            self.assertTrue(waits.wait(60 * SLOWDOWN))
            self.assertTrue(held.wait(60 * SLOWDOWN))
            answer = many.post(tree)
            self.assertEqual(answer.status, 503, answer)
            self.assertGreater(int(answer.headers["Retry-After"]), 0)
            go_on.set()
            thread.join()
            for answer in (*first, many.post(tree)):
                self.assertEqual((answer.status, "hosts" in answer.json), (200, False), answer)
                self.assertEqual(len(answer.json["model"]["entries"]), 15001)
        finally:
            go_on.set()
            many.stop()
            large.stop()
            small.stop()

    def test_large_answers_take_turns(self):
        """Large answers to simultaneous queries that together exceed memory: as many run as fit."""
        wide = json.dumps({**TREE, "model": {"headers": [], "entries": [
            {"id": n, "parentId": -1, "labels": [f"{n:0100}"]} for n in range(15000)]}}).encode()

        def answered(path, tree):
            return tree() if "/tree" in path else {"/experiments": [X], f"/experiments/{X['UUID']}": X}.get(path)

        def late():
            time.sleep(0.2)  # the large part is there meanwhile
            return TREE

        large, small = (StandIn(lambda path, p, tree=tree: answered(path, tree)) for tree in (lambda: wide, late))
        many = Coordinator("--server", f"large={large.url}", "--server", f"small={small.url}", "--answers", "12M")
        tree, statuses = f"/experiments/{X['UUID']}/outputs/timeGraph/v/tree", []
        threads = [threading.Thread(target=lambda: statuses.append(many.post(tree, timeout=120 * SLOWDOWN).status))
                   for _ in range(12)]
        try:
            self.assertEqual(many.post(tree).status, 200)  # answers of a known size now
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        finally:
            many.stop()
            large.stop()
            small.stop()
        self.assertEqual(statuses, [200] * 12)


if __name__ == "__main__":
    main()
