# SPDX-License-Identifier: MIT
"""Trace server under test: started on a free port, queried by HTTP as clients do, stopped by its process id."""
import gzip
import http.client
import json
import os
import signal
import subprocess
import threading
import time
import urllib.parse

from weft_e2e import BIN, SLOWDOWN, Case, scratch

EVENTS = "org.eclipse.tracecompass.internal.provisional.tmf.core.model.events.TmfEventTableDataProvider"
HISTOGRAM = "org.eclipse.tracecompass.internal.tmf.core.histogram.HistogramDataProvider"
THREAD_STATUS = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ThreadStatusDataProvider"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    def __str__(self):
        return f"{self.status} {self.body[:400]!r}"


class Server:
    def __init__(self, *args, store=None, preexec_fn=None, restore_signals=True, verb="serve", listen="127.0.0.1:0",
                 **env):
        self.log = open(os.path.join(scratch(), "stderr"), "w+b")
        command = [BIN, verb, "--listen", listen, *map(str, args)]
        if store != "":  # empty: stores are beside the traces
            command += ["--store", store or scratch()]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self.log, stdin=subprocess.DEVNULL,
                                        env=dict(os.environ, **env),
                                        preexec_fn=preexec_fn, restore_signals=restore_signals)
        line = self.process.stdout.readline().decode()
        if "listening on " not in line:
            self.process.wait(timeout=30)
            self.process.stdout.close()
            errors = self.errors()
            self.log.close()
            raise RuntimeError(f"weft {verb} did not start: {line!r} {errors}")
        self.url = line.split("listening on ")[1].strip()
        self.host = self.url.split("//")[1]

    def errors(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def ask(self, method, path, body=None, headers=None, timeout=60, raw=False, base="/tsp/api"):
        connection = http.client.HTTPConnection(self.host, timeout=timeout * SLOWDOWN)
        try:
            data = body if body is None or raw else json.dumps(body)
            connection.request(method, base + urllib.parse.quote(path, safe="/:?=&%"), data,
                               {"Content-Type": "application/json", **(headers or {})})
            answer = connection.getresponse()
            content = answer.read()
            if answer.getheader("Content-Encoding") == "gzip":
                content = gzip.decompress(content)
            return Answer(answer.status, answer.headers, content)
        finally:
            connection.close()

    def get(self, path, **how):
        return self.ask("GET", path, **how)

    def post(self, path, parameters=None, **how):
        return self.ask("POST", path, {"parameters": parameters or {}}, **how)

    def delete(self, path, **how):
        return self.ask("DELETE", path, **how)

    def opened(self, uuid):
        """Returns the experiment, once its traces are open."""
        end = time.monotonic() + 60 * SLOWDOWN
        while time.monotonic() < end:
            x = self.get(f"/experiments/{uuid}").json
            if x["indexingStatus"] != "RUNNING":
                return x
            time.sleep(0.05)
        raise RuntimeError("the experiment does not open")

    def first(self):
        """Returns the experiment of the traces given on the command line, opened."""
        return self.opened(self.get("/experiments").json[0]["UUID"])

    def model(self, path, parameters=None):
        """Returns the model of an analysis call; repeats the call while it runs."""
        end = time.monotonic() + 60 * SLOWDOWN
        while True:
            answer = self.post(path, parameters)
            if answer.status != 200:
                raise AssertionError(f"{path}: {answer}")
            if answer.json["status"] != "RUNNING" or time.monotonic() > end:
                break
            time.sleep(0.1)
        if answer.json["status"] != "COMPLETED":
            raise AssertionError(f"{path}: {answer}")
        return answer.json["model"]

    def rows(self, uuid, n):
        """Returns the entry ids of n threads."""
        tree = self.model(f"/experiments/{uuid}/outputs/timeGraph/{THREAD_STATUS}/tree")
        return [e["id"] for e in tree["entries"] if e["hasData"]][:n]

    def memory_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmRSS"))

    def watch_memory(self):
        """Resets peak_bytes."""
        with open(f"/proc/{self.process.pid}/clear_refs", "w", encoding="ascii") as f:
            f.write("5")

    def peak_bytes(self):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) * 1024 for line in f if line.startswith("VmHWM"))

    def cpu_seconds(self):
        with open(f"/proc/{self.process.pid}/stat", encoding="ascii") as f:
            fields = f.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self, how=signal.SIGTERM):
        """Sends a signal to stop; returns the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            code = self.process.wait(timeout=30 * SLOWDOWN)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = None
        self.process.stdout.close()
        return code

    def __del__(self):
        self.log.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.log.close()


class Beside(threading.Thread):
    """Thread beside the lines of a `with`: run() checks `ended`."""

    def __init__(self):
        super().__init__()
        self.ended = threading.Event()

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


class Bystander(Beside):
    """Client that sends small queries all the time, and must get quick answers whatever the others do."""

    def __init__(self, server, uuid):
        super().__init__()
        self.server, self.uuid = server, uuid
        self.slowest, self.asked, self.failures = 0, 0, []
        x = server.get(f"/experiments/{uuid}").json
        self.range = {"start": x["start"], "end": x["end"], "nbTimes": 50}
        self.rows = server.rows(uuid, 5)

    def run(self):
        base = f"/experiments/{self.uuid}/outputs"
        asks = [lambda: self.server.get("/health"), lambda: self.server.get(f"/experiments/{self.uuid}"),
                lambda: self.server.get(base),
                lambda: self.server.post(f"{base}/timeGraph/{THREAD_STATUS}/states",
                                         {"requested_timerange": self.range, "requested_items": self.rows}),
                lambda: self.server.post(f"{base}/XY/{HISTOGRAM}/tree")]
        while not self.ended.is_set():
            begin = time.monotonic()
            try:
                answer = asks[self.asked % len(asks)]()
                if answer.status != 200:
                    self.failures.append(str(answer))
            except OSError as e:
                self.failures.append(repr(e))
            self.slowest = max(self.slowest, time.monotonic() - begin)
            self.asked += 1
            self.ended.wait(0.02)


class ServerCase(Case):
    def refused(self, answer, status, title=None):
        self.assertEqual(answer.status, status, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        self.assertIsInstance(answer.json["title"], str)
        if title:
            self.assertIn(title, answer.json["title"])
        return answer.json

    def good(self, answer):
        self.assertEqual(answer.status, 200, answer)
        self.assertEqual(answer.headers["Content-Type"], "application/json")
        return answer.json
