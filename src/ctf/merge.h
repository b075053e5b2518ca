/* Private to ctf: a merge, for what reads it (merge.c) and what positions it (marks.c, seek.c). */
#ifndef WEFT_CTF_MERGE_H
#define WEFT_CTF_MERGE_H

#include "ctf/count.h"

/* What the tournament compares, most significant first: time (biased to unsigned), rank of the stream, number of its
 * packet, number of the cursor. */
typedef unsigned __int128 merge_key;
#define KEY_NONE (~(merge_key)0)
enum { CURSOR_BITS = 20, PACKET_BITS = 24 };
enum { CURSORS_MAX = (1 << CURSOR_BITS) - 1 };

/* What the tournament needs of a cursor, small enough that hundreds fit the first cache. */
struct merge_head {
    const struct ctf_event *at, *end; /* decoded and not yet given */
    int64_t next_ts;                  /* of at[1], when there is one */
    uint64_t tie;                     /* low half of the key */
};

struct cursor {
    struct ctf_event *batch;
    const struct ctf_trace *trace;
    const struct ctf_source *source;
    const struct ctf_stream *stream;
    const struct ctf_packet *packet;  /* being read; NULL before the first and after the last */
    size_t next_packet;
    const struct ctf_loss *losses;    /* the stream's, corrected; NULL: as recorded */
    uint64_t rank;
    uint32_t track, next_loss;
    bool gave;                        /* items of its packet */
    struct ctf_track_count *count;    /* NULL: nothing is counted */
    struct merge_head *head;
    struct file_map window;           /* its packet's, of files that are not kept mapped */
    struct ctf_decoder d;
};

struct ctf_merge {
    struct ctf_source *sources;
    size_t n_sources;
    uint32_t *first_stream;           /* by source; one more at the end */
    struct ctf_window window;
    int only_stream;
    struct cursor *cursors;
    size_t n_cursors, leaves;         /* leaves: a power of two */
    struct merge_head *heads;         /* by cursor */
    merge_key *nodes;                 /* [0] the winner, [1..leaves) losers */
    struct ctf_event *events;         /* all batches */
    size_t batch;
    VEC(struct ctf_loss *) corrected;
    struct ctf_stream_count **counts; /* by source, while it counts; else NULL */
    struct ctf_problems problems;
    bool started;
    VEC(struct file_map) spent;       /* windows of events that were given: until the next call */
    struct err why;                   /* code 0, or why a packet could not be had */
    bool lost;                        /* a file was cut off, or a packet could not be had: no more events */
};

/* Goes to the track's next packet that the window may need. */
bool ctf_merge_next_packet(struct ctf_merge *, struct cursor *);
/* Decodes the cursor's next batch; the key of its first event, KEY_NONE at the track's end. */
merge_key ctf_merge_refill(struct ctf_merge *, struct cursor *);
static inline int64_t ctf_merge_corrected(const struct ctf_source *s, int64_t ts)
{
    if (s->map)
        s->map(s->map_arg, &ts, 1);
    return ts;
}
static inline bool ctf_merge_limited(struct ctf_window w) { return w.begin != INT64_MIN || w.end != INT64_MAX; }

/* ---- marks.c: of counted streams whose times ascend ---- */

/* The time as this merge gives it. INT64_MIN, of packets without items before the first item, stays. */
int64_t ctf_merge_item_time(const struct cursor *, int64_t ts);
/* The number behind that of the last packet of the track whose first item is before the time; 0: none. */
size_t ctf_merge_packets_begun(const struct cursor *, int64_t time);
/* How many of the packet's marks are before the time. */
uint32_t ctf_merge_marks_begun(const struct cursor *, const struct ctf_packet *, int64_t time);
/* Lets the cursor go on in its packet from the last mark before the time, if there is one. *before: items passed. */
bool ctf_merge_to_mark(struct cursor *, int64_t time, uint64_t *before);

#endif
