/* What weft spans suggests: each with its number, its sample and examples. */
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
