/* SPDX-License-Identifier: MIT */
/* Position of a time in a counted stream: its packet, and the mark in the packet. */
#include "ctf/merge.h"

#include "base/search.h"

int64_t ctf_merge_item_time(const struct cursor *c, int64_t ts)
{
    return ts == INT64_MIN ? ts : ctf_merge_corrected(c->source, ts);
}

size_t ctf_merge_packets_begun(const struct cursor *c, int64_t time)
{
    const struct ctf_stream *s = c->stream;
    size_t hi = s->packets.n;
    if (s->tracks > 1) {
        while (hi > 0 &&
            (s->packets.v[hi - 1].track != c->track || ctf_merge_item_time(c, s->packets.v[hi - 1].first) >= time))
            hi--;
        return hi;
    }
    return search_first(i, 0, hi, ctf_merge_item_time(c, s->packets.v[i].first) >= time);
}

uint32_t ctf_merge_marks_begun(const struct cursor *c, const struct ctf_packet *p, int64_t time)
{
    return (uint32_t)search_first(i, 0, p->marks, ctf_merge_item_time(c, c->stream->marks[p->mark + i].first) >= time);
}

bool ctf_merge_to_mark(struct cursor *c, int64_t time, uint64_t *before)
{
    const struct ctf_packet *p = c->packet;
    uint32_t marks = ctf_merge_marks_begun(c, p, time);
    if (!marks)
        return false;
    const struct ctf_mark *mark = &c->stream->marks[p->mark + marks - 1];
    c->d.pos = mark->pos_bits;
    c->d.run.order = 0; /* byte order of the previous event: unknown here */
    c->d.cycles = mark->cycles;
    c->d.last = INT64_MIN;
    *before = mark->before;
    return true;
}

uint64_t ctf_merge_jump(struct ctf_merge *m, struct cursor *c, int64_t time)
{
    size_t n = ctf_merge_packets_begun(c, time);
    if (n == 0)
        return 0;
    const struct ctf_packet *p = &c->stream->packets.v[n - 1];
    uint64_t passed = 0;
    file_map_close(&c->window);
    c->gave = false;
    c->head->at = c->head->end = NULL;
    c->packet = NULL;
    c->next_packet = n - 1;
    c->d.cycles = p->cycles;
    if (p->marks && ctf_merge_next_packet(m, c) && ctf_merge_to_mark(c, time, &passed))
        c->next_loss = p->n_losses;
    return p->before + passed;
}
