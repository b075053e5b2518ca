/* The coordinator's configuration, and lists of hosts that one is made of. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct coord_config c = {0};
    struct err e = {0};
    if (!coord_config_parse(&c, "input", (const char *)data, n, &e))
        coord_config_check(&c, "input", &e);
    else if (!*e.text)
        abort(); /* every refusal says why */
    coord_config_fini(&c);
    generate(data, n);
    return 0;
}
