#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""A machine that was rebooted is one host with another clock: traces of one host name whose clocks have different boot
ids (the uuid that LTTng gives its clock) and that lie one after the other. Judged by babeltrace2 and by how the traces
were made."""
import json
import os
import subprocess
import uuid

import small_trace
from tsp_server import THREAD_STATUS, Server, ServerCase
from weft_e2e import main, need, scratch, weft

DAY = 86400 * 10**9
FIRST = small_trace.OFFSET_NS + 1000  # first event's time; the last one is 69 µs later
USER_SPACE = """
stream { id = 0; event.header := struct header; packet.context := struct packet_context; };
event { name = "app:step"; id = 0; stream_id = 0; fields := struct { int32_t _n; }; };
"""


def write(path, number, boot, after_ns=0, name="small", user_space=False, release="6.1"):
    """A trace that begins so much later; every boot's counter begins anew. boot: its id, or None."""
    text = small_trace.METADATA.replace('hostname = "small"', f'hostname = "{name}"')
    text = text.replace('domain = "kernel";', f'domain = "kernel"; kernel_release = "{release}";')
    trace = bytes([number] * 16)
    text = text.replace("10111213-1415-1617-1819-1a1b1c1d1e1f", str(uuid.UUID(bytes=trace)))
    clock = f'clock {{ name = monotonic; uuid = "{uuid.UUID(int=boot)}";' if boot else "clock { name = monotonic;"
    text = text.replace("clock { name = monotonic;", clock)
    text = text.replace("offset = 1700000000000000000", f"offset = {small_trace.OFFSET_NS + after_ns}")
    packets = small_trace.PACKETS
    if user_space:
        text = text.replace('domain = "kernel"', 'domain = "ust"')
        text = text[:text.index("stream { id = 0;")] + USER_SPACE
        packets = [[(1000, (0, b"\1\0\0\0")), (2000, (0, b"\2\0\0\0"))]]
    stream = b"".join(small_trace.packet(i, events) for i, events in enumerate(packets))
    small_trace.write(path, text, stream.replace(small_trace.UUID, trace))
    return path


class Reboot(ServerCase):
    def boots(self, *boots, **more):
        """A directory with a trace for each (boot, ns later)."""
        top = scratch()
        for i, (boot, after) in enumerate(boots):
            write(os.path.join(top, f"session-{i}", "kernel"), 1 + i, boot, after, **more)
        return top

    def names(self, *traces):
        return [r["host"] for r in self.json("info", *traces)]

    def test_one_host(self):
        # Boots given in any order, also with the later one first.
        for top in (self.boots((7, 0), (9, DAY)), self.boots((9, DAY), (7, 0))):
            store = scratch()
            self.assertEqual(self.names(top), ["small", "small"])
            threads = self.json("threads", "--store", store, top)
            self.assertEqual({t["host"] for t in threads}, {"small"})
            alphas = sorted(t["begin"] for t in threads if t["comm"] == "alpha")
            self.assertEqual(alphas, [FIRST, FIRST + DAY])  # the tid's lives in the two boots
            self.assertEqual(len(self.json("threads", "--host", "small", "--store", store, top)), len(threads))
            # Life selected by time, as for any reused tid.
            run = weft("critpath", "--thread", "small:10", "--store", store, top)
            self.assertEqual(run.code, 2, run)
            self.assertIn("the number was used again", run.message)
            for begin in alphas:
                answer = self.json("critpath", "--thread", "small:10", "--begin", begin, "--end", begin + 60000,
                                   "--store", store, top)
                self.assertEqual(answer["query"]["begin"], begin)
                self.assertEqual({s["host"] for s in answer["segments"]}, {"small"})
                self.assertEqual(sum(s["end"] - s["begin"] for s in answer["segments"]),
                                 answer["query"]["end"] - begin)
            # Boots have separate clocks.
            hosts = self.json("sync", "--store", store, top)["hosts"]
            self.assertEqual(sorted(h["host"] for h in hosts), ["small", "small@2"])

    def test_events_as_babeltrace(self):
        need("babeltrace2")
        top = self.boots((9, DAY), (7, 0), (8, 2 * DAY))
        text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", top], stdout=subprocess.PIPE,
                              check=True).stdout
        self.assertEqual(self.ok("events", top).out, text)
        events = [json.loads(line) for line in self.ok("events", "--format", "json", top).text.splitlines()]
        self.assertEqual({e["host"] for e in events}, {"small"})
        run = self.ok("events", "--format", "json", "--where", 'host == "small"', top)
        self.assertEqual(len(run.text.splitlines()), len(events))
        self.assertEqual(sorted(h["host"] for h in self.json("sync", "--store", scratch(), top)["hosts"]),
                         ["small", "small@2", "small@3"])

    def test_other_machines(self):
        """Hosts of one name are other machines if both ran at a time; or other sessions if the boot is the same, or
        unknown."""
        for boots in (((7, 0), (9, 30000)), ((7, 0), (7, DAY)), ((None, 0), (None, DAY)), ((7, 0), (None, DAY))):
            self.assertEqual(sorted(self.names(self.boots(*boots))), ["small", "small#2"], boots)

    def test_empty_traces(self):
        """Traces without events all begin at no time: their UUIDs number them, not the directories that they lie in."""
        found = {}
        for order in ((1, 2, 3), (2, 3, 1), (3, 2, 1)):
            top = scratch()
            for place, number in enumerate(order):
                path = write(os.path.join(top, f"session-{place}", "kernel"), number, 7, release=f"release-{number}")
                os.truncate(os.path.join(path, "ch_0"), 0)
            for trace in self.json("info", top):
                found.setdefault(trace["env"]["kernel_release"], set()).add(trace["host"])
        self.assertEqual(len(found), 3)
        self.assertEqual({len(names) for names in found.values()}, {1}, found)
        self.assertEqual(len(set.union(*found.values())), 3)

    def test_given_name(self):
        top = self.boots((7, 0), (9, DAY))
        self.assertEqual(self.names(f"box={top}/session-0", f"box={top}/session-1"), ["box", "box"])
        self.assertEqual(self.names(f"box={top}/session-0", f"crate={top}/session-1"), ["box", "crate"])

    def test_user_space_has_the_boot_of_its_clock(self):
        top = self.boots((7, 0), (9, DAY))
        write(os.path.join(top, "apps-1"), 11, 7, user_space=True)
        write(os.path.join(top, "apps-2"), 12, 9, DAY, user_space=True)
        self.assertEqual(self.names(top), ["small"] * 4)
        hosts = self.json("sync", "--store", scratch(), top)["hosts"]
        self.assertEqual(sorted(h["host"] for h in hosts), ["small", "small@2"])
        for path, after in (("apps-1", 0), ("apps-2", DAY)):
            self.assertEqual(self.names(os.path.join(top, path)), ["small"])

    def test_views(self):
        top = self.boots((7, 0), (9, DAY))
        with Server(top) as server:
            uuid_ = server.get("/experiments").json[0]["UUID"]
            while server.get(f"/experiments/{uuid_}").json["indexingStatus"] == "RUNNING":
                pass
            base = f"/experiments/{uuid_}/outputs/timeGraph/{THREAD_STATUS}"
            entries = server.model(f"{base}/tree", {})["entries"]
            self.assertEqual({e["labels"][0] for e in entries if e["parentId"] == -1}, {"small"})
            lives = [e for e in entries if e["labels"][1] == "10"]
            self.assertEqual(sorted(e["start"] // DAY for e in lives), [FIRST // DAY, FIRST // DAY + 1])


if __name__ == "__main__":
    main()
