/* SPDX-License-Identifier: MIT */
/* Store files: as they come, and with the checksums put right so that what lies behind them is reached. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <stdio.h>

#include <xxhash.h>

#include "base/store.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { HEADER = 64, ENTRY = 48, ALIGN = 64, PART = 1 };

static uint64_t u64_at(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static bool is_part(const uint8_t *entry)
{
    uint32_t holds;
    memcpy(&holds, entry + 36, sizeof holds);
    return holds == PART;
}

/* docs/formats/container.md: size at 32, sections at 40, checksum at 56; of an entry: offset at 16, count at 24, item
 * size at 32, what it holds at 36, checksum at 40. */
static void repair(uint8_t *p, size_t n, bool within)
{
    if (n < HEADER)
        return;
    static const uint8_t signature[8] = {0x9d, 'W', 'E', 'F', 'T', '\r', '\n', 0x1a};
    memcpy(p, signature, sizeof signature);
    uint64_t size = n;
    memcpy(p + 32, &size, sizeof size);
    p[8] = 1;
    memset(p + 9, 0, 3);
    memset(p + 41, 0, 3);
    size_t sections = p[40], end = (HEADER + sections * ENTRY + ALIGN - 1) / ALIGN * ALIGN;
    if (end > n)
        return;
    for (size_t i = 0; i < sections; i++) {
        uint8_t *entry = p + HEADER + i * ENTRY;
        uint32_t item;
        memcpy(&item, entry + 32, sizeof item);
        uint64_t offset = u64_at(entry + 16), bytes;
        if (__builtin_mul_overflow(u64_at(entry + 24), (uint64_t)item, &bytes) || offset > n || bytes > n - offset)
            continue;
        bytes = (bytes + ALIGN - 1) / ALIGN * ALIGN;
        if (bytes > n - offset)
            continue;
        uint64_t sum = XXH3_64bits(p + offset, bytes);
        if (is_part(entry) && bytes >= HEADER && offset >= end && !within) {
            repair(p + offset, bytes, true);
            sum = u64_at(p + offset + 56);
        }
        memcpy(entry + 40, &sum, sizeof sum);
    }
    uint64_t sum = XXH3_64bits_withSeed(p + HEADER, end - HEADER, XXH3_64bits(p, 56));
    memcpy(p + 56, &sum, sizeof sum);
}

/* Whatever opens can be read to its last byte. */
static void read_all(const struct store *s, const uint8_t *p, size_t n)
{
    volatile uint8_t sum = 0;
    for (size_t i = 0; HEADER + (i + 1) * ENTRY <= n && i < p[40]; i++) {
        char name[17] = "";
        memcpy(name, p + HEADER + i * ENTRY, 16);
        uint32_t item;
        memcpy(&item, p + HEADER + i * ENTRY + 32, sizeof item);
        size_t count;
        const uint8_t *v = store_section(s, name, item, &count);
        for (size_t k = 0; k < count * item; k++)
            sum = (uint8_t)(sum + v[k]);
    }
}

/* Reads the parts that can be opened. Is one damaged? */
static bool try_parts(const struct store *s, const char *path, const uint8_t *p)
{
    bool damaged = false;
    for (size_t i = 0; i < p[40]; i++) {
        const uint8_t *entry = p + HEADER + i * ENTRY, *part = p + u64_at(entry + 16);
        struct store *opened;
        struct err e = {0};
        uint32_t version = 0;
        if (!is_part(entry))
            continue;
        const char *kind = (const char *)entry;
        bool bad = store_check_part(s, path, kind, &e) != 0;
        if (u64_at(entry + 24) >= HEADER)
            memcpy(&version, part + 12, sizeof version);
        if (!store_open_from(s, path, kind, version, &opened, &e)) {
            if (bad)
                abort();
            store_close(opened);
        }
        if (!store_open_unread_from(s, path, kind, version, &opened, &e)) {
            read_all(opened, part, u64_at(entry + 24));
            store_close(opened);
        }
        damaged |= bad;
    }
    return damaged;
}

static void try_it(const uint8_t *p, size_t n)
{
    int fd = memfd_create("store", MFD_CLOEXEC);
    if (fd < 0 || write(fd, p, n) != (ssize_t)n)
        abort();
    char path[64], kind[9] = "graph";
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    uint32_t version = 1;
    if (n >= HEADER) {
        memcpy(kind, p + 16, 8);
        memcpy(&version, p + 12, sizeof version);
    }
    struct store *s;
    struct err e = {0};
    int code = store_check(path, &e);
    if (code && !e.text[0])
        abort();
    if (store_open(path, kind, version, NULL, &s, &e) == ERR_OK) {
        if (try_parts(s, path, p) != (code != 0))
            abort(); /* they must agree */
        read_all(s, p, n);
        store_close(s);
    }
    close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n ? n : 1);
    if (!copy)
        return 0;
    memcpy(copy, data, n);
    try_it(copy, n);
    repair(copy, n, false);
    try_it(copy, n);
    free(copy);
    return 0;
}
