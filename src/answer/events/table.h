/* SPDX-License-Identifier: MIT */
/* Private to events: what the table is made of. */
#ifndef WEFT_EVENTS_TABLE_H
#define WEFT_EVENTS_TABLE_H

#include "base/mem.h"
#include "events/events.h"

/* Event classes that several sources may share. */
struct event_schema { const struct ctf_event_class *const *classes; size_t n; };

struct event_table {
    const struct ctf_source *sources; size_t n;
    struct event_origin *origins;        /* by source; owned, and so is all below */
    VEC(struct event_schema) schemas;
    size_t *schema_of;                   /* by source */
    struct event_column columns[EVENT_COLUMNS]; size_t n_columns;
    uint32_t *first_stream;              /* of each source */
    char **channels; uint32_t n_streams; /* by stream */
};

/* The fields that a column shows, when it does. */
static inline bool event_column_scope(int64_t id, enum ctf_scope *out)
{
    *out = id == EVENT_PACKET_CONTEXT ? CTF_PACKET_CONTEXT
        : id == EVENT_STREAM_CONTEXT  ? CTF_STREAM_EVENT_CONTEXT
        : id == EVENT_CONTEXT         ? CTF_EVENT_CONTEXT
                                      : CTF_PAYLOAD;
    return *out != CTF_PAYLOAD || id == EVENT_CONTENTS;
}

/* The host that the source is the kernel trace of, whose stores speak of its events; or NULL. */
static inline const struct index_host *event_index(const struct event_table *t, uint32_t source)
{
    const struct index_host *h = t->origins[source].index;
    return h && h->trace == t->sources[source].trace ? h : NULL;
}

/* A time of the table by the clock of the source's host. */
static inline int64_t event_host_time(const struct event_table *t, uint32_t source, int64_t time)
{
    const struct clock_map *map = t->origins[source].map;
    return map ? clock_from_reference(map, time) : time;
}

#endif
