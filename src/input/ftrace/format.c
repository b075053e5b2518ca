/* SPDX-License-Identifier: MIT */
/* Formats of events, as the kernel tells them in text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ftrace/file.h"

enum { MOST_FIELDS = 256, MOST_NAME = 128, MOST_RECORD = 1 << 16 };

static bool is_word(char c)
{
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The number behind `key` in the line. */
static bool attribute(const char *line, size_t n, const char *key, uint32_t *out)
{
    const char *at = memmem(line, n, key, strlen(key)), *end = line + n;
    uint64_t v = 0;
    if (!at)
        return false;
    for (at += strlen(key); at < end && *at >= '0' && *at <= '9' && v < MOST_RECORD * 16; at++)
        v = v * 10 + (uint64_t)(*at - '0');
    *out = (uint32_t)v;
    return true;
}

static bool has_word(const char *type, const char *word)
{
    size_t n = strlen(word);
    for (const char *at = type; (at = strstr(at, word)); at += n)
        if ((at == type || !is_word(at[-1])) && !is_word(at[n]))
            return true;
    return false;
}

/* Bytes of one value of a C type; 0: unknown. */
static unsigned bytes_of(const char *type, unsigned long_bytes)
{
    static const struct {
        const char *word;
        unsigned bytes;
    } words[] = {{"char", 1}, {"u8", 1}, {"s8", 1}, {"__u8", 1}, {"__s8", 1}, {"uint8_t", 1}, {"int8_t", 1},
        {"bool", 1}, {"short", 2}, {"u16", 2}, {"s16", 2}, {"__u16", 2}, {"__be16", 2}, {"__le16", 2}, {"uint16_t", 2},
        {"u64", 8}, {"s64", 8}, {"__u64", 8}, {"__s64", 8}, {"uint64_t", 8}, {"int64_t", 8}, {"u32", 4}, {"s32", 4},
        {"__u32", 4}, {"__s32", 4}, {"__be32", 4}, {"__le32", 4}, {"uint32_t", 4}, {"int32_t", 4}};
    if (strchr(type, '*'))
        return long_bytes;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (has_word(type, words[i].word))
            return words[i].bytes;
    if (strstr(type, "long long"))
        return 8;
    if (has_word(type, "long"))
        return long_bytes;
    return has_word(type, "int") || has_word(type, "unsigned") ? 4 : 0;
}

static bool is_size(uint32_t n)
{
    return n == 1 || n == 2 || n == 4 || n == 8;
}

/* Declared number of elements of an array; 0: it is no number. */
static uint32_t count_of(const char *brackets)
{
    uint64_t n = 1;
    for (const char *at = brackets; (at = strchr(at, '[')); at++) {
        uint64_t k = strtoul(at + 1, NULL, 10);
        n = k && k < MOST_RECORD && n < MOST_RECORD ? n * k : 0;
    }
    return n < MOST_RECORD ? (uint32_t)n : 0;
}

static void set_kind(struct ftrace_field *f, const char *type, const char *brackets, unsigned long_bytes)
{
    bool in_list = strstr(type, "__data_loc") || strstr(type, "__rel_loc");
    bool is_array = *brackets || in_list || f->size == 0;
    unsigned known = bytes_of(type, long_bytes);
    uint32_t n = count_of(brackets);
    f->is_pointer = strchr(type, '*') != NULL;
    f->relative = strstr(type, "__rel_loc") != NULL;
    f->is_text = is_array && has_word(type, "char") && !has_word(type, "unsigned") && !f->is_pointer;
    f->element = (uint8_t)(f->is_text ? 1 : is_size(known) ? known : 1);
    f->kind = in_list ? FTRACE_LIST : f->size == 0 ? FTRACE_TAIL : is_array ? FTRACE_ARRAY : FTRACE_INT;
    if (f->kind == FTRACE_ARRAY && !f->is_text && n && f->size % n == 0 && is_size(f->size / n))
        f->element = (uint8_t)(f->size / n);
    if (f->kind == FTRACE_INT && !is_size(f->size)) { /* a struct: its bytes */
        f->kind = FTRACE_ARRAY;
        f->element = 1;
        f->is_signed = false;
    }
    if (f->kind == FTRACE_INT)
        f->element = (uint8_t)f->size;
    if (f->kind == FTRACE_ARRAY && f->size % f->element)
        f->element = 1;
}

bool ftrace_field_parse(struct arena *a, const char *line, size_t n, unsigned long_bytes, struct ftrace_field *out)
{
    const char *at = memmem(line, n, "field:", 6), *end = at ? memchr(at, ';', n - (size_t)(at - line)) : NULL;
    uint32_t is_signed = 0;
    if (!end || !attribute(end, n - (size_t)(end - line), "offset:", &out->offset) ||
        !attribute(end, n - (size_t)(end - line), "size:", &out->size) || out->offset > MOST_RECORD ||
        out->size > MOST_RECORD)
        return false;
    attribute(end, n - (size_t)(end - line), "signed:", &is_signed);
    out->is_signed = is_signed != 0;
    at += 6;
    const char *name_end = end;
    while (name_end > at && name_end[-1] == ']')
        while (name_end > at && *--name_end != '[')
            ;
    const char *name = name_end;
    while (name > at && is_word(name[-1]))
        name--;
    if (name == name_end || name_end - name > MOST_NAME)
        return false;
    out->name = arena_strndup(a, name, (size_t)(name_end - name));
    set_kind(out, arena_strndup(a, at, (size_t)(name - at)), arena_strndup(a, name_end, (size_t)(end - name_end)),
        long_bytes);
    if (out->kind == FTRACE_LIST && out->size != 4)
        return false;
    return true;
}

static bool is_common(const struct ftrace_field *f)
{
    return !strncmp(f->name, "common_", 7) && f->kind == FTRACE_INT;
}

/* Text behind `key` at the begin of a line, up to its end. */
static const char *value_of(const char *line, size_t n, const char *key, size_t *value_n)
{
    size_t k = strlen(key);
    if (n < k || memcmp(line, key, k) != 0)
        return NULL;
    while (k < n && (line[k] == ' ' || line[k] == '\t'))
        k++;
    *value_n = n - k;
    return line + k;
}

static const char *name_of(struct arena *a, const char *s, size_t n)
{
    char *name = arena_strndup(a, s, n < MOST_NAME ? n : MOST_NAME);
    for (char *p = name; *p; p++)
        if (*p < ' ' || *p > '~' || *p == '"' || *p == '\\')
            *p = '?';
    return *name ? name : NULL;
}

bool ftrace_event_parse(struct arena *a, const char *text, size_t n, unsigned long_bytes, struct ftrace_event *out)
{
    const char *end = text + n;
    bool has_id = false;
    *out = (struct ftrace_event){0};
    for (const char *line = text; line < end;) {
        const char *next = memchr(line, '\n', (size_t)(end - line)), *value;
        size_t length = (size_t)((next ? next : end) - line), value_n;
        struct ftrace_field f = {0};
        if ((value = value_of(line, length, "name:", &value_n)))
            out->name = name_of(a, value, value_n);
        else if ((value = value_of(line, length, "ID:", &value_n)))
            has_id = attribute(line, length, "ID: ", &out->id) || attribute(line, length, "ID:", &out->id);
        else if (value_of(line, length, "print fmt:", &value_n))
            break;
        else if (ftrace_field_parse(a, line, length, long_bytes, &f) && out->own.n + out->common.n < MOST_FIELDS) {
            if (is_common(&f))
                vec_push(&out->common, f);
            else
                vec_push(&out->own, f);
        }
        line = next ? next + 1 : end;
    }
    if (out->name && has_id && out->id < 1 << 16)
        return true;
    ftrace_event_fini(out);
    return false;
}

void ftrace_event_fini(struct ftrace_event *ev)
{
    vec_free(&ev->common);
    vec_free(&ev->own);
}
