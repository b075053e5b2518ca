# SPDX-License-Identifier: MIT
"""Bad input, full disks, sudden death: a clear message or a marked partial result; no crash, no hang, bounded memory.
WEFT_ROBUST_FLIPS=N: number of damaged variants (10000 for a long run)."""
import json
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import small_trace
import weft_e2e
from weft_e2e import GIB, Case, have, new_dice, scenario, scratch, weft

FLIPS = int(os.environ.get("WEFT_ROBUST_FLIPS", 200 // weft_e2e.SLOWDOWN))
MEMORY = 2 * GIB
TEN_SECONDS = 10
WORKERS = 2


def places_to_cut(size):
    """Returns all places to cut; with a slow sanitizer, as many as there is time for, and the end."""
    step = weft_e2e.SLOWDOWN
    return sorted({*range(new_dice(12).randrange(step), size + 1, step), size})


def files_below(directory):
    return sorted(os.path.join(d, n) for d, _, names in os.walk(directory) for n in names)


def copy_writable(source, target):
    shutil.copytree(source, target, copy_function=shutil.copyfile, dirs_exist_ok=True)
    for d, _, _ in os.walk(target):
        os.chmod(d, 0o755)
    return target


def answer_of(run):
    """Returns a path's answer without its cost."""
    answer = json.loads(run.out)
    answer.pop("cost")
    return answer


class Damaged(Case):
    """Traces that are cut, changed, or lie about themselves."""

    def setUp(self):
        self.dir = scratch()
        self.trace = os.path.join(self.dir, "small")
        self.sizes = small_trace.write(self.trace)

    def try_all(self, trace, store, verbs=("info", "events", "critpath"), thread="10", **how):
        """Runs the verbs over a trace; each must survive. Returns the runs."""
        commands = {
            "info": ["info", trace],
            "events": ["events", trace],
            "threads": ["threads", trace, "--store", store],
            "sync": ["sync", trace, "--store", store, "--format", "json"],
            "critpath": ["critpath", trace, "--store", store, "--thread", thread, "--format", "json"],
        }
        runs = [weft(*commands[v], memory=MEMORY, timeout=TEN_SECONDS, **how) for v in verbs]
        for run in runs:
            self.survived(run)
            if run.code == 0 and run.args[0] == "critpath":
                self.check_path(json.loads(run.out), str(run.args))
        return runs

    def test_whole(self):
        """Sound small trace: all its events, no message on stderr; babeltrace2 agrees line by line."""
        run = self.ok("events", self.trace)
        self.assertEqual(run.message, "")
        self.assertEqual(len(run.text.splitlines()), sum(len(p) for p in small_trace.PACKETS))
        if have("babeltrace2"):
            other = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", self.trace], capture_output=True,
                                   text=True)
            self.assertEqual((other.returncode, other.stderr), (0, ""))
            self.assertEqual(run.text, other.stdout)

    def test_stream_cut_at_every_byte(self):
        whole = self.ok("events", self.trace).text.splitlines()
        with open(os.path.join(self.trace, "ch_0"), "rb") as f:
            stream = f.read()
        borders, events, at, n = {0: 0}, 0, 0, 0
        for size, packet in zip(self.sizes, small_trace.PACKETS):
            at, n = at + size, n + len(packet)
            borders[at] = n

        def cut(k):
            with tempfile.TemporaryDirectory(dir=self.dir) as d:
                small_trace.write(d, stream=stream[:k])
                events, path = self.try_all(d, os.path.join(d, "store"), ("events", "critpath"))
                lines = events.text.splitlines()
                sure = max(n for at, n in borders.items() if at <= k)
                self.assertEqual(lines, whole[:len(lines)], f"cut at {k}: not the first events of the whole")
                self.assertGreaterEqual(len(lines), sure, f"cut at {k}: events of whole packets are lost\n{events}")
                if k not in borders:
                    self.assertNotEqual(events.message, "", f"cut at {k}: nothing is said")
                return path.code

        with ThreadPoolExecutor(WORKERS) as pool:
            codes = list(pool.map(cut, places_to_cut(len(stream))))
        self.assertEqual(codes[-1], 0)

    def test_metadata_cut_at_every_byte(self):
        text = small_trace.METADATA.encode()
        last_event = text.rindex(b"event {")

        def cut(k):
            with tempfile.TemporaryDirectory(dir=self.dir) as d:
                small_trace.write(d, metadata=text[:k])
                (events,) = self.try_all(d, os.path.join(d, "store"), ("events",))
                if k < len(text.rstrip()) - 1:  # the last semicolon is not missed
                    self.assertNotEqual(events.message, "", f"cut at {k}: nothing is said")
                if last_event < k:  # missing only the last event class: the events before its first one are good
                    self.assertIn("sched_switch", events.text, f"cut at {k}\n{events}")

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(cut, places_to_cut(len(text))))

    def test_packetized_metadata_cut(self):
        text = small_trace.packetized(small_trace.METADATA)
        small_trace.write(self.trace, metadata=text)
        self.assertEqual(len(self.ok("events", self.trace).text.splitlines()), sum(len(p) for p in small_trace.PACKETS))
        for k in list(range(0, 64)) + list(range(64, len(text), 97)):
            small_trace.write(self.trace, metadata=text[:k])
            self.try_all(self.trace, self.dir, ("events",))

    def flip(self, source, n, verbs, seed, thread="10"):
        """n variants of a trace, each with one to eight bits changed in one of its files."""
        problems, first = [], weft_e2e.seed(0)

        def some(worker):
            dice = random.Random(first + seed * 100 + worker)
            place = copy_writable(source, os.path.join(self.dir, f"flip{seed}-{worker}"))
            files = [p for p in files_below(place) if os.path.getsize(p)]
            for case in range(worker, n, WORKERS):
                if len(problems) >= 5:
                    return
                path = dice.choice(files)
                with open(path, "rb") as f:
                    good = f.read()
                bad = bytearray(good)
                for _ in range(dice.choice((1, 1, 1, 2, 8))):
                    # Heads of files and packets decide more than their middles.
                    at = dice.randrange(min(len(bad), 256)) if dice.random() < 0.3 else dice.randrange(len(bad))
                    bad[at] ^= 1 << dice.randrange(8)
                with open(path, "wb") as f:
                    f.write(bad)
                store = os.path.join(self.dir, f"store{seed}-{worker}")
                try:
                    self.try_all(place, store, (verbs[case // WORKERS % len(verbs)],), thread)
                except AssertionError as problem:
                    keep = tempfile.mkdtemp(prefix="weft-flip-")
                    shutil.copytree(place, keep, dirs_exist_ok=True)
                    problems.append(f"{problem}\n  the damaged trace is kept in {keep}")
                finally:
                    shutil.rmtree(store, ignore_errors=True)
                    with open(path, "wb") as f:
                        f.write(good)

        with ThreadPoolExecutor(WORKERS) as pool:
            list(pool.map(some, range(WORKERS)))
        self.assertEqual(problems, [], "\n".join(problems))

    def test_bits_flipped(self):
        self.flip(self.trace, FLIPS - FLIPS // 4, ("events", "critpath", "info", "threads"), 1)

    def test_bits_flipped_in_recorded_traces(self):
        self.flip(scenario("three-tier"), FLIPS // 4, ("critpath", "events", "sync", "info"), 2, "client:204")

    def test_metadata_that_asks_for_too_much(self):
        good = small_trace.METADATA
        head, tail = good.split("event { name", 1)
        tail = "event { name" + tail

        def extra(text):
            return head + text + tail

        deep = 20000
        cases = {
            "an integer of 2^32 bits": extra("typealias integer { size = 4294967296; align = 8; } := huge;"),
            "an integer of 0 bits": extra("typealias integer { size = 0; align = 8; } := none;"),
            "an alignment of 2^63": extra("typealias integer { size = 8; align = 9223372036854775808; } := wide;"),
            "an alignment of 3": extra("typealias integer { size = 8; align = 3; } := odd;"),
            "a number of 40 digits": extra("typealias integer { size = " + "9" * 40 + "; } := long;"),
            "an array of 2^62": good.replace("_vtids[ __vtids_length ]", "_vtids[4611686018427387904]"),
            "an array of -1": good.replace("_vtids[ __vtids_length ]", "_vtids[-1]"),
            "arrays of arrays": good.replace("_vtids[ __vtids_length ]", "_vtids" + "[65536]" * 8),
            "a length that does not exist": good.replace("_vtids[ __vtids_length ]", "_vtids[ nowhere ]"),
            "a length that is a string": good.replace("uint8_t __vtids_length", "string __vtids_length"),
            "structs in structs": extra("struct { " * deep + "uint8_t x;" + " } y;" * deep),
            "variants in variants": extra("variant <a> { " * deep + "uint8_t x;" + " } y;" * deep),
            "sequences of sequences": good.replace("int32_t _vtids[ __vtids_length ]",
                                                   "int32_t _vtids" + "[ __vtids_length ]" * 5000),
            "brackets in brackets": extra("typealias integer { size = " + "(" * deep + "8" + ")" * deep
                                          + "; } := nested;"),
            "minus minus minus": extra("typealias integer { size = " + "-" * deep + "8; } := negative;"),
            "blocks left open": head + "struct {" * deep,
            "scopes in scopes": extra("trace { " * deep),
            "a struct that holds itself": extra("struct loop { struct loop inner; }; "),
            "an alias of itself": extra("typealias ring := ring; "),
            "aliases in a circle": extra("typealias one := two; typealias two := one; "),
            "a typedef of itself": extra("typedef self self; "),
            "an enumeration backwards": extra("enum : uint8_t { wrong = 9 ... 3 } ; "),
            "an enumeration of all numbers": extra("typealias enum : uint64_t { all = 0 ... 18446744073709551615, over "
                                                   "= 18446744073709551616 } := e;"),
            "an enumeration with many labels": extra("typealias enum : uint32_t { "
                                                     + ", ".join(f"l{i}" for i in range(100000)) + " } := many;"),
            "a clock of 0 Hz": good.replace("freq = 1000000000", "freq = 0"),
            "a clock of 2^64 Hz": good.replace("freq = 1000000000", "freq = 18446744073709551615"),
            "a clock in the far future": good.replace("offset = 1700000000000000000", "offset = 9223372036854775807"),
            "a comment without end": extra("/* " + "*" * 100000),
            "a string without end": extra('env { x = "' + "y" * 100000),
            "a string with NUL": extra('env { x = "a\0b"; };'),
            "bytes that are no text": extra("\x01\x80\xff env { };"),
            "the same event id twice": good + tail,
            "a hundred thousand event classes": good
            + "".join(f'event {{ name = "e{i}"; id = {i}; stream_id = 0; }};' for i in range(4, 100004)),
            "an event id of 2^64": extra('event { name = "x"; id = 18446744073709551616; stream_id = 0; };'),
            "a stream without a header": good.replace("event.header := struct header;", ""),
            "no trace block": good[good.index("env {"):],
            "byte order of the moon": good.replace("byte_order = le", "byte_order = moon"),
            "nothing at all": "",
            "only the signature": "/* CTF 1.8 */",
            "another version": good.replace("minor = 8", "minor = 9").replace("CTF 1.8", "CTF 2.9"),
        }
        for what, text in cases.items():
            with self.subTest(what):
                small_trace.write(self.trace, metadata=text.encode("latin-1"))
                self.try_all(self.trace, os.path.join(self.dir, "store"))

    def test_streams_that_lie(self):
        events = small_trace.PACKETS[0]
        good = small_trace.packet(0, events)
        second = small_trace.packet(1, small_trace.PACKETS[1])
        many = b"".join([struct.pack("<HI", 3, 7000), small_trace.comm("alpha"), struct.pack("<ii", 10, 10),
                         small_trace.comm("beta"), struct.pack("<iB", 11, 255)])
        cases = {
            "a packet of 2^60 bytes": small_trace.packet(0, events, packet_bits=1 << 63),
            "a packet of 2^61 bytes": small_trace.packet(0, events, packet_bits=(1 << 64) - 8),
            "content of 2^60 bytes": small_trace.packet(0, events, content_bits=1 << 63),
            "content and packet of 2^60 bytes": small_trace.packet(0, events, packet_bits=1 << 63,
                                                                   content_bits=1 << 63),
            "more content than packet": small_trace.packet(0, events, content_bits=len(good) * 8 + 8),
            "a packet of no bytes": small_trace.packet(0, events, packet_bits=0),
            "a packet and content of no bytes": small_trace.packet(0, events, packet_bits=0, content_bits=0),
            "a packet smaller than its head": small_trace.packet(0, events, packet_bits=64, content_bits=64),
            "a packet of 7 bits": small_trace.packet(0, events, packet_bits=7),
            "content ends within an event": small_trace.packet(0, events, content_bits=len(good) * 8 - 3),
            "an unknown event": good + second[:80] + struct.pack("<HI", 77, 1) + second[86:],
            "an unknown stream": good + second[:20] + struct.pack("<I", 9) + second[24:],
            "another uuid": good + second[:4] + bytes(16) + second[20:],
            "a wrong magic number": good + b"\0\0\0\0" + second[4:],
            "a sequence longer than the packet": small_trace.packet(0, [(7000, (3, many[6:]))]),
            "a string without end": small_trace.packet(0, [(7000, (2, b"x" * 300))]),
            "times that run backwards": second + good,
            "a packet that ends before it begins": good[:24] + struct.pack("<QQ", 1 << 40, 1) + good[40:],
            "the end of time": good[:24] + struct.pack("<QQ", (1 << 64) - 2, (1 << 64) - 1) + good[40:],
            "zeros": bytes(5000),
            "ones": b"\xff" * 5000,
            "noise": new_dice(3).randbytes(5000),
            "nothing": b"",
        }
        for what, stream in cases.items():
            with self.subTest(what):
                small_trace.write(self.trace, stream=stream)
                runs = self.try_all(self.trace, os.path.join(self.dir, "store"))
                if stream.startswith(good):
                    self.assertGreaterEqual(len(runs[1].text.splitlines()), len(events),
                                            f"the good packet before is used\n{runs[1]}")
                if "2^6" in what or what in ("a wrong magic number", "zeros", "noise"):
                    self.assertNotEqual(runs[1].message, "", f"{what}: nothing is said")

    def test_index_files_that_lie(self):
        source = os.path.join(scenario("three-tier"), "web", "kernel")
        place = copy_writable(source, os.path.join(self.dir, "web"))
        whole = self.ok("events", place).out
        path = os.path.join(place, "index", "ch_0.idx")
        with open(path, "rb") as f:
            good = f.read()
        dice = new_dice(5)
        for what, text in (("cut", good[:len(good) // 2 + 3]), ("empty", b""), ("noise", dice.randbytes(len(good))),
                           ("twice", good + good), ("huge", good[:16] + b"\xff" * (len(good) - 16)), ("absent", None)):
            with self.subTest(what):
                os.unlink(path)
                if text is not None:
                    with open(path, "wb") as f:
                        f.write(text)
                run = self.ok("events", place)
                self.assertEqual(run.out, whole, f"index file {what}: the packets are found by scanning")


class NoTrace(Case):
    """Arguments that are not traces."""

    def refused(self, *args, hint, **how):
        run = weft(*args, memory=MEMORY, timeout=TEN_SECONDS, **how)
        self.survived(run)
        self.assertNotEqual(run.code, 0, run)
        self.assertEqual(len(run.message.strip().splitlines()), 1, run)
        self.assertIn(hint, run.message)
        return run

    def test_directory_without_trace(self):
        empty = scratch()
        for verb in ("info", "events", "index", "sync"):
            self.refused(verb, empty, hint=empty)
        with open(os.path.join(empty, "notes.txt"), "w") as f:
            f.write("no trace")
        self.refused("info", empty, hint=empty)

    def test_not_there(self):
        self.refused("info", "/no/such/place", hint="/no/such/place")

    def test_a_file(self):
        self.refused("info", __file__, hint=os.path.basename(__file__))

    def test_a_directory_named_metadata(self):
        d = scratch()
        os.makedirs(os.path.join(d, "metadata"))
        self.refused("info", d, hint=d)

    def test_directories_in_a_circle(self):
        d = scratch()
        small_trace.write(os.path.join(d, "trace"))
        os.symlink("..", os.path.join(d, "trace", "up"))
        run = weft("events", d, memory=MEMORY, timeout=TEN_SECONDS)
        self.survived(run)
        self.assertEqual(len(run.text.splitlines()), sum(len(p) for p in small_trace.PACKETS), run)

    def test_unreadable_files(self):
        for victim in ("ch_0", "metadata"):
            with self.subTest(victim):
                d = scratch()
                small_trace.write(d)
                path = os.path.join(d, victim)
                os.unlink(path)
                os.symlink(victim, path)  # link to itself, which not even root can open
                run = weft("events", d, memory=MEMORY, timeout=TEN_SECONDS)
                self.survived(run)
                self.assertIn(victim if victim == "ch_0" else d, run.message, run)

    def test_without_permission(self):
        d = scratch()
        small_trace.write(d)
        os.chmod(d, 0o755)
        os.chmod(os.path.join(d, "ch_0"), 0)
        how = {}
        if os.geteuid() == 0:
            program = os.path.join(scratch(), "weft")
            shutil.copy(weft_e2e.BIN, program)
            os.chmod(os.path.dirname(program), 0o755)
            os.chmod(program, 0o755)
            how = {"user": 65534, "program": program, "cwd": "/"}
        run = weft("events", d, memory=MEMORY, timeout=TEN_SECONDS, **how)
        self.survived(run)
        self.assertRegex(run.message, r"ch_0.*[Pp]ermission denied", run)

    def test_special_files(self):
        d = scratch()
        small_trace.write(d)
        os.mkfifo(os.path.join(d, "ch_1"))  # opening it would wait for ever
        run = weft("events", d, memory=MEMORY, timeout=TEN_SECONDS)
        self.survived(run)
        self.assertEqual(len(run.text.splitlines()), sum(len(p) for p in small_trace.PACKETS), run)

    def test_full_output(self):
        with open("/dev/full", "wb") as full:
            run = weft("events", scenario("three-tier"), stdout=full, timeout=TEN_SECONDS)
        self.assertEqual(run.code, 1, run)
        self.assertRegex(run.message, r"^weft: .*No space left")

    def test_closed_output(self):
        """`weft events … | head -1` is no failure."""
        for _ in range(3):
            child = subprocess.Popen([weft_e2e.BIN, "events", scenario("three-tier")], stdout=subprocess.PIPE,
                                     stderr=subprocess.PIPE)
            self.assertTrue(child.stdout.readline())
            child.stdout.close()
            message = child.stderr.read()
            child.stderr.close()
            self.assertEqual(child.wait(timeout=60), 0, message)
            self.assertEqual(message, b"")


class Stores(Case):
    """Indexing that fails or dies, and stores that are damaged: the next run repairs, and answers never change."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace = scenario("three-tier")
        cls.query = ("critpath", cls.trace, "--thread", "client:204", "--reference", "client", "--begin",
                     1795225078293742990,
                     "--end", 1795225078379306775, "--format", "json")
        store = scratch()
        run = weft(*cls.query, "--store", store)
        assert run.code == 0, run
        cls.expected = answer_of(run)
        cls.store_bytes = sum(os.path.getsize(p) for p in files_below(store))
        cls.largest = max(os.path.getsize(p) for p in files_below(store))

    def repaired(self, store):
        """`index` on what is left succeeds, the stores are sound, and the answer is the known one."""
        self.ok("index", self.trace, "--store", store)
        self.ok("verify", self.trace, "--store", store)
        self.assertEqual(answer_of(self.ok(*self.query, "--store", store)), self.expected)

    def test_index_twice(self):
        store = scratch()
        self.ok("index", self.trace, "--store", store)
        before = {p: (os.stat(p).st_mtime_ns, os.stat(p).st_ino) for p in files_below(store)}
        self.assertTrue(before)
        self.ok("index", self.trace, "--store", store)
        self.assertEqual({p: (os.stat(p).st_mtime_ns, os.stat(p).st_ino) for p in files_below(store)}, before,
                         "nothing changed: nothing is built")

    def test_file_size_limits(self):
        """A disk that is full at any point, seen through a limit on the size of files."""
        for size in sorted({0, 1, 100, 4096, self.largest // 3, self.largest // 2, self.largest - 1}):
            with self.subTest(size=size):
                store = scratch()
                run = weft("index", self.trace, "--store", store, file_size=size, timeout=60)
                self.survived(run)
                self.assertEqual(run.code, 3 if "\n" in run.text.strip() else 1, run)  # hosts that are small enough
                self.assertIn(store, run.message)
                self.repaired(store)

    def test_full_disk(self):
        place = scratch()
        if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16k", "none", place],
                                          capture_output=True).returncode:
            self.skipTest("cannot mount a small file system here")
        try:
            run = weft("index", self.trace, "--store", os.path.join(place, "store"), timeout=60)
            self.survived(run)
            self.assertEqual(run.code, 1, run)
            self.assertIn("No space left", run.message)
            grown = subprocess.run(["mount", "-o", f"remount,size={self.store_bytes * 3 + (1 << 20)}", place],
                                   capture_output=True)
            self.assertEqual(grown.returncode, 0, grown.stderr)
            self.repaired(os.path.join(place, "store"))
        finally:
            subprocess.run(["umount", "-l", place], check=True)

    def test_store_that_cannot_be_written(self):
        run = weft("index", self.trace, "--store", "/proc/self/nowhere", timeout=60)
        self.survived(run)
        self.assertEqual(run.code, 1, run)

    def test_killed_while_indexing(self):
        store = scratch()
        begin = time.monotonic()
        self.ok("index", self.trace, "--store", store)
        whole = time.monotonic() - begin
        killed, dice = 0, new_dice(7)
        for i in range(40):
            shutil.rmtree(store)
            os.makedirs(store)
            child = subprocess.Popen([weft_e2e.BIN, "index", self.trace, "--store", store], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            time.sleep(whole * dice.uniform(0, 1.1))
            child.send_signal(signal.SIGKILL)
            if child.wait() == -signal.SIGKILL:
                killed += 1
            else:
                whole *= 0.8  # adapted, because the machine's speed varies
            if i % 2:
                self.assertEqual(answer_of(self.ok(*self.query, "--store", store)), self.expected)
            else:
                self.repaired(store)
            self.assertEqual([p for p in files_below(store) if ".tmp." in p and "clocks" not in p], [],
                             "left behind by the one that was killed")
        self.assertGreater(killed, 5, "too few runs were killed before they ended")

    def test_damaged_stores(self):
        """Damaged stores: every file, changed at several places or cut: `verify` names it, and the next answer is right
        again."""
        store, dice = scratch(), new_dice(11)
        self.ok(*self.query, "--store", store)
        files = [p for p in files_below(store) if os.path.basename(p) != "lock"]
        self.assertGreaterEqual(len(files), 7)  # stores of three hosts, and the clocks
        for path in files:
            size = os.path.getsize(path)
            for damage in ("head", "middle", "end", "cut", "empty"):
                with self.subTest(file=os.path.relpath(path, store), damage=damage):
                    with open(path, "rb") as f:
                        data = bytearray(f.read())
                    at = {"head": dice.randrange(min(16, size)), "middle": dice.randrange(size),
                          "end": size - 1}.get(damage)
                    if at is not None:
                        data[at] ^= 1 << dice.randrange(8)
                    else:
                        data = data[:size // 2] if damage == "cut" else b""
                    with open(path, "wb") as f:
                        f.write(data)
                    run = weft("verify", self.trace, "--store", store)
                    self.survived(run)
                    self.assertEqual(run.code, 3, f"the damage is not seen\n{run}")
                    self.assertIn(os.path.basename(path), run.text + run.message)
                    self.assertEqual(answer_of(self.ok(*self.query, "--store", store)), self.expected)
                    self.ok("verify", self.trace, "--store", store)

    def test_two_at_once(self):
        store = scratch()
        children = [subprocess.Popen([weft_e2e.BIN, "index", self.trace, "--store", store], stdout=subprocess.DEVNULL,
                                     stderr=subprocess.PIPE)
                    for _ in range(4)]
        for child in children:
            _, message = child.communicate(timeout=60 * weft_e2e.SLOWDOWN)
            self.assertEqual(child.returncode, 0, message)
        self.repaired(store)


class Arguments(Case):
    def test_wrong_use(self):
        small = scratch()
        small_trace.write(small)
        run = weft()
        self.assertEqual((run.code, run.text), (2, ""), run)
        self.assertIn("Usage: weft", run.message)
        run = weft("events", small, "--where", "(" * 100000, timeout=TEN_SECONDS, memory=MEMORY)
        self.survived(run)
        self.assertNotEqual(run.code, 0, run)
        self.assertLess(len(run.message), 2000)
        for args in (("nonsense",), ("info",), ("info", "--nonsense"), ("events", small, "--begin", "yesterday"),
                     ("events", small, "--begin"),
                     ("events", small, "--where", "((("), ("events", small, "--where", "tid = = 1"),
                     ("events", small, "--format", "xml"), ("events", small, "--cpu", "many"), ("critpath", small),
                     ("critpath", small, "--thread", "10", "--begin", "5", "--end", "4")):
            with self.subTest(args=[a[:40] for a in args]):
                run = weft(*args, timeout=TEN_SECONDS, memory=MEMORY)
                self.survived(run)
                self.assertEqual(run.code, 2, run)

    def test_help(self):
        run = self.ok("--help")
        verbs = re.findall(r"(?m)^ +(info|events|index|threads|sync|critpath|verify)\b", run.text)
        self.assertEqual(len(set(verbs)), 7, run.text)
        for verb in set(verbs):
            self.assertIn("--format" if verb not in ("index", "verify") else verb, self.ok(verb, "--help").text)


if __name__ == "__main__":
    weft_e2e.main()
