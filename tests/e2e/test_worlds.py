# SPDX-License-Identifier: MIT
"""Made worlds against what is known of them: paths exactly, clocks within the stated errors, nothing false where events
were lost. `WEFT_WORLDS=N` tries N worlds of each kind."""
import json
import os
import random
import subprocess
from fractions import Fraction

import weft_e2e
from weft_e2e import Case, need, new_dice, scratch
from world import READY, RUN, TCP, UDP, WAIT, Semaphore, World
from world_path import Oracle
from world_trace import START_NS

WORLDS = int(os.environ.get("WEFT_WORLDS", 12 // weft_e2e.SLOWDOWN or 1))
LENGTH_NS = 60_000_000
TO_CTF2 = os.path.abspath(os.environ.get("TO_CTF2") or os.path.join(weft_e2e.ROOT, "build/tests/writer/to_ctf2"))


def to_ctf2(folder):
    """Rewrites the metadata of all traces below."""
    need(TO_CTF2)
    subprocess.run([TO_CTF2, *(os.path.join(path, "metadata") for path, _, names in os.walk(folder)
                               if "metadata" in names)], check=True)


def client(dice, ends):
    """Asks some servers, often without going to sleep at once."""
    while True:
        asked = dice.sample(ends, dice.randint(1, len(ends)))
        for end in asked:
            yield "send", end, 64
            if dice.random() < 0.5:
                yield "compute", dice.choice((2000, 50000, 800000))
        for end in asked:
            yield "receive", end, 128
            yield "compute", dice.randint(500, 200000)
        if dice.random() < 0.5:
            yield "sleep", dice.randint(10000, 2000000)


def server(dice, end, below):
    while True:
        yield "receive", end, 64
        yield "compute", dice.choice((1000, 100000, 1500000))
        for other in below:
            if dice.random() < 0.7:
                yield "send", other, 64
                if dice.random() < 0.5:
                    yield "compute", dice.randint(1000, 400000)
                yield "receive", other, 128
        if dice.random() < 0.3:
            yield "disk", dice.randint(50000, 3000000)
        yield "send", end, 128
        if dice.random() < 0.4:
            yield "compute", dice.randint(1000, 900000)


def pooled(dice, end, work, done):
    """A server thread that hands its requests to a worker."""
    while True:
        yield "receive", end, 64
        yield "post", work
        if dice.random() < 0.5:
            yield "compute", dice.randint(1000, 300000)
        yield "wait", done
        yield "send", end, 128


def worker(dice, work, done):
    while True:
        yield "wait", work
        yield "compute", dice.choice((3000, 300000))
        if dice.random() < 0.3:
            yield "sleep", dice.randint(20000, 600000)
        yield "post", done
        if dice.random() < 0.3:
            yield "compute", dice.randint(1000, 300000)


def busy(dice, depth=0):
    for _ in range(dice.randint(2, 60)):
        yield "compute", dice.randint(10000, 3000000)
        if dice.random() < 0.2 and depth < 2:
            yield "fork", "child", busy(dice, depth + 1)
        yield "sleep", dice.randint(10000, 1500000)


def make(dice, **how):
    """Two to four machines with clients, servers that ask others, pools and threads that are just busy."""
    world = World(dice, dice.randint(2, 4), **how)
    hosts = [h for h in world.hosts if h not in world.forwarders]
    below, served = [], []
    for i in range(dice.randint(2, 6)):
        protocol = UDP if dice.random() < 0.25 and not world.loss else TCP
        ours, theirs = world.connect(dice.choice(hosts), dice.choice(hosts), protocol)
        if dice.random() < 0.3:
            work, done = Semaphore(), Semaphore()
            world.spawn(theirs.host, "pool", pooled(dice, theirs, work, done))
            world.spawn(theirs.host, "worker", worker(dice, work, done))
        else:
            mine = [e for e in below if e.host is theirs.host and e not in served and dice.random() < 0.8][:2]
            served += mine
            world.spawn(theirs.host, f"server{i}", server(dice, theirs, mine))
        below.append(ours)
    free = [e for e in below if e not in served]
    for host in hosts:
        ends = [e for e in free if e.host is host]
        while ends:
            n = dice.randint(1, len(ends))
            world.spawn(host, "client", client(dice, ends[:n]))
            ends = ends[n:]
        for _ in range(dice.randint(0, 2)):
            world.spawn(host, "busy", busy(dice))
    world.run(world.now + LENGTH_NS)
    return world


class Worlds(Case):
    def write(self, world, lost=lambda host: (), folder=None):
        folder = folder or scratch()
        for host in world.hosts:
            host.recording.write(os.path.join(folder, host.name, f"boot{world.boot}"), lost(host))
        return folder

    def questions(self, world, n):
        """Threads with intervals in which all that happened is known."""
        dice = world.dice
        threads = [t for h in world.hosts for t in h.threads if len(t.intervals) > 4]
        for _ in range(n):
            thread = dice.choice(threads)
            first, last = thread.intervals[1].begin, thread.intervals[-1].begin
            begin, end = sorted(dice.randint(first, last) for _ in range(2))
            if begin < end:
                yield thread, begin, end

    def answer(self, folder, thread, begin, end, *more):
        return self.json("critpath", folder, "--thread", f"{thread.host.name}:{thread.tid}", "--begin",
                         START_NS + begin, "--end", START_NS + end, "--store", folder + ".stores", "-q", *more)

    @staticmethod
    def rows(answer):
        """The segments as the oracle tells them; where only the detail changes they are one."""
        out = []
        for s in answer["segments"]:
            row = (s["host"], s["tid"], s["begin"] - START_NS, s["end"] - START_NS, s["state"])
            if out and out[-1][:2] == row[:2] and out[-1][4] == row[4] and out[-1][3] == row[2]:
                out[-1] = out[-1][:3] + row[3:]
            else:
                out.append(row)
        return out

    def agree(self, usual, **how):
        """Every third world is written in CTF 2."""
        dice = new_dice(usual)
        for number in range(WORLDS):
            world = make(dice, **how)
            folder = self.write(world)
            if number % 3 == 2:
                to_ctf2(folder)
            self.compare(number, folder, world, 4)

    def compare(self, number, folder, world, questions):
        oracle = Oracle()
        for thread, begin, end in self.questions(world, questions):
            for request in False, True:
                with self.subTest(world=number, boot=world.boot, thread=str(thread), begin=begin, end=end, of=request):
                    got = self.rows(self.answer(folder, thread, begin, end, "--no-sync", *["--request"] * request))
                    self.assertEqual(got, oracle.path(thread, begin, end, request))

    def test_plain(self):
        self.agree(1)

    def test_lost_and_reordered_packets(self):
        self.agree(2, loss=0.05, reorder=0.2)

    def test_forwarders(self):
        self.agree(3, forwarders=2, loss=0.02)

    def test_stacked_devices(self):
        self.agree(6, stacked=True, loss=0.02)

    def test_reboots(self):
        """Reboots: all machines restart and do the same again, so that each message of one boot could be the
        other's."""
        dice = new_dice(7)
        for number in range(WORLDS):
            twins = dice.getrandbits(64)
            boots = [make(random.Random(twins), boot=boot, begin=1000 + boot * 10 * LENGTH_NS) for boot in range(2)]
            folder = scratch()
            for world in boots:
                self.write(world, folder=folder)
            for world in boots:
                self.compare(number, folder, world, 3)

    def test_clocks(self):
        """Clocks: each host has its own; the truth lies within the stated error, whoever is the reference."""
        dice, looked_at = new_dice(4), 0
        for number in range(WORLDS):
            lines = {}

            def clock(host, t):
                drift, offset = lines.setdefault(host.name, (dice.uniform(-150e-6, 150e-6), dice.randint(0, 10**10)))
                return t + int(t * drift) + offset

            world = make(dice, clock=clock, loss=dice.choice((0, 0.05)))
            folder, reference = self.write(world), dice.choice(world.hosts)
            run = weft_e2e.weft("sync", folder, "--reference", reference.name, "--format", "json", "--store",
                                folder + ".stores", "-q")
            if run.code == 2 and "no message relates" in run.message:
                continue
            self.assertEqual(run.code, 0, run)
            for answer in json.loads(run.out)["hosts"]:
                host = world.hosts[int(answer["host"][1:])]
                for t in range(0, LENGTH_NS, LENGTH_NS // 50):
                    at, truth = (START_NS + clock(h, t) for h in (host, reference))
                    piece = next((p for p in answer["pieces"] if p["begin"] <= at <= p["end"]), None)
                    if piece:
                        looked_at += 1
                        drift, offset = Fraction(piece["drift"]), Fraction(piece["offset_ns"])
                        part = Fraction(at - piece["begin"], max(1, piece["end"] - piece["begin"]))
                        error = piece["error_ns_begin"] * (1 - part) + piece["error_ns_end"] * part
                        with self.subTest(world=number, host=host.name, reference=reference.name, t=t):
                            self.assertLessEqual(abs(at * drift + offset - truth), error + 2)
        self.assertGreater(looked_at, WORLDS * 50)

    def test_lost_events(self):
        """Lost events lead to no false statement, beyond what each thread's next event makes clear."""
        dice = new_dice(5)
        for number in range(WORLDS):
            world, gone = make(dice), {}

            def lose(host):
                out = []
                for cpu, events in enumerate(host.recording.cpus):
                    for _ in range(dice.randint(0, 2) if len(events) > 50 else 0):
                        first = dice.randint(0, len(events) - 20)
                        n = dice.randint(1, 15)
                        if all(abs(first - other) > 16 for c, other, _ in out if c == cpu):
                            out.append((cpu, first, n))
                            gone.setdefault(host, []).append((events[first - 1][0] if first else 0,
                                                              events[first + n][0]))
                return out

            folder = self.write(world, lose)
            for thread, begin, end in self.questions(world, 4):
                answer = self.answer(folder, thread, begin, end, "--no-sync")
                for host, tid, since, until, state in self.rows(answer):
                    if state in ("network", "unknown"):
                        continue
                    row = self.thread(world, host, tid, since)
                    for i in row.intervals:
                        a, b = max(since, i.begin), min(until, i.end or LENGTH_NS)
                        if a < b and not self.unsure(gone.get(row.host, ()), row, a, b):
                            with self.subTest(world=number, thread=str(row), since=a, until=b, folder=folder):
                                self.assertEqual(state if i.kind != WAIT else WAIT, i.kind if i.kind != WAIT else
                                                 WAIT if state not in (RUN, READY) else state)

    @staticmethod
    def thread(world, host, tid, t):
        return next(x for x in world.hosts[int(host[1:])].threads if x.tid == tid)

    @staticmethod
    def unsure(gaps, row, a, b):
        """Returns whether [a, b) touches a time in which the thread's state cannot be known: from a gap's begin to the
        end of the state that the thread had when the gap was over."""
        for begin, end in gaps:
            known = next((i.end for i in row.intervals if (i.end or LENGTH_NS) >= end), None) or LENGTH_NS
            if a < known and b > begin:
                return True
        return False


if __name__ == "__main__":
    weft_e2e.main()
