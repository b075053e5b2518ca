/* SPDX-License-Identifier: MIT */
/* Checks store files without trusting them. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/store.h"
#include "index/stores.h"

struct verifying {
    void (*report)(void *, const struct index_finding *);
    void *arg;
    struct arena names;
    const char *host;
    bool damaged, found;
};

/* The text without "NAME: " at its begin. */
static const char *without(const char *text, const char *name)
{
    size_t n = strlen(name);
    return !strncmp(text, name, n) && !strncmp(text + n, ": ", 2) ? text + n + 2 : text;
}

static void add_finding(struct verifying *v, const char *file, int code, const char *problem)
{
    problem = without(problem, file);
    v->damaged |= code && code != ERR_STALE && code != ERR_NOTFOUND;
    v->report(v->arg, &(struct index_finding){v->host, file, code, code ? problem : NULL});
}

/* Checks the references inside an undamaged part. */
static int check_contents(const char *path, const struct store *file, enum index_part part, struct err *e)
{
    struct stack_store *s = NULL;
    int rc;
    switch (part) {
    case INDEX_GRAPH: return graph_check(path, file, e);
    case INDEX_FLOWS: return flow_check(path, file, e);
    case INDEX_STATES: return state_check(path, file, e);
    case INDEX_PACKETS: return index_counts_check(path, file, e);
    default:
        rc = stack_open_list(&(struct chunk){.path = path, .in = file, .begin = INT64_MIN, .end = INT64_MAX}, 1, &s, e);
        stack_close(s);
        return rc;
    }
}

/* Adds the result of opening a file, or of reading all of it. */
static void add_file(struct verifying *v, const char *path, int rc, bool is_stale, const struct err *e)
{
    add_finding(v, path, rc || !is_stale ? rc : ERR_STALE,
        rc == ERR_NOTFOUND ? "the last build did not come to its end"
            : rc           ? e->text
                           : "made from other files");
}

/* key: NULL: any. */
static void verify_file(struct verifying *v, const char *path, const uint64_t *key, bool is_stale)
{
    struct err e = {0};
    int rc = store_check(path, &e);
    if (!rc && key)
        rc = store_check_key(path, *key, &e);
    add_file(v, path, rc, is_stale, &e);
}

/* Verifies a store in the file; it is named like a file in a directory. */
static void verify_part(struct verifying *v, const char *path, const struct store *file, enum index_part part,
    const char *kind, bool is_stale)
{
    struct err e = {0};
    int rc = store_check_part(file, path, kind, &e);
    if (!rc)
        rc = check_contents(path, file, part, &e);
    add_finding(v, arena_printf(&v->names, "%s/%s", path, kind), rc || !is_stale ? rc : ERR_STALE,
        rc ? without(without(e.text, path), kind) : "made from other files");
}

static void verify_chunk(struct verifying *v, const struct index_files *f, const struct index_chunk *c, bool is_stale)
{
    const char *path = index_path(f, INDEX_CHUNK, c->number);
    struct index_known known;
    struct err e = {0};
    int rc = index_chunk_read(f, c, &known, &e);
    rc = rc ?: index_chunk_carry(f, c, &known, &e);
    add_file(v, path, rc, is_stale, &e);
    for (int part = 0; part < INDEX_PARTS && !rc; part++) {
        const char *kind = index_part_kind(f->is_kernel, part);
        if (kind)
            verify_part(v, path, known.store, part, kind, is_stale);
    }
    store_close(known.store);
}

static void verify_chunks(struct verifying *v, const struct index_files *f, const struct index_history *h)
{
    for (size_t i = 0; i < h->chunks.n; i++) {
        const struct index_chunk *c = &h->chunks.v[i];
        verify_chunk(v, f, c, !index_chunk_current(f, c));
    }
}

static void verify_rows(struct verifying *v, const struct index_files *f)
{
    struct err e = {0};
    const char *path = arena_printf(&v->names, "%s/rows", f->dir);
    int rc = kernel_rows_check(f->dir, index_host_key(f->trace), &e);
    add_finding(v, path, rc, e.text);
}

static int is_of_a_set(const struct dirent *d)
{
    const char *name = d->d_name;
    return (!strncmp(name, "clocks-", 7) || !strncmp(name, "messages-", 9) || !strncmp(name, "ids-", 4)) &&
        !strstr(name, ".tmp");
}

static void verify_dir(struct verifying *v, const char *dir, const struct index_trace *t)
{
    struct index_files files = index_files_in(&v->names, dir, t);
    struct index_history history;
    uint64_t rules = index_rules_of(&files);
    struct dirent **entries;
    int n = access(dir, F_OK) ? -1 : scandir(dir, &entries, is_of_a_set, alphasort);
    if (n < 0) {
        add_finding(v, dir, ERR_NOTFOUND, "not built yet");
        return;
    }
    v->found = true;
    if (!index_history_read(&files, &history, &(struct err){0}))
        verify_chunks(v, &files, &history);
    if (t->is_kernel)
        verify_rows(v, &files);
    verify_file(
        v, index_path(&files, INDEX_MANIFEST, 0), &rules, history.chunks.n && !index_history_fits(&files, &history));
    index_history_free(&history);
    for (int i = 0; i < n; i++) {
        verify_file(v, arena_printf(&v->names, "%s/%s", dir, entries[i]->d_name), NULL, false);
        free(entries[i]);
    }
    free(entries);
}

int index_experiment_verify(
    struct experiment *x, void (*report)(void *arg, const struct index_finding *), void *arg, struct err *e)
{
    struct verifying v = {.report = report, .arg = arg};
    int rc = 0;
    for (size_t i = 0; i < x->traces.n && !rc; i++) {
        const struct index_trace *t = &x->traces.v[i];
        struct index_dirs d = index_store_dirs(&v.names, t->trace, x->store, false, e);
        bool own = d.dir && !access(d.dir, F_OK);
        v.host = x->hosts.v[t->host].name;
        if (d.dir || d.theirs)
            verify_dir(&v, d.theirs && !own ? d.theirs : d.dir, t);
        else
            rc = e->code;
    }
    arena_fini(&v.names);
    if (!rc && v.damaged)
        rc = err_set(e, ERR_FORMAT, "damaged store files; the next index builds them again");
    else if (!rc && !v.found)
        rc = err_set(e, ERR_NOTFOUND, "%s: no stores yet; build them with: weft index TRACE",
            ctf_trace_path(x->sources.v[0].trace));
    return rc;
}
