/* SPDX-License-Identifier: MIT */
/* Called as pfeil: its arguments, environment and output, for scripts that know nothing else. */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/time.h"
#include "script/commands.h"
#include "script/run.h"
#include "script/spool.h"

struct pfeil {
    struct script_settings settings;
    struct script_attributes tags;
    struct script_span span;
    bool verbose, always, never;
    const char *service, *operation;
    char **command;
};

static int usage(const char *why)
{
    dprintf(STDERR_FILENO,
        "pfeil: %s\nUsage: pfeil [-v] [-y|-n] [-s SERVICE] [-t KEY=VALUE[,KEY=VALUE]]... OPERATION [COMMAND "
        "ARGUMENT...]\n"
        "Environment: TRACE_ID, TRACE_START, JAEGER_SERVICE_NAME, JAEGER_ENDPOINT, JAEGER_TAGS, JAEGER_SAMPLER_TYPE, "
        "JAEGER_SAMPLER_PARAM\n",
        why);
    return SCRIPT_EXIT_USAGE;
}

/* ---- arguments ---- */

static const char *read_options(struct pfeil *p, int argc, char **argv)
{
    int option;
    opterr = 0;
    while ((option = getopt(argc, argv, "+vyns:t:h")) != -1)
        switch (option) {
        case 'v': p->verbose = true; break;
        case 'y': p->always = true; break;
        case 'n': p->never = true; break;
        case 's': p->service = optarg; break;
        case 't': script_read_pairs(&p->settings.arena, optarg, &p->tags); break;
        case 'h': return "help";
        default: return "no such option, or its value is missing";
        }
    if (optind >= argc)
        return "which operation?";
    p->operation = argv[optind];
    p->command = optind + 1 < argc ? argv + optind + 1 : NULL;
    return NULL;
}

/* ---- begin of the span ---- */

/* The zone of `date`: a name of this process's own zone, UTC, or digits; any other name is that of the machine where
 * the script runs, which printed it. */
static int64_t seconds_of(struct tm *t, const char *zone)
{
    int hours, minutes = 0;
    char sign;
    if (!strcmp(zone, "UTC") || !strcmp(zone, "GMT"))
        return timegm(t);
    if (sscanf(zone, "%c%2d%2d", &sign, &hours, &minutes) >= 2 && (sign == '+' || sign == '-'))
        return timegm(t) - (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
    tzset();
    t->tm_isdst = !strcmp(zone, tzname[1]) ? 1 : !strcmp(zone, tzname[0]) ? 0 : -1;
    return mktime(t);
}

/* TRACE_START as `date` prints it in the C locale; with `date +%s.%N` or `date +%s%N` nothing is cut off. *whole: its
 * fraction of a second is not known. */
static bool read_start(const char *s, int64_t *ns, bool *whole)
{
    struct tm t = {0};
    char zone[16] = "", rest;
    int year;
    size_t digits = strspn(s, "0123456789");
    *whole = false;
    if (digits > 0 && (!s[digits] || s[digits] == '.')) {
        long long seconds = digits <= 10 && !s[digits] ? strtoll(s, NULL, 10) : 0;
        *whole = seconds > 0 && seconds < INT64_MAX / 1000000000;
        *ns = *whole ? seconds * 1000000000 : 0;
        return *whole || time_parse(s, 0, ns, NULL) == 0;
    }
    const char *behind = strptime(s, "%a %b %d %H:%M:%S", &t);
    if (!behind || sscanf(behind, " %15s %d %c", zone, &year, &rest) != 2 || year < 1970 || year > 2200)
        return false;
    t.tm_year = year - 1900;
    *whole = true;
    *ns = seconds_of(&t, zone) * 1000000000;
    return true;
}

/* `date` cuts the start to the second. A script asks for it right after the call before, which leaves its end, exact
 * to the ns, in a file: within the same second that end is the start. The file is named after the trace and the calling
 * shell. */
static char *end_path(struct pfeil *p)
{
    return arena_printf(
        &p->settings.arena, "%s/last/%s-%ld", p->settings.spool, p->span.context.trace_id, (long)getppid());
}

static void take_start(struct pfeil *p)
{
    const char *given = getenv("TRACE_START");
    struct stat st;
    bool whole;
    int64_t ns;
    script_begin_clock(&p->span);
    if (!given || !*given)
        return;
    if (!read_start(given, &ns, &whole)) {
        script_note(&p->settings, "TRACE_START is no date: the span begins now");
        return;
    }
    int64_t now_ns = p->span.start_ns;
    if (whole && stat(end_path(p), &st) == 0 && st.st_mtim.tv_sec == ns / 1000000000)
        ns += st.st_mtim.tv_nsec;
    p->span.monotonic_ns = 0;
    p->span.start_ns = ns > 0 && ns <= now_ns ? ns : now_ns;
}

static void keep_end(struct pfeil *p)
{
    struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT}, {.tv_sec = p->span.end_ns / 1000000000, .tv_nsec = p->span.end_ns % 1000000000}};
    if (p->settings.off || script_spool_make(&p->settings, "last", NULL))
        return;
    const char *path = end_path(p);
    if (access(path, F_OK)) /* a script's first call */
        script_spool_tidy(&p->settings);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return;
    futimens(fd, times);
    close(fd);
}

/* ---- the span ---- */

static void take_command_tags(struct pfeil *p)
{
    struct text all = {.fd = -1};
    script_add_text(&p->span.attributes, "cmd.cmd", p->command[0]);
    for (size_t i = 1; p->command[i] && all.n < SCRIPT_VALUE_BYTES; i++) {
        if (i > 1)
            text_putc(&all, ' ');
        text_puts(&all, p->command[i]);
    }
    script_add_text(&p->span.attributes, "cmd.args", text_to_arena(&all, &p->settings.arena));
}

static int tell(struct pfeil *p)
{
    int code = SCRIPT_EXIT_OK;
    p->span.name = p->operation;
    p->span.kind = SCRIPT_SERVER;
    for (size_t i = 0; i < p->tags.list.n; i++)
        script_add_text(&p->span.attributes, p->tags.list.v[i].key, p->tags.list.v[i].text);
    if (p->command) {
        take_command_tags(p);
        code = script_run(&p->settings, &p->span, p->command, true);
    } else {
        take_start(p);
        script_end_clock(&p->span);
        if (script_deliver(&p->settings, &p->span))
            script_spool_send_some(&p->settings);
    }
    keep_end(p);
    return code;
}

int script_pfeil(int argc, char **argv)
{
    struct pfeil p = {0};
    char id[SCRIPT_CONTEXT_CHARS];
    script_read_settings(&p.settings, true, false);
    const char *wrong = read_options(&p, argc, argv);
    int code = SCRIPT_EXIT_USAGE;
    if (wrong) {
        code = usage(wrong);
    } else {
        if (p.service)
            script_set_service(&p.settings, p.service);
        if (p.always || p.never)
            p.settings.share = !p.never;
        script_new_span(&p.settings, true, &p.span);
        code = tell(&p);
        script_write_uber(&p.span.context, p.span.parent_id, id);
        if (p.verbose)
            dprintf(STDERR_FILENO, "pfeil: span %s %s\n", id,
                p.settings.off ? "is told to nobody: set JAEGER_ENDPOINT or OTEL_EXPORTER_OTLP_ENDPOINT" : p.operation);
        dprintf(STDOUT_FILENO, "%s", id);
    }
    free(p.tags.list.v);
    script_span_fini(&p.span);
    script_settings_fini(&p.settings);
    return code;
}
