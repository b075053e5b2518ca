/* SPDX-License-Identifier: MIT */
/* weft flows: lines and delays as a table, for traces and clusters. */
#ifndef WEFT_CLI_FLOWS_H
#define WEFT_CLI_FLOWS_H

#include "base/arena.h"
#include "base/text.h"
#include "cli/cluster.h"
#include "cli/traces.h"
#include "path/talk.h"

enum cli_flows_sort {
    FLOWS_BYTES, FLOWS_PACKETS, FLOWS_RETRANSMITTED, FLOWS_CONNECTIONS, FLOWS_DELAY, FLOWS_BEGIN, FLOWS_SORTS
};
const char *cli_flows_sort_name(int sort);

/* Host of rows. */
struct flows_host {
    const char *name;
    const struct clock_map *map; /* NULL: its own clock */
    bool told;                   /* packets are known */
};

/* Traffic in one direction, between two hosts or of a connection. Times by the reference clock. */
struct flows_row {
    int32_t from, to;            /* -1: not traced */
    struct flow_key key;         /* key of one of its flows */
    uint64_t connections;
    struct flow_tally sent, received;
    const struct talk_delay *delay; /* NULL: none is known */
};
struct flows_rows { struct flows_row *v; size_t n, cap; };
/* Makes rows of lines, and changes their order. The delays are in the order of path_talk_find_delays, for the same
 * by_flow, and are borrowed. */
void cli_flows_make_rows(struct talk_lines *, const struct talk_delays *, const struct flows_host *, bool by_flow,
    struct flows_rows *out);
void cli_flows_sort(struct flows_rows *, const struct flows_host *, int sort);
/* Writes the first n rows. first: zero of times in tables for people. */
void cli_flows_write_rows(const struct flows_row *, size_t n, const struct flows_host *, bool by_flow, int64_t first,
    int format, struct text *out);


/* ---- verb_flows.c ---- */

struct flows_choice {
    const char *host, *begin_text, *end_text, *sort_name;
    bool by_flow;
    int sort, format;
    int64_t begin, end, limit;
    struct cli_clocks clocks;
};

/* Hosts, and the packets found between them. For cli_flows_found_fini. */
struct flows_found {
    struct flows_host *hosts;
    struct cli_hosts names;
    struct talk_lines lines;
    struct talk_delays delays;
    struct flow_carried carried; /* tunnels and the like; traces only */
};
/* Adds a host to `hosts`, which has room for it. map NULL: the host's own clock. begin, end: by that clock. */
void cli_flows_add_host(struct flows_found *, const char *name, const struct clock_map *map, int64_t begin,
    int64_t end);
/* Checks --host and the interval against the hosts found. */
int cli_flows_settle(struct flows_choice *, const struct flows_found *, struct err *);
/* Writes the answer. */
void cli_flows_show(const struct flows_choice *, struct flows_found *, struct text *out);
void cli_flows_found_fini(struct flows_found *);

/* ---- flows_cluster.c ---- */

/* Answers by querying the nodes of a cluster; returns the exit code. */
int cli_flows_ask_cluster(struct flows_choice *, struct cli_cluster *);

#endif
