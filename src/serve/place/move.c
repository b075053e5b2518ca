/* SPDX-License-Identifier: MIT */
/* Moving a trace: the side that asks both nodes. */
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "bus/bus.h"
#include "place/moves.h"

#define ANSWER_NS (5 * NS_PER_S)
enum {
    LOOK_US = 100000,
    SLOW_OPENING = 20 /* factor of the timeout for indexing, which shows no progress */
};

struct moving {
    struct cluster *cluster;
    const struct place_move_options *o;
    struct move_question question;
    struct err *e;
};

static bool may_come_back(int code)
{
    return code == ERR_NOTFOUND || code == ERR_TIMEOUT || code == ERR_BUSY || code == ERR_CANCELLED || code == ERR_IO;
}

static int ask(const struct moving *m, const char *node, enum cluster_question kind, struct bus_reply *r)
{
    char subject[CLUSTER_SUBJECT];
    struct text q = {.fd = -1};
    *r = (struct bus_reply){0};
    cluster_question_begin(&q, kind);
    place_move_question_write(&m->question, &q);
    int rc = cluster_subject_of(cluster_name(m->cluster), node, subject, m->e);
    if (!rc && bus_ask(cluster_bus(m->cluster), subject, q.v, q.n, time_monotonic_ns() + ANSWER_NS, r))
        rc = err_set(m->e, r->code, "node %s: %s", node, r->text);
    text_fini(&q);
    return rc;
}

/* Returns false if the caller stops waiting. */
static bool goes_on(const struct moving *m, const struct place_move_progress *now, const char *node)
{
    if (!m->o->progress || m->o->progress(m->o->arg, now))
        return true;
    err_set(m->e, ERR_CANCELLED, "it is not waited for any more; node %s goes on", node);
    return false;
}

/* Waits until the node has received the trace. */
static int take(struct moving *m, const char *node)
{
    int64_t changed = time_monotonic_ns();
    struct place_move_progress last = {.state = PLACE_MOVE_UNKNOWN};
    for (m->question.begin = true;; usleep(LOOK_US)) {
        struct arena a = {0};
        struct bus_reply r;
        struct place_move_progress now = {0};
        int rc = ask(m, node, CLUSTER_TAKE, &r);
        bool later = rc && may_come_back(rc);
        if (!rc)
            rc = place_move_progress_read(&a, r.data, r.n, &now, m->e);
        bus_reply_free(&r);
        if (!rc && now.state == PLACE_MOVE_FAILED)
            rc = err_set(m->e, ERR_IO, "node %s: %s", node, now.text);
        bool go_on = goes_on(m, rc ? &last : &now, node);
        arena_fini(&a);
        if (!go_on)
            return ERR_CANCELLED;
        if ((rc && !later) || now.state == PLACE_MOVE_DONE)
            return rc;
        m->question.begin = rc || now.state == PLACE_MOVE_UNKNOWN; /* node was started again */
        int64_t time = time_monotonic_ns();
        if (!rc && (now.state != last.state || now.done != last.done))
            changed = time;
        int64_t patience = m->o->patience_ns * (!rc && now.state == PLACE_MOVE_OPENING ? SLOW_OPENING : 1);
        if (time - changed > patience)
            return rc ? rc : err_set(m->e, ERR_TIMEOUT, "node %s gets no further: what does it say?", node);
        last = now;
    }
}

/* Waits until the node has put the trace aside, or decided to keep it. */
static int leave(const struct moving *m, const char *node, bool *aside)
{
    for (int64_t begin = time_monotonic_ns();; usleep(LOOK_US)) {
        struct bus_reply r;
        int rc = ask(m, node, CLUSTER_LEAVE, &r);
        if (!rc)
            *aside |= r.n == 1 && *(const char *)r.data == 1;
        bus_reply_free(&r);
        if (!rc || !may_come_back(rc) || time_monotonic_ns() - begin > m->o->patience_ns)
            return rc;
        if (!goes_on(m, &(struct place_move_progress){.state = PLACE_MOVE_DONE, .text = ""}, m->question.node))
            return ERR_CANCELLED;
    }
}

/* Returns the trace in the node's entry; NULL: it does not have the same one. */
static const struct cluster_entry_host *same_of(const struct cluster_entry *c, struct move_trace t)
{
    for (size_t i = 0; i < c->n_hosts; i++)
        if (place_move_is_of(t, &c->hosts[i]))
            return &c->hosts[i];
    return NULL;
}

/* Waits until the registry says that the node has it. */
static int await_entry(const struct moving *m, const char *node)
{
    for (int64_t begin = time_monotonic_ns();; usleep(LOOK_US)) {
        struct cluster_membership r;
        bool said = false;
        int rc = cluster_registry_read(m->cluster, &r, m->e);
        for (size_t i = 0; i < r.n_entries && !rc; i++)
            said |= !strcmp(r.entries[i].node, node) && same_of(&r.entries[i], m->question.trace);
        cluster_membership_fini(&r);
        if (said)
            return 0;
        if (time_monotonic_ns() - begin > m->o->patience_ns)
            return rc ? rc : err_set(m->e, ERR_TIMEOUT, "node %s has the trace, but does not say so yet", node);
        if (!goes_on(m, &(struct place_move_progress){.state = PLACE_MOVE_OPENING, .text = ""}, node))
            return ERR_CANCELLED;
    }
}

bool place_find_unfinished(const struct cluster *c, size_t *host)
{
    const struct cluster_membership *r = cluster_registry(c);
    for (*host = 0; *host < r->n_hosts; ++*host) {
        const struct cluster_membership_host *h = &r->hosts[*host];
        for (size_t i = 1; i < h->n_nodes && h->entry->since && !h->entry->excerpt.is; i++) {
            struct move_trace t = {h->entry->key, h->entry->hash, MOVE_ALL};
            const struct cluster_entry_host *copy = same_of(&r->entries[h->entries[i]], t);
            if (copy && copy->since)
                return true;
        }
    }
    return false;
}

/* Nodes that have the same by a move put it aside; others keep theirs anyway. */
static int leave_all(struct moving *m, const struct cluster_membership_host *h, const char *node, bool *aside)
{
    const struct cluster_membership *r = cluster_registry(m->cluster);
    int rc = 0;
    m->question.node = node;
    for (size_t i = 0; i < h->n_nodes && !rc; i++) {
        const struct cluster_entry_host *copy = same_of(&r->entries[h->entries[i]], m->question.trace);
        if (strcmp(h->nodes[i], node) != 0 && copy && copy->since)
            rc = leave(m, h->nodes[i], aside);
    }
    return rc;
}

int place_move(
    struct cluster *c, size_t host, const char *node, const struct place_move_options *o, bool *aside, struct err *e)
{
    const struct cluster_membership_host *h = &cluster_registry(c)->hosts[host];
    struct moving m = {c, o, {{h->entry->key, h->entry->hash, MOVE_ALL}, h->nodes[0], true}, e};
    bool there = !strcmp(h->nodes[0], node);
    *aside = false;
    if (o->excerpt && there)
        return err_set(e, ERR_ARG, "node %s has all of that trace", node);
    if (o->excerpt) {
        m.question.trace.begin = o->begin;
        m.question.trace.end = o->end;
    }
    int rc = there ? 0 : take(&m, node);
    if (!rc)
        rc = await_entry(&m, node);
    return rc || o->excerpt ? rc : leave_all(&m, h, node, aside);
}
