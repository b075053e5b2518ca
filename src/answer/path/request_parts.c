/* SPDX-License-Identifier: MIT */
#include "path/request_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/order.h"
#include "graph/graph.h"

/* Shares of a path's time, 1 / n: minimum for the shape, and minimum that must also be in a similar one. Between the
 * two a part may be present or not, so that noise does not decide; times of messages under way do not decide either. */
enum { SHAPE = 20, CORE = 5 };

/* ---- numbers of parts ---- */

/* Name of a part: "kworker/u4:3" becomes "kworker/u4:#". Digits count threads unless a letter stands before them. */
static uint32_t name_of(struct request_parts *p, const char *comm)
{
    char folded[64];
    size_t n = 0;
    bool word = true; /* following digits are part of a word */
    for (const char *s = comm; *s && n < sizeof folded;) {
        size_t digits = strspn(s, "0123456789");
        bool letter = (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z') || (unsigned char)*s >= 0x80;
        if (digits && !word && n) {
            folded[n++] = '#';
            s += digits;
        } else {
            word = letter || digits;
            folded[n++] = *s++;
        }
    }
    return strings_intern(&p->names, folded, n);
}

/* Threads of one name on one host, whose part it is. */
struct whose {
    int32_t host;
    uint32_t name;
    bool another;
};

static uint32_t number_of(struct request_parts *p, struct whose w, uint8_t state)
{
    struct {
        int32_t host;
        uint32_t name, another, state;
    } key = {w.host, w.name, w.another, state};
    bool fresh;
    uint64_t *at = map_put(&p->by_key, map_hash(&key, sizeof key), &fresh);
    if (!fresh)
        return (uint32_t)*at;
    *at = p->v.n;
    vec_push(&p->v, ((struct request_part){w.host, state, w.another, strings_get(&p->names, w.name)}));
    return (uint32_t)p->v.n - 1;
}

/* Folds states: whether a thread ran, or was kept from it, depends on the machine by accident. */
static uint8_t fold(uint8_t state)
{
    return graph_is_awake(state) || state == GRAPH_IPI ? GRAPH_RUNNING : state;
}

static uint32_t part_of(struct request_parts *p, struct whose w, uint8_t state)
{
    uint32_t folded = number_of(p, w, fold(state)), part = number_of(p, w, state);
    while (p->folded.n < p->v.n)
        vec_push(&p->folded, folded); /* a new folded part folds to itself */
    return part;
}

uint32_t path_request_parts_number(struct request_parts *p, int32_t host, const char *comm, uint8_t state)
{
    return part_of(p, (struct whose){host, name_of(p, comm), false}, state);
}

int32_t path_request_parts_host(struct request_parts *p, const struct request_seen *seen, int32_t host)
{
    size_t i = 0;
    if (!seen->far || host < 0)
        return host;
    const char *name = seen->source->host_name(seen->source->arg, host);
    while (i < p->hosts.n && strcmp(p->hosts.v[i], name) != 0)
        i++;
    if (i == p->hosts.n)
        vec_push(&p->hosts, strings_get(&p->names, strings_intern(&p->names, name, strlen(name))));
    return (int32_t)i;
}

void path_request_parts_fini(struct request_parts *p)
{
    vec_free(&p->hosts);
    strings_fini(&p->names);
    vec_free(&p->v);
    vec_free(&p->folded);
    map_fini(&p->by_key);
}

/* ---- roles of threads ---- */

struct role {
    struct path_row row;
    struct whose whose;
    int64_t last; /* last time that the path is on it */
    bool woke;    /* another of its name waited for it */
};
struct roles {
    struct role *v;
    size_t n;
    struct map at; /* row -> number */
};

static uint64_t key_of(struct path_row row)
{
    return (uint64_t)(uint32_t)row.host << 32 | (uint32_t)row.row;
}

static struct role *role_of(const struct roles *r, struct path_row row)
{
    const uint64_t *at = map_find(&r->at, key_of(row));
    return at ? &r->v[*at] : NULL;
}

static uint64_t name_key(const struct role *r)
{
    return (uint64_t)(uint32_t)r->whose.host << 32 | r->whose.name;
}

/* Distinguishes a thread that waited for another of its name from that one, as the waiter for a lock from its holder.
 * The thread that the path is on last is the request's own. */
static void tell_apart(const struct roles *r)
{
    struct map latest = {0}; /* host and name -> number of the role + 1 */
    for (size_t i = 0; i < r->n; i++) {
        uint64_t *at = map_put(&latest, name_key(&r->v[i]), NULL);
        if (!*at || r->v[i].last > r->v[*at - 1].last)
            *at = i + 1;
    }
    for (size_t i = 0; i < r->n; i++)
        r->v[i].whose.another = r->v[i].woke && r->v[*map_find(&latest, name_key(&r->v[i])) - 1].last > r->v[i].last;
    map_fini(&latest);
}

static struct roles roles_of(struct request_parts *parts, const struct request_seen *seen, struct arena *a)
{
    const struct path *p = seen->path;
    struct roles r = {.v = arena_new(a, struct role, p->n_totals + 1)};
    for (size_t i = 0; i < p->n_totals; i++) {
        struct path_row row = p->totals[i].row;
        bool fresh;
        int32_t tid;
        const char *comm;
        uint64_t *at = map_put(&r.at, key_of(row), &fresh);
        if (!fresh)
            continue;
        *at = r.n;
        seen->source->row_name(seen->source->arg, row, p->end, p->end, &tid, &comm);
        r.v[r.n++] = (struct role){.row = row,
            .whose = {path_request_parts_host(parts, seen, row.host), name_of(parts, comm), false},
            .last = INT64_MIN};
    }
    for (size_t i = 0; i < p->n_segments; i++)
        role_of(&r, p->segments[i].row)->last = p->segments[i].end;
    for (size_t i = 0; i < p->n_links; i++) {
        const struct path_link *l = &p->links[i];
        struct role *from = role_of(&r, l->from), *to = role_of(&r, l->to);
        if (l->kind == PATH_LINK_WAKEUP && from && to && from != to && name_key(from) == name_key(to))
            from->woke = true;
    }
    tell_apart(&r);
    return r;
}

/* ---- profiles ---- */

static int by_part(const void *pa, const void *pb)
{
    const struct request_share *a = pa, *b = pb;
    return order_of(a->part, b->part);
}

/* Sorts, and adds up those of one part; returns the number left. */
static size_t gather(struct request_share *v, size_t n)
{
    size_t kept = 0;
    if (n)
        qsort(v, n, sizeof *v, by_part);
    for (size_t i = 0; i < n; i++) {
        if (kept && v[kept - 1].part == v[i].part)
            v[kept - 1].duration += v[i].duration;
        else
            v[kept++] = v[i];
    }
    return kept;
}

static bool is_share(int64_t duration, int64_t all, int64_t of)
{
    return duration > 0 && duration >= all / of;
}

void path_request_profile_of(struct request_parts *parts, const struct request_seen *seen, uint32_t server,
    struct arena *a, struct request_profile *out)
{
    const struct path *p = seen->path;
    struct roles roles = roles_of(parts, seen, a);
    *out = (struct request_profile){.duration = time_between(p->begin, p->end),
        .shares = arena_new(a, struct request_share, p->n_totals + 1),
        .shape = arena_new(a, struct request_share, p->n_totals + 1),
        .server = server};
    for (size_t i = 0; i < p->n_totals; i++) {
        const struct path_total *t = &p->totals[i];
        uint32_t part = part_of(parts, role_of(&roles, t->row)->whose, t->state);
        out->shares[out->n_shares++] = (struct request_share){part, t->duration};
        out->shape[out->n_shape++] = (struct request_share){parts->folded.v[part], t->duration};
    }
    map_fini(&roles.at);
    out->n_shares = gather(out->shares, out->n_shares);
    size_t n = gather(out->shape, out->n_shape);
    out->n_shape = 0;
    for (size_t i = 0; i < n; i++)
        if (is_share(out->shape[i].duration, out->duration, SHAPE))
            out->shape[out->n_shape++] = out->shape[i];
}

static bool has_core_of(
    const struct request_parts *parts, const struct request_profile *a, const struct request_profile *b)
{
    for (size_t i = 0, k = 0; i < b->n_shape; i++) {
        bool network = parts->v.v[b->shape[i].part].state == GRAPH_NETWORK;
        if (network || !is_share(b->shape[i].duration, b->duration, CORE))
            continue;
        while (k < a->n_shape && a->shape[k].part < b->shape[i].part)
            k++;
        if (k == a->n_shape || a->shape[k].part != b->shape[i].part)
            return false;
    }
    return true;
}

bool path_request_profiles_alike(
    const struct request_parts *parts, const struct request_profile *a, const struct request_profile *b)
{
    return a->server == b->server && has_core_of(parts, a, b) && has_core_of(parts, b, a);
}
