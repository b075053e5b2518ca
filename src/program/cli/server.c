/* SPDX-License-Identifier: MIT */
#include "cli/server.h"

#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "cli/cli.h"

/* Reserves memory that is freed when memory runs out, so that requests can end in order. With little address space,
 * threads share heaps: glibc takes 64 MiB of it for each. */
static void reserve_memory(void)
{
    const uint64_t much = 64 << 20, little = UINT64_C(8) << 30;
    struct rlimit limit;
    bool limited = !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur < little;
    if (limited)
        mallopt(M_ARENA_MAX, limit.rlim_cur < little / 8 ? 1 : 4);
    mem_reserve(limited && limit.rlim_cur / 8 < much ? limit.rlim_cur / 8 : much);
}

/* A connection is a descriptor, and a trace is many. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max > 65536 ? 65536 : limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

void cli_prepare_server(void)
{
    raise_descriptor_limit();
    reserve_memory();
}

static const char *host_of(const char *url)
{
    const char *host = strstr(url, "://");
    return host ? host + 3 : url;
}

bool cli_is_loopback(const char *url)
{
    const char *host = host_of(url);
    size_t n = strcspn(host, ":/");
    return !strncmp(host, "127.", 4) || !strncmp(host, "[::1]", 5) || (n == 9 && !strncasecmp(host, "localhost", n));
}

bool cli_reached_at(const char *listening, struct bus *bus, char out[CLI_URL])
{
    static const char *const all[] = {"0.0.0.0", "[::]"};
    const char *host = host_of(listening);
    char address[BUS_ADDRESS];
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        size_t n = strlen(all[i]);
        if (strncmp(host, all[i], n) || host[n] != ':')
            continue;
        bus_local_address(bus, address);
        bool v6 = strchr(address, ':');
        snprintf(out, CLI_URL, "%.*s%s%s%s%s", (int)(host - listening), listening, v6 ? "[" : "", address,
            v6 ? "]" : "", host + n);
        return *address;
    }
    snprintf(out, CLI_URL, "%s", listening);
    return true;
}

void cli_note_reach(const char *address, bool has_token)
{
    if (!has_token && !cli_is_loopback(address))
        cli_note("%s can be reached from other machines, and everybody there can read what is served: see --token-file "
                 "and --tls-cert",
            address);
}
