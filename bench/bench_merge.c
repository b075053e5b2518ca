/* SPDX-License-Identifier: MIT */
/* Merging the streams of many traces: bench_merge DIR [EVENTS]. Opens every trace below DIR and reads the first EVENTS
 * events (default 20 M) in time order. Prints JSON; opening is reported apart. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/time.h"
#include "ctf/ctf.h"

enum { BATCH = 256 };

int main(int argc, char **argv)
{
    struct err e = {0};
    struct ctf_group *groups;
    size_t n, streams = 0, got;
    uint64_t limit = argc > 2 ? strtoull(argv[2], NULL, 10) : 20000000, events = 0;
    if (argc < 2 || ctf_discover(argv[1], &groups, &n, &e)) {
        fprintf(stderr, "bench_merge DIR [EVENTS]: %s\n", e.text);
        return 1;
    }
    struct ctf_schemas *schemas = ctf_schemas_new();
    struct ctf_source *sources = mem_zalloc(sizeof *sources * (n + 1));
    int64_t start = time_monotonic_ns();
    for (size_t i = 0; i < n; i++) {
        if (ctf_trace_open(&groups[i], schemas, &sources[i].trace, &e)) {
            fprintf(stderr, "bench_merge: %s\n", e.text);
            return 1;
        }
        streams += ctf_trace_streams(sources[i].trace);
    }
    int64_t opened = time_monotonic_ns();
    struct ctf_merge *m;
    if (ctf_merge_new(sources, n, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, &e)) {
        fprintf(stderr, "bench_merge: %s\n", e.text);
        return 1;
    }
    struct ctf_event batch[BATCH];
    int64_t last = INT64_MIN;
    uint64_t backwards = 0;
    while (events < limit && (got = ctf_merge_next(m, batch, BATCH)) > 0) {
        for (size_t i = 0; i < got; i++) {
            backwards += batch[i].ts < last;
            last = batch[i].ts;
        }
        events += got;
    }
    double seconds = (double)(time_monotonic_ns() - opened) / 1e9;
    printf("{\"bench\":\"merge\",\"traces\":%zu,\"streams\":%zu,\"events\":%" PRIu64
           ",\"seconds\":%.4f,\"open_seconds\":%.4f,\"out_of_order\":%" PRIu64 "}\n",
        n, streams, events, seconds, (double)(opened - start) / 1e9, backwards);
    ctf_merge_free(m);
    for (size_t i = 0; i < n; i++)
        ctf_trace_close(sources[i].trace);
    free(sources);
    ctf_schemas_free(schemas);
    ctf_groups_free(groups, n);
    return 0;
}
