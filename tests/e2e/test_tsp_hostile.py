# SPDX-License-Identifier: MIT
"""Trace server: clients that mean harm or break off. Each test tells what the server must answer, how much memory it
may take meanwhile, and how long another client may have to wait for small things."""
import io
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import tarfile
import threading
import time
import unittest

from tsp_server import EVENTS, HISTOGRAM, THREAD_STATUS, Bystander, Server, ServerCase
from weft_e2e import ROOT, SANITIZER, SLOWDOWN, main, need, scenario, scratch

MIB = 1 << 20
PATIENCE_S = 5 * SLOWDOWN  # the machine may have other work to do
MAKE_TRACE = os.environ.get("WEFT_MAKE_TRACE") or os.path.join(ROOT, "build", "bench", "make_trace")


def made_trace(events):
    """A generated trace, long enough that work on it can be interrupted."""
    need(MAKE_TRACE)
    path = os.path.join(scratch(), "made")
    subprocess.run([MAKE_TRACE, path, str(events), "2", "40"], check=True, stdout=subprocess.DEVNULL)
    return path


class HostileCase(ServerCase):
    def serve(self, *args, **how):
        self.server = Server(*args, **how)
        self.addCleanup(self.end)
        self.uuid = self.server.first()["UUID"]
        self.base = f"/experiments/{self.uuid}/outputs"

    def end(self):
        if self.server.process.poll() is None:
            code = self.server.stop()
            self.assertEqual(code, 0, self.server.errors())
        for word in ("Sanitizer", "runtime error", "WARNING", "assert"):
            self.assertNotIn(word, self.server.errors())

    def connect(self):
        host, port = self.server.host.split(":")
        return socket.create_connection((host, int(port)), timeout=60 * SLOWDOWN)

    def watched(self, most_bytes):
        """A block in which another client must be served in time, and the server's memory grows by so much at most."""
        case = self

        class Watch(Bystander):
            def __enter__(self):
                case.server.watch_memory()
                self.before = case.server.memory_bytes()
                return super().__enter__()

            def __exit__(self, *error):
                super().__exit__()
                if error[0]:
                    return
                case.assertEqual(self.failures, [])
                case.assertGreater(self.asked, 0)
                case.assertLess(self.slowest, PATIENCE_S, "another client waited so many seconds")
                if not SANITIZER:
                    case.assertLess(case.server.peak_bytes() - self.before, most_bytes)
        return Watch(self.server, self.uuid)

    def raw(self, data):
        """Returns all bytes received for these until the server closes."""
        with self.connect() as c:
            try:
                c.sendall(data)
                c.shutdown(socket.SHUT_WR)
            except OSError:
                pass
            got = b""
            try:
                while piece := c.recv(65536):
                    got += piece
            except OSError:
                pass
            return got

    def head(self, method, path, *lines):
        return "\r\n".join([f"{method} /tsp/api{path} HTTP/1.1", "Host: localhost", *lines, "", ""]).encode()

    def ask_without_reading(self, path, parameters):
        body = json.dumps({"parameters": parameters}).encode()
        c = self.connect()
        c.sendall(self.head("POST", path, f"Content-Length: {len(body)}") + body)
        return c

    def range(self, n):
        x = self.server.get(f"/experiments/{self.uuid}").json
        return {"start": x["start"], "end": x["end"], "nbTimes": n}

    def states(self, ids, n, **more):
        return self.server.post(f"{self.base}/timeGraph/{THREAD_STATUS}/states",
                                {"requested_timerange": self.range(n), "requested_items": ids, **more})

    def columns(self):
        return {c["name"]: str(c["id"]) for c in self.server.model(f"{self.base}/table/{EVENTS}/columns")}


class Requests(HostileCase):
    """Claims of single requests."""

    def setUp(self):
        self.serve(os.path.join(scenario("three-tier"), "db"))

    def test_malformed_bodies(self):
        kind = self.server.get("/config/types").json[0]["id"]
        posts = ["/traces", "/experiments", f"/experiments/{self.uuid}/bookmarks", f"/config/types/{kind}",
                 f"/config/types/{kind}/configs",
                 f"{self.base}/timeGraph/{THREAD_STATUS}/tree", f"{self.base}/timeGraph/{THREAD_STATUS}/states",
                 f"{self.base}/timeGraph/{THREAD_STATUS}/arrows",
                 f"{self.base}/timeGraph/{THREAD_STATUS}/tooltip", f"{self.base}/XY/{HISTOGRAM}/tree",
                 f"{self.base}/XY/{HISTOGRAM}/xy",
                 f"{self.base}/table/{EVENTS}/columns", f"{self.base}/table/{EVENTS}/lines",
                 f"{self.base}/{THREAD_STATUS}/style",
                 f"{self.base}/{THREAD_STATUS}/annotations", f"{self.base}/{THREAD_STATUS}"]
        nested = '{"parameters":' + '{"a":[' * 60000 + "]}" * 60000 + "}"
        bodies = ["", "nonsense", "[1]", "7", "null", '{"parameters":', "{}x", "{'a':1}", '{"a":1,}', '{"a":01}',
                  '{"a":1e99999}', '{"a":"\\ud800"}', '{"a":"\x01"}',
                  "\xff\xfe", "[" * 500000, '{"parameters": 7}', nested]
        with self.watched(64 * MIB):
            for path in posts:
                for body in bodies:
                    if path.endswith(THREAD_STATUS) and body == '{"parameters": 7}':
                        continue  # parameters of derived outputs stand at the top
                    answer = self.server.ask("POST", path, body.encode("latin1"), raw=True)
                    self.assertIn(answer.status, (400, 404) if path.endswith(THREAD_STATUS) else (400,),
                                  f"{path} {body[:40]} {answer}")
                    self.assertIsInstance(answer.json["title"], str)

    def test_large_body_declared(self):
        with self.watched(32 * MIB), self.connect() as c:
            c.sendall(self.head("POST", "/traces", f"Content-Length: {100 * MIB}"))
            for _ in range(1600):
                c.sendall(b" " * 65536)
            self.assertTrue(c.recv(65536).startswith(b"HTTP/1.1 413"))
        answer = self.raw(self.head("POST", "/traces", f"Content-Length: {100 * MIB}", "Expect: 100-continue"))
        self.assertTrue(answer.startswith(b"HTTP/1.1 413"), answer[:100])
        for length in ("18446744073709551616", "99999999999999999999999", "-1", "0x10", "1,2"):
            answer = self.raw(self.head("POST", "/traces", f"Content-Length: {length}"))
            self.assertTrue(answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 413", b"HTTP/1.0 400", b"HTTP/1.0 413"),
                            (length, answer[:100]))
        body = json.dumps({"parameters": {"uri": "x" * 1000000}})
        self.refused(self.server.ask("POST", "/traces", body, raw=True), 404)

    def test_large_body_chunked(self):
        with self.watched(32 * MIB), self.connect() as c:
            c.sendall(self.head("POST", "/traces", "Transfer-Encoding: chunked"))
            for _ in range(1600):
                c.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")
            c.sendall(b"0\r\n\r\n")
            self.assertTrue(c.recv(65536).startswith(b"HTTP/1.1 413"))
        # Endless request, which is cut.
        with self.watched(32 * MIB), self.connect() as c, self.assertRaises(OSError):
            c.sendall(self.head("POST", "/traces", "Transfer-Encoding: chunked"))
            for _ in range(16000):
                c.sendall(b"10000\r\n" + b" " * 65536 + b"\r\n")

    def test_greedy_queries(self):
        ids = [e["id"] for e in self.server.model(f"{self.base}/timeGraph/{THREAD_STATUS}/tree")["entries"]]
        with self.watched(200 * MIB):
            self.assertEqual(self.states(ids[:5], 10**9).status, 200)
            self.assertEqual(self.states(ids[:5], -5).status, 200)
            self.assertEqual(self.states(list(range(100000)), 2).status, 200)
            self.refused(self.states(list(range(100000)), 10**9), 400, "requested_items")
            self.refused(self.states(list(range(1000000)), 2), 413)
            self.refused(self.states(ids, 10**30), 400)
            self.refused(self.states([2**70], 5), 400)
            self.assertEqual(self.states([-2**63, -1, 2**63 - 1], 5).json["model"]["rows"], [])
            times = list(range(90000))
            many = self.server.post(f"{self.base}/timeGraph/{THREAD_STATUS}/states",
                                    {"requested_times": times, "requested_items": ids[:5]})
            self.assertEqual(many.status, 200)
            self.refused(self.server.post(f"{self.base}/timeGraph/{THREAD_STATUS}/states",
                                          {"requested_times": times, "requested_items": list(range(100))}), 400)
            lines = self.server.model(f"{self.base}/table/{EVENTS}/lines",
                                      {"requested_table_index": 0, "requested_table_count": 10**9})
            self.assertLessEqual(len(lines["lines"]), 20000)
            for where in (2**63 - 1, 2**62):
                self.assertEqual(self.server.model(f"{self.base}/table/{EVENTS}/lines",
                                                   {"requested_table_index": where,
                                                    "requested_table_count": 5})["lines"], [])

    def test_extreme_numbers(self):
        """Times and ids at the ends of 64 bits, for every output of several hosts whose clocks are converted."""
        self.assertEqual(self.server.stop(), 0)
        self.serve(scenario("three-tier"))
        low, high, kinds = -2**63, 2**63 - 1, {"TIME_GRAPH": "timeGraph", "TREE_TIME_XY": "XY",
                                               "TREE_GENERIC_XY": "genericXY", "DATA_TREE": "data", "TABLE": "table"}
        ranges = [(low, high), (high - 1, high), (high, high), (low, low + 1), (low, low), (0, 0), (-1, 2**62)]
        for o in self.server.get(self.base).json:
            base = f"{self.base}/{kinds.get(o['type'], 'data')}/{o['id']}"
            tree = (self.server.post(f"{base}/tree").json.get("model") if o["type"] in kinds and o["type"] != "TABLE"
                    else None)
            ids = [e["id"] for e in (tree or {"entries": []})["entries"]][:20] + [low, -1, 2**53, high]
            for begin, end in ranges:
                parameters = {"requested_timerange": {"start": begin, "end": end, "nbTimes": 7, "nbSamples": 7},
                              "requested_items": ids, "requested_times": [begin],
                              "requested_table_count": 3}
                asked = [(f"{base}/{what}", parameters)
                         for what in ("tree", "states", "arrows", "xy",
                                      "lines")] + [(f"{self.base}/{o['id']}/annotations", parameters)]
                for entry in ids[:3] + ids[-4:]:
                    element = {"elementType": "STATE", "time": begin, "duration": end, "entryId": entry,
                               "destinationId": entry}
                    asked.append((f"{base}/tooltip",
                                  {"requested_times": [end], "requested_items": [entry], "requested_element": element}))
                    asked.append((f"{base}/tooltip",
                                  {"requested_times": [begin], "requested_items": [entry],
                                   "requested_element": dict(element, elementType="ARROW")}))
                for path, body in asked:
                    answer = self.server.post(path, body)
                    self.assertIn(answer.status, (200, 404, 405), f"{path} {body} {answer} {self.server.errors()}")

    def test_greedy_expressions(self):
        """Patterns whose automata or search would explode."""
        deep, name = "(" * 4000 + "x" + ")" * 4000, self.columns()["Event type"]
        patterns = (deep, "((a+)+)+$", "(((((a{1,255}){1,255}){1,255}){1,255}){1,255})", "a{65535}{65535}",
                    "(a|a)*" * 500, "(.*)*\\1", "[", "[[:alpha:", "(", "*", "\\",
                    "label matches \"((((a+)+)+)+)+$\"", "&&", "!", "!" * 4000, "\"", "x" * 100000, "duration > 1e999",
                    "duration > nan", "a=b=c=d", " ", "|".join("abcdefgh" * 400))
        rows = self.server.rows(self.uuid, 3)
        with self.watched(200 * MIB):
            for pattern in patterns:
                for strategy in ("DEEP", "SAMPLED", 7):
                    how = {"strategy": strategy, "filter_expressions_map": {"1": [pattern],
                                                                            "4": [f'label matches "{pattern}"'],
                                                                            "x": [3], "-1": pattern}}
                    self.assertEqual(self.states(rows, 50, filter_query_parameters=how).status, 200)
                for direction in ("NEXT", "PREVIOUS"):
                    found = self.server.post(f"{self.base}/table/{EVENTS}/lines",
                                             {"requested_table_index": 0, "requested_table_count": 1,
                                             "table_search_expressions": {name: pattern},
                                              "table_search_direction": direction})
                    self.assertIn(found.status, (200, 400), pattern[:40])
            many = {"filter_expressions_map": {str(k): ["label matches \"[a-z]*\""] * 500 for k in range(1, 40)}}
            self.assertEqual(self.states(rows, 50, filter_query_parameters=many).status, 200)

    def test_nonsense_requests(self):
        for text in (b"\0" * 1000, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n",
                     b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
                     b"GET /%00%ff%zz HTTP/1.1\r\nHost: localhost\r\n\r\n",
                     self.head("POST", "/traces", "Transfer-Encoding: chunked") + b"zzz\r\n",
                     self.head("POST", "/traces", "Transfer-Encoding: chunked") + b"fffffffffffffffff\r\n",
                     self.head("GET", "/experiments/%2e%2e/%2e%2e"),
                     self.head("GET", "/health", *[f"X-{i}: {'a' * 1000}" for i in range(200)])):
            answer = self.raw(text)
            self.assertFalse(answer.startswith(b"HTTP/1.1 200"), (text[:60], answer[:60]))
        self.good(self.server.get("/health"))

    def test_paths_that_lead_out(self):
        """Files of the page are those built in; traces and uploads are checked where they are opened (test_tsp.py)."""
        for path in ("/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/..\\..\\etc\\passwd",
                     "//etc/passwd", "/etc/passwd", "/app.js/../../../etc/passwd",
                     "/app.js%00.html", "/./index.html/..", "/index.html%00", "/proc/self/environ", "/.weft"):
            answer = self.raw(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
            self.assertRegex(answer[:12], rb"HTTP/1.1 40[04]", path)
            self.assertNotIn(b"root:", answer)
        data = scratch()
        with open(os.path.join(data, "secret"), "w", encoding="ascii") as f:
            f.write("x")
        out = os.path.join(scenario("three-tier"), "db")
        for uri in (data, f"{out}/../../../../../../../..{data}",
                    f"{out}/kernel/../../../../../../../../../..{data}/secret", "file:///etc", "file://localhost/etc",
                    "http://127.0.0.1/", "net://127.0.0.1/host/x/y",
                    f"{out}\0/etc", "x=" + data, f"x={out}"):
            self.assertIn(self.server.post("/traces", {"uri": uri, "name": "n"}).status, (400, 404), uri)
        for name in ("../../x", "a/b", "", "x" * 100000, "\0", ".."):
            answer = self.server.post("/traces", {"uri": out, "name": name})
            self.assertIn(answer.status, (200, 400, 409), name[:20])
        self.assertFalse(os.path.exists(os.path.join(os.path.dirname(out), "x")))


class Connections(HostileCase):
    """Numbers of clients, slow clients, clients that disappear."""

    def test_thousand_connections(self):
        self.serve(os.path.join(scenario("three-tier"), "db"))
        held = []
        with self.watched(150 * MIB):
            for i in range(1000):
                c = self.connect()
                c.sendall(self.head("GET", "/health")[:-2] + (b"X-Slow: " if i % 2 else b"\r\n"))
                held.append(c)
            time.sleep(1)
        for c in held:
            c.close()
        with open(f"/proc/{self.server.process.pid}/status", encoding="ascii") as f:
            threads = lambda: next(int(line.split()[1]) for line in f if line.startswith("Threads"))
            end = time.monotonic() + 10 * SLOWDOWN
            while threads() > 60 and time.monotonic() < end:
                time.sleep(0.1)
                f.seek(0)
            f.seek(0)
            self.assertLessEqual(threads(), 60, "threads of connections that are gone")

    def test_slow_readers(self):
        """Clients that ask for much and read nothing take no place from others; what waits for them is bounded."""
        self.serve(os.path.join(scenario("three-tier"), "db"))
        held = []
        with self.watched(1200 * MIB):
            for _ in range(40):
                c = self.ask_without_reading(f"{self.base}/table/{EVENTS}/lines",
                                             {"requested_table_index": 0, "requested_table_count": 20000})
                held.append(c)
            time.sleep(2)
        for c in held:
            c.close()

    def test_slow_writers(self):
        """Bodies and heads that trickle (how they end: tests/http)."""
        self.serve(os.path.join(scenario("three-tier"), "db"))
        held = [self.connect() for _ in range(200)]
        with self.watched(64 * MIB):
            for i, c in enumerate(held):
                c.sendall(self.head("POST", "/traces", "Content-Length: 1000") if i % 2
                          else b"GET /tsp/api/health HTTP/1.1\r\nX: ")
            for _ in range(10):
                for c in held:
                    c.sendall(b"x")
                time.sleep(0.1)
        for c in held:
            c.close()

    def idle_again(self, limit_s):
        """Seconds until the server uses no processor any more."""
        begin, before = time.monotonic(), self.server.cpu_seconds()
        while time.monotonic() - begin < limit_s:
            time.sleep(0.3)
            now = self.server.cpu_seconds()
            if now - before < 0.03:
                break
            before = now
        return time.monotonic() - begin

    def test_gone_clients(self):
        """Work that nobody waits for any more ends."""
        self.serve(made_trace(3000000 // (SLOWDOWN + 1)))
        name = self.columns()["Contents"]
        search = {"requested_table_index": 0, "requested_table_count": 1, "table_search_direction": "NEXT"}
        base = f"{self.base}/table/{EVENTS}/lines"
        begin = time.monotonic()
        self.server.post(base, dict(search, table_search_expressions={name: "no [s]uch text 0"}))
        whole = time.monotonic() - begin
        for round_ in range(3):
            gone = [self.ask_without_reading(base,
                                             dict(search,
                                                  table_search_expressions={name: f"no [s]uch text {round_} {k}"}))
                    for k in range(20)]
            time.sleep(0.2)
            for c in gone:
                c.close()
        took = self.idle_again(60 * SLOWDOWN)
        self.assertLess(took, max(3 * SLOWDOWN, 5 * whole), f"60 searches were left; one takes {whole:.2f} s")
        self.good(self.server.get("/experiments"))

    def test_stop_while_answering(self):
        """SIGTERM ends searches, slow readers and idle connections alike; the exit status is that of a good end."""
        self.serve(made_trace(3000000 // (SLOWDOWN + 1)))
        name = self.columns()["Contents"]
        held = [self.ask_without_reading(f"{self.base}/table/{EVENTS}/lines",
                                         {"requested_table_index": 0, "requested_table_count": 1,
                "table_search_expressions": {name: f"no [s]uch text {k}"}, "table_search_direction": "NEXT"})
                for k in range(10)]
        held += [self.ask_without_reading(f"{self.base}/table/{EVENTS}/lines",
                                          {"requested_table_index": 0, "requested_table_count": 20000})
                 for _ in range(10)]
        held += [self.connect() for _ in range(10)]
        time.sleep(0.3)
        begin = time.monotonic()
        self.assertEqual(self.server.stop(), 0, self.server.errors())
        self.assertLess(time.monotonic() - begin, PATIENCE_S)
        for c in held:
            c.close()

    def test_stop_while_opening(self):
        store, trace = scratch(), made_trace(3000000 // (SLOWDOWN + 1))
        server = Server(trace, store=store)
        begin = time.monotonic()
        self.assertEqual(server.stop(), 0, server.errors())
        self.assertLess(time.monotonic() - begin, 15 * SLOWDOWN)
        with Server(trace, store=store) as again:  # leftovers do not hinder
            self.assertEqual(again.first()["indexingStatus"], "COMPLETED")


class CutOff(HostileCase):
    """A client that closes its half at once is gone; it still reads what comes, and must not take a part for all."""

    KINDS = {"TIME_GRAPH": "timeGraph", "GANTT_CHART": "timeGraph", "TREE_TIME_XY": "XY",
             "TREE_GENERIC_XY": "genericXY", "DATA_TREE": "data"}

    def cut(self, path, parameters):
        body = json.dumps({"parameters": parameters}).encode()
        answer = self.raw(self.head("POST", path, "Content-Type: application/json", "Connection: close",
                                    f"Content-Length: {len(body)}") + body)
        return json.loads(answer.split(b"\r\n\r\n", 1)[1])

    def check(self, path, parameters):
        whole = self.server.model(path, parameters)
        for _ in range(2):
            part = self.cut(path, parameters)
            with self.subTest(path=path):
                if part["status"] == "COMPLETED":
                    self.assertEqual(part["model"], whole)
                else:
                    self.assertEqual(part["status"], "CANCELLED")
                    self.statuses.add((path.rsplit("/", 1)[1], part["status"]))

    def test_every_output(self):
        self.serve(scenario("three-tier"))
        self.statuses = set()
        for o in self.server.get(self.base).json:
            kind = self.KINDS.get(o["type"])
            if o["type"] == "TABLE":
                self.check(f"{self.base}/table/{o['id']}/lines",
                           {"requested_table_index": 0, "requested_table_count": 3000})
            if not kind:
                continue
            path, span = f"{self.base}/{kind}/{o['id']}", self.range(700)
            tree = self.server.model(f"{path}/tree", {"requested_timerange": span})
            self.check(f"{path}/tree", {"requested_timerange": span})
            ids = [e["id"] for e in tree["entries"]] if tree else []
            if kind == "genericXY":
                span = {"start": span["start"], "end": span["end"], "nbSamples": 50}
            for operation in ("states", "arrows") if kind == "timeGraph" else ("xy",) if "XY" in kind else ():
                self.check(f"{path}/{operation}", {"requested_timerange": span, "requested_items": ids[:200]})
        self.assertLessEqual({"tree", "states", "xy", "lines"}, {operation for operation, _ in self.statuses})


class Deleting(HostileCase):
    def test_experiment_deleted_while_read(self):
        """Readers get whole answers or a 404, whatever is deleted and opened again meanwhile."""
        self.serve(os.path.join(scenario("three-tier"), "db"))
        x = self.server.get(f"/experiments/{self.uuid}").json
        traces, name, wrong, read_well = [t["UUID"] for t in x["traces"]], x["name"], [], []
        begin, enough = time.monotonic(), 5 // SLOWDOWN

        def goes_on():
            return time.monotonic() < begin + (8 if len(read_well) > enough else 60 * SLOWDOWN)

        def read(n):
            k = 0
            while goes_on():
                k += 1
                path = [f"table/{EVENTS}/lines", f"timeGraph/{THREAD_STATUS}/tree", f"XY/{HISTOGRAM}/xy"][(n + k) % 3]
                a = self.server.post(f"{self.base}/{path}",
                                     {"requested_table_index": (k * 977) % 20000, "requested_table_count": 200,
                    "requested_timerange": {"start": 0, "end": 2**62, "nbTimes": 100},
                                      "requested_items": list(range(1, 400))})
                if a.status not in (200, 404) or (a.status == 200 and a.json["status"] not in ("COMPLETED", "RUNNING")):
                    wrong.append(str(a))
                elif a.status == 200 and a.json["status"] == "COMPLETED":
                    read_well.append(1)

        def churn():
            k = 0
            while goes_on():
                k += 1
                self.server.delete(f"/experiments/{self.uuid}")
                a = self.server.post("/experiments", {"name": name, "traces": traces})
                if a.status != 200:
                    wrong.append(str(a))
                elif k % 2:  # however long that takes
                    self.server.opened(self.uuid)
                time.sleep(0.05)
        threads = [threading.Thread(target=read, args=(n,)) for n in range(4)] + [threading.Thread(target=churn)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])
        self.assertGreater(len(read_well), enough)
        self.assertEqual(self.server.opened(self.uuid)["indexingStatus"], "COMPLETED")

    def test_trace_deleted_while_read(self):
        """A trace of an open experiment cannot be deleted by a client; when its files vanish, what is open stays
        readable."""
        root = scratch()
        shutil.copytree(os.path.join(scenario("three-tier"), "db"), os.path.join(root, "db"))
        store = scratch()
        self.serve("--trace-root", root, os.path.join(root, "db"), store=store)
        x = self.server.get(f"/experiments/{self.uuid}").json
        self.refused(self.server.delete("/traces/" + x["traces"][0]["UUID"]), 409)
        lines = {"requested_table_index": x["nbEvents"] // 2, "requested_table_count": 50}
        rows = self.server.rows(self.uuid, 3)
        before = self.server.model(f"{self.base}/table/{EVENTS}/lines", lines), self.states(rows, 100).json
        shutil.rmtree(root)
        shutil.rmtree(store)
        with self.watched(64 * MIB):
            for _ in range(20):
                self.assertEqual(self.server.model(f"{self.base}/table/{EVENTS}/lines", lines), before[0])
                self.assertEqual(self.states(rows, 100).json, before[1])


class Failures(ServerCase):
    """The machine fails: full disks, kills."""

    def marks(self, server, uuid):
        return {b["name"] for b in self.good(server.get(f"/experiments/{uuid}/bookmarks"))}

    def test_full_disk(self):
        """Changes that cannot be kept hold until the end, and say so; the state before stays whole; uploads are
        refused."""
        trace, store, state = os.path.join(scenario("three-tier"), "db"), scratch(), scratch()
        with Server("--state", state, trace, store=store) as s:
            uuid = s.first()["UUID"]
            self.good(s.post(f"/experiments/{uuid}/bookmarks", {"name": "kept", "start": 1, "end": 2}))
        size = os.path.getsize(os.path.join(state, "experiments", f"{uuid}.json"))
        # A limit on the size of files behaves as a disk that is full; Python leaves the signal for it ignored.
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size + 400, resource.RLIM_INFINITY))
        with Server("--state", state, trace, store=store, preexec_fn=limit, restore_signals=False) as s:
            for k in range(10):
                answer = s.post(f"/experiments/{uuid}/bookmarks",
                                {"name": f"mark {k}" + "x" * 100, "start": 1, "end": 2})
                self.good(answer)
            self.assertRegex(answer.headers["Warning"], r'^199 weft "not kept over a restart: .*\.json.*"$')
            self.assertEqual(len(self.marks(s, uuid)), 11)
            refused = s.ask("POST", "/upload?name=x", b"x" * (size + 5000), raw=True)
            self.refused(refused, 507)
            self.assertEqual(self.good(s.get("/health")), {"status": "UP"})
            for b in self.good(s.get(f"/experiments/{uuid}/bookmarks")):
                if not b["name"].startswith(("kept", "mark 0")):
                    answer = s.delete(f"/experiments/{uuid}/bookmarks/{b['uuid']}")
            self.assertIsNone(self.good(answer) and answer.headers["Warning"], "there is room again")
            self.assertEqual(s.stop(), 0, s.errors())
        self.assertEqual(sorted(os.listdir(state)), ["configurations", "experiments", "lock", "traces", "uploads"])
        self.assertEqual(os.listdir(os.path.join(state, "experiments")), [f"{uuid}.json"], "nothing half written")
        self.assertEqual(os.listdir(os.path.join(state, "uploads")), [])
        with Server("--state", state, trace, store=store) as s:
            self.assertEqual(self.marks(s, uuid), {"kept", "mark 0" + "x" * 100})

    def test_killed(self):
        """Whatever was answered before kill -9 is there after a restart; uploads that were under way are not."""
        trace, store, state = os.path.join(scenario("three-tier"), "db"), scratch(), scratch()
        archive = io.BytesIO()
        with tarfile.open(fileobj=archive, mode="w") as t:
            t.add(os.path.join(trace, "kernel"), arcname="kernel")
        known = set()
        for round_ in range(3):
            server = Server("--state", state, trace, store=store)
            uuid = server.first()["UUID"]
            self.assertLessEqual(known, self.marks(server, uuid))
            stop, lock = threading.Event(), threading.Lock()

            def mark(n):
                for k in range(10000):
                    try:
                        name = f"{round_} {n} {k}"
                        if server.post(f"/experiments/{uuid}/bookmarks",
                                       {"name": name, "start": 1, "end": 2}).status == 200:
                            with lock:
                                known.add(name)
                    except (OSError, ValueError):
                        return

            def upload():
                while not stop.is_set():
                    try:
                        server.ask("POST", "/upload?name=mine", archive.getvalue(), raw=True)
                    except (OSError, ValueError):
                        return
            threads = [threading.Thread(target=mark, args=(n,)) for n in range(3)] + [threading.Thread(target=upload)]
            for t in threads:
                t.start()
            time.sleep(1 + round_ / 3)
            end = time.monotonic() + 60 * SLOWDOWN
            while len(known) <= 4 * round_ and time.monotonic() < end:
                time.sleep(0.05)
            server.process.send_signal(signal.SIGKILL)
            stop.set()
            for t in threads:
                t.join()
            server.stop()
        with Server("--state", state, trace, store=store) as server:
            self.assertGreater(len(known), 10)
            found = self.marks(server, uuid)
            self.assertLessEqual(known, found)
            self.assertLessEqual(len(found - known), 9, "at most what was being answered when it was killed")
            listed = {t["path"] for t in self.good(server.get("/traces"))}
            left = [n for n in os.listdir(os.path.join(state, "uploads")) if not n.startswith(".removed-")]
            self.assertEqual([n for n in left
                              if not any(p.startswith(os.path.join(os.path.realpath(state), "uploads", n))
                                         for p in listed)], [])


if __name__ == "__main__":
    main()
