/* SPDX-License-Identifier: MIT */
/* weft coordinate: one trace server over many. */
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/found.h"
#include "cli/secrets.h"
#include "cli/server.h"
#include "cli/size.h"
#include "coord/coord.h"

#define CONFIG_NAME ".trace-coordinator.yml"

static void tell(const char *what)
{
    cli_note("%s", what);
}

/* Returns --config, or else the file that other coordinators read. */
static const char *find_config(const char *given, bool servers_given)
{
    const char *file = getenv("TRACE_COORDINATOR_FILE");
    if (given || servers_given)
        return given;
    return file && *file ? file : access(CONFIG_NAME, F_OK) ? NULL : CONFIG_NAME;
}

static const char *find_listen(const char *given, char *into, size_t n)
{
    const char *host = getenv("HOST"), *port = getenv("PORT");
    if (given)
        return given;
    snprintf(into, n, "%s:%s", host && *host ? host : "127.0.0.1", port && *port ? port : "8080");
    return into;
}

static int read_config(struct coord_config *config, const char *path, const struct cli_list *servers,
    const char *clocks, bool nodes, struct err *e)
{
    int rc = path ? coord_config_read(config, path, e) : 0;
    for (size_t i = 0; i < servers->n && !rc; i++)
        rc = coord_config_add(config, servers->v[i], e);
    if (!rc)
        rc = coord_config_clocks(config, clocks, e);
    return rc ? rc : coord_config_check(config, path, nodes, e);
}

/* Nodes of a cluster, beside or instead of servers given by name. */
struct nodes {
    struct cli_cluster cluster;
    const char *token_file, *ca_file;
    char *token;
    struct cli_found found;
    struct coord_finder finder;
};

static int check_nodes(struct nodes *n, bool others, struct err *e)
{
    if (others && cli_is_setting(&n->cluster.url))
        n->cluster.url = NULL;
    if (!n->cluster.url && (n->token_file || n->ca_file))
        return err_set(e, ERR_ARG, "--node-token-file and --node-ca are for the servers of nodes: give --cluster URL");
    return n->token_file ? cli_read_token("--node-token-file", n->token_file, &n->token, e) : 0;
}

static int find_nodes(struct nodes *n, struct coord_options *o, struct err *e)
{
    if (!n->cluster.url)
        return 0;
    n->finder = (struct coord_finder){.arg = &n->found,
        .list = cli_found_list,
        .status = cli_found_tell,
        .like = {.token = n->token, .ca_file = n->ca_file}};
    o->finder = &n->finder;
    return cli_found_open(&n->cluster, &n->found, e);
}

static int check(const struct coord_config *config)
{
    size_t traces = 0;
    for (size_t i = 0; i < config->servers.n; i++)
        traces += config->servers.v[i].traces.n;
    printf("%zu servers, %zu traces to open, %zu experiments\n", config->servers.n, traces, config->experiments.n);
    return CLI_OK;
}

static int generate(const struct coord_generate *o)
{
    struct text t = TEXT_TO(STDOUT_FILENO);
    struct err e = {0};
    if (!*o->hosts)
        err_set(&e, ERR_ARG, "--generate needs lists of hosts: files with one on a line, or Ansible inventories");
    else
        coord_generate(o, &t, &e);
    if (!e.code)
        return cli_finish(&t, CLI_OK);
    text_fini(&t);
    return cli_fail(&e);
}

static int coordinate(struct coord_options *o, struct nodes *nodes)
{
    struct coordinator *c;
    struct err e = {0};
    sigset_t stop;
    int signal_number;
    /* Signal mask set before any thread starts: threads inherit it, and the signals wait for sigwait. */
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    cli_prepare_server();
    if (find_nodes(nodes, o, &e) || coord_start(o, &c, &e))
        return cli_fail(&e);
    printf("weft: listening on %s\n", coord_address(c));
    fflush(stdout);
    cli_note_reach(coord_address(c), o->http.token != NULL);
    sigwait(&stop, &signal_number);
    coord_stop(c);
    return CLI_OK;
}

static int run(int argc, char **argv)
{
    const char *listen = NULL, *config_file = NULL, *state = NULL, *name = NULL, *cert = NULL, *key = NULL,
               *token_file = NULL, *traces = NULL, *clocks = NULL, *answers = NULL;
    int64_t port = 8080;
    uint64_t answers_bytes = 0;
    bool only_check = false, generates = false;
    struct nodes nodes = {0};
    struct cli_list servers = {0}, origins = {0}, hosts = {0}, groups = {0};
    char listen_at[300];
    const struct cli_option options[] = {
        {"listen", 'l', CLI_STRING, "ADDRESS:PORT", "where to listen (default: $HOST:$PORT, else 127.0.0.1:8080)",
            &listen},
        {"server", 's', CLI_LIST, "NAME=URL", "a trace server (http://host:8080); may be given several times",
            &servers},
        {"config", 'c', CLI_STRING, "FILE",
            "the servers (default: $TRACE_COORDINATOR_FILE, else " CONFIG_NAME " where it is; with --server: none)",
            &config_file},
        CLI_CLUSTER_LETTER(&nodes.cluster, 0),
        {"node-token-file", 0, CLI_STRING, "FILE", "send the token in FILE to the servers of the cluster's nodes",
            &nodes.token_file},
        {"node-ca", 0, CLI_STRING, "FILE", "authorities that may have signed their certificates (PEM)", &nodes.ca_file},
        {"clocks", 0, CLI_STRING, "FILE",
            "put the servers on one clock: FILE is the output of weft sync --format json for hosts of their names",
            &clocks},
        {"name", 0, CLI_STRING, "NAME", "make an experiment of all traces of all servers", &name},
        {"state", 0, CLI_STRING, "DIR", "keep ids, bookmarks and experiments in DIR over restarts", &state},
        {"answers", 0, CLI_STRING, "SIZE", "memory for answers of servers while they are merged (default: 512M)",
            &answers},
        {"check", 0, CLI_FLAG, NULL, "only say whether the configuration is in order", &only_check},
        {"generate", 0, CLI_FLAG, NULL, "write a configuration with the hosts in the files given", &generates},
        {"groups", 0, CLI_LIST, "GROUP", "with --generate: only hosts of these groups; may be given several times",
            &groups},
        {"trace-path", 0, CLI_STRING, "PATH", "with --generate: open PATH on each of them", &traces},
        {"port", 0, CLI_INT, "PORT", "with --generate: of the servers (default: 8080)", &port, .least = 1,
            .most = 65535},
        {"tls-cert", 0, CLI_STRING, "FILE", "certificate (PEM): serve https", &cert},
        {"tls-key", 0, CLI_STRING, "FILE", "its key (PEM)", &key},
        {"token-file", 0, CLI_STRING, "FILE", "clients must send the token in FILE (Authorization: Bearer)",
            &token_file},
        {"cors", 0, CLI_LIST, "ORIGIN",
            "pages of ORIGIN (https://host) may call the coordinator; editors: those of VS Code and Theia; *: all may "
            "ask; may be given several times",
            &origins},
        CLI_HOSTS(&hosts),
        {0},
    };
    struct coord_config config = {0};
    struct err e = {0};
    char *token = NULL;
    int n, code = cli_parse(&verb_coordinate, options, argc, argv, &n);
    if (code >= 0)
        return code;
    argv[n + 1] = NULL; /* the end of the positional arguments; the rest has been parsed */
    vec_push(&origins, (const char *)NULL);
    vec_push(&hosts, (const char *)NULL);
    vec_push(&groups, (const char *)NULL);
    const char *path = find_config(
        config_file, servers.n || (nodes.cluster.url && !cli_is_setting(&nodes.cluster.url)));
    if (generates) {
        struct coord_generate g = {
            (const char *const *)argv + 1, groups.n > 1 ? groups.v : NULL, traces, (unsigned)port};
        code = generate(&g);
    } else if (n) {
        err_set(&e, ERR_ARG, "%s: traces are opened by servers; name those (--server NAME=URL)", argv[1]);
        code = cli_fail(&e);
    } else if (check_nodes(&nodes, path || servers.n, &e) ||
        read_config(&config, path, &servers, clocks, nodes.cluster.url != NULL, &e) ||
        (token_file && cli_read_token("--token-file", token_file, &token, &e)) ||
        (answers && cli_parse_size("--answers", answers, &answers_bytes, &e))) {
        code = cli_fail(&e);
    } else {
        for (size_t i = 0; i < config.notes.n; i++)
            cli_note("%s", config.notes.v[i]);
        struct coord_options o = {.config = &config,
            .name = name,
            .state_dir = state,
            .version = WEFT_VERSION,
            .report = tell,
            .answers_bytes = answers_bytes};
        o.http = (struct http_options){.listen = find_listen(listen, listen_at, sizeof listen_at),
            .tls_cert = cert,
            .tls_key = key,
            .token = token,
            .origins = origins.v,
            .hosts = hosts.v};
        code = only_check ? check(&config) : coordinate(&o, &nodes);
    }
    cli_found_close(&nodes.found);
    free(nodes.token);
    coord_config_fini(&config);
    free(token);
    free(servers.v);
    free(origins.v);
    free(hosts.v);
    free(groups.v);
    return code;
}

const struct cli_verb verb_coordinate = {"coordinate", "", "one trace server over many",
    "weft coordinate --server web=http://web:8080 --server db=http://db:8080", run};
