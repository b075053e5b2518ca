/* SPDX-License-Identifier: MIT */
#include "views/futex_calls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- styles ---- */

enum look { WAIT, TIMED_OUT, REFUSED, INTERRUPTED, WAIT_CUT, WAKE, WAKE_CUT, DOUBT, LOOKS };
static const struct view_look looks[LOOKS] = {
    [WAIT] = {"Futex wait", LOOK_BLOCKED, 1},
    [TIMED_OUT] = {"Futex wait timed out", LOOK_TIMER, 1},
    [REFUSED] = {"Futex wait refused", LOOK_IDLE, 0.5},
    [INTERRUPTED] = {"Futex wait interrupted", LOOK_INTERRUPTED, 1},
    [WAIT_CUT] = {"Futex wait without an end", LOOK_STOLEN, 1},
    [WAKE] = {"Futex wake", LOOK_RUNNING, 0.75},
    [WAKE_CUT] = {"Futex wake without an end", LOOK_STOLEN, 0.75},
    [DOUBT] = {"Unknown", LOOK_UNKNOWN, 0.33},
};

void futex_write_styles(struct tsp_answer *answer)
{
    view_write_looks(answer, looks, LOOKS);
}

/* Name of the value that the kernel returns instead of EINTR before it decides on a restart of the call; or NULL. */
static const char *restart_name(int64_t number)
{
    switch (number) {
    case 512: return "ERESTARTSYS";
    case 513: return "ERESTARTNOINTR";
    case 514: return "ERESTARTNOHAND";
    case 516: return "ERESTART_RESTARTBLOCK";
    default: return NULL;
    }
}

static enum look look_of(const struct state_interval *iv)
{
    if (iv->value == STATE_FUTEX_WAKE)
        return iv->cut ? WAKE_CUT : WAKE;
    if (iv->value != STATE_FUTEX_WAIT)
        return DOUBT;
    if (iv->cut)
        return WAIT_CUT;
    return iv->amount >= 0                                  ? WAIT
        : iv->amount == -ETIMEDOUT                          ? TIMED_OUT
        : iv->amount == -EINTR || restart_name(-iv->amount) ? INTERRUPTED
                                                            : REFUSED;
}

/* Result of the call, in a word or two. */
static const char *result(const struct state_interval *iv, char *room, size_t n)
{
    if (iv->cut)
        return "not seen to end";
    if (iv->amount < 0) {
        const char *name = restart_name(-iv->amount);
        name = name || iv->amount < -4095 ? name : strerrorname_np((int)-iv->amount);
        snprintf(room, n, "%" PRId64, iv->amount);
        return name ? name : room;
    }
    if (iv->value == STATE_FUTEX_WAIT)
        return "woken";
    snprintf(room, n, "woke %" PRId64, iv->amount);
    return room;
}

static bool is_call(const struct state_interval *iv)
{
    return iv->value == STATE_FUTEX_WAIT || iv->value == STATE_FUTEX_WAKE;
}

void futex_show(const struct view_sampler *s, const struct view_host *h, size_t user, const struct state_interval *iv,
    struct view_shown *out)
{
    if (iv->value == STATE_NONE)
        return;
    out->style_key = looks[look_of(iv)].key;
    out->label = is_call(iv) ? result(iv, out->text, sizeof out->text) : NULL;
    if (!s->q->filter)
        return;
    struct state_row row;
    struct graph_row thread;
    state_row(h->states, STATE_FUTEX_USER, user, &row);
    view_add_property(out, "state", out->style_key);
    view_add_property(out, "host", h->index->name);
    view_add_property(out, "futex", row.name);
    view_add_property(out, "operation", iv->name);
    view_add_property(out, "result", out->label);
    if (row.thread >= 0 && row.thread < h->threads) {
        graph_row_then(h->index->graph, row.thread, iv->begin, iv->end, &thread);
        view_add_property(out, "process", thread.name);
        view_add_number(out, "tid", thread.tid);
        view_add_number(out, "thread", thread.tid);
    }
}

/* ---- wakers ---- */

bool futex_woken_by(const struct view_host *h, const struct state_interval *wait, struct futex_wake *out)
{
    enum { STEPS = 64 }; /* limit of a thread's steps between its wake-up and its return */
    const struct graph *g = h->index->graph;
    if (!g || wait->value != STATE_FUTEX_WAIT || wait->cut || wait->thread < 0 || wait->thread >= h->threads)
        return false;
    uint64_t i = graph_find(g, wait->thread, wait->end);
    for (int step = 0; i != GRAPH_NO_INTERVAL && step < STEPS; step++) {
        struct graph_interval iv;
        struct graph_cause c;
        graph_interval(g, wait->thread, i, &iv);
        if (iv.end <= wait->begin)
            return false;
        graph_interval_cause(g, wait->thread, i, &c);
        if (iv.state == GRAPH_BLOCKED && c.kind == GRAPH_CAUSE_WAKEUP && c.row >= 0 && c.row < h->threads) {
            *out = (struct futex_wake){c.row, c.ts};
            return c.ts >= wait->begin && c.ts <= wait->end;
        }
        if (iv.state != GRAPH_RUNNING && iv.state != GRAPH_PREEMPTED && iv.state != GRAPH_INTERRUPTED)
            return false;
        i = graph_previous(g, wait->thread, i);
    }
    return false;
}

/* ---- tooltips ---- */

void futex_write_call(struct tsp_answer *answer, const struct view_host *h, size_t user, int64_t t)
{
    struct state_row row;
    struct state_interval iv;
    struct futex_wake wake;
    char room[48];
    state_row(h->states, STATE_FUTEX_USER, user, &row);
    tsp_write_tip(answer, "Futex", row.name);
    view_write_thread(answer, h, row.thread, t, "Process", "TID");
    if (!state_at(h->states, STATE_FUTEX_USER, user, t, &iv) || iv.value == STATE_NONE)
        return;
    tsp_write_tip(answer, "State", looks[look_of(&iv)].key);
    if (is_call(&iv)) {
        tsp_write_tip(answer, "Operation", iv.name);
        tsp_write_tip(answer, "Result", result(&iv, room, sizeof room));
    }
    if (futex_woken_by(h, &iv, &wake)) {
        view_write_thread(answer, h, wake.thread, wake.at, "Woken by", "Woken by TID");
        view_write_duration(answer, "Wake to return", iv.end - wake.at);
    }
    view_write_interval(answer, h, &iv);
}
