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

enum { LOCK_WAIT_MS = 1000, REST_S = 30, SLOW_S = 300, DAY_S = 24 * 3600, PIECES = 8, PATH_BYTES = 4096 };

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

/* ---- files of the spool: spans.HASH.jsonl grow, pieces spans-TIME-PID-HASH.jsonl are whole. HASH is of the endpoint
 * that the spans were meant for; without an endpoint it is missing, and so is its separator. ---- */

enum { NAME_BYTES = 96, HASH_BYTES = 24 };
#define END ".jsonl"

static uint64_t hash_endpoint(const struct script_settings *s)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *c = s->endpoint; *c; c++)
        hash = (hash ^ (uint8_t)*c) * 0x100000001b3u;
    return hash;
}

/* "HASH", or "" without an endpoint. */
static void read_hash(const struct script_settings *s, char out[HASH_BYTES])
{
    *out = '\0';
    if (!s->only_kept)
        snprintf(out, HASH_BYTES, "%016llx", (unsigned long long)hash_endpoint(s));
}

static void name_piece(const char *hash, char out[NAME_BYTES])
{
    snprintf(
        out, NAME_BYTES, "spans-%020lld-%ld%s%s" END, (long long)time_now_ns(), (long)getpid(), *hash ? "-" : "", hash);
}

static void name_growing(const char *hash, char out[NAME_BYTES])
{
    snprintf(out, NAME_BYTES, "spans%s%s" END, *hash ? "." : "", hash);
}

static bool has_end(const char *s, const char *end)
{
    size_t n = strlen(s), n_end = strlen(end);
    return n >= n_end && !strcmp(s + n - n_end, end);
}

/* Names are made so that this is by time. */
static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names that begin and end so. */
static void list_files(const struct script_settings *s, const char *begin, const char *end, struct script_pieces *out)
{
    DIR *dir = opendir(s->spool);
    for (struct dirent *d; dir && (d = readdir(dir)) != NULL;)
        if (!strncmp(d->d_name, begin, strlen(begin)) && has_end(d->d_name + strlen(begin) - 1, end))
            vec_push(&out->list, mem_strdup(d->d_name));
    if (dir)
        closedir(dir);
    if (out->list.n)
        qsort(out->list.v, out->list.n, sizeof *out->list.v, by_name);
}

void script_list_pieces(const struct script_settings *s, bool all, struct script_pieces *out)
{
    char hash[HASH_BYTES], end[NAME_BYTES] = END;
    read_hash(s, hash);
    if (!all && *hash)
        snprintf(end, sizeof end, "-%s" END, hash);
    list_files(s, "spans-", end, out);
}

void script_pieces_fini(struct script_pieces *p)
{
    for (size_t i = 0; i < p->list.n; i++)
        free(p->list.v[i]);
    free(p->list.v);
}

/* Drops the oldest pieces, and then what grows for other endpoints, so that with this endpoint's growing file, of the
 * size of a piece, the limit holds. The lock is held. */
static void drop_oldest(const struct script_settings *s, const char *growing)
{
    struct script_pieces files = {0};
    char path[PATH_BYTES];
    struct stat st;
    uint64_t total = 0, dropped = 0, most = s->spool_bytes - s->spool_bytes / PIECES;
    list_files(s, "spans-", END, &files);
    list_files(s, "spans.", END, &files); /* sorts after the pieces: '-' < '.' */
    for (size_t i = 0; i < files.list.n; i++)
        if (strcmp(files.list.v[i], growing) != 0 && path_in(s, files.list.v[i], path) && stat(path, &st) == 0)
            total += (uint64_t)st.st_size;
    for (size_t i = 0; i < files.list.n && total > most; i++)
        if (strcmp(files.list.v[i], growing) != 0 && path_in(s, files.list.v[i], path) && stat(path, &st) == 0 &&
            unlink(path) == 0) {
            total -= (uint64_t)st.st_size;
            dropped += (uint64_t)st.st_size;
        }
    if (dropped)
        script_note(s, "%.200s is full: the oldest %llu bytes of spans are lost; weft-span flush sends what waits",
            s->spool, (unsigned long long)dropped);
    script_pieces_fini(&files);
}

static bool several_grow(const struct script_settings *s)
{
    struct script_pieces growing = {0};
    list_files(s, "spans.", END, &growing);
    const bool several = growing.list.n > 1;
    script_pieces_fini(&growing);
    return several;
}

/* A piece ends; the lock is held. */
static void cut_piece(const struct script_settings *s, const char *growing)
{
    char from[PATH_BYTES], to[PATH_BYTES], name[NAME_BYTES], hash[NAME_BYTES] = "";
    const char *begin = growing + sizeof "spans." - 1;
    if (strlen(begin) > sizeof END - 1)
        snprintf(hash, sizeof hash, "%.*s", (int)(strlen(begin) - (sizeof END - 1)), begin);
    hash[HASH_BYTES - 1] = '\0';
    name_piece(hash, name);
    if (path_in(s, growing, from) && path_in(s, name, to))
        rename(from, to);
}

bool script_spool_grows(const struct script_settings *s)
{
    char path[PATH_BYTES], hash[HASH_BYTES], name[NAME_BYTES];
    struct stat st;
    read_hash(s, hash);
    name_growing(hash, name);
    return path_in(s, name, path) && stat(path, &st) == 0 && st.st_size > 0;
}

int script_spool_cut(const struct script_settings *s, bool all, int wait_ms, struct err *e)
{
    struct script_pieces growing = {0};
    char hash[HASH_BYTES], name[NAME_BYTES];
    int held = lock(s, "lock", wait_ms);
    if (held < 0)
        return err_sys(e, "%s/lock", s->spool);
    read_hash(s, hash);
    name_growing(hash, name);
    if (all)
        list_files(s, "spans.", END, &growing);
    else
        cut_piece(s, name);
    for (size_t i = 0; i < growing.list.n; i++)
        cut_piece(s, growing.list.v[i]);
    script_pieces_fini(&growing);
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
    char path[PATH_BYTES], hash[HASH_BYTES], growing[NAME_BYTES];
    struct stat st;
    read_hash(s, hash);
    name_growing(hash, growing);
    if (!path_in(s, growing, path))
        return -1;
    bool fresh = stat(path, &st) != 0;
    if (!fresh && st.st_size > 0 && (uint64_t)st.st_size + n > s->spool_bytes / PIECES) {
        cut_piece(s, growing);
        fresh = true;
    }
    if (fresh || several_grow(s))
        drop_oldest(s, growing);
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
    char name[NAME_BYTES], temporary[NAME_BYTES + 8], hash[HASH_BYTES], from[PATH_BYTES], to[PATH_BYTES];
    read_hash(s, hash);
    name_piece(hash, name);
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

/* ---- pauses of a collector: an empty file each, whose modification time is the end of the pause ---- */

static bool pause_path(const struct script_settings *s, const char *which, char out[PATH_BYTES])
{
    char name[64];
    snprintf(name, sizeof name, "%s-%016llx", which, (unsigned long long)hash_endpoint(s));
    return path_in(s, name, out);
}

static bool is_paused(const struct script_settings *s, const char *which)
{
    char path[PATH_BYTES];
    struct stat st;
    return pause_path(s, which, path) && lstat(path, &st) == 0 && st.st_mtim.tv_sec > time_now_ns() / 1000000000 &&
        st.st_mtim.tv_sec < time_now_ns() / 1000000000 + 3600; /* else the clock was set back */
}

static void begin_pause(const struct script_settings *s, const char *which, int64_t ns)
{
    char path[PATH_BYTES];
    int64_t until_ns = time_now_ns() + ns;
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = until_ns / 1000000000 + 1}};
    if (script_spool_make(s, NULL, NULL) || !pause_path(s, which, path))
        return;
    int fd = open(path, O_WRONLY | FILE_FLAGS, 0600);
    if (fd < 0)
        return;
    futimens(fd, times);
    close(fd);
}

bool script_collector_rests(const struct script_settings *s)
{
    return is_paused(s, "rests");
}

void script_let_collector_rest(const struct script_settings *s, int64_t ns)
{
    begin_pause(s, "rests", ns ? ns : (int64_t)REST_S * 1000000000);
}

bool script_collector_is_slow(const struct script_settings *s)
{
    return is_paused(s, "slow");
}

void script_note_slow_collector(const struct script_settings *s)
{
    begin_pause(s, "slow", (int64_t)SLOW_S * 1000000000);
}

void script_wake_collector(const struct script_settings *s)
{
    char path[PATH_BYTES];
    if (pause_path(s, "rests", path))
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
