# SPDX-License-Identifier: MIT
"""Views of files, through the server, against descriptors followed in babeltrace2's text: test_files.py. Recorded
traces; the one of examples is always there."""
import bisect
import os
import re
import shutil
import subprocess
import tarfile
import tempfile

from graph_client import DATA, ROOT, Server, check_row, have, key, need, new_dice, run, sample_times

FILES = "org.eclipse.tracecompass.incubator.kernel.core.file.access.dataprovider"
THREADS = "org.eclipse.tracecompass.incubator.kernel.core.io.access.dataprovider"
LINE = re.compile(r"^\[(\d+)\.(\d{9})\] (?:\S+ )?([\w:]+): (.*)$")
FIELD = re.compile(r'(\w+) = ("(?:[^"\\]|\\.)*"|-?0x[0-9A-Fa-f]+|-?\d+)')
UNKNOWN = re.compile(r"^fd (\d+) of (.*) \((\d+)\)$")
READ = "read pread64 readv preadv preadv2 recv recvfrom recvmsg".split()
WRITE = "write pwrite64 writev pwritev pwritev2 send sendto sendmsg".split()
COPY = {"sendfile": ("in_fd", "out_fd"), "sendfile64": ("in_fd", "out_fd"), "splice": ("fd_in", "fd_out"),
        "copy_file_range": ("fd_in", "fd_out")}
SYNC = "fsync fdatasync syncfs sync_file_range".split()
OTHER = "lseek fstat newfstat fstatfs ftruncate fallocate fadvise64 flock getdents getdents64 ioctl".split()
MAKES = ("socket accept accept4 epoll_create epoll_create1 eventfd eventfd2 timerfd_create signalfd signalfd4 "
         "inotify_init inotify_init1 memfd_create "
         "pidfd_open perf_event_open io_uring_setup").split()
O_CLOEXEC = 0o2000000
dice = new_dice(7)


def number(text):
    return int(text, 16) if "0x" in text else int(text)


def events(path):
    """(ns, name, {field: text}, cpu, whole text) of each."""
    out = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", path], stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL, check=True).stdout
    for line in out.decode("utf-8", "replace").splitlines():
        m = LINE.match(line)
        fields = dict(FIELD.findall(m[4]))
        yield int(m[1]) * 10**9 + int(m[2]), m[3], fields, int(fields["cpu_id"]), m[4]


class Use:
    """Use of a file by a thread: steps of (since, what, bytes so far)."""

    def __init__(self):
        self.times, self.steps, self.read, self.written, self.held = [], [], 0, 0, 0

    def show(self, t, what):
        self.times.append(t)
        self.steps.append((what, self.read + self.written))

    def rest(self, t):
        self.show(t, "Open" if self.held else None)

    def at(self, t):
        i = bisect.bisect_right(self.times, t)
        return self.steps[i - 1] if i else (None, 0)


class Descriptor:
    def __init__(self, name, use=None, close_on_exec=False):
        self.name, self.use, self.close_on_exec = name, use, close_on_exec  # name None: no file


class Truth:
    def __init__(self, path):
        self.uses, self.tables, self.pid_of, self.at_address, self.calls, current = {}, {}, {}, {}, {}, {}
        self.first = None
        for t, name, f, cpu, text in events(path):
            self.first, self.last = (t if self.first is None else self.first), t
            if name == "sched_switch":
                current[cpu] = number(f["next_tid"])
            elif name == "lttng_statedump_process_state":
                self.pid_of[number(f["tid"])] = number(f["pid"])
                if "file_table_address" in f:
                    self.at_address[f["file_table_address"]] = self.table(number(f["tid"]))
            elif name == "lttng_statedump_file_descriptor":
                self.dumped(f)
            elif name == "sched_process_fork":
                self.fork(number(f["parent_tid"]), number(f["child_tid"]), number(f["child_pid"]))
            elif name == "sched_process_exec":
                self.end(number(f["tid"]), t, 0)
                self.close(number(f["tid"]), t, lambda fd, d: d.close_on_exec)
            elif name == "sched_process_exit":
                self.end(number(f["tid"]), t, 0)
                if self.pid_of.get(number(f["tid"]), number(f["tid"])) == number(f["tid"]):
                    self.close(number(f["tid"]), t, lambda fd, d: True)
            elif cpu in current and name.startswith("syscall_entry_"):
                self.entry(t, current[cpu], name[14:], f)
            elif cpu in current and name.startswith("syscall_exit_"):
                self.exit(t, current[cpu], name[13:], number(f["ret"]), text)

    def table(self, tid):
        return self.tables.setdefault(self.pid_of.get(tid, tid), {})

    def dumped(self, f):
        if "file_table_address" in f:
            table = self.at_address.get(f["file_table_address"])
        else:
            table = self.table(number(f["pid"]))
        old = None if table is None else table.get(number(f["fd"]))
        if table is not None and (old is None or isinstance(old.name, tuple)):
            path = f["filename"][1:-1]
            table[number(f["fd"])] = Descriptor(path if path.startswith("/") else None, None,
                                                bool(int(f["flags"], 8) & O_CLOEXEC))

    def fork(self, parent, child, pid):
        self.pid_of[child] = pid
        if pid == child:
            self.tables[pid] = {fd: Descriptor(d.name, None, d.close_on_exec) for fd,
                                d in self.table(parent).items() if not isinstance(d.name, tuple)}

    def use(self, tid, fd):
        """Returns the use; None: no file."""
        if fd < 0 or fd >= 65536:
            return None
        d = self.table(tid).setdefault(fd, Descriptor(("fd", fd, self.pid_of.get(tid, tid))))
        return None if d.name is None else self.uses.setdefault((d.name, tid), Use())

    def drop(self, tid, fd, t):
        d = self.table(tid).pop(fd, None)
        if d and d.use:
            d.use.held -= 1
            if not any(d.use in call[3] for call in self.calls.values()):
                d.use.rest(t)

    def close(self, tid, t, which):
        for fd, d in list(self.table(tid).items()):
            if which(fd, d):
                self.drop(tid, fd, t)

    def entry(self, t, tid, call, f):
        self.end(tid, t, 0)
        using = []
        if call in READ + WRITE + SYNC + OTHER:
            using = [(self.use(tid, number(f["fd"])),
                      "Read" if call in READ else "Write" if call in WRITE else "Sync" if call in SYNC else "Other")]
        elif call in COPY:
            using = [(self.use(tid, number(f[COPY[call][0]])), "Read"),
                     (self.use(tid, number(f[COPY[call][1]])), "Write")]
            using = using[:1] if using[0][0] is using[1][0] else using
        using = [(use, what) for use, what in using if use]
        for use, what in using:
            use.show(t, what)
        self.calls[tid] = (t, call, f, [use for use, _ in using], [what for _, what in using])

    def end(self, tid, t, moved):
        _, call, _, using, what = self.calls.pop(tid, (0, "", {}, [], []))
        for use, how in zip(using, what):
            if moved > 0 and call not in OTHER + SYNC:
                use.read += moved if how == "Read" else 0
                use.written += moved if how == "Write" else 0
        for use in using:
            use.rest(t)

    def exit(self, t, tid, call, ret, text):
        begin, entered, f, _, _ = self.calls.get(tid, (0, None, None, None, None))
        self.end(tid, t, ret)
        if entered is None or ret < 0:
            return
        if entered in ("open", "openat", "creat", "openat2"):
            path, directory = f.get("filename",
                                    f.get("pathname"))[1:-1], self.table(tid).get(number(f.get("dfd", "-1")))
            if not path.startswith("/") and path and directory and isinstance(directory.name, str):
                path = directory.name.rstrip("/") + "/" + path
            self.drop(tid, ret, t)
            use = self.uses.setdefault((path, tid), Use())
            self.table(tid)[ret] = Descriptor(path, use, bool(number(f.get("flags", "0")) & O_CLOEXEC))
            use.show(begin, "Other")
            use.held += 1
            use.show(t, "Open")
        elif entered == "close":
            self.drop(tid, number(f["fd"]), t)
        elif entered in ("dup", "dup2", "dup3"):
            self.duplicate(tid, number(f.get("oldfd", f.get("fildes"))), ret, t,
                           bool(number(f.get("flags", "0")) & O_CLOEXEC))
        elif entered == "fcntl":
            command, table = number(f["cmd"]), self.table(tid)
            if command in (0, 1030):
                self.duplicate(tid, number(f["fd"]), ret, t, command == 1030)
            elif command == 2 and number(f["fd"]) in table:
                table[number(f["fd"])].close_on_exec = bool(number(f["arg"]) & 1)
        elif entered in MAKES:
            self.drop(tid, ret, t)
            self.table(tid)[ret] = Descriptor(None)
        elif entered in ("pipe", "pipe2", "socketpair"):
            for fd in re.findall(r"\[[01]\] = (\d+)", text):
                self.drop(tid, int(fd), t)
                self.table(tid)[int(fd)] = Descriptor(None, None, bool(number(f.get("flags", "0")) & O_CLOEXEC))

    def duplicate(self, tid, old, new, t, close_on_exec):
        if old == new:
            return
        source = self.table(tid).get(old)
        self.drop(tid, new, t)
        if source is None:
            return
        self.table(tid)[new] = Descriptor(source.name, None, close_on_exec)
        if source.name is not None:
            use = self.table(tid)[new].use = self.uses.setdefault((source.name, tid), Use())
            use.held += 1
            use.rest(t)


def name_of(label):
    m = UNKNOWN.match(label)
    return ("fd", int(m[1]), int(m[3])) if m else label


def entries_of(server, output, by_thread):
    entries = {e["id"]: e for e in server.tree(output)}
    rows = {}
    for e in entries.values():
        if e["hasData"]:
            parent = entries[e["parentId"]]
            file, thread = (e, parent) if by_thread else (parent, e)
            assert int(thread["labels"][1]) == e["metadata"]["TID"][0]
            rows[e["id"]] = name_of(file["labels"][0]), int(thread["labels"][1])
            assert (name_of(file["labels"][0]), e["metadata"]["TID"][0]) == rows[e["id"]]
    return entries, rows


def check_output(server, truth, output, by_thread):
    uses = {k: u for k, u in truth.uses.items() if any(w for w, _ in u.steps)}
    if by_thread:
        uses = {k: u for k, u in uses.items() if u.read or u.written}
    entries, rows = entries_of(server, output, by_thread)
    assert len(set(rows.values())) == len(rows), "the traces of this test use no tid twice"
    assert set(rows.values()) == set(uses), sorted(map(str, set(rows.values()) ^ set(uses)))[:10]
    for entry, who in rows.items():
        assert entries[entry]["labels"][2:] == [str(uses[who].read),
                                                str(uses[who].written)], (who, entries[entry]["labels"])
    root = next(e for e in entries.values() if e["parentId"] == -1)
    assert root["labels"][2:] == [str(sum(u.read for u in uses.values())), str(sum(u.written for u in uses.values()))]
    n = moved = 0
    for _ in range(25):
        # Times with activity, because most files are used for a moment.
        some = dice.sample(sorted(rows), min(len(rows), 12))
        centre = dice.choice(uses[rows[some[0]]].times)
        width = dice.choice((10**5, 10**7, 10**9, 10**10))
        begin, end = max(truth.first, centre - width), min(truth.last, centre + width)
        count = dice.choice((2, 40, 400))
        times = sample_times(begin, end, count)
        for entry, states in server.states(output, some, begin, end, count).items():
            use = uses[rows[entry]]
            for t, state in check_row(states, times, truth.first, truth.last).items():
                if t == truth.last:
                    continue
                what, bytes_before = use.at(t)
                shown = what if not by_thread or what in ("Read", "Write") else None
                assert key(state) == shown and state.get("label") == shown, (rows[entry], t, state, what)
                assert state["start"] == truth.first or use.at(state["start"] - 1) != use.at(t), (rows[entry], state)
                n += 1
                if what in ("Read", "Write") and moved < 300:
                    tip = server.tooltip(output, entry, t)
                    grown = use.at(state["end"])[1] - bytes_before
                    assert int(tip.get("Bytes", 0)) == grown and tip["State"] == what, (tip, grown)
                    assert str(rows[entry][1]) in tip["Thread"] and name_of(tip["File"]) == rows[entry][0]
                    moved += 1
    print("%s: %d states of %d rows, %d calls" % (output.split(".")[-2], n, len(rows), moved))
    assert n > 200 and moved, (n, moved)


def check(path):
    truth = Truth(path)
    with Server(path) as server:
        offered = {o["id"]: (o["name"], o["type"]) for o in server.get(server.outputs)}
        assert offered[FILES] == ("File Access By File",
                                  "TIME_GRAPH") and offered[THREADS] == ("IO Access", "TIME_GRAPH")
        check_output(server, truth, FILES, False)
        check_output(server, truth, THREADS, True)
        styles = server.model("/%s/style" % FILES)["styles"]
        assert {"Open", "Read", "Write", "Sync", "Other"} <= set(styles)


def main():
    need("babeltrace2")
    place = tempfile.mkdtemp(prefix="weft-files-")
    try:
        with tarfile.open(os.path.join(ROOT, "examples", "three-tier.tar.xz")) as tar:
            tar.extractall(place)
        for path in [os.path.join(place, "three-tier", host, "kernel")
                     for host in ("db", "web")] + [os.path.join(DATA, "traces", "three-tier-disk", "db", "kernel")]:
            if have(path):
                print(path)
                check(path)
    finally:
        shutil.rmtree(place)


run(main)
