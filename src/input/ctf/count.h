/* SPDX-License-Identifier: MIT */
/* Private to ctf: counts the items of each packet during reading, and sets marks from which decoding can continue
 * inside packets. */
#ifndef WEFT_CTF_COUNT_H
#define WEFT_CTF_COUNT_H

#include "ctf/trace.h"

/* Counts of one track of a stream, packet after packet. Zero-initialise. */
struct ctf_track_count {
    VEC(struct ctf_counted { uint32_t packet; struct ctf_packet_count count; }) packets; /* packets as read */
    VEC(struct ctf_mark) marks; /* marks of `packets`, in this order */
    uint64_t marked;         /* items of the last packet before its last mark */
    int64_t last;            /* time of its last item */
    size_t told, told_marks; /* packets and marks returned already */
    uint64_t key;            /* key of the last packet returned */
};
/* Returns the number of items to read at once, at most `max`: marks lie at fixed items, however a trace is read. */
size_t ctf_count_room(const struct ctf_track_count *, size_t max);
/* Begins the next packet; `cycles`: the clock before it, 0 if packets have a begin time. */
void ctf_count_packet(struct ctf_track_count *, uint32_t packet, uint64_t cycles);
/* Counts its next items. pos, cycles: state of the decoder before it read the first; losses have none (UINT64_MAX). */
void ctf_count_items(struct ctf_track_count *, const struct ctf_event *, size_t n, uint64_t pos, uint64_t cycles);
void ctf_count_fini(struct ctf_track_count *);

/* Counts of a trace's packets, from any origin. Borrows. */
struct ctf_found { const struct ctf_packet_count *count; const struct ctf_mark *marks; }; /* NULL: not known */
struct ctf_found **ctf_found_new(const struct ctf_trace *); /* array by stream, of arrays by packet */
void ctf_found_free(const struct ctf_trace *, struct ctf_found **);
void ctf_found_track(struct ctf_found *of_stream, const struct ctf_track_count *);
/* Copies the counts into the trace, unless it is counted already. Every packet must be known. */
void ctf_counts_take(const struct ctf_trace *, struct ctf_found *const *);

/* recall.c: finds, by packets' keys, the counts given to the trace. Returns whether every packet is known then. The
 * caller holds the trace's `counting`. */
bool ctf_recall_find(struct ctf_trace *, struct ctf_found **);
/* Counts the trace by given counts, if they are complete; reads nothing, and does not wait for a thread that reads. */
void ctf_trace_recall(const struct ctf_trace *);
void ctf_recall_fini(struct ctf_trace *);

/* range.c: key of a packet: hash of its head, layout, place and reported losses. Equal contents are ensured by the
 * fingerprints of ranges. before: key of the packet before it in the stream, whose clock continues if packets have no
 * times. */
uint64_t ctf_packet_key(const struct ctf_trace *, const struct ctf_stream *, const struct ctf_packet *,
    uint64_t before);

#endif
