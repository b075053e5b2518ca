/* What was in force at given times: a grid leads from a time to the few entries around it, so that the length of the trace does not count. */
#include "state/format.h"

/* ---- entries of a row ------------------------------------------------------------------------------------------------------------ */

static inline const struct state_disk_block *block_of(const struct state_store *s, const struct state_disk_row *r, uint64_t i)
{
    return &s->blocks[r->first_block + i / STATE_BLOCK];
}

static inline int64_t time_at(const struct state_store *s, const struct state_disk_row *r, uint64_t i)
{
    const struct state_disk_block *b = block_of(s, r, i);
    return (int64_t)((uint64_t)b->base + pack_get(s->bytes + b->position, i % STATE_BLOCK, b->time_width));
}

static inline const uint8_t *numbers_of(const struct state_store *s, const struct state_disk_block *b)
{
    return s->bytes + b->position + pack_bytes(b->n, b->time_width);
}

static inline int64_t number_at(const struct state_store *s, const struct state_disk_row *r, uint64_t i)
{
    const struct state_disk_block *b = block_of(s, r, i);
    return (int64_t)((uint64_t)b->least + pack_get(numbers_of(s, b), i % STATE_BLOCK, b->number_width));
}

static inline int64_t first_time(const struct state_store *s, const struct state_disk_row *r)
{
    return r->n ? s->blocks[r->first_block].base : INT64_MAX;
}

/* The entries among which the one in force at t is: [*lo, *hi]. t is not before the first. */
static inline void bracket(const struct state_store *s, const struct state_disk_row *r, int64_t t, uint64_t *lo, uint64_t *hi)
{
    *lo = 0;
    *hi = r->n - 1;
    if (!r->n_grid)
        return;
    const uint32_t *grid = s->grid + r->first_grid;
    uint64_t bucket = ((uint64_t)t - (uint64_t)s->blocks[r->first_block].base) >> r->shift;
    if (bucket + 1 < r->n_grid) {
        *lo = grid[bucket];
        *hi = grid[bucket + 1];
    } else {
        *lo = grid[r->n_grid - 1];
    }
}

/* The last entry of [lo, hi] whose time is <= t; lo's is. */
static inline uint64_t search(const struct state_store *s, const struct state_disk_row *r, int64_t t, uint64_t lo, uint64_t hi)
{
    while (lo < hi) {
        uint64_t mid = lo + (hi - lo + 1) / 2;
        if (time_at(s, r, mid) <= t)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

static uint64_t locate(const struct state_store *s, const struct state_disk_row *r, int64_t t)
{
    uint64_t lo, hi;
    bracket(s, r, t, &lo, &hi);
    return search(s, r, t, lo, hi);
}

/* ---- intervals ----------------------------------------------------------------------------------------------------------------- */

static void set_code(const struct state_store *s, uint64_t code, struct state_interval *out)
{
    const struct state_code *c = &s->codes[code];
    out->value = c->value;
    out->cpu = c->cpu;
    out->name = c->name;
    out->thread = -1;
}

/* Value and names of a number in a row of that kind; a CPU's thread is left to composing. */
static inline void set_number(const struct state_store *s, const struct state_disk_row *r, int64_t number, struct state_interval *out)
{
    if (r->kind == STATE_CPU_THREAD || (r->kind == STATE_CPU && number & 1)) {
        int32_t thread = r->kind == STATE_CPU ? (int32_t)(number >> 1) : (int32_t)number - 1;
        out->value = thread < 0 ? STATE_UNKNOWN : s->rows[thread].idle ? STATE_IDLE : STATE_ACTIVE;
        out->thread = thread;
        out->cpu = -1;
        out->name = NULL;
    } else {
        set_code(s, (uint64_t)(r->kind == STATE_CPU ? number >> 1 : number), out);
    }
}

static inline void set_entry(const struct state_store *s, const struct state_disk_row *r, uint64_t i, struct state_interval *out)
{
    out->begin = time_at(s, r, i);
    out->end = i + 1 < r->n ? time_at(s, r, i + 1) : r->end;
    set_number(s, r, number_at(s, r, i), out);
}

/* Before the first entry and outside the row's life. */
static void set_outside(const struct state_store *s, const struct state_disk_row *r, int64_t t, struct state_interval *out)
{
    int64_t first = first_time(s, r);
    set_code(s, STATE_NONE, out);
    if (t < r->begin) {
        out->begin = s->totals->begin;
        out->end = r->begin;
    } else if (t < first && (t < r->end || r->end == s->totals->end)) {
        out->begin = r->begin;
        out->end = first < r->end ? first : r->end;
        out->value = r->lead;
    } else {
        out->begin = r->end;
        out->end = s->totals->end;
    }
}

/* Is it an entry that is in force at t, not something outside? */
static inline bool inside(const struct state_store *s, const struct state_disk_row *r, int64_t t)
{
    return t >= first_time(s, r) && (t < r->end || (t == r->end && t == s->totals->end));
}

static void interval_at(const struct state_store *s, const struct state_disk_row *r, int64_t t, struct state_interval *out)
{
    if (inside(s, r, t))
        set_entry(s, r, locate(s, r, t), out);
    else
        set_outside(s, r, t, out);
}

/* A CPU that a thread has does what the thread does: the part of the thread's state that lies within the CPU's. */
static void compose(const struct state_store *s, int64_t t, struct state_interval *out)
{
    struct state_interval doing;
    if (out->value != STATE_ACTIVE)
        return;
    interval_at(s, &s->rows[out->thread], t, &doing);
    out->begin = doing.begin > out->begin ? doing.begin : out->begin;
    out->end = doing.end < out->end ? doing.end : out->end;
    out->value = doing.value == STATE_SYSCALL ? STATE_SYSCALL : STATE_USERMODE;
    out->name = doing.value == STATE_SYSCALL ? doing.name : NULL;
}

static void row_at(const struct state_store *s, const struct state_disk_row *r, int64_t t, struct state_interval *out)
{
    interval_at(s, r, t, out);
    if (r->kind == STATE_CPU)
        compose(s, t, out);
}

bool state_at(const struct state_store *s, int kind, size_t row, int64_t t, struct state_interval *out)
{
    if (t < s->totals->begin || t > s->totals->end)
        return false;
    row_at(s, &s->rows[s->first[kind] + row], t, out);
    return true;
}

int32_t state_thread_cpu(const struct state_store *s, size_t row, int64_t t)
{
    struct state_interval at;
    for (size_t i = s->first[STATE_CPU_THREAD]; i < s->first[STATE_CPU_THREAD + 1]; i++) {
        interval_at(s, &s->rows[i], t, &at);
        if (at.thread >= 0 && (size_t)at.thread == row)
            return s->rows[i].number;
    }
    return -1;
}

size_t state_range(const struct state_store *s, int kind, size_t row, int64_t begin, int64_t end, struct state_interval *out, size_t max)
{
    const struct state_disk_row *r = &s->rows[s->first[kind] + row];
    size_t n = 0;
    int64_t t = begin > s->totals->begin ? begin : s->totals->begin;
    end = end < s->totals->end ? end : s->totals->end;
    while (n < max && t <= end) {
        row_at(s, r, t, &out[n]);
        t = out[n++].end;
        if (t <= out[n - 1].begin || t == s->totals->end) /* the last instant is the last interval's */
            break;
    }
    return n;
}

/* ---- samples ------------------------------------------------------------------------------------------------------------------- */

enum { BATCH = 16 }; /* so many memory reads go on at once */

struct batch {
    uint64_t lo[BATCH], hi[BATCH];
};

/* Leads each time to its bracket and asks for the memory that the search will need. */
static void prepare(const struct state_store *s, const struct state_disk_row *r, const int64_t *times, size_t n, struct batch *b)
{
    uint64_t first = (uint64_t)s->blocks[r->first_block].base;
    for (size_t j = 0; j < n && r->n_grid; j++) {
        uint64_t bucket = ((uint64_t)times[j] - first) >> r->shift;
        __builtin_prefetch(&s->grid[r->first_grid + (bucket < r->n_grid ? bucket : r->n_grid - 1)]);
    }
    for (size_t j = 0; j < n; j++) {
        bracket(s, r, times[j], &b->lo[j], &b->hi[j]);
        __builtin_prefetch(block_of(s, r, b->lo[j]));
    }
    for (size_t j = 0; j < n; j++) {
        const struct state_disk_block *k = block_of(s, r, b->lo[j]);
        size_t at = b->lo[j] % STATE_BLOCK;
        __builtin_prefetch(s->bytes + k->position + at * k->time_width / 8);
        __builtin_prefetch(numbers_of(s, k) + at * k->number_width / 8);
    }
}

/* The times are all within entries. */
static size_t sample_entries(
    const struct state_store *s, const struct state_disk_row *r, const int64_t *times, size_t n, struct state_interval *out)
{
    struct batch b;
    size_t found = 0;
    for (size_t i = 0; i < n; i += BATCH) {
        size_t m = n - i < BATCH ? n - i : BATCH;
        if (found && times[i + m - 1] < out[found - 1].end)
            continue;
        prepare(s, r, times + i, m, &b);
        for (size_t j = 0; j < m; j++) {
            int64_t t = times[i + j];
            if (found && t < out[found - 1].end)
                continue;
            set_entry(s, r, search(s, r, t, b.lo[j], b.hi[j]), &out[found]);
            if (!found || out[found].begin != out[found - 1].begin)
                found++;
        }
    }
    return found;
}

static size_t sample_one_by_one(
    const struct state_store *s, const struct state_disk_row *r, const int64_t *times, size_t n, struct state_interval *out)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++) {
        if (found && times[i] < out[found - 1].end)
            continue;
        row_at(s, r, times[i], &out[found]);
        if (!found || out[found].begin != out[found - 1].begin) /* the span's last instant may still be in the one before */
            found++;
    }
    return found;
}

/* First of the n times that is >= t. */
static size_t first_from(const int64_t *times, size_t n, int64_t t)
{
    size_t lo = 0, hi = n;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (times[mid] < t)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

size_t state_sample(const struct state_store *s, int kind, size_t row, const int64_t *times, size_t n, struct state_interval *out)
{
    const struct state_disk_row *r = &s->rows[s->first[kind] + row];
    size_t skip = first_from(times, n, s->totals->begin), found;
    times += skip;
    n -= skip;
    if (s->totals->end < INT64_MAX)
        n = first_from(times, n, s->totals->end + 1);
    if (r->kind == STATE_CPU)
        return sample_one_by_one(s, r, times, n, out);
    size_t before = first_from(times, n, first_time(s, r)), after = before;
    if (r->n)
        after = before + first_from(times + before, n - before, r->end);
    if (after < n && inside(s, r, times[after]))
        after = n; /* the span's last instant */
    found = sample_one_by_one(s, r, times, before, out);
    found += sample_entries(s, r, times + before, after - before, out + found);
    return found + sample_one_by_one(s, r, times + after, n - after, out + found);
}

/* ---- counters ------------------------------------------------------------------------------------------------------------------ */

static bool counts(const struct state_store *s, const struct state_disk_row *r, int64_t number)
{
    if (r->kind == STATE_THREAD)
        return !r->idle && state_running(s->disk_codes[number].value);
    return number && !s->rows[number - 1].idle;
}

/* Time spent from the row's begin up to each time. Goes on within a block where the time before left it. */
static void sum_values(const struct state_store *s, const struct state_disk_row *r, const int64_t *times, size_t n, int64_t *values)
{
    uint64_t i = 0, at = UINT64_MAX;
    int64_t sum = 0;
    for (size_t k = 0; k < n; k++) {
        int64_t t = times[k] < r->end ? times[k] : r->end;
        if (t < first_time(s, r)) {
            values[k] = 0;
            continue;
        }
        i = locate(s, r, t);
        const struct state_disk_block *b = block_of(s, r, i);
        const uint8_t *numbers = numbers_of(s, b);
        if (at == UINT64_MAX || i < at || at / STATE_BLOCK != i / STATE_BLOCK) {
            at = i - i % STATE_BLOCK;
            sum = b->before;
        }
        for (int64_t begin = time_at(s, r, at); at < i; at++) {
            int64_t end = time_at(s, r, at + 1);
            if (counts(s, r, (int64_t)((uint64_t)b->least + pack_get(numbers, at % STATE_BLOCK, b->number_width))))
                sum += end - begin;
            begin = end;
        }
        values[k] = sum + (counts(s, r, number_at(s, r, i)) ? t - time_at(s, r, i) : 0);
    }
}

void state_counter_values(const struct state_store *s, int kind, size_t i, const int64_t *times, size_t n, int64_t *values)
{
    size_t threads = state_rows(s, STATE_THREAD);
    if (kind == STATE_CPU_TIME) {
        size_t row = i < threads ? s->first[STATE_THREAD] + i : s->first[STATE_CPU_THREAD] + i - threads;
        sum_values(s, &s->rows[row], times, n, values);
        return;
    }
    const struct state_disk_row *r = &s->rows[s->first[STATE_COUNTER_ROWS + kind] + i];
    for (size_t k = 0; k < n; k++)
        values[k] = times[k] < first_time(s, r) ? 0 : number_at(s, r, locate(s, r, times[k]));
}
