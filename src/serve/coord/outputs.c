/* SPDX-License-Identifier: MIT */
/* Outputs: those of all servers, without duplicates; derived ones belong to their server. */
#include <string.h>

#include "coord/comparisons.h"
#include "coord/entries.h"
#include "coord/gather.h"
#include "coord/output_cache.h"
#include "coord/outputs.h"
#include "coord/question.h"
#include "coord/rotation.h"
#include "coord/times.h"

/* Returns whether two servers' outputs are the same one. */
static bool same_output(struct slice a, struct slice b)
{
    return slice_same_value(slice_get(a, "id"), slice_get(b, "id")) &&
        slice_same_value(slice_get(a, "type"), slice_get(b, "type"));
}

struct outputs {
    VEC(struct slice) v;
    struct map by_id; /* a hash of id and type -> in `v` */
};

static bool take_output(struct outputs *all, struct slice o)
{
    struct slice id = slice_get(o, "id"), type = slice_get(o, "type");
    uint64_t hash = map_hash(id.at, id.n) ^ map_mix(map_hash(type.at, type.n));
    bool fresh;
    uint64_t *at = map_put(&all->by_id, hash, &fresh);
    if (!fresh && same_output(all->v.v[*at], o))
        return false;
    *at = all->v.n;
    vec_push(&all->v, o);
    return true;
}

typedef const char *make_body(struct coord_call *, const struct node *);

/* Sends the request's path to all members, with bodies if any; false: the client is gone. */
static bool ask_members(struct coord_answers *f, struct coord_call *c, const char *method, make_body *body, char form)
{
    const char *path = coord_path_asked(&c->request);
    coord_gather_begin(f, c, c->request.n_members);
    for (size_t i = 0; i < c->request.n_members; i++)
        coord_gather_ask(f, c->request.members[i], method, path, body ? body(c, c->request.members[i]) : NULL);
    if (!coord_gather_wait(f))
        return false;
    for (size_t i = 0; i < f->n; i++) {
        struct coord_answer *p = &f->v[i];
        if (p->fate == COORD_REFUSED && p->http_status != 404)
            coord_note_missing(&c->outcome, p->node, arena_printf(c->arena, "status %d", p->http_status));
        if (p->fate == COORD_GOOD && !slice_is(p->root, form))
            coord_answer_spoil(f, p, "its answer has another form than the protocol's");
    }
    return true;
}

static struct coord_answer *first_good(const struct coord_answers *f)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].fate == COORD_GOOD)
            return &f->v[i];
    return NULL;
}

/* Returns whether a server gave a good answer; else sends the refusal. */
static bool somebody_answers(struct coord_answers *f)
{
    if (!first_good(f))
        coord_gather_refuse(f);
    return first_good(f);
}

static const char *const paths[] = {
    "org.eclipse.tracecompass.analysis.graph.core.dataprovider.CriticalPathDataProvider", COMPARISON_OUTPUT};

static bool is_path(struct slice output)
{
    struct slice parent = slice_get(output, "parentId");
    return slice_equals(parent, paths[0]) || slice_equals(parent, paths[1]);
}

/* Returns whether a critical path may be incomplete: its server is not known to be in a cluster, and other servers have
 * traces, too. False if another coordinator has marked the path already. */
static bool is_local(const struct coord_call *c, const struct node *n, struct slice output)
{
    return c->request.several && !atomic_load(&n->in_cluster) && is_path(output) &&
        coord_code(output) != TSP_CODE_LOCAL_PATH;
}

/* Returns the servers of other makes, which show a path of their own, of a thread chosen there. NULL: there are
 * none. */
static const char *others_with_paths(const struct coord_call *c)
{
    const char *names = NULL;
    for (size_t i = 0; c->request.several && i < c->request.n_members; i++)
        if (atomic_load(&c->request.members[i]->numbers_anew))
            names = arena_printf(
                c->arena, "%s%s%s", names ? names : "", names ? ", " : "", c->request.members[i]->is->name);
    return names;
}

/* Returns a note on the servers of a path that does not cover all machines; NULL: none is needed. */
static const char *path_note(const struct coord_call *c, const struct node *n, struct slice output)
{
    if (is_local(c, n, output)) {
        const char *both = slice_equals(slice_get(output, "parentId"), paths[1])
            ? coord_comparison_servers(c, n, output)
            : NULL;
        return both ? arena_printf(c->arena, "(%s alone tells it)", both)
                    : arena_printf(c->arena, "(as %s alone tells it)", n->is->name);
    }
    const char *others = slice_equals(slice_get(output, "id"), paths[0]) ? others_with_paths(c) : NULL;
    return others ? arena_printf(c->arena, "(a path chosen on %s: as it alone tells it)", others) : NULL;
}

static void show_time(const struct node *n, json_t *question, const char *key)
{
    int64_t t;
    if (coord_integer(json_object_get(question, key), &t))
        json_object_set_new(question, key, json_integer(coord_time_shown(n, t)));
}

/* Translates ids and times of one path, or of each of two compared ones. A path of another server stays in that
 * server's terms. */
static void show_question(struct coord_call *c, const struct node *n, json_t *question)
{
    int64_t own;
    if (coord_text(question, "server"))
        return;
    if (coord_integer(json_object_get(question, "id"), &own))
        json_object_set_new(question, "id", json_integer(coord_id(c, n, own)));
    show_time(n, question, "begin");
    show_time(n, question, "end");
}

/* Writes the configuration with the path's thread as clients know it, for use in questions. */
static void put_configuration(struct coord_call *c, struct json *j, const struct node *n, struct slice configuration)
{
    json_t *all = json_loadb(configuration.at, configuration.n, 0, NULL), *p = json_object_get(all, "parameters");
    if (!all) {
        slice_put(j, configuration);
        return;
    }
    show_question(c, n, p);
    show_question(c, n, json_object_get(p, "a"));
    show_question(c, n, json_object_get(p, "b"));
    const char *text = coord_body_text(c->arena, all);
    json_raw(j, text, strlen(text));
}

static void put_output(struct coord_call *c, struct json *j, const struct coord_answer *p, struct slice output)
{
    const char *note = path_note(c, p->node, output);
    if (p->fate == COORD_MISSING)
        note = arena_printf(c->arena, "%s%s(%s %s)", note ? note : "", note ? " " : "", p->node->is->name,
            coord_node_is_away(p->node) ? "is away" : "does not tell it now");
    struct slice configuration = is_path(output) ? slice_get(output, "configuration") : (struct slice){0};
    if (!note && !slice_is(configuration, '{')) {
        slice_put(j, output);
        return;
    }
    const char *its = slice_string(slice_get(output, "description"), c->arena);
    struct slice_walk w = slice_members(output);
    json_begin_object(j);
    for (struct slice key, value; slice_next_member(&w, &key, &value);) {
        if (note && slice_equals(key, "description"))
            continue;
        slice_put_key(j, key);
        if (slice_is(configuration, '{') && slice_equals(key, "configuration"))
            put_configuration(c, j, p->node, configuration);
        else
            slice_put(j, value);
    }
    if (note)
        json_kv_string(j, "description", its && *its ? arena_printf(c->arena, "%s %s", its, note) : note);
    if (is_local(c, p->node, output))
        json_kv_string(j, "code", tsp_code_name(TSP_CODE_LOCAL_PATH));
    json_end_object(j);
}

/* Takes the outputs of each server, without those that others have already. Servers that answer are taken first, then
 * the last offers of missing ones. */
struct part_outputs {
    size_t from, to;
};
static struct part_outputs *take_all(const struct coord_answers *f, struct outputs *all)
{
    struct coord_call *c = f->call;
    struct part_outputs *its = arena_new(c->arena, struct part_outputs, f->n + 1);
    bool remembers = !c->request.arg[1]; /* configuration types are not cached */
    for (size_t i = 0; i < f->n; i++) {
        const struct coord_answer *p = &f->v[i];
        struct slice_walk w = slice_items(p->fate == COORD_GOOD ? p->root : (struct slice){0});
        its[i].from = all->v.n;
        for (struct slice o; slice_next(&w, &o);)
            if (slice_is(slice_get(o, "id"), '"'))
                take_output(all, o);
        its[i].to = all->v.n;
        if (remembers && p->fate == COORD_GOOD)
            coord_output_cache_note(c, p->node, p->root);
    }
    for (size_t i = 0; remembers && i < f->n; i++) {
        struct slice *last;
        if (f->v[i].fate != COORD_MISSING)
            continue;
        its[i].from = all->v.n;
        for (size_t k = 0, n = coord_output_cache_get(c, f->v[i].node, &last); k < n; k++)
            take_output(all, last[k]);
        its[i].to = all->v.n;
    }
    return its;
}

void coord_merge_outputs(struct coord_answers *f, struct json *j)
{
    struct outputs all = {0};
    const struct part_outputs *its = take_all(f, &all);
    json_begin_array(j);
    for (size_t i = 0; i < f->n; i++)
        for (size_t k = its[i].from; k < its[i].to; k++)
            put_output(f->call, j, &f->v[i], all.v.v[k]);
    json_end_array(j);
    vec_free(&all.v);
    map_fini(&all.by_id);
}

/* Lists objects with ids: outputs, or configuration types. */
void coord_outputs_list(struct coord_call *c)
{
    struct coord_answers f;
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    if (ask_members(&f, c, "GET", NULL, '[') && somebody_answers(&f)) {
        coord_merge_outputs(&f, &j);
        coord_warn(c);
        coord_reply(c, 200, &t);
    }
    coord_gather_end(&f);
}

static void send_output(struct coord_call *c, const struct coord_answer *p, struct slice output)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    put_output(c, &j, p, output);
    coord_warn(c);
    coord_reply(c, 200, &t);
}

/* Returns a missing server that offered the output last. NULL: none. */
static const struct coord_answer *missing_owner(const struct coord_answers *f, const char *id, struct slice *output)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].fate == COORD_MISSING && (*output = coord_output_cache_find(f->call, f->v[i].node, id)).at)
            return &f->v[i];
    return NULL;
}

static void forget_ended(const struct coord_answers *f, const char *id)
{
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].fate == COORD_GOOD)
            coord_output_cache_remove(f->call, f->v[i].node, id);
}

/* Reads one output or configuration type, or deletes a derived output, on any server that has it. */
void coord_outputs_pass(struct coord_call *c)
{
    struct coord_answers f;
    bool ends = tsp_method_is(c->q, "DELETE"), is_output = ends || !c->request.arg[2];
    if (ask_members(&f, c, ends ? "DELETE" : "GET", NULL, '{')) {
        const struct coord_answer *its = first_good(&f), *missing = NULL;
        struct slice last;
        if (!its && is_output)
            missing = missing_owner(&f, c->request.arg[ends ? 2 : 1], &last);
        if (its && ends)
            forget_ended(&f, c->request.arg[2]);
        if (its)
            send_output(c, its, its->root);
        else if (missing && ends)
            coord_error(c, 503, "The server that has it does not answer", coord_missing_text(&c->outcome, NULL));
        else if (missing)
            send_output(c, missing, last);
        else
            coord_gather_refuse(&f);
    }
    coord_gather_end(&f);
}

/* ---- deriving ---- */

/* Returns the request's body with ids and times of the server. */
static json_t *body_for(struct coord_call *c, const struct node *n)
{
    json_t *body = json_deep_copy(c->request.body), *question = json_object_get(body, "parameters");
    int64_t own;
    if (coord_question_owner(c, question, &own) == n)
        json_object_set_new(question, "id", json_integer(own));
    coord_times_ask(c, n, question);
    return body;
}

static const char *derivation(struct coord_call *c, const struct node *n)
{
    return coord_body_text(c->arena, body_for(c, n));
}

/* Returns the body for a cluster node that is asked for a thread of another machine. */
static const char *derivation_elsewhere(struct coord_call *c, const struct node *n)
{
    json_t *body = body_for(c, n), *parameters = json_object_get(body, "parameters");
    json_object_del(parameters, "id"); /* entry belongs to another server */
    json_object_set_new(parameters, "elsewhere", json_true());
    return coord_body_text(c->arena, body);
}

/* Deletes outputs that several servers have made, except perhaps the first. */
static void take_back(struct coord_call *c, const struct coord_answers *made, bool keep_first)
{
    struct coord_answers f;
    const char *at = coord_path_asked(&c->request);
    coord_gather_begin(&f, c, made->n);
    for (size_t i = 0; i < made->n; i++) {
        const struct coord_answer *p = &made->v[i];
        const char *id = p->fate == COORD_GOOD ? slice_string(slice_get(p->root, "id"), c->arena) : NULL;
        if (id && !keep_first)
            coord_gather_ask(
                &f, p->node, "DELETE", arena_printf(c->arena, "%s/%s", at, coord_path_part(c->arena, id)), NULL);
        keep_first &= !id;
    }
    coord_gather_wait(&f);
    coord_gather_end(&f);
}

/* Refuses a thread that several servers know, with the text of one server for several of its machines. A question that
 * names the host gets that host's refusal. */
static void refuse_several(struct coord_call *c, struct coord_answers *f)
{
    const char *names = NULL;
    if (coord_question_names_host(c->request.parameters)) {
        coord_gather_refuse(f);
        return;
    }
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].fate == COORD_GOOD || coord_answer_is_ambiguous(&f->v[i]))
            names = arena_printf(c->arena, "%s%s%s", names ? names : "", names ? ", " : "", f->v[i].node->is->name);
    coord_refuse(c, 400, TSP_CODE_AMBIGUOUS_THREAD, "Invalid query parameters: thread",
        arena_printf(c->arena, "threads of several machines are meant: name one as HOST:TID (servers: %s)", names));
}

/* Returns whether the servers that made an output have pieces of one machine's session; all of these know the
 * thread. */
static bool are_pieces(const struct coord_answers *f)
{
    const struct coord_virtual_node *group = NULL;
    bool one = true;
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].fate == COORD_GOOD) {
            one &= f->v[i].node->rotation && (!group || group == f->v[i].node->rotation);
            group = f->v[i].node->rotation;
        }
    return one;
}

static void derive_comparison(struct coord_call *c)
{
    struct coord_answers f;
    const char *body;
    struct node *keeper = coord_comparison_derived(c, &body);
    if (!keeper)
        return;
    coord_gather_begin(&f, c, 1);
    struct coord_answer *p = coord_gather_ask(&f, keeper, "POST", coord_path_asked(&c->request), body);
    if (coord_gather_wait(&f)) {
        if (p->fate == COORD_GOOD && !slice_is(p->root, '{'))
            coord_answer_spoil(&f, p, "its answer has another form than the protocol's");
        if (somebody_answers(&f)) {
            coord_output_cache_add(c, keeper, p->root);
            send_output(c, p, p->root);
        }
    }
    coord_gather_end(&f);
}

static void send_derived(struct coord_call *c, struct coord_answers *f)
{
    size_t good = 0, ambiguous = 0;
    for (size_t i = 0; i < f->n; i++) {
        good += f->v[i].fate == COORD_GOOD;
        ambiguous += coord_answer_is_ambiguous(&f->v[i]);
    }
    bool one = !ambiguous && (good == 1 || coord_question_names_host(c->request.parameters) || are_pieces(f));
    if (good > 1 || !one)
        take_back(c, f, one);
    c->outcome.missing.n = 0; /* servers need not know it */
    if (one) {
        coord_output_cache_add(c, first_good(f)->node, first_good(f)->root);
        send_output(c, first_good(f), first_good(f)->root);
    } else {
        refuse_several(c, f);
    }
}

/* ---- deriving while the thread's own server is away ---- */

/* Reduces the missing sources to servers that did not answer, and might have known the thread. Returns "without db:
 * nobody answers there", or NULL. */
static const char *who_is_away(struct coord_call *c, const struct coord_answers *f)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->outcome.missing.n; i++)
        for (size_t k = 0; k < f->n; k++)
            if (c->outcome.missing.v[i].server == f->v[k].node && f->v[k].fate == COORD_MISSING) {
                c->outcome.missing.v[kept++] = c->outcome.missing.v[i];
                break;
            }
    c->outcome.missing.n = kept;
    return coord_missing_text(&c->outcome, NULL);
}

/* Asks other nodes of the cluster for the path; they ask those with copies of the machine's traces. The first node that
 * answers knows as much as all. False: the client is gone. */
static bool ask_elsewhere(struct coord_call *c, struct node **nodes, size_t n, struct coord_answers *f)
{
    bool waits = true, answered = false;
    for (size_t i = 0; i < n && waits && !answered; i++) {
        if (!atomic_load(&nodes[i]->in_cluster) || coord_node_is_away(nodes[i]))
            continue;
        coord_gather_end(f);
        c->request.members = &nodes[i];
        c->request.n_members = 1;
        waits = ask_members(f, c, "POST", derivation_elsewhere, '{');
        answered = f->v[0].fate != COORD_MISSING;
    }
    return waits;
}

/* Derives an output: the server that knows its subject makes it. A thread HOST:TID is known where that host is. */
void coord_outputs_derive(struct coord_call *c)
{
    if (coord_comparison_is_asked(c)) {
        derive_comparison(c);
        return;
    }
    struct coord_answers f;
    int64_t begin, own;
    struct node *owner = coord_question_owner(c, c->request.parameters, &own), **all = c->request.members;
    if (!owner && coord_integer(json_object_get(c->request.parameters, "begin"), &begin))
        coord_rotations_keep(c, begin);
    size_t n = c->request.n_members;
    if (owner) {
        c->request.members = arena_new(c->arena, struct node *, 1);
        c->request.members[0] = owner;
        c->request.n_members = 1;
    }
    bool waits = ask_members(&f, c, "POST", derivation, '{');
    const char *away = waits && !first_good(&f) ? who_is_away(c, &f) : NULL;
    if (away && !strcmp(c->request.arg[1], paths[0]) && coord_question_names_host(c->request.parameters))
        waits = ask_elsewhere(c, all, n, &f);
    if (waits && first_good(&f))
        send_derived(c, &f);
    else if (waits)
        coord_gather_refuse_while(&f, away);
    coord_gather_end(&f);
}
