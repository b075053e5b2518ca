/* SPDX-License-Identifier: MIT */
/* Private to cli: the options that every verb understands, and options that are set elsewhere than on the command
 * line. */
#ifndef WEFT_CLI_SETTINGS_H
#define WEFT_CLI_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"

/* Set once by cli_parse. */
struct cli_settings { bool help, no_color, quiet; };
extern struct cli_settings cli_settings;
extern const struct cli_option cli_common_options[];

/* Each counts more than those before it. */
enum cli_level { CLI_SYSTEM, CLI_USER, CLI_ENVIRONMENT, CLI_ARGUMENT };
struct cli_setting {
    const char *section;     /* a verb; NULL: of every verb that has such an option */
    const char *name;        /* of the option; in the environment NULL */
    const char *value;       /* never NULL; "" where none was given */
    const char *origin;      /* "/etc/weft/weft.conf:3", "WEFT_CLUSTER" */
    enum cli_level level;
};
/* All that the files say, in their order. Borrowed, for as long as the program runs; the files are read once. A file
 * that is not there says nothing. */
int cli_settings_read(const struct cli_setting **out, size_t *n, struct err *e);
/* The files, in their order, whether they are there or not; NULL ends them. */
const char *const *cli_settings_files(void);
/* Those for a verb with these options and the common ones, least first: take(arg, option, setting) returns 0 or an
 * error, which ends it. */
typedef int cli_settings_take(void *arg, const struct cli_option *, const struct cli_setting *, struct err *);
int cli_settings_for(const char *verb, const struct cli_option *, cli_settings_take *, void *arg, struct err *e);

/* Not NULL: cli_parse shows it the verb's options, and does nothing else. */
extern void (*cli_survey)(void *arg, const struct cli_verb *, const struct cli_option *);
extern void *cli_survey_arg;
/* Has that verb show its options. */
void cli_survey_verb(const struct cli_verb *, void (*)(void *arg, const struct cli_verb *, const struct cli_option *),
    void *arg);

#endif
