/* SPDX-License-Identifier: MIT */
#include "cli/requests.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/json.h"
#include "cli/cli.h"
#include "graph/graph.h"
#include "show/show.h"

enum { GROUPS_SHOWN = 12 }; /* limit for people */

/* Facts about a request, for all formats. */
struct line {
    const struct served_request *is;
    struct request_client client;
    struct request_told told;
    int32_t tid, client_tid;
    const char *comm, *client_comm;
};

static const char *host_of(const struct requests_shown *s, int32_t host)
{
    const struct path_source *source = path_local_source(s->local);
    return source->host_name(source->arg, host);
}

/* The thread, and its name when it ended. */
static void name_at(const struct requests_shown *s, struct path_row row, int64_t ts, int32_t *tid, const char **comm)
{
    const struct path_source *source = path_local_source(s->local);
    source->row_name(source->arg, row, ts, ts, tid, comm);
}

static void line_init(struct line *l, const struct requests_shown *s, size_t i)
{
    l->is = path_requests_get(s->found, i);
    path_requests_client(s->found, i, &l->client);
    path_request_groups_tell(s->groups, i, &l->told);
    name_at(s, l->is->thread, l->is->end, &l->tid, &l->comm);
    name_at(s, l->client.thread, l->client.begin, &l->client_tid, &l->client_comm);
}

static void line_fini(struct line *l)
{
    free(l->told.machines);
}

/* ---- JSON ---- */

static void json_client(struct json *j, const struct requests_shown *s, const struct line *l)
{
    const struct request_client *c = &l->client;
    json_key(j, "client");
    if (!c->recorded) {
        json_string(j, c->address);
        return;
    }
    json_object(j);
    json_kv_string(j, "host", host_of(s, c->thread.host));
    json_kv_i64(j, "tid", l->client_tid);
    json_kv_string(j, "comm", l->client_comm);
    json_kv_i64(j, "begin", c->begin);
    json_key(j, "end");
    c->end == INT64_MIN ? json_null(j) : json_i64(j, c->end);
    json_end_object(j);
}

static void json_request(struct json *j, const struct requests_shown *s, const struct line *l)
{
    json_object(j);
    json_kv_string(j, "host", host_of(s, l->is->thread.host));
    json_kv_i64(j, "tid", l->tid);
    json_kv_string(j, "comm", l->comm);
    json_client(j, s, l);
    json_kv_bool(j, "local", l->client.local);
    json_kv_i64(j, "begin", l->is->begin);
    json_kv_i64(j, "end", l->is->end);
    json_key(j, "bytes");
    json_array(j);
    json_u64(j, l->is->bytes_in);
    json_u64(j, l->is->bytes_out);
    json_end_array(j);
    json_key(j, "machines");
    json_array(j);
    for (size_t i = 0; i < l->told.n_machines; i++)
        json_string(j, host_of(s, l->told.machines[i]));
    json_end_array(j);
    json_key(j, "group");
    l->told.group < 0 ? json_null(j) : json_i64(j, l->told.group + 1);
    json_end_object(j);
}

static void json_part(struct json *j, const struct requests_shown *s, const struct request_part *p)
{
    json_kv_string(j, "host", host_of(s, p->host));
    json_kv_string(j, "comm", p->comm);
    json_kv_string(j, "state", graph_state_name(p->state));
    if (p->another)
        json_kv_bool(j, "another", true);
}

static void json_group(struct json *j, const struct requests_shown *s, size_t i)
{
    const struct request_group *g = path_request_groups_get(s->groups, i);
    json_object(j);
    json_kv_u64(j, "id", i + 1);
    json_kv_string(j, "host", host_of(s, g->server.host));
    json_kv_string(j, "comm", g->server.comm);
    json_kv_u64(j, "count", g->count);
    json_kv_i64(j, "p50", g->p50);
    json_kv_i64(j, "p90", g->p90);
    json_kv_i64(j, "p99", g->p99);
    json_kv_i64(j, "max", g->max);
    json_key(j, "shape");
    json_array(j);
    for (size_t k = 0; k < g->n_shape; k++) {
        json_object(j);
        json_part(j, s, &g->shape[k]);
        json_end_object(j);
    }
    json_end_array(j);
    json_key(j, "grew");
    json_array(j);
    for (size_t k = 0; k < g->n_grew; k++) {
        json_object(j);
        json_part(j, s, &g->grew[k].part);
        json_kv_i64(j, "typical", g->grew[k].typical);
        json_kv_i64(j, "slow", g->grew[k].slow);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

static void write_json(const struct requests_shown *s, struct text *out)
{
    struct json j = JSON_TO(out);
    json_object(&j);
    json_key(&j, "requests");
    json_array(&j);
    for (size_t i = 0; i < s->n; i++) {
        struct line l;
        line_init(&l, s, i);
        json_request(&j, s, &l);
        line_fini(&l);
    }
    json_end_array(&j);
    json_key(&j, "groups");
    json_array(&j);
    for (size_t i = 0; i < path_request_groups_count(s->groups); i++)
        json_group(&j, s, i);
    json_end_array(&j);
    json_kv_u64(&j, "found", path_requests_count(s->found));
    json_kv_u64(&j, "looked", path_request_groups_looked(s->groups));
    json_end_object(&j);
    text_putc(out, '\n');
}

/* ---- tables ---- */

static void thread_cell(
    struct cli_table *t, const struct requests_shown *s, int32_t host, int32_t tid, const char *comm)
{
    if (tid < 0)
        cli_table_cell(t, "%s", host_of(s, host));
    else
        cli_table_cell(t, "%s:%" PRId32 " %s", host_of(s, host), tid, comm);
}

static void machines_cell(struct cli_table *t, const struct requests_shown *s, const struct line *l)
{
    struct text names = {.fd = -1};
    for (size_t i = 0; i < l->told.n_machines; i++)
        text_printf(&names, "%s%s", i ? " " : "", host_of(s, l->told.machines[i]));
    cli_table_text(t, &names);
    text_fini(&names);
}

static void group_cell(struct cli_table *t, const struct line *l)
{
    if (l->told.group < 0)
        cli_table_cell(t, "%s", "");
    else
        cli_table_number(t, l->told.group + 1);
}

static void write_csv(const struct requests_shown *s, struct text *out)
{
    static const struct cli_column columns[] = {{"host", false, false}, {"tid", true, true}, {"comm", false, false},
        {"client", false, false}, {"client_tid", true, true}, {"client_comm", false, false},
        {"client_begin", true, true}, {"client_end", true, true}, {"local", false, false}, {"begin", true, true},
        {"end", true, true}, {"bytes_in", true, true}, {"bytes_out", true, true}, {"machines", false, false},
        {"group", true, true}};
    struct cli_table *t = cli_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < s->n; i++) {
        struct line l;
        line_init(&l, s, i);
        const struct request_client *c = &l.client;
        bool thread = c->recorded && l.client_tid >= 0;
        cli_table_cell(t, "%s", host_of(s, l.is->thread.host));
        cli_table_number(t, l.tid);
        cli_table_cell(t, "%s", l.comm);
        cli_table_cell(t, "%s", c->recorded ? host_of(s, c->thread.host) : c->address);
        thread ? cli_table_number(t, l.client_tid) : cli_table_cell(t, "%s", "");
        cli_table_cell(t, "%s", thread ? l.client_comm : "");
        c->recorded ? cli_table_number(t, c->begin) : cli_table_cell(t, "%s", "");
        c->recorded && c->end != INT64_MIN ? cli_table_number(t, c->end) : cli_table_cell(t, "%s", "");
        cli_table_cell(t, "%s", c->local ? "true" : "false");
        cli_table_number(t, l.is->begin);
        cli_table_number(t, l.is->end);
        cli_table_number(t, (int64_t)l.is->bytes_in);
        cli_table_number(t, (int64_t)l.is->bytes_out);
        machines_cell(t, s, &l);
        group_cell(t, &l);
        line_fini(&l);
    }
    cli_table_write(t, CLI_CSV, out);
    cli_table_free(t);
}

static void write_slowest(const struct requests_shown *s, struct text *out)
{
    static const struct cli_column columns[] = {{"begin", true, true}, {"took", true, true}, {"server", false, false},
        {"client", false, false}, {"in", true, true}, {"out", true, true}, {"machines", false, false},
        {"group", true, true}};
    struct cli_table *t = cli_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < s->n; i++) {
        struct line l;
        line_init(&l, s, i);
        struct text when = {.fd = -1};
        int64_t since = (int64_t)((uint64_t)l.is->begin - (uint64_t)s->first);
        text_puts(&when, since < 0 ? "" : "+");
        text_duration(&when, since);
        cli_table_text(t, &when);
        cli_table_duration(t, CLI_TABLE, request_duration(l.is));
        thread_cell(t, s, l.is->thread.host, l.tid, l.comm);
        if (l.client.recorded)
            thread_cell(t, s, l.client.thread.host, l.client_tid, l.client_comm);
        else
            cli_table_cell(t, "%s", l.client.address);
        cli_table_number(t, (int64_t)l.is->bytes_in);
        cli_table_number(t, (int64_t)l.is->bytes_out);
        machines_cell(t, s, &l);
        group_cell(t, &l);
        text_fini(&when);
        line_fini(&l);
    }
    cli_table_write(t, CLI_TABLE, out);
    cli_table_free(t);
}

/* ---- groups for people ---- */

static void cell_of(struct cli_table *t, const struct requests_shown *s, const struct request_group *g,
    void (*show)(struct request_groups *, const struct request_group *, struct text *))
{
    struct text words = {.fd = -1};
    show(s->groups, g, &words);
    cli_table_text(t, &words);
    text_fini(&words);
}

static void write_groups(const struct requests_shown *s, struct text *out)
{
    static const struct cli_column columns[] = {{"group", true, true}, {"server", false, false}, {"count", true, true},
        {"p50", true, true}, {"p90", true, true}, {"p99", true, true}, {"max", true, true}, {"path", false, false},
        {"grew in the slow ones", false, false}};
    struct cli_table *t = cli_table_new(columns, sizeof columns / sizeof *columns);
    size_t n = path_request_groups_count(s->groups), shown = n < GROUPS_SHOWN ? n : GROUPS_SHOWN;
    for (size_t i = 0; i < shown; i++) {
        const struct request_group *g = path_request_groups_get(s->groups, i);
        cli_table_number(t, (int64_t)i + 1);
        cli_table_cell(t, "%s %s", host_of(s, g->server.host), g->server.comm);
        cli_table_number(t, (int64_t)g->count);
        cli_table_duration(t, CLI_TABLE, g->p50);
        cli_table_duration(t, CLI_TABLE, g->p90);
        cli_table_duration(t, CLI_TABLE, g->p99);
        cli_table_duration(t, CLI_TABLE, g->max);
        cell_of(t, s, g, show_request_shape);
        cell_of(t, s, g, show_request_growth);
    }
    cli_table_write(t, CLI_TABLE, out);
    cli_table_free(t);
    if (shown < n)
        cli_note("%zu more groups; --format json shows all", n - shown);
}

static void write_table(const struct requests_shown *s, struct text *out)
{
    write_slowest(s, out);
    if (!path_requests_count(s->found))
        return;
    text_putc(out, '\n');
    write_groups(s, out);
    const struct served_request *slowest = path_requests_get(s->found, 0);
    int32_t tid;
    const char *comm;
    name_at(s, slowest->thread, slowest->end, &tid, &comm);
    text_printf(out,
        "Try: weft critpath TRACE… --thread %s:%" PRId32 " --begin %" PRId64 " --end %" PRId64 " --request%s%s\n",
        host_of(s, slowest->thread.host), tid, slowest->begin, slowest->end, s->reference ? " --reference " : "",
        s->reference ? s->reference : "");
}

void cli_requests_write(const struct requests_shown *s, int format, struct text *out)
{
    if (format == CLI_JSON)
        write_json(s, out);
    else if (format == CLI_CSV)
        write_csv(s, out);
    else
        write_table(s, out);
}
