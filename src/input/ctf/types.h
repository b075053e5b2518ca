/* SPDX-License-Identifier: MIT */
/* Declarations in a trace's metadata: types, fields and classes of events. Part of ctf.h; read-only. */
#ifndef WEFT_CTF_TYPES_H
#define WEFT_CTF_TYPES_H

#include <stdbool.h>
#include <stdint.h>

/* WIDE: bits of an integer, a boolean, a bit map or a floating-point number of more than 64 bits (CTF 2). Visitors get
 * text. */
enum ctf_kind {
    CTF_INT, CTF_FLOAT, CTF_ENUM, CTF_STRING, CTF_STRUCT, CTF_ARRAY, CTF_SEQUENCE, CTF_VARIANT, CTF_WIDE
};

/* Meaning of an integer's bits. CTF 1.8 has only PLAIN. BOOL: 0 or 1 after reading. FLAGS: ranges are those of the bits
 * of each flag; no container. */
enum ctf_look { CTF_LOOK_PLAIN, CTF_LOOK_BITS, CTF_LOOK_FLAGS, CTF_LOOK_BOOL, CTF_LOOK_FLOAT };
enum ctf_encoding { CTF_UTF8, CTF_UTF16BE, CTF_UTF16LE, CTF_UTF32BE, CTF_UTF32LE };

/* Label of an enumeration; lo and hi of unsigned enumerations are unsigned values. */
struct ctf_range {
    const char *label;
    int64_t lo, hi;
};

/* Values lo to hi of a variant's tag (compared as the tag's signedness says) select this option. */
struct ctf_choice { int64_t lo, hi; uint32_t option; };

struct ctf_type;
struct ctf_field {
    const char *name;        /* name as written; in CTF 1.8 with the leading underscore added by LTTng */
    const char *shown;       /* name as in babeltrace2: without that underscore, unless another field has this name;
                              * unique */
    const struct ctf_type *type;
};

/* Type. Alignments are relative to the packet's start. */
struct ctf_type {
    uint8_t kind;            /* enum ctf_kind */
    bool is_signed, big_endian, is_text; /* integers; is_text: encoding UTF8 or ASCII (an array of such is a string) */
    uint8_t base;            /* 2, 8, 10, 16: how integers are shown */
    uint32_t align_bits;     /* power of two, >= 1 */
    uint8_t look;            /* enum ctf_look; integers, WIDE */
    uint8_t encoding;        /* enum ctf_encoding; strings, and arrays and sequences of text */
    bool is_blob;            /* arrays and sequences of bytes without meaning */
    bool is_optional;        /* variants of one option, which may be absent: its name is "value" */
    const char *media_type;  /* BLOBs; else NULL */
    int64_t size_bits;       /* size from an aligned start; -1 if it depends on the data (also LEB128 integers) */
    uint32_t n;              /* fields of a struct or variant, labels of an enumeration, elements of an array */
    union {
        const struct ctf_field *fields;      /* struct, variant */
        struct { const struct ctf_range *ranges; const struct ctf_type *container; } enumeration;
        struct { const struct ctf_type *element; struct ctf_ref *length; } list; /* array, sequence (length: private) */
    } u;
    /* ---- private ---- */
    struct ctf_ref *tag;     /* variants */
    int32_t clock;           /* integers: number of the clock that they are mapped to, by name; else -1 */
    uint32_t slot;           /* != 0: slot that keeps the value while decoding, because a length or tag refers to it */
    uint16_t roles;          /* bit per enum ctf_role */
    uint8_t shown_as;        /* enum ctf_shown_as */
    bool is_reversed;        /* the bit order is not the byte order's */
    bool is_leb;             /* integers: LEB128 */
    bool may_miss;           /* slot that is not set if a variant before it holds another option */
};
/* Returns the type of the field that selects the option of a variant: an integer, or an enumeration. NULL: not a
 * variant. If the tag is itself within a variant (CTF 2), returns one of several types of one signedness. */
const struct ctf_type *ctf_variant_tag(const struct ctf_type *);
/* Returns the mapping of tag values to options; the first hit counts. */
uint32_t ctf_variant_choices(const struct ctf_type *, const struct ctf_choice **out);

enum ctf_scope {
    CTF_PACKET_HEADER, CTF_PACKET_CONTEXT, CTF_EVENT_HEADER, CTF_STREAM_EVENT_CONTEXT, CTF_EVENT_CONTEXT, CTF_PAYLOAD,
    CTF_SCOPES
};

/* Kind of an item of a stream. A loss is an item among the events, at the time where it begins. */
enum ctf_item { CTF_EVENT, CTF_LOST_EVENTS, CTF_LOST_PACKETS };

struct ctf_event_class {
    const char *name;
    uint64_t id, stream_id;
    uint32_t index;          /* dense, unique among all classes of the schema (losses have 0 and 1) */
    uint8_t item;            /* enum ctf_item */
    int64_t loglevel;        /* -1 if not given */
    const char *model_uri;   /* NULL if not given */
    const struct ctf_type *scope[CTF_SCOPES]; /* NULL if the class has no such scope; always struct types */
    const struct ctf_layout *layout; /* private */
};

#endif
