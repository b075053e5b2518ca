/* SPDX-License-Identifier: MIT */
/* Options by table: parsing and the help text. */
#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "base/near.h"
#include "cli/settings.h"

const struct cli_option cli_common_options[] = {
    {"help", 'h', CLI_FLAG, NULL, "show this text", &cli_settings.help},
    {"no-color", 0, CLI_FLAG, NULL, "no colours (as NO_COLOR=1 in the environment)", &cli_settings.no_color},
    {"quiet", 'q', CLI_FLAG, NULL, "no notes on stderr, only errors", &cli_settings.quiet},
    {0},
};

/* `into` of strings that come from settings. */
static VEC(const void *) from_settings;

/* ---- help ---- */

/* Cells of "  -b, --begin TIME". */
static size_t label_cells(const struct cli_option *o)
{
    size_t n = 6 + 2 + strlen(o->name);
    return o->value ? n + 1 + text_cells(o->value, strlen(o->value)) : n;
}

static bool is_shown(const struct cli_option *o)
{
    return o->type != CLI_NOTHING && o->type != CLI_REFUSED;
}

static size_t widest_label(const struct cli_option *o, size_t widest)
{
    for (; o->name; o++)
        if (is_shown(o) && label_cells(o) > widest)
            widest = label_cells(o);
    return widest;
}

/* Words broken into lines from column `indent` on; the first line begins where the text stands. */
static void write_wrapped(struct text *t, const char *s, size_t indent, size_t width)
{
    size_t room = width > indent + 20 ? width - indent : 20, used = 0;
    while (*s) {
        size_t n = strcspn(s, " "), cells = text_cells(s, n);
        if (used && used + 1 + cells > room) {
            text_putc(t, '\n');
            text_fill(t, ' ', indent);
            used = 0;
        } else if (used) {
            text_putc(t, ' ');
            used++;
        }
        text_put(t, s, n);
        used += cells;
        s += n + strspn(s + n, " ");
    }
    text_putc(t, '\n');
}

static void write_options(struct text *t, const struct cli_option *o, size_t column, size_t width)
{
    for (; o->name; o++) {
        if (!is_shown(o))
            continue;
        if (o->letter)
            text_printf(t, "  -%c, --%s", o->letter, o->name);
        else
            text_printf(t, "      --%s", o->name);
        if (o->value)
            text_printf(t, " %s", o->value);
        text_fill(t, ' ', column - label_cells(o));
        write_wrapped(t, o->help, column, width);
    }
}

void cli_help_status(int width, struct text *t)
{
    const char *name = "Exit status: ";
    text_puts(t, name);
    write_wrapped(t,
        "0 all was read, 1 nothing useful, 2 wrong use, 3 answered, but parts of the input were damaged or missing",
        strlen(name), width > 0 ? (size_t)width : 100);
}

void cli_help(const struct cli_verb *verb, const struct cli_option *options, int width, struct text *t)
{
    size_t columns = width > 0 ? (size_t)width : 100;
    size_t column = widest_label(cli_common_options, widest_label(options, 0)) + 2;
    text_printf(t, "Usage: weft %s [options] %s\n\n", verb->name, verb->arguments);
    text_fill(t, ' ', 2);
    write_wrapped(t, verb->summary, 2, columns);
    if (options->name) {
        text_puts(t, "\nOptions:\n");
        write_options(t, options, column, columns);
    }
    text_puts(t, "\nFor every verb:\n");
    write_options(t, cli_common_options, column, columns);
    text_putc(t, '\n');
    cli_help_status(width, t);
    if (verb->example)
        text_printf(t, "\nExample:\n  %s\n", verb->example);
}

/* ---- parsing ---- */

struct parse {
    const struct cli_verb *verb;
    const struct cli_option *options;
    int argc;
    char **argv;
    int at; /* the argument being read */
    enum cli_level level;
    VEC(struct {
        const void *into;
        enum cli_level level;
    })
    lists; /* current values and the level they come from */
    struct err e;
};

static const struct cli_option *find_in(const struct cli_option *o, const char *name, size_t n, char letter)
{
    for (; o->name; o++)
        if (name ? strlen(o->name) == n && memcmp(o->name, name, n) == 0 : o->letter == letter)
            return o;
    return NULL;
}

/* The verb's own options come first: a verb may give -q another meaning. */
static const struct cli_option *find(const struct parse *p, const char *name, size_t n, char letter)
{
    const struct cli_option *o = find_in(p->options, name, n, letter);
    return o ? o : find_in(cli_common_options, name, n, letter);
}

static int unknown_option(struct parse *p, const char *name, size_t n)
{
    const char *names[128];
    size_t count = 0;
    for (const struct cli_option *o = p->options; o->name && count < 120; o++)
        if (is_shown(o))
            names[count++] = o->name;
    for (const struct cli_option *o = cli_common_options; o->name; o++)
        names[count++] = o->name;
    names[count] = NULL;
    char typed[64];
    size_t length = n < sizeof typed - 1 ? n : sizeof typed - 1;
    memcpy(typed, name, length);
    typed[length] = '\0';
    const char *near = near_name(typed, names);
    if (near)
        return err_set(&p->e, ERR_ARG, "%s: no option --%.*s; did you mean --%s?", p->verb->name, (int)n, name, near);
    return err_set(
        &p->e, ERR_ARG, "%s: no option --%.*s; try: weft %s --help", p->verb->name, (int)n, name, p->verb->name);
}

static int bad_value(struct parse *p, const struct cli_option *o, const char *value, const char *expected)
{
    return err_set(&p->e, ERR_ARG, "%s: --%s \"%s\": %s is expected", p->verb->name, o->name, value, expected);
}

static int out_of_range(struct parse *p, const struct cli_option *o, const char *value)
{
    char expected[96];
    if (o->most)
        snprintf(
            expected, sizeof expected, "a whole number from %lld to %lld", (long long)o->least, (long long)o->most);
    else
        snprintf(expected, sizeof expected, "a whole number, %lld or more", (long long)o->least);
    return bad_value(p, o, value, expected);
}

/* Decimal, or hexadecimal with 0x. strtoll alone would skip blanks and take a leading 0 for octal. */
static int store_int(struct parse *p, const struct cli_option *o, const char *value)
{
    const char *digits = value + (*value == '-' || *value == '+');
    bool hex = digits[0] == '0' && (digits[1] | 0x20) == 'x';
    char *end;
    errno = 0;
    long long v = strtoll(value, &end, hex ? 16 : 10);
    if (!isxdigit((unsigned char)digits[hex ? 2 : 0]) || *end || errno || v < o->least || (o->most && v > o->most))
        return out_of_range(p, o, value);
    *(int64_t *)o->into = v;
    return ERR_OK;
}

/* Adds a value to a list. Values of higher priority replace those of lower priority. */
static void add_to_list(struct parse *p, const struct cli_option *o, const char *value)
{
    struct cli_list *list = o->into;
    size_t i = 0;
    while (i < p->lists.n && p->lists.v[i].into != list)
        i++;
    if (i == p->lists.n)
        vec_push(&p->lists, ((typeof(*p->lists.v)){list, p->level}));
    if (p->lists.v[i].level < p->level)
        list->n = 0;
    p->lists.v[i].level = p->level;
    vec_push(list, value);
}

static int store_value(struct parse *p, const struct cli_option *o, const char *value)
{
    char *end;
    errno = 0;
    switch (o->type) {
    case CLI_FLAG: *(bool *)o->into = true; break;
    case CLI_STRING: *(const char **)o->into = value; break;
    case CLI_LIST: add_to_list(p, o, value); break;
    case CLI_INT: return store_int(p, o, value);
    case CLI_FLOAT: {
        double v = strtod(value, &end);
        if (end == value || *end || errno || v != v)
            return bad_value(p, o, value, "a number");
        *(double *)o->into = v;
        break;
    }
    }
    return ERR_OK;
}

static bool has_no_value(const struct cli_option *o)
{
    return o->type == CLI_FLAG || o->type == CLI_NOTHING || o->type == CLI_REFUSED;
}

static void is_argument(const void *into)
{
    for (size_t i = 0; i < from_settings.n; i++)
        if (from_settings.v[i] == into)
            from_settings.v[i] = NULL;
}

/* `value` stands in the same argument, or is NULL: then it is the next one. */
static int take_option(struct parse *p, const struct cli_option *o, const char *value)
{
    if (o->type == CLI_REFUSED)
        return err_set(&p->e, ERR_ARG, "%s: no option --%s: %s", p->verb->name, o->name, o->help);
    if (has_no_value(o)) {
        if (value)
            return err_set(&p->e, ERR_ARG, "%s: --%s takes no value", p->verb->name, o->name);
    } else if (!value) {
        if (p->at + 1 >= p->argc)
            return err_set(&p->e, ERR_ARG, "%s: --%s needs a value: --%s %s", p->verb->name, o->name, o->name,
                o->value ? o->value : "VALUE");
        value = p->argv[++p->at];
    }
    is_argument(o->into);
    return store_value(p, o, value);
}

static int take_long(struct parse *p, const char *name)
{
    const char *equals = strchr(name, '=');
    size_t n = equals ? (size_t)(equals - name) : strlen(name);
    const struct cli_option *o = find(p, name, n, 0);
    return o ? take_option(p, o, equals ? equals + 1 : NULL) : unknown_option(p, name, n);
}

/* "-ab": flags together; "-n5": the rest is the value of the first option that has one. */
static int take_letters(struct parse *p, const char *s)
{
    for (; *s; s++) {
        const struct cli_option *o = find(p, NULL, 0, *s);
        if (!o)
            return err_set(&p->e, ERR_ARG, "%s: no option -%c; try: weft %s --help", p->verb->name, *s, p->verb->name);
        if (!has_no_value(o))
            return take_option(p, o, s[1] ? s + 1 : NULL);
        int code = take_option(p, o, NULL);
        if (code)
            return code;
    }
    return ERR_OK;
}

/* ---- settings ---- */

static int take_flag(struct parse *p, const struct cli_option *o, const char *value)
{
    static const char *const words[] = {"yes", "true", "on", "1", "", "no", "false", "off", "0"};
    size_t i = 0, n = sizeof words / sizeof *words;
    while (i < n && strcmp(words[i], value) != 0)
        i++;
    if (i == n)
        return bad_value(p, o, value, "yes or no");
    *(bool *)o->into = i < 5;
    return 0;
}

static int take_setting(void *arg, const struct cli_option *o, const struct cli_setting *s, struct err *e)
{
    struct parse *p = arg;
    p->level = s->level;
    int rc = o->type == CLI_FLAG ? take_flag(p, o, s->value)
        : *s->value              ? store_value(p, o, s->value)
                                 : bad_value(p, o, s->value, o->value ? o->value : "a value");
    if (!rc && o->type == CLI_STRING)
        vec_push(&from_settings, o->into);
    if (rc) {
        *e = p->e;
        err_wrap(e, "%s", s->origin);
    }
    return rc;
}

bool cli_is_setting(const void *into)
{
    for (size_t i = 0; i < from_settings.n; i++)
        if (from_settings.v[i] == into)
            return true;
    return false;
}

static int finish_parse(struct parse *p, bool failed)
{
    vec_free(&p->lists);
    return failed ? cli_fail(&p->e) : -1;
}

int cli_parse(const struct cli_verb *verb, const struct cli_option *options, int argc, char **argv, int *n)
{
    struct parse p = {.verb = verb, .options = options, .argc = argc, .argv = argv};
    bool ended = false;
    *n = 0;
    if (cli_survey) {
        cli_survey(cli_survey_arg, verb, options);
        return CLI_OK;
    }
    if (cli_settings_for(verb->name, options, take_setting, &p, &p.e))
        return finish_parse(&p, true);
    p.level = CLI_ARGUMENT;
    for (p.at = 1; p.at < argc; p.at++) {
        char *s = argv[p.at];
        int code = ERR_OK;
        if (ended || s[0] != '-' || !s[1])
            argv[1 + (*n)++] = s;
        else if (s[1] != '-')
            code = take_letters(&p, s + 1);
        else if (!s[2])
            ended = true;
        else
            code = take_long(&p, s + 2);
        if (code)
            return finish_parse(&p, true);
    }
    if (1 + *n < argc)
        argv[1 + *n] = NULL;
    if (!cli_settings.help)
        return finish_parse(&p, false);
    vec_free(&p.lists);
    struct text out = TEXT_TO(STDOUT_FILENO);
    cli_help(verb, options, cli_width(), &out);
    return cli_finish(&out, CLI_OK);
}
