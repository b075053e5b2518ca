/* SPDX-License-Identifier: MIT */
/* Options from files and the environment. */
#include "cli/settings.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/file.h"
#include "base/mem.h"

#define SYSTEM_FILE "/etc/weft/weft.conf"
enum { MOST_BYTES = 1 << 20 };

static struct {
    struct arena arena;
    VEC(struct cli_setting) v;
    const char *files[3];
    bool read;
} all;

/* Names the file of settings; so no option --config is set by it. */
static const char files_variable[] = "WEFT_CONFIG";

/* ---- files ---- */

const char *const *cli_settings_files(void)
{
    const char *only = getenv(files_variable), *home = getenv("XDG_CONFIG_HOME"), *below = "";
    if (all.files[0])
        return all.files;
    if (only && *only) {
        all.files[0] = arena_strdup(&all.arena, only);
        return all.files;
    }
    all.files[0] = SYSTEM_FILE;
    if (!home || !*home) {
        home = getenv("HOME");
        below = "/.config";
    }
    if (home && *home)
        all.files[1] = arena_printf(&all.arena, "%s%s/weft/weft.conf", home, below);
    return all.files;
}

static char *trimmed(char *s)
{
    while (isspace((unsigned char)*s))
        s++;
    char *end = s + strlen(s);
    while (end > s && isspace((unsigned char)end[-1]))
        *--end = 0;
    return s;
}

/* "[critpath]", "timeout = 10s", "no-color", "# anything". *section: that of the lines that follow. */
static int read_line(char *line, const char *origin, enum cli_level level, const char **section, struct err *e)
{
    char *s = trimmed(line), *equals = strchr(s, '=');
    if (!*s || *s == '#' || *s == ';')
        return 0;
    if (*s == '[') {
        size_t n = strlen(s);
        if (n < 3 || s[n - 1] != ']')
            return err_set(e, ERR_ARG, "%s: a section is a verb in brackets, [critpath]", origin);
        s[n - 1] = 0;
        *section = trimmed(s + 1);
        return 0;
    }
    if (equals)
        *equals = 0;
    const char *name = trimmed(s);
    if (!*name || *name == '-' || strcspn(name, " \t") != strlen(name))
        return err_set(e, ERR_ARG,
            "%s: a setting is the name of an option without its dashes, and its value: timeout = 10s", origin);
    struct cli_setting new = {*section, name, equals ? trimmed(equals + 1) : "", origin, level};
    vec_push(&all.v, new);
    return 0;
}

static int read_file(const char *path, enum cli_level level, struct err *e)
{
    const char *section = NULL;
    char *data;
    size_t n;
    const char *only = getenv(files_variable);
    bool absent = access(path, F_OK) && (errno == ENOENT || errno == ENOTDIR);
    if (absent && only && !strcmp(path, only))
        return err_set(e, ERR_ARG, "%s=%s: there is no such file; name one that exists, or /dev/null for no settings",
            files_variable, path);
    if (absent || !strcmp(path, "/dev/null"))
        return 0;
    int rc = file_read(path, MOST_BYTES, &data, &n, e);
    if (rc)
        return rc;
    char *text = arena_strndup(&all.arena, data, n);
    free(data);
    for (int number = 1; text && !rc; number++) {
        char *line = strsep(&text, "\n");
        rc = read_line(line, arena_printf(&all.arena, "%s:%d", path, number), level, &section, e);
    }
    return rc;
}

int cli_settings_read(const struct cli_setting **out, size_t *n, struct err *e)
{
    const char *const *files = cli_settings_files();
    int rc = 0;
    for (int i = 0; !all.read && !rc && files[i]; i++)
        rc = read_file(files[i], i ? CLI_USER : CLI_SYSTEM, e);
    all.read = true;
    *out = all.v.v;
    *n = all.v.n;
    return rc;
}

/* ---- settings of a verb ---- */

/* Returns whether the option may be set: --help and refused options may not. */
static bool can_be_set(const struct cli_option *o)
{
    return o->type != CLI_NOTHING && o->type != CLI_REFUSED && o->into != &cli_settings.help;
}

static const struct cli_option *named(const struct cli_option *o, const char *name)
{
    for (; o->name; o++)
        if (!strcmp(o->name, name) && can_be_set(o))
            return o;
    return NULL;
}

static int take_environment(
    const struct cli_option *o, const char *verb, cli_settings_take *take, void *arg, struct err *e)
{
    int rc = 0;
    for (; o->name && !rc; o++) {
        char name[96] = "WEFT_";
        size_t n = strlen(name);
        for (const char *s = o->name; *s && n + 1 < sizeof name; s++)
            name[n++] = *s == '-' ? '_' : (char)toupper((unsigned char)*s);
        name[n] = 0;
        const char *value = can_be_set(o) && strcmp(name, files_variable) != 0 ? getenv(name) : NULL;
        struct cli_setting s = {verb, NULL, value, value ? arena_strdup(&all.arena, name) : NULL, CLI_ENVIRONMENT};
        if (value)
            rc = take(arg, o, &s, e);
    }
    return rc;
}

int cli_settings_for(
    const char *verb, const struct cli_option *options, cli_settings_take *take, void *arg, struct err *e)
{
    const struct cli_setting *v;
    size_t n;
    int rc = cli_settings_read(&v, &n, e);
    for (size_t i = 0; i < n && !rc; i++) {
        if (v[i].section && strcmp(v[i].section, verb) != 0)
            continue;
        const struct cli_option *o = named(options, v[i].name);
        o = o ? o : named(cli_common_options, v[i].name);
        if (o)
            rc = take(arg, o, &v[i], e);
        else if (v[i].section)
            rc = err_set(e, ERR_ARG, "%s: %s has no option \"%s\"; weft %s --help lists them", v[i].origin, verb,
                v[i].name, verb);
    }
    if (!rc)
        rc = take_environment(cli_common_options, verb, take, arg, e);
    return rc ? rc : take_environment(options, verb, take, arg, e);
}

/* ---- survey ---- */

void (*cli_survey)(void *arg, const struct cli_verb *, const struct cli_option *);
void *cli_survey_arg;

void cli_survey_verb(
    const struct cli_verb *verb, void (*show)(void *arg, const struct cli_verb *, const struct cli_option *), void *arg)
{
    char *name = arena_strdup(&all.arena, verb->name), *argv[] = {name, NULL};
    cli_survey = show;
    cli_survey_arg = arg;
    verb->run(1, argv);
    cli_survey = NULL;
}
