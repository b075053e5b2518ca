# SPDX-License-Identifier: MIT
"""Kernel and user-space traces of one boot, whose clock offsets were measured separately: one clock, one offset, and a
note. The truth: both traces have events at the same cycles."""
import json
import os
from collections import Counter

import small_trace
import test_worlds
from weft_e2e import Case, main, scratch, weft

BOOT = "aaaaaaaa-0000-4000-8000-000000000001"
OTHER_BOOT = "aaaaaaaa-0000-4000-8000-000000000002"
APART = 1500  # ns


def write(path, domain, offset_ns, boot=BOOT, number=0x1f):
    text = small_trace.METADATA
    uuid = small_trace.UUID[:15] + bytes([number])
    stream = b"".join(small_trace.packet(i, events) for i, events in enumerate(small_trace.PACKETS))
    for old, new in (('domain = "kernel"', 'domain = "%s"' % domain),
                     ("lttng-modules", "lttng-modules" if domain == "kernel" else "lttng-ust"),
                     ("clock { name = monotonic;", 'clock { name = monotonic; uuid = "%s";' % boot),
                     ("1c1d1e1f", "1c1d1e%02x" % number),
                     ("offset = %d" % small_trace.OFFSET_NS, "offset = %d" % (small_trace.OFFSET_NS + offset_ns))):
        assert old in text, old
        text = text.replace(old, new)
    small_trace.write(path, text, stream.replace(small_trace.UUID, uuid))


def time_of(line):
    return line.split("]")[0]


class Offsets(Case):
    def session(self, **ust):
        top = scratch()
        write(os.path.join(top, "kernel"), "kernel", 0)
        write(os.path.join(top, "ust"), "ust", APART, **ust)
        return top

    def times(self, top):
        run = self.ok("events", top)
        return Counter(time_of(line) for line in run.text.splitlines()), run.message

    def test_one_offset(self):
        top = self.session()
        alone = Counter(time_of(line) for line in self.ok("events", os.path.join(top, "kernel")).text.splitlines())
        together, message = self.times(top)
        self.assertEqual(together, alone + alone)
        (note,) = message.splitlines()
        self.assertRegex(note, r"/ust: its clock is that of .*/kernel, but the offset was measured apart; "
                         r"its times are moved by -1\.500 µs$")
        begin, end = sorted(alone)[3][1:], sorted(alone)[6][1:]
        lines = self.ok("events", top, "--begin", begin, "--end", end).text.splitlines()
        self.assertEqual(Counter(map(time_of, lines)), Counter({t: 2 for t in sorted(alone)[3:7]}))

    def test_each_alone(self):
        """Alone, each trace has its times as recorded."""
        top = self.session()
        kernel, ust = (self.ok("events", os.path.join(top, d)).text.splitlines() for d in ("kernel", "ust"))
        for a, b in zip(kernel, ust):
            self.assertEqual(int(time_of(b)[1:].replace(".", "")) - int(time_of(a)[1:].replace(".", "")), APART)

    def test_info(self):
        traces = {t["domain"]: t for t in json.loads(self.ok("info", self.session(), "--format", "json").text)}
        for what in ("begin", "end", "clock"):
            self.assertEqual(traces["kernel"][what], traces["ust"][what])

    def test_other_boot(self):
        """Clocks of another boot are separate."""
        top = self.session(boot=OTHER_BOOT)
        times, message = self.times(top)
        self.assertEqual(set(times.values()), {1})
        self.assertEqual(message, "")

    def test_same_offset(self):
        top = scratch()
        write(os.path.join(top, "kernel"), "kernel", 0)
        write(os.path.join(top, "ust"), "ust", 0)
        times, message = self.times(top)
        self.assertEqual(set(times.values()), {2})
        self.assertEqual(message, "")

    def test_many(self):
        """Notes about several traces of a host are one."""
        top = scratch()
        write(os.path.join(top, "kernel"), "kernel", 0)
        for i in range(3):
            write(os.path.join(top, "ust", "pid", str(i)), "ust", 10**(i + 1), number=i)
        times, message = self.times(top)
        self.assertEqual(set(times.values()), {4})
        (note,) = message.splitlines()
        self.assertRegex(note, "the clock of 3 traces is that of .*; their times are moved by up to 1.000 µs$")

    def test_stores(self):
        """Stores that were made of the user-space trace alone have other times than those of the whole session."""
        top = self.session()
        for path, done in ((top, ["built", "built"]), (top, ["up to date", "up to date"]),
                           (os.path.join(top, "ust"), ["built"]), (top, ["up to date", "built"])):
            rows = json.loads(self.ok("index", path, "--format", "json").text)
            self.assertEqual([row["done"] for row in sorted(rows, key=lambda r: r["domain"])], done, path)
        self.assertNotIn("stale", self.ok("verify", top).text)

    def test_stores_of_each(self):
        """Stores of a trace opened alone in its own directory: neither opening rebuilds the stores of the other one."""
        top, store = self.session(), scratch()
        alone = [os.path.join(top, "ust"), "--store", store]
        for args, done in (([top], ["built", "built"]), (alone, ["built"]), ([top], ["up to date", "up to date"]),
                           (alone, ["up to date"])):
            rows = json.loads(self.ok("index", *args, "--format", "json").text)
            self.assertEqual([row["done"] for row in rows], done, args)

    def test_identity_in_ctf2(self):
        """Namespace, name and uid make clocks one, whatever the uid looks like, if their origins do not differ."""
        uid = '"uid":"%s"' % BOOT
        for kernel, ust, is_one in (
                (None, uid, True), (uid, uid, True), ('"uid":"rack.28"', '"uid":"rack.28"', True),
                ('"uid":"rack.28"', '"uid":"rack.29"', False), ('"namespace":"x",' + uid, uid, False),
                ('"namespace":"x",' + uid, '"namespace":"x",' + uid, True),
                (uid + ',"origin":{"name":"o","uid":"1"}', uid + ',"origin":{"name":"o","uid":"2"}', False),
                (uid + ',"origin":{"name":"o","uid":"1"}', uid + ',"origin":{"name":"o","uid":"1"}', True)):
            with self.subTest(kernel=kernel, ust=ust):
                top = self.session()
                for domain, clock in (("kernel", kernel), ("ust", ust)):
                    if clock:
                        self.to_ctf2(os.path.join(top, domain), uid, clock)
                _, message = self.times(top)
                self.assertEqual("its times are moved by -1.500 µs" in message, is_one, message)

    def test_hosts_with_one_clock(self):
        """Hosts that exchanged no message are related by their clock, if it is one."""
        uid = '"uid":"%s"' % BOOT
        for clocks, is_one in (((uid, uid), True), (('"uid":"rack.28"',) * 2, True),
                               (('"uid":"rack.28"', '"uid":"rack.29"'), False),
                               ((uid + ',"origin":{"name":"o","uid":"1"}', uid), False)):
            with self.subTest(clocks):
                top = scratch()
                for number, clock in enumerate(clocks):
                    path = os.path.join(top, "ab"[number])
                    write(path, "kernel", 0, number=number)
                    self.to_ctf2(path, uid, clock)
                run = weft("sync", *(f"{name}={top}/{name}" for name in "ab"), "--format", "json")
                pieces = [len(h["pieces"]) for h in json.loads(run.text)["hosts"]] if run.code == 0 else []
                self.assertEqual(pieces == [1, 1], is_one, run)

    @staticmethod
    def to_ctf2(trace, uid, clock):
        test_worlds.to_ctf2(trace)
        with open(os.path.join(trace, "metadata"), "r+", encoding="utf-8") as f:
            text = f.read()
            assert uid in text
            if "origin" in clock:
                text = text.replace('"origin":"unix-epoch",', "")
            f.seek(0)
            f.write(text.replace(uid, clock))
            f.truncate()


if __name__ == "__main__":
    main()
