/* SPDX-License-Identifier: MIT */
/* Builder: from LTTng-UST's events to threads, calls and memory. Rules, for users: docs/formats/stacks.md. */
#include "stack/builder.h"

#include <stdlib.h>

#include "base/order.h"

/* ---- making and freeing ---- */

static int32_t trace_pid(const struct ctf_trace *t)
{
    const struct ctf_env *env;
    size_t n = ctf_trace_env(t, &env);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(env[i].name, "vpid") && !env[i].is_string && env[i].number >= 0 && env[i].number <= INT32_MAX)
            return (int32_t)env[i].number;
    return -1;
}

static bool may_have_calls(const struct stack_builder *b, uint64_t stream_class)
{
    const struct ctf_event_class *const *classes;
    size_t n = ctf_trace_classes(b->trace, &classes);
    for (size_t k = 0; k < n; k++)
        if (classes[k]->stream_id == stream_class &&
            (b->classes[k].kind == STACK_ENTRY || b->classes[k].kind == STACK_EXIT))
            return true;
    return false;
}

uint32_t stack_find_stream(struct stack_builder *b, const struct stack_stream *s)
{
    for (size_t i = 0; i < b->streams.n; i++) {
        const struct stack_stream *x = &b->streams.v[i];
        if (x->class_id == s->class_id && x->instance_id == s->instance_id && x->cpu == s->cpu && x->name == s->name)
            return (uint32_t)i;
    }
    vec_push(&b->streams, *s);
    return (uint32_t)b->streams.n - 1;
}

static bool is_of_trace(const struct stack_builder *b, uint32_t stream)
{
    bool is = false;
    for (size_t i = 0; i < b->of_trace.n; i++)
        is |= b->of_trace.v[i] == stream;
    return is;
}

/* Binds streams of the trace that are not bound yet. */
static void bind_streams(struct stack_builder *b)
{
    size_t n = ctf_trace_streams(b->trace);
    for (size_t i = b->of_trace.n; i < n; i++) {
        struct ctf_stream_info info;
        ctf_trace_stream(b->trace, i, &info);
        const struct stack_stream s = {.class_id = info.class_id,
            .instance_id = info.instance_id,
            .cpu = info.cpu,
            .name = strings_intern(&b->strings, info.name, strlen(info.name)),
            .has_calls = may_have_calls(b, info.class_id),
            .thread = STACK_NO_THREAD};
        uint32_t at = stack_find_stream(b, &s);
        if (is_of_trace(b, at)) {
            at = (uint32_t)b->streams.n;
            vec_push(&b->streams, s);
        }
        vec_push(&b->of_trace, at);
    }
}

void stack_builder_extend(struct stack_builder *b)
{
    const struct ctf_event_class *const *classes;
    if (ctf_trace_classes(b->trace, &classes) > b->n_classes) {
        free(b->classes);
        b->classes = stack_bind(b->trace, &b->n_classes);
        for (size_t i = 0; i < b->streams.n; i++)
            b->streams.v[i].has_calls |= may_have_calls(b, b->streams.v[i].class_id);
    }
    bind_streams(b);
}

struct stack_builder *stack_builder_new(const struct ctf_trace *t)
{
    struct stack_builder *b = mem_zalloc(sizeof *b);
    b->trace = t;
    b->trace_pid = trace_pid(t);
    b->totals.begin = INT64_MAX;
    b->totals.end = INT64_MIN;
    b->first = INT64_MAX;
    b->last = b->now = INT64_MIN;
    strings_intern(&b->strings, "", 0);
    b->classes = stack_bind(t, &b->n_classes);
    bind_streams(b);
    return b;
}

static void free_runner(struct stack_runner *r)
{
    for (size_t i = 0; i < r->series.n; i++) {
        vec_free(&r->series.v[i].calls);
        vec_free(&r->series.v[i].longs);
    }
    vec_free(&r->series);
    vec_free(&r->names);
    vec_free(&r->frames);
    vec_free(&r->ghosts);
    vec_free(&r->unknown);
    vec_free(&r->memory);
}

void stack_builder_free(struct stack_builder *b)
{
    if (!b)
        return;
    for (size_t i = 0; i < b->owners.n; i++) {
        vec_free(&b->owners.v[i].libraries);
        map_fini(&b->owners.v[i].functions);
        map_fini(&b->owners.v[i].named);
        map_fini(&b->owners.v[i].allocations);
    }
    for (size_t i = 0; i < b->runners.n; i++)
        free_runner(&b->runners.v[i]);
    vec_free(&b->owners);
    vec_free(&b->runners);
    vec_free(&b->known);
    vec_free(&b->sizes);
    vec_free(&b->free_sizes);
    vec_free(&b->open);
    vec_free(&b->windows);
    vec_free(&b->losses);
    map_fini(&b->owner_of);
    map_fini(&b->owner_by_name);
    map_fini(&b->thread_of);
    map_fini(&b->stream_thread_of);
    strings_fini(&b->strings);
    vec_free(&b->streams);
    vec_free(&b->of_trace);
    free(b->classes);
    free(b);
}

/* ---- threads ---- */

static uint32_t read_text(struct stack_builder *b, const struct ctf_event *ev, const struct ctf_access *a)
{
    size_t n;
    const char *s = a->mode ? ctf_read_string(ev, a, &n) : NULL;
    return s ? strings_intern(&b->strings, s, n) : 0;
}

uint64_t *stack_runner_place(struct stack_builder *b, int32_t pid, int32_t tid, uint32_t stream, bool *fresh)
{
    uint64_t process = (uint64_t)(uint32_t)pid << 32;
    return tid >= 0 ? map_put(&b->thread_of, process | (uint32_t)tid, fresh)
                    : map_put(&b->stream_thread_of, process | stream, fresh);
}

static int order_streams(const struct stack_builder *b, uint32_t x, uint32_t y)
{
    const struct stack_stream *p = &b->streams.v[x], *q = &b->streams.v[y];
    return order_of(p->class_id, q->class_id) ?: order_of(p->instance_id, q->instance_id)
        ?: order_of(p->cpu, q->cpu) ?: strcmp(strings_get(&b->strings, p->name), strings_get(&b->strings, q->name));
}

int stack_order_runners(const void *pa, const void *pb, void *order)
{
    const struct stack_runner_order *o = order;
    const struct stack_runner *x = &o->b->runners.v[*(const uint32_t *)pa],
                              *y = &o->b->runners.v[*(const uint32_t *)pb];
    return order_of(o->process_of[x->owner], o->process_of[y->owner]) ?: order_of(x->tid, y->tid)
        ?: x->tid >= 0 ? 0 : order_streams(o->b, x->stream, y->stream);
}

static uint32_t add_thread(
    struct stack_builder *b, const struct ctf_event *ev, int64_t ts, int32_t pid, int32_t tid, uint32_t name)
{
    vec_push(&b->runners,
        ((struct stack_runner){.owner = stack_owner(b, pid, name),
            .tid = tid,
            .cpu = tid < 0 ? ev->cpu : -1,
            .stream = stack_stream_of(b, ev),
            .begin = ts,
            .last = ts}));
    return (uint32_t)b->runners.n - 1;
}

static uint32_t find_thread(
    struct stack_builder *b, const struct ctf_event *ev, const struct stack_class *c, int64_t ts)
{
    int64_t pid = c->vpid.mode ? ctf_read_int(ev, &c->vpid) : b->trace_pid;
    int64_t tid = c->vtid.mode ? ctf_read_int(ev, &c->vtid) : -1;
    pid = pid < 0 || pid > INT32_MAX ? -1 : pid;
    tid = tid < 0 || tid > INT32_MAX ? -1 : tid;
    struct stack_stream *s = &b->streams.v[stack_stream_of(b, ev)];
    uint64_t key = (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
    if (s->thread != STACK_NO_THREAD && s->key == key)
        return s->thread;
    bool fresh;
    uint64_t *place = stack_runner_place(b, (int32_t)pid, (int32_t)tid, stack_stream_of(b, ev), &fresh);
    if (fresh)
        *place = add_thread(b, ev, ts, (int32_t)pid, (int32_t)tid, read_text(b, ev, &c->procname)) + 1;
    s->key = key;
    s->thread = (uint32_t)(*place - 1);
    return s->thread;
}

/* Names change (prctl, exec); the thread and its stack stay. */
static void note_name(struct stack_builder *b, const struct ctf_event *ev, const struct stack_class *c,
    struct stack_runner *r, int64_t ts)
{
    size_t n;
    struct stack_owner *o = &b->owners.v[r->owner];
    const char *s = c->procname.mode && (r->tid >= 0 || !o->name) ? ctf_read_string(ev, &c->procname, &n) : NULL;
    if (!s || !n)
        return;
    if (!o->name && o->pid >= 0)
        o->name = strings_intern(&b->strings, s, n);
    if (r->tid < 0)
        return;
    if (r->names.n) {
        const char *latest = strings_get(&b->strings, r->names.v[r->names.n - 1].name);
        if (!strncmp(latest, s, n) && !latest[n])
            return;
    }
    vec_push(&r->names, ((struct stack_disk_rename){ts, strings_intern(&b->strings, s, n), 0}));
}

/* ---- events ---- */

static uint64_t number(const struct ctf_event *ev, const struct ctf_access *a)
{
    return a->mode ? (uint64_t)ctf_read_int(ev, a) : 0;
}

static void enter(
    struct stack_builder *b, const struct ctf_event *ev, const struct stack_class *c, uint32_t thread, int64_t ts)
{
    struct stack_frame f = {
        .begin = ts, .address = number(ev, &c->address), .site = number(ev, &c->site), .has_address = c->has_address};
    uint32_t owner = b->runners.v[thread].owner, name = c->has_name ? read_text(b, ev, &c->name) : 0;
    f.function = name ? stack_function_named(b, owner, f.address, name) : stack_function_at(b, owner, f.address);
    stack_enter(b, thread, ts, &f);
}

/* The process runs another program since then (exec), or its number is another process's now. */
static void replace_image(struct stack_builder *b, uint32_t owner, int64_t ts)
{
    stack_end_calls(b, owner, ts);
    stack_release_all(b, owner, ts);
    stack_unload_all(b, owner);
    b->owners.v[owner].program = 0;
}

/* LTTng-UST's own thread makes the state dumps of a process, one when it begins and more on demand. Another one does so
 * after an exec, before the program's first calls. */
static void begin_dump(struct stack_builder *b, uint32_t thread, int64_t ts)
{
    const struct stack_runner *r = &b->runners.v[thread];
    uint32_t owner = r->owner;
    int32_t tid = r->tid, before = b->owners.v[owner].dump_thread;
    if (tid >= 0 && before >= 0 && before != tid)
        replace_image(b, owner, ts);
    b->owners.v[owner].dump_thread = tid;
    b->owners.v[owner].awaits_program = true;
}

/* Returns whether the process has that file, but only at other addresses. Without a number it may be several. */
static bool is_elsewhere(const struct stack_owner *o, uint32_t path, uint64_t address)
{
    bool elsewhere = false;
    for (size_t i = 0; i < o->libraries.n && o->pid >= 0; i++) {
        const struct stack_library *l = &o->libraries.v[i];
        if (l->unloaded != UINT64_MAX || l->path != path)
            continue;
        if (l->begin == address)
            return false;
        elsewhere = true;
    }
    return elsewhere;
}

/* Notes the program of a state dump. A different program reveals an exec where threads are not distinguished, or have
 * the same number by chance; and so does another address, since a program stays where it was loaded. */
static void note_program(struct stack_builder *b, uint32_t owner, int64_t ts, const struct stack_library *l)
{
    struct stack_owner *o = &b->owners.v[owner];
    if (!o->awaits_program || !l->path)
        return;
    if (o->program && (o->program != l->path || is_elsewhere(o, l->path, l->begin)))
        replace_image(b, owner, ts);
    o->awaits_program = false;
    o->program = l->path;
}

static void load(
    struct stack_builder *b, const struct ctf_event *ev, const struct stack_class *c, uint32_t thread, int64_t ts)
{
    uint64_t begin = number(ev, &c->address), bytes = number(ev, &c->size), end;
    if (__builtin_add_overflow(begin, bytes, &end))
        end = UINT64_MAX;
    bool absolute = c->has_pic && !number(ev, &c->pic);
    struct stack_library l = {.begin = begin, .end = end, .path = read_text(b, ev, &c->name), .absolute = absolute};
    if (c->kind == STACK_DUMPED)
        note_program(b, b->runners.v[thread].owner, ts, &l);
    if (l.path)
        stack_load(b, b->runners.v[thread].owner, &l);
}

static void allocate(
    struct stack_builder *b, const struct ctf_event *ev, const struct stack_class *c, uint32_t thread, int64_t ts)
{
    uint64_t bytes = number(ev, &c->size), address = number(ev, &c->address);
    if (c->count.mode && __builtin_mul_overflow(bytes, number(ev, &c->count), &bytes))
        return;
    if (c->kind == STACK_REALLOC) {
        if (!address && bytes) /* realloc failed: the old memory stays */
            return;
        stack_release(b, thread, ts, number(ev, &c->old));
    }
    stack_allocate(b, thread, ts, address, bytes);
}

static void add_event(struct stack_builder *b, const struct ctf_event *ev, const struct stack_class *c, int64_t ts)
{
    uint32_t thread = find_thread(b, ev, c, ts);
    struct stack_runner *r = &b->runners.v[thread];
    r->active = true;
    r->begin = r->begin < ts ? r->begin : ts;
    note_name(b, ev, c, r, ts);
    switch (c->kind) {
    case STACK_ENTRY: enter(b, ev, c, thread, ts); return;
    case STACK_EXIT: stack_exit(b, thread, ts, number(ev, &c->address), number(ev, &c->site), c->has_address); return;
    case STACK_LOAD:
    case STACK_DUMPED: load(b, ev, c, thread, ts); break;
    case STACK_DUMP: begin_dump(b, thread, ts); break;
    case STACK_UNLOAD: stack_unload(b, r->owner, number(ev, &c->address)); break;
    case STACK_FREE: stack_release(b, thread, ts, number(ev, &c->address)); break;
    default: allocate(b, ev, c, thread, ts); break;
    }
    r->last = ts;
}

static void count_event(struct stack_builder *b)
{
    b->totals.begin = b->totals.events++ ? b->totals.begin : b->now;
    b->totals.end = b->last = b->now;
    b->first = b->first < b->now ? b->first : b->now;
}

void stack_builder_feed(struct stack_builder *b, const struct ctf_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct ctf_event *ev = &events[i];
        b->now = ev->ts > b->now ? ev->ts : b->now;
        if (__builtin_expect(ev->cls->item != CTF_EVENT, 0)) {
            stack_lose(b, ev);
            continue;
        }
        count_event(b);
        if (__builtin_expect(b->windows.n > 0, 0))
            stack_watch(b, stack_stream_of(b, ev), b->now);
        const struct stack_class *c = &b->classes[ev->cls->index];
        if (c->kind != STACK_OTHER)
            add_event(b, ev, c, b->now);
    }
}
