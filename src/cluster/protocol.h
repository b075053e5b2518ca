/* Private to the room: what nodes say of themselves, and what they are asked, as bytes (docs/cluster-protocol.md). All
 * that is read may be anything, and is checked. */
#ifndef WEFT_CLUSTER_PROTOCOL_H
#define WEFT_CLUSTER_PROTOCOL_H

#include "base/arena.h"
#include "base/text.h"
#include "cluster/cluster.h"
#include "flow/flow.h"
#include "index/index.h"
#include "path/remote.h"

enum { CLUSTER_VERSION = 1 };

/* ---- names on the bus ---- */

enum { CLUSTER_SUBJECT = 256, CLUSTER_ID = 17 };
/* "weft.CLUSTER.ask.NODE", as tokens. ERR_LIMIT. */
int cluster_subject_of(const char *cluster, const char *node, char out[CLUSTER_SUBJECT], struct err *e);
/* "weft_CLUSTER_KIND"; letters of the name that tables may not have become '-'. ERR_LIMIT. */
int cluster_table_name(const char *cluster, const char *kind, char out[CLUSTER_SUBJECT], struct err *e);
/* A host by its key, as requests name it. */
void cluster_id(uint64_t key, char out[CLUSTER_ID]);

/* ---- cards: what a node says of itself, in the table of nodes ---- */

struct card_host {
    uint64_t key;            /* who it is: the same wherever it is opened; copies of a trace have it in common */
    uint64_t hash;           /* of what its stores are made of */
    const char *name, *clock_name;
    int64_t begin, end, sealed_until; /* by its clock */
    bool has_graph, has_packets;
    struct index_far_clock clock;
    const struct flow_address *own, *peers; size_t n_own, n_peers;
};
struct card {
    const char *node, *instance;
    uint64_t serial;         /* grows with each change, of this instance */
    const struct card_host *hosts; size_t n_hosts;
};
void card_write(const struct card *, struct text *out);
/* What it points to lives in the arena. ERR_FORMAT. */
int card_read(struct arena *, const void *bytes, size_t n, struct card *out, struct err *e);

/* ---- questions ---- */

enum cluster_question {
    CLUSTER_HELLO,           /* → instance */
    CLUSTER_PATH,            /* path_request → fragment */
    CLUSTER_LIVES,           /* whose path: struct lives_question → lives */
    CLUSTER_FLOWS,           /* hosts → hashes of their flows */
    CLUSTER_EXTRACT,         /* flows of a host → their packets */
    CLUSTER_THREADS          /* which threads were there → lines */
};
/* The beginning of a question: version and kind; what follows is the kind's. */
void question_begin(struct text *, enum cluster_question);
int question_kind(const void *bytes, size_t n, enum cluster_question *, struct err *e);
enum { QUESTION_BYTES = 2 };

/* FLOWS: of these hosts. Answer: in their order what flow_needed wants to know of them; a host that is not here has
 * none. */
struct flows_question { const uint64_t *keys; size_t n; };
void flows_question_write(const struct flows_question *, struct text *out);
int flows_question_read(struct arena *, const void *bytes, size_t n, struct flows_question *out, struct err *e);
void flows_write(const struct flow_other *, struct text *out);
int flows_read(struct arena *, const void *bytes, size_t n, size_t n_hosts, struct flow_other *out, struct err *e);

/* EXTRACT: of the host, what is needed beside these flows and addresses of others. Answer: the store (flow_extract). */
struct extract_question { uint64_t key; struct flow_other others; };
void extract_question_write(const struct extract_question *, struct text *out);
int extract_question_read(struct arena *, const void *bytes, size_t n, struct extract_question *out, struct err *e);

/* ---- threads ---- */

struct lives_question { const char *thread; int64_t begin, end; struct path_request hosts; /* no windows */ };
struct far_life { int32_t host; uint64_t row; int64_t begin, end; int32_t tid; const char *name; };
struct far_lives { struct far_life *v; size_t n, cap; };
void lives_question_write(const struct lives_question *, struct text *out);
int lives_question_read(struct arena *, const void *bytes, size_t n, struct lives_question *out, struct err *e);
void lives_write(const struct far_lives *, struct text *out);
/* Adds to `out`; names live in the arena. */
int lives_read(struct arena *, const void *bytes, size_t n, size_t n_hosts, struct far_lives *out, struct err *e);

/* THREADS: of these hosts. */
struct threads_question { const uint64_t *keys; size_t n; struct cluster_threads_question is; };
void threads_question_write(const struct threads_question *, struct text *out);
int threads_question_read(struct arena *, const void *bytes, size_t n, struct threads_question *out, struct err *e);
/* Most of the state first. */
void threads_sort(struct cluster_threads *, int state);
void threads_write(const struct cluster_threads *, struct text *out);
/* Adds to `out`, with the numbers that hosts had in the question; names live in the arena. */
int threads_read(struct arena *, const void *bytes, size_t n, size_t n_hosts, struct cluster_threads *out,
    struct err *e);

#endif
