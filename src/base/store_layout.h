/* SPDX-License-Identifier: MIT */
/* Private to base: the bytes of a store's header and table (docs/formats/container.md). */
#ifndef WEFT_BASE_STORE_LAYOUT_H
#define WEFT_BASE_STORE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(
    __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "sections are used in place: the machine must be little-endian");

enum { CONTAINER_VERSION = 1, ALIGN = 64, MOST_SECTIONS = 1024, NAME_BYTES = 16, KIND_BYTES = 8 };

/* Signature, modelled on PNG's: line ends and the end-of-file character detect a copy that was converted as text. */
static const uint8_t store_signature[8] = {0x9d, 'W', 'E', 'F', 'T', '\r', '\n', 0x1a};

struct store_header {
    uint8_t signature[8];
    uint32_t container_version, content_version;
    char kind[KIND_BYTES];
    uint64_t key;
    uint64_t bytes;     /* size of the store */
    uint32_t n_sections, reserved;
    uint64_t reserved_too;
    uint64_t checksum;  /* checksum of the header before it and of the table of contents */
};
_Static_assert(sizeof(struct store_header) == 64, "layout of the header");

/* Contents of a section. */
enum { STORE_ITEMS, STORE_PART };
struct store_entry {
    char name[NAME_BYTES];
    uint64_t offset, count;
    uint32_t item_bytes, holds;
    uint64_t checksum;  /* checksum of the section with its padding; of a part: the one in its header */
};
_Static_assert(sizeof(struct store_entry) == 48, "layout of a table entry");

static inline uint64_t store_aligned(uint64_t n)
{
    return (n + ALIGN - 1) & ~(uint64_t)(ALIGN - 1);
}

static inline uint64_t store_table_end(size_t n_sections)
{
    return store_aligned(sizeof(struct store_header) + n_sections * sizeof(struct store_entry));
}

static inline uint64_t store_header_checksum(const void *header_and_table, uint64_t end)
{
    const uint8_t *p = header_and_table;
    size_t own = offsetof(struct store_header, checksum);
    return XXH3_64bits_withSeed(
        p + sizeof(struct store_header), end - sizeof(struct store_header), XXH3_64bits(p, own));
}

#endif
