/* SPDX-License-Identifier: MIT */
/* A tracker that is cut and goes on makes the same records, rows and names as one that is not. */
#include "../base/test.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "cuts.h"

/* ---- records of a run ---- */

struct told {
    int64_t ts;
    uint64_t hash;
    uint8_t kind;
};
struct open_frame {
    uint32_t local;
    uint64_t number;
};
struct former {
    int64_t until;
    int32_t row, tid;
    uint32_t name;
};

/* Everything by numbers of the host: rows as they are counted, frames as they were first seen, strings by text. */
struct story {
    VEC(struct told) records;
    VEC(struct kernel_thread) threads;
    VEC(struct kernel_thread) last; /* thread according to the last chunk that has the row */
    VEC(struct former) formers;
    struct strings names;
    VEC(struct open_frame) frames; /* frames of the chunk */
    struct map by_local;
    uint64_t n_frames;
    VEC(uint32_t) numbered;         /* names of interrupts, then of disks */
    const struct cuts_chunk *chunk; /* chunk under construction */
    uint64_t h;
};

static void story_free(struct story *s)
{
    vec_free(&s->records);
    vec_free(&s->threads);
    vec_free(&s->last);
    vec_free(&s->formers);
    vec_free(&s->frames);
    vec_free(&s->numbered);
    strings_fini(&s->names);
    map_fini(&s->by_local);
}

static void mix(struct story *s, uint64_t v)
{
    s->h = map_mix(s->h ^ v) * 0x9e3779b97f4a7c15u + 1;
}

static void mix_row(struct story *s, int32_t row)
{
    mix(s, (uint64_t)cuts_row(s->chunk, row));
}

static uint32_t text_of(struct story *s, uint32_t number)
{
    const char *const *strings;
    size_t n = kernel_tracker_strings(s->chunk->tracker, &strings);
    assert_true(number < n);
    return number ? strings_intern(&s->names, strings[number], strlen(strings[number])) : 0;
}

static void mix_text(struct story *s, uint32_t number)
{
    const char *text = strings_get(&s->names, text_of(s, number));
    mix(s, map_hash(text, strlen(text)));
}

static uint64_t frame_of(struct story *s, uint32_t local)
{
    if (!local)
        return 0;
    bool fresh;
    uint64_t *at = map_put(&s->by_local, local, &fresh);
    if (fresh) {
        *at = s->frames.n;
        vec_push(&s->frames, ((struct open_frame){local, ++s->n_frames}));
    }
    return s->frames.v[*at].number;
}

static void mix_packet(struct story *s, const struct kernel_packet *p)
{
    mix(s, p->skb);
    mix(s, p->family | p->protocol << 8 | (uint64_t)p->sport << 16 | (uint64_t)p->dport << 32);
    mix(s, map_hash(p->saddr, sizeof p->saddr));
    mix(s, map_hash(p->daddr, sizeof p->daddr));
    mix(s, p->seq | (uint64_t)p->ack << 32);
    mix(s, p->flags | (uint64_t)p->ip_id << 16 | (uint64_t)p->payload_bytes << 32);
    mix(s, p->has_length);
    mix_text(s, p->device);
}

static void mix_syscall(struct story *s, const struct kernel_record *r)
{
    mix_text(s, r->u.syscall.name);
    mix(s, r->u.syscall.io);
    mix(s, (uint64_t)r->u.syscall.ret);
    mix(s, r->u.syscall.futex);
    bool pair = r->u.syscall.io == KERNEL_IO_PAIR;
    if (r->kind == KERNEL_SYSCALL_ENTRY || pair) {
        mix(s, (uint64_t)r->u.syscall.other);
        mix(s, (uint64_t)r->u.syscall.fd);
    }
    if (r->kind != KERNEL_SYSCALL_ENTRY)
        return;
    mix(s, r->u.syscall.operation);
    mix(s, r->u.syscall.flags);
    if (r->u.syscall.io == KERNEL_IO_OPEN)
        mix(s, map_hash(r->u.syscall.path, r->u.syscall.path_bytes));
}

static void mix_thing(struct story *s, const struct kernel_record *r)
{
    switch (r->kind) {
    case KERNEL_SWITCH:
        mix_row(s, r->u.sw.prev);
        mix_row(s, r->u.sw.next);
        mix(s, r->u.sw.leave);
        mix(s, (uint64_t)r->u.sw.prev_state);
        mix(s, (uint64_t)r->u.sw.since);
        mix(s, (uint64_t)r->u.sw.priority);
        break;
    case KERNEL_WAKE:
    case KERNEL_WAKE_NEW:
    case KERNEL_WAKEUP:
        mix_row(s, r->u.wake.row);
        mix(s, (uint64_t)r->u.wake.target_cpu * 2 + r->u.wake.by_wakeup);
        break;
    case KERNEL_FORK:
        mix_row(s, r->u.fork.parent);
        mix_row(s, r->u.fork.child);
        break;
    case KERNEL_EXEC: mix_text(s, r->u.exec.file); break;
    case KERNEL_STATEDUMP_THREAD:
        mix(s, r->u.thread.status);
        mix(s, r->u.thread.files);
        __attribute__((fallthrough));
    case KERNEL_EXIT:
    case KERNEL_FREE:
    case KERNEL_MIGRATE:
    case KERNEL_STATEDUMP_NS: mix_row(s, r->u.thread.row); break;
    case KERNEL_PACKET_SEND:
    case KERNEL_PACKET_RECEIVE: mix_packet(s, &r->u.packet); break;
    case KERNEL_BLOCK_INSERT:
    case KERNEL_BLOCK_ISSUE:
    case KERNEL_BLOCK_REQUEUE:
    case KERNEL_BLOCK_COMPLETE:
        mix(s, r->u.block.nr_sector);
        mix(s, r->u.block.sector);
        mix(s, r->u.block.rwbs | (uint64_t)r->u.block.error << 32);
        __attribute__((fallthrough));
    case KERNEL_STATEDUMP_DISK: mix(s, r->u.block.dev); break;
    case KERNEL_SYSCALL_ENTRY:
    case KERNEL_SYSCALL_EXIT: mix_syscall(s, r); break;
    case KERNEL_WORK_QUEUE:
    case KERNEL_WORK_START:
    case KERNEL_WORK_END:
        mix(s, r->u.work.work);
        mix(s, r->u.work.function);
        break;
    case KERNEL_COUNTERS:
        for (int i = 0; i < KERNEL_MOST_COUNTERS; i++)
            if (r->u.counters.present >> i & 1)
                mix(s, (uint64_t)r->u.counters.values[i] + (uint64_t)i);
        break;
    case KERNEL_STATEDUMP_FD:
        mix(s, map_hash(r->u.descriptor.path, r->u.descriptor.path_bytes));
        mix_row(s, r->u.descriptor.row);
        mix(s, r->u.descriptor.table + (uint64_t)r->u.descriptor.fd);
        break;
    case KERNEL_LOST:
        mix(s, (uint64_t)r->u.lost.begin);
        mix(s, (uint64_t)r->u.lost.end);
        mix(s, r->u.lost.count);
        break;
    default: break;
    }
}

static void mix_container(struct story *s, int32_t row)
{
    const struct kernel_tracker *t = s->chunk->tracker;
    int32_t container = row >= 0 ? kernel_tracker_container(t, row) : KERNEL_NO_CONTAINER;
    struct kernel_container k;
    if (container == KERNEL_NO_CONTAINER)
        return;
    kernel_tracker_container_is(t, container, &k);
    mix(s, (uint64_t)k.since);
    mix(s, (uint64_t)k.tid << 2 | k.kind);
    mix(s, k.pid_ns | (uint64_t)k.net_ns << 32);
    mix(s, k.uts_ns);
    mix_text(s, k.name);
    mix_text(s, k.first);
}

static void on_record(void *arg, const struct kernel_record *r)
{
    struct story *s = arg;
    s->h = 1;
    mix(s, (uint64_t)r->ts);
    mix(s, r->cpu | (uint64_t)r->kind << 32 | (uint64_t)r->ctx << 40);
    mix(s, frame_of(s, r->ctx_frame));
    mix_row(s, r->row);
    mix_container(s, r->row);
    if (r->ctx == KERNEL_CTX_IPI)
        mix_text(s, r->ctx_number);
    else if (r->ctx != KERNEL_CTX_HRTIMER)
        mix(s, r->ctx_number);
    mix_thing(s, r);
    vec_push(&s->records, ((struct told){r->ts, s->h, r->kind}));
}

/* ---- chunks of a run ---- */

static void on_begin(void *arg, const struct cuts_chunk *c)
{
    struct story *s = arg;
    s->chunk = c;
    s->frames.n = 0;
    map_fini(&s->by_local);
}

/* Saves the frames that are open at a chunk's end. */
static void save_frames(struct story *s, const struct cuts_chunk *c, struct carry *carry)
{
    size_t open = 0;
    for (int write = 0; write < 2; write++) {
        if (write)
            carry_count(carry, open, 12);
        for (size_t i = 0; i < s->frames.n; i++) {
            struct carry probe = {.way = CARRY_SAVE, .bytes = {.fd = -1}};
            uint32_t number;
            kernel_carry_frame(c->tracker, &probe, &s->frames.v[i].local);
            memcpy(&number, probe.bytes.v, sizeof number);
            text_fini(&probe.bytes);
            open += !write && number != KERNEL_CLOSED_FRAME;
            if (write && number != KERNEL_CLOSED_FRAME) {
                kernel_carry_frame(c->tracker, carry, &s->frames.v[i].local);
                carry_number(carry, &s->frames.v[i].number);
            }
        }
    }
}

static void on_carry(void *arg, const struct cuts_chunk *c, struct carry *carry)
{
    struct story *s = arg;
    if (carry->way == CARRY_SAVE)
        save_frames(s, c, carry);
    if (carry->way != CARRY_LOAD)
        return;
    size_t n = carry_count(carry, 0, 12);
    for (size_t i = 0; i < n; i++) {
        struct open_frame f = {0};
        kernel_carry_frame(c->tracker, carry, &f.local);
        carry_number(carry, &f.number);
        *map_put(&s->by_local, f.local, NULL) = s->frames.n;
        vec_push(&s->frames, f);
    }
}

/* Joins facts of earlier chunks about row k with those of a later one: birth and parent come from the chunk of the
 * fork, all else from the last one that knows. */
static void join(struct kernel_thread *k, const struct kernel_thread *later)
{
    int32_t parent = k->parent_row;
    int64_t begin = k->begin;
    bool born = k->born;
    *k = *later;
    k->parent_row = parent >= 0 ? parent : later->parent_row;
    k->begin = begin < later->begin ? begin : later->begin;
    k->born |= born;
}

static void take_threads(struct story *s, const struct cuts_chunk *c)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(c->tracker, &threads);
    assert_int_equal(n, c->chunk.n_rows);
    for (size_t i = 0; i < n; i++) {
        struct kernel_thread k = threads[i];
        size_t row = (size_t)c->chunk.rows[i];
        assert_int_equal(row, cuts_row(s->chunk, (int32_t)i));
        k.name = text_of(s, k.name);
        k.parent_row = cuts_row(c, k.parent_row);
        assert_true(row <= s->threads.n);
        if (row == s->threads.n) {
            vec_push(&s->threads, k);
            vec_push(&s->last, k);
        }
        join(&s->threads.v[row], &k);
        s->last.v[row] = k;
    }
}

static void on_end(void *arg, const struct cuts_chunk *c)
{
    struct story *s = arg;
    const struct kernel_former *formers;
    take_threads(s, c);
    size_t n = kernel_tracker_formers(c->tracker, &formers);
    for (size_t i = 0; i < n; i++)
        vec_push(&s->formers,
            ((struct former){
                formers[i].until, c->chunk.rows[formers[i].row], formers[i].tid, text_of(s, formers[i].name)}));
}

static void on_cut(void *arg, const struct cuts_chunk *c, int64_t at)
{
    on_end(arg, c);
}

static void on_finish(void *arg, const struct cuts_chunk *c)
{
    struct story *s = arg;
    on_end(arg, c);
    for (uint32_t i = 0; i < 512; i++)
        vec_push(&s->numbered, text_of(s, kernel_tracker_irq_name(c->tracker, i)));
    for (uint32_t i = 0; i < 512; i++)
        vec_push(&s->numbered, text_of(s, kernel_tracker_disk_name(c->tracker, (8u << 20) + i)));
}

static const struct cuts_user user = {
    .begin = on_begin, .carry = on_carry, .record = on_record, .cut = on_cut, .finish = on_finish};

/* ---- comparing ---- */

static void same_name(const struct story *a, uint32_t x, const struct story *b, uint32_t y)
{
    assert_string_equal(strings_get(&a->names, x), strings_get(&b->names, y));
}

/* parents: a chunk in which a life is over need not know who forked it. */
static void same_thread(
    const struct story *a, const struct story *b, const struct kernel_thread *y, size_t i, bool parents)
{
    const struct kernel_thread *x = &a->threads.v[i];
    if (x->tid != y->tid || x->tgid != y->tgid || x->ppid != y->ppid || (parents && x->parent_row != y->parent_row) ||
        x->idle_cpu != y->idle_cpu || x->pid_ns != y->pid_ns || x->vtid != y->vtid || x->begin != y->begin ||
        x->end != y->end || x->born != y->born || x->died != y->died)
        fail_msg("row %zu: tid %d, tgid %d, parent %d, [%lld, %lld] is not tid %d, tgid %d, parent %d, [%lld, %lld]", i,
            y->tid, y->tgid, y->parent_row, (long long)y->begin, (long long)y->end, x->tid, x->tgid, x->parent_row,
            (long long)x->begin, (long long)x->end);
    same_name(a, x->name, b, y->name);
}

static void same_story(const struct story *a, const struct story *b)
{
    for (size_t i = 0; i < a->records.n && i < b->records.n; i++)
        if (a->records.v[i].hash != b->records.v[i].hash)
            fail_msg("record %zu, at %lld: of kind %d; in one pass at %lld: %d", i, (long long)b->records.v[i].ts,
                b->records.v[i].kind, (long long)a->records.v[i].ts, a->records.v[i].kind);
    assert_int_equal(a->records.n, b->records.n);
    assert_int_equal(a->threads.n, b->threads.n);
    for (size_t i = 0; i < a->threads.n; i++)
        same_thread(a, b, &b->threads.v[i], i, true);
    for (size_t i = 0; i < a->threads.n; i++)
        same_thread(a, b, &b->last.v[i], i, !b->last.v[i].died);
    assert_int_equal(a->formers.n, b->formers.n);
    for (size_t i = 0; i < a->formers.n; i++) {
        const struct former *x = &a->formers.v[i], *y = &b->formers.v[i];
        assert_true(x->until == y->until && x->row == y->row && x->tid == y->tid);
        same_name(a, x->name, b, y->name);
    }
    for (size_t i = 0; i < a->numbered.n; i++)
        same_name(a, a->numbered.v[i], b, b->numbered.v[i]);
}

/* Checks that state carried over a cut does not depend on earlier cuts. */
static void same_carry(const struct cuts_trace *t, const struct cuts *some, const int64_t *at, size_t which)
{
    struct story s = {0};
    struct cuts alone;
    cuts_run(t, &at[which], 1, &user, &s, &alone);
    assert_int_equal(alone.chunks[0].n_carried, some->chunks[which].n_carried);
    assert_int_equal(alone.chunks[0].carried.n, some->chunks[which].carried.n);
    assert_int_equal(alone.chunks[0].hash, some->chunks[which].hash);
    cuts_free(&alone);
    story_free(&s);
}

enum { MOST_CUTS = 40 };
static uint64_t random_seed;

static void check_trace(const struct cuts_trace *t, size_t cuttings, size_t cuts)
{
    struct story whole = {0};
    struct cuts one, some;
    int64_t at[MOST_CUTS];
    cuts_run(t, NULL, 0, &user, &whole, &one);
    assert_true(whole.records.n > 0);
    assert_int_equal(one.n_rows, whole.threads.n);
    for (size_t i = 0; i < cuttings; i++) {
        struct story s = {0};
        uint64_t seed = random_seed + i;
        cuts_random(t, seed, cuts, at);
        cuts_run(t, at, cuts, &user, &s, &some);
        assert_int_equal(some.n, cuts + 1);
        assert_int_equal(some.n_rows, one.n_rows);
        same_story(&whole, &s);
        same_carry(t, &some, at, seed % cuts);
        cuts_free(&some);
        story_free(&s);
    }
    cuts_free(&one);
    story_free(&whole);
}

static void one_recording(const struct cuts_trace *t, const char *name, void *count)
{
    print_message("%s: %zu items\n", name, t->times.n);
    ++*(size_t *)count;
    check_trace(t, t->times.n > 200000 ? 1 : 3, 9);
}

static void recordings(void **state)
{
    size_t n = 0;
    cuts_each(one_recording, &n);
    if (!n)
        skip_without("no recordings");
}

/* ---- made traces ---- */

static unsigned dice(uint64_t *state, unsigned sides)
{
    *state += UINT64_C(0x9e3779b97f4a7c15);
    return (unsigned)(map_mix(*state) % sides);
}

enum { CPUS = 3, TIDS = 14 };

static void make_task(struct maker *m, uint64_t *d, uint32_t cpu, int64_t ts)
{
    static const char *const files[] = {"/bin/sh", "/usr/bin/a-name-that-is-too-long", "/sbin/init"};
    static const char *const names[] = {"one", "two", "three"};
    int tid = 1 + (int)dice(d, TIDS), other = 1 + (int)dice(d, TIDS);
    switch (dice(d, 9)) {
    case 0:
    case 1: maker_fork(m, cpu, ts, tid, other, dice(d, 2) ? tid : other, dice(d, 2) ? 3 : 0); break;
    case 2: maker_exec(m, cpu, ts, files[dice(d, 3)], tid, dice(d, 2) ? tid : other); break;
    case 3: maker_task(m, cpu, ts, M_EXIT, tid); break;
    case 4: maker_task(m, cpu, ts, M_FREE, tid); break;
    case 5: maker_dump_thread(m, cpu, ts, tid, tid, other, (int)dice(d, 8), names[dice(d, 3)]); break;
    case 6: maker_dump_ns(m, cpu, ts, tid, 7, 1, 99 + dice(d, 2)); break;
    case 7: maker_dump_disk(m, cpu, ts, (8u << 20) + dice(d, 4), names[dice(d, 3)]); break;
    default: maker_name(m, 1 + (int)dice(d, 6), names[dice(d, 3)]);
    }
}

static void make_context(struct maker *m, uint64_t *d, uint32_t cpu, int64_t ts)
{
    static const enum maker_event numbers[] = {M_SOFTIRQ_ENTRY, M_SOFTIRQ_EXIT, M_HRTIMER_ENTRY, M_HRTIMER_EXIT,
        M_RESCHEDULE_ENTRY, M_RESCHEDULE_EXIT, M_LOCAL_TIMER_ENTRY, M_LOCAL_TIMER_EXIT};
    static const char *const names[] = {"eth0", "disk", "usb"};
    unsigned what = dice(d, 14);
    if (what < 2)
        maker_irq(m, cpu, ts, what, (int)dice(d, 4), names[dice(d, 3)]);
    else if (what < 12)
        maker_number(m, cpu, ts, numbers[what - 2 < 8 ? what - 2 : dice(d, 2)], dice(d, 3));
    else
        maker_plain(m, cpu, ts, what == 12 ? M_NET_ENTRY : M_NET_EXIT);
}

static void make_other(struct maker *m, uint64_t *d, uint32_t cpu, int64_t ts)
{
    static const uint8_t none[] = {0};
    switch (dice(d, 10)) {
    case 0:
    case 1: maker_number(m, cpu, ts, M_FUTEX_ENTRY, 4096); break;
    case 2: maker_number(m, cpu, ts, M_FUTEX_EXIT, 0); break;
    case 3:
    case 4: maker_number(m, cpu, ts, M_UNKNOWN_ENTRY, dice(d, 400)); break;
    case 5: maker_number(m, cpu, ts, M_UNKNOWN_EXIT, 0); break;
    case 6: maker_packet(m, cpu, ts, dice(d, 2), 60, none, 1); break;
    case 7: maker_block_complete(m, cpu, ts, (8u << 20) + dice(d, 4)); break;
    case 8: maker_lose(m, cpu, ts); break;
    default: maker_cut(m, cpu, ts);
    }
}

/* Makes namespaces of all kinds, recorded in all ways, with few numbers that are reused. */
static void make_space(struct maker *m, uint64_t *d, uint32_t cpu, int64_t ts)
{
    static const uint32_t flags[] = {0, 0x20000000, 0x40000000, 0x64000000, 0x02000000, 0x66000000},
                          own[] = {4026531836, 4026531838, 4026531835};
    static const char *const names[] = {"red", "blue"};
    int tid = 1 + (int)dice(d, TIDS), other = 1 + (int)dice(d, TIDS);
    uint32_t inum = dice(d, 4) ? 100 + dice(d, 4) : 4026531836, flag = flags[dice(d, 6)];
    switch (dice(d, 15)) {
    case 0:
    case 1:
    case 2: maker_fork_in(m, cpu, ts, tid, other, other, 1 + (int)dice(d, 3), inum); break;
    case 3: maker_number(m, cpu, ts, M_CLONE_ENTRY, flag); break;
    case 4: maker_number(m, cpu, ts, M_CLONE_EXIT, 7); break;
    case 5: maker_number(m, cpu, ts, M_UNSHARE_ENTRY, flag); break;
    case 6: maker_number(m, cpu, ts, M_UNSHARE_EXIT, dice(d, 3) ? 0 : -1); break;
    case 7: maker_number(m, cpu, ts, M_SETNS_ENTRY, flag); break;
    case 8: maker_number(m, cpu, ts, M_SETNS_EXIT, 0); break;
    case 9: maker_hostname(m, cpu, ts, names[dice(d, 2)]); break;
    case 10: maker_number(m, cpu, ts, M_HOSTNAME_EXIT, 0); break;
    case 11: maker_dump_space(m, cpu, ts, M_DUMP_NET, tid, 200 + dice(d, 4)); break;
    case 12: maker_dump_space(m, cpu, ts, M_DUMP_UTS, tid, dice(d, 2) ? own[1] : 300 + dice(d, 3)); break;
    case 13: maker_dump_space(m, cpu, ts, M_DUMP_CGROUP, tid, dice(d, 2) ? own[2] : 400 + dice(d, 3)); break;
    default:
        maker_spaces(m, cpu, ts, dice(d, 2) ? own[0] : 100 + dice(d, 3), 200 + dice(d, 4), 300 + dice(d, 3),
            dice(d, 2) ? own[2] : 400 + dice(d, 3));
    }
}

/* Threads that contradict themselves in all ways, on CPUs that lose events. without: as maker_new. */
static struct maker *make_random(uint64_t seed, size_t n, uint64_t without)
{
    uint64_t d = seed;
    struct maker *m = maker_new(CPUS, without);
    int runs[CPUS] = {0};
    int64_t ts = 1000;
    for (size_t i = 0; i < n; i++) {
        uint32_t cpu = dice(&d, CPUS);
        ts += dice(&d, 3) ? dice(&d, 40) : 0;
        unsigned what = dice(&d, 24);
        if (what >= 20) {
            make_space(m, &d, cpu, ts);
        } else if (what < 6) {
            static const int64_t states[] = {0, 1, 2, 64, 32};
            int next = dice(&d, 4) ? 1 + (int)dice(&d, TIDS) : 0, prev = dice(&d, 12) ? runs[cpu] : 1;
            maker_switch(m, cpu, ts, prev, states[dice(&d, 5)], next);
            runs[cpu] = next;
        } else if (what < 9) {
            maker_wake(m, cpu, ts,
                what == 6       ? M_WAKEUP_NEW
                    : what == 7 ? M_WAKING
                                : M_WAKEUP,
                1 + (int)dice(&d, TIDS), (int)dice(&d, CPUS));
        } else if (what < 12) {
            make_task(m, &d, cpu, ts);
        } else if (what < 17) {
            make_context(m, &d, cpu, ts);
        } else {
            make_other(m, &d, cpu, ts);
        }
    }
    return m;
}

static void check_made(struct maker *m, size_t cuttings, size_t cuts)
{
    struct cuts_trace t;
    cuts_open_made(&t, m);
    maker_free(m);
    check_trace(&t, cuttings, cuts);
    cuts_close(&t);
}

static void made_at_random(void **state)
{
    for (uint64_t i = 0; i < 60; i++)
        check_made(make_random(random_seed + i, 600, i % 4 ? 0 : UINT64_C(1) << M_FREE), 3, 3 + i % 30);
}

/* Cuts a short trace at every place. */
static void cut_anywhere(void **state)
{
    struct cuts_trace t;
    struct story whole = {0};
    struct cuts one, some;
    struct maker *m = make_random(random_seed, 250, 0);
    cuts_open_made(&t, m);
    maker_free(m);
    cuts_run(&t, NULL, 0, &user, &whole, &one);
    for (size_t i = 0; i < t.times.n; i++)
        for (int64_t by = -1; by <= 1; by++) {
            struct story s = {0};
            int64_t at[2] = {t.times.v[i] + by, t.times.v[i] + by};
            cuts_run(&t, at, 2, &user, &s, &some);
            same_story(&whole, &s);
            assert_int_equal(some.chunks[0].hash, some.chunks[1].hash);
            cuts_free(&some);
            story_free(&s);
        }
    cuts_free(&one);
    story_free(&whole);
    cuts_close(&t);
}

/* Forks and ends without end: what is carried is what is open. */
static void carry_is_bounded(void **state)
{
    struct maker *m = maker_new(1, 0);
    struct cuts_trace t;
    struct cuts some;
    struct story s = {0};
    enum { LIVES = 20000 };
    for (int i = 0; i < LIVES; i++) {
        int tid = 100 + i % 30000;
        maker_fork_in(m, 0, 1000 + 100 * (int64_t)i, 1, tid, tid, 1, 500 + (uint32_t)i % 3);
        maker_switch(m, 0, 1010 + 100 * (int64_t)i, 1, 0, tid);
        maker_number(m, 0, 1015 + 100 * (int64_t)i, M_SOFTIRQ_ENTRY, 1);
        maker_number(m, 0, 1016 + 100 * (int64_t)i, M_SOFTIRQ_EXIT, 1);
        maker_task(m, 0, 1020 + 100 * (int64_t)i, M_EXIT, tid);
        maker_switch(m, 0, 1030 + 100 * (int64_t)i, tid, 32, 1);
        maker_task(m, 0, 1040 + 100 * (int64_t)i, M_FREE, tid);
    }
    cuts_open_made(&t, m);
    maker_free(m);
    int64_t at[2] = {t.times.v[700], t.times.v[t.times.n - 1]};
    cuts_run(&t, at, 2, &user, &s, &some);
    assert_in_range(some.chunks[1].of_tracker, 1, 1000);
    assert_int_equal(some.chunks[0].n_carried, some.chunks[1].n_carried);
    cuts_free(&some);
    story_free(&s);
    cuts_close(&t);
}

/* Checks networks without threads, all with other numbers. */
static void carried_networks_are_bounded(void **state)
{
    struct maker *m = maker_new(1, 0);
    struct cuts_trace t;
    struct cuts some;
    struct story s = {0};
    enum { NETWORKS = 20000 };
    maker_switch(m, 0, 1000, 0, 0, 1);
    for (int i = 0; i < NETWORKS; i++)
        maker_dump_space(m, 0, 2000 + i, M_DUMP_NET, 1, 1000 + (uint32_t)i);
    cuts_open_made(&t, m);
    maker_free(m);
    int64_t at[1] = {t.times.v[t.times.n - 1]};
    cuts_run(&t, at, 1, &user, &s, &some);
    assert_in_range(some.chunks[0].of_tracker, 1000, 20 * NETWORKS);
    cuts_free(&some);
    story_free(&s);
    cuts_close(&t);
}

/* ---- damage ---- */

static void on_drop(void *arg, const struct cuts_chunk *c)
{
    ((struct story *)arg)->records.n = 0;
}

static void damaged(void **state)
{
    struct cuts_user with_drop = user;
    with_drop.drop = on_drop;
    for (uint64_t i = 0; i < 6; i++) {
        struct cuts_trace t;
        struct story s = {0};
        struct maker *m = make_random(random_seed + i, 400, 0);
        cuts_open_made(&t, m);
        maker_free(m);
        cuts_damage(&t, t.times.v[t.times.n / 2], random_seed + i, 1500, &with_drop, &s);
        story_free(&s);
        cuts_close(&t);
    }
}

/* ---- joining ---- */

int main(void)
{
    random_seed = test_seed(1000);
    const struct CMUnitTest tests[] = {cmocka_unit_test(made_at_random), cmocka_unit_test(cut_anywhere),
        cmocka_unit_test(carry_is_bounded), cmocka_unit_test(carried_networks_are_bounded), cmocka_unit_test(damaged),
        cmocka_unit_test(recordings)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
