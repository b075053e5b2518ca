# SPDX-License-Identifier: MIT
"""Rotation archives of many hosts, made small (bench/week.py): a minute each, with one CPU, two threads that wake each
other, and a message each way between a host and the next one. The clock of host n is n ms ahead, and n ppm too fast."""
import os
import struct
import sys
import types

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "e2e"))
import world_trace
from world_trace import NUMBER, START_NS, TCP, comm

MINUTE, EVENTS = 60 * 10**9, 60
LONG = 2**32  # the compact header's time: events of a packet lie within it
DELAY_NS = 40000  # of a message
_IDLE, _A, _B = ("swapper/0", 0), ("alpha", 10), ("beta", 11)


def _switch(prev, prev_state, following):
    return NUMBER["sched_switch"], comm(prev[0]) + struct.pack("<iiq", prev[1], 20, prev_state) + comm(
        following[0]) + struct.pack("<ii", following[1], 20)


def _waking(thread):
    return NUMBER["sched_waking"], comm(thread[0]) + struct.pack("<iii", thread[1], 20, 0)


_CYCLE = [_waking(_A), _switch(_IDLE, 0, _A), _waking(_B), _switch(_A, 1, _B), _switch(_B, 1, _IDLE)]


def _message(name, number, sender, receiver, ports):
    """The archive's message from one host to another, as one of them sees it."""
    p = types.SimpleNamespace(protocol=TCP, sport=ports[0], dport=ports[1], seq=1000 + 100 * number,
                              ack=1000 + 100 * number, flags=0x18, bytes=100, ip_id=number % 65536,
                              source=(10, 0, sender // 256, sender % 256), target=(10, 0, receiver // 256,
                                                                                 receiver % 256))
    return NUMBER[name], world_trace.packet("eth0", 1, p)


def clock_of(host, t):
    return t + host * 10**6 + t * host // 10**6


class Week:
    """`top`: where the archives of all hosts come to lie; the last of so many is written now."""

    def __init__(self, top, hosts, archives, now_ns):
        self.top, self.hosts = top, hosts
        self.started_ns = now_ns - archives * MINUTE
        self.metadata = [world_trace.metadata(f"host-{i}") for i in range(hosts)]

    def end_s(self, number):
        return (START_NS + number * MINUTE) / 1e9

    def _events(self, host, number):
        begin, step = number * MINUTE, LONG // (2 * EVENTS)
        events = [(clock_of(host, begin + (i + 1) * step), *_CYCLE[i % 5]) for i in range(EVENTS)]
        for i in {host, (host - 1) % self.hosts} if self.hosts > 1 else ():
            other = (i + 1) % self.hosts
            for sender, receiver, ports, at in ((i, other, (40000, 80), 10), (other, i, (80, 40000), 30)):
                t = begin + at * step + step // 3
                if sender == host:
                    events.append((clock_of(host, t),
                                   *_message("net_dev_queue", number, sender, receiver, ports)))
                else:
                    events.append((clock_of(host, t + DELAY_NS),
                                   *_message("net_if_receive_skb", number, sender, receiver, ports)))
        events.sort()
        return events

    def archive(self, host, number):
        """Metadata are one file with many names: they are the same, and a week has many."""
        folder = os.path.join(self.top, f"host-{host}", "archives", f"a{number:06}", "kernel")
        shared = os.path.join(self.top, f"host-{host}", "metadata-of-all")
        uuid, metadata = self.metadata[host]
        os.makedirs(folder)
        if not os.path.exists(shared):
            with open(shared, "w", encoding="ascii") as f:
                f.write(metadata)
            os.utime(shared, ns=(self.started_ns, self.started_ns))
        os.link(shared, os.path.join(folder, "metadata"))
        body = b"".join(struct.pack("<HI", event, t % LONG) + payload for t, event, payload in self._events(
            host, number))
        size = 8 * (24 + 52 + len(body))
        begin = clock_of(host, number * MINUTE)
        with open(os.path.join(folder, "ch_0"), "wb") as f:
            f.write(struct.pack("<I16sI", 0xC1FC1FC1, uuid, 0) + struct.pack(
                "<QQQQQQI", begin, clock_of(host, (number + 1) * MINUTE) - 1, size, size, number, 0, 0) + body)
        # As if each had been written in its own minute: what was written long ago is believed to be as it was.
        written = self.started_ns + number * MINUTE
        for path in (os.path.join(folder, "ch_0"), folder, os.path.dirname(folder)):
            os.utime(path, ns=(written, written))

    def archives(self, number):
        """Of all hosts."""
        for host in range(self.hosts):
            self.archive(host, number)
