/* SPDX-License-Identifier: MIT */
/* Private to the room: components of a request's path, as groups compare them. */
#ifndef WEFT_PATH_REQUEST_PARTS_H
#define WEFT_PATH_REQUEST_PARTS_H

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "path/requests.h"

/* NULL: the list was received from elsewhere. */
const struct path_local *path_requests_local(const struct requests *);
size_t path_requests_hosts(const struct requests *, const char *const **names);
/* path_requests_path within one slice of work and up to *slices more; subtracts the ones used. */
int path_requests_walk(const struct requests *, size_t i, unsigned *slices, struct path **out, struct err *e);
enum { REQUESTS_SLICES = 1 << 8 }; /* limit for one path: a second */

/* Parts by number. */
struct request_parts {
    struct strings names;
    VEC(const char *) hosts;       /* hosts by number: those of the list, then others */
    VEC(struct request_part) v;
    VEC(uint32_t) folded;          /* by number: the part with the folded state */
    struct map by_key;             /* host, name, another, state -> number */
};
void path_request_parts_fini(struct request_parts *);

/* Parts of one path and their times, the lowest number first. */
struct request_share { uint32_t part; int64_t duration; };
struct request_profile {
    struct request_share *shares; /* with original states */
    struct request_share *shape;  /* with folded states, those of a twentieth of the time or more */
    size_t n_shares, n_shape;
    uint32_t server;              /* part: the server's thread, running */
    int64_t duration;
};
/* Path, and the source of its rows: their hosts are those of the list, or (`far`) hosts of that name. */
struct request_seen { const struct path *path; const struct path_source *source; bool far; };
int32_t path_request_parts_host(struct request_parts *, const struct request_seen *, int32_t host);
uint32_t path_request_parts_number(struct request_parts *, int32_t host, const char *comm, uint8_t state);
/* Makes a profile, which lives as long as the arena; numbers new parts. server: its part, running. */
void path_request_profile_of(struct request_parts *, const struct request_seen *, uint32_t server, struct arena *,
    struct request_profile *out);
/* Returns whether every part except networks that makes up a fifth of one is also in the other, and both have the same
 * server name. */
bool path_request_profiles_alike(const struct request_parts *, const struct request_profile *,
    const struct request_profile *);

#endif
