# SPDX-License-Identifier: MIT
"""Contexts in W3C's, Jaeger's and Zipkin's notation: tables made from the specifications, each row put into the
environment of `weft-span context`; and traceparents that are cut, doubled and filled with anything."""
import re

from span_collector import SPAN, environment, span
from weft_e2e import Case, main, need, new_dice

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
GOOD = f"00-{TRACE}-{PARENT}-01"

# W3C Trace Context, level 2, sections 3.2.2 and 4.3: (traceparent, what is passed on or None: a new trace begins).
TRACEPARENTS = [
    (GOOD, GOOD),
    (f"00-{TRACE}-{PARENT}-00", f"00-{TRACE}-{PARENT}-00"),
    (f"00-{TRACE}-{PARENT}-02", f"00-{TRACE}-{PARENT}-02"),  # the random flag is propagated
    (f"00-{TRACE}-{PARENT}-03", f"00-{TRACE}-{PARENT}-03"),
    (f"00-{TRACE}-{PARENT}-ff", f"00-{TRACE}-{PARENT}-03"),  # unknown flags are zero
    (f"00-{TRACE}-{PARENT}-08", f"00-{TRACE}-{PARENT}-00"),
    ("00-12345678901234567890123456789012-1234567890123456-01",) * 2,
    ("00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-01",) * 2,
    (f" {GOOD}\t", GOOD),  # blanks around a header's value
    # a later version: the first four fields, whatever comes behind them
    (f"01-{TRACE}-{PARENT}-01", GOOD),
    (f"cc-{TRACE}-{PARENT}-01", GOOD),
    (f"cc-{TRACE}-{PARENT}-01-", GOOD),
    (f"cc-{TRACE}-{PARENT}-01-what-the-future-will-be-like", GOOD),
    (f"cc-{TRACE}-{PARENT}-01.what-the-future-will-be-like", None),
    (f"cc-{TRACE}-{PARENT}-011", None),
    # version 00 has nothing behind its flags
    (f"{GOOD}-", None), (f"{GOOD}-what", None), (f"{GOOD}.what", None), (f"{GOOD}1", None),
    # the version
    (f"ff-{TRACE}-{PARENT}-01", None), (f".0-{TRACE}-{PARENT}-01", None), (f"0.-{TRACE}-{PARENT}-01", None),
    (f"0-{TRACE}-{PARENT}-01", None), (f"000-{TRACE}-{PARENT}-01", None), (f"{TRACE}-{PARENT}-01", None),
    (f"FF-{TRACE}-{PARENT}-01", None), (f"A0-{TRACE}-{PARENT}-01", None),
    # the trace's id
    (f"00-{'0' * 32}-{PARENT}-01", None), (f"00-{TRACE[1:]}-{PARENT}-01", None), (f"00-{TRACE}0-{PARENT}-01", None),
    (f"00-.{TRACE[1:]}-{PARENT}-01", None), (f"00-{TRACE[:-1]}.-{PARENT}-01", None),
    (f"00-{TRACE.upper()}-{PARENT}-01", None),
    # the parent's id
    (f"00-{TRACE}-{'0' * 16}-01", None), (f"00-{TRACE}-{PARENT[1:]}-01", None), (f"00-{TRACE}-{PARENT}1-01", None),
    (f"00-{TRACE}-.{PARENT[1:]}-01", None), (f"00-{TRACE}-{PARENT.upper()}-01", None),
    # the flags
    (f"00-{TRACE}-{PARENT}-1", None), (f"00-{TRACE}-{PARENT}-001", None), (f"00-{TRACE}-{PARENT}-.0", None),
    (f"00-{TRACE}-{PARENT}-0.", None), (f"00-{TRACE}-{PARENT}-", None), (f"00-{TRACE}-{PARENT}", None),
    (f"00-{TRACE}-{PARENT}-0A", None),
    # separators
    (f"00_{TRACE}-{PARENT}-01", None), (f"00-{TRACE}_{PARENT}-01", None), (f"00-{TRACE}-{PARENT}_01", None),
    (f"00 {TRACE} {PARENT} 01", None), ("-", None), ("None", None), (" ", None), (f"{GOOD},{GOOD}", None),
]
# Jaeger, "Propagation format": zeros in front may be left out, a parent is 0 or missing, debug means sampled too.
UBERS = [
    (f"{TRACE}:{PARENT}:0:01", GOOD), (f"{TRACE}:{PARENT}:0:1", GOOD), (f"{TRACE}:{PARENT}:{PARENT}:3", GOOD),
    (f"{TRACE}:{PARENT}::1", GOOD), (f"{TRACE}:{PARENT}:0:0", f"00-{TRACE}-{PARENT}-00"),
    (f"{TRACE.upper()}:{PARENT}:0:01", GOOD), (f"{TRACE}:{PARENT}:0:2", GOOD),
    ("7d7e22c6f96e391:b3185835b0e579c7:0:1", "00-000000000000000007d7e22c6f96e391-b3185835b0e579c7-01"),
    (f"{TRACE}:1:0:1", f"00-{TRACE}-{'1'.zfill(16)}-01"),
    ("None", None), (f"0:{PARENT}:0:1", None), (f"{TRACE}:0:0:1", None), (f"{TRACE}0:{PARENT}:0:1", None),
    (f"{TRACE}:{PARENT}0:0:1", None), (f"{TRACE}:{PARENT}:0:001", None), (f"{TRACE}:{PARENT}:0:", None),
    (f"{TRACE}:{PARENT}:0", None), (f"{TRACE}:{PARENT}:0:1:1", None), (f"{TRACE}:{PARENT}:x:1", None), (":::", None),
]
# Zipkin, "b3-propagation", the single header.
B3S = [
    (f"{TRACE}-{PARENT}-1", GOOD), (f"{TRACE}-{PARENT}-d", GOOD), (f"{TRACE}-{PARENT}", GOOD),
    (f"{TRACE}-{PARENT}-0", f"00-{TRACE}-{PARENT}-00"), (f"{TRACE}-{PARENT}-1-{PARENT[::-1]}", GOOD),
    (f"{TRACE[16:]}-{PARENT}-1", f"00-{'0' * 16}{TRACE[16:]}-{PARENT}-01"),
    (f"{TRACE[1:]}-{PARENT}-1", None), (f"{TRACE}-{PARENT[1:]}-1", None), (f"{TRACE}-{PARENT}-2", None),
    (f"{'0' * 32}-{PARENT}-1", None), (f"{TRACE}-{PARENT}-1-abc", None), (f"{TRACE}-{PARENT}-1-{PARENT}0", None),
    ("true", None), ("-", None),
]


class Contexts(Case):
    def setUp(self):
        need(SPAN)

    def context(self, *args, **variables):
        run = span("context", *args, env=environment(**variables))
        self.assertEqual(run.returncode, 0, run)
        return run.stdout.decode().strip(), run.stderr.decode()

    def check(self, variable, table):
        for given, expected in table:
            with self.subTest(given):
                got, notes = self.context("--format", "traceparent", **{variable: given})
                if expected:
                    self.assertEqual((got, notes), (expected, ""))
                else:
                    self.assertRegex(got, "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$")
                    self.assertNotIn(TRACE, got)
                    self.assertIn(f"{variable}: it is malformed, a new trace begins", notes)

    def test_w3c(self):
        self.check("TRACEPARENT", TRACEPARENTS)

    def test_jaeger(self):
        self.check("TRACE_ID", UBERS)
        self.check("UBER_TRACE_ID", UBERS[:1] + UBERS[-1:])

    def test_zipkin(self):
        self.check("B3", B3S)
        parts = {"X_B3_TRACEID": TRACE, "X_B3_SPANID": PARENT}
        self.assertEqual(self.context("--format=traceparent", **parts)[0], GOOD)
        self.assertEqual(self.context("--format=traceparent", X_B3_SAMPLED="0", **parts)[0], GOOD[:-1] + "0")
        self.assertRegex(self.context("--format=traceparent", B3="0")[0], "-00$")

    def test_the_first_good_one_counts(self):
        other = f"{'1' * 32}:{'2' * 16}:0:01"
        self.assertEqual(self.context("--format=traceparent", TRACEPARENT=GOOD, TRACE_ID=other), (GOOD, ""))
        got, notes = self.context("--format=traceparent", TRACEPARENT=GOOD + "x", TRACE_ID=other)
        self.assertEqual(got, f"00-{'1' * 32}-{'2' * 16}-01")
        self.assertIn("TRACEPARENT", notes)

    def test_every_notation(self):
        self.assertEqual(self.context(GOOD)[0], f"export TRACEPARENT={GOOD} UBER_TRACE_ID={TRACE}:{PARENT}:0:01 "
                                                f"TRACE_ID={TRACE}:{PARENT}:0:01 B3={TRACE}-{PARENT}-1")
        self.assertEqual(self.context("nonsense", "-f", "traceparent", TRACEPARENT=GOOD),
                         (GOOD, 'weft-span: note: "nonsense" is no id of a span\n'))
        for given in (GOOD, f"{TRACE}:{PARENT}:0:1", f"{TRACE}-{PARENT}-1"):
            self.assertEqual([self.context(given, "-f", f)[0] for f in ("traceparent", "uber", "b3")],
                             [GOOD, f"{TRACE}:{PARENT}:0:01", f"{TRACE}-{PARENT}-1"])

    def test_anything(self):
        """Random changes of a valid context keep its ids exactly where the grammar says so."""
        dice, kept = new_dice(4), 0
        grammar = re.compile(r"[ \t]*(?!ff)([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*|[ \t]*)")
        for _ in range(150):
            value = list(GOOD)
            for _ in range(dice.randrange(1, 3)):
                at = dice.randrange(len(value))
                value[at:at + dice.randrange(3)] = dice.choice(["", "-", "0", "f", "G", "\x7f", "é", "00", "a", GOOD])
            value = "".join(value)
            got, _ = self.context("-f", "traceparent", "-q", TRACEPARENT=value)
            good = grammar.fullmatch(value)
            if good and (good[1] == "00" and good[5].strip() or not int(good[2], 16) or not int(good[3], 16)):
                good = None
            if good:
                kept += 1
                self.assertEqual(got, f"00-{good[2]}-{good[3]}-{int(good[4], 16) & 3:02x}", value)
            else:
                self.assertRegex(got, "^00-[0-9a-f]{32}-[0-9a-f]{16}-01$")
                self.assertNotIn(got[3:35], value)
        self.assertTrue(10 < kept < 140, kept)


if __name__ == "__main__":
    main()
