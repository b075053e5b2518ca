/* Who hosts and traces are, whatever else they are opened with: their keys. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "index/experiment.h"

static uint64_t join(uint64_t a, uint64_t b)
{
    return map_hash((uint64_t[2]){a, b}, sizeof(uint64_t[2]));
}

/* The name without the number that it got because others have it: who came first decides that. */
static size_t own_length(const char *name)
{
    const char *hash = strrchr(name, '#');
    bool numbered = hash && hash > name && hash[1] && !hash[1 + strspn(hash + 1, "0123456789")];
    return numbered ? (size_t)(hash - name) : strlen(name);
}

/* A machine's boots are told apart by their ids, which any trace may tell. */
static uint64_t host_key(const struct experiment *x, size_t host)
{
    const char *name = x->hosts.v[host].name;
    uint64_t key = map_hash(name, own_length(name));
    for (size_t i = 0; i < x->traces.n; i++) {
        const struct ctf_clock *c;
        if (x->traces.v[i].host == (int32_t)host && ctf_trace_clocks(x->traces.v[i].trace, &c) && c->has_uuid)
            return join(key, map_hash(c->uuid, sizeof c->uuid));
    }
    return key;
}

/* "uid/1000/64-bit" of ".../ust/uid/1000/64-bit"; what is above changes from copy to copy. */
static const char *place_in_session(const char *path)
{
    const char *at = "";
    for (const char *p = path; (p = strstr(p, "/ust/")); p += 4)
        at = p + 5;
    return at;
}

static uint64_t trace_key(const struct experiment *x, const struct index_trace *t)
{
    const char *place = place_in_session(ctf_trace_path(t->trace));
    uint64_t host = x->hosts.v[t->host].key;
    return t->is_kernel ? host : join(host, map_hash(place, strlen(place)));
}

/* What is the same otherwise, as several sessions of one boot are, is told apart by its order in time. */
static int64_t begin_of(const struct ctf_trace *t)
{
    int64_t begin = INT64_MAX, end;
    ctf_trace_span(t, &begin, &end);
    return begin;
}

static bool before(int64_t a, size_t i, int64_t b, size_t k)
{
    return a != b ? a < b : i < k;
}

void experiment_set_keys(struct experiment *x)
{
    size_t most = x->hosts.n > x->traces.n ? x->hosts.n : x->traces.n;
    uint64_t *own = mem_zalloc((most + 1) * sizeof *own);
    for (size_t i = 0; i < x->hosts.n; i++)
        own[i] = host_key(x, i);
    for (size_t i = 0; i < x->hosts.n; i++) {
        uint64_t number = 0;
        for (size_t k = 0; k < x->hosts.n; k++)
            number += own[k] == own[i] && before(x->hosts.v[k].begin, k, x->hosts.v[i].begin, i);
        x->hosts.v[i].key = number ? join(own[i], number) : own[i];
    }
    for (size_t i = 0; i < x->traces.n; i++)
        own[i] = trace_key(x, &x->traces.v[i]);
    for (size_t i = 0; i < x->traces.n; i++) {
        int64_t begin = begin_of(x->traces.v[i].trace);
        uint64_t number = 0;
        for (size_t k = 0; k < x->traces.n; k++)
            number += own[k] == own[i] && before(begin_of(x->traces.v[k].trace), k, begin, i);
        x->traces.v[i].key = number ? join(own[i], number) : own[i];
    }
    free(own);
}
