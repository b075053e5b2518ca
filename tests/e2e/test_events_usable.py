"""The first minute with `weft events`: times as they are printed, what cannot fit is told, habits from babeltrace2."""
import datetime
import os
import re

import small_trace
from weft_e2e import Case, main, scratch, weft

START = small_trace.OFFSET_NS // 10**9
TIMES = [t for p in small_trace.PACKETS for t, _ in p]  # ns behind START
CAP = "weft: note: "


class Usable(Case):
    def setUp(self):
        self.trace = os.path.join(scratch(), "small")
        small_trace.write(self.trace)

    def events(self, *options):
        return self.ok("events", self.trace, *options)

    def test_times_as_printed(self):
        """The time of every line, however written, selects that line, in each verb that takes times."""
        for t, line in zip(TIMES, self.events().text.splitlines()):
            printed = re.match(r"\[([0-9.]+)\]", line).group(1)
            self.assertEqual(printed, f"{START}.{t:09}")
            iso = datetime.datetime.fromtimestamp(START, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S")
            for form in (printed, f"[{printed}]", printed.rstrip("0"), f"{iso}.{t:09}Z", f"{START}{t:09}",
                         f"+{t - TIMES[0]}ns"):
                run = self.events("--begin", form, "--end", form)
                self.assertEqual((run.text, run.message), (line + "\n", ""), form)
        begin, end = f"{START}.000025", f"{START}.000033"
        store = scratch()
        for form in ((begin, end), (f"{START}000025000", f"{START}000033000")):
            rows = self.json("threads", self.trace, "--store", store, "--begin", form[0], "--end", form[1])
            # alpha runs from the switch at 25 µs to the one at 33 µs
            self.assertEqual({r["comm"]: r["running"] for r in rows}["alpha"], 8000)
            answer = self.critpath(self.trace, store, "10", *form)
            self.assertEqual(answer["query"]["end"] - answer["query"]["begin"], 8000)

    def notes(self, *options, verb=("events",)):
        run = self.ok(*verb, self.trace, *options)
        self.assertEqual(weft(*verb, self.trace, *options, "-q").message, "")
        return [line[len(CAP):] for line in run.message.splitlines() if line.startswith(CAP)]

    def test_bounds_outside(self):
        last = f"[{START}.{TIMES[-1] + 100:09}]"  # the end of the last packet
        for option, value, told in (
                ("--begin", "+1h", rf"--begin \+1h: nothing lies behind it; the traces end at {re.escape(last)}"),
                ("--begin", "2262-01-01", "--begin 2262-01-01: nothing lies behind it"),
                ("--end", "0", rf"--end 0: nothing lies before it; the traces begin at \[{START}\.000001000\]"),
                ("--end", "1999-12-31T23:59:59Z", "--end .*nothing lies before it"),
                ("--begin", str(START), f"--begin {START} is in ns, since the epoch; for seconds write {START}.0"),
                ("--end", str(START), f"--end {START} is in ns, since the epoch; for seconds write {START}.0")):
            (note,) = self.notes(option, value)
            self.assertRegex(note, told)
            (note,) = self.notes(option, value, "--store", scratch(), verb=("threads",))
            self.assertIn(value, note)
        for options in (("--begin", "0"), ("--begin", "+0s", "--end", "2262-01-01"),
                        ("--begin", "+3us", "--end", "+3us")):
            self.assertEqual(self.notes(*options), [])

    def test_what_cannot_fit(self):
        for options, told in (
                (["--names", "sched_swich"], "--names sched_swich: no event of these traces has such a name; did you "
                                             "mean sched_switch?"),
                (["--names", "sched_*,irq_*"], "--names irq_*: no event of these traces has such a name"),
                (["--cpu", "7"], "--cpu: no stream of these traces is of CPU 7, only of CPU 0"),
                (["--where", "cpu == 7"], "--where: no stream of these traces is of CPU 7, only of CPU 0"),
                (["--where", "nxt_tid == 10"], "--where: no event of these traces has a field nxt_tid; did you mean "
                                               "next_tid?"),
                (["--where", "fields.next_tip == 10"], "--where: no event of these traces has a field "
                                                       "fields.next_tip; did you mean next_tid?"),
                (["--where", "nane == \"x\""], "--where: no event of these traces has a field nane; did "
                                               "you mean name?"),
                (["--where", "name == \"sched_wakin\""], "--where: no event of these traces has the name "
                                                         "\"sched_wakin\"; did you mean sched_waking?"),
                (["--where", "host == \"smal\""], "--where: no host of these traces is called \"smal\"; did you mean "
                                                  "small?"),
                (["--where", "next_tid == \"10\""], "--where: next_tid is a number and never equals the text \"10\"; "
                                                    "leave the quotes away"),
                (["--where", "\"alpha\" == next_tid"], "--where: next_tid is a number and never equals the text "
                                                       "\"alpha\""),
                (["--where", "next_comm == 10"], "--where: next_comm is a text and never equals a number; write \"10\" "
                                                 "in quotes"),
                (["--where", "tid == \"10\""], "--where: tid is a number and never equals the text \"10\"; leave the "
                                               "quotes away"),
                (["--where", "name == 3"], "--where: name is a text and never equals a number; write \"3\" in quotes")):
            self.assertEqual(self.notes(*options), [told], options)
        for options in (["--names", "sched_*"], ["--cpu", "0"], ["--where", "cpu == 0 && next_tid == 10"],
                        ["--where", "name == \"sched_switch\" && host == \"small\" && next_comm == \"alpha\""],
                        ["--where", "next_tid == 4711"], ["--where", "vtids[0] == 11 || comm =~ \"x\""]):
            self.assertEqual(self.notes(*options), [], options)

    def test_blanks_in_lists(self):
        whole = self.events("--names", "sched_switch,sched_waking")
        self.assertTrue(whole.out)
        for names in ("sched_switch, sched_waking", " sched_switch ,sched_waking ", "sched_waking,,\tsched_switch,"):
            run = self.events("--names", names)
            self.assertEqual((run.out, run.message), (whole.out, ""), names)

    def test_from_babeltrace2(self):
        whole = self.events()
        for flags in (["--clock-seconds"], ["--no-delta"], ["--clock-seconds", "--no-delta"]):
            run = self.events(*flags)
            self.assertEqual((run.out, run.message), (whole.out, ""))
        for flags, told in ((["--clock-gmt"], "seconds"), (["--clock-date"], "seconds"), (["--clock-cycles"], "ns"),
                            (["--fields", "loglevel"], "--format json"), (["-f", "all"], "--format json"),
                            (["--timerange=1,2"], "--begin BEGIN --end END"), (["--output", "x"], "> FILE"),
                            (["--clock-offset", "3"], "--sync"), (["--stream-intersection"], "--begin"),
                            (["--input-format=ctf"], "recognised"), (["-i", "ctf"], "recognised"),
                            (["--output-format", "text"], "--format"), (["--color=never"], "colours"),
                            (["--plugin-path", "x"], "plugins"), (["--component", "x"], "components")):
            run = weft("events", *flags, self.trace)
            self.assertEqual((run.code, run.out), (2, b""), run)
            self.assertRegex(run.message, r"\Aweft: events: no option -[^\n]*\n\Z")
            self.assertIn(told, run.message)
        text = self.ok("events", "--help").text
        for hidden in ("clock-gmt", "plugin", "clock-seconds"):
            self.assertNotIn(hidden, text)


if __name__ == "__main__":
    main()
