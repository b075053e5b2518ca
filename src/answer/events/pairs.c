/* SPDX-License-Identifier: MIT */
/* Pairs of events: one pass in order of time. Memory is proportional to the result, which is bounded. */
#include "base/search.h"
#include "base/order.h"
#include "events/cell.h"
#include "events/reader.h"

enum {
    MAX_PAIRS = 8 << 20,
    MAX_ROWS = 1 << 17,
    MAX_TEXTS = 1 << 22,
    MAX_TEXT_BYTES = 32 << 20,
    BATCH = 1024,
    MAX_LEVELS = 64 /* limit of pairs open at once in a group; the oldest is dropped */
};
static const uint32_t unclosed = UINT32_C(1) << 31; /* flag in a pair's row, until its end is seen */

struct open {
    uint32_t specifier, pair, level;
};
/* Group: properties that must be equal in both events of a pair. */
struct pair_group {
    uint32_t host, classifier, context; /* texts by number */
    size_t losses;                      /* number of the host's losses handled */
    uint64_t levels;                    /* bit per level in use */
    VEC(struct open) open;
    VEC(uint32_t) rows; /* rows by level */
};
struct level {
    uint32_t group, level;
};
struct fits {
    bool known;
    uint64_t in, out; /* bit per specifier whose expression matches the name */
};
struct pair_label {
    uint32_t host, label;
};

struct pairing {
    const struct event_table *table;
    const struct event_pair_config *config;
    struct event_threads *threads;
    size_t contents;      /* column of contents */
    struct fits **fits;   /* by schema, by number of the type */
    struct strings texts; /* becomes the result's, as do the pairs */
    size_t text_bytes;
    struct map group_of, name_of;
    VEC(struct pair_group) groups;
    VEC(struct level) rows;
    VEC(struct pair_label) names;
    VEC(struct event_pair) pairs;
    size_t n_hosts;
    struct losses {
        VEC(int64_t) times;
    } * losses; /* losses by host */
    struct text fields, value;
    int64_t now; /* current time; does not step back with recorded times */
};

/* ---- groups ---- */

static int intern(struct pairing *p, const char *s, size_t n, uint32_t *out, struct err *e)
{
    size_t before = p->texts.n;
    *out = strings_intern(&p->texts, s, n);
    if (p->texts.n > before)
        p->text_bytes += n;
    if (p->text_bytes <= MAX_TEXT_BYTES && p->texts.n <= MAX_TEXTS)
        return 0;
    return err_set(e, ERR_LIMIT, "the expressions capture more than %d MB of different texts: let them capture less",
        MAX_TEXT_BYTES >> 20);
}

/* NULL: none exists, and none is made. */
static struct pair_group *group_of(struct pairing *p, uint32_t host, uint32_t classifier, uint32_t context, bool make)
{
    uint64_t key = (uint64_t)host << 44 | (uint64_t)classifier << 22 | context, *number = map_find(&p->group_of, key);
    if (number || !make)
        return number ? &p->groups.v[*number] : NULL;
    *map_put(&p->group_of, key, NULL) = p->groups.n;
    vec_push(&p->groups,
        ((struct pair_group){
            .host = host, .classifier = classifier, .context = context, .losses = p->losses[host].times.n}));
    return &p->groups.v[p->groups.n - 1];
}

static int row_of(struct pairing *p, struct pair_group *g, uint32_t level, uint32_t *out, struct err *e)
{
    while (g->rows.n <= level) {
        if (p->rows.n >= MAX_ROWS)
            return err_set(e, ERR_LIMIT,
                "classifier and contexts tell more than %d things apart: let them capture less", MAX_ROWS);
        vec_push(&g->rows, (uint32_t)p->rows.n);
        vec_push(&p->rows, ((struct level){(uint32_t)(g - p->groups.v), (uint32_t)g->rows.n - 1}));
    }
    *out = g->rows.v[level];
    return 0;
}

static uint32_t name_of(struct pairing *p, uint32_t host, uint32_t label)
{
    bool fresh;
    uint64_t *number = map_put(&p->name_of, (uint64_t)host << 32 | label, &fresh);
    if (fresh) {
        *number = p->names.n;
        vec_push(&p->names, ((struct pair_label){host, label}));
    }
    return (uint32_t)*number;
}

/* ---- opening and closing ---- */

/* Ends pairs without an end: they last until `end`, as far as known. */
static void end_pairs(struct pairing *p, struct pair_group *g, size_t first, size_t n, int64_t end)
{
    for (size_t i = first; i < first + n; i++) {
        p->pairs.v[g->open.v[i].pair].end = end;
        g->levels &= ~(UINT64_C(1) << g->open.v[i].level);
    }
    memmove(&g->open.v[first], &g->open.v[first + n], sizeof *g->open.v * (g->open.n - first - n));
    g->open.n -= n;
}

/* Handles losses: lost events may include one that closed a pair, and one that opened the next. */
static void heed_losses(struct pairing *p, struct pair_group *g)
{
    const struct losses *l = &p->losses[g->host];
    if (g->losses < l->times.n && g->open.n)
        end_pairs(p, g, 0, g->open.n, l->times.v[g->losses]);
    g->losses = l->times.n;
}

static void close_pair(struct pairing *p, struct pair_group *g, uint32_t specifier)
{
    for (size_t i = g->open.n; i-- > 0;)
        if (g->open.v[i].specifier == specifier) {
            p->pairs.v[g->open.v[i].pair].row &= ~unclosed;
            end_pairs(p, g, i, 1, p->now);
            return;
        }
}

static int open_pair(struct pairing *p, struct pair_group *g, uint32_t specifier, uint32_t label, struct err *e)
{
    uint32_t row = 0;
    if (p->pairs.n >= MAX_PAIRS)
        return err_set(e, ERR_LIMIT, "more than %d pairs: let the expressions fit fewer events", MAX_PAIRS);
    if (g->open.n == MAX_LEVELS)
        end_pairs(p, g, 0, 1, p->now);
    uint32_t level = (uint32_t)__builtin_ctzll(~g->levels);
    int rc = row_of(p, g, level, &row, e);
    if (rc)
        return rc;
    g->levels |= UINT64_C(1) << level;
    vec_push(&g->open, ((struct open){specifier, (uint32_t)p->pairs.n, level}));
    vec_push(
        &p->pairs, ((struct event_pair){.begin = p->now, .row = row | unclosed, .name = name_of(p, g->host, label)}));
    return 0;
}

/* ---- events ---- */

struct occurrence {
    const struct ctf_event *ev;
    uint32_t source, host;
    bool has_fields; /* fields are printed already */
};

static int too_costly(
    const struct pairing *p, const struct event_pair_specifier *s, const char *key, const char *name, struct err *e)
{
    return err_set(e, ERR_LIMIT, "specifiers[%zu].%s needs too many steps on events %.100s: make it simpler",
        (size_t)(s - p->config->v), key, name);
}

static int find_fits(const struct pairing *p, const char *name, struct fits *f, struct err *e)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < p->config->n; i++) {
        const struct event_pair_specifier *s = &p->config->v[i];
        int in = regex_fits(s->in, name, n), out = regex_fits(s->out, name, n);
        if (in < 0 || out < 0)
            return too_costly(p, s, in < 0 ? "inRegex" : "outRegex", name, e);
        f->in |= (uint64_t)in << i;
        f->out |= (uint64_t)out << i;
    }
    f->known = true;
    return 0;
}

/* Reads what an expression captures of the event's fields. 1: found, 0: not found, < 0: error. */
static int capture_fields(struct pairing *p, struct occurrence *at, const struct event_pair_specifier *s,
    const struct regex *r, const char **text, size_t *n, struct err *e)
{
    struct regex_part part;
    if (!at->has_fields) {
        p->fields.n = 0;
        events_cell_write(p->table, p->threads, p->contents, at->ev, at->source, &p->fields);
        text_cstr(&p->fields);
        at->has_fields = true;
    }
    int found = regex_captures(r, p->fields.v, p->fields.n, &part);
    if (found < 0)
        return too_costly(p, s, r == s->context_in ? "contextInRegex" : "contextOutRegex", at->ev->cls->name, e);
    *text = found ? p->fields.v + part.begin : "";
    *n = found ? part.end - part.begin : 0;
    return found;
}

static int capture_name(struct pairing *p, const struct occurrence *at, const struct event_pair_specifier *s,
    const struct regex *r, const char **text, size_t *n, struct err *e)
{
    struct regex_part part;
    const char *name = at->ev->cls->name;
    int found = regex_captures(r, name, strlen(name), &part);
    if (found < 0)
        return too_costly(p, s, r == s->in ? "inRegex" : "outRegex", name, e);
    *text = found ? name + part.begin : "";
    *n = found ? part.end - part.begin : 0;
    return found;
}

static int label_of(
    struct pairing *p, struct occurrence *at, const struct event_pair_specifier *s, uint32_t *out, struct err *e)
{
    const char *text;
    size_t n;
    int found = 0;
    switch (s->label_is) {
    case EVENT_LABEL_IN: found = capture_name(p, at, s, s->in, &text, &n, e); break;
    case EVENT_LABEL_OUT: found = capture_name(p, at, s, s->out, &text, &n, e); break;
    case EVENT_LABEL_CONTEXT_IN:
        found = s->context_in ? capture_fields(p, at, s, s->context_in, &text, &n, e) : 0;
        break;
    case EVENT_LABEL_CONTEXT_OUT:
        found = s->context_out ? capture_fields(p, at, s, s->context_out, &text, &n, e) : 0;
        break;
    default: break;
    }
    if (found < 0)
        return found;
    return found && n ? intern(p, text, n, out, e) : intern(p, s->label, strlen(s->label), out, e);
}

/* Finds the event's group for opening or closing; *out NULL: nothing to close, or the event has no value for the
 * classifier. */
static int find_group(struct pairing *p, struct occurrence *at, const struct event_pair_specifier *s, bool opens,
    struct pair_group **out, struct err *e)
{
    const struct regex *context = opens ? s->context_in : s->context_out;
    uint32_t classifier = 0, captured = 0;
    const char *text = "";
    size_t n = 0;
    int rc = 0;
    *out = NULL;
    if (s->classifier != SIZE_MAX) {
        const char *column = p->table->columns[s->classifier].name;
        size_t before = strlen(column) + 1;
        p->value.n = 0;
        text_puts(&p->value, column);
        text_putc(&p->value, ' ');
        events_cell_write(p->table, p->threads, s->classifier, at->ev, at->source, &p->value);
        if (p->value.n == before)
            return 0;
        rc = intern(p, p->value.v, p->value.n, &classifier, e);
    }
    if (!rc && context && (rc = capture_fields(p, at, s, context, &text, &n, e)) >= 0)
        rc = intern(p, text, n, &captured, e);
    if (!rc && (*out = group_of(p, at->host, classifier, captured, opens)))
        heed_losses(p, *out);
    return rc;
}

/* Closes first, then opens, so that one kind of event can divide time into pieces. */
static int add_to(struct pairing *p, struct occurrence *at, const struct event_pair_specifier *s, bool closes,
    bool opens, struct err *e)
{
    uint32_t specifier = (uint32_t)(s - p->config->v), label;
    struct pair_group *g = NULL;
    int rc = closes ? find_group(p, at, s, false, &g, e) : 0;
    if (g)
        close_pair(p, g, specifier);
    if (rc || !opens || (rc = label_of(p, at, s, &label, e)) || (rc = find_group(p, at, s, true, &g, e)) || !g)
        return rc;
    return open_pair(p, g, specifier, label, e);
}

static int add_event(struct pairing *p, const struct ctf_merge *merge, const struct ctf_event *ev, struct err *e)
{
    struct occurrence at = {.ev = ev, .source = ctf_merge_source(merge, ev->stream)};
    int rc = 0;
    at.host = p->table->origins[at.source].host_number;
    p->now = ev->ts > p->now ? ev->ts : p->now;
    if (ev->cls->item != CTF_EVENT) {
        vec_push(&p->losses[at.host].times, p->now);
        return 0;
    }
    struct fits *f = &p->fits[p->table->schema_of[at.source]][ev->cls->index];
    if (!f->known && (rc = find_fits(p, ev->cls->name, f, e)))
        return rc;
    for (uint64_t left = f->in | f->out; left && !rc; left &= left - 1) {
        unsigned i = (unsigned)__builtin_ctzll(left);
        rc = add_to(p, &at, &p->config->v[i], f->out >> i & 1, f->in >> i & 1, e);
    }
    return rc;
}

/* ---- the result ---- */

static struct event_pair_row row_at(const struct pairing *p, uint32_t number)
{
    const struct pair_group *g = &p->groups.v[p->rows.v[number].group];
    return (struct event_pair_row){.host = g->host,
        .level = p->rows.v[number].level,
        .classifier = strings_get(&p->texts, g->classifier),
        .context = strings_get(&p->texts, g->context)};
}

static struct event_pair_name name_at(const struct pairing *p, uint32_t number)
{
    return (struct event_pair_name){p->names.v[number].host, strings_get(&p->texts, p->names.v[number].label)};
}

static int compare_rows(const void *pa, const void *pb, void *pairing)
{
    struct event_pair_row a = row_at(pairing, *(const uint32_t *)pa), b = row_at(pairing, *(const uint32_t *)pb);
    return order_of(a.host, b.host) ?: strverscmp(a.classifier, b.classifier) ?: strverscmp(a.context, b.context)
                                    ?: order_of(a.level, b.level);
}

static int compare_names(const void *pa, const void *pb, void *pairing)
{
    struct event_pair_name a = name_at(pairing, *(const uint32_t *)pa), b = name_at(pairing, *(const uint32_t *)pb);
    return order_of(a.host, b.host) ?: strverscmp(a.label, b.label);
}

/* Numbers 0 … n - 1 in order, and the inverse. */
struct order {
    uint32_t *number, *position;
};
static struct order sort_order(struct pairing *p, size_t n, int (*compare)(const void *, const void *, void *))
{
    struct order o = {mem_alloc((n + 1) * sizeof *o.number), mem_alloc((n + 1) * sizeof *o.position)};
    for (size_t i = 0; i < n; i++)
        o.number[i] = (uint32_t)i;
    if (n)
        qsort_r(o.number, n, sizeof *o.number, compare, p);
    for (size_t i = 0; i < n; i++)
        o.position[o.number[i]] = (uint32_t)i;
    return o;
}

static void order_free(struct order *o)
{
    free(o->number);
    free(o->position);
}

static void take_rows(struct pairing *p, struct event_pairs *out)
{
    struct order rows = sort_order(p, p->rows.n, compare_rows), names = sort_order(p, p->names.n, compare_names);
    out->rows = mem_alloc((p->rows.n + 1) * sizeof *out->rows);
    out->n_rows = p->rows.n;
    for (size_t i = 0; i < out->n_rows; i++)
        out->rows[i] = row_at(p, rows.number[i]);
    out->names = mem_alloc((p->names.n + 1) * sizeof *out->names);
    out->n_names = p->names.n;
    for (size_t i = 0; i < out->n_names; i++)
        out->names[i] = name_at(p, names.number[i]);
    for (size_t i = 0; i < out->n; i++) {
        struct event_pair *v = &out->v[i];
        v->row = rows.position[v->row & ~unclosed] | (v->row & unclosed);
        v->name = names.position[v->name];
    }
    order_free(&rows);
    order_free(&names);
}

/* Moves closed pairs to the front, keeping the order of both kinds; sets their new numbers by row. */
static void arrange(struct event_pairs *out)
{
    VEC(struct event_pair) rest = {0};
    size_t position = 0, others = 0, done = 0;
    for (size_t i = 0; i < out->n; i++) {
        out->closed += !(out->v[i].row & unclosed);
        out->rows[out->v[i].row & ~unclosed].n++;
    }
    for (size_t i = 0; i < out->n_rows; i++) {
        out->rows[i].first = position;
        position += out->rows[i].n;
        out->rows[i].n = 0;
    }
    out->by_row = mem_alloc((out->n + 1) * sizeof *out->by_row);
    for (size_t i = 0; i < out->n; i++) {
        struct event_pair v = out->v[i];
        struct event_pair_row *r = &out->rows[v.row & ~unclosed];
        bool closed = !(v.row & unclosed);
        out->by_row[r->first + r->n++] = (uint32_t)(closed ? done : out->closed + others);
        v.row &= ~unclosed;
        if (closed) {
            out->v[done++] = v;
        } else {
            vec_push(&rest, v);
            others++;
        }
    }
    if (rest.n)
        memcpy(&out->v[done], rest.v, rest.n * sizeof *rest.v);
    vec_free(&rest);
}

/* Makes the result; afterwards the pairing can only be freed. */
static struct event_pairs *finish(struct pairing *p, int64_t end)
{
    struct event_pairs *out = mem_zalloc(sizeof *out);
    end = end > p->now ? end : p->now;
    for (size_t i = 0; i < p->groups.n; i++) {
        heed_losses(p, &p->groups.v[i]);
        end_pairs(p, &p->groups.v[i], 0, p->groups.v[i].open.n, end);
    }
    out->v = p->pairs.v;
    out->n = p->pairs.n;
    p->pairs.v = NULL;
    take_rows(p, out);
    arrange(out);
    out->texts = p->texts;
    p->texts = (struct strings){0};
    return out;
}

/* ---- reading ---- */

static void pairing_init(struct pairing *p, const struct event_table *table, const struct event_pair_config *config)
{
    *p = (struct pairing){.table = table, .config = config, .threads = events_threads_new(table), .now = INT64_MIN};
    while (p->contents < table->n_columns && table->columns[p->contents].id != EVENT_CONTENTS)
        p->contents++;
    p->fits = mem_zalloc((table->schemas.n + 1) * sizeof *p->fits);
    for (size_t i = 0; i < table->schemas.n; i++)
        p->fits[i] = mem_zalloc((table->schemas.v[i].n + 1) * sizeof **p->fits);
    for (size_t i = 0; i < table->n; i++)
        p->n_hosts = table->origins[i].host_number >= p->n_hosts ? table->origins[i].host_number + 1 : p->n_hosts;
    p->losses = mem_zalloc((p->n_hosts + 1) * sizeof *p->losses);
}

static void pairing_fini(struct pairing *p)
{
    for (size_t i = 0; i < p->table->schemas.n; i++)
        free(p->fits[i]);
    for (size_t i = 0; i < p->n_hosts; i++)
        vec_free(&p->losses[i].times);
    for (size_t i = 0; i < p->groups.n; i++) {
        vec_free(&p->groups.v[i].open);
        vec_free(&p->groups.v[i].rows);
    }
    free(p->fits);
    free(p->losses);
    events_threads_free(p->threads);
    strings_fini(&p->texts);
    map_fini(&p->group_of);
    map_fini(&p->name_of);
    vec_free(&p->groups);
    vec_free(&p->rows);
    vec_free(&p->names);
    vec_free(&p->pairs);
    text_fini(&p->fields);
    text_fini(&p->value);
}

int events_pairs_read(const struct event_table *table, const struct event_pair_config *config, int64_t end,
    int (*progress)(void *arg, size_t events, struct err *e), void *arg, struct event_pairs **out, struct err *e)
{
    struct ctf_event batch[BATCH];
    struct ctf_merge *merge = events_merge_new(table, e);
    struct pairing p;
    size_t n = 0;
    if (!merge)
        return err_wrap(e, "the events cannot be read");
    pairing_init(&p, table, config);
    int rc = 0;
    while (!rc && (n = ctf_merge_next(merge, batch, BATCH))) {
        for (size_t i = 0; i < n && !rc; i++)
            rc = add_event(&p, merge, &batch[i], e);
        rc = rc ? rc : progress(arg, n, e);
    }
    rc = rc ? rc : ctf_merge_intact(merge, e);
    if (!rc)
        *out = finish(&p, end);
    pairing_fini(&p);
    ctf_merge_free(merge);
    return rc;
}

void events_pair_config_free(struct event_pair_config *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->v[i].label);
        regex_free(c->v[i].in);
        regex_free(c->v[i].out);
        regex_free(c->v[i].context_in);
        regex_free(c->v[i].context_out);
    }
    c->n = 0;
}

void events_pairs_free(struct event_pairs *p)
{
    if (!p)
        return;
    free(p->v);
    free(p->rows);
    free(p->by_row);
    free(p->names);
    strings_fini(&p->texts);
    free(p);
}

size_t events_pairs_find(const struct event_pairs *p, int64_t t)
{
    return search_first(i, 0, p->closed, p->v[i].begin >= t);
}
