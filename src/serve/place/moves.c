/* SPDX-License-Identifier: MIT */
#include "place/moves.h"

#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/wire.h"

#define MOST_BYTES (UINT64_C(1) << 56) /* limit of a file, so that sums of sizes do not overflow */

static int sense(const struct wire_in *w, struct err *e)
{
    return w->damaged || w->at != w->end ? err_set(e, ERR_FORMAT, "a message about a move that makes no sense") : 0;
}

static const char *take_string(struct wire_in *w, struct arena *a)
{
    size_t n;
    const char *s = wire_string(w, &n);
    return arena_strndup(a, s, strnlen(s, n));
}

bool place_move_is_of(struct move_trace t, const struct cluster_entry_host *h)
{
    const struct cluster_excerpt *s = &h->excerpt;
    bool excerpt = s->is && s->of == t.hash && s->begin == t.begin && s->end == t.end;
    return h->key == t.key && (move_is_excerpt(t) ? excerpt : h->hash == t.hash);
}

static void put_trace(struct text *out, struct move_trace t)
{
    wire_put_bytes(out, &t, sizeof t);
}

static struct move_trace take_trace(struct wire_in *w)
{
    struct move_trace t;
    wire_bytes(w, &t, sizeof t);
    w->damaged |= t.begin > t.end;
    return t;
}

void place_move_trace_write(struct move_trace t, struct text *out)
{
    put_trace(out, t);
}

int place_move_trace_read(const void *bytes, size_t n, struct move_trace *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    *out = take_trace(&w);
    return sense(&w, e);
}

void place_move_question_write(const struct move_question *q, struct text *out)
{
    put_trace(out, q->trace);
    wire_put_string(out, q->node);
    text_putc(out, q->begin);
}

int place_move_question_read(struct arena *a, const void *bytes, size_t n, struct move_question *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    uint8_t begin;
    out->trace = take_trace(&w);
    out->node = take_string(&w, a);
    wire_bytes(&w, &begin, 1);
    out->begin = begin & 1;
    w.damaged |= !*out->node;
    return sense(&w, e);
}

void place_move_progress_write(const struct place_move_progress *p, struct text *out)
{
    text_putc(out, (char)p->state);
    wire_put_u(out, p->done);
    wire_put_u(out, p->total);
    wire_put_string(out, p->text);
}

int place_move_progress_read(
    struct arena *a, const void *bytes, size_t n, struct place_move_progress *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    uint8_t state;
    wire_bytes(&w, &state, 1);
    out->state = state;
    out->done = wire_u(&w);
    out->total = wire_u(&w);
    out->text = take_string(&w, a);
    w.damaged |= state > PLACE_MOVE_FAILED;
    return sense(&w, e);
}

/* ---- files ---- */

/* Names that are no way out, up or round: each begins with something else than a dot, and has no control characters. */
static bool is_safe_path(const char *path)
{
    const char *name = path;
    for (const char *p = path;; p++) {
        if (*p == '/' || !*p) {
            if (p == name || *name == '.' || p - name > 255)
                return false;
            name = p + 1;
        } else if ((unsigned char)*p < 32) {
            return false;
        }
        if (!*p)
            return p - path <= MOVE_MOST_PATH;
    }
}

void place_move_files_write(const struct move_files *f, struct text *out)
{
    wire_put_string(out, f->name);
    wire_put_u(out, f->n);
    for (size_t i = 0; i < f->n; i++) {
        wire_put_string(out, f->v[i].path);
        wire_put_u(out, f->v[i].bytes);
        wire_put_i(out, f->v[i].modified_ns);
    }
    wire_put_i(out, f->begin);
    wire_put_i(out, f->end);
    wire_put_string(out, f->from);
}

static bool is_safe_name(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)name[i] < 32 || name[i] == '/' || name[i] == '=')
            return false;
    return n > 0 && n < 512;
}

int place_move_files_read(struct arena *a, const void *bytes, size_t n, struct move_files *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    *out = (struct move_files){.name = take_string(&w, a)};
    size_t count = wire_count(&w, 4);
    if (count > MOVE_MOST_FILES)
        return err_set(e, ERR_LIMIT, "a trace of %zu files: %d at most can be moved", count, MOVE_MOST_FILES);
    struct move_file *v = arena_new(a, struct move_file, count + 1);
    for (size_t i = 0; i < count && !w.damaged; i++) {
        v[i].path = take_string(&w, a);
        v[i].bytes = wire_below(&w, MOST_BYTES);
        v[i].modified_ns = wire_i(&w);
        out->bytes += v[i].bytes;
        w.damaged |= (i && strcmp(v[i - 1].path, v[i].path) >= 0) || out->bytes >= MOST_BYTES;
        if (!w.damaged && !is_safe_path(v[i].path))
            return err_set(e, ERR_FORMAT, "a list of files that leads where no file of a trace is");
    }
    out->v = v;
    out->n = count;
    out->begin = wire_i(&w);
    out->end = wire_i(&w);
    out->from = take_string(&w, a);
    w.damaged |= !is_safe_name(out->name) || out->begin > out->end;
    return sense(&w, e);
}

void place_move_piece_write(const struct move_piece *p, struct text *out)
{
    put_trace(out, p->trace);
    wire_put_u(out, p->file);
    wire_put_u(out, p->bytes);
    wire_put_i(out, p->modified_ns);
    wire_put_u(out, p->offset);
    wire_put_u(out, p->length);
}

int place_move_piece_read(const void *bytes, size_t n, struct move_piece *out, struct err *e)
{
    struct wire_in w = wire_of(bytes, n);
    out->trace = take_trace(&w);
    out->file = wire_below(&w, MOVE_MOST_FILES);
    out->bytes = wire_below(&w, MOST_BYTES);
    out->modified_ns = wire_i(&w);
    out->offset = wire_u(&w);
    out->length = wire_below(&w, MOVE_PIECE + 1);
    w.damaged |= out->offset > out->bytes || out->length > out->bytes - out->offset;
    return sense(&w, e);
}

void place_move_sum(uint64_t sum[2], const void *piece, size_t n)
{
    uint64_t before[2] = {sum[0], sum[1]};
    map_hash_pieces((struct map_piece[]){{before, sizeof before}, {piece, n}}, 2, sum);
}

int place_move_sum_file(int fd, uint64_t offset, uint64_t bytes, uint64_t sum[2], struct err *e)
{
    uint8_t *piece = mem_alloc(MOVE_PIECE);
    int rc = 0;
    sum[0] = sum[1] = 0;
    for (uint64_t at = 0; at < bytes && !rc;) {
        size_t want = bytes - at < MOVE_PIECE ? (size_t)(bytes - at) : MOVE_PIECE, have = 0;
        while (have < want && !rc) {
            ssize_t got = pread(fd, piece + have, want - have, (off_t)(offset + at + have));
            rc = got > 0 ? 0 : err_set(e, ERR_LOST, "the file became shorter, or cannot be read");
            have += rc ? 0 : (size_t)got;
        }
        if (!rc)
            place_move_sum(sum, piece, want);
        at += want;
    }
    free(piece);
    return rc;
}
