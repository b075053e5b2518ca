/* What is carried from one chunk of a recording into the next, damaged: builders take it or refuse it, and those that
 * took it go on. Each 8 bytes of the input are a place (3 bytes), what is done there (1), and a number (4). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "ctf/ctf.h"
#include "index/stores.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Batches of events before and behind the cut. */
enum { BEFORE = 60, BEHIND = 12, BATCH = 128 };

static char dir[600];
static struct arena names;
static struct ctf_group *groups;
static struct ctf_trace *trace;
static struct index_files files;
static void *shared;              /* a binding, and the rows of a host */
static struct index_outcome left; /* by the first half, undamaged */
static int64_t at;                /* the cut */

static void shell(const char *format, const char *a, const char *b)
{
    char command[2000];
    snprintf(command, sizeof command, format, a, b);
    if (system(command))
        abort();
}

static void remove_all(void)
{
    shell("rm -rf '%s' %s", dir, "");
}

struct piece {
    struct index_chunk is;
    struct store_writer *file;
    char *path;
    void *made;
    struct ctf_merge *merge;
};

static int begin(struct piece *c, int64_t from, const struct index_known *before)
{
    struct ctf_source source = {.trace = trace};
    *c = (struct piece){
        .is = {.begin = from, .number = before ? 2 : 1, .totals = {.begin = INT64_MAX, .end = INT64_MIN}}};
    c->path = mem_strdup(index_path(&files, INDEX_CHUNK, c->is.number));
    c->file = index_chunk_create(&files, &c->is);
    if (index_kernel.open(&files, shared, &c->made, NULL) ||
        ctf_merge_new(&source, 1, (struct ctf_window){from, INT64_MAX}, -1, &c->merge, NULL))
        abort();
    return index_kernel.begin(c->made, &c->is, (struct store_place){c->path, c->file}, before, NULL);
}

/* Up to that many batches; returns the time of the last event. */
static int64_t feed(struct piece *c, size_t batches)
{
    struct ctf_event ev[BATCH];
    int64_t times[BATCH];
    bool disorder = false;
    for (size_t i = 0, n; i < batches && (n = ctf_merge_next(c->merge, ev, BATCH)) > 0; i++) {
        size_t events = index_take_times(ev, n, times, &c->is.totals, &disorder);
        if (index_kernel.feed(c->made, ev, n, times, events, NULL))
            abort();
    }
    return c->is.totals.end;
}

static void drop(struct piece *c)
{
    index_kernel.close(c->made);
    ctf_merge_free(c->merge);
    store_abort(c->file);
    free(c->path);
}

static void make_first(void)
{
    const char *below = getenv("TMPDIR");
    struct index_trace t = {.is_kernel = true};
    struct piece c;
    size_t n;
    snprintf(dir, sizeof dir, "%s/weft-fuzz-carry-%ld", below ? below : P_tmpdir, (long)getpid());
    atexit(remove_all);
    shell("mkdir -p '%s' && tar -xJf '" WEFT_EXAMPLES "/three-tier.tar.xz' -C '%s'", dir, dir);
    char *machine = arena_printf(&names, "%s/three-tier/web", dir);
    if (ctf_discover(machine, &groups, &n, NULL) || n != 1 || ctf_trace_open(groups, NULL, &trace, NULL))
        abort();
    t.trace = trace;
    files = index_files_in(&names, dir, &t);
    if (index_kernel.open(&files, NULL, &shared, NULL) || begin(&c, INT64_MIN, NULL))
        abort();
    c.is.end = at = feed(&c, BEFORE) + 1;
    if (index_kernel.cut(c.made, &c.is, &left, NULL) || !left.carry.n)
        abort();
    drop(&c);
}

/* The bytes of what is carried, as the input wants them; free() them. */
static uint8_t *damage(const uint8_t *data, size_t size, size_t *n)
{
    uint8_t *bytes = mem_alloc(left.carry.n + size * 64 + 1);
    memcpy(bytes, left.carry.v, *n = left.carry.n);
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
    struct index_known before = {0};
    struct index_outcome o = {.carry = {.fd = -1}};
    if (!trace)
        make_first();
    uint8_t *bytes = damage(data, size, &before.n_carry);
    before.carry = bytes;
    before.leaving = left.leaving.v;
    before.n_leaving = left.leaving.n;
    if (!begin(&c, at, &before)) {
        c.is.end = feed(&c, BEHIND) + 1;
        /* Times that lie too far away are refused only here. */
        struct err e;
        int rc = index_kernel.cut(c.made, &c.is, &o, &e);
        if (rc && !size)
            abort();
    } else if (!size) {
        abort();
    }
    drop(&c);
    index_outcome_free(&o);
    free(bytes);
    return 0;
}
