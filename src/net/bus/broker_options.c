/* SPDX-License-Identifier: MIT */
/* Options of the connection to NATS: servers, credentials, TLS. Messages contain only host names and files. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "bus/broker.h"

enum {
    PING_EVERY_MS = 5000,
    PINGS_OUT = 2,
    WAITING_BYTES = 8 << 20, /* sent while there is no connection, for as long as that lasts */
    LONGEST_WAIT_MS = 5000,
    SHORTEST_WAIT_MS = 50,
};

/* Returns the delay of an attempt, doubled each time up to some seconds, with jitter so that nodes do not connect at
 * the same time. */
static int64_t reconnect_delay(natsConnection *nc, int attempts, void *arg)
{
    int64_t ms = LONGEST_WAIT_MS;
    if (attempts < 7)
        ms = SHORTEST_WAIT_MS << (attempts > 0 ? attempts : 0);
    ms = ms < LONGEST_WAIT_MS ? ms : LONGEST_WAIT_MS;
    return ms / 2 + arc4random_uniform((uint32_t)(ms / 2 + 1));
}

/* The default would print. What was lost shows itself: as a missed deadline, or a gap that a watch closes. Rights that
 * are missing are kept for the errors that follow. */
static void on_error(natsConnection *nc, natsSubscription *sub, natsStatus s, void *arg)
{
    const char *text = NULL;
    if (s == NATS_NOT_PERMITTED && natsConnection_GetLastError(nc, &text) == NATS_NOT_PERMITTED && text)
        bus_broker_lacks(arg, text);
}

/* "nats://user:password@host:port" as "nats://host:port". */
static void put_without_user(struct text *t, const char *url)
{
    const char *host = strstr(url, "://") + 3, *at = strrchr(host, '@');
    text_put(t, url, (size_t)(host - url));
    text_puts(t, at ? at + 1 : host);
}

/* Splits the list in place. */
static int split(char *list, const char **urls, int *n, int most, bool *tls, struct err *e)
{
    *n = 0;
    *tls = false;
    for (char *rest = list, *url; (url = strsep(&rest, ","));) {
        url += strspn(url, " ");
        if (strncmp(url, "nats://", 7) != 0 && strncmp(url, "tls://", 6) != 0)
            return err_set(e, ERR_ARG, "bus: server %d of the URL begins with neither nats:// nor tls://", *n + 1);
        if (*n == most)
            return err_set(e, ERR_ARG, "bus: the URL has more than %d servers", most);
        *tls |= *url == 't';
        urls[(*n)++] = url;
    }
    return 0;
}

static int read_line(const char *what, const char *path, char *out, size_t room, struct err *e)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_sys(e, "%s file %s", what, path);
    ssize_t n = read(fd, out, room - 1);
    if (n < 0) {
        int rc = err_sys(e, "%s file %s", what, path);
        close(fd);
        return rc;
    }
    close(fd);
    out[n] = '\0';
    out[strcspn(out, "\r\n")] = '\0';
    if (out[strspn(out, " 	")])
        return 0;
    return err_set(e, ERR_ARG, "%s file %s: its first line must be the %s, not blanks", what, path, what);
}

static int check_file(const char *what, const char *path, struct err *e)
{
    return path && access(path, R_OK) ? (err_sys(e, "%s file %s", what, path), ERR_ARG) : 0;
}

/* Gives a user inboxes of its own, which the broker can keep from others. A name that is too long shares the usual
 * ones. */
static natsStatus set_inboxes(natsOptions *o, struct broker *broker, const char *user)
{
    char token[INBOXES_ROOM - 8];
    if (bus_token(user, token, sizeof token))
        return NATS_OK;
    snprintf(broker->inboxes, sizeof broker->inboxes, "_INBOX.%s", token);
    return natsOptions_SetCustomInboxPrefix(o, broker->inboxes);
}

static int set_user(natsOptions *o, struct broker *broker, const char *path, struct err *e)
{
    char line[4096];
    int rc = read_line("user", path, line, sizeof line, e);
    char *colon = rc ? NULL : strchr(line, ':');
    if (!rc && !colon)
        rc = err_set(e, ERR_ARG, "user file %s: its first line is not USER:PASSWORD", path);
    if (!rc)
        *colon = '\0';
    if (!rc && (natsOptions_SetUserInfo(o, line, colon + 1) || set_inboxes(o, broker, line)))
        rc = err_set(e, ERR_NOMEM, "out of memory: user");
    explicit_bzero(line, sizeof line);
    return rc;
}

static int set_secrets(natsOptions *o, const struct bus_options *b, struct broker *broker, struct err *e)
{
    char token[4096];
    int rc = check_file("credentials", b->creds, e);
    if (!rc && b->creds && natsOptions_SetUserCredentialsFromFiles(o, b->creds, NULL))
        rc = err_set(e, ERR_ARG, "credentials file %s: cannot be used", b->creds);
    if (!rc && b->token) {
        rc = read_line("token", b->token, token, sizeof token, e);
        if (!rc && natsOptions_SetToken(o, token))
            rc = err_set(e, ERR_NOMEM, "out of memory: token");
        explicit_bzero(token, sizeof token);
    }
    return rc || !b->user ? rc : set_user(o, broker, b->user, e);
}

static int set_tls(natsOptions *o, const struct bus_options *b, bool tls, struct err *e)
{
    int rc = check_file("TLS authority", b->tls_ca, e);
    rc = rc ? rc : check_file("TLS certificate", b->tls_cert, e);
    rc = rc ? rc : check_file("TLS key", b->tls_key, e);
    if (rc || !(tls || b->tls_ca || b->tls_cert))
        return rc;
    if (!b->tls_cert != !b->tls_key)
        return err_set(e, ERR_ARG, "bus: a TLS certificate and its key go together");
    if (natsOptions_SetSecure(o, true))
        return err_set(e, ERR_UNSUPPORTED, "bus: this libnats knows no TLS");
    if (b->tls_ca && natsOptions_LoadCATrustedCertificates(o, b->tls_ca))
        return err_set(e, ERR_ARG, "TLS authority file %s: is no PEM certificate", b->tls_ca);
    if (b->tls_cert && natsOptions_LoadCertificatesChain(o, b->tls_cert, b->tls_key))
        return err_set(e, ERR_ARG, "TLS certificate file %s: does not go with key %s", b->tls_cert, b->tls_key);
    return 0;
}

static natsStatus set_usual(natsOptions *o, const struct bus_options *b, struct broker *broker)
{
    natsStatus s = natsOptions_SetMaxReconnect(o, -1);
    s = s ? s : natsOptions_SetAllowReconnect(o, true);
    s = s ? s : natsOptions_SetCustomReconnectDelay(o, reconnect_delay, NULL);
    s = s ? s : natsOptions_SetReconnectBufSize(o, WAITING_BYTES);
    s = s ? s : natsOptions_SetPingInterval(o, PING_EVERY_MS);
    s = s ? s : natsOptions_SetMaxPingsOut(o, PINGS_OUT);
    s = s ? s : natsOptions_SetWriteDeadline(o, b->timeout_ns / 1000000 + 1);
    s = s ? s : natsOptions_SetTimeout(o, b->timeout_ns / 1000000 + 1);
    s = s ? s : natsOptions_SetSendAsap(o, true);
    s = s ? s : natsOptions_SetFailRequestsOnDisconnect(o, true);
    s = s ? s : natsOptions_SetErrorHandler(o, on_error, broker);
    return s ? s : natsOptions_SetName(o, b->name ? b->name : "weft");
}

int bus_broker_options(
    const struct bus_options *b, struct broker *broker, natsOptions **out, char **where, struct err *e)
{
    enum { MOST_SERVERS = 64 };
    const char *urls[MOST_SERVERS];
    int n;
    bool tls;
    char *list = mem_strdup(b->url);
    struct text shown = {.fd = -1};
    natsOptions *o = NULL;
    snprintf(broker->inboxes, sizeof broker->inboxes, "_INBOX");
    int rc = split(list, urls, &n, MOST_SERVERS, &tls, e);
    if (!rc && natsOptions_Create(&o))
        rc = err_set(e, ERR_NOMEM, "out of memory: bus");
    if (!rc && (natsOptions_SetServers(o, urls, n) || set_usual(o, b, broker)))
        rc = err_set(e, ERR_ARG, "bus: the URL cannot be read; it is nats://[USER:PASSWORD@]HOST[:PORT]");
    rc = rc ? rc : set_secrets(o, b, broker, e);
    rc = rc ? rc : set_tls(o, b, tls, e);
    for (int i = 0; !rc && i < n; i++) {
        text_puts(&shown, i ? "," : "");
        put_without_user(&shown, urls[i]);
    }
    explicit_bzero(list, strlen(b->url));
    free(list);
    if (rc) {
        natsOptions_Destroy(o);
        text_fini(&shown);
        return rc;
    }
    *where = mem_strdup(text_cstr(&shown));
    text_fini(&shown);
    *out = o;
    return 0;
}
