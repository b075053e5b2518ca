# SPDX-License-Identifier: MIT
"""Activity of threads and CPUs of one host, derived event by event from babeltrace2's text: a second opinion, made
without weft."""
import bisect
import re
import subprocess

LINE = re.compile(r"^\[(\d+)\.(\d{9})\] (?:\S+ )?(\w+): \{ cpu_id = (\d+) \}, (?:\{[^{}]*\}, )*?\{ ?(.*?) ?\}$")
FIELD = re.compile(r"(\w+) = (\"(?:[^\"\\]|\\.)*\"|-?\d+)")
USER, CALL, IRQ, READY, BLOCKED = "Usermode", "System call", "Interrupt", "Wait for CPU", "Wait blocked"


def events(trace):
    text = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", trace], capture_output=True, text=True,
                          errors="replace", check=True).stdout
    for line in text.splitlines():
        m = LINE.match(line)
        if m:
            yield int(m[1]) * 10**9 + int(m[2]), m[3], int(m[4]), {k: v.strip('"') for k, v in FIELD.findall(m[5])}


class History:
    """Changes of one row."""

    def __init__(self):
        self.times, self.values = [], []

    def show(self, ts, value):
        if self.values and self.values[-1] == value:
            return
        if self.times and self.times[-1] == ts:
            self.times.pop()
            self.values.pop()
            self.show(ts, value)
            return
        self.times.append(ts)
        self.values.append(value)

    def at(self, t):
        """Value, begin and end; None for bounds that are not known."""
        i = bisect.bisect_right(self.times, t) - 1
        if i < 0:
            return None, None, None
        return self.values[i], self.times[i], self.times[i + 1] if i + 1 < len(self.times) else None


class Thread:
    def __init__(self):
        self.history, self.call, self.first_call, self.known, self.now, self.born = (History(), None, None, False, None,
                                                                                     False)


class Oracle:
    """threads: by tid (those seen running, woken or forked); cpus: which thread has the CPU; states: of CPUs. A thread
    whose first call was only seen to return was in that call before."""

    def __init__(self, trace):
        self.threads, self.cpus, self.cpu_states, self.depth, self.busy = {}, {}, {}, {}, {}
        self.forked, self.gone = set(), {}
        self.dumped = {} # tid: its process and that one's parent
        self.first = self.last = None
        told = list(events(trace))
        self.waking = "sched_waking" if any(name == "sched_waking" for _, name, _, _ in told) else "sched_wakeup"
        for ts, name, cpu, f in told:
            self.first = ts if self.first is None else self.first
            self.last = ts
            self.feed(ts, name, cpu, f)
        for t in self.threads.values(): # now it is known what a thread did before its first call
            before = (CALL, t.first_call) if t.first_call else (USER, None)
            times, values, t.history = t.history.times, t.history.values, History()
            for ts, v in zip(times, values):
                t.history.show(ts, before if v == "before" else v)

    def thread(self, tid):
        return self.threads.setdefault(tid, Thread())

    def mode(self, t):
        if t.call:
            return CALL, t.call
        return (USER, None) if t.known else "before"

    def current(self, cpu):
        history = self.cpus.get(cpu)
        return history.values[-1] if history and history.values else None

    def show_cpu(self, ts, cpu):
        tid, stack = self.current(cpu), self.depth.get(cpu)
        history = self.cpu_states.setdefault(cpu, History())
        if stack:
            history.show(ts, stack[-1])
        elif tid == 0:
            history.show(ts, ("Idle", None))
        elif tid is not None:
            history.show(ts, self.mode(self.thread(tid)))

    def show_thread(self, ts, cpu):
        tid = self.current(cpu)
        if tid:
            t = self.thread(tid)
            t.history.show(ts, (IRQ, None) if self.depth.get(cpu) else self.mode(t))
        self.show_cpu(ts, cpu)

    def switch(self, ts, cpu, f):
        prev, following, state = int(f["prev_tid"]), int(f["next_tid"]), int(f["prev_state"])
        self.depth[cpu] = []
        if prev:
            t = self.thread(prev)
            t.now = "ready" if state in (0, 256) else "blocked"
            if state & 0x30 and state not in (0, 256):
                self.gone[prev] = ts
            else:
                t.history.show(ts, (READY if t.now == "ready" else BLOCKED, None))
        self.cpus.setdefault(cpu, History()).show(ts, following)
        if following:
            self.thread(following).now = "running"
        self.show_thread(ts, cpu)

    def feed(self, ts, name, cpu, f):
        tid = self.current(cpu)
        if name == "sched_switch":
            self.switch(ts, cpu, f)
        elif name == self.waking:
            t = self.thread(int(f["tid"]))
            if t.now in (None, "blocked"):
                t.now = "ready"
                t.history.show(ts, (READY, None))
        elif name == "lttng_statedump_process_state":
            self.dumped[int(f["tid"])] = int(f["pid"]), int(f["ppid"])
        elif name == "sched_process_fork":
            child = int(f["child_tid"])
            if child in self.threads or child in self.forked:
                self.gone[child] = -1 # a second life: not compared
            self.forked.add(child)
            t = self.thread(child)
            t.known, t.now, t.call = True, "ready", self.thread(tid).call if tid else None
            t.history.show(ts, (READY, None))
        elif name.startswith(("irq_handler_", "irq_softirq_")) and name.endswith(("_entry", "_exit")):
            stack = self.depth.setdefault(cpu, [])
            if name.endswith("_entry"):
                stack.append(("Soft IRQ" if "softirq" in name else "IRQ", None))
            elif stack:
                stack.pop()
            self.show_thread(ts, cpu)
        elif name.startswith("syscall_entry_") and tid:
            t = self.thread(tid)
            t.call, t.known = name[len("syscall_entry_"):], True
            self.show_thread(ts, cpu)
        elif name.startswith("syscall_exit_") and tid:
            t = self.thread(tid)
            if not t.known:
                t.first_call = name[len("syscall_exit_"):]
            t.call, t.known = None, True
            self.show_thread(ts, cpu)

    def busy_ns(self, begin, end):
        """CPU time of threads that are not idle, over all CPUs."""
        total = 0
        for history in self.cpus.values():
            for i, start in enumerate(history.times):
                stop = history.times[i + 1] if i + 1 < len(history.times) else self.last
                if history.values[i]:
                    total += max(0, min(end, stop) - max(begin, start))
        return total
