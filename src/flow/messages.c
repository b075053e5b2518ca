/* What is asked of packets by thread instead of by flow: the order is made once, when the store is written. */
#include "flow/messages.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/order.h"
#include "flow/store.h"

/* A packet with payload that a thread sent itself, or that came for it. */
static bool is_message(const struct flow_disk_packet *p)
{
    return p->bytes && p->row >= 0 && (!p->is_send || p->origin == FLOW_BY_THREAD);
}

/* Softirq work sent it, after the receive that it names. */
static bool is_reply(
    const struct flow_disk_packet *p, const struct flow_disk_packet *packets, const uint32_t *numbers, size_t n_numbers)
{
    return p->is_send && p->origin == FLOW_BY_RECEIVE && p->receive < n_numbers && numbers[p->receive] != UINT32_MAX &&
        packets[numbers[p->receive]].ts <= p->ts;
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
    uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
    const struct flow_disk_packet *packets = arg, *p = &packets[i], *q = &packets[k];
    return order_of(p->ts, q->ts) ?: order_of(p->receive, q->receive) ?: order_of(i, k);
}

/* They come in order of number: nearly sorted, but for equal times and for streams whose times step back. */
static void sort_replies(struct flow_message_order *m, const struct flow_disk_packet *packets)
{
    bool sorted = true;
    for (size_t i = 1; i < m->replies.n && sorted; i++)
        sorted = by_time(&m->replies.v[i - 1], &m->replies.v[i], (void *)packets) <= 0;
    if (!sorted)
        qsort_r(m->replies.v, m->replies.n, sizeof *m->replies.v, by_time, (void *)packets);
}

void flow_message_order_init(struct flow_message_order *m, const struct flow_disk_packet *packets, size_t n,
    const uint32_t *numbers, size_t n_numbers)
{
    *m = (struct flow_message_order){0};
    count_messages(m, packets, n);
    m->order = mem_alloc(sizeof *m->order * (m->n + 1));
    uint32_t *next = mem_alloc(sizeof *next * (m->n_rows + 1));
    for (size_t r = 0; r < m->n_rows; r++)
        next[r] = m->rows[r].first;
    for (size_t i = 0; i < n_numbers; i++) {
        const struct flow_disk_packet *p = numbers[i] == UINT32_MAX ? NULL : &packets[numbers[i]];
        if (p && is_message(p))
            m->order[next[p->row]++] = numbers[i];
        else if (p && is_reply(p, packets, numbers, n_numbers))
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

const char *flow_message_order_defect(const struct flow_store *s)
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

/* The row's messages that the file has. */
static const uint32_t *messages_of(const struct flow_store *s, int32_t row, size_t *n, size_t *receives)
{
    static const struct flow_disk_row none;
    const struct flow_disk_row *r = row >= 0 && (size_t)row < s->n_rows ? &s->rows[row] : &none;
    size_t first = r->first < s->n_messages ? r->first : s->n_messages, left = s->n_messages - first;
    *n = (size_t)r->sends + r->receives;
    *n = *n < left ? *n : left;
    *receives = r->receives < *n ? r->receives : *n;
    return s->messages + first;
}

size_t flow_messages(const struct flow_store *s, int32_t row, size_t *receives)
{
    size_t n;
    messages_of(s, row, &n, receives);
    return n;
}

void flow_message(const struct flow_store *s, int32_t row, size_t i, struct flow_packet *out, bool *is_send)
{
    size_t n, receives;
    const uint32_t *messages = messages_of(s, row, &n, &receives);
    const struct flow_disk_packet *p = flow_packet_at(s, messages[i]);
    flow_unpack(p, out);
    *is_send = p->is_send;
}

size_t flow_replies(const struct flow_store *s)
{
    return s->n_replies;
}

void flow_reply(const struct flow_store *s, size_t i, struct flow_packet *out)
{
    flow_unpack(flow_packet_at(s, s->replies[i]), out);
}
