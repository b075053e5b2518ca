/* SPDX-License-Identifier: MIT */
/* Forwarder: sends acknowledged spans from the log to another collector. Nothing here waits for that one. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/time.h"
#include "base/wait.h"
#include "http/client.h"
#include "otlp.pb-c.h"
#include "span/code.h"
#include "span/collect.h"
#include "span/write_protobuf.h"

enum { WAIT_MS = 250, LEAST_AGAIN_MS = 500, MOST_AGAIN_MS = 60000, ANSWER_MS = 30000, AT_ONCE_BYTES = 1 << 20 };
enum { MOST_REQUEST_BYTES = 4 << 20, MOST_ANSWER_BYTES = 4 << 20, MOST_RETRY_AFTER_S = 600 };
static const int64_t tell_every_ns = 60 * NS_PER_S, look_every_ns = NS_PER_S / 20;

struct forward {
    char *url, *path; /* path: file with the position reached */
    struct http_client *client;
    pthread_t thread;
    pthread_mutex_t lock; /* guards stop */
    pthread_cond_t change;
    bool stop;
    /* thread's own fields */
    struct log_reader reader;
    struct log_position at;
    struct protobuf_request request;
    uint64_t refused; /* refused spans not reported yet, and why */
    char why[256];
    int64_t told_refused_ns, told_ns;
};

static bool is_stopping(struct forward *f)
{
    pthread_mutex_lock(&f->lock);
    bool stop = f->stop;
    pthread_mutex_unlock(&f->lock);
    return stop;
}

/* Returns false if the forwarder stops. */
static bool sleep_ms(struct forward *f, int64_t ms)
{
    int64_t until = time_monotonic_ns() + ms * (NS_PER_S / 1000);
    pthread_mutex_lock(&f->lock);
    while (!f->stop && wait_until(&f->change, &f->lock, until))
        ;
    bool stop = f->stop;
    pthread_mutex_unlock(&f->lock);
    return !stop;
}

static void tell(struct span_collector *c, const char *what, int64_t *told_ns)
{
    struct text t = {.fd = -1};
    text_printf(&t, "forwarding to %s: %s", c->forward->url, what);
    if (c->o.tell)
        c->o.tell(text_cstr(&t));
    *told_ns = time_monotonic_ns();
    text_fini(&t);
}

static bool may_tell(int64_t told_ns)
{
    return !told_ns || time_monotonic_ns() - told_ns > tell_every_ns;
}

static void tell_refused(struct span_collector *c)
{
    struct forward *f = c->forward;
    char *line = mem_printf("%" PRIu64 " spans were refused, and will not be sent again: %s", f->refused, f->why);
    if (f->refused)
        tell(c, line, &f->told_refused_ns);
    f->refused = 0;
    free(line);
}

static void note_refused(struct span_collector *c, uint64_t spans, const char *why, size_t n)
{
    struct forward *f = c->forward;
    if (!f->refused)
        snprintf(f->why, sizeof f->why, "%.*s", (int)(n < sizeof f->why ? n : sizeof f->why - 1), why);
    f->refused += spans;
    if (may_tell(f->told_refused_ns))
        tell_refused(c);
}

/* Reports spans dropped from the backlog. */
static void tell_lost(struct span_collector *c)
{
    uint64_t bytes = log_lost(c->log);
    int64_t ignored;
    char *line = mem_printf(
        "more than --forward-spool waits: %" PRIu64 " bytes of the oldest spans are left out", bytes);
    if (bytes)
        tell(c, line, &ignored);
    free(line);
}

/* ---- sending ---- */

/* Reads the number of spans rejected in an accepted request. */
static void read_answer(struct span_collector *c, const struct http_fetch *q)
{
    Otlp__Response *r = otlp__response__unpack(NULL, q->body.n, (uint8_t *)q->body.v);
    if (r && r->partial && r->partial->rejected > 0)
        note_refused(c, (uint64_t)r->partial->rejected, (const char *)r->partial->message.data,
            r->partial->message.data ? r->partial->message.len : 0);
    if (r)
        otlp__response__free_unpacked(r, NULL);
}

/* Returns whether a retry would be refused, too. A wrong path, token or method is not the spans' fault, so these are
 * retried. */
static bool is_final(int status)
{
    return status == 400 || status == 413 || status == 415 || status == 422 ||
        (status >= 500 && status != 502 && status != 503 && status != 504);
}

/* Tries to send once. Returns true if the request is settled. */
static bool try_once(struct span_collector *c, int64_t *again_ms)
{
    struct forward *f = c->forward;
    struct http_gather g;
    struct http_fetch q = {.method = "POST",
        .url = f->url,
        .json = f->request.body.v,
        .json_bytes = f->request.body.n,
        .type = "application/x-protobuf",
        .packs = true,
        .token = c->o.forward_token,
        .ca_file = c->o.forward_ca,
        .answer_ms = ANSWER_MS,
        .max_bytes = MOST_ANSWER_BYTES};
    char why[1200] = "";
    bool done = false;
    http_gather_begin(&g, f->client);
    http_gather_add(&g, &q);
    while (!http_gather_wait(&g, time_monotonic_ns() + look_every_ns) && !is_stopping(f))
        ;
    if (atomic_load(&q.done)) {
        int status = q.error.code ? 0 : q.status;
        done = status / 100 == 2 || is_final(status);
        if (status)
            snprintf(why, sizeof why, "it answers with status %d", status);
        else
            snprintf(why, sizeof why, "%s", q.error.text);
        if (status / 100 == 2)
            read_answer(c, &q);
        else if (done)
            note_refused(c, f->request.n, why, strlen(why));
        if (q.retry_after_s > 0 && !done)
            *again_ms = (q.retry_after_s < MOST_RETRY_AFTER_S ? q.retry_after_s : MOST_RETRY_AFTER_S) * 1000;
    }
    http_gather_end(&g);
    if (!done && *why && may_tell(f->told_ns)) {
        strncat(why, "; it is tried again, and what comes meanwhile waits in the log", sizeof why - strlen(why) - 1);
        tell(c, why, &f->told_ns);
    }
    return done;
}

/* Retries until the request is sent, or refused for good. Returns false if the forwarder stops. */
static bool send_request(struct span_collector *c)
{
    struct forward *f = c->forward;
    int64_t backoff_ms = LEAST_AGAIN_MS;
    protobuf_request_end(&f->request);
    while (f->request.n) {
        int64_t again_ms = backoff_ms;
        if (is_stopping(f))
            return false;
        if (try_once(c, &again_ms))
            break;
        tell_lost(c);
        if (!sleep_ms(f, again_ms))
            return false;
        backoff_ms = backoff_ms * 2 < MOST_AGAIN_MS ? backoff_ms * 2 : MOST_AGAIN_MS;
    }
    protobuf_request_clear(&f->request);
    return true;
}

/* ---- the log ---- */

/* Adds a batch to the request, and sends it whenever it is large. Returns false if the forwarder stops. */
static bool add_records(struct span_collector *c, const struct text *records)
{
    struct forward *f = c->forward;
    struct wire_in in = wire_of(records->v, records->n), origin, body;
    struct span_origin o;
    struct arena of_origin = {0};
    bool has_origin = false, goes_on = true;
    while (goes_on && span_next_record(&in, &origin, &body)) {
        struct arena of_span = {0};
        struct span s = {.origin = &o};
        if (origin.at != origin.end) {
            protobuf_request_end(&f->request);
            arena_fini(&of_origin);
            memset(&o, 0, sizeof o);
            has_origin = span_read_origin(&origin, &of_origin, &o);
            if (has_origin)
                protobuf_request_origin(&f->request, &o);
        } else if (has_origin && span_read(&body, &of_span, &s)) {
            protobuf_request_span(&f->request, &s);
        }
        arena_fini(&of_span);
        if (protobuf_request_bytes(&f->request) > MOST_REQUEST_BYTES)
            goes_on = send_request(c);
    }
    protobuf_request_end(&f->request);
    arena_fini(&of_origin);
    return goes_on;
}

static void keep_position(struct span_collector *c, const struct log_position *at)
{
    struct forward *f = c->forward;
    char line[64];
    struct err e = {0};
    int n = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 "\n", at->file, at->offset);
    f->at = *at;
    if (file_write(f->path, line, (size_t)n, &e) && may_tell(f->told_ns))
        tell(c, e.text, &f->told_ns);
    log_hold(c->log, at, c->o.forward_spool_bytes);
}

/* Sends available records, up to some size. Returns false on an error, or if the forwarder stops. */
static bool forward_some(struct span_collector *c, struct err *e)
{
    struct forward *f = c->forward;
    struct log_position at = f->at;
    struct text records = {.fd = -1};
    int64_t came_ns;
    size_t bytes = 0;
    int more = log_next(c->log, &f->reader, &at, WAIT_MS, &records, &came_ns, e), rc = more;
    bool goes_on = more >= 0;
    tell_lost(c);
    while (goes_on && more > 0) {
        bytes += records.n;
        goes_on = add_records(c, &records);
        more = goes_on && bytes < AT_ONCE_BYTES ? log_next(c->log, &f->reader, &at, 0, &records, &came_ns, e) : 0;
    }
    if (goes_on && more >= 0 && send_request(c) && (rc || at.file != f->at.file))
        keep_position(c, &at);
    protobuf_request_clear(&f->request);
    text_fini(&records);
    return goes_on && more >= 0;
}

static void *forward(void *arg)
{
    struct span_collector *c = arg;
    struct forward *f = c->forward;
    while (!is_stopping(f)) {
        struct err e = {0};
        if (forward_some(c, &e) || !e.code)
            continue;
        if (may_tell(f->told_ns))
            tell(c, e.text, &f->told_ns);
        sleep_ms(f, LEAST_AGAIN_MS);
    }
    tell_lost(c);
    tell_refused(c);
    return NULL;
}

/* ---- start and stop ---- */

/* Reads the last position, or takes the end: spans received before forwarding are not forwarded. */
static void read_position(struct span_collector *c)
{
    struct forward *f = c->forward;
    char *data = NULL;
    size_t n;
    struct err e = {0};
    struct log_position at = log_end(c->log);
    if (!file_read(f->path, 64, &data, &n, &e)) {
        char line[65];
        snprintf(line, sizeof line, "%.*s", (int)n, data);
        if (sscanf(line, "%" SCNu64 " %" SCNu64, &at.file, &at.offset) != 2)
            at = log_end(c->log);
    }
    free(data);
    keep_position(c, &at);
}

int forward_start(struct span_collector *c, struct err *e)
{
    char *path = mem_printf("%s/forwarded", c->directory);
    if (!c->o.forward) {
        unlink(path); /* spans received from now on are not forwarded later either */
        free(path);
        return 0;
    }
    struct forward *f = c->forward = mem_zalloc(sizeof *f);
    const char *host = strstr(c->o.forward, "://");
    bool has_path = host && strchr(host + 3, '/');
    f->path = path;
    f->url = mem_printf("%s%s", c->o.forward, has_path ? "" : "/v1/traces");
    f->request = PROTOBUF_REQUEST;
    f->reader = LOG_READER;
    pthread_mutex_init(&f->lock, NULL);
    wait_init(&f->change);
    int rc = strncmp(c->o.forward, "http://", 7) != 0 && strncmp(c->o.forward, "https://", 8) != 0
        ? err_set(e, ERR_ARG, "--forward %s: give a URL such as http://HOST:4318/v1/traces", c->o.forward)
        : http_client_start(&(struct http_client_options){0}, &f->client, e);
    if (rc) {
        forward_stop(c);
        return rc;
    }
    read_position(c);
    if (pthread_create(&f->thread, NULL, forward, c)) {
        http_client_stop(f->client);
        f->client = NULL;
        forward_stop(c);
        return err_set(e, ERR_LIMIT, "cannot start a thread");
    }
    return 0;
}

void forward_stop(struct span_collector *c)
{
    struct forward *f = c->forward;
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stop = true;
    pthread_cond_broadcast(&f->change);
    pthread_mutex_unlock(&f->lock);
    if (f->client)
        pthread_join(f->thread, NULL);
    http_client_stop(f->client);
    log_reader_close(&f->reader);
    protobuf_request_fini(&f->request);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->change);
    free(f->url);
    free(f->path);
    free(f);
    c->forward = NULL;
}
