/* SPDX-License-Identifier: MIT */
/* Keys of hosts and traces, independent of what else is opened. A machine in one boot is identified by its name and the
 * id of the boot. A recording is identified by its session: the UUID of its trace, which archives and snapshots of the
 * session share. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "index/experiment.h"
#include "kernel/kernel.h"

static uint64_t join(uint64_t a, uint64_t b)
{
    return map_hash((uint64_t[2]){a, b}, sizeof(uint64_t[2]));
}

static uint64_t join_text(uint64_t key, const char *s)
{
    return s ? join(key, map_hash(s, strlen(s))) : key;
}

/* Returns the id of the boot, 16 bytes; NULL: the trace does not have it. */
static const uint8_t *boot_of(const struct ctf_trace *t)
{
    const struct ctf_clock *c;
    return ctf_trace_clocks(t, &c) && c->has_uuid ? c->uuid : NULL;
}

static uint64_t join_boot(const char *name, const uint8_t *boot)
{
    uint64_t key = map_hash(name, strlen(name));
    return boot ? join(key, map_hash(boot, 16)) : key;
}

/* Boots of a machine are distinguished by their ids, which any trace may have. */
static uint64_t boot_key(const struct experiment *x, size_t host)
{
    const uint8_t *boot = NULL;
    for (size_t i = 0; i < x->traces.n && !boot; i++)
        boot = x->traces.v[i].host == (int32_t)host ? boot_of(x->traces.v[i].trace) : NULL;
    return join_boot(x->hosts.v[host].own_name, boot);
}

static bool has_uuid(const struct ctf_trace *t)
{
    static const uint8_t nil[16];
    const uint8_t *uuid = ctf_trace_uuid(t);
    return uuid && memcmp(uuid, nil, sizeof nil) != 0;
}

static int64_t begin_of(const struct ctf_trace *t)
{
    int64_t begin = INT64_MAX, end;
    ctf_trace_span(t, &begin, &end);
    return begin;
}

/* Extends the key of a machine in a boot by the trace. */
static uint64_t join_trace(uint64_t key, const struct ctf_trace *t)
{
    return join(key, has_uuid(t) ? map_hash(ctf_trace_uuid(t), 16) : map_mix((uint64_t)begin_of(t)));
}

/* User-space traces of one session have UUIDs of their own, but name the session, if LTTng wrote them. */
static uint64_t join_session(uint64_t key, const struct ctf_trace *t)
{
    const char *made = ctf_trace_env_string(t, "trace_creation_datetime");
    key = join_text(key, ctf_trace_env_string(t, "trace_name"));
    return made ? join_text(key, made) : join_trace(key, t);
}

static uint64_t user_key(const struct experiment *x, size_t host)
{
    uint64_t key = boot_key(x, host);
    for (size_t i = 0; i < x->traces.n; i++)
        if (x->traces.v[i].host == (int32_t)host && !x->traces.v[i].is_kernel)
            return join_session(key, x->traces.v[i].trace);
    return key;
}

uint64_t index_key_alone(const char *name, const struct ctf_trace *t)
{
    uint64_t key = join_boot(name, boot_of(t));
    return kernel_is_kernel_trace(t) ? join_trace(key, t) : join_session(key, t);
}

static uint64_t host_key(const struct experiment *x, size_t host)
{
    const struct index_host *h = &x->hosts.v[host];
    return h->is_kernel ? join_trace(boot_key(x, host), h->trace) : user_key(x, host);
}

/* "uid/1000/64-bit" of ".../ust/uid/1000/64-bit"; what is above changes from copy to copy. */
static const char *place_in_session(const char *path)
{
    const char *at = "";
    for (const char *p = path; (p = strstr(p, "/ust/")); p += 4)
        at = p + 5;
    return at;
}

/* A user-space trace is the same whether a kernel trace of its machine is there or not. */
static uint64_t trace_key(const struct experiment *x, const struct index_trace *t)
{
    if (t->is_kernel)
        return x->hosts.v[t->host].key;
    uint64_t key = boot_key(x, (size_t)t->host);
    if (!has_uuid(t->trace))
        key = join_text(key, place_in_session(ctf_trace_path(t->trace)));
    return join_trace(key, t->trace);
}

static bool before(int64_t a, size_t i, int64_t b, size_t k)
{
    return a != b ? a < b : i < k;
}

/* Sets the keys. Equal keys occur only with damaged input: traces that share a UUID without being one trace. Their
 * order in time distinguishes them. */
void index_experiment_set_keys(struct experiment *x)
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
        x->hosts.v[i].user_key = x->hosts.v[i].is_kernel ? user_key(x, i) : x->hosts.v[i].key;
        x->hosts.v[i].key_has_begin = x->hosts.v[i].is_kernel && !has_uuid(x->hosts.v[i].trace);
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
