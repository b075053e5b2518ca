/* SPDX-License-Identifier: MIT */
#include "http/grpc_frame.h"

#include "http/gzip.h"

enum grpc_status http_grpc_frame_head(const void *body, bool gzip, size_t most, size_t *n, struct err *e)
{
    const uint8_t *b = body;
    *n = (size_t)b[1] << 24 | (size_t)b[2] << 16 | (size_t)b[3] << 8 | b[4];
    if (b[0] > 1) {
        err_set(e, ERR_FORMAT, "the message begins with %u: it must be 0, or 1 for a compressed one", b[0]);
        return GRPC_INTERNAL;
    }
    if (b[0] && !gzip) {
        err_set(e, ERR_FORMAT, "the message is compressed, and grpc-encoding does not say how");
        return GRPC_INTERNAL;
    }
    if (*n > most) {
        err_set(e, ERR_LIMIT, "the message has %zu bytes, at most %zu are taken", *n, most);
        return GRPC_RESOURCE_EXHAUSTED;
    }
    return GRPC_OK;
}

enum grpc_status http_grpc_frame_message(
    const void *body, size_t n, bool gzip, size_t most, struct text *unpacked, struct grpc_call *call, struct err *e)
{
    size_t bytes;
    if (n < GRPC_HEAD_BYTES) {
        err_set(e, ERR_FORMAT, "the call has no message");
        return GRPC_INVALID_ARGUMENT;
    }
    enum grpc_status status = http_grpc_frame_head(body, gzip, most, &bytes, e);
    if (status)
        return status;
    if (bytes != n - GRPC_HEAD_BYTES) {
        err_set(e, ERR_FORMAT, "the message has %zu bytes, and %zu came", bytes, n - GRPC_HEAD_BYTES);
        return GRPC_INVALID_ARGUMENT;
    }
    call->message = (const char *)body + GRPC_HEAD_BYTES;
    call->message_bytes = bytes;
    if (!*(const uint8_t *)body)
        return GRPC_OK;
    int rc = http_gzip_unpack_most(call->message, bytes, most, unpacked, e);
    call->message = text_cstr(unpacked);
    call->message_bytes = unpacked->n;
    return !rc ? GRPC_OK : rc == ERR_LIMIT ? GRPC_RESOURCE_EXHAUSTED : GRPC_INVALID_ARGUMENT;
}

void http_grpc_write_percent(struct text *t, const char *s)
{
    static const char digits[] = "0123456789ABCDEF";
    for (; *s; s++) {
        unsigned char c = (unsigned char)*s;
        if (c >= ' ' && c <= '~' && c != '%') {
            text_putc(t, *s);
        } else {
            text_putc(t, '%');
            text_putc(t, digits[c >> 4]);
            text_putc(t, digits[c & 15]);
        }
    }
}
