/* SPDX-License-Identifier: MIT */
#include "http/grpc_wire.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/mem.h"
#include "http/http.h"

struct grpc_tls {
    gnutls_certificate_credentials_t credentials;
};

int http_grpc_tls_load(const char *cert, const char *key, struct grpc_tls **out, struct err *e)
{
    if (!key)
        return err_set(e, ERR_ARG, "certificate %s: give its key too", cert);
    struct grpc_tls *t = mem_zalloc(sizeof *t);
    int rc = gnutls_certificate_allocate_credentials(&t->credentials);
    if (!rc)
        rc = gnutls_certificate_set_x509_key_file(t->credentials, cert, key, GNUTLS_X509_FMT_PEM);
    *out = t;
    if (rc >= 0)
        return 0;
    http_grpc_tls_free(t);
    *out = NULL;
    return err_set(e, ERR_ARG, "certificate %s and key %s: %s", cert, key, gnutls_strerror(rc));
}

void http_grpc_tls_free(struct grpc_tls *t)
{
    if (t && t->credentials)
        gnutls_certificate_free_credentials(t->credentials);
    free(t);
}

int http_grpc_wire_open(struct grpc_wire *w, int fd, struct grpc_tls *tls)
{
    static const gnutls_datum_t h2 = {(unsigned char *)"h2", 2};
    gnutls_session_t s;
    *w = (struct grpc_wire){.fd = fd, .shaken = !tls};
    if (!tls)
        return 0;
    if (gnutls_init(&s, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL))
        return -1;
    w->session = s;
    gnutls_transport_set_int(s, fd);
    return gnutls_priority_set_direct(s, HTTP_TLS, NULL) ||
            gnutls_alpn_set_protocols(s, &h2, 1, GNUTLS_ALPN_MANDATORY) ||
            gnutls_credentials_set(s, GNUTLS_CRD_CERTIFICATE, tls->credentials)
        ? -1
        : 0;
}

void http_grpc_wire_close(struct grpc_wire *w)
{
    if (w->session && w->shaken)
        gnutls_bye(w->session, GNUTLS_SHUT_WR);
    if (w->session)
        gnutls_deinit(w->session);
    close(w->fd);
}

int http_grpc_wire_shake(struct grpc_wire *w)
{
    gnutls_datum_t protocol;
    if (w->shaken)
        return 1;
    int rc = gnutls_handshake(w->session);
    w->wants_write = rc && gnutls_record_get_direction(w->session);
    if (rc)
        return gnutls_error_is_fatal(rc) ? -1 : 0;
    w->shaken = true;
    bool fits = !gnutls_alpn_get_selected_protocol(w->session, &protocol) && protocol.size == 2 &&
        !memcmp(protocol.data, "h2", 2);
    return fits ? 1 : -1;
}

static long told(ssize_t rc, bool again)
{
    return rc > 0 ? (long)rc : again ? 0 : -1;
}

long http_grpc_wire_read(struct grpc_wire *w, void *out, size_t n)
{
    ssize_t rc;
    if (w->session) {
        rc = gnutls_record_recv(w->session, out, n);
        return told(rc, rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED);
    }
    rc = recv(w->fd, out, n, MSG_DONTWAIT);
    return told(rc, rc < 0 && (errno == EAGAIN || errno == EINTR));
}

bool http_grpc_wire_pending(struct grpc_wire *w)
{
    return w->session && gnutls_record_check_pending(w->session);
}

long http_grpc_wire_write(struct grpc_wire *w, const void *data, size_t n)
{
    ssize_t rc;
    if (w->session) {
        /* gnutls keeps a record that it has encrypted and could not send: it is asked to send that, not given the data
         * again. */
        rc = w->half_sent ? gnutls_record_send(w->session, NULL, 0) : gnutls_record_send(w->session, data, n);
        w->half_sent = rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED;
        return told(rc, w->half_sent);
    }
    rc = send(w->fd, data, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    return told(rc, rc < 0 && (errno == EAGAIN || errno == EINTR));
}
