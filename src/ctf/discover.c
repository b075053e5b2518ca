/* Finds traces in a tree of directories, and which of them are pieces of one. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/order.h"
#include "base/text.h"
#include "ctf/ctf.h"

enum { DEPTH_MAX = 24, HEAD_BYTES = 1 << 16 };

/* Which directory it is, whatever the path. */
struct inode {
    dev_t dev;
    ino_t ino;
};
struct found {
    char *dir, *key; /* key: what makes traces one; NULL: nothing does */
    struct inode inode;
    size_t root;
};
struct finder {
    struct ctf_root *roots;
    size_t root; /* where it looks now */
    VEC(struct found) list;
    VEC(struct inode) seen; /* directories of this root: one that is reached twice, through links, counts once */
};

/* ---- what a trace says of itself ---- */

/* The beginning of the metadata as text: packets of a packetised file (either byte order) without their headers.
 * NUL-terminated; free() it. */
static char *metadata_head(const char *dir)
{
    char *path = NULL, *text = NULL;
    struct file_map map;
    if (asprintf(&path, "%s/metadata", dir) < 0)
        return NULL;
    if (!file_map_open(path, &map, NULL)) {
        size_t n = map.size < HEAD_BYTES ? map.size : HEAD_BYTES, at = 0, out = 0;
        text = mem_zalloc(n + 1);
        const uint8_t le[4] = {0x57, 0x1d, 0xd1, 0x75}, be[4] = {0x75, 0xd1, 0x1d, 0x57};
        while (n >= 37 && at <= n - 37 && (!memcmp(map.data + at, le, 4) || !memcmp(map.data + at, be, 4))) {
            bool big = map.data[at] == be[0];
            uint32_t content = 0, packet = 0;
            for (int i = 0; i < 4; i++) {
                content = content << 8 | map.data[at + 24 + (size_t)(big ? i : 3 - i)];
                packet = packet << 8 | map.data[at + 28 + (size_t)(big ? i : 3 - i)];
            }
            size_t text_bytes = content / 8 > 37 ? content / 8 - 37 : 0;
            if (text_bytes > n - at - 37)
                text_bytes = n - at - 37;
            if (text_bytes > n - out) /* contents that reach into the next packet are read twice */
                text_bytes = n - out;
            memcpy(text + out, map.data + at + 37, text_bytes);
            out += text_bytes;
            if (packet / 8 < 37 || packet / 8 > n - at)
                break;
            at += packet / 8;
        }
        if (out == 0 && n)
            memcpy(text, map.data, n);
        file_map_close(&map);
    }
    free(path);
    return text;
}

/* Appends the value behind `name =` (up to ; or the line's end) inside the block, when there is one. */
static void add_value(struct text *key, const char *block, const char *end, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = block; (p = strstr(p, name)) && p < end; p += n) {
        const char *v = p + n;
        bool whole = p > block && !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", p[-1]);
        while (*v == ' ' || *v == '\t')
            v++;
        if (!whole || *v != '=')
            continue;
        v++;
        while (*v == ' ' || *v == '\t')
            v++;
        text_puts(key, name);
        text_putc(key, '=');
        text_put(key, v, strcspn(v, ";\r\n"));
        text_putc(key, '\n');
        return;
    }
}

static void add_block(struct text *key, const char *meta, const char *block, const char *const *names)
{
    for (const char *p = meta; (p = strstr(p, block)); p += strlen(block)) {
        const char *open = p + strlen(block);
        bool at_start = p == meta || p[-1] == '\n' || p[-1] == ' ' || p[-1] == ';' || p[-1] == '}' || p[-1] == '\t' ||
            p[-1] == '\r';
        while (*open == ' ' || *open == '\t' || *open == '\n' || *open == '\r')
            open++;
        if (!at_start || *open != '{')
            continue;
        const char *end = strstr(open, "};");
        if (!end)
            end = open + strlen(open);
        for (; *names; names++)
            add_value(key, open, end, *names);
        return;
    }
}

/* UUID, host, domain and process; NULL when the trace has no UUID: then nothing says that two are one. */
static char *identity(const char *dir)
{
    static const char *const of_trace[] = {"uuid", NULL};
    static const char *const of_env[] = {"hostname", "domain", "procname", "vpid", NULL};
    char *meta = metadata_head(dir);
    struct text key = {.fd = -1};
    char *out = NULL;
    if (!meta)
        return NULL;
    add_block(&key, meta, "trace", of_trace);
    if (key.n) {
        add_block(&key, meta, "env", of_env);
        out = mem_strdup(text_cstr(&key));
    }
    text_fini(&key);
    free(meta);
    return out;
}

/* ---- the tree ---- */

static bool is_trace(const char *dir)
{
    char *path = NULL;
    struct stat st;
    if (asprintf(&path, "%s/metadata", dir) < 0)
        return false;
    bool is = !stat(path, &st) && S_ISREG(st.st_mode);
    free(path);
    return is;
}

static bool same_inode(struct inode a, struct inode b)
{
    return a.dev == b.dev && a.ino == b.ino;
}

static bool first_visit(struct finder *f, struct inode here)
{
    for (size_t i = 0; i < f->seen.n; i++)
        if (same_inode(f->seen.v[i], here))
            return false;
    vec_push(&f->seen, here);
    return true;
}

static void add_trace(struct finder *f, const char *dir, struct inode inode)
{
    struct ctf_root *root = &f->roots[f->root];
    root->found++;
    for (size_t i = 0; i < f->list.n; i++)
        if (same_inode(f->list.v[i].inode, inode)) {
            root->again++;
            return;
        }
    struct found one = {mem_strdup(dir), identity(dir), inode, f->root};
    vec_push(&f->list, one);
}

static void search(struct finder *f, const char *dir, int depth)
{
    struct stat st;
    if (depth > DEPTH_MAX || stat(dir, &st) || !S_ISDIR(st.st_mode))
        return;
    struct inode here = {st.st_dev, st.st_ino};
    if (!first_visit(f, here))
        return;
    if (is_trace(dir)) {
        add_trace(f, dir, here);
        return;
    }
    struct dirent **names;
    int n = scandir(dir, &names, NULL, alphasort);
    for (int i = 0; i < n; i++) {
        char *path = NULL;
        bool maybe = names[i]->d_name[0] != '.' &&
            (names[i]->d_type == DT_DIR || names[i]->d_type == DT_LNK || names[i]->d_type == DT_UNKNOWN);
        if (maybe && asprintf(&path, "%s/%s", dir, names[i]->d_name) >= 0) {
            search(f, path, depth + 1);
            free(path);
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
}

static int by_root(const void *pa, const void *pb)
{
    const struct found *a = pa, *b = pb;
    return a->root != b->root ? order_of(a->root, b->root) : strcmp(a->dir, b->dir);
}

static bool are_one(const struct finder *f, const struct found *a, const struct found *b)
{
    const char *p = f->roots[a->root].name, *q = f->roots[b->root].name;
    return a->key && b->key && !strcmp(a->key, b->key) && (!p || !q || !strcmp(p, q));
}

static void group(struct finder *f, struct ctf_group **groups, size_t *n)
{
    VEC(struct ctf_group) out = {0};
    for (size_t i = 0; i < f->list.n; i++) {
        struct found *first = &f->list.v[i];
        if (!first->dir)
            continue;
        VEC(char *) dirs = {0};
        size_t root = first->root;
        for (size_t k = i; k < f->list.n; k++) {
            struct found *other = &f->list.v[k];
            if (k != i && (!other->dir || !are_one(f, first, other)))
                continue;
            vec_push(&dirs, other->dir);
            other->dir = NULL;
            if (!f->roots[root].name)
                root = other->root;
        }
        qsort(dirs.v, dirs.n, sizeof *dirs.v, order_strings); /* the same trace, whatever the order of the roots */
        struct ctf_group g = {dirs.v, dirs.n, root};
        vec_push(&out, g);
    }
    *groups = out.v;
    *n = out.n;
}

/* The directory that a path means. */
static int look_below(struct finder *f, const char *path, struct err *e)
{
    struct stat st;
    if (stat(path, &st))
        return err_sys(e, "%s", path);
    char *top = mem_strdup(path);
    size_t len = strlen(top);
    if (S_ISREG(st.st_mode) && len >= 8 && !strcmp(top + len - 8, "metadata") && (len == 8 || top[len - 9] == '/')) {
        free(top); /* the metadata file itself was named */
        top = len == 8 ? mem_strdup(".") : mem_strdup(path);
        if (len > 8)
            top[len - 9] = '\0';
    }
    for (len = strlen(top); len > 1 && top[len - 1] == '/'; len--)
        top[len - 1] = '\0';
    f->seen.n = 0;
    search(f, top, 0);
    free(top);
    if (!f->roots[f->root].found)
        return err_set(e, ERR_NOTFOUND, "%s: no trace here: none of the directories below has a `metadata` file", path);
    return 0;
}

int ctf_discover_all(struct ctf_root *roots, size_t n_roots, struct ctf_group **groups, size_t *n, struct err *e)
{
    struct finder f = {.roots = roots};
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
        qsort(f.list.v, f.list.n, sizeof *f.list.v, by_root);
        group(&f, groups, n);
    }
    if (!found && n_roots) {
        rc = roots[0].problem.code;
        if (e)
            *e = roots[0].problem;
    }
    for (size_t i = 0; i < f.list.n; i++) {
        free(f.list.v[i].dir);
        free(f.list.v[i].key);
    }
    vec_free(&f.list);
    vec_free(&f.seen);
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
        for (size_t k = 0; k < groups[i].n; k++)
            free(groups[i].dirs[k]);
        free(groups[i].dirs);
    }
    free(groups);
}
