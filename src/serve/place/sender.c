/* SPDX-License-Identifier: MIT */
#include "place/sender.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/time.h"
#include "index/index.h"
#include "place/moves.h"

#define QUIET_NS INT64_C(2000000000) /* time since the last write, below which a file counts as being recorded */

/* Part of a file that is sent; of an excerpt not all. */
struct part {
    uint64_t offset, file_bytes;
};

/* Latest list: parts of one trace are asked for one after the other. */
struct listed {
    atomic_uint refs;
    struct arena arena;
    struct move_trace trace;
    struct move_files files;
    const struct part *parts; /* indexed by file */
    const char *root;
    int64_t newest_ns;
};

struct place_sender {
    bool all;
    const struct place_inbox *inbox; /* traces that may be copied if not all may; or NULL */
    pthread_mutex_t lock;
    struct listed *last;
};

struct place_sender *place_sender_new(bool all, const struct place_inbox *inbox)
{
    struct place_sender *g = mem_zalloc(sizeof *g);
    g->all = all;
    g->inbox = inbox;
    pthread_mutex_init(&g->lock, NULL);
    return g;
}

static void unref(struct listed *l)
{
    if (!l || atomic_fetch_sub(&l->refs, 1) > 1)
        return;
    arena_fini(&l->arena);
    free(l);
}

void place_sender_free(struct place_sender *g)
{
    if (!g)
        return;
    unref(g->last);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

/* ---- choice of files ---- */

struct found {
    struct listed *listed;
    struct {
        const char **v;
        size_t n, cap;
    } dirs;
    struct {
        struct found_file {
            struct move_file is;
            struct part part;
        } * v;
        size_t n, cap;
    } files;
};

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct found_file *)a)->is.path, ((const struct found_file *)b)->is.path);
}

/* The directories of all traces of the host, kernel and user space, without links. */
static int find_dirs(
    const struct place_sender *g, struct found *f, const struct cluster_node_traces *h, size_t host, struct err *e)
{
    const struct index_trace *traces;
    size_t n = index_experiment_traces(h->is, &traces);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; traces[i].host == (int32_t)host && k < ctf_trace_directories(traces[i].trace); k++) {
            const char *dir = ctf_trace_directory(traces[i].trace, k);
            if (ctf_trace_is_file(traces[i].trace))
                return err_set(e, ERR_UNSUPPORTED, "%s: recordings of trace-cmd are not moved; copy the file", dir);
            char *real = file_real_path(dir);
            if (!real)
                return err_sys(e, "%s", dir);
            bool may = g->all || place_inbox_since(g->inbox, real);
            vec_push(&f->dirs, (const char *)arena_strdup(&f->listed->arena, real));
            free(real);
            if (!may)
                return err_set(e, ERR_ARG, "its traces may not be taken: start it with `weft serve --give`");
        }
    return f->dirs.n ? 0 : err_set(e, ERR_NOTFOUND, "the trace has no directory here");
}

/* Returns the common parent of all directories, in whole names. Its last name is kept in the paths. */
static const char *root_of(struct found *f)
{
    char *root = arena_strdup(&f->listed->arena, f->dirs.v[0]);
    for (size_t i = 1; i < f->dirs.n; i++) {
        size_t n = 0, whole = 0;
        while (root[n] && root[n] == f->dirs.v[i][n]) {
            n++;
            bool ends = (!root[n] || root[n] == '/') && (!f->dirs.v[i][n] || f->dirs.v[i][n] == '/');
            whole = ends ? n : whole;
        }
        root[whole] = 0;
    }
    char *slash = strrchr(root, '/');
    if (slash)
        *slash = 0;
    return root;
}

/* A regular file; ERR_UNSUPPORTED: a link. Of anything else nothing is added. */
static int add_file(struct found *f, const char *path, const struct ctf_cut *cut, mode_t *mode, struct err *e)
{
    struct stat st;
    *mode = 0;
    if (lstat(path, &st))
        return 0;
    *mode = st.st_mode;
    if (S_ISLNK(st.st_mode)) /* target may be anything on this machine */
        return err_set(e, ERR_UNSUPPORTED, "%s is a link: only files that lie in the trace are given away", path);
    if (!S_ISREG(st.st_mode))
        return 0;
    int64_t modified = (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec;
    uint64_t size = (uint64_t)st.st_size;
    if (cut && cut->file_bytes != size)
        return err_set(e, ERR_STALE, "%s has changed since it was opened", path);
    f->listed->newest_ns = modified > f->listed->newest_ns ? modified : f->listed->newest_ns;
    vec_push(&f->files,
        ((struct found_file){
            {path + strlen(f->listed->root) + 1, cut ? cut->bytes : size, modified}, {cut ? cut->offset : 0, size}}));
    return f->files.n > MOVE_MOST_FILES ? err_set(e, ERR_LIMIT, "the trace has more than %d files", MOVE_MOST_FILES)
                                        : 0;
}

/* Files of a directory of a trace, and of its `index`. */
static int add_files(struct found *f, const char *dir, bool index, struct err *e)
{
    DIR *d = opendir(dir);
    int rc = d ? 0 : err_sys(e, "%s", dir);
    for (struct dirent *entry; !rc && (entry = readdir(d));) {
        const char *path = arena_printf(&f->listed->arena, "%s/%s", dir, entry->d_name);
        mode_t mode;
        if (entry->d_name[0] == '.')
            continue;
        rc = add_file(f, path, NULL, &mode, e);
        if (!rc && S_ISDIR(mode) && index && !strcmp(entry->d_name, "index"))
            rc = add_files(f, path, false, e);
    }
    if (d)
        closedir(d);
    return rc;
}

/* The packets of a trace that are wanted, and the metadata of their directories; what tracers note of packets (`index`)
 * would be of others. dirs: real paths of its directories. */
static int add_cut(struct found *f, const struct ctf_trace *t, const char *const *dirs, struct err *e)
{
    struct arena *a = &f->listed->arena;
    const struct move_files *files = &f->listed->files;
    struct ctf_cut *cut;
    size_t n = ctf_trace_cut(t, files->begin, files->end, &cut), last = SIZE_MAX;
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        mode_t mode;
        if (cut[i].dir != last)
            rc = add_file(f, arena_printf(a, "%s/metadata", dirs[cut[i].dir]), NULL, &mode, e);
        if (!rc)
            rc = add_file(f, arena_printf(a, "%s/%s", dirs[cut[i].dir], cut[i].name), &cut[i], &mode, e);
        last = cut[i].dir;
    }
    free(cut);
    return rc;
}

/* Adds the parts of an excerpt, in the order of find_dirs: directories of one trace after those of the one before. */
static int add_cuts(struct found *f, const struct cluster_node_traces *h, size_t host, struct err *e)
{
    const struct index_trace *traces;
    size_t n = index_experiment_traces(h->is, &traces), dir = 0;
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++)
        if (traces[i].host == (int32_t)host) {
            rc = add_cut(f, traces[i].trace, f->dirs.v + dir, e);
            dir += ctf_trace_directories(traces[i].trace);
        }
    return rc || f->files.n ? rc : err_set(e, ERR_NOTFOUND, "nothing of the trace was recorded then");
}

static void keep_once(struct found *f)
{
    struct move_files *out = &f->listed->files;
    struct move_file *v = arena_new(&f->listed->arena, struct move_file, f->files.n + 1);
    struct part *parts = arena_new(&f->listed->arena, struct part, f->files.n + 1);
    if (f->files.n)
        qsort(f->files.v, f->files.n, sizeof *f->files.v, by_path);
    for (size_t i = 0; i < f->files.n; i++)
        if (!out->n || strcmp(v[out->n - 1].path, f->files.v[i].is.path) != 0) {
            parts[out->n] = f->files.v[i].part;
            v[out->n++] = f->files.v[i].is;
        }
    out->v = v;
    f->listed->parts = parts;
}

/* Finds the part of the question that is here. ERR_NOTFOUND: none. */
static int find_limits(struct listed *l, const struct cluster_entry_host *h, struct err *e)
{
    int64_t begin = l->trace.begin, end = l->trace.end;
    l->files.begin = h->excerpt.is && h->excerpt.begin > begin ? h->excerpt.begin : begin;
    l->files.end = h->excerpt.is && h->excerpt.end < end ? h->excerpt.end : end;
    l->files.from = h->excerpt.is ? arena_strdup(&l->arena, h->excerpt.from) : "";
    return l->files.begin > l->files.end ? err_set(e, ERR_NOTFOUND, "nothing of that time is here") : 0;
}

static int list(const struct place_sender *g, const struct cluster_node_traces *h, struct move_trace t,
    struct listed **out, struct err *e)
{
    const struct cluster_entry_host *entries = h->hosts;
    size_t host = 0;
    while (host < h->n_hosts && (entries[host].key != t.key || entries[host].hash != t.hash))
        host++;
    if (host == h->n_hosts)
        return err_set(e, ERR_STALE, "that trace is not here, or not as it was: it may have grown");
    struct listed *l = mem_zalloc(sizeof *l);
    struct found f = {.listed = l};
    l->refs = 1;
    l->trace = t;
    const struct index_host *hosts;
    index_experiment_hosts(h->is, &hosts);
    l->files.name = arena_strdup(&l->arena, hosts[host].own_name);
    int rc = find_limits(l, &entries[host], e);
    if (!rc && move_is_excerpt(t) && hosts[host].key_has_begin)
        rc = err_set(
            e, ERR_UNSUPPORTED, "the trace has no UUID, so a part of it would be another trace: move all of it");
    if (!rc)
        rc = find_dirs(g, &f, h, host, e);
    l->root = rc ? "" : root_of(&f);
    if (!rc && move_is_excerpt(t))
        rc = add_cuts(&f, h, host, e);
    for (size_t i = 0; i < f.dirs.n && !rc && !move_is_excerpt(t); i++)
        rc = add_files(&f, f.dirs.v[i], true, e);
    keep_once(&f);
    vec_free(&f.dirs);
    vec_free(&f.files);
    *out = rc ? NULL : l;
    if (rc)
        unref(l);
    return rc;
}

/* Returns the list of the trace's files; anew, or the latest one. */
static int listed(struct place_sender *g, const struct cluster_node_traces *h, struct move_trace t, bool anew,
    struct listed **out, struct err *e)
{
    *out = NULL;
    pthread_mutex_lock(&g->lock);
    if (g->last && !anew && move_is_same(g->last->trace, t)) {
        *out = g->last;
        atomic_fetch_add(&g->last->refs, 1);
    }
    pthread_mutex_unlock(&g->lock);
    if (*out)
        return 0;
    int rc = list(g, h, t, out, e);
    if (rc)
        return rc;
    atomic_fetch_add(&(*out)->refs, 1);
    pthread_mutex_lock(&g->lock);
    struct listed *before = g->last;
    g->last = *out;
    pthread_mutex_unlock(&g->lock);
    unref(before);
    return 0;
}

/* ---- answers ---- */

static int answer_files(struct place_sender *g, const struct cluster_node_traces *h, const void *bytes, size_t n,
    struct text *out, struct err *e)
{
    struct move_trace t;
    struct listed *l = NULL;
    int rc = place_move_trace_read(bytes, n, &t, e);
    if (!rc)
        rc = listed(g, h, t, true, &l, e);
    if (!rc && l->newest_ns > time_now_ns() - QUIET_NS)
        rc = err_set(e, ERR_BUSY, "the trace is still being recorded: only what has ended can be moved");
    if (!rc)
        place_move_files_write(&l->files, out);
    unref(l);
    return rc;
}

/* ERR_STALE: it is not as it was listed. */
static int open_file(const struct listed *l, const struct move_piece *p, int *fd, uint64_t *offset, struct err *e)
{
    struct stat st;
    if (p->file >= l->files.n)
        return err_set(e, ERR_FORMAT, "the trace has no such file");
    if (l->files.v[p->file].bytes != p->bytes || l->files.v[p->file].modified_ns != p->modified_ns)
        return err_set(e, ERR_STALE, "the files of the trace are not those that were listed");
    char *path = mem_printf("%s/%s", l->root, l->files.v[p->file].path);
    *offset = l->parts[p->file].offset;
    *fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    int rc = *fd < 0 || fstat(*fd, &st) ? err_sys(e, "%s", path) : 0;
    if (!rc &&
        ((uint64_t)st.st_size != l->parts[p->file].file_bytes ||
            (int64_t)st.st_mtim.tv_sec * NS_PER_S + st.st_mtim.tv_nsec != p->modified_ns))
        rc = err_set(e, ERR_STALE, "%s has changed since it was listed", path);
    free(path);
    return rc;
}

static int read_piece(int fd, uint64_t offset, const struct move_piece *p, struct text *out, struct err *e)
{
    uint64_t sum[2] = {0};
    char *bytes = text_room(out, MOVE_SUM + p->length);
    for (size_t have = 0; have < p->length;) {
        ssize_t got = pread(fd, bytes + MOVE_SUM + have, p->length - have, (off_t)(offset + p->offset + have));
        if (got <= 0)
            return err_set(e, ERR_LOST, "a file of the trace became shorter, or cannot be read");
        have += (size_t)got;
    }
    place_move_sum(sum, bytes + MOVE_SUM, p->length);
    memcpy(bytes, sum, MOVE_SUM);
    out->n += MOVE_SUM + p->length;
    return 0;
}

static int answer_piece(struct place_sender *g, const struct cluster_node_traces *h, bool sum, const void *bytes,
    size_t n, struct text *out, struct err *e)
{
    struct move_piece p;
    struct listed *l = NULL;
    uint64_t whole[2], offset = 0;
    int fd = -1, rc = place_move_piece_read(bytes, n, &p, e);
    if (!rc)
        rc = listed(g, h, p.trace, false, &l, e);
    if (!rc)
        rc = open_file(l, &p, &fd, &offset, e);
    if (!rc && sum) {
        rc = place_move_sum_file(fd, offset, p.bytes, whole, e);
        text_put(out, (const char *)whole, sizeof whole);
    } else if (!rc) {
        rc = read_piece(fd, offset, &p, out, e);
    }
    if (fd >= 0)
        close(fd);
    unref(l);
    return rc;
}

int place_sender_answer(struct place_sender *g, const struct cluster_node_traces *h, enum cluster_question kind,
    const void *bytes, size_t n, struct text *out, struct err *e)
{
    return kind == CLUSTER_FILES ? answer_files(g, h, bytes, n, out, e)
                                 : answer_piece(g, h, kind == CLUSTER_SUM, bytes, n, out, e);
}
