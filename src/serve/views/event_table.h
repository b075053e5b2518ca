/* SPDX-License-Identifier: MIT */
/* Private to views: the events of an experiment as a table (events/events.h). */
#ifndef WEFT_VIEWS_EVENT_TABLE_H
#define WEFT_VIEWS_EVENT_TABLE_H

#include "events/events.h"
#include "views/view.h"

/* events_table_free() it before the experiment is closed. */
struct event_table *experiment_event_table(const struct views *);

#endif
