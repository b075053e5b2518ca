/* SPDX-License-Identifier: MIT */
/* Sending what waits in the spool, in batches. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/time.h"
#include "script/pieces.h"
#include "script/send.h"
#include "script/spool.h"

enum { BATCH_BYTES = 512 << 10, BATCH_LINES = 512, LOCK_WAIT_MS = 1000 };
/* Limits for sending some along with a span that was just sent. No request begins with less time than `least_ns`, or
 * than its usual timeout. */
enum { SOME_BYTES = 64 << 10, SOME_LINES = 64 };
static const int64_t some_ns = 500 * 1000000, least_ns = 200 * 1000000;

/* Parts of a request. Every line is {"resourceSpans":[…]}; the contents of several brackets make one request. */
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

/* Sends a piece. Unsent lines stay whole: the file is replaced in one step. */
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
    int rc = script_spool_cut(f->settings, true, LOCK_WAIT_MS, e);
    if (rc)
        return rc;
    script_list_pieces(f->settings, true, &pieces);
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

/* The descriptor of `flushing`, which one process at a time has locked, or -1. *busy: another has it. */
static int begin_flushing(const struct script_settings *s, bool *busy, struct err *e)
{
    char *path = mem_printf("%s/flushing", s->spool);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        err_sys(e, "%s", path);
    free(path);
    *busy = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB);
    if (!*busy)
        return fd;
    close(fd);
    return -1;
}

int script_spool_flush(const struct script_settings *s, struct script_flushed *out, struct err *e)
{
    struct flush f = {.settings = s, .out = out};
    *out = (struct script_flushed){0};
    if (access(s->spool, F_OK))
        return ERR_OK;
    int fd = begin_flushing(s, &out->busy, e);
    if (fd < 0)
        return out->busy ? ERR_OK : e->code;
    int rc = flush_all(&f, e);
    close(fd);
    return rc;
}

/* ---- sending some along with a span ---- */

/* The last bytes of a piece, from the begin of a line. */
struct end {
    char *data;
    const char *at, *end;
    off_t from; /* position of `at` in the file */
};

/* Reads at least a whole line, otherwise at most SOME_BYTES. Returns false if there is none, or on error. */
static bool read_end(int fd, struct end *out)
{
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size <= 0)
        return false;
    for (off_t n = SOME_BYTES;; n *= 2) {
        n = n < st.st_size ? n : st.st_size;
        *out = (struct end){.data = mem_alloc((size_t)n), .from = st.st_size - n};
        if (pread(fd, out->data, (size_t)n, out->from) != (ssize_t)n)
            break;
        out->at = out->from ? line_end(out->data, out->data + n) : out->data;
        out->end = out->data + n;
        if (out->at < out->end) {
            out->from += out->at - out->data;
            return true;
        }
        free(out->data);
    }
    free(out->data);
    return false;
}

static void keep_last_lines(struct end *end, size_t most)
{
    const char *begin = end->end;
    for (size_t n = 0; n < most && begin > end->at; n++) {
        const char *before = begin > end->at + 1 ? memrchr(end->at, '\n', (size_t)(begin - 1 - end->at)) : NULL;
        begin = before ? before + 1 : end->at;
    }
    end->from += begin - end->at;
    end->at = begin;
}

/* A request that ran out of less time than usual says nothing about the collector's health: the next span is sent. */
static void note_failure(const struct flush *f, int64_t usual_ns, int64_t begun_ns)
{
    const int64_t given_ns = f->settings->timeout_ns;
    if (!f->reply.status && given_ns < usual_ns && time_monotonic_ns() - begun_ns >= given_ns)
        script_note_slow_collector(f->settings);
    else
        script_let_collector_rest(f->settings, f->reply.retry_after_ns);
}

/* Sends the last lines of a piece, and cuts them off, without rewriting the rest. Returns how many were sent; 0: none,
 * and *refused: they were too many for the collector to identify the invalid one. */
static size_t send_end(struct flush *f, int fd, size_t most, int64_t usual_ns, bool *refused)
{
    struct end end;
    const int64_t begun_ns = time_monotonic_ns();
    size_t good, bad;
    *refused = false;
    if (!read_end(fd, &end))
        return 0;
    keep_last_lines(&end, most);
    const bool several = line_end(end.at, end.end) < end.end;
    enum script_sent sent = send_lines(f, (struct lines){end.at, end.end}, &good, &bad);
    free(end.data);
    *refused = sent == SCRIPT_REFUSED && several;
    if (sent == SCRIPT_LATER)
        note_failure(f, usual_ns, begun_ns);
    if (sent == SCRIPT_LATER || *refused || ftruncate(fd, end.from))
        return 0;
    f->out->damaged += bad;
    *(sent == SCRIPT_TAKEN ? &f->out->sent : &f->out->refused) += good;
    return good + bad ? good + bad : 1; /* an empty line */
}

/* Returns how many of `most` lines may still go, 0: none now. */
static size_t send_some_of(struct flush *f, const char *path, size_t most, int64_t until_ns)
{
    struct script_settings quick = *f->settings;
    struct flush some = *f;
    struct stat st;
    size_t at_once = most;
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    some.settings = &quick;
    while (fd >= 0 && most && fstat(fd, &st) == 0 && st.st_size > 0) {
        bool refused = false;
        const int64_t left_ns = until_ns - time_monotonic_ns(), usual_ns = f->settings->timeout_ns;
        const bool enough = left_ns >= (usual_ns < least_ns ? usual_ns : least_ns);
        quick.timeout_ns = left_ns < usual_ns ? left_ns : usual_ns;
        size_t n = enough ? send_end(&some, fd, at_once < most ? at_once : most, usual_ns, &refused) : 0;
        if (!n && !refused)
            most = 0;
        else if (!n)
            at_once = 1;
        most -= n < most ? n : most;
    }
    if (fd >= 0 && fstat(fd, &st) == 0 && !st.st_size)
        unlink(path);
    if (fd >= 0)
        close(fd);
    return most;
}

/* Pieces, or what grows if there are none. */
static void list_waiting(const struct script_settings *s, struct script_pieces *pieces)
{
    script_list_pieces(s, false, pieces);
    if (!pieces->list.n && script_spool_grows(s) && !script_spool_cut(s, false, 0, NULL))
        script_list_pieces(s, false, pieces);
}

void script_spool_send_some(const struct script_settings *s)
{
    struct script_flushed sent = {0};
    struct flush f = {.settings = s, .out = &sent};
    struct script_pieces pieces = {0};
    struct err e = {0};
    const int64_t until_ns = time_monotonic_ns() + some_ns;
    if (s->thrift || access(s->spool, F_OK) || script_collector_is_slow(s))
        return;
    list_waiting(s, &pieces);
    int fd = pieces.list.n ? begin_flushing(s, &sent.busy, &e) : -1;
    for (size_t i = 0, most = SOME_LINES; i < pieces.list.n && fd >= 0 && most; i++) {
        char *path = mem_printf("%s/%s", s->spool, pieces.list.v[i]);
        most = send_some_of(&f, path, most, until_ns);
        free(path);
    }
    if (fd >= 0)
        close(fd);
    script_pieces_fini(&pieces);
    if (sent.refused || sent.damaged)
        script_note(s,
            "of the spans that waited in %.200s, the collector refuses %llu, and %llu are damaged: they are "
            "gone",
            s->spool, (unsigned long long)sent.refused, (unsigned long long)sent.damaged);
}
