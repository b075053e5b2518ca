/* SPDX-License-Identifier: MIT */
#include "base/time.h"

#include <string.h>
#include <time.h>

enum { S_PER_DAY = 86400 };

/* Days since 1970-01-01 of a date of the Gregorian calendar. The year is counted from March, so that the leap day is
 * its last. */
static int64_t days_of_date(int64_t year, int month, int day)
{
    year -= month <= 2;
    int64_t era = (year >= 0 ? year : year - 399) / 400;
    int64_t year_of_era = year - era * 400;
    int64_t day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719468;
}

static void date_of_days(int64_t days, int64_t *year, int *month, int *day)
{
    days += 719468;
    int64_t era = (days >= 0 ? days : days - 146096) / 146097;
    int64_t day_of_era = days - era * 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t m = (5 * day_of_year + 2) / 153;
    *day = (int)(day_of_year - (153 * m + 2) / 5 + 1);
    *month = (int)(m < 10 ? m + 3 : m - 9);
    *year = year_of_era + era * 400 + (*month <= 2);
}

/* Floor division: the day that holds a time before the epoch begins before it. */
static int64_t day_of(int64_t ns)
{
    int64_t ns_per_day = NS_PER_S * S_PER_DAY;
    return ns / ns_per_day - (ns % ns_per_day < 0);
}

/* Reads exactly `width` digits; on false, *s is undefined. */
static bool read_fixed(const char **s, int width, int *out)
{
    *out = 0;
    for (int i = 0; i < width; i++, (*s)++) {
        if (!text_is_digit(**s))
            return false;
        *out = *out * 10 + (**s - '0');
    }
    return true;
}

/* Reads up to nine digits behind a point as ns; groups may be separated by one space, as weft prints them. */
static bool read_fraction(const char **s, int64_t *ns)
{
    int digits = 0;
    *ns = 0;
    for (;; (*s)++) {
        if (**s == ' ' && (digits == 3 || digits == 6) && text_is_digit((*s)[1]))
            continue;
        if (!text_is_digit(**s))
            break;
        if (++digits > 9)
            return false;
        *ns = *ns * 10 + (**s - '0');
    }
    for (int i = digits; i < 9; i++)
        *ns *= 10;
    return digits > 0;
}

/* HH:MM[:SS[.frac]], also HH alone behind a date. */
static bool read_clock(const char **s, bool hour_alone, int64_t *ns)
{
    int h, m = 0, sec = 0;
    int64_t frac = 0;
    if (!read_fixed(s, 2, &h) || h > 23)
        return false;
    if (**s == ':') {
        ++*s;
        if (!read_fixed(s, 2, &m) || m > 59)
            return false;
        if (**s == ':') {
            ++*s;
            if (!read_fixed(s, 2, &sec) || sec > 59)
                return false;
            if (**s == '.' || **s == ',') {
                ++*s;
                if (!read_fraction(s, &frac))
                    return false;
            }
        }
    } else if (!hour_alone) {
        return false;
    }
    *ns = ((int64_t)h * 3600 + m * 60 + sec) * NS_PER_S + frac;
    return true;
}

/* Z, +HH, +HHMM, +HH:MM, or nothing (UTC). */
static bool read_zone(const char **s, int64_t *offset_ns)
{
    *offset_ns = 0;
    if (**s == 'Z' || **s == 'z') {
        ++*s;
        return true;
    }
    if (**s != '+' && **s != '-')
        return true;
    int sign = *(*s)++ == '-' ? -1 : 1, h, m = 0;
    if (!read_fixed(s, 2, &h) || h > 23)
        return false;
    if (**s == ':')
        ++*s;
    if (text_is_digit(**s) && (!read_fixed(s, 2, &m) || m > 59))
        return false;
    *offset_ns = sign * ((int64_t)h * 3600 + m * 60) * NS_PER_S;
    return true;
}

static bool read_date(const char **s, int64_t *days)
{
    static const int lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int year, month, day;
    if (!read_fixed(s, 4, &year) || *(*s)++ != '-' || !read_fixed(s, 2, &month) || *(*s)++ != '-' ||
        !read_fixed(s, 2, &day))
        return false;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (month < 1 || month > 12 || day < 1 || day > lengths[month - 1] + (leap && month == 2))
        return false;
    *days = days_of_date(year, month, day);
    return true;
}

static int out_of_range(const char *text, struct err *e)
{
    return err_set(
        e, ERR_ARG, "time \"%.64s\": outside the years 1677 to 2262 that nanoseconds in 64 bits can count", text);
}

static int misread(const char *text, struct err *e)
{
    return err_set(e, ERR_ARG,
        "time \"%.64s\": write nanoseconds or seconds with a fraction (1795225268.5) since the epoch, +1.5s from the "
        "start (s, ms, us, ns, m, h), "
        "2026-11-21T01:37:53.123456789Z, or 01:37:53.123",
        text);
}

static int in_range(__int128 ns, const char *text, int64_t *out, struct err *e)
{
    if (ns < INT64_MIN || ns > INT64_MAX)
        return out_of_range(text, e);
    *out = (int64_t)ns;
    return ERR_OK;
}

/* Reads digits before a point. The value stops growing when no unit can bring it back into 64 bits. */
static bool read_whole(const char **s, __int128 *out)
{
    const char *begin = *s;
    *out = 0;
    for (; text_is_digit(**s); (*s)++)
        if (*out <= INT64_MAX)
            *out = *out * 10 + (**s - '0');
    return *s > begin;
}

/* "+1.5s" */
static int parse_relative(const char *text, const char *s, int64_t start, int64_t *out, struct err *e)
{
    static const struct {
        const char *name;
        int64_t ns;
    } units[] = {
        {"ns", 1},
        {"us", 1000},
        {"µs", 1000},
        {"μs", 1000},
        {"ms", 1000000},
        {"s", NS_PER_S},
        {"m", 60 * NS_PER_S},
        {"min", 60 * NS_PER_S},
        {"h", 3600 * NS_PER_S},
    };
    __int128 whole;
    int64_t billionths = 0;
    bool has_whole = read_whole(&s, &whole);
    if (*s == '.') {
        s++;
        if (!read_fraction(&s, &billionths))
            return misread(text, e);
    } else if (!has_whole) {
        return misread(text, e);
    }
    while (*s == ' ')
        s++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(s, units[i].name) == 0)
            return in_range(start + whole * units[i].ns + (__int128)billionths * units[i].ns / NS_PER_S, text, out, e);
    return misread(text, e);
}

/* Reads "12345" ns, or "12.345" and "[12.345000000]" seconds. */
static bool read_number(const char *s, __int128 *ns)
{
    int64_t fraction;
    bool bracket = *s == '[';
    s += bracket;
    bool negative = *s == '-';
    s += negative;
    if (!read_whole(&s, ns))
        return false;
    if (*s == '.') {
        s++;
        if (!read_fraction(&s, &fraction))
            return false;
        *ns = *ns * NS_PER_S + fraction;
        if (bracket && *s++ != ']')
            return false;
    } else if (bracket) {
        return false;
    }
    if (negative)
        *ns = -*ns;
    return !*s;
}

int time_parse(const char *text, int64_t start, int64_t *out, struct err *e)
{
    const char *s = text;
    if (*s == '+')
        return parse_relative(text, s + 1, start, out, e);

    __int128 ns;
    if (read_number(s, &ns))
        return in_range(ns, text, out, e);

    s = text;
    int64_t days, clock = 0, zone;
    if (strlen(s) > 4 && s[4] == '-') {
        if (!read_date(&s, &days))
            return misread(text, e);
        if (*s == 'T' || *s == 't' || *s == ' ') {
            s++;
            if (!read_clock(&s, true, &clock))
                return misread(text, e);
        }
    } else {
        days = day_of(start);
        if (!read_clock(&s, false, &clock))
            return misread(text, e);
    }
    if (!read_zone(&s, &zone) || *s)
        return misread(text, e);
    return in_range((__int128)days * S_PER_DAY * NS_PER_S + clock - zone, text, out, e);
}

/* Writes the last n digits of v; returns their end. */
static inline char *put_digits(char *p, uint64_t v, unsigned n)
{
    uint32_t left = (uint32_t)v;
    for (unsigned i = n; i-- > 0; left /= 10)
        p[i] = (char)('0' + left % 10);
    return p + n;
}

/* "2024-02-29": 64 bits of ns reach years of four digits. */
static char *put_date(char *p, int64_t days)
{
    int64_t year;
    int month, day;
    date_of_days(days, &year, &month, &day);
    p = put_digits(p, (uint64_t)year, 4);
    *p++ = '-';
    p = put_digits(p, (uint64_t)month, 2);
    *p++ = '-';
    return put_digits(p, (uint64_t)day, 2);
}

/* "01:37:53.", and the rest of the second in ns. */
static char *put_clock(char *p, uint64_t ns_of_day, uint64_t *rest)
{
    uint64_t s = ns_of_day / NS_PER_S;
    p = put_digits(p, s / 3600, 2);
    *p++ = ':';
    p = put_digits(p, s / 60 % 60, 2);
    *p++ = ':';
    p = put_digits(p, s % 60, 2);
    *p++ = '.';
    *rest = ns_of_day % NS_PER_S;
    return p;
}

/* Time since the begin of its day; correct also for the first day that 64 bits can express, whose begin they cannot. */
static uint64_t ns_of_day(int64_t ns)
{
    return (uint64_t)ns - (uint64_t)day_of(ns) * (uint64_t)(NS_PER_S * S_PER_DAY);
}

enum { LONGEST = sizeof "2024-02-29 01:37:53.123 456 789" };

void time_write_utc(struct text *t, int64_t ns, bool date)
{
    char *p = text_room(t, LONGEST);
    uint64_t rest;
    if (date) {
        p = put_date(p, day_of(ns));
        *p++ = ' ';
    }
    p = put_clock(p, ns_of_day(ns), &rest);
    p = put_digits(p, rest / 1000000, 3);
    *p++ = ' ';
    p = put_digits(p, rest / 1000 % 1000, 3);
    *p++ = ' ';
    p = put_digits(p, rest % 1000, 3);
    t->n = (size_t)(p - t->v);
}

static int64_t now(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

void time_write_seconds(struct text *t, int64_t ns)
{
    uint64_t size = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
    text_puts(t, ns < 0 ? "-" : "");
    text_u64(t, size / NS_PER_S);
    text_putc(t, '.');
    text_pad(t, size % NS_PER_S, 9, '0');
}

int64_t time_now_ns(void)
{
    return now(CLOCK_REALTIME);
}

int64_t time_monotonic_ns(void)
{
    return now(CLOCK_MONOTONIC);
}
