# SPDX-License-Identifier: MIT
"""A trace server under test, and what a client asks of it."""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests"))
from needed import have, need, new_dice, run, seed  # noqa: E402,F401

DATA = os.path.abspath(os.environ.get("WEFT_DATA") or os.path.join(ROOT, "..", "shared", "data"))
WEFT = os.environ.get("WEFT_BIN", os.path.join(ROOT, "build", "weft"))
THREADS = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ThreadStatusDataProvider"
RESOURCES = "org.eclipse.tracecompass.internal.analysis.os.linux.core.threadstatus.ResourcesStatusDataProvider"
MACHINES = "weft.machines"
PATHS = "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider"


def recorded(*names):
    """Directories of recorded traces, to be judged by babeltrace2."""
    found = [os.path.join(DATA, "traces", n) for n in names]
    need("babeltrace2", *found)
    return found


class Server:
    """Server with one experiment of the given TRACEs (and options)."""

    def __init__(self, *arguments):
        self.store = tempfile.mkdtemp(prefix="weft-tsp-")
        self.process = subprocess.Popen([WEFT, "serve", "--listen", "127.0.0.1:0", "--store", self.store, *arguments],
                                        stdout=subprocess.PIPE, text=True)
        self.base = re.search(r"http://\S+", self.process.stdout.readline()).group(0).rstrip("/") + "/tsp/api"
        self.experiment = self.get("/experiments")[0]
        while self.experiment["indexingStatus"] == "RUNNING" or not self.experiment["nbEvents"]:
            time.sleep(0.05)
            self.experiment = self.get("/experiments/" + self.experiment["UUID"])
        self.outputs = "/experiments/%s/outputs" % self.experiment["UUID"]
        self.begin, self.end = self.experiment["start"], self.experiment["end"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(60)
        shutil.rmtree(self.store)
        assert code == 0, "the server ended with %d" % code

    def request(self, method, path, body=None):
        """Status and answer."""
        data = None if body is None else json.dumps(body).encode()
        r = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with urllib.request.urlopen(r, timeout=120) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as e:
            return e.code, json.loads(e.read() or b"null")

    def get(self, path):
        status, answer = self.request("GET", path)
        assert status == 200, (path, status, answer)
        return answer

    def model(self, path, **parameters):
        """The model once it is complete."""
        while True:
            status, answer = self.request("POST", self.outputs + path, {"parameters": parameters})
            assert status == 200, (path, status, answer)
            if answer["status"] != "RUNNING":
                assert answer["status"] == "COMPLETED", answer
                return answer["model"]
            time.sleep(0.05)

    def tree(self, output, **parameters):
        return self.model("/timeGraph/%s/tree" % output, **parameters)["entries"]

    def states(self, output, items, begin, end, n, **more):
        rows = self.model("/timeGraph/%s/states" % output,
                          requested_timerange={"start": begin, "end": end, "nbTimes": n}, requested_items=items,
                          **more)["rows"]
        return {r["entryId"]: r["states"] for r in rows}

    def arrows(self, output, begin, end):
        return self.model("/timeGraph/%s/arrows" % output, requested_timerange={"start": begin, "end": end})

    def tooltip(self, output, entry, t, duration=0):
        return self.model("/timeGraph/%s/tooltip" % output, requested_times=[t], requested_items=[entry],
                          requested_element={"elementType": "state", "time": t, "duration": duration})

    def annotations(self, output, begin, end):
        return self.model("/%s/annotations" % output, requested_timerange={"start": begin, "end": end})["annotations"]

    def derive(self, **parameters):
        return self.request("POST", "%s/%s" % (self.outputs, PATHS),
                            {"name": "path", "sourceTypeId": "weft.critical-path", "parameters": parameters,
                             **parameters})


def sample_times(begin, end, n):
    """Returns the times of a range as the protocol expands it."""
    step = max(1, (end - begin) // (n - 1))
    return list(range(begin, end, step)) + [end]


def key(state):
    return state["style"]["parentKey"] if "style" in state else None


def check_row(states, times, begin, end):
    """Sorted, without overlap, each with a sample in it; every sample within [begin, end) has a state. Returns the
    state by sample time."""
    at, last = {}, None
    for s in states:
        assert s["start"] < s["end"], s
        assert last is None or s["start"] >= last, (s, last)
        last = s["end"]
    i = 0
    for t in times:
        while i < len(states) and states[i]["end"] <= t:
            i += 1
        if i < len(states) and states[i]["start"] <= t:
            at[t] = states[i]
        else:
            assert not begin <= t < end, "nothing at %d" % t
    hit = {id(s) for s in at.values()}
    assert all(id(s) in hit or s["end"] == times[-1] for s in states), "a state without a sample in it"
    return at
