/* Which events of an experiment are wanted: by name, CPU, thread and expression. */
#include <fnmatch.h>
#include <stdlib.h>

#include "base/expr.h"
#include "events/field.h"
#include "events/table.h"
#include "kernel/kernel.h"

/* Names that stand for the event itself; fields of the same names are reached as fields.NAME. */
enum builtin { NOT_BUILTIN, NAME, CPU, TS, TID, HOST, COMM };
static const char *const builtin_names[] = {NULL, "name", "cpu", "ts", "tid", "host", "comm"};

struct class_info {
    bool named;                   /* --names lets it pass */
    struct event_field tid, comm; /* of the thread the event happened in, from a context */
    struct kernel_exec as_exec;
    struct kernel_switch as_switch; /* its class NULL: it is none */
    struct event_field *slots;      /* names of the expression */
};

struct event_filter {
    const struct event_table *table;
    VEC(char *) patterns;
    int64_t cpu, tid;
    struct expr *where;
    const char *const *names;
    size_t n_names;
    enum builtin *builtins;           /* by name of the expression */
    struct class_info ***classes;     /* by schema of the table and number of the class; NULL until it is asked for */
    struct kernel_running_cpus *cpus; /* by source; which thread runs on each */
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
    kernel_switch_is(&c->as_switch, cls);
    kernel_exec_is(&c->as_exec, cls);
    c->slots = mem_zalloc(sizeof *c->slots * (f->n_names + 1));
    for (size_t i = 0; i < f->n_names; i++)
        if (f->builtins[i] == NOT_BUILTIN)
            event_field_bind(cls, f->names[i], &c->slots[i]);
    return c;
}

static const struct class_info *class_info(struct event_filter *f, size_t schema, const struct ctf_event_class *cls)
{
    struct class_info **c = &f->classes[schema][cls->index];
    if (!*c)
        *c = bind_class(f, cls);
    return *c;
}

typedef bool class_test(
    const struct event_filter *, const struct class_info *, const struct ctf_event_class *, size_t which);

/* Is there a class of events in the schema for which it holds? */
static bool any_class(struct event_filter *f, size_t schema, class_test *test, size_t which)
{
    const struct event_schema *s = &f->table->schemas.v[schema];
    for (size_t k = 0; k < s->n; k++)
        if (s->classes[k] && s->classes[k]->item == CTF_EVENT &&
            test(f, class_info(f, schema, s->classes[k]), s->classes[k], which))
            return true;
    return false;
}

static bool is_bare_switch(
    const struct event_filter *f, const struct class_info *c, const struct ctf_event_class *cls, size_t which)
{
    return c->as_switch.cls && (c->tid.how == EVENT_FIELD_ABSENT || c->comm.how == EVENT_FIELD_ABSENT);
}

/* Where events do not bring their thread with them. */
static int find_running(struct event_filter *f, struct ctf_window w, struct err *e)
{
    int r = ERR_OK;
    for (size_t i = 0; i < f->table->n && r == ERR_OK; i++)
        if (any_class(f, f->table->schema_of[i], is_bare_switch, 0))
            r = kernel_running_find(&f->cpus[i], &f->table->sources[i], w, e);
    return r;
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
    const struct kernel_running *r = kernel_running_on(&f->cpus[f->source], f->ev->cpu);
    if (!r || r->tid == KERNEL_NO_TID)
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
    case HOST: put_text(out, f->table->origins[f->source].host); break;
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

bool event_filter_matches(struct event_filter *f, const struct ctf_merge *m, const struct ctf_event *ev)
{
    f->ev = ev;
    f->source = ctf_merge_source(m, ev->stream);
    if (ev->cls->item != CTF_EVENT) {
        struct kernel_running *r = f->follows_threads ? kernel_running_on(&f->cpus[f->source], ev->cpu) : NULL;
        if (r)
            r->tid = KERNEL_NO_TID; /* the switch may be among what was lost */
        return f->cpu < 0 || ev->cpu == f->cpu;
    }
    f->info = class_info(f, f->table->schema_of[f->source], ev->cls);
    bool tells = f->follows_threads && (f->info->as_switch.cls || f->info->as_exec.cls);
    struct kernel_running *r = tells ? kernel_running_on(&f->cpus[f->source], ev->cpu) : NULL;
    if (r && f->info->as_exec.cls)
        kernel_running_exec(r, &f->info->as_exec, ev);
    else if (r) /* it may have a name that was not seen before */
        kernel_running_set(r, &f->info->as_switch.prev, ev);
    bool wanted = is_wanted(f);
    if (r && f->info->as_switch.cls)
        kernel_running_set(r, &f->info->as_switch.next, ev);
    return wanted;
}

/* ---- likely mistakes ---- */

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

void event_filter_check(struct event_filter *f, void (*unknown)(bool is_pattern, const char *name))
{
    for (size_t i = 0; i < f->patterns.n + f->n_names; i++) {
        bool is_pattern = i < f->patterns.n, any = false;
        size_t which = is_pattern ? i : i - f->patterns.n;
        for (size_t k = 0; k < f->table->schemas.n && !any; k++)
            any = any_class(f, k, is_pattern ? matches : has_field, which);
        if (!any)
            unknown(is_pattern, is_pattern ? f->patterns.v[which] : f->names[which]);
    }
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

int event_filter_new(const struct event_table *table, const struct event_filter_options *o, struct ctf_window window,
    struct event_filter **out, struct err *e)
{
    struct event_filter *f = mem_zalloc(sizeof *f);
    *out = NULL;
    f->table = table;
    f->cpu = o->cpu;
    f->tid = o->tid;
    for (size_t i = 0; i < o->n_names; i++)
        add_patterns(f, o->names[i]);
    f->classes = mem_zalloc(sizeof *f->classes * (table->schemas.n + 1));
    for (size_t i = 0; i < table->schemas.n; i++)
        f->classes[i] = mem_zalloc(sizeof **f->classes * (table->schemas.v[i].n + 1));
    f->cpus = mem_zalloc(sizeof *f->cpus * (table->n + 1));
    int r = o->where ? expr_compile(o->where, &f->where, e) : ERR_OK;
    if (r == ERR_OK) {
        bind_names(f);
        r = f->follows_threads ? find_running(f, window, e) : ERR_OK;
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
    for (size_t i = 0; i < f->table->schemas.n; i++) {
        for (size_t k = 0; k < f->table->schemas.v[i].n; k++) {
            free(f->classes[i][k] ? f->classes[i][k]->slots : NULL);
            free(f->classes[i][k]);
        }
        free(f->classes[i]);
    }
    free(f->classes);
    for (size_t i = 0; i < f->table->n; i++)
        vec_free(&f->cpus[i]);
    free(f->cpus);
    free(f->builtins);
    expr_free(f->where);
    free(f);
}
