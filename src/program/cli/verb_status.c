/* SPDX-License-Identifier: MIT */
/* weft status: the nodes of a cluster, what each is doing, and what is missing. */
#include "cli/cli.h"

#include "base/time.h"
#include "cli/cluster.h"
#include "cli/nodes.h"

#define PATIENCE_NS (3 * NS_PER_S) /* timeout for nodes that do not answer */

static void empty_cells(struct cli_table *t, int n)
{
    while (n--)
        cli_table_cell(t, "%s", "");
}

/* Writes a node's activity in words. */
static void write_doing(const struct cluster_node_status *s, struct cli_table *t)
{
    const char *text = *s->text               ? s->text
        : s->state == CLUSTER_NODE_OPENING    ? "indexes its traces"
        : cli_node_knows(s) && s->load.taking ? "fetches a trace"
                                              : "";
    cli_table_cell(t, "%s%s%s", text, *text && s->leads_clocks ? "; " : "", s->leads_clocks ? "keeps the clocks" : "");
}

static void write_nodes(const struct cli_nodes *nodes, int format, struct text *out)
{
    static const struct cli_column columns[] = {{"node", false, false}, {"release", false, false},
        {"state", false, false}, {"hosts", true, true}, {"unrelated", true, true}, {"bytes", true, true},
        {"stores", true, true}, {"cpus", true, true}, {"load", true, true}, {"questions", true, true},
        {"clock", true, true}, {"clock_error", true, true}, {"free", true, true}, {"disk", false, false},
        {"doing", false, false}};
    struct cli_table *t = cli_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < nodes->n; i++) {
        const struct cluster_node_status *s = &nodes->v[i];
        cli_table_cell(t, "%s", s->name);
        cli_table_cell(t, "%s", s->release);
        cli_table_cell(t, "%s", cluster_node_state_name(s->state));
        cli_table_number(t, (int64_t)s->hosts);
        cli_table_number(t, (int64_t)s->unrelated);
        cli_table_size(t, format, s->bytes);
        cli_table_size(t, format, s->store_bytes);
        if (cli_node_knows(s)) {
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

/* True: something is missing in answers now. */
static bool note_missing(const struct cli_nodes *nodes)
{
    size_t silent = 0;
    for (size_t i = 0; i < nodes->n_missing; i++)
        cli_note("%s", nodes->missing[i].text);
    for (size_t i = 0; i < nodes->n; i++)
        silent += nodes->v[i].state == CLUSTER_NODE_AWAY;
    if (silent)
        cli_note("%zu of %zu nodes do not answer", silent, nodes->n);
    return silent || nodes->n_missing;
}

static int show(struct cli_cluster *cluster, int format)
{
    struct err e = {0};
    struct cli_asked a = {0};
    struct cli_nodes nodes = {0};
    int64_t patience = PATIENCE_NS;
    int rc = cli_parse_duration("timeout", cluster->timeout, &patience, &e);
    if (!rc)
        rc = cli_cluster_connect(cluster, "weft", false, &a.bus, &e);
    if (!rc)
        rc = cli_nodes_ask(a.bus, cluster->name, patience, &nodes, &e);
    a.cluster = nodes.cluster; /* closed with the rest */
    if (rc) {
        cli_asked_close(&a);
        return cli_fail(&e);
    }
    struct text out = TEXT_TO(1);
    if (format == CLI_JSON) {
        cli_nodes_write_json(&nodes, &out);
        text_putc(&out, '\n');
    } else {
        write_nodes(&nodes, format, &out);
    }
    a.missing = note_missing(&nodes);
    if (!nodes.n)
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
        {"timeout", 0, CLI_STRING, "TIME", "timeout of the nodes' answers (default: 3s)", &cluster.timeout},
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
        err_set(&e, ERR_ARG, "%s: takes no TRACE, it queries a cluster", argv[1]);
    else if (!cluster.url)
        err_set(&e, ERR_ARG, "--cluster URL is missing");
    return e.code ? cli_fail(&e) : show(&cluster, format);
}

const struct cli_verb verb_status = {"status", "", "the nodes of a cluster, what each is doing, what is missing",
    "weft status --cluster nats://broker:4222", run};
