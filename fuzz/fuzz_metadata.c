/* SPDX-License-Identifier: MIT */
/* Metadata files: whatever the bytes are, a schema or an error with its line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ctf/metadata.h"

/* Touches everything that a reader would. */
static uint64_t walk(const struct ctf_type *t, unsigned depth)
{
    uint64_t sum = t->size_bits < 0 ? 1 : (uint64_t)t->size_bits;
    if (depth > CTF_DEPTH + 1 || t->align_bits == 0 || (t->align_bits & (t->align_bits - 1)) || t->slot >= CTF_SLOTS)
        abort();
    switch ((enum ctf_kind)t->kind) {
    case CTF_STRUCT:
    case CTF_VARIANT:
        for (uint32_t i = 0; i < t->n; i++)
            sum += strlen(t->u.fields[i].name) + strlen(t->u.fields[i].shown) + walk(t->u.fields[i].type, depth + 1);
        break;
    case CTF_ARRAY:
    case CTF_SEQUENCE: sum += walk(t->u.list.element, depth + 1); break;
    case CTF_ENUM:
        for (uint32_t i = 0; i < t->n; i++)
            sum += strlen(t->u.enumeration.ranges[i].label);
        break;
    default: break;
    }
    if (t->kind == CTF_SEQUENCE &&
        (t->u.list.length->slot != t->u.list.length->target->slot || t->u.list.length->slot == 0))
        abort();
    if (t->kind == CTF_VARIANT) {
        if (t->tag->slot == 0 || t->tag->slot != t->tag->target->slot)
            abort();
        for (uint32_t i = 0; i < t->tag->n_choices; i++)
            if (t->tag->choices[i].option >= t->n)
                abort();
    }
    return sum;
}

static volatile uint64_t touched;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct ctf_metadata m;
    struct err e = {0};
    if (ctf_metadata_parse("fuzz", data, n, NULL, &m, &e) != 0) {
        if (e.code == 0 || strncmp(e.text, "fuzz: ", 6) != 0)
            abort();
        return 0;
    }
    for (size_t i = 0; i < m.schema->n_classes; i++)
        for (int s = 0; s < CTF_SCOPES; s++)
            if (m.schema->classes[i]->scope[s])
                touched += walk(m.schema->classes[i]->scope[s], 0);
    for (size_t i = 0; i < m.schema->n_clock_names; i++)
        if (m.clock_of[i] >= (int32_t)m.n_clocks)
            abort();
    ctf_metadata_fini(&m, NULL);
    return 0;
}
