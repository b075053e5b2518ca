/* SPDX-License-Identifier: MIT */
/* Private to the room: encoding of the announcement of a trace server (docs/cluster-protocol.md). */
#ifndef WEFT_CLUSTER_SERVERS_H
#define WEFT_CLUSTER_SERVERS_H

#include "base/arena.h"
#include "base/text.h"
#include "cluster/cluster.h"

/* machine: the one that `here_only` means. */
struct server_entry { struct cluster_server is; uint64_t machine; };
void cluster_server_entry_write(const struct server_entry *, struct text *out);
/* Texts live in the arena. ERR_UNSUPPORTED: of another version. */
int cluster_server_entry_read(struct arena *, const void *bytes, size_t n, struct server_entry *out, struct err *e);

#endif
