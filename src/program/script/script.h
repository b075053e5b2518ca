/* SPDX-License-Identifier: MIT */
/* Spans from shell scripts: the program weft-span. It links only the C library, so that it starts as quickly as `true`.
 * A pilot job calls it for each stage, on machines without any other part of weft. */
#ifndef WEFT_SCRIPT_SCRIPT_H
#define WEFT_SCRIPT_SCRIPT_H

/* Option of the commands. All options are in `weft span --help`, so main programs may read the table. */
struct script_option {
    const char *name;        /* name without dashes; NULL ends the table */
    char letter;             /* short form; 0: none */
    const char *value;       /* "NAME" in the help; NULL for flags */
    const char *help;
    unsigned commands;       /* one bit per command with this option */
};
extern const struct script_option script_options[];

/* The program: argv[0] ending in "pfeil" makes it behave as pfeil. Returns the exit status. */
int script_main(int argc, char **argv);

#endif
