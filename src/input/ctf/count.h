/* SPDX-License-Identifier: MIT */
/* Private to ctf: counts the items of each packet while they are read, and sets marks from which decoding can go on
 * inside packets. */
#ifndef WEFT_CTF_COUNT_H
#define WEFT_CTF_COUNT_H

#include "ctf/trace.h"

/* One track of a stream being counted, packet after packet. Zero-initialise. */
struct ctf_track_count {
    VEC(struct ctf_counted { uint32_t packet; struct ctf_packet_count count; }) packets; /* as they were read */
    VEC(struct ctf_mark) marks; /* theirs, in this order */
    uint64_t marked;         /* items of the last packet before its last mark */
    int64_t last;            /* time of its last item */
    size_t told, told_marks; /* packets and marks that were asked for already */
    uint64_t key;            /* of the last packet that was told */
};
/* At most so many items may be read at once: marks lie at fixed items, however a trace is read. */
size_t ctf_count_room(const struct ctf_track_count *, size_t max);
/* The next packet; `cycles`: the clock before it, 0 where it tells its begin. */
void ctf_count_packet(struct ctf_track_count *, uint32_t packet, uint64_t cycles);
/* Its next items. pos, cycles: of the decoder before it read the first of them; losses have none (UINT64_MAX). */
void ctf_count_items(struct ctf_track_count *, const struct ctf_event *, size_t n, uint64_t pos, uint64_t cycles);
void ctf_count_fini(struct ctf_track_count *);

/* What is found of the packets of a trace, wherever it comes from. Borrows. */
struct ctf_found { const struct ctf_packet_count *count; const struct ctf_mark *marks; }; /* NULL: not known */
struct ctf_found **ctf_found_new(const struct ctf_trace *); /* by stream, by packet */
void ctf_found_free(const struct ctf_trace *, struct ctf_found **);
void ctf_found_track(struct ctf_found *of_stream, const struct ctf_track_count *);
/* Copies what was found into the trace, unless it is counted already. Every packet is known. */
void ctf_counts_take(const struct ctf_trace *, struct ctf_found *const *);

/* recall.c: by packets' keys, what the trace was told to remember. Returns whether every packet is known then. Who asks
 * holds the trace's `counting`. */
bool ctf_recall_find(struct ctf_trace *, struct ctf_found **);
/* Counts the trace by what it remembers, if that is enough; reads nothing, waits for nobody who does. */
void ctf_trace_recall(const struct ctf_trace *);
void ctf_recall_fini(struct ctf_trace *);

/* range.c: which packet it is: by its head, how it is read, where it lies, the losses that it reports. That its
 * contents are the same, the fingerprints of ranges tell. before: the key of the packet before it in the stream, of
 * which the clock goes on where packets have no times. */
uint64_t ctf_packet_key(const struct ctf_trace *, const struct ctf_stream *, const struct ctf_packet *,
    uint64_t before);

#endif
