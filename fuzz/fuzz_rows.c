/* SPDX-License-Identifier: MIT */
/* Registries of rows whose sections are anything: opening refuses, or all readers stay inside and come to an end; what
 * the check lets through gives each row by its number and its id. The input is a list of sections, as that of
 * fuzz_graph: byte 0 the section's number in `sections`, bytes 1-2 its bytes (little endian), the bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/store.h"
#include "kernel/kernel.h"
#include "kernel/registry.h"
#include "sections.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { HOST = 7, MOST_ROWS = 4096 };

static const struct section sections[] = {
    {"head", sizeof(struct rows_disk_head)},
    {"rows", sizeof(struct rows_disk_row)},
    {"spells", sizeof(struct rows_disk_spell)},
    {"ids", sizeof(struct rows_disk_id)},
    {"text", 1},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static void read_all(const struct kernel_rows *r, bool sound)
{
    size_t sum = 0;
    int32_t n = kernel_rows_count(r);
    for (int32_t i = -2; i - 2 < n && i < MOST_ROWS; i++) {
        struct kernel_row row;
        if (!kernel_rows_get(r, i, &row))
            continue;
        sum += strlen(row.name);
        int32_t found = kernel_rows_find(r, row.id);
        if (i < 0 || i >= n || found < -1 || found >= n || (sound && found != i))
            abort();
    }
    if (sum == SIZE_MAX)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char directory[256], path[280];
    const char *below = getenv("TMPDIR");
    snprintf(directory, sizeof directory, "%s/weft-fuzz-rows-%d", below ? below : "/tmp", (int)getpid());
    snprintf(path, sizeof path, "%s/rows.1-1", directory);
    mkdir(directory, 0700);
    struct err e = {0};
    struct store_writer *w = store_create(path, "rows", ROWS_VERSION, HOST, SECTIONS);
    add_chosen_sections(w, sections, SECTIONS, data, n);
    if (store_commit(w, &e) == ERR_OK) {
        struct kernel_rows *r;
        bool sound = kernel_rows_check(directory, HOST, &e) == ERR_OK;
        if (kernel_rows_open(directory, HOST, &r, &e) == ERR_OK) {
            read_all(r, sound);
            kernel_rows_close(r);
        } else if (sound || !e.text[0]) {
            abort();
        }
    }
    unlink(path);
    rmdir(directory);
    return 0;
}
