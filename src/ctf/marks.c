/* Where a time lies in a counted stream: at which packet, and at which mark of it. */
#include "ctf/merge.h"

int64_t ctf_merge_item_time(const struct cursor *c, int64_t ts)
{
    return ts == INT64_MIN ? ts : ctf_merge_corrected(c->source, ts);
}

size_t ctf_merge_packets_begun(const struct cursor *c, int64_t time)
{
    const struct ctf_stream *s = c->stream;
    size_t lo = 0, hi = s->packets.n;
    if (s->tracks > 1) {
        while (hi > 0 &&
            (s->packets.v[hi - 1].track != c->track || ctf_merge_item_time(c, s->packets.v[hi - 1].first) >= time))
            hi--;
        return hi;
    }
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (ctf_merge_item_time(c, s->packets.v[mid].first) < time)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

uint32_t ctf_merge_marks_begun(const struct cursor *c, const struct ctf_packet *p, int64_t time)
{
    uint32_t lo = 0, hi = p->marks;
    while (lo < hi) {
        uint32_t mid = (lo + hi) / 2;
        if (ctf_merge_item_time(c, c->stream->marks[p->mark + mid].first) < time)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool ctf_merge_to_mark(struct cursor *c, int64_t time, uint64_t *before)
{
    const struct ctf_packet *p = c->packet;
    uint32_t marks = ctf_merge_marks_begun(c, p, time);
    if (!marks)
        return false;
    const struct ctf_mark *mark = &c->stream->marks[p->mark + marks - 1];
    c->d.pos = mark->pos_bits;
    c->d.cycles = mark->cycles;
    *before = mark->before;
    return true;
}
