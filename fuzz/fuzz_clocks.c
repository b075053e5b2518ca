/* SPDX-License-Identifier: MIT */
/* Clocks: bytes as the messages of a small net, whose maps must be monotone whatever they say; and bytes as the
 * contents of a stored solution, or of stored messages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json.h"
#include "base/store.h"
#include "clock/clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct bytes {
    const uint8_t *v;
    size_t n;
};

/* Any 64-bit number, small ones more often: the first byte tells how many follow. */
static int64_t take(struct bytes *b)
{
    uint64_t x = 0;
    size_t count = b->n ? b->v[0] % 9 : 0;
    if (b->n) {
        b->v++;
        b->n--;
    }
    for (; count && b->n; count--, b->v++, b->n--)
        x = x << 8 | *b->v;
    return (int64_t)x;
}

static void use(const struct clock_net *net)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    clock_net_write_json(net, &j);
    clock_net_write_table(net, &t, true);
    clock_net_write_stats(net, &t);
    text_fini(&t);
    for (size_t h = 0; h < clock_net_hosts(net); h++) {
        const struct clock_map *m = clock_net_map(net, h);
        int64_t last = INT64_MIN;
        for (int i = 0; i < 64; i++) {
            int64_t at = (int64_t)((__int128)INT64_MIN + ((__int128)i << 58)), there = clock_to_reference(m, at);
            clock_from_reference(m, at);
            clock_error_at(m, at);
            if (m->n == 1 && there < last)
                abort();
            last = there;
        }
    }
}

static void solve(struct bytes b)
{
    struct clock_options o = clock_defaults();
    int64_t kind = take(&b);
    o.drift_prior_ppm = kind & 1 ? -1 : (double)(kind >> 8 & 1023);
    if (kind & 2)
        o.min_drift = o.max_drift = 0;
    struct clock_net *net = clock_net_new(&o);
    for (int h = 0; h < 4; h++) {
        int64_t begin = take(&b), end = take(&b);
        clock_net_host(net, "host", begin, end);
    }
    int64_t before = take(&b), other = take(&b);
    while (b.n) {
        int64_t pair = take(&b);
        /* near the message before, or anywhere */
        before = pair & 16 ? take(&b) : (int64_t)((uint64_t)before + (uint64_t)take(&b));
        other = pair & 32 ? take(&b) : (int64_t)((uint64_t)other + (uint64_t)take(&b));
        clock_net_message(net, (size_t)(pair & 3), (size_t)(pair >> 2 & 3), before, other);
    }
    if (!clock_net_solve(net, NULL))
        use(net);
    clock_net_free(net);
}

struct section {
    const char *name;
    size_t bytes;
};

/* A store whose sections are slices of the input: number of items, then the items. */
static int make_store(
    struct bytes b, const char *path, const char *kind, uint32_t version, const struct section *v, size_t n)
{
    struct store_writer *w = store_create(path, kind, version, 0, n);
    for (size_t i = 0; i < n; i++) {
        size_t count = b.n ? b.v[0] % 16 : 0;
        if (b.n) {
            b.v++;
            b.n--;
        }
        uint8_t *copy = calloc(16, v[i].bytes);
        size_t bytes = count * v[i].bytes < b.n ? count * v[i].bytes : b.n;
        memcpy(copy, b.v, bytes);
        b.v += bytes;
        b.n -= bytes;
        store_add(w, v[i].name, copy, v[i].bytes, count);
        free(copy);
    }
    return store_commit(w, NULL);
}

static void make_path(char *path, size_t n)
{
    snprintf(path, n, "%s/weft-fuzz-clocks-%ld", getenv("TMPDIR") ? getenv("TMPDIR") : P_tmpdir, (long)getpid());
}

static void load(struct bytes b)
{
    static const struct section sections[] = {
        {"options", 40}, {"hosts", 24}, {"names", 1}, {"pairs", 176}, {"knots", 16}, {"cuts", 16}};
    char path[512];
    struct clock_net *net;
    struct clock_options o = clock_defaults();
    make_path(path, sizeof path);
    if (!make_store(b, path, "clocks", 2, sections, 6) && !clock_net_load(path, 0, &o, &net, NULL)) {
        if (!clock_net_solve(net, NULL))
            use(net);
        clock_net_free(net);
    }
    unlink(path);
}

struct stored_pair {
    struct clock_kept *kept;
    size_t i;
};

static void tell(void *arg, struct clock_told *to)
{
    const struct stored_pair *p = arg;
    clock_kept_tell(p->kept, p->i, to);
}

static void load_messages(struct bytes b)
{
    static const struct section sections[] = {{"prior", 8}, {"sources", 24}, {"pairs", 128}, {"messages", 16}};
    char path[512];
    struct clock_kept *kept;
    make_path(path, sizeof path);
    if (!make_store(b, path, "messages", 2, sections, 4) && !clock_kept_open(path, 0, &kept, NULL)) {
        const struct clock_source *sources;
        struct clock_net *net = clock_net_new(NULL);
        struct stored_pair pairs[16];
        for (size_t i = 0; i < clock_kept_sources(kept, &sources); i++)
            clock_net_host(net, "host", 0, 1000);
        for (size_t i = 0; i < clock_kept_parts(kept); i++) {
            struct clock_part part;
            pairs[i] = (struct stored_pair){kept, i};
            clock_kept_part(kept, i, &part);
            clock_net_messages(net, part.a, part.b, tell, &pairs[i]);
        }
        if (!clock_net_solve(net, NULL))
            use(net);
        clock_net_free(net);
        clock_kept_close(kept);
    }
    unlink(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!n)
        return 0;
    struct bytes b = {data + 1, n - 1};
    if (data[0] % 8)
        solve(b);
    else if (data[0] & 128)
        load_messages(b);
    else
        load(b);
    return 0;
}
