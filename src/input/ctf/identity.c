/* SPDX-License-Identifier: MIT */
/* Identity of a trace, read from the beginning of its metadata before they are parsed. */
#include <stdlib.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/text.h"
#include "ctf/ctf2.h"
#include "ctf/discover.h"

enum { HEAD_BYTES = 1 << 16 };

/* Returns the beginning of the metadata as text: packets of a packetised file (either byte order) without their
 * headers. NUL-terminated; free() it. */
static char *metadata_head(const char *dir, bool *lacking)
{
    char *path = mem_printf("%s/metadata", dir), *text = NULL;
    struct file_map map;
    int rc = file_map_open(path, &map, NULL);
    for (unsigned tried = 0; rc == ERR_NOMEM && mem_again(&tried);)
        rc = file_map_open(path, &map, NULL);
    *lacking |= rc == ERR_NOMEM;
    if (!rc) {
        size_t n = map.size < HEAD_BYTES ? map.size : HEAD_BYTES, at = 0, out = 0;
        text = mem_zalloc(n + 1);
        const uint8_t le[4] = {0x57, 0x1d, 0xd1, 0x75}, be[4] = {0x75, 0xd1, 0x1d, 0x57};
        while (n >= 37 && at <= n - 37 && (!memcmp(map.data + at, le, 4) || !memcmp(map.data + at, be, 4))) {
            bool big = map.data[at] == be[0];
            uint32_t content = 0, packet = 0;
            for (int i = 0; i < 4; i++) {
                content = content << 8 | map.data[at + 24 + (size_t)(big ? i : 3 - i)];
                packet = packet << 8 | map.data[at + 28 + (size_t)(big ? i : 3 - i)];
            }
            size_t text_bytes = content / 8 > 37 ? content / 8 - 37 : 0;
            if (text_bytes > n - at - 37)
                text_bytes = n - at - 37;
            if (text_bytes > n - out) /* contents that reach into the next packet are read twice */
                text_bytes = n - out;
            memcpy(text + out, map.data + at + 37, text_bytes);
            out += text_bytes;
            if (packet / 8 < 37 || packet / 8 > n - at)
                break;
            at += packet / 8;
        }
        if (out == 0 && n)
            memcpy(text, map.data, n);
        file_map_close(&map);
    }
    free(path);
    return text;
}

/* Appends the value after `name =` (up to ; or the line's end) inside the block, if there is one. */
static void add_value(struct text *key, const char *block, const char *end, const char *name)
{
    size_t n = strlen(name);
    for (const char *p = block; (p = strstr(p, name)) && p < end; p += n) {
        const char *v = p + n;
        bool whole = p > block && !strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", p[-1]);
        while (*v == ' ' || *v == '\t')
            v++;
        if (!whole || *v != '=')
            continue;
        v++;
        while (*v == ' ' || *v == '\t')
            v++;
        text_puts(key, name);
        text_putc(key, '=');
        text_put(key, v, strcspn(v, ";\r\n"));
        text_putc(key, '\n');
        return;
    }
}

static void add_block(struct text *key, const char *meta, const char *block, const char *const *names)
{
    for (const char *p = meta; (p = strstr(p, block)); p += strlen(block)) {
        const char *open = p + strlen(block);
        bool at_start = p == meta || p[-1] == '\n' || p[-1] == ' ' || p[-1] == ';' || p[-1] == '}' || p[-1] == '\t' ||
            p[-1] == '\r';
        while (*open == ' ' || *open == '\t' || *open == '\n' || *open == '\r')
            open++;
        if (!at_start || *open != '{')
            continue;
        const char *end = strstr(open, "};");
        if (!end)
            end = open + strlen(open);
        for (; *names; names++)
            add_value(key, open, end, *names);
        return;
    }
}

char *ctf_identity(const char *dir, bool *lacking)
{
    static const char *const of_trace[] = {"uuid", NULL};
    static const char *const of_env[] = {"hostname", "domain", "procname", "vpid", NULL};
    char *meta = metadata_head(dir, lacking);
    struct text key = {.fd = -1};
    char *out = NULL;
    if (!meta)
        return NULL;
    if (*meta == '\x1e' || *meta == '{')
        ctf2_identity(meta, strlen(meta), &key);
    else
        add_block(&key, meta, "trace", of_trace);
    if (key.n) {
        if (*meta != '\x1e' && *meta != '{')
            add_block(&key, meta, "env", of_env);
        out = mem_strdup(text_cstr(&key));
    }
    text_fini(&key);
    free(meta);
    return out;
}
