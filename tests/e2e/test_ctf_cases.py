"""Single lines of the Common Trace Format 1.8, each in a trace of a few bytes: what the specification says of it, and
what babeltrace2 says of the same bytes where it reads them."""
import os
import re
import subprocess

import ctf_made
import weft_e2e
from ctf_made import Clocked
from weft_e2e import Case, have, new_dice, scratch

NS = 10**9
WRAP = 1 << 32
TIME = re.compile(r"\[(-?)(\d+)\.(\d{9})\] ")


def times(text):
    """ns of all lines."""
    return [(-1 if sign else 1) * (int(s) * NS + int(ns)) for sign, s, ns in TIME.findall(text)]


def babeltrace2(path):
    """Its text; None when it gives up."""
    done = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], capture_output=True)
    return None if done.returncode else done.stdout.decode("utf-8", "replace")


class Cases(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place, cls.n = scratch(), 0
        cls.other = have("babeltrace2")

    def path(self):
        type(self).n += 1
        return os.path.join(self.place, str(self.n))


class Times(Cases):
    def same(self, made, expected, other="same"):
        """other: 'same', 'gives up', or 'rounds' where babeltrace2 is right up to its rounding."""
        path = made.write(self.path())
        run = self.ok("events", path)
        self.assertEqual(times(run.text), expected, run)
        if self.other:
            theirs = babeltrace2(path)
            if other == "gives up":
                self.assertIsNone(theirs)
            elif other == "same":
                self.assertEqual(run.text, theirs)
            else:
                self.assertEqual(TIME.sub("", run.text), TIME.sub("", theirs))
                self.assertLessEqual(max(abs(a - b) for a, b in zip(times(theirs), expected)), 300)
        return run

    def test_rates(self):
        """Offset and cycles are added before they are rounded, down, once."""
        cases = ((3, 0, 1), (1000003, 100, 999999), (2400000000, 1700000000, 123456789), (32768, 1, 32767),
                 (10**10, 0, 3), (999999999, 1700000000, 999999998), (10**9, 1700000000, 5), (2 * 10**19 - 1, 5, 17),
                 (1, -7, 0), (1000003, -2, 5))
        for freq, seconds, offset in cases:
            freq = min(freq, 2**64 - 1)
            cycles = sorted({0, 1, 2, 3, 4, 5, 9, 10, 13, freq - offset - 1, freq - offset, freq - 1, freq,
                             3 * freq // 2, 10**9 + 7, 2 * 10**9, 10**15 + 1})
            cycles = [c for c in cycles if 0 <= c < 2**64 and (c + offset) // freq < 10**9]
            clock = f"freq = {freq}; offset_s = {seconds}; offset = {offset};"
            with self.subTest(clock):
                self.same(Clocked(header=64, clock=clock).packet(0, cycles[-1], *cycles),
                          [seconds * NS + (offset + c) * NS // freq for c in cycles],
                          "gives up" if freq == 2**64 - 1 else "same" if freq == NS else "rounds")

    def test_random_rates(self):
        dice = new_dice(9)
        for _ in range(20):
            freq = dice.choice((dice.randint(1, 2000), dice.randint(1, 10**10), 10**9 + dice.randint(-3, 3)))
            seconds, offset = dice.randint(-10**9, 2 * 10**9), dice.randint(0, 3 * freq)
            cycles = sorted(dice.randint(0, 100 * freq) for _ in range(60))
            with self.subTest(freq=freq, seconds=seconds, offset=offset, cycles=cycles):
                self.same(Clocked(header=64, clock=f"freq = {freq}; offset_s = {seconds}; offset = {offset};").packet(
                    0, cycles[-1], *cycles), [seconds * NS + (offset + c) * NS // freq for c in cycles], "rounds")

    def test_header_wraps(self):
        at = [10, WRAP - 1, WRAP + 5, 2 * WRAP + 4, 3 * WRAP + 3]
        self.same(Clocked().packet(10, 4 * WRAP, *at), at)
        at = [250, 255, 256, 260, 300, 512, 700]
        self.same(Clocked(header=8).packet(250, 800, *at), at)

    def test_packet_end_carries_the_clock(self):
        """Packets that tell only their end."""
        made = Clocked(begin=0).packet(0, 3 * WRAP + 20, 11, 19).packet(0, 5 * WRAP, 3 * WRAP + 50)
        self.same(made.packet(0, 5 * WRAP + 100, 5 * WRAP + 7), [11, 19, 3 * WRAP + 50, 5 * WRAP + 7])

    def test_narrow_begin_and_end(self):
        """Their low bits go on from the packet before. babeltrace2 takes them for the whole clock, and stops."""
        made = Clocked(32, 32).packet(10, 20, 11, 19).packet(WRAP - 100, WRAP + 10, WRAP - 50, WRAP + 5)
        made.packet(WRAP + 30, 3 * WRAP - 1, 2 * WRAP + 20).packet(3 * WRAP, 3 * WRAP + 5, 3 * WRAP + 1)
        self.same(made, [11, 19, WRAP - 50, WRAP + 5, 2 * WRAP + 20, 3 * WRAP + 1], "gives up")
        made = Clocked(32, 0).packet(10, 0, 11, 19, WRAP + 3, 2 * WRAP + 2).packet(2 * WRAP + 5, 0, 2 * WRAP + 6)
        self.same(made, [11, 19, WRAP + 3, 2 * WRAP + 2, 2 * WRAP + 6], "gives up")

    def test_narrow_times_by_number_and_window(self):
        made = Clocked(32, 32)
        at = []
        for i in range(40):
            begin = i * (WRAP // 3)
            at += range(begin, begin + 3000, 2)
            made.packet(begin, begin + 3000, *range(begin, begin + 3000, 2))
        path = made.write(self.path())
        for k in (0, 1499, 1500, 4500, 20000, 59990):
            run = self.ok("events", path, "--begin", at[k], "--end", at[k + 5])
            self.assertEqual(times(run.text), at[k:k + 6], k)

    def test_fields_carry_the_clock(self):
        """Fields behind the header set the clock from which the next header goes on; the event keeps its own time."""
        at = [11, 3 * WRAP + 19, 5 * WRAP + 1]
        again = [3 * WRAP + 11, 4 * WRAP + 500, 5 * WRAP + 10]
        for begin, end in ((64, 64), (0, 0)):
            self.same(Clocked(begin, end, payload=64).packet(10, 9 * WRAP, *zip(at, again)), at)
            self.same(Clocked(begin, end, context=64).packet(10, 9 * WRAP, *zip(at, again)), at)
            self.same(Clocked(begin, end, header=16, context=32, payload=64).packet(10, 9 * WRAP, *zip(at, again)),
                      [*at[:2], 4 * WRAP + (1 << 16) + 1])

    def test_clock_in_payload_only(self):
        """An event has the time to which the ones before it have brought the clock."""
        text = ("clock { name = c; freq = 1000000000; };\nstream { };\nevent { name = e; id = 0; fields := struct { "
                f"{ctf_made.integer(8)} x; {ctf_made.integer(32, True)} t[2]; }}; }};\n")
        data = b"".join(ctf_made.word(i, 8) + ctf_made.word(a, 32) + ctf_made.word(b, 32)
                        for i, (a, b) in enumerate(((5, 9), (11, 3), (4, 8))))
        path = ctf_made.write(self.path(), text, data)
        run = self.ok("events", path)
        self.assertEqual(times(run.text), [0, 9, WRAP + 3])
        if self.other:
            self.assertEqual(run.text, babeltrace2(path))

    def test_time_runs_back(self):
        """The order is that of recording, and it is told how often; babeltrace2 stops."""
        at = [5, 3, 9, 1, 2, 10]
        run = self.same(Clocked(header=64).packet(1, 10, *at), at, "gives up")
        self.assertRegex(run.message, r"s0: packet at byte 0: 2 events are earlier than the event before them")
        run = self.same(Clocked(header=64).packet(1, 10, 5, 10).packet(11, 20, 7, 20), [5, 10, 7, 20], "gives up")
        self.assertRegex(run.message, r"s0: packet at byte 38: 1 event is earlier than the event before it")
        self.assertEqual(self.same(Clocked(header=64).packet(1, 10, 5, 10).packet(10, 20, 10, 20),
                                   [5, 10, 10, 20]).message, "")

    def test_times_beyond_64_bits(self):
        def made(clock, *cycles):
            return Clocked(header=64, clock=clock).packet(0, cycles[-1], *cycles)

        most = 2**63 - 3
        run = self.same(made("freq = 1000000000; offset_s = 9223372036; offset = 854775000;",
                             0, 805, 806, 808, 10**18, 10**19), [most - 805, most, most, most, most, most], "gives up")
        self.assertRegex(run.message, r"4 events have times that 64 bits of nanoseconds cannot hold")
        run = self.same(made("freq = 1; offset_s = 5;", 0, 9223372031, 9223372032, 2**64 - 1),
                        [5 * NS, 9223372036 * NS, most, most], "gives up")
        self.assertRegex(run.message, r"2 events have times that 64 bits")
        run = self.same(made("freq = 1000000000; offset_s = -9300000000;", 0, 10**18),
                        [-2**63 + 2, -8300000000 * NS], "gives up")
        self.assertRegex(run.message, r"1 event has a time that 64 bits")


if __name__ == "__main__":
    weft_e2e.main()
