/* SPDX-License-Identifier: MIT */
/* Traces whose packets another reader makes. */
#include "ctf/made.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "ctf/trace.h"

/* One per stream: packets are found by their number in it, which is their sequence number. */
static void add_file(
    struct ctf_trace *t, const struct ctf_made *m, const struct ctf_made_stream *s, const struct stat *st)
{
    struct ctf_file f = {.path = arena_strdup(&t->arena, m->path),
        .name = s->name,
        .size = (uint64_t)st->st_size,
        .inode = (uint64_t)st->st_ino,
        .identity = ctf_file_identity(s->name, st),
        .made = true,
        .map = *m->map};
    uint64_t parts[2] = {t->fingerprint, f.identity};
    t->fingerprint = map_hash(parts, sizeof parts);
    f.scanned = f.size;
    vec_push(&t->files, f);
}

static int add_stream(struct ctf_trace *t, const struct ctf_made *m, const struct ctf_made_stream *from, struct err *e)
{
    const struct ctf_stream_class *sc = ctf_schema_stream(t->schema, from->class_id);
    if (!sc)
        return err_set(e, ERR_FORMAT, "%s: a stream of a class that is not declared", m->path);
    uint32_t file = (uint32_t)t->files.n - 1;
    struct ctf_stream_key key = {t->plans[sc - t->schema->streams], (uint64_t)from->cpu, true, from->cpu};
    struct ctf_stream *s = ctf_stream_for(t, &t->files.v[file], &key);
    struct ctf_clock_rate rate = ctf_trace_rate(t, 0, sc);
    bool fits;
    vec_reserve(&s->packets, from->n);
    for (size_t i = 0; i < from->n; i++) {
        const struct ctf_made_packet *p = &from->packets[i];
        struct ctf_packet one = {.offset = p->offset,
            .content_bits = p->bytes * 8,
            .begin = ctf_clock_ns(&rate, p->begin, &fits),
            .end = ctf_clock_ns(&rate, p->end, &fits),
            .seq = i,
            .discarded = p->discarded,
            .file = file,
            .cpu = from->cpu,
            .flags = CTF_PACKET_TIMED | CTF_PACKET_HAS_DISCARDED | CTF_PACKET_LOST_BEFORE};
        vec_push(&s->packets, one);
    }
    s->bytes += from->bytes;
    return 0;
}

static int fill(struct ctf_trace *t, const struct ctf_made *m, struct err *e)
{
    struct ctf_piece piece = {.dir = arena_strdup(&t->arena, m->path)};
    struct stat st;
    if (stat(m->path, &st))
        return err_sys(e, "%s", m->path);
    if ((uint64_t)st.st_size != m->map->size) /* its stores would have the key of the new file */
        return err_set(e, ERR_LOST, "%s: changed while it was read; open it anew", m->path);
    int rc = ctf_metadata_parse(m->path, m->metadata, m->metadata_bytes, t->schemas, &piece.md, e);
    if (rc)
        return rc;
    piece.parsed = true;
    piece.metadata_bytes = m->metadata_bytes;
    vec_push(&t->pieces, piece);
    t->text_hash = map_hash(m->metadata, m->metadata_bytes);
    t->fingerprint = map_hash(&t->text_hash, sizeof t->text_hash);
    ctf_trace_plan(t);
    for (size_t i = 0; i < m->n_problems; i++) {
        const struct ctf_made_problem *p = &m->problems[i];
        (p->harmless ? ctf_remark_add : ctf_problem_add)(&t->problems, "%s", p->text);
    }
    for (size_t i = 0; i < m->n && !rc; i++) {
        add_file(t, m, &m->streams[i], &st);
        rc = add_stream(t, m, &m->streams[i], e);
    }
    rc = rc ? rc : ctf_packets_finish(t, e);
    return rc ? rc : ctf_trace_intact(t, e);
}

int ctf_trace_make(const struct ctf_made *m, struct ctf_schemas *schemas, struct ctf_trace **out, struct err *e)
{
    struct ctf_trace *t = ctf_trace_new(schemas);
    t->maker = m->maker; /* packets that may be copies are made while they are listed */
    int rc = fill(t, m, e);
    *out = NULL;
    if (rc) {
        t->maker = (struct ctf_maker){0};
        ctf_trace_close(t);
        return rc;
    }
    *out = t;
    return 0;
}
