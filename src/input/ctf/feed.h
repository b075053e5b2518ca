/* SPDX-License-Identifier: MIT */
/* Traces that are still being recorded: fed packet by packet, as from lttng-relayd, or in directories that grow. Part
 * of ctf.
 *
 *
 * A merge over such traces (ctf_merge_new) returns the items that certainly come next, then 0 for "no more now"; it
 * continues after the trace has grown. Order and items equal those of one merge over the complete trace, for any
 * portions, with two exceptions. A loss that begins before a time up to which its stream was declared quiet lies at
 * that time. Late items (below) are returned at once, and reported.
 * Only one thread at a time may feed or refresh a trace, merge it and query it. */
#ifndef WEFT_CTF_FEED_H
#define WEFT_CTF_FEED_H

#include "ctf/ctf.h"

/* ---- reading ---- */

/* Returns, after ctf_merge_next returned 0: true at the end of all; false if more may come. */
bool ctf_merge_ended(const struct ctf_merge *);
/* Returns the time (ns, corrected) before which all items have been returned once ctf_merge_next returned 0. INT64_MIN:
 * not known. It never decreases: if a trace gets a stream of which nothing is known yet, it stays. */
int64_t ctf_merge_until(const struct ctf_merge *);
/* Number of items so far that came too late: items of a later time had been returned before. Each kind is also a
 * problem. */
uint64_t ctf_merge_late(const struct ctf_merge *);
/* Returns the number of a merge's stream in its trace, *source as ctf_merge_source. Streams of such a merge are
 * numbered in order of arrival. */
size_t ctf_merge_stream(const struct ctf_merge *, uint32_t stream, uint32_t *source);

/* Returns the time (ns) before which nothing more will come. INT64_MAX: the trace is complete.
 * For a trace opened as complete: the time up to which all its streams are known. This is the least end of the streams
 * in its last directory, since a part of a recording can end there. INT64_MIN if packets have no times. */
int64_t ctf_trace_sealed_until(const struct ctf_trace *);

/* Returns a snapshot of the trace's declarations, names and known streams, which does not change when the trace grows;
 * any thread may use it. It has no packets; a merge of it is refused (ERR_UNSUPPORTED). Must be closed
 * (ctf_trace_close) before the original. fingerprint: its ctf_trace_fingerprint. */
struct ctf_trace *ctf_trace_still(const struct ctf_trace *, uint64_t fingerprint);

/* Returns whether the trace is fed (below), so that its packets are gone after reading. */
bool ctf_trace_is_fed(const struct ctf_trace *);
/* Returns whether more may come. */
bool ctf_trace_is_growing(const struct ctf_trace *);

/* ---- fed ---- */

struct ctf_feed;
/* `name`: prefix of problems, and the trace's path. `schemas` may be NULL. */
struct ctf_feed *ctf_feed_new(const char *name, struct ctf_schemas *);
void ctf_feed_free(struct ctf_feed *);  /* frees its trace too; call after its merge is freed */
/* Appends bytes of the metadata, in any portions (whole packets if they are packetised). Classes keep their numbers and
 * places, new ones are appended: class numbers, ctf_access and bindings made before stay valid. Must come before the
 * packets that need them. An incomplete statement at the end waits for the bytes that complete it. Errors leave the
 * trace unchanged, without those bytes; ERR_FORMAT also if they contradict earlier ones. While there is no trace yet,
 * the bytes are kept, and more may complete them. */
int ctf_feed_metadata(struct ctf_feed *, const void *, size_t n, struct err *e);
/* Returns the trace, for one merge; NULL before there are readable metadata. */
struct ctf_trace *ctf_feed_trace(const struct ctf_feed *);

/* Adds a line: packets of one stream of the tracer (or of several, as in a file), in order. Returns its number. `name`:
 * the name of its file, which distinguishes streams if packets do not. No items are returned while any line has neither
 * packets nor a quiet time. */
uint32_t ctf_feed_line(struct ctf_feed *, const char *name);
/* Appends one or more whole packets; copies them. Later packets of the line must begin at or after their end (else
 * ctf_feed_hold, below, keeps them in order). Bad packets are problems of the trace. ERR_ARG: no metadata yet, or the
 * line has ended. */
int ctf_feed_packet(struct ctf_feed *, uint32_t line, const void *, size_t n, struct err *e);
/* Declares that the line has no further event before this time (ns). The time never goes back. */
void ctf_feed_quiet(struct ctf_feed *, uint32_t line, int64_t until);
void ctf_feed_line_end(struct ctf_feed *, uint32_t line);
/* Holds back items from this time on, whatever lines declare, because lines not known yet may begin there. INT64_MAX at
 * first: then later lines must not bring items from before the times declared by the others. */
void ctf_feed_hold(struct ctf_feed *, int64_t until);
/* Ends the feed: no more data will come. */
void ctf_feed_end(struct ctf_feed *);
/* Converts cycles of the clock of a stream class, as in indexes and beacons, to ns. False: there is no such class. */
bool ctf_feed_time(const struct ctf_feed *, uint64_t class_id, uint64_t cycles, int64_t *ns);

/* ---- directories that grow ---- */

/* Opens a trace that is still being written, like ctf_trace_open. An incomplete packet at a file's end is not damage;
 * it is still to come. */
int ctf_trace_follow(const struct ctf_group *, struct ctf_schemas *, struct ctf_trace **out, struct err *e);
struct ctf_trace_news { size_t files, packets, classes; bool late; };
/* Finds additions: packets after the known ones of a file, new files, new directories (of the group, or NULL: the
 * same), new metadata. Skips directories followed as part of another trace. late: some packets begin before known ones;
 * merges created from now on have them in order, with the losses of a fresh opening. ERR_LOST: a file became shorter or
 * was replaced; events read from it since then cannot be trusted. */
int ctf_trace_refresh(struct ctf_trace *, const struct ctf_group *, struct ctf_trace_news *, struct err *e);
/* Ends the growth: the ends of files are now read as in ctf_trace_open. */
int ctf_trace_end(struct ctf_trace *, struct err *e);

#endif
