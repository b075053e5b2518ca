/* SPDX-License-Identifier: MIT */
#include "path/talk.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"
#include "clock/clock.h"

void path_talk_window(const struct clock_map *map, int64_t *begin, int64_t *end)
{
    if (map && *begin > INT64_MIN)
        *begin = clock_from_reference(map, *begin);
    if (map && *end < INT64_MAX)
        *end = clock_from_reference(map, *end);
}

void path_talk_report(const struct flow_store *s, int64_t begin, int64_t end, struct talk_reports *out)
{
    for (size_t f = 0, n = s ? flow_count(s) : 0; f < n; f++) {
        struct path_talk_report r;
        flow_tally(s, f, begin, end, &r.sent, &r.received);
        if (!r.sent.packets && !r.received.packets)
            continue;
        flow_key(s, f, &r.key);
        vec_push(out, r);
    }
}

/* ---- owners of addresses ---- */

struct owner {
    struct flow_address address;
    int32_t host;
};
struct owners {
    VEC(struct owner) v;
};

static int by_address(const void *pa, const void *pb)
{
    const struct owner *a = pa, *b = pb;
    return memcmp(&a->address, &b->address, sizeof a->address) ?: order_of(a->host, b->host);
}

static void find_owners(const struct talk_told *of, size_t n, struct owners *out)
{
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < of[i].n_own; k++)
            vec_push(&out->v, ((struct owner){of[i].own[k], (int32_t)i}));
    if (out->v.n)
        qsort(out->v.v, out->v.n, sizeof *out->v.v, by_address);
}

/* Host that alone has the source or destination; -1: none, or several. */
static int32_t owner_of(const struct owners *o, const struct flow_key *key, bool source)
{
    struct owner least = {{.family = key->family}, INT32_MIN};
    memcpy(least.address.addr, source ? key->saddr : key->daddr, sizeof least.address.addr);
    size_t first = search_first(i, 0, o->v.n, by_address(&o->v.v[i], &least) >= 0);
    int32_t host = -1;
    for (size_t i = first; i < o->v.n && !memcmp(&o->v.v[i].address, &least.address, sizeof least.address); i++) {
        if (host >= 0 && host != o->v.v[i].host)
            return -1;
        host = o->v.v[i].host;
    }
    return host;
}

/* ---- joining of ends ---- */

struct end {
    int32_t host;
    const struct path_talk_report *is;
};
/* Ends with one key. */
struct ends {
    const struct end *v;
    size_t n;
    const struct owners *owners; /* NULL: addresses have no meaning */
    struct talk_lines *out;
};

static int by_key(const void *pa, const void *pb)
{
    const struct end *a = pa, *b = pb;
    return memcmp(&a->is->key, &b->is->key, sizeof a->is->key) ?: order_of(a->host, b->host);
}

/* Adds a line; either end may be NULL. */
static void add_line(const struct ends *e, const struct end *from, const struct end *to)
{
    struct talk_line l = {.key = e->v->is->key};
    l.from = from ? from->host : e->owners ? owner_of(e->owners, &l.key, true) : -1;
    l.to = to ? to->host : e->owners ? owner_of(e->owners, &l.key, false) : -1;
    if (from)
        l.sent = from->is->sent;
    if (to)
        l.received = to->is->received;
    vec_push(e->out, l);
}

/* Adds flows that cannot be joined; within: a host may talk to itself. */
static void join_none(const struct ends *e, bool within)
{
    for (const struct end *v = e->v; v < e->v + e->n; v++) {
        bool sent = v->is->sent.packets, received = v->is->received.packets;
        if (within && sent && received) {
            add_line(e, v, v);
            continue;
        }
        if (sent)
            add_line(e, v, NULL);
        if (received)
            add_line(e, NULL, v);
    }
}

static void join_ends(const struct ends *e)
{
    const struct end *sender = NULL, *past = e->v + e->n;
    bool met = false;
    for (const struct end *v = e->v; v < past; v++)
        if (v->is->sent.packets && (!sender || v->is->sent.packets > sender->is->sent.packets))
            sender = v;
    for (const struct end *v = e->v; v < past; v++) {
        if (!v->is->received.packets)
            continue;
        const struct end *from = v->is->sent.packets ? v : sender;
        met |= from == sender;
        add_line(e, from, v);
    }
    for (const struct end *v = e->v; v < past; v++)
        if (v->is->sent.packets && !v->is->received.packets && !(met && v == sender))
            add_line(e, v, NULL);
}

void path_talk_join(const struct talk_told *of, size_t n, struct talk_lines *out)
{
    struct owners owners = {0};
    size_t count = 0;
    for (size_t i = 0; i < n; i++)
        count += of[i].flows.n;
    struct end *ends = mem_alloc((count + 1) * sizeof *ends);
    count = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < of[i].flows.n; k++)
            ends[count++] = (struct end){(int32_t)i, &of[i].flows.v[k]};
    if (count)
        qsort(ends, count, sizeof *ends, by_key);
    find_owners(of, n, &owners);
    for (size_t at = 0, next; at < count; at = next) {
        const struct flow_key *key = &ends[at].is->key;
        for (next = at + 1; next < count && !memcmp(key, &ends[next].is->key, sizeof *key);)
            next++;
        bool alone = !key->family || flow_is_anonymous(key);
        struct ends e = {ends + at, next - at, alone ? NULL : &owners, out};
        if (alone)
            join_none(&e, key->family);
        else
            join_ends(&e);
    }
    vec_free(&owners.v);
    free(ends);
}
