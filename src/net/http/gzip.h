/* SPDX-License-Identifier: MIT */
/* Private to http: gzip in one go, and what was packed piece by piece. */
#ifndef WEFT_HTTP_GZIP_H
#define WEFT_HTTP_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/text.h"

/* Compressors at rest: each is a quarter of a megabyte, which costs a small answer more to get and clear than to
 * compress. Used by any thread. */
struct gzip_packers;
struct gzip_packers *gzip_packers_new(size_t most); /* at rest at once */
void gzip_packers_free(struct gzip_packers *);
/* False: not worth it; out is empty then. */
bool gzip_pack(struct gzip_packers *, const void *data, size_t n, struct text *out);
/* What was packed, piece by piece as it was before. */
struct gzip_reader;
struct gzip_reader *gzip_reader_new(struct text *packed); /* takes it over, and empties it; NULL without memory */
/* Up to so many bytes more; 0 at the end, or where it is damaged. */
size_t gzip_read(struct gzip_reader *, char *out, size_t most);
void gzip_reader_free(struct gzip_reader *);
bool gzip_unpack(const void *data, size_t n, struct text *out);
/* ERR_LIMIT: it has more than so many bytes; ERR_FORMAT: it is damaged. */
int gzip_unpack_most(const void *data, size_t n, size_t most_bytes, struct text *out, struct err *e);

#endif
