/* SPDX-License-Identifier: MIT */
/* Messages that hosts exchanged. Each is found once: stored results are read, and only new messages are searched for.
 *
 * Clocks of most hosts are near each other. Packets that both have are then searched near their times alone
 * (flow_near_pairs). A message found so is final once both hosts' records reach far enough behind it. Messages received
 * before that time, the pair's *frontier*, are stored for ever; later ones are searched for in the last few chunks.
 *
 * Hosts that such messages join, over others if need be, are an island. The distance of clocks of different islands is
 * unknown. So all packets of one are compared with all of the other, each time that one of the two has new ones.
 *
 * If the clock of a host steps far (a virtual machine that stood still for an hour), all its connections continue
 * without a near message. A pair joins nothing if so many packets in a row came from an address of a host that
 * continued to record, and none was found there. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/order.h"
#include "base/pool.h"
#include "index/stores.h"

enum {
    MOST_NEAR = 33, /* hosts: of a flow that more than 32 received each sender is linked to 32 of all */
    TCP = 6,
    MOST_MISSED = 64 /* packets in a row, by slots of time in which none was found */
};

/* FLOW_NEAR_NS of time, by the clocks of both. */
struct slot {
    int64_t number;
    uint64_t came, found; /* TCP packets: from an address of the other, and of those that it has sent */
};

struct pair {
    uint32_t a, b;       /* a < b */
    bool known, far;     /* known: loaded completely; far: `rest` has packets at any distance */
    bool wanted, linked; /* wanted: to be searched now; linked: they have a flow in common */
    int64_t from, to;    /* received since then, it is looked for; before that, it is sealed */
    struct part {
        struct clock_told *told;
        uint64_t sure;            /* messages without doubt */
        uint64_t missing, missed; /* packets in a row that were not found: at the end, and the most until then */
    } sealed, rest;
    VEC(struct slot) slots;
    struct map slot_of; /* number -> index + 1 */
    size_t last_slot;
};

struct task {
    struct messages *m;
    const struct flow_store *a, *b;
    struct pair *pair;
    const struct flow_link *links;
    size_t n, n_from_a;
};

struct messages {
    struct index_sync *sync;
    VEC(struct pair) pairs;
    struct map pair_of; /* a << 32 | b -> index + 1 */
    bool *known;        /* by host: completely known when messages were stored */
    int64_t *until;     /* by host: end of the known part; INT64_MIN: nothing */
    uint32_t *island;   /* by host: another host of its island, or itself */
    VEC(struct task) tasks;
};

/* ---- pairs ---- */

/* Returns the time before which received messages are final: a limit of whole slots, which are counted together. */
static int64_t frontier(int64_t until_a, int64_t until_b)
{
    int64_t until = until_a < until_b ? until_a : until_b;
    if (until < INT64_MIN + 2 * FLOW_NEAR_NS + FLOW_DECIDED_NS)
        return INT64_MIN;
    return (until - FLOW_NEAR_NS - FLOW_DECIDED_NS) & ~(FLOW_NEAR_NS - 1);
}

static struct pair *pair_between(struct messages *m, uint32_t a, uint32_t b)
{
    const struct index_sync_host *hosts = m->sync->hosts;
    bool fresh;
    uint64_t *at = map_put(&m->pair_of, (uint64_t)a << 32 | b, &fresh);
    if (fresh) {
        struct pair p = {.a = a, .b = b, .to = frontier(hosts[a].sealed.until, hosts[b].sealed.until)};
        p.from = frontier(m->until[a], m->until[b]);
        p.known = m->known[a] && m->known[b] && p.from == p.to;
        p.far = m->sync->n > MOST_NEAR;
        vec_push(&m->pairs, p);
        *at = m->pairs.n;
    }
    return &m->pairs.v[*at - 1];
}

static void part_fini(struct part *p)
{
    clock_told_free(p->told);
    *p = (struct part){0};
}

static struct clock_told *told_of(const struct messages *m, struct part *p)
{
    if (!p->told)
        p->told = clock_told_new(m->sync->prior_ppm);
    return p->told;
}

/* ---- stored results ---- */

/* Returns whether known hosts come in the same order: messages are stored by times of the first of two. */
static bool in_order(const struct index_sync *s, const struct clock_source *v, size_t n)
{
    size_t next = 0;
    for (size_t i = 0; i < n; i++) {
        if (s->host_of[i] == SIZE_MAX)
            continue;
        if (s->host_of[i] < next)
            return false;
        next = s->host_of[i];
    }
    return true;
}

static void take_part(struct messages *m, size_t i, const struct clock_source *v)
{
    const struct index_sync *s = m->sync;
    struct clock_part kept;
    clock_kept_part(s->kept, i, &kept);
    size_t a = s->host_of[kept.a], b = s->host_of[kept.b];
    bool all = v[kept.a].until == INT64_MAX;
    if (a == SIZE_MAX || b == SIZE_MAX || a == b || all != (v[kept.b].until == INT64_MAX))
        return;
    struct pair *p = pair_between(m, (uint32_t)a, (uint32_t)b);
    struct part *part = all ? &p->rest : &p->sealed;
    if (all && !p->known)
        return;
    p->far = all ? kept.far : p->far;
    part->sure = kept.sure;
    part->missing = kept.missing;
    part->missed = kept.missed;
    clock_kept_tell(s->kept, i, told_of(m, part));
}

static void take_kept(struct messages *m)
{
    const struct index_sync *s = m->sync;
    const struct clock_source *v;
    size_t n = s->kept ? clock_kept_sources(s->kept, &v) : 0;
    if (!n || !in_order(s, v, n))
        return;
    for (size_t i = 0; i < n; i++)
        if (s->host_of[i] != SIZE_MAX && v[i].until == INT64_MAX)
            m->known[s->host_of[i]] = true;
        else if (s->host_of[i] != SIZE_MAX)
            m->until[s->host_of[i]] = v[i].until;
    for (size_t i = 0; i < clock_kept_parts(s->kept); i++)
        take_part(m, i, v);
}

/* ---- packets near in time ---- */

static struct slot *slot_of(struct pair *p, int64_t ts)
{
    int64_t number = ts >> FLOW_NEAR_BITS;
    if (p->last_slot < p->slots.n && p->slots.v[p->last_slot].number == number)
        return &p->slots.v[p->last_slot];
    uint64_t *at = map_put(&p->slot_of, (uint64_t)number, NULL);
    if (!*at) {
        vec_push(&p->slots, ((struct slot){.number = number}));
        *at = p->slots.n;
    }
    p->last_slot = *at - 1;
    return &p->slots.v[p->last_slot];
}

static int by_number(const void *a, const void *b)
{
    return order_of(((const struct slot *)a)->number, ((const struct slot *)b)->number);
}

static void count_missed(struct pair *p)
{
    bool is_rest = false;
    if (p->slots.n)
        qsort(p->slots.v, p->slots.n, sizeof *p->slots.v, by_number);
    for (size_t i = 0; i <= p->slots.n; i++) {
        const struct slot *s = i < p->slots.n ? &p->slots.v[i] : NULL;
        if (!is_rest && (!s || s->number >= p->to >> FLOW_NEAR_BITS)) {
            is_rest = true;
            p->rest.missing = p->sealed.missing;
            p->rest.missed = p->sealed.missed;
        }
        if (!s)
            break;
        struct part *part = is_rest ? &p->rest : &p->sealed;
        part->missing = s->found ? 0 : part->missing + s->came;
        part->missed = part->missing > part->missed ? part->missing : part->missed;
    }
    vec_free(&p->slots);
    map_fini(&p->slot_of);
    p->slot_of = (struct map){0};
    p->last_slot = 0;
}

struct telling {
    const struct messages *m;
    struct pair *pair;
    bool by_a;
};

static void on_near(void *arg, const struct flow_near *near)
{
    struct telling *t = arg;
    struct part *part = near->received < t->pair->to ? &t->pair->sealed : &t->pair->rest;
    if (!near->datagram)
        slot_of(t->pair, near->received)->found++;
    part->sure += near->sure;
    clock_tell(told_of(t->m, part), t->by_a, near->sent, near->received);
}

static void find_near(void *arg, size_t i)
{
    struct task *task = &((struct task *)arg)[i];
    size_t n = task->n_from_a;
    int64_t from = task->pair->from;
    flow_near_pairs(task->a, task->b, task->links, n, from, on_near, &(struct telling){task->m, task->pair, true});
    flow_near_pairs(
        task->b, task->a, task->links + n, task->n - n, from, on_near, &(struct telling){task->m, task->pair, false});
    if (task->pair->sealed.told)
        clock_told_settle(task->pair->sealed.told);
}

static void on_pair(void *arg, int64_t sent, int64_t received)
{
    const struct telling *t = arg;
    clock_tell(t->pair->rest.told, t->by_a, sent, received);
}

static void find_far(void *arg, size_t i)
{
    struct task *task = &((struct task *)arg)[i];
    size_t n = task->n_from_a;
    told_of(task->m, &task->pair->rest);
    flow_pairs(task->a, task->b, task->links, n, on_pair, &(struct telling){.pair = task->pair, .by_a = true});
    flow_pairs(task->b, task->a, task->links + n, task->n - n, on_pair, &(struct telling){.pair = task->pair});
}

/* ---- looking ---- */

/* Runs it for each pair that is wanted and has a flow in common. */
static void run(struct messages *m, const struct flow_store *const *stores, bool near, void (*find)(void *, size_t))
{
    struct flow_link *links = NULL;
    size_t n = near ? flow_near_links(stores, m->sync->n, 0, &links) : flow_links(stores, m->sync->n, 0, &links);
    m->tasks.n = 0;
    for (size_t i = 0, end; i < n; i = end) {
        uint32_t a = links[i].a < links[i].b ? links[i].a : links[i].b, b = links[i].a ^ links[i].b ^ a;
        size_t from_a = 0;
        for (end = i; end < n && links[end].a + links[end].b == a + b && (links[end].a == a || links[end].b == a);)
            from_a += links[end++].a == a;
        struct pair *p = pair_between(m, a, b);
        p->wanted |= m->sync->n > MOST_NEAR && !p->known;
        if (!p->wanted)
            continue;
        m->sync->looked_at += !p->linked;
        p->linked = true;
        vec_push(&m->tasks, ((struct task){m, stores[a], stores[b], NULL, links + i, end - i, from_a}));
    }
    for (size_t i = 0; i < m->tasks.n; i++) {
        const struct flow_link *l = m->tasks.v[i].links;
        m->tasks.v[i].pair = pair_between(m, l->a < l->b ? l->a : l->b, l->a < l->b ? l->b : l->a);
    }
    pool_run(m->tasks.n, 0, find, m->tasks.v);
    free(links);
}

/* ---- owners of addresses ---- */

struct owner {
    struct flow_address address;
    uint32_t host;
    int64_t since;
    size_t next; /* next owner with that hash, plus 1 */
};

struct owners {
    VEC(struct owner) v;
    struct map first; /* hash of the address -> index + 1 */
};

static void find_owners(const struct index_sync *s, struct owners *out)
{
    for (uint32_t h = 0; h < s->n; h++) {
        struct flow_own_address *own = NULL;
        size_t n = s->hosts[h].flows ? flow_own_addresses(s->hosts[h].flows, &own) : 0;
        for (size_t i = 0; i < n; i++) {
            uint64_t *at = map_put(&out->first, map_hash(&own[i].address, sizeof own[i].address), NULL);
            vec_push(&out->v, ((struct owner){own[i].address, h, own[i].since, *at}));
            *at = out->v.n;
        }
        free(own);
    }
}

static bool is_source(const struct owner *o, const struct flow_key *key)
{
    return o->address.family == key->family && !memcmp(o->address.addr, key->saddr, sizeof key->saddr);
}

/* Packets that came to b on the flow from an address of a, while a recorded, and which b did not have by then. */
static void count_flow(
    struct messages *m, const struct flow_store *tail, size_t flow, uint32_t b, const struct owner *a, int64_t until)
{
    struct pair *p = pair_between(m, a->host < b ? a->host : b, a->host < b ? b : a->host);
    struct flow_packet packet;
    size_t n = flow_receives(tail, flow);
    int64_t since = p->from > a->since ? p->from : a->since, last = flow_last(m->sync->hosts[a->host].flows);
    last = last < until ? last : until;
    if (!p->wanted)
        return;
    for (size_t i = n; i--;) {
        flow_receive(tail, flow, i, &packet);
        if (packet.ts < since)
            break;
        if (packet.ts <= last && !(packet.way & FLOW_CAME_BACK))
            slot_of(p, packet.ts)->came++;
    }
}

static void count_came(struct messages *m, struct flow_store *const *tails)
{
    struct owners owners = {0};
    struct flow_key key;
    find_owners(m->sync, &owners);
    for (uint32_t b = 0; b < m->sync->n; b++)
        for (size_t f = 0, n = tails[b] ? flow_count(tails[b]) : 0; f < n; f++) {
            flow_key(tails[b], f, &key);
            if (!key.family || key.protocol != TCP || flow_is_anonymous(&key))
                continue;
            struct flow_address source = {.family = key.family};
            int64_t until = INT64_MAX;
            memcpy(source.addr, key.saddr, sizeof source.addr);
            const uint64_t *first = map_find(&owners.first, map_hash(&source, sizeof source));
            for (size_t i = first ? *first : 0; i; i = owners.v.v[i - 1].next)
                if (owners.v.v[i - 1].host == b && is_source(&owners.v.v[i - 1], &key))
                    until = owners.v.v[i - 1].since;
            for (size_t i = first ? *first : 0; i; i = owners.v.v[i - 1].next)
                if (owners.v.v[i - 1].host != b && is_source(&owners.v.v[i - 1], &key))
                    count_flow(m, tails[b], f, b, &owners.v.v[i - 1], until);
        }
    vec_free(&owners.v);
    map_fini(&owners.first);
}

/* Searches near messages of wanted pairs. tails: by host, the chunks needed; NULL: none. */
static void look_near(struct messages *m)
{
    const struct index_sync *s = m->sync;
    struct flow_store **tails = mem_zalloc((s->n + 1) * sizeof *tails);
    int64_t *since = mem_alloc((s->n + 1) * sizeof *since);
    for (size_t h = 0; h < s->n; h++)
        since[h] = INT64_MAX;
    for (size_t i = 0; i < m->pairs.n; i++) {
        const struct pair *p = &m->pairs.v[i];
        int64_t begin = p->from < INT64_MIN + FLOW_NEAR_NS ? INT64_MIN : p->from - FLOW_NEAR_NS;
        for (int k = 0; k < 2 && p->wanted; k++)
            since[k ? p->b : p->a] = begin < since[k ? p->b : p->a] ? begin : since[k ? p->b : p->a];
    }
    for (size_t h = 0; h < s->n; h++)
        if (s->hosts[h].flows && since[h] < INT64_MAX)
            flow_tail(s->hosts[h].flows, since[h], &tails[h]);
    count_came(m, tails);
    run(m, (const struct flow_store *const *)tails, true, find_near);
    for (size_t i = 0; i < m->pairs.n; i++)
        if (m->pairs.v[i].wanted)
            count_missed(&m->pairs.v[i]);
    for (size_t h = 0; h < s->n; h++)
        flow_close(tails[h]);
    free(tails);
    free(since);
}

static void look_far(struct messages *m)
{
    const struct index_sync *s = m->sync;
    const struct flow_store **stores = mem_zalloc((s->n + 1) * sizeof *stores);
    bool any = false;
    for (size_t h = 0; h < s->n && s->n > MOST_NEAR; h++)
        any |= !m->known[h];
    for (size_t h = 0; h < s->n && any; h++)
        stores[h] = s->hosts[h].flows;
    for (size_t i = 0; i < m->pairs.n; i++)
        if (m->pairs.v[i].wanted) {
            any = true;
            stores[m->pairs.v[i].a] = s->hosts[m->pairs.v[i].a].flows;
            stores[m->pairs.v[i].b] = s->hosts[m->pairs.v[i].b].flows;
        }
    if (any)
        run(m, stores, false, find_far);
    free(stores);
}

/* ---- near and far ---- */

static uint32_t island_of(struct messages *m, uint32_t host)
{
    while (m->island[host] != host)
        host = m->island[host] = m->island[m->island[host]];
    return host;
}

static bool joins(const struct pair *p)
{
    return (p->sealed.sure || p->rest.sure) && p->sealed.missed < MOST_MISSED && p->rest.missed < MOST_MISSED;
}

static void find_islands(struct messages *m)
{
    for (uint32_t h = 0; h < m->sync->n; h++)
        m->island[h] = h;
    for (size_t i = 0; i < m->pairs.n; i++)
        if (joins(&m->pairs.v[i])) {
            uint32_t a = island_of(m, m->pairs.v[i].a), b = island_of(m, m->pairs.v[i].b);
            m->island[a > b ? a : b] = a > b ? b : a;
        }
}

static bool is_near(struct messages *m, const struct pair *p)
{
    return island_of(m, p->a) == island_of(m, p->b);
}

/* Searches all pairs if hosts are few: near messages of all pairs, then distant ones between islands. */
static void look(struct messages *m)
{
    uint32_t n = (uint32_t)m->sync->n;
    for (uint32_t a = 0; a < n && n <= MOST_NEAR; a++)
        for (uint32_t b = a + 1; b < n; b++) {
            struct pair *p = pair_between(m, a, b);
            p->wanted = !p->known;
        }
    if (n <= MOST_NEAR)
        look_near(m);
    find_islands(m);
    for (size_t i = 0; i < m->pairs.n && n <= MOST_NEAR; i++) {
        struct pair *p = &m->pairs.v[i];
        p->wanted = p->far && is_near(m, p);
        if (p->wanted)
            part_fini(&p->rest);
        p->far &= !p->wanted;
    }
    if (n <= MOST_NEAR)
        look_near(m);
    for (size_t i = 0; i < m->pairs.n && n <= MOST_NEAR; i++) {
        struct pair *p = &m->pairs.v[i];
        p->wanted = !p->far && !is_near(m, p);
        if (!p->wanted)
            continue;
        p->far = true;
        clock_told_free(p->rest.told); /* near messages are included in those at any distance */
        p->rest.told = NULL;
    }
    look_far(m);
}

/* ---- keeping ---- */

static int by_sources(const void *a, const void *b)
{
    const struct clock_part *p = a, *q = b;
    return order_of(p->a, q->a) ?: order_of(p->b, q->b);
}

static bool is_kept(const struct index_sync *s)
{
    const struct clock_source *v;
    size_t n = s->kept ? clock_kept_sources(s->kept, &v) : 0;
    if (n != 2 * s->n)
        return false;
    for (size_t h = 0; h < s->n; h++)
        if (memcmp(&v[2 * h], &s->hosts[h].sealed, sizeof *v) != 0 ||
            memcmp(&v[2 * h + 1], &s->hosts[h].all, sizeof *v) != 0)
            return false;
    return true;
}

/* Saves two sources per host: its final part, and all of it. Results that cannot be saved are computed again next
 * time. */
static void save(struct messages *m)
{
    const struct index_sync *s = m->sync;
    VEC(struct clock_part) parts = {0};
    struct clock_source *sources = mem_alloc((2 * s->n + 1) * sizeof *sources);
    for (size_t h = 0; h < s->n; h++) {
        sources[2 * h] = s->hosts[h].sealed;
        sources[2 * h + 1] = s->hosts[h].all;
    }
    for (size_t i = 0; i < m->pairs.n; i++) {
        struct pair *p = &m->pairs.v[i];
        for (int all = 0; all < 2; all++) {
            struct part *part = all ? &p->rest : &p->sealed;
            if (part->told || part->missed || (all && p->far && s->n <= MOST_NEAR))
                vec_push(&parts,
                    ((struct clock_part){2 * (size_t)p->a + (size_t)all, 2 * (size_t)p->b + (size_t)all, part->sure,
                        part->missing, part->missed, all && p->far, told_of(m, part)}));
        }
    }
    if (parts.n)
        qsort(parts.v, parts.n, sizeof *parts.v, by_sources);
    clock_kept_save(s->path, s->key, s->prior_ppm, sources, 2 * s->n, parts.v, parts.n, &(struct err){0});
    vec_free(&parts);
    free(sources);
}

/* ---- the whole search ---- */

static void tell_pair(void *arg, struct clock_told *to)
{
    const struct pair *p = arg;
    if (p->sealed.told && !p->far)
        clock_told_add(to, p->sealed.told);
    if (p->rest.told)
        clock_told_add(to, p->rest.told);
}

int index_sync_flows(struct clock_net *net, struct index_sync *s, struct err *e)
{
    struct messages m = {.sync = s,
        .known = mem_zalloc(s->n + 1),
        .until = mem_alloc((s->n + 1) * sizeof *m.until),
        .island = mem_alloc((s->n + 1) * sizeof *m.island)};
    s->looked_at = 0;
    for (size_t h = 0; h < s->n; h++)
        m.until[h] = INT64_MIN;
    take_kept(&m);
    look(&m);
    for (size_t i = 0; i < m.pairs.n; i++)
        clock_net_messages(net, m.pairs.v[i].a, m.pairs.v[i].b, tell_pair, &m.pairs.v[i]);
    int rc = clock_net_solve(net, e);
    if (!rc && s->path && !is_kept(s))
        save(&m);
    for (size_t i = 0; i < m.pairs.n; i++) {
        part_fini(&m.pairs.v[i].sealed);
        part_fini(&m.pairs.v[i].rest);
    }
    vec_free(&m.pairs);
    vec_free(&m.tasks);
    map_fini(&m.pair_of);
    free(m.known);
    free(m.until);
    free(m.island);
    return rc;
}
