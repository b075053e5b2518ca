/* weft critpath --requests: the paths of a set of requests together. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/critpath.h"
#include "cli/critpath_sums.h"
#include "path/requests.h"

/* What a request must be, all of it. */
struct set {
    int64_t group;           /* as `weft requests` numbers it, from 1; 0: any */
    double slowest, fastest; /* percent of those of the group, by number; 0: all */
    const char *host;        /* that served it; NULL: any */
};

/* ---- reading ---- */

static int read_percent(const char *set, const char *text, double *out, struct err *e)
{
    char *end;
    *out = strtod(text, &end);
    if (end == text || strcmp(end, "%") != 0 || !(*out > 0) || *out > 100)
        return err_set(
            e, ERR_ARG, "--requests %s: '%s' is no share of the requests; give one as slowest=10%%", set, text);
    return 0;
}

static int read_group(const char *set, const char *text, int64_t *out, struct err *e)
{
    char *end;
    errno = 0;
    *out = strtoll(text, &end, 10);
    if (end == text || *end || errno || *out < 1)
        return err_set(
            e, ERR_ARG, "--requests %s: '%s' is no number of a group; `weft requests` lists them, from 1", set, text);
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
            rc = err_set(e, ERR_ARG, "--requests %s: '%s' is said already", text, word);
        else if (!strncmp(word, "group=", 6))
            rc = read_group(text, word + 6, &out->group, e);
        else if (!strncmp(word, "slowest=", 8))
            rc = read_percent(text, word + 8, &out->slowest, e);
        else if (!strncmp(word, "fastest=", 8))
            rc = read_percent(text, word + 8, &out->fastest, e);
        else if (!strncmp(word, "host=", 5) && word[5])
            out->host = word + 5;
        else
            rc = err_set(e, ERR_ARG, "--requests %s: '%s' is none of all, group=N, slowest=P%%, fastest=P%%, host=HOST",
                text, word);
    return rc ? rc
        : out->slowest > 0 && out->fastest > 0
        ? err_set(e, ERR_ARG, "--requests %s: the slowest or the fastest, not both", text)
        : 0;
}

int critpath_check_requests(const struct critpath_question *q, struct err *e)
{
    struct arena arena = {0};
    struct set set = {0};
    int rc = 0;
    if (q->thread)
        rc = err_set(e, ERR_ARG, "--requests names the threads by itself: leave --thread out");
    else if (q->cluster.url)
        rc = err_set(e, ERR_ARG,
            "--requests is for traces on this machine: name them in place of --cluster; over a cluster the view "
            "Request Groups of `weft coordinate` tells what slow requests waited for");
    else if (q->segments || q->svg || q->compare || q->polling || q->no_early_return)
        rc = err_set(e, ERR_ARG,
            "--requests sums up many paths: leave --segments, --svg, --compare, --polling, --no-early-return out");
    else
        rc = read_set(q->requests, &arena, &set, e);
    arena_fini(&arena);
    return rc;
}

/* ---- choosing ---- */

/* Their numbers, the slowest first. A group's are found by their paths. */
static void choose(const struct requests *found, const struct set *set, size_t **out, size_t *n, struct err *e)
{
    const size_t all = requests_count(found);
    struct request_groups *groups = set->group ? request_groups_new(found, NULL) : NULL;
    const size_t n_groups = groups ? request_groups_count(groups) : 0;
    *out = mem_alloc((all + 1) * sizeof **out);
    *n = 0;
    if (groups && (uint64_t)set->group > n_groups)
        err_set(e, ERR_NOTFOUND, "there is no group %" PRId64 " of requests, but %zu; `weft requests` lists them",
            set->group, n_groups);
    for (size_t i = 0; i < all && !e->code; i++) {
        struct request_told told = {.group = -1};
        if (groups)
            request_groups_tell(groups, i, &told);
        if (!groups || told.group + 1 == set->group)
            (*out)[(*n)++] = i;
        free(told.machines);
    }
    request_groups_free(groups);
}

/* So many of n, one at least. */
static size_t share_of(double percent, size_t n)
{
    size_t share = (size_t)((double)n * percent / 100 + 0.5);
    return share ? share : n > 0;
}

/* ---- answering ---- */

static void write_sums(
    const struct critpath_question *q, struct critpath_sums *sums, size_t all, size_t left_out, struct text *out)
{
    if (q->format == CLI_JSON) {
        struct json j = JSON_TO(out);
        json_begin_object(&j);
        json_kv_u64(&j, "requests", sums->paths);
        json_kv_u64(&j, "of", all);
        json_kv_u64(&j, "left_out", left_out);
        json_kv_i64(&j, "duration", sums->duration);
        json_key(&j, "totals");
        critpath_sums_json(sums, &j);
        json_end_object(&j);
        text_putc(out, '\n');
        return;
    }
    if (q->format == CLI_TABLE && sums->paths) {
        text_printf(out, "The paths of %zu of %zu requests: ", sums->paths, all);
        text_duration(out, sums->duration);
        text_puts(out, " in all, ");
        text_duration(out, sums->duration / (int64_t)sums->paths);
        text_puts(out, " each\n\n");
    }
    critpath_sums_write(sums, q->format, true, out);
}

static void note_missing(size_t paths, size_t left_out)
{
    if (left_out)
        cli_note("%zu of the requests are left out: their paths are too long, or of threads not seen", left_out);
    if (!paths && !left_out)
        cli_note("no such requests; `weft requests` lists those that there are");
}

int critpath_ask_requests(const struct critpath_question *q, const struct path_local *local, int64_t begin, int64_t end,
    struct text *out, struct err *e)
{
    struct arena arena = {0};
    struct set set = {0};
    struct critpath_sums sums = {0};
    size_t *chosen = NULL, n = 0, left_out = 0;
    struct requests *found = NULL;
    int rc = read_set(q->requests, &arena, &set, e);
    if (!rc) {
        found = requests_find(local, &(struct requests_question){.host = set.host, .begin = begin, .end = end});
        choose(found, &set, &chosen, &n, e);
        rc = e->code;
    }
    size_t from = set.fastest > 0 ? n - share_of(set.fastest, n) : 0;
    size_t to = set.slowest > 0 ? share_of(set.slowest, n) : n;
    for (size_t i = from; i < to && !rc; i++) {
        struct path *p = NULL;
        struct err why = {0};
        rc = requests_path(found, chosen[i], &p, &why);
        if (rc == ERR_LIMIT || rc == ERR_NOTFOUND) {
            left_out++;
            rc = 0;
        } else if (rc) {
            *e = why;
        } else {
            critpath_sums_add(&sums, path_local_source(local), p);
            path_free(p);
        }
    }
    if (!rc) {
        write_sums(q, &sums, requests_count(found), left_out, out);
        note_missing(sums.paths, left_out);
    }
    critpath_sums_fini(&sums);
    free(chosen);
    requests_free(found);
    arena_fini(&arena);
    return rc;
}
