/* SPDX-License-Identifier: MIT */
/* Ansible inventories in YAML: groups by name, with hosts:, children: and vars:. */
#include <string.h>
#include <yaml.h>

#include "coord/inventory.h"

/* Limits, since aliases make a short file long: nodes visited, depth. */
enum { MAX_NODES = 200000, MAX_DEPTH = 64 };

struct reader {
    struct inventory *v;
    yaml_document_t *doc;
    size_t nodes;
    unsigned depth;
};

bool coord_inventory_is_yaml(const char *text)
{
    while (*text) {
        size_t n = strcspn(text, "\n"), begin = strspn(text, " \t");
        const char *line = text + begin, *comment = memchr(text, '#', n);
        size_t length = begin < n ? n - begin : 0;
        if (comment && (comment == line || comment[-1] == ' '))
            length = (size_t)(comment - line);
        while (length && strchr(" \t\r", line[length - 1]))
            length--;
        if (length)
            return *line == '{' || *line == '%' || !strncmp(line, "---", 3) || memmem(line, length, ": ", 2) ||
                (line[length - 1] == ':' && !memchr(line, '[', length));
        text += n + (text[n] == '\n');
    }
    return false;
}

/* Sets the position for messages. */
static void at(struct reader *r, const yaml_node_t *n)
{
    r->v->line = (unsigned)n->start_mark.line + 1;
    r->v->column = (unsigned)n->start_mark.column + 1;
}

static int wrong(struct reader *r, const yaml_node_t *n, const char *what)
{
    at(r, n);
    return coord_inventory_wrong(r->v, what);
}

/* Returns a text; NULL: it is none, or contains NUL. */
static const char *text_of(const yaml_node_t *n)
{
    const char *s = n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : NULL;
    return s && strlen(s) == n->data.scalar.length ? s : NULL;
}

static bool is_nothing(const yaml_node_t *n)
{
    const char *s = text_of(n);
    return s && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && (!*s || !strcmp(s, "~") || !strcmp(s, "null"));
}

typedef int take_member(struct reader *, void *into, const yaml_node_t *key, const yaml_node_t *value);

static int each_member(struct reader *, const yaml_node_t *, take_member *, void *into, const char *expected);

/* Visits merged members: "<<: *others", or a list of those. */
static int each_merged(struct reader *r, const yaml_node_t *n, take_member *take, void *into, const char *expected)
{
    if (n->type != YAML_SEQUENCE_NODE)
        return each_member(r, n, take, into, expected);
    for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top; i++) {
        int rc = each_member(r, yaml_document_get_node(r->doc, *i), take, into, expected);
        if (rc)
            return rc;
    }
    return 0;
}

static int members(struct reader *r, const yaml_node_t *n, take_member *take, void *into, const char *expected)
{
    for (int own = 0; own < 2; own++) /* merged members come first, so that own ones win */
        for (yaml_node_pair_t *m = n->data.mapping.pairs.start; m < n->data.mapping.pairs.top; m++) {
            const yaml_node_t *key = yaml_document_get_node(r->doc, m->key),
                              *value = yaml_document_get_node(r->doc, m->value);
            const char *k = text_of(key);
            if (!k || !*k)
                return wrong(r, key, "a name is expected here");
            if (++r->nodes > MAX_NODES)
                return wrong(r, key, "the inventory is too large, or repeats itself by its aliases");
            int rc = (strcmp(k, "<<") != 0) != own ? 0
                : own                              ? take(r, into, key, value)
                                                   : each_merged(r, value, take, into, expected);
            if (rc)
                return rc;
        }
    return 0;
}

/* Visits the members of a mapping, which may be null. */
static int each_member(struct reader *r, const yaml_node_t *n, take_member *take, void *into, const char *expected)
{
    if (is_nothing(n))
        return 0;
    if (n->type != YAML_MAPPING_NODE)
        return wrong(r, n, expected);
    if (r->depth == MAX_DEPTH)
        return wrong(r, n, "this is too deep, or is in itself by an alias");
    r->depth++;
    int rc = members(r, n, take, into, expected);
    r->depth--;
    return rc;
}

/* ---- variables and groups ---- */

struct vars {
    const char *address;
    unsigned port;
};

static int take_var(struct reader *r, void *into, const yaml_node_t *key, const yaml_node_t *value)
{
    struct vars *v = into;
    const char *k = text_of(key), *s = text_of(value);
    bool address = !strcmp(k, "ansible_host"), port = !strcmp(k, "trace_server_port");
    if (!address && !port)
        return 0;
    if (!s || !*s)
        return wrong(r, value, "a text is expected here");
    at(r, value);
    if (port)
        return coord_inventory_port(r->v, s, &v->port);
    v->address = arena_strdup(&r->v->arena, s);
    return 0;
}

static int take_host(struct reader *r, void *group, const yaml_node_t *key, const yaml_node_t *value)
{
    struct vars vars = {0};
    int rc = each_member(r, value, take_var, &vars, "the variables of a host are expected here: ansible_host: …");
    at(r, key);
    return rc ? rc : coord_inventory_hosts(r->v, *(uint32_t *)group, text_of(key), vars.address, vars.port);
}

static int take_group(struct reader *, void *parent, const yaml_node_t *key, const yaml_node_t *value);

static int take_section(struct reader *r, void *group, const yaml_node_t *key, const yaml_node_t *value)
{
    static const char expected[] = "a mapping is expected here: NAME: for each";
    uint32_t g = *(uint32_t *)group;
    const char *k = text_of(key), *one = is_nothing(value) ? NULL : text_of(value);
    struct vars vars = {0};
    int rc;
    at(r, value);
    if (!strcmp(k, "hosts"))
        return one ? coord_inventory_hosts(r->v, g, one, NULL, 0) : each_member(r, value, take_host, group, expected);
    if (!strcmp(k, "children"))
        return one ? coord_inventory_child(r->v, g, one) : each_member(r, value, take_group, group, expected);
    if (strcmp(k, "vars") != 0)
        return wrong(r, key, "this is no key of a group: hosts, children, vars");
    rc = each_member(r, value, take_var, &vars, expected);
    if (!rc && vars.port)
        r->v->groups.v[g].port = vars.port;
    return rc;
}

/* parent NULL: the group is at the top of the file */
static int take_group(struct reader *r, void *parent, const yaml_node_t *key, const yaml_node_t *value)
{
    uint32_t group;
    at(r, key);
    int rc = coord_inventory_group(r->v, text_of(key), &group);
    if (!rc && parent)
        rc = coord_inventory_child(r->v, *(uint32_t *)parent, text_of(key));
    return rc ? rc : each_member(r, value, take_section, &group, "a group is expected here: hosts:, children:, vars:");
}

/* ---- the file ---- */

int coord_inventory_read_yaml(struct inventory *v, const char *text, size_t n)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    struct reader r = {.v = v, .doc = &doc};
    int rc = 0;
    if (!yaml_parser_initialize(&parser))
        return err_set(v->e, ERR_NOMEM, "%s: no memory to read it", v->path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    if (!yaml_parser_load(&parser, &doc)) {
        v->line = (unsigned)parser.problem_mark.line + 1;
        v->column = (unsigned)parser.problem_mark.column + 1;
        rc = coord_inventory_wrong(v, parser.problem ? parser.problem : "this is no YAML");
        yaml_parser_delete(&parser);
        return rc;
    }
    const yaml_node_t *root = yaml_document_get_root_node(&doc);
    if (root)
        rc = each_member(
            &r, root, take_group, NULL, "groups are expected here: NAME:, below it hosts:, children:, vars:");
    yaml_document_delete(&doc);
    yaml_parser_delete(&parser);
    v->column = 0;
    return rc;
}
