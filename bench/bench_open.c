/* SPDX-License-Identifier: MIT */
/* Opening many traces: bench_open DIR. Prints traces, seconds, those of the processor, and resident memory per trace
 * beyond the first. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "ctf/ctf.h"

/* Private memory of the process in bytes: mapped files that were not touched, and shared pages of files, cost the trace
 * nothing. */
static size_t private_bytes(void)
{
    FILE *f = fopen("/proc/self/smaps_rollup", "r");
    char line[256];
    size_t kb, sum = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Private_Dirty: %zu kB", &kb) == 1)
            sum += kb;
    if (f)
        fclose(f);
    return sum * 1024;
}

int main(int argc, char **argv)
{
    struct err e = {0};
    struct ctf_group *groups;
    size_t n;
    if (argc < 2 || ctf_discover(argv[1], &groups, &n, &e)) {
        fprintf(stderr, "bench_open DIR: %s\n", e.text);
        return 1;
    }
    struct ctf_schemas *schemas = ctf_schemas_new();
    struct ctf_trace **traces = calloc(n, sizeof *traces);
    int64_t start = time_monotonic_ns();
    size_t first = 0;
    for (size_t i = 0; i < n; i++) {
        if (ctf_trace_open(&groups[i], schemas, &traces[i], &e)) {
            fprintf(stderr, "%s\n", e.text);
            return 1;
        }
        if (i == 0)
            first = private_bytes();
    }
    double processor = (double)clock() / CLOCKS_PER_SEC;
    double seconds = (double)(time_monotonic_ns() - start) / 1e9;
    size_t last = private_bytes();
    printf("{\"bench\":\"open\",\"traces\":%zu,\"seconds\":%.3f,\"processor\":%.3f,\"bytes_per_further_trace\":%zu}\n",
        n, seconds, processor, n > 1 ? (last - first) / (n - 1) : last);
    for (size_t i = 0; i < n; i++)
        ctf_trace_close(traces[i]);
    free(traces);
    ctf_schemas_free(schemas);
    ctf_groups_free(groups, n);
    return 0;
}
