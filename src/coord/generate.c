/* A configuration from lists of hosts: one on a line, or Ansible inventories in INI form. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "coord/coord.h"

enum { MAX_FILE = 4 << 20, MAX_HOSTS = 4096 };

struct machine {
    const char *name, *host;
    unsigned port;
};

struct inventory {
    struct arena arena;
    const struct coord_generate *o;
    const char *path;
    unsigned line;
    VEC(struct machine) machines;
    bool taken; /* lines of the group at hand are */
    struct err *e;
};

static int wrong(const struct inventory *v, const char *what)
{
    return err_set(v->e, ERR_FORMAT, "%s: line %u: %s", v->path, v->line, what);
}

/* [name], [name:vars], [name:children] */
static int take_group(struct inventory *v, const char *line)
{
    const char *end = strchr(line, ']');
    if (!end)
        return wrong(v, "a group is written [NAME]");
    char *name = arena_strndup(&v->arena, line + 1, (size_t)(end - line - 1));
    v->taken = !strchr(name, ':') && !v->o->groups;
    for (const char *const *g = v->o->groups; g && *g; g++)
        v->taken |= !strcmp(*g, name);
    return 0;
}

static int add(struct inventory *v, const char *name, const char *host, unsigned port)
{
    for (size_t i = 0; i < v->machines.n; i++)
        if (!strcmp(v->machines.v[i].name, name))
            return 0; /* it is in several groups */
    if (v->machines.n == MAX_HOSTS)
        return wrong(v, "there are too many hosts");
    vec_push(&v->machines, ((struct machine){name, host, port}));
    return 0;
}

/* node[01:20].cluster: all from the one number to the other, as many digits wide as the first. */
static int add_range(struct inventory *v, const char *name, const char *host, unsigned port)
{
    const char *open = strchr(name, '['), *close = open ? strchr(open, ']') : NULL;
    unsigned long first, last;
    char *end;
    if (!open || host != name)
        return add(v, name, host, port);
    first = strtoul(open + 1, &end, 10);
    int width = (int)(end - open - 1);
    if (!close || *end != ':' || !isdigit((unsigned char)open[1]))
        return wrong(v, "a range of hosts is written node[01:20]");
    last = strtoul(end + 1, &end, 10);
    if (end != close || last < first || last - first >= MAX_HOSTS || width > 9)
        return wrong(v, "a range of hosts goes from a number to a larger one: node[01:20]");
    for (unsigned long i = first; i <= last; i++) {
        const char *one = arena_printf(&v->arena, "%.*s%0*lu%s", (int)(open - name), name, width, i, close + 1);
        int rc = add_range(v, one, one, port); /* there may be another range in it */
        if (rc)
            return rc;
    }
    return 0;
}

static int take_port(struct inventory *v, const char *text, unsigned *port)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (!isdigit((unsigned char)*text) || *end || !n || n > 65535)
        return wrong(v, "the port is no number from 1 to 65535");
    *port = (unsigned)n;
    return 0;
}

/* NAME[:PORT] [ansible_host=ADDRESS] [trace_server_port=PORT] [other=…] */
static int take_host(struct inventory *v, char *line)
{
    char *rest = line, *name = strsep(&rest, " \t"), *colon = strrchr(name, ':');
    const char *host = name;
    unsigned port = v->o->port;
    if (colon && strchr(name, ':') == colon && !strchr(name, '[')) {
        *colon = '\0';
        if (take_port(v, colon + 1, &port))
            return ERR_FORMAT;
    }
    for (char *word; rest && (word = strsep(&rest, " \t"));) {
        if (!strncmp(word, "ansible_host=", 13))
            host = word + 13;
        if (!strncmp(word, "trace_server_port=", 18) && take_port(v, word + 18, &port))
            return ERR_FORMAT;
    }
    if (strpbrk(name, "\"'\\{}#,=") || strpbrk(host, "\"'\\{}#,="))
        return wrong(v, "this is no name of a host");
    return add_range(v, name, host, port);
}

static int read_text(struct inventory *v, char *text)
{
    v->taken = !v->o->groups;
    for (v->line = 1; text; v->line++) {
        char *line = strsep(&text, "\n");
        line[strcspn(line, "#;\r")] = '\0';
        line += strspn(line, " \t");
        for (size_t n = strlen(line); n && strchr(" \t", line[n - 1]);)
            line[--n] = '\0';
        int rc = !*line ? 0 : *line == '[' ? take_group(v, line) : v->taken ? take_host(v, line) : 0;
        if (rc)
            return rc;
    }
    return 0;
}

static void write_config(const struct inventory *v, struct text *out)
{
    text_puts(out, "trace-servers:\n");
    for (size_t i = 0; i < v->machines.n; i++) {
        const struct machine *m = &v->machines.v[i];
        text_printf(out, "  - name: \"%s\"\n    host: \"http://%s%s%s\"\n    port: %u\n", m->name,
            strchr(m->host, ':') ? "[" : "", m->host, strchr(m->host, ':') ? "]" : "", m->port);
        if (v->o->traces) {
            text_puts(out, "    traces-path: [");
            text_putc(out, '"');
            for (const char *p = v->o->traces; *p; p++) {
                if (*p == '"' || *p == '\\')
                    text_putc(out, '\\');
                text_putc(out, *p);
            }
            text_puts(out, "\"]\n");
        }
    }
}

int coord_generate(const struct coord_generate *o, struct text *out, struct err *e)
{
    struct inventory v = {.o = o, .e = e};
    int rc = 0;
    for (const char *const *path = o->hosts; *path && !rc; path++) {
        char *text;
        size_t n;
        v.path = *path;
        rc = file_read(*path, MAX_FILE, &text, &n, e);
        if (rc)
            break;
        char *copy = arena_strndup(&v.arena, text, n);
        free(text);
        rc = read_text(&v, copy);
    }
    if (!rc && !v.machines.n)
        rc = err_set(e, ERR_NOTFOUND, "%s: no host is in it%s", *o->hosts,
            o->groups ? ", in the groups given" : "; write one on a line, or give an Ansible inventory in INI form");
    if (!rc)
        write_config(&v, out);
    vec_free(&v.machines);
    arena_fini(&v.arena);
    return rc;
}
