/* SPDX-License-Identifier: MIT */
/* Growing directories: finds what was added since the last look. */
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "ctf/feed.h"
#include "ctf/formats.h"
#include "ctf/trace.h"
#include "ctf/tsdl.h"

/* ---- time limit ---- */

/* Returns the piece with the latest packet; SIZE_MAX: no piece has packets. */
static size_t newest_piece(const struct ctf_trace *t)
{
    const struct ctf_packet *latest = NULL;
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_packet *p = ctf_stream_last(&t->streams.v[i]);
        if (p && (!latest || p->begin > latest->begin))
            latest = p;
    }
    return latest ? t->files.v[latest->file].piece : SIZE_MAX;
}

/* Returns the time up to which all streams are known. Streams that neither the newest piece nor the other one has are
 * over. */
static int64_t sealed(const struct ctf_trace *t, size_t newest, size_t other)
{
    int64_t least = INT64_MAX;
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream *s = &t->streams.v[i];
        const struct ctf_packet *p = ctf_stream_last(s);
        size_t piece = p ? t->files.v[p->file].piece : SIZE_MAX;
        if (!p || (piece != newest && piece != other))
            continue;
        if (!s->timed)
            return INT64_MIN;
        bool waits = s->growth && s->growth->has_next;
        int64_t until = waits ? p->begin : p->end;
        least = until < least ? until : least;
    }
    return least < INT64_MAX ? least : INT64_MIN;
}

int64_t ctf_trace_sealed_until(const struct ctf_trace *t)
{
    if (t->fed || t->appending)
        return t->growing ? t->until : INT64_MAX;
    size_t newest = newest_piece(t);
    return newest < SIZE_MAX ? sealed(t, newest, newest) : INT64_MIN;
}

static void grown(struct ctf_trace *t)
{
    size_t newest = newest_piece(t);
    if (newest != t->newest) {
        t->before_newest = t->newest;
        t->newest = newest;
    }
    t->until = !t->growing ? INT64_MAX : newest == SIZE_MAX ? INT64_MIN : sealed(t, newest, t->before_newest);
    t->version++;
}

void ctf_trace_followed(struct ctf_trace *t)
{
    struct stat st;
    t->appending = true;
    t->newest = t->before_newest = SIZE_MAX;
    ctf_streams_find_again(t);
    for (size_t i = 0; i < t->pieces.n; i++) {
        struct ctf_piece *p = &t->pieces.v[i];
        p->inode = stat(p->dir, &st) ? 0 : (uint64_t)st.st_ino;
        *map_put(&t->piece_by, map_hash(p->dir, strlen(p->dir)), NULL) = i + 1;
    }
    grown(t);
}

/* ---- files that grew ---- */

/* Scans the tail of a file in a new map. The old map is kept, because returned events point into it. */
static int read_tail(struct ctf_trace *t, uint32_t file, struct err *e)
{
    struct file_map before = t->files.v[file].map;
    struct err why = {0};
    struct ctf_file *f = &t->files.v[file];
    f->map = (struct file_map){0};
    int rc = file_map_open(f->path, &f->map, &why);
    if (rc) {
        t->files.v[file].map = before;
        return err_set(e, rc, "%s", why.text);
    }
    if (f->map.size > f->size)
        f->map.size = (size_t)f->size;
    ctf_packets_scan(t, file);
    f = &t->files.v[file];
    rc = file_map_intact(&f->map, e);
    file_map_close(&f->map);
    f->map = before;
    f->kept = false;
    return rc;
}

/* Updates the file's size; ERR_LOST if the file was replaced or became shorter. */
static int look(struct ctf_trace *t, uint32_t file, struct err *e)
{
    struct ctf_file *f = &t->files.v[file];
    struct stat st;
    int rc = stat(f->path, &st);
    if (rc && errno == ENOENT && stat(t->pieces.v[f->piece].dir, &st))
        return 0; /* renamed directory: the next group may have its new name */
    if (rc)
        return err_set(e, ERR_LOST, "%s: is no longer there: %s", f->path, strerror(errno));
    if ((uint64_t)st.st_ino != f->inode)
        return err_set(e, ERR_LOST, "%s: is another file now than when it was opened", f->path);
    if ((uint64_t)st.st_size < f->size)
        return err_set(e, ERR_LOST, "%s: was cut off from %llu to %llu bytes while it was read", f->path,
            (unsigned long long)f->size, (unsigned long long)st.st_size);
    t->has_grown |= f->size != (uint64_t)st.st_size;
    f->size = (uint64_t)st.st_size;
    f->identity = ctf_file_identity(f->name, &st);
    return 0;
}

/* ---- pieces ---- */

/* Returns the pieces that may still be written to: each that has the last packet of some stream, or no packet at
 * all. */
static bool *written_pieces(const struct ctf_trace *t)
{
    bool *is = mem_alloc(sizeof *is * (t->pieces.n + 1));
    memset(is, 1, t->pieces.n);
    for (size_t i = 0; i < t->files.n; i++)
        if (t->files.v[i].scanned)
            is[t->files.v[i].piece] = false;
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_packet *p = ctf_stream_last(&t->streams.v[i]);
        if (p)
            is[t->files.v[p->file].piece] = true;
    }
    return is;
}

/* Reads the piece's current metadata; new classes are appended to the trace's. */
static int take_metadata(struct ctf_trace *t, uint32_t piece, struct err *e)
{
    char *path = mem_printf("%s/metadata", t->pieces.v[piece].dir), *text;
    size_t n;
    struct ctf_metadata md;
    struct err why = {0};
    int rc = file_read(path, TSDL_MAX_TEXT, &text, &n, e);
    if (!rc && n != t->pieces.v[piece].metadata_bytes) {
        t->pieces.v[piece].metadata_bytes = n;
        rc = ctf_metadata_parse(path, text, n, NULL, &md, &why);
        if (!rc && md.schema->n_classes <= t->schema->n_classes && md.schema->n_streams <= t->schema->n_streams)
            ctf_metadata_fini(&md, NULL); /* nothing was added */
        else if (!rc && (rc = ctf_trace_extend(t, piece, &md, &why)))
            ctf_metadata_fini(&md, NULL);
        if (rc)
            ctf_problem_add(&t->problems, "%s: what came is not used: %s", path, why.text);
        rc = 0;
    }
    if (!rc)
        free(text);
    free(path);
    return rc;
}

/* Handles a directory of the trace that was renamed, as an archive is at the end of its rotation. */
static bool renamed(struct ctf_trace *t, const char *dir, uint64_t inode)
{
    for (size_t i = 0; i < t->pieces.n; i++) {
        struct ctf_piece *p = &t->pieces.v[i];
        struct stat st;
        if (p->inode != inode || (!stat(p->dir, &st) && (uint64_t)st.st_ino == inode))
            continue;
        p->dir = arena_strdup(&t->arena, dir);
        for (size_t k = 0; k < t->files.n; k++)
            if (t->files.v[k].piece == i) {
                t->files.v[k].path = arena_printf(&t->arena, "%s/%s", dir, t->files.v[k].name);
                t->files.v[k].name = t->files.v[k].path + strlen(dir) + 1;
            }
        return true;
    }
    return false;
}

static int add_pieces(struct ctf_trace *t, const struct ctf_group *g, struct err *e)
{
    for (size_t i = 0; g && i < g->n; i++) {
        uint64_t *at = map_put(&t->piece_by, map_hash(g->dirs[i], strlen(g->dirs[i])), NULL);
        struct stat st;
        if (*at || stat(g->dirs[i], &st))
            continue;
        if (renamed(t, g->dirs[i], (uint64_t)st.st_ino)) {
            *at = 1;
            continue;
        }
        struct err why = {0};
        if (ctf_trace_add_piece(t, g->dirs[i], NULL, &why)) {
            if (why.code == ERR_NOMEM || why.code == ERR_LIMIT)
                return err_set(e, why.code, "%s", why.text);
            continue; /* no metadata yet: tries again next time */
        }
        *at = t->pieces.n;
        if (ctf_piece_agrees(t, t->pieces.n - 1, &t->why)) /* is among the pieces: nothing more is read of them */
            return err_set(e, t->why.code, "%s", t->why.text);
        ctf_pieces_declare(t, t->pieces.n - 1);
        struct ctf_piece *p = &t->pieces.v[t->pieces.n - 1];
        p->inode = (uint64_t)st.st_ino;
        if (!p->borrowed)
            p->metadata_bytes = 0; /* makes the next refresh compare them with the trace's */
    }
    return 0;
}

/* ---- refresh ---- */

static size_t count_packets(const struct ctf_trace *t)
{
    size_t n = 0;
    for (size_t i = 0; i < t->streams.n; i++)
        n += t->streams.v[i].packets.n;
    return n;
}

static int refresh(struct ctf_trace *t, const bool *written, struct err *e)
{
    size_t known = t->files.n;
    int rc = 0;
    for (uint32_t i = 0; i < known && !rc; i++)
        if (written[t->files.v[i].piece])
            rc = look(t, i, e);
    for (uint32_t i = 0; i < t->pieces.n && !rc; i++)
        if (written[i])
            rc = ctf_trace_list(t, i, e);
    /* Metadata are read after the sizes of the files that need them. */
    for (uint32_t i = 0; i < t->pieces.n && !rc; i++)
        if (written[i])
            rc = take_metadata(t, i, e);
    for (uint32_t i = 0; i < known && !rc; i++)
        if (written[t->files.v[i].piece] && t->files.v[i].scanned < t->files.v[i].size)
            rc = read_tail(t, i, e);
    for (uint32_t i = (uint32_t)known; i < t->files.n && !rc; i++)
        rc = ctf_packets_find(t, i, e);
    return rc;
}

int ctf_trace_refresh(struct ctf_trace *t, const struct ctf_group *g, struct ctf_trace_news *news, struct err *e)
{
    struct ctf_trace_news none, *out = news ? news : &none;
    size_t files = t->files.n, packets = count_packets(t), classes = t->schema->n_classes;
    *out = (struct ctf_trace_news){0};
    if (!t->growing || t->fed)
        return err_set(e, ERR_ARG, "%s: is not followed", ctf_trace_path(t));
    if (t->why.code)
        return err_set(e, t->why.code, "%s", t->why.text);
    t->found_late = false;
    int rc = add_pieces(t, g, e);
    bool *written = written_pieces(t);
    rc = rc ? rc : refresh(t, written, e);
    rc = rc ? rc : t->why.code ? err_set(e, t->why.code, "%s", t->why.text) : 0;
    free(written);
    grown(t);
    *out = (struct ctf_trace_news){
        t->files.n - files, count_packets(t) - packets, t->schema->n_classes - classes, t->found_late};
    return rc;
}

int ctf_trace_end(struct ctf_trace *t, struct err *e)
{
    int rc = 0;
    if (!t->growing || t->fed)
        return err_set(e, ERR_ARG, "%s: is not followed", ctf_trace_path(t));
    t->growing = false;
    for (uint32_t i = 0; i < t->files.n && !rc; i++)
        if (t->files.v[i].scanned < t->files.v[i].size)
            rc = read_tail(t, i, e);
    for (size_t i = 0; i < t->streams.n; i++)
        ctf_stream_flush(t, &t->streams.v[i]);
    grown(t);
    return rc;
}
