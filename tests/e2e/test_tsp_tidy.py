# SPDX-License-Identifier: MIT
"""Stores of what a server follows: it makes few files of many by itself, also beside others who do, and its answers
stay what they are while files of an open version are replaced."""
import fcntl
import os
import re
import subprocess
import threading

from growing_session import Asker, Session, wait_for
from tsp_server import EVENTS, HISTOGRAM, THREAD_STATUS, Beside, Server, ServerCase
from weft_e2e import BIN, SLOWDOWN, main, scratch, weft

ARCHIVES = 40 if SLOWDOWN < 15 else 15
BEHIND = 3  # chunks that came since files were put in order


def files(store, kind="chunk"):
    return [os.path.join(d, name) for d, _, names in os.walk(store) for name in names
            if re.fullmatch(kind + r"\.[\d-]+", name)]


class Indexing(Beside):
    """Somebody who indexes what is there again and again."""

    def __init__(self, trace, store):
        super().__init__()
        self.command = [BIN, "index", trace, "--store", store]
        self.failures = []

    def run(self):
        while not self.ended.wait(0.05):
            done = subprocess.run(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
            if done.returncode:
                self.failures.append(done.stderr)


class Tidy(ServerCase):
    def setUp(self):
        self.session, self.store, self.left = Session(), scratch(), []
        self.session.move_in()
        self.session.move_in()

    def serve(self, *args, store=None):
        server = Server(self.session.top, *args, store=store or self.store)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0, server.errors()))
        return server, server.first()["UUID"]

    def said(self, server, uuid):
        """Returns all views that read another part of the stores; the table first, which counts packets."""
        x, base = self.good(server.get(f"/experiments/{uuid}")), f"/experiments/{uuid}/outputs"
        span = {"start": x["start"], "end": x["end"], "nbTimes": 2000}
        tree = server.model(f"{base}/timeGraph/{THREAD_STATUS}/tree", {"requested_timerange": span})
        return [
            server.model(f"{base}/table/{EVENTS}/lines", {
                "requested_table_index": x["nbEvents"] // 2, "requested_table_count": x["nbEvents"]}),
            (x["nbEvents"], x["start"], x["end"]), tree,
            server.model(f"{base}/timeGraph/{THREAD_STATUS}/states", {
                "requested_timerange": span, "requested_items": [e["id"] for e in tree["entries"]]}),
            server.model(f"{base}/timeGraph/{THREAD_STATUS}/arrows", {"requested_timerange": span}),
            server.model(f"{base}/XY/{HISTOGRAM}/xy", {"requested_timerange": span, "requested_items": [
                e["id"] for e in server.model(f"{base}/XY/{HISTOGRAM}/tree")["entries"]]}),
        ]

    def same_as_at_once(self, *served):
        """The answers are those of stores that were built in one pass."""
        with Server(self.session.top, store=scratch()) as fresh:
            whole = self.said(fresh, fresh.first()["UUID"])
        for server, uuid in served:
            self.assertEqual(self.said(server, uuid), whole)
        self.assertEqual(weft("verify", self.session.top, "--store", self.store).code, 0)

    def come(self, *served):
        self.session.move_in()
        for server, uuid in served:
            wait_for("the archive", lambda s=server, u=uuid: self.good(s.get(f"/experiments/{u}"))["nbEvents"]
                     == self.session.events)

    def index_leaves(self):
        """Returns the maximum number of files when each arriving archive is indexed."""
        beside, store, most = Session(), scratch(), 0
        while beside.made < self.session.made + ARCHIVES:
            beside.move_in()
            if beside.made > 2:
                self.ok("index", beside.top, "--store", store)
                most = max(most, len(files(store)))
        return most

    def test_few_files(self):
        most = self.index_leaves()
        self.assertLess(most, ARCHIVES / 3)
        served = self.serve()
        with Asker(*served) as asker:
            seen = []
            for _ in range(ARCHIVES):
                self.come(served)
                seen.append(len(files(self.store)))
        self.assertEqual(asker.wrong, [])
        self.assertLessEqual(max(seen), most + BEHIND, seen)
        self.assertLess(len(files(self.store, "rows")), 20)
        wait_for("as few files as index leaves", lambda: len(files(self.store)) <= most)
        self.same_as_at_once(served)
        self.assertEqual(self.json("index", self.session.top, "--store", self.store)[0]["done"], "up to date")

    def test_never_quiet(self):
        """Archives come faster than anything is opened: files are joined all the same."""
        served = self.serve()
        stop, seen = threading.Event(), []

        def move_in():
            while not stop.wait(0.05):
                self.session.move_in()

        mover = threading.Thread(target=move_in)
        mover.start()
        try:
            wait_for("many versions", lambda: seen.append(len(files(self.store))) or self.good(
                served[0].get(f"/experiments/{served[1]}"))["version"] > 12)
        finally:
            stop.set()
            mover.join()
        self.assertLessEqual(max(seen), 8 + BEHIND, seen)

    def grown(self):
        """Returns the store as it grows without joining."""
        for _ in range(12):
            self.session.move_in()
            self.ok("threads", self.session.top, "--store", self.store)
        self.assertGreater(len(files(self.store)), 12)

    def test_open_version(self):
        """Open versions answer from files that are gone, also about parts not read before."""
        self.grown()
        served = self.serve("--frozen")
        wait_for("few files", lambda: len(files(self.store)) < 6)
        self.same_as_at_once(served)

    def test_who_writes_waits(self):
        """Somebody else has the stores: nothing is joined; then with the next version."""
        self.grown()
        with open(os.path.join(os.path.dirname(files(self.store)[0]), "lock"), "r+b") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            before = files(self.store)
            served = self.serve()
            self.assertRaises(AssertionError, wait_for, "files", lambda: files(self.store) != before, 1)
        self.come(served)
        wait_for("few files", lambda: len(files(self.store)) < 6)

    def test_index_beside(self):
        """Whoever joins, index or one of two servers: nobody is disturbed by it."""
        served = [self.serve(), self.serve()]
        with Asker(*served[0]) as one, Asker(*served[1]) as other, Indexing(self.session.top, self.store) as indexing:
            for _ in range(ARCHIVES // 2):
                self.come(*served)
        self.assertEqual((one.wrong, other.wrong, indexing.failures), ([], [], []))
        wait_for("few files", lambda: len(files(self.store)) < 8)
        self.same_as_at_once(*served)

    def test_ends(self):
        """Stopping at any moment is obeyed, and the files left are whole."""
        self.grown()
        for _ in range(5):
            with Server(self.session.top, store=self.store) as server:
                server.first()
                self.assertEqual(server.stop(), 0, server.errors())
            self.assertEqual(weft("verify", self.session.top, "--store", self.store).code, 0)
        self.same_as_at_once(self.serve())


if __name__ == "__main__":
    main()
