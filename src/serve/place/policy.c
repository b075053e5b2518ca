/* SPDX-License-Identifier: MIT */
#include "place/policy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/time.h"

#define REST_NS (60 * NS_PER_S)
#define LONGEST_REST_NS (60 * REST_NS)

/* A node, as it was when it was looked at last. */
struct seen {
    char *name;
    uint64_t version, questions;
    int64_t at_ns, idle_since_ns;
    const char *busy; /* reason why it is not idle; NULL: it is */
};

struct failure {
    uint64_t key;
    int64_t rest_ns, until_ns;
};

struct policy {
    struct policy_limits limits;
    VEC(struct seen) nodes;
    VEC(struct failure) failures;
};

struct policy *place_policy_new(const struct policy_limits *limits)
{
    struct policy *p = mem_zalloc(sizeof *p);
    p->limits = *limits;
    return p;
}

void place_policy_free(struct policy *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->nodes.n; i++)
        free(p->nodes.v[i].name);
    vec_free(&p->nodes);
    vec_free(&p->failures);
    free(p);
}

/* ---- idle nodes ---- */

static struct seen *seen_node(const struct policy *p, const char *name)
{
    for (size_t i = 0; i < p->nodes.n; i++)
        if (!strcmp(p->nodes.v[i].name, name))
            return &p->nodes.v[i];
    return NULL;
}

static bool has_many_questions(const struct policy *p, const struct seen *s, uint64_t questions, int64_t now_ns)
{
    double seconds = (double)(now_ns - s->at_ns) / (double)NS_PER_S;
    return questions > s->questions && (double)(questions - s->questions) > p->limits.questions * seconds;
}

static const char *why_busy(const struct policy *p, const struct seen *s, const struct place_node *n, int64_t now_ns)
{
    const struct cluster_load *l = &n->load;
    if (!l->answered)
        return "does not answer";
    if (n->version != s->version)
        return "has just got other traces, or they grow";
    if (l->load_percent > (uint64_t)l->cpus * p->limits.load_percent)
        return "is busy";
    if (has_many_questions(p, s, l->questions, now_ns))
        return "is asked much";
    return NULL;
}

void place_policy_observe(struct policy *p, const struct place_plan *now, int64_t now_ns)
{
    for (size_t i = 0; i < now->n_nodes; i++) {
        const struct place_node *n = &now->nodes[i];
        struct seen *s = seen_node(p, n->name);
        if (!s) {
            vec_push(&p->nodes, ((struct seen){.name = mem_strdup(n->name), .version = n->version}));
            s = &p->nodes.v[p->nodes.n - 1];
            s->idle_since_ns = s->at_ns = now_ns;
            s->questions = n->load.questions;
        }
        s->busy = why_busy(p, s, n, now_ns);
        if (s->busy)
            s->idle_since_ns = now_ns;
        s->version = n->version;
        s->questions = n->load.questions;
        s->at_ns = now_ns;
    }
}

/* NULL: it has been idle for long enough. */
static const char *why_not(const struct policy *p, const char *node, int64_t now_ns)
{
    const struct seen *s = seen_node(p, node);
    if (s && s->busy)
        return s->busy;
    return !s || now_ns - s->idle_since_ns < p->limits.idle_ns ? "has not been idle for long enough yet" : NULL;
}

/* ---- failures ---- */

static struct failure *failure_of(const struct policy *p, uint64_t key)
{
    for (size_t i = 0; i < p->failures.n; i++)
        if (p->failures.v[i].key == key)
            return &p->failures.v[i];
    return NULL;
}

int64_t place_policy_failed(struct policy *p, uint64_t key, int64_t now_ns)
{
    struct failure *f = failure_of(p, key);
    if (!f) {
        vec_push(&p->failures, ((struct failure){.key = key, .rest_ns = REST_NS / 2}));
        f = &p->failures.v[p->failures.n - 1];
    }
    f->rest_ns = 2 * f->rest_ns < LONGEST_REST_NS ? 2 * f->rest_ns : LONGEST_REST_NS;
    f->until_ns = now_ns + f->rest_ns;
    return f->rest_ns;
}

bool place_policy_is_resting(const struct policy *p, uint64_t key, int64_t now_ns)
{
    const struct failure *f = failure_of(p, key);
    return f && now_ns < f->until_ns;
}

void place_policy_succeeded(struct policy *p, uint64_t key)
{
    struct failure *f = failure_of(p, key);
    if (f)
        *f = p->failures.v[--p->failures.n];
}

/* ---- choosing ---- */

static void say_waiting(struct policy_choice *out, const char *host, const char *on, const char *node, const char *why)
{
    if (!*out->why) /* first of several waiting moves is reported */
        snprintf(out->why, sizeof out->why, "%s stays with node %s for now: node %s %s", host, on, node, why);
}

static void say_move(
    struct policy_choice *out, const char *host, const struct place_plan *p, const struct place_move_advice *m)
{
    struct text t = {.fd = -1};
    text_printf(&t, "%s goes from node %s to node %s: that", host, p->nodes[m->from].name, p->nodes[m->to].name);
    if (m->saves)
        text_printf(&t, " has %llu packets %s between nodes", (unsigned long long)llabs(m->saves),
            m->saves > 0 ? "fewer" : "more");
    if (m->relieves)
        text_printf(
            &t, "%s relieves a node that has too much of %.1f MB", m->saves ? ", and" : "", (double)m->relieves / 1e6);
    snprintf(out->why, sizeof out->why, "%.*s", (int)t.n, t.v);
    text_fini(&t);
}

static bool may_move(const struct policy *p, const struct place_plan *now, const struct place_move_advice *m,
    const struct cluster_host *host, int64_t now_ns, struct policy_choice *out)
{
    const char *from = now->nodes[m->from].name, *to = now->nodes[m->to].name, *name = host->clock_name;
    const char *why_from = why_not(p, from, now_ns), *why_to = why_not(p, to, now_ns);
    if (why_from)
        say_waiting(out, name, from, from, why_from);
    else if (why_to)
        say_waiting(out, name, from, to, why_to);
    else if (place_policy_is_resting(p, host->key, now_ns))
        say_waiting(out, name, from, to, "could not take it, which is tried again in a while");
    else
        return true;
    return false;
}

void place_policy_choose(const struct policy *p, const struct place_plan *now, const struct cluster_host *hosts,
    int64_t now_ns, struct policy_choice *out)
{
    *out = (struct policy_choice){.move = SIZE_MAX, .advised = now->n_moves};
    bool *concerned = mem_zalloc((now->n_nodes + 1) * sizeof *concerned); /* nodes of a move that waits */
    for (size_t i = 0; i < now->n_nodes && now->n_moves; i++)
        if (now->nodes[i].load.taking)
            snprintf(out->why, sizeof out->why, "node %s is taking a trace: one at a time", now->nodes[i].name);
    bool all_wait = *out->why;
    for (size_t i = 0; i < now->n_moves && !all_wait && out->move == SIZE_MAX; i++) {
        const struct place_move_advice *m = &now->moves[i];
        if (!concerned[m->from] && !concerned[m->to] && may_move(p, now, m, &hosts[m->host], now_ns, out)) {
            out->move = i;
            say_move(out, hosts[m->host].clock_name, now, m);
        }
        concerned[m->from] = concerned[m->to] = true;
    }
    if (!now->n_moves)
        snprintf(out->why, sizeof out->why, "every trace is well where it is, or may not be moved");
    free(concerned);
}
