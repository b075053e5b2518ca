/* SPDX-License-Identifier: MIT */
/* Check whether spans would be forwarded to this collector itself, under any name. */
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "span/collect.h"

/* Resolves the URL's host. NULL: it cannot be resolved now. */
static struct addrinfo *resolve(const char *url, bool numeric)
{
    const char *rest = strstr(url, "://");
    struct addrinfo *found = NULL, hints = {.ai_socktype = SOCK_STREAM, .ai_flags = numeric ? AI_NUMERICHOST : 0};
    char host[300];
    if (!rest)
        return NULL;
    bool secure = !strncmp(url, "https:", 6);
    rest += 3;
    size_t n = strcspn(rest, "/?#"), at = 0;
    for (size_t i = 0; i < n; i++) /* skips the user name */
        at = rest[i] == '@' ? i + 1 : at;
    if (n - at >= sizeof host)
        return NULL;
    snprintf(host, sizeof host, "%.*s", (int)(n - at), rest + at);
    char *name = host, *port, *end = *host == '[' ? strchr(host, ']') : NULL;
    if (end)
        name++;
    port = strchr(end ? end : host, ':');
    if (end)
        *end = '\0';
    if (port)
        *port++ = '\0';
    return getaddrinfo(name, port && *port ? port : secure ? "443" : "80", &hints, &found) ? NULL : found;
}

static uint16_t port_of(const struct sockaddr *a)
{
    return a->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)(const void *)a)->sin6_port
                                    : ((const struct sockaddr_in *)(const void *)a)->sin_port;
}

/* Returns the address as IPv6, with IPv4 mapped. */
static struct in6_addr host_of(const struct sockaddr *a)
{
    struct in6_addr out = IN6ADDR_ANY_INIT;
    if (a->sa_family == AF_INET6)
        return ((const struct sockaddr_in6 *)(const void *)a)->sin6_addr;
    out.s6_addr[10] = out.s6_addr[11] = 0xff;
    memcpy(out.s6_addr + 12, &((const struct sockaddr_in *)(const void *)a)->sin_addr, 4);
    return out;
}

static bool is_wildcard(const struct sockaddr *a)
{
    struct in6_addr host = host_of(a), any4 = IN6ADDR_ANY_INIT;
    any4.s6_addr[10] = any4.s6_addr[11] = 0xff;
    return IN6_IS_ADDR_UNSPECIFIED(&host) || !memcmp(&host, &any4, sizeof host);
}

/* Returns whether the address is this machine's: only such a one can be bound. */
static bool is_here(const struct addrinfo *a)
{
    struct sockaddr_storage s = {0};
    memcpy(&s, a->ai_addr, a->ai_addrlen);
    if (s.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)(void *)&s)->sin6_port = 0;
    else
        ((struct sockaddr_in *)(void *)&s)->sin_port = 0;
    int fd = socket(s.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool here = fd >= 0 && !bind(fd, (const struct sockaddr *)&s, a->ai_addrlen);
    if (fd >= 0)
        close(fd);
    return here;
}

static bool is_the_same(const struct addrinfo *far, const struct addrinfo *mine)
{
    struct in6_addr a = host_of(far->ai_addr), b = host_of(mine->ai_addr);
    if (port_of(far->ai_addr) != port_of(mine->ai_addr))
        return false;
    return !memcmp(&a, &b, sizeof a) || ((is_wildcard(mine->ai_addr) || is_wildcard(far->ai_addr)) && is_here(far));
}

bool forward_is_to_itself(const struct span_collector *c)
{
    bool same = false;
    struct addrinfo *far = c->o.forward ? resolve(c->o.forward, false) : NULL;
    for (enum span_door d = 0; far && d < SPAN_DOORS && !same; d++) {
        const char *address = span_collect_address(c, d);
        struct addrinfo *mine = address ? resolve(address, true) : NULL;
        for (const struct addrinfo *a = far; mine && a && !same; a = a->ai_next)
            same = is_the_same(a, mine);
        if (mine)
            freeaddrinfo(mine);
    }
    if (far)
        freeaddrinfo(far);
    return same;
}
