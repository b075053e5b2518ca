/* SPDX-License-Identifier: MIT */
/* Conversion of a host's merged events to typed records: current threads of CPUs, interrupt contexts, and lives of
 * tids. */
#include "kernel/tracker.h"

#include <stdlib.h>
#include <string.h>

#include "ctf/feed.h"

/* Limit of the compared bytes of a packet's head: more than its times and numbers take. */
enum { MOST_HEAD = 4096 };

/* ---- set-up ---- */

void kernel_tracker_extend(struct kernel_tracker *t)
{
    const struct kernel_binding *b = t->binding;
    size_t known = t->n_class_names;
    t->class_name = mem_resize(t->class_name, (b->n ? b->n : 1) * sizeof *t->class_name);
    t->n_class_names = b->n;
    if (b->n > known)
        memset(t->class_name + known, 0, (b->n - known) * sizeof *t->class_name);
    /* Numbers vectors first: these must fit in a record's ctx_number, which has 16 bits. */
    for (size_t i = known; i < b->n; i++) {
        const struct kernel_plan *p = &b->plans[i];
        if ((p->kind == KERNEL_IPI_ENTRY || p->kind == KERNEL_IPI_EXIT) && p->cold->name && t->names.n <= UINT16_MAX)
            t->class_name[i] = strings_intern(&t->names, p->cold->name, strlen(p->cold->name));
    }
}

struct kernel_tracker *kernel_tracker_new(const struct kernel_binding *b, kernel_sink *sink, void *arg)
{
    struct kernel_tracker *t = mem_zalloc(sizeof *t);
    t->binding = b;
    t->sink = sink;
    t->arg = arg;
    t->now = INT64_MIN;
    t->next_loss_end = INT64_MAX;
    t->next_absent = INT64_MIN;
    t->x86_64 = kernel_looks_like_x86_64(b->trace);
    strings_intern(&t->names, "", 0);
    kernel_tracker_extend(t);
    return t;
}

void kernel_tracker_free(struct kernel_tracker *t)
{
    if (!t)
        return;
    vec_free(&t->cpus);
    vec_free(&t->threads);
    vec_free(&t->lives);
    vec_free(&t->formers);
    vec_free(&t->births);
    vec_free(&t->leaving);
    vec_free(&t->leaving_births);
    free(t->by_tid);
    free(t->class_name);
    map_fini(&t->far_tids);
    map_fini(&t->leaving_frames);
    map_fini(&t->disks);
    map_fini(&t->irqs);
    map_fini(&t->numbered_calls);
    kernel_spaces_fini(t);
    strings_fini(&t->names);
    free(t);
}

bool kernel_tracker_has(const struct kernel_tracker *t, int kind)
{
    return kernel_has(t->binding, kind);
}

/* ---- CPUs and their contexts ---- */

static struct kernel_cpu *add_cpus(struct kernel_tracker *t, uint32_t cpu)
{
    while (t->cpus.n <= cpu)
        vec_push(&t->cpus, KERNEL_CPU_UNSEEN);
    return &t->cpus.v[cpu];
}

/* Finds the CPU of an event; false if it is invalid. Traces without CPUs count one per stream. */
static bool cpu_of(const struct ctf_event *ev, const struct kernel_plan *p, uint32_t *cpu)
{
    int64_t n = ev->cpu;
    if (__builtin_expect(n < 0, 0))
        n = p->cold && p->cold->has_cpu ? ctf_read_int(ev, &p->cold->cpu) : (int64_t)ev->stream;
    *cpu = (uint32_t)n;
    return n >= 0 && n < KERNEL_MOST_CPUS;
}

static void forget(struct kernel_cpu *c)
{
    c->current = KERNEL_NO_ROW;
    c->depth = 0;
    c->bottom_known = false;
}

/* Handles an event that only threads cause. */
static void in_thread(struct kernel_cpu *c)
{
    c->depth = 0;
    c->bottom_known = true;
}

static struct kernel_record *start(struct kernel_tracker *t, const struct kernel_cpu *c, uint8_t kind)
{
    struct kernel_record *r = &t->record;
    r->ts = t->now;
    r->cpu = (uint32_t)(c - t->cpus.v);
    r->kind = kind;
    r->row = c->current;
    if (c->depth) {
        const struct kernel_frame *f = &c->frames[c->depth - 1];
        r->ctx = f->ctx;
        r->ctx_number = f->number;
        r->ctx_frame = f->serial;
    } else {
        r->ctx = c->bottom_known ? KERNEL_CTX_THREAD : KERNEL_CTX_UNKNOWN;
        r->ctx_number = 0;
        r->ctx_frame = 0;
    }
    return r;
}

static void send(struct kernel_tracker *t)
{
    t->sink(t->arg, &t->record);
}

/* Frames beyond the stack's depth are dropped; their exits match nothing. */
static void push(struct kernel_tracker *t, struct kernel_cpu *c, uint8_t kind, uint8_t ctx, uint16_t number)
{
    if (c->depth < KERNEL_DEPTH) {
        uint32_t serial = ctx == KERNEL_CTX_NET && c->depth ? c->frames[c->depth - 1].serial : ++t->frames;
        c->frames[c->depth++] = (struct kernel_frame){.ctx = ctx, .kind = kind, .number = number, .serial = serial};
    }
    start(t, c, kind);
    send(t);
}

/* Frames above the matching one have lost their exits and are closed with it. The record describes the matching
 * frame. */
static void pop(struct kernel_tracker *t, struct kernel_cpu *c, uint8_t entry, uint8_t exit, bool any, uint16_t number)
{
    int i = c->depth - 1;
    while (i >= 0 && (c->frames[i].kind != entry || (!any && c->frames[i].number != number)))
        i--;
    if (i >= 0)
        c->depth = (uint8_t)(i + 1);
    start(t, c, exit);
    send(t);
    if (i >= 0)
        c->depth--;
}

static void on_context(struct kernel_tracker *t, struct kernel_cpu *c, const struct ctf_event *ev,
    const struct kernel_plan *p, const int64_t v[KERNEL_FIELDS])
{
    uint16_t below;
    switch (p->kind) {
    case KERNEL_SOFTIRQ_ENTRY: /* softirqs begin above threads only, so nothing older can be open */
        in_thread(c);
        push(t, c, p->kind, KERNEL_CTX_SOFTIRQ, (uint16_t)v[0]);
        break;
    case KERNEL_SOFTIRQ_EXIT:
        pop(t, c, KERNEL_SOFTIRQ_ENTRY, p->kind, false, (uint16_t)v[0]);
        in_thread(c);
        break;
    case KERNEL_IRQ_ENTRY:
        if ((p->present & 1) && !map_find(&t->irqs, (uint64_t)v[0])) {
            size_t n;
            const char *name = kernel_text(ev, p, 0, &n);
            *map_put(&t->irqs, (uint64_t)v[0], NULL) = strings_intern(&t->names, name, n);
        }
        push(t, c, p->kind, KERNEL_CTX_IRQ, p->present & 1 ? (uint16_t)v[0] : KERNEL_NO_IRQ);
        break;
    case KERNEL_IRQ_EXIT:
        pop(t, c, KERNEL_IRQ_ENTRY, p->kind, false, p->present & 1 ? (uint16_t)v[0] : KERNEL_NO_IRQ);
        break;
    case KERNEL_HRTIMER_ENTRY: push(t, c, p->kind, KERNEL_CTX_HRTIMER, 0); break;
    case KERNEL_HRTIMER_EXIT: pop(t, c, KERNEL_HRTIMER_ENTRY, p->kind, true, 0); break;
    case KERNEL_IPI_ENTRY: /* vector of the local timer, which does timers' work */
        push(t, c, p->kind, p->timer ? KERNEL_CTX_HRTIMER : KERNEL_CTX_IPI, (uint16_t)t->class_name[ev->cls->index]);
        break;
    case KERNEL_IPI_EXIT: pop(t, c, KERNEL_IPI_ENTRY, p->kind, false, (uint16_t)t->class_name[ev->cls->index]); break;
    case KERNEL_NET_ENTRY:
        below = c->depth ? c->frames[c->depth - 1].ctx : c->bottom_known ? KERNEL_CTX_THREAD : KERNEL_CTX_UNKNOWN;
        push(t, c, p->kind, KERNEL_CTX_NET, below == KERNEL_CTX_NET ? c->frames[c->depth - 1].number : below);
        break;
    case KERNEL_NET_EXIT: pop(t, c, KERNEL_NET_ENTRY, p->kind, true, 0); break;
    default: start(t, c, p->kind); send(t);
    }
}

/* ---- scheduling ---- */

/* Classes of prev_state. Bits 1 and 2 wait, 4 stopped, 8 traced, 0x10 and 0x20 dead in all kernels. Since 4.14: 0x40
 * parked, 0x80 idle as reported or dead as raw, 0x100 preempted while runnable as reported; before: 0x40 dead, 0x200
 * parked. Other bits modify (killable, no load, new, preempted). */
static uint8_t leave_of(const struct kernel_binding *b, int64_t state, bool exiting)
{
    if (state & 3)
        return KERNEL_LEAVE_BLOCKED;
    if (state & (4 | 8))
        return KERNEL_LEAVE_STOPPED;
    if (state & (0x10 | 0x20))
        return KERNEL_LEAVE_DEAD;
    if (state & (0x40 | 0x80))
        return exiting || (b->old_states && (state & 0x40)) ? KERNEL_LEAVE_DEAD : KERNEL_LEAVE_BLOCKED;
    return KERNEL_LEAVE_RUNNABLE;
}

static int32_t leaving_row(struct kernel_tracker *t, uint32_t cpu, int64_t tid, int64_t *since)
{
    struct kernel_cpu *c = &t->cpus.v[cpu];
    if (c->current >= 0 && t->threads.v[c->current].tid == tid) {
        *since = c->current_since;
        return c->current;
    }
    /* Without a seen arrival, it has been there since the CPU is observed without gap. After a contradiction nothing is
     * known. */
    *since = c->current < 0 && c->seen ? c->known_since : t->now;
    int32_t row = tid == 0 ? kernel_row_idle(t, cpu) : kernel_row_get(t, tid, *since);
    if (row >= 0 && t->threads.v[row].begin > *since && !t->threads.v[row].born && !t->lives.v[row].on_cpu)
        t->threads.v[row].begin = *since; /* existed before it was first mentioned */
    return row;
}

static void on_switch(struct kernel_tracker *t, uint32_t cpu, const struct ctf_event *ev, const struct kernel_plan *p,
    const int64_t v[KERNEL_FIELDS])
{
    int64_t since;
    int32_t prev = leaving_row(t, cpu, v[0], &since);
    int32_t next = v[2] == 0 ? kernel_row_idle(t, cpu) : kernel_row_get(t, v[2], t->now);
    struct kernel_cpu *c = &t->cpus.v[cpu];
    uint8_t leave = KERNEL_LEAVE_RUNNABLE;
    if (prev >= 0 && v[0] != 0) {
        leave = leave_of(t->binding, v[1], t->lives.v[prev].exiting);
        kernel_row_name(t, prev, ev, p, 0);
    }
    if (next >= 0 && v[2] != 0)
        kernel_row_name(t, next, ev, p, 1);
    in_thread(c);
    struct kernel_record *r = start(t, c, KERNEL_SWITCH);
    r->row = prev;
    r->u.sw.prev = prev;
    r->u.sw.next = next;
    r->u.sw.leave = leave;
    r->u.sw.prev_state = v[1];
    r->u.sw.since = since;
    r->u.sw.priority = p->present & 16 ? (int32_t)v[4] : KERNEL_NO_PRIORITY;
    if (leave == KERNEL_LEAVE_DEAD)
        kernel_row_die(t, prev);
    send(t);
    if (prev >= 0)
        t->lives.v[prev].on_cpu = true;
    if (next >= 0)
        t->lives.v[next].on_cpu = true;
    c->current = next;
    c->current_since = t->now;
}

/* Returns whether that life ran before. One on a CPU may have come there in the ns in which it was woken. */
static bool ran_before(const struct kernel_tracker *t, int32_t row)
{
    bool ran = t->lives.v[row].on_cpu;
    for (size_t i = 0; i < t->cpus.n && ran; i++)
        ran = t->cpus.v[i].current != row;
    return ran;
}

static void on_wake(struct kernel_tracker *t, struct kernel_cpu *c, const struct ctf_event *ev,
    const struct kernel_plan *p, const int64_t v[KERNEL_FIELDS])
{
    int32_t row = kernel_row_find(t, v[0]);
    if (row >= 0 && p->kind == KERNEL_WAKE_NEW && ran_before(t, row)) {
        kernel_row_die(t, row); /* the end, and the fork of the tid's next life, were not seen */
        row = KERNEL_NO_ROW;
    }
    if (row < 0) {
        row = kernel_row_get(t, v[0], t->now);
        if (row < 0)
            return;
        kernel_row_name(t, row, ev, p, 0);
        if (p->kind == KERNEL_WAKE_NEW) { /* a fork without record: parents wake their children themselves */
            t->threads.v[row].born = true;
            if (c->current >= 0 && t->threads.v[c->current].idle_cpu < 0)
                t->threads.v[row].parent_row = c->current;
        }
    }
    struct kernel_record *r = start(t, c, p->kind);
    r->u.wake.row = row;
    r->u.wake.target_cpu = p->present & 2 ? (int32_t)v[1] : -1;
    r->u.wake.by_wakeup = p->by_wakeup;
    send(t);
}

static void on_migrate(struct kernel_tracker *t, struct kernel_cpu *c, const int64_t v[KERNEL_FIELDS])
{
    struct kernel_record *r = start(t, c, KERNEL_MIGRATE);
    r->u.thread.row = kernel_row_find(t, v[0]);
    r->u.thread.status = 0;
    if (r->u.thread.row >= 0)
        send(t);
}

/* ---- further events ---- */

static void on_syscall(struct kernel_tracker *t, struct kernel_cpu *c, const struct ctf_event *ev,
    const struct kernel_plan *p, const int64_t v[KERNEL_FIELDS])
{
    in_thread(c);
    struct kernel_record *r = start(t, c, p->kind);
    uint32_t name = t->class_name[ev->cls->index];
    if (!name && p->cold->name && strcmp(p->cold->name, "unknown"))
        name = t->class_name[ev->cls->index] = strings_intern(&t->names, p->cold->name, strlen(p->cold->name));
    struct kernel_life *life = c->current >= 0 ? &t->lives.v[c->current] : NULL;
    if (p->kind == KERNEL_SYSCALL_ENTRY) {
        if (!name && (p->present & 1))
            name = kernel_numbered_call(t, v[0]);
        if (life) {
            life->syscall = name;
            life->io = p->io;
        }
        r->u.syscall.io = p->io;
        r->u.syscall.fd = p->present & 2 ? (int32_t)v[1] : -1;
        r->u.syscall.other = p->present & 4 ? v[2] : -1;
        r->u.syscall.flags = (uint32_t)v[3];
        r->u.syscall.ret = 0;
        bool futex = p->futex && (p->present & 6) == 6;
        r->u.syscall.futex = futex ? (uint64_t)v[1] : 0;
        r->u.syscall.operation = futex ? v[2] & 0x7f : 0;
        if (p->io == KERNEL_IO_OPEN)
            r->u.syscall.path = kernel_text(ev, p, 0, &r->u.syscall.path_bytes);
        if (p->space_call && life)
            kernel_spaces_entry(t, c->current, ev, p, v[1], v[2]);
    } else {
        r->u.syscall.io = p->io;
        if (life && !name) {
            name = life->syscall;
            r->u.syscall.io = life->io;
        }
        if (life)
            life->syscall = life->io = 0;
        if (life && life->spaces.call)
            kernel_spaces_exit(t, c->current, v[0]);
        r->u.syscall.ret = v[0];
        r->u.syscall.futex = 0;
        if (r->u.syscall.io == KERNEL_IO_PAIR)
            kernel_io_pair(ev, &r->u.syscall.fd, &r->u.syscall.other);
    }
    r->u.syscall.name = name;
    send(t);
}

static uint32_t device_name(struct kernel_tracker *t, const struct ctf_event *ev, const struct kernel_plan *p)
{
    size_t n;
    const char *s = kernel_text(ev, p, 0, &n);
    if (n >= sizeof t->device)
        return strings_intern(&t->names, s, n);
    if (!n || memcmp(t->device, s, n) || t->device[n]) {
        memset(t->device, 0, sizeof t->device);
        memcpy(t->device, s, n);
        t->device_name = strings_intern(&t->names, s, n);
    }
    return t->device_name;
}

static void on_packet(struct kernel_tracker *t, struct kernel_cpu *c, const struct ctf_event *ev,
    const struct kernel_plan *p, const int64_t v[KERNEL_FIELDS])
{
    struct kernel_record *r = start(t, c, p->kind);
    struct kernel_packet *k = &r->u.packet;
    r->ts = ev->ts;
    *k = (struct kernel_packet){.skb = (uint64_t)v[0]};
    if (p->socket) {
        k->protocol = 6;
        k->seq = (uint32_t)v[1];
        k->ack = (uint32_t)v[2];
        k->flags = (uint16_t)(v[3] & 0x1ff);
    } else {
        uint64_t len = (uint64_t)v[1];
        k->device = device_name(t, ev, p);
        if (p->cold->header)
            kernel_header_read(p->cold->header, ev, len > p->net_header_bytes ? len - p->net_header_bytes : 0, k);
    }
    send(t);
}

static void on_work(struct kernel_tracker *t, struct kernel_cpu *c, const struct ctf_event *ev,
    const struct kernel_plan *p, const int64_t v[KERNEL_FIELDS])
{
    struct kernel_record *r = start(t, c, p->kind);
    switch (p->kind) {
    case KERNEL_BLOCK_INSERT:
    case KERNEL_BLOCK_ISSUE:
    case KERNEL_BLOCK_REQUEUE:
    case KERNEL_BLOCK_COMPLETE:
        r->u.block.dev = (uint32_t)v[0];
        r->u.block.sector = (uint64_t)v[1];
        r->u.block.nr_sector = (uint32_t)v[2];
        r->u.block.rwbs = p->present & 8 ? (uint32_t)v[3] : kernel_rwbs(ev, p);
        r->u.block.error = (int32_t)v[4];
        break;
    case KERNEL_KVM_ENTRY:
    case KERNEL_KVM_EXIT:
        r->u.kvm.vcpu = (uint32_t)v[0];
        r->u.kvm.reason = (uint32_t)v[1];
        r->u.kvm.isa = (uint32_t)v[2];
        break;
    case KERNEL_FREQUENCY:
        r->u.frequency.khz = (uint32_t)v[0];
        r->u.frequency.of_cpu = (uint32_t)v[1];
        break;
    case KERNEL_PAGE_ALLOC:
        if (p->present & 2 && (v[1] == 0 || v[1] == -1)) /* allocation failed */
            return;
        __attribute__((fallthrough));
    case KERNEL_PAGE_FREE: r->u.page.order = (uint64_t)v[0]; break;
    default: r->u.work.work = (uint64_t)v[0]; r->u.work.function = (uint64_t)v[1];
    }
    send(t);
}

/* ---- losses ---- */

static void find_next_loss_end(struct kernel_tracker *t)
{
    t->next_loss_end = INT64_MAX;
    for (size_t i = 0; i < t->cpus.n; i++)
        if (t->cpus.v[i].loss_end < t->next_loss_end)
            t->next_loss_end = t->cpus.v[i].loss_end;
}

/* Ends the packet that reported lost events: events dropped after its last one are before its end. */
static void close_loss(struct kernel_tracker *t, struct kernel_cpu *c)
{
    struct kernel_record *r = start(t, c, KERNEL_LOST);
    int64_t begin = c->last_ts > c->loss_begin ? c->last_ts : c->loss_begin;
    r->u.lost.end = c->loss_end < t->now ? c->loss_end : t->now;
    r->u.lost.begin = begin < r->u.lost.end ? begin : r->u.lost.end;
    r->u.lost.count = 0;
    c->loss_end = INT64_MAX;
    c->loss_head_bytes = 0;
    c->loss_head_hash = 0;
    forget(c);
    c->seen = true;
    c->known_since = r->u.lost.end;
    find_next_loss_end(t);
    send(t);
}

static void close_losses(struct kernel_tracker *t)
{
    for (size_t i = 0; i < t->cpus.n; i++)
        if (t->cpus.v[i].loss_end < t->now)
            close_loss(t, &t->cpus.v[i]);
}

static void on_loss(struct kernel_tracker *t, const struct ctf_event *ev)
{
    struct ctf_loss loss;
    memcpy(&loss, ev->data, sizeof loss);
    bool all = ev->cpu < 0 || ev->cpu >= KERNEL_MOST_CPUS;
    struct kernel_cpu *c = add_cpus(t, all ? 0 : (uint32_t)ev->cpu);
    for (size_t i = 0; i < t->cpus.n; i++) {
        if (!all && c != &t->cpus.v[i])
            continue;
        if (t->cpus.v[i].loss_end != INT64_MAX)
            close_loss(t, &t->cpus.v[i]);
        forget(&t->cpus.v[i]);
        t->cpus.v[i].seen = false; /* valid again at its next event */
    }
    struct kernel_record *r = start(t, c, KERNEL_LOST);
    if (all)
        r->cpu = UINT32_MAX;
    r->u.lost.begin = loss.begin_known && loss.begin <= t->now ? loss.begin : t->now;
    r->u.lost.end = loss.end_known && loss.end >= r->u.lost.begin ? loss.end : t->now;
    r->u.lost.count = loss.count ? loss.count : 1;
    if (!all && ev->cls->item == CTF_LOST_EVENTS) {
        c->loss_begin = r->u.lost.begin;
        c->loss_end = r->u.lost.end;
        c->loss_packet = NULL;
        c->loss_head_bytes = 0;
        find_next_loss_end(t);
    }
    send(t);
}

/* ---- missing streams ---- */

static void send_absent(struct kernel_tracker *t, uint32_t cpu, int64_t begin, int64_t end, bool by_target)
{
    struct kernel_cpu *c = add_cpus(t, cpu);
    c->absent_until = end;
    c->seen = false;
    forget(c);
    struct kernel_record *r = start(t, c, KERNEL_ABSENT);
    r->u.absent.begin = begin;
    r->u.absent.end = end;
    r->u.absent.by_target = by_target;
    send(t);
}

/* Reports streams that are missing according to the trace's files. */
static void tell_absent(struct kernel_tracker *t)
{
    const struct ctf_absent *v;
    size_t n = ctf_trace_absent(t->binding->trace, &v);
    t->next_absent = INT64_MAX;
    for (size_t i = 0; i < n; i++) {
        if (v[i].cpu < 0 || v[i].cpu >= KERNEL_MOST_CPUS || v[i].end < t->now)
            continue;
        if (v[i].begin > t->now)
            t->next_absent = v[i].begin < t->next_absent ? v[i].begin : t->next_absent;
        else if (add_cpus(t, (uint32_t)v[i].cpu)->absent_until < v[i].end)
            send_absent(t, (uint32_t)v[i].cpu, v[i].begin, v[i].end, false);
    }
}

/* Examines the CPU that a thread is sent to: it exists, so it may lack a stream. */
static void look_at_target(struct kernel_tracker *t, const struct kernel_plan *p, const int64_t v[KERNEL_FIELDS])
{
    int field = p->kind == KERNEL_MIGRATE ? 2 : 1;
    int64_t cpu = p->present & 1 << field ? v[field] : -1;
    if (cpu < 0 || cpu >= KERNEL_MOST_CPUS || ((size_t)cpu < t->cpus.n && t->cpus.v[cpu].seen))
        return;
    struct kernel_cpu *c = add_cpus(t, (uint32_t)cpu);
    if (c->has_stream || c->absent_until > t->now)
        return;
    const struct ctf_trace *trace = t->binding->trace; /* streams of a growing trace may still come */
    c->has_stream = ctf_trace_is_growing(trace) || !kernel_cpu_is_missing(trace, cpu);
    if (!c->has_stream)
        send_absent(t, (uint32_t)cpu, INT64_MIN, INT64_MAX, true);
}

/* Handles an event on a CPU whose packet reported losses: notices the packet's first event and the next packet. */
static void watch_loss(struct kernel_tracker *t, struct kernel_cpu *c, const struct ctf_event *ev)
{
    bool known = c->loss_packet == ev->data && ev->payload_bits > c->loss_pos_bits;
    c->loss_pos_bits = ev->payload_bits;
    if (known)
        return;
    uint64_t before = (ev->payload_bits - ev->header_back) >> 3;
    bool first = c->loss_head_bytes == 0;
    if (first)
        c->loss_head_bytes = before < MOST_HEAD ? (uint32_t)before : MOST_HEAD;
    uint64_t hash = before >= c->loss_head_bytes ? map_hash(ev->data, c->loss_head_bytes) : 0;
    if (first)
        c->loss_head_hash = hash;
    if (hash == c->loss_head_hash)
        c->loss_packet = ev->data;
    else
        close_loss(t, c);
}

static void on_logger(
    struct kernel_tracker *t, struct kernel_cpu *c, const struct ctf_event *ev, const struct kernel_plan *p)
{
    size_t n;
    const char *text = kernel_text(ev, p, 0, &n);
    in_thread(c);
    struct kernel_record *r = start(t, c, p->kind);
    if (kernel_read_mark(text, n, &r->u.mark))
        send(t);
    else if (r->row >= 0)
        kernel_spaces_said(t, r->row, text, n);
}

/* ---- events ---- */

static void on_event(struct kernel_tracker *t, uint32_t cpu, const struct ctf_event *ev, const struct kernel_plan *p)
{
    struct kernel_cpu *c = &t->cpus.v[cpu];
    int64_t v[KERNEL_FIELDS];
    bool known = false;
    kernel_fields(ev, p, v);
    if (p->kind == KERNEL_WAKE || p->kind == KERNEL_WAKE_NEW || p->kind == KERNEL_WAKEUP || p->kind == KERNEL_MIGRATE) {
        look_at_target(t, p, v);
        c = &t->cpus.v[cpu];
    }
    switch (p->kind) {
    case KERNEL_SWITCH: on_switch(t, cpu, ev, p, v); return;
    case KERNEL_WAKE:
    case KERNEL_WAKE_NEW:
    case KERNEL_WAKEUP: on_wake(t, c, ev, p, v); return;
    case KERNEL_SYSCALL_ENTRY:
    case KERNEL_SYSCALL_EXIT: on_syscall(t, c, ev, p, v); return;
    case KERNEL_PACKET_SEND:
    case KERNEL_PACKET_RECEIVE: on_packet(t, c, ev, p, v); return;
    case KERNEL_SPAN_MARK: on_logger(t, c, ev, p); return;
    case KERNEL_FORK:
        in_thread(c);
        known = kernel_on_fork(t, ev, p, v, start(t, c, p->kind));
        break;
    case KERNEL_EXEC:
        in_thread(c);
        known = kernel_on_exec(t, ev, p, v, start(t, c, p->kind));
        break;
    case KERNEL_EXIT:
        in_thread(c);
        known = kernel_on_exit(t, v, start(t, c, p->kind));
        break;
    case KERNEL_FREE: known = kernel_on_free(t, v, start(t, c, p->kind)); break;
    case KERNEL_MIGRATE: on_migrate(t, c, v); return;
    case KERNEL_BLOCK_INSERT:
    case KERNEL_BLOCK_ISSUE:
    case KERNEL_BLOCK_REQUEUE:
    case KERNEL_BLOCK_COMPLETE:
    case KERNEL_KVM_ENTRY:
    case KERNEL_KVM_EXIT:
    case KERNEL_PAGE_ALLOC:
    case KERNEL_PAGE_FREE:
    case KERNEL_FREQUENCY:
    case KERNEL_WORK_QUEUE:
    case KERNEL_WORK_START:
    case KERNEL_WORK_END: on_work(t, c, ev, p, v); return;
    default:
        if (p->kind >= KERNEL_STATEDUMP_THREAD && p->kind <= KERNEL_STATEDUMP_END)
            known = kernel_on_statedump(t, ev, p, v, start(t, c, p->kind));
        else
            on_context(t, c, ev, p, v);
    }
    if (known)
        send(t);
}

/* Processes an event that may have call stacks. All its records have them. */
static void with_stacks(struct kernel_tracker *t, uint32_t cpu, const struct ctf_event *ev, const struct kernel_plan *p)
{
    bool has = kernel_stacks_read(p->stacks, ev, t->stacks);
    t->record.stacks = has ? t->stacks : NULL;
    if (p->kind != KERNEL_OTHER) {
        on_event(t, cpu, ev, p);
    } else if (has) {
        start(t, &t->cpus.v[cpu], KERNEL_STACKS);
        send(t);
    }
    t->record.stacks = NULL;
}

static void on_counters(
    struct kernel_tracker *t, struct kernel_cpu *c, const struct ctf_event *ev, const struct kernel_plan *p)
{
    int64_t values[KERNEL_MOST_COUNTERS];
    kernel_counters_read(p->counters, ev, start(t, c, KERNEL_COUNTERS), values);
    send(t);
}

/* Reads contexts: those of a switch belong to the leaving thread, all others show the state after the event. */
static void tell_spaces(
    struct kernel_tracker *t, int32_t row, const struct ctf_event *ev, const struct kernel_space_contexts *of)
{
    for (uint8_t kind = 0; kind < KERNEL_SPACE_KINDS && row >= 0; kind++)
        if (of->access[kind].mode)
            kernel_spaces_tell(t, row, kind, (uint32_t)ctf_read_int(ev, &of->access[kind]));
}

void kernel_tracker_feed(struct kernel_tracker *t, const struct ctf_event *events, size_t n)
{
    const struct kernel_binding *b = t->binding;
    for (size_t i = 0; i < n; i++) {
        const struct ctf_event *ev = &events[i];
        uint32_t index = ev->cls->index, cpu;
        if (index >= b->n)
            continue;
        const struct kernel_plan *p = &b->plans[index];
        if (ev->ts > t->now)
            t->now = ev->ts;
        if (__builtin_expect(t->now > t->next_loss_end, 0))
            close_losses(t);
        if (__builtin_expect(p->kind == KERNEL_LOST, 0)) {
            on_loss(t, ev);
            continue;
        }
        if (__builtin_expect(!cpu_of(ev, p, &cpu), 0))
            continue;
        if (__builtin_expect(t->now >= t->next_absent, 0))
            tell_absent(t);
        struct kernel_cpu *c = cpu < t->cpus.n ? &t->cpus.v[cpu] : add_cpus(t, cpu);
        if (__builtin_expect(c->loss_end != INT64_MAX, 0))
            watch_loss(t, c, ev);
        if (__builtin_expect(!c->seen, 0)) {
            c->seen = true;
            c->known_since = t->now;
        }
        if (__builtin_expect(p->spaces != NULL, 0) && p->kind == KERNEL_SWITCH)
            tell_spaces(t, c->current, ev, p->spaces);
        if (__builtin_expect(p->stacks, 0))
            with_stacks(t, cpu, ev, p);
        else if (p->kind != KERNEL_OTHER)
            on_event(t, cpu, ev, p);
        if (__builtin_expect(p->spaces != NULL, 0) && p->kind != KERNEL_SWITCH)
            tell_spaces(t, t->cpus.v[cpu].current, ev, p->spaces);
        if (__builtin_expect(p->counters != NULL, 0))
            on_counters(t, &t->cpus.v[cpu], ev, p);
        t->cpus.v[cpu].last_ts = t->now;
    }
}

void kernel_tracker_finish(struct kernel_tracker *t)
{
    for (size_t i = 0; i < t->cpus.n; i++)
        if (t->cpus.v[i].loss_end != INT64_MAX)
            close_loss(t, &t->cpus.v[i]);
    for (size_t i = 0; i < t->threads.n; i++)
        if (!t->threads.v[i].died)
            t->threads.v[i].end = t->now;
}
