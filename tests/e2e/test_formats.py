# SPDX-License-Identifier: MIT
"""Traces in CTF 1.8 and the same streams with metadata in CTF 2: all answers are the same, byte by byte."""
import json
import os
import re
import shutil
import subprocess

import test_worlds
from said import Talk, Verb
from weft_e2e import ROOT, SLOWDOWN, Case, main, need, new_dice, scenario, scratch, weft

CUT_TRACE = os.path.abspath(os.environ.get("CUT_TRACE") or os.path.join(ROOT, "build/tests/e2e/cut_trace"))
MOST_PATHS = 40 // SLOWDOWN
LABEL = re.compile(rb"\b_(?=(ipv4|ipv6|tcp|udp|icmp|unknown)\b)")  # underscore of LTTng's labels in CTF 1.8


class Talking(Talk):
    """The events table shows labels."""

    @staticmethod
    def answer(server, method, path, body):
        answer = Talk.answer(server, method, path, body)
        answer.body = LABEL.sub(b"", answer.body)
        return answer


class Formats(Case):
    def same(self, old, dice):
        """Asks of the traces below `old`, and of a copy in CTF 2."""
        new = os.path.join(scratch(), os.path.basename(old))
        shutil.copytree(old, new)
        test_worlds.to_ctf2(new)
        stores = scratch(), scratch()
        before, after = Verb(old, stores[0]), Verb(new, stores[1])
        threads = json.loads(weft("threads", old, "--all", "--store", stores[0], "--format", "json").out)
        names = [f"{t['host']}:{t['tid']}" for t in threads]
        names = [n for n in names if names.count(n) == 1]
        questions = [("threads", "--all"), ("threads",), ("sync",), ("requests",), ("flows",)]
        paths = dice.sample(names, min(len(names), MOST_PATHS))
        for asked in questions + [("critpath", "--thread", name) for name in paths]:
            with self.subTest(trace=old, asked=asked):
                said = before(*asked)
                self.assertIn(said[0], (0, 2, 3), said)  # 2: paths of hosts that exchanged no message
                self.assertEqual(after(*asked), said)
        talk = Talking(dice)
        talk.start(old, stores[0], dice.sample(names, 2))
        self.assertGreater(len(talk.said), 100)
        found = talk.differences(new, stores[1])
        self.assertEqual(len(found), 0, str(found[:1])[:4000])

    def test_worlds(self):
        dice = new_dice(31)
        for how in {"loss": 0.05, "reorder": 0.2}, {"forwarders": 1, "stacked": True}:
            world = test_worlds.make(dice, **how)
            folder = scratch()
            for host in world.hosts:
                host.recording.write(os.path.join(folder, host.name))
            self.same(folder, dice)

    def archives(self, world):
        """The world in archives, every second one in CTF 2."""
        top, dice = scratch(), world.dice
        for host in world.hosts:
            whole, cut = scratch(), os.path.join(top, host.name, "archives")
            host.recording.write(os.path.join(whole, host.name))
            os.makedirs(cut)
            subprocess.run([CUT_TRACE, os.path.join(whole, host.name), cut, str(dice.getrandbits(63)), "4"],
                           check=True, stdout=subprocess.DEVNULL)
            for archive in sorted(os.listdir(cut))[::2]:
                test_worlds.to_ctf2(os.path.join(cut, archive))
        return top

    def test_archives_in_both(self):
        """They are one trace, which is said."""
        need(CUT_TRACE)
        dice = new_dice(33)
        world, whole = test_worlds.make(dice), scratch()
        for host in world.hosts:
            host.recording.write(os.path.join(whole, host.name))
        mixed, stores = self.archives(world), (scratch(), scratch())
        paths = [("critpath", "--thread", f"{t.host.name}:{t.tid}")
                 for t in dice.sample([t for h in world.hosts for t in h.threads], 6)]
        for asked in [("threads", "--all"), ("sync",), ("requests",), ("flows",)] + paths:
            with self.subTest(asked):
                code, said, _ = Verb(whole, stores[0])(*asked)
                answer = Verb(mixed, stores[1])(*asked)
                self.assertEqual(answer[:2], (code, said), answer)
                self.assertIn("they declare the same and are read as one trace", answer[2])

    def test_archives_that_differ(self):
        """Archives in two formats that declare different things are refused."""
        need(CUT_TRACE)
        mixed = self.archives(test_worlds.make(new_dice(34)))
        for path, _, names in os.walk(mixed):
            if "metadata" in names:
                with open(os.path.join(path, "metadata"), "r+", encoding="utf-8") as f:
                    text = f.read()
                    if text.startswith("\x1e"):
                        f.seek(0)
                        f.write(text.replace('"name":"prev_prio"', '"name":"prev_weight"'))
                        f.truncate()
        for verb in "info", "events", "threads":
            run = weft(verb, mixed)
            self.assertEqual(run.code, 1, run)
            self.assertIn("partly in CTF 1.8 and partly in CTF 2", run.message)

    def test_recording(self):
        """Metadata of LTTng with hundreds of event classes."""
        recording = scenario("three-tier")
        other = os.path.join(scratch(), "three-tier")
        shutil.copytree(recording, other)
        test_worlds.to_ctf2(other)
        for form in "text", "json", "csv":
            old, new = (self.ok("events", path, "--format", form).out for path in (recording, other))
            self.assertEqual(LABEL.sub(b"", new), LABEL.sub(b"", old), form)


if __name__ == "__main__":
    main()
