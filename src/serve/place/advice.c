/* SPDX-License-Identifier: MIT */
#include "place/advice.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

struct search {
    const struct advice_world *world;
    int32_t *node_of;
    uint64_t *loads, *came; /* by node: present bytes; bytes received */
    bool *moved;
    uint64_t *weights; /* by host and node: present weight between them */
};

static uint64_t over(const struct advice_world *w, uint64_t load)
{
    return load > w->limit_bytes ? load - w->limit_bytes : 0;
}

static uint64_t *weight(const struct search *s, int32_t host, int32_t node)
{
    return &s->weights[(size_t)host * s->world->n_nodes + (size_t)node];
}

static bool may_go(const struct search *s, size_t host, size_t to)
{
    const struct advice_host *h = &s->world->hosts[host];
    const struct advice_node *n = &s->world->nodes[to];
    return n->receives && s->node_of[host] != (int32_t)to && h->bytes <= s->world->limit_bytes &&
        s->loads[to] <= s->world->limit_bytes - h->bytes && s->came[to] + h->bytes <= n->room_bytes;
}

static bool is_better(
    const struct advice_world *w, const struct advice_move *a, const struct advice_move *best, bool found)
{
    if (!found)
        return true;
    if (a->relieves != best->relieves)
        return a->relieves > best->relieves;
    if (a->saves != best->saves)
        return a->saves > best->saves;
    return w->hosts[a->host].bytes < w->hosts[best->host].bytes; /* equal: the first one stays */
}

static bool find_best(const struct search *s, struct advice_move *best)
{
    const struct advice_world *w = s->world;
    bool found = false;
    for (size_t i = 0; i < w->n_hosts; i++) {
        int32_t from = s->node_of[i];
        uint64_t load = s->loads[from], bytes = w->hosts[i].bytes;
        struct advice_move m = {.host = (int32_t)i, .relieves = over(w, load) - over(w, load - bytes)};
        if (s->moved[i] || !w->hosts[i].movable)
            continue;
        for (size_t to = 0; to < w->n_nodes; to++) {
            m.to = (int32_t)to;
            m.saves = (int64_t)*weight(s, m.host, m.to) - (int64_t)*weight(s, m.host, from);
            bool useful = (m.relieves && m.relieves >= w->least_relief) ||
                (m.saves > 0 && (uint64_t)m.saves >= w->least_gain);
            if (useful && may_go(s, i, to) && is_better(w, &m, best, found)) {
                *best = m;
                found = true;
            }
        }
    }
    return found;
}

static void apply(struct search *s, const struct advice_move *m)
{
    const struct advice_world *w = s->world;
    int32_t from = s->node_of[m->host];
    uint64_t bytes = w->hosts[m->host].bytes;
    s->loads[from] -= bytes;
    s->loads[m->to] += bytes;
    s->came[m->to] += bytes;
    s->node_of[m->host] = m->to;
    s->moved[m->host] = true;
    for (size_t i = 0; i < w->n_talk; i++) {
        const struct advice_talk *t = &w->talk[i];
        int32_t other = t->a == m->host ? t->b : t->b == m->host ? t->a : -1;
        if (other < 0)
            continue;
        *weight(s, other, from) -= t->weight;
        *weight(s, other, m->to) += t->weight;
    }
}

size_t place_advice_find(const struct advice_world *w, struct advice_move *moves)
{
    struct search s = {.world = w};
    size_t n = 0;
    s.node_of = mem_zalloc((w->n_hosts + 1) * sizeof *s.node_of);
    s.moved = mem_zalloc((w->n_hosts + 1) * sizeof *s.moved);
    s.loads = mem_zalloc((w->n_nodes + 1) * sizeof *s.loads);
    s.came = mem_zalloc((w->n_nodes + 1) * sizeof *s.came);
    s.weights = mem_zalloc((w->n_hosts * w->n_nodes + 1) * sizeof *s.weights);
    for (size_t i = 0; i < w->n_hosts; i++) {
        s.node_of[i] = w->hosts[i].node;
        s.loads[w->hosts[i].node] += w->hosts[i].bytes;
    }
    for (size_t i = 0; i < w->n_talk; i++) {
        *weight(&s, w->talk[i].a, s.node_of[w->talk[i].b]) += w->talk[i].weight;
        *weight(&s, w->talk[i].b, s.node_of[w->talk[i].a]) += w->talk[i].weight;
    }
    for (struct advice_move best = {0}; find_best(&s, &best);) {
        apply(&s, &best);
        moves[n++] = best;
    }
    free(s.node_of);
    free(s.moved);
    free(s.loads);
    free(s.came);
    free(s.weights);
    return n;
}

uint64_t place_advice_between(const struct advice_world *w, const int32_t *node_of)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < w->n_talk; i++)
        sum += node_of[w->talk[i].a] != node_of[w->talk[i].b] ? w->talk[i].weight : 0;
    return sum;
}

uint64_t place_advice_beyond(const struct advice_world *w, const int32_t *node_of)
{
    uint64_t *loads = mem_zalloc((w->n_nodes + 1) * sizeof *loads), sum = 0;
    for (size_t i = 0; i < w->n_hosts; i++)
        loads[node_of[i]] += w->hosts[i].bytes;
    for (size_t i = 0; i < w->n_nodes; i++)
        sum += over(w, loads[i]);
    free(loads);
    return sum;
}
