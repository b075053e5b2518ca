/* SPDX-License-Identifier: MIT */
/* A node's part in moving traces: it takes them, lets others copy them, and lets go of them. */
#include "place/place.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "bus/bus.h"
#include "place/receiver.h"
#include "place/sender.h"

#define HELLO_NS (5 * NS_PER_S)

struct mover {
    const struct cluster_node_context *node;
    char *receive;
    bool give;
    struct place_inbox *inbox; /* NULL, as the next: nothing is received */
    struct place_receiver *receiver;
    struct place_sender *sender;
};

static bool has(const struct cluster_node_traces *h, struct move_trace t)
{
    const struct cluster_entry_host *hosts = h ? h->hosts : NULL;
    size_t n = h ? h->n_hosts : 0;
    for (size_t i = 0; i < n; i++)
        if (place_move_is_of(t, &hosts[i]))
            return true;
    return false;
}

/* An excerpt is of no use where all of the trace is. */
static int check_excerpt(const struct mover *m, const struct cluster_node_traces *h, struct move_trace t, struct err *e)
{
    const struct cluster_entry_host *hosts = h ? h->hosts : NULL;
    size_t n = h ? h->n_hosts : 0;
    if (!h && m->node->has_traces)
        return err_set(e, ERR_BUSY, "it has not opened its traces yet");
    for (size_t i = 0; i < n; i++)
        if (hosts[i].key == t.key && !hosts[i].excerpt.is)
            return err_set(e, ERR_ARG, "it has all of that trace");
    return 0;
}

/* ---- load ---- */

static void set_load(void *part, struct cluster_load *out)
{
    struct mover *m = part;
    out->receives = m->receiver != NULL;
    out->gives = m->give;
    out->taking = m->receiver && place_receiver_is_busy(m->receiver);
    out->room_bytes = m->inbox ? place_inbox_room(m->inbox) : 0;
}

/* ---- coming ---- */

static int answer_take(
    struct mover *m, const struct cluster_node_traces *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct move_question q;
    int rc = place_move_question_read(&a, bytes, n, &q, e);
    if (!rc && has(h, q.trace))
        place_move_progress_write(&(struct place_move_progress){.state = PLACE_MOVE_DONE, .text = ""}, out);
    else if (!rc && !m->receiver)
        rc = err_set(e, ERR_ARG, "it takes no traces: start it with `weft serve --receive DIR`");
    else if (!rc && !strcmp(q.node, m->node->node))
        rc = err_set(e, ERR_ARG, "a node cannot take a trace from itself");
    else if (!rc && !(rc = move_is_excerpt(q.trace) ? check_excerpt(m, h, q.trace, e) : 0))
        rc = place_receiver_take(m->receiver, &q, out, e);
    arena_fini(&a);
    return rc;
}

/* ---- going ---- */

/* Returns the instance of the node, if its entry has the trace. */
static const char *instance_with(const struct cluster_membership *r, const char *node, struct move_trace t)
{
    for (size_t i = 0; i < r->n_entries; i++)
        for (size_t k = 0; !strcmp(r->entries[i].node, node) && k < r->entries[i].n_hosts; k++)
            if (place_move_is_of(t, &r->entries[i].hosts[k]))
                return r->entries[i].instance;
    return NULL;
}

/* Confirms that the other node is present, and its entry has the trace. */
static int confirm(const struct mover *m, const struct move_question *q, struct err *e)
{
    char subject[CLUSTER_SUBJECT];
    struct cluster_membership r;
    struct bus_reply reply = {0};
    struct text hello = {.fd = -1};
    int rc = cluster_membership_read(m->node->registry, &r, e);
    if (rc)
        return rc;
    const char *instance = instance_with(&r, q->node, q->trace);
    cluster_question_begin(&hello, CLUSTER_HELLO);
    if (!instance)
        rc = err_set(e, ERR_BUSY, "node %s has not said yet that it has the trace", q->node);
    if (!rc)
        rc = cluster_subject_of(m->node->cluster, q->node, subject, e);
    if (!rc && bus_ask(m->node->bus, subject, hello.v, hello.n, time_monotonic_ns() + HELLO_NS, &reply))
        rc = err_set(e, ERR_BUSY, "node %s does not answer", q->node);
    if (!rc && (reply.n != strlen(instance) || memcmp(reply.data, instance, reply.n) != 0))
        rc = err_set(e, ERR_BUSY, "node %s has just been started again", q->node);
    bus_reply_free(&reply);
    text_fini(&hello);
    cluster_membership_fini(&r);
    return rc;
}

/* Puts a received trace aside; a trace recorded here, or given, stays. */
static int answer_leave(
    struct mover *m, const struct cluster_node_traces *h, const void *bytes, size_t n, struct text *out, struct err *e)
{
    struct arena a = {0};
    struct move_question q;
    int rc = place_move_question_read(&a, bytes, n, &q, e);
    if (!rc && !strcmp(q.node, m->node->node))
        rc = err_set(e, ERR_ARG, "a trace that this node has shall not leave it for itself");
    if (!rc && !has(h, q.trace))
        rc = err_set(e, ERR_STALE, "that trace is not here, or not as it was");
    if (!rc)
        rc = confirm(m, &q, e);
    if (!rc) {
        bool aside = m->inbox && place_inbox_put_aside(m->inbox, q.trace);
        text_putc(out, aside);
        if (aside)
            m->node->changed(m->node->changed_arg);
    }
    arena_fini(&a);
    return rc;
}

/* ---- the part ---- */

static int answer(void *part, const struct cluster_node_traces *h, enum cluster_question kind, const void *bytes,
    size_t n, struct text *out, struct err *e)
{
    struct mover *m = part;
    if (kind == CLUSTER_TAKE)
        return answer_take(m, h, bytes, n, out, e);
    if (!h)
        return err_set(e, ERR_BUSY, "node %s is still opening its traces", m->node->node);
    if (kind == CLUSTER_LEAVE)
        return answer_leave(m, h, bytes, n, out, e);
    return place_sender_answer(m->sender, h, kind, bytes, n, out, e);
}

static void list(const void *part, struct arena *a, struct cluster_trace_args *out)
{
    const struct mover *m = part;
    if (m->inbox)
        place_inbox_list(m->inbox, a, out);
}

static int64_t since(const void *part, const char *path)
{
    return place_inbox_since(((const struct mover *)part)->inbox, path);
}

static uint64_t key(const void *part, const char *path)
{
    return place_inbox_key(((const struct mover *)part)->inbox, path);
}

static void rename_host(const void *part, const char *path, uint64_t new_key)
{
    place_inbox_rename(((const struct mover *)part)->inbox, path, new_key);
}

static bool excerpt(const void *part, const struct ctf_trace *t, struct arena *a, struct cluster_excerpt *out)
{
    return place_inbox_excerpt(((const struct mover *)part)->inbox, t, a, out);
}

static int open_part(
    const void *options, const struct cluster_node_context *node, void **part, const char **directory, struct err *e)
{
    const struct place_node_options *o = options;
    struct place_inbox *inbox = NULL;
    int rc = o->receive ? place_inbox_open(o->receive, o->receive_limit, &inbox, e) : 0;
    *part = NULL;
    if (rc)
        return rc;
    struct mover *m = *part = mem_zalloc(sizeof *m);
    m->node = node;
    m->receive = o->receive ? mem_strdup(o->receive) : NULL;
    m->give = o->give;
    m->inbox = inbox;
    m->sender = place_sender_new(o->give, inbox);
    struct place_receiver_options t = {node->bus, node->cluster, inbox, node->changed, node->changed_arg};
    m->receiver = inbox ? place_receiver_new(&t) : NULL;
    *directory = m->receive;
    return 0;
}

static void close_part(void *part)
{
    struct mover *m = part;
    place_receiver_free(m->receiver);
    place_sender_free(m->sender);
    place_inbox_close(m->inbox);
    free(m->receive);
    free(m);
}

const struct cluster_moving place_part = {.open = open_part,
    .close = close_part,
    .list = list,
    .since = since,
    .key = key,
    .rename = rename_host,
    .excerpt = excerpt,
    .load = set_load,
    .answer = answer};
