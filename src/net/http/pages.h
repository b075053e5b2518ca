/* SPDX-License-Identifier: MIT */
/* Private to http: rights of the page for which a browser sends a request. Programs are not pages: they send none of
 * these headers, and can reach the server by themselves. */
#ifndef WEFT_HTTP_PAGES_H
#define WEFT_HTTP_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Fields of the request's head; NULL: no such header. */
struct page_head { const char *method, *host, *origin, *site /* Sec-Fetch-Site */, *mode /* Sec-Fetch-Mode */; };

enum http_page_rights {
    PAGE_NONE,               /* page of another site that is not allowed */
    PAGE_ASKS,               /* page that may read */
    PAGE_ALL,                /* page of the server itself, or of a named origin; or no page at all */
};
/* origins: as http_options.origins; NULL: none. */
enum http_page_rights http_page_rights(const struct page_head *, const char *const *origins);
/* Value of Access-Control-Allow-Origin for pages of the origin; NULL: none. */
const char *http_page_allowed_origin(const char *origin, const char *const *origins);

/* True: the Authorization header has the token. */
bool http_page_token_fits(const char *authorization, const char *token);

/* True: a name or address, with or without a port, and nothing else. */
bool http_page_host_is_sound(const char *host);
/* True for an address (no page of another site can be at it), "localhost", this machine's name, that of `listen`
 * ("NAME:PORT"), or one of `names` (NULL at the end, or NULL). The host must be sound. */
bool http_page_host_is_own(const char *host, const char *listen, const char *const *names);

#endif
