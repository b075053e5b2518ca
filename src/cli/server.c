#include "cli/server.h"

#include <malloc.h>
#include <string.h>
#include <sys/resource.h>

#include "base/mem.h"
#include "cli/cli.h"

/* Given back when memory ends, so that requests can end in order. With little address space, threads share heaps: glibc
 * takes 64 MiB of it for each. */
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

void cli_note_reach(const char *address, bool has_token)
{
    const char *host = strstr(address, "://");
    host = host ? host + 3 : address;
    if (!has_token && strncmp(host, "127.", 4) != 0 && strncmp(host, "[::1]", 5) != 0)
        cli_note("%s can be reached from other machines, and everybody there can read what is served: see --token-file "
                 "and --tls-cert",
            address);
}
