#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""states_inputs.py STORE OUT: what fuzz_states reads, from a store of states (docs/formats/container.md, states.md)."""
import struct
import sys

SECTIONS = ["totals", "text", "names", "codes", "rows", "cells", "blocks", "sums", "grid", "tables", "heads", "far",
            "late", "tiles", "figures", "losses", "bytes", "files", "through", "open", "firsts"]


def main(store, out):
    with open(store, "rb") as f:
        data = f.read()
    n = struct.unpack_from("<I", data, 40)[0]
    with open(out, "wb") as f:
        for i in range(n):
            name, offset, count, item = struct.unpack_from("<16sQQI", data, 64 + 48 * i)
            which = SECTIONS.index(name.rstrip(b"\0").decode())
            f.write(struct.pack("<I", which | count * item << 8) + data[offset:offset + count * item])


main(*sys.argv[1:])
