/* SPDX-License-Identifier: MIT */
/* Comparable items, files cut into packets, and feeding in random order. Shared by the tests of growing traces. Any
 * failure fails the test. */
#ifndef WEFT_TESTS_FED_H
#define WEFT_TESTS_FED_H

#include "stream_helpers.h"

#include "ctf/feed.h"

/* ---- items ---- */

struct fed_item { int64_t ts; uint64_t digest; bool loss; };
typedef VEC(struct fed_item) fed_items;
void fed_take(fed_items *out, const struct ctf_merge *, const struct ctf_source *, const struct ctf_event *, size_t n);
/* Reads all items that the merge has now, in portions. */
void fed_read_rest(fed_items *out, struct ctf_merge *, const struct ctf_source *, size_t portion);
/* Compares the items from `from` on with the expected ones. */
void fed_compare(const fed_items *got, size_t from, const fed_items *expected);

/* ---- dice ---- */

extern _Thread_local uint64_t fed_dice; /* set to restart the sequence */
uint64_t fed_roll(uint64_t sides);

/* ---- input: files of a directory cut into packets by their heads ---- */

struct fed_part { size_t at, n; uint64_t begin, end, class_id; };
struct fed_file {
    char name[300];
    VEC(uint8_t) bytes;
    VEC(struct fed_part) parts;
    size_t fed;
    uint32_t line;
    bool known, ended;
};
struct fed_trace {
    char *metadata;
    size_t metadata_n;
    VEC(struct fed_file) files;
};
/* Loads the files. head: size of the packet header in bytes: 32 for LTTng's, 24 for those of stream_made.h. */
void fed_load(struct fed_trace *, const struct ctf_group *, size_t head);
void fed_unload(struct fed_trace *);

/* ---- feeding ---- */

/* Holds the feed as a careful reader does: from the begin of a line that is still unknown; if packets of a stream
 * overlap, from the begin of the next packet of any line. */
void fed_hold(struct ctf_feed *, const struct fed_trace *, bool overlap);
/* Feeds the next part of one of the lines; false: all was fed. */
bool fed_step(struct ctf_feed *, struct fed_trace *, bool beacons, bool overlap);

#endif
