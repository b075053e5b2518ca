/* Opens the stores of a trace, which are built first when they are missing, stale or damaged.
 *
 * Who builds holds the lock of the store directory (flock: it goes with its process). Who waited for it looks again
 * before building. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/store.h"
#include "index/stores.h"

static int open_kernel(struct index_host *h, const struct index_files *from, struct err *e)
{
    struct graph *graph = NULL;
    struct flow_store *flows = NULL;
    struct state_store *states = NULL;
    struct index_types *types = NULL;
    int rc;
    (void)((rc = graph_open(from->path[INDEX_GRAPH], &graph, e)) ||
        (rc = flow_open(from->path[INDEX_FLOWS], &flows, e)) ||
        (rc = state_open(from->path[INDEX_STATES], &states, e)) || (rc = index_counts_open(from, &types, e)));
    for (int i = INDEX_GRAPH; i <= INDEX_STATES && !rc; i++)
        rc = store_check_key(from->path[i], index_key(from->trace, i), e);
    if (rc) {
        graph_close(graph);
        flow_close(flows);
        state_close(states);
        types_close(types);
        return rc;
    }
    h->graph = graph;
    h->flows = flows;
    h->states = states;
    h->types = types;
    return 0;
}

static int open_user(struct index_trace *t, const struct index_files *from, struct err *e)
{
    struct stack_store *stacks = NULL;
    struct index_types *types = NULL;
    const char *path = from->path[INDEX_STACKS];
    int rc = stack_open(path, &stacks, e);
    if (rc || (rc = store_check_key(path, index_key(from->trace, INDEX_STACKS), e)) ||
        (rc = index_counts_open(from, &types, e))) {
        stack_close(stacks);
        return rc;
    }
    t->stacks = stacks;
    t->types = types;
    return 0;
}

/* Notes the lines of a manifest: "COUNT TEXT". */
static void note_problems(struct experiment *x, const char *host, const char *lines, size_t n)
{
    for (size_t i = 0; i < n;) {
        const char *end = memchr(lines + i, '\n', n - i);
        size_t length = end ? (size_t)(end - lines) - i : n - i;
        struct arena line = {0};
        char *text = arena_strndup(&line, lines + i, length), *rest;
        uint64_t count = strtoull(text, &rest, 10);
        experiment_note(x, INDEX_NOTE_INPUT, host, *rest == ' ' ? rest + 1 : rest, count);
        arena_fini(&line);
        i += length + 1;
    }
}

static int open_stores(
    struct experiment *x, struct index_trace *t, const struct index_files *from, bool locked, struct err *e)
{
    struct index_host *h = &x->hosts.v[t->host];
    struct index_manifest m;
    int rc = index_manifest_open(from, locked, &m, e);
    if (rc)
        return rc;
    rc = t->is_kernel ? open_kernel(h, from, e) : open_user(t, from, e);
    if (!rc)
        note_problems(x, h->name, m.problems, m.n_problems);
    if (!rc && t->is_kernel) {
        t->types = h->types;
        h->events = m.totals.events;
        h->lost_events = m.totals.lost_events;
        h->begin = m.totals.begin;
        h->end = m.totals.end;
    }
    store_close(m.store);
    return rc;
}

/* A store that was found damaged, and was built again. */
static void note_damage(struct experiment *x, const char *host, const struct err *found)
{
    char text[sizeof found->text + 64];
    if (found->code != ERR_FORMAT)
        return;
    snprintf(text, sizeof text, "%s; built again", found->text);
    experiment_note(x, INDEX_NOTE_STORE, host, text, 1);
}

static int build(struct experiment *x, struct index_trace *t, const struct index_files *to,
    const struct index_options *o, struct err *e)
{
    struct index_host *h = &x->hosts.v[t->host];
    int rc = t->is_kernel ? index_build_kernel(to, o, e) : index_build_user(to, o, e);
    *(t->is_kernel ? &h->built : &t->built) = !rc;
    return rc;
}

static int build_locked(struct experiment *x, struct index_trace *t, const char *dir, const struct index_files *files,
    const struct index_options *o, struct err *e)
{
    struct err found = {0};
    int fd = index_lock_dir(dir, e);
    if (fd < 0)
        return fd;
    int rc = o->force ? ERR_STALE : open_stores(x, t, files, true, &found);
    if (rc && !(rc = build(x, t, files, o, e)))
        rc = open_stores(x, t, files, true, e);
    if (!rc)
        note_damage(x, x->hosts.v[t->host].name, &found);
    close(fd);
    return rc;
}

int index_open_stores(struct experiment *x, struct index_trace *t, const struct index_options *o, struct err *e)
{
    struct index_host *h = &x->hosts.v[t->host];
    struct arena names = {0};
    struct err found = {0};
    const char *dir = index_store_dir(&names, ctf_trace_path(t->trace), x->store, true, e);
    int rc = dir ? 0 : e->code;
    if (dir) {
        struct index_files files = index_files_in(&names, dir, t);
        rc = o->force ? ERR_STALE : open_stores(x, t, &files, false, &found);
        if (rc) {
            rc = build_locked(x, t, dir, &files, o, e);
        } else {
            progress_add(o->progress, index_stream_bytes(t->trace));
            if (o->tell && t->is_kernel)
                o->tell(o->tell_arg, t->trace, h->events, h->begin, h->end);
        }
        pthread_mutex_lock(&x->lock);
        *(t->is_kernel ? &h->store_dir : &t->store_dir) = arena_strdup(&x->arena, dir);
        pthread_mutex_unlock(&x->lock);
    }
    if (rc && t->is_kernel)
        err_wrap(e, "cannot index");
    else if (rc)
        err_wrap(e, "cannot index %s", ctf_trace_path(t->trace));
    arena_fini(&names);
    return rc;
}
