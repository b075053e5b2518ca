# SPDX-License-Identifier: MIT
"""Trace server: protocol by status and body. Requests are shaped as the Python and the TypeScript client shape
them."""
import hashlib
import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import time
import urllib.request
import uuid

import long_trace
from tsp_server import EVENTS, HISTOGRAM, THREAD_STATUS, Server, ServerCase
from weft_e2e import BIN, main, need, scenario, scratch

NOWHERE = "00000000-0000-3000-8000-000000000000"


def name_uuid(name):
    """Version 3 of the bytes without a namespace, as java.util.UUID.nameUUIDFromBytes has it."""
    return str(uuid.UUID(bytes=hashlib.md5(name.encode()).digest(), version=3))


def recorded_times(path):
    """Times of all events, in order, as babeltrace2 tells them."""
    text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], capture_output=True,
                          check=True).stdout.decode()
    return [int(a) * 10**9 + int(b) for a, b in re.findall(r"^\[(\d+)\.(\d{9})\]", text, re.M)]


class Protocol(ServerCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.root = os.path.realpath(scenario("three-tier"))
        cls.server = Server("--trace-root", cls.root, "--state", scratch(), os.path.join(cls.root, "db"))
        cls.uuid = cls.server.first()["UUID"]

    @classmethod
    def tearDownClass(cls):
        code, errors = cls.server.stop(), cls.server.errors()
        assert code == 0 and "Sanitizer" not in errors, f"exit {code}: {errors}"

    def test_health_and_identity(self):
        self.assertEqual(self.good(self.server.get("/health")), {"status": "UP"})
        self.assertEqual(self.good(self.server.get("/health/")), {"status": "UP"})
        about = self.good(self.server.get("/identifier"))
        self.assertLessEqual({"version", "os", "productId", "tspVersion", "opens"}, set(about))
        self.assertIsInstance(about["cpuCount"], int)
        self.refused(self.server.get("/nothing"), 404)
        self.refused(self.server.ask("PATCH", "/health"), 405)
        self.assertIn("POST", self.server.ask("PUT", "/traces").headers["Allow"])

    def test_what_may_be_opened(self):
        self.assertEqual(self.good(self.server.get("/identifier"))["opens"], {"paths": True, "uploads": True})
        top = scratch()
        for name, there in (("b/host/kernel", True), ("a", True), ("c/empty", False), (".hidden", True)):
            os.makedirs(os.path.join(top, name))
            if there:
                shutil.copytree(os.path.join(self.root, "web", "kernel"), os.path.join(top, name), dirs_exist_ok=True)
        os.symlink(self.root, os.path.join(top, "elsewhere"))
        os.symlink(os.path.join(top, "a"), os.path.join(top, "link"))
        open(os.path.join(top, "file"), "w").close()
        with Server("--trace-root", top) as s:
            self.assertEqual(self.good(s.get("/identifier"))["opens"], {"paths": True, "uploads": False})
            a, b = (os.path.join(os.path.realpath(top), name) for name in "ab")
            self.assertEqual(self.good(s.get("/traces/below")), {"root": os.path.realpath(top), "path": "", "traces": [
                {"name": "a", "path": a, "directory": False}, {"name": "b", "path": b, "directory": True},
                {"name": "link", "path": a, "directory": False}], "more": False})
            for path in ("b", "b/", "a/../b"):
                inner = self.good(s.get("/traces/below?path=" + path))
                self.assertEqual([inner["path"], [t["name"] for t in inner["traces"]]], ["b", ["host"]])
            for path in ("..", "/", "elsewhere", "elsewhere/web", "file", "nothing", "b/../../"):
                answer = s.get("/traces/below?path=" + path)
                if path == "/":
                    self.assertEqual(self.good(answer)["path"], "")
                else:
                    self.refused(answer, 404)
        with Server(os.path.join(self.root, "db")) as s:
            self.assertEqual(self.good(s.get("/identifier"))["opens"], {"paths": False, "uploads": False})
            self.refused(s.get("/traces/below"), 404)

    def test_traces(self):
        s, path = self.server, os.path.join(self.root, "web", "kernel")
        t = self.good(s.post("/traces", {"uri": path, "name": "web", "unknown": 1}))
        self.assertEqual(t, {"name": "web", "path": path, "UUID": name_uuid(path + "/web"), "nbEvents": 0, "start": 0,
                             "end": 0,
                             "indexingStatus": "CLOSED", "properties": {}})
        self.assertEqual(self.good(s.post("/traces", {"uri": path, "name": "web"})), t, "the same again is itself")
        self.assertEqual(self.good(s.post("/traces", {"uri": "file://" + path, "name": "web"})), t)
        self.assertEqual(self.good(s.get("/traces/" + t["UUID"])), t)
        self.assertIn(t, self.good(s.get("/traces/")))
        # The Python client sends a body with DELETE, the others options in the query: both mean nothing.
        self.assertEqual(self.good(s.ask("DELETE", f"/traces/{t['UUID']}?deleteTrace=true", {"parameters": {}})), t)
        self.refused(s.get("/traces/" + t["UUID"]), 404)
        self.refused(s.delete("/traces/" + t["UUID"]), 404)
        self.refused(s.get("/traces/not-a-uuid"), 404)

    def test_trace_conflicts(self):
        s = self.server
        a = self.good(s.post("/traces", {"uri": os.path.join(self.root, "web"), "name": "one"}))
        conflict = self.refused(s.post("/traces", {"uri": os.path.join(self.root, "client"), "name": "one"}), 409)
        self.assertEqual(conflict["trace"]["UUID"], a["UUID"])
        again = {"uri": os.path.join(self.root, "web"), "name": "typed",
                 "typeID": "org.eclipse.linuxtools.lttng2.kernel.tracetype"}
        typed = self.good(s.post("/traces", again))
        self.assertEqual(self.good(s.post("/traces", again))["UUID"], typed["UUID"])
        self.refused(s.post("/traces", dict(again, typeID="org.eclipse.linuxtools.tmf.ui.type.ctf")), 409)
        # different folder
        self.good(s.post("/traces", {"uri": os.path.join(self.root, "client", "kernel"), "name": "one"}))

    def test_traces_refused(self):
        s, empty = self.server, scratch()
        self.refused(s.post("/traces", {"name": "x"}), 400, "uri")
        self.refused(s.post("/traces", {"uri": 7}), 400, "uri")
        self.refused(s.post("/traces", {"uri": os.path.join(self.root, "web"), "name": 7}), 400, "name")
        self.refused(s.post("/traces", {"uri": os.path.join(self.root, "web"), "typeID": ["ctf"]}), 400, "typeID")
        self.refused(s.post("/traces", {"uri": os.path.join(self.root, "absent")}), 404)
        self.refused(s.post("/traces", {"uri": os.path.join(self.root, "ground-truth.json")}), 501)
        self.refused(s.post("/traces", {"uri": os.path.join(self.root, "web"), "typeID": "some.other.type"}), 501)
        # Outside the trace root, whatever is there: as if it did not exist.
        for path in ("/etc", "/etc/passwd", empty, os.path.join(self.root, "..", "scp-net"), "/nowhere/at/all",
                     self.root + "x", "../scp-net"):
            self.refused(s.post("/traces", {"uri": path}), 404)
        os.symlink("/etc", os.path.join(empty, "link"))
        self.refused(s.post("/traces", {"uri": os.path.join(empty, "link")}), 404)

    def test_bodies(self):
        s = self.server
        for body in ("", "nonsense", "[1]", "7", '"x"', '{"parameters":', "null", "{}x", "\xff\xfe", "[" * 100000,
                     '{"parameters": 7}'):
            self.refused(s.ask("POST", "/traces", body.encode("latin1"), raw=True), 400)
            self.refused(s.ask("POST", f"/experiments/{self.uuid}/outputs/table/{EVENTS}/columns",
                               body.encode("latin1"), raw=True), 400)
        for body in ({}, {"parameters": None}, {"parameters": {}, "filters": []}):
            self.good(s.ask("POST", f"/experiments/{self.uuid}/outputs/table/{EVENTS}/columns", body))
            self.good(s.ask("POST", f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tree", body))

    def test_rows_come_in_the_order_in_which_they_are_seen(self):
        """Rows come in display order: every entry after its parent, and rows below an entry directly after it; the
        first rows of a tree of many are its first lines."""
        entries = self.server.model(f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/tree")["entries"]
        above, deepest = [], 0
        for e in entries:
            while above and above[-1]["id"] != e["parentId"]:
                above.pop()
            self.assertEqual(above[-1]["id"] if above else -1, e["parentId"], e["labels"])
            above.append(e)
            deepest = max(deepest, len(above))
        self.assertGreater(deepest, 3)
        brothers = {}
        for e in entries:
            brothers.setdefault(e["parentId"], []).append(e.get("metadata", {}).get("TID", [0])[0])
        for parent, tids in brothers.items():
            self.assertEqual(tids if parent >= 0 else [], sorted(tids) if parent >= 0 else [])

    def test_experiments(self):
        s = self.server
        web = self.good(s.post("/traces", {"uri": os.path.join(self.root, "web"), "name": "w"}))["UUID"]
        client = self.good(s.post("/traces", {"uri": os.path.join(self.root, "client"), "name": "c"}))["UUID"]
        x = self.good(s.post("/experiments", {"name": "both ends", "traces": [web, client]}))
        self.assertEqual(x["UUID"], name_uuid("both ends"))
        self.assertEqual([t["UUID"] for t in x["traces"]], [web, client])
        self.assertEqual(self.good(s.post("/experiments", {"name": "both ends", "traces": [client, web]}))["UUID"],
                         x["UUID"])
        opened = s.opened(x["UUID"])
        self.assertEqual(opened["indexingStatus"], "COMPLETED")
        counts = [len(recorded_times(os.path.join(self.root, host, "kernel"))) for host in ("web", "client")]
        self.assertEqual(opened["nbEvents"], sum(counts))
        self.assertEqual([t["nbEvents"] for t in opened["traces"]], counts)
        properties = opened["traces"][0]["properties"]
        self.assertEqual((properties["hostname"], properties["clock_scale"]), ("web", "1.0"))
        with open(os.path.join(scenario("three-tier"), "web", "kernel", "metadata"), "rb") as f:
            offset = re.search(rb"\boffset = (\d+);", f.read())
        self.assertEqual(properties["clock_offset"], offset.group(1).decode())
        self.assertEqual(opened["start"], min(t["start"] for t in opened["traces"]))
        self.assertEqual(self.good(s.get("/traces/" + web))["indexingStatus"], "CLOSED")
        conflict = self.refused(s.post("/experiments", {"name": "both ends", "traces": [web]}), 409)
        self.assertEqual(conflict["experiment"]["UUID"], x["UUID"])
        self.refused(s.post("/experiments", {"name": "both ends", "traces": [web, web]}), 409)
        in_use = self.refused(s.delete("/traces/" + web), 409)
        self.assertEqual(in_use["trace"]["UUID"], web)
        self.assertEqual(self.good(s.ask("DELETE", "/experiments/" + x["UUID"], {}))["UUID"], x["UUID"])
        self.refused(s.get("/experiments/" + x["UUID"]), 404)
        self.refused(s.delete("/experiments/" + x["UUID"]), 404)
        self.good(s.delete("/traces/" + web))
        self.good(s.delete("/traces/" + client))

    def test_experiments_refused(self):
        s = self.server
        self.refused(s.post("/experiments", {"traces": []}), 400, "name")
        self.refused(s.post("/experiments", {"name": "x"}), 400, "traces")
        self.refused(s.post("/experiments", {"name": "x", "traces": []}), 400, "traces")
        self.refused(s.post("/experiments", {"name": "x", "traces": [1]}), 400, "traces")
        self.refused(s.post("/experiments", {"name": 1, "traces": [NOWHERE]}), 400, "name")
        self.refused(s.post("/experiments", {"name": "x", "traces": [NOWHERE]}), 404)

    def test_order_of_checks(self):
        """Experiment, body, provider, parameters: in that order."""
        s = self.server
        for where in (NOWHERE, "not-a-uuid"):
            self.refused(s.ask("POST", f"/experiments/{where}/outputs/timeGraph/x/states", "nonsense", raw=True), 404,
                         "No such trace")
        self.refused(s.ask("POST", f"/experiments/{self.uuid}/outputs/timeGraph/x/states", "nonsense", raw=True), 400)
        self.refused(s.post(f"/experiments/{self.uuid}/outputs/timeGraph/x/states", {}), 405, "Analysis cannot run")
        self.refused(s.post(f"/experiments/{self.uuid}/outputs/timeGraph/{EVENTS}/states", {}), 405)
        self.refused(s.post(f"/experiments/{self.uuid}/outputs/genericXY/{HISTOGRAM}/xy", {}), 405)
        self.refused(s.post(f"/experiments/{self.uuid}/outputs/timeGraph/{THREAD_STATUS}/states", {}), 400,
                     "Missing query parameters: requested_timerange")
        for kind in ("configTypes", "configTypes/x"):
            self.refused(s.get(f"/experiments/{self.uuid}/outputs/x/{kind}"), 404)
        self.refused(s.get(f"/experiments/{self.uuid}/outputs/x"), 404)
        self.assertEqual(self.good(s.get(f"/experiments/{self.uuid}/outputs/{EVENTS}/configTypes")), [])

    def test_parameters_refused(self):
        s, base = self.server, f"/experiments/{self.uuid}/outputs"
        range_ = {"start": 0, "end": 10, "nbTimes": 2}
        cases = [
            (f"timeGraph/{THREAD_STATUS}/states", {"requested_timerange": range_}, "requested_items"),
            (f"timeGraph/{THREAD_STATUS}/states", {"requested_timerange": {"start": 5, "end": 1},
                                                   "requested_items": []}, "requested_timerange"),
            (f"timeGraph/{THREAD_STATUS}/states", {"requested_timerange": [], "requested_items": []},
             "requested_timerange"),
            (f"timeGraph/{THREAD_STATUS}/states", {"requested_timerange": range_, "requested_items": "x"},
             "requested_items"),
            (f"timeGraph/{THREAD_STATUS}/states", {"requested_timerange": range_, "requested_items": ["x"]},
             "requested_items"),
            (f"timeGraph/{THREAD_STATUS}/states", {"requested_times": ["x"], "requested_items": []}, "requested_times"),
            (f"timeGraph/{THREAD_STATUS}/tooltip", {"requested_times": [1], "requested_items": [1]},
             "requested_element"),
            *((f"timeGraph/{THREAD_STATUS}/tooltip", {"requested_times": [1], "requested_items": [1],
                                                      "requested_element": element}, "requested_element")
              for element in ("state", {}, {"elementType": "thing"}, {"elementType": 1},
                              {"elementType": "state", "time": "now"},
                              {"elementType": "arrow", "destinationId": [1]})),
            (f"XY/{HISTOGRAM}/xy", {"requested_items": []}, "requested_timerange"),
            (f"table/{EVENTS}/lines", {"requested_table_count": 1}, "requested_table_index"),
            (f"table/{EVENTS}/lines", {"requested_table_index": 1}, "requested_table_count"),
            (f"table/{EVENTS}/lines", {"requested_table_index": -1, "requested_table_count": 1},
             "requested_table_index"),
            (f"table/{EVENTS}/lines", {"requested_table_index": 0, "requested_table_count": 1,
                                       "table_search_direction": "UP"}, "table_search_direction"),
        ]
        for path, parameters, key in cases:
            self.refused(s.post(f"{base}/{path}", parameters), 400, key)

    def test_time_ranges(self):
        s, base = self.server, f"/experiments/{self.uuid}/outputs"
        x = s.first()
        total = next(e["id"] for e in s.model(f"{base}/XY/{HISTOGRAM}/tree")["entries"] if e.get("isDefault"))

        def times(**range_):
            return s.model(f"{base}/XY/{HISTOGRAM}/xy",
                           {"requested_timerange": range_, "requested_items": [total]})["series"][0]["xValues"]
        start = x["start"]
        self.assertEqual(times(start=start, end=start + 100, nbTimes=5), [start + k for k in (0, 25, 50, 75, 100)])
        self.assertEqual(times(start=start, end=start + 10, nbTimes=4), [start + k for k in (0, 3, 6, 9, 10)])
        self.assertEqual(times(start=start, end=start + 3, nbTimes=100), [start + k for k in range(4)])
        self.assertEqual(times(start=start, end=start + 50), [start, start + 50])
        self.assertEqual(times(start=start, end=start + 50, nbTimes=1), [start, start + 50])
        self.assertEqual(times(start=start, end=start, nbTimes=7), [start])
        self.assertLessEqual(len(times(start=start, end=x["end"], nbTimes=10**9)), 2 * 65536)
        self.assertEqual(times(start=-2**63, end=2**63 - 1, nbTimes=3), [-2**63, -1, 2**63 - 2, 2**63 - 1])

    def test_outputs(self):
        s = self.server
        outputs = self.good(s.get(f"/experiments/{self.uuid}/outputs"))
        names = [o["name"].lower() for o in outputs]
        self.assertEqual(names, sorted(names), "sorted by name")
        self.assertLessEqual({EVENTS, HISTOGRAM, THREAD_STATUS}, {o["id"] for o in outputs})
        self.assertEqual(len({o["id"] for o in outputs}), len(outputs))
        for o in outputs:
            self.assertLessEqual({"id", "name", "description", "type"}, set(o))
            self.assertEqual(self.good(s.get(f"/experiments/{self.uuid}/outputs/{o['id']}")), o)
        self.assertEqual(self.good(s.get(f"/experiments/{self.uuid}/outputs/markerSets")),
                         {"model": [], "status": "COMPLETED", "statusMessage": "Completed"})

    def test_bookmarks(self):
        s, base = self.server, f"/experiments/{self.uuid}/bookmarks"
        b = self.good(s.post(base, {"name": "here", "start": 1795225075368285001, "end": 1795225075368285002}))
        self.assertEqual(uuid.UUID(b["uuid"]).version, 4)
        self.assertEqual((b["name"], b["start"], b["end"]), ("here", 1795225075368285001, 1795225075368285002))
        self.assertIn(b, self.good(s.get(base)))
        self.assertEqual(self.good(s.get(f"{base}/{b['uuid']}")), b)
        moved = self.good(s.ask("PUT", f"{base}/{b['uuid']}", {"parameters": {"name": "there", "start": 5, "end": 5}}))
        self.assertEqual(moved, {"uuid": b["uuid"], "name": "there", "start": 5, "end": 5})
        self.refused(s.post(base, {"name": "x", "start": 6, "end": 5}), 400)
        self.refused(s.post(base, {"name": "x", "start": 6}), 400, "end")
        self.refused(s.post(base, {"start": 6, "end": 7}), 400, "name")
        self.refused(s.post(base, {"name": "x", "start": "6", "end": 7}), 400, "start")
        self.refused(s.post(f"/experiments/{NOWHERE}/bookmarks", {"name": "x", "start": 1, "end": 2}), 404)
        self.refused(s.get(f"{base}/{NOWHERE}"), 404)
        self.refused(s.ask("PUT", f"{base}/{NOWHERE}", {"parameters": {}}), 404)
        self.assertEqual(self.good(s.delete(f"{base}/{b['uuid']}")), moved)
        self.refused(s.delete(f"{base}/{b['uuid']}"), 404)

    def test_configurations(self):
        s = self.server
        kind = self.good(s.get("/config/types/"))[0]
        base = f"/config/types/{kind['id']}"
        self.assertEqual(self.good(s.get(base)), kind)
        self.assertEqual(kind["schema"]["type"], "object")
        body = {"name": "marks", "description": "d",
                "parameters": {"markers": [{"time": s.first()["start"] + 5, "duration": 7, "label": "m"}]}}
        made = [self.good(s.ask("POST", path, body)) for path in (f"{base}/configs", base)]
        for c in made:
            self.assertEqual((c["name"], c["description"], c["sourceTypeId"], c["parameters"]),
                             ("marks", "d", kind["id"], body["parameters"]))
            self.assertEqual(self.good(s.get(f"{base}/configs/{c['id']}")), c)
        self.assertEqual([c["id"] for c in self.good(s.get(f"{base}/configs"))], [c["id"] for c in made])
        # A marker set is offered to every experiment and comes with annotations.
        sets = self.good(s.get(f"/experiments/{self.uuid}/outputs/markerSets"))["model"]
        self.assertIn({"id": made[0]["id"], "name": "marks"}, sets)
        output = f"/experiments/{self.uuid}/outputs/{THREAD_STATUS}/annotations"
        answer = self.good(s.get(f"{output}?markerSetId={made[0]['id']}"))
        self.assertIn("marks", answer["model"]["annotationCategories"])
        x = s.first()
        drawn = s.model(output, {"requested_timerange": {"start": x["start"], "end": x["end"], "nbTimes": 2},
                                 "requested_marker_set": made[0]["id"]})
        self.assertEqual([(a["time"], a["duration"], a["entryId"], a["type"], a["label"])
                          for a in drawn["annotations"]["marks"]],
                         [(x["start"] + 5, 7, -1, "CHART", "m")])
        changed = self.good(s.ask("PUT", f"{base}/configs/{made[0]['id']}", dict(body, name="other")))
        self.assertEqual((changed["id"], changed["name"]), (made[0]["id"], "other"))
        self.refused(s.ask("POST", f"{base}/configs", {"parameters": {"markers": []}}), 400, "name")
        self.refused(s.ask("POST", f"{base}/configs", {"name": "x", "parameters": {}}), 400, "markers")
        self.refused(s.ask("POST", f"{base}/configs", {"name": "x", "parameters": {"markers": [{}]}}), 400, "markers")
        self.refused(s.get("/config/types/x"), 404)
        self.refused(s.get("/config/types/x/configs"), 404)
        self.refused(s.get(f"{base}/configs/{NOWHERE}"), 404)
        for c in made:
            self.assertEqual(self.good(s.ask("DELETE", f"{base}/configs/{c['id']}", {}))["id"], c["id"])
        self.refused(s.delete(f"{base}/configs/{made[0]['id']}"), 404)

    def test_headers(self):
        s = self.server
        many = s.get("/experiments", headers={"Accept-Encoding": "gzip"})
        self.assertEqual(many.headers["Content-Encoding"], "gzip")
        self.assertEqual(self.server.get("/health", headers={"Host": "evil.example"}).status, 421)
        self.assertEqual(self.server.get("/health", headers={"Host": "127.0.0.1.evil.example"}).status, 421)
        shares = []
        for _ in range(20):
            begin = time.monotonic()
            timed = s.get("/experiments").headers["Server-Timing"]
            took_ms = (time.monotonic() - begin) * 1000
            waited, answered = map(float, re.fullmatch(r"wait;dur=([\d.]+), answer;dur=([\d.]+)", timed).groups())
            self.assertTrue(0 <= waited + answered <= took_ms and answered > 0, f"{timed}, of {took_ms} ms")
            shares.append((waited, answered))
        self.assertTrue(any(waited < answered for waited, answered in shares), "nobody else asks")
        page = s.ask("GET", "/", base="")
        self.assertEqual(page.status, 200)
        self.assertIn("default-src 'none'", page.headers["Content-Security-Policy"])
        self.assertNotIn("unsafe", page.headers["Content-Security-Policy"])
        again = s.ask("GET", "/", base="", headers={"If-None-Match": page.headers["ETag"]})
        self.assertEqual((again.status, again.body), (304, b""))
        self.assertEqual(s.ask("GET", "/../../etc/passwd", base="").status, 404)
        self.assertEqual(s.ask("GET", "/nothing", base="").status, 404)


class Tables(ServerCase):
    """The events table and the histogram against babeltrace2."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = os.path.join(scenario("three-tier"), "db", "kernel")
        cls.server = Server(cls.path)
        cls.x = cls.server.first()
        cls.base = f"/experiments/{cls.x['UUID']}/outputs"
        text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", cls.path], capture_output=True,
                              check=True).stdout.decode()
        cls.events = [re.match(r"\[(\d+)\.(\d{9})\] \S+ (\S+): \{ cpu_id = (\d+) \}, \{(.*)\}$", line).groups()
                      for line in text.splitlines()]
        cls.times = [int(e[0]) * 10**9 + int(e[1]) for e in cls.events]

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop(signal.SIGINT) == 0

    def lines(self, **parameters):
        return self.server.model(f"{self.base}/table/{EVENTS}/lines", parameters)

    def setUp(self):
        columns = self.server.model(f"{self.base}/table/{EVENTS}/columns")
        self.ids = {c["name"]: c["id"] for c in columns}

    def test_figures(self):
        self.assertEqual((self.x["nbEvents"], self.x["start"], self.x["end"]),
                         (len(self.times), self.times[0], self.times[-1]))

    def test_lines_by_index(self):
        last = len(self.events) - 1
        for start, count in ((0, 300), (last // 2, 20), (last - 2, 10), (17, 1), (last // 3, 700), (5, 5)):
            model = self.lines(requested_table_index=start, requested_table_count=count)
            self.assertEqual((model["lowIndex"], model["size"]), (start, len(self.events)))
            self.assertEqual(len(model["lines"]), min(count, len(self.events) - start))
            place = {c: model["columnIds"].index(i) for c, i in self.ids.items()}
            for line in model["lines"]:
                cells = [c["content"] for c in line["cells"]]
                event = self.events[line["index"]]
                self.assertEqual(int(cells[place["Timestamp ns"]]), self.times[line["index"]])
                self.assertEqual((cells[place["Event type"]], cells[place["CPU"]]), (event[2], event[3]))
                # plain numbers; texts and enumerations look different by design
                if re.fullmatch(r"[\w =,-]*", event[4]):
                    self.assertEqual(cells[place["Contents"]].replace(" ", "").lower(),
                                     event[4].replace(" ", "").lower())
        self.assertEqual(self.lines(requested_table_index=last + 1, requested_table_count=5)["lines"], [])
        self.assertEqual(self.lines(requested_table_index=2**62, requested_table_count=5)["lines"], [])

    def test_threads_of_switches(self):
        """Threads of switches: the thread between two switches on a CPU is the one that the first switch named."""
        model = self.lines(requested_table_index=0, requested_table_count=20000,
                           requested_table_column_ids=[self.ids["TID"], self.ids["CPU"]])
        self.assertEqual(model["columnIds"], [self.ids["TID"], self.ids["CPU"]])
        running, checked = {}, 0
        for line in model["lines"]:
            tid, cpu = (c["content"] for c in line["cells"])
            name, fields = self.events[line["index"]][2], self.events[line["index"]][4]
            if cpu in running:
                self.assertEqual(tid, running[cpu], line)
                checked += 1
            if name == "sched_switch":
                running[cpu] = re.search(r"next_tid = (\d+)", fields).group(1)
        self.assertGreater(checked, 10000)

    def test_lines_by_time(self):
        for k in (0, 1, 100, len(self.times) // 2, len(self.times) - 1):
            low = self.lines(requested_times=[self.times[k]], requested_table_count=1)["lowIndex"]
            self.assertEqual(low, self.times.index(self.times[k]))
        self.assertEqual(self.lines(requested_times=[self.times[50] + 1], requested_table_count=1)["lowIndex"],
                         next(i for i, t in enumerate(self.times) if t > self.times[50]))
        self.assertEqual(self.lines(requested_times=[self.times[-1] + 1], requested_table_count=1)["lines"], [])
        self.assertEqual(self.lines(requested_times=[0], requested_table_count=1)["lowIndex"], 0)

    def test_search(self):
        names = [e[2] for e in self.events]
        forks = [i for i, n in enumerate(names) if n == "sched_switch"]
        search = {str(self.ids["Event type"]): "^sched_switch$"}
        found = self.lines(requested_table_index=forks[3] + 1, requested_table_count=40,
                           table_search_expressions=search, table_search_direction="NEXT")
        self.assertEqual(found["lowIndex"], forks[4])
        self.assertEqual(len(found["lines"]), 40)
        self.assertEqual([bool(l.get("tags", 0) & 8) for l in found["lines"]],
                         [names[l["index"]] == "sched_switch" for l in found["lines"]])
        back = self.lines(requested_table_index=forks[-1] - 1, requested_table_count=1, table_search_expressions=search,
                          table_search_direction="PREVIOUS")
        self.assertEqual(back["lowIndex"], forks[-2])
        both = dict(search, **{str(self.ids["Contents"]): "next_comm=swapper"})
        expected = next(i for i in forks if "next_comm = \"swapper" in self.events[i][4])
        self.assertEqual(self.lines(requested_table_index=0, requested_table_count=1, table_search_expressions=both,
                                    table_search_direction="NEXT")["lowIndex"], expected)
        for nothing in ({str(self.ids["Event type"]): "no_such_event"}, {"99": "x"}):
            self.assertEqual(self.lines(requested_table_index=0, requested_table_count=9,
                                        table_search_expressions=nothing, table_search_direction="NEXT")["lines"], [])
        tagged = self.lines(requested_table_index=0, requested_table_count=500,
                            table_search_expressions=search)["lines"]
        self.assertEqual([l["index"] for l in tagged if l.get("tags")], [i for i in forks if i < 500])

    def test_histogram(self):
        tree = self.server.model(f"{self.base}/XY/{HISTOGRAM}/tree")
        total = next(e["id"] for e in tree["entries"] if e["labels"] == ["Total"])
        for start, end, n in ((self.times[0], self.times[-1], 2000), (self.times[0], self.times[-1], 7),
                              (self.times[100], self.times[400], 50),
                              (self.times[1000], self.times[1001], 3), (self.times[-1], self.times[-1] + 10**9, 11)):
            series = self.server.model(f"{self.base}/XY/{HISTOGRAM}/xy",
                                       {"requested_timerange": {"start": start, "end": end, "nbTimes": n},
                                                                            "requested_items": [total]})["series"][0]
            x, y, at = series["xValues"], series["yValues"], 0
            bounds = [x[0] - 1] + x
            for i in range(len(x)):
                self.assertEqual(y[i], sum(1 for t in self.between(bounds[i], bounds[i + 1])), (start, end, n, i))
        self.assertEqual([s for s in tree["entries"][0]["labels"]], ["db"])

    def between(self, after, until):
        from bisect import bisect_right
        return range(bisect_right(self.times, after), bisect_right(self.times, until))


class Access(ServerCase):
    def test_only_what_was_given(self):
        root = scenario("three-tier")
        with Server(os.path.join(root, "db")) as s:
            self.good(s.post("/traces", {"uri": os.path.join(root, "db", "kernel")}))
            self.refused(s.post("/traces", {"uri": os.path.join(root, "web")}), 404)

    def test_token(self):
        token = os.path.join(scratch(), "token")
        with open(token, "w", encoding="ascii") as f:
            f.write("secret\n")
        with Server("--token-file", token) as s:
            self.good(s.get("/health"))
            for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Bearer secretx"},
                            {"Authorization": "Bearer "}, {"Authorization": "secret"}):
                self.refused(s.get("/traces", headers=headers), 401)
                self.assertNotEqual(s.ask("GET", "/tsp/api/traces", base="/", headers=headers).status, 200)
                self.assertNotEqual(s.ask("GET", "/../tsp/api/traces", base="", headers=headers).status, 200)
            self.good(s.get("/traces", headers={"Authorization": "Bearer secret"}))
            self.assertEqual(s.ask("GET", "/", base="").status, 200)

    def test_tls(self):
        openssl, directory = need("openssl"), scratch()
        cert, key = os.path.join(directory, "cert"), os.path.join(directory, "key")
        subprocess.run([openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", cert, "-days",
                        "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
        with Server("--tls-cert", cert, "--tls-key", key) as s:
            self.assertTrue(s.url.startswith("https://"))
            context = ssl.create_default_context(cafile=cert)
            with urllib.request.urlopen(s.url + "/tsp/api/health", context=context, timeout=30) as answer:
                self.assertEqual(json.load(answer), {"status": "UP"})
        done = subprocess.run([BIN, "serve", "--listen", "127.0.0.1:0", "--tls-cert", key, "--tls-key", cert],
                              capture_output=True, timeout=30)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr.decode(), r"\Aweft: [^\n]+\n\Z")

    def test_origins(self):
        with Server("--cors", "https://one.example", "--cors", "https://two.example") as s:
            for origin, allowed in (("https://one.example", True), ("https://two.example", True),
                                    ("https://three.example", False)):
                for method, path in (("GET", "/traces"), ("OPTIONS", "/traces"), ("GET", "/nothing")):
                    answer = s.ask(method, path, headers={"Origin": origin})
                    self.assertEqual(answer.headers["Access-Control-Allow-Origin"], origin if allowed else None)
                    if allowed:
                        self.assertEqual(answer.headers["Access-Control-Allow-Headers"],
                                         "origin, content-type, accept, authorization")
                        self.assertEqual(answer.headers["Access-Control-Allow-Methods"],
                                         "GET, POST, PUT, DELETE, OPTIONS, HEAD")

    def test_pages_of_other_sites(self):
        """Requests that a page can make a browser send unasked change nothing, unless the page's origin is named."""
        here = scratch()
        shutil.copytree(scenario("three-tier"), os.path.join(here, "some"))
        opens = {"parameters": {"uri": "some"}}
        evil, good = {"Origin": "https://evil.example"}, {"Origin": "https://good.example"}
        plain = {"Content-Type": "text/plain"}
        with Server("--trace-root", here, "--state", scratch(), "--cors", "https://good.example") as s:
            self.refused(s.ask("POST", "/traces", opens, headers={**evil, **plain}), 403)
            self.refused(s.ask("POST", "/traces", opens, headers=evil), 403)
            self.refused(s.ask("POST", "/upload?name=x", b"whatever", raw=True, headers={**evil, **plain}), 403)
            self.refused(s.ask("POST", "/traces", opens, headers=plain), 415)
            self.assertEqual(s.get("/traces").json, [])
            self.good(s.ask("POST", "/traces", opens, headers=good))
        with Server("--trace-root", here, "--state", scratch(), "--cors", "*", scenario("three-tier")) as s:
            x, trace = s.first()["UUID"], s.get("/traces").json[0]["UUID"]
            tree = f"/experiments/{x}/outputs/timeGraph/{THREAD_STATUS}/tree"
            self.assertEqual(self.good(s.post(tree, headers=evil))["status"], "COMPLETED")
            self.assertEqual(len(self.good(s.get("/traces", headers=evil))), 1)
            before = [s.get(path).json for path in ("/traces", "/experiments", f"/experiments/{x}/bookmarks")]
            mark = {"parameters": {"name": "b", "start": 1, "end": 2}}
            for method, path, body in (
                    ("POST", "/traces", opens), ("DELETE", f"/traces/{trace}", None),
                    ("DELETE", f"/experiments/{x}", None),
                    ("POST", "/experiments", {"parameters": {"name": "n", "traces": [trace]}}),
                    ("POST", f"/experiments/{x}/bookmarks", mark),
                    ("POST", f"/experiments/{x}/outputs/a", {"name": "b"}),
                    ("POST", "/config/types/weft.markers/configs", {"name": "b", "parameters": {"markers": []}}),
                    ("POST", "/upload?name=x", {})):
                self.refused(s.ask(method, path, body, headers=evil), 403)
            self.assertEqual(before, [s.get(path).json for path in ("/traces", "/experiments",
                                                                   f"/experiments/{x}/bookmarks")])

    def test_least_used_closes(self):
        root, names = scenario("three-tier"), ("client", "web", "db")
        with Server("--trace-root", root, "--max-open", "2") as s:
            def states():
                return [{x["name"]: x["indexingStatus"] for x in s.get("/experiments").json}[n] for n in names]
            x = {}
            for n in names:
                trace = self.good(s.post("/traces", {"uri": n}))["UUID"]
                x[n] = self.good(s.post("/experiments", {"name": n, "traces": [trace]}))["UUID"]
                s.opened(x[n])
            self.assertEqual(states(), ["CLOSED", "COMPLETED", "COMPLETED"])
            s.get(f"/experiments/{x['web']}")
            s.opened(x["client"])
            self.assertEqual(states(), ["COMPLETED", "COMPLETED", "CLOSED"])
            s.model(f"/experiments/{x['db']}/outputs/timeGraph/{THREAD_STATUS}/tree")  # opens it again
            self.assertEqual(states(), ["COMPLETED", "CLOSED", "COMPLETED"])

    def test_deleted_while_indexed(self):
        """Stores of a deleted trace are not built to their end."""
        root, store = scratch(), scratch()
        events, _, _ = long_trace.write(os.path.join(root, "long"), 60)
        with Server("--trace-root", root, store=store) as s:
            trace = self.good(s.post("/traces", {"uri": "long"}))["UUID"]
            x = self.good(s.post("/experiments", {"name": "long", "traces": [trace]}))["UUID"]
            path = f"/experiments/{x}"
            while s.get(path).json["nbEvents"] == 0:
                pass
            gone = self.good(s.delete(path))
            self.assertEqual(gone["indexingStatus"], "RUNNING")
            self.assertLess(gone["nbEvents"], events)
            before = -1
            while before != s.cpu_seconds():
                before = s.cpu_seconds()
                time.sleep(0.5)
            self.assertFalse([n for _, _, names in os.walk(store) for n in names if n.startswith("chunk.")])
            self.assertEqual(s.stop(), 0)

    def test_own_clocks(self):
        """Clocks with --no-sync are as recorded; else they differ by the true offset of the machines."""
        root = scenario("three-tier")
        starts = {}
        for options in ([], ["--no-sync"]):
            with Server(*options, *(os.path.join(root, h) for h in ("client", "db", "web"))) as s:
                starts[bool(options)] = [t["start"] for t in s.first()["traces"]]
        recorded = [recorded_times(os.path.join(root, h, "kernel"))[0] for h in ("client", "db", "web")]
        self.assertEqual(starts[True], recorded)
        self.assertNotEqual(starts[False], recorded)

    def test_wrong_use(self):
        for args in (["--listen", "nonsense"], ["--trace-root", "/nowhere"], ["/nowhere"], ["--tls-cert", "x"],
                     ["--max-upload", "many"], ["--token-file", "/nowhere"]):
            done = subprocess.run([BIN, "serve", *args], capture_output=True, timeout=30)
            self.assertIn(done.returncode, (1, 2))
            self.assertRegex(done.stderr.decode(), r"\Aweft: [^\n]+\n\Z")


if __name__ == "__main__":
    main()
