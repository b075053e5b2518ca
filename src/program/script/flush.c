/* SPDX-License-Identifier: MIT */
/* Sending what waits in the spool, in batches. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"
#include "script/pieces.h"
#include "script/send.h"
#include "script/spool.h"

enum { BATCH_BYTES = 512 << 10, BATCH_LINES = 512 };

/* Every line is {"resourceSpans":[…]}: what stands within the brackets of several makes one request. */
static const char head[] = "{\"resourceSpans\":[", tail[] = "]}";
enum { HEAD_BYTES = sizeof head - 1, TAIL_BYTES = sizeof tail - 1 };

struct flush {
    const struct script_settings *settings;
    struct script_flushed *out;
    struct script_reply reply;
};
struct lines {
    const char *at, *end;
}; /* whole lines */

static const char *line_end(const char *s, const char *end)
{
    const char *stop = memchr(s, '\n', (size_t)(end - s));
    return stop ? stop + 1 : end;
}

/* Appends what a line has within its brackets; false: it is no line of ours. */
static bool add_line(struct text *body, const char *s, size_t n)
{
    while (n && (s[n - 1] == '\n' || s[n - 1] == '\r'))
        n--;
    if (n <= HEAD_BYTES + TAIL_BYTES || memcmp(s, head, HEAD_BYTES) || memcmp(s + n - TAIL_BYTES, tail, TAIL_BYTES))
        return false;
    text_puts(body, body->n ? "," : head);
    text_put(body, s + HEAD_BYTES, n - HEAD_BYTES - TAIL_BYTES);
    return true;
}

static enum script_sent send_lines(struct flush *f, struct lines l, size_t *n_good, size_t *n_bad)
{
    struct text body = {.fd = -1};
    *n_good = *n_bad = 0;
    for (const char *s = l.at, *next; s < l.end; s = next) {
        next = line_end(s, l.end);
        bool good = add_line(&body, s, (size_t)(next - s));
        *n_good += good;
        *n_bad += !good && next - s > 1;
    }
    text_puts(&body, tail);
    enum script_sent sent = *n_good ? script_send(f->settings, "application/json", body.v, body.n, &f->reply)
                                    : SCRIPT_TAKEN;
    text_fini(&body);
    return sent;
}

/* A batch that is refused may have one bad span in it: each is asked for alone then. False: the collector is away. */
static bool send_batch(struct flush *f, struct lines l)
{
    size_t good, bad;
    enum script_sent sent = send_lines(f, l, &good, &bad);
    if (sent == SCRIPT_LATER)
        return false;
    if (sent == SCRIPT_REFUSED && line_end(l.at, l.end) < l.end) {
        for (const char *s = l.at, *next; s < l.end; s = next) {
            next = line_end(s, l.end);
            if (!send_batch(f, (struct lines){s, next}))
                return false;
        }
        return true;
    }
    f->out->damaged += bad;
    *(sent == SCRIPT_TAKEN ? &f->out->sent : &f->out->refused) += good;
    return true;
}

static struct lines next_batch(const char *s, const char *end)
{
    struct lines l = {s, s};
    for (size_t n = 0; l.end < end && n < BATCH_LINES; n++) {
        const char *next = line_end(l.end, end);
        if (n && next - s > BATCH_BYTES)
            break;
        l.end = next;
    }
    return l;
}

/* What was not sent stays, whole: the file is replaced in one step. */
static int send_piece(struct flush *f, const char *path, struct err *e)
{
    char *data;
    size_t n;
    int rc = file_read(path, f->settings->spool_bytes + (1 << 20), &data, &n, e);
    if (rc == ERR_NOTFOUND)
        return ERR_OK;
    if (rc)
        return rc;
    const char *s = data, *end = data + n;
    while (s < end && !rc) {
        struct lines l = next_batch(s, end);
        if (send_batch(f, l))
            s = l.end;
        else
            rc = err_set(e, ERR_IO, "%s: %s; what waits in %s stays there", f->settings->endpoint, f->reply.why,
                f->settings->spool);
    }
    if (s == end)
        unlink(path);
    else if (s > data && file_write(path, s, (size_t)(end - s), e))
        err_wrap(e, "%s is sent once more later", path);
    free(data);
    return rc;
}

static int flush_all(struct flush *f, struct err *e)
{
    struct script_pieces pieces = {0};
    int rc = script_spool_cut(f->settings, e);
    if (rc)
        return rc;
    script_list_pieces(f->settings, &pieces);
    for (size_t i = 0; i < pieces.list.n && !rc; i++) {
        char *path = mem_printf("%s/%s", f->settings->spool, pieces.list.v[i]);
        rc = send_piece(f, path, e);
        free(path);
    }
    script_pieces_fini(&pieces);
    if (rc)
        script_let_collector_rest(f->settings, f->reply.retry_after_ns);
    else
        script_wake_collector(f->settings);
    return rc;
}

int script_spool_flush(const struct script_settings *s, struct script_flushed *out, struct err *e)
{
    struct flush f = {.settings = s, .out = out};
    *out = (struct script_flushed){0};
    if (access(s->spool, F_OK))
        return ERR_OK;
    char *path = mem_printf("%s/flushing", s->spool);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    int rc = ERR_OK;
    if (fd < 0)
        rc = err_sys(e, "%s", path);
    else if (flock(fd, LOCK_EX | LOCK_NB))
        out->busy = true;
    else
        rc = flush_all(&f, e);
    if (fd >= 0)
        close(fd);
    free(path);
    return rc;
}
