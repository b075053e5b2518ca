/* SPDX-License-Identifier: MIT */
/* Private to http: whose page it is that has a browser send a request. Programs are no pages: they send none of these
 * headers, and can reach the server by themselves. */
#ifndef WEFT_HTTP_PAGES_H
#define WEFT_HTTP_PAGES_H

#include <stdbool.h>
#include <stddef.h>

/* Of the request's head; NULL: it has no such header. */
struct page_head { const char *method, *host, *origin, *site /* Sec-Fetch-Site */, *mode /* Sec-Fetch-Mode */; };

enum page_rights {
    PAGE_NONE,               /* it is another site's, which nobody allowed */
    PAGE_ASKS,               /* it may read */
    PAGE_ALL,                /* it is the server's own, no page at all, or of an origin that was named */
};
/* origins: as http_options.origins; NULL: none. */
enum page_rights page_rights(const struct page_head *, const char *const *origins);
/* The value of Access-Control-Allow-Origin for pages of the origin; NULL: none. */
const char *page_allowed_origin(const char *origin, const char *const *origins);

/* Does an Authorization header show the token? */
bool page_token_fits(const char *authorization, const char *token);

/* Is it a name or address, with or without a port, and nothing else? */
bool page_host_is_sound(const char *host);
/* Is it an address (no page can be somebody else's at it), "localhost", this machine's name, that of `listen`
 * ("NAME:PORT"), or one of `names` (NULL at the end, or NULL)? Of a sound one. */
bool page_host_is_own(const char *host, const char *listen, const char *const *names);

#endif
