/* SPDX-License-Identifier: MIT */
/* Private to http: the open connections of a server. Ends those of clients that are too slow, so that nobody holds
 * connections and memory by trickling bytes, and lets so many in at once. */
#ifndef WEFT_HTTP_PEERS_H
#define WEFT_HTTP_PEERS_H

#include <stdbool.h>
#include <stdint.h>

/* Connections beyond those that are let in: to answer at the door, and to wait there. Of those so many wait; the others
 * give way within seconds, so that there is always one soon for who asks whether the server is up. */
enum { PEERS_AT_DOOR = 256, PEERS_WAITING = 192 };

/* The open connections of a server, and the thread that ends those beyond their deadlines. */
struct peers;
struct peer;
/* most: connections that are let in at once. */
struct peers *peers_new(unsigned most, unsigned patience_s, unsigned slowest_bytes_per_s);
void peers_free(struct peers *); /* when no connection is left */
/* Lets the connection in if there is a place and nobody waits for one. */
struct peer *peers_add(struct peers *, int fd);
/* Lets the connection in, whose request is there; waits for a place where all are taken. False: too many wait already,
 * none becomes free for half of the patience, the client has hung up, or the server stops. */
bool peer_enter(struct peers *, struct peer *);
/* Has the other end of the socket been closed, at least for writing? Bytes that are unread do not matter. */
bool peer_hung_up(int fd);
bool peer_is_in(struct peers *, const struct peer *);
void peers_stop(struct peers *); /* ends all waiting */
/* Before the descriptor is closed: it may be another's afterwards. */
void peers_remove(struct peers *, struct peer *);
/* The client has to send or to take `bytes` from now on, in the patience and the time that the slowest rate allows. */
void peer_awaits(struct peers *, struct peer *, uint64_t bytes);
/* It is the server's turn. */
void peer_rests(struct peers *, struct peer *);

#endif
