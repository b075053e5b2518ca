/* SPDX-License-Identifier: MIT */
/* What is where, who talks with whom, and moving a trace: the side that asks. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/time.h"
#include "bus/bus.h"
#include "cluster/advice.h"
#include "cluster/moves.h"
#include "cluster/view.h"

#define ANSWER_NS (5 * NS_PER_S)
enum {
    LOOK_US = 100000,
    SLOW_OPENING = 20 /* indexing shows no progress, and has so many times the patience */
};

/* ---- who talks with whom ---- */

static uint64_t address_hash(const struct flow_address *a)
{
    struct flow_address plain = {.family = a->family};
    memcpy(plain.addr, a->addr, a->family == 4 ? 4 : sizeof plain.addr);
    return map_hash(&plain, sizeof plain);
}

/* Hosts by their own addresses: for each address a list of hosts. */
struct owner {
    int32_t host, next;
};
struct owners {
    struct map first; /* hash of an address: number of the owner + 1 */
    struct owner *v;
    size_t n, cap;
};

static void find_owners(const struct roster *r, struct owners *out)
{
    for (size_t i = 0; i < r->n_hosts; i++)
        for (size_t k = 0; k < r->hosts[i].card->n_own; k++) {
            uint64_t *first = map_put(&out->first, address_hash(&r->hosts[i].card->own[k]), NULL);
            vec_push(out, ((struct owner){(int32_t)i, (int32_t)*first}));
            *first = out->n;
        }
}

static bool sends_to(const struct card_host *from, const struct card_host *to)
{
    for (size_t i = 0; i < from->n_peers; i++)
        for (size_t k = 0; k < to->n_own; k++)
            if (address_hash(&from->peers[i]) == address_hash(&to->own[k]))
                return true;
    return false;
}

/* The host that has the address: of several, as there are with boots of a machine and private networks, one that was
 * recorded at the same time, and one that sent back. -1: nobody's, or the host's own. */
static int32_t owner_of(const struct roster *r, const struct owners *owners, size_t host, const struct flow_address *a)
{
    const uint64_t *first = map_find(&owners->first, address_hash(a));
    const struct card_host *own = r->hosts[host].card;
    int32_t best = -1, points = -1;
    for (uint64_t at = first ? *first : 0; at; at = (uint64_t)owners->v[at - 1].next) {
        int32_t other = owners->v[at - 1].host;
        const struct card_host *h = r->hosts[other].card;
        if ((size_t)other == host)
            return -1;
        int32_t now = 2 * (h->begin <= own->end && own->begin <= h->end);
        now += first && owners->v[*first - 1].next ? sends_to(h, own) : 0;
        if (now > points || (now == points && other < best)) {
            best = other;
            points = now;
        }
    }
    return best;
}

static int by_packets(const void *pa, const void *pb)
{
    const struct cluster_place_talk *a = pa, *b = pb;
    return order_of(b->packets, a->packets) ?: order_of(a->a, b->a) ?: order_of(a->b, b->b);
}

static void find_talk(const struct roster *r, struct cluster_placement *p)
{
    struct owners owners = {0};
    struct map pairs = {0};
    struct {
        struct cluster_place_talk *v;
        size_t n, cap;
    } talk = {0};
    find_owners(r, &owners);
    for (size_t i = 0; i < r->n_hosts; i++)
        for (size_t k = 0; k < r->hosts[i].card->n_peers; k++) {
            const struct card_talk *sent = &r->hosts[i].card->talk[k];
            int32_t other = owner_of(r, &owners, i, &r->hosts[i].card->peers[k]), own = (int32_t)i;
            if (other < 0 || !sent->packets)
                continue;
            int32_t a = own < other ? own : other, b = own < other ? other : own;
            bool fresh;
            uint64_t *at = map_put(&pairs, (uint64_t)a << 32 | (uint64_t)b, &fresh);
            if (fresh) {
                *at = talk.n;
                vec_push(&talk, ((struct cluster_place_talk){.a = a, .b = b}));
            }
            talk.v[*at].packets += sent->packets;
            talk.v[*at].bytes += sent->bytes;
        }
    if (talk.n)
        qsort(talk.v, talk.n, sizeof *talk.v, by_packets);
    p->talk = talk.v;
    p->n_talk = talk.n;
    map_fini(&pairs);
    map_fini(&owners.first);
    vec_free(&owners);
}

/* ---- what is where ---- */

static void count_hosts(const struct roster *r, struct cluster_placement *p)
{
    p->n_nodes = r->n_cards;
    p->nodes = mem_zalloc((p->n_nodes + 1) * sizeof *p->nodes);
    p->n_hosts = r->n_hosts;
    p->hosts = mem_zalloc((p->n_hosts + 1) * sizeof *p->hosts);
    for (size_t i = 0; i < p->n_nodes; i++) {
        p->nodes[i].name = r->cards[i].node;
        p->nodes[i].version = map_mix(
            map_hash(r->cards[i].instance, strlen(r->cards[i].instance)) + r->cards[i].serial);
    }
    for (size_t i = 0; i < p->n_hosts; i++) {
        const struct roster_host *h = &r->hosts[i];
        struct cluster_place_node *n = &p->nodes[h->cards[0]];
        p->hosts[i] = (struct cluster_place_host){(int32_t)h->cards[0], h->card->bytes, h->card->store_bytes,
            h->card->events, (const char *const *)h->nodes + h->n_nodes, h->n_snips};
        n->hosts++;
        n->bytes += h->card->bytes;
        n->store_bytes += h->card->store_bytes;
        for (size_t k = 1; k < h->n_nodes + h->n_snips; k++)
            p->nodes[h->cards[k]].copies++;
    }
}

static void ask_load(struct cluster *c, struct cluster_placement *p, int64_t deadline_ns)
{
    struct bus_calls *calls = bus_calls_new(c->bus);
    struct text q = {.fd = -1};
    struct bus_reply r;
    char subject[CLUSTER_SUBJECT];
    question_begin(&q, CLUSTER_LOAD);
    for (size_t i = 0; i < p->n_nodes; i++)
        if (!cluster_subject_of(c->name, p->nodes[i].name, subject, NULL))
            bus_call(calls, subject, q.v, q.n, deadline_ns, i);
    while (bus_calls_next(calls, &r)) {
        struct cluster_load load = {0};
        if (!r.code && !move_load_read(r.data, r.n, &load, NULL))
            p->nodes[r.tag].load = load;
        bus_reply_free(&r);
    }
    bus_calls_free(calls);
    text_fini(&q);
}

/* ---- advice ---- */

/* The mean of those that have traces, or may have, and so much more. */
static uint64_t limit_of(const struct cluster_placement *p, unsigned percent)
{
    uint64_t bytes = 0, nodes = 0;
    for (size_t i = 0; i < p->n_nodes; i++) {
        bytes += p->nodes[i].bytes;
        nodes += p->nodes[i].hosts || p->nodes[i].load.receives;
    }
    return nodes ? (uint64_t)((double)bytes / (double)nodes * (100 + percent) / 100) : 0;
}

static uint64_t percent_of(uint64_t all, unsigned percent)
{
    return (uint64_t)((double)all * percent / 100);
}

/* Its node lets it go, and it has been there for a while. */
static bool may_leave(const struct cluster_load *from, const struct card_host *h, int64_t settle_ns)
{
    return from->answered && (from->gives || h->since) && (!h->since || time_now_ns() - h->since >= settle_ns);
}

static void advise(
    const struct roster *r, const struct cluster_place_options *o, struct cluster_placement *p, struct arena *a)
{
    struct advice_node *nodes = arena_new(a, struct advice_node, p->n_nodes + 1);
    struct advice_host *hosts = arena_new(a, struct advice_host, p->n_hosts + 1);
    struct advice_talk *talk = arena_new(a, struct advice_talk, p->n_talk + 1);
    struct advice_move *moves = arena_new(a, struct advice_move, p->n_hosts + 1);
    int32_t *node_of = arena_new(a, int32_t, p->n_hosts + 1);
    uint64_t all = 0;
    for (size_t i = 0; i < p->n_nodes; i++)
        nodes[i] = (struct advice_node){p->nodes[i].load.room_bytes / 3 * 2, p->nodes[i].load.receives};
    for (size_t i = 0; i < p->n_hosts; i++) {
        bool movable = may_leave(&p->nodes[p->hosts[i].node].load, r->hosts[i].card, o->settle_ns);
        hosts[i] = (struct advice_host){p->hosts[i].node, p->hosts[i].bytes, movable};
        node_of[i] = p->hosts[i].node;
    }
    for (size_t i = 0; i < p->n_talk; i++) {
        talk[i] = (struct advice_talk){p->talk[i].a, p->talk[i].b, p->talk[i].packets};
        all += p->talk[i].packets;
    }
    uint64_t gain = percent_of(all, o->gain_percent);
    struct advice_world w = {nodes, p->n_nodes, hosts, p->n_hosts, talk, p->n_talk, p->limit_bytes, gain ? gain : 1,
        percent_of(p->limit_bytes, o->gain_percent)};
    p->n_moves = advice_find(&w, moves);
    p->moves = mem_zalloc((p->n_moves + 1) * sizeof *p->moves);
    p->between = advice_between(&w, node_of);
    for (size_t i = 0; i < p->n_moves; i++) {
        int32_t host = moves[i].host;
        p->moves[i] = (struct cluster_place_move){
            host, node_of[host], moves[i].to, p->hosts[host].bytes, moves[i].relieves, moves[i].saves};
        node_of[host] = moves[i].to;
    }
    p->between_after = advice_between(&w, node_of);
    for (size_t i = 0; i < p->n_hosts; i++)
        p->nodes[node_of[i]].planned_bytes += p->hosts[i].bytes;
}

void cluster_place(struct cluster *c, const struct cluster_place_options *o, struct cluster_placement **out)
{
    struct cluster_placement *p = *out = mem_zalloc(sizeof *p);
    struct arena a = {0};
    count_hosts(c->roster, p);
    find_talk(c->roster, p);
    ask_load(c, p, o->deadline_ns);
    p->limit_bytes = limit_of(p, o->balance_percent);
    advise(c->roster, o, p, &a);
    arena_fini(&a);
}

void cluster_placement_free(struct cluster_placement *p)
{
    if (!p)
        return;
    free(p->nodes);
    free(p->hosts);
    free(p->talk);
    free(p->moves);
    free(p);
}

/* ---- moving ---- */

struct moving {
    struct cluster *cluster;
    const struct cluster_move_options *o;
    struct move_question question;
    struct err *e;
};

static bool may_come_back(int code)
{
    return code == ERR_NOTFOUND || code == ERR_TIMEOUT || code == ERR_BUSY || code == ERR_CANCELLED || code == ERR_IO;
}

static int ask(const struct moving *m, const char *node, enum cluster_question kind, struct bus_reply *r)
{
    char subject[CLUSTER_SUBJECT];
    struct text q = {.fd = -1};
    *r = (struct bus_reply){0};
    question_begin(&q, kind);
    move_question_write(&m->question, &q);
    int rc = cluster_subject_of(m->cluster->name, node, subject, m->e);
    if (!rc && bus_ask(m->cluster->bus, subject, q.v, q.n, time_monotonic_ns() + ANSWER_NS, r))
        rc = err_set(m->e, r->code, "node %s: %s", node, r->text);
    text_fini(&q);
    return rc;
}

/* False: who asked for the move does not wait for it any more. */
static bool goes_on(const struct moving *m, const struct cluster_move_progress *now, const char *node)
{
    if (!m->o->progress || m->o->progress(m->o->arg, now))
        return true;
    err_set(m->e, ERR_CANCELLED, "it is not waited for any more; node %s goes on", node);
    return false;
}

/* Until the node has it. */
static int take(struct moving *m, const char *node)
{
    int64_t changed = time_monotonic_ns();
    struct cluster_move_progress last = {.state = CLUSTER_MOVE_UNKNOWN};
    for (m->question.begin = true;; usleep(LOOK_US)) {
        struct arena a = {0};
        struct bus_reply r;
        struct cluster_move_progress now = {0};
        int rc = ask(m, node, CLUSTER_TAKE, &r);
        bool later = rc && may_come_back(rc);
        if (!rc)
            rc = move_progress_read(&a, r.data, r.n, &now, m->e);
        bus_reply_free(&r);
        if (!rc && now.state == CLUSTER_MOVE_FAILED)
            rc = err_set(m->e, ERR_IO, "node %s: %s", node, now.text);
        bool go_on = goes_on(m, rc ? &last : &now, node);
        arena_fini(&a);
        if (!go_on)
            return ERR_CANCELLED;
        if ((rc && !later) || now.state == CLUSTER_MOVE_DONE)
            return rc;
        m->question.begin = rc || now.state == CLUSTER_MOVE_UNKNOWN; /* it was started again */
        int64_t time = time_monotonic_ns();
        if (!rc && (now.state != last.state || now.done != last.done))
            changed = time;
        int64_t patience = m->o->patience_ns * (!rc && now.state == CLUSTER_MOVE_OPENING ? SLOW_OPENING : 1);
        if (time - changed > patience)
            return rc ? rc : err_set(m->e, ERR_TIMEOUT, "node %s gets no further: what does it say?", node);
        last = now;
    }
}

/* Until the node has let go of it, or kept it for good. */
static int leave(const struct moving *m, const char *node, bool *aside)
{
    for (int64_t begin = time_monotonic_ns();; usleep(LOOK_US)) {
        struct bus_reply r;
        int rc = ask(m, node, CLUSTER_LEAVE, &r);
        if (!rc)
            *aside |= r.n == 1 && *(const char *)r.data == 1;
        bus_reply_free(&r);
        if (!rc || !may_come_back(rc) || time_monotonic_ns() - begin > m->o->patience_ns)
            return rc;
        if (!goes_on(m, &(struct cluster_move_progress){.state = CLUSTER_MOVE_DONE, .text = ""}, m->question.node))
            return ERR_CANCELLED;
    }
}

/* What its card says of the trace; NULL: it does not have the same. */
static const struct card_host *same_of(const struct card *c, struct move_trace t)
{
    for (size_t i = 0; i < c->n_hosts; i++)
        if (move_is_of(t, &c->hosts[i]))
            return &c->hosts[i];
    return NULL;
}

/* Until all know that the node has it. */
static int await_card(const struct moving *m, const char *node)
{
    for (int64_t begin = time_monotonic_ns();; usleep(LOOK_US)) {
        struct roster r;
        bool said = false;
        int rc = roster_read(m->cluster->nodes, &r, m->e);
        for (size_t i = 0; i < r.n_cards && !rc; i++)
            said |= !strcmp(r.cards[i].node, node) && same_of(&r.cards[i], m->question.trace);
        roster_fini(&r);
        if (said)
            return 0;
        if (time_monotonic_ns() - begin > m->o->patience_ns)
            return rc ? rc : err_set(m->e, ERR_TIMEOUT, "node %s has the trace, but does not say so yet", node);
        if (!goes_on(m, &(struct cluster_move_progress){.state = CLUSTER_MOVE_OPENING, .text = ""}, node))
            return ERR_CANCELLED;
    }
}

bool placement_unfinished(const struct cluster *c, size_t *host)
{
    const struct roster *r = c->roster;
    for (*host = 0; *host < r->n_hosts; ++*host) {
        const struct roster_host *h = &r->hosts[*host];
        for (size_t i = 1; i < h->n_nodes && h->card->since && !h->card->snip.is; i++) {
            struct move_trace t = {h->card->key, h->card->hash, MOVE_ALL};
            const struct card_host *copy = same_of(&r->cards[h->cards[i]], t);
            if (copy && copy->since)
                return true;
        }
    }
    return false;
}

/* Nodes that have the same by a move put it aside; others keep theirs anyway. */
static int leave_all(struct moving *m, const struct roster_host *h, const char *node, bool *aside)
{
    const struct roster *r = m->cluster->roster;
    int rc = 0;
    m->question.node = node;
    for (size_t i = 0; i < h->n_nodes && !rc; i++) {
        const struct card_host *copy = same_of(&r->cards[h->cards[i]], m->question.trace);
        if (strcmp(h->nodes[i], node) != 0 && copy && copy->since)
            rc = leave(m, h->nodes[i], aside);
    }
    return rc;
}

int cluster_move(
    struct cluster *c, size_t host, const char *node, const struct cluster_move_options *o, bool *aside, struct err *e)
{
    const struct roster_host *h = &c->roster->hosts[host];
    struct moving m = {c, o, {{h->card->key, h->card->hash, MOVE_ALL}, h->nodes[0], true}, e};
    bool there = !strcmp(h->nodes[0], node);
    *aside = false;
    if (o->snip && there)
        return err_set(e, ERR_ARG, "node %s has all of that trace", node);
    if (o->snip) {
        m.question.trace.begin = o->begin;
        m.question.trace.end = o->end;
    }
    int rc = there ? 0 : take(&m, node);
    if (!rc)
        rc = await_card(&m, node);
    return rc || o->snip ? rc : leave_all(&m, h, node, aside);
}
