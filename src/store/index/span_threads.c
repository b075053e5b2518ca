/* SPDX-License-Identifier: MIT */
#include "index/span_threads.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"
#include "base/time.h"
#include "graph/graph.h"
#include "index/user_marks.h"

enum { NEAR_MARKS = 8, MOST_FOREBEARS = 16, KTHREADD = 2 };
/* Linux' inode of the namespace outside of all containers (PROC_PID_INIT_INO). */
static const uint32_t FIRST_PID_NS = 0xeffffffc;

/* A stretch in which a row is known by a number: its tid, or the one that it has in its container. */
struct known {
    int32_t number, row;
    int64_t begin, end;
    uint32_t pid_ns; /* 0: not known */
    bool contained;  /* its two numbers differ */
    bool inner;      /* number inside the container */
};
struct shift {
    int64_t at, ns; /* shift of the machine's clock at that wall-clock time */
};
struct machine {
    const struct index_host *host;
    char boot[37];     /* "": not known */
    bool is_monotonic; /* clock is CLOCK_MONOTONIC, whose 0 is `epoch_ns` */
    int64_t epoch_ns;
    const struct graph_mark *marks;
    VEC(struct known) known;  /* sorted by number */
    VEC(struct shift) shifts; /* sorted by time */
};
struct marked {
    int32_t host;
    const struct graph_mark *begin, *end; /* begin or end may be NULL */
};
struct join {
    struct machine *machines;
    size_t n;
    struct map by_span; /* hash of both ids: number in `marked` */
    VEC(struct marked) marked;
    const char *last_host, *last_boot; /* names of the machine found last */
    int32_t last_machine;
};

/* ---- machines ---- */

/* LTTng identifies the clock of a kernel by its boot. */
static void write_boot(struct machine *m)
{
    struct index_far_host far = index_far_host_of(m->host);
    static const char digits[] = "0123456789abcdef";
    char *out = m->boot;
    for (size_t i = 0; m->host->is_kernel && far.clock.freq && i < sizeof far.clock.uuid; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out++ = '-';
        *out++ = digits[far.clock.uuid[i] >> 4];
        *out++ = digits[far.clock.uuid[i] & 15];
    }
}

static void know_epoch(struct machine *m)
{
    const struct ctf_clock *c;
    int64_t ns;
    m->is_monotonic = *m->boot && ctf_trace_clocks(m->host->trace, &c) && !strcmp(c->name, "monotonic") &&
        c->freq == (uint64_t)NS_PER_S && c->offset <= INT64_MAX &&
        !__builtin_mul_overflow(c->offset_s, NS_PER_S, &ns) &&
        !__builtin_add_overflow(ns, (int64_t)c->offset, &m->epoch_ns);
}

/* Takes the times that the span itself read from the machine's clock. */
static bool know_times(const struct machine *m, const struct index_span *s, int64_t *begin, int64_t *end)
{
    const int64_t most = 3600 * NS_PER_S;
    return m->is_monotonic && s->monotonic_begin > 0 && s->monotonic_end >= s->monotonic_begin && s->boot &&
        !strcmp(m->boot, s->boot) && !__builtin_add_overflow(m->epoch_ns, s->monotonic_begin, begin) &&
        !__builtin_add_overflow(m->epoch_ns, s->monotonic_end, end) && *begin > s->begin_ns - most &&
        *begin < s->begin_ns + most;
}

static bool is_called(const char *name, const char *said)
{
    size_t n = strcspn(said, ".");
    return !strcmp(name, said) || (strlen(name) == n && !strncmp(name, said, n));
}

static int32_t look_for_machine(const struct join *j, const char *host, const char *boot)
{
    for (size_t i = 0; boot && i < j->n; i++)
        if (*j->machines[i].boot && !strcmp(j->machines[i].boot, boot))
            return (int32_t)i;
    for (size_t i = 0; host && i < j->n; i++)
        if (is_called(j->machines[i].host->name, host))
            return (int32_t)i;
    return -1;
}

/* Returns the boot of the machine that was recorded at the span's time. */
static int32_t boot_then(const struct join *j, int32_t machine, const struct index_span *s)
{
    const struct index_host *first = j->machines[machine].host;
    for (size_t i = (size_t)machine; i < j->n; i++) {
        const struct index_host *h = j->machines[i].host;
        if ((h == first || !strcmp(h->name, first->name)) && s->begin_ns <= h->end && s->end_ns >= h->begin)
            return (int32_t)i;
    }
    return machine;
}

static int32_t find_machine(struct join *j, const struct index_span *s)
{
    if (s->host != j->last_host || s->boot != j->last_boot) {
        j->last_host = s->host;
        j->last_boot = s->boot;
        j->last_machine = look_for_machine(j, s->host, s->boot);
    }
    int32_t m = j->last_machine;
    bool by_boot = m >= 0 && s->boot && !strcmp(j->machines[m].boot, s->boot);
    return m < 0 || by_boot ? m : boot_then(j, m, s);
}

/* ---- threads by number ---- */

static int by_number(const void *a, const void *b)
{
    const struct known *x = a, *y = b;
    return order_of(x->number, y->number) ?: order_of(x->begin, y->begin) ?: order_of(x->row, y->row);
}

static void know_row(struct machine *m, int32_t row)
{
    const struct graph *g = m->host->graph;
    struct graph_row r;
    struct graph_name name;
    graph_row(g, row, &r);
    if (r.idle_cpu >= 0 || r.tid == KTHREADD || r.ppid == KTHREADD)
        return;
    struct known k = {.row = row, .pid_ns = r.pid_ns, .contained = r.vtid > 0 && r.vtid != r.tid, .begin = r.begin};
    for (size_t i = 0; graph_row_name(g, row, i, &name); i++) {
        k.number = name.tid;
        k.end = name.until < r.end ? name.until : r.end;
        if (i && m->known.n && m->known.v[m->known.n - 1].row == row && m->known.v[m->known.n - 1].number == k.number)
            m->known.v[m->known.n - 1].end = k.end; /* same life under another name */
        else
            vec_push(&m->known, k);
        k.begin = k.end;
    }
    if (!k.contained)
        return;
    k.inner = true;
    k.number = r.vtid;
    k.begin = r.begin;
    k.end = r.end;
    vec_push(&m->known, k);
}

static void know_threads(struct machine *m)
{
    for (size_t i = 0; i < graph_rows(m->host->graph); i++)
        know_row(m, (int32_t)i);
    if (m->known.n)
        qsort(m->known.v, m->known.n, sizeof *m->known.v, by_number);
}

/* Returns the quality of the match; 0: none. */
static int fits(const struct known *k, const struct index_span *s)
{
    if (s->pid_ns && k->pid_ns)
        return k->pid_ns == s->pid_ns && (k->inner || !k->contained) ? 4 : 0;
    if (s->pid_ns && s->pid_ns != FIRST_PID_NS && !k->inner)
        return 0;
    return !k->contained ? 3 : k->inner ? 2 : 1;
}

/* The row that has that number then: of those that fit best the one that was there longest meanwhile; of those that
 * only a number in a container speaks for, there must be one alone. */
static int32_t find_number(
    const struct machine *m, const struct index_span_thread *t, const struct index_span *s, int64_t number, uint8_t *by)
{
    const struct known *v = m->known.v, *found = NULL;
    int best = 0;
    int64_t longest = -1;
    size_t rivals = 0;
    for (size_t i = search_first(k, 0, m->known.n, v[k].number >= number); i < m->known.n && v[i].number == number;
         i++) {
        int64_t from = v[i].begin > t->begin_ns ? v[i].begin : t->begin_ns,
                to = v[i].end < t->end_ns ? v[i].end : t->end_ns;
        int fit = fits(v + i, s);
        if (from > to || fit < best || !fit)
            continue;
        rivals = fit == best ? rivals + 1 : 0;
        if (fit > best || to - from > longest) {
            longest = to - from;
            found = v + i;
        }
        best = fit;
    }
    if (!found || (best == 2 && rivals))
        return -1;
    *by = best == 4 ? INDEX_SPAN_BY_NAMESPACE : INDEX_SPAN_BY_NUMBER;
    return found->row;
}

static int32_t process_of(const struct machine *m, int32_t row)
{
    struct graph_row r;
    graph_row(m->host->graph, row, &r);
    return r.tgid > 0 ? r.tgid : r.tid;
}

static int32_t find_process(
    const struct machine *m, const struct index_span_thread *t, const struct index_span *s, uint8_t *by)
{
    uint8_t ignored;
    int32_t row = s->pid > 0 ? find_number(m, t, s, s->pid, by) : -1;
    int32_t thread = row >= 0 && s->tid > 0 && s->tid != s->pid ? find_number(m, t, s, s->tid, &ignored) : -1;
    return thread >= 0 && process_of(m, thread) == process_of(m, row) ? thread : row;
}

/* ---- marks ---- */

static uint64_t hash_of(const uint8_t trace[16], const uint8_t id[8])
{
    uint8_t both[24];
    memcpy(both, trace, 16);
    memcpy(both + 16, id, 8);
    return map_hash(both, sizeof both);
}

/* The first of each kind counts. */
static void take_marks(struct join *j, int32_t host, const struct graph_mark *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool fresh;
        uint64_t *number = map_put(&j->by_span, hash_of(v[i].trace, v[i].span), &fresh);
        if (fresh) {
            *number = j->marked.n;
            vec_push(&j->marked, ((struct marked){.host = host}));
        }
        struct marked *m = &j->marked.v[*number];
        const struct graph_mark **which = v[i].is_end ? &m->end : &m->begin;
        if (m->host == host && !*which)
            *which = v + i;
    }
}

static const struct marked *find_marks(const struct join *j, const struct index_span *s)
{
    uint64_t id = __builtin_bswap64(s->id);
    const uint64_t *number = map_find(&j->by_span, hash_of(s->trace_id, (const uint8_t *)&id));
    const struct marked *m = number ? &j->marked.v[*number] : NULL;
    const struct graph_mark *one = !m ? NULL : m->begin ? m->begin : m->end;
    return one && !memcmp(one->trace, s->trace_id, 16) && !memcmp(one->span, &id, 8) ? m : NULL;
}

static bool has_number(const struct graph_row *r, int32_t number)
{
    bool contained = r->vtid > 0 && r->vtid != r->tid;
    return contained ? r->vtid == number : r->tid == number || r->tgid == number;
}

/* Finds the process of the mark: the writer itself, or one of its ancestors. If no number fits (numbers in containers
 * are not always recorded), the writer has the span if its command has another number than the mark, which is so below
 * `run`; below `start` its parent has it. */
static int32_t holder_of(const struct graph *g, const struct graph_mark *m, int64_t pid)
{
    struct graph_row writer, r;
    if (m->row < 0)
        return -1;
    graph_row(g, m->row, &writer);
    r = writer;
    for (int32_t row = m->row, i = 0; row >= 0 && i < MOST_FOREBEARS; row = r.parent_row, i++) {
        graph_row(g, row, &r);
        if (m->process && has_number(&r, m->process))
            return row;
    }
    return pid && pid != m->process ? m->row : writer.parent_row;
}

static void learn_shift(struct join *j, const struct index_span *s)
{
    const struct marked *m = j->marked.n ? find_marks(j, s) : NULL;
    int32_t host = m ? m->host : s->monotonic_begin ? find_machine(j, s) : -1;
    int64_t begin, end;
    if (m && m->begin)
        vec_push(&j->machines[host].shifts, ((struct shift){s->begin_ns, m->begin->ts - s->begin_ns}));
    else if (host >= 0 && know_times(&j->machines[host], s, &begin, &end))
        vec_push(&j->machines[host].shifts, ((struct shift){s->begin_ns, begin - s->begin_ns}));
}

static int by_time(const void *a, const void *b)
{
    const struct shift *x = a, *y = b;
    return order_of(x->at, y->at) ?: order_of(x->ns, y->ns);
}

static int64_t shift_at(const struct machine *m, int64_t t)
{
    const struct shift *v = m->shifts.v;
    size_t at = search_first(i, 0, m->shifts.n, v[i].at >= t), from = at > NEAR_MARKS / 2 ? at - NEAR_MARKS / 2 : 0;
    from = m->shifts.n >= NEAR_MARKS && from > m->shifts.n - NEAR_MARKS ? m->shifts.n - NEAR_MARKS : from;
    int64_t least = m->shifts.n ? INT64_MAX : 0;
    for (size_t i = from; i < m->shifts.n && i < from + NEAR_MARKS; i++)
        least = v[i].ns < least ? v[i].ns : least;
    return least;
}

/* ---- joining ---- */

static void count_shift(struct index_span_clock *c, size_t *how, int64_t ns)
{
    bool first = !c->marked && !c->monotonic;
    c->least_ns = first || ns < c->least_ns ? ns : c->least_ns;
    c->most_ns = first || ns > c->most_ns ? ns : c->most_ns;
    ++*how;
}

static void join_span(
    struct join *j, const struct index_span *s, struct index_span_thread *out, struct index_span_clock *clocks)
{
    const struct marked *m = find_marks(j, s);
    *out = (struct index_span_thread){.host = m ? m->host : find_machine(j, s),
        .row = -1,
        .said_begin_ns = s->begin_ns,
        .said_end_ns = s->end_ns,
        .begin_ns = s->begin_ns,
        .end_ns = s->end_ns};
    if (out->host < 0)
        return;
    const struct machine *machine = &j->machines[out->host];
    int64_t begin = 0, end = 0;
    bool known = !(m && m->begin) && know_times(machine, s, &begin, &end);
    out->begin_ns += m && m->begin ? m->begin->ts - s->begin_ns : shift_at(machine, s->begin_ns);
    out->end_ns += m && m->end ? m->end->ts - s->end_ns
        : m && m->begin        ? m->begin->ts - s->begin_ns
                               : shift_at(machine, s->end_ns);
    if (known) {
        out->begin_ns = begin;
        out->end_ns = end;
        count_shift(&clocks[out->host], &clocks[out->host].monotonic, begin - s->begin_ns);
    }
    out->end_ns = out->end_ns < out->begin_ns ? out->begin_ns : out->end_ns;
    if (m && m->begin) {
        count_shift(&clocks[out->host], &clocks[out->host].marked, m->begin->ts - s->begin_ns);
        out->row = holder_of(machine->host->graph, m->begin, s->pid);
        out->by = out->row >= 0 ? INDEX_SPAN_BY_MARK : INDEX_SPAN_NOWHERE;
    }
    if (out->row < 0)
        out->row = find_process(machine, out, s, &out->by);
}

static void open_machines(struct join *j, const struct experiment *x, const struct index_host *hosts)
{
    const struct graph_mark *marks;
    for (size_t i = 0; i < j->n; i++) {
        struct machine *m = &j->machines[i];
        m->host = &hosts[i];
        write_boot(m);
        know_epoch(m);
        if (!m->host->graph)
            continue;
        know_threads(m);
        size_t n = graph_marks(m->host->graph, &marks);
        take_marks(j, (int32_t)i, marks, n);
        n = index_experiment_user_marks(x, i, &marks);
        take_marks(j, (int32_t)i, marks, n);
    }
}

void index_join_spans(const struct experiment *x, const struct index_span *spans, size_t n, struct index_joined *out)
{
    const struct index_host *hosts = NULL;
    const size_t n_hosts = x ? index_experiment_hosts(x, &hosts) : 0;
    struct join j = {.machines = mem_zalloc((n_hosts + 1) * sizeof *j.machines), .n = n_hosts, .last_machine = -1};
    out->threads = mem_zalloc((n + 1) * sizeof *out->threads);
    out->clocks = mem_zalloc((n_hosts + 1) * sizeof *out->clocks);
    open_machines(&j, x, hosts);
    for (size_t i = 0; i < n; i++)
        learn_shift(&j, spans + i);
    for (size_t i = 0; i < n_hosts; i++)
        if (j.machines[i].shifts.n)
            qsort(j.machines[i].shifts.v, j.machines[i].shifts.n, sizeof *j.machines[i].shifts.v, by_time);
    for (size_t i = 0; i < n; i++)
        join_span(&j, spans + i, &out->threads[i], out->clocks);
    for (size_t i = 0; i < n_hosts; i++) {
        vec_free(&j.machines[i].known);
        vec_free(&j.machines[i].shifts);
    }
    vec_free(&j.marked);
    map_fini(&j.by_span);
    free(j.machines);
}

void index_joined_fini(struct index_joined *x)
{
    free(x->threads);
    free(x->clocks);
}

/* Interpolates the shift between those of begin and end. */
int64_t index_span_time(const struct index_span_thread *t, int64_t said_ns)
{
    int64_t first = t->begin_ns - t->said_begin_ns, last = t->end_ns - t->said_end_ns;
    if (said_ns <= t->said_begin_ns || t->said_end_ns <= t->said_begin_ns)
        return said_ns + first;
    if (said_ns >= t->said_end_ns)
        return said_ns + last;
    double part = (double)(said_ns - t->said_begin_ns) / (double)(t->said_end_ns - t->said_begin_ns);
    return said_ns + first + (int64_t)(part * (double)(last - first));
}
