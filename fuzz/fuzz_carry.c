/* SPDX-License-Identifier: MIT */
/* What is carried from one chunk of a recording into the next, damaged: builders take it or refuse it, and those that
 * took it go on. The first byte says of which trace: a kernel's or one of user space. Each 8 bytes behind it are a
 * place (3 bytes), what is done there (1), and a number (4). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tests/stack/ust_world.h"
#include "base/mem.h"
#include "ctf/ctf.h"
#include "index/stores.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Batches of events before and behind the cut. */
enum { BEFORE = 60, BEHIND = 12, BATCH = 128, USER_EVENTS = 10000 };

static char dir[600];
static struct arena lasting, names; /* names: of files, while a chunk is built */

static struct world {
    const struct index_kind *kind;
    struct ctf_group *groups;
    struct ctf_trace *trace;
    struct index_files files;
    void *shared;              /* a binding, and the rows of a host */
    struct index_outcome left; /* by the first half, undamaged */
    int64_t at;                /* the cut */
} worlds[] = {{.kind = &index_kernel}, {.kind = &index_user}};
enum { WORLDS = sizeof worlds / sizeof *worlds };

static void shell(const char *command)
{
    if (system(command))
        abort();
}

static void remove_all(void)
{
    shell(arena_printf(&lasting, "rm -rf '%s'", dir));
}

struct piece {
    struct world *world;
    struct index_chunk is;
    struct store_writer *file;
    char *path;
    void *made;
    struct ctf_merge *merge;
};

static int begin(struct piece *c, struct world *w, int64_t from, const struct index_known *before)
{
    struct ctf_source source = {.trace = w->trace};
    *c = (struct piece){.world = w, .is = {.begin = from, .number = before ? 2 : 1}};
    c->is.totals = (struct index_totals){.begin = INT64_MAX, .end = INT64_MIN};
    c->path = mem_strdup(index_path(&w->files, INDEX_CHUNK, c->is.number));
    c->file = index_chunk_create(&w->files, &c->is);
    if (w->kind->open(&w->files, w->shared, &c->made, NULL) ||
        ctf_merge_new(&source, 1, (struct ctf_window){from, INT64_MAX}, -1, &c->merge, NULL))
        abort();
    return w->kind->begin(c->made, &c->is, (struct store_place){c->path, c->file}, before, NULL);
}

/* Up to that many batches; the chunk ends behind the last event. */
static void feed(struct piece *c, size_t batches)
{
    struct ctf_event ev[BATCH];
    int64_t times[BATCH];
    bool disorder = false;
    for (size_t i = 0, n; i < batches && (n = ctf_merge_next(c->merge, ev, BATCH)) > 0; i++) {
        size_t events = index_take_times(ev, n, times, &c->is.totals, &disorder);
        if (c->world->kind->feed(c->made, ev, n, times, events, NULL))
            abort();
    }
    c->is.end = c->is.totals.end + 1;
}

static void drop(struct piece *c)
{
    c->world->kind->close(c->made);
    ctf_merge_free(c->merge);
    store_abort(c->file);
    free(c->path);
    arena_fini(&names);
}

static void make_first(struct world *w, const char *below)
{
    struct index_trace t = {.is_kernel = w->kind == &index_kernel};
    struct piece c;
    size_t n;
    if (ctf_discover(arena_printf(&lasting, "%s/%s", dir, below), &w->groups, &n, NULL) || n != 1 ||
        ctf_trace_open(w->groups, NULL, &w->trace, NULL))
        abort();
    t.trace = w->trace;
    w->files = index_files_in(&lasting, dir, &t);
    w->files.names = &names;
    if (w->kind->open(&w->files, NULL, &w->shared, NULL) || begin(&c, w, INT64_MIN, NULL))
        abort();
    feed(&c, BEFORE);
    w->at = c.is.end;
    if (w->kind->cut(c.made, &c.is, &w->left, NULL) || !w->left.carry.n)
        abort();
    drop(&c);
}

static void make_worlds(void)
{
    const char *below = getenv("TMPDIR");
    snprintf(dir, sizeof dir, "%s/weft-fuzz-carry-%ld", below ? below : P_tmpdir, (long)getpid());
    atexit(remove_all);
    shell(arena_printf(&lasting, "mkdir -p '%s' && tar -xJf '%s/three-tier.tar.xz' -C '%s'", dir, WEFT_EXAMPLES, dir));
    ust_write_random(arena_printf(&lasting, "%s/user", dir), 1, USER_EVENTS, true);
    make_first(&worlds[0], "three-tier/web");
    make_first(&worlds[1], "user");
}

/* What is carried, as the input wants it; free() it. */
static uint8_t *damage(const struct index_outcome *left, const uint8_t *data, size_t size, size_t *n)
{
    uint8_t *bytes = mem_alloc(left->carry.n + size * 64 + 1);
    memcpy(bytes, left->carry.v, *n = left->carry.n);
    for (; size >= 8 && *n; data += 8, size -= 8) {
        size_t place = (data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16) % *n, rest = *n - place;
        size_t some = data[3] >> 2;
        switch (data[3] % 4) {
        case 0: memcpy(bytes + place, data + 4, rest < 4 ? rest : 4); break;
        case 1: bytes[place] = data[4]; break;
        case 2: /* some bytes are missing */
            some = some < rest ? some : rest;
            memmove(bytes + place, bytes + place + some, rest - some);
            *n -= some;
            break;
        default: /* or too many */
            memmove(bytes + place + some, bytes + place, rest);
            memset(bytes + place, data[4], some);
            *n += some;
        }
    }
    return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct piece c;
    struct err e;
    struct index_known before = {0};
    struct index_outcome o = {.carry = {.fd = -1}};
    if (!*dir)
        make_worlds();
    if (!size)
        return 0;
    struct world *w = &worlds[data[0] % WORLDS];
    bool whole = size < 9;
    uint8_t *bytes = damage(&w->left, data + 1, size - 1, &before.n_carry);
    before.carry = bytes;
    before.leaving = w->left.leaving.v;
    before.n_leaving = w->left.leaving.n;
    int rc = begin(&c, w, w->at, &before);
    if (!rc) {
        feed(&c, BEHIND);
        rc = w->kind->cut(c.made, &c.is, &o, &e); /* times that lie too far away are refused only here */
    }
    if (rc && whole)
        abort();
    drop(&c);
    index_outcome_free(&o);
    free(bytes);
    return 0;
}
