/* Private to views: whose critical path a configuration asks for. */
#ifndef WEFT_VIEWS_CRITICAL_QUESTION_H
#define WEFT_VIEWS_CRITICAL_QUESTION_H

#include "views/view.h"

/* Parameters: thread ("HOST:TID", "HOST:NAME", TID as number or text, NAME), host (a name, optional), id (of the
 * thread's entry, which tells lives of one number apart; optional), begin and end (ns, or times as people write them;
 * optional), polling ("assume", optional), request (true, optional). */
extern const char critical_question_schema[]; /* JSON schema */

/* row: numbers of the experiment's `paths`; the interval is not yet clipped */
struct critical_question { struct path_row row; int64_t begin, end; bool assume_polling, request; };
/* NULL; or what is wrong and what to do, in the arena. A thread of several lives or hosts is refused with the list of
 * what it may mean. */
const char *critical_question_parse(struct views *, json_t *parameters, struct arena *,
    struct critical_question *out);
/* Text that equal questions share. */
const char *critical_question_key(json_t *parameters, struct arena *);

#endif
