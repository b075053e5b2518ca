"""What the tests of the coordinator share: the machines of three-tier on a server each, and on one server that has all;
stand-ins for servers of other makes."""
import http.server
import json
import threading

from cluster_of import free_port
from tsp_server import Server
from weft_e2e import scenario, scratch

HOSTS = ("client", "web", "db")
KINDS = {"TIME_GRAPH": "timeGraph", "TREE_TIME_XY": "XY", "DATA_TREE": "data"}


class Coordinator(Server):
    def __init__(self, *args, **how):
        super().__init__(*args, verb="coordinate", store="", **how)


def serve(*hosts, store, sync=False, **how):
    """A server with these machines, each on its own clock unless they shall be synchronised."""
    return Server(
        *([] if sync else ["--no-sync"]),
        *("--name", "shop"),
        *[f"{h}={scenario('three-tier')}/{h}" for h in hosts],
        store=store,
        **how,
    )


class Shop:
    """A server for each machine, one with all (on one clock if `sync`), and a coordinator of the former."""

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
    """{path of labels: entry} of a tree; entries of equal paths are told apart by their place."""
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


class StandIn:
    """A trace server made up by a function (path, parameters) -> value, (status, value), or a handler's own writing:
    a function of the handler. It is well unless the function says otherwise."""

    def __init__(self, answer):
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def reply(self, status, value):
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
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
