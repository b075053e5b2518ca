# SPDX-License-Identifier: MIT
"""Single rules of the Common Trace Format 1.8, each in a trace of a few bytes: expected results of the specification,
and of babeltrace2 for the same bytes if it reads them."""
import json
import os
import re
import subprocess

import ctf_made
import weft_e2e
from ctf_made import Clocked
from weft_e2e import Case, have, new_dice, scratch, weft

NS = 10**9
WRAP = 1 << 32
TIME = re.compile(r"\[(-?)(\d+)\.(\d{9})\] ")


def times(text):
    """ns of all lines."""
    return [(-1 if sign else 1) * (int(s) * NS + int(ns)) for sign, s, ns in TIME.findall(text)]


def babeltrace2(path):
    """Returns its text; None if it gives up."""
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
    def same(self, made, expected, other="same", code=0):
        """other: 'same', 'gives up', or 'rounds' if babeltrace2 is right up to its rounding."""
        path = made.write(self.path())
        run = weft("events", path)
        self.assertEqual(run.code, code, run)
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
        """Packets with an end time only."""
        made = Clocked(begin=0).packet(0, 3 * WRAP + 20, 11, 19).packet(0, 5 * WRAP, 3 * WRAP + 50)
        self.same(made.packet(0, 5 * WRAP + 100, 5 * WRAP + 7), [11, 19, 3 * WRAP + 50, 5 * WRAP + 7])

    def test_narrow_begin_and_end(self):
        """Narrow begin and end times: their low bits continue those of the packet before. babeltrace2 takes them for
        the whole clock, and stops."""
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
        """Fields after the header set the clock from which the next header continues; the event keeps its own time."""
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
        """Time that steps back: the order is that of recording, and the number of steps is reported; babeltrace2
        stops."""
        at = [5, 3, 9, 1, 2, 10]
        run = self.same(Clocked(header=64).packet(1, 10, *at), at, "gives up", 3)
        self.assertRegex(run.message, r"s0: packet at byte 0: 2 events are earlier than the event before them")
        run = self.same(Clocked(header=64).packet(1, 10, 5, 10).packet(11, 20, 7, 20), [5, 10, 7, 20], "gives up", 3)
        self.assertRegex(run.message, r"s0: packet at byte 38: 1 event is earlier than the event before it")
        self.assertEqual(self.same(Clocked(header=64).packet(1, 10, 5, 10).packet(10, 20, 10, 20),
                                   [5, 10, 10, 20]).message, "")

    def test_times_beyond_64_bits(self):
        def made(clock, *cycles):
            return Clocked(header=64, clock=clock).packet(0, cycles[-1], *cycles)

        most = 2**63 - 3
        run = self.same(made("freq = 1000000000; offset_s = 9223372036; offset = 854775000;",
                             0, 805, 806, 808, 10**18, 10**19),
                        [most - 805, most, most, most, most, most], "gives up", 3)
        self.assertRegex(run.message, r"4 events have times that 64 bits of nanoseconds cannot hold")
        run = self.same(made("freq = 1; offset_s = 5;", 0, 9223372031, 9223372032, 2**64 - 1),
                        [5 * NS, 9223372036 * NS, most, most], "gives up", 3)
        self.assertRegex(run.message, r"2 events have times that 64 bits")
        run = self.same(made("freq = 1000000000; offset_s = -9300000000;", 0, 10**18),
                        [-2**63 + 2, -8300000000 * NS], "gives up", 3)
        self.assertRegex(run.message, r"1 event has a time that 64 bits")


U8 = "integer { size = 8; align = 8; }"
ALIAS = f"typealias {U8} := u8;\n"
SAME, REFUSES, DIFFERS = "same", "refuses", "differs"

# Cases: title, declarations at the top, fields of the event, its bytes, the line after the event's name, result of
# babeltrace2.
READ = [
    # Lengths and tags: the closest field around the declaration of the type, not around its use (4.2.2 of the
    # specification). Where none is around the declaration: around the use.
    ("length around its typedef", ALIAS, "u8 n; typedef u8 seq[n]; struct { u8 n; seq x; } in; seq y;", b"\2\1abcd",
     "{ n = 2, in = { n = 1, x = [ [0] = 97, [1] = 98 ] }, y = [ [0] = 99, [1] = 100 ] }", DIFFERS),
    ("length of the same struct", ALIAS, "u8 n; typedef u8 seq[n]; seq x; seq y;", b"\2abcd",
     "{ n = 2, x = [ [0] = 97, [1] = 98 ], y = [ [0] = 99, [1] = 100 ] }", SAME),
    ("length of a named struct", ALIAS, "u8 n; struct s { u8 x[n]; }; struct { u8 n; struct s q; } in;", b"\2\1ab",
     "{ n = 2, in = { n = 1, q = { x = [ [0] = 97, [1] = 98 ] } } }", REFUSES),
    ("length of a struct by typedef", ALIAS, "u8 n; typedef struct { u8 x[n]; } s; struct { u8 n; s q; } in;",
     b"\2\1ab", "{ n = 2, in = { n = 1, q = { x = [ [0] = 97, [1] = 98 ] } } }", DIFFERS),
    ("length of a struct with more alignment", ALIAS,
     "struct { u8 n; struct s { u8 x[n]; }; struct { u8 n; struct s align(16) q; } in; } a;", b"\2\0\1\0ab",
     "{ a = { n = 2, in = { n = 1, q = { x = [ [0] = 97, [1] = 98 ] } } } }", REFUSES),
    ("length within the typedef's own struct", ALIAS, "u8 n; typedef struct { u8 n; u8 x[n]; } s; s a; s b;",
     b"\7\1a\2bc", "{ n = 7, a = { n = 1, x = [ [0] = 97 ] }, b = { n = 2, x = [ [0] = 98, [1] = 99 ] } }", SAME),
    ("no field around the typedef", ALIAS + "typedef u8 seq[n];", "u8 n; struct { u8 n; seq x; } in; seq y;",
     b"\2\1abc",
     "{ n = 2, in = { n = 1, x = [ [0] = 97 ] }, y = [ [0] = 98, [1] = 99 ] }", SAME),
    ("no field around the struct", ALIAS + "struct s { u8 x[n]; };", "u8 n; struct s a;", b"\2ab",
     "{ n = 2, a = { x = [ [0] = 97, [1] = 98 ] } }", SAME),
    ("the specification's variant", ALIAS,
     "enum : u8 { a, b, c, d } x; typedef variant <x> { u8 a; string b; u8 c; } example_variant;"
     "struct { enum : u8 { x, y, z } x; example_variant v; } s[2];", b"\1\0ab\0\2cd\0",
     '{ x = ( "b" : container = 1 ), s = [ [0] = { x = ( "x" : container = 0 ), v = { "ab" } },'
     ' [1] = { x = ( "z" : container = 2 ), v = { "cd" } } ] }', REFUSES),
    ("a named variant and two tags", ALIAS,
     "enum : u8 { A, B } t; enum : u8 { B, A } u; variant v <t> { u8 A; string B; } q; variant v <u> r;", b"\1\1ab\0\3",
     '{ t = ( "B" : container = 1 ), u = ( "A" : container = 1 ), q = { "ab" }, r = { 3 } }', SAME),
    # Declarations of several types (C.2.2: declaration-specifiers).
    ("two structs", f"struct a {{ {U8} x; }} struct b {{ {U8} y; }};", "struct a p; struct b q;", b"\1\2",
     "{ p = { x = 1 }, q = { y = 2 } }", REFUSES),
    ("three kinds", ALIAS + "enum e : u8 { X } struct b { u8 y; } variant v { u8 X; };",
     "enum e t; struct b q; variant v <t> r;", b"\0\2\3",
     '{ t = ( "X" : container = 0 ), q = { y = 2 }, r = { 3 } }', REFUSES),
    ("two structs within a struct", ALIAS, "struct a { u8 x; } struct b { u8 y; }; struct a p; struct b q;", b"\1\2",
     "{ p = { x = 1 }, q = { y = 2 } }", REFUSES),
    # Escapes (C.1.5).
    *((f"escape {escape}", "", f'enum : {U8} {{ "L{escape}M" = 5 }} x;', b"\5",
       f'{{ x = ( "L{shown}M" : container = 5 ) }}', other)
      for escape, shown, other in (
          (r"\101", "A", SAME), (r"\1011", "A1", SAME), (r"\x41", "A", SAME), (r"\x0000041", "A", DIFFERS),
          (r"\u0041", "A", REFUSES), (r"\U00000041", "A", REFUSES), (r"\u00e9", "\u00e9", REFUSES),
          (r"\u20ac5", "\u20ac5", REFUSES), (r"\U0001F600", "\U0001F600", REFUSES), (r"\"", r"\"", SAME),
          (r"\?", r"\?", SAME), (r"\a\b\f\v\\", r"\a\b\f\v\\", SAME), (r"\'", r"\'", SAME))),
    ("character constants", "",
     f"enum : integer {{ size = 16; align = 8; }} {{ A = 'a', B = '\\x62', C = '\\u20ac' }} x;",
     b"\xac\x20", '{ x = ( "C" : container = 8364 ) }', REFUSES),
    # Names of structs within structs.
    ("a nested name and the outer one", f"struct b {{ {U8} u; }};",
     f"struct a {{ struct b {{ {U8} x; }} y; struct b k; }} z; struct b w;", b"\1\2\3",
     "{ z = { y = { x = 1 }, k = { x = 2 } }, w = { u = 3 } }", SAME),
    ("a struct within one of its name", "", f"struct a {{ struct a {{ {U8} x; }} y; }} z; struct a w;", b"\1\2",
     "{ z = { y = { x = 1 } }, w = { y = { x = 2 } } }", SAME),
    ("one name as field, type and struct", f"typealias {U8} := b;\nstruct b {{ b b; }};", "struct b b; b c;", b"\1\2",
     "{ b = { b = 1 }, c = 2 }", REFUSES),
    ("used again by its name", "", f"struct b {{ {U8} x; }} p; struct b q;", b"\1\2",
     "{ p = { x = 1 }, q = { x = 2 } }", SAME),
    # Types' names.
    ("a pointer to a struct", f"typealias {U8} := struct page *;\ntypealias {U8} := struct page * *;",
     "struct page * x; struct page **y;", b"\1\2", "{ x = 1, y = 2 }", DIFFERS),
    ("const", ALIAS, "const u8 x; u8 const y;", b"\1\2", "{ x = 1, y = 2 }", REFUSES),
    ("const as declared", f"typealias {U8} := const u8;\ntypealias string := u8;", "const u8 x;", b"\1",
     "{ x = 1 }", SAME),
    ("more alignment", f"struct a {{ {U8} x; }};", f"{U8} q; struct a align(32) z; {U8} r;", b"\1\0\0\0\2\3",
     "{ q = 1, z = { x = 2 }, r = 3 }", REFUSES),
]
# Cases: title, declarations, fields, message.
REFUSED = [
    ("a nested name outside", f"struct s {{ struct t {{ {U8} x; }} q; }};", "struct s a; struct t b;",
     "line 5: no struct 't' was declared before"),
    ("a nested name after its field", "", f"struct a {{ struct b {{ {U8} x; }} y; }} z; struct b w;",
     "line 4: no struct 'b' was declared before"),
    ("the same name twice", "", f"struct b {{ {U8} x; }} p; struct b {{ {U8} y; }} q;",
     "the struct 'b' is declared twice"),
    ("fields of two types", ALIAS, "struct a { u8 x; } struct b { u8 y; } z;",
     "expected ';' after a declaration, found 'z'"),
    ("a field twice", ALIAS, "u8 a; u8 a;", "line 5: a second field 'a' in the same struct or variant"),
    ("a length after its sequence", ALIAS, "u8 x[n]; u8 n;", "length 'n' names no field that comes before it"),
    ("a length that comes after the typedef", ALIAS, "typedef u8 seq[n]; seq x; u8 n;",
     "length 'n' names no field that comes before it"),
    *((f"escape {e}", "", f'enum : {U8} {{ "L{e}M" = 5 }} x;', text) for e, text in (
        (r"\u12", "unknown escape '\\u'"), (r"\U0001F60", "unknown escape '\\U'"), (r"\xg", "unknown escape '\\x'"),
        (r"\8", "unknown escape '\\8'"), (r"\q", "unknown escape '\\q'"),
        (r"\ud800", "'\\ud800' stands for no character"),
        (r"\U00110000", "'\\U00110000' stands for no character"), (r"\x100", "'\\x100' stands for no byte"),
        (r"\400", "'\\400' stands for no byte"))),
    ("a bit-field", ALIAS, "u8 x:4;", "a bit-field"),
    ("clock freq", 'clock { name = c; freq = "fast"; };\n', f"{U8} x;", "line 3: a clock's freq must be a number"),
    ("clock freq below 0", "clock { name = c; freq = -5; };\n", f"{U8} x;",
     "a clock's freq must be a number, not negative"),
    ("clock offset", "clock { name = c; offset = now; };\n", f"{U8} x;", "a clock's offset must be a number"),
]
# Cases: title, the trace's attributes, declarations, the field and its bytes, the line, the note.
NOTED = [
    *((f"base {base}", "", "", f"integer {{ size = 8; align = 8; base = {base}; }} x;", b"\x15", "{ x = 21 }",
       r"line 4: unknown base .*, decimal is used") for base in ("7", '"seven"', "symbolic", "0", "-10", "100")),
    *((f"encoding {name}", "", "", f"integer {{ size = 8; align = 8; encoding = {name}; }} x[2];", b"ab",
       "{ x = [ [0] = 97, [1] = 98 ] }", r"line 4: unknown encoding .*, none is used")
      for name in ("latin1", "UTF16", "5", '"UTF-32"')),
    *((f"uuid {uuid}", f"uuid = {uuid};", "", f"{U8} x;", b"\1", "{ x = 1 }", r"line 2: the trace's uuid is none")
      for uuid in ("5", "aaaa", '"zz"', '"aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaaff"')),
    *((f"clock uuid {uuid}", "", f"clock {{ name = c; uuid = {uuid}; }};\n", f"{U8} x;", b"\1", "{ x = 1 }",
       r"line 3: .*uuid") for uuid in ("5", '"zz"')),
]


class Declarations(Cases):
    def made(self, declarations, fields, data, trace=""):
        text = declarations.rstrip() + "\n" if declarations else ""
        text += f"stream {{ packet.context := struct {{ {ctf_made.integer(32)} packet_size; }}; }};\n"
        text += f"event {{ name = e; id = 0; fields := struct {{ {fields} }}; }};\n"
        return ctf_made.write(self.path(), text, ctf_made.word(8 * (4 + len(data)), 32) + data, trace=trace)

    def test_read(self):
        for what, declarations, fields, data, line, other in READ:
            with self.subTest(what):
                path = self.made(declarations, fields, data)
                run = self.ok("events", path)
                self.assertEqual((run.text, run.message), (f"e: {line}\n", ""))
                if self.other:
                    theirs = babeltrace2(path)
                    does = SAME if theirs == run.text else REFUSES if theirs is None else DIFFERS
                    self.assertEqual(does, other, theirs)

    def test_refused(self):
        """Refusals in one line that names the place."""
        for what, declarations, fields, words in REFUSED:
            with self.subTest(what):
                run = weft("events", self.made(declarations, fields, bytes(16)))
                self.assertEqual((run.code, run.out), (1, b""), run)
                self.assertRegex(run.message, r"^weft: \S+/metadata: line \d+: [^\n]*\n$")
                self.assertIn(words, run.message)

    def test_noted(self):
        for what, trace, declarations, field, data, line, words in NOTED:
            with self.subTest(what):
                run = self.ok("events", self.made(declarations, field, data, trace))
                self.assertEqual(run.text, f"e: {line}\n")
                self.assertRegex(run.message, words)


def unique(pairs):
    """An object whose keys all differ."""
    made = dict(pairs)
    assert len(made) == len(pairs), pairs
    return made


class Environment(Cases):
    """Invalid escapes in strings that do not affect the layout of events never refuse a trace: their valid part is
    used, else they stay as written."""

    def test_escapes(self):
        for written, value in ((r"\x0231", "#1"), (r"\x100", "\x100"), (r"\400", " 0"), (r"a\qb", r"a\qb"),
                               (r"\ud800", r"\ud800"), (r"\U00110000", r"\U00110000"), (r"\xg", r"\xg")):
            with self.subTest(written):
                text = (f'env {{ note = "{written}"; hostname = "h1"; }};\n'
                        f"stream {{ packet.context := struct {{ {ctf_made.integer(32)} packet_size; }}; }};\n"
                        f"event {{ name = e; id = 0; fields := struct {{ {U8} x; }}; }};\n")
                path = ctf_made.write(self.path(), text, ctf_made.word(40, 32) + b"\5")
                run = self.ok("events", path)
                self.assertEqual(run.text, "h1 e: { x = 5 }\n")
                self.assertIn("line 3: the escape '", run.message)
                (trace,) = json.loads(self.ok("info", path, "--format", "json").text)
                self.assertEqual((trace["host"], trace["env"]["note"]), ("h1", value))


class Names(Cases):
    """A first underscore is not shown, unless another field is shown so; each name in an object is there once."""

    def event(self, fields, data, stream="", event=""):
        text = f"{stream}event {{ name = e; id = 0; {event} fields := struct {{ {fields} }}; }};\n"
        path = ctf_made.write(self.path(), text, data)
        (line,) = self.ok("events", path, "--format", "json").text.splitlines()
        return path, json.loads(line, object_pairs_hook=unique)

    def test_underscores(self):
        for names, shown, other in (("a _a", "a _a", False), ("_a a", "_a a", False), ("_a __a", "a _a", True),
                                    ("__a _a", "_a a", False), ("a _a __a", "a _a __a", False), ("_a", "a", True),
                                    ("___a a __a", "__a a _a", False), ("__a a _a ___a", "__a a _a ___a", False),
                                    ("_ b", " b", True), ("_ __", " _", True)):
            with self.subTest(names):
                fields = " ".join(f"{U8} {name};" for name in names.split())
                values = list(range(1, 1 + len(names.split())))
                expected = dict(zip(shown.split(" "), values))
                path, event = self.event(fields, bytes(values), "stream { };\n")
                self.assertEqual(event["fields"], expected)
                text = "{ " + ", ".join(f"{k} = {v}" for k, v in expected.items()) + " }"
                self.assertEqual(self.ok("events", path).text, f"e: {text}\n")
                row = self.ok("events", path, "--format", "csv").text.splitlines()[1]
                self.assertIn(text, row)
                for name, value in expected.items():
                    if name:
                        for number, lines in ((value, 1), (value + 9, 0)):
                            found = self.ok("events", path, "--where", f"fields.{name} == {number}").text
                            self.assertEqual(found.count("\n"), lines)
                if self.other and other:
                    self.assertEqual(babeltrace2(path), f"e: {text}\n")

    def test_options(self):
        path, event = self.event(f"enum : {U8} {{ a, _a }} t; variant <t> {{ {U8} a; {U8} _a; }} v;", b"\1\7",
                                 "stream { };\n")
        self.assertEqual(event["fields"]["v"], {"_a": 7})

    def test_contexts(self):
        """Contexts in one object: the innermost has the name, others are named as a length or tag would name them."""
        path, event = self.event(
            f"{U8} a; {U8} d;", ctf_made.word(8 * 16, 32) + bytes([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]),
            f"stream {{ packet.context := struct {{ {ctf_made.integer(32)} packet_size; {U8} a; {U8} b; {U8} c; "
            f"{U8} d; }};\n"
            f"event.context := struct {{ {U8} b; {U8} c; struct {{ {U8} a; }} in; }}; }};\n",
            f"context := struct {{ {U8} _a; {U8} _c; {U8} x; }};")
        self.assertEqual(event["fields"], {"a": 11, "d": 12})
        self.assertEqual(event["context"], {
            "stream.packet.context.a": 1, "stream.packet.context.b": 2, "stream.packet.context.c": 3, "d": 4, "b": 5,
            "stream.event.context.c": 6, "in": {"a": 7}, "a": 8, "c": 9, "x": 10})
        self.assertEqual(len(self.ok("events", path, "--where", "ctx.a == 8 && ctx.b == 5").text.splitlines()), 1)


if __name__ == "__main__":
    weft_e2e.main()
