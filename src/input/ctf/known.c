/* SPDX-License-Identifier: MIT */
/* Catalogue entry of a trace directory: comparison with the directory, filling by an opening, use in an opening. */
#include <stdlib.h>
#include <sys/stat.h>

#include "base/time.h"
#include "ctf/known.h"

/* ---- comparison ---- */

static int64_t modified_ns(const struct stat *st)
{
    return (int64_t)st->st_mtim.tv_sec * NS_PER_S + st->st_mtim.tv_nsec;
}

static uint64_t index_of(const char *dir, const char *name)
{
    struct stat st;
    char *path = mem_printf("%s/index/%s.idx", dir, name);
    bool there = !stat(path, &st);
    free(path);
    if (!there)
        return 0;
    uint64_t parts[3] = {st.st_ino, (uint64_t)st.st_size, (uint64_t)modified_ns(&st)};
    return map_hash(parts, sizeof parts);
}

static bool look(const char *dir, struct ctf_known_dir *out)
{
    struct stat of_dir, of_metadata;
    char *path = mem_printf("%s/metadata", dir);
    bool there = !stat(dir, &of_dir) && !stat(path, &of_metadata);
    free(path);
    if (!there)
        return false;
    out->inode = of_dir.st_ino;
    out->modified_ns = modified_ns(&of_dir);
    out->metadata_inode = of_metadata.st_ino;
    out->metadata_size = (uint64_t)of_metadata.st_size;
    out->metadata_modified_ns = modified_ns(&of_metadata);
    return true;
}

static enum ctf_known_state compare_file(const char *dir, const char *name, const struct ctf_known_file *f)
{
    struct stat st;
    char *path = mem_printf("%s/%s", dir, name);
    bool there = !stat(path, &st) && S_ISREG(st.st_mode);
    free(path);
    if (!there || (uint64_t)st.st_ino != f->inode || (uint64_t)st.st_size < f->size)
        return CTF_KNOWN_REPLACED;
    if ((uint64_t)st.st_size > f->size)
        return CTF_KNOWN_CHANGED;
    bool same = ctf_file_identity(name, &st) == f->identity && index_of(dir, name) == f->index;
    return same ? CTF_KNOWN_SAME : CTF_KNOWN_REPLACED;
}

enum ctf_known_state ctf_known_compare(const struct ctf_known *k, const char *dir)
{
    const struct ctf_known_dir *was = &k->dir;
    struct ctf_known_dir is;
    if (!look(dir, &is) || is.inode != was->inode || is.metadata_inode != was->metadata_inode ||
        is.metadata_size < was->metadata_size ||
        (is.metadata_size == was->metadata_size && is.metadata_modified_ns != was->metadata_modified_ns))
        return CTF_KNOWN_REPLACED;
    bool same = is.modified_ns == was->modified_ns && is.metadata_size == was->metadata_size;
    for (uint32_t i = 0; i < was->n_files; i++) {
        enum ctf_known_state state = compare_file(dir, k->names + k->files[i].name, &k->files[i]);
        if (state == CTF_KNOWN_REPLACED)
            return state;
        same &= state == CTF_KNOWN_SAME;
    }
    return same ? CTF_KNOWN_SAME : CTF_KNOWN_CHANGED;
}

/* ---- use in an opening ---- */

static void give_files(struct ctf_trace *t, uint32_t piece, const struct ctf_known *k)
{
    const char *dir = t->pieces.v[piece].dir;
    size_t n_dir = strlen(dir);
    for (uint32_t i = 0; i < k->dir.n_files; i++) {
        const struct ctf_known_file *known = &k->files[i];
        const char *name = k->names + known->name;
        size_t n = strlen(name);
        uint64_t parts[2] = {t->fingerprint, known->identity};
        t->fingerprint = map_hash(parts, sizeof parts);
        if (!known->size)
            continue;
        struct ctf_file f = {.piece = piece,
            .size = known->size,
            .inode = known->inode,
            .identity = known->identity,
            .scanned = known->size,
            .state = CTF_FILE_UNSEEN};
        f.path = arena_alloc(&t->arena, n_dir + n + 2);
        memcpy(f.path, dir, n_dir);
        f.path[n_dir] = '/';
        memcpy(f.path + n_dir + 1, name, n);
        f.name = f.path + n_dir + 1;
        vec_push(&t->files, f);
    }
}

/* Returns the hash of all declarations that affect how packets are found. */
static uint64_t read_as(const struct ctf_trace *t, uint32_t piece)
{
    const struct ctf_piece *p = &t->pieces.v[piece];
    uint64_t sum = p->declared;
    for (size_t i = 0; i < p->md.schema->n_streams; i++) {
        const struct ctf_stream_class *sc = ctf_schema_stream(t->schema, p->md.schema->streams[i].id);
        if (!sc)
            continue;
        struct ctf_clock_rate rate = ctf_trace_rate(t, piece, sc);
        uint64_t parts[4] = {sum, rate.freq, rate.offset, (uint64_t)rate.offset_s};
        sum = map_hash(parts, sizeof parts);
    }
    return sum;
}

static const struct ctf_stream_plan *plan_of(const struct ctf_trace *t, uint64_t class_id)
{
    const struct ctf_stream_class *sc = ctf_schema_stream(t->schema, class_id);
    return sc ? t->plans[sc - t->schema->streams] : NULL;
}

static bool can_be_given(const struct ctf_trace *t, uint32_t piece, const struct ctf_known *k)
{
    size_t n_runs = 0;
    for (uint32_t i = 0; i < k->dir.n_files; i++)
        n_runs += k->files[i].n_runs;
    for (size_t i = 0; i < n_runs; i++)
        if (!plan_of(t, k->runs[i].class_id))
            return false;
    return read_as(t, piece) == k->dir.declared;
}

enum { LIKELY_MOST = 4 };
static void give_run(
    struct ctf_trace *t, uint32_t file, const struct ctf_known_run *run, const struct ctf_known_packet *packets)
{
    struct ctf_stream_key key = {plan_of(t, run->class_id), run->instance_id, run->has_instance != 0, run->cpu};
    struct ctf_stream *s = ctf_stream_for(t, &t->files.v[file], &key);
    size_t piece = t->files.v[file].piece;
    s->bytes += run->bytes;
    if (!s->packets.n) /* later pieces usually have as many */
        vec_reserve(&s->packets, (t->pieces.n - piece) * (run->n_packets < LIKELY_MOST ? run->n_packets : LIKELY_MOST));
    vec_reserve(&s->packets, run->n_packets);
    for (uint32_t i = 0; i < run->n_packets; i++) {
        const struct ctf_known_packet *p = &packets[i];
        struct ctf_packet one = {.offset = p->offset,
            .content_bits = p->content_bits,
            .begin = p->begin,
            .end = p->end,
            .seq = p->seq,
            .discarded = p->discarded,
            .file = file,
            .cpu = p->cpu,
            .flags = (uint8_t)p->flags};
        vec_push(&s->packets, one);
    }
}

bool ctf_known_give(struct ctf_trace *t, uint32_t piece, const struct ctf_known *k)
{
    const struct ctf_known_run *run = k->runs;
    const struct ctf_known_packet *packets = k->packets;
    size_t file = t->files.n;
    if (!can_be_given(t, piece, k))
        return false;
    give_files(t, piece, k);
    for (uint32_t i = 0; i < k->dir.n_files; i++) {
        if (!k->files[i].size)
            continue;
        for (uint32_t r = 0; r < k->files[i].n_runs; r++, run++) {
            give_run(t, (uint32_t)file, run, packets);
            packets += run->n_packets;
        }
        file++;
    }
    return true;
}

/* ---- filling by an opening ---- */

bool ctf_known_begin(struct ctf_known *k, const char *dir)
{
    return look(dir, &k->dir);
}

void ctf_known_find_file(struct ctf_known_finder *f, const char *dir, const char *name, const struct stat *st)
{
    struct ctf_known_file one = {.identity = ctf_file_identity(name, st),
        .size = (uint64_t)st->st_size,
        .inode = (uint64_t)st->st_ino,
        .modified_ns = modified_ns(st),
        .index = index_of(dir, name),
        .name = (uint32_t)f->names.n};
    text_put(&f->names, name, strlen(name) + 1);
    vec_push(&f->files, one);
}

static void find_run(struct ctf_known_finder *f, const struct ctf_stream *s, const struct ctf_touched *before)
{
    struct ctf_known_run run = {.class_id = s->plan->sc->id,
        .instance_id = s->instance_id,
        .bytes = s->bytes - before->bytes,
        .n_packets = (uint32_t)(s->packets.n - before->packets),
        .has_instance = s->has_instance};
    /* Packets whose clock continues from the one before cannot be reused alone. */
    f->odd |= !run.n_packets || (s->plan->has_begin && s->plan->begin_bits < 64);
    if (!run.n_packets)
        return;
    run.cpu = s->packets.v[before->packets].cpu;
    vec_push(&f->runs, run);
    for (size_t i = before->packets; i < s->packets.n; i++) {
        const struct ctf_packet *p = &s->packets.v[i];
        struct ctf_known_packet one = {
            p->offset, p->content_bits, p->begin, p->end, p->seq, p->discarded, p->cpu, p->flags};
        vec_push(&f->packets, one);
    }
}

void ctf_known_find_packets(struct ctf_known_finder *f, const struct ctf_trace *t, uint32_t file)
{
    while (f->next < f->files.n && !f->files.v[f->next].size)
        f->next++;
    struct ctf_known_file *known = &f->files.v[f->next++];
    known->n_runs = (uint32_t)t->touched.n;
    for (size_t i = 0; i < t->touched.n; i++)
        find_run(f, &t->streams.v[t->touched.v[i].stream], &t->touched.v[i]);
}

void ctf_known_found(struct ctf_known *k, struct ctf_known_finder *f, const struct ctf_trace *t, uint32_t piece)
{
    if (f->odd) {
        vec_free(&f->files);
        vec_free(&f->runs);
        vec_free(&f->packets);
        text_fini(&f->names);
        return;
    }
    k->dir.declared = read_as(t, piece);
    k->dir.n_files = (uint32_t)f->files.n;
    k->names = text_take(&f->names);
    k->files = f->files.v;
    k->runs = f->runs.v;
    k->packets = f->packets.v;
    k->filled = k->own = k->read = true;
}
