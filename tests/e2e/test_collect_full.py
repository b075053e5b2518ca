#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""weft collect on a really full disk: spans that cannot be stored are not acknowledged, senders get a retry time, no
acknowledged span is lost, and all continues once there is room."""
import os
import signal

import otlp_made as made
from collect_server import Collect
from mounts import mount_memory, own_mounts, resize_memory, unmount
from weft_e2e import Case, main, scratch

SPANS, SMALL, LARGE = 200, "10m", "80m"


class Full(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        own_mounts()

    def setUp(self):
        self.disk = scratch()
        mount_memory(self.disk, SMALL)
        self.addCleanup(unmount, self.disk)
        self.acknowledged = []

    def send(self, c):
        """Returns whether one more trace was accepted."""
        trace = f"{len(self.acknowledged) + 1:032x}"
        answer = c.send(made.of([made.made(trace, n + 1, attributes=[made.text("text", "y" * 200)])
                                 for n in range(SPANS)]))
        if answer.status == 200:
            self.acknowledged.append(trace)
            return True
        self.assertEqual(answer.status, 503, answer.body)
        self.assertGreater(int(answer.headers["Retry-After"]), 0)
        self.assertIn(b"No space left on device", answer.body)
        return False

    def fill(self, c):
        while self.send(c):
            self.assertLess(len(self.acknowledged), 2000)
        self.assertGreater(len(self.acknowledged), 10)

    def all_there(self, c):
        return all(len(c.spans(trace)) == SPANS for trace in self.acknowledged)

    def test_it_goes_on_when_there_is_room(self):
        with Collect("--keep", "none", store=os.path.join(self.disk, "store")) as c:
            self.fill(c)
            self.assertFalse(self.send(c))
            self.assertEqual(c.get("/api/services").status, 200)
            resize_memory(self.disk, LARGE)
            self.assertTrue(c.until(lambda: self.send(c)))
            self.assertTrue(c.until(lambda: self.all_there(c)))

    def test_killed_while_it_is_full(self):
        """Acknowledged spans are in the log, if not in the database."""
        store = os.path.join(self.disk, "store")
        with Collect("--keep", "none", store=store) as c:
            self.fill(c)
            c.stop(signal.SIGKILL)
        resize_memory(self.disk, LARGE)
        with Collect("--keep", "none", store=store) as c:
            self.assertTrue(c.until(lambda: self.all_there(c)))
            self.assertTrue(self.send(c))


main()
