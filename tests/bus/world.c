/* SPDX-License-Identifier: MIT */
#include "world.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "base/mem.h"

const char *world_url;

static struct {
    pid_t pid; /* 0: none runs */
    int port;
    char dir[200], url[64];
    const char *const *arguments;
} server;
static bool no_server;

int64_t in_ms(int64_t ms)
{
    return time_monotonic_ns() + ms * 1000000;
}

void sleep_ms(int64_t ms)
{
    nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

uint8_t *world_bytes(size_t n, uint32_t seed)
{
    uint8_t *v = malloc(n + 1);
    assert_non_null(v);
    for (size_t i = 0; i < n; i++)
        v[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
    return v;
}

static struct sockaddr_in loopback(int port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
}

/* Returns a free port outside the range of ephemeral ports, so that a stopped server can return to its port. */
static int free_port(void)
{
    for (;;) {
        int port = 10000 + (int)arc4random_uniform(20000), fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        struct sockaddr_in a = loopback(port);
        bool is_free = !bind(fd, (struct sockaddr *)&a, sizeof a);
        close(fd);
        if (is_free)
            return port;
    }
}

static bool answers(int port)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = loopback(port);
    bool yes = connect(fd, (struct sockaddr *)&a, sizeof a) == 0;
    close(fd);
    return yes;
}

#ifdef NATS_SERVER
static void start_server(void)
{
    char port[12];
    snprintf(port, sizeof port, "%d", server.port);
    server.pid = fork();
    assert_true(server.pid >= 0);
    if (server.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* ends with a test that crashes */
        int null = open("/dev/null", O_RDWR);
        dup2(null, 0);
        dup2(null, 1);
        dup2(null, 2);
        enum { USUAL = 8, MOST = 20 };
        const char *all[MOST] = {"nats-server", "-a", "127.0.0.1", "-p", port, "-js", "-sd", server.dir};
        for (int i = 0; server.arguments && server.arguments[i] && USUAL + i < MOST - 1; i++)
            all[USUAL + i] = server.arguments[i];
        execv(NATS_SERVER, (char **)all);
        _exit(127);
    }
    eventually(answers(server.port));
}
#endif

void world_kill_server(void)
{
    int status;
    if (!server.pid)
        return;
    kill(server.pid, SIGKILL);
    waitpid(server.pid, &status, 0);
    server.pid = 0;
}

static void remove_stores(void)
{
    pid_t child = fork();
    int status;
    if (child == 0) {
        execlp("rm", "rm", "-rf", server.dir, (char *)NULL);
        _exit(127);
    }
    waitpid(child, &status, 0);
}

void world_restart_server(bool keep_stores)
{
    world_kill_server();
    if (!keep_stores)
        remove_stores();
#ifdef NATS_SERVER
    start_server();
#endif
}

void world_serve_with(const char *const *arguments)
{
    server.arguments = arguments;
    world_restart_server(true);
}

int world_port(void)
{
    return server.port;
}

const char *world_directory(void)
{
    return server.dir;
}

int world_local(void **state)
{
    world_url = "local:test";
    return 0;
}

int world_nats(void **state)
{
    world_url = NULL;
#ifdef NATS_SERVER
    const char *below = getenv("TMPDIR");
    snprintf(server.dir, sizeof server.dir, "%s/weft-test-bus-XXXXXX", below ? below : "/tmp");
    if (!mkdtemp(server.dir))
        return -1;
    server.port = free_port();
    snprintf(server.url, sizeof server.url, "nats://127.0.0.1:%d", server.port);
    start_server();
    world_url = server.url;
#else
    no_server = true;
#endif
    return 0;
}

int world_end(void **state)
{
    world_kill_server();
    if (*server.dir)
        remove_stores();
    return 0;
}

void world_need(void)
{
    if (!world_url && no_server)
        skip_without("nats-server");
    if (world_url == server.url && !server.pid)
        world_restart_server(true);
}

struct bus *world_open(void)
{
    struct bus *b;
    struct err e = {0};
    if (bus_open(&(struct bus_options){.url = world_url, .name = "test"}, &b, &e))
        fail_msg("%s", e.text);
    return b;
}

int world_run(const char *name, const struct CMUnitTest *both, size_t n, const struct CMUnitTest *nats, size_t n_nats)
{
    int failed = 0;
    char group[80];
    signal(SIGPIPE, SIG_IGN);
    snprintf(group, sizeof group, "%s in the process", name);
    failed += _cmocka_run_group_tests(group, both, n, world_local, NULL);
    snprintf(group, sizeof group, "%s over NATS", name);
    failed += _cmocka_run_group_tests(group, both, n, world_nats, world_end);
    snprintf(group, sizeof group, "%s and its broker", name);
    if (n_nats)
        failed += _cmocka_run_group_tests(group, nats, n_nats, world_nats, world_end);
    return failed;
}
