# SPDX-License-Identifier: MIT
"""Writer of kernel traces as LTTng writes them, one file per CPU, for the made worlds (world.py)."""
import os
import struct
import uuid

START_NS = 1700000000 * 10**9  # time at which the clock shows 0
PER_PACKET = 300               # events
TCP, UDP = 6, 17

_NUMBERS = """
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 16; align = 8; signed = false; } := u16;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 32; align = 8; signed = true; } := i32;
typealias integer { size = 64; align = 8; signed = true; } := i64;
typealias integer { size = 4; align = 4; signed = false; byte_order = be; } := n4;
typealias integer { size = 8; align = 8; signed = false; byte_order = be; } := n8;
typealias integer { size = 16; align = 8; signed = false; byte_order = be; } := n16;
typealias integer { size = 32; align = 8; signed = false; byte_order = be; } := n32;
typealias integer { size = 8; align = 8; signed = true; encoding = UTF8; } := letter;
"""
_TRACE = """/* CTF 1.8 */
%(numbers)s
trace {
	major = 1; minor = 8; uuid = "%(uuid)s"; byte_order = le;
	packet.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; };
};
env { hostname = "%(host)s"; domain = "kernel"; sysname = "Linux"; kernel_release = "6.1.0";
	tracer_name = "lttng-modules"; tracer_major = 2; tracer_minor = 13; };
clock { name = monotonic; uuid = "%(clock)s"; freq = 1000000000; offset = %(offset)d; };
typealias integer { size = 32; align = 8; signed = false; map = clock.monotonic.value; } := t32;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := t64;
struct packet_context {
	t64 timestamp_begin; t64 timestamp_end; u64 content_size; u64 packet_size; u64 packet_seq_num;
	u64 events_discarded; u32 cpu_id;
};
struct header {
	enum : u16 { compact = 0 ... 65534, extended = 65535 } id;
	variant <id> { struct { t32 timestamp; } compact; struct { u32 id; t64 timestamp; } extended; } v;
} align(8);
stream { id = 0; event.header := struct header; packet.context := struct packet_context; };
"""
_PACKET = """u64 _skbaddr; u32 _len; string _name;
	enum : u8 { "_unknown" = 0, "_ipv4" = 1, "_ipv6" = 2 } _network_header_type;
	variant <_network_header_type> {
		struct { } _unknown;
		struct {
			n4 _version; n4 _ihl; n8 _tos; n16 _tot_len; n16 _id; n16 _frag_off; n8 _ttl;
			enum : n8 { "_unknown" = 0, "_tcp" = 6, "_udp" = 17 } _protocol;
			n16 _checksum; n8 _saddr[4]; n8 _daddr[4];
			enum : u8 { "_unknown" = 0, "_tcp" = 1, "_udp" = 2 } _transport_header_type;
			variant <_transport_header_type> {
				struct { } _unknown;
				struct {
					n16 _source_port; n16 _dest_port; n32 _seq; n32 _ack_seq; n4 _data_offset;
					integer { size = 3; align = 1; byte_order = be; } _reserved;
					integer { size = 9; align = 1; byte_order = be; } _flags;
					n16 _window_size; n16 _checksum; n16 _urg_ptr;
				} _tcp;
				struct { n16 _source_port; n16 _dest_port; n16 _len; n16 _check; } _udp;
			} _transport_header;
		} _ipv4;
		struct { } _ipv6;
	} _network_header;"""
_THREAD = "letter _comm[16]; i32 _tid; i32 _prio; i32 _target_cpu;"
_EVENTS = [
    ("sched_switch", "letter _prev_comm[16]; i32 _prev_tid; i32 _prev_prio; i64 _prev_state; letter _next_comm[16]; "
                     "i32 _next_tid; i32 _next_prio;"),
    ("sched_waking", _THREAD),
    ("sched_wakeup_new", _THREAD),
    ("sched_process_fork", "letter _parent_comm[16]; i32 _parent_tid; i32 _parent_pid; letter _child_comm[16]; "
                           "i32 _child_tid; i32 _child_pid;"),
    ("sched_process_exit", "letter _comm[16]; i32 _tid; i32 _prio;"),
    ("irq_handler_entry", "i32 _irq; string _name;"),
    ("irq_handler_exit", "i32 _irq; i32 _ret;"),
    ("irq_softirq_entry", "u32 _vec;"),
    ("irq_softirq_exit", "u32 _vec;"),
    ("timer_hrtimer_expire_entry", "u64 _hrtimer; i64 _now; u64 _function;"),
    ("timer_hrtimer_expire_exit", "u64 _hrtimer;"),
    ("block_rq_issue", "u32 _dev; u64 _sector; u32 _nr_sector; u32 _bytes; i32 _tid; u32 _rwbs; letter _comm[16];"),
    ("block_rq_complete", "u32 _dev; u64 _sector; u32 _nr_sector; i32 _error; u32 _rwbs;"),
    ("net_dev_queue", _PACKET),
    ("net_if_receive_skb", _PACKET),
    ("lttng_statedump_process_state", "i32 _tid; i32 _pid; i32 _ppid; letter _name[16]; i32 _type; i32 _mode; "
                                      "i32 _submode; i32 _status; u32 _cpu; u64 _file_table_address;"),
    ("lttng_statedump_process_pid_ns", "i32 _tid; i32 _vtid; i32 _vpid; i32 _vppid; i32 _ns_level; u32 _ns_inum;"),
    ("sched_process_fork+ns", "letter _parent_comm[16]; i32 _parent_tid; i32 _parent_pid; letter _child_comm[16]; "
                              "i32 _child_tid; u8 __vtids_length; i32 _vtids[ __vtids_length ]; i32 _child_pid; "
                              "u32 _child_ns_inum;"),
    ("lttng_logger", "u64 __msg_length; letter _msg[ __msg_length ];"),
]
# Suffixes after a "+" distinguish the forms of an event.
NUMBER = {name: i for i, (name, _) in enumerate(_EVENTS)}


def comm(name):
    return name.encode().ljust(16, b"\0")


def packet(device, skb, p):
    """Returns the fields of net_dev_queue and net_if_receive_skb for a packet of world.py."""
    if p.protocol == TCP:
        transport = struct.pack(">BHHIIHHHH", 1, p.sport, p.dport, p.seq & 0xffffffff, p.ack & 0xffffffff,
                                5 << 12 | p.flags, 512, 0, 0)
        total = 40 + p.bytes
    else:
        transport = struct.pack(">BHHHH", 2, p.sport, p.dport, 8 + p.bytes, 0)
        total = 28 + p.bytes
    network = struct.pack(">BBHHHBBH", 0x45, 0, total, p.ip_id, 0x4000, 64, p.protocol, 0)
    return (struct.pack("<QI", skb, total) + device.encode() + b"\0\1" + network + bytes(p.source) + bytes(p.target)
            + transport)


def metadata(host, boot=0, session=0):
    """Returns the trace's UUID (16 bytes), and its metadata. session: of the boot; each has a UUID of its own."""
    trace = uuid.uuid5(uuid.NAMESPACE_DNS, f"{host} {boot}" + (f" {session}" if session else ""))
    clock = uuid.uuid5(uuid.NAMESPACE_URL, f"{host} {boot}")
    return trace.bytes, _TRACE % {"numbers": _NUMBERS, "uuid": trace, "clock": clock, "host": host,
                                  "offset": START_NS} + "".join(
        f'event {{ name = "{name.split("+")[0]}"; id = {i}; stream_id = 0; fields := struct {{ {fields} }}; }};\n'
        for i, (name, fields) in enumerate(_EVENTS))


def write_user_texts(folder, host, texts, off_ns, boot=0):
    """Writes a user-space trace of tracef: (time by the host's clock, text). Its session measured the clock's 0 off_ns
    later."""
    clock = uuid.uuid5(uuid.NAMESPACE_URL, f"{host} {boot}")
    trace = uuid.uuid5(clock, "user space")
    text = _TRACE % {"numbers": _NUMBERS, "uuid": trace, "clock": clock, "host": host, "offset": START_NS + off_ns}
    text = text.replace('domain = "kernel"', 'domain = "ust"').replace("lttng-modules", "lttng-ust")
    os.makedirs(folder)
    with open(os.path.join(folder, "metadata"), "w", encoding="ascii") as f:
        f.write(text + 'event { name = "lttng_ust_tracef:event"; id = 0; stream_id = 0; '
                'fields := struct { u64 __msg_length; letter _msg[ __msg_length ]; }; };\n')
    events = [(t, 0, struct.pack("<Q", len(text)) + text.encode()) for t, text in texts]
    with open(os.path.join(folder, "channel_0"), "wb") as f:
        f.write(Recording._stream(trace.bytes, 0, events, []))  # pylint: disable=protected-access


class Recording:
    """Events of one host by CPU: (time by the host's clock, number of the event, payload)."""

    def __init__(self, host, cpus, boot=0, session=0):
        self.host, self.boot, self.session, self.cpus = host, boot, session, [[] for _ in range(cpus)]

    def add(self, cpu, t, name, payload):
        self.cpus[cpu].append((t, NUMBER[name], payload))

    def write(self, folder, lost=()):
        """lost: (cpu, index of the first event, count) that the tracer discarded."""
        os.makedirs(folder)
        trace, text = metadata(self.host, self.boot, self.session)
        with open(os.path.join(folder, "metadata"), "w", encoding="ascii") as f:
            f.write(text)
        for cpu, events in enumerate(self.cpus):
            with open(os.path.join(folder, f"channel_{cpu}"), "wb") as f:
                f.write(self._stream(trace, cpu, events, [x[1:] for x in lost if x[0] == cpu]))

    @staticmethod
    def _stream(trace, cpu, events, lost):
        borders = sorted({0, len(events)} | set(range(0, len(events), PER_PACKET)) | {first for first, _ in lost})
        gone, out, discarded = dict(lost), [], 0
        for number, (first, end) in enumerate(zip(borders, borders[1:])):
            skip = min(gone.get(first, 0), end - first - 1)
            part, begin = events[first + skip:end], events[first][0]
            discarded += skip
            body = b"".join(struct.pack("<HI", i, t & 0xffffffff) + payload for t, i, payload in part)
            size = 8 * (24 + 52 + len(body))
            out.append(struct.pack("<I16sI", 0xC1FC1FC1, trace, 0) +
                       struct.pack("<QQQQQQI", part[0][0] if skip else begin, part[-1][0], size, size, number,
                                   discarded, cpu) + body)
        return b"".join(out)
