#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Spans of scripts that weft-span marked in the kernel's trace: below other names of the machine, by a wall clock that
is seconds off, and in containers, where processes have numbers of their own. The worlds are made, so who did what and
when is known; `weft critpath` of the thread over the marked time is the judge of the sums."""
import json
import os
import sys
import uuid

from span_world import attribute
from weft_e2e import Case, main, new_dice, scratch, weft
from world import ROOT_SPACE, WAIT, Semaphore, World
from world_trace import START_NS, write_user_texts

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "views"))
import graph_client  # noqa: E402  # pylint: disable=wrong-import-position

MS = 1000000
OFF = 3500 * MS            # lead of the wall clock over the trace's
TOOK, SENT = 20000, 15000  # ns from taking a begin to its mark, from a mark to taking the end
SPACE, SCRIPT, WRAPPER, COMMAND = 4026532999, 7, 12, 13
TRACE, JOB, MAIN, LATER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7", "53995c3f42cd8ad8"


class Story:
    """A script begins a span, runs a command as another one, does something by itself, and ends its span. Beside it
    lives a process that has the number which the script has in its container."""

    def __init__(self, dice, contained, told=True, user=False):
        """told: the trace records the numbers of forked threads in the container. user: marks are in a user-space
        trace, whose session measured another distance of the clock from the epoch."""
        self.world = w = World(dice, 1)
        self.host, self.contained, self.told = w.hosts[0], contained, told
        self.user, self.texts = user, []
        self.marks, self.threads, self.done, self.over = {}, {}, Semaphore(), Semaphore()
        for name, number in (("one", SCRIPT), ("other", COMMAND)):
            decoy = w.spawn(self.host, name, self.busy())
            decoy.tid = number  # different number in its state dump: that thread is never seen again
        self.script = w.spawn(self.host, "script", self.run_script())
        if contained:
            w.contain(self.script, SPACE, SCRIPT)
        w.run(w.now + 200 * MS)
        self.folder = scratch()
        self.host.recording.write(os.path.join(self.folder, "kernel"))
        if user:
            write_user_texts(os.path.join(self.folder, "ust"), self.host.name, self.texts, -5 * MS)

    def busy(self):
        while True:
            yield "compute", 300000
            yield "sleep", 700000

    def number(self, inner, thread):
        return inner if self.contained else thread.tid

    def space(self, number):
        return (SPACE, number) if self.contained and self.told else None

    def mark(self, what, span, more=""):
        def told(thread, t):
            self.marks[what, span] = START_NS + t
            self.texts.append((t, text))
        text = f"weft-span {what} {TRACE} {span}{more}"
        return "log", "somebody else's" if self.user else text, told

    def run_script(self):
        yield "compute", MS
        yield "fork", "weft-span", self.run_start(), self.space(8)
        yield "wait", self.done
        yield "compute", 2 * MS
        yield "fork", "weft-span", self.run_wrapper(), self.space(WRAPPER)
        yield "compute", 4 * MS  # concurrent work
        yield "wait", self.done
        yield "disk", 3 * MS
        yield "fork", "weft-span", self.run_end(), self.space(14)
        yield "wait", self.done
        yield "compute", MS
        yield "sleep", 5 * MS
        yield "compute", MS
        yield "sleep", 500 * MS

    def run_start(self):
        yield "compute", 100000
        yield self.mark("begin", JOB, f" - {self.number(SCRIPT, self.script)} job")
        yield "compute", 100000
        yield "post", self.done

    def run_wrapper(self):
        self.wrapper = self.host.threads[-1]
        yield "compute", 100000
        yield self.mark("begin", MAIN, f" {JOB} {self.number(WRAPPER, self.wrapper)} main")
        yield "fork", "command", self.run_command(), self.space(COMMAND)
        self.command = self.host.threads[-1]
        yield "wait", self.over
        yield self.mark("end", MAIN)
        yield "compute", 50000
        yield "post", self.done

    def run_command(self):
        yield "compute", 500000
        yield "disk", 6 * MS
        yield "compute", 1500000
        yield "disk", 2 * MS
        yield "post", self.over

    def run_end(self):
        yield self.mark("end", JOB)
        yield "post", self.done

    # ---- spans ----

    def wall(self, span):
        return self.marks["begin", span] + OFF - TOOK, self.marks["end", span] + OFF + SENT

    def span(self, span, name, begin, end, pid, trace=TRACE, parent="", host="pod-77", own=(), **more):
        resource = {"service.name": "pilot", "host.name": host, **more}
        out = {"traceId": trace, "spanId": span, "parentSpanId": parent, "name": name, "startTimeUnixNano": str(begin),
               "endTimeUnixNano": str(end), "attributes": [attribute(*x) for x in [("process.pid", pid), *own]]}
        return json.dumps({"resourceSpans": [{
            "resource": {"attributes": [attribute(k, v) for k, v in resource.items()]},
            "scopeSpans": [{"spans": [out]}]}]})

    def job(self):
        return [self.span(JOB, "job", *self.wall(JOB), self.number(SCRIPT, self.script)),
                self.span(MAIN, "main", *self.wall(MAIN), self.number(COMMAND, self.command), parent=JOB)]

    def boot(self):
        """Returns the clock's name as in LTTng: by the boot."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.host.name} 0"))

    def waits(self, thread, begin, end):
        """Returns its waits for disks, by how the world was made."""
        return sum(min(i.end, end) - max(i.begin, begin) for i in thread.intervals[:-1]
                   if i.kind == WAIT and i.cause == ("end", "block-device") and i.begin < end and i.end > begin)


class Marks(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.stories = {}
        for name, how in (("host", (False,)), ("container", (True,)), ("container, forks untold", (True, False))):
            cls.stories[name] = Story(new_dice(3), *how)

    def ask(self, story, lines, *more):
        path = os.path.join(scratch(), "spans.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in lines))
        store = os.path.join(story.folder, "store")
        return weft("spans", "critpath", "--kernel", story.folder, "--trace-store", store, *more, path)

    def told(self, story, lines):
        run = self.ask(story, lines, "--format", "json")
        self.assertEqual(run.code, 0, run)
        return json.loads(run.text)

    def judge(self, story, thread, begin, end):
        run = weft("critpath", "--store", os.path.join(story.folder, "store"), "--thread", str(thread.tid), "--begin",
                   str(begin), "--end", str(end), "--format", "json", story.folder)
        self.assertEqual(run.code, 0, run)
        return json.loads(run.text)["segments"]

    def test_marks_alone_join(self):
        """Marks alone join: these spans have no name and no number of the trace."""
        for name, story in self.stories.items():
            with self.subTest(name):
                told = self.told(story, story.job())
                main, = (x for u in told["units"] for x in u["sections"] if x["stage"] == "main")
                begin, end = story.marks["begin", MAIN], story.marks["end", MAIN]
                self.assertEqual([main["kernel"][k] for k in ("host", "tid", "by")], ["h0", story.wrapper.tid, "mark"])
                self.assertEqual(main["kernel"]["traced"], end - begin)
                disk = story.waits(story.command, begin - START_NS, end - START_NS)
                self.assertEqual(main["kernel"]["why"]["disk"], disk)
                self.assertGreater(disk, 7 * MS)
                wanted = sum(s["end"] - s["begin"] for s in self.judge(story, story.wrapper, begin, end)
                             if s["state"] == "running")
                self.assertEqual(main["kernel"]["why"]["running"], wanted)
                self.assertGreater(wanted, 1900000)
                # Span of the script around it, whose own disk wait comes after `main`.
                job = [x for u in told["units"] for x in u["sections"] if x["stage"] == "job"]
                self.assertEqual({(x["kernel"]["tid"], x["kernel"]["by"]) for x in job}, {(story.script.tid, "mark")})
                own = story.waits(story.script, end - START_NS, story.marks["end", JOB] - START_NS)
                self.assertLess(abs(sum(x["kernel"]["why"]["disk"] for x in job) - own), 1000)
                self.assertGreater(own, 2 * MS)

    def test_the_clock_is_put_right_and_that_is_said(self):
        for name, story in self.stories.items():
            with self.subTest(name):
                clock, = self.told(story, story.job())["clocks"]
                self.assertEqual(clock, {"host": "h0", "marked": 2, "monotonic": 0, "least": TOOK - OFF,
                                         "most": TOOK - OFF})
                run = self.ask(story, story.job())
                self.assertIn("h0: times of its spans are taken as 3.500 s earlier, as 2 of them marked", run.message)

    def test_marks_in_a_user_space_trace(self):
        """Marks in a user-space trace: times are the trace's to the ns; the thread is given by the span's own number,
        on the machine of the marks."""
        for contained in (False, True):
            story = Story(new_dice(3), contained, user=True)
            more = {"weft.pid_namespace": SPACE} if contained else {}
            begin, end = story.wall(MAIN)
            number = story.number(COMMAND, story.command)
            told = self.told(story, [story.span(MAIN, "main", begin, end, number, **more)])
            with self.subTest(contained=contained):
                main, = (x for u in told["units"] for x in u["sections"])
                kernel = main["kernel"]
                self.assertEqual([kernel[k] for k in ("host", "tid", "by")],
                                 ["h0", story.command.tid, "namespace" if contained else "number"])
                begin, end = story.marks["begin", MAIN], story.marks["end", MAIN]
                self.assertLess(end - begin - kernel["traced"], 1000)  # the command was forked a moment later
                self.assertLessEqual(kernel["traced"], end - begin)
                self.assertEqual(kernel["why"]["disk"], story.waits(story.command, begin - START_NS, end - START_NS))
                clock, = told["clocks"]
                self.assertEqual(clock, {"host": "h0", "marked": 1, "monotonic": 0, "least": TOOK - OFF,
                                         "most": TOOK - OFF})

    def later(self, story, pid, **more):
        """A span without marks, of what the script does after its job."""
        begin = story.marks["end", JOB] + OFF + 2 * MS
        return story.span(LATER, "later", begin, begin + 3 * MS, pid, trace="1" * 32, **more)

    def test_beside_them_spans_without_marks(self):
        """Spans without marks are joined by the number in the container, on the machine of that boot, with the clock
        given by the marks."""
        for name, story in self.stories.items():
            more = {"host.boot_id": story.boot()}
            if story.contained:
                more["weft.pid_namespace"] = SPACE
            told = self.told(story, story.job() + [self.later(story, story.number(SCRIPT, story.script), **more)])
            x, = (x for u in told["units"] for x in u["sections"] if x["stage"] == "later")
            with self.subTest(name):
                self.assertEqual(x["kernel"]["tid"], story.script.tid)
                self.assertEqual(x["kernel"]["by"], "namespace" if story.contained else "number")
                begin = story.marks["end", JOB] + TOOK + 2 * MS
                wanted = {}
                for s in self.judge(story, story.script, begin, begin + 3 * MS):
                    wanted[s["state"]] = wanted.get(s["state"], 0) + s["end"] - s["begin"]
                got = {k: v for k, v in x["kernel"]["why"].items() if v}
                self.assertEqual({k: v for k, v in got.items() if k in wanted}, wanted)
                self.assertGreater(sum(got.values()), 2900000)

    def test_what_the_server_shows(self):
        """The server shows the same join: times of the trace's clock, and the thread."""
        story = self.stories["container"]
        path = os.path.join(scratch(), "spans.jsonl")
        with open(path, "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in story.job()))
        with graph_client.Server("--spans", path, story.folder) as server:
            rows = server.tree("weft.spans")
            for span, name, thread in ((JOB, "job", story.script), (MAIN, "main", story.wrapper)):
                begin, end = story.marks["begin", span], story.marks["end", span]
                lane, = (r["id"] for r in rows if "path" not in r["labels"][0] and any(
                    s.get("label") == name and (s["start"], s["end"]) == (begin, end)
                    for s in server.states("weft.spans", [r["id"]], begin + 1, end - 1, 2).get(r["id"], [])))
                tip = server.tooltip("weft.spans", lane, begin + 1)
                self.assertEqual((tip["Span"], tip["Thread"], tip["Thread found"], tip["Wall clock put right by"]),
                                 (span, f"h0:{thread.tid}", "by marks in the trace", "-3.500 s"))

    def test_by_the_monotonic_clock(self):
        """Reading of the trace's clock by the span itself: exact without marks, with a wall clock that is seconds off.
        Readings of another boot, and those hours from the wall clock's (a container's own), are not used."""
        story = self.stories["host"]
        wall, begin = story.marks["end", JOB] + OFF + 2 * MS, story.marks["end", JOB] + 2 * MS - START_NS
        for what, boot, off in (("right", story.boot(), 0), ("another boot", str(uuid.uuid4()), 0),
                                ("a clock of its own", story.boot(), 3600 * 2 * 10**9)):
            own = [("weft.monotonic_start_ns", begin + off), ("weft.monotonic_end_ns", begin + off + 3 * MS)]
            line = story.span(LATER, "later", wall, wall + 3 * MS, story.script.tid, trace="1" * 32, own=own,
                              host=story.host.name, **{"host.boot_id": boot})
            told = self.told(story, [line])
            x, = (x for u in told["units"] for x in u["sections"])
            with self.subTest(what):
                wanted = {}
                for s in self.judge(story, story.script, START_NS + begin, START_NS + begin + 3 * MS):
                    wanted[s["state"]] = wanted.get(s["state"], 0) + s["end"] - s["begin"]
                self.assertGreater(wanted.get("timer", 0), MS)
                if what == "right":
                    self.assertEqual((x["kernel"]["tid"], x["kernel"]["by"]), (story.script.tid, "number"))
                    got = {k: v for k, v in x["kernel"]["why"].items() if v}
                    self.assertEqual({k: v for k, v in got.items() if k in wanted}, wanted)
                    wanted = {"host": "h0", "marked": 0, "monotonic": 1, "least": -OFF, "most": -OFF}
                    self.assertEqual(told["clocks"], [wanted])
                    self.assertIn("earlier, as 1 of them tell by the machine's monotonic clock",
                                  self.ask(story, [line]).message)
                else:
                    self.assertEqual(told["clocks"], [])
                    self.assertFalse(x["kernel"] and x["kernel"]["why"].get("timer"))

    def test_the_wrong_machine(self):
        """The wrong machine, without a matching boot or name: such spans are not joined, however the numbers fit."""
        story = self.stories["container"]
        line = self.later(story, SCRIPT, **{"host.boot_id": str(uuid.uuid4()), "weft.pid_namespace": SPACE})
        told = self.told(story, story.job() + [line])
        x, = (x for u in told["units"] for x in u["sections"] if x["stage"] == "later")
        self.assertIsNone(x["kernel"])

    def test_another_namespace(self):
        """A number of another container is not taken for one of this, nor for one outside; nor the other way round."""
        story = self.stories["container"]
        for space in (SPACE + 1, ROOT_SPACE):
            line = self.later(story, SCRIPT, **{"host.boot_id": story.boot(), "weft.pid_namespace": space})
            told = self.told(story, story.job() + [line])
            x, = (x for u in told["units"] for x in u["sections"] if x["stage"] == "later")
            if space == ROOT_SPACE:
                self.assertRegex(x["kernel"]["sentence"], rf" {SCRIPT} one, ")
                self.assertEqual(x["kernel"]["by"], "number")
            else:
                self.assertIsNone(x["kernel"])


main()
