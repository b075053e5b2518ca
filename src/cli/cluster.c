#include "cli/cluster.h"

#include <stdlib.h>
#include <string.h>

#include "cli/secrets.h"

int cli_cluster_connect(struct cli_cluster *c, const char *who, bool later, struct bus **out, struct err *e)
{
    int rc = c->token_file ? cli_read_token("--nats-token-file", c->token_file, &c->token, e) : 0;
    struct bus_options o = {.url = c->url,
        .name = who,
        .creds = c->creds,
        .token = c->token,
        .tls_ca = c->ca,
        .tls_cert = c->cert,
        .tls_key = c->key,
        .later = later};
    if (rc)
        return rc;
    rc = bus_open(&o, out, e);
    return rc ? err_wrap(e, "--cluster"), rc : 0;
}

void cli_cluster_fini(struct cli_cluster *c)
{
    free(c->token);
    c->token = NULL;
}
