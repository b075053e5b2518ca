/* SPDX-License-Identifier: MIT */
/* Private to ctf: a merge, shared by reading (merge.c) and positioning (marks.c, seek.c). */
#ifndef WEFT_CTF_MERGE_H
#define WEFT_CTF_MERGE_H

#include "ctf/count.h"

/* Key of the tournament, most significant first: time (biased to unsigned), rank of the stream, number of its packet,
 * number of the cursor. */
typedef unsigned __int128 merge_key;
#define KEY_NONE (~(merge_key)0)
enum { CURSOR_BITS = 20, PACKET_BITS = 24 };
enum { CURSORS_MAX = (1 << CURSOR_BITS) - 1 };

/* Part of a cursor that the tournament needs, small enough that hundreds fit the first cache. */
struct merge_head {
    const struct ctf_event *at, *end; /* decoded, not yet returned */
    int64_t next_ts;                  /* time of at[1], if there is one */
    uint64_t tie;                     /* low half of the key */
};

struct cursor {
    struct ctf_event *batch;
    const struct ctf_trace *trace;
    const struct ctf_source *source;
    const struct ctf_stream *stream;
    const struct ctf_packet *packet;  /* current packet; NULL before the first and after the last */
    size_t next_packet, end_packet;   /* end_packet: the window may need none from here on */
    const struct ctf_loss *losses;    /* losses of the stream, corrected; NULL: as recorded */
    const void *loss_base;            /* growing traces: array that losses among its events point into */
    uint64_t rank, gone;              /* gone: packets freed by its stream */
    uint32_t track, next_loss;
    bool gave;                        /* items of its packet were returned */
    struct ctf_track_count *count;    /* NULL: no counting */
    struct merge_head *head;
    struct file_map window;           /* map of its packet, for files that are not kept mapped */
    struct ctf_decoder d;
};

struct ctf_merge {
    struct ctf_source *sources;
    size_t n_sources;
    uint32_t *first_stream;           /* first stream by source; one more at the end */
    struct ctf_window window;
    int only_stream;
    struct cursor *cursors;
    size_t n_cursors, leaves;         /* leaves: a power of two */
    struct merge_head *heads;         /* heads by cursor */
    merge_key *nodes;                 /* [0] the winner, [1..leaves) losers */
    merge_key stop;                   /* exclusive upper bound of the next key: KEY_NONE except for growing traces */
    struct merge_growth *growth;      /* NULL: all traces are complete */
    struct ctf_event *events;         /* events of all batches */
    size_t batch;
    VEC(struct ctf_loss *) corrected;
    struct ctf_track_count *counts;   /* counts by cursor; NULL: no counting */
    struct ctf_problems problems;
    bool started;
    VEC(struct file_map) spent;       /* windows of returned events, kept until the next call */
    struct err why;                   /* code 0, or the reason why a packet could not be read */
    bool lost;                        /* a file was cut off, or a packet could not be read: no more events */
};

/* Stream of a merge of growing traces. */
struct merge_stream {
    uint32_t source, stream, tracks;  /* tracks: number of tracks with a cursor */
    struct ctf_loss *losses;          /* corrected; NULL: as recorded */
    size_t n_losses;
    size_t passed, gone, losses_gone; /* used while packets are freed */
};
/* Additional state of such a merge (merge_grow.c). */
struct merge_growth {
    struct merge_seen { uint64_t version; uint32_t streams; } *seen; /* seen state by source */
    VEC(struct merge_stream) streams; /* streams by number, in order of arrival */
    size_t room;                      /* allocated cursors */
    int64_t until, known;             /* times: ctf_merge_until; latest up to which all was returned */
    uint64_t late;
    bool open;                        /* items may still come */
};
struct merge_growth *ctf_merge_growth_new(const struct ctf_merge *);
void ctf_merge_growth_free(struct ctf_merge *);
/* Adds the data that arrived since the last call. */
void ctf_merge_grow(struct ctf_merge *);
void ctf_merge_note_late(struct ctf_merge *, const struct ctf_event *, size_t n);
/* Sets the range of packets of its stream that the cursor needs for the merge's window. */
void ctf_merge_place(const struct ctf_merge *, struct cursor *);
void ctf_merge_place_end(const struct ctf_merge *, struct cursor *); /* sets only the last of them */
/* merge.c: order of the sources at equal times. `order`: a number for each source. */
void ctf_merge_rank_sources(const struct ctf_merge *, size_t *order);
static inline merge_key ctf_merge_key(int64_t ts, uint64_t tie)
{
    return (merge_key)((uint64_t)ts ^ (uint64_t)1 << 63) << 64 | tie;
}
static inline uint64_t ctf_merge_tie(const struct ctf_merge *m, const struct cursor *c)
{
    uint64_t packet = c->gone + c->next_packet;
    packet = packet < 1u << PACKET_BITS ? packet : (1u << PACKET_BITS) - 1;
    return c->rank << (PACKET_BITS + CURSOR_BITS) | packet << CURSOR_BITS | (uint64_t)(c - m->cursors);
}

/* Goes to the track's next packet that the window may need. */
bool ctf_merge_next_packet(struct ctf_merge *, struct cursor *);
/* Decodes the cursor's next batch. Returns the key of its first event; KEY_NONE at the track's end. */
merge_key ctf_merge_refill(struct ctf_merge *, struct cursor *);
static inline int64_t ctf_merge_corrected(const struct ctf_source *s, int64_t ts)
{
    if (s->map)
        s->map(s->map_arg, &ts, 1);
    return ts;
}
static inline bool ctf_merge_limited(struct ctf_window w) { return w.begin != INT64_MIN || w.end != INT64_MAX; }

/* ---- marks.c: counted streams with ascending times ---- */

/* Returns the time as corrected by this merge. INT64_MIN, of packets without items before the first item, is
 * unchanged. */
int64_t ctf_merge_item_time(const struct cursor *, int64_t ts);
/* Returns the number after that of the track's last packet whose first item is before the time; 0: none. */
size_t ctf_merge_packets_begun(const struct cursor *, int64_t time);
/* Returns the number of the packet's marks before the time. */
uint32_t ctf_merge_marks_begun(const struct cursor *, const struct ctf_packet *, int64_t time);
/* Moves the cursor, in its packet, to the last mark before the time, if there is one. *before: items skipped. */
bool ctf_merge_to_mark(struct cursor *, int64_t time, uint64_t *before);
/* Moves the cursor to the last packet, or mark, that begins before the time; not at all if there is none. Returns the
 * number of the track's items before it. */
uint64_t ctf_merge_jump(struct ctf_merge *, struct cursor *, int64_t time);

#endif
