/* SPDX-License-Identifier: MIT */
#include "coord/outcome.h"

#include <string.h>

#include "coord/call.h"

enum { MOST_MISSING = 100, NAMES_SHOWN = 5, MESSAGE_BYTES = 1000 };

static const char *const status_names[] = {"FAILED", "CANCELLED", "COMPLETED", "RUNNING"};
static const char *const status_words[] = {"Failed", "Task cancelled", "Completed", "Running"};

/* ---- missing sources ---- */

/* Notes a missing source once. Servers behind two coordinators may have equal names. */
static void note(struct coord_outcome *o, const struct node *server, const char *host, const char *why, bool failed)
{
    for (size_t i = 0; i < o->missing.n; i++)
        if (o->missing.v[i].server == server && !strcmp(o->missing.v[i].host, host))
            return;
    vec_push(&o->missing, ((struct coord_missing){host, why, failed, server}));
}

void coord_note_missing(struct coord_outcome *o, struct node *n, const char *why)
{
    note(o, n, n->is->name, why, true);
}

void coord_note_partial(struct coord_outcome *o, struct node *n, const char *why)
{
    note(o, n, n->is->name, why, false);
}

const char *coord_missing_text(const struct coord_outcome *o, const char *what)
{
    struct arena *a = o->arena;
    const char *s = what;
    for (size_t i = 0; i < o->missing.n && i < NAMES_SHOWN; i++) {
        const struct coord_missing *m = &o->missing.v[i];
        s = arena_printf(
            a, "%s%s%s %s: %s", s ? s : "", s ? "; " : "", m->failed ? "without" : "not all of", m->host, m->why);
    }
    return o->missing.n > NAMES_SHOWN ? arena_printf(a, "%s; and %zu more", s, o->missing.n - NAMES_SHOWN) : s;
}

void coord_put_hosts(const struct coord_outcome *o, struct json *j, uint64_t complete)
{
    json_key(j, "hosts");
    json_begin_object(j);
    json_kv_u64(j, "complete", complete);
    json_key(j, "lacking");
    json_begin_array(j);
    for (size_t i = 0; i < o->missing.n && i < MOST_MISSING; i++) {
        json_begin_object(j);
        json_kv_string(j, "host", o->missing.v[i].host);
        json_kv_string(j, "status", o->missing.v[i].failed ? "FAILED" : "PARTIAL");
        json_kv_string(j, "statusMessage", o->missing.v[i].why);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

uint64_t coord_note_reported(struct coord_outcome *o, const struct node *n, struct slice answer)
{
    struct slice hosts = slice_get(answer, "hosts"), l;
    struct slice_walk w = slice_items(slice_get(hosts, "lacking"));
    int64_t complete;
    for (size_t k = 0; k < MOST_MISSING && slice_next(&w, &l); k++) {
        const char *host = slice_string(slice_get(l, "host"), o->arena),
                   *why = slice_string(slice_get(l, "statusMessage"), o->arena);
        note(o, n, host ? host : n->is->name, why ? why : "not said", slice_equals(slice_get(l, "status"), "FAILED"));
    }
    return slice_integer(slice_get(hosts, "complete"), &complete) && complete >= 0 ? (uint64_t)complete : 1;
}

/* ---- answers ---- */

enum tsp_code coord_code(struct slice answer)
{
    struct slice name = slice_get(answer, "code");
    for (int code = TSP_CODE_NONE + 1; code < TSP_N_CODES; code++)
        if (slice_equals(name, tsp_code_name((enum tsp_code)code)))
            return (enum tsp_code)code;
    return TSP_CODE_NONE;
}

bool coord_answer_is_ambiguous(const struct coord_answer *p)
{
    return p->fate == COORD_REFUSED && coord_code(p->root) == TSP_CODE_AMBIGUOUS_THREAD;
}

bool coord_answer_is_unknown(const struct coord_answer *p)
{
    return p->fate == COORD_REFUSED && (p->http_status == 404 || p->http_status == 405);
}

void coord_answer_spoil(struct coord_answers *f, struct coord_answer *p, const char *why)
{
    p->fate = COORD_MISSING;
    p->root = p->model = (struct slice){0};
    coord_note_missing(&f->call->outcome, p->node, why);
}

void coord_answer_release(struct coord_answer *p)
{
    if (p->fate != COORD_GOOD) /* failed ones may still be arriving */
        return;
    if (p->text)
        text_fini(p->text);
    p->root = p->model = (struct slice){0};
}

bool coord_answers_some(const struct coord_answers *f)
{
    bool some = false;
    for (size_t i = 0; i < f->n; i++)
        some |= f->v[i].model.at != NULL;
    return some;
}

void coord_put_rest(const struct coord_answers *f, struct json *j, const char *array)
{
    size_t first = 0;
    while (first < f->n && !f->v[first].model.at)
        first++;
    struct slice_walk w = slice_members(first < f->n ? f->v[first].model : (struct slice){0});
    for (struct slice key, value; slice_next_member(&w, &key, &value);)
        if (!slice_equals(key, array)) {
            slice_put_key(j, key);
            slice_put(j, value);
        }
}

/* ---- status of the whole ---- */

static enum coord_status status_of(const struct coord_answer *p)
{
    struct slice status = slice_get(p->root, "status");
    for (int s = COORD_FAILED; s <= COORD_RUNNING; s++)
        if (slice_equals(status, status_names[s]))
            return (enum coord_status)s;
    return COORD_FAILED;
}

/* Returns whether a message says more than the status. Servers with codes state it by a code. For other servers, any
 * message but the protocol's usual word ("Completed") does; such messages are shown only, and decide nothing. */
static bool says_more(const struct coord_answer *p, const char *message, enum coord_status s)
{
    size_t n = strlen(status_words[s]);
    if (slice_get(p->root, "code").at || atomic_load(&p->node->states_codes))
        return slice_get(p->root, "code").at;
    return strncmp(message, status_words[s], n) || (message[n] && message[n] != ';');
}

/* Takes a message. Messages about a server's data are collected, with the server's name. Of messages about progress,
 * the first one is kept. */
static void take_message(struct coord_outcome *o, const struct coord_answer *p, const char *message, bool several)
{
    if (several && o->status == COORD_COMPLETED && (!o->message || strlen(o->message) < MESSAGE_BYTES)) {
        o->message = arena_printf(
            o->arena, "%s%s%s: %s", o->message ? o->message : "", o->message ? "; " : "", p->node->is->name, message);
        o->code = TSP_CODE_NOTE;
    } else if (!o->message) {
        o->message = message;
        o->code = coord_code(p->root);
    }
}

/* Adds a server's progress. One server without it makes the whole progress unknown. */
static void add_progress(struct coord_outcome *o, struct slice answer)
{
    struct slice progress = slice_get(answer, "progress");
    int64_t done, of;
    bool stated = slice_integer(slice_get(progress, "done"), &done) && done >= 0 &&
        slice_integer(slice_get(progress, "of"), &of) && of > 0 && done <= of &&
        !__builtin_add_overflow(o->progress.of, (uint64_t)of, &o->progress.of);
    o->progress.stated &= stated;
    o->progress.done += stated ? (uint64_t)done : 0;
}

static void take_failed(struct coord_answers *f, struct coord_answer *p, const char *message)
{
    struct coord_outcome *o = &f->call->outcome;
    size_t before = o->missing.n;
    coord_note_reported(o, p->node, p->root); /* missing sources behind a coordinator */
    if (o->missing.n == before)
        coord_answer_spoil(f, p, message ? message : "failed");
    p->fate = COORD_MISSING;
}

static void take_status(struct coord_answers *f, struct coord_answer *p, bool *some)
{
    struct coord_outcome *o = &f->call->outcome;
    enum coord_status s = status_of(p);
    const char *message = slice_string(slice_get(p->root, "statusMessage"), o->arena);
    if (!slice_is(p->root, '{') || !slice_get(p->root, "status").at) {
        coord_answer_spoil(f, p, "its answer is none of the protocol");
        return;
    }
    if (s == COORD_FAILED) {
        take_failed(f, p, message);
        return;
    }
    if (s == COORD_CANCELLED)
        coord_note_partial(o, p->node, message ? message : "its analysis was cancelled");
    else
        o->complete += coord_note_reported(o, p->node, p->root);
    if (!*some || s > o->status) {
        o->status = s;
        o->message = NULL;
        o->code = TSP_CODE_NONE;
    }
    if (s == COORD_RUNNING)
        add_progress(o, p->root);
    if (s == o->status && message && says_more(p, message, s))
        take_message(o, p, message, f->n > 1);
    *some = true;
    struct slice model = slice_get(p->root, "model");
    p->model = slice_is(model, 'n') ? (struct slice){0} : model;
}

/* Returns the code of the whole if no server has data: AMBIGUOUS_THREAD if any server has it; else the code that all
 * servers agree on, if all answer. */
static enum tsp_code code_of_failed(const struct coord_answers *f)
{
    enum tsp_code all = TSP_CODE_NONE;
    bool same = true;
    for (size_t i = 0; i < f->n; i++) {
        const struct coord_answer *p = &f->v[i];
        enum tsp_code code = p->fate == COORD_GOOD ? coord_code(p->root) : TSP_CODE_NONE;
        if (code == TSP_CODE_AMBIGUOUS_THREAD)
            return code;
        if (p->fate == COORD_REFUSED) /* server does not know the output */
            continue;
        same &= code && (!all || code == all);
        all = code;
    }
    return same && all ? all : TSP_CODE_FAILED;
}

/* Notes refusals as missing data, except those of servers without the output. */
static void take_refusals(struct coord_answers *f)
{
    struct coord_outcome *o = &f->call->outcome;
    for (size_t i = 0; i < f->n; i++) {
        const struct coord_answer *p = &f->v[i];
        const char *title = slice_string(slice_get(p->root, "title"), o->arena);
        if (p->fate == COORD_REFUSED && !coord_answer_is_unknown(p))
            coord_note_missing(o, p->node, title ? title : arena_printf(o->arena, "status %d", p->http_status));
    }
}

bool coord_outcome_take(struct coord_answers *f)
{
    struct coord_outcome *o = &f->call->outcome;
    bool some = false;
    o->complete = 0;
    memset(&o->progress, 0, sizeof o->progress);
    o->progress.stated = true;
    o->gathered = 0;
    for (size_t i = 0; i < f->n; i++)
        o->gathered += f->v[i].fate == COORD_GOOD ? f->v[i].root.n : 0;
    enum tsp_code failed = code_of_failed(f);
    for (size_t i = 0; i < f->n; i++)
        if (f->v[i].fate == COORD_GOOD)
            take_status(f, &f->v[i], &some);
    if (some)
        take_refusals(f);
    else if (f->n)
        o->code = failed;
    return some;
}

void coord_put_outcome(const struct coord_outcome *o, struct json *j)
{
    enum tsp_code code = o->code;
    if (!code && (o->message || o->status == COORD_FAILED))
        code = o->status == COORD_FAILED ? TSP_CODE_FAILED : TSP_CODE_NOTE;
    json_kv_string(j, "status", status_names[o->status]);
    json_kv_string(j, "statusMessage", coord_missing_text(o, o->message ? o->message : status_words[o->status]));
    if (code)
        json_kv_string(j, "code", tsp_code_name(code));
    if (o->status == COORD_RUNNING && o->progress.stated && o->progress.of)
        tsp_write_progress(j, o->progress.done, o->progress.of);
    if (o->missing.n)
        coord_put_hosts(o, j, o->complete);
}
