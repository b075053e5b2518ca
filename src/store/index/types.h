/* SPDX-License-Identifier: MIT */
/* Private to index: counts of events by class, while a chunk is read and of all chunks of a trace. */
#ifndef WEFT_INDEX_TYPES_H
#define WEFT_INDEX_TYPES_H

#include "base/mem.h"
#include "base/store.h"
#include "ctf/ctf.h"
#include "index/index.h"

struct types_builder {
    const struct ctf_trace *trace;
    const struct ctf_event_class *const *classes;
    size_t n_classes, n_indices; /* n_indices: above all class indices */
    uint64_t *counts;            /* items by class index so far, losses included */
    uint64_t since;              /* items since counts were last stored */
    int64_t last;                /* greatest time so far */
    VEC(int64_t) times;
    VEC(uint64_t) before;        /* for each of `times`, by class index: items before it */
    VEC(uint32_t) used;          /* classes to be written */
};
struct types_builder *index_types_builder_new(const struct ctf_trace *);
/* Takes new classes of the trace, before their events are added. */
void index_types_builder_extend(struct types_builder *);
/* Adds merged items of that trace alone, in order; n > 0. */
void index_types_builder_add(struct types_builder *, const struct ctf_event *, size_t n);
/* Adds the sections, once; they are the builder's. */
void index_types_builder_store(struct types_builder *, struct store_writer *);
void index_types_builder_free(struct types_builder *);

/* Opens the counts from the chunks of a trace, which must outlive them. ERR_FORMAT: they belong to another trace. */
struct index_history; struct index_known;
int index_types_open(const struct ctf_trace *, const struct index_known *, const struct index_history *,
    struct index_types **out, struct err *e);
void index_types_close(struct index_types *);

#endif
