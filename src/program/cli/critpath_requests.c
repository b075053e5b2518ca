/* SPDX-License-Identifier: MIT */
/* weft critpath --requests: the paths of a set of requests together. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/critpath.h"

enum { ASKED_AT_ONCE = 1 << 10 }; /* paths that lead to other nodes */

/* Conditions on a request; all must hold. */
struct set {
    int64_t group;           /* group as numbered by `weft requests`, from 1; 0: any */
    double slowest, fastest; /* percent of those of the group, by number; 0: all */
    const char *host;        /* serving host; NULL: any */
};

/* ---- reading ---- */

static int read_percent(const char *set, const char *text, double *out, struct err *e)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || strcmp(end, "%") != 0 || !(*out > 0) || *out > 100)
        return err_set(
            e, ERR_ARG, "requests %s: '%s' is no share of the requests; give one as slowest=10%%", set, text);
    return 0;
}

static int read_group(const char *set, const char *text, int64_t *out, struct err *e)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (end == text || *end || errno || *out < 1)
        return err_set(
            e, ERR_ARG, "requests %s: '%s' is no number of a group; `weft requests` lists them, from 1", set, text);
    return 0;
}

static bool is_said(const struct set *s, const char *word)
{
    return (!strncmp(word, "group=", 6) && s->group) || (!strncmp(word, "slowest=", 8) && s->slowest > 0) ||
        (!strncmp(word, "fastest=", 8) && s->fastest > 0) || (!strncmp(word, "host=", 5) && s->host);
}

static int read_set(const char *text, struct arena *a, struct set *out, struct err *e)
{
    char *rest = arena_strdup(a, text), *word;
    int rc = 0;
    while (!rc && (word = strsep(&rest, ",")))
        if (!strcmp(word, "all"))
            continue;
        else if (is_said(out, word))
            rc = err_set(e, ERR_ARG, "requests %s: '%s' is given twice", text, word);
        else if (!strncmp(word, "group=", 6))
            rc = read_group(text, word + 6, &out->group, e);
        else if (!strncmp(word, "slowest=", 8))
            rc = read_percent(text, word + 8, &out->slowest, e);
        else if (!strncmp(word, "fastest=", 8))
            rc = read_percent(text, word + 8, &out->fastest, e);
        else if (!strncmp(word, "host=", 5) && word[5])
            out->host = word + 5;
        else
            rc = err_set(e, ERR_ARG, "requests %s: '%s' is none of all, group=N, slowest=P%%, fastest=P%%, host=HOST",
                text, word);
    return rc ? rc
        : out->slowest > 0 && out->fastest > 0
        ? err_set(e, ERR_ARG, "requests %s: the slowest or the fastest, not both", text)
        : 0;
}

int cli_critpath_check_requests(const struct critpath_question *q, struct err *e)
{
    struct arena arena = {0};
    struct set set = {0};
    int rc = 0;
    if (q->thread)
        rc = err_set(e, ERR_ARG, "--requests names the threads by itself: leave --thread out");
    else if (q->refine || q->snips || (q->method && !strcmp(q->method, "broadcast")))
        rc = err_set(e, ERR_ARG, "--requests sums up many paths: leave --refine, --snips, --method broadcast out");
    else if (q->segments || q->svg || q->polling || q->no_early_return)
        rc = err_set(
            e, ERR_ARG, "--requests sums up many paths: leave --segments, --svg, --polling, --no-early-return out");
    for (size_t i = 0; !rc && i < CRITPATH_SETS && cli_critpath_set_asked(q, i); i++) {
        set = (struct set){0};
        rc = read_set(cli_critpath_set_asked(q, i), &arena, &set, e);
    }
    arena_fini(&arena);
    return rc;
}

const char *cli_critpath_set_asked(const struct critpath_question *q, size_t i)
{
    return i ? q->compare : q->requests;
}

/* ---- choosing ---- */

/* Returns the numbers of requests in the set, the slowest first. Requests of a group are found by their paths. */
static void choose(const struct requests *found, const struct requests_far *far, const struct set *set, size_t **out,
    size_t *n, bool *missing, struct err *e)
{
    const size_t all = path_requests_count(found);
    struct request_groups *groups = set->group ? path_request_groups_new(found, far) : NULL;
    const size_t n_groups = groups ? path_request_groups_count(groups) : 0;
    *out = mem_alloc((all + 1) * sizeof **out);
    *n = 0;
    if (groups && (uint64_t)set->group > n_groups)
        err_set(e, ERR_NOTFOUND, "there is no group %" PRId64 " of requests, but %zu; `weft requests` lists them",
            set->group, n_groups);
    for (size_t i = 0; i < all && !e->code; i++) {
        struct request_told told = {.group = -1};
        if (groups)
            path_request_groups_tell(groups, i, &told);
        if (!groups || told.group + 1 == set->group)
            (*out)[(*n)++] = i;
        free(told.machines);
    }
    *missing = groups && path_request_groups_trouble(groups);
    if (*missing)
        cli_note("the group is told %s", path_request_groups_trouble(groups));
    path_request_groups_free(groups);
}

/* Returns that share of n, at least one. */
static size_t share_of(double percent, size_t n)
{
    size_t share = (size_t)((double)n * percent / 100 + 0.5);
    return share ? share : n > 0;
}

/* ---- answering ---- */

static void json_set(const struct critpath_set *s, struct json *j)
{
    json_kv_u64(j, "requests", s->sums.paths);
    json_kv_u64(j, "of", s->of);
    json_kv_u64(j, "left_out", s->left_out);
    json_kv_i64(j, "duration", s->sums.duration);
}

static void write_json(struct critpath_set *a, struct critpath_set *b, struct text *out)
{
    struct json j = JSON_TO(out);
    json_begin_object(&j);
    if (!b) {
        json_set(a, &j);
        json_key(&j, "totals");
        cli_critpath_sums_json(&a->sums, &j);
    } else {
        json_key(&j, "a");
        json_begin_object(&j);
        json_set(a, &j);
        json_end_object(&j);
        json_key(&j, "b");
        json_begin_object(&j);
        json_set(b, &j);
        json_end_object(&j);
        json_key(&j, "parts");
        cli_critpath_sums_compared_json(&a->sums, &b->sums, &j);
    }
    json_end_object(&j);
    text_putc(out, '\n');
}

static void put_heading(const char *which, const struct critpath_set *s, struct text *out)
{
    if (!s->sums.paths)
        return;
    text_printf(out, "%sThe paths of %zu of %zu requests: ", which, s->sums.paths, s->of);
    text_duration(out, s->sums.duration);
    text_puts(out, " in all, ");
    text_duration(out, s->sums.duration / (int64_t)s->sums.paths);
    text_puts(out, " each\n");
}

void cli_critpath_write_requests(
    const struct critpath_question *q, struct critpath_set sets[CRITPATH_SETS], struct text *out)
{
    struct critpath_set *a = &sets[0], *b = q->compare ? &sets[1] : NULL;
    if (q->format == CLI_JSON) {
        write_json(a, b, out);
        return;
    }
    if (q->format == CLI_TABLE) {
        put_heading(b ? "a: " : "", a, out);
        if (b)
            put_heading("b: ", b, out);
        if (out->n)
            text_putc(out, '\n');
    }
    if (b)
        cli_critpath_sums_compared_write(&a->sums, &b->sums, q->format, out);
    else
        cli_critpath_sums_write(&a->sums, q->format, true, out);
}

void cli_critpath_set_fini(struct critpath_set *s)
{
    cli_critpath_sums_fini(&s->sums);
}

static void note_left_out(size_t paths, size_t left_out)
{
    if (left_out)
        cli_note("%zu of the requests are left out: their paths are too long, or of threads not seen", left_out);
    if (!paths && !left_out)
        cli_note("no such requests; `weft requests` lists those that there are");
}

/* Sums so far, and parts missing because their node does not answer. */
struct summing {
    const struct requests *found;
    struct critpath_set *set;
    int64_t missing;
    char *who; /* name of one of these nodes, or NULL */
};

static void add(struct summing *s, const struct path_source *source, const struct path *p)
{
    cli_critpath_sums_add(&s->set->sums, source, p);
    for (size_t i = 0; i < p->n_gaps; i++) {
        const struct path_gap *g = &p->gaps[i];
        if (g->reason != PATH_OFFLINE_NODE && g->reason != PATH_PENDING)
            continue;
        s->missing += g->end - g->begin;
        if (!s->who && g->peer)
            s->who = mem_strdup(g->peer);
    }
}

static int add_here(struct summing *s, const size_t *chosen, size_t n, struct err *e)
{
    const struct path_source *source = path_requests_source(s->found);
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        struct path *p = NULL;
        struct err why = {0};
        rc = path_requests_path(s->found, chosen[i], &p, &why);
        if (rc == ERR_LIMIT || rc == ERR_NOTFOUND) {
            s->set->left_out++;
            rc = 0;
        } else if (rc) {
            *e = why;
        } else {
            add(s, source, p);
            path_free(p);
        }
    }
    return rc;
}

static int add_far(struct summing *s, const struct requests_far *far, const size_t *chosen, size_t n, struct err *e)
{
    for (size_t i = 0; i < n; i += ASKED_AT_ONCE) {
        struct request_paths told;
        size_t now = n - i < ASKED_AT_ONCE ? n - i : ASKED_AT_ONCE;
        int rc = path_requests_ask(s->found, far, chosen + i, now, &told, e);
        if (rc)
            return rc;
        for (size_t k = 0; k < now; k++)
            if (told.paths[k])
                add(s, told.source, told.paths[k]);
            else
                s->set->left_out++;
        far->release(far->arg, &told);
    }
    return 0;
}

static void note_missing(const struct summing *s)
{
    struct text time = {.fd = -1};
    text_duration(&time, s->missing);
    if (s->missing)
        cli_note("%s of the paths are missing: no answer from %s", text_cstr(&time), s->who ? s->who : "a node");
    text_fini(&time);
}

const char *cli_critpath_requests_host(const char *asked, struct arena *a)
{
    struct set set = {0};
    struct err e = {0};
    return read_set(asked, a, &set, &e) ? NULL : set.host;
}

int cli_critpath_sum_requests(const char *asked, const struct requests *found, const struct requests_far *far,
    struct critpath_set *out, struct err *e)
{
    struct arena arena = {0};
    struct set set = {0};
    struct summing s = {.found = found, .set = out};
    size_t *chosen = NULL, n = 0;
    int rc = read_set(asked, &arena, &set, e);
    out->of = path_requests_count(found);
    if (!rc) {
        choose(found, far, &set, &chosen, &n, &out->missing, e);
        rc = e->code;
    }
    size_t from = set.fastest > 0 ? n - share_of(set.fastest, n) : 0;
    size_t to = set.slowest > 0 ? share_of(set.slowest, n) : n;
    if (!rc)
        rc = far ? add_far(&s, far, chosen + from, to - from, e) : add_here(&s, chosen + from, to - from, e);
    if (!rc) {
        note_left_out(out->sums.paths, out->left_out);
        note_missing(&s);
    }
    out->missing |= s.missing > 0;
    free(s.who);
    free(chosen);
    arena_fini(&arena);
    return rc;
}
