# SPDX-License-Identifier: MIT
"""Proxy before a trace server that rewords its answers: messages, titles of columns, labels of rows that state a key.
Parts meant for programs (codes, keys, numbers) pass unchanged."""
import http.client
import http.server
import json
import threading

MESSAGES = ("statusMessage", "title", "detail", "tooltip", "description")
STATED = ("key", "merge", "of", "by", "order", "code", "codes")
WORDS = {"Average": "Mean", "Total": "Sum", "Selection": "Chosen", "Timestamp ns": "Instant", "Trace": "Machine"}


def reword(text):
    return WORDS.get(text, f"({text[::-1]})" if text else text)


def is_column(value):
    """Returns whether it is a header of a tree or a column of a table."""
    return "name" in value and ("tooltip" in value or "type" in value) and "UUID" not in value and "labels" not in value


def reworded(value, above=None):
    if isinstance(value, list):
        return [reworded(v, above) for v in value]
    if not isinstance(value, dict):
        return value
    out = {k: reworded(v, k) for k, v in value.items()}
    out.update({k: reword(v) for k, v in out.items() if k in MESSAGES and isinstance(v, str)})
    if above in ("headers", "model") and is_column(value):
        out["name"] = reword(value["name"])
    if "labels" in out and "key" in out:
        out["labels"] = [reword(value["labels"][0]), *value["labels"][1:]]
    return out


def without(value, members):
    if isinstance(value, list):
        return [without(v, members) for v in value]
    return {k: without(v, members) for k, v in value.items() if k not in members} if isinstance(value, dict) else value


class Proxy:
    """Proxy of `behind`, a server under test. change: replaces each answer; ask: another path; write: its text. asked:
    the paths."""

    def __init__(self, behind, change, ask=lambda path: path, write=None):
        write = write or (lambda value: json.dumps(value, separators=(",", ":"), ensure_ascii=False))
        self.asked = []
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def handle_any(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                owner.asked.append(self.path)
                connection = http.client.HTTPConnection(behind.host, timeout=120)
                try:
                    connection.request(self.command, ask(self.path), body or None,
                                       {k: v for k, v in self.headers.items() if k in ("Content-Type", "Via")})
                    answer = connection.getresponse()
                    value = change(json.loads(answer.read()))
                    data = write(value).encode()
                    self.send_response(answer.status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    self.close_connection = True
                finally:
                    connection.close()

            do_GET = do_POST = do_PUT = do_DELETE = handle_any

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self):
        self.server.shutdown()
        self.server.server_close()


class Rewording(Proxy):
    def __init__(self, behind):
        super().__init__(behind, reworded)


class Older(Proxy):
    """Version without merge rules of columns, rows and series, and without error codes."""

    def __init__(self, behind):
        super().__init__(behind, lambda value: without(value, STATED))


def turned(value):
    """Returns objects with their members in reverse order."""
    if isinstance(value, list):
        return [turned(v) for v in value]
    return {k: turned(v) for k, v in reversed(value.items())} if isinstance(value, dict) else value


class Spacing(Proxy):
    """Proxy that writes the same values in other bytes: space, escapes, the order of members."""

    def __init__(self, behind):
        super().__init__(behind, turned, write=lambda value: json.dumps(value, indent=1))


class Renaming(Proxy):
    """Proxy that gives an output another id."""

    def __init__(self, behind, own, other):
        def change(value):
            if isinstance(value, list):
                for o in value:
                    if isinstance(o, dict) and o.get("id") == own:
                        o["id"] = other
            return value
        super().__init__(behind, change, ask=lambda path: path.replace(other, own))
