/* SPDX-License-Identifier: MIT */
/* What the metadata of a trace declares: types, fields and classes of events. Part of ctf.h; read-only. */
#ifndef WEFT_CTF_TYPES_H
#define WEFT_CTF_TYPES_H

#include <stdbool.h>
#include <stdint.h>

enum ctf_kind { CTF_INT, CTF_FLOAT, CTF_ENUM, CTF_STRING, CTF_STRUCT, CTF_ARRAY, CTF_SEQUENCE, CTF_VARIANT };

/* One label of an enumeration. Of unsigned enumerations lo and hi are unsigned values. */
struct ctf_range {
    const char *label;
    int64_t lo, hi;
};

struct ctf_type;
struct ctf_field {
    const char *name;        /* as written, with the leading underscore that LTTng adds */
    const char *shown;       /* as babeltrace2 shows it: without that, unless another field is shown so; unique */
    const struct ctf_type *type;
};

/* A type. Alignments are relative to the packet's start. */
struct ctf_type {
    uint8_t kind;            /* enum ctf_kind */
    bool is_signed, big_endian, is_text; /* integers; is_text: encoding UTF8 or ASCII (an array of such is a string) */
    uint8_t base;            /* 2, 8, 10, 16: how integers are shown */
    uint32_t align_bits;     /* power of two, >= 1 */
    int64_t size_bits;       /* from an aligned start; -1 when it depends on the data */
    uint32_t n;              /* fields of a struct or variant, labels of an enumeration, elements of an array */
    union {
        const struct ctf_field *fields;      /* struct, variant */
        struct { const struct ctf_range *ranges; const struct ctf_type *container; } enumeration;
        struct { const struct ctf_type *element; struct ctf_ref *length; } list; /* array, sequence (length: private) */
    } u;
    /* ---- private ---- */
    struct ctf_ref *tag;     /* variants */
    int32_t clock;           /* integers: number of the clock that they are mapped to, by name; else -1 */
    uint32_t slot;           /* != 0: the value is remembered while decoding, because a length or tag refers to it */
};
/* The type of the field that selects the option of a variant: an enumeration whose labels name the options. NULL: not a
 * variant. */
const struct ctf_type *ctf_variant_tag(const struct ctf_type *);

enum ctf_scope {
    CTF_PACKET_HEADER, CTF_PACKET_CONTEXT, CTF_EVENT_HEADER, CTF_STREAM_EVENT_CONTEXT, CTF_EVENT_CONTEXT, CTF_PAYLOAD,
    CTF_SCOPES
};

/* What an item of a stream is. Losses are items in the flow of events, at the time where the loss begins. */
enum ctf_item { CTF_EVENT, CTF_LOST_EVENTS, CTF_LOST_PACKETS };

struct ctf_event_class {
    const char *name;
    uint64_t id, stream_id;
    uint32_t index;          /* dense, unique among all classes of the schema (losses have 0 and 1) */
    uint8_t item;            /* enum ctf_item */
    int64_t loglevel;        /* -1 when not given */
    const char *model_uri;   /* or NULL */
    const struct ctf_type *scope[CTF_SCOPES]; /* NULL when the class has no such scope; always struct types */
    const struct ctf_layout *layout; /* private */
};

#endif
