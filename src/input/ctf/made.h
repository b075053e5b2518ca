/* SPDX-License-Identifier: MIT */
/* Traces in another format, offered as CTF. Part of ctf.
 *
 * A reader of that format (room ftrace) writes metadata, lists the packets, and makes the bytes of a packet when it is
 * read. Everything above sees an ordinary trace. */
#ifndef WEFT_CTF_MADE_H
#define WEFT_CTF_MADE_H

#include "ctf/ctf.h"

struct file_map;

struct ctf_made_packet {
    uint64_t offset;         /* bytes in the recording, for messages */
    uint64_t bytes;          /* of the packet that is made */
    uint64_t begin, end;     /* cycles of its stream's clock */
    uint64_t discarded;      /* events lost in the stream before the packet begins */
};
struct ctf_made_stream {
    const char *name;        /* unique in the trace; valid as long as the reader */
    uint64_t class_id, bytes;
    int32_t cpu;
    const struct ctf_made_packet *packets;
    size_t n;
};
struct ctf_made_problem { const char *text; bool harmless; };
struct ctf_maker {
    void *reader;
    /* Writes the packet, which has exactly `bytes` bytes. Any thread. ERR_LOST: the recording changed. */
    int (*packet)(void *reader, size_t stream, size_t packet, uint8_t *out, uint64_t bytes, struct err *e);
    void (*close)(void *reader);
};
/* The streams, their packets and the problems are borrowed for the call. */
struct ctf_made {
    const char *path;        /* of the recording */
    const char *metadata;    /* CTF 1.8: packets without header, context begins with `timestamp_begin` */
    size_t metadata_bytes;
    const struct file_map *map; /* the recording, open as long as the reader */
    const struct ctf_made_stream *streams;
    size_t n;
    const struct ctf_made_problem *problems;
    size_t n_problems;
    struct ctf_maker maker;
};
/* The reader belongs to the trace from then on; after an error to the caller. */
int ctf_trace_make(const struct ctf_made *, struct ctf_schemas *, struct ctf_trace **out, struct err *e);

#endif
