/* SPDX-License-Identifier: MIT */
/* Private to state: codes while they are made: pairs of value and name that entries of rows refer to. */
#ifndef WEFT_STATE_CODES_H
#define WEFT_STATE_CODES_H

#include "state/series.h"

struct kernel_record;
struct state_builder;

/* Source of a code's name. Names are resolved when the store is written, because they may arrive after their first
 * use. */
enum code_name { CODE_NO_NAME, CODE_STRING, CODE_IRQ, CODE_VECTOR, CODE_LOCK, CODE_OTHER_LOCKS, CODE_REQUEST };
struct state_builder_code {
    uint8_t value, kind;     /* enum state_value, enum code_name */
    int32_t cpu;
    /* Text, irq, vector, index in locks; REQUEST: index in requests << STATE_REQUEST_TYPE_BITS | type. */
    uint32_t ref;
};

/* Futex of a process; -1: unknown process. */
struct builder_lock {
    uint64_t address;
    int32_t tgid;
};

uint32_t state_builder_code(struct state_builder *, struct state_builder_code);
uint32_t state_builder_new_text(struct state_builder *, uint32_t string);
void state_builder_give_text(struct state_builder *, uint32_t string, uint32_t text);
uint32_t state_builder_new_call_code(struct state_builder *, uint32_t string);
uint32_t state_builder_text_code(struct state_builder *, uint32_t text);
/* numbered: otherwise `number` is the text of its name. */
uint32_t state_builder_irq_code(struct state_builder *, bool numbered, uint32_t number);
/* Code of an interrupt and the CPU that handles it. */
uint32_t state_builder_handler_code(struct state_builder *, uint32_t irq_code, int32_t cpu);
uint32_t state_builder_vector_code(struct state_builder *, uint16_t vector);
uint32_t state_builder_lock_code(struct state_builder *, int32_t row, uint64_t address);
uint32_t state_builder_lock_code_of(struct state_builder *, struct builder_lock);
uint32_t state_builder_other_locks_code(struct state_builder *);
const char *state_builder_vector_name(uint32_t vector); /* NULL beyond the ten that Linux has */

#endif
