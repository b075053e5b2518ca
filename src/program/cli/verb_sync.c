/* SPDX-License-Identifier: MIT */
/* weft sync: all hosts on one clock, and how well. */
#include "cli/cli.h"

#include <sys/resource.h>
#include <unistd.h>

#include "base/json.h"
#include "base/time.h"
#include "cli/sync.h"
#include "cli/traces.h"

/* Counts that LTTV makes while reading; here from the flow stores. */
struct lttv_traffic {
    uint64_t received, received_ip, received_tcp, sent_tcp;
};

static struct lttv_traffic count_traffic(const struct experiment *x)
{
    struct lttv_traffic sum = {0};
    const struct index_host *hosts;
    size_t n = index_experiment_hosts(x, &hosts);
    for (size_t i = 0; i < n; i++)
        for (size_t f = 0; hosts[i].flows && f < flow_count(hosts[i].flows); f++) {
            struct flow_key key;
            flow_key(hosts[i].flows, f, &key);
            size_t received = flow_receives(hosts[i].flows, f);
            sum.received += received;
            sum.received_ip += key.family ? received : 0;
            sum.received_tcp += key.protocol == 6 ? received : 0;
            sum.sent_tcp += key.protocol == 6 ? flow_sends(hosts[i].flows, f) : 0;
        }
    return sum;
}

static void write_time(struct text *out, const char *name, struct timeval t)
{
    text_printf(out, "\t%s time: %lld.%06ld\n", name, (long long)t.tv_sec, (long)t.tv_usec);
}

static void write_stats(const struct experiment *x, const struct clock_net *net, int64_t started, struct text *out)
{
    struct lttv_traffic t = count_traffic(x);
    text_puts(out, "Traces:\n");
    for (size_t i = 0; i < clock_net_hosts(net); i++)
        text_printf(out, "\t%zu: %s\n", i, clock_net_name(net, i));
    text_printf(out, "LTTV processing stats:\n\treceived frames: %llu\n\treceived frames that are IP: %llu\n",
        (unsigned long long)t.received, (unsigned long long)t.received_ip);
    text_printf(out, "\treceived and processed packets that are TCP: %llu\n\tsent packets that are TCP: %llu\n",
        (unsigned long long)t.received_tcp, (unsigned long long)t.sent_tcp);
    clock_net_write_stats(net, out);
    struct rusage usage;
    int64_t real_us = (time_monotonic_ns() - started) / 1000;
    getrusage(RUSAGE_SELF, &usage);
    text_puts(out, "Synchronization time:\n");
    write_time(out, "real", (struct timeval){real_us / 1000000, real_us % 1000000});
    write_time(out, "user", usage.ru_utime);
    write_time(out, "system", usage.ru_stime);
}

static uint64_t messages_between(const struct clock_net *net, size_t a, size_t b)
{
    const struct clock_pair *pairs;
    size_t n = clock_net_pairs(net, &pairs);
    for (size_t i = 0; i < n; i++)
        if ((pairs[i].a == a && pairs[i].b == b) || (pairs[i].a == b && pairs[i].b == a))
            return pairs[i].messages_ab + pairs[i].messages_ba;
    return 0;
}

/* Drift from the trace's begin to its end, offset in its middle, least and greatest error: empty for hosts without a
 * path to the reference. */
static void measured_cells(const struct clock_map *m, struct cli_table *table)
{
    if (!m->n) {
        for (int i = 0; i < 4; i++)
            cli_table_cell(table, "%s", "");
        return;
    }
    int64_t begin = m->pieces[0].begin, end = m->pieces[m->n - 1].end, middle = (int64_t)(((__int128)begin + end) / 2),
            least = INT64_MAX, worst = 0;
    for (size_t i = 0; i < m->n; i++) {
        int64_t a = m->pieces[i].error_begin, b = m->pieces[i].error_end;
        least = a < least ? a : least;
        least = b < least ? b : least;
        worst = a > worst ? a : worst;
        worst = b > worst ? b : worst;
    }
    double run = (double)end - (double)begin,
           gain = (double)((clock_to_reference(m, end) - end) - (clock_to_reference(m, begin) - begin));
    cli_table_cell(table, "%.6f", run > 0 ? gain / run * 1e6 : 0);
    cli_table_number(table, clock_to_reference(m, middle) - middle);
    cli_table_number(table, least);
    cli_table_number(table, worst);
}

static void write_csv(const struct clock_net *net, struct text *out)
{
    static const struct cli_column columns[] = {{"host", false, false}, {"reference", false, false},
        {"predecessor", false, false}, {"category", false, false}, {"drift_ppm", true, true}, {"offset_ns", true, true},
        {"error_least_ns", true, true}, {"error_worst_ns", true, true}, {"messages", true, true},
        {"drift_error_ppm", true, true}};
    struct cli_table *table = cli_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < clock_net_hosts(net); i++) {
        const struct clock_map *m = clock_net_map(net, i);
        cli_table_cell(table, "%s", clock_net_name(net, i));
        cli_table_cell(table, "%s", clock_net_name(net, m->reference));
        cli_table_cell(table, "%s", m->predecessor < 0 ? "" : clock_net_name(net, (size_t)m->predecessor));
        cli_table_cell(table, "%s", clock_category_name(m->category));
        measured_cells(m, table);
        if (m->predecessor < 0)
            cli_table_cell(table, "%s", "");
        else
            cli_table_number(table, (int64_t)messages_between(net, i, (size_t)m->predecessor));
        if (m->n)
            cli_table_cell(
                table, "%.6f", (double)clock_drift_error(m, m->pieces[0].begin, m->pieces[m->n - 1].end) * 1e6);
        else
            cli_table_cell(table, "%s", "");
    }
    cli_table_write(table, CLI_CSV, out);
    cli_table_free(table);
}

/* The table is not cut: half an offset misleads. Lines that a terminal breaks are explained. */
static void say_width(const char *table, struct text *out)
{
    size_t widest = 0;
    for (const char *s = table, *end; (end = strchr(s, '\n')); s = end + 1) {
        size_t cells = text_cells(s, (size_t)(end - s));
        widest = cells > widest ? cells : widest;
    }
    if (isatty(STDOUT_FILENO) && widest > (size_t)cli_width())
        text_printf(out, "The table takes %zu columns: widen the terminal, or give --format csv.\n", widest);
}

void cli_sync_write(const struct clock_net *net, int format, struct text *out)
{
    if (format == CLI_CSV) {
        write_csv(net, out);
    } else if (format == CLI_JSON) {
        struct json j = JSON_TO(out);
        clock_net_write_json(net, &j);
        text_putc(out, '\n');
    } else {
        clock_net_write_table(net, out, cli_color());
        say_width(text_cstr(out), out);
    }
}

static int sync_traces(char **args, size_t n, struct index_options *o, const struct cli_clocks *clocks, bool stats,
    int format, struct err *e)
{
    struct experiment *x;
    const struct clock_net *net;
    int64_t started = time_monotonic_ns();
    if (cli_open_traces(args, n, o, &x, e))
        return cli_fail(e);
    /* Notes on --trust are needed only for CSV: the other formats show its contradictions themselves. */
    int rc = format == CLI_CSV ? cli_sync(x, clocks, &net, e) : index_experiment_sync(x, &clocks->options, &net, e);
    if (rc || clock_net_relates(net, SIZE_MAX, e)) {
        index_experiment_close(x);
        return cli_fail(e);
    }
    const struct clock_pair *pairs;
    if (!clocks->no_sync && clock_net_hosts(net) > 1 && !clock_net_pairs(net, &pairs))
        cli_note("no packet that one of these hosts sent and another received was recorded; record net_dev_queue and "
                 "net_if_receive_skb on both");
    struct text out = TEXT_TO(STDOUT_FILENO);
    if (stats)
        write_stats(x, net, started, &out);
    else
        cli_sync_write(net, format, &out);
    int code = cli_finish_traces(x, &out, NULL);
    index_experiment_close(x);
    return code;
}

static int run(int argc, char **argv)
{
    const char *store = NULL, *format_name = NULL;
    bool stats = false;
    struct cli_clocks clocks = {0};
    struct cli_cluster cluster = {0};
    const struct cli_option options[] = {
        CLI_CLOCKS(&clocks),
        {"stats", 0, CLI_FLAG, NULL, "statistics of every pair in the layout of LTTV", &stats},
        {"store", 0, CLI_STRING, "DIR",
            "keep the stores below DIR (default: .weft in each trace, else the user's cache)", &store},
        CLI_CLUSTER_ASKED(&cluster),
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name},
        {0},
    };
    int n, format;
    struct err e = {0};
    int code = cli_parse(&verb_sync, options, argc, argv, &n);
    if (code >= 0)
        return code;
    struct index_options o = {.store = store, .stores = true};
    if (cli_format_parse(format_name, &format, &e) || cli_clocks_parse(&clocks, &e) ||
        cli_cluster_check(&cluster, (size_t)n, &e))
        code = cli_fail(&e);
    else if (stats && format != CLI_TABLE)
        code = cli_fail((err_set(&e, ERR_ARG, "--stats is text; leave --format away"), &e));
    else if (stats && cluster.url)
        code = cli_fail((err_set(&e, ERR_ARG, "--stats counts packets of TRACEs: leave --cluster away"), &e));
    else if (cluster.url)
        code = cli_sync_ask_cluster(&cluster, &clocks, format);
    else
        code = sync_traces(argv + 1, (size_t)n, &o, &clocks, stats, format, &e);
    cli_clocks_fini(&clocks);
    return code;
}

const struct cli_verb verb_sync = {"sync", "[TRACE…]",
    "compute clock maps of all hosts from the packets they exchanged", "weft sync examples/three-tier", run};
