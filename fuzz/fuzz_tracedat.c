/* SPDX-License-Identifier: MIT */
/* Recordings of trace-cmd: any file. All that is read is also printed. */
#include "../tests/ftrace/read_all.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    read_all(data, n);
    return 0;
}
