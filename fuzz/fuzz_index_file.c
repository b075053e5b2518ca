/* SPDX-License-Identifier: MIT */
/* Fuzz: LTTng's packet index files. The first eight bytes are the size of the stream file that the index is for. */
#include <stdlib.h>
#include <string.h>

#include "ctf/trace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct ctf_index index;
    uint64_t file_bytes, sum = 0;
    if (n < 8)
        return 0;
    memcpy(&file_bytes, data, 8);
    if (!ctf_index_parse(data + 8, n - 8, file_bytes, &index)) {
        if (index.entries.v)
            abort();
        return 0;
    }
    /* Whoever believes it must stay inside the file. */
    for (size_t i = 0; i < index.entries.n; i++) {
        const struct ctf_index_entry *e = &index.entries.v[i];
        if (e->offset != sum || e->content_bits > e->packet_bits || e->packet_bits / 8 > file_bytes - sum)
            abort();
        sum += e->packet_bits / 8;
    }
    if (sum != file_bytes)
        abort();
    vec_free(&index.entries);
    return 0;
}
