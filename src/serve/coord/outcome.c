/* SPDX-License-Identifier: MIT */
/* Answers: the envelope, missing sources, errors. */
#include <string.h>

#include "coord/output_cache.h"

enum { LACKS_TOLD = 100, NAMES_TOLD = 5, MESSAGE_BYTES = 1000 };

static const char *const status_names[] = {"FAILED", "CANCELLED", "COMPLETED", "RUNNING"};
static const char *const status_words[] = {"Failed", "Task cancelled", "Completed", "Running"};

/* ---- sending ---- */

void coord_reply(struct coord_call *c, int status, struct text *t)
{
    struct err unkept = {0};
    c->replied = true;
    coord_ids_save(c->c->ids, &unkept); /* failure is harmless: ids are the same anyhow, unless two hashes collide */
    if (status == 503)
        http_header(c->q, "Retry-After", "1");
    http_reply(c->q, status, "application/json", t);
}

void coord_refuse(struct coord_call *c, int status, enum tsp_code code, const char *title, const char *detail)
{
    struct text t = {.fd = -1};
    tsp_put_error(&t, code ? code : tsp_code_of_status(status), title, detail);
    coord_reply(c, status, &t);
}

void coord_error(struct coord_call *c, int status, const char *title, const char *detail)
{
    coord_refuse(c, status, TSP_CODE_NONE, title, detail);
}

enum tsp_code coord_code(struct slice answer)
{
    struct slice name = slice_get(answer, "code");
    for (int code = TSP_CODE_NONE + 1; code < TSP_N_CODES; code++)
        if (slice_equals(name, tsp_code_name((enum tsp_code)code)))
            return (enum tsp_code)code;
    return TSP_CODE_NONE;
}

const char *coord_text(json_t *object, const char *key)
{
    return json_string_value(json_object_get(object, key));
}

bool coord_integer(const json_t *v, int64_t *out)
{
    *out = json_integer_value(v);
    return json_is_integer(v);
}

/* ---- missing sources ---- */

/* Notes a missing source once. Servers behind two coordinators may have equal names. */
static void add_lack(struct coord_call *c, const struct node *server, const char *host, const char *why, bool failed)
{
    for (size_t i = 0; i < c->missing.n; i++)
        if (c->missing.v[i].server == server && !strcmp(c->missing.v[i].host, host))
            return;
    vec_push(&c->missing, ((struct coord_missing){host, why, failed, server}));
}

void coord_note_missing(struct coord_call *c, struct node *n, const char *why)
{
    add_lack(c, n, n->is->name, why, true);
}

void coord_note_partial(struct coord_call *c, struct node *n, const char *why)
{
    add_lack(c, n, n->is->name, why, false);
}

const char *coord_missing_text(struct coord_call *c, const char *what)
{
    struct arena *a = c->q->arena;
    const char *s = what;
    if (!c->missing.n)
        return what;
    for (size_t i = 0; i < c->missing.n && i < NAMES_TOLD; i++) {
        const struct coord_missing *l = &c->missing.v[i];
        s = s ? arena_printf(a, "%s; %s %s: %s", s, l->failed ? "without" : "not all of", l->host, l->why)
              : arena_printf(a, "%s %s: %s", l->failed ? "without" : "not all of", l->host, l->why);
    }
    if (c->missing.n > NAMES_TOLD)
        s = arena_printf(a, "%s; and %zu more", s, c->missing.n - NAMES_TOLD);
    return s;
}

void coord_warn(struct coord_call *c)
{
    const char *missing = coord_missing_text(c, NULL);
    if (!missing)
        return;
    char *line = arena_printf(c->q->arena, "199 weft \"%s\"", missing);
    size_t n = strlen(line);
    for (char *p = line + 10; p < line + n - 1; p++)
        if (*p == '"' || *p == '\\' || (unsigned char)*p < ' ' || (unsigned char)*p >= 127)
            *p = '\'';
    http_header(c->q, "Warning", line);
}

void coord_put_hosts(struct coord_call *c, struct json *j, uint64_t complete)
{
    json_key(j, "hosts");
    json_begin_object(j);
    json_kv_u64(j, "complete", complete);
    json_key(j, "lacking");
    json_begin_array(j);
    for (size_t i = 0; i < c->missing.n && i < LACKS_TOLD; i++) {
        json_begin_object(j);
        json_kv_string(j, "host", c->missing.v[i].host);
        json_kv_string(j, "status", c->missing.v[i].failed ? "FAILED" : "PARTIAL");
        json_kv_string(j, "statusMessage", c->missing.v[i].why);
        json_end_object(j);
    }
    json_end_array(j);
    json_end_object(j);
}

uint64_t coord_note_reported(struct coord_call *c, const struct node *n, struct slice answer)
{
    struct slice hosts = slice_get(answer, "hosts"), l;
    struct slice_walk w = slice_items(slice_get(hosts, "lacking"));
    struct arena *a = c->q->arena;
    int64_t complete;
    for (size_t k = 0; k < LACKS_TOLD && slice_next(&w, &l); k++) {
        const char *host = slice_string(slice_get(l, "host"), a), *why = slice_string(slice_get(l, "statusMessage"), a);
        add_lack(
            c, n, host ? host : n->is->name, why ? why : "not said", slice_equals(slice_get(l, "status"), "FAILED"));
    }
    return slice_integer(slice_get(hosts, "complete"), &complete) && complete >= 0 ? (uint64_t)complete : 1;
}

/* ---- envelopes ---- */

static enum verdict verdict_of(const struct coord_answer *p)
{
    struct slice status = slice_get(p->root, "status");
    for (int v = COORD_FAILED; v <= COORD_RUNNING; v++)
        if (slice_equals(status, status_names[v]))
            return (enum verdict)v;
    return COORD_FAILED;
}

/* Returns whether a message says more than the status. Servers with codes state it by a code. For other servers, any
 * message but the protocol's usual word ("Completed") does; such messages are shown only, and decide nothing. */
static bool says_more(const struct coord_answer *p, const char *message, enum verdict v)
{
    size_t n = strlen(status_words[v]);
    if (slice_get(p->root, "code").at || atomic_load(&p->node->tells_codes))
        return slice_get(p->root, "code").at;
    return strncmp(message, status_words[v], n) || (message[n] && message[n] != ';');
}

/* Takes a message. Messages about a server's data are collected, with the server's name. Of messages about progress,
 * the first one is kept. */
static void take_message(struct coord_gather *f, const struct coord_answer *p, const char *message)
{
    struct coord_call *c = f->call;
    struct arena *a = c->q->arena;
    if (f->n > 1 && c->verdict == COORD_COMPLETED && (!c->message || strlen(c->message) < MESSAGE_BYTES)) {
        c->message = arena_printf(
            a, "%s%s%s: %s", c->message ? c->message : "", c->message ? "; " : "", p->node->is->name, message);
        c->code = TSP_CODE_NOTE;
    } else if (!c->message) {
        c->message = message;
        c->code = coord_code(p->root);
    }
}

/* Adds a server's progress. One server without it makes the whole progress unknown. */
static void add_progress(struct coord_call *c, struct slice answer)
{
    struct slice progress = slice_get(answer, "progress");
    int64_t done, of;
    bool stated = slice_integer(slice_get(progress, "done"), &done) && done >= 0 &&
        slice_integer(slice_get(progress, "of"), &of) && of > 0 && done <= of &&
        !__builtin_add_overflow(c->progress.of, (uint64_t)of, &c->progress.of);
    c->progress.stated &= stated;
    c->progress.done += stated ? (uint64_t)done : 0;
}

static void take_verdict(struct coord_call *c, struct coord_gather *f, struct coord_answer *p, bool *some)
{
    enum verdict v = verdict_of(p);
    const char *message = slice_string(slice_get(p->root, "statusMessage"), c->q->arena);
    if (!slice_is(p->root, '{') || !slice_get(p->root, "status").at) {
        coord_answer_spoil(f, p, "its answer is none of the protocol");
        return;
    }
    if (v == COORD_FAILED) {
        size_t before = c->missing.n;
        coord_note_reported(c, p->node, p->root); /* missing sources behind a coordinator */
        if (c->missing.n == before)
            coord_answer_spoil(f, p, message ? message : "failed");
        p->fate = COORD_MISSING;
        return;
    }
    if (v == COORD_CANCELLED)
        coord_note_partial(c, p->node, message ? message : "its analysis was cancelled");
    else
        c->complete += coord_note_reported(c, p->node, p->root);
    if (!*some || v > c->verdict) {
        c->verdict = v;
        c->message = NULL;
        c->code = TSP_CODE_NONE;
    }
    if (v == COORD_RUNNING)
        add_progress(c, p->root);
    if (v == c->verdict && message && says_more(p, message, v))
        take_message(f, p, message);
    *some = true;
    struct slice model = slice_get(p->root, "model");
    p->model = slice_is(model, 'n') ? (struct slice){0} : model;
}

static size_t count(const struct coord_gather *f, enum coord_fate fate)
{
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++)
        n += f->parts[i].fate == fate;
    return n;
}

/* Returns the code of the whole if no server has data: AMBIGUOUS_THREAD if any server has it; else the code that all
 * servers agree on, if all answer. */
static enum tsp_code code_of_failed(const struct coord_gather *f)
{
    enum tsp_code all = TSP_CODE_NONE;
    bool same = true;
    for (size_t i = 0; i < f->n; i++) {
        const struct coord_answer *p = &f->parts[i];
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
static void take_refusals(struct coord_call *c, struct coord_gather *f)
{
    for (size_t i = 0; i < f->n; i++) {
        struct coord_answer *p = &f->parts[i];
        const char *title = slice_string(slice_get(p->root, "title"), c->q->arena);
        if (p->fate != COORD_REFUSED || p->fetch.status == 404 || p->fetch.status == 405)
            continue;
        coord_note_missing(c, p->node, title ? title : arena_printf(c->q->arena, "status %d", p->fetch.status));
    }
}

/* Returns whether a missing server offered the output last, and all refusals are of servers that do not know it. */
static bool is_of_the_missing(const struct coord_gather *f)
{
    bool cached_outputs = false, unknown = true;
    for (size_t i = 0; i < f->n; i++) {
        const struct coord_answer *p = &f->parts[i];
        unknown &= p->fate != COORD_REFUSED || p->fetch.status == 404 || p->fetch.status == 405;
        cached_outputs |= p->fate == COORD_MISSING && f->call->arg[1] &&
            coord_output_cache_find(f->call, p->node, f->call->arg[1]).at;
    }
    return cached_outputs && unknown;
}

bool coord_envelopes_open(struct coord_gather *f)
{
    struct coord_call *c = f->call;
    bool some = false;
    c->complete = 0;
    memset(&c->progress, 0, sizeof c->progress);
    c->progress.stated = true;
    c->gathered = 0;
    for (size_t i = 0; i < f->n; i++)
        c->gathered += f->parts[i].fate == COORD_GOOD ? f->parts[i].root.n : 0;
    enum tsp_code failed = code_of_failed(f);
    for (size_t i = 0; i < f->n; i++)
        if (f->parts[i].fate == COORD_GOOD)
            take_verdict(c, f, &f->parts[i], &some);
    if (some) {
        take_refusals(c, f);
        return true;
    }
    if (count(f, COORD_REFUSED) && !is_of_the_missing(f) && failed != TSP_CODE_AMBIGUOUS_THREAD) {
        coord_gather_refuse(f);
    } else if (f->n) {
        c->code = failed;
        coord_envelope_send_null(c, COORD_FAILED, "No server can answer");
    } else
        coord_envelope_send_null(c, COORD_COMPLETED, NULL);
    return false;
}

struct json coord_envelope_begin(struct coord_call *c, struct text *t)
{
    enum { LARGE_ANSWERS = 1 << 20 };
    struct json j = JSON_TO(t);
    c->q->making = t;
    if (c->gathered > LARGE_ANSWERS)
        text_try_grow(t, c->gathered + c->gathered / 16); /* failing that, it grows and is copied each time */
    json_begin_object(&j);
    json_key(&j, "model");
    return j;
}

void coord_envelope_send(struct coord_call *c, struct text *t)
{
    struct json j = JSON_TO(t);
    j.depth = 1;
    j.comma = 2; /* the model was written */
    json_kv_string(&j, "status", status_names[c->verdict]);
    json_kv_string(&j, "statusMessage", coord_missing_text(c, c->message ? c->message : status_words[c->verdict]));
    enum tsp_code code = c->code;
    if (!code && (c->message || c->verdict == COORD_FAILED))
        code = c->verdict == COORD_FAILED ? TSP_CODE_FAILED : TSP_CODE_NOTE;
    if (code)
        json_kv_string(&j, "code", tsp_code_name(code));
    if (c->verdict == COORD_RUNNING && c->progress.stated && c->progress.of)
        tsp_write_progress(&j, c->progress.done, c->progress.of);
    if (c->missing.n)
        coord_put_hosts(c, &j, c->complete);
    json_end_object(&j);
    coord_reply(c, 200, t);
}

void coord_envelope_send_null(struct coord_call *c, enum verdict v, const char *message)
{
    struct text t = {.fd = -1};
    TEXT_PUT(&t, "{\"model\":null");
    c->verdict = v;
    c->message = message;
    coord_envelope_send(c, &t);
}
