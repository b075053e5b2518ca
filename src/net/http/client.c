/* SPDX-License-Identifier: MIT */
#include "http/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "base/wait.h"
#include "http/gzip.h"

enum {
    CONNECT_MS = 2000,
    ANSWER_MS = 30000,
    PER_HOST = 32,
    KEPT = 512,
    SMALL_HELD = 1 << 20,
    LARGEST = 1 << 30,
    FIRST_ROOM = 8 << 20,
    COUNTED_STEP = 1 << 20,
    READ_BYTES = 32 << 10,
    AT_REST = 64,
    EVENTS = 64,
    LONGEST_MS = 1000
};

struct http_client {
    struct gzip_packers *packers;
    CURLM *multi;
    int epoll, wake; /* epoll of the requests' sockets and of `wake`, an eventfd; nothing polls all of them again */
    int64_t due_ns;  /* time at which curl must be called in any case; INT64_MAX: none */
    CURL *at_rest[AT_REST];
    size_t n_at_rest; /* creating one costs a third of a small request */
    pthread_t thread;
    uint64_t max_held_bytes;
    atomic_uint_least64_t held;
    pthread_mutex_t lock;                  /* guards all below, and what gathers count */
    struct http_fetch *queue, **queue_end; /* requests to be started */
    struct http_gather *cancelled;         /* gathers whose requests are to be cancelled */
    bool stopping;
};

/* ---- requests, in the client's thread ---- */

/* Memory of a body. Allocated space that was never written takes no memory. */
static uint64_t holds(const struct text *body)
{
    size_t came = (body->n / COUNTED_STEP + 1) * COUNTED_STEP;
    return came < body->cap ? came : body->cap;
}

/* Counts what an answer holds. It fails if all answers together hold too much, and not this one alone. */
static void hold(struct http_client *c, struct http_fetch *f)
{
    struct http_gather *g = f->gather;
    uint64_t now = holds(&f->body), more = now - f->held, all = atomic_fetch_add(&c->held, more) + more,
             own = atomic_fetch_add(&g->held, more) + more;
    f->held = now;
    g->most_held = own > g->most_held ? own : g->most_held;
    if (own <= SMALL_HELD || all <= c->max_held_bytes || all == now)
        return;
    if (own > c->max_held_bytes)
        err_set(&f->error, ERR_LIMIT, "the servers' answers together are too large; ask for less");
    else
        err_set(&f->error, ERR_BUSY, "answers of servers hold too much memory at once; try again");
}

static void drop_body(struct http_client *c, struct http_fetch *f)
{
    text_fini(&f->body);
    f->body = (struct text){.fd = -1};
    atomic_fetch_sub(&c->held, f->held);
    atomic_fetch_sub(&f->gather->held, f->held);
    f->held = 0;
}

/* Space to allocate: the whole answer, if its length is given. Copying a growing answer, and memory of which half is
 * unused, cost more than receiving it. A server that only claims a length gets no more than eight times what it has
 * sent. */
static size_t next_room(const struct http_fetch *f, size_t n)
{
    curl_off_t told = -1;
    const size_t has = f->body.cap, need = f->body.n + n + 1;
    curl_easy_getinfo(f->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &told);
    size_t whole = told < 0 ? 0 : (size_t)told + 1;
    if (whole > (has ? 8 * has : 2 * FIRST_ROOM))
        whole = has ? 4 * has : FIRST_ROOM;
    return (whole > need ? whole : need) - f->body.n;
}

/* Allocates space for n more bytes and a terminator. */
static bool make_room(struct http_fetch *f, size_t n)
{
    return f->body.cap - f->body.n > n || text_try_grow(&f->body, next_room(f, n)) || text_try_grow(&f->body, n + 1);
}

static size_t on_body(char *data, size_t size, size_t n, void *fetch)
{
    struct http_fetch *f = fetch;
    n *= size;
    f->received += n;
    if (f->received > (f->max_bytes ? f->max_bytes : LARGEST)) {
        err_set(&f->error, ERR_LIMIT, "the answer is too large");
    } else if (f->take) {
        if (!f->take(f->arg, data, n))
            err_set(&f->error, ERR_CANCELLED, "cancelled");
    } else if (!make_room(f, n)) {
        err_set(&f->error, ERR_NOMEM, "there is no memory for the answer");
    } else {
        text_put(&f->body, data, n);
        hold(f->gather->client, f);
    }
    if (f->error.code)
        drop_body(f->gather->client, f); /* freed at once, so that others can continue */
    return f->error.code ? 0 : n;
}

static void add_header(struct curl_slist **list, const char *line)
{
    struct curl_slist *more = curl_slist_append(*list, line);
    *list = more ? more : *list;
}

static void set_question(struct http_fetch *f, CURL *easy)
{
    struct curl_slist *headers = NULL;
    if (f->json) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        struct text type = {.fd = -1};
        bool packed = f->packs && http_gzip_pack(f->gather->client->packers, f->json, f->json_bytes, &f->packed);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, packed ? f->packed.v : f->json);
        curl_easy_setopt(
            easy, CURLOPT_POSTFIELDSIZE_LARGE, packed ? (curl_off_t)f->packed.n : (curl_off_t)f->json_bytes);
        text_printf(&type, "Content-Type: %s", f->type ? f->type : "application/json");
        add_header(&headers, text_cstr(&type));
        text_fini(&type);
        if (packed)
            add_header(&headers, "Content-Encoding: gzip");
        add_header(&headers, "Expect:"); /* avoids a useless round trip */
    }
    if (f->token) {
        struct text line = {.fd = -1};
        text_printf(&line, "Authorization: Bearer %s", f->token);
        add_header(&headers, text_cstr(&line));
        text_fini(&line);
    }
    if (f->header)
        add_header(&headers, f->header);
    if (!strcmp(f->method, "HEAD"))
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, f->method);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    f->headers = headers;
}

static CURL *make_easy(struct http_fetch *f)
{
    struct http_client *c = f->gather->client;
    CURL *easy = c->n_at_rest ? c->at_rest[--c->n_at_rest] : curl_easy_init();
    if (!easy)
        return NULL;
    curl_easy_setopt(easy, CURLOPT_PRIVATE, f);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2); /* least version */
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_URL, f->url);
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(f->connect_ms ? f->connect_ms : CONNECT_MS));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(f->answer_ms ? f->answer_ms : ANSWER_MS));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, f);
    curl_easy_setopt(easy, CURLOPT_BUFFERSIZE, (long)READ_BYTES);
    if (f->anew)
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
    if (f->ca_file)
        curl_easy_setopt(easy, CURLOPT_CAINFO, f->ca_file);
    set_question(f, easy);
    return easy;
}

/* Sets the error's text, for the operator of the coordinator. */
static void explain(struct http_fetch *f, CURLcode rc)
{
    long ms = (long)(f->answer_ms ? f->answer_ms : ANSWER_MS);
    if (f->error.code)
        return; /* ended by its own limits */
    switch (rc) {
    case CURLE_OPERATION_TIMEDOUT:
        err_set(&f->error, ERR_TIMEOUT, "no answer in %ld.%ld s", ms / 1000, ms % 1000 / 100);
        break;
    case CURLE_COULDNT_CONNECT: err_set(&f->error, ERR_IO, "nobody answers there"); break;
    case CURLE_COULDNT_RESOLVE_HOST: err_set(&f->error, ERR_IO, "no machine has that name"); break;
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_PARTIAL_FILE: err_set(&f->error, ERR_IO, "the connection broke"); break;
    default: err_set(&f->error, ERR_IO, "%s", curl_easy_strerror(rc));
    }
}

static void end_easy(struct http_client *c, CURL *easy)
{
    if (c->n_at_rest < AT_REST) {
        curl_easy_reset(easy);
        c->at_rest[c->n_at_rest++] = easy;
    } else {
        curl_easy_cleanup(easy);
    }
}

/* Releases the request; its owner may free it at once. */
static void finish(struct http_client *c, struct http_fetch *f)
{
    struct http_gather *g = f->gather;
    if (f->easy) {
        curl_multi_remove_handle(c->multi, f->easy);
        end_easy(c, f->easy);
        curl_slist_free_all(f->headers);
        text_fini(&f->packed);
        f->easy = f->headers = NULL;
    }
    if (f->error.code)
        drop_body(c, f); /* a truncated answer is not used */
    pthread_mutex_lock(&c->lock);
    atomic_store(&f->done, true);
    if (!--g->pending)
        pthread_cond_signal(&g->changed); /* waiters wait for the last one */
    pthread_mutex_unlock(&c->lock);
}

static void begin(struct http_client *c, struct http_fetch *f)
{
    if (atomic_load(&f->gather->cancelled))
        err_set(&f->error, ERR_CANCELLED, "cancelled");
    else if (!(f->easy = make_easy(f)) || curl_multi_add_handle(c->multi, f->easy) != CURLM_OK)
        err_set(&f->error, ERR_NOMEM, "there is no memory for another request");
    if (f->error.code)
        finish(c, f);
}

/* ---- the client's thread ---- */

static void note_connection(struct http_fetch *f)
{
    long made = 0;
    curl_socket_t its = CURL_SOCKET_BAD;
    f->by_kept = curl_easy_getinfo(f->easy, CURLINFO_NUM_CONNECTS, &made) == CURLE_OK && !made;
    if (f->holds && curl_easy_getinfo(f->easy, CURLINFO_ACTIVESOCKET, &its) == CURLE_OK && its != CURL_SOCKET_BAD)
        f->connection = fcntl(its, F_DUPFD_CLOEXEC, 0);
}

static void end_finished(struct http_client *c)
{
    int left;
    for (CURLMsg *m; (m = curl_multi_info_read(c->multi, &left));) {
        struct http_fetch *f;
        long status = 0;
        CURLcode rc = m->data.result;
        if (m->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &f);
        curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        f->status = (int)status;
        curl_off_t after = 0;
        if (curl_easy_getinfo(m->easy_handle, CURLINFO_RETRY_AFTER, &after) == CURLE_OK)
            f->retry_after_s = (long)after;
        struct curl_header *warning;
        if (curl_easy_header(m->easy_handle, "Warning", 0, CURLH_HEADER, -1, &warning) == CURLHE_OK)
            snprintf(f->warning, sizeof f->warning, "%s", warning->value);
        if (rc != CURLE_OK)
            explain(f, rc);
        else
            note_connection(f);
        finish(c, f);
    }
}

static void give_up(struct http_client *c, struct http_gather *g)
{
    for (struct http_fetch *f = g->first, *next; f; f = next) {
        next = f->next;
        if (atomic_load(&f->done) || !f->easy)
            continue;
        err_set(&f->error, ERR_CANCELLED, "cancelled");
        finish(c, f);
    }
    pthread_mutex_lock(&c->lock);
    g->pending--;
    pthread_cond_signal(&g->changed);
    pthread_mutex_unlock(&c->lock);
}

/* Starts queued requests and cancels gathers; false: the client stops. */
static bool take_orders(struct http_client *c)
{
    pthread_mutex_lock(&c->lock);
    struct http_fetch *queue = c->queue;
    struct http_gather *cancelled = c->cancelled;
    bool go_on = !c->stopping;
    c->queue = NULL;
    c->queue_end = &c->queue;
    c->cancelled = NULL;
    pthread_mutex_unlock(&c->lock);
    for (struct http_fetch *next; queue; queue = next) {
        next = queue->next_queued;
        begin(c, queue);
    }
    for (struct http_gather *next; cancelled; cancelled = next) {
        next = cancelled->next_cancelled;
        give_up(c, cancelled);
    }
    return go_on;
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *client, void *is_watched)
{
    struct http_client *c = client;
    struct epoll_event e = {
        .events = (what & CURL_POLL_IN ? EPOLLIN : 0) | (what & CURL_POLL_OUT ? EPOLLOUT : 0), .data.fd = fd};
    if (what == CURL_POLL_REMOVE) {
        epoll_ctl(c->epoll, EPOLL_CTL_DEL, fd, NULL); /* fails if the socket was closed */
        return 0;
    }
    int rc = epoll_ctl(c->epoll, is_watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &e);
    curl_multi_assign(c->multi, fd, c);
    return rc;
}

static int on_timer(CURLM *multi, long ms, void *client)
{
    struct http_client *c = client;
    c->due_ns = ms < 0 ? INT64_MAX : time_monotonic_ns() + ms * INT64_C(1000000);
    return 0;
}

/* Waits for events or the next deadline. curl checks only the sockets concerned, not all open requests. */
static void wait_for_sockets(struct http_client *c)
{
    struct epoll_event e[EVENTS];
    int64_t left = c->due_ns - time_monotonic_ns();
    int running,
        ms = left <= 0                         ? 0
        : left < LONGEST_MS * INT64_C(1000000) ? (int)((left + 999999) / 1000000)
                                               : LONGEST_MS;
    int n = epoll_wait(c->epoll, e, EVENTS, ms);
    for (int i = 0; i < n; i++) {
        eventfd_t times;
        if (e[i].data.fd == c->wake)
            eventfd_read(c->wake, &times);
        else
            curl_multi_socket_action(c->multi, e[i].data.fd,
                (e[i].events & EPOLLIN ? CURL_CSELECT_IN : 0) | (e[i].events & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                    (e[i].events & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0),
                &running);
    }
    if (c->due_ns <= time_monotonic_ns()) {
        c->due_ns = INT64_MAX;
        curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    }
}

static void *run(void *client)
{
    struct http_client *c = client;
    while (take_orders(c)) {
        wait_for_sockets(c);
        end_finished(c);
    }
    return NULL;
}

static void wake(struct http_client *c)
{
    eventfd_write(c->wake, 1);
}

/* Frees a client whose thread does not run. */
static void free_client(struct http_client *c)
{
    while (c->n_at_rest)
        curl_easy_cleanup(c->at_rest[--c->n_at_rest]);
    curl_multi_cleanup(c->multi);
    if (c->epoll >= 0)
        close(c->epoll);
    if (c->wake >= 0)
        close(c->wake);
    http_gzip_packers_free(c->packers);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static bool watch(struct http_client *c, const struct http_client_options *o)
{
    struct epoll_event woken = {.events = EPOLLIN, .data.fd = c->wake};
    if (!c->multi || c->epoll < 0 || c->wake < 0 || epoll_ctl(c->epoll, EPOLL_CTL_ADD, c->wake, &woken))
        return false;
    curl_multi_setopt(c->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)(o->max_per_host ? o->max_per_host : PER_HOST));
    curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, (long)KEPT);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
    return true;
}

int http_client_start(const struct http_client_options *o, struct http_client **out, struct err *e)
{
    struct http_client *c = mem_zalloc(sizeof *c);
    static pthread_mutex_t global = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&global); /* curl_global_init is not thread-safe */
    CURLcode ready = curl_global_init(CURL_GLOBAL_DEFAULT);
    pthread_mutex_unlock(&global);
    pthread_mutex_init(&c->lock, NULL);
    c->packers = http_gzip_packers_new(1);
    c->queue_end = &c->queue;
    c->max_held_bytes = o->max_held_bytes ? o->max_held_bytes : 512 << 20;
    c->due_ns = INT64_MAX;
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    c->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->multi = ready == CURLE_OK ? curl_multi_init() : NULL;
    int rc = watch(c, o) ? pthread_create(&c->thread, NULL, run, c) : ENOMEM;
    if (rc) {
        free_client(c);
        errno = rc;
        return err_sys(e, "cannot start the HTTP client");
    }
    *out = c;
    return 0;
}

void http_client_stop(struct http_client *c)
{
    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_mutex_unlock(&c->lock);
    wake(c);
    pthread_join(c->thread, NULL);
    free_client(c);
}

/* ---- gathers ---- */

void http_gather_begin(struct http_gather *g, struct http_client *c)
{
    *g = (struct http_gather){.client = c};
    wait_init(&g->changed);
}

void http_gather_add(struct http_gather *g, struct http_fetch *f)
{
    struct http_client *c = g->client;
    f->gather = g;
    f->body.fd = f->packed.fd = f->connection = -1;
    pthread_mutex_lock(&c->lock);
    bool asleep = !c->queue; /* queue not empty: the thread is woken already, and has not looked yet */
    f->next = g->first;
    g->first = f;
    g->pending++;
    f->next_queued = NULL;
    *c->queue_end = f;
    c->queue_end = &f->next_queued;
    pthread_mutex_unlock(&c->lock);
    if (asleep)
        wake(c);
}

bool http_gather_wait(struct http_gather *g, int64_t until_ns)
{
    struct http_client *c = g->client;
    pthread_mutex_lock(&c->lock);
    while (g->pending && wait_until(&g->changed, &c->lock, until_ns))
        ;
    bool all = !g->pending;
    pthread_mutex_unlock(&c->lock);
    return all;
}

void http_gather_end(struct http_gather *g)
{
    struct http_client *c = g->client;
    pthread_mutex_lock(&c->lock);
    if (g->pending) {
        g->pending++; /* keeps the gather until the client's thread has handled it */
        atomic_store(&g->cancelled, true);
        g->next_cancelled = c->cancelled;
        c->cancelled = g;
        wake(c);
    }
    while (g->pending)
        pthread_cond_wait(&g->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    for (struct http_fetch *f = g->first; f; f = f->next) {
        drop_body(c, f);
        if (f->connection >= 0)
            close(f->connection);
        f->connection = -1;
    }
    pthread_cond_destroy(&g->changed);
}

bool http_connection_lives(int connection)
{
    struct pollfd p = {.fd = connection, .events = POLLRDHUP};
    return poll(&p, 1, 0) == 0; /* interrupted: counts as ended, to be safe */
}
