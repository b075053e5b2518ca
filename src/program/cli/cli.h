/* SPDX-License-Identifier: MIT */
/* The command line: one file per verb (verb_NAME.c), options by table. */
#ifndef WEFT_CLI_CLI_H
#define WEFT_CLI_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/text.h"

/* Exit status of every verb. PARTIAL: answered, but parts of the input were damaged or missing. Losses of the tracer
 * itself are reported, and are OK. */
enum { CLI_OK = 0, CLI_FAILED = 1, CLI_USAGE = 2, CLI_PARTIAL = 3 };

/* LIST: may be given several times. NOTHING: accepted without effect. REFUSED: an option of other programs; `help` says
 * what to use instead. The last two are not in the help. */
enum cli_type { CLI_FLAG, CLI_STRING, CLI_LIST, CLI_INT, CLI_FLOAT, CLI_NOTHING, CLI_REFUSED };
struct cli_list { const char **v; size_t n, cap; };
struct cli_option {
    const char *name;        /* "begin": --begin VALUE or --begin=VALUE; NULL ends the table */
    char letter;             /* short form; 0: none */
    int type;
    const char *value;       /* "TIME" in the help; NULL for flags */
    const char *help;
    void *into;              /* bool *, const char **, struct cli_list *, int64_t *, double * */
    int64_t least, most;     /* CLI_INT: range of values; most 0: 64 bits */
};
struct cli_verb {
    const char *name, *arguments, *summary; /* "events", "TRACE…", "merged events in time order" */
    const char *example;                    /* shown by --help */
    int (*run)(int argc, char **argv);      /* argv[0] is the verb */
    bool no_settings;        /* separate program that reads none of weft's settings */
};
extern const struct cli_verb verb_info, verb_events, verb_index, verb_flows, verb_threads, verb_sync, verb_critpath,
    verb_requests, verb_serve, verb_coordinate, verb_status, verb_place, verb_span, verb_collect, verb_spans,
    verb_verify, verb_config, verb_completion;
/* Array of all verbs, in the order of the help; terminated by NULL. */
extern const struct cli_verb *const cli_verbs[];

/* Parses options anywhere among the arguments ("--" ends them). Moves positional arguments to argv[1 ..] and counts
 * them in *n. Returns -1 to go on, or an exit code (--help printed, wrong use reported). Every verb has --help,
 * --no-color and --quiet. The last value of a repeated option counts. Options not given may be set in files and in the
 * environment (docs/verbs/config.md). */
int cli_parse(const struct cli_verb *, const struct cli_option *, int argc, char **argv, int *n);
/* Returns whether this CLI_STRING (its `into`) comes from a setting, not from the command line. Arguments have priority
 * over it. */
bool cli_is_setting(const void *into);
/* Prints what --help shows, for a width in columns. */
void cli_help(const struct cli_verb *, const struct cli_option *, int width, struct text *out);
/* Prints the rule of the exit status, as in all helps. */
void cli_help_status(int width, struct text *);

/* Prints "weft: …" on stderr, one line, and returns the exit code: CLI_USAGE for ERR_ARG and ERR_AMBIGUOUS, else
 * CLI_FAILED. Not for a failed text_drain: cli_finish reports that. */
int cli_fail(const struct err *);
/* Prints a note on stderr ("weft: note: …") unless --quiet. */
void cli_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
bool cli_color(void);        /* stdout is a terminal, NO_COLOR is unset, no --no-color */
/* Styles of the following text for stdout; they write nothing if cli_color() is false. */
void cli_bold(struct text *);
void cli_plain(struct text *);
int cli_width(void);         /* columns of the terminal, else $COLUMNS, else 100 */
/* Flushes and frees stdout's text; a broken pipe is success, any other write error is CLI_FAILED. */
int cli_finish(struct text *out, int code);

/* Returns collect's default store of spans; free() it. NULL: the user has no home. */
char *cli_collect_store(void);
/* Returns weft/NAME in the user's state directory; free() it. NULL: the user has no home. */
char *cli_state_directory(const char *name);

/* Tables: rows of cells printed aligned, as CSV, or as JSON objects keyed by column. */
enum cli_format { CLI_TABLE, CLI_JSON, CLI_CSV };
int cli_format_parse(const char *s, int *format, struct err *e);  /* NULL: table */
struct cli_column { const char *name; bool right; bool number; }; /* number: written bare in JSON */
struct cli_table;
struct cli_table *cli_table_new(const struct cli_column *, size_t n);
/* Adds the next cell, row after row; "" is empty (null in JSON). */
void cli_table_cell(struct cli_table *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void cli_table_number(struct cli_table *, int64_t);
void cli_table_text(struct cli_table *, struct text *);            /* takes the contents; the text is empty then */
/* Adds a duration: with a unit in tables for people, else as a number of ns. */
void cli_table_duration(struct cli_table *, int format, int64_t ns);
/* Adds a size in bytes, likewise. */
void cli_table_size(struct cli_table *, int format, uint64_t bytes);
/* Writes the table. On a terminal it has a bold heading and is cut to the terminal's width, never wrapped; in files and
 * pipes nothing is cut. JSON is an array, one object per line; empty cells, and cells of number columns without a
 * number, are null. */
void cli_table_write(struct cli_table *, int format, struct text *);
/* Writes a CLI_TABLE for a width in columns; 0: unlimited. */
void cli_table_write_width(struct cli_table *, int width, struct text *);
void cli_table_free(struct cli_table *);

#endif
