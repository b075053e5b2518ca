/* SPDX-License-Identifier: MIT */
#include "views/looks.h"

/* Styles of states. Keys and heights are those of Trace Compass. */
static const struct view_look looks[STATE_VALUES] = {
    [STATE_USERMODE] = {"Usermode", LOOK_RUNNING, 1},
    [STATE_SYSCALL] = {"System call", LOOK_SYSCALL, 1},
    [STATE_INTERRUPTED] = {"Interrupt", LOOK_INTERRUPTED, 0.75},
    [STATE_WAIT_FOR_CPU] = {"Wait for CPU", LOOK_PREEMPTED, 0.5},
    [STATE_WAIT_BLOCKED] = {"Wait blocked", LOOK_BLOCKED, 0.5},
    [STATE_WAIT_UNKNOWN] = {"Wait", "#a88f8c", 0.5},
    [STATE_IDLE] = {"Idle", LOOK_IDLE, 0.25},
    [STATE_IRQ] = {"IRQ", LOOK_INTERRUPTED, 1},
    [STATE_SOFTIRQ] = {"Soft IRQ", "#c9a227", 1},
    [STATE_SOFTIRQ_RAISED] = {"Soft IRQ raised", "#e8d9a0", 0.5},
    [STATE_ACTIVE] = {"Active", LOOK_INTERRUPTED, 0.75},
    [STATE_UNKNOWN] = {"Unknown", LOOK_UNKNOWN, 0.33},
    [STATE_FUTEX_WAIT] = {"Futex wait", LOOK_BLOCKED, 1},
    [STATE_FUTEX_WAKE] = {"Futex wake", LOOK_RUNNING, 0.75},
};

const char *const view_palette[VIEW_PALETTE] = {"#4c8c6b", "#5b7fb5", "#b8894a", "#a4607a", "#7a6bb0", "#4f9aa0",
    "#8f9a4c", "#b56f5b", "#6d8f4f", "#8a6f9e", "#5f8fae", "#a08458"};

const char *view_state_key(int value)
{
    return value > STATE_NONE && value < STATE_VALUES ? looks[value].key : NULL;
}

static void write_look(struct tsp_answer *answer, const struct view_look *l, double opacity)
{
    tsp_write_style(answer, l->key, NULL, l->color, l->height, opacity, l->key);
}

void view_write_looks(struct tsp_answer *answer, const struct view_look *l, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (l[i].key)
            write_look(answer, &l[i], l[i].opacity > 0 ? l[i].opacity : -1);
}

void view_looks_style(const struct view *self, struct views *x, const struct tsp_query *q, struct tsp_answer *answer)
{
    tsp_begin_styles(answer);
    view_write_looks(answer, self->looks, self->n_looks);
    tsp_end_styles(answer);
}

/* Idle threads and CPUs are not drawn. */
void view_write_state_styles(struct tsp_answer *answer, unsigned states)
{
    for (int i = 0; i < STATE_VALUES; i++)
        if (looks[i].key && states >> i & 1)
            write_look(answer, &looks[i], i == STATE_IDLE ? 0 : -1);
}
