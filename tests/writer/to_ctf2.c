/* SPDX-License-Identifier: MIT */
/* Makes CTF 2 of traces in CTF 1.8: to_ctf2 METADATA…
 * Replaces each metadata file. The streams stay as they are. */
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "ctf2_metadata.h"

static int replace(const char *path, struct err *e)
{
    struct file_map map;
    struct text out = {.fd = -1};
    int r = file_map_open(path, &map, e);
    if (r != ERR_OK)
        return r;
    r = ctf2_metadata_from((const char *)map.data, map.size, &out, e);
    file_map_close(&map);
    FILE *f = r == ERR_OK ? fopen(path, "wb") : NULL;
    if (r == ERR_OK && (!f || fwrite(out.v, 1, out.n, f) != out.n || fclose(f) != 0))
        r = err_sys(e, "cannot write %s", path);
    text_fini(&out);
    return r;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct err e = {0};
        if (replace(argv[i], &e) != ERR_OK) {
            fprintf(stderr, "to_ctf2: %s: %s\n", argv[i], e.text);
            return 1;
        }
    }
    return 0;
}
