/* SPDX-License-Identifier: MIT */
/* Private to ctf: state shared by the formats for a set of sources. */
#ifndef WEFT_CTF_PRINT_LINE_H
#define WEFT_CTF_PRINT_LINE_H

#include "base/map.h"
#include "ctf/print.h"

struct print_schema {        /* plans of the classes that sources with the same declarations share */
    const struct ctf_event_class *const *classes;
    size_t n;
    struct print_plan **plans; /* plans by class index; NULL until the first event of the class */
    struct map clock_streams;  /* ids of streams with events whose own fields are mapped to a clock */
    bool clocks_known;
};

struct print_source {
    const struct ctf_trace *trace;
    size_t schema;
    char *host;              /* NULL: not set */
    char *prefix;            /* text: "host:process:(pid) "; JSON: from the key "host" up to its value */
    size_t prefix_n;
};

struct ctf_print {
    enum ctf_print_format format;
    VEC(struct print_schema) schemas;
    struct print_source *sources;
    size_t n_sources;
    struct text scratch;
    int64_t second;          /* ns; second of the text in `seconds` */
    char seconds[32];        /* "[1795225075." */
    size_t seconds_n;
};

void print_csv_header(struct text *out);
void print_csv_event(struct ctf_print *, const struct print_source *, const struct print_plan *,
    const struct ctf_event *, struct text *out);
void print_csv_loss(const struct print_source *, const struct ctf_event *, struct text *out);

#endif
