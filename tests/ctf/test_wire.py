# SPDX-License-Identifier: MIT
"""Live sessions of LTTng 2.16 in both formats, recorded on the wire between relay and viewer: metadata in increments,
packets and beacons are fed in the order in which they came (feed_wire.c). What comes out is what the viewer,
babeltrace2 2.1, printed."""
import base64
import collections
import json
import os
import re
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from needed import need, new_dice  # noqa: E402

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
DATA = os.path.abspath(os.environ.get("WEFT_DATA") or os.path.join(ROOT, "..", "shared", "data"))
FEED = os.path.abspath(sys.argv.pop(1) if len(sys.argv) > 1 else os.path.join(ROOT, "build/tests/ctf/feed_wire"))
VIEWERS = 5344             # port
STREAM = 8 + 8 + 4 + 4096 + 255
CONNECT, LIST, ATTACH, INDEX, PACKET, METADATA, NEW_STREAMS, CREATE, DETACH = range(1, 10)
OK, HANG_UP, INACTIVE = 1, 3, 5  # status of an index
# Sessions that the viewer left early ("late message"): it printed a part.
PART = ("perpid-ctf-1.8",)
# Overlapping labels are shown as babeltrace2 2.0 does for CTF 1.8.
LABELS = re.compile(rb"\( .*? : container = (-?\d+) \)")
SESSIONS = ("early", "increments", "late", "clear", "stopstart", "rotate", "perpid")


def unpacked(*where):
    path = need(os.path.join(DATA, "traces", "live-ctf2", *where))
    return subprocess.run(["zstd", "-dqc", path], check=True, stdout=subprocess.PIPE).stdout


class Talk:
    """One viewer's connection: what was asked, and what the relay answered, as records for feed_wire."""

    def __init__(self, asked, answered):
        self.asked, self.answered, self.at, self.minor, self.attached = asked, answered, 0, 0, False
        self.trace_of, self.is_metadata, self.traces = {}, set(), {}
        self.metadata, self.records, self.parts = collections.defaultdict(bytes), [], {}

    def take(self, n):
        self.at += n
        return self.answered[self.at - n:self.at]

    def numbers(self, form):
        return struct.unpack(form, self.take(struct.calcsize(form)))

    def record(self, operation, stream, a=0, b=0, data=b""):
        trace = self.traces.setdefault(self.trace_of[stream], len(self.traces))
        self.records.append((operation, trace, stream, a, b, data))

    def streams(self, n):
        for _ in range(n):
            stream, trace, is_metadata = struct.unpack(">QQI", self.take(STREAM)[:20])
            self.trace_of[stream] = trace
            if is_metadata:
                self.is_metadata.add(stream)

    def sessions(self, n):
        for _ in range(n):
            if self.minor >= 15:
                self.take(20)
                host, name, _ = self.numbers(">III")
                self.take(host + name)
            else:
                self.take(339)

    def index(self, stream):
        entry = self.numbers(">7Q2I")
        if entry[7] == OK:
            self.parts[stream] = [entry[0], entry[1] // 8, b""]
        elif entry[7] == INACTIVE:
            self.record("Q", stream, entry[6], entry[4])
        elif entry[7] == HANG_UP:
            self.record("H", stream)

    def packet(self, stream, offset):
        status, n, _ = self.numbers(">III")
        begin, size, have = self.parts.get(stream, (None, 0, b""))
        if status != OK:
            return
        data = self.take(n)
        if begin is None or offset != begin + len(have):
            return  # it is asked for twice, for its head and for its events
        self.parts[stream][2] = have = have + data
        if len(have) == size:
            self.record("P", stream, data=have)

    def read(self):
        at = 0
        while at + 16 <= len(self.asked) and self.at < len(self.answered):
            size, command, _ = struct.unpack(">QII", self.asked[at:at + 16])
            body = self.asked[at + 16:at + 16 + size]
            at += 16 + size
            if command == CONNECT:
                _, _, minor, _ = self.numbers(">QIII")
                self.minor = min(minor, struct.unpack(">QII", body[:16])[2])
            elif command == LIST:
                self.sessions(*self.numbers(">I"))
            elif command in (ATTACH, NEW_STREAMS):
                status, n = self.numbers(">II")
                self.streams(n)
                self.attached |= command == ATTACH and status == OK
            elif command == INDEX:
                self.index(*struct.unpack(">Q", body[:8]))
            elif command == PACKET:
                self.packet(*struct.unpack(">QQ", body[:16]))
            elif command == METADATA:
                n, status = self.numbers(">QI")
                if status == OK:
                    self.record("M", *struct.unpack(">Q", body[:8]), data=self.take(n))
            elif command in (CREATE, DETACH):
                self.numbers(">I")
            else:
                raise AssertionError(f"command {command}")
        return self


def viewer(session):
    """The connection that attached and asked most."""
    connections, ports = collections.defaultdict(lambda: [b"", b""]), {}
    for line in unpacked(session, "wire.jsonl.zst").splitlines():
        chunk = json.loads(line)
        ports[chunk["conn"]] = chunk["port"]
        if "b64" in chunk:
            connections[chunk["conn"]][chunk["dir"] == "s>c"] += base64.b64decode(chunk["b64"])
    talks = [Talk(*sides).read() for number, sides in sorted(connections.items()) if ports[number] == VIEWERS]
    return max((t for t in talks if t.attached), key=lambda t: len(t.asked))


class Wire(unittest.TestCase):
    def feed(self, records):
        sent = b"".join(struct.pack("<cIIQQI", o.encode(), trace, stream, a, b, len(data)) + data
                        for o, trace, stream, a, b, data in records)
        run = subprocess.run([FEED], input=sent, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stderr, b"")
        lines = collections.defaultdict(list)
        for line in run.stdout.split(b"\n")[:-1]:
            trace, text = line.split(b"\t", 1)
            lines[trace].append(text)
        return lines

    def test_as_the_viewer(self):
        for name in SESSIONS:
            for form in "1.8", "2":
                session = f"{name}-ctf-{form}"
                with self.subTest(session):
                    lines = self.feed(viewer(session).records)
                    printed = unpacked(session, "view1.txt.zst").split(b"\n")[:-1]
                    if form == "1.8":
                        printed = [LABELS.sub(rb"\1", line) for line in printed]
                        lines = {trace: [LABELS.sub(rb"\1", line) for line in of] for trace, of in lines.items()}
                    got = sorted(sum(lines.values(), []))
                    if session in PART:
                        self.assertLess(set(printed), set(got))
                    elif len(lines) == 1:
                        self.assertEqual(list(lines.values())[0], printed)
                    else:
                        self.assertEqual(got, sorted(printed))

    def test_metadata_in_any_portions(self):
        """Fragments are cut anywhere."""
        dice = new_dice(41)
        for name in "increments", "perpid":
            records = viewer(name + "-ctf-2").records
            expected, cut = self.feed(records), []
            for record in records:
                data = record[5]
                while record[0] == "M" and len(data) > 1 and dice.random() < 0.9:
                    n = dice.randint(1, len(data) - 1)
                    cut.append(record[:5] + (data[:n],))
                    data = data[n:]
                cut.append(record[:5] + (data,))
            self.assertGreater(len(cut), len(records) + 2)
            self.assertEqual(self.feed(cut), expected)


if __name__ == "__main__":
    need(FEED)
    unittest.main(verbosity=2)
