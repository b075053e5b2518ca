/* The one pass over a trace that feeds all its stores: reading, counting, and what is written when it is over. */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pool.h"
#include "index/stores.h"

uint64_t index_stream_bytes(const struct ctf_trace *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ctf_trace_streams(t); i++) {
        struct ctf_stream_info s;
        ctf_trace_stream(t, i, &s);
        sum += s.bytes;
    }
    return sum;
}

/* Of a batch: times of its events, which are counted, and losses. */
static size_t take_times(const struct ctf_event *ev, size_t n, int64_t *times, struct index_totals *sum)
{
    int64_t begin = sum->begin, end = sum->end;
    size_t events = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t ts = ev[i].ts;
        if (__builtin_expect(ev[i].cls->item == CTF_EVENT, 1)) {
            times[events++] = ts;
            end = ts > end ? ts : end;
            begin = ts < begin ? ts : begin;
        } else if (ev[i].cls->item == CTF_LOST_EVENTS) {
            sum->lost_events += ((const struct ctf_loss *)(const void *)ev[i].data)->count;
        }
    }
    sum->begin = begin;
    sum->end = end;
    sum->events += events;
    return events;
}

/* Bytes of the trace that are done, judged by time. */
struct share {
    int64_t begin;
    double span; /* ns */
    uint64_t bytes, reported;
};

static void report(struct share *s, struct progress *progress, int64_t ts)
{
    double share = s->span > 0 ? ((double)ts - (double)s->begin) / s->span : 1;
    uint64_t now = share < 0 ? 0 : share > 1 ? s->bytes : (uint64_t)(share * (double)s->bytes);
    if (now > s->reported + (s->bytes >> 8)) {
        progress_add(progress, now - s->reported);
        s->reported = now;
    }
}

/* Some 100 000 to 500 000 events, which take less than a second. */
enum { BATCHES_PER_SIGN = 1024 };

static int feed_all(struct index_pass *p, struct ctf_merge *merge, struct err *e)
{
    const struct index_options *o = p->options;
    const struct ctf_trace *t = p->files->trace;
    struct ctf_event *batch = mem_alloc(sizeof *batch * p->batch);
    struct share share = {.bytes = index_stream_bytes(t)};
    int64_t end = 0;
    uint64_t batches = 0;
    int rc = 0;
    ctf_trace_span(t, &share.begin, &end);
    share.span = (double)end - (double)share.begin;
    for (size_t n; !rc && (n = ctf_merge_next(merge, batch, p->batch)) > 0;) {
        int64_t times[INDEX_MOST_BATCH];
        size_t events = take_times(batch, n, times, &p->totals);
        rc = p->feed(p->arg, batch, n, times, events, e);
        if (o->tell && events)
            o->tell(o->tell_arg, t, events, p->totals.begin, p->totals.end);
        types_builder_add(p->types, batch, n);
        report(&share, o->progress, batch[n - 1].ts);
        if (++batches % BATCHES_PER_SIGN == 0 && p->files->lock >= 0)
            index_lock_alive(p->files->lock);
    }
    progress_add(o->progress, share.bytes - share.reported);
    if (p->totals.begin > p->totals.end)
        p->totals.begin = p->totals.end = share.begin;
    free(batch);
    return rc;
}

int index_pass_read(struct index_pass *p, struct err *e)
{
    struct ctf_source source = {.trace = (struct ctf_trace *)p->files->trace};
    const struct ctf_problem *found;
    struct ctf_merge *merge;
    int rc = ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, e);
    if (rc)
        return rc;
    p->totals = (struct index_totals){.begin = INT64_MAX, .end = INT64_MIN};
    p->problems = (struct text){.fd = -1};
    p->types = types_builder_new(p->files->trace);
    ctf_merge_count(merge);
    rc = feed_all(p, merge, e);
    rc = rc ? rc : ctf_merge_intact(merge, e);
    size_t n = ctf_merge_problems(merge, &found);
    for (size_t i = 0; i < n; i++)
        text_printf(&p->problems, "%llu %s\n", (unsigned long long)found[i].count, found[i].text);
    ctf_merge_free(merge);
    return rc;
}

/* ---- writing ---- */

struct pass_writer {
    struct index_pass *pass;
    struct err errors[INDEX_MOST_STORES + 1]; /* the last: of the store of packets */
};

static void write_one(void *arg, size_t i)
{
    struct pass_writer *w = arg;
    struct index_pass *p = w->pass;
    if (i < p->n_stores)
        p->write(p->arg, i, p, &w->errors[i]);
    else
        index_counts_write(p->files, p->types, &w->errors[i]);
}

int index_pass_write(struct index_pass *p, struct err *e)
{
    struct pass_writer w = {.pass = p};
    const char *manifest = p->files->path[INDEX_MANIFEST];
    if (unlink(manifest) && errno != ENOENT)
        return err_sys(e, "%s", manifest);
    pool_run(p->n_stores + 1, 0, write_one, &w); /* none needs another */
    for (size_t i = 0; i <= p->n_stores; i++)
        if (w.errors[i].code) {
            *e = w.errors[i];
            return e->code;
        }
    return index_manifest_write(p->files,
        &(struct index_manifest){.totals = p->totals, .problems = p->problems.v, .n_problems = p->problems.n}, e);
}

void index_pass_fini(struct index_pass *p)
{
    types_builder_free(p->types);
    text_fini(&p->problems);
}
