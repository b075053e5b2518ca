/* SPDX-License-Identifier: MIT */
#include "fixture.h"

#include "ctf/ctf.h"

enum { BATCH = 64 };

static int build(struct ctf_trace *t, const char *path, struct err *e)
{
    struct ctf_source source = {.trace = t};
    struct ctf_merge *merge;
    struct ctf_event batch[BATCH];
    int rc = ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &merge, e);
    if (rc)
        return rc;
    struct stack_builder *b = stack_builder_new(t);
    for (size_t n; (n = ctf_merge_next(merge, batch, BATCH)) > 0;)
        stack_builder_feed(b, batch, n);
    rc = stack_builder_write(b, store_file(path), 1, e);
    stack_builder_free(b);
    ctf_merge_free(merge);
    return rc;
}

int stack_fixture(const char *dir, const char *path, struct stack_store **out, struct err *e)
{
    struct ctf_group *groups;
    size_t n;
    struct ctf_trace *t = NULL;
    int rc = ctf_discover(dir, &groups, &n, e);
    if (rc)
        return rc;
    struct ctf_schemas *schemas = ctf_schemas_new();
    if (!(rc = ctf_trace_open(&groups[0], schemas, &t, e)) && !(rc = build(t, path, e)))
        rc = stack_open(path, out, e);
    if (t)
        ctf_trace_close(t);
    ctf_schemas_free(schemas);
    ctf_groups_free(groups, n);
    return rc;
}
