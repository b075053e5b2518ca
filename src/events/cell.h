/* Private to events: cells of the events table. */
#ifndef WEFT_EVENTS_CELL_H
#define WEFT_EVENTS_CELL_H

#include "events/prio.h"

/* Clients keep these numbers: new columns go behind. */
enum event_column { EVENT_TIMESTAMP, EVENT_TRACE, EVENT_CHANNEL, EVENT_CPU, EVENT_TYPE, EVENT_CONTENTS,
    EVENT_PACKET_CONTEXT, EVENT_STREAM_CONTEXT,
                    EVENT_CONTEXT, EVENT_TID, EVENT_PID, EVENT_TIMESTAMP_NS, EVENT_PRIO, EVENT_COLUMNS };

/* What cells need to know of the experiment; immutable. */
struct event_cells {
    const struct views *x;
    struct tsp_column columns[EVENT_COLUMNS]; /* those that this experiment has; their id is the event_column */
    size_t n_columns;
    uint32_t *first_stream;          /* of each source; owned */
    char **channels;                 /* by stream; owned */
    uint32_t n_streams;
};
void event_cells_init(struct event_cells *, const struct views *);
void event_cells_fini(struct event_cells *);
/* Appends the text of the cell: columns[column] of the event. */
void event_cell_write(const struct event_cells *, struct event_prios *, size_t column, const struct ctf_event *,
    uint32_t source, struct text *out);
/* The fields that a column shows of an event; false: it shows something else. */
bool event_cell_scope(const struct event_cells *, size_t column, enum ctf_scope *);
/* An integer field of the event; false: it has none. */
bool event_field_integer(const struct ctf_event *, enum ctf_scope, const char *name, int64_t *out);

#endif
