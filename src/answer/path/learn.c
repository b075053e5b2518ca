/* SPDX-License-Identifier: MIT */
/* Input from other nodes: fragments, and missing answers. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "path/known.h"

/* Mapping of a fragment's numbers to the numbers here. */
struct taking {
    struct path_known *k;
    const struct fragment *f;
    const int32_t *host_of;
    VEC(uint32_t) rows, causes, messages;
};

static const char *own_string(struct path_known *k, const char *s)
{
    return strings_get(&k->strings, strings_intern(&k->strings, s, strlen(s)));
}

static void add_answer(struct taking *t, struct known_message *m, const struct fragment_answer *a)
{
    int32_t host = t->host_of[a->host];
    struct known_answer *known = path_known_answer_of(m, host);
    struct known_answer fresh = {.is = *a};
    fresh.is.host = host;
    if (a->from)
        fresh.from = path_known_path_row(t->k, t->rows.v[a->from - 1]);
    if (!known)
        vec_push(&m->answers, fresh);
    else if (known->away)
        *known = fresh;
}

/* A connection has many messages, which share labels. */
static const struct path_sender_labels *labels_of(struct path_known *k, const struct flow_key *key)
{
    uint64_t *at = map_put(&k->labels, map_hash(key, sizeof *key), NULL);
    if (!*at) {
        struct path_sender_labels *labels = arena_new(&k->arena, struct path_sender_labels, 1);
        *labels = path_sender_labels(&k->arena, key);
        *at = (uint64_t)(uintptr_t)labels;
    }
    return (const struct path_sender_labels *)(uintptr_t)*at;
}

/* Fields of a message, without the padding of its struct. */
struct message_words {
    uint64_t v[12 + 2 * FLOW_SILENCES];
};

static struct message_words words_of(const struct path_message *m)
{
    const struct flow_message_key *k = &m->key;
    struct message_words w = {
        {(uint64_t)k->seq_end << 32 | k->ack, (uint64_t)k->bytes << 32 | (uint64_t)k->flags << 16 | k->ip_id,
            (uint64_t)m->host, (uint64_t)m->at, (uint64_t)m->received, (uint64_t)m->error_ns, (uint64_t)m->island}};
    memcpy(w.v + 7, &k->flow, sizeof k->flow);
    for (unsigned i = 0; i < FLOW_SILENCES && k->silences[i].length_ns; i++) {
        w.v[12 + 2 * i] = k->silences[i].length_ns;
        w.v[13 + 2 * i] = k->silences[i].since_ns;
    }
    return w;
}
static_assert(sizeof(struct flow_key) <= 5 * sizeof(uint64_t), "a flow's key has room among the words of a message");

uint64_t path_known_message_hash(const struct path_message *m)
{
    struct message_words w = words_of(m);
    return map_hash(&w, sizeof w);
}

static uint32_t number_of_message(struct path_known *k, const struct path_message *message)
{
    struct message_words words = words_of(message);
    uint64_t *at, hash = map_hash(&words, sizeof words);
    for (; (at = map_find(&k->message_of, hash)); hash++) {
        struct message_words known = words_of(&k->messages.v[*at - 1].message);
        if (!memcmp(&known, &words, sizeof words))
            return (uint32_t)*at - 1;
    }
    vec_push(&k->messages, ((struct known_message){.message = *message}));
    *map_put(&k->message_of, hash, NULL) = k->messages.n;
    k->messages.v[k->messages.n - 1].labels = labels_of(k, &message->key.flow);
    return (uint32_t)k->messages.n - 1;
}

/* Returns the message, valid until the next one is added. */
static struct known_message *message_of(struct path_known *k, const struct path_message *message)
{
    uint32_t number = number_of_message(k, message);
    return &k->messages.v[number];
}

static void take_rows(struct taking *t)
{
    struct path_known *k = t->k;
    for (size_t i = 0; i < t->f->rows.n; i++) {
        const struct fragment_row *r = &t->f->rows.v[i];
        uint32_t number = path_known_row_number(k, t->host_of[r->host], r->id);
        struct known_row *row = &k->rows.v[number];
        vec_push(&t->rows, number);
        if (r->has_life) {
            row->has_life = true;
            row->begin = r->begin;
            row->end = r->end;
        }
        for (size_t j = row->names.n ? r->n_names : 0; j < r->n_names; j++) {
            struct graph_name name = t->f->names.v[r->first_name + j];
            name.name = own_string(k, name.name);
            vec_push(&row->names, name);
        }
    }
}

static void take_messages(struct taking *t)
{
    for (size_t i = 0; i < t->f->messages.n; i++) {
        const struct fragment_message *m = &t->f->messages.v[i];
        struct path_message message = m->message;
        message.host = t->host_of[message.host];
        uint32_t number = number_of_message(t->k, &message);
        vec_push(&t->messages, number);
        for (size_t j = 0; j < m->n_answers; j++)
            add_answer(t, &t->k->messages.v[number], &t->f->answers.v[m->first_answer + j]);
    }
}

static void take_causes(struct taking *t)
{
    for (size_t i = 0; i < t->f->causes.n; i++) {
        const struct fragment_cause *c = &t->f->causes.v[i];
        struct known_cause known = {
            .is = {.kind = c->kind, .reason = c->reason, .ts = c->ts, .is_reply = c->is_reply, .asked = c->asked}};
        if (c->from)
            known.is.from = path_known_path_row(t->k, t->rows.v[c->from - 1]);
        if (c->message)
            known.message = t->messages.v[c->message - 1] + 1;
        vec_push(&t->k->causes, known);
        vec_push(&t->causes, (uint32_t)t->k->causes.n);
    }
}

static struct known_interval known_of(struct taking *t, const struct fragment_interval *v)
{
    struct path_known *k = t->k;
    const char *detail = v->detail ? own_string(k, strings_get(&t->f->strings, v->detail)) : NULL;
    return (struct known_interval){.is = {.begin = v->begin,
                                       .end = v->end,
                                       .state = v->state,
                                       .cpu = v->cpu,
                                       .detail = detail,
                                       .id = k->intervals.n,
                                       .polling = v->polling,
                                       .assumed = v->assumed},
        .cause = v->cause ? t->causes.v[v->cause - 1] : 0,
        .origin = v->origin ? t->causes.v[v->origin - 1] : 0};
}

/* Adds new knowledge; keeps what was known. */
static void take_more(struct known_interval *old, const struct known_interval *fresh)
{
    if (old->is.begin != fresh->is.begin)
        return;
    old->cause = old->cause ? old->cause : fresh->cause;
    old->origin = old->origin ? old->origin : fresh->origin;
}

/* Merges intervals of a row, in order of their ends. If two fragments contradict each other, the first one counts. */
static void take_intervals(struct taking *t, const struct fragment_interval *v, size_t n)
{
    struct path_known *k = t->k;
    struct known_row *r = &k->rows.v[t->rows.v[v->row]];
    bool cpu = path_is_remote_cpu(r->id);
    uint32_t *merged = mem_alloc((r->intervals.n + n) * sizeof *merged);
    size_t i = 0, m = 0;
    for (size_t j = 0; j < n; j++) {
        struct known_interval fresh = known_of(t, &v[j]);
        while (i < r->intervals.n && k->intervals.v[r->intervals.v[i]].is.end < fresh.is.end)
            merged[m++] = r->intervals.v[i++];
        struct known_interval *next = i < r->intervals.n ? &k->intervals.v[r->intervals.v[i]] : NULL;
        bool overlaps = (next && next->is.begin < fresh.is.end) ||
            (m && k->intervals.v[merged[m - 1]].is.end > fresh.is.begin);
        if (next && next->is.end == fresh.is.end) {
            take_more(next, &fresh);
        } else if (cpu || !overlaps) {
            merged[m++] = (uint32_t)k->intervals.n;
            vec_push(&k->intervals, fresh);
        }
    }
    while (i < r->intervals.n)
        merged[m++] = r->intervals.v[i++];
    free(r->intervals.v);
    r->intervals.v = merged;
    r->intervals.n = r->intervals.cap = m;
}

static void take_all_intervals(struct taking *t)
{
    for (size_t i = 0, end; i < t->f->intervals.n; i = end) {
        for (end = i; end < t->f->intervals.n && t->f->intervals.v[end].row == t->f->intervals.v[i].row;)
            end++;
        take_intervals(t, t->f->intervals.v + i, end - i);
    }
}

static void answered(struct path_known *k, const struct path_window *w, enum asked how)
{
    uint64_t *state = map_put(&k->asked, path_known_window_hash(w), NULL);
    if (*state < ANSWERED)
        *state = how;
}

static int learn(
    struct path_known *k, const struct path_ask *ask, const void *bytes, size_t n, enum asked how, struct err *e)
{
    struct fragment f;
    int rc = path_fragment_unpack(&f, bytes, n, ask->n_hosts, ask->n_windows, e);
    if (rc)
        return rc;
    struct taking t = {.k = k, .f = &f, .host_of = ask->hosts};
    take_rows(&t);
    take_messages(&t);
    take_causes(&t);
    for (size_t i = 0; i < f.rows.n; i++)
        if (f.rows.v[i].origin && !k->rows.v[t.rows.v[i]].origin)
            k->rows.v[t.rows.v[i]].origin = t.causes.v[f.rows.v[i].origin - 1];
    take_all_intervals(&t);
    for (size_t i = 0; i < f.nones.n; i++)
        *map_put(&k->nones, path_known_none_hash(t.rows.v[f.nones.v[i].row], f.nones.v[i].ts), NULL) = 1;
    for (size_t i = 0; i < ask->n_windows; i++) {
        const struct path_window *w = &ask->windows[i];
        const struct fragment_answer *a = &f.results.v[i];
        answered(k, w, how);
        if (w->kind == PATH_WINDOW_MESSAGE && a->host >= 0 && ask->hosts[a->host] == w->host)
            add_answer(&t, message_of(k, &w->message), a);
    }
    vec_free(&t.rows);
    vec_free(&t.causes);
    vec_free(&t.messages);
    path_fragment_fini(&f);
    return 0;
}

int path_known_add(struct path_known *k, const struct path_ask *ask, const void *bytes, size_t n, struct err *e)
{
    return learn(k, ask, bytes, n, ANSWERED, e);
}

int path_known_recall(struct path_known *k, const struct path_ask *ask, const void *bytes, size_t n, struct err *e)
{
    return learn(k, ask, bytes, n, RECALLED, e);
}

void path_known_contain(struct path_known *k, struct path_row row, const char *container)
{
    k->rows.v[row.row].container = own_string(k, container);
}

/* ---- call stacks ---- */

static uint64_t stack_hash(const struct path_stack_question *q)
{
    const int64_t all[] = {q->row.host, q->row.row, q->waits ? 0 : q->begin, q->end, q->waits};
    return map_hash(all, sizeof all);
}

bool path_known_find_stack(
    void *arg, struct path_row row, int64_t begin, int64_t end, bool waits, struct graph_stack *out)
{
    const struct path_known *k = arg;
    const uint64_t *at = map_find(&k->stack_of, stack_hash(&(struct path_stack_question){row, begin, end, waits}));
    if (at)
        *out = k->stacks.v[*at - 1];
    return at;
}

static const uint64_t *own_addresses(struct path_known *k, const uint64_t *v, size_t n)
{
    uint64_t *own = arena_new(&k->arena, uint64_t, n + 1);
    if (n)
        memcpy(own, v, n * sizeof *own);
    return own;
}

void path_known_stack(struct path_known *k, const struct path_stack_question *q, const struct graph_stack *is)
{
    bool fresh;
    uint64_t *at = map_put(&k->stack_of, stack_hash(q), &fresh);
    if (!fresh)
        return;
    struct graph_stack own = *is;
    own.user = own_addresses(k, is->user, is->n_user);
    own.kernel = own_addresses(k, is->kernel, is->n_kernel);
    vec_push(&k->stacks, own);
    *at = k->stacks.n;
}

void path_known_give_up(struct path_known *k, const struct path_window *w, const char *who)
{
    answered(k, w, ANSWERED);
    who = own_string(k, who);
    *map_put(&k->away, path_known_window_hash(w), NULL) = (uint64_t)(uintptr_t)who;
    if (w->kind != PATH_WINDOW_MESSAGE)
        return;
    struct known_message *m = message_of(k, &w->message);
    if (!path_known_answer_of(m, w->host))
        vec_push(&m->answers,
            ((struct known_answer){.is = {.host = w->host, .answer = FLOW_NOT_SENT},
                .away = arena_printf(&k->arena, "%s (%s)", who, m->labels->address)}));
}
