/* SPDX-License-Identifier: MIT */
/* Private to http: gzip at once, and reading of compressed data piece by piece. */
#ifndef WEFT_HTTP_GZIP_H
#define WEFT_HTTP_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/text.h"

/* Idle compressors. Each is a quarter of a megabyte; to allocate and clear it costs more than to compress a small
 * answer. Thread-safe. */
struct gzip_packers;
struct gzip_packers *http_gzip_packers_new(size_t most); /* limit of idle ones */
void http_gzip_packers_free(struct gzip_packers *);
/* Compresses. False: not worth while; `out` is then empty. */
bool http_gzip_pack(struct gzip_packers *, const void *data, size_t n, struct text *out);
/* Reader of compressed data: returns the original piece by piece. */
struct gzip_reader;
struct gzip_reader *http_gzip_reader_new(struct text *packed); /* takes over `packed` and empties it; NULL: no memory */
/* Returns the number of bytes read, up to `most`; 0 at the end, or at damage. */
size_t http_gzip_read(struct gzip_reader *, char *out, size_t most);
void http_gzip_reader_free(struct gzip_reader *);
bool http_gzip_unpack(const void *data, size_t n, struct text *out);
/* ERR_LIMIT: more than most_bytes; ERR_FORMAT: damaged. */
int http_gzip_unpack_most(const void *data, size_t n, size_t most_bytes, struct text *out, struct err *e);

#endif
