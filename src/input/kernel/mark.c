/* SPDX-License-Identifier: MIT */
/* Marks that weft-span writes to /proc/lttng-logger when a span begins and ends (docs/verbs/span.md). Any process may
 * write there. */
#include <string.h>

#include "kernel/tracker.h"

struct words {
    const char *at, *end;
};

/* Reads the next word, which ends at a blank or at the end. */
static size_t next(struct words *w, const char **word)
{
    *word = w->at;
    const char *blank = w->at < w->end ? memchr(w->at, ' ', (size_t)(w->end - w->at)) : NULL;
    size_t n = (size_t)((blank ? blank : w->end) - w->at);
    w->at = blank ? blank + 1 : w->end;
    return n;
}

static bool is(const char *word, size_t n, const char *what)
{
    return n == strlen(what) && !memcmp(word, what, n);
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_id(struct words *w, uint8_t *id, size_t bytes)
{
    const char *word;
    if (next(w, &word) != 2 * bytes)
        return false;
    for (size_t i = 0; i < bytes; i++) {
        int high = digit(word[2 * i]), low = digit(word[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        id[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

/* 0: a process outside of the writer's namespace. */
static bool read_process(struct words *w, int32_t *process)
{
    const char *word;
    size_t n = next(w, &word);
    *process = 0;
    for (size_t i = 0; i < n; i++) {
        if (word[i] < '0' || word[i] > '9' || *process > (INT32_MAX - 9) / 10)
            return false;
        *process = *process * 10 + (word[i] - '0');
    }
    return n > 0;
}

bool kernel_read_mark(const char *text, size_t n, struct kernel_mark *out)
{
    struct words w = {text, text + n};
    const char *word;
    *out = (struct kernel_mark){0};
    size_t length = next(&w, &word);
    if (!is(word, length, "weft-span"))
        return false;
    length = next(&w, &word);
    out->is_end = is(word, length, "end");
    if ((!out->is_end && !is(word, length, "begin")) || !read_id(&w, out->trace, sizeof out->trace) ||
        !read_id(&w, out->span, sizeof out->span))
        return false;
    if (out->is_end)
        return true;
    next(&w, &word); /* its parent's number */
    return read_process(&w, &out->process);
}
