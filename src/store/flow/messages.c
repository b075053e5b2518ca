/* SPDX-License-Identifier: MIT */
/* Order of packets by thread instead of by flow: made once, when the store is written. */
#include "flow/messages.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/search.h"
#include "flow/store.h"

/* Message: a packet with payload that a thread sent itself, or that arrived for it. */
static bool is_message(const struct flow_disk_packet *p)
{
    return p->bytes && p->row >= 0 && (!p->is_send || p->origin == FLOW_BY_THREAD);
}

static void count_messages(struct flow_message_order *m, const struct flow_disk_packet *packets, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (is_message(&packets[i]) && (size_t)packets[i].row >= m->n_rows)
            m->n_rows = (size_t)packets[i].row + 1;
    m->rows = mem_zalloc(sizeof *m->rows * (m->n_rows + 1));
    for (size_t i = 0; i < n; i++) {
        if (!is_message(&packets[i]))
            continue;
        m->rows[packets[i].row].sends += packets[i].is_send;
        m->rows[packets[i].row].receives += !packets[i].is_send;
        m->n++;
    }
    for (size_t r = 1; r < m->n_rows; r++)
        m->rows[r].first = m->rows[r - 1].first + m->rows[r - 1].sends + m->rows[r - 1].receives;
}

static int by_time(const void *a, const void *b, void *arg)
{
    const struct flow_disk_packet *packets = arg, *p = &packets[*(const uint32_t *)a],
                                  *q = &packets[*(const uint32_t *)b];
    return order_of(p->ts, q->ts) ?: order_of((int64_t)p->number - p->back, (int64_t)q->number - q->back)
        ?: order_of(p->number, q->number);
}

/* Replies are given in order of number: nearly sorted, except for equal times and streams whose times step back. */
static void sort_replies(struct flow_message_order *m, const struct flow_disk_packet *packets)
{
    bool sorted = true;
    for (size_t i = 1; i < m->replies.n && sorted; i++)
        sorted = by_time(&m->replies.v[i - 1], &m->replies.v[i], (void *)packets) <= 0;
    if (!sorted)
        qsort_r(m->replies.v, m->replies.n, sizeof *m->replies.v, by_time, (void *)packets);
}

void flow_message_order_init(
    struct flow_message_order *m, const struct flow_disk_packet *packets, const uint32_t *numbers, size_t n)
{
    *m = (struct flow_message_order){0};
    count_messages(m, packets, n);
    m->order = mem_alloc(sizeof *m->order * (m->n + 1));
    uint32_t *next = mem_alloc(sizeof *next * (m->n_rows + 1));
    for (size_t r = 0; r < m->n_rows; r++)
        next[r] = m->rows[r].first;
    for (size_t i = 0; i < n; i++) {
        const struct flow_disk_packet *p = &packets[numbers[i]];
        if (is_message(p))
            m->order[next[p->row]++] = numbers[i];
        else if (p->is_send && p->origin == FLOW_BY_RECEIVE && p->is_reply)
            vec_push(&m->replies, numbers[i]);
    }
    sort_replies(m, packets);
    free(next);
}

void flow_message_order_fini(struct flow_message_order *m)
{
    free(m->rows);
    free(m->order);
    vec_free(&m->replies);
}

const char *flow_message_order_defect(const struct flow_chunk *s)
{
    size_t next = 0;
    for (size_t r = 0; r < s->n_rows; r++) {
        const struct flow_disk_row *row = &s->rows[r];
        if (row->first != next || row->sends > s->n_messages - next ||
            row->receives > s->n_messages - next - row->sends)
            return "a thread's messages lie outside the table";
        next += (size_t)row->sends + row->receives;
    }
    if (next != s->n_messages)
        return "messages that belong to no thread";
    for (size_t i = 0; i < s->n_messages; i++)
        if (s->messages[i] >= s->n_packets)
            return "a message that is no packet";
    for (size_t i = 0; i < s->n_replies; i++)
        if (s->replies[i] >= s->n_packets)
            return "a reply that is no packet";
    return NULL;
}

/* ---- reading ---- */

/* Messages of the row in the file. */
static const uint32_t *messages_of(const struct flow_chunk *s, int32_t row, size_t *n, size_t *receives)
{
    static const struct flow_disk_row none;
    const struct flow_disk_row *r = row >= 0 && (size_t)row < s->n_rows ? &s->rows[row] : &none;
    size_t first = r->first < s->n_messages ? r->first : s->n_messages, left = s->n_messages - first;
    *n = (size_t)r->sends + r->receives;
    *n = *n < left ? *n : left;
    *receives = r->receives < *n ? r->receives : *n;
    return s->messages + first;
}

size_t flow_chunk_messages(const struct flow_chunk *c, int32_t row, size_t *receives)
{
    size_t n;
    messages_of(c, row, &n, receives);
    return n;
}

static struct flow_sums *sum_places(const struct flow_store *s, int32_t row)
{
    struct chunk_place only;
    const struct chunk_place *at;
    size_t n = chunk_rows_all(s->rows, row, &only, &at), receives, first;
    struct flow_sums *sums = mem_alloc((n + 1) * sizeof *sums), sum = {0};
    for (size_t i = 0; i < n; i++, at++) {
        sums[i] = sum;
        sum.messages += flow_chunk_messages(&s->chunks[at->chunk], at->row, &receives);
        sum.receives += receives;
        sum.asks += flow_chunk_asks(&s->chunks[at->chunk], at->row, &first);
    }
    return sums;
}

/* A thread that loses the race frees its own sums. */
const struct flow_sums *flow_sums(const struct flow_store *s, int32_t row)
{
    struct flow_sums *known = atomic_load_explicit(&s->sums[row], memory_order_acquire);
    if (known)
        return known;
    struct flow_sums *mine = sum_places(s, row);
    if (atomic_compare_exchange_strong(&s->sums[row], &known, mine))
        return mine;
    free(mine);
    return known;
}

size_t flow_messages(const struct flow_store *s, int32_t row, size_t *receives)
{
    size_t n = chunk_rows_places(s->rows, row), before = 0, before_receives = 0;
    *receives = 0;
    if (!n)
        return 0;
    if (s->n > 1) {
        const struct flow_sums *sums = &flow_sums(s, row)[n - 1];
        before = sums->messages;
        before_receives = sums->receives;
    }
    struct chunk_place last = chunk_rows_place(s->rows, row, n - 1);
    before += flow_chunk_messages(&s->chunks[last.chunk], last.row, receives);
    *receives += before_receives;
    return before;
}

void flow_message(const struct flow_store *s, int32_t row, size_t i, struct flow_packet *out, bool *is_send)
{
    size_t k = 0, n, receives;
    if (s->n > 1) {
        const struct flow_sums *sums = flow_sums(s, row);
        k = search_first(p, 0, chunk_rows_places(s->rows, row), sums[p].messages > i) - 1;
        i -= sums[k].messages;
    }
    struct chunk_place place = chunk_rows_place(s->rows, row, k);
    const uint32_t *messages = messages_of(&s->chunks[place.chunk], place.row, &n, &receives);
    const struct flow_disk_packet *p = flow_packet_at(&s->chunks[place.chunk], i < n ? messages[i] : SIZE_MAX);
    flow_unpack_of(s, place.chunk, p, out);
    *is_send = p->is_send;
}

size_t flow_replies(const struct flow_store *s)
{
    return s->n == 1 ? s->chunks->n_replies : flow_tables(s)->first_reply[s->n];
}

void flow_reply(const struct flow_store *s, size_t i, struct flow_packet *out)
{
    size_t chunk = 0;
    if (s->n > 1) {
        const struct flow_tables *t = flow_tables(s);
        if (t->replies) {
            chunk = (size_t)(t->replies[i] >> 32);
            i = (uint32_t)t->replies[i];
        } else {
            chunk = search_first(c, 0, s->n, t->first_reply[c + 1] > i);
            i -= t->first_reply[chunk];
        }
    }
    flow_unpack_of(s, chunk, flow_packet_at(&s->chunks[chunk], s->chunks[chunk].replies[i]), out);
}
