/* SPDX-License-Identifier: MIT */
#include "base/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/large.h"
#include "base/shown.h"

/* Digit pairs "00" "01" … "99": two digits per division, which bounds the speed of decimal conversion. */
static const char pairs[201] = "0001020304050607080910111213141516171819"
                               "2021222324252627282930313233343536373839"
                               "4041424344454647484950515253545556575859"
                               "6061626364656667686970717273747576777879"
                               "8081828384858687888990919293949596979899";

static unsigned digits_of(uint64_t v)
{
    unsigned n = 1;
    for (;;) {
        if (v < 10)
            return n;
        if (v < 100)
            return n + 1;
        if (v < 1000)
            return n + 2;
        if (v < 10000)
            return n + 3;
        v /= 10000;
        n += 4;
    }
}

/* Writes the last n decimal digits of v, leading zeros included, ending before `end`. */
static void write_digits(char *end, uint64_t v, unsigned n)
{
    while (n >= 2) {
        end -= 2;
        memcpy(end, pairs + 2 * (v % 100), 2);
        v /= 100;
        n -= 2;
    }
    if (n)
        *--end = (char)('0' + v % 10);
}

/* Eight decimal digits of v < 10^8, one per byte, the first one lowest. All parts of a word are divided by one
 * multiplication: 5243 / 2^19 and 103 / 2^10 are close enough to 1/100 and 1/10 below 10 000 and 100. */
static uint64_t eight_digits(uint32_t v)
{
    uint64_t fours = v / 10000 | (uint64_t)(v % 10000) << 32;
    uint64_t high = fours * 5243 >> 19 & 0x7f0000007f;
    uint64_t twos = high | (fours - 100 * high) << 16;
    high = twos * 103 >> 10 & 0x000f000f000f000f;
    return high | (twos - 10 * high) << 8;
}

static void write_eight(char *p, uint64_t digits)
{
    digits |= 0x3030303030303030;
    memcpy(p, &digits, 8);
}

/* Writes v < 10^8 without leading zeros; writes eight bytes, and returns how many are valid. */
static unsigned write_short(char *p, uint32_t v)
{
    uint64_t digits = eight_digits(v);
    unsigned zeros = (unsigned)__builtin_ctzll(digits | UINT64_C(1) << 56) / 8;
    write_eight(p, (digits | 0x3030303030303030) >> 8 * zeros);
    return 8 - zeros;
}

/* ---- memory ---- */

/* Whole multiples of LARGE_BLOCK are large blocks, all others malloc's. */
static bool is_large(const struct text *t)
{
    return t->cap && t->cap % LARGE_BLOCK == 0;
}

static void end_block(const struct text *t)
{
    if (is_large(t))
        large_free(t->v, t->cap);
    else
        free(t->v);
}

/* Moves the text to a block of the other kind. */
static void move_to(struct text *t, char *v, size_t cap)
{
    if (t->n)
        memcpy(v, t->v, t->n);
    end_block(t);
    t->v = v;
    t->cap = cap;
}

static bool try_large(struct text *t, size_t cap)
{
    size_t has = is_large(t) ? t->cap : 0;
    char *v = large_try(has ? t->v : NULL, &has, t->n, cap);
    if (v && !is_large(t)) {
        move_to(t, v, has);
    } else if (v) {
        t->v = v;
        t->cap = has;
    }
    return v != NULL;
}

static bool try_malloc(struct text *t, size_t cap)
{
    char *v = mem_try_resize(is_large(t) ? NULL : t->v, cap);
    if (v && is_large(t)) {
        move_to(t, v, cap);
    } else if (v) {
        t->v = v;
        t->cap = cap;
    }
    return v != NULL;
}

/* cap: greater than the present one. If nothing more can be mapped, the heaps may still have memory. */
static bool try_cap(struct text *t, size_t cap)
{
    if (cap >= LARGE_BLOCK && try_large(t, cap))
        return true;
    return try_malloc(t, cap % LARGE_BLOCK ? cap : cap + 1);
}

/* Grows to little more than necessary if there is no memory for twice as much: the last memory is not spent on unused
 * room. */
static bool try_little(struct text *t, size_t bytes)
{
    size_t need;
    return !__builtin_add_overflow(t->n, bytes, &need) && need <= PTRDIFF_MAX && try_cap(t, need + need / 16);
}

/* Grows to at least twice the size, so that growing is cheap. */
static bool try_more(struct text *t, size_t bytes)
{
    enum { SMALLEST = 16 };
    size_t need, twice = t->cap < SMALLEST ? SMALLEST : 2 * t->cap;
    return !__builtin_add_overflow(t->n, bytes, &need) && need <= PTRDIFF_MAX &&
        try_cap(t, twice > need ? twice : need);
}

bool text_try_grow(struct text *t, size_t bytes)
{
    return t->cap - t->n >= bytes || try_more(t, bytes) || try_little(t, bytes);
}

void text_grow(struct text *t, size_t bytes)
{
    enum { LARGE = 1 << 20 };
    bool may_lose = t->cap >= LARGE && bytes <= t->cap / 2 && t->fd <= 0;
    if (text_try_grow(t, bytes))
        return;
    if (may_lose) {
        t->error = ENOMEM;
        t->n = t->cap / 2;
        return;
    }
    for (unsigned tried = 0; !try_little(t, bytes);)
        mem_lack(t->n + bytes, &tried);
}

struct text_styles {
    struct style {
        size_t at, n;
    } * v;
    size_t n, cap;
};

static void end_styles(struct text *t)
{
    if (t->styles)
        vec_free(t->styles);
    free(t->styles);
    t->styles = NULL;
}

void text_fini(struct text *t)
{
    end_block(t);
    end_styles(t);
    t->v = NULL;
    t->n = t->cap = 0;
}

char *text_take(struct text *t)
{
    char *s = (char *)text_cstr(t);
    if (is_large(t)) {
        s = memcpy(mem_alloc(t->n + 1), s, t->n + 1);
        text_fini(t);
    }
    end_styles(t);
    t->v = NULL;
    t->n = t->cap = 0;
    return s;
}

/* ---- numbers ---- */

void text_fill(struct text *t, char c, size_t n)
{
    memset(text_room(t, n + 1), c, n);
    t->n += n;
}

void text_u64(struct text *t, uint64_t v)
{
    enum { MOST_DIGITS = 20 };
    const uint64_t unit = 100000000;
    char *p = text_room(t, MOST_DIGITS);
    if (v < 10) {
        *p = (char)('0' + v);
        t->n++;
        return;
    }
    uint64_t above = v / unit;
    if (!above) {
        t->n += write_short(p, (uint32_t)v);
        return;
    }
    char *end = p;
    if (above < unit) {
        end += write_short(end, (uint32_t)above);
    } else {
        end += write_short(end, (uint32_t)(above / unit));
        write_eight(end, eight_digits((uint32_t)(above % unit)));
        end += 8;
    }
    write_eight(end, eight_digits((uint32_t)(v % unit)));
    t->n += (size_t)(end + 8 - p);
}

void text_i64(struct text *t, int64_t v)
{
    if (v < 0) {
        text_putc(t, '-');
        text_u64(t, -(uint64_t)v);
    } else {
        text_u64(t, (uint64_t)v);
    }
}

void text_i64_near(struct text *t, struct text_near *near, int64_t v)
{
    enum { MOST_ABOVE = 16 }; /* bytes reserved: at least the 11 digits above */
    const uint64_t unit = 100000000;
    uint64_t above = v < 0 ? 0 : (uint64_t)v / unit;
    char *p = text_room(t, MOST_ABOVE + 8);
    if (!above) {
        text_i64(t, v);
        return;
    }
    if (above != near->above) {
        struct text digits = {.v = near->digits, .cap = sizeof near->digits};
        text_u64(&digits, above);
        near->above = above;
        near->n = (unsigned)digits.n;
    }
    memcpy(p, near->digits, MOST_ABOVE);
    write_eight(p + near->n, eight_digits((uint32_t)((uint64_t)v % unit)));
    t->n += near->n + 8;
}

void text_pad(struct text *t, uint64_t v, int width, char fill)
{
    unsigned n = digits_of(v);
    size_t lead = width > 0 && (unsigned)width > n ? (unsigned)width - n : 0;
    char *p = text_room(t, lead + n);
    if (fill == '0' && lead + n <= 20) {
        write_digits(p + lead + n, v, (unsigned)lead + n);
    } else {
        memset(p, fill, lead);
        write_digits(p + lead + n, v, n);
    }
    t->n += lead + n;
}

void text_printf(struct text *t, const char *fmt, ...)
{
    va_list ap, again;
    va_start(ap, fmt);
    va_copy(again, ap);
    text_room(t, 64);
    int n = vsnprintf(t->v + t->n, t->cap - t->n, fmt, ap);
    if (n >= 0 && (size_t)n >= t->cap - t->n) {
        text_room(t, (size_t)n + 1);
        vsnprintf(t->v + t->n, t->cap - t->n, fmt, again);
    }
    if (n > 0)
        t->n += (size_t)n;
    va_end(again);
    va_end(ap);
}

const char *text_cstr(struct text *t)
{
    *text_room(t, 1) = '\0';
    return t->v;
}

/* ---- output ---- */

void text_style(struct text *t, const char *sequence)
{
    if (!t->styles)
        t->styles = mem_zalloc(sizeof *t->styles);
    struct style style = {t->n, strlen(sequence)};
    vec_push(t->styles, style);
    text_put(t, sequence, style.n);
}

/* Writes the text for a terminal: keeps its own styles and makes everything between them printable. */
static void put_shown(const struct text *t, struct text *out)
{
    size_t at = 0;
    for (size_t i = 0; t->styles && i < t->styles->n; i++) {
        struct style s = t->styles->v[i];
        if (s.at < at || s.at + s.n > t->n)
            continue;
        shown_lines(out, t->v + at, s.at - at);
        text_put(out, t->v + s.at, s.n);
        at = s.at + s.n;
    }
    shown_lines(out, t->v + at, t->n - at);
}

static int write_failed(struct text *t, struct err *e)
{
    errno = t->error;
    err_sys(e, "cannot write the output");
    return ERR_IO;
}

/* Returns 0 or errno. */
static int write_all(int fd, const char *v, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t w = write(fd, v + done, n - done);
        if (w < 0 && errno == EINTR)
            continue;
        if (w <= 0)
            return w < 0 ? errno : EIO;
        done += (size_t)w;
    }
    return 0;
}

int text_drain(struct text *t, size_t threshold, struct err *e)
{
    if (t->error) {
        t->n = 0;
        return write_failed(t, e);
    }
    if (t->fd <= 0 || t->n <= threshold)
        return ERR_OK;
    if (isatty(t->fd)) {
        struct text shown = {.fd = -1};
        put_shown(t, &shown);
        t->error = write_all(t->fd, shown.v, shown.n);
        text_fini(&shown);
    } else {
        t->error = write_all(t->fd, t->v, t->n);
    }
    t->n = 0;
    if (t->styles)
        t->styles->n = 0;
    return t->error ? write_failed(t, e) : ERR_OK;
}

char *text_to_arena(struct text *t, struct arena *a)
{
    char *s = arena_strndup(a, text_cstr(t), t->n);
    text_fini(t);
    return s;
}

void text_duration(struct text *t, int64_t ns)
{
    uint64_t v = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    if (ns < 0)
        text_putc(t, '-');
    if (v < 1000) {
        text_u64(t, v);
        text_puts(t, " ns");
        return;
    }
    /* Four digits: the first of (step, unit, decimals) whose rounded value has no more. */
    static const struct {
        uint64_t step_ns;
        const char *unit;
        unsigned decimals;
    } scales[] = {
        {1, " µs", 3},
        {10, " µs", 2},
        {100, " µs", 1},
        {1000, " ms", 3},
        {10000, " ms", 2},
        {100000, " ms", 1},
        {1000000, " s", 3},
        {10000000, " s", 2},
        {100000000, " s", 1},
        {1000000000, " s", 0},
    };
    size_t i = 0, last = sizeof scales / sizeof *scales - 1;
    uint64_t steps;
    while (
        (steps = v / scales[i].step_ns + (v % scales[i].step_ns >= scales[i].step_ns - scales[i].step_ns / 2)) > 9999 &&
        i < last)
        i++;
    static const unsigned powers[] = {1, 10, 100, 1000};
    unsigned decimals = scales[i].decimals;
    text_u64(t, steps / powers[decimals]);
    if (decimals) {
        text_putc(t, '.');
        text_pad(t, steps % powers[decimals], (int)decimals, '0');
    }
    text_puts(t, scales[i].unit);
}

const char *arena_duration(struct arena *a, int64_t ns)
{
    struct text t = {.fd = -1};
    text_duration(&t, ns);
    return text_to_arena(&t, a);
}

void text_grouped(struct text *t, uint64_t v)
{
    unsigned n = digits_of(v);
    char digits[20];
    write_digits(digits + n, v, n);
    for (unsigned i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0)
            text_putc(t, ' ');
        text_putc(t, digits[i]);
    }
}

size_t text_cells(const char *s, size_t n)
{
    size_t cells = 0;
    for (size_t i = 0; i < n; i++)
        cells += ((unsigned char)s[i] & 0xc0) != 0x80;
    return cells;
}

size_t text_sequence(const char *string, size_t n)
{
    const unsigned char *s = (const unsigned char *)string;
    unsigned char c = s[0], low = 0x80, high = 0xbf;
    size_t more;
    if (c < 0x80)
        more = 0;
    else if (c >= 0xc2 && c <= 0xdf)
        more = 1;
    else if (c >= 0xe0 && c <= 0xef)
        more = 2;
    else if (c >= 0xf0 && c <= 0xf4)
        more = 3;
    else
        return 0;
    if (c == 0xe0)
        low = 0xa0;
    else if (c == 0xed)
        high = 0x9f;
    else if (c == 0xf0)
        low = 0x90;
    else if (c == 0xf4)
        high = 0x8f;
    if (n <= more || (more && (s[1] < low || s[1] > high)))
        return 0;
    for (size_t i = 2; i <= more; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    return more + 1;
}
