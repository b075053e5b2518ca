/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <math.h>
#include <stdio.h>

static const int64_t EPOCH = 1795225069746962200;

uint64_t world_random(struct world *w)
{
    uint64_t z = (w->seed += 0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

long double world_uniform(struct world *w, long double low, long double high)
{
    return low + (high - low) * (long double)(world_random(w) >> 11) / 9007199254740992.0L;
}

void world_init(
    struct world *w, uint64_t seed, int n, int64_t span, long double drift_ppm, const struct clock_options *o)
{
    *w = (struct world){.seed = seed, .n = n, .span = span, .net = clock_net_new(o)};
    for (int i = 0; i < n; i++) {
        struct world_clock *c = &w->clock[i];
        c->offset = EPOCH + (int64_t)world_uniform(w, -1e10L, 1e10L);
        c->n = 1;
        c->stretch[0].drift_ppm = world_uniform(w, -drift_ppm, drift_ppm);
    }
}

void world_fini(struct world *w)
{
    clock_net_free(w->net);
}

void world_begin(struct world *w)
{
    for (int i = 0; i < w->n; i++) {
        char name[16];
        snprintf(name, sizeof name, "h%d", i);
        assert_int_equal(clock_net_host(w->net, name, world_read(w, i, 0), world_read(w, i, w->span)), i);
    }
}

/* Gain on true time, before rounding. */
static long double gain(const struct world_clock *c, long double t)
{
    long double sum = 0;
    for (int i = 0; i < c->n && (i == 0 || c->stretch[i].from <= t); i++) {
        long double end = i + 1 < c->n && c->stretch[i + 1].from < t ? c->stretch[i + 1].from : t;
        sum += c->stretch[i].step + (end - c->stretch[i].from) * c->stretch[i].drift_ppm * 1e-6L;
    }
    return sum;
}

int64_t world_read(const struct world *w, int host, int64_t true_time)
{
    const struct world_clock *c = &w->clock[host];
    return c->offset + true_time + (int64_t)floorl(gain(c, true_time));
}

long double world_when(const struct world *w, int host, int64_t t)
{
    const struct world_clock *c = &w->clock[host];
    long double shown = (long double)(t - c->offset), low = shown - 1e12L, high = shown + 1e12L;
    for (int i = 0; i < 128 && high - low > 1e-4L; i++) {
        long double mid = (low + high) / 2;
        if (mid + gain(c, mid) < shown)
            low = mid;
        else
            high = mid;
    }
    return low;
}

void world_talk(struct world *w, int a, int b, int count, int64_t from, int64_t to, int64_t least, int64_t tail)
{
    for (int i = 0; i < count; i++) {
        int64_t sent = from + (int64_t)world_uniform(w, 0, (long double)(to - from));
        int64_t received = sent + least + (int64_t)(-logl(1 - world_uniform(w, 0, 1)) * (long double)tail);
        clock_net_message(w->net, (size_t)a, (size_t)b, world_read(w, a, sent), world_read(w, b, received));
    }
}

static void check_pieces(const struct clock_map *m)
{
    for (size_t i = 0; i < m->n; i++) {
        const struct clock_piece *p = &m->pieces[i];
        assert_true(p->begin <= p->end && p->error_begin >= 0 && p->error_end >= 0);
        if (!i)
            continue;
        const struct clock_map before = {.pieces = p - 1, .n = 1}, after = {.pieces = p, .n = 1};
        assert_int_equal(p[-1].end, p->begin);
        int64_t jump = clock_to_reference(&after, p->begin) - clock_to_reference(&before, p->begin);
        assert_true(jump >= 0 && jump <= 1);
    }
}

static void check_time(const struct world *w, const struct clock_map *m, int64_t t)
{
    int64_t there = clock_to_reference(m, t), back = clock_from_reference(m, there);
    assert_true(clock_to_reference(m, t + 1) >= there);
    if (back < t - 1 || back > t + 1)
        fail_msg("%lld goes to %lld and back to %lld", (long long)t, (long long)there, (long long)back);
    long double when = world_when(w, (int)m->host, t);
    const struct world_clock *r = &w->clock[m->reference];
    long double truth = (long double)(there - r->offset) - (when + gain(r, when));
    int64_t error = clock_error_at(m, t);
    if (fabsl(truth) > error + 3)
        fail_msg("seed %llu: host %zu to %zu at true %.0Lf ns of %lld: off by %.0Lf ns, stated %lld",
            (unsigned long long)w->seed, m->host, m->reference, when, (long long)w->span, truth, (long long)error);
}

int world_check(const struct world *w)
{
    int mapped = 0;
    for (int i = 0; i < w->n; i++) {
        const struct clock_map *m = clock_net_map(w->net, (size_t)i);
        if (!m->n)
            continue;
        mapped++;
        check_pieces(m);
        int64_t begin = m->pieces[0].begin, end = m->pieces[m->n - 1].end;
        assert_true(begin <= world_read(w, i, 0) && end >= world_read(w, i, w->span));
        for (int k = -10; k <= 110; k++)
            check_time(w, m, begin + (int64_t)((__int128)(end - begin) * k / 100));
        for (size_t k = 0; k < m->n; k++) {
            int64_t ts[3] = {m->pieces[k].begin, m->pieces[k].begin - 1, m->pieces[k].begin + 1}, to[3];
            for (int j = 0; j < 3; j++) {
                check_time(w, m, ts[j]);
                to[j] = clock_to_reference(m, ts[j]);
            }
            clock_map_times((void *)(uintptr_t)m, ts, 3);
            assert_memory_equal(ts, to, sizeof to);
        }
    }
    return mapped;
}
