/* SPDX-License-Identifier: MIT */
/* weft status: the nodes of a cluster, what each is doing, and what is missing. */
#include "cli/cli.h"

#include "base/json.h"
#include "base/time.h"
#include "cli/cluster.h"
#include "clock/clock.h"
#include "cluster/status.h"

#define PATIENCE_NS (3 * NS_PER_S) /* with nodes that do not answer */
#define CLOCKS_NS NS_PER_S

struct shown {
    const struct cluster_node_status *nodes;
    size_t n;
    const struct cluster_missing *missing;
    size_t n_missing;
};

static bool knows(const struct cluster_node_status *s)
{
    return s->state >= CLUSTER_NODE_OPENING;
}

static void empty_cells(struct cli_table *t, int n)
{
    while (n--)
        cli_table_cell(t, "%s", "");
}

/* What a node is about, in words. */
static void write_doing(const struct cluster_node_status *s, struct cli_table *t)
{
    const char *text = *s->text            ? s->text
        : s->state == CLUSTER_NODE_OPENING ? "indexes its traces"
        : knows(s) && s->load.taking       ? "fetches a trace"
                                           : "";
    cli_table_cell(t, "%s%s%s", text, *text && s->leads_clocks ? "; " : "", s->leads_clocks ? "keeps the clocks" : "");
}

static void write_nodes(const struct shown *shown, int format, struct text *out)
{
    static const struct cli_column columns[] = {{"node", false, false}, {"release", false, false},
        {"state", false, false}, {"hosts", true, true}, {"unrelated", true, true}, {"bytes", true, true},
        {"stores", true, true}, {"cpus", true, true}, {"load", true, true}, {"questions", true, true},
        {"clock", true, true}, {"clock_error", true, true}, {"free", true, true}, {"disk", false, false},
        {"doing", false, false}};
    struct cli_table *t = cli_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < shown->n; i++) {
        const struct cluster_node_status *s = &shown->nodes[i];
        cli_table_cell(t, "%s", s->name);
        cli_table_cell(t, "%s", s->release);
        cli_table_cell(t, "%s", cluster_node_state_name(s->state));
        cli_table_number(t, (int64_t)s->hosts);
        cli_table_number(t, (int64_t)s->unrelated);
        cli_table_size(t, format, s->bytes);
        cli_table_size(t, format, s->store_bytes);
        if (knows(s)) {
            cli_table_number(t, s->load.cpus);
            cli_table_cell(t, "%u.%02u", s->load.load_percent / 100, s->load.load_percent % 100);
            cli_table_number(t, (int64_t)s->load.questions);
            cli_table_duration(t, format, s->ahead_ns);
            cli_table_duration(t, format, s->error_ns);
            cli_table_size(t, format, s->disk.free_bytes);
            cli_table_cell(t, "%s", s->disk.path);
        } else {
            empty_cells(t, 7);
        }
        write_doing(s, t);
    }
    cli_table_write(t, format, out);
    cli_table_free(t);
}

static const char *kind_name(enum cluster_missing_kind kind)
{
    static const char *const names[] = {[CLUSTER_MISSING_VERSION] = "version",
        [CLUSTER_MISSING_ENTRY] = "entry",
        [CLUSTER_MISSING_OPENING] = "opening",
        [CLUSTER_MISSING_FAILED] = "failed",
        [CLUSTER_MISSING_PART] = "part"};
    return names[kind];
}

static void write_node(const struct cluster_node_status *s, struct json *j)
{
    json_begin_object(j);
    json_kv_string(j, "node", s->name);
    json_kv_string(j, "state", cluster_node_state_name(s->state));
    json_kv_string(j, "text", s->text);
    json_kv_bool(j, "keeper", s->leads_clocks);
    json_kv_u64(j, "hosts", s->hosts);
    json_kv_u64(j, "unrelated", s->unrelated);
    json_kv_u64(j, "bytes", s->bytes);
    json_kv_u64(j, "store_bytes", s->store_bytes);
    json_kv_u64(j, "events", s->events);
    if (knows(s)) {
        json_kv_string(j, "release", s->release);
        json_kv_u64(j, "cpus", s->load.cpus);
        json_kv_u64(j, "load_percent", s->load.load_percent);
        json_kv_u64(j, "questions", s->load.questions);
        json_kv_bool(j, "fetches", s->load.taking);
        json_kv_i64(j, "clock_ahead_ns", s->ahead_ns);
        json_kv_i64(j, "clock_error_ns", s->error_ns);
        json_key(j, "disk");
        json_begin_object(j);
        json_kv_string(j, "path", s->disk.path);
        json_kv_u64(j, "free_bytes", s->disk.free_bytes);
        json_kv_u64(j, "bytes", s->disk.all_bytes);
        json_end_object(j);
    }
    json_end_object(j);
}

static void write_json(const struct shown *shown, struct text *out)
{
    struct json j = JSON_TO(out);
    json_begin_object(&j);
    json_key(&j, "nodes");
    json_begin_array(&j);
    for (size_t i = 0; i < shown->n; i++)
        write_node(&shown->nodes[i], &j);
    json_end_array(&j);
    json_key(&j, "missing");
    json_begin_array(&j);
    for (size_t i = 0; i < shown->n_missing; i++) {
        json_begin_object(&j);
        json_kv_string(&j, "node", shown->missing[i].node);
        json_kv_string(&j, "kind", kind_name(shown->missing[i].kind));
        json_kv_string(&j, "text", shown->missing[i].text);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
    text_putc(out, '\n');
}

/* True: something is missing in answers now. */
static bool note_missing(const struct shown *shown)
{
    size_t silent = 0;
    for (size_t i = 0; i < shown->n_missing; i++)
        cli_note("%s", shown->missing[i].text);
    for (size_t i = 0; i < shown->n; i++)
        silent += shown->nodes[i].state == CLUSTER_NODE_AWAY;
    if (silent)
        cli_note("%zu of %zu nodes do not answer", silent, shown->n);
    return silent || shown->n_missing;
}

static int show(struct cli_cluster *cluster, int format)
{
    struct err e = {0};
    struct cli_asked a = {0};
    struct cluster_node_status *nodes;
    struct clock_options clocks = clock_defaults();
    bool stale;
    int64_t patience = PATIENCE_NS;
    int rc = cli_parse_duration("timeout", cluster->timeout, &patience, &e);
    if (!rc)
        rc = cli_cluster_connect(cluster, "weft", false, &a.bus, &e);
    if (!rc)
        rc = cluster_open(a.bus, cluster->name, &a.cluster, &e);
    if (rc) {
        cli_asked_close(&a);
        return cli_fail(&e);
    }
    /* Without clocks, as of nodes that have just begun, no host is known to be unrelated. */
    rc = cluster_sync(a.cluster, &clocks, time_monotonic_ns() + CLOCKS_NS, &stale, &e);
    struct shown shown = {.n = cluster_status(a.cluster, time_monotonic_ns() + patience, &nodes)};
    if (!shown.n && rc && rc != ERR_NOTFOUND) {
        cli_asked_close(&a);
        return cli_fail(&e);
    }
    struct text out = TEXT_TO(1);
    shown.nodes = nodes;
    shown.n_missing = cluster_missing(a.cluster, &shown.missing);
    if (format == CLI_JSON)
        write_json(&shown, &out);
    else
        write_nodes(&shown, format, &out);
    a.missing = note_missing(&shown);
    if (!shown.n)
        cli_note("cluster %s has no node: start one with `weft serve --cluster URL --node NAME TRACE…`",
            cluster->name ? cluster->name : CLUSTER_DEFAULT);
    int code = cli_asked_finish(&a, &out, false);
    cli_asked_close(&a);
    return code;
}

static int run(int argc, char **argv)
{
    struct cli_cluster cluster = {0};
    const char *format_name = NULL;
    const struct cli_option options[] = {
        CLI_CLUSTER(&cluster),
        {"timeout", 0, CLI_STRING, "TIME", "how long nodes may take to answer (default: 3s)", &cluster.timeout},
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name},
        {0},
    };
    int n, format;
    struct err e = {0};
    int code = cli_parse(&verb_status, options, argc, argv, &n);
    if (code >= 0)
        return code;
    if (cli_format_parse(format_name, &format, &e))
        return cli_fail(&e);
    if (n)
        err_set(&e, ERR_ARG, "%s: it is about the nodes of a cluster, and takes no TRACE", argv[1]);
    else if (!cluster.url)
        err_set(&e, ERR_ARG, "it is about the nodes of a cluster: give --cluster URL");
    return e.code ? cli_fail(&e) : show(&cluster, format);
}

const struct cli_verb verb_status = {"status", "", "the nodes of a cluster, what each is doing, what is missing",
    "weft status --cluster nats://broker:4222", run};
