/* SPDX-License-Identifier: MIT */
/* Private to http: open connections of a server. Closes those of slow clients, so that nobody holds connections and
 * memory by trickling bytes. Limits how many are admitted at once. */
#ifndef WEFT_HTTP_PEERS_H
#define WEFT_HTTP_PEERS_H

#include <stdbool.h>
#include <stdint.h>

/* Connections beyond the limit: accepted at the door, and of these the ones that may wait there. The others are closed
 * within seconds, so that a health check soon finds one. */
enum { PEERS_AT_DOOR = 256, PEERS_WAITING = 192 };

/* Open connections of a server, and the thread that closes overdue ones. */
struct peers;
struct peer;
/* Limit of admitted connections: `most`. */
struct peers *http_peers_new(unsigned most, unsigned patience_s, unsigned slowest_bytes_per_s);
void http_peers_free(struct peers *); /* precondition: no connection is left */
/* Adds a connection, admitted if there is a place and nobody waits for one. */
struct peer *http_peers_add(struct peers *, int fd);
/* Admits the connection, whose request has arrived; waits for a place if all are taken. False: too many wait already,
 * no place is free for half of the patience, the client has hung up, or the server stops. */
bool http_peer_enter(struct peers *, struct peer *);
/* True: the other end of the socket is closed, at least for writing, even if bytes are unread. */
bool http_peer_hung_up(int fd);
bool http_peer_is_in(struct peers *, const struct peer *);
void http_peers_stop(struct peers *); /* ends all waiting */
/* Call it before the descriptor is closed: it may be reused afterwards. */
void http_peers_remove(struct peers *, struct peer *);
/* Sets the deadline of a client that has to send or receive `bytes`: the patience, plus the time at the least rate. */
void http_peer_awaits(struct peers *, struct peer *, uint64_t bytes);
/* Clears the deadline: it is the server's turn. */
void http_peer_rests(struct peers *, struct peer *);

#endif
