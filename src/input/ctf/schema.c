/* SPDX-License-Identifier: MIT */
#include "ctf/schema.h"

#include <stdlib.h>

#include "base/search.h"

void ctf_schema_free(struct ctf_schema *schema)
{
    if (!schema)
        return;
    arena_fini(&schema->arena);
    free(schema);
}

const struct ctf_stream_class *ctf_schema_stream(const struct ctf_schema *s, uint64_t id)
{
    if (id < s->n_streams && s->streams[id].id == id)
        return &s->streams[id];
    size_t lo = search_first(i, 0, s->n_streams, s->streams[i].id >= id);
    return lo < s->n_streams && s->streams[lo].id == id ? &s->streams[lo] : NULL;
}

const struct ctf_event_class *ctf_stream_class_event(const struct ctf_stream_class *s, uint64_t id)
{
    if (s->by_id)
        return id < s->by_id_n ? s->by_id[id] : NULL;
    size_t lo = search_first(i, 0, s->n, s->sorted[i]->id >= id);
    return lo < s->n && s->sorted[lo]->id == id ? s->sorted[lo] : NULL;
}
