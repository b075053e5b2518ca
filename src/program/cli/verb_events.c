/* SPDX-License-Identifier: MIT */
/* weft events: the events of all traces in one order, as text, JSON lines or CSV. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/progress.h"
#include "base/time.h"
#include "cli/traces.h"
#include "events/events.h"

enum { BATCH = 1024, DRAIN_BYTES = 192 * 1024, MAX_LOSS_NOTES = 100 };

struct request {
    const char *format, *begin, *end, *where, *store;
    struct cli_list names, columns;
    int64_t cpu, tid, limit;
    bool sync;
    struct cli_clocks clocks;
};

/* Open data of the verb. */
struct session {
    struct experiment *x;
    struct ctf_source *sources;
    size_t n;
    const char **hosts; /* indexed by source */
    enum ctf_print_format format;
    struct ctf_window window;
    struct event_table *table; /* table for the filter */
    struct event_filter *filter;
    struct event_lines *lines; /* chosen columns; NULL: `print` writes */
    struct ctf_merge *merge;
    struct ctf_print *print;
    uint64_t shown, read, losses;
};

/* ---- opening ---- */

static int parse_format(const char *s, enum ctf_print_format *out, struct err *e)
{
    static const char *const names[] = {[CTF_PRINT_TEXT] = "text", [CTF_PRINT_JSON] = "json", [CTF_PRINT_CSV] = "csv"};
    *out = CTF_PRINT_TEXT;
    for (int i = 0; s && i < 3; i++)
        if (strcmp(s, names[i]) == 0) {
            *out = (enum ctf_print_format)i;
            return ERR_OK;
        }
    return s ? err_set(e, ERR_ARG, "--format %s: give text, json or csv", s) : ERR_OK;
}

static void take_sources(struct session *s)
{
    const struct ctf_source *sources;
    const struct index_host *hosts;
    s->n = index_experiment_sources(s->x, &sources);
    index_experiment_hosts(s->x, &hosts);
    s->sources = mem_alloc(sizeof *s->sources * (s->n + 1));
    s->hosts = mem_zalloc(sizeof *s->hosts * (s->n + 1));
    for (size_t i = 0; i < s->n; i++) {
        s->sources[i] = sources[i];
        s->hosts[i] = hosts[index_experiment_source_host(s->x, i)].name;
    }
}

/* Times on the reference host's clock from here on. */
static int put_on_one_clock(const struct request *q, struct session *s, struct err *e)
{
    const struct clock_net *net;
    int r = cli_sync(s->x, &q->clocks, &net, e);
    if (r == ERR_OK)
        r = clock_net_relates(net, SIZE_MAX, e);
    for (size_t i = 0; r == ERR_OK && i < s->n; i++) {
        const struct clock_map *map = clock_net_map(net, (size_t)index_experiment_source_host(s->x, i));
        if (map->n && map->predecessor < 0)
            continue;
        if (map->n) {
            s->sources[i].map = clock_map_times;
            s->sources[i].map_arg = (void *)map;
        } else {
            cli_note("%s: no messages relate its clock to the reference; its own clock is shown", s->hosts[i]);
        }
    }
    return r;
}

/* Returns the time of the first event: packets may have been opened long before. */
static int first_time(const struct session *s, int64_t *first, struct err *e)
{
    struct ctf_merge *m;
    struct ctf_event ev;
    int r = ctf_merge_new(s->sources, s->n, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, e);
    if (r != ERR_OK)
        return r;
    size_t n;
    while ((n = ctf_merge_next(m, &ev, 1)) > 0 && ev.cls->item != CTF_EVENT)
        ;
    *first = n ? ev.ts : 0;
    ctf_merge_free(m);
    return ERR_OK;
}

/* Returns the end of the last packet, which is at or after its last event. */
static int64_t last_time(const struct session *s)
{
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < s->n; i++) {
        int64_t begin, end;
        if (!ctf_trace_span(s->sources[i].trace, &begin, &end))
            continue;
        if (s->sources[i].map)
            s->sources[i].map(s->sources[i].map_arg, &end, 1);
        last = end > last ? end : last;
    }
    return last;
}

static int parse_window(const struct request *q, struct session *s, struct err *e)
{
    struct cli_span span = {.last = last_time(s)};
    s->window = (struct ctf_window){INT64_MIN, INT64_MAX};
    int r = q->begin || q->end ? first_time(s, &span.first, e) : ERR_OK;
    return r ? r : cli_parse_window(q->begin, q->end, &span, &s->window.begin, &s->window.end, e);
}

static void note_doubt(void *arg, const char *option, const char *text)
{
    cli_note("--%s%s %s", option, strcmp(option, "names") ? ":" : "", text);
}

static void open_table(struct session *s)
{
    struct event_origin *origins = mem_zalloc(sizeof *origins * (s->n + 1));
    for (size_t i = 0; i < s->n; i++)
        origins[i].host = s->hosts[i];
    s->table = events_table_new(s->sources, origins, s->n);
    free(origins);
}

static int open_lines(const struct request *q, struct session *s, struct err *e)
{
    const char *const *columns = q->columns.v;
    int r = events_lines_new(s->table, columns, q->columns.n, s->format == CTF_PRINT_JSON, s->window, &s->lines, e);
    if (r != ERR_OK)
        return err_wrap(e, "--columns");
    events_column_doubts(s->table, columns, q->columns.n, note_doubt, NULL);
    return ERR_OK;
}

static int open_filter(const struct request *q, struct session *s, struct err *e)
{
    struct event_filter_options o = {q->names.v, q->names.n, q->cpu, q->tid, q->where};
    int r = events_filter_new(s->table, &o, s->window, &s->filter, e);
    if (r != ERR_OK)
        return q->where ? err_wrap(e, "--where") : r;
    events_doubts(s->table, &o, note_doubt, NULL);
    return ERR_OK;
}

static int open_session(const struct request *q, char **args, size_t n, struct session *s, struct err *e)
{
    bool sync = (q->sync || q->clocks.reference || q->clocks.trust.n) && !cli_clocks_apart(&q->clocks);
    struct index_options o = {.store = q->store, .stores = sync};
    int r = parse_format(q->format, &s->format, e);
    if (r == ERR_OK && q->columns.n && s->format == CTF_PRINT_TEXT)
        r = err_set(e, ERR_ARG, "--columns: the text has all fields; give --format csv or json with it");
    if (r == ERR_OK)
        r = cli_open_traces(args, n, &o, &s->x, e);
    if (r != ERR_OK)
        return r;
    take_sources(s);
    if (sync)
        r = put_on_one_clock(q, s, e);
    if (r == ERR_OK)
        r = parse_window(q, s, e);
    bool filtered = q->names.n || q->cpu >= 0 || q->tid >= 0 || q->where;
    if (r == ERR_OK && (filtered || q->columns.n))
        open_table(s);
    if (r == ERR_OK && filtered)
        r = open_filter(q, s, e);
    if (r == ERR_OK && q->columns.n)
        r = open_lines(q, s, e);
    if (r == ERR_OK)
        r = ctf_merge_new(s->sources, s->n, s->window, -1, &s->merge, e);
    if (r != ERR_OK)
        return r;
    s->print = ctf_print_new(s->sources, s->n, s->format);
    for (size_t i = 0; i < s->n; i++)
        ctf_print_host(s->print, i, s->hosts[i]);
    return ERR_OK;
}

static void close_session(struct session *s)
{
    ctf_print_free(s->print);
    if (s->merge)
        ctf_merge_free(s->merge);
    events_lines_free(s->lines);
    events_filter_free(s->filter);
    events_table_free(s->table);
    free(s->sources);
    free(s->hosts);
    if (s->x)
        index_experiment_close(s->x);
}

/* ---- reading ---- */

static void put_clock_time(struct text *t, int64_t ns)
{
    text_putc(t, '[');
    time_write_seconds(t, ns);
    text_putc(t, ']');
}

static void note_loss(struct session *s, const struct ctf_event *ev)
{
    if (++s->losses > MAX_LOSS_NOTES)
        return;
    const struct ctf_loss *loss = (const void *)ev->data;
    const char *host = s->hosts[ctf_merge_source(s->merge, ev->stream)];
    struct text t = {.fd = -1};
    text_printf(&t, "%s: ", host);
    if (ev->cpu >= 0)
        text_printf(&t, "CPU %d: ", (int)ev->cpu);
    text_printf(&t, "%llu %s%s lost", (unsigned long long)loss->count,
        ev->cls->item == CTF_LOST_EVENTS ? "event" : "packet", loss->count == 1 ? "" : "s");
    if (loss->begin_known && loss->end_known) {
        text_puts(&t, " between ");
        put_clock_time(&t, loss->begin);
        text_puts(&t, " and ");
        put_clock_time(&t, loss->end);
    } else if (loss->end_known) {
        text_puts(&t, " before ");
        put_clock_time(&t, loss->end);
    }
    cli_note("%s", text_cstr(&t));
    text_fini(&t);
}

/* Writes the output, but nothing that was printed while a file was cut off. */
static int write_out(const struct session *s, struct text *out, struct err *e)
{
    int r = ctf_merge_intact(s->merge, e);
    if (r != ERR_OK) {
        out->n = 0;
        return r;
    }
    return text_drain(out, 0, e);
}

static int show_all(struct session *s, uint64_t limit, struct text *out, struct err *e)
{
    struct ctf_event batch[BATCH];
    struct progress *progress = isatty(STDOUT_FILENO) ? NULL : progress_new("events");
    int r = ERR_OK;
    s->lines ? events_lines_header(s->lines, out) : ctf_print_header(s->print, out);
    for (size_t n; r == ERR_OK && s->shown < limit && (n = ctf_merge_next(s->merge, batch, BATCH)) > 0;) {
        for (size_t i = 0; i < n && s->shown < limit; i++) {
            bool wanted = !s->filter || events_filter_matches(s->filter, s->merge, &batch[i]);
            if (s->lines)
                events_lines_put(s->lines, s->merge, &batch[i], wanted, out);
            if (!wanted)
                continue;
            if (!s->lines)
                ctf_print_event(s->print, s->merge, &batch[i], out);
            if (batch[i].cls->item == CTF_EVENT)
                s->shown++;
            else
                note_loss(s, &batch[i]);
            if (out->n > DRAIN_BYTES && (r = write_out(s, out, e)) != ERR_OK)
                break;
        }
        s->read += n;
        progress_add(progress, n);
    }
    progress_free(progress);
    return r == ERR_OK ? write_out(s, out, e) : r;
}

/* Notes problems of the input, and returns how much was read. A window may well be empty. */
static struct cli_reading note_problems(const struct session *s)
{
    const struct ctf_problem *p;
    bool whole = s->window.begin == INT64_MIN && s->window.end == INT64_MAX;
    struct cli_reading r = {.events = whole ? s->read : 1};
    size_t n = ctf_merge_problems(s->merge, &p);
    for (size_t i = 0; i < n; i++) {
        r.damaged |= !p[i].harmless;
        p[i].count > 1 ? cli_note("%s (%llu times)", p[i].text, (unsigned long long)p[i].count)
                       : cli_note("%s", p[i].text);
    }
    if (s->losses > MAX_LOSS_NOTES)
        cli_note(
            "%llu more places with losses; --format json tells all", (unsigned long long)(s->losses - MAX_LOSS_NOTES));
    return r;
}

static int run(int argc, char **argv)
{
    struct request q = {.cpu = -1, .tid = -1, .limit = -1};
    const struct cli_option options[] = {
        {"begin", 'b', CLI_STRING, "TIME",
            "events from here (as printed, ns, +1.5s from the start, ISO 8601, HH:MM:SS.frac)", &q.begin},
        {"end", 'e', CLI_STRING, "TIME", "events up to here, inclusive", &q.end},
        {"names", 0, CLI_LIST, "GLOB[,GLOB]", "events of these names; may be given several times", &q.names},
        {"cpu", 0, CLI_INT, "N", "events of this CPU", &q.cpu, .most = INT32_MAX},
        {"tid", 't', CLI_INT, "TID", "events that happened in this thread", &q.tid, .most = INT32_MAX},
        {"where", 'w', CLI_STRING, "EXPR", "events for which this holds: next_tid == 204 && comm =~ \"^tier\"",
            &q.where},
        {"limit", 'n', CLI_INT, "N", "at most N events", &q.limit},
        {"sync", 0, CLI_FLAG, NULL,
            "times by the reference host's clock instead of each host's own; so with --reference and --trust", &q.sync},
        CLI_CLOCKS(&q.clocks),
        {"store", 0, CLI_STRING, "DIR", "keep the stores that --sync needs below DIR", &q.store},
        {"format", 0, CLI_STRING, "FORMAT", "text (default), json (one object per line) or csv", &q.format},
        {"columns", 0, CLI_LIST, "NAME[,NAME]",
            "the columns of csv and json: ts, time, delta, host, cpu, tid, comm, name, lost, and fields as in --where",
            &q.columns},
        /* babeltrace2's */
        {"clock-seconds", 0, CLI_NOTHING},
        {"no-delta", 0, CLI_NOTHING},
        {"clock-cycles", 0, CLI_REFUSED, NULL, "times are in seconds, in ns with --format json or csv"},
        {"clock-date", 0, CLI_REFUSED, NULL, "times are in seconds since the epoch"},
        {"clock-gmt", 0, CLI_REFUSED, NULL, "times are in seconds since the epoch, which know no time zone"},
        {"clock-offset", 0, CLI_REFUSED, NULL, "--sync puts all hosts on one clock"},
        {"clock-offset-ns", 0, CLI_REFUSED, NULL, "--sync puts all hosts on one clock"},
        {"color", 0, CLI_REFUSED, NULL, "the text of events has no colours"},
        {"fields", 'f', CLI_REFUSED, NULL,
            "all fields are shown; to choose, give --format json or csv with --columns A,B,…"},
        {"input-format", 'i', CLI_REFUSED, NULL, "CTF is recognised; name the directory alone"},
        {"output", 0, CLI_REFUSED, NULL, "write to a file with > FILE"},
        {"output-format", 'o', CLI_REFUSED, NULL, "give --format text, json or csv"},
        {"stream-intersection", 0, CLI_REFUSED, NULL, "give --begin and --end"},
        {"timerange", 0, CLI_REFUSED, NULL, "give --begin BEGIN --end END"},
        {"component", 'c', CLI_REFUSED, NULL, "there are no components; name the directory of the trace"},
        {"params", 'p', CLI_REFUSED, NULL, "there are no components; name the directory of the trace"},
        {"plugin-path", 0, CLI_REFUSED, NULL, "there are no plugins; name the directory of the trace"},
        {0},
    };
    int n;
    struct err e = {0};
    int code = cli_parse(&verb_events, options, argc, argv, &n);
    if (code >= 0)
        return code;
    struct session s = {0};
    struct text out = TEXT_TO(STDOUT_FILENO);
    if (cli_clocks_parse(&q.clocks, &e) != ERR_OK || open_session(&q, argv + 1, (size_t)n, &s, &e) != ERR_OK) {
        code = cli_fail(&e);
    } else {
        int r = show_all(&s, q.limit >= 0 ? (uint64_t)q.limit : UINT64_MAX, &out, &e);
        struct cli_reading reading = note_problems(&s);
        /* write errors are reported at the end */
        code = r != ERR_OK && r != ERR_IO ? cli_fail(&e) : cli_finish_traces(s.x, &out, &reading);
    }
    close_session(&s);
    cli_clocks_fini(&q.clocks);
    free(q.names.v);
    free(q.columns.v);
    text_fini(&out);
    return code;
}

const struct cli_verb verb_events = {"events", "TRACE…", "merged events in time order",
    "weft events --names 'sched_*' --begin +1s --limit 20 examples/three-tier", run};
