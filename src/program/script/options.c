/* SPDX-License-Identifier: MIT */
/* Options of weft-span. */
#include "script/options.h"

#include <stddef.h>
#include <stdio.h>

#include "base/near.h"

enum {
    BEGINS = SCRIPT_RUN | SCRIPT_START | SCRIPT_EMIT,
    ENDS = SCRIPT_END | SCRIPT_EMIT,
    ALL = SCRIPT_RUN | SCRIPT_START | SCRIPT_END | SCRIPT_EVENT | SCRIPT_EMIT | SCRIPT_CONTEXT | SCRIPT_FLUSH
};

const struct script_option script_options[] = {
    {"name", 'n', "NAME", "of the span (run: the command's name if not given), or of the event", BEGINS | SCRIPT_EVENT},
    {"attribute", 'a', "KEY=VALUE", "attribute of the span or event; several may be given",
        BEGINS | ENDS | SCRIPT_EVENT},
    {"service", 's', "NAME", "name of the service, in place of OTEL_SERVICE_NAME", BEGINS},
    {"kind", 'k', "KIND", "internal (default), server, client, producer or consumer", BEGINS},
    {"start", 0, "TIME", "when it began: since the epoch in s, ms, µs or ns; or ISO 8601", SCRIPT_START | SCRIPT_EMIT},
    {"end", 0, "TIME", "when it ended (default: now)", ENDS},
    {"status", 0, "STATUS", "ok or error", ENDS},
    {"message", 'm', "TEXT", "why it is an error", ENDS},
    {"format", 'f', "FORMAT", "export (default), traceparent, uber or b3: how the context is printed", SCRIPT_CONTEXT},
    {0},
};

static const char **place_of(struct script_arguments *a, const char *name)
{
    const struct {
        const char *name, **into;
    } places[] = {{"name", &a->name}, {"service", &a->service}, {"kind", &a->kind}, {"start", &a->start},
        {"end", &a->end}, {"status", &a->status}, {"message", &a->message}, {"format", &a->format}};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        if (!strcmp(places[i].name, name))
            return places[i].into;
    return NULL;
}

static const struct script_option *find(unsigned command, const char *name, size_t n, char letter)
{
    for (const struct script_option *o = script_options; o->name; o++)
        if (o->commands & command && (name ? strlen(o->name) == n && !memcmp(o->name, name, n) : o->letter == letter))
            return o;
    return NULL;
}

static int unknown(unsigned command, const char *s, struct err *e)
{
    const char *names[16] = {0};
    size_t n = 0;
    for (const struct script_option *o = script_options; o->name && n < 15; o++)
        if (o->commands & command)
            names[n++] = o->name;
    const char *near = s[1] == '-' ? near_name(s + 2, names) : NULL;
    return near ? err_set(e, ERR_ARG, "no option %.100s here; did you mean --%s?", s, near)
                : err_set(e, ERR_ARG, "no option %.100s here; try: weft-span --help", s);
}

/* Takes an option that every command has. */
static bool take_common(struct script_arguments *a, const char *s)
{
    bool help = !strcmp(s, "--help") || !strcmp(s, "-h"), quiet = !strcmp(s, "--quiet") || !strcmp(s, "-q");
    a->help |= help;
    a->quiet |= quiet;
    return help || quiet || !strcmp(s, "--no-color");
}

/* An option at argv[*i], and its value, which may be the next argument. */
static int take_option(struct script_arguments *a, unsigned command, int argc, char **argv, int *i, struct err *e)
{
    const char *s = argv[*i], *equals = s[1] == '-' ? strchr(s, '=') : NULL;
    const struct script_option *o = s[1] == '-'
        ? find(command, s + 2, equals ? (size_t)(equals - s) - 2 : strlen(s + 2), 0)
        : find(command, NULL, 0, s[1]);
    if (!o)
        return unknown(command, s, e);
    const char *value = equals ? equals + 1 : s[1] != '-' && s[2] ? s + 2 : NULL;
    if (!value && *i + 1 < argc && !(command == SCRIPT_RUN && !strcmp(argv[*i + 1], "--")))
        value = argv[++*i];
    if (!value)
        return err_set(e, ERR_ARG, "--%s needs a value: --%s %s", o->name, o->name, o->value);
    if (!strcmp(o->name, "attribute"))
        vec_push(&a->attributes, value);
    else
        *place_of(a, o->name) = value;
    return ERR_OK;
}

/* Returns the place before the command of `run`, if the argument at `i` is not understood. */
static int skip_to_command(int argc, char **argv, int i)
{
    bool value = false; /* next argument may be an option's value */
    for (int k = i; k < argc; k++) {
        if (k > i && !strcmp(argv[k], "--"))
            return k - 1;
        if (argv[k][0] == '-')
            value = !strchr(argv[k], '=');
        else if (!value)
            break; /* the command has begun */
        else
            value = false;
    }
    return i;
}

int script_read_arguments(unsigned command, int argc, char **argv, struct script_arguments *a, struct err *e)
{
    *a = (struct script_arguments){.argv = argv};
    for (int i = 0; i < argc; i++) {
        char *s = argv[i];
        if (s[0] != '-' || !s[1] || !strcmp(s, "--")) {
            int skip = s[0] == '-' && s[1];
            if (command == SCRIPT_RUN || skip) {
                memmove(argv + a->n, argv + i + skip, sizeof *argv * (size_t)(argc - i - skip));
                a->n += argc - i - skip;
                break;
            }
            argv[a->n++] = s;
            continue;
        }
        if (take_common(a, s))
            continue;
        struct err problem = {0};
        int rc = take_option(a, command, argc, argv, &i, &problem);
        if (rc && command != SCRIPT_RUN) {
            *e = problem;
            return rc;
        }
        if (rc) {
            vec_push(&a->wrong, mem_strdup(problem.text));
            i = skip_to_command(argc, argv, i);
        }
    }
    argv[a->n] = NULL;
    return ERR_OK;
}

void script_arguments_fini(struct script_arguments *a)
{
    for (size_t i = 0; i < a->wrong.n; i++)
        free(a->wrong.v[i]);
    free(a->wrong.v);
    free(a->attributes.v);
}

void script_write_help(struct text *t)
{
    text_puts(t,
        "Usage: weft-span run [options] [--] COMMAND [ARGUMENT…]   runs it, and tells how long it took\n"
        "       id=$(weft-span start --name NAME [options])        begins a span\n"
        "       weft-span event [\"$id\"] --name NAME [options]      something that happened meanwhile\n"
        "       weft-span end \"$id\" [options]                      ends it\n"
        "       weft-span emit --name NAME --start TIME [options]  a span that has ended\n"
        "       weft-span context [\"$id\"] [--format FORMAT]        prints the context for children\n"
        "       weft-span flush                                    sends what could not be sent before\n\n"
        "  Spans from shell scripts, sent over OTLP/HTTP to OTEL_EXPORTER_OTLP_ENDPOINT\n"
        "  (default: http://127.0.0.1:4318, where weft collect listens).\n\n"
        "Options:\n");
    for (const struct script_option *o = script_options; o->name; o++) {
        char label[64];
        snprintf(label, sizeof label, "--%s %s", o->name, o->value);
        if (o->letter)
            text_printf(t, "  -%c, %-22s  %s\n", o->letter, label, o->help);
        else
            text_printf(t, "      %-22s  %s\n", label, o->help);
    }
    text_puts(t,
        "  -h, --help                  show this text\n"
        "  -q, --quiet                 no notes on stderr, only errors\n\n"
        "Exit status: of run, the command's (128 + N of a signal); else 0, also without a collector; 2 wrong use.\n"
        "flush: 1 something waits on, 3 something was refused or damaged.\n");
}
