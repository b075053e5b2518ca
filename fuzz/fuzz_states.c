/* SPDX-License-Identifier: MIT */
/* Stores of states whose sections are anything: opening refuses, or all readers stay inside and come to an end. The
 * input is a list of sections, so that checksums and the table of contents, which fuzz_store looks at, are not in the
 * way: byte 0 the section's number in `sections`, bytes 1-3 its bytes (little endian), the bytes. states_inputs.py
 * makes such inputs from stores. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../tests/state/read_all.h"
#include "base/store.h"
#include "state/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct {
    const char *name;
    size_t item;
} sections[] = {
    {"totals", sizeof(struct state_disk_totals)},
    {"text", 1},
    {"names", 4},
    {"codes", sizeof(struct state_disk_code)},
    {"rows", sizeof(struct state_disk_row)},
    {"cells", sizeof(struct state_disk_cell)},
    {"blocks", 4},
    {"sums", 8},
    {"grid", 4},
    {"tables", sizeof(struct state_disk_table)},
    {"heads", sizeof(struct state_disk_head)},
    {"far", 8},
    {"late", sizeof(struct state_disk_aside)},
    {"tiles", 8},
    {"figures", sizeof(struct state_disk_figures)},
    {"losses", sizeof(struct state_disk_loss)},
    {"bytes", 1},
    {"files", sizeof(struct state_disk_file)},
    {"through", 4},
    {"open", sizeof(struct state_disk_open)},
    {"firsts", sizeof(struct state_disk_first)},
};
enum { SECTIONS = sizeof sections / sizeof *sections, PREFIX = 4 };

static void try_store(const char *path)
{
    struct err e = {0};
    struct state_store *s;
    int checked = state_check(path, NULL, &e);
    if (!state_open(path, &s, &e)) {
        read_all_states(s);
        state_close(s);
    } else if (!checked || !e.text[0]) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char path[256];
    const char *directory = getenv("TMPDIR"); /* /dev/shm: a hundred times as fast, for a search */
    struct err e = {0};
    uint8_t *copies[SECTIONS] = {0};
    size_t counts[SECTIONS], n_sections = 0;
    snprintf(path, sizeof path, "%s/weft-fuzz-states-%d", directory ? directory : "/tmp", (int)getpid());
    while (n >= PREFIX) {
        unsigned which = data[0] % SECTIONS;
        size_t bytes = data[1] | (size_t)data[2] << 8 | (size_t)data[3] << 16;
        data += PREFIX;
        n -= PREFIX;
        bytes = bytes < n ? bytes : n;
        if (!copies[which]) {
            copies[which] = malloc(bytes + 1);
            if (!copies[which])
                abort();
            memcpy(copies[which], data, bytes);
            counts[which] = bytes / sections[which].item;
            n_sections++;
        }
        data += bytes;
        n -= bytes;
    }
    struct store_writer *w = store_create(path, "states", STATE_VERSION, 0, n_sections);
    for (int i = 0; i < SECTIONS; i++)
        if (copies[i])
            store_add(w, sections[i].name, copies[i], sections[i].item, counts[i]);
    if (!store_commit(w, &e))
        try_store(path);
    for (int i = 0; i < SECTIONS; i++)
        free(copies[i]);
    unlink(path);
    return 0;
}
