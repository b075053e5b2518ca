/* SPDX-License-Identifier: MIT */
/* Private to ctf: schema, i.e. the streams, events and types declared by metadata. Shared by all traces with the same
 * declarations. */
#ifndef WEFT_CTF_SCHEMA_H
#define WEFT_CTF_SCHEMA_H

#include <stddef.h>

#include "base/arena.h"
#include "ctf/types.h"

/* Slots: the decoder keeps the value of every integer or enumeration whose type has slot != 0 in `slots[slot]`, for
 * lengths and tags. A type with a slot is used at one place only. Slots are numbered per event class (packet scopes and
 * event header first, the same numbers for all classes of a stream), at most CTF_SLOTS - 1. */
enum { CTF_SLOTS = 64 };
/* Maximum nesting of compounds in one scope, counting the scope's struct. Types are walked by recursion: this depth
 * takes some 100 KB of a thread's stack. */
enum { CTF_DEPTH = 512 };
/* Visibility in the text output. SHOWN_BY_RULE: babeltrace2's rules for CTF 1.8, which hide time stamps. */
enum ctf_shown_as { CTF_SHOWN_BY_RULE, CTF_SHOWN, CTF_HIDDEN };
struct ctf_ref {
    const struct ctf_type *target;    /* integer (length, or tag container) or enumeration; the first of several */
    uint32_t slot;
    bool may_miss;                    /* target may be absent, which is an error of the data */
    uint32_t n_choices;               /* variants */
    const struct ctf_choice *choices; /* first hit counts */
};

struct ctf_stream_class {
    uint64_t id;
    const struct ctf_type *event_header, *packet_context, *event_context; /* structs or NULL */
    struct ctf_event_class **by_id;   /* dense where ids are small: by_id[id], NULL for gaps */
    size_t by_id_n;
    struct ctf_event_class **sorted;  /* events by id */
    size_t n;
    struct ctf_stream_plan *plan;     /* reading plan of its packets and events; NULL until its first
                                       * ctf_layout_compile */
    /* Clock of the event header's timestamp, else of the packet context, the event context, the events: number in
     * schema->clock_names; -1 none. */
    int32_t clock;
    bool is_ctf2;                     /* CTF 2: ids default to 0, and the clock starts at 0 in each packet */
};

/* Oddity in the shared declarations. The position counts bytes in the shared parts of the text, so that each trace
 * finds the line in its own text. */
struct ctf_schema_warning { size_t pos; const char *text; };

struct ctf_schema {
    const struct ctf_type *packet_header;      /* struct or NULL */
    struct ctf_stream_class *streams;
    size_t n_streams;
    struct ctf_event_class **classes;          /* classes by index; 0 and 1 are the losses */
    size_t n_classes;
    /* Clock names that integers are mapped to; a trace's clocks are looked up by these. "" means the trace's only
     * clock, for `timestamp`, `timestamp_begin` and `timestamp_end` without a mapping. */
    const char **clock_names;
    size_t n_clock_names;
    bool big_endian;                           /* trace.byte_order */
    bool is_ctf2, has_uuid_role;               /* has_uuid_role: a packet header holds the uuid of the metadata */
    struct ctf_schema_warning *warnings;
    size_t n_warnings;
    struct arena arena;
    unsigned references;                       /* guarded by the lock of ctf_schemas */
    uint64_t hash[2], hashed_bytes;            /* hash and size of the shared parts of the text */
};
void ctf_schema_free(struct ctf_schema *);
/* Returns the class with this id; NULL: there is none. O(log n). */
const struct ctf_stream_class *ctf_schema_stream(const struct ctf_schema *, uint64_t id);
const struct ctf_event_class *ctf_stream_class_event(const struct ctf_stream_class *, uint64_t id);

/* Compiles the reading plan of one class (layout.c); called once per class when its schema is made. Memory from the
 * schema's arena. */
const struct ctf_layout *ctf_layout_compile(struct arena *, const struct ctf_stream_class *,
    const struct ctf_event_class *);

#endif
