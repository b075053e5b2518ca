/* SPDX-License-Identifier: MIT */
/* The body of a gRPC call, as anybody sends it. The first byte says whether it may be compressed. */
#include <stdlib.h>
#include <string.h>

#include "http/grpc_frame.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    enum { MOST_BYTES = 1 << 16 };
    struct grpc_call call = {0};
    struct text unpacked = {.fd = -1}, said = {.fd = -1};
    struct err e = {0};
    if (!n)
        return 0;
    enum grpc_status status = http_grpc_frame_message(data + 1, n - 1, *data & 1, MOST_BYTES, &unpacked, &call, &e);
    if (!status && call.message_bytes > MOST_BYTES)
        abort();
    if (!status && n > 1 && !data[1] && (call.message_bytes != n - 6 || memcmp(call.message, data + 6, n - 6) != 0))
        abort();
    if (status && !*e.text)
        abort();
    http_grpc_write_percent(&said, e.text);
    for (size_t i = 0; i < said.n; i++)
        if (said.v[i] < ' ' || said.v[i] > '~')
            abort();
    text_fini(&unpacked);
    text_fini(&said);
    return 0;
}
