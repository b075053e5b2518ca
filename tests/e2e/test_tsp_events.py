# SPDX-License-Identifier: MIT
"""The filtered events table against babeltrace2's text, counted here by other means."""
import http.client
import json
import os
import re
import subprocess
import threading
import time
import unittest

import long_trace
from tsp_server import EVENTS, Server
from weft_e2e import DATA, SLOWDOWN, Case, main, need, scenario, scratch

LINE = re.compile(r"^\[(\d+)\.(\d{9})\] \S+ (\S+): \{ cpu_id = (\d+) \}, \{ ?(.*?) ?\}$", re.M)


class Table(Case):
    """A server over one trace; its events table."""

    @classmethod
    def start(cls, *traces):
        cls.server = Server(*traces)
        cls.x = cls.server.first()
        cls.base = f"/experiments/{cls.x['UUID']}/outputs/table/{EVENTS}"
        cls.columns = {c["name"]: c["id"] for c in cls.server.model(cls.base + "/columns")}

    @classmethod
    def stop(cls):
        if hasattr(cls, "server"):
            code, errors = cls.server.stop(), cls.server.errors()
            cls.server.log.close()
            del cls.server
            assert code == 0 and "Sanitizer" not in errors, f"exit {code}: {errors}"

    @classmethod
    def tearDownClass(cls):
        cls.stop()

    def patterns(self, cells):
        return {str(self.columns[column]): pattern for column, pattern in cells.items()}

    def filter(self, cells=None, where=None):
        wanted = {}
        if cells:
            wanted["table_filter_expressions"] = self.patterns(cells)
        if where:
            wanted["filter_query_parameters"] = {"strategy": "SAMPLED", "filter_expressions_map": {"4": where}}
        return wanted

    def lines(self, wanted=None, **parameters):
        return self.server.model(self.base + "/lines", dict(wanted or {}, **parameters))

    def times(self, model):
        place = model["columnIds"].index(self.columns["Timestamp ns"])
        return [int(line["cells"][place]["content"]) for line in model["lines"]]


class Filter(Table):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = os.path.join(scenario("three-tier"), "db", "kernel")
        text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], stdout=subprocess.PIPE,
                              check=True).stdout.decode()
        cls.events = [(int(s) * 10**9 + int(ns), name, cpu, fields) for s, ns, name, cpu, fields in LINE.findall(text)]
        running, cls.tids = {}, []
        for _, name, cpu, fields in cls.events:
            cls.tids.append(running.get(cpu))
            if name == "sched_switch":
                cls.tids[-1] = re.search(r"prev_tid = (\d+)", fields).group(1)
                running[cpu] = re.search(r"next_tid = (\d+)", fields).group(1)
        cls.start(path)

    def check(self, wanted, truth):
        """Checks that all pages of the table are the events whose numbers `truth` lists."""
        self.assertGreater(len(truth), 3, "the test would show nothing")
        times = [self.events[i][0] for i in truth]
        got = []
        for first in range(0, len(truth), 20000):
            model = self.lines(wanted, requested_table_index=first, requested_table_count=20000)
            self.assertEqual((model["lowIndex"], model["size"]), (first, len(truth)))
            self.assertEqual([line["index"] for line in model["lines"]],
                             list(range(first, min(first + 20000, len(truth)))))
            got += self.times(model)
        self.assertEqual(got, times)
        for first in (len(truth) // 2, 0, len(truth) - 2, len(truth) // 3):
            model = self.lines(wanted, requested_table_index=first, requested_table_count=5)
            self.assertEqual(self.times(model), times[first:first + 5])
        past = self.lines(wanted, requested_table_index=len(truth), requested_table_count=5)
        self.assertEqual((past["lines"], past["size"]), ([], len(truth)))

    def where(self, fits):
        return [i for i, e in enumerate(self.events) if fits(*e)]

    def test_cells(self):
        self.check(self.filter({"Event type": "^sched_switch$"}),
                   self.where(lambda t, name, cpu, f: name == "sched_switch"))
        self.check(self.filter({"Event type": "^syscall_(entry|exit)_.*poll"}),
                   self.where(lambda t, name, cpu, f: re.match("syscall_(entry|exit)_.*poll", name)))
        self.check(self.filter({"Event type": "switch", "CPU": "^1$"}),
                   self.where(lambda t, name, cpu, f: "switch" in name and cpu == "1"))
        self.check(self.filter({"Contents": "next_comm=swapper/[01]"}),
                   self.where(lambda t, name, cpu, f: re.search('next_comm = "swapper/[01]', f)))
        self.check(self.filter({"Contents": "prev_prio=20, ", "Event type": "sched", "CPU": "0"}),
                   self.where(lambda t, name, cpu, f: "prev_prio = 20, " in f and "sched" in name and "0" in cpu))
        self.check(self.filter({"Timestamp ns": "77$"}), self.where(lambda t, name, cpu, f: t % 100 == 77))

    def test_plain_texts(self):
        """Texts that are looked for as they stand: names, parts of names, values, across fields."""
        shown = [plain(e[3]) for e in self.events]
        for text in ("next_comm=swapper/0", "swapper/", "vec=7", "vec", "ret=0", "ret", "tid", "_t", "omm", "0x", "ff",
                     "=20, prev", "fd=3", "eth0", "=0x", "fe", "e=",
                     "tid=0, ", "xx", "zzz", "clockid", "which_clock=1"):
            truth = [i for i, fields in enumerate(shown) if text in fields]
            unsure = [i for i, e in enumerate(self.events) if "network_header = {" in e[3] or '""' in e[3]
                      or "filename" in e[3]]
            model = self.lines(self.filter({"Contents": text}), requested_table_index=0, requested_table_count=20000)
            got, at = [], 0
            for t in self.times(model):
                while self.events[at][0] != t:
                    at += 1
                got.append(at)
                at += 1
            some = set(range(got[-1] + 1 if model["size"] > 20000 else len(shown))) - set(unsure)
            self.assertEqual(sorted(set(got) & some), sorted(set(truth) & some), text)

    def test_expressions(self):
        self.check(self.filter(where=['name == "sched_switch" && next_tid == 0']),
                   self.where(lambda t, name, cpu, f: name == "sched_switch" and "next_tid = 0," in f))
        self.check(self.filter(where=["cpu == 1", 'name =~ "^irq"']),
                   self.where(lambda t, name, cpu, f: cpu == "1" and name.startswith("irq")))
        middle = self.events[len(self.events) // 2][0]
        self.check(self.filter(where=[f'ts > {middle} && host == "db" && !(name =~ "^sched")']),
                   self.where(lambda t, name, cpu, f: t > middle and not name.startswith("sched")))
        self.check(self.filter({"Contents": "tid"}, ['name =~ "sched_w"']),
                   self.where(lambda t, name, cpu, f: "sched_w" in name and "tid" in f))

    def test_threads(self):
        busiest = max(set(self.tids) - {None, "0"}, key=self.tids.count)
        self.check(self.filter(where=[f"tid == {busiest}"]), [i for i, tid in enumerate(self.tids) if tid == busiest])
        self.check(self.filter({"TID": f"^{busiest}$"}), [i for i, tid in enumerate(self.tids) if tid == busiest])

    def test_by_time(self):
        wanted = self.filter({"Event type": "^sched_waking$"})
        truth = self.where(lambda t, name, cpu, f: name == "sched_waking")
        for i in (0, 1, truth[5], truth[5] + 1, len(self.events) // 2, truth[-1]):
            for t in (self.events[i][0], self.events[i][0] + 1):
                row = next((k for k, e in enumerate(truth) if self.events[e][0] >= t), None)
                model = self.lines(wanted, requested_times=[t], requested_table_count=2)
                self.assertEqual(model["size"], len(truth))
                self.assertEqual([line["index"] for line in model["lines"]],
                                 [] if row is None else list(range(row, min(row + 2, len(truth)))), (i, t))
                if row is not None:
                    self.assertEqual((model["lowIndex"], self.times(model)[0]), (row, self.events[truth[row]][0]))

    def test_search_within(self):
        wanted = self.filter({"Event type": "^sched_"})
        truth = self.where(lambda t, name, cpu, f: name.startswith("sched_"))
        matches = [row for row, i in enumerate(truth) if self.events[i][1] == "sched_switch"
                   and 'next_comm = "swapper' in self.events[i][3]]
        search = dict(wanted, table_search_expressions=self.patterns({"Contents": "next_comm=swapper"}))
        for k in (0, 7, len(matches) - 2):
            found = self.lines(search, table_search_direction="NEXT", requested_table_index=matches[k] + 1,
                               requested_table_count=30)
            self.assertEqual((found["lowIndex"], found["size"]), (matches[k + 1], len(truth)))
            self.assertEqual([bool(line.get("tags", 0) & 8) for line in found["lines"]],
                             [line["index"] in matches for line in found["lines"]])
            self.assertEqual(self.times(found), [self.events[i][0] for i in truth[matches[k + 1]:matches[k + 1] + 30]])
            back = self.lines(search, table_search_direction="PREVIOUS", requested_table_index=matches[k + 1] - 1,
                              requested_table_count=1)
            self.assertEqual(back["lowIndex"], matches[k])
        none = dict(wanted, table_search_expressions=self.patterns({"Event type": "^net"}))
        for direction in ("NEXT", "PREVIOUS"):
            self.assertEqual(self.lines(none, table_search_direction=direction, requested_table_index=9,
                                        requested_table_count=3)["lines"], [])

    def test_nothing_fits(self):
        for wanted in (self.filter({"Event type": "^no_such_event$"}), {"table_filter_expressions": {"99": "x"}},
                       self.filter(where=["no_such_field == 1"])):
            model = self.lines(wanted, requested_table_index=0, requested_table_count=5)
            self.assertEqual((model["size"], model["lines"]), (0, []))
            self.assertEqual(self.lines(wanted, requested_times=[self.x["start"]], requested_table_count=5)["lines"],
                             [])

    def test_why_nothing_fits(self):
        """Expressions that cannot match are explained; others are not."""
        for wanted, told in (
                (self.filter(where=["nxt_tid == 1"]),
                 "no event of these traces has a field nxt_tid; did you mean next_tid?"),
                (self.filter(where=["next_tid == \"1\""]),
                 "next_tid is a number and never equals the text \"1\"; leave the quotes away"),
                (self.filter(where=["name == \"sched_swich\""]),
                 "no event of these traces has the name \"sched_swich\"; did you mean sched_switch?"),
                ({"table_filter_expressions": {"99": "x"}},
                 "table_filter_expressions names a column that this table does not have"),
                (self.filter(where=["nxt_tid == 1 || next_tid > 0"]), "Completed"),
                (self.filter(where=["next_tid == 999999"]), "Completed"),
                (self.filter({"Event type": "^no_such_event$"}), "Completed")):
            for _ in range(600): # loop until all events are searched
                answer = self.server.post(self.base + "/lines", dict(wanted, requested_table_index=0,
                                                                     requested_table_count=1)).json
                if answer["status"] != "RUNNING":
                    break
                time.sleep(0.1)
            self.assertEqual((answer["status"], answer["statusMessage"]), ("COMPLETED", told), wanted)

    def test_other_tables(self):
        """Tables whose rows are at hand are filtered in the same way."""
        segments = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreTableDataProvider"
        calls = (f"/experiments/{self.x['UUID']}/outputs/table/{segments}:"
                 "org.eclipse.tracecompass.analysis.os.linux.latency.syscall")
        columns = {c["name"]: c["id"] for c in self.server.model(calls + "/columns")}
        every = self.server.model(calls + "/lines", {"requested_table_index": 0, "requested_table_count": 20000})
        start, name = every["columnIds"].index(columns["Start Time"]), every["columnIds"].index(columns["Name"])
        wanted = [[c["content"] for c in line["cells"]] for line in every["lines"]
                  if re.search("poll|ioctl", line["cells"][name]["content"])]
        self.assertTrue(3 < len(wanted) < every["size"])
        filtered = {"table_filter_expressions": {str(columns["Name"]): "poll|ioctl"}}
        model = self.server.model(calls + "/lines",
                                  dict(filtered, requested_table_index=1, requested_table_count=20000))
        self.assertEqual((model["size"], model["lowIndex"]), (len(wanted), 1))
        self.assertEqual([[c["content"] for c in line["cells"]] for line in model["lines"]], wanted[1:])
        model = self.server.model(calls + "/lines",
                                  dict(filtered, requested_times=[int(wanted[2][start])], requested_table_count=1))
        self.assertEqual((model["lowIndex"], model["lines"][0]["cells"][start]["content"]), (2, wanted[2][start]))
        self.pages(calls, columns, every, name)

    def pages(self, table, columns, every, name):
        """Page by page, in turns with more filters than are kept, by several at once."""
        names = sorted({line["cells"][name]["content"] for line in every["lines"]})
        wrong = []

        def read(patterns):
            at = dict.fromkeys(patterns, 0)
            while any(i is not None for i in at.values()):
                for pattern in [p for p in patterns if at[p] is not None]:
                    wanted = [line["cells"] for line in every["lines"]
                              if re.search(pattern, line["cells"][name]["content"])]
                    model = self.server.model(table + "/lines", {
                        "table_filter_expressions": {str(columns["Name"]): pattern},
                        "requested_table_index": at[pattern], "requested_table_count": len(wanted) // 3 + 1})
                    page = wanted[at[pattern]:at[pattern] + len(wanted) // 3 + 1]
                    if (model["size"], [line["cells"] for line in model["lines"]]) != (len(wanted), page):
                        wrong.append((pattern, at[pattern]))
                    at[pattern] = at[pattern] + len(page) if page else None
        self.assertGreater(len(names), 9)
        readers = [threading.Thread(target=read, args=([f"^{n}$" for n in some],))
                   for some in (names[:9], ["poll|ioctl", "^r", "nothing"])]
        for r in readers:
            r.start()
        for r in readers:
            r.join()
        self.assertEqual(wrong, [])

    def test_no_filter(self):
        for wanted in ({"table_filter_expressions": {}}, {"table_filter_expressions": None}, self.filter(where=[" "]),
                       {"filter_query_parameters": {"strategy": "DEEP",
                                                    "filter_expressions_map": {"1": ["cpu == 0"]}}}):
            self.assertEqual(self.lines(wanted, requested_table_index=3, requested_table_count=5)["size"],
                             len(self.events))

    def test_refused(self):
        for wanted, named in (({"table_filter_expressions": ["x"]}, "table_filter_expressions"),
                              (self.filter(where=["cpu == "]), "column"),
                              (self.filter(where=["cpu == 1) || (cpu == 0"]), "column"),
                              (self.filter(where=["cpu == 1", 'name =~ "("']), "filter_query_parameters")):
            answer = self.server.post(self.base + "/lines",
                                      dict(wanted, requested_table_index=0, requested_table_count=5))
            self.assertEqual(answer.status, 400, answer)
            self.assertIn(named, answer.json["title"] + answer.json.get("detail", ""))
            if "filter_query_parameters" in wanted:
                self.assertEqual(answer.json["title"], "Invalid query parameters: filter_query_parameters")
                self.assertTrue(answer.json["detail"], answer)

    def test_columns_state_how_they_are_shown(self):
        columns = {c["name"]: c for c in self.server.post(self.base + "/columns").json["model"]}
        self.assertEqual(columns["Contents"]["display"], "WIDE")
        for name in ("Channel", "Timestamp ns", "Prio"):
            self.assertEqual(columns[name]["display"], "ASIDE", name)
        for name in ("Timestamp", "CPU", "Event type"):
            self.assertNotIn("display", columns[name])

    def test_many_filters(self):
        """Filters, more than are cached, in turns: each answers right, also after it was dropped."""
        names = sorted({e[1] for e in self.events}, key=lambda n: -sum(1 for e in self.events if e[1] == n))[:12]
        for name in names + names:
            model = self.lines(self.filter({"Event type": f"^{name}$"}), requested_table_index=0,
                               requested_table_count=1)
            self.assertEqual(model["size"], sum(1 for e in self.events if e[1] == name), name)


def plain(text):
    """Fields as babeltrace2 shows them, in the table's way: no quotes, an enumeration by its label (else its number),
    bytes of hexadecimal in lower case."""
    text = re.sub(r'\( "([^"]*)" : container = -?\w+ \)', r"\1", text)
    text = re.sub(r"\( <unknown> : container = (-?\w+) \)", r"\1", text)
    text = re.sub(r"\[\d+\] = ", "", text)
    text = re.sub(r"([\[{]) +| +([\]}])", lambda m: m.group(1) or m.group(2), text.replace(" = ", "="))
    return re.sub(r"\b0x[0-9A-F]+\b", lambda m: m.group(0).lower(), text.replace('"', ""))


def babeltrace(path):
    """(ns, name, cpu, [text of each scope behind the packet's]) of each event."""
    text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], stdout=subprocess.PIPE,
                          check=True).stdout.decode()
    found = re.findall(r"^\[(\d+)\.(\d{9})\] (?:\S+ )?(\S+): \{ cpu_id = (\d+) \}, (.*)$", text, re.M)
    return [(int(s) * 10**9 + int(ns), name, cpu, [re.sub(r"^\{ ?| ?\}$", "", part)
                                                   for part in re.split(r"(?<=\}), (?=\{)", rest)]) for s, ns, name,
            cpu, rest in found]


class Columns(Table):
    """The cells of all lines against babeltrace2's text."""

    def cells(self, *names):
        for first in range(0, self.x["nbEvents"], 20000):
            model = self.lines(requested_table_index=first, requested_table_count=20000,
                               requested_table_column_ids=[self.columns[n] for n in names])
            for line in model["lines"]:
                yield [c["content"] for c in line["cells"]]

    def tearDown(self):
        Columns.stop()

    @classmethod
    def tearDownClass(cls):
        pass

    def test_kernel(self):
        path = os.path.join(scenario("three-tier"), "db", "kernel")
        self.start(path)
        self.assertLessEqual({"Timestamp", "Channel", "CPU", "Event type", "Contents", "Packet context", "TID", "Prio",
                              "PID", "Timestamp ns"}, set(self.columns))
        self.assertFalse({"Trace", "Stream context", "Event context"} & set(self.columns))
        truth, running, waiting = babeltrace(path), {}, {}
        self.assertEqual(len(truth), self.x["nbEvents"])
        expected = []  # thread and priority, by the switch before, or by the first one
        for i, (_, name, cpu, scopes) in enumerate(truth):
            expected.append(running.get(cpu))
            if name == "sched_switch":
                expected[i] = list(re.search(r"prev_tid = (\d+), prev_prio = (-?\d+)", scopes[-1]).groups())
                for k in waiting.pop(cpu, []):
                    expected[k] = expected[i]
                running[cpu] = list(re.search(r"next_tid = (\d+), next_prio = (-?\d+)", scopes[-1]).groups())
            elif cpu not in running:
                waiting.setdefault(cpu, []).append(i)
        self.assertGreater(len({prio for _, prio in expected}), 1)
        for i, (cells, (t, name, cpu, scopes)) in enumerate(zip(self.cells("Timestamp ns", "Event type", "CPU",
                                                                           "Contents", "TID", "Prio"), truth)):
            fields = plain(scopes[-1])
            if "network_header={" in fields:  # the table names a variant's option, babeltrace2 the variant
                leaf = re.compile(r"(\w+)=(?![\[{])([^,{}\]]*)")
                self.assertEqual(leaf.findall(cells[3]), leaf.findall(fields), i)
                self.assertEqual(cells[3].count("{"), cells[3].count("}"))
                fields = cells[3]
            pairs = list(zip(cells[3].split(", "), fields.split(", ")))
            # babeltrace2 2.0.4 shows the text of an earlier event for an empty one
            if all(a == b or (a.endswith("=") and b.startswith(a)) for a, b in pairs):
                fields = cells[3] if cells[3].count(", ") == fields.count(", ") else fields
            self.assertEqual(cells, [str(t), name, cpu, fields] + expected[i], i)

    def test_prio_anywhere(self):
        """Priorities are the same wherever the page begins, and by filter."""
        self.start(os.path.join(scenario("three-tier"), "db", "kernel"))
        every = [cells[0] for cells in self.cells("Prio")]
        for i in range(5, len(every), len(every) // 150):
            model = self.lines(requested_table_index=i, requested_table_count=1,
                               requested_table_column_ids=[self.columns["Prio"]])
            self.assertEqual(model["lines"][0]["cells"][0]["content"], every[i], i)
        rare = min(set(every), key=every.count)
        model = self.lines(self.filter({"Prio": f"^{rare}$"}), requested_table_index=0, requested_table_count=1)
        self.assertEqual(model["size"], every.count(rare))

    def test_contexts(self):
        path = os.path.join(DATA, "traces-public", "context-switches-ust")
        self.start(need(path))
        self.assertIn("Stream context", self.columns)
        self.assertFalse({"Prio", "Trace", "Event context"} & set(self.columns))
        truth = babeltrace(path)
        self.assertEqual(len(truth), self.x["nbEvents"])
        for cells, (t, name, _, scopes) in zip(self.cells("Timestamp ns", "Event type", "Stream context", "Contents",
                                                          "TID"), truth):
            self.assertEqual(cells[:4], [str(t), name, plain(scopes[0]), plain(scopes[1])])
            self.assertEqual(cells[4], re.search(r"vtid = (\d+)", scopes[0]).group(1))

    def test_perf(self):
        """perf tells thread and process with each event; of a thread that ends, which has no number any more, the
        switch away from it does."""
        path = scenario("perf-ctf")
        self.start(path)
        truth, ending = babeltrace(path), 0
        self.assertEqual(len(truth), self.x["nbEvents"])
        for cells, (t, name, _, scopes) in zip(self.cells("Timestamp ns", "TID", "PID"), truth):
            tid, pid = re.search(r"perf_tid = (-?\d+), perf_pid = (\d+)", scopes[-1]).groups()
            if tid == "-1":
                self.assertEqual(name, "sched:sched_switch")
                tid, ending = re.search(r"prev_pid = (\d+)", scopes[-1]).group(1), ending + 1
            self.assertEqual(cells, [str(t), tid, pid])
        self.assertGreater(ending, 0)

    def test_several_traces(self):
        self.start(scenario("three-tier"))
        self.assertIn("Trace", self.columns)
        counts = {}
        for (host,) in self.cells("Trace"):
            counts[host] = counts.get(host, 0) + 1
        self.assertEqual(counts, {host: len(babeltrace(os.path.join(scenario("three-tier"), host)))
                                  for host in ("client", "web", "db")})


class Long(Table):
    """Partial results of a scan that runs."""
    PACKETS = 60

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        path = os.path.join(scratch(), "long")
        cls.total, _, _ = long_trace.write(path, cls.PACKETS)
        cls.start(path)

    def ask(self, wanted, **parameters):
        return self.server.post(self.base + "/lines", dict(wanted, **parameters)).json

    def test_running(self):
        wanted = self.filter({"Contents": "next_(comm|thread)=beta", "CPU": "0"})
        sizes, begun = [], time.monotonic()
        while True:
            answer = self.ask(wanted, requested_table_index=10, requested_table_count=20)
            model = answer["model"]
            sizes.append(model["size"])
            self.assertEqual([line["index"] for line in model["lines"]], list(range(10, min(30, model["size"]))))
            if answer["status"] != "RUNNING":
                break
            self.assertEqual(answer["status"], "RUNNING")
            self.assertLess(time.monotonic() - begun, 120 * SLOWDOWN)
        self.assertEqual(answer["status"], "COMPLETED")
        self.assertGreater(len(sizes), 1, "the first answer waits for the whole trace")
        self.assertEqual(sizes, sorted(sizes))
        self.assertEqual(sizes[-1], self.total // 5)
        self.assertEqual(self.times(model), sorted(set(self.times(model))))

    def test_not_there_yet(self):
        """A time or line that the scan has not come to is answered with nothing, RUNNING, and a search waits for it."""
        wanted = self.filter({"Contents": "next_(tid|thread)=11"})
        late = self.ask(wanted, requested_times=[self.x["end"] - 10**9], requested_table_count=1)
        self.assertEqual((late["status"], late["model"]["lines"]), ("RUNNING", []))
        found = self.ask(dict(wanted,
                              table_search_expressions=self.patterns({"Timestamp ns": str(self.x["end"] // 10**10)})),
                         table_search_direction="NEXT",
                         requested_table_index=0, requested_table_count=1)
        self.assertEqual(len(found["model"]["lines"]), 1)
        self.assertEqual(self.times(found["model"])[0] // 10**10, self.x["end"] // 10**10)

    def cpu_seconds(self):
        with open(f"/proc/{self.server.process.pid}/stat", encoding="ascii") as f:
            parts = f.read().rsplit(")", 1)[1].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")

    def idle_at(self):
        """CPU seconds used when the server has come to rest."""
        end = time.monotonic() + 120 * SLOWDOWN
        while time.monotonic() < end:
            before = self.cpu_seconds()
            time.sleep(0.3)
            if self.cpu_seconds() - before < 0.02:
                return before
        raise AssertionError("the server does not come to rest")

    def test_search_ends_with_its_client(self):
        pattern = "(prev|next).*(comm|tid).*(alpha|beta).*(nothing|never)"
        parameters = {"requested_table_index": 0, "requested_table_count": 1, "table_search_direction": "NEXT",
                      "table_search_expressions": self.patterns({"Contents": pattern})}
        begin = self.idle_at()
        self.assertEqual(self.lines(**parameters)["lines"], [])
        whole = self.idle_at() - begin
        self.assertGreater(whole, 0.5, "the search is too short to show anything")
        begin = self.idle_at()
        connection = http.client.HTTPConnection(self.server.host)
        connection.request("POST", f"/tsp/api{self.base}/lines", json.dumps({"parameters": parameters}),
                           {"Content-Type": "application/json"})
        while self.cpu_seconds() - begin < 0.15 * whole:
            time.sleep(0.01)
        connection.close()
        self.assertLess(self.idle_at() - begin, 0.7 * whole)


class Growing(Case):
    """Views of an experiment while its traces are indexed."""

    def watch(self, packets):
        """(answers while RUNNING, the one after) for a trace that has no stores."""
        path = os.path.join(scratch(), "grows")
        total, begin, end = long_trace.write(path, packets)
        with Server("--trace-root", os.path.dirname(path)) as s:
            trace = s.post("/traces", {"uri": path, "name": "grows"}).json
            x = s.post("/experiments", {"name": "growing", "traces": [trace["UUID"]]}).json
            seen = []
            while x["indexingStatus"] == "RUNNING":
                seen.append(x)
                x = s.get(f"/experiments/{x['UUID']}").json
        self.assertEqual((x["indexingStatus"], x["nbEvents"], x["start"], x["end"]), ("COMPLETED", total, begin, end))
        self.assertEqual([x["traces"][0][k] for k in ("nbEvents", "start", "end", "indexingStatus")],
                         [total, begin, end, "COMPLETED"])
        return seen, x

    def test_figures_grow(self):
        for packets in (60, 240, 960):
            seen, last = self.watch(packets)
            counts = [x["nbEvents"] for x in seen]
            if len(set(counts) - {0, last["nbEvents"]}) > 1:
                break
        self.assertGreater(len(set(counts) - {0, last["nbEvents"]}), 1, "the figures do not grow")
        self.assertEqual(counts, sorted(counts))
        ends = [x["end"] for x in seen]
        self.assertEqual(ends, sorted(ends))
        self.assertLessEqual(ends[-1], last["end"])
        for x in seen:
            trace = x["traces"][0]
            self.assertEqual(trace["indexingStatus"], "RUNNING")
            self.assertEqual((x["start"], x["end"] > x["start"]),
                             (last["start"], True) if x["nbEvents"] else (0, False))
            self.assertTrue(x["nbEvents"] <= trace["nbEvents"] <= last["nbEvents"])


if __name__ == "__main__":
    main()
