/* SPDX-License-Identifier: MIT */
/* Private to ctf: declarations compiled into programs for the decoder.
 *
 * Three ways to read an event, fastest first: a header of a known shape plus one table entry (classes of fixed size); a
 * header of a known shape plus a flat program (classes whose size depends on the data); programs for all. Positions in
 * programs are bits from the packet's start. */
#ifndef WEFT_CTF_LAYOUT_H
#define WEFT_CTF_LAYOUT_H

#include "ctf/schema.h"

/* Role of a number in a packet's or event's header. */
enum ctf_role {
    CTF_ROLE_NONE,
    /* event header */
    CTF_ROLE_ID, CTF_ROLE_CLOCK,
    /* packet header; UUID: the value is the bit position */
    CTF_ROLE_MAGIC, CTF_ROLE_UUID, CTF_ROLE_STREAM_ID, CTF_ROLE_INSTANCE_ID,
    /* packet context */
    CTF_ROLE_BEGIN, CTF_ROLE_END, CTF_ROLE_CONTENT_SIZE, CTF_ROLE_PACKET_SIZE, CTF_ROLE_SEQUENCE,
    CTF_ROLE_DISCARDED, CTF_ROLE_CPU,
    CTF_ROLES
};

enum ctf_op_code {
    CTF_OP_END,
    CTF_OP_SKIP,     /* align, then n bits */
    CTF_OP_INT,      /* align, read `bits`; into the slot and by its role */
    CTF_OP_STRING,   /* align, up to and including the NUL */
    CTF_OP_LIST,     /* align, count elements of fixed size: stride n from one to the next, the last one `size` bits */
    CTF_OP_LOOP,     /* align, count times the ops up to `next` (which end with END) */
    CTF_OP_VARIANT,  /* go to targets[choice of the tag] */
    CTF_OP_JUMP,     /* go to `next` */
    CTF_OP_PAYLOAD,  /* align; the payload starts here */
    CTF_OP_UUID,     /* remembers the position */
    /* CTF 2 */
    CTF_OP_LEB,      /* align, a LEB128 integer; into the slot and by its role */
    CTF_OP_BITS,     /* INT, with `reversed` and `stays` */
    CTF_OP_UNITS,    /* align, up to and including the first zero code unit (`bits` wide) */
    CTF_OP_TEXT,     /* align, count bytes of text in code units of `bits` */
    CTF_OP_UNSET,    /* remove the values of the slots in the mask n */
    CTF_OP_SET,      /* set a value in the slots of the mask n */
    CTF_OP_NEED,     /* fails unless the slot has a value */
    CTF_OP_ORDER     /* align; fails if the bit field before ends within this byte in the other byte order */
};

struct ctf_op {
    uint8_t code, role;
    uint8_t bits;            /* INT: 1..64 */
    bool is_signed, big_endian;
    bool counted;            /* LIST, LOOP, TEXT: the count is in the slot, else it is `count` */
    bool reversed;           /* BITS: in the other bit order */
    bool stays;              /* LEB, BITS: the next op reads the field again, for another role */
    bool optional;           /* VARIANT: go to `next` if nothing is selected */
    uint8_t slot;
    uint32_t align;          /* mask: alignment - 1, in bits */
    uint32_t next;
    uint32_t n_choices;
    uint64_t n, size, count;
    const struct ctf_choice *choices;
    const uint32_t *targets; /* targets by option */
};

/* Entry of the decoder's table, for one class. */
struct ctf_entry {
    const struct ctf_event_class *cls; /* NULL: no such id */
    uint32_t size;           /* bytes from the header's aligned end to the event's; CTF_ENTRY_PROGRAM: dynamic */
    uint16_t pre;            /* bytes from the header's aligned end to the payload */
    uint8_t align;           /* mask in bytes */
    uint8_t unused;
};
enum { CTF_ENTRY_PROGRAM = UINT32_MAX };

struct ctf_layout {
    const struct ctf_stream_plan *plan;
    const struct ctf_op *ops;    /* contexts and payload, from the end of the header; NULL: the class is unreadable */
    struct ctf_entry entry;
    bool packet_slots;       /* lengths or tags refer to numbers in the packet's header or context, maybe by way of the
                              * event header */
    bool header_slots;       /* … in the event header */
};

enum ctf_header_kind {
    CTF_HEADER_PROGRAM,
    CTF_HEADER_SIMPLE,       /* whole bytes: id (or none), time (or none) */
    CTF_HEADER_COMPACT,      /* LTTng: 5 bits id, 27 bits time; id 31: 32 bits id, 64 bits time follow */
    CTF_HEADER_LARGE         /* LTTng: 16 bits id, 32 bits time; id 65535: the same */
};

struct ctf_stream_plan {
    const struct ctf_stream_class *sc;
    const struct ctf_op *packet_header, *packet_context, *event_header; /* NULL: none */
    bool readable;           /* false: a header cannot be compiled */
    bool long_heads;         /* packet header or context has fields to be read byte by byte, or by element */
    bool header_refers;      /* lengths or tags in the event header refer to numbers in the packet's scopes */
    bool mixed;              /* bit fields of both byte orders, in any scope of any class, may share a byte */
    uint8_t kind;            /* enum ctf_header_kind */
    bool big_endian;
    bool has_begin, has_seq, has_discarded; /* fields of the packet context */
    uint8_t seq_bits, discarded_bits, begin_bits, end_bits;
    uint8_t header_align;    /* mask in bytes */
    uint8_t id_at, id_bytes, time_at, time_bytes, header_bytes; /* SIMPLE */
    /* COMPACT, LARGE, masks in bytes: alignment of the time, of the long form and of its time */
    uint8_t short_align, long_align, long_time_align;
    const struct ctf_event_class *only; /* class of all events if the header has no id; or NULL */
    struct ctf_entry *table;
    uint32_t table_n, table_cap;
    uint64_t packet_slots, event_slots; /* bit per slot of a number in the packet's scopes, in the event header */
};

enum { CTF_TABLE_MAX = 65536 };  /* limit of ids in the table; higher ones are searched */

/* Compiles a scope's struct. NULL if a field of it is unreadable. Integers mapped to the clock advance it, unless they
 * have another role in a packet scope. mixed: bit fields of both byte orders may share a byte. */
const struct ctf_op *ctf_program_compile(struct arena *, const struct ctf_type *, enum ctf_scope, int32_t clock,
    bool mixed);
/* Makes the plan of a stream without event classes. */
struct ctf_stream_plan *ctf_stream_plan_compile(struct arena *, const struct ctf_stream_class *,
    const struct ctf_type *packet_header);

/* Sets the kind of the event header (layout_header.c). */
void ctf_plan_header(struct ctf_stream_plan *);

/* Returns a bit per slot of the numbers in a type, which may be NULL. */
uint64_t ctf_type_slots(const struct ctf_type *);

/* Returns the mask, in bytes, of an alignment of whole bytes. */
static inline uint8_t ctf_byte_mask(uint32_t align_bits)
{
    return (uint8_t)((align_bits < 8 ? 8 : align_bits) / 8 - 1);
}

/* Returns the type that holds the bits of an integer or enumeration. */
static inline const struct ctf_type *ctf_type_bits(const struct ctf_type *t)
{
    return t->kind == CTF_ENUM && t->u.enumeration.container ? t->u.enumeration.container : t;
}

#endif
