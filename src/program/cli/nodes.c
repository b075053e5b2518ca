/* SPDX-License-Identifier: MIT */
#include "cli/nodes.h"

#include "base/json.h"
#include "base/time.h"
#include "clock/clock.h"

#define CLOCKS_NS NS_PER_S

bool cli_node_knows(const struct cluster_node_status *s)
{
    return s->state >= CLUSTER_NODE_OPENING;
}

int cli_nodes_ask(struct bus *bus, const char *cluster, int64_t patience_ns, struct cli_nodes *out, struct err *e)
{
    struct clock_options clocks = clock_defaults();
    bool stale;
    *out = (struct cli_nodes){0};
    int rc = cluster_open(bus, cluster, &out->cluster, e);
    if (rc)
        return rc;
    /* Stale or missing clocks are accepted: without them, as for new nodes, no host is known to be unrelated. */
    rc = cluster_sync(out->cluster, &clocks, time_monotonic_ns() + CLOCKS_NS, &stale, e);
    out->n = cluster_status(out->cluster, time_monotonic_ns() + patience_ns, &out->v);
    out->n_missing = cluster_missing(out->cluster, &out->missing);
    return out->n || rc == ERR_NOTFOUND ? 0 : rc;
}

void cli_nodes_close(struct cli_nodes *nodes)
{
    if (nodes->cluster)
        cluster_close(nodes->cluster);
    *nodes = (struct cli_nodes){0};
}

static const char *kind_name(enum cluster_missing_kind kind)
{
    static const char *const names[] = {[CLUSTER_MISSING_VERSION] = "version",
        [CLUSTER_MISSING_ENTRY] = "entry",
        [CLUSTER_MISSING_OPENING] = "opening",
        [CLUSTER_MISSING_FAILED] = "failed",
        [CLUSTER_MISSING_PART] = "part"};
    return names[kind];
}

static void write_node(const struct cluster_node_status *s, struct json *j)
{
    json_begin_object(j);
    json_kv_string(j, "node", s->name);
    json_kv_string(j, "state", cluster_node_state_name(s->state));
    json_kv_string(j, "text", s->text);
    json_kv_bool(j, "keeper", s->leads_clocks);
    json_kv_u64(j, "hosts", s->hosts);
    json_kv_u64(j, "unrelated", s->unrelated);
    json_kv_u64(j, "bytes", s->bytes);
    json_kv_u64(j, "store_bytes", s->store_bytes);
    json_kv_u64(j, "events", s->events);
    if (cli_node_knows(s)) {
        json_kv_string(j, "release", s->release);
        json_kv_u64(j, "cpus", s->load.cpus);
        json_kv_u64(j, "load_percent", s->load.load_percent);
        json_kv_u64(j, "questions", s->load.questions);
        json_kv_bool(j, "fetches", s->load.taking);
        json_kv_i64(j, "clock_ahead_ns", s->ahead_ns);
        json_kv_i64(j, "clock_error_ns", s->error_ns);
        json_key(j, "disk");
        json_begin_object(j);
        json_kv_string(j, "path", s->disk.path);
        json_kv_u64(j, "free_bytes", s->disk.free_bytes);
        json_kv_u64(j, "bytes", s->disk.all_bytes);
        json_end_object(j);
    }
    json_end_object(j);
}

void cli_nodes_write_json(const struct cli_nodes *nodes, struct text *out)
{
    struct json j = JSON_TO(out);
    json_begin_object(&j);
    json_key(&j, "nodes");
    json_begin_array(&j);
    for (size_t i = 0; i < nodes->n; i++)
        write_node(&nodes->v[i], &j);
    json_end_array(&j);
    json_key(&j, "missing");
    json_begin_array(&j);
    for (size_t i = 0; i < nodes->n_missing; i++) {
        json_begin_object(&j);
        json_kv_string(&j, "node", nodes->missing[i].node);
        json_kv_string(&j, "kind", kind_name(nodes->missing[i].kind));
        json_kv_string(&j, "text", nodes->missing[i].text);
        json_end_object(&j);
    }
    json_end_array(&j);
    json_end_object(&j);
}
