# SPDX-License-Identifier: MIT
"""Stores of a recording whose archives arrive one by one, late, not at all or damaged, and of builders that are killed
or have no room: the stores equal an index of the whole, and nothing is built unnecessarily."""
import glob
import os
import re
import shutil
import signal
import struct
import subprocess
import time

import small_trace
from talk_trace import Talk
from tsp_server import Server
from weft_e2e import BIN, SLOWDOWN, Case, main, new_dice, scenario, scratch, weft

DICE = new_dice(3)
COUNTERS = "org.eclipse.tracecompass.analysis.counters.core.CounterDataProvider"
KILLS = int(os.environ.get("WEFT_KILLS", "5"))


def stores(store):
    """{path: inode} of the files of chunks."""
    return {os.path.join(d, name): os.stat(os.path.join(d, name)).st_ino for d, _, names in os.walk(store)
            for name in names if re.search(r"\.\d+$", name) and not name.startswith("rows")}


def number(path):
    return int(path.rsplit(".", 1)[1])


def write_minute(directory, number, overlapping):
    """An archive of a minute: one packet, or two whose times overlap each other's and those of the next archive."""
    begin, step = number * 60 * 10**9, 2**32 // 61
    idle, a, b = small_trace.IDLE, small_trace.A, small_trace.B
    cycle = [small_trace.waking(a), small_trace.switch(idle, 0, a), small_trace.waking(b), small_trace.switch(a, 1, b),
             small_trace.switch(b, 1, idle)]
    data = b"".join(struct.pack("<HI", cycle[i % 5][0], (begin + (i + 1) * step) % 2**32) + cycle[i % 5][1]
                    for i in range(60))
    size = (4 + 16 + 4 + 8 * 6 + 4 + len(data)) * 8
    os.makedirs(directory)
    with open(os.path.join(directory, "metadata"), "w", encoding="ascii") as f:
        f.write(small_trace.METADATA)
    with open(os.path.join(directory, "ch_0"), "wb") as f:
        for late, seq in ((0, number), (7 * 10**8, 1000 + number))[:1 + overlapping]:
            end = begin + 60 * 10**9 - 1 + (10**9 if late else 0)
            f.write(struct.pack("<I", 0xC1FC1FC1) + small_trace.UUID + struct.pack("<I", 0) + struct.pack(
                "<QQQQQQI", begin + late, end, size, size, seq, 0, 0) + data)


def counted(number, counters):
    """Returns the declaration of an event with these counters, and its values: in archive `number`."""
    text = f"""event {{ name = "sched_wakeup"; id = {3 + len(counters)}; stream_id = 0;
	context := struct {{ {" ".join(f"uint64_t {c};" for c in counters)} }}; fields := struct {{
	letter _comm[16]; int32_t _tid; int32_t _prio; int32_t _target_cpu; }}; }};
"""
    values = struct.pack(f"<{len(counters)}Q", *(1000 * (number + 1) + i for i in range(len(counters))))
    return text, (3 + len(counters), values + small_trace.waking(small_trace.A)[1])


def write_counters(directory, number, declared, used):
    """An archive whose metadata declare events with these counters; each packet ends with one of those."""
    what, period = counted(number, used)[1] if used else None, 10**5
    packets = [[(t + number * period, e) for t, e in events] for events in small_trace.PACKETS]
    for events in packets if used else ():
        events.append((events[-1][0] + 50, what))
    small_trace.write(directory, small_trace.METADATA + "".join(counted(number, c)[0] for c in declared),
                      b"".join(small_trace.packet(3 * number + i, events) for i, events in enumerate(packets)))


class Growth(Case):
    def setUp(self):
        self.archives = os.path.join(scenario("rotated"), "solo", "archives")
        self.names = sorted(os.listdir(self.archives))
        self.trace, self.store = os.path.join(scratch(), "solo"), scratch()

    def place(self, name):
        return os.path.join(self.trace, "archives", name)

    def come(self, name):
        shutil.copytree(os.path.join(self.archives, name), self.place(name), copy_function=shutil.copyfile)

    def index(self, *more):
        rows = self.json("index", self.trace, "--store", self.store, *more)
        return [r["done"] for r in rows]

    def said(self, store):
        return [re.sub(r'"seconds":[^,}]*', "", weft(*ask, "--store", store).text) for ask in (
            ("threads", self.trace, "--all", "--format", "json"), ("sync", self.trace, "--format", "json"),
            ("critpath", self.trace, "--thread", "solo:15", "--format", "json"))]

    def whole(self):
        """Checks that the result equals indexing at once."""
        fresh = scratch()
        self.ok("index", self.trace, "--store", fresh)
        self.assertEqual(self.said(self.store), self.said(fresh))
        self.assertEqual(weft("verify", self.trace, "--store", self.store).code, 0)

    def test_in_any_order(self):
        for _ in range(2):
            names = list(self.names)
            DICE.shuffle(names)
            for name in names:
                self.come(name)
                self.assertEqual(self.index(), ["built"])
                self.whole()
            self.assertEqual(self.index(), ["up to date"])
            shutil.rmtree(self.trace)

    def test_old_chunks_stay(self):
        """A further archive costs its own events; the last chunk, which waits for more, is made anew."""
        for name in self.names[:4]:
            self.come(name)
            self.ok("threads", self.trace, "--store", self.store)
        before = stores(self.store)
        self.come(self.names[4])
        self.ok("threads", self.trace, "--store", self.store)
        after = stores(self.store)
        last = max(map(number, before))
        self.assertEqual({n: i for n, i in after.items() if n in before and number(n) != last},
                         {n: i for n, i in before.items() if number(n) != last})
        self.assertGreater(len(after), len(before))
        self.index()  # joins small chunks
        self.assertLess(len(stores(self.store)), len(after))
        self.whole()

    def test_few_files(self):
        """However many archives came one by one: a path opens all files that there are at most."""
        for number in range(24):
            write_minute(os.path.join(self.trace, "archives", f"a{number:02}", "kernel"), number, False)
            self.index()
            files = [name for _, _, names in os.walk(self.store) for name in names if name != "lock"]
            self.assertLess(len(files), 20, files)
            self.assertLess(sum(name.startswith("chunk.") for name in files), 8, files)
        fresh, ask = scratch(), ("threads", self.trace, "--all", "--format", "json", "--store")
        self.assertEqual(weft(*ask, self.store).out, weft(*ask, fresh).out)

    def test_an_archive_goes(self):
        for name in self.names:
            self.come(name)
            self.ok("threads", self.trace, "--store", self.store)
        shutil.rmtree(self.place(self.names[2]))
        self.index()
        self.whole()
        self.come(self.names[2])
        self.index()
        self.whole()
        shutil.rmtree(self.place(self.names[0]))  # trace whose place the stores must not have
        self.index()
        self.whole()

    def test_damage(self):
        self.come(self.names[0])
        self.come(self.names[1])
        self.ok("index", self.trace, "--store", self.store, "--memory", "1K")
        before = stores(self.store)
        self.assertGreater(len(before), 2)
        for path in 3 * sorted(before):
            with open(path, "r+b") as f:
                f.seek(DICE.randrange(os.path.getsize(path)))
                byte = f.read(1)
                f.seek(-1, os.SEEK_CUR)
                f.write(bytes([byte[0] ^ 0x10]))
            self.assertEqual(weft("verify", self.trace, "--store", self.store).code, 3)
            self.ok("threads", self.trace, "--store", self.store)
            mended = stores(self.store)
            self.assertEqual({n for n in before if before[n] != mended.get(n)},
                             {n for n in before if number(n) == number(path)}, path)
            before = mended
        self.whole()

    def counters(self, store):
        """Returns all values that a server shows of them."""
        with Server(self.trace, store=store) as server:
            x = server.first()
            base = f"/experiments/{x['UUID']}/outputs/XY/{COUNTERS}"
            tree = server.model(f"{base}/tree")["entries"]
            return [e["labels"] for e in tree], server.model(f"{base}/xy", {
                "requested_timerange": {"start": x["start"], "end": x["end"], "nbTimes": 500},
                "requested_items": [e["id"] for e in tree]})

    def test_new_counters(self):
        """Events with performance counters that no archive before had declared; at last the order of all is another."""
        cycles, both, other = ["perf_cpu_cycles"], ["perf_cpu_cycles", "perf_cpu_misses"], ["perf_cpu_branches"]
        come = [("a10", 0, [], None), ("a11", 1, [], None), ("a12", 2, [cycles], cycles), ("a13", 3, [cycles], None),
                ("a14", 4, [cycles, both], both), ("a15", 5, [cycles, both], cycles), ("a00", 6, [other], other)]
        for name, *what in come:
            write_counters(os.path.join(self.trace, "archives", name, "kernel"), *what)
            fresh, ask = scratch(), ("threads", self.trace, "--all", "--format", "json", "--store")
            grown, whole = weft(*ask, self.store), weft(*ask, fresh)
            self.assertEqual((grown.code, grown.out, grown.message), (whole.code, whole.out, whole.message), name)
            self.assertIn(grown.code, (0, 3), grown)
            if what[2]:
                said = self.counters(self.store)
                self.assertEqual(said, self.counters(fresh), name)
                self.assertGreater(len(said[0]), 1)
        self.index()
        self.assertEqual(self.counters(self.store), self.counters(fresh))

    def test_registry_goes(self):
        """Rows whose registry is lost, or a part of it, are registered anew."""
        for name in self.names:
            self.come(name)
            self.ok("threads", self.trace, "--store", self.store)
        for which in (slice(None), slice(-1, None)):
            files = sorted(glob.glob(os.path.join(self.store, "*", "rows.*")),
                           key=lambda path: int(path.rsplit(".", 1)[1].split("-")[0]))
            for path in files[which]:
                os.unlink(path)
            self.ok("threads", self.trace, "--store", self.store)
            self.whole()

    def test_overlapping(self):
        """Ranges of such a recording are not what one merge of it gives: it is built as a whole."""
        for number in range(6):
            write_minute(os.path.join(self.trace, "archives", f"a{number}", "kernel"), number, True)
            weft("index", self.trace, "--store", self.store)
            fresh = scratch()
            ask = ("threads", self.trace, "--all", "--format", "json", "--store")
            self.assertEqual(weft(*ask, self.store).out, weft(*ask, fresh).out)

    def test_killed(self):
        for name in self.names:
            self.come(name)
        begin = time.monotonic()
        self.ok("index", self.trace, "--store", scratch(), "--memory", "1K")
        takes = time.monotonic() - begin
        for _ in range(KILLS):
            how = ["--force"] if DICE.randrange(2) else []
            p = subprocess.Popen([BIN, "index", self.trace, "--store", self.store, "--memory", "1K", *how],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(DICE.random() * takes)
            p.send_signal(signal.SIGKILL)
            p.wait()
            self.index("--memory", "1K")
            self.whole()
        self.index("--force")
        lost = [n for _, _, names in os.walk(self.store) for n in names if ".tmp." in n]
        self.assertEqual(lost, [])

    def test_killed_while_archives_come(self):
        """Killed while archives come: each time with the leftovers of earlier killed processes, one time in two."""
        for kill in range(KILLS):
            if not kill % len(self.names):
                self.setUp()
            self.come(self.names[kill % len(self.names)])
            p = subprocess.Popen([BIN, "index", self.trace, "--store", self.store, "--memory", "1K"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(DICE.random() * 0.03 * SLOWDOWN)
            p.send_signal(signal.SIGKILL)
            p.wait()
            if DICE.randrange(2):
                self.index("--memory", "1K")
                self.whole()

    def test_full_disk(self):
        for name in self.names[:3]:
            self.come(name)
        self.index()
        for name in self.names[3:]:
            self.come(name)
        run = weft("index", self.trace, "--store", self.store, file_size=20000)
        self.assertEqual(run.code, 1, run)
        self.assertRegex(run.message, "^weft: .*File too large")
        self.index()
        self.whole()

    def test_keep(self):
        for name in self.names:
            self.come(name)
            self.ok("threads", self.trace, "--store", self.store)
        before, ids = stores(self.store), self.json("threads", self.trace, "--all", "--store", self.store)
        self.ok("index", self.trace, "--store", self.store, "--keep", "3s", "--memory", "1K")
        after = stores(self.store)
        self.assertLess(len(after), len(before))
        self.assertEqual({n: before[n] for n in after}, after)
        left = {(t["tid"], t["comm"]): t for t in self.json("threads", self.trace, "--all", "--store", self.store)}
        self.assertLessEqual(set(left), {(t["tid"], t["comm"]) for t in ids})
        self.assertEqual(self.index("--keep", "3s", "--memory", "1K"), ["up to date"])
        self.assertEqual(weft("verify", self.trace, "--store", self.store).code, 0)
        self.ok("index", self.trace, "--store", self.store, "--force")
        self.whole()
        for wrong in ("7", "d", "-1d", "0s", "1y"):
            self.assertEqual(weft("index", self.trace, "--keep", wrong).code, 2, wrong)


class Talking(Case):
    """Hosts whose archives come one by one, and not at the same time."""
    MINUTES, OFFSETS = 25, (0, 3 * 10**9, -20 * 10**9)

    def setUp(self):
        self.trace, self.store = scratch(), scratch()
        self.talk = Talk(DICE, self.OFFSETS)
        for _ in range(60):
            a, b = DICE.sample(range(3), 2)
            self.talk.converse(a, b, DICE.randrange(60 * 10**9, (self.MINUTES - 1) * 60 * 10**9),
                               DICE.choice((10**7, 10**9, 3 * 10**10)), DICE.randrange(4, 40))
        self.come = [1, 1, 1]
        self.late = []

    def arrive(self, host):
        number = self.come[host]
        self.come[host] += 1
        if number >= self.MINUTES:
            return
        if DICE.random() < 0.05:
            self.late.append((host, number))
        else:
            self.talk.write(self.trace, host, number)

    def same(self):
        fresh = scratch()
        grown, whole = (self.json("sync", self.trace, "--store", store) for store in (self.store, fresh))
        self.assertEqual(grown, whole)
        shutil.rmtree(fresh)
        return grown

    def messages(self):
        return glob.glob(os.path.join(self.store, "*", "messages-*"))

    def test_archives(self):
        for host in range(3):
            self.arrive(host)
        for step in range(3 * self.MINUTES):
            host = DICE.randrange(3)
            for _ in range(DICE.choice((1, 1, 2))):
                self.arrive(host)
            if step % 10 == 0:
                self.ok("index", self.trace, "--store", self.store)  # joins chunks
            if step % 17 == 0 and self.messages():
                with open(DICE.choice(self.messages()), "r+b") as f:
                    f.seek(DICE.randrange(os.path.getsize(f.name)))
                    f.write(b"?")
            if self.late and DICE.random() < 0.2:
                self.talk.write(self.trace, *self.late.pop())
            if step % 5 == 0:
                self.same()
        for host in range(3):
            while self.come[host] < self.MINUTES:
                self.arrive(host)
        for late in self.late:
            self.talk.write(self.trace, *late)
        said = self.same()
        self.assertEqual([h["category"] for h in said["hosts"]].count("accurate"), 2)


if __name__ == "__main__":
    main()
