/* SPDX-License-Identifier: MIT */
/* Critical Path Comparison of two threads and intervals, as a derived output: totals of a and b by machine, thread name
 * and state, as in `weft critpath --compare`. A request may also pass both questions in its own parameters, as with one
 * path. One of them may then be replaced by its answer: the parts of a path that another server computed. */
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

/* ---- sides ---- */

/* Side of the comparison: a thread, or (`told`) the parts of a path that another server computed. */
struct side {
    json_t *question;
    struct show_change *told;
    size_t n_told;
    struct critical_answer got;
};

static const char *part_text(json_t *part, const char *key)
{
    return json_string_value(json_array_get(json_object_get(part, key), 0));
}

static bool part_number(json_t *part, const char *key, int64_t *out)
{
    json_t *v = json_array_get(json_object_get(part, key), 0);
    *out = json_integer_value(v);
    return json_is_integer(v);
}

/* Reads a part from the metadata of an entry. Names are borrowed. */
static bool parse_part(json_t *part, const char *side, struct show_change *out)
{
    int64_t tid;
    *out = (struct show_change){.host = part_text(part, "host"),
        .comm = part_text(part, "comm"),
        .state = part_text(part, "state"),
        .detail = part_text(part, "detail"),
        .from = part_text(part, "from"),
        .reason = part_text(part, "reason"),
        .assumed = part_text(part, "assumed"),
        .tid = -1};
    if (part_number(part, "TID", &tid) && tid >= 0 && tid <= INT32_MAX)
        out->tid = (int32_t)tid;
    return part_number(part, side, &out->a) && show_told(out);
}

static const char *parse_told(json_t *parts, const char *name, struct arena *a, struct side *out)
{
    size_t i;
    json_t *part;
    int64_t sum = 0;
    out->told = arena_new(a, struct show_change, json_array_size(parts) + 1);
    json_array_foreach (parts, i, part)
        if (!parse_part(part, name, &out->told[i]) || __builtin_add_overflow(sum, out->told[i].a, &sum))
            return arena_printf(a, "Invalid query parameters: %s (part %zu is none of a path)", name, i);
    out->n_told = i;
    return NULL;
}

/* Returns whether the side belongs to another server; the client states it. */
static bool is_elsewhere(json_t *side)
{
    return json_is_string(json_object_get(side, "server"));
}

static const char *check_side(struct views *x, json_t *side, const char *name, struct arena *a, enum tsp_code *code)
{
    struct critical_question q;
    *code = TSP_CODE_INVALID_QUERY;
    if (!json_is_object(side))
        return arena_printf(a,
            side ? "Invalid query parameters: %s (give an object with thread, begin and end)"
                 : "Missing query parameters: %s",
            name);
    const char *wrong = critical_question_parse(x, side, a, &q);
    *code = q.wrong;
    return wrong ? arena_printf(a, "%s (of %s)", wrong, name) : NULL;
}

/* Checks a stored configuration: this server must know the thread of at least one side. */
static const char *config_check(struct views *x, json_t *parameters, struct arena *a, enum tsp_code *code)
{
    const char *wrong = NULL;
    size_t elsewhere = 0;
    for (size_t i = 0; i < SIDES && !wrong; i++) {
        json_t *side = json_object_get(parameters, sides[i]);
        if (is_elsewhere(side) && ++elsewhere < SIDES)
            continue;
        wrong = check_side(x, side, sides[i], a, code);
    }
    return wrong;
}

/* Checks a question that is to be answered now. */
static const char *parse(
    struct views *x, json_t *parameters, bool is_kept, struct arena *a, struct side out[SIDES], enum tsp_code *code)
{
    const char *wrong = NULL;
    for (size_t i = 0; i < SIDES && !wrong; i++) {
        *code = TSP_CODE_INVALID_QUERY;
        json_t *side = out[i].question = json_object_get(parameters, sides[i]), *told = json_object_get(side, "parts");
        if (json_is_array(told) && !is_kept)
            wrong = parse_told(told, sides[i], a, &out[i]);
        else if (is_elsewhere(side)) {
            *code = TSP_CODE_FAILED;
            wrong = arena_printf(a, "%s is a thread of another server, %s: ask the coordinator that knows both",
                sides[i], json_string_value(json_object_get(side, "server")));
        } else
            wrong = check_side(x, side, sides[i], a, code);
    }
    return wrong;
}

/* Sets the joint status of both sides. */
static void tell_status(const struct side both[SIDES], struct tsp_answer *answer, struct arena *a)
{
    for (size_t i = 0; i < SIDES; i++) {
        const struct critical_answer *got = &both[i].got;
        bool worse = got->status == TSP_FAILED || (got->status == TSP_RUNNING && answer->status != TSP_FAILED);
        if (worse)
            answer->status = got->status;
        if (got->message && (worse || !answer->message)) {
            answer->code = got->code;
            answer->message = arena_printf(a, "%s: %s", sides[i], got->message);
        }
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

static struct show_side shown(const struct side *s)
{
    return s->told ? (struct show_side){.told = s->told, .n = s->n_told}
                   : (struct show_side){.path = s->got.view->path, .source = s->got.view->source};
}

static void begin_tree(struct tsp_answer *answer)
{
    static const struct tsp_header headers[] = {{"Machine", "Machine", "STRING"},
        {"Thread", "Threads of that name; of messages who sent them", "STRING"}, {"State", "What they did", "STRING"},
        {"What", "What it waited for, where it is one thing", "STRING"}, {"a", "Time of it in a", "STRING"},
        {"b", "Time of it in b", "STRING"}, {"b − a", "How much longer it took in b", "STRING"}};
    tsp_begin_tree(answer, headers, sizeof headers / sizeof *headers, -1);
}

static void write_tree(
    struct critical_paths *known, const struct tsp_query *q, const struct side both[SIDES], struct tsp_answer *answer)
{
    struct arena *a = q->http->arena;
    struct show_side paths[SIDES] = {shown(&both[0]), shown(&both[1])};
    struct show_changes all = show_changes(&paths[0], &paths[1], a);
    begin_tree(answer);
    for (size_t i = 0; i < all.n && view_goes_on(q, answer); i++)
        write_change(answer, a, critical_keyed_entry(known, all.v[i].key), &all.v[i], i ? NULL : all.sentence);
    tsp_end_tree(answer);
}

static void tree(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    json_t *parameters = q->configuration ? q->configuration : q->parameters;
    struct side both[SIDES] = {{0}};
    struct arena *a = q->http->arena;
    if (!x->paths || (!q->configuration && !json_object_get(parameters, "a") && !json_object_get(parameters, "b"))) {
        begin_tree(answer);
        tsp_end_tree(answer);
        return;
    }
    enum tsp_code code;
    const char *wrong = parse(x, parameters, q->configuration, a, both, &code);
    if (wrong) {
        tsp_fail(answer, code, wrong);
        return;
    }
    bool known = true;
    struct critical_paths *paths = view_cache(x, &view_critical_path, critical_paths_new);
    if (!critical_keyed_room(paths, both[0].n_told + both[1].n_told)) {
        tsp_fail(answer, TSP_CODE_TOO_LARGE, "Too many different parts were told here: start the server again");
        return;
    }
    for (size_t i = 0; i < SIDES; i++) {
        if (!both[i].told)
            both[i].got = critical_paths_get(paths, both[i].question, q->http);
        known &= both[i].told || both[i].got.view;
    }
    tell_status(both, answer, a);
    if (known && answer->status != TSP_FAILED)
        write_tree(paths, q, both, answer);
    for (size_t i = 0; i < SIDES; i++)
        critical_paths_release(paths, &both[i].got);
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
