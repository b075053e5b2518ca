/* SPDX-License-Identifier: MIT */
/* The store of call stacks: opening and reading. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/search.h"
#include "stack/list.h"

/* ---- opening ---- */

int stack_open_list(const struct chunk *v, size_t n, struct stack_store **out, struct err *e)
{
    struct stack_store *s = mem_zalloc(sizeof *s);
    int rc = n ? 0 : err_set(e, ERR_FORMAT, "no chunk of call stacks");
    s->chunks = mem_zalloc(sizeof *s->chunks * (n + 1));
    for (size_t i = 0; i < n && !rc; i++) {
        s->n_chunks = i + 1;
        rc = i && v[i].begin < v[i - 1].end
            ? err_set(e, ERR_FORMAT, "%s: it begins before the chunk before ends", v[i].path)
            : stack_chunk_open(&s->chunks[i], &v[i], e);
    }
    size_t chunk = 0;
    const char *what = rc ? NULL : stack_list_join(s, v, &chunk);
    if (what)
        rc = err_set(e, ERR_FORMAT, "%s: %s", v[chunk].path, what);
    if (rc) {
        stack_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

int stack_open(const char *path, struct stack_store **out, struct err *e)
{
    return stack_open_list(&(struct chunk){.path = path, .begin = INT64_MIN, .end = INT64_MAX}, 1, out, e);
}

int stack_intact(const struct stack_store *s, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < s->n_chunks && !rc; i++)
        rc = store_intact(s->chunks[i].file, e);
    return rc;
}

void stack_close(struct stack_store *s)
{
    if (!s)
        return;
    stack_list_free(s);
    for (size_t i = 0; i < s->n_chunks; i++)
        stack_chunk_close(&s->chunks[i]);
    free(s->chunks);
    free(s);
}

/* ---- processes, threads, functions ---- */

const struct stack_totals *stack_totals(const struct stack_store *s)
{
    return &s->totals;
}

size_t stack_processes(const struct stack_store *s)
{
    return s->n_processes;
}

void stack_process(const struct stack_store *s, size_t i, struct stack_process *out)
{
    *out = s->processes[i];
}

size_t stack_threads(const struct stack_store *s)
{
    return s->n_threads;
}

void stack_thread(const struct stack_store *s, size_t i, struct stack_thread *out)
{
    *out = s->threads[i];
}

const char *stack_thread_name(const struct stack_store *s, size_t thread, int64_t t)
{
    size_t first = s->first_rename[thread], end = s->first_rename[thread + 1];
    size_t after = search_first(i, first, end, s->renames[i].time > t);
    return first == end ? "" : s->renames[after > first ? after - 1 : first].name;
}

size_t stack_functions(const struct stack_store *s)
{
    return s->n_functions;
}

void stack_function(const struct stack_store *s, size_t i, struct stack_function *out)
{
    *out = s->functions[i];
}

/* ---- calls ---- */

size_t stack_rows(const struct stack_store *s)
{
    return s->n_rows;
}

size_t stack_calls(const struct stack_store *s, size_t row)
{
    return s->rows[row].calls;
}

void stack_call(const struct stack_store *s, size_t row, size_t i, struct stack_call *out)
{
    *out = stack_part_call(stack_part_of(&s->rows[row], i), i);
}

/* Returns how many calls of the row begin at or before t; `from`: a number known to be not too large. Later times are
 * mostly near. */
static uint64_t begun(const struct stack_row *r, uint64_t from, int64_t t)
{
    size_t k = r->n_parts > 1 ? search_first(i, 0, r->n_parts, r->parts[i].begin > t) : r->n_parts;
    if (!k)
        return 0;
    const struct stack_part *p = &r->parts[k - 1];
    uint64_t lo = from > p->first ? from - p->first : 0, hi = lo, step = 1;
    while (hi < p->n && p->calls[hi].begin <= t) {
        lo = hi + 1;
        hi = step < p->n - hi ? hi + step : p->n;
        step *= 2;
    }
    return p->first + search_first(i, lo, hi, p->calls[i].begin > t);
}

size_t stack_begun(const struct stack_store *s, size_t row, size_t from, int64_t t)
{
    return t == INT64_MIN ? 0 : begun(&s->rows[row], from, t - 1);
}

size_t stack_find(const struct stack_store *s, size_t row, int64_t t)
{
    uint64_t i = begun(&s->rows[row], 0, t);
    struct stack_call c;
    while (i > 0) {
        stack_call(s, row, i - 1, &c);
        if (c.end < t)
            break;
        i--;
    }
    return i;
}

/* The state in force at t when n calls have begun. */
static void state_of(
    const struct stack_store *s, const struct stack_row *r, uint64_t n, int64_t t, struct stack_call *out)
{
    int64_t since = s->totals.begin, until = s->totals.end;
    if (n) {
        *out = stack_part_call(stack_part_of(r, n - 1), n - 1);
        if (t < out->end)
            return;
        since = out->end;
    }
    if (n < r->calls) {
        const struct stack_part *p = stack_part_of(r, n);
        until = p->calls[n - p->first].begin;
    }
    *out = (struct stack_call){since, until, 0, STACK_NOTHING};
}

bool stack_at(const struct stack_store *s, size_t row, int64_t t, struct stack_call *out)
{
    return stack_sample(s, row, &t, 1, out) > 0;
}

size_t stack_sample(const struct stack_store *s, size_t row, const int64_t *times, size_t n, struct stack_call *out)
{
    const struct stack_totals *span = &s->totals;
    const struct stack_row *r = &s->rows[row];
    size_t found = 0;
    uint64_t i = 0;
    for (size_t k = 0; k < n; k++) {
        if (times[k] < span->begin || times[k] > span->end)
            continue;
        int64_t t = times[k] - (times[k] == span->end && span->end > span->begin);
        if (found && t < out[found - 1].end)
            continue;
        i = begun(r, i, t);
        state_of(s, r, i, t, &out[found++]);
    }
    return found;
}

/* ---- memory, losses ---- */

void stack_memory(const struct stack_store *s, size_t thread, const int64_t *times, size_t n, int64_t *bytes)
{
    size_t first = s->first_values[thread], end = s->first_values[thread + 1], part = first;
    uint64_t at = 0;
    for (size_t k = 0; k < n; k++) {
        size_t next = search_first(i, part, end, s->values[i].begin > times[k]);
        bytes[k] = 0;
        if (next == first)
            continue;
        at = next - 1 == part ? at : 0;
        part = next - 1;
        const struct stack_values *v = &s->values[part];
        at = search_first(i, at, v->n, v->v[i].time > times[k]);
        bytes[k] = at ? v->v[at - 1].bytes : 0;
    }
}

size_t stack_losses(const struct stack_store *s)
{
    return s->n_losses;
}

void stack_loss(const struct stack_store *s, size_t i, struct stack_loss *out)
{
    *out = s->losses[i];
}
