/* SPDX-License-Identifier: MIT */
#include "span/log.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/order.h"

enum { MOST_FILE_BYTES = 64 << 20, MOST_RECORD_BYTES = 1 << 30, HEAD_BYTES = 16 };
static const char magic[16] = "weft spans log 1";

/* Head of each record; little-endian, as are all machines that weft runs on. */
struct head {
    uint32_t bytes, check;
    int64_t came_ns;
};
_Static_assert(sizeof(struct head) == HEAD_BYTES, "as docs/formats/spans.md says");

/* Records written and synced together. The last reader frees it. */
struct group {
    struct text bytes;
    unsigned readers;
    bool done;
    int rc;
    struct err why;
};

struct log {
    char *directory;
    int lock_fd, fd; /* fd: current file, or -1 after a failure */
    VEC(uint64_t) files;
    pthread_mutex_t lock; /* guards the fields below, and files */
    pthread_cond_t change;
    struct group *filling; /* NULL: none */
    bool writing, stopped;
    struct log_position end;
    uint64_t behind_bytes;
    struct log_position kept, held;       /* positions last set by log_done and log_hold */
    uint64_t held_most_bytes, lost_bytes; /* 0: no files are held */
};

static char *path_of(const struct log *l, uint64_t file)
{
    return mem_printf("%s/%016" PRIx64 ".log", l->directory, file);
}

static uint32_t check_of(const struct head *h, const void *bytes, size_t n)
{
    const struct map_piece pieces[] = {{&h->bytes, sizeof h->bytes}, {&h->came_ns, sizeof h->came_ns}, {bytes, n}};
    uint64_t hash[2];
    map_hash_pieces(pieces, 3, hash);
    return (uint32_t)hash[0];
}

static int write_whole(int fd, const char *data, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t w = write(fd, data + done, n - done);
        if (w < 0 && errno != EINTR)
            return -1;
        done += w > 0 ? (size_t)w : 0;
    }
    return 0;
}

/* ---- files ---- */

static int begin_file(struct log *l, struct err *e)
{
    uint64_t number = l->files.n ? l->files.v[l->files.n - 1] + 1 : 1;
    char *path = path_of(l, number);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    int rc = 0;
    if (fd < 0 || write_whole(fd, magic, sizeof magic) || fsync(fd))
        rc = err_sys(e, "%s", path);
    if (!rc)
        rc = file_sync_dir(l->directory, e);
    if (rc) {
        if (fd >= 0)
            close(fd);
        unlink(path);
    } else {
        if (l->fd >= 0)
            close(l->fd);
        l->fd = fd;
        vec_push(&l->files, number);
        l->end = (struct log_position){number, sizeof magic};
    }
    free(path);
    return rc;
}

static int list_files(struct log *l, struct err *e)
{
    DIR *d = opendir(l->directory);
    if (!d)
        return err_sys(e, "%s", l->directory);
    for (struct dirent *entry; (entry = readdir(d));) {
        uint64_t number;
        int n = 0;
        if (sscanf(entry->d_name, "%16" SCNx64 ".log%n", &number, &n) == 1 && n && !entry->d_name[n])
            vec_push(&l->files, number);
    }
    closedir(d);
    if (l->files.n)
        qsort(l->files.v, l->files.n, sizeof *l->files.v, order_u64);
    for (size_t i = 0; i < l->files.n; i++) {
        char *path = path_of(l, l->files.v[i]);
        struct stat st;
        if (!stat(path, &st))
            l->behind_bytes += (uint64_t)st.st_size;
        free(path);
    }
    return 0;
}

static int lock_directory(struct log *l, struct err *e)
{
    char *path = mem_printf("%s/lock", l->directory);
    int rc = 0;
    l->lock_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (l->lock_fd < 0)
        rc = err_sys(e, "%s", path);
    else if (flock(l->lock_fd, LOCK_EX | LOCK_NB))
        rc = err_set(
            e, ERR_BUSY, "%s: another collector keeps its spans there; stop it, or give another --store", l->directory);
    free(path);
    return rc;
}

int log_open(const char *directory, struct log **out, struct err *e)
{
    struct log *l = mem_zalloc(sizeof *l);
    pthread_condattr_t monotonic;
    l->directory = mem_strdup(directory);
    l->lock_fd = l->fd = -1;
    pthread_mutex_init(&l->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&l->change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    int rc = file_make_dirs(directory, e);
    if (!rc)
        rc = lock_directory(l, e);
    if (!rc)
        rc = list_files(l, e);
    if (!rc)
        rc = begin_file(l, e);
    if (rc)
        log_close(l);
    else
        *out = l;
    return rc;
}

void log_close(struct log *l)
{
    if (!l)
        return;
    if (l->fd >= 0)
        close(l->fd);
    if (l->lock_fd >= 0)
        close(l->lock_fd);
    vec_free(&l->files);
    pthread_mutex_destroy(&l->lock);
    pthread_cond_destroy(&l->change);
    free(l->directory);
    free(l);
}

/* ---- writing ---- */

/* Gives up a file after a failure. Its end is unknown, and a later sync does not report what a failed one lost. So the
 * file is cut to its valid part and closed. */
static void leave_file(struct log *l)
{
    int cut = ftruncate(l->fd, (off_t)l->end.offset);
    (void)cut; /* an unacknowledged record that remains is harmless: it is sent again and recognised */
    close(l->fd);
    l->fd = -1;
}

/* Writes without the lock; the caller has set `writing`. */
static void write_group(struct log *l, struct group *g)
{
    if (l->fd < 0 || l->end.offset > MOST_FILE_BYTES) {
        pthread_mutex_lock(&l->lock);
        g->rc = begin_file(l, &g->why);
        pthread_mutex_unlock(&l->lock);
        if (g->rc)
            return;
    }
    if (write_whole(l->fd, g->bytes.v, g->bytes.n) || fdatasync(l->fd)) {
        g->rc = err_sys(&g->why, "%s: spans cannot be written", l->directory);
        leave_file(l);
    }
}

static void finish_group(struct log *l, struct group *g)
{
    g->done = true;
    if (!g->rc) {
        l->end.offset += g->bytes.n;
        l->behind_bytes += g->bytes.n;
    }
    l->writing = false;
    pthread_cond_broadcast(&l->change);
}

static struct group *join_group(struct log *l, const struct head *h, const void *records, size_t n)
{
    if (!l->filling) {
        l->filling = mem_zalloc(sizeof *l->filling);
        l->filling->bytes.fd = -1;
    }
    text_put(&l->filling->bytes, (const char *)h, sizeof *h);
    text_put(&l->filling->bytes, records, n);
    l->filling->readers++;
    return l->filling;
}

int log_append(struct log *l, const void *records, size_t n, int64_t came_ns, uint64_t most_behind, struct err *e)
{
    struct head h = {.bytes = (uint32_t)n, .came_ns = came_ns};
    int rc = 0;
    if (n > MOST_RECORD_BYTES)
        return err_set(e, ERR_LIMIT, "too much at once");
    h.check = check_of(&h, records, n);
    pthread_mutex_lock(&l->lock);
    if (l->stopped || l->behind_bytes > most_behind) {
        rc = err_set(
            e, ERR_BUSY, l->stopped ? "the collector stops" : "the database is too far behind: try again later");
        pthread_mutex_unlock(&l->lock);
        return rc;
    }
    struct group *g = join_group(l, &h, records, n);
    while (!g->done) {
        if (l->writing) {
            pthread_cond_wait(&l->change, &l->lock);
            continue;
        }
        l->writing = true;
        l->filling = NULL;
        pthread_mutex_unlock(&l->lock);
        write_group(l, g);
        pthread_mutex_lock(&l->lock);
        finish_group(l, g);
    }
    rc = g->rc;
    if (rc && e)
        *e = g->why;
    bool last = !--g->readers;
    pthread_mutex_unlock(&l->lock);
    if (last) {
        text_fini(&g->bytes);
        free(g);
    }
    return rc;
}

/* ---- reading ---- */

uint64_t log_behind(struct log *l)
{
    pthread_mutex_lock(&l->lock);
    uint64_t bytes = l->behind_bytes;
    pthread_mutex_unlock(&l->lock);
    return bytes;
}

struct log_position log_end(struct log *l)
{
    pthread_mutex_lock(&l->lock);
    struct log_position end = l->end;
    pthread_mutex_unlock(&l->lock);
    return end;
}

void log_stop(struct log *l)
{
    pthread_mutex_lock(&l->lock);
    l->stopped = true;
    pthread_cond_broadcast(&l->change);
    pthread_mutex_unlock(&l->lock);
}

/* Finds the first file from number `from` on; false: none. Call with the lock held. */
static bool file_from(struct log *l, uint64_t from, uint64_t *out)
{
    for (size_t i = 0; i < l->files.n; i++)
        if (l->files.v[i] >= from) {
            *out = l->files.v[i];
            return true;
        }
    return false;
}

void log_reader_close(struct log_reader *r)
{
    if (r->fd >= 0)
        close(r->fd);
    *r = LOG_READER;
}

static int open_for_reading(struct log *l, struct log_reader *r, uint64_t file, struct err *e)
{
    if (r->fd >= 0 && r->file == file)
        return 0;
    log_reader_close(r);
    char *path = path_of(l, file);
    *r = (struct log_reader){open(path, O_RDONLY | O_CLOEXEC), file};
    int rc = r->fd < 0 ? err_sys(e, "%s", path) : 0;
    free(path);
    return rc;
}

static bool read_at(int fd, void *out, size_t n, uint64_t offset)
{
    for (size_t done = 0; done < n;) {
        ssize_t r = pread(fd, (char *)out + done, n - done, (off_t)(offset + done));
        if (r == 0 || (r < 0 && errno != EINTR))
            return false;
        done += r > 0 ? (size_t)r : 0;
    }
    return true;
}

/* Reads the record at `at`, which lies before `limit`. Returns false if it is not whole. */
static bool read_record(
    struct log_reader *r, struct log_position *at, uint64_t limit, struct text *out, int64_t *came_ns)
{
    struct head h;
    if (limit < at->offset || limit - at->offset < sizeof h || !read_at(r->fd, &h, sizeof h, at->offset) ||
        h.bytes > limit - at->offset - sizeof h)
        return false;
    out->n = 0;
    if (!text_try_grow(out, h.bytes + 1) || !read_at(r->fd, out->v, h.bytes, at->offset + sizeof h) ||
        check_of(&h, out->v, h.bytes) != h.check)
        return false;
    out->n = h.bytes;
    *came_ns = h.came_ns;
    at->offset += sizeof h + h.bytes;
    return true;
}

static void wait_for_more(struct log *l, int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    until.tv_sec += ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&l->change, &l->lock, &until);
}

/* Finds where to read: the file of `at` or the next one, and its valid size. Returns false if there is nothing. */
static bool find_more(struct log *l, struct log_position *at, uint64_t *limit)
{
    uint64_t file;
    if (!file_from(l, at->file, &file))
        return false;
    if (file != at->file || at->offset < sizeof magic)
        *at = (struct log_position){file, sizeof magic};
    *limit = file == l->end.file ? l->end.offset : UINT64_MAX;
    return file != l->end.file || at->offset < l->end.offset;
}

int log_next(struct log *l, struct log_reader *r, struct log_position *at, int wait_ms, struct text *records,
    int64_t *came_ns, struct err *e)
{
    for (;;) {
        uint64_t limit;
        struct stat st;
        pthread_mutex_lock(&l->lock);
        bool more = find_more(l, at, &limit);
        if (!more && wait_ms && !l->stopped) {
            wait_for_more(l, wait_ms);
            wait_ms = 0;
            more = find_more(l, at, &limit);
        }
        pthread_mutex_unlock(&l->lock);
        if (!more)
            return 0;
        int rc = open_for_reading(l, r, at->file, e);
        if (rc)
            return rc;
        if (limit == UINT64_MAX)
            limit = fstat(r->fd, &st) ? 0 : (uint64_t)st.st_size;
        if (read_record(r, at, limit, records, came_ns))
            return 1;
        if (at->file == log_end(l).file)
            return 0;
        *at = (struct log_position){at->file + 1, 0};
    }
}

static uint64_t file_bytes(const struct log *l, uint64_t file)
{
    char *path = path_of(l, file);
    struct stat st;
    uint64_t bytes = file == l->end.file ? l->end.offset : stat(path, &st) ? 0 : (uint64_t)st.st_size;
    free(path);
    return bytes;
}

/* Deletes files that nobody reads any more, or that exceed the limit of held ones. Call with the lock held. */
static void trim(struct log *l)
{
    uint64_t held = 0;
    size_t gone = 0;
    for (size_t i = 0; l->held_most_bytes && i < l->files.n; i++)
        held += l->files.v[i] >= l->held.file ? file_bytes(l, l->files.v[i]) : 0;
    for (; gone < l->files.n && l->files.v[gone] < l->kept.file && l->files.v[gone] != l->end.file; gone++) {
        uint64_t file = l->files.v[gone], bytes = file_bytes(l, file);
        if (l->held_most_bytes && file >= l->held.file) {
            if (held <= l->held_most_bytes)
                break;
            held -= bytes;
            uint64_t from = file == l->held.file && l->held.offset > sizeof magic ? l->held.offset : sizeof magic;
            l->lost_bytes += bytes > from ? bytes - from : 0;
        }
        char *path = path_of(l, file);
        unlink(path);
        free(path);
    }
    l->files.n -= gone;
    if (l->files.n && gone)
        memmove(l->files.v, l->files.v + gone, l->files.n * sizeof *l->files.v);
}

void log_hold(struct log *l, const struct log_position *at, uint64_t most_bytes)
{
    pthread_mutex_lock(&l->lock);
    l->held = *at;
    l->held_most_bytes = most_bytes;
    trim(l);
    pthread_mutex_unlock(&l->lock);
}

uint64_t log_lost(struct log *l)
{
    pthread_mutex_lock(&l->lock);
    uint64_t bytes = l->lost_bytes;
    l->lost_bytes = 0;
    pthread_mutex_unlock(&l->lock);
    return bytes;
}

void log_done(struct log *l, const struct log_position *at, const struct log_position *kept)
{
    pthread_mutex_lock(&l->lock);
    l->kept = *kept;
    trim(l);
    l->behind_bytes = 0;
    for (size_t i = 0; i < l->files.n; i++) {
        uint64_t file = l->files.v[i], bytes = file_bytes(l, file);
        uint64_t read = file < at->file ? bytes : file > at->file ? 0 : at->offset < bytes ? at->offset : bytes;
        l->behind_bytes += bytes - read;
    }
    pthread_mutex_unlock(&l->lock);
}
