/* SPDX-License-Identifier: MIT */
/* Traces that are not at their end: fed packet by packet, as from lttng-relayd, or lying in directories that grow.
 * Part of ctf.
 *
 * A merge over such traces (ctf_merge_new) gives what is certain to come next and then 0 for "no more now"; after the
 * trace has grown it goes on. Order and items are those of one merge over the trace when it is whole, for any portions,
 * with two exceptions: a loss that begins before a time up to which its stream was said to be quiet lies at that time,
 * and what comes later than was said (below) is given as soon as it is there, and told.
 * One thread at a time feeds or refreshes a trace, merges it and asks about it. */
#ifndef WEFT_CTF_FEED_H
#define WEFT_CTF_FEED_H

#include "ctf/ctf.h"

/* ---- reading ---- */

/* After ctf_merge_next gave 0: true at the end of all; false: more may come. */
bool ctf_merge_ended(const struct ctf_merge *);
/* All items before this time (ns, corrected) have been given once ctf_merge_next gave 0; INT64_MIN: nothing is known.
 * Does not go back but for a trace that gets a stream of which nothing is known yet: then it is held where it was. */
int64_t ctf_merge_until(const struct ctf_merge *);
/* Items given so far that came too late: others of a later time had been given before. Each kind is a problem too. */
uint64_t ctf_merge_late(const struct ctf_merge *);
/* Of streams of a merge, which are numbered as they come: number in their trace, *source as ctf_merge_source. */
size_t ctf_merge_stream(const struct ctf_merge *, uint32_t stream, uint32_t *source);

/* The time up to which nothing comes any more: all that will come is at or after it (ns). INT64_MAX: it is whole.
 * Of a trace that was opened whole: up to where all its streams are known, which is the least end of those that its
 * last directory has: a part of a recording can end there. INT64_MIN when packets have no times. */
int64_t ctf_trace_sealed_until(const struct ctf_trace *);

/* What it declares and is called now, and what is known of its streams, as a trace that does not change when this one
 * grows: for any thread. It has no packets; a merge of it is refused (ERR_UNSUPPORTED). ctf_trace_close it before this
 * one. fingerprint: its ctf_trace_fingerprint. */
struct ctf_trace *ctf_trace_still(const struct ctf_trace *, uint64_t fingerprint);

/* Is it fed (below), so that its packets are gone once they are read? */
bool ctf_trace_is_fed(const struct ctf_trace *);
/* May more come? */
bool ctf_trace_is_growing(const struct ctf_trace *);

/* ---- fed ---- */

struct ctf_feed;
/* `name`: what problems begin with, and the trace's path. `schemas` may be NULL. */
struct ctf_feed *ctf_feed_new(const char *name, struct ctf_schemas *);
void ctf_feed_free(struct ctf_feed *);  /* with its trace; after its merge */
/* The metadata's next bytes, in any portions (whole packets where they are packetised). Classes keep their numbers and
 * places, new ones are appended: class numbers, ctf_access and bindings made before stay good. To be given before the
 * packets that need them. A statement at the end that is not whole is read with the bytes that complete it. Errors
 * leave the trace as it was, without those bytes: ERR_FORMAT also when they contradict what was there. While there is
 * no trace yet, the bytes stay, and more may make them good. */
int ctf_feed_metadata(struct ctf_feed *, const void *, size_t n, struct err *e);
/* The trace, for one merge; NULL before there are metadata that can be read. */
struct ctf_trace *ctf_feed_trace(const struct ctf_feed *);

/* A line brings the packets of one stream of the tracer (or some, as a file may), in order. Returns its number. `name`:
 * the name of its file, which tells streams apart where packets do not. Nothing is given while a line has said nothing.
 */
uint32_t ctf_feed_line(struct ctf_feed *, const char *name);
/* One whole packet, or several; copied. The line then goes on at the packets' end: those that come later begin there or
 * later (or hold, below, keeps them in order). Bad packets are problems of the trace. ERR_ARG: no metadata yet, or the
 * line has ended. */
int ctf_feed_packet(struct ctf_feed *, uint32_t line, const void *, size_t n, struct err *e);
/* The line says: no event before this time (ns) will come. It never goes back. */
void ctf_feed_quiet(struct ctf_feed *, uint32_t line, int64_t until);
void ctf_feed_line_end(struct ctf_feed *, uint32_t line);
/* Nothing from this time on is given, whatever lines say: some that are not known yet may begin there. INT64_MAX at
 * first: lines that come later must not bring anything from before what the others have said. */
void ctf_feed_hold(struct ctf_feed *, int64_t until);
/* Nothing comes any more. */
void ctf_feed_end(struct ctf_feed *);
/* A time in cycles of the clock of a stream class, as indexes and beacons have it. False: there is no such class. */
bool ctf_feed_time(const struct ctf_feed *, uint64_t class_id, uint64_t cycles, int64_t *ns);

/* ---- directories that grow ---- */

/* As ctf_trace_open, for a trace that is still being written: what lies at a file's end and is not a whole packet is
 * not damage, but not there yet. */
int ctf_trace_follow(const struct ctf_group *, struct ctf_schemas *, struct ctf_trace **out, struct err *e);
struct ctf_trace_news { size_t files, packets, classes; bool late; };
/* Finds what came: packets behind those known of a file, new files, new directories (of the group, or NULL: the same),
 * new metadata. Looks only at directories that another one does not follow. late: some packets lie before what was
 * there; merges made from now on have them in order, their losses are those of a fresh opening. ERR_LOST: a file became
 * shorter or another one: what was read of it then cannot be believed. */
int ctf_trace_refresh(struct ctf_trace *, const struct ctf_group *, struct ctf_trace_news *, struct err *e);
/* Nothing comes any more: what lies at files' ends is read as ctf_trace_open reads it. */
int ctf_trace_end(struct ctf_trace *, struct err *e);

#endif
