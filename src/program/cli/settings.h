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

/* Sources, in ascending priority. */
enum cli_level { CLI_SYSTEM, CLI_USER, CLI_ENVIRONMENT, CLI_ARGUMENT };
struct cli_setting {
    const char *section;     /* verb; NULL: every verb with such an option */
    const char *name;        /* name of the option; NULL for the environment */
    const char *value;       /* value, never NULL; "" if none was given */
    const char *origin;      /* "/etc/weft/weft.conf:3", "WEFT_CLUSTER" */
    enum cli_level level;
};
/* Returns all settings of the files, in their order; borrowed for the program's lifetime. Files are read once. A
 * missing file has no settings. */
int cli_settings_read(const struct cli_setting **out, size_t *n, struct err *e);
/* Returns the files, in their order, present or not; terminated by NULL. */
const char *const *cli_settings_files(void);
/* Visits the settings for a verb with these options and the common ones, by ascending priority. take(arg, option,
 * setting) returns 0, or an error that ends the visit. */
typedef int cli_settings_take(void *arg, const struct cli_option *, const struct cli_setting *, struct err *);
int cli_settings_for(const char *verb, const struct cli_option *, cli_settings_take *, void *arg, struct err *e);

/* Callback, or NULL. If set, cli_parse only passes the verb's options to it. */
extern void (*cli_survey)(void *arg, const struct cli_verb *, const struct cli_option *);
extern void *cli_survey_arg;
/* Passes the options of that verb to the callback. */
void cli_survey_verb(const struct cli_verb *, void (*)(void *arg, const struct cli_verb *, const struct cli_option *),
    void *arg);

#endif
