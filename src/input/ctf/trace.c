/* SPDX-License-Identifier: MIT */
/* Queries of an open trace, and reading of its packets. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctf/catalogue.h"
#include "ctf/trace.h"

/* ---- problems ---- */

enum { PROBLEMS_MAX = 200 };

static struct ctf_problem *add(struct ctf_problems *p, bool harmless, const char *fmt, va_list ap)
{
    char text[1024];
    if (p->list.n > PROBLEMS_MAX) { /* hostile files have millions */
        p->list.v[PROBLEMS_MAX].count++;
        p->list.v[PROBLEMS_MAX].harmless &= harmless;
        return &p->list.v[PROBLEMS_MAX];
    }
    vsnprintf(text, sizeof text, fmt, ap);
    for (size_t i = 0; i < p->list.n; i++) {
        if (!strcmp(p->list.v[i].text, text)) {
            p->list.v[i].count++;
            return &p->list.v[i];
        }
    }
    struct ctf_problem one = {mem_strdup(p->list.n < PROBLEMS_MAX ? text : "more problems of these kinds, not listed"),
        1, harmless, INT64_MIN};
    vec_push(&p->list, one);
    return &p->list.v[p->list.n - 1];
}

void ctf_problem_add(struct ctf_problems *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(p, false, fmt, ap);
    va_end(ap);
}

void ctf_remark_add(struct ctf_problems *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    add(p, true, fmt, ap);
    va_end(ap);
}

void ctf_problem_renew(struct ctf_problems *p, uint32_t *number, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    if (!*number) {
        *number = (uint32_t)(add(p, false, fmt, ap) - p->list.v) + 1;
    } else if (*number <= PROBLEMS_MAX) { /* problems above the limit are not listed */
        char text[1024];
        vsnprintf(text, sizeof text, fmt, ap);
        free((char *)p->list.v[*number - 1].text);
        p->list.v[*number - 1].text = mem_strdup(text);
    }
    va_end(ap);
}

void ctf_problems_fini(struct ctf_problems *p)
{
    for (size_t i = 0; i < p->list.n; i++)
        free((char *)p->list.v[i].text);
    vec_free(&p->list);
}

/* ---- files from a catalogue ---- */

static int is_other(const struct ctf_file *f, struct err *e)
{
    return err_set(e, ERR_LOST, "%s: is not what it was when its trace was opened before; open it anew", f->path);
}

uint64_t ctf_file_identity(const char *name, const struct stat *st)
{
    uint64_t parts[4] = {map_hash(name, strlen(name)), (uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec,
        (uint64_t)st->st_mtim.tv_nsec};
    return map_hash(parts, sizeof parts);
}

/* Compares a file with its catalogue entry when its first packet is read. An unchanged file may stay mapped. */
static int see(struct ctf_trace *t, struct ctf_file *f, struct err *e)
{
    struct stat st;
    int rc = 0;
    pthread_mutex_lock(&t->lock);
    unsigned char state = atomic_load_explicit(&f->state, memory_order_relaxed);
    if (state == CTF_FILE_UNSEEN) {
        bool same = !stat(f->path, &st) && (uint64_t)st.st_ino == f->inode &&
            ctf_file_identity(f->name, &st) == f->identity && (uint64_t)st.st_size == f->size;
        if (same && file_map_room()) {
            rc = file_map_open(f->path, &f->map, e);
            f->kept = !rc;
            same = rc || f->map.size == f->size;
        }
        state = rc ? CTF_FILE_UNSEEN : same ? CTF_FILE_SEEN : CTF_FILE_OTHER;
        if (state == CTF_FILE_OTHER)
            atomic_store_explicit(&t->misled, true, memory_order_relaxed);
        atomic_store_explicit(&f->state, state, memory_order_release);
    }
    pthread_mutex_unlock(&t->lock);
    return rc ? rc : state == CTF_FILE_OTHER ? is_other(f, e) : 0;
}

bool ctf_trace_misled(const struct ctf_trace *t)
{
    return atomic_load_explicit(&t->misled, memory_order_relaxed);
}

/* ---- queries ---- */

static const struct ctf_metadata *main_of(const struct ctf_trace *t)
{
    return &t->pieces.v[t->main].md;
}

size_t ctf_trace_directories(const struct ctf_trace *t)
{
    return t->pieces.n;
}

const char *ctf_trace_directory(const struct ctf_trace *t, size_t i)
{
    return t->pieces.v[i].dir;
}

bool ctf_trace_is_file(const struct ctf_trace *t)
{
    return t->maker.packet != NULL;
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

int ctf_trace_intact(const struct ctf_trace *t, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < t->files.n && !rc; i++) {
        const struct ctf_file *f = &t->files.v[i];
        unsigned char state = atomic_load_explicit(&f->state, memory_order_acquire);
        if (state == CTF_FILE_OTHER)
            rc = is_other(f, e);
        else if (state == CTF_FILE_SEEN)
            rc = file_map_intact(&f->map, e);
    }
    return rc;
}

/* Returns the piece's own clock: `lttng regenerate metadata` may change the offset between archives. */
const struct ctf_clock *ctf_trace_clock_of(const struct ctf_trace *t, uint32_t piece, const struct ctf_stream_class *sc)
{
    const struct ctf_metadata *md = &t->pieces.v[piece].md, *of_all = main_of(t);
    if (sc->clock < 0)
        return NULL;
    if (md->schema == t->schema && md->clock_of[sc->clock] >= 0)
        return &md->clocks[md->clock_of[sc->clock]];
    const char *name = t->schema->clock_names[sc->clock];
    for (size_t i = 0; i < md->n_clocks; i++)
        if (!strcmp(md->clocks[i].id, name) || (!*name && md->n_clocks == 1))
            return &md->clocks[i];
    return of_all->clock_of[sc->clock] >= 0 ? &of_all->clocks[of_all->clock_of[sc->clock]] : NULL;
}

struct ctf_clock_rate ctf_trace_rate(const struct ctf_trace *t, uint32_t piece, const struct ctf_stream_class *sc)
{
    struct ctf_clock_rate rate;
    ctf_clock_rate_of(ctf_trace_clock_of(t, piece, sc), &rate);
    return rate;
}

/* ---- packets ---- */

/* Returns the end of the last byte that is not 0: in a packet that its tracer did not close, no event starts there. */
static uint64_t zeros_begin(const uint8_t *data, uint64_t bytes)
{
    while (bytes && !data[bytes - 1])
        bytes--;
    return bytes;
}

/* Lets the reader of another format make the packet's bytes, into `window`. */
static const uint8_t *make_data(
    const struct ctf_trace *t, const struct ctf_packet *p, struct file_map *window, struct err *e)
{
    uint64_t n = p->content_bits / 8;
    file_map_close(window);
    *window = (struct file_map){0};
    uint8_t *data = mem_try(1, n + FILE_COPY_SPARE_BYTES);
    if (!data) {
        err_set(
            e, ERR_NOMEM, "%s: no memory for a packet of %llu bytes", t->files.v[p->file].path, (unsigned long long)n);
        return NULL;
    }
    if (t->maker.packet(t->maker.reader, p->file, p->seq, data, n, e)) {
        free(data);
        return NULL;
    }
    *window = (struct file_map){.data = data, .size = n, .copy = data};
    return data;
}

const uint8_t *ctf_packet_data(
    const struct ctf_trace *t, const struct ctf_packet *p, struct file_map *window, struct err *e)
{
    const struct ctf_file *f = &t->files.v[p->file];
    if (atomic_load_explicit(&f->state, memory_order_acquire) != CTF_FILE_SEEN &&
        see((struct ctf_trace *)t, (struct ctf_file *)f, e))
        return NULL;
    if (f->made)
        return make_data(t, p, window, e);
    if (f->kept)
        return f->map.data + p->offset;
    if (f->fed)
        return p->bytes;
    file_map_close(window);
    return file_map_copy(f->path, p->offset, (p->content_bits + 7) / 8, window, e) ? NULL : window->data;
}

bool ctf_packet_open(const struct ctf_trace *t, const struct ctf_stream *s, const struct ctf_packet *p,
    const uint8_t *data, struct ctf_decoder *d)
{
    const struct ctf_file *f = &t->files.v[p->file];
    uint64_t last = p->content_bits;
    if (p->flags & CTF_PACKET_UNCLOSED)
        last = zeros_begin(data, p->content_bits / 8) * 8;
    d->rate = ctf_trace_rate(t, f->piece, s->plan->sc);
    if (s->plan->has_begin)
        d->cycles = p->cycles;
    bool ok = ctf_decoder_open(d, s->plan, data, p->content_bits, last);
    d->cpu = p->cpu;
    return ok;
}

/* Adds a problem of events of a packet. */
static void __attribute__((format(printf, 3, 4)))
add_of_packet(struct ctf_problems *out, const struct ctf_packet *p, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    struct ctf_problem *one = add(out, false, fmt, ap);
    va_end(ap);
    int64_t end = p->flags & CTF_PACKET_TIMED ? p->end : INT64_MAX;
    one->end = end > one->end ? end : one->end;
}

static void time_problem(const struct ctf_trace *t, const struct ctf_packet *p, uint64_t n, const char *many,
    const char *one, struct ctf_problems *out)
{
    if (n)
        add_of_packet(out, p, "%s: packet at byte %llu: %llu %s", t->files.v[p->file].path,
            (unsigned long long)p->offset, (unsigned long long)n, n == 1 ? one : many);
}

const char *ctf_stop_text(enum ctf_stop why)
{
    static const char *const reasons[] = {
        [CTF_STOP_CUT] = "an event does not fit the packet's content",
        [CTF_STOP_TAG] = "a variant's tag selects none of its options",
        [CTF_STOP_EMPTY] = "events without any bit",
        [CTF_STOP_UNREADABLE] = "an event of a kind that cannot be read",
        [CTF_STOP_MISSING] = "a length or selector is in an optional or an option that is not there",
        [CTF_STOP_TEXT] = "the length of a text leaves part of a code unit",
        [CTF_STOP_WIDE] = "a length, selector or time of more than 64 bits",
        [CTF_STOP_ORDER] = "the byte order of bit fields changes within a byte",
    };
    return reasons[why];
}

void ctf_packet_problem(
    const struct ctf_trace *t, const struct ctf_packet *p, const struct ctf_decoder *d, struct ctf_problems *out)
{
    time_problem(t, p, d->back, "events are earlier than the event before them; they stay where they were recorded",
        "event is earlier than the event before it; it stays where it was recorded", out);
    time_problem(t, p, d->unfit, "events have times that 64 bits of nanoseconds cannot hold; the nearest is shown",
        "event has a time that 64 bits of nanoseconds cannot hold; the nearest is shown", out);
    if (!d->stop || (d->stop == CTF_STOP_CUT && p->flags & CTF_PACKET_UNCLOSED))
        return;
    char unknown[80];
    snprintf(
        unknown, sizeof unknown, "the metadata declare no event %llu in this stream", (unsigned long long)d->stop_id);
    add_of_packet(out, p, "%s: packet at byte %llu: %s; the rest of the packet is skipped", t->files.v[p->file].path,
        (unsigned long long)p->offset, d->stop == CTF_STOP_UNKNOWN_ID ? unknown : ctf_stop_text(d->stop));
}
