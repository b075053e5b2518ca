/* SPDX-License-Identifier: MIT */
/* Private to show: words and numbers of pictures. */
#ifndef WEFT_SHOW_WORDS_H
#define WEFT_SHOW_WORDS_H

#include "path/path.h"

struct text;

/* Writes "client:204 tier", "n2 interrupt", with the name for most of [begin, end]. At most `n` bytes, always
 * terminated. */
const char *show_name(const struct path_source *, struct path_row, int64_t begin, int64_t end, char *buf, size_t n);
/* Writes a name from a trace for a terminal: control characters and broken UTF-8 become "?". At most `cells` cells, the
 * last one "…" if cut. */
void show_text(struct text *, const char *s, size_t cells);
/* Writes a name for XML, uncut, with markup escaped. */
void show_xml(struct text *, const char *s);

/* ns of the path in assumed waits. */
int64_t show_assumed(const struct path *);

/* Distance between ticks: 1, 2 or 5 times a power of ten, at least span / count. */
int64_t show_tick(int64_t span, int count);

#endif
