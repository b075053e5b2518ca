/* SPDX-License-Identifier: MIT */
#include "script/tls.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gnutls/gnutls.h>

static const char library[] = "libgnutls.so.30";
static const char versions[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";

/* Functions used of GnuTLS. */
#define FUNCTIONS(X) \
    X(gnutls_init) \
    X(gnutls_strerror) \
    X(gnutls_error_is_fatal) \
    X(gnutls_priority_set_direct) \
    X(gnutls_certificate_allocate_credentials) \
    X(gnutls_certificate_set_x509_system_trust) \
    X(gnutls_certificate_set_x509_trust_file) \
    X(gnutls_certificate_set_x509_key_file) \
    X(gnutls_credentials_set) \
    X(gnutls_server_name_set) \
    X(gnutls_session_set_verify_cert) \
    X(gnutls_session_get_verify_cert_status) \
    X(gnutls_certificate_verification_status_print) \
    X(gnutls_transport_set_int2) \
    X(gnutls_handshake) \
    X(gnutls_record_check_pending) \
    X(gnutls_record_recv) \
    X(gnutls_record_send)
struct functions {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
};

/* The process. */
struct relay {
    const struct script_settings *s;
    struct functions f;
    gnutls_session_t session;
    int tcp, plain, problems;
};

static void give_up(struct relay *r, const char *fmt, ...) __attribute__((format(printf, 2, 3), noreturn));
static void give_up(struct relay *r, const char *fmt, ...)
{
    char why[160];
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    ssize_t told = write(r->problems, why, n < (int)sizeof why ? (size_t)n : sizeof why - 1);
    _exit(told < 0);
}

static void load(struct relay *r)
{
    void *from = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!from)
        give_up(r, "https needs %s, which cannot be loaded here", library);
#define FIND(name) \
    if (!(r->f.name = (__typeof__(r->f.name))dlsym(from, #name))) \
        give_up(r, "%s is too old: it has no %s", library, #name);
    FUNCTIONS(FIND)
}

static void check(struct relay *r, int rc, const char *what)
{
    if (rc < 0)
        give_up(r, "%s: %s", what, r->f.gnutls_strerror(rc));
}

static void set_up(struct relay *r)
{
    const struct script_settings *s = r->s;
    gnutls_certificate_credentials_t c;
    check(r, r->f.gnutls_certificate_allocate_credentials(&c), "TLS");
    int trusted = s->ca_file ? r->f.gnutls_certificate_set_x509_trust_file(c, s->ca_file, GNUTLS_X509_FMT_PEM)
                             : r->f.gnutls_certificate_set_x509_system_trust(c);
    check(r, trusted, s->ca_file ? s->ca_file : "the system's certificates");
    if (!trusted)
        give_up(r, "no trusted certificates in %.80s; name a file of them in OTEL_EXPORTER_OTLP_CERTIFICATE",
            s->ca_file ? s->ca_file : "this system");
    if (s->client_certificate)
        check(r,
            r->f.gnutls_certificate_set_x509_key_file(
                c, s->client_certificate, s->client_key ? s->client_key : s->client_certificate, GNUTLS_X509_FMT_PEM),
            "the client's certificate");
    check(r, r->f.gnutls_init(&r->session, GNUTLS_CLIENT), "TLS");
    check(r, r->f.gnutls_priority_set_direct(r->session, versions, NULL), "TLS");
    check(r, r->f.gnutls_credentials_set(r->session, GNUTLS_CRD_CERTIFICATE, c), "TLS");
    if (!s->url.numeric || !strcmp(s->url.host, "localhost"))
        check(r, r->f.gnutls_server_name_set(r->session, GNUTLS_NAME_DNS, s->url.host, strlen(s->url.host)), "TLS");
    r->f.gnutls_session_set_verify_cert(r->session, s->url.host, 0);
    r->f.gnutls_transport_set_int2(r->session, r->tcp, r->tcp);
}

static void shake_hands(struct relay *r)
{
    int rc;
    do
        rc = r->f.gnutls_handshake(r->session);
    while (rc < 0 && rc != GNUTLS_E_AGAIN && !r->f.gnutls_error_is_fatal(rc));
    if (rc == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) {
        gnutls_datum_t said = {0};
        unsigned status = r->f.gnutls_session_get_verify_cert_status(r->session);
        if (!r->f.gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &said, 0))
            give_up(r, "%.*s", (int)said.size, (const char *)said.data);
    }
    check(r, rc, "TLS");
}

static bool write_all(int fd, const char *s, size_t n)
{
    while (n) {
        ssize_t done = write(fd, s, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        s += done;
        n -= (size_t)done;
    }
    return true;
}

/* False: one side has ended. */
static bool pass_out(struct relay *r)
{
    char data[16 << 10];
    ssize_t n = read(r->plain, data, sizeof data);
    for (ssize_t at = 0, sent; at<n; at += sent> 0 ? sent : 0) {
        sent = r->f.gnutls_record_send(r->session, data + at, (size_t)(n - at));
        if (sent < 0 && (sent == GNUTLS_E_AGAIN || r->f.gnutls_error_is_fatal((int)sent)))
            return false;
    }
    return n > 0 || (n < 0 && errno == EINTR);
}

static bool pass_in(struct relay *r)
{
    char data[16 << 10];
    ssize_t n = r->f.gnutls_record_recv(r->session, data, sizeof data);
    if (n < 0 && n != GNUTLS_E_AGAIN && !r->f.gnutls_error_is_fatal((int)n))
        return true;
    return n > 0 && write_all(r->plain, data, (size_t)n);
}

/* Runs in the helper process, and may block: its parent watches the time. */
static void relay(struct relay *r)
{
    struct timeval most = {.tv_sec = r->s->timeout_ns / 1000000000 + 1};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    fcntl(r->tcp, F_SETFL, fcntl(r->tcp, F_GETFL) & ~O_NONBLOCK);
    setsockopt(r->tcp, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(r->tcp, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    load(r);
    set_up(r);
    shake_hands(r);
    for (bool on = true; on;) {
        struct pollfd p[2] = {{r->plain, POLLIN, 0}, {r->tcp, POLLIN, 0}};
        bool pending = r->f.gnutls_record_check_pending(r->session) > 0;
        if (poll(p, 2, pending ? 0 : -1) < 0 && errno != EINTR)
            break;
        if (p[0].revents)
            on = pass_out(r);
        if (on && (pending || p[1].revents))
            on = pass_in(r);
    }
    _exit(0);
}

int script_tls_start(const struct script_settings *s, int fd, struct script_tls *t)
{
    int ends[2], problems[2], problem;
    *t = (struct script_tls){.problems = -1};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        problem = errno;
        goto no_pair;
    }
    if (pipe2(problems, O_CLOEXEC | O_NONBLOCK)) {
        problem = errno;
        goto no_pipe;
    }
    t->process = fork();
    if (t->process == 0) {
        close(ends[0]);
        relay(&(struct relay){.s = s, .tcp = fd, .plain = ends[1], .problems = problems[1]});
    }
    problem = errno;
    close(problems[1]);
    if (t->process > 0) {
        t->problems = problems[0];
        close(ends[1]);
        close(fd);
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        return ends[0];
    }
    t->process = 0;
    close(problems[0]);
no_pipe:
    close(ends[0]);
    close(ends[1]);
no_pair:
    close(fd);
    errno = problem;
    return -1;
}

void script_tls_end(struct script_tls *t, char *why, size_t n)
{
    char said[160];
    if (!t->process)
        return;
    kill(t->process, SIGKILL);
    waitpid(t->process, NULL, 0);
    ssize_t got = read(t->problems, said, sizeof said);
    close(t->problems);
    while (got > 0 && (said[got - 1] == ' ' || said[got - 1] == '\n'))
        got--;
    if (got > 0)
        snprintf(why, n, "%.*s", (int)got, said);
    t->process = 0;
}
