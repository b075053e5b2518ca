/* SPDX-License-Identifier: MIT */
/* Walk of a critical path over all hosts, or over one alone. The walk can be stopped. */
#include "views/critical_view.h"

/* ---- source restricted to one host ---- */

struct lens {
    struct path_source source;
    const struct path_source *inner;
    int32_t only;
};
enum { STEPS_AT_A_TIME = 1 << 14 }; /* takes some ms */

static enum path_reply lens_life(void *arg, struct path_row row, int64_t *begin, int64_t *end)
{
    const struct lens *l = arg;
    return l->inner->life(l->inner->arg, row, begin, end);
}

static enum path_reply lens_interval(
    void *arg, struct path_row row, int64_t ts, int64_t bound, struct path_interval *out)
{
    const struct lens *l = arg;
    if (l->only >= 0 && row.host != l->only)
        return PATH_REPLY_NONE;
    return l->inner->interval(l->inner->arg, row, ts, bound, out);
}

static void lens_tell_preempted(void *arg, struct path_row row, struct path_interval *iv)
{
    const struct lens *l = arg;
    if (l->inner->describe_preempted)
        l->inner->describe_preempted(l->inner->arg, row, iv);
}

static void lens_cause(
    void *arg, struct path_row row, const struct path_interval *iv, int64_t bound, bool origin, struct path_cause *out)
{
    const struct lens *l = arg;
    *out = (struct path_cause){.kind = PATH_CAUSE_NONE, .reason = PATH_NO_WAKER};
    l->inner->cause(l->inner->arg, row, iv, bound, origin, out);
    if (l->only == CRITICAL_ASKING_FAR && out->kind == PATH_CAUSE_NONE && out->reason == PATH_UNTRACED_PEER)
        *out = (struct path_cause){.kind = PATH_CAUSE_PENDING, .reason = PATH_PENDING, .label = out->label};
    if (l->only >= 0 && out->kind == PATH_CAUSE_NETWORK && out->from.host != l->only)
        *out = (struct path_cause){.kind = PATH_CAUSE_PENDING,
            .reason = PATH_PENDING,
            .label = l->inner->host_name(l->inner->arg, out->from.host)};
}

static const char *lens_host_name(void *arg, int32_t host)
{
    const struct lens *l = arg;
    return l->inner->host_name(l->inner->arg, host);
}

static void lens_row_name(void *arg, struct path_row row, int64_t begin, int64_t end, int32_t *tid, const char **comm)
{
    const struct lens *l = arg;
    l->inner->row_name(l->inner->arg, row, begin, end, tid, comm);
}

struct critical_view *critical_walk(const struct views *x, const size_t *hosts, size_t n_hosts,
    const struct critical_question *q, int32_t only, const atomic_bool *stop, struct err *e)
{
    const struct path_source *inner = q->assume_polling ? path_local_source_assuming(x->paths)
                                                        : path_local_source(x->paths);
    struct lens l = {
        {&l, lens_life, lens_interval, lens_tell_preempted, lens_cause, lens_host_name, lens_row_name}, inner, only};
    struct path_options o = {.begin = q->begin, .end = q->end, .request = q->request};
    struct path_query *query = path_query_new(&l.source, q->row, &o);
    int rc = PATH_MORE;
    while (rc == PATH_MORE && !atomic_load_explicit(stop, memory_order_relaxed)) {
        rc = mem_check("computing the path", e);
        if (!rc)
            rc = path_query_run(query, STEPS_AT_A_TIME, e);
    }
    struct path *path = rc < 0 ? NULL : path_query_answer(query);
    path_query_free(query);
    if (!path)
        return NULL;
    return critical_view_new(x, hosts, n_hosts, inner, path);
}
