/* SPDX-License-Identifier: MIT */
#include "events/names.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static const char *const builtin_names[] = {NULL, "name", "cpu", "ts", "tid", "host", "comm"};

enum events_builtin events_builtin(const char *name)
{
    for (int b = EVENT_IS_NAME; b <= EVENT_IS_COMM; b++)
        if (strcmp(name, builtin_names[b]) == 0)
            return (enum events_builtin)b;
    return EVENT_IS_NONE;
}

const char *events_builtin_name(enum events_builtin b)
{
    return builtin_names[b];
}

void events_patterns_add(struct event_patterns *p, const char *list)
{
    while (*list) {
        size_t n = strcspn(list, ","), begin = strspn(list, " \t"), end = n;
        while (end > begin && (list[end - 1] == ' ' || list[end - 1] == '\t'))
            end--;
        if (end > begin) {
            char *pattern = mem_zalloc(end - begin + 1);
            memcpy(pattern, list + begin, end - begin);
            vec_push(p, pattern);
        }
        list += n + (list[n] == ',');
    }
}

void events_patterns_free(struct event_patterns *p)
{
    for (size_t i = 0; i < p->n; i++)
        free(p->v[i]);
    vec_free(p);
}
