#include "script/mark.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* LTTng's file for everybody: what is written at once, up to MARK_BYTES, is the message of one event lttng_logger. */
static const char usual[] = "/proc/lttng-logger";
enum { MARK_BYTES = 1024 };

static void mark(const struct script_settings *s, struct text *line)
{
    const char *given = getenv("WEFT_SPAN_MARK"), *path = given && *given ? given : usual;
    if (s->off || !strcmp(path, "no"))
        return;
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd >= 0) {
        size_t n = line->n < MARK_BYTES ? line->n : MARK_BYTES;
        bool marked = write(fd, line->v, n) == (ssize_t)n;
        close(fd);
        if (marked)
            return;
    }
    if (given && *given)
        script_note(s, "no mark can be written to %s (WEFT_SPAN_MARK)", path);
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
