/* Opening a trace: metadata of all its directories, files, packets; and what is known of it then. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/map.h"
#include "ctf/trace.h"
#include "ctf/tsdl.h"

/* ---- problems ---- */

enum { PROBLEMS_MAX = 200 };

void ctf_problem_add(struct ctf_problems *p, const char *fmt, ...)
{
    char text[1024];
    va_list ap;
    if (p->list.n > PROBLEMS_MAX) { /* a hostile file has millions */
        p->list.v[PROBLEMS_MAX].count++;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    for (size_t i = 0; i < p->list.n; i++) {
        if (!strcmp(p->list.v[i].text, text)) {
            p->list.v[i].count++;
            return;
        }
    }
    struct ctf_problem one = {
        mem_strdup(p->list.n < PROBLEMS_MAX ? text : "more problems of these kinds, not listed"), 1};
    vec_push(&p->list, one);
}

void ctf_problems_fini(struct ctf_problems *p)
{
    for (size_t i = 0; i < p->list.n; i++)
        free((char *)p->list.v[i].text);
    vec_free(&p->list);
}

/* ---- opening ---- */

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

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void fingerprint_file(struct ctf_trace *t, const char *name, const struct stat *st)
{
    uint64_t parts[5] = {t->fingerprint, map_hash(name, strlen(name)), (uint64_t)st->st_size,
        (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec};
    t->fingerprint = map_hash(parts, sizeof parts);
}

static void open_file(struct ctf_trace *t, uint32_t piece, const char *name)
{
    struct ctf_file f = {.piece = piece};
    struct stat st;
    struct err e = {0};
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
    if (file_map_open(f.path, &f.map, &e)) {
        ctf_problem_add(&t->problems, "%s", e.text);
        return;
    }
    vec_push(&t->files, f);
}

static void open_files(struct ctf_trace *t, uint32_t piece)
{
    VEC(char *) names = {0};
    DIR *dir = opendir(t->pieces.v[piece].dir);
    struct dirent *de;
    while (dir && (de = readdir(dir)))
        if (de->d_name[0] != '.' && strcmp(de->d_name, "metadata"))
            vec_push(&names, mem_strdup(de->d_name));
    if (dir)
        closedir(dir);
    if (names.n)
        qsort(names.v, names.n, sizeof *names.v, by_name);
    for (size_t i = 0; i < names.n; i++) {
        open_file(t, piece, names.v[i]);
        free(names.v[i]);
    }
    vec_free(&names);
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
            ctf_problem_add(&t->problems, "%s", md->warnings[k].text);
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
        if (bad && !rc) {
            rc = bad;
            first = why;
        }
        if (bad && g->n > 1)
            ctf_problem_add(&t->problems, "%s", why.text);
    }
    if (t->pieces.n == 0) {
        ctf_trace_close(t);
        if (rc && e)
            *e = first;
        return rc ? rc : err_set(e, ERR_ARG, "a trace needs at least one directory");
    }
    choose_schema(t);
    note_warnings(t);
    for (uint32_t i = 0; i < t->pieces.n; i++)
        open_files(t, i);
    if (t->packet_header || !t->schema->packet_header)
        for (uint32_t i = 0; i < t->files.n; i++)
            ctf_packets_find(t, i);
    else
        ctf_problem_add(
            &t->problems, "%s: the packet header is of a kind that cannot be read", t->pieces.v[t->main].dir);
    ctf_packets_finish(t);
    if ((rc = ctf_trace_intact(t, e))) {
        ctf_trace_close(t);
        return rc;
    }
    *out = t;
    return 0;
}

int ctf_trace_intact(const struct ctf_trace *t, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < t->files.n && !rc; i++)
        rc = file_map_intact(&t->files.v[i].map, e);
    return rc;
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

/* ---- what it is ---- */

static const struct ctf_metadata *main_of(const struct ctf_trace *t)
{
    return &t->pieces.v[t->main].md;
}

const char *ctf_trace_path(const struct ctf_trace *t)
{
    return t->pieces.v[0].dir;
}
const uint8_t *ctf_trace_uuid(const struct ctf_trace *t)
{
    return main_of(t)->has_uuid ? main_of(t)->uuid : NULL;
}
uint64_t ctf_trace_fingerprint(const struct ctf_trace *t)
{
    return t->fingerprint;
}
size_t ctf_trace_streams(const struct ctf_trace *t)
{
    return t->streams.n;
}

size_t ctf_trace_clocks(const struct ctf_trace *t, const struct ctf_clock **out)
{
    *out = main_of(t)->clocks;
    return main_of(t)->n_clocks;
}

size_t ctf_trace_env(const struct ctf_trace *t, const struct ctf_env **out)
{
    *out = main_of(t)->env;
    return main_of(t)->n_env;
}

const char *ctf_trace_env_string(const struct ctf_trace *t, const char *name)
{
    const struct ctf_metadata *md = main_of(t);
    for (size_t i = 0; i < md->n_env; i++)
        if (!strcmp(md->env[i].name, name))
            return md->env[i].is_string ? md->env[i].string : NULL;
    return NULL;
}

size_t ctf_trace_classes(const struct ctf_trace *t, const struct ctf_event_class *const **out)
{
    *out = (const struct ctf_event_class *const *)t->schema->classes;
    return t->schema->n_classes;
}

size_t ctf_trace_problems(const struct ctf_trace *t, const struct ctf_problem **out)
{
    *out = t->problems.list.v;
    return t->problems.list.n;
}

/* A piece's own clock: `lttng regenerate metadata` may change the offset between archives. */
struct ctf_clock_rate ctf_trace_rate(const struct ctf_trace *t, uint32_t piece, const struct ctf_stream_class *sc)
{
    struct ctf_clock_rate rate = {1000000000, 0};
    const struct ctf_metadata *md = &t->pieces.v[piece].md;
    if (sc->clock < 0)
        return rate;
    if (md->schema == t->schema && md->clock_of[sc->clock] >= 0) {
        ctf_clock_rate_of(&md->clocks[md->clock_of[sc->clock]], &rate);
        return rate;
    }
    const char *name = t->schema->clock_names[sc->clock];
    for (size_t i = 0; i < md->n_clocks; i++) {
        if (!strcmp(md->clocks[i].name, name) || (!*name && md->n_clocks == 1)) {
            ctf_clock_rate_of(&md->clocks[i], &rate);
            return rate;
        }
    }
    if (main_of(t)->clock_of[sc->clock] >= 0)
        ctf_clock_rate_of(&main_of(t)->clocks[main_of(t)->clock_of[sc->clock]], &rate);
    return rate;
}

/* ---- packets ---- */

/* Behind the last byte that is not 0: no event starts there in a packet that its tracer did not close. */
static uint64_t zeros_begin(const uint8_t *data, uint64_t bytes)
{
    while (bytes && !data[bytes - 1])
        bytes--;
    return bytes;
}

bool ctf_packet_open(
    const struct ctf_trace *t, const struct ctf_stream *s, const struct ctf_packet *p, struct ctf_decoder *d)
{
    const struct ctf_file *f = &t->files.v[p->file];
    const uint8_t *data = f->map.data + p->offset;
    uint64_t last = p->content_bits;
    if (p->flags & CTF_PACKET_UNCLOSED)
        last = zeros_begin(data, p->content_bits / 8) * 8;
    d->rate = ctf_trace_rate(t, f->piece, s->plan->sc);
    return ctf_decoder_open(d, s->plan, data, p->content_bits, last);
}

void ctf_packet_problem(
    const struct ctf_trace *t, const struct ctf_packet *p, const struct ctf_decoder *d, struct ctf_problems *out)
{
    const char *path = t->files.v[p->file].path;
    unsigned long long at = p->offset;
    switch (d->stop) {
    case CTF_STOP_UNKNOWN_ID:
        ctf_problem_add(out,
            "%s: packet at byte %llu: the metadata declare no event %llu in this stream; the rest of the packet is "
            "skipped",
            path, at, (unsigned long long)d->stop_id);
        break;
    case CTF_STOP_CUT:
        if (!(p->flags & CTF_PACKET_UNCLOSED))
            ctf_problem_add(out,
                "%s: packet at byte %llu: an event does not fit the packet's content; the rest of the packet is "
                "skipped",
                path, at);
        break;
    case CTF_STOP_TAG:
        ctf_problem_add(out,
            "%s: packet at byte %llu: a variant's tag selects none of its options; the rest of the packet is skipped",
            path, at);
        break;
    case CTF_STOP_EMPTY:
        ctf_problem_add(
            out, "%s: packet at byte %llu: events without any bit; the rest of the packet is skipped", path, at);
        break;
    case CTF_STOP_UNREADABLE:
        ctf_problem_add(out,
            "%s: packet at byte %llu: an event of a kind that cannot be read; the rest of the packet is skipped", path,
            at);
        break;
    default: break;
    }
}

/* ---- streams ---- */


void ctf_trace_stream(const struct ctf_trace *t, size_t i, struct ctf_stream_info *out)
{
    const struct ctf_stream *s = &t->streams.v[i];
    if (ctf_stream_untimed(s))
        ctf_trace_count(t);
    *out = (struct ctf_stream_info){.name = s->name,
        .class_id = s->plan->sc->id,
        .instance_id = s->instance_id,
        .cpu = s->cpu,
        .packets = s->packets.n,
        .lost_events = s->lost_events,
        .lost_packets = s->lost_packets,
        .bytes = s->bytes,
        .begin = s->begin,
        .end = s->end};
    if (s->begin > s->end)
        out->begin = out->end = 0;
}

bool ctf_trace_span(const struct ctf_trace *t, int64_t *begin, int64_t *end)
{
    *begin = INT64_MAX;
    *end = INT64_MIN;
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream *s = &t->streams.v[i];
        if (ctf_stream_untimed(s))
            ctf_trace_count(t);
        if (s->plan->sc->clock < 0 || s->begin > s->end)
            continue;
        *begin = s->begin < *begin ? s->begin : *begin;
        *end = s->end > *end ? s->end : *end;
    }
    if (*begin > *end) {
        *begin = *end = 0;
        return false;
    }
    return true;
}
