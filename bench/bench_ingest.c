/* SPDX-License-Identifier: MIT */
/* Spans over HTTP and over gRPC: bench_ingest [SPANS [SENDERS]]
 * The collector in this process, its clients (one connection each, one request at a time) in others, so that what the
 * collector costs is told apart: its processor time, the database included. Prints JSON lines. */
#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "span/span.h"
#include "span_batches.h"


static double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- HTTP ---- */

static size_t drop(char *bytes, size_t size, size_t n, void *unused)
{
    return size * n;
}

static int send_by_http(const char *address, uint64_t batches)
{
    char url[300];
    CURL *c = curl_easy_init();
    struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/x-protobuf");
    int bad = 0;
    headers = curl_slist_append(headers, "Expect:");
    snprintf(url, sizeof url, "%s/v1/traces", address);
    curl_easy_setopt(c, CURLOPT_URL, url);
    curl_easy_setopt(c, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, drop);
    for (uint64_t i = 0, made = 0; i < batches; i++) {
        struct text batch = {.fd = -1};
        long status = 0;
        bench_make_batch(&batch, &made);
        curl_easy_setopt(c, CURLOPT_POSTFIELDS, batch.v);
        curl_easy_setopt(c, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)batch.n);
        bad += curl_easy_perform(c) != CURLE_OK || curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK ||
            status != 200;
        text_fini(&batch);
    }
    curl_easy_cleanup(c);
    curl_slist_free_all(headers);
    return bad;
}

/* ---- gRPC: the curl of Debian 12 uses a connection in the clear for one request only ---- */

struct peer {
    int fd;
    struct text body;
    size_t at;
    bool over, well;
};

static ssize_t put(nghttp2_session *s, const uint8_t *bytes, size_t n, int flags, void *arg)
{
    ssize_t done = send(((struct peer *)arg)->fd, bytes, n, MSG_NOSIGNAL);
    return done < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : done;
}

static ssize_t give_body(nghttp2_session *s, int32_t stream, uint8_t *out, size_t most, uint32_t *flags,
    nghttp2_data_source *from, void *arg)
{
    struct peer *p = arg;
    size_t left = p->body.n - p->at, n = left < most ? left : most;
    memcpy(out, p->body.v + p->at, n);
    p->at += n;
    if (n == left)
        *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}

static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t n, const uint8_t *value,
    size_t n_value, uint8_t flags, void *arg)
{
    if (n == 11 && !memcmp(name, "grpc-status", n))
        ((struct peer *)arg)->well = n_value == 1 && *value == '0';
    return 0;
}

static int on_close(nghttp2_session *s, int32_t stream, uint32_t code, void *arg)
{
    ((struct peer *)arg)->over = true;
    return 0;
}

static bool call(nghttp2_session *s, struct peer *p)
{
#define FIELD(k, v) \
    { \
        (uint8_t *)(k), (uint8_t *)(v), sizeof(k) - 1, sizeof(v) - 1, NGHTTP2_NV_FLAG_NONE \
    }
    const nghttp2_nv fields[] = {FIELD(":method", "POST"), FIELD(":scheme", "http"), FIELD(":authority", "localhost"),
        FIELD(":path", "/opentelemetry.proto.collector.trace.v1.TraceService/Export"), FIELD("te", "trailers"),
        FIELD("content-type", "application/grpc")};
    const nghttp2_data_provider body = {.read_callback = give_body};
    uint8_t bytes[16384];
    p->at = p->over = p->well = 0;
    bool goes_on = nghttp2_submit_request(s, NULL, fields, sizeof fields / sizeof *fields, &body, NULL) > 0;
    while (goes_on && !p->over) {
        goes_on = !nghttp2_session_send(s);
        ssize_t n = goes_on && !p->over ? recv(p->fd, bytes, sizeof bytes, 0) : 0;
        goes_on = n > 0 && nghttp2_session_mem_recv(s, bytes, (size_t)n) == n;
    }
    return goes_on && p->well;
}

/* A call's message: not compressed, so many bytes. */
static void frame(struct peer *p, const struct text *message)
{
    const uint8_t prefix[] = {
        0, (uint8_t)(message->n >> 24), (uint8_t)(message->n >> 16), (uint8_t)(message->n >> 8), (uint8_t)message->n};
    p->body.n = 0;
    text_put(&p->body, (const char *)prefix, sizeof prefix);
    text_put(&p->body, message->v, message->n);
}

static int send_by_grpc(const char *address, uint64_t batches)
{
    struct peer p = {.fd = socket(AF_INET, SOCK_STREAM, 0), .body = {.fd = -1}};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(strrchr(address, ':') + 1))};
    nghttp2_session_callbacks *callbacks;
    nghttp2_session *s;
    int bad = 0;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(p.fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
    if (connect(p.fd, (const struct sockaddr *)&to, sizeof to))
        return 1;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_send_callback(callbacks, put);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
    nghttp2_session_client_new(&s, callbacks, &p);
    nghttp2_submit_settings(s, NGHTTP2_FLAG_NONE, NULL, 0);
    for (uint64_t i = 0, made = 0; i < batches; i++) {
        struct text batch = {.fd = -1};
        bench_make_batch(&batch, &made);
        frame(&p, &batch);
        bad += !call(s, &p);
        text_fini(&batch);
    }
    nghttp2_session_del(s);
    nghttp2_session_callbacks_del(callbacks);
    text_fini(&p.body);
    close(p.fd);
    return bad;
}

/* ---- measuring ---- */

/* Before the collector, which has threads: it waits for its address. */
static void start_sender(int addresses, bool grpc, uint64_t batches, unsigned number)
{
    char address[320];
    if (fork())
        return;
    for (unsigned k = 0; k < number; k++)
        bench_draw(); /* ids of its own */
    if (read(addresses, address, sizeof address) != sizeof address)
        _exit(1);
    _exit((grpc ? send_by_grpc : send_by_http)(address, batches) != 0);
}

static void measure(const char *directory, bool grpc, uint64_t spans, unsigned senders)
{
    struct span_collect_options o = {
        .store = directory, .otlp_http = grpc ? NULL : "127.0.0.1:0", .otlp_grpc = grpc ? "127.0.0.1:0" : NULL};
    struct span_collector *c;
    struct err e = {0};
    uint64_t each = spans / BENCH_BATCH / senders;
    int status, bad = 0, ends[2];
    char address[320] = "";
    if (pipe(ends))
        exit(1);
    for (unsigned i = 0; i < senders; i++)
        start_sender(ends[0], grpc, each, i);
    if (span_collect_start(&o, &c, &e)) {
        fprintf(stderr, "bench_ingest: %s\n", e.text);
        exit(1);
    }
    snprintf(address, sizeof address, "%s", span_collect_address(c, grpc ? SPAN_DOOR_GRPC : SPAN_DOOR_OTLP));
    double begin = seconds(CLOCK_MONOTONIC), cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (unsigned i = 0; i < senders; i++)
        bad += write(ends[1], address, sizeof address) != sizeof address;
    while (wait(&status) > 0)
        bad += status != 0;
    double taken = seconds(CLOCK_MONOTONIC) - begin, n = (double)(each * senders * BENCH_BATCH);
    span_collect_stop(c); /* the database has all */
    cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    close(ends[0]);
    close(ends[1]);
    printf("{\"bench\":\"%s\",\"senders\":%u,\"per_s\":%.0f,\"us_per_span\":%.2f,\"failed\":%d}\n",
        grpc ? "gRPC" : "HTTP", senders, n / taken, cpu / n * 1e6, bad);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 10) : 500000;
    unsigned senders = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 4;
    const char *tmp = getenv("TMPDIR");
    curl_global_init(CURL_GLOBAL_ALL);
    for (int grpc = 0; grpc <= 1; grpc++) {
        char *directory = mem_printf("%s/weft-bench-XXXXXX", tmp ? tmp : "/tmp"), command[400];
        if (!mkdtemp(directory)) {
            perror(directory);
            return 1;
        }
        measure(directory, grpc, n, senders);
        snprintf(command, sizeof command, "rm -rf '%s'", directory);
        if (system(command))
            fprintf(stderr, "bench_ingest: %s is left\n", directory);
        free(directory);
    }
    curl_global_cleanup();
    return 0;
}
