/* weft critpath: where the time of a thread went, across machines. */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/order.h"
#include "base/time.h"
#include "cli/traces.h"
#include "path/path.h"
#include "show/show.h"

struct question {
    const char *thread, *begin, *end, *method, *svg, *store, *format_name, *polling;
    struct cli_clocks clocks;
    bool segments, aggregate, no_early_return;
    int format;
};

/* Everything that stands open while the question is answered. */
struct work {
    struct experiment *experiment;
    const struct clock_net *clocks;
    struct path_local_host *hosts;
    size_t n;
    struct path_local *local;
    const struct path_source *source;
    struct path *path;
};

static void close_all(struct work *w)
{
    path_free(w->path);
    path_local_free(w->local);
    free(w->hosts);
    experiment_close(w->experiment);
}

/* ---- choosing the thread ---- */

static int refuse_several(const char *thread, const struct path_lives *found)
{
    enum { SHOWN = 40 };
    struct text t = {.fd = 2};
    text_printf(&t, "weft: --thread %s means %zu threads; %s\n", thread, found->n,
        path_lives_share_tid(found) ? "the number was used again: say with --begin and --end which life is meant"
                                    : "name one as HOST:TID:");
    for (size_t i = 0; i < found->n && i < SHOWN; i++) {
        const struct path_life *c = &found->v[i];
        text_printf(&t, "  %s:%d  ", c->host, c->tid);
        for (const char *s = c->name; *s; s++)
            text_putc(&t, (unsigned char)*s < 0x20 || *s == 0x7f ? '?' : *s);
        text_puts(&t, "  ");
        text_i64(&t, c->begin);
        text_puts(&t, " … ");
        text_i64(&t, c->end);
        text_putc(&t, '\n');
    }
    if (found->n > SHOWN)
        text_printf(&t, "  … and %zu more\n", found->n - SHOWN);
    return cli_finish(&t, CLI_USAGE);
}

/* No such thread, or not at that time. */
static const struct err *say_not_found(const struct work *w, const char *thread, struct err *e)
{
    struct path_lives found = {0};
    path_find_lives(w->local, thread, NULL, INT64_MIN, INT64_MAX, &found);
    if (!found.n)
        err_set(e, ERR_NOTFOUND, "--thread %s: no such thread; `weft threads` lists them", thread);
    else if (found.n == 1)
        err_set(e, ERR_NOTFOUND, "--thread %s: not seen in that interval, only from %" PRId64 " to %" PRId64 " ns",
            thread, found.v[0].begin, found.v[0].end);
    else
        err_set(e, ERR_NOTFOUND, "--thread %s: none of the %zu threads it means was seen in that interval", thread,
            found.n);
    vec_free(&found);
    return e;
}

/* -1 to go on, else the exit code. */
static int choose_thread(
    const struct work *w, const struct question *q, const struct path_options *o, struct path_row *row)
{
    struct path_lives found = {0};
    struct err e = {0};
    int code = -1;
    path_find_lives(w->local, q->thread, NULL, o->begin, o->end, &found);
    if (found.n == 0) {
        code = cli_fail(say_not_found(w, q->thread, &e));
    } else if (found.n > 1) {
        code = refuse_several(q->thread, &found);
    } else {
        *row = found.v[0].row;
    }
    vec_free(&found);
    return code;
}

/* ---- opening ---- */

static int check_question(const struct question *q, int n, struct err *e)
{
    if (q->method && strcmp(q->method, "local") != 0) {
        if (strcmp(q->method, "broadcast") != 0 && strcmp(q->method, "index") != 0)
            return err_set(e, ERR_ARG, "--method %s: give local, broadcast or index", q->method);
        return err_set(e, ERR_ARG,
            "--method %s asks the nodes of a cluster; with traces on this machine use --method local", q->method);
    }
    if (q->polling && strcmp(q->polling, "assume") != 0)
        return err_set(e, ERR_ARG, "--polling %s: give assume, or leave it out", q->polling);
    int rc = cli_need_traces((size_t)n, e);
    if (!rc && !q->thread)
        rc = err_set(e, ERR_ARG, "whose path? Give --thread [HOST:]TID or a name; `weft threads` lists them");
    return rc;
}

static int open_hosts(struct work *w, const struct question *q, struct err *e)
{
    const struct index_host *hosts;
    bool apart = cli_clocks_apart(&q->clocks);
    w->n = experiment_hosts(w->experiment, &hosts);
    int rc = apart ? 0 : cli_sync(w->experiment, &q->clocks, &w->clocks, e);
    if (rc)
        return rc;
    w->hosts = mem_zalloc((w->n + 1) * sizeof *w->hosts);
    for (size_t i = 0; i < w->n; i++)
        w->hosts[i] = (struct path_local_host){
            hosts[i].name, hosts[i].graph, hosts[i].flows, apart ? NULL : clock_net_map(w->clocks, i)};
    w->local = path_local_new(w->hosts, w->n);
    w->source = q->polling ? path_local_source_assuming(w->local) : path_local_source(w->local);
    return 0;
}

/* Without a map times are taken as they are. */
static const struct clock_map *map_of(const struct work *w, size_t host)
{
    static const struct clock_map as_it_is;
    return w->hosts[host].map ? w->hosts[host].map : &as_it_is;
}

static int parse_interval(const struct work *w, const struct question *q, struct path_options *o, struct err *e)
{
    const struct index_host *hosts;
    int64_t start = INT64_MAX;
    experiment_hosts(w->experiment, &hosts);
    for (size_t i = 0; i < w->n; i++) {
        int64_t t = clock_to_reference(map_of(w, i), hosts[i].begin);
        start = t < start ? t : start;
    }
    *o = (struct path_options){.begin = INT64_MIN, .end = INT64_MAX, .no_early_return = q->no_early_return};
    int rc = cli_parse_window(q->begin, q->end, start, &o->begin, &o->end, e);
    if (!rc && o->begin == o->end)
        rc = err_set(e, ERR_ARG,
            "--begin and --end are the same instant; a path covers the time between them: give a later --end");
    return rc;
}

/* ---- answering ---- */

/* Worst error of a clock on the path, in ns. */
static int64_t clock_error(const struct work *w)
{
    int64_t worst = 0;
    for (size_t i = 0; i < w->path->n_segments; i++) {
        const struct path_segment *s = &w->path->segments[i];
        const struct clock_map *map = map_of(w, s->row.host);
        if (!map->n || map->predecessor < 0)
            continue;
        int64_t error = clock_error_at(map, clock_from_reference(map, s->begin));
        worst = error > worst ? error : worst;
    }
    return worst;
}

/* The path shows threads that run where they may have polled; or the thread that was asked for got messages awake, and
 * nothing can be assumed of them. */
static void note_polling(const struct work *w)
{
    const struct path *p = w->path;
    int64_t totals[GRAPH_STATE_COUNT], duration;
    size_t seen, stretches = path_local_assumable(w->local, p, &duration);
    if (stretches) {
        struct text t = {.fd = -1};
        text_duration(&t, duration);
        cli_note("%s of the path may be polling: %zu time%s a thread ran until a message came and soon sent again, and "
                 "the recorded events do not show what it waited for. `--polling assume` takes it to have waited for "
                 "that message; to know, let the program block, or record its own spans (docs/record.md)",
            text_cstr(&t), stretches, stretches == 1 ? "" : "s");
        text_fini(&t);
        return;
    }
    size_t messages = path_local_unslept(w->local, p->start, p->begin, p->end, &seen);
    const struct path_local_host *h = &w->hosts[p->start.host];
    const struct clock_map *map = map_of(w, p->start.host);
    graph_row_totals(
        h->graph, p->start.row, clock_from_reference(map, p->begin), clock_from_reference(map, p->end), totals);
    if (messages <= seen || totals[GRAPH_NETWORK])
        return;
    cli_note("%zu messages came while the thread was awake%s: it polls, and waits of that kind are invisible in "
             "scheduling events; let the program block, or record its own spans (docs/record.md)",
        messages, seen ? ", only some could be told as polling" : "");
}

/* Of the other hosts, those whose clocks are related to that of the thread's host, or those that are not. */
static size_t name_others(const struct work *w, bool related, struct text *out)
{
    enum { MOST_NAMES = 8 };
    size_t start = w->path->start.host, n = 0;
    for (size_t i = 0; i < w->n; i++) {
        bool same = w->hosts[i].map->island == w->hosts[start].map->island;
        bool other_boot = !strcmp(w->hosts[i].name, w->hosts[start].name);
        if (i == start || other_boot || !w->hosts[i].graph || same != related)
            continue;
        if (n++ < MOST_NAMES)
            text_printf(out, "%s%s", n > 1 ? ", " : "", w->hosts[i].name);
    }
    if (n > MOST_NAMES)
        text_printf(out, " and %zu more", n - MOST_NAMES);
    return n;
}

static void note_clocks(const struct work *w)
{
    struct text far = {.fd = -1}, near = {.fd = -1};
    const char *start = w->hosts[w->path->start.host].name;
    if (!w->clocks) {
        if (w->n > 1)
            cli_note("every host keeps its own clock (--no-sync): what their clocks are apart, messages between them "
                     "are off");
        return;
    }
    if (name_others(w, false, &far))
        cli_note("%s: no messages relate %s to that of %s; the path does not go there", text_cstr(&far),
            w->n > 2 ? "their clocks" : "its clock", start);
    if (w->hosts[w->path->start.host].map->island && name_others(w, true, &near))
        cli_note("%s: related to the clock of %s, but not to that of the reference; give --reference %s for a path "
                 "that goes there",
            text_cstr(&near), start, start);
    text_fini(&far);
    text_fini(&near);
}

struct sum {
    const char *host, *comm;
    int state;
    int64_t duration;
    uint64_t segments;
};

static int by_duration(const void *pa, const void *pb)
{
    const struct sum *a = pa, *b = pb;
    return order_of(b->duration, a->duration) ?: strcmp(a->host, b->host) ?: strcmp(a->comm, b->comm)
                                              ?: a->state - b->state;
}

static void add_to_sums(struct sum *sums, size_t *n, const struct sum *s)
{
    size_t i = 0;
    while (i < *n &&
        (strcmp(sums[i].host, s->host) != 0 || strcmp(sums[i].comm, s->comm) != 0 || sums[i].state != s->state))
        i++;
    if (i == *n)
        sums[(*n)++] = *s;
    else
        sums[i].duration += s->duration;
}

/* Totals by machine, name and state: threads of one name count together. */
static void write_aggregate(const struct work *w, int format, struct text *out)
{
    static const struct cli_column columns[] = {{"host", false, false}, {"comm", false, false}, {"state", false, false},
        {"duration", true, true}, {"percent", true, true}};
    const struct path_source *source = w->source;
    const struct path *p = w->path;
    struct sum *sums = mem_alloc((p->n_totals + 1) * sizeof *sums);
    size_t n = 0;
    for (size_t i = 0; i < p->n_totals; i++) {
        int32_t tid;
        struct sum s = {.host = source->host_name(source->arg, p->totals[i].row.host),
            .state = p->totals[i].state,
            .duration = p->totals[i].duration};
        source->row_name(source->arg, p->totals[i].row, p->end, p->end, &tid, &s.comm);
        add_to_sums(sums, &n, &s);
    }
    if (n)
        qsort(sums, n, sizeof *sums, by_duration);
    struct cli_table *t = cli_table_new(columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < n; i++) {
        cli_table_cell(t, "%s", sums[i].host);
        cli_table_cell(t, "%s", sums[i].comm);
        cli_table_cell(t, "%s", graph_state_name(sums[i].state));
        cli_table_duration(t, format, sums[i].duration);
        cli_table_cell(
            t, "%.1f", p->end > p->begin ? 100.0 * (double)sums[i].duration / (double)(p->end - p->begin) : 0.0);
    }
    cli_table_write(t, format, out);
    cli_table_free(t);
    free(sums);
}

static bool speaks_utf8(void)
{
    const char *names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *s = getenv(names[i]);
        if (s && *s)
            return strcasestr(s, "utf-8") || strcasestr(s, "utf8");
    }
    return !cli_color(); /* a terminal without a locale; files are UTF-8 */
}

static void write_answer(const struct work *w, const struct question *q, struct text *out)
{
    const struct path_source *source = w->source;
    if (q->aggregate) {
        write_aggregate(w, q->format, out);
    } else if (q->format == CLI_JSON) {
        struct json j = JSON_TO(out);
        show_json(w->path, source, "local", &j);
        text_putc(out, '\n');
    } else if (q->format == CLI_CSV) {
        show_csv(w->path, source, out);
    } else {
        struct show_style style = {.color = cli_color(),
            .ascii = !speaks_utf8(),
            .width = cli_width(),
            .segments = q->segments,
            .clock_error_ns = w->clocks ? clock_error(w) : -1};
        show_terminal(w->path, source, &style, out);
        if (!q->svg || !q->segments)
            text_printf(out, "Try: %s%s%s\n", q->svg ? "" : "--svg path.svg for a picture",
                q->svg || q->segments ? "" : " · ", q->segments ? "" : "--segments for the list");
    }
}

static int write_svg(const struct work *w, const char *file, struct err *e)
{
    struct text t = {.fd = -1};
    show_svg(w->path, w->source, &t);
    int rc = file_write(file, t.v, t.n, e);
    text_fini(&t);
    return rc;
}

static int answer(struct work *w, const struct question *q)
{
    struct err e = {0};
    struct path_options options;
    struct path_row row;
    if (open_hosts(w, q, &e) || parse_interval(w, q, &options, &e))
        return cli_fail(&e);
    int code = choose_thread(w, q, &options, &row);
    if (code >= 0)
        return code;
    if ((w->clocks && clock_net_relates(w->clocks, row.host, &e)) ||
        path_walk(w->source, row, &options, &w->path, &e) || experiment_intact(w->experiment, &e) ||
        (q->svg && write_svg(w, q->svg, &e)))
        return cli_fail(&e);
    note_clocks(w);
    if (!q->polling)
        note_polling(w);
    struct text out = TEXT_TO(1);
    write_answer(w, q, &out);
    return cli_finish_traces(w->experiment, &out, NULL);
}

static int run(int argc, char **argv)
{
    struct question q = {0};
    const struct cli_option options[] = {
        {"thread", 't', CLI_STRING, "[HOST:]TID|COMM", "whose path", &q.thread},
        {"begin", 'b', CLI_STRING, "TIME",
            "from here on the reference clock (ns, +1.5s, ISO 8601; default: the thread's first instant)", &q.begin},
        {"end", 'e', CLI_STRING, "TIME", "to here (default: the thread's last instant)", &q.end},
        CLI_CLOCKS(&q.clocks),
        {"method", 0, CLI_STRING, "METHOD", "local (traces given here), broadcast or index (a cluster)", &q.method},
        {"aggregate", 'a', CLI_FLAG, NULL, "only the totals by machine, name and state", &q.aggregate},
        {"segments", 0, CLI_FLAG, NULL, "list the segments, too", &q.segments},
        {"svg", 0, CLI_STRING, "FILE", "draw the path", &q.svg},
        {"store", 0, CLI_STRING, "DIR", "keep the stores below DIR", &q.store},
        {"polling", 0, CLI_STRING, "assume",
            "take a thread that spun until a message came, and soon sent again, to have waited for it", &q.polling},
        {"no-early-return", 0, CLI_FLAG, NULL, "the plain bounded walk, for comparison with other tools",
            &q.no_early_return},
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &q.format_name},
        {0},
    };
    int n;
    struct err e = {0};
    int code = cli_parse(&verb_critpath, options, argc, argv, &n);
    if (code >= 0)
        return code;
    struct work w = {0};
    struct index_options o = {.store = q.store, .stores = true};
    if (cli_format_parse(q.format_name, &q.format, &e) || check_question(&q, n, &e) ||
        cli_clocks_parse(&q.clocks, &e) || cli_open_traces(argv + 1, (size_t)n, &o, &w.experiment, &e))
        code = cli_fail(&e);
    else
        code = answer(&w, &q);
    close_all(&w);
    cli_clocks_fini(&q.clocks);
    return code;
}

const struct cli_verb verb_critpath = {"critpath", "TRACE…",
    "critical path of a thread across machines: where its time went",
    "weft critpath examples/three-tier --thread client:204 --begin +2.3s --end +2.4s --svg path.svg", run};
