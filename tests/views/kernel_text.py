# SPDX-License-Identifier: MIT
"""States of a kernel trace according to babeltrace2's text, as the reference of the views' tests, and their
comparison."""
import bisect
import re
import subprocess

from graph_client import check_row, key, new_dice, sample_times

LINE = re.compile(r"^\[(\d+)\.(\d{9})\] (?:(\S+) )?([\w:]+): (.*)$")
FIELD = re.compile(r"(\w+) = (-?\d+|0x[0-9A-Fa-f]+)\b")
STRING = re.compile(r"(\w+) = \"([^\"]*)\"")
dice = new_dice(11)


class Steps:
    """A value over time: `start` until it is first set."""

    def __init__(self, start=None):
        self.times, self.values, self.start = [], [], start

    def set(self, t, value):
        self.times.append(t)
        self.values.append(value)

    def add(self, t, value):
        self.set(t, (self.values[-1] if self.values else self.start) + value)

    def at(self, t):
        i = bisect.bisect_right(self.times, t)
        return self.values[i - 1] if i else self.start

    def change_after(self, t):
        """Returns the time of its next change; None: never."""
        return next((self.times[i] for i in range(bisect.bisect_right(self.times, t), len(self.times))
                     if self.at(self.times[i]) != self.at(t)), None)

    def change_before(self, t):
        """Returns the time since when it has its value at t; None: since the begin."""
        return next((self.times[i] for i in range(bisect.bisect_right(self.times, t) - 1, -1, -1)
                     if self.at(self.times[i] - 1) != self.at(t)), None)

    def stored(self):
        """Returns the values without those that last less than one ns, and from the first time on that it is not 0."""
        steps = Steps()
        for i, (t, value) in enumerate(zip(self.times, self.values)):
            if (i + 1 == len(self.times) or self.times[i + 1] > t) and (value or steps.times):
                steps.set(t, value)
        return steps

    def least(self):
        """Least value at any time: what is passed within one ns does not count."""
        return min([self.start] + [v for i, v in enumerate(self.values) if i + 1 == len(self.times)
                                   or self.times[i + 1] > self.times[i]])


class Text:
    """A trace as babeltrace2 tells it: events as (ns, name, fields), and who runs on each CPU by its switches alone."""

    def __init__(self, path):
        text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=True).stdout
        self.events = []
        for line in text.decode("utf-8", "replace").splitlines():
            m = LINE.match(line)
            fields = dict(STRING.findall(m[5]), **{k: int(v, 16 if "x" in v else 10) for k, v in FIELD.findall(m[5])})
            self.events.append((int(m[1]) * 10**9 + int(m[2]), m[4], fields, int(FIELD.search(m[5])[2])))
        self.first, self.last = self.events[0][0], self.events[-1][0]
        self.current = self.before_first_switch()
        self.read()

    def before_first_switch(self):
        current = {}
        for _, name, fields, cpu in self.events:
            if name == "sched_switch":
                current.setdefault(cpu, self.who(fields["prev_tid"], cpu))
        return current

    @staticmethod
    def who(tid, cpu):
        """Idle threads are one per CPU."""
        return tid if tid else ("idle", cpu)

    def read(self):
        self.memory, self.counters, self.frequency = {"total": Steps(0)}, {}, {}
        self.irqs, self.irq_lines, busy = {}, {}, {}
        for t, name, fields, cpu in self.events:
            for field, value in fields.items():
                if field.startswith("perf_"):
                    self.counters.setdefault((cpu, field), Steps()).set(t, value)
            if name == "sched_switch":
                self.current[cpu] = self.who(fields["next_tid"], cpu)
            elif name in ("kmem_mm_page_alloc", "mm_page_alloc") and fields["page"]:
                self.pages(t, cpu, 1 << fields["order"])
            elif name in ("kmem_mm_page_free", "mm_page_free"):
                self.pages(t, cpu, -(1 << fields["order"]))
            elif name in ("irq_handler_entry", "irq_handler_exit"):
                begins = name.endswith("entry")
                self.irqs.setdefault((cpu, fields["irq"]), Steps()).set(t, "Active" if begins else None)
                at = busy.setdefault(fields["irq"], [])  # CPUs, the one that began last at the end
                at.append(cpu) if begins else at.remove(cpu)
                self.irq_lines.setdefault(fields["irq"], Steps()).set(t, at[-1] if at else None)
            elif name == "power_cpu_frequency":
                self.frequency.setdefault(fields["cpu_id"], Steps()).set(t, fields["state"])

    def pages(self, t, cpu, n):
        self.memory["total"].add(t, n)
        if cpu in self.current:
            self.memory.setdefault(self.current[cpu], Steps(0)).add(t, n)


def some_range(text):
    while True:
        begin, end = sorted(dice.randrange(text.first, text.last + 1) for _ in range(2))
        if end > begin:
            return begin, end


def offered(server):
    return {o["id"]: o for o in server.get(server.outputs)}


def check_steps(server, text, output, rows, shown, share=1):
    """States of rows {entry: Steps} on random ranges: label and bounds. shown(value): the label. Nothing is shown
    before the first step."""
    n = 0
    for _ in range(30):
        begin, end = some_range(text)
        count = dice.choice((2, 40, 400))
        times = sample_times(begin, end, count)
        some = [e for e in rows if dice.random() < share] or list(rows)[:1]
        for entry, states in server.states(output, some, begin, end, count).items():
            steps = rows[entry]
            for t, state in check_row(states, times, text.first, text.last).items():
                t = min(t, text.last - 1)  # the last instant belongs to the state before it
                value = steps.at(t)
                assert (key(state) is None) == (value is None) and state.get("label") == shown(value), (state, value, t)
                assert state["start"] == (steps.change_before(t) or text.first), (state, value, t)
                assert state["end"] == (steps.change_after(t) or text.last), (state, value, t)
                n += 1
    return n
