/* SPDX-License-Identifier: MIT */
#include "cli/cluster.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/time.h"
#include "clock/clock.h"
#include "cluster/missing.h"

#define TIMEOUT_NS (30 * NS_PER_S)
#define CLOCKS_NS (5 * NS_PER_S)

static void note(void *arg, const char *what)
{
    (void)arg;
    cli_note("--cluster: %s", what);
}

int cli_cluster_connect(struct cli_cluster *c, const char *who, bool later, struct bus **out, struct err *e)
{
    struct bus_options o = {.url = c->url,
        .name = who,
        .creds = c->creds,
        .token = c->token_file,
        .user = c->user_file,
        .tls_ca = c->ca,
        .tls_cert = c->cert,
        .tls_key = c->key,
        .replicas = (unsigned)c->replicas,
        .signed_only = c->signed_only,
        .tell = note,
        .later = later};
    int rc = bus_open(&o, out, e);
    return rc ? err_wrap(e, "--cluster"), rc : 0;
}

static int relate_clocks(const struct cli_clocks *clocks, int64_t timeout_ns, struct cli_asked *a, struct err *e)
{
    bool stale = false, apart = cli_clocks_apart(clocks);
    int64_t patience = timeout_ns / 2 < CLOCKS_NS ? timeout_ns / 2 : CLOCKS_NS;
    int rc = cluster_sync(a->cluster, apart ? NULL : &clocks->options, time_monotonic_ns() + patience, &stale, e);
    if (!rc && stale)
        cli_note("traces have grown since the clocks were computed: times use the older clocks");
    return rc;
}

/* Names the nodes whose traces no answer has. */
static void note_missing(struct cli_asked *a)
{
    const struct cluster_missing *v;
    size_t n = cluster_missing(a->cluster, &v);
    for (size_t i = 0; i < n; i++)
        cli_note("%s", v[i].text);
    a->missing = n > 0;
}

static int refuse_empty(const struct cli_cluster *c, const struct cli_asked *a, struct err *e)
{
    const struct cluster_missing *v;
    if (cluster_missing(a->cluster, &v))
        return err_set(e, ERR_NOTFOUND, "%s; no other node of cluster %s has traces", v->text,
            c->name ? c->name : CLUSTER_DEFAULT);
    return err_set(e, ERR_NOTFOUND,
        "no node of cluster %s has a trace: start one with `weft serve --cluster URL --node NAME TRACE…`",
        c->name ? c->name : CLUSTER_DEFAULT);
}

int cli_cluster_ask(struct cli_cluster *c, const struct cli_clocks *clocks, struct cli_asked *a, struct err *e)
{
    int64_t timeout = TIMEOUT_NS;
    *a = (struct cli_asked){0};
    int rc = cli_parse_duration("timeout", c->timeout, &timeout, e);
    if (!rc)
        rc = cli_cluster_connect(c, "weft", false, &a->bus, e);
    if (!rc)
        rc = cluster_open(a->bus, c->name, &a->cluster, e);
    a->deadline_ns = time_monotonic_ns() + timeout;
    if (!rc && clocks)
        rc = relate_clocks(clocks, timeout, a, e);
    if (a->cluster)
        a->n = cluster_hosts(a->cluster, &a->hosts);
    if (a->n)
        note_missing(a);
    else if (a->cluster && (!rc || rc == ERR_NOTFOUND))
        rc = refuse_empty(c, a, e);
    return rc;
}

bool cli_asked_note_part(const struct cluster_host *h, const char *why)
{
    struct text begin = {.fd = -1}, end = {.fd = -1};
    if (!h->whole)
        return false;
    time_write_utc(&begin, h->excerpt_begin, true);
    time_write_utc(&end, h->excerpt_end, false);
    if (h->part)
        cli_note("%s: node %s, which has all of its trace, %s; node %s has a copy with %" PRIu64 " of %" PRIu64
                 " events, recorded from %s to %s",
            h->clock_name, h->whole, why, h->part, h->part_events, h->all_events, text_cstr(&begin), text_cstr(&end));
    else
        cli_note("%s: node %s, which has all of its trace, %s; node %s has what was recorded from %s to %s",
            h->clock_name, h->whole, why, h->nodes[0], text_cstr(&begin), text_cstr(&end));
    text_fini(&begin);
    text_fini(&end);
    return true;
}

bool cli_asked_note_copies(const struct cli_asked *a)
{
    bool some = false;
    for (size_t i = 0; i < a->n; i++)
        if (a->hosts[i].part)
            some |= cli_asked_note_part(&a->hosts[i], "does not answer");
    return some;
}

int cli_asked_finish(const struct cli_asked *a, struct text *out, bool lacking)
{
    return cli_finish(out, lacking || a->missing ? CLI_PARTIAL : CLI_OK);
}

void cli_asked_close(struct cli_asked *a)
{
    cluster_close(a->cluster);
    if (a->bus)
        bus_close(a->bus);
    *a = (struct cli_asked){0};
}
