/* SPDX-License-Identifier: MIT */
/* Coordinator without servers: a request, and answers as texts. In texts of JSON ' stands for ". */
#ifndef WEFT_TESTS_COORD_ANSWERS_H
#define WEFT_TESTS_COORD_ANSWERS_H

#include "coord/gather.h"
#include "coord/rotation.h"

/* Must not be moved. */
struct fixture {
    struct arena arena;
    struct coord_config config;
    struct coordinator coordinator;
    struct coord_call call;
    struct coord_answers answers;
};
/* Begins a request. config: in the format of .trace-coordinator.yml; all its servers are up and members of the
 * experiment "e". operation: "XY/OUTPUT/tree" with the output as its second segment; "": none. */
void fixture_begin(struct fixture *, const char *config, const char *operation);
void fixture_end(struct fixture *);
/* Sets the parameters of the request. */
void fixture_ask(struct fixture *, const char *parameters);
/* Sets the clock of a server: its times are that much before common ones. */
void fixture_clock(struct fixture *, size_t server, int64_t ahead_ns);
/* Returns a value in the arena. */
struct slice fixture_slice(struct fixture *, const char *json);
/* Sets whole answers of the servers, in their order; NULL: that server is away. Models are those of the answers if they
 * have one, else the answers. */
struct coord_answers *fixture_answer(struct fixture *, const char *const *json);
/* Returns what a merge writes, in the arena. */
const char *fixture_merge(struct fixture *, coord_merge *);
/* Fails unless the text is equal, as JSON, to the expected one (format of printf). */
void expect_json(const char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Returns the id for clients of a server's entry. */
long long fixture_id(struct fixture *, size_t server, int64_t own);
/* Returns the missing sources: "without db: why"; "": none. */
const char *fixture_missing(struct fixture *);

#endif
