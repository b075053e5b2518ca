/* SPDX-License-Identifier: MIT */
/* weft config: which options are set elsewhere than on the command line, and where. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/mem.h"
#include "base/near.h"
#include "cli/cli.h"
#include "cli/settings.h"

struct found {
    const struct cli_option *option;
    const struct cli_setting *setting; /* the table's own copy */
    bool counts;                       /* highest priority */
};

struct listing {
    struct cli_table *table;
    struct arena arena;
    struct err e;
    int rc;
    bool all;
    VEC(struct found) found; /* settings of the current verb */
    VEC(const char *) known; /* names of all verbs' options */
};

/* Values of a list that are of one place stand beside each other; else the last place counts. */
static bool takes_over(const struct found *old, const struct cli_option *o, const struct cli_setting *s)
{
    return old->option == o && !(o->type == CLI_LIST && old->setting->level == s->level);
}

static int take(void *arg, const struct cli_option *o, const struct cli_setting *s, struct err *e)
{
    struct listing *l = arg;
    struct cli_setting *kept = arena_new(&l->arena, struct cli_setting, 1);
    *kept = *s;
    for (size_t i = 0; i < l->found.n; i++)
        l->found.v[i].counts &= !takes_over(&l->found.v[i], o, s);
    vec_push(&l->found, ((struct found){o, kept, true}));
    return 0;
}

/* Hides user and password of a URL. */
static void write_value(struct cli_table *t, const char *value)
{
    const char *scheme = strstr(value, "://"), *at = scheme ? strrchr(scheme, '@') : NULL;
    const char *password = scheme ? strstr(scheme, "password=") : NULL;
    if (password)
        cli_table_cell(t, "%.*s://…", (int)(scheme - value), value);
    else if (at)
        cli_table_cell(t, "%.*s://…%s", (int)(scheme - value), value, at);
    else
        cli_table_cell(t, "%s", value);
}

static void list_verb(void *arg, const struct cli_verb *verb, const struct cli_option *options)
{
    struct listing *l = arg;
    l->found.n = 0;
    if (verb->no_settings)
        return;
    for (const struct cli_option *o = options; o->name; o++)
        vec_push(&l->known, o->name);
    if (!l->rc)
        l->rc = cli_settings_for(verb->name, options, take, l, &l->e);
    for (size_t i = 0; i < l->found.n && l->table; i++) {
        const struct found *f = &l->found.v[i];
        if (!f->counts && !l->all)
            continue;
        cli_table_cell(l->table, "%s", verb->name);
        cli_table_cell(l->table, "%s", f->option->name);
        write_value(l->table, *f->setting->value ? f->setting->value : "yes");
        cli_table_cell(l->table, "%s", f->setting->origin);
        if (l->all)
            cli_table_cell(l->table, "%s", f->counts ? "yes" : "no");
    }
}

/* NULL: there is none of that name. */
static const struct cli_verb *verb_named(const char *name)
{
    size_t i = 0;
    while (cli_verbs[i] && strcmp(cli_verbs[i]->name, name) != 0)
        i++;
    return cli_verbs[i];
}

static int no_such_verb(const char *what, const char *name, struct err *e)
{
    const char *names[64] = {0};
    for (size_t i = 0; cli_verbs[i] && i < 63; i++)
        names[i] = cli_verbs[i]->name;
    const char *near = near_name(name, names);
    return near ? err_set(e, ERR_ARG, "%s: no verb \"%s\"; did you mean %s?", what, name, near)
                : err_set(e, ERR_ARG, "%s: no verb \"%s\"; weft --help lists them", what, name);
}

static bool is_known(const struct listing *l, const char *name)
{
    for (const struct cli_option *o = cli_common_options; o->name; o++)
        if (!strcmp(o->name, name))
            return true;
    for (size_t i = 0; i < l->known.n; i++)
        if (!strcmp(l->known.v[i], name))
            return true;
    return false;
}

/* Checks the names of settings for errors that no verb reports when it runs. */
static int check_names(const struct listing *l, struct err *e)
{
    const struct cli_setting *v;
    size_t n;
    int rc = cli_settings_read(&v, &n, e);
    for (size_t i = 0; i < n && !rc; i++)
        if (v[i].section && !verb_named(v[i].section))
            rc = no_such_verb(v[i].origin, v[i].section, e);
        else if (v[i].section && verb_named(v[i].section)->no_settings)
            rc = err_set(e, ERR_ARG,
                "%s: %s is a program of its own and reads no settings; weft %s --help says what it "
                "takes",
                v[i].origin, v[i].section, v[i].section);
        else if (!v[i].section && !is_known(l, v[i].name))
            rc = err_set(e, ERR_ARG, "%s: no verb has an option \"%s\"", v[i].origin, v[i].name);
    return rc;
}

static void note_files(void)
{
    for (const char *const *f = cli_settings_files(); *f; f++)
        cli_note("%s: %s", *f, access(*f, R_OK) ? "not there" : "read");
}

static int list(const char *only, bool every, int format, struct err *e)
{
    static const struct cli_column columns[] = {{"verb", false, false}, {"option", false, false},
        {"value", false, false}, {"from", false, false}, {"counts", false, false}};
    struct listing l = {.all = every};
    struct text out = TEXT_TO(STDOUT_FILENO);
    l.table = cli_table_new(columns, every ? 5 : 4);
    for (size_t i = 0; cli_verbs[i]; i++)
        if (!only || !strcmp(only, cli_verbs[i]->name))
            cli_survey_verb(cli_verbs[i], list_verb, &l);
    int rc = l.rc;
    *e = l.e;
    if (!rc && !only)
        rc = check_names(&l, e);
    if (!rc)
        cli_table_write(l.table, format, &out);
    cli_table_free(l.table);
    vec_free(&l.found);
    vec_free(&l.known);
    arena_fini(&l.arena);
    if (rc) {
        text_fini(&out);
        return rc;
    }
    note_files();
    return cli_finish(&out, CLI_OK) ? err_set(e, ERR_IO, "cannot write the list") : 0;
}

static int run(int argc, char **argv)
{
    const char *format_name = NULL;
    bool every = false;
    int n, format;
    struct err e = {0};
    const struct cli_option options[] = {
        {"all", 'a', CLI_FLAG, NULL, "also list settings that are overridden elsewhere", &every},
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name}, {0}};
    int code = cli_parse(&verb_config, options, argc, argv, &n);
    if (code >= 0)
        return code;
    int rc = cli_format_parse(format_name, &format, &e);
    if (!rc && n > 1)
        rc = err_set(&e, ERR_ARG, "config: one verb at most");
    if (!rc && n && !verb_named(argv[1]))
        rc = no_such_verb("config", argv[1], &e);
    if (!rc)
        rc = list(n ? argv[1] : NULL, every, format, &e);
    return rc ? cli_fail(&e) : CLI_OK;
}

const struct cli_verb verb_config = {
    "config", "[VERB]", "list options set in files and in the environment", "weft config serve", run};
