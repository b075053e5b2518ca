# SPDX-License-Identifier: MIT
"""Small traces for single rules of the Common Trace Format 1.8, for tests of declarations and times."""
import os
import struct

LETTER = {8: "B", 16: "H", 32: "I", 64: "Q"}


def word(value, bits):
    """Returns the low bits of a value, as a little-endian integer."""
    return struct.pack("<" + LETTER[bits], value & ((1 << bits) - 1))


def integer(bits, clock=False):
    return f"integer {{ size = {bits}; align = 8;{' map = clock.c.value;' if clock else ''} }}"


def write(path, declarations, *streams, trace=""):
    """Writes a directory with metadata and stream files s0, s1, …"""
    os.makedirs(path, exist_ok=True)
    with open(os.path.join(path, "metadata"), "wb") as f:
        text = f"/* CTF 1.8 */\ntrace {{ major = 1; minor = 8; byte_order = le; {trace} }};\n"
        f.write(text.encode() + (declarations if isinstance(declarations, bytes) else declarations.encode()))
    for i, data in enumerate(streams):
        with open(os.path.join(path, f"s{i}"), "wb") as f:
            f.write(data)
    return path


class Clocked:
    """Stream of packets with times of given widths (0: no such field), and events of one kind: a time, a number x, and
    the clock again if `context` or `payload` give a width."""

    def __init__(self, begin=64, end=64, header=32, context=0, payload=0, clock="freq = 1000000000;"):
        self.begin, self.end, self.header, self.context, self.payload = begin, end, header, context, payload
        names = ((begin, "timestamp_begin"), (end, "timestamp_end"))
        times = " ".join(f"{integer(bits, True)} {name};" for bits, name in names if bits)
        more = f"event.context := struct {{ {integer(context, True)} again; }};" if context else ""
        again = f" {integer(payload, True)} again;" if payload else ""
        self.text = (f"clock {{ name = c; {clock} }};\n"
                     f"stream {{ packet.context := struct {{ {integer(32)} packet_size; {times} }};\n"
                     f"  event.header := struct {{ {integer(header, True)} timestamp; }}; {more} }};\n"
                     f"event {{ name = e; id = 0; fields := struct {{ {integer(8)} x;{again} }}; }};\n")
        self.data, self.n = b"", 0

    def packet(self, begin, end, *events):
        """Appends a packet. Events: times, or pairs of the time and that of the field that repeats the clock."""
        body = b""
        for ev in events:
            at, again = ev if isinstance(ev, tuple) else (ev, ev)
            body += word(at, self.header) + (word(again, self.context) if self.context else b"")
            body += word(self.n, 8) + (word(again, self.payload) if self.payload else b"")
            self.n += 1
        times = b"".join(word(v, bits) for v, bits in ((begin, self.begin), (end, self.end)) if bits)
        self.data += word(8 * (4 + len(times) + len(body)), 32) + times + body
        return self

    def write(self, path):
        return write(path, self.text, self.data)
