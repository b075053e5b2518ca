/* SPDX-License-Identifier: MIT */
/* Private to the room: encodings of registry entries and questions (docs/cluster-protocol.md). All input is untrusted,
 * and checked. */
#ifndef WEFT_CLUSTER_PROTOCOL_H
#define WEFT_CLUSTER_PROTOCOL_H

#include "base/arena.h"
#include "base/text.h"
#include "cluster/question.h"
#include "cluster/registry.h"
#include "cluster/requests.h"
#include "flow/flow.h"
#include "index/index.h"
#include "path/remote.h"
#include "path/talk.h"

struct bus;

/* Versions of questions, newest and oldest that this release understands; and of entries. A release reads what its
 * predecessor wrote, and writes what that can read: new fields are added at the end, which older readers skip. */
enum { CLUSTER_VERSION = 3, CLUSTER_OLDEST = 3, ENTRY_VERSION = 2 };

/* ---- names on the bus ---- */

/* Binds answers of the cluster's nodes to them from now on (bus_bind); table "weft_CLUSTER_keys". */
int cluster_bind(struct bus *, const char *cluster, struct err *e);
/* Makes the id of a host from its key, for requests. */
void cluster_id(uint64_t key, char out[CLUSTER_ID]);
/* Returns the size of an address on the wire. */
size_t cluster_address_bytes(uint8_t family);

/* ---- registry entries ---- */

void cluster_entry_write(const struct cluster_entry *, struct text *out);
/* Reads an entry; pointers lead into the arena. Unknown bytes at the end are skipped. ERR_UNSUPPORTED: another version;
 * ERR_FORMAT. */
int cluster_entry_read(struct arena *, const void *bytes, size_t n, struct cluster_entry *out, struct err *e);

/* ---- questions ---- */

/* ERR_UNSUPPORTED: unknown version or kind. */
int cluster_question_kind(const void *bytes, size_t n, enum cluster_question *, struct err *e);
enum { QUESTION_BYTES = 2 };

/* Returns whether all keys differ. Repeated keys would make the answer grow. */
bool cluster_protocol_all_differ(struct arena *, const uint64_t *keys, size_t n);

/* PATH. Answer: a number for the node's state of the request's hosts, and a fragment (path/remote.h). hashes: of struct
 * cluster_entry_host, in the order of the request; 0: absent. */
uint64_t cluster_state(const uint64_t *hashes, size_t n);
struct path_answer { uint64_t state; const void *fragment; size_t n; };
void cluster_path_answer_begin(struct text *, uint64_t state); /* the fragment follows */
int cluster_path_answer_read(const void *bytes, size_t n, struct path_answer *out, struct err *e); /* borrowed */

/* FLOWS: of these hosts. Answer: in their order what flow_needed needs of them; nothing for absent hosts. */
struct flows_question { const uint64_t *keys; size_t n; };
void cluster_flows_question_write(const struct flows_question *, struct text *out);
int cluster_flows_question_read(struct arena *, const void *bytes, size_t n, struct flows_question *out, struct err *e);
void cluster_flows_write(const struct flow_other *, struct text *out);
int cluster_flows_read(struct arena *, const void *bytes, size_t n, size_t n_hosts, struct flow_other *out,
    struct err *e);

/* EXTRACT: packets of the host that match these flows and addresses of others. Answer: a part, from byte `from` on, of
 * the packed (base/pack.h) store (flow_extract). */
struct extract_question { uint64_t key; struct flow_other others; uint64_t from; };
/* serial: changes if the extract was made anew; earlier parts do not belong to it. */
struct extract_part { uint64_t serial, total; const void *bytes; size_t n; };
void cluster_extract_question_write(const struct extract_question *, struct text *out);
int cluster_extract_question_read(struct arena *, const void *bytes, size_t n, struct extract_question *out,
    struct err *e);
void cluster_extract_part_write(const struct extract_part *, struct text *out);
/* Borrowed from the bytes. */
int cluster_extract_part_read(const void *bytes, size_t n, struct extract_part *out, struct err *e);

/* ---- threads ---- */

struct lives_question { const char *thread; int64_t begin, end; struct path_request hosts; /* hosts: no windows */ };
struct far_life { int32_t host; uint64_t row; int64_t begin, end; int32_t tid; const char *name; };
struct far_lives { struct far_life *v; size_t n, cap; };
void cluster_lives_question_write(const struct lives_question *, struct text *out);
int cluster_lives_question_read(struct arena *, const void *bytes, size_t n, struct lives_question *out, struct err *e);
void cluster_lives_write(const struct far_lives *, struct text *out);
/* Adds to `out`; names live in the arena. */
int cluster_lives_read(struct arena *, const void *bytes, size_t n, size_t n_hosts, struct far_lives *out,
    struct err *e);

/* REQUESTS: those in progress at any time of the interval. Answer: the slowest first. */
struct path_requests_asked { int64_t begin, end; struct path_request hosts; /* hosts: no windows */ };
void cluster_requests_asked_write(const struct path_requests_asked *, struct text *out);
int cluster_requests_asked_read(struct arena *, const void *bytes, size_t n, struct path_requests_asked *out,
    struct err *e);
void cluster_requests_write_one(const struct cluster_request *, struct text *out);
/* Adds to `out`, with the numbers of the hosts in the question; names live in the arena. */
int cluster_requests_read(struct arena *, const void *bytes, size_t n, size_t n_hosts, struct cluster_requests *out,
    struct err *e);

/* CONTAINERS: of threads of these hosts, by their ids in order. Answer: names, and the number of the name for each
 * thread. */
struct containers_question {
    struct containers_question_host { uint64_t key; const uint64_t *rows; size_t n; } *hosts;
    size_t n;
};
void cluster_containers_question_write(const struct containers_question *, struct text *out);
int cluster_containers_question_read(struct arena *, const void *bytes, size_t n, struct containers_question *out,
    struct err *e);
/* names: of all n threads of the question, in order; "" for none. */
void cluster_containers_write(const char *const *names, size_t n, struct text *out);
/* Sets the n names, which live in the arena. */
int cluster_containers_read(struct arena *, const void *bytes, size_t size, const char **names, size_t n,
    struct err *e);

/* STACKS: questions for call stacks of rows of these hosts. Answer: the stack of each, or none. */
struct stacks_question {
    struct path_request hosts; /* no windows */
    struct stacks_question_item { int32_t host; uint64_t row; int64_t begin, end; bool waits; } *v;
    size_t n;
};
void cluster_stacks_question_write(const struct stacks_question *, struct text *out);
int cluster_stacks_question_read(struct arena *, const void *bytes, size_t n, struct stacks_question *out,
    struct err *e);
/* Stacks of all n questions, in order; samples 0 for none. */
void cluster_stacks_write(const struct graph_stack *, size_t n, struct text *out);
/* Sets the n stacks, whose addresses live in the arena. */
int cluster_stacks_read(struct arena *, const void *bytes, size_t size, struct graph_stack *out, size_t n,
    struct err *e);

/* THREADS: of these hosts. */
struct threads_question { const uint64_t *keys; size_t n; struct cluster_threads_question is; };
void cluster_threads_question_write(const struct threads_question *, struct text *out);
int cluster_threads_question_read(struct arena *, const void *bytes, size_t n, struct threads_question *out,
    struct err *e);
/* Sorts by time in the state, the most first, and cuts to `limit`. */
void cluster_threads_limit(struct cluster_threads *, int state, size_t limit);
void cluster_threads_write(const struct cluster_threads *, struct text *out);
/* Adds to `out`, with the numbers of the hosts in the question; names live in the arena. */
int cluster_threads_read(struct arena *, const void *bytes, size_t n, size_t n_hosts, struct cluster_threads *out,
    struct err *e);

/* ---- traffic between hosts ---- */

/* TALK: within an interval of each host's clock. Answer: in the same order; nothing for absent hosts. */
struct talk_question {
    struct talk_question_host { uint64_t key; int64_t begin, end; } *hosts;
    size_t n;
};
void cluster_talk_question_write(const struct talk_question *, struct text *out);
int cluster_talk_question_read(struct arena *, const void *bytes, size_t n, struct talk_question *out, struct err *e);
void cluster_talk_write(const struct talk_reports *, struct text *out);
/* out: by host. Adds to it, even before an error. */
int cluster_talk_read(const void *bytes, size_t n, size_t n_hosts, struct talk_reports *out, struct err *e);

/* DELAYS: of these hosts, with these keys. Answer: hosts whose packets are known, and the result of
 * path_talk_find_delays. */
struct delays_question { const uint64_t *keys; int64_t begin, end; bool by_flow; struct path_request hosts; };
void cluster_delays_question_write(const struct delays_question *, struct text *out);
int cluster_delays_question_read(struct arena *, const void *bytes, size_t n, struct delays_question *out,
    struct err *e);
void cluster_delays_write(const struct talk_delays *, const bool *known, size_t n_hosts, bool by_flow,
    struct text *out);
/* Reads delays; they must be in order, each once. */
int cluster_delays_read(const void *bytes, size_t n, size_t n_hosts, bool by_flow, struct talk_delays *out, bool *known,
    struct err *e);

#endif
