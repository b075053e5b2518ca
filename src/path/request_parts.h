/* Private to the room: what the path of a request consists of, as groups compare it. */
#ifndef WEFT_PATH_REQUEST_PARTS_H
#define WEFT_PATH_REQUEST_PARTS_H

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "path/requests.h"

const struct path_local *requests_local(const struct requests *);
/* requests_path within one slice of work and *slices more, which grow less by those that it takes. */
int requests_walk(const struct requests *, size_t i, unsigned *slices, struct path **out, struct err *e);
enum { REQUESTS_SLICES = 1 << 8 }; /* for one path: a second */

/* Parts by number. */
struct request_parts {
    struct strings names;
    VEC(struct request_part) v;
    VEC(uint32_t) folded;          /* by number: the part with the folded state */
    struct map by_key;             /* host, name, another, state -> number */
};
void request_parts_fini(struct request_parts *);

/* Of one path: parts and their times, the lesser number first. */
struct request_share { uint32_t part; int64_t duration; };
struct request_profile {
    struct request_share *shares; /* states as they are */
    struct request_share *shape;  /* folded, those of a twentieth of the time or more */
    size_t n_shares, n_shape;
    uint32_t server;              /* part: the server's thread, running */
    int64_t duration;
};
/* Numbers parts that are new; the profile lives as long as the arena. */
void request_profile_of(struct request_parts *, const struct path_source *, const struct path *, struct path_row server,
    struct arena *, struct request_profile *out);
/* Is every part but networks that makes up a fifth of one among those of the other, and both served by one name? */
bool request_profiles_alike(const struct request_parts *, const struct request_profile *,
    const struct request_profile *);

#endif
