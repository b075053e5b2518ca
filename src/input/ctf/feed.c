/* SPDX-License-Identifier: MIT */
/* Trace whose packets and metadata are fed one by one. */
#include "ctf/feed.h"

#include <stdlib.h>

#include "ctf/trace.h"
#include "ctf/tsdl.h"

struct line {
    uint32_t file;
    int64_t until, quiet; /* until: latest time of packets and of quiet declarations; quiet: of the latter only */
    bool ended;
};

struct ctf_feed {
    struct ctf_trace *trace;
    VEC(struct line) lines;
    VEC(char) metadata;
    VEC(uint8_t) bytes; /* copy of the packets, with spare room after them */
    char *name;
    int64_t hold, ended_until; /* ended_until: latest time of ended lines */
    bool ended;
};

struct ctf_feed *ctf_feed_new(const char *name, struct ctf_schemas *schemas)
{
    struct ctf_feed *f = mem_zalloc(sizeof *f);
    struct ctf_trace *t = f->trace = ctf_trace_new(schemas);
    t->growing = t->appending = t->fed = true;
    f->name = arena_strdup(&t->arena, name);
    f->hold = INT64_MAX;
    f->ended_until = INT64_MIN;
    return f;
}

void ctf_feed_free(struct ctf_feed *f)
{
    if (!f)
        return;
    ctf_trace_close(f->trace);
    vec_free(&f->lines);
    vec_free(&f->metadata);
    vec_free(&f->bytes);
    free(f);
}

struct ctf_trace *ctf_feed_trace(const struct ctf_feed *f)
{
    return f->trace->schema ? f->trace : NULL;
}

bool ctf_trace_is_fed(const struct ctf_trace *t)
{
    return t->fed;
}

bool ctf_trace_is_growing(const struct ctf_trace *t)
{
    return t->growing;
}

/* ---- time limit ---- */

static void grown(struct ctf_feed *f)
{
    struct ctf_trace *t = f->trace;
    int64_t least = INT64_MAX;
    bool open = false;
    for (size_t i = 0; i < f->lines.n; i++)
        if (!f->lines.v[i].ended) {
            open = true;
            least = f->lines.v[i].until < least ? f->lines.v[i].until : least;
        }
    if (!open) /* ended lines are read to their end */
        least = f->ended_until < INT64_MAX && f->ended_until > INT64_MIN ? f->ended_until + 1 : f->ended_until;
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream_growth *g = t->streams.v[i].growth;
        if (g->has_next && g->next.begin < least)
            least = g->next.begin;
    }
    t->until = f->ended ? INT64_MAX : least < f->hold ? least : f->hold;
    t->version++;
}

static void say(struct line *l, int64_t until)
{
    l->until = until > l->until ? until : l->until;
}

/* ---- metadata ---- */

int ctf_feed_metadata(struct ctf_feed *f, const void *data, size_t n, struct err *e)
{
    struct ctf_trace *t = f->trace;
    struct ctf_metadata md;
    size_t before = f->metadata.n;
    if (n > TSDL_MAX_TEXT - before)
        return err_set(e, ERR_LIMIT, "%s: more than %d MiB of metadata", f->name, TSDL_MAX_TEXT >> 20);
    vec_reserve(&f->metadata, n + 1);
    if (n)
        memcpy(f->metadata.v + before, data, n);
    f->metadata.n += n;
    int rc = ctf_metadata_parse(f->name, f->metadata.v, f->metadata.n, t->schema ? NULL : t->schemas, &md, e);
    if (!rc && !md.schema->n_streams) { /* CTF 2: declarations of packets are still to come */
        ctf_metadata_fini(&md, t->schema ? NULL : t->schemas);
        rc = err_set(e, ERR_FORMAT, "%s: the metadata have no data stream class yet", f->name);
    }
    if (rc) { /* the first metadata may still be incomplete */
        f->metadata.n = t->schema ? before : f->metadata.n;
        return rc;
    }
    if (!t->schema) {
        vec_push(&t->pieces, ((struct ctf_piece){.dir = f->name, .md = md, .parsed = true}));
        ctf_trace_plan(t);
        t->quirks = ctf_quirks_of(t);
    } else if ((rc = ctf_trace_extend(t, 0, &md, e))) {
        ctf_metadata_fini(&md, NULL);
        f->metadata.n = before;
        return err_wrap(e, "%s", f->name);
    }
    t->version++;
    return 0;
}

bool ctf_feed_time(const struct ctf_feed *f, uint64_t class_id, uint64_t cycles, int64_t *ns)
{
    const struct ctf_trace *t = f->trace;
    const struct ctf_stream_class *sc = t->schema ? ctf_schema_stream(t->schema, class_id) : NULL;
    if (!sc || sc->clock < 0)
        return false;
    struct ctf_clock_rate rate = ctf_trace_rate(t, 0, sc);
    *ns = ctf_clock_ns(&rate, cycles, &(bool){true});
    return true;
}

/* ---- lines ---- */

uint32_t ctf_feed_line(struct ctf_feed *f, const char *name)
{
    struct ctf_trace *t = f->trace;
    struct ctf_file file = {.fed = true};
    file.path = arena_printf(&t->arena, "%s/%s", f->name, name);
    file.name = file.path + strlen(f->name) + 1;
    vec_push(&t->files, file);
    vec_push(&f->lines, ((struct line){.file = (uint32_t)t->files.n - 1, .until = INT64_MIN, .quiet = INT64_MIN}));
    grown(f);
    return (uint32_t)f->lines.n - 1;
}

/* Advances the line's time to the end of the last packet of each stream that got packets from this line. */
static void say_ends(struct ctf_feed *f, struct line *l)
{
    const struct ctf_trace *t = f->trace;
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream *s = &t->streams.v[i];
        if (s->timed && s->packets.n && s->packets.v[s->packets.n - 1].file == l->file)
            say(l, s->packets.v[s->packets.n - 1].end);
        if (s->timed && s->growth->has_next && s->growth->next.file == l->file)
            say(l, s->growth->next.begin);
    }
}

int ctf_feed_packet(struct ctf_feed *f, uint32_t line, const void *data, size_t n, struct err *e)
{
    struct ctf_trace *t = f->trace;
    if (line >= f->lines.n || f->lines.v[line].ended || f->ended)
        return err_set(e, ERR_ARG, "%s: a packet of a line that has ended", f->name);
    if (!t->schema)
        return err_set(e, ERR_ARG, "%s: a packet before there are metadata", f->name);
    struct line *l = &f->lines.v[line];
    vec_reserve(&f->bytes, n + FILE_COPY_SPARE_BYTES - f->bytes.n);
    memcpy(f->bytes.v, data, n);
    memset(f->bytes.v + n, 0, FILE_COPY_SPARE_BYTES);
    t->quiet = l->quiet;
    t->late = t->until;
    ctf_packets_feed(t, l->file, f->bytes.v, n);
    t->quiet = t->late = INT64_MIN;
    say_ends(f, l);
    grown(f);
    return 0;
}

/* Publishes packets that wait for the next packet. */
static void flush(struct ctf_feed *f, uint32_t file, int64_t until)
{
    struct ctf_trace *t = f->trace;
    for (size_t i = 0; i < t->streams.n; i++) {
        struct ctf_stream_growth *g = t->streams.v[i].growth;
        if (g->has_next && g->next.file == file && g->next.end < until)
            ctf_stream_flush(t, &t->streams.v[i]);
    }
}

void ctf_feed_quiet(struct ctf_feed *f, uint32_t line, int64_t until)
{
    if (line >= f->lines.n || until <= f->lines.v[line].until)
        return;
    f->lines.v[line].until = f->lines.v[line].quiet = until;
    flush(f, f->lines.v[line].file, until);
    grown(f);
}

void ctf_feed_line_end(struct ctf_feed *f, uint32_t line)
{
    if (line >= f->lines.n || f->lines.v[line].ended)
        return;
    struct line *l = &f->lines.v[line];
    flush(f, l->file, INT64_MAX);
    say_ends(f, l);
    l->ended = true;
    f->ended_until = l->until > f->ended_until ? l->until : f->ended_until;
    grown(f);
}

void ctf_feed_hold(struct ctf_feed *f, int64_t until)
{
    f->hold = until;
    grown(f);
}

void ctf_feed_end(struct ctf_feed *f)
{
    for (uint32_t i = 0; i < f->lines.n; i++)
        ctf_feed_line_end(f, i);
    f->ended = true;
    grown(f);
    f->trace->growing = false;
}
