/* SPDX-License-Identifier: MIT */
#include "coord/ids.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"

enum { ID_BITS = 52, MAX_IDS = 1 << 23 };

static const char signature[32] = "weft coordinator ids, version 1\n";

struct given {
    uint64_t server;
    int64_t own;
    uint64_t id, check; /* check: hash of the members before it */
};
_Static_assert(sizeof(struct given) == sizeof signature, "layout of the file");

struct ids {
    struct map by_id; /* -> in `v` */
    VEC(struct given) v;
};
struct coord_ids {
    pthread_mutex_t lock;
    struct ids staying, passing;
    size_t saved; /* number of `staying` ids in the file */
    int file;     /* -1: not stored */
};

struct coord_ids *coord_ids_new(void)
{
    struct coord_ids *t = mem_zalloc(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    t->file = -1;
    return t;
}

void coord_ids_free(struct coord_ids *t)
{
    if (!t)
        return;
    if (t->file >= 0)
        close(t->file);
    map_fini(&t->staying.by_id);
    vec_free(&t->staying.v);
    map_fini(&t->passing.by_id);
    vec_free(&t->passing.v);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static uint64_t check_of(const struct given *g)
{
    return map_hash(g, offsetof(struct given, check));
}

static uint64_t candidate(uint64_t server, int64_t own, uint64_t n)
{
    return map_hash((uint64_t[3]){server, (uint64_t)own, n}, sizeof(uint64_t[3])) >> (64 - ID_BITS);
}

static bool is(const struct given *g, uint64_t server, int64_t own)
{
    return g->server == server && g->own == own;
}

static const struct given *find(const struct ids *t, uint64_t id)
{
    const uint64_t *at = map_find(&t->by_id, id);
    return at ? &t->v.v[*at] : NULL;
}

static void put(struct ids *t, struct given g)
{
    *map_put(&t->by_id, g.id, NULL) = t->v.n;
    vec_push(&t->v, g);
}

static uint64_t give(struct coord_ids *t, uint64_t server, int64_t own, bool passing)
{
    struct ids *to = passing ? &t->passing : &t->staying;
    for (uint64_t n = 0;; n++) {
        uint64_t id = candidate(server, own, n);
        const struct given *its = find(to, id);
        if (its && is(its, server, own))
            return id;
        if (its || find(passing ? &t->staying : &t->passing, id) || !id)
            continue;
        if (to->v.n >= MAX_IDS)
            return 0;
        struct given g = {server, own, id, 0};
        g.check = check_of(&g);
        put(to, g);
        return id;
    }
}

int64_t coord_id_of(struct coord_ids *t, uint64_t server, int64_t own, bool passing)
{
    pthread_mutex_lock(&t->lock);
    uint64_t id = give(t, server, own, passing);
    pthread_mutex_unlock(&t->lock);
    return (int64_t)id;
}

bool coord_id_owner(struct coord_ids *t, int64_t id, uint64_t *server, int64_t *own)
{
    pthread_mutex_lock(&t->lock);
    const struct given *its = find(&t->staying, (uint64_t)id);
    its = its ? its : find(&t->passing, (uint64_t)id);
    if (its) {
        *server = its->server;
        *own = its->own;
    }
    pthread_mutex_unlock(&t->lock);
    return its != NULL;
}

void coord_ids_forget(struct coord_ids *t, uint64_t server)
{
    struct ids left = {0};
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < t->passing.v.n; i++)
        if (t->passing.v.v[i].server != server)
            put(&left, t->passing.v.v[i]);
    map_fini(&t->passing.by_id);
    vec_free(&t->passing.v);
    t->passing = left;
    pthread_mutex_unlock(&t->lock);
}

/* ---- the file: a signature, then ids in the order of their creation ---- */

static bool is_sound(const struct coord_ids *t, const struct given *g)
{
    return g->check == check_of(g) && g->id && g->id < UINT64_C(1) << ID_BITS && !find(&t->staying, g->id) &&
        t->staying.v.n < MAX_IDS;
}

/* Returns the number of valid bytes of the file. */
static size_t take_in(struct coord_ids *t, const char *data, size_t n)
{
    size_t at = sizeof signature;
    if (n < at || memcmp(data, signature, at) != 0)
        return 0;
    for (struct given g; n - at >= sizeof g; at += sizeof g) {
        memcpy(&g, data + at, sizeof g);
        if (!is_sound(t, &g))
            break;
        put(&t->staying, g);
    }
    return at;
}

static int write_all(int fd, const void *data, size_t n)
{
    for (const char *p = data; n;) {
        ssize_t w = write(fd, p, n);
        if (w < 0 && errno != EINTR)
            return -1;
        p += w > 0 ? w : 0;
        n -= w > 0 ? (size_t)w : 0;
    }
    return 0;
}

int coord_ids_keep_in(struct coord_ids *t, const char *path, struct err *e)
{
    char *data = NULL;
    size_t n = 0;
    int rc = access(path, F_OK)
        ? 0
        : file_read(path, sizeof signature + (size_t)MAX_IDS * sizeof(struct given), &data, &n, e);
    if (rc)
        return rc;
    size_t good = take_in(t, data, n);
    free(data);
    t->saved = t->staying.v.n;
    t->file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (t->file < 0 || ftruncate(t->file, (off_t)good) || lseek(t->file, 0, SEEK_END) < 0 ||
        (!good && write_all(t->file, signature, sizeof signature)))
        return err_sys(e, "%s", path);
    return 0;
}

int coord_ids_save(struct coord_ids *t, struct err *e)
{
    int rc = 0;
    pthread_mutex_lock(&t->lock);
    if (t->file >= 0 && t->saved < t->staying.v.n) {
        off_t before = lseek(t->file, 0, SEEK_CUR);
        rc = write_all(t->file, t->staying.v.v + t->saved, (t->staying.v.n - t->saved) * sizeof *t->staying.v.v);
        if (!rc)
            t->saved = t->staying.v.n;
        else if (before < 0 || ftruncate(t->file, before) || lseek(t->file, before, SEEK_SET) < 0)
            t->file = -1; /* ids behind half of one would be lost */
    }
    pthread_mutex_unlock(&t->lock);
    return rc ? err_sys(e, "ids of entries") : 0;
}
