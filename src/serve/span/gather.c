/* SPDX-License-Identifier: MIT */
/* Rows from spans: texts become numbers, and only the chosen attributes are kept. Rows are then sorted, and repeated
 * ones removed. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "span/spans.h"

enum { LONGEST_VALUE = 256 }; /* bytes; longer values are hardly shared by spans */

/* ---- keys ---- */

static const char *const names_of[][8] = {
    {"host", "host.name", "hostname", "host", NULL},
    {"site", "site", "gwms.site", "glidein.site", "GLIDEIN_Site", "GLIDEIN_SITE", NULL},
    {"entry", "entry", "gwms.entry", "glidein.entry", "GLIDEIN_Entry_Name", NULL},
    {"client", "client", "gwms.client", "glidein.client", "GLIDEIN_Client", NULL},
};
/* Keys that tell pilot jobs apart: of GlideinWMS' scripts, and of their successors. */
static const char *const usual_groups[] = {"UUID", "glidein.uuid", "gwms.glidein_index", NULL};

const char *const *spans_key_names(const char *key, const char *alone[2])
{
    for (size_t i = 0; i < sizeof names_of / sizeof *names_of; i++)
        if (!strcmp(key, names_of[i][0]))
            return names_of[i] + 1;
    alone[0] = key;
    alone[1] = NULL;
    return alone;
}

static void remember(struct spans *s, const char *key)
{
    vec_push(&s->keys, ((struct spans_key){key, strlen(key)}));
}

struct spans *spans_new(const struct spans_choice *c)
{
    struct spans *s = mem_zalloc(sizeof *s);
    const char *one[] = {c->group, NULL}, *alone[2];
    s->all_keys = c->all_keys;
    s->as_recorded = c->as_recorded;
    strings_intern(&s->texts, "", 0);
    s->status_text = strings_intern(&s->texts, "status", 6);
    s->error_text = strings_intern(&s->texts, "error", 5);
    for (const char *const *g = c->group ? one : usual_groups; *g; g++) {
        vec_push(&s->groups, *g);
        remember(s, *g);
    }
    for (const char *const *name = spans_key_names("host", alone); *name; name++)
        remember(s, *name);
    remember(s, "ip");
    for (const char *const *k = c->keys; k && *k; k++)
        for (const char *const *name = spans_key_names(*k, alone); *name; name++)
            remember(s, *name);
    return s;
}

void spans_free(struct spans *s)
{
    if (!s)
        return;
    vec_free(&s->rows);
    vec_free(&s->traces);
    vec_free(&s->facts);
    vec_free(&s->origins);
    vec_free(&s->units);
    vec_free(&s->keys);
    vec_free(&s->groups);
    strings_fini(&s->texts);
    map_fini(&s->trace_of);
    map_fini(&s->origin_of);
    free(s->members);
    free(s->parts);
    free(s->part);
    free(s);
}

/* ---- gathering ---- */

static uint32_t intern(struct spans *s, const char *text)
{
    return strings_intern(&s->texts, text, strlen(text));
}

static bool is_wanted(const void *set, const char *key, size_t n)
{
    const struct spans *s = set;
    for (size_t i = 0; i < s->keys.n; i++)
        if (s->keys.v[i].n == n && !memcmp(s->keys.v[i].v, key, n))
            return true;
    return s->all_keys;
}

static uint32_t add_facts(struct spans *s, const struct span_attributes *a)
{
    size_t before = s->facts.n;
    struct arena scratch = {0};
    for (size_t i = 0; i < a->n; i++) {
        if (!is_wanted(s, a->v[i].key, strlen(a->v[i].key)))
            continue;
        const char *value = span_value_text(&a->v[i].value, &scratch);
        if (strlen(value) <= LONGEST_VALUE)
            vec_push(&s->facts, ((struct spans_fact){intern(s, a->v[i].key), intern(s, value)}));
    }
    arena_fini(&scratch);
    return (uint32_t)(s->facts.n - before);
}

static uint32_t origin_of(struct spans *s, const struct span_origin *o)
{
    bool fresh;
    uint64_t *number = map_put(&s->origin_of, (uint64_t)(uintptr_t)o, &fresh);
    if (fresh) {
        struct spans_origin x = {.fact = (uint32_t)s->facts.n, .service = intern(s, o->service)};
        *number = s->origins.n;
        x.facts = add_facts(s, &o->resource);
        vec_push(&s->origins, x);
    }
    return (uint32_t)*number;
}

static uint32_t trace_of(struct spans *s, const uint8_t *id)
{
    if (s->traces.n && !memcmp(s->traces.v[s->last_trace].id, id, SPAN_TRACE_BYTES))
        return s->last_trace;
    for (uint64_t key = map_hash(id, SPAN_TRACE_BYTES);; key++) {
        bool fresh;
        uint64_t *number = map_put(&s->trace_of, key, &fresh);
        if (fresh) {
            struct spans_trace t = {.row = 0};
            memcpy(t.id, id, SPAN_TRACE_BYTES);
            *number = s->traces.n;
            vec_push(&s->traces, t);
        } else if (memcmp(s->traces.v[*number].id, id, SPAN_TRACE_BYTES) != 0) {
            continue;
        }
        return s->last_trace = (uint32_t)*number;
    }
}

static uint64_t id_number(const uint8_t *id)
{
    uint64_t n;
    memcpy(&n, id, sizeof n);
    return __builtin_bswap64(n);
}

void spans_write_id(struct text *t, uint64_t id)
{
    uint64_t bytes = __builtin_bswap64(id);
    span_write_hex(t, &bytes, sizeof bytes);
}

void spans_only(struct spans *s, const struct span_query *q)
{
    s->only = *q;
}

static bool is_meant(const struct span_query *q, const struct span *x)
{
    return (!q->trace_id || !memcmp(q->trace_id, x->trace_id, SPAN_TRACE_BYTES)) &&
        (!q->service || !strcmp(q->service, x->origin->service)) && (!q->name || !strcmp(q->name, x->name)) &&
        (!q->by_time || (x->begin_ns >= q->begin_ns && x->begin_ns < q->end_ns));
}

/* Returns whether a span links to its own parent: "follows from" of OpenTracing, or a message that is received
 * later. */
static bool follows_parent(const struct span *x)
{
    for (size_t i = 0; i < x->n_links; i++) {
        const struct span_link *link = x->links + i;
        if (memcmp(link->id, x->parent_id, sizeof link->id) || memcmp(link->trace_id, x->trace_id, SPAN_TRACE_BYTES))
            continue;
        const struct span_value *type = span_find(&link->attributes, "opentracing.ref_type");
        return !type || type->type != SPAN_STRING || strcmp(type->text.v, "child_of") != 0;
    }
    return false;
}

void spans_add(struct spans *s, const struct span *x)
{
    if (!is_meant(&s->only, x))
        return;
    struct spans_row r = {.id = id_number(x->id),
        .parent_id = id_number(x->parent_id),
        .begin_ns = x->begin_ns,
        .end_ns = x->end_ns,
        .recorded_ns = x->begin_ns,
        .trace = trace_of(s, x->trace_id),
        .name = intern(s, x->name),
        .origin = origin_of(s, x->origin),
        .parent = -1,
        .status = (uint8_t)x->status,
        .kind = (uint8_t)x->kind,
        .follows = follows_parent(x),
        .life = (uint8_t)x->life};
    r.service = s->origins.v[r.origin].service;
    r.fact = (uint32_t)s->facts.n;
    r.facts = add_facts(s, &x->attributes);
    vec_push(&s->rows, r);
}

int spans_add_file(struct spans *s, const char *path, struct span_told *told, struct err *e)
{
    struct arena arena = {0};
    struct span_list list = {0};
    int rc = span_read_file(path, &arena, &list, told, e);
    for (size_t i = 0; !rc && i < list.n; i++)
        spans_add(s, list.v[i]);
    map_fini(&s->origin_of); /* the next arena may reuse this one's addresses */
    s->origin_of = (struct map){0};
    free(list.v);
    arena_fini(&arena);
    return rc;
}

int spans_add_store(struct spans *s, const char *directory, const struct span_query *q, struct err *e)
{
    enum { BATCH = 1024 };
    struct span_store *store = NULL;
    struct span_cursor *cursor = NULL;
    const struct span *x = NULL;
    struct arena arena = {0};
    size_t held = 0;
    int rc = span_store_open(directory, &store, e);
    if (rc)
        return rc;
    rc = span_select(store, q, &cursor, e);
    while (!rc && !(rc = span_next_brief(cursor, &arena, is_wanted, s, &x, e)) && x) {
        spans_add(s, x);
        if (++held == BATCH) {
            arena_fini(&arena);
            arena = (struct arena){0};
            held = 0;
        }
    }
    arena_fini(&arena);
    span_cursor_close(cursor);
    span_store_close(store);
    map_fini(&s->origin_of);
    s->origin_of = (struct map){0};
    return rc;
}

/* ---- order ---- */

static int by_end(const void *a, const void *b)
{
    const struct spans_row *x = a, *y = b;
    return order_of(x->end_ns, y->end_ns) ?: order_of(x->begin_ns, y->begin_ns) ?: order_of(x->id, y->id)
        ?: order_of(y->life, x->life) ?: order_of(x->name, y->name);
}

static bool is_sorted(const struct spans_row *v, size_t n)
{
    for (size_t i = 1; i < n; i++)
        if (by_end(v + i - 1, v + i) > 0)
            return false;
    return true;
}

static int by_id(const void *a, const void *b)
{
    const struct spans_row *x = a, *y = b;
    return order_of(x->id, y->id) ?: order_of(y->life, x->life) ?: by_end(x, y);
}

/* Returns whether a row repeats a span: its state while open, or a copy that arrived another way. Rows with one id but
 * different content are two spans (client and server of one call in some formats). */
static bool is_double(const struct spans_row *kept, const struct spans_row *r)
{
    if (kept->id != r->id || kept->name != r->name || kept->service != r->service || kept->kind != r->kind)
        return false;
    return r->life != SPAN_ENDED ||
        (kept->begin_ns == r->begin_ns && kept->end_ns == r->end_ns && kept->parent_id == r->parent_id);
}

static size_t remove_doubles(struct spans_row *v, size_t n)
{
    enum { ASKED = 16 }; /* limit of comparisons with rows of one id, for hostile input */
    size_t kept = 0;
    for (size_t i = 0; i < n; i++) {
        bool again = false;
        for (size_t k = kept; k-- > 0 && kept - k <= ASKED && v[k].id == v[i].id && !again;)
            again = is_double(v + k, v + i);
        if (!again)
            v[kept++] = v[i];
    }
    return kept;
}

static bool repeats_ids(const struct spans_row *v, size_t n, struct map *seen)
{
    for (size_t i = 0; i < n; i++) {
        bool fresh = true;
        if (n > 16)
            map_put(seen, v[i].id, &fresh);
        for (size_t k = 0; n <= 16 && k < i && fresh; k++)
            fresh = v[k].id != v[i].id;
        if (!fresh)
            return true;
    }
    return false;
}

static int by_first(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return order_of((int64_t)x[0], (int64_t)y[0]) ?: order_of(x[1], y[1]);
}

/* Sorts the rows of one trace. */
void spans_sort_rows(struct spans_row *v, size_t n)
{
    struct spans_row was[ORDER_FEW];
    uint8_t place[ORDER_FEW];
    if (is_sorted(v, n))
        return;
    if (n > ORDER_FEW) {
        qsort(v, n, sizeof *v, by_end);
        return;
    }
    order_few(place, v, n, sizeof *v, by_end);
    memcpy(was, v, n * sizeof *v);
    for (size_t i = 0; i < n; i++)
        v[i] = was[place[i]];
}

/* Sorts traces by first begin; then rows by trace. */
static void order_traces(struct spans *s)
{
    size_t n = s->traces.n;
    uint64_t(*first)[2] = mem_alloc((n + 1) * sizeof *first);
    uint32_t *place = mem_alloc((n + 1) * sizeof *place);
    struct spans_trace *traces = mem_alloc((n + 1) * sizeof *traces);
    struct spans_row *rows = mem_alloc((s->rows.n + 1) * sizeof *rows);
    for (size_t t = 0; t < n; t++) {
        first[t][0] = (uint64_t)INT64_MAX;
        first[t][1] = t;
        s->traces.v[t].rows = 0;
    }
    for (size_t i = 0; i < s->rows.n; i++) {
        const struct spans_row *r = s->rows.v + i;
        if (r->begin_ns < (int64_t)first[r->trace][0])
            first[r->trace][0] = (uint64_t)r->begin_ns;
        s->traces.v[r->trace].rows++;
    }
    qsort(first, n, sizeof *first, by_first);
    uint32_t at = 0;
    for (size_t t = 0; t < n; t++) {
        traces[t] = s->traces.v[first[t][1]];
        traces[t].row = at;
        place[first[t][1]] = (uint32_t)t;
        at += traces[t].rows;
        traces[t].rows = 0;
    }
    for (size_t i = 0; i < s->rows.n; i++) {
        struct spans_row *r = s->rows.v + i;
        r->trace = place[r->trace];
        rows[traces[r->trace].row + traces[r->trace].rows++] = *r;
    }
    free(s->traces.v);
    free(s->rows.v);
    s->traces.v = traces;
    s->traces.cap = n + 1;
    s->rows.v = rows;
    s->rows.cap = s->rows.n + 1;
    free(first);
    free(place);
}

static void order_rows(struct spans *s)
{
    size_t at = 0;
    for (size_t t = 0; t < s->traces.n; t++) {
        struct spans_trace *trace = s->traces.v + t;
        struct spans_row *v = s->rows.v + trace->row;
        struct map seen = {0};
        size_t n = trace->rows;
        if (repeats_ids(v, n, &seen)) {
            qsort(v, n, sizeof *v, by_id);
            n = remove_doubles(v, n);
            s->told.doubles += trace->rows - n;
        }
        map_fini(&seen);
        spans_sort_rows(v, n);
        if (at != trace->row)
            memmove(s->rows.v + at, v, n * sizeof *v);
        trace->row = (uint32_t)at;
        trace->rows = (uint32_t)n;
        at += n;
    }
    s->rows.n = at;
}

void spans_settle(struct spans *s)
{
    map_fini(&s->trace_of);
    s->trace_of = (struct map){0};
    if (s->traces.n) {
        order_traces(s);
        order_rows(s);
    }
    spans_make_units(s);
}

/* ---- reading ---- */

size_t spans_rows(const struct spans *s, const struct spans_row **v)
{
    *v = s->rows.v;
    return s->rows.n;
}

size_t spans_traces(const struct spans *s, const struct spans_trace **v)
{
    *v = s->traces.v;
    return s->traces.n;
}

size_t spans_units(const struct spans *s, const struct spans_unit **v)
{
    *v = s->units.v;
    return s->units.n;
}

const uint32_t *spans_members(const struct spans *s, const struct spans_unit *u)
{
    return s->members + u->member;
}

const struct spans_told *spans_told(const struct spans *s)
{
    return &s->told;
}

const char *spans_text(const struct spans *s, uint32_t text)
{
    return strings_get(&s->texts, text);
}

double spans_log(int64_t duration_ns)
{
    return log((double)duration_ns + 1000);
}

static uint32_t fact_of(const struct spans *s, uint32_t fact, uint32_t facts, const char *name)
{
    for (uint32_t i = fact; i < fact + facts; i++)
        if (!strcmp(spans_text(s, s->facts.v[i].key), name))
            return s->facts.v[i].value;
    return 0;
}

uint32_t spans_own_value(const struct spans *s, const struct spans_row *r, const char *key)
{
    const char *alone[2];
    for (const char *const *name = spans_key_names(key, alone); *name; name++) {
        const struct spans_origin *o = s->origins.v + r->origin;
        uint32_t value = fact_of(s, r->fact, r->facts, *name) ?: fact_of(s, o->fact, o->facts, *name);
        if (value)
            return value;
    }
    return 0;
}

static const char *own_text(const struct spans *s, const struct spans_row *r, const char *key)
{
    uint32_t value = spans_own_value(s, r, key);
    return value ? spans_text(s, value) : NULL;
}

static int64_t own_number(const struct spans *s, const struct spans_row *r, const char *key)
{
    const char *text = own_text(s, r, key);
    char *end = NULL;
    long long n = text ? strtoll(text, &end, 10) : 0;
    return text && !*end && n > 0 ? n : 0;
}

struct spans_process spans_process(const struct spans *s, const struct spans_row *r)
{
    static const char *const keys[] = {SPANS_PROCESS_KEYS};
    return (struct spans_process){.host = own_text(s, r, keys[0]),
        .boot = own_text(s, r, keys[1]),
        .pid = own_number(s, r, keys[2]),
        .tid = own_number(s, r, keys[3]),
        .pid_namespace = own_number(s, r, keys[4]),
        .monotonic_begin = own_number(s, r, keys[5]),
        .monotonic_end = own_number(s, r, keys[6])};
}

uint32_t spans_trace_value(const struct spans *s, const struct spans_trace *t, const char *key)
{
    uint32_t value = 0;
    for (uint32_t i = 0; i < t->rows && !value; i++)
        value = spans_own_value(s, s->rows.v + t->row + i, key);
    return value;
}
