# SPDX-License-Identifier: MIT
"""Names in traces and spans reach a terminal as text and nothing else, and a spreadsheet as no formula. Each verb runs
with a pseudo-terminal as its output and its errors. Hosts, threads and spans of the recordings have names that
terminals obey: escape sequences in both forms, changes of the direction of text, line ends, malformed UTF-8."""
import csv
import io
import json
import os
import pty
import re
import select
import struct
import subprocess
import time

import small_trace
from weft_e2e import BIN, SLOWDOWN, Case, main, scenario, scratch, weft

# Names end with a letter, so that a name is left when all else is replaced.
HOSTILE = b"h\x1b[31m\x9b5m\xc2\x9b2Jx\r\x07\x7f\xe2\x80\xaey\xe2\x81\xa6\xe2\x80\xa8\xd8\x9c\xff\xc0\xafz"
COMM = b"\x1b]0;\xc2\x9ba\xe2\x80\xae\rb"
OWN_STYLE = re.compile(rb"\x1b\[(?:0|1|38;5;\d+)m")
FORBIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def tsdl(name):
    """The inside of a string of metadata."""
    return b"".join(b"\\x%02x" % c if c < 0x20 or c == 0x7f else bytes([c]) for c in name)


def recording(host, comm=COMM, file=b"/bin/" + HOSTILE):
    """small_trace with other names."""
    path = scratch()
    small_trace.write(path)
    with open(os.path.join(path, "metadata"), "rb") as f:
        text = f.read()
    with open(os.path.join(path, "metadata"), "wb") as f:
        f.write(text.replace(b'"small"', b'"' + tsdl(host) + b'"'))
    for name in os.listdir(path):
        if name == "metadata" or not os.path.isfile(os.path.join(path, name)):
            continue
        with open(os.path.join(path, name), "rb") as f:
            data = f.read()
        with open(os.path.join(path, name), "wb") as f:
            f.write(data.replace(b"alpha".ljust(16, b"\0"), comm.ljust(16, b"\0")))
    return path


def on_terminal(*args, color=False, columns=200):
    """(exit status, what the terminal got) of one run."""
    master, slave = pty.openpty()
    env = dict(os.environ, LC_ALL="C.UTF-8", TERM="xterm", COLUMNS=str(columns))
    env.pop("NO_COLOR", None)
    if not color:
        env["NO_COLOR"] = "1"
    process = subprocess.Popen([BIN, *args], stdin=subprocess.DEVNULL, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    got, end = b"", time.monotonic() + 60 * SLOWDOWN
    while time.monotonic() < end:
        if select.select([master], [], [], 1)[0]:
            try:
                data = os.read(master, 1 << 16)
            except OSError:
                break
            if not data:
                break
            got += data
        elif process.poll() is not None:
            break
    os.close(master)
    return process.wait(timeout=60 * SLOWDOWN), got.replace(b"\r\n", b"\n")


class Terminal(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.one, cls.two = recording(HOSTILE), recording(b"other\x1b[2J")
        cls.store = scratch()
        cls.spans = os.path.join(scratch(), "spans.json")
        name = COMM.decode() + "\u202e\x1b[5m"
        spans = [{"traceId": f"{n:032x}", "spanId": f"{n:016x}", "name": name, "kind": 1,
                  "startTimeUnixNano": str(10**18 + n), "endTimeUnixNano": str(10**18 + 10**6 * n),
                  "attributes": [{"key": "k\x1b", "value": {"stringValue": "=1+\x1b[31m"}}]} for n in range(1, 30)]
        resource = {"attributes": [{"key": "service.name", "value": {"stringValue": "s\x1b[2J"}}]}
        with open(cls.spans, "w", encoding="utf-8") as f:
            json.dump({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": spans}]}]}, f)

    def harmless(self, what, got):
        text = got.decode("utf-8")  # well-formed
        found = FORBIDDEN.search(text)
        self.assertIsNone(found, f"{what}: {text[max(0, found.start() - 60):found.end() + 60]!r}" if found else what)

    def questions(self):
        both, store = [self.one, self.two], ["--store", self.store]
        for form in "table", "json", "csv":
            for verb in "info", "sync", "flows", "threads", "requests":
                yield [verb, *both, *store, "--format", form]
            yield ["critpath", self.one, *store, "--thread", "11", "--format", form]
            yield ["index", *both, *store, "--format", form]
            yield ["verify", self.store, "--format", form]
            for sub in "table", "stats", "outliers", "clusters":
                yield ["spans", sub, self.spans, "--format", form]
            yield ["spans", "critpath", "--trace", f"{1:032x}", self.spans, "--format", form]
        yield ["info", self.one]
        yield ["critpath", self.one, *store, "--thread", "10", "--compare", "11"]
        for form in "text", "json", "csv":
            yield ["events", *both, "--format", form]
        yield ["events", self.one, "--format", "csv", "--columns", "host,comm,name,next_comm,prev_comm"]
        # Messages on stderr: what was given, and what there is instead.
        yield ["critpath", self.one, *store, "--thread", "\x1b[31m\u202e"]
        yield ["critpath", *both, *store, "--thread", "11"]
        yield ["info", "\x1b[2J\u009b"]
        yield ["events", self.one, "--where", "\x1b[2J"]
        yield ["sync", *both, *store, "--reference", "\x1b[2J"]
        yield ["\x1b[2J"]

    def test_nothing_but_text(self):
        for question in self.questions():
            with self.subTest(" ".join(question)[:200]):
                code, got = on_terminal(*question)
                self.assertIn(code, (0, 1, 2, 3))
                self.assertTrue(got)
                self.harmless(question[0], got)

    def test_own_styles_and_no_others(self):
        """A name that imitates one of weft's own styles is shown as text, too."""
        path = recording(b"bold\x1b[1mred\x1b[38;5;35m", comm=b"\x1b[1mx")
        for question in (["info", path], ["threads", path, "--store", self.store],
                         ["critpath", path, "--store", self.store, "--thread", "11"]):
            with self.subTest(question[0]):
                _, got = on_terminal(*question, color=True)
                self.assertIn(b"\x1b[1m", got)
                self.assertNotRegex(got, rb"bold\x1b|red\x1b\[38|\x1b\[1mx")
                self.harmless(question[0], OWN_STYLE.sub(b"", got))

    def test_json_is_the_same_on_a_terminal(self):
        for question in (["info", self.one, "--format", "json"], ["events", self.one, "--format", "json"]):
            _, got = on_terminal(*question)
            self.assertEqual(got, weft(*question).out)
            for line in got.decode().splitlines() if question[0] == "events" else [got]:
                json.loads(line)

    def test_text_of_events_in_a_pipe_is_babeltrace2s(self):
        """Names of hosts and strings as they are recorded; only a terminal is protected."""
        self.assertIn(HOSTILE, weft("events", self.one).out)


class Narrow(Case):
    """Tables fit a narrow terminal; what has no room is named, with how to see it."""

    def test_sixty_columns(self):
        trace, store = scenario("three-tier"), scratch()
        for question in (["info", trace], ["threads", trace, "--store", store], ["flows", trace, "--store", store],
                         ["requests", trace, "--store", store]):
            with self.subTest(question[0]):
                _, got = on_terminal(*question, columns=60)
                lines = [line for line in got.decode().splitlines()
                         if not line.startswith(("weft: note: ", "Try: ")) and not line.lstrip().startswith("weft ")]
                self.assertLessEqual(max(len(line) for line in lines), 60, max(lines, key=len))
        _, got = on_terminal("info", trace, columns=60)
        self.assertRegex(" ".join(got.decode().split()),
                         "no room for the columns [^:]*kernel: widen the terminal, or give --format csv")
        _, got = on_terminal("sync", trace, "--store", store, columns=60)
        self.assertIn("widen the terminal, or give --format csv", got.decode())
        _, got = on_terminal("info", trace)
        self.assertNotIn("no room", got.decode())


class Spreadsheet(Case):
    NAMES = {"=1+1": "'=1+1", "+a": "'+a", "-bash": "'-bash", "@x": "'@x", "-5": "-5", "+1.5e3": "+1.5e3",
             "\uff1da": "'\uff1da", "plain": "plain", "=a,b": "'=a,b"}

    def rows(self, *args):
        return list(csv.DictReader(io.StringIO(self.ok(*args, "--format", "csv").text, newline="")))

    def test_no_cell_begins_a_formula(self):
        store = scratch()
        for name, shown in self.NAMES.items():
            with self.subTest(name):
                path = recording(name.encode(), comm=name.encode())
                comms = {r["comm"] for r in self.rows("threads", path, "--store", store, "--all")}
                self.assertIn(shown, comms)
                self.assertEqual({r["host"] for r in self.rows("info", path)}, {shown})
                self.assertEqual({r["host"] for r in self.rows("events", path)}, {shown})
                chosen = self.rows("events", path, "--columns", "host,next_comm", "--names", "sched_switch")
                self.assertEqual({r["host"] for r in chosen}, {shown})
                self.assertIn(shown, {r["next_comm"] for r in chosen})
                path_rows = self.rows("critpath", path, "--store", store, "--thread", "10")
                self.assertEqual({r["host"] for r in path_rows}, {shown})


main()
