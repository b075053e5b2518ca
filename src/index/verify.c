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

static void add_finding(struct verifying *v, const char *file, int code, const char *problem)
{
    size_t n = strlen(file);
    if (!strncmp(problem, file, n) && !strncmp(problem + n, ": ", 2))
        problem += n + 2;
    v->damaged |= code && code != ERR_STALE && code != ERR_NOTFOUND;
    v->report(v->arg, &(struct index_finding){v->host, file, code, code ? problem : NULL});
}

/* What the numbers of a sound file point to. */
static int check_contents(const char *path, enum index_file file, struct err *e)
{
    struct stack_store *s = NULL;
    int rc;
    switch (file) {
    case INDEX_GRAPH: return graph_check(path, e);
    case INDEX_FLOWS: return flow_check(path, e);
    case INDEX_STATES: return state_check(path, e);
    case INDEX_STACKS:
        rc = stack_open(path, &s, e);
        stack_close(s);
        return rc;
    default: return 0;
    }
}

/* file: INDEX_FILES for clock maps, which are of a set of traces. */
static void verify_file(struct verifying *v, const struct ctf_trace *t, const char *path, enum index_file file)
{
    struct err e = {0};
    int rc = store_check(path, &e);
    if (!rc)
        rc = check_contents(path, file, &e);
    if (!rc && file != INDEX_FILES)
        rc = store_check_key(path, index_key(t, file), &e);
    add_finding(v, path, rc, rc == ERR_NOTFOUND ? "the last build did not come to its end" : e.text);
}

static int is_clocks(const struct dirent *d)
{
    return !strncmp(d->d_name, "clocks-", 7) && !strstr(d->d_name, ".tmp");
}

static void verify_dir(struct verifying *v, const char *dir, const struct index_trace *t)
{
    struct index_files files = index_files_in(&v->names, dir, t);
    struct dirent **entries;
    int n = access(dir, F_OK) ? -1 : scandir(dir, &entries, is_clocks, alphasort);
    if (n < 0) {
        add_finding(v, dir, ERR_NOTFOUND, "not built yet");
        return;
    }
    v->found = true;
    for (int i = 0; i < INDEX_FILES; i++)
        if (files.path[i])
            verify_file(v, t->trace, files.path[i], i);
    for (int i = 0; i < n; i++) {
        verify_file(v, t->trace, arena_printf(&v->names, "%s/%s", dir, entries[i]->d_name), INDEX_FILES);
        free(entries[i]);
    }
    free(entries);
}

int experiment_verify(
    struct experiment *x, void (*report)(void *arg, const struct index_finding *), void *arg, struct err *e)
{
    struct verifying v = {.report = report, .arg = arg};
    int rc = 0;
    for (size_t i = 0; i < x->traces.n && !rc; i++) {
        const struct index_trace *t = &x->traces.v[i];
        const char *dir = index_store_dir(&v.names, ctf_trace_path(t->trace), x->store, false, e);
        v.host = x->hosts.v[t->host].name;
        if (dir)
            verify_dir(&v, dir, t);
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
