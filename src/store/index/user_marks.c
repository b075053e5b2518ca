/* SPDX-License-Identifier: MIT */
#include "index/user_marks.h"

#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "index/experiment.h"
#include "index/stores.h"
#include "kernel/kernel.h"

enum { BATCH = 512 };

struct marks {
    struct graph_mark *v;
    size_t n, cap;
};
struct user_marks {
    pthread_mutex_t lock;  /* guards all below */
    struct marks *of_host; /* NULL: nobody has asked yet */
    size_t n;
};

struct user_marks *index_experiment_user_marks_new(void)
{
    struct user_marks *m = mem_zalloc(sizeof *m);
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

void index_experiment_user_marks_free(struct user_marks *m)
{
    for (size_t i = 0; i < m->n; i++)
        free(m->of_host[i].v);
    free(m->of_host);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

/* ---- marks of one trace ---- */

/* Fields with the text, by class; mode 0: another event. NULL: it has none of them. */
static struct ctf_access *find_texts(const struct ctf_trace *t)
{
    const struct ctf_event_class *const *classes;
    size_t n = ctf_trace_classes(t, &classes), found = 0;
    struct ctf_access *texts = mem_zalloc((n + 1) * sizeof *texts);
    for (size_t i = 0; i < n; i++)
        if (classes[i]->item == CTF_EVENT && !strcmp(classes[i]->name, "lttng_ust_tracef:event"))
            found += ctf_access_find(classes[i], CTF_PAYLOAD, "msg", &texts[i]);
    if (found)
        return texts;
    free(texts);
    return NULL;
}

static void take_mark(struct marks *out, const char *text, size_t n, int64_t ts)
{
    struct kernel_mark m;
    struct graph_mark mark = {.ts = ts, .row = -1};
    if (!kernel_read_mark(text, n, &m))
        return;
    memcpy(mark.trace, m.trace, sizeof mark.trace);
    memcpy(mark.span, m.span, sizeof mark.span);
    mark.process = m.process;
    mark.is_end = m.is_end;
    vec_push(out, mark);
}

static void read_marks(const struct experiment *x, size_t source, struct marks *out)
{
    struct ctf_source s = {.trace = x->traces.v[source].trace};
    struct ctf_access *texts = find_texts(s.trace);
    struct ctf_event batch[BATCH];
    struct ctf_merge *merge = NULL;
    struct err ignored = {0}; /* unreadable data gives no marks; it is reported where the trace is read */
    if (texts && !ctf_merge_new(&s, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, &ignored)) {
        for (size_t n; (n = ctf_merge_next(merge, batch, BATCH)) > 0;)
            for (size_t i = 0; i < n; i++) {
                const struct ctf_access *text = &texts[batch[i].cls->index];
                size_t length = 0;
                const char *v = text->mode ? ctf_read_string(&batch[i], text, &length) : NULL;
                if (v)
                    take_mark(out, v, length, batch[i].ts);
            }
        ctf_merge_free(merge);
    }
    free(texts);
}

/* ---- marks of a host ---- */

size_t index_experiment_user_marks(const struct experiment *x, size_t host, const struct graph_mark **out)
{
    struct user_marks *marks = x->user_marks;
    pthread_mutex_lock(&marks->lock);
    if (!marks->of_host) {
        marks->of_host = mem_zalloc((x->hosts.n + 1) * sizeof *marks->of_host);
        marks->n = x->hosts.n;
        for (size_t i = 0; i < x->traces.n; i++)
            if (!x->traces.v[i].is_kernel)
                read_marks(x, i, &marks->of_host[x->traces.v[i].host]);
    }
    pthread_mutex_unlock(&marks->lock);
    *out = marks->of_host[host].v;
    return marks->of_host[host].n;
}
