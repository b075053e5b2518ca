/* SPDX-License-Identifier: MIT */
/* Configuration file .trace-coordinator.yml. */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/file.h"
#include "base/map.h"
#include "base/regex.h"
#include "coord/coord.h"

enum {
    MAX_FILE = 4 << 20,
    MAX_SERVERS = 4096,
    MAX_EXPERIMENTS = 1000,
    MAX_PATHS = 10000,
    MAX_TOKEN = 4096,
    MAX_GROUPS = 1024
};

static void free_groups(struct coord_groups *g)
{
    for (size_t i = 0; i < g->n; i++)
        vec_free(&g->v[i].members);
    vec_free(g);
}

void coord_config_fini(struct coord_config *c)
{
    for (size_t i = 0; i < c->servers.n; i++)
        vec_free(&c->servers.v[i].traces);
    for (size_t i = 0; i < c->experiments.n; i++)
        vec_free(&c->experiments.v[i].patterns);
    free_groups(&c->rotations);
    free_groups(&c->groups);
    vec_free(&c->servers);
    vec_free(&c->experiments);
    vec_free(&c->notes);
    arena_fini(&c->arena);
}

/* ---- YAML nodes ---- */

struct reader {
    struct coord_config *c;
    const char *path;
    yaml_document_t *doc;
    struct err *e;
    int rc; /* code of the first error */
};

static void wrong(struct reader *r, const yaml_node_t *n, const char *what)
{
    if (!r->rc)
        r->rc = err_set(r->e, ERR_FORMAT, "%s: line %zu, column %zu: %s", r->path, n->start_mark.line + 1,
            n->start_mark.column + 1, what);
}

static void note(struct reader *r, const yaml_node_t *n, const char *what)
{
    vec_push(&r->c->notes,
        (const char *)arena_printf(&r->c->arena, "%s: line %zu, column %zu: %s", r->path, n->start_mark.line + 1,
            n->start_mark.column + 1, what));
}

static yaml_node_t *node(struct reader *r, int i)
{
    return yaml_document_get_node(r->doc, i);
}

/* Returns a text; NULL: it is none, and an error was set. */
static const char *text_of(struct reader *r, const yaml_node_t *n)
{
    const char *s = n->type == YAML_SCALAR_NODE ? (const char *)n->data.scalar.value : NULL;
    if (!s || !*s || strlen(s) != n->data.scalar.length) {
        wrong(r, n, "a text is expected here");
        return NULL;
    }
    return arena_strdup(&r->c->arena, s);
}

static unsigned whole_of(struct reader *r, const yaml_node_t *n, unsigned most)
{
    const char *s = text_of(r, n);
    char *end = NULL;
    unsigned long v = s ? strtoul(s, &end, 10) : 1;
    if (s && (!text_is_digit(*s) || *end || !v || v > most))
        wrong(r, n, arena_printf(&r->c->arena, "a whole number from 1 to %u is expected here", most));
    return (unsigned)v;
}

/* Reads a time: "2", "0.5" (seconds), "500ms", "2s". */
static unsigned milliseconds_of(struct reader *r, const yaml_node_t *n)
{
    const char *s = text_of(r, n);
    char *end = NULL;
    double v = s && text_is_digit(*s) ? strtod(s, &end) : 0;
    bool ms = end && !strcmp(end, "ms");
    v = ms ? v : v * 1000;
    if (s && (!end || (*end && !ms && strcmp(end, "s")) || !(v >= 1) || v > 3600e3)) {
        wrong(r, n, "a time is expected here: seconds, 500ms or 2s, at most an hour");
        return 0;
    }
    return (unsigned)v;
}

/* Reads a weight above 0: "2", "0.5". */
static double weight_of(struct reader *r, const yaml_node_t *n)
{
    const char *s = text_of(r, n);
    char *end = NULL;
    double v = s && text_is_digit(*s) ? strtod(s, &end) : 0;
    if (s && (!end || *end || !(v > 0) || v > 1e9)) {
        wrong(r, n, "a weight is expected here: a number above 0, at most 1e9");
        return 0;
    }
    return v;
}

typedef void take_text(struct reader *, void *into, const yaml_node_t *, const char *);

/* Reads a text, or a list of texts. */
static void each_text(struct reader *r, const yaml_node_t *n, take_text *take, void *into)
{
    if (n->type == YAML_SCALAR_NODE) {
        const char *s = text_of(r, n);
        if (s)
            take(r, into, n, s);
        return;
    }
    if (n->type != YAML_SEQUENCE_NODE) {
        wrong(r, n, "a text or a list of texts is expected here");
        return;
    }
    if (n->data.sequence.items.top - n->data.sequence.items.start > MAX_PATHS) {
        wrong(r, n, "this list is too long");
        return;
    }
    for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top && !r->rc; i++) {
        const yaml_node_t *item = node(r, *i);
        const char *s = text_of(r, item);
        if (s)
            take(r, into, item, s);
    }
}

/* ---- servers ---- */

static const char *without_slash(struct arena *a, const char *url)
{
    size_t n = strlen(url);
    while (n && url[n - 1] == '/')
        n--;
    return arena_strndup(a, url, n);
}

/* Returns NULL, or the error in the URL. */
static const char *url_problem(const char *url)
{
    const char *host = !strncmp(url, "http://", 7) ? url + 7 : !strncmp(url, "https://", 8) ? url + 8 : NULL;
    if (!host || !*host)
        return "give http://HOST:PORT or https://HOST:PORT";
    for (const char *p = url; *p; p++)
        if ((unsigned char)*p <= ' ' || *p == '?' || *p == '#' || *p == '@' || *p == '"')
            return "an address of a server has no spaces, users, questions or fragments";
    return NULL;
}

/* Returns the URL without the path of the protocol, which clients need and browsers do not. */
static const char *base_url(struct arena *a, const char *url)
{
    url = without_slash(a, url);
    size_t n = strlen(url), m = strlen("/tsp/api");
    return n > m && !strcmp(url + n - m, "/tsp/api") ? arena_strndup(a, url, n - m) : url;
}

static void add_trace(struct reader *r, void *server, const yaml_node_t *n, const char *s)
{
    struct coord_server *to = server;
    vec_push(&to->traces, s);
}

/* Returns a path; a relative one is relative to the configuration's folder. */
static const char *path_of(struct reader *r, const yaml_node_t *n)
{
    const char *s = text_of(r, n), *slash = strrchr(r->path, '/');
    if (!s || *s == '/' || !slash)
        return s;
    return arena_printf(&r->c->arena, "%.*s/%s", (int)(slash - r->path), r->path, s);
}

static void take_token(struct reader *r, struct coord_server *s, const yaml_node_t *n)
{
    const char *path = path_of(r, n);
    struct err why = {0};
    char *token;
    size_t length;
    if (!path)
        return;
    if (file_read(path, MAX_TOKEN, &token, &length, &why)) {
        wrong(r, n, arena_printf(&r->c->arena, "token-file: %s", why.text));
        return;
    }
    token[strcspn(token, "\r\n")] = '\0';
    if (!token[strspn(token, " \t")])
        wrong(r, n, "token-file: the first line must be the token, not blanks");
    s->token = arena_strdup(&r->c->arena, token);
    free(token);
}

static const char *place_of(struct reader *r, const yaml_node_t *n)
{
    return arena_printf(
        &r->c->arena, "%s: line %zu, column %zu", r->path, n->start_mark.line + 1, n->start_mark.column + 1);
}

/* Reads a clock: {drift: "1.00000002", offset-ns: "-12"}, or a host in the file of clocks. */
static void take_clock(struct reader *r, struct coord_server *s, const yaml_node_t *n)
{
    const char *drift = "1", *offset = "0";
    struct clock_piece *line = arena_new(&r->c->arena, struct clock_piece, 1);
    struct clock_map *map = arena_new(&r->c->arena, struct clock_map, 1);
    struct err why = {0};
    s->clock_place = place_of(r, n);
    if (n->type != YAML_MAPPING_NODE) {
        s->clock_host = text_of(r, n);
        return;
    }
    for (yaml_node_pair_t *m = n->data.mapping.pairs.start; m < n->data.mapping.pairs.top && !r->rc; m++) {
        const yaml_node_t *key = node(r, m->key), *value = node(r, m->value);
        const char *k = text_of(r, key);
        if (k && !strcmp(k, "drift"))
            drift = text_of(r, value);
        else if (k && !strcmp(k, "offset-ns"))
            offset = text_of(r, value);
        else if (k)
            wrong(r, key, arena_printf(&r->c->arena, "'%.100s' is no key of a clock: drift, offset-ns", k));
        if (!r->rc && clock_line_read(drift, offset, line, &why))
            wrong(r, value, arena_strdup(&r->c->arena, why.text));
    }
    if (!r->rc && (clock_line_read(drift, offset, line, &why) || clock_map_of(line, 1, map, &why)))
        wrong(r, n, arena_strdup(&r->c->arena, why.text));
    s->clock = map;
}

/* Server while it is read. */
struct server_parts {
    struct coord_server s;
    const char *host, *url;
    unsigned port;
};

static void server_member(struct reader *r, struct server_parts *p, const yaml_node_t *key, const yaml_node_t *value)
{
    const char *k = text_of(r, key);
    if (!k)
        return;
    if (!strcmp(k, "host"))
        p->host = text_of(r, value);
    else if (!strcmp(k, "port"))
        p->port = whole_of(r, value, 65535);
    else if (!strcmp(k, "url"))
        p->url = text_of(r, value);
    else if (!strcmp(k, "name"))
        p->s.name = text_of(r, value);
    else if (!strcmp(k, "traces-path"))
        each_text(r, value, add_trace, &p->s);
    else if (!strcmp(k, "clock"))
        take_clock(r, &p->s, value);
    else if (!strcmp(k, "token-file"))
        take_token(r, &p->s, value);
    else if (!strcmp(k, "ca-file"))
        p->s.ca_file = path_of(r, value);
    else if (!strcmp(k, "connect-timeout"))
        p->s.connect_ms = milliseconds_of(r, value);
    else if (!strcmp(k, "timeout"))
        p->s.answer_ms = milliseconds_of(r, value);
    else if (!strcmp(k, "weight"))
        p->s.weight = weight_of(r, value);
    else if (!strcmp(k, "filter"))
        note(r, key, "filter is not used: traces-path names what is opened");
    else
        wrong(r, key,
            arena_printf(&r->c->arena,
                "'%.100s' is no key of a server: host, port, url, name, traces-path, clock, weight, "
                "token-file, ca-file, connect-timeout, timeout",
                k));
}

static const char *url_of(struct reader *r, const struct server_parts *p)
{
    struct arena *a = &r->c->arena;
    if (p->url)
        return p->url;
    const char *scheme = strstr(p->host, "://") ? "" : "http://";
    bool bare_v6 = !*scheme ? false : strchr(p->host, ':') && *p->host != '[' && strchr(strchr(p->host, ':') + 1, ':');
    const char *host = without_slash(a, arena_printf(a, bare_v6 ? "%s[%s]" : "%s%s", scheme, p->host));
    return arena_printf(a, "%s:%u", host, p->port ? p->port : 8080);
}

static void read_server(struct reader *r, const yaml_node_t *n)
{
    struct server_parts p = {.s.line = (unsigned)n->start_mark.line + 1};
    if (n->type != YAML_MAPPING_NODE) {
        wrong(r, n, "a server is expected here: host: …, port: …");
        return;
    }
    for (yaml_node_pair_t *m = n->data.mapping.pairs.start; m < n->data.mapping.pairs.top && !r->rc; m++)
        server_member(r, &p, node(r, m->key), node(r, m->value));
    if (!r->rc && !p.host == !p.url)
        wrong(r, n, "a server has either host and port, or url");
    if (!r->rc && p.url && p.port)
        wrong(r, n, "url says the port already");
    if (!r->rc) {
        p.s.url = base_url(&r->c->arena, url_of(r, &p));
        const char *problem = url_problem(p.s.url);
        if (problem)
            wrong(r, n, arena_printf(&r->c->arena, "%s: %s", p.s.url, problem));
    }
    if (!p.s.name && p.s.url)
        p.s.name = strstr(p.s.url, "://") ? strstr(p.s.url, "://") + 3 : p.s.url;
    vec_push(&r->c->servers, p.s);
}

/* ---- experiments ---- */

static void add_pattern(struct reader *r, void *experiment, const yaml_node_t *n, const char *s)
{
    struct coord_experiment *to = experiment;
    struct regex *x = NULL;
    struct err why = {0};
    if (regex_compile(s, &x, &why))
        wrong(r, n, arena_strdup(&r->c->arena, why.text));
    regex_free(x);
    vec_push(&to->patterns, s);
}

static void read_experiment(struct reader *r, const yaml_node_t *n)
{
    struct coord_experiment x = {.line = (unsigned)n->start_mark.line + 1};
    if (n->type != YAML_MAPPING_NODE) {
        wrong(r, n, "an experiment is expected here: name: …, traces-path: …");
        return;
    }
    for (yaml_node_pair_t *m = n->data.mapping.pairs.start; m < n->data.mapping.pairs.top && !r->rc; m++) {
        const yaml_node_t *key = node(r, m->key), *value = node(r, m->value);
        const char *k = text_of(r, key);
        if (k && !strcmp(k, "name"))
            x.name = text_of(r, value);
        else if (k && !strcmp(k, "traces-path"))
            each_text(r, value, add_pattern, &x);
        else if (k)
            wrong(r, key, arena_printf(&r->c->arena, "'%.100s' is no key of an experiment: name, traces-path", k));
    }
    if (!r->rc && (!x.name || !x.patterns.n))
        wrong(r, n,
            x.name ? "an experiment needs traces-path: expressions for the paths of its traces"
                   : "an experiment needs a name");
    vec_push(&r->c->experiments, x);
}

/* ---- groups of servers ---- */

static void add_member(struct reader *r, void *group, const yaml_node_t *n, const char *s)
{
    struct coord_group *to = group;
    vec_push(&to->members, ((struct coord_member){s, place_of(r, n)}));
}

/* Reads groups: {NAME: [SERVER, …], …} */
static void read_groups(struct reader *r, const yaml_node_t *n, struct coord_groups *to)
{
    if (n->type == YAML_SCALAR_NODE && !n->data.scalar.length)
        return;
    if (n->type != YAML_MAPPING_NODE) {
        wrong(r, n, "groups are expected here: NAME: [SERVER, …]");
        return;
    }
    if ((size_t)(n->data.mapping.pairs.top - n->data.mapping.pairs.start) > MAX_GROUPS) {
        wrong(r, n, "these groups are too many");
        return;
    }
    for (yaml_node_pair_t *m = n->data.mapping.pairs.start; m < n->data.mapping.pairs.top && !r->rc; m++) {
        const yaml_node_t *key = node(r, m->key);
        struct coord_group g = {.name = text_of(r, key), .place = place_of(r, key)};
        if (g.name)
            each_text(r, node(r, m->value), add_member, &g);
        vec_push(to, g);
    }
}

/* ---- the file ---- */

static void read_list(
    struct reader *r, const yaml_node_t *n, size_t most, void (*read_item)(struct reader *, const yaml_node_t *))
{
    if (n->type == YAML_SCALAR_NODE && !n->data.scalar.length)
        return; /* empty value */
    if (n->type != YAML_SEQUENCE_NODE) {
        wrong(r, n, "a list is expected here (- …)");
        return;
    }
    if ((size_t)(n->data.sequence.items.top - n->data.sequence.items.start) > most) {
        wrong(r, n, "this list is too long");
        return;
    }
    for (yaml_node_item_t *i = n->data.sequence.items.start; i < n->data.sequence.items.top && !r->rc; i++)
        read_item(r, node(r, *i));
}

static void read_root(struct reader *r, const yaml_node_t *root)
{
    if (root->type != YAML_MAPPING_NODE) {
        wrong(r, root, "trace-servers: is expected here");
        return;
    }
    for (yaml_node_pair_t *m = root->data.mapping.pairs.start; m < root->data.mapping.pairs.top && !r->rc; m++) {
        const yaml_node_t *key = node(r, m->key), *value = node(r, m->value);
        const char *k = text_of(r, key);
        if (k && !strcmp(k, "trace-servers"))
            read_list(r, value, MAX_SERVERS, read_server);
        else if (k && !strcmp(k, "experiments"))
            read_list(r, value, MAX_EXPERIMENTS, read_experiment);
        else if (k && !strcmp(k, "rotation-groups"))
            read_groups(r, value, &r->c->rotations);
        else if (k && !strcmp(k, "groups"))
            read_groups(r, value, &r->c->groups);
        else if (k && !strcmp(k, "clocks"))
            r->c->clocks = path_of(r, value);
        else if (k)
            wrong(r, key,
                arena_printf(&r->c->arena,
                    "'%.100s' is no key here: trace-servers, experiments, rotation-groups, groups, clocks", k));
    }
}

int coord_config_parse(struct coord_config *c, const char *path, const char *text, size_t n, struct err *e)
{
    yaml_parser_t parser;
    yaml_document_t doc;
    struct reader r = {c, path, &doc, e, 0};
    if (!yaml_parser_initialize(&parser))
        return err_set(e, ERR_NOMEM, "%s: no memory to read it", path);
    yaml_parser_set_input_string(&parser, (const unsigned char *)text, n);
    if (!yaml_parser_load(&parser, &doc)) {
        int rc = err_set(e, ERR_FORMAT, "%s: line %zu, column %zu: %s", path, parser.problem_mark.line + 1,
            parser.problem_mark.column + 1, parser.problem ? parser.problem : "this is no YAML");
        yaml_parser_delete(&parser);
        return rc;
    }
    const yaml_node_t *root = yaml_document_get_root_node(&doc);
    if (root)
        read_root(&r, root);
    yaml_document_delete(&doc);
    yaml_parser_delete(&parser);
    return r.rc;
}

int coord_config_read(struct coord_config *c, const char *path, struct err *e)
{
    char *text;
    size_t n;
    int rc = file_read(path, MAX_FILE, &text, &n, e);
    if (rc)
        return rc;
    rc = coord_config_parse(c, path, text, n, e);
    free(text);
    return rc;
}

int coord_config_add(struct coord_config *c, const char *given, struct err *e)
{
    struct coord_server s = {0};
    const char *eq = strchr(given, '='), *slash = strchr(given, '/');
    bool named = eq && eq != given && (!slash || eq < slash);
    s.url = base_url(&c->arena, named ? eq + 1 : given);
    if (!strstr(s.url, "://"))
        s.url = arena_printf(&c->arena, "http://%s", s.url);
    const char *problem = url_problem(s.url);
    if (problem)
        return err_set(e, ERR_ARG, "--server %s: %s", given, problem);
    s.name = named ? arena_strndup(&c->arena, given, (size_t)(eq - given)) : strstr(s.url, "://") + 3;
    vec_push(&c->servers, s);
    return 0;
}

static bool has_server(const struct coord_config *c, const char *name)
{
    bool has = false;
    for (size_t i = 0; i < c->servers.n && !has; i++)
        has = !strcmp(c->servers.v[i].name, name);
    return has;
}

/* Returns whether a name may be a member of a group of machines. */
static bool may_be_member(
    const struct coord_config *c, const struct coord_groups *machines, bool others, const char *name)
{
    return others || coord_is_pattern(name) || has_server(c, name) || coord_has_group(machines, machines->n, name);
}

/* Checks that names are unique and members exist. machines: groups that may be members; NULL: none, and each server is
 * in one group only. */
static int check_groups(const struct coord_config *c, const struct coord_groups *all,
    const struct coord_groups *machines, bool others, struct err *e)
{
    struct map seen = {0};
    int rc = 0;
    for (size_t i = 0; i < all->n && !rc; i++) {
        const struct coord_group *g = &all->v[i];
        if (coord_has_group(all, i, g->name) || (machines && coord_has_group(machines, machines->n, g->name)))
            rc = err_set(e, ERR_ARG, "%s: the group %s is there twice", g->place, g->name);
        else if (has_server(c, g->name))
            rc = err_set(e, ERR_ARG, "%s: a server is called %s, too: give the group another name", g->place, g->name);
        for (size_t k = 0; k < g->members.n && !rc; k++) {
            const struct coord_member *m = &g->members.v[k];
            bool fresh;
            map_put(&seen, map_hash(m->server, strlen(m->server)) + (machines ? i : 0), &fresh);
            if (!fresh)
                rc = err_set(e, ERR_ARG, "%s: the server %s is in a %sgroup already", m->place, m->server,
                    machines ? "" : "rotation ");
            else if (machines ? !may_be_member(c, machines, others, m->server) : !has_server(c, m->server))
                rc = err_set(e, ERR_ARG,
                    "%s: there is no server called %s: servers' names are those of name:, else HOST:PORT", m->place,
                    m->server);
        }
    }
    map_fini(&seen);
    return rc;
}

int coord_config_check(const struct coord_config *c, const char *path, bool others, struct err *e)
{
    if (!c->servers.n && !others)
        return path
            ? err_set(e, ERR_ARG, "%s: no server is in it; list some under trace-servers:", path)
            : err_set(e, ERR_ARG,
                  "no server is given: name some (--server NAME=URL), find the nodes of a cluster (--cluster URL), or "
                  "write .trace-coordinator.yml (see --generate)");
    for (size_t i = 0; i < c->servers.n; i++)
        for (size_t k = 0; k < i; k++) {
            const struct coord_server *a = &c->servers.v[k], *b = &c->servers.v[i];
            bool named = !strcmp(a->name, b->name);
            if (!named && strcmp(a->url, b->url))
                continue;
            return err_set(e, ERR_ARG, "%s%sline %u: the server %s is there twice (%s): %s", path ? path : "",
                path ? ": " : "", b->line, named ? b->name : b->url, named ? "its name" : "its address",
                named ? "give one of them another name" : "list it once");
        }
    int rc = check_groups(c, &c->rotations, NULL, others, e);
    return rc ? rc : check_groups(c, &c->groups, &c->rotations, others, e);
}
