/* Which events of an experiment are wanted: by name, CPU, thread and expression. */
#include <fnmatch.h>
#include <stdlib.h>

#include "base/expr.h"
#include "base/mem.h"
#include "events/field.h"
#include "events/events.h"

enum { NO_TID = -1 };

/* Names that stand for the event itself; fields of the same names are reached as fields.NAME. */
enum builtin { NOT_BUILTIN, NAME, CPU, TS, TID, HOST, COMM };
static const char *const builtin_names[] = {NULL, "name", "cpu", "ts", "tid", "host", "comm"};

struct class_info {
    bool named; /* --names lets it pass */
    bool is_switch;
    struct event_field tid, comm; /* of the thread the event happened in, from a context */
    struct event_field prev_tid, prev_comm, next_tid, next_comm; /* sched_switch */
    struct event_field *slots;                                   /* names of the expression */
};

struct schema {
    const struct ctf_event_class *const *classes;
    size_t n;
    struct class_info **by_class; /* NULL until the first event of the class */
};

struct running {
    int64_t tid;
    char comm[32];
};
struct cpus {
    struct running *v;
    size_t n, cap;
};

struct event_filter {
    VEC(char *) patterns;
    int64_t cpu, tid;
    struct expr *where;
    const char *const *names;
    size_t n_names;
    enum builtin *builtins; /* by name of the expression */
    const char *const *hosts;
    VEC(struct schema) schemas;
    size_t *schema_of; /* by source */
    struct cpus *cpus; /* by source; which thread runs on each */
    size_t n_sources;
    bool follows_threads;
    /* the event under test */
    const struct ctf_event *ev;
    const struct class_info *info;
    uint32_t source;
};

/* ---- classes ---- */

static bool is_named(const struct event_filter *f, const char *name)
{
    bool any = f->patterns.n == 0;
    for (size_t i = 0; i < f->patterns.n && !any; i++)
        any = fnmatch(f->patterns.v[i], name ? name : "", 0) == 0;
    return any;
}

static void bind_first(const struct ctf_event_class *cls, const char *a, const char *b, struct event_field *out)
{
    event_field_bind(cls, a, out);
    if (out->how == EVENT_FIELD_ABSENT && b)
        event_field_bind(cls, b, out);
}

static struct class_info *bind_class(const struct event_filter *f, const struct ctf_event_class *cls)
{
    struct class_info *c = mem_zalloc(sizeof *c);
    c->named = is_named(f, cls->name);
    bind_first(cls, "ctx.tid", "ctx.vtid", &c->tid);
    if (c->tid.how == EVENT_FIELD_ABSENT)
        event_field_bind(cls, "fields.perf_tid", &c->tid);
    bind_first(cls, "ctx.procname", "ctx.comm", &c->comm);
    c->is_switch = cls->name &&
        (strcmp(cls->name, "sched_switch") == 0 || strcmp(cls->name, "sched:sched_switch") == 0);
    if (c->is_switch) {
        bind_first(cls, "fields.prev_tid", "fields.prev_pid", &c->prev_tid);
        bind_first(cls, "fields.next_tid", "fields.next_pid", &c->next_tid);
        event_field_bind(cls, "fields.prev_comm", &c->prev_comm);
        event_field_bind(cls, "fields.next_comm", &c->next_comm);
    }
    c->slots = mem_zalloc(sizeof *c->slots * (f->n_names + 1));
    for (size_t i = 0; i < f->n_names; i++)
        if (f->builtins[i] == NOT_BUILTIN)
            event_field_bind(cls, f->names[i], &c->slots[i]);
    return c;
}

static const struct class_info *class_info(struct event_filter *f, uint32_t source, const struct ctf_event_class *cls)
{
    struct schema *s = &f->schemas.v[f->schema_of[source]];
    if (!s->by_class[cls->index])
        s->by_class[cls->index] = bind_class(f, cls);
    return s->by_class[cls->index];
}

static size_t find_schema(struct event_filter *f, const struct ctf_trace *trace)
{
    const struct ctf_event_class *const *classes;
    size_t n = ctf_trace_classes(trace, &classes);
    for (size_t i = 0; i < f->schemas.n; i++)
        if (f->schemas.v[i].classes == classes && f->schemas.v[i].n == n)
            return i;
    struct schema s = {classes, n, mem_zalloc(sizeof *s.by_class * (n + 1))};
    vec_push(&f->schemas, s);
    return f->schemas.n - 1;
}

/* ---- which thread runs where ---- */

static struct running *running_on(struct event_filter *f, uint32_t source, int32_t cpu)
{
    struct cpus *c = &f->cpus[source];
    if (cpu < 0)
        return NULL;
    while (c->n <= (size_t)cpu) {
        struct running nobody = {.tid = NO_TID};
        vec_push(c, nobody);
    }
    return &c->v[cpu];
}

static void set_running(
    struct running *r, const struct event_field *tid, const struct event_field *comm, const struct ctf_event *ev)
{
    struct expr_value v;
    event_field_get(tid, ev, &v);
    r->tid = v.type == EXPR_INT ? v.i : NO_TID;
    event_field_get(comm, ev, &v);
    size_t n = v.type == EXPR_STRING ? v.n < sizeof r->comm ? v.n : sizeof r->comm - 1 : 0;
    if (n)
        memcpy(r->comm, v.s, n);
    r->comm[n] = '\0';
}

/* Reads one stream of a source until a thread switch tells who ran before it; without any in the window, the last one
 * before the window tells. */
static int find_running(struct event_filter *f, const struct ctf_source *source, uint32_t number, int stream,
    struct ctf_window w, bool before, struct err *e)
{
    struct ctf_window part = before ? (struct ctf_window){INT64_MIN, w.begin == INT64_MIN ? INT64_MIN : w.begin - 1}
                                    : (struct ctf_window){w.begin, INT64_MAX};
    struct ctf_merge *m;
    int r = ctf_merge_new(source, 1, part, stream, &m, e);
    if (r != ERR_OK)
        return r;
    struct ctf_event batch[256];
    bool found = false;
    for (size_t n; !found && (n = ctf_merge_next(m, batch, 256)) > 0;)
        for (size_t i = 0; i < n && !found; i++) {
            const struct class_info *c = batch[i].cls->item == CTF_EVENT ? class_info(f, number, batch[i].cls) : NULL;
            struct running *on = c && c->is_switch ? running_on(f, number, batch[i].cpu) : NULL;
            if (on && before)
                set_running(on, &c->next_tid, &c->next_comm, &batch[i]);
            else if (on)
                set_running(on, &c->prev_tid, &c->prev_comm, &batch[i]);
            found = on && !before;
        }
    ctf_merge_free(m);
    return found || before || w.begin == INT64_MIN ? ERR_OK : find_running(f, source, number, stream, w, true, e);
}

static int find_all_running(
    struct event_filter *f, const struct ctf_source *sources, struct ctf_window w, struct err *e)
{
    for (uint32_t i = 0; i < f->n_sources; i++) {
        const struct schema *s = &f->schemas.v[f->schema_of[i]];
        bool needed = false;
        for (size_t k = 0; k < s->n && !needed; k++) {
            const struct class_info *c = s->classes[k] && s->classes[k]->item == CTF_EVENT
                ? class_info(f, i, s->classes[k])
                : NULL;
            needed = c && c->is_switch && (c->tid.how == EVENT_FIELD_ABSENT || c->comm.how == EVENT_FIELD_ABSENT);
        }
        for (size_t k = 0; needed && k < ctf_trace_streams(sources[i].trace); k++) {
            int r = find_running(f, &sources[i], i, (int)k, w, false, e);
            if (r != ERR_OK)
                return r;
        }
    }
    return ERR_OK;
}

/* ---- values of the event under test ---- */

static void put_text(struct expr_value *out, const char *s)
{
    if (s)
        *out = (struct expr_value){.type = EXPR_STRING, .s = s, .n = strlen(s)};
}

static void get_thread(struct event_filter *f, bool comm, struct expr_value *out)
{
    event_field_get(comm ? &f->info->comm : &f->info->tid, f->ev, out);
    if (out->type != EXPR_ABSENT)
        return;
    const struct running *r = running_on(f, f->source, f->ev->cpu);
    if (!r || r->tid == NO_TID)
        return;
    if (comm)
        put_text(out, r->comm);
    else
        *out = (struct expr_value){.type = EXPR_INT, .i = r->tid};
}

static void get(void *arg, size_t slot, struct expr_value *out)
{
    struct event_filter *f = arg;
    *out = (struct expr_value){.type = EXPR_ABSENT};
    switch (f->builtins[slot]) {
    case NAME: put_text(out, f->ev->cls->name); break;
    case CPU:
        if (f->ev->cpu >= 0)
            *out = (struct expr_value){.type = EXPR_INT, .i = f->ev->cpu};
        break;
    case TS: *out = (struct expr_value){.type = EXPR_INT, .i = f->ev->ts}; break;
    case TID: get_thread(f, false, out); break;
    case COMM: get_thread(f, true, out); break;
    case HOST: put_text(out, f->hosts ? f->hosts[f->source] : NULL); break;
    case NOT_BUILTIN: event_field_get(&f->info->slots[slot], f->ev, out); break;
    }
}

static bool is_wanted(struct event_filter *f)
{
    if (!f->info->named || (f->cpu >= 0 && f->ev->cpu != f->cpu))
        return false;
    if (f->tid >= 0) {
        struct expr_value v;
        get_thread(f, false, &v);
        if (v.type != EXPR_INT || v.i != f->tid)
            return false;
    }
    return !f->where || expr_eval(f->where, get, f);
}

bool event_filter_keep(struct event_filter *f, const struct ctf_merge *m, const struct ctf_event *ev)
{
    f->ev = ev;
    f->source = ctf_merge_source(m, ev->stream);
    if (ev->cls->item != CTF_EVENT) {
        struct running *r = f->follows_threads ? running_on(f, f->source, ev->cpu) : NULL;
        if (r)
            r->tid = NO_TID; /* the switch may be among what was lost */
        return f->cpu < 0 || ev->cpu == f->cpu;
    }
    f->info = class_info(f, f->source, ev->cls);
    bool keep = is_wanted(f);
    if (f->follows_threads && f->info->is_switch) {
        struct running *r = running_on(f, f->source, ev->cpu);
        if (r)
            set_running(r, &f->info->next_tid, &f->info->next_comm, ev);
    }
    return keep;
}

/* ---- likely mistakes ---- */

static bool any_class(struct event_filter *f,
    bool (*test)(const struct event_filter *, const struct class_info *, const struct ctf_event_class *, size_t),
    size_t which)
{
    for (uint32_t i = 0; i < f->n_sources; i++) {
        const struct schema *s = &f->schemas.v[f->schema_of[i]];
        for (size_t k = 0; k < s->n; k++)
            if (s->classes[k] && s->classes[k]->item == CTF_EVENT &&
                test(f, class_info(f, i, s->classes[k]), s->classes[k], which))
                return true;
    }
    return false;
}

static bool matches(
    const struct event_filter *f, const struct class_info *c, const struct ctf_event_class *cls, size_t pattern)
{
    return fnmatch(f->patterns.v[pattern], cls->name ? cls->name : "", 0) == 0;
}

static bool has_field(
    const struct event_filter *f, const struct class_info *c, const struct ctf_event_class *cls, size_t slot)
{
    return f->builtins[slot] != NOT_BUILTIN || c->slots[slot].how != EVENT_FIELD_ABSENT;
}

void event_filter_check(struct event_filter *f, void (*tell)(bool is_pattern, const char *name))
{
    for (size_t i = 0; i < f->patterns.n; i++)
        if (!any_class(f, matches, i))
            tell(true, f->patterns.v[i]);
    for (size_t i = 0; i < f->n_names; i++)
        if (!any_class(f, has_field, i))
            tell(false, f->names[i]);
}

/* ---- life ---- */

static void add_patterns(struct event_filter *f, const char *list)
{
    while (*list) {
        size_t n = strcspn(list, ",");
        if (n) {
            char *pattern = mem_zalloc(n + 1);
            memcpy(pattern, list, n);
            vec_push(&f->patterns, pattern);
        }
        list += n + (list[n] == ',');
    }
}

static void bind_names(struct event_filter *f)
{
    f->n_names = f->where ? expr_names(f->where, &f->names) : 0;
    f->builtins = mem_zalloc(sizeof *f->builtins * (f->n_names + 1));
    f->follows_threads = f->tid >= 0;
    for (size_t i = 0; i < f->n_names; i++)
        for (int b = NAME; b <= COMM; b++)
            if (strcmp(f->names[i], builtin_names[b]) == 0) {
                f->builtins[i] = (enum builtin)b;
                f->follows_threads |= b == TID || b == COMM;
            }
}

int event_filter_new(const struct event_filter_options *o, const struct ctf_source *sources, size_t n,
    struct ctf_window window, struct event_filter **out, struct err *e)
{
    struct event_filter *f = mem_zalloc(sizeof *f);
    *out = NULL;
    f->cpu = o->cpu;
    f->tid = o->tid;
    f->hosts = o->hosts;
    f->n_sources = n;
    for (size_t i = 0; i < o->n_names; i++)
        add_patterns(f, o->names[i]);
    f->schema_of = mem_zalloc(sizeof *f->schema_of * (n + 1));
    f->cpus = mem_zalloc(sizeof *f->cpus * (n + 1));
    int r = o->where ? expr_compile(o->where, &f->where, e) : ERR_OK;
    if (r == ERR_OK) {
        bind_names(f);
        for (size_t i = 0; i < n; i++)
            f->schema_of[i] = find_schema(f, sources[i].trace);
        r = f->follows_threads ? find_all_running(f, sources, window, e) : ERR_OK;
    }
    if (r != ERR_OK) {
        event_filter_free(f);
        return r;
    }
    *out = f;
    return ERR_OK;
}

void event_filter_free(struct event_filter *f)
{
    if (!f)
        return;
    for (size_t i = 0; i < f->patterns.n; i++)
        free(f->patterns.v[i]);
    vec_free(&f->patterns);
    for (size_t i = 0; i < f->schemas.n; i++) {
        for (size_t k = 0; k < f->schemas.v[i].n; k++)
            if (f->schemas.v[i].by_class[k]) {
                free(f->schemas.v[i].by_class[k]->slots);
                free(f->schemas.v[i].by_class[k]);
            }
        free(f->schemas.v[i].by_class);
    }
    vec_free(&f->schemas);
    for (size_t i = 0; f->cpus && i < f->n_sources; i++)
        free(f->cpus[i].v);
    free(f->cpus);
    free(f->schema_of);
    free(f->builtins);
    if (f->where)
        expr_free(f->where);
    free(f);
}
