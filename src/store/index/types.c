/* SPDX-License-Identifier: MIT */
/* Counts of events by class, in total and before certain times; events between those times are read. */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "index/stores.h"

/* Counting up to any time means reading some more events than SHARE at most; all counts are stored once per SHARE. */
enum { SHARE = 1 << 16, BATCH = 512 };

/* ---- building ---- */

/* Adds new columns to the stored counts. */
static void widen(struct types_builder *b, size_t n_indices)
{
    size_t before = b->n_indices;
    vec_reserve(&b->before, b->times.n * (n_indices - before));
    for (size_t row = b->times.n; row-- > 0;) {
        memmove(b->before.v + row * n_indices, b->before.v + row * before, before * sizeof *b->before.v);
        memset(b->before.v + row * n_indices + before, 0, (n_indices - before) * sizeof *b->before.v);
    }
    b->before.n = b->times.n * n_indices;
    b->counts = mem_resize(b->counts, sizeof *b->counts * (n_indices + 1));
    memset(b->counts + before, 0, sizeof *b->counts * (n_indices + 1 - before));
    b->n_indices = n_indices;
}

void index_types_builder_extend(struct types_builder *b)
{
    size_t n = ctf_trace_classes(b->trace, &b->classes), n_indices = b->n_indices;
    for (size_t i = 0; i < n; i++)
        n_indices = b->classes[i]->index >= n_indices ? (size_t)b->classes[i]->index + 1 : n_indices;
    b->n_classes = n;
    if (n_indices > b->n_indices || !b->counts)
        widen(b, n_indices);
}

struct types_builder *index_types_builder_new(const struct ctf_trace *t)
{
    struct types_builder *b = mem_zalloc(sizeof *b);
    b->trace = t;
    b->last = INT64_MIN;
    index_types_builder_extend(b);
    return b;
}

static void store_counts(struct types_builder *b, int64_t time)
{
    vec_push(&b->times, time);
    vec_reserve(&b->before, b->n_indices);
    memcpy(b->before.v + b->before.n, b->counts, sizeof *b->counts * b->n_indices);
    b->before.n += b->n_indices;
    b->since = 0;
}

void index_types_builder_add(struct types_builder *b, const struct ctf_event *ev, size_t n)
{
    uint64_t *counts = b->counts;
    if (b->since >= SHARE && ev->ts > b->last) /* no event of that time has been counted yet */
        store_counts(b, ev->ts);
    for (size_t i = 0; i < n; i++)
        counts[ev[i].cls->index]++;
    b->since += n;
    b->last = ev[n - 1].ts > b->last ? ev[n - 1].ts : b->last;
}

void index_types_builder_store(struct types_builder *b, struct store_writer *s)
{
    uint64_t *to;
    for (size_t i = 0; i < b->n_classes; i++)
        if (b->classes[i]->item == CTF_EVENT && b->counts[b->classes[i]->index])
            vec_push(&b->used, b->classes[i]->index);
    store_counts(b, INT64_MAX);
    to = b->before.v; /* rows get shorter: what is written lies behind nothing that is still to be read */
    for (size_t row = 0; row < b->times.n; row++)
        for (size_t i = 0; i < b->used.n; i++)
            *to++ = b->before.v[row * b->n_indices + b->used.v[i]];
    store_add(s, "types", b->used.v, sizeof *b->used.v, b->used.n);
    store_add(s, "type_times", b->times.v, sizeof *b->times.v, b->times.n);
    store_add(s, "type_counts", b->before.v, sizeof *b->before.v, (size_t)(to - b->before.v));
}

void index_types_builder_free(struct types_builder *b)
{
    if (!b)
        return;
    vec_free(&b->times);
    vec_free(&b->before);
    vec_free(&b->used);
    free(b->counts);
    free(b);
}

/* ---- opening a store ---- */

struct index_types {
    const struct ctf_trace *trace;
    size_t n, n_times; /* the last time is that of all events */
    const struct ctf_event_class **classes;
    uint32_t *numbers; /* by class index: number in `classes` + 1; 0: none */
    size_t n_indices;
    int64_t *times;
    uint64_t *before; /* n for each time */
};

static bool counts_rise(const struct index_types *t)
{
    for (size_t k = 1; k < t->n_times; k++) {
        if (t->times[k] <= t->times[k - 1])
            return false;
        for (size_t i = 0; i < t->n; i++)
            if (t->before[k * t->n + i] < t->before[(k - 1) * t->n + i])
                return false;
    }
    return true;
}

/* Concatenation of chunks. Totals of earlier chunks are added to all rows of a chunk. Its last row counts the whole
 * chunk, all before the cut. */
struct joining {
    struct index_types *t;
    uint64_t *before; /* totals of the chunks so far, by number of class */
    VEC(int64_t) times;
    VEC(uint64_t) counts;
};

static void add_row(struct joining *j, int64_t time, const uint32_t *used, const uint64_t *counts, size_t n)
{
    size_t width = j->t->n, at = j->counts.n;
    if (j->times.n && j->times.v[j->times.n - 1] == time) /* no events between two cuts */
        at -= width;
    else
        vec_push(&j->times, time);
    j->counts.n = at;
    vec_reserve(&j->counts, width);
    j->counts.n += width;
    if (width)
        memcpy(j->counts.v + at, j->before, width * sizeof *j->before);
    for (size_t i = 0; i < n; i++)
        j->counts.v[at + j->t->numbers[used[i]] - 1] += counts[i];
}

struct sections {
    const uint32_t *used;
    const int64_t *times;
    const uint64_t *counts;
    size_t n, n_times, n_counts;
};

static bool sections_of(const struct store *s, struct sections *out)
{
    out->used = store_section(s, "types", sizeof *out->used, &out->n);
    out->times = store_section(s, "type_times", sizeof *out->times, &out->n_times);
    out->counts = store_section(s, "type_counts", sizeof *out->counts, &out->n_counts);
    return out->used && out->n_times && out->n_counts % out->n_times == 0 && out->n_counts / out->n_times == out->n;
}

static void join_chunk(struct joining *j, const struct sections *s, int64_t end)
{
    const uint64_t *last = s->counts + (s->n_times - 1) * s->n;
    for (size_t k = 0; k < s->n_times; k++)
        add_row(j, k + 1 < s->n_times ? s->times[k] : end, s->used, s->counts + k * s->n, s->n);
    for (size_t i = 0; i < s->n; i++)
        j->before[j->t->numbers[s->used[i]] - 1] += last[i];
}

/* Classes that any chunk has, in order of number. False: some are not the trace's. */
static bool find_used(struct index_types *t, const struct sections *v, size_t n)
{
    const struct ctf_event_class *const *classes;
    size_t n_classes = ctf_trace_classes(t->trace, &classes);
    for (size_t i = 0; i < n_classes; i++)
        t->n_indices = classes[i]->index >= t->n_indices ? (size_t)classes[i]->index + 1 : t->n_indices;
    t->numbers = mem_zalloc(sizeof *t->numbers * (t->n_indices + 1));
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < v[k].n; i++) {
            if (v[k].used[i] >= t->n_indices || (i && v[k].used[i] <= v[k].used[i - 1]))
                return false;
            t->numbers[v[k].used[i]] = 1;
        }
    t->classes = mem_zalloc(sizeof *t->classes * (t->n_indices + 1));
    for (size_t i = 0; i < t->n_indices; i++)
        if (t->numbers[i])
            t->numbers[i] = (uint32_t)++t->n;
    size_t found = 0;
    for (size_t i = 0; i < n_classes; i++) {
        uint32_t number = t->numbers[classes[i]->index];
        if (!number || classes[i]->item != CTF_EVENT)
            continue;
        found += !t->classes[number - 1];
        t->classes[number - 1] = classes[i];
    }
    return found == t->n;
}

int index_types_open(const struct ctf_trace *trace, const struct index_known *known, const struct index_history *h,
    struct index_types **out, struct err *e)
{
    struct index_types *t = mem_zalloc(sizeof *t);
    struct sections *v = mem_zalloc((h->chunks.n + 1) * sizeof *v);
    bool good = true;
    t->trace = trace;
    for (size_t i = 0; i < h->chunks.n && good; i++)
        good = sections_of(known[i].store, &v[i]);
    good = good && find_used(t, v, h->chunks.n);
    if (good) {
        struct joining j = {.t = t, .before = mem_zalloc((t->n + 1) * sizeof *j.before)};
        for (size_t i = 0; i < h->chunks.n; i++)
            join_chunk(&j, &v[i], h->chunks.v[i].end);
        free(j.before);
        t->times = j.times.v;
        t->n_times = j.times.n;
        t->before = j.counts.v;
        good = counts_rise(t);
    }
    free(v);
    if (!good) {
        index_types_close(t);
        return err_set(e, ERR_FORMAT, "%s: the stores have counts of events that are not of it", ctf_trace_path(trace));
    }
    *out = t;
    return 0;
}

void index_types_close(struct index_types *t)
{
    if (!t)
        return;
    free(t->classes);
    free(t->numbers);
    free(t->times);
    free(t->before);
    free(t);
}

/* ---- queries ---- */

size_t index_types(const struct index_types *t)
{
    return t->n;
}

const struct ctf_event_class *index_type(const struct index_types *t, size_t i, uint64_t *events)
{
    *events = t->before[(t->n_times - 1) * t->n + i];
    return t->classes[i];
}

/* Adds the events of [begin, end] to the counts, or takes them away. */
static int read_counts(
    const struct index_types *t, int64_t begin, int64_t end, uint64_t sign, uint64_t *counts, struct err *e)
{
    struct ctf_source source = {.trace = (struct ctf_trace *)(uintptr_t)t->trace};
    struct ctf_event batch[BATCH];
    struct ctf_merge *merge;
    if (begin > end)
        return 0;
    int rc = ctf_merge_new(&source, 1, (struct ctf_window){begin, end}, -1, &merge, e);
    if (rc)
        return rc;
    for (size_t n; (n = ctf_merge_next(merge, batch, BATCH)) > 0;)
        for (size_t i = 0; i < n; i++) {
            uint32_t index = batch[i].cls->index, number = index < t->n_indices ? t->numbers[index] : 0;
            if (number)
                counts[number - 1] += sign;
        }
    ctf_merge_free(merge);
    return 0;
}

/* The last of the times at or before t, -1: there is none. */
static int64_t time_before(const struct index_types *types, int64_t t)
{
    return (int64_t)search_first(i, 0, types->n_times - 1, types->times[i] > t) - 1;
}

/* Adds the events before t, or takes them away. */
static int count_before(const struct index_types *t, int64_t time, uint64_t sign, uint64_t *counts, struct err *e)
{
    int64_t at = time_before(t, time);
    for (size_t i = 0; at >= 0 && i < t->n; i++)
        counts[i] += sign * t->before[(size_t)at * t->n + i];
    return time > INT64_MIN ? read_counts(t, at >= 0 ? t->times[at] : INT64_MIN, time - 1, sign, counts, e) : 0;
}

int index_types_count(const struct index_types *t, int64_t begin, int64_t end, uint64_t *counts, struct err *e)
{
    memset(counts, 0, sizeof *counts * t->n);
    if (begin > end)
        return 0;
    end -= end == INT64_MAX;
    if (time_before(t, begin) == time_before(t, end + 1))
        return read_counts(t, begin, end, 1, counts, e);
    int rc = count_before(t, end + 1, 1, counts, e);
    return rc ? rc : count_before(t, begin, UINT64_MAX, counts, e);
}
