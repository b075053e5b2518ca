/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct err *e, int code, const char *fmt, ...)
{
    if (e) {
        va_list ap;
        e->code = code;
        va_start(ap, fmt);
        vsnprintf(e->text, sizeof e->text, fmt, ap);
        va_end(ap);
    }
    return code;
}

/* Advice for limits that the user or administrator can raise. */
static const char *what_to_do(int reason)
{
    switch (reason) {
    case EMFILE: return " (EMFILE; raise `ulimit -n`)";
    case ENFILE: return " (ENFILE; raise `sysctl fs.file-max`)";
    case ENOMEM:
        return " (ENOMEM; raise `ulimit -v` or `sysctl vm.max_map_count` where they are low, else free memory)";
    default: return "";
    }
}

int err_sys(struct err *e, const char *fmt, ...)
{
    int saved = errno;
    bool files = saved == EMFILE || saved == ENFILE;
    int code = saved == ENOMEM ? ERR_NOMEM : files ? ERR_LIMIT : ERR_IO;
    if (e) {
        va_list ap;
        e->code = code;
        va_start(ap, fmt);
        int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
        va_end(ap);
        if (n >= 0 && (size_t)n < sizeof e->text)
            snprintf(e->text + n, sizeof e->text - (size_t)n, ": %s%s", strerror(saved), what_to_do(saved));
    }
    return code;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
    if (!e)
        return ERR_IO;
    char inner[sizeof e->text];
    memcpy(inner, e->text, sizeof inner);
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(e->text, sizeof e->text, fmt, ap);
    va_end(ap);
    if (n >= 0 && (size_t)n + 2 < sizeof e->text) {
        size_t room = sizeof e->text - (size_t)n - 3, shown = strnlen(inner, room); /* ": " and the end */
        memcpy(e->text + n, ": ", 2);
        memcpy(e->text + n + 2, inner, shown);
        e->text[(size_t)n + 2 + shown] = '\0';
    }
    return e->code;
}

const char *err_name(int code)
{
    switch (code) {
#define X(name, value, text) \
    case value: return text;
        WEFT_ERRORS(X)
#undef X
    }
    return "unknown error";
}
