/* SPDX-License-Identifier: MIT */
/* Opening a trace: metadata of all its directories, files, packets. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/map.h"
#include "base/order.h"
#include "ctf/count.h"
#include "ctf/feed.h"
#include "ctf/formats.h"
#include "ctf/known.h"
#include "ctf/tsdl.h"

static const struct ctf_known_text *text_of(const struct ctf_known *k)
{
    return k && k->filled ? k->text : NULL;
}

/* Reads the metadata of a directory, from the file or from the catalogue entry. *text: free(). */
static int read_metadata(const char *path, const struct ctf_known_text *known, char **text, size_t *n, struct err *e)
{
    if (!known)
        return file_read(path, TSDL_MAX_TEXT, text, n, e);
    *n = known->n;
    *text = mem_alloc(known->n + 1);
    memcpy(*text, known->v, known->n);
    (*text)[known->n] = '\0';
    return 0;
}

static void add_piece(struct ctf_trace *t, struct ctf_piece *piece, size_t metadata_bytes)
{
    uint64_t parts[2] = {t->fingerprint, t->text_hash};
    t->fingerprint = map_hash(parts, sizeof parts);
    piece->parsed = true;
    piece->metadata_bytes = metadata_bytes;
    vec_push(&t->pieces, *piece);
}

int ctf_trace_add_piece(struct ctf_trace *t, const char *dir, struct ctf_known *known, struct err *e)
{
    if (known && !known->filled && !ctf_known_begin(known, dir))
        known = NULL;
    struct ctf_piece piece = {.dir = arena_strdup(&t->arena, dir), .known = known};
    const struct ctf_known_text *as_before = t->pieces.n ? t->known_text : NULL;
    char *text;
    size_t n;
    if (as_before && text_of(known) == as_before) {
        piece.borrowed = true;
        piece.md = t->pieces.v[t->pieces.n - 1].md;
        add_piece(t, &piece, as_before->n);
        return 0;
    }
    char *path = arena_printf(&t->arena, "%s/metadata", dir);
    int rc = read_metadata(path, text_of(known), &text, &n, e);
    if (rc)
        return rc;
    /* Consecutive archives often have the same metadata. */
    piece.borrowed = t->pieces.n && t->text && n == t->text_n && !memcmp(text, t->text, n);
    if (piece.borrowed)
        piece.md = t->pieces.v[t->pieces.n - 1].md;
    else
        rc = ctf_metadata_parse(path, text, n, t->schemas, &piece.md, e);
    if (!rc && !piece.borrowed) {
        free(t->text);
        t->text = text;
        t->text_n = n;
        t->text_hash = map_hash(text, n);
        t->known_text = NULL;
        text = NULL;
    }
    if (!rc && known && !text_of(known))
        known->text = as_before && piece.borrowed ? as_before : ctf_known_keep_text(known->catalogue, t->text, n);
    if (!rc && known)
        t->known_text = known->text;
    if (!rc)
        add_piece(t, &piece, n);
    free(text);
    return rc;
}

static void add_file(struct ctf_trace *t, uint32_t piece, const char *name)
{
    struct ctf_file f = {.piece = piece};
    struct stat st;
    f.path = arena_printf(&t->arena, "%s/%s", t->pieces.v[piece].dir, name);
    f.name = f.path + strlen(t->pieces.v[piece].dir) + 1;
    if (stat(f.path, &st)) {
        ctf_problem_add(&t->problems, "%s: cannot be opened, ignored: %s", f.name, strerror(errno));
        return;
    }
    if (!S_ISREG(st.st_mode)) {
        if (!S_ISDIR(st.st_mode)) /* directories, such as `index`, are normal */
            ctf_problem_add(&t->problems, "%s: is %s, not a file; ignored", f.path, file_odd_kind(f.path));
        return;
    }
    if (t->finder)
        ctf_known_find_file(t->finder, t->pieces.v[piece].dir, name, &st);
    f.identity = ctf_file_identity(name, &st);
    uint64_t parts[2] = {t->fingerprint, f.identity};
    t->fingerprint = map_hash(parts, sizeof parts);
    if (st.st_size == 0)
        return;
    f.size = (uint64_t)st.st_size;
    f.inode = (uint64_t)st.st_ino;
    vec_push(&t->files, f);
}

static bool is_known(const struct ctf_trace *t, uint32_t piece, const char *name)
{
    for (size_t i = t->files.n; i > 0; i--)
        if (t->files.v[i - 1].piece == piece && !strcmp(t->files.v[i - 1].name, name))
            return true;
    return false;
}

int ctf_trace_list(struct ctf_trace *t, uint32_t piece, struct err *e)
{
    VEC(char *) names = {0};
    DIR *dir = opendir(t->pieces.v[piece].dir);
    struct dirent *de;
    if (!dir)
        return err_sys(e, "%s: cannot list the directory", t->pieces.v[piece].dir);
    while ((de = readdir(dir)))
        if (de->d_name[0] != '.' && strcmp(de->d_name, "metadata"))
            vec_push(&names, mem_strdup(de->d_name));
    closedir(dir);
    if (names.n)
        qsort(names.v, names.n, sizeof *names.v, order_strings);
    for (size_t i = 0; i < names.n; i++) {
        if (!t->appending || !is_known(t, piece, names.v[i]))
            add_file(t, piece, names.v[i]);
        free(names.v[i]);
    }
    vec_free(&names);
    return 0;
}

void ctf_trace_plan(struct ctf_trace *t)
{
    const struct ctf_schema *s = t->schema = t->pieces.v[t->main].md.schema;
    if (s->packet_header)
        t->packet_header = ctf_program_compile(&t->arena, s->packet_header, CTF_PACKET_HEADER, -1, false);
    t->plans = arena_new(&t->arena, const struct ctf_stream_plan *, s->n_streams ? s->n_streams : 1);
    for (size_t i = 0; i < s->n_streams; i++)
        t->plans[i] = s->streams[i].plan ? s->streams[i].plan
                                         : ctf_stream_plan_compile(&t->arena, &s->streams[i], s->packet_header);
    ctf_pieces_declare(t, 0);
}

/* Chooses the metadata with the most declarations for all pieces: tracers only ever add to them. */
static void choose_schema(struct ctf_trace *t)
{
    for (size_t i = 1; i < t->pieces.n; i++)
        if (t->pieces.v[i].md.schema->n_classes > t->pieces.v[t->main].md.schema->n_classes)
            t->main = i;
    ctf_trace_plan(t);
}

static void note_warnings(struct ctf_trace *t)
{
    for (size_t i = 0; i < t->pieces.n; i++) {
        const struct ctf_metadata *md = &t->pieces.v[i].md;
        for (size_t k = 0; k < md->n_warnings; k++)
            (md->warnings[k].harmless ? ctf_remark_add : ctf_problem_add)(&t->problems, "%s", md->warnings[k].text);
    }
}

struct ctf_trace *ctf_trace_new(struct ctf_schemas *schemas)
{
    struct ctf_trace *t = mem_zalloc(sizeof *t);
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->counting, NULL);
    if (!schemas)
        t->own_schemas = schemas = ctf_schemas_new();
    t->schemas = schemas;
    t->quiet = t->late = t->until = INT64_MIN;
    return t;
}

static uint64_t count_problems(const struct ctf_trace *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < t->problems.list.n; i++)
        sum += t->problems.list.v[i].count;
    return sum;
}

static int find_packets(struct ctf_trace *t, size_t first_file, struct err *e)
{
    int rc = 0;
    if (t->schema->packet_header && !t->packet_header)
        return 0; /* reported once */
    for (size_t i = first_file; i < t->files.n && !rc; i++) {
        rc = ctf_packets_find(t, (uint32_t)i, e);
        if (!rc && t->finder)
            ctf_known_find_packets(t->finder, t, (uint32_t)i);
    }
    return rc;
}

/* Finds the files of a piece and their packets. A piece with oddities is not stored in the catalogue: they must be
 * reported at each opening. */
static int find_piece(struct ctf_trace *t, uint32_t i, struct err *e)
{
    struct ctf_known *known = t->growing ? NULL : t->pieces.v[i].known;
    struct ctf_known_finder finder = {.names = {.fd = -1}};
    size_t first = t->files.n;
    uint64_t problems = count_problems(t) + t->absences.n;
    if (known && known->filled) {
        if (ctf_known_give(t, i, known))
            return 0;
        known->filled = false;
        finder.odd |= !ctf_known_begin(known, t->pieces.v[i].dir);
    }
    t->finder = known && known->text ? &finder : NULL;
    int rc = ctf_trace_list(t, i, e);
    rc = rc ? rc : find_packets(t, first, e);
    if (!rc && !t->growing)
        ctf_absences_find(t, i);
    if (t->finder) {
        finder.odd |= rc || count_problems(t) + t->absences.n != problems ||
            !t->packet_header != !t->schema->packet_header;
        ctf_known_found(known, &finder, t, i);
    }
    t->finder = NULL;
    return rc;
}

static int open_trace(
    const struct ctf_group *g, struct ctf_schemas *schemas, bool growing, struct ctf_trace **out, struct err *e)
{
    struct ctf_trace *t = ctf_trace_new(schemas);
    struct err first = {0};
    int rc = 0;
    t->growing = growing;
    *out = NULL;
    vec_reserve(&t->pieces, g->n);
    vec_reserve(&t->files, g->n);
    for (size_t i = 0; i < g->n; i++) {
        struct err why = {0};
        int bad = ctf_trace_add_piece(t, g->dirs[i], g->known && !growing ? g->known[i] : NULL, &why);
        if (bad && !first.code) {
            first = why;
            first.code = bad;
        }
        if (bad && g->n > 1)
            ctf_problem_add(&t->problems, "%s", why.text);
    }
    if (t->pieces.n == 0) {
        ctf_trace_close(t);
        if (first.code && e)
            *e = first;
        return first.code ? first.code : err_set(e, ERR_ARG, "a trace needs at least one directory");
    }
    choose_schema(t);
    rc = ctf_pieces_agree(t, e);
    note_warnings(t);
    if (t->schema->packet_header && !t->packet_header)
        ctf_problem_add(
            &t->problems, "%s: the packet header is of a kind that cannot be read", t->pieces.v[t->main].dir);
    for (uint32_t i = 0; i < t->pieces.n && !rc; i++)
        rc = find_piece(t, i, e);
    vec_free(&t->touched);
    t->known_text = NULL;
    for (size_t i = 0; i < t->pieces.n; i++)
        t->pieces.v[i].known = NULL;
    if (!growing) {
        free(t->text);
        t->text = NULL;
    }
    if (!rc)
        rc = ctf_packets_finish(t, e);
    if (!rc && !growing)
        ctf_absences_finish(t);
    if (!rc)
        rc = ctf_trace_intact(t, e);
    if (rc) {
        ctf_trace_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

int ctf_trace_open(const struct ctf_group *g, struct ctf_schemas *schemas, struct ctf_trace **out, struct err *e)
{
    return open_trace(g, schemas, false, out, e);
}

int ctf_trace_follow(const struct ctf_group *g, struct ctf_schemas *schemas, struct ctf_trace **out, struct err *e)
{
    int rc = open_trace(g, schemas, true, out, e);
    if (!rc)
        ctf_trace_followed(*out);
    return rc ? rc : ctf_trace_refresh(*out, NULL, NULL, e);
}

static void free_stream(const struct ctf_trace *t, struct ctf_stream *s)
{
    for (size_t i = s->growth ? s->growth->freed : 0; t->fed && i < s->packets.n; i++)
        free(s->packets.v[i].bytes);
    if (t->fed && s->growth->has_next)
        free(s->growth->next.bytes);
    vec_free(&s->packets);
    vec_free(&s->losses);
    free(s->marks);
    free(s->growth);
}

static void free_piece(struct ctf_trace *t, struct ctf_piece *p)
{
    if (!p->borrowed)
        ctf_metadata_fini(&p->md, p->own ? NULL : t->schemas);
}

void ctf_trace_close(struct ctf_trace *t)
{
    if (!t)
        return;
    ctf_recall_fini(t);
    for (size_t i = 0; i < t->streams.n; i++)
        free_stream(t, &t->streams.v[i]);
    vec_free(&t->streams);
    map_fini(&t->stream_by);
    vec_free(&t->touched);
    map_fini(&t->piece_by);
    free(t->text);
    for (size_t i = 0; i < t->files.n; i++)
        if (!t->files.v[i].made)
            file_map_close(&t->files.v[i].map);
    vec_free(&t->files);
    for (size_t i = 0; i < t->pieces.n; i++)
        free_piece(t, &t->pieces.v[i]);
    vec_free(&t->pieces);
    for (size_t i = 0; i < t->outgrown.n; i++)
        free_piece(t, &t->outgrown.v[i]);
    vec_free(&t->outgrown);
    if (t->own_schemas)
        ctf_schemas_free(t->own_schemas);
    ctf_problems_fini(&t->problems);
    vec_free(&t->absences);
    vec_free(&t->absent);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->counting);
    if (t->maker.close)
        t->maker.close(t->maker.reader);
    arena_fini(&t->arena);
    free(t);
}
