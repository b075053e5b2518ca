/* SPDX-License-Identifier: MIT */
/* Private to span: the append log (docs/formats/spans.md). Records that log_append accepted are on disk, whatever
 * happens to the process or the machine. They are written to the database later. */
#ifndef WEFT_SPAN_LOG_H
#define WEFT_SPAN_LOG_H

#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

/* End of a record: number of the log file, and offset in bytes. */
struct log_position { uint64_t file, offset; };

struct log;
/* Creates the directory if necessary, and begins a new file. One process at a time. */
int log_open(const char *directory, struct log **out, struct err *e);
void log_close(struct log *);
/* Appends and syncs records. Many threads may call it at once: one write and one sync serve all that wait. ERR_BUSY:
 * more than most_behind_bytes wait for the database. ERR_IO: writing failed, and the records are not in the log. */
int log_append(struct log *, const void *records, size_t n, int64_t came_ns, uint64_t most_behind_bytes, struct err *e);
/* Returns the number of bytes that wait for the database. */
uint64_t log_behind(struct log *);
/* Returns the position up to which the log is synced. */
struct log_position log_end(struct log *);
/* Reader of one file at a time. Initialise with LOG_READER; each is for one thread. */
struct log_reader { int fd; uint64_t file; };
#define LOG_READER ((struct log_reader){.fd = -1})
void log_reader_close(struct log_reader *);
/* Reads the record behind *at into `records`, and moves *at on. Waits for it up to wait_ms. Returns 1; 0: none yet; or
 * an error: what is there cannot be read. */
int log_next(struct log *, struct log_reader *, struct log_position *at, int wait_ms, struct text *records,
    int64_t *came_ns, struct err *e);
/* Marks records before `at` as read. Records before `kept` will not be read again, so their files are deleted. */
void log_done(struct log *, const struct log_position *at, const struct log_position *kept);
/* Keeps files with records behind *at, too; deletes the oldest of them while they take more than most_bytes. */
void log_hold(struct log *, const struct log_position *at, uint64_t most_bytes);
/* Returns the bytes of held records deleted by that limit since the last call. */
uint64_t log_lost(struct log *);
/* Makes log_next and log_append return soon. */
void log_stop(struct log *);

#endif
