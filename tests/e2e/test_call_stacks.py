#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Call stacks that LTTng recorded with events: on made traces in CTF 1.8 and CTF 2, whose stacks are known, and on the
recorded ones, against the list of what each thread was in when it was switched out."""
import bisect
import collections
import json
import os
import subprocess
import sys

import stack_trace
import weft_e2e
from cluster_of import Cluster
from stack_trace import KERNEL, LOCK, READ, WORK
from weft_e2e import DATA, ROOT, Case, need, scratch, weft

sys.path.insert(0, os.path.join(ROOT, "tests", "views"))
from graph_client import Server  # noqa: E402

SCENARIO = os.path.join(DATA, "traces", "three-tier-ctf2")
FORMS = ("1.8", "2")


def addresses(frames):
    return [int(f["address"], 16) for f in frames]


class Made(Case):
    def answer(self, trace, thread="10"):
        return json.loads(self.ok("critpath", trace, "--thread", thread, "--format", "json").out)

    def test_both_formats(self):
        """The thread waits twice; its waker was seen in other places each time."""
        answers = [self.answer(stack_trace.write(os.path.join(scratch(), "t"), form)) for form in FORMS]
        for a in answers:
            a["cost"] = None
        self.assertEqual(answers[0], answers[1])
        links = answers[0]["links"]
        self.assertEqual([l["from"]["time"] - stack_trace.BASE_NS for l in links], [12000, 26000])
        self.assertEqual([addresses(l["stack"]) for l in links], [READ, LOCK])
        self.assertEqual([addresses(l["kernel_stack"]) for l in links], [KERNEL, KERNEL])
        self.assertEqual([addresses(l["waker_stack"]) for l in links], [LOCK, WORK])
        self.assertNotIn("waker_kernel_stack", links[0])
        ran = [s for s in answers[0]["segments"] if s["tid"] == 11]
        self.assertEqual([(s["state"], addresses(s["stack"]), s["samples"]) for s in ran],
                         [("running", LOCK, 1), ("running", WORK, 1)])
        self.assertFalse([s for s in answers[0]["segments"] if s["tid"] == 10 and "stack" in s])

    def test_text(self):
        trace = stack_trace.write(os.path.join(scratch(), "t"))
        text = self.ok("critpath", trace, "--thread", "10", "--segments").text
        self.assertIn("Waits by call stack", text)
        self.assertIn("6.000 µs  1 ×  made:10 alpha  0x7f0000002000 0x401200 0x401020\n", text)
        self.assertIn("3.000 µs  1 ×  made:10 alpha  0x7f0000001000 0x401136 0x401020\n", text)
        self.assertRegex(text, r"made:11 beta +running\n +0x7f0000002000 0x401200 0x401020\n")
        plain = self.ok("critpath", trace, "--thread", "11").text
        self.assertNotIn("0x401300", plain)

    def test_tooltips(self):
        with Server(stack_trace.write(os.path.join(scratch(), "t"))) as server:
            status, answer = server.derive(thread="made:10")
            self.assertIn(status, (200, 201, 202), answer)
            rows = {e.get("metadata", {}).get("TID", [-1])[0]: e["id"] for e in server.tree(answer["id"])}
            tips = [server.tooltip(answer["id"], rows[tid], stack_trace.BASE_NS + t) for tid, t in
                    ((11, 10000), (11, 23000), (10, 5000))]
        self.assertEqual([tip.get("Call stack") for tip in tips],
                         ["0x7f0000002000 0x401200 0x401020", "0x401300 0x401020", None])

    def test_stores_in_pieces(self):
        """Packets that come later: the wait began in a chunk before."""
        first, second = [stack_trace.packet(p) for p in stack_trace.PACKETS]
        whole = stack_trace.write(os.path.join(scratch(), "t"))
        grown = stack_trace.write(os.path.join(scratch(), "t"), packets=[first])
        self.ok("index", grown)
        with open(os.path.join(grown, "channel_0"), "ab") as f:
            f.write(second)
        a, b = self.answer(whole), self.answer(grown)
        a["cost"] = b["cost"] = None
        self.assertEqual(a, b)
        self.ok("verify", grown)

    def test_damaged_lengths(self):
        """A length beyond the packet ends the packet; what came before and the next packet count."""
        good = stack_trace.packet(stack_trace.PACKETS[1])
        events = stack_trace.PACKETS[0]
        for which in (0, 1):
            for length in (4, 0x10000, 0x20000000, 0xffffffff):
                lengths = [len(READ), len(KERNEL)]
                lengths[which] = length
                body = stack_trace.event(*events[0]) + stack_trace.event(*events[1], lengths)
                bad = stack_trace.packet(events, body)
                trace = stack_trace.write(os.path.join(scratch(), "t"), packets=[bad, good])
                with self.subTest(which=which, length=length):
                    run = weft("critpath", trace, "--thread", "10", "--format", "json")
                    self.assertIn(run.code, (0, 3), run)
                    stacks = [addresses(l["stack"]) for l in json.loads(run.out)["links"]]
                    self.assertEqual(stacks[-1:], [LOCK])


class Recorded(Case):
    """The innermost user frame is libc's, which lacks frame pointers; tier's own names are in its symbol table."""

    @staticmethod
    def names(file):
        with open(os.path.join(SCENARIO, file), encoding="utf-8") as f:
            v = sorted((int(line.split()[0], 16), line.split()[2]) for line in f)
        places = [address for address, _ in v]
        return lambda frames: " < ".join(hex(a) if a > places[-1] + 0x1000 else v[bisect.bisect_right(places, a) - 1][1]
                                         for a in addresses(frames))

    @staticmethod
    def unpacked(*parts):
        packed, top = os.path.join(SCENARIO, "traces.tar.zst"), scratch()
        need("zstd", packed)
        subprocess.run(["tar", "-C", top, "--zstd", "-xf", packed, *parts], check=True)
        return top

    def test_what_threads_waited_for(self):
        top, user = self.unpacked("web"), self.names("tier.symbols.txt")
        for form in FORMS:
            seen, known = collections.Counter(), collections.Counter()
            with open(os.path.join(SCENARIO, f"stacks-web-ctf-{form}.json"), encoding="utf-8") as f:
                for what, times in json.load(f)["by_prev_tid"]["231"].items():
                    state, stack = what.split(" | ")[:2]
                    known[state == "state 1", stack.removeprefix("user: ")] += times
            trace = os.path.join(top, "web", f"ctf-{form}")
            answer = json.loads(self.ok("critpath", trace, "--thread", "231", "--format", "json").out)
            for s in answer["segments"]:
                if "kernel_stack" in s:
                    seen[s["state"] != "running", user(s.get("stack", []))] += 1
            self.assertEqual(seen[True, "__libc_read < serve < start_thread"], 15)
            self.assertEqual(seen, known)

    def test_over_a_cluster(self):
        """The answer is that of all traces in one place."""
        top = self.unpacked(*(os.path.join(host, "ctf-2") for host in ("client", "web", "db")))
        hosts = {host: [os.path.join(top, host)] for host in ("client", "web", "db")}
        with Cluster(hosts) as cluster:
            asked = ("critpath", "--thread", "client:225")
            for form in (("--format", "json"), ("--segments",)):
                near = self.ok(*asked, top, "--store", cluster.store, *form)
                far = self.ok(*asked, "--cluster", cluster.broker.url, *form)
                if form[0] == "--segments":
                    self.assertIn("Waits by call stack", near.text)
                    self.assertEqual(near.text, far.text)
                    continue
                near, far = json.loads(near.out), json.loads(far.out)
                self.assertTrue([l for l in near["links"] if "stack" in l] and
                                [s for s in near["segments"] if "samples" in s])
                for key in ("segments", "links"):
                    self.assertEqual(near[key], far[key])


if __name__ == "__main__":
    weft_e2e.main()
