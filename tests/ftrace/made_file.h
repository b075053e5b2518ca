/* SPDX-License-Identifier: MIT */
/* Recordings of version 7, big endian, whose options a test chooses: the formats and pages are those of the fuzz
 * corpus. */
#ifndef WEFT_TESTS_FTRACE_MADE_FILE_H
#define WEFT_TESTS_FTRACE_MADE_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "ctf/ctf.h"

/* Places in the corpus' file: sections, and the pages of CPU 0 (two of 256 bytes). */
enum { MADE_HEADERS = 0x23, MADE_FORMATS = 0x309, MADE_BUFFER = 0x730, MADE_PAGES = 0x800, MADE_PAGE = 256 };

struct made {
    uint8_t v[1 << 20];
    size_t n, section;
    uint32_t page; /* bytes; at first MADE_PAGE */
};
/* Begins a file with what the corpus' one has before its options, and the options section with the formats. */
void made_begin(struct made *);
void made_number(struct made *, uint64_t v, unsigned bytes);
void made_put(struct made *, const void *, size_t n);
/* An option with a number of 8 bytes. */
void made_option(struct made *, unsigned id, uint64_t v);
/* An option with the text. */
void made_option_text(struct made *, unsigned id, const char *text);
/* An option with a buffer, whose CPUs are given by threes: number, place, bytes. */
void made_buffer(struct made *, const char *name, const uint64_t *cpus, size_t n_cpus);
/* Ends the options section. next: place of the next one, or 0. */
void made_end(struct made *, uint64_t next);
/* Begins another section at the end of the file, with all up to made_end in it. Returns its place. */
uint64_t made_section(struct made *, unsigned id);
/* The path of a file with these bytes, until the next call. */
const char *made_path(const struct made *);
/* Whether the trace has such a problem or remark. */
bool made_tells(const struct ctf_trace *, const char *part);

#endif
