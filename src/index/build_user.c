/* The one pass over a user-space trace that feeds its store. The store holds all that is kept of it but the problems,
 * which have a file of their own, written last: a process killed at any moment leaves either both or none that counts.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/store.h"
#include "base/text.h"
#include "index/experiment.h"
#include "index/types.h"

enum { MANIFEST_VERSION = 1, BATCH = 512 };

struct files {
    const char *manifest, *stacks, *packets;
};

/* To those who watch the trace's figures grow. */
static void tell(const struct index_options *o, const struct ctf_trace *t, const struct ctf_event *ev, size_t n)
{
    uint64_t events = 0;
    int64_t begin = INT64_MAX, end = INT64_MIN;
    for (size_t i = 0; i < n; i++)
        if (ev[i].cls->item == CTF_EVENT) {
            events++;
            begin = ev[i].ts < begin ? ev[i].ts : begin;
            end = ev[i].ts > end ? ev[i].ts : end;
        }
    if (events)
        o->tell(o->tell_arg, t, events, begin, end);
}

static void feed(const struct ctf_trace *t, struct ctf_merge *merge, struct stack_builder *b,
    struct types_builder *types, const struct index_options *o)
{
    struct ctf_event batch[BATCH];
    uint64_t told = 0, bytes = index_stream_bytes(t);
    int64_t begin = 0, end = 0;
    ctf_trace_span(t, &begin, &end);
    double span = (double)end - (double)begin;
    for (size_t n; (n = ctf_merge_next(merge, batch, BATCH)) > 0;) {
        stack_builder_feed(b, batch, n);
        types_builder_add(types, batch, n);
        if (o->tell)
            tell(o, t, batch, n);
        double share = span > 0 ? ((double)batch[n - 1].ts - (double)begin) / span : 1;
        uint64_t now = share < 0 ? 0 : share > 1 ? bytes : (uint64_t)(share * (double)bytes);
        if (now > told + (bytes >> 8)) {
            progress_add(o->progress, now - told);
            told = now;
        }
    }
    progress_add(o->progress, bytes - told);
}

static int write_manifest(const char *path, uint64_t key, struct ctf_merge *merge, struct err *e)
{
    const struct ctf_problem *found;
    struct text problems = {.fd = -1};
    size_t n = ctf_merge_problems(merge, &found);
    for (size_t i = 0; i < n; i++)
        text_printf(&problems, "%llu %s\n", (unsigned long long)found[i].count, found[i].text);
    struct store_writer *s = store_create(path, "manifest", MANIFEST_VERSION, key, 1);
    store_add(s, "problems", problems.v, 1, problems.n);
    int rc = store_commit(s, e);
    text_fini(&problems);
    return rc;
}

static int build(struct index_trace *t, const struct files *to, const struct index_options *o, struct err *e)
{
    struct ctf_source source = {.trace = t->trace};
    struct ctf_merge *merge;
    int rc = ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, e);
    if (rc)
        return rc;
    struct stack_builder *b = stack_builder_new(t->trace);
    struct types_builder *types = types_builder_new(t->trace);
    ctf_merge_count(merge);
    feed(t->trace, merge, b, types, o);
    if ((rc = ctf_merge_intact(merge, e)))
        ;
    else if (unlink(to->manifest) && errno != ENOENT)
        rc = err_sys(e, "%s", to->manifest);
    else if (!(rc = stack_builder_write(b, to->stacks, index_key(t->trace), e)) &&
        !(rc = index_counts_write(t->trace, types, to->packets, index_key(t->trace), e)))
        rc = write_manifest(to->manifest, index_key(t->trace), merge, e);
    types_builder_free(types);
    stack_builder_free(b);
    ctf_merge_free(merge);
    t->built = !rc;
    return rc;
}

static int open_stores(struct experiment *x, struct index_trace *t, const struct files *from, struct err *e)
{
    uint64_t key = index_key(t->trace);
    struct store *s;
    struct stack_store *stacks = NULL;
    struct index_types *types = NULL;
    int rc = store_open(from->manifest, "manifest", MANIFEST_VERSION, &key, &s, e);
    if (rc)
        return rc;
    if (!(rc = stack_open(from->stacks, &stacks, e)) && !(rc = store_check_key(from->stacks, key, e)) &&
        !(rc = index_counts_open(t->trace, from->packets, key, &types, e))) {
        size_t n;
        const char *lines = store_section(s, "problems", 1, &n);
        index_tell_problems(x, x->hosts.v[t->host].name, lines, n);
        t->stacks = stacks;
        t->types = types;
    } else {
        stack_close(stacks);
    }
    store_close(s);
    return rc;
}

static int build_locked(struct experiment *x, struct index_trace *t, const char *dir, const struct files *files,
    const struct index_options *o, struct err *e)
{
    struct err found = {0};
    int fd = index_lock_dir(dir, e);
    if (fd < 0)
        return fd;
    int rc = o->force ? ERR_STALE : open_stores(x, t, files, &found);
    if (rc && !(rc = build(t, files, o, e)))
        rc = open_stores(x, t, files, e);
    if (!rc)
        index_note_damage(x, x->hosts.v[t->host].name, &found);
    close(fd);
    return rc;
}

int index_user_stores(struct experiment *x, struct index_trace *t, const struct index_options *o, struct err *e)
{
    struct arena names = {0};
    struct err found = {0};
    const char *dir = index_store_dir(&names, ctf_trace_path(t->trace), x->store, true, e);
    int rc = dir ? 0 : e->code;
    if (dir) {
        struct files files = {arena_printf(&names, "%s/manifest", dir), arena_printf(&names, "%s/stacks", dir),
            arena_printf(&names, "%s/packets", dir)};
        rc = o->force ? ERR_STALE : open_stores(x, t, &files, &found);
        if (rc)
            rc = build_locked(x, t, dir, &files, o, e);
        else
            progress_add(o->progress, index_stream_bytes(t->trace));
        pthread_mutex_lock(&x->lock);
        t->store_dir = arena_strdup(&x->arena, dir);
        pthread_mutex_unlock(&x->lock);
    }
    if (rc)
        err_wrap(e, "%s: cannot index", ctf_trace_path(t->trace));
    arena_fini(&names);
    return rc;
}
