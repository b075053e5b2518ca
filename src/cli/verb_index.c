/* weft index: builds the stores that the analyses read. */
#include "cli/cli.h"

#include <string.h>

#include "base/progress.h"
#include "base/time.h"
#include "cli/traces.h"

static int run(int argc, char **argv)
{
    bool force = false;
    int64_t threads = 0;
    const char *store = NULL, *format_name = NULL;
    const struct cli_option options[] = {
        {"store", 0, CLI_STRING, "DIR", "keep the stores below DIR (default: .weft in each trace, else the user's cache)", &store},
        {"force", 'f', CLI_FLAG, NULL, "build again what is already there", &force},
        {"threads", 'j', CLI_INT, "N", "hosts indexed at once (default: number of CPUs)", &threads},
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name},
        {0},
    };
    int n, format;
    struct err e = {0};
    int code = cli_parse(&verb_index, options, argc, argv, &n);
    if (code >= 0)
        return code;
    if (cli_format_parse(format_name, &format, &e))
        return cli_fail(&e);
    struct experiment *x;
    int64_t start = time_monotonic_ns();
    struct index_options o = {.store = store, .stores = true, .force = force, .threads = threads > 0 ? (unsigned)threads : 0};
    if (cli_open_traces(argv + 1, (size_t)n, &o, &x, &e))
        return cli_fail(&e);
    double seconds = (double)(time_monotonic_ns() - start) / 1e9;

    const struct index_host *hosts;
    size_t count = experiment_hosts(x, &hosts);
    uint64_t events = 0;
    bool any_built = false;
    static const struct cli_column columns[] = {{"host", false, false}, {"events", true, true}, {"lost", true, true},
        {"threads", true, true}, {"packets", true, true}, {"done", false, false}, {"store", false, false}};
    struct cli_table *table = cli_table_new(columns, 7);
    for (size_t i = 0; i < count; i++) {
        if (!hosts[i].graph)
            continue;
        size_t packets = 0;
        for (size_t f = 0; f < flow_count(hosts[i].flows); f++)
            packets += flow_sends(hosts[i].flows, f) + flow_receives(hosts[i].flows, f);
        cli_table_cell(table, "%s", hosts[i].name);
        cli_table_cell(table, "%llu", (unsigned long long)hosts[i].events);
        cli_table_cell(table, "%llu", (unsigned long long)hosts[i].lost_events);
        cli_table_cell(table, "%zu", graph_rows(hosts[i].graph));
        cli_table_cell(table, "%zu", packets);
        cli_table_cell(table, "%s", hosts[i].built ? "built" : "up to date");
        cli_table_cell(table, "%s", hosts[i].store_dir);
        events += hosts[i].built ? hosts[i].events : 0;
        any_built |= hosts[i].built;
    }
    struct text out = TEXT_TO(1);
    cli_table_write(table, format, &out);
    cli_table_free(table);
    if (any_built)
        cli_note("%llu events indexed in %.2f s (%.1f M events/s)", (unsigned long long)events, seconds, (double)events / seconds / 1e6);
    experiment_close(x);
    return cli_finish(&out, CLI_OK);
}

const struct cli_verb verb_index = {
    "index", "TRACE…", "builds the stores that the analyses read (only what changed)", "weft index traces/three-tier", run};
