/* How many events of each class a trace has, in all and before some times; between those the events are read. */
#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "index/types.h"

/* Counting up to any time means reading some more events than SHARE at most; all counts are stored once per SHARE. */
enum { SHARE = 1 << 16, BATCH = 512 };

/* ---- while a trace is read ---- */

struct types_builder *types_builder_new(const struct ctf_trace *t)
{
    struct types_builder *b = mem_zalloc(sizeof *b);
    size_t n = ctf_trace_classes(t, &b->classes);
    for (size_t i = 0; i < n; i++)
        b->n_indices = b->classes[i]->index >= b->n_indices ? b->classes[i]->index + 1 : b->n_indices;
    b->n_classes = n;
    b->counts = mem_zalloc(sizeof *b->counts * (b->n_indices + 1));
    b->last = INT64_MIN;
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

void types_builder_add(struct types_builder *b, const struct ctf_event *ev, size_t n)
{
    uint64_t *counts = b->counts;
    if (b->since >= SHARE && ev->ts > b->last) /* so that no event of that time was counted */
        store_counts(b, ev->ts);
    for (size_t i = 0; i < n; i++)
        counts[ev[i].cls->index]++;
    b->since += n;
    b->last = ev[n - 1].ts > b->last ? ev[n - 1].ts : b->last;
}

void types_builder_store(struct types_builder *b, struct store_writer *s)
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

void types_builder_free(struct types_builder *b)
{
    if (!b)
        return;
    vec_free(&b->times);
    vec_free(&b->before);
    vec_free(&b->used);
    free(b->counts);
    free(b);
}

/* ---- from a store ---- */

struct index_types {
    const struct ctf_trace *trace;
    size_t n, n_times; /* the last time is that of all events */
    const struct ctf_event_class **classes;
    uint32_t *numbers; /* by class index: number in `classes` + 1, 0 none */
    size_t n_indices;
    int64_t *times;
    uint64_t *before; /* n for each time */
};

static void *copy(const void *items, size_t bytes)
{
    void *own = mem_alloc(bytes + 1);
    if (bytes)
        memcpy(own, items, bytes);
    return own;
}

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

/* Each must be a class of the trace's events, once. */
static bool find_classes(struct index_types *t, const uint32_t *used)
{
    const struct ctf_event_class *const *classes;
    size_t n = ctf_trace_classes(t->trace, &classes), found = 0;
    for (size_t i = 0; i < n; i++)
        t->n_indices = classes[i]->index >= t->n_indices ? (size_t)classes[i]->index + 1 : t->n_indices;
    t->numbers = mem_zalloc(sizeof *t->numbers * (t->n_indices + 1));
    for (size_t i = 0; i < t->n; i++) {
        if (used[i] >= t->n_indices || t->numbers[used[i]])
            return false;
        t->numbers[used[i]] = (uint32_t)i + 1;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t number = t->numbers[classes[i]->index];
        if (number && classes[i]->item != CTF_EVENT)
            return false;
        if (number)
            t->classes[number - 1] = classes[i];
        found += number > 0;
    }
    return found == t->n;
}

int types_open(
    const struct ctf_trace *trace, const struct store *s, const char *path, struct index_types **out, struct err *e)
{
    size_t n, n_times, n_counts;
    const uint32_t *used = store_section(s, "types", sizeof *used, &n);
    const int64_t *times = store_section(s, "type_times", sizeof *times, &n_times);
    const uint64_t *counts = store_section(s, "type_counts", sizeof *counts, &n_counts);
    if (!used || !n_times || n_counts % n_times || n_counts / n_times != n)
        return err_set(e, ERR_FORMAT, "%s: counts of events are missing", path);
    struct index_types *t = mem_zalloc(sizeof *t);
    t->trace = trace;
    t->n = n;
    t->n_times = n_times;
    t->classes = mem_alloc(sizeof *t->classes * (n + 1));
    t->times = copy(times, sizeof *times * n_times);
    t->before = copy(counts, sizeof *counts * n_counts);
    if (!find_classes(t, used) || !counts_rise(t)) {
        types_close(t);
        return err_set(e, ERR_FORMAT, "%s: counts of events that are not of this trace", path);
    }
    *out = t;
    return 0;
}

void types_close(struct index_types *t)
{
    if (!t)
        return;
    free(t->classes);
    free(t->numbers);
    free(t->times);
    free(t->before);
    free(t);
}

/* ---- asked ---- */

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
