# SPDX-License-Identifier: MIT
"""Trace server under load: several clients ask everything in random order, delete and open again what others read, and
leave in the middle of answers. Every answer must be whole and of a status that the protocol has; the sanitizer builds
watch what happens inside (.ci/run).

WEFT_SEED repeats a run; WEFT_LOAD_SECONDS makes it longer."""
import json
import os
import random
import re
import shutil
import socket
import threading
import time

from tsp_server import Server, ServerCase
from weft_e2e import SLOWDOWN, main, scenario, scratch, seed

SEED = seed(None)
SECONDS = float(os.environ.get("WEFT_LOAD_SECONDS") or 10)
CLIENTS = 6
KINDS = {"TIME_GRAPH": "timeGraph", "TREE_TIME_XY": "XY", "TREE_GENERIC_XY": "genericXY", "DATA_TREE": "data",
         "TABLE": "table"}


class Client(threading.Thread):
    """Asks until the time is over. What it must not see goes to `wrong`; how often it did what to `done`."""

    def __init__(self, server, experiments, traces, seed, until):
        super().__init__()
        self.server, self.experiments, self.traces, self.until = server, experiments, traces, until
        self.random, self.wrong, self.done = random.Random(seed), [], {}
        self.derived = []  # (experiment, creator, id)

    def run(self):
        actions = ([self.tree] * 3 + [self.draw] * 8 + [self.arrows] * 2 + [self.tooltip] * 2 + [self.lines] * 4
                   + [self.annotations] * 2 + [self.style] + [self.outputs] * 2 +
                   [self.path] * 3 + [self.forget_path] + [self.bookmark] * 2 + [self.configuration] + [self.churn]
                   + [self.leave] * 2 + [self.nonsense] + [self.identity])
        while time.monotonic() < self.until:
            action = self.random.choice(actions)
            try:
                action(self.random.choice(list(self.experiments)))
            except Exception as e:  # pylint: disable=broad-except
                self.wrong.append(f"{action.__name__}: {e!r}")
                return
            self.done[action.__name__] = self.done.get(action.__name__, 0) + 1

    # ---- asking
    # ---------------------------------------------------------------------------------------------------------------

    def expect(self, answer, *statuses, what=""):
        """200 with a whole body, or one of the statuses, or a 404: somebody may have deleted what was asked for."""
        if answer.status not in (200, 404, *statuses):
            self.wrong.append(f"{what} {answer}")
        content = answer.json
        if answer.status == 200 and isinstance(content, dict) and content.get("status") in ("FAILED", "CANCELLED"):
            self.wrong.append(f"{what} {answer}")
        return content if answer.status == 200 else None

    def analysis(self, x, path, parameters, *statuses):
        encoding = {"Accept-Encoding": self.random.choice(["gzip", "identity"])}
        answer = self.server.post(f"/experiments/{x}/outputs/{path}", parameters, headers=encoding)
        content = self.expect(answer, *statuses, what=f"{path} {json.dumps(parameters)[:300]}")
        return content["model"] if content else None

    def span(self, x, n=None):
        begin, end = self.experiments[x]["start"], self.experiments[x]["end"]
        a, b = sorted(self.random.randint(begin - 1000, end + 1000) for _ in range(2))
        a, b = self.random.choice([(a, b), (begin, end), (a, a)])
        return {"start": a, "end": b, "nbTimes": n or self.random.choice([1, 50, 1000]), "nbSamples": 50}

    def output(self, x, *types):
        fitting = [o for o in self.experiments[x]["outputs"] if o["type"] in types]
        return self.random.choice(fitting)

    def ids(self, x, output):
        known = self.experiments[x]["ids"].get(output["id"], [])
        return self.random.sample(known, min(len(known),
                                             self.random.choice([0, 1, 30,
                                                                 200]))) + self.random.choice([[], [2**40, -1]])

    # ---- clients
    # ------------------------------------------------------------------------------------------------------------

    def tree(self, x):
        o = self.output(x, *(k for k in KINDS if k != "TABLE"))
        model = self.analysis(x, f"{KINDS[o['type']]}/{o['id']}/tree", {"requested_timerange": self.span(x)})
        if model:
            self.experiments[x]["ids"][o["id"]] = [e["id"] for e in model["entries"]]

    def draw(self, x):
        o = self.output(x, "TIME_GRAPH", "TREE_TIME_XY", "TREE_GENERIC_XY")
        filters = self.random.choice([{}, {},
                                      {"filter_query_parameters": {"strategy": self.random.choice(["DEEP", "SAMPLED"]),
                  "filter_expressions_map": {"1": [self.random.choice(["read", "duration>1ms",
                                                                       'label matches "^f"'])]}}}])
        what = "states" if o["type"] == "TIME_GRAPH" else "xy"
        self.analysis(x, f"{KINDS[o['type']]}/{o['id']}/{what}",
                      {"requested_timerange": self.span(x), "requested_items": self.ids(x, o), **filters})

    def arrows(self, x):
        o = self.output(x, "TIME_GRAPH")
        self.analysis(x, f"timeGraph/{o['id']}/arrows", {"requested_timerange": self.span(x)})

    def tooltip(self, x):
        o, t = self.output(x, "TIME_GRAPH"), self.span(x)["start"]
        element = {"elementType": self.random.choice(["STATE", "ARROW"]), "time": t, "duration": 5}
        self.analysis(x, f"timeGraph/{o['id']}/tooltip",
                      {"requested_times": [t], "requested_items": self.ids(x, o)[:1], "requested_element": element},
                      405)

    def lines(self, x):
        o = self.output(x, "TABLE")
        columns = self.analysis(x, f"table/{o['id']}/columns", {})
        if not columns:
            return
        where = self.random.choice([{"requested_table_index": self.random.randrange(60000)},
                                    {"requested_times": [self.span(x)["start"]]}])
        search = {str(self.random.choice(columns)["id"]): self.random.choice(["sched", "^no such", "1"])}
        how = self.random.choice([{}, {}, {"table_search_expressions": search},
                                  {"table_search_expressions": search,
                                   "table_search_direction": self.random.choice(["NEXT", "PREVIOUS"])}])
        model = self.analysis(x, f"table/{o['id']}/lines",
                              {"requested_table_count": self.random.choice([0, 1, 100]), **where, **how})
        for line in (model or {"lines": []})["lines"]:
            if len(line["cells"]) != len(model["columnIds"]):
                self.wrong.append(f"a line of {len(line['cells'])} cells for {len(model['columnIds'])} columns")

    def annotations(self, x):
        o = self.random.choice(self.experiments[x]["outputs"])
        self.expect(self.server.get(f"/experiments/{x}/outputs/{o['id']}/annotations"))
        self.analysis(x, f"{o['id']}/annotations",
                      {"requested_timerange": self.span(x), "requested_items": self.ids(x, o)})

    def style(self, x):
        self.analysis(x, f"{self.random.choice(self.experiments[x]['outputs'])['id']}/style", {})

    def outputs(self, x):
        self.expect(self.server.get(f"/experiments/{x}/outputs"))
        self.expect(self.server.get("/experiments"))
        o = self.random.choice(self.experiments[x]["outputs"])
        self.expect(self.server.get(f"/experiments/{x}/outputs/{o['id']}"))

    def path(self, x):
        """A critical path of some thread, followed while it grows."""
        creators = [o for o in self.experiments[x]["outputs"] if o.get("capabilities", {}).get("canCreate")
                    and "riticalPath" in o["id"]]
        thread, span = self.random.choice(self.experiments[x]["threads"]), self.span(x)
        body = {"name": "p", "sourceTypeId": "weft.critical-path",
                "parameters": {"thread": thread, "begin": span["start"], "end": span["end"]}}
        made = self.expect(self.server.ask("POST", f"/experiments/{x}/outputs/{creators[0]['id']}", body), 400,
                           what=f"path {thread}")
        if not made:
            return
        self.derived.append((x, creators[0]["id"], made["id"]))
        for _ in range(self.random.randrange(5)):
            tree = self.analysis(x, f"timeGraph/{made['id']}/tree", {"requested_timerange": span}, 405)
            if tree:
                ids = [e["id"] for e in tree["entries"]]
                self.analysis(x, f"timeGraph/{made['id']}/states",
                              {"requested_timerange": span, "requested_items": ids}, 405)
                self.analysis(x, f"timeGraph/{made['id']}/arrows", {"requested_timerange": span}, 405)

    def forget_path(self, x):
        if self.derived:
            x, creator, made = self.derived.pop(self.random.randrange(len(self.derived)))
            self.expect(self.server.delete(f"/experiments/{x}/outputs/{creator}/{made}"))

    def bookmark(self, x):
        made = self.expect(self.server.post(f"/experiments/{x}/bookmarks", {"name": "b", "start": 1, "end": 2}))
        self.expect(self.server.get(f"/experiments/{x}/bookmarks"))
        if made and self.random.random() < 0.7:
            self.expect(self.server.ask("PUT", f"/experiments/{x}/bookmarks/{made['uuid']}",
                                        {"parameters": {"name": "c", "start": 2, "end": 3}}))
            self.expect(self.server.delete(f"/experiments/{x}/bookmarks/{made['uuid']}"))

    def configuration(self, _):
        kind = self.expect(self.server.get("/config/types"))[0]["id"]
        made = self.expect(self.server.ask("POST", f"/config/types/{kind}/configs",
                                           {"name": "m", "parameters": {"markers": [{"time": 5}]}}))
        self.expect(self.server.get(f"/config/types/{kind}/configs"))
        self.expect(self.server.delete(f"/config/types/{kind}/configs/{made['id']}"))

    def churn(self, x):
        """Closes an experiment under its readers and opens it again; now and then a trace of it too."""
        self.expect(self.server.delete(f"/experiments/{x}"))
        if self.random.random() < 0.3:
            self.expect(self.server.delete("/traces/" + self.random.choice(self.traces)["UUID"]), 409)
        for t in self.traces:
            self.expect(self.server.post("/traces", {"uri": t["path"], "name": t["name"]}), what="POST traces")
        self.expect(self.server.post("/experiments",
                                     {"name": self.experiments[x]["name"], "traces": self.experiments[x]["members"]}),
                    what="POST experiments")

    def leave(self, x):
        """Hangs up before or within the answer."""
        o = self.output(x, "TIME_GRAPH")
        body = json.dumps({"parameters": {"requested_timerange": self.span(x, 2000),
                                          "requested_items": self.ids(x, o)}}).encode()
        host, port = self.server.host.split(":")
        with socket.create_connection((host, int(port)), timeout=60 * SLOWDOWN) as c:
            c.sendall(f"POST /tsp/api/experiments/{x}/outputs/timeGraph/{o['id']}/states HTTP/1.1\r\nHost: "
                      f"localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)
            if self.random.random() < 0.5:
                c.recv(100)

    def nonsense(self, x):
        answer = self.server.ask("POST", f"/experiments/{x}/outputs/timeGraph/x/states",
                                 self.random.choice(["", "[", '{"parameters":7}', "{}"]), raw=True)
        if answer.status not in (400, 404, 405) and answer.json.get("status") != "RUNNING":
            self.wrong.append(str(answer))

    def identity(self, _):
        self.expect(self.server.get("/identifier"))
        self.expect(self.server.get("/health"))
        self.expect(self.server.get("/traces"))


class Load(ServerCase):
    def setUp(self):
        self.root = os.path.join(scratch(), "traces")
        shutil.copytree(scenario("three-tier"), self.root)
        self.server = Server("--state", scratch(), "--trace-root", self.root)
        self.traces = [self.good(self.server.post("/traces", {"uri": os.path.join(self.root, host), "name": host}))
                       for host in ("client", "db", "web")]
        uuids = [t["UUID"] for t in self.traces]
        self.experiments = {}
        for name, members in (("all", uuids), ("two", uuids[1:])):
            x = self.good(self.server.post("/experiments", {"name": name, "traces": members}))
            opened = self.server.opened(x["UUID"])
            outputs = self.good(self.server.get(f"/experiments/{x['UUID']}/outputs"))
            status = next(o["id"] for o in outputs if o["id"].endswith("ThreadStatusDataProvider"))
            threads = self.server.model(f"/experiments/{x['UUID']}/outputs/timeGraph/{status}/tree")["entries"]
            named = [f"{e['metadata']['hostId'][0]}:{e['metadata']['TID'][0]}" for e in threads
                     if e.get("metadata", {}).get("TID", [0])[0] > 0]
            self.experiments[x["UUID"]] = {"name": name, "members": members, "start": opened["start"],
                                           "end": opened["end"], "outputs": outputs, "ids": {}, "threads": named}

    def test_everything_at_once(self):
        until = time.monotonic() + SECONDS
        clients = [Client(self.server, self.experiments, self.traces, f"{SEED} {n}", until) for n in range(CLIENTS)]
        for c in clients:
            c.start()
        for c in clients:
            c.join()
        done = {}
        for c in clients:
            self.assertEqual(c.wrong[:3], [], f"seed {SEED}: {self.server.errors()}")
            for k, n in c.done.items():
                done[k] = done.get(k, 0) + n
        print(", ".join(f"{k} {n}" for k, n in sorted(done.items())), flush=True)
        self.assertGreater(sum(done.values()), 100 / SLOWDOWN)
        for x in self.experiments:  # server still works
            self.good(self.server.post("/experiments",
                                       {"name": self.experiments[x]["name"], "traces": self.experiments[x]["members"]}))
            self.assertEqual(self.server.opened(x)["nbEvents"] > 0, True)
        self.assertEqual(self.server.stop(), 0, f"seed {SEED}: {self.server.errors()}")
        self.assertIsNone(re.search("Sanitizer|runtime error|assert", self.server.errors()), self.server.errors())


if __name__ == "__main__":
    main()
