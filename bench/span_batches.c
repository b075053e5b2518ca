/* SPDX-License-Identifier: MIT */
#include "span_batches.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/wire.h"

enum { SERVICES = 10 };

uint64_t bench_draw(void)
{
    static uint64_t x = 0x9e3779b97f4a7c15;
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    return x;
}

/* ---- protobuf ---- */

static void put_blob(struct text *t, unsigned field, const void *v, size_t n)
{
    wire_put_u(t, field << 3 | 2);
    wire_put_u(t, n);
    wire_put_bytes(t, v, n);
}

static void put_pair(struct text *t, unsigned field, const char *key, const char *value)
{
    struct text any = {.fd = -1}, pair = {.fd = -1};
    put_blob(&any, 1, value, strlen(value));
    put_blob(&pair, 1, key, strlen(key));
    put_blob(&pair, 2, any.v, any.n);
    put_blob(t, field, pair.v, pair.n);
    text_fini(&any);
    text_fini(&pair);
}

static void put_time(struct text *t, unsigned field, uint64_t ns)
{
    wire_put_u(t, field << 3 | 1);
    wire_put_bytes(t, &ns, sizeof ns);
}

/* parent: 0 for none. Returns the span's id. */
static uint64_t put_span(struct text *t, const uint64_t trace[2], uint64_t n, uint64_t parent)
{
    static const char *const names[] = {"GET /cart", "POST /order", "SELECT", "render", "GET /item", "login"};
    struct text s = {.fd = -1};
    uint64_t id = bench_draw() | 1, begin = UINT64_C(1700000000000000000) + n * 100000;
    char value[64];
    put_blob(&s, 1, trace, 16);
    put_blob(&s, 2, &id, 8);
    if (parent)
        put_blob(&s, 4, &parent, 8);
    put_blob(&s, 5, names[n % 6], strlen(names[n % 6]));
    wire_put_u(&s, 6 << 3);
    wire_put_u(&s, 2);
    put_time(&s, 7, begin);
    put_time(&s, 8, begin + bench_draw() % 100000000);
    snprintf(value, sizeof value, "/shop/item/%llu", (unsigned long long)(bench_draw() % 100000));
    put_pair(&s, 9, "http.target", value);
    put_pair(&s, 9, "http.method", "GET");
    put_pair(&s, 9, "net.peer.name", "db-7.example.org");
    put_blob(t, 2, s.v, s.n);
    text_fini(&s);
    return id;
}

/* Spans of a service; empties `spans`. */
static void put_resource(struct text *t, unsigned service_number, struct text *spans)
{
    struct text resource = {.fd = -1}, all = {.fd = -1};
    char service[16];
    snprintf(service, sizeof service, "shop-%u", service_number % SERVICES);
    put_pair(&resource, 1, "service.name", service);
    put_pair(&resource, 1, "host.name", "web-3");
    put_blob(&all, 1, resource.v, resource.n);
    put_blob(&all, 2, spans->v, spans->n);
    put_blob(t, 1, all.v, all.n);
    text_fini(&resource);
    text_fini(&all);
    text_fini(spans);
}

static void make_batch(struct text *t, uint64_t *n, unsigned services)
{
    struct text spans[2] = {{.fd = -1}, {.fd = -1}};
    const unsigned service = (unsigned)(*n / BENCH_BATCH);
    uint64_t trace[2] = {0}, last = 0;
    for (unsigned i = 0; i < BENCH_BATCH; i++, ++*n) {
        if (i % BENCH_TRACE_SPANS == 0)
            trace[0] = bench_draw(), trace[1] = bench_draw(), last = 0;
        last = put_span(&spans[i % services], trace, *n, services > 1 ? last : 0);
    }
    for (unsigned i = 0; i < services; i++)
        put_resource(t, service + i, &spans[i]);
}

void bench_make_batch(struct text *t, uint64_t *n)
{
    make_batch(t, n, 1);
}

void bench_make_calls(struct text *t, uint64_t *n)
{
    make_batch(t, n, 2);
}
