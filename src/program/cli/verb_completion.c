/* SPDX-License-Identifier: MIT */
/* weft completion: what bash and zsh need to complete verbs, options and their values. Made from the tables of options,
 * so that it is complete by itself. */
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/settings.h"

/* Options whose value is one of a few words. */
static const struct {
    const char *name, *words;
} choices[] = {{"format", "table json csv"}, {"method", "local index broadcast"}, {"polling", "assume"}};
enum { N_CHOICES = sizeof choices / sizeof *choices };

static const char *choices_of(const struct cli_option *o)
{
    for (size_t i = 0; i < N_CHOICES; i++)
        if (!strcmp(choices[i].name, o->name))
            return choices[i].words;
    return NULL;
}

static bool is_file(const struct cli_option *o)
{
    return o->value && (!strcmp(o->value, "FILE") || !strncmp(o->value, "DIR", 3));
}

static bool is_shown(const struct cli_option *o)
{
    return o->type != CLI_NOTHING && o->type != CLI_REFUSED;
}

static bool takes_value(const struct cli_option *o)
{
    return o->type != CLI_FLAG;
}

/* Appends the words that a verb takes as its first argument: those of "table|stats [FILE…]", the verbs for "[VERB]".
 * Nothing for other verbs, whose arguments are files. */
static void put_first_words(struct text *t, const struct cli_verb *verb)
{
    size_t n = strcspn(verb->arguments, " ");
    if (!strcmp(verb->arguments, "[VERB]")) {
        for (size_t i = 0; cli_verbs[i]; i++)
            text_printf(t, "%s%s", i ? " " : "", cli_verbs[i]->name);
    } else if (memchr(verb->arguments, '|', n)) {
        for (size_t i = 0; i < n; i++)
            text_putc(t, verb->arguments[i] == '|' ? ' ' : verb->arguments[i]);
    }
}

/* ---- bash ---- */

static void put_names(struct text *t, const struct cli_option *o, bool valued_only)
{
    for (; o->name; o++)
        if (is_shown(o) && (!valued_only || takes_value(o)))
            text_printf(t, " --%s", o->name);
}

/* A case of the function: the words, and what stands behind which option. */
static void bash_verb(void *arg, const struct cli_verb *verb, const struct cli_option *options)
{
    struct text *t = arg;
    text_printf(t, "    %s)\n        options='", verb->name);
    put_names(t, options, false);
    put_names(t, cli_common_options, false);
    text_puts(t, "'\n        valued='");
    put_names(t, options, true);
    text_puts(t, " '\n        first='");
    put_first_words(t, verb);
    text_puts(t, "'\n        ;;\n");
}

static void write_bash(struct text *t)
{
    text_puts(t,
        "# weft: completion for bash. Source it, or put it where bash-completion looks.\n"
        "_weft() {\n"
        "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} options= valued= first=\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" = 1 ]; then\n"
        "        COMPREPLY=($(compgen -W 'help --version");
    for (size_t i = 0; cli_verbs[i]; i++)
        text_printf(t, " %s", cli_verbs[i]->name);
    text_puts(t, "' -- \"$word\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n");
    for (size_t i = 0; cli_verbs[i]; i++)
        cli_survey_verb(cli_verbs[i], bash_verb, t);
    text_puts(t, "    help)\n        first='");
    for (size_t i = 0; cli_verbs[i]; i++)
        text_printf(t, " %s", cli_verbs[i]->name);
    text_puts(t,
        "'\n        ;;\n    esac\n"
        "    case $before in\n");
    for (size_t i = 0; i < N_CHOICES; i++)
        text_printf(
            t, "    --%s) COMPREPLY=($(compgen -W '%s' -- \"$word\")); return ;;\n", choices[i].name, choices[i].words);
    text_puts(t,
        "    esac\n"
        "    case $valued in\n"
        "    *\" $before \"*) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n"
        "    esac\n"
        "    case $word in\n"
        "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$word\")) ;;\n"
        "    *)\n"
        "        if [ \"$COMP_CWORD\" = 2 ] && [ -n \"$first\" ]; then\n"
        "            COMPREPLY=($(compgen -W \"$first\" -- \"$word\"))\n"
        "        else\n"
        "            compopt -o filenames 2>/dev/null\n"
        "            COMPREPLY=($(compgen -f -- \"$word\"))\n"
        "        fi\n"
        "        ;;\n"
        "    esac\n"
        "}\n"
        "complete -F _weft weft\n");
}

/* ---- zsh ---- */

/* Writes a help, and escapes characters that would end a description or its quotes. */
static void put_help(struct text *t, const char *s)
{
    for (; *s; s++) {
        if (*s == '\'') {
            text_puts(t, "'\\''");
        } else {
            if (strchr("[]:\\", *s))
                text_putc(t, '\\');
            text_putc(t, *s);
        }
    }
}

static void zsh_options(struct text *t, const struct cli_option *o)
{
    for (; o->name; o++) {
        if (!is_shown(o))
            continue;
        text_printf(
            t, " \\\n            '%s--%s%s[", o->type == CLI_LIST ? "*" : "", o->name, takes_value(o) ? "=" : "");
        put_help(t, o->help);
        text_putc(t, ']');
        if (takes_value(o)) {
            text_putc(t, ':');
            put_help(t, o->value ? o->value : "value");
            text_putc(t, ':');
            if (choices_of(o))
                text_printf(t, "(%s)", choices_of(o));
            else if (is_file(o))
                text_puts(t, "_files");
        }
        text_putc(t, '\'');
    }
}

static void zsh_verb(void *arg, const struct cli_verb *verb, const struct cli_option *options)
{
    struct text *t = arg;
    text_printf(t, "    %s)\n        _arguments -s", verb->name);
    zsh_options(t, options);
    zsh_options(t, cli_common_options);
    struct text words = {.fd = -1};
    put_first_words(&words, verb);
    if (words.n)
        text_printf(t, " \\\n            '1:what:(%s)'", text_cstr(&words));
    text_fini(&words);
    text_puts(t, " \\\n            '*:file:_files'\n        ;;\n");
}

static void write_zsh(struct text *t)
{
    text_puts(t,
        "#compdef weft\n# weft: completion for zsh.\n_weft() {\n    if ((CURRENT == 2)); then\n"
        "        local -a verbs\n        verbs=(");
    for (size_t i = 0; cli_verbs[i]; i++) {
        text_printf(t, "\n            '%s:", cli_verbs[i]->name);
        put_help(t, cli_verbs[i]->summary);
        text_putc(t, '\'');
    }
    text_puts(t,
        ")\n        _describe verb verbs\n        return\n    fi\n"
        "    local verb=$words[2]\n    shift words\n    ((CURRENT--))\n    case $verb in\n");
    for (size_t i = 0; cli_verbs[i]; i++)
        cli_survey_verb(cli_verbs[i], zsh_verb, t);
    text_puts(t, "    esac\n}\n_weft \"$@\"\n");
}

static int run(int argc, char **argv)
{
    static const struct cli_option options[] = {{0}};
    struct err e = {0};
    int n, code = cli_parse(&verb_completion, options, argc, argv, &n);
    if (code >= 0)
        return code;
    bool bash = n == 1 && !strcmp(argv[1], "bash"), zsh = n == 1 && !strcmp(argv[1], "zsh");
    if (!bash && !zsh) {
        err_set(&e, ERR_ARG, "completion: give a shell, bash or zsh");
        return cli_fail(&e);
    }
    struct text out = TEXT_TO(STDOUT_FILENO);
    (bash ? write_bash : write_zsh)(&out);
    return cli_finish(&out, CLI_OK);
}

const struct cli_verb verb_completion = {"completion", "bash|zsh", "print a completion script for bash or zsh",
    "weft completion bash > ~/.local/share/bash-completion/completions/weft", run};
