/* SPDX-License-Identifier: MIT */
/* Encoding of fragments and requests. */
#include "path/fragment.h"

#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/order.h"
#include "base/wire.h"
#include "base/text.h"

enum {
    MOST_WINDOWS = 1 << 16, /* limit for requests, whatever they claim */
    MOST_HOSTS = 1 << 16,
    FRAGMENT_VERSION = 2,
    REQUEST_VERSION = 1,
    FLAG_POLLING = 16,
    FLAG_ASSUMED = 32,
    FLAG_CAUSE = 64, /* combined with STATE in the low bits */
    FLAG_ORIGIN = 128,
    ANSWER_MAY_SEND = 4,
    ANSWER_LOST = 8,
    CAUSE_REPLY = 128
};

void path_fragment_fini(struct fragment *f)
{
    vec_free(&f->rows);
    vec_free(&f->names);
    vec_free(&f->intervals);
    vec_free(&f->nones);
    vec_free(&f->causes);
    vec_free(&f->messages);
    vec_free(&f->answers);
    vec_free(&f->results);
    strings_fini(&f->strings);
}

/* ---- messages ---- */

static size_t address_bytes(uint8_t family)
{
    return family == 4 ? 4 : 16;
}

void path_message_pack(struct text *out, const struct path_message *m)
{
    const struct flow_message_key *k = &m->key;
    text_putc(out, (char)k->flow.family);
    text_putc(out, (char)k->flow.protocol);
    wire_put_u(out, k->flow.sport);
    wire_put_u(out, k->flow.dport);
    wire_put_bytes(out, k->flow.saddr, address_bytes(k->flow.family));
    wire_put_bytes(out, k->flow.daddr, address_bytes(k->flow.family));
    wire_put_u(out, k->seq_end);
    wire_put_u(out, k->ack);
    wire_put_u(out, k->bytes);
    wire_put_u(out, k->flags);
    wire_put_u(out, k->ip_id);
    unsigned silences = 0;
    while (silences < FLOW_SILENCES && k->silences[silences].length_ns)
        silences++;
    wire_put_u(out, silences);
    for (unsigned i = 0; i < silences; i++) {
        wire_put_u(out, k->silences[i].length_ns);
        wire_put_u(out, k->silences[i].since_ns);
    }
    wire_put_u(out, (uint64_t)m->host);
    wire_put_i(out, m->received);
    wire_put_i(out, (int64_t)((uint64_t)m->at - (uint64_t)m->received));
    wire_put_i(out, m->error_ns);
    wire_put_i(out, m->island);
}

void path_message_unpack(struct wire_in *u, size_t n_hosts, struct path_message *m)
{
    struct flow_message_key *k = &m->key;
    *m = (struct path_message){0};
    wire_bytes(u, &k->flow.family, 1);
    wire_bytes(u, &k->flow.protocol, 1);
    k->flow.sport = (uint16_t)wire_below(u, 1 << 16);
    k->flow.dport = (uint16_t)wire_below(u, 1 << 16);
    wire_bytes(u, k->flow.saddr, address_bytes(k->flow.family));
    wire_bytes(u, k->flow.daddr, address_bytes(k->flow.family));
    k->seq_end = (uint32_t)wire_below(u, UINT64_C(1) << 32);
    k->ack = (uint32_t)wire_below(u, UINT64_C(1) << 32);
    k->bytes = (uint32_t)wire_below(u, UINT64_C(1) << 32);
    k->flags = (uint16_t)wire_below(u, 1 << 16);
    k->ip_id = (uint16_t)wire_below(u, 1 << 16);
    uint64_t silences = wire_below(u, FLOW_SILENCES + 1);
    for (uint64_t i = 0; i < silences; i++) {
        k->silences[i].length_ns = wire_u(u);
        k->silences[i].since_ns = wire_u(u);
    }
    m->host = (int32_t)wire_below(u, n_hosts);
    m->received = wire_i(u);
    m->at = (int64_t)((uint64_t)wire_i(u) + (uint64_t)m->received);
    m->error_ns = wire_i(u);
    m->island = wire_i(u);
}

/* ---- fragments ---- */

static int by_row_and_time(const void *pa, const void *pb)
{
    const struct fragment_interval *a = pa, *b = pb;
    return order_of(a->row, b->row) ?: order_of(a->begin, b->begin) ?: order_of(a->end, b->end);
}

static void pack_rows(const struct fragment *f, struct text *out)
{
    wire_put_u(out, f->rows.n);
    for (size_t i = 0; i < f->rows.n; i++) {
        const struct fragment_row *r = &f->rows.v[i];
        wire_put_u(out, (uint64_t)r->host << 1 | r->has_life);
        wire_put_u(out, r->id << 1 | r->id >> 63);
        if (r->has_life) {
            wire_put_i(out, r->begin);
            wire_put_i(out, (int64_t)((uint64_t)r->end - (uint64_t)r->begin));
        }
        wire_put_u(out, r->origin);
        wire_put_u(out, r->n_names);
        for (size_t k = 0; k < r->n_names; k++) {
            const struct graph_name *n = &f->names.v[r->first_name + k];
            wire_put_i(out, n->until);
            wire_put_i(out, n->tid);
            wire_put_string(out, n->name);
        }
    }
}

/* Writes the count of each row's intervals, then the gaps between them, which are mostly 0. */
static void pack_intervals(struct fragment *f, struct text *out)
{
    if (f->intervals.n)
        qsort(f->intervals.v, f->intervals.n, sizeof *f->intervals.v, by_row_and_time);
    size_t i = 0;
    for (uint32_t row = 0; row < f->rows.n; row++) {
        size_t first = i;
        int64_t at = 0;
        while (i < f->intervals.n && f->intervals.v[i].row == row)
            i++;
        wire_put_u(out, i - first);
        for (size_t k = first; k < i; k++) {
            const struct fragment_interval *v = &f->intervals.v[k];
            text_putc(out,
                (char)(v->state | (v->polling ? FLAG_POLLING : 0) | (v->assumed ? FLAG_ASSUMED : 0) |
                    (v->cause ? FLAG_CAUSE : 0) | (v->origin ? FLAG_ORIGIN : 0)));
            wire_put_i(out, (int64_t)((uint64_t)v->begin - (uint64_t)at));
            wire_put_u(out, (uint64_t)v->end - (uint64_t)v->begin);
            wire_put_i(out, v->cpu);
            wire_put_u(out, v->detail);
            if (v->cause)
                wire_put_u(out, v->cause);
            if (v->origin)
                wire_put_u(out, v->origin);
            at = v->end;
        }
    }
}

static void pack_answer(const struct fragment_answer *a, int64_t base, struct text *out)
{
    wire_put_u(out, (uint64_t)(a->host + 1));
    if (a->host < 0)
        return;
    text_putc(out, (char)(a->answer | (a->may_send ? ANSWER_MAY_SEND : 0) | (a->lost ? ANSWER_LOST : 0)));
    wire_put_u(out, a->from);
    if (a->from)
        wire_put_i(out, (int64_t)((uint64_t)a->ts - (uint64_t)base));
}

void path_fragment_pack(struct fragment *f, struct text *out)
{
    int64_t base = f->intervals.n ? f->intervals.v[0].begin : 0;
    text_putc(out, FRAGMENT_VERSION);
    wire_put_i(out, base);
    wire_put_u(out, f->strings.n ? f->strings.n - 1 : 0); /* number 0 is "" */
    for (size_t i = 1; i < f->strings.n; i++)
        wire_put_string(out, f->strings.v[i]);
    pack_rows(f, out);
    pack_intervals(f, out);
    wire_put_u(out, f->nones.n);
    for (size_t i = 0; i < f->nones.n; i++) {
        wire_put_u(out, f->nones.v[i].row);
        wire_put_i(out, (int64_t)((uint64_t)f->nones.v[i].ts - (uint64_t)base));
    }
    wire_put_u(out, f->causes.n);
    for (size_t i = 0; i < f->causes.n; i++) {
        const struct fragment_cause *c = &f->causes.v[i];
        text_putc(out, (char)(c->kind | c->reason << 4 | (c->is_reply ? CAUSE_REPLY : 0)));
        wire_put_u(out, c->message);
        wire_put_u(out, c->from);
        if (c->from)
            wire_put_i(out, (int64_t)((uint64_t)c->ts - (uint64_t)base));
        if (c->is_reply)
            wire_put_i(out, (int64_t)((uint64_t)c->asked - (uint64_t)base));
    }
    wire_put_u(out, f->messages.n);
    for (size_t i = 0; i < f->messages.n; i++) {
        const struct fragment_message *m = &f->messages.v[i];
        path_message_pack(out, &m->message);
        wire_put_u(out, m->n_answers);
        for (size_t k = 0; k < m->n_answers; k++)
            pack_answer(&f->answers.v[m->first_answer + k], base, out);
    }
    for (size_t i = 0; i < f->results.n; i++)
        pack_answer(&f->results.v[i], base, out);
}

static int64_t unpack_time(struct wire_in *u, int64_t base)
{
    return (int64_t)((uint64_t)base + (uint64_t)wire_i(u));
}

/* Reads a number, + 1 where 0 means none. */
static uint32_t unpack_number(struct wire_in *u, size_t n)
{
    return (uint32_t)wire_below(u, n);
}

/* Reads a text, terminated in the fragment's strings. */
static const char *unpack_text(struct wire_in *u, struct strings *strings)
{
    size_t n;
    const char *s = wire_string(u, &n);
    return strings_get(strings, strings_intern(strings, s, strnlen(s, n)));
}

static void unpack_names(struct fragment *f, struct wire_in *u, struct fragment_row *r)
{
    r->first_name = (uint32_t)f->names.n;
    r->n_names = (uint32_t)wire_count(u, 3);
    for (size_t k = 0; k < r->n_names && !u->damaged; k++) {
        struct graph_name n = {.until = wire_i(u), .tid = (int32_t)wire_i(u)};
        n.name = unpack_text(u, &f->strings);
        if (k && n.until < f->names.v[f->names.n - 1].until)
            u->damaged = true;
        vec_push(&f->names, n);
    }
    if (r->n_names && !u->damaged)
        f->names.v[f->names.n - 1].until = INT64_MAX;
}

static void unpack_rows(struct fragment *f, struct wire_in *u, size_t n_hosts)
{
    size_t n = wire_count(u, 4);
    for (size_t i = 0; i < n && !u->damaged; i++) {
        struct fragment_row r = {0};
        uint64_t host = wire_below(u, (uint64_t)n_hosts << 1), id;
        r.host = (int32_t)(host >> 1);
        r.has_life = host & 1;
        id = wire_u(u);
        r.id = id >> 1 | id << 63;
        if (path_is_remote_cpu(r.id)) /* threads have the other numbers */
            u->damaged |= path_remote_cpu_row(r.id) >= 0 || r.id != path_remote_cpu(path_remote_cpu_row(r.id));
        if (r.has_life) {
            r.begin = wire_i(u);
            r.end = wire_sum(u, r.begin, wire_i(u));
            u->damaged |= r.end < r.begin;
        }
        r.origin = (uint32_t)wire_below(u, UINT32_MAX); /* checked when causes are read */
        unpack_names(f, u, &r);
        vec_push(&f->rows, r);
    }
}

static void unpack_interval(struct fragment *f, struct wire_in *u, uint32_t row, int64_t *at, uint32_t n_details)
{
    struct fragment_interval v = {.row = row};
    uint8_t flags;
    wire_bytes(u, &flags, 1);
    v.state = flags & 15;
    v.polling = flags & FLAG_POLLING;
    v.assumed = flags & FLAG_ASSUMED;
    v.begin = wire_sum(u, *at, wire_i(u));
    uint64_t length = wire_below(u, INT64_MAX);
    v.end = wire_sum(u, v.begin, (int64_t)length);
    v.cpu = (int32_t)wire_i(u);
    v.detail = unpack_number(u, n_details);
    v.cause = flags & FLAG_CAUSE ? (uint32_t)wire_below(u, UINT32_MAX) : 0;
    v.origin = flags & FLAG_ORIGIN ? (uint32_t)wire_below(u, UINT32_MAX) : 0;
    /* intervals of a thread do not overlap; a CPU's may, they are identified by their ends */
    bool cpu = path_is_remote_cpu(f->rows.v[row].id);
    bool apart = cpu || !f->intervals.n || f->intervals.v[f->intervals.n - 1].row != row ||
        v.begin >= f->intervals.v[f->intervals.n - 1].end;
    u->damaged |= v.state >= GRAPH_STATE_COUNT || v.end <= v.begin || !apart;
    *at = v.end;
    vec_push(&f->intervals, v);
}

static void unpack_intervals(struct fragment *f, struct wire_in *u, uint32_t n_details)
{
    for (uint32_t row = 0; row < f->rows.n && !u->damaged; row++) {
        size_t n = wire_count(u, 5);
        int64_t at = 0;
        for (size_t i = 0; i < n && !u->damaged; i++)
            unpack_interval(f, u, row, &at, n_details);
    }
}

static struct fragment_answer unpack_answer(struct wire_in *u, const struct fragment *f, size_t n_hosts, int64_t base)
{
    struct fragment_answer a = {.host = (int32_t)wire_below(u, n_hosts + 1) - 1};
    uint8_t flags;
    if (a.host < 0)
        return a;
    wire_bytes(u, &flags, 1);
    a.answer = flags & 3;
    a.may_send = flags & ANSWER_MAY_SEND;
    a.lost = flags & ANSWER_LOST;
    a.from = unpack_number(u, f->rows.n + 1);
    a.ts = a.from ? unpack_time(u, base) : 0;
    u->damaged |= a.answer > FLOW_AMBIGUOUS || (a.answer != FLOW_NOT_SENT) != (a.from != 0) ||
        (a.from && f->rows.v[a.from - 1].host != a.host);
    return a;
}

static void unpack_causes(struct fragment *f, struct wire_in *u, int64_t base)
{
    size_t n = wire_count(u, 3);
    for (size_t i = 0; i < n && !u->damaged; i++) {
        struct fragment_cause c = {0};
        uint8_t flags;
        wire_bytes(u, &flags, 1);
        c.kind = flags & 15;
        c.reason = (flags & ~CAUSE_REPLY) >> 4;
        c.is_reply = flags & CAUSE_REPLY;
        c.message = (uint32_t)wire_below(u, UINT32_MAX);
        c.from = unpack_number(u, f->rows.n + 1);
        c.ts = c.from ? unpack_time(u, base) : 0;
        c.asked = c.is_reply ? unpack_time(u, base) : 0;
        bool signal = c.kind == PATH_CAUSE_WAKEUP || c.kind == PATH_CAUSE_FORK;
        u->damaged |= c.kind >= PATH_CAUSE_PENDING || c.reason > PATH_PENDING || signal != (c.from != 0) ||
            (c.kind == PATH_CAUSE_NETWORK) != (c.message != 0) || (c.is_reply && !c.message);
        vec_push(&f->causes, c);
    }
}

static void unpack_messages(struct fragment *f, struct wire_in *u, size_t n_hosts, int64_t base)
{
    size_t n = wire_count(u, 12);
    for (size_t i = 0; i < n && !u->damaged; i++) {
        struct fragment_message m = {.first_answer = (uint32_t)f->answers.n};
        path_message_unpack(u, n_hosts, &m.message);
        m.n_answers = (uint32_t)wire_count(u, 2);
        for (size_t k = 0; k < m.n_answers && !u->damaged; k++) {
            struct fragment_answer a = unpack_answer(u, f, n_hosts, base);
            u->damaged |= a.host < 0;
            vec_push(&f->answers, a);
        }
        vec_push(&f->messages, m);
    }
}

/* Checks forward references. */
static bool refers_to_nothing(const struct fragment *f)
{
    for (size_t i = 0; i < f->rows.n; i++)
        if (f->rows.v[i].origin > f->causes.n)
            return true;
    for (size_t i = 0; i < f->intervals.n; i++)
        if (f->intervals.v[i].cause > f->causes.n || f->intervals.v[i].origin > f->causes.n)
            return true;
    for (size_t i = 0; i < f->causes.n; i++)
        if (f->causes.v[i].message > f->messages.n)
            return true;
    return false;
}

int path_fragment_unpack(
    struct fragment *f, const void *bytes, size_t n, size_t n_hosts, size_t n_windows, struct err *e)
{
    struct wire_in u = wire_of(bytes, n);
    uint8_t version;
    *f = (struct fragment){0};
    wire_bytes(&u, &version, 1);
    if (version != FRAGMENT_VERSION)
        return err_set(e, ERR_FORMAT, "an answer of version %u instead of %u", version, FRAGMENT_VERSION);
    int64_t base = wire_i(&u);
    size_t n_strings = wire_count(&u, 1);
    VEC(uint32_t) details = {0};
    vec_push(&details, 0);
    for (size_t i = 0; i < n_strings && !u.damaged; i++) {
        size_t length;
        const char *s = wire_string(&u, &length);
        vec_push(&details, strings_intern(&f->strings, s, strnlen(s, length)));
    }
    unpack_rows(f, &u, n_hosts);
    unpack_intervals(f, &u, (uint32_t)details.n);
    size_t n_nones = wire_count(&u, 2);
    for (size_t i = 0; i < n_nones && !u.damaged; i++) {
        uint32_t row = unpack_number(&u, f->rows.n);
        vec_push(&f->nones, ((struct fragment_none){row, unpack_time(&u, base)}));
    }
    unpack_causes(f, &u, base);
    unpack_messages(f, &u, n_hosts, base);
    for (size_t i = 0; i < n_windows && !u.damaged; i++)
        vec_push(&f->results, unpack_answer(&u, f, n_hosts, base));
    for (size_t i = 0; i < f->intervals.n; i++)
        f->intervals.v[i].detail = details.v[f->intervals.v[i].detail];
    vec_free(&details);
    if (!u.damaged && u.at == u.end && !refers_to_nothing(f))
        return 0;
    path_fragment_fini(f);
    *f = (struct fragment){0};
    return err_set(e, ERR_FORMAT, "an answer that makes no sense");
}

/* ---- requests ---- */

static void pack_map(struct text *out, const struct clock_map *m)
{
    text_putc(out, m ? 1 : 0);
    if (!m)
        return;
    wire_put_u(out, m->island);
    wire_put_i(out, m->growth_q62);
    wire_put_u(out, m->n);
    for (size_t i = 0; i < m->n; i++) {
        const struct clock_piece *p = &m->pieces[i];
        const int64_t v[] = {p->begin, p->end, p->t0, p->shift, p->slope_q62, p->error_begin, p->error_end};
        for (size_t k = 0; k < sizeof v / sizeof *v; k++)
            wire_put_i(out, v[k]);
    }
}

static const struct clock_map *unpack_map(struct wire_in *u, struct arena *a)
{
    uint8_t has;
    wire_bytes(u, &has, 1);
    if (!has)
        return NULL;
    struct clock_map *m = arena_new(a, struct clock_map, 1);
    m->island = (size_t)wire_below(u, UINT32_MAX);
    m->growth_q62 = wire_i(u);
    m->n = wire_count(u, 7);
    struct clock_piece *pieces = arena_new(a, struct clock_piece, m->n + 1);
    for (size_t i = 0; i < m->n; i++) {
        struct clock_piece *p = &pieces[i];
        int64_t *v[] = {&p->begin, &p->end, &p->t0, &p->shift, &p->slope_q62, &p->error_begin, &p->error_end};
        for (size_t k = 0; k < sizeof v / sizeof *v; k++)
            *v[k] = wire_i(u);
    }
    m->pieces = pieces;
    return m;
}

/* Writes the subject of a window. */
static void pack_subject(struct text *out, const struct path_window *w)
{
    text_putc(out, (char)(w->kind | w->open << 4));
    wire_put_u(out, (uint64_t)w->host);
    if (w->kind == PATH_WINDOW_MESSAGE)
        path_message_pack(out, &w->message);
    else
        wire_put_u(out, w->row << 1 | w->row >> 63);
}

void path_request_write(const struct path_request *r, struct text *out)
{
    text_putc(out, REQUEST_VERSION);
    text_putc(out, (char)(r->assuming | r->no_early_return << 1));
    wire_put_u(out, r->n_hosts);
    for (size_t i = 0; i < r->n_hosts; i++) {
        wire_put_string(out, r->hosts[i].id);
        wire_put_string(out, r->hosts[i].name);
        pack_map(out, r->hosts[i].map);
    }
    wire_put_u(out, r->n_windows);
    for (size_t i = 0; i < r->n_windows; i++) {
        const struct path_window *w = &r->windows[i];
        pack_subject(out, w);
        wire_put_i(out, w->t);
        wire_put_i(out, w->bound);
    }
}

void path_window_hash(const struct path_window *w, const void *around, size_t n, uint64_t out[2])
{
    struct path_window subject = *w;
    struct text t = {.fd = -1};
    subject.message.host = 0;
    pack_subject(&t, &subject);
    if (w->kind == PATH_WINDOW_ROW)
        wire_put_i(&t, w->t);
    map_hash_pieces((struct map_piece[]){{around, n}, {t.v, t.n}}, 2, out);
    text_fini(&t);
}

static void unpack_window(struct wire_in *u, size_t n_hosts, struct path_window *w)
{
    uint8_t kind;
    wire_bytes(u, &kind, 1);
    w->kind = kind & 15;
    w->open = kind >> 4 & 1;
    u->damaged |= w->kind > PATH_WINDOW_MESSAGE;
    w->host = (int32_t)wire_below(u, n_hosts);
    if (w->kind == PATH_WINDOW_MESSAGE) {
        /* The receiver need not be among the hosts: it has a number beyond them. */
        path_message_unpack(u, (size_t)INT32_MAX, &w->message);
        w->t = wire_i(u);
        w->bound = wire_i(u);
        return;
    }
    uint64_t id = wire_u(u);
    w->row = id >> 1 | id << 63;
    w->t = wire_i(u);
    w->bound = wire_i(u);
}

static const char *read_text(struct wire_in *u, struct arena *a)
{
    size_t n;
    const char *s = wire_string(u, &n);
    return arena_strndup(a, s, strnlen(s, n));
}

int path_request_read(struct arena *a, const void *bytes, size_t n, struct path_request *out, struct err *e)
{
    struct wire_in u = wire_of(bytes, n);
    uint8_t version, flags;
    *out = (struct path_request){0};
    wire_bytes(&u, &version, 1);
    if (version != REQUEST_VERSION)
        return err_set(e, ERR_FORMAT, "a request of version %u instead of %u", version, REQUEST_VERSION);
    wire_bytes(&u, &flags, 1);
    out->assuming = flags & 1;
    out->no_early_return = flags >> 1 & 1;
    out->n_hosts = wire_count(&u, 3);
    u.damaged |= out->n_hosts > MOST_HOSTS;
    out->n_hosts = u.damaged ? 0 : out->n_hosts;
    struct path_remote_host *hosts = arena_new(a, struct path_remote_host, out->n_hosts + 1);
    for (size_t i = 0; i < out->n_hosts && !u.damaged; i++) {
        hosts[i].id = read_text(&u, a);
        hosts[i].name = read_text(&u, a);
        hosts[i].map = unpack_map(&u, a);
    }
    out->hosts = hosts;
    out->n_windows = wire_count(&u, 3);
    u.damaged |= out->n_windows > MOST_WINDOWS;
    out->n_windows = u.damaged ? 0 : out->n_windows;
    struct path_window *windows = arena_new(a, struct path_window, out->n_windows + 1);
    for (size_t i = 0; i < out->n_windows && !u.damaged; i++)
        unpack_window(&u, out->n_hosts, &windows[i]);
    out->windows = windows;
    if (u.damaged || u.at != u.end)
        return err_set(e, ERR_FORMAT, "a request that makes no sense");
    return 0;
}
