/* SPDX-License-Identifier: MIT */
/* Counts of packets that a trace remembers, of which some numbers are wrong: whatever they are, reading by them ends
 * and stays within the packets. Each 8 bytes of the input put a number (6 bytes) into a word (2 bytes) of the right
 * ones. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "ctf/ctf.h"
#include "ctf_writer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EVENTS = 3000, CPUS = 2 };

static char dir[600];
static struct ctf_group *groups;
static struct ctf_counts right;

static void remove_trace(void)
{
    char command[700];
    snprintf(command, sizeof command, "rm -rf '%s'", dir);
    if (system(command))
        fprintf(stderr, "%s stays\n", dir);
}

static struct ctf_trace *open_trace(void)
{
    struct ctf_trace *t;
    if (ctf_trace_open(groups, NULL, &t, NULL))
        abort();
    return t;
}

static void read_some(struct ctf_merge *m, size_t batches)
{
    struct ctf_event ev[64];
    for (size_t i = 0; i < batches && ctf_merge_next(m, ev, 64); i++)
        ;
}

static void make_trace(void)
{
    const struct ctf_writer_options o = {.hostname = "made",
        .tsdl = "event { name = \"e\"; id = 0; stream_id = 0; fields := struct { uint32_t n; }; };\n",
        .freq = 1000000000,
        .packet_bytes = 1 << 14,
        .cpus = CPUS};
    const char *below = getenv("TMPDIR");
    struct ctf_writer *w;
    size_t n;
    snprintf(dir, sizeof dir, "%s/weft-fuzz-counts-%ld", below ? below : P_tmpdir, (long)getpid());
    atexit(remove_trace);
    if (ctf_writer_open(dir, &o, &w, NULL))
        abort();
    for (uint32_t i = 0; i < EVENTS; i++)
        if (ctf_writer_event(w, i % 7 % CPUS, 0, 1000 + 3 * i, &i, sizeof i, NULL))
            abort();
    if (ctf_writer_close(w, NULL) || ctf_discover(dir, &groups, &n, NULL) || n != 1)
        abort();
    struct ctf_source source = {.trace = open_trace()};
    struct ctf_merge *m;
    if (ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, NULL))
        abort();
    ctf_merge_count(m);
    read_some(m, SIZE_MAX);
    ctf_merge_counts(m, INT64_MAX, &right);
    ctf_merge_free(m);
    ctf_trace_close(source.trace);
    if (!right.n_packets || !right.n_marks)
        abort();
}

struct input {
    const uint8_t *data;
    size_t size;
};

static void *copy(const void *items, size_t bytes)
{
    return memcpy(mem_alloc(bytes), items, bytes);
}

static void give(void *arg, struct ctf_counts *out)
{
    const struct input *in = arg;
    size_t packets = right.n_packets * sizeof *right.packets, marks = right.n_marks * sizeof *right.marks;
    *out = (struct ctf_counts){copy(right.packets, packets), right.n_packets, copy(right.marks, marks), right.n_marks};
    for (size_t at = 0; at + 8 <= in->size; at += 8) {
        size_t word = (size_t)(in->data[at] | in->data[at + 1] << 8) % ((packets + marks) / 8);
        int64_t value = 0;
        memcpy((uint8_t *)&value + 2, in->data + at + 2, 6);
        value >>= 16; /* small ones of either sign are as likely as large ones */
        if (word < packets / 8)
            memcpy((uint8_t *)out->packets + word * 8, &value, 8);
        else
            memcpy((uint8_t *)out->marks + word * 8 - packets, &value, 8);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t numbers[] = {0, 1, 511, 600, EVENTS / 2, EVENTS - 1, EVENTS, UINT64_MAX};
    struct input in = {data, size};
    struct ctf_merge *m;
    if (!right.n_packets)
        make_trace();
    struct ctf_source source = {.trace = open_trace()};
    ctf_trace_remember(source.trace, give, &in, NULL);
    for (int i = 0; i < 3; i++) {
        struct ctf_window w = {1000 + 3000 * i, 2000 + 3000 * i};
        if (ctf_merge_new(&source, 1, w, -1, &m, NULL))
            abort();
        read_some(m, SIZE_MAX);
        ctf_merge_free(m);
    }
    ctf_trace_items(source.trace);
    if (ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, NULL))
        abort();
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!ctf_merge_seek(m, numbers[i], NULL))
            read_some(m, 3);
    ctf_merge_free(m);
    ctf_trace_close(source.trace);
    return 0;
}
