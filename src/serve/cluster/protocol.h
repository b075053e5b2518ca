/* SPDX-License-Identifier: MIT */
/* Private to the room: what nodes say of themselves, and what they are asked, as bytes (docs/cluster-protocol.md). All
 * that is read may be anything, and is checked. */
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

/* Versions: of questions, the newest and the oldest that this release understands; of entries. A release reads what the
 * one before wrote, and writes what that can read: fields are added at the end, which older readers skip. */
enum { CLUSTER_VERSION = 3, CLUSTER_OLDEST = 3, ENTRY_VERSION = 2 };

/* ---- names on the bus ---- */

/* Answers of the cluster's nodes are bound to them from now on (bus_bind); table "weft_CLUSTER_keys". */
int cluster_bind(struct bus *, const char *cluster, struct err *e);
/* A host by its key, as requests name it. */
void cluster_id(uint64_t key, char out[CLUSTER_ID]);
/* Of an address, on the wire. */
size_t cluster_address_bytes(uint8_t family);

/* ---- registry entries ---- */

void cluster_entry_write(const struct cluster_entry *, struct text *out);
/* What it points to lives in the arena. Bytes that follow what is known here are skipped. ERR_UNSUPPORTED: of another
 * version; ERR_FORMAT. */
int cluster_entry_read(struct arena *, const void *bytes, size_t n, struct cluster_entry *out, struct err *e);

/* ---- questions ---- */

/* ERR_UNSUPPORTED: of another version, or of a kind that is not known. */
int cluster_question_kind(const void *bytes, size_t n, enum cluster_question *, struct err *e);
enum { QUESTION_BYTES = 2 };

/* Is each key there once? Who asks of a host again and again would have the answer grow so. */
bool cluster_protocol_all_differ(struct arena *, const uint64_t *keys, size_t n);

/* PATH. Answer: a number for what the node has of the request's hosts, and a fragment (path/remote.h). hashes: of
 * struct cluster_entry_host, in the order of the request; 0: it does not have that one. */
uint64_t cluster_state(const uint64_t *hashes, size_t n);
struct path_answer { uint64_t state; const void *fragment; size_t n; };
void cluster_path_answer_begin(struct text *, uint64_t state); /* the fragment follows */
int cluster_path_answer_read(const void *bytes, size_t n, struct path_answer *out, struct err *e); /* borrowed */

/* FLOWS: of these hosts. Answer: in their order what flow_needed wants to know of them; a host that is not here has
 * none. */
struct flows_question { const uint64_t *keys; size_t n; };
void cluster_flows_question_write(const struct flows_question *, struct text *out);
int cluster_flows_question_read(struct arena *, const void *bytes, size_t n, struct flows_question *out, struct err *e);
void cluster_flows_write(const struct flow_other *, struct text *out);
int cluster_flows_read(struct arena *, const void *bytes, size_t n, size_t n_hosts, struct flow_other *out,
    struct err *e);

/* EXTRACT: of the host, what is needed beside these flows and addresses of others. Answer: a part, from that byte on,
 * of the store (flow_extract), packed (base/pack.h). */
struct extract_question { uint64_t key; struct flow_other others; uint64_t from; };
/* serial: another one when it was made anew, and the parts of before do not belong to it. */
struct extract_part { uint64_t serial, total; const void *bytes; size_t n; };
void cluster_extract_question_write(const struct extract_question *, struct text *out);
int cluster_extract_question_read(struct arena *, const void *bytes, size_t n, struct extract_question *out,
    struct err *e);
void cluster_extract_part_write(const struct extract_part *, struct text *out);
/* Borrowed from the bytes. */
int cluster_extract_part_read(const void *bytes, size_t n, struct extract_part *out, struct err *e);

/* ---- threads ---- */

struct lives_question { const char *thread; int64_t begin, end; struct path_request hosts; /* no windows */ };
struct far_life { int32_t host; uint64_t row; int64_t begin, end; int32_t tid; const char *name; };
struct far_lives { struct far_life *v; size_t n, cap; };
void cluster_lives_question_write(const struct lives_question *, struct text *out);
int cluster_lives_question_read(struct arena *, const void *bytes, size_t n, struct lives_question *out, struct err *e);
void cluster_lives_write(const struct far_lives *, struct text *out);
/* Adds to `out`; names live in the arena. */
int cluster_lives_read(struct arena *, const void *bytes, size_t n, size_t n_hosts, struct far_lives *out,
    struct err *e);

/* REQUESTS: that were there at any time of it. Answer: the slowest first. */
struct requests_asked { int64_t begin, end; struct path_request hosts; /* no windows */ };
void cluster_requests_asked_write(const struct requests_asked *, struct text *out);
int cluster_requests_asked_read(struct arena *, const void *bytes, size_t n, struct requests_asked *out, struct err *e);
void cluster_requests_write_one(const struct cluster_request *, struct text *out);
/* Adds to `out`, with the numbers that hosts had in the question; names live in the arena. */
int cluster_requests_read(struct arena *, const void *bytes, size_t n, size_t n_hosts, struct cluster_requests *out,
    struct err *e);

/* CONTAINERS: of threads of these hosts, by their ids in order. Answer: names, and of each thread which one. */
struct containers_question {
    struct containers_question_host { uint64_t key; const uint64_t *rows; size_t n; } *hosts;
    size_t n;
};
void cluster_containers_question_write(const struct containers_question *, struct text *out);
int cluster_containers_question_read(struct arena *, const void *bytes, size_t n, struct containers_question *out,
    struct err *e);
/* names: of all threads of the question, one after the other, "" for none; n of them. */
void cluster_containers_write(const char *const *names, size_t n, struct text *out);
/* Sets the n names, which live in the arena. */
int cluster_containers_read(struct arena *, const void *bytes, size_t size, const char **names, size_t n,
    struct err *e);

/* THREADS: of these hosts. */
struct threads_question { const uint64_t *keys; size_t n; struct cluster_threads_question is; };
void cluster_threads_question_write(const struct threads_question *, struct text *out);
int cluster_threads_question_read(struct arena *, const void *bytes, size_t n, struct threads_question *out,
    struct err *e);
/* Most of the state first, and no more than so many. */
void cluster_threads_limit(struct cluster_threads *, int state, size_t limit);
void cluster_threads_write(const struct cluster_threads *, struct text *out);
/* Adds to `out`, with the numbers that hosts had in the question; names live in the arena. */
int cluster_threads_read(struct arena *, const void *bytes, size_t n, size_t n_hosts, struct cluster_threads *out,
    struct err *e);

/* ---- who talks to whom ---- */

/* TALK: within an interval of each host's clock. Answer: in the same order; a host that is not here saw nothing. */
struct talk_question {
    struct talk_question_host { uint64_t key; int64_t begin, end; } *hosts;
    size_t n;
};
void cluster_talk_question_write(const struct talk_question *, struct text *out);
int cluster_talk_question_read(struct arena *, const void *bytes, size_t n, struct talk_question *out, struct err *e);
void cluster_talk_write(const struct talk_reports *, struct text *out);
/* out: by host. Adds, also before an error. */
int cluster_talk_read(const void *bytes, size_t n, size_t n_hosts, struct talk_reports *out, struct err *e);

/* DELAYS: of these hosts, which have these keys. Answer: of which hosts packets are known, and talk_find_delays. */
struct delays_question { const uint64_t *keys; int64_t begin, end; bool by_flow; struct path_request hosts; };
void cluster_delays_question_write(const struct delays_question *, struct text *out);
int cluster_delays_question_read(struct arena *, const void *bytes, size_t n, struct delays_question *out,
    struct err *e);
void cluster_delays_write(const struct talk_delays *, const bool *known, size_t n_hosts, bool by_flow,
    struct text *out);
/* In their order, each once. */
int cluster_delays_read(const void *bytes, size_t n, size_t n_hosts, bool by_flow, struct talk_delays *out, bool *known,
    struct err *e);

#endif
