/* SPDX-License-Identifier: MIT */
/* weft serve: trace server and viewer. */
#include "cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/time.h"
#include "cli/cluster.h"
#include "cli/far.h"
#include "cli/secrets.h"
#include "cli/server.h"
#include "cli/size.h"
#include "cli/traces.h"
#include "cluster/cluster.h"
#include "place/place.h"
#include "share/share.h"
#include "span/span.h"
#include "tsp/tsp.h"
#include "views/views.h"

#define LOOK_NS (NS_PER_S / 5)

static void note_left_out(const char *why)
{
    cli_note("%s; the other traces are served", why);
}

static void note_not_opened(const char *experiment, const char *why)
{
    cli_note("%s has changed but cannot be opened: %s; the version before is served", experiment, why);
}

static void note_of_node(void *arg, const char *what)
{
    cli_note("node %s: %s", (const char *)arg, what);
}

/* Node part of the server; zeroed if it is not a node. */
struct membership {
    const char *const *traces; /* TRACEs given, without spans */
    struct cli_cluster cluster;
    const char *node, *share, *public_url;
    const char *receive, *receive_limit; /* directory for traces from other nodes, and its size limit */
    uint64_t receive_bytes;
    bool give;
    struct cluster_node *is;
    struct cluster_announcement *announced; /* announcement of this server's URL */
    struct bus *bus;
    struct cli_far far; /* access to other nodes for the server's paths */
};

static int start_node(struct membership *m, const char *store, struct err *e)
{
    struct place_node_options receive = {m->receive, m->receive_bytes, m->give};
    struct cluster_node_options n = {.cluster = m->cluster.name,
        .name = m->node,
        .traces = m->traces,
        .store = store,
        .release = WEFT_VERSION,
        .moving = &place_part,
        .moving_options = &receive,
        .sharing = m->share ? &share_part : NULL,
        .sharing_options = m->share,
        .tell = note_of_node,
        .tell_arg = (void *)m->node};
    return cluster_node_start(m->bus, &n, &m->is, e);
}

/* Announces the server's URL to coordinators. Everything else works without it. */
static int announce_server(struct membership *m, const char *listening, struct err *e)
{
    struct cluster_server s = {.node = m->node, .url = m->public_url};
    char url[CLI_URL];
    if (!s.url && !cli_reached_at(listening, m->bus, url)) {
        cli_note("coordinators are not told where this server is: give --public-url URL");
        return 0;
    }
    s.url = s.url ? s.url : url;
    s.here_only = cli_is_loopback(s.url);
    return cluster_server_announce(m->bus, m->cluster.name, &s, &m->announced, e);
}

static int open_cache(struct membership *m, struct err *e)
{
    struct cluster_cache *cache;
    int rc = cluster_cache_open(m->bus, m->cluster.name, 0, &cache, e);
    atomic_store(&m->far.cache, cache);
    return rc;
}

/* Makes the server a node, as far as that is not done yet. */
static int join_cluster(struct membership *m, const char *store, const char *listening, struct err *e)
{
    int rc = m->bus ? bus_trouble(m->bus, e) : cli_cluster_connect(&m->cluster, m->node, false, &m->bus, e);
    if (!rc && !m->far.cache)
        rc = open_cache(m, e);
    if (!rc && !m->is)
        rc = start_node(m, store, e);
    return rc || m->announced ? rc : announce_server(m, listening, e);
}

/* Closes the cluster's cache and bus; nothing else may use the bus any more. */
static void close_cluster(struct membership *m)
{
    cluster_cache_close(m->far.cache);
    if (m->bus)
        bus_close(m->bus);
}

static int check_membership(struct membership *m, struct err *e)
{
    if (!m->node && cli_is_setting(&m->cluster.url))
        m->cluster.url = NULL; /* setting for verbs that query */
    const char *wrong = m->public_url ? cluster_url_problem(m->public_url) : NULL;
    if (wrong)
        return err_set(e, ERR_ARG, "--public-url %s: %s", m->public_url, wrong);
    if (!m->node && m->public_url)
        return err_set(e, ERR_ARG, "--public-url is for coordinators of a cluster: give --cluster URL --node NAME");
    if (!m->node && (m->receive || m->give))
        return err_set(e, ERR_ARG, "--receive and --give are for nodes of a cluster: give --cluster URL --node NAME");
    if (m->receive_limit && !m->receive)
        return err_set(e, ERR_ARG, "--receive-limit is for what may come to --receive DIR: give both");
    if (m->receive_limit && cli_parse_size("--receive-limit", m->receive_limit, &m->receive_bytes, e))
        return ERR_ARG;
    if (!m->cluster.url != !m->node)
        return err_set(e, ERR_ARG,
            m->node ? "--node names a node of a cluster: which one? Give --cluster URL"
                    : "--cluster needs a name for this node: give --node NAME");
    if (m->share && !m->node)
        return err_set(e, ERR_ARG, "--share is for a node of a cluster: give --cluster URL and --node NAME");
    if (m->node && !m->share && !m->receive && !m->traces[0])
        return err_set(e, ERR_ARG,
            "a node without traces has nothing to answer with: name TRACEs, a directory of traces that several nodes "
            "see (--share DIR), or have it take some of other nodes (--receive DIR)");
    return 0;
}

/* Checks that a name given is a host of the TRACEs, as in other verbs. A setting is for all that is served. Traces that
 * cannot be opened are reported by the server. */
static int check_reference(const struct cli_clocks *c, const char *const *traces, const char *store, struct err *e)
{
    const struct index_options index = {.store = store};
    const struct index_host *hosts;
    struct experiment *x;
    struct err unopened = {0};
    size_t n = 0;
    while (traces[n])
        n++;
    if (!c->reference || cli_is_setting(&c->reference) || !n || index_experiment_open(traces, n, &index, &x, &unopened))
        return 0;
    struct cli_hosts names = CLI_HOSTS_NONE;
    size_t n_hosts = index_experiment_hosts(x, &hosts);
    for (size_t i = 0; i < n_hosts; i++)
        cli_hosts_add(&names, hosts[i].clock_name, hosts[i].begin, hosts[i].end);
    int rc = cli_hosts_check(&names, "--reference", c->reference, e);
    cli_hosts_fini(&names);
    index_experiment_close(x);
    return rc;
}

/* Notes if no trace can be opened, and who can reach the server. */
static void note_reach(const struct tsp_options *o, const struct membership *m, const char *address)
{
    if (!o->traces[0] && !o->trace_root && !o->state_dir && !m->share)
        cli_note(
            "no trace is given, so none can be opened: name TRACEs, or let clients open some below --trace-root DIR "
            "or upload them to --state DIR");
    cli_note_reach(address, o->http.token != NULL);
}

static void note_listening(const struct tsp_options *o, const struct membership *m, const struct tsp_server *server)
{
    const char *address = tsp_server_address(server);
    printf("weft: listening on %s\n", address);
    fflush(stdout);
    note_reach(o, m, address);
}

/* Returns whether a signal to stop comes within that time. */
static bool stops_within(const sigset_t *stop, int64_t ns)
{
    const struct timespec t = {ns / NS_PER_S, ns % NS_PER_S};
    return sigtimedwait(stop, NULL, &t) > 0;
}

/* Joins the cluster. A broker that is away, or too slow, is waited for, while the server is there. *stopped: by a
 * signal meanwhile. */
static int join_patiently(const struct tsp_options *o, struct membership *m, const char *store,
    const struct tsp_server *server, const sigset_t *stop, bool *stopped, struct err *e)
{
    for (bool waits = false;; waits = true) {
        int rc = join_cluster(m, store, tsp_server_address(server), e);
        if (!waits && (!rc || rc == ERR_TIMEOUT))
            note_listening(o, m, server);
        if (rc != ERR_TIMEOUT) {
            if (!rc && waits)
                cli_note("node %s has joined the cluster", m->node);
            return rc;
        }
        if (!waits)
            cli_note("%s; node %s waits for it, and joins the cluster then", e->text, m->node);
        *stopped = stops_within(stop, LOOK_NS);
        if (*stopped)
            return 0;
    }
}

/* Serves until a signal to stop. */
static int serve(const struct tsp_options *o, struct membership *m, const char *store, const sigset_t *stop)
{
    struct tsp_server *server;
    struct err e = {0};
    int signal_number, code = CLI_OK;
    bool stopped = false;
    if (tsp_server_start(o, &server, &e))
        return cli_fail(&e);
    if (!m->node)
        note_listening(o, m, server);
    else if (join_patiently(o, m, store, server, stop, &stopped, &e))
        code = cli_fail(&e);
    if (code == CLI_OK && !stopped)
        sigwait(stop, &signal_number);
    cluster_server_withdraw(m->announced);
    cluster_node_stop(m->is);
    if (!tsp_server_stop(server))
        _exit(code); /* traces are still being indexed; what is written is written in one step */
    return code;
}

/* Traces have paths, and clients see them: a file stands for a database, always the same one. */
static int stand_in(const char *url, char **real, struct err *e)
{
    char *shown = span_store_shown(url), *directory = cli_state_directory("spans");
    if (!directory) {
        free(shown);
        return err_set(e, ERR_ARG, "--spans: HOME is not set, where the reference to the database is stored");
    }
    for (char *c = shown; (c = strchr(c, '/')); c++)
        *c = '_';
    *real = mem_printf("%s/%s", directory, strchr(shown, ':') + 3);
    int rc = file_make_dirs(directory, e);
    rc = rc ? rc : file_write(*real, "", 0, e);
    free(shown);
    free(directory);
    if (!rc) {
        char *path = *real;
        *real = file_real_path(path);
        free(path);
    }
    return rc || *real ? rc : err_sys(e, "--spans");
}

/* The path as the server names traces by. */
static int find_spans(const char *spans, char **real, struct err *e)
{
    if (spans && span_store_is_url(spans))
        return stand_in(spans, real, e);
    if (spans && !(*real = file_real_path(spans)))
        return err_sys(e, "--spans %s", spans);
    return 0;
}

static int run(int argc, char **argv)
{
    int64_t max_open = 0;
    const char *listen = "127.0.0.1:8080", *root = NULL, *state = NULL, *store = NULL, *cert = NULL, *key = NULL,
               *token_file = NULL, *upload = "1G", *name = NULL, *spans = NULL;
    bool frozen = false;
    struct cli_list origins = {0}, hosts = {0}, served = {0};
    struct cli_clocks clocks = {0};
    struct membership member = {0};
    const struct cli_option options[] = {
        {"listen", 'l', CLI_STRING, "ADDRESS:PORT", "where to listen (default: 127.0.0.1:8080; port 0: any free one)",
            &listen},
        {"trace-root", 0, CLI_STRING, "DIR", "clients may open traces below DIR (default: only the TRACEs given)",
            &root},
        {"state", 0, CLI_STRING, "DIR", "keep traces, experiments, bookmarks and uploads in DIR over restarts", &state},
        {"store", 0, CLI_STRING, "DIR",
            "keep the index stores below DIR (default: .weft in each trace, else the user's cache)", &store},
        {"spans", 0, CLI_STRING, "DIR|URL",
            "show spans, too: the store that weft collect keeps (a directory, postgresql:…), or a file of OTLP JSON; "
            "TRACEs need not be given then",
            &spans},
        {"name", 0, CLI_STRING, "NAME", "name of the experiment of the TRACEs given", &name},
        CLI_CLOCKS(&clocks),
        {"frozen", 0, CLI_FLAG, NULL, "do not watch traces for new data (default: new data are shown)", &frozen},
        {"max-upload", 0, CLI_STRING, "SIZE", "largest upload taken, with --state (default: 1G; 0: none)", &upload},
        {"max-open", 0, CLI_INT, "N",
            "number of open experiments; beyond it the least recently used one is closed (default: 32)", &max_open,
            .least = 1, .most = 1000},
        {"tls-cert", 0, CLI_STRING, "FILE", "certificate (PEM): serve https", &cert},
        {"tls-key", 0, CLI_STRING, "FILE", "its key (PEM)", &key},
        {"token-file", 0, CLI_STRING, "FILE", "clients must send the token in FILE (Authorization: Bearer)",
            &token_file},
        CLI_CLUSTER(&member.cluster),
        {"node", 0, CLI_STRING, "NAME", "answer for these traces in the cluster under this name", &member.node},
        {"public-url", 0, CLI_STRING, "URL",
            "with --node: where coordinators reach this server (default: where it listens)", &member.public_url},
        {"receive", 0, CLI_STRING, "DIR", "accept traces moved from other nodes, below DIR (weft place)",
            &member.receive},
        {"receive-limit", 0, CLI_STRING, "SIZE",
            "as much as DIR may hold, stores included (512M, 20G; default: what the disk has)", &member.receive_limit},
        {"give", 0, CLI_FLAG, NULL, "let other nodes copy these traces (weft place)", &member.give},
        {"share", 0, CLI_STRING, "DIR",
            "with --node: index traces below DIR, which other nodes see too, when `weft index --cluster` asks for it, "
            "and answer for a share of them",
            &member.share},
        {"cors", 0, CLI_LIST, "ORIGIN",
            "pages of ORIGIN (https://host) may call the server; editors: those of VS Code and Theia; *: all may ask; "
            "may be given several times",
            &origins},
        CLI_HOSTS(&hosts),
        {0},
    };
    int n, code = cli_parse(&verb_serve, options, argc, argv, &n);
    struct err e = {0};
    struct tsp_options o = {.http = {.listen = listen, .tls_cert = cert, .tls_key = key},
        .trace_root = root,
        .state_dir = state,
        .experiment_name = name,
        .left_out = note_left_out,
        .not_opened = note_not_opened,
        .version = WEFT_VERSION};

    char *token = NULL, *spans_path = NULL;
    sigset_t stop;
    if (code >= 0)
        return code;
    argv[n + 1] = NULL; /* the end of the positional arguments; the rest has been parsed */
    member.traces = (const char *const *)argv + 1;
    if (cli_parse_size("--max-upload", upload, &o.max_upload_bytes, &e) || cli_clocks_parse(&clocks, &e) ||
        check_membership(&member, &e) || check_reference(&clocks, member.traces, store, &e) ||
        find_spans(spans, &spans_path, &e) || (token_file && cli_read_token("--token-file", token_file, &token, &e))) {
        cli_clocks_fini(&clocks);
        free(origins.v);
        free(hosts.v);
        free(spans_path);
        return cli_fail(&e);
    }
    for (int i = 1; i <= n; i++)
        vec_push(&served, (const char *)argv[i]);
    if (spans)
        vec_push(&served, (const char *)spans_path);
    vec_push(&served, (const char *)NULL);
    o.traces = served.v;
    clocks.options.some_named = true; /* experiments need not have all of them */
    vec_push(&origins, (const char *)NULL);
    char public_host[256]; /* host name of the public URL, by which others call this server */
    if (member.public_url && sscanf(member.public_url, "%*[^:]://%255[^:/]", public_host) == 1)
        vec_push(&hosts, (const char *)public_host);
    vec_push(&hosts, (const char *)NULL);
    struct views_far far = cli_far_of(&member.far);
    struct views_options views = {.store = store,
        .clocks = &clocks.options,
        .spans = spans_path,
        .spans_url = spans && span_store_is_url(spans) ? spans : NULL,
        .far = member.node ? &far : NULL};
    o.backend = views_backend(&views);
    o.frozen = frozen;
    o.max_open = (size_t)max_open;
    o.http.origins = origins.v;
    o.http.hosts = hosts.v;
    o.http.token = token;
    /* Signal mask set before any thread starts: threads inherit it, and the signals wait for sigwait. */
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    cli_prepare_server();
    code = serve(&o, &member, store, &stop);
    close_cluster(&member);
    free(spans_path);
    free(served.v);
    free(token);
    free(origins.v);
    free(hosts.v);
    cli_clocks_fini(&clocks);
    return code;
}

const struct cli_verb verb_serve = {
    "serve", "[TRACE…]", "trace server (Trace Server Protocol) and web viewer", "weft serve examples/three-tier", run};
