/* SPDX-License-Identifier: MIT */
/* Private to span: the append log (docs/formats/spans.md). What log_append has taken is on disk, whatever happens to
 * the process or the machine afterwards; the database follows behind. */
#ifndef WEFT_SPAN_LOG_H
#define WEFT_SPAN_LOG_H

#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

/* The end of a record: in a file of the log, by its number, so many bytes. */
struct log_position { uint64_t file, offset; };

struct log;
/* Makes the directory if need be, and begins a new file. One process at a time. */
int log_open(const char *directory, struct log **out, struct err *e);
void log_close(struct log *);
/* Many threads at once: one write and one sync serves all that wait. ERR_BUSY: more than most_behind_bytes wait for the
 * database. ERR_IO: it could not be written, and is not there. */
int log_append(struct log *, const void *records, size_t n, int64_t came_ns, uint64_t most_behind_bytes, struct err *e);
/* Bytes that wait for the database. */
uint64_t log_behind(struct log *);
/* How far it is synced. */
struct log_position log_end(struct log *);
/* The file that is read. LOG_READER; each is for one thread. */
struct log_reader { int fd; uint64_t file; };
#define LOG_READER ((struct log_reader){.fd = -1})
void log_reader_close(struct log_reader *);
/* The record behind *at, which moves on; waits for it for so many ms. 1: there is one; 0: not yet; else an error: what
 * is there cannot be read. The text is filled with its bytes. */
int log_next(struct log *, struct log_reader *, struct log_position *at, int wait_ms, struct text *records,
    int64_t *came_ns, struct err *e);
/* What is before has been read; `kept`: it will not be asked for again either, so that files before go. */
void log_done(struct log *, const struct log_position *at, const struct log_position *kept);
/* Files with records behind *at stay too, but for the oldest of them while they take more bytes than that. */
void log_hold(struct log *, const struct log_position *at, uint64_t most_bytes);
/* Bytes of held records that went since it was last asked, because there were too many. */
uint64_t log_lost(struct log *);
/* log_next and log_append end soon. */
void log_stop(struct log *);

#endif
