/* SPDX-License-Identifier: MIT */
/* Private to ftrace: pages of a ring buffer, written as packets of CTF. */
#ifndef WEFT_FTRACE_PAGES_H
#define WEFT_FTRACE_PAGES_H

#include "ftrace/file.h"

/* Bytes of a packet being written. Without `out` they are only counted. */
struct ftrace_sink { uint8_t *out; uint64_t n, room; bool over; };
void ftrace_put(struct ftrace_sink *, const void *, uint64_t n);
void ftrace_put_number(struct ftrace_sink *, uint64_t v, unsigned bytes, bool big);

/* plan.c: what to copy of a record. COPY: `size` bytes; LIST, TAIL: as the field's kind. */
struct ftrace_op { uint32_t offset, size; uint8_t kind, element; bool is_text, relative; };
enum { FTRACE_COPY = FTRACE_INT };
void ftrace_plan(struct ftrace_file *);
/* Writes context and payload of an event. False: the record is shorter than its format; nothing is written. */
bool ftrace_put_event(struct ftrace_sink *, const struct ftrace_event *, const uint8_t *record, uint64_t n, bool big);

/* Conversion of times to ns: to the host's clock first, unless `to_host` is NULL. */
struct ftrace_times { const struct ftrace_shift *to_host; uint32_t mult, shift; }; /* mult 0: they are ns */

/* Counts of what was found in pages. */
struct ftrace_tally {
    uint64_t events, first, last;       /* first, last: least and greatest time; of no events: first > last */
    uint64_t unknown, cut, damaged;     /* events without format; shorter than it; pages read in part or not at all */
    uint32_t unknown_id;                /* type of the last unknown event */
};
/* Header of a page. */
struct ftrace_page {
    const uint8_t *data;
    uint32_t n;
    uint64_t time, missed;              /* missed: events lost before the page; 0: none; number unknown: 1 */
    bool missed_counted;
};
/* False: the page claims more than it has. */
bool ftrace_page_open(const struct ftrace_file *, const uint8_t *page, uint32_t page_bytes, struct ftrace_page *);
/* Writes the page's events. */
void ftrace_page_put(const struct ftrace_file *, const struct ftrace_page *, struct ftrace_times, struct ftrace_sink *,
    struct ftrace_tally *);

/* metadata.c: CTF 1.8 metadata of the file, up to `most` bytes (ERR_LIMIT). free() it. */
int ftrace_metadata(const struct ftrace_file *, size_t most, char **out, size_t *n, struct err *e);
/* The packet context that they declare. */
void ftrace_put_context(struct ftrace_sink *, const struct ctf_made_packet *, int32_t cpu, bool big);

#endif
