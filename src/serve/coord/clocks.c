/* SPDX-License-Identifier: MIT */
/* Clocks of the servers, from a file in the format of `weft sync --format json`. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "coord/coord.h"
#include "base/slice.h"

enum { MAX_FILE = 256 << 20 };

struct clocks {
    struct coord_config *c;
    const char *path;
    struct slice hosts;
};

/* Returns the host of that name; at NULL: none. */
static struct slice find_host(const struct clocks *k, const char *name)
{
    struct arena a = {0};
    struct slice_walk w = slice_items(k->hosts);
    struct slice found = {0};
    for (struct slice h; !found.at && slice_next(&w, &h);) {
        const char *its = slice_string(slice_get(h, "host"), &a);
        if (its && !strcmp(its, name))
            found = h;
    }
    arena_fini(&a);
    return found;
}

static int read_piece(struct clocks *k, struct slice s, struct clock_piece *out, struct err *e)
{
    struct arena *a = &k->c->arena;
    const char *drift = slice_string(slice_get(s, "drift"), a), *offset = slice_string(slice_get(s, "offset_ns"), a);
    struct slice_walk through = slice_items(slice_get(s, "through"));
    struct slice first, second;
    int64_t begin, t, t_ref;
    if (!drift || !offset || !slice_integer(slice_get(s, "begin"), &begin))
        return err_set(e, ERR_FORMAT, "a piece has begin, drift and offset_ns");
    int rc = clock_line_read(drift, offset, out, e);
    if (!rc && slice_next(&through, &first) && slice_next(&through, &second) && slice_integer(first, &t) &&
        slice_integer(second, &t_ref))
        rc = clock_line_through(out, t, t_ref, e);
    out->begin = begin;
    return rc;
}

/* Reads a clock map. The first and last pieces extend outwards. */
static int read_map(struct clocks *k, struct slice host, struct coord_server *s, struct err *e)
{
    struct slice pieces = slice_get(host, "pieces"), item;
    struct slice_walk w = slice_items(pieces);
    size_t n = 0;
    while (slice_next(&w, &item))
        n++;
    if (!n)
        return err_set(e, ERR_ARG, "nothing relates its clock to the reference");
    struct clock_piece *v = arena_new(&k->c->arena, struct clock_piece, n);
    struct clock_map *map = arena_new(&k->c->arena, struct clock_map, 1);
    w = slice_items(pieces);
    for (size_t i = 0; slice_next(&w, &item); i++) {
        int rc = read_piece(k, item, &v[i], e);
        if (rc)
            return rc;
    }
    s->clock = map;
    return clock_map_of(v, n, map, e);
}

static int give(struct clocks *k, struct coord_server *s, struct err *e)
{
    const char *name = s->clock_host ? s->clock_host : s->name;
    struct slice host = find_host(k, name);
    struct err why = {0};
    if (s->clock) /* set by the configuration */
        return 0;
    if (!host.at && s->clock_host)
        return err_set(e, ERR_ARG, "%s: no host %s is in %s", s->clock_place, name, k->path);
    if (!host.at) {
        vec_push(&k->c->notes,
            (const char *)arena_printf(&k->c->arena,
                "%s: no host %s is in it: the times of that server are taken as they are (say whose clock they are by: "
                "clock: HOST)",
                k->path, name));
        return 0;
    }
    return read_map(k, host, s, &why) ? err_set(e, ERR_FORMAT, "%s: host %s: %s", k->path, name, why.text) : 0;
}

int coord_config_clocks_parse(struct coord_config *c, const char *path, const char *text, size_t n, struct err *e)
{
    size_t bad;
    struct slice root = slice_of(text, n, NULL, &bad);
    struct clocks k = {c, path, slice_get(root, "hosts")};
    int rc = 0;
    if (!slice_is(k.hosts, '['))
        return root.at ? err_set(e, ERR_FORMAT, "%s: this has no hosts: weft sync --format json writes clocks", path)
                       : err_set(e, ERR_FORMAT, "%s: this is no JSON (byte %zu)", path, bad);
    for (size_t i = 0; i < c->servers.n && !rc; i++)
        rc = give(&k, &c->servers.v[i], e);
    return rc;
}

int coord_config_clocks(struct coord_config *c, const char *path, struct err *e)
{
    char *text;
    size_t n;
    path = path ? path : c->clocks;
    for (size_t i = 0; i < c->servers.n && !path; i++)
        if (c->servers.v[i].clock_host)
            return err_set(e, ERR_ARG, "%s: clock names a host of a file of clocks: say which file (clocks: FILE)",
                c->servers.v[i].clock_place);
    int rc = path ? file_read(path, MAX_FILE, &text, &n, e) : 0;
    if (rc || !path)
        return rc;
    rc = coord_config_clocks_parse(c, path, text, n, e);
    free(text);
    return rc;
}
