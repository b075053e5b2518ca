/* SPDX-License-Identifier: MIT */
#include "cluster/clocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/wire.h"
#include "bus/bus.h"
#include "clock/clock.h"

enum { CLOCKS_VERSION = 1, MOST_BYTES = 1 << 30, MOST_PARTS = 1 << 16 };

/* ---- the head ---- */

static void head_write(const struct clocks_head *h, struct text *out)
{
    text_putc(out, CLOCKS_VERSION);
    wire_put_u(out, h->serial);
    wire_put_bytes(out, &h->digest, sizeof h->digest);
    wire_put_u(out, h->bytes);
    wire_put_u(out, h->parts);
    wire_put_u(out, h->n_hosts);
    wire_put_bytes(out, h->hosts, h->n_hosts * sizeof *h->hosts);
}

int cluster_clocks_head_read(struct bus_table *table, struct arena *a, struct clocks_head *out, struct err *e)
{
    void *bytes;
    size_t n;
    uint8_t version;
    *out = (struct clocks_head){0};
    int rc = bus_table_get(table, CLOCKS_HEAD, &bytes, &n, NULL, e);
    if (rc)
        return rc;
    struct wire_in w = wire_of(bytes, n);
    wire_bytes(&w, &version, 1);
    out->serial = wire_u(&w);
    wire_bytes(&w, &out->digest, sizeof out->digest);
    out->bytes = (size_t)wire_below(&w, MOST_BYTES);
    out->parts = (size_t)wire_below(&w, MOST_PARTS);
    out->n_hosts = wire_count(&w, sizeof *out->hosts);
    out->hosts = arena_new(a, struct clocks_host, out->n_hosts + 1);
    wire_bytes(&w, out->hosts, out->n_hosts * sizeof *out->hosts);
    free(bytes);
    return w.damaged || w.at != w.end || version != CLOCKS_VERSION
        ? err_set(e, ERR_FORMAT, "the clocks that are shared make no sense to this version of weft")
        : 0;
}

bool cluster_clocks_match(const struct clocks_head *h, const struct cluster_membership *r)
{
    if (h->n_hosts != r->n_hosts)
        return false;
    for (size_t i = 0; i < r->n_hosts; i++)
        if (h->hosts[i].key != r->hosts[i].entry->key ||
            (h->hosts[i].hash != r->hosts[i].entry->hash &&
                h->hosts[i].hash != clocks_lacking(r->hosts[i].entry->hash)))
            return false;
    return true;
}

bool cluster_clocks_are_whole(const struct clocks_head *h, const struct cluster_membership *r)
{
    for (size_t i = 0; i < h->n_hosts; i++)
        if (h->hosts[i].hash != r->hosts[i].entry->hash)
            return false;
    return true;
}

/* ---- the bytes: those of a store of clocks ---- */

static uint64_t key_of_hosts(const struct clocks_head *h)
{
    return map_mix(CLOCK_RULES_VERSION + map_hash(h->hosts, h->n_hosts * sizeof *h->hosts));
}

static void part_key(char out[64], uint64_t serial, size_t i)
{
    snprintf(out, 64, "part.%" PRIu64 ".%zu", serial, i);
}

static int gather(struct bus_table *table, const struct clocks_head *h, struct text *out, struct err *e)
{
    for (size_t i = 0; i < h->parts; i++) {
        char key[64];
        void *bytes;
        size_t n;
        part_key(key, h->serial, i);
        int rc = bus_table_get(table, key, &bytes, &n, NULL, e);
        if (rc)
            return rc == ERR_NOTFOUND ? err_set(e, ERR_STALE, "the clocks are being shared anew just now") : rc;
        text_put(out, bytes, n);
        free(bytes);
        if (out->n > h->bytes)
            break;
    }
    if (out->n != h->bytes || map_hash(out->v, out->n) != h->digest)
        return err_set(e, ERR_STALE, "the clocks are being shared anew just now");
    return 0;
}

int cluster_clocks_check(struct bus_table *table, const struct clocks_head *h, struct err *e)
{
    struct text bytes = {.fd = -1};
    int rc = gather(table, h, &bytes, e);
    text_fini(&bytes);
    return rc;
}

int cluster_clocks_load(struct bus_table *table, const struct clocks_head *h, const struct clock_options *o,
    struct clock_net **out, struct err *e)
{
    struct text bytes = {.fd = -1};
    char *path = NULL;
    *out = NULL;
    int rc = gather(table, h, &bytes, e);
    if (!rc)
        rc = file_temporary("clocks", &path, e);
    if (!rc) {
        rc = file_write(path, bytes.v, bytes.n, e);
        if (!rc)
            rc = clock_net_load(path, key_of_hosts(h), o, out, e);
        unlink(path);
        free(path);
    }
    text_fini(&bytes);
    if (!rc)
        rc = clock_net_solve(*out, e);
    if (!rc && clock_net_hosts(*out) != h->n_hosts)
        rc = err_set(e, ERR_FORMAT, "the clocks that are shared are of other hosts than they say");
    if (rc) {
        clock_net_free(*out);
        *out = NULL;
    }
    return rc;
}

static void forget(struct bus_table *table, const struct clocks_head *before)
{
    char key[64];
    for (size_t i = 0; i < before->parts; i++) {
        part_key(key, before->serial, i);
        bus_table_remove(table, key, NULL);
    }
}

struct leftovers {
    VEC(char *) keys;
};

static void on_leftover(void *arg, const struct bus_entry *entry)
{
    struct leftovers *l = arg;
    if (entry->kind == BUS_ENTRY_PUT && strcmp(entry->key, CLOCKS_HEAD) != 0)
        vec_push(&l->keys, mem_strdup(entry->key));
}

/* Parts that no head names any more. */
static void remove_leftovers(struct bus_table *table)
{
    struct leftovers l = {0};
    bus_table_all(table, on_leftover, &l, NULL);
    for (size_t i = 0; i < l.keys.n; i++) {
        bus_table_remove(table, l.keys.v[i], NULL);
        free(l.keys.v[i]);
    }
    vec_free(&l.keys);
}

static int share_parts(struct bus_table *table, size_t part, const struct clocks_head *h, const char *v, struct err *e)
{
    char key[64];
    for (size_t i = 0; i < h->parts; i++) {
        size_t from = i * part, n = h->bytes - from < part ? h->bytes - from : part;
        part_key(key, h->serial, i);
        int rc = bus_table_put(table, key, v + from, n, NULL, e);
        if (rc)
            return rc;
    }
    return 0;
}

int cluster_clocks_share(struct bus_table *table, size_t max_part_bytes, const struct clocks_head *before,
    struct clocks_head *h, const struct clock_net *net, struct err *e)
{
    char *path, *bytes = NULL;
    uint64_t revision = 0;
    void *old = NULL;
    size_t n_old;
    struct err none;
    int rc = file_temporary("clocks", &path, e);
    if (rc)
        return rc;
    rc = clock_net_save(net, path, key_of_hosts(h), e);
    if (!rc)
        rc = file_read(path, MOST_BYTES, &bytes, &h->bytes, e);
    unlink(path);
    free(path);
    if (!rc && !bus_table_get(table, CLOCKS_HEAD, &old, &n_old, &revision, &none))
        free(old);
    if (!rc) {
        struct text head = {.fd = -1};
        h->serial = before->serial + 1;
        h->digest = map_hash(bytes, h->bytes);
        h->parts = (h->bytes + max_part_bytes - 1) / max_part_bytes;
        head_write(h, &head);
        if (!before->serial)
            remove_leftovers(table);
        rc = share_parts(table, max_part_bytes, h, bytes, e);
        if (!rc)
            rc = bus_table_put_if(table, CLOCKS_HEAD, head.v, head.n, revision, NULL, e);
        text_fini(&head);
    }
    if (!rc)
        forget(table, before);
    free(bytes);
    return rc;
}
