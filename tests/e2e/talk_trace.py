# SPDX-License-Identifier: MIT
"""Writer of one-minute rotation archives of hosts that exchange packets over TCP, with clocks that differ. Kernel
traces as LTTng writes them (world_trace.py), one CPU, only packets."""
import os
import struct
from types import SimpleNamespace

import world_trace

MINUTE = 60 * 10**9
ACK = 16


class Talk:
    """Hosts 0 … n - 1; offsets: of their clocks, ns."""

    def __init__(self, dice, offsets):
        self.dice, self.offsets, self.number = dice, offsets, 0
        self.events = [{} for _ in offsets]  # hosts' {minute: [(time, number of the event, payload)]}

    def _see(self, host, t, name, p):
        t += self.offsets[host]
        self.number += 1
        self.events[host].setdefault(t // MINUTE, []).append(
            (t, world_trace.NUMBER[name], world_trace.packet("eth0", self.number, p)))

    def converse(self, a, b, begin, pause, count):
        """Adds a connection from a to b: `count` packets in both directions, with pauses of about so many ns."""
        dice, t = self.dice, begin
        seq = [dice.randrange(2**32), dice.randrange(2**32)]
        ends = [(a, 1024 + dice.randrange(5000)), (b, 80)]
        for i in range(count):
            side = i & 1 if i < 2 else dice.randrange(2)
            (sender, sport), (receiver, dport) = ends[side], ends[1 - side]
            p = SimpleNamespace(protocol=world_trace.TCP, sport=sport, dport=dport, seq=seq[side], ack=seq[1 - side],
                                flags=ACK, bytes=dice.choice((0, 10, 500)), ip_id=dice.randrange(2**16),
                                source=(10, 0, 0, sender + 1), target=(10, 0, 0, receiver + 1))
            self._see(sender, t, "net_dev_queue", p)
            self._see(receiver, t + 60000 + int(dice.expovariate(1 / 100000)), "net_if_receive_skb", p)
            seq[side] += p.bytes
            t += 1000 + int(dice.expovariate(1 / pause))

    def write(self, top, host, number):
        """Writes the archive of a minute by the host's own clock. Returns its directory."""
        name, begin = f"host-{host}", number * MINUTE
        trace, metadata = world_trace.metadata(name)
        archive = os.path.join(top, name, "archives", f"a{number:06}")
        os.makedirs(os.path.join(archive, "kernel"))
        with open(os.path.join(archive, "kernel", "metadata"), "w", encoding="ascii") as f:
            f.write(metadata)
        data = b"".join(struct.pack("<HIQ", 65535, event, t) + payload
                        for t, event, payload in sorted(self.events[host].pop(number, [])))
        size = 8 * (24 + 52 + len(data))
        with open(os.path.join(archive, "kernel", "channel_0"), "wb") as f:
            f.write(struct.pack("<I16sI", 0xC1FC1FC1, trace, 0)
                    + struct.pack("<QQQQQQI", begin, begin + MINUTE - 1, size, size, number, 0, 0) + data)
        return archive
