/* SPDX-License-Identifier: MIT */
/* Private to coord: JSON as it lies in an answer. A slice is one value of a text that was checked, so that what need
 * not be understood is copied as it stands: keys that nobody here knows, numbers to the last digit. */
#ifndef WEFT_COORD_SLICE_H
#define WEFT_COORD_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

enum { SLICE_DEPTH = 60 };

/* Without the space around it; at NULL: there is no such value. Borrows the text, and what is known of where its larger
 * containers end (NULL: nothing), so that they are stepped over and not walked through. */
struct slice { const char *at; size_t n; const struct slice_ends *ends; };

/* The whole text as one value: RFC 8259, at most SLICE_DEPTH deep, well-formed UTF-8. at NULL: it is none, and *bad
 * (may be NULL) is where that shows. All below are for slices of such a text. Where containers end is kept in the
 * arena; NULL: it is not. O(n) */
struct slice slice_of(const char *text, size_t n, struct arena *, size_t *bad);

bool slice_is(struct slice, char first); /* '{', '[', '"' */
/* The values of an array or object, one after the other; a container of the other kind, or no container, has none. The
 * key is as it stands, in quotes. */
struct slice_walk { const char *at, *end; const struct slice_ends *ends; };
struct slice_walk slice_items(struct slice array);
bool slice_next(struct slice_walk *, struct slice *item);
struct slice_walk slice_members(struct slice object);
bool slice_next_member(struct slice_walk *, struct slice *key, struct slice *value);

/* Is the text of the string exactly that? Escapes are not looked into: known keys have none. */
bool slice_equals(struct slice string, const char *text);
/* Byte for byte. */
bool slice_same(struct slice, struct slice);
/* Values are equal, whatever the space between them, the escapes, the form of the numbers and the order of members. Of
 * two objects in another order and with more than SLICE_MEMBERS members it returns false. */
enum { SLICE_MEMBERS = 64 };
bool slice_same_value(struct slice, struct slice);
struct slice slice_get(struct slice object, const char *key);
/* A whole number that fits. */
bool slice_integer(struct slice, int64_t *out);
/* A number as doubles are; false: it is none. */
bool slice_number(struct slice, double *out);
/* A string, its escapes resolved, terminated; NUL becomes U+FFFD. NULL: it is no string. */
char *slice_string(struct slice, struct arena *);

#endif
