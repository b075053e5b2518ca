/* SPDX-License-Identifier: MIT */
/* Output text: a growing buffer with fast number formatting, optionally drained into a file descriptor. */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

/* Zero-initialise (fd = -1 for a buffer in memory only). Not terminated unless text_cstr is called. It owns its memory,
 * of a special kind (base/large.h): text_fini frees it, text_take hands it over. */
struct text {
    char *v;
    size_t n, cap;
    int fd;                  /* if > 0, text_drain writes there */
    int error;               /* errno of a failed write, after which writes do nothing; ENOMEM: see text_grow */
    struct text_styles *styles; /* own styles; NULL: none */
};

#define TEXT_TO(file_descriptor) ((struct text){.fd = (file_descriptor)})

/* Reserves room for so many bytes more. A text of many MB that cannot grow drops its second half instead and keeps the
 * error ENOMEM: the writer of an answer goes on safely until it checks the error. */
void text_grow(struct text *t, size_t bytes);
/* Reserves room as text_grow; false, without any effect, if there is no memory. */
bool text_try_grow(struct text *t, size_t bytes);
static inline char *text_room(struct text *t, size_t bytes)
{
    if (t->cap - t->n < bytes)
        text_grow(t, bytes);
    return t->v + t->n;
}
static inline void text_putc(struct text *t, char c)
{
    *text_room(t, 1) = c;
    t->n++;
}
static inline void text_put(struct text *t, const char *s, size_t n)
{
    memcpy(text_room(t, n + 1), s, n);
    t->n += n;
}
static inline void text_puts(struct text *t, const char *s) { text_put(t, s, strlen(s)); }
/* Appends a string literal. */
#define TEXT_PUT(t, literal) text_put((t), "" literal, sizeof(literal) - 1)
void text_fill(struct text *, char c, size_t n);                   /* n times c */
void text_u64(struct text *, uint64_t v);
void text_i64(struct text *, int64_t v);
/* text_i64 for numbers close to one another, such as times: shared digits are not computed again. Zero-initialise. */
struct text_near { uint64_t above; unsigned n; char digits[24]; };
void text_i64_near(struct text *, struct text_near *, int64_t v);
void text_pad(struct text *, uint64_t v, int width, char fill);    /* right-aligned decimal */
void text_printf(struct text *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Appends a terminal's sequence for a style ("\033[1m") and remembers it: text_drain passes no other sequence to a
 * terminal, whatever traces contain. */
void text_style(struct text *, const char *sequence);
const char *text_cstr(struct text *);                              /* terminated; valid until the next change */
/* Writes the text out if it has more than `threshold` bytes (0: always). ERR_IO once writing failed. A terminal gets
 * the text as by shown_lines (base/shown.h), other files get it unchanged. */
int text_drain(struct text *, size_t threshold, struct err *e);
void text_fini(struct text *);
char *text_take(struct text *);                                    /* ends the text; free() its terminated contents */
struct arena;
char *text_to_arena(struct text *, struct arena *);                /* ends the text; its terminated contents */
static inline bool text_is_digit(char c) { return c >= '0' && c <= '9'; }

/* Durations for people: at most four digits below 10 000 s, and a unit: "88.49 ms", "1.200 s", "350 ns", "-2.000
 * µs". */
void text_duration(struct text *, int64_t ns);
const char *arena_duration(struct arena *, int64_t ns);
/* Groups of three digits separated by spaces: 12 345 678. */
void text_grouped(struct text *, uint64_t v);
/* Cells a UTF-8 string takes on a terminal (one per code point). */
size_t text_cells(const char *s, size_t n);
/* Bytes of the well-formed UTF-8 sequence at s (Unicode 15, table 3-7), or 0. Reads at most n bytes of s, n > 0. */
size_t text_sequence(const char *s, size_t n);

#endif
