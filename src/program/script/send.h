/* SPDX-License-Identifier: MIT */
/* HTTP request to the collector, plain or over TLS. */
#ifndef WEFT_SCRIPT_SEND_H
#define WEFT_SCRIPT_SEND_H

#include "script/settings.h"

/* TAKEN: acknowledged. LATER: may be sent again. REFUSED: invalid, never to be sent again. */
enum script_sent { SCRIPT_TAKEN, SCRIPT_LATER, SCRIPT_REFUSED };
struct script_reply {
    int status;                /* HTTP status; 0: no answer */
    int64_t retry_after_ns;    /* delay from Retry-After; 0: none */
    char why[200];             /* reason for a note, unless TAKEN */
};
/* Sends it within timeout_ns, name resolution included. The settings must have a usable endpoint. */
enum script_sent script_send(const struct script_settings *, const char *type, const void *body, size_t n,
    struct script_reply *);

/* Reads the head of an answer, of which `n` bytes have come. Returns 1 if it is complete, 0 if more must come, -1 if it
 * is not HTTP. */
int script_read_reply(const char *head, size_t n, struct script_reply *);

#endif
