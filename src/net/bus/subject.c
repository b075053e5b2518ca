/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "bus/wire.h"

/* Returns whether a token contains the character unchanged. Others become "=XX", and an empty name becomes "=". */
static bool is_plain(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-';
}

int bus_token(const char *name, char *buf, size_t n)
{
    size_t used = 0;
    if (!*name)
        return (size_t)snprintf(buf, n, "=") < n ? 0 : ERR_LIMIT;
    for (; *name; name++) {
        size_t need = is_plain(*name) ? 1 : 3;
        if (used + need + 1 > n)
            return ERR_LIMIT;
        if (need == 1)
            buf[used] = *name;
        else
            snprintf(buf + used, n - used, "=%02X", (unsigned char)*name);
        used += need;
    }
    buf[used] = '\0';
    return 0;
}

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

int bus_untoken(const char *token, char *buf, size_t n)
{
    size_t used = 0;
    if (!strcmp(token, "="))
        token++;
    else if (!*token)
        return ERR_FORMAT;
    while (*token) {
        char c = *token++;
        if (c == '=') {
            int high = hex(token[0]), low = high < 0 ? -1 : hex(token[1]);
            if (low < 0)
                return ERR_FORMAT;
            c = (char)(high << 4 | low);
            token += 2;
            if (!c || is_plain(c))
                return ERR_FORMAT;
        } else if (!is_plain(c)) {
            return ERR_FORMAT;
        }
        if (used + 2 > n)
            return ERR_LIMIT;
        buf[used++] = c;
    }
    if (used >= n)
        return ERR_LIMIT;
    buf[used] = '\0';
    return 0;
}

static bool token_is_good(const char *token, size_t n, bool pattern, bool last)
{
    if (pattern && n == 1 && (*token == '*' || (last && *token == '>')))
        return true;
    for (size_t i = 0; i < n; i++)
        if (!is_plain(token[i]) && token[i] != '=')
            return false;
    return n > 0;
}

int bus_subject_check(const char *subject, bool pattern, struct err *e)
{
    if (strlen(subject) > BUS_MAX_SUBJECT)
        return err_set(e, ERR_ARG, "subject '%.40s…': at most %d bytes", subject, BUS_MAX_SUBJECT);
    for (const char *at = subject;;) {
        size_t n = strcspn(at, ".");
        if (!token_is_good(at, n, pattern, !at[n]))
            return err_set(
                e, ERR_ARG, "subject '%s': dotted tokens of letters, digits, '_', '-' and '=' are allowed", subject);
        if (!at[n])
            return 0;
        at += n + 1;
    }
}

int bus_table_name_check(const char *name, struct err *e)
{
    enum { LONGEST = 64 };
    size_t n = strlen(name);
    for (const char *c = name; *c; c++)
        if (!is_plain(*c))
            n = 0;
    if (n == 0 || n > LONGEST)
        return err_set(e, ERR_ARG, "name '%.80s': 1 to %d letters, digits, '_' and '-' are allowed", name, LONGEST);
    return 0;
}

bool bus_subject_matches(const char *pattern, const char *subject)
{
    for (;;) {
        size_t p = strcspn(pattern, "."), s = strcspn(subject, ".");
        if (p == 1 && *pattern == '>' && !pattern[1])
            return s > 0;
        if (!(p == 1 && *pattern == '*') && (p != s || memcmp(pattern, subject, p) != 0))
            return false;
        if (!pattern[p] || !subject[s])
            return !pattern[p] && !subject[s];
        pattern += p + 1;
        subject += s + 1;
    }
}
