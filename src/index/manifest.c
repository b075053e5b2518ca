/* The manifest says that the stores of a trace are complete. It is removed before the first of them is replaced and
 * written after the last: a process killed at any moment leaves either a valid set or no manifest, and without one of
 * the right key the stores are built again.
 *
 * What was bad in the input is in it too: an answer from stores is as partial as the one that made them.
 *
 * It seals the stores that grow with a kernel trace: their stamps, so that what nobody touched since is opened without
 * reading it. With any other stamp a store's checksums are compared first, once: whoever finds them right seals it
 * anew. */
#include <string.h>

#include "base/file.h"
#include "base/store.h"
#include "index/stores.h"

enum { KERNEL_VERSION = 3, USER_VERSION = 1 };
enum { SEALED = 3 }; /* graph, flows and states, in this order */

static int take_stamps(const struct index_files *f, struct file_stamp stamps[SEALED], struct err *e)
{
    int rc = 0;
    for (int i = 0; i < SEALED && !rc; i++)
        rc = file_stamp(f->path[INDEX_GRAPH + i], &stamps[i], e);
    return rc;
}

int index_manifest_write(const struct index_files *f, const struct index_manifest *m, struct err *e)
{
    struct file_stamp stamps[SEALED];
    int rc = f->is_kernel ? take_stamps(f, stamps, e) : 0;
    if (rc)
        return rc;
    struct store_writer *s = store_create(f->path[INDEX_MANIFEST], "manifest",
        f->is_kernel ? KERNEL_VERSION : USER_VERSION, index_key(f->trace, INDEX_MANIFEST), f->is_kernel ? 3 : 1);
    if (f->is_kernel) {
        store_add(s, "totals", &m->totals, sizeof m->totals, 1);
        store_add(s, "seals", stamps, sizeof *stamps, SEALED);
    }
    store_add(s, "problems", m->problems, 1, m->n_problems);
    return store_commit(s, e);
}

/* Compares the checksums of stores that were touched, when locked. */
static int check_seals(const struct index_files *f, bool locked, struct index_manifest *m, struct err *e)
{
    size_t n_totals, n_seals;
    const struct index_totals *totals = store_section(m->store, "totals", sizeof *totals, &n_totals);
    const struct file_stamp *sealed = store_section(m->store, "seals", sizeof *sealed, &n_seals);
    struct file_stamp now[SEALED];
    struct err unimportant = {0};
    if (n_totals != 1 || n_seals != SEALED)
        return err_set(e, ERR_FORMAT, "%s: no totals", f->path[INDEX_MANIFEST]);
    m->totals = *totals;
    int rc = take_stamps(f, now, e);
    if (rc || !memcmp(sealed, now, sizeof now))
        return rc;
    if (!locked)
        return err_set(e, ERR_STALE, "%s: not all stores are as they were written", f->path[INDEX_MANIFEST]);
    for (int i = 0; i < SEALED && !rc; i++)
        if (memcmp(&sealed[i], &now[i], sizeof *sealed) != 0)
            rc = store_check(f->path[INDEX_GRAPH + i], e);
    if (!rc)
        index_manifest_write(f, m, &unimportant); /* where it cannot be written, it is found out each time */
    return rc;
}

int index_manifest_open(const struct index_files *f, bool locked, struct index_manifest *m, struct err *e)
{
    uint64_t key = index_key(f->trace, INDEX_MANIFEST);
    *m = (struct index_manifest){0};
    int rc = store_open(
        f->path[INDEX_MANIFEST], "manifest", f->is_kernel ? KERNEL_VERSION : USER_VERSION, &key, &m->store, e);
    if (rc)
        return rc;
    m->problems = store_section(m->store, "problems", 1, &m->n_problems);
    if (f->is_kernel && (rc = check_seals(f, locked, m, e)))
        store_close(m->store);
    return rc;
}
