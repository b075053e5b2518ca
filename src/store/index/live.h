/* SPDX-License-Identifier: MIT */
/* Growing recording, indexed and queried while it grows.
 *
 *     ctf_feed_packet …, ctf_feed_quiet …      or ctf_trace_refresh
 *     index_live_read                          takes what is certain now
 *     index_live_ask                           everything above index on what happened before index_live_until
 *     ctf_feed_end, or ctf_trace_end; index_live_end
 *
 * Traces are fed packet by packet, or lie in directories that grow (ctf/feed.h). An answer is that of one pass over
 * what happened before the time up to which it is right. Later events change nothing in an answer already given.
 *
 * Threads: a recording (its feed or trace, and its live index) has no lock of its own. Any thread may feed or refresh,
 * read, ask and end it, one at a time. Callers with several threads, such as a feeder and readers, need a lock around
 * these calls; index_live_ask needs the locks of all recordings involved. An answer needs no lock: it is an immutable
 * experiment, for any threads, and may be closed by any of them while the recording continues.
 * Included beside index/index.h. */
#ifndef WEFT_INDEX_LIVE_H
#define WEFT_INDEX_LIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ctf_trace; struct err; struct experiment; struct index_live; struct index_options;

/* Creates the live index of a trace that is fed or followed. Its classes and first metadata must be known. The trace
 * must outlive the live index, and nobody else may merge it. directory: for the stores of this recording alone, created
 * if absent. NULL: the place that `weft index` uses for the present directories. Nobody else may build there meanwhile.
 * Options used: `store`, `memory`, `threads` and `force`.
 *
 * Chunks that an earlier run left in the directory are continued, unless options->force:
 * - Followed directory: chunks whose packets lie in files that did not change since (archives).
 * - Fed trace: all chunks. It must be fed again from the begin of the recording (lttng-relayd: SEEK_BEGINNING). Up to
 *   the end of these chunks it is read and compared, not indexed. Until then queries are answered from them.
 *
 * ERR_UNSUPPORTED: a kernel trace that declares no scheduling or network events yet; call again after more metadata. */
int index_live_new(struct ctf_trace *, const char *directory, const struct index_options *, struct index_live **out,
    struct err *e);
/* Frees it. Parts that were not sealed are lost. Must be called before the trace is closed. Experiments from
 * index_live_ask stay valid as long as the trace does. */
void index_live_free(struct index_live *);

/* Reads what is certain now, in one call slightly more than `most` items at most. *more: more is certain. Holds at most
 * `memory` for data that is not yet in files.
 * Errors: full disk; shortened file of the trace; ERR_STALE: the data fed again differ from those of the directory's
 * chunks. After an error each call returns it again: free the index and create a new one, which continues after the
 * sealed chunks. A followed directory then loses nothing; a fed trace must be fed again. */
int index_live_read(struct index_live *, size_t most, bool *more, struct err *e);
/* Returns the time up to which all was read, or chunks were found; answers are right up to it (ns, host's clock;
 * exclusive). INT64_MIN: nothing is known yet. Never decreases. */
int64_t index_live_until(const struct index_live *);
/* Returns the number of items that came too late for answers already given. They are left out of all chunks, and noted.
 * Late items that came before a query for their time are included; they are noted too. */
uint64_t index_live_left_out(const struct index_live *);

/* Returns the present state of n recordings as an experiment; first reads all that is certain. names: of their hosts,
 * or NULL, as in `NAME=TRACE`. Traces of one host join as in index_experiment_open. Cost: what came since the last
 * call, what is open (threads, connections, calls), and the opening of the chunks, but not their events.
 *
 * Graphs, flows, states, stacks, rows and their ids, total counts of events by class, clocks, notes and losses are
 * available. Events themselves are not stored: a merge returns ERR_UNSUPPORTED. So tables of events, and
 * index_types_count for a part of the time, are unavailable. No file is written beside the stores, so clocks are
 * computed anew. Traces of one host keep their recorded clock offsets.
 * The experiment must be closed before the traces. A failure to write what only answers need leaves the recordings
 * unchanged. */
int index_live_ask(struct index_live *const *, const char *const *names, size_t n, struct experiment **out,
    struct err *e);

/* Ends the recording (after ctf_feed_end, ctf_trace_end): reads the rest, and leaves the stores as `weft index` does.
 * index_experiment_open then opens what was followed without building anything, as long as its clock offset is the
 * recorded one: alone, or with traces of its host that have the same. Opened beside traces of its host and boot with
 * another offset, a trace that takes theirs (ctf_trace_take_offset; never a kernel trace) is built anew, whole. Opened
 * alone later, it is built again. ERR_ARG: it is not over. */
int index_live_end(struct index_live *, struct err *e);

#endif
