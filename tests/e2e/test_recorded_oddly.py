# SPDX-License-Identifier: MIT
"""Packets that are in a directory twice, and packets out of order: each counts once, with a note."""
import json
import os
import shutil
import struct

import small_trace
from weft_e2e import Case, main, scratch, weft

PACKET_SIZE_AT = 48  # offset in a packet's head, as small_trace.py writes it


class Oddly(Case):
    def setUp(self):
        self.trace = os.path.join(scratch(), "trace")
        small_trace.write(self.trace)
        self.stream = os.path.join(self.trace, "ch_0")
        self.whole = self.ok("events", self.trace)
        self.assertEqual(self.whole.message, "")

    def packets(self):
        with open(self.stream, "rb") as f:
            data = f.read()
        at, packets = 0, []
        while at < len(data):
            size = struct.unpack_from("<Q", data, at + PACKET_SIZE_AT)[0] // 8
            packets.append(data[at:at + size])
            at += size
        return packets

    def write(self, packets):
        with open(self.stream, "wb") as f:
            f.write(b"".join(packets))

    def problems(self, code):
        run = weft("info", self.trace, "--format", "json")
        self.assertEqual(run.code, code, run)
        (trace,) = json.loads(run.text)
        return trace

    def check_twice(self, count):
        run = self.ok("events", self.trace)
        self.assertEqual(run.text, self.whole.text)
        (note,) = run.message.splitlines()
        self.assertIn("twice; the copy is skipped", note)
        trace = self.problems(0)
        self.assertEqual(trace["events"], len(self.whole.text.splitlines()))
        (problem,) = trace["problems"]
        self.assertEqual(problem["count"], count)
        self.assertIn("twice; the copy is skipped", problem["text"])

    def test_copy_of_a_file(self):
        shutil.copy(self.stream, self.stream + ".bak")
        self.check_twice(len(self.packets()))

    def without_cpu(self):
        """Nothing but the names of their files tells streams apart."""
        path = os.path.join(self.trace, "metadata")
        with open(path, encoding="ascii") as f:
            text = f.read()
        self.assertIn("cpu_id", text)
        with open(path, "w", encoding="ascii") as f:
            f.write(text.replace("cpu_id", "core"))
        self.whole = self.ok("events", self.trace)

    def test_copy_of_a_file_without_cpu(self):
        self.without_cpu()
        shutil.copy(self.stream, self.stream + ".bak")
        self.check_twice(len(self.packets()))

    def test_copy_from_before_without_cpu(self):
        """The stream has grown since it was copied."""
        self.without_cpu()
        with open(self.stream + ".bak", "wb") as f:
            f.write(b"".join(self.packets()[:2]))
        self.check_twice(2)

    def test_two_streams_without_cpu(self):
        """They have the same packets but for a byte."""
        self.without_cpu()
        packets = self.packets()
        with open(self.stream + ".bak", "wb") as f:
            f.write(b"".join(packets[:-1]) + packets[-1][:-1] + bytes([packets[-1][-1] ^ 1]))
        run = self.ok("events", self.trace)
        self.assertEqual(len(run.text.splitlines()), 2 * len(self.whole.text.splitlines()))

    def test_packet_twice_in_a_file(self):
        packets = self.packets()
        self.write(packets[:2] + packets[1:])
        self.check_twice(1)

    def test_file_appended_to_itself(self):
        packets = self.packets()
        self.write(packets + packets)
        self.check_twice(len(packets))

    def test_time_runs_back_between_packets(self):
        packets = self.packets()
        self.write([packets[1], packets[0]] + packets[2:])
        step = small_trace.PACKETS[1][0][0] - small_trace.PACKETS[0][0][0]
        words = r"/ch_0: time runs back 1 time between packets of the stream, by %.2f µs, first at byte %d;" % (
            step / 1000, len(packets[1]))
        run = self.partly("events", self.trace)
        self.assertEqual(run.text, self.whole.text)
        self.assertRegex(run.message, words)
        (problem,) = self.problems(3)["problems"]
        self.assertRegex(problem["text"], words)
        for verb in ("threads", "index"):
            self.assertRegex(self.partly(verb, self.trace, "--store", scratch()).message, words)


if __name__ == "__main__":
    main()
