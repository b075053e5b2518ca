/* SPDX-License-Identifier: MIT */
/* Opening: from TRACE arguments to sources and hosts. */
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "base/pool.h"
#include "base/text.h"
#include "ftrace/ftrace.h"
#include "index/names.h"
#include "index/stores.h"

struct opening {
    struct experiment *x;
    const struct index_options *options; /* NULL: defaults */
    const char *const *args;
    struct ctf_root *places; /* one per argument */
    size_t n_places;
    struct ctf_group *groups;
    size_t n;
    struct ctf_trace **traces; /* by group; NULL: not opened */
    struct err *errors;
    const char **names; /* indexed by group */
};

/* ---- arguments ---- */

/* "NAME=PATH" names the hosts below PATH (NULL: no name); a path may itself contain '=', then it must contain a '/'
 * before it. */
static const char *split_name(struct arena *a, const char *arg, const char **path)
{
    const char *eq = strchr(arg, '='), *slash = strchr(arg, '/');
    *path = arg;
    if (!eq || eq == arg || (slash && slash < eq))
        return NULL;
    *path = eq + 1;
    return arena_strndup(a, arg, (size_t)(eq - arg));
}

static struct ctf_root *places_of(struct arena *a, const char *const *args, size_t n)
{
    struct ctf_root *places = arena_new(a, struct ctf_root, n + 1);
    for (size_t i = 0; i < n; i++)
        places[i].name = split_name(a, args[i], &places[i].path);
    return places;
}

static void note_twice(const struct opening *o)
{
    for (size_t i = 0; i < o->n_places; i++) {
        const struct ctf_root *p = &o->places[i];
        if (p->again && p->again == p->found)
            index_experiment_note(o->x, INDEX_NOTE_TWICE, o->args[i], "was given before; it counts once", 1);
        else if (p->again)
            index_experiment_note(o->x, INDEX_NOTE_TWICE, o->args[i],
                arena_printf(&o->x->arena, "%zu of the %zu trace directories in it were given before; they count once",
                    p->again, p->found),
                1);
    }
}

/* Arguments without a trace, as long as another has one. */
static int note_missing(const struct opening *o, struct err *e)
{
    for (size_t i = 0; i < o->n_places; i++) {
        const struct ctf_root *p = &o->places[i];
        const char *why = p->problem.text;
        size_t n = strlen(p->path);
        if (p->found)
            continue;
        if (experiment_needs(o->x, &p->problem)) {
            *e = p->problem;
            return e->code;
        }
        if (!p->name && !strncmp(why, p->path, n) && !strncmp(why + n, ": ", 2))
            why += n + 2;
        index_experiment_note(o->x, INDEX_NOTE_LEFT_OUT, p->name ? p->name : p->path, why, 1);
    }
    return 0;
}

/* ---- traces ---- */

static void open_one(void *arg, size_t i)
{
    struct opening *o = arg;
    const struct ctf_group *g = &o->groups[i];
    if (g->is_file)
        ftrace_trace_open(g->dirs[0], o->x->schemas, &o->traces[i], &o->errors[i]);
    else
        ctf_trace_open(g, o->x->schemas, &o->traces[i], &o->errors[i]);
}

/* Checks that at least one trace was opened. Failures of the others are among the problems. */
static int check_opened(const struct opening *o, struct err *e)
{
    size_t opened = 0;
    for (size_t i = 0; i < o->n; i++)
        opened += o->traces[i] != NULL;
    if (!opened)
        *e = o->errors[0];
    for (size_t i = 0; i < o->n; i++)
        if (!o->traces[i] && experiment_needs(o->x, &o->errors[i])) {
            *e = o->errors[i];
            return e->code;
        }
    for (size_t i = 0; i < o->n && opened; i++)
        if (!o->traces[i])
            index_experiment_note(o->x, INDEX_NOTE_LEFT_OUT, o->names[i], o->errors[i].text, 1);
    return opened ? 0 : e->code;
}

/* Names the traces: by the name given, else the one in the trace, else one from its path. */
static void name_traces(struct opening *o)
{
    struct arena *a = &o->x->arena;
    const char **paths = mem_zalloc(sizeof *paths * (o->n + 1)),
               **from_path = mem_zalloc(sizeof *from_path * (o->n + 1));
    size_t *of = mem_zalloc(sizeof *of * (o->n + 1)), n = 0;
    for (size_t i = 0; i < o->n; i++) {
        const char *recorded = o->traces[i] ? kernel_host_name(o->traces[i]) : NULL;
        o->names[i] = o->places[o->groups[i].root].name;
        if (!o->names[i] && recorded && *recorded)
            o->names[i] = arena_strdup(a, recorded);
        if (o->names[i])
            continue;
        of[n] = i;
        paths[n++] = index_trace_dir(a, &o->groups[i]);
    }
    index_dir_names(a, paths, n, from_path);
    for (size_t i = 0; i < n; i++)
        o->names[of[i]] = from_path[i];
    free(paths);
    free(from_path);
    free(of);
}

/* ---- boots ---- */

/* Compares boots by their ids, which LTTng writes as the uuid of the clock. BOOTS_UNTOLD without them. */
enum boots { BOOTS_UNTOLD, BOOTS_SAME, BOOTS_OTHER };
static enum boots compare_boots(const struct ctf_trace *a, const struct ctf_trace *b)
{
    const struct ctf_clock *p, *q;
    if (!ctf_trace_clocks(a, &p) || !ctf_trace_clocks(b, &q) || !p->has_uuid || !q->has_uuid)
        return BOOTS_UNTOLD;
    return memcmp(p->uuid, q->uuid, sizeof p->uuid) ? BOOTS_OTHER : BOOTS_SAME;
}

/* Returns whether the trace is of another boot of that machine. A machine runs in one boot at a time. */
static bool is_other_boot(const struct index_host *h, const struct ctf_trace *t)
{
    int64_t begin, end;
    ctf_trace_span(t, &begin, &end);
    return compare_boots(h->trace, t) == BOOTS_OTHER && (begin > h->end || end < h->begin);
}

/* ---- hosts ---- */

static void find_limits(const struct opening *o, const struct ctf_trace *t, int64_t *from, int64_t *until)
{
    *from = INT64_MIN;
    *until = INT64_MAX;
    if (o->options && o->options->within)
        o->options->within(o->options->within_arg, t, from, until);
}

static void add_host(const struct opening *o, size_t group, bool is_kernel)
{
    struct experiment *x = o->x;
    struct ctf_trace *t = o->traces[group];
    struct index_host h = {.own_name = o->names[group], .trace = t, .is_kernel = is_kernel};
    int64_t from;
    find_limits(o, t, &from, &h.until);
    ctf_trace_span(t, &h.begin, &h.end);
    h.begin = from > h.begin ? from : h.begin;
    h.end = h.until < h.end ? h.until : h.end;
    for (size_t i = 0; i < ctf_trace_streams(t); i++) {
        struct ctf_stream_info s;
        ctf_trace_stream(t, i, &s);
        h.lost_events += s.lost_events;
    }
    vec_push(&x->hosts, h);
}

static void add_trace(const struct opening *o, struct ctf_trace *t, int32_t host)
{
    struct experiment *x = o->x;
    struct index_trace is = {.trace = t, .host = host, .is_kernel = kernel_is_kernel_trace(t)};
    const struct ctf_problem *p;
    size_t n = ctf_trace_problems(t, &p);
    for (size_t i = 0; i < n; i++)
        index_experiment_note(
            x, p[i].harmless ? INDEX_NOTE_ODD : INDEX_NOTE_INPUT, x->hosts.v[host].name, p[i].text, p[i].count);
    vec_push(&x->sources, ((struct ctf_source){.trace = t}));
    find_limits(o, t, &is.from, &is.until);
    vec_push(&x->traces, is);
}

/* Comparison of sessions, by the name and time of creation in the trace. */
enum sessions { SESSIONS_UNTOLD, SESSIONS_SAME, SESSIONS_OTHER };
static enum sessions compare_sessions(const struct ctf_trace *a, const struct ctf_trace *b)
{
    static const char *const told[] = {"trace_name", "trace_creation_datetime"};
    enum sessions is = SESSIONS_SAME;
    for (size_t i = 0; i < sizeof told / sizeof *told; i++) {
        const char *p = ctf_trace_env_string(a, told[i]), *q = ctf_trace_env_string(b, told[i]);
        if (!p || !q)
            return SESSIONS_UNTOLD;
        is = strcmp(p, q) ? SESSIONS_OTHER : is;
    }
    return is;
}

/* A user-space trace belongs to the host of its machine and boot, whatever session it is of; but hosts that have no
 * kernel trace are of one session each. */
static bool is_other_session(const struct index_host *h, const struct ctf_trace *t)
{
    return !h->is_kernel && compare_sessions(h->trace, t) == SESSIONS_OTHER;
}

/* The host of that name, as wanted: of the same session, of the same boot, and from the same argument, if there is one;
 * none of which it is surely another boot. `group_of`: by host. */
static int32_t find_host(const struct opening *o, const size_t *group_of, size_t group)
{
    int32_t found = -1;
    int best = -1;
    for (size_t i = 0; i < o->x->hosts.n; i++) {
        const struct index_host *h = &o->x->hosts.v[i];
        if (strcmp(o->names[group_of[i]], o->names[group]) != 0 || is_other_boot(h, o->traces[group]) ||
            is_other_session(h, o->traces[group]))
            continue;
        int fits = 4 * (compare_sessions(h->trace, o->traces[group]) == SESSIONS_SAME) +
            2 * (compare_boots(h->trace, o->traces[group]) == BOOTS_SAME) +
            (o->groups[group_of[i]].root == o->groups[group].root);
        if (fits >= best) {
            best = fits;
            found = (int32_t)i;
        }
    }
    return found;
}

/* A group that was opened, by what does not depend on the order in which traces were named. */
struct named_group {
    const char *name, *path;
    int64_t begin;
    uint64_t key;
    size_t group;
};

/* Equal times, as all empty traces have, are ordered by key, which is made of UUIDs. A cluster has the same order.
 * Paths decide only between traces without a UUID. */
static int by_name_and_time(const void *pa, const void *pb)
{
    const struct named_group *a = pa, *b = pb;
    return strcmp(a->name, b->name) ?: order_of(a->begin, b->begin) ?: order_of(a->key, b->key)
        ?: strcmp(a->path, b->path);
}

static struct named_group *groups_by_name(const struct opening *o, size_t *n)
{
    struct named_group *v = mem_zalloc((o->n + 1) * sizeof *v);
    *n = 0;
    for (size_t i = 0; i < o->n; i++) {
        int64_t begin, end;
        if (!o->traces[i])
            continue;
        ctf_trace_span(o->traces[i], &begin, &end);
        v[(*n)++] = (struct named_group){
            o->names[i], ctf_trace_path(o->traces[i]), begin, index_key_alone(o->names[i], o->traces[i]), i};
    }
    if (*n)
        qsort(v, *n, sizeof *v, by_name_and_time);
    return v;
}

static void name_hosts(struct experiment *x)
{
    struct index_named *named = mem_zalloc((x->hosts.n + 1) * sizeof *named);
    for (size_t i = 0; i < x->hosts.n; i++) {
        const struct index_host *h = &x->hosts.v[i];
        const struct ctf_clock *c;
        bool has_boot = ctf_trace_clocks(h->trace, &c) && c->has_uuid;
        named[i] = (struct index_named){.wanted = h->own_name,
            .begin = h->begin,
            .end = h->end,
            .boot = has_boot ? c->uuid : NULL,
            .is_kernel = h->is_kernel};
    }
    index_name_hosts(&x->arena, named, x->hosts.n);
    for (size_t i = 0; i < x->hosts.n; i++) {
        x->hosts.v[i].name = named[i].name;
        x->hosts.v[i].clock_name = named[i].clock_name;
    }
    free(named);
}

static void note_moved(struct experiment *x, const struct index_host *h, const char *first, size_t n, int64_t most_ns)
{
    struct text t = {.fd = -1};
    if (n == 1)
        text_printf(&t, "%s: its clock is that of %s, but the offset was measured apart; its times are moved by ",
            first, ctf_trace_path(h->trace));
    else
        text_printf(&t,
            "the clock of %zu traces is that of %s, but the offset was measured apart; their times are moved by up to ",
            n, ctf_trace_path(h->trace));
    text_puts(&t, n == 1 && most_ns < 0 ? "-" : "");
    text_duration(&t, most_ns < 0 ? -most_ns : most_ns);
    index_experiment_note(x, INDEX_NOTE_ODD, h->name, text_cstr(&t), 1);
    text_fini(&t);
}

/* A machine has one monotonic clock in a boot, but a tracer measures its distance from the epoch anew for kernel and
 * user space, and for each session: that of the host's own trace holds for all. */
static void share_offsets(struct experiment *x)
{
    for (size_t i = 0; i < x->hosts.n; i++) {
        const struct index_host *h = &x->hosts.v[i];
        const char *first = NULL;
        int64_t most = 0;
        size_t n = 0;
        for (size_t k = 0; k < x->traces.n; k++) {
            struct ctf_trace *t = x->traces.v[k].trace;
            int64_t by = x->traces.v[k].host == (int32_t)i && t != h->trace ? ctf_trace_take_offset(t, h->trace) : 0;
            if (!by)
                continue;
            first = n++ ? first : ctf_trace_path(t);
            most = llabs(by) > llabs(most) ? by : most;
        }
        if (n)
            note_moved(x, h, first, n, most);
    }
}

/* Makes a host of each kernel trace. User-space traces form one only without a kernel trace. Hosts are numbered by
 * name: clocks are fitted from lesser to greater numbers, and the same traces must give the same clocks. */
static void make_hosts(struct opening *o)
{
    struct experiment *x = o->x;
    size_t n, *group_of = mem_zalloc(sizeof *group_of * (o->n + 1));
    int32_t *host_of = mem_zalloc(sizeof *host_of * (o->n + 1));
    struct named_group *groups = groups_by_name(o, &n);
    for (int pass = 0; pass < 2; pass++)
        for (size_t k = 0; k < n; k++) {
            size_t i = groups[k].group;
            bool is_kernel = pass == 0;
            if (kernel_is_kernel_trace(o->traces[i]) != is_kernel)
                continue;
            host_of[i] = is_kernel ? -1 : find_host(o, group_of, i);
            if (host_of[i] >= 0)
                continue;
            host_of[i] = (int32_t)x->hosts.n;
            group_of[x->hosts.n] = i;
            add_host(o, i, is_kernel);
        }
    name_hosts(x);
    for (size_t i = 0; i < o->n; i++)
        if (o->traces[i])
            add_trace(o, o->traces[i], host_of[i]);
    index_experiment_set_keys(x); /* keys from times as recorded, which depend on no other trace */
    share_offsets(x);
    free(groups);
    free(group_of);
    free(host_of);
}

void index_experiment_take_traces(
    struct experiment *x, struct ctf_trace *const *traces, const char *const *names, size_t n)
{
    struct opening o = {.x = x,
        .places = arena_new(&x->arena, struct ctf_root, n + 1),
        .n_places = n,
        .groups = arena_new(&x->arena, struct ctf_group, n + 1),
        .n = n,
        .traces = (struct ctf_trace **)traces,
        .names = arena_new(&x->arena, const char *, n + 1)};
    for (size_t i = 0; i < n; i++) {
        char **dir = arena_new(&x->arena, char *, 1);
        *dir = arena_strdup(&x->arena, ctf_trace_path(traces[i]));
        o.groups[i] = (struct ctf_group){.dirs = dir, .n = 1, .root = i};
        o.places[i] = (struct ctf_root){.path = *dir, .name = names[i] ? arena_strdup(&x->arena, names[i]) : NULL};
    }
    name_traces(&o);
    make_hosts(&o);
}

/* A file was not what its catalogue says when the opening looked at it: the next one reads all. */
static bool is_misled(const struct opening *o)
{
    bool misled = false;
    for (size_t i = 0; i < o->n; i++)
        misled |= o->errors[i].code == ERR_LOST;
    return misled;
}

static void open_groups(struct opening *o, const struct index_options *options)
{
    index_catalogues_found(o->places, o->n_places, o->groups, o->n);
    pool_run(o->n, 0, open_one, o);
    bool misled = is_misled(o);
    if (misled)
        index_catalogues_remove(o->x);
    index_catalogues_save(o->x, o->places, o->n_places, options->stores && !misled);
}

int index_experiment_open_traces(
    struct experiment *x, const char *const *args, size_t n, const struct index_options *options, struct err *e)
{
    struct opening o = {
        .x = x, .options = options, .args = args, .places = places_of(&x->arena, args, n), .n_places = n};
    for (size_t i = 0; i < n; i++)
        if (!strncmp(o.places[i].path, "net://", 6))
            return err_set(e, ERR_UNSUPPORTED,
                "%s: live sessions cannot be read by this verb; give the directory that lttng-relayd writes", args[i]);
    index_catalogues_load(x, o.places, n, !options->force);
    int rc = ctf_discover_all(o.places, n, &o.groups, &o.n, e);
    if (rc) {
        index_catalogues_save(x, o.places, n, false);
        return rc;
    }
    o.traces = mem_zalloc((o.n + 1) * sizeof *o.traces);
    o.errors = mem_zalloc((o.n + 1) * sizeof *o.errors);
    o.names = mem_zalloc((o.n + 1) * sizeof *o.names);
    open_groups(&o, options);
    rc = note_missing(&o, e);
    note_twice(&o);
    name_traces(&o);
    if (rc || (rc = check_opened(&o, e)))
        for (size_t i = 0; i < o.n; i++)
            ctf_trace_close(o.traces[i]);
    else
        make_hosts(&o);
    free(o.traces);
    free(o.errors);
    free(o.names);
    ctf_groups_free(o.groups, o.n);
    return rc;
}
