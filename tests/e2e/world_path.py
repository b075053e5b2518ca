# SPDX-License-Identifier: MIT
"""Critical path of a thread, from the states recorded by world.py; by the definition in docs/concepts.md, written as
recursion. Shares nothing with the program.

The path of a thread over [begin, end], backwards from `end`:
- while it runs or waits for a CPU, and where nobody is to be followed, the time is its own;
- a wait is the waker's path, back to the wait's begin; a message is `network` since its first send;
- the path goes further back, to where that chain leaves the waiting thread itself by a signal, if that happened in
  the stretch of running in which the thread went to sleep (it had asked, and slept only later); in the path of a
  request: if that happened at any time of the request; or, where a reply ended the wait, to the time of its request
  within the request, wherever the chain is then."""
import sys

from world import READY, RUN, WAIT

sys.setrecursionlimit(100000)


class Oracle:
    def __init__(self):
        self.returns = {}
        self.request = None  # begin of the request
        self.signals = []    # signals of the last path: (who, when, whom it woke or None)

    @staticmethod
    def state_at(thread, t):
        """Returns the interval with begin < t <= end, None before the first."""
        low, high = 0, len(thread.intervals)
        while low < high:
            middle = (low + high) // 2
            if thread.intervals[middle].begin < t:
                low = middle + 1
            else:
                high = middle
        return low - 1 if low else None

    def path(self, thread, begin, end, request=False):
        """Returns [(host, tid, begin, end, state)] in time order."""
        out = []
        if self.request is not None or request:
            self.returns.clear()
        self.request = begin if request else None
        self.signals = []
        for piece in self.walk(thread, end, begin, self.signals):
            who, since, until, state = piece
            since, until = max(since, begin), min(until, end)
            if since < until:
                row = (who.host.name, who.tid, since, until, state)
                if out and out[-1][:2] == row[:2] and out[-1][4] == state and out[-1][2] == until:
                    out[-1] = row[:2] + (since, out[-1][3], state)
                else:
                    out.append(row)
        return out[::-1]

    def walk(self, thread, t, bound, arrivals):
        """Returns the pieces from t down to bound, latest first. arrivals: collects (thread, when, whom it woke) for
        signals, and None for unknown causes, each with the time down to which all was explained."""
        while t > bound:
            i = self.state_at(thread, t)
            if i is None:
                if not thread.parent:
                    arrivals.append((None, t, None))
                    yield thread, bound, t, "unknown"
                    return
                thread, t = thread.parent
                arrivals.append((thread, t, None))
                continue
            state = thread.intervals[i]
            if state.kind != WAIT:
                yield thread, max(state.begin, bound), t, state.kind
                t = state.begin
            elif state.cause[0] == "end":
                yield thread, max(state.begin, bound), t, state.cause[1]
                t = state.begin
            else:
                back = self.early_return(thread, i) if state.begin > bound else None
                down = state.begin if back is None else back
                yield from self.explain(thread, state, max(down, bound), arrivals)
                t = down

    def explain(self, thread, wait, bound, arrivals):
        kind, waker, when = wait.cause[:3]
        if kind == "net":
            yield thread, max(when, bound), wait.end, "network"
        arrivals.append((waker, when, thread if kind == "wake" else None))
        yield from self.walk(waker, when, bound, arrivals)

    def early_return(self, thread, i):
        """Returns the time when the chain that explains the wait had left the thread itself, before it went to
        sleep."""
        if (thread, i) in self.returns:
            return self.returns[thread, i]
        floor = i
        while floor and thread.intervals[floor - 1].kind in (RUN, READY):
            floor -= 1
        wait, found = thread.intervals[i], None
        since = thread.intervals[floor].begin
        if self.request is not None:
            asked = wait.cause[3] if wait.cause[0] == "net" else None
            if asked is not None and self.request <= asked <= min(wait.begin, wait.cause[2]):
                return asked
            since = min(self.request, wait.begin)
        if since < wait.begin:
            arrivals = []
            for _ in self.explain(thread, wait, since, arrivals):
                pass
            for who, when, _ in arrivals:
                if who is None:
                    break
                if who is thread and since <= when <= wait.begin:
                    found = when
                    break
        self.returns[thread, i] = found
        return found
