# SPDX-License-Identifier: MIT
"""Writes a small kernel trace whose events have call stacks, as LTTng's contexts callstack-user and callstack-kernel:
in CTF 1.8 or in CTF 2, with the same stream file. One CPU; thread 10 waits until 11 wakes it."""
import json
import os
import struct

BASE_NS = 1700000000 * 10**9
UUID = bytes(range(32, 48))
IDLE, A, B = ("swapper/0", 0), ("alpha", 10), ("beta", 11)
READ, LOCK, WORK = [0x7f0000001000, 0x401136, 0x401020], [0x7f0000002000, 0x401200, 0x401020], [0x401300, 0x401020]
KERNEL = [0xffffffff81c00010, 0xffffffff81c00020]

_18 = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 16; align = 8; signed = false; } := u16;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 64; align = 8; signed = false; base = 16; } := x64;
typealias integer { size = 32; align = 8; signed = true; } := i32;
typealias integer { size = 64; align = 8; signed = true; } := i64;
typealias integer { size = 8; align = 8; signed = true; encoding = UTF8; } := letter;
trace { major = 1; minor = 8; uuid = "20212223-2425-2627-2829-2a2b2c2d2e2f"; byte_order = le;
	packet.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; }; };
env { hostname = "HOST"; domain = "kernel"; tracer_name = "lttng-modules"; tracer_major = 2; tracer_minor = 13; };
clock { name = monotonic; freq = 1000000000; offset = 1700000000000000000; };
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := t64;
stream { id = 0; event.header := struct { u16 id; t64 timestamp; };
	packet.context := struct { t64 timestamp_begin; t64 timestamp_end; u64 content_size; u64 packet_size; u32 cpu_id; };
	event.context := struct { u32 __callstack_user_length; x64 _callstack_user[ __callstack_user_length ];
		u32 __callstack_kernel_length; x64 _callstack_kernel[ __callstack_kernel_length ]; }; };
event { name = "sched_switch"; id = 0; stream_id = 0; fields := struct {
	letter _prev_comm[16]; i32 _prev_tid; i32 _prev_prio; i64 _prev_state;
	letter _next_comm[16]; i32 _next_tid; i32 _next_prio; }; };
event { name = "sched_waking"; id = 1; stream_id = 0; fields := struct {
	letter _comm[16]; i32 _tid; i32 _prio; i32 _target_cpu; }; };
"""


def _number(bits, *roles, signed=False):
    n = {"type": "fixed-length-%ssigned-integer" % ("" if signed else "un"), "length": bits, "alignment": 8,
         "byte-order": "little-endian"}
    return dict(n, roles=list(roles)) if roles else n


def _structure(*fields):
    return {"type": "structure", "member-classes": [{"name": n, "field-class": c} for n, c in fields]}


def _stack(kind):
    length = f"_callstack_{kind}_length"
    return ((length, _number(32)),
            ("callstack_" + kind, {"type": "dynamic-length-array", "element-field-class": _number(64),
                                   "length-field-location": {"path": [length]}}))


def _fragments(host):
    comm, i32 = {"type": "static-length-string", "length": 16}, _number(32, signed=True)
    yield {"type": "preamble", "version": 2, "uuid": list(UUID)}
    yield {"type": "trace-class", "environment": {
        "hostname": host, "domain": "kernel", "tracer_name": "lttng-modules", "tracer_major": 2, "tracer_minor": 13},
        "packet-header-field-class": _structure(
            ("magic", _number(32, "packet-magic-number")),
            ("uuid", {"type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"]}),
            ("stream_id", _number(32, "data-stream-class-id")))}
    yield {"type": "clock-class", "id": "monotonic", "frequency": 10**9, "origin": "unix-epoch",
           "offset-from-origin": {"seconds": BASE_NS // 10**9}}
    yield {"type": "data-stream-class", "default-clock-class-id": "monotonic",
           "packet-context-field-class": _structure(
               ("timestamp_begin", _number(64, "default-clock-timestamp")),
               ("timestamp_end", _number(64, "packet-end-default-clock-timestamp")),
               ("content_size", _number(64, "packet-content-length")),
               ("packet_size", _number(64, "packet-total-length")), ("cpu_id", _number(32))),
           "event-record-header-field-class": _structure(
               ("id", _number(16, "event-record-class-id")), ("timestamp", _number(64, "default-clock-timestamp"))),
           "event-record-common-context-field-class": _structure(*_stack("user"), *_stack("kernel"))}
    yield {"type": "event-record-class", "id": 0, "name": "sched_switch", "payload-field-class": _structure(
        ("prev_comm", comm), ("prev_tid", i32), ("prev_prio", i32), ("prev_state", _number(64, signed=True)),
        ("next_comm", comm), ("next_tid", i32), ("next_prio", i32))}
    yield {"type": "event-record-class", "id": 1, "name": "sched_waking", "payload-field-class": _structure(
        ("comm", comm), ("tid", i32), ("prio", i32), ("target_cpu", i32))}


def _comm(name):
    return name.encode().ljust(16, b"\0")


def switch(prev, state, following):
    return 0, _comm(prev[0]) + struct.pack("<iiq", prev[1], 20, state) + _comm(following[0]) + struct.pack(
        "<ii", following[1], 20)


def waking(thread):
    return 1, _comm(thread[0]) + struct.pack("<iii", thread[1], 20, 0)


# By packet: time, event, user stack, kernel stack.
PACKETS = [
    [(1000, switch(IDLE, 0, A), [], []), (9000, switch(A, 1, B), READ, KERNEL), (12000, waking(A), LOCK, []),
     (15000, switch(B, 1, A), [], [])],
    [(20000, switch(A, 1, B), LOCK, KERNEL), (26000, waking(A), WORK, []), (30000, switch(B, 1, A), [], []),
     (40000, switch(A, 1, IDLE), READ, KERNEL)],
]


def event(t, what, user, kernel, lengths=None):
    """lengths: the ones that are written instead of the stacks' own."""
    lengths = lengths or (len(user), len(kernel))
    return (struct.pack("<HQI", what[0], t, lengths[0]) + struct.pack(f"<{len(user)}Q", *user)
            + struct.pack("<I", lengths[1]) + struct.pack(f"<{len(kernel)}Q", *kernel) + what[1])


def packet(events, body=None):
    body = b"".join(event(*e) for e in events) if body is None else body
    size = (24 + 36 + len(body)) * 8
    return (struct.pack("<I", 0xC1FC1FC1) + UUID + struct.pack("<I", 0)
            + struct.pack("<QQQQI", events[0][0], events[-1][0], size, size, 0) + body)


def write(directory, form="1.8", packets=None, host="made"):
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "metadata"), "w", encoding="ascii") as f:
        if form == "1.8":
            f.write(_18.replace("HOST", host))
        else:
            f.writelines("\x1e" + json.dumps(x) + "\n" for x in _fragments(host))
    with open(os.path.join(directory, "channel_0"), "wb") as f:
        f.writelines(packets or [packet(p) for p in PACKETS])
    return directory
