/* SPDX-License-Identifier: MIT */
/* Private to views: whose critical path a configuration asks for. */
#ifndef WEFT_VIEWS_CRITICAL_QUESTION_H
#define WEFT_VIEWS_CRITICAL_QUESTION_H

#include "views/view.h"
#include "views/views.h"

/* Parameters: thread ("HOST:TID", "HOST:NAME", TID as number or text, NAME), host (a name, optional), id (of the
 * thread's entry, which tells lives of one number apart; optional), begin and end (ns, or times as people write them;
 * optional), polling ("assume", optional), request (true, optional), elsewhere (true, optional: the thread is of a
 * machine whose traces another node of the cluster has). */
extern const char critical_question_schema[]; /* JSON schema */

/* row: numbers of the experiment's `paths`, or with `elsewhere` nothing; the interval is not yet clipped */
struct critical_question {
    struct path_row row;
    struct views_far_thread far;
    int64_t begin, end;
    bool assume_polling, request, elsewhere;
    enum tsp_code wrong;             /* of what is wrong with it */
};
/* Key of the host whose clock the experiment's times are by, as far as the host (a number in its `paths`) knows. */
uint64_t critical_reference(const struct views *, int32_t path_host);
/* NULL; or what is wrong and what to do, in the arena. A thread of several lives or hosts is refused with the list of
 * what it may mean. */
const char *critical_question_parse(struct views *, json_t *parameters, struct arena *,
    struct critical_question *out);
/* Text that equal questions share. */
const char *critical_question_key(json_t *parameters, struct arena *);

#endif
