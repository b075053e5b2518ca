/* SPDX-License-Identifier: MIT */
/* Writer of traces for tests and benchmarks: babeltrace2 reads them without a warning. See
 * docs/formats/ctf-writer.md. */
#ifndef WEFT_TESTS_CTF_WRITER_H
#define WEFT_TESTS_CTF_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct ctf_writer;
/* Creates `dir`. `tsdl` is the body after the writer's own trace, clock, header and context blocks: event declarations
 * as LTTng writes them (`event { name = …; id = …; stream_id = 0; fields := struct { … }; };`), 8-bit aligned. `env`:
 * "name=value" strings, NULL at the end. */
struct ctf_writer_options {
    const char *hostname, *tsdl;
    const char *const *env;
    uint64_t freq; int64_t clock_offset_ns; uint32_t packet_bytes; uint32_t cpus; uint8_t uuid[16];
    bool index_files, big_endian;
    bool ctf2;                 /* the same trace, with metadata in CTF 2 */
    bool large_header;         /* 16-bit ids and 32-bit times in event headers, as LTTng has with many event types */
    /* Fields of the stream's event context ("int32_t _tid;"), or NULL. Their bytes come first in `payload`. */
    const char *event_context;
};
int ctf_writer_open(const char *dir, const struct ctf_writer_options *, struct ctf_writer **out, struct err *e);
/* Appends an event with its payload bytes to the stream of `cpu`. Times must not decrease within a stream. */
int ctf_writer_event(struct ctf_writer *, uint32_t cpu, uint64_t id, int64_t ts_ns, const void *payload, size_t bytes,
    struct err *e);
/* Closes the stream's packet now. The packet says that `events` were lost since the one before, and `packets` sequence
 * numbers are missing after it. */
int ctf_writer_lose(struct ctf_writer *, uint32_t cpu, uint64_t events, uint64_t packets, struct err *e);
int ctf_writer_close(struct ctf_writer *, struct err *e);

#endif
