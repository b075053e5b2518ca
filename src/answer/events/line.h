/* SPDX-License-Identifier: MIT */
/* Private to events: columns of lines that are not names of expressions. */
#ifndef WEFT_EVENTS_LINE_H
#define WEFT_EVENTS_LINE_H

enum events_line_column { EVENT_LINE_VALUE, EVENT_LINE_TIME, EVENT_LINE_DELTA, EVENT_LINE_LOST };
extern const char *const event_line_columns[]; /* names of these columns, ended by NULL */
/* EVENT_LINE_VALUE: no such column. */
enum events_line_column events_line_column(const char *name);

#endif
