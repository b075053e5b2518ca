/* The one pass over a host's events that feeds all stores, and the manifest that says they belong to it.
 *
 * Who builds holds the lock of the store directory (flock: it goes with its process) and removes what killed ones left;
 * who waited for it looks again before building. Order of writing: the manifest goes first (removed), then graph, flows
 * and states are replaced, then the manifest is written. A process killed at any moment leaves either a valid set or no
 * manifest; without a manifest of the right key the stores are built again.
 *
 * The manifest seals the stores that grow with the trace: their stamps, so that what nobody touched since is opened
 * without reading it. With any other stamp a store's checksums are compared first, once: whoever finds them right seals
 * it anew. */
#include <dirent.h>
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
#include "index/types.h"

enum { MANIFEST_VERSION = 3, BUILDER_VERSION = 15, BATCH = 128 };

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
        err_set(
            e, ERR_IO, "%s: cannot be written, and there is no cache directory; name one with --store DIR", trace_path);
        return NULL;
    }
    if (create && file_make_dirs(dir, e)) {
        err_wrap(e, "cannot make the store directory (choose another with --store DIR)");
        return NULL;
    }
    return dir;
}

/* ---- the pass ---- */

struct pass {
    struct flow_builder *flows;
    struct graph_builder *graph;
    struct state_builder *states;
    struct types_builder *types;
};

enum { SEALED = 3 }; /* graph, flows and states, in this order */

struct files {
    const char *manifest, *graph, *flows, *states, *packets;
};

struct seal {
    struct file_stamp stamps[SEALED];
};

static const char *sealed_file(const struct files *f, int i)
{
    return i == 0 ? f->graph : i == 1 ? f->flows : f->states;
}

static int take_stamps(const struct files *f, struct seal *out, struct err *e)
{
    int rc = 0;
    for (int i = 0; i < SEALED && !rc; i++)
        rc = file_stamp(sealed_file(f, i), &out->stamps[i], e);
    return rc;
}

static void on_record(void *arg, const struct kernel_record *r)
{
    struct pass *p = arg;
    graph_builder_add(p->graph, r, flow_builder_add(p->flows, r));
    state_builder_add(p->states, r);
}

uint64_t index_stream_bytes(const struct ctf_trace *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < ctf_trace_streams(t); i++) {
        struct ctf_stream_info s;
        ctf_trace_stream(t, i, &s);
        sum += s.bytes;
    }
    return sum;
}

/* Of a batch: times of its events, which are counted, and losses. */
static size_t take_times(const struct ctf_event *ev, size_t n, int64_t *times, struct manifest *m)
{
    int64_t begin = m->begin, end = m->end;
    size_t events = 0;
    for (size_t i = 0; i < n; i++) {
        int64_t ts = ev[i].ts;
        if (__builtin_expect(ev[i].cls->item == CTF_EVENT, 1)) {
            times[events++] = ts;
            end = ts > end ? ts : end;
            begin = ts < begin ? ts : begin;
        } else if (ev[i].cls->item == CTF_LOST_EVENTS) {
            m->lost_events += ((const struct ctf_loss *)(const void *)ev[i].data)->count;
        }
    }
    m->begin = begin;
    m->end = end;
    m->events += events;
    return events;
}

/* Runs all events through the tracker. The share done is judged by time, told as bytes. */
static int run_pass(struct index_host *h, struct kernel_tracker *tracker, struct pass *p, struct manifest *m,
    struct text *problems, const struct index_options *o, struct err *e)
{
    struct ctf_source source = {.trace = h->trace};
    struct ctf_merge *merge;
    int rc = ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, e);
    if (rc)
        return rc;
    ctf_merge_count(merge);
    struct ctf_event *batch = mem_alloc(sizeof *batch * BATCH);
    uint64_t bytes = index_stream_bytes(h->trace), told = 0;
    double span = (double)h->end - (double)h->begin;
    for (size_t n; !(rc = state_builder_writing(p->states, e)) && (n = ctf_merge_next(merge, batch, BATCH)) > 0;) {
        int64_t times[BATCH];
        kernel_tracker_feed(tracker, batch, n);
        size_t events = take_times(batch, n, times, m);
        if (o->tell && events)
            o->tell(o->tell_arg, h->trace, events, m->begin, m->end);
        state_builder_events(p->states, times, events);
        types_builder_add(p->types, batch, n);
        double share = span > 0 ? ((double)batch[n - 1].ts - (double)h->begin) / span : 1;
        uint64_t now = share < 0 ? 0 : share > 1 ? bytes : (uint64_t)(share * (double)bytes);
        if (now > told + (bytes >> 8)) {
            progress_add(o->progress, now - told);
            told = now;
        }
    }
    progress_add(o->progress, bytes - told);
    rc = rc ? rc : ctf_merge_intact(merge, e);
    kernel_tracker_finish(tracker);
    const struct ctf_problem *found;
    size_t n = ctf_merge_problems(merge, &found);
    for (size_t i = 0; i < n; i++)
        text_printf(problems, "%llu %s\n", (unsigned long long)found[i].count, found[i].text);
    free(batch);
    ctf_merge_free(merge);
    return rc;
}

/* What was bad in the input is kept too: an answer from stores is as partial as the one that made them. */
static int write_manifest(const struct files *to, uint64_t key, const struct manifest *m, const char *problems,
    size_t n_problems, struct err *e)
{
    struct seal seal;
    int rc = take_stamps(to, &seal, e);
    if (rc)
        return rc;
    struct store_writer *s = store_create(to->manifest, "manifest", MANIFEST_VERSION, key, 3);
    store_add(s, "totals", m, sizeof *m, 1);
    store_add(s, "seals", seal.stamps, sizeof *seal.stamps, SEALED);
    store_add(s, "problems", problems, 1, n_problems);
    return store_commit(s, e);
}

/* The stores are packed, written and synced side by side, as far as there are CPUs: none needs another. What a builder
 * held serves those that come after it. */
struct writing {
    const struct ctf_trace *trace;
    struct pass *pass;
    const struct files *to;
    const struct manifest *totals;
    uint64_t key;
    struct err errors[4];
};

static void write_one(void *arg, size_t i)
{
    struct writing *w = arg;
    struct pass *p = w->pass;
    switch (i) {
    case 0:
        state_builder_write(p->states, w->totals->begin, w->totals->end, &w->errors[i]);
        state_builder_free(p->states);
        p->states = NULL;
        break;
    case 1:
        graph_builder_write(p->graph, w->totals->end, w->to->graph, w->key, &w->errors[i]);
        graph_builder_free(p->graph);
        p->graph = NULL;
        break;
    case 2:
        flow_builder_write(p->flows, w->to->flows, w->key, &w->errors[i]);
        flow_builder_free(p->flows);
        p->flows = NULL;
        break;
    default: index_counts_write(w->trace, p->types, w->to->packets, w->key, &w->errors[i]);
    }
}

static int write_stores(const struct ctf_trace *t, struct pass *p, const struct files *to, const struct manifest *m,
    uint64_t key, const struct text *problems, struct err *e)
{
    struct writing w = {t, p, to, m, key, {{0}}};
    if (unlink(to->manifest) && errno != ENOENT)
        return err_sys(e, "%s", to->manifest);
    pool_run(4, 0, write_one, &w);
    for (int i = 0; i < 4; i++)
        if (w.errors[i].code) {
            *e = w.errors[i];
            return e->code;
        }
    return write_manifest(to, key, m, problems->v, problems->n, e);
}

static int build(struct index_host *h, const struct files *to, const struct index_options *o, struct err *e)
{
    struct kernel_binding *binding;
    int rc = kernel_bind(h->trace, &binding, e);
    if (rc)
        return err_wrap(e, "%s", h->name), rc;
    struct pass p = {0};
    struct kernel_tracker *tracker = kernel_tracker_new(binding, on_record, &p);
    p.flows = flow_builder_new(tracker);
    p.graph = graph_builder_new(tracker);
    p.states = state_builder_new(tracker, to->states, index_key(h->trace));
    p.types = types_builder_new(h->trace);
    struct manifest m = {.begin = INT64_MAX, .end = INT64_MIN};
    struct text problems = {.fd = -1};
    if (!(rc = run_pass(h, tracker, &p, &m, &problems, o, e))) {
        if (m.begin > m.end)
            m.begin = m.end = h->begin;
        rc = write_stores(h->trace, &p, to, &m, index_key(h->trace), &problems, e);
    }
    text_fini(&problems);
    types_builder_free(p.types);
    state_builder_free(p.states);
    graph_builder_free(p.graph);
    flow_builder_free(p.flows);
    kernel_tracker_free(tracker);
    kernel_binding_free(binding);
    h->built = !rc;
    return rc;
}

/* ---- opening ---- */

void index_tell_problems(struct experiment *x, const char *host, const char *lines, size_t n)
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

/* ERR_STALE when a store was touched since it was sealed: that is found out by whoever holds the lock. */
static int check_seals(const struct files *from, uint64_t key, const struct store *manifest, bool locked, struct err *e)
{
    size_t n_totals, n_seals, n_problems;
    const struct manifest *m = store_section(manifest, "totals", sizeof *m, &n_totals);
    const struct file_stamp *sealed = store_section(manifest, "seals", sizeof *sealed, &n_seals);
    const char *problems = store_section(manifest, "problems", 1, &n_problems);
    struct seal now;
    struct err unimportant = {0};
    if (n_totals != 1 || n_seals != SEALED)
        return err_set(e, ERR_FORMAT, "%s: no totals", from->manifest);
    int rc = take_stamps(from, &now, e);
    if (rc || !memcmp(sealed, now.stamps, sizeof now.stamps))
        return rc;
    if (!locked)
        return err_set(e, ERR_STALE, "%s: not all stores are as they were written", from->manifest);
    for (int i = 0; i < SEALED && !rc; i++)
        if (memcmp(&sealed[i], &now.stamps[i], sizeof *sealed) != 0)
            rc = store_check(sealed_file(from, i), e);
    if (!rc)
        write_manifest(from, key, m, problems, n_problems,
            &unimportant); /* where it cannot be written, it is found out each time */
    return rc;
}

static int open_all(struct index_host *h, const struct files *from, uint64_t key, struct err *e)
{
    struct graph *graph = NULL;
    struct flow_store *flows = NULL;
    struct state_store *states = NULL;
    struct index_types *types = NULL;
    int rc;
    (void)((rc = graph_open(from->graph, &graph, e)) || (rc = flow_open(from->flows, &flows, e)) ||
        (rc = state_open(from->states, &states, e)) ||
        (rc = index_counts_open(h->trace, from->packets, key, &types, e)));
    for (int i = 0; i < SEALED && !rc; i++)
        rc = store_check_key(sealed_file(from, i), key, e);
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

static int open_stores(struct experiment *x, struct index_host *h, const struct files *from, bool locked, struct err *e)
{
    uint64_t key = index_key(h->trace);
    struct store *s;
    int rc = store_open(from->manifest, "manifest", MANIFEST_VERSION, &key, &s, e);
    if (rc)
        return rc;
    size_t n;
    const struct manifest *m = store_section(s, "totals", sizeof *m, &n);
    if (!(rc = check_seals(from, key, s, locked, e)) && !(rc = open_all(h, from, key, e))) {
        h->events = m->events;
        h->lost_events = m->lost_events;
        h->begin = m->begin;
        h->end = m->end;
        const char *lines = store_section(s, "problems", 1, &n);
        index_tell_problems(x, h->name, lines, n);
    }
    store_close(s);
    return rc;
}

void index_note_damage(struct experiment *x, const char *host, const struct err *found)
{
    char text[sizeof found->text + 64];
    if (found->code != ERR_FORMAT)
        return;
    snprintf(text, sizeof text, "%s; built again", found->text);
    experiment_note(x, INDEX_NOTE_STORE, host, text, 1);
}

/* What was being written when its process was killed. Only who holds the lock writes here. */
static void remove_left_behind(int dir)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *list = fd < 0 ? NULL : fdopendir(fd);
    if (!list)
        return;
    for (const struct dirent *d; (d = readdir(list));)
        if (strstr(d->d_name, STORE_TEMPORARY))
            unlinkat(dir, d->d_name, 0);
    closedir(list);
}

int index_lock_dir(const char *dir, struct err *e)
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
    remove_left_behind(fd);
    return fd;
}

static int build_locked(struct experiment *x, struct index_host *h, const char *dir, const struct files *files,
    const struct index_options *o, struct err *e)
{
    struct err found = {0};
    int fd = index_lock_dir(dir, e);
    if (fd < 0)
        return fd;
    int rc = o->force ? ERR_STALE : open_stores(x, h, files, true, &found);
    if (rc && !(rc = build(h, files, o, e)))
        rc = open_stores(x, h, files, true, e);
    if (!rc)
        index_note_damage(x, h->name, &found);
    close(fd);
    return rc;
}

int index_host_stores(struct experiment *x, struct index_host *h, const struct index_options *o, struct err *e)
{
    struct arena names = {0};
    const char *dir = index_store_dir(&names, ctf_trace_path(h->trace), x->store, true, e);
    int rc = dir ? 0 : e->code;
    if (dir) {
        struct files files = {arena_printf(&names, "%s/manifest", dir), arena_printf(&names, "%s/graph", dir),
            arena_printf(&names, "%s/flows", dir), arena_printf(&names, "%s/states", dir),
            arena_printf(&names, "%s/packets", dir)};
        struct err found = {0};
        rc = o->force ? ERR_STALE : open_stores(x, h, &files, false, &found);
        if (rc) {
            rc = build_locked(x, h, dir, &files, o, e);
            if (rc)
                err_wrap(e, "%s: cannot index", h->name);
        } else {
            progress_add(o->progress, index_stream_bytes(h->trace));
            if (o->tell)
                o->tell(o->tell_arg, h->trace, h->events, h->begin, h->end);
        }
        pthread_mutex_lock(&x->lock);
        h->store_dir = arena_strdup(&x->arena, dir);
        pthread_mutex_unlock(&x->lock);
    }
    arena_fini(&names);
    return rc;
}
