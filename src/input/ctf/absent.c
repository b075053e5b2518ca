/* SPDX-License-Identifier: MIT */
/* Missing streams, as shown by files of the trace: an index without its stream file. Absences shown by events are found
 * in the kernel room (targets.h). A gap in the CPU numbers proves nothing: a CPU may have been offline, or without an
 * event. */
#include <dirent.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/order.h"
#include "base/search.h"
#include "base/text.h"
#include "ctf/trace.h"

enum { MOST_TOLD = 32 };

/* ---- index files without stream files ---- */

static bool has_file(const struct ctf_trace *t, size_t piece, const char *name)
{
    char *path = mem_printf("%s/%s", t->pieces.v[piece].dir, name);
    bool there = !access(path, F_OK);
    free(path);
    return there;
}

/* Returns the number at the end of a name such as "ch_1"; -1: none. */
static int32_t number_in(const char *name)
{
    const char *at = strrchr(name, '_');
    char *end;
    long n = at && at[1] >= '0' && at[1] <= '9' ? strtol(at + 1, &end, 10) : -1;
    return n >= 0 && n < CTF_MOST_CPUS && !*end ? (int32_t)n : -1;
}

/* Returns whether the existing streams of the class use their CPU number as stream number. */
static bool numbers_cpus(const struct ctf_trace *t, uint64_t class_id)
{
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream *s = &t->streams.v[i];
        if (s->plan->sc->id == class_id && (!s->has_instance || s->cpu < 0 || (uint64_t)s->cpu != s->instance_id))
            return false;
    }
    return true;
}

/* Reads the interval and CPU of the missing file from its index. */
static void read_index(const struct ctf_trace *t, uint32_t piece, const char *path, struct ctf_absence *a)
{
    struct file_map map;
    struct ctf_index index = {0};
    if (file_map_open(path, &map, NULL))
        return;
    uint64_t bytes = ctf_index_file_bytes(map.data, map.size);
    bool ok = bytes && ctf_index_parse(map.data, map.size, bytes, &index);
    struct ctf_absent is = {INT64_MAX, INT64_MIN, a->is.cpu};
    for (size_t i = 0; ok && i < index.entries.n; i++) {
        const struct ctf_index_entry *e = &index.entries.v[i];
        const struct ctf_stream_class *sc = ctf_schema_stream(t->schema, e->stream_id);
        if (!sc)
            continue;
        struct ctf_clock_rate rate = ctf_trace_rate(t, piece, sc);
        bool fits;
        int64_t begin = ctf_clock_ns(&rate, e->begin, &fits), end = ctf_clock_ns(&rate, e->end, &fits);
        is.begin = begin < is.begin ? begin : is.begin;
        is.end = end > is.end ? end : is.end;
        if (index.has_instance_and_seq && e->instance_id < CTF_MOST_CPUS)
            is.cpu = numbers_cpus(t, e->stream_id) ? (int32_t)e->instance_id : -1;
    }
    if (is.begin <= is.end)
        a->is = is;
    vec_free(&index.entries);
    file_map_close(&map);
}

static void look_at_index(struct ctf_trace *t, uint32_t piece, const char *index_dir, const char *entry)
{
    size_t n = strlen(entry);
    if (n < 5 || strcmp(entry + n - 4, ".idx"))
        return;
    char *name = arena_strndup(&t->arena, entry, n - 4), *path = mem_printf("%s/%s", index_dir, entry);
    struct ctf_absence a = {.is = {INT64_MIN, INT64_MAX, number_in(name)}, .name = name};
    if (!has_file(t, piece, name)) {
        read_index(t, piece, path, &a);
        vec_push(&t->absences, a);
    }
    free(path);
}

void ctf_absences_find(struct ctf_trace *t, uint32_t piece)
{
    char *path = mem_printf("%s/index", t->pieces.v[piece].dir);
    DIR *dir = opendir(path);
    for (struct dirent *de; dir && (de = readdir(dir));)
        look_at_index(t, piece, path, de->d_name);
    if (dir)
        closedir(dir);
    free(path);
}

/* ---- summary ---- */

static int by_cpu(const void *a, const void *b)
{
    const struct ctf_absence *p = a, *q = b;
    return order_of(p->is.cpu, q->is.cpu) ?: order_of(p->is.begin, q->is.begin) ?: strcmp(p->name, q->name);
}

static void note(struct ctf_trace *t)
{
    struct text cpus = {.fd = -1}, files = {.fd = -1};
    size_t n = 0, n_cpus = 0;
    int32_t last = -1;
    const char *last_name = "";
    for (size_t i = 0; i < t->absences.n; i++) {
        const struct ctf_absence *a = &t->absences.v[i];
        if (n < MOST_TOLD && strcmp(a->name, last_name))
            text_printf(&files, "%s%s", n++ ? ", " : "", a->name);
        if (n_cpus < MOST_TOLD && a->is.cpu >= 0 && a->is.cpu != last)
            text_printf(&cpus, "%s%d", n_cpus++ ? ", " : "", a->is.cpu);
        last = a->is.cpu;
        last_name = a->name;
    }
    if (n)
        ctf_problem_add(&t->problems,
            "%s: missing stream file%s %s%s%s: index files are there without them; "
            "what was recorded there is not shown",
            t->pieces.v[0].dir, n == 1 ? "" : "s", text_cstr(&files),
            n_cpus ? n_cpus == 1 ? " of CPU " : " of CPUs " : "", text_cstr(&cpus));
    text_fini(&cpus);
    text_fini(&files);
}

/* Extends the interval from the CPU's packet before to the packet after: all between is missing. */
static void widen(const struct ctf_trace *t, struct ctf_absent *is)
{
    int64_t begin = INT64_MIN, end = INT64_MAX;
    for (size_t i = 0; i < t->streams.n; i++) {
        const struct ctf_stream *s = &t->streams.v[i];
        if (s->cpu != is->cpu || !s->begins_ascend)
            continue;
        const struct ctf_packet *v = s->packets.v;
        size_t n = s->packets.n, at = search_first(k, 0, n, v[k].begin >= is->begin);
        begin = at && v[at - 1].end > begin ? v[at - 1].end : begin;
        at = search_first(k, at, n, v[k].begin >= is->end);
        end = at < n && v[at].begin < end ? v[at].begin : end;
    }
    is->begin = begin < is->begin ? begin : is->begin;
    is->end = end > is->end ? end : is->end;
}

void ctf_absences_finish(struct ctf_trace *t)
{
    if (!t->absences.n)
        return;
    qsort(t->absences.v, t->absences.n, sizeof *t->absences.v, by_cpu);
    note(t);
    for (size_t i = 0; i < t->absences.n; i++) {
        struct ctf_absent is = t->absences.v[i].is;
        if (is.cpu >= 0)
            widen(t, &is);
        vec_push(&t->absent, is);
    }
}

size_t ctf_trace_absent(const struct ctf_trace *t, const struct ctf_absent **out)
{
    *out = t->absent.v;
    return t->absent.n;
}
