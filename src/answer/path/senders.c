/* SPDX-License-Identifier: MIT */
#include "path/senders.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/search.h"
#include "graph/graph.h"
#include "path/candidates.h"

enum {
    /* Number of receives of a flow without a found send until the peer counts as untraced: for likely hosts, for the
     * others. */
    TRIES_UNTRACED = 8,
    TRIES_STRANGERS = 2
};

struct path_senders {
    const struct path_local_host *hosts;
    size_t n;
    pthread_mutex_t lock; /* guards all fields below */
    struct arena strings;
    struct map peers;            /* host << 32 | flow -> struct sender_peer * */
    struct candidate_book *book; /* made on first use */
};

struct path_senders *path_senders_new(const struct path_local_host *hosts, size_t n)
{
    struct path_senders *s = mem_zalloc(sizeof *s);
    s->hosts = hosts;
    s->n = n;
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

struct path_sender_labels path_sender_labels(struct arena *a, const struct flow_key *key)
{
    char source[64], destination[64];
    flow_format_endpoint(key, true, source, sizeof source);
    flow_format_endpoint(key, false, destination, sizeof destination);
    return (struct path_sender_labels){.address = arena_strdup(a, source),
        .label = arena_printf(a, "%s → %s", source, destination),
        .unsure = arena_printf(a, "%s → %s, the likeliest of several messages", source, destination)};
}

/* The lock must be held. */
static struct candidate_book *book_of(struct path_senders *s)
{
    const struct flow_address *own, *peers;
    if (s->book)
        return s->book;
    s->book = path_candidate_book_new();
    for (size_t i = 0; i < s->n; i++) {
        const struct flow_store *flows = s->hosts[i].flows;
        if (!flows) {
            path_candidate_book_skip(s->book);
            continue;
        }
        size_t n_own = flow_addresses(flows, &own), n_peers = flow_peers(flows, &peers);
        path_candidate_book_add(s->book, own, n_own, peers, n_peers);
    }
    return s->book;
}

static bool may_send(void *arg, int32_t host, const struct flow_key *key)
{
    const struct path_senders *s = arg;
    return flow_may_send(s->hosts[host].flows, key);
}

static void find_senders(struct path_senders *s, int32_t host, const struct flow_key *key, struct sender_peer *out)
{
    struct candidates c;
    path_candidates_find(book_of(s), host, key, may_send, s, &c);
    out->sure = c.sure;
    out->likely = c.likely;
    out->n = c.hosts.n;
    out->senders = arena_new(&s->strings, int32_t, out->n + 1);
    if (out->n)
        memcpy(out->senders, c.hosts.v, out->n * sizeof *c.hosts.v);
    vec_free(&c.hosts);
}

/* The lock must be held. */
static struct sender_peer *peer_of(struct path_senders *s, int32_t host, uint32_t flow)
{
    bool fresh;
    uint64_t *at = map_put(&s->peers, (uint64_t)(uint32_t)host << 32 | flow, &fresh);
    if (fresh) {
        struct flow_key key;
        flow_key(s->hosts[host].flows, flow, &key);
        struct sender_peer *p = arena_new(&s->strings, struct sender_peer, 1);
        *p = (struct sender_peer){.labels = path_sender_labels(&s->strings, &key)};
        find_senders(s, host, &key, p);
        *at = (uint64_t)(uintptr_t)p;
    }
    return (struct sender_peer *)(uintptr_t)*at;
}

void path_senders_peer(struct path_senders *s, int32_t host, uint32_t flow, struct sender_peer *out)
{
    pthread_mutex_lock(&s->lock);
    *out = *peer_of(s, host, flow);
    pthread_mutex_unlock(&s->lock);
}

/* ---- asking a host ---- */

void path_sender_message_of(
    const struct path_local_host *to, int32_t host, const struct flow_packet *receive, struct path_message *out)
{
    *out = (struct path_message){
        .host = host, .at = receive->ts, .received = path_to_reference(to, receive->ts), .island = -1};
    flow_message_key_of(to->flows, receive, &out->key);
    if (to->map && to->map->n) {
        out->island = (int64_t)to->map->island;
        out->error_ns = clock_error_at(to->map, receive->ts);
    }
}

/* Window in which the message can have been sent, by the clock of host `from`. */
static struct flow_window window_of(const struct path_message *m, int32_t host, const struct path_local_host *from)
{
    if (host == m->host)
        return flow_window_at(&m->key, m->at, 0);
    if (m->island < 0 || !from->map || !from->map->n || (int64_t)from->map->island != m->island)
        return flow_window_any();
    int64_t at = path_from_reference(from, m->received), error = 0;
    if (__builtin_add_overflow(m->error_ns, clock_error_at(from->map, at), &error) || error < 0)
        return flow_window_any();
    return flow_window_at(&m->key, at, (uint64_t)error);
}

bool path_sender_ask(const struct path_local_host *h, int32_t host, const struct path_message *m, struct sender *out)
{
    struct flow_window w = window_of(m, host, h);
    *out = (struct sender){.host = host};
    out->answer = flow_find_send(h->flows, &m->key, &w, &out->send);
    out->sent = out->answer != FLOW_NOT_SENT ? path_to_reference(h, out->send.ts) : 0;
    return out->answer != FLOW_NOT_SENT;
}

/* Returns whether a is more likely the sender than b. Of two boots of one host with the same address, that is the later
 * one, unless it began only after the arrival; of two hosts, the more certain one; if equal, the earlier one, since a
 * forwarder sent later. */
bool path_sender_is_better(
    int64_t came, const struct sender *a, const struct sender *b, bool boots_of_same, bool comparable)
{
    if (boots_of_same)
        return a->sent > b->sent ? a->sent <= came : b->sent > came;
    if (a->answer != b->answer)
        return a->answer == FLOW_SENT;
    return comparable && a->sent < b->sent;
}

int32_t path_sender_row(const struct sender *s)
{
    return s->send.origin == FLOW_BY_THREAD && s->send.row >= 0 ? s->send.row
        : s->send.origin == FLOW_BY_RECEIVE                     ? PATH_ROW_UNKNOWN_CPU
                                                                : PATH_ROW_UNKNOWN_SENDER;
}

/* Returns whether the host lost events within [begin, end] of its own clock. */
bool path_lost_within(const struct path_local_host *h, int64_t begin, int64_t end)
{
    const struct graph_loss *losses;
    size_t n = graph_losses(h->graph, &losses), past = search_first(i, 0, n, losses[i].begin > end);
    /* Losses of several CPUs may overlap: looks at the last few that begin in time. */
    for (size_t i = past; i-- > 0 && past - i <= 64;)
        if (losses[i].end >= begin)
            return true;
    return false;
}

bool path_sender_lost(const struct path_local_host *h, const struct path_message *m)
{
    int64_t begin, at = path_from_reference(h, m->received);
    return h->graph &&
        path_lost_within(h, __builtin_sub_overflow(at, INT64_C(1000000000), &begin) ? INT64_MIN : begin, at);
}

/* Replaces *out by the answer of one host if that is better, or the first. */
static void ask_host(struct path_senders *s, const struct path_message *m, int32_t asked, struct sender *out)
{
    const struct path_local_host *from = &s->hosts[asked];
    struct sender found;
    if ((asked != m->host && !strcmp(from->name, s->hosts[m->host].name)) || !path_sender_ask(from, asked, m, &found))
        return;
    const struct path_local_host *before = out->host >= 0 ? &s->hosts[out->host] : NULL;
    if (!before ||
        path_sender_is_better(m->received, &found, out, asked != out->host && !strcmp(from->name, before->name),
            path_comparable(from, before)))
        *out = found;
}

/* Finds the send that matches the receive, on the hosts that can have sent it. */
bool path_senders_find(struct path_senders *s, int32_t host, const struct flow_packet *receive, struct sender *out,
    struct sender_peer *peer)
{
    struct path_message message;
    pthread_mutex_lock(&s->lock);
    struct sender_peer *p = peer_of(s, host, receive->flow);
    *peer = *p;
    pthread_mutex_unlock(&s->lock);
    *out = (struct sender){.host = -1};
    if (!peer->n)
        return false;
    path_sender_message_of(&s->hosts[host], host, receive, &message);
    for (size_t i = 0; i < peer->sure; i++)
        ask_host(s, &message, peer->senders[i], out);
    size_t most = peer->found || peer->failures < TRIES_STRANGERS ? peer->n
        : peer->failures < TRIES_UNTRACED                         ? peer->likely
                                                                  : 0;
    bool guess = out->host < 0 && peer->sure < peer->n;
    for (size_t i = peer->sure; guess && i < most; i++)
        ask_host(s, &message, peer->senders[i], out);
    if (guess) {
        pthread_mutex_lock(&s->lock);
        p->found |= out->host >= 0;
        p->failures += out->host < 0 && !p->found;
        pthread_mutex_unlock(&s->lock);
    }
    return out->host >= 0;
}

void path_senders_free(struct path_senders *s)
{
    if (!s)
        return;
    map_fini(&s->peers);
    path_candidate_book_free(s->book);
    arena_fini(&s->strings);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
