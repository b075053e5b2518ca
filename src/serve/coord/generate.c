/* SPDX-License-Identifier: MIT */
/* Configuration from lists of hosts: one on a line, or Ansible inventories in INI form or in YAML. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "coord/coord.h"
#include "coord/inventory.h"

enum { MAX_FILE = 4 << 20 };

/* ---- lines ---- */

enum section { HOSTS, CHILDREN, VARS };

/* Reads a header: [name], [name:vars], [name:children] */
static int take_group(struct inventory *v, char *line, uint32_t *group, enum section *section)
{
    static const char *const kinds[] = {"hosts", "children", "vars"};
    char *end = strchr(line, ']');
    if (!end)
        return coord_inventory_wrong(v, "a group is written [NAME]");
    *end = '\0';
    char *kind = line + 1, *name = strsep(&kind, ":");
    *section = HOSTS;
    while (kind && *section <= VARS && strcmp(kind, kinds[*section]) != 0)
        (*section)++;
    if (*section > VARS)
        return coord_inventory_wrong(v, "a group is written [NAME], [NAME:children] or [NAME:vars]");
    return coord_inventory_group(v, name, group);
}

/* Reads a host: NAME[:PORT] [ansible_host=ADDRESS] [trace_server_port=PORT] [other=…] */
static int take_host(struct inventory *v, uint32_t group, char *line)
{
    char *rest = line, *name = strsep(&rest, " \t");
    const char *address = NULL;
    unsigned port = 0;
    for (char *word; rest && (word = strsep(&rest, " \t"));) {
        if (!strncmp(word, "ansible_host=", 13))
            address = word + 13;
        if (!strncmp(word, "trace_server_port=", 18) && coord_inventory_port(v, word + 18, &port))
            return ERR_FORMAT;
    }
    return coord_inventory_hosts(v, group, name, address, port);
}

static int take_var(struct inventory *v, uint32_t group, char *line)
{
    static const char name[] = "trace_server_port";
    const char *value = line + strcspn(line, " \t=");
    size_t n = (size_t)(value - line);
    value += strspn(value, " \t=");
    return n == strlen(name) && !strncmp(line, name, n) ? coord_inventory_port(v, value, &v->groups.v[group].port) : 0;
}

static int take_line(struct inventory *v, char *line, uint32_t *group, enum section *section)
{
    line[strcspn(line, "#;\r")] = '\0';
    line += strspn(line, " \t");
    for (size_t n = strlen(line); n && strchr(" \t", line[n - 1]);)
        line[--n] = '\0';
    return !*line              ? 0
        : *line == '['         ? take_group(v, line, group, section)
        : *section == CHILDREN ? coord_inventory_child(v, *group, line)
        : *section == VARS     ? take_var(v, *group, line)
                               : take_host(v, *group, line);
}

static int read_lines(struct inventory *v, char *text)
{
    enum section section = HOSTS;
    uint32_t group;
    v->column = 0;
    v->line = 1;
    int rc = coord_inventory_group(v, "ungrouped", &group);
    for (; text && !rc; v->line++) {
        char *line = strsep(&text, "\n");
        rc = take_line(v, line, &group, &section);
    }
    return rc;
}

/* ---- the configuration ---- */

static void write_machine(
    const struct coord_generate *o, const char *name, const char *host, unsigned port, struct text *out)
{
    text_printf(out, "  - name: \"%s\"\n    host: \"http://%s%s%s\"\n    port: %u\n", name,
        strchr(host, ':') ? "[" : "", host, strchr(host, ':') ? "]" : "", port ? port : o->port);
    if (!o->traces)
        return;
    text_puts(out, "    traces-path: [");
    text_putc(out, '"');
    for (const char *p = o->traces; *p; p++) {
        if (*p == '"' || *p == '\\')
            text_putc(out, '\\');
        text_putc(out, *p);
    }
    text_puts(out, "\"]\n");
}

/* Returns the number of servers. */
static size_t write_config(const struct coord_generate *o, const struct inventory *v, struct text *out)
{
    size_t n = 0;
    text_puts(out, "trace-servers:\n");
    for (size_t i = 0; i < v->hosts.n; i++) {
        const struct inventory_host *h = &v->hosts.v[i];
        const char *name = strings_get(&v->names, h->name);
        if (h->chosen)
            write_machine(o, name, h->address ? h->address : name, h->port, out);
        n += h->chosen;
    }
    return n;
}

static int read_file(struct inventory *v, const char *path)
{
    char *text;
    size_t n;
    v->path = path;
    int rc = file_read(path, MAX_FILE, &text, &n, v->e);
    if (rc)
        return rc;
    char *copy = arena_strndup(&v->arena, text, n);
    free(text);
    return coord_inventory_is_yaml(copy) ? coord_inventory_read_yaml(v, copy, n) : read_lines(v, copy);
}

int coord_generate(const struct coord_generate *o, struct text *out, struct err *e)
{
    struct inventory v = {.e = e};
    int rc = 0;
    for (const char *const *path = o->hosts; *path && !rc; path++)
        rc = read_file(&v, *path);
    if (!rc)
        rc = coord_inventory_choose(&v, o->groups);
    if (!rc && !write_config(o, &v, out)) {
        text_fini(out);
        rc = err_set(e, ERR_NOTFOUND, "%s: no host is in it%s", *o->hosts,
            o->groups ? ", in the groups given" : "; write one on a line, or give an Ansible inventory");
    }
    coord_inventory_fini(&v);
    return rc;
}
