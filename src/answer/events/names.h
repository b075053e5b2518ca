/* SPDX-License-Identifier: MIT */
/* Private to events: the names and patterns of a selection. */
#ifndef WEFT_EVENTS_NAMES_H
#define WEFT_EVENTS_NAMES_H

#include <stddef.h>

/* Names of properties of the event itself; fields of the same names are accessed as fields.NAME. */
enum events_builtin {
    EVENT_IS_NONE, EVENT_IS_NAME, EVENT_IS_CPU, EVENT_IS_TS, EVENT_IS_TID, EVENT_IS_HOST, EVENT_IS_COMM
};
enum events_builtin events_builtin(const char *name);
const char *events_builtin_name(enum events_builtin); /* invalid for EVENT_IS_NONE */

struct event_patterns { char **v; size_t n, cap; };
/* Adds the patterns of a list. */
void events_patterns_add(struct event_patterns *, const char *list);
void events_patterns_free(struct event_patterns *);

#endif
