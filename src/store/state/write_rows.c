/* SPDX-License-Identifier: MIT */
/* Writing: all rows, of all kinds, with their names. */
#include <stdio.h>
#include <stdlib.h>

#include "base/order.h"
#include "base/text.h"
#include "state/files.h"
#include "state/writer.h"

/* File row being written, by name. */
struct file_row {
    struct file_access *access;
    uint32_t name;
};

/* ---- names ---- */

static uint32_t intern(struct state_writer *w, const char *s)
{
    return strings_intern(&w->names, s, strlen(s));
}

static uint32_t intern_string(struct state_writer *w, uint32_t string)
{
    const char *const *strings;
    return string < kernel_tracker_strings(w->b->tracker, &strings) ? intern(w, strings[string]) : 0;
}

static uint32_t intern_number(struct state_writer *w, uint32_t number)
{
    char text[16];
    snprintf(text, sizeof text, "%u", number);
    return intern(w, text);
}

static uint32_t lock_name(struct state_writer *w, const struct builder_lock *l)
{
    char text[48];
    if (l->tgid >= 0)
        snprintf(text, sizeof text, "%d:0x%llx", l->tgid, (unsigned long long)l->address);
    else
        snprintf(text, sizeof text, "0x%llx", (unsigned long long)l->address);
    return intern(w, text);
}

static uint32_t disk_name(struct state_writer *w, uint32_t dev)
{
    uint32_t name = intern_string(w, kernel_tracker_disk_name(w->b->tracker, dev));
    char text[32];
    snprintf(text, sizeof text, "%u,%u", dev >> 20, dev & 0xfffff); /* numbers of devices as in the kernel */
    return name ? name : intern(w, text);
}

static uint32_t request_name(struct state_writer *w, uint32_t disk, unsigned type)
{
    char text[80];
    snprintf(text, sizeof text, "%s: %s", strings_get(&w->names, disk_name(w, w->b->requests.v[disk].dev)),
        state_request_name(type));
    return intern(w, text);
}

static uint32_t code_name(struct state_writer *w, const struct state_builder_code *c)
{
    uint32_t name = 0;
    switch (c->kind) {
    case CODE_STRING: return intern(w, strings_get(&w->b->texts, c->ref));
    case CODE_IRQ:
        name = intern_string(w, kernel_tracker_irq_name(w->b->tracker, c->ref));
        return name ? name : intern_number(w, c->ref);
    case CODE_VECTOR:
        return state_builder_vector_name(c->ref) ? intern(w, state_builder_vector_name(c->ref))
                                                 : intern_number(w, c->ref);
    case CODE_LOCK: return lock_name(w, &w->b->locks.v[c->ref]);
    case CODE_OTHER_LOCKS: return intern(w, "others");
    case CODE_REQUEST:
        return request_name(w, c->ref >> STATE_REQUEST_TYPE_BITS, c->ref & ((1 << STATE_REQUEST_TYPE_BITS) - 1));
    default: return 0;
    }
}

/* Earlier chunks may have requests of any disk, whose name may be known only now. */
static void add_request_codes(struct state_builder *b)
{
    for (uint32_t disk = 0; disk < b->requests.n; disk++)
        for (uint32_t type = STATE_REQUEST_READ; type < STATE_REQUESTS; type++)
            state_builder_request_code(b, disk << STATE_REQUEST_TYPE_BITS | type);
}

static void name_codes(struct state_writer *w)
{
    if (w->b->goes_on)
        add_request_codes(w->b);
    for (size_t i = 0; i < w->b->codes.n; i++) {
        const struct state_builder_code *c = &w->b->codes.v[i];
        uint8_t of = c->kind == CODE_IRQ ? STATE_CODE_IRQ : c->kind == CODE_REQUEST ? STATE_CODE_REQUEST : 0;
        vec_push(&w->codes,
            ((struct state_disk_code){
                .name = code_name(w, c), .cpu = c->cpu, .value = c->value, .of = of, .ref = of ? c->ref : 0}));
    }
}

/* ---- rows ---- */

/* Returns whether nothing is decided of a row that continues. Such rows are left to the next chunk, unless their
 * position matters. */
static bool is_left(const struct series *s)
{
    return s->goes_on && !s->n && !s->closed;
}

static bool has_place(uint8_t kind)
{
    return kind == STATE_THREAD || kind == STATE_FUTEX_USER || kind == STATE_FILE_ROWS;
}

/* Adds a row with the series, which must be complete. NULL: the row is left to the next chunk. */
static struct state_disk_row *add_row(
    struct state_writer *w, uint8_t kind, int32_t number, uint32_t name, uint8_t lead, struct series *s)
{
    if (is_left(s) && !has_place(kind))
        return NULL;
    state_series_finish(&w->b->pool, s);
    uint8_t flags = s->goes_on ? STATE_ROW_GOES : 0;
    vec_push(&w->rows,
        ((struct row_draft){
            {.number = number, .kind = kind, .name = name, .lead = lead, .thread = -1, .flags = flags}, s}));
    return &w->rows.v[w->rows.n - 1].disk;
}

static void add_threads(struct state_writer *w)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(w->b->tracker, &threads);
    if (n)
        builder_thread(w->b, (int32_t)n - 1);
    for (size_t i = 0; i < n; i++) {
        struct builder_thread *t = &w->b->threads.v[i];
        struct state_disk_row *r = add_row(
            w, STATE_THREAD, (int32_t)i, intern_string(w, threads[i].name), STATE_UNKNOWN, &t->series);
        r->idle = t->idle;
        r->begin = threads[i].born ? threads[i].begin : INT64_MIN;
        r->end = threads[i].died ? threads[i].end : INT64_MAX;
        r->flags |= threads[i].born ? STATE_ROW_BORN : 0;
        r->flags |= threads[i].died && !t->series.goes_on ? STATE_ROW_DIED : 0;
    }
}

static void add_cpus(struct state_writer *w)
{
    char text[32];
    for (size_t i = 0; i < w->b->cpus.n; i++) {
        struct state_builder_cpu *c = &w->b->cpus.v[i];
        snprintf(text, sizeof text, "CPU %zu", i);
        uint8_t kinds[2] = {STATE_CPU, STATE_CPU_THREAD};
        for (int k = 0; k < 2; k++) {
            struct state_disk_row *r = add_row(
                w, kinds[k], (int32_t)i, intern(w, text), STATE_UNKNOWN, k ? &c->thread : &c->state);
            if (!r)
                continue;
            r->begin = INT64_MIN;
            r->end = INT64_MAX;
        }
    }
}

static void add_pages(struct state_writer *w)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(w->b->tracker, &threads);
    struct builder_amounts *pages = &w->b->amounts[BUILDER_PAGES];
    for (size_t i = 0; i < pages->v.n; i++) {
        uint32_t slot = pages->v.v[i].slot;
        uint32_t name = !slot ? intern(w, "total") : slot <= n ? intern_string(w, threads[slot - 1].name) : 0;
        add_row(w, STATE_COUNTER_ROWS + STATE_MEMORY, (int32_t)slot - 1, name, 0, &pages->v.v[i].series);
    }
}

static void add_exits(struct state_writer *w)
{
    const struct kernel_thread *threads;
    size_t n = kernel_tracker_threads(w->b->tracker, &threads);
    struct builder_amounts *all = &w->b->amounts[BUILDER_KVM_EXITS];
    for (size_t i = 0; i < all->v.n; i++) {
        uint32_t row = all->v.v[i].slot;
        add_row(w, STATE_COUNTER_ROWS + STATE_KVM_EXITS, (int32_t)row,
            row < n ? intern_string(w, threads[row].name) : 0, 0, &all->v.v[i].series);
    }
}

static uint32_t file_label(struct state_writer *w, const struct named_file *n)
{
    struct text name = {.fd = -1};
    text_printf(&name, "%s%s", state_files_text(w->b, n->name), n->before_loss ? " (before events were lost)" : "");
    uint32_t number = intern(w, text_cstr(&name));
    text_fini(&name);
    return number;
}

/* Sorted by name, then thread. */
static int by_name(const void *a, const void *b, void *writer)
{
    const struct file_row *x = a, *y = b;
    const struct state_writer *w = writer;
    return strcmp(w->names.v[x->name], w->names.v[y->name]) ?: order_of(x->access->thread, y->access->thread);
}

/* An access without entries here may have some in other chunks. */
static bool is_shown(const struct state_writer *w, const struct file_access *a)
{
    bool is_part = w->b->goes_on || w->cut;
    return a->series.n || a->series.closed || (is_part && (a->apart[0] || a->apart[1]));
}

static void add_files(struct state_writer *w)
{
    struct file_access *accesses;
    size_t n = state_files_accesses(w->b, &accesses), n_rows = 0;
    struct file_row *rows = mem_alloc((n + 1) * sizeof *rows);
    for (size_t i = 0; i < n; i++)
        if (is_shown(w, &accesses[i]))
            rows[n_rows++] = (struct file_row){&accesses[i], file_label(w, state_files_name(w->b, &accesses[i]))};
    if (n_rows)
        qsort_r(rows, n_rows, sizeof *rows, by_name, w);
    for (size_t i = 0; i < n_rows; i++) {
        struct file_access *a = rows[i].access;
        struct state_disk_file f = {.thread = a->thread};
        state_series_sums_before(&w->b->pool, &a->series, a->series.n - (a->series.n && !a->series.goes_on), f.counted);
        for (int way = 0; way < STATE_WAYS; way++)
            f.bytes[way] = f.counted[way] + a->apart[way];
        add_row(w, STATE_FILE_ROWS, (int32_t)i, rows[i].name, 0, &a->series);
        vec_push(&w->files, f);
    }
    free(rows);
}

/* Adds the bytes that threads moved in one direction: those moved without a file, and the files of the rest. */
static void add_thread_io(struct state_writer *w, int way)
{
    const struct kernel_thread *threads;
    struct builder_amounts *own = &w->b->amounts[BUILDER_IO_READ + way];
    size_t n = kernel_tracker_threads(w->b->tracker, &threads);
    uint32_t *next = mem_zalloc((n + 1) * sizeof *next), at = (uint32_t)w->through.n;
    for (size_t i = 0; i < w->files.n; i++)
        next[w->files.v[i].thread] += w->files.v[i].bytes[way] > 0;
    for (size_t row = 0; row < n; row++) {
        uint32_t index = row < own->index.n ? own->index.v[row] : 0, files = next[row];
        next[row] = at;
        if (!index && !files)
            continue;
        struct series *s = index ? &own->v.v[index - 1].series : &w->none;
        if (is_left(s) && files)
            s = &w->none;
        struct state_disk_row *r = add_row(w, (uint8_t)(STATE_COUNTER_ROWS + STATE_IO_READ + way), (int32_t)row,
            intern_string(w, threads[row].name), 0, s);
        if (!r)
            continue;
        r->first_file = at;
        r->n_files = files;
        at += files;
    }
    vec_reserve(&w->through, at - w->through.n);
    for (size_t i = 0; i < w->files.n; i++)
        if (w->files.v[i].bytes[way])
            w->through.v[next[w->files.v[i].thread]++] = (uint32_t)i;
    w->through.n = at;
    free(next);
}

static void add_request(void *arg, int32_t number, uint32_t dev, struct series *s)
{
    struct state_writer *w = arg;
    add_row(w, STATE_REQUEST_ROWS, number, disk_name(w, dev), 0, s);
}

static void add_cpu_counters(struct state_writer *w)
{
    const char *const *names;
    struct builder_amounts *all = &w->b->amounts[BUILDER_CPU_COUNTERS];
    kernel_tracker_counters(w->b->tracker, &names);
    for (size_t i = 0; i < all->v.n; i++) {
        uint32_t slot = all->v.v[i].slot;
        add_row(w, STATE_COUNTER_ROWS + STATE_CPU_COUNTER, (int32_t)slot, intern(w, names[slot % STATE_CPU_COUNTERS]),
            0, &all->v.v[i].series);
    }
}

static void add_frequencies(struct state_writer *w)
{
    struct builder_amounts *all = &w->b->amounts[BUILDER_FREQUENCIES];
    char text[32];
    for (size_t i = 0; i < all->v.n; i++) {
        snprintf(text, sizeof text, "CPU %u", all->v.v[i].slot);
        add_row(w, STATE_COUNTER_ROWS + STATE_CPU_FREQUENCY, (int32_t)all->v.v[i].slot, intern(w, text), 0,
            &all->v.v[i].series);
    }
}

static void add_tracks(struct state_writer *w, uint8_t kind, struct builder_tracks *l)
{
    for (size_t i = 0; i < l->v.n; i++)
        add_row(w, kind, (int32_t)i, intern_number(w, (uint32_t)i), STATE_NONE, &l->v.v[i]);
}

static void add_futexes(struct state_writer *w)
{
    struct state_builder *b = w->b;
    for (size_t i = 0; i < b->futex_users.n; i++) {
        struct builder_futex_user *u = &b->futex_users.v[i];
        struct state_disk_row *r = add_row(
            w, STATE_FUTEX_USER, (int32_t)i, w->codes.v[u->code].name, STATE_NONE, &u->series);
        r->thread = u->thread;
        r->waits = u->waits;
    }
    add_tracks(w, STATE_FUTEX_WAITS, &b->futex_waits);
    add_tracks(w, STATE_FUTEX_WAKES, &b->futex_wakes);
    add_tracks(w, STATE_IRQ_HANDLERS, &b->irq_handlers);
}

static void add_others(struct state_writer *w)
{
    struct state_builder *b = w->b;
    for (size_t i = 0; i < b->irqs.n; i++) {
        struct builder_irq *q = &b->irqs.v[i];
        add_row(w, q->kind, q->number, w->codes.v[q->code].name, STATE_NONE, &q->series);
    }
    for (size_t i = 0; i < b->disks.n; i++)
        for (int k = 0; k < 2; k++)
            add_row(w, (uint8_t)(STATE_COUNTER_ROWS + STATE_DISK_READ + k), (int32_t)i, disk_name(w, b->disks.v[i].id),
                0, &b->disks.v[i].series[k]);
    for (size_t i = 0; i < b->nets.n; i++)
        for (int k = 0; k < 2; k++)
            add_row(w, (uint8_t)(STATE_COUNTER_ROWS + STATE_NET_SENT + k), (int32_t)i,
                intern(w, strings_get(&b->texts, b->nets.v[i].id)), 0, &b->nets.v[i].series[k]);
    add_futexes(w);
    add_pages(w);
    add_cpu_counters(w);
    add_frequencies(w);
    add_files(w);
    for (int way = 0; way < STATE_WAYS; way++)
        add_thread_io(w, way);
    state_builder_each_request(b, add_request, w);
    add_exits(w);
    for (size_t i = 0; i < w->rows.n; i++) {
        struct state_disk_row *r = &w->rows.v[i].disk;
        if (r->kind != STATE_THREAD && r->kind != STATE_CPU && r->kind != STATE_CPU_THREAD) {
            r->begin = INT64_MIN;
            r->end = INT64_MAX;
        }
    }
}

void state_writer_add_rows(struct state_writer *w)
{
    strings_intern(&w->names, "", 0);
    name_codes(w);
    add_cpus(w);
    add_threads(w);
    add_others(w);
}
