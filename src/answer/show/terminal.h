/* SPDX-License-Identifier: MIT */
/* Private to show: functions shared by the parts of the terminal output. */
#ifndef WEFT_SHOW_TERMINAL_H
#define WEFT_SHOW_TERMINAL_H

#include "show/rows.h"
#include "show/show.h"

enum { TERMINAL_MAX_NAME = 28, TERMINAL_INDENT = 2 }; /* cells */

/* ---- terminal_columns.c: writes colours only if the style has them ---- */
void show_terminal_color(const struct show_style *, struct text *, int state);
void show_terminal_style(const struct show_style *, struct text *, const char *code);
/* Writes a column of `width` cells, cut if it is wider. */
void show_terminal_left(struct text *, const char *s, size_t width);
void show_terminal_right(struct text *, const char *s, size_t width);
/* "1.25 ms", in `scratch`. */
const char *show_terminal_duration(int64_t ns, struct text *scratch);
/* Maximum of `width` and the cells of the text. */
size_t show_terminal_widest(size_t width, const char *s);

/* ---- terminal.c ---- */
/* Style with a usable width. */
struct show_style show_terminal_style_of(const struct show_style *);
/* Writes lines that begin with the indent, broken between words. */
void show_terminal_words(const char *, const struct show_style *, struct text *);
/* Writes the path's sentence in such lines. */
void show_terminal_sentence(const struct path *, const struct path_source *, const struct show_style *, struct text *);

void show_terminal_summary(const struct path *, const struct path_source *, const struct show_style *, struct text *);
/* Writes the call stacks of the longest waits on the path, and an empty line before; nothing if there are none. */
void show_terminal_stacks(const struct path *, const struct path_source *, const struct show_style *, struct text *);
void show_terminal_picture(const struct show_rows *, const struct show_style *, struct text *);

#endif
