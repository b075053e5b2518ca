/* SPDX-License-Identifier: MIT */
#include "place/inbox.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/time.h"

#define NOTE ".moved" /* file in a received directory: identity, and time of receipt */
#define LEFT ".left-"
enum { MOST_NOTE = 4096, MOST_NAME = 64, MOST_OPEN = 16, MOST_STRING = 1024 };

struct place_inbox {
    char *dir;
    uint64_t limit;
};

/* Contents of that file. is: the trace asked for, with its hash at the sender. For an excerpt, which may have been cut
 * from another one, begin and end are those of its contents. */
struct note {
    struct move_trace is;
    bool excerpt;
    int64_t since, begin, end;
    char name[MOST_STRING], from[MOST_STRING];
};

/* ---- trees ---- */

static int drop_one(const char *file, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    (void)!remove(file); /* best effort */
    return 0;
}

static void drop_tree(const char *path)
{
    nftw(path, drop_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS);
}

static _Thread_local uint64_t tree_bytes; /* nftw takes no argument */

static int add_bytes(const char *file, const struct stat *st, int flag)
{
    (void)file;
    tree_bytes += flag == FTW_F && S_ISREG(st->st_mode) ? (uint64_t)st->st_size : 0;
    return 0;
}

/* ---- contents of the directory ---- */

/* Up to the end of the line. Returns what follows it. */
static const char *take_line(const char *text, char out[MOST_STRING])
{
    size_t n = strcspn(text, "\n");
    snprintf(out, MOST_STRING, "%.*s", (int)n, text);
    return text + n + (text[n] == '\n');
}

static bool parse_note(const char *text, struct note *out)
{
    int at = 0;
    *out = (struct note){.is = {.begin = INT64_MIN, .end = INT64_MAX}};
    bool all = sscanf(text, "weft-moved 1 %" SCNx64 " %" SCNx64 " %" SCNd64 " %n", &out->is.key, &out->is.hash,
                   &out->since, &at) == 3 &&
        at > 0;
    out->excerpt = !all &&
        sscanf(text,
            "weft-snip 1 %" SCNx64 " %" SCNx64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %" SCNd64 " %n",
            &out->is.key, &out->is.hash, &out->since, &out->is.begin, &out->is.end, &out->begin, &out->end, &at) == 7 &&
        at > 0 && out->begin <= out->end;
    if (all || out->excerpt)
        take_line(take_line(text + at, out->name), out->from);
    return (all || out->excerpt) && *out->name && out->since > 0;
}

static bool read_note(const struct place_inbox *v, const char *entry, struct note *out)
{
    char *path = mem_printf("%s/%s/" NOTE, v->dir, entry), *text = NULL;
    size_t n;
    bool ok = !file_read(path, MOST_NOTE, &text, &n, NULL) && parse_note(text, out);
    free(text);
    free(path);
    return ok;
}

/* Entries that are whole, sorted. free() each and the array. */
static int entries(const struct place_inbox *v, struct dirent ***out)
{
    int n = scandir(v->dir, out, NULL, alphasort), kept = 0;
    for (int i = 0; i < n; i++) {
        if ((*out)[i]->d_name[0] != '.')
            (*out)[kept++] = (*out)[i];
        else
            free((*out)[i]);
    }
    return kept;
}

static void free_entries(struct dirent **v, int n)
{
    for (int i = 0; i < n; i++)
        free(v[i]);
    if (n >= 0)
        free(v);
}

void place_inbox_list(const struct place_inbox *v, struct arena *a, struct cluster_trace_args *out)
{
    struct dirent **list = NULL;
    struct note note;
    int n = entries(v, &list);
    for (int i = 0; i < n; i++)
        if (read_note(v, list[i]->d_name, &note))
            vec_push(out, (const char *)arena_printf(a, "%s=%s/%s", note.name, v->dir, list[i]->d_name));
    free_entries(list, n);
}

/* The entry of a host; "" when there is none. */
static bool find(const struct place_inbox *v, uint64_t key, struct note *note, char entry[NAME_MAX + 1])
{
    struct dirent **list = NULL;
    int n = entries(v, &list);
    bool found = false;
    for (int i = 0; i < n && !found; i++) {
        found = read_note(v, list[i]->d_name, note) && note->is.key == key;
        snprintf(entry, NAME_MAX + 1, "%s", list[i]->d_name);
    }
    free_entries(list, n);
    return found;
}

bool place_inbox_has(const struct place_inbox *v, struct move_trace t)
{
    struct note note;
    char entry[NAME_MAX + 1];
    return find(v, t.key, &note, entry) && move_is_same(note.is, t);
}

bool place_inbox_has_all(const struct place_inbox *v, uint64_t key)
{
    struct note note;
    char entry[NAME_MAX + 1];
    return find(v, key, &note, entry) && !note.excerpt;
}

/* Reads the note of the received trace at that path, and its directory (NULL: not wanted; free() it). */
static bool note_at(const struct place_inbox *v, const char *path, struct note *out, char **dir)
{
    char *real = v ? file_real_path(path) : NULL;
    size_t n = v ? strlen(v->dir) : 0;
    bool there = false;
    if (real && !strncmp(real, v->dir, n) && real[n] == '/') {
        char *entry = real + n + 1;
        entry[strcspn(entry, "/")] = 0;
        there = read_note(v, entry, out);
    }
    if (there && dir)
        *dir = real;
    else
        free(real);
    return there;
}

int64_t place_inbox_since(const struct place_inbox *v, const char *path)
{
    struct note note;
    return note_at(v, path, &note, NULL) ? note.since : 0;
}

uint64_t place_inbox_key(const struct place_inbox *v, const char *path)
{
    struct note note;
    return note_at(v, path, &note, NULL) ? note.is.key : 0;
}

bool place_inbox_excerpt(
    const struct place_inbox *v, const struct ctf_trace *t, struct arena *a, struct cluster_excerpt *out)
{
    struct note note;
    bool excerpt = v;
    for (size_t i = 0; i < ctf_trace_directories(t) && excerpt; i++)
        excerpt = note_at(v, ctf_trace_directory(t, i), &note, NULL) && note.excerpt;
    if (excerpt)
        *out = (struct cluster_excerpt){true, note.is.hash, note.begin, note.end, arena_strdup(a, note.from)};
    return excerpt;
}

uint64_t place_inbox_room(const struct place_inbox *v)
{
    struct statvfs fs;
    uint64_t room = statvfs(v->dir, &fs) ? 0 : (uint64_t)fs.f_bavail * fs.f_frsize;
    if (!v->limit)
        return room;
    tree_bytes = 0;
    ftw(v->dir, add_bytes, MOST_OPEN);
    uint64_t left = tree_bytes < v->limit ? v->limit - tree_bytes : 0;
    return left < room ? left : room;
}

/* ---- coming and going ---- */

const char *place_inbox_path(const struct place_inbox *v, struct arena *a, struct move_trace t)
{
    if (!move_is_excerpt(t))
        return arena_printf(a, "%s/.arriving-%016" PRIx64 "-%016" PRIx64, v->dir, t.key, t.hash);
    return arena_printf(a, "%s/.snipping-%016" PRIx64 "-%016" PRIx64, v->dir, t.key, map_hash(&t, sizeof t));
}

/* Hides the trace, so that nobody opens it. Its files stay: only a person knows that they are not needed. */
static bool put_aside(const struct place_inbox *v, const char *entry)
{
    char *from = mem_printf("%s/%s", v->dir, entry);
    char *to = mem_printf("%s/" LEFT "%s-%" PRId64, v->dir, entry, time_now_ns());
    bool done = !rename(from, to);
    free(from);
    free(to);
    return done;
}

/* Letters that are safe in every path. */
static void plain_name(const char *name, char out[MOST_NAME])
{
    size_t n = 0;
    for (; *name && n < MOST_NAME - 1; name++) {
        bool fits = (*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') ||
            (*name >= '0' && *name <= '9') || (n && (*name == '-' || *name == '.'));
        out[n++] = fits ? *name : '_';
    }
    out[n] = 0;
}

static int write_note(const char *dir, const struct note *n, struct err *e)
{
    char *path = mem_printf("%s/" NOTE, dir), *text;
    if (n->excerpt)
        text = mem_printf("weft-snip 1 %016" PRIx64 " %016" PRIx64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64
                          " %" PRId64 " %s\n%s\n",
            n->is.key, n->is.hash, n->since, n->is.begin, n->is.end, n->begin, n->end, n->name, n->from);
    else
        text = mem_printf(
            "weft-moved 1 %016" PRIx64 " %016" PRIx64 " %" PRId64 " %s\n", n->is.key, n->is.hash, n->since, n->name);
    int rc = file_write(path, text, strlen(text), e);
    free(text);
    free(path);
    return rc;
}

void place_inbox_rename(const struct place_inbox *v, const char *path, uint64_t key)
{
    struct note note;
    char *dir = NULL;
    if (!note_at(v, path, &note, &dir))
        return;
    note.is.key = key;
    write_note(dir, &note, NULL); /* failure only means that it is not put aside when it moves on */
    free(dir);
}

static struct note note_of(struct move_trace t, const struct move_files *f, const char *from)
{
    struct note n = {.is = t,
        .excerpt = f->begin > INT64_MIN || f->end < INT64_MAX,
        .since = time_now_ns(),
        .begin = f->begin,
        .end = f->end};
    snprintf(n.name, sizeof n.name, "%s", f->name);
    snprintf(n.from, sizeof n.from, "%s", *f->from ? f->from : from);
    return n;
}

int place_inbox_finish(
    const struct place_inbox *v, struct move_trace t, const struct move_files *f, const char *from_node, struct err *e)
{
    struct arena a = {0};
    char plain[MOST_NAME], entry[NAME_MAX + 1];
    struct note old, note = note_of(t, f, from_node);
    const char *from = place_inbox_path(v, &a, t);
    int rc = write_note(from, &note, e);
    if (!rc)
        rc = file_sync_dir(from, e);
    if (!rc && find(v, t.key, &old, entry) && !put_aside(v, entry))
        rc = err_sys(e, "%s/%s", v->dir, entry);
    plain_name(f->name, plain);
    const char *to = arena_printf(&a, "%s/%s-%016" PRIx64, v->dir, plain, t.key);
    if (!rc && rename(from, to))
        rc = err_sys(e, "%s", to);
    if (!rc)
        rc = file_sync_dir(v->dir, e);
    arena_fini(&a);
    return rc;
}

void place_inbox_drop_others(const struct place_inbox *v, struct move_trace t)
{
    struct dirent **list = NULL;
    struct arena a = {0};
    const char *keep = file_name(place_inbox_path(v, &a, t));
    size_t n_key = strlen(keep) - 16; /* length without the hash */
    int n = scandir(v->dir, &list, NULL, NULL);
    for (int i = 0; i < n; i++)
        if (!strncmp(list[i]->d_name, keep, n_key) && strcmp(list[i]->d_name, keep) != 0)
            drop_tree(arena_printf(&a, "%s/%s", v->dir, list[i]->d_name));
    free_entries(list, n);
    arena_fini(&a);
}

void place_inbox_drop(const struct place_inbox *v, struct move_trace t)
{
    struct arena a = {0};
    drop_tree(place_inbox_path(v, &a, t));
    arena_fini(&a);
}

bool place_inbox_put_aside(const struct place_inbox *v, struct move_trace t)
{
    struct note note;
    char entry[NAME_MAX + 1];
    return find(v, t.key, &note, entry) && (move_is_same(note.is, t) || note.excerpt) && put_aside(v, entry);
}

/* ---- beginning and end ---- */

int place_inbox_open(const char *dir, uint64_t limit, struct place_inbox **out, struct err *e)
{
    struct stat st;
    bool own = stat(dir, &st) != 0;
    int rc = file_make_dirs(dir, e);
    if (!rc && own && chmod(dir, 0700)) /* traces of other machines are not for everybody on this one */
        rc = err_sys(e, "%s", dir);
    char *real = rc ? NULL : file_real_path(dir);
    if (!rc && (!real || access(real, W_OK)))
        rc = err_sys(e, "%s", dir);
    *out = NULL;
    if (rc) {
        free(real);
        return err_wrap(e, "--receive"), rc;
    }
    *out = mem_zalloc(sizeof **out);
    (*out)->dir = real;
    (*out)->limit = limit;
    return 0;
}

void place_inbox_close(struct place_inbox *v)
{
    if (!v)
        return;
    free(v->dir);
    free(v);
}

const char *place_inbox_dir(const struct place_inbox *v)
{
    return v->dir;
}
