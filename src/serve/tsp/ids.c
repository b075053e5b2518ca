/* SPDX-License-Identifier: MIT */
#include "tsp/ids.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"
#include "base/store.h"

enum { IDS_VERSION = 1, SHARE = 8 };

/* Key whose id is not its own bits. */
struct moved {
    uint64_t key, id;
};
_Static_assert(sizeof(struct moved) == 16, "layout of an item");

struct tsp_ids {
    pthread_mutex_t lock;
    unsigned refs, shift;
    char *path;     /* NULL: not kept */
    uint64_t *kept; /* ascending keys that have their own bits as ids, as in the file */
    size_t n_kept;
    struct map fresh;        /* key by id, of keys that have their own bits and are not in the file */
    struct map moved, taken; /* id by key; key by id */
    bool moved_since;        /* moved keys are not all in the file */
    size_t retry;            /* number of fresh ids before the next try, after a failed write */
};

struct tsp_ids *tsp_ids_new(unsigned bits)
{
    struct tsp_ids *t = mem_zalloc(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    t->refs = 1;
    t->shift = 64 - bits;
    return t;
}

struct tsp_ids *tsp_ids_ref(struct tsp_ids *t)
{
    pthread_mutex_lock(&t->lock);
    t->refs++;
    pthread_mutex_unlock(&t->lock);
    return t;
}

void tsp_ids_unref(struct tsp_ids *t)
{
    struct err ignored = {0};
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    bool last = !--t->refs;
    pthread_mutex_unlock(&t->lock);
    if (!last)
        return;
    tsp_ids_save(t, true, &ignored);
    pthread_mutex_destroy(&t->lock);
    map_fini(&t->fresh);
    map_fini(&t->moved);
    map_fini(&t->taken);
    free(t->kept);
    free(t->path);
    free(t);
}

/* ---- new ids ---- */

static bool find_kept(const struct tsp_ids *t, uint64_t id, uint64_t *key)
{
    size_t at = search_first(i, 0, t->n_kept, t->kept[i] >> t->shift >= id);
    if (at == t->n_kept || t->kept[at] >> t->shift != id)
        return false;
    *key = t->kept[at];
    return true;
}

/* Key that has the id; false: none. */
static bool holder(const struct tsp_ids *t, uint64_t id, uint64_t *key)
{
    const uint64_t *found = map_find(&t->fresh, id);
    if (!found)
        found = map_find(&t->taken, id);
    if (found)
        *key = *found;
    return found || find_kept(t, id, key);
}

static void put_moved(struct tsp_ids *t, uint64_t key, uint64_t id)
{
    *map_put(&t->moved, key, NULL) = id;
    *map_put(&t->taken, id, NULL) = key;
}

static uint64_t move(struct tsp_ids *t, uint64_t key)
{
    uint64_t id, other;
    for (uint64_t n = 1;; n++) {
        id = map_hash((uint64_t[2]){key, n}, sizeof(uint64_t[2])) >> t->shift;
        if (id && !holder(t, id, &other))
            break;
    }
    put_moved(t, key, id);
    t->moved_since = true;
    return id;
}

static uint64_t give(struct tsp_ids *t, uint64_t key)
{
    uint64_t id = key >> t->shift, other;
    const uint64_t *elsewhere = map_find(&t->moved, key);
    if (elsewhere)
        return *elsewhere;
    bool held = holder(t, id, &other);
    if (held && other == key)
        return id;
    if (held || !id)
        return move(t, key);
    *map_put(&t->fresh, id, NULL) = key;
    return id;
}

uint64_t tsp_ids_of(struct tsp_ids *t, uint64_t key)
{
    pthread_mutex_lock(&t->lock);
    uint64_t id = give(t, key);
    pthread_mutex_unlock(&t->lock);
    return id;
}

/* ---- the file ---- */

struct contents {
    uint64_t *kept;
    size_t n_kept;
    struct moved *moved;
    size_t n_moved;
};

static void contents_free(struct contents *c)
{
    free(c->kept);
    free(c->moved);
}

/* Checks that no two keys share an id, which would be found too late. */
static bool makes_sense(const struct tsp_ids *t, const struct contents *c)
{
    struct map ids = {0};
    bool fresh = true;
    for (size_t i = 0; i < c->n_kept; i++)
        if (!(c->kept[i] >> t->shift) || (i && c->kept[i - 1] >> t->shift >= c->kept[i] >> t->shift))
            return false;
    for (size_t i = 0; i < c->n_moved && fresh; i++) {
        const struct moved *m = &c->moved[i];
        size_t at = search_first(k, 0, c->n_kept, c->kept[k] >> t->shift >= m->id);
        fresh = m->id && m->id <= UINT64_MAX >> t->shift && (at == c->n_kept || c->kept[at] >> t->shift != m->id) &&
            (!i || c->moved[i - 1].key < m->key);
        if (fresh)
            map_put(&ids, m->id, &fresh);
    }
    map_fini(&ids);
    return fresh;
}

/* Reads the file. A missing file has no ids. */
static int read_file(const struct tsp_ids *t, const char *path, struct contents *c, struct err *e)
{
    struct store *s;
    uint64_t bits = 64 - t->shift;
    int rc = store_open(path, "ids", IDS_VERSION, &bits, &s, e);
    if (rc)
        return rc == ERR_NOTFOUND ? 0 : rc;
    const uint64_t *kept = store_section(s, "keys", sizeof *kept, &c->n_kept);
    const struct moved *moved = store_section(s, "moved", sizeof *moved, &c->n_moved);
    c->kept = mem_alloc((c->n_kept + 1) * sizeof *kept);
    c->moved = mem_alloc((c->n_moved + 1) * sizeof *moved);
    if (c->n_kept)
        memcpy(c->kept, kept, c->n_kept * sizeof *kept);
    if (c->n_moved)
        memcpy(c->moved, moved, c->n_moved * sizeof *moved);
    rc = store_intact(s, e);
    store_close(s);
    if (!rc && !makes_sense(t, c))
        rc = err_set(e, ERR_FORMAT, "%s: the ids in it make no sense; it is made anew", path);
    return rc;
}

/* Merges the file's ids. Ids given before the file was known stand; all others come from the file. */
static void take_in(struct tsp_ids *t, const struct contents *c)
{
    struct map given = t->fresh;
    uint64_t other;
    t->fresh = (struct map){0};
    t->kept = mem_resize(t->kept, (c->n_kept + 1) * sizeof *t->kept);
    t->n_kept = 0;
    for (size_t i = 0; i < c->n_kept; i++) {
        const uint64_t *mine = map_find(&given, c->kept[i] >> t->shift);
        if (!map_find(&t->moved, c->kept[i]) && !map_find(&t->taken, c->kept[i] >> t->shift) &&
            (!mine || *mine == c->kept[i]))
            t->kept[t->n_kept++] = c->kept[i];
    }
    for (size_t i = 0; i < given.cap; i++)
        if (given.used[i] && !find_kept(t, given.keys[i], &other))
            *map_put(&t->fresh, given.keys[i], NULL) = given.values[i];
    for (size_t i = 0; i < c->n_moved; i++) {
        uint64_t own = c->moved[i].key >> t->shift;
        bool stands = (holder(t, own, &other) && other == c->moved[i].key) || map_find(&t->moved, c->moved[i].key);
        if (!stands && !holder(t, c->moved[i].id, &other))
            put_moved(t, c->moved[i].key, c->moved[i].id);
    }
    map_fini(&given);
}

int tsp_ids_keep_in(struct tsp_ids *t, const char *path, struct err *e)
{
    struct contents c = {0};
    int rc = 0;
    pthread_mutex_lock(&t->lock);
    if (!t->path || strcmp(t->path, path) != 0) {
        rc = read_file(t, path, &c, e);
        if (!rc && c.kept)
            take_in(t, &c);
        free(t->path);
        t->path = mem_strdup(path);
        t->retry = 0;
        contents_free(&c);
    }
    pthread_mutex_unlock(&t->lock);
    return rc;
}

/* Returns the kept keys and the fresh ones. */
static uint64_t *all_kept(const struct tsp_ids *t, size_t *n)
{
    uint64_t *all = mem_alloc((t->n_kept + t->fresh.n + 1) * sizeof *all);
    *n = 0;
    for (size_t i = 0; i < t->fresh.cap; i++)
        if (t->fresh.used[i])
            all[(*n)++] = t->fresh.values[i];
    if (t->n_kept)
        memcpy(all + *n, t->kept, t->n_kept * sizeof *all);
    *n += t->n_kept;
    qsort(all, *n, sizeof *all, order_u64);
    return all;
}

static int write_file(const struct tsp_ids *t, const uint64_t *kept, size_t n, struct err *e)
{
    struct moved *moved = mem_alloc((t->moved.n + 1) * sizeof *moved);
    size_t n_moved = 0;
    for (size_t i = 0; i < t->moved.cap; i++)
        if (t->moved.used[i])
            moved[n_moved++] = (struct moved){t->moved.keys[i], t->moved.values[i]};
    if (n_moved)
        qsort(moved, n_moved, sizeof *moved, order_u64);
    struct store_writer *w = store_create(t->path, "ids", IDS_VERSION, 64 - t->shift, 2);
    store_add(w, "keys", kept, sizeof *kept, n);
    store_add(w, "moved", moved, sizeof *moved, n_moved);
    free(moved);
    return store_commit(w, e);
}

static int save(struct tsp_ids *t, struct err *e)
{
    size_t n;
    uint64_t *all = all_kept(t, &n);
    int rc = write_file(t, all, n, e);
    if (rc) {
        t->retry = 2 * t->fresh.n + 64;
        free(all);
        return rc;
    }
    free(t->kept);
    t->kept = all;
    t->n_kept = n;
    map_fini(&t->fresh);
    t->moved_since = false;
    t->retry = 0;
    return 0;
}

int tsp_ids_save(struct tsp_ids *t, bool now, struct err *e)
{
    int rc = 0;
    pthread_mutex_lock(&t->lock);
    bool some = t->fresh.n || t->moved_since, due = t->moved_since || t->fresh.n > t->n_kept / SHARE;
    if (t->path && some && (now || (due && t->fresh.n >= t->retry)))
        rc = save(t, e);
    pthread_mutex_unlock(&t->lock);
    return rc;
}
