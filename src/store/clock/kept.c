/* SPDX-License-Identifier: MIT */
/* Store of kept messages (docs/formats/messages.md): writing and reading. */
#include <stdlib.h>

#include "base/store.h"
#include "clock/net.h"

enum { KEPT_VERSION = 2 };
static const char kept_kind[] = "messages";

struct stored_pair {
    uint64_t a, b;                          /* sources */
    uint64_t sent, received, dropped;       /* number of all messages */
    int64_t begin_a, end_a, begin_b, end_b; /* their ranges; begin > end: none */
    uint64_t first, n_sent, n_received;     /* kept: sent ones by a, then received ones */
    uint64_t sure, missing, missed, far;
};

_Static_assert(
    sizeof(struct stored_pair) == 128 && sizeof(struct clock_source) == 24 && sizeof(struct net_message) == 16,
    "layouts of docs/formats/messages.md");

struct clock_kept {
    struct store *store;
    double prior_ppm;
    const struct clock_source *sources;
    const struct stored_pair *pairs;
    const struct net_message *messages;
    size_t n_sources, n_pairs, n_messages;
};

static struct stored_pair stored_of(const struct clock_part *p, uint64_t first)
{
    const struct clock_told *t = p->told;
    struct stored_pair out = {.a = p->a,
        .b = p->b,
        .sent = t->sent.all,
        .received = t->received.all,
        .dropped = t->dropped,
        .end_a = -1,
        .end_b = -1,
        .first = first,
        .n_sent = t->sent.v.n,
        .n_received = t->received.v.n,
        .sure = p->sure,
        .missing = p->missing,
        .missed = p->missed,
        .far = p->far};
    if (t->span_a.known) {
        out.begin_a = t->span_a.begin;
        out.end_a = t->span_a.end;
        out.begin_b = t->span_b.begin;
        out.end_b = t->span_b.end;
    }
    return out;
}

int clock_kept_save(const char *path, uint64_t key, double prior, const struct clock_source *sources, size_t n_sources,
    const struct clock_part *parts, size_t n, struct err *e)
{
    struct stored_pair *pairs = mem_zalloc((n + 1) * sizeof *pairs);
    uint64_t first = 0;
    for (size_t i = 0; i < n; i++) {
        clock_keep_settle(parts[i].told);
        pairs[i] = stored_of(&parts[i], first);
        first += pairs[i].n_sent + pairs[i].n_received;
    }
    struct store_writer *w = store_create(path, kept_kind, KEPT_VERSION, key, 4);
    store_add(w, "prior", &prior, sizeof prior, 1);
    store_add(w, "sources", sources, sizeof *sources, n_sources);
    store_add(w, "pairs", pairs, sizeof *pairs, n);
    store_begin(w, "messages", sizeof(struct net_message));
    for (size_t i = 0; i < n; i++) {
        const struct clock_told *t = parts[i].told;
        store_append(w, t->sent.v.v, t->sent.v.n);
        store_append(w, t->received.v.v, t->received.v.n);
    }
    free(pairs);
    return store_commit(w, e);
}

static bool span_sound(int64_t begin, int64_t end, bool any)
{
    return any ? begin <= end && clock_keep_in_range(begin) && clock_keep_in_range(end) : begin > end;
}

/* Sums of counts over many stores must not overflow; the messages themselves are checked when they are added. */
static bool pair_sound(const struct clock_kept *k, const struct stored_pair *p)
{
    const uint64_t most = UINT64_C(1) << 48;
    bool any = p->sent || p->received;
    return p->a < p->b && p->b < k->n_sources && p->sent <= most && p->received <= most && p->dropped <= most &&
        p->n_sent <= p->sent && p->n_received <= p->received && (p->n_sent || !p->sent) &&
        (p->n_received || !p->received) && p->first <= k->n_messages &&
        p->n_sent + p->n_received <= k->n_messages - p->first && p->sure <= most && p->missing <= most &&
        p->missed <= most && p->far <= 1 && span_sound(p->begin_a, p->end_a, any) &&
        span_sound(p->begin_b, p->end_b, any);
}

static bool sound(const struct clock_kept *k)
{
    if (!(k->prior_ppm >= 0 && k->prior_ppm <= 400000))
        return false;
    for (size_t i = 0; i < k->n_pairs; i++) {
        const struct stored_pair *p = &k->pairs[i];
        if (!pair_sound(k, p) || (i && (p[-1].a > p->a || (p[-1].a == p->a && p[-1].b >= p->b))))
            return false;
    }
    return true;
}

int clock_kept_open(const char *path, uint64_t key, struct clock_kept **out, struct err *e)
{
    struct clock_kept *k = mem_zalloc(sizeof *k);
    size_t n = 0;
    int rc = store_open(path, kept_kind, KEPT_VERSION, &key, &k->store, e);
    if (rc) {
        free(k);
        return rc;
    }
    const double *prior = store_section(k->store, "prior", sizeof *prior, &n);
    k->prior_ppm = n == 1 ? *prior : -1;
    k->sources = store_section_kept(k->store, "sources", sizeof *k->sources, &k->n_sources);
    k->pairs = store_section_kept(k->store, "pairs", sizeof *k->pairs, &k->n_pairs);
    k->messages = store_section(k->store, "messages", sizeof *k->messages, &k->n_messages);
    if (sound(k)) {
        *out = k;
        return 0;
    }
    clock_kept_close(k);
    return err_set(e, ERR_FORMAT,
        "%s: the contents of this store of messages make no sense; remove it, the next run makes it anew", path);
}

void clock_kept_close(struct clock_kept *k)
{
    if (!k)
        return;
    store_close(k->store);
    free(k);
}

double clock_kept_prior(const struct clock_kept *k)
{
    return k->prior_ppm;
}

size_t clock_kept_sources(const struct clock_kept *k, const struct clock_source **out)
{
    *out = k->sources;
    return k->n_sources;
}

size_t clock_kept_parts(const struct clock_kept *k)
{
    return k->n_pairs;
}

void clock_kept_part(const struct clock_kept *k, size_t i, struct clock_part *out)
{
    const struct stored_pair *p = &k->pairs[i];
    *out = (struct clock_part){
        .a = p->a, .b = p->b, .sure = p->sure, .missing = p->missing, .missed = p->missed, .far = p->far};
}

static void tell_side(
    const struct clock_kept *k, const struct net_message *v, size_t n, bool by_a, struct clock_told *to)
{
    if (clock_keep_take(to, by_a, v, n, k->prior_ppm))
        return;
    for (size_t i = 0; i < n; i++)
        clock_tell(to, by_a, by_a ? v[i].x : v[i].y, by_a ? v[i].y : v[i].x);
}

void clock_kept_tell(const struct clock_kept *k, size_t i, struct clock_told *to)
{
    const struct stored_pair *p = &k->pairs[i];
    tell_side(k, k->messages + p->first, p->n_sent, true, to);
    tell_side(k, k->messages + p->first + p->n_sent, p->n_received, false, to);
    to->sent.all += p->sent - p->n_sent;
    to->received.all += p->received - p->n_received;
    to->dropped += p->dropped;
    if (p->begin_a <= p->end_a) {
        clock_span_extend(&to->span_a, p->begin_a);
        clock_span_extend(&to->span_a, p->end_a);
        clock_span_extend(&to->span_b, p->begin_b);
        clock_span_extend(&to->span_b, p->end_b);
    }
}
