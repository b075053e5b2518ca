/* SPDX-License-Identifier: MIT */
/* Text from outside (traces, spans, users), made safe for terminals and spreadsheets. */
#ifndef WEFT_BASE_SHOWN_H
#define WEFT_BASE_SHOWN_H

#include "base/text.h"

/* Bytes of the character at s, of n > 0 bytes; *plain: a terminal only displays it. Not plain are control characters
 * (C0, DEL, C1; also line ends and tabs), bytes that are not UTF-8 (one at a time), line and paragraph separators, and
 * characters that change the direction of text. */
size_t shown_character(const char *s, size_t n, bool *plain);
/* Code point of the well-formed sequence of n bytes at s. */
uint32_t shown_code_point(const char *s, size_t n);
/* Appends a line of text; each character that is not plain becomes '?'. */
void shown_line(struct text *, const char *s, size_t n);
/* Appends as shown_line, but keeps line ends and tabs. */
void shown_lines(struct text *, const char *s, size_t n);

/* A cell of CSV, quoted where necessary: RFC 4180, with plain line ends. Spreadsheets read a text beginning with =, +,
 * -, @ (also in full width), a tab or a carriage return as a formula, hence the leading '. Numbers stay numbers. */
void shown_cell(struct text *, const char *s);
void shown_cell_n(struct text *, const char *s, size_t n);

#endif
