/* SPDX-License-Identifier: MIT */
/* Private to the room: what the packets of one host say about its rows. Found for a row when it is first asked for,
 * immutable afterwards; any thread may ask. */
#ifndef WEFT_PATH_TRAFFIC_H
#define WEFT_PATH_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph;
struct flow_store;

/* A stretch in which a row polled for a message: [begin, end] of the host's clock. Three kinds are found:
 * - shown: system calls told the row that there was nothing, again and again, until the message had come; a wait;
 * - asked: a row that gets nearly all its messages awake asked on a connection, did not sleep, and got an answer on it.
 *   Conservative: what it polled for without having asked is not found. It ran, and polled or did something else;
 * - assumed: of such a row from its last send on any connection, or from when it last slept, to the last message that
 *   came before it sends again, where it does so soon after that message; a wait. What it computed meanwhile is taken
 *   for polling. Nothing when it did not send before. */
struct traffic_poll { uint64_t receive; int64_t begin, end; bool wait, assumed; };
/* A send that softirq work made after a receive of the same connection. */
struct traffic_reply { int64_t sent, received; uint64_t receive; };

struct path_traffic;
/* Both are borrowed; the flows may be NULL. */
struct path_traffic *traffic_new(const struct graph *, const struct flow_store *);
void traffic_free(struct path_traffic *);
/* Polling stretches of a row of the graph are numbered in time order and do not overlap. There are two lists: with what
 * is assumed, and without. Number of the first one that ends at or after ts (when there is none: how many there are);
 * NULL for a number that is not there. */
size_t traffic_poll_find(struct path_traffic *, int32_t row, int64_t ts, bool assuming);
const struct traffic_poll *traffic_poll(struct path_traffic *, int32_t row, size_t i, bool assuming);
/* Number of the reply that was sent at ts, or -1. */
int64_t traffic_reply_at(const struct path_traffic *, int64_t ts);
/* False for a number that is not there. */
bool traffic_reply(const struct path_traffic *, size_t i, struct traffic_reply *out);
/* Messages for the row within [begin, end] that came while it did not sleep. */
size_t traffic_unslept(const struct path_traffic *, int32_t row, int64_t begin, int64_t end);

#endif
