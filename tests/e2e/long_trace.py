# SPDX-License-Identifier: MIT
"""Writer of a kernel trace of any number of events, fast: all packets have the same bytes except for their times. These
lie 2^32 ns apart, so that the 32 bits of time in the events' headers mean another time in each."""
import os
import struct

import small_trace

PERIOD = 2**32
PER_PACKET = 30000


def body():
    """Returns two threads that wake each other and go idle in between: (name, fields as babeltrace2 shows them) of each
    event, and its bytes."""
    idle, a, b = small_trace.IDLE, small_trace.A, small_trace.B
    cycle = [small_trace.waking(a), small_trace.switch(idle, 0, a), small_trace.waking(b), small_trace.switch(a, 1, b),
             small_trace.switch(b, 1, idle)]
    step = PERIOD // (PER_PACKET + 1)
    events = [cycle[i % len(cycle)] for i in range(PER_PACKET)]
    return b"".join(struct.pack("<HI", event, (i + 1) * step) + payload for i,
                    (event, payload) in enumerate(events)), step


def write(directory, packets):
    """Writes the trace. Returns the number of events, and the first and last time."""
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "metadata"), "w", encoding="ascii") as f:
        f.write(small_trace.METADATA)
    data, step = body()
    size = (4 + 16 + 4 + 8 * 6 + 4 + len(data)) * 8
    with open(os.path.join(directory, "ch_0"), "wb") as f:
        for k in range(packets):
            f.write(struct.pack("<I", 0xC1FC1FC1) + small_trace.UUID + struct.pack("<I", 0)
                    + struct.pack("<QQQQQQI", k * PERIOD, (k + 1) * PERIOD - 1, size, size, k, 0, 0))
            f.write(data)
    return (packets * PER_PACKET, small_trace.OFFSET_NS + step,
            small_trace.OFFSET_NS + (packets - 1) * PERIOD + PER_PACKET * step)
