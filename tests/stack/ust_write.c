/* SPDX-License-Identifier: MIT */
/* A user-space trace for tests that run the program: ust_write sample DIR HOST, ust_write random|lossy DIR SEED EVENTS,
 * ust_write deep DIR LEVELS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ust_world.h"

int main(int argc, char **argv)
{
    if (argc == 4 && !strcmp(argv[1], "sample"))
        ust_write_sample(argv[2], argv[3]);
    else if (argc == 4 && !strcmp(argv[1], "killed"))
        ust_write_killed(argv[2], argv[3]);
    else if (argc == 5 && (!strcmp(argv[1], "random") || !strcmp(argv[1], "lossy")))
        ust_write_random(argv[2], (uint32_t)atoi(argv[3]), atoi(argv[4]), argv[1][0] == 'l');
    else if (argc == 4 && !strcmp(argv[1], "deep"))
        ust_write_deep(argv[2], atoi(argv[3]));
    else
        return fprintf(stderr,
                   "usage: ust_write sample|killed DIR HOST | random|lossy DIR SEED EVENTS | deep DIR LEVELS\n"),
               2;
    return 0;
}
