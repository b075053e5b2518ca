#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Trace server: experiments that cannot be opened, or not all of which can, say why, and go on saying so. Files of a
trace that are something else, or lie elsewhere, are named; none of them holds the server up."""
import os
import socket
import subprocess
import time

import small_trace
from tsp_server import THREAD_STATUS, Server, ServerCase
from weft_e2e import BIN, SLOWDOWN, main, scratch


class Openings(ServerCase):
    def setUp(self):
        self.root = os.path.realpath(scratch())
        self.secret = os.path.join(os.path.realpath(scratch()), "secret")
        small_trace.write(os.path.join(self.root, "elsewhere"))
        os.rename(os.path.join(self.root, "elsewhere", "ch_0"), self.secret)
        self.trace = os.path.join(self.root, "t")
        small_trace.write(self.trace)

    def begin(self, *args, **how):
        s = Server("--trace-root", self.root, *args, **how)
        self.addCleanup(s.stop)
        return s

    def experiment(self, s):
        trace = self.good(s.post("/traces", {"uri": self.trace}))["UUID"]
        return self.good(s.post("/experiments", {"name": "x", "traces": [trace]}))["UUID"]

    def test_why_it_is_closed(self):
        s = self.begin()
        x = self.experiment(s)
        self.assertEqual(s.opened(x)["indexingStatus"], "COMPLETED")
        self.good(s.delete(f"/experiments/{x}"))
        os.remove(os.path.join(self.trace, "metadata"))
        os.mkfifo(os.path.join(self.trace, "metadata"))
        trace = s.get("/traces").json[0]["UUID"]
        x = self.good(s.post("/experiments", {"name": "y", "traces": [trace]}))["UUID"]
        s.opened(x)
        until = time.monotonic() + 5  # retry after 2 s
        while time.monotonic() < until:
            now = s.get(f"/experiments/{x}").json
            self.assertEqual(now["indexingStatus"], "CLOSED")
            self.assertIn("FIFO", now["problem"])
            answer = self.good(s.post(f"/experiments/{x}/outputs/timeGraph/{THREAD_STATUS}/tree"))
            self.assertEqual(answer["status"], "FAILED")
            self.assertIn("FIFO", answer["statusMessage"])
            time.sleep(0.1)
        os.remove(os.path.join(self.trace, "metadata"))
        small_trace.write(self.trace)
        until = time.monotonic() + 30 * SLOWDOWN
        while time.monotonic() < until and now["indexingStatus"] != "COMPLETED":
            now = s.get(f"/experiments/{x}").json
            self.assertIn(now["indexingStatus"], ("CLOSED", "COMPLETED"))
        self.assertEqual(now["indexingStatus"], "COMPLETED")
        self.assertNotIn("problem", now)

    def test_odd_files_are_named(self):
        os.mkfifo(os.path.join(self.trace, "ch_1"))
        listening = socket.socket(socket.AF_UNIX)
        self.addCleanup(listening.close)
        listening.bind(os.path.join(self.trace, "ch_2"))
        for verb in (["info"], ["events", "--limit", "1"]):
            run = subprocess.run([BIN, *verb, self.trace], capture_output=True, timeout=60 * SLOWDOWN, text=True,
                                 check=False)
            self.assertEqual(run.returncode, 3, run)
            self.assertIn("ch_1: is a FIFO (named pipe), not a file", run.stderr + run.stdout)
            self.assertIn("ch_2: is a socket, not a file", run.stderr + run.stdout)

    def test_links_out_of_the_root(self):
        os.remove(os.path.join(self.trace, "ch_0"))
        os.symlink(self.secret, os.path.join(self.trace, "ch_0"))
        s = self.begin()
        x = s.opened(self.experiment(s))
        self.assertEqual(x["nbEvents"], 0)
        # Links to a place below the root are followed.
        inside = os.path.join(self.root, "inside")
        os.rename(self.secret, inside)
        os.remove(os.path.join(self.trace, "ch_0"))
        os.symlink(inside, os.path.join(self.trace, "ch_0"))
        self.good(s.delete("/experiments/" + x["UUID"]))
        x = s.opened(self.experiment(s))
        self.assertEqual(x["indexingStatus"], "COMPLETED", x)
        self.assertGreater(x["nbEvents"], 0)

    def test_metadata_elsewhere(self):
        os.rename(os.path.join(self.trace, "metadata"), self.secret)
        os.symlink(self.secret, os.path.join(self.trace, "metadata"))
        s = self.begin()
        x = s.opened(self.experiment(s))
        self.assertEqual(x["indexingStatus"], "CLOSED")
        self.assertIn("link out of", x["problem"])

    def test_stores_stay_in_the_trace(self):
        victim = os.path.realpath(scratch())
        with open(os.path.join(victim, "manifest.tmp.1.0"), "w", encoding="ascii") as f:
            f.write("mine")
        os.symlink(victim, os.path.join(self.trace, ".weft"))
        s = self.begin(store="", XDG_CACHE_HOME=os.path.realpath(scratch()))
        x = s.opened(self.experiment(s))
        self.assertEqual(x["indexingStatus"], "COMPLETED", x)
        self.assertEqual(os.listdir(victim), ["manifest.tmp.1.0"])


if __name__ == "__main__":
    main()
