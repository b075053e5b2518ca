/* SPDX-License-Identifier: MIT */
/* Scatter and gather: one question to several servers. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "coord/call.h"

enum { LOOK_NS = 20000000, ANSWER_BYTES = 256 << 20 };

void coord_gather_begin(struct coord_gather *f, struct coord_call *call, size_t most)
{
    *f = (struct coord_gather){.call = call, .most = most};
    f->parts = arena_new(call->q->arena, struct coord_answer, most + 1);
    http_gather_begin(&f->gather, call->c->client);
}

static void coord_missing(struct coord_gather *f, struct coord_answer *p, const char *why)
{
    p->settled = true;
    p->fate = COORD_MISSING;
    p->root = p->model = (struct slice){0};
    coord_note_missing(f->call, p->node, why);
}

bool coord_answer_is_ambiguous(const struct coord_answer *p)
{
    return p->fate == COORD_REFUSED && coord_code(p->root) == TSP_CODE_AMBIGUOUS_THREAD;
}

void coord_answer_spoil(struct coord_gather *f, struct coord_answer *p, const char *why)
{
    coord_missing(f, p, why);
}

struct coord_answer *coord_gather_ask(
    struct coord_gather *f, struct node *n, const char *method, const char *path, const char *json)
{
    struct coord_answer *p = &f->parts[f->n++];
    p->node = n;
    if (!coord_node_lives_on(f->call->c, n) || coord_node_is_away(n)) {
        coord_missing(f, p, coord_node_why(n, f->call->q->arena));
        return p;
    }
    if (f->call->epochs && f->call->epochs[n->number] != atomic_load(&n->epoch)) {
        coord_missing(f, p, "it was away a moment ago"); /* parts of one answer come from one run of a server */
        return p;
    }
    coord_node_address(n, f->call->q->arena, path, &p->fetch);
    p->fetch.header = f->call->via;
    p->fetch.method = method;
    p->fetch.max_bytes = ANSWER_BYTES;
    if (json) {
        p->fetch.json = json;
        p->fetch.json_bytes = strlen(json);
    }
    http_gather_add(&f->gather, &p->fetch);
    return p;
}

/* Returns the text of another coordinator's Warning: `199 weft "without db: nobody answers there"`. */
static const char *warning_of(const struct http_fetch *t, struct arena *a)
{
    const char *said = strchr(t->warning, '"'), *end = strrchr(t->warning, '"');
    return said && end > said ? arena_strndup(a, said + 1, (size_t)(end - said - 1)) : arena_strdup(a, t->warning);
}

static void settle(struct coord_gather *f, struct coord_answer *p)
{
    struct http_fetch *t = &p->fetch;
    struct arena *a = f->call->q->arena;
    size_t bad;
    if (t->error.code) {
        /* Memory is short, which is no server's fault. The client must ask again, so that no answer is without servers
         * that are well. */
        if (t->error.code == ERR_BUSY || t->error.code == ERR_NOMEM)
            http_lack_memory(f->call->q);
        if (t->error.code == ERR_IO)
            coord_node_note_away(f->call->c, p->node, t->error.text);
        coord_missing(f, p, arena_strdup(a, t->error.text));
        return;
    }
    if (!coord_node_lives_on(f->call->c, p->node) || !coord_node_is_same(f->call, p->node)) {
        coord_missing(f, p, "it was started again meanwhile; ask again");
        return;
    }
    if (*t->warning && *t->method == 'G')
        coord_note_partial(f->call, p->node, warning_of(t, a));
    p->settled = true;
    p->root = slice_of(t->body.v, t->body.n, a, &bad);
    if (t->status != 200)
        p->fate = COORD_REFUSED;
    else if (!p->root.at)
        coord_missing(f, p, arena_printf(a, "its answer is no JSON (byte %zu)", bad));
}

bool coord_gather_wait(struct coord_gather *f)
{
    for (size_t waits = 1; waits;) {
        http_gather_wait(&f->gather, time_monotonic_ns() + LOOK_NS);
        if (http_gone(f->call->q))
            return false;
        waits = 0;
        for (size_t i = 0; i < f->n; i++) {
            struct coord_answer *p = &f->parts[i];
            if (p->settled)
                continue;
            if (atomic_load(&p->fetch.done))
                settle(f, p);
            else if (coord_node_is_away(p->node))
                coord_missing(f, p, coord_node_why(p->node, f->call->q->arena));
            else
                waits++;
        }
    }
    return true;
}

void coord_gather_end(struct coord_gather *f)
{
    struct coord_call *c = f->call;
    http_gather_end(&f->gather);
    c->held = f->gather.most_held > c->held ? f->gather.most_held : c->held;
}

/* ---- refusals ---- */

static int refusal_of(const struct coord_answer *p, struct arena *a, const char **title, const char **detail)
{
    *title = slice_string(slice_get(p->root, "title"), a);
    *detail = slice_string(slice_get(p->root, "detail"), a);
    if (!*title)
        *title = arena_printf(a, "Server %s answers with status %d", p->node->is->name, p->fetch.status);
    return p->fetch.status < 400 || p->fetch.status == 401 || p->fetch.status == 403 ? 502 : p->fetch.status;
}

/* Returns the first refusal, ambiguous ones before those of servers that know no thread. NULL: there is none. */
static const struct coord_answer *first_refusal(const struct coord_gather *f)
{
    const struct coord_answer *first = NULL;
    for (size_t i = 0; i < f->n; i++) {
        const struct coord_answer *p = &f->parts[i];
        if (coord_answer_is_ambiguous(p))
            return p;
        if (p->fate == COORD_REFUSED && !first)
            first = p;
    }
    return first;
}

void coord_gather_refuse_while(struct coord_gather *f, const char *away)
{
    const char *title, *detail;
    struct arena *a = f->call->q->arena;
    const struct coord_answer *p = first_refusal(f);
    if (!p) {
        coord_error(f->call, 503, "No server answers", coord_missing_text(f->call, NULL));
        return;
    }
    int status = refusal_of(p, a, &title, &detail);
    if (away)
        detail = detail && *detail ? arena_printf(a, "%s; %s", detail, away) : away;
    coord_refuse(f->call, status, coord_code(p->root), title, detail);
}

void coord_gather_refuse(struct coord_gather *f)
{
    coord_gather_refuse_while(f, NULL);
}

/* ---- paths ---- */

const char *coord_body_text(struct arena *a, json_t *body)
{
    char *text = json_dumps(body, JSON_COMPACT);
    const char *kept = arena_strdup(a, text ? text : "{}");
    free(text);
    json_decref(body);
    return kept;
}

const char *coord_path_part(struct arena *a, const char *s)
{
    char *out = arena_alloc(a, 3 * strlen(s) + 1), *to = out;
    for (; *s; s++) {
        if (isalnum((unsigned char)*s) || strchr("-._~:$", *s))
            *to++ = *s;
        else
            to += sprintf(to, "%%%02X", (unsigned)(unsigned char)*s);
    }
    *to = '\0';
    return out;
}

const char *coord_path_asked(struct coord_call *c)
{
    struct arena *a = c->q->arena;
    const char *path = "";
    struct tsp_path p;
    tsp_path_of(c->q, &p);
    for (size_t i = 0; i < p.n; i++)
        path = arena_printf(a, "%s/%s", path, coord_path_part(a, p.part[i]));
    return path;
}
