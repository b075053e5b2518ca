/* SPDX-License-Identifier: MIT */
#include "cluster/extracts.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/pack.h"
#include "base/store.h"

enum { MOST_MADE = 16, PART_BYTES = 4 << 20, READ_BYTES = 1 << 16 };
#define MOST_EXTRACT_BYTES (UINT64_C(4) << 30) /* unpacked: sixty million packets */

/* ---- side of the host's node ---- */

struct made {
    int fd; /* + 1; 0: none */
    uint64_t question, serial, size, used;
};
struct extracts {
    pthread_mutex_t lock; /* one extract at a time is made: it takes memory */
    struct made made[MOST_MADE];
    uint64_t clock;
};

struct extracts *cluster_extracts_new(void)
{
    struct extracts *x = mem_zalloc(sizeof *x);
    pthread_mutex_init(&x->lock, NULL);
    return x;
}

static void drop(struct made *m)
{
    if (m->fd)
        close(m->fd - 1);
    *m = (struct made){0};
}

void cluster_extracts_free(struct extracts *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < MOST_MADE; i++)
        drop(&x->made[i]);
    pthread_mutex_destroy(&x->lock);
    free(x);
}

/* A file without a name. */
static int open_nameless(const char *kind, int *fd, struct err *e)
{
    char *path;
    int rc = file_temporary(kind, &path, e);
    if (rc)
        return rc;
    *fd = open(path, O_RDWR | O_CLOEXEC);
    rc = *fd < 0 ? err_sys(e, "%s", path) : 0;
    unlink(path);
    free(path);
    return rc;
}

static int pack(const char *path, int to, struct err *e)
{
    int from = open(path, O_RDONLY | O_CLOEXEC);
    int rc = from < 0 ? err_sys(e, "%s", path) : pack_file(from, to, e);
    if (from >= 0)
        close(from);
    return rc;
}

/* Sums up the bytes. Equal bytes have the same number, even if made anew, so that clients with some of the parts can
 * continue. */
static int sum_up(int fd, uint64_t size, uint64_t *sum, struct err *e)
{
    char *bytes = mem_alloc(READ_BYTES);
    int rc = 0;
    *sum = map_mix(size);
    for (uint64_t at = 0; at < size && !rc;) {
        ssize_t n = pread(fd, bytes, READ_BYTES, (off_t)at);
        if (n > 0) {
            *sum = map_mix(*sum ^ map_hash(bytes, (size_t)n));
            at += (uint64_t)n;
        } else if (!n || errno != EINTR) {
            rc = err_sys(e, "an extract");
        }
    }
    free(bytes);
    return rc;
}

static int make(struct made *m, const struct flow_store *s, const struct flow_other *others, struct err *e)
{
    uint32_t *flows = NULL;
    char *path;
    int fd = -1;
    struct stat st;
    size_t n = flow_needed(s, others, 1, &flows);
    int rc = file_temporary("extract", &path, e);
    if (!rc) {
        rc = flow_extract(s, flows, n, path, e);
        if (!rc)
            rc = open_nameless("packed", &fd, e);
        if (!rc)
            rc = pack(path, fd, e);
        if (!rc && fstat(fd, &st))
            rc = err_sys(e, "an extract");
        unlink(path);
        free(path);
    }
    free(flows);
    uint64_t serial = 0;
    if (!rc)
        rc = sum_up(fd, (uint64_t)st.st_size, &serial, e);
    if (!rc)
        *m = (struct made){.fd = fd + 1, .size = (uint64_t)st.st_size, .serial = serial};
    else if (fd >= 0)
        close(fd);
    return rc;
}

static int write_part(const struct made *m, uint64_t from, struct text *out, struct err *e)
{
    uint64_t n = from < m->size ? m->size - from : 0;
    n = n < PART_BYTES ? n : PART_BYTES;
    char *bytes = mem_alloc(n + 1);
    ssize_t got;
    do
        got = pread(m->fd - 1, bytes, n, (off_t)from);
    while (got < 0 && errno == EINTR);
    if (got >= 0)
        cluster_extract_part_write(&(struct extract_part){m->serial, m->size, bytes, (size_t)got}, out);
    free(bytes);
    return got < 0 ? err_sys(e, "an extract") : 0;
}

static uint64_t hash_of(const struct extract_question *q)
{
    struct extract_question first = *q;
    struct text t = {.fd = -1};
    first.from = 0;
    cluster_extract_question_write(&first, &t);
    uint64_t hash = map_hash(t.v, t.n);
    text_fini(&t);
    return hash;
}

int cluster_extracts_answer(
    struct extracts *x, const struct flow_store *s, const struct extract_question *q, struct text *out, struct err *e)
{
    uint64_t hash = hash_of(q);
    struct made *m = NULL, *oldest = &x->made[0];
    int rc = 0;
    pthread_mutex_lock(&x->lock);
    for (size_t i = 0; i < MOST_MADE && !m; i++) {
        m = x->made[i].fd && x->made[i].question == hash ? &x->made[i] : NULL;
        oldest = x->made[i].used < oldest->used ? &x->made[i] : oldest;
    }
    if (!m) {
        m = oldest;
        drop(m);
        rc = make(m, s, &q->others, e);
        m->question = hash;
    }
    m->used = ++x->clock;
    if (!rc)
        rc = write_part(m, q->from, out, e);
    pthread_mutex_unlock(&x->lock);
    return rc;
}

/* ---- side of the clock leader ---- */

static int append(struct coming *c, const struct extract_part *p, struct err *e)
{
    for (size_t at = 0; at < p->n;) {
        ssize_t n = pwrite(c->fd - 1, (const char *)p->bytes + at, p->n - at, (off_t)(c->got + at));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return err_sys(e, "a part of an extract");
        at += (size_t)n;
    }
    c->got += p->n;
    return 0;
}

int cluster_incoming_take(struct coming *c, const void *bytes, size_t n, struct err *e)
{
    struct extract_part p;
    int fd, rc = cluster_extract_part_read(bytes, n, &p, e);
    if (rc)
        return rc;
    if (!c->fd) {
        rc = open_nameless("coming", &fd, e);
        if (rc)
            return rc;
        *c = (struct coming){.fd = fd + 1, .serial = p.serial, .total = p.total, .question = c->question};
    }
    if (p.serial != c->serial || p.total != c->total || !p.n || p.n > c->total - c->got)
        return err_set(e, ERR_FORMAT, "a part of an extract that does not go on where the last one ended");
    if (c->total > MOST_EXTRACT_BYTES)
        return err_set(e, ERR_LIMIT, "an extract of more than %d GiB", (int)(MOST_EXTRACT_BYTES >> 30));
    return append(c, &p, e);
}

int cluster_incoming_open(const struct coming *c, struct flow_store **out, struct err *e)
{
    char *path;
    int rc = file_temporary("gathered", &path, e);
    if (rc)
        return rc;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    rc = fd < 0 ? err_sys(e, "%s", path) : unpack_file(c->fd - 1, fd, MOST_EXTRACT_BYTES, e);
    if (fd >= 0)
        close(fd);
    if (!rc)
        rc = store_check(path, e);
    if (!rc)
        rc = flow_check(path, NULL, e);
    if (!rc)
        rc = flow_open(path, out, e);
    unlink(path);
    free(path);
    return rc;
}

void cluster_incoming_fini(struct coming *c)
{
    if (c->fd)
        close(c->fd - 1);
    *c = (struct coming){0};
}
