/* Private to events: does an event fit regular expressions on its cells, and an expression on its fields? */
#ifndef WEFT_EVENTS_MATCH_H
#define WEFT_EVENTS_MATCH_H

#include "events/cell.h"

/* What depends on the event's type, stream or CPU alone is found out once for each of them; other cells are printed
 * last. One owner. */
struct event_match;
/* cells: {column id: regular expression}, or NULL. where: as `weft events --where`, or NULL. Errors are those of the
 * expression. */
int event_match_new(const struct event_cells *, json_t *cells, const char *where, struct event_match **out,
    struct err *e);
/* Without any expression: false. With `where` it must be asked for every item of the merge from its begin, in order. */
bool event_match_fits(struct event_match *, const struct ctf_merge *, const struct ctf_event *);
/* A column is asked for that is not there: nothing fits. */
bool event_match_impossible(const struct event_match *);
void event_match_free(struct event_match *);

#endif
