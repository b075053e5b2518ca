/* SPDX-License-Identifier: MIT */
/* Suggestions of weft spans, each with its number, its sample and examples. */
#include <math.h>
#include <stdlib.h>

#include "cli/spans.h"

void cli_advice_add(struct cli_advice *a, double ns, size_t n, size_t of)
{
    if (a->n == a->cap)
        a->v = mem_grow(a->v, &a->cap, a->n + 1, sizeof *a->v);
    a->v[a->n].end = a->text.n;
    a->v[a->n].ns = ns;
    a->v[a->n].n = n;
    a->v[a->n].of = of;
    a->v[a->n++].n_traces = 0;
}

void cli_advice_example(struct cli_advice *a, uint32_t trace)
{
    size_t *n = &a->v[a->n - 1].n_traces;
    for (size_t i = 0; i < *n; i++)
        if (a->v[a->n - 1].traces[i] == trace)
            return;
    if (*n < SPANS_EXAMPLES)
        a->v[a->n - 1].traces[(*n)++] = trace;
}

static void end(struct cli_advice *a)
{
    text_fini(&a->text);
    free(a->v);
    *a = CLI_ADVICE;
}

void cli_advice_lines(struct cli_advice *a, const struct spans *s, struct text *out)
{
    for (size_t i = 0; i < a->n; i++) {
        size_t from = i ? a->v[i - 1].end : 0;
        text_puts(out, i ? "" : "\n");
        text_put(out, a->text.v + from, a->v[i].end - from);
        for (size_t k = 0; k < a->v[i].n_traces; k++) {
            text_puts(out, k ? ", " : "; for example trace ");
            cli_spans_trace_id(out, s, a->v[i].traces[k]);
        }
        text_putc(out, '\n');
    }
    end(a);
}

void cli_advice_json(struct cli_advice *a, const struct spans *s, struct json *j)
{
    struct text id = {.fd = -1};
    json_key(j, "suggestions");
    json_array(j);
    for (size_t i = 0; i < a->n; i++) {
        size_t from = i ? a->v[i - 1].end : 0;
        json_object(j);
        json_key(j, "text");
        json_string_n(j, a->text.v + from, a->v[i].end - from);
        json_key(j, "ns");
        json_double(j, a->v[i].ns);
        json_kv_u64(j, "n", a->v[i].n);
        json_kv_u64(j, "of", a->v[i].of);
        json_key(j, "traces");
        json_array(j);
        for (size_t k = 0; k < a->v[i].n_traces; k++) {
            id.n = 0;
            cli_spans_trace_id(&id, s, a->v[i].traces[k]);
            json_string_n(j, id.v, id.n);
        }
        json_end_array(j);
        json_end_object(j);
    }
    json_end_array(j);
    text_fini(&id);
    end(a);
}

void cli_advice_factors(struct cli_advice *a, const struct spans *s, const struct spans_factors *f)
{
    enum { SHOWN = 5 };
    const struct spans_unit *units;
    spans_units(s, &units);
    for (size_t i = 0; i < f->n && i < SHOWN; i++) {
        const struct spans_factor *x = f->v + i;
        text_printf(&a->text, "%s=%s: %s takes ", spans_text(s, x->key), spans_text(s, x->value),
            x->stage ? spans_text(s, x->stage) : "the whole");
        text_duration(&a->text, llround(x->typical));
        text_printf(&a->text, " in %zu of %zu units, ", x->n, x->n + x->others);
        text_duration(&a->text, llround(x->others_typical));
        text_printf(&a->text, " in the others (p = %.2g)", x->p);
        cli_advice_add(a, x->typical - x->others_typical, x->n, x->n + x->others);
        for (size_t k = 0; k < SPANS_EXAMPLES; k++)
            cli_advice_example(a, units[x->example[k]].trace);
    }
}

void cli_factors_json(const struct spans *s, const struct spans_factors *f, struct json *j)
{
    json_key(j, "factors");
    json_array(j);
    for (size_t i = 0; i < f->n; i++) {
        const struct spans_factor *x = f->v + i;
        json_object(j);
        json_kv_string(j, "key", spans_text(s, x->key));
        json_kv_string(j, "value", spans_text(s, x->value));
        json_kv_string(j, "stage", x->stage ? spans_text(s, x->stage) : NULL);
        json_kv_u64(j, "n", x->n);
        json_kv_u64(j, "others", x->others);
        json_kv_double(j, "p50", x->typical);
        json_kv_double(j, "p50_others", x->others_typical);
        json_kv_double(j, "p", x->p);
        json_end_object(j);
    }
    json_end_array(j);
}
