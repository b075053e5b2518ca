# SPDX-License-Identifier: MIT
"""CTF 2: made traces of one or two rules each, and recordings of LTTng 2.16, against the specification and the text of
babeltrace2 2.1."""
import json
import os
import re
import shutil
import subprocess

import weft_e2e
from weft_e2e import DATA, Case, need, scratch, weft

CASES = os.path.join(DATA, "ctf2-cases")

# Cases forbidden by the specification that weft reads, with a remark, or refuses in other words.
LENIENT = {
    "m144-text-empty": "the metadata is empty",               # no fragment to name
    "m145-text-no-rs": None,                                  # objects alone can be told apart
    "m21-no-data-stream-class": "no data stream class",       # an application that registered nothing
    "m148-text-cut-in-third": "no data stream class",
    "m44-alias-later": "no field class alias 'u8'",           # used in fragment 4 already
    "m52-environment-null": "taken as empty",                 # LTTng-UST may write it
    "m70-alignment-0": "taken as 1",
    "m74-mappings-null": "taken as none",
    "m171-text-tsdl": "this is no JSON value",                # the eighth fragment
}
# Streams that weft reads on: what it prints differs from what comes before the first error.
READ_ON = {
    "d09-content-0": 0,                                       # a packet that was not closed, as tracers leave them
    "d10-total-0": 3,
    "d35-ends-before-begin": 3,
    "d36-time-back": 3,                                       # the clock is set back, as babeltrace2 has it
    "d39-event-before-begin": 0,
    "d30-utf16-lone-surrogate": 0, "d31-utf16be-null-terminated-lone": 0, "d32-utf32-beyond": 0,
    "d44-empty-event": 1, "d47-event-class-missing-default": 1, "d48-stream-class-missing-default": 1, # events: none
}


def content(*parts):
    path = os.path.join(CASES, *parts)
    if not os.path.exists(path):
        return None
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()


def cases(kind):
    need(CASES)
    return sorted(c for c in os.listdir(CASES) if re.match(kind + r"\d", c))


class Made(Case):
    def test_valid(self):
        for case in cases("v"):
            with self.subTest(case):
                run = self.ok("events", os.path.join(CASES, case, "trace"))
                self.assertEqual(run.text, content(case, "expected.txt"))

    def test_other_formats(self):
        """JSON can be read again, and has a line for each event; so has CSV."""
        for case in cases("v"):
            with self.subTest(case):
                trace = os.path.join(CASES, case, "trace")
                n = len(content(case, "expected.txt").splitlines())
                lines = self.ok("events", trace, "--format", "json").text.splitlines()
                events = [e for e in map(json.loads, lines) if "name" in e]
                self.assertEqual(len(events), n)
                lines = self.ok("events", trace, "--format", "csv").text.splitlines()
                self.assertEqual(len([line for line in lines[1:] if ",lost_" not in line]), n)

    def test_metadata(self):
        """Names the fragment and the property."""
        for case in cases("m"):
            said = content(case, "error.txt").split(":")[0].split()
            with self.subTest(case):
                run = weft("events", os.path.join(CASES, case, "trace"))
                self.assertIn(run.code, (0, 1, 3), run)
                if case in LENIENT:
                    self.assertIn(LENIENT[case] or "", run.message, run)
                elif said[0] == "MUST":
                    self.assertEqual(run.code, 1, run)
                    self.assertEqual(run.text, "", run)
                    self.assertRegex(run.message, rf"fragment {said[2]}\b")
                    last = re.sub(r"\[.*", "", said[-1].split(".")[-1])
                    self.assertIn("fragment" if last.isdigit() else last, run.message)

    def test_clocks(self):
        """Origin, and the error where precision and accuracy are stated."""
        need(CASES)
        for case, words, origin, error in (
                ("v50-clock-offset", r"after the epoch$", "unix-epoch", None),
                ("v52-clock-custom-origin", r"after the origin n\.org,2020/boot/u-10, ± 1\.600 µs$",
                 "n.org,2020/boot/u-10", 1600),
                ("v53-clock-no-origin", r"not tied to the epoch$", None, None)):
            trace = os.path.join(CASES, case, "trace")
            self.assertRegex(self.ok("info", trace).text, "(?m)^  clock .*" + words)
            clock = self.json("info", trace)[0]["clock"]
            self.assertEqual((clock["origin"], clock["error_ns"]), (origin, error))

    def test_damaged(self):
        for case in cases("d"):
            with self.subTest(case):
                run = weft("events", os.path.join(CASES, case, "trace"))
                expected = content(case, "resume.txt") or content(case, "expected.txt")
                if case in READ_ON:
                    self.assertEqual(run.code, READ_ON[case], run)
                    continue
                # weft reports packets whose time runs back, as in CTF 1.8: they are sorted, and their clock was set.
                harmless = "by the specification: none" in content(case, "error.txt") and not case.startswith("d37")
                self.assertEqual(run.text, expected, run)
                self.assertEqual(run.code, 0 if harmless else 3, run)

    def test_replaced_characters(self):
        """Replaced characters: invalid ones become U+FFFD, in text and JSON; the text goes on after them."""
        need(CASES)
        for case, text in (("d30-utf16-lone-surrogate", "a\ufffdb"), ("d31-utf16be-null-terminated-lone", "\ufffda"),
                           ("d32-utf32-beyond", "\ufffda")):
            run = self.ok("events", os.path.join(CASES, case, "trace"))
            self.assertIn(f'body = {{ "{text}" }}', run.text)
            run = self.ok("events", os.path.join(CASES, case, "trace"), "--format", "json")
            self.assertIn(text, json.dumps([json.loads(line) for line in run.text.splitlines()], ensure_ascii=False))


def fragments(*objects, separator="\x1e"):
    return "".join(separator + json.dumps(o) + "\n" for o in objects).encode()


def write(path, metadata, **streams):
    os.makedirs(path)
    for name, data in dict(streams, metadata=metadata).items():
        with open(os.path.join(path, name), "wb") as f:
            f.write(data)
    return path


U8 = {"type": "fixed-length-unsigned-integer", "length": 8, "byte-order": "little-endian"}
PREAMBLE = {"type": "preamble", "version": 2}


def structure(**members):
    return {"type": "structure",
            "member-classes": [{"name": name, "field-class": fc} for name, fc in members.items()]}


class Written(Case):
    """Cases beyond those above."""

    def trace(self, *objects, stream=b"", **how):
        return write(os.path.join(scratch(), "t"), fragments(PREAMBLE, *objects, **how), s=stream)

    def test_without_separators(self):
        trace = self.trace({"type": "data-stream-class"},
                           {"type": "event-record-class", "name": "e", "payload-field-class": structure(a=U8)},
                           stream=b"\x05\x06", separator="")
        self.assertEqual(self.ok("events", trace).text, "e: { a = 5 }\ne: { a = 6 }\n")

    def test_no_data_stream_class(self):
        """An application that registered nothing."""
        run = self.ok("info", self.trace({"type": "trace-class", "environment": {"hostname": "h"}}))
        self.assertRegex(run.text, r"(?m)^h  ")
        self.assertIn("0 events in 0 streams", run.text)
        self.assertIn("no data stream class", run.text)

    def test_two_origins(self):
        """A length within the option of a variant, used by two arrays, one of which also means another one."""
        variant = {"type": "variant", "selector-field-location": {"path": ["s"]}, "options": [
            {"selector-field-ranges": [[0, 0]], "field-class": structure(n=U8)},
            {"selector-field-ranges": [[1, 1]], "field-class": structure(
                n=U8, l={"type": "dynamic-length-blob", "length-field-location": {"path": ["n"]}})}]}
        payload = structure(s=U8, v=variant,
                            b={"type": "dynamic-length-blob", "length-field-location": {"path": ["v", "n"]}})
        trace = self.trace({"type": "data-stream-class"},
                           {"type": "event-record-class", "name": "e", "payload-field-class": payload},
                           stream=b"\x00\x02\xaa\xbb" + b"\x01\x01\xcc\xdd")
        self.assertEqual(self.ok("events", trace).text, "e: { s = 0, v = { { n = 2 } }, b = { aa bb } }\n"
                         "e: { s = 1, v = { { n = 1, l = { cc } } }, b = { dd } }\n")

    def test_left_over_length(self):
        """The length of an element before is none for an element whose own is absent."""
        element = structure(
            has={"type": "fixed-length-boolean", "length": 8, "byte-order": "little-endian"},
            n={"type": "optional", "field-class": U8, "selector-field-location": {"path": ["has"]}},
            b={"type": "dynamic-length-blob", "length-field-location": {"path": ["n"]}})
        payload = structure(l={"type": "static-length-array", "length": 2, "element-field-class": element})
        event = {"type": "event-record-class", "name": "e", "payload-field-class": payload}
        whole = b"\x01\x01\xaa\x01\x00"
        trace = self.trace({"type": "data-stream-class"}, event, stream=whole + b"\x01\x01\xaa\x00\xbb")
        run = self.partly("events", trace)
        self.assertEqual(run.text, "e: { l = [ [0] = { has = true, n = { 1 }, b = { aa } }, "
                         "[1] = { has = true, n = { 0 }, b = { } } ] }\n")
        self.assertIn("a length or selector is in an optional or an option that is not there", run.message)

    def test_long_texts(self):
        """Texts that are converted in parts; what must be escaped lies at the borders of parts."""
        payload = structure(a={"type": "null-terminated-string", "encoding": "utf-32be"},
                            b={"type": "static-length-string", "length": 8000, "encoding": "utf-16le"})
        texts = [("\"ü" * 200)[i:] + "\U0001f600" * 90 for i in range(5)]
        trace = self.trace({"type": "data-stream-class"},
                           {"type": "event-record-class", "name": "e", "payload-field-class": payload},
                           stream=b"".join(t.encode("utf-32be") + bytes(4) + t.encode("utf-16le").ljust(8000, b"\0")
                                           for t in texts))
        lines = self.ok("events", trace).text.splitlines()
        shown = [t.replace('"', '\\"') for t in texts]
        self.assertEqual(lines, [f'e: {{ a = "{t}", b = "{t}" }}' for t in shown])
        fields = [json.loads(line)["fields"] for line in self.ok("events", trace, "--format", "json").text.splitlines()]
        self.assertEqual(fields, [{"a": t, "b": t} for t in texts])
        for i, text in enumerate(texts):
            where = "b == '%s'" % text
            self.assertEqual(self.ok("events", trace, "--where", where).text, lines[i] + "\n")

    def test_filters(self):
        """Fields by name: within optionals, with dots in their names, booleans, bit maps, LEB128, UTF-16, wide ones."""
        payload = structure(**{
            "on": {"type": "fixed-length-boolean", "length": 8, "byte-order": "little-endian"},
            "opt": {"type": "optional", "field-class": structure(n=U8), "selector-field-location": {"path": ["on"]}},
            "a.b c": U8, "leb": {"type": "variable-length-signed-integer"},
            "wide": {"type": "fixed-length-unsigned-integer", "length": 72, "byte-order": "little-endian"},
            "text": {"type": "null-terminated-string", "encoding": "utf-16le"}})
        one = b"\x07\x09\x04\x7e" + (1 << 70).to_bytes(9, "little") + "grün".encode("utf-16le") + b"\0\0"
        two = b"\x00\x05\x80\x01" + bytes(9) + b"\0\0"
        trace = self.trace({"type": "data-stream-class"},
                           {"type": "event-record-class", "name": "e", "payload-field-class": payload},
                           stream=one + two)
        lines = self.ok("events", trace).text.splitlines(keepends=True)
        self.assertEqual(lines, [
            'e: { on = true, opt = { { n = 9 } }, a.b c = 4, leb = -2, wide = 1180591620717411303424, '
            'text = "grün" }\n',
            'e: { on = false, opt = <none>, a.b c = 5, leb = 128, wide = 0, text = "" }\n'])
        for where, which in (("on == 1", 0), ("opt.n == 9", 0), ("leb == -2", 0), ("leb == 128", 1),
                             ("text == 'grün'", 0), ("wide == '0'", 1)):
            with self.subTest(where):
                self.assertEqual(self.ok("events", trace, "--where", where).text, lines[which])


def event(payload, number=0, **more):
    return dict({"type": "event-record-class", "id": number, "name": "e%d" % number, "payload-field-class": payload},
                **more)


def number(length, order="little-endian", *roles, **more):
    return dict({"type": "fixed-length-unsigned-integer", "length": length, "byte-order": order},
                **({"roles": list(roles)} if roles else {}), **more)


def variant(origin, path, **options):
    return {"type": "variant", "selector-field-location": {"origin": origin, "path": path},
            "options": [{"name": name, "selector-field-ranges": [[i, i]], "field-class": fc}
                        for i, (name, fc) in enumerate(options.items())]}


def blob(origin, path):
    return {"type": "dynamic-length-blob", "length-field-location": {"origin": origin, "path": path}}


class Odd(Case):
    """Declarations that are allowed, but that no tracer uses."""

    def trace(self, *objects, stream=b""):
        return write(os.path.join(scratch(), "t"), fragments(PREAMBLE, *objects), s=stream)

    def test_filter_behind_deep_structures(self):
        """Names far down do not end up in the path of what comes behind them."""
        deep = U8
        for i in range(100):
            deep = structure(**{"deep%d" % i: deep})
        real = {"type": "fixed-length-floating-point-number", "length": 32, "byte-order": "little-endian"}
        lists = {"type": "static-length-array", "length": 2, "element-field-class": structure(d=deep)}
        payload = structure(a=structure(d=deep, l=lists, f=real))
        trace = self.trace({"type": "data-stream-class"}, event(payload), stream=b"\1\2\3\0\0\0\x3f")
        self.assertEqual(self.ok("events", trace, "--where", "a.f == 0.5").text.count("f = 0.5"), 1)
        self.assertEqual(self.ok("events", trace, "--where", "a.f == 0.25").text, "")

    def test_reference_by_way_of_the_event_header(self):
        """A length in the event header, whose place depends on the packet's context."""
        header = structure(v=variant("packet-context", ["sel"], a=structure(n=U8),
                                     b=structure(n=number(16, "big-endian"))))
        stream = {"type": "data-stream-class", "packet-context-field-class": structure(sel=U8),
                  "event-record-header-field-class": header}
        payload = structure(b=blob("event-record-header", ["v", "n"]), x=U8, t={
            "type": "null-terminated-string", "encoding": "utf-16le"})
        trace = self.trace(stream, event(payload), stream=b"\1" + b"\0\2\xaa\xbb\7\0\0" + b"\0\1\xcc\x09a\0\0\0")
        lines = ['e0: { sel = 1 }, { b = { aa bb }, x = 7, t = "" }\n',
                 'e0: { sel = 1 }, { b = { cc }, x = 9, t = "a" }\n']
        self.assertEqual(self.ok("events", trace).text, "".join(lines))
        self.assertEqual(self.ok("events", trace, "--where", "x == 9").text, lines[1])
        self.assertEqual(self.ok("events", trace, "--where", "t == 'a'").text, lines[1])

    def test_event_of_half_a_gigabyte(self):
        """Event of half a gigabyte: the place of its header is counted in 32 bits."""
        stream = {"type": "data-stream-class", "event-record-common-context-field-class": structure(
            n=number(32), b=blob("event-record-common-context", ["n"]))}
        trace = self.trace(stream, event(structure(a=U8)), stream=(1 << 29).to_bytes(4, "little"))
        os.truncate(os.path.join(trace, "s"), (1 << 29) + 5)
        run = weft("events", trace, "--where", "a == 0")
        self.assertEqual((run.code, run.text), (1, ""), run)
        self.assertIn("an event of a kind that cannot be read", run.message)

    def test_byte_orders_of_neighbours(self):
        """The last byte of an event may hold the first bits of the next one, in its byte order."""
        header = structure(id=number(4, "little-endian", "event-record-class-id"))
        payload = structure(a=number(4), b=number(16, "big-endian", alignment=1))
        stream = {"type": "data-stream-class", "event-record-header-field-class": header}
        trace = self.trace(stream, event(payload), stream=b"\x50\x01\x02\x60\x03\x04")
        self.assertEqual(self.ok("events", trace).text,
                         "e0: { a = 5, b = 258 }\ne0: { a = 6, b = 772 }\n")
        stream = {"type": "data-stream-class", "event-record-header-field-class": structure(
            id=number(8, "little-endian", "event-record-class-id"))}
        trace = self.trace(stream, event(structure(a=number(4))), event(structure(b=number(4, "big-endian")), 1),
                           stream=b"\0\x15\0")
        run = self.partly("events", trace)
        self.assertEqual(run.text, "e0: { a = 5 }\n")
        self.assertIn("the byte order of bit fields changes within a byte", run.message)

    def test_head_that_nothing_can_mend(self):
        context = structure(sel=U8, v=variant("packet-context", ["sel"], a=U8))
        stream = {"type": "data-stream-class", "packet-context-field-class": context}
        run = weft("events", self.trace(stream, event(structure(a=U8)), stream=b"\7\0\0\0"))
        self.assertIn("cannot be read: a variant's tag selects none of its options; 4 bytes skipped", run.message)

    def test_long_heads(self):
        """Fields of long heads that events refer to are looked up for each of them."""
        for context, stream in (
                (structure(n={"type": "variable-length-unsigned-integer"}), b"\x80" * 600 + b"\0"),
                (structure(t={"type": "null-terminated-string", "encoding": "utf-16le"}), b"a\0" * 300 + b"\0\0")):
            trace = self.trace({"type": "data-stream-class", "packet-context-field-class": context},
                               event(structure(a=U8)), stream=stream + b"\1")
            run = weft("events", trace)
            self.assertEqual((run.code, run.text), (1, ""), run)
            self.assertIn("take more than 512 bytes", run.message)

    def test_numbers_that_json_has_not(self):
        """Hexadecimal digits are strings there."""
        wide = {"type": "fixed-length-unsigned-integer", "length": 8192, "byte-order": "little-endian"}
        octal = dict(wide, **{"preferred-display-base": 8})
        payload = structure(w=wide, o=octal, v={"type": "variable-length-unsigned-integer"})
        trace = self.trace({"type": "data-stream-class"}, event(payload),
                           stream=b"\xab" + bytes(1023) + b"\x0f" + bytes(1023) + b"\x81" * 700 + b"\1")
        fields = json.loads(self.ok("events", trace, "--format", "json").text)["fields"]
        self.assertEqual(fields, {"w": "0xAB", "o": "017", "v": "0x01" + "81" * 700})

    def test_options_without_a_name(self):
        """Options without a name are numbered, except by numbers that are names of others."""
        options = [{"name": "1", "selector-field-ranges": [[0, 0]], "field-class": structure(a=U8)}] + [
            {"selector-field-ranges": [[i, i]], "field-class": structure(**{"b%d" % i: U8})} for i in (1, 2)]
        payload = structure(s=U8, v={"type": "variant", "selector-field-location": {"path": ["s"]}, "options": options})
        trace = self.trace({"type": "data-stream-class"}, event(payload), stream=b"\0\5\1\6\2\7")
        self.assertEqual(self.ok("events", trace).text, "e0: { s = 0, v = { { a = 5 } } }\n"
                         "e0: { s = 1, v = { { b1 = 6 } } }\ne0: { s = 2, v = { { b2 = 7 } } }\n")
        for where, line in (("v.1.a == 5", "a = 5"), ("v.3.b1 == 6", "b1 = 6"), ("v.2.b2 == 7", "b2 = 7")):
            self.assertEqual(self.ok("events", trace, "--where", "fields." + where).text.count(line), 1)

    def test_losses_in_optionals(self):
        """A counter that packets may leave out counts on."""
        lost = number(8, "little-endian", "discarded-event-record-counter-snapshot")
        context = structure(size=number(8, "little-endian", "packet-total-length"), has=U8,
                            o={"type": "optional", "field-class": structure(lost=lost),
                               "selector-field-location": {"path": ["has"]}, "selector-field-ranges": [[1, 1]]})
        stream = {"type": "data-stream-class", "packet-context-field-class": context}
        trace = self.trace(stream, event(structure(a=U8)), stream=bytes([32, 1, 3, 9, 24, 0, 8, 32, 1, 5, 7]))
        self.assertEqual(self.json("info", trace)[0]["lost_events"], 5)

    def test_offset_of_each_archive(self):
        """A clock is known by its id, also where its name is another one."""
        top, preamble = scratch(), dict(PREAMBLE, uuid=[7] * 16)
        stream = {"type": "data-stream-class", "default-clock-class-id": "default",
                  "packet-context-field-class": structure(
                      size=number(8, "little-endian", "packet-total-length"),
                      begin=number(64, "little-endian", "default-clock-timestamp")),
                  "event-record-header-field-class": structure(
                      id=number(8, "little-endian", "event-record-class-id"),
                      t=number(64, "little-endian", "default-clock-timestamp"))}
        for i in range(2):
            clock = {"type": "clock-class", "id": "default", "name": "monotonic", "frequency": 10**9,
                     "origin": "unix-epoch", "offset-from-origin": {"seconds": 1000 + i}}
            data = bytes([18 * 8]) + 2 * ((10 * i).to_bytes(8, "little") + b"\0")
            write(os.path.join(top, str(i)), fragments(preamble, clock, stream, *(
                event(structure(), n) for n in range(i + 1))), s=data[:-1])
        self.assertEqual(self.ok("events", top).text, "[1000.000000000] e0: { }\n[1001.000000010] e0: { }\n")


class Recorded(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = {}

    def unpacked(self, name):
        where = os.path.join(DATA, "traces", name)
        need("zstd", os.path.join(where, "traces.tar.zst"))
        if name not in self.place:
            self.place[name] = scratch()
            subprocess.run(["tar", "-C", self.place[name], "--zstd", "-xf", os.path.join(where, "traces.tar.zst")],
                           check=True)
        return self.place[name]

    def same_text(self, trace, scenario, text):
        packed = os.path.join(DATA, "traces", scenario, "expected", text + ".txt.zst")
        expected = subprocess.run(["zstd", "-dqc", packed], check=True, capture_output=True).stdout
        self.assertEqual(self.ok("events", trace).out, expected)

    def test_user_space(self):
        """Buffers per user, process and channel; archives and snapshots that are joined."""
        top = self.unpacked("ust-ctf2")
        for kind in ("uid", "pid", "chan", "snap"):
            with self.subTest(kind):
                self.same_text(os.path.join(top, kind + "-ctf-2"), "ust-ctf2", kind + "-ctf-2")

    def test_archives_of_both_formats(self):
        """Archives of both formats are two traces, even in one session's directory."""
        top, mixed = self.unpacked("ust-ctf2"), os.path.join(scratch(), "mixed")
        texts = []
        for form in ("ctf-2", "ctf-1.8"):
            shutil.copytree(os.path.join(top, "uid-" + form), mixed, dirs_exist_ok=True)
            texts += self.ok("events", os.path.join(top, "uid-" + form)).text.splitlines()
        self.assertEqual(len(self.json("info", mixed)), 2)
        self.assertEqual(sorted(self.ok("events", mixed).text.splitlines()), sorted(texts))

    def test_kernel(self):
        top = self.unpacked("three-tier-ctf2")
        for host in ("client", "web", "db"):
            with self.subTest(host):
                self.same_text(os.path.join(top, host, "ctf-2"), "three-tier-ctf2", host + "-ctf-2")

    def test_analyses(self):
        """Two sessions of one run: packets find each other in both, requests and paths take as long."""
        top = self.unpacked("three-tier-ctf2")
        answers = {}
        for form in ("ctf-2", "ctf-1.8"):
            traces = [os.path.join(top, host, form) for host in ("client", "web", "db")]
            sync = self.json("sync", *traces)
            requests = [line for line in self.ok("requests", *traces).text.splitlines() if line.startswith("+")]
            messages = re.findall(r"(?m)^(\w+) .* ms +(\d+) +web$", self.ok("sync", *traces).text)
            answers[form] = (messages, [h["category"] for h in sync["hosts"]], requests)
        two, one = answers["ctf-2"], answers["ctf-1.8"]
        self.assertEqual(two[:2], one[:2])
        self.assertEqual(two[0], [("client", "34"), ("db", "37")])
        strip = [[re.sub(r"^\S+ s +\S+ \S+ +", "", line) for line in a[2]] for a in (two, one)]
        self.assertEqual(sorted(strip[0]), sorted(strip[1]))
        self.assertGreater(len(strip[0]), 10)


if __name__ == "__main__":
    weft_e2e.main()
