/* SPDX-License-Identifier: MIT */
/* Traces made by hand. Shared by the tests of growing traces. */
#ifndef WEFT_TESTS_FED_MADE_H
#define WEFT_TESTS_FED_MADE_H

#include "ctf2_metadata.h"
#include "fed.h"
#include "stream_made.h"

/* A copy of a recording with metadata in CTF 2: of each directory whose number, by path, is a multiple of `step`. */
static inline const char *in_ctf2(const char *path, size_t step)
{
    static char copy[700];
    static int number;
    char command[1500];
    struct ctf_group *groups;
    struct err e = {0};
    size_t n;
    snprintf(copy, sizeof copy, "%s/ctf2-%d", scratch, number++);
    snprintf(command, sizeof command, "cp -rL '%s' '%s'", path, copy);
    assert_int_equal(system(command), 0);
    assert_int_equal(ctf_discover(copy, &groups, &n, &e), 0);
    for (size_t i = 0; i < n; i++)
        for (size_t d = 0; d < groups[i].n; d += step) {
            char metadata[1400];
            snprintf(metadata, sizeof metadata, "%s/metadata", groups[i].dirs[d]);
            if (ctf2_metadata_replace(metadata, &e))
                fail_msg("%s", e.text);
        }
    ctf_groups_free(groups, n);
    return copy;
}

enum { LINES = 5, CLASSES = 40 };

static inline void put_event(uint64_t id, uint64_t ts)
{
    extended((uint32_t)id, ts, 1);
    put(&b, ts * 31 + id, 4);
}

/* Writes streams of random packets, with many equal times; some begin late, and have classes that are added on the way.
 * Begin times ascend in each stream; some packets begin before the previous one ends. */
static inline void make_streams(const char *dir, bool overlap)
{
    for (uint32_t line = 0; line < LINES; line++) {
        char name[20];
        uint64_t now = 1000 + fed_roll(line ? 4000 : 1), discarded = 0;
        start_bytes(false);
        for (uint64_t packets = 5 + fed_roll(250); packets > 0 && b.n < 100000; packets--) {
            uint64_t begin = now, ts = begin;
            discarded += !overlap && fed_roll(4) == 0 ? fed_roll(9) : 0;
            size_t at = begin_packet(begin, 0, (uint32_t)discarded, line);
            for (uint64_t n = fed_roll(12); n > 0; n--, ts += fed_roll(3) == 0 ? fed_roll(5) : 0)
                put_event(fed_roll(1 + ts / 100 < CLASSES ? 1 + ts / 100 : CLASSES), ts);
            patch(&b, at + 32, ts, 8);
            end_packet(at, fed_roll(3) * 8);
            now = overlap && fed_roll(3) == 0 ? begin + fed_roll(ts - begin + 1) : ts + fed_roll(3) * fed_roll(9);
        }
        snprintf(name, sizeof name, "%c", (char)('a' + (line * 3 + 2) % LINES)); /* not in arrival order */
        write_file(dir, name, b.v, b.n);
    }
}

static inline void write_made_metadata(const char *dir)
{
    static char text[1 << 15];
    int n = snprintf(text, sizeof text, "%s", TYPES TRACE("le") CLOCK(1000000000, 7) CONTEXT COMPACT STREAM);
    for (int i = 0; i < CLASSES; i++)
        n += snprintf(text + n, sizeof text - (size_t)n,
            "event { name = \"e%d\"; id = %d; stream_id = 0; fields := struct { uint32_t x; }; };\n", i, i);
    write_text(dir, "metadata", text);
}

#endif
