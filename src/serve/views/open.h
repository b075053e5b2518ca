/* SPDX-License-Identifier: MIT */
/* Private to views: opening the traces of an experiment. */
#ifndef WEFT_VIEWS_OPEN_H
#define WEFT_VIEWS_OPEN_H

#include "views/view.h"
#include "views/views.h"

/* Opens the traces of x->request, and sets all of `x` that comes from the traces. After a failure x->x may be NULL. */
int views_open_traces(struct views *x, const struct views_options *, struct err *);

#endif
