# SPDX-License-Identifier: MIT
"""Traces copied in part: stream files of CPUs are missing. Each verb names them, with status 3, and reports nothing of
threads that the whole trace contradicts."""
import json
import os
import shutil

from weft_e2e import Case, main, scenario, scratch, weft

STATES = ("running", "preempted", "blocked", "timer", "network", "block-device")


class MissingStreams(Case):
    def setUp(self):
        self.top = scratch()
        self.whole = os.path.join(scenario("three-tier"), "client")

    def cut(self, *files):
        """A copy of the client's trace without these files."""
        path = os.path.join(self.top, "cut%d" % len(os.listdir(self.top)), "client")
        shutil.copytree(self.whole, path, ignore=shutil.ignore_patterns(".weft"))
        for name in files:
            os.remove(os.path.join(path, "kernel", name))
        return path

    def ask(self, verb, path, *args):
        store = [] if verb in ("info", "events") else ["--store", scratch()]
        run = weft(verb, path, *args, *store)
        self.survived(run)
        return run

    def threads(self, path):
        run = self.ask("threads", path, "--format", "json")
        return run, {(r["tid"], r["comm"]): r for r in json.loads(run.text)}

    def check_notes(self, run, cpu):
        notes = [line for line in run.message.splitlines() if "missing stream" in line]
        self.assertEqual(len(notes), 1, run)
        self.assertIn("CPU %d" % cpu, notes[0])
        self.assertEqual(run.code, 3, run)

    def check(self, cpu, *files):
        path = self.cut(*files)
        run, told = self.threads(path)
        self.check_notes(run, cpu)
        _, truth = self.threads(self.whole)
        for who, row in told.items():
            for state in STATES:
                self.assertLessEqual(row[state], truth[who][state] if who in truth else 0, (who, state))
        self.assertGreater(sum(r["running"] for r in told.values()), 0)
        run = self.ask("critpath", path, "--thread", "204", "--format", "json")
        self.check_notes(run, cpu)
        self.assertNotIn("throttled", run.text)
        run = self.ask("info", path)
        self.assertEqual(run.code, 3, run)
        self.assertRegex(run.text, "missing stream.* CPU %d:" % cpu)
        self.assertNotIn("lost      nothing\n", run.text)

    def test_index_without_its_stream(self):
        self.check(1, "ch_1")
        run = self.ask("events", self.cut("ch_1"))
        self.check_notes(run, 1)

    def test_events_alone_name_the_cpu(self):
        self.check(1, "ch_1", "index/ch_1.idx")

    def test_events_alone_name_the_first_cpu(self):
        self.check(0, "ch_0", "index/ch_0.idx")

    def test_empty_stream_is_not_missing(self):
        path = self.cut()
        open(os.path.join(path, "kernel", "ch_2"), "w").close()
        run, told = self.threads(path)
        self.assertEqual((run.code, run.message), (0, ""), run)
        self.assertEqual(told, self.threads(self.whole)[1])

    def test_nothing_but_indexes(self):
        path = self.cut("ch_0", "ch_1")
        for verb in ("info", "events", "threads"):
            run = self.ask(verb, path)
            self.assertEqual(run.code, 3, run)
            self.assertRegex(run.text + run.message, "missing stream files ch_0, ch_1 of CPUs 0, 1:")
            self.assertNotIn("sched_switch", run.message)


if __name__ == "__main__":
    main()
