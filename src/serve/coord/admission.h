/* SPDX-License-Identifier: MIT */
/* Private to coord: admission of questions with large answers, so that answers being merged find memory. The size of an
 * answer is not known before; it is estimated from recent answers to questions of the same kind. */
#ifndef WEFT_COORD_ADMISSION_H
#define WEFT_COORD_ADMISSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/http.h"

struct admission;
/* answers_bytes: limit for all servers' answers. Half of it is shared out by admission. The other half is for answers
 * larger than estimated, and for small questions, which never wait. */
struct admission *coord_admission_new(uint64_t answers_bytes);
void coord_admission_free(struct admission *);

struct coord_admitted { uint64_t bytes; size_t kind; };
/* Waits in order of arrival until there is room for a usual answer of this kind (a hash), or nobody else holds any.
 * Waits at most half a minute, since a server that hangs may hold up others; then the question is admitted, and an
 * answer that does not fit is refused later. False: the client is gone. */
bool coord_admission_begin(struct admission *, const struct http_request *, uint64_t kind, struct coord_admitted *);
/* Ends an admission; call it once for each coord_admission_begin. held: peak bytes of the servers' answers; whole: the
 * question was answered completely. */
void coord_admission_end(struct admission *, const struct coord_admitted *, uint64_t held, bool whole);

#endif
