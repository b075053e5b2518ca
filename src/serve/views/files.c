/* SPDX-License-Identifier: MIT */
/* Files and the threads that use them, from system calls. By file (each with its threads), and by thread (each with its
 * files, reading and writing only). */
#include <stdlib.h>
#include <string.h>

#include "views/list.h"
#include "views/rows.h"

enum { BY_FILE, BY_THREAD }; /* struct view's kind, and the number of its rows */

/* Row of the store: the use of one file by one thread. */
struct use {
    struct state_file file;
    struct graph_row thread;
};

/* Finds a use; false: it has no thread, or the view does not show it. */
static bool find_use(const struct view_host *h, size_t i, int kind, struct use *out)
{
    state_file(h->states, i, &out->file);
    if (out->file.thread >= h->threads || (kind == BY_THREAD && !out->file.read && !out->file.written))
        return false;
    graph_row(h->index->graph, out->file.thread, &out->thread);
    return true;
}

/* Finds a use, with the thread's name for most of [begin, end] (host's clock). */
static void find_use_then(const struct view_host *h, size_t i, int64_t begin, int64_t end, struct use *out)
{
    if (find_use(h, i, BY_FILE, out))
        graph_row_then(h->index->graph, out->file.thread, begin, end, &out->thread);
}

static bool has_data(const struct view *self, const struct view_host *h)
{
    struct state_file f;
    for (size_t i = 0; h->states && i < state_files(h->states); i++) {
        state_file(h->states, i, &f);
        if (self->kind == BY_FILE || f.read || f.written)
            return true;
    }
    return false;
}

/* ---- rows: host, files or threads, uses ---- */

static int by_thread(const void *a, const void *b, void *states)
{
    struct state_file x, y;
    size_t i = *(const size_t *)a, k = *(const size_t *)b;
    state_file(states, i, &x);
    state_file(states, k, &y);
    if (x.thread != y.thread)
        return x.thread < y.thread ? -1 : 1;
    return i < k ? -1 : i > k;
}

static void add(const struct view *self, const struct views *x, size_t host, struct view_rows *rows)
{
    const struct view_host *h = &x->hosts[host];
    size_t n = h->states ? state_files(h->states) : 0, n_uses = 0, *uses = mem_alloc(sizeof *uses * (n + 1));
    bool of_thread = self->kind == BY_THREAD;
    int64_t root = view_add_group(rows, VIEW_NO_PARENT, host, h->index->name), group = root;
    struct use use, last = {.file.thread = -1};
    for (size_t i = 0; i < n; i++)
        if (find_use(h, i, self->kind, &use))
            uses[n_uses++] = i;
    if (of_thread && n_uses)
        qsort_r(uses, n_uses, sizeof *uses, by_thread, (void *)(uintptr_t)h->states);
    for (size_t i = 0; i < n_uses; i++, last = use) {
        find_use(h, uses[i], self->kind, &use);
        const char *tid = arena_printf(&rows->arena, "%d", use.thread.tid);
        uint64_t thread = view_key_thread(h, use.file.thread);
        bool same = i && (of_thread ? use.file.thread == last.file.thread : !strcmp(use.file.name, last.file.name));
        if (!same)
            group = view_add_row(rows,
                (struct view_row){root, host, of_thread ? use.thread.name : use.file.name, VIEW_NO_STATES, 0,
                    self->kind, of_thread ? tid : NULL, of_thread ? thread : 0});
        view_add_row(rows,
            (struct view_row){group, host, of_thread ? use.file.name : use.thread.name, STATE_FILE_ROWS, uses[i],
                self->kind, of_thread ? NULL : tid, of_thread ? 0 : thread});
    }
    free(uses);
}

/* Adds the bytes of the row and of all rows below it, which follow it. */
static void describe(const struct views *x, const struct view_rows *rows, const struct view_row *row, struct arena *a,
    struct view_row_entry *e)
{
    const struct view_host *h = &x->hosts[row->host];
    int64_t read = 0, written = 0;
    struct use use;
    for (const struct view_row *r = row; r < rows->v.v + rows->v.n; r++) {
        if (r > row && r->parent <= row->parent)
            break;
        if (r->kind == VIEW_NO_STATES)
            continue;
        find_use(h, r->row, BY_FILE, &use);
        read += use.file.read;
        written += use.file.written;
    }
    if (row->kind != VIEW_NO_STATES) {
        e->entry.has_tid = true;
        e->entry.tid = use.thread.tid;
    }
    e->labels[2] = arena_printf(a, "%lld", (long long)read);
    e->labels[3] = arena_printf(a, "%lld", (long long)written);
    e->meta[0] = (struct tsp_meta){.key = "read", .number = read};
    e->meta[1] = (struct tsp_meta){.key = "written", .number = written};
    e->entry.n_meta = 2;
}

/* ---- states ---- */

static const struct view_look looks[] = {[STATE_FILE_OPEN] = {"Open", LOOK_IDLE, 0.3},
    [STATE_FILE_READ] = {"Read", LOOK_SYSCALL, 1},
    [STATE_FILE_WRITE] = {"Write", LOOK_BLOCKED, 1},
    [STATE_FILE_SYNC] = {"Sync", LOOK_BLOCK_DEVICE, 1},
    [STATE_FILE_OTHER] = {"Other", LOOK_TIMER, 0.6}};
enum { LOOKS = sizeof looks / sizeof *looks };

/* Style key; NULL: not shown. */
static const char *key_of(const struct state_interval *iv, bool moved_only)
{
    int use = iv->value == STATE_NONE ? STATE_FILE_NOTHING : (int)(iv->amount & ((1 << STATE_FILE_USE_BITS) - 1));
    if (use == STATE_FILE_NOTHING || use >= LOOKS || (moved_only && use != STATE_FILE_READ && use != STATE_FILE_WRITE))
        return NULL;
    return looks[use].key;
}

static int64_t bytes_of(const struct state_interval *iv)
{
    return iv->amount >> STATE_FILE_USE_BITS;
}

static void show(
    const struct view_sampler *s, const struct view_row *row, const struct state_interval *iv, struct view_shown *out)
{
    const struct view_host *h = &s->x->hosts[row->host];
    struct use use;
    out->label = out->style_key = key_of(iv, row->number == BY_THREAD);
    if (!s->q->filter || !out->style_key)
        return;
    find_use_then(h, row->row, iv->begin, iv->end, &use);
    view_add_property(out, "file", use.file.name);
    view_add_property(out, "thread", use.thread.name);
    view_add_number(out, "tid", use.thread.tid);
    view_add_number(out, "bytes", bytes_of(iv));
    view_add_property(out, "host", h->index->name);
}

static bool tooltip(const struct view_pointed *p)
{
    const struct state_interval *iv = p->interval;
    const char *key = iv ? key_of(iv, p->row->number == BY_THREAD) : NULL;
    struct use use;
    if (p->row->kind == VIEW_NO_STATES)
        return false;
    find_use_then(p->host, p->row->row, p->t, p->t, &use);
    tsp_write_tip(p->answer, "File", use.file.name);
    tsp_write_tip(p->answer, "Thread", arena_printf(p->q->http->arena, "%s (%d)", use.thread.name, use.thread.tid));
    if (key) {
        tsp_write_tip(p->answer, "State", key);
        if (bytes_of(iv))
            view_write_number(p->answer, "Bytes", bytes_of(iv));
        view_write_interval(p->answer, p->host, iv);
    }
    return true;
}

/* ---- views ---- */

static const struct view_row_graph graph = {
    .add = add, .describe = describe, .show = show, .tooltip = tooltip, .whole_time = true};

#define FILES \
    .host_has_data = has_data, VIEW_ROWS(graph), VIEW_LOOKS(looks), \
    VIEW_HEADERS({"Name", "File or thread", "STRING"}, {"TID", "Number of the thread", "STRING", "tid", TSP_FIRST}, \
        {"Read", "Bytes read in all", "BINARY_NUMBER", "read", TSP_SUM}, \
        {"Written", "Bytes written in all", "BINARY_NUMBER", "written", TSP_SUM})

const struct view view_file_access = {
    .provider = {.id = "org.eclipse.tracecompass.incubator.kernel.core.file.access.dataprovider",
        .name = "File Access By File",
        .description = "Files, and what threads do with them: hold open, read, write",
        .type = "TIME_GRAPH"},
    .kind = BY_FILE,
    FILES,
};
const struct view view_io_access = {
    .provider = {.id = "org.eclipse.tracecompass.incubator.kernel.core.io.access.dataprovider",
        .name = "IO Access",
        .description = "Threads, and the files that they read and write",
        .type = "TIME_GRAPH"},
    .kind = BY_THREAD,
    FILES,
};
