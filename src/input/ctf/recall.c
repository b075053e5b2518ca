/* SPDX-License-Identifier: MIT */
/* Reuse of earlier counts. Each count belongs to a packet identified by its key: counts of packets that are gone or
 * changed are ignored, and only packets without a count are read. */
#include <stdlib.h>

#include "base/map.h"
#include "ctf/count.h"

void ctf_recall_fini(struct ctf_trace *t)
{
    struct ctf_recall *r = &t->recall;
    if (r->forget)
        r->forget(r->arg);
    free(r->counts.packets);
    free(r->counts.marks);
    *r = (struct ctf_recall){0};
}

void ctf_trace_remember(
    struct ctf_trace *t, void (*give)(void *arg, struct ctf_counts *), void *arg, void (*forget)(void *))
{
    ctf_recall_fini(t);
    t->recall = (struct ctf_recall){.give = give, .forget = forget, .arg = arg};
}

static bool fits(const struct ctf_packet *p, const struct ctf_packet_count *c, const struct ctf_mark *marks)
{
    uint64_t before = 0, pos = 0;
    /* An event takes at least one bit; losses of two kinds may lie before the events. */
    if (c->items > p->content_bits + 2 || (c->items && c->first > c->last))
        return false;
    for (uint32_t i = 0; i < c->marks; i++) {
        if (marks[i].before <= before || marks[i].before >= c->items || marks[i].pos_bits <= pos ||
            marks[i].pos_bits >= p->content_bits)
            return false;
        before = marks[i].before;
        pos = marks[i].pos_bits;
    }
    return true;
}

/* Returns the start of each packet's marks; NULL: contradictory numbers. */
static size_t *places(const struct ctf_counts *c)
{
    size_t *places = mem_alloc(sizeof *places * (c->n_packets + 1)), at = 0;
    for (size_t i = 0; i < c->n_packets; i++) {
        places[i] = at;
        if (c->packets[i].marks > c->n_marks - at) {
            free(places);
            return NULL;
        }
        at += c->packets[i].marks;
    }
    return places;
}

static void ask(struct ctf_recall *r)
{
    if (!r->asked && r->give)
        r->give(r->arg, &r->counts);
    r->asked = true;
}

/* Finds the count of a packet. A key that two packets have (in snapshots, one damaged) is used for neither. */
static bool look_up(struct ctf_recall *r, const struct map *by_key, const size_t *at, struct ctf_found **taken,
    const struct ctf_packet *p, uint64_t key, struct ctf_found *found)
{
    const uint64_t *one = map_find(by_key, key);
    if (!one)
        return false;
    if (taken[*one]) {
        *taken[*one] = (struct ctf_found){0};
        return false;
    }
    const struct ctf_packet_count *c = &r->counts.packets[*one];
    const struct ctf_mark *marks = c->marks ? r->counts.marks + at[*one] : NULL;
    taken[*one] = found;
    if (fits(p, c, marks))
        *found = (struct ctf_found){c, marks};
    return found->count;
}

bool ctf_recall_find(struct ctf_trace *t, struct ctf_found **found)
{
    struct ctf_recall *r = &t->recall;
    struct map by_key = {0};
    bool all = true;
    ask(r);
    size_t *at = places(&r->counts);
    struct ctf_found **taken = mem_zalloc(sizeof *taken * (r->counts.n_packets + 1));
    for (size_t i = 0; at && i < r->counts.n_packets; i++)
        *map_put(&by_key, r->counts.packets[i].key, NULL) = i;
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream *s = &t->streams.v[i];
        uint64_t key = 0;
        for (size_t k = 0; k < s->packets.n; k++) {
            key = ctf_packet_key(t, s, &s->packets.v[k], key);
            all &= look_up(r, &by_key, at, taken, &s->packets.v[k], key, &found[i][k]);
        }
    }
    map_fini(&by_key);
    free(taken);
    free(at);
    return all;
}

/* Counts the trace by the given counts. Once `give` was called, a second try is pointless. */
static void recall(struct ctf_trace *t)
{
    struct ctf_found **found = ctf_found_new(t);
    if (ctf_recall_find(t, found) && !ctf_trace_intact(t, NULL))
        ctf_counts_take(t, found);
    ctf_found_free(t, found);
}

void ctf_trace_recall(const struct ctf_trace *t)
{
    struct ctf_trace *w = (struct ctf_trace *)t;
    if (atomic_load_explicit(&t->counted, memory_order_acquire) || !t->recall.give ||
        pthread_mutex_trylock(&w->counting))
        return;
    if (!t->recall.asked && !atomic_load_explicit(&t->counted, memory_order_acquire))
        recall(w);
    pthread_mutex_unlock(&w->counting);
}
