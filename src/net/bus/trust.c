/* SPDX-License-Identifier: MIT */
#include "bus/trust.h"

#include <nettle/eddsa.h>
#include <nettle/sha2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/wait.h"
#include "bus/wire.h"

enum { KEY_VERSION = 1, ENTRY_BYTES = 1 + TRUST_KEY_BYTES, MOST_NOTED = 3, TRIES = 3 };
#define AGAIN_NS (NS_PER_S / 5)
static const char domain[] = "weft answer 1"; /* prefix that separates these signatures from all others */

struct key {
    bool is_there, is_readable; /* unreadable: of a newer weft; nothing is signed by it */
    uint8_t bytes[TRUST_KEY_BYTES];
};

struct trust {
    struct trust *next;
    struct bus *bus;
    char *below; /* ends with a dot */
    struct bus_table *table;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t change;
    struct bus_watch *watch; /* started with the first question */
    bool watched, all;       /* all: the table has been read */
    struct strings names;    /* tokens */
    VEC(struct key) keys;    /* indexed by number of the token */
    struct strings noted;
    atomic_uint changes; /* counter of changes of keys */
};

struct signer {
    struct trust *trust;
    char *token;
    struct bus_watch *watch;
    uint8_t secret[TRUST_KEY_BYTES], key[TRUST_KEY_BYTES];
    bool seen;      /* used by the watch: the table has an entry */
    int64_t put_ns; /* time of the last repair of its entry; 0: never */
};

/* ---- statements ---- */

void bus_trust_hash(const void *question, size_t n, uint8_t out[TRUST_HASH_BYTES])
{
    struct sha256_ctx h;
    sha256_init(&h);
    if (n)
        sha256_update(&h, n, question);
    sha256_digest(&h, TRUST_HASH_BYTES, out);
}

static void put_number(struct sha256_ctx *h, uint64_t v)
{
    uint8_t bytes[8];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(v >> 8 * i);
    sha256_update(h, sizeof bytes, bytes);
}

static void put_string(struct sha256_ctx *h, const char *s)
{
    put_number(h, strlen(s));
    sha256_update(h, strlen(s), (const uint8_t *)s);
}

static void digest(const struct trust_statement *s, uint8_t out[TRUST_HASH_BYTES])
{
    static const uint8_t none[TRUST_HASH_BYTES];
    struct sha256_ctx h;
    sha256_init(&h);
    put_string(&h, domain);
    put_string(&h, s->subject);
    put_string(&h, s->reply);
    sha256_update(&h, TRUST_HASH_BYTES, s->question ? s->question : none);
    put_number(&h, (uint64_t)s->kind);
    put_number(&h, (uint32_t)s->number);
    put_number(&h, s->n);
    if (s->n)
        sha256_update(&h, s->n, s->data);
    sha256_digest(&h, TRUST_HASH_BYTES, out);
}

/* ---- bindings ---- */

static const char *token_in(const struct trust *t, const char *subject)
{
    size_t n = strlen(t->below);
    return !strncmp(subject, t->below, n) && subject[n] && !strchr(subject + n, '.') ? subject + n : NULL;
}

struct trust *bus_trust_of(struct bus *b, const char *subject)
{
    pthread_mutex_lock(&b->trusts_lock);
    struct trust *t = b->trusts;
    while (t && !token_in(t, subject))
        t = t->next;
    pthread_mutex_unlock(&b->trusts_lock);
    return t;
}

static void free_one(struct trust *t)
{
    if (t->table)
        bus_table_close(t->table);
    strings_fini(&t->names);
    strings_fini(&t->noted);
    vec_free(&t->keys);
    pthread_cond_destroy(&t->change);
    pthread_mutex_destroy(&t->lock);
    free(t->below);
    free(t);
}

int bus_bind(struct bus *b, const char *below, const char *table, struct err *e)
{
    int rc = bus_subject_check(below, false, e);
    if (rc)
        return rc;
    char *prefix = mem_printf("%s.", below);
    pthread_mutex_lock(&b->trusts_lock);
    struct trust *t = b->trusts;
    while (t && strcmp(t->below, prefix) != 0)
        t = t->next;
    pthread_mutex_unlock(&b->trusts_lock);
    if (t) {
        free(prefix);
        return 0;
    }
    t = mem_zalloc(sizeof *t);
    t->bus = b;
    t->below = prefix;
    pthread_mutex_init(&t->lock, NULL);
    wait_init(&t->change);
    rc = bus_table_open(b, table, NULL, &t->table, e);
    if (rc) {
        free_one(t);
        return rc;
    }
    pthread_mutex_lock(&b->trusts_lock);
    t->next = b->trusts; /* two at once are two, of which the later one is found */
    b->trusts = t;
    pthread_mutex_unlock(&b->trusts_lock);
    return 0;
}

void bus_trust_close(struct bus *b)
{
    for (struct trust *t = b->trusts; t; t = t->next) {
        pthread_mutex_lock(&t->lock);
        struct bus_watch *watch = t->watch;
        t->watch = NULL;
        t->watched = true; /* prevents a new watch */
        pthread_mutex_unlock(&t->lock);
        bus_watch_stop(watch);
        bus_table_close(t->table);
        t->table = NULL;
        if (b->tell && t->noted.n > MOST_NOTED)
            bus_tell(b, "%zu more nodes have no key", t->noted.n - MOST_NOTED);
    }
}

void bus_trust_free(struct bus *b)
{
    for (struct trust *t = b->trusts, *next; t; t = next) {
        next = t->next;
        free_one(t);
    }
}

/* ---- the asking side ---- */

/* Called with the lock held. */
static struct key *key_of(struct trust *t, const char *token)
{
    uint32_t i = strings_intern(&t->names, token, strlen(token));
    while (t->keys.n <= i)
        vec_push(&t->keys, ((struct key){0}));
    return &t->keys.v[i];
}

static struct key read_key(const void *data, size_t n)
{
    struct key k = {.is_there = true};
    k.is_readable = n == ENTRY_BYTES && *(const uint8_t *)data == KEY_VERSION;
    if (k.is_readable)
        memcpy(k.bytes, (const uint8_t *)data + 1, sizeof k.bytes);
    return k;
}

static void on_key(void *arg, const struct bus_entry *entry)
{
    struct trust *t = arg;
    pthread_mutex_lock(&t->lock);
    switch (entry->kind) {
    case BUS_ENTRY_PUT: *key_of(t, entry->key) = read_key(entry->data, entry->n); break;
    case BUS_ENTRY_REMOVED: *key_of(t, entry->key) = (struct key){0}; break;
    case BUS_ENTRY_ANEW: break; /* a broker that lost its tables gets the keys again: the earlier ones stay valid */
    case BUS_ENTRY_ALL: t->all = true; break;
    }
    pthread_cond_broadcast(&t->change);
    pthread_mutex_unlock(&t->lock);
    atomic_fetch_add(&t->changes, 1);
    if (entry->kind == BUS_ENTRY_PUT)
        bus_asker_check_again(t->bus, t);
}

/* The watch is started without the lock: it may call its handler at once. */
static int watch_keys(struct trust *t, struct err *e)
{
    struct bus_watch *watch = NULL;
    pthread_mutex_lock(&t->lock);
    bool begin = !t->watched;
    t->watched = true;
    pthread_mutex_unlock(&t->lock);
    int rc = begin ? bus_table_watch(t->table, on_key, t, &watch, e) : 0;
    pthread_mutex_lock(&t->lock);
    if (begin && rc)
        t->watched = false;
    else if (begin)
        t->watch = watch;
    pthread_mutex_unlock(&t->lock);
    return rc;
}

int bus_trust_has_key(struct trust *t, const char *subject, int64_t deadline_ns, struct err *e)
{
    int64_t longest = time_monotonic_ns() + 3 * t->bus->timeout_ns; /* brokers may be choosing a leader */
    bool in_time = true;
    int rc = watch_keys(t, e);
    if (rc)
        return rc;
    pthread_mutex_lock(&t->lock);
    while (!t->all && in_time && !atomic_load(&t->bus->closed))
        in_time = wait_until(&t->change, &t->lock, deadline_ns < longest ? deadline_ns : longest);
    bool known = t->all, is_there = known && key_of(t, token_in(t, subject))->is_there;
    pthread_mutex_unlock(&t->lock);
    if (known)
        return is_there;
    struct err trouble = {0};
    const char *why = bus_trouble(t->bus, &trouble) ? trouble.text : "the broker did not say them in time";
    return err_set(e, ERR_TIMEOUT, "the keys of those who answer are not known: %s", why);
}

unsigned bus_trust_changes(struct trust *t)
{
    return atomic_load(&t->changes);
}

bool bus_trust_check(struct trust *t, const struct trust_statement *s, const uint8_t signature[TRUST_SIGNATURE_BYTES])
{
    uint8_t hash[TRUST_HASH_BYTES];
    pthread_mutex_lock(&t->lock);
    struct key k = *key_of(t, token_in(t, s->subject));
    pthread_mutex_unlock(&t->lock);
    if (!k.is_there || !k.is_readable)
        return false;
    digest(s, hash);
    return ed25519_sha512_verify(k.bytes, sizeof hash, hash, signature);
}

void bus_trust_note_unsigned(struct trust *t, const char *subject)
{
    const char *token = token_in(t, subject);
    char name[BUS_MAX_SUBJECT + 1];
    pthread_mutex_lock(&t->lock);
    uint32_t before = t->noted.n;
    uint32_t i = strings_intern(&t->noted, token, strlen(token));
    pthread_mutex_unlock(&t->lock);
    if (i >= before && i < MOST_NOTED)
        bus_tell(t->bus,
            "node %s has no key (an older weft): its answers are taken unsigned; --signed-only leaves them out",
            bus_untoken(token, name, sizeof name) ? token : name);
}

/* ---- the answering side ---- */

static void put_key(struct signer *s)
{
    uint8_t entry[ENTRY_BYTES] = {KEY_VERSION};
    int64_t early = s->put_ns ? s->put_ns + AGAIN_NS - time_monotonic_ns() : 0;
    memcpy(entry + 1, s->key, sizeof s->key);
    if (early > 0)
        usleep((useconds_t)(early / 1000)); /* another process puts its key, too: pause */
    for (int i = 0; i < TRIES && bus_table_put(s->trust->table, s->token, entry, sizeof entry, NULL, NULL); i++)
        continue;
    s->put_ns = time_monotonic_ns();
}

/* A broker that lost the table, or somebody who wrote there. */
static void on_own_key(void *arg, const struct bus_entry *entry)
{
    struct signer *s = arg;
    struct key k = {0};
    if (entry->kind == BUS_ENTRY_PUT)
        k = read_key(entry->data, entry->n);
    bool own = k.is_readable && !memcmp(k.bytes, s->key, sizeof s->key);
    if (entry->kind == BUS_ENTRY_PUT && !own)
        bus_tell(s->trust->bus, "somebody else has put a key for %s%s: it is put back; see the broker's permissions",
            s->trust->below, s->token);
    if (entry->kind == BUS_ENTRY_ANEW)
        s->seen = false;
    s->seen |= own;
    if ((entry->kind == BUS_ENTRY_PUT && !own) || entry->kind == BUS_ENTRY_REMOVED ||
        (entry->kind == BUS_ENTRY_ALL && !s->seen))
        put_key(s);
}

int bus_signer_open(struct bus *b, const char *subject, struct signer **out, struct err *e)
{
    struct trust *t = bus_trust_of(b, subject);
    *out = NULL;
    if (!t)
        return 0;
    struct signer *s = mem_zalloc(sizeof *s);
    s->trust = t;
    s->token = mem_strdup(token_in(t, subject));
    arc4random_buf(s->secret, sizeof s->secret);
    ed25519_sha512_public_key(s->key, s->secret);
    uint8_t entry[ENTRY_BYTES] = {KEY_VERSION};
    memcpy(entry + 1, s->key, sizeof s->key);
    int rc = bus_table_put(t->table, s->token, entry, sizeof entry, NULL, e);
    if (!rc)
        rc = bus_table_watch_key(t->table, s->token, on_own_key, s, &s->watch, e);
    if (rc)
        bus_signer_close(s);
    else
        *out = s;
    return rc;
}

void bus_signer_stop(struct signer *s)
{
    if (s)
        bus_watch_stop(s->watch);
    if (s)
        s->watch = NULL;
}

/* The key stays in the table: nobody else can speak for a service that is gone. */
void bus_signer_close(struct signer *s)
{
    bus_signer_stop(s);
    if (s)
        explicit_bzero(s->secret, sizeof s->secret);
    free(s ? s->token : NULL);
    free(s);
}

void bus_signer_sign(const struct signer *s, const struct trust_statement *is, uint8_t out[TRUST_SIGNATURE_BYTES])
{
    uint8_t hash[TRUST_HASH_BYTES];
    digest(is, hash);
    ed25519_sha512_sign(s->key, s->secret, sizeof hash, hash, out);
}
