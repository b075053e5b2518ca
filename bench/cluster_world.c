/* SPDX-License-Identifier: MIT */
#include "cluster_inside.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "ctf_writer.h"

enum {
    FIRST_TID = 1000,
    FIRST_PORT = 20000,
    SEGMENT = 16384, /* bytes that the card is given at once */
    ETHERNET_IRQ = 24,
    DISK_IRQ = 30,
    SLEEPING = 1,
    DISK_SLEEP = 2,
    DEAD = 16,
    DUMPED_WAITING = 5
};
static const char *const state_names[] = {"wait", "preempted", "running"};

uint64_t made_world_draw(struct made_world *w, uint64_t below)
{
    w->random ^= w->random << 13;
    w->random ^= w->random >> 7;
    w->random ^= w->random << 17;
    return (w->random >> 11) % below;
}

/* ---- time ---- */

static bool before(const struct due *a, const struct due *b)
{
    return a->ns != b->ns ? a->ns < b->ns : a->order < b->order;
}

static void at(struct made_world *w, int64_t ns, enum act act, uint32_t what)
{
    struct due d = {ns, w->order++, act, what};
    vec_push(&w->heap, d);
    size_t i = w->heap.n - 1;
    for (; i && before(&d, &w->heap.v[(i - 1) / 2]); i = (i - 1) / 2)
        w->heap.v[i] = w->heap.v[(i - 1) / 2];
    w->heap.v[i] = d;
}

static struct due take(struct made_world *w)
{
    struct due first = w->heap.v[0], last = w->heap.v[--w->heap.n];
    size_t i = 0, n = w->heap.n;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && before(&w->heap.v[child + 1], &w->heap.v[child]);
        if (!before(&w->heap.v[child], &last))
            break;
        w->heap.v[i] = w->heap.v[child];
    }
    w->heap.v[i] = last;
    return first;
}

/* ---- states ---- */

static struct cpu *cpu_of(struct made_world *w, const struct thread *t)
{
    return &w->hosts.v[t->host].cpus[t->cpu];
}

/* cause: what ended the state before; NULL: nothing to be told. */
static void become(struct made_world *w, struct thread *t, int64_t now, enum state state, const char *cause)
{
    if (w->history && t->state != S_GONE)
        fprintf(w->history, "%s %" PRId32 " %" PRId64 " %" PRId64 " %s %s\n", w->hosts.v[t->host].given.name, t->tid,
            t->since, now, state_names[t->state], cause ? cause : "-");
    t->state = state;
    t->since = now;
}

/* By what happens on CPU `cpu` of its host. */
static int64_t wake(struct made_world *w, uint32_t thread, uint32_t cpu, const char *why, uint32_t by, int64_t when)
{
    struct thread *t = &w->threads.v[thread];
    struct cpu *waking = &w->hosts.v[t->host].cpus[cpu], *c = cpu_of(w, t);
    char cause[128];
    waking->now = waking->now > t->since ? waking->now : t->since; /* it may be falling asleep on its CPU */
    made_put_waking(w, t->comm, t->tid, t->cpu);
    int64_t now = made_emit(w, t->host, cpu, WAKING, made_soon(w));
    if (strcmp(why, "net") != 0 && strcmp(why, "wake") != 0)
        snprintf(cause, sizeof cause, "end %s", why);
    else
        snprintf(cause, sizeof cause, "%s %s %" PRId32 " %" PRId64, why, w->hosts.v[w->threads.v[by].host].given.name,
            w->threads.v[by].tid, when < 0 ? now : when);
    become(w, t, now, S_READY, cause);
    t->waits = W_NOTHING;
    t->next = -1;
    if (c->head < 0)
        c->head = (int32_t)thread;
    else
        w->threads.v[c->tail].next = (int32_t)thread;
    c->tail = (int32_t)thread;
    if (c->running < 0)
        at(w, now + 1000 + (int64_t)made_world_draw(w, 2000), A_DISPATCH, thread);
    return now;
}

/* The CPU goes from what runs there to the first that is ready, or to nobody. */
static int64_t switch_to_next(struct made_world *w, uint32_t host, uint32_t cpu, int64_t state)
{
    struct cpu *c = &w->hosts.v[host].cpus[cpu];
    char idle[32];
    snprintf(idle, sizeof idle, "swapper/%u", cpu);
    const struct thread *prev = c->running < 0 ? NULL : &w->threads.v[c->running];
    int32_t next = c->head;
    struct thread *t = next < 0 ? NULL : &w->threads.v[next];
    if (t)
        c->head = t->next;
    if (t && c->now < t->since) /* what woke it had run ahead */
        c->now = t->since;
    made_put_switch(w, prev ? prev->comm : idle, prev ? prev->tid : 0, state, t ? t->comm : idle, t ? t->tid : 0);
    int64_t now = made_emit(w, host, cpu, SWITCH, 500 + made_soon(w));
    c->running = next;
    if (!t)
        return now;
    become(w, t, now, S_RUN, NULL);
    t->began = t->began < 0 ? now : t->began;
    at(w, now + 300, A_STEP, (uint32_t)next);
    return now;
}

static void sleep_for(struct made_world *w, struct thread *t, enum waits waits, int64_t state)
{
    int64_t now = switch_to_next(w, t->host, t->cpu, state);
    become(w, t, now, state == DEAD ? S_GONE : S_WAIT, NULL);
    t->waits = waits;
}

/* ---- the network ---- */

static void send_packet(struct made_world *w, uint32_t cpu, uint32_t end, uint32_t bytes, uint32_t by)
{
    struct end *e = &w->ends.v[end], *peer = &w->ends.v[e->peer];
    uint32_t here = w->threads.v[e->thread].host, there = w->threads.v[peer->thread].host, i;
    struct flying f = {.end = e->peer,
        .by = by,
        .packet = {.skb = 0xffff888000000000 + (w->skb++ << 8),
            .source = 0x0a000001 + here,
            .target = 0x0a000001 + there,
            .source_port = e->port,
            .target_port = peer->port,
            .ip_id = (uint16_t)w->hosts.v[here].ip_id++,
            .seq = e->seq,
            .ack = e->expected,
            .flags = bytes ? 0x18 : 0x10,
            .bytes = bytes}};
    e->seq += bytes;
    kernel_put_packet(&w->payload, &f.packet);
    f.sent = made_emit(w, here, cpu, SEND, 500 + made_soon(w));
    int64_t arrives = f.sent + 20000 + (int64_t)bytes * 8 / 10 + (int64_t)made_world_draw(w, 20000);
    arrives = arrives > peer->last_arrival ? arrives : peer->last_arrival + 1;
    peer->last_arrival = arrives;
    if (w->free.n) {
        i = w->free.v[--w->free.n];
    } else {
        i = (uint32_t)w->flying.n;
        vec_push(&w->flying, f);
    }
    w->flying.v[i] = f;
    at(w, arrives, A_ARRIVE, i);
}

static void arrive(struct made_world *w, int64_t now, uint32_t flying)
{
    struct flying f = w->flying.v[flying];
    struct end *e = &w->ends.v[f.end];
    const struct thread *t = &w->threads.v[e->thread];
    vec_push(&w->free, flying);
    made_reach(w, t->host, t->cpu, now);
    made_irq(w, t, ETHERNET_IRQ + (int)t->cpu, "eth0-rx");
    made_softirq(w, t, RAISE);
    made_irq(w, t, ETHERNET_IRQ + (int)t->cpu, NULL);
    made_softirq(w, t, SOFT_ENTRY);
    kernel_put_packet(&w->payload, &f.packet);
    made_emit(w, t->host, t->cpu, RECEIVE, 500 + made_soon(w));
    if (f.packet.bytes) {
        e->got += f.packet.bytes;
        e->expected = f.packet.seq + f.packet.bytes;
        if (t->waits == W_DATA && t->step.which == f.end)
            wake(w, e->thread, t->cpu, "net", f.by, f.sent);
        if (++e->unacked % 2 == 0)
            send_packet(w, t->cpu, f.end, 0, e->thread);
    }
    made_softirq(w, t, SOFT_EXIT);
}

/* Through memory, if the other thread is of the same host. */
static void send_bytes(struct made_world *w, uint32_t thread)
{
    struct thread *t = &w->threads.v[thread];
    struct end *peer = &w->ends.v[w->ends.v[t->step.which].peer];
    struct thread *other = &w->threads.v[peer->thread];
    bool near = other->host == t->host;
    made_call(w, t->host, t->cpu, near ? C_FUTEX : C_SENDTO, true, 300);
    if (near) {
        peer->got += t->step.bytes;
        if (other->waits == W_DATA && other->step.which == w->ends.v[t->step.which].peer)
            wake(w, peer->thread, t->cpu, "wake", thread, -1);
    }
    for (uint32_t left = near ? 0 : t->step.bytes, n; left; left -= n) {
        n = left < SEGMENT ? left : SEGMENT;
        send_packet(w, t->cpu, t->step.which, n, thread);
    }
    made_call(w, t->host, t->cpu, near ? C_FUTEX : C_SENDTO, false, 300);
}

/* ---- what threads do: false, when they sleep ---- */

static bool read_disk(struct made_world *w, uint32_t thread)
{
    struct thread *t = &w->threads.v[thread];
    made_call(w, t->host, t->cpu, C_PREAD, true, 300);
    t->sector = made_world_draw(w, 1 << 28);
    kernel_u32(&w->payload, 0x0800000);
    kernel_u64(&w->payload, t->sector);
    kernel_u32(&w->payload, 128);
    kernel_u32(&w->payload, 65536);
    kernel_u32(&w->payload, (uint32_t)t->tid);
    kernel_u32(&w->payload, 12);
    kernel_put(&w->payload, t->comm, 16);
    int64_t now = made_emit(w, t->host, t->cpu, BLOCK_ISSUE, 1000);
    sleep_for(w, t, W_DISK, DISK_SLEEP);
    at(w, now + 3000 + t->step.ns, A_DISK, thread);
    return false;
}

static void disk_done(struct made_world *w, int64_t now, uint32_t thread)
{
    struct thread *t = &w->threads.v[thread];
    made_reach(w, t->host, t->cpu, now);
    made_irq(w, t, DISK_IRQ, "nvme0q1");
    kernel_u32(&w->payload, 0x0800000);
    kernel_u64(&w->payload, t->sector);
    kernel_u32(&w->payload, 128);
    kernel_u32(&w->payload, 0);
    kernel_u32(&w->payload, 12);
    made_emit(w, t->host, t->cpu, BLOCK_COMPLETE, made_soon(w));
    wake(w, thread, t->cpu, "block-device", 0, 0);
    made_irq(w, t, DISK_IRQ, NULL);
}

static bool receive(struct made_world *w, struct thread *t)
{
    struct end *e = &w->ends.v[t->step.which];
    if (!t->in_call)
        made_call(w, t->host, t->cpu, C_READ, true, 300);
    t->in_call = true;
    if (e->got < t->step.bytes) {
        sleep_for(w, t, W_DATA, SLEEPING);
        return false;
    }
    e->got -= t->step.bytes;
    t->in_call = false;
    made_call(w, t->host, t->cpu, C_READ, false, 300);
    return true;
}

static void post(struct made_world *w, uint32_t thread)
{
    struct thread *t = &w->threads.v[thread], *other = &w->threads.v[t->step.which];
    made_call(w, t->host, t->cpu, C_FUTEX, true, 300);
    other->tokens++;
    if (other->waits == W_TOKEN)
        wake(w, t->step.which, t->cpu, "wake", thread, -1);
    made_call(w, t->host, t->cpu, C_FUTEX, false, 300);
}

static void leave(struct made_world *w, struct thread *t)
{
    made_put_side(w, t->comm, t->tid);
    t->ended = made_emit(w, t->host, t->cpu, EXIT, 500);
    sleep_for(w, t, W_NOTHING, DEAD);
}

/* One step; the next follows when the CPU is done with it. */
static void step(struct made_world *w, int64_t now, uint32_t thread)
{
    struct thread *t = &w->threads.v[thread];
    bool again = t->at_step, goes_on = true;
    int64_t takes = 200;
    made_reach(w, t->host, t->cpu, now);
    if (!again)
        w->next(w->arg, thread, &t->step);
    t->at_step = false;
    if (t->step.kind == MADE_COMPUTE) {
        takes = t->step.ns;
    } else if (t->step.kind == MADE_SEND) {
        send_bytes(w, thread);
    } else if (t->step.kind == MADE_RECEIVE) {
        goes_on = receive(w, t);
        t->at_step = !goes_on;
    } else if (t->step.kind == MADE_DISK && again) {
        made_call(w, t->host, t->cpu, C_PREAD, false, 300);
    } else if (t->step.kind == MADE_DISK) {
        goes_on = read_disk(w, thread);
        t->at_step = true;
    } else if (t->step.kind == MADE_POST) {
        post(w, thread);
    } else if (t->step.kind == MADE_WAIT && !t->tokens) {
        sleep_for(w, t, W_TOKEN, SLEEPING);
        t->at_step = true;
        goes_on = false;
    } else if (t->step.kind == MADE_WAIT) {
        t->tokens--;
    } else {
        leave(w, t);
        goes_on = false;
    }
    if (goes_on)
        at(w, cpu_of(w, t)->now + takes, A_STEP, thread);
}

static void start(struct made_world *w, int64_t now, uint32_t thread)
{
    const struct thread *t = &w->threads.v[thread];
    made_reach(w, t->host, t->cpu, now);
    made_timer(w, t->host, t->cpu, true);
    wake(w, thread, t->cpu, "timer", 0, 0);
    made_timer(w, t->host, t->cpu, false);
}

/* ---- the run ---- */

static int open_host(struct made_world *w, uint32_t number, const char *dir, struct err *e)
{
    struct host *h = &w->hosts.v[number];
    struct text tsdl = {.fd = -1}, path = {.fd = -1};
    kernel_declare(&tsdl);
    text_printf(&path, "%s/%s", dir, h->given.name);
    struct ctf_writer_options o = {.hostname = h->given.name,
        .tsdl = text_cstr(&tsdl),
        .env = kernel_env,
        .clock_offset_ns = MADE_START_NS,
        .packet_bytes = 1 << 18,
        .cpus = h->given.cpus,
        .uuid = {'w', 'e', 'f', 't', 2, (uint8_t)(number >> 8), (uint8_t)number},
        .index_files = true,
        .large_header = true};
    int rc = ctf_writer_open(text_cstr(&path), &o, &h->writer, e);
    text_fini(&tsdl);
    text_fini(&path);
    return rc;
}

/* As if nothing had happened yet. */
static void begin(struct made_world *w)
{
    w->random = w->seed;
    w->events = w->order = w->skb = 0;
    w->last = 0;
    w->heap.n = w->flying.n = w->free.n = 0;
    for (size_t i = 0; i < w->hosts.n; i++) {
        w->hosts.v[i].ip_id = 1;
        for (uint32_t k = 0; k < w->hosts.v[i].given.cpus; k++)
            w->hosts.v[i].cpus[k] = (struct cpu){.now = 1000 + k, .running = -1, .head = -1};
    }
    for (size_t i = 0; i < w->ends.n; i++) {
        struct end *e = &w->ends.v[i];
        e->seq = (uint32_t)made_world_draw(w, UINT32_MAX);
        e->got = e->unacked = 0;
        e->last_arrival = 0;
        w->ends.v[e->peer].expected = e->seq;
    }
}

static void dump_threads(struct made_world *w)
{
    for (uint32_t i = 0; i < w->threads.n; i++) {
        struct thread *t = &w->threads.v[i];
        kernel_u32(&w->payload, (uint32_t)t->tid);
        kernel_u32(&w->payload, (uint32_t)t->tid);
        kernel_u32(&w->payload, 1);
        kernel_put(&w->payload, t->comm, 16);
        kernel_u32(&w->payload, DUMPED_WAITING);
        t->since = made_emit(w, t->host, t->cpu, DUMP_THREAD, 500);
        t->state = S_WAIT;
        t->waits = t->starts < 0 ? W_TOKEN : W_START;
        t->began = t->ended = -1;
        t->tokens = 0;
        t->in_call = t->at_step = false;
        if (t->starts >= 0)
            at(w, t->starts > t->since ? t->starts : t->since + 1000, A_START, i);
    }
}

static void act(struct made_world *w, const struct due *d)
{
    if (d->act == A_ARRIVE) {
        arrive(w, d->ns, d->what);
    } else if (d->act == A_DISK) {
        disk_done(w, d->ns, d->what);
    } else if (d->act == A_START) {
        start(w, d->ns, d->what);
    } else if (d->act == A_STEP) {
        step(w, d->ns, d->what);
    } else {
        const struct thread *t = &w->threads.v[d->what];
        const struct cpu *c = cpu_of(w, t);
        made_reach(w, t->host, t->cpu, d->ns);
        if (c->running < 0 && c->head >= 0)
            switch_to_next(w, t->host, t->cpu, 0);
    }
}

int made_world_run(struct made_world *w, void (*next)(void *arg, uint32_t thread, struct made_step *), void *arg,
    const char *dir, FILE *history, struct err *e)
{
    int rc = 0;
    w->next = next;
    w->arg = arg;
    w->history = history;
    w->error = e;
    begin(w);
    for (uint32_t i = 0; dir && !rc && i < w->hosts.n; i++)
        rc = open_host(w, i, dir, e);
    if (!rc)
        dump_threads(w);
    while (!rc && w->heap.n) {
        struct due d = take(w);
        act(w, &d);
        rc = w->failed;
    }
    for (uint32_t i = 0; i < w->hosts.n; i++) {
        struct host *h = &w->hosts.v[i];
        for (uint32_t k = 0; !rc && k < h->given.cpus; k++)
            made_fill(w, i, k, w->last);
        if (h->writer && ctf_writer_close(h->writer, rc ? NULL : e) && !rc)
            rc = ERR_IO;
        h->writer = NULL;
    }
    return rc;
}

/* ---- what there is ---- */

struct made_world *made_world_new(uint64_t seed)
{
    struct made_world *w = mem_zalloc(sizeof *w);
    w->seed = w->random = 0x9e3779b97f4a7c15 ^ (seed << 1);
    return w;
}

void made_world_free(struct made_world *w)
{
    for (size_t i = 0; i < w->hosts.n; i++) {
        free(w->hosts.v[i].cpus);
        free((char *)w->hosts.v[i].given.name);
    }
    vec_free(&w->hosts);
    vec_free(&w->threads);
    vec_free(&w->ends);
    vec_free(&w->flying);
    vec_free(&w->free);
    vec_free(&w->heap);
    free(w);
}

uint32_t made_host_add(struct made_world *w, const struct made_host *given)
{
    struct host h = {.given = *given, .cpus = mem_zalloc(given->cpus * sizeof(struct cpu)), .ports = FIRST_PORT};
    h.given.name = strdup(given->name);
    vec_push(&w->hosts, h);
    return (uint32_t)w->hosts.n - 1;
}

uint32_t made_thread_add(struct made_world *w, uint32_t host, uint32_t cpu, const char *name, int64_t starts_ns)
{
    struct thread t = {.host = host, .cpu = cpu, .starts = starts_ns, .tid = FIRST_TID};
    memcpy(t.comm, name, strnlen(name, 15));
    for (size_t i = 0; i < w->threads.n; i++)
        t.tid += w->threads.v[i].host == host;
    vec_push(&w->threads, t);
    return (uint32_t)w->threads.n - 1;
}

void made_connect(struct made_world *w, uint32_t a, uint32_t b, uint32_t ends[2])
{
    uint32_t threads[2] = {a, b}, first = (uint32_t)w->ends.n;
    for (uint32_t i = 0; i < 2; i++) {
        struct host *h = &w->hosts.v[w->threads.v[threads[i]].host];
        struct end e = {.thread = threads[i], .peer = first + 1 - i, .port = (uint16_t)h->ports++};
        vec_push(&w->ends, e);
        ends[i] = first + i;
    }
}

void made_world_fill(struct made_world *w, int64_t every_ns)
{
    w->every = every_ns;
}

uint64_t made_world_events(const struct made_world *w)
{
    return w->events;
}

int64_t made_world_end(const struct made_world *w)
{
    return w->last;
}

int32_t made_thread_life(const struct made_world *w, uint32_t thread, int64_t *begin_ns, int64_t *end_ns)
{
    *begin_ns = w->threads.v[thread].began;
    *end_ns = w->threads.v[thread].ended;
    return w->threads.v[thread].tid;
}
