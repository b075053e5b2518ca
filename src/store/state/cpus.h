/* SPDX-License-Identifier: MIT */
/* Private to state: states of CPUs and interrupts while records arrive. */
#ifndef WEFT_STATE_CPUS_H
#define WEFT_STATE_CPUS_H

#include "state/gaps.h"
#include "state/series.h"

struct kernel_record;
struct state_builder;

enum { BUILDER_FRAMES = 12, BUILDER_PENDING = 1 << 16, BUILDER_MOST_CPUS = 1 << 16 };

/* Open interrupt handler. */
struct builder_frame {
    uint64_t latency;
    int64_t since;
    uint32_t serial, code;   /* code: value on the CPU's row */
    uint32_t irq;            /* row, in `irqs` */
    uint32_t track;          /* interrupts only, not softirqs */
    uint8_t kind;            /* enum state_latency_kind */
};

/* Row of an interrupt on one CPU. */
struct builder_irq {
    struct series series;
    uint8_t kind;            /* enum state_kind */
    int32_t number;
    int32_t cpu;
    uint32_t code;           /* code of its name */
    uint32_t handler_code;   /* code of its name and the CPU; 0: none yet */
};

/* Record on a CPU whose current thread was not known. */
enum pending_kind { PENDING_OVERLAY, PENDING_CALL, PENDING_RETURN, PENDING_PAGES };
struct builder_pending {
    int64_t ts, ret;         /* CALL: ret is the futex; PAGES: their number */
    uint32_t code;
    uint8_t kind;
    uint8_t io;              /* RETURN: enum kernel_io */
    uint8_t operation;       /* CALL: futex operation */
};

struct state_builder_cpu {
    struct series state, thread;
    int32_t row;             /* current thread; NOBODY: unknown */
    bool deaf;               /* events are missing until deaf_end, or until its next event if that is earlier */
    bool absent;             /* deaf because its stream is missing */
    uint8_t depth;
    int64_t deaf_begin, deaf_end;
    builder_gaps gaps;       /* gaps of this CPU's events */
    int64_t last_ts;         /* time of its last record */
    struct builder_frame frames[BUILDER_FRAMES];
    VEC(struct builder_pending) pending;
};

struct state_builder_cpu *state_builder_cpu(struct state_builder *, uint32_t cpu);
void state_builder_cpu_switch(struct state_builder *, struct state_builder_cpu *, const struct kernel_record *);
void state_builder_cpu_call(struct state_builder *, struct state_builder_cpu *, const struct kernel_record *);
void state_builder_cpu_pages(struct state_builder *, struct state_builder_cpu *, const struct kernel_record *);
void state_builder_cpu_clear(struct state_builder *, struct state_builder_cpu *, int64_t ts);
void state_builder_cpu_heard(struct state_builder *, struct state_builder_cpu *, int64_t ts);
void state_builder_cpu_finish(struct state_builder *, struct state_builder_cpu *, int64_t ts);
void state_builder_lost(struct state_builder *, const struct kernel_record *);
void state_builder_absent(struct state_builder *, const struct kernel_record *); /* handles a missing stream */
void state_builder_irq_enter(struct state_builder *, struct state_builder_cpu *, const struct kernel_record *);
void state_builder_irq_exit(struct state_builder *, struct state_builder_cpu *, const struct kernel_record *);

#endif
