/* SPDX-License-Identifier: MIT */
/* What every verb that speaks with a cluster understands. */
#ifndef WEFT_CLI_CLUSTER_H
#define WEFT_CLI_CLUSTER_H

#include "bus/bus.h"
#include "cli/traces.h"
#include "cluster/cluster.h"

/* Zero-initialise; the rows of a table of options: CLI_CLUSTER. */
struct cli_cluster {
    const char *url, *name;
    const char *creds, *token_file, *user_file, *ca, *cert, *key;
    const char *timeout;
    int64_t replicas;
    bool signed_only;
};
#define CLI_CLUSTER(c) CLI_CLUSTER_LETTER(c, 'c')
/* Where the letter is another option's: 0. */
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

/* And of verbs that ask the nodes. */
#define CLI_CLUSTER_ASKED(c) \
    CLI_CLUSTER(c), \
    { \
        "timeout", 0, CLI_STRING, "TIME", "with --cluster: how long nodes may take in all (default: 30s)", \
            &(c)->timeout \
    }

/* later: succeeds also while no broker answers, and goes on connecting. */
int cli_cluster_connect(struct cli_cluster *, const char *who, bool later, struct bus **out, struct err *e);
/* A cluster that is only a setting gives way to n TRACEs that are given. */
void cli_cluster_give_way(struct cli_cluster *, size_t n);
/* The verb is about TRACEs or about a cluster, not both. n: how many TRACEs are given. */
int cli_cluster_check(struct cli_cluster *, size_t n, struct err *e);

/* A cluster that is open to be asked, its hosts and their clocks. */
struct cli_asked {
    struct bus *bus;
    struct cluster *cluster;
    const struct cluster_host *hosts; size_t n;
    int64_t deadline_ns;
    bool missing;            /* a node's traces are not, or not all, in any answer: which was told */
};
/* clocks: NULL when they do not matter. Zeroed in any case, for cli_asked_close. */
int cli_cluster_ask(struct cli_cluster *, const struct cli_clocks *clocks, struct cli_asked *out, struct err *e);
/* Says of the host, if its node did not answer and another one has a snip or a lesser copy, what that one has. */
bool cli_asked_note_part(const struct cluster_host *, const char *why);
/* Says so of all hosts of which a lesser copy had to be asked. True: there are some. */
bool cli_asked_note_copies(const struct cli_asked *);
/* Writes the answer. Returns the exit status; lacking: something more is not in it. */
int cli_asked_finish(const struct cli_asked *, struct text *out, bool lacking);
void cli_asked_close(struct cli_asked *);

#endif
