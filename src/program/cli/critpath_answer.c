/* SPDX-License-Identifier: MIT */
/* Showing the answer of weft critpath, and what is to be known about it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/shown.h"
#include "cli/critpath.h"
#include "cli/critpath_sums.h"
#include "graph/graph.h"
#include "show/show.h"

/* ---- choice of the thread ---- */

int cli_critpath_refuse_several(const char *thread, const struct path_lives *found)
{
    enum { SHOWN = 40 };
    struct text t = {.fd = 2};
    text_printf(&t, "weft: --thread %s means %zu threads; %s\n", thread, found->n,
        path_lives_are_idle(found)        ? "each CPU has an idle thread: name one as HOST:COMM:"
            : path_lives_share_tid(found) ? "the number was used again: say with --begin and --end which life is meant"
                                          : "name one as HOST:TID:");
    for (size_t i = 0; i < found->n && i < SHOWN; i++) {
        const struct path_life *c = &found->v[i];
        text_puts(&t, "  ");
        shown_line(&t, c->host, strlen(c->host));
        text_printf(&t, ":%d  ", c->tid);
        shown_line(&t, c->name, strlen(c->name));
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

int cli_critpath_refuse_absent(const char *thread, const struct path_lives *found)
{
    struct err e = {0};
    if (!found->n)
        err_set(&e, ERR_NOTFOUND, "--thread %s: no such thread; `weft threads` lists them", thread);
    else if (found->n == 1)
        err_set(&e, ERR_NOTFOUND, "--thread %s: not seen in that interval, only from %" PRId64 " to %" PRId64 " ns",
            thread, found->v[0].begin, found->v[0].end);
    else
        err_set(&e, ERR_NOTFOUND, "--thread %s: none of the %zu threads it means was seen in that interval", thread,
            found->n);
    return cli_fail(&e);
}

void cli_critpath_add_span(struct cli_span *span, const struct clock_map *map, int64_t begin, int64_t end)
{
    begin = map ? clock_to_reference(map, begin) : begin;
    end = map ? clock_to_reference(map, end) : end;
    span->first = begin < span->first ? begin : span->first;
    span->last = end > span->last ? end : span->last;
}

int cli_critpath_parse_interval(
    const struct critpath_question *q, const struct cli_span *span, struct path_options *o, struct err *e)
{
    *o = (struct path_options){
        .begin = INT64_MIN, .end = INT64_MAX, .no_early_return = q->no_early_return, .request = q->request};
    int rc = cli_parse_window(q->begin, q->end, span, &o->begin, &o->end, e);
    if (!rc && o->begin == o->end)
        rc = err_set(e, ERR_ARG,
            "--begin and --end are the same instant; a path covers the time between them: give a later --end");
    return rc;
}

int cli_critpath_second(
    const struct critpath_question *q, struct arena *a, struct critpath_question *out, struct err *e)
{
    char *thread = arena_strdup(a, q->compare), *end = strrchr(thread, ','), *begin = NULL;
    if (end) {
        *end++ = 0;
        begin = strrchr(thread, ',');
    }
    if (!begin || begin == thread)
        return err_set(
            e, ERR_ARG, "--compare %s: give the other thread and its interval: [HOST:]TID,BEGIN,END", q->compare);
    *begin++ = 0;
    *out = *q;
    out->thread = thread;
    out->begin = *begin ? begin : NULL;
    out->end = *end ? end : NULL;
    return 0;
}

/* ---- clocks ---- */

/* Worst error of a clock on the path, in ns. */
static int64_t clock_error(const struct critpath_shown *w)
{
    int64_t worst = 0;
    for (size_t i = 0; i < w->path->n_segments; i++) {
        const struct path_segment *s = &w->path->segments[i];
        const struct clock_map *map = w->hosts[s->row.host].map;
        if (!map || !map->n || map->predecessor < 0)
            continue;
        int64_t error = clock_error_at(map, clock_from_reference(map, s->begin));
        worst = error > worst ? error : worst;
    }
    return worst;
}

/* Lists other hosts whose clocks are related to that of the thread's host, or those that are not. */
static size_t name_others(const struct critpath_shown *w, bool related, struct text *out)
{
    enum { MOST_NAMES = 8 };
    size_t start = w->path->start.host, n = 0;
    for (size_t i = 0; i < w->n; i++) {
        bool same = w->hosts[i].map->island == w->hosts[start].map->island;
        if (!strcmp(w->hosts[i].name, w->hosts[start].name) || !w->hosts[i].has_graph || same != related)
            continue;
        if (n++ < MOST_NAMES)
            text_printf(out, "%s%s", n > 1 ? ", " : "", w->hosts[i].name);
    }
    if (n > MOST_NAMES)
        text_printf(out, " and %zu more", n - MOST_NAMES);
    return n;
}

void cli_critpath_note_clocks(const struct critpath_shown *w)
{
    struct text far = {.fd = -1}, near = {.fd = -1};
    const char *start = w->hosts[w->path->start.host].name;
    if (!w->synced) {
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

/* ---- tables and pictures ---- */

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

void cli_critpath_write(const struct critpath_shown *w, const struct critpath_question *q, struct text *out)
{
    const struct path_source *source = w->source;
    if (q->aggregate || q->by) {
        struct critpath_sums sums = {.by_container = q->by};
        cli_critpath_sums_add(&sums, source, w->path);
        cli_critpath_sums_write(&sums, q->format, false, out);
        cli_critpath_sums_fini(&sums);
    } else if (q->format == CLI_JSON) {
        struct json j = JSON_TO(out);
        show_json(w->path, source, w->method, &j);
        text_putc(out, '\n');
    } else if (q->format == CLI_CSV) {
        show_csv(w->path, source, out);
    } else {
        struct show_style style = {.color = cli_color(),
            .ascii = !speaks_utf8(),
            .width = cli_width(),
            .segments = q->segments,
            .clock_error_ns = w->synced ? clock_error(w) : -1};
        show_terminal(w->path, source, &style, out);
        if (!q->svg || !q->segments)
            text_printf(out, "Try: %s%s%s\n", q->svg ? "" : "--svg path.svg for a picture",
                q->svg || q->segments ? "" : " · ", q->segments ? "" : "--segments for the list");
    }
}

static struct show_answer answer_of(const struct critpath_shown *w)
{
    return (struct show_answer){w->path, w->source, w->method};
}

void cli_critpath_write_compared(const struct critpath_shown *shown_a, const struct critpath_shown *shown_b,
    const struct critpath_question *q, struct text *out)
{
    struct show_answer a = answer_of(shown_a), b = answer_of(shown_b);
    if (q->format == CLI_JSON) {
        struct json j = JSON_TO(out);
        show_compare_json(&a, &b, &j);
        text_putc(out, '\n');
    } else if (q->format == CLI_CSV) {
        show_compare_csv(&a, &b, out);
    } else {
        struct show_style style = {.color = cli_color(), .ascii = !speaks_utf8(), .width = cli_width()};
        show_compare_terminal(&a, &b, &style, out);
    }
}

int cli_critpath_write_svg(const struct critpath_shown *w, const char *file, struct err *e)
{
    struct text t = {.fd = -1};
    show_svg(w->path, w->source, &t);
    int rc = file_write(file, t.v, t.n, e);
    text_fini(&t);
    return rc;
}
