/* SPDX-License-Identifier: MIT */
#include "coord/gather.h"

#include <string.h>

#include "base/time.h"

enum { LOOK_NS = 20000000, ANSWER_BYTES = 256 << 20 };

/* Request to one server. settled: its answer is taken. */
struct sent {
    struct http_fetch fetch;
    bool settled;
};
struct coord_gather {
    struct http_gather http;
    struct sent *sent; /* by answer */
};

void coord_gather_begin(struct coord_answers *f, struct coord_call *call, size_t most)
{
    struct arena *a = call->arena;
    *f = (struct coord_answers){.call = call, .most = most};
    f->v = arena_new(a, struct coord_answer, most + 1);
    f->gather = arena_new(a, struct coord_gather, 1);
    f->gather->sent = arena_new(a, struct sent, most + 1);
    http_gather_begin(&f->gather->http, call->c->client);
}

/* Settles a request without an answer. */
static void miss(struct coord_answers *f, struct coord_answer *p, const char *why)
{
    f->gather->sent[p - f->v].settled = true;
    coord_answer_spoil(f, p, why);
}

struct coord_answer *coord_gather_ask(
    struct coord_answers *f, struct node *n, const char *method, const char *path, const char *json)
{
    struct coord_call *c = f->call;
    struct http_fetch *t = &f->gather->sent[f->n].fetch;
    struct coord_answer *p = &f->v[f->n++];
    p->node = n;
    if (!coord_node_lives_on(c->c, n) || coord_node_is_away(n)) {
        miss(f, p, coord_node_why(n, c->arena));
        return p;
    }
    if (c->request.epochs && c->request.epochs[n->number] != atomic_load(&n->epoch)) {
        miss(f, p, "it was away a moment ago"); /* parts of one answer come from one run of a server */
        return p;
    }
    coord_node_address(n, c->arena, path, t);
    t->header = c->request.via;
    t->method = method;
    t->max_bytes = ANSWER_BYTES;
    if (json) {
        t->json = json;
        t->json_bytes = strlen(json);
    }
    http_gather_add(&f->gather->http, t);
    return p;
}

/* Returns the text of another coordinator's Warning: `199 weft "without db: nobody answers there"`. */
static const char *warning_of(const struct http_fetch *t, struct arena *a)
{
    const char *said = strchr(t->warning, '"'), *end = strrchr(t->warning, '"');
    return said && end > said ? arena_strndup(a, said + 1, (size_t)(end - said - 1)) : arena_strdup(a, t->warning);
}

static void settle(struct coord_answers *f, struct coord_answer *p)
{
    struct sent *sent = &f->gather->sent[p - f->v];
    struct http_fetch *t = &sent->fetch;
    struct coord_call *c = f->call;
    size_t bad;
    if (t->error.code) {
        /* Memory is short, which is no server's fault. The client must ask again, so that no answer is without servers
         * that are well. */
        if (t->error.code == ERR_BUSY || t->error.code == ERR_NOMEM)
            http_lack_memory(c->q);
        if (t->error.code == ERR_IO)
            coord_node_note_away(c->c, p->node, t->error.text);
        miss(f, p, arena_strdup(c->arena, t->error.text));
        return;
    }
    if (!coord_node_lives_on(c->c, p->node) || !coord_node_is_same(&c->request, p->node)) {
        miss(f, p, "it was started again meanwhile; ask again");
        return;
    }
    if (*t->warning && *t->method == 'G')
        coord_note_partial(&c->outcome, p->node, warning_of(t, c->arena));
    sent->settled = true;
    p->http_status = t->status;
    p->text = &t->body;
    p->root = slice_of(t->body.v, t->body.n, c->arena, &bad);
    if (t->status != 200)
        p->fate = COORD_REFUSED;
    else if (!p->root.at)
        miss(f, p, arena_printf(c->arena, "its answer is no JSON (byte %zu)", bad));
}

bool coord_gather_wait(struct coord_answers *f)
{
    for (size_t waits = 1; waits;) {
        http_gather_wait(&f->gather->http, time_monotonic_ns() + LOOK_NS);
        if (http_gone(f->call->q))
            return false;
        waits = 0;
        for (size_t i = 0; i < f->n; i++) {
            struct coord_answer *p = &f->v[i];
            const struct sent *sent = &f->gather->sent[i];
            if (sent->settled)
                continue;
            if (atomic_load(&sent->fetch.done))
                settle(f, p);
            else if (coord_node_is_away(p->node))
                miss(f, p, coord_node_why(p->node, f->call->arena));
            else
                waits++;
        }
    }
    return true;
}

void coord_gather_end(struct coord_answers *f)
{
    struct coord_outcome *o = &f->call->outcome;
    http_gather_end(&f->gather->http);
    o->held = f->gather->http.most_held > o->held ? f->gather->http.most_held : o->held;
}

bool coord_gather_members(
    struct coord_answers *f, struct coord_call *c, const char *method, const char *path, const char *json)
{
    coord_gather_begin(f, c, c->request.n_members);
    for (size_t i = 0; i < c->request.n_members; i++)
        coord_gather_ask(f, c->request.members[i], method, path, json);
    return coord_gather_wait(f);
}

bool coord_gather_trees(struct coord_answers *f, struct coord_call *c, const char *path)
{
    if (!coord_gather_members(f, c, "POST", path, "{\"parameters\":{}}"))
        return false;
    for (size_t i = 0; i < f->n; i++)
        f->v[i].model = f->v[i].fate == COORD_GOOD ? slice_get(f->v[i].root, "model") : (struct slice){0};
    return true;
}

/* ---- refusals ---- */

static int refusal_of(const struct coord_answer *p, struct arena *a, const char **title, const char **detail)
{
    *title = slice_string(slice_get(p->root, "title"), a);
    *detail = slice_string(slice_get(p->root, "detail"), a);
    if (!*title)
        *title = arena_printf(a, "Server %s answers with status %d", p->node->is->name, p->http_status);
    return p->http_status < 400 || p->http_status == 401 || p->http_status == 403 ? 502 : p->http_status;
}

/* Returns the first refusal, ambiguous ones before those of servers that know no thread. NULL: there is none. */
static const struct coord_answer *first_refusal(const struct coord_answers *f)
{
    const struct coord_answer *first = NULL;
    for (size_t i = 0; i < f->n; i++) {
        const struct coord_answer *p = &f->v[i];
        if (coord_answer_is_ambiguous(p))
            return p;
        if (p->fate == COORD_REFUSED && !first)
            first = p;
    }
    return first;
}

void coord_gather_refuse_while(struct coord_answers *f, const char *away)
{
    const char *title, *detail;
    struct arena *a = f->call->arena;
    const struct coord_answer *p = first_refusal(f);
    if (!p) {
        coord_error(f->call, 503, "No server answers", coord_missing_text(&f->call->outcome, NULL));
        return;
    }
    int status = refusal_of(p, a, &title, &detail);
    if (away)
        detail = detail && *detail ? arena_printf(a, "%s; %s", detail, away) : away;
    coord_refuse(f->call, status, coord_code(p->root), title, detail);
}

void coord_gather_refuse(struct coord_answers *f)
{
    coord_gather_refuse_while(f, NULL);
}
