/* Private to ctf: counts the items of each packet while they are read, and sets marks from which decoding can go on
 * inside packets. */
#ifndef WEFT_CTF_COUNT_H
#define WEFT_CTF_COUNT_H

#include "ctf/trace.h"

/* One track of a stream being counted, packet after packet. */
struct ctf_track_count {
    struct ctf_packet_count *packets; /* all of the stream's; borrowed */
    VEC(struct ctf_track_mark { uint32_t packet; struct ctf_mark mark; }) marks; /* owned */
    uint32_t packet;
    uint64_t marked;         /* items of the packet before its last mark */
    int64_t last;            /* time of the last item */
    bool disorder;
};
/* At most so many items may be read at once: marks lie at fixed items, however a trace is read. */
size_t ctf_count_room(const struct ctf_track_count *, size_t max);
/* The next packet; `cycles`: the clock before it. */
void ctf_count_packet(struct ctf_track_count *, uint32_t packet, uint64_t cycles);
/* Its next items. pos, cycles: of the decoder before it read the first of them; losses have none (UINT64_MAX). */
void ctf_count_items(struct ctf_track_count *, const struct ctf_event *, size_t n, uint64_t pos, uint64_t cycles);

/* The counts of one stream: by packet, and by track. */
struct ctf_stream_count { struct ctf_packet_count *packets; struct ctf_track_count *tracks; };
/* One for each stream of the trace; ctf_counts_drop frees them. */
struct ctf_stream_count *ctf_counts_new(const struct ctf_trace *);
void ctf_counts_drop(const struct ctf_trace *, struct ctf_stream_count *);
/* Copies the counts (by stream) into the trace, unless it is counted already. */
void ctf_counts_take(const struct ctf_trace *, const struct ctf_stream_count *);

#endif
