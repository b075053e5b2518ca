/* SPDX-License-Identifier: MIT */
#include "base/carry.h"

#include <xxhash.h>

#include "base/order.h"

void carry_init(struct carry *c)
{
    *c = (struct carry){.way = CARRY_MARK, .bytes = {.fd = -1}};
}

void carry_save(struct carry *c, const int32_t *rows, size_t n)
{
    c->way = CARRY_SAVE;
    c->bytes.n = c->numbers.n = 0;
    c->n_rows = n;
    for (size_t i = 0; i < n; i++) {
        while (c->numbers.n <= (size_t)rows[i])
            vec_push(&c->numbers, -1);
        c->numbers.v[rows[i]] = (int32_t)i;
    }
}

void carry_load(struct carry *c, const void *bytes, size_t n, size_t n_rows)
{
    *c = (struct carry){.way = CARRY_LOAD, .bytes = {.fd = -1}, .at = bytes, .n_rows = n_rows};
    c->end = c->at + n;
}

int carry_loaded(const struct carry *c, struct err *e)
{
    if (c->damaged || c->at != c->end)
        return err_set(e, ERR_FORMAT, "what was carried from the chunk before makes no sense");
    return ERR_OK;
}

uint64_t carry_hash(const struct carry *c)
{
    return XXH3_64bits(c->bytes.v, c->bytes.n);
}

void carry_fini(struct carry *c)
{
    text_fini(&c->bytes);
    vec_free(&c->marked);
    vec_free(&c->numbers);
}

static void give_up(struct carry *c)
{
    c->damaged = true;
    c->at = c->end;
}

void carry_bytes(struct carry *c, void *p, size_t n)
{
    if (c->way == CARRY_SAVE) {
        text_put(&c->bytes, p, n);
    } else if (c->way == CARRY_LOAD) {
        if ((size_t)(c->end - c->at) < n) {
            give_up(c);
            memset(p, 0, n);
            return;
        }
        memcpy(p, c->at, n);
        c->at += n;
    }
}

void carry_bool(struct carry *c, bool *p)
{
    uint8_t v = c->way == CARRY_LOAD ? 0 : *p; /* not set yet when it is loaded */
    carry_below(c, &v, 2);
    *p = v;
}

void carry_below(struct carry *c, uint8_t *p, unsigned limit)
{
    carry_number(c, p);
    if (c->way == CARRY_LOAD && *p >= limit) {
        give_up(c);
        *p = 0;
    }
}

void carry_row(struct carry *c, int32_t *row)
{
    if (c->way == CARRY_MARK) {
        if (*row < 0)
            return;
        while (c->marked.n <= (size_t)*row)
            vec_push(&c->marked, 0);
        c->marked.v[*row] = 1;
        return;
    }
    int32_t number = *row;
    if (c->way == CARRY_SAVE && *row >= 0)
        number = (size_t)*row < c->numbers.n ? c->numbers.v[*row] : -1;
    carry_number(c, &number);
    if (c->way != CARRY_LOAD)
        return;
    if (number < -1 || (number >= 0 && (size_t)number >= c->n_rows)) {
        give_up(c);
        number = -1;
    }
    *row = c->damaged ? -1 : number;
}

void carry_string(struct carry *c, struct strings *s, uint32_t *number)
{
    if (c->way == CARRY_MARK)
        return;
    const char *text = c->way == CARRY_SAVE ? strings_get(s, *number) : "";
    size_t n = carry_count(c, strlen(text), 1);
    if (c->way == CARRY_SAVE) {
        text_put(&c->bytes, text, n);
        return;
    }
    if (memchr(c->at, 0, n)) {
        give_up(c);
        n = 0;
    }
    *number = n ? strings_intern(s, (const char *)c->at, n) : 0;
    c->at += n;
}

size_t carry_count(struct carry *c, size_t n, size_t least_bytes)
{
    uint64_t count = n;
    carry_number(c, &count);
    if (c->way != CARRY_LOAD)
        return n;
    if (least_bytes && count > (size_t)(c->end - c->at) / least_bytes) {
        give_up(c);
        count = 0;
    }
    return count;
}

static int by_key(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return order_of(*x, *y);
}

static void save_map(struct carry *c, struct map *m, void (*value)(struct carry *, uint64_t *, void *), void *arg)
{
    uint64_t *keys = mem_alloc(sizeof *keys * (m->n + 1));
    size_t n = 0;
    for (size_t i = 0; i < m->cap; i++)
        if (m->used[i])
            keys[n++] = m->keys[i];
    qsort(keys, n, sizeof *keys, by_key);
    for (size_t i = 0; i < n; i++) {
        carry_number(c, &keys[i]);
        value(c, map_find(m, keys[i]), arg);
    }
    free(keys);
}

static void plain_value(struct carry *c, uint64_t *value, void *arg)
{
    carry_number(c, value);
}

void carry_map(struct carry *c, struct map *m, void (*value)(struct carry *, uint64_t *, void *), void *arg)
{
    value = value ? value : plain_value;
    size_t n = carry_count(c, m->n, sizeof(uint64_t));
    if (c->way != CARRY_LOAD) {
        save_map(c, m, value, arg);
        return;
    }
    for (size_t i = 0; i < n && !c->damaged; i++) {
        uint64_t key, v = 0;
        carry_number(c, &key);
        value(c, &v, arg);
        *map_put(m, key, NULL) = v;
    }
}
