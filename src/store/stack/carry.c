/* SPDX-License-Identifier: MIT */
/* Carried state of the builder at a cut. A call belongs to the chunk in which it ends, so open calls are carried, and
 * so are mapped libraries and allocations. Functions are forgotten; one that is entered again gets the same name. */
#include <stdlib.h>
#include <string.h>

#include "base/carry.h"
#include "stack/builder.h"

enum {
    LEAST_OWNER_BYTES = 41,
    LEAST_LIBRARY_BYTES = 25,
    LEAST_RUNNER_BYTES = 41,
    LEAST_GHOST_BYTES = 9,
    LEAST_UNKNOWN_BYTES = 8,
    LEAST_FRAME_BYTES = 37,
    LEAST_WINDOW_BYTES = 45
};

struct carrying {
    struct carry *c;
    struct stack_builder *b;
    uint32_t owner;             /* process of the visited functions */
    struct map functions;       /* not LOAD: number + 1 by function */
    struct map named, nameless; /* not LOAD: number + 1 by string, and by address, within the process */
    uint32_t n_functions;
};

/* LOAD: the bytes make no sense. */
static void refuse(struct carry *c)
{
    c->damaged = true;
    c->at = c->end;
}

static void check(struct carry *c, bool sound)
{
    if (c->way == CARRY_LOAD && !sound)
        refuse(c);
}

/* ---- streams ---- */

static void carry_stream(struct carrying *v, uint32_t *number)
{
    struct stack_stream s = {.has_calls = true, .thread = STACK_NO_THREAD};
    if (v->c->way != CARRY_LOAD)
        s = v->b->streams.v[*number];
    carry_number(v->c, &s.class_id);
    carry_number(v->c, &s.instance_id);
    carry_number(v->c, &s.cpu);
    carry_string(v->c, &v->b->strings, &s.name);
    if (v->c->way == CARRY_LOAD)
        *number = v->c->damaged ? 0 : stack_find_stream(v->b, &s);
}

/* ---- processes ---- */

static void carry_library(struct carry *c, struct stack_builder *b, struct stack_library *l)
{
    carry_number(c, &l->begin);
    carry_number(c, &l->end);
    carry_string(c, &b->strings, &l->path);
    carry_bool(c, &l->absolute);
    if (c->way == CARRY_LOAD) {
        l->loaded = 0;
        l->unloaded = UINT64_MAX;
    }
    check(c, l->begin < l->end);
}

/* Carries loaded libraries. Unloaded ones name nothing that is entered later. */
static void carry_libraries(struct carry *c, struct stack_builder *b, struct stack_owner *o)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < o->libraries.n; i++)
        n += o->libraries.v[i].unloaded == UINT64_MAX;
    n = carry_count(c, n, LEAST_LIBRARY_BYTES);
    for (size_t i = 0; i < n; i++) {
        if (c->way == CARRY_LOAD)
            vec_push(&o->libraries, (struct stack_library){0});
        while (c->way != CARRY_LOAD && o->libraries.v[at].unloaded != UINT64_MAX)
            at++;
        carry_library(c, b, &o->libraries.v[c->way == CARRY_LOAD ? i : at++]);
    }
}

static void carry_size(struct carry *c, uint64_t *index, void *arg)
{
    struct stack_builder *b = arg;
    int64_t size = c->way == CARRY_LOAD ? 0 : b->sizes.v[*index - 1];
    carry_number(c, &size);
    check(c, size >= 0);
    if (c->way != CARRY_LOAD)
        return;
    vec_push(&b->sizes, size);
    *index = b->sizes.n;
}

static void carry_owner(struct carry *c, struct stack_builder *b, uint32_t owner)
{
    struct stack_owner new = {0}, *o = c->way == CARRY_LOAD ? &new : &b->owners.v[owner];
    carry_number(c, &o->pid);
    if (o->pid < 0)
        carry_string(c, &b->strings, &o->name);
    carry_number(c, &o->dump_thread);
    carry_bool(c, &o->awaits_program);
    carry_string(c, &b->strings, &o->program);
    check(c, o->pid >= -1 && o->dump_thread >= -1);
    carry_libraries(c, b, o);
    carry_map(c, &o->allocations, carry_size, b);
    if (c->way != CARRY_LOAD)
        return;
    check(c, stack_owner(b, o->pid, o->name) == owner && owner + 1 == b->owners.n);
    if (!c->damaged) {
        b->owners.v[owner] = new;
        return;
    }
    vec_free(&new.libraries);
    map_fini(&new.allocations);
}

/* ---- threads ---- */

/* A function by its number: however often it was made known, it is the one of its name, or of its address where it has
 * none yet. */
static uint32_t number_function(struct carrying *v, const struct stack_frame *f, uint32_t *name)
{
    bool fresh;
    uint64_t *number = map_put(&v->functions, f->function, &fresh), *same;
    if (!fresh)
        return (uint32_t)*number - 1;
    struct text label = {.fd = -1};
    if (stack_name_function(v->b, &v->b->known.v[f->function], &label)) {
        *name = strings_intern(&v->b->strings, text_cstr(&label), label.n);
        same = map_put(&v->named, *name, &fresh);
    } else {
        same = map_put(&v->nameless, f->address, &fresh);
    }
    text_fini(&label);
    if (fresh)
        *same = ++v->n_functions;
    *number = *same;
    return (uint32_t)*number - 1;
}

/* The first time a number comes, its name comes too. */
static void carry_function(struct carrying *v, struct stack_frame *f)
{
    struct carry *c = v->c;
    struct stack_known known = {.address = f->address, .process = v->owner};
    uint32_t count = c->way == CARRY_LOAD ? (uint32_t)v->b->known.n : v->n_functions,
             number = c->way == CARRY_LOAD ? 0 : number_function(v, f, &known.name);
    carry_number(c, &number);
    check(c, number <= count && (number == count || v->b->known.v[number].process == v->owner));
    if (c->damaged)
        return;
    if (number == count)
        carry_string(c, &v->b->strings, &known.name);
    if (c->way != CARRY_LOAD)
        return;
    f->function = number;
    if (number == count)
        vec_push(&v->b->known, known);
}

/* Returns the time of calls one level below the frame that ended in this chunk. */
static int64_t time_below(const struct stack_runner *r, size_t level)
{
    const struct stack_series *s = level + 1 < r->series.n ? &r->series.v[level + 1] : NULL;
    int64_t sum = 0;
    size_t longs = s ? s->longs.n : 0;
    for (size_t i = s ? s->calls.n : 0; i-- > 0 && s->calls.v[i].begin >= r->frames.v[level].begin;) {
        bool is_long = s->calls.v[i].duration == STACK_LONG;
        longs -= is_long;
        if (stack_how_of(&s->calls.v[i]) != STACK_UNKNOWN)
            sum = figures_sum(sum, is_long ? s->longs.v[longs].duration : s->calls.v[i].duration);
    }
    return sum;
}

static void carry_frames(struct carrying *v, struct stack_runner *r)
{
    struct carry *c = v->c;
    int64_t since = v->b->first;
    carry_vec(c, &r->frames, LEAST_FRAME_BYTES);
    for (size_t i = 0; i < r->frames.n && !c->damaged; i++) {
        struct stack_frame *f = &r->frames.v[i];
        int64_t below = c->way == CARRY_LOAD ? 0 : figures_sum(f->below, time_below(r, i));
        carry_number(c, &f->begin);
        carry_number(c, &below);
        carry_number(c, &f->address);
        carry_number(c, &f->site);
        carry_bool(c, &f->has_address);
        carry_function(v, f);
        check(c, f->begin >= since && f->begin <= r->last);
        since = f->begin;
        if (c->way == CARRY_LOAD)
            f->below = below;
    }
}

static bool holds_memory(const struct stack_runner *r)
{
    return r->memory.n && r->memory.v[r->memory.n - 1].bytes;
}

static void carry_memory(struct carry *c, struct stack_runner *r, int64_t now)
{
    bool holds = holds_memory(r);
    carry_bool(c, &holds);
    if (!holds)
        return;
    struct stack_disk_value value = {0};
    if (c->way != CARRY_LOAD)
        value = r->memory.v[r->memory.n - 1];
    carry_number(c, &value.time);
    carry_number(c, &value.bytes);
    check(c, value.bytes && value.time <= now);
    if (c->way == CARRY_LOAD)
        vec_push(&r->memory, value);
}

static void carry_ghosts(struct carry *c, const struct stack_builder *b, struct stack_runner *r)
{
    carry_vec(c, &r->ghosts, LEAST_GHOST_BYTES);
    for (size_t i = 0; i < r->ghosts.n && !c->damaged; i++) {
        carry_number(c, &r->ghosts.v[i].address);
        carry_bool(c, &r->ghosts.v[i].has_address);
    }
    carry_vec(c, &r->unknown, LEAST_UNKNOWN_BYTES);
    for (size_t i = 0; i < r->unknown.n && !c->damaged; i++) {
        carry_number(c, &r->unknown.v[i]);
        check(c, r->unknown.v[i] >= b->first && r->unknown.v[i] <= b->now);
    }
    check(c, r->ghosts.n <= STACK_MOST_LEVELS && r->unknown.n <= r->ghosts.n);
}

static void carry_runner(struct carrying *v, struct stack_runner *r)
{
    struct carry *c = v->c;
    struct stack_builder *b = v->b;
    carry_number(c, &r->tid);
    carry_number(c, &r->cpu);
    check(c, r->tid >= -1 && r->cpu >= -1);
    if (r->tid < 0)
        carry_stream(v, &r->stream);
    carry_number(c, &r->last);
    check(c, b->first <= r->last && r->last <= b->now);
    carry_memory(c, r, b->now);
    carry_ghosts(c, b, r);
    carry_frames(v, r);
}

/* Returns whether the thread is carried. Others begin anew at their next event. Threads grouped by name (pid -1) are
 * always carried: their first name decides the group. */
static bool leaves(const struct stack_builder *b, const struct stack_runner *r)
{
    return r->frames.n || r->ghosts.n || b->owners.v[r->owner].pid < 0 || holds_memory(r);
}

static void load_runner(struct carrying *v)
{
    struct stack_builder *b = v->b;
    struct stack_runner r = {.owner = v->owner, .begin = INT64_MAX};
    carry_runner(v, &r);
    bool fresh = false;
    uint64_t *place = v->c->damaged ? NULL : stack_runner_place(b, b->owners.v[r.owner].pid, r.tid, r.stream, &fresh);
    check(v->c, fresh);
    if (v->c->damaged) {
        vec_free(&r.frames);
        vec_free(&r.ghosts);
        vec_free(&r.unknown);
        vec_free(&r.memory);
        return;
    }
    r.listed = r.frames.n;
    vec_push(&b->runners, r);
    *place = b->runners.n;
    if (r.listed)
        vec_push(&b->open, (uint32_t)b->runners.n - 1);
}

/* ---- choice and order of carried threads ---- */

struct carried {
    uint32_t *owners, *runners, *place_of; /* place_of: by process, its place in the order */
    bool *has_runner;                      /* indexed by process */
    size_t n_runners;
};

static void choose(const struct stack_builder *b, struct carried *k)
{
    k->owners = stack_order_owners(b);
    k->place_of = mem_alloc(sizeof *k->place_of * (b->owners.n + 1));
    k->runners = mem_alloc(sizeof *k->runners * (b->runners.n + 1));
    k->has_runner = mem_zalloc(sizeof *k->has_runner * (b->owners.n + 1));
    for (size_t i = 0; i < b->owners.n; i++)
        k->place_of[k->owners[i]] = (uint32_t)i;
    for (size_t i = 0; i < b->runners.n; i++) {
        if (!leaves(b, &b->runners.v[i]))
            continue;
        k->runners[k->n_runners++] = (uint32_t)i;
        k->has_runner[b->runners.v[i].owner] = true;
    }
    qsort_r(k->runners, k->n_runners, sizeof *k->runners, stack_order_runners,
        &(struct stack_runner_order){b, k->place_of});
}

static bool owner_leaves(const struct stack_owner *o, bool has_runner)
{
    bool any = has_runner || o->allocations.n || o->dump_thread >= 0 || o->awaits_program || o->program;
    for (size_t i = 0; i < o->libraries.n && !any; i++)
        any = o->libraries.v[i].unloaded == UINT64_MAX;
    return any;
}

static void save_all(struct carrying *v)
{
    struct carried k = {0};
    size_t n = 0, at = 0;
    choose(v->b, &k);
    for (size_t i = 0; i < v->b->owners.n; i++)
        n += owner_leaves(&v->b->owners.v[i], k.has_runner[i]);
    carry_count(v->c, n, 0);
    for (size_t i = 0; i < v->b->owners.n; i++) {
        v->owner = k.owners[i];
        map_fini(&v->named);
        map_fini(&v->nameless);
        if (!owner_leaves(&v->b->owners.v[v->owner], k.has_runner[v->owner]))
            continue;
        carry_owner(v->c, v->b, v->owner);
        size_t first = at;
        while (at < k.n_runners && v->b->runners.v[k.runners[at]].owner == v->owner)
            at++;
        carry_count(v->c, at - first, 0);
        for (; first < at; first++)
            carry_runner(v, &v->b->runners.v[k.runners[first]]);
    }
    free(k.owners);
    free(k.runners);
    free(k.place_of);
    free(k.has_runner);
}

static void load_all(struct carrying *v)
{
    size_t n = carry_count(v->c, 0, LEAST_OWNER_BYTES);
    for (size_t i = 0; i < n && !v->c->damaged; i++) {
        v->owner = (uint32_t)i;
        carry_owner(v->c, v->b, v->owner);
        size_t runners = carry_count(v->c, 0, LEAST_RUNNER_BYTES);
        for (size_t k = 0; k < runners && !v->c->damaged; k++)
            load_runner(v);
    }
}

static void carry_windows(struct carrying *v)
{
    struct carry *c = v->c;
    carry_vec(c, &v->b->windows, LEAST_WINDOW_BYTES);
    for (size_t i = 0; i < v->b->windows.n && !c->damaged; i++) {
        struct stack_window *w = &v->b->windows.v[i];
        carry_stream(v, &w->stream);
        carry_bool(c, &w->heard);
        carry_number(c, &w->last);
        carry_number(c, &w->end);
        check(c, w->last <= v->b->now && w->last <= w->end);
    }
    if (c->damaged)
        v->b->windows.n = 0;
}

void stack_builder_carry(struct stack_builder *b, struct carry *c)
{
    struct carrying v = {.c = c, .b = b};
    int64_t lasts;
    if (c->way == CARRY_MARK)
        return;
    carry_number(c, &b->first);
    carry_number(c, &b->last);
    carry_number(c, &b->now);
    check(c,
        b->first > b->last ? b->first == INT64_MAX && b->last == INT64_MIN
                           : b->last <= b->now && !__builtin_sub_overflow(b->now, b->first, &lasts));
    carry_windows(&v);
    if (c->way == CARRY_LOAD)
        load_all(&v);
    else
        save_all(&v);
    map_fini(&v.functions);
    map_fini(&v.named);
    map_fini(&v.nameless);
}
