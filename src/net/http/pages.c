/* SPDX-License-Identifier: MIT */
#include "http/pages.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/in.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Origins of editors' pages, which no site can have: VS Code's webviews (a new one each time); Theia as an application,
 * and at the address where it listens by its documentation. */
static bool is_editor(const char *origin)
{
    static const char webview[] = "vscode-webview://";
    static const char *const others[] = {"file://", "http://localhost:3000", "http://127.0.0.1:3000"};
    if (!strncmp(origin, webview, sizeof webview - 1))
        return true;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (!strcmp(origin, others[i]))
            return true;
    return false;
}

static bool is_named(const char *origin, const char *const *origins)
{
    for (const char *const *o = origins; o && *o; o++)
        if (!strcmp(*o, origin) || (!strcmp(*o, "editors") && is_editor(origin)))
            return true;
    return false;
}

static bool all_may_ask(const char *const *origins)
{
    for (const char *const *o = origins; o && *o; o++)
        if (!strcmp(*o, "*"))
            return true;
    return false;
}

const char *http_page_allowed_origin(const char *origin, const char *const *origins)
{
    if (!origin)
        return NULL;
    return is_named(origin, origins) ? origin : all_may_ask(origins) ? "*" : NULL;
}

/* True: a page of the server itself, maybe behind a proxy with another scheme. */
static bool is_own(const struct page_head *h)
{
    const char *authority = strstr(h->origin, "://");
    return authority && h->host && !strcasecmp(authority + 3, h->host);
}

/* True: the user follows a link to the viewer, or types its address. */
static bool is_visit(const struct page_head *h)
{
    return h->mode && !strcmp(h->mode, "navigate") && (!strcmp(h->method, "GET") || !strcmp(h->method, "HEAD"));
}

enum http_page_rights http_page_rights(const struct page_head *h, const char *const *origins)
{
    if (h->site && (!strcmp(h->site, "same-origin") || !strcmp(h->site, "none")))
        return PAGE_ALL; /* the browser states it, whatever a proxy did to the host's name */
    if (h->origin ? is_own(h) || is_named(h->origin, origins) : !h->site || is_visit(h))
        return PAGE_ALL;
    return all_may_ask(origins) ? PAGE_ASKS : PAGE_NONE;
}

/* ---- hosts ---- */

static size_t name_length(const char *host)
{
    return host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
}

bool http_page_host_is_sound(const char *host)
{
    static const char digits[] = "0123456789";
    bool brackets = host[0] == '[';
    size_t n = brackets ? 1 + strspn(host + 1, "0123456789abcdefABCDEF:.") : 0;
    if (brackets && host[n++] != ']')
        return false;
    while (!brackets && (isalnum((unsigned char)host[n]) || (host[n] && strchr("-._", host[n]))))
        n++;
    if (n < 1 || (brackets && n < 4))
        return false;
    return !host[n] || (host[n] == ':' && strspn(host + n + 1, digits) == strlen(host + n + 1));
}

static bool is_address(const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    return *name == '[' || inet_pton(AF_INET, name, address) == 1;
}

/* True: the names are equal, except for a dot at the end (it marks a complete name). */
static bool same_name(const char *a, const char *b, size_t n_b)
{
    size_t n_a = strlen(a);
    n_a -= n_a > 1 && a[n_a - 1] == '.';
    n_b -= n_b > 1 && b[n_b - 1] == '.';
    return n_a == n_b && !strncasecmp(a, b, n_a);
}

bool http_page_host_is_own(const char *host, const char *listen, const char *const *names)
{
    char name[256], machine[256] = "";
    size_t n = name_length(host);
    if (n >= sizeof name)
        return false;
    memcpy(name, host, n);
    name[n] = '\0';
    gethostname(machine, sizeof machine - 1);
    bool own = is_address(name) || same_name(name, "localhost", strlen("localhost")) ||
        same_name(name, listen, name_length(listen)) || (*machine && same_name(name, machine, strlen(machine)));
    for (const char *const *o = names; o && *o && !own; o++)
        own = same_name(name, *o, strlen(*o));
    return own;
}

/* Compares all bytes in any case, so that the time reveals nothing of the token. */
static bool token_fits(const char *given, const char *token)
{
    size_t n = strlen(token), m = strlen(given);
    unsigned differ = n != m;
    for (size_t i = 0; i < m; i++)
        differ |= (unsigned char)given[i] ^ (unsigned char)token[n ? i % n : 0];
    return !differ;
}

bool http_page_token_fits(const char *authorization, const char *token)
{
    return !strncasecmp(authorization, "Bearer ", 7) && token_fits(authorization + 7, token);
}
