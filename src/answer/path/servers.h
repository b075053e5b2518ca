/* SPDX-License-Identifier: MIT */
/* Private to the room: which end of a connection is the server. Uses all connections of some hosts, since the begin of
 * a connection may not have been recorded. */
#ifndef WEFT_PATH_SERVERS_H
#define WEFT_PATH_SERVERS_H

#include "flow/flow.h"

struct servers;
/* Reads the flows of all hosts (NULL: host without). O(flows) */
struct servers *path_servers_new(const struct flow_store *const *, size_t n);
void path_servers_free(struct servers *);
enum server_end { SERVER_UNKNOWN, SERVER_SOURCE, SERVER_DESTINATION };
/* Server end of a connection, as that host sees it. The first rule that distinguishes the ends decides: 1. the end that
 * was connected to, on this connection or another one; 2. for TCP, the end with several connections, if the other has
 * only one; 3. the end whose port is below 1024, which only privileged programs may open; 4. the end whose port is
 * below 32768, where Linux' client ports begin. */
enum server_end path_servers_end(const struct servers *, size_t host, const struct flow_key *);

#endif
