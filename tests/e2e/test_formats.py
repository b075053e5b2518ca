# SPDX-License-Identifier: MIT
"""Traces in CTF 1.8 and the same streams with metadata in CTF 2: all answers are the same, byte by byte."""
import json
import os
import re
import shutil

import test_worlds
from said import Talk, Verb
from weft_e2e import SLOWDOWN, Case, main, new_dice, scenario, scratch, weft

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
