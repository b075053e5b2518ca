/* SPDX-License-Identifier: MIT */
/* Kinds of rows: the same service and name, and values of some attributes. */
#include <stdlib.h>
#include <string.h>

#include "span/spans.h"

static uint32_t number_of(struct spans_kinds *k, const struct spans_kind *kind)
{
    size_t bytes = offsetof(struct spans_kind, n);
    for (uint64_t key = map_hash(kind, bytes);; key++) {
        bool fresh;
        uint64_t *number = map_put(&k->numbers, key, &fresh);
        if (fresh) {
            *number = k->v.n;
            vec_push(&k->v, *kind);
        } else if (memcmp(k->v.v + *number, kind, bytes) != 0) {
            continue;
        }
        return (uint32_t)*number;
    }
}

void spans_kinds_make(const struct spans *s, const struct spans_by *by, struct spans_kinds *k)
{
    struct spans_kind last = {0};
    uint32_t trace = UINT32_MAX, of_trace[SPANS_BY] = {0};
    *k = (struct spans_kinds){.of = mem_alloc((s->rows.n + 1) * sizeof *k->of)};
    for (size_t i = 0; i < s->rows.n; i++) {
        const struct spans_row *r = s->rows.v + i;
        struct spans_kind kind = {.service = r->service, .name = r->name};
        for (size_t b = 0; by && b < by->n; b++) {
            if (r->trace != trace)
                of_trace[b] = spans_trace_value(s, s->traces.v + r->trace, by->keys[b]);
            kind.by[b] = spans_own_value(s, r, by->keys[b]) ?: of_trace[b];
        }
        trace = r->trace;
        bool same = i && !memcmp(&kind, &last, offsetof(struct spans_kind, n));
        k->of[i] = same ? k->of[i - 1] : number_of(k, &kind);
        k->v.v[k->of[i]].n++;
        last = kind;
    }
}

void spans_kinds_fini(struct spans_kinds *k)
{
    vec_free(&k->v);
    free(k->of);
    map_fini(&k->numbers);
}

void spans_kinds_rows(const struct spans_kinds *k, size_t rows, uint32_t **out, size_t **begin)
{
    size_t at = 0;
    *begin = mem_zalloc((k->v.n + 2) * sizeof **begin);
    *out = mem_alloc((rows + 1) * sizeof **out);
    for (size_t i = 0; i < k->v.n; i++) { /* begins are one place late, and filling corrects them */
        (*begin)[i + 1] = at;
        at += k->v.v[i].n;
    }
    for (size_t i = 0; i < rows; i++)
        (*out)[(*begin)[k->of[i] + 1]++] = (uint32_t)i;
}
