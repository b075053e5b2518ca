/* SPDX-License-Identifier: MIT */
#include "share/shared.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/wire.h"
#include "bus/bus.h"

enum { SHARED_VERSION = 1, IS_SHARED = 1, IS_FORCED = 2, MOST_LEVELS = 24, MOST_ENTRIES = 1 << 20 };
/* Redelivery time; a worker reports progress three times as often. */
#define REDELIVER_NS (12 * NS_PER_S)

/* ---- entries ---- */

/* "a/b", or "." for the root itself. */
static bool path_is_good(const char *path)
{
    if (!strcmp(path, "."))
        return true;
    for (const char *at = path;;) {
        size_t n = strcspn(at, "/");
        if (!n || (n == 1 && at[0] == '.') || (n == 2 && at[0] == '.' && at[1] == '.'))
            return false;
        if (!at[n])
            return strlen(path) <= SHARED_MOST_PATH;
        at += n + 1;
    }
}

void share_entry_write(const struct shared_trace *t, struct text *out)
{
    text_putc(out, SHARED_VERSION);
    wire_put_string(out, t->work.path);
    text_putc(out, (char)t->work.state);
    text_putc(out, (char)((t->shared ? IS_SHARED : 0) | (t->force ? IS_FORCED : 0)));
    wire_put_u(out, t->keep_ns);
    wire_put_string(out, t->work.node ? t->work.node : "");
    wire_put_string(out, t->work.text ? t->work.text : "");
    wire_put_u(out, t->work.events);
    wire_put_i(out, t->work.took_ns);
}

static const char *take_string(struct wire_in *w, struct arena *a, size_t most)
{
    size_t n;
    const char *s = wire_string(w, &n);
    w->damaged |= n > most || memchr(s, 0, n);
    return w->damaged ? "" : arena_strndup(a, s, n);
}

int share_entry_read(struct arena *a, const void *bytes, size_t n, struct shared_trace *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    uint8_t version, state, flags;
    *out = (struct shared_trace){0};
    wire_bytes(&w, &version, 1);
    out->work.path = take_string(&w, a, SHARED_MOST_PATH);
    wire_bytes(&w, &state, 1);
    wire_bytes(&w, &flags, 1);
    out->keep_ns = wire_u(&w);
    out->work.node = take_string(&w, a, BUS_MAX_NAME);
    out->work.text = take_string(&w, a, SHARED_MOST_TEXT);
    out->work.events = wire_u(&w);
    out->work.took_ns = wire_i(&w);
    if (w.damaged || w.at != w.end || version != SHARED_VERSION || state > SHARE_WORK_FAILED ||
        !path_is_good(out->work.path))
        return err_set(e, ERR_FORMAT, "the entry of a shared trace makes no sense to this version of weft");
    out->work.state = state;
    out->shared = flags & IS_SHARED;
    out->force = flags & IS_FORCED;
    return 0;
}

void share_key(const char *path, char out[SHARED_KEY])
{
    uint64_t hash[2];
    struct map_piece piece = {path, strlen(path)};
    map_hash_pieces(&piece, 1, hash);
    snprintf(out, SHARED_KEY, "%016" PRIx64 "%016" PRIx64, hash[0], hash[1]);
}

int share_entry_check(struct arena *a, const struct bus_entry *entry, struct shared_trace *out, struct err *e)
{
    char key[SHARED_KEY];
    int rc = share_entry_read(a, entry->data, entry->n, out, e);
    if (rc)
        return rc;
    share_key(out->work.path, key);
    return strcmp(key, entry->key) ? err_set(e, ERR_FORMAT, "the entry of a shared trace has another's key") : 0;
}

/* ---- names on the bus ---- */

int share_open_table(struct bus *bus, const char *cluster, struct bus_table **out, struct err *e)
{
    char name[CLUSTER_SUBJECT];
    int rc = cluster_table_name(cluster, "shared", name, e);
    return rc ? rc : bus_table_open(bus, name, NULL, out, e);
}

int share_open_queue(struct bus *bus, const char *cluster, struct bus_queue **out, struct err *e)
{
    char name[CLUSTER_SUBJECT];
    struct bus_queue_options o = {.redeliver_ns = REDELIVER_NS};
    int rc = cluster_table_name(cluster, "work", name, e);
    return rc ? rc : bus_queue_open(bus, name, &o, out, e);
}

int share_members_subject(const char *cluster, char out[SHARED_SUBJECT], struct err *e)
{
    char token[SHARED_SUBJECT];
    if (bus_token(cluster, token, sizeof token) || snprintf(out, SHARED_SUBJECT, "weft.%.200s.share", token) > 200)
        return err_set(e, ERR_LIMIT, "the name of the cluster is too long: %.40s", cluster);
    return 0;
}

/* ---- paths ---- */


struct walk {
    const char *root;
    struct text path;
    size_t entries;
};

static int check_link(const struct walk *w, const char *path, struct err *e)
{
    char *real = file_real_path(path);
    /* A link to nothing is read by nobody, but a store could be made where it leads. */
    bool good = real && file_is_below(real, w->root);
    free(real);
    return good ? 0 : err_set(e, ERR_ARG, "%s: a link that leads out of %s, below which all has to be", path, w->root);
}

static int check_tree(struct walk *w, int level, struct err *e);

static int check_entry(struct walk *w, const struct dirent *d, int level, struct err *e)
{
    struct stat st;
    if (!strcmp(d->d_name, ".") || !strcmp(d->d_name, ".."))
        return 0;
    if (++w->entries > MOST_ENTRIES || level > MOST_LEVELS)
        return err_set(e, ERR_LIMIT, "%s: too many files or levels for one trace", text_cstr(&w->path));
    size_t n = w->path.n;
    text_printf(&w->path, "/%s", d->d_name);
    const char *path = text_cstr(&w->path);
    int rc = 0;
    if (!lstat(path, &st))
        rc = S_ISLNK(st.st_mode) ? check_link(w, path, e) : S_ISDIR(st.st_mode) ? check_tree(w, level + 1, e) : 0;
    w->path.n = n;
    return rc;
}

static int check_tree(struct walk *w, int level, struct err *e)
{
    int rc = 0;
    DIR *dir = opendir(text_cstr(&w->path));
    if (!dir)
        return 0; /* the reader reports the reason */
    for (const struct dirent *d; !rc && (d = readdir(dir));)
        rc = check_entry(w, d, level, e);
    closedir(dir);
    return rc;
}

int share_resolve(const char *root, const char *path, char **real, struct err *e)
{
    char *full = mem_printf("%s/%s", root, path);
    struct stat st;
    *real = path_is_good(path) ? file_real_path(full) : NULL;
    int rc = 0;
    if (!path_is_good(path))
        rc = err_set(e, ERR_ARG, "%s: no path below a root", path);
    else if (!*real || stat(*real, &st) || !S_ISDIR(st.st_mode))
        rc = err_set(e, ERR_NOTFOUND, "%s: no such directory here", full);
    else if (!file_is_below(*real, root))
        rc = err_set(e, ERR_ARG, "%s: leads out of %s, below which all has to be", full, root);
    if (!rc) {
        struct walk w = {.root = root, .path = {.fd = -1}};
        text_puts(&w.path, *real);
        rc = check_tree(&w, 0, e);
        text_fini(&w.path);
    }
    if (rc) {
        free(*real);
        *real = NULL;
    }
    free(full);
    return rc;
}

uint64_t share_weight(const char *path, const char *node)
{
    return map_mix(map_hash(path, strlen(path)) ^ map_mix(map_hash(node, strlen(node))));
}
