/* SPDX-License-Identifier: MIT */
/* Stores of call stacks whose container is sound but whose content is not: what stack_open lets through must be safe to
 * read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/chunks.h"
#include "sections.h"
#include "stack/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* States follow each other and hold the times they were asked for. */
static void read_row(const struct stack_store *s, size_t row)
{
    enum { SAMPLES = 7 };
    const struct stack_totals *t = stack_totals(s);
    int64_t times[SAMPLES] = {
        INT64_MIN, t->begin, t->begin / 2 + t->end / 2, t->end - (t->end > INT64_MIN), t->end, t->end, INT64_MAX};
    struct stack_call c, found[SAMPLES];
    for (size_t i = 0; i < stack_calls(s, row); i++) {
        stack_call(s, row, i, &c);
        if (c.begin > c.end || c.begin < t->begin || c.end > t->end)
            abort();
        stack_find(s, row, c.begin);
    }
    for (int i = 1; i < SAMPLES; i++)
        if (times[i] < times[i - 1])
            times[i] = times[i - 1];
    size_t n = stack_sample(s, row, times, SAMPLES, found);
    for (size_t i = 1; i < n; i++)
        if (found[i].begin < found[i - 1].end)
            abort();
}

static volatile size_t sink; /* so that nothing that is read is left out */

/* Counts agree with what a look at every call finds; figures may be wrong, but must be of calls that there are. */
static void read_figures(const struct stack_store *s, size_t row)
{
    size_t n = stack_calls(s, row), whole = 0;
    uint64_t counts[3] = {0};
    struct stack_figures *of = calloc(stack_functions(s) + 1, sizeof *of);
    struct stack_call c;
    for (size_t i = 0; i < n; i++) {
        if (stack_whole_before(s, row, i) != whole)
            abort();
        stack_call(s, row, i, &c);
        if (c.how == STACK_WHOLE && stack_whole_at(s, row, whole++) != i)
            abort();
    }
    stack_figures(s, row, 0, n, of);
    stack_figures(s, row, n / 2, n, of);
    stack_histogram(s, row, 0, n, 5, 3, counts);
    for (size_t i = 0; i < stack_functions(s); i++)
        sink += of[i].calls.n + (size_t)of[i].self;
    free(of);
}

static void read_all(const struct stack_store *s)
{
    size_t sum = 0;
    for (size_t i = 0; i < stack_processes(s); i++) {
        struct stack_process p;
        stack_process(s, i, &p);
        sum += strlen(p.name) + p.threads;
        if (p.first_thread + p.threads > stack_threads(s))
            abort();
    }
    for (size_t i = 0; i < stack_threads(s); i++) {
        struct stack_thread t;
        int64_t times[2] = {INT64_MIN, INT64_MAX}, bytes[2];
        stack_thread(s, i, &t);
        sum += strlen(t.name) + strlen(stack_thread_name(s, i, t.begin));
        stack_memory(s, i, times, 2, bytes);
        for (size_t k = 0; k < t.rows; k++) {
            read_row(s, t.first_row + k);
            read_figures(s, t.first_row + k);
        }
    }
    for (size_t i = 0; i < stack_functions(s); i++) {
        struct stack_function f;
        stack_function(s, i, &f);
        sum += strlen(f.name);
    }
    for (size_t i = 0; i < stack_losses(s); i++) {
        struct stack_loss l;
        stack_loss(s, i, &l);
        sum += l.count;
    }
    sink = sum;
}

/* What is sound alone may not fit behind itself. */
static void read_lists(const char *path)
{
    const struct chunk chunks[] = {{path, 0, 1, NULL, 0}, {path, 1, 2, NULL, 0}, {path, 4, 5, NULL, 0}};
    struct stack_store *s;
    struct err e = {0};
    if (!stack_open_list(chunks, 3, &s, &e)) {
        read_all(s);
        stack_close(s);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct section sections[] = {{"totals", sizeof(struct stack_totals)}, {"text", 1}, {"names", 4},
        {"processes", sizeof(struct stack_disk_process)}, {"threads", sizeof(struct stack_disk_thread)},
        {"renames", sizeof(struct stack_disk_rename)}, {"rows", sizeof(struct stack_disk_row)},
        {"functions", sizeof(struct stack_disk_function)}, {"calls", sizeof(struct stack_disk_call)},
        {"longs", sizeof(struct stack_disk_long)}, {"memory", sizeof(struct stack_disk_value)},
        {"losses", sizeof(struct stack_disk_loss)}, {"tiles", 8}, {"figures", sizeof(struct stack_disk_figures)},
        {"whole", 8}, {"streams", sizeof(struct stack_disk_stream)}, {"libraries", sizeof(struct stack_disk_library)}};
    enum { SECTIONS = sizeof sections / sizeof *sections };
    char path[256];
    struct err e = {0};
    struct stack_store *s;
    const char *directory = getenv("TMPDIR"); /* /dev/shm: a hundred times as fast, for a search */
    snprintf(path, sizeof path, "%s/weft-fuzz-stacks-%d", directory ? directory : "/tmp", (int)getpid());
    struct store_writer *w = store_create(path, "stacks", STACK_VERSION, 1, SECTIONS);
    add_sections(w, sections, SECTIONS, data, size, 0);
    if (!store_commit(w, &e) && !stack_open(path, &s, &e)) {
        read_all(s);
        stack_close(s);
        read_lists(path);
    }
    unlink(path);
    return 0;
}
