/* SPDX-License-Identifier: MIT */
/* weft spans: statistics over the spans of many jobs or requests. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/near.h"
#include "base/time.h"
#include "cli/cli.h"
#include "cli/spans.h"
#include "cli/spans_kernel.h"
#include "cli/traces.h"

static const struct command {
    const char *name;
    cli_spans_command *answer;
    bool all_keys; /* needs all attribute names */
} commands[] = {
    {"table", cli_spans_table, false},
    {"stats", cli_spans_stats, false},
    {"outliers", cli_spans_outliers, true},
    {"compare", cli_spans_compare, false},
    {"clusters", cli_spans_clusters, true},
    {"critpath", cli_spans_critpath, false},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

static const struct command *find_command(const char *name, struct err *e)
{
    const char *names[COMMANDS + 1] = {0};
    for (size_t i = 0; i < COMMANDS; i++) {
        if (!strcmp(commands[i].name, name))
            return commands + i;
        names[i] = commands[i].name;
    }
    const char *near = near_name(name, names);
    err_set(e, ERR_ARG, "spans %s: no such command; %s%s", name,
        near ? "did you mean " : "there are table, stats, outliers, compare, clusters and critpath", near ? near : "");
    return NULL;
}

/* ---- options ---- */

struct spans_question {
    struct cli_spans c;
    const struct command *command;
    const char *store, *service, *group, *begin_text, *end_text, *format_text;
    bool as_recorded;
    struct cli_list traces; /* --kernel */
    const char *trace_store;
    char *usual_store; /* collect's default store */
    char *by_copy;     /* value of --by, cut at its commas */
    uint8_t trace_id[SPAN_TRACE_BYTES];
    int64_t begin_ns, end_ns;
};

static int parse_by(struct spans_question *q, struct err *e)
{
    struct spans_by *by = &q->c.by;
    if (!q->c.by_text)
        return 0;
    q->by_copy = mem_strdup(q->c.by_text);
    char *equal = strchr(q->by_copy, '='), *rest;
    if (equal)
        *equal = '\0'; /* compare's values are its own affair */
    for (char *key = strtok_r(q->by_copy, ",", &rest); key; key = strtok_r(NULL, ",", &rest)) {
        if (by->n == SPANS_BY)
            return err_set(e, ERR_ARG, "--by %s: at most %d attributes", q->c.by_text, SPANS_BY);
        by->keys[by->n++] = key;
    }
    if (!by->n)
        return err_set(e, ERR_ARG, "--by: name attributes, such as host, site, entry or client");
    return 0;
}

static int parse_trace(struct spans_question *q, struct err *e)
{
    char padded[2 * SPAN_TRACE_BYTES + 1];
    size_t n = q->c.trace ? strlen(q->c.trace) : 0, width = sizeof padded - 1;
    if (!q->c.trace)
        return 0;
    memset(padded, '0', width);
    memcpy(padded + width - (n < width ? n : width), q->c.trace, n < width ? n : width);
    if (!n || n > width || !span_read_hex(padded, width, q->trace_id, SPAN_TRACE_BYTES))
        return err_set(e, ERR_ARG, "--trace %s: a trace's id is up to 32 hexadecimal digits", q->c.trace);
    return 0;
}

static int parse_time(const char *option, const char *s, int64_t *ns, struct err *e)
{
    if (s && time_parse(s, 0, ns, e))
        return err_wrap(e, "%s", option);
    return 0;
}

static int parse_question(struct spans_question *q, struct err *e)
{
    int rc = cli_format_parse(q->format_text, &q->c.format, e);
    rc = rc ? rc : parse_by(q, e);
    rc = rc ? rc : parse_trace(q, e);
    rc = rc ? rc : parse_time("--begin", q->begin_text, &q->begin_ns, e);
    rc = rc ? rc : parse_time("--end", q->end_text, &q->end_ns, e);
    rc = rc ? rc : parse_time("--split", q->c.split, &q->c.split_ns, e);
    if (!rc && q->begin_ns >= q->end_ns)
        rc = err_set(e, ERR_ARG, "--begin %s is not before --end %s", q->begin_text ? q->begin_text : "",
            q->end_text ? q->end_text : "");
    return rc;
}

/* ---- reading ---- */

/* Prints notes, and frees their list. */
static void print_notes(struct spans_question *q, struct spans_notes *notes)
{
    for (size_t i = 0; i < notes->n; i++) {
        const struct spans_note *n = &notes->v[i];
        q->c.damaged |= n->lacks;
        cli_note("%s%s%s%s%s", n->file ? n->file : "", n->file ? ": " : "", n->what, n->hint ? ": " : "",
            n->hint ? n->hint : "");
    }
    free(notes->v);
}

static int read_file(struct spans_question *q, const char *path, struct err *e)
{
    struct span_told told = {0};
    struct arena arena = {0};
    struct spans_notes notes = {0};
    int rc = spans_add_file(q->c.set, path, &told, e);
    if (!rc)
        spans_note_file(path, &told, &arena, &notes);
    print_notes(q, &notes);
    arena_fini(&arena);
    return rc;
}

static int read_path(struct spans_question *q, const char *path, struct err *e)
{
    struct stat st;
    struct arena names = {0};
    const char *const *files;
    size_t n = 0;
    if (stat(path, &st) || !S_ISDIR(st.st_mode))
        return read_file(q, path, e);
    int rc = span_list_files(path, &names, &files, &n, e);
    for (size_t i = 0; i < n && !rc; i++)
        rc = read_file(q, files[i], e);
    arena_fini(&names);
    return rc;
}

static struct span_query query_of(const struct spans_question *q)
{
    return (struct span_query){.trace_id = q->c.trace ? q->trace_id : NULL,
        .service = q->service,
        .by_time = q->begin_text || q->end_text,
        .begin_ns = q->begin_ns,
        .end_ns = q->end_ns,
        .any_order = true};
}

/* Reads all files. A file that cannot be read does not affect the others. */
static int read_all(struct spans_question *q, char **paths, size_t n, struct err *e)
{
    struct span_query query = query_of(q);
    size_t read = 0;
    spans_only(q->c.set, &query);
    if (q->store)
        return spans_add_store(q->c.set, q->store, &query, e);
    for (size_t i = 0; i < n; i++) {
        struct err failed = {0};
        if (!read_path(q, paths[i], &failed)) {
            read++;
            continue;
        }
        if (n == 1 || (i + 1 == n && !read)) {
            *e = failed;
            return e->code;
        }
        q->c.damaged = true;
        cli_note("%s", failed.text);
    }
    return 0;
}

static void note_settled(struct spans_question *q)
{
    struct arena arena = {0};
    struct spans_notes notes = {0};
    spans_note_settled(q->c.set, &arena, &notes);
    print_notes(q, &notes);
    arena_fini(&arena);
}

/* ---- answering ---- */

static int answer(struct spans_question *q, char **paths, size_t n)
{
    struct err e = {0};
    struct text out = TEXT_TO(1);
    const struct spans_row *rows;
    const char *keys[SPANS_BY + 10] = {"entry", "client", SPANS_PROCESS_KEYS};
    size_t n_keys = q->traces.n ? 9 : 3; /* hosts distinguish units, too */
    for (size_t i = 0; i <= q->c.by.n; i++)
        keys[n_keys + i] = i < q->c.by.n ? q->c.by.keys[i] : NULL;
    if (q->traces.n && cli_kernel_open(&q->traces, q->trace_store, &q->c.kernel, &e))
        return cli_fail(&e);
    struct spans_choice choice = {
        .keys = keys, .all_keys = q->command->all_keys, .group = q->group, .as_recorded = q->as_recorded};
    q->c.set = spans_new(&choice);
    if (read_all(q, paths, n, &e)) {
        spans_free(q->c.set);
        cli_kernel_close(q->c.kernel);
        return cli_fail(&e);
    }
    spans_settle(q->c.set);
    note_settled(q);
    if (q->c.kernel) {
        cli_kernel_know(q->c.kernel, q->c.set);
        cli_kernel_note_clocks(q->c.kernel);
    }
    if (!spans_rows(q->c.set, &rows))
        cli_note("no spans%s", q->c.trace || q->service || q->begin_text || q->end_text ? " of that choice" : "");
    int rc = q->command->answer(&q->c, &out, &e), code;
    spans_free(q->c.set);
    if (rc) {
        text_fini(&out);
        code = cli_fail(&e);
    } else if (q->c.kernel) {
        code = cli_finish_traces(cli_kernel_experiment(q->c.kernel), &out, NULL);
        code = code == CLI_OK && q->c.damaged ? CLI_PARTIAL : code;
    } else {
        code = cli_finish(&out, q->c.damaged ? CLI_PARTIAL : CLI_OK);
    }
    cli_kernel_close(q->c.kernel);
    return code;
}

static int choose(struct spans_question *q, char **args, size_t n, struct err *e)
{
    if (!n)
        return err_set(e, ERR_ARG, "spans: name a command: table, stats, outliers, compare, clusters or critpath");
    q->command = find_command(args[0], e);
    if (!q->command)
        return e->code;
    if (!q->store && n < 2)
        q->store = q->usual_store = cli_collect_store();
    if (!q->store && n < 2)
        return err_set(e, ERR_ARG,
            "spans %s: name files of spans (OTLP, Jaeger or Zipkin JSON), or a collector's store by --store DIR",
            args[0]);
    if (q->store && n > 1)
        return err_set(e, ERR_ARG, "spans %s: either --store or files", args[0]);
    if (q->traces.n && q->command->answer != cli_spans_critpath)
        return err_set(e, ERR_ARG, "spans %s: --kernel is for critpath", args[0]);
    return parse_question(q, e);
}

static int run(int argc, char **argv)
{
    struct spans_question q = {.c = {.limit = -1, .main = "main"}, .begin_ns = INT64_MIN, .end_ns = INT64_MAX};
    const struct cli_option options[] = {
        {"store", 0, CLI_STRING, "DIR|URL",
            "the store of weft collect: a directory or postgresql://… (default: its default store)", &q.store},
        {"trace", 't', CLI_STRING, "ID", "this trace only; critpath then shows it piece by piece", &q.c.trace},
        {"service", 's', CLI_STRING, "NAME", "spans of this service only", &q.service},
        {"begin", 'b', CLI_STRING, "TIME", "spans that begin from here on (ns, ISO 8601)", &q.begin_text},
        {"end", 'e', CLI_STRING, "TIME", "spans that begin before this", &q.end_text},
        {"by", 0, CLI_STRING, "KEY,…",
            "group by attributes: entry, client, site, host or any other; compare: KEY=A,B, its two sides",
            &q.c.by_text},
        {"split", 0, CLI_STRING, "TIME", "compare: what began before this, and what began since", &q.c.split},
        {"main", 0, CLI_STRING, "STAGE", "the stage that the jobs are for; the rest is waste (default: main)",
            &q.c.main},
        {"kernel", 'k', CLI_LIST, "TRACE",
            "critpath: kernel traces of the machines, to explain stages; may be given several times", &q.traces},
        {"trace-store", 0, CLI_STRING, "DIR", "keep the stores of these traces below DIR", &q.trace_store},
        {"group", 0, CLI_STRING, "KEY", "the attribute whose value tells one job from another", &q.group},
        {"as-recorded", 0, CLI_FLAG, NULL, "do not repair begins cut to the second", &q.as_recorded},
        {"limit", 'n', CLI_INT, "N", "at most N lines", &q.c.limit},
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &q.format_text},
        {0},
    };
    int n;
    struct err e = {0};
    int code = cli_parse(&verb_spans, options, argc, argv, &n);
    if (code >= 0)
        return code;
    code = choose(&q, argv + 1, (size_t)n, &e) ? cli_fail(&e) : answer(&q, argv + 2, (size_t)n - 1);
    free(q.by_copy);
    free(q.traces.v);
    free(q.usual_store);
    return code;
}

const struct cli_verb verb_spans = {"spans", "table|stats|outliers|compare|clusters|critpath [FILE…]",
    "analyse spans of many jobs or requests", "weft spans stats --by site spans.jsonl", run};
