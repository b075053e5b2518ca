/* SPDX-License-Identifier: MIT */
/* Private to span: base64. */
#ifndef WEFT_SPAN_BASE64_H
#define WEFT_SPAN_BASE64_H

#include "base/text.h"

void span_write_base64(struct text *, const void *v, size_t n);
/* Reads either alphabet, with or without padding; `out` has room for n bytes. */
bool span_read_base64(const char *s, size_t n, uint8_t *out, size_t *out_n);

#endif
