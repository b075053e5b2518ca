/* SPDX-License-Identifier: MIT */
#include "tsp/uuid.h"

#include <nettle/md5.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "base/map.h"
#include "base/time.h"

static void write_uuid(uint8_t b[16], int version, char out[UUID_TEXT])
{
    b[6] = (uint8_t)((b[6] & 0x0f) | version << 4);
    b[8] = (uint8_t)((b[8] & 0x3f) | 0x80);
    snprintf(out, UUID_TEXT, "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
        b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
}

void tsp_uuid_of_name(const char *name, char out[UUID_TEXT])
{
    struct md5_ctx md5;
    uint8_t digest[16];
    md5_init(&md5);
    md5_update(&md5, strlen(name), (const uint8_t *)name);
    md5_digest(&md5, sizeof digest, digest);
    write_uuid(digest, 3, out);
}

void tsp_uuid_random(char out[UUID_TEXT])
{
    uint8_t b[16];
    if (getrandom(b, sizeof b, 0) != sizeof b) { /* fails only early at boot */
        uint64_t v[2] = {map_mix((uint64_t)time_now_ns()), map_mix((uint64_t)time_monotonic_ns() ^ 0x9e3779b97f4a7c15)};
        memcpy(b, v, sizeof b);
    }
    write_uuid(b, 4, out);
}

bool tsp_uuid_valid(const char *s)
{
    for (int i = 0; i < UUID_TEXT - 1; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? s[i] != '-' : !strchr("0123456789abcdefABCDEF", s[i]) || !s[i])
            return false;
    }
    return s[UUID_TEXT - 1] == '\0';
}
