/* SPDX-License-Identifier: MIT */
/* Private to cli: facts about traces for `weft info`, and their output. */
#ifndef WEFT_CLI_INFO_H
#define WEFT_CLI_INFO_H

#include "base/mem.h"
#include "base/text.h"
#include "index/index.h"
#include "kernel/kernel.h"

struct stream_facts {
    struct ctf_stream_info info;
    uint64_t events;
    bool timed; /* info.begin and .end are the times of its first and last event */
};

typedef uint8_t info_cpus[CTF_MOST_CPUS / 8];

struct trace_facts {
    const struct ctf_trace *trace;
    const char *host, *domain, *kernel;
    char *tracer;                  /* "lttng-modules 2.13.9", or NULL */
    const struct ctf_clock *clock; /* the first one, or NULL */
    struct stream_facts *streams;
    size_t n_streams;
    uint64_t packets, events, lost_events, lost_packets, bytes;
    bool has_span;
    int64_t begin, end;
    struct kernel_targets targets;
    info_cpus goes_to;               /* CPUs that threads were woken for or moved to */
    VEC(struct ctf_problem) problems; /* problems of opening and of reading; texts are owned */
};

/* Writes the facts in a format of cli.h. CLI_TABLE: a page for one trace; for several a line each, or pages if
 * `pages`. */
void cli_info_write(struct text *, const struct trace_facts *, size_t n, int format, bool pages);

#endif
