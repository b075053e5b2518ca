/* SPDX-License-Identifier: MIT */
/* Questions for trees. */
#include <string.h>

#include "coord/comparisons.h"
#include "coord/experiments.h"
#include "coord/gather.h"
#include "coord/question.h"
#include "coord/tree.h"

/* Returns the body. Trees over time without a requested range get that of the whole experiment, since each server knows
 * only its own part of it. */
static const char *tree_body(struct coord_call *c, const struct node *n, const char *path)
{
    struct time_range whole = coord_experiment_range(c);
    bool ranged = json_object_get(c->request.parameters, "requested_timerange") ||
        json_object_get(c->request.parameters, "requested_times");
    if (ranged || (!strstr(path, "/timeGraph/") && !strstr(path, "/XY/")) || whole.begin >= whole.end)
        return coord_body_with(c, n, NULL, NULL, NULL, NULL);
    json_t *range = json_object();
    json_object_set_new(range, "start", json_integer(whole.begin));
    json_object_set_new(range, "end", json_integer(whole.end));
    const char *body = coord_body_with(c, n, "requested_timerange", range, NULL, NULL);
    json_decref(range);
    return body;
}

void coord_analysis_tree(struct coord_call *c)
{
    if (coord_comparison_tree(c))
        return;
    struct coord_answers f;
    const char *path = coord_path_asked(&c->request);
    coord_gather_begin(&f, c, c->request.n_members + c->c->n_groups);
    for (size_t i = 0; i < c->request.n_members; i++)
        coord_gather_ask(&f, c->request.members[i], "POST", path, tree_body(c, c->request.members[i], path));
    if (coord_gather_wait(&f) && coord_envelopes_open(&f))
        coord_envelope_merge(&f, coord_merge_tree);
    coord_gather_end(&f);
}
