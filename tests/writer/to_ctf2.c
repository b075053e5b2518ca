/* SPDX-License-Identifier: MIT */
/* Makes CTF 2 of traces in CTF 1.8: to_ctf2 METADATA…
 * Replaces each metadata file. The streams stay as they are. */
#include <stdio.h>

#include "ctf2_metadata.h"

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        struct err e = {0};
        if (ctf2_metadata_replace(argv[i], &e) != ERR_OK) {
            fprintf(stderr, "to_ctf2: %s: %s\n", argv[i], e.text);
            return 1;
        }
    }
    return 0;
}
