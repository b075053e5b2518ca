/* SPDX-License-Identifier: MIT */
/* Fetches traces. Received data stays on disk under a name that nobody opens, until all of it is there and has the sums
 * of the sender. An interrupted transfer continues there. */
#include "place/receiver.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/time.h"
#include "bus/bus.h"

#define PATIENCE_NS (10 * NS_PER_S) /* timeout of one answer */
#define GIVE_UP_NS (60 * NS_PER_S)  /* timeout without any answer */
#define SUM_BYTES_PER_S (20 << 20)  /* speed of the slowest disk that is waited for */
#define LIST ".files"               /* list of future files, in the directory that is being filled */
enum { MOST_JOBS = 256, PAUSE_US = 250000, MOST_LIST = 512 << 20 };

struct job {
    struct move_trace trace;
    char *from;
    struct place_move_progress progress; /* text: `why` */
    struct err why;
    struct job *next;
};

struct place_receiver {
    struct place_receiver_options o;
    pthread_t thread;
    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t news;
    struct job *jobs; /* all questions, in their order */
    bool stop;
};

static bool stopped(struct place_receiver *t)
{
    pthread_mutex_lock(&t->lock);
    bool stop = t->stop;
    pthread_mutex_unlock(&t->lock);
    return stop;
}

static void set_state(
    struct place_receiver *t, struct job *j, enum place_move_state state, uint64_t done, uint64_t total)
{
    pthread_mutex_lock(&t->lock);
    j->progress.state = state;
    j->progress.done = done;
    j->progress.total = total;
    pthread_mutex_unlock(&t->lock);
}

/* ---- asking ---- */

static bool may_come_back(int code)
{
    return code == ERR_NOTFOUND || code == ERR_TIMEOUT || code == ERR_BUSY || code == ERR_CANCELLED || code == ERR_IO;
}

/* Asks until there is an answer: the node, or the broker, may be starting again. */
static int ask(struct place_receiver *t, const struct job *j, const struct text *q, int64_t patience_ns,
    struct bus_reply *r, struct err *e)
{
    char subject[CLUSTER_SUBJECT];
    int rc = cluster_subject_of(t->o.cluster, j->from, subject, e);
    for (int64_t begin = time_monotonic_ns(), waited = 0; !rc; usleep(PAUSE_US)) {
        rc = bus_ask(t->o.bus, subject, q->v, q->n, time_monotonic_ns() + patience_ns, r);
        waited = time_monotonic_ns() - begin;
        if (!rc || !may_come_back(rc) || waited > GIVE_UP_NS || stopped(t))
            break;
        bus_reply_free(r);
        rc = 0;
    }
    if (rc && stopped(t))
        return err_set(e, ERR_CANCELLED, "the node is leaving");
    return rc ? err_set(e, rc, "node %s: %s", j->from, r->text) : 0;
}

static int ask_files(struct place_receiver *t, const struct job *j, struct arena *a, struct move_files *files,
    struct bus_reply *r, struct err *e)
{
    struct text q = {.fd = -1};
    cluster_question_begin(&q, CLUSTER_FILES);
    place_move_trace_write(j->trace, &q);
    int rc = ask(t, j, &q, PATIENCE_NS, r, e);
    if (!rc)
        rc = place_move_files_read(a, r->data, r->n, files, e);
    if (!rc && !files->n)
        rc = err_set(e, ERR_FORMAT, "node %s: a trace without files", j->from);
    if (!rc && (files->begin < j->trace.begin || files->end > j->trace.end))
        rc = err_set(e, ERR_FORMAT, "node %s: another part of a trace than was asked for", j->from);
    text_fini(&q);
    return rc;
}

static int ask_piece(struct place_receiver *t, const struct job *j, enum cluster_question kind,
    const struct move_piece *p, struct bus_reply *r, struct err *e)
{
    struct text q = {.fd = -1};
    int64_t patience = PATIENCE_NS + (kind == CLUSTER_SUM ? (int64_t)(p->bytes / SUM_BYTES_PER_S) * NS_PER_S : 0);
    cluster_question_begin(&q, kind);
    place_move_piece_write(p, &q);
    int rc = ask(t, j, &q, patience, r, e);
    if (!rc && r->n != MOVE_SUM + p->length)
        rc = err_set(e, ERR_FORMAT, "node %s: another piece of a file than was asked for", j->from);
    text_fini(&q);
    return rc;
}

/* ---- a file ---- */

struct fetch {
    struct place_receiver *receiver;
    struct job *job;
    const char *dir;
    const struct move_files *files;
    uint64_t done; /* bytes of all files */
};

static struct move_piece piece_of(const struct fetch *f, size_t file)
{
    const struct move_file *m = &f->files->v[file];
    return (struct move_piece){f->job->trace, file, m->bytes, m->modified_ns, 0, 0};
}

/* ERR_LIMIT: the disk is full, which the caller makes room for. */
static int write_all(int fd, const uint8_t *v, size_t n, uint64_t at, struct err *e)
{
    while (n) {
        ssize_t put = pwrite(fd, v, n, (off_t)at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return errno == ENOSPC || errno == EDQUOT || errno == EFBIG
                ? err_set(e, ERR_LIMIT, "the disk is full: what had come of the trace is removed again")
                : err_sys(e, "writing a trace that arrives");
        v += put;
        n -= (size_t)put;
        at += (uint64_t)put;
    }
    return 0;
}

/* Fetches the rest behind the present data. */
static int fetch_rest(struct fetch *f, size_t file, int fd, struct err *e)
{
    struct stat st;
    struct move_piece p = piece_of(f, file);
    int rc = fstat(fd, &st) ? err_sys(e, "%s", f->files->v[file].path) : 0;
    if (!rc && (uint64_t)st.st_size > p.bytes)
        rc = ftruncate(fd, 0) ? err_sys(e, "%s", f->files->v[file].path) : 0;
    else
        p.offset = rc ? 0 : (uint64_t)st.st_size;
    f->done += p.offset;
    while (!rc && p.offset < p.bytes) {
        struct bus_reply r;
        uint64_t sum[2] = {0}, expected[2];
        p.length = p.bytes - p.offset < MOVE_PIECE ? p.bytes - p.offset : MOVE_PIECE;
        rc = ask_piece(f->receiver, f->job, CLUSTER_READ, &p, &r, e);
        if (!rc) {
            const uint8_t *bytes = r.data;
            memcpy(expected, bytes, MOVE_SUM);
            place_move_sum(sum, bytes + MOVE_SUM, p.length);
            rc = memcmp(sum, expected, MOVE_SUM) ? err_set(e, ERR_FORMAT, "node %s: a damaged piece", f->job->from)
                                                 : write_all(fd, bytes + MOVE_SUM, p.length, p.offset, e);
        }
        bus_reply_free(&r);
        p.offset += p.length;
        f->done += rc ? 0 : p.length;
        set_state(f->receiver, f->job, PLACE_MOVE_COPYING, f->done, f->files->bytes);
    }
    return rc;
}

static char *path_of(const struct fetch *f, size_t file)
{
    return mem_printf("%s/%s", f->dir, f->files->v[file].path);
}

static int open_file(const struct fetch *f, size_t file, int *fd, struct err *e)
{
    char *path = path_of(f, file), *slash = strrchr(path, '/');
    *slash = 0;
    int rc = file_make_dirs(path, e);
    *slash = '/';
    *fd = rc ? -1 : open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (!rc && *fd < 0)
        rc = err_sys(e, "%s", path);
    free(path);
    return rc;
}

/* Compares the sums of the file on disk and at the sender. If they are equal, the file gets the sender's time, which is
 * part of a trace's identity. */
static int check_file(struct fetch *f, size_t file, int fd, bool *same, struct err *e)
{
    uint64_t own[2];
    struct bus_reply r = {0};
    struct move_piece p = piece_of(f, file);
    const struct timespec modified = {(time_t)(p.modified_ns / NS_PER_S), (long)(p.modified_ns % NS_PER_S)};
    int rc = place_move_sum_file(fd, 0, p.bytes, own, e);
    if (!rc)
        rc = ask_piece(f->receiver, f->job, CLUSTER_SUM, &p, &r, e);
    *same = !rc && !memcmp(r.data, own, MOVE_SUM);
    if (!rc && *same && (futimens(fd, (const struct timespec[]){modified, modified}) || fsync(fd)))
        rc = err_sys(e, "%s", f->files->v[file].path);
    bus_reply_free(&r);
    return rc;
}

/* Checks a file. The rest of an interrupted copy may be damaged: then it is fetched once more from the beginning. */
static int check_or_fetch_again(struct fetch *f, size_t file, struct err *e)
{
    int fd, rc = open_file(f, file, &fd, e);
    bool same = false;
    for (int round = 0; round < 2 && !same && !rc; round++) {
        if (round && ftruncate(fd, 0))
            rc = err_sys(e, "%s", f->files->v[file].path);
        if (!rc && round)
            rc = fetch_rest(f, file, fd, e);
        if (!rc)
            rc = check_file(f, file, fd, &same, e);
    }
    if (!rc && !same)
        rc = err_set(e, ERR_FORMAT, "%s: what arrives is not what node %s has", f->files->v[file].path, f->job->from);
    if (fd >= 0)
        close(fd);
    return rc;
}

static int fetch_files(struct fetch *f, struct err *e)
{
    int rc = 0;
    for (size_t i = 0; i < f->files->n && !rc; i++) {
        int fd;
        rc = open_file(f, i, &fd, e);
        if (!rc)
            rc = fetch_rest(f, i, fd, e);
        if (fd >= 0)
            close(fd);
    }
    uint64_t checked = 0;
    for (size_t i = 0; i < f->files->n && !rc; i++) {
        set_state(f->receiver, f->job, PLACE_MOVE_CHECKING, checked, f->files->bytes);
        rc = check_or_fetch_again(f, i, e);
        checked += f->files->v[i].bytes;
    }
    return rc;
}

/* Syncs directories before the trace is reported: of each file those above it, except those of the file before, as
 * paths are sorted. */
static int sync_dirs(const struct fetch *f, struct err *e)
{
    size_t root = strlen(f->dir);
    char *last = mem_strdup("");
    int rc = 0;
    for (size_t i = 0; i < f->files->n && !rc; i++) {
        char *path = path_of(f, i);
        *strrchr(path, '/') = 0;
        for (size_t n = strlen(path); n > root && !rc && (strncmp(last, path, n) != 0 || last[n] != '/');
             n = strlen(path)) {
            rc = file_sync_dir(path, e);
            *strrchr(path, '/') = 0;
        }
        free(last);
        last = path_of(f, i);
        free(path);
    }
    free(last);
    return rc;
}

/* ---- a trace ---- */

/* Stores the list of files. Data received for another list is useless, and dropped. */
static int keep_list(const struct fetch *f, const struct bus_reply *list, struct err *e)
{
    char *path = mem_printf("%s/" LIST, f->dir), *before = NULL;
    size_t n;
    const struct place_inbox *v = f->receiver->o.inbox;
    bool same = !file_read(path, MOST_LIST, &before, &n, NULL) && n == list->n && !memcmp(before, list->data, n);
    if (!same)
        place_inbox_drop(v, f->job->trace);
    int rc = same ? 0 : file_make_dirs(f->dir, e);
    if (!rc && !same)
        rc = file_write(path, list->data, list->n, e);
    free(before);
    free(path);
    return rc;
}

/* Stores are made of it, too: half as much again. What has come already takes its room. */
static int check_room(const struct fetch *f, struct err *e)
{
    uint64_t have = 0, room = place_inbox_room(f->receiver->o.inbox);
    for (size_t i = 0; i < f->files->n; i++) {
        char *path = path_of(f, i);
        struct stat st;
        have += !stat(path, &st) && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
        free(path);
    }
    uint64_t need = f->files->bytes + f->files->bytes / 2;
    if (need <= have || need - have <= room)
        return 0;
    return err_set(e, ERR_LIMIT,
        "there is no room: the trace and its stores take %llu MB more, and %llu MB are left (--receive-limit, or the "
        "disk)",
        (unsigned long long)((need - have) >> 20) + 1, (unsigned long long)(room >> 20));
}

/* Refuses an excerpt where the whole trace is: only a whole trace may replace it. */
static int check_use(const struct fetch *f, struct err *e)
{
    bool excerpt = f->files->begin > INT64_MIN || f->files->end < INT64_MAX;
    return excerpt && place_inbox_has_all(f->receiver->o.inbox, f->job->trace.key)
        ? err_set(e, ERR_ARG, "it has all of that trace")
        : 0;
}

static int fetch(struct place_receiver *t, struct job *j, struct err *e)
{
    struct arena a = {0};
    struct bus_reply list = {0};
    struct move_files files;
    const struct place_inbox *v = t->o.inbox;
    struct fetch f = {t, j, place_inbox_path(v, &a, j->trace), &files, 0};
    place_inbox_drop_others(v, j->trace);
    if (place_inbox_has(v, j->trace))
        return arena_fini(&a), 0;
    int rc = ask_files(t, j, &a, &files, &list, e);
    if (!rc)
        rc = check_use(&f, e);
    if (!rc)
        rc = keep_list(&f, &list, e);
    if (!rc)
        rc = check_room(&f, e);
    if (!rc)
        rc = fetch_files(&f, e);
    if (!rc)
        rc = sync_dirs(&f, e);
    if (!rc)
        rc = place_inbox_finish(v, j->trace, &files, j->from, e);
    if (rc == ERR_LIMIT)
        place_inbox_drop(v, j->trace);
    bus_reply_free(&list);
    arena_fini(&a);
    return rc;
}

static void run_job(struct place_receiver *t, struct job *j)
{
    struct err e = {0};
    set_state(t, j, PLACE_MOVE_COPYING, 0, 0);
    int rc = fetch(t, j, &e);
    pthread_mutex_lock(&t->lock);
    j->why = e;
    j->progress.state = rc ? PLACE_MOVE_FAILED : PLACE_MOVE_OPENING;
    pthread_mutex_unlock(&t->lock);
    if (!rc)
        t->o.received(t->o.arg);
}

static void *run(void *arg)
{
    struct place_receiver *t = arg;
    pthread_mutex_lock(&t->lock);
    while (!t->stop) {
        struct job *j = t->jobs;
        while (j && j->progress.state != PLACE_MOVE_WAITING)
            j = j->next;
        if (!j) {
            pthread_cond_wait(&t->news, &t->lock);
            continue;
        }
        pthread_mutex_unlock(&t->lock);
        run_job(t, j);
        pthread_mutex_lock(&t->lock);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

/* ---- questions ---- */

static bool has_ended(const struct job *j)
{
    return j->progress.state == PLACE_MOVE_FAILED || j->progress.state == PLACE_MOVE_OPENING;
}

static void forget_ended(struct place_receiver *t)
{
    for (struct job **at = &t->jobs; *at;) {
        struct job *j = *at;
        if (!has_ended(j)) {
            at = &j->next;
            continue;
        }
        *at = j->next;
        free(j->from);
        free(j);
    }
}

/* The job, made if need be; NULL: it is not asked for, or there are too many. */
static struct job *job_of(struct place_receiver *t, const struct move_question *q)
{
    size_t n = 0;
    for (struct job *j = t->jobs; j; j = j->next, n++)
        if (move_is_same(j->trace, q->trace))
            return j;
    if (n >= MOST_JOBS)
        forget_ended(t);
    struct job **at = &t->jobs;
    for (n = 0; *at; at = &(*at)->next)
        n++;
    if (!q->begin || n >= MOST_JOBS)
        return NULL;
    struct job *j = *at = mem_zalloc(sizeof *j);
    j->trace = q->trace;
    j->from = mem_strdup(q->node);
    j->progress.state = PLACE_MOVE_WAITING;
    return j;
}

int place_receiver_take(struct place_receiver *t, const struct move_question *q, struct text *out, struct err *e)
{
    pthread_mutex_lock(&t->lock);
    struct job *j = job_of(t, q);
    struct place_move_progress p = {.state = PLACE_MOVE_UNKNOWN, .text = ""};
    int rc = !j && q->begin ? err_set(e, ERR_BUSY, "more than %d moves were asked for: start it again", MOST_JOBS) : 0;
    if (j && has_ended(j) && q->begin) {
        free(j->from);
        j->from = mem_strdup(q->node);
        j->progress = (struct place_move_progress){.state = PLACE_MOVE_WAITING};
    }
    if (j)
        p = j->progress;
    p.text = j && p.state == PLACE_MOVE_FAILED ? j->why.text : "";
    place_move_progress_write(&p, out);
    pthread_cond_signal(&t->news);
    pthread_mutex_unlock(&t->lock);
    return rc;
}

bool place_receiver_is_busy(struct place_receiver *t)
{
    bool takes = false;
    pthread_mutex_lock(&t->lock);
    for (const struct job *j = t->jobs; j && !takes; j = j->next)
        takes = !has_ended(j);
    pthread_mutex_unlock(&t->lock);
    return takes;
}

struct place_receiver *place_receiver_new(const struct place_receiver_options *o)
{
    struct place_receiver *t = mem_zalloc(sizeof *t);
    t->o = *o;
    pthread_mutex_init(&t->lock, NULL);
    pthread_cond_init(&t->news, NULL);
    pthread_create(&t->thread, NULL, run, t);
    return t;
}

void place_receiver_free(struct place_receiver *t)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    t->stop = true;
    pthread_cond_signal(&t->news);
    pthread_mutex_unlock(&t->lock);
    pthread_join(t->thread, NULL);
    for (struct job *j = t->jobs, *next; j; j = next) {
        next = j->next;
        free(j->from);
        free(j);
    }
    pthread_mutex_destroy(&t->lock);
    pthread_cond_destroy(&t->news);
    free(t);
}
