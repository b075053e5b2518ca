/* SPDX-License-Identifier: MIT */
/* Knowledge of graphs on other nodes: contents of fragments, as a source, and the windows still wanted. */
#include "path/known.h"

#include <stdlib.h>
#include <string.h>

#include "base/search.h"
#include "base/text.h"

int64_t path_far_begin(const struct path_far_host *h)
{
    struct path_local_host host = {.map = h->map};
    return path_to_reference(&host, h->begin);
}

int64_t path_far_end(const struct path_far_host *h)
{
    struct path_local_host host = {.map = h->map};
    return path_to_reference(&host, h->end);
}

/* ---- rows ---- */

static uint64_t row_hash(int32_t host, uint64_t id)
{
    return map_mix(map_mix((uint64_t)(uint32_t)host) ^ id);
}

uint32_t path_known_row_number(struct path_known *k, int32_t host, uint64_t id)
{
    uint64_t *at;
    uint64_t hash = row_hash(host, id);
    for (; (at = map_find(&k->row_of, hash)); hash++)
        if (k->rows.v[*at - 1].host == host && k->rows.v[*at - 1].id == id)
            return (uint32_t)*at - 1;
    vec_push(&k->rows, ((struct known_row){.host = host, .id = id, .open_end = INT64_MIN}));
    *map_put(&k->row_of, hash, NULL) = k->rows.n;
    return (uint32_t)k->rows.n - 1;
}

/* Rows of CPUs keep their numbers; threads get ours. */
struct path_row path_known_path_row(const struct path_known *k, uint32_t number)
{
    const struct known_row *r = &k->rows.v[number];
    return (struct path_row){r->host, path_is_remote_cpu(r->id) ? path_remote_cpu_row(r->id) : (int32_t)number};
}

static uint32_t number_of(struct path_known *k, struct path_row row)
{
    return row.row < 0 ? path_known_row_number(k, row.host, path_remote_cpu(row.row)) : (uint32_t)row.row;
}

struct path_row path_known_row(struct path_known *k, int32_t host, uint64_t id)
{
    return path_known_path_row(k, path_known_row_number(k, host, id));
}

uint64_t path_known_row_id(const struct path_known *k, struct path_row row)
{
    return row.row >= 0 && (size_t)row.row < k->rows.n ? k->rows.v[row.row].id : 0;
}

void path_known_ask_open(struct path_known *k, struct path_row row, int64_t end)
{
    uint32_t number = number_of(k, row);
    k->rows.v[number].open_end = end;
}

/* ---- wanted windows ---- */

uint64_t path_known_window_hash(const struct path_window *w)
{
    uint64_t h = map_mix(map_mix((uint64_t)w->kind << 32 | (uint32_t)w->host) ^ w->row);
    if (w->kind != PATH_WINDOW_MESSAGE)
        return map_mix(h ^ (uint64_t)w->t);
    return map_mix(h ^ path_known_message_hash(&w->message));
}

/* Marks a window as needed by the counting walk. */
static void use(struct path_known *k, const struct path_window *w)
{
    if (k->counting)
        *map_put(&k->used, path_known_window_hash(w), NULL) = 1;
}

/* Returns the name of the node that is away and was asked for it, or NULL. */
static const char *who_is_away(const struct path_known *k, const struct path_window *w)
{
    const uint64_t *at = map_find(&k->away, path_known_window_hash(w));
    return at ? (const char *)(uintptr_t)*at : NULL;
}

/* Returns whether the window is pending, which it is until answered; an answer without the requested part means that
 * there is none. */
static bool want(struct path_known *k, const struct path_window *w)
{
    if (k->counting) {
        const uint64_t *was = map_find(&k->asked, path_known_window_hash(w));
        return !was || *was < ANSWERED;
    }
    uint64_t *state = map_put(&k->asked, path_known_window_hash(w), NULL);
    if (*state >= ANSWERED)
        return false;
    if (*state == NOT_ASKED)
        vec_push(&k->wanted, *w);
    *state = ASKED;
    return true;
}

size_t path_known_take(struct path_known *k, const struct path_window **out)
{
    size_t n = k->wanted.n - k->taken;
    *out = k->wanted.v + k->taken;
    k->taken = k->wanted.n;
    if (!n)
        k->wanted.n = k->taken = 0;
    return n;
}

static struct path_window window_of_row(const struct path_known *k, uint32_t number, int64_t t, int64_t bound)
{
    const struct known_row *r = &k->rows.v[number];
    return (struct path_window){
        .kind = PATH_WINDOW_ROW, .open = t == r->open_end, .host = r->host, .row = r->id, .t = t, .bound = bound};
}

/* Returns the node that is away and was asked for the row's activity before t, or NULL. */
static const char *away_at(const struct path_known *k, uint32_t number, int64_t t)
{
    struct path_window w = window_of_row(k, number, t, t);
    return who_is_away(k, &w);
}

static void use_row(struct path_known *k, uint32_t number, int64_t t)
{
    struct path_window w;
    if (k->counting) {
        w = window_of_row(k, number, t, t);
        use(k, &w);
    }
}

/* ---- the source ---- */

static enum path_reply life(void *arg, struct path_row row, int64_t *begin, int64_t *end)
{
    struct path_known *k = arg;
    uint32_t number = number_of(k, row);
    const struct known_row *r = &k->rows.v[number];
    struct path_window w = {.kind = PATH_WINDOW_LIFE, .host = r->host, .row = r->id, .t = *end, .bound = *begin};
    use(k, &w);
    *begin = r->begin;
    *end = r->end;
    return r->has_life ? PATH_REPLY_FOUND : want(k, &w) ? PATH_REPLY_PENDING : PATH_REPLY_NONE;
}

uint64_t path_known_none_hash(uint32_t row, int64_t ts)
{
    return map_mix(map_mix(row) ^ (uint64_t)ts);
}

static const struct known_interval *find_interval(const struct path_known *k, uint32_t row, int64_t ts)
{
    const struct known_row *r = &k->rows.v[row];
    size_t i = search_first(j, 0, r->intervals.n, k->intervals.v[r->intervals.v[j]].is.end >= ts);
    if (i == r->intervals.n)
        return NULL;
    const struct known_interval *v = &k->intervals.v[r->intervals.v[i]];
    return v->is.begin < ts && (!path_is_remote_cpu(r->id) || v->is.end == ts) ? v : NULL;
}

static enum path_reply interval(void *arg, struct path_row row, int64_t ts, int64_t bound, struct path_interval *out)
{
    struct path_known *k = arg;
    uint32_t number = number_of(k, row);
    const struct known_interval *v = find_interval(k, number, ts);
    use_row(k, number, ts);
    if (v) {
        *out = v->is;
        return PATH_REPLY_FOUND;
    }
    if (map_find(&k->nones, path_known_none_hash(number, ts)))
        return PATH_REPLY_NONE;
    struct path_window w = window_of_row(k, number, ts, bound);
    return want(k, &w) ? PATH_REPLY_PENDING : PATH_REPLY_NONE;
}

static void describe_preempted(void *arg, struct path_row row, struct path_interval *iv)
{
    const struct path_known *k = arg;
    (void)row;
    if (iv->id < k->intervals.n) {
        iv->cpu = k->intervals.v[iv->id].is.cpu;
        iv->detail = k->intervals.v[iv->id].is.detail;
    }
}

/* ---- messages ---- */

struct known_answer *path_known_answer_of(struct known_message *m, int32_t host)
{
    for (size_t i = 0; i < m->answers.n; i++)
        if (m->answers.v[i].is.host == host)
            return &m->answers.v[i];
    return NULL;
}

/* Returns whether a host that reports no addresses may have sent it: such hosts are asked. */
static bool may_send(void *arg, int32_t host, const struct flow_key *key)
{
    (void)arg;
    (void)host;
    (void)key;
    return true;
}

static bool comparable(const struct path_known *k, int32_t a, int32_t b)
{
    struct path_local_host ha = {.map = k->hosts[a].map}, hb = {.map = k->hosts[b].map};
    return a == b || path_comparable(&ha, &hb);
}

static bool is_boot_of_same(const struct path_known *k, int32_t a, int32_t b)
{
    return a != b && !strcmp(k->hosts[a].name, k->hosts[b].name);
}

static struct path_window window_of(const struct known_message *m, int32_t host, int64_t end, int64_t bound)
{
    return (struct path_window){
        .kind = PATH_WINDOW_MESSAGE, .host = host, .t = end, .bound = bound, .message = m->message};
}

/* Asks all hosts; only answers of candidates count. False: some have not answered yet. */
static bool ask_everybody(struct path_known *k, struct known_message *m, int64_t end, int64_t bound)
{
    bool all = true;
    for (size_t i = 0; i < k->n; i++) {
        struct path_window w = window_of(m, (int32_t)i, end, bound);
        if (!k->hosts[i].has_packets)
            continue;
        use(k, &w);
        if (!path_known_answer_of(m, (int32_t)i))
            all &= !want(k, &w);
    }
    return all;
}

/* Asks candidates [from, to); `some`: only those that may have sent it by the reported addresses. False: some have not
 * answered yet. */
static bool ask_candidates(struct path_known *k, struct known_message *m, size_t from, size_t to, bool some,
    int64_t end, int64_t bound, const struct known_answer **best)
{
    bool all = true;
    some = some && k->options.may_have_sent && !k->options.everybody;
    for (size_t i = from; i < to; i++) {
        int32_t host = m->candidates.hosts.v[i];
        struct path_window w = window_of(m, host, end, bound);
        const struct known_answer *a = path_known_answer_of(m, host);
        if (is_boot_of_same(k, host, m->message.host) ||
            (some && !k->options.may_have_sent(k->options.arg, host, &m->message.key, i < m->candidates.sure)))
            continue;
        use(k, &w);
        if (!a) {
            all &= !want(k, &w);
            continue;
        }
        if (a->is.answer == FLOW_NOT_SENT)
            continue;
        struct sender s = {.answer = a->is.answer, .sent = a->is.ts},
                      b = {.answer = *best ? (*best)->is.answer : 0, .sent = *best ? (*best)->is.ts : 0};
        if (!*best ||
            path_sender_is_better(m->message.received, &s, &b, is_boot_of_same(k, host, (*best)->is.host),
                comparable(k, host, (*best)->is.host)))
            *best = a;
    }
    return all;
}

/* Returns the node if the message may have been sent at a time that cannot be asked about. */
static const char *away_from(struct path_known *k, const struct known_message *m, int32_t host)
{
    return arena_printf(&k->arena, "%s (%s)", k->hosts[host].away, m->labels->address);
}

/* Sets the reason of a missing sender: the peer was not traced, is away, may be away, or has lost events there. */
static void not_sent(struct path_known *k, struct known_message *m, struct path_cause *out)
{
    *out = (struct path_cause){.kind = PATH_CAUSE_NONE, .reason = PATH_UNTRACED_PEER, .label = m->labels->address};
    for (size_t i = 0; i < m->candidates.sure; i++) {
        int32_t host = m->candidates.hosts.v[i];
        const struct known_answer *a = path_known_answer_of(m, host);
        if (a && !a->away && !k->hosts[host].n_own && !a->is.may_send)
            continue; /* was asked only because it reports no addresses */
        const char *away = a && a->away ? a->away : a && k->hosts[host].away ? away_from(k, m, host) : NULL;
        if (away) {
            out->reason = PATH_OFFLINE_NODE;
            out->label = away;
            return;
        }
        if (!comparable(k, m->message.host, host))
            out->reason = PATH_NO_CLOCK;
        else if (a && a->is.lost)
            out->reason = PATH_LOST_EVENTS;
    }
    if (!m->candidates.sure && k->options.others) {
        out->reason = PATH_OFFLINE_NODE;
        out->label = arena_printf(&k->arena, "%s (%s)", k->options.others, m->labels->address);
    }
}

static bool is_of_several_machines(const struct path_known *k, const struct known_message *m)
{
    const struct candidates *c = &m->candidates;
    size_t i = 1;
    while (i < c->sure && is_boot_of_same(k, c->hosts.v[0], c->hosts.v[i]))
        i++;
    return i < c->sure;
}

/* If several machines have had the address, asks those that can have sent it: if one did, the others did not. If none
 * did, lost events of the others may explain it. */
static bool ask_owners(
    struct path_known *k, struct known_message *m, int64_t end, int64_t bound, const struct known_answer **best)
{
    size_t sure = m->candidates.sure;
    if (is_of_several_machines(k, m)) {
        bool all = ask_candidates(k, m, 0, sure, true, end, bound, best);
        if (!all || *best)
            return all;
    }
    return ask_candidates(k, m, 0, sure, false, end, bound, best);
}

static void cause_of_message(
    struct path_known *k, struct known_message *m, int64_t end, int64_t bound, struct path_cause *out)
{
    const struct known_answer *best = NULL;
    if (!m->has_candidates)
        path_candidates_find(k->book, m->message.host, &m->message.key.flow, may_send, k, &m->candidates);
    m->has_candidates = true;
    bool all = !k->options.everybody || ask_everybody(k, m, end, bound);
    all = all && ask_owners(k, m, end, bound, &best);
    if (all && !best)
        all = ask_candidates(k, m, m->candidates.sure, m->candidates.hosts.n, true, end, bound, &best);
    if (!all)
        *out = (struct path_cause){.kind = PATH_CAUSE_PENDING, .reason = PATH_PENDING};
    else if (!best)
        not_sent(k, m, out);
    else if (!comparable(k, m->message.host, best->is.host))
        *out = (struct path_cause){.kind = PATH_CAUSE_NONE, .reason = PATH_NO_CLOCK, .label = m->labels->address};
    else
        *out = (struct path_cause){.kind = PATH_CAUSE_NETWORK,
            .from = best->from,
            .ts = best->is.ts,
            .label = best->is.answer == FLOW_AMBIGUOUS ? m->labels->unsure : m->labels->label};
}

/* ---- causes ---- */

static uint32_t known_cause_of(const struct path_known *k, uint32_t row, const struct path_interval *iv, bool origin)
{
    if (origin && !path_is_remote_cpu(k->rows.v[row].id))
        return k->rows.v[row].origin;
    if (iv->id >= k->intervals.n)
        return 0;
    return origin ? k->intervals.v[iv->id].origin : k->intervals.v[iv->id].cause;
}

/* Returns whether the node with the rest may know it: the row's activity at the border of the time that can be
 * requested, and what a gap in the events hides, which need not be there. */
static bool may_be_away(
    const struct path_far_host *h, const struct path_interval *iv, bool origin, enum path_reason reason)
{
    if (!h->away)
        return false;
    return reason == PATH_LOST_EVENTS ||
        (reason == PATH_NO_WAKER && (origin || iv->begin <= path_far_begin(h) || iv->end >= path_far_end(h)));
}

static void cause(
    void *arg, struct path_row row, const struct path_interval *iv, int64_t bound, bool origin, struct path_cause *out)
{
    struct path_known *k = arg;
    uint32_t number = number_of(k, row), known = known_cause_of(k, number, iv, origin);
    bool by_message = known && k->causes.v[known - 1].message;
    *out = (struct path_cause){.kind = PATH_CAUSE_NONE, .reason = PATH_NO_WAKER};
    use_row(k, number, iv->end);
    if (origin && (out->label = away_at(k, number, iv->end))) {
        out->reason = PATH_OFFLINE_NODE; /* the row need not have begun there: its earlier activity was not answered */
    } else if (known) {
        const struct known_cause *c = &k->causes.v[known - 1];
        if (c->message)
            cause_of_message(k, &k->messages.v[c->message - 1], iv->end, bound, out);
        else
            *out = c->is;
        out->is_reply = c->is.is_reply;
        out->asked = c->is.asked;
    } else if (!(origin && row.row < 0 && iv->id == PATH_ID_NONE)) {
        struct path_window w = window_of_row(k, number, iv->end, bound < iv->end ? bound : iv->end - 1);
        if (want(k, &w)) {
            *out = (struct path_cause){.kind = PATH_CAUSE_PENDING, .reason = PATH_PENDING};
        } else if ((out->label = who_is_away(k, &w))) {
            out->reason = PATH_OFFLINE_NODE;
        }
    }
    const struct path_far_host *h = &k->hosts[row.host];
    if (out->kind == PATH_CAUSE_NONE && !by_message && may_be_away(h, iv, origin, out->reason)) {
        out->reason = PATH_OFFLINE_NODE;
        out->label = h->away;
    }
}

/* ---- names ---- */

static const char *host_name(void *arg, int32_t host)
{
    const struct path_known *k = arg;
    return host >= 0 && (size_t)host < k->n ? k->hosts[host].name : "";
}

static void row_name(void *arg, struct path_row row, int64_t begin, int64_t end, int32_t *tid, const char **comm)
{
    const struct path_known *k = arg;
    *tid = -1;
    *comm = "";
    if (row.row < 0 || (size_t)row.row >= k->rows.n)
        return;
    const struct known_row *r = &k->rows.v[row.row];
    const struct path_local_host h = {.map = k->hosts[r->host].map};
    if (!r->names.n)
        return;
    const struct graph_name *n = &r->names.v[graph_name_then(
        r->names.v, r->names.n, path_from_reference(&h, begin), path_from_reference(&h, end))];
    *tid = n->tid;
    *comm = n->name;
}

static const char *container(void *arg, struct path_row row)
{
    const struct path_known *k = arg;
    const char *told = row.row >= 0 && (size_t)row.row < k->rows.n ? k->rows.v[row.row].container : NULL;
    return told ? told : "";
}

/* ---- requests ---- */

/* Number of a host in the list of the request, or the list's length. */
static int32_t place_of(const struct path_ask *ask, int32_t host)
{
    size_t i = 0;
    while (i < ask->n_hosts && ask->hosts[i] != host)
        i++;
    return (int32_t)i;
}

void path_known_request(const struct path_known *k, const struct path_ask *ask, struct text *out)
{
    struct path_remote_host *hosts = mem_zalloc((ask->n_hosts + 1) * sizeof *hosts);
    struct path_window *windows = mem_zalloc((ask->n_windows + 1) * sizeof *windows);
    for (size_t i = 0; i < ask->n_hosts; i++) {
        const struct path_far_host *h = &k->hosts[ask->hosts[i]];
        hosts[i] = (struct path_remote_host){h->id, h->name, h->map};
    }
    for (size_t i = 0; i < ask->n_windows; i++) {
        windows[i] = ask->windows[i];
        windows[i].host = place_of(ask, windows[i].host);
        windows[i].message.host = place_of(ask, windows[i].message.host);
    }
    struct path_request r = {.hosts = hosts,
        .n_hosts = ask->n_hosts,
        .windows = windows,
        .n_windows = ask->n_windows,
        .assuming = k->options.assuming,
        .no_early_return = k->options.no_early_return};
    path_request_write(&r, out);
    free(hosts);
    free(windows);
}

/* ---- beginning and end ---- */

struct path_known *path_known_new(const struct path_far_host *hosts, size_t n, const struct path_known_options *options)
{
    struct path_known *k = mem_zalloc(sizeof *k);
    k->hosts = hosts;
    k->n = n;
    k->options = *options;
    k->source = (struct path_source){.arg = k,
        .life = life,
        .interval = interval,
        .describe_preempted = describe_preempted,
        .cause = cause,
        .host_name = host_name,
        .row_name = row_name,
        .container = container,
        .stack = path_known_find_stack};
    k->book = path_candidate_book_new();
    for (size_t i = 0; i < n; i++)
        if (hosts[i].has_packets)
            path_candidate_book_add(k->book, hosts[i].own, hosts[i].n_own, hosts[i].peers, hosts[i].n_peers);
        else
            path_candidate_book_skip(k->book);
    return k;
}

const struct path_source *path_known_source(const struct path_known *k)
{
    return &k->source;
}

size_t path_known_unused(struct path_known *k, struct path_row row, const struct path_options *options, size_t *asked)
{
    struct path *p;
    size_t unused = 0;
    k->counting = true;
    if (!path_walk(&k->source, row, options, &p, NULL))
        path_free(p);
    k->counting = false;
    *asked = 0;
    for (size_t i = 0; i < k->asked.cap; i++) {
        bool counts = k->asked.used[i] && k->asked.values[i] != RECALLED;
        *asked += counts;
        unused += counts && !map_find(&k->used, k->asked.keys[i]);
    }
    return unused;
}

void path_known_free(struct path_known *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->rows.n; i++) {
        vec_free(&k->rows.v[i].intervals);
        vec_free(&k->rows.v[i].names);
    }
    for (size_t i = 0; i < k->messages.n; i++) {
        vec_free(&k->messages.v[i].candidates.hosts);
        vec_free(&k->messages.v[i].answers);
    }
    vec_free(&k->rows);
    vec_free(&k->intervals);
    vec_free(&k->causes);
    vec_free(&k->messages);
    vec_free(&k->wanted);
    vec_free(&k->stacks);
    map_fini(&k->stack_of);
    map_fini(&k->row_of);
    map_fini(&k->message_of);
    map_fini(&k->labels);
    map_fini(&k->nones);
    map_fini(&k->asked);
    map_fini(&k->used);
    map_fini(&k->away);
    path_candidate_book_free(k->book);
    strings_fini(&k->strings);
    arena_fini(&k->arena);
    free(k);
}
