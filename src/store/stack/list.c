/* SPDX-License-Identifier: MIT */
/* Processes, threads and rows of several chunks as one store. All chunks have them in the same order, by identity. */
#include "stack/list.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"

struct joining {
    struct stack_store *s;
    const struct chunk *v;
    size_t *chunk;               /* chunk being looked at */
    uint32_t **process_of;       /* process of the store, by chunk and by process */
    struct stack_place *threads; /* threads of all chunks: parts of the same thread adjacent, by time */
    size_t n_threads;
    size_t *first; /* by thread of the store: its first place; one extra */
};

#define count_all(s, items) \
    ({ \
        size_t all_ = 0; \
        for (size_t c_ = 0; c_ < (s)->n_chunks; c_++) \
            all_ += (s)->chunks[c_].items; \
        all_; \
    })

static struct stack_place *all_places(const struct stack_store *s, bool threads, size_t *n)
{
    size_t all = threads ? count_all(s, n_threads) : count_all(s, n_processes);
    struct stack_place *v = mem_alloc(sizeof *v * (all + 1));
    *n = 0;
    for (size_t c = 0; c < s->n_chunks; c++)
        for (size_t i = 0; i < (threads ? s->chunks[c].n_threads : s->chunks[c].n_processes); i++)
            v[(*n)++] = (struct stack_place){(uint32_t)c, (uint32_t)i};
    return v;
}

/* ---- processes ---- */

static int compare_processes(const struct joining *j, const struct stack_place *a, const struct stack_place *b)
{
    const struct stack_chunk *x = &j->s->chunks[a->chunk], *y = &j->s->chunks[b->chunk];
    const struct stack_disk_process *p = &x->processes[a->i], *q = &y->processes[b->i];
    return order_of(p->pid, q->pid) ?: p->pid >= 0 ? 0 : strcmp(stack_text(x, p->name), stack_text(y, q->name));
}

static int by_process(const void *a, const void *b, void *arg)
{
    const struct stack_place *x = a, *y = b;
    return compare_processes(arg, x, y) ?: order_of(x->chunk, y->chunk) ?: order_of(x->i, y->i);
}

static void join_processes(struct joining *j)
{
    struct stack_store *s = j->s;
    size_t n;
    struct stack_place *v = all_places(s, false, &n);
    qsort_r(v, n, sizeof *v, by_process, j);
    s->processes = mem_alloc(sizeof *s->processes * (n + 1));
    j->process_of = mem_alloc(sizeof *j->process_of * (s->n_chunks + 1));
    for (size_t c = 0; c < s->n_chunks; c++)
        j->process_of[c] = mem_alloc(sizeof **j->process_of * (s->chunks[c].n_processes + 1));
    for (size_t i = 0; i < n; i++) {
        const struct stack_disk_process *p = &s->chunks[v[i].chunk].processes[v[i].i];
        if (!i || compare_processes(j, &v[i - 1], &v[i]))
            s->processes[s->n_processes++] = (struct stack_process){.pid = p->pid, .name = ""};
        struct stack_process *to = &s->processes[s->n_processes - 1];
        if (!*to->name)
            to->name = stack_text(&s->chunks[v[i].chunk], p->name);
        j->process_of[v[i].chunk][v[i].i] = (uint32_t)s->n_processes - 1;
    }
    free(v);
}

/* ---- threads ---- */

static const struct stack_disk_thread *thread_at(const struct joining *j, struct stack_place p)
{
    return &j->s->chunks[p.chunk].threads[p.i];
}

static int compare_streams(const struct joining *j, struct stack_place a, struct stack_place b)
{
    const struct stack_chunk *x = &j->s->chunks[a.chunk], *y = &j->s->chunks[b.chunk];
    const struct stack_disk_stream *p = &x->streams[x->threads[a.i].stream], *q = &y->streams[y->threads[b.i].stream];
    return order_of(p->class_id, q->class_id) ?: order_of(p->instance_id, q->instance_id)
        ?: order_of(p->cpu, q->cpu) ?: strcmp(stack_text(x, p->name), stack_text(y, q->name));
}

static int compare_threads(const struct joining *j, struct stack_place a, struct stack_place b)
{
    const struct stack_disk_thread *p = thread_at(j, a), *q = thread_at(j, b);
    return order_of(j->process_of[a.chunk][p->process], j->process_of[b.chunk][q->process])
        ?: order_of(p->tid, q->tid)
        ?: p->tid >= 0 ? 0 : compare_streams(j, a, b);
}

static int by_thread(const void *a, const void *b, void *arg)
{
    const struct stack_place *x = a, *y = b;
    return compare_threads(arg, *x, *y) ?: order_of(x->chunk, y->chunk) ?: order_of(x->i, y->i);
}

static void find_threads(struct joining *j)
{
    struct stack_store *s = j->s;
    size_t n;
    j->threads = all_places(s, true, &n);
    j->n_threads = n;
    qsort_r(j->threads, n, sizeof *j->threads, by_thread, j);
    j->first = mem_alloc(sizeof *j->first * (n + 1));
    for (size_t i = 0; i < n; i++)
        if (!i || compare_threads(j, j->threads[i - 1], j->threads[i]))
            j->first[s->n_threads++] = i;
    j->first[s->n_threads] = n;
}

static void join_threads(struct joining *j)
{
    struct stack_store *s = j->s;
    find_threads(j);
    s->threads = mem_alloc(sizeof *s->threads * (s->n_threads + 1));
    for (size_t i = 0; i < s->n_threads; i++) {
        const struct stack_disk_thread *t = thread_at(j, j->threads[j->first[i]]);
        struct stack_thread *to = &s->threads[i];
        *to = (struct stack_thread){.tid = t->tid,
            .cpu = t->cpu,
            .process = j->process_of[j->threads[j->first[i]].chunk][t->process],
            .name = "",
            .begin = t->begin,
            .end = t->end};
        for (size_t k = j->first[i]; k < j->first[i + 1]; k++) {
            t = thread_at(j, j->threads[k]);
            to->begin = t->begin < to->begin ? t->begin : to->begin;
            to->end = t->end > to->end ? t->end : to->end;
            to->rows = t->rows > to->rows ? t->rows : to->rows;
        }
        s->processes[to->process].threads++;
        to->first_row = (uint32_t)s->n_rows;
        s->n_rows += to->rows;
    }
    for (size_t i = 1; i < s->n_processes; i++)
        s->processes[i].first_thread = s->processes[i - 1].first_thread + s->processes[i - 1].threads;
}

/* ---- names ---- */

/* Joins the names of threads. Each chunk begins with the name at a thread's first event. A process is named after its
 * first thread. */
static const char *join_names(struct joining *j)
{
    struct stack_store *s = j->s;
    size_t n = 0;
    s->renames = mem_alloc(sizeof *s->renames * (count_all(s, n_renames) + 1));
    s->first_rename = mem_alloc(sizeof *s->first_rename * (s->n_threads + 1));
    for (size_t i = 0; i < s->n_threads; i++) {
        struct stack_thread *t = &s->threads[i];
        s->first_rename[i] = n;
        for (size_t k = j->first[i]; k < j->first[i + 1]; k++) {
            const struct stack_chunk *c = &s->chunks[j->threads[k].chunk];
            const struct stack_disk_thread *d = thread_at(j, j->threads[k]);
            for (uint32_t r = 0; r < d->names; r++) {
                const struct stack_disk_rename *x = &c->renames[d->first_name + r];
                const char *name = stack_text(c, x->name);
                *j->chunk = j->threads[k].chunk;
                if (n > s->first_rename[i] && x->time < s->renames[n - 1].time)
                    return "a thread's names go back to before those of the chunk before";
                if (n == s->first_rename[i] || strcmp(s->renames[n - 1].name, name) != 0)
                    s->renames[n++] = (struct stack_rename){x->time, name};
            }
        }
        if (n == s->first_rename[i])
            continue;
        t->name = s->renames[n - 1].name;
        if (t->tid >= 0 && t->tid == s->processes[t->process].pid)
            s->processes[t->process].name = t->name;
    }
    s->first_rename[s->n_threads] = n;
    return NULL;
}

/* ---- memory ---- */

/* Joins memory values. A chunk begins with the bytes held then, equal to the last value of an earlier chunk. */
static const char *join_memory(struct joining *j)
{
    struct stack_store *s = j->s;
    size_t n = 0;
    s->values = mem_alloc(sizeof *s->values * (j->n_threads + 1));
    s->first_values = mem_alloc(sizeof *s->first_values * (s->n_threads + 1));
    for (size_t i = 0; i < s->n_threads; i++) {
        s->first_values[i] = n;
        for (size_t k = j->first[i]; k < j->first[i + 1]; k++) {
            const struct stack_disk_thread *t = thread_at(j, j->threads[k]);
            if (!t->values)
                continue;
            const struct stack_disk_value *v = s->chunks[j->threads[k].chunk].memory + t->first_value;
            struct stack_values *before = n > s->first_values[i] ? &s->values[n - 1] : NULL;
            if (before && before->v[before->n - 1].time == v->time && !--before->n)
                n--;
            before = n > s->first_values[i] ? &s->values[n - 1] : NULL;
            *j->chunk = j->threads[k].chunk;
            if (before && before->v[before->n - 1].time >= v->time)
                return "a thread's memory goes back to before that of the chunk before";
            s->values[n++] = (struct stack_values){v, t->values, v->time};
        }
        s->threads[i].has_memory = n > s->first_values[i];
    }
    s->first_values[s->n_threads] = n;
    return NULL;
}

/* ---- totals and losses ---- */

static const char *join_totals(struct joining *j)
{
    struct stack_totals *to = &j->s->totals;
    int64_t lasts;
    *to = (struct stack_totals){.begin = INT64_MAX, .end = INT64_MIN};
    for (size_t i = 0; i < j->s->n_chunks; i++) {
        const struct stack_chunk *c = &j->s->chunks[i];
        const struct stack_totals *t = c->totals;
        if (c->begin <= c->end) {
            to->begin = c->begin < to->begin ? c->begin : to->begin;
            to->end = c->end > to->end ? c->end : to->end;
        }
        to->events += t->events;
        to->lost_events += t->lost_events;
        to->calls += t->calls;
        to->strange_exits += t->strange_exits;
        to->missing_exits += t->missing_exits;
        to->too_deep += t->too_deep;
        to->strange_frees += t->strange_frees;
        *j->chunk = i;
        if (to->begin <= to->end && __builtin_sub_overflow(to->end, to->begin, &lasts))
            return "the trace lasts too long";
    }
    return NULL;
}

static int by_begin(const void *pa, const void *pb)
{
    const struct stack_loss *a = pa, *b = pb;
    return order_of(a->begin, b->begin) ?: order_of(a->cpu, b->cpu) ?: order_of(a->end, b->end)
        ?: order_of(a->count, b->count);
}

/* A chunk that is missing is a loss of unknown size. */
static void join_losses(struct joining *j)
{
    struct stack_store *s = j->s;
    size_t n = count_all(s, n_losses) + s->n_chunks;
    s->losses = mem_alloc(sizeof *s->losses * (n + 1));
    for (size_t c = 0; c < s->n_chunks; c++) {
        if (c && j->v[c - 1].end < j->v[c].begin)
            s->losses[s->n_losses++] = (struct stack_loss){j->v[c - 1].end, j->v[c].begin, 0, -1};
        for (size_t i = 0; i < s->chunks[c].n_losses; i++) {
            const struct stack_disk_loss *l = &s->chunks[c].losses[i];
            int64_t end = l->end != INT64_MAX ? l->end : l->begin > s->totals.end ? l->begin : s->totals.end;
            s->losses[s->n_losses++] = (struct stack_loss){l->begin, end, l->count, l->cpu};
        }
    }
    if (s->n_losses)
        qsort(s->losses, s->n_losses, sizeof *s->losses, by_begin);
}

/* ---- the whole join ---- */

static const char *join_all(struct joining *j)
{
    const char *what = join_totals(j);
    if (what)
        return what;
    join_processes(j);
    join_threads(j);
    if (j->s->n_rows > UINT32_MAX || j->s->n_threads > UINT32_MAX)
        return "there are too many threads";
    what = join_names(j);
    what = what ? what : join_memory(j);
    what = what ? what : stack_list_rows(j->s, j->v, j->threads, j->first, j->chunk);
    if (what)
        return what;
    stack_list_functions(j->s, j->process_of);
    join_losses(j);
    return NULL;
}

const char *stack_list_join(struct stack_store *s, const struct chunk *v, size_t *chunk)
{
    struct joining j = {.s = s, .v = v, .chunk = chunk};
    const char *what = join_all(&j);
    for (size_t c = 0; j.process_of && c < s->n_chunks; c++)
        free(j.process_of[c]);
    free(j.process_of);
    free(j.threads);
    free(j.first);
    return what;
}

void stack_list_free(struct stack_store *s)
{
    free(s->processes);
    free(s->threads);
    free(s->renames);
    free(s->first_rename);
    free(s->values);
    free(s->first_values);
    stack_rows_free(s);
    free(s->functions);
    free(s->losses);
    arena_fini(&s->names);
}
