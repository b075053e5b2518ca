# SPDX-License-Identifier: MIT
"""Thread Status, Resources Status and Machines against histories worked out from babeltrace2's text, on random ranges.
"""
import os
import re
import subprocess

from graph_client import MACHINES, RESOURCES, THREADS, Server, check_row, key, new_dice, recorded, run, sample_times
from graph_oracle import Oracle

dice = new_dice(7)


def random_range(server, least=2000):
    while True:
        a, b = sorted(dice.randrange(server.begin, server.end + 1) for _ in range(2))
        b = min(b, a + dice.choice((10**6, 10**7, 10**8, 10**10)))
        if b - a > least:
            return a, b


def same(oracle, history, state, t, where):
    """1 when compared."""
    value, begin, end = history.at(t)
    if value is None or value == "before":
        return 0
    # unknown to the tracer
    label = state.get("label") if value[0] == "System call" and value[1] != "unknown" else value[1]
    assert (key(state), label) == value, (where, t, state, value, begin, end)
    assert state["end"] == (end or state["end"]), (where, t, state, value, begin, end)
    if begin != history.times[0]: # time before the first change, of which the server may know more
        assert state["start"] == begin, (where, t, state, value, begin, end)
    return 1


def compared(oracle, entries):
    """Entries of tids that had one life, which did not end."""
    seen = {}
    for e in entries:
        tid = e.get("metadata", {}).get("TID", [0])[0]
        if tid:
            seen.setdefault(tid, []).append(e["id"])
    return {ids[0]: tid for tid, ids in seen.items() if len(ids) == 1 and tid not in oracle.gone
            and tid in oracle.threads}


def check_threads(server, oracle):
    entries = server.tree(THREADS)
    assert entries[0]["start"] == server.begin and entries[0]["parentId"] == -1
    ids = {e["id"] for e in entries}
    assert len(ids) == len(entries) and all(e["parentId"] in ids or e["parentId"] == -1 for e in entries)
    tids = compared(oracle, entries)
    n = 0
    for _ in range(25):
        begin, end = random_range(server)
        times = sample_times(begin, end, dice.choice((2, 50, 700)))
        rows = server.states(THREADS, list(tids), begin, end, len(times) if len(times) > 2 else 2)
        times = [t for t in sample_times(begin, end, max(2, len(times)))]
        for entry, states in rows.items():
            at = check_row(states, times, server.begin, server.end)
            for t, state in at.items():
                n += same(oracle, oracle.threads[tids[entry]].history, state, t, tids[entry])
    assert n > 10000, n
    print("threads: %d states of %d threads as babeltrace2's text tells" % (n, len(tids)))


def check_idle(server, oracle):
    """An idle thread shows something when its CPU idles, and nothing when it does not: it waits for no CPU."""
    n = {True: 0, False: 0}
    for e in server.tree(THREADS):
        if e.get("metadata", {}).get("TID") != [0]:
            continue
        history = oracle.cpus[int(e["labels"][0].split("/")[1])]
        for _ in range(10):
            begin, end = random_range(server)
            times = sample_times(begin, end, 400)
            at = check_row(server.states(THREADS, [e["id"]], begin, end, 400)[e["id"]], times, server.begin, server.end)
            for t, state in at.items():
                tid, since, _ = history.at(t)
                # time before the first switch, of which the server may know more
                if tid in (None, "before") or since == history.times[0]:
                    continue
                assert key(state) in (("Idle", "Interrupt") if tid == 0
                                      else (None, "Unknown")), (e["labels"], t, state, tid)
                n[tid == 0] += 1
    assert min(n.values()) > 100, n
    print("idle threads: %d states, %d blanks" % (n[True], n[False]))


def check_parents(server, oracle):
    entries = {e["id"]: e for e in server.tree(THREADS)}
    tid_of = {i: e["metadata"].get("TID", [-1])[0] for i, e in entries.items()}
    lives = list(tid_of.values())
    n = 0
    for i, e in entries.items():
        pid, ppid = oracle.dumped.get(tid_of[i], (None, None))
        if pid is None or lives.count(tid_of[i]) > 1 or not tid_of[i]:
            continue
        above = pid if pid != tid_of[i] else ppid
        parent = tid_of.get(e["parentId"], -1)
        assert parent == (above if above in lives and above else -1), (e, pid, ppid)
        assert e["metadata"]["PID"] == [pid] and e["labels"][1:3] == [str(tid_of[i]), str(pid)], e
        n += 1
    assert n > 50, n


def check_losses(path):
    """Checks the total of losses reported by babeltrace2."""
    with Server(path) as server:
        text = subprocess.run(["babeltrace2", path], capture_output=True, text=True, errors="replace").stderr
        lost = sum(int(n) for n in re.findall(r"discarded (\d+) event", text))
        for output, category in ((MACHINES, "Lost events by machine"), (RESOURCES, "Lost events by CPU")):
            found = server.annotations(output, server.begin, server.end)[category]
            entries = {e["id"] for e in server.tree(output)}
            assert found and all(a["entryId"] in entries for a in found)
            assert sum(int(a["label"].split()[0]) for a in found) == lost > 0, (found, lost)
            assert category in server.get("%s/%s/annotations" % (server.outputs,
                                                                 output))["model"]["annotationCategories"]
        assert server.tree(MACHINES)[0]["labels"][4] == str(lost)
        print("losses: %d events" % lost)


def check_cpus(server, oracle):
    entries = {e["labels"][0]: e for e in server.tree(RESOURCES)}
    n = 0
    for cpu, history in oracle.cpu_states.items():
        entry = entries["CPU %d States" % cpu]["id"]
        threads = entries["CPU %d Threads" % cpu]["id"]
        for _ in range(10):
            begin, end = random_range(server)
            times = sample_times(begin, end, 400)
            at = check_row(server.states(RESOURCES, [entry], begin, end, 400)[entry], times, server.begin, server.end)
            for t, state in at.items():
                n += same(oracle, history, state, t, "CPU %d" % cpu)
            tip = server.tooltip(RESOURCES, threads, times[5])
            tid = oracle.cpus[cpu].at(times[5])[0]
            assert tid is None or tip["TID"] == str(tid), (tip, tid, times[5])
    assert n > 2000, n
    print("CPUs: %d states" % n)


def check_machines(server, oracle):
    cpus = len(oracle.cpus)
    for _ in range(20):
        begin, end = random_range(server, 10**7)
        # time before a CPU's first switch, known only to the server
        begin = max(begin, max(h.times[0] for h in oracle.cpus.values()))
        if end - begin < 10**6:
            continue
        share = 100 * oracle.busy_ns(begin, end) / (cpus * (end - begin))
        entry = server.tree(MACHINES, requested_timerange={"start": begin, "end": end})[0]
        assert abs(float(entry["labels"][2].split()[0]) - share) < 0.051, (entry["labels"], share)
        states = server.states(MACHINES, [entry["id"]], begin, end, 200)[entry["id"]]
        assert states[0]["start"] == begin and states[-1]["end"] == end
        assert all(a["end"] == b["start"] and key(a) != key(b) for a, b in zip(states, states[1:]))
        mean = sum(float(s["label"].split()[0]) * (s["end"] - s["start"]) for s in states) / (end - begin)
        assert abs(mean - share) < 0.06, (mean, share)
    print("machines: busy shares agree")


def check_deep(server, oracle):
    """Checks that, with few samples, a deep filter finds states between them."""
    tids = compared(oracle, server.tree(THREADS))
    found = 0
    for call in ("read", "futex", "ioctl", "epoll_wait", "write"):
        begin, end = server.begin, server.end
        rows = server.states(THREADS, list(tids), begin, end, 20,
                             filter_query_parameters={"strategy": "DEEP",
                                                      "filter_expressions_map": {"1": ["label==" + call]}})
        plain = server.states(THREADS, list(tids), begin, end, 20)
        times = sample_times(begin, end, 20)
        for entry, states in rows.items():
            history = oracle.threads[tids[entry]].history
            assert all(s in [{k: v for k, v in d.items() if k != "tags"} for d in states] for s in plain[entry])
            for s in states:
                if key(s) is not None:
                    assert bool(s.get("tags", 0) & 1) == (s.get("label") != call), (s, call)
            for a, b in zip(times, times[1:]):
                within = [i for i in range(1, len(history.times) - 1)
                          if history.values[i] == ("System call", call) and history.times[i] > a
                          and history.times[i + 1] <= b]
                shown = [s for s in states if s["start"] > a and s["end"] <= b and s.get("label") == call]
                if within:
                    assert shown, (call, tids[entry], a, b)
                    found += 1
    assert found > 20, found
    print("deep filters: %d gaps with matches, all shown" % found)


def check_active(server, oracle):
    busy = [h.times[i] for h in oracle.cpus.values() for i, tid in enumerate(h.values) if tid]
    begin = busy[len(busy) // 2] - 10**7
    end = begin + 2 * 10**7
    entries = server.tree(THREADS, requested_timerange={"start": begin, "end": end}, isFiltered=True)
    shown = {e["metadata"]["TID"][0] for e in entries if "TID" in e.get("metadata", {})}
    ran = {history.at(t)[0] for history in oracle.cpus.values() for t in range(begin, end, 10**5)} - {0, None}
    assert ran and ran <= shown and len(entries) < len(server.tree(THREADS)), (ran, shown)
    cpu = min(oracle.cpus)
    some = server.tree(THREADS, requested_timerange={"start": begin, "end": end}, active_thread_filter=[cpu])
    shown = {e["metadata"]["TID"][0] for e in some if "TID" in e.get("metadata", {})}
    assert {oracle.cpus[cpu].at(t)[0] for t in range(begin, end, 10**5)} - {None} <= shown


def check_arrows(server, oracle):
    """Arrows are the successions of threads on CPUs."""
    entries = {e["id"]: e for e in server.tree(THREADS)}
    begin, end = server.begin, server.end
    got = sorted((a["start"], a["end"], entries[a["sourceId"]]["metadata"]["TID"][0],
                  entries[a["targetId"]]["metadata"]["TID"][0])
                 for a in server.arrows(THREADS, begin, end))
    expected = []
    for history in oracle.cpus.values():
        last = None
        for i, tid in enumerate(history.values):
            if not tid:
                continue
            if (last is not None and history.values[last] != tid
                    and history.times[last + 1] <= end and history.times[i] >= begin):
                expected.append((history.times[last + 1], history.times[i], history.values[last], tid))
            last = i
    known = max(h.times[0] for h in oracle.cpus.values()) # the server knows who had a CPU before its first switch
    got, expected = [a for a in got if a[0] > known], [a for a in expected if a[0] > known]
    assert got == sorted(expected) and got, (len(got), len(expected), got[:3], sorted(expected)[:3])
    print("arrows: %d" % len(got))


def check_host(path):
    oracle = Oracle(path)
    with Server(path) as server:
        assert server.begin == oracle.first and server.end == oracle.last
        check_parents(server, oracle)
        check_threads(server, oracle)
        check_idle(server, oracle)
        check_cpus(server, oracle)
        check_machines(server, oracle)
        check_deep(server, oracle)
        check_active(server, oracle)
        check_arrows(server, oracle)


def check_joint(path):
    """Checks several hosts on one clock: the same invariants hold on converted times."""
    with Server(path) as server:
        for output in (THREADS, RESOURCES, MACHINES):
            entries = server.tree(output)
            items = [e["id"] for e in entries if e["hasData"]]
            assert {e["metadata"]["hostId"][0] for e in entries} == {"client", "web", "db"}
            for _ in range(5):
                begin, end = random_range(server)
                times = sample_times(begin, end, 300)
                rows = server.states(output, items, begin, end, 300)
                assert set(rows) == set(items)
                for states in rows.values():
                    if output != MACHINES: # output whose states lie between samples
                        check_row(states, times, 0, 0)
        print("joint: every state holds a sample")


def main():
    three, lost = recorded("three-tier", "lost-events")
    check_host(os.path.join(three, "db", "kernel"))
    check_host(os.path.join(three, "web", "kernel"))
    check_joint(three)
    check_losses(lost)


run(main)
