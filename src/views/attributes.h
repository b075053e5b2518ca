/* Private to views: all that the state stores of an experiment hold, as a tree of attributes. */
#ifndef WEFT_VIEWS_ATTRIBUTES_H
#define WEFT_VIEWS_ATTRIBUTES_H

#include "base/arena.h"
#include "base/mem.h"
#include "views/view.h"

/* What an attribute's states say of the intervals of its row. */
enum attribute_view {
    ATTRIBUTE_GROUP,                     /* nothing: it has no states */
    ATTRIBUTE_STATUS,                    /* the value's name */
    ATTRIBUTE_CALL,                      /* the system call */
    ATTRIBUTE_CPU_OF_THREAD,             /* the CPU that a thread has */
    ATTRIBUTE_THREAD,                    /* TID of the thread that has a CPU */
    ATTRIBUTE_CPU,                       /* the CPU that handles an interrupt */
    ATTRIBUTE_AMOUNT                     /* a counter's value */
};
struct attribute {
    int64_t parent;                      /* index of an earlier one; -1: a root, a host */
    size_t host;
    int kind; size_t row;                /* of the store; not of groups */
    enum attribute_view view;
    const char *label, *name;            /* name: what it is called beside, or "" */
};
struct attributes {
    VEC(struct attribute) v;
    struct arena texts;
};
void attributes_fill(struct attributes *, const struct views *);
void attributes_fini(struct attributes *);
/* "host/CPUs/0/Status". */
const char *attribute_path(const struct attributes *, const struct attribute *, struct arena *);

#endif
