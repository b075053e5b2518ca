/* SPDX-License-Identifier: MIT */
/* Private to the room: which end of a connection is the server. By all connections of some hosts, since who began one
 * may not have been recorded. */
#ifndef WEFT_PATH_SERVERS_H
#define WEFT_PATH_SERVERS_H

#include "flow/flow.h"

struct servers;
/* Looks at the flows of all hosts (NULL: one without). O(flows) */
struct servers *servers_new(const struct flow_store *const *, size_t n);
void servers_free(struct servers *);
enum server_end { SERVER_UNKNOWN, SERVER_SOURCE, SERVER_DESTINATION };
/* Of a connection, as that host sees it:
 * 1. the end that was connected to, on this connection or another one;
 * 2. of TCP, the end that has several connections, where the other has but one;
 * 3. the end whose port is below 1024, which only the system gives away;
 * 4. the end whose port is below 32768, from where on Linux gives ports to clients.
 * Where both ends are alike the next one decides. */
enum server_end servers_end(const struct servers *, size_t host, const struct flow_key *);

#endif
