/* SPDX-License-Identifier: MIT */
/* Private to the room: encodings of the messages between nodes when a trace moves (docs/cluster-protocol.md). All input
 * is untrusted, and checked. */
#ifndef WEFT_PLACE_MOVES_H
#define WEFT_PLACE_MOVES_H

#include "base/arena.h"
#include "base/text.h"
#include "place/place.h"

enum {
    MOVE_PIECE = 4 << 20,      /* bytes per question */
    MOVE_MOST_FILES = 1 << 18, /* limit per trace */
    MOVE_MOST_PATH = 1024,
    MOVE_SUM = 16
};

/* Identity of a trace as in its entry: the host, and a hash of the files. [begin, end]: the recorded part that is
 * meant, by the host's clock; MOVE_ALL: all of it. Every question about a move begins with it. */
struct move_trace { uint64_t key, hash; int64_t begin, end; };
#define MOVE_ALL INT64_MIN, INT64_MAX
static inline bool move_is_excerpt(struct move_trace t) { return t.begin != INT64_MIN || t.end != INT64_MAX; }
static inline bool move_is_same(struct move_trace a, struct move_trace b)
{
    return a.key == b.key && a.hash == b.hash && a.begin == b.begin && a.end == b.end;
}
/* Returns whether the entry is of that trace. */
bool place_move_is_of(struct move_trace, const struct cluster_entry_host *);

/* TAKE and LEAVE: the other node; TAKE also: begin if it is not in progress. */
struct move_question { struct move_trace trace; const char *node; bool begin; };
void place_move_question_write(const struct move_question *, struct text *out);
int place_move_question_read(struct arena *, const void *bytes, size_t n, struct move_question *out, struct err *e);
/* Answer to TAKE. */
void place_move_progress_write(const struct place_move_progress *, struct text *out);
int place_move_progress_read(struct arena *, const void *bytes, size_t n, struct place_move_progress *out,
    struct err *e);

/* FILES: the trace only. Answer: relative paths, sorted; none leads out of a directory. */
struct move_file { const char *path; uint64_t bytes; int64_t modified_ns; };
/* begin, end: see move_trace; for a trace that is an excerpt itself, the common part. from: the node that it was cut
 * at, else "". */
struct move_files {
    const char *name; const struct move_file *v; size_t n;
    uint64_t bytes; /* total */
    int64_t begin, end;
    const char *from;
};
void place_move_trace_write(struct move_trace, struct text *out);
int place_move_trace_read(const void *bytes, size_t n, struct move_trace *out, struct err *e);
void place_move_files_write(const struct move_files *, struct text *out);
int place_move_files_read(struct arena *, const void *bytes, size_t n, struct move_files *out, struct err *e);

/* READ: a part of a file that is unchanged since it was listed. Answer: sum of the part (MOVE_SUM bytes), and the part.
 * SUM: length 0. Answer: the sum of the file. */
struct move_piece { struct move_trace trace; uint64_t file, bytes; int64_t modified_ns; uint64_t offset, length; };
void place_move_piece_write(const struct move_piece *, struct text *out);
int place_move_piece_read(const void *bytes, size_t n, struct move_piece *out, struct err *e);

/* Continues the sum of a file from that of the part before; zeros at first. */
void place_move_sum(uint64_t sum[2], const void *piece, size_t n);
/* Sums up so many bytes of a file, in pieces of MOVE_PIECE. */
int place_move_sum_file(int fd, uint64_t offset, uint64_t bytes, uint64_t sum[2], struct err *e);

#endif
