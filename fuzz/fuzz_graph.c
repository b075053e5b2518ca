/* SPDX-License-Identifier: MIT */
/* Graph stores whose sections are anything: opening refuses, or all readers stay inside and come to an end; what the
 * check lets through covers each row from its begin to its end. The input is a list of sections, so that checksums and
 * the table of contents, which fuzz_store looks at, are not in the way: byte 0 the section's number in `sections`,
 * bytes 1-2 its bytes (little endian), the bytes. After a byte 0 of 255, which has no bytes, come the sections of the
 * next chunk, whose row n is the host's row n. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/store.h"
#include "graph/layout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct {
    const char *name;
    size_t item;
} sections[] = {
    {"head", sizeof(struct graph_disk_head)},
    {"rows", sizeof(struct graph_disk_row)},
    {"blocks", sizeof(struct graph_disk_block)},
    {"begins", 4},
    {"kinds", 1},
    {"wakers16", 2},
    {"packets", 4},
    {"details", 2},
    {"where8", 1},
    {"cpu-blocks", sizeof(struct graph_disk_block)},
    {"cpu-begins", 4},
    {"occupants16", 2},
    {"detail-names", 4},
    {"late", sizeof(struct graph_disk_early_wake)},
    {"cpus", sizeof(struct graph_disk_cpu)},
    {"losses", sizeof(struct graph_loss)},
    {"string-at", 4},
    {"text", 1},
    {"wakers32", 4},
    {"where16", 2},
    {"occupants32", 4},
    {"formers", sizeof(struct graph_disk_former)},
    {"totals", 8},
    {"marks", sizeof(struct graph_mark)},
    {"containers", sizeof(struct graph_disk_container)},
};
enum { SECTIONS = sizeof sections / sizeof *sections, ROWS = 1, MOST_CHUNKS = 4, MOST_ROWS = 1 << 16 };

static void read_row(const struct graph *g, int32_t row, bool sound)
{
    struct graph_row r;
    struct graph_cause c;
    const struct graph_container *containers;
    size_t sum = 0;
    graph_row(g, row, &r);
    if (r.container < GRAPH_NO_CONTAINER || r.container >= (int32_t)graph_containers(g, &containers))
        abort();
    sum += graph_container_is(g, r.container, "*");
    sum += strlen(r.name) + graph_row_is(g, row, r.name);
    const int64_t times[] = {INT64_MIN, r.begin, r.begin / 2 + r.end / 2, r.end, INT64_MAX};
    for (size_t i = 0; i < 5; i++)
        for (size_t k = i; k < 5; k++) {
            struct graph_row then;
            graph_row_then(g, row, times[i], times[k], &then);
            sum += strlen(then.name) + graph_row_is(g, row, then.name);
        }
    graph_row_origin(g, row, &c);
    int64_t at = r.begin, totals[GRAPH_STATE_COUNT], total = 0;
    for (uint64_t i = graph_first(g, row); i != GRAPH_NO_INTERVAL; i = graph_next(g, row, i)) {
        struct graph_interval iv;
        graph_interval(g, row, i, &iv);
        if (iv.begin < r.begin || iv.end < iv.begin || iv.end > r.end || iv.state >= GRAPH_STATE_COUNT)
            abort();
        if (sound && (iv.begin != at || iv.end <= iv.begin || graph_find(g, row, iv.end) != i))
            abort();
        graph_interval_cause(g, row, i, &c);
        if (c.row < -1 || (c.row >= 0 && (size_t)c.row >= graph_rows(g)) ||
            (sound && c.kind == GRAPH_CAUSE_WAKEUP && c.row < 0))
            abort();
        sum += iv.detail ? strlen(iv.detail) : 0;
        at = iv.end;
        graph_interval(g, row, graph_find(g, row, iv.begin + 1), &iv);
    }
    graph_row_totals(g, row, r.begin, r.end, totals);
    for (int s = 0; s < GRAPH_STATE_COUNT; s++)
        total += totals[s];
    if (total > r.end - r.begin || (sound && (at != r.end || total != r.end - r.begin)) || sum == SIZE_MAX)
        abort();
}

static void read_all(const struct graph *g, bool sound)
{
    const struct graph_loss *losses;
    for (size_t r = 0; r < graph_rows(g); r++)
        read_row(g, (int32_t)r, sound);
    for (size_t c = 0; c < graph_cpus(g); c++)
        for (int64_t ts = -2; ts <= 2; ts++)
            (void)graph_cpu_occupant(g, (uint32_t)c, ts);
    graph_losses(g, &losses);
    const struct graph_mark *marks;
    size_t n = graph_marks(g, &marks);
    for (size_t i = 0; i < n; i++)
        if (marks[i].row < -1 || (marks[i].row >= 0 && (size_t)marks[i].row >= graph_rows(g)))
            abort();
}

/* Writes the store of the sections up to the next chunk's; returns how many rows it has, or -1. */
static int64_t write_chunk(const char *path, const uint8_t **data, size_t *n)
{
    size_t counts[SECTIONS], n_sections = 0;
    uint8_t *copies[SECTIONS] = {0};
    while (*n >= 3 && **data != 255) {
        unsigned which = (*data)[0] % SECTIONS;
        size_t bytes = (*data)[1] | (size_t)(*data)[2] << 8;
        *data += 3;
        *n -= 3;
        bytes = bytes < *n ? bytes : *n;
        if (!copies[which]) {
            copies[which] = malloc(bytes ? bytes : 1);
            if (!copies[which])
                abort();
            memcpy(copies[which], *data, bytes);
            counts[which] = bytes / sections[which].item;
            n_sections++;
        }
        *data += bytes;
        *n -= bytes;
    }
    size_t next = *n && **data == 255 ? 1 : *n;
    *data += next;
    *n -= next;
    struct err e = {0};
    struct store_writer *w = store_create(path, "graph", GRAPH_VERSION, 0, n_sections);
    for (int i = 0; i < SECTIONS; i++)
        if (copies[i])
            store_add(w, sections[i].name, copies[i], sections[i].item, counts[i]);
    int64_t rows = copies[ROWS] ? (int64_t)counts[ROWS] : 0;
    for (int i = 0; i < SECTIONS; i++)
        free(copies[i]);
    return store_commit(w, &e) == ERR_OK ? rows : -1;
}

/* Of all chunks that are sound by themselves; whether they fit each other is found by opening them together. */
static void read_list(const struct chunk *v, size_t n, bool sound)
{
    struct err e = {0};
    struct graph *g;
    if (graph_open_list(v, n, &g, &e) == ERR_OK) {
        read_all(g, sound);
        graph_close(g);
    } else if (!e.text[0]) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char paths[MOST_CHUNKS][256];
    struct chunk v[MOST_CHUNKS];
    int32_t rows[MOST_ROWS];
    size_t n_chunks = 0;
    bool all_sound = true;
    const char *directory = getenv("TMPDIR"); /* /dev/shm: a hundred times as fast, for a search */
    for (int32_t i = 0; i < MOST_ROWS; i++)
        rows[i] = i;
    while (n && n_chunks < MOST_CHUNKS) {
        char *path = paths[n_chunks];
        snprintf(
            path, sizeof *paths, "%s/weft-fuzz-graph-%d-%zu", directory ? directory : "/tmp", (int)getpid(), n_chunks);
        int64_t n_rows = write_chunk(path, &data, &n);
        if (n_rows < 0 || n_rows > MOST_ROWS) {
            unlink(path);
            break;
        }
        struct err e = {0};
        struct graph *g;
        bool sound = graph_check(path, NULL, &e) == ERR_OK;
        all_sound &= sound;
        if (graph_open(path, &g, &e) == ERR_OK) {
            read_all(g, sound);
            graph_close(g);
        } else if (sound || !e.text[0]) {
            abort();
        }
        /* Each chunk is 10 ns long, with 1 ns missing behind it. */
        v[n_chunks] = (struct chunk){.path = path,
            .begin = 10 * (int64_t)n_chunks,
            .end = 10 * (int64_t)n_chunks + 9,
            .rows = rows,
            .n_rows = (size_t)n_rows};
        n_chunks++;
    }
    if (n_chunks > 1)
        read_list(v, n_chunks, all_sound);
    for (size_t i = 0; i < n_chunks; i++)
        unlink(paths[i]);
    return 0;
}
