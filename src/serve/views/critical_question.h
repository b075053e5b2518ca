/* SPDX-License-Identifier: MIT */
/* Private to views: parsing of a request for a critical path. */
#ifndef WEFT_VIEWS_CRITICAL_QUESTION_H
#define WEFT_VIEWS_CRITICAL_QUESTION_H

#include "views/view.h"
#include "views/views.h"

/* Parameters: thread ("HOST:TID", "HOST:NAME", TID as number or text, NAME); host (a name, optional); id (of the
 * thread's entry, to distinguish lives with the same number; optional); begin and end (ns, or times as text; optional);
 * polling ("assume", optional); request (true, optional); elsewhere (true, optional: another node of the cluster has
 * the traces of the thread's machine). */
extern const char critical_question_schema[]; /* JSON schema */

/* row: in numbers of the experiment's `paths`; unused with `elsewhere`. The interval is not yet clipped. */
struct critical_question {
    struct path_row row;
    struct views_far_thread far;
    int64_t begin, end;
    bool assume_polling, request, elsewhere;
    enum tsp_code wrong;             /* code of the error */
};
/* Key of the host whose clock the experiment's times use, as far as the host (a number in its `paths`) knows. */
uint64_t critical_reference(const struct views *, int32_t path_host);
/* Returns NULL, or an error message with advice, in the arena. A thread with several lives or hosts is refused; the
 * message lists them. */
const char *critical_question_parse(struct views *, json_t *parameters, struct arena *,
    struct critical_question *out);
/* Text that is equal for equal questions. */
const char *critical_question_key(json_t *parameters, struct arena *);

#endif
