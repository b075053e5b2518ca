/* SPDX-License-Identifier: MIT */
/* HTTP/2 on a connection of the gRPC server: streams, their refusals, answers. */
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/time.h"
#include "http/grpc_frame.h"
#include "http/grpc_parts.h"
#include "http/pages.h"

enum {
    WINDOW_BYTES = 1 << 20,
    CONNECTION_WINDOW_BYTES = 4 << 20,
    MOST_HEADER_BYTES = 16 << 10,
    READS_AT_ONCE = 16,
    RETRY_MS = 2000,
    RESTS_FACTOR = 5
};

struct grpc_stream {
    struct grpc_connection *c;
    struct grpc_stream *previous, *next;
    int32_t id;
    char *path;
    size_t header_bytes;
    bool is_post, is_grpc, gzip, odd_encoding, shows_token, of_a_page, whole, answered;
    int64_t begun_ns, answered_ns;
    struct text body;
    struct grpc_work *work;
    struct text reply;
    size_t reply_sent;
};

/* ---- answers ---- */

static nghttp2_nv field(const char *name, const char *value)
{
    return (nghttp2_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP2_NV_FLAG_NONE};
}

/* grpc-status and related fields; nghttp2 copies the texts. */
struct trailer {
    char status[12], retry[12];
    struct text why;
    nghttp2_nv v[8];
    size_t n;
};

static void add_status(struct trailer *t, struct grpc_call *call)
{
    snprintf(t->status, sizeof t->status, "%d", (int)call->status);
    t->v[t->n++] = field("grpc-status", t->status);
    if (call->status && *call->why) {
        http_grpc_write_percent(&t->why, call->why);
        t->v[t->n++] = field("grpc-message", text_cstr(&t->why));
    }
    if (call->status && call->retry_ms) {
        snprintf(t->retry, sizeof t->retry, "%u", call->retry_ms);
        t->v[t->n++] = field("grpc-retry-pushback-ms", t->retry);
    }
    if (call->status && call->details.n)
        t->v[t->n++] = field("grpc-status-details-bin", text_cstr(&call->details));
}

static ssize_t read_reply(nghttp2_session *session, int32_t id, uint8_t *out, size_t n, uint32_t *flags,
    nghttp2_data_source *source, void *connection)
{
    struct grpc_stream *s = source->ptr;
    struct grpc_call ok = {.status = GRPC_OK};
    struct trailer t = {0};
    size_t left = s->reply.n - s->reply_sent;
    n = n < left ? n : left;
    memcpy(out, s->reply.v + s->reply_sent, n);
    s->reply_sent += n;
    if (s->reply_sent == s->reply.n) {
        *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
        add_status(&t, &ok);
        if (nghttp2_submit_trailer(session, id, t.v, t.n))
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    }
    return (ssize_t)n;
}

static void drop_body(struct grpc_stream *s)
{
    atomic_fetch_sub(&s->c->server->bodies_bytes, s->body.n);
    text_fini(&s->body);
    s->body = (struct text){.fd = -1};
}

static void answer(struct grpc_stream *s, struct grpc_call *call)
{
    struct trailer t = {.why = {.fd = -1}};
    uint32_t n = (uint32_t)call->reply.n;
    char head[GRPC_HEAD_BYTES] = {0, (char)(n >> 24), (char)(n >> 16), (char)(n >> 8), (char)n};
    nghttp2_data_provider reply = {.source.ptr = s, .read_callback = read_reply};
    s->answered = true;
    s->answered_ns = time_monotonic_ns();
    drop_body(s);
    t.v[t.n++] = field(":status", "200");
    t.v[t.n++] = field("content-type", "application/grpc");
    t.v[t.n++] = field("grpc-accept-encoding", "identity,gzip");
    if (call->status) {
        add_status(&t, call);
    } else {
        text_put(&s->reply, head, sizeof head);
        if (n)
            text_put(&s->reply, call->reply.v, n);
    }
    nghttp2_submit_response(s->c->session, s->id, t.v, t.n, call->status ? NULL : &reply);
    text_fini(&t.why);
}

static void refuse(struct grpc_stream *s, enum grpc_status status, const char *why)
{
    struct grpc_call call = {.status = status, .retry_ms = status == GRPC_UNAVAILABLE ? RETRY_MS : 0};
    snprintf(call.why, sizeof call.why, "%s", why);
    answer(s, &call);
}

/* Refuses a request that is not gRPC at all. */
static void refuse_plainly(struct grpc_stream *s, const char *status)
{
    const nghttp2_nv v[] = {field(":status", status)};
    s->answered = true;
    s->answered_ns = time_monotonic_ns();
    nghttp2_submit_response(s->c->session, s->id, v, 1, NULL);
}

/* ---- calls ---- */

static void free_stream(struct grpc_stream *s)
{
    struct grpc_connection *c = s->c;
    if (s->work) {
        s->work->stream = NULL;
        atomic_store(&s->work->given_up, true);
    }
    if (s->previous)
        s->previous->next = s->next;
    else
        c->first = s->next;
    if (s->next)
        s->next->previous = s->previous;
    c->streams--;
    drop_body(s);
    text_fini(&s->reply);
    free(s->path);
    free(s);
}

static int begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct grpc_connection *c = arg;
    if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return 0;
    struct grpc_stream *s = mem_zalloc(sizeof *s);
    s->c = c;
    s->id = frame->hd.stream_id;
    s->body = s->reply = (struct text){.fd = -1};
    s->begun_ns = c->used_ns = time_monotonic_ns();
    s->next = c->first;
    if (s->next)
        s->next->previous = s;
    c->first = s;
    c->streams++;
    nghttp2_session_set_stream_user_data(session, s->id, s);
    return 0;
}

static bool is_grpc_type(const char *v)
{
    static const char type[] = "application/grpc";
    size_t n = sizeof type - 1;
    if (strncasecmp(v, type, n) != 0)
        return false;
    n += strncasecmp(v + n, "+proto", 6) ? 0 : 6;
    return !v[n] || v[n] == ';' || v[n] == ' ';
}

static int take_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t name_bytes,
    const uint8_t *value, size_t value_bytes, uint8_t flags, void *arg)
{
    struct grpc_connection *c = arg;
    struct grpc_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    const char *k = (const char *)name, *v = (const char *)value; /* terminated by nghttp2 */
    if (!s)
        return 0;
    s->header_bytes += name_bytes + value_bytes + 32;
    if (s->header_bytes > MOST_HEADER_BYTES)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (!strcmp(k, ":method")) {
        s->is_post = !strcmp(v, "POST");
    } else if (!strcmp(k, ":path") && !s->path) {
        s->path = mem_strdup(v);
    } else if (!strcmp(k, "content-type")) {
        s->is_grpc = is_grpc_type(v);
    } else if (!strcmp(k, "grpc-encoding")) {
        s->gzip = !strcmp(v, "gzip");
        s->odd_encoding = !s->gzip && strcmp(v, "identity") != 0;
    } else if (!strcmp(k, "authorization") && c->server->o.token) {
        s->shows_token = http_page_token_fits(v, c->server->o.token);
    } else if (!strcmp(k, "origin")) {
        s->of_a_page = true;
    }
    return 0;
}

static void look_at_head(struct grpc_stream *s)
{
    if (!s->is_post)
        refuse_plainly(s, "405");
    else if (!s->is_grpc)
        refuse_plainly(s, "415");
    else if (s->of_a_page)
        refuse(s, GRPC_PERMISSION_DENIED, "pages cannot call here");
    else if (s->c->server->o.token && !s->shows_token)
        refuse(s, GRPC_UNAUTHENTICATED, "a token is needed: authorization: Bearer");
    else if (s->odd_encoding)
        refuse(s, GRPC_UNIMPLEMENTED, "grpc-encoding: gzip, or none");
    else if (s->c->ending)
        refuse(s, GRPC_UNAVAILABLE, "the server stops");
}

static int take_data(
    nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *data, size_t n, void *connection)
{
    struct grpc_stream *s = nghttp2_session_get_stream_user_data(session, id);
    struct err e = {0};
    size_t bytes, had = s ? s->body.n : 0;
    if (!s || s->answered || !n)
        return 0;
    struct grpc_server *g = s->c->server;
    size_t most = g->o.max_message_bytes;
    if (n > most + GRPC_HEAD_BYTES - had) {
        refuse(s, GRPC_RESOURCE_EXHAUSTED, "the call has more bytes than its message may have");
        return 0;
    }
    if (atomic_load(&g->bodies_bytes) + n > g->o.max_bodies_bytes || !text_try_grow(&s->body, n + 1)) {
        refuse(s, GRPC_UNAVAILABLE, "too much is being taken in: try again soon");
        return 0;
    }
    atomic_fetch_add(&g->bodies_bytes, n);
    text_put(&s->body, (const char *)data, n);
    if (had < GRPC_HEAD_BYTES && s->body.n >= GRPC_HEAD_BYTES) {
        enum grpc_status status = http_grpc_frame_head(s->body.v, s->gzip, most, &bytes, &e);
        if (status)
            refuse(s, status, e.text);
    }
    return 0;
}

static void hand_over(struct grpc_stream *s)
{
    struct grpc_work *w = mem_zalloc(sizeof *w);
    w->stream = s;
    w->path = s->path;
    w->body = s->body;
    w->gzip = s->gzip;
    w->call.reply = w->call.details = (struct text){.fd = -1};
    s->path = NULL;
    s->body = (struct text){.fd = -1};
    s->work = w;
    if (http_grpc_work_queue(s->c->server, w))
        return;
    http_grpc_work_free(s->c->server, w);
    s->work = NULL;
    refuse(s, GRPC_UNAVAILABLE, "too many calls wait: try again soon");
}

static int take_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
    struct grpc_connection *c = arg;
    struct grpc_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    c->begun = true;
    if (!s || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
        return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        look_at_head(s);
    if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        s->whole = true;
        if (!s->answered)
            hand_over(s);
    }
    return 0;
}

/* Resets a stream that was answered before all of the question arrived: the client need not send the rest. */
static int note_sent(nghttp2_session *session, const nghttp2_frame *frame, void *connection)
{
    struct grpc_stream *s = nghttp2_session_get_stream_user_data(session, frame->hd.stream_id);
    if (s && !s->whole && frame->hd.type == NGHTTP2_HEADERS && frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
    return 0;
}

static int close_stream(nghttp2_session *session, int32_t id, uint32_t code, void *connection)
{
    struct grpc_stream *s = nghttp2_session_get_stream_user_data(session, id);
    if (s)
        free_stream(s);
    return 0;
}

void http_grpc_connection_answer(struct grpc_work *w)
{
    w->stream->work = NULL;
    w->stream->c->has_answers = true;
    answer(w->stream, &w->call);
}

/* ---- connections ---- */

static bool begin_session(struct grpc_connection *c)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, c->server->o.max_streams},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, MOST_HEADER_BYTES},
    };
    if (nghttp2_session_callbacks_new(&callbacks))
        return false;
    if (nghttp2_option_new(&option)) {
        nghttp2_session_callbacks_del(callbacks);
        return false;
    }
    nghttp2_option_set_max_outbound_ack(option, 100);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, take_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, take_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, take_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, note_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, close_stream);
    int rc = nghttp2_session_server_new2(&c->session, callbacks, c, option);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return !rc && !nghttp2_submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, 3) &&
        !nghttp2_session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, CONNECTION_WINDOW_BYTES);
}

struct grpc_connection *http_grpc_connection_new(struct grpc_server *g, int fd)
{
    struct grpc_connection *c = mem_zalloc(sizeof *c);
    c->server = g;
    c->out = (struct text){.fd = -1};
    c->used_ns = time_monotonic_ns();
    if (!http_grpc_wire_open(&c->wire, fd, g->tls) && begin_session(c))
        return c;
    http_grpc_connection_free(c);
    return NULL;
}

void http_grpc_connection_free(struct grpc_connection *c)
{
    while (c->first)
        free_stream(c->first);
    nghttp2_session_del(c->session);
    http_grpc_wire_close(&c->wire);
    text_fini(&c->out);
    free(c);
}

/* False: the connection is over. */
static bool flush(struct grpc_connection *c)
{
    for (;;) {
        const uint8_t *data;
        if (c->sent < c->out.n) {
            long n = http_grpc_wire_write(&c->wire, c->out.v + c->sent, c->out.n - c->sent);
            if (!n && !c->stuck_ns)
                c->stuck_ns = time_monotonic_ns();
            if (n <= 0)
                return !n;
            c->sent += (size_t)n;
            c->stuck_ns = 0;
            continue;
        }
        c->out.n = c->sent = 0;
        ssize_t more = nghttp2_session_mem_send(c->session, &data);
        if (more <= 0)
            return !more;
        text_put(&c->out, (const char *)data, (size_t)more);
    }
}

bool http_grpc_connection_run(struct grpc_connection *c)
{
    uint8_t *in = c->server->in;
    int shaken = http_grpc_wire_shake(&c->wire);
    if (shaken <= 0)
        return !shaken;
    if (!flush(c))
        return false;
    /* Reading stops for a client that does not read its answers. */
    for (unsigned i = 0; c->sent == c->out.n && (i < READS_AT_ONCE || http_grpc_wire_pending(&c->wire)); i++) {
        long n = http_grpc_wire_read(&c->wire, in, GRPC_READ_BYTES);
        if (n < 0)
            return false;
        if (!n)
            break;
        if (nghttp2_session_mem_recv(c->session, in, (size_t)n) < 0) {
            flush(c); /* sends the reason */
            return false;
        }
        if (!flush(c))
            return false;
    }
    return c->sent < c->out.n || nghttp2_session_want_read(c->session) || nghttp2_session_want_write(c->session);
}

void http_grpc_connection_end(struct grpc_connection *c)
{
    if (!c->ending)
        nghttp2_submit_goaway(c->session, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(c->session),
            NGHTTP2_NO_ERROR, NULL, 0);
    c->ending = true;
}

bool http_grpc_connection_look(struct grpc_connection *c, int64_t now)
{
    const struct grpc_options *o = &c->server->o;
    int64_t timeout = o->timeout_s * NS_PER_S;
    if ((!c->begun && now - c->used_ns > timeout) || (c->stuck_ns && now - c->stuck_ns > timeout))
        return false;
    if (!c->wire.shaken)
        return true;
    for (struct grpc_stream *s = c->first; s; s = s->next)
        if (!s->whole && !s->answered &&
            now - s->begun_ns > timeout + (int64_t)(s->body.n / o->slowest_bytes_per_s) * NS_PER_S)
            refuse(s, GRPC_DEADLINE_EXCEEDED, "the call comes too slowly");
        else if (s->answered && now - s->answered_ns > timeout)
            nghttp2_submit_rst_stream(c->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL);
    if (!c->streams && now - c->used_ns > RESTS_FACTOR * timeout)
        http_grpc_connection_end(c);
    return flush(c) && !(c->ending && !c->streams && c->sent == c->out.n);
}
