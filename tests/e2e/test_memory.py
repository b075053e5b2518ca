# SPDX-License-Identifier: MIT
"""Memory that cannot be had ends a request, never the server. Allocations are made to fail one by one (fail_memory.c,
preloaded), and by a limit of the address space just above what the server has. Whatever is asked meanwhile is answered
as ever or refused (503, with Retry-After); what is asked afterwards is answered as ever. On the command line the
program says so in one line and ends with 1.

WEFT_SEED repeats a run; WEFT_MEMORY_FAILURES=N lets more allocations fail."""
import http.client
import mmap
import os
import random
import resource
import shutil
import struct
import threading
import time
import unittest

from tsp_server import EVENTS, HISTOGRAM, THREAD_STATUS, Server, ServerCase
from weft_e2e import SANITIZER, Case, main, scenario, scratch, seed, weft

SEED = seed(None)
FAILURES = int(os.environ.get("WEFT_MEMORY_FAILURES") or 60)
MIB = 1 << 20
PATHS = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"
INOUT = "org.eclipse.tracecompass.incubator.inandout.core.analysis.inAndOutdataProviderFactory"
PAIRS = "org.eclipse.tracecompass.incubator.internal.inandout.core.config"
TABLE = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreTableDataProvider"
NEVER = (1 << 63) - 1


class Orders:
    """Settings of fail_memory.c."""

    def __init__(self):
        self.path = os.path.join(scratch(), "orders")
        with open(self.path, "w+b") as f:
            f.write(struct.pack("<4q", NEVER, 0, 0, 0))
            f.flush()
            self.map = mmap.mmap(f.fileno(), 32)

    def fail(self, after, in_a_row=1, smallest=0):
        """The allocations after the next `after` ones of at least so many bytes fail, so many."""
        self.map[:8] = struct.pack("<q", NEVER)
        self.map[8:32] = struct.pack("<3q", in_a_row, smallest, 0)
        self.map[:8] = struct.pack("<q", after)

    def end(self):
        """Ends the failures; returns their number."""
        self.map[:8] = struct.pack("<q", NEVER)
        return struct.unpack("<q", self.map[24:32])[0]


def questions(x):
    """Returns (path, body) of requests about the experiment that do different work, and change nothing. Bodies do not
    depend on the time."""
    base = f"/experiments/{x['UUID']}/outputs"
    whole = {"start": x["start"], "end": x["end"]}
    times = {**whole, "nbTimes": 3000}
    items = list(range(1, 120))
    return [(f"/experiments/{x['UUID']}", None), (base, None),
            (f"{base}/timeGraph/{THREAD_STATUS}/tree", {"requested_timerange": whole}),
            (f"{base}/timeGraph/{THREAD_STATUS}/states", {"requested_timerange": times, "requested_items": items}),
            (f"{base}/timeGraph/{THREAD_STATUS}/arrows", {"requested_timerange": times}),
            (f"{base}/XY/{HISTOGRAM}/tree", {"requested_timerange": whole}),
            (f"{base}/table/{EVENTS}/lines", {"requested_table_index": 0, "requested_table_count": 3000}),
            (f"{base}/table/{EVENTS}/lines",
             {"requested_table_index": 0, "requested_table_count": 1, "table_search_expressions": {"1": "no_such"},
              "table_search_direction": "NEXT"})]


def ask(server, question):
    path, parameters = question
    return server.get(path) if parameters is None else server.post(path, parameters)


class MemoryCase(ServerCase):
    def start(self, *args, **env):
        """A server with the experiment opened, and the right answers."""
        self.store = scratch()
        self.orders = Orders()
        server = Server(scenario("three-tier"), *args, store=self.store, LD_PRELOAD=os.environ["FAIL_MEMORY_LIBRARY"],
                        FAIL_MEMORY=self.orders.path, **env)
        self.addCleanup(server.stop)
        self.x = server.first()
        self.questions = questions(self.x)
        self.right = [ask(server, q) for q in self.questions]
        for answer in self.right:
            self.assertEqual(answer.status, 200, answer)
        return server

    def check(self, server, number, answer, context):
        """The right answer, or the refusal."""
        self.assertIsNone(server.process.poll(), f"{context}: the server has ended: {server.errors()[-500:]}")
        if answer is None or answer.status == 200:
            self.assertIn(answer and answer.body, (None, self.right[number].body), f"{context}: another answer")
        else:
            self.assertEqual(answer.status, 503, f"{context}: {answer}")
            self.assertTrue(answer.json["title"])
            self.assertEqual(answer.headers["Retry-After"], "1")

    def ask_or_lose(self, server, number):
        """Returns the answer, or None if the connection ended: no thread could be started for it, or its answer not be
        made."""
        try:
            return ask(server, self.questions[number])
        except (OSError, http.client.HTTPException) as e:
            if isinstance(e, TimeoutError):
                raise
            return None

    def notes(self, server):
        return server.post(f"/experiments/{self.x['UUID']}/outputs/table/weft.notes/lines",
                           {"requested_table_index": 0, "requested_table_count": 10})

    def patiently(self, server, context, ask_it):
        """Asks until it is no longer refused, nor running."""
        for _ in range(200):
            self.assertIsNone(server.process.poll(), f"{context}: the server has ended: {server.errors()[-500:]}")
            try:
                answer = ask_it()
            except (ConnectionError, http.client.HTTPException):
                continue
            if answer.status == 200 and (not isinstance(answer.json, dict) or answer.json.get("status") != "RUNNING"):
                return answer
            if answer.status != 200:
                self.assertEqual(answer.status, 503, f"{context}: {answer}")
            time.sleep(0.05)
        raise AssertionError(f"{context}: refused for ever")

    def all_right(self, server, context):
        """Everything is answered as ever."""
        for i, question in enumerate(self.questions):
            answer = ask(server, question)
            self.assertEqual(answer.status, 200, f"{context}: afterwards {question[0]}: {answer}")
            self.assertEqual(answer.body, self.right[i].body, f"{context}: afterwards {question[0]}")

    def hammer(self, server, rounds, context):
        """Sends all queries at once, several times; counts answers by kind."""
        counts, problems = {}, []

        def client(shift):
            try:
                for k in range(rounds * len(self.questions)):
                    number = (k + shift) % len(self.questions)
                    answer = self.ask_or_lose(server, number)
                    self.check(server, number, answer, f"{context}, {self.questions[number]}")
                    status = answer.status if answer else None
                    counts[status] = counts.get(status, 0) + 1
            except Exception as e:  # pylint: disable=broad-except
                problems.append(e)
        threads = [threading.Thread(target=client, args=(i,)) for i in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if problems:
            raise problems[0]
        return counts


@unittest.skipIf(SANITIZER, "sanitizers have allocators of their own")
class FailingAllocations(MemoryCase):
    def test_every_one(self):
        server = self.start()
        dice = random.Random(SEED)
        failed = 0
        for number, question in enumerate(self.questions):
            for n in range(FAILURES):
                after = n if n < FAILURES // 2 else int(2 ** dice.uniform(0, 14))
                in_a_row, smallest = dice.choice([(1, 0), (1, 0), (2, 0), (9, 0), (3, 4096), (2, 1 << 17)])
                context = f"{question[0]}: after {after}, {in_a_row} of {smallest} B fail"
                self.orders.fail(after, in_a_row, smallest)
                answer = self.ask_or_lose(server, number)
                failed += self.orders.end()
                self.check(server, number, answer, context)
                again = ask(server, question)
                self.assertEqual(again.status, 200, f"{context}: {again}")
                self.assertEqual(again.body, self.right[number].body, f"{context}: another answer afterwards")
        self.assertGreater(failed, FAILURES)
        self.all_right(server, "after all")
        self.assertEqual(server.stop(), 0)

    def test_opening(self):
        """Stores that are read, and made, while allocations fail: the experiment opens in the end, as ever."""
        server = self.start()
        dice = random.Random(SEED + 1)
        trace = os.path.realpath(scenario("three-tier"))
        failed = 0
        for n in range(FAILURES // 8):
            self.assertEqual(server.delete(f"/experiments/{self.x['UUID']}").status, 200)
            if n % 3 == 0:
                for host in filter(os.path.isdir, (os.path.join(self.store, name) for name in os.listdir(self.store))):
                    shutil.rmtree(host)
            after, in_a_row = int(2 ** dice.uniform(0, 15)), dice.choice([1, 2, 9])
            context = f"after {after}, {in_a_row} fail"
            uuids = [t["UUID"] for t in server.get("/traces").json if t["path"].startswith(trace)]
            self.orders.fail(after, in_a_row, dice.choice([0, 0, 4096, 1 << 17]))
            answer = self.patiently(server, context, lambda: server.ask(
                "POST", "/experiments", {"parameters": {"name": self.x["name"], "traces": uuids}}))
            self.assertEqual(answer.json["UUID"], self.x["UUID"])
            for i, question in enumerate(self.questions):
                answer = self.patiently(server, context, lambda q=question: ask(server, q))
                if i == 1: # second query: current state, at once
                    ids, right = ({o["id"] for o in a.json} for a in (answer, self.right[i]))
                    self.assertFalse(ids ^ right, f"{context}: {self.notes(server)}")
                elif i > 1:
                    self.assertEqual(answer.json["model"], self.right[i].json["model"], context)
            failed += self.orders.end()
        self.assertGreater(failed, 0)
        self.all_right(server, "after all")
        self.assertEqual(server.stop(), 0)

    def test_background(self):
        """Background computations: paths, pairs, filtered tables. The reference is another server, which has enough
        memory."""
        server = self.start()
        judge = Server(scenario("three-tier"), store=self.store)
        self.addCleanup(judge.stop)
        self.assertEqual(judge.first()["UUID"], self.x["UUID"])
        dice = random.Random(SEED + 2)
        base = f"/experiments/{self.x['UUID']}/outputs"
        begin, end = self.x["start"], self.x["end"]
        failed = paths = 0
        for n in range(FAILURES // 2):
            from_ = begin + dice.randint(0, 900000000) # the threads of the requests live a second
            if n % 3 == 0:
                body = {"name": "p", "sourceTypeId": "weft.critical-path",
                        "parameters": {"thread": dice.choice(["client:201", "db:202", "web:194"]), "begin": from_,
                                       "end": end}}
                asked = [s.ask("POST", f"{base}/{PATHS}", body) for s in (judge, server)]
                self.assertEqual(asked[0].body, asked[1].body)
                self.assertIn(asked[0].status, (200, 400)) # 400: the thread did not live then
                if asked[0].status == 400:
                    continue
                paths += 1
                path = f"{base}/timeGraph/{asked[0].json['id']}/tree"
                question = {"requested_timerange": {"start": from_, "end": end, "nbTimes": 2}}
            elif n % 3 == 1:
                pair = {"label": f"{n}", "inRegex": "syscall_entry_(.*)", "outRegex": "syscall_exit_.*",
                        "contextInRegex": "", "contextOutRegex": "", "classifier": "TID"}
                body = {"name": f"p{n}", "sourceTypeId": PAIRS, "parameters": {"specifiers": [pair]}}
                asked = [s.ask("POST", f"{base}/{INOUT}", body) for s in (judge, server)]
                self.assertEqual(asked[0].body, asked[1].body)
                self.good(asked[0])
                path = f"{base}/table/{TABLE}:{asked[0].json['id']}/lines"
                question = {"requested_table_index": 0, "requested_table_count": 300}
            else:
                path = f"{base}/table/{EVENTS}/lines"
                question = {"requested_table_index": 5, "requested_table_count": 300,
                            "table_filter_expressions": {"1": f"sched_.*|{n}"}}
            after, in_a_row = int(2 ** dice.uniform(0, 9)), dice.choice([1, 2, 9])
            context = f"{path}: after {after}, {in_a_row} fail"
            self.orders.fail(after, in_a_row, dice.choice([0, 0, 4096]))
            answer = self.patiently(server, context, lambda p=path, q=question: server.post(p, q))
            failed += self.orders.end()
            right = judge.model(path, question)
            if "table" in path: # a filtered table grows until all events are read
                answer = self.until_still(server, path, question, right)
                self.assertEqual(answer["lines"], right["lines"], context)
            else:
                self.assertEqual(answer.json["model"], right, context)
        self.assertGreater(failed, 0)
        self.assertGreater(paths, 0)
        self.assertEqual(server.stop(), 0)

    def until_still(self, server, path, question, right):
        for _ in range(100):
            model = self.patiently(server, path, lambda: server.post(path, question)).json["model"]
            if model["lines"] == right["lines"]:
                break
            time.sleep(0.05)
        return model


class LittleAddressSpace(MemoryCase):
    """The kernel refuses what goes beyond a limit, from just above what the server has to as much as it wants."""

    @unittest.skipIf(SANITIZER, "sanitizers reserve address space, so limits on it do not work")
    def test_sweep(self):
        server = self.start()
        counts = {}
        pid = server.process.pid
        for step in range(0, 24):
            with open(f"/proc/{pid}/status", encoding="ascii") as f:
                size = next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmSize"))
            limit = size + step * MIB * 4 - 48 * MIB
            resource.prlimit(pid, resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))
            for status, n in self.hammer(server, 1, f"limit {limit}").items():
                counts[status] = counts.get(status, 0) + n
            resource.prlimit(pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            self.all_right(server, f"limit {limit}")
        print(f"answers by status: {counts}")
        self.assertGreater(counts.get(503, 0), 0)
        self.assertGreater(counts.get(200, 0), 0)
        self.assertEqual(server.stop(), 0)


class CommandLine(Case):
    @unittest.skipIf(SANITIZER, "sanitizers reserve address space, so limits on it do not work")
    def test_one_line(self):
        """Memory from too little to start to enough: one line and 1, or the answer."""
        ends = set()
        for mib in range(24, 160, 8):
            r = weft("critpath", "--store", scratch(), scenario("three-tier"), "--thread", "client:201",
                     memory=mib * MIB)
            if b"loading shared libraries" in r.err or r.code == 127:
                continue
            self.assertGreaterEqual(r.code, 0, f"{mib} MiB: {r}")
            ends.add(r.code)
            if r.code == 1:
                self.assertIn("memory", r.message.lower(), f"{mib} MiB")
                self.assertNotIn("Aborted", r.message)
        self.assertIn(1, ends)


if __name__ == "__main__":
    main()
