/* Private to the room: what the packets of one host say about its rows. Made once per host from its flow store, immutable afterwards. */
#ifndef WEFT_PATH_TRAFFIC_H
#define WEFT_PATH_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct graph;
struct flow_store;

/* A stretch in which a row polled for a message: [begin, end] of the host's clock. Found where a row that gets nearly all its messages awake asked
 * on a connection, did not sleep, and got an answer on it. Conservative: what it polled for without having asked is not found. */
struct traffic_poll { int32_t row; uint32_t receive; int64_t begin, end; };
/* A send that softirq work made after a receive of the same connection. */
struct traffic_reply { int64_t sent, received; uint32_t receive; };

struct traffic;
struct traffic *traffic_new(const struct graph *, const struct flow_store *);
void traffic_free(struct traffic *);
/* Polling stretches are numbered by row, then time; those of a row do not overlap. Number of the row's first one that ends at or after ts (when there
 * is none: where it would be); NULL for a number that is not there. */
size_t traffic_poll_find(const struct traffic *, int32_t row, int64_t ts);
const struct traffic_poll *traffic_poll(const struct traffic *, size_t i);
/* Number of the reply that was sent at ts, or -1. */
int64_t traffic_reply_at(const struct traffic *, int64_t ts);
const struct traffic_reply *traffic_reply(const struct traffic *, size_t i);
/* Messages for the row within [begin, end] that came while it did not sleep. */
size_t traffic_unslept(const struct traffic *, const struct graph *, int32_t row, int64_t begin, int64_t end);

#endif
