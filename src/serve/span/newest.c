/* SPDX-License-Identifier: MIT */
#include "span/newest.h"

#include <string.h>

/* ---- heap ---- */

static bool is_newer(const struct newest_span *a, const struct newest_span *b)
{
    return a->begin_ns != b->begin_ns ? a->begin_ns > b->begin_ns : a->number > b->number;
}

void newest_push(struct newest *heap, struct newest_span f)
{
    vec_push(&heap->v, f);
    struct newest_span *v = heap->v.v;
    size_t i = heap->v.n - 1;
    for (; i && is_newer(&f, &v[(i - 1) / 2]); i = (i - 1) / 2)
        v[i] = v[(i - 1) / 2];
    v[i] = f;
}

struct newest_span newest_pop(struct newest *heap)
{
    struct newest_span *v = heap->v.v;
    const struct newest_span top = v[0], last = v[--heap->v.n];
    size_t i = 0, n = heap->v.n;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && is_newer(&v[child + 1], &v[child]);
        if (!is_newer(&v[child], &last))
            break;
        v[i] = v[child];
    }
    v[i] = last;
    return top;
}

/* ---- wanted terms ---- */

static void want(struct newest_wanted *w, const char *key, const char *text)
{
    if (text) {
        uint64_t term = span_term(key, strlen(key), text, strlen(text));
        vec_push(&w->v, ((struct span_wanted){term, term}));
    }
}

void newest_want(struct newest_wanted *w, const struct span_query *q)
{
    want(w, SPAN_TERM_SERVICE, q->service);
    want(w, SPAN_TERM_NAME, q->name);
    for (size_t i = 0; i < q->n_wanted && w->v.n < NEWEST_MOST_WANTED; i++)
        vec_push(&w->v, q->wanted[i]);
}

void newest_note(void *having, uint64_t term)
{
    struct newest_having *h = having;
    for (size_t i = 0; i < h->wanted->v.n; i++)
        if (term == h->wanted->v.v[i].term || term == h->wanted->v.v[i].any)
            h->bits |= UINT64_C(1) << i;
}

bool newest_is_search(const struct span_query *q)
{
    return q->newest_first && q->by_time && !q->trace_id && !q->any_order && !q->limit && (q->n_wanted || !q->service);
}
