/* SPDX-License-Identifier: MIT */
/* Private to http: the parts of the gRPC server. */
#ifndef WEFT_HTTP_GRPC_PARTS_H
#define WEFT_HTTP_GRPC_PARTS_H

#include <pthread.h>
#include <stdatomic.h>

#include "http/grpc.h"
#include "http/grpc_wire.h"

enum { GRPC_READ_BYTES = 64 << 10 };

struct nghttp2_session;
struct grpc_connection;

/* A whole call, on its way to the handler and back. */
struct grpc_work {
    struct grpc_work *next;
    struct grpc_stream *stream;      /* NULL: it was given up. Only in the thread of the connections */
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
    /* of the thread of the connections */
    struct grpc_connection *first;
    unsigned connections;
    bool deaf;                       /* no file is left for another connection */
    uint8_t in[GRPC_READ_BYTES];     /* what is read at once */
    atomic_uint_least64_t bodies_bytes;
    pthread_mutex_t lock;            /* guards all below */
    pthread_cond_t change;
    struct grpc_work *queue, **queue_end, *done;
    unsigned in_work;                /* queued, running, or done and not yet taken back */
    bool stop, stop_workers;
};

struct grpc_connection {
    struct grpc_server *server;
    struct grpc_connection *previous, *next;
    struct nghttp2_session *session;
    struct grpc_wire wire;
    struct grpc_stream *first;
    struct text out;                 /* what the socket does not take yet, from `sent` on */
    size_t sent;
    unsigned streams;
    bool begun, ending;              /* the first frame of HTTP/2 came; it closes once all is sent */
    bool has_answers;                /* to send */
    int64_t used_ns;                 /* of the last call, or the begin */
    int64_t stuck_ns;                /* since when nothing could be sent; 0: it can */
    uint32_t events;                 /* that epoll looks for */
};

struct grpc_connection *grpc_connection_new(struct grpc_server *, int fd);
void grpc_connection_free(struct grpc_connection *);
/* Reads, does and sends what can be. False: it is over. */
bool grpc_connection_run(struct grpc_connection *);
/* Ends calls that come too slowly. False: it is over itself. */
bool grpc_connection_look(struct grpc_connection *, int64_t now_ns);
/* Takes no more calls. */
void grpc_connection_end(struct grpc_connection *);
/* The answer to a call, whose stream is still there. */
void grpc_connection_answer(struct grpc_work *);

/* Hands the call to the handlers; false: there are too many. */
bool grpc_work_queue(struct grpc_server *, struct grpc_work *);
void grpc_work_free(struct grpc_server *, struct grpc_work *);

#endif
