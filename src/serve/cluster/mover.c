/* SPDX-License-Identifier: MIT */
#include "cluster/mover.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/pool.h"
#include "base/time.h"
#include "bus/bus.h"
#include "cluster/giver.h"
#include "cluster/roster.h"
#include "cluster/taker.h"

#define HELLO_NS (5 * NS_PER_S)

struct mover {
    struct mover_options o;
    struct arrivals *arrivals;
    struct giver *giver;
    struct taker *taker;            /* NULL: nothing is received */
    atomic_uint_fast64_t questions; /* that came, but those about moves */
};

static bool has(const struct holding *h, struct move_trace t)
{
    const struct card_host *hosts;
    size_t n = h ? holding_hosts(h, &hosts) : 0;
    for (size_t i = 0; i < n; i++)
        if (move_is_of(t, &hosts[i]))
            return true;
    return false;
}

/* A snip is of no use where all of the trace is. */
static int check_snip(const struct mover *m, const struct holding *h, struct move_trace t, struct err *e)
{
    const struct card_host *hosts;
    size_t n = h ? holding_hosts(h, &hosts) : 0;
    if (!h && m->o.given)
        return err_set(e, ERR_BUSY, "it has not opened its traces yet");
    for (size_t i = 0; i < n; i++)
        if (hosts[i].key == t.key && !hosts[i].snip.is)
            return err_set(e, ERR_ARG, "it has all of that trace");
    return 0;
}

/* ---- load ---- */

struct cluster_load mover_load(struct mover *m)
{
    double load[1] = {0};
    bool known = getloadavg(load, 1) == 1;
    return (struct cluster_load){.cpus = pool_cpus(),
        .load_percent = known && load[0] < 10000 ? (unsigned)(load[0] * 100) : 0,
        .questions = atomic_load(&m->questions),
        .receives = m->taker != NULL,
        .gives = m->o.give,
        .taking = m->taker && taker_takes(m->taker),
        .room_bytes = m->arrivals ? arrivals_room(m->arrivals) : 0};
}

static int answer_load(struct mover *m, struct text *out)
{
    struct cluster_load l = mover_load(m);
    move_load_write(&l, out);
    return 0;
}

/* ---- coming ---- */

static int answer_take(
    struct mover *m, const struct holding *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct move_question q;
    int rc = move_question_read(&a, bytes, n, &q, e);
    if (!rc && has(h, q.trace))
        move_progress_write(&(struct cluster_move_progress){.state = CLUSTER_MOVE_DONE, .text = ""}, out);
    else if (!rc && !m->taker)
        rc = err_set(e, ERR_ARG, "it takes no traces: start it with `weft serve --receive DIR`");
    else if (!rc && !strcmp(q.node, m->o.node))
        rc = err_set(e, ERR_ARG, "a node cannot take a trace from itself");
    else if (!rc && !(rc = move_is_snip(q.trace) ? check_snip(m, h, q.trace, e) : 0))
        rc = taker_take(m->taker, &q, out, e);
    arena_fini(&a);
    return rc;
}

/* ---- going ---- */

/* The instance of the node, if its card says that it has the trace. */
static const char *instance_with(const struct roster *r, const char *node, struct move_trace t)
{
    for (size_t i = 0; i < r->n_cards; i++)
        for (size_t k = 0; !strcmp(r->cards[i].node, node) && k < r->cards[i].n_hosts; k++)
            if (move_is_of(t, &r->cards[i].hosts[k]))
                return r->cards[i].instance;
    return NULL;
}

/* Has the other node said that it has the trace, and is it there to say so? */
static int confirm(const struct mover *m, const struct move_question *q, struct err *e)
{
    char subject[CLUSTER_SUBJECT];
    struct roster r;
    struct bus_reply reply = {0};
    struct text hello = {.fd = -1};
    int rc = roster_read(m->o.nodes, &r, e);
    if (rc)
        return rc;
    const char *instance = instance_with(&r, q->node, q->trace);
    question_begin(&hello, CLUSTER_HELLO);
    if (!instance)
        rc = err_set(e, ERR_BUSY, "node %s has not said yet that it has the trace", q->node);
    if (!rc)
        rc = cluster_subject_of(m->o.cluster, q->node, subject, e);
    if (!rc && bus_ask(m->o.bus, subject, hello.v, hello.n, time_monotonic_ns() + HELLO_NS, &reply))
        rc = err_set(e, ERR_BUSY, "node %s does not answer", q->node);
    if (!rc && (reply.n != strlen(instance) || memcmp(reply.data, instance, reply.n) != 0))
        rc = err_set(e, ERR_BUSY, "node %s has just been started again", q->node);
    bus_reply_free(&reply);
    text_fini(&hello);
    roster_fini(&r);
    return rc;
}

/* What came from another node is put aside; what was recorded here, or given, goes on. */
static int answer_leave(
    struct mover *m, const struct holding *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct move_question q;
    int rc = move_question_read(&a, bytes, n, &q, e);
    if (!rc && !strcmp(q.node, m->o.node))
        rc = err_set(e, ERR_ARG, "a trace that this node has shall not leave it for itself");
    if (!rc && !has(h, q.trace))
        rc = err_set(e, ERR_STALE, "that trace is not here, or not as it was");
    if (!rc)
        rc = confirm(m, &q, e);
    if (!rc) {
        bool aside = m->arrivals && arrivals_put_aside(m->arrivals, q.trace);
        text_putc(out, aside);
        if (aside)
            m->o.changed(m->o.arg);
    }
    arena_fini(&a);
    return rc;
}

/* ---- all ---- */

bool mover_answers(enum cluster_question kind)
{
    return kind >= CLUSTER_LOAD;
}

void mover_count(struct mover *m)
{
    atomic_fetch_add(&m->questions, 1);
}

int mover_answer(struct mover *m, const struct holding *h, enum cluster_question kind, const void *bytes, size_t n,
    struct text *out, struct err *e)
{
    if (kind == CLUSTER_LOAD)
        return answer_load(m, out);
    if (kind == CLUSTER_TAKE)
        return answer_take(m, h, bytes, n, out, e);
    if (!h)
        return err_set(e, ERR_BUSY, "node %s is still opening its traces", m->o.node);
    if (kind == CLUSTER_LEAVE)
        return answer_leave(m, h, bytes, n, out, e);
    return giver_answer(m->giver, h, kind, bytes, n, out, e);
}

const struct arrivals *mover_arrivals(const struct mover *m)
{
    return m->arrivals;
}

int mover_new(const struct mover_options *o, struct mover **out, struct err *e)
{
    struct arrivals *arrivals = NULL;
    int rc = o->receive ? arrivals_open(o->receive, o->receive_limit, &arrivals, e) : 0;
    *out = NULL;
    if (rc)
        return rc;
    struct mover *m = *out = mem_zalloc(sizeof *m);
    m->o = *o;
    m->arrivals = arrivals;
    m->giver = giver_new(o->give, arrivals);
    struct taker_options t = {o->bus, o->cluster, arrivals, o->changed, o->arg};
    m->taker = arrivals ? taker_new(&t) : NULL;
    return 0;
}

void mover_free(struct mover *m)
{
    if (!m)
        return;
    taker_free(m->taker);
    giver_free(m->giver);
    arrivals_close(m->arrivals);
    free(m);
}
