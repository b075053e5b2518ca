/* Private to http: gzip in one go. */
#ifndef WEFT_HTTP_GZIP_H
#define WEFT_HTTP_GZIP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

bool gzip_pack(const void *data, size_t n, struct text *out);   /* false: not worth it; out is empty then */
bool gzip_unpack(const void *data, size_t n, struct text *out);

#endif
