#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weft coordinate over a hundred servers, made up in one process: one query goes to all of them, answers to many
simultaneous queries are complete, there are as many threads as queries and not as servers, and one server that hangs
is the only one missing."""
import asyncio
import functools
import json
import re
import threading
import time

from coordinated import Coordinator
from weft_e2e import SLOWDOWN, Case, main

SERVERS, AT_ONCE, THREADS_IDLE = 100, 50, 16
UUID = "9af5f5ea-1c2b-3d4e-8f00-000000000100"
BEGIN = 1_000_000_000_000_000_000


class Connection(asyncio.Protocol):
    """Answers complete requests, in order; quickly, since healthy servers must answer probes also under load."""

    def __init__(self, hundred, i):
        self.hundred, self.i, self.got = hundred, i, b""

    def connection_made(self, transport):
        self.transport = transport

    def data_received(self, data):
        self.got += data
        while (end := self.got.find(b"\r\n\r\n")) >= 0:
            head = self.got[:end].decode("latin-1")
            length = re.search(r"\r\ncontent-length: *(\d+)", head, re.I)
            end += 4 + int(length.group(1) if length else 0)
            if len(self.got) < end:
                break
            self.got = self.got[end:]
            if self.hundred.hangs != self.i:
                self.transport.write(self.hundred.answer(self.i, head.split(" ", 2)[1].removeprefix("/tsp/api")))


class Hundred:
    """Servers of one experiment with one row each, on a port each, in one thread. hangs: the number of one that accepts
    queries and is silent."""

    def __init__(self):
        self.hangs, self.urls, self.said, self.loop = None, [], {}, asyncio.new_event_loop()
        ready = threading.Event()
        self.thread = threading.Thread(target=self.run, args=(ready,), daemon=True)
        self.thread.start()
        ready.wait()

    def run(self, ready):
        asyncio.set_event_loop(self.loop)
        for i in range(SERVERS):
            listens = self.loop.create_server(functools.partial(Connection, self, i), "127.0.0.1", 0, backlog=256)
            server = self.loop.run_until_complete(listens)
            self.urls.append(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
        ready.set()
        self.loop.run_forever()

    def answer(self, i, path):
        if (i, path) not in self.said:
            value = self.value(i, path)
            data = json.dumps(value or {"title": "No such thing"}).encode()
            status = b"404 Not Found" if value is None else b"200 OK"
            self.said[i, path] = (b"HTTP/1.1 %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
                                  % (status, len(data), data))
        return self.said[i, path]

    @staticmethod
    def value(i, path):
        trace = {"name": f"trace-{i}", "path": f"/traces/{i}", "UUID": f"9af5f5ea-1c2b-3d4e-8f01-{i:012}",
                 "nbEvents": i, "start": BEGIN + i, "end": BEGIN + 1000 + i, "indexingStatus": "COMPLETED"}
        experiment = {**trace, "name": "all", "UUID": UUID, "traces": [trace]}
        entry = {"id": 1, "parentId": -1, "labels": [f"row-{i}"], "start": BEGIN, "end": BEGIN + 1000, "hasData": True}
        models = {"tree": {"headers": [], "entries": [entry]},
                  "states": {"rows": [{"entryId": 1, "states": [{"start": BEGIN + i, "end": BEGIN + 1000}]}]}}
        known = {"/health": {"status": "UP"}, "/traces": [trace], "/experiments": [experiment],
                 f"/experiments/{UUID}": experiment,
                 "/identifier": {"productId": "weft" if i % 2 else "another"}}
        what = path.rsplit("/", 1)[1]
        if what in models:
            return {"model": models[what], "status": "COMPLETED", "statusMessage": "Completed"}
        return known.get(path)

    def stop(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()


class AHundredServers(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.behind = Hundred()
        cls.many = Coordinator(*[f"--server=node-{i}={url}" for i, url in enumerate(cls.behind.urls)])
        cls.at = f"/experiments/{UUID}/outputs/timeGraph/v"

    @classmethod
    def tearDownClass(cls):
        cls.many.stop()
        cls.behind.stop()

    def threads(self):
        with open(f"/proc/{self.many.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("Threads:"))

    def there(self, n):
        until = time.monotonic() + 30 * SLOWDOWN
        while (up := sum(s["status"] == "UP" for s in self.many.get("/servers").json)) != n:
            self.assertLess(time.monotonic(), until, f"{up} of {SERVERS} are there")
            time.sleep(0.1)

    def labels(self, answer):
        return [e["labels"][0] for e in answer.json["model"]["entries"]]

    def begins(self, ids):
        """Returns, by server, the beginnings of the ids in one answer."""
        answer = self.many.post(f"{self.at}/states", {
            "requested_timerange": {"start": BEGIN, "end": BEGIN + 1000, "nbTimes": 10}, "requested_items": ids})
        begins = {r["entryId"]: r["states"][0]["start"] - BEGIN for r in answer.json["model"]["rows"]}
        return {ids.index(i): begin for i, begin in begins.items()}, answer.json

    def test_all(self):
        self.there(SERVERS)
        self.assertLess(self.threads(), THREADS_IDLE)
        everybody = [f"row-{i}" for i in range(SERVERS)]
        tree = self.many.post(f"{self.at}/tree")
        self.assertEqual(self.labels(tree), everybody)
        ids = [e["id"] for e in tree.json["model"]["entries"]]
        x = self.many.get(f"/experiments/{UUID}").json
        self.assertEqual((x["nbEvents"], x["start"], x["end"], len(x["traces"])),
                         (sum(range(SERVERS)), BEGIN, BEGIN + 1000 + SERVERS - 1, SERVERS))

        said, most = [], 0
        clients = [threading.Thread(target=lambda: said.append(self.begins(ids))) for _ in range(AT_ONCE)]
        for t in clients:
            t.start()
        while len(said) < AT_ONCE and any(t.is_alive() for t in clients):
            most = max(most, self.threads())
            time.sleep(0.01)
        for t in clients:
            t.join()
        self.assertEqual(len(said), AT_ONCE)
        for begins, answer in said:
            self.assertEqual(begins, {i: i for i in range(SERVERS)}, answer.get("hosts"))
            self.assertNotIn("hosts", answer)
        self.assertLess(most, THREADS_IDLE + AT_ONCE)

        self.behind.hangs = 42
        try:
            began = time.monotonic()
            begins, answer = self.begins(ids)
            self.assertLess(time.monotonic() - began, 10 * SLOWDOWN)
            self.assertEqual([x["host"] for x in answer["hosts"]["lacking"]], ["node-42"])
            self.assertEqual(answer["hosts"]["complete"], SERVERS - 1)
            self.assertEqual(begins, {i: i for i in range(SERVERS) if i != 42})
            self.assertEqual(self.labels(self.many.post(f"{self.at}/tree")), everybody[:42] + everybody[43:])
        finally:
            self.behind.hangs = None
        self.there(SERVERS)
        self.assertEqual(self.labels(self.many.post(f"{self.at}/tree")), everybody)


if __name__ == "__main__":
    main()
