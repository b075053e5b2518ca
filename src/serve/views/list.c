/* SPDX-License-Identifier: MIT */
/* List of all views. */
#include "views/list.h"

#define VIEW_ADDRESS(name) &view_##name,
const struct view *const view_list[] = {VIEWS(VIEW_ADDRESS) NULL};
#undef VIEW_ADDRESS

_Static_assert(sizeof view_list / sizeof *view_list <= VIEWS_MAX + 1, "more views than an experiment has caches for");

size_t view_number(const struct view *v)
{
    size_t i = 0;
    while (view_list[i] && view_list[i] != v)
        i++;
    return i;
}
