/* SPDX-License-Identifier: MIT */
/* JSON in place, within a text. A slice is one value of a validated text. Values that need not be understood are copied
 * verbatim: unknown keys, numbers to the last digit. */
#ifndef WEFT_BASE_SLICE_H
#define WEFT_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { SLICE_DEPTH = 60 };

/* Value without the space around it; at NULL: no value. Borrows the text, and the known ends of its larger containers
 * (NULL: none), which allow to skip those. */
struct slice { const char *at; size_t n; const struct slice_ends *ends; };

/* Returns the whole text as one value: RFC 8259, at most SLICE_DEPTH deep, well-formed UTF-8. at NULL: invalid, and
 * *bad (may be NULL) is the offset of the error. All functions below need slices of such a text. The arena keeps the
 * ends of containers; NULL: they are not kept. O(n) */
struct slice slice_of(const char *text, size_t n, struct arena *, size_t *bad);

bool slice_is(struct slice, char first); /* '{', '[', '"' */
/* Walk over the values of an array or object. Other values, and containers of the other kind, have none. The key is
 * verbatim, in quotes. */
struct slice_walk { const char *at, *end; const struct slice_ends *ends; };
struct slice_walk slice_items(struct slice array);
bool slice_next(struct slice_walk *, struct slice *item);
struct slice_walk slice_members(struct slice object);
bool slice_next_member(struct slice_walk *, struct slice *key, struct slice *value);

/* Returns whether the string is exactly that text. Escapes are not resolved: known keys have none. */
bool slice_equals(struct slice string, const char *text);
/* Returns whether both are equal byte for byte. */
bool slice_same(struct slice, struct slice);
/* Returns whether values are equal, whatever the space between them, escapes, form of numbers and order of members.
 * Returns false for two objects in another order and with more than SLICE_MEMBERS members. */
enum { SLICE_MEMBERS = 64 };
bool slice_same_value(struct slice, struct slice);
struct slice slice_get(struct slice object, const char *key);
/* Returns the first item of an array that has one; other values unchanged. */
struct slice slice_first(struct slice);
/* Reads an integer; false: it is none, or does not fit. */
bool slice_integer(struct slice, int64_t *out);
/* Reads a number as a double; false: it is none. */
bool slice_number(struct slice, double *out);
/* Returns a string in the arena: escapes resolved, terminated; NUL becomes U+FFFD. NULL: not a string. */
char *slice_string(struct slice, struct arena *);
struct json;
/* Write a value; a key verbatim, for the value that is written next. */
void slice_put(struct json *, struct slice);
void slice_put_key(struct json *, struct slice key);

#endif
