/* What every verb that speaks with a cluster understands. */
#ifndef WEFT_CLI_CLUSTER_H
#define WEFT_CLI_CLUSTER_H

#include "bus/bus.h"
#include "cli/cli.h"

/* Zero-initialise; the rows of a table of options: CLI_CLUSTER. */
struct cli_cluster {
    const char *url, *name;
    const char *creds, *token_file, *ca, *cert, *key;
    char *token;             /* read from its file */
};
#define CLI_CLUSTER(c) \
    {"cluster", 'c', CLI_STRING, "URL", "the cluster's broker: nats://HOST:PORT, several between commas, or tls://…", \
        &(c)->url}, \
        {"cluster-name", 0, CLI_STRING, "NAME", "which of the clusters on that broker (default: weft)", &(c)->name}, \
        {"nats-creds", 0, CLI_STRING, "FILE", "NATS credentials", &(c)->creds}, \
        {"nats-token-file", 0, CLI_STRING, "FILE", "the broker's token is the first line of FILE", &(c)->token_file}, \
        {"nats-ca", 0, CLI_STRING, "FILE", "authorities that may have signed the broker's certificate (PEM)", \
            &(c)->ca}, \
        {"nats-cert", 0, CLI_STRING, "FILE", "certificate to show to the broker (PEM)", &(c)->cert}, \
    { \
        "nats-key", 0, CLI_STRING, "FILE", "its key (PEM)", &(c)->key \
    }

/* later: succeeds also while no broker answers, and goes on connecting. */
int cli_cluster_connect(struct cli_cluster *, const char *who, bool later, struct bus **out, struct err *e);
void cli_cluster_fini(struct cli_cluster *);

#endif
