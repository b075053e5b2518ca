/* SPDX-License-Identifier: MIT */
/* HTTP POST with a time limit for all of it. */
#include "script/send.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/time.h"
#include "script/tls.h"

enum { MOST_ADDRESSES = 8, HEAD_BYTES = 16 << 10, MOST_WAIT_S = 300 };

struct address {
    struct sockaddr_storage to;
    socklen_t n;
};
struct addresses {
    struct address list[MOST_ADDRESSES];
    size_t n;
};

/* Waits for the descriptor; false once the time is over. */
static bool wait_for(int fd, short events, int64_t deadline_ns)
{
    for (;;) {
        int64_t left = deadline_ns - time_monotonic_ns();
        struct pollfd p = {fd, events, 0};
        int n = left <= 0 ? 0 : poll(&p, 1, (int)((left + 999999) / 1000000));
        if (n > 0)
            return true;
        if (n == 0 || errno != EINTR)
            return false;
    }
}

/* ---- names ---- */

static void look_up(const struct script_url *url, struct addresses *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found;
    const char *host = url->host;
    out->n = 0;
    if (url->numeric) {
        hints.ai_flags |= AI_NUMERICHOST;
        if (!strcmp(host, "localhost"))
            host = "127.0.0.1";
    }
    if (getaddrinfo(host, url->port, &hints, &found))
        return;
    for (struct addrinfo *a = found; a && out->n < MOST_ADDRESSES; a = a->ai_next)
        if (a->ai_addrlen <= sizeof out->list[0].to) {
            memcpy(&out->list[out->n].to, a->ai_addr, a->ai_addrlen);
            out->list[out->n++].n = a->ai_addrlen;
        }
    freeaddrinfo(found);
}

/* The C library's name service has no time limit that a caller could set: a process of its own asks, which can be
 * ended. */
static void look_up_apart(const struct script_url *url, int64_t deadline_ns, struct addresses *out)
{
    int ends[2];
    size_t got = 0;
    out->n = 0;
    if (pipe2(ends, O_CLOEXEC))
        return;
    pid_t child = fork();
    if (child == 0) {
        struct addresses found = {0};
        look_up(url, &found);
        ssize_t n = write(ends[1], &found, sizeof found);
        _exit(n != (ssize_t)sizeof found);
    }
    close(ends[1]);
    while (child > 0 && got < sizeof *out && wait_for(ends[0], POLLIN, deadline_ns)) {
        ssize_t n = read(ends[0], (char *)out + got, sizeof *out - got);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    close(ends[0]);
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    if (got < sizeof *out)
        out->n = 0;
}

/* ---- the connection ---- */

static int connect_to(const struct address *a, int64_t deadline_ns)
{
    int problem = 0;
    socklen_t n = sizeof problem;
    int fd = socket(a->to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    if (connect(fd, (const struct sockaddr *)&a->to, a->n) == 0)
        return fd;
    if (errno == EINPROGRESS && wait_for(fd, POLLOUT, deadline_ns) &&
        getsockopt(fd, SOL_SOCKET, SO_ERROR, &problem, &n) == 0 && problem == 0)
        return fd;
    problem = problem ? problem : errno == EINPROGRESS ? ETIMEDOUT : errno;
    close(fd);
    errno = problem;
    return -1;
}

static bool send_all(int fd, const char *s, size_t n, int64_t deadline_ns)
{
    while (n) {
        ssize_t sent = send(fd, s, n, MSG_NOSIGNAL);
        if (sent > 0) {
            s += sent;
            n -= (size_t)sent;
        } else if (sent < 0 && errno == EINTR) {
            continue;
        } else if (sent < 0 && errno != EAGAIN) {
            return false;
        } else if (!wait_for(fd, POLLOUT, deadline_ns)) {
            errno = ETIMEDOUT;
            return false;
        }
    }
    return true;
}

/* Reads until the head is whole. What follows it does not matter: an acknowledgement is its status. */
static bool receive(int fd, int64_t deadline_ns, struct script_reply *reply)
{
    char head[HEAD_BYTES];
    size_t n = 0;
    while (n < sizeof head) {
        if (!wait_for(fd, POLLIN, deadline_ns)) {
            snprintf(reply->why, sizeof reply->why, "no answer in time");
            return false;
        }
        ssize_t got = recv(fd, head + n, sizeof head - n, 0);
        if (got < 0 && (errno == EINTR || errno == EAGAIN))
            continue;
        if (got <= 0) {
            snprintf(reply->why, sizeof reply->why, "the connection was closed before an answer came");
            return false;
        }
        n += (size_t)got;
        int whole = script_read_reply(head, n, reply);
        if (whole > 0)
            return true;
        if (whole < 0)
            break;
    }
    reply->status = 0;
    snprintf(
        reply->why, sizeof reply->why, "the answer is not HTTP (OTLP over HTTP is usually at port 4318, gRPC at 4317)");
    return false;
}

/* ---- the answer ---- */

static int64_t read_retry_after(const char *s, size_t n)
{
    char value[64] = "";
    struct tm date = {0};
    memcpy(value, s, n < sizeof value ? n : sizeof value - 1);
    char *end;
    long seconds = strtol(value, &end, 10);
    if (end == value) {
        const char *rest = strptime(value, "%a, %d %b %Y %H:%M:%S GMT", &date);
        seconds = rest ? (long)(timegm(&date) - time(NULL)) : 0;
    }
    return (int64_t)(seconds < 0 ? 0 : seconds < MOST_WAIT_S ? seconds : MOST_WAIT_S) * 1000000000;
}

int script_read_reply(const char *head, size_t n, struct script_reply *reply)
{
    static const char http[] = "HTTP/1.", retry[] = "retry-after:";
    const size_t status_at = 9; /* position behind "HTTP/1.1 " */
    size_t known = n < sizeof http - 1 ? n : sizeof http - 1;
    if (memcmp(head, http, known) != 0)
        return -1;
    const char *end = memmem(head, n, "\r\n\r\n", 4);
    if (!end)
        return 0;
    reply->status = 0;
    reply->retry_after_ns = 0;
    if (end - head < 12)
        return -1;
    for (size_t i = status_at; i < status_at + 3; i++) {
        if (!text_is_digit(head[i]))
            return -1;
        reply->status = reply->status * 10 + (head[i] - '0');
    }
    for (const char *line = head; line < end;) {
        const char *stop = memmem(line, (size_t)(end + 2 - line), "\r\n", 2);
        size_t length = (size_t)(stop - line), skip = sizeof retry - 1;
        if (length > skip && !strncasecmp(line, retry, skip)) {
            while (skip < length && line[skip] == ' ')
                skip++;
            reply->retry_after_ns = read_retry_after(line + skip, length - skip);
        }
        line = stop + 2;
    }
    return 1;
}

/* OTLP names the status codes that may be tried again. A wrong address or token can be put right, so that spans wait
 * for that as well; only of a span that the collector calls wrong or too large nothing will ever come. */
static enum script_sent judge(struct script_reply *reply)
{
    if (reply->status / 100 == 2)
        return SCRIPT_TAKEN;
    snprintf(reply->why, sizeof reply->why, "the answer is HTTP status %d", reply->status);
    return reply->status == 400 || reply->status == 413 ? SCRIPT_REFUSED : SCRIPT_LATER;
}

static void write_head(const struct script_settings *s, const char *type, size_t n, struct text *out)
{
    bool six = strchr(s->url.host, ':');
    text_printf(out,
        "POST %s HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: weft-span/" WEFT_VERSION
        "\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n",
        s->url.path, six ? "[" : "", s->url.host, six ? "]" : "", s->url.port, type, n);
    text_put(out, s->headers.v ? s->headers.v : "", s->headers.n);
    text_puts(out, "\r\n");
}

enum script_sent script_send(
    const struct script_settings *s, const char *type, const void *body, size_t n, struct script_reply *reply)
{
    int64_t deadline_ns = time_monotonic_ns() + s->timeout_ns;
    struct addresses found;
    int fd = -1;
    *reply = (struct script_reply){0};
    if (s->url.numeric)
        look_up(&s->url, &found);
    else
        look_up_apart(&s->url, deadline_ns, &found);
    if (!found.n) {
        snprintf(reply->why, sizeof reply->why, "no address of this name is known");
        return SCRIPT_LATER;
    }
    for (size_t i = 0; i < found.n && fd < 0; i++)
        fd = connect_to(&found.list[i], deadline_ns);
    if (fd < 0) {
        snprintf(reply->why, sizeof reply->why, "%s", strerror(errno));
        return SCRIPT_LATER;
    }
    struct script_tls tls = {0};
    if (s->url.tls && (fd = script_tls_start(s, fd, &tls)) < 0) {
        snprintf(reply->why, sizeof reply->why, "%s", strerror(errno));
        return SCRIPT_LATER;
    }
    struct text request = {.fd = -1};
    write_head(s, type, n, &request);
    text_put(&request, body, n);
    bool sent = send_all(fd, request.v, request.n, deadline_ns);
    text_fini(&request);
    if (!sent)
        snprintf(reply->why, sizeof reply->why, "%s", strerror(errno));
    bool answered = receive(fd, deadline_ns, reply); /* answer, even from a server that answers before it has read
                                                      * everything */
    close(fd);
    script_tls_end(&tls, reply->why, answered ? 0 : sizeof reply->why);
    return answered ? judge(reply) : SCRIPT_LATER;
}
