/* SPDX-License-Identifier: MIT */
/* URLs of the nodes' trace servers. They have a table of their own, since entries are read by all clients, and URLs
 * matter only to some. */
#include "cluster/servers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/wire.h"
#include "bus/bus.h"
#include "cluster/protocol.h"

enum { VERSION = 1, HERE_ONLY = 1, MOST_URL = 512, MOST_SERVERS = 4096, TRIES = 3 };

#define LOST_NS (10 * NS_PER_S) /* retention of servers that the broker lost, for nodes to announce them again */

/* ---- encoding ---- */

const char *cluster_url_problem(const char *url)
{
    const char *host = !strncmp(url, "http://", 7) ? url + 7 : !strncmp(url, "https://", 8) ? url + 8 : NULL;
    if (!host || !*host || *host == '/' || *host == ':')
        return "give http://HOST:PORT or https://HOST:PORT";
    if (strlen(url) > MOST_URL)
        return "it is too long";
    for (const char *p = url; *p; p++)
        if (*p <= ' ' || *p >= 127 || strchr("?#@\"\\<>", *p))
            return "an address of a server has no spaces, users, questions, fragments or letters beyond ASCII";
    return url[strlen(url) - 1] == '/' ? "leave the slash at its end away" : NULL;
}

static bool fits_name(const char *name)
{
    for (const char *p = name; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 127)
            return false;
    return *name && strlen(name) <= BUS_MAX_NAME;
}

void cluster_server_entry_write(const struct server_entry *s, struct text *out)
{
    text_putc(out, VERSION);
    wire_put_string(out, s->is.node);
    wire_put_string(out, s->is.url);
    text_putc(out, s->is.here_only ? HERE_ONLY : 0);
    wire_put_bytes(out, &s->machine, sizeof s->machine);
}

static const char *take_text(struct wire_in *w, struct arena *a)
{
    size_t n;
    const char *s = wire_string(w, &n);
    w->damaged |= memchr(s, 0, n) != NULL;
    return arena_strndup(a, s, n);
}

int cluster_server_entry_read(struct arena *a, const void *bytes, size_t n, struct server_entry *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    uint8_t version, flags;
    *out = (struct server_entry){0};
    wire_bytes(&w, &version, 1);
    if (version != VERSION)
        return err_set(e, ERR_UNSUPPORTED, "the server of a node of another version of weft");
    out->is.node = take_text(&w, a);
    out->is.url = take_text(&w, a);
    wire_bytes(&w, &flags, 1);
    wire_bytes(&w, &out->machine, sizeof out->machine);
    out->is.here_only = flags & HERE_ONLY;
    if (w.damaged || w.at != w.end || flags & ~HERE_ONLY || !fits_name(out->is.node) ||
        cluster_url_problem(out->is.url))
        return err_set(e, ERR_FORMAT, "what a node says of its server makes no sense");
    return 0;
}

/* Equal where loopback is the same: the machine since its start, and the network namespace. 0: not known. */
static uint64_t this_machine(void)
{
    char *boot;
    size_t n;
    struct stat net;
    if (stat("/proc/self/ns/net", &net) || file_read("/proc/sys/kernel/random/boot_id", 4096, &boot, &n, NULL))
        return 0;
    uint64_t machine = map_mix(map_hash(boot, n) ^ (uint64_t)net.st_ino);
    free(boot);
    return machine;
}

/* ---- announcing ---- */

struct cluster_announcement {
    struct bus *bus;
    struct bus_table *table;
    struct bus_watch *watch;
    char key[CLUSTER_SUBJECT];
    struct text entry;
    bool met; /* the watch's: among all that the table holds */
};

static int put(struct cluster_announcement *t, struct err *e)
{
    int rc = ERR_IO;
    for (int i = 0; i < TRIES && rc; i++)
        rc = bus_table_put(t->table, t->key, t->entry.v, t->entry.n, NULL, e);
    return rc;
}

/* Returns whether the entry names a server of this node, maybe put there by another run of the node. */
static bool is_of_node(const struct cluster_announcement *t, const struct bus_entry *entry)
{
    struct arena a = {0};
    struct server_entry is;
    char key[CLUSTER_SUBJECT];
    bool good = !cluster_server_entry_read(&a, entry->data, entry->n, &is, NULL) &&
        !bus_token(is.is.node, key, sizeof key) && !strcmp(key, t->key);
    arena_fini(&a);
    return good;
}

/* Announces it again if the broker lost its tables, or somebody removed or damaged the entry. */
static void on_own(void *arg, const struct bus_entry *entry)
{
    struct cluster_announcement *t = arg;
    bool gone = entry->kind == BUS_ENTRY_REMOVED || (entry->kind == BUS_ENTRY_ALL && !t->met) ||
        (entry->kind == BUS_ENTRY_PUT && !is_of_node(t, entry));
    t->met = entry->kind == BUS_ENTRY_PUT || (t->met && entry->kind == BUS_ENTRY_ALL);
    if (gone)
        put(t, NULL); /* fails without a broker: all is announced anew once there is one */
}

int cluster_server_announce(struct bus *bus, const char *cluster, const struct cluster_server *s,
    struct cluster_announcement **out, struct err *e)
{
    struct cluster_announcement *t = mem_zalloc(sizeof *t);
    struct server_entry entry = {*s, this_machine()};
    char table[CLUSTER_SUBJECT];
    const char *wrong = cluster_url_problem(s->url);
    t->bus = bus;
    t->entry.fd = -1;
    cluster_server_entry_write(&entry, &t->entry);
    int rc = wrong ? err_set(e, ERR_ARG, "%s: %s", s->url, wrong) : 0;
    if (!rc && (!fits_name(s->node) || bus_token(s->node, t->key, sizeof t->key)))
        rc = err_set(e, ERR_ARG, "the name of the node is too long, or has letters that cannot be shown");
    if (!rc)
        rc = cluster_table_name(cluster ? cluster : CLUSTER_DEFAULT, "servers", table, e);
    if (!rc)
        rc = bus_table_open(bus, table, NULL, &t->table, e);
    if (!rc)
        rc = put(t, e);
    if (!rc)
        rc = bus_table_watch_key(t->table, t->key, on_own, t, &t->watch, e);
    *out = rc ? NULL : t;
    if (rc)
        cluster_server_withdraw(t);
    return rc;
}

void cluster_server_withdraw(struct cluster_announcement *t)
{
    if (!t)
        return;
    if (t->watch) {
        bus_watch_stop(t->watch);
        if (bus_connected(t->bus))
            bus_table_remove(t->table, t->key, NULL);
    }
    if (t->table)
        bus_table_close(t->table);
    text_fini(&t->entry);
    free(t);
}

/* ---- watching ---- */

struct known {
    char *key, *node, *url;
    bool elsewhere, met;
    int64_t lost_ns; /* the broker does not have it any more since then; 0: it has */
};
struct cluster_servers {
    struct bus_table *table;
    struct bus_watch *watch;
    uint64_t machine;
    pthread_mutex_t lock; /* guards all below */
    VEC(struct known) v;
    bool all;
};

static void forget(struct cluster_servers *s, size_t i)
{
    free(s->v.v[i].key);
    free(s->v.v[i].node);
    free(s->v.v[i].url);
    s->v.v[i] = s->v.v[--s->v.n];
}

static size_t find(const struct cluster_servers *s, const char *key)
{
    size_t i = 0;
    while (i < s->v.n && strcmp(s->v.v[i].key, key) != 0)
        i++;
    return i;
}

/* Takes an entry; an invalid one counts as absent. */
static void take(struct cluster_servers *s, const struct bus_entry *entry)
{
    struct arena a = {0};
    struct server_entry is;
    char key[CLUSTER_SUBJECT];
    size_t at = find(s, entry->key);
    bool good = entry->kind == BUS_ENTRY_PUT && !cluster_server_entry_read(&a, entry->data, entry->n, &is, NULL) &&
        !bus_token(is.is.node, key, sizeof key) && !strcmp(key, entry->key);
    if (at < s->v.n)
        forget(s, at);
    if (good && s->v.n < MOST_SERVERS) {
        bool elsewhere = is.is.here_only && (!s->machine || is.machine != s->machine);
        vec_push(&s->v,
            ((struct known){.key = mem_strdup(entry->key),
                .node = mem_strdup(is.is.node),
                .url = mem_strdup(is.is.url),
                .elsewhere = elsewhere,
                .met = true}));
    }
    arena_fini(&a);
}

static void on_entry(void *arg, const struct bus_entry *entry)
{
    struct cluster_servers *s = arg;
    pthread_mutex_lock(&s->lock);
    if (entry->kind == BUS_ENTRY_PUT || entry->kind == BUS_ENTRY_REMOVED)
        take(s, entry);
    for (size_t i = 0; entry->kind == BUS_ENTRY_ANEW && i < s->v.n; i++)
        s->v.v[i].met = false;
    for (size_t i = 0; entry->kind == BUS_ENTRY_ALL && i < s->v.n; i++)
        if (!s->v.v[i].met && !s->v.v[i].lost_ns)
            s->v.v[i].lost_ns = time_monotonic_ns();
    s->all |= entry->kind == BUS_ENTRY_ALL;
    pthread_mutex_unlock(&s->lock);
}

int cluster_servers_watch(struct bus *bus, const char *cluster, struct cluster_servers **out, struct err *e)
{
    struct cluster_servers *s = mem_zalloc(sizeof *s);
    char table[CLUSTER_SUBJECT];
    s->machine = this_machine();
    pthread_mutex_init(&s->lock, NULL);
    int rc = cluster_table_name(cluster ? cluster : CLUSTER_DEFAULT, "servers", table, e);
    if (!rc)
        rc = bus_table_open(bus, table, NULL, &s->table, e);
    if (!rc)
        rc = bus_table_watch(s->table, on_entry, s, &s->watch, e);
    *out = rc ? NULL : s;
    if (rc)
        cluster_servers_close(s);
    return rc;
}

void cluster_servers_close(struct cluster_servers *s)
{
    if (!s)
        return;
    if (s->watch)
        bus_watch_stop(s->watch);
    if (s->table)
        bus_table_close(s->table);
    while (s->v.n)
        forget(s, s->v.n - 1);
    vec_free(&s->v);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static int by_node(const void *pa, const void *pb)
{
    const struct cluster_server *a = pa, *b = pb;
    return strcmp(a->node, b->node);
}

bool cluster_servers_list(struct cluster_servers *s, struct arena *a, struct cluster_server **out, size_t *n)
{
    pthread_mutex_lock(&s->lock);
    bool all = s->all;
    for (size_t i = s->v.n; i-- > 0;)
        if (s->v.v[i].lost_ns && time_monotonic_ns() > s->v.v[i].lost_ns + LOST_NS)
            forget(s, i);
    *n = all ? s->v.n : 0;
    *out = arena_new(a, struct cluster_server, *n + 1);
    for (size_t i = 0; i < *n; i++)
        (*out)[i] = (struct cluster_server){
            arena_strdup(a, s->v.v[i].node), arena_strdup(a, s->v.v[i].url), s->v.v[i].elsewhere};
    pthread_mutex_unlock(&s->lock);
    if (*n)
        qsort(*out, *n, sizeof **out, by_node);
    return all;
}
