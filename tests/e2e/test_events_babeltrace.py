# SPDX-License-Identifier: MIT
"""`weft events` and `weft info` against babeltrace2 (and babeltrace 1 where babeltrace2 gives up), and against facts
known about the traces.

Two defects of babeltrace2 2.0.4 are not copied: in place of an empty string it shows what a field of the same event
type held earlier, and integers of 61 to 63 bits in base 16 appear as 0x0. The first is allowed for when lines are
compared, and only it.
"""
import collections
import csv
import io
import json
import os
import re
import shutil
import subprocess
import tempfile

import random_trace
import weft_e2e
from weft_e2e import DATA, Case, absent, have, need, scratch, seed, weft

PUBLIC = os.path.join(DATA, "traces-public")
SUITE = os.path.join(PUBLIC, "babeltrace2-tests")


def reader(program, path):
    """Exit status and output of a reader of another house, to a file because it can be long."""
    with tempfile.TemporaryFile() as out:
        done = subprocess.run([program, "--clock-seconds", "--no-delta", path], stdout=out, stderr=subprocess.PIPE)
        out.seek(0)
        return done.returncode, out.read(), done.stderr


def json_lines(run):
    """Objects of JSON lines; bytes are split because text knows more ends of line than \\n."""
    return [json.loads(line) for line in run.out.split(b"\n") if line]


def without_times(text):
    return re.sub(rb"^\[[-\d.]+\] ", b"", text, flags=re.M)


def traces_below(path):
    return sorted(d for d, _, names in os.walk(path) if "metadata" in names)


class Lines(Case):
    def same(self, ours, theirs, what, stale=True):
        """Line for line; an empty string of ours may stand where babeltrace2 shows an old one. Returns how many lines
        that excused."""
        if ours == theirs:
            return 0
        a, b = ours.split(b"\n"), theirs.split(b"\n")
        self.assertEqual(len(a), len(b), f"{what}: number of lines")
        excused = 0
        for i, (x, y) in enumerate(zip(a, b)):
            if x == y:
                continue
            pattern = re.escape(x).replace(re.escape(b'= ""'), rb'= "(?:[^"\\]|\\.)*"')
            if stale and re.fullmatch(pattern, y, re.DOTALL):
                excused += 1
                continue
            self.fail(f"{what}: line {i + 1}\n  weft:  {x!r}\n  other: {y!r}")
        return excused


class Babeltrace2(Lines):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        need("babeltrace2")

    def test_every_trace(self):
        """Output of all recorded traces that babeltrace2 reads whole."""
        compared = 0
        for path in traces_below(os.path.join(DATA, "traces")) + traces_below(PUBLIC):
            code, theirs, told = reader("babeltrace2", path)
            if code:
                continue
            with self.subTest(trace=os.path.relpath(path, DATA)):
                run = self.ok("events", path)
                self.same(run.out, theirs, path)
                compared += 1
                lost = sum(map(int, re.findall(rb"Tracer discarded (\d+) event", told)))
                packets = sum(map(int, re.findall(rb"Tracer discarded (\d+) packet", told)))
                (info,) = self.json("info", path)
                self.assertEqual((info["events"], info["lost_events"], info["lost_packets"]),
                                 (theirs.count(b"\n"), lost, packets))
        if not compared:
            absent("no recorded traces (set WEFT_DATA)")

    def test_machines_together(self):
        """Machines together, in one order of time."""
        for name in ("three-tier", "three-tier-disk", "scp-net", "bsp", "mpi", "vm", "rotated"):
            path = os.path.join(DATA, "traces", name)
            if not have(path):
                continue
            code, theirs, _ = reader("babeltrace2", path)
            self.assertEqual(code, 0)
            ours = self.ok("events", path).out
            with self.subTest(scenario=name):
                self.assertEqual(ours.count(b"\n"), theirs.count(b"\n"))
                times = [float(line[1:line.index(b"]")]) for line in ours.splitlines()]
                self.assertEqual(times, sorted(times))
                self.same(ours, theirs, name)
        need(os.path.join(DATA, "traces"))

    def test_random_declarations(self):
        """Random declarations: every kind of field at any place, in both byte orders, clocks of any width and
        frequency; JSON and CSV must be well-formed and hold as many events."""
        place = scratch()
        first = seed(0)
        for made in range(first, first + int(os.environ.get("WEFT_RANDOM_TRACES", 60))):
            path = os.path.join(place, str(made))
            freq, times = random_trace.write(path, made)
            with self.subTest(seed=made):
                code, theirs, told = reader("babeltrace2", path)
                self.assertEqual((code, told, theirs.count(b"\n")), (0, b"", len(times)))
                run = self.ok("events", path)
                self.assertEqual(run.message, "")
                if freq == 10**9:
                    self.same(run.out, theirs, f"seed {made}", stale=False)
                else: # times rounded differently
                    self.same(without_times(run.out), without_times(theirs), f"seed {made}", stale=False)
                lines = json_lines(self.ok("events", path, "--format", "json"))
                self.assertEqual([line["ts"] for line in lines], times)
                rows = list(csv.reader(io.StringIO(self.ok("events", path, "--format", "csv").text, newline="")))
                self.assertEqual(rows[0], ["ts", "host", "cpu", "name", "fields"])
                self.assertEqual([r[0] for r in rows[1:]], list(map(str, times)))
                self.assertTrue(all(len(r) == 5 for r in rows))
            shutil.rmtree(path)


class Counts(Lines):
    """Counts in the READMEs beside the traces, for traces that babeltrace2 does not read to the end."""

    def check(self, path, events, lost=0):
        need(path)
        run = self.ok("events", path)
        self.assertEqual(run.out.count(b"\n"), events)
        (info,) = self.json("info", path)
        self.assertEqual((info["events"], info["lost_events"], info["problems"]), (events, lost, []))
        told = [x for x in json_lines(self.ok("events", path, "--format", "json")) if "lost_events" in x]
        self.assertEqual(sum(t["lost_events"] for t in told), lost)
        self.assertEqual(run.message.count(" lost"), min(len(told), 100))
        self.assertEqual("more places with losses" in run.message, len(told) > 100)
        if have("babeltrace"):
            code, theirs, _ = reader("babeltrace", path)
            if code == 0:
                self.same(run.out, theirs, path, stale=False)

    def test_scp_source(self):
        self.check(os.path.join(PUBLIC, "synctraces", "scp_src"), 110771)

    def test_scp_destination(self):
        self.check(os.path.join(PUBLIC, "synctraces", "scp_dest"), 85729)

    def test_hello_lost(self):
        self.check(os.path.join(PUBLIC, "single-host", "hello-lost"), 32300, 967700)

    def test_lost_events(self):
        path = need(os.path.join(DATA, "traces", "lost-events"))
        (info,) = self.json("info", path)
        self.assertEqual((info["events"], info["lost_events"]), (10065, 103708))

    def test_rotated(self):
        """Rotated trace in five pieces: as many events as the pieces have."""
        path = need(os.path.join(DATA, "traces", "rotated"))
        (info,) = self.json("info", path)
        pieces = [self.json("info", piece)[0]["events"] for piece in traces_below(path)]
        self.assertEqual((info["events"], sum(pieces), len(pieces)), (20827, 20827, 5))
        self.assertEqual(self.ok("events", path).out.count(b"\n"), 20827)

    def test_snapshot(self):
        """Two snapshots of the same buffers: what is in both counts once."""
        path = need(os.path.join(DATA, "traces", "snapshot"))
        one, two = (collections.Counter(self.ok("events", piece).out.split(b"\n")[:-1]) for piece in traces_below(path))
        self.assertEqual(sum(one.values()) + sum(two.values()), 49082)
        both = one | two
        self.assertLess(sum(both.values()), 49082)
        (info,) = self.json("info", path)
        self.assertEqual(info["events"], sum(both.values()))
        self.assertEqual(collections.Counter(self.ok("events", path).out.split(b"\n")[:-1]), both)


class Babeltrace2Suite(Lines):
    """The traces of babeltrace 2's own tests."""

    def setUp(self):
        need(SUITE)

    def test_lost_packets(self):
        for name, packets in (("no-lost", []), ("no-lost-not-starting-at-0", []), ("2-lost-before-last", [2]),
                              ("7-lost-between-2-with-index", [7]),
                              ("2-streams-lost-in-1", [2]), ("2-streams-lost-in-2", [2, 3, 1])):
            with self.subTest(name):
                run = self.ok("events", os.path.join(SUITE, "packet-seq-num", name), "--format", "json")
                lines = json_lines(run)
                self.assertEqual([line["lost_packets"] for line in lines if "lost_packets" in line], packets)
                self.assertEqual(len(re.findall(r"\d+ packets? lost", run.message)), len(packets))

    def test_sequences_in_contexts(self):
        """babeltrace2 2.0.4 aborts on it."""
        run = self.ok("events", os.path.join(SUITE, "succeed", "meta-ctx-sequence"))
        self.assertEqual((run.out, run.message), (b"", ""))

    def test_expected(self):
        """Number of events in the expected output of babeltrace 2."""
        pieces = {"2packets-barectf-event-before-packet": ["2packets", "barectf-event-before-packet"], "simple": None,
                  "meta-ctx-sequence": None}
        for name in sorted(os.listdir(os.path.join(SUITE, "expected"))):
            key = name[len("trace-"):-len(".expect")]
            with open(os.path.join(SUITE, "expected", name), encoding="utf-8") as f:
                expected = re.findall(r"^(?:\[.*\]\n)?.*Event `(.*?)`", f.read(), re.M)
            paths = [os.path.join(SUITE, "succeed", p) for p in pieces.get(key, [key]) or []]
            if not expected or not paths or not all(map(os.path.isdir, paths)):
                continue
            with self.subTest(key):
                lines = json_lines(self.ok("events", *paths, "--format", "json"))
                self.assertEqual(sorted(line["name"] for line in lines if "name" in line), sorted(expected))

    def refused(self, name, *words):
        run = weft("events", os.path.join(SUITE, "fail", name))
        self.assertEqual((run.code, run.out), (1, b""), run)
        for word in words:
            self.assertRegex(run.message, word)
        self.assertRegex(run.message, r"^weft: [^\n]*\n$")

    def test_refusals(self):
        """Refusal in one line that names the place."""
        for name, place in (("fail1", "line 15"), ("fail2", "line 9"), ("integer-range", "line 7"),
                            ("invalid-sequence-length-field-class", "line 23"),
                            ("invalid-variant-selector-field-class", "line 23"), ("lttng-modules-2.0-pre1", "byte 0"),
                            ("metadata-syntax-error", "line 3"), ("packet-based-metadata", "byte 0"),
                            ("smalltrace", "line 6")):
            with self.subTest(name):
                self.refused(name, rf"/fail/{name}/metadata: {place}: ")

    def test_good_before_bad(self):
        run = weft("events", os.path.join(SUITE, "fail", "valid-events-then-invalid-events"))
        self.assertEqual((run.code, run.text), (3, "gadoua: \ngadoua: \n"), run)
        self.assertRegex(run.message, r"/dummystream: packet at byte 0: .*\b255\b")

    def test_packets_beyond_the_file(self):
        """babeltrace2 shows none of the events that are in the file."""
        run = weft("events", os.path.join(SUITE, "fail", "invalid-packet-size"))
        self.assertEqual(run.code, 3, run)
        self.assertEqual(run.out.count(b"ust_tests_hello:tptest: "), 10)
        self.assertRegex(run.message, r"/channel0_3: byte 0: ")

    def test_corrupted_beside_sound(self):
        """Damaged stream of a set: the others are read. (The third is a copy of the first.)"""
        path = os.path.join(SUITE, "deterministic-ordering")
        run = weft("events", path)
        self.assertEqual(run.code, 3, run)
        sound = self.ok("events", os.path.join(path, "b-not-corrupted")).text.splitlines()
        lines = run.text.splitlines()
        self.assertGreater(len(lines), len(sound))
        self.assertLessEqual(set(sound), set(lines))
        self.assertRegex(run.message, r"a-corrupted/dummystream: packet at byte 0: .*\b255\b")


# ---- field values ----------------------------------------------------------------------------------------------------

FIELD_TYPES = {
    "u8": "integer {{ size = 8; align = 8; }} {}", "u16": "integer {{ size = 16; align = 8; }} {}",
    "i16": "integer {{ size = 16; align = 8; signed = true; }} {}",
    "u32be": "integer {{ size = 32; align = 8; byte_order = be; }} {}",
    "u32le": "integer {{ size = 32; align = 8; byte_order = le; }} {}",
    "flt32": "floating_point {{ exp_dig = 8; mant_dig = 24; align = 8; }} {}", "nt_str": "string {}",
}


def field_bytes(text):
    """`01` hexadecimal bytes, `"text\\0"`, `[value:bits]` with an optional byte order, `#` to the end of the line."""
    import struct
    out = b""
    items = r'#[^\n]*|"((?:[^"\\]|\\.)*)"|\[(-?[\d.]+):(\d+)(be|le)?\]|\b([0-9a-fA-F]{2})\b'
    for string, number, bits, order, byte in re.findall(items, text):
        if string:
            out += string.encode().replace(b"\\0", b"\0")
        elif number and "." in number:
            out += struct.pack("<f", float(number))
        elif number:
            out += int(number).to_bytes(int(bits) // 8, "big" if order == "be" else "little", signed=number[0] == "-")
        elif byte:
            out += bytes.fromhex(byte)
    return out


def field_value(text):
    """The small part of YAML that the expected values use."""
    rows = [(len(line) - len(line.lstrip()), line.strip()) for line in text.splitlines() if line.strip()]

    def scalar(s):
        return json.loads(s) if s not in ("{}", "[]") else {} if s == "{}" else []

    def block(indent):
        result = None
        while rows and rows[0][0] >= indent:
            at, s = rows.pop(0)
            if s.startswith("- "):
                rows.insert(0, (at + 2, s[2:]))
                result = (result or []) + [block(at + 2)]
                continue
            if ":" not in s or s[0] == '"':
                return scalar(s)
            key, _, rest = s.partition(":")
            result = result or {}
            # A list may stand at the indentation of its key.
            result[key] = scalar(rest.strip()) if rest.strip() else block(rows[0][0])
        return result

    return block(0)


class FieldValues(Case):
    """fields-ctf-1: declarations, bytes, and the values that they must give."""

    def declaration(self, text):
        text = re.sub(r"\s*@\[(\d+)\]\s*$", r" x[\1]", text.strip())
        if not text.startswith("struct"):
            return FIELD_TYPES[text].format("x") + ";"
        for name, form in FIELD_TYPES.items():
            text = re.sub(rf"\b{name} (\w+);", lambda m: form.format(m.group(1)) + ";", text)
        text = re.sub(r"enum : u8 \{", "enum : integer { size = 8; align = 8; } {", text)
        return (text if text.endswith("]") else text + " x") + ";"

    def simple(self, value, container=False):
        """Returns the value without additions to the expected values: names of options, labels."""
        if isinstance(value, list):
            return [self.simple(v) for v in value]
        if isinstance(value, dict):
            if set(value) == {"label", "value"}:
                return value["value"]
            return {k: next(iter(v.values())) if k == "var" else self.simple(v) for k, v in value.items()}
        return value

    def test_values(self):
        place = need(os.path.join(SUITE, "fields-ctf-1"))
        names = sorted(n for n in os.listdir(place) if n.endswith(".mp"))
        self.assertGreaterEqual(len(names), 6)
        for name in names:
            with open(os.path.join(place, name), encoding="utf-8") as f:
                _, declaration, content, expected = re.split(r"^---\n", f.read(), flags=re.M)
            path = os.path.join(scratch(), "trace")
            os.mkdir(path)
            with open(os.path.join(path, "metadata"), "w", encoding="utf-8") as f:
                f.write("/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\n"
                        f"event {{ name = e; fields := struct {{ {self.declaration(declaration)} }}; }};\n")
            with open(os.path.join(path, "stream"), "wb") as f:
                f.write(field_bytes(content))
            with self.subTest(name):
                (line,) = json_lines(self.ok("events", path, "--format", "json"))
                got, wanted = self.simple(line["fields"]["x"]), field_value(expected)
                if isinstance(wanted, dict) and "cat" in wanted: # number with six digits
                    self.assertAlmostEqual(got["cat"], wanted["cat"], places=5)
                    got["cat"] = wanted["cat"]
                self.assertEqual(got, wanted)


# ---- selection -------------------------------------------------------------------------------------------------------

class Selection(Case):
    """Options of `weft events` against the same selection made here from its JSON, whose text form babeltrace2 has
    confirmed."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = weft_e2e.scenario("three-tier")
        cls.all = json_lines(weft("events", cls.path, "--format", "json"))

    def chosen(self, *options):
        return json_lines(self.ok("events", self.path, "--format", "json", *options))

    def test_json_agrees_with_text(self):
        lines = self.ok("events", self.path).text.splitlines()
        self.assertEqual(len(lines), len(self.all))
        for text, event in zip(lines, self.all):
            self.assertTrue(text.startswith("[%d.%09d] %s %s: { cpu_id = %d }, " % (*divmod(event["ts"], 10**9),
                                                                                    event["host"], event["name"],
                                                                                    event["cpu"])), text)
            for key, value in event["fields"].items():
                if isinstance(value, int) and 0 <= value < 10:
                    self.assertRegex(text, rf"\b{key} = (0x|0)?{value}\b")

    def test_names(self):
        self.assertEqual(self.chosen("--names", "sched_switch,net_*", "--names", "irq_softirq_e?try"),
                         [e for e in self.all if e["name"] in ("sched_switch", "irq_softirq_entry")
                          or e["name"].startswith("net_")])

    def test_times(self):
        first = self.json("info", self.path)
        start = min(t["begin"] for t in first)
        b, e = start + 1_500_000_000, start + 2_000_000_000
        wanted = [x for x in self.all if b <= x["ts"] <= e]
        self.assertTrue(wanted)
        self.assertEqual(self.chosen("--begin", "+1.5s", "--end", "+2s"), wanted)
        self.assertEqual(self.chosen("--begin", b, "--end", e), wanted)
        one = self.all[1000]["ts"]
        self.assertEqual(self.chosen("--begin", one, "--end", one), [x for x in self.all if x["ts"] == one])

    def test_cpu_and_limit(self):
        self.assertEqual(self.chosen("--cpu", 1), [e for e in self.all if e["cpu"] == 1])
        self.assertEqual(self.chosen("--limit", 17), self.all[:17])
        self.assertEqual(self.chosen("--limit", 0), [])

    def running(self):
        """Thread of every event, from the switches alone; before the first switch of a CPU, the thread that it switches
        from."""
        at, result = {}, [None] * len(self.all)
        for e in self.all:
            if e["name"] == "sched_switch":
                at.setdefault((e["host"], e["cpu"]), (e["fields"]["prev_tid"], e["fields"]["prev_comm"]))
        for i, e in enumerate(self.all):
            key = (e["host"], e["cpu"])
            result[i] = at.get(key)
            if e["name"] == "sched_switch":
                at[key] = (e["fields"]["next_tid"], e["fields"]["next_comm"])
        return result

    def test_thread(self):
        threads = self.running()
        truth = weft_e2e.load(self.path, "ground-truth.json")
        tids = sorted({t[0] for t in threads if t and t[1] == "tier"})[:3]
        self.assertTrue(tids, truth.keys())
        for tid in tids:
            self.assertEqual(self.chosen("--tid", tid), [e for e, t in zip(self.all, threads) if t and t[0] == tid])
        wanted = [e for e, t in zip(self.all, threads) if t and t[1] == "tier" and e["host"] == "db"]
        self.assertEqual(self.chosen("--where", 'comm == "tier" && host == "db"'), wanted)

    def test_thread_in_a_window(self):
        """Thread at the begin of a window: known, whatever happened before."""
        threads = self.running()
        tid = next(t[0] for t in threads if t and t[1] == "tier")
        mine = [e for e, t in zip(self.all, threads) if t and t[0] == tid]
        begin = mine[len(mine) // 2]["ts"]
        self.assertEqual(self.chosen("--tid", tid, "--begin", begin), [e for e in mine if e["ts"] >= begin])

    def test_where(self):
        self.assertEqual(self.chosen("--where", 'next_comm =~ "^tier" && next_tid % 2 == 0'),
                         [e for e in self.all if e["fields"].get("next_comm", "").startswith("tier")
                          and e["fields"]["next_tid"] % 2 == 0])
        self.assertEqual(self.chosen("--where", 'cpu == 1 && name == "sched_wakeup" && fields.tid > 100'),
                         [e for e in self.all if e["cpu"] == 1 and e["name"] == "sched_wakeup"
                          and e["fields"]["tid"] > 100])

    def test_where_in_depth(self):
        """Fields of packets lie in variants."""
        def of(e):
            ip4 = e["fields"].get("network_header", {}).get("ipv4", {})
            return ip4.get("transport_header", {}).get("tcp", {}).get("dest_port") if "ttl" in ip4 else None
        ports = {of(e) for e in self.all} - {None}
        if not ports:
            absent("no TCP headers in this trace")
        port = sorted(ports)[0]
        self.assertEqual(self.chosen("--where", f"network_header.ipv4.transport_header.tcp.dest_port == {port}"),
                         [e for e in self.all if of(e) == port])

    def test_where_by_kind(self):
        """Elements, labels, numbers with a fraction, contexts: against the numbers of lines in babeltrace2's text that
        show them."""
        need(SUITE)
        for path, where, lines in ((os.path.join(SUITE, "succeed", "sequence"),
                                    "seq_int_field[2] == -3 && _seq_int_field_length == 6", 10),
                                   (os.path.join(SUITE, "succeed", "sequence"),
                                    "seq_int_field[2] == -3 && seq_long_field[0] == 11", 0),
                                   (os.path.join(SUITE, "succeed", "meta-variant-one-underscore"),
                                    'tag.label == "PELCHAT" && tag == 1 && tag.value < 2', 1),
                                   (os.path.join(SUITE, "fail", "invalid-packet-size"),
                                    "floatfield == 2222 && doublefield > 1.5 && intfield >= 4", 6),
                                   (os.path.join(SUITE, "succeed", "wk-heartbeat-u"),
                                    "ctx.vtid == 3214 && vpid == 3208 && tid == 3214", 10)):
            with self.subTest(where):
                self.assertEqual(weft("events", path, "--where", where).out.count(b"\n"), lines)

    def test_on_one_clock(self):
        """--sync: the same events with their times on the reference clock, in that order."""
        store = scratch()
        _, maps = self.sync(self.path, store)
        synced = self.chosen("--sync", "--store", store)
        self.assertEqual([e["ts"] for e in synced], sorted(e["ts"] for e in synced))
        for host, clock in maps.items():
            own = [e for e in self.all if e["host"] == host]
            mine = [e for e in synced if e["host"] == host]
            self.assertEqual(len(mine), len(own))
            for a, b in zip(own, mine):
                self.assertLessEqual(abs(clock.to_reference(a["ts"]) - b["ts"]), 1)
                self.assertEqual((a["name"], a["fields"]), (b["name"], b["fields"]))

    def test_output_that_ends_early(self):
        """A reader that goes away is no error, a full disk is."""
        done = subprocess.run(f"'{weft_e2e.BIN}' events '{self.path}' | head -n 1", shell=True, capture_output=True)
        self.assertEqual((done.returncode, done.stdout.count(b"\n"), done.stderr), (0, 1, b""))
        if os.path.exists("/dev/full"):
            with open("/dev/full", "wb") as full:
                run = weft("events", self.path, stdout=full)
            self.assertEqual(run.code, 1)
            self.assertRegex(run.message, r"^weft: [^\n]*\n$")

    def test_wrong_use(self):
        for options in (["--where", "a =="], ["--format", "xml"], ["--begin", "yesterday"],
                        ["--begin", "+2s", "--end", "+1s"], ["--cpu", "x"]):
            run = weft("events", self.path, *options)
            self.assertEqual((run.code, run.out), (2, b""), run)
            self.assertRegex(run.message, r"^weft: .*\n")
        self.assertIn("no event of these traces has a field prio_next",
                      weft("events", self.path, "--where", "prio_next > 1").message)
        self.assertIn("--names shed_*", weft("events", self.path, "--names", "shed_*").message)

    def test_info(self):
        traces = self.json("info", self.path)
        self.assertEqual(sum(t["events"] for t in traces), len(self.all))
        for t in traces:
            own = [e["ts"] for e in self.all if e["host"] == t["host"]]
            self.assertLessEqual(t["begin"], own[0])
            self.assertGreaterEqual(t["end"], own[-1])
            self.assertEqual((t["kernel"], t["tracer"], t["domain"], t["lost_events"]),
                             ("6.1.0-56-amd64", "lttng-modules 2.13.9", "kernel", 0))
            self.assertEqual((t["clock"]["name"], t["clock"]["freq"]), ("monotonic", 10**9))
            self.assertEqual(t["clock"]["offset_ns"], weft_e2e.Truth(self.path).offsets[t["host"]])
            self.assertEqual(sum(s["events"] for s in t["stream_list"]), t["events"])
        rows = list(csv.DictReader(io.StringIO(self.ok("info", self.path, "--format", "csv").text)))
        self.assertEqual([(r["host"], int(r["events"])) for r in rows], [(t["host"], t["events"]) for t in traces])
        table = self.ok("info", self.path).text
        for t in traces:
            self.assertRegex(table, rf"(?m)^{t['host']} +{t['events']:,}".replace(",", " "))


if __name__ == "__main__":
    weft_e2e.main()
