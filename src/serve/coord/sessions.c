/* SPDX-License-Identifier: MIT */
/* Detection of servers with pieces of one session that are not configured as such. LTTng writes the session's creation
 * time into each of its archives. Traces of one host with equal creation times that do not overlap are pieces. The
 * advice to the user is given once. */
#include <stdlib.h>

#include "coord/rotation.h"

enum { MOST_SESSIONS = 1 << 16 };
#define NONE SIZE_MAX

struct session {
    uint64_t what; /* hash of the host, the session's creation time, … */
    const struct node *node;
    int64_t begin, end;
    size_t before; /* index of another one of the same session */
};
struct sessions {
    VEC(struct session) v;
    struct map last;     /* session -> index in `v` */
    struct map reported; /* reported pairs of servers */
};

struct sessions *coord_sessions_new(void)
{
    return mem_zalloc(sizeof(struct sessions));
}

void coord_sessions_free(struct sessions *s)
{
    if (!s)
        return;
    vec_free(&s->v);
    map_fini(&s->last);
    map_fini(&s->reported);
    free(s);
}

/* Reads a trace's session; false: there is none, or the trace is not read yet. */
static bool session_of(const struct node *n, struct slice trace, struct session *out)
{
    static const char *const keys[] = {"hostname", "domain", "trace_name", "trace_creation_datetime"};
    struct slice p = slice_get(trace, "properties");
    uint64_t what = 0;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        struct slice value = slice_get(p, keys[i]);
        if (!slice_is(value, '"'))
            return false;
        what = map_mix(what) ^ map_hash(value.at, value.n);
    }
    *out = (struct session){.what = what, .node = n};
    return slice_integer(slice_get(trace, "start"), &out->begin) && slice_integer(slice_get(trace, "end"), &out->end) &&
        out->begin < out->end;
}

static void report(struct coordinator *c, const struct session *a, const struct session *b, struct slice trace)
{
    struct arena arena = {0};
    const char *host = slice_string(slice_get(slice_get(trace, "properties"), "hostname"), &arena);
    const struct session *first = a->begin < b->begin ? a : b, *second = first == a ? b : a;
    uint64_t both[2] = {first->node->number, second->node->number};
    bool fresh;
    map_put(&c->sessions->reported, map_hash(both, sizeof both), &fresh);
    if (fresh && c->o.report)
        c->o.report(arena_printf(&arena,
            "servers %s and %s have pieces of one session of %s, and show a machine each; one they are with "
            "rotation-groups: {%s: [%s, %s]} in the configuration",
            first->node->is->name, second->node->is->name, host, host, first->node->is->name, second->node->is->name));
    arena_fini(&arena);
}

static void note_trace(struct coordinator *c, const struct node *n, struct slice trace)
{
    struct sessions *s = c->sessions;
    struct session now;
    bool known = false;
    if (!session_of(n, trace, &now))
        return;
    uint64_t *last = map_find(&s->last, now.what);
    for (size_t i = last ? *last : (size_t)NONE; i != NONE; i = s->v.v[i].before) {
        struct session *is = &s->v.v[i];
        if (is->node == n) {
            known = true;
            is->begin = now.begin < is->begin ? now.begin : is->begin;
            is->end = now.end > is->end ? now.end : is->end;
        } else if ((!n->rotation || n->rotation != is->node->rotation) &&
            (is->end <= now.begin || now.end <= is->begin)) {
            report(c, is, &now, trace);
        }
    }
    if (known || s->v.n == MOST_SESSIONS)
        return;
    now.before = last ? *last : (size_t)NONE;
    vec_push(&s->v, now);
    *map_put(&s->last, now.what, NULL) = s->v.n - 1;
}

void coord_sessions_note(struct coordinator *c, const struct node *n, struct slice experiments)
{
    struct slice_walk w = slice_items(experiments);
    for (struct slice x; slice_next(&w, &x);) {
        struct slice_walk traces = slice_items(slice_get(x, "traces"));
        for (struct slice t; slice_next(&traces, &t);)
            note_trace(c, n, t);
    }
}
