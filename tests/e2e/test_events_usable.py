# SPDX-License-Identifier: MIT
"""First minute with `weft events`: times as printed, explanations of impossible filters, habits from babeltrace2."""
import csv
import datetime
import io
import json
import os
import re
import struct
import subprocess

import ctf_made
import small_trace
from weft_e2e import DATA, Case, main, need, needs, scratch, weft

START = small_trace.OFFSET_NS // 10**9
TIMES = [t for p in small_trace.PACKETS for t, _ in p]  # ns behind START
CAP = "weft: note: "
LINE = re.compile(r"\[([0-9.]+)\] (\S+) (\S+): \{ cpu_id = (\d+) \}, \{(.*)\}")
FIELD = re.compile(r"(\w+) = (?:\"([^\"]*)\"|(-?(?:0|[1-9]\d*)))(?=,| \}|$)")


def babeltrace2(path):
    """Per line: time, host, name, CPU, and the fields that are texts or decimal numbers; and what it warns of."""
    done = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], capture_output=True, check=True)
    lines = []
    for line in done.stdout.decode().splitlines():
        time, host, name, cpu, fields = LINE.fullmatch(line).groups()
        nested = 1
        while nested:
            fields, nested = re.subn(r"[\[{(][^][{}()]*[]})]", "", fields)
        fields = {k: text if number == "" else int(number) for k, text, number in FIELD.findall(fields)}
        lines.append((time, host, name, int(cpu), fields))
    return lines, done.stderr.decode()


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

    # ---- columns ----

    def csv(self, trace, columns, *options):
        out = self.ok("events", trace, "--format", "csv", "--columns", columns, *options).text
        header, *rows = csv.reader(io.StringIO(out, newline=""))
        self.assertEqual(header, [c.strip() for c in columns.split(",")])
        return rows

    def objects(self, trace, columns, *options):
        out = self.ok("events", trace, "--format", "json", "--columns", columns, *options).text
        rows = [json.loads(line) for line in out.splitlines()]
        for row in rows:
            self.assertEqual(list(row), [c.strip() for c in columns.split(",")])
        return [list(row.values()) for row in rows]

    @needs("babeltrace2")
    def test_columns(self):
        """Columns in their places, with the values that babeltrace2 shows; the thread is the last one switched to."""
        expected, running, before = [], small_trace.IDLE, None
        for time, host, name, cpu, f in babeltrace2(self.trace)[0]:
            if name == "sched_process_exec": # the thread has the new name from here on
                running = (os.path.basename(f["filename"]), running[1])
            ns = int(time.replace(".", ""))
            expected.append([f.get("next_comm"), running[1], ns, time, name, f.get("tid"), running[0], host,
                             f.get("filename"), cpu, None if before is None else ns - before])
            before = ns
            if name == "sched_switch":
                running = (f["next_comm"], f["next_tid"])
        self.assertEqual(len(expected), len(TIMES))
        columns = "next_comm,tid,ts, time ,name,fields.tid,\tcomm,host,filename,cpu,delta"
        self.assertEqual(self.objects(self.trace, columns), expected)
        texts = [["" if v is None else str(v) for v in row] for row in expected]
        self.assertEqual(self.csv(self.trace, columns), texts)
        # Selections do not change the running thread; the time between is that of the selected lines.
        wanted = [i for i, row in enumerate(expected) if row[4] == "sched_waking"]
        for options in (["--names", "sched_waking"], ["--where", "name == 'sched_waking' && tid >= 0"]):
            rows = self.csv(self.trace, columns, *options)
            self.assertEqual([row[:-1] for row in rows], [texts[i][:-1] for i in wanted])
            self.assertEqual([row[-1] for row in rows],
                             [""] + [str(TIMES[b] - TIMES[a]) for a, b in zip(wanted, wanted[1:])])
        split = self.ok("events", self.trace, "--format", "csv", "--columns", "cpu", "--columns", "ts,name").text
        self.assertEqual(split, self.ok("events", self.trace, "--format", "csv", "--columns", "cpu,ts,name").text)

    def test_columns_recorded(self):
        """A recording that lost events."""
        trace = need(os.path.join(DATA, "traces", "lost-events"))
        need("babeltrace2")
        lines, warnings = babeltrace2(trace)
        lost = sorted(int(n) for n in re.findall(r"discarded (\d+) event", warnings))
        names = sorted({k for line in lines for k in line[4]} - {"name", "cpu", "ts", "tid", "host", "comm", "time"})
        self.assertGreater(len(names), 20)
        columns = ["time", "host", "name", "cpu"] + ["fields." + n for n in names]
        expected = [[*line[:4], *(line[4].get(n) for n in names)] for line in lines]
        rows = self.objects(trace, ",".join(columns))
        events = [row for row in rows if row[2] != "lost_events"]
        self.assertEqual(len(events), len(expected))
        for ours, theirs in zip(events, expected):
            # Numbers in other bases and what is no plain value are not compared, nor the empty strings that
            # babeltrace2 shows wrongly (docs/verbs/events.md).
            pairs = [(v, w) for v, w in zip(ours, theirs) if w is not None and not (v == "" and isinstance(w, str))]
            self.assertEqual([v for v, _ in pairs], [w for _, w in pairs])
        table = self.csv(trace, ",".join(columns))
        self.assertEqual(table, [["" if v is None else v if isinstance(v, str) else json.dumps(v, separators=(",", ":"))
                                  for v in row] for row in rows])
        self.assertEqual(sorted(int(row[1]) for row in self.csv(trace, "cpu,lost") if row[1]), lost)
        self.assertEqual(sorted(row[0] for row in self.objects(trace, "lost,ts") if row[0] is not None), lost)
        self.assertEqual(len(self.csv(trace, "cpu,ts")), len(lines)) # no field there would show that it is a loss

    def test_columns_of_all_kinds(self):
        """Columns of all kinds by the bytes of the event. Without a clock there is no time."""
        u8, i64 = ctf_made.integer(8), ctf_made.integer(64)
        real = "floating_point {{ exp_dig = {}; mant_dig = {}; align = 8; }}"
        letter = "integer { size = 8; align = 8; encoding = UTF8; }"
        signed = "integer { size = 64; align = 8; signed = true; }"
        fields = (f"enum : {u8} {{ one = 1, two }} e; {i64} big; {signed} low; "
                  f"{real.format(8, 24)} f; {real.format(11, 53)} d; string s; {letter} t[4]; {u8} n; {u8} l[n]; "
                  f"struct {{ {u8} a; struct {{ string b; {real.format(8, 24)} c; }} in[2]; }} w; "
                  f"variant <e> {{ {u8} one; struct {{ {u8} x; {u8} y; }} two; }} v; {u8} _h;")
        data = (bytes([2]) + struct.pack("<Qqfd", 2**64 - 1, -2**63, 0.1, 0.1) + b'a,"b"\n\xff\0' + b"ab\0\0"
                + bytes([3, 7, 8, 9]) + bytes([5]) + b"p\0" + struct.pack("<f", 0.5) + b"\"\0"
                + struct.pack("<f", float("inf")) + bytes([6, 7]) + bytes([8]))
        text = (f"stream {{ packet.context := struct {{ {ctf_made.integer(32)} packet_size; }}; }};\n"
                f"event {{ name = e; id = 0; fields := struct {{ {fields} }}; }};\n")
        path = ctf_made.write(os.path.join(scratch(), "kinds"), text, ctf_made.word(8 * (4 + len(data)), 32) + data)
        inner = {"a": 5, "in": [{"b": "p", "c": 0.5}, {"b": '"', "c": None}]}
        for column, value in (("e", 2), ("e.label", "two"), ("big", 2**64 - 1), ("low", -2**63), ("f", 0.1), ("d", 0.1),
                              ("s", 'a,"b"\n\ufffd'), ("t", "ab"), ("l", [7, 8, 9]), ("l[1]", 8), ("l[3]", None),
                              ("w", inner), ("w.a", 5), ("w.in", inner["in"]), ("w.in[1].b", '"'), ("v.one", None),
                              ("v", {"two": {"x": 6, "y": 7}}), ("v.two", {"x": 6, "y": 7}), ("v.two.y", 7), ("h", 8),
                              ("_h", 8), ("ts", None), ("time", None), ("delta", None), ("cpu", None), ("tid", None)):
            with self.subTest(column):
                self.assertEqual(self.objects(path, column), [[value]])
                ((cell, name),) = self.csv(path, column + ",name")
                self.assertEqual(name, "e")
                if isinstance(value, (dict, list)):
                    self.assertEqual(json.loads(cell), value)
                else:
                    self.assertEqual(cell, "" if value is None else str(value))

    def test_columns_refused(self):
        for columns, told in (("nxt_comm", "no event of these traces has a field nxt_comm; did you mean next_comm?"),
                              ("tims", "no event of these traces has a field tims; did you mean time?"),
                              ("commm", "no event of these traces has a field commm; did you mean comm?")):
            self.assertEqual(self.notes("--format", "csv", "--columns", "ts," + columns), [f"--columns: {told}"])
            self.assertTrue(all(row[1] is None for row in self.objects(self.trace, "ts," + columns)))
        known = "ts,time,delta,lost,host,cpu,tid,comm,name,next_comm,vtids,vtids[0],fields.tid,_vtids"
        self.assertEqual(self.notes("--format", "json", "--columns", known), [])
        for options, told in ((["--columns", "ts"], "--format csv or json"),
                              (["--columns", "ts", "--format", "text"], "--format csv or json"),
                              (["--columns", "", "--format", "csv"], "ts,cpu,name"),
                              (["--columns", "ts, ts", "--format", "csv"], "ts is there twice")):
            run = weft("events", self.trace, *options)
            self.assertEqual((run.code, run.out), (2, b""), run)
            self.assertRegex(run.message, r"\Aweft: --columns: [^\n]*\n\Z")
            self.assertIn(told, run.message)

    def test_names_of_babeltrace2(self):
        """Values of --names, which selects the names to print."""
        for word in ("none", "all", "payload", "context", "header"):
            (note,) = self.notes("--names", word)
            self.assertRegex(note, rf"\A--names {word}: no event .* has such a name; it chooses events here, ")
            self.assertIn("--format csv --columns", note)
        path = os.path.join(scratch(), "called")
        small_trace.write(path, small_trace.METADATA.replace('"sched_waking"', '"none"'))
        run = self.ok("events", path, "--names", "none")
        self.assertEqual((run.text.count("none:"), run.message), (4, ""))


if __name__ == "__main__":
    main()
