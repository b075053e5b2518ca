/* SPDX-License-Identifier: MIT */
#include "hosts.h"

#include <stdio.h>
#include <unistd.h>

#include "base/carry.h"
#include "base/chunks.h"
#include "same.h"

size_t kernel_tracker_threads(const struct kernel_tracker *t, const struct kernel_thread **out)
{
    *out = t->many ? t->many : t->threads;
    return t->many ? t->n_many : THREADS;
}

size_t kernel_tracker_strings(const struct kernel_tracker *t, const char *const **out)
{
    static const char *const calls[] = {
        "", "epoll_wait", "poll", "select", "recvfrom", "read", "sched_yield", "write", "clock_nanosleep"};
    (void)t;
    *out = calls;
    return sizeof calls / sizeof *calls;
}

void kernel_carry_frame(const struct kernel_tracker *t, struct carry *c, uint32_t *frame)
{
    (void)t;
    carry_number(c, frame);
}

static bool cutting;

bool run_cut(bool cut)
{
    cutting = cut;
#ifdef __SANITIZE_THREAD__
    return !cut;
#else
    return true;
#endif
}

bool is_run_cut(void)
{
    return cutting;
}

void host_begin(struct host *h)
{
    memset(h, 0, sizeof *h);
    for (int i = 0; i < THREADS; i++)
        h->tracker.threads[i] = (struct kernel_thread){.tid = 100 + i,
            .tgid = i == 5 ? 104 : 100 + i,
            .ppid = i == 9 ? 2 : 1,
            .parent_row = i == 7 ? 6 : -1,
            .idle_cpu = -1};
    h->builder = flow_builder_new(&h->tracker);
}

uint64_t host_tell(struct host *h, const struct kernel_record *r)
{
    vec_push(&h->records, *r);
    return flow_builder_add(h->builder, r);
}

/* ---- flows in chunks ---- */

enum { MOST_CHUNKS = 64, SHIFT = 3, STRIDE = 5 };

/* Rows of all chunks but the first: the host's row of each. */
static int32_t host_row(size_t chunk, int32_t row)
{
    return chunk && row >= 0 ? (row * STRIDE + SHIFT) % THREADS : row;
}

static int32_t row_in(size_t chunk, int32_t row)
{
    for (int32_t i = 0; i < THREADS && row >= 0; i++)
        if (host_row(chunk, i) == row)
            return i;
    return row;
}

struct cutter {
    const struct host *h;
    struct kernel_tracker tracker;
    struct flow_builder *builder;
    size_t n;
    struct chunk chunks[MOST_CHUNKS];
    char paths[MOST_CHUNKS][96];
    int32_t rows[MOST_CHUNKS][THREADS];
};

static void begin_chunk(struct cutter *c)
{
    for (int32_t i = 0; i < THREADS; i++) {
        c->rows[c->n][i] = host_row(c->n, i);
        c->tracker.threads[i] = c->h->tracker.threads[host_row(c->n, i)];
        c->tracker.threads[i].parent_row = row_in(c->n, c->tracker.threads[i].parent_row);
    }
    snprintf(c->paths[c->n], sizeof c->paths[c->n], "%s-%zu", c->h->path, c->n);
    c->chunks[c->n] = (struct chunk){.path = c->paths[c->n], .rows = c->rows[c->n], .n_rows = THREADS};
    c->builder = flow_builder_new(&c->tracker);
}

/* Saves the carried state, in the order of rows common to all chunks but the first. */
static struct carry save(struct flow_builder *b, size_t chunk)
{
    int32_t rows[THREADS];
    struct carry c;
    for (int32_t i = 0; i < THREADS; i++)
        rows[i] = row_in(chunk, host_row(1, i));
    carry_init(&c);
    flow_builder_carry(b, &c);
    carry_save(&c, rows, THREADS);
    flow_builder_carry(b, &c);
    return c;
}

static void cut(struct cutter *c)
{
    struct err e = {0};
    struct carry saved = save(c->builder, c->n), loaded, again;
    if (flow_builder_cut(c->builder, 0, store_file(c->paths[c->n]), 1, &e) || flow_check(c->paths[c->n], NULL, &e))
        fail_msg("%s", e.text);
    flow_builder_free(c->builder);
    c->n++;
    begin_chunk(c);
    carry_load(&loaded, saved.bytes.v, saved.bytes.n, THREADS);
    flow_builder_carry(c->builder, &loaded);
    if (carry_loaded(&loaded, &e))
        fail_msg("%s", e.text);
    again = save(c->builder, c->n);
    assert_int_equal(saved.bytes.n, again.bytes.n);
    assert_memory_equal(saved.bytes.v, again.bytes.v, saved.bytes.n);
    carry_fini(&saved);
    carry_fini(&again);
}

static struct flow_store *in_chunks(struct host *h)
{
    static struct cutter c; /* large */
    struct err e = {0};
    struct flow_store *out;
    size_t often = h->records.n / (1 + (size_t)rand() % 12) + 1;
    c = (struct cutter){.h = h};
    begin_chunk(&c);
    for (size_t i = 0; i < h->records.n; i++) {
        struct kernel_record r = h->records.v[i];
        while (c.n + 2 < MOST_CHUNKS && (size_t)rand() % often == 0)
            cut(&c);
        r.row = row_in(c.n, r.row);
        if (r.kind == KERNEL_WAKE)
            r.u.wake.row = row_in(c.n, r.u.wake.row);
        flow_builder_add(c.builder, &r);
    }
    struct carry of_one = save(h->builder, 0), of_list = save(c.builder, c.n);
    assert_int_equal(of_one.bytes.n, of_list.bytes.n);
    assert_memory_equal(of_one.bytes.v, of_list.bytes.v, of_one.bytes.n);
    carry_fini(&of_one);
    carry_fini(&of_list);
    if (rand() % 2)
        cut(&c);
    if (flow_builder_write(c.builder, store_file(c.paths[c.n]), 1, &e) || flow_check(c.paths[c.n], NULL, &e) ||
        flow_open_list(c.chunks, c.n + 1, &out, &e))
        fail_msg("%s", e.text);
    flow_builder_free(c.builder);
    for (size_t i = 0; i <= c.n; i++)
        unlink(c.paths[i]);
    return out;
}

void host_end(struct host *h)
{
    struct err e = {0};
    static int serial;
    struct flow_store *list = NULL;
    /* Memory, where there is: stores are synced to the disk. */
    snprintf(h->path, sizeof h->path, "%s/weft-flow-%d-%d", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm", getpid(),
        serial++);
    if (cutting && !h->tracker.many) /* chunks are made of THREADS rows */
        list = in_chunks(h);
    if (flow_builder_write(h->builder, store_file(h->path), 1, &e) || flow_open(h->path, &h->store, &e))
        fail_msg("%s", e.text);
    if (flow_check(h->path, NULL, &e))
        fail_msg("%s", e.text);
    unlink(h->path);
    flow_builder_free(h->builder);
    vec_free(&h->records);
    if (!list)
        return;
    same_stores(h->store, list, THREADS);
    flow_close(h->store);
    h->store = list;
}

uint32_t packet(struct host *h, int kind, struct shape s)
{
    struct kernel_record r = {.ts = s.ts,
        .kind = (uint8_t)kind,
        .ctx = s.ctx ? s.ctx : KERNEL_CTX_THREAD,
        .ctx_number = s.vector,
        .ctx_frame = s.frame,
        .cpu = s.cpu,
        .row = s.row};
    r.u.packet = (struct kernel_packet){.family = 4,
        .protocol = s.protocol ? s.protocol : 6,
        .sport = s.sport,
        .dport = s.dport,
        .seq = s.seq,
        .ack = s.ack,
        .flags = s.flags ? s.flags : ACK,
        .ip_id = s.id,
        .payload_bytes = s.bytes,
        .has_length = true,
        .header_bytes = s.headers,
        .device = s.device,
        .skb = s.skb};
    if (s.v6) {
        r.u.packet.family = 6;
        memcpy(r.u.packet.saddr, (uint8_t[16]){0x20, 1, 0x0d, 0xb8, [15] = s.from}, 16);
        memcpy(r.u.packet.daddr, (uint8_t[16]){0x20, 1, 0x0d, 0xb8, [15] = s.to}, 16);
    } else {
        memcpy(r.u.packet.saddr, (uint8_t[]){s.net ? s.net : 10, 0, 0, s.from}, 4);
        memcpy(r.u.packet.daddr, (uint8_t[]){s.net ? s.net : 10, 0, 0, s.to}, 4);
    }
    host_tell(h, &r);
    return h->packets++;
}

uint32_t wake(struct host *h, int64_t ts, int32_t by, int32_t row, uint8_t ctx, uint32_t frame)
{
    struct kernel_record r = {
        .ts = ts, .kind = KERNEL_WAKE, .ctx = ctx, .ctx_number = KERNEL_SOFTIRQ_NET_RX, .ctx_frame = frame, .row = by};
    r.u.wake.row = row;
    return (uint32_t)host_tell(h, &r);
}

struct flow_packet get(struct host *h, uint32_t number)
{
    struct flow_packet p;
    assert_true(flow_by_number(h->store, number, &p, NULL));
    return p;
}

int64_t explain_within(struct host *to, uint32_t receive, struct host *from, int64_t error, enum flow_answer *answer)
{
    struct flow_packet r = get(to, receive), s;
    struct flow_message_key key;
    flow_message_key_of(to->store, &r, &key);
    struct flow_window w = error < 0 ? flow_window_any() : flow_window_at(&key, r.ts, (uint64_t)error);
    *answer = FLOW_NOT_SENT;
    if (to == from || !flow_is_anonymous(&key.flow))
        *answer = flow_find_send(from->store, &key, &w, &s);
    if (*answer == FLOW_NOT_SENT)
        return -1;
    routes_must_lead(from->store, &key);
    return (int64_t)s.number;
}

int64_t explain(struct host *to, uint32_t receive, struct host *from)
{
    enum flow_answer answer;
    return explain_within(to, receive, from, 0, &answer);
}

void close_both(struct host *a, struct host *b)
{
    flow_close(a->store);
    if (b != a)
        flow_close(b->store);
}
