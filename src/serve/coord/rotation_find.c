/* SPDX-License-Identifier: MIT */
/* Rotations of a request: their pieces, and answers of these. */
#include <stdlib.h>
#include <string.h>

#include "coord/gather.h"
#include "coord/rotation.h"

/* Returns whether the member is a piece that never reported its range. */
static bool is_unknown(struct coord_call *c, const struct node *n)
{
    return n->rotation && !coord_node_is_away(n) && !coord_member_range(c, n).end;
}

static void learn_ranges(struct coord_call *c)
{
    const struct coord_request *r = &c->request;
    const char *path = arena_printf(c->arena, "/experiments/%s", coord_path_part(c->arena, r->arg[0]));
    struct coord_answers f;
    struct time_range its;
    size_t first = 0;
    while (first < r->n_members && !is_unknown(c, r->members[first]))
        first++;
    if (first == r->n_members)
        return;
    coord_gather_begin(&f, c, r->n_members);
    for (size_t i = first; i < r->n_members; i++)
        if (is_unknown(c, r->members[i]))
            coord_gather_ask(&f, r->members[i], "GET", path, NULL);
    if (coord_gather_wait(&f))
        for (size_t i = 0; i < f.n; i++)
            if (f.v[i].fate == COORD_GOOD)
                coord_note_range(c, r->arg[0], f.v[i].node, f.v[i].root, &its);
    coord_gather_end(&f);
}

static int by_begin(const void *a, const void *b)
{
    const struct coord_piece *x = a, *y = b;
    if (x->range.begin != y->range.begin)
        return x->range.begin < y->range.begin ? -1 : 1;
    return x->node->number < y->node->number ? -1 : 1;
}

/* Returns whether the output is derived: its id ends in a uuid. Only the server that made it knows it. */
static bool is_derived(const struct coord_call *c)
{
    const char *id = c->request.arg[1] ? c->request.arg[1] : "";
    size_t n = strlen(id);
    return n >= UUID_TEXT && id[n - UUID_TEXT] == ':' &&
        strspn(id + n - UUID_TEXT + 1, "0123456789abcdef-") == UUID_TEXT - 1;
}

/* Places pieces without events at the begin of the others. */
static void place_empty(struct coord_rotation *p)
{
    size_t known = 0;
    while (known < p->n && !p->v[known].range.end)
        known++;
    for (size_t i = 0; i < known && known < p->n; i++)
        p->v[i].range.begin = p->v[i].range.end = p->v[known].range.begin;
}

static size_t find(struct coord_call *c, struct coord_rotation *out)
{
    size_t n = 0;
    learn_ranges(c);
    for (size_t g = 0; g < c->c->n_rotations; g++) {
        struct coord_rotation *p = &out[n];
        *p = (struct coord_rotation){
            &c->c->rotations[g], arena_new(c->arena, struct coord_piece, c->request.n_members + 1), 0, !is_derived(c)};
        for (size_t i = 0; i < c->request.n_members; i++) {
            struct time_range r = coord_member_range(c, c->request.members[i]);
            if (coord_rotation_of(c, c->request.members[i]) != p->of)
                continue;
            p->v[p->n++] = (struct coord_piece){.node = c->request.members[i], .range = r};
            p->whole &= r.end || !coord_node_is_away(c->request.members[i]);
        }
        qsort(p->v, p->n, sizeof *p->v, by_begin);
        place_empty(p);
        n += p->n > 0;
    }
    return n;
}

size_t coord_rotations_find(struct coord_call *c, struct coord_rotation **out)
{
    if (!c->question.rotations_known && c->c->n_rotations) {
        c->question.rotations = arena_new(c->arena, struct coord_rotation, c->c->n_rotations + 1);
        c->question.n_rotations = find(c, c->question.rotations);
    }
    c->question.rotations_known = true;
    *out = c->question.rotations;
    return c->question.n_rotations;
}

size_t coord_rotation_at(const struct coord_rotation *p, int64_t t)
{
    size_t at = 0;
    while (at + 1 < p->n && p->v[at + 1].range.begin <= t)
        at++;
    return at;
}

bool coord_rotation_is_there(const struct coord_rotation *p, size_t from, size_t to)
{
    bool all = p->whole;
    for (size_t i = from; i < to && all; i++)
        all = !p->v[i].missing;
    return all;
}

size_t coord_rotations_of(struct coord_answers *f, struct coord_rotation **out)
{
    size_t n = coord_rotations_find(f->call, out);
    for (size_t g = 0; g < n; g++)
        for (size_t i = 0; i < (*out)[g].n; i++) {
            struct coord_piece *p = &(*out)[g].v[i];
            p->part = NULL;
            p->missing = coord_node_is_away(p->node);
            for (size_t k = 0; k < f->n; k++)
                if (f->v[k].node == p->node) {
                    p->part = f->v[k].fate == COORD_GOOD && f->v[k].model.at ? &f->v[k] : NULL;
                    p->missing = f->v[k].fate == COORD_MISSING;
                }
        }
    return n;
}

void coord_rotation_put(struct coord_answers *f, struct coord_rotation *p, struct text *t)
{
    bool put = false;
    for (size_t i = 0; i < p->n; i++) {
        struct coord_answer *part = p->v[i].part;
        if (!part)
            continue;
        part->model = put ? (struct slice){0} : (struct slice){arena_strndup(f->call->arena, t->v, t->n), t->n};
        part->node = &p->of->self;
        put = true;
    }
    text_fini(t);
}

void coord_rotations_keep(struct coord_call *c, int64_t t)
{
    struct coord_rotation *rotations;
    size_t n = coord_rotations_find(c, &rotations), kept = 0;
    for (size_t i = 0; i < c->request.n_members; i++) {
        bool other = false;
        for (size_t g = 0; g < n && !other; g++)
            other = c->request.members[i]->rotation == rotations[g].of &&
                rotations[g].v[coord_rotation_at(&rotations[g], t)].node != c->request.members[i];
        if (!other)
            c->request.members[kept++] = c->request.members[i];
    }
    c->request.n_members = kept;
}
