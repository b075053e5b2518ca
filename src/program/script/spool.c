/* SPDX-License-Identifier: MIT */
/* The spool: adding to it, and which collectors rest. */
#include "script/spool.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/time.h"
#include "script/pieces.h"
#include "script/send.h"

enum { LOCK_WAIT_MS = 1000, REST_S = 30, DAY_S = 24 * 3600, PIECES = 8, PATH_BYTES = 4096 };

#define FILE_FLAGS (O_CREAT | O_CLOEXEC | O_NOFOLLOW)

static bool path_in(const struct script_settings *s, const char *name, char out[PATH_BYTES])
{
    return snprintf(out, PATH_BYTES, "%s/%s", s->spool, name) < PATH_BYTES;
}

/* ---- the directory ---- */

int script_spool_make(const struct script_settings *s, const char *below, struct err *e)
{
    char path[PATH_BYTES];
    struct stat st;
    snprintf(path, sizeof path, "%s", s->spool);
    char *slash = strrchr(path, '/');
    if (mkdir(s->spool, 0700) && errno == ENOENT && slash && slash > path) {
        *slash = '\0';
        int rc = file_make_dirs(path, e);
        if (rc)
            return rc;
        mkdir(s->spool, 0700);
    }
    if (lstat(s->spool, &st) || (!S_ISDIR(st.st_mode) && !s->spool_given))
        return err_sys(e, "%s", s->spool);
    if (st.st_uid != geteuid() && !s->spool_given)
        return err_set(e, ERR_IO, "%s belongs to another user: name a directory in WEFT_SPAN_SPOOL", s->spool);
    if (below && (!path_in(s, below, path) || (mkdir(path, 0700) && errno != EEXIST)))
        return err_sys(e, "%s/%s", s->spool, below);
    return ERR_OK;
}

/* Returns the descriptor of the locked file, or -1 if the lock was not available in time: its holder may have been
 * stopped. */
static int lock(const struct script_settings *s, const char *name, int wait_ms)
{
    char path[PATH_BYTES];
    int fd = path_in(s, name, path) ? open(path, O_RDWR | FILE_FLAGS, 0600) : -1;
    if (fd < 0)
        return -1;
    int64_t deadline_ns = time_monotonic_ns() + (int64_t)wait_ms * 1000000;
    while (flock(fd, LOCK_EX | LOCK_NB)) {
        if ((errno != EWOULDBLOCK && errno != EINTR) || time_monotonic_ns() >= deadline_ns) {
            close(fd);
            return -1;
        }
        nanosleep(&(struct timespec){.tv_nsec = 500000}, NULL);
    }
    return fd;
}

/* ---- pieces of the spool: spans.jsonl grows, spans-TIME-PID.jsonl are whole ---- */

static void name_piece(char out[64])
{
    snprintf(out, 64, "spans-%020lld-%ld.jsonl", (long long)time_now_ns(), (long)getpid());
}

/* Names are made so that this is by time. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void script_list_pieces(const struct script_settings *s, struct script_pieces *out)
{
    DIR *dir = opendir(s->spool);
    for (struct dirent *d; dir && (d = readdir(dir)) != NULL;) {
        size_t n = strlen(d->d_name);
        if (!strncmp(d->d_name, "spans-", 6) && n > 12 && !strcmp(d->d_name + n - 6, ".jsonl"))
            vec_push(&out->list, mem_strdup(d->d_name));
    }
    if (dir)
        closedir(dir);
    if (out->list.n)
        qsort(out->list.v, out->list.n, sizeof *out->list.v, by_name);
}

void script_pieces_fini(struct script_pieces *p)
{
    for (size_t i = 0; i < p->list.n; i++)
        free(p->list.v[i]);
    free(p->list.v);
}

/* The oldest pieces go, so that with what still grows to one piece the limit holds. */
static void drop_oldest(const struct script_settings *s)
{
    struct script_pieces pieces = {0};
    char path[PATH_BYTES];
    struct stat st;
    uint64_t total = 0, dropped = 0, most = s->spool_bytes - s->spool_bytes / PIECES;
    script_list_pieces(s, &pieces);
    for (size_t i = 0; i < pieces.list.n; i++)
        if (path_in(s, pieces.list.v[i], path) && stat(path, &st) == 0)
            total += (uint64_t)st.st_size;
    for (size_t i = 0; i < pieces.list.n && total > most; i++)
        if (path_in(s, pieces.list.v[i], path) && stat(path, &st) == 0 && unlink(path) == 0) {
            total -= (uint64_t)st.st_size;
            dropped += (uint64_t)st.st_size;
        }
    if (dropped)
        script_note(s, "%.200s is full: the oldest %llu bytes of spans are lost; weft-span flush sends what waits",
            s->spool, (unsigned long long)dropped);
    script_pieces_fini(&pieces);
}

/* A piece ends; the lock is held. */
static void cut_piece(const struct script_settings *s)
{
    char from[PATH_BYTES], to[PATH_BYTES], name[64];
    name_piece(name);
    if (path_in(s, "spans.jsonl", from) && path_in(s, name, to))
        rename(from, to);
}

int script_spool_cut(const struct script_settings *s, int wait_ms, struct err *e)
{
    int held = lock(s, "lock", wait_ms);
    if (held < 0)
        return err_sys(e, "%s/lock", s->spool);
    cut_piece(s);
    close(held);
    return ERR_OK;
}

/* ---- adding ---- */

/* Appends the whole line, or leaves the file unchanged. */
static int append(int fd, const char *line, size_t n)
{
    struct stat st;
    char last = '\n';
    if (fstat(fd, &st))
        return -1;
    bool torn = st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n'; /* a machine went down */
    size_t done = 0;
    if (torn && write(fd, "\n", 1) != 1)
        return -1;
    while (done < n) {
        ssize_t written = write(fd, line + done, n - done);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            int problem = written ? errno : ENOSPC;
            if (ftruncate(fd, st.st_size))
                problem = errno;
            errno = problem;
            return -1;
        }
        done += (size_t)written;
    }
    return 0;
}

static int add_locked(const struct script_settings *s, const char *line, size_t n)
{
    char path[PATH_BYTES];
    struct stat st;
    if (!path_in(s, "spans.jsonl", path))
        return -1;
    if (stat(path, &st) == 0 && st.st_size > 0 && (uint64_t)st.st_size + n > s->spool_bytes / PIECES) {
        cut_piece(s);
        drop_oldest(s);
    }
    int fd = open(path, O_RDWR | O_APPEND | FILE_FLAGS, 0600);
    if (fd < 0)
        return -1;
    int rc = append(fd, line, n), problem = errno;
    close(fd);
    errno = problem;
    return rc;
}

/* Adds the line without the lock, as a separate piece that becomes visible once it is complete. */
static int add_alone(const struct script_settings *s, const char *line, size_t n)
{
    char name[64], temporary[80], from[PATH_BYTES], to[PATH_BYTES];
    name_piece(name);
    snprintf(temporary, sizeof temporary, "%s.new", name);
    if (!path_in(s, temporary, from) || !path_in(s, name, to))
        return -1;
    int fd = open(from, O_RDWR | O_EXCL | FILE_FLAGS, 0600);
    if (fd < 0)
        return -1;
    int rc = append(fd, line, n) || rename(from, to) ? -1 : 0, problem = errno;
    if (rc)
        unlink(from);
    close(fd);
    errno = problem;
    return rc;
}

int script_spool_add(const struct script_settings *s, const char *line, size_t n, struct err *e)
{
    int rc = script_spool_make(s, NULL, e);
    if (rc)
        return rc;
    if (n > s->spool_bytes / PIECES)
        return err_set(e, ERR_LIMIT, "%s may hold %llu bytes, which is too few: see WEFT_SPAN_SPOOL_BYTES", s->spool,
            (unsigned long long)s->spool_bytes);
    int held = lock(s, "lock", LOCK_WAIT_MS);
    rc = held >= 0 ? add_locked(s, line, n) : add_alone(s, line, n);
    int problem = errno;
    if (held >= 0)
        close(held);
    errno = problem;
    return rc ? err_sys(e, "%s", s->spool) : ERR_OK;
}

/* ---- tidying ---- */

static bool has_end(const char *s, const char *end)
{
    size_t n = strlen(s), n_end = strlen(end);
    return n > n_end && !strcmp(s + n - n_end, end);
}

/* Files of a part of the spool that end so ("": all) and were not touched for a day. */
static void tidy(const struct script_settings *s, const char *below, const char *end)
{
    char place[PATH_BYTES];
    struct stat st;
    DIR *dir = path_in(s, below, place) ? opendir(place) : NULL;
    for (struct dirent *d; dir && (d = readdir(dir)) != NULL;)
        if (has_end(d->d_name, end) && fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(st.st_mode) && st.st_mtim.tv_sec + DAY_S < time_now_ns() / 1000000000)
            unlinkat(dirfd(dir), d->d_name, 0);
    if (dir)
        closedir(dir);
}

void script_spool_tidy(const struct script_settings *s)
{
    tidy(s, ".", ".new");
    tidy(s, "open", ".new");
    tidy(s, "open", ".lost");
    tidy(s, "last", "");
}

/* ---- paused collectors: an empty file each, whose modification time is the end of the pause ---- */

static bool rest_path(const struct script_settings *s, char out[PATH_BYTES])
{
    char name[64];
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *c = s->endpoint; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
    snprintf(name, sizeof name, "rests-%016llx", (unsigned long long)hash);
    return path_in(s, name, out);
}

bool script_collector_rests(const struct script_settings *s)
{
    char path[PATH_BYTES];
    struct stat st;
    return rest_path(s, path) && lstat(path, &st) == 0 && st.st_mtim.tv_sec > time_now_ns() / 1000000000 &&
        st.st_mtim.tv_sec < time_now_ns() / 1000000000 + 3600; /* otherwise the clock was set back */
}

void script_let_collector_rest(const struct script_settings *s, int64_t ns)
{
    char path[PATH_BYTES];
    int64_t until_ns = time_now_ns() + (ns ? ns : (int64_t)REST_S * 1000000000);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = until_ns / 1000000000 + 1}};
    if (script_spool_make(s, NULL, NULL) || !rest_path(s, path))
        return;
    int fd = open(path, O_WRONLY | FILE_FLAGS, 0600);
    if (fd < 0)
        return;
    futimens(fd, times);
    close(fd);
}

void script_wake_collector(const struct script_settings *s)
{
    char path[PATH_BYTES];
    if (rest_path(s, path))
        unlink(path);
}

/* ---- delivery of one span ---- */

static void keep(const struct script_settings *s, const struct script_span *span)
{
    struct err e = {0};
    struct text line = {.fd = -1};
    script_write_otlp(span, &s->resource, &line);
    if (script_spool_add(s, line.v, line.n, &e))
        script_note(s, "a span is lost, it can neither be sent nor kept: %s", e.text);
    text_fini(&line);
}

bool script_deliver(const struct script_settings *s, const struct script_span *span)
{
    struct script_reply reply;
    struct text body = {.fd = -1};
    if (s->off || !(span->context.flags & SCRIPT_SAMPLED))
        return false;
    if (s->only_kept || s->unusable || script_collector_rests(s)) {
        keep(s, span);
        return false;
    }
    if (s->thrift)
        script_write_thrift(span, s->service, &s->resource, &body);
    else
        script_write_otlp(span, &s->resource, &body);
    enum script_sent sent = script_send(
        s, s->thrift ? "application/x-thrift" : "application/json", body.v, body.n, &reply);
    text_fini(&body);
    if (sent == SCRIPT_REFUSED)
        script_note(s, "the collector %.200s refuses a span: %s", s->endpoint, reply.why);
    if (sent != SCRIPT_LATER)
        return sent == SCRIPT_TAKEN;
    script_note(s,
        "the collector %.200s cannot be reached (%s): spans wait in %.200s; the next calls that reach it send them, or "
        "weft-span flush",
        s->endpoint, reply.why, s->spool);
    script_let_collector_rest(s, reply.retry_after_ns);
    keep(s, span);
    return false;
}
