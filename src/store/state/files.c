/* SPDX-License-Identifier: MIT */
/* Files that threads use. Descriptors are followed per process, from calls, forks and the state dump; pipes, sockets
 * and similar ones are not files. A row per file and thread shows the uses, and the bytes moved. */
#include "state/files.h"

#include <stdio.h>
#include <stdlib.h>

#include "state/builder.h"

enum { MOST_OPEN = 1 << 16 };
/* Linux's numbers. */
enum {
    CLOSE_ON_EXEC = 02000000,
    RANGE_CLOSE_ON_EXEC = 4,
    F_DUPFD = 0,
    F_SETFD = 2,
    FD_CLOEXEC = 1,
    F_DUPFD_CLOEXEC = 1030
};
static const int64_t most_bytes = INT64_C(1) << 56; /* limit over all rows */

struct builder_files *state_files_new(void)
{
    struct builder_files *f = mem_zalloc(sizeof *f);
    strings_intern(&f->paths, "", 0);
    return f;
}

void state_files_free(struct builder_files *f)
{
    for (size_t i = 0; i < f->accesses.n; i++)
        state_series_fini(&f->accesses.v[i].series);
    for (size_t i = 0; i < f->tables.n; i++)
        vec_free(&f->tables.v[i]);
    vec_free(&f->names);
    vec_free(&f->accesses);
    vec_free(&f->tables);
    vec_free(&f->calls);
    map_fini(&f->name_of);
    map_fini(&f->access_of);
    map_fini(&f->table_of);
    map_fini(&f->at_address);
    strings_fini(&f->paths);
    free(f);
}

size_t state_files_accesses(const struct state_builder *b, struct file_access **out)
{
    *out = b->files->accesses.v;
    return b->files->accesses.n;
}

const struct named_file *state_files_name(const struct state_builder *b, const struct file_access *a)
{
    return &b->files->names.v[a->file];
}

const char *state_files_text(const struct state_builder *b, uint32_t text)
{
    return strings_get(&b->files->paths, text);
}

/* ---- names ---- */

static int32_t name_index(struct builder_files *f, struct named_file name)
{
    bool fresh;
    uint64_t *index = map_put(&f->name_of, files_name_key(name), &fresh);
    if (fresh) {
        *index = f->names.n;
        vec_push(&f->names, name);
    }
    return (int32_t)*index;
}

static int32_t path_index(struct builder_files *f, uint32_t path, bool before_loss)
{
    return name_index(f, (struct named_file){.name = path, .before_loss = before_loss});
}

/* ---- tables of descriptors ---- */

static const struct kernel_thread *thread_of(const struct state_builder *b, int32_t row)
{
    const struct kernel_thread *threads;
    return row >= 0 && (size_t)row < kernel_tracker_threads(b->tracker, &threads) ? &threads[row] : NULL;
}

static int32_t process_of(const struct kernel_thread *t)
{
    return t->tgid >= 0 ? t->tgid : t->tid;
}

static uint32_t new_table(struct builder_files *f)
{
    vec_push(&f->tables, (file_table){0});
    return (uint32_t)f->tables.n;
}

static struct file_call *add_calls(struct builder_files *f, int32_t row)
{
    while (f->calls.n <= (size_t)row)
        vec_push(&f->calls, (struct file_call){0});
    return &f->calls.v[row];
}

/* Valid until the next call that adds one. */
static inline struct file_call *call_of(struct builder_files *f, int32_t row)
{
    return (size_t)row < f->calls.n ? &f->calls.v[row] : add_calls(f, row);
}

/* Index + 1 of the table of the thread's process. */
static uint32_t table_of(struct state_builder *b, int32_t row)
{
    struct builder_files *f = b->files;
    struct file_call *c = call_of(f, row);
    if (c->table)
        return c->table;
    const struct kernel_thread *t = thread_of(b, row);
    bool fresh;
    uint64_t *index = map_put(&f->table_of, t ? (uint32_t)process_of(t) : UINT32_MAX, &fresh);
    if (fresh)
        *index = new_table(f);
    return c->table = (uint32_t)*index;
}

/* Returns NULL for numbers that are invalid, or beyond the limit. Valid until the next call. */
static struct file_descriptor *descriptor_at(struct builder_files *f, uint32_t table, int64_t fd)
{
    file_table *t = &f->tables.v[table - 1];
    if (fd < 0 || fd >= FILE_MOST_DESCRIPTORS)
        return NULL;
    size_t more = t->n <= (size_t)fd ? (size_t)fd + 1 - t->n : 0;
    if (more > FILE_MOST_IN_ALL - f->descriptors)
        return NULL;
    f->descriptors += more;
    while (more--)
        vec_push(t, ((struct file_descriptor){.opener = -1, .user = -1}));
    return &t->v[fd];
}

/* Name made of the thread's present name, and its process. */
static int32_t unknown_index(struct state_builder *b, int32_t row, int32_t fd)
{
    const struct kernel_thread *t = thread_of(b, row);
    const char *const *strings;
    bool named = t && t->name < kernel_tracker_strings(b->tracker, &strings);
    char text[64];
    snprintf(text, sizeof text, "fd %d of %.20s (%d)", fd, named ? strings[t->name] : "", t ? process_of(t) : -1);
    uint32_t name = strings_intern(&b->files->paths, text, strlen(text));
    return name_index(b->files, (struct named_file){.name = name, .unknown = true});
}

/* ---- rows ---- */

static uint32_t access_index(struct builder_files *f, int32_t file, int32_t row)
{
    bool fresh;
    uint64_t *known = f->open < MOST_OPEN ? NULL : map_find(&f->access_of, (uint64_t)file << 32 | (uint32_t)row);
    if (f->open >= MOST_OPEN && !(known && f->accesses.v[*known - 1].opened))
        file = path_index(f, strings_intern(&f->paths, "other files", strlen("other files")), false);
    uint64_t *index = map_put(&f->access_of, (uint64_t)file << 32 | (uint32_t)row, &fresh);
    if (fresh) {
        vec_push(&f->accesses,
            ((struct file_access){
                .series = {.sum = SERIES_BYTES, .pairs = true}, .file = (uint32_t)file, .thread = row}));
        *index = f->accesses.n;
    }
    return (uint32_t)*index;
}

static void show(struct state_builder *b, uint32_t access, int64_t ts, int use, int64_t bytes)
{
    series_push(&b->pool, &b->files->accesses.v[access - 1].series, ts, bytes << STATE_FILE_USE_BITS | use);
}

static void show_rest(struct state_builder *b, uint32_t access, int64_t ts)
{
    show(b, access, ts, b->files->accesses.v[access - 1].opened ? STATE_FILE_OPEN : STATE_FILE_NOTHING, 0);
}

/* Returns the access + 1 of the thread to the file behind a descriptor; 0 if there is none. */
static uint32_t resolve(struct state_builder *b, int32_t row, int64_t fd)
{
    struct builder_files *f = b->files;
    uint32_t table = table_of(b, row);
    struct file_descriptor *d = descriptor_at(f, table, fd);
    if (!d || d->file == FILE_HIDDEN)
        return 0;
    if (d->file == FILE_UNKNOWN)
        d->file = unknown_index(b, row, (int32_t)fd) + 1;
    const struct named_file *name = &f->names.v[d->file - 1];
    if (d->losses != b->n_losses && !name->unknown) {
        d->file = path_index(f, name->name, true) + 1;
        d->access = 0;
    }
    d->losses = b->n_losses;
    if (d->user != row || !d->access || f->open >= MOST_OPEN) {
        d->access = access_index(f, d->file - 1, row);
        d->user = row;
    }
    return d->access;
}

/* ---- opening and closing of descriptors ---- */

static void release(struct state_builder *b, struct file_descriptor *d, int64_t ts)
{
    struct builder_files *f = b->files;
    int32_t opener = d->opener;
    *d = (struct file_descriptor){.opener = -1, .user = -1};
    if (opener < 0)
        return;
    struct file_access *a = &f->accesses.v[opener];
    const struct file_call *c = call_of(f, a->thread);
    f->open -= a->opened == 1;
    a->opened -= a->opened > 0;
    if (c->first != (uint32_t)opener + 1 && c->second != (uint32_t)opener + 1) /* otherwise when its call returns */
        show_rest(b, (uint32_t)opener + 1, ts);
}

static void release_all(struct state_builder *b, uint32_t table, int64_t ts, bool exec)
{
    file_table *t = &b->files->tables.v[table - 1];
    for (size_t i = 0; i < t->n; i++)
        if (!exec || t->v[i].close_on_exec)
            release(b, &t->v[i], ts);
    if (exec)
        return;
    b->files->descriptors -= t->n;
    vec_free(t);
}

static struct file_descriptor *replace(struct state_builder *b, int32_t row, int64_t fd, int64_t ts)
{
    struct file_descriptor *d = descriptor_at(b->files, table_of(b, row), fd);
    if (d)
        release(b, d, ts);
    if (d)
        d->losses = b->n_losses;
    return d;
}

static void hide(struct state_builder *b, int32_t row, int64_t fd, int64_t ts, bool close_on_exec)
{
    struct file_descriptor *d = replace(b, row, fd, ts);
    if (d) {
        d->file = FILE_HIDDEN;
        d->close_on_exec = close_on_exec;
    }
}

static void opened(struct state_builder *b, int32_t row, const struct file_call *c, int64_t fd, int64_t ts)
{
    struct builder_files *f = b->files;
    struct file_descriptor *d = replace(b, row, fd, ts);
    if (!d)
        return;
    d->file = path_index(f, c->path, false) + 1;
    d->access = access_index(f, d->file - 1, row);
    d->user = row;
    d->opener = (int32_t)d->access - 1;
    d->close_on_exec = c->flags & CLOSE_ON_EXEC;
    show(b, d->access, c->begin, STATE_FILE_OTHER, 0);
    f->open += !f->accesses.v[d->opener].opened++;
    show(b, d->access, ts, STATE_FILE_OPEN, 0);
}

static void duplicated(struct state_builder *b, int32_t row, int64_t from, int64_t to, int64_t ts, bool close_on_exec)
{
    struct builder_files *f = b->files;
    uint32_t table = table_of(b, row);
    if (from == to || !descriptor_at(f, table, from) || !descriptor_at(f, table, to))
        return;
    struct file_descriptor copy = *descriptor_at(f, table, from), *d = replace(b, row, to, ts);
    copy.opener = -1;
    copy.close_on_exec = close_on_exec;
    *d = copy;
    if (copy.file <= 0)
        return;
    uint32_t access = resolve(b, row, to);
    descriptor_at(f, table, to)->opener = (int32_t)access - 1;
    f->open += !f->accesses.v[access - 1].opened++;
    show_rest(b, access, ts);
}

static void closed(struct state_builder *b, int32_t row, const struct file_call *c, int64_t ts)
{
    struct builder_files *f = b->files;
    uint32_t table = table_of(b, row);
    file_table *t = &f->tables.v[table - 1];
    bool range = c->other >= 0;
    size_t first = c->fd >= 0 ? (size_t)c->fd : t->n, last = range ? (size_t)c->other : first;
    for (size_t i = first; i < t->n && i <= last; i++)
        if (range && c->flags & RANGE_CLOSE_ON_EXEC)
            t->v[i].close_on_exec = true;
        else
            release(b, &t->v[i], ts);
}

static void controlled(struct state_builder *b, int32_t row, const struct file_call *c, int64_t ret, int64_t ts)
{
    struct file_descriptor *d = descriptor_at(b->files, table_of(b, row), c->fd);
    if (c->other == F_DUPFD || c->other == F_DUPFD_CLOEXEC)
        duplicated(b, row, c->fd, ret, ts, c->other == F_DUPFD_CLOEXEC);
    else if (c->other == F_SETFD && d)
        d->close_on_exec = c->flags & FD_CLOEXEC;
}

/* ---- calls ---- */

static const uint8_t uses[] = {[KERNEL_IO_READ] = STATE_FILE_READ,
    [KERNEL_IO_COPY] = STATE_FILE_READ,
    [KERNEL_IO_WRITE] = STATE_FILE_WRITE,
    [KERNEL_IO_SYNC] = STATE_FILE_SYNC,
    [KERNEL_IO_OTHER] = STATE_FILE_OTHER};

/* Returns whether this use will be an entry of its own. With coarse clocks it may not: it took no time, or begins where
 * another use ended that moved as much. */
static bool stands(const struct series *s, int64_t begin, int64_t end, int64_t number)
{
    int64_t last = series_last(s);
    return begin < end && (last < begin || (last < end && (s->n < 2 || s->v[s->n - 2].number != number)));
}

/* Shows a use when it is over: its row, which may be anywhere in memory, is touched only once. Returns the way in which
 * the row counts it. */
static unsigned show_use(struct state_builder *b, uint32_t access, int use, int64_t begin, int64_t end, int64_t bytes)
{
    struct builder_files *f = b->files;
    struct file_access *a = &f->accesses.v[access - 1];
    bool moves = (use == STATE_FILE_READ || use == STATE_FILE_WRITE) && bytes > 0 && bytes <= most_bytes - f->bytes;
    bool counted = moves && stands(&a->series, begin, end, bytes << STATE_FILE_USE_BITS | use);
    if (moves)
        f->bytes += bytes;
    if (moves && !counted)
        a->apart[use - STATE_FILE_READ] += bytes;
    show(b, access, begin, use, counted ? bytes : 0);
    show_rest(b, access, end);
    return counted ? 1U << (use - STATE_FILE_READ) : 0;
}

/* Ends a call that moved so many bytes. Returns the ways in which rows count them. */
static unsigned end_use(struct state_builder *b, struct file_call *c, int64_t ts, int64_t bytes)
{
    uint32_t first = c->first, second = c->second;
    uint8_t io = c->io;
    unsigned counted = 0;
    c->io = KERNEL_IO_NONE;
    c->first = c->second = 0;
    if (first)
        counted |= show_use(b, first, uses[io], c->begin, ts, bytes);
    if (second)
        counted |= show_use(b, second, STATE_FILE_WRITE, c->begin, ts, bytes);
    return counted;
}

/* Resolves a path relative to a directory, if that is known by its descriptor. */
static uint32_t full_path(struct state_builder *b, int32_t row, const struct kernel_record *r)
{
    struct builder_files *f = b->files;
    size_t n = r->u.syscall.path_bytes;
    const char *path = r->u.syscall.path;
    const struct file_descriptor *d = descriptor_at(f, table_of(b, row), r->u.syscall.fd);
    if (!n || *path == '/' || !d || d->file <= 0 || f->names.v[d->file - 1].unknown)
        return strings_intern(&f->paths, path, n);
    const char *directory = strings_get(&f->paths, f->names.v[d->file - 1].name);
    size_t m = strlen(directory);
    char *joined = mem_alloc(m + n + 2);
    memcpy(joined, directory, m);
    if (!m || directory[m - 1] != '/')
        joined[m++] = '/';
    memcpy(joined + m, path, n);
    uint32_t string = strings_intern(&f->paths, joined, m + n);
    free(joined);
    return string;
}

/* Prefetches the row of a use that begins, for its end. */
static void expect(struct builder_files *f, uint32_t access)
{
    if (f->expected)
        series_fetch_tail(&f->accesses.v[f->expected - 1].series);
    if (access)
        mem_fetch(&f->accesses.v[access - 1], sizeof *f->accesses.v);
    f->expected = access;
}

static __attribute__((noinline)) void begin_call(struct state_builder *b, int32_t row, const struct kernel_record *r)
{
    struct file_call *c = call_of(b->files, row);
    uint8_t io = r->u.syscall.io;
    if (c->io) /* return was not seen */
        end_use(b, c, r->ts, 0);
    *c = (struct file_call){c->table, r->ts, r->u.syscall.other, r->u.syscall.fd, 0, 0, 0, r->u.syscall.flags, io};
    if (io == KERNEL_IO_OPEN) {
        c->path = full_path(b, row, r);
    } else if (io <= KERNEL_IO_OTHER) {
        uint32_t first = resolve(b, row, r->u.syscall.fd),
                 second = io == KERNEL_IO_COPY ? resolve(b, row, r->u.syscall.other) : 0;
        c->first = first;
        c->second = second != first ? second : 0;
        expect(b->files, first);
    }
}

/* Returns the ways in which rows count the bytes moved. */
static __attribute__((noinline)) unsigned end_call(struct state_builder *b, int32_t row, const struct kernel_record *r)
{
    struct file_call c = *call_of(b->files, row);
    int64_t ret = r->u.syscall.ret;
    unsigned counted = end_use(
        b, call_of(b->files, row), r->ts, r->u.syscall.io == c.io ? ret : 0); /* 0: the return of another call */
    if (ret < 0)
        return counted;
    switch (c.io) {
    case KERNEL_IO_OPEN: opened(b, row, &c, ret, r->ts); break;
    case KERNEL_IO_CLOSE: closed(b, row, &c, r->ts); break;
    case KERNEL_IO_DUP: duplicated(b, row, c.fd, ret, r->ts, c.flags & CLOSE_ON_EXEC); break;
    case KERNEL_IO_FCNTL: controlled(b, row, &c, ret, r->ts); break;
    case KERNEL_IO_HIDDEN: hide(b, row, ret, r->ts, false); break;
    case KERNEL_IO_PAIR:
        if (r->u.syscall.io != KERNEL_IO_PAIR || r->u.syscall.fd < 0)
            break;
        hide(b, row, r->u.syscall.fd, r->ts, c.flags & CLOSE_ON_EXEC);
        hide(b, row, r->u.syscall.other, r->ts, c.flags & CLOSE_ON_EXEC);
        break;
    default: break;
    }
    return counted;
}

/* Pipes and sockets: used by most calls of many programs. */
static inline bool is_hidden(const struct builder_files *f, uint32_t table, int32_t fd)
{
    const file_table *t = table ? &f->tables.v[table - 1] : NULL;
    return t && (uint32_t)fd < t->n && t->v[fd].file == FILE_HIDDEN;
}

unsigned state_files_call(struct state_builder *b, int32_t row, const struct kernel_record *r)
{
    struct builder_files *f = b->files;
    uint8_t io = r->u.syscall.io, before = (size_t)row < f->calls.n ? f->calls.v[row].io : KERNEL_IO_NONE;
    unsigned ways = files_ways(io);
    if (r->kind == KERNEL_SYSCALL_EXIT)
        return before ? ways & ~end_call(b, row, r) : ways;
    if (!before && io <= KERNEL_IO_OTHER && io != KERNEL_IO_COPY && (size_t)row < f->calls.n &&
        is_hidden(f, f->calls.v[row].table, r->u.syscall.fd))
        return ways;
    begin_call(b, row, r);
    return f->calls.v[row].first ? 0 : ways;
}

void state_files_arrive(const struct state_builder *b, int32_t row)
{
    const struct builder_files *f = b->files;
    uint32_t first = (size_t)row < f->calls.n ? f->calls.v[row].first : 0;
    if (first)
        mem_fetch(&f->accesses.v[first - 1], sizeof *f->accesses.v);
}

void state_files_lose(struct state_builder *b, int32_t row, int64_t ts)
{
    if (row >= 0 && (size_t)row < b->files->calls.n && b->files->calls.v[row].io)
        end_use(b, &b->files->calls.v[row], ts, 0);
}

void state_files_finish(struct state_builder *b)
{
    for (size_t i = 0; i < b->files->calls.n; i++) {
        const struct file_call *c = &b->files->calls.v[i];
        if (c->first)
            show(b, c->first, c->begin, uses[c->io], 0);
        if (c->second)
            show(b, c->second, c->begin, STATE_FILE_WRITE, 0);
    }
}

/* ---- processes ---- */

void state_files_fork(struct state_builder *b, int32_t parent, int32_t child)
{
    struct builder_files *f = b->files;
    const struct kernel_thread *t = thread_of(b, child);
    if (parent < 0 || !t || t->tgid != t->tid) /* threads share the descriptors of their process */
        return;
    uint32_t from = table_of(b, parent), to = new_table(f);
    *map_put(&f->table_of, (uint32_t)t->tgid, NULL) = to;
    call_of(f, child)->table = to;
    for (size_t i = 0; i < f->tables.v[from - 1].n; i++) {
        struct file_descriptor d = f->tables.v[from - 1].v[i], *copy = descriptor_at(f, to, (int64_t)i);
        bool unknown = d.file > 0 && f->names.v[d.file - 1].unknown;
        if (copy)
            *copy = (struct file_descriptor){.file = unknown ? FILE_UNKNOWN : d.file,
                .opener = -1,
                .user = -1,
                .losses = d.losses,
                .close_on_exec = d.close_on_exec};
    }
}

void state_files_exec(struct state_builder *b, int32_t row, int64_t ts)
{
    state_files_lose(b, row, ts);
    if (row >= 0)
        release_all(b, table_of(b, row), ts, true);
}

void state_files_exit(struct state_builder *b, int32_t row, int64_t ts)
{
    const struct kernel_thread *t = thread_of(b, row);
    state_files_lose(b, row, ts);
    if (t && process_of(t) == t->tid)
        release_all(b, table_of(b, row), ts, false);
}

/* ---- the state dump ---- */

void state_files_dumped_process(struct state_builder *b, int32_t row, uint64_t address)
{
    if (row < 0)
        return;
    call_of(b->files, row)->table = 0; /* the thread's process may be known only now */
    if (address)
        *map_put(&b->files->at_address, address, NULL) = table_of(b, row);
}

void state_files_dumped_descriptor(struct state_builder *b, const struct kernel_record *r)
{
    struct builder_files *f = b->files;
    const uint64_t *at = r->u.descriptor.table ? map_find(&f->at_address, r->u.descriptor.table) : NULL;
    uint32_t table = at ? (uint32_t)*at : r->u.descriptor.row >= 0 ? table_of(b, r->u.descriptor.row) : 0;
    struct file_descriptor *d = table ? descriptor_at(f, table, r->u.descriptor.fd) : NULL;
    if (!d || (d->file != FILE_UNKNOWN && (d->file == FILE_HIDDEN || !f->names.v[d->file - 1].unknown)))
        return; /* knowledge from calls is newer */
    size_t n = r->u.descriptor.path_bytes;
    const char *path = r->u.descriptor.path;
    *d = (struct file_descriptor){.opener = -1, .user = -1, .losses = b->n_losses};
    d->file = n && *path == '/' ? path_index(f, strings_intern(&f->paths, path, n), false) + 1 : FILE_HIDDEN;
    d->close_on_exec = r->u.descriptor.flags & CLOSE_ON_EXEC;
}
