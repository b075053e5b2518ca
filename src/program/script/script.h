/* SPDX-License-Identifier: MIT */
/* Spans from shell scripts: the program weft-span. Nothing but the C library is linked, so that it starts as quickly as
 * `true` does: a pilot job calls it for each stage, on machines where nothing else of weft is. */
#ifndef WEFT_SCRIPT_SCRIPT_H
#define WEFT_SCRIPT_SCRIPT_H

/* What the commands share. All of them are in `weft span --help`, which is why main programs may look. */
struct script_option {
    const char *name;        /* without dashes; NULL ends the table */
    char letter;             /* or 0 */
    const char *value;       /* "NAME" in the help; NULL for flags */
    const char *help;
    unsigned commands;       /* bit per command that takes it */
};
extern const struct script_option script_options[];

/* The program: argv[0] ending in "pfeil" makes it behave as pfeil. Returns the exit status. */
int script_main(int argc, char **argv);

#endif
