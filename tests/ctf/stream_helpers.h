/* SPDX-License-Identifier: MIT */
/* Opening and reading whole traces, and building small ones by hand. Shared by the tests of streams. */
#ifndef WEFT_TESTS_STREAM_HELPERS_H
#define WEFT_TESTS_STREAM_HELPERS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/test.h"
#include "base/mem.h"
#include "ctf/ctf.h"

/* Opened traces below one path, with their merge. */
struct opened {
    struct ctf_schemas *schemas;
    struct ctf_group *groups;
    size_t n;
    struct ctf_source *sources;
    struct ctf_merge *merge;
};

typedef VEC(struct ctf_event) event_vec;

static const struct ctf_window everything = {INT64_MIN, INT64_MAX};

static inline const char *data_path(const char *below)
{
    static char path[4][1024];
    static int turn;
    const char *root = getenv("WEFT_DATA");
    char *p = path[turn = (turn + 1) % 4];
    snprintf(p, sizeof path[0], "%s/%s", root ? root : WEFT_SOURCE_ROOT "/../shared/data", below);
    return p;
}

static inline const char *data_or_skip(const char *below)
{
    const char *path = data_path(below);
    if (access(path, R_OK))
        skip_without("no %s", path);
    return path;
}

static inline void open_all_in(struct opened *o, const char *path, struct ctf_window w, int stream)
{
    struct err e = {0};
    memset(o, 0, sizeof *o);
    o->schemas = ctf_schemas_new();
    if (ctf_discover(path, &o->groups, &o->n, &e))
        fail_msg("%s", e.text);
    o->sources = mem_zalloc(sizeof *o->sources * o->n);
    for (size_t i = 0; i < o->n; i++)
        if (ctf_trace_open(&o->groups[i], o->schemas, &o->sources[i].trace, &e))
            fail_msg("%s", e.text);
    if (ctf_merge_new(o->sources, o->n, w, stream, &o->merge, &e))
        fail_msg("%s", e.text);
}

static inline void open_all(struct opened *o, const char *path) { open_all_in(o, path, everything, -1); }

static inline void close_all(struct opened *o)
{
    ctf_merge_free(o->merge);
    for (size_t i = 0; i < o->n; i++)
        ctf_trace_close(o->sources[i].trace);
    free(o->sources);
    ctf_groups_free(o->groups, o->n);
    ctf_schemas_free(o->schemas);
}

/* Reads all remaining items. Pointers stay valid while the traces are open. */
static inline event_vec read_all(struct ctf_merge *m)
{
    event_vec all = {0};
    struct ctf_event ev[97];
    size_t n;
    while ((n = ctf_merge_next(m, ev, 97)) > 0)
        for (size_t i = 0; i < n; i++)
            vec_push(&all, ev[i]);
    return all;
}

struct totals { uint64_t events, lost_events, lost_packets, backwards; };

static inline struct totals totals_of(const event_vec *all)
{
    struct totals t = {0};
    for (size_t i = 0; i < all->n; i++) {
        const struct ctf_event *ev = &all->v[i];
        t.backwards += i > 0 && ev->ts < ev[-1].ts;
        if (ev->cls->item == CTF_EVENT)
            t.events++;
        else
            *(ev->cls->item == CTF_LOST_EVENTS ? &t.lost_events : &t.lost_packets) +=
                ((const struct ctf_loss *)ev->data)->count;
    }
    return t;
}

static inline struct totals totals_below(const char *path)
{
    struct opened o;
    open_all(&o, path);
    event_vec all = read_all(o.merge);
    struct totals t = totals_of(&all);
    vec_free(&all);
    close_all(&o);
    return t;
}

/* ---- traces built by hand ---- */

static char scratch[512];

static inline int make_scratch(void **state)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/weft-stream-XXXXXX", tmp ? tmp : "/tmp");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int remove_scratch(void **state)
{
    char command[600];
    snprintf(command, sizeof command, "rm -rf '%s'", scratch);
    return system(command);
}

static inline const char *write_file(const char *dir, const char *name, const void *data, size_t n)
{
    static char path[1200];
    snprintf(path, sizeof path, "%s/%s", scratch, dir);
    mkdir(path, 0755);
    snprintf(path, sizeof path, "%s/%s/%s", scratch, dir, name);
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, n, f), n);
    fclose(f);
    *strrchr(path, '/') = '\0';
    return path;
}

static inline const char *write_text(const char *dir, const char *name, const char *text)
{
    return write_file(dir, name, text, strlen(text));
}

/* Buffer of bytes; numbers in the requested byte order. */
struct bytes { uint8_t v[1 << 17]; size_t n; bool big; };

static inline void put(struct bytes *b, uint64_t value, int size)
{
    for (int i = 0; i < size; i++)
        b->v[b->n + (size_t)i] = (uint8_t)(value >> 8 * (b->big ? size - 1 - i : i));
    b->n += (size_t)size;
}
static inline void put_string(struct bytes *b, const char *s)
{
    memcpy(b->v + b->n, s, strlen(s) + 1);
    b->n += strlen(s) + 1;
}
static inline void patch(struct bytes *b, size_t at, uint64_t value, int size)
{
    size_t n = b->n;
    b->n = at;
    put(b, value, size);
    b->n = n;
}

#endif
