/* SPDX-License-Identifier: MIT */
#include "http/http.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/file.h"
#include "base/large.h"
#include "base/pool.h"
#include "base/time.h"
#include "http/connection.h"
#include "http/gzip.h"
#include "http/head.h"
#include "http/listen.h"
#include "http/pages.h"

enum {
    PATIENCE_BYTES = 256 << 20,
    STACK_BYTES = 2 << 20,
    BODY_STEP = 256 << 10,
    SMALL_BODY = 1 << 20,
    KEPT_BYTES = 128 << 20
};

/* ---- requests ---- */

static bool is_public(const struct http_connection *c)
{
    const char *path = c->server->o.public_path;
    return path && !strcmp(c->request.path, path);
}

static bool authorised(const struct http_connection *c)
{
    const struct http_options *o = &c->server->o;
    const char *a = http_connection_header(c, "Authorization");
    if (!o->token || !strcmp(c->request.method, "OPTIONS") || is_public(c) ||
        (o->token_prefix && strncmp(c->request.path, o->token_prefix, strlen(o->token_prefix))))
        return true;
    return a && http_page_token_fits(a, o->token);
}

/* True: the Host header names this server. A page of another site may make a browser send requests here under a name
 * that resolves to this machine (DNS rebinding); the Host header shows it. A page never has the token. */
static bool host_fits(const struct http_connection *c, const char *host)
{
    const struct http_options *o = &c->server->o;
    return o->token || http_page_host_is_own(host, o->listen, o->hosts);
}

/* Status of the refusal that follows from the head alone; 0: none. */
static int refusal(struct http_connection *c, const char *method, const char *version, bool upload)
{
    int malformed = http_head_refusal(c->mhd, method, version, &c->line, &c->why);
    c->closes = malformed != 0;
    if (malformed)
        return malformed;
    const struct page_head h = {.method = c->request.method,
        .host = http_connection_header(c, "Host"),
        .origin = http_connection_header(c, "Origin"),
        .site = http_connection_header(c, "Sec-Fetch-Site"),
        .mode = http_connection_header(c, "Sec-Fetch-Mode")};
    if (h.host && !http_page_host_is_sound(h.host))
        return 400;
    if (h.host && !host_fits(c, h.host)) {
        c->why = arena_printf(&c->arena,
            "This server does not answer to the host name of \"%s\": ask by its address, or start it with --host NAME",
            h.host);
        return 421;
    }
    enum http_page_rights rights = http_page_rights(&h, c->server->o.origins);
    c->request.only_asks = rights == PAGE_ASKS;
    if (rights == PAGE_NONE || (upload && rights == PAGE_ASKS))
        return 403;
    return authorised(c) ? 0 : 401;
}

static void begin_upload(struct http_connection *c)
{
    char *path = arena_printf(&c->arena, "%s/" HTTP_BODY_PREFIX "XXXXXX", c->server->o.upload_dir);
    c->file = mkostemp(path, O_CLOEXEC);
    if (c->file < 0)
        c->refused = 507;
    else
        c->request.body_file = path;
}

/* Called when the first line of a request has arrived. */
static void *on_line(void *server, const char *uri, struct MHD_Connection *mhd)
{
    mem_begin();
    struct http_connection *c = mem_zalloc(sizeof *c);
    c->server = server;
    c->line = http_head_line_of(uri);
    c->file = -1;
    c->body.fd = -1;
    return c;
}

/* Admits the connection. Those beyond the limit wait for a place before anything of their bodies is read. A request
 * that is answered at the door is the only one of its connection. */
static void let_in(struct http_connection *c)
{
    struct peers *peers = c->server->peers;
    if (!c->peer)
        return;
    if (!c->refused && !is_public(c) && !http_peer_enter(peers, c->peer)) {
        c->refused = 503;
        c->why = "The server has too many connections";
    }
    c->closes |= !http_peer_is_in(peers, c->peer);
}

static void begin_request(
    struct http_connection *c, struct MHD_Connection *mhd, const char *url, const char *method, const char *version)
{
    struct http_server *s = c->server;
    const union MHD_ConnectionInfo *peer = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    mem_begin();
    c->mhd = mhd;
    c->peer = peer ? peer->socket_context : NULL;
    const char *type = http_connection_header(c, "Content-Type");
    c->request = (struct http_request){.method = arena_strdup(&c->arena, method),
        .path = arena_strdup(&c->arena, url),
        .body = "",
        .content_type = type ? arena_strdup(&c->arena, type) : "",
        .arena = &c->work,
        .connection = c};
    const char *length = http_connection_header(c, "Content-Length");
    bool upload = s->o.upload_path && !strcmp(url, s->o.upload_path) &&
        (!strcmp(method, "POST") || !strcmp(method, "PUT"));
    uint64_t limit = upload ? s->o.max_upload_bytes : s->o.max_body_bytes;
    uint64_t claimed = length ? strtoull(length, NULL, 10) : BODY_STEP;
    c->refused = refusal(c, method, version, upload);
    let_in(c);
    c->framing.head_end = http_head_chunks(mhd, method);
    c->closes |= c->framing.head_end != NULL;
    http_connection_awaits(c, claimed < BODY_STEP ? claimed : BODY_STEP);
    if (!c->refused && length && claimed > limit)
        c->refused = 413;
    else if (!c->refused && upload)
        begin_upload(c);
}

static void count_body(struct http_connection *c)
{
    struct http_server *s = c->server;
    uint64_t more = c->body.cap - c->body_bytes, all = atomic_fetch_add(&s->body_bytes, more) + more;
    c->body_bytes = c->body.cap;
    if (!c->refused && all > s->o.max_bodies_bytes && all != c->body_bytes && c->body.n > SMALL_BODY)
        c->refused = 503;
}

static void free_body(struct http_connection *c)
{
    text_fini(&c->body);
    c->body = (struct text){.fd = -1};
    count_body(c);
}

static void refuse_body(struct http_connection *c, const char *why)
{
    if (c->refused)
        return;
    c->refused = 400;
    c->why = why;
    c->closes = true;
    free_body(c);
}

/* False: the client keeps sending what was refused long ago, and gets no answer. */
static bool take_body(struct http_connection *c, const char *data, size_t n)
{
    const struct http_options *o = &c->server->o;
    uint64_t limit = c->file >= 0 ? o->max_upload_bytes : o->max_body_bytes;
    if (!http_framing_take(&c->framing, data, n))
        refuse_body(c, "A line between the chunks of the body does not end with CR LF");
    c->received += n;
    if (c->file >= 0)
        http_connection_awaits(c, 0);
    else if (c->received / BODY_STEP != (c->received - n) / BODY_STEP)
        http_connection_awaits(c, BODY_STEP);
    if (c->refused)
        return c->received < limit + PATIENCE_BYTES;
    if (c->received > limit) {
        c->refused = 413;
        return true;
    }
    if (c->file < 0) {
        text_put(&c->body, data, n);
        count_body(c);
        if (c->refused)
            free_body(c);
        return true;
    }
    for (size_t done = 0; done < n && !c->refused;) {
        ssize_t w = write(c->file, data + done, n - done);
        if (w < 0 && errno != EINTR)
            c->refused = 507;
        else if (w > 0)
            done += (size_t)w;
    }
    return true;
}

/* Refills the memory reserve. Once no handler runs but the caller's, it also uses memory that is kept for speed. */
static bool recover(struct http_server *s, unsigned own)
{
    if (mem_recover())
        return true;
    bool alone = http_lanes_running(&s->lanes) <= own;
    if (alone && s->o.give_memory)
        s->o.give_memory(s->arg);
    return alone && mem_recover();
}

static enum lane lane_of(struct http_connection *c)
{
    const struct http_server *s = c->server;
    if (c->file >= 0)
        return LANE_UPLOADS;
    bool small = s->o.is_small && s->o.is_small(&c->request);
    arena_fini(&c->work); /* a request that waits for a place, perhaps in vain, holds nothing */
    return small ? LANE_SMALL : LANE_LARGE;
}

static void run_handler(struct http_connection *c)
{
    struct http_server *s = c->server;
    struct http_request *q = &c->request;
    q->body_bytes = c->body.n;
    q->body = text_cstr(&c->body);
    if (c->file < 0)
        c->deadline_ns = c->begun_ns + (int64_t)s->o.max_handler_s * 1000000000;
    s->handler(s->arg, q);
    q->making = NULL;
    http_connection_may_hold(c, 0);
}

static bool has_left(void *connection)
{
    return http_connection_hung_up(connection);
}

static enum MHD_Result answer(struct http_connection *c)
{
    static const char *const no_entry[] = {[LANE_STOPS] = "The server stops",
        [LANE_FULL] = "Too many uploads wait to be unpacked",
        [LANE_LEFT] = "The client has hung up"};
    struct http_server *s = c->server;
    struct http_request *q = &c->request;
    c->asked_ns = time_monotonic_ns();
    static const struct {
        int status;
        const char *why;
    } reasons[] = {{400, "The Host header is not one host"}, {501, "Not implemented"},
        {401, "A token is needed: Authorization: Bearer"},
        {403, "Pages of other sites may not do that; the server can be told to let them, by --cors ORIGIN"},
        {413, "The body is too large"}, {421, "This server does not answer to that host name"},
        {503, "Too many bodies at once"}, {507, "The upload cannot be stored"}};
    for (size_t i = 0; c->refused && i < sizeof reasons / sizeof *reasons; i++)
        if (reasons[i].status == c->refused)
            return http_connection_refuse(c, c->refused, c->why ? c->why : reasons[i].why), c->result;
    if (!strcmp(q->method, "OPTIONS")) {
        http_connection_send_nothing(c);
        return c->result;
    }
    if (c->peer)
        http_peer_rests(s->peers, c->peer);
    bool waits = !is_public(c);
    enum lane lane = waits ? lane_of(c) : LANES;
    enum lane_entry entry = waits ? http_lanes_take(&s->lanes, lane, has_left, c) : LANE_ENTERED;
    if (entry != LANE_ENTERED)
        return http_connection_refuse(c, 503, no_entry[entry]), c->result;
    c->begun_ns = time_monotonic_ns();
    mem_begin();
    if (!waits || recover(s, 1))
        run_handler(c);
    else
        http_connection_lacks_memory(c);
    arena_fini(&c->work);
    if (waits)
        http_lanes_leave(&s->lanes, lane);
    if (!c->replied)
        http_connection_refuse(c, 500, "No answer");
    return c->result;
}

/* True: the rest of a body that is too large, but not absurdly so, is read and dropped before the answer. A client that
 * is still sending when the answer arrives sees a broken connection instead. Not if the client waits for "100
 * Continue". */
static bool is_worth_draining(const struct http_connection *c)
{
    const char *length = http_connection_header(c, "Content-Length");
    return c->refused == 413 && !http_connection_header(c, "Expect") && length &&
        strtoull(length, NULL, 10) < PATIENCE_BYTES;
}

static enum MHD_Result on_request(void *arg, struct MHD_Connection *mhd, const char *url, const char *method,
    const char *version, const char *data, size_t *n, void **state)
{
    struct http_connection *c = *state;
    if (!c->mhd) {
        begin_request(c, mhd, url, method, version);
        return c->refused && !is_worth_draining(c) ? answer(c) : MHD_YES;
    }
    if (*n) {
        bool go_on = take_body(c, data, *n);
        *n = 0;
        return go_on ? MHD_YES : MHD_NO;
    }
    if (c->replied)
        return MHD_YES;
    if (http_head_has_trailer(mhd))
        refuse_body(c, "Fields behind the body (trailers) are not taken");
    return answer(c);
}

static void on_completed(void *arg, struct MHD_Connection *mhd, void **state, enum MHD_RequestTerminationCode code)
{
    struct http_connection *c = *state;
    if (!c)
        return;
    http_connection_awaits(c, 0);
    if (c->file >= 0) {
        close(c->file);
        unlink(c->request.body_file);
    }
    atomic_fetch_sub(&c->server->waiting_bytes, c->waiting_bytes);
    struct http_server *s = c->server;
    free_body(c);
    arena_fini(&c->arena);
    free(c);
    *state = NULL;
    if (atomic_load_explicit(&mem_is_short, memory_order_relaxed))
        recover(s, 0);
}

/* Replaces NULs from the client: they would cut the terminated texts that handlers get. */
static size_t unescape(void *arg, struct MHD_Connection *mhd, char *s)
{
    size_t n = MHD_http_unescape(s);
    for (size_t i = 0; i < n; i++)
        s[i] = s[i] ? s[i] : '\1';
    return n;
}

static void on_connection(void *arg, struct MHD_Connection *mhd, void **peer, enum MHD_ConnectionNotificationCode code)
{
    struct http_server *s = arg;
    const union MHD_ConnectionInfo *fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (code == MHD_CONNECTION_NOTIFY_STARTED && fd)
        *peer = http_peers_add(s->peers, fd->connect_fd);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED && *peer) {
        http_peers_remove(s->peers, *peer);
        *peer = NULL;
    }
}

/* ---- start and stop ---- */

#if MHD_VERSION >= 0x00097601
#define STRICT MHD_OPTION_CLIENT_DISCIPLINE_LVL, 1
#else
#define STRICT MHD_OPTION_STRICT_FOR_CLIENT, 1
#endif

static int start_daemon(struct http_server *s, int fd, struct err *e)
{
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL;
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, s->cert}, {MHD_OPTION_HTTPS_MEM_KEY, 0, s->key},
        {MHD_OPTION_HTTPS_PRIORITIES, 0, HTTP_TLS}, {MHD_OPTION_END, 0, NULL}};
    struct MHD_OptionItem none[] = {{MHD_OPTION_END, 0, NULL}};
    if (s->cert)
        flags |= MHD_USE_TLS;
    s->daemon = MHD_start_daemon(flags, 0, NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
        MHD_OPTION_CONNECTION_LIMIT, s->o.max_connections + PEERS_AT_DOOR, MHD_OPTION_CONNECTION_TIMEOUT,
        s->o.timeout_s, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_URI_LOG_CALLBACK, on_line, s, STRICT,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_ARRAY, s->cert ? tls : none, MHD_OPTION_END);
    return s->daemon ? 0
                     : err_set(e, ERR_IO, "cannot start the HTTP server on %s%s", s->address,
                           s->cert ? " (are certificate and key a pair in PEM form?)" : "");
}

static void free_server(struct http_server *s)
{
    http_lanes_fini(&s->lanes);
    http_peers_free(s->peers);
    http_gzip_packers_free(s->packers);
    free(s->cert);
    free(s->key);
    free(s);
}

int http_server_start(
    const struct http_options *o, http_handler *handler, void *arg, struct http_server **out, struct err *e)
{
    struct http_server *s = mem_zalloc(sizeof *s);
    size_t n;
    int fd = -1, rc = 0;
    s->o = *o;
    s->handler = handler;
    s->arg = arg;
    s->o.max_body_bytes = o->max_body_bytes ? o->max_body_bytes : 1 << 20;
    s->o.max_connections = o->max_connections ? o->max_connections : 2048;
    s->o.max_handlers = o->max_handlers ? o->max_handlers : pool_cpus() > 2 ? pool_cpus() * 4 : 8;
    s->o.timeout_s = o->timeout_s ? o->timeout_s : 60;
    s->o.slowest_bytes_per_s = o->slowest_bytes_per_s ? o->slowest_bytes_per_s : 16384;
    s->o.max_handler_s = o->max_handler_s ? o->max_handler_s : 120;
    s->o.max_waiting_bytes = o->max_waiting_bytes ? o->max_waiting_bytes : 256 << 20;
    s->o.max_held_bytes = o->max_held_bytes ? o->max_held_bytes : 256 << 20;
    s->o.max_bodies_bytes = o->max_bodies_bytes ? o->max_bodies_bytes : 256 << 20;
    http_lanes_init(&s->lanes, s->o.max_handlers);
    s->packers = http_gzip_packers_new(s->o.max_handlers);
    s->peers = http_peers_new(s->o.max_connections, s->o.timeout_s, s->o.slowest_bytes_per_s);
    if (!o->tls_cert != !o->tls_key)
        rc = err_set(e, ERR_ARG, "--tls-cert and --tls-key go together");
    else if (o->tls_cert && !(rc = file_read(o->tls_cert, 1 << 20, &s->cert, &n, e)))
        rc = file_read(o->tls_key, 1 << 20, &s->key, &n, e);
    if (!rc && !(rc = http_listen_on(s->o.listen, s->address, sizeof s->address, s->cert != NULL, &fd, e)) &&
        (rc = start_daemon(s, fd, e)))
        close(fd);
    if (rc) {
        free_server(s);
        return rc;
    }
    large_keep(KEPT_BYTES);
    *out = s;
    return 0;
}

const char *http_server_address(const struct http_server *s)
{
    return s->address;
}

void http_server_stop(struct http_server *s)
{
    if (!s)
        return;
    atomic_store(&s->stopping, true);
    http_lanes_stop(&s->lanes);
    http_peers_stop(s->peers);
    MHD_stop_daemon(s->daemon);
    large_keep(0);
    free_server(s);
}
