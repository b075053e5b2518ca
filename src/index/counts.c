/* The packets store: what random access must know of a trace, so that no reader has to read it for that; and how many
 * events of each class it has. */
#include <stdlib.h>

#include "base/store.h"
#include "index/stores.h"

enum { VERSION = 2 };

int index_counts_write(const struct index_files *to, struct types_builder *types, struct err *e)
{
    struct ctf_counts c;
    ctf_trace_counts(to->trace, &c);
    struct store_writer *s = store_create(
        to->path[INDEX_PACKETS], "packets", VERSION, index_key(to->trace, INDEX_PACKETS), 5);
    store_add(s, "packets", c.packets, sizeof *c.packets, c.n_packets);
    store_add(s, "marks", c.marks, sizeof *c.marks, c.n_marks);
    types_builder_store(types, s);
    int rc = store_commit(s, e);
    free(c.packets);
    free(c.marks);
    return rc;
}

int index_counts_open(const struct index_files *from, struct index_types **types, struct err *e)
{
    const char *path = from->path[INDEX_PACKETS];
    uint64_t key = index_key(from->trace, INDEX_PACKETS);
    struct ctf_counts c;
    struct store *s;
    int rc = store_open(path, "packets", VERSION, &key, &s, e);
    if (rc)
        return rc;
    c.packets = (struct ctf_packet_count *)store_section(s, "packets", sizeof *c.packets, &c.n_packets);
    c.marks = (struct ctf_mark *)store_section(s, "marks", sizeof *c.marks, &c.n_marks);
    if (!ctf_trace_set_counts(from->trace, &c))
        rc = err_set(e, ERR_FORMAT, "%s: not the packets of this trace", path);
    else
        rc = types_open(from->trace, s, path, types, e);
    store_close(s);
    return rc;
}
