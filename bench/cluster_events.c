/* SPDX-License-Identifier: MIT */
/* What a made cluster's CPUs record. */
#include <stdio.h>
#include <string.h>

#include "cluster_inside.h"
#include "ctf_writer.h"

enum { KWORKER_TID = 100, SLEEPING = 1, NET_RX = 3, FILL_NS = 12000 /* that what fills a CPU takes at most */ };

int64_t made_emit(struct made_world *w, uint32_t host, uint32_t cpu, enum kernel_event id, int64_t after)
{
    struct host *h = &w->hosts.v[host];
    int64_t t = h->cpus[cpu].now += after;
    int64_t shown = MADE_START_NS + t + h->given.offset_ns + (int64_t)((double)t * h->given.drift_ppm / 1e6);
    if (h->writer && !w->failed)
        w->failed = ctf_writer_event(h->writer, cpu, id, shown, w->payload.v, w->payload.n, w->error);
    w->payload.n = 0;
    w->events++;
    w->last = t > w->last ? t : w->last;
    return t;
}

int64_t made_soon(struct made_world *w)
{
    return 200 + (int64_t)made_world_draw(w, 300);
}

static void put_comm(struct made_world *w, const char *name, int32_t tid)
{
    char comm[16] = {0};
    memcpy(comm, name, strnlen(name, 15));
    kernel_put(&w->payload, comm, 16);
    kernel_u32(&w->payload, (uint32_t)tid);
}

void made_put_side(struct made_world *w, const char *name, int32_t tid)
{
    put_comm(w, name, tid);
    kernel_u32(&w->payload, 20);
}

void made_put_switch(
    struct made_world *w, const char *prev, int32_t prev_tid, int64_t state, const char *next, int32_t next_tid)
{
    made_put_side(w, prev, prev_tid);
    kernel_u64(&w->payload, (uint64_t)state);
    made_put_side(w, next, next_tid);
}

void made_put_waking(struct made_world *w, const char *name, int32_t tid, uint32_t cpu)
{
    made_put_side(w, name, tid);
    kernel_u32(&w->payload, cpu);
}

void made_timer(struct made_world *w, uint32_t host, uint32_t cpu, bool entry)
{
    kernel_u64(&w->payload, 0xffff888100000000 + cpu * 64);
    if (entry) {
        kernel_u64(&w->payload, (uint64_t)w->hosts.v[host].cpus[cpu].now);
        kernel_u64(&w->payload, 0xffffffff81168830);
    }
    made_emit(w, host, cpu, entry ? TIMER_ENTRY : TIMER_EXIT, 600);
}

void made_call(struct made_world *w, uint32_t host, uint32_t cpu, enum kernel_call c, bool entry, int64_t after)
{
    if (entry)
        kernel_u32(&w->payload, 3);
    kernel_u64(&w->payload, 0);
    made_emit(w, host, cpu, (entry ? CALL_ENTRY : CALL_EXIT) + c, after);
}

void made_fill(struct made_world *w, uint32_t host, uint32_t cpu, int64_t t)
{
    struct cpu *c = &w->hosts.v[host].cpus[cpu];
    char idle[32], worker[32];
    int32_t tid = KWORKER_TID + (int32_t)cpu;
    snprintf(idle, sizeof idle, "swapper/%u", cpu);
    snprintf(worker, sizeof worker, "kworker/%u:1", cpu);
    while (w->every) {
        c->fill_at = c->fill_at > c->now + 1000 ? c->fill_at : c->now + 1000;
        if (c->fill_at + FILL_NS > t)
            return;
        c->now = c->fill_at;
        if (c->running < 0) {
            made_timer(w, host, cpu, true);
            made_put_waking(w, worker, tid, cpu);
            made_emit(w, host, cpu, WAKING, 300);
            made_timer(w, host, cpu, false);
            made_put_switch(w, idle, 0, 0, worker, tid);
            made_emit(w, host, cpu, SWITCH, 1500);
            made_put_switch(w, worker, tid, SLEEPING, idle, 0);
            made_emit(w, host, cpu, SWITCH, 4000);
        } else {
            made_call(w, host, cpu, C_STAT, true, 500);
            made_call(w, host, cpu, C_STAT, false, 1500);
        }
        c->fill_at += w->every;
    }
}

void made_reach(struct made_world *w, uint32_t host, uint32_t cpu, int64_t t)
{
    struct cpu *c = &w->hosts.v[host].cpus[cpu];
    made_fill(w, host, cpu, t);
    c->now = t > c->now ? t : c->now;
}

void made_irq(struct made_world *w, const struct thread *t, int number, const char *name)
{
    kernel_u32(&w->payload, (uint32_t)number);
    if (name)
        kernel_put(&w->payload, name, strlen(name) + 1);
    else
        kernel_u32(&w->payload, 1);
    made_emit(w, t->host, t->cpu, name ? IRQ_ENTRY : IRQ_EXIT, made_soon(w));
}

void made_softirq(struct made_world *w, const struct thread *t, enum kernel_event id)
{
    kernel_u32(&w->payload, NET_RX);
    made_emit(w, t->host, t->cpu, id, made_soon(w));
}
