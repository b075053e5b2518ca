# SPDX-License-Identifier: MIT
"""Command lines: senseless numbers, traces named twice, pieces of one session named one by one, hosts without a
name."""
import json
import os
import re
import shlex
import shutil
import subprocess

import small_trace
from span_world import World
from tsp_server import Server
from weft_e2e import BIN, Case, have, load, main, need, new_dice, scenario, scratch, weft

NAMELESS = small_trace.METADATA.replace('hostname = "small"; ', "")


def write_small(directory, number, metadata=NAMELESS):
    """A small trace of its own: the number makes its UUID."""
    uuid = bytes([number]) * 16
    text = metadata.replace("10111213-1415-1617-1819-1a1b1c1d1e1f",
                            "-".join(uuid.hex()[a:b] for a, b in ((0, 8), (8, 12), (12, 16), (16, 20), (20, 32))))
    small_trace.write(directory, metadata=text)
    stream = os.path.join(directory, "ch_0")
    with open(stream, "rb") as f:
        data = f.read()
    with open(stream, "wb") as f:
        f.write(data.replace(small_trace.UUID, uuid))
    return directory


USER_SPACE = NAMELESS.replace('domain = "kernel"', 'domain = "ust"').replace("sched_", "app:")
SMALL_EVENTS = sum(len(p) for p in small_trace.PACKETS)


class Numbers(Case):
    def setUp(self):
        self.trace = os.path.join(scratch(), "small")
        small_trace.write(self.trace)

    def test_refused(self):
        for verb, option in (("events", "--cpu"), ("events", "--tid"), ("events", "--limit"), ("threads", "--limit"),
                             ("index", "--threads")):
            for value in ("-1", "-9223372036854775808", "9223372036854775808", "99999999999999999999999", "1x", "1 ",
                          " 1", "1.5", "1e3", "", "0x", "+-1"):
                run = weft(verb, self.trace, f"{option}={value}")
                self.assertEqual(run.code, 2, run)
                self.assertRegex(run.message,
                                 rf"^weft: {verb}: {option} \"{value.replace('+', '.')}\": a whole number.* is "
                                 rf"expected\n$", run)
                self.assertEqual(run.out, b"", run)
        for verb, option, value in (("events", "--cpu", "2147483648"), ("events", "--tid", "4294967297"),
                                    ("index", "--threads", "0"),
                                    ("index", "--threads", "100000")):
            run = weft(verb, self.trace, option, value)
            self.assertEqual((run.code, run.out), (2, b""), run)
            self.assertRegex(run.message, r"a whole number from \d+ to \d+ is expected\n$", run)

    def test_taken(self):
        """A leading 0 does not make a number octal; 0x makes it hexadecimal."""
        for value, lines in (("0", 0), ("3", 3), ("010", 10), ("0x5", 5), ("9223372036854775807", SMALL_EVENTS)):
            self.assertEqual(len(self.ok("events", self.trace, "--limit", value).text.splitlines()), lines)

    def test_times(self):
        for value in ("12x", "99999999999999999999", "+1", "+1.5 parsecs", "", "-", "2026-13-01", "25:00:00"):
            run = weft("events", self.trace, f"--begin={value}")
            self.assertEqual(run.code, 2, run)
            self.assertRegex(run.message, r"^weft: --begin: time .*\n$", run)

    def test_threads_by_number(self):
        """Numbers too large for a tid name no thread, not another one; the error says that nothing was found."""
        for value in ("4294967306", "18446744073709551626", "99999999999999999999", "nobody"):
            run = weft("threads", self.trace, "--thread", value, "--store", scratch())
            self.assertEqual(run.code, 0, run)
            self.assertIn(f"no thread {value}", run.message, run)
            run = weft("critpath", self.trace, "--thread", value, "--store", scratch())
            self.assertEqual((run.code, run.out), (1, b""), run)
            self.assertIn(f"{value}: no such thread", run.message, run)

    def test_addresses_and_sizes(self):
        for options in (["--listen", "127.0.0.1:65536"], ["--listen", "127.0.0.1:-1"], ["--listen", "127.0.0.1:80x"],
                        ["--listen", "127.0.0.1:"],
                        ["--max-upload", "-1"], ["--max-upload", "1Q"], ["--max-upload", "1GG"], ["--max-upload", ""],
                        ["--max-upload", "99999999999999999999"]):
            run = weft("serve", self.trace, *options, timeout=10)
            self.assertEqual(run.code, 2, run)
            self.assertRegex(run.message, rf"^weft: .*{options[0]}.*\n$", run)


class Twice(Case):
    """Traces given twice, by whatever names of a directory, count once, with a note."""

    def setUp(self):
        self.trace = scenario("three-tier")
        self.events = self.ok("events", self.trace).out
        self.links = scratch()
        os.symlink(os.path.join(self.trace, "client"), os.path.join(self.links, "link"))

    def counts_once(self, *args, told):
        run = self.ok("info", *args, "--format", "json")
        rows = json.loads(run.out)
        self.assertEqual([r["host"] for r in rows], ["client", "db", "web"], run)
        run = self.ok("events", *args)
        self.assertEqual(run.out, self.events)
        notes = [line for line in run.message.splitlines() if "count" in line and "once" in line]
        self.assertEqual(len(notes), 1, run)
        self.assertIn(told, notes[0])
        return run

    def test_same_path(self):
        self.counts_once(self.trace, self.trace, told=self.trace)
        self.counts_once(self.trace, self.trace + "//", told=self.trace)

    def test_part_after_and_before_the_whole(self):
        client = os.path.join(self.trace, "client")
        self.counts_once(self.trace, client, told=client)
        self.counts_once(client, self.trace, told=self.trace)
        self.counts_once(self.trace, os.path.join(client, "kernel"), told=client)
        self.counts_once(self.trace, os.path.join(client, "kernel", "metadata"), told=client)

    def test_symlink(self):
        self.counts_once(self.trace, self.links, told=self.links)
        self.counts_once(self.trace, os.path.join(self.links, "link"), told="link")

    def test_two_names_for_one(self):
        """The first name stands."""
        run = self.ok("index", f"a={self.trace}/client", f"b={self.trace}/client", "--store", scratch(), "--format",
                      "json")
        rows = json.loads(run.out)
        self.assertEqual([(r["host"], r["events"]) for r in rows], [("a", 13297)])
        self.assertIn("b=", run.message)

    def test_copies_with_names_are_two_hosts(self):
        """Two names for two copies make two hosts."""
        copy = os.path.join(scratch(), "copy")
        shutil.copytree(os.path.join(self.trace, "client"), copy)
        rows = self.json("index", f"a={self.trace}/client", f"b={copy}", "--store", scratch())
        self.assertEqual([(r["host"], r["events"]) for r in rows], [("a", 13297), ("b", 13297)])

    def test_copies_without_names_are_one_trace(self):
        copy = os.path.join(scratch(), "copy")
        shutil.copytree(os.path.join(self.trace, "client"), copy)
        rows = self.json("index", f"{self.trace}/client", copy, "--store", scratch())
        self.assertEqual([(r["host"], r["events"]) for r in rows], [("client", 13297)])


class Unreadable(Case):
    """A trace that cannot be opened, or is missing, does not affect the others (test_status.py: the other verbs)."""

    def test_one_of_several(self):
        top = scratch()
        good, bad = write_small(os.path.join(top, "good"), 1), os.path.join(top, "bad")
        small_trace.write(bad, metadata="/* CTF 1.8 */ trace { major = 1;")
        for args in ([top], [good, bad], [bad, good]):
            for verb in ("info", "events"):
                run = self.partly(verb, *args)
                self.assertRegex(run.message, r"^weft: note: bad: .*metadata.*\n$", run)
            self.assertEqual(len(run.text.splitlines()), SMALL_EVENTS)
        run = weft("info", bad)
        self.assertEqual((run.code, run.out), (1, b""), run)
        for path in (os.path.join(top, "nowhere"), scratch()):
            run = weft("events", good, path)
            self.assertEqual((run.code, len(run.text.splitlines())), (3, SMALL_EVENTS), run)
            self.assertIn(path, run.message)


class Pieces(Case):
    """Rotation archives and snapshots, named one by one, are the trace that they are below one path."""

    def pieces(self, name):
        top = scenario(name)
        found = sorted(d for d, _, files in os.walk(top) if "metadata" in files)
        self.assertGreater(len(found), 1)
        return top, found

    def test_archives(self):
        top, pieces = self.pieces("rotated")
        whole = self.ok("events", top)
        self.assertEqual(self.ok("events", *pieces).out, whole.out)
        self.assertEqual(self.ok("events", *reversed(pieces)).out, whole.out)
        self.assertEqual(len(whole.text.splitlines()), 20827)
        if have("babeltrace2"):
            text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", *pieces], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL).stdout
            # Differences are allowed only in the order of events with equal times, and in empty strings, which
            # babeltrace2 does not print as such.
            self.assertEqual(sorted(line.split(":")[0] for line in text.decode().splitlines()),
                             sorted(line.split(":")[0] for line in whole.text.splitlines()))

    def test_one_host_one_store(self):
        """The order of the arguments changes nothing, nor does naming the directory above."""
        top, pieces = self.pieces("rotated")
        store = scratch()
        for args, done in ((pieces, "built"), (list(reversed(pieces)), "up to date"), ([top], "up to date")):
            rows = self.json("index", *args, "--store", store)
            self.assertEqual([(r["host"], r["events"], r["done"]) for r in rows], [("solo", 20827, done)])
        self.assertEqual(weft("verify", *pieces, "--store", store).code, 0)

    def test_snapshots(self):
        top, pieces = self.pieces("snapshot")
        self.assertEqual(self.ok("events", *pieces).out, self.ok("events", top).out)

    def test_a_new_archive(self):
        """A session that went on is read again, as a whole; nothing is done twice."""
        top, pieces = self.pieces("rotated")
        session, store = scratch(), scratch()
        for piece in pieces[:-1]:
            shutil.copytree(piece, os.path.join(session, os.path.relpath(piece, top)))

        def index():
            run = self.ok("index", session, "--store", store, "--format", "json")
            (row,) = json.loads(run.out)
            return row["events"], row["done"], "indexed in" in run.message

        before = index()
        self.assertEqual(before[1:], ("built", True))
        self.assertEqual(index(), (before[0], "up to date", False))
        shutil.copytree(pieces[-1], os.path.join(session, os.path.relpath(pieces[-1], top)))
        self.assertEqual(index(), (20827, "built", True))
        self.assertEqual(index(), (20827, "up to date", False))
        self.assertLess(before[0], 20827)


class Names(Case):
    """Traces without a host name are named by their directories."""

    def hosts(self, *args):
        return [r["host"] for r in self.json("info", *args)]

    def tree(self, *paths):
        top = scratch()
        for i, path in enumerate(paths):
            write_small(os.path.join(top, path), 32 + i)
        return top

    def test_directory_that_tells_them_apart(self):
        for paths, names in (
                (["scenario/left/kernel", "scenario/right/kernel"], ["left", "right"]),
                (["scenario/left/trace", "scenario/right/trace"], ["left", "right"]),
                (["run/left", "run/right"], ["left", "right"]),
                (["left/auto-20261121-013145/kernel", "right/auto-20261121-013145/kernel"], ["left", "right"]),
                (["run-1/left/kernel", "run-1/right/kernel", "run-2/left/kernel"],
                 ["run-1/left", "right", "run-2/left"]),
                (["left/archives/20261121T013907+0000-20261121T013910+0000-0/kernel", "right/kernel"],
                 ["left", "right"])):
            top = self.tree(*paths)
            self.assertEqual(self.hosts(top), names)
            self.assertEqual(self.hosts(*(os.path.join(top, p) for p in paths)), names)

    def test_one_alone(self):
        top = self.tree("scenario/left/kernel")
        for path in ("scenario/left/kernel", "scenario/left", "scenario", "scenario/left/kernel/",
                     "scenario/left/kernel/metadata"):
            self.assertEqual(self.hosts(os.path.join(top, path)), ["left"])
        for inside in ("scenario/left/kernel", "scenario/left"):
            run = weft("info", ".", "--format", "csv", cwd=os.path.join(top, inside))
            self.assertEqual(run.text.splitlines()[1].split(",")[0], "left", run)

    def test_a_name_given_stands(self):
        top = self.tree("left/kernel", "right/kernel")
        self.assertEqual(self.hosts(f"front={top}/left", f"{top}/right"), ["front", "right"])

    def test_told_and_untold(self):
        """Hosts with a recorded name keep it; others that would get the same name get another one."""
        top = self.tree("small/kernel")
        write_small(os.path.join(top, "other", "kernel"), 99, small_trace.METADATA)
        self.assertEqual(sorted(self.hosts(top)), ["small", "small#2"])

    def test_events_and_threads_use_the_names(self):
        top = self.tree("left/kernel", "right/kernel")
        rows = self.json("threads", top, "--store", scratch())
        self.assertEqual({r["host"] for r in rows}, {"left", "right"})
        lines = self.ok("events", top, "--format", "csv").text.splitlines()[1:]
        self.assertEqual({line.split(",")[1] for line in lines}, {"left", "right"})

    def test_user_space_beside_the_kernel(self):
        """Traces of one session's directory are of one host, whatever lies between."""
        for given, name in (("", "left"), ("front=", "front")):
            top = self.tree("left/kernel")
            write_small(os.path.join(top, "left", "ust", "uid", "1000", "64-bit"), 98, USER_SPACE)
            write_small(os.path.join(top, "left", "ust", "pid", "app-77-20261121-013145", "64-bit"), 97, USER_SPACE)
            self.assertEqual(self.hosts(f"{given}{top}"), [name] * 3)
            store = scratch()
            self.assertEqual({r["host"] for r in self.json("index", f"{given}{top}", "--store", store)}, {name})
            self.assertEqual(weft("verify", top, "--store", store).code, 0)
            lines = self.ok("events", f"{given}{top}", "--format", "csv").text.splitlines()[1:]
            self.assertEqual({line.split(",")[1] for line in lines}, {name})

    def test_recorded_names(self):
        self.assertEqual(self.hosts(scenario("three-tier")), ["client", "db", "web"])


class Serving(Case):
    """Servers that cannot start print one line with the reason and a remedy; those that start report unexpected
    conditions."""

    def test_refused(self):
        file = os.path.join(scratch(), "file")
        with open(file, "w", encoding="ascii"):
            pass
        for args, told in (
                (["/nowhere"], "/nowhere: No such file or directory"),
                ([scratch()], "no trace here"),
                ([file], "no trace here"),
                (["--trace-root", file], f"--trace-root {file}: give a directory"),
                (["--trace-root", "/nowhere"], "--trace-root /nowhere: No such file or directory"),
                (["--state", file], "--state: a directory is needed that this user can write"),
                (["--state", "/proc/nowhere"], "--state: a directory is needed that this user can write"),
                (["--listen", "203.0.113.1:1"], "--listen ADDRESS:PORT")):
            run = weft("serve", "--listen", "127.0.0.1:0", *args, timeout=10)
            self.assertIn(run.code, (1, 2), run)
            self.assertEqual(run.out, b"", run)
            self.assertRegex(run.message, r"\Aweft: [^\n]+\n\Z")
            self.assertIn(told, run.message)

    def test_port_in_use(self):
        with Server(write_small(os.path.join(scratch(), "small"), 4)) as server:
            run = weft("serve", "--listen", server.host, timeout=10)
            self.assertEqual((run.code, run.out), (1, b""), run)
            self.assertIn(f"cannot listen on {server.host} (choose another port with --listen ADDRESS:PORT): Address "
                          f"already in use", run.message)

    def test_notes(self):
        trace = write_small(os.path.join(scratch(), "small"), 5)
        for args, told in (([], "no trace is given"), ([trace], None),
                           ([trace, "/nowhere"], "/nowhere: No such file or directory; the other traces are served"),
                           (["--trace-root", scratch()], None),
                           (["--state", scratch()], None),
                           ([trace, "--listen", "0.0.0.0:0"], "everybody there can read"),
                           ([trace, "--listen", "localhost:0"], None), (["-q"], None)):
            with Server(*args) as server:
                server.get("/health")
                self.assertEqual(server.stop(), 0)
                if told:
                    self.assertRegex(server.errors(), rf"\Aweft: note: [^\n]*{told}[^\n]*\n\Z")
                else:
                    self.assertEqual(server.errors(), "")


class NoTraces(Case):
    """Files given in place of a trace are named, with a remedy."""

    FILES = [(b"\xd4\xc3\xb2\xa1\x02\x00", "captured packets", "net_dev_queue"),
             (b"\x0a\x0d\x0d\x0a\x1c\x00", "captured packets", "net_dev_queue"),
             (b"PERFILE2\x68\x00", "perf", "perf data convert --to-ctf"),
             (b"name".ljust(257, b"\x00") + b"ustar\x0000", "tar archive", "tar -xf"),
             (b"\x1f\x8b\x08\x00", "gzip", "tar -xf"), (b"\x28\xb5\x2f\xfd\x04", "zstd", "tar -xf"),
             (b"\xfd7zXZ\x00\x00", "xz", "tar -xf"), (b"PK\x03\x04\x14", "zip", "unzip"),
             (b"\xc1\x1f\xfc\xc1\x00", "stream of a CTF trace", "`metadata`"), (b"", "a file", "`metadata`"),
             (b"\x00\x00\x01\x00".ljust(0x48, b"\x00") + b"\x02\x00\x02\xc0\x00\x00\x00\x00\x00", "Windows", "Linux"),
             (b'{"traceEvents":[{"ph":"X","ts":1}]}', "Chrome", "weft spans"),
             (b' [ {"name":"a","ph":"B","ts":1,"pid":1}', "Chrome", "weft spans"),
             (b"# tracer: nop\n#\n", "trace_pipe", "LTTng"),
             (b"          <idle>-0       [001] d..2.  4711.123456: sched_switch: prev_comm=a\n", "trace_pipe", "LTTng"),
             (b"bash-17 [0001] 12.000001: sys_enter: NR 1\n", "trace_pipe", "LTTng"),
             (b"\x0a\x21\xca\x05\x10".ljust(40, b"\x01"), "Perfetto", "LTTng"),
             (b"\x0a\xa1\x03\x32\x10".ljust(40, b"\x01"), "Perfetto", "LTTng"),
             # similar files of no known kind
             (b"\x00\x00\x01\x00".ljust(0x50, b"\x00"), "a file", "`metadata`"),
             (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff", "a file", "`metadata`"),
             (b'["ph", 1]', "a file", "`metadata`"), (b"a - b [001]\n", "a file", "`metadata`"),
             (b"hello", "a file", "`metadata`")]

    def test_files(self):
        path = os.path.join(scratch(), "file")
        for data, what, remedy in self.FILES:
            with self.subTest(what):
                with open(path, "wb") as f:
                    f.write(data)
                run = weft("info", path)
                self.assertEqual(run.code, 1, run)
                self.assertRegex(run.message, rf"^weft: {path}: no trace here: this is .*{what}.*; .*{remedy}.*\n$")

    def test_other_things(self):
        top = scratch()
        os.mkfifo(os.path.join(top, "fifo"))
        run = weft("info", os.path.join(top, "fifo"), timeout=20)
        self.assertEqual(run.code, 1, run)
        self.assertIn("a FIFO", run.message)
        run = weft("info", top)
        self.assertEqual(run.code, 1, run)
        self.assertRegex(run.message, "no trace here: neither this directory nor one below .*; give the directory")


class Help(Case):
    """Examples of --help are runnable."""

    def test_examples(self):
        top = scratch()
        os.mkdir(os.path.join(top, "examples"))
        os.symlink(scenario("three-tier"), os.path.join(top, "examples", "three-tier"))
        spans = World(new_dice(41))
        spans.jobs(3, {"setup": 10**9, "main": 10**10}, tell=lambda i: {"site": f"site{i}"})
        spans.write(os.path.join(top, "spans.jsonl"))
        overview = self.ok("--help").text
        path = os.pathsep.join([os.path.dirname(os.environ.get("WEFT_SPAN", BIN)), os.environ["PATH"]])
        verbs = re.findall(r"^  ([a-z]+)  +\S", overview, re.M)
        self.assertGreaterEqual(len(verbs), 8)
        for verb in verbs:
            text = self.ok(verb, "--help").text
            self.assertEqual(text, self.ok("help", verb).text)
            self.assertTrue(all(len(line) <= 120 for line in text.splitlines()), verb)
            (example,) = re.findall(r"\nExample:\n  weft (.*)\n\Z", text)
            # Servers go on; some need a broker, which tests of clusters have.
            if verb not in ("serve", "coordinate", "collect") and "nats://" not in example:
                store = ["--store", os.path.join(top, "store")] if "--store" in text and verb != "spans" else []
                run = self.ok(*shlex.split(example.split(" > ")[0]), *store, cwd=top, env={"PATH": path})
                self.assertGreater(len(run.text.splitlines()), 3 if verb != "config" else 0, run)
        (example,) = re.findall(r"\nExample:\n  weft (.*)\n\Z", overview)
        self.assertIn("running", self.ok(*shlex.split(example), "--store", os.path.join(top, "store"), cwd=top).text)


class Programs(Case):
    """weft runs verbs over traces itself, and weft-net all others, wherever the two are."""

    def run_copy(self, program, *arguments):
        return subprocess.run([program, *arguments], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "LC_ALL": "C.UTF-8"})

    def test_where_it_is_looked_for(self):
        real = os.path.realpath(BIN)
        help_text = self.run_copy(real, "help", "serve").stdout
        tree = scratch()
        os.makedirs(os.path.join(tree, "bin"))
        alone = os.path.join(tree, "bin", "weft")
        shutil.copy(real, alone)
        for arguments in (["serve"], ["--help"], ["threads", "--cluster", "nats://127.0.0.1:1"]):
            run = self.run_copy(alone, *arguments)
            self.assertEqual((run.returncode, run.stdout), (1, ""), arguments)
            self.assertRegex(run.stderr, r"weft-net: No such file.*install weft with all its files")
        trace = os.path.join(tree, "small")
        small_trace.write(trace)
        self.assertEqual(self.run_copy(alone, "events", trace).returncode, 0, "needs no other program")
        beside = os.path.join(tree, "bin", "weft-net")
        installed = os.path.join(tree, "libexec", "weft", "weft-net")
        os.makedirs(os.path.dirname(installed))
        for place in (beside, installed):
            shutil.copy(os.path.join(os.path.dirname(real), "weft-net"), place)
            os.symlink(alone, os.path.join(tree, "link"))
            for program in (alone, os.path.join(tree, "link")):
                run = self.run_copy(program, "help", "serve")
                self.assertEqual((run.returncode, run.stdout), (0, help_text), run.stderr)
            os.remove(os.path.join(tree, "link"))
            os.remove(place)
        with open(beside, "w", encoding="utf-8"):
            pass  # command that must not be run
        run = self.run_copy(alone, "serve")
        self.assertEqual(run.returncode, 1)
        self.assertIn("Permission denied", run.stderr)

    def test_arguments_are_passed_as_given(self):
        """Options are parsed before a cluster query is recognised."""
        run = weft("threads", "--limit", "3", "--cluster", "nats://127.0.0.1:1", "--", "--help")
        self.assertEqual(run.code, 2, run)
        self.assertIn("give --cluster, or TRACEs, not both", run.message)
        run = weft("flows", "--sort", "bytes", "--cluster=nats://127.0.0.1:1", "--timeout", "1s")
        self.assertEqual(run.code, 1, run)
        self.assertIn("no broker answers at nats://127.0.0.1:1", run.message)


class Times(Case):
    """Times like +1.5s count from the experiment's first event, in every verb; the first packet of a stream may have
    been opened seconds before."""

    def test_start(self):
        need("babeltrace2")
        trace = scenario("three-tier")
        text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", trace], stdout=subprocess.PIPE,
                              check=True).stdout.decode()
        times = [int(line[1:11]) * 10**9 + int(line[12:21]) for line in text.splitlines()]
        first = times[0]
        lines = self.ok("events", trace, "--begin", "+2s", "--end", "+2.1s").text.splitlines()
        self.assertEqual(len(lines), sum(first + 2 * 10**9 <= t <= first + 21 * 10**8 for t in times))
        begins = {r["begin"] for r in self.json("threads", trace, "--begin", "+2s", "--store", scratch())}
        self.assertEqual(min(begins), first + 2 * 10**9)

    def test_span(self):
        """Times of the first and the last event in info."""
        trace = scenario("three-tier")
        truth = load(trace, "verify.json")["traces"]
        for row in self.json("info", trace):
            of = truth[f"{row['host']}/kernel"]
            self.assertEqual((row["begin"], row["end"], row["duration"]),
                             (of["first_ns"], of["last_ns"], of["last_ns"] - of["first_ns"]))
            self.assertEqual((min(s["begin"] for s in row["stream_list"]), max(s["end"] for s in row["stream_list"])),
                             (row["begin"], row["end"]))


if __name__ == "__main__":
    main()
