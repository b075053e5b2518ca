/* SPDX-License-Identifier: MIT */
/* States at given times: interval by interval, and many samples at once. Each interval contains the requested time, so
 * a loop that continues at its end makes progress. */
#include "state/sample.h"

#include "state/row.h"

/* ---- intervals ---- */

static void set_code(const struct state_chunk *s, uint64_t code, struct state_interval *out)
{
    const struct state_code *c = &s->codes[code < s->n_codes ? code : STATE_UNKNOWN];
    out->value = c->value;
    out->cpu = c->cpu;
    out->name = c->name;
    out->thread = -1;
    out->amount = 0;
    out->cut = false;
}

static inline bool is_thread(const struct state_chunk *s, int64_t thread)
{
    return (uint64_t)thread < s->first[STATE_THREAD + 1];
}

/* Kept out of set_number, which is then small enough to inline. */
static __attribute__((noinline)) void set_futex_call(
    const struct state_chunk *s, const struct state_disk_row *r, int64_t number, struct state_interval *out)
{
    int operation = state_futex_operation(number);
    bool known = operation >= 0 && operation < STATE_FUTEX_OPERATIONS;
    set_code(s, known ? state_futex_operations[operation].value : number ? STATE_UNKNOWN : STATE_NONE, out);
    out->thread = r->thread;
    if (known) {
        out->name = state_futex_operations[operation].name;
        out->amount = number >> 5;
        out->cut = number & 1;
    }
}

/* Tracks of futexes, kept out for the same reason: the number is that of the FUTEX_USER row, which has the rest. */
static __attribute__((noinline)) void set_futex_track(
    const struct state_chunk *s, const struct state_disk_row *r, int64_t number, struct state_interval *out)
{
    uint64_t user = (uint64_t)number - 1;
    bool known = user < state_row_count(s, STATE_FUTEX_USER);
    set_code(s,
        known        ? r->kind == STATE_FUTEX_WAITS ? STATE_FUTEX_WAIT : STATE_FUTEX_WAKE
            : number ? STATE_UNKNOWN
                     : STATE_NONE,
        out);
    if (known) {
        const struct state_disk_row *of = &s->rows[s->first[STATE_FUTEX_USER] + user];
        out->thread = of->thread;
        out->name = state_name(s, of->name);
        out->amount = (int64_t)user;
    }
}

/* Sets value and names for a number in a row of that kind; a CPU's thread is composed later. */
static inline void set_number(
    const struct state_chunk *s, const struct state_disk_row *r, int64_t number, struct state_interval *out)
{
    if (r->kind == STATE_CPU_THREAD || (r->kind == STATE_CPU && number & 1)) {
        int64_t found = r->kind == STATE_CPU ? number >> 1 : (int64_t)((uint64_t)number - 1);
        int32_t thread = is_thread(s, found) ? (int32_t)found : -1;
        out->value = thread < 0 ? STATE_UNKNOWN : s->rows[thread].idle ? STATE_IDLE : STATE_ACTIVE;
        out->thread = thread;
        out->cpu = -1;
        out->name = NULL;
        out->amount = 0;
        out->cut = false;
    } else if (r->kind == STATE_FUTEX_USER) {
        set_futex_call(s, r, number, out);
    } else if (r->kind == STATE_FUTEX_WAITS || r->kind == STATE_FUTEX_WAKES) {
        set_futex_track(s, r, number, out);
    } else if (r->kind == STATE_IRQ_HANDLERS) {
        set_code(s, (uint64_t)number >> 1, out);
        out->cut = number & 1;
    } else if (r->kind >= STATE_COUNTER_ROWS) {
        set_code(s, STATE_ACTIVE, out);
        out->amount = number;
    } else {
        set_code(s, (uint64_t)(r->kind == STATE_CPU ? number >> 1 : number), out);
    }
}

/* Sets the entry of cell i at t. */
static inline void set_entry(const struct state_chunk *s, const struct state_disk_row *r,
    const struct state_disk_cell *c, uint32_t i, int64_t t, struct state_interval *out)
{
    struct cell_entry e = cell_at(c, t);
    out->begin = e.begin;
    out->end = i + 1 == r->n_cells && e.i + 1 == e.n ? r->end : e.end;
    set_number(s, r, e.number, out);
    if (__builtin_expect(out->begin > t || out->end <= t || out->begin < r->begin || out->end > r->end, 0)) {
        set_code(s, STATE_UNKNOWN, out);
        out->begin = t;
        out->end = r->end;
    }
}

void state_sample_entry(
    const struct state_chunk *s, const struct state_disk_row *r, int64_t t, struct state_interval *out)
{
    struct row_bracket b = row_bracket(s, r, t);
    const struct state_disk_cell *c = row_settle(s, r, row_cell(s, r, b.at), &b, t);
    struct cell_entry e = cell_at(c, t);
    out->begin = e.begin;
    out->end = b.at + 1 == r->n_cells && e.i + 1 == e.n ? INT64_MAX : e.end;
    set_number(s, r, e.number, out);
}

void state_sample_compose(const struct state_interval *doing, struct state_interval *out)
{
    out->begin = doing->begin > out->begin ? doing->begin : out->begin;
    out->end = doing->end < out->end ? doing->end : out->end;
    out->value = doing->value == STATE_SYSCALL ? STATE_SYSCALL : STATE_USERMODE;
    out->name = doing->value == STATE_SYSCALL ? doing->name : NULL;
}

/* ---- samples ---- */

enum { AHEAD = 64 }; /* limit of samples processed at once */

/* Sample being processed: of a row that has an entry at the time, or of none. */
struct probe {
    const struct state_disk_row *row;
    struct row_bracket bracket;
    const struct state_disk_cell *cell;
};

static inline void lead(const struct state_chunk *s, const struct state_disk_row *r, int64_t t, struct probe *p)
{
    p->bracket = row_bracket(s, r, t);
    p->cell = row_cell(s, r, p->bracket.at);
    __builtin_prefetch(p->cell);
}

static inline void settle(const struct state_chunk *s, const struct state_disk_row *r, int64_t t, struct probe *p)
{
    const struct state_disk_cell *c = p->cell;
    p->cell = row_settle(s, r, c, &p->bracket, t);
    if (p->cell != c)
        __builtin_prefetch(p->cell);
}

/* Finds the cell of each time, step by step for all of them, so that the memory for the next step is already in the
 * cache. */
static void prepare(
    const struct state_chunk *s, const struct state_disk_row *row, const int64_t *times, size_t n, struct probe *probes)
{
    const struct state_disk_row own = *row, *r = &own; /* local copy, which the compiler sees does not change */
    for (size_t j = 0; j < n && r->n_grid; j++)
        __builtin_prefetch(row_bucket(s, r, times[j]));
    for (size_t j = 0; j < n; j++)
        lead(s, r, times[j], &probes[j]);
    for (size_t j = 0; j < n; j++)
        settle(s, r, times[j], &probes[j]);
}

/* Prepares the threads that a CPU shows, after its own cells were found. */
static void prepare_threads(const struct state_chunk *s, const struct state_disk_row *cpu, const int64_t *times,
    size_t n, const struct probe *of_cpu, struct probe *probes)
{
    for (size_t j = 0; j < n; j++) {
        struct state_interval shown;
        set_number(s, cpu, cell_plain_number(of_cpu[j].cell, cell_plain_find(of_cpu[j].cell, times[j])), &shown);
        probes[j].row = sample_shows_thread(&shown) ? &s->rows[shown.thread] : NULL;
    }
    for (size_t j = 0; j < n; j++) {
        const struct state_disk_row *r = probes[j].row;
        if (r && !row_has(r, times[j]))
            probes[j].row = NULL;
        else if (r && r->n_grid)
            __builtin_prefetch(row_bucket(s, r, times[j]));
    }
    for (size_t j = 0; j < n; j++)
        if (probes[j].row)
            lead(s, probes[j].row, times[j], &probes[j]);
    for (size_t j = 0; j < n; j++)
        if (probes[j].row)
            settle(s, probes[j].row, times[j], &probes[j]);
}

static void compose_prepared(const struct state_chunk *s, const struct probe *p, const struct sample_others *others,
    int64_t t, struct state_interval *out)
{
    struct state_interval doing;
    if (!sample_shows_thread(out))
        return;
    if (p->row == &s->rows[out->thread])
        set_entry(s, p->row, p->cell, p->bracket.at, t, &doing);
    else
        others->thread_at(others, out->thread, t, &doing);
    state_sample_compose(&doing, out);
}

/* Returns whether the times are further apart than the row's entries, on average. */
static bool spread(const struct state_disk_row *r, const int64_t *times, size_t n)
{
    return n > 1 &&
        ((uint64_t)times[n - 1] - (uint64_t)times[0]) / (n - 1) > ((uint64_t)r->end - (uint64_t)r->first) / r->n;
}

/* Looks far ahead if most times need an entry of their own; not at all if entries are longer than the distance of the
 * times. */
size_t state_sample_entries(const struct state_chunk *s, const struct state_disk_row *r,
    const struct sample_others *others, const int64_t *times, size_t n, struct state_interval *out, size_t found)
{
    struct probe probes[AHEAD], threads[AHEAD];
    size_t ahead = spread(r, times, n) ? AHEAD : 1;
    for (size_t i = 0, m; i < n; i += m) {
        if (found && times[i] < out[found - 1].end) {
            m = row_gallop(times + i, n - i, out[found - 1].end);
            continue;
        }
        size_t needed = 0;
        m = n - i < ahead ? n - i : ahead;
        prepare(s, r, times + i, m, probes);
        if (r->kind == STATE_CPU)
            prepare_threads(s, r, times + i, m, probes, threads);
        for (size_t j = 0; j < m; j++) {
            int64_t t = times[i + j];
            if (found && t < out[found - 1].end)
                continue;
            set_entry(s, r, probes[j].cell, probes[j].bracket.at, t, &out[found]);
            if (r->kind == STATE_CPU)
                compose_prepared(s, &threads[j], others, t, &out[found]);
            found += row_is_next(out, found);
            needed++;
        }
        if (3 * needed > m)
            ahead = 2 * ahead < AHEAD ? 2 * ahead : AHEAD;
        else if (ahead > 1)
            ahead /= 2;
    }
    return found;
}
