/* SPDX-License-Identifier: MIT */
/* Private to kernel: positions of the fields of a trace's event classes. */
#ifndef WEFT_KERNEL_BINDING_H
#define WEFT_KERNEL_BINDING_H

#include <string.h>

#include "base/arena.h"
#include "ctf/ctf.h"
#include "kernel/kernel.h"

enum { KERNEL_FIELDS = 6, KERNEL_COMM_BYTES = 16 };

/* Integer at a fixed offset, little endian: value = ((load64(payload + offset) << shift) >> shift) & mask. Absent
 * fields have mask 0. */
struct kernel_field {
    uint32_t offset;
    uint8_t shift;
    uint64_t mask;
};

/* Text: `offset` >= 0 if it is always at that offset of the payload. */
struct kernel_text {
    int32_t offset;
    uint16_t array_bytes; /* fixed arrays; 0 for strings */
    struct ctf_access access;
};

struct kernel_header_plan; /* packet.c */

/* Namespaces of the current thread in a class's contexts, by enum kernel_space_kind. */
struct kernel_space_contexts {
    struct ctf_access access[KERNEL_SPACE_KINDS];
};

/* Rarely used parts of a plan. */
struct kernel_cold {
    const char *name; /* name of the system call, IPI */
    struct kernel_text text[2];
    const struct kernel_header_plan *header;
    struct ctf_access files;  /* STATEDUMP_THREAD: address of the table of descriptors */
    struct ctf_access level;  /* STATEDUMP_THREAD: level of the namespace, in old ones */
    bool has_cpu;             /* perf: the CPU is a field */
    struct ctf_access cpu;
    struct ctf_access access[]; /* all fields again, for offsets that are not fixed */
};

/* Performance counters in a class's contexts. */
struct kernel_counters {
    size_t n;
    struct kernel_counter {
        int number; /* number in the binding's counters */
        struct ctf_access access;
    } v[];
};

struct kernel_plan {
    uint8_t kind;             /* enum kernel_kind */
    uint8_t declared;         /* kind before the choice of which events stand for what */
    uint8_t n;                /* number of fields */
    bool fast;                /* all present fields are kernel_fields, at fixed offsets */
    uint8_t present;          /* bit per field */
    bool by_wakeup;           /* sched_wakeup is bound to WAKE */
    bool socket;              /* PACKET of inet_sock_local_*: seq, ack, flags only */
    uint8_t net_header_bytes; /* PACKET: link header that `len` includes */
    bool futex;               /* SYSCALL_ENTRY of futex: fields 1 and 2 are its address and operation */
    uint8_t io;               /* SYSCALL: enum kernel_io, by its name */
    bool timer;               /* IPI: the local timer's vector */
    uint8_t space_call;       /* SYSCALL_ENTRY: enum kernel_space_call; fields 1 and 2 and text 0 are its arguments */
    uint8_t space;            /* STATEDUMP_SPACE: enum kernel_space_kind */
    uint8_t stacks;           /* kernel_stacks_bind */
    struct kernel_field field[KERNEL_FIELDS];
    const struct kernel_cold *cold;         /* NULL for OTHER and LOST */
    const struct kernel_counters *counters; /* NULL: none */
    const struct kernel_space_contexts *spaces; /* NULL: none */
};

struct kernel_binding {
    const struct ctf_trace *trace;
    struct kernel_plan *plans; /* plans by class index */
    size_t n;
    /* Calls that make namespaces are recorded: clone, unshare, both. */
    bool makes_spaces, unshares, tells_spaces;
    bool old_states; /* kernel before 4.14, with other numbers of task states */
    bool has[KERNEL_KINDS], declared[KERNEL_KINDS];
    const char *counters[KERNEL_MOST_COUNTERS]; /* names */
    size_t n_counters;
    struct arena arena;
};

/* Values of all fields; absent ones are 0. */
void kernel_fields_slow(const struct ctf_event *, const struct kernel_plan *, int64_t values[KERNEL_FIELDS]);
static inline int64_t kernel_field_at(const uint8_t *payload, const struct kernel_field *f)
{
    uint64_t v;
    memcpy(&v, payload + f->offset, 8);
    return (int64_t)((uint64_t)((int64_t)(v << f->shift) >> f->shift) & f->mask);
}
static inline void kernel_fields(const struct ctf_event *ev, const struct kernel_plan *p, int64_t values[KERNEL_FIELDS])
{
    if (__builtin_expect(!p->fast, 0)) {
        kernel_fields_slow(ev, p, values);
        return;
    }
    const uint8_t *payload = ev->data + (ev->payload_bits >> 3);
    for (int i = 0; i < 3; i++)
        values[i] = kernel_field_at(payload, &p->field[i]);
    if (p->n > 3)
        for (int i = 3; i < KERNEL_FIELDS; i++)
            values[i] = kernel_field_at(payload, &p->field[i]);
    else
        values[3] = values[4] = values[5] = 0;
}

/* Text number i of an event: not terminated, *n bytes; "" if absent. */
const char *kernel_text(const struct ctf_event *, const struct kernel_plan *, int i, size_t *n);
bool kernel_text_present(const struct kernel_plan *, int i);

/* Numbers in the lists with one of these names in an event's payload. */
struct kernel_list {
    const char *names[2]; /* the second may be NULL */
    size_t n;
    int64_t first[2], last;
    bool inside;          /* state while reading */
};
/* Reads the lists. All fields except the names must be 0 before. */
void kernel_list_read(const struct ctf_event *, struct kernel_list *);

/* counters.c */
void kernel_counters_bind(struct kernel_binding *, struct kernel_plan *, const struct ctf_event_class *);
void kernel_counters_read(const struct kernel_counters *, const struct ctf_event *, struct kernel_record *,
    int64_t values[KERNEL_MOST_COUNTERS]);

/* stacks.c: contexts of a class with call stacks; 0: none. Reading returns whether there are any addresses. */
uint8_t kernel_stacks_bind(const struct ctf_event_class *);
bool kernel_stacks_read(uint8_t bound, const struct ctf_event *, struct kernel_stack out[KERNEL_STACK_KINDS]);

/* io.c: flags of a block request whose `rwbs` is text. */
uint32_t kernel_rwbs(const struct ctf_event *, const struct kernel_plan *);
/* The two descriptors returned by a call of KERNEL_IO_PAIR; -1 if the event does not have them. */
void kernel_io_pair(const struct ctf_event *, int32_t *first, int64_t *second);
/* System call that uses file descriptors: names of the arguments for `fd`, `other` and `flags` of its record, and of
 * the path. */
struct kernel_io_call {
    const char *name;
    uint8_t io; /* enum kernel_io */
    const char *fields[3], *path;
};
const struct kernel_io_call *kernel_io_call(const char *name); /* NULL: none; name may be NULL */

/* packet.c: plan for the network headers of a class; NULL if the class has none. */
const struct kernel_header_plan *kernel_header_bind(struct arena *, const struct ctf_event_class *);
/* Fills *out except number and device. `len`: field of the event, without the link header; 0: unknown. */
void kernel_header_read(const struct kernel_header_plan *, const struct ctf_event *, uint64_t len,
    struct kernel_packet *out);

#endif
