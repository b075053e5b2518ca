/* SPDX-License-Identifier: MIT */
/* weft collect: takes spans in, and answers questions about them. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/time.h"
#include "cli/cli.h"
#include "cli/secrets.h"
#include "cli/server.h"
#include "cli/size.h"
#include "span/span.h"

static const char none[] = "none";

/* "30d", "12h", "90m", "3600s" */
static int parse_age(const char *s, int64_t *out, struct err *e)
{
    static const struct {
        char unit;
        int64_t seconds;
    } units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end;
    long long v = strtoll(s, &end, 10);
    *out = 0;
    if (!strcmp(s, none))
        return 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (end > s && *end == units[i].unit && !end[1] && v > 0 && v < 1000000000 / units[i].seconds) {
            *out = v * units[i].seconds * NS_PER_S;
            return 0;
        }
    return err_set(e, ERR_ARG, "--keep %s: give a time such as 30d, 12h or 90m, or none", s);
}

char *cli_state_directory(const char *name)
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (state && *state == '/')
        return mem_printf("%s/weft/%s", state, name);
    return home && *home ? mem_printf("%s/.local/state/weft/%s", home, name) : NULL;
}

char *cli_collect_store(void)
{
    return cli_state_directory("collect");
}

static void tell(const char *what)
{
    cli_note("%s", what);
}

static int collect(const struct span_collect_options *o, const sigset_t *stop)
{
    static const char *const takes[SPAN_DOORS] = {"OTLP/HTTP", "OTLP/gRPC", "Jaeger's Thrift", "Zipkin", "questions"};
    struct span_collector *c;
    struct err e = {0};
    int signal_number;
    cli_prepare_server();
    if (span_collect_start(o, &c, &e))
        return cli_fail(&e);
    for (enum span_door d = 0; d < SPAN_DOORS; d++)
        if (span_collect_address(c, d)) {
            printf("weft: listening on %s for %s\n", span_collect_address(c, d), takes[d]);
            cli_note_reach(span_collect_address(c, d), o->token != NULL);
        }
    fflush(stdout);
    sigwait(stop, &signal_number);
    span_collect_stop(c);
    return CLI_OK;
}

static const char *door(const char *listen)
{
    return strcmp(listen, none) ? listen : NULL;
}

static int run(int argc, char **argv)
{
    const char *otlp_http = "127.0.0.1:4318", *otlp_grpc = "127.0.0.1:4317", *jaeger = "127.0.0.1:14268",
               *zipkin = "127.0.0.1:9411", *query = "127.0.0.1:16686", *store = NULL, *keep = "30d", *keep_size = none,
               *cert = NULL, *key = NULL, *token_file = NULL, *log = NULL, *forward = NULL, *forward_spool = "1G",
               *forward_token_file = NULL, *forward_ca = NULL;
    struct cli_list origins = {0}, hosts = {0};
    const struct cli_option options[] = {
        {"otlp-http", 0, CLI_STRING, "ADDRESS:PORT",
            "receive OTLP over HTTP here (default: 127.0.0.1:4318; port 0: any free one; none: not at all)",
            &otlp_http},
        {"otlp-grpc", 0, CLI_STRING, "ADDRESS:PORT", "where OTLP over gRPC comes (default: 127.0.0.1:4317; none)",
            &otlp_grpc},
        {"jaeger", 0, CLI_STRING, "ADDRESS:PORT",
            "where Jaeger's Thrift over HTTP comes (default: 127.0.0.1:14268; none)", &jaeger},
        {"zipkin", 0, CLI_STRING, "ADDRESS:PORT", "where Zipkin's JSON comes (default: 127.0.0.1:9411; none)", &zipkin},
        {"query", 0, CLI_STRING, "ADDRESS:PORT",
            "serve Jaeger's query interfaces here (default: 127.0.0.1:16686; none)", &query},
        {"store", 0, CLI_STRING, "DIR|URL",
            "where spans are kept: a directory (default: weft/collect in the user's directory of state), or a "
            "PostgreSQL database (postgresql://USER@HOST/DATABASE)",
            &store},
        {"log", 0, CLI_STRING, "DIR",
            "with a database: where acknowledged spans wait for it (default: weft/collect-log in the user's directory "
            "of state)",
            &log},
        {"forward", 0, CLI_STRING, "URL",
            "forward all received spans to this collector by OTLP over HTTP (http://HOST:4318)", &forward},
        {"forward-token-file", 0, CLI_STRING, "FILE", "send it the token in FILE (Authorization: Bearer)",
            &forward_token_file},
        {"forward-ca", 0, CLI_STRING, "FILE", "who signed its certificate (PEM; default: whom the system trusts)",
            &forward_ca},
        {"forward-spool", 0, CLI_STRING, "SIZE",
            "drop the oldest spans that wait for it when all take more than SIZE (default: 1G)", &forward_spool},
        {"keep", 0, CLI_STRING, "TIME",
            "delete spans received longer ago than this (30d, 12h, 90m; none; default: 30d)", &keep},
        {"keep-size", 0, CLI_STRING, "SIZE",
            "delete the oldest spans when all take more than SIZE (512M, 20G; none; default: none)", &keep_size},
        {"tls-cert", 0, CLI_STRING, "FILE", "certificate (PEM): https", &cert},
        {"tls-key", 0, CLI_STRING, "FILE", "its key (PEM)", &key},
        {"token-file", 0, CLI_STRING, "FILE", "require the token in FILE (Authorization: Bearer)", &token_file},
        {"cors", 0, CLI_LIST, "ORIGIN", "pages of ORIGIN (https://host) may send and ask; may be given several times",
            &origins},
        CLI_HOSTS(&hosts),
        {0},
    };
    int n, code = cli_parse(&verb_collect, options, argc, argv, &n);
    struct err e = {0};
    if (code >= 0)
        return code;
    struct span_collect_options o = {.otlp_http = door(otlp_http),
        .otlp_grpc = door(otlp_grpc),
        .jaeger = door(jaeger),
        .zipkin = door(zipkin),
        .query = door(query),
        .forward = forward,
        .forward_ca = forward_ca,
        .tls_cert = cert,
        .tls_key = key,
        .tell = tell};
    bool url = store && span_store_is_url(store);
    char *token = NULL, *forward_token = NULL, *usual = store ? NULL : cli_collect_store(),
         *usual_log = url && !log ? cli_state_directory("collect-log") : NULL;
    sigset_t stop;
    o.store = store ? store : usual;
    o.directory = log ? log : usual_log;
    if (n)
        err_set(&e, ERR_ARG, "%s: collect takes no arguments; see weft collect --help", argv[1]);
    else if (!o.store)
        err_set(&e, ERR_ARG, "HOME is not set: give --store DIR");
    else if (url && !o.directory)
        err_set(&e, ERR_ARG, "no HOME to keep the log of spans in: give --log DIR");
    else if (log && !url)
        err_set(&e, ERR_ARG, "--log %s: a store in a directory keeps its log beside it; --log is for a database", log);
    else if (!o.otlp_http && !o.otlp_grpc && !o.jaeger && !o.zipkin && !o.query)
        err_set(&e, ERR_ARG, "all addresses are \"none\": give at least one to listen on");
    else if (!parse_age(keep, &o.keep_ns, &e) && strcmp(keep_size, none) != 0)
        cli_parse_size("--keep-size", keep_size, &o.keep_bytes, &e);
    if (!e.code)
        cli_parse_size("--forward-spool", forward_spool, &o.forward_spool_bytes, &e);
    if (!e.code && token_file)
        cli_read_token("--token-file", token_file, &token, &e);
    if (!e.code && !forward && (forward_token_file || forward_ca))
        err_set(&e, ERR_ARG, "--forward-token-file and --forward-ca are for --forward URL");
    if (!e.code && forward_ca && access(forward_ca, R_OK))
        err_sys(&e, "--forward-ca %s", forward_ca);
    if (!e.code && forward_token_file)
        cli_read_token("--forward-token-file", forward_token_file, &forward_token, &e);
    vec_push(&origins, (const char *)NULL);
    vec_push(&hosts, (const char *)NULL);
    o.origins = origins.v;
    o.hosts = hosts.v;
    o.token = token;
    o.forward_token = forward_token;
    /* Signal mask set before any thread starts: threads inherit it, and the signals wait for sigwait. */
    sigemptyset(&stop);
    sigaddset(&stop, SIGTERM);
    sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL);
    umask(077); /* spans may contain private data */
    code = e.code ? cli_fail(&e) : collect(&o, &stop);
    free(token);
    free(forward_token);
    free(usual);
    free(usual_log);
    free(origins.v);
    free(hosts.v);
    return code;
}

const struct cli_verb verb_collect = {
    "collect", "", "span collector with Jaeger's query interfaces", "weft collect --store /var/lib/weft/spans", run};
