# SPDX-License-Identifier: MIT
"""Futexes through the server, against babeltrace2's text: waits, wakes, and simultaneous ones: test_futex_views.py
MAKER. The MAKER (make_trace.c) makes traces at random; recorded ones are tested too if present."""
import collections
import os
import re
import shutil
import subprocess
import sys
import tempfile

from graph_client import DATA, Server, check_row, have, key, need, run, sample_times, seed
from kernel_text import Steps, Text, check_steps, dice, offered, some_range

WAITERS = "lttng2.kernel.core.futex.uaddrvswaiter"
SCENARIOS = "lttng2.kernel.core.futex.scenarios"
IRQ_SCENARIOS = "xml.scenarios"
# linux/futex.h, without flags
WAITS = {0: "WAIT", 6: "LOCK_PI", 9: "WAIT_BITSET", 11: "WAIT_REQUEUE_PI", 13: "LOCK_PI2"}
WAKES = {1: "WAKE", 3: "REQUEUE", 4: "CMP_REQUEUE", 5: "WAKE_OP", 7: "UNLOCK_PI", 10: "WAKE_BITSET",
         12: "CMP_REQUEUE_PI"}
ERRORS = {-4: "EINTR", -11: "EAGAIN", -110: "ETIMEDOUT", -512: "ERESTARTSYS", -516: "ERESTART_RESTARTBLOCK"}
INTERRUPTED = (-4, -512, -516)
CUT = "not seen to end"
IRQ = re.compile(r"(?:irq_handler|x86_irq_vectors_(\w+))_(entry|exit)$")

# end None: never; ret None: it did not return
Call = collections.namedtuple("Call", "tid futex operation begin end ret")


def waits(call):
    return call.operation in WAITS.values()


def result(call):
    """Label and style of a call."""
    if call.ret is None:
        return CUT, "Futex wait without an end" if waits(call) else "Futex wake without an end"
    if not waits(call):
        return ERRORS[call.ret] if call.ret < 0 else "woke %d" % call.ret, "Futex wake"
    if call.ret >= 0:
        return "woken", "Futex wait"
    return (ERRORS[call.ret], "Futex wait timed out" if call.ret == -110 else "Futex wait interrupted"
            if call.ret in INTERRUPTED else "Futex wait refused")


class Futexes:
    """Calls of futex, hand-overs and interrupts, told by the text."""

    def __init__(self, text):
        self.calls, self.wakes, self.irqs = [], [], []
        self.names, self.pids, self.unsure = {}, {}, set()
        self.read(text)

    def read(self, text):
        current, switched = text.before_first_switch(), set()
        calling, blocked, woken, handlers = {}, set(), {}, collections.defaultdict(list)
        for t, name, fields, cpu in text.events:
            tid = current.get(cpu)
            irq = IRQ.match(name)
            if name == "sched_switch":
                if fields["prev_state"]:
                    blocked.add(tid)
                    woken.pop(tid, None)
                current[cpu] = text.who(fields["next_tid"], cpu)
                switched.add(cpu)
                self.names[current[cpu]] = fields["next_comm"]
            elif name == "sched_waking" and fields["tid"] in blocked:
                blocked.discard(fields["tid"])
                by_thread = not handlers[cpu] and isinstance(tid, int)
                woken[fields["tid"]] = (t, calling.get(tid)) if by_thread else (t, None)
                if cpu not in switched:
                    self.unsure.add(t)
            elif name == "lttng_statedump_process_state":
                self.pids[fields["tid"]] = fields["pid"]
            elif name == "sched_process_fork":
                self.pids[fields["child_tid"]] = fields["child_pid"]
            elif name == "syscall_entry_futex":
                operation = {**WAITS, **WAKES}.get(fields["op"] & 0x7f)
                if operation:
                    calling[tid] = Call(tid, self.futex(tid, fields["uaddr"]), operation, t, None, None)
            elif name in ("syscall_exit_futex", "sched_process_exit") and tid in calling:
                call = calling.pop(tid)
                self.calls.append(call._replace(end=t, ret=fields["ret"] if name == "syscall_exit_futex" else None))
                if waits(call) and name == "syscall_exit_futex" and tid in woken and woken[tid][0] >= call.begin:
                    self.wakes.append((woken[tid][0], t, woken[tid][1], self.calls[-1]))
            elif irq and irq[2] == "entry":
                handlers[cpu].append((irq[1] or fields["name"], t))
            elif irq and handlers[cpu]:
                begun = handlers[cpu].pop()
                self.irqs.append((begun[0], cpu, begun[1], t))
        self.calls += calling.values()

    def futex(self, tid, address):
        return "%d:0x%x" % (self.pids[tid], address) if tid in self.pids else "0x%x" % address

    def rows(self):
        """Returns each thread's activity with each futex that somebody waits for."""
        shown = {c.futex for c in self.calls if waits(c)}
        rows = {}
        for c in sorted(self.calls, key=lambda c: c.begin):
            if c.futex in shown:
                steps = rows.setdefault((c.futex, c.tid), Steps())
                steps.set(c.begin, (*result(c), c.operation, c.begin))
                if c.end is not None:
                    steps.set(c.end, None)
        return rows


# ---- waits by futex --------------------------------------------------------------------------------------------------

def read_tree(server, truth):
    """Entries by futex and thread."""
    output = offered(server)[WAITERS]
    assert output["name"] == "Futex Contention Analysis: Uaddr vs Waiter" and output["type"] == "TIME_GRAPH"
    entries = server.tree(WAITERS)
    by_id = {e["id"]: e for e in entries}
    rows, futexes = {}, []
    for e in entries:
        parent = by_id.get(e["parentId"])
        if e["hasData"]:
            rows[parent["labels"][0], int(e["labels"][1])] = e["id"]
            assert e["metadata"]["TID"] == [int(e["labels"][1])] and e["metadata"]["futex"] == [parent["labels"][0]]
        elif parent:
            futexes.append(e)
            complete = [c for c in truth.calls if c.futex == e["labels"][0] and waits(c) and c.ret is not None]
            assert e["labels"][2] == str(len(complete)), (e, len(complete))
    times = [sum(c.end - c.begin for c in truth.calls if c.futex == e["labels"][0] and waits(c) and c.ret is not None)
             for e in futexes]
    assert times == sorted(times, reverse=True)
    return rows


def check_waiters(server, text, truth):
    rows, expected = read_tree(server, truth), truth.rows()
    assert set(rows) == set(expected), set(rows) ^ set(expected)
    n = check_steps(server, text, WAITERS, {rows[who]: steps for who, steps in expected.items()}, lambda v: v and v[0])
    styles = server.model("/%s/style" % WAITERS)["styles"]
    for (futex, tid), entry in rows.items():
        whole = server.states(WAITERS, [entry], text.first, text.last, 50000)[entry]
        for state in whole:
            value = expected[futex, tid].at(state["start"])
            assert key(state) == (value[1] if value else None) and (not value or key(state) in styles), (state, value)
    for call in dice.sample([c for c in truth.calls if c.end is None or c.end > c.begin],
                            30 if len(truth.calls) > 30 else len(truth.calls)):
        if (call.futex, call.tid) in rows:
            tip = server.tooltip(WAITERS, rows[call.futex, call.tid], call.begin)
            shown = (tip["Futex"], tip["TID"], tip["Operation"], tip["Result"], tip["State"])
            assert shown == (call.futex, str(call.tid), call.operation, *result(call)), (tip, call)
    print("waiters: %d states of %d rows, %d calls" % (n, len(rows), len(truth.calls)))
    return rows


def check_filter(server, text, rows):
    states = server.states(WAITERS, list(rows.values()), text.first, text.last, 500,
                           filter_query_parameters={"strategy": "SAMPLED",
                                                    "filter_expressions_map": {"1": ["result == woken"]}})
    shown = [s for row in states.values() for s in row if key(s)]
    assert shown and all(bool(s.get("tags", 0) & 1) == (s["label"] != "woken") for s in shown)


# ---- wakes -----------------------------------------------------------------------------------------------------------

def check_arrows(server, text, truth, rows):
    """An arrow for each wait that a call of a thread ended, if both are shown."""
    truths = {}
    for at, end, waker, wait in truth.wakes:
        if at in truth.unsure or end == wait.begin:
            continue
        source = rows.get((waker.futex, waker.tid)) if waker and not waits(waker) and waker.begin <= at else None
        if source:
            truths[at, end, rows[wait.futex, wait.tid]] = source
    ours = {(a["start"], a["end"], a["targetId"]): a["sourceId"] for a in server.arrows(WAITERS, text.first, text.last)}
    missing = {a for a in truths.items() if a not in ours.items()}
    strange = {a for a in ours.items() if a not in truths.items() and a[0][0] not in truth.unsure}
    assert not missing and not strange and truths, (len(truths), missing, strange)
    for _ in range(20):
        begin, end = some_range(text)
        part = {(a["start"], a["end"], a["targetId"]): a["sourceId"] for a in server.arrows(WAITERS, begin, end)}
        assert part == {a: s for a, s in ours.items() if a[0] <= end and a[1] >= begin}, (begin, end)
    for (at, end, target), source in list(truths.items())[:10]:
        waker = next(w for t, _, w, _ in truth.wakes if t == at)
        tip = server.tooltip(WAITERS, target, end - 1)
        assert (tip["Woken by TID"], tip["Woken by"]) == (str(waker.tid), truth.names[waker.tid]), (tip, waker)
    print("hand-overs: %d" % len(truths))


# ---- simultaneous ones -----------------------------------------------------------------------------------------------

def check_lanes(server, text, output, groups):
    """Checks that, at every sample, the lanes of a group show the current ones, one in each lane. groups: {name:
    [(label, begin, end)]}."""
    entries = {e["id"]: e for e in server.tree(output)}
    n = 0
    for group, things in groups.items():
        lanes = [e for e in entries.values() if e["hasData"] and entries[e["parentId"]]["labels"][0] == group]
        assert [e["labels"][0] for e in lanes] == [str(i) for i in range(len(lanes))]
        edges = sorted([(b, 1) for _, b, _ in things] + [(e, -1) for _, _, e in things if e is not None],
                       key=lambda x: (x[0], x[1]))
        most = now = 0
        for _, step in edges:
            now += step
            most = max(most, now)
        # limit with one more lane per CPU, because a call's thread may be known late
        assert most <= len(lanes) <= most + 3, (group, most, len(lanes))
        for _ in range(30):
            begin, end = some_range(text)
            count = dice.choice((2, 40, 400))
            times = sample_times(begin, end, count)
            shown = collections.defaultdict(list)
            for states in server.states(output, [e["id"] for e in lanes], begin, end, count).values():
                for t, state in check_row(states, times, text.first, text.last).items():
                    if key(state):
                        shown[t].append(state["label"])
            for t in times:
                at = min(t, text.last - 1)
                assert sorted(shown[t]) == sorted(label for label, b,
                                                  e in things if b <= at and (e is None or at < e)), (group, t)
                n += 1
    print("%s: %d times in %d groups" % (offered(server)[output]["name"], n, len(groups)))


def check_scenarios(server, text, truth):
    calls = {"Futex wait/lock": [c for c in truth.calls if waits(c)],
             "Futex wake/unlock": [c for c in truth.calls if not waits(c)]}
    check_lanes(server, text, SCENARIOS, {name: [(c.futex, c.begin, c.end) for c in some] for name,
                                          some in calls.items()})
    check_lanes(server, text, IRQ_SCENARIOS, {"IRQ handlers": [(name, b, e) for name, _, b, e in truth.irqs]})
    entries = server.tree(SCENARIOS)
    lane = next(e["id"] for e in entries if e["hasData"])
    state = next(s for s in server.states(SCENARIOS, [lane], text.first, text.last, 2000)[lane] if key(s))
    call = next(c for c in truth.calls if c.begin == state["start"] and c.futex == state["label"])
    tip = server.tooltip(SCENARIOS, lane, state["start"])
    assert (tip["TID"], tip["Operation"], tip["Result"]) == (str(call.tid), call.operation,
                                                             result(call)[0]) and key(state) == result(call)[1]


# ---- traces ----------------------------------------------------------------------------------------------------------

def check(path):
    text = Text(path)
    truth = Futexes(text)
    with Server(path) as server:
        rows = check_waiters(server, text, truth)
        check_filter(server, text, rows)
        check_arrows(server, text, truth, rows)
        check_scenarios(server, text, truth)


def check_made(maker, seed):
    path = tempfile.mkdtemp(prefix="weft-made-")
    try:
        subprocess.run([maker, path, str(seed)], check=True)
        check(path)
    finally:
        shutil.rmtree(path)


def check_recorded():
    for host in ("web", "client"):
        path = os.path.join(DATA, "traces", "three-tier", host, "kernel")
        if have(path):
            check(path)
        else:
            print("skipped: no " + path)
    path = os.path.join(DATA, "traces", "bsp", "n1", "kernel")
    if have(path):
        with Server(path) as server:  # trace without system calls
            assert WAITERS not in offered(server) and SCENARIOS not in offered(server)
            assert IRQ_SCENARIOS in offered(server)


def main():
    need("babeltrace2")
    first = seed(1)
    for made in range(first, first + 3):
        check_made(sys.argv[1], made)
    check_recorded()


run(main)
