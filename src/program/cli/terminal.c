/* SPDX-License-Identifier: MIT */
/* Terminal output of all verbs: errors, notes, colours, and the end of the output. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/shown.h"
#include "cli/settings.h"

struct cli_settings cli_settings;

/* Prints a message as one line: names from traces may contain control characters. */
static void say(const char *prefix, const char *message)
{
    struct text t = {0};
    text_puts(&t, prefix);
    shown_line(&t, message, strlen(message));
    text_putc(&t, '\n');
    fwrite(t.v, 1, t.n, stderr);
    text_fini(&t);
}

int cli_fail(const struct err *e)
{
    say("weft: ", e->text[0] ? e->text : err_name(e->code));
    return e->code == ERR_ARG || e->code == ERR_AMBIGUOUS ? CLI_USAGE : CLI_FAILED;
}

void cli_note(const char *fmt, ...)
{
    if (cli_settings.quiet)
        return;
    char message[2048];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof message, fmt, ap);
    va_end(ap);
    say("weft: note: ", message);
}

bool cli_color(void)
{
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    return !cli_settings.no_color && (!no_color || !*no_color) && (!term || strcmp(term, "dumb") != 0) &&
        isatty(STDOUT_FILENO);
}

int cli_width(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    const char *columns = getenv("COLUMNS");
    int n = columns ? atoi(columns) : 0;
    return n > 0 && n < 10000 ? n : 100;
}

void cli_bold(struct text *t)
{
    if (cli_color())
        text_style(t, "\033[1m");
}

void cli_plain(struct text *t)
{
    if (cli_color())
        text_style(t, "\033[0m");
}

int cli_finish(struct text *out, int code)
{
    struct err e = {0};
    if (text_drain(out, 0, &e)) {
        /* The reader of a pipe has seen enough (`weft events … | head`): that is no failure. */
        if (out->error != EPIPE)
            code = cli_fail(&e);
    }
    text_fini(out);
    return code;
}
