/* What was in force at given times: a grid leads from a time to the few entries around it, so that the length of the trace does not count.
 *
 * Blocks, grid and entries are as the file has them: nobody has checked them. So each step bounds what it reads: a block lies in the file, a grid's entry in
 * its row, a number in its table; and each interval holds the time it was asked for, so that whoever goes on at its end gets on. */
#include "state/format.h"

/* ---- entries of a row ------------------------------------------------------------------------------------------------------------ */

/* i is below the row's n. */
static inline const struct state_disk_block *block_of(const struct state_store *s, const struct state_disk_row *r, uint64_t i)
{
    static const struct state_disk_block none;
    const struct state_disk_block *b = &s->blocks[r->first_block + i / STATE_BLOCK];
    return __builtin_expect(b->position <= s->n_bytes && b->n <= STATE_BLOCK, 1) ? b : &none;
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
    if (bucket + 1 < r->n_grid)
        *hi = grid[bucket + 1] < *hi ? grid[bucket + 1] : *hi;
    else
        bucket = r->n_grid - 1;
    *lo = grid[bucket] < *hi ? grid[bucket] : *hi;
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
    const struct state_code *c = &s->codes[code < s->n_codes ? code : STATE_UNKNOWN];
    out->value = c->value;
    out->cpu = c->cpu;
    out->name = c->name;
    out->thread = -1;
    out->amount = 0;
    out->cut = false;
}

static inline bool is_thread(const struct state_store *s, int64_t thread)
{
    return (uint64_t)thread < s->first[STATE_THREAD + 1];
}

static void set_futex_call(const struct state_store *s, const struct state_disk_row *r, int64_t number, struct state_interval *out)
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

/* Lanes of futexes: the number is that of the row that tells more. */
static void set_futex_lane(const struct state_store *s, const struct state_disk_row *r, int64_t number, struct state_interval *out)
{
    uint64_t user = (uint64_t)number - 1;
    bool known = user < state_rows(s, STATE_FUTEX_USER);
    set_code(s, known ? r->kind == STATE_FUTEX_WAITS ? STATE_FUTEX_WAIT : STATE_FUTEX_WAKE : number ? STATE_UNKNOWN : STATE_NONE, out);
    if (known) {
        const struct state_disk_row *of = &s->rows[s->first[STATE_FUTEX_USER] + user];
        out->thread = of->thread;
        out->name = state_name(s, of->name);
        out->amount = (int64_t)user;
    }
}

/* Value and names of a number in a row of that kind; a CPU's thread is left to composing. */
static inline void set_number(const struct state_store *s, const struct state_disk_row *r, int64_t number, struct state_interval *out)
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
        set_futex_lane(s, r, number, out);
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

/* Entry i, which is in force at t. */
static inline void set_entry(const struct state_store *s, const struct state_disk_row *r, uint64_t i, int64_t t, struct state_interval *out)
{
    out->begin = time_at(s, r, i);
    out->end = i + 1 < r->n ? time_at(s, r, i + 1) : r->end;
    set_number(s, r, number_at(s, r, i), out);
    if (__builtin_expect(out->begin > t || out->end <= t || out->begin < r->begin || out->end > r->end, 0)) {
        set_code(s, STATE_UNKNOWN, out);
        out->begin = t;
        out->end = r->end;
    }
}

/* Before the first entry and outside the row's life. */
static void set_outside(const struct state_store *s, const struct state_disk_row *r, int64_t t, struct state_interval *out)
{
    int64_t first = first_time(s, r);
    set_code(s, STATE_NONE, out);
    if (t < r->begin) {
        out->begin = s->totals->begin;
        out->end = r->begin;
    } else if (t < first && t < r->end) {
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
    return t >= first_time(s, r) && t < r->end;
}

static void interval_at(const struct state_store *s, const struct state_disk_row *r, int64_t t, struct state_interval *out)
{
    if (inside(s, r, t))
        set_entry(s, r, locate(s, r, t), t, out);
    else
        set_outside(s, r, t, out);
}

/* A CPU that a thread has does what the thread does: the part of the thread's state that lies within the CPU's. */
static void compose(const struct state_store *s, int64_t t, struct state_interval *out)
{
    struct state_interval doing;
    if (out->value != STATE_ACTIVE || out->thread < 0)
        return;
    interval_at(s, &s->rows[out->thread], t, &doing);
    out->begin = doing.begin > out->begin ? doing.begin : out->begin;
    out->end = doing.end < out->end ? doing.end : out->end;
    out->value = doing.value == STATE_SYSCALL ? STATE_SYSCALL : STATE_USERMODE;
    out->name = doing.value == STATE_SYSCALL ? doing.name : NULL;
}

/* t is within the span, whose last instant counts as the one before. */
static void row_at(const struct state_store *s, const struct state_disk_row *r, int64_t t, struct state_interval *out)
{
    t -= t == s->totals->end && t > s->totals->begin;
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
    while (n < max && t <= end && t < s->totals->end) {
        row_at(s, r, t, &out[n]);
        t = out[n++].end;
    }
    return n;
}

/* ---- samples ------------------------------------------------------------------------------------------------------------------- */

enum { BATCH = 16, FEW = 4 }; /* so many memory reads go on at once */

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

/* Is out[found] another one than that before it? The span's last instant may still be in that. */
static inline bool is_next(struct state_interval *out, size_t found)
{
    if (!found)
        return true;
    if (out[found].begin <= out[found - 1].begin)
        return false;
    if (out[found].begin < out[found - 1].end)
        out[found].begin = out[found - 1].end;
    return true;
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

/* The same, where it is near the begin as a rule. */
static size_t gallop(const int64_t *times, size_t n, int64_t t)
{
    size_t from = 0, step = 1;
    while (from + step <= n && times[from + step - 1] < t) {
        from += step;
        step *= 2;
    }
    return from + first_from(times + from, n - from < step ? n - from : step, t);
}

/* Adds to the `found` there are. The times are all within entries. Where most times need an entry of their own, it looks far ahead; where entries are
 * longer than the times are apart, not at all. */
static size_t sample_entries(
    const struct state_store *s, const struct state_disk_row *r, const int64_t *times, size_t n, struct state_interval *out, size_t found)
{
    struct batch b;
    size_t ahead = 1;
    for (size_t i = 0, m; i < n; i += m) {
        if (found && times[i] < out[found - 1].end) {
            m = gallop(times + i, n - i, out[found - 1].end);
            continue;
        }
        size_t needed = 0;
        m = n - i < ahead ? n - i : ahead;
        if (m > 1)
            prepare(s, r, times + i, m, &b);
        else
            bracket(s, r, times[i], &b.lo[0], &b.hi[0]);
        for (size_t j = 0; j < m; j++) {
            int64_t t = times[i + j];
            if (found && t < out[found - 1].end)
                continue;
            set_entry(s, r, search(s, r, t, b.lo[j], b.hi[j]), t, &out[found]);
            found += is_next(out, found);
            needed++;
        }
        bool last_needed = i + m == n || times[i + m] >= out[found - 1].end;
        if (2 * needed > m && last_needed)
            ahead = 2 * ahead < BATCH ? 2 * ahead : BATCH;
        else if (ahead > 1)
            ahead /= 2;
    }
    return found;
}

static size_t sample_one_by_one(
    const struct state_store *s, const struct state_disk_row *r, const int64_t *times, size_t n, struct state_interval *out, size_t found)
{
    for (size_t i = 0; i < n; i++) {
        if (found && times[i] < out[found - 1].end)
            continue;
        row_at(s, r, times[i], &out[found]);
        found += is_next(out, found);
    }
    return found;
}

size_t state_sample(const struct state_store *s, int kind, size_t row, const int64_t *times, size_t n, struct state_interval *out)
{
    const struct state_disk_row *r = &s->rows[s->first[kind] + row];
    size_t skip = first_from(times, n, s->totals->begin), found;
    times += skip;
    n -= skip;
    size_t within = first_from(times, n, s->totals->end), last = within < n && times[within] == s->totals->end;
    if (r->kind == STATE_CPU)
        return sample_one_by_one(s, r, times, within + last, out, 0);
    size_t before = first_from(times, within, first_time(s, r));
    size_t after = before + first_from(times + before, within - before, r->end);
    found = sample_one_by_one(s, r, times, before, out, 0);
    found = sample_entries(s, r, times + before, after - before, out, found);
    found = sample_one_by_one(s, r, times + after, within - after, out, found);
    if (last) {
        row_at(s, r, s->totals->end, &out[found]);
        found += is_next(out, found);
    }
    return found;
}

/* ---- counters ------------------------------------------------------------------------------------------------------------------ */

static inline bool counts(const struct state_store *s, const struct state_disk_row *r, uint64_t number)
{
    if (r->kind == STATE_THREAD)
        return number < s->n_codes && state_running(s->disk_codes[number].value);
    return is_thread(s, (int64_t)(number - 1)) && !s->rows[number - 1].idle;
}

/* Where a sum stands: entry i, which is in force in [begin, end); the time spent before it. */
struct summing {
    uint64_t i;
    int64_t begin, end;
    uint64_t sum;
    bool counts;
};

/* A block of a row while durations are summed. */
struct summed_block {
    const struct state_disk_block *block;
    const uint8_t *times, *numbers;
};

static inline uint64_t block_time(const struct summed_block *b, uint64_t i)
{
    return (uint64_t)b->block->base + pack_get(b->times, i % STATE_BLOCK, b->block->time_width);
}

static inline bool block_counts(const struct state_store *s, const struct state_disk_row *r, const struct summed_block *b, uint64_t i)
{
    return counts(s, r, (uint64_t)b->block->least + pack_get(b->numbers, i % STATE_BLOCK, b->block->number_width));
}

/* On to entry i of the block, from where the time before left it or from the block's begin. */
static void sum_forward(
    const struct state_store *s, const struct state_disk_row *r, const struct summed_block *b, uint64_t i, struct summing *g)
{
    if (i < g->i || g->i / STATE_BLOCK != i / STATE_BLOCK) {
        g->i = i - i % STATE_BLOCK;
        g->sum = (uint64_t)b->block->before;
        g->begin = b->block->base;
    }
    uint64_t begin = (uint64_t)g->begin;
    for (; g->i < i; g->i++) {
        uint64_t end = block_time(b, g->i + 1);
        if (block_counts(s, r, b, g->i))
            g->sum += end - begin;
        begin = end;
    }
    g->begin = (int64_t)begin;
}

/* The same, back from the begin of the block behind. */
static void sum_backward(
    const struct state_store *s, const struct state_disk_row *r, const struct summed_block *b, uint64_t i, struct summing *g)
{
    const struct state_disk_block *next = block_of(s, r, i - i % STATE_BLOCK + STATE_BLOCK);
    uint64_t end = (uint64_t)next->base;
    g->sum = (uint64_t)next->before;
    for (uint64_t k = i - i % STATE_BLOCK + STATE_BLOCK; k-- > i;) {
        uint64_t begin = block_time(b, k);
        if (block_counts(s, r, b, k))
            g->sum -= end - begin;
        end = begin;
    }
    g->begin = (int64_t)end;
    g->i = i;
}

/* To entry i. */
static void sum_up_to(const struct state_store *s, const struct state_disk_row *r, uint64_t i, struct summing *g)
{
    struct summed_block b = {.block = block_of(s, r, i)};
    b.times = s->bytes + b.block->position;
    b.numbers = numbers_of(s, b.block);
    uint64_t behind = STATE_BLOCK - i % STATE_BLOCK, ahead = i >= g->i && i - g->i < i % STATE_BLOCK ? i - g->i : i % STATE_BLOCK;
    if (behind < ahead && i + behind < r->n)
        sum_backward(s, r, &b, i, g);
    else
        sum_forward(s, r, &b, i, g);
    g->end = i + 1 < r->n ? time_at(s, r, i + 1) : INT64_MAX;
    g->counts = block_counts(s, r, &b, i);
}

/* Asks for the memory that summing up to entry i will need: between it and the nearer end of its block. */
static void prefetch_sum(const struct state_store *s, const struct state_disk_row *r, uint64_t i)
{
    const struct state_disk_block *k = block_of(s, r, i);
    size_t at = i % STATE_BLOCK, from = at < STATE_BLOCK / 2 ? 0 : at, to = at < STATE_BLOCK / 2 ? at : STATE_BLOCK;
    for (size_t byte = from * k->time_width / 8; byte <= to * k->time_width / 8; byte += 64)
        __builtin_prefetch(s->bytes + k->position + byte);
    __builtin_prefetch(numbers_of(s, k) + from * k->number_width / 8);
}

static inline int64_t sum_at(const struct summing *g, int64_t t)
{
    return (int64_t)(g->sum + (g->counts ? (uint64_t)t - (uint64_t)g->begin : 0));
}

/* Time spent from the row's begin up to each time, which are all within entries. Where the last few times needed few entries, it looks less far ahead. */
static void sum_values(const struct state_store *s, const struct state_disk_row *r, const int64_t *times, size_t n, int64_t *values)
{
    struct summing g = {.i = UINT64_MAX, .end = INT64_MIN};
    struct batch b;
    size_t needed = 0;
    for (size_t k = 0, m; k < n; k += m) {
        for (; k < n && times[k] < g.end; k++)
            values[k] = sum_at(&g, times[k]);
        m = needed > FEW ? BATCH : FEW;
        m = n - k < m ? n - k : m;
        needed = 0;
        if (m > 1) {
            prepare(s, r, times + k, m, &b);
            for (size_t j = 0; j < m; j++)
                if (b.lo[j] / STATE_BLOCK != (j ? b.lo[j - 1] : g.i) / STATE_BLOCK)
                    prefetch_sum(s, r, b.lo[j]);
        } else if (m) {
            bracket(s, r, times[k], &b.lo[0], &b.hi[0]);
        }
        for (size_t j = 0; j < m; j++) {
            int64_t t = times[k + j];
            if (t >= g.end) {
                sum_up_to(s, r, search(s, r, t, b.lo[j], b.hi[j]), &g);
                needed += m == BATCH ? 1 : 2;
            }
            values[k + j] = sum_at(&g, t);
        }
    }
}

static void cpu_time_values(const struct state_store *s, const struct state_disk_row *r, const int64_t *times, size_t n, int64_t *values)
{
    bool never = !r->n || (r->kind == STATE_THREAD && r->idle);
    size_t before = never ? n : first_from(times, n, first_time(s, r)), within = before + first_from(times + before, n - before, r->end);
    for (size_t k = 0; k < before; k++)
        values[k] = 0;
    sum_values(s, r, times + before, within - before, values + before);
    if (within < n) {
        const int64_t end = r->end;
        int64_t all = 0;
        if (first_time(s, r) <= end)
            sum_values(s, r, &end, 1, &all);
        for (size_t k = within; k < n; k++)
            values[k] = all;
    }
}

void state_counter_values(const struct state_store *s, int kind, size_t i, const int64_t *times, size_t n, int64_t *values)
{
    size_t threads = state_rows(s, STATE_THREAD);
    if (kind == STATE_CPU_TIME) {
        size_t row = i < threads ? s->first[STATE_THREAD] + i : s->first[STATE_CPU_THREAD] + i - threads;
        cpu_time_values(s, &s->rows[row], times, n, values);
        return;
    }
    const struct state_disk_row *r = &s->rows[s->first[STATE_COUNTER_ROWS + kind] + i];
    for (size_t k = 0; k < n; k++)
        values[k] = times[k] < first_time(s, r) || !r->n ? 0 : number_at(s, r, locate(s, r, times[k]));
}
