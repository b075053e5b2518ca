/* SPDX-License-Identifier: MIT */
/* Private to events: texts of the table's cells. */
#ifndef WEFT_EVENTS_CELL_H
#define WEFT_EVENTS_CELL_H

#include "events/thread.h"

/* Appends the text of the cell. */
void events_cell_write(const struct event_table *, struct event_threads *, size_t column, const struct ctf_event *,
    uint32_t source, struct text *out);

#endif
