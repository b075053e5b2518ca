/* Opening a trace: metadata of all its directories, files, packets. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/map.h"
#include "base/order.h"
#include "ctf/trace.h"
#include "ctf/tsdl.h"

static int open_piece(struct ctf_trace *t, const char *dir, struct err *e)
{
    struct ctf_piece piece = {.dir = arena_strdup(&t->arena, dir)};
    char *path = arena_printf(&t->arena, "%s/metadata", dir), *text;
    size_t n;
    int rc = file_read(path, TSDL_MAX_TEXT, &text, &n, e);
    if (rc)
        return rc;
    rc = ctf_metadata_parse(path, text, n, t->schemas, &piece.md, e);
    if (!rc) {
        uint64_t parts[2] = {t->fingerprint, map_hash(text, n)};
        t->fingerprint = map_hash(parts, sizeof parts);
        piece.parsed = true;
        vec_push(&t->pieces, piece);
    }
    free(text);
    return rc;
}

static void fingerprint_file(struct ctf_trace *t, const char *name, const struct stat *st)
{
    uint64_t parts[5] = {t->fingerprint, map_hash(name, strlen(name)), (uint64_t)st->st_size,
        (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec};
    t->fingerprint = map_hash(parts, sizeof parts);
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
    if (!S_ISREG(st.st_mode))
        return;
    fingerprint_file(t, name, &st);
    if (st.st_size == 0)
        return;
    f.size = (uint64_t)st.st_size;
    vec_push(&t->files, f);
}

static int list_files(struct ctf_trace *t, uint32_t piece, struct err *e)
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
        add_file(t, piece, names.v[i]);
        free(names.v[i]);
    }
    vec_free(&names);
    return 0;
}

/* The metadata that declare most are used for all pieces: tracers only ever add to them. */
static void choose_schema(struct ctf_trace *t)
{
    for (size_t i = 1; i < t->pieces.n; i++)
        if (t->pieces.v[i].md.schema->n_classes > t->pieces.v[t->main].md.schema->n_classes)
            t->main = i;
    const struct ctf_schema *s = t->schema = t->pieces.v[t->main].md.schema;
    if (s->packet_header)
        t->packet_header = ctf_program_compile(&t->arena, s->packet_header, CTF_PACKET_HEADER, -1);
    t->plans = arena_new(&t->arena, const struct ctf_stream_plan *, s->n_streams ? s->n_streams : 1);
    for (size_t i = 0; i < s->n_streams; i++)
        t->plans[i] = s->streams[i].plan ? s->streams[i].plan
                                         : ctf_stream_plan_compile(&t->arena, &s->streams[i], s->packet_header);
}

static void note_warnings(struct ctf_trace *t)
{
    for (size_t i = 0; i < t->pieces.n; i++) {
        const struct ctf_metadata *md = &t->pieces.v[i].md;
        for (size_t k = 0; k < md->n_warnings; k++)
            (md->warnings[k].harmless ? ctf_remark_add : ctf_problem_add)(&t->problems, "%s", md->warnings[k].text);
    }
}

int ctf_trace_open(const struct ctf_group *g, struct ctf_schemas *schemas, struct ctf_trace **out, struct err *e)
{
    struct ctf_trace *t = mem_zalloc(sizeof *t);
    struct err first = {0};
    int rc = 0;
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->counting, NULL);
    if (!schemas)
        t->own_schemas = schemas = ctf_schemas_new();
    t->schemas = schemas;
    *out = NULL;
    for (size_t i = 0; i < g->n; i++) {
        struct err why = {0};
        int bad = open_piece(t, g->dirs[i], &why);
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
    note_warnings(t);
    for (uint32_t i = 0; i < t->pieces.n && !rc; i++)
        rc = list_files(t, i, e);
    if (t->packet_header || !t->schema->packet_header)
        for (uint32_t i = 0; i < t->files.n && !rc; i++)
            rc = ctf_packets_find(t, i, e);
    else
        ctf_problem_add(
            &t->problems, "%s: the packet header is of a kind that cannot be read", t->pieces.v[t->main].dir);
    if (!rc)
        rc = ctf_packets_finish(t, e);
    if (!rc)
        rc = ctf_trace_intact(t, e);
    if (rc) {
        ctf_trace_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

void ctf_trace_close(struct ctf_trace *t)
{
    if (!t)
        return;
    for (size_t i = 0; i < t->streams.n; i++) {
        vec_free(&t->streams.v[i].packets);
        vec_free(&t->streams.v[i].losses);
        free(t->streams.v[i].marks);
    }
    vec_free(&t->streams);
    map_fini(&t->stream_by);
    for (size_t i = 0; i < t->files.n; i++)
        file_map_close(&t->files.v[i].map);
    vec_free(&t->files);
    for (size_t i = 0; i < t->pieces.n; i++)
        ctf_metadata_fini(&t->pieces.v[i].md, t->schemas);
    vec_free(&t->pieces);
    if (t->own_schemas)
        ctf_schemas_free(t->own_schemas);
    ctf_problems_fini(&t->problems);
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->counting);
    arena_fini(&t->arena);
    free(t);
}
