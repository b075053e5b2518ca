/* SPDX-License-Identifier: MIT */
/* The commands of weft-span. */
#include "script/commands.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file.h"
#include "base/near.h"
#include "base/time.h"
#include "script/mark.h"
#include "script/open.h"
#include "script/options.h"
#include "script/run.h"
#include "script/script.h"
#include "script/spool.h"

static int fail(const struct err *e)
{
    dprintf(STDERR_FILENO, "weft-span: %s\n", e->text);
    return e->code == ERR_ARG ? SCRIPT_EXIT_USAGE : SCRIPT_EXIT_FAILED;
}

/* ---- new spans ---- */

/* Returns the sampler's decision for a new trace; the last digits of its id are the random number. */
static bool is_sampled(const struct script_settings *s, const struct script_context *c)
{
    if (s->share >= 1)
        return true;
    return (double)strtoull(c->trace_id + 16, NULL, 16) < s->share * 0x1p64;
}

void script_new_span(const struct script_settings *s, bool pfeil, struct script_span *span)
{
    struct script_context parent;
    struct text bad = {.fd = -1};
    *span = (struct script_span){.kind = SCRIPT_INTERNAL};
    bool found = script_find_context(pfeil, &parent, &bad);
    if (bad.n)
        script_note(s, "no context in %.*s: it is malformed%s", (int)bad.n, bad.v, found ? "" : ", a new trace begins");
    text_fini(&bad);
    span->context = parent;
    if (found) {
        strcpy(span->parent_id, parent.span_id);
        span->trace_state = pfeil ? NULL : script_find_trace_state();
    } else {
        script_new_trace_id(span->context.trace_id);
        if (!is_sampled(s, &span->context))
            span->context.flags &= ~(unsigned)SCRIPT_SAMPLED;
    }
    script_new_span_id(span->context.span_id);
}

static int take_kind(const char *given, struct script_span *span, struct err *e)
{
    static const char *const names[] = {"internal", "server", "client", "producer", "consumer", NULL};
    for (int i = 0; given && names[i]; i++)
        if (!strcmp(names[i], given)) {
            span->kind = i + 1;
            return ERR_OK;
        }
    return given
        ? err_set(e, ERR_ARG, "--kind \"%.100s\": internal, server, client, producer or consumer is expected", given)
        : ERR_OK;
}

static int take_status(const char *given, const char *message, struct script_span *span, struct err *e)
{
    if (message) {
        span->status = SCRIPT_ERROR;
        span->message = message;
    }
    if (!given)
        return ERR_OK;
    if (strcmp(given, "ok") != 0 && strcmp(given, "error") != 0)
        return err_set(e, ERR_ARG, "--status \"%.100s\": ok or error is expected", given);
    span->status = *given == 'o' ? SCRIPT_OK : SCRIPT_ERROR;
    return ERR_OK;
}

/* Units since the epoch by the number of digits, so that each is understood from 1973 on: s (`date +%s`), ms (Java,
 * JavaScript), µs, ns (`date +%s%N`). 0: `digits` is no such number. */
static int64_t unit_ns(size_t digits)
{
    return digits > 17 ? 0 : digits > 14 ? 1000 : digits > 10 ? 1000000 : digits ? 1000000000 : 0;
}

static int take_time(const char *option, const char *given, int64_t *out, struct err *e)
{
    size_t digits = strspn(given, "0123456789");
    if (*given == '+')
        return err_set(e, ERR_ARG, "--%s \"%.100s\": a time of its own is expected, none after another", option, given);
    int64_t unit = given[digits] ? 0 : unit_ns(digits);
    long long n = unit ? strtoll(given, NULL, 10) : 0;
    if (n && n > INT64_MAX / unit)
        return err_set(e, ERR_ARG, "--%s \"%.100s\" lies beyond what 64 bits of ns can say", option, given);
    int64_t ns = n * unit;
    if (!n && time_parse(given, 0, &ns, e))
        return err_wrap(e, "--%s", option);
    if (ns <= 0)
        return err_set(e, ERR_ARG, "--%s \"%.100s\" lies before 1970", option, given);
    *out = ns;
    return ERR_OK;
}

/* A script goes on without what makes no sense. */
static void leave_out(const struct script_settings *s, struct err *e)
{
    script_note(s, "%s; it is left out", e->text);
    *e = (struct err){0};
}

static void take_attributes(
    const struct script_settings *s, const struct script_arguments *a, struct script_attributes *out)
{
    for (size_t i = 0; i < a->attributes.n; i++) {
        char *given = (char *)a->attributes.v[i], *equals = strchr(given, '=');
        if (!equals || equals == given) {
            script_note(s, "--attribute \"%.100s\": KEY=VALUE is expected; it is left out", given);
            continue;
        }
        *equals = '\0';
        script_set_text(out, given, equals + 1);
    }
}

static void begin(
    struct script_settings *s, const struct script_arguments *a, const char *name, struct script_span *span)
{
    struct err e = {0};
    script_new_span(s, false, span);
    span->name = name;
    script_begin_clock(span);
    if (a->service && *a->service)
        script_set_service(s, a->service);
    if (take_kind(a->kind, span, &e))
        leave_out(s, &e);
    take_attributes(s, a, &span->attributes);
}

static int print_id(const struct script_span *span)
{
    char id[SCRIPT_CONTEXT_CHARS];
    script_write_traceparent(&span->context, id);
    dprintf(STDOUT_FILENO, "%s\n", id);
    return SCRIPT_EXIT_OK;
}

/* The span that is named, else the one that the environment is within. Not an error: a script goes on without its
 * span. */
static bool find_span(const struct script_settings *s, const struct script_arguments *a, struct script_context *out)
{
    struct text bad = {.fd = -1};
    bool found = a->n ? script_read_context(a->argv[0], out) : script_find_context(false, out, &bad);
    if (!found)
        script_note(s, a->n ? "\"%.100s\" is no id of a span" : "no span is named, and the environment has none%.0s",
            a->n ? a->argv[0] : "");
    text_fini(&bad);
    return found;
}

/* ---- the commands ---- */

static int run(struct script_settings *s, struct script_arguments *a, struct script_span *span, struct err *e)
{
    if (!a->n)
        return err_set(e, ERR_ARG, "run: which command? Try: weft-span run --name NAME -- COMMAND");
    for (size_t i = 0; i < a->wrong.n; i++)
        script_note(s, "%s; it is left out", a->wrong.v[i]);
    begin(s, a, a->name && *a->name ? a->name : file_name(a->argv[0]), span);
    return script_run(s, span, a->argv, false);
}

/* Reports the open span in a separate process, unless it has ended by then. */
static void announce_later(const struct script_settings *s, struct script_span *span)
{
    if (!script_announces(s) || fork() != 0)
        return;
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        script_let_go(fd);
    usleep(SCRIPT_OPEN_AFTER_MS * 1000);
    if (script_is_open(s, &span->context))
        script_announce(s, span);
    _exit(0);
}

static int start(struct script_settings *s, struct script_arguments *a, struct script_span *span, struct err *e)
{
    struct err problem = {0};
    if (!a->name)
        return err_set(e, ERR_ARG, "start: of which name? Try: id=$(weft-span start --name NAME)");
    begin(s, a, a->name, span);
    if (a->start && take_time("start", a->start, &span->start_ns, &problem))
        leave_out(s, &problem);
    else if (a->start)
        span->monotonic_ns = 0;
    span->process = getppid();
    script_mark_begin(s, span, getppid());
    if (!s->off && span->context.flags & SCRIPT_SAMPLED) {
        int lost = script_open_keep(s, span, &problem);
        script_add_number(&span->attributes, "process.pid", span->process);
        if (lost)
            script_note(s, "this span will be lost: %s", problem.text);
        else
            announce_later(s, span);
    }
    return print_id(span);
}

static int end(struct script_settings *s, struct script_arguments *a, struct script_span *span, struct err *e)
{
    struct script_context id;
    struct err problem = {0};
    if (!a->n)
        return err_set(e, ERR_ARG, "end: which span? Try: weft-span end \"$id\", with what start printed");
    if (s->off || !find_span(s, a, &id) || !(id.flags & SCRIPT_SAMPLED))
        return SCRIPT_EXIT_OK;
    if (script_open_read(s, &id, span, &problem)) {
        script_note(s, "%.100s is not open here: %s", a->argv[0], problem.text);
        return SCRIPT_EXIT_OK;
    }
    script_mark_end(s, span);
    take_attributes(s, a, &span->attributes);
    if (take_status(a->status, a->message, span, &problem))
        leave_out(s, &problem);
    int rc = a->end ? take_time("end", a->end, &span->end_ns, &problem) : ERR_OK;
    if (!rc && a->end && span->end_ns < span->start_ns)
        rc = err_set(&problem, ERR_ARG, "--end \"%.100s\" lies before the span's start", a->end);
    if (rc)
        leave_out(s, &problem);
    if (rc || !a->end)
        script_end_clock(span);
    bool taken = script_deliver(s, span);
    script_open_remove(s, &id);
    if (taken)
        script_spool_send_some(s);
    return SCRIPT_EXIT_OK;
}

static int event(struct script_settings *s, struct script_arguments *a, struct script_span *span, struct err *e)
{
    struct script_context id;
    struct script_event new = {.time_ns = time_now_ns(), .name = a->name};
    struct err problem = {0};
    if (!a->name)
        return err_set(e, ERR_ARG, "event: of which name? Try: weft-span event \"$id\" --name NAME");
    take_attributes(s, a, &new.attributes);
    if (!s->off && find_span(s, a, &id) && id.flags & SCRIPT_SAMPLED && script_open_add_event(s, &id, &new, &problem))
        script_note(s, "the event is lost: %s", problem.text);
    free(new.attributes.list.v);
    return SCRIPT_EXIT_OK;
}

static int emit(struct script_settings *s, struct script_arguments *a, struct script_span *span, struct err *e)
{
    if (!a->name || !a->start)
        return err_set(e, ERR_ARG, "emit: --name and --start are needed; --end is now if not given");
    struct err problem = {0};
    begin(s, a, a->name, span);
    if (take_status(a->status, a->message, span, &problem))
        leave_out(s, &problem);
    int rc = take_time("start", a->start, &span->start_ns, e);
    span->end_ns = time_now_ns();
    if (!rc && a->end)
        rc = take_time("end", a->end, &span->end_ns, e);
    if (!rc && span->end_ns < span->start_ns)
        rc = err_set(e, ERR_ARG, "emit: the end lies before the start");
    if (rc)
        return rc;
    bool taken = script_deliver(s, span);
    rc = print_id(span);
    if (taken)
        script_spool_send_some(s);
    return rc;
}

static int context(struct script_settings *s, struct script_arguments *a, struct script_span *span, struct err *e)
{
    static const char *const formats[] = {"export", "traceparent", "uber", "b3", NULL};
    char w3c[SCRIPT_CONTEXT_CHARS], uber[SCRIPT_CONTEXT_CHARS], b3[SCRIPT_CONTEXT_CHARS];
    int format = 0;
    while (a->format && formats[format] && strcmp(formats[format], a->format) != 0)
        format++;
    if (!formats[format])
        return err_set(e, ERR_ARG, "--format \"%.100s\": export, traceparent, uber or b3 is expected", a->format);
    script_new_span(s, false, span);
    if (*span->parent_id)
        strcpy(span->context.span_id, span->parent_id);
    if (a->n)
        find_span(s, a, &span->context);
    script_write_traceparent(&span->context, w3c);
    script_write_uber(&span->context, "", uber);
    script_write_b3(&span->context, b3);
    if (format == 0)
        dprintf(STDOUT_FILENO, "export TRACEPARENT=%s UBER_TRACE_ID=%s TRACE_ID=%s B3=%s\n", w3c, uber, uber, b3);
    else
        dprintf(STDOUT_FILENO, "%s\n", format == 1 ? w3c : format == 2 ? uber : b3);
    return SCRIPT_EXIT_OK;
}

static int flush(struct script_settings *s, struct script_arguments *a, struct script_span *span, struct err *e)
{
    struct script_flushed done;
    script_spool_tidy(s);
    size_t lost = script_open_collect_lost(s);
    if (lost)
        script_note(s, "%zu spans were never ended: their scripts are gone", lost);
    if (s->unusable || s->thrift)
        return err_set(e, ERR_IO,
            "what waits in %s is sent over OTLP: set OTEL_EXPORTER_OTLP_ENDPOINT=http://HOST:4318", s->spool);
    int rc = script_spool_flush(s, &done, e);
    if (done.busy)
        script_note(s, "another flush is at work");
    if (done.sent)
        script_note(s, "%llu spans sent", (unsigned long long)done.sent);
    if (done.refused || done.damaged)
        script_note(s, "%llu spans were refused, %llu lines were damaged: they are gone",
            (unsigned long long)done.refused, (unsigned long long)done.damaged);
    return rc ? rc : done.refused || done.damaged ? SCRIPT_EXIT_PARTIAL : SCRIPT_EXIT_OK;
}

/* ---- the program ---- */

/* Commands. Each returns an exit status, or a negative error in `e`. */
static const struct command {
    const char *name;
    unsigned bit;
    int most_arguments;
    int (*run)(struct script_settings *, struct script_arguments *, struct script_span *, struct err *);
} commands[] = {
    {"run", SCRIPT_RUN, -1, run},
    {"start", SCRIPT_START, 0, start},
    {"end", SCRIPT_END, 1, end},
    {"event", SCRIPT_EVENT, 1, event},
    {"emit", SCRIPT_EMIT, 0, emit},
    {"context", SCRIPT_CONTEXT, 1, context},
    {"flush", SCRIPT_FLUSH, 0, flush},
};
enum { N_COMMANDS = sizeof commands / sizeof *commands };

static int show_help(int fd)
{
    struct text t = TEXT_TO(fd);
    script_write_help(&t);
    int rc = text_drain(&t, 0, NULL);
    text_fini(&t);
    return rc ? SCRIPT_EXIT_FAILED : fd == STDOUT_FILENO ? SCRIPT_EXIT_OK : SCRIPT_EXIT_USAGE;
}

static int unknown_command(const char *name)
{
    const char *names[N_COMMANDS + 1] = {0};
    struct err e = {0};
    for (size_t i = 0; i < N_COMMANDS; i++)
        names[i] = commands[i].name;
    const char *near = near_name(name, names);
    if (near)
        err_set(&e, ERR_ARG, "no command \"%.100s\"; did you mean %s?", name, near);
    else
        err_set(&e, ERR_ARG, "no command \"%.100s\"; weft-span --help lists them", name);
    return fail(&e);
}

static int run_command(const struct command *c, int argc, char **argv)
{
    struct script_arguments a;
    struct script_settings settings = {0};
    struct script_span span = {0};
    struct err e = {0};
    int code = script_read_arguments(c->bit, argc, argv, &a, &e);
    if (!code && a.help) {
        code = show_help(STDOUT_FILENO);
    } else if (!code && c->most_arguments >= 0 && a.n > c->most_arguments) {
        code = err_set(&e, ERR_ARG, "%s: \"%.100s\" is one argument too many", c->name, a.argv[c->most_arguments]);
    } else if (!code) {
        script_read_settings(&settings, false, a.quiet);
        code = c->run(&settings, &a, &span, &e);
    }
    if (code < 0)
        code = fail(&e);
    script_span_fini(&span);
    script_settings_fini(&settings);
    script_arguments_fini(&a);
    return code;
}

/* A caller may have closed them: notes would go into a file of the spool that was opened as number 2. The command that
 * is run finds them closed. */
static void occupy_streams(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int script_main(int argc, char **argv)
{
    occupy_streams();
    script_quiet_signals();
    if (argc > 0 && !strcmp(file_name(argv[0]), "pfeil"))
        return script_pfeil(argc, argv);
    if (argc < 2)
        return show_help(STDERR_FILENO);
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help"))
        return show_help(STDOUT_FILENO);
    if (!strcmp(argv[1], "--version") || !strcmp(argv[1], "-V"))
        return dprintf(STDOUT_FILENO, "weft-span " WEFT_VERSION "\n") < 0;
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (!strcmp(commands[i].name, argv[1]))
            return run_command(&commands[i], argc - 2, argv + 2);
    return unknown_command(argv[1]);
}
