# SPDX-License-Identifier: MIT
"""Recording session whose archives arrive one by one while it is served, and a client that queries it all the time."""
import os
import time

import small_trace
from tsp_server import EVENTS, HISTOGRAM, THREAD_STATUS, Beside
from weft_e2e import SLOWDOWN, scratch

PERIOD = 100000  # ns between archives
PER_ARCHIVE = sum(map(len, small_trace.PACKETS))
PATIENCE_S = 60 * SLOWDOWN


def packets(number):
    return [small_trace.packet(3 * number + i, [(t + number * PERIOD, what) for t, what in events])
            for i, events in enumerate(small_trace.PACKETS)]


def write_archive(directory, number):
    small_trace.write(directory, stream=b"".join(packets(number)))


class Session:
    """Directory of archives, as rotation leaves them, beside which others are prepared."""

    def __init__(self):
        self.top, self.aside, self.made = os.path.join(scratch(), "session"), scratch(), 0
        os.makedirs(os.path.join(self.top, "archives"))

    def path(self, number):
        return os.path.join(self.top, "archives", f"archive-{number}", "kernel")

    def move_in(self):
        """Moves in the next archive, in one step."""
        whole = os.path.join(self.aside, str(self.made))
        write_archive(os.path.join(whole, "kernel"), self.made)
        os.rename(whole, os.path.dirname(self.path(self.made)))
        self.made += 1

    @property
    def events(self):
        return self.made * PER_ARCHIVE


def wait_for(what, condition, patience=PATIENCE_S):
    begin = time.monotonic()
    while not condition():
        if time.monotonic() > begin + patience:
            raise AssertionError(f"{what}: not within {patience} s")
        time.sleep(0.01)
    return time.monotonic() - begin


class Asker(Beside):
    """Client that sends all kinds of queries until stopped; every query must be answered, and no answer may go back in
    time."""

    def __init__(self, server, uuid):
        super().__init__()
        self.server, self.uuid, self.asked, self.wrong = server, uuid, 0, []
        self.events = self.version = 0

    def run(self):
        try:
            while not self.ended.is_set() and not self.wrong:
                self.ask()
        except (OSError, ValueError, KeyError) as e:
            self.wrong.append(repr(e))

    def model(self, path, parameters):
        answer = self.server.post(f"/experiments/{self.uuid}/outputs/{path}", parameters)
        self.asked += 1
        if answer.status != 200 or answer.json["status"] != "COMPLETED" or answer.json["model"] is None:
            self.wrong.append(f"{path}: {answer}")
            return None
        return answer.json["model"]

    def ask(self):
        x = self.server.get(f"/experiments/{self.uuid}").json
        if x["nbEvents"] < self.events or x["version"] < self.version or x["indexingStatus"] == "CLOSED":
            self.wrong.append(f"after {self.events} events, version {self.version}: {x}")
        self.events, self.version = x["nbEvents"], x["version"]
        span = {"start": x["start"], "end": x["end"], "nbTimes": 50}
        if not self.server.get(f"/experiments/{self.uuid}/outputs").json:
            self.wrong.append("no outputs")
        tree = self.model(f"timeGraph/{THREAD_STATUS}/tree", {"requested_timerange": span})
        ids = [e["id"] for e in tree["entries"]] if tree else []
        self.model(f"timeGraph/{THREAD_STATUS}/states", {"requested_timerange": span, "requested_items": ids})
        self.model(f"timeGraph/{THREAD_STATUS}/arrows", {"requested_timerange": span})
        self.model(f"XY/{HISTOGRAM}/tree", {"requested_timerange": span})
        self.model(f"table/{EVENTS}/lines", {"requested_table_index": 0, "requested_table_count": 50})
