/* SPDX-License-Identifier: MIT */
/* The catalogues of trees with many directories of traces: they lie where the stores of a trace at the tree's root
 * would. Small trees have none: reading them costs nothing. */
#include <stdlib.h>

#include "base/nolinks.h"
#include "ctf/catalogue.h"
#include "index/stores.h"

/* Thresholds: directories from which on a tree has a catalogue; directories per newly read one for a rewrite. */
enum { LEAST_DIRS = 64, DIRS_PER_NEW = 512 };

static const char *path_of(struct experiment *x, const struct ctf_root *root, bool create)
{
    const char *dir = index_tree_dir(&x->arena, root->path, x->store, create, NULL);
    return dir ? arena_printf(&x->arena, "%s/catalogue", dir) : NULL;
}

void index_catalogues_load(struct experiment *x, struct ctf_root *roots, size_t n, bool believe)
{
    for (size_t i = 0; i < n; i++) {
        const char *path = believe ? path_of(x, &roots[i], false) : NULL;
        if (path && !ctf_catalogue_load(path, &roots[i].catalogue, NULL))
            vec_push(&x->catalogues, path);
        else
            roots[i].catalogue = ctf_catalogue_new();
    }
}

static bool is_small(const struct ctf_root *root)
{
    return root->found < LEAST_DIRS;
}

void index_catalogues_found(const struct ctf_root *roots, size_t n, struct ctf_group *groups, size_t n_groups)
{
    bool all_small = true;
    for (size_t i = 0; i < n; i++)
        all_small &= is_small(&roots[i]);
    for (size_t i = 0; i < n_groups && all_small; i++) {
        free(groups[i].known);
        groups[i].known = NULL;
    }
}

void index_catalogues_save(struct experiment *x, struct ctf_root *roots, size_t n, bool write)
{
    for (size_t i = 0; i < n; i++) {
        struct err unimportant = {0};
        size_t read, dirs = ctf_catalogue_dirs(roots[i].catalogue, &read);
        const char *path = write && !is_small(&roots[i]) && read > dirs / DIRS_PER_NEW ? path_of(x, &roots[i], true)
                                                                                       : NULL;
        if (path)
            ctf_catalogue_save(roots[i].catalogue, path, &unimportant); /* on failure the next opening reads all */
        ctf_catalogue_free(roots[i].catalogue);
        roots[i].catalogue = NULL;
    }
}

void index_catalogues_remove(const struct experiment *x)
{
    for (size_t i = 0; i < x->catalogues.n; i++)
        nolinks_remove(x->catalogues.v[i]);
}

void index_catalogues_check(const struct experiment *x)
{
    bool misled = false;
    for (size_t i = 0; i < x->sources.n; i++)
        misled |= ctf_trace_misled(x->sources.v[i].trace);
    if (misled)
        index_catalogues_remove(x);
}
