# SPDX-License-Identifier: MIT
"""Writes trace.dat files as the man pages trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5) describe them."""
import struct
import zlib

COMMON = [("unsigned short common_type", 0, 2, 0), ("unsigned char common_flags", 2, 1, 0),
          ("unsigned char common_preempt_count", 3, 1, 0), ("int common_pid", 4, 4, 1)]
SWITCH = ("sched_switch", 300, [
    ("char prev_comm[16]", 8, 16, 0), ("pid_t prev_pid", 24, 4, 1), ("int prev_prio", 28, 4, 1),
    ("long prev_state", 32, 8, 1), ("char next_comm[16]", 40, 16, 0), ("pid_t next_pid", 56, 4, 1),
    ("int next_prio", 60, 4, 1)])
WAKING = ("sched_waking", 301, [
    ("char comm[16]", 8, 16, 0), ("pid_t pid", 24, 4, 1), ("int prio", 28, 4, 1), ("int target_cpu", 32, 4, 1)])
EXEC = ("sched_process_exec", 302, [
    ("__data_loc char[] filename", 8, 4, 0), ("pid_t pid", 12, 4, 1), ("pid_t old_pid", 16, 4, 1)])
SYS_ENTER = ("sys_enter", 303, [("long id", 8, 8, 1), ("unsigned long args[6]", 16, 48, 0)])
SYS_EXIT = ("sys_exit", 304, [("long id", 8, 8, 1), ("long ret", 16, 8, 1)])
CPUS_ALLOWED = ("cpus_allowed", 305, [
    ("__rel_loc unsigned long[] mask", 8, 4, 0), ("const char * where", 16, 8, 0), ("u8 mac[6]", 24, 6, 0)])
PRINT = ("print", 5, [("unsigned long ip", 8, 8, 0), ("char buf[]", 16, 0, 0)])
EVENTS = {"ftrace": [PRINT], "sched": [SWITCH, WAKING, EXEC], "raw_syscalls": [SYS_ENTER, SYS_EXIT],
          "other": [CPUS_ALLOWED]}


def text_of(fields):
    return "".join(f"\tfield:{decl};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n"
                   for decl, offset, size, signed in fields)


def format_of(event):
    name, number, fields = event
    return (f"name: {name}\nID: {number}\nformat:\n{text_of(COMMON)}\n{text_of(fields)}\n"
            'print fmt: "field:not a field;\toffset:0;\tsize:4;"\n').encode()


class Made:
    """One file. Numbers of `order` '<' or '>'; pages of `page` bytes."""

    def __init__(self, order="<", page=4096, events=None):
        self.order, self.page, self.events = order, page, EVENTS if events is None else events

    def pack(self, form, *values):
        return struct.pack(self.order + form, *values)

    # ---- events ----

    def record(self, event, *values, pid=1, flags=0, preempt=0):
        """The bytes of an event: values in the order of its fields; lists and texts behind them."""
        _, number, fields = event
        fixed = bytearray(max([8, *(offset + size for _, offset, size, _ in fields)]))
        fixed[:8] = self.pack("HBBi", number, flags, preempt, pid)
        behind = b""
        for (decl, offset, size, signed), value in zip(fields, values):
            if "_loc" in decl:
                value = value + b"\0" if "char" in decl else self.pack(f"{len(value)}Q", *value)
                at = len(fixed) + len(behind) - (offset + 4 if "rel" in decl else 0)
                fixed[offset:offset + 4] = self.pack("I", len(value) << 16 | at)
                behind += value
            elif size == 0:
                behind += value + b"\0"
            elif isinstance(value, bytes):
                fixed[offset:offset + size] = value.ljust(size, b"\0")
            elif isinstance(value, list):
                fixed[offset:offset + size] = self.pack(f"{len(value)}{'Q' if size > len(value) else 'B'}", *value)
            else:
                form = {1: "b", 2: "h", 4: "i", 8: "q"}[size]
                fixed[offset:offset + size] = self.pack(form if signed else form.upper(), value)
        return bytes(fixed) + behind

    def word(self, kind, delta):
        return self.pack("I", kind << 27 | delta if self.order == ">" else delta << 5 | kind)

    def extend(self, delta):
        return self.word(30, delta & (1 << 27) - 1) + self.pack("I", delta >> 27)

    def stamp(self, time):
        return self.word(31, time & (1 << 27) - 1) + self.pack("I", time >> 27 & 0xffffffff)

    def padding(self, n, delta=1):
        return self.word(29, delta) + self.pack("I", n) + bytes(n - 4)

    def data(self, delta, record):
        """A record `delta` ns after the one before."""
        record += bytes(-len(record) % 4)
        if len(record) <= 28 * 4:
            return self.word(len(record) // 4, delta) + record
        return self.word(0, delta) + self.pack("I", len(record) + 4) + record

    def full_page(self, time, *parts, lost=None):
        """A page of the ring buffer. lost: events lost before it; -1: the kernel did not count them."""
        content = b"".join(parts)
        commit = len(content) | (0 if lost is None else 1 << 31 | (0 if lost < 0 else 1 << 30))
        tail = self.pack("Q", lost) if lost is not None and lost >= 0 else b""
        page = self.pack("QQ", time, commit) + content + tail
        assert len(page) <= self.page
        return page.ljust(self.page, b"\0")

    # ---- the file ----

    def begin(self, version):
        return (b"\x17\x08\x44tracing" + str(version).encode() + b"\0" + bytes([self.order == ">", 8]) +
                self.pack("I", self.page))

    def headers(self):
        page = text_of([(" u64 timestamp", 0, 8, 0), (" local_t commit", 8, 8, 1), (" int overwrite", 8, 1, 1),
                        (" char data", 16, self.page - 16, 1)]).encode()
        event = b"# compressed entry header\n"
        return b"".join(name + self.pack("Q", len(text)) + text
                        for name, text in ((b"header_page\0", page), (b"header_event\0", event)))

    def formats(self, events):
        texts = [format_of(event) for event in events]
        return self.pack("I", len(texts)) + b"".join(self.pack("Q", len(text)) + text for text in texts)

    def systems(self):
        systems = {name: events for name, events in self.events.items() if name != "ftrace"}
        return self.pack("I", len(systems)) + b"".join(
            name.encode() + b"\0" + self.formats(events) for name, events in systems.items())

    def option(self, number, data):
        return self.pack("HI", number, len(data)) + data

    def options(self, options):
        return b"".join(self.option(number, data) for number, data in options)

    def version6(self, cpus, options=(), others=None):
        """cpus: lists of pages, by CPU; others: the same by name of the buffer."""
        head = (self.begin(6) + self.headers() + self.formats(self.events.get("ftrace", [])) + self.systems() +
                self.pack("I", 3) + b"a b" + self.pack("I", 0) + self.pack("Q", 7) + b"1 init\n" +
                self.pack("I", len(cpus)))
        others = others or {}

        def whole(places, offsets):
            text = head + b"options  \0" + self.options(options)
            for name, offset in zip(others, offsets):
                text += self.option(3, self.pack("Q", offset) + name.encode() + b"\0")
            text += self.pack("H", 0) + b"flyrecord\0" + self.pack(f"{len(places[0])}Q", *places[0])
            at = []
            for where in places[1:]:
                at.append(len(text))
                text += b"flyrecord\0" + self.pack(f"{len(where)}Q", *where)
            return text, at

        buffers = [cpus, *others.values()]
        text, at = whole([[0] * 2 * len(cpus)] * len(buffers), [0] * len(others))
        offset, data, places = -(-len(text) // self.page) * self.page, b"", []
        for buffer in buffers:
            places.append([])
            for pages in buffer:
                content = b"".join(pages)
                places[-1] += [offset + len(data), len(content)]
                data += content
        return whole(places, at)[0].ljust(offset, b"\0") + data

    def section(self, number, content, compress=None):
        if compress:
            packed = compress(content)
            content = self.pack("II", len(packed), len(content)) + packed
        return self.pack("HHIQ", number, 1 if compress else 0, 0, len(content)) + content

    def version7(self, cpus, options=(), others=None, compression="none", clock="mono", pages_per_block=10):
        compress = {"none": None, "zlib": zlib.compress}[compression]
        text = self.begin(7) + compression.encode() + b"\0" + b"1.0\0"
        first, text, sections = len(text), text + bytes(8), []
        for number, content in ((16, self.headers()), (17, self.formats(self.events.get("ftrace", []))),
                                (18, self.systems())):
            sections.append((number, self.pack("Q", len(text))))
            text += self.section(number, content, compress)
        for name, buffer in {"": cpus, **(others or {})}.items():
            at = len(text)
            data, places = b"", self.pack("II", self.page, len(buffer))
            offset = -(-(at + 16) // self.page) * self.page
            for cpu, pages in enumerate(buffer):
                content = b"".join(pages)
                if compress:
                    blocks = [b"".join(pages[i:i + pages_per_block]) for i in range(0, len(pages), pages_per_block)]
                    content = self.pack("I", len(blocks))
                    for block in blocks:
                        packed = compress(block)
                        content += self.pack("II", len(packed), len(block)) + packed
                places += self.pack("IQQ", cpu, offset + len(data), len(content))
                data += content.ljust(-(-len(content) // self.page) * self.page, b"\0")
            text += self.pack("HHIQ", 3, 1 if compress else 0, 0, offset - at - 16 + len(data))
            text = text.ljust(offset, b"\0") + data
            sections.append((3, self.pack("Q", at) + name.encode() + b"\0" + clock.encode() + b"\0" + places))
        at = len(text)
        text += self.section(0, self.options([*sections, *options, (0, self.pack("Q", 0))]))
        return text[:first] + self.pack("Q", at) + text[first + 8:]


UNAME = (5, b"Linux solo 6.1.0 x86_64\0")
VERSION = (9, b"3.4.0\0")
