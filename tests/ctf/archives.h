/* SPDX-License-Identifier: MIT */
/* Archives of made-up packets, and digests of their contents. Shared by the tests of traces in many archives. */
#ifndef WEFT_TESTS_ARCHIVES_H
#define WEFT_TESTS_ARCHIVES_H

#include <fcntl.h>

#include "base/map.h"
#include "stream_made.h"

enum { STREAMS = 2, SPAN = 1000 };

/* ---- archives ---- */

#define DECLARED TYPES CLOCK(1000000000, 0) TRACE("le") CONTEXT COMPACT STREAM EVENT(0, "tick", "uint64_t n;")
/* Versions of the declarations: the second adds to the first, the third contradicts both. */
static const char *const declared[] = {
    DECLARED,
    DECLARED EVENT(1, "tock", "uint32_t m;"),
    TYPES CLOCK(1000000000, 0) TRACE("le") CONTEXT COMPACT STREAM EVENT(0, "tick", "uint32_t a; uint32_t b;"),
};

struct archive {
    bool there;
    uint64_t seed; /* seed of its contents */
    uint32_t metadata;
    int64_t modified; /* seconds */
};

/* Appends to `b` the packets of one stream of archive `number`, which lie in its SPAN of time. */
static inline void put_stream(uint64_t *dice, size_t number, uint32_t cpu, bool loses)
{
    uint64_t begin = (1 + number) * SPAN, at = begin, packets = 1 + test_random(dice, 3);
    uint32_t discarded = loses ? (uint32_t)number * 20 : 0;
    start_bytes(false);
    for (uint64_t k = 0; k < packets; k++) {
        uint64_t until = begin + (k + 1) * SPAN / packets - 1;
        discarded += loses && !test_random(dice, 2) ? test_random(dice, 5) : 0;
        size_t head = begin_packet(at, until, discarded, cpu);
        for (uint64_t ts = at; ts <= until; ts += 1 + test_random(dice, 200)) {
            compact(0, (uint32_t)ts);
            put(&b, test_random(dice, 1 << 30), 8);
        }
        end_packet(head, test_random(dice, 9));
        at = until + 1;
    }
}

/* Sets a modification time. name: of a file, or "" for the directory. */
static inline void stamp(const char *dir, const char *name, int64_t modified)
{
    char path[1200];
    struct timespec times[2] = {{.tv_sec = modified}, {.tv_sec = modified}};
    snprintf(path, sizeof path, "%s/%s/%s", scratch, dir, name);
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static inline void write_archive(const struct archive *a, const char *dir, size_t number, bool loses)
{
    char name[20];
    uint64_t dice = a->seed;
    write_text(dir, "metadata", declared[a->metadata]);
    stamp(dir, "metadata", a->modified);
    for (uint32_t cpu = 0; cpu < STREAMS; cpu++) {
        snprintf(name, sizeof name, "c%u", cpu);
        put_stream(&dice, number, cpu, loses);
        write_file(dir, name, b.v, b.n);
        stamp(dir, name, a->modified);
    }
    stamp(dir, "", a->modified);
}

static inline void clear_world(void)
{
    char command[1200];
    snprintf(command, sizeof command, "rm -rf '%s/world'; mkdir '%s/world'", scratch, scratch);
    assert_int_equal(system(command), 0);
}

/* ---- reading ---- */

static inline void add_leaf(void *arg, const struct ctf_value *v)
{
    uint64_t *sum = arg, parts[3] = {*sum, map_hash(v->name, strlen(v->name)), v->v.u};
    *sum = map_hash(parts, sizeof parts);
}
static inline void add_list(void *arg, const struct ctf_value *v) {}

/* Returns the digest of all items of [begin, end); *lost: not all could be read. */
static inline uint64_t digest(struct ctf_trace *t, int64_t begin, int64_t end, bool *lost)
{
    struct ctf_source source = {.trace = t};
    struct ctf_merge *m;
    uint64_t sum = 0;
    assert_int_equal(ctf_merge_new(&source, 1, (struct ctf_window){begin, end - (end < INT64_MAX)}, -1, &m, NULL), 0);
    event_vec items = read_all(m);
    for (size_t i = 0; i < items.n; i++) {
        const struct ctf_event *ev = &items.v[i];
        uint64_t parts[4] = {sum, (uint64_t)ev->ts, (uint64_t)ev->cpu, map_hash(ev->cls->name, strlen(ev->cls->name))};
        sum = map_hash(parts, sizeof parts);
        if (ev->cls->item == CTF_EVENT) {
            ctf_visit(ev, CTF_PAYLOAD, &(struct ctf_visitor){add_leaf, add_list, add_list, &sum});
        } else {
            const struct ctf_loss *l = (const struct ctf_loss *)ev->data;
            uint64_t loss[4] = {sum, (uint64_t)l->begin, (uint64_t)l->end, l->count};
            sum = map_hash(loss, sizeof loss);
        }
    }
    vec_free(&items);
    *lost = ctf_merge_intact(m, NULL) != 0;
    ctf_merge_free(m);
    return sum;
}


#endif
