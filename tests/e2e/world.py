# SPDX-License-Identifier: MIT
"""Made worlds: hosts with CPUs; threads that compute, send, receive, sleep, write to disks, wait for each other and
fork; networks that lose, reorder and forward. Everything is random, but events and their causes are known, because
they are made. A world records two things that share only the instants. The first is the events that a tracer would
have recorded (world_trace.py). The second is every thread's states with the causes of their ends, from which
world_path.py derives critical paths."""
import heapq
import itertools
import struct

import world_trace
from world_trace import TCP, UDP, comm

RUN, READY, WAIT = "running", "preempted", "wait"
NET_RX, TIMER_SOFTIRQ = 3, 1
SLEEPING, DISK_SLEEP, RUNNABLE, DEAD = 1, 2, 0, 16
DUMPED_WAITING = 5
ROOT_SPACE = 0xEFFFFFFC  # inode of the first pid namespace
STACKS = (("eth0",), ("bond0", "eth0"), ("vlan7", "bond0", "eth0"), ("veth1", "br0", "eth0"))  # topmost first


class Interval:
    """State of a thread over [begin, end). cause, of a wait: ("wake", thread, when), ("net", thread, when, asked) with
    the sender and its first send, and the time when the thread had sent the request that this answers (or None), or
    ("end", state) if nobody is to be followed."""

    def __init__(self, begin, kind):
        self.begin, self.end, self.kind, self.cause = begin, None, kind, None


class Thread:
    def __init__(self, host, tid, name, program):
        self.host, self.tid, self.name, self.program = host, tid, name, program
        self.intervals, self.parent, self.cpu = [], None, None
        self.left = 0          # ns to compute before the program goes on
        self.dispatched = 0    # number of times it got a CPU: events of earlier ones are void
        self.waits_for = None
        self.dead = False
        self.space = None      # (inode, number within) of its pid namespace, if the trace records it

    def become(self, t, kind, cause=None):
        if self.intervals:
            self.intervals[-1].end = t
            self.intervals[-1].cause = cause
        self.intervals.append(Interval(t, kind))

    def __repr__(self):
        return f"{self.host.name}:{self.tid}"


class Packet:
    def __init__(self, source, target, protocol, n, seq, ack, flags, ip_id, by, sent):
        (self.source, self.sport), (self.target, self.dport) = source, target
        self.protocol, self.bytes, self.seq, self.ack, self.flags, self.ip_id = protocol, n, seq, ack, flags, ip_id
        self.by, self.sent = by, sent  # sender of these bytes, and time of their first send


class End:
    """End of a connection."""

    def __init__(self, host, port, protocol, dice):
        self.host, self.protocol = host, protocol
        self.address = (host.address, port)
        self.seq = dice.choice((1, 1000, 2**32 - 700, dice.getrandbits(32)))
        self.peer, self.reader = None, None
        self.got = 0           # bytes that the reader may take
        self.next = None       # the next byte expected
        self.early = []        # segments that came before it
        self.sent = []         # (the byte after it, when, by whom); bytes sent again are left out

    def asked(self, thread, ack):
        """Returns the time when the thread sent the last bytes that the peer had of this end by then."""
        had = [x for x in self.sent if self.protocol == UDP or x[0] <= ack]
        return had[-1][1] if had and had[-1][2] is thread else None


class Cpu:
    def __init__(self, number):
        self.number, self.thread, self.queue = number, None, []


class Host:
    def __init__(self, world, number, cpus):
        self.world, self.number, self.name = world, number, f"h{number}"
        self.address = (10, 0, 0, number + 1)
        self.cpus = [Cpu(i) for i in range(cpus)]
        self.recording = world_trace.Recording(self.name, cpus, world.boot, world.session)
        self.devices = world.dice.choice(STACKS) if world.stacked else ("eth0",)
        self.threads, self.tids, self.ports, self.ip_ids = [], itertools.count(100), itertools.count(4000), 1


class Semaphore:
    def __init__(self):
        self.count, self.waiting = 0, []


class World:
    """World. stacked: hosts' network devices may be stacked. boot, session of the boot, begin: of all hosts, and
    when."""

    def __init__(self, dice, hosts, forwarders=0, loss=0.0, reorder=0.0, clock=None, stacked=False, boot=0, session=0,
                 begin=1000):
        self.dice, self.loss, self.reorder, self.stacked = dice, loss, reorder, stacked
        self.boot, self.session = boot, session
        self.clock = clock or (lambda host, t: t)
        self.now, self.agenda, self.order = begin, [], itertools.count()
        self.hosts = [Host(self, i, dice.randint(1, 3)) for i in range(hosts + forwarders)]
        self.forwarders = self.hosts[hosts:]
        self.skb = itertools.count(0xffff888000000000, 256)

    # ---- time ----

    def tick(self):
        """Returns a new instant: no two events have the same nanosecond."""
        self.now += self.dice.randint(1, 400)
        return self.now

    def at(self, t, act, *args):
        heapq.heappush(self.agenda, (t, next(self.order), act, args))

    def run(self, until):
        while self.agenda and self.agenda[0][0] <= until:
            t, _, act, args = heapq.heappop(self.agenda)
            self.now = max(self.now + 1, t)
            act(*args)

    def emit(self, host, cpu, name, payload):
        t = self.tick()
        host.recording.add(cpu.number, self.clock(host, t), name, payload)
        return t

    # ---- the scheduler ----

    def spawn(self, host, name, program):
        """Adds a thread that existed before the recording: asleep until a timer wakes it."""
        thread = Thread(host, next(host.tids), name, program)
        host.threads.append(thread)
        cpu = host.cpus[0]
        t = self.emit(host, cpu, "lttng_statedump_process_state",
                      struct.pack("<iii", thread.tid, thread.tid, 1) + comm(name) +
                      struct.pack("<iiiiIQ", 0, 5, 0, DUMPED_WAITING, 0, 0))
        thread.become(t, WAIT)
        self.at(self.now + self.dice.randint(1000, 300000), self.expire, thread)
        return thread

    def contain(self, thread, inode, number):
        """Puts the thread in a namespace recorded by the state dump."""
        thread.space = inode, number
        for level, space, tid in ((0, ROOT_SPACE, thread.tid), (1, inode, number)):
            self.emit(thread.host, thread.host.cpus[0], "lttng_statedump_process_pid_ns",
                      struct.pack("<iiiiiI", thread.tid, tid, tid, 1, level, space))

    def place(self, thread):
        idle = [c for c in thread.host.cpus if not c.thread]
        if thread.cpu in idle:
            return thread.cpu
        return self.dice.choice(idle or thread.host.cpus)

    def wake(self, thread, cpu, cause):
        """Wakes the thread by an event on `cpu`."""
        target = self.place(thread)
        t = self.emit(thread.host, cpu, "sched_waking",
                      comm(thread.name) + struct.pack("<iii", thread.tid, 20, target.number))
        thread.become(t, READY, cause(t) if callable(cause) else cause)
        thread.waits_for = None
        self.enqueue(thread, target)

    def enqueue(self, thread, cpu):
        thread.cpu = cpu
        cpu.queue.append(thread)
        if not cpu.thread:
            self.at(self.now + self.dice.randint(200, 3000), self.dispatch, cpu)
        elif self.dice.random() < 0.3:
            self.at(self.now + self.dice.randint(200, 3000), self.preempt, cpu, cpu.thread.dispatched)
        else:
            self.at(self.now + 1000000, self.preempt, cpu, cpu.thread.dispatched)

    def switch(self, cpu, host, state, following):
        prev = cpu.thread
        names = [(x.name, x.tid) if x else (f"swapper/{cpu.number}", 0) for x in (prev, following)]
        return self.emit(host, cpu, "sched_switch", comm(names[0][0]) + struct.pack("<iiq", names[0][1], 20, state) +
                         comm(names[1][0]) + struct.pack("<ii", names[1][1], 20))

    def dispatch(self, cpu):
        if cpu.thread or not cpu.queue:
            return
        thread = cpu.queue.pop(0)
        t = self.switch(cpu, thread.host, RUNNABLE, thread)
        self.got_cpu(thread, cpu, t)

    def got_cpu(self, thread, cpu, t):
        cpu.thread, thread.cpu = thread, cpu
        thread.dispatched += 1
        thread.become(t, RUN)
        self.go_on(thread)

    def leave(self, thread, state, kind):
        cpu = thread.cpu
        following = cpu.queue.pop(0) if cpu.queue else None
        t = self.switch(cpu, thread.host, state, following)
        cpu.thread = None
        thread.become(t, kind)
        if kind == READY:
            cpu.queue.append(thread)
        if following:
            self.got_cpu(following, cpu, t)

    def preempt(self, cpu, dispatched):
        thread = cpu.thread
        if not thread or thread.dispatched != dispatched or not cpu.queue:
            return
        thread.left = max(1, thread.until - self.now)
        self.leave(thread, RUNNABLE, READY)

    def go_on(self, thread):
        """Runs the thread, which has the CPU: the rest of its computation, then its next step."""
        thread.until = self.now + thread.left
        self.at(thread.until, self.step, thread, thread.dispatched)

    def step(self, thread, dispatched):
        if thread.dead or thread.dispatched != dispatched or thread.cpu.thread is not thread:
            return
        thread.left = 0
        try:
            what, *args = next(thread.program)
        except StopIteration:
            self.exit(thread)
            return
        if getattr(self, "do_" + what)(thread, *args):
            self.go_on(thread)

    def exit(self, thread):
        self.emit(thread.host, thread.cpu, "sched_process_exit", comm(thread.name) + struct.pack("<ii", thread.tid, 20))
        thread.dead = True
        self.leave(thread, DEAD, "gone")

    # ---- steps of threads: true if they continue at once ----

    def do_compute(self, thread, ns):
        thread.left = ns
        return True

    def do_sleep(self, thread, ns):
        self.leave(thread, SLEEPING, WAIT)
        self.at(self.now + ns, self.expire, thread)

    def expire(self, thread):
        cpu = self.dice.choice(thread.host.cpus)
        timer = struct.pack("<Q", thread.tid)
        self.emit(thread.host, cpu, "timer_hrtimer_expire_entry", timer + struct.pack("<qQ", self.now, 0))
        self.wake(thread, cpu, ("end", "timer"))
        self.emit(thread.host, cpu, "timer_hrtimer_expire_exit", timer)

    def do_disk(self, thread, ns):
        sector = self.dice.getrandbits(30)
        self.emit(thread.host, thread.cpu, "block_rq_issue",
                  struct.pack("<IQIIiI", 8 << 20, sector, 8, 4096, thread.tid, 1) + comm(thread.name))
        self.leave(thread, DISK_SLEEP, WAIT)
        self.at(self.now + ns, self.disk_done, thread, sector)

    def disk_done(self, thread, sector):
        host, cpu = thread.host, self.dice.choice(thread.host.cpus)
        self.emit(host, cpu, "irq_handler_entry", struct.pack("<i", 14) + b"disk\0")
        self.emit(host, cpu, "block_rq_complete", struct.pack("<IQIiI", 8 << 20, sector, 8, 0, 1))
        self.wake(thread, cpu, ("end", "block-device"))
        self.emit(host, cpu, "irq_handler_exit", struct.pack("<ii", 14, 1))

    def do_wait(self, thread, semaphore):
        if semaphore.count:
            semaphore.count -= 1
            return True
        semaphore.waiting.append(thread)
        self.leave(thread, SLEEPING, WAIT)
        return False

    def do_post(self, thread, semaphore):
        if semaphore.waiting:
            self.wake(semaphore.waiting.pop(0), thread.cpu, lambda t: ("wake", thread, t))
        else:
            semaphore.count += 1
        return True

    def do_fork(self, thread, name, program, space=None):
        child = Thread(thread.host, next(thread.host.tids), name, program)
        start = comm(thread.name) + struct.pack("<ii", thread.tid, thread.tid) + comm(name)
        if space:
            child.space = space
            t = self.emit(thread.host, thread.cpu, "sched_process_fork+ns",
                          start + struct.pack("<iBiiiI", child.tid, 2, child.tid, space[1], child.tid, space[0]))
        else:
            t = self.emit(thread.host, thread.cpu, "sched_process_fork",
                          start + struct.pack("<ii", child.tid, child.tid))
        child.parent = (thread, t)
        child.become(t, READY)
        thread.host.threads.append(child)
        target = self.place(child)
        self.emit(thread.host, thread.cpu, "sched_wakeup_new",
                  comm(name) + struct.pack("<iii", child.tid, 20, target.number))
        self.enqueue(child, target)
        return True

    def do_log(self, thread, text, told):
        """Writes to /proc/lttng-logger. `told` gets the writer, and when."""
        told(thread, self.emit(thread.host, thread.cpu, "lttng_logger", struct.pack("<Q", len(text)) + text.encode()))
        return True

    # ---- the network ----

    def connect(self, a, b, protocol=TCP):
        """Returns two ends, each used by the threads of one host."""
        ends = [End(h, next(h.ports), protocol, self.dice) for h in (a, b)]
        ends[0].peer, ends[1].peer = ends[1], ends[0]
        for end in ends:
            end.next = end.peer.seq
        return ends

    def put_on_wire(self, host, cpu, devices, p):
        skb = next(self.skb)
        for device in devices:
            self.emit(host, cpu, "net_dev_queue", world_trace.packet(device, skb, p))
            p.sent = p.sent or self.now

    def take_off_wire(self, host, cpu, p):
        skb = next(self.skb)
        for device in host.devices[::-1]:
            self.emit(host, cpu, "net_if_receive_skb", world_trace.packet(device, skb, p))

    def do_send(self, thread, end, n):
        while n:
            part = n if end.protocol == UDP else min(n, self.dice.choice((1448, 1448, 600, n)))
            host = end.host
            p = Packet(end.address, end.peer.address, end.protocol, part, end.seq, end.next, 0x18, host.ip_ids & 0xffff,
                       thread, None)
            host.ip_ids += 1
            end.seq += part
            n -= part
            self.put_on_wire(host, thread.cpu, host.devices, p)
            end.sent.append((end.seq, p.sent, thread))
            self.travel(end, p)
        return True

    def travel(self, end, p, attempt=0):
        lost = self.dice.random() < self.loss
        delay = self.dice.randint(20000, 400000 if self.dice.random() < 0.9 else 4000000)
        if lost and end.protocol == TCP:
            self.at(self.now + 5000000 << min(attempt, 3), self.resend, end, p, attempt + 1)
        if lost:
            return
        t = self.now + delay
        if end.protocol == TCP and self.dice.random() >= self.reorder:
            t = end.arrives = max(t, getattr(end, "arrives", 0) + 1)
        if self.forwarders and end.host is not end.peer.host:
            self.at(self.now + delay // 2, self.forward, self.dice.choice(self.forwarders), p)
        self.at(t, self.arrive, end.peer, p)

    def forward(self, host, p):
        cpu = self.softirq_begin(host, NET_RX)
        self.emit(host, cpu, "net_if_receive_skb", world_trace.packet("eth0", next(self.skb), p))
        self.put_on_wire(host, cpu, ("eth1",), p)
        self.softirq_end(host, cpu, NET_RX)

    def resend(self, end, p, attempt):
        cpu = self.softirq_begin(end.host, TIMER_SOFTIRQ)
        again = Packet(end.address, end.peer.address, p.protocol, p.bytes, p.seq, end.next, p.flags,
                       end.host.ip_ids & 0xffff, p.by, p.sent)
        end.host.ip_ids += 1
        self.put_on_wire(end.host, cpu, end.host.devices, again)
        self.softirq_end(end.host, cpu, TIMER_SOFTIRQ)
        self.travel(end, again, attempt)

    def softirq_begin(self, host, vec):
        cpu = self.dice.choice(host.cpus)
        if vec == NET_RX:
            self.emit(host, cpu, "irq_handler_entry", struct.pack("<i", 27) + b"eth0\0")
            self.emit(host, cpu, "irq_handler_exit", struct.pack("<ii", 27, 1))
        self.emit(host, cpu, "irq_softirq_entry", struct.pack("<I", vec))
        return cpu

    def softirq_end(self, host, cpu, vec):
        self.emit(host, cpu, "irq_softirq_exit", struct.pack("<I", vec))

    def arrive(self, end, p):
        host = end.host
        cpu = self.softirq_begin(host, NET_RX)
        self.take_off_wire(host, cpu, p)
        if self.accept(end, p) and end.reader and end.reader.waits_for is end:
            self.wake(end.reader, cpu, ("net", p.by, p.sent, end.asked(end.reader, p.ack)))
        if end.protocol == TCP and self.dice.random() < 0.4:
            ack = Packet(end.address, end.peer.address, TCP, 0, end.seq, end.next, 0x10, host.ip_ids & 0xffff, None,
                         None)
            host.ip_ids += 1
            self.put_on_wire(host, cpu, host.devices, ack)
            if self.dice.random() >= self.loss:
                self.at(self.now + self.dice.randint(20000, 300000), self.acknowledged, end.peer, ack)
        self.softirq_end(host, cpu, NET_RX)

    def acknowledged(self, end, p):
        cpu = self.softirq_begin(end.host, NET_RX)
        self.take_off_wire(end.host, cpu, p)
        self.softirq_end(end.host, cpu, NET_RX)

    @staticmethod
    def accept(end, p):
        """Takes a packet; returns whether there is more to read now."""
        if end.protocol == UDP:
            end.got += p.bytes
            return True
        end.early.append((p.seq, p.bytes))
        before = end.next
        for seq, n in sorted(end.early):
            if seq <= end.next < seq + n:
                end.got += seq + n - end.next
                end.next = seq + n
        end.early = [x for x in end.early if x[0] > end.next]
        return end.next > before

    def do_receive(self, thread, end, n):
        """Requests n bytes, or any for UDP; goes to sleep as often as there is too little."""
        end.reader = thread
        if end.got >= n:
            end.got -= n
            return True
        thread.waits_for = end
        inner = thread.program
        thread.program = itertools.chain([("receive", end, n)], inner)
        self.leave(thread, SLEEPING, WAIT)
        return False
