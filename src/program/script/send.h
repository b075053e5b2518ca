/* SPDX-License-Identifier: MIT */
/* One HTTP request to the collector, plain or over TLS. */
#ifndef WEFT_SCRIPT_SEND_H
#define WEFT_SCRIPT_SEND_H

#include "script/settings.h"

/* TAKEN: acknowledged. LATER: it may be sent again. REFUSED: it is wrong and always will be. */
enum script_sent { SCRIPT_TAKEN, SCRIPT_LATER, SCRIPT_REFUSED };
struct script_reply {
    int status;                /* of HTTP; 0: there was no answer */
    int64_t retry_after_ns;    /* what Retry-After asks for; 0: nothing */
    char why[200];             /* unless TAKEN, for a note */
};
/* Takes timeout_ns at most, asking the name service included. The settings have a usable endpoint. */
enum script_sent script_send(const struct script_settings *, const char *type, const void *body, size_t n,
    struct script_reply *);

/* Reads the head of an answer, `n` bytes of it so far. 1 once it is whole, 0 when more must come, -1: no HTTP. */
int script_read_reply(const char *head, size_t n, struct script_reply *);

#endif
