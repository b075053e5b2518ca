/* Checks store files without trusting them. */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "base/store.h"
#include "index/experiment.h"

struct verifying {
    void (*report)(void *, const char *, const char *);
    void *arg;
    bool damaged;
};

/* Checksum and table of contents for all; graph, flows and states also in what their numbers point to. */
static void verify_file(struct verifying *v, const char *path, const char *name)
{
    struct err e = {0};
    int rc = store_check(path, &e);
    if (!rc && !strcmp(name, "graph")) {
        struct graph *g;
        if (!(rc = graph_open(path, &g, &e)))
            graph_close(g);
    } else if (!rc && !strcmp(name, "flows")) {
        struct flow_store *f;
        if (!(rc = flow_open(path, &f, &e)))
            flow_close(f);
    } else if (!rc && !strcmp(name, "states")) {
        struct state_store *s;
        if (!(rc = state_open(path, &s, &e)))
            state_close(s);
    }
    v->damaged |= rc != 0;
    v->report(v->arg, path, rc ? e.text : NULL);
}

static bool is_store(const char *name)
{
    return !strcmp(name, "manifest") || !strcmp(name, "graph") || !strcmp(name, "flows") || !strcmp(name, "states") ||
        !strncmp(name, "clocks-", 7);
}

static int verify_dir(struct verifying *v, struct arena *a, const char *dir, struct err *e)
{
    struct dirent **entries;
    int n = scandir(dir, &entries, NULL, alphasort);
    if (n < 0)
        return err_set(e, ERR_NOTFOUND, "%s: no stores here; build them with: weft index TRACE", dir);
    for (int i = 0; i < n; i++) {
        if (is_store(entries[i]->d_name))
            verify_file(v, arena_printf(a, "%s/%s", dir, entries[i]->d_name), entries[i]->d_name);
        free(entries[i]);
    }
    free(entries);
    return 0;
}

int index_verify(const char *const *args, size_t n, const char *store, void (*report)(void *arg, const char *file, const char *problem),
    void *arg, struct err *e)
{
    struct verifying v = {report, arg, false};
    struct arena a = {0};
    int rc = 0;
    for (size_t i = 0; i < n && !rc; i++) {
        const char *eq = strchr(args[i], '='), *slash = strchr(args[i], '/');
        const char *path = eq && eq != args[i] && !(slash && slash < eq) ? eq + 1 : args[i];
        struct ctf_group *groups;
        size_t n_groups;
        if ((rc = ctf_discover(path, &groups, &n_groups, e)))
            break;
        for (size_t g = 0; g < n_groups && !rc; g++) {
            const char *dir = index_store_dir(&a, groups[g].dirs[0], store, false, e);
            rc = dir ? verify_dir(&v, &a, dir, e) : e->code;
        }
        ctf_groups_free(groups, n_groups);
    }
    arena_fini(&a);
    if (!rc && v.damaged)
        rc = err_set(e, ERR_FORMAT, "damaged store files; the next index builds them again");
    return rc;
}
