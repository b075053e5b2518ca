/* SPDX-License-Identifier: MIT */
/* The least that an HTTP server on libmicrohttpd can do: plain_server FILE
 * Answers every request with the bytes of FILE, from memory, on 127.0.0.1 and any free port, until its standard input
 * ends. What the trace server is measured against. Prints "listening on http://ADDRESS:PORT". */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"

struct content {
    char *bytes;
    size_t n;
};

static enum MHD_Result answer(void *arg, struct MHD_Connection *c, const char *url, const char *method,
    const char *version, const char *data, size_t *n, void **state)
{
    const struct content *content = arg;
    static int begun;
    if (!*state || *n) { /* the head, then pieces of a body that is not looked at */
        *state = &begun;
        *n = 0;
        return MHD_YES;
    }
    struct MHD_Response *r = MHD_create_response_from_buffer(content->n, content->bytes, MHD_RESPMEM_PERSISTENT);
    enum MHD_Result result = MHD_queue_response(c, MHD_HTTP_OK, r);
    MHD_destroy_response(r);
    return result;
}

int main(int argc, char **argv)
{
    struct content content;
    struct err e = {0};
    if (argc != 2 || file_read(argv[1], 1 << 30, &content.bytes, &content.n, &e)) {
        fprintf(stderr, "plain_server FILE: %s\n", e.text);
        return 2;
    }
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct MHD_Daemon *d = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD, 0, NULL, NULL, answer, &content,
        MHD_OPTION_SOCK_ADDR, &here, MHD_OPTION_THREAD_POOL_SIZE, 2u, MHD_OPTION_END);
    const union MHD_DaemonInfo *info = d ? MHD_get_daemon_info(d, MHD_DAEMON_INFO_BIND_PORT) : NULL;
    if (!info) {
        fprintf(stderr, "plain_server: cannot listen\n");
        return 1;
    }
    printf("listening on http://127.0.0.1:%u\n", info->port);
    fflush(stdout);
    for (char c; read(0, &c, 1) > 0;)
        ;
    MHD_stop_daemon(d);
    free(content.bytes);
    return 0;
}
