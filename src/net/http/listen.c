/* SPDX-License-Identifier: MIT */
#include "http/listen.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int parse_listen(const char *listen, char *host, size_t n, const char **port, struct err *e)
{
    const char *colon = strrchr(listen, ':');
    size_t length = colon ? (size_t)(colon - listen) : 0;
    if (!colon || !length || length + 1 > n || !colon[1] || strspn(colon + 1, "0123456789") != strlen(colon + 1) ||
        strlen(colon + 1) > 5 || atoi(colon + 1) > 65535)
        return err_set(
            e, ERR_ARG, "--listen %s: give ADDRESS:PORT, such as 127.0.0.1:8080 (port 0: any free one)", listen);
    bool brackets = listen[0] == '[' && listen[length - 1] == ']';
    snprintf(host, n, "%.*s", (int)(length - 2 * brackets), listen + brackets);
    *port = colon + 1;
    return 0;
}

int http_listen_on(const char *listen_at, char *address, size_t n, bool tls, int *out, struct err *e)
{
    char host[256], shown[256], number[16];
    const char *port = "";
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *info;
    int rc = parse_listen(listen_at, host, sizeof host, &port, e);
    if (rc)
        return rc;
    if ((rc = getaddrinfo(host, port, &hints, &info)))
        return err_set(e, ERR_ARG, "--listen %s: %s", listen_at, gai_strerror(rc));
    int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_storage bound;
    socklen_t length = sizeof bound;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) ||
        bind(fd, info->ai_addr, info->ai_addrlen) || listen(fd, 511) ||
        getsockname(fd, (struct sockaddr *)&bound, &length)) {
        rc = err_sys(e, "cannot listen on %s (choose another port with --listen ADDRESS:PORT)", listen_at);
        if (fd >= 0)
            close(fd);
        freeaddrinfo(info);
        return rc;
    }
    freeaddrinfo(info);
    getnameinfo(
        (struct sockaddr *)&bound, length, shown, sizeof shown, number, sizeof number, NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(address, n, strchr(shown, ':') ? "%s://[%s]:%s" : "%s://%s:%s", tls ? "https" : "http", shown, number);
    *out = fd;
    return 0;
}
