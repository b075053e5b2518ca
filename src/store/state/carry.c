/* SPDX-License-Identifier: MIT */
/* State builder at a cut: carries all open state. The last entries of rows are carried, since they may change; the next
 * chunk begins its rows with them, so they count there and not here. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "state/carry_parts.h"
#include "state/files.h"

enum { LEAST_CPU = 64, LEAST_REQUEST = 12 };

/* ---- numbers of entries ---- */

static void code_entry(struct state_carry *v, int64_t *number)
{
    uint32_t code = (uint32_t)*number;
    state_carry_code(v, &code);
    *number = code;
}

/* CPUs: 2 * code, or 2 * thread + 1. */
static void cpu_entry(struct state_carry *v, int64_t *number)
{
    bool of_thread = *number & 1;
    uint32_t code = of_thread ? STATE_UNKNOWN : (uint32_t)(*number >> 1);
    int32_t row = of_thread ? (int32_t)(*number >> 1) : -1;
    carry_row(v->c, &row);
    state_carry_code(v, &code);
    *number = row >= 0 ? 2 * (int64_t)row + 1 : 2 * (int64_t)code;
}

static void thread_entry(struct state_carry *v, int64_t *number)
{
    int32_t row = (int32_t)(*number - 1);
    carry_row(v->c, &row);
    *number = (int64_t)row + 1;
}

static void handler_entry(struct state_carry *v, int64_t *number)
{
    uint32_t code = (uint32_t)(*number >> 1);
    bool cut = *number & 1;
    state_carry_code(v, &code);
    carry_bool(v->c, &cut);
    *number = 2 * (int64_t)code + cut;
}

/* The index of a row of futexes, + 1; 0: none. */
static void carry_user(struct state_carry *v, uint32_t *user)
{
    uint32_t number = *user;
    if (v->c->way == CARRY_SAVE && number)
        number = v->user_of.v[number - 1].number;
    state_carry_index(v->c, &number, v->b->futex_users.n + 1);
    if (v->c->way == CARRY_LOAD)
        *user = number;
}

static void track_entry(struct state_carry *v, int64_t *number)
{
    uint32_t user = (uint32_t)*number;
    carry_user(v, &user);
    *number = user;
}

/* ---- rows of futexes ---- */

/* Records of a CPU whose current thread is unknown are handled later than others, and so are delayed records: rows that
 * may get some of them stay. */
static int64_t first_to_come(const struct state_builder *b)
{
    int64_t first = builder_first_held(&b->held);
    for (size_t i = 0; i < b->cpus.n; i++)
        if (b->cpus.v[i].pending.n && b->cpus.v[i].pending.v[0].ts < first)
            first = b->cpus.v[i].pending.v[0].ts;
    return first;
}

static struct state_carried_user *need_user(struct state_carry *v, uint32_t user)
{
    struct state_carried_user *u = &v->user_of.v[user - 1];
    if (!u->number)
        vec_push(&v->users, user - 1);
    u->number = 1;
    return u;
}

static void need_users_of(struct state_carry *v, const struct builder_tracks *l)
{
    for (size_t i = 0; i < l->v.n; i++) {
        const struct series *s = &l->v.v[i];
        for (size_t k = s->n - state_carry_kept(s, INT64_MAX); k < s->n; k++)
            if (s->v[k].number)
                need_user(v, (uint32_t)s->v[k].number)->waits |= l == &v->b->futex_waits;
    }
}

static void need_users_of_calls(struct state_carry *v)
{
    const struct state_builder *b = v->b;
    for (size_t i = 0; i < b->threads.n; i++) {
        const struct state_builder_futex_call *f = &b->threads.v[i].futex;
        if (!f->user)
            continue;
        struct state_carried_user *u = need_user(v, f->user);
        u->from = f->since < u->from ? f->since : u->from;
        u->since = f->doubtful ? INT64_MAX : f->since;
        u->waits |= state_futex_operations[f->operation].value == STATE_FUTEX_WAIT;
    }
}

static bool is_wait(int64_t number)
{
    int operation = state_futex_operation(number);
    return operation >= 0 && operation < STATE_FUTEX_OPERATIONS &&
        state_futex_operations[operation].value == STATE_FUTEX_WAIT;
}

static void need_users_from(struct state_carry *v, int64_t from)
{
    for (size_t i = 0; i < v->b->futex_users.n; i++) {
        const struct series *s = &v->b->futex_users.v[i].series;
        struct state_carried_user *u = &v->user_of.v[i];
        if (s->n && series_last(s) >= from)
            need_user(v, (uint32_t)i + 1);
        u->from = from < u->from ? from : u->from;
        u->since = u->since < from ? u->since : INT64_MAX; /* the call may end at once */
        for (size_t k = s->n - state_carry_kept(s, INT64_MAX); k < s->n; k++)
            u->waits |= s->v[k].time >= from && is_wait(s->v[k].number);
    }
}

static int by_thread_and_futex(const void *x, const void *y, void *visit)
{
    const struct state_carry *v = visit;
    const struct state_builder *b = v->b;
    const struct builder_futex_user *p = &b->futex_users.v[*(const uint32_t *)x],
                                    *q = &b->futex_users.v[*(const uint32_t *)y];
    const struct state_builder_code *f = &b->codes.v[p->code], *g = &b->codes.v[q->code];
    int order = order_of(state_carry_row_number(v->c, p->thread), state_carry_row_number(v->c, q->thread))
        ?: order_of(f->kind, g->kind);
    if (order || f->kind != CODE_LOCK)
        return order;
    const struct builder_lock *l = &b->locks.v[f->ref], *m = &b->locks.v[g->ref];
    return order_of(l->tgid, m->tgid) ?: order_of(l->address, m->address);
}

/* Chooses the rows to carry: rows of calls in progress, rows that may get calls yet, and rows that entries of tracks
 * refer to. */
static void choose_users(struct state_carry *v)
{
    struct state_builder *b = v->b;
    for (size_t i = 0; i < b->futex_users.n; i++)
        vec_push(&v->user_of, ((struct state_carried_user){.from = INT64_MAX, .since = INT64_MAX}));
    need_users_of_calls(v);
    need_users_of(v, &b->futex_waits);
    need_users_of(v, &b->futex_wakes);
    need_users_from(v, first_to_come(b));
    if (v->c->way == CARRY_SAVE && v->users.n)
        qsort_r(v->users.v, v->users.n, sizeof *v->users.v, by_thread_and_futex, v);
    for (size_t i = 0; i < v->users.n; i++)
        v->user_of.v[v->users.v[i]].number = (uint32_t)i + 1;
}

static void carry_users(struct state_carry *v)
{
    struct state_builder *b = v->b;
    bool load = v->c->way == CARRY_LOAD;
    if (!load)
        choose_users(v);
    size_t n = carry_count(v->c, v->users.n, 2 * sizeof(int32_t));
    for (size_t i = 0; i < n && !v->c->damaged; i++) {
        struct builder_futex_user fresh = {.thread = -1}, *u = load ? &fresh : &b->futex_users.v[v->users.v[i]];
        carry_row(v->c, &u->thread);
        state_carry_code(v, &u->code);
        if (load && (b->codes.v[u->code].kind != CODE_LOCK && b->codes.v[u->code].kind != CODE_OTHER_LOCKS))
            state_carry_refuse(v->c);
        if (load && (u->thread < 0 || state_builder_futex_user_of(b, u->thread, u->code) != i + 1))
            state_carry_refuse(v->c);
        if (v->c->damaged)
            return;
        struct state_carried_user x = load ? (struct state_carried_user){0} : v->user_of.v[v->users.v[i]];
        carry_bool(v->c, &x.waits);
        if (load) {
            u = &b->futex_users.v[i];
            u->waits = x.waits;
        }
        state_carry_series_from(v, &u->series, x.from, x.since);
    }
}

/* ---- tracks ---- */

static void carry_tracks(struct state_carry *v, struct builder_tracks *l, state_carry_entry *entry)
{
    carry_vec(v->c, &l->v, sizeof(uint64_t));
    size_t words = (l->v.n + 63) / 64;
    while (l->free.n < words)
        vec_push(&l->free, 0);
    for (size_t i = 0; i < words; i++)
        carry_number(v->c, &l->free.v[i]);
    if (v->c->way == CARRY_LOAD && l->v.n % 64 && words) /* bits beyond the last track */
        l->free.v[words - 1] &= (UINT64_C(1) << l->v.n % 64) - 1;
    for (size_t i = 0; i < l->v.n; i++) {
        if (v->c->way == CARRY_LOAD)
            l->v.v[i].pairs = true;
        state_carry_series(v, &l->v.v[i], INT64_MAX, entry);
    }
}

/* ---- threads ---- */

static void carry_call_of_futex(struct state_carry *v, struct state_builder_futex_call *f)
{
    struct state_builder *b = v->b;
    carry_user(v, &f->user);
    if (!f->user)
        return;
    carry_number(v->c, &f->since);
    carry_below(v->c, &f->operation, STATE_FUTEX_OPERATIONS);
    carry_bool(v->c, &f->doubtful);
    uint8_t value = state_futex_operations[f->operation].value;
    const struct builder_tracks *tracks = value == STATE_FUTEX_WAIT ? &b->futex_waits : &b->futex_wakes;
    uint32_t track = f->doubtful ? 0 : f->track;
    state_carry_index(v->c, &track, f->doubtful ? 1 : tracks->v.n);
    if (v->c->way == CARRY_LOAD) {
        f->track = track;
        if (value == STATE_NONE || v->c->damaged)
            *f = (struct state_builder_futex_call){0};
    }
}

static void carry_cpu_number(struct state_carry *v, int32_t *cpu)
{
    carry_number(v->c, cpu);
    if (v->c->way == CARRY_LOAD && (*cpu < -1 || *cpu >= (int64_t)v->b->cpus.n)) {
        state_carry_refuse(v->c);
        *cpu = -1;
    }
}

static void carry_thread(struct state_carry *v, struct builder_thread *t)
{
    struct carry *c = v->c;
    carry_number(c, &t->mode_since);
    carry_bool(c, &t->mode_known);
    state_carry_series(v, &t->series, t->mode_known ? INT64_MAX : t->mode_since, code_entry);
    state_carry_code(v, &t->call);
    carry_below(c, &t->state, THREAD_GONE + 1);
    carry_cpu_number(v, &t->cpu);
    carry_cpu_number(v, &t->moved_from);
    carry_cpu_number(v, &t->left);
    carry_number(c, &t->moved_ts);
    carry_number(c, &t->losses);
    carry_call_of_futex(v, &t->futex);
    state_carry_latency(v, STATE_LATENCY_SYSCALL, &t->call_latency);
    state_carry_latency(v, STATE_LATENCY_LOCK, &t->lock_latency);
    state_carry_latency(v, STATE_LATENCY_SCHED, &t->wake_latency);
    if (c->way == CARRY_LOAD && t->state == THREAD_RUNNING && t->cpu < 0)
        state_carry_refuse(c);
}

/* Visits all rows of the next chunk. Before those are known: rows with state, though the threads may be gone. */
static void carry_threads(struct state_carry *v)
{
    struct state_builder *b = v->b;
    if (v->c->way == CARRY_MARK) {
        for (size_t i = 0; i < b->threads.n; i++) {
            int32_t row = (int32_t)i;
            if (b->threads.v[i].futex.user || state_builder_gap_is_awaited(b, i))
                carry_row(v->c, &row);
        }
        return;
    }
    if (v->c->n_rows)
        builder_thread(b, (int32_t)v->c->n_rows - 1);
    for (size_t i = 0; i < v->c->n_rows && !v->c->damaged; i++)
        carry_thread(v, builder_thread(b, v->c->way == CARRY_SAVE ? v->rows.v[i] : (int32_t)i));
}

/* ---- CPUs and interrupts ---- */

static int by_kind_and_number(const void *x, const void *y, void *irqs)
{
    const struct builder_irq *p = (const struct builder_irq *)irqs + *(const uint32_t *)x,
                             *q = (const struct builder_irq *)irqs + *(const uint32_t *)y;
    return order_of(p->kind, q->kind) ?: order_of(p->number, q->number);
}

/* Visits rows of interrupts, in order of kind and number. place: position there by index, to be freed. */
static uint32_t *carry_irqs(struct state_carry *v)
{
    struct state_builder *b = v->b;
    bool load = v->c->way == CARRY_LOAD;
    size_t n = carry_count(v->c, b->irqs.n, 2 * sizeof(int32_t));
    uint32_t *order = mem_alloc((n + 1) * sizeof *order), *place = mem_zalloc((n + 1) * sizeof *place);
    for (size_t i = 0; i < n; i++)
        order[i] = (uint32_t)i;
    if (!load && n)
        qsort_r(order, n, sizeof *order, by_kind_and_number, b->irqs.v);
    for (size_t i = 0; i < n && !v->c->damaged; i++) {
        struct builder_irq fresh = {.series.pairs = true}, *q = load ? &fresh : &b->irqs.v[order[i]];
        place[order[i]] = (uint32_t)i;
        carry_number(v->c, &q->kind);
        carry_number(v->c, &q->number);
        state_carry_code(v, &q->code);
        state_carry_series(v, &q->series, INT64_MAX, code_entry);
        if (!load)
            continue;
        q->cpu = (int32_t)((uint32_t)q->number >> 16);
        uint64_t key = (uint64_t)q->kind << 32 | (uint32_t)q->number;
        if (v->c->damaged || (q->kind != STATE_CPU_IRQ && q->kind != STATE_CPU_SOFTIRQ) ||
            map_find(&b->irq_by_number, key)) {
            state_carry_refuse(v->c);
            state_series_fini(&q->series);
            break;
        }
        vec_push(&b->irqs, *q);
        *map_put(&b->irq_by_number, key, NULL) = b->irqs.n;
    }
    free(order);
    return place;
}

static void carry_pending(struct state_carry *v, struct builder_pending *p)
{
    carry_number(v->c, &p->ts);
    carry_below(v->c, &p->kind, PENDING_PAGES + 1);
    if (p->kind != PENDING_PAGES)
        state_carry_code(v, &p->code);
    if (p->kind != PENDING_OVERLAY)
        carry_number(v->c, &p->ret);
    if (p->kind == PENDING_RETURN)
        carry_below(v->c, &p->io, KERNEL_IO_PAIR + 1);
    if (p->kind == PENDING_CALL)
        carry_number(v->c, &p->operation);
}

static void carry_handler(struct state_carry *v, struct builder_frame *f, const uint32_t *place)
{
    struct state_builder *b = v->b;
    carry_below(v->c, &f->kind, STATE_LATENCY_KINDS);
    if (v->c->way == CARRY_LOAD && f->kind != STATE_LATENCY_IRQ && f->kind != STATE_LATENCY_SOFTIRQ)
        state_carry_refuse(v->c);
    carry_number(v->c, &f->since);
    state_carry_frame(v, &f->serial);
    state_carry_code(v, &f->code);
    uint32_t irq = v->c->way == CARRY_LOAD ? 0 : place[f->irq];
    state_carry_index(v->c, &irq, b->irqs.n);
    bool tracked = f->kind == STATE_LATENCY_IRQ;
    state_carry_index(v->c, &f->track, tracked ? b->irq_handlers.v.n : 1);
    state_carry_latency(v, f->kind, &f->latency);
    if (v->c->way != CARRY_LOAD)
        return;
    f->irq = irq;
    if (!f->latency)
        state_carry_refuse(v->c);
}

static void carry_cpu(struct state_carry *v, struct state_builder_cpu *k, const uint32_t *place)
{
    struct carry *c = v->c;
    if (c->way == CARRY_LOAD) {
        k->thread.sum = SERIES_BUSY;
        k->state.lead = 2 * STATE_UNKNOWN;
    }
    state_carry_series(v, &k->state, INT64_MAX, cpu_entry);
    state_carry_series(v, &k->thread, INT64_MAX, thread_entry);
    carry_row(c, &k->row);
    carry_number(c, &k->last_ts);
    carry_bool(c, &k->deaf);
    carry_bool(c, &k->absent);
    int64_t none = 0;
    carry_number(c, k->deaf ? &k->deaf_begin : &none);
    carry_number(c, k->deaf ? &k->deaf_end : &none);
    state_carry_gaps(c, &k->gaps, BUILDER_MOST_CPU_GAPS);
    carry_below(c, &k->depth, BUILDER_FRAMES + 1);
    for (uint8_t i = 0; i < k->depth; i++) {
        carry_handler(v, &k->frames[i], place);
        if (c->damaged)
            k->depth = 0;
    }
    carry_vec(c, &k->pending, sizeof(int64_t) + 1);
    if (k->pending.n > BUILDER_PENDING) {
        state_carry_refuse(c);
        k->pending.n = 0;
    }
    for (size_t i = 0; i < k->pending.n; i++)
        carry_pending(v, &k->pending.v[i]);
}

static void text_key(struct state_carry *v, uint32_t *text)
{
    carry_string(v->c, &v->b->texts, text);
}

/* Visits the numbers of interrupts that have none on the host: their names in order of number. */
static void carry_made_up(struct state_carry *v)
{
    struct map *m = &v->b->ipi_numbers;
    size_t n = carry_count(v->c, m->n, sizeof(uint64_t));
    uint32_t *texts = mem_zalloc((n + 1) * sizeof *texts);
    for (size_t i = 0; i < m->cap && v->c->way != CARRY_LOAD; i++)
        if (m->used[i])
            texts[m->values[i] - STATE_IPI] = (uint32_t)m->keys[i];
    for (size_t i = 0; i < n && !v->c->damaged; i++) {
        text_key(v, &texts[i]);
        if (v->c->way == CARRY_LOAD)
            *map_put(m, texts[i], NULL) = STATE_IPI + i;
    }
    if (v->c->way == CARRY_LOAD && m->n != n)
        state_carry_refuse(v->c);
    free(texts);
}

/* ---- counters ---- */

static void carry_devices(struct state_carry *v, builder_devices *all, bool by_text)
{
    carry_vec(v->c, all, 2 * sizeof(int64_t));
    for (size_t i = 0; i < all->n; i++) {
        struct builder_device *d = &all->v[i];
        if (by_text)
            text_key(v, &d->id);
        else
            carry_number(v->c, &d->id);
        for (int k = 0; k < 2; k++) {
            carry_number(v->c, &d->total[k]);
            state_carry_series(v, &d->series[k], INT64_MAX, NULL);
        }
    }
}

static void carry_amount(struct state_carry *v, struct builder_amount *a)
{
    carry_number(v->c, &a->total);
    state_carry_series(v, &a->series, INT64_MAX, NULL);
}

/* Visits the amounts of carried threads (slot: row + base), by row; with a base, that of all threads comes last. */
static void carry_amounts_of_threads(struct state_carry *v, struct builder_amounts *all, uint32_t base)
{
    bool load = v->c->way == CARRY_LOAD;
    size_t n = v->c->way == CARRY_MARK ? 0 : v->c->n_rows + base;
    for (size_t i = 0; i < n && !v->c->damaged; i++) {
        uint32_t slot = (uint32_t)(i < base ? i : load ? i : (size_t)v->rows.v[i - base] + base);
        bool there = !load && slot < all->index.n && all->index.v[slot];
        carry_bool(v->c, &there);
        if (there)
            carry_amount(v, state_builder_amount_at(all, slot));
    }
}

/* kinds: number of slots per CPU, and which of them may have a value. */
static void carry_amounts_of_cpus(
    struct state_carry *v, struct builder_amounts *all, size_t cpus, uint32_t kinds, uint64_t which)
{
    bool load = v->c->way == CARRY_LOAD;
    uint32_t slot = 0;
    size_t n = carry_count(v->c, all->v.n, sizeof(uint32_t));
    for (size_t i = 0; i < n && !v->c->damaged; i++, slot++) {
        while (!load && !all->index.v[slot])
            slot++;
        uint32_t at = slot;
        carry_number(v->c, &at);
        if (load && (at < slot || at / kinds >= cpus || !(which >> at % kinds & 1))) {
            state_carry_refuse(v->c);
            return;
        }
        slot = at;
        carry_amount(v, state_builder_amount_at(all, slot));
    }
}

/* The number of a counter is its position among the declared counters, which differs if an archive arrived late:
 * nothing continues from such a chunk. Counters without values do not count. */
static void carry_cpu_counters(struct state_carry *v)
{
    struct state_builder *b = v->b;
    const char *const *names;
    size_t n = kernel_tracker_counters(b->tracker, &names);
    const struct builder_amounts *all = &b->amounts[BUILDER_CPU_COUNTERS];
    for (size_t i = 0; i < all->v.n; i++)
        v->counters |= UINT64_C(1) << all->v.v[i].slot % STATE_CPU_COUNTERS;
    for (size_t i = b->held.first; i < b->held.v.n; i++)
        if (b->held.v.v[i].record.kind == KERNEL_COUNTERS)
            v->counters |= b->held.v.v[i].record.u.counters.present;
    carry_number(v->c, &v->counters);
    for (uint64_t left = v->counters; left && !v->c->damaged; left &= left - 1) {
        size_t i = (size_t)__builtin_ctzll(left);
        uint32_t mine = i < n ? strings_intern(&b->texts, names[i], strlen(names[i])) : UINT32_MAX, text = mine;
        text_key(v, &text);
        if (text != mine)
            state_carry_refuse(v->c);
    }
    carry_amounts_of_cpus(
        v, &b->amounts[BUILDER_CPU_COUNTERS], b->cpus.n, STATE_CPU_COUNTERS, v->c->damaged ? 0 : v->counters);
}

static void carry_counters(struct state_carry *v)
{
    struct state_builder *b = v->b;
    carry_amounts_of_threads(v, &b->amounts[BUILDER_PAGES], 1);
    carry_cpu_counters(v);
    carry_amounts_of_cpus(v, &b->amounts[BUILDER_FREQUENCIES], UINT16_MAX, 1, 1);
    carry_amounts_of_threads(v, &b->amounts[BUILDER_IO_READ], 0);
    carry_amounts_of_threads(v, &b->amounts[BUILDER_IO_WRITTEN], 0);
    carry_amounts_of_threads(v, &b->amounts[BUILDER_KVM_EXITS], 0);
    carry_devices(v, &b->disks, false);
    carry_devices(v, &b->nets, true);
}

/* ---- requests ---- */

static void carry_request(struct state_carry *v, struct state_builder_request *p, int queue)
{
    if (v->c->way == CARRY_LOAD)
        p->series.pairs = true;
    state_carry_series(v, &p->series, INT64_MAX, NULL);
    carry_bool(v->c, &p->busy);
    if (!p->busy)
        return;
    carry_number(v->c, &p->sector);
    carry_number(v->c, &p->bytes);
    carry_number(v->c, &p->sectors);
    carry_below(v->c, &p->type, STATE_REQUESTS);
    state_carry_latency(v, STATE_LATENCY_DISK_WAIT + queue, &p->latency);
    if (v->c->way == CARRY_LOAD && !p->latency) {
        state_carry_refuse(v->c);
        p->busy = false;
    }
}

/* Visits all disks first, since codes refer to them. */
static void carry_requests(struct state_carry *v)
{
    struct state_builder *b = v->b;
    carry_vec(v->c, &b->requests, sizeof(uint32_t));
    if (b->requests.n > BUILDER_MOST_DISKS) {
        state_carry_refuse(v->c);
        b->requests.n = 0;
    }
    for (size_t i = 0; i < b->requests.n; i++)
        carry_number(v->c, &b->requests.v[i].dev);
    for (size_t i = 0; i < b->requests.n; i++)
        for (int k = 0; k < 2; k++) {
            struct builder_queue *q = &b->requests.v[i].queues[k];
            carry_vec(v->c, q, LEAST_REQUEST);
            if (q->n > BUILDER_MOST_SLOTS) {
                state_carry_refuse(v->c);
                q->n = 0;
            }
            for (size_t n = 0; n < q->n; n++)
                carry_request(v, &q->v[n], k);
        }
}

/* ---- whole builder ---- */

static void carry_locks(struct state_carry *v)
{
    struct state_builder *b = v->b;
    size_t n = carry_count(v->c, b->locks.n, sizeof(uint64_t));
    for (size_t i = 0; i < n && !v->c->damaged; i++) {
        struct builder_lock lock = v->c->way == CARRY_LOAD ? (struct builder_lock){0} : b->locks.v[i];
        carry_number(v->c, &lock.address);
        carry_number(v->c, &lock.tgid);
        if (v->c->way == CARRY_LOAD && !v->c->damaged)
            state_builder_lock_code_of(b, lock);
    }
}

static void carry_times(struct state_carry *v)
{
    struct state_builder *b = v->b;
    struct carry *c = v->c;
    carry_number(c, &b->now);
    carry_number(c, &b->suspect_until);
    carry_number(c, &b->n_losses);
    carry_number(c, &b->events);
    if (c->way == CARRY_LOAD)
        b->events_before = b->events;
    carry_number(c, &b->last_event);
    carry_number(c, &b->last_checkpoint);
    for (int i = 0; i < STATE_LATENCY_KINDS; i++)
        state_carry_latency_order(c, &b->latencies[i]);
    state_carry_gaps(c, &b->gaps, BUILDER_MOST_GAPS);
}

/* Inverts `rows`. All of them are among the builder's threads by then, which do not move while rows are marked. */
static void invert_rows(struct state_carry *v)
{
    for (size_t i = 0; i < v->c->n_rows; i++)
        vec_push(&v->rows, 0);
    for (size_t row = 0; row < v->c->numbers.n; row++)
        if (v->c->numbers.v[row] >= 0) {
            v->rows.v[v->c->numbers.v[row]] = (int32_t)row;
            builder_thread(v->b, (int32_t)row);
        }
}

/* Adds all threads first: notes on rows during saving refer to them until the cut. */
static void begin_save(struct state_carry *v)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(v->b->tracker, &threads);
    if (n)
        builder_thread(v->b, (int32_t)n - 1);
    v->b->saved.n = 0;
    invert_rows(v);
}

void state_builder_carry(struct state_builder *b, struct carry *c)
{
    struct state_carry v = {.c = c, .b = b};
    if (c->way == CARRY_SAVE)
        begin_save(&v);
    b->goes_on |= c->way == CARRY_LOAD;
    if (c->way == CARRY_LOAD && c->n_rows)
        builder_thread(b, (int32_t)c->n_rows - 1);
    carry_times(&v);
    carry_locks(&v);
    carry_requests(&v);
    carry_users(&v);
    carry_tracks(&v, &b->futex_waits, track_entry);
    carry_tracks(&v, &b->futex_wakes, track_entry);
    carry_tracks(&v, &b->irq_handlers, handler_entry);
    carry_made_up(&v);
    uint32_t *place = carry_irqs(&v);
    carry_vec(c, &b->cpus, LEAST_CPU);
    if (b->cpus.n > BUILDER_MOST_CPUS) {
        state_carry_refuse(c);
        b->cpus.n = 0;
    }
    for (size_t i = 0; i < b->cpus.n; i++)
        carry_cpu(&v, &b->cpus.v[i], place);
    free(place);
    carry_threads(&v);
    carry_counters(&v);
    state_carry_files(&v);
    state_carry_held(&v);
    vec_free(&v.rows);
    vec_free(&v.users);
    vec_free(&v.user_of);
    map_fini(&v.frames);
}
