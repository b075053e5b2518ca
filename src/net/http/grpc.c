/* SPDX-License-Identifier: MIT */
/* gRPC server: start, stop, the thread of the connections, and the threads that run the handler. */
#include "http/grpc.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "http/grpc_frame.h"
#include "http/grpc_parts.h"
#include "http/listen.h"

enum { WORKERS = 4, MOST_IN_WORK = 1024, LOOK_MS = 250, EVENTS = 64, PATIENCE_S = 5 };

/* ---- handlers ---- */

void http_grpc_work_free(struct grpc_server *g, struct grpc_work *w)
{
    atomic_fetch_sub(&g->bodies_bytes, w->body.n);
    text_fini(&w->body);
    text_fini(&w->call.reply);
    text_fini(&w->call.details);
    free(w->path);
    free(w);
}

bool http_grpc_work_queue(struct grpc_server *g, struct grpc_work *w)
{
    pthread_mutex_lock(&g->lock);
    bool may = g->in_work < MOST_IN_WORK;
    if (may) {
        g->in_work++;
        *g->queue_end = w;
        g->queue_end = &w->next;
        pthread_cond_signal(&g->change);
    }
    pthread_mutex_unlock(&g->lock);
    return may;
}

static void run_work(struct grpc_server *g, struct grpc_work *w)
{
    struct text unpacked = {.fd = -1};
    struct err e = {0};
    w->call.path = w->path ? w->path : "";
    if (atomic_load(&w->given_up))
        return;
    w->call.status = http_grpc_frame_message(
        w->body.v, w->body.n, w->gzip, g->o.max_message_bytes, &unpacked, &w->call, &e);
    if (w->call.status)
        snprintf(w->call.why, sizeof w->call.why, "%s", e.text);
    else
        g->handler(g->arg, &w->call);
    text_fini(&unpacked);
}

static void wake(struct grpc_server *g)
{
    ssize_t n = write(g->event_fd, &(uint64_t){1}, sizeof(uint64_t));
    (void)n; /* fails only if the thread will look anyway */
}

static void *work(void *arg)
{
    struct grpc_server *g = arg;
    pthread_mutex_lock(&g->lock);
    for (;;) {
        struct grpc_work *w = g->queue;
        if (!w && g->stop_workers)
            break;
        if (!w) {
            pthread_cond_wait(&g->change, &g->lock);
            continue;
        }
        g->queue = w->next;
        if (!g->queue)
            g->queue_end = &g->queue;
        pthread_mutex_unlock(&g->lock);
        run_work(g, w);
        pthread_mutex_lock(&g->lock);
        w->next = g->done;
        g->done = w;
        wake(g);
    }
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* ---- connections ---- */

static void drop(struct grpc_server *g, struct grpc_connection *c)
{
    if (c->previous)
        c->previous->next = c->next;
    else
        g->first = c->next;
    if (c->next)
        c->next->previous = c->previous;
    g->connections--;
    /* Removal from epoll. A forked child may have the socket, too; closing it here alone would not end its events. */
    epoll_ctl(g->epoll_fd, EPOLL_CTL_DEL, c->wire.fd, NULL);
    http_grpc_connection_free(c);
}

/* Sets the events that epoll watches, from what the connection waits for. */
static void watch(struct grpc_connection *c)
{
    bool writes = c->sent < c->out.n || c->wire.wants_write;
    uint32_t events = writes ? EPOLLOUT : EPOLLIN;
    if (events != c->events) {
        struct epoll_event ev = {.events = events, .data.ptr = c};
        epoll_ctl(c->server->epoll_fd, EPOLL_CTL_MOD, c->wire.fd, &ev);
        c->events = events;
    }
}

static void run(struct grpc_server *g, struct grpc_connection *c)
{
    if (http_grpc_connection_run(c))
        watch(c);
    else
        drop(g, c);
}

/* Drops the connection that has had no call for longest. */
static bool drop_idlest(struct grpc_server *g)
{
    struct grpc_connection *idlest = NULL;
    for (struct grpc_connection *c = g->first; c; c = c->next)
        if (!c->streams && (!idlest || c->used_ns < idlest->used_ns))
            idlest = c;
    if (idlest)
        drop(g, idlest);
    return idlest;
}

static void listen_again(struct grpc_server *g, bool hear)
{
    struct epoll_event ev = {.events = hear ? EPOLLIN : 0, .data.ptr = &g->listen_fd};
    epoll_ctl(g->epoll_fd, EPOLL_CTL_MOD, g->listen_fd, &ev);
    g->deaf = !hear;
}

static void take_connection(struct grpc_server *g)
{
    int fd = accept4(g->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED && !drop_idlest(g))
            listen_again(g, false);
        return;
    }
    if (g->connections >= g->o.max_connections && !drop_idlest(g)) {
        close(fd);
        return;
    }
    struct grpc_connection *c = http_grpc_connection_new(g, fd);
    if (!c)
        return;
    c->next = g->first;
    if (c->next)
        c->next->previous = c;
    g->first = c;
    g->connections++;
    c->events = EPOLLIN;
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
    if (epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, fd, &ev))
        drop(g, c);
    else
        run(g, c);
}

static void take_answers(struct grpc_server *g)
{
    uint64_t ignored;
    ssize_t n = read(g->event_fd, &ignored, sizeof ignored);
    (void)n;
    pthread_mutex_lock(&g->lock);
    struct grpc_work *done = g->done;
    g->done = NULL;
    for (struct grpc_work *w = done; w; w = w->next)
        g->in_work--;
    pthread_mutex_unlock(&g->lock);
    for (struct grpc_work *w; (w = done);) {
        done = w->next;
        if (w->stream)
            http_grpc_connection_answer(w);
        http_grpc_work_free(g, w);
    }
    for (struct grpc_connection *c = g->first, *next; c; c = next) {
        next = c->next;
        bool has = c->has_answers;
        c->has_answers = false;
        if (has)
            run(g, c);
    }
}

static void look(struct grpc_server *g)
{
    int64_t now = time_monotonic_ns();
    if (g->deaf)
        listen_again(g, true);
    for (struct grpc_connection *c = g->first, *next; c; c = next) {
        next = c->next;
        if (http_grpc_connection_look(c, now))
            watch(c);
        else
            drop(g, c);
    }
}

/* True: all calls are answered, and the answers sent. */
static bool is_quiet(struct grpc_server *g)
{
    pthread_mutex_lock(&g->lock);
    bool quiet = !g->in_work;
    pthread_mutex_unlock(&g->lock);
    for (struct grpc_connection *c = g->first; c && quiet; c = c->next)
        quiet = c->sent == c->out.n;
    return quiet;
}

static bool is_stopping(struct grpc_server *g)
{
    pthread_mutex_lock(&g->lock);
    bool stop = g->stop;
    pthread_mutex_unlock(&g->lock);
    return stop;
}

static void begin_stop(struct grpc_server *g)
{
    epoll_ctl(g->epoll_fd, EPOLL_CTL_DEL, g->listen_fd, NULL);
    g->deaf = false;
    for (struct grpc_connection *c = g->first, *next; c; c = next) {
        next = c->next;
        http_grpc_connection_end(c);
        run(g, c);
    }
}

static void *serve(void *arg)
{
    struct grpc_server *g = arg;
    int64_t looked = 0, until = 0;
    for (;;) {
        struct epoll_event events[EVENTS];
        int n = epoll_wait(g->epoll_fd, events, EVENTS, LOOK_MS);
        bool answers = false, calls = false;
        for (int i = 0; i < n; i++) {
            if (events[i].data.ptr == &g->listen_fd)
                calls = true;
            else if (events[i].data.ptr == &g->event_fd)
                answers = true;
            else
                run(g, events[i].data.ptr);
        }
        /* Last, since these may free connections to which other events refer. */
        if (answers)
            take_answers(g);
        if (calls && !until)
            take_connection(g);
        int64_t now = time_monotonic_ns();
        if (now - looked > LOOK_MS * (NS_PER_S / 1000)) {
            looked = now;
            look(g);
        }
        if (!until && is_stopping(g)) {
            until = now + PATIENCE_S * NS_PER_S;
            begin_stop(g);
        }
        if (until && (is_quiet(g) || now > until))
            return NULL;
    }
}

/* ---- start and stop ---- */

static int start_threads(struct grpc_server *g, struct err *e)
{
    for (int i = 0; i < WORKERS; i++) {
        pthread_t t;
        if (pthread_create(&t, NULL, work, g))
            return err_set(e, ERR_LIMIT, "cannot start a thread");
        vec_push(&g->workers, t);
    }
    if (pthread_create(&g->thread, NULL, serve, g))
        return err_set(e, ERR_LIMIT, "cannot start a thread");
    return 0;
}

static int open_files(struct grpc_server *g, struct err *e)
{
    const struct grpc_options *o = &g->o;
    int rc = o->tls_cert ? http_grpc_tls_load(o->tls_cert, o->tls_key, &g->tls, e) : 0;
    if (!rc)
        rc = http_listen_on(o->listen, g->address, sizeof g->address, o->tls_cert, &g->listen_fd, e);
    if (rc)
        return rc;
    fcntl(g->listen_fd, F_SETFL, O_NONBLOCK);
    struct epoll_event calls = {.events = EPOLLIN, .data.ptr = &g->listen_fd},
                       answers = {.events = EPOLLIN, .data.ptr = &g->event_fd};
    g->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    g->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (g->epoll_fd < 0 || g->event_fd < 0 || epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, g->listen_fd, &calls) ||
        epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, g->event_fd, &answers))
        return err_sys(e, "cannot wait for connections");
    return 0;
}

static void release(struct grpc_server *g)
{
    pthread_mutex_lock(&g->lock);
    g->stop_workers = true;
    pthread_cond_broadcast(&g->change);
    pthread_mutex_unlock(&g->lock);
    for (size_t i = 0; i < g->workers.n; i++)
        pthread_join(g->workers.v[i], NULL);
    while (g->first)
        drop(g, g->first);
    for (struct grpc_work *w; (w = g->done);) {
        g->done = w->next;
        http_grpc_work_free(g, w);
    }
    const int fds[] = {g->listen_fd, g->epoll_fd, g->event_fd};
    for (size_t i = 0; i < sizeof fds / sizeof *fds; i++)
        if (fds[i] >= 0)
            close(fds[i]);
    http_grpc_tls_free(g->tls);
    vec_free(&g->workers);
    pthread_mutex_destroy(&g->lock);
    pthread_cond_destroy(&g->change);
    free(g);
}

#define USUALLY(option, value) ((option) = (option) ? (option) : (value))

int http_grpc_server_start(
    const struct grpc_options *o, grpc_handler *handler, void *arg, struct grpc_server **out, struct err *e)
{
    struct grpc_server *g = mem_zalloc(sizeof *g);
    g->o = *o;
    g->handler = handler;
    g->arg = arg;
    g->listen_fd = g->epoll_fd = g->event_fd = -1;
    g->queue_end = &g->queue;
    USUALLY(g->o.max_message_bytes, 4 << 20);
    USUALLY(g->o.max_bodies_bytes, 256 << 20);
    USUALLY(g->o.max_connections, 1024);
    USUALLY(g->o.max_streams, 100);
    USUALLY(g->o.timeout_s, 60);
    USUALLY(g->o.slowest_bytes_per_s, 16384);
    pthread_mutex_init(&g->lock, NULL);
    pthread_cond_init(&g->change, NULL);
    int rc = open_files(g, e);
    if (!rc)
        rc = start_threads(g, e);
    if (rc)
        release(g);
    else
        *out = g;
    return rc;
}

const char *http_grpc_server_address(const struct grpc_server *g)
{
    return g->address;
}

void http_grpc_server_stop(struct grpc_server *g)
{
    if (!g)
        return;
    pthread_mutex_lock(&g->lock);
    g->stop = true;
    pthread_mutex_unlock(&g->lock);
    wake(g);
    pthread_join(g->thread, NULL);
    release(g);
}
