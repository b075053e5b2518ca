/* SPDX-License-Identifier: MIT */
/* Private to the room: knowledge of graphs that are elsewhere. known.c is its source, learn.c its input. */
#ifndef WEFT_PATH_KNOWN_H
#define WEFT_PATH_KNOWN_H

#include "base/arena.h"
#include "base/map.h"
#include "path/candidates.h"
#include "path/fragment.h"
#include "path/senders.h"

/* State of a wanted question, which is asked once. RECALLED: answered by the cache of earlier questions. */
enum asked { NOT_ASKED, ASKED, ANSWERED, RECALLED };

struct known_interval {
    struct path_interval is; /* id: its number */
    uint32_t cause, origin;  /* + 1; 0: not known */
};

struct known_row {
    int32_t host;
    uint64_t id;
    bool has_life;
    int64_t begin, end;
    uint32_t origin;         /* cause + 1 */
    VEC(uint32_t) intervals; /* intervals by time for a thread, by end for a CPU */
    VEC(struct graph_name) names;
    const char *container; /* container that it is in; NULL: not reported */
    int64_t open_end; /* time for which a wait still open then is requested; INT64_MIN: none */
};

struct known_cause {
    struct path_cause is; /* cause without a message */
    uint32_t message;     /* + 1 */
};

/* Answer of a host about a message. away: name of the node that nobody answers for. */
struct known_answer {
    struct fragment_answer is;
    struct path_row from;
    const char *away;
};
/* Knowledge of a message: possible senders, and their answers. */
struct known_message {
    struct path_message message;
    const struct path_sender_labels *labels; /* labels of its connection */
    struct candidates candidates;
    bool has_candidates;
    VEC(struct known_answer) answers;
};

struct path_known {
    struct path_source source;
    const struct path_far_host *hosts;
    size_t n;
    struct path_known_options options;
    struct arena arena;
    struct strings strings;
    struct candidate_book *book;
    VEC(struct known_row) rows;
    struct map row_of; /* hash of host and id -> number + 1 */
    VEC(struct known_interval) intervals;
    VEC(struct known_cause) causes;
    VEC(struct known_message) messages;
    struct map message_of; /* hash of its description -> number + 1 */
    struct map labels;     /* hash of a flow's key -> struct path_sender_labels */
    struct map nones;      /* hash of row and time */
    struct map asked;      /* hash of a window -> enum asked */
    struct map away;       /* hash of a window -> the node's name */
    bool counting;         /* path_known_unused walks */
    struct map used;       /* hash of a window that it needs */
    struct map stack_of; /* hash of a question for a stack -> number + 1 in: */
    VEC(struct graph_stack) stacks;
    VEC(struct path_window) wanted;
    size_t taken; /* number of windows taken */
};

/* Number of the row with that id, which is added if unknown; its number in the walk. */
uint32_t path_known_row_number(struct path_known *, int32_t host, uint64_t id);
struct path_row path_known_path_row(const struct path_known *, uint32_t number);
/* Returns the host's answer about the message, or NULL. */
struct known_answer *path_known_answer_of(struct known_message *, int32_t host);
/* Keys of the maps `message_of` (on a collision the next one); `nones`; `asked` and `away`. */
uint64_t path_known_message_hash(const struct path_message *);
uint64_t path_known_none_hash(uint32_t row, int64_t ts);
uint64_t path_known_window_hash(const struct path_window *);

/* learn.c: the source's `stack`. */
bool path_known_find_stack(void *arg, struct path_row row, int64_t begin, int64_t end, bool waits,
    struct graph_stack *out);

#endif
