# SPDX-License-Identifier: MIT
"""Writer of a small kernel trace as LTTng would write it: one host, one CPU, three packets, two threads that wake each
other. Small enough to be cut at every byte. babeltrace2 reads it without a message (test_robust.py checks that where
it is installed)."""
import os
import struct

UUID = bytes(range(16, 32))
OFFSET_NS = 1700000000 * 10**9
BEFORE_PACKET = 2000  # ns between a packet's begin and its first event

METADATA = """/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
trace {
	major = 1; minor = 8;
	uuid = "10111213-1415-1617-1819-1a1b1c1d1e1f";
	byte_order = le;
	packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; };
};
env { hostname = "small"; domain = "kernel"; tracer_name = "lttng-modules"; tracer_major = 2; tracer_minor = 13; };
clock { name = monotonic; freq = 1000000000; offset = 1700000000000000000; };
typealias integer { size = 32; align = 8; signed = false; map = clock.monotonic.value; } := t32;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := t64;
struct packet_context {
	t64 timestamp_begin; t64 timestamp_end; uint64_t content_size; uint64_t packet_size;
	uint64_t packet_seq_num; uint64_t events_discarded; uint32_t cpu_id;
};
struct header {
	enum : uint16_t { compact = 0 ... 65534, extended = 65535 } id;
	variant <id> { struct { t32 timestamp; } compact; struct { uint32_t id; t64 timestamp; } extended; } v;
} align(8);
typealias integer { size = 8; align = 8; signed = true; encoding = UTF8; } := letter;
typealias integer { size = 32; align = 8; signed = true; } := int32_t;
typealias integer { size = 64; align = 8; signed = true; } := int64_t;
stream { id = 0; event.header := struct header; packet.context := struct packet_context; };
event { name = "sched_switch"; id = 0; stream_id = 0; fields := struct {
	letter _prev_comm[16]; int32_t _prev_tid; int32_t _prev_prio; int64_t _prev_state;
	letter _next_comm[16]; int32_t _next_tid; int32_t _next_prio; }; };
event { name = "sched_waking"; id = 1; stream_id = 0; fields := struct {
	letter _comm[16]; int32_t _tid; int32_t _prio; int32_t _target_cpu; }; };
event { name = "sched_process_exec"; id = 2; stream_id = 0; fields := struct {
	string _filename; int32_t _tid; int32_t _old_tid; }; };
event { name = "sched_process_fork"; id = 3; stream_id = 0; fields := struct {
	letter _parent_comm[16]; int32_t _parent_tid; int32_t _parent_pid; letter _child_comm[16]; int32_t _child_tid;
	uint8_t __vtids_length; int32_t _vtids[ __vtids_length ]; int32_t _child_pid; }; };
"""


def comm(name):
    return name.encode().ljust(16, b"\0")


def switch(prev, prev_state, following):
    return 0, comm(prev[0]) + struct.pack("<iiq", prev[1], 20,
                                          prev_state) + comm(following[0]) + struct.pack("<ii", following[1], 20)


def waking(thread):
    return 1, comm(thread[0]) + struct.pack("<iii", thread[1], 20, 0)


def exec_(path, tid):
    return 2, path.encode() + b"\0" + struct.pack("<ii", tid, tid)


def fork(parent, child):
    return 3, comm(parent[0]) + struct.pack("<ii", parent[1],
                                            parent[1]) + comm(child[0]) + struct.pack("<iBii", child[1], 1, child[1],
                                                                                      child[1])


IDLE, A, B = ("swapper/0", 0), ("alpha", 10), ("beta", 11)
PACKETS = [
    [(1000, switch(IDLE, 0, A)), (5000, fork(A, B)), (6000, waking(B)), (9000, switch(A, 1, B)),
     (12000, exec_("/usr/bin/beta", 11))],
    [(20000, waking(A)), (25000, switch(B, 1, A)), (31000, waking(B)), (33000, switch(A, 1, B)), (41000, waking(A))],
    [(45000, switch(B, 1, A)), (52000, switch(A, 1, IDLE)), (60000, switch(IDLE, 0, B)), (70000, switch(B, 64, IDLE))],
]


def packet(number, events, packet_bits=None, content_bits=None):
    body = b"".join(struct.pack("<HI", event, t) + payload for t, (event, payload) in events)
    head = 4 + 16 + 4 + 8 * 6 + 4
    size = (head + len(body)) * 8
    begin, end = events[0][0] - BEFORE_PACKET // 4, events[-1][0] + 100
    return (struct.pack("<I", 0xC1FC1FC1) + UUID + struct.pack("<I", 0)
            + struct.pack("<QQQQQQI", begin, end, size if content_bits is None else content_bits,
                          size if packet_bits is None else packet_bits,
                          number, 0, 0) + body)


def write(directory, metadata=METADATA, stream=None):
    """Writes the trace and returns the list of its packets' sizes in bytes."""
    os.makedirs(directory, exist_ok=True)
    packets = [packet(i, events) for i, events in enumerate(PACKETS)]
    with open(os.path.join(directory, "metadata"), "wb") as f:
        f.write(metadata if isinstance(metadata, bytes) else metadata.encode())
    with open(os.path.join(directory, "ch_0"), "wb") as f:
        f.write(b"".join(packets) if stream is None else stream)
    return [len(p) for p in packets]


def packetized(text):
    """Returns metadata as LTTng writes it: in packets."""
    body = text.encode()
    return struct.pack("<I", 0x75D11D57) + UUID + struct.pack("<IIIBBBBB", 0, (37 + len(body)) * 8,
                                                              (37 + len(body)) * 8, 0, 0, 0, 1, 8) + body
