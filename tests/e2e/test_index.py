# SPDX-License-Identifier: MIT
"""Stores: built once, built again when the trace changes or a file is damaged, never trusted. And `threads` against
babeltrace2's text."""
import json
import os
import re
import shutil
import subprocess

import small_trace
from weft_e2e import Case, load, main, need, scenario, scratch, weft


SEALED = ("chunk.1",)  # opened without being read while unchanged
PARTS = ("graph", "flows", "states", "packets")  # files of a chunk
STORES = (*SEALED, *PARTS, "manifest")


def store_files(store):
    found = []
    for d, _, names in os.walk(store):
        found += [os.path.join(d, n) for n in names if n != "lock"]
    return sorted(found)


def read(path):
    with open(path, "rb") as f:
        return f.read()


def write(path, data):
    with open(path, "wb") as f:
        f.write(data)


class Stores(Case):
    def setUp(self):
        self.trace = scratch() + "/three-tier"
        shutil.copytree(scenario("three-tier"), self.trace)
        subprocess.run(["chmod", "-R", "u+w", self.trace], check=True)
        self.store = scratch()

    def index(self, *more):
        rows = self.json("index", self.trace, "--store", self.store, *more)
        return {r["host"]: r for r in rows}

    def test_only_what_changed(self):
        first = self.index()
        self.assertEqual(set(first), {"client", "web", "db"})
        self.assertEqual({r["done"] for r in first.values()}, {"built"})
        self.assertEqual({r["done"] for r in self.index().values()}, {"up to date"})
        os.utime(os.path.join(self.trace, "web", "kernel", "ch_0"), ns=(1, 1))
        self.assertEqual({h: r["done"] for h, r in self.index().items()},
                         {"client": "up to date", "web": "built", "db": "up to date"})
        self.assertEqual({r["done"] for r in self.index("--force").values()}, {"built"})

    def test_same_bytes_every_time(self):
        def contents():  # manifest excepted: it has the times of writing
            return {f: read(f) for f in store_files(self.store) if os.path.basename(f) != "manifest"}
        self.index()
        before = contents()
        self.assertEqual(len(before), 6)
        self.index("--force", "--threads", "1")
        self.assertEqual(before, contents())

    def test_sealed_again_after_a_touch(self):
        """A store that was touched is looked through once, and is not built again when nothing is wrong with it."""
        self.index()
        stores = [f for f in store_files(self.store) if os.path.basename(f) in SEALED]
        manifests = [f for f in store_files(self.store) if os.path.basename(f) == "manifest"]
        for f in stores:
            os.utime(f, ns=(1, 1))
        before = {f: os.stat(f).st_ino for f in stores + manifests}
        self.assertEqual({r["done"] for r in self.index().values()}, {"up to date"})
        after = {f: os.stat(f).st_ino for f in stores + manifests}
        self.assertEqual([f for f in before if before[f] != after[f]], manifests)
        self.assertEqual({r["done"] for r in self.index().values()}, {"up to date"})
        self.assertEqual({f: os.stat(f).st_ino for f in stores + manifests}, after)

    def test_stores_of_before(self):
        """Files as they were when each store of a chunk had its own: the next build takes them away."""
        self.index()
        good = store_files(self.store)
        before = [os.path.join(os.path.dirname(f), name) for f in good if os.path.basename(f) == "chunk.1"
                  for name in ("graph.1", "flows.1", "states.27", "stacks.3", "packets")]
        for path in before:
            write(path, b"old")
        self.index("--force")
        self.assertEqual(store_files(self.store), good)

    def test_damage_that_keeps_size_and_time(self):
        """A byte of a store changed in place, and the file's time put back: the stores are not what they were, and are
        built again."""
        self.index()
        for name in SEALED:
            path = next(f for f in store_files(self.store) if os.path.basename(f) == name)
            good, was = read(path), os.stat(path)
            with open(path, "r+b") as f:
                f.seek(len(good) - 100)
                byte = f.read(1)[0]
                f.seek(len(good) - 100)
                f.write(bytes([byte ^ 4]))
            os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))
            self.assertEqual(sorted(r["done"] for r in self.index().values()), ["built", "up to date", "up to date"],
                             name)
            self.assertEqual(read(path), good)

    def test_one_store_alone_is_touched(self):
        """Whichever it is, it is looked through: a copy in its place is sealed, a damaged copy is not."""
        self.index()
        for name in SEALED:
            path = next(f for f in store_files(self.store) if os.path.basename(f) == name)
            good = read(path)
            os.unlink(path)
            write(path, good)
            self.assertEqual({r["done"] for r in self.index().values()}, {"up to date"}, name)
            os.unlink(path)
            write(path, good[:-100] + bytes([good[-100] ^ 4]) + good[-99:])
            self.assertEqual(sorted(r["done"] for r in self.index().values()), ["built", "up to date", "up to date"],
                             name)
            self.assertEqual(read(path), good)

    def test_threads_take_memory(self):
        """A recording of few events and many threads is cut so that either fits."""
        begun = [(1000 * i, small_trace.fork(small_trace.A, ("child", 100 + i))) for i in range(1, 1001)]
        same = [(1000 * i, small_trace.waking(small_trace.A)) for i in range(1, 1001)]
        cuts = []
        for events in (begun, same):
            trace, store = os.path.join(scratch(), "made"), scratch()
            small_trace.write(trace, stream=small_trace.packet(0, events))
            self.ok("index", trace, "--store", store, "--memory", "1K")
            cuts.append(sum(n.startswith("chunk.") for _, _, names in os.walk(store) for n in names))
        self.assertGreater(cuts[0], 3)
        self.assertEqual(cuts[1], 1)

    def test_event_counts(self):
        truth = load(need(os.path.join(scenario("three-tier"), "verify.json")))
        for host, row in self.index().items():
            self.assertEqual(row["events"], truth["traces"][f"{host}/kernel"]["events"])
            self.assertEqual(row["lost"], 0)

    def test_damage_is_told_and_mended(self):
        self.index()
        for path in store_files(self.store):
            good = read(path)
            for at in (0, 9, len(good) // 2, len(good) - 1):
                bad = bytearray(good)
                bad[at] ^= 0x40
                os.chmod(path, 0o600)
                write(path, bytes(bad))
                told = self.verify()
                self.assertEqual(told.code, 3, told)
                self.assertIn("damaged", told.text)
                self.assertIn("built", {r["done"] for r in self.index().values()})
        self.assertEqual(self.verify().code, 0)

    def verify(self, *more):
        return weft("verify", self.trace, "--store", self.store, *more)

    def test_verify_tells_what_is_not_of_this_trace(self):
        """A trace that changed has stale stores, one that was never indexed none; neither is damage."""
        self.assertEqual((self.verify().code, "no stores" in self.verify().message), (1, True))
        self.json("index", os.path.join(self.trace, "client"), "--store", self.store)
        os.utime(os.path.join(self.trace, "client", "kernel", "ch_0"), ns=(1, 1))
        self.json("index", os.path.join(self.trace, "db"), "--store", self.store)
        told = self.verify("--format", "json")
        self.assertEqual(told.code, 0, told)
        states = {}
        for row in json.loads(told.out):
            name = os.path.basename(row["file"])
            states.setdefault(row["host"], {})[name if name in (*STORES, "rows") else "-"] = row["state"]
        self.assertEqual(states["db"], dict.fromkeys((*STORES, "rows"), "sound"))
        self.assertEqual(states["client"], dict.fromkeys(STORES, "stale") | {"rows": "sound"})
        self.assertEqual(list(states["web"].values()), ["absent"])
        self.index()
        self.assertEqual({r["state"] for r in json.loads(self.verify("--format", "json").out)}, {"sound"})

    def test_a_file_of_another_trace(self):
        """Replaced file: each file is sound, but one belongs to another trace."""
        self.index()
        directories = sorted({os.path.dirname(f) for f in store_files(self.store)})
        for name in SEALED:
            whole = [read(os.path.join(d, name)) for d in directories]
            write(os.path.join(directories[0], name), whole[1])
            told = self.verify()
            self.assertEqual(told.code, 0, told)
            self.assertEqual(told.text.count("stale"), 1, told.text)
            self.assertEqual(sorted(r["done"] for r in self.index().values()), ["built", "up to date", "up to date"])
            self.assertEqual([read(os.path.join(d, name)) for d in directories], whole)

    def test_store_beside_the_trace(self):
        self.ok("index", self.trace)
        self.assertTrue(os.path.exists(os.path.join(self.trace, "web", "kernel", ".weft", "chunk.1")))
        self.assertEqual(len(self.json("info", self.trace)), 3)

    def test_named_hosts(self):
        rows = self.json("index", f"front={self.trace}/client", f"back={self.trace}/web", "--store", self.store)
        self.assertEqual([r["host"] for r in rows], ["back", "front"])

    def test_wrong_use(self):
        for args, code in ((["index"], 2), (["index", "/nowhere"], 1), (["index", self.store], 1),
                           (["index", "--nonsense", self.trace], 2),
                           (["threads", self.trace, "--sort", "laziness", "--store", self.store], 2),
                           (["index", "net://localhost/host/a/b"], 1)):
            run = weft(*args)
            self.assertEqual(run.code, code, run)
            self.assertRegex(run.message, r"^weft: .+\n$", run)


class Threads(Case):
    """Running time of every thread: sums of sched_switch intervals, computed from babeltrace2's text alone."""

    def test_running_time(self):
        need("babeltrace2")
        trace, store = scenario("three-tier"), scratch()
        rows = self.json("threads", trace, "--store", store, "--all")
        for host in ("client", "web", "db"):
            text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", os.path.join(trace, host)],
                                  stdout=subprocess.PIPE, check=True).stdout.decode()
            line = re.compile(r"^\[(\d+)\.(\d{9})\] \S+ sched_switch: \{ cpu_id = (\d+) \}, \{ .*prev_tid = (-?\d+), "
                              r".*next_tid = (-?\d+),", re.M)
            since, running = {}, {}
            for s, ns, cpu, prev, after in line.findall(text):
                t = int(s) * 1000000000 + int(ns)
                if cpu in since:
                    self.assertEqual(since[cpu][0], prev)
                    running[prev] = running.get(prev, 0) + t - since[cpu][1]
                since[cpu] = (after, t)
            last = text.rstrip().rsplit("\n", 1)[1]
            end = int(last[1:11]) * 1000000000 + int(last[12:21])
            for tid, t in since.values():
                running[tid] = running.get(tid, 0) + end - t
            ours = {}
            for r in rows:
                if r["host"] == host and r["tid"]:
                    ours[str(r["tid"])] = ours.get(str(r["tid"]), 0) + r["running"]
            running.pop("0", None)
            # Threads before a CPU's first switch are visible only in its other events, and not in the script's sums.
            for tid, ns in running.items():
                self.assertGreaterEqual(ours.get(tid, 0), ns, f"{host} {tid}")
            differ = [tid for tid in running if ours[tid] != running[tid]]
            self.assertLessEqual(len(differ), len(since), f"{host}: {differ}")


if __name__ == "__main__":
    main()
