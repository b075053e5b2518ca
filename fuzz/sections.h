/* SPDX-License-Identifier: MIT */
/* Targets that put the input into the sections of a container, which is sound then whatever they hold: for each section
 * a 16-bit item count and the items. */
#ifndef WEFT_FUZZ_SECTIONS_H
#define WEFT_FUZZ_SECTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/store.h"

struct section {
    const char *name;
    size_t item;             /* bytes */
};

static inline const uint8_t *take_section(const uint8_t **p, size_t *left, size_t item, size_t *count)
{
    *count = 0;
    if (*left < 2)
        return NULL;
    size_t n = (size_t)((*p)[0] | (*p)[1] << 8);
    *p += 2;
    *left -= 2;
    if (n > *left / item)
        n = *left / item;
    const uint8_t *items = *p;
    *p += n * item;
    *left -= n * item;
    *count = n;
    return items;
}

/* Adds the sections; first_bytes: so many bytes of the first item of the first one become 0x7f, if it has any. */
static inline void add_sections(struct store_writer *w, const struct section *sections, size_t n_sections,
    const uint8_t *data, size_t size, size_t first_bytes)
{
    _Alignas(8) static uint8_t copy[1 << 16];
    size_t used = 0;
    for (size_t i = 0; i < n_sections; i++) {
        size_t n;
        const uint8_t *items = take_section(&data, &size, sections[i].item, &n);
        size_t bytes = n * sections[i].item;
        if (used + bytes + 8 > sizeof copy)
            n = bytes = 0;
        if (bytes)
            memcpy(copy + used, items, bytes);
        if (!i && n)
            memset(copy + used, 0x7f, first_bytes);
        store_add(w, sections[i].name, copy + used, sections[i].item, n);
        used += (bytes + 7) & ~(size_t)7;
    }
}

/* Another way: the input chooses which section comes next (a byte) and how many bytes it has (two); others are empty.
 * At most 16 sections. */
static inline void add_chosen_sections(
    struct store_writer *w, const struct section *sections, size_t n_sections, const uint8_t *data, size_t n)
{
    bool added[16] = {0};
    while (n >= 3) {
        size_t which = data[0] % n_sections, bytes = data[1] | (size_t)data[2] << 8;
        data += 3;
        n -= 3;
        bytes = bytes < n ? bytes : n;
        if (!added[which])
            store_add(w, sections[which].name, data, sections[which].item, bytes / sections[which].item);
        added[which] = true;
        data += bytes;
        n -= bytes;
    }
    for (size_t i = 0; i < n_sections; i++)
        if (!added[i])
            store_add(w, sections[i].name, NULL, sections[i].item, 0);
}

#endif
