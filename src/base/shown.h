/* SPDX-License-Identifier: MIT */
/* Text from outside (traces, spans, users) as a terminal and a spreadsheet may have it. */
#ifndef WEFT_BASE_SHOWN_H
#define WEFT_BASE_SHOWN_H

#include "base/text.h"

/* Bytes of the character at s, of which n > 0 are there; *plain: a terminal shows it and does nothing else. Not plain
 * are control characters (C0, DEL, C1), bytes that are no UTF-8 (one at a time), line and paragraph separators, and
 * what changes the direction of text. Line ends and tabs are control characters, too. */
size_t shown_character(const char *s, size_t n, bool *plain);
/* Code point of the well-formed sequence of n bytes at s. */
uint32_t shown_code_point(const char *s, size_t n);
/* Appends a text of one line; each character that is not plain becomes '?'. */
void shown_line(struct text *, const char *s, size_t n);
/* The same, with line ends and tabs kept. */
void shown_lines(struct text *, const char *s, size_t n);

/* A cell of CSV, quoted where it must be: RFC 4180, with plain line ends. Spreadsheets take a text that begins with =,
 * +, -, @ (also in full width), a tab or a carriage return for a formula: a ' before it keeps it a text. Numbers stay
 * numbers. */
void shown_cell(struct text *, const char *s);
void shown_cell_n(struct text *, const char *s, size_t n);

#endif
