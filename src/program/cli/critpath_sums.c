/* SPDX-License-Identifier: MIT */
#include "cli/critpath_sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "cli/cli.h"
#include "graph/graph.h"

static int by_duration(const void *pa, const void *pb)
{
    const struct critpath_sum *a = pa, *b = pb;
    return order_of(b->duration, a->duration) ?: strcmp(a->host, b->host) ?: strcmp(a->name, b->name)
                                              ?: a->state - b->state;
}

static bool is_of(const struct critpath_sum *a, const struct critpath_sum *b)
{
    return a->state == b->state && !strcmp(a->host, b->host) && !strcmp(a->name, b->name);
}

static const char *kept(struct critpath_sums *s, const char *name)
{
    return strings_get(&s->names, strings_intern(&s->names, name, strlen(name)));
}

static void add(struct critpath_sums *s, const struct critpath_sum *x)
{
    const struct map_piece key[] = {
        {x->host, strlen(x->host)}, {x->name, strlen(x->name)}, {&x->state, sizeof x->state}};
    uint64_t hash[2];
    map_hash_pieces(key, 3, hash);
    for (uint64_t at = hash[0];; at++) {
        bool fresh;
        uint64_t *number = map_put(&s->numbers, at, &fresh);
        if (fresh) {
            *number = s->v.n;
            vec_push(&s->v, *x);
            s->v.v[*number].host = kept(s, x->host);
            s->v.v[*number].name = kept(s, x->name);
            return;
        }
        if (is_of(s->v.v + *number, x)) {
            s->v.v[*number].duration += x->duration;
            s->v.v[*number].network += x->network;
            return;
        }
    }
}

void cli_critpath_sums_add(struct critpath_sums *s, const struct path_source *source, const struct path *p)
{
    for (size_t i = 0; i < p->n_totals; i++) {
        const struct path_total *total = &p->totals[i];
        int32_t tid;
        struct critpath_sum x = {.host = source->host_name(source->arg, total->row.host),
            .state = s->by_container ? 0 : total->state,
            .duration = total->duration,
            .network = total->state == GRAPH_NETWORK ? total->duration : 0};
        if (s->by_container)
            x.name = source->container(source->arg, total->row);
        else
            source->row_name(source->arg, total->row, p->end, p->end, &tid, &x.name);
        add(s, &x);
    }
    s->duration += p->end - p->begin;
    s->paths++;
}

/* Numbers of the map are those of before from then on: nothing is added any more. */
static void sort(struct critpath_sums *s)
{
    if (s->v.n)
        qsort(s->v.v, s->v.n, sizeof *s->v.v, by_duration);
}

static double percent_of(const struct critpath_sums *s, const struct critpath_sum *x)
{
    return s->duration > 0 ? 100.0 * (double)x->duration / (double)s->duration : 0.0;
}

void cli_critpath_sums_write(struct critpath_sums *s, int format, bool each, struct text *out)
{
    const bool by_container = s->by_container;
    struct cli_column columns[6] = {{"host", false, false}, {by_container ? "container" : "comm", false, false}};
    size_t n = 2;
    if (!by_container)
        columns[n++] = (struct cli_column){"state", false, false};
    columns[n++] = (struct cli_column){"duration", true, true};
    if (each)
        columns[n++] = (struct cli_column){"each", true, true};
    columns[n++] = (struct cli_column){"percent", true, true};
    if (by_container)
        columns[n++] = (struct cli_column){"network", true, true};
    sort(s);
    struct cli_table *t = cli_table_new(columns, n);
    for (size_t i = 0; i < s->v.n; i++) {
        const struct critpath_sum *x = s->v.v + i;
        cli_table_cell(t, "%s", x->host);
        cli_table_cell(t, "%s", by_container && !*x->name && format == CLI_TABLE ? "(no container)" : x->name);
        if (!by_container)
            cli_table_cell(t, "%s", graph_state_name(x->state));
        cli_table_duration(t, format, x->duration);
        if (each)
            cli_table_duration(t, format, x->duration / (int64_t)s->paths);
        cli_table_cell(t, "%.1f", percent_of(s, x));
        if (by_container)
            cli_table_duration(t, format, x->network);
    }
    cli_table_write(t, format, out);
    cli_table_free(t);
}

void cli_critpath_sums_json(struct critpath_sums *s, struct json *j)
{
    sort(s);
    json_begin_array(j);
    for (size_t i = 0; i < s->v.n; i++) {
        const struct critpath_sum *x = s->v.v + i;
        json_begin_object(j);
        json_kv_string(j, "host", x->host);
        if (s->by_container) {
            json_kv_string(j, "container", *x->name ? x->name : NULL);
            json_kv_i64(j, "network", x->network);
        } else {
            json_kv_string(j, "comm", x->name);
            json_kv_string(j, "state", graph_state_name(x->state));
        }
        json_kv_i64(j, "duration", x->duration);
        json_kv_i64(j, "each", x->duration / (int64_t)s->paths);
        json_kv_double(j, "percent", percent_of(s, x));
        json_end_object(j);
    }
    json_end_array(j);
}

/* ---- two beside each other ---- */

/* Means of a path. */
struct compared {
    struct critpath_sum is;
    int64_t a, b;
};
struct pairs {
    VEC(struct compared) v;
};

static int by_difference(const void *px, const void *py)
{
    const struct compared *x = px, *y = py;
    return order_of(llabs(y->b - y->a), llabs(x->b - x->a)) ?: by_duration(&x->is, &y->is);
}

static int64_t mean(const struct critpath_sums *s, const struct critpath_sum *x)
{
    return x->duration / (int64_t)s->paths;
}

/* Names are borrowed from both. */
static struct pairs pair(const struct critpath_sums *a, const struct critpath_sums *b)
{
    struct pairs p = {0};
    for (size_t i = 0; i < a->v.n; i++)
        vec_push(&p.v, ((struct compared){.is = a->v.v[i], .a = mean(a, &a->v.v[i])}));
    for (size_t i = 0; i < b->v.n; i++) {
        size_t k = 0;
        while (k < a->v.n && !is_of(&a->v.v[k], &b->v.v[i]))
            k++;
        if (k == a->v.n) {
            k = p.v.n;
            vec_push(&p.v, ((struct compared){.is = b->v.v[i]}));
        }
        p.v.v[k].b = mean(b, &b->v.v[i]);
    }
    for (size_t i = 0; i < p.v.n; i++)
        p.v.v[i].is.duration = 0; /* duration of one of the sets, irrelevant here */
    if (p.v.n)
        qsort(p.v.v, p.v.n, sizeof *p.v.v, by_difference);
    return p;
}

void cli_critpath_sums_compared_write(
    const struct critpath_sums *a, const struct critpath_sums *b, int format, struct text *out)
{
    static const struct cli_column columns[] = {{"host", false, false}, {"comm", false, false}, {"state", false, false},
        {"a", true, true}, {"b", true, true}, {"difference", true, true}};
    struct pairs p = pair(a, b);
    struct cli_table *t = cli_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < p.v.n; i++) {
        const struct compared *x = p.v.v + i;
        cli_table_cell(t, "%s", x->is.host);
        cli_table_cell(t, "%s", x->is.name);
        cli_table_cell(t, "%s", graph_state_name(x->is.state));
        cli_table_duration(t, format, x->a);
        cli_table_duration(t, format, x->b);
        cli_table_duration(t, format, x->b - x->a);
    }
    cli_table_write(t, format, out);
    cli_table_free(t);
    vec_free(&p.v);
}

void cli_critpath_sums_compared_json(const struct critpath_sums *a, const struct critpath_sums *b, struct json *j)
{
    struct pairs p = pair(a, b);
    json_begin_array(j);
    for (size_t i = 0; i < p.v.n; i++) {
        const struct compared *x = p.v.v + i;
        json_begin_object(j);
        json_kv_string(j, "host", x->is.host);
        json_kv_string(j, "comm", x->is.name);
        json_kv_string(j, "state", graph_state_name(x->is.state));
        json_kv_i64(j, "a", x->a);
        json_kv_i64(j, "b", x->b);
        json_end_object(j);
    }
    json_end_array(j);
    vec_free(&p.v);
}

void cli_critpath_sums_fini(struct critpath_sums *s)
{
    vec_free(&s->v);
    map_fini(&s->numbers);
    strings_fini(&s->names);
}
