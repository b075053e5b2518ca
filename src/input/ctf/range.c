/* SPDX-License-Identifier: MIT */
/* Ranges of time: their fingerprints, and whether they can be read one after the other. */
#include "base/search.h"
#include "ctf/count.h"

/* ---- fingerprint ---- */

static uint64_t add(uint64_t sum, const uint64_t *parts, size_t n)
{
    uint64_t both[2] = {sum, map_hash(parts, n * sizeof *parts)};
    return map_hash(both, sizeof both);
}

/* Hashes the packet's layout and head. Its end does not count if it was derived from later data: that affects only
 * whether it ends in the range. */
static uint64_t add_packet(
    uint64_t sum, const struct ctf_trace *t, const struct ctf_stream *s, const struct ctf_packet *p)
{
    const struct ctf_file *f = &t->files.v[p->file];
    struct ctf_clock_rate rate = ctf_trace_rate(t, f->piece, s->plan->sc);
    uint64_t parts[13] = {t->pieces.v[f->piece].declared, rate.freq, rate.offset, (uint64_t)rate.offset_s, p->offset,
        p->content_bits, (uint64_t)p->begin, p->flags & CTF_PACKET_MENDED ? 0 : (uint64_t)p->end,
        s->plan->has_begin ? p->cycles : 0, (uint64_t)p->cpu,
        (uint64_t)p->track << 8 | (p->flags & (CTF_PACKET_TIMED | CTF_PACKET_UNCLOSED)), p->seq, p->discarded};
    return add(sum, parts, 13);
}

/* Returns the identity of its file; before: the earlier identity, if the shorter file already had the packet. */
static uint64_t file_of(const struct ctf_trace *t, const struct ctf_packet *p, bool before)
{
    const struct ctf_file *f = &t->files.v[p->file];
    bool was_there = p->offset < f->was_size && (p->content_bits + 7) / 8 <= f->was_size - p->offset;
    return before && was_there ? f->was_identity : f->identity;
}

/* Adds the losses it reports that are read with the range; they may lie before the packet. */
static uint64_t add_losses(
    uint64_t sum, const struct ctf_stream *s, const struct ctf_packet *p, int64_t begin, int64_t end)
{
    for (uint32_t i = 0; i < p->n_losses; i++) {
        const struct ctf_loss_item *l = &s->losses.v[p->loss + i];
        if ((l->ts >= end && end != INT64_MAX) || (l->ts < begin && l->loss.end < begin))
            continue;
        uint64_t parts[6] = {l->item, (uint64_t)l->ts, (uint64_t)l->loss.begin, (uint64_t)l->loss.end, l->loss.count,
            (uint64_t)l->loss.begin_known << 1 | l->loss.end_known};
        sum = add(sum, parts, 6);
    }
    return sum;
}

static uint64_t of_stream(
    const struct ctf_trace *t, const struct ctf_stream *s, int64_t begin, int64_t end, bool before)
{
    const struct ctf_packet *packets = s->packets.v;
    size_t from = 0, to = s->packets.n;
    uint64_t sum = 0;
    if (s->ends_ascend && begin != INT64_MIN)
        from = search_first(i, 0, s->packets.n, packets[i].end >= begin);
    if (s->begins_ascend && end != INT64_MAX) {
        to = search_first(i, from, s->packets.n, packets[i].begin >= end);
        to += to < s->packets.n; /* losses before it may begin earlier */
    }
    for (size_t i = from; i < to; i++) {
        const struct ctf_packet *p = &packets[i];
        if (!s->timed || (p->end >= begin && (p->begin < end || end == INT64_MAX)))
            sum = add(
                add_packet(sum, t, s, p), (uint64_t[]){file_of(t, p, before), p->end < end || end == INT64_MAX}, 2);
        sum = add_losses(sum, s, p, begin, end);
    }
    return sum;
}

/* Adds the known absences in the range; if there are none, the sum is unchanged. */
static uint64_t add_absent(uint64_t sum, const struct ctf_trace *t, int64_t begin, int64_t end)
{
    for (size_t i = 0; i < t->absent.n; i++) {
        const struct ctf_absent *a = &t->absent.v[i];
        if (a->end >= begin && (a->begin < end || end == INT64_MAX))
            sum = add(sum, (uint64_t[]){(uint64_t)a->cpu, (uint64_t)a->begin, (uint64_t)a->end}, 3);
    }
    return sum;
}

static uint64_t fingerprint(const struct ctf_trace *t, int64_t begin, int64_t end, bool before)
{
    uint64_t sum = CTF_RULES_VERSION;
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream *s = &t->streams.v[i];
        uint64_t of = of_stream(t, s, begin, end, before);
        if (!of) /* no data in the range: same as without the stream */
            continue;
        uint64_t parts[4] = {s->plan->sc->id, s->has_instance, s->instance_id, of};
        sum = add(sum, parts, 4);
    }
    return add_absent(sum, t, begin, end);
}

uint64_t ctf_trace_range_fingerprint(const struct ctf_trace *t, int64_t begin, int64_t end)
{
    return fingerprint(t, begin, end, false);
}

uint64_t ctf_trace_range_before(const struct ctf_trace *t, int64_t begin, int64_t end)
{
    return fingerprint(t, begin, end, true);
}

uint64_t ctf_packet_key(
    const struct ctf_trace *t, const struct ctf_stream *s, const struct ctf_packet *p, uint64_t before)
{
    const char *name = t->files.v[p->file].name;
    uint64_t stream[5] = {CTF_RULES_VERSION, s->plan->sc->id, s->instance_id, s->plan->has_begin ? 0 : before,
        map_hash(name, strlen(name))};
    uint64_t sum = map_hash(stream, sizeof stream);
    return add_losses(add_packet(sum, t, s, p), s, p, INT64_MIN, INT64_MAX);
}

/* ---- order ---- */

/* Returns whether items of a counted stream lie within their packet. Losses lie before the packet that reports them. */
static bool items_lie_within(const struct ctf_stream *s, const struct ctf_packet *p)
{
    int64_t first = p->begin;
    for (uint32_t i = 0; i < p->n_losses; i++)
        first = s->losses.v[p->loss + i].ts < first ? s->losses.v[p->loss + i].ts : first;
    return !p->items || (p->first >= first && p->last <= p->end);
}

static bool is_ordered(const struct ctf_stream *s, bool counted)
{
    if (s->timed && (!s->begins_ascend || !s->ends_ascend || s->tracks > 1))
        return false;
    if (counted && s->disorder)
        return false;
    for (size_t i = 0; i < s->packets.n && counted && s->timed; i++)
        if (!items_lie_within(s, &s->packets.v[i]))
            return false;
    return true;
}

bool ctf_trace_is_ordered(const struct ctf_trace *t, bool *certain)
{
    bool ordered = true, counted = atomic_load_explicit(&t->counted, memory_order_acquire);
    for (size_t i = 0; i < t->streams.n && ordered; i++)
        ordered = is_ordered(&t->streams.v[i], counted);
    if (certain)
        *certain = counted;
    return ordered;
}
