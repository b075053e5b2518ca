/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/time.h"
#include "http/connection.h"
#include "http/gzip.h"
#include "http/pages.h"

enum {
    SMALLEST_GZIP = 512,
    SMALL_ANSWER = 64 << 10,
    SMALL_HELD = 1 << 20,
    WORTH_PACKING = 1 << 20,
    READ_BLOCK = 64 << 10,
    READER_BYTES = READ_BLOCK + (48 << 10) /* including zlib's memory for decompression */
};

const char *http_connection_header(const struct http_connection *c, const char *name)
{
    return MHD_lookup_connection_value(c->mhd, MHD_HEADER_KIND, name);
}

void http_connection_awaits(struct http_connection *c, uint64_t bytes)
{
    if (c->peer)
        http_peer_awaits(c->server->peers, c->peer, bytes);
}

/* Adds the time that the question waited for others, and the time of the answer, as browsers and proxies show them. */
static void add_times(const struct http_connection *c, struct MHD_Response *r)
{
    if (!c->asked_ns)
        return;
    int64_t now = time_monotonic_ns(), begun = c->begun_ns ? c->begun_ns : now;
    char value[80];
    snprintf(value, sizeof value, "wait;dur=%.3f, answer;dur=%.3f", (double)(begun - c->asked_ns) / 1e6,
        (double)(now - begun) / 1e6);
    MHD_add_response_header(r, "Server-Timing", value);
}

/* `r` NULL: there was no memory for it; the connection ends. */
static void send_response(struct http_connection *c, int status, const char *type, struct MHD_Response *r)
{
    const char *origin = http_page_allowed_origin(http_connection_header(c, "Origin"), c->server->o.origins);
    c->replied = true;
    c->result = MHD_NO;
    if (!r)
        return;
    if (type)
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    MHD_add_response_header(r, "X-Content-Type-Options", "nosniff");
    if (origin) {
        MHD_add_response_header(r, "Access-Control-Allow-Origin", origin);
        MHD_add_response_header(r, "Access-Control-Allow-Headers", "origin, content-type, accept, authorization");
        MHD_add_response_header(r, "Access-Control-Allow-Methods",
            c->request.only_asks ? "GET, POST, OPTIONS, HEAD" : "GET, POST, PUT, DELETE, OPTIONS, HEAD");
        MHD_add_response_header(r, "Vary", "Origin");
    }
    add_times(c, r);
    if (c->closes)
        MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
    for (size_t i = 0; i < c->n_headers; i++)
        MHD_add_response_header(r, c->headers[i].name, c->headers[i].value);
    c->result = MHD_queue_response(c->mhd, (unsigned)status, r);
    http_connection_awaits(c, c->answer_bytes);
    MHD_destroy_response(r);
}

static bool accepts_gzip(const struct http_connection *c)
{
    const char *accept = http_connection_header(c, "Accept-Encoding");
    return accept && strstr(accept, "gzip") && !strstr(accept, "gzip;q=0");
}

void http_header(struct http_request *q, const char *name, const char *value)
{
    struct http_connection *c = q->connection;
    if (c->n_headers < MAX_HEADERS) {
        c->headers[c->n_headers].name = arena_strdup(&c->arena, name);
        c->headers[c->n_headers++].value = arena_strdup(&c->arena, value);
    }
}

/* Response from data that stay valid. */
static struct MHD_Response *response_of(const void *data, size_t n)
{
    struct MHD_Response *r;
    unsigned tried = 0;
    do
        r = MHD_create_response_from_buffer(n, (void *)data, MHD_RESPMEM_PERSISTENT);
    while (!r && mem_again(&tried));
    return r;
}

static void end_text(void *text)
{
    text_fini(text);
    free(text);
}

/* Response that takes over a text. */
static struct MHD_Response *response_of_text(struct text *body)
{
    struct text *own = mem_alloc(sizeof *own);
    struct MHD_Response *r;
    unsigned tried = 0;
    *own = *body;
    do
        r = MHD_create_response_from_buffer_with_free_callback_cls(own->n, own->v ? own->v : "", end_text, own);
    while (!r && mem_again(&tried));
    if (!r)
        end_text(own);
    *body = (struct text){.fd = -1};
    return r;
}

static ssize_t read_packed(void *reader, uint64_t pos, char *out, size_t most)
{
    size_t n = http_gzip_read(reader, out, most);
    return n ? (ssize_t)n : MHD_CONTENT_READER_END_WITH_ERROR; /* callers never read beyond the end */
}

static void end_packed(void *reader)
{
    http_gzip_reader_free(reader);
}

/* Response of n bytes from compressed data: the client receives them decompressed. Takes over the text. */
static struct MHD_Response *response_of_packed(size_t n, struct text *packed)
{
    struct gzip_reader *reader;
    struct MHD_Response *r;
    unsigned tried = 0;
    while (!(reader = http_gzip_reader_new(packed)) && mem_again(&tried))
        ;
    if (!reader) {
        text_fini(packed);
        return NULL;
    }
    tried = 0;
    do
        r = MHD_create_response_from_callback(n, READ_BLOCK, read_packed, reader, end_packed);
    while (!r && mem_again(&tried));
    if (!r)
        http_gzip_reader_free(reader);
    return r;
}

/* Sends 503 with a constant text, for which nothing is allocated here. */
static void send_busy(struct http_connection *c, const char *why)
{
    c->headers[0].name = MHD_HTTP_HEADER_RETRY_AFTER;
    c->headers[0].value = "1";
    c->n_headers = 1;
    c->answer_bytes = strlen(why);
    send_response(c, 503, "application/json", response_of(why, strlen(why)));
}

void http_connection_lacks_memory(struct http_connection *c)
{
    send_busy(c,
        "{\"title\":\"The server is out of memory\","
        "\"detail\":\"Try again, or ask for less at once; or give the server more memory\"}");
}

/* Moves compressed data that fill less than half of their buffer to a fitting one. */
static void fit(struct text *packed)
{
    struct text own = {.fd = -1};
    if (packed->n >= packed->cap / 2 || !text_try_grow(&own, packed->n + 1))
        return;
    text_put(&own, packed->v, packed->n);
    text_fini(packed);
    *packed = own;
}

static bool pack(struct http_connection *c, const struct text *body, struct text *packed)
{
    if (!http_gzip_pack(c->server->packers, body->v, body->n, packed))
        return false;
    fit(packed);
    return true;
}

/* Compresses a large answer that the client wants uncompressed, if a quarter of the limit for waiting answers is used.
 * Answers wait in memory for slow readers. Compression takes as long as making the answer, but several times as many
 * answers can wait. */
static bool waits_packed(struct http_connection *c, const struct text *body, struct text *packed)
{
    const struct http_server *s = c->server;
    if (body->n < WORTH_PACKING || atomic_load(&s->waiting_bytes) <= s->o.max_waiting_bytes / 4)
        return false;
    if (!pack(c, body, packed))
        return false;
    if (packed->cap + READER_BYTES < body->cap / 2)
        return true;
    text_fini(packed);
    return false;
}

/* Counts an answer that waits for its reader. False: the limit is reached. */
static bool may_wait(struct http_connection *c, uint64_t bytes, size_t n)
{
    uint64_t others = atomic_fetch_add(&c->server->waiting_bytes, bytes);
    c->waiting_bytes = bytes;
    if (!others || others + bytes <= c->server->o.max_waiting_bytes || n <= SMALL_ANSWER)
        return true;
    atomic_fetch_sub(&c->server->waiting_bytes, bytes);
    c->waiting_bytes = 0;
    return false;
}

void http_reply(struct http_request *q, int status, const char *type, struct text *body)
{
    struct http_connection *c = q->connection;
    struct text packed = {.fd = -1};
    q->making = NULL;
    if (c->lacked || body->error) {
        text_fini(body);
        *body = packed;
        http_connection_lacks_memory(c);
        return;
    }
    bool gzip = body->n >= SMALLEST_GZIP && accepts_gzip(c) && pack(c, body, &packed);
    if (gzip) {
        text_fini(body);
        *body = packed;
        packed = (struct text){.fd = -1};
        http_header(q, "Content-Encoding", "gzip");
    }
    const size_t n = body->n;
    bool unpacks = !gzip && waits_packed(c, body, &packed);
    if (unpacks) {
        text_fini(body);
        *body = packed;
    }
    if (!may_wait(c, body->cap + (unpacks ? READER_BYTES : 0), body->n)) {
        text_fini(body);
        *body = (struct text){.fd = -1};
        send_busy(c, "{\"title\":\"Too many answers wait for their readers\"}");
        return;
    }
    c->answer_bytes = n;
    send_response(c, status, type, unpacks ? response_of_packed(n, body) : response_of_text(body));
}

void http_reply_static(
    struct http_request *q, const char *type, const void *data, size_t n, bool gzip, const char *etag)
{
    struct http_connection *c = q->connection;
    const char *have = http_connection_header(c, "If-None-Match");
    if (etag)
        http_header(q, "ETag", etag);
    if (etag && have && strstr(have, etag)) {
        send_response(c, 304, NULL, response_of("", 0));
        return;
    }
    if (gzip && !accepts_gzip(c)) {
        struct text plain = {.fd = -1};
        http_gzip_unpack(data, n, &plain);
        http_reply(q, 200, type, &plain);
        return;
    }
    if (gzip) {
        http_header(q, "Content-Encoding", "gzip");
        http_header(q, "Vary", "Accept-Encoding");
    }
    c->answer_bytes = n;
    send_response(c, 200, type, response_of(data, n));
}

void http_connection_refuse(struct http_connection *c, int status, const char *why)
{
    struct text t = {.fd = -1};
    text_printf(&t, "{\"title\":\"%s\"}", why);
    if (status == 401)
        http_header(&c->request, "WWW-Authenticate", "Bearer");
    if (status == 503)
        http_header(&c->request, MHD_HTTP_HEADER_RETRY_AFTER, "1");
    if (status == 413 || status == 400)
        http_header(&c->request, "Connection", "close");
    http_reply(&c->request, status, "application/json", &t);
}

const char *http_query(const struct http_request *q, const char *name)
{
    return MHD_lookup_connection_value(q->connection->mhd, MHD_GET_ARGUMENT_KIND, name);
}

const char *http_request_header(const struct http_request *q, const char *name)
{
    return http_connection_header(q->connection, name);
}

struct each_value {
    const char *name;
    void (*take)(void *arg, const char *value);
    void *arg;
};

static enum MHD_Result take_value(void *arg, enum MHD_ValueKind kind, const char *name, const char *value)
{
    const struct each_value *each = arg;
    if (!strcmp(name, each->name))
        each->take(each->arg, value ? value : "");
    return MHD_YES;
}

void http_query_each(
    const struct http_request *q, const char *name, void (*take)(void *arg, const char *value), void *arg)
{
    struct each_value each = {name, take, arg};
    MHD_get_connection_values(q->connection->mhd, MHD_GET_ARGUMENT_KIND, take_value, &each);
}

bool http_connection_may_hold(struct http_connection *c, uint64_t bytes)
{
    struct http_server *s = c->server;
    uint64_t more = bytes - c->held_bytes, all = atomic_fetch_add(&s->held_bytes, more) + more;
    bool grows = bytes > c->held_bytes;
    c->held_bytes = bytes;
    return !grows || bytes <= SMALL_HELD || all <= s->o.max_held_bytes || all == bytes;
}

bool http_connection_hung_up(const struct http_connection *c)
{
    const union MHD_ConnectionInfo *i = MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    return i && http_peer_hung_up(i->connect_fd);
}

static bool is_over(struct http_connection *c)
{
    const struct text *making = c->request.making;
    if (!http_connection_may_hold(c, c->work.total_bytes + (making ? making->cap : 0)))
        return c->lacked = true;
    if (c->lacked || mem_short())
        return c->lacked = true;
    if (atomic_load(&c->server->stopping) || (c->deadline_ns && time_monotonic_ns() > c->deadline_ns))
        return true;
    return http_connection_hung_up(c);
}

bool http_gone(const struct http_request *q)
{
    struct http_connection *c = q->connection;
    return c->was_gone = c->was_gone || is_over(c);
}

bool http_was_gone(const struct http_request *q)
{
    return q->connection->was_gone;
}

void http_lack_memory(struct http_request *q)
{
    q->connection->lacked = true;
}

void http_connection_send_nothing(struct http_connection *c)
{
    send_response(c, 204, NULL, response_of("", 0));
}
