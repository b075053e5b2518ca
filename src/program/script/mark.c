/* SPDX-License-Identifier: MIT */
#include "script/mark.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* LTTng's file for everybody: what is written at once, up to MARK_BYTES, is the message of one event lttng_logger. */
static const char usual[] = "/proc/lttng-logger";
enum { MARK_BYTES = 1024 };

/* ---- marks by LTTng's user-space tracer ---- */

/* Returns whether a session daemon, of the machine or of the user, has its socket for traced programs. */
static bool has_session_daemon(void)
{
    const char *home = getenv("LTTNG_HOME") ?: getenv("HOME");
    char path[PATH_MAX];
    int n = snprintf(path, sizeof path, "%s/.lttng/lttng-ust-sock-8", home ? home : "");
    return !access("/var/run/lttng/lttng-ust-sock-8", F_OK) || (home && n < (int)sizeof path && !access(path, F_OK));
}

/* Loads the library, which registers this process with the daemon and waits for its answer. The wait must be short, and
 * the script's command must not notice it. */
static void *load_tracer(void)
{
    static const char timeout[] = "LTTNG_UST_REGISTER_TIMEOUT"; /* ms */
    static void *library;
    bool given = getenv(timeout) != NULL;
    if (library)
        return library;
    if (!given)
        setenv(timeout, "200", 1);
    library = dlopen("liblttng-ust.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!given)
        unsetenv(timeout);
    return library;
}

/* Writes the mark as an event lttng_ust_tracef:event. Returns false if there is no such library. */
static bool mark_in_user_space(struct text *line)
{
    void *library = load_tracer(), *symbol = library ? dlsym(library, "lttng_ust__tracef") : NULL;
    int (*tracef)(const char *, ...);
    if (symbol) {
        memcpy(&tracef, &symbol, sizeof tracef);
        tracef("%s", text_cstr(line));
    }
    return symbol != NULL;
}

/* ---- marks ---- */

static bool mark_in_file(const char *path, const struct text *line)
{
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    bool marked = fd >= 0 && write(fd, line->v, line->n) == (ssize_t)line->n;
    if (fd >= 0)
        close(fd);
    return marked;
}

static void mark(const struct script_settings *s, struct text *line)
{
    const char *given = getenv("WEFT_SPAN_MARK"), *path = given && *given ? given : usual;
    if (s->off || !strcmp(path, "no"))
        return;
    line->n = line->n < MARK_BYTES ? line->n : MARK_BYTES;
    bool in_user_space = !strcmp(path, "ust");
    bool marked = in_user_space ? mark_in_user_space(line) : mark_in_file(path, line);
    if (!marked && path != usual)
        script_note(s, "no mark can be written %s%s (WEFT_SPAN_MARK)", in_user_space ? "" : "to ",
            in_user_space ? "without liblttng-ust.so.1 (Debian: liblttng-ust1)" : path);
    else if (!marked && has_session_daemon())
        mark_in_user_space(line);
}

void script_mark_begin(const struct script_settings *s, const struct script_span *span, pid_t process)
{
    struct text line = {.fd = -1};
    if (!(span->context.flags & SCRIPT_SAMPLED))
        return;
    text_printf(&line, "weft-span begin %s %s %s %ld %s", span->context.trace_id, span->context.span_id,
        *span->parent_id ? span->parent_id : "-", (long)process, span->name);
    mark(s, &line);
    text_fini(&line);
}

void script_mark_end(const struct script_settings *s, const struct script_span *span)
{
    struct text line = {.fd = -1};
    if (!(span->context.flags & SCRIPT_SAMPLED))
        return;
    text_printf(&line, "weft-span end %s %s", span->context.trace_id, span->context.span_id);
    mark(s, &line);
    text_fini(&line);
}
