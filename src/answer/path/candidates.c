/* SPDX-License-Identifier: MIT */
#include "path/candidates.h"

#include <stdlib.h>
#include <string.h>

#include "base/map.h"

enum { TCP = 6 };

/* Hosts that have an address. */
struct address_hosts {
    struct flow_address address;
    VEC(int32_t) hosts;
};
struct address_list {
    VEC(struct address_hosts) v;
    struct map by_address; /* hash -> number + 1; on a collision the next hash */
};

struct candidate_book {
    int32_t n;
    struct address_list owners, askers; /* by address: hosts that own it, hosts that sent to it */
    VEC(int32_t) nameless;              /* hosts that report no addresses */
    VEC(int32_t) ask_strangers;         /* hosts that sent to addresses no host owns; made when all hosts are known */
    bool sealed;
    VEC(bool) listed; /* flags by host, while candidates are listed */
};

struct candidate_book *path_candidate_book_new(void)
{
    return mem_zalloc(sizeof(struct candidate_book));
}

static void address_list_fini(struct address_list *b)
{
    for (size_t i = 0; i < b->v.n; i++)
        vec_free(&b->v.v[i].hosts);
    vec_free(&b->v);
    map_fini(&b->by_address);
}

void path_candidate_book_free(struct candidate_book *b)
{
    if (!b)
        return;
    address_list_fini(&b->owners);
    address_list_fini(&b->askers);
    vec_free(&b->nameless);
    vec_free(&b->ask_strangers);
    vec_free(&b->listed);
    free(b);
}

static struct address_hosts *look_up(const struct address_list *b, const struct flow_address *a)
{
    const uint64_t *at;
    for (uint64_t h = map_hash(a, sizeof *a); (at = map_find(&b->by_address, h)); h++)
        if (!memcmp(&b->v.v[*at - 1].address, a, sizeof *a))
            return &b->v.v[*at - 1];
    return NULL;
}

static void enter(struct address_list *b, const struct flow_address *a, size_t n, int32_t host)
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

void path_candidate_book_skip(struct candidate_book *b)
{
    b->n++;
    vec_push(&b->listed, false);
}

void path_candidate_book_add(struct candidate_book *b, const struct flow_address *own, size_t n_own,
    const struct flow_address *peers, size_t n_peers)
{
    enter(&b->owners, own, n_own, b->n);
    enter(&b->askers, peers, n_peers, b->n);
    if (!n_own)
        vec_push(&b->nameless, b->n);
    path_candidate_book_skip(b);
}

static void find_who_asked_strangers(struct candidate_book *b)
{
    for (size_t i = 0; i < b->askers.v.n; i++) {
        const struct address_hosts *asked = &b->askers.v.v[i];
        for (size_t k = 0; !look_up(&b->owners, &asked->address) && k < asked->hosts.n; k++)
            if (!b->listed.v[asked->hosts.v[k]]) {
                b->listed.v[asked->hosts.v[k]] = true;
                vec_push(&b->ask_strangers, asked->hosts.v[k]);
            }
    }
    for (size_t i = 0; i < b->ask_strangers.n; i++)
        b->listed.v[b->ask_strangers.v[i]] = false;
    b->sealed = true;
}

static struct flow_address address_of(const struct flow_key *key, bool source)
{
    struct flow_address a = {.family = key->family};
    memcpy(a.addr, source ? key->saddr : key->daddr, sizeof a.addr);
    return a;
}

static void list(struct candidate_book *b, struct candidates *out, int32_t host)
{
    if (b->listed.v[host])
        return;
    b->listed.v[host] = true;
    vec_push(&out->hosts, host);
}

static void list_hosts_of(
    struct candidate_book *b, struct candidates *out, const struct address_list *of, struct flow_address address)
{
    const struct address_hosts *entry = look_up(of, &address);
    for (size_t i = 0; entry && i < entry->hosts.n; i++)
        list(b, out, entry->hosts.v[i]);
}

/* Candidates are the owner of the source address and, if nobody owns it, hosts whose trace reports no addresses.
 * Addresses may have been translated: if only the source was, all others that sent to the destination; if both were,
 * all that sent to an address of no host. */
void path_candidates_find(struct candidate_book *b, int32_t host, const struct flow_key *key,
    bool (*may_send)(void *arg, int32_t host, const struct flow_key *), void *arg, struct candidates *out)
{
    *out = (struct candidates){0};
    if (!b->sealed)
        find_who_asked_strangers(b);
    if (flow_is_anonymous(key)) {
        list(b, out, host);
    } else {
        list_hosts_of(b, out, &b->owners, address_of(key, true));
        for (size_t i = 0; !out->hosts.n && i < b->nameless.n; i++)
            if (may_send(arg, b->nameless.v[i], key))
                list(b, out, b->nameless.v[i]);
    }
    out->sure = out->hosts.n;
    bool translated = !flow_is_anonymous(key) && key->family && key->protocol == TCP;
    if (translated)
        list_hosts_of(b, out, &b->askers, address_of(key, false));
    out->likely = out->hosts.n;
    for (size_t i = 0; translated && i < b->ask_strangers.n; i++)
        list(b, out, b->ask_strangers.v[i]);
    for (size_t i = 0; i < out->hosts.n; i++)
        b->listed.v[out->hosts.v[i]] = false;
}
