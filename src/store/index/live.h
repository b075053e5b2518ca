/* SPDX-License-Identifier: MIT */
/* A recording that is not at its end, indexed while it grows, and asked about while it is.
 *
 *     ctf_feed_packet …, ctf_feed_quiet …      or ctf_trace_refresh
 *     index_live_read                          takes what is certain now
 *     index_live_ask                           everything above index on what happened before index_live_until
 *     ctf_feed_end, or ctf_trace_end; index_live_end
 *
 * Traces are fed packet by packet, or lie in directories that grow (ctf/feed.h). An answer is that of one pass over
 * what happened before the time that it is right up to; what comes later changes nothing of an answer that was given.
 *
 * Threads: a recording (its feed or trace, and its live index) has no lock of its own. Any thread may feed or refresh,
 * read, ask and end it, one at a time: who has several, such as one that feeds and others that ask, has a lock around
 * these calls; index_live_ask needs that of all recordings that it asks. An answer needs none: it is as any experiment,
 * which nothing changes, for any threads, and is closed by any, while the recording goes on.
 * Included beside index/index.h. */
#ifndef WEFT_INDEX_LIVE_H
#define WEFT_INDEX_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctf_trace; struct err; struct experiment; struct index_live; struct index_options;

/* Of a trace that is fed or followed, whose classes and first metadata are known; it must outlive the live index, which
 * is the only one to merge it. directory: of its stores, of this recording alone; made when it is not there; NULL:
 * where `weft index` has those of the directories that it has now. Nobody else builds there meanwhile. Of the options
 * `store`, `memory`, `threads` and `force` are used.
 *
 * Chunks that the directory has from a run before are gone on from, unless options->force:
 * - of a directory that is followed those whose packets lie in files that did not change since (archives);
 * - of what is fed all. It must then be fed again from the begin of the recording (lttng-relayd: SEEK_BEGINNING), which
 *   is read and compared, but not indexed, up to where they end. Until then questions are answered from them.
 *
 * ERR_UNSUPPORTED: a kernel trace of which no scheduling or network events are declared yet: to be called again when
 * more metadata came. */
int index_live_new(struct ctf_trace *, const char *directory, const struct index_options *, struct index_live **out,
    struct err *e);
/* What was not sealed is left to be found by nobody. Before its trace; experiments that were asked for may live on as
 * long as the trace does. */
void index_live_free(struct index_live *);

/* Takes what is certain now, some more than `most` items at a time at most. *more: there is more of it. Holds `memory`
 * at most for what is not in files yet.
 * Errors: a disk that is full, a file of the trace that was cut off; ERR_STALE: what is fed again is not what the
 * directory's chunks were made of. After an error every call gives it again: free it, and make a new one, which goes on
 * from the chunks that were sealed. Then a directory that is followed loses nothing; what is fed is to be fed again. */
int index_live_read(struct index_live *, size_t most, bool *more, struct err *e);
/* The time up to which all was read, or up to which chunks were found: answers are right up to it (ns, the host's
 * clock; not included). INT64_MIN: nothing is known yet. Never goes back. */
int64_t index_live_until(const struct index_live *);
/* Items that came so late that answers given before should have had them: they are left out of all chunks, and noted.
 * Those that came late, but before they were asked about, are in them; they are noted too. */
uint64_t index_live_left_out(const struct index_live *);

/* What n recordings together say by now: first reads all that is certain. names: of their hosts, or NULL, as in
 * `NAME=TRACE`; traces of one host join as in experiment_open. Costs what came since it was asked before, what is open
 * (threads, connections, calls), and the opening of the chunks, not their events.
 *
 * Graphs, flows, states, stacks, rows and their ids, counts of events by class (in all), clocks, notes and losses are
 * all there. What is not, for the events themselves are not kept: reading them (ERR_UNSUPPORTED from a merge), so the
 * tables of events, and index_types_count of a part of the time. No file is beside the stores: clocks are found anew.
 * Traces of one host keep the clock offsets that they were recorded with.
 * experiment_close it before the traces. A failure to write what only answers need leaves the recordings as they were.
 */
int index_live_ask(struct index_live *const *, const char *const *names, size_t n, struct experiment **out,
    struct err *e);

/* The recording is over (ctf_feed_end, ctf_trace_end): reads the rest, and leaves the stores as `weft index` does; what
 * was followed is opened from then on (experiment_open) without building anything. ERR_ARG: it is not over. */
int index_live_end(struct index_live *, struct err *e);

#endif
