/* SPDX-License-Identifier: MIT */
/* Private to http: parts of the gRPC server. */
#ifndef WEFT_HTTP_GRPC_PARTS_H
#define WEFT_HTTP_GRPC_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/grpc.h"
#include "http/grpc_wire.h"

enum { GRPC_READ_BYTES = 64 << 10 };

struct nghttp2_session;
struct grpc_connection;

/* Complete call, on its way to the handler and back. */
struct grpc_work {
    struct grpc_work *next;
    struct grpc_stream *stream;      /* NULL: given up. Only used in the thread of the connections */
    atomic_bool given_up;
    char *path;
    struct text body;
    bool gzip;
    struct grpc_call call;
};

struct grpc_server {
    struct grpc_options o;
    grpc_handler *handler;
    void *arg;
    char address[320];
    struct grpc_tls *tls;
    int listen_fd, epoll_fd, event_fd;
    pthread_t thread;
    VEC(pthread_t) workers;
    /* used in the thread of the connections only */
    struct grpc_connection *first;
    unsigned connections;
    bool deaf;                       /* descriptors are used up: the listening socket is not watched */
    uint8_t in[GRPC_READ_BYTES];     /* buffer of one read */
    atomic_uint_least64_t bodies_bytes;
    pthread_mutex_t lock;            /* guards all below */
    pthread_cond_t change;
    struct grpc_work *queue, **queue_end, *done;
    unsigned in_work;                /* queued, running, or done and not yet collected */
    bool stop, stop_workers;
};

struct grpc_connection {
    struct grpc_server *server;
    struct grpc_connection *previous, *next;
    struct nghttp2_session *session;
    struct grpc_wire wire;
    struct grpc_stream *first;
    struct text out;                 /* bytes that the socket has not accepted yet, from `sent` on */
    size_t sent;
    unsigned streams;
    bool begun, ending;              /* begun: the first frame of HTTP/2 arrived; ending: closes once all is sent */
    bool has_answers;                /* answers are to be sent */
    int64_t used_ns;                 /* time of the last call, or of the begin */
    int64_t stuck_ns;                /* begin of the time in which nothing could be sent; 0: none */
    uint32_t events;                 /* watched by epoll */
};

struct grpc_connection *http_grpc_connection_new(struct grpc_server *, int fd);
void http_grpc_connection_free(struct grpc_connection *);
/* Reads, processes and sends what is possible. False: the connection is over. */
bool http_grpc_connection_run(struct grpc_connection *);
/* Ends slow calls. False: the connection itself is over. */
bool http_grpc_connection_look(struct grpc_connection *, int64_t now_ns);
/* Refuses further calls. */
void http_grpc_connection_end(struct grpc_connection *);
/* Sends the answer to a call whose stream still exists. */
void http_grpc_connection_answer(struct grpc_work *);

/* Passes the call to the handlers; false: too many wait. */
bool http_grpc_work_queue(struct grpc_server *, struct grpc_work *);
void http_grpc_work_free(struct grpc_server *, struct grpc_work *);

#endif
