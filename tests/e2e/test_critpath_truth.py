# SPDX-License-Identifier: MIT
"""`weft critpath` against what the recorded programs did (ground-truth.json of each scenario).

Times of the ground truth are of each host's own clock; they are brought to the reference with the maps that weft itself
found, so that these tests judge paths, and test_sync_truth.py judges clocks.
"""
import json
import os
import re
import xml.etree.ElementTree as xml

import weft_e2e
from weft_e2e import Case, Truth, load, scenario, scratch, time_in

ON_CPU = {"running", "preempted"}
MS = 1_000_000
SLOW_RANK = 2  # rank of the MPI job


class Paths:
    """Mixed into one class per scenario. All paths are on the clock of `reference`."""

    name = reference = None

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.trace, cls.store = scenario(cls.name), scratch()
        cls.truth = Truth(cls.trace)
        cls.ground = load(cls.trace, "ground-truth.json")

    def maps(self):
        return self.sync(self.trace, self.store, "--reference", self.reference)[1]

    def at(self, maps, host, monotonic):
        """A logged time on the reference clock."""
        t = self.truth.trace_time(host, monotonic)
        return int(maps[host].to_reference(t)) if host != self.reference else t

    def path(self, thread, begin, end, *options):
        return self.critpath(self.trace, self.store, thread, begin, end, "--reference", self.reference, *options)

    def test_any_thread_for_its_whole_life(self):
        """The cover invariant for the busiest threads of every host, none of which was chosen for its path."""
        rows = self.json("threads", self.trace, "--store", self.store)
        rows = rows if isinstance(rows, list) else rows["threads"]
        seen = {}
        for row in rows:
            if row["tid"] > 0 and seen.setdefault(row["host"], 0) < 12:
                seen[row["host"]] += 1
                run = weft_e2e.weft("critpath", self.trace, "--store", self.store, "--thread",
                                    f"{row['host']}:{row['tid']}", "--format", "json")
                if run.code == 2:
                    self.assertIn(str(row["tid"]), run.message)  # a tid with several lives: the lives are listed
                    continue
                self.assertEqual(run.code, 0, run)
                self.check_path(json.loads(run.out), str(run.args))
        self.assertEqual(sorted(seen), self.truth.hosts)


class NothingAssumed:
    """Programs that sleep until their messages come: with --polling assume the answer is the one without."""

    def test_nothing_is_assumed(self):
        rows = self.json("threads", self.trace, "--store", self.store)
        rows = rows if isinstance(rows, list) else rows["threads"]
        asked, answers = {}, 0
        for row in rows:  # the busiest first
            of_host = asked.setdefault(row["host"], [])
            if row["tid"] > 0 and row["tid"] not in of_host and len(of_host) < 15:
                of_host.append(row["tid"])
        for host, tid in [(host, tid) for host in asked for tid in asked[host]]:
            args = ["critpath", self.trace, "--store", self.store, "--thread", f"{host}:{tid}", "--format", "json"]
            plain, assuming = weft_e2e.weft(*args), weft_e2e.weft(*args, "--polling", "assume")
            self.assertEqual(plain.code, assuming.code, assuming)
            if plain.code:
                continue  # a number of several lives
            answers += 1
            plain, assuming = json.loads(plain.out), json.loads(assuming.out)
            for answer in (plain, assuming):
                answer.pop("cost")
            self.assertEqual(plain, assuming, f"{host}:{tid}")
        self.assertGreater(answers, 30)


class Requests(Paths):
    """Client, web and database: what every request's path must satisfy."""

    reference = "client"

    def requests(self):
        """Returns for each request: its number, the path over [t_send, t_recv] of the client, and the log lines of web
        and db with their clock."""
        maps, log = self.maps(), self.ground["log"]
        for c in log["client"]:
            begin, end = (self.truth.trace_time("client", c[key]) for key in ("t_send", "t_recv"))
            servers = []
            for host in ("web", "db"):
                for line in log[host]:
                    if line["id"] == c["id"]:
                        servers.append((host, line, lambda t, h=host: self.at(maps, h, t)))
            yield c["id"], self.path(f"client:{c['tid']}", begin, end), servers

    def test_little_is_unknown(self):
        for number, answer, _ in self.requests():
            begin, end = answer["query"]["begin"], answer["query"]["end"]
            dark = time_in(answer, begin, end, state="unknown") + sum(u["end"] - u["begin"]
                                                                      for u in answer["unexplained"])
            self.assertLessEqual(dark, (end - begin) / 100,
                                 f"request {number}: {dark} ns unknown or unexplained: {answer['unexplained']}")

    def test_network_segments_name_their_sender(self):
        for number, answer, _ in self.requests():
            for s in answer["segments"]:
                if s["state"] == "network":
                    senders = [link["from"] for link in answer["links"] if link["kind"] == "network" and
                               (link["to"]["host"], link["to"]["tid"], link["to"]["time"])
                               == (s["host"], s["tid"], s["end"])]
                    self.assertEqual(len(senders), 1, f"request {number}: {s}")
                    self.assertIn(senders[0]["host"], self.truth.hosts)

    def test_the_query_is_the_one_asked(self):
        for (number, answer, _), c in zip(self.requests(), self.ground["log"]["client"]):
            q = answer["query"]
            self.assertEqual((q["host"], q["tid"], q["begin"], q["end"]),
                             ("client", c["tid"], *(self.truth.trace_time("client", c[key])
                                                    for key in ("t_send", "t_recv"))))
            self.assertEqual(answer["method"], "local")


class ThreeTier(Requests, NothingAssumed, Case):
    name = "three-tier"

    def test_burns(self):
        """Burns: while web or db burn CPU for the request, the path lies on that thread, running or waiting for its
        CPU, for 95 % of the time."""
        for number, answer, servers in self.requests():
            for host, line, at in servers:
                begin, end = at(line["t_recv"]), at(line["t_burn_done"])
                there = time_in(answer, begin, end, host=host, tid=line["tid"], state=ON_CPU)
                self.assertGreaterEqual(there, 0.95 * (end - begin),
                                        f"request {number}: {host} burns {(end - begin) / MS:.3f} ms, "
                                        f"{there / MS:.3f} ms of it on the path")

    def test_the_sentence_names_burns_and_sleeps(self):
        """The sentence begins with what took more than half of the request, with the machine, and the thread if it
        burnt."""
        causes = set()
        for number, answer, servers in self.requests():
            length = answer["query"]["end"] - answer["query"]["begin"]
            first = answer["sentence"].split(" · ")[0]
            for host, line, at in servers:
                burnt = at(line["t_burn_done"]) - at(line["t_recv"])
                if burnt > 0.5 * length:
                    causes.add("burn")
                    self.assertRegex(first, f"% {host}( |, of which ){'|'.join(('computed', str(line['tid'])))}")
                    self.assertIn("computed", first)
                if line["sleep_us"] * 1000 > 0.5 * length:
                    causes.add("sleep")
                    self.assertRegex(first, f"% {host}[ ,].*slept by itself")
        self.assertEqual(causes, {"burn", "sleep"})

    def test_compared(self):
        """Comparison: request 5 took longer than request 2 because db slept; and figures of both sides equal those of
        each alone."""
        log = self.ground["log"]
        def interval(c):
            return tuple(self.truth.trace_time("client", c[key]) for key in ("t_send", "t_recv"))
        first, second = (next(c for c in log["client"] if c["id"] == number) for number in (2, 5))
        slept_us = next(line["sleep_us"] for line in log["db"] if line["id"] == 5)
        self.assertGreater(slept_us, 10000)
        thread = f"client:{first['tid']}"
        args = [self.trace, "--store", self.store, "--reference", "client", "--thread", thread,
                *[x for pair in zip(("--begin", "--end"), interval(first)) for x in pair],
                "--compare", f"{thread},{interval(second)[0]},{interval(second)[1]}"]
        both = self.json("critpath", *args)
        self.assertEqual(set(both), {"a", "b", "parts", "sentence"})
        for side, c in (("a", first), ("b", second)):
            alone = self.path(thread, *interval(c))
            for answer in (both[side], alone):
                answer.pop("cost")
            self.assertEqual(both[side], alone)
            length = alone["query"]["end"] - alone["query"]["begin"]
            self.assertEqual(sum(p[side] for p in both["parts"]), length)
        changes = [abs(p["b"] - p["a"]) for p in both["parts"]]
        self.assertEqual(changes, sorted(changes, reverse=True))
        top = next(p for p in both["parts"] if p["b"] > p["a"])
        self.assertEqual((top["host"], top["state"]), ("db", "timer"))
        self.assertGreaterEqual(top["b"] - top["a"], 0.95 * slept_us * 1000)
        self.assertLessEqual(len(both["sentence"]), 140)
        self.assertRegex(both["sentence"],
                         r"^[\d.]+ ms longer \([\d.]+ ms → [\d.]+ ms\): .*db (tier )?slept by itself \+")
        self.assertIn(both["sentence"], " ".join(self.ok("critpath", *args).text.split()))
        rows = self.ok("critpath", *args, "--format", "csv").text.splitlines()
        self.assertEqual(len(rows), 1 + len(both["parts"]))

    def test_compared_with_itself(self):
        c = self.ground["log"]["client"][1]
        thread = f"client:{c['tid']}"
        begin, end = (self.truth.trace_time("client", c[key]) for key in ("t_send", "t_recv"))
        both = self.json("critpath", self.trace, "--store", self.store, "--reference", "client", "--thread", thread,
                         "--begin", begin, "--end", end, "--compare", f"{thread},{begin},{end}")
        self.assertRegex(both["sentence"], r"^as long \([^:]*\)$")
        self.assertEqual([p["a"] for p in both["parts"]], [p["b"] for p in both["parts"]])

    def test_compared_in_vain(self):
        tid = self.ground["log"]["client"][1]["tid"]
        for other, hint in ((f"client:{tid}", "[HOST:]TID,BEGIN,END"), (",,", "[HOST:]TID,BEGIN,END"),
                            (f"client:{tid},x,y", "x"), ("nowhere:1,,", "nowhere:1"), (f"client:{tid},+2s,+1s", "")):
            run = weft_e2e.weft("critpath", self.trace, "--store", self.store, "--thread", f"client:{tid}",
                                "--compare", other)
            self.survived(run)
            self.assertIn(run.code, (1, 2), run)
            self.assertIn(hint, run.message)

    def test_sleeps(self):
        for number, answer, servers in self.requests():
            for host, line, at in servers:
                if line["sleep_us"]:
                    asleep = time_in(answer, at(line["t_burn_done"]), at(line["t_reply"]), host=host, tid=line["tid"],
                                     state="timer")
                    self.assertGreaterEqual(asleep, 0.95 * line["sleep_us"] * 1000,
                                            f"request {number}: {host} sleeps {line['sleep_us']} µs")

    def test_no_more_running_than_the_burn(self):
        """Requests 2 to 10 (the first also connects, looks names up and starts threads)."""
        for number, answer, servers in self.requests():
            for host, line, _ in servers:
                if number > 1:
                    running = time_in(answer, answer["query"]["begin"], answer["query"]["end"], host=host,
                                      state="running")
                    self.assertLess(running, line["burn_us"] * 1000 + 5 * MS,
                                    f"request {number}: {host} runs {running / MS:.3f} ms")

    def test_the_rest_is_network_and_scheduling(self):
        for number, answer, _ in self.requests():
            others = {s["state"] for s in answer["segments"]} - {"running", "preempted", "interrupted", "timer",
                                                                 "network", "unknown"}
            begin, end = answer["query"]["begin"], answer["query"]["end"]
            self.assertLessEqual(time_in(answer, begin, end, state=others), (end - begin) / 50,
                                 f"request {number}: {others}")

    def test_times_by_offset_and_by_name(self):
        """Times given by offset and by name select the same interval, and the same path."""
        c = self.ground["log"]["client"][1]
        begin, end = (self.truth.trace_time("client", c[key]) for key in ("t_send", "t_recv"))
        plain = self.path(f"client:{c['tid']}", begin, end)
        iso = "2026-11-21T01:37:57." + str(begin)[10:]
        self.assertEqual(begin // 10**9, 1795225077)
        other = self.path(f"client:{c['tid']}", iso + "Z", end)
        self.assertEqual((plain["segments"], plain["links"]), (other["segments"], other["links"]))

    def test_svg(self):
        c = self.ground["log"]["client"][9]
        begin, end = (self.truth.trace_time("client", c[key]) for key in ("t_send", "t_recv"))
        picture = os.path.join(scratch(), "path.svg")
        run = self.ok("critpath", self.trace, "--store", self.store, "--reference", "client", "--thread",
                      f"client:{c['tid']}",
                      "--begin", begin, "--end", end, "--svg", picture)
        words = " ".join(text for text in xml.parse(picture).getroot().itertext())
        for host in self.truth.hosts:
            self.assertIn(host, words)
            self.assertIn(host, run.text)

    def test_wrong_use(self):
        for thread, hint in (("client:999999", "999999"), ("nowhere:1", "nowhere")):
            run = weft_e2e.weft("critpath", self.trace, "--store", self.store, "--thread", thread)
            self.survived(run)
            self.assertNotEqual(run.code, 0, run)
            self.assertIn(hint, run.message)
        # "tier" runs on all three machines, in several threads: the list is shown.
        run = weft_e2e.weft("critpath", self.trace, "--store", self.store, "--thread", "tier")
        self.assertEqual(run.code, 2, run)
        for host in self.truth.hosts:
            self.assertIn(host, run.message)

    def test_intervals_without_the_thread(self):
        """Intervals without the thread: an empty one is wrong use; one beside the thread's life gives an error with the
        life, not that of a missing thread."""
        tid = self.ground["log"]["client"][1]["tid"]
        for begin, end, code, hint in (("+1s", "+1s", 2, "same instant"),
                                       ("+100s", "+101s", 1, "not seen in that interval")):
            run = weft_e2e.weft("critpath", self.trace, "--store", self.store, "--thread", f"client:{tid}", "--begin",
                                begin, "--end", end)
            self.assertEqual(run.code, code, run)
            self.assertIn(hint, run.message)
            self.assertNotIn("no such thread", run.message)


class ThreeTierDisk(Requests, Case):
    name = "three-tier-disk"

    def test_the_disk_is_the_cause(self):
        found = 0
        for number, answer, servers in self.requests():
            for host, line, at in servers:
                if host == "db" and number in (5, 7, 9, 10):
                    found += 1
                    begin, end = at(line["t_burn_done"]), at(line["t_reply"])
                    disk = time_in(answer, begin, end, host="db", tid=line["tid"], state="block-device")
                    self.assertGreaterEqual(disk, 0.9 * (end - begin),
                                            f"request {number}: {disk / MS:.3f} of {(end - begin) / MS:.3f} ms")
        self.assertEqual(found, 4)

    def test_the_sentence_names_the_disk(self):
        for number, answer, _ in self.requests():
            if number in (5, 7, 9, 10):
                self.assertRegex(answer["sentence"], r"^[^·]*% db\b[^·]* waited for disk \w+")


class ScpNet(Paths, NothingAssumed, Case):
    name, reference = "scp-net", "n1"

    def test_the_slow_copy_bounds_the_script(self):
        """The script's last wait, from the last but one copy done to the last one done: at least 60 % is on n2 or on
        the way from n2."""
        done = sorted(line["t_done_real_us"] * 1000 for line in self.ground["log"] if line["what"] == "done")
        clock = self.ground["clocks"]["n1"]["points"][0]
        begin, end = (self.truth.trace_time("n1", t - clock["real_ns"] + clock["mono_ns"]) for t in done[-2:])
        main = next(line["pid"] for line in self.ground["log"] if line["what"] == "main")
        answer = self.path(f"n1:{main}", begin, end)
        from_n2 = {(link["to"]["host"], link["to"]["tid"], link["to"]["time"]) for link in answer["links"]
                   if link["kind"] == "network" and link["from"]["host"] == "n2"}
        share = time_in(answer, begin, end, host="n2")
        for s in answer["segments"]:
            if s["state"] == "network" and s["host"] != "n2" and (s["host"], s["tid"], s["end"]) in from_n2:
                share += s["end"] - s["begin"]
        self.assertGreaterEqual(share, 0.6 * (end - begin), f"{share / MS:.3f} of {(end - begin) / MS:.3f} ms")


class Bsp(Paths, NothingAssumed, Case):
    name, reference = "bsp", "n1"

    def test_the_slow_worker_bounds_the_step(self):
        for line in self.ground["log"]["n1"]:
            if line["step"] < 10:
                continue
            begin, end = (self.truth.trace_time("n1", line[key]) for key in ("t_start", "t_barrier_done"))
            answer = self.path(f"n1:{line['pid']}", begin, end)
            running = {host: time_in(answer, begin, end, host=host, state="running") for host in ("n2", "n3", "n4")}
            slowest = "n3" if line["step"] < 20 else "n4"
            self.assertEqual(max(running, key=running.get), slowest, f"step {line['step']}: {running}")
            self.assertRegex(answer["sentence"], f"^[^·]*% {slowest}( computed|, of which .* computed)")


class Mpi(Paths, Case):
    name, reference = "mpi", "n1"

    def test_polled_waits_are_told(self):
        """Polled waits of OpenMPI: either the spinning thread is running with detail `polling` and a link to the
        sender, or the answer says that polled waits cannot be seen here and what to record."""
        told = 0
        steps = [line for line in self.ground["log"] if line["rank"] == 0 and 2 <= line["step"] < 22]
        for line in steps:
            begin, end = (self.truth.trace_time("n1", line[key]) for key in ("t_start", "t_barrier_done"))
            args = ["critpath", self.trace, "--store", self.store, "--reference", "n1", "--thread", f"n1:{line['pid']}",
                    "--begin", begin, "--end", end]
            run = self.ok(*args, "--format", "json")
            answer = json.loads(run.out)
            self.check_path(answer, str(run.args))
            polling = [s for s in answer["segments"] if s["state"] == "running" and "polling" in (s["detail"] or "")]
            linked = any(link["kind"] == "network" and link["from"]["host"] != "n1" for link in answer["links"])
            told += bool(polling and linked) or bool(re.search(r"poll.*record|record.*poll", run.message, re.I | re.S))
        self.assertGreaterEqual(told, len(steps) * 3 // 4)

    def burn_on_path(self, maps, line, slow, *options):
        """Returns, for a rank's step, how long the slow rank burnt while this one was in it, how much of that is on the
        path, and the answer."""
        begin, end = (self.at(maps, line["host"], line[key]) for key in ("t_start", "t_barrier_done"))
        burn = [self.at(maps, slow["host"], slow[key]) for key in ("t_start", "t_burn_done")]
        low, high = max(begin, burn[0]), min(end, burn[1])
        if high - low < 10 * MS:
            return high - low, 0, None
        answer = self.path(f"{line['host']}:{line['pid']}", begin, end, *options)
        return high - low, time_in(answer, low, high, host=slow["host"], tid=slow["pid"], state=ON_CPU), answer

    def steps(self):
        """Returns the steps of each rank but the slow one's, with the slow one's activity in that step."""
        slow = {line["step"]: line for line in self.ground["log"] if line["rank"] == SLOW_RANK}
        return [(line, slow[line["step"]]) for line in self.ground["log"] if line["rank"] != SLOW_RANK]

    def test_assumed_polling_finds_the_slow_rank(self):
        """Assumed polling finds the slow rank: for nine of ten barriers that it held up by 10 ms or more, 10 ms of its
        burn are on the path."""
        held_up = found = 0
        maps = self.maps()
        for line, slow in self.steps():
            overlap, there, answer = self.burn_on_path(maps, line, slow, "--polling", "assume")
            if overlap < 10 * MS:
                continue
            held_up += 1
            found += there >= 10 * MS
            if there:
                assumed = [s for s in answer["segments"] if s.get("assumed")]
                self.assertTrue(assumed, f"{line['host']} step {line['step']}: nothing is assumed")
                arrows = [link for link in answer["links"] if link.get("assumed")]
                self.assertTrue(any(link["from"]["host"] == slow["host"] for link in arrows), arrows)
        self.assertGreaterEqual(held_up, 50)
        self.assertGreaterEqual(found, 0.9 * held_up, f"{found} of {held_up}")

    def test_the_slow_rank_burns_for_itself(self):
        """The slow rank's own burn is not taken for polling, whatever arrived meanwhile."""
        maps = self.maps()
        for line in self.ground["log"]:
            if line["rank"] != SLOW_RANK:
                continue
            begin, end = (self.at(maps, line["host"], line[key]) for key in ("t_start", "t_burn_done"))
            answer = self.path(f"{line['host']}:{line['pid']}", begin, end, "--polling", "assume")
            there = time_in(answer, begin, end, host=line["host"], tid=line["pid"], state=ON_CPU)
            self.assertGreaterEqual(there, 0.95 * (end - begin), f"step {line['step']}")

    def test_nothing_is_assumed_unless_asked(self):
        line, slow = self.steps()[10]
        begin, end = (self.truth.trace_time(line["host"], line[key]) for key in ("t_start", "t_barrier_done"))
        for kind in ("json", "csv", "table"):
            run = self.ok("critpath", self.trace, "--store", self.store, "--reference", line["host"], "--thread",
                          f"{line['host']}:{line['pid']}", "--begin", begin, "--end", end, "--format", kind)
            self.assertNotRegex(run.text, "true|assumed: ")


if __name__ == "__main__":
    weft_e2e.main()
