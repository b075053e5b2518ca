/* SPDX-License-Identifier: MIT */
/* Private to ctf: parsed and resolved metadata file: a schema that traces share, and the trace's own part. */
#ifndef WEFT_CTF_METADATA_H
#define WEFT_CTF_METADATA_H

#include "ctf/ctf.h"
#include "ctf/schema.h"

struct ctf_metadata {
    struct ctf_schema *schema;                       /* holds one reference */
    bool has_uuid;
    uint8_t uuid[16];
    struct ctf_clock *clocks; size_t n_clocks;
    /* Number of a clock name in the schema -> index in clocks; -1: the trace does not declare it (a warning). A trace
     * without clocks whose times are not mapped gets one of 1 GHz from the epoch, "default". */
    int32_t *clock_of;
    struct ctf_env *env; size_t n_env;
    struct ctf_problem *warnings; size_t n_warnings; /* e.g. metadata tail missing */
    struct arena arena;                              /* everything of this trace; small */
};

/* Parses metadata text or packetised metadata (either byte order). `name`: what messages begin with ("PATH/metadata").
 * A cut tail (last packet or last block incomplete) is a warning when at least one whole stream or event came before
 * it; otherwise an error. `schemas` may be NULL: the schema is then the trace's own. After an error `out` is empty. */
int ctf_metadata_parse(const char *name, const void *data, size_t n, struct ctf_schemas *, struct ctf_metadata *out,
    struct err *e);
void ctf_metadata_fini(struct ctf_metadata *, struct ctf_schemas *);

#endif
