/* SPDX-License-Identifier: MIT */
/* Private to http: ends the connections of clients that are too slow, so that nobody holds connections and memory by
 * trickling bytes. */
#ifndef WEFT_HTTP_PEERS_H
#define WEFT_HTTP_PEERS_H

#include <stdint.h>

/* The open connections of a server, and the thread that ends those beyond their deadlines. */
struct peers;
struct peer;
struct peers *peers_new(unsigned patience_s, unsigned slowest_bytes_per_s);
void peers_free(struct peers *); /* when no connection is left */
struct peer *peers_add(struct peers *, int fd);
/* Before the descriptor is closed: it may be another's afterwards. */
void peers_remove(struct peers *, struct peer *);
/* The client has to send or to take `bytes` from now on, in the patience and the time that the slowest rate allows. */
void peer_awaits(struct peers *, struct peer *, uint64_t bytes);
/* It is the server's turn. */
void peer_rests(struct peers *, struct peer *);

#endif
