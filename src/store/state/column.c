/* SPDX-License-Identifier: MIT */
/* Columns of numbers: choice of the smallest way, writing and reading. */
#include "state/column.h"

#include <stdbool.h>

enum { SLOTS = 256 };

static uint8_t column_width(struct column_form f)
{
    return f.width < 63 ? f.width : 64;
}

/* ---- writing ---- */

/* Column being planned: differences to the base, and the size in the best way so far. */
struct column_plan {
    const int64_t *v;
    size_t n;
    int64_t base;
    uint8_t whole; /* bits of the largest difference */
    enum column_way way;
    uint8_t width, more;
    size_t bits; /* bits of everything but the base */
    size_t entries;
    int64_t table[COLUMN_ENTRIES], entry_of[COLUMN_VALUES];
};

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}
static int64_t greater(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Processes even and odd values separately, so that neighbours do not depend on each other. */
static void spread(const int64_t *v, size_t n, int64_t *least, int64_t *most)
{
    int64_t low[2] = {v[0], v[n - 1]}, high[2] = {v[0], v[n - 1]};
    for (size_t i = 0; i + 1 < n; i += 2) {
        low[0] = lesser(low[0], v[i]);
        low[1] = lesser(low[1], v[i + 1]);
        high[0] = greater(high[0], v[i]);
        high[1] = greater(high[1], v[i + 1]);
    }
    *least = lesser(low[0], low[1]);
    *most = greater(high[0], high[1]);
}

static unsigned bits_of(uint64_t v)
{
    return 63 - (unsigned)__builtin_clzll(v | 1) + (v != 0);
}

/* Few large values among many small ones take less space if only the large ones have high bits: a bit per value marks
 * them. */
static void try_split(struct column_plan *p)
{
    uint8_t some[2][65] = {{0}}; /* count by bits; two of them, so that neighbours do not depend on each other */
    size_t over = 0;
    for (size_t i = 0; i < p->n; i++)
        some[i % 2][bits_of((uint64_t)p->v[i] - (uint64_t)p->base)]++;
    for (uint8_t width = p->whole; width-- > 0;) {
        uint8_t more = (uint8_t)(p->whole - width);
        over += some[0][width + 1] + (size_t)some[1][width + 1];
        size_t bits = p->n * (width + 1u) + over * more;
        if (bits < p->bits && width <= PACK_MOST_WIDTH && more <= PACK_MOST_WIDTH) {
            p->bits = bits;
            p->way = COLUMN_SPLIT;
            p->width = width;
            p->more = more;
        }
    }
}

/* Limit of distinct values for a table to be smaller than the best so far. */
static size_t most_entries(const struct column_plan *p)
{
    size_t most = 0;
    for (size_t width = 1; (size_t)1 << width <= COLUMN_ENTRIES && p->n * width < p->bits; width++) {
        size_t entries = (p->bits - p->n * width) / p->whole;
        entries = entries < (size_t)1 << width ? entries : (size_t)1 << width;
        most = entries > most ? entries : most;
    }
    return most;
}

static bool try_table(struct column_plan *p)
{
    uint8_t slots[SLOTS] = {0}; /* 1 + entry by hash */
    size_t entries = 0, most = most_entries(p);
    for (size_t i = 0; i < p->n; i++) {
        size_t slot = (uint64_t)p->v[i] * UINT64_C(0x9e3779b97f4a7c15) >> 56;
        while (slots[slot] && p->table[slots[slot] - 1] != p->v[i])
            slot = (slot + 1) % SLOTS;
        if (!slots[slot]) {
            if (entries == most)
                return false;
            p->table[entries] = p->v[i];
            slots[slot] = (uint8_t)++entries;
        }
        p->entry_of[i] = slots[slot] - 1;
    }
    uint8_t width = (uint8_t)bits_of(entries - 1);
    size_t bits = p->n * width + entries * p->whole;
    if (bits >= p->bits)
        return false;
    p->bits = bits;
    p->way = COLUMN_TABLE;
    p->width = width;
    p->more = p->whole;
    p->entries = entries;
    return true;
}

static uint8_t *put_base(uint8_t *to, int64_t base, struct column_form *f)
{
    unsigned bits = bits_of((uint64_t)(base ^ base >> 63)), bytes = base ? bits / 8 + 1 : 0; /* bits with the sign */
    memcpy(to, &base, sizeof base);
    f->base = bytes < 7 ? bytes : 7;
    return to + (bytes < 7 ? bytes : 8);
}

static uint8_t *put_values(uint8_t *to, const int64_t *v, size_t n, int64_t base, uint8_t width)
{
    state_pack_put(to, v, 1, n, base, width);
    return to + pack_bytes(n, width);
}

static uint8_t *put_split(uint8_t *to, const struct column_plan *p)
{
    int64_t low[COLUMN_VALUES], high[COLUMN_VALUES];
    size_t n_high = 0;
    memset(to, 0, pack_bytes(p->n, 1));
    for (size_t i = 0; i < p->n; i++) {
        uint64_t d = (uint64_t)p->v[i] - (uint64_t)p->base;
        bool has = d >> p->width;
        low[i] = (int64_t)(d & pack_mask(p->width));
        high[n_high] = (int64_t)(d >> p->width);
        n_high += has;
        to[i / 8] |= (uint8_t)(has << i % 8);
    }
    to = put_values(to + pack_bytes(p->n, 1), low, p->n, 0, p->width);
    return put_values(to, high, n_high, 0, p->more);
}

/* Differences to the line from the first value to the last. */
static uint8_t *put_line(uint8_t *to, const int64_t *v, size_t n, int64_t from, struct column_form *f)
{
    int64_t off[COLUMN_VALUES], least, most;
    uint64_t slope = n > 1 ? ((uint64_t)v[n - 1] - (uint64_t)v[0]) / (n - 1) : 0;
    slope = slope < UINT32_MAX ? slope : UINT32_MAX;
    for (size_t i = 0; i < n; i++)
        off[i] = (int64_t)((uint64_t)v[i] - (uint64_t)from - slope * i);
    spread(off, n, &least, &most);
    uint8_t width = pack_width((uint64_t)most - (uint64_t)least);
    to = put_base(to, least, f);
    memcpy(to, &(uint32_t){(uint32_t)slope}, sizeof(uint32_t));
    f->way = COLUMN_LINE;
    f->width = width < 64 ? width : 63;
    return put_values(to + sizeof(uint32_t), off, n, least, width);
}

size_t state_column_put(uint8_t *to, const int64_t *v, size_t n, int64_t from, unsigned ways, struct column_form *f)
{
    struct column_plan p;
    uint8_t *at = to;
    int64_t most;
    *f = (struct column_form){0};
    if (ways & 1 << COLUMN_LINE)
        return (size_t)(put_line(to, v, n, from, f) - to);
    spread(v, n, &p.base, &most);
    p.v = v;
    p.n = n;
    p.way = COLUMN_PLAIN;
    p.whole = p.width = pack_width((uint64_t)most - (uint64_t)p.base);
    p.more = 0;
    p.bits = n * p.whole;
    bool table = ways & 1 << COLUMN_TABLE && p.whole > 1 && p.whole <= PACK_MOST_WIDTH && try_table(&p);
    if (ways & 1 << COLUMN_SPLIT && !table && p.whole > 3)
        try_split(&p);
    at = put_base(to, (int64_t)((uint64_t)p.base - (uint64_t)from), f);
    f->way = p.way;
    f->width = p.width < 64 ? p.width : 63;
    f->more = p.more;
    switch (p.way) {
    case COLUMN_SPLIT: at = put_split(at, &p); break;
    case COLUMN_TABLE:
        at = put_values(at, p.entry_of, n, 0, p.width);
        at = put_values(at, p.table, p.entries, p.base, p.more);
        break;
    default: at = put_values(at, v, n, p.base, p.width);
    }
    return (size_t)(at - to);
}

/* ---- reading ---- */

static uint64_t slope_of(const struct column *c)
{
    uint32_t slope;
    memcpy(&slope, c->bytes, sizeof slope);
    return slope;
}

/* Begin of values of SPLIT; end of values that begin there. */
static const uint8_t *low_bits(const struct column *c)
{
    return c->bytes + pack_bytes(c->n, 1);
}
static const uint8_t *behind(const struct column *c, const uint8_t *values)
{
    return values + pack_bytes(c->n, column_width(c->form));
}

static uint64_t flags_at(const struct column *c, size_t word)
{
    uint64_t flags;
    memcpy(&flags, c->bytes + word * sizeof flags, sizeof flags);
    return flags;
}

static uint64_t split_get(const struct column *c, size_t i, uint8_t width)
{
    uint64_t flags = flags_at(c, i / 64), low = pack_get(low_bits(c), i, width);
    if (!(flags >> i % 64 & 1))
        return low;
    size_t before = (size_t)__builtin_popcountll(flags & pack_mask(i % 64));
    if (i >= 64)
        before += (size_t)__builtin_popcountll(flags_at(c, 0));
    return low | pack_get(behind(c, low_bits(c)), before, c->form.more) << (width & 63);
}

int64_t state_column_get(const struct column *c, size_t i)
{
    uint8_t width = column_width(c->form);
    uint64_t d;
    switch ((enum column_way)c->form.way) {
    case COLUMN_LINE: d = slope_of(c) * i + pack_get(c->bytes + sizeof(uint32_t), i, width); break;
    case COLUMN_SPLIT: d = split_get(c, i, width); break;
    case COLUMN_TABLE:
        d = pack_get(behind(c, c->bytes), pack_get(c->bytes, i, width) % COLUMN_ENTRIES, c->form.more);
        break;
    default: d = pack_get(c->bytes, i, width);
    }
    return (int64_t)((uint64_t)c->base + d);
}

static void split_take(const struct column *c, int64_t *out)
{
    const uint8_t *high = behind(c, low_bits(c));
    size_t k = 0;
    state_pack_take(low_bits(c), c->n, column_width(c->form), c->base, out);
    for (size_t word = 0; word * 64 < c->n; word++)
        for (uint64_t flags = flags_at(c, word); flags; flags &= flags - 1) {
            size_t i = word * 64 + (size_t)__builtin_ctzll(flags);
            if (i >= c->n)
                return;
            out[i] = (int64_t)((uint64_t)out[i] + (pack_get(high, k++, c->form.more) << (c->form.width & 63)));
        }
}

static void table_take(const struct column *c, int64_t *out)
{
    int64_t table[COLUMN_ENTRIES];
    uint8_t width = column_width(c->form);
    state_pack_take(behind(c, c->bytes), width < 6 ? (size_t)1 << width : COLUMN_ENTRIES, c->form.more, c->base, table);
    state_pack_take(c->bytes, c->n, width, 0, out);
    for (size_t i = 0; i < c->n; i++)
        out[i] = table[(uint64_t)out[i] % COLUMN_ENTRIES];
}

static void line_take(const struct column *c, int64_t *out)
{
    uint64_t slope = slope_of(c), line = 0;
    state_pack_take(c->bytes + sizeof(uint32_t), c->n, column_width(c->form), c->base, out);
    for (size_t i = 0; i < c->n; i++, line += slope)
        out[i] = (int64_t)((uint64_t)out[i] + line);
}

void state_column_take(const struct column *c, int64_t *out)
{
    switch ((enum column_way)c->form.way) {
    case COLUMN_LINE: line_take(c, out); break;
    case COLUMN_SPLIT: split_take(c, out); break;
    case COLUMN_TABLE: table_take(c, out); break;
    default: state_pack_take(c->bytes, c->n, column_width(c->form), c->base, out);
    }
}

/* ---- checking ---- */

/* Number of high parts. */
static size_t n_high(const struct column *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->bytes[i / 8] >> i % 8 & 1;
    return n;
}

static size_t n_entries(const struct column *c)
{
    size_t most = 0;
    for (size_t i = 0; i < c->n; i++) {
        size_t entry = pack_get(c->bytes, i, column_width(c->form));
        most = entry > most ? entry : most;
    }
    return most + 1;
}

const char *state_column_defect(
    const uint8_t *bytes, size_t n, struct column_form f, const uint8_t *end, const uint8_t **own_end)
{
    struct column c = column_open(bytes, n, 0, f);
    const uint8_t *values = c.bytes;
    bool lone = f.way == COLUMN_PLAIN || f.way == COLUMN_LINE;
    if (f.reserved || !(f.width <= PACK_MOST_WIDTH || (f.width == 63 && lone)) ||
        f.more > (lone ? 0 : PACK_MOST_WIDTH) || (f.way == COLUMN_TABLE && (size_t)1 << f.width > COLUMN_ENTRIES))
        return "a column's form makes no sense";
    values += f.way == COLUMN_LINE ? sizeof(uint32_t) : f.way == COLUMN_SPLIT ? pack_bytes(n, 1) : 0;
    *own_end = behind(&c, values);
    if (*own_end > end)
        return "a column's values lie outside the file";
    if (f.way == COLUMN_SPLIT)
        *own_end += pack_bytes(n_high(&c), f.more);
    if (f.way == COLUMN_TABLE)
        *own_end += pack_bytes(n_entries(&c), f.more);
    return *own_end > end ? "a column's values lie outside the file" : NULL;
}
