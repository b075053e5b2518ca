# SPDX-License-Identifier: MIT
"""Exit status, by one rule for every verb: 0 all was read (losses of the tracer itself are reported), 1 nothing useful,
2 wrong use, 3 answered, but parts of the input were damaged or missing."""
import os
import struct
import subprocess

import long_trace
import small_trace
from test_arguments import NAMELESS, write_small
from tsp_server import THREAD_STATUS, Server
from weft_e2e import BIN, Case, main, scratch, weft

ANSWERED, NOTHING, WRONG, PARTLY = 0, 1, 2, 3
VERBS = ("info", "events", "index", "threads", "sync", "critpath", "requests", "verify")
HEAD_BYTES = 76  # head of a packet: magic number, UUID, stream, packet context
BROKEN = "/* CTF 1.8 */ trace { major = 1;"


def change(trace, damage):
    """Rewrites the stream of a trace: the packets go through `damage`."""
    path, packets = os.path.join(trace, "ch_0"), []
    with open(path, "rb") as f:
        data = f.read()
    at = 0
    while at < len(data):
        size = struct.unpack_from("<Q", data, at + 48)[0] // 8
        packets.append(bytearray(data[at:at + size]))
        at += size
    damage(packets)
    with open(path, "wb") as f:
        f.write(b"".join(packets))


def discarded(packets):
    for i, p in enumerate(packets):
        struct.pack_into("<Q", p, 64, 7 * i)


def truncated(packets):
    del packets[2][-20:]


def bad_head(packets):
    packets[1][0] ^= 0xFF


def bad_event(packets):
    struct.pack_into("<H", packets[1], HEAD_BYTES, 777)  # number without a class


def zeros(packets):
    packets[:] = [bytes(len(p)) for p in packets]


class Status(Case):
    def setUp(self):
        self.top = scratch()
        self.good, self.other = (write_small(os.path.join(self.top, name), i)
                                 for i, name in ((1, "good"), (2, "other")))

    def arguments(self, verb, *args, store):
        thread = ["--thread", "good:10"] if verb == "critpath" else []
        return [verb, *args, *thread, *(["--store", store] if verb not in ("info", "events") else [])]

    def check(self, case, args, expected, told=None, **of_verb):
        """Checks that every verb, with and without notes, gives the status and the same answer."""
        store = scratch()
        weft("index", *args, "--store", store)
        for verb in VERBS:
            with self.subTest(case=case, verb=verb):
                command = self.arguments(verb, *args, store=store)
                run, quiet = weft(*command), weft(*command, "-q")
                wanted = of_verb.get(verb, expected)
                self.survived(run)
                self.assertEqual(run.code, wanted, run)
                self.assertEqual((quiet.code, quiet.out), (run.code, run.out), quiet)
                self.assertNotIn("weft: note:", quiet.message)
                if wanted in (ANSWERED, PARTLY):
                    self.assertTrue(run.out, run)
                    self.assertEqual(quiet.message, "", quiet)
                if wanted == PARTLY and verb != "info":  # verb whose page reports it
                    self.assertRegex(run.message, r"^weft: note: ")
                if wanted == NOTHING:
                    self.assertRegex(quiet.message, r"\Aweft: [^\n]+\n\Z")
                if told and verb in told:
                    self.assertRegex(run.text + run.message, told[verb])

    def test_whole(self):
        self.check("whole", [self.good, self.other], ANSWERED)
        self.check("tree", [self.top], ANSWERED)

    def test_discarded_by_the_tracer(self):
        change(self.good, discarded)
        self.check("discarded", [self.good, self.other], ANSWERED,
                   told={"events": "7 events lost", "info": "14", "index": "14"})

    def test_damaged(self):
        """Damage found when a trace is opened, and damage visible only in its events (verify does not read those)."""
        for damage, of_verb in ((truncated, {}), (bad_head, {}), (bad_event, {"verify": ANSWERED})):
            good = write_small(os.path.join(scratch(), "good"), 1)
            change(good, damage)
            self.check(damage.__name__, [good], PARTLY, **of_verb)
            self.check(damage.__name__ + " of two", [good, self.other], PARTLY, **of_verb)

    def test_one_of_two(self):
        nowhere, empty, bad = os.path.join(self.top, "nowhere"), scratch(), os.path.join(scratch(), "bad")
        small_trace.write(bad, metadata=BROKEN)
        for path, what in ((nowhere, "No such file"), (empty, "no trace here"), (bad, "metadata")):
            for args in ([self.good, path], [path, self.good]):
                self.check("one of two", args, PARTLY,
                           told=dict.fromkeys(VERBS, rf"weft: note: .*{os.path.basename(path)}: .*{what}"))
            self.check("named", [self.good, f"name={path}"], PARTLY,
                       told=dict.fromkeys(VERBS, rf"weft: note: name: .*{path}.*{what}"))

    def test_nothing(self):
        bad = os.path.join(scratch(), "bad")
        small_trace.write(bad, metadata=BROKEN)
        self.check("unreadable", [bad], NOTHING)
        self.check("not there", ["/nowhere", "/neither"], NOTHING)
        # Stores of a trace without events are sound, also according to verify.
        change(self.good, zeros)
        self.check("zeros", [self.good], NOTHING, verify=PARTLY)

    def test_nothing_wrong(self):
        """Empty answers, and additional data of a tracer or a newer format, are no damage."""
        run = self.ok("events", self.good, "--names", "sched_switch", "--where", "next_tid == 77")
        self.assertEqual(run.text, "")
        odd = os.path.join(scratch(), "odd")
        small_trace.write(odd, metadata=NAMELESS.replace("freq = ", "temperature = 21; freq = "))
        run = self.ok("events", odd)
        self.assertIn("weft: note: ", run.message)
        with open(os.path.join(odd, "ch_0"), "r+b") as f:  # different UUID in the first packet
            f.seek(4)
            f.write(bytes(16))
        run = self.ok("events", odd)
        self.assertIn("read all the same", run.message)

    def test_wrong_use(self):
        for verb in (*VERBS, "serve"):
            for wrong in (["--no-such-option"], ["--format"], ["--store"]):
                run = weft(verb, self.good, *wrong)
                self.assertEqual((run.code, run.out), (WRONG, b""), run)
                self.assertEqual(weft(verb, "-q", self.good, *wrong).code, WRONG)
            if verb != "serve":
                self.assertEqual(weft(verb).code, WRONG)
                run = weft(*self.arguments(verb, self.good, store=scratch()), "--format", "xml")
                self.assertEqual((run.code, run.out), (WRONG, b""), run)

    def test_full_disk(self):
        for damage, good in ((None, self.good), (truncated, write_small(os.path.join(scratch(), "good"), 1))):
            if damage:
                change(good, damage)
            store = scratch()
            weft("index", good, "--store", store)
            for command in [self.arguments(v, good, store=store) for v in VERBS] + [["--help"], ["--version"],
                                                                                  ["info", "--help"]]:
                with open("/dev/full", "wb") as full:
                    run = weft(*command, stdout=full)
                self.assertEqual(run.code, NOTHING, run)
                self.assertRegex(run.message, r"(?m)^weft: .*No space left")

    def test_closed_output(self):
        """Closed output: the reader of a pipe has seen enough: no message, and the status is that of the input."""
        damaged = write_small(os.path.join(scratch(), "good"), 1)
        change(damaged, truncated)
        for good, status in ((self.good, ANSWERED), (damaged, PARTLY)):
            store = scratch()
            weft("index", good, "--store", store)
            for verb in VERBS:
                reader, writer = os.pipe()
                os.close(reader)
                with os.fdopen(writer, "wb") as closed:
                    run = weft(*self.arguments(verb, good, store=store), "-q", stdout=closed)
                self.assertEqual((run.code, run.message), (status, ""), run)

    def test_no_output(self):
        """stdout that is not open at all is a write error, not a file of the program's."""
        run = subprocess.run(["sh", "-c", f'exec "{BIN}" events "{self.good}" >&-'], stderr=subprocess.PIPE,
                             check=False)
        self.assertEqual(run.returncode, NOTHING)
        self.assertRegex(run.stderr.decode(), r"\Aweft: [^\n]+\n\Z")

    def test_serve(self):
        """Servers with something to show start, report missing data, and end with 0 when stopped."""
        bad = os.path.join(scratch(), "bad")
        small_trace.write(bad, metadata=BROKEN)
        for path in (bad, os.path.join(self.top, "nowhere")):
            with Server(self.good, path) as server:
                x = server.first()
                self.assertEqual(x["indexingStatus"], "COMPLETED", x)
                self.assertEqual(x["nbEvents"], sum(len(p) for p in small_trace.PACKETS))
                if path == bad:
                    lines = server.model(f"/experiments/{x['UUID']}/outputs/table/weft.notes/lines",
                                         {"requested_table_index": 0, "requested_table_count": 10,
                                          "requested_table_column_ids": []})["lines"]
                    self.assertIn(path, str(lines))
                self.assertEqual(server.stop(), 0)
                if path != bad:
                    self.assertRegex(server.errors(), rf"weft: note: .*{path}.*No such file")
        run = weft("serve", "--listen", "127.0.0.1:0", os.path.join(self.top, "nowhere"), timeout=10)
        self.assertEqual((run.code, run.out), (NOTHING, b""), run)

    def test_help_says_it(self):
        for args in (["--help"], *([v, "--help"] for v in (*VERBS, "serve"))):
            text = self.ok(*args).text
            self.assertRegex(text, r"(?s)Exit status: 0 .*1 .*2 .*3 ", args)


class FailedStores(Case):
    """A host whose stores cannot be had: its part is missing and named, the others answer."""

    def setUp(self):
        self.top = scratch()
        self.good, self.bad = (write_small(os.path.join(self.top, name), i) for i, name in ((1, "good"), (2, "bad")))

    def no_directory(self):
        with open(os.path.join(self.bad, ".weft"), "wb"):
            pass

    def no_file(self):
        os.makedirs(os.path.join(self.bad, ".weft", "chunk.1", "in", "the", "way"))

    def test_others_answer(self):
        first = {r["host"]: r["running"] for r in self.json("threads", self.good, "--store", scratch(), "--limit", "1")}
        for damage in (self.no_directory, self.no_file):
            self.setUp()
            damage()
            for args in ([self.good, self.bad], [self.bad, self.good]):
                for command in (["threads"], ["sync"], ["index"], ["critpath", "--thread", "good:10"],
                                ["events", "--sync"]):
                    with self.subTest(damage=damage.__name__, command=command):
                        run = self.partly(*command, *args)
                        self.assertRegex(run.message, r"(?m)^weft: note: bad: [^\n]*\.weft")
                        self.assertNotIn("bad: bad:", run.message)
                        self.assertIn("good" if command[0] != "events" else "sched_switch", run.text)
                        quiet = weft(*command, *args, "-q")
                        self.assertEqual((quiet.code, quiet.message), (PARTLY, ""))
                rows = self.partly("threads", *args, "--format", "csv").text.splitlines()
                self.assertEqual({r.split(",")[0] for r in rows[1:]}, set(first))
                run = weft("critpath", *args, "--thread", "bad:10")
                self.assertEqual((run.code, run.out), (NOTHING, b""), run)
            for verb in (["threads"], ["sync"], ["index"], ["critpath", "--thread", "10"], ["events", "--sync"]):
                run = weft(*verb, self.bad, "-q")
                self.assertEqual(run.code, NOTHING, run)
                self.assertRegex(run.message, r"\Aweft: bad: [^\n]*\.weft[^\n]*\n\Z")
            self.assertEqual(self.ok("info", self.good, self.bad).message, "")

    def test_full_disk(self):
        """Full disk for one of two stores, simulated by a limit on the size of files."""
        long_trace.write(os.path.join(self.top, "long"), 3)
        store = scratch()
        run = weft("threads", os.path.join(self.top, "long"), self.good, "--store", store, file_size=20000)
        self.assertEqual(run.code, PARTLY, run)
        self.assertRegex(run.message, r"(?m)^weft: note: [^\n]*: cannot index: [^\n]*File too large")
        self.assertIn("good", run.text)
        self.assertEqual([n for d, _, names in os.walk(store) for n in names if ".tmp." in n], [])

    def test_serve(self):
        for damage in (self.no_directory, self.no_file):
            self.setUp()
            damage()
            with Server(self.good, self.bad, store="") as server:
                x = server.first()
                self.assertEqual(x["indexingStatus"], "COMPLETED", x)
                base = f"/experiments/{x['UUID']}/outputs"
                lines = server.model(f"{base}/table/weft.notes/lines",
                                     {"requested_table_index": 0, "requested_table_count": 10})["lines"]
                self.assertIn(os.path.join(self.bad, ".weft"), str(lines))
                tree = server.model(f"{base}/timeGraph/{THREAD_STATUS}/tree",
                                    {"requested_timerange": {"start": x["start"], "end": x["end"]}})
                self.assertIn("good", str(tree))
                self.assertEqual(x["nbEvents"], 2 * sum(len(p) for p in small_trace.PACKETS))  # the table has both
                self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    main()
