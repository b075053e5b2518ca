/* SPDX-License-Identifier: MIT */
/* Options and queries of all verbs that use a cluster. */
#ifndef WEFT_CLI_CLUSTER_H
#define WEFT_CLI_CLUSTER_H

#include "bus/bus.h"
#include "cli/traces.h"
#include "cluster/cluster.h"

/* Options of a cluster. Zero-initialise; rows of the option table: CLI_CLUSTER. */
struct cli_cluster {
    const char *url, *name;
    const char *creds, *token_file, *user_file, *ca, *cert, *key;
    const char *timeout;
    int64_t replicas;
    bool signed_only;
};
#define CLI_CLUSTER(c) CLI_CLUSTER_LETTER(c, 'c')
/* CLI_CLUSTER for verbs that use the letter for another option; 0: no letter. */
#define CLI_CLUSTER_LETTER(c, letter) \
    {"cluster", letter, CLI_STRING, "URL", \
        "the cluster's broker: nats://HOST:PORT, several between commas, or tls://…", \
        &(c)->url}, \
        {"cluster-name", 0, CLI_STRING, "NAME", "which of the clusters on that broker (default: weft)", &(c)->name}, \
        {"nats-creds", 0, CLI_STRING, "FILE", "NATS credentials", &(c)->creds}, \
        {"nats-token-file", 0, CLI_STRING, "FILE", "the broker's token is the first line of FILE", &(c)->token_file}, \
        {"nats-user-file", 0, CLI_STRING, "FILE", "the broker's user: the first line of FILE is USER:PASSWORD", \
            &(c)->user_file}, \
        {"nats-ca", 0, CLI_STRING, "FILE", "authorities that may have signed the broker's certificate (PEM)", \
            &(c)->ca}, \
        {"replicas", 0, CLI_INT, "N", \
            "N brokers keep the cluster's tables; 3 survive the loss of one (default: as they are)", \
            &(c)->replicas, .least = 1, .most = 5}, \
        {"signed-only", 0, CLI_FLAG, NULL, "leave out nodes whose answers are not signed (of an older weft)", \
            &(c)->signed_only}, \
        {"nats-cert", 0, CLI_STRING, "FILE", "certificate to show to the broker (PEM)", &(c)->cert}, \
    { \
        "nats-key", 0, CLI_STRING, "FILE", "its key (PEM)", &(c)->key \
    }

/* CLI_CLUSTER for verbs that query the nodes. */
#define CLI_CLUSTER_ASKED(c) \
    CLI_CLUSTER(c), \
    { \
        "timeout", 0, CLI_STRING, "TIME", "with --cluster: how long nodes may take in all (default: 30s)", \
            &(c)->timeout \
    }

/* later: succeeds even if no broker answers, and keeps connecting. */
int cli_cluster_connect(struct cli_cluster *, const char *who, bool later, struct bus **out, struct err *e);
/* Drops a cluster that is only a setting if n > 0 TRACEs are given. */
void cli_cluster_give_way(struct cli_cluster *, size_t n);
/* Checks that TRACEs and a cluster are not both given. n: number of TRACEs. */
int cli_cluster_check(struct cli_cluster *, size_t n, struct err *e);

/* Open cluster for queries, with its hosts and their clocks. */
struct cli_asked {
    struct bus *bus;
    struct cluster *cluster;
    const struct cluster_host *hosts; size_t n;
    int64_t deadline_ns;
    bool missing;            /* traces of a node are missing, wholly or partly, from any answer; this was reported */
};
/* clocks: NULL if they do not matter. *out is valid for cli_asked_close in any case. */
int cli_cluster_ask(struct cli_cluster *, const struct cli_clocks *clocks, struct cli_asked *out, struct err *e);
/* Reports what another node's excerpt or lesser copy of the host has, if the host's own node did not answer. */
bool cli_asked_note_part(const struct cluster_host *, const char *why);
/* Reports this for all hosts of which a lesser copy was queried. Returns whether there are any. */
bool cli_asked_note_copies(const struct cli_asked *);
/* Writes the answer and returns the exit status. lacking: something else is missing from it. */
int cli_asked_finish(const struct cli_asked *, struct text *out, bool lacking);
void cli_asked_close(struct cli_asked *);

#endif
