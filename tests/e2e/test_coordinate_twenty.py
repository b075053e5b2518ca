#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weft coordinate over twenty servers: the answers of one server that has all their traces; and while one of the twenty
is killed, hangs, is slow, talks nonsense or is started again, the others' data, with its name beside them."""
import http.client
import json
import os
import signal
import threading
import time

from coordinated import Compared, Coordinator, Farm, StandIn, named, plain
from tsp_server import EVENTS, HISTOGRAM, THREAD_STATUS
from weft_e2e import SLOWDOWN, Case, main

MACHINES = 20
NOTICED_S = 3 + 2 * SLOWDOWN
BACK_S = 5 * SLOWDOWN


class Twenty(Compared, Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.farm = Farm([1] * MACHINES, rounds=2, history=0)
        cls.one, cls.many, cls.uuid, cls.whole = cls.farm.all, cls.farm.many, cls.farm.uuid, cls.farm.whole
        alone = cls.one.first()["traces"]
        cls.begins, cls.ends = {x["start"] for x in alone}, {x["end"] for x in alone}

    @classmethod
    def tearDownClass(cls):
        cls.farm.stop()

    def test_all_views(self):
        self.compare_views(500)

    def test_lines(self):
        n = self.whole["nbEvents"]
        for at in [0, n - 1, n] + [n * k // 17 for k in range(17)]:
            self.same_lines(requested_table_index=at, requested_table_count=50)
            self.same_lines(requested_table_index=at, requested_table_count=3, table_search_direction="NEXT",
                            table_search_expressions={"4": "sched_waking"})
        begin, end = self.whole["start"], self.whole["end"]
        for k in range(9):
            self.same_lines(requested_times=[begin + (end - begin) * k // 8], requested_table_count=40)
        self.same_lines(requested_table_index=n // 3, requested_table_count=1000)
        self.same_lines(requested_table_index=5, requested_table_count=20,
                        table_filter_expressions={"1": "^node-(3|12|19)$"})



class Together(Case):
    def test_sums_of_servers_with_several_machines(self):
        """Sums of servers with several machines are added to the Histogram's line of all, and not shown beside it."""
        farm = Farm([1, 3], rounds=2, history=0)
        self.addCleanup(farm.stop)
        path, times = f"/experiments/{farm.uuid}/outputs/XY/{HISTOGRAM}", {"nbTimes": 30}
        times |= {"start": farm.whole["start"], "end": farm.whole["end"]}
        said = []
        for server in (farm.all, farm.many):
            tree = named(server.model(f"{path}/tree"))
            names = {e["id"]: place for place, e in tree.items()}
            model = server.model(f"{path}/xy", {"requested_timerange": times, "requested_items": list(names)})
            series = {names[s["seriesId"]]: (s["seriesName"], s["xValues"], s["yValues"]) for s in model["series"]}
            said.append(({place: plain(e) for place, e in tree.items()}, series))
        self.assertEqual(*said)
        self.assertEqual(len(said[0][1]), 2 * 5)


class Between(StandIn):
    """Stands before a server and hands everything on, as long as `mode` is None; else a function of the path, whose
    value is answered (None: handed on)."""

    def __init__(self, server):
        self.real, self.mode = server, None
        super().__init__(self.answer)

    def answer(self, path, parameters):
        said = self.mode(path) if self.mode else None
        if said is not None:
            return said
        connection = http.client.HTTPConnection(self.real.host, timeout=60)
        try:
            body = None if parameters is None else json.dumps({"parameters": parameters})
            connection.request("GET" if body is None else "POST", "/tsp/api" + path, body,
                               {"Content-Type": "application/json"})
            answer = connection.getresponse()
            return answer.status, answer.read()
        except OSError:
            return lambda handler: handler.connection.close()
        finally:
            connection.close()


class OneOfTwenty(Case):
    """Answers always contain the data of the others, whatever happens to the one."""

    def setUp(self):
        # The last machine is what the one has after it was started again.
        self.farm = Farm([1] * (MACHINES + 1), rounds=2, history=0)
        self.one, self.uuid, self.hurt = self.farm.all, self.farm.uuid, "node-7"
        self.names = list(self.farm.servers)[:MACHINES]
        self.others = [h for h in self.names if h != self.hurt]
        self.between = Between(self.farm.servers[self.hurt])
        urls = {h: s.url for h, s in self.farm.servers.items()} | {self.hurt: self.between.url}
        self.many = Coordinator(*[f"--server={h}={urls[h]}" for h in self.names])
        self.many.opened(self.uuid)
        self.at = f"/experiments/{self.uuid}/outputs"
        columns = [c["name"] for c in self.many.model(f"{self.at}/table/{EVENTS}/columns")]
        self.trace, self.exact = columns.index("Trace"), columns.index("Timestamp ns")
        self.old, self.new = (self.times_of(h) for h in (self.hurt, f"node-{MACHINES}"))
        self.rest = sum(len(self.times_of(h)) for h in self.others)
        self.total = self.many.model(f"{self.at}/XY/{HISTOGRAM}/tree")["entries"][1]["id"]
        self.range = {"start": self.farm.whole["start"], "end": self.farm.whole["end"], "nbTimes": 20}
        self.wrong, self.seen, self.ended = [], 0, threading.Event()

    def tearDown(self):
        self.many.stop()
        self.between.stop()
        self.farm.stop()

    def times_of(self, host):
        lines = self.one.model(f"{self.at}/table/{EVENTS}/lines", {
            "requested_table_index": 0, "requested_table_count": 10000, "requested_table_column_ids": [11],
            "table_filter_expressions": {"1": f"^{host}$"}})["lines"]
        self.assertGreater(len(lines), 50)
        return [int(line["cells"][0]["content"]) for line in lines]

    # ---- checks

    def check_tree(self, model, lacks):
        roots = [e["labels"][0] for e in model["entries"] if e["parentId"] == -1]
        self.assertEqual(roots, self.others if lacks else self.names)

    def check_lines(self, model, lacks):
        told = [line for line in model["lines"] if not any(" is away)" in c["content"] for c in line["cells"])]
        its = {int(x["cells"][self.exact]["content"]) for x in told if x["cells"][self.trace]["content"] == self.hurt}
        self.assertTrue(its <= set(self.old) or its <= set(self.new), "two runs of a server in one answer")
        self.assertIn(model["size"], {self.rest, self.rest + len(self.old), self.rest + len(self.new)})
        if lacks:
            self.assertEqual(its, set())

    def check_sum(self, model, lacks):
        n = sum(model["series"][0]["yValues"])
        if lacks:
            self.assertEqual(n, self.rest)
        else:
            self.assertIn(n, {self.rest + len(self.old), self.rest + len(self.new)})

    def asks(self):
        n = self.rest + len(self.old)
        lines = f"{self.at}/table/{EVENTS}/lines"
        return [
            (self.check_tree, f"{self.at}/timeGraph/{THREAD_STATUS}/tree", {}),
            (self.check_lines, lines, {"requested_table_index": n // 3, "requested_table_count": 300}),
            (self.check_sum, f"{self.at}/XY/{HISTOGRAM}/xy",
             {"requested_timerange": self.range, "requested_items": [self.total]}),
            (self.check_lines, lines, {"requested_times": [self.range["start"] + 10**6],
                                       "requested_table_count": 300}),
        ]

    def ask(self, check, path, parameters):
        """Returns whether the one was there."""
        begun = time.monotonic()
        answer = self.many.post(path, parameters)
        took = time.monotonic() - begun
        self.assertEqual(answer.status, 200, answer)
        lacking = [x["host"] for x in answer.json.get("hosts", {}).get("lacking", [])]
        self.assertIn(lacking, ([], [self.hurt]))
        self.assertIn(answer.json["status"], ("COMPLETED", "RUNNING"))
        check(answer.json["model"], bool(lacking))
        self.assertLess(took, NOTICED_S)
        return not lacking

    def client(self, first):
        try:
            while not self.ended.is_set():
                for one in self.asks()[first:] + self.asks()[:first]:
                    self.ask(*one)
                    self.seen += 1
        except Exception as e:  # reported by the test
            self.wrong.append(repr(e))

    def until(self, there):
        end = time.monotonic() + (BACK_S if there else NOTICED_S)
        while any(self.ask(*one) != there for one in self.asks()):
            self.assertLess(time.monotonic(), end, "back" if there else "away")
            time.sleep(0.02)

    # ---- faults

    def late(self, path):
        time.sleep(0 if path == "/health" else 0.3)

    def test_whatever_befalls_it(self):
        clients = [threading.Thread(target=self.client, args=(k,)) for k in range(2)]
        for c in clients:
            c.start()
        server = self.farm.servers[self.hurt]
        try:
            self.until(True)
            for garbage in (b"not json", {"model": 7, "status": "COMPLETED"}, (500, {"title": "it burns"})):
                self.between.mode = lambda path, said=garbage: None if path == "/health" else said
                self.until(False)
                self.between.mode = None
                self.until(True)
            self.between.mode = self.late
            self.until(True)
            self.between.mode = None
            os.kill(server.process.pid, signal.SIGSTOP)
            self.until(False)
            os.kill(server.process.pid, signal.SIGCONT)
            self.until(True)
            server.stop(signal.SIGKILL)
            self.until(False)
            self.farm.traces[self.hurt] = self.farm.traces[f"node-{MACHINES}"]
            self.farm.stores[self.hurt] = self.farm.stores[f"node-{MACHINES}"] + "-again"
            self.farm.servers[self.hurt] = self.farm.serve(self.hurt, listen=server.host)
            self.farm.servers[self.hurt].opened(self.uuid)
            self.until(True)
            model = self.many.model(f"{self.at}/table/{EVENTS}/lines",
                                    {"requested_table_index": 0, "requested_table_count": 1})
            self.assertEqual(model["size"], self.rest + len(self.new), "what it has now")
        finally:
            self.ended.set()
            for c in clients:
                c.join()
        self.assertEqual(self.wrong, [])
        self.assertGreater(self.seen, 20)


if __name__ == "__main__":
    main()
