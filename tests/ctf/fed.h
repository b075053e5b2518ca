/* SPDX-License-Identifier: MIT */
/* Shared by the tests of traces that are not at their end: items that can be compared, files cut into packets, and
 * feeding them in a random order. Whatever goes wrong fails the test. */
#ifndef WEFT_TESTS_FED_H
#define WEFT_TESTS_FED_H

#include "stream_helpers.h"

#include "ctf/feed.h"

/* ---- items ---- */

struct fed_item { int64_t ts; uint64_t digest; bool loss; };
typedef VEC(struct fed_item) fed_items;
void fed_take(fed_items *out, const struct ctf_merge *, const struct ctf_source *, const struct ctf_event *, size_t n);
/* All that the merge gives now, in portions. */
void fed_read_rest(fed_items *out, struct ctf_merge *, const struct ctf_source *, size_t portion);
/* Those from `from` on are the expected ones. */
void fed_compare(const fed_items *got, size_t from, const fed_items *expected);

/* ---- dice ---- */

extern _Thread_local uint64_t fed_dice; /* set it to begin anew */
uint64_t fed_roll(uint64_t sides);

/* ---- what is fed: files of a directory cut into packets, by what their heads say ---- */

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
/* head: bytes of the packet header: 32 LTTng's, 24 those of stream_made.h. */
void fed_load(struct fed_trace *, const struct ctf_group *, size_t head);
void fed_unload(struct fed_trace *);

/* ---- feeding ---- */

/* As a careful reader does: nothing from where a line that is still unknown begins; where packets of a stream overlap,
 * nothing from where the next packet of any line begins. */
void fed_hold(struct ctf_feed *, const struct fed_trace *, bool overlap);
/* Tells something of one of the lines; false: all has been told. */
bool fed_step(struct ctf_feed *, struct fed_trace *, bool beacons, bool overlap);

#endif
