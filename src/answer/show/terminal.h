/* SPDX-License-Identifier: MIT */
/* Private to show: what the parts of the answer for a terminal share. */
#ifndef WEFT_SHOW_TERMINAL_H
#define WEFT_SHOW_TERMINAL_H

#include "show/rows.h"
#include "show/show.h"

enum { TERMINAL_MAX_NAME = 28, TERMINAL_INDENT = 2 }; /* cells */

/* ---- terminal_columns.c: no colours are written when the style has none ---- */
void terminal_color(const struct show_style *, struct text *, int state);
void terminal_style(const struct show_style *, struct text *, const char *code);
/* In a column of `width` cells, cut when it is wider. */
void terminal_left(struct text *, const char *s, size_t width);
void terminal_right(struct text *, const char *s, size_t width);
/* "1.25 ms", in `scratch`. */
const char *terminal_duration(int64_t ns, struct text *scratch);
/* The greater of `width` and what the text takes. */
size_t terminal_widest(size_t width, const char *s);

/* ---- terminal.c ---- */
/* With a width that there is room in. */
struct show_style terminal_style_of(const struct show_style *);
/* Lines that begin with the indent, broken between words. */
void terminal_words(const char *, const struct show_style *, struct text *);
/* The path in a sentence, so. */
void terminal_sentence(const struct path *, const struct path_source *, const struct show_style *, struct text *);

void terminal_summary(const struct path *, const struct path_source *, const struct show_style *, struct text *);
void terminal_picture(const struct show_rows *, const struct show_style *, struct text *);

#endif
