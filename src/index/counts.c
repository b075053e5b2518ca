/* The packets store: what random access must know of a trace, so that no reader has to read it for that. */
#include <stdlib.h>

#include "base/store.h"
#include "index/experiment.h"

enum { VERSION = 1 };

int index_counts_write(const struct ctf_trace *t, const char *path, uint64_t key, struct err *e)
{
    struct ctf_counts c;
    ctf_trace_counts(t, &c);
    struct store_writer *s = store_create("packets", VERSION, key);
    store_add(s, "packets", c.packets, sizeof *c.packets, c.n_packets);
    store_add(s, "marks", c.marks, sizeof *c.marks, c.n_marks);
    int rc = store_commit(s, path, e);
    free(c.packets);
    free(c.marks);
    return rc;
}

int index_counts_open(const struct ctf_trace *t, const char *path, uint64_t key, struct err *e)
{
    struct ctf_counts c;
    struct store *s;
    int rc = store_open(path, "packets", VERSION, &key, &s, e);
    if (rc)
        return rc;
    c.packets = (struct ctf_packet_count *)store_section(s, "packets", sizeof *c.packets, &c.n_packets);
    c.marks = (struct ctf_mark *)store_section(s, "marks", sizeof *c.marks, &c.n_marks);
    if (!ctf_trace_set_counts(t, &c))
        rc = err_set(e, ERR_FORMAT, "%s: not the packets of this trace", path);
    store_close(s);
    return rc;
}
