/* SPDX-License-Identifier: MIT */
/* The coordinator's configuration, lists of hosts that one is made of, and clocks. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "coord/coord.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void generate(const uint8_t *data, size_t n)
{
    char path[] = "/tmp/weft-fuzz-XXXXXX";
    int fd = mkstemp(path);
    const char *const files[] = {path, NULL};
    const struct coord_generate o = {.hosts = files, .port = 8080, .traces = "/a\"b"};
    struct text out = {.fd = -1};
    struct coord_config made = {0};
    struct err e = {0};
    if (fd < 0)
        return;
    if (write(fd, data, n) == (ssize_t)n && !coord_generate(&o, &out, &e) &&
        coord_config_parse(&made, "made", text_cstr(&out), out.n, &e) == ERR_NOMEM)
        abort();
    coord_config_fini(&made);
    text_fini(&out);
    close(fd);
    unlink(path);
}

/* A map that is taken never falls, and its inverse is near. */
static void try_map(const struct clock_map *m)
{
    static const int64_t times[] = {INT64_MIN, -1, 0, 5, 1795225075376113629, INT64_MAX};
    int64_t last = INT64_MIN;
    for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
        int64_t t = clock_to_reference(m, times[i]), first = clock_first_from(m, times[i]);
        if (t < last || first > time_after(clock_last_until(m, times[i])))
            abort();
        last = t;
    }
}

static void read_clocks(const uint8_t *data, size_t n)
{
    struct coord_config c = {0};
    struct err e = {0};
    if (coord_config_add(&c, "a=http://h", &e))
        abort();
    if (!coord_config_clocks_parse(&c, "input", (const char *)data, n, &e) && c.servers.v[0].clock)
        try_map(c.servers.v[0].clock);
    coord_config_fini(&c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct coord_config c = {0};
    struct err e = {0};
    if (!coord_config_parse(&c, "input", (const char *)data, n, &e))
        coord_config_check(&c, "input", n % 2, &e);
    else if (!*e.text)
        abort(); /* every refusal says why */
    coord_config_fini(&c);
    generate(data, n);
    read_clocks(data, n);
    return 0;
}
