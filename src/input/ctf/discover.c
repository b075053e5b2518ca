/* SPDX-License-Identifier: MIT */
/* Finds traces in a tree of directories, and joins directories that are pieces of one. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/text.h"
#include "ctf/discover.h"
#include "ctf/known.h"

enum { DEPTH_MAX = 24 };

/* Identity of a directory, independent of its path. */
struct inode {
    dev_t dev;
    ino_t ino;
};
struct found {
    char *dir;       /* path in the finder's arena; NULL: already in a group */
    const char *key; /* key that joins traces, in the finder's strings; NULL: never joined */
    size_t root;
    uint64_t inode; /* inode_key */
    struct ctf_known *known;
    bool is_file;
};
/* Range of nodes taken over from the catalogue, which are not in `seen`. */
struct taken {
    dev_t dev;
    size_t begin, end;
};
struct finder {
    struct ctf_root *roots;
    size_t root; /* current root */
    bool any;    /* stops at the first trace */
    VEC(struct found) list;
    bool lacking;      /* memory was missing to search everywhere */
    struct map seen;   /* directories of this root: a directory reached twice, through links, counts once */
    struct map traces; /* traces of all roots, if there are several */
    VEC(struct taken) taken;
    bool all_seen; /* set after links or several roots: nodes taken over are also in `seen` */
    struct strings keys;
    const char *last_key, *last_kept; /* argument and result of the last keep_key */
    struct arena arena;
    struct text path;
    struct ctf_catalogue *catalogue; /* catalogue of this root, or NULL */
    ctf_tree tree;                   /* its new tree */
    bool replaced;                   /* its entries are of other directories than the existing ones */
};

/* ---- the tree ---- */

static bool is_trace(const char *dir)
{
    char *path = mem_printf("%s/metadata", dir);
    struct stat st;
    bool is = !stat(path, &st) && S_ISREG(st.st_mode);
    free(path);
    return is;
}

/* Device and number in 64 bits; a collision of two directories is as unlikely as a memory fault. */
static uint64_t inode_key(struct inode i)
{
    return map_mix(map_mix((uint64_t)i.dev) + (uint64_t)i.ino);
}

static bool first_visit(struct finder *f, struct inode here)
{
    bool fresh;
    map_put(&f->seen, inode_key(here), &fresh);
    return fresh;
}

/* Adds all nodes taken over to `seen`: from now on directories may be reached by links, or from several roots. */
static void see_all(struct finder *f)
{
    for (size_t i = 0; i < f->taken.n && !f->all_seen; i++)
        for (size_t k = f->taken.v[i].begin; k < f->taken.v[i].end; k++)
            first_visit(f, (struct inode){f->taken.v[i].dev, (ino_t)f->tree.v[k].inode});
    f->all_seen = true;
    f->taken.n = 0;
}

/* Counts the directory; false: already found. */
static bool is_new(struct finder *f, struct inode inode)
{
    struct ctf_root *root = &f->roots[f->root];
    bool fresh = true;
    root->found++;
    if (f->all_seen)
        map_put(&f->traces, inode_key(inode), &fresh);
    root->again += !fresh;
    return fresh;
}

/* Returns a unique copy of the key, so that keys are compared by address. */
static const char *keep_key(struct finder *f, const char *key)
{
    if (!key)
        return NULL;
    if (key != f->last_key || !f->last_kept)
        f->last_kept = strings_get(&f->keys, strings_intern(&f->keys, key, strlen(key)));
    f->last_key = key;
    return f->last_kept;
}

static void add_found(
    struct finder *f, const char *dir, size_t n, struct inode inode, const char *key, struct ctf_known *known)
{
    struct found one = {arena_strndup(&f->arena, dir, n), keep_key(f, key), f->root, inode_key(inode), known, false};
    vec_push(&f->list, one);
}

/* Adds a recording in one file. */
static void add_file(struct finder *f, const char *path, struct inode inode)
{
    if (!is_new(f, inode))
        return;
    add_found(f, path, strlen(path), inode, NULL, NULL);
    f->list.v[f->list.n - 1].is_file = true;
}

/* Adds a trace. `known`: its catalogue entry, or NULL. Returns the entry to use. */
static struct ctf_known *add_trace(struct finder *f, const char *dir, struct inode inode, struct ctf_known *known)
{
    enum ctf_known_state state = known ? ctf_known_compare(known, dir) : CTF_KNOWN_CHANGED;
    if (!is_new(f, inode))
        return NULL;
    f->replaced |= state == CTF_KNOWN_REPLACED;
    if (state == CTF_KNOWN_SAME) {
        add_found(f, dir, strlen(dir), inode, known->key, known);
        return known;
    }
    char *key = ctf_identity(dir, &f->lacking);
    known = f->catalogue ? ctf_known_new(f->catalogue) : NULL;
    if (known && key)
        known->key = arena_strdup(&f->catalogue->arena, key);
    f->last_kept = NULL; /* the next key may have the same address */
    add_found(f, dir, strlen(dir), inode, key, known);
    f->last_kept = NULL;
    free(key);
    return known;
}

/* ---- with a catalogue ---- */

/* Adds a directory to the tree; those below it come next, then end_node. The name lives as long as the catalogue. */
static size_t add_node(struct finder *f, const char *name, uint64_t inode)
{
    if (f->catalogue) {
        struct ctf_node node = {.inode = inode, .name = name};
        vec_push(&f->tree, node);
    }
    return f->tree.n - 1;
}

/* Ends a node. Directories without a trace are removed, so that they are searched each time. */
static void end_node(struct finder *f, size_t node, struct ctf_known *known)
{
    if (!f->catalogue)
        return;
    f->tree.v[node].known = known;
    if (node + 1 == f->tree.n && !known)
        f->tree.n = node;
    else
        f->tree.v[node].end = (uint32_t)f->tree.n;
}

static void take_node(struct finder *f, dev_t dev, const struct ctf_node *known, size_t i)
{
    size_t node = add_node(f, known[i].name, known[i].inode), length = f->path.n;
    struct inode here = {dev, (ino_t)known[i].inode};
    struct ctf_known *trace = known[i].known;
    text_putc(&f->path, '/');
    text_puts(&f->path, known[i].name);
    if (f->all_seen && !first_visit(f, here))
        trace = NULL;
    if (trace && !is_new(f, here))
        trace = NULL;
    if (trace)
        add_found(f, f->path.v, f->path.n, here, trace->key, trace);
    for (size_t k = i + 1; k < known[i].end; k = known[k].end)
        take_node(f, dev, known, k);
    f->path.n = length;
    end_node(f, node, trace);
}

/* Takes over a subtree that has not changed for long. */
static void take_known(struct finder *f, const char *dir, dev_t dev, const struct ctf_node *known, size_t i)
{
    size_t begin = f->tree.n;
    f->path.n = 0;
    text_puts(&f->path, dir);
    take_node(f, dev, known, i);
    struct taken *last = f->taken.n ? &f->taken.v[f->taken.n - 1] : NULL;
    if (f->all_seen)
        return;
    if (last && last->dev == dev && last->end == begin)
        last->end = f->tree.n;
    else
        vec_push(&f->taken, ((struct taken){dev, begin, f->tree.n}));
}

/* ---- the walk ---- */

/* Place of the current directory in the catalogue's tree. */
struct place {
    const struct ctf_node *tree; /* NULL: not in the catalogue */
    size_t node;
};
/* Directory entry by which a directory was reached. */
struct met {
    const char *name;
    dev_t dev;
    uint64_t inode;
    bool as_directory; /* no link, according to the entry */
};
static void search(struct finder *f, const char *dir, const struct met *met, int depth, struct place known);

static void search_entry(struct finder *f, const char *dir, const struct met *met, int depth, struct place known)
{
    if (f->any && f->list.n)
        return;
    if (known.tree && met->as_directory && met->inode == known.tree[known.node].inode &&
        known.tree[known.node].settled) {
        take_known(f, dir, met->dev, known.tree, known.node);
        return;
    }
    char *path = mem_printf("%s/%s", dir, met->name);
    search(f, path, met, depth + 1, known);
    free(path);
}

static void search_one(struct finder *f, const char *dir, const struct ctf_listing *l, const struct ctf_listed *entry,
    int depth, dev_t dev, struct place known)
{
    struct met met = {ctf_listed_name(l, entry), dev, entry->inode, entry->type == DT_DIR};
    search_entry(f, dir, &met, depth, known);
}

/* Searches known and new entries together, in the order of their names. */
static void search_below(struct finder *f, const char *dir, int depth, dev_t dev, struct place known)
{
    struct ctf_listing l;
    VEC(struct known_entry {
        size_t node;
        struct ctf_listed entry;
    })
    there = {0};
    int rc = ctf_listing_read(&l, dir);
    f->lacking |= rc == ERR_NOMEM;
    if (rc)
        return;
    size_t end = known.tree ? known.tree[known.node].end : 0;
    for (size_t k = known.node + 1; k < end; k = known.tree[k].end) {
        struct ctf_listed *entry = ctf_listing_find(&l, known.tree[k].name);
        if (!entry)
            continue;
        entry->taken = true;
        vec_push(&there, ((struct known_entry){k, *entry}));
    }
    ctf_listing_sort_rest(&l);
    for (size_t i = 0, next = 0; i < there.n || next < l.entries.n;) {
        const struct ctf_listed *rest = next < l.entries.n ? &l.entries.v[next] : NULL;
        bool is_rest = rest &&
            (i == there.n || strcmp(ctf_listed_name(&l, rest), ctf_listed_name(&l, &there.v[i].entry)) < 0);
        struct place place = is_rest ? (struct place){0} : (struct place){known.tree, there.v[i].node};
        search_one(f, dir, &l, is_rest ? rest : &there.v[i].entry, depth, dev, place);
        next += is_rest;
        i += !is_rest;
    }
    vec_free(&there);
    ctf_listing_fini(&l);
}

static const char *keep_name(struct finder *f, const char *name, struct place known)
{
    if (!f->catalogue || known.tree)
        return known.tree ? known.tree[known.node].name : name;
    return arena_strdup(&f->catalogue->arena, name);
}

static void search(struct finder *f, const char *dir, const struct met *met, int depth, struct place known)
{
    struct stat st;
    if (depth > DEPTH_MAX || stat(dir, &st) || !S_ISDIR(st.st_mode))
        return;
    struct inode here = {st.st_dev, st.st_ino};
    /* Directories that are neither links nor mounts can be reached in one way only. */
    if (!met->as_directory || st.st_ino != met->inode || st.st_dev != met->dev)
        see_all(f);
    if (!first_visit(f, here))
        return;
    struct ctf_known *trace = NULL;
    size_t node = add_node(f, keep_name(f, met->name, known), st.st_ino);
    if (is_trace(dir))
        trace = add_trace(f, dir, here, known.tree ? known.tree[known.node].known : NULL);
    else
        search_below(f, dir, depth, st.st_dev, known);
    end_node(f, node, trace);
}

static void search_top(struct finder *f, const char *top, struct place known)
{
    struct stat st;
    if (stat(top, &st))
        return;
    struct met met = {"", st.st_dev, st.st_ino, true};
    search(f, top, &met, 0, known);
}

static int by_root(const void *pa, const void *pb)
{
    const struct found *a = pa, *b = pb;
    return a->root != b->root ? order_of(a->root, b->root) : strcmp(a->dir, b->dir);
}

static bool are_one(const struct finder *f, const struct found *a, const struct found *b)
{
    const char *p = f->roots[a->root].name, *q = f->roots[b->root].name;
    return a->key && a->key == b->key && (!p || !q || !strcmp(p, q));
}

static int by_dir(const void *pa, const void *pb)
{
    const struct found *a = pa, *b = pb;
    return strcmp(a->dir, b->dir);
}

/* Sorts a list that is mostly in order already. */
static void sort(struct found *list, size_t n, int (*order)(const void *, const void *))
{
    size_t i = 1;
    while (i < n && order(&list[i - 1], &list[i]) <= 0)
        i++;
    if (i < n)
        qsort(list, n, sizeof *list, order);
}

/* Makes a group that does not depend on the order of the roots. The paths lie after the pointers to them. */
static struct ctf_group group_of(struct found *dirs, size_t n, size_t root, bool known)
{
    size_t bytes = sizeof(char *) * n;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(dirs[i].dir) + 1;
    struct ctf_group g = {mem_alloc(bytes), n, root, known ? mem_alloc(sizeof(void *) * n) : NULL, dirs->is_file};
    char *paths = (char *)(g.dirs + n);
    sort(dirs, n, by_dir);
    for (size_t i = 0; i < n; i++) {
        g.dirs[i] = paths;
        paths = stpcpy(paths, dirs[i].dir) + 1;
        if (known)
            g.known[i] = dirs[i].known;
    }
    return g;
}

static void group(struct finder *f, struct ctf_group **groups, size_t *n)
{
    VEC(struct ctf_group) out = {0};
    VEC(struct found) dirs = {0};
    for (size_t i = 0; i < f->list.n; i++) {
        struct found *first = &f->list.v[i];
        if (!first->dir)
            continue;
        size_t root = first->root;
        bool known = false;
        dirs.n = 0;
        for (size_t k = i; k < (first->key ? f->list.n : i + 1); k++) {
            struct found *other = &f->list.v[k];
            if (k != i && (!other->dir || !are_one(f, first, other)))
                continue;
            vec_push(&dirs, *other);
            known |= other->known != NULL;
            if (!f->roots[root].name)
                root = other->root;
            if (k != i)
                other->dir = NULL;
        }
        first->dir = NULL;
        vec_push(&out, group_of(dirs.v, dirs.n, root, known));
    }
    vec_free(&dirs);
    *groups = out.v;
    *n = out.n;
}

/* Drops the findings below this root. */
static void start_again(struct finder *f, size_t found_before)
{
    f->roots[f->root].found = f->roots[f->root].again = 0;
    f->list.n = found_before;
    map_fini(&f->traces);
    for (size_t i = 0; i < f->list.n; i++)
        map_put(&f->traces, f->list.v[i].inode, NULL);
    f->tree.n = f->taken.n = 0;
    f->replaced = false;
    map_fini(&f->seen);
}

/* Searches a root. If a directory was replaced, the whole catalogue of the tree is distrusted, and the search
 * repeated. */
static void search_root(struct finder *f, const char *top)
{
    struct ctf_catalogue *c = f->catalogue = f->roots[f->root].catalogue;
    struct place known = {c && c->tree.n ? c->tree.v : NULL, 0};
    size_t found_before = f->list.n;
    map_fini(&f->seen);
    f->tree.n = f->taken.n = 0;
    f->replaced = false;
    if (known.tree) {
        vec_reserve(&f->tree, c->tree.n + c->tree.n / 64);
        vec_reserve(&f->list, c->n_loaded + c->n_loaded / 64);
    }
    search_top(f, top, known);
    if (f->replaced) {
        start_again(f, found_before);
        search_top(f, top, (struct place){0});
    }
    if (c) {
        vec_free(&c->tree);
        c->tree = f->tree;
        f->tree = (ctf_tree){0};
    }
}

/* Returns the kind of a `metadata` that is no regular file; NULL: none. */
static const char *odd_metadata(const char *dir)
{
    char *path = mem_printf("%s/metadata", dir);
    const char *odd = file_odd_kind(path);
    free(path);
    return odd;
}

/* Searches the directory meant by a path. */
static int look_below(struct finder *f, const char *path, struct err *e)
{
    struct stat st;
    const char *odd;
    if (stat(path, &st))
        return err_sys(e, "%s", path);
    char *top = mem_strdup(path);
    size_t len = strlen(top);
    if (S_ISREG(st.st_mode) && len >= 8 && !strcmp(top + len - 8, "metadata") && (len == 8 || top[len - 9] == '/')) {
        free(top); /* path of the metadata file itself */
        top = len == 8 ? mem_strdup(".") : mem_strdup(path);
        if (len > 8)
            top[len - 9] = '\0';
    }
    for (len = strlen(top); len > 1 && top[len - 1] == '/'; len--)
        top[len - 1] = '\0';
    if (S_ISREG(st.st_mode) && ctf_file_is_recording(top))
        add_file(f, top, (struct inode){st.st_dev, st.st_ino});
    else
        search_root(f, top);
    free(top);
    if (!f->roots[f->root].found && S_ISDIR(st.st_mode) && (odd = odd_metadata(path)))
        return err_set(e, ERR_NOTFOUND, "%s: no trace here: its `metadata` is %s, not a file", path, odd);
    if (!f->roots[f->root].found)
        return S_ISDIR(st.st_mode) ? ctf_refuse_directory(path, e) : ctf_refuse_file(path, st.st_mode, e);
    return 0;
}

static void finder_fini(struct finder *f)
{
    vec_free(&f->list);
    vec_free(&f->tree);
    vec_free(&f->taken);
    strings_fini(&f->keys);
    map_fini(&f->seen);
    map_fini(&f->traces);
    text_fini(&f->path);
    arena_fini(&f->arena);
}

int ctf_discover_all(struct ctf_root *roots, size_t n_roots, struct ctf_group **groups, size_t *n, struct err *e)
{
    struct finder f = {.roots = roots, .all_seen = n_roots > 1, .path = {.fd = -1}};
    int rc = 0;
    *groups = NULL;
    *n = 0;
    size_t found = 0;
    for (; f.root < n_roots; f.root++) {
        struct ctf_root *root = &roots[f.root];
        root->found = root->again = 0;
        root->problem = (struct err){0};
        look_below(&f, root->path, &root->problem);
        found += root->found;
    }
    if (f.list.n) {
        sort(f.list.v, f.list.n, by_root);
        group(&f, groups, n);
    }
    if (!found && n_roots) {
        rc = roots[0].problem.code;
        if (e)
            *e = roots[0].problem;
    }
    if (f.lacking) {
        rc = err_set(e, ERR_NOMEM, "%s: there is too little memory to search all directories", roots[0].path);
        ctf_groups_free(*groups, *n);
        *groups = NULL;
        *n = 0;
    }
    finder_fini(&f);
    return rc;
}

int ctf_discover_any(const char *path, struct err *e)
{
    struct ctf_root root = {.path = path};
    struct finder f = {.roots = &root, .any = true, .path = {.fd = -1}};
    int rc = look_below(&f, path, e);
    if (f.lacking && !f.list.n)
        rc = err_set(e, ERR_NOMEM, "%s: there is too little memory to search all directories", path);
    finder_fini(&f);
    return rc;
}

int ctf_discover(const char *path, struct ctf_group **groups, size_t *n, struct err *e)
{
    struct ctf_root root = {.path = path};
    return ctf_discover_all(&root, 1, groups, n, e);
}

void ctf_groups_free(struct ctf_group *groups, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        free(groups[i].dirs);
        free(groups[i].known);
    }
    free(groups);
}
