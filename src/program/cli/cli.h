/* SPDX-License-Identifier: MIT */
/* The command line: one file per verb (verb_NAME.c), options by table. */
#ifndef WEFT_CLI_CLI_H
#define WEFT_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

/* Exit status of every verb. PARTIAL: answered, but parts of the input were damaged or missing. What the tracer itself
 * lost is told and is OK. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_PARTIAL = 3 };

/* LIST: may be given several times. NOTHING: taken and without effect. REFUSED: other programs have it; `help` says
 * what to use instead. The last two are not in the help. */
enum cli_type { CLI_FLAG, CLI_STRING, CLI_LIST, CLI_INT, CLI_FLOAT, CLI_NOTHING, CLI_REFUSED };
struct cli_list { const char **v; size_t n, cap; };
struct cli_option {
    const char *name;        /* "begin": --begin VALUE or --begin=VALUE; NULL ends the table */
    char letter;             /* or 0 */
    int type;
    const char *value;       /* "TIME" in the help; NULL for flags */
    const char *help;
    void *into;              /* bool *, const char **, struct cli_list *, int64_t *, double * */
    int64_t least, most;     /* CLI_INT: values taken; most 0: as large as 64 bits hold */
};
struct cli_verb {
    const char *name, *arguments, *summary; /* "events", "TRACE…", "merged events in time order" */
    const char *example;                    /* shown by --help */
    int (*run)(int argc, char **argv);      /* argv[0] is the verb */
    bool no_settings;        /* it is another program, which reads none of weft's settings */
};
extern const struct cli_verb verb_info, verb_events, verb_index, verb_flows, verb_threads, verb_sync, verb_critpath,
    verb_requests, verb_serve, verb_coordinate, verb_status, verb_place, verb_span, verb_collect, verb_spans,
    verb_verify, verb_config, verb_completion;
/* All of them, in the order in which somebody meets them; NULL ends them. */
extern const struct cli_verb *const cli_verbs[];

/* Parses options anywhere among the arguments ("--" ends them); positional arguments are moved to argv[1 ..] and
 * counted in *n. Returns -1 to go on, or an exit code (--help printed, wrong use reported). Every verb understands
 * --help, --no-color, --quiet. Of an option given twice the last value counts. What is not given may be set elsewhere:
 * in files and in the environment (docs/verbs/config.md). */
int cli_parse(const struct cli_verb *, const struct cli_option *, int argc, char **argv, int *n);
/* Was this CLI_STRING (its `into`) set elsewhere, and not given? Then it gives way to what was given. */
bool cli_is_setting(const void *into);
/* What --help prints, for a width in columns. */
void cli_help(const struct cli_verb *, const struct cli_option *, int width, struct text *out);
/* The rule of the exit status, as all helps show it. */
void cli_help_status(int width, struct text *);

/* "weft: …" on stderr, one line, and the exit code: CLI_USAGE for ERR_ARG and ERR_AMBIGUOUS, else CLI_FAILED.
 * Not for a failed text_drain: cli_finish reports that. */
int cli_fail(const struct err *);
/* Notes on stderr ("weft: note: …") unless --quiet. */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool cli_color(void);        /* stdout is a terminal, NO_COLOR is unset, no --no-color */
/* Styles for what follows in a text for stdout; they write nothing when cli_color() is false. */
void cli_bold(struct text *);
void cli_plain(struct text *);
int cli_width(void);         /* columns of the terminal, else $COLUMNS, else 100 */
/* Flushes and frees stdout's text; a broken pipe is success, any other write error is CLI_FAILED. */
int cli_finish(struct text *out, int code);

/* Where collect keeps spans unless it is told; free() it. NULL: the user has no home. */
char *cli_collect_store(void);
/* weft/NAME in the user's directory of state; likewise. */
char *cli_state_directory(const char *name);

/* Tables: rows of cells printed aligned, as CSV, or as JSON objects keyed by column. */
enum cli_format { CLI_TABLE, CLI_JSON, CLI_CSV };
int cli_format_parse(const char *s, int *format, struct err *e);  /* NULL: table */
struct cli_column { const char *name; bool right; bool number; }; /* number: written bare in JSON */
struct cli_table;
struct cli_table *cli_table_new(const struct cli_column *, size_t n);
/* The next cell, row after row; "" is empty (null in JSON). */
void cli_table_cell(struct cli_table *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_table_number(struct cli_table *, int64_t);
void cli_table_text(struct cli_table *, struct text *);            /* its contents; the text is empty then */
/* For people with a unit; else the number of ns. */
void cli_table_duration(struct cli_table *, int format, int64_t ns);
/* Of bytes, the same. */
void cli_table_size(struct cli_table *, int format, uint64_t bytes);
/* A terminal's table has a bold heading and is cut to the width of the terminal, never wrapped; in files and pipes
 * nothing is cut. JSON is an array, one object per line; cells that are empty, or no number in a number column, are
 * null. */
void cli_table_write(struct cli_table *, int format, struct text *);
/* CLI_TABLE for a given width in columns; 0: as wide as it takes. */
void cli_table_write_width(struct cli_table *, int width, struct text *);
void cli_table_free(struct cli_table *);

#endif
