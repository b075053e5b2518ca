/* SPDX-License-Identifier: MIT */
/* Comparisons of two critical paths whose threads are on two servers. The server of one path (the host) makes the
 * comparison like its own ones. It receives the other path as parts, which the other server reports. */
#include "coord/comparisons.h"

#include <string.h>

#include "coord/entries.h"
#include "coord/gather.h"
#include "coord/question.h"
#include "coord/rotation.h"
#include "coord/tree.h"

static const char output[] = COMPARISON_OUTPUT;
static const char *const names[] = {"a", "b"};
enum { SIDES = 2, MOST_BYTES = (1 << 20) - (1 << 12) /* servers accept bodies of 1 MiB */ };

/* Path to compare. */
struct side {
    const char *name;
    json_t *asked;         /* borrowed */
    bool is_given;         /* the client has the path from another server: `asked` is passed on unchanged */
    bool is_own;           /* ids and times are those of its owner */
    struct node **members; /* members that may know the thread */
    size_t n_members;
    struct node *owner;          /* member that knows it; NULL: not known yet */
    size_t first, n;             /* range of its questions among all */
    struct coord_answer *answer; /* the owner's; NULL: not asked yet */
    bool is_refused;             /* refused: all answer, and none knows it */
};

/* ---- questions ---- */

/* Finds the owner of a side's entry. Replaces the call's members by those of the side meanwhile. */
static struct node *entry_of(struct coord_call *c, const struct side *s, int64_t *own)
{
    struct node **members = c->request.members;
    size_t n = c->request.n_members;
    c->request.members = s->members;
    c->request.n_members = s->n_members;
    struct node *owner = coord_question_owner(c, s->asked, own);
    c->request.members = members;
    c->request.n_members = n;
    return owner;
}

/* Returns the question with ids and times of the server, owned by the caller. */
static json_t *question_for(struct coord_call *c, const struct side *s, const struct node *n)
{
    json_t *q = json_deep_copy(s->asked);
    int64_t own;
    json_object_del(q, "server");
    if (s->is_own)
        return q;
    if (entry_of(c, s, &own) == n)
        json_object_set_new(q, "id", json_integer(own));
    coord_times_ask(c, n, q);
    return q;
}

/* Returns a body for the parts of one path: a comparison with an empty path. */
static const char *body_alone(struct coord_call *c, const struct side *s, const struct node *n)
{
    json_t *body = json_object(), *p = json_object(), *none = json_object();
    json_object_set_new(none, "parts", json_array());
    json_object_set_new(p, s->name == names[0] ? names[1] : names[0], none);
    json_object_set_new(p, s->name, question_for(c, s, n));
    json_object_set_new(body, "parameters", p);
    return coord_body_text(c->arena, body);
}

static const char *tree_path(struct coord_call *c)
{
    return arena_printf(
        c->arena, "/experiments/%s/outputs/data/%s/tree", coord_path_part(c->arena, c->request.arg[0]), output);
}

/* ---- owners ---- */

/* Sets a side, with what is known without a question. */
static void take_side(struct coord_call *c, struct side *s, json_t *asked)
{
    struct node **members = c->request.members;
    size_t n = c->request.n_members;
    int64_t begin, own;
    s->asked = asked;
    s->is_given = json_is_array(json_object_get(asked, "parts"));
    c->request.members = arena_new(c->arena, struct node *, n + 1);
    memcpy(c->request.members, members, n * sizeof *members);
    if (coord_integer(json_object_get(asked, "begin"), &begin))
        coord_rotations_keep(c, begin);
    s->members = c->request.members;
    s->n_members = c->request.n_members;
    c->request.members = members;
    c->request.n_members = n;
    if (!s->is_given)
        s->owner = s->n_members == 1 ? s->members[0] : entry_of(c, s, &own);
}

static const struct side *first_asked(const struct side both[SIDES])
{
    return both[0].is_given ? &both[1] : &both[0];
}

/* Asks for the paths, except that of a known host. */
static bool ask_sides(struct coord_answers *f, struct coord_call *c, struct side both[SIDES])
{
    const struct node *host = first_asked(both)->owner;
    coord_gather_begin(f, c, SIDES * (c->request.n_members + 1));
    for (size_t i = 0; i < SIDES; i++) {
        struct side *s = &both[i];
        s->first = f->n;
        if (s->is_given || (s->owner && s->owner == host))
            continue;
        for (size_t k = 0; k < s->n_members; k++)
            if (!s->owner || s->owner == s->members[k])
                coord_gather_ask(f, s->members[k], "POST", tree_path(c), body_alone(c, s, s->members[k]));
        s->n = f->n - s->first;
    }
    return !f->n || coord_gather_wait(f);
}

static bool has_status(const struct coord_answer *p, const char *status)
{
    return slice_equals(slice_get(p->root, "status"), status);
}

/* Returns whether an entry's metadata describe a part with a time for that side. */
static bool is_part(struct slice metadata, const char *side)
{
    struct slice text, number;
    struct slice_walk of[] = {slice_items(slice_get(metadata, "host")), slice_items(slice_get(metadata, "state")),
        slice_items(slice_get(metadata, side))};
    int64_t ns;
    return slice_next(&of[0], &text) && slice_is(text, '"') && slice_next(&of[1], &text) && slice_is(text, '"') &&
        slice_next(&of[2], &number) && slice_integer(number, &ns) && ns >= 0;
}

/* Returns whether nothing is known yet: no path and, while traces are being opened, not even whether the thread
 * exists. */
static bool is_awaited(const struct coord_answer *p)
{
    return has_status(p, "RUNNING") && slice_is(slice_get(p->root, "model"), 'n');
}

static bool has_parts(const struct coord_answer *p, const char *side)
{
    struct slice entries = slice_get(slice_get(p->root, "model"), "entries");
    struct slice_walk w = slice_items(entries);
    if (!slice_is(entries, '['))
        return is_awaited(p);
    for (struct slice e; slice_next(&w, &e);)
        if (!is_part(slice_get(e, "metadata"), side))
            return false;
    return true;
}

static bool is_good(struct coord_answers *f, struct coord_answer *p, const char *side)
{
    if (p->fate != COORD_GOOD || has_status(p, "FAILED"))
        return false;
    if ((has_status(p, "RUNNING") || has_status(p, "COMPLETED")) && has_parts(p, side))
        return true;
    coord_answer_spoil(
        f, p, has_status(p, "CANCELLED") ? "its analysis was cancelled" : "what it tells of a path is none");
    return false;
}

/* Returns whether it answers that the thread does not exist, or that the question is wrong. */
static bool knows_better(const struct coord_answer *p)
{
    enum tsp_code code = coord_code(p->root);
    if (p->fate == COORD_REFUSED)
        return p->http_status == 404 || p->http_status == 405;
    return p->fate == COORD_GOOD && (code == TSP_CODE_INVALID_QUERY || code == TSP_CODE_AMBIGUOUS_THREAD);
}

static void note_refusal(struct coord_answers *f, struct coord_answer *p)
{
    struct arena *a = f->call->arena;
    const char *message = slice_string(slice_get(p->root, "statusMessage"), a),
               *title = slice_string(slice_get(p->root, "title"), a);
    size_t before = f->call->outcome.missing.n;
    if (p->fate == COORD_GOOD)
        coord_note_reported(&f->call->outcome, p->node, p->root); /* missing sources behind a coordinator */
    if (p->fate == COORD_GOOD && f->call->outcome.missing.n == before)
        coord_answer_spoil(f, p, message ? message : "failed");
    else if (p->fate == COORD_REFUSED && p->http_status != 404 && p->http_status != 405)
        coord_note_missing(&f->call->outcome, p->node, title ? title : arena_printf(a, "status %d", p->http_status));
}

/* Notes the refusals when no server reports the path. Servers that cannot answer may be those that know the thread;
 * then the other servers, which do not know it, are not missing. */
static void note_refusals(struct coord_answers *f, struct side *s)
{
    s->is_refused = true;
    for (size_t i = s->first; i < s->first + s->n; i++)
        s->is_refused &= knows_better(&f->v[i]);
    if (s->is_refused)
        f->call->outcome.code = TSP_CODE_INVALID_QUERY;
    for (size_t i = s->first; i < s->first + s->n; i++)
        if (s->is_refused || !knows_better(&f->v[i]))
            note_refusal(f, &f->v[i]);
}

/* Returns how many threads of several machines the server may mean: 2 if it has several of them. A failure without a
 * code (older version) counts too: the server may know such a thread, and choosing another may pick the wrong
 * machine's. */
static size_t threads_meant(const struct coord_answer *p, bool again)
{
    enum tsp_code code = coord_code(p->root);
    bool fails = has_status(p, "FAILED");
    if (p->fate != COORD_GOOD || is_awaited(p) || (fails && code && code != TSP_CODE_AMBIGUOUS_THREAD))
        return 0;
    return code == TSP_CODE_AMBIGUOUS_THREAD ? 2 : !again;
}

static const char *message_of(struct coord_call *c, const struct coord_answer *p)
{
    return p ? slice_string(slice_get(p->root, "statusMessage"), c->arena) : NULL;
}

/* Returns why the thread is ambiguous; NULL: it is not. If only one server is concerned, its own message explains how
 * to name one. */
static const char *several_meant(const struct coord_answers *f, const struct side *s)
{
    struct arena *a = f->call->arena;
    const char *all = NULL, *said = NULL;
    const struct coord_virtual_node *group = NULL;
    size_t n = 0, servers = 0;
    bool names_host = coord_question_names_host(s->asked);
    for (size_t i = s->first; i < s->first + s->n; i++) {
        const struct coord_answer *p = &f->v[i];
        bool again = group && group == p->node->rotation;
        if (!threads_meant(p, false))
            continue;
        if (coord_code(p->root) == TSP_CODE_AMBIGUOUS_THREAD && !said)
            said = message_of(f->call, p);
        all = arena_printf(a, "%s%s%s", all ? all : "", all ? ", " : "", p->node->is->name);
        n += names_host ? coord_code(p->root) == TSP_CODE_AMBIGUOUS_THREAD : threads_meant(p, again);
        servers++;
        group = p->node->rotation;
    }
    if (n < (names_host ? 1 : 2))
        return NULL;
    if (said && (names_host || servers == 1))
        return said;
    return arena_printf(a,
        "Invalid query parameters: thread (threads of several machines are meant: name one as HOST:TID; servers: %s) "
        "(of %s)",
        all, s->name);
}

/* Returns NULL, or why the path is unavailable; missing sources are noted then. */
static const char *settle_side(struct coord_answers *f, struct side *s)
{
    struct arena *a = f->call->arena;
    for (size_t i = s->first; i < s->first + s->n; i++) {
        struct coord_answer *p = &f->v[i];
        if (is_good(f, p, s->name) && (!s->answer || (is_awaited(s->answer) && !is_awaited(p))))
            s->answer = p;
    }
    const char *several = several_meant(f, s);
    if (several) {
        s->is_refused = true;
        f->call->outcome.code = TSP_CODE_AMBIGUOUS_THREAD;
        return several;
    }
    if (s->answer)
        s->owner = s->answer->node;
    else if (s->n || !s->owner)
        note_refusals(f, s);
    return s->owner && (s->answer || !s->n) ? NULL : arena_printf(a, "No server tells the path of %s", s->name);
}

/* Sets the owners. False: the client is gone. */
static bool find_owners(struct coord_answers *f, struct coord_call *c, struct side both[SIDES], const char **wrong)
{
    bool there = ask_sides(f, c, both);
    *wrong = NULL;
    for (size_t i = 0; there && i < SIDES && !*wrong; i++)
        if (!both[i].is_given)
            *wrong = settle_side(f, &both[i]);
    return there;
}

/* ---- the comparison ---- */

static void put_parts(struct text *t, const struct coord_answer *p)
{
    struct slice_walk w = slice_items(slice_get(slice_get(p->root, "model"), "entries"));
    bool first = true;
    TEXT_PUT(t, "{\"parts\":[");
    for (struct slice e; slice_next(&w, &e); first = false) {
        struct slice metadata = slice_get(e, "metadata");
        if (!first)
            text_putc(t, ',');
        text_put(t, metadata.at, metadata.n);
    }
    TEXT_PUT(t, "]}");
}

static const char *body_of_both(struct coord_call *c, const struct side both[SIDES], const struct node *host)
{
    struct text t = {.fd = -1};
    TEXT_PUT(&t, "{\"parameters\":{");
    for (size_t i = 0; i < SIDES; i++) {
        const struct side *s = &both[i];
        text_printf(&t, "%s\"%s\":", i ? "," : "", s->name);
        if (s->is_given || s->owner == host)
            text_puts(&t, coord_body_text(c->arena, s->is_given ? json_incref(s->asked) : question_for(c, s, host)));
        else
            put_parts(&t, s->answer);
    }
    TEXT_PUT(&t, "}}");
    const char *body = arena_strndup(c->arena, t.v, t.n);
    text_fini(&t);
    return body;
}

/* Notes paths that end at their server's machines: those of servers in no cluster, if other servers have traces,
 * too. */
static void note_local(struct coord_call *c, const struct side both[SIDES], const struct node *host)
{
    struct arena *a = c->arena;
    const char *reported = c->outcome.message; /* message of the host */
    const bool is_marked = c->outcome.code == TSP_CODE_LOCAL_PATH;
    for (size_t i = 0; i < SIDES; i++) {
        const struct side *s = &both[i];
        const char *its = s->owner == host ? reported : message_of(c, s->answer); /* coordinators add it themselves */
        if (s->is_given || atomic_load(&s->owner->in_cluster) || (s->owner == host && is_marked))
            continue;
        if (s->owner == host || !its || coord_code(s->answer->root) != TSP_CODE_LOCAL_PATH)
            its = arena_printf(a, "%s: as %s alone tells it", s->name, s->owner->is->name);
        c->outcome.message = c->outcome.message ? arena_printf(a, "%s; %s", c->outcome.message, its) : its;
        c->outcome.code = TSP_CODE_LOCAL_PATH;
    }
}

/* Notes missing sources and progress that owners of transferred paths report. */
static void note_transferred(struct coord_call *c, const struct side both[SIDES], const struct node *host)
{
    for (size_t i = 0; i < SIDES; i++) {
        const struct side *s = &both[i];
        if (s->is_given || s->owner == host)
            continue;
        c->outcome.complete += coord_note_reported(&c->outcome, s->owner, s->answer->root);
        if (has_status(s->answer, "RUNNING") && c->outcome.status != COORD_RUNNING) {
            c->outcome.status = COORD_RUNNING;
            c->outcome.message = message_of(c, s->answer);
            c->outcome.code = coord_code(s->answer->root);
        }
    }
    if (c->request.several && c->outcome.status == COORD_COMPLETED)
        note_local(c, both, host);
}

/* Returns the message about a path that is not known yet; NULL: there is none. */
static const char *awaited(struct coord_call *c, const struct side both[SIDES])
{
    for (size_t i = 0; i < SIDES; i++) {
        const char *message = message_of(c, both[i].answer);
        if (both[i].answer && is_awaited(both[i].answer))
            return message ? message : "Running";
    }
    return NULL;
}

static void compare(struct coord_call *c, const struct side both[SIDES])
{
    struct coord_answers f;
    struct node *host = first_asked(both)->owner;
    const char *not_yet = awaited(c, both);
    c->outcome.missing.n = 0; /* servers need not know the threads */
    if (not_yet) {
        coord_envelope_send_null(c, COORD_RUNNING, not_yet);
        return;
    }
    const char *body = body_of_both(c, both, host);
    coord_gather_begin(&f, c, 1);
    if (strlen(body) > MOST_BYTES)
        coord_envelope_send_null(c, COORD_FAILED, "The paths have too many parts to be compared over servers");
    else if (coord_gather_ask(&f, host, "POST", tree_path(c), body) && coord_gather_wait(&f) &&
        coord_envelopes_open(&f)) {
        note_transferred(c, both, host);
        coord_envelope_merge(&f, coord_merge_tree);
    }
    coord_gather_end(&f);
}

/* ---- derived outputs ---- */

static json_t *parameters_of(struct slice derived)
{
    struct slice p = slice_get(slice_get(derived, "configuration"), "parameters");
    return p.at ? json_loadb(p.at, p.n, 0, NULL) : NULL;
}

static const char *server_of(json_t *parameters, size_t side)
{
    return coord_text(json_object_get(parameters, names[side]), "server");
}

/* Sets the sides of a stored comparison. The other side's owner is stored by its name. */
static void take_kept(struct coord_call *c, struct side both[SIDES], struct node *keeper, json_t *parameters)
{
    json_object_set_new(c->request.body, "kept", parameters);
    for (size_t i = 0; i < SIDES; i++) {
        const char *server = server_of(parameters, i);
        both[i].asked = json_object_get(parameters, names[i]);
        both[i].is_own = true;
        both[i].members = c->request.members;
        both[i].n_members = c->request.n_members;
        both[i].owner = server ? NULL : keeper;
        for (size_t k = 0; server && k < c->request.n_members; k++)
            if (!strcmp(c->request.members[k]->is->name, server))
                both[i].owner = c->request.members[k];
    }
}

/* Returns whether the comparison is of two servers, and sets its sides then. */
static bool find_kept(struct coord_call *c, struct side both[SIDES])
{
    struct coord_answers f;
    struct arena *a = c->arena;
    const char *at = arena_printf(
        a, "/experiments/%s/outputs/%s", coord_path_part(a, c->request.arg[0]), coord_path_part(a, c->request.arg[1]));
    bool found = false;
    if (coord_gather_members(&f, c, "GET", at, NULL))
        for (size_t i = 0; i < f.n && !found; i++) {
            json_t *p = f.v[i].fate == COORD_GOOD ? parameters_of(f.v[i].root) : NULL;
            found = !server_of(p, 0) != !server_of(p, 1);
            if (found)
                take_kept(c, both, f.v[i].node, p);
            else
                json_decref(p);
        }
    coord_gather_end(&f);
    c->outcome.missing.n = 0;
    return found;
}

bool coord_comparison_tree(struct coord_call *c)
{
    struct coord_answers f;
    struct side both[SIDES] = {{.name = names[0]}, {.name = names[1]}};
    const size_t length = sizeof output - 1;
    const char *wrong;
    if (!strstr(c->request.path, "/outputs/data/"))
        return false;
    if (!strncmp(c->request.arg[1], output, length) && c->request.arg[1][length] == ':' && c->request.several) {
        if (!find_kept(c, both))
            return false;
    } else if (!coord_comparison_is_asked(c)) {
        return false;
    } else {
        for (size_t i = 0; i < SIDES; i++)
            take_side(c, &both[i], json_object_get(c->request.parameters, names[i]));
    }
    for (size_t i = 0; i < SIDES; i++)
        if (both[i].is_own && !both[i].owner) {
            coord_envelope_send_null(c, COORD_FAILED,
                arena_printf(c->arena, "%s is a thread of server %s, which is none of the servers", names[i],
                    coord_text(both[i].asked, "server")));
            return true;
        }
    if (find_owners(&f, c, both, &wrong)) {
        if (wrong)
            coord_envelope_send_null(c, COORD_FAILED, wrong);
        else
            compare(c, both);
    }
    coord_gather_end(&f);
    return true;
}

/* ---- deriving ---- */

bool coord_comparison_is_asked(const struct coord_call *c)
{
    bool is = !strcmp(c->request.arg[1], output);
    size_t reported = 0;
    for (size_t i = 0; i < SIDES; i++) {
        json_t *side = json_object_get(c->request.parameters, names[i]);
        is &= json_is_object(side);
        reported += json_is_array(json_object_get(side, "parts"));
    }
    return is && reported < SIDES;
}

/* Returns the body for the host. If both paths are its own, their questions have no server. */
static const char *derivation_of_both(struct coord_call *c, const struct side both[SIDES], const struct node *host)
{
    json_t *body = json_deep_copy(c->request.body), *p = json_object_get(body, "parameters");
    for (size_t i = 0; i < SIDES; i++) {
        if (both[i].is_given)
            continue;
        json_t *q = question_for(c, &both[i], both[i].owner);
        if (both[i].owner != host)
            json_object_set_new(q, "server", json_string(both[i].owner->is->name));
        json_object_set_new(p, names[i], q);
    }
    return coord_body_text(c->arena, body);
}

struct node *coord_comparison_derived(struct coord_call *c, const char **body)
{
    struct coord_answers f;
    struct side both[SIDES] = {{.name = names[0]}, {.name = names[1]}};
    struct node *host = NULL;
    const char *wrong;
    for (size_t i = 0; i < SIDES; i++) {
        take_side(c, &both[i], json_object_get(c->request.parameters, names[i]));
        both[i].is_given |= server_of(c->request.parameters, i) && !(i && both[0].is_given);
    }
    if (find_owners(&f, c, both, &wrong)) {
        if (wrong)
            coord_refuse(c, both[0].is_refused || both[1].is_refused ? 400 : 503, c->outcome.code, wrong,
                coord_missing_text(&c->outcome, NULL));
        else if ((wrong = awaited(c, both)))
            coord_error(c, 503, wrong, "ask again");
        else
            host = first_asked(both)->owner;
    }
    coord_gather_end(&f);
    if (host)
        *body = derivation_of_both(c, both, host);
    c->outcome.missing.n = 0;
    return host;
}

const char *coord_comparison_servers(const struct coord_call *c, const struct node *keeper, struct slice derived)
{
    json_t *p = parameters_of(derived);
    const char *said = NULL, *of[SIDES] = {server_of(p, 0), server_of(p, 1)};
    if (!of[0] != !of[1])
        said = arena_printf(
            c->arena, "a as %s, b as %s", of[0] ? of[0] : keeper->is->name, of[1] ? of[1] : keeper->is->name);
    json_decref(p);
    return said;
}
