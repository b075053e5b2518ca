#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Marks of spans by LTTng's user-space tracer, if the kernel's cannot be written to: a real session daemon, in a
directory that only this test sees, records them; babeltrace2's output is the reference."""
import os
import re
import signal
import subprocess
import time

from mounts import mount_memory, own_mounts
from span_collector import SPAN, attributes, environment, span, spooled
from weft_e2e import SLOWDOWN, Case, main, need, scratch

SOCKETS = "/run/lttng"


class Daemon:
    def __init__(self):
        self.env = {**os.environ, "LTTNG_HOME": scratch(), "HOME": scratch()}
        self.sockets = SOCKETS if os.getuid() == 0 else os.path.join(self.env["LTTNG_HOME"], ".lttng")
        self.process = subprocess.Popen(["lttng-sessiond", "--no-kernel"], env=self.env, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        end = time.monotonic() + 30 * SLOWDOWN
        while not os.path.exists(os.path.join(self.sockets, "client-lttng-sessiond")) or not self.tell("list"):
            if time.monotonic() > end or self.process.poll() is not None:
                raise AssertionError("the session daemon does not come up")
            time.sleep(0.05)

    def tell(self, *words):
        return subprocess.run(["lttng", *words], env=self.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, timeout=60 * SLOWDOWN, check=False).returncode == 0

    def kill(self):
        """Kills it with its consumers, which are in its process group."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class UserSpace(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        need(SPAN, "lttng-sessiond", "lttng", "babeltrace2")
        if os.getuid() == 0:
            # Root's daemon has its sockets in one place of the machine.
            own_mounts()
            mount_memory("/run", "16m")
        cls.daemon = Daemon()

    @classmethod
    def tearDownClass(cls):
        if cls.daemon.process.poll() is None:
            cls.daemon.kill()
        super().tearDownClass()

    def run_ok(self, env, *command):
        run = span("run", "--name", "stage", "--", *command, env=env)
        self.assertEqual((run.returncode, run.stderr), (0, b""), run)
        return run

    def environment(self, **more):
        spool = scratch()
        return environment(None, spool, WEFT_SPAN_SPOOL=spool, LTTNG_HOME=self.daemon.env["LTTNG_HOME"], **more)

    def test_1_marks_are_recorded(self):
        """Marks have the clock of the spans' begin and end: that of LTTng's traces."""
        trace, env = scratch(), self.environment()
        for words in (["create", "marks", f"--output={trace}"], ["enable-event", "-u", "lttng_ust_tracef:*"],
                      ["start"]):
            self.assertTrue(self.daemon.tell(*words), words)
        run = self.run_ok(env, "sh", "-c", "env | grep -c LTTNG_UST; true")
        self.assertEqual(run.stdout, b"0\n")
        self.run_ok({**env, "WEFT_SPAN_MARK": "ust"}, "true")
        self.run_ok({**env, "WEFT_SPAN_MARK": "no"}, "true")
        self.assertTrue(self.daemon.tell("destroy", "marks"))
        said = subprocess.run(["babeltrace2", "--clock-cycles", trace], stdout=subprocess.PIPE, text=True,
                              check=True).stdout
        marks = re.findall(r'^\[(\d+)\].* lttng_ust_tracef:event: .*msg = "weft-span (begin|end) (\w+) (\w+)', said,
                           re.M)
        first, second, unmarked = spooled(env)
        self.assertEqual([m[1:] for m in marks], [(what, x["traceId"], x["spanId"]) for x in (first, second)
                                                  for what in ("begin", "end")])
        self.assertNotIn(unmarked["spanId"], said)
        for n, x in enumerate((first, second)):
            begin, end = (int(m[0]) for m in marks[2 * n:2 * n + 2])
            own = attributes(x)
            times = [own["weft.monotonic_start_ns"], begin, end, own["weft.monotonic_end_ns"]]
            self.assertEqual(times, sorted(times))

    def test_2_a_daemon_that_hangs_holds_nobody_up(self):
        os.kill(self.daemon.process.pid, signal.SIGSTOP)
        try:
            env = self.environment()
            self.run_ok(env, "true")
            self.assertEqual(len(spooled(env)), 1)
        finally:
            os.kill(self.daemon.process.pid, signal.SIGCONT)

    def test_3_a_daemon_that_is_gone(self):
        """A daemon that is gone, with its sockets left."""
        self.daemon.kill()
        self.assertTrue(os.path.exists(os.path.join(self.daemon.sockets, "lttng-ust-sock-8")))
        env = self.environment()
        self.run_ok(env, "true")
        self.assertEqual(len(spooled(env)), 1)


main()
