/* SPDX-License-Identifier: MIT */
/* A catalogue and its file (docs/formats/catalogue.md). */
#include <stdlib.h>

#include "base/order.h"
#include "base/store.h"
#include "base/time.h"
#include "ctf/known.h"

enum { VERSION = 1, SECTIONS = 8 };
/* Directories checked on every opening: the LOOKED_AT most recently written ones, and those written less than RECENT_S
 * before the catalogue was saved, since their writer may not have finished. */
enum { LOOKED_AT = 128, RECENT_S = 3600 };

/* Node, as stored in the file. */
struct saved_node {
    uint64_t inode;
    uint32_t name, end, dir, zero; /* dir: number + 1; 0: no trace */
};
struct saved_text {
    uint64_t at, n;
};

/* ---- life ---- */

struct ctf_catalogue *ctf_catalogue_new(void)
{
    struct ctf_catalogue *c = mem_zalloc(sizeof *c);
    pthread_mutex_init(&c->lock, NULL);
    return c;
}

static void free_own(struct ctf_known *k)
{
    if (!k->own)
        return;
    free((void *)(uintptr_t)k->names);
    free((void *)(uintptr_t)k->files);
    free((void *)(uintptr_t)k->runs);
    free((void *)(uintptr_t)k->packets);
}

void ctf_catalogue_free(struct ctf_catalogue *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_loaded; i++)
        free_own(&c->loaded[i]);
    free(c->loaded);
    for (size_t i = 0; i < c->fresh.n; i++) {
        free_own(c->fresh.v[i]);
        free(c->fresh.v[i]);
    }
    vec_free(&c->fresh);
    for (size_t i = 0; i < c->texts.n; i++)
        free(c->texts.v[i]);
    vec_free(&c->texts);
    vec_free(&c->tree);
    store_close(c->store);
    arena_fini(&c->arena);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

struct ctf_known *ctf_known_new(struct ctf_catalogue *c)
{
    struct ctf_known *k = mem_zalloc(sizeof *k);
    k->catalogue = c;
    vec_push(&c->fresh, k);
    return k;
}

const struct ctf_known_text *ctf_known_keep_text(struct ctf_catalogue *c, const char *text, size_t n)
{
    uint64_t hash = map_hash(text, n);
    struct ctf_known_text *found = NULL;
    pthread_mutex_lock(&c->lock);
    for (size_t i = 0; i < c->texts.n && !found; i++)
        if (c->texts.v[i]->hash == hash && c->texts.v[i]->n == n && !memcmp(c->texts.v[i]->v, text, n))
            found = c->texts.v[i];
    if (!found) {
        found = mem_alloc(sizeof *found + n);
        char *copy = (char *)(found + 1);
        memcpy(copy, text, n);
        *found = (struct ctf_known_text){copy, n, hash};
        vec_push(&c->texts, found);
    }
    pthread_mutex_unlock(&c->lock);
    return found;
}

size_t ctf_catalogue_dirs(const struct ctf_catalogue *c, size_t *read)
{
    size_t n = 0, new = 0;
    for (size_t i = 0; i < c->tree.n; i++) {
        const struct ctf_known *k = c->tree.v[i].known;
        n += k != NULL;
        new += k && k->read;
    }
    if (read)
        *read = new;
    return n;
}

/* ---- saving ---- */

struct saver {
    struct strings names;
    VEC(uint32_t) at; /* positions of the names in `bytes` */
    struct text bytes;
    VEC(struct saved_node) nodes;
    VEC(struct ctf_known_dir) dirs;
    VEC(struct ctf_known_file) files;
    VEC(int64_t) times; /* time of the last write, by directory */
    VEC(const struct ctf_known_text *) texts;
};

static uint32_t save_name(struct saver *s, const char *name)
{
    size_t n = strlen(name);
    uint32_t number = strings_intern(&s->names, name, n);
    while (s->at.n <= number) {
        vec_push(&s->at, (uint32_t)s->bytes.n);
        const char *next = strings_get(&s->names, (uint32_t)s->at.n - 1);
        text_put(&s->bytes, next, strlen(next) + 1);
    }
    return s->at.v[number];
}

static int64_t last_written(const struct ctf_known_dir *d, const struct ctf_known_file *files)
{
    int64_t last = d->modified_ns > d->metadata_modified_ns ? d->modified_ns : d->metadata_modified_ns;
    for (uint32_t i = 0; i < d->n_files; i++)
        last = files[i].modified_ns > last ? files[i].modified_ns : last;
    return last;
}

static uint32_t save_text(struct saver *s, const struct ctf_known_text *text)
{
    for (size_t i = s->texts.n; i > 0; i--) /* mostly the last one */
        if (s->texts.v[i - 1] == text)
            return (uint32_t)i - 1;
    vec_push(&s->texts, text);
    return (uint32_t)s->texts.n - 1;
}

static void save_dir(struct saver *s, const struct ctf_known *k)
{
    struct ctf_known_dir dir = k->dir;
    dir.key = k->key ? save_name(s, k->key) : 0;
    dir.text = save_text(s, k->text);
    vec_push(&s->dirs, dir);
    vec_push(&s->times, last_written(&dir, k->files));
    for (uint32_t i = 0; i < dir.n_files; i++) {
        struct ctf_known_file f = k->files[i];
        f.name = save_name(s, k->names + f.name);
        vec_push(&s->files, f);
    }
}

static int by_time(const void *a, const void *b)
{
    return order_of(*(const int64_t *)a, *(const int64_t *)b);
}

/* Returns the time before which the last write must lie for an entry to be trusted. */
static int64_t settled_before(struct saver *s)
{
    int64_t recent = time_now_ns() - (int64_t)RECENT_S * NS_PER_S;
    if (s->times.n <= LOOKED_AT)
        return INT64_MIN;
    qsort(s->times.v, s->times.n, sizeof *s->times.v, by_time);
    int64_t last = s->times.v[s->times.n - LOOKED_AT];
    return last < recent ? last : recent;
}

static size_t runs_of(const struct ctf_known *k)
{
    size_t n = 0;
    for (uint32_t i = 0; i < k->dir.n_files; i++)
        n += k->files[i].n_runs;
    return n;
}

static size_t packets_of(const struct ctf_known *k)
{
    size_t n = 0, runs = runs_of(k);
    for (size_t i = 0; i < runs; i++)
        n += k->runs[i].n_packets;
    return n;
}

/* Returns whether the node is saved; incomplete ones are read again. */
static bool is_saved(const struct ctf_node *node)
{
    return node->known && node->known->filled;
}

static void write_texts(const struct saver *s, struct store_writer *w)
{
    VEC(struct saved_text) texts = {0};
    uint64_t at = 0;
    for (size_t i = 0; i < s->texts.n; at += s->texts.v[i++]->n) {
        struct saved_text one = {at, s->texts.v[i]->n};
        vec_push(&texts, one);
    }
    store_add(w, "texts", texts.v, sizeof *texts.v, texts.n);
    store_begin(w, "metadata", 1);
    for (size_t i = 0; i < s->texts.n; i++)
        store_append(w, s->texts.v[i]->v, s->texts.v[i]->n);
    vec_free(&texts);
}

int ctf_catalogue_save(const struct ctf_catalogue *c, const char *path, struct err *e)
{
    struct saver s = {.bytes = {.fd = -1}};
    save_name(&s, "");
    for (size_t i = 0; i < c->tree.n; i++) {
        const struct ctf_node *node = &c->tree.v[i];
        if (is_saved(node))
            save_dir(&s, node->known);
        struct saved_node one = {
            node->inode, save_name(&s, node->name), node->end, is_saved(node) ? (uint32_t)s.dirs.n : 0, 0};
        vec_push(&s.nodes, one);
    }
    int64_t settled = settled_before(&s);
    struct store_writer *w = store_create(path, "catalog", VERSION, CTF_RULES_VERSION, SECTIONS + 1);
    store_add(w, "settled", &settled, sizeof settled, 1);
    store_add(w, "nodes", s.nodes.v, sizeof *s.nodes.v, s.nodes.n);
    store_add(w, "dirs", s.dirs.v, sizeof *s.dirs.v, s.dirs.n);
    store_add(w, "files", s.files.v, sizeof *s.files.v, s.files.n);
    store_begin(w, "runs", sizeof(struct ctf_known_run));
    for (size_t i = 0; i < c->tree.n; i++)
        if (is_saved(&c->tree.v[i]))
            store_append(w, c->tree.v[i].known->runs, runs_of(c->tree.v[i].known));
    store_begin(w, "packets", sizeof(struct ctf_known_packet));
    for (size_t i = 0; i < c->tree.n; i++)
        if (is_saved(&c->tree.v[i]))
            store_append(w, c->tree.v[i].known->packets, packets_of(c->tree.v[i].known));
    write_texts(&s, w);
    store_add(w, "names", s.bytes.v, 1, s.bytes.n);
    strings_fini(&s.names);
    text_fini(&s.bytes);
    vec_free(&s.at);
    vec_free(&s.nodes);
    vec_free(&s.dirs);
    vec_free(&s.files);
    vec_free(&s.times);
    vec_free(&s.texts);
    return store_commit(w, e);
}

/* ---- loading ---- */

struct loader {
    struct ctf_catalogue *c;
    const struct saved_node *nodes;
    const struct ctf_known_dir *dirs;
    const struct ctf_known_file *files;
    const struct ctf_known_run *runs;
    const struct ctf_known_packet *packets;
    const struct saved_text *texts;
    const char *metadata, *names;
    size_t n_nodes, n_dirs, n_files, n_runs, n_packets, n_texts, n_metadata, n_names;
    int64_t settled;
};

enum {
    PACKET_FLAGS = CTF_PACKET_TIMED | CTF_PACKET_OPEN_END | CTF_PACKET_UNCLOSED | CTF_PACKET_HAS_SEQ |
        CTF_PACKET_HAS_DISCARDED
};

static bool find_sections(struct loader *l)
{
    struct store *s = l->c->store;
    size_t n;
#define KEPT(field, name) (l->field = store_section_kept(s, name, sizeof *l->field, &l->n_##field))
    KEPT(nodes, "nodes");
    KEPT(dirs, "dirs");
    KEPT(files, "files");
    KEPT(runs, "runs");
    KEPT(packets, "packets");
    KEPT(texts, "texts");
    KEPT(metadata, "metadata");
    KEPT(names, "names");
#undef KEPT
    const int64_t *settled = store_section_kept(s, "settled", sizeof *settled, &n);
    if (n != 1 || !l->n_names || l->names[l->n_names - 1])
        return false;
    l->settled = *settled;
    return true;
}

static bool load_texts(struct loader *l)
{
    for (size_t i = 0; i < l->n_texts; i++) {
        const struct saved_text *t = &l->texts[i];
        if (t->at > l->n_metadata || t->n > l->n_metadata - t->at)
            return false;
        size_t before = l->c->texts.n;
        ctf_known_keep_text(l->c, l->metadata + t->at, t->n);
        if (l->c->texts.n == before) /* duplicate text */
            return false;
    }
    return true;
}

static bool packets_fit(const struct ctf_known_file *f, const struct ctf_known_packet *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i].content_bits > f->size * 8 || p[i].offset > f->size ||
            (p[i].content_bits + 7) / 8 > f->size - p[i].offset || p[i].flags & ~(uint32_t)PACKET_FLAGS ||
            p[i].begin > p[i].end)
            return false;
    return true;
}

/* Loads the entry of a directory: its files, and their runs and packets, are next in the arrays. */
static bool load_dir(struct loader *l, struct ctf_known *k, const struct ctf_known_dir *dir)
{
    if (dir->n_files > l->n_files || dir->key >= l->n_names || dir->text >= l->c->texts.n)
        return false;
    *k = (struct ctf_known){.catalogue = l->c,
        .dir = *dir,
        .key = dir->key ? l->names + dir->key : NULL,
        .text = l->c->texts.v[dir->text],
        .names = l->names,
        .files = l->files,
        .runs = l->runs,
        .packets = l->packets,
        .filled = true};
    for (uint32_t i = 0; i < dir->n_files; i++) {
        const struct ctf_known_file *f = &k->files[i];
        if (f->name >= l->n_names || f->n_runs > l->n_runs || f->size > INT64_MAX / 8 || (f->n_runs && !f->size))
            return false;
        for (uint32_t r = 0; r < f->n_runs; r++) {
            size_t n = l->runs[r].n_packets;
            if (!n || n > l->n_packets || !packets_fit(f, l->packets, n))
                return false;
            l->packets += n;
            l->n_packets -= n;
        }
        l->runs += f->n_runs;
        l->n_runs -= f->n_runs;
    }
    k->settled = last_written(dir, k->files) < l->settled;
    l->files += dir->n_files;
    l->n_files -= dir->n_files;
    return true;
}

/* Loads the nodes. False unless each directory's subtree lies within its parent's, and each trace's directory occurs
 * once, in order. */
static bool load_nodes(struct loader *l)
{
    VEC(uint32_t) open = {0};
    size_t dirs = 0;
    bool fits = true;
    for (size_t i = 0; i < l->n_nodes && fits; i++) {
        const struct saved_node *n = &l->nodes[i];
        while (open.n && open.v[open.n - 1] == i)
            open.n--;
        size_t limit = open.n ? open.v[open.n - 1] : l->n_nodes;
        fits = n->end > i && n->end <= limit && n->name < l->n_names && (!i || open.n) &&
            (!n->dir || (n->dir == dirs + 1 && dirs < l->n_dirs && n->end == i + 1));
        if (!fits)
            break;
        struct ctf_node node = {n->inode, l->names + n->name, n->dir ? &l->c->loaded[dirs] : NULL, n->end, false};
        dirs += n->dir != 0;
        vec_push(&l->c->tree, node);
        vec_push(&open, n->end);
    }
    vec_free(&open);
    return fits && dirs == l->n_dirs;
}

/* Sets `settled` from the end, since the nodes below a node follow it. */
static void settle_nodes(ctf_tree *tree)
{
    for (size_t i = tree->n; i-- > 0;) {
        struct ctf_node *node = &tree->v[i];
        node->settled = node->end > i + 1 || (node->known && node->known->settled);
        for (size_t k = i + 1; k < node->end; k = tree->v[k].end)
            node->settled &= tree->v[k].settled;
    }
}

static bool load_all(struct loader *l)
{
    if (!find_sections(l) || !load_texts(l))
        return false;
    l->c->loaded = mem_zalloc(sizeof *l->c->loaded * (l->n_dirs + 1));
    l->c->n_loaded = l->n_dirs;
    for (size_t i = 0; i < l->n_dirs; i++)
        if (!load_dir(l, &l->c->loaded[i], &l->dirs[i]))
            return false;
    if (l->n_files || l->n_runs || l->n_packets || !load_nodes(l))
        return false;
    settle_nodes(&l->c->tree);
    return true;
}

int ctf_catalogue_load(const char *path, struct ctf_catalogue **out, struct err *e)
{
    struct loader l = {.c = ctf_catalogue_new()};
    uint64_t key = CTF_RULES_VERSION;
    int rc = store_open(path, "catalog", VERSION, &key, &l.c->store, e);
    if (!rc && !load_all(&l))
        rc = err_set(e, ERR_FORMAT, "%s: contradicts itself", path);
    if (rc) {
        ctf_catalogue_free(l.c);
        return rc;
    }
    *out = l.c;
    return 0;
}
