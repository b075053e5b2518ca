/* SPDX-License-Identifier: MIT */
/* Settings from the environment: endpoint, identity and spool of spans. */
#ifndef WEFT_SCRIPT_SETTINGS_H
#define WEFT_SCRIPT_SETTINGS_H

#include "base/arena.h"
#include "script/span.h"

enum {
    SCRIPT_TIMEOUT_MS = 2000,         /* limit of the delay of a script per delivery */
    SCRIPT_MOST_TIMEOUT_MS = 30000,
    SCRIPT_SPOOL_BYTES = 64 << 20,
};
struct script_url {
    const char *host, *port, *path;   /* path: with its query, begins with a slash */
    bool numeric;                     /* address or localhost, which needs no name service */
    bool tls;                         /* https */
};
struct script_settings {
    struct arena arena;               /* memory for all values that are not in the environment itself */
    bool quiet;
    bool off;                         /* recording is off; contexts are passed on */
    const char *endpoint;             /* endpoint as given, or the default */
    bool only_kept;                   /* spool without an endpoint: spans stay there until `flush` sends them */
    const char *unusable;             /* why the endpoint cannot be used, or NULL */
    struct script_url url;            /* parts of a usable endpoint */
    bool thrift;                      /* Jaeger's own format instead of OTLP */
    struct text headers;              /* "Name: value\r\n" … */
    const char *ca_file;              /* PEM of the certificate authorities; NULL: those that the system trusts */
    const char *client_certificate, *client_key;      /* PEM files of this client's identity; or NULL */
    int64_t timeout_ns;
    const char *service;
    struct script_attributes resource;
    const char *spool;                /* directory, which need not exist */
    bool spool_given;                 /* given by WEFT_SPAN_SPOOL; may be another user's */
    uint64_t spool_bytes;
    double share;                     /* share of new traces to record: 0 to 1 */
    bool announce;                    /* open spans are reported */
};

/* `pfeil`: variables of Jaeger have priority over those of OpenTelemetry. Never fails: invalid values are noted. */
void script_read_settings(struct script_settings *, bool pfeil, bool quiet);
void script_settings_fini(struct script_settings *);
/* Applies --service. */
void script_set_service(struct script_settings *, const char *service);
/* Parses http[s]://HOST[:PORT][/PATH]. The default port is that of http. Returns false with a reason in `why`. */
bool script_read_url(struct arena *, const char *s, const char *default_port, struct script_url *, const char **why);
/* Reads KEY=VALUE,KEY=VALUE with %XX for special characters. */
void script_read_pairs(struct arena *, const char *s, struct script_attributes *out);

/* Prints one line on stderr, unless --quiet. */
void script_note(const struct script_settings *, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
