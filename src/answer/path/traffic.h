/* SPDX-License-Identifier: MIT */
/* Private to the room: information about the rows of one host from its packets. Found for a row at the first request,
 * then immutable; thread-safe. */
#ifndef WEFT_PATH_TRAFFIC_H
#define WEFT_PATH_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph;
struct flow_store;

/* Stretch in which a row polled for a message: [begin, end] of the host's clock. Three kinds are found:
 * - shown: system calls returned without a message, again and again, until it had arrived; a wait;
 * - asked: a row that gets nearly all its messages awake sent a question on a connection, did not sleep, and got an
 *   answer on it.
 *   Conservative: polling without a question is not found. The row ran, and polled or did something else;
 * - assumed: of such a row from its last send on any connection, or from when it last slept, to the last message that
 *   arrived before it sends again, if it does so soon after that message; a wait. What it computed meanwhile counts
 *   as polling. None if it did not send before. */
struct path_traffic_poll { uint64_t receive; int64_t begin, end; bool wait, assumed; };
/* Send by softirq work after a receive of the same connection. */
struct path_traffic_reply { int64_t sent, received; uint64_t receive; };

struct path_traffic;
/* Borrows both; the flows may be NULL. */
struct path_traffic *path_traffic_new(const struct graph *, const struct flow_store *);
void path_traffic_free(struct path_traffic *);
/* Polling stretches of a row of the graph are numbered in order of time and do not overlap. There are two lists: with
 * assumed ones, and without. Returns the number of the first one that ends at or after ts, or their total;
 * path_traffic_poll returns NULL for a number that does not exist. */
size_t path_traffic_poll_find(struct path_traffic *, int32_t row, int64_t ts, bool assuming);
const struct path_traffic_poll *path_traffic_poll(struct path_traffic *, int32_t row, size_t i, bool assuming);
/* Number of the reply sent at ts, or -1. */
int64_t path_traffic_reply_at(const struct path_traffic *, int64_t ts);
/* False for a number that does not exist. */
bool path_traffic_reply(const struct path_traffic *, size_t i, struct path_traffic_reply *out);
/* Number of messages for the row that arrived within [begin, end] while it was awake. */
size_t path_traffic_unslept(const struct path_traffic *, int32_t row, int64_t begin, int64_t end);

#endif
