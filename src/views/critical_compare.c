/* Critical Path Comparison of two threads and intervals, as a derived output: what threads of one name on one machine
 * did in one state, in a and in b, as `weft critpath --compare` tells it.
 *
 * As with one path, a request may also name both questions in its own parameters. */
#include <string.h>

#include "base/text.h"
#include "show/show.h"
#include "views/critical_paths.h"
#include "views/list.h"

static const char schema[] =
    "{\"$schema\":\"https://json-schema.org/draft/2020-12/schema\",\"type\":\"object\",\"title\":\"Two critical paths "
    "beside each other\",\"properties\":{"
    "\"a\":{\"type\":\"object\",\"description\":\"Whose path, and when: as Critical Path is configured\","
    "\"required\":[\"thread\"]},"
    "\"b\":{\"type\":\"object\",\"description\":\"The one that is compared with it\",\"required\":[\"thread\"]}},"
    "\"required\":[\"a\",\"b\"]}";
static const char *const sides[] = {"a", "b"};
enum { SIDES = sizeof sides / sizeof *sides };

static bool has_data(const struct view *self, struct views *x)
{
    return x->paths != NULL;
}

static const char *config_check(struct views *x, json_t *parameters, struct arena *a)
{
    for (size_t i = 0; i < SIDES; i++) {
        struct critical_question q;
        json_t *side = json_object_get(parameters, sides[i]);
        if (!json_is_object(side))
            return arena_printf(a,
                side ? "Invalid query parameters: %s (give an object with thread, begin and end)"
                     : "Missing query parameters: %s",
                sides[i]);
        const char *wrong = critical_question_parse(x, side, a, &q);
        if (wrong)
            return arena_printf(a, "%s (of %s)", wrong, sides[i]);
    }
    return NULL;
}

/* ---- both paths ---- */

/* How both are, taken together. */
static void tell_status(const struct critical_answer got[SIDES], struct tsp_answer *answer, struct arena *a)
{
    for (size_t i = 0; i < SIDES; i++) {
        bool worse = got[i].status == TSP_FAILED || (got[i].status == TSP_RUNNING && answer->status != TSP_FAILED);
        if (worse)
            answer->status = got[i].status;
        if (got[i].message && (worse || !answer->message))
            answer->message = arena_printf(a, "%s: %s", sides[i], got[i].message);
    }
}

/* ---- the tree ---- */

static const char *signed_duration(struct arena *a, int64_t ns)
{
    return arena_printf(a, "%s%s", ns < 0 ? "−" : ns > 0 ? "+" : "", arena_duration(a, ns < 0 ? -ns : ns));
}

static const char *name_of(const struct show_change *c, struct arena *a)
{
    if (c->comm && c->tid >= 0)
        return arena_printf(a, "%s %d", c->comm, c->tid);
    return c->comm ? c->comm : c->from && strcmp(c->from, c->host) != 0 ? arena_printf(a, "from %s", c->from) : "–";
}

static void write_change(
    struct tsp_answer *answer, struct arena *a, int64_t id, const struct show_change *c, const char *sentence)
{
    const char *what = c->reason ? c->reason : c->detail;
    const char *labels[] = {c->host, name_of(c, a), c->state, what ? what : "", c->a ? arena_duration(a, c->a) : "–",
        c->b ? arena_duration(a, c->b) : "–", signed_duration(a, c->b - c->a)};
    struct tsp_meta meta[10] = {{.key = "a", .number = c->a}, {.key = "b", .number = c->b}};
    size_t n = 2;
    const char *texts[][2] = {{"host", c->host}, {"comm", c->comm}, {"state", c->state}, {"detail", c->detail},
        {"from", c->from}, {"reason", c->reason}, {"assumed", c->assumed ? "true" : NULL}, {"sentence", sentence}};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i][1])
            meta[n++] = (struct tsp_meta){.key = texts[i][0], .text = texts[i][1]};
    tsp_write_entry(answer,
        &(struct tsp_entry){.id = id,
            .parent = -1,
            .key = c->key ? c->key : 1,
            .labels = labels,
            .n_labels = sizeof labels / sizeof *labels,
            .has_data = true,
            .has_tid = c->tid >= 0,
            .tid = c->tid,
            .meta = meta,
            .n_meta = n});
}

static void write_tree(struct critical_paths *known, const struct tsp_query *q, const struct critical_answer got[SIDES],
    struct tsp_answer *answer)
{
    struct arena *a = q->http->arena;
    struct show_answer paths[SIDES];
    for (size_t i = 0; i < SIDES; i++)
        paths[i] = (struct show_answer){.path = got[i].view->path, .source = got[i].view->source};
    struct show_changes all = show_changes(&paths[0], &paths[1], a);
    static const struct tsp_header headers[] = {{"Machine", "Machine", "STRING"},
        {"Thread", "Threads of that name; of messages who sent them", "STRING"}, {"State", "What they did", "STRING"},
        {"What", "What it waited for, where it is one thing", "STRING"}, {"a", "Time of it in a", "STRING"},
        {"b", "Time of it in b", "STRING"}, {"b − a", "How much longer it took in b", "STRING"}};
    tsp_begin_tree(answer, headers, sizeof headers / sizeof *headers, -1);
    for (size_t i = 0; i < all.n && view_goes_on(q, answer); i++)
        write_change(answer, a, critical_keyed_entry(known, all.v[i].key), &all.v[i], i ? NULL : all.sentence);
    tsp_end_tree(answer);
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    json_t *parameters = q->configuration ? q->configuration : q->parameters;
    struct critical_answer got[SIDES] = {{0}};
    struct arena *a = q->http->arena;
    if (!x->paths || (!q->configuration && !json_object_get(parameters, "a") && !json_object_get(parameters, "b")))
        return;
    const char *wrong = config_check(x, parameters, a);
    if (wrong) {
        tsp_fail(answer, wrong);
        return;
    }
    struct critical_paths *paths = view_cache(x, &view_critical_path, critical_paths_new);
    for (size_t i = 0; i < SIDES; i++)
        got[i] = critical_paths_get(paths, json_object_get(parameters, sides[i]), q->http);
    tell_status(got, answer, a);
    if (got[0].view && got[1].view && answer->status != TSP_FAILED)
        write_tree(paths, q, got, answer);
    for (size_t i = 0; i < SIDES; i++)
        critical_paths_release(paths, &got[i]);
}

static const struct tsp_derivation derivation = {
    .type = "weft.critical-path-comparison",
    .name = "Two critical paths",
    .schema = schema,
};
const struct view view_critical_compare = {
    .provider = {.id = "weft.critical-path-comparison",
        .family = "critical path comparisons",
        .name = "Critical Path Comparison",
        .description = "What took longer in one critical path than in another: configure it with two threads",
        .type = "DATA_TREE",
        .derivation = &derivation},
    .has_data = has_data,
    .tree = tree,
    .check = config_check,
};
