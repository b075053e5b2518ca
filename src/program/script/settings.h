/* SPDX-License-Identifier: MIT */
/* What the environment says: where spans go, whose they are, where they wait. */
#ifndef WEFT_SCRIPT_SETTINGS_H
#define WEFT_SCRIPT_SETTINGS_H

#include "base/arena.h"
#include "script/span.h"

enum {
    SCRIPT_TIMEOUT_MS = 2000,         /* how long one delivery may hold the script up */
    SCRIPT_MOST_TIMEOUT_MS = 30000,
    SCRIPT_SPOOL_BYTES = 64 << 20,
};
struct script_url {
    const char *host, *port, *path;   /* path: with its query, begins with a slash */
    bool numeric;                     /* an address, or localhost: no name service is asked */
    bool tls;                         /* https */
};
struct script_settings {
    struct arena arena;               /* of all that the environment does not hold itself */
    bool quiet;
    bool off;                         /* nothing is recorded, contexts are passed on */
    const char *endpoint;             /* as it was given, or the default */
    bool only_kept;                   /* a spool is given and no endpoint: spans wait there, only `flush` sends */
    const char *unusable;             /* why it cannot be used, or NULL */
    struct script_url url;            /* of `endpoint`, if it can be used */
    bool thrift;                      /* Jaeger's own format instead of OTLP */
    struct text headers;              /* "Name: value\r\n" … */
    const char *ca_file;              /* PEM of those who sign servers' certificates; NULL: whom the system trusts */
    const char *client_certificate, *client_key;      /* PEM files that show who this is; or NULL */
    int64_t timeout_ns;
    const char *service;
    struct script_attributes resource;
    const char *spool;                /* a directory, which need not be there */
    bool spool_given;                 /* by WEFT_SPAN_SPOOL: it may be another user's */
    uint64_t spool_bytes;
    double share;                     /* of new traces that are recorded: 0 to 1 */
    bool announce;                    /* open spans are told */
};

/* `pfeil`: variables of Jaeger count more than those of OpenTelemetry. Never fails: what makes no sense is noted. */
void script_read_settings(struct script_settings *, bool pfeil, bool quiet);
void script_settings_fini(struct script_settings *);
/* --service. */
void script_set_service(struct script_settings *, const char *service);
/* http[s]://HOST[:PORT][/PATH]; the default port is that of http. False: `why` says why not. */
bool script_read_url(struct arena *, const char *s, const char *default_port, struct script_url *, const char **why);
/* KEY=VALUE,KEY=VALUE with %XX for what has another meaning. */
void script_read_pairs(struct arena *, const char *s, struct script_attributes *out);

/* One line on stderr, unless --quiet. */
void script_note(const struct script_settings *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
