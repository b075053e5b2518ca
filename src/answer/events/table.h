/* SPDX-License-Identifier: MIT */
/* Private to events: contents of the table. */
#ifndef WEFT_EVENTS_TABLE_H
#define WEFT_EVENTS_TABLE_H

#include "base/mem.h"
#include "events/events.h"

/* Event classes that several sources may share. */
struct event_schema { const struct ctf_event_class *const *classes; size_t n; };

struct event_table {
    const struct ctf_source *sources; size_t n;
    struct event_origin *origins;        /* origins by source; owned, as is all below */
    VEC(struct event_schema) schemas;
    size_t *schema_of;                   /* schema by source */
    struct event_column columns[EVENT_COLUMNS]; size_t n_columns;
    uint32_t *first_stream;              /* first stream of each source */
    char **channels; uint32_t n_streams; /* channels by stream */
};

/* Scope of the fields that a column shows, if it shows fields. */
static inline bool event_column_scope(int64_t id, enum ctf_scope *out)
{
    *out = id == EVENT_PACKET_CONTEXT ? CTF_PACKET_CONTEXT
        : id == EVENT_STREAM_CONTEXT  ? CTF_STREAM_EVENT_CONTEXT
        : id == EVENT_CONTEXT         ? CTF_EVENT_CONTEXT
                                      : CTF_PAYLOAD;
    return *out != CTF_PAYLOAD || id == EVENT_CONTENTS;
}

/* Host whose kernel trace the source is, with stores about its events; or NULL. */
static inline const struct index_host *event_index(const struct event_table *t, uint32_t source)
{
    const struct index_host *h = t->origins[source].index;
    return h && h->trace == t->sources[source].trace ? h : NULL;
}

/* Converts a time of the table to the clock of the source's host. */
static inline int64_t event_host_time(const struct event_table *t, uint32_t source, int64_t time)
{
    const struct clock_map *map = t->origins[source].map;
    return map ? clock_from_reference(map, time) : time;
}

#endif
