/* SPDX-License-Identifier: MIT */
/* Events that begin, end, rename and describe the lives of threads. */
#include <string.h>

#include "kernel/tracker.h"

/* Last element of sched_process_fork's list of tids: the one in the innermost namespace. */
static int32_t innermost_tid(const struct ctf_event *ev, size_t *levels)
{
    struct kernel_list vtids = {.names = {"vtids"}};
    kernel_list_read(ev, &vtids);
    *levels = vtids.n;
    return vtids.n && vtids.last > 0 && vtids.last <= INT32_MAX ? (int32_t)vtids.last : -1;
}

/* Row of the child. A fork begins a life even if the end of the tid's last one was not seen. A child that another CPU
 * ran in the same ns already has its row. */
static int32_t child_row(struct kernel_tracker *t, int64_t tid)
{
    int32_t row = kernel_row_find(t, tid);
    if (row >= 0) {
        const struct kernel_thread *k = &t->threads.v[row];
        if (!k->born && k->begin == t->now)
            return row;
        kernel_row_die(t, row);
    }
    return kernel_row_get(t, tid, t->now);
}

bool kernel_on_fork(struct kernel_tracker *t, const struct ctf_event *ev, const struct kernel_plan *p,
    const int64_t v[KERNEL_FIELDS], struct kernel_record *r)
{
    int32_t parent = r->row >= 0 && t->threads.v[r->row].tid == v[0] ? r->row : kernel_row_get(t, v[0], t->now);
    int32_t child = child_row(t, v[1]);
    if (child < 0)
        return false;
    kernel_row_name(t, child, ev, p, 0);
    struct kernel_thread *k = &t->threads.v[child];
    k->parent_row = parent;
    k->born = true;
    if (p->present & 4)
        k->tgid = (int32_t)v[2];
    if (p->present & 8)
        k->pid_ns = (uint32_t)v[3];
    size_t levels = 0;
    if (kernel_text_present(p, 1))
        k->vtid = innermost_tid(ev, &levels);
    kernel_spaces_fork(t, parent, child, k->pid_ns, k->vtid, levels);
    if (parent >= 0) {
        const struct kernel_thread *from = &t->threads.v[parent];
        k->ppid = k->tgid == k->tid ? (from->tgid >= 0 ? from->tgid : from->tid) : k->tgid >= 0 ? from->ppid : -1;
        if (k->tgid >= 0 && k->tgid == from->tid) /* a thread of the parent, which is its process' first */
            t->threads.v[parent].tgid = k->tgid;
    }
    r->u.fork.parent = parent;
    r->u.fork.child = child;
    return true;
}

bool kernel_on_exec(struct kernel_tracker *t, const struct ctf_event *ev, const struct kernel_plan *p,
    const int64_t v[KERNEL_FIELDS], struct kernel_record *r)
{
    /* A thread other than the first of its process takes over the first one's tid when it calls exec. */
    if (v[1] > 0 && v[0] > 0 && v[0] != v[1] && v[0] <= INT32_MAX) {
        int32_t first = kernel_row_find(t, v[0]), caller = kernel_row_find(t, v[1]);
        if (caller >= 0) {
            if (first >= 0)
                kernel_row_die(t, first);
            kernel_row_bind(t, v[1], KERNEL_NO_ROW);
            kernel_row_bind(t, v[0], caller);
            kernel_row_renumber(t, caller, (int32_t)v[0]);
        }
    }
    int32_t row = v[0] > 0 ? kernel_row_get(t, v[0], t->now) : r->row;
    size_t n;
    const char *path = kernel_text(ev, p, 0, &n), *name = path;
    for (size_t i = 0; i < n; i++)
        if (path[i] == '/')
            name = path + i + 1;
    size_t length = n - (size_t)(name - path);
    r->u.exec.file = strings_intern(&t->names, path, n);
    if (row >= 0 && length) {
        kernel_row_set_name(
            t, row, strings_intern(&t->names, name, length < KERNEL_COMM_BYTES ? length : KERNEL_COMM_BYTES - 1));
        memset(t->lives.v[row].comm, 0, sizeof t->lives.v[row].comm);
    }
    if (row >= 0)
        r->row = row;
    return true;
}

bool kernel_on_exit(struct kernel_tracker *t, const int64_t v[KERNEL_FIELDS], struct kernel_record *r)
{
    int32_t row = kernel_row_get(t, v[0], t->now);
    if (row < 0)
        return false;
    t->lives.v[row].exiting = true;
    r->u.thread.row = row;
    return true;
}

/* Handles the free of a life, which comes after its last switch, and possibly after the tid's next life began. */
bool kernel_on_free(struct kernel_tracker *t, const int64_t v[KERNEL_FIELDS], struct kernel_record *r)
{
    int32_t row = kernel_row_find(t, v[0]);
    bool alive = row >= 0 && t->lives.v[row].exiting;
    if (alive)
        kernel_row_die(t, row);
    kernel_row_forget(t, v[0]);
    if (!alive)
        return false;
    r->u.thread.row = row;
    return true;
}

/* ---- state dump ---- */

/* Sets the number in the innermost pid namespace: there is one event per level, in any order. */
static void tell_number(struct kernel_tracker *t, int32_t row, int32_t vtid, int64_t level, uint32_t inum)
{
    struct kernel_thread *k = &t->threads.v[row];
    int16_t *known = &t->lives.v[row].spaces.level;
    if (level < *known || level > INT16_MAX)
        return;
    *known = (int16_t)level;
    k->vtid = vtid;
    if (!inum)
        return;
    k->pid_ns = inum;
    kernel_spaces_tell(t, row, KERNEL_SPACE_PID, inum);
}

static bool on_thread(struct kernel_tracker *t, const struct ctf_event *ev, const struct kernel_plan *p,
    const int64_t v[KERNEL_FIELDS], struct kernel_record *r)
{
    bool gone = v[3] == KERNEL_DUMPED_EXIT || v[3] == KERNEL_DUMPED_ZOMBIE || v[3] == KERNEL_DUMPED_DEAD;
    if (gone && kernel_row_is_buried(t, v[0]))
        return false; /* death was seen */
    int32_t row = kernel_row_get(t, v[0], t->now);
    if (row < 0)
        return false;
    struct kernel_thread *k = &t->threads.v[row];
    if (p->present & 2)
        k->tgid = (int32_t)v[1];
    if (p->present & 4)
        k->ppid = (int32_t)v[2];
    if (p->present & 16)
        tell_number(t, row, (int32_t)v[4], p->cold->level.mode ? ctf_read_int(ev, &p->cold->level) : 0,
            p->present & 32 ? (uint32_t)v[5] : 0);
    t->lives.v[row].exiting |= gone;
    kernel_row_name(t, row, ev, p, 0);
    r->u.thread.row = row;
    r->u.thread.files = p->cold->files.mode ? (uint64_t)ctf_read_int(ev, &p->cold->files) : 0;
    r->u.thread.status = (uint8_t)(v[3] >= 0 && v[3] <= KERNEL_DUMPED_DEAD ? v[3] : KERNEL_DUMPED_UNKNOWN);
    return true;
}

static bool on_namespace(struct kernel_tracker *t, const int64_t v[KERNEL_FIELDS], struct kernel_record *r)
{
    int32_t row = kernel_row_find(t, v[0]);
    if (row < 0)
        return false;
    tell_number(t, row, (int32_t)v[1], v[2], (uint32_t)v[3]);
    r->u.thread.row = row;
    r->u.thread.status = KERNEL_DUMPED_UNKNOWN;
    return true;
}

static void name_number(
    struct kernel_tracker *t, struct map *m, uint32_t number, const struct ctf_event *ev, const struct kernel_plan *p)
{
    size_t n;
    const char *s = kernel_text(ev, p, 0, &n);
    if (!n)
        s = kernel_text(ev, p, 1, &n);
    if (n)
        *map_put(m, number, NULL) = strings_intern(&t->names, s, n);
}

bool kernel_on_statedump(struct kernel_tracker *t, const struct ctf_event *ev, const struct kernel_plan *p,
    const int64_t v[KERNEL_FIELDS], struct kernel_record *r)
{
    switch (p->kind) {
    case KERNEL_STATEDUMP_THREAD: return on_thread(t, ev, p, v, r);
    case KERNEL_STATEDUMP_NS: return on_namespace(t, v, r);
    case KERNEL_STATEDUMP_SPACE:
        r->u.thread.row = kernel_row_find(t, v[0]);
        if (r->u.thread.row >= 0)
            kernel_spaces_tell(t, r->u.thread.row, p->space, (uint32_t)v[1]);
        return false;
    case KERNEL_STATEDUMP_DISK:
        name_number(t, &t->disks, (uint32_t)v[0], ev, p);
        r->u.block.dev = (uint32_t)v[0];
        return true;
    case KERNEL_STATEDUMP_IRQ: name_number(t, &t->irqs, (uint32_t)v[0], ev, p); return true;
    case KERNEL_STATEDUMP_FD:
        r->u.descriptor.path = kernel_text(ev, p, 0, &r->u.descriptor.path_bytes);
        r->u.descriptor.row = p->present & 1 ? kernel_row_find(t, v[0]) : KERNEL_NO_ROW;
        r->u.descriptor.fd = (int32_t)v[1];
        r->u.descriptor.flags = (uint32_t)v[2];
        r->u.descriptor.table = (uint64_t)v[3];
        return true;
    default: return true;
    }
}
