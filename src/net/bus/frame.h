/* SPDX-License-Identifier: MIT */
/* Private to bus: header of each part of a question or an answer, and reassembly of parts. Input from the wire is
 * checked here; at most twice its size is allocated. Little-endian; docs/cluster-protocol.md has the layout. */
#ifndef WEFT_BUS_FRAME_H
#define WEFT_BUS_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { FRAME_BYTES = 32, FRAME_VERSION = 1 };
/* Kinds. FRAME_SIGN_QUESTION asks for one of the last two as its answer, which end with a signature (trust.h). */
enum frame_kind {
    FRAME_QUESTION = 1, FRAME_ANSWER, FRAME_REFUSAL, FRAME_BEAT, FRAME_BYE, FRAME_SIGN_QUESTION, FRAME_SIGNED_ANSWER,
    FRAME_SIGNED_REFUSAL
};

struct frame {
    enum frame_kind kind;
    uint32_t part, parts;      /* part < parts */
    int32_t number;            /* question: ms until its deadline; refusal: enum weft_err; beat: ms until the next */
    uint64_t id;               /* same in all parts of a message, unique per message of the sender */
    uint64_t whole_bytes;      /* all parts together, without frames */
    const uint8_t *data;       /* this part */
    size_t n;
};

/* Reads a frame from n bytes; out->data points into `data`. ERR_FORMAT; ERR_UNSUPPORTED: another version. */
int bus_frame_read(const void *data, size_t n, struct frame *out, struct err *e);
void bus_frame_write(const struct frame *, uint8_t out[FRAME_BYTES]);

/* Incomplete message. Zero-initialise; bus_assembly_free ends it. */
struct assembly {
    uint64_t id, whole_bytes;
    uint32_t parts, next;      /* parts 0: nothing has come */
    enum frame_kind kind;
    int32_t number;
    uint8_t *data;
    size_t n, cap;
};
/* Adds a part; parts must come in order, each once. Returns 1 if the message is complete, 0 if not, or ERR_FORMAT,
 * ERR_LIMIT (larger than limit_bytes), ERR_NOMEM. After an error the assembly can only be freed. */
int bus_assembly_add(struct assembly *, const struct frame *, uint64_t limit_bytes, struct err *e);
void bus_assembly_free(struct assembly *);

/* Contents of a beat: member and its data. Points into the frame's data. */
struct beat { const char *name, *instance; size_t name_n, instance_n; const uint8_t *said; size_t said_n; };
int bus_beat_read(const struct frame *, struct beat *out, struct err *e);
/* Returns the bytes that bus_beat_write needs. */
size_t bus_beat_bytes(const struct beat *);
void bus_beat_write(const struct beat *, uint8_t *out);

#endif
