/* From LTTng-UST's events to threads, calls and memory. The rules, for users: docs/formats/stacks.md. */
#include "stack/builder.h"

#include <stdlib.h>

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

/* Which streams may hold entries and exits. */
static void bind_streams(struct stack_builder *b)
{
    const struct ctf_event_class *const *classes;
    size_t n = ctf_trace_classes(b->trace, &classes);
    b->n_streams = ctf_trace_streams(b->trace);
    b->streams = mem_zalloc(sizeof *b->streams * (b->n_streams + 1));
    for (size_t i = 0; i < b->n_streams; i++) {
        struct ctf_stream_info info;
        ctf_trace_stream(b->trace, i, &info);
        b->streams[i].thread = STACK_NO_THREAD;
        for (size_t k = 0; k < n; k++)
            if (classes[k]->stream_id == info.class_id &&
                (b->classes[k].kind == STACK_ENTRY || b->classes[k].kind == STACK_EXIT))
                b->streams[i].has_calls = true;
    }
}

struct stack_builder *stack_builder_new(const struct ctf_trace *t)
{
    struct stack_builder *b = mem_zalloc(sizeof *b);
    b->trace = t;
    b->trace_pid = trace_pid(t);
    b->totals.begin = INT64_MAX;
    b->totals.end = INT64_MIN;
    b->classes = stack_bind(t);
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
    free(b->streams);
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

static uint32_t add_thread(struct stack_builder *b, const struct ctf_event *ev, int32_t pid, int32_t tid, uint32_t name)
{
    vec_push(&b->runners,
        ((struct stack_runner){.owner = stack_owner(b, pid, name),
            .tid = tid,
            .cpu = tid < 0 ? ev->cpu : -1,
            .stream = ev->stream,
            .begin = ev->ts,
            .last = ev->ts}));
    return (uint32_t)b->runners.n - 1;
}

static uint32_t find_thread(struct stack_builder *b, const struct ctf_event *ev, const struct stack_class *c)
{
    int64_t pid = c->vpid.mode ? ctf_read_int(ev, &c->vpid) : b->trace_pid;
    int64_t tid = c->vtid.mode ? ctf_read_int(ev, &c->vtid) : -1;
    pid = pid < 0 || pid > INT32_MAX ? -1 : pid;
    tid = tid < 0 || tid > INT32_MAX ? -1 : tid;
    struct stack_stream *s = &b->streams[ev->stream];
    uint64_t key = (uint64_t)(uint32_t)pid << 32 | (uint32_t)tid;
    if (s->thread != STACK_NO_THREAD && s->key == key)
        return s->thread;
    bool fresh;
    uint64_t *index = tid >= 0 ? map_put(&b->thread_of, key, &fresh)
                               : map_put(&b->stream_thread_of, (uint64_t)(uint32_t)pid << 32 | ev->stream, &fresh);
    if (fresh)
        *index = add_thread(b, ev, (int32_t)pid, (int32_t)tid, read_text(b, ev, &c->procname)) + 1;
    s->key = key;
    s->thread = (uint32_t)(*index - 1);
    return s->thread;
}

/* Names change (prctl, exec); the thread and its stack stay. */
static void note_name(struct stack_builder *b, const struct ctf_event *ev, const struct stack_class *c,
    struct stack_runner *r, int64_t ts)
{
    size_t n;
    const char *s = c->procname.mode && r->tid >= 0 ? ctf_read_string(ev, &c->procname, &n) : NULL;
    if (!s || !n)
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
    struct stack_frame f = {.begin = ts, .address = number(ev, &c->address), .has_address = c->has_address};
    uint32_t owner = b->runners.v[thread].owner, name = c->has_name ? read_text(b, ev, &c->name) : 0;
    f.function = name ? stack_function_named(b, owner, ts, f.address, name)
                      : stack_function_at(b, owner, ts, f.address);
    stack_enter(b, thread, ts, &f);
}

static void load(
    struct stack_builder *b, const struct ctf_event *ev, const struct stack_class *c, uint32_t thread, int64_t ts)
{
    uint64_t begin = number(ev, &c->address), bytes = number(ev, &c->size), end;
    if (__builtin_add_overflow(begin, bytes, &end))
        end = UINT64_MAX;
    bool absolute = c->has_pic && !number(ev, &c->pic);
    struct stack_library l = {.begin = begin, .end = end, .path = read_text(b, ev, &c->name), .absolute = absolute};
    if (l.path)
        stack_load(b, b->runners.v[thread].owner, ts, &l);
}

static void allocate(
    struct stack_builder *b, const struct ctf_event *ev, const struct stack_class *c, uint32_t thread, int64_t ts)
{
    uint64_t bytes = number(ev, &c->size), address = number(ev, &c->address);
    if (c->count.mode && __builtin_mul_overflow(bytes, number(ev, &c->count), &bytes))
        return;
    if (c->kind == STACK_REALLOC) {
        if (!address && bytes) /* it failed: the old memory stays */
            return;
        stack_release(b, thread, ts, number(ev, &c->old));
    }
    stack_allocate(b, thread, ts, address, bytes);
}

static void add_event(struct stack_builder *b, const struct ctf_event *ev, const struct stack_class *c)
{
    uint32_t thread = find_thread(b, ev, c);
    struct stack_runner *r = &b->runners.v[thread];
    int64_t ts = ev->ts > r->last ? ev->ts : r->last; /* bad streams may step back */
    note_name(b, ev, c, r, ts);
    switch (c->kind) {
    case STACK_ENTRY: enter(b, ev, c, thread, ts); return;
    case STACK_EXIT: stack_exit(b, thread, ts, number(ev, &c->address), c->has_address); return;
    case STACK_LOAD: load(b, ev, c, thread, ts); break;
    case STACK_UNLOAD: stack_unload(b, r->owner, ts, number(ev, &c->address)); break;
    case STACK_FREE: stack_release(b, thread, ts, number(ev, &c->address)); break;
    default: allocate(b, ev, c, thread, ts); break;
    }
    r->last = ts;
}

void stack_builder_feed(struct stack_builder *b, const struct ctf_event *events, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct ctf_event *ev = &events[i];
        if (__builtin_expect(ev->cls->item != CTF_EVENT, 0)) {
            stack_lose(b, ev);
            continue;
        }
        b->totals.events++;
        b->totals.begin = ev->ts < b->totals.begin ? ev->ts : b->totals.begin;
        b->totals.end = ev->ts > b->totals.end ? ev->ts : b->totals.end;
        if (__builtin_expect(b->windows.n > 0, 0))
            stack_watch(b, ev->stream, ev->ts);
        const struct stack_class *c = &b->classes[ev->cls->index];
        if (c->kind != STACK_OTHER)
            add_event(b, ev, c);
    }
}
