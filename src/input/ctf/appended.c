/* SPDX-License-Identifier: MIT */
/* Files that are appended to: data before the previous end of such a file are taken as unchanged, so that stores made
 * from them stay valid (docs/decisions/stores.md states the conditions). */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "ctf/trace.h"

/* ---- current state ---- */

enum { TAIL_BYTES = 4096 };

/* Returns the hash of the last bytes before `size`; 0: unreadable. */
static uint64_t hash_tail(const struct ctf_file *f, uint64_t size)
{
    uint8_t tail[TAIL_BYTES];
    size_t n = size < TAIL_BYTES ? (size_t)size : TAIL_BYTES;
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool whole = fd >= 0 && pread(fd, tail, n, (off_t)(size - n)) == (ssize_t)n;
    if (fd >= 0)
        close(fd);
    return whole ? map_hash(tail, n) : 0;
}

size_t ctf_trace_file_states(const struct ctf_trace *t, struct ctf_file_state **out)
{
    VEC(struct ctf_file_state) states = {0};
    bool *last = mem_zalloc(t->files.n + 1);
    for (size_t i = 0; i < t->streams.n && !t->fed; i++) {
        const struct ctf_packet *p = ctf_stream_last(&t->streams.v[i]);
        if (p)
            last[p->file] = true;
    }
    for (size_t i = 0; i < t->files.n; i++) {
        const struct ctf_file *f = &t->files.v[i];
        if (!last[i] || f->made)
            continue;
        struct ctf_file_state s = {
            map_hash(f->name, strlen(f->name)), f->inode, f->size, f->identity, hash_tail(f, f->size)};
        vec_push(&states, s);
    }
    free(last);
    *out = states.v;
    return states.n;
}

/* ---- previous state ---- */

static bool grew(const struct ctf_file *f, const struct ctf_file_state *s)
{
    return f->size > s->size && f->inode == s->inode && map_hash(f->name, strlen(f->name)) == s->name && s->tail &&
        hash_tail(f, s->size) == s->tail;
}

bool ctf_trace_grew_from(struct ctf_trace *t, const struct ctf_file_state *states, size_t n)
{
    struct map by_inode = {0};
    for (size_t i = 0; i < n; i++)
        *map_put(&by_inode, states[i].inode, NULL) = i;
    t->has_grown = false;
    for (size_t i = 0; i < t->files.n; i++) {
        struct ctf_file *f = &t->files.v[i];
        const uint64_t *at = n ? map_find(&by_inode, f->inode) : NULL;
        const struct ctf_file_state *s = at && grew(f, &states[*at]) ? &states[*at] : NULL;
        f->was_identity = s ? s->identity : 0;
        f->was_size = s ? s->size : 0;
        t->has_grown |= s != NULL;
    }
    map_fini(&by_inode);
    return t->has_grown;
}

bool ctf_trace_has_grown(const struct ctf_trace *t)
{
    return t->has_grown;
}
