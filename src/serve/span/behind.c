/* SPDX-License-Identifier: MIT */
/* Log applier: writes the log's records to the database. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "span/collect.h"

enum { AT_ONCE_BYTES = 4 << 20, WAIT_MS = 250, PATIENCE_S = 5, AGAIN_MS = 1000, SYNC_BYTES = 32 << 20, LATE_S = 5 };
static const int64_t keep_every_ns = 30 * NS_PER_S, tell_every_ns = 60 * NS_PER_S;

struct behind {
    struct span_store *store;
    pthread_t thread;
    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t change;
    bool stop;
    struct log_position applied;
    char problem[512];  /* reason why the database accepts nothing; "": it accepts spans */
    int64_t applied_ns; /* time of the last commit, or of an empty backlog (monotonic) */
    /* thread's own fields */
    struct log_reader reader;
    struct log_position synced;
    uint64_t since_sync_bytes, damaged;
    int64_t kept_ns, told_ns, failed_ns;
    bool failing, told_failing, more_to_remove, more_to_add;
};

static bool is_before(const struct log_position *a, const struct log_position *b)
{
    return a->file < b->file || (a->file == b->file && a->offset < b->offset);
}

static void tell(struct span_collector *c, const struct err *e)
{
    struct behind *b = c->behind;
    int64_t now = time_monotonic_ns();
    if (c->o.tell && (!b->told_ns || now - b->told_ns > tell_every_ns)) {
        c->o.tell(e->text);
        b->told_ns = now;
    }
}

static void set_problem(struct behind *b, const char *why)
{
    pthread_mutex_lock(&b->lock);
    snprintf(b->problem, sizeof b->problem, "%.511s", why);
    pthread_cond_broadcast(&b->change);
    pthread_mutex_unlock(&b->lock);
}

/* Reports a failure once; one that comes and goes, only from time to time, or when it persists. */
static void note_failing(struct span_collector *c, struct err *e)
{
    struct behind *b = c->behind;
    int64_t now = time_monotonic_ns();
    set_problem(b, e->text);
    b->failing = true;
    if (b->told_failing || !c->o.tell || (b->failed_ns && now - b->failed_ns <= tell_every_ns))
        return;
    b->told_failing = true;
    err_wrap(e, "the database takes no spans now, which wait in the log");
    c->o.tell(e->text);
    b->failed_ns = now;
}

static void note_working(struct span_collector *c)
{
    struct behind *b = c->behind;
    if (!b->failing)
        return;
    set_problem(b, "");
    b->failing = false;
    if (b->told_failing)
        c->o.tell("the database takes spans again");
    b->told_failing = false;
}

/* Tests whether the database accepts spans now. */
static int try_database(struct behind *b, struct err *e)
{
    int rc = database_begin(b->store, e);
    if (!rc)
        database_rollback(b->store);
    return rc;
}

static bool is_stopping(struct behind *b)
{
    pthread_mutex_lock(&b->lock);
    bool stop = b->stop;
    pthread_mutex_unlock(&b->lock);
    return stop;
}

/* Applies available records in one transaction. Returns 1; 0: none; or an error, with everything unchanged. */
static int apply(struct span_collector *c, struct log_position *at, int wait_ms, struct err *e)
{
    struct behind *b = c->behind;
    struct text records = {.fd = -1};
    int64_t came_ns;
    size_t bytes = 0;
    int more = log_next(c->log, &b->reader, at, wait_ms, &records, &came_ns, e), rc = more < 0 ? more : 0;
    if (more <= 0) {
        text_fini(&records);
        return rc;
    }
    rc = database_begin(b->store, e);
    bool begun = !rc;
    while (!rc && more > 0) {
        bytes += records.n;
        rc = database_add(b->store, records.v, records.n, came_ns, &b->damaged, e);
        more = !rc && bytes < AT_ONCE_BYTES ? log_next(c->log, &b->reader, at, 0, &records, &came_ns, e) : 0;
        rc = rc ? rc : more < 0 ? more : 0;
    }
    if (!rc)
        rc = database_commit(b->store, at, e);
    if (rc && begun)
        database_rollback(b->store);
    text_fini(&records);
    b->since_sync_bytes += bytes;
    return rc ? rc : 1;
}

static void note_applied(struct span_collector *c, const struct log_position *at)
{
    struct behind *b = c->behind;
    bool all;
    struct err e = {0};
    pthread_mutex_lock(&b->lock);
    b->applied = *at;
    b->applied_ns = time_monotonic_ns();
    pthread_cond_broadcast(&b->change);
    pthread_mutex_unlock(&b->lock);
    if (b->since_sync_bytes > SYNC_BYTES) {
        if (database_sync(b->store, &all, &e))
            tell(c, &e);
        else if (all) {
            b->synced = *at;
            b->since_sync_bytes = 0;
        }
    }
    log_done(c->log, at, &b->synced);
}

static void note_idle(struct behind *b)
{
    pthread_mutex_lock(&b->lock);
    b->applied_ns = time_monotonic_ns();
    pthread_mutex_unlock(&b->lock);
}

static void keep(struct span_collector *c)
{
    struct behind *b = c->behind;
    struct err e = {0};
    int64_t now = time_monotonic_ns();
    if ((!c->o.keep_ns && !c->o.keep_bytes) || (!b->more_to_remove && b->kept_ns && now - b->kept_ns < keep_every_ns))
        return;
    b->kept_ns = now;
    int rc = database_keep(
        b->store, c->o.keep_ns ? time_now_ns() - c->o.keep_ns : INT64_MIN, c->o.keep_bytes, &b->more_to_remove, &e);
    b->more_to_remove &= !rc;
    if (rc && rc != ERR_BUSY && !b->failing) /* ERR_BUSY: readers are in the way; retried later */
        tell(c, &e);
}

/* Adds what a store of an older weft lacks. */
static void catch_up(struct span_collector *c)
{
    struct behind *b = c->behind;
    struct err e = {0};
    int rc = b->failing ? 0 : database_catch_up(b->store, &b->more_to_add, &e);
    b->more_to_add &= !rc;
    if (rc && rc != ERR_BUSY)
        tell(c, &e);
}

static void *follow(void *arg)
{
    struct span_collector *c = arg;
    struct behind *b = c->behind;
    struct log_position at = b->applied;
    for (;;) {
        struct err e = {0};
        struct log_position next = at;
        bool stop = is_stopping(b);
        int rc = apply(c, &next, stop || b->more_to_remove || b->more_to_add ? 0 : WAIT_MS, &e);
        if (rc > 0 || (!rc && is_before(&at, &next))) {
            at = next;
            note_applied(c, &at);
        } else if (!rc) {
            note_idle(b);
        }
        if (!rc && b->failing)
            rc = try_database(b, &e); /* test, since no waiting records would show it */
        if (rc >= 0) {
            note_working(c);
        } else {
            note_failing(c, &e);
            if (!stop)
                usleep(AGAIN_MS * 1000);
        }
        if (b->damaged) {
            err_set(&e, ERR_FORMAT, "%llu records of the log make no sense, and are left out",
                (unsigned long long)b->damaged);
            tell(c, &e);
            b->damaged = 0;
        }
        if (stop && rc <= 0)
            return NULL;
        keep(c);
        catch_up(c);
    }
}

/* Tests the database at the start. If it cannot be reached yet, it is retried later; any other fault is an error. */
static int try_at_start(struct span_collector *c, struct err *e)
{
    int rc = try_database(c->behind, e);
    if (rc != ERR_BUSY)
        return rc;
    note_failing(c, e);
    *e = (struct err){0};
    return 0;
}

int behind_start(struct span_collector *c, struct err *e)
{
    struct behind *b = mem_zalloc(sizeof *b);
    b->reader = LOG_READER;
    pthread_condattr_t monotonic;
    int rc = database_open_to_write(c->o.store, c->directory, &b->store, e);
    if (!rc)
        rc = database_position(b->store, &b->applied, e);
    if (rc) {
        span_store_close(b->store);
        free(b);
        return rc;
    }
    b->applied_ns = time_monotonic_ns();
    b->since_sync_bytes = SYNC_BYTES + 1; /* earlier commits may not be on disk */
    pthread_mutex_init(&b->lock, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&b->change, &monotonic);
    pthread_condattr_destroy(&monotonic);
    c->behind = b;
    if (b->applied.file >= log_end(c->log).file) /* position of another log, since each start begins a new file */
        b->applied = (struct log_position){0};
    log_done(c->log, &b->applied, &b->synced); /* records applied earlier do not wait, even without a database */
    if (try_at_start(c, e) || (rc = pthread_create(&b->thread, NULL, follow, c))) {
        span_store_close(b->store);
        free(b);
        c->behind = NULL;
        return rc ? err_set(e, ERR_LIMIT, "cannot start a thread") : e->code;
    }
    return 0;
}

void behind_stop(struct span_collector *c)
{
    struct behind *b = c->behind;
    if (!b)
        return;
    pthread_mutex_lock(&b->lock);
    b->stop = true;
    pthread_mutex_unlock(&b->lock);
    log_stop(c->log);
    pthread_join(b->thread, NULL);
    log_reader_close(&b->reader);
    span_store_close(b->store);
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->change);
    free(b);
    c->behind = NULL;
}

bool behind_wait(struct span_collector *c)
{
    struct behind *b = c->behind;
    struct log_position end = log_end(c->log);
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += PATIENCE_S;
    pthread_mutex_lock(&b->lock);
    while (!*b->problem && is_before(&b->applied, &end) && !pthread_cond_timedwait(&b->change, &b->lock, &until))
        ;
    bool all = !is_before(&b->applied, &end);
    pthread_mutex_unlock(&b->lock);
    return all;
}

void behind_problem(struct span_collector *c, char *out, size_t n)
{
    struct behind *b = c->behind;
    const struct log_position end = log_end(c->log);
    pthread_mutex_lock(&b->lock);
    const int64_t for_s = (time_monotonic_ns() - b->applied_ns) / NS_PER_S;
    snprintf(out, n, "%s", b->problem);
    if (!*out && for_s >= LATE_S && is_before(&b->applied, &end))
        snprintf(out, n, "the database has taken no spans for %lld s, though some wait", (long long)for_s);
    pthread_mutex_unlock(&b->lock);
}
