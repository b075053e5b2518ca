/* SPDX-License-Identifier: MIT */
/* Catalogues whose sections are anything: loading refuses, or whoever opens a trace by what they say stays inside its
 * files and comes to an end. The input is a list of sections, as that of fuzz_graph: byte 0 the section's number in
 * `sections`, bytes 1-2 its bytes (little endian), the bytes. What is known of files is made to be of one that is
 * there, whenever its size is right: else nothing would be read. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/store.h"
#include "ctf/known.h"
#include "sections.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { VERSION = 1, FILE_BYTES = 4096, MOST_DIRS = 64 };

static const struct section sections[] = {
    {"settled", 8},
    {"nodes", 24},
    {"dirs", sizeof(struct ctf_known_dir)},
    {"files", sizeof(struct ctf_known_file)},
    {"runs", sizeof(struct ctf_known_run)},
    {"packets", sizeof(struct ctf_known_packet)},
    {"texts", 16},
    {"metadata", 1},
    {"names", 1},
};
enum { SECTIONS = sizeof sections / sizeof *sections };

static void write_sections(const char *path, const uint8_t *data, size_t n)
{
    struct store_writer *w = store_create(path, "catalog", VERSION, CTF_RULES_VERSION, SECTIONS);
    add_chosen_sections(w, sections, SECTIONS, data, n);
    store_commit(w, NULL);
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(bytes, 1, n, f) != n)
        abort();
    fclose(f);
}

/* As what the packets of a trace with that metadata are found: asked of one that has no packets. */
static uint64_t declared(const struct ctf_known_text *text, char *directory)
{
    char path[300];
    struct ctf_catalogue *c = ctf_catalogue_new();
    struct ctf_known *k = ctf_known_new(c);
    struct ctf_group group = {.dirs = &directory, .n = 1, .known = &k};
    struct ctf_trace *t;
    snprintf(path, sizeof path, "%s/metadata", directory);
    write_file(path, text->v, text->n);
    if (!ctf_trace_open(&group, NULL, &t, NULL))
        ctf_trace_close(t);
    unlink(path);
    uint64_t hash = k->dir.declared;
    ctf_catalogue_free(c);
    return hash;
}

/* The file `c0` of the directory is what is known of it. */
static void make_true(struct ctf_known *k, const char *directory, uint64_t hash)
{
    char path[300];
    struct stat st;
    k->dir.declared = hash;
    snprintf(path, sizeof path, "%s/c0", directory);
    for (uint32_t i = 0; i < k->dir.n_files && !stat(path, &st); i++) {
        struct ctf_known_file *f = (struct ctf_known_file *)(uintptr_t)&k->files[i];
        if (f->size != FILE_BYTES || strcmp(k->names + f->name, "c0") != 0)
            continue;
        f->inode = st.st_ino;
        f->identity = ctf_file_identity("c0", &st);
    }
}

static void read_all(struct ctf_trace *t)
{
    struct ctf_source source = {.trace = t};
    struct ctf_merge *m;
    struct ctf_event ev[64];
    if (ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, -1, &m, NULL))
        return;
    while (ctf_merge_next(m, ev, 64))
        ;
    ctf_merge_free(m);
}

static void open_by(struct ctf_catalogue *c, char *directory)
{
    char *dirs[MOST_DIRS];
    struct ctf_known *known[MOST_DIRS];
    size_t n = c->n_loaded < MOST_DIRS ? c->n_loaded : MOST_DIRS;
    struct ctf_group group = {.dirs = dirs, .n = n, .known = known};
    struct ctf_trace *t;
    uint64_t hash = n ? declared(c->loaded[0].text, directory) : 0;
    uint8_t bytes[FILE_BYTES];
    char file[300];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 37);
    snprintf(file, sizeof file, "%s/c0", directory);
    write_file(file, bytes, sizeof bytes);
    for (size_t i = 0; i < n; i++) {
        dirs[i] = directory;
        known[i] = &c->loaded[i];
        make_true(known[i], directory, hash);
    }
    if (!ctf_trace_open(&group, NULL, &t, NULL)) {
        read_all(t);
        ctf_trace_close(t);
    }
    unlink(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char directory[256], path[280];
    const char *below = getenv("TMPDIR");
    struct ctf_catalogue *c;
    struct err e = {0};
    snprintf(directory, sizeof directory, "%s/weft-fuzz-catalogue-%d", below ? below : "/tmp", (int)getpid());
    snprintf(path, sizeof path, "%s/catalogue", directory);
    mkdir(directory, 0700);
    write_sections(path, data, n);
    if (!ctf_catalogue_load(path, &c, &e)) {
        open_by(c, directory);
        ctf_catalogue_free(c);
    } else if (!e.text[0]) {
        abort();
    }
    unlink(path);
    rmdir(directory);
    return 0;
}
