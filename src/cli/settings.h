/* Private to cli: the options that every verb understands. Set once by cli_parse. */
#ifndef WEFT_CLI_SETTINGS_H
#define WEFT_CLI_SETTINGS_H

#include <stdbool.h>

struct cli_settings { bool help, no_color, quiet; };
extern struct cli_settings cli_settings;

#endif
