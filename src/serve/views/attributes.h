/* SPDX-License-Identifier: MIT */
/* Private to views: content of an experiment's state stores as a tree of attributes. */
#ifndef WEFT_VIEWS_ATTRIBUTES_H
#define WEFT_VIEWS_ATTRIBUTES_H

#include "views/rows.h"

/* Value that an attribute takes from the intervals of its row; the `number` of its struct view_row. */
enum attribute {
    ATTRIBUTE_GROUP,                     /* group, without states */
    ATTRIBUTE_STATUS,                    /* the value's name */
    ATTRIBUTE_CALL,                      /* the system call */
    ATTRIBUTE_CPU_OF_THREAD,             /* the CPU that a thread has */
    ATTRIBUTE_THREAD,                    /* TID of the thread that has a CPU */
    ATTRIBUTE_CPU,                       /* the CPU that handles an interrupt */
    ATTRIBUTE_AMOUNT                     /* a counter's value */
};
/* Adds the attributes of one host. */
void attributes_add(const struct view *self, const struct views *, size_t host, struct view_rows *);
/* "host/CPUs/0/Status". */
const char *attribute_path(const struct view_rows *, const struct view_row *, struct arena *);

#endif
