#include "path/senders.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

enum {
    TCP = 6,
    /* Receives of a flow that no host sent before its peer is taken for untraced: of likely hosts, of the others. */
    TRIES_UNTRACED = 8,
    TRIES_STRANGERS = 2
};

/* The hosts that have an address. */
struct address_hosts {
    struct flow_address address;
    VEC(int32_t) hosts;
};
struct address_book {
    VEC(struct address_hosts) v;
    struct map by_address; /* hash -> number + 1, the next hash where that is another's */
};

struct path_senders {
    const struct path_local_host *hosts;
    size_t n;
    pthread_mutex_t lock; /* of all below */
    struct arena strings;
    struct map peers;                     /* host << 32 | flow -> struct sender_peer * */
    struct address_book owners, askers;   /* of addresses: whose they are, who sent to them */
    VEC(int32_t) nameless, ask_strangers; /* hosts that tell of no addresses; that sent to what no host owns */
    bool booked;
    /* While candidates are listed. */
    bool *is_candidate;
    int32_t *candidates;
    size_t n_candidates;
};

struct path_senders *senders_new(const struct path_local_host *hosts, size_t n)
{
    struct path_senders *s = mem_zalloc(sizeof *s);
    s->hosts = hosts;
    s->n = n;
    s->is_candidate = mem_zalloc((n + 1) * sizeof *s->is_candidate);
    s->candidates = mem_alloc((n + 1) * sizeof *s->candidates);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

static struct address_hosts *look_up(const struct address_book *b, const struct flow_address *a)
{
    const uint64_t *at;
    for (uint64_t h = map_hash(a, sizeof *a); (at = map_find(&b->by_address, h)); h++)
        if (!memcmp(&b->v.v[*at - 1].address, a, sizeof *a))
            return &b->v.v[*at - 1];
    return NULL;
}

static void enter(struct address_book *b, const struct flow_address *a, size_t n, int32_t host)
{
    for (size_t i = 0; i < n; i++) {
        struct address_hosts *entry = look_up(b, &a[i]);
        if (!entry) {
            uint64_t h = map_hash(&a[i], sizeof a[i]);
            while (map_find(&b->by_address, h))
                h++;
            *map_put(&b->by_address, h, NULL) = b->v.n + 1;
            vec_push(&b->v, ((struct address_hosts){.address = a[i]}));
            entry = &b->v.v[b->v.n - 1];
        }
        vec_push(&entry->hosts, host);
    }
}

static void book_fini(struct address_book *b)
{
    for (size_t i = 0; i < b->v.n; i++)
        vec_free(&b->v.v[i].hosts);
    vec_free(&b->v);
    map_fini(&b->by_address);
}

/* Whose addresses are whose, from the stores' digests alone: no flow is read. To be called under the lock. */
static void book(struct path_senders *s)
{
    const struct flow_address *a;
    if (s->booked)
        return;
    s->booked = true;
    for (size_t i = 0; i < s->n; i++) {
        size_t n = s->hosts[i].flows ? flow_addresses(s->hosts[i].flows, &a) : 0;
        enter(&s->owners, a, n, (int32_t)i);
        if (s->hosts[i].flows && !n)
            vec_push(&s->nameless, (int32_t)i);
        n = s->hosts[i].flows ? flow_peers(s->hosts[i].flows, &a) : 0;
        enter(&s->askers, a, n, (int32_t)i);
    }
    for (size_t i = 0; i < s->askers.v.n; i++) {
        const struct address_hosts *asked = &s->askers.v.v[i];
        for (size_t k = 0; !look_up(&s->owners, &asked->address) && k < asked->hosts.n; k++)
            if (!s->is_candidate[asked->hosts.v[k]]) {
                s->is_candidate[asked->hosts.v[k]] = true;
                vec_push(&s->ask_strangers, asked->hosts.v[k]);
            }
    }
    memset(s->is_candidate, 0, (s->n + 1) * sizeof *s->is_candidate);
}

static struct flow_address address_of(const struct flow_key *key, bool source)
{
    struct flow_address a = {.family = key->family};
    memcpy(a.addr, source ? key->saddr : key->daddr, sizeof a.addr);
    return a;
}

/* To be called under the lock. */
static void add_candidate(struct path_senders *s, int32_t host)
{
    if (s->is_candidate[host])
        return;
    s->is_candidate[host] = true;
    s->candidates[s->n_candidates++] = host;
}

static void add_hosts_of(struct path_senders *s, const struct address_book *b, struct flow_address address)
{
    const struct address_hosts *entry = look_up(b, &address);
    for (size_t i = 0; entry && i < entry->hosts.n; i++)
        add_candidate(s, entry->hosts.v[i]);
}

/* The owner of the source address; where nobody owns it, a host whose trace tells of no addresses. They may have been
 * translated: of the source, then whoever else sent to the destination; of both, whoever sent to somebody that is not
 * among the hosts. */
static void find_senders(struct path_senders *s, int32_t host, const struct flow_key *key, struct sender_peer *out)
{
    s->n_candidates = 0;
    if (flow_is_anonymous(key)) {
        add_candidate(s, host);
    } else {
        add_hosts_of(s, &s->owners, address_of(key, true));
        for (size_t i = 0; !s->n_candidates && i < s->nameless.n; i++)
            if (flow_may_send(s->hosts[s->nameless.v[i]].flows, key))
                add_candidate(s, s->nameless.v[i]);
    }
    out->sure = s->n_candidates;
    bool translated = !flow_is_anonymous(key) && key->family && key->protocol == TCP;
    if (translated)
        add_hosts_of(s, &s->askers, address_of(key, false));
    out->likely = s->n_candidates;
    for (size_t i = 0; translated && i < s->ask_strangers.n; i++)
        add_candidate(s, s->ask_strangers.v[i]);
    out->n = s->n_candidates;
    out->senders = arena_new(&s->strings, int32_t, out->n + 1);
    memcpy(out->senders, s->candidates, out->n * sizeof *s->candidates);
    for (size_t i = 0; i < out->n; i++)
        s->is_candidate[s->candidates[i]] = false;
}

/* To be called under the lock. */
static struct sender_peer *peer_of(struct path_senders *s, int32_t host, uint32_t flow)
{
    bool fresh;
    uint64_t *at = map_put(&s->peers, (uint64_t)(uint32_t)host << 32 | flow, &fresh);
    if (fresh) {
        char source[64], destination[64];
        struct flow_key key;
        flow_key(s->hosts[host].flows, flow, &key);
        flow_format_endpoint(&key, true, source, sizeof source);
        flow_format_endpoint(&key, false, destination, sizeof destination);
        struct sender_peer *p = arena_new(&s->strings, struct sender_peer, 1);
        *p = (struct sender_peer){.address = arena_strdup(&s->strings, source),
            .label = arena_printf(&s->strings, "%s → %s", source, destination),
            .unsure = arena_printf(&s->strings, "%s → %s, the likeliest of several messages", source, destination)};
        book(s);
        find_senders(s, host, &key, p);
        *at = (uint64_t)(uintptr_t)p;
    }
    return (struct sender_peer *)(uintptr_t)*at;
}

/* When a message that came to host `to` at its `ts` can have been sent, by the clock of host `from`. */
static struct flow_window window_of(const struct path_local_host *to, int64_t ts, const struct path_local_host *from,
    const struct flow_message_key *message)
{
    if (to == from)
        return flow_window_at(message, ts, 0);
    if (!to->map || !from->map || !path_comparable(to, from))
        return flow_window_any();
    int64_t at = path_from_reference(from, path_to_reference(to, ts)), error = 0;
    if (__builtin_add_overflow(clock_error_at(to->map, ts), clock_error_at(from->map, at), &error) || error < 0)
        return flow_window_any();
    return flow_window_at(message, at, (uint64_t)error);
}

static bool is_boot_of_same(const struct path_local_host *a, const struct path_local_host *b)
{
    return a != b && !strcmp(a->name, b->name);
}

/* Does `a` explain better than `b` the message that came at `came`? Of two boots of one host, which had the same
 * address, the later one sent it, unless that began only after it came. Of two hosts the surer one; as sure, the
 * earlier one: who passed a message on did so later. */
static bool is_better(const struct path_senders *s, int64_t came, const struct sender *a, const struct sender *b)
{
    const struct path_local_host *ha = &s->hosts[a->host], *hb = &s->hosts[b->host];
    int64_t ta = path_to_reference(ha, a->send.ts), tb = path_to_reference(hb, b->send.ts);
    if (is_boot_of_same(ha, hb))
        return ta > tb ? ta <= came : tb > came;
    if (a->answer != b->answer)
        return a->answer == FLOW_SENT;
    return path_comparable(ha, hb) && ta < tb;
}

/* Asks one host: *out becomes its answer when there is none yet or only a worse one. */
static void ask_host(struct path_senders *s, int32_t host, const struct flow_packet *receive, int32_t asked,
    const struct flow_message_key *message, struct sender *out)
{
    const struct path_local_host *to = &s->hosts[host], *from = &s->hosts[asked];
    struct flow_window w = window_of(to, receive->ts, from, message);
    struct sender found = {.host = asked};
    if (is_boot_of_same(to, from))
        return;
    found.answer = flow_find_send(from->flows, message, &w, &found.send);
    if (found.answer != FLOW_NOT_SENT &&
        (out->host < 0 || is_better(s, path_to_reference(to, receive->ts), &found, out)))
        *out = found;
}

/* The send that explains the receive, on the hosts that can have sent it. */
bool senders_find(struct path_senders *s, int32_t host, const struct flow_packet *receive, struct sender *out,
    struct sender_peer *peer)
{
    struct flow_message_key message;
    pthread_mutex_lock(&s->lock);
    struct sender_peer *p = peer_of(s, host, receive->flow);
    *peer = *p;
    pthread_mutex_unlock(&s->lock);
    *out = (struct sender){.host = -1};
    if (!peer->n)
        return false;
    flow_message_key_of(s->hosts[host].flows, receive, &message);
    for (size_t i = 0; i < peer->sure; i++)
        ask_host(s, host, receive, peer->senders[i], &message, out);
    size_t most = peer->found || peer->failures < TRIES_STRANGERS ? peer->n
        : peer->failures < TRIES_UNTRACED                         ? peer->likely
                                                                  : 0;
    bool guess = out->host < 0 && peer->sure < peer->n;
    for (size_t i = peer->sure; guess && i < most; i++)
        ask_host(s, host, receive, peer->senders[i], &message, out);
    if (guess) {
        pthread_mutex_lock(&s->lock);
        p->found |= out->host >= 0;
        p->failures += out->host < 0 && !p->found;
        pthread_mutex_unlock(&s->lock);
    }
    return out->host >= 0;
}

void senders_free(struct path_senders *s)
{
    if (!s)
        return;
    map_fini(&s->peers);
    book_fini(&s->owners);
    book_fini(&s->askers);
    vec_free(&s->nameless);
    vec_free(&s->ask_strangers);
    free(s->is_candidate);
    free(s->candidates);
    arena_fini(&s->strings);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
