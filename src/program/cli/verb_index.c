/* SPDX-License-Identifier: MIT */
/* weft index: builds the stores that the analyses read. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/time.h"
#include "cli/spread.h"
#include "cli/traces.h"
#include "stack/stack.h"

struct done {
    uint64_t events; /* events of stores built now */
    bool any_built;
};

static void add_done(struct cli_table *t, struct done *done, bool built, uint64_t events, const char *dir)
{
    cli_table_cell(t, "%s", built ? "built" : "up to date");
    cli_table_cell(t, "%s", dir);
    done->events += built ? events : 0;
    done->any_built |= built;
}

static void add_kernel_traces(struct cli_table *t, const struct experiment *x, struct done *done)
{
    const struct index_host *hosts;
    size_t n = index_experiment_hosts(x, &hosts);
    for (size_t i = 0; i < n; i++) {
        size_t packets = 0;
        if (!hosts[i].graph)
            continue;
        for (size_t f = 0; f < flow_count(hosts[i].flows); f++)
            packets += flow_sends(hosts[i].flows, f) + flow_receives(hosts[i].flows, f);
        cli_table_cell(t, "%s", hosts[i].name);
        cli_table_cell(t, "kernel");
        cli_table_number(t, (int64_t)hosts[i].events);
        cli_table_number(t, (int64_t)hosts[i].lost_events);
        cli_table_number(t, (int64_t)graph_rows(hosts[i].graph));
        cli_table_number(t, (int64_t)packets);
        cli_table_number(t, 0);
        add_done(t, done, hosts[i].built, hosts[i].events, hosts[i].store_dir);
    }
}

static void add_user_traces(struct cli_table *t, const struct experiment *x, struct done *done)
{
    const struct index_host *hosts;
    const struct index_trace *traces;
    size_t n = index_experiment_traces(x, &traces);
    index_experiment_hosts(x, &hosts);
    for (size_t i = 0; i < n; i++) {
        if (!traces[i].stacks)
            continue;
        const struct stack_totals *totals = stack_totals(traces[i].stacks);
        cli_table_cell(t, "%s", hosts[traces[i].host].name);
        cli_table_cell(t, "user");
        cli_table_number(t, (int64_t)totals->events);
        cli_table_number(t, (int64_t)totals->lost_events);
        cli_table_number(t, (int64_t)stack_threads(traces[i].stacks));
        cli_table_number(t, 0);
        cli_table_number(t, (int64_t)totals->calls);
        add_done(t, done, traces[i].built, totals->events, traces[i].store_dir);
    }
}

struct unit {
    const char *name;
    uint64_t is;
};
static const struct unit sizes[] = {
    {"K", UINT64_C(1) << 10}, {"M", UINT64_C(1) << 20}, {"G", UINT64_C(1) << 30}, {"T", UINT64_C(1) << 40}, {NULL, 0}};
static const struct unit ages[] = {{"s", NS_PER_S}, {"m", UINT64_C(60) * NS_PER_S}, {"h", UINT64_C(3600) * NS_PER_S},
    {"d", UINT64_C(86400) * NS_PER_S}, {"w", UINT64_C(604800) * NS_PER_S}, {NULL, 0}};

/* A number, maybe with a fraction, and a unit right behind it. */
static int parse_quantity(const char *option, const char *text, const struct unit *units, uint64_t *out, struct err *e)
{
    char *end;
    double n = strtod(text, &end);
    const struct unit *u = units;
    while (u->name && strcmp(u->name, end) != 0)
        u++;
    if (!text_is_digit(*text) || !u->name || n * (double)u->is < 1 || n * (double)u->is >= 0x1p63)
        return err_set(e, ERR_ARG, "%s: %s is not a number and a unit, as in 2%s or 1.5%s", option, text, units[1].name,
            units[2].name);
    *out = (uint64_t)(n * (double)u->is);
    return 0;
}

static int index_here(char **traces, size_t n, struct index_options *o, int format)
{
    struct experiment *x;
    struct err e = {0};
    int64_t start = time_monotonic_ns();
    if (cli_open_traces(traces, n, o, &x, &e))
        return cli_fail(&e);
    double seconds = (double)(time_monotonic_ns() - start) / 1e9;

    struct done done = {0};
    static const struct cli_column columns[] = {{"host", false, false}, {"domain", false, false},
        {"events", true, true}, {"lost", true, true}, {"threads", true, true}, {"packets", true, true},
        {"calls", true, true}, {"done", false, false}, {"store", false, false}};
    struct cli_table *table = cli_table_new(columns, 9);
    add_kernel_traces(table, x, &done);
    add_user_traces(table, x, &done);
    struct text out = TEXT_TO(1);
    cli_table_write(table, format, &out);
    cli_table_free(table);
    if (done.any_built)
        cli_note("%llu events indexed in %.2f s (%.1f M events/s)", (unsigned long long)done.events, seconds,
            (double)done.events / seconds / 1e6);
    int code = cli_finish_traces(x, &out, NULL);
    index_experiment_close(x);
    return code;
}

/* Checks options that are for nodes only, or for this machine only. */
static int check_place(struct cli_spread *spread, bool has_own, struct err *e)
{
    if (!spread->share && !spread->forget && cli_is_setting(&spread->cluster.url))
        spread->cluster.url = NULL; /* setting for verbs that query */
    if (!spread->cluster.url && (spread->share || spread->forget))
        return err_set(
            e, ERR_ARG, "%s is for the nodes of a cluster: give --cluster URL", spread->share ? "--share" : "--forget");
    if (spread->cluster.url && has_own)
        return err_set(
            e, ERR_ARG, "--store, --threads and --memory are each node's own affair: with --cluster they say nothing");
    return 0;
}

static int run(int argc, char **argv)
{
    bool force = false;
    int64_t threads = 0;
    const char *store = NULL, *format_name = NULL, *memory = NULL, *keep = NULL;
    struct cli_spread spread = {0};
    const struct cli_option options[] = {
        {"store", 0, CLI_STRING, "DIR",
            "keep the stores below DIR (default: .weft in each trace, else the user's cache)", &store},
        {"force", 'f', CLI_FLAG, NULL, "rebuild everything", &force},
        {"threads", 'j', CLI_INT, "N", "hosts indexed at once (default: number of CPUs)", &threads, .least = 1,
            .most = 1024},
        {"memory", 0, CLI_STRING, "SIZE",
            "how much memory building may take, of all traces together, as 512M or 2G (default: a quarter)", &memory},
        {"keep", 0, CLI_STRING, "AGE",
            "delete chunks that end more than this before the recording's end, as 7d, 12h or 30m", &keep},
        CLI_CLUSTER(&spread.cluster),
        {"share", 0, CLI_STRING, "DIR",
            "with --cluster: a shared directory, by its path on this machine; the nodes index the TRACEs "
            "below it, or all of it, and keep them open",
            &spread.share},
        {"forget", 0, CLI_FLAG, NULL, "with --cluster: make the nodes close these TRACEs; stores stay", &spread.forget},
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name},
        {0},
    };
    int n, format;
    struct err e = {0};
    int code = cli_parse(&verb_index, options, argc, argv, &n);
    if (code >= 0)
        return code;
    struct index_options o = {.store = store,
        .stores = true,
        .user_space = true,
        .join = true,
        .force = force,
        .threads = threads > 0 ? (unsigned)threads : 0};
    if (cli_format_parse(format_name, &format, &e) ||
        (memory && parse_quantity("--memory", memory, sizes, &o.memory, &e)) ||
        (keep && parse_quantity("--keep", keep, ages, &o.keep_ns, &e)) ||
        check_place(&spread, store || memory || threads, &e))
        return cli_fail(&e);
    if (!spread.cluster.url)
        return index_here(argv + 1, (size_t)n, &o, format);
    spread.format = format;
    spread.force = force;
    spread.keep_ns = o.keep_ns;
    code = cli_spread_index(&spread, argv + 1, (size_t)n);
    return code;
}

const struct cli_verb verb_index = {"index", "TRACE…", "builds the stores that the analyses read (only what changed)",
    "weft index examples/three-tier", run};
