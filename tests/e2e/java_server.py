# SPDX-License-Identifier: MIT
"""Stand-in for the Java trace server, in front of a weft server that has the data. Answers have the shapes of the Java
server's, according to its code. Entries and columns are numbered by counters of the process, which restart with it.
Views that it lacks are refused with 405. A critical path has no model until its thread was chosen, which no client
can do. Members that the protocol does not have are left out."""
import gzip
import http.client
import http.server
import itertools
import json
import threading
import urllib.parse

PATH = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"
LACKING = ("weft", "incubator", "inputoutput.execqueue", "inputoutput.waitqueue", "linux.core.statistics", PATH)
METADATA = {"TID": "TID", "PTID": "PTID", "PID": "PID", "execName": "exec name"}  # threads: no host
MEMBERS = {  # members of weft's answers that are passed on
    "outputs": ("id", "name", "description", "type"),
    "trace": ("name", "path", "UUID", "nbEvents", "start", "end", "indexingStatus", "properties"),
    "experiment": ("name", "UUID", "nbEvents", "start", "end", "indexingStatus", "traces"),
}
IDS = ("id", "parentId", "entryId", "seriesId", "sourceId", "targetId")


def has(output):
    return not any(part in output for part in LACKING)


STATED = ("key", "merge", "of", "by", "order")  # rules for merging columns, entries, series


def unstated(value):
    return {k: v for k, v in value.items() if k not in STATED}


def only(value, what):
    return {k: value[k] for k in MEMBERS[what] if k in value}


def jackson(value):
    """Returns JSON as its library writes it: doubles always with a point, large ones with an exponent."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{json.dumps(k)}:{jackson(v)}" for k, v in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(jackson, value)) + "]"
    if isinstance(value, float) and abs(value) >= 1e7:
        digits, exponent = f"{value:.16e}".split("e")
        return f"{digits.rstrip('0').ljust(len(digits.split('.')[0]) + 2, '0')}E{int(exponent)}"
    return json.dumps(value)


class Refused(Exception):
    def __init__(self, status, title):
        super().__init__(title)
        self.status, self.title = status, title


class JavaServer:
    """Server in front of `behind`, a weft server with the same traces. It listens on the same port after a restart."""

    def __init__(self, behind, first_id=0):
        self.behind, self.port, self.server = behind, 0, None
        self.says = {}  # {output: [(status, message)]} for the next queries of its tree, or its table's columns
        self.broken = False  # answers as after an uncaught exception
        self.chosen = None  # derived output behind, of the thread with a critical path
        self.asked = []  # paths
        self.per_connection = None  # answers per connection, the last of which announces the end; None: no limit
        self.idle_s = None  # idle time after which it closes a connection without notice
        self.connections = 0
        self.start(first_id)

    def start(self, first_id=0):
        self.entry, self.column = itertools.count(first_id), itertools.count(first_id)
        self.java, self.own = {}, {}  # (output, weft's id) -> id; (output, id) -> weft's id
        self.open = set()
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            timeout = owner.idle_s
            answers = 0

            def log_message(self, *args):
                pass

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, kind, data = owner.answer(self.command, urllib.parse.unquote(self.path), body)
                try:
                    self.send_response(status)
                    self.answers += 1
                    if self.answers == owner.per_connection:
                        self.send_header("Connection", "close")
                    if data:
                        self.send_header("Content-Type", kind)
                    if data and "gzip" in self.headers.get("Accept-Encoding", ""):
                        self.send_header("Content-Encoding", "gzip")
                        data = gzip.compress(data, 1)
                    self.send_header("Transfer-Encoding", "chunked")
                    self.end_headers()
                    for at in range(0, len(data), 8192):
                        piece = data[at : at + 8192]
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    pass

            do_GET = do_POST = do_PUT = do_DELETE = handle_any

        class Listener(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def __init__(self, *args):
                self.open = set()
                super().__init__(*args)

            def process_request(self, request, client):
                self.open.add(request)
                owner.connections += 1
                super().process_request(request, client)

            def handle_error(self, request, client):
                pass

        self.server = Listener(("127.0.0.1", self.port), Handler)
        self.port = self.server.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()

    def stop(self):
        """Stops as when its process ends: closes connections, too."""
        self.server.shutdown()
        self.server.server_close()
        for connection in list(self.server.open):
            try:
                connection.shutdown(2)
            except OSError:
                pass
        self.chosen = None

    # ---- numbers

    def id_of(self, output, own):
        if not isinstance(own, int) or own < 0:
            return own
        if (output, own) not in self.java:
            its = next(self.column if "Table" in output else self.entry)
            self.java[output, own], self.own[output, its] = its, own
        return self.java[output, own]

    def with_ids(self, output, value):
        if isinstance(value, list):
            return [self.with_ids(output, v) for v in value]
        if not isinstance(value, dict):
            return value
        return {k: self.id_of(output, v) if k in IDS else self.with_ids(output, v) for k, v in value.items()}

    def own_parameters(self, output, p):
        p = {k: v for k, v in p.items() if k != "table_filter_expressions"}  # parameter of no protocol that it knows
        known = lambda ids: [self.own[output, i] for i in ids if (output, i) in self.own]
        for key in ("requested_items", "requested_table_column_ids"):
            if key in p:
                p[key] = known(p[key])
        if "requested_element" in p:
            p["requested_element"] = {
                k: self.own.get((output, v), -1) if k in ("entryId", "destinationId") else v
                for k, v in p["requested_element"].items()
            }
        if p.get("table_search_expressions"):
            p["table_search_expressions"] = {
                str(self.own[output, int(k)]): v
                for k, v in p["table_search_expressions"].items()
                if (output, int(k)) in self.own
            }
        return p

    # ---- answers

    def behind_says(self, method, path, parameters=None):
        connection = http.client.HTTPConnection(self.behind.host, timeout=600)
        body = None if parameters is None else json.dumps({"parameters": parameters})
        connection.request(method, "/tsp/api" + urllib.parse.quote(path, safe="/:?=&"), body,
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        data = answer.read()
        connection.close()
        value = json.loads(data)
        if answer.status != 200:
            raise Refused(answer.status, value["title"])
        return value

    def answer(self, method, path, body):
        path = path.removeprefix("/tsp/api")
        self.asked.append(path)
        if self.broken and path != "/health":
            return 500, "text/html;charset=ISO-8859-1", b"<html><body><h1>Request failed.</h1></body></html>"
        try:
            parameters = json.loads(body).get("parameters") or {} if body else {}
            value = self.value(method, path, parameters)
        except Refused as e:
            return e.status, "application/json", jackson({"title": e.title}).encode()
        return 200, "application/json", jackson(value).encode()

    def value(self, method, path, parameters):
        parts = path.strip("/").split("?")[0].split("/")
        if path == "/health":
            return {"status": "UP"}
        if path == "/identifier":
            return {"version": "11.1.0.202501", "buildTime": "202501", "os": "Linux", "osArch": "amd64",
                    "osVersion": "6.1", "cpuCount": 2, "maxMemory": 4294967296, "productId":
                    "org.eclipse.tracecompass.incubator.trace.server.product", "tspVersion": "0.6.0"}
        if parts[0] == "traces":
            value = self.behind_says(method, path, parameters if method == "POST" else None)
            return [self.closed(t) for t in value] if isinstance(value, list) else self.closed(value)
        if parts[0] == "experiments" and len(parts) < 3:
            return self.experiments(method, path, parameters)
        if parts[0] == "experiments" and parts[2] == "outputs":
            self.open.add(parts[1])
            return self.outputs(method, parts[1], parts[3:], parameters)
        raise Refused(404, "HTTP 404 Not Found")

    @staticmethod
    def closed(thing):
        what = "experiment" if "traces" in thing else "trace"
        return {**only(thing, what), "nbEvents": 0, "start": 0, "end": 0, "indexingStatus": "CLOSED",
                **({"traces": [JavaServer.closed(t) for t in thing["traces"]]} if "traces" in thing else
                   {"properties": {}})}

    def experiments(self, method, path, parameters):
        value = self.behind_says(method, path, parameters if method == "POST" else None)
        shown = lambda x: (
            {**only(x, "experiment"), "traces": [only(t, "trace") for t in x["traces"]]}
            if x["UUID"] in self.open
            else self.closed(x)
        )
        if isinstance(value, list):
            return [shown(x) for x in value]
        (self.open.discard if method == "DELETE" else self.open.add)(value["UUID"])
        return shown(value)

    def outputs(self, method, uuid, parts, parameters):
        at = f"/experiments/{uuid}/outputs"
        if not parts:
            return sorted((only(o, "outputs") for o in self.behind_says("GET", at) if has(o["id"])),
                          key=lambda o: o["name"])
        if parts == ["markerSets"]:
            return {"model": [], "status": "COMPLETED", "statusMessage": "Completed"}
        what = parts[-1]
        if method == "GET" and what != "annotations":
            output = parts[0]
            if not has(output):
                raise Refused(404, "No such data provider")
            return [] if what == "configTypes" else only(self.behind_says("GET", f"{at}/{output}"), "outputs")
        if what not in ("tree", "states", "arrows", "tooltip", "xy", "columns", "lines", "style", "annotations"):
            raise Refused(404, "No such data provider")
        output = parts[-2]
        if output == PATH:
            return self.path(uuid, what, parameters)
        if not has(output):
            raise Refused(405, "Analysis cannot run")
        if what in ("tree", "columns") and self.says.get(output):
            status, message = self.says[output].pop(0)
            if what == "columns" and status == "FAILED":
                raise Refused(400, message)
            return {"model": None, "status": status, "statusMessage": message}
        value = self.behind_says(method, at + "/" + "/".join(parts), self.own_parameters(output, parameters)
                                 if method == "POST" else None)
        return {"model": self.model(output, what, parameters, value["model"]), "status": value["status"],
                "statusMessage": value["statusMessage"]}

    def model(self, output, what, parameters, model):
        if model is None or (what == "tooltip" and not model):
            return None
        if what == "annotations" and not model.get("annotations", True):
            return None
        if what == "lines":
            model["columnIds"] = [self.id_of(output, c) for c in model["columnIds"]]
            return model
        if what in ("style", "tooltip"):
            return model
        if what == "columns":
            model = [unstated(c) for c in model]
        if what == "tree":
            model["headers"] = [unstated(h) for h in model["headers"]]
            model["entries"] = [unstated(e) for e in model["entries"]]
            for e in model["entries"]:
                its = e.pop("metadata", {})
                if "ThreadStatus" in output:
                    e["metadata"] = {METADATA[k]: v for k, v in its.items() if k in METADATA}
        if what == "xy":
            model["series"] = [unstated(s) for s in model["series"]]
            for s in model["series"]:
                s["yValues"] = [float(y) for y in s["yValues"]]
        return self.with_ids(output, model)

    # ---- the critical path

    def choose(self, uuid, thread):
        """Chooses a thread, as the user interface of the Java server can, but no client of it."""
        made = self.behind.ask("POST", f"/experiments/{uuid}/outputs/{PATH}", {
            "name": "chosen", "sourceTypeId": "weft.critical-path", "parameters": {"thread": thread}})
        self.chosen = made.json["id"]

    def path(self, uuid, what, parameters):
        done = {"status": "COMPLETED", "statusMessage": "Completed"}
        if not self.chosen:
            return {"model": None, **done}
        at = f"/experiments/{uuid}/outputs/" + ("" if what in ("style", "annotations") else "timeGraph/")
        value = self.behind_says("POST", f"{at}{self.chosen}/{what}", self.own_parameters(self.chosen, parameters))
        model = value["model"]
        if what == "tree" and model:
            hosts = {e["id"]: e["labels"][0] for e in model["entries"] if e.get("parentId", -1) < 0}
            kept = []
            for e in model["entries"]:
                if e["id"] in hosts:
                    kept.append({**{k: e[k] for k in ("id", "start", "end")}, "labels": e["labels"][:1],
                                 "parentId": -1, "hasData": False})
                else:
                    kept.append({**{k: e[k] for k in ("id", "parentId", "start", "end")}, "hasData": True,
                                 "labels": e["labels"][:1],
                                 "metadata": {k: e["metadata"][k] for k in ("hostId", "TID")}})
            model = {"entries": kept}
        return {"model": self.with_ids(self.chosen, model), **done}
