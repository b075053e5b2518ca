/* SPDX-License-Identifier: MIT */
/* Answering node: walks, and records all that the walk was told. */
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/time.h"
#include "path/fragment.h"
#include "path/senders.h"

enum {
    STEPS_AT_ONCE = 1024, /* minimum for any window, so that the asking node makes progress */
    STRETCH_ASKED = 4096, /* intervals searched for the beginning of a stretch of running: as in the walk */
    STRETCH_GUESSED = 64
};

struct recorder {
    const struct path_local *local;
    const struct path_source *inner;
    const struct path_local_host *hosts;
    const struct path_row_ids *ids;
    struct path_source source;
    int64_t deadline_ns;
    struct fragment f;
    struct map rows;      /* host << 32 | row -> number */
    struct map intervals; /* hash of row, begin and end -> number + 1; on a collision the next hash */
    struct map nones;     /* hash of row and time -> anything */
    struct map messages;  /* hash of host and packet -> number + 1 */
};

/* ---- rows ---- */

static void add_names(struct recorder *r, struct path_row row, struct fragment_row *out)
{
    struct graph_name name;
    out->first_name = (uint32_t)r->f.names.n;
    for (size_t i = 0; row.row >= 0 && graph_row_name(r->hosts[row.host].graph, row.row, i, &name); i++)
        vec_push(&r->f.names, name);
    out->n_names = (uint32_t)(r->f.names.n - out->first_name);
}

static uint32_t number_of_row(struct recorder *r, struct path_row row)
{
    bool fresh;
    uint64_t *at = map_put(&r->rows, (uint64_t)(uint32_t)row.host << 32 | (uint32_t)row.row, &fresh);
    if (fresh) {
        struct fragment_row out = {.host = row.host,
            .id = row.row < 0 ? path_remote_cpu(row.row) : r->ids->id(r->ids->arg, row.host, row.row)};
        *at = r->f.rows.n;
        add_names(r, row, &out);
        vec_push(&r->f.rows, out);
    }
    return (uint32_t)*at;
}

/* ---- messages ---- */

static struct fragment_answer answer_of(struct recorder *r, int32_t host, const struct path_message *m)
{
    const struct path_local_host *h = &r->hosts[host];
    struct fragment_answer a = {.host = host};
    struct sender s;
    if (h->flows && path_sender_ask(h, host, m, &s)) {
        a.answer = (uint8_t)s.answer;
        a.from = number_of_row(r, (struct path_row){host, path_sender_row(&s)}) + 1;
        a.ts = s.sent;
    }
    a.may_send = h->flows && flow_may_send(h->flows, &m->key.flow);
    a.lost = path_sender_lost(h, m);
    return a;
}

/* Adds the message with the answers of the hosts here. */
static uint32_t number_of_message(struct recorder *r, int32_t host, uint64_t packet)
{
    struct flow_packet receive;
    struct sender_peer peer;
    bool is_send, fresh;
    uint64_t *at = map_put(&r->messages, map_mix(map_mix((uint64_t)(uint32_t)host) + packet), &fresh);
    if (!fresh)
        return (uint32_t)*at - 1;
    *at = r->f.messages.n + 1;
    struct fragment_message m = {.first_answer = (uint32_t)r->f.answers.n};
    flow_by_number(r->hosts[host].flows, packet, &receive, &is_send);
    path_sender_message_of(&r->hosts[host], host, &receive, &m.message);
    path_senders_peer(path_local_senders(r->local), host, receive.flow, &peer);
    for (size_t i = 0; i < peer.sure; i++)
        vec_push(&r->f.answers, answer_of(r, peer.senders[i], &m.message));
    m.n_answers = (uint32_t)(r->f.answers.n - m.first_answer);
    vec_push(&r->f.messages, m);
    return (uint32_t)r->f.messages.n - 1;
}

static uint32_t add_cause(struct recorder *r, int32_t host, const struct path_cause *c)
{
    struct fragment_cause out = {.kind = c->kind, .reason = c->reason};
    if (c->packet) {
        out.kind = PATH_CAUSE_NETWORK;
        out.reason = 0;
        out.message = number_of_message(r, host, c->packet - 1) + 1;
        out.is_reply = c->is_reply;
        out.asked = c->asked;
    } else if (c->kind == PATH_CAUSE_WAKEUP || c->kind == PATH_CAUSE_FORK) {
        out.from = number_of_row(r, c->from) + 1;
        out.ts = c->ts;
    }
    vec_push(&r->f.causes, out);
    return (uint32_t)r->f.causes.n;
}

/* ---- recording source ---- */

static uint64_t interval_hash(uint32_t row, int64_t begin, int64_t end)
{
    return map_mix(map_mix(map_mix(row) ^ (uint64_t)begin) ^ (uint64_t)end);
}

/* Returns its number, or SIZE_MAX and the hash for it. */
static size_t find_interval(const struct recorder *r, uint32_t row, int64_t begin, int64_t end, uint64_t *hash)
{
    const uint64_t *at;
    for (*hash = interval_hash(row, begin, end); (at = map_find(&r->intervals, *hash)); ++*hash) {
        const struct fragment_interval *v = &r->f.intervals.v[*at - 1];
        if (v->row == row && v->begin == begin && v->end == end)
            return *at - 1;
    }
    return SIZE_MAX;
}

static uint32_t number_of_string(struct recorder *r, const char *s)
{
    return s ? strings_intern(&r->f.strings, s, strlen(s)) : 0;
}

/* Adds the origin of a CPU's row, whose pieces are identified by the ids of their intervals: the asking node cannot
 * request a piece later, where our walk ended with the interval itself. */
static void add_origin(struct recorder *r, struct path_row row, const struct path_interval *iv, size_t number)
{
    struct path_interval head = {.begin = iv->begin, .end = iv->begin, .state = GRAPH_UNKNOWN, .cpu = -1, .id = iv->id};
    struct path_cause c;
    r->inner->cause(r->inner->arg, row, &head, iv->begin, true, &c);
    uint32_t added = add_cause(r, row.host, &c);
    r->f.intervals.v[number].origin = added;
}

static void add_interval(struct recorder *r, struct path_row row, struct path_interval iv)
{
    uint64_t hash;
    uint32_t number = number_of_row(r, row);
    if (find_interval(r, number, iv.begin, iv.end, &hash) != SIZE_MAX)
        return;
    *map_put(&r->intervals, hash, NULL) = r->f.intervals.n + 1;
    if (iv.state == GRAPH_PREEMPTED && r->inner->describe_preempted)
        r->inner->describe_preempted(r->inner->arg, row, &iv);
    vec_push(&r->f.intervals,
        ((struct fragment_interval){.row = number,
            .begin = iv.begin,
            .end = iv.end,
            .state = iv.state,
            .polling = iv.polling,
            .assumed = iv.assumed,
            .cpu = iv.cpu,
            .detail = number_of_string(r, iv.detail)}));
    if (row.row < 0)
        add_origin(r, row, &iv, r->f.intervals.n - 1);
}

static enum path_reply interval(void *arg, struct path_row row, int64_t ts, int64_t bound, struct path_interval *out)
{
    struct recorder *r = arg;
    enum path_reply reply = r->inner->interval(r->inner->arg, row, ts, bound, out);
    if (reply == PATH_REPLY_FOUND) {
        add_interval(r, row, *out);
    } else {
        uint32_t number = number_of_row(r, row);
        bool fresh;
        map_put(&r->nones, map_mix(map_mix(number) ^ (uint64_t)ts), &fresh);
        if (fresh)
            vec_push(&r->f.nones, ((struct fragment_none){number, ts}));
    }
    return reply;
}

static void cause(
    void *arg, struct path_row row, const struct path_interval *iv, int64_t bound, bool origin, struct path_cause *out)
{
    struct recorder *r = arg;
    uint32_t number = number_of_row(r, row);
    uint64_t hash;
    r->inner->cause(r->inner->arg, row, iv, bound, origin, out);
    uint32_t added = 0;
    if (origin && row.row >= 0) {
        if (!r->f.rows.v[number].origin)
            added = add_cause(r, row.host, out), r->f.rows.v[number].origin = added;
    } else if (!origin) {
        size_t i = find_interval(r, number, iv->begin, iv->end, &hash);
        if (i != SIZE_MAX && !r->f.intervals.v[i].cause)
            added = add_cause(r, row.host, out), r->f.intervals.v[i].cause = added;
    }
}

static enum path_reply life(void *arg, struct path_row row, int64_t *begin, int64_t *end)
{
    struct recorder *r = arg;
    enum path_reply reply = r->inner->life(r->inner->arg, row, begin, end);
    if (reply == PATH_REPLY_FOUND) {
        uint32_t number = number_of_row(r, row);
        struct fragment_row *out = &r->f.rows.v[number];
        out->has_life = true;
        out->begin = *begin;
        out->end = *end;
    }
    return reply;
}

static const char *host_name(void *arg, int32_t host)
{
    const struct recorder *r = arg;
    return r->inner->host_name(r->inner->arg, host);
}

static void row_name(void *arg, struct path_row row, int64_t begin, int64_t end, int32_t *tid, const char **comm)
{
    const struct recorder *r = arg;
    r->inner->row_name(r->inner->arg, row, begin, end, tid, comm);
}

/* ---- windows ---- */

static void walk_down(struct recorder *r, struct path_row row, int64_t t, int64_t bound, bool no_early_return,
    uint8_t reached, uint64_t *steps)
{
    struct path_interval iv;
    if (interval(r, row, t, bound, &iv) == PATH_REPLY_FOUND && bound >= t)
        return;
    struct path_options o = {
        .begin = bound, .end = t, .reached = reached, .receiver = {-1, -1}, .no_early_return = no_early_return};
    struct path_query *q = path_query_new(&r->source, row, &o);
    int rc = PATH_MORE;
    if (bound < t)
        rc = path_query_run(q, STEPS_AT_ONCE, NULL);
    while (rc == PATH_MORE && *steps > STEPS_AT_ONCE && time_monotonic_ns() < r->deadline_ns) {
        rc = path_query_run(q, STEPS_AT_ONCE, NULL);
        *steps -= STEPS_AT_ONCE;
    }
    path_query_free(q);
}

/* Records the stretch of running that contains t, or that ended with the wait that contains t: early return will ask
 * for it, interval by interval. */
static void look_through_stretch(struct recorder *r, struct path_row row, int64_t t, int most)
{
    struct path_interval iv;
    for (int i = 0; i < most && t > INT64_MIN; i++) {
        if (interval(r, row, t, t - 1, &iv) != PATH_REPLY_FOUND || iv.begin >= t || (i && !graph_is_awake(iv.state)))
            return;
        t = iv.begin;
    }
}

static struct path_row row_of(const struct recorder *r, const struct path_window *w)
{
    struct path_row row = {w->host, -1};
    if (path_is_remote_cpu(w->row)) {
        row.row = path_remote_cpu_row(w->row);
        row.row = row.row < 0 ? row.row : -1;
    } else {
        row.row = r->ids->row(r->ids->arg, w->host, w->row);
        row.host = row.row < 0 ? -1 : row.host;
    }
    return row;
}

static void answer_row(struct recorder *r, const struct path_window *w, bool no_early_return, uint64_t *steps)
{
    int64_t begin, end;
    struct path_row row = row_of(r, w);
    if (row.host < 0)
        return;
    number_of_row(r, row);
    if (w->kind == PATH_WINDOW_ROW) {
        walk_down(
            r, row, w->t, w->bound, no_early_return, w->open ? PATH_REACHED_BY_NOTHING : PATH_REACHED_BY_SIGNAL, steps);
        look_through_stretch(r, row, w->t, STRETCH_ASKED);
        look_through_stretch(r, row, w->bound, STRETCH_GUESSED);
    } else if (life(r, row, &begin, &end) == PATH_REPLY_FOUND) {
        begin = begin > w->bound ? begin : w->bound;
        end = end < w->t ? end : w->t;
        if (begin < end)
            walk_down(r, row, end, begin, no_early_return, PATH_REACHED_BY_NOTHING, steps);
    }
}

static struct fragment_answer answer_message(
    struct recorder *r, const struct path_window *w, bool no_early_return, uint64_t *steps)
{
    struct fragment_answer a = answer_of(r, w->host, &w->message);
    if (a.from) {
        const struct fragment_row *row = &r->f.rows.v[a.from - 1];
        int32_t number = path_is_remote_cpu(row->id) ? path_remote_cpu_row(row->id)
                                                     : r->ids->row(r->ids->arg, row->host, row->id);
        struct path_row sender = {w->host, number};
        int64_t t = a.ts < w->t ? a.ts : w->t;
        walk_down(r, sender, t, w->bound, no_early_return, PATH_REACHED_BY_MESSAGE, steps);
        if (number >= 0)
            look_through_stretch(r, sender, t < w->bound ? t : w->bound, STRETCH_GUESSED);
    }
    return a;
}

int path_fragment_write(const struct path_local *local, const struct path_row_ids *ids,
    const struct path_request *request, uint64_t max_steps, int64_t deadline_ns, struct text *out, struct err *e)
{
    size_t n_hosts;
    int rc = 0;
    struct recorder r = {.local = local,
        .inner = request->assuming ? path_local_source_assuming(local) : path_local_source(local),
        .ids = ids,
        .deadline_ns = deadline_ns};
    r.hosts = path_local_hosts(local, &n_hosts);
    r.source = (struct path_source){
        .arg = &r, .life = life, .interval = interval, .cause = cause, .host_name = host_name, .row_name = row_name};
    for (size_t i = 0; i < request->n_windows && !rc; i++) {
        const struct path_window *w = &request->windows[i];
        struct fragment_answer a = {.host = -1};
        if (time_monotonic_ns() >= deadline_ns)
            rc = err_set(
                e, ERR_TIMEOUT, "the time for the answer was over at window %zu of %zu", i, request->n_windows);
        if (w->host < 0 || (size_t)w->host >= n_hosts || !r.hosts[w->host].graph)
            ;
        else if (w->kind == PATH_WINDOW_MESSAGE)
            a = answer_message(&r, w, request->no_early_return, &max_steps);
        else
            answer_row(&r, w, request->no_early_return, &max_steps);
        vec_push(&r.f.results, a);
    }
    if (!rc)
        path_fragment_pack(&r.f, out);
    path_fragment_fini(&r.f);
    map_fini(&r.rows);
    map_fini(&r.intervals);
    map_fini(&r.nones);
    map_fini(&r.messages);
    return rc;
}
