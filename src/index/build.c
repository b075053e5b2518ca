/* The one pass over a host's events that feeds all stores, and the manifest that says they belong to it.
 *
 * Who builds holds the lock of the store directory (flock: it goes with its process); who waited for it looks again before building. Order of writing: the manifest goes first (removed), then graph and flows are replaced, then the manifest is written. A process killed at any
 * moment leaves either a valid set or no manifest; without a manifest of the right key the stores are built again. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/pool.h"
#include "base/store.h"
#include "base/text.h"
#include "index/experiment.h"

enum { MANIFEST_VERSION = 1, BUILDER_VERSION = 3, BATCH = 512 };

struct manifest {
    uint64_t events, lost_events;
    int64_t begin, end;
};

uint64_t index_key(const struct ctf_trace *t)
{
    return map_mix(ctf_trace_fingerprint(t) + BUILDER_VERSION);
}

const char *index_store_dir(struct arena *a, const char *trace_path, const char *store, bool create, struct err *e)
{
    char *real = realpath(trace_path, NULL);
    const char *identity = real ? real : trace_path;
    uint64_t hash = map_hash(identity, strlen(identity));
    const char *base = strrchr(identity, '/'), *home, *dir = NULL;
    base = base && base[1] ? base + 1 : "trace";
    if (store) {
        dir = arena_printf(a, "%s/%s-%016llx", store, base, (unsigned long long)hash);
    } else if (access(arena_printf(a, "%s/.weft", trace_path), W_OK) == 0 ||
        (access(trace_path, W_OK) == 0 && access(arena_printf(a, "%s/.weft", trace_path), F_OK) != 0)) {
        dir = arena_printf(a, "%s/.weft", trace_path);
    } else if ((home = getenv("XDG_CACHE_HOME")) && *home) {
        dir = arena_printf(a, "%s/weft/%s-%016llx", home, base, (unsigned long long)hash);
    } else if ((home = getenv("HOME")) && *home) {
        dir = arena_printf(a, "%s/.cache/weft/%s-%016llx", home, base, (unsigned long long)hash);
    }
    free(real);
    if (!dir) {
        err_set(e, ERR_IO, "%s: cannot be written, and there is no cache directory; name one with --store DIR", trace_path);
        return NULL;
    }
    if (create && file_make_dirs(dir, e)) {
        err_wrap(e, "cannot make the store directory (choose another with --store DIR)");
        return NULL;
    }
    return dir;
}

/* ---- the pass ------------------------------------------------------------------------------------------------------------------ */

struct pass {
    struct flow_builder *flows;
    struct graph_builder *graph;
    struct state_builder *states;
};

struct files {
    const char *manifest, *graph, *flows, *states;
};

static void on_record(void *arg, struct kernel_record *r)
{
    struct pass *p = arg;
    flow_builder_add(p->flows, r);
    graph_builder_add(p->graph, r);
    state_builder_add(p->states, r);
}

static uint64_t stream_bytes(const struct ctf_trace *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ctf_trace_streams(t); i++) {
        struct ctf_stream_info s;
        ctf_trace_stream(t, i, &s);
        sum += s.bytes;
    }
    return sum;
}

/* Runs all events through the tracker. The share done is judged by time, told as bytes. */
static int run_pass(struct index_host *h, struct kernel_tracker *tracker, struct state_builder *states, struct manifest *m,
    struct text *problems, struct progress *progress, struct err *e)
{
    struct ctf_source source = {.trace = h->trace};
    struct ctf_merge *merge;
    int rc = ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, e);
    if (rc)
        return rc;
    struct ctf_event *batch = mem_alloc(sizeof *batch * BATCH);
    uint64_t bytes = stream_bytes(h->trace), told = 0;
    double span = (double)h->end - (double)h->begin;
    for (size_t n; (n = ctf_merge_next(merge, batch, BATCH)) > 0;) {
        int64_t times[BATCH];
        size_t events = 0;
        kernel_tracker_feed(tracker, batch, n);
        for (size_t i = 0; i < n; i++) {
            if (batch[i].cls->item == CTF_EVENT) {
                times[events++] = batch[i].ts;
                m->end = batch[i].ts > m->end ? batch[i].ts : m->end;
                m->begin = batch[i].ts < m->begin ? batch[i].ts : m->begin;
            } else if (batch[i].cls->item == CTF_LOST_EVENTS) {
                m->lost_events += ((const struct ctf_loss *)(const void *)batch[i].data)->count;
            }
        }
        m->events += events;
        state_builder_events(states, times, events);
        double share = span > 0 ? ((double)batch[n - 1].ts - (double)h->begin) / span : 1;
        uint64_t now = share < 0 ? 0 : share > 1 ? bytes : (uint64_t)(share * (double)bytes);
        if (now > told + (bytes >> 8)) {
            progress_add(progress, now - told);
            told = now;
        }
    }
    progress_add(progress, bytes - told);
    kernel_tracker_finish(tracker);
    const struct ctf_problem *found;
    size_t n = ctf_merge_problems(merge, &found);
    for (size_t i = 0; i < n; i++)
        text_printf(problems, "%llu %s\n", (unsigned long long)found[i].count, found[i].text);
    free(batch);
    ctf_merge_free(merge);
    return 0;
}

/* What was bad in the input is kept too: an answer from stores is as partial as the one that made them. */
static int write_manifest(const char *path, uint64_t key, const struct manifest *m, const struct text *problems, struct err *e)
{
    struct store_writer *s = store_create("manifest", MANIFEST_VERSION, key);
    store_add(s, "totals", m, sizeof *m, 1);
    store_add(s, "problems", problems->v, 1, problems->n);
    return store_commit(s, path, e);
}

/* The stores are packed, written and synced side by side: none needs another. */
struct writing {
    struct pass *pass;
    const struct files *to;
    const struct manifest *totals;
    uint64_t key;
    struct err errors[3];
};

static void write_one(void *arg, size_t i)
{
    struct writing *w = arg;
    if (i == 0)
        state_builder_write(w->pass->states, w->totals->begin, w->totals->end, w->to->states, w->key, &w->errors[i]);
    else if (i == 1)
        graph_builder_write(w->pass->graph, w->totals->end, w->to->graph, w->key, &w->errors[i]);
    else
        flow_builder_write(w->pass->flows, w->to->flows, w->key, &w->errors[i]);
}

static int write_stores(
    struct pass *p, const struct files *to, const struct manifest *m, uint64_t key, const struct text *problems, struct err *e)
{
    struct writing w = {p, to, m, key, {{0}}};
    if (unlink(to->manifest) && errno != ENOENT)
        return err_sys(e, "%s", to->manifest);
    pool_run(3, 0, write_one, &w);
    for (int i = 0; i < 3; i++)
        if (w.errors[i].code) {
            *e = w.errors[i];
            return e->code;
        }
    return write_manifest(to->manifest, key, m, problems, e);
}

static int build(struct index_host *h, const struct files *to, struct progress *progress, struct err *e)
{
    struct kernel_binding *binding;
    int rc = kernel_bind(h->trace, &binding, e);
    if (rc)
        return err_wrap(e, "%s", h->name), rc;
    struct pass p = {0};
    struct kernel_tracker *tracker = kernel_tracker_new(binding, on_record, &p);
    p.flows = flow_builder_new(tracker);
    p.graph = graph_builder_new(tracker);
    p.states = state_builder_new(tracker);
    struct manifest m = {.begin = INT64_MAX, .end = INT64_MIN};
    struct text problems = {.fd = -1};
    if (!(rc = run_pass(h, tracker, p.states, &m, &problems, progress, e))) {
        if (m.begin > m.end)
            m.begin = m.end = h->begin;
        rc = write_stores(&p, to, &m, index_key(h->trace), &problems, e);
    }
    text_fini(&problems);
    state_builder_free(p.states);
    graph_builder_free(p.graph);
    flow_builder_free(p.flows);
    kernel_tracker_free(tracker);
    kernel_binding_free(binding);
    h->built = !rc;
    return rc;
}

/* ---- opening --------------------------------------------------------------------------------------------------------------------- */

static void tell_problems(struct experiment *x, const struct index_host *h, const char *lines, size_t n)
{
    for (size_t i = 0; i < n;) {
        const char *end = memchr(lines + i, '\n', n - i);
        size_t length = end ? (size_t)(end - lines) - i : n - i;
        struct arena line = {0};
        char *text = arena_strndup(&line, lines + i, length), *rest;
        uint64_t count = strtoull(text, &rest, 10);
        experiment_problem(x, h->name, *rest == ' ' ? rest + 1 : rest, count);
        arena_fini(&line);
        i += length + 1;
    }
}

static int open_stores(struct experiment *x, struct index_host *h, const struct files *from, struct err *e)
{
    uint64_t key = index_key(h->trace);
    struct store *s;
    struct graph *g = NULL;
    struct flow_store *f = NULL;
    struct state_store *v = NULL;
    int rc = store_open(from->manifest, "manifest", MANIFEST_VERSION, &key, &s, e);
    if (rc)
        return rc;
    size_t n;
    const struct manifest *m = store_section(s, "totals", sizeof *m, &n);
    if (n != 1)
        rc = err_set(e, ERR_FORMAT, "%s: no totals", from->manifest);
    else if (!(rc = graph_open(from->graph, &g, e)) && !(rc = flow_open(from->flows, &f, e)))
        rc = state_open(from->states, &v, e);
    if (!rc) {
        h->events = m->events;
        h->lost_events = m->lost_events;
        h->begin = m->begin;
        h->end = m->end;
        h->graph = g;
        h->flows = f;
        h->states = v;
        const char *lines = store_section(s, "problems", 1, &n);
        tell_problems(x, h, lines, n);
    } else {
        graph_close(g);
        flow_close(f);
    }
    store_close(s);
    return rc;
}

/* Waits until nobody else builds in the directory. Returns a descriptor to close, or a negative error. */
static int lock_dir(const char *dir, struct err *e)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "%s", dir);
    while (flock(fd, LOCK_EX))
        if (errno != EINTR) {
            int rc = err_sys(e, "%s: cannot lock", dir);
            close(fd);
            return rc;
        }
    return fd;
}

static int build_locked(struct experiment *x, struct index_host *h, const char *dir, const struct files *files, bool force,
    struct progress *progress, struct err *e)
{
    struct err found = {0};
    int fd = lock_dir(dir, e);
    if (fd < 0)
        return fd;
    int rc = force ? ERR_STALE : open_stores(x, h, files, &found);
    if (rc && !(rc = build(h, files, progress, e)))
        rc = open_stores(x, h, files, e);
    close(fd);
    return rc;
}

int index_host_stores(struct experiment *x, struct index_host *h, bool force, struct progress *progress, struct err *e)
{
    struct arena names = {0};
    const char *dir = index_store_dir(&names, ctf_trace_path(h->trace), x->store, true, e);
    int rc = dir ? 0 : e->code;
    if (dir) {
        struct files files = {arena_printf(&names, "%s/manifest", dir), arena_printf(&names, "%s/graph", dir),
            arena_printf(&names, "%s/flows", dir), arena_printf(&names, "%s/states", dir)};
        struct err found = {0};
        rc = force ? ERR_STALE : open_stores(x, h, &files, &found);
        if (rc) {
            rc = build_locked(x, h, dir, &files, force, progress, e);
            if (rc)
                err_wrap(e, "%s: cannot index", h->name);
        } else {
            progress_add(progress, stream_bytes(h->trace));
        }
        pthread_mutex_lock(&x->lock);
        h->store_dir = arena_strdup(&x->arena, dir);
        pthread_mutex_unlock(&x->lock);
    }
    arena_fini(&names);
    return rc;
}
