# SPDX-License-Identifier: MIT
"""Helpers of the coordinator's tests: the machines of three-tier on a server each, and on one server that has all;
stand-ins for servers of other makes."""
import http.server
import json
import os
import subprocess
import threading

from cluster_of import free_port
from tsp_server import EVENTS, Server
from weft_e2e import ROOT, scenario, scratch

HOSTS = ("client", "web", "db")
MAKE_CLUSTER = os.environ.get("WEFT_MAKE_CLUSTER") or os.path.join(ROOT, "build", "bench", "make_cluster")
PATH = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"
COMPARISON = "weft.critical-path-comparison"
# Views in which a single machine has no row above its rows, or sums are over the machines of a server.
BY_SERVER = ("scatter.dataprovider:weft.disk.wait", "weft.requests", "Scatter", PATH, COMPARISON)
KINDS = {"TIME_GRAPH": "timeGraph", "TREE_TIME_XY": "XY", "DATA_TREE": "data"}


class Coordinator(Server):
    def __init__(self, *args, **how):
        super().__init__(*args, verb="coordinate", store="", **how)


def serve(*hosts, store, sync=False, **how):
    """Starts a server with these machines, each on its own clock unless `sync`."""
    return Server(
        *([] if sync else ["--no-sync"]),
        *("--name", "shop"),
        *[f"{h}={scenario('three-tier')}/{h}" for h in hosts],
        store=store,
        **how,
    )


class Farm:
    """Made machines (bench/make_cluster) on servers with a given number each, one server with all, and a coordinator of
    the former. Servers are named after their first machine."""

    def __init__(self, sizes, *options, pattern="mpi", **made):
        folder, machines = os.path.join(scratch(), "farm"), sum(sizes)
        subprocess.run([MAKE_CLUSTER, folder, pattern, str(machines), *[f"{k}={v}" for k, v in made.items()]],
                       check=True, stdout=subprocess.DEVNULL)
        self.traces = {name: f"{folder}/{name}" for name in (f"node-{i}" for i in range(machines))}
        names = list(self.traces)
        self.stores = {h: scratch() for h in names}
        begins = [sum(sizes[:i]) for i in range(len(sizes))]
        self.groups = {names[at]: names[at : at + n] for at, n in zip(begins, sizes)}
        self.servers = {h: self.serve(h) for h in self.groups}
        self.all = self.serve_these(names, scratch())
        self.uuid = self.all.first()["UUID"]
        for s in self.servers.values():
            s.opened(self.uuid)
        self.many = Coordinator(*[f"--server={h}={s.url}" for h, s in self.servers.items()], *options)
        self.whole = self.many.opened(self.uuid)

    def serve_these(self, hosts, store, **how):
        return Server("--no-sync", "--name", "farm", *[f"{h}={self.traces[h]}" for h in hosts], store=store, **how)

    def serve(self, name, listen=None):
        return self.serve_these(self.groups[name], self.stores[name],
                                listen=listen or f"127.0.0.1:{free_port('127.0.0.1')}")

    def stop(self):
        for s in [self.many, self.all, *self.servers.values()]:
            s.stop()


class Shop:
    """Servers of a shop: one for each machine, one with all (on one clock if `sync`), and a coordinator of the
    former."""

    def __init__(self, *options, sync=False):
        self.options = options
        self.stores = {h: scratch() for h in HOSTS}
        self.servers = {h: serve(h, store=self.stores[h], listen=f"127.0.0.1:{free_port('127.0.0.1')}") for h in HOSTS}
        self.all = serve(*HOSTS, store=scratch(), sync=sync)
        self.uuid = self.all.first()["UUID"]
        for s in self.servers.values():
            s.opened(self.uuid)
        self.many = self.coordinator()

    def coordinator(self, *options, hosts=HOSTS):
        return Coordinator(*[f"--server={h}={self.servers[h].url}" for h in hosts], *self.options, *options)

    def stop(self):
        for s in [self.many, self.all, *self.servers.values()]:
            s.stop()


def named(tree):
    """Returns {path of labels: entry} of a tree; entries of equal paths are distinguished by their place."""
    paths, out = {}, {}
    for e in tree["entries"]:
        above = paths.get(e.get("parentId", -1), ())
        path = above + (" ".join(e["labels"][:2]),)
        while path in out:
            path += ("again",)
        paths[e["id"]] = path
        out[path] = e
    return out


def plain(entry):
    return {k: v for k, v in entry.items() if k not in ("id", "parentId")}


class Compared:
    """Mixin of test cases with `one` server that has all traces, and `many` behind a coordinator: compares their
    answers about the experiment `uuid` by labels. whole: the experiment; begins, ends: those of its traces."""

    by_server = BY_SERVER

    @staticmethod
    def rounded(entry):
        """Returns the comparable part of an entry, a tooltip, a row: sums of squares depend on the order of
        addition."""
        spread = entry.get("metadata", {}).get("spread")
        if spread:
            entry["metadata"]["spread"] = [float(f"{spread[0]:.9g}")]
        return entry

    def both(self, path, parameters=None):
        path = f"/experiments/{self.uuid}/outputs/{path}"
        return self.one.model(path, parameters), self.many.model(path, parameters)

    def outputs(self):
        for o in self.one.get(f"/experiments/{self.uuid}/outputs").json:
            if o["type"] in KINDS and not any(part in o["id"] for part in self.by_server):
                yield o["id"], KINDS[o["type"]]

    def compare_views(self, at_least):
        """Compares trees, states, arrows, series of all views."""
        compared = 0
        times = {"start": self.whole["start"], "end": self.whole["end"], "nbTimes": 120}
        for output, kind in self.outputs():
            with self.subTest(output):
                one, many = self.both(f"{kind}/{output}/tree")
                a, b = named(one), named(many)
                self.assertEqual(one["headers"], many["headers"])
                self.assertEqual(set(a), set(b))
                for path in a:
                    x, y = plain(a[path]), plain(b[path])
                    if y.get("start") in self.begins or y.get("end") in self.ends:
                        # row that lasts as long as its server's traces; on one server some such rows last as long as
                        # all
                        self.assertLessEqual((x.pop("start"), -x.pop("end")), (y.pop("start"), -y.pop("end")))
                    self.assertEqual(self.rounded(x), self.rounded(y))
                self.assertTrue(all(0 < e["id"] < 1 << 52 for e in many["entries"]))
                self.assertEqual(len({e["id"] for e in many["entries"]}), len(many["entries"]))
                if kind == "data":
                    continue
                compared += self.check_rows(kind, output, a, b, times)
        self.assertGreater(compared, at_least)

    def check_rows(self, kind, output, a, b, times):
        what, rows, key = ("states", "rows", "entryId") if kind == "timeGraph" else ("xy", "series", "seriesId")
        said = []
        for server, entries in ((self.one, a), (self.many, b)):
            of = {e["id"]: path for path, e in entries.items()}
            path = f"/experiments/{self.uuid}/outputs/{kind}/{output}"
            model = server.model(f"{path}/{what}", {"requested_timerange": times, "requested_items": list(of)})
            found = {of[r[key]]: self.rounded({k: v for k, v in r.items() if k != key}) for r in model[rows]}
            arrows = []
            if kind == "timeGraph":
                arrows = [
                    (of[x["sourceId"]], of[x["targetId"]], x["start"], x["end"], json.dumps(x.get("style")))
                    for x in server.model(f"{path}/arrows", {"requested_timerange": times})
                ]
            said.append((found, sorted(arrows)))
        self.assertEqual(said[0], said[1])
        return len(said[0][0])

    def lines(self, server, table=EVENTS, **parameters):
        return server.model(f"/experiments/{self.uuid}/outputs/table/{table}/lines", parameters)

    def same_lines(self, table=EVENTS, **parameters):
        one, many = (self.lines(s, table, **parameters) for s in (self.one, self.many))
        self.assertEqual(one, many, parameters)
        return one


class StandIn:
    """Trace server made up by a function (path, parameters) -> value, (status, value), or a function of the handler
    that writes the answer. Its health is good unless the function answers otherwise."""

    def __init__(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def reply(self, status, value, last=False):
                """last: the client closes the connection once it has read the answer."""
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                if last:
                    self.send_header("Connection", "close")
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                path = self.path.removeprefix("/tsp/api")
                value = answer(path, json.loads(body)["parameters"] if body else None)
                if value is None and path == "/health":
                    value = {"status": "UP"}
                try:
                    if callable(value):
                        value(self)
                        self.close_connection = True
                    elif value is None:
                        self.reply(404, {"title": "No such thing"})
                    elif isinstance(value, tuple):
                        self.reply(*value)
                    else:
                        self.reply(200, value)
                except OSError:
                    pass

            do_GET = do_POST = do_DELETE = handle_any

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
