# SPDX-License-Identifier: MIT
"""Traces that change while they are served: what appears in their directories is in the answers soon after, requests
are answered all the while, and what cannot be opened takes nothing away."""
import os
import shutil
import time
from unittest import mock

import long_trace
import small_trace
from growing_session import PER_ARCHIVE, PERIOD, Asker, Session, packets, wait_for
from tsp_server import EVENTS, THREAD_STATUS, Server, ServerCase
from weft_e2e import SLOWDOWN, main, scenario, scratch

LIMIT_S = 10 * SLOWDOWN  # a second on an idle machine
SWAPS = 50 if SLOWDOWN < 15 else 10
SLACK_BYTES = 8 << 20
LONG_PACKETS = 25 if SLOWDOWN == 1 else 5
IN_OUT = "org.eclipse.tracecompass.incubator.inandout.core.analysis.inAndOutdataProviderFactory"
IN_OUT_TYPE = "org.eclipse.tracecompass.incubator.internal.inandout.core.config"
STATISTICS = "org.eclipse.tracecompass.analysis.timing.core.segmentstore.SegmentStoreStatisticsDataProvider"


class Follow(ServerCase):
    def setUp(self):
        self.session = Session()
        self.session.move_in()
        self.session.move_in()

    def serve(self, *args, **how):
        server = Server(self.session.top, *args, **how)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0, server.errors()))
        x = server.first()
        self.assertEqual((x["nbEvents"], x["version"], x["indexingStatus"]), (self.session.events, 1, "COMPLETED"))
        return server, x["UUID"]

    def state(self, server, uuid):
        return self.good(server.get(f"/experiments/{uuid}"))

    def has(self, server, uuid, events):
        return lambda: self.state(server, uuid)["nbEvents"] == events

    def settled(self, server, uuid):
        """The experiment, once nothing is under way."""
        wait_for("the end of all openings", lambda: self.state(server, uuid)["indexingStatus"] == "COMPLETED")
        return self.state(server, uuid)

    def lines(self, server, uuid, begin):
        return server.model(f"/experiments/{uuid}/outputs/table/{EVENTS}/lines",
                            {"requested_times": [begin], "requested_table_count": 1000})

    def test_moved_in(self):
        server, uuid = self.serve()
        before = self.state(server, uuid)
        number = self.session.made
        self.session.move_in()
        took = wait_for("the archive", self.has(server, uuid, self.session.events), LIMIT_S)
        print(f"an archive that is moved in: answered from after {took:.2f} s")
        after = self.settled(server, uuid)
        self.assertEqual((after["version"], after["start"]), (2, before["start"]))
        self.assertGreater(after["end"], before["end"])
        lines = self.lines(server, uuid, small_trace.OFFSET_NS + number * PERIOD)
        self.assertEqual(lines["size"], self.session.events)
        self.assertEqual(len(lines["lines"]), PER_ARCHIVE)
        self.assertNotIn("problem", after)

    def test_rows_stay(self):
        """Rows have the ids that they had; what was asked with them is answered from the version of now."""
        server, uuid = self.serve()
        graph = f"/experiments/{uuid}/outputs/timeGraph/{THREAD_STATUS}"
        rows = lambda: {e["id"]: e["labels"] for e in server.model(f"{graph}/tree")["entries"]}
        before, begin = rows(), self.state(server, uuid)["start"]
        self.assertGreater(len(before), 3)
        for _ in range(3):
            self.session.move_in()
            wait_for("the archive", self.has(server, uuid, self.session.events))
        self.assertEqual({i: who for i, who in rows().items() if i in before}, before)
        end = self.state(server, uuid)["end"]
        states = server.model(f"{graph}/states", {
            "requested_timerange": {"start": begin, "end": end, "nbTimes": 10000},
            "requested_items": list(before)})["rows"]
        self.assertLessEqual({r["entryId"] for r in states}, set(before))
        self.assertGreater(max(s["end"] for r in states for s in r["states"]), begin + 3 * PERIOD)

    def test_copied_slowly(self):
        server, uuid = self.serve()
        directory, data = self.session.path(self.session.made), b"".join(packets(self.session.made))
        self.session.made += 1
        os.makedirs(directory)
        with open(os.path.join(directory, "metadata"), "w", encoding="ascii") as f:
            f.write(small_trace.METADATA)
        with open(os.path.join(directory, "ch_0"), "wb", buffering=0) as f, Asker(server, uuid) as asker:
            for at in range(0, len(data), 40):
                f.write(data[at:at + 40])
                time.sleep(0.05)  # interval below that of new versions
        took = wait_for("the archive", self.has(server, uuid, self.session.events), LIMIT_S)
        print(f"an archive that is copied: answered from {took:.2f} s after its end")
        self.assertEqual(asker.wrong, [])

    def test_grows(self):
        """A packet is written behind the last one of a channel."""
        server, uuid = self.serve()
        number = self.session.made
        self.session.move_in()
        wait_for("the archive", self.has(server, uuid, self.session.events))
        with open(os.path.join(self.session.path(number), "ch_0"), "ab") as f:
            f.write(packets(number + 1)[0])
        wait_for("the packet", self.has(server, uuid, self.session.events + len(small_trace.PACKETS[0])), LIMIT_S)

    def test_old_ones_go(self):
        server, uuid = self.serve()
        begin = self.state(server, uuid)["start"]
        shutil.rmtree(os.path.dirname(self.session.path(0)))
        wait_for("the end of the first archive", self.has(server, uuid, self.session.events - PER_ARCHIVE), LIMIT_S)
        self.assertEqual(self.state(server, uuid)["start"], begin + PERIOD)

    def test_asked_all_the_while(self):
        server, uuid = self.serve()
        askers = [Asker(server, uuid) for _ in range(4)]
        for a in askers:
            a.start()
        for _ in range(10):
            self.session.move_in()
            wait_for("the archive", self.has(server, uuid, self.session.events))
        for a in askers:
            a.ended.set()
            a.join()
        self.assertEqual([w for a in askers for w in a.wrong], [])
        self.assertGreater(min(a.asked for a in askers), 10)
        self.assertEqual(self.settled(server, uuid)["version"], 11)

    def test_machine(self):
        """A machine more: all views have it, on one clock with the others."""
        top, source = os.path.join(scratch(), "machines"), scenario("three-tier")
        os.mkdir(top)
        copy = lambda host, to: shutil.copytree(os.path.join(source, host), to, copy_function=shutil.copyfile)
        for host in ("client", "web"):
            copy(host, os.path.join(top, host))
        with Server(top) as server:
            uuid = server.first()["UUID"]
            hosts = lambda: {e["labels"][0] for e in server.model(
                f"/experiments/{uuid}/outputs/timeGraph/{THREAD_STATUS}/tree")["entries"] if e["parentId"] == -1}
            self.assertEqual(hosts(), {"client", "web"})
            copy("db", os.path.join(scratch(), "db"))
            copy("db", os.path.join(top, "db"))
            took = wait_for("the machine", lambda: hosts() == {"client", "web", "db"})
            print(f"a machine that is copied: answered from {took:.2f} s after")
            self.assertEqual(len(self.state(server, uuid)["traces"]), 1)

    def computed_while_it_grows(self, server, uuid, switches):
        """Asks for what takes the longer to compute the more switches it is to find, while archives come. The versions
        that were open until it was answered."""
        outputs = f"/experiments/{uuid}/outputs"
        made = self.good(server.ask("POST", f"{outputs}/{IN_OUT}", {
            "name": f"switches {switches}", "sourceTypeId": IN_OUT_TYPE, "parameters": {"specifiers": [{
                "label": str(i), "inRegex": "sched_switch", "outRegex": "sched_switch", "contextInRegex":
                r"next_tid\W+(\d+)", "contextOutRegex": r"prev_tid\W+(\d+)", "classifier": "CPU"}
                for i in range(switches)]}}))
        question = f"{outputs}/data/{STATISTICS}:{made['id']}/tree"
        statuses, versions = [], set()
        while not statuses or statuses[-1] == "RUNNING":
            statuses.append(self.good(server.post(question))["status"])
            x = self.state(server, uuid)
            versions.add(x["version"])
            if x["indexingStatus"] == "COMPLETED":
                self.session.move_in()
            self.assertLess(len(versions), 200, "it is never computed")
            time.sleep(0.02)
        self.assertEqual(statuses[-1], "COMPLETED")
        return versions

    def test_long_computation(self):
        """Long computations that take longer than the next version to open are completed, in the version in which they
        were begun."""
        metadata = small_trace.METADATA.replace("10111213-1415", "20212223-2425").replace('"small"', '"long"')
        uuid_ = bytes(range(32, 38)) + small_trace.UUID[6:]
        with mock.patch.multiple(small_trace, METADATA=metadata, UUID=uuid_):
            long_trace.write(os.path.join(self.session.top, "long"), LONG_PACKETS)
        server = Server(self.session.top)
        self.addCleanup(lambda: self.assertEqual(server.stop(), 0, server.errors()))
        uuid = server.first()["UUID"]
        switches, versions = 4, set()
        while len(versions) <= 2:  # loop, since the machine's speed is unknown: until it took long enough
            switches *= 2
            self.assertLess(switches, 128, "versions come slower than any answer")
            versions = self.computed_while_it_grows(server, uuid, switches)

    def test_no_trace(self):
        """Invalid traces remove nothing, and stop no later ones."""
        server, uuid = self.serve()
        directory = self.session.path("bad")
        os.makedirs(directory)
        with open(os.path.join(directory, "metadata"), "w", encoding="ascii") as f:
            f.write("/* CTF 1.8 */ trace { this is none };")
        with Asker(server, uuid) as asker:
            wait_for("the next version", lambda: self.state(server, uuid)["version"] == 2)
            self.session.move_in()
            wait_for("the archive", self.has(server, uuid, self.session.events), LIMIT_S)
        self.assertEqual(asker.wrong, [])
        shutil.rmtree(os.path.dirname(directory))
        self.session.move_in()
        wait_for("the archive", self.has(server, uuid, self.session.events), LIMIT_S)

    def test_vanishes(self):
        """Traces that vanish: open ones are still served, and the reason is reported; they come back."""
        server, uuid = self.serve()
        with Asker(server, uuid) as asker:
            away = self.session.top + "-away"
            os.rename(self.session.top, away)
            wait_for("the problem", lambda: "problem" in self.state(server, uuid))
            x = self.state(server, uuid)
            self.assertIn("session", x["problem"])
            self.assertEqual((x["nbEvents"], x["version"]), (self.session.events, 1))
            wait_for("the note", lambda: "has changed but cannot be opened" in server.errors())
            os.rename(away, self.session.top)
            wait_for("its return", lambda: self.state(server, uuid)["version"] == 2)
            self.session.move_in()
            wait_for("the archive", self.has(server, uuid, self.session.events))
        self.assertNotIn("problem", self.settled(server, uuid))
        self.assertEqual(asker.wrong, [])
        self.assertEqual(server.errors().count("has changed"), 1)

    def test_own_stores(self):
        """Stores that are built in the trace's directory are no change."""
        server, uuid = self.serve(store="")
        self.assertTrue(any(".weft" in d for d, _, _ in os.walk(self.session.top)))
        for version in (2, 3):
            self.session.move_in()
            wait_for("the archive", self.has(server, uuid, self.session.events))
            self.assertEqual(self.settled(server, uuid)["version"], version)

    def test_frozen(self):
        frozen, uuid = self.serve("--frozen")
        server, _ = self.serve()
        self.session.move_in()
        wait_for("the archive", self.has(server, uuid, self.session.events))
        x = self.state(frozen, uuid)
        self.assertEqual((x["nbEvents"], x["version"]), (self.session.events - PER_ARCHIVE, 1))

    def test_removed(self):
        """The experiment is removed while its next version opens, and made again."""
        server, uuid = self.serve()
        x = self.state(server, uuid)
        for _ in range(5):
            self.session.move_in()
            wait_for("the change", lambda: self.state(server, uuid)["indexingStatus"] == "RUNNING"
                     or self.state(server, uuid)["nbEvents"] == self.session.events)
            self.good(server.delete(f"/experiments/{uuid}"))
            self.good(server.post("/experiments", {"name": x["name"], "traces": [t["UUID"] for t in x["traces"]]}))
            wait_for("the archive", self.has(server, uuid, self.session.events))

    def test_nothing_leaks(self):
        server, uuid = self.serve()
        process = f"/proc/{server.process.pid}"

        def swap():
            self.session.move_in()
            wait_for("the archive", self.has(server, uuid, self.session.events))
            Asker(server, uuid).ask()

        def held():
            self.settled(server, uuid)
            wait_for("closed connections", lambda: len(os.listdir(f"{process}/task")) <= threads)
            return len(os.listdir(f"{process}/fd"))

        threads = 1 << 20
        for _ in range(5):
            swap()
        files, memory = held(), server.memory_bytes()
        threads = len(os.listdir(f"{process}/task"))
        for _ in range(SWAPS):
            swap()
        wait_for("closed files", lambda: held() <= files)
        if SLOWDOWN == 1:
            self.assertLess(server.memory_bytes() - memory, SLACK_BYTES)
        self.assertEqual(self.state(server, uuid)["version"], SWAPS + 6)


if __name__ == "__main__":
    main()
