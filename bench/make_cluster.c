/* SPDX-License-Identifier: MIT */
/* Generated clusters: make_cluster DIR PATTERN NODES [NAME=VALUE…]
 *   scp     a main machine copies files to NODES others, one after the other to each, to all at once: it reads a piece
 *           from the disk, sends it, and waits until the other side says that it has it
 *   mpi     ranks on NODES machines, in supersteps: each computes, exchanges with its neighbours, and waits for all
 *   pingpong  each machine and each other one: a thread asks, a thread answers, again and again
 * NAMEs, and what they are when left away:
 *   rounds=40       pieces of a file, supersteps, pings events=0   events of all hosts at least (0: as many as come)
 *   files=12        scp: files to each machine          ranks=6    mpi: on each machine
 *   pause=10        pingpong: ms before the next one, at most
 *   mix=even        mpi: who computes how long: even, slow (one rank twice as long), rotating (another one each time),
 *                   random
 *   skew=1          clocks of the machines differ: node n is n ms ahead and 3 n ppm too fast; 0: they do not
 *   clocks=NS:PPM,… how far the clock of each machine is ahead, and how much too fast, instead; others are right
 *   history=1       the states of all threads are told
 * Writes DIR/HOST, kernel traces; DIR/cluster.json: hosts with their clocks, threads with when they lived, by the true
 * time, which is main's or node-0's; DIR/history.txt, a line for each state: HOST TID BEGIN END STATE CAUSE… (CAUSE of
 * a wait: "net HOST TID SENT", "wake HOST TID WHEN", "end STATE"; else "-"). The same arguments give the same cluster,
 * byte for byte. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "cluster_world.h"

enum { MOST_NODES = 1000, TREE = 16, PIECE = 65536, ANSWER = 64, HALO = 2000, TOKEN = 32, MAIN_CPUS = 64, NAME = 32 };
enum pattern { SCP, MPI, PINGPONG };
static const char *const patterns[] = {"scp", "mpi", "pingpong"};
enum mix { EVEN, SLOW, ROTATING, RANDOM };
static const char *const mixes[] = {"even", "slow", "rotating", "random"};

/* A thread's way through its program. */
struct program {
    VEC(struct made_step) steps; /* of this round */
    size_t at;
    uint32_t round;
    uint32_t host;
    bool receives;           /* scp, pingpong */
    uint32_t ends[2 + TREE]; /* scp, pingpong: its connection; mpi: to the next, the previous, and by tree level */
    uint32_t successor;      /* scp: the thread that copies the next file; itself: none */
};

struct cluster {
    uint32_t nodes, rounds, files, ranks, pause, skew, history;
    uint64_t wanted;
    enum pattern pattern;
    enum mix mix;
    const char *clocks; /* as given; NULL: by skew */
    struct made_world *world;
    VEC(struct program) programs; /* by thread */
};

static void add(struct program *p, struct made_step s)
{
    vec_push(&p->steps, s);
}

/* ---- what threads do ---- */

static void plan_copy(struct cluster *c, struct program *p, uint32_t thread)
{
    bool last = p->round == c->rounds;
    if (p->receives && !last) {
        add(p, (struct made_step){.kind = MADE_RECEIVE, .which = p->ends[0], .bytes = PIECE});
        add(p, (struct made_step){.kind = MADE_COMPUTE, .ns = 60000 + (int64_t)made_world_draw(c->world, 60000)});
        if (p->round % 8 == 7)
            add(p, (struct made_step){.kind = MADE_DISK, .ns = 300000 + (int64_t)made_world_draw(c->world, 300000)});
        add(p, (struct made_step){.kind = MADE_SEND, .which = p->ends[0], .bytes = ANSWER});
    } else if (!last) {
        add(p, (struct made_step){.kind = MADE_DISK, .ns = 100000 + (int64_t)made_world_draw(c->world, 200000)});
        add(p, (struct made_step){.kind = MADE_COMPUTE, .ns = 30000 + (int64_t)made_world_draw(c->world, 30000)});
        add(p, (struct made_step){.kind = MADE_SEND, .which = p->ends[0], .bytes = PIECE});
        add(p, (struct made_step){.kind = MADE_RECEIVE, .which = p->ends[0], .bytes = ANSWER});
    } else {
        if (p->successor != thread)
            add(p, (struct made_step){.kind = MADE_POST, .which = p->successor});
        add(p, (struct made_step){.kind = MADE_EXIT});
    }
}

static int64_t load(struct cluster *c, uint32_t rank, uint32_t round)
{
    uint32_t n = c->nodes * c->ranks;
    int64_t usual = 1000000 + (int64_t)made_world_draw(c->world, 40000);
    if (c->mix == SLOW)
        return rank == n / 2 ? 2 * usual : usual;
    if (c->mix == ROTATING)
        return rank == round * 7 % n ? 2 * usual : usual;
    return c->mix == RANDOM ? usual / 2 + (int64_t)made_world_draw(c->world, 1000000) : usual;
}

/* The barrier gathers along a binomial tree, and lets go along it. */
static void plan_superstep(struct cluster *c, struct program *p, uint32_t rank)
{
    uint32_t n = c->nodes * c->ranks, level = 0;
    if (p->round == c->rounds) {
        add(p, (struct made_step){.kind = MADE_EXIT});
        return;
    }
    add(p, (struct made_step){.kind = MADE_COMPUTE, .ns = load(c, rank, p->round)});
    for (int i = 0; i < 2; i++)
        add(p, (struct made_step){.kind = MADE_SEND, .which = p->ends[i], .bytes = HALO});
    for (int i = 0; i < 2; i++)
        add(p, (struct made_step){.kind = MADE_RECEIVE, .which = p->ends[i], .bytes = HALO});
    for (; 1u << level < n && !(rank >> level & 1); level++)
        if (rank + (1u << level) < n)
            add(p, (struct made_step){.kind = MADE_RECEIVE, .which = p->ends[2 + level], .bytes = TOKEN});
    if (rank) {
        add(p, (struct made_step){.kind = MADE_SEND, .which = p->ends[2 + level], .bytes = TOKEN});
        add(p, (struct made_step){.kind = MADE_RECEIVE, .which = p->ends[2 + level], .bytes = TOKEN});
    }
    while (level--)
        if (rank + (1u << level) < n)
            add(p, (struct made_step){.kind = MADE_SEND, .which = p->ends[2 + level], .bytes = TOKEN});
}

static void plan_ping(struct cluster *c, struct program *p)
{
    struct made_step send = {.kind = MADE_SEND, .which = p->ends[0], .bytes = ANSWER};
    struct made_step receive = {.kind = MADE_RECEIVE, .which = p->ends[0], .bytes = ANSWER};
    struct made_step pause = {
        .kind = MADE_DISK, .ns = 1000000 + (int64_t)made_world_draw(c->world, c->pause * 1000000)};
    if (p->round == c->rounds) {
        add(p, (struct made_step){.kind = MADE_EXIT});
        return;
    }
    add(p, p->receives ? receive : send);
    add(p, (struct made_step){.kind = MADE_COMPUTE, .ns = 10000 + (int64_t)made_world_draw(c->world, 20000)});
    add(p, p->receives ? send : receive);
    if (!p->receives)
        add(p, pause);
}

static void next_step(void *arg, uint32_t thread, struct made_step *out)
{
    struct cluster *c = arg;
    struct program *p = &c->programs.v[thread];
    if (p->at == p->steps.n) {
        p->at = p->steps.n = 0;
        if (c->pattern == MPI)
            plan_superstep(c, p, thread);
        else if (c->pattern == PINGPONG)
            plan_ping(c, p);
        else
            plan_copy(c, p, thread);
        p->round++;
    }
    *out = p->steps.v[p->at++];
}

/* ---- who there is ---- */

static struct program *new_thread(struct cluster *c, uint32_t host, uint32_t cpu, const char *name, int64_t starts)
{
    uint32_t thread = made_thread_add(c->world, host, cpu, name, starts);
    vec_push(&c->programs, ((struct program){.host = host, .successor = thread}));
    return &c->programs.v[thread];
}

static const char *host_name(const struct cluster *c, uint32_t host, char out[NAME])
{
    snprintf(out, NAME, host || c->pattern != SCP ? "node-%u" : "main", host);
    return out;
}

/* The host's clock; false: what was given makes no sense. */
static bool clock_of(const struct cluster *c, uint32_t host, struct made_host *out)
{
    const char *s = c->clocks;
    char *end;
    out->offset_ns = c->clocks ? 0 : (int64_t)(c->skew * host) * 1000000;
    out->drift_ppm = c->clocks ? 0 : 3.0 * (c->skew * host);
    for (uint32_t i = 0; s; i++) {
        long long offset_ns = strtoll(s, &end, 10);
        if (end == s || *end != ':')
            return false;
        s = end + 1;
        double ppm = strtod(s, &end);
        if (end == s || (*end && *end != ','))
            return false;
        s = *end ? end + 1 : NULL;
        if (i == host) {
            out->offset_ns = offset_ns;
            out->drift_ppm = ppm;
        }
    }
    return true;
}

static void add_hosts(struct cluster *c, uint32_t n, uint32_t cpus_of_first, uint32_t cpus)
{
    for (uint32_t i = 0; i < n; i++) {
        char name[NAME];
        struct made_host h = {.name = host_name(c, i, name), .cpus = i ? cpus : cpus_of_first};
        clock_of(c, i, &h);
        made_host_add(c->world, &h);
    }
}

/* Senders of one machine's files have a CPU to themselves, as far as there are enough. */
static void make_copies(struct cluster *c)
{
    uint32_t cpus = c->nodes < MAIN_CPUS ? c->nodes : MAIN_CPUS;
    add_hosts(c, 1 + c->nodes, cpus, 2);
    for (uint32_t node = 1; node <= c->nodes; node++)
        for (uint32_t file = 0; file < c->files; file++) {
            uint32_t sender = (uint32_t)c->programs.n, ends[2];
            new_thread(c, 0, (node - 1) % cpus, "scp", file ? -1 : 2000000 + 100000 * (int64_t)node)->successor = file +
                        1 <
                    c->files
                ? sender + 2
                : sender;
            new_thread(c, node, 0, "scp-sink", 1000000)->receives = true;
            made_connect(c->world, sender, sender + 1, ends);
            c->programs.v[sender].ends[0] = ends[0];
            c->programs.v[sender + 1].ends[0] = ends[1];
        }
}

static void make_ranks(struct cluster *c)
{
    uint32_t n = c->nodes * c->ranks, ends[2];
    add_hosts(c, c->nodes, c->ranks, c->ranks);
    for (uint32_t r = 0; r < n; r++)
        new_thread(c, r / c->ranks, r % c->ranks, "rank", 1000000 + (int64_t)r * 1000);
    for (uint32_t r = 0; r < n; r++) {
        made_connect(c->world, r, (r + 1) % n, ends);
        c->programs.v[r].ends[0] = ends[0];
        c->programs.v[(r + 1) % n].ends[1] = ends[1];
    }
    for (uint32_t r = 1; r < n; r++) {
        uint32_t level = (uint32_t)__builtin_ctz(r);
        made_connect(c->world, r - (1u << level), r, ends);
        c->programs.v[r - (1u << level)].ends[2 + level] = ends[0];
        c->programs.v[r].ends[2 + level] = ends[1];
    }
}

static void make_pings(struct cluster *c)
{
    add_hosts(c, c->nodes, c->nodes, c->nodes);
    for (uint32_t a = 0; a < c->nodes; a++)
        for (uint32_t b = a + 1; b < c->nodes; b++) {
            uint32_t ping = (uint32_t)c->programs.n, ends[2];
            new_thread(c, a, b, "ping", 2000000 + 10000 * (int64_t)ping);
            new_thread(c, b, a, "pong", 1000000)->receives = true;
            made_connect(c->world, ping, ping + 1, ends);
            c->programs.v[ping].ends[0] = ends[0];
            c->programs.v[ping + 1].ends[0] = ends[1];
        }
}

/* ---- how many events ---- */

static int run(struct cluster *c, const char *dir, FILE *history, struct err *e)
{
    for (size_t i = 0; i < c->programs.n; i++)
        c->programs.v[i].round = c->programs.v[i].at = c->programs.v[i].steps.n = 0;
    return made_world_run(c->world, next_step, c, dir, history, e);
}

/* What fills the CPUs changes no time of anything else: the same run, counted with less and less between. */
static int find_filling(struct cluster *c, struct err *e)
{
    int64_t every = 0;
    int rc = run(c, NULL, NULL, e);
    while (!rc && made_world_events(c->world) < c->wanted && every != 1) {
        every = every ? every * 5 / 6 : 10000000;
        every = every <= 8000 ? 1 : every;
        made_world_fill(c->world, every);
        rc = run(c, NULL, NULL, e);
    }
    if (!rc && made_world_events(c->world) < c->wanted)
        fprintf(stderr, "make_cluster: only %" PRIu64 " events: more have room in more rounds\n",
            made_world_events(c->world));
    return rc;
}

/* ---- what is written ---- */

static int write_description(const struct cluster *c, const char *dir)
{
    char path[4096], name[NAME];
    snprintf(path, sizeof path, "%s/cluster.json", dir);
    FILE *f = fopen(path, "w");
    if (!f)
        return -1;
    uint32_t n_hosts = c->nodes + (c->pattern == SCP);
    fprintf(f,
        "{\"pattern\": \"%s\", \"mix\": \"%s\", \"rounds\": %u, \"events\": %" PRIu64 ", \"end\": %" PRId64
        ",\n \"hosts\": [",
        patterns[c->pattern], mixes[c->mix], c->rounds, made_world_events(c->world), made_world_end(c->world));
    for (uint32_t i = 0; i < n_hosts; i++) {
        struct made_host h;
        clock_of(c, i, &h);
        fprintf(f, "%s{\"name\": \"%s\", \"offset_ns\": %" PRId64 ", \"drift_ppm\": %.9g}", i ? ",\n  " : "",
            host_name(c, i, name), h.offset_ns, h.drift_ppm);
    }
    fputs("],\n \"threads\": [", f);
    for (uint32_t i = 0; i < c->programs.n; i++) {
        int64_t begin, end;
        int32_t tid = made_thread_life(c->world, i, &begin, &end);
        fprintf(f, "%s{\"host\": %u, \"tid\": %" PRId32 ", \"begin\": %" PRId64 ", \"end\": %" PRId64 "}",
            i ? ",\n  " : "", c->programs.v[i].host, tid, begin, end);
    }
    fputs("]}\n", f);
    return fclose(f);
}

static int make(struct cluster *c, const char *dir, struct err *e)
{
    char path[4096];
    FILE *history = NULL;
    snprintf(path, sizeof path, "%s/history.txt", dir);
    if (mkdir(dir, 0777) || (c->history && !(history = fopen(path, "w"))))
        return err_sys(e, "%s", dir);
    int rc = find_filling(c, e);
    if (!rc)
        rc = run(c, dir, history, e);
    if (history && fclose(history) && !rc)
        rc = err_sys(e, "%s", path);
    if (!rc && write_description(c, dir))
        rc = err_sys(e, "%s/cluster.json", dir);
    return rc;
}

/* ---- arguments ---- */

static bool parse(struct cluster *c, const char *s)
{
    struct {
        const char *name;
        uint32_t *value, least, most;
    } numbers[] = {{"rounds=", &c->rounds, 1, 10000000}, {"files=", &c->files, 1, 1000}, {"ranks=", &c->ranks, 2, 64},
        {"pause=", &c->pause, 1, 100000}, {"skew=", &c->skew, 0, 1}, {"history=", &c->history, 0, 1}};
    for (uint32_t i = 0; i < sizeof mixes / sizeof *mixes; i++)
        if (!strncmp(s, "mix=", 4) && !strcmp(s + 4, mixes[i])) {
            c->mix = (enum mix)i;
            return true;
        }
    if (!strncmp(s, "clocks=", 7)) {
        c->clocks = s + 7;
        return clock_of(c, 0, &(struct made_host){0});
    }
    if (!strncmp(s, "events=", 7)) {
        c->wanted = strtoull(s + 7, NULL, 10);
        return true;
    }
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strncmp(s, numbers[i].name, strlen(numbers[i].name))) {
            *numbers[i].value = (uint32_t)strtoul(s + strlen(numbers[i].name), NULL, 10);
            return *numbers[i].value >= numbers[i].least && *numbers[i].value <= numbers[i].most;
        }
    return false;
}

int main(int argc, char **argv)
{
    struct cluster c = {.rounds = 40, .files = 12, .ranks = 6, .pause = 10, .skew = 1, .history = 1};
    struct err e = {0};
    bool good = argc >= 4;
    if (good) {
        while (c.pattern < PINGPONG && strcmp(argv[2], patterns[c.pattern]) != 0)
            c.pattern++;
        c.nodes = (uint32_t)strtoul(argv[3], NULL, 10);
        good = !strcmp(argv[2], patterns[c.pattern]) && c.nodes && c.nodes <= MOST_NODES;
    }
    for (int i = 4; i < argc && good; i++)
        good = parse(&c, argv[i]);
    if (!good) {
        fprintf(stderr,
            "make_cluster DIR scp|mpi|pingpong NODES [rounds= events= files= ranks= pause= mix= skew= clocks= "
            "history=]\n");
        return 2;
    }
    c.world = made_world_new(1);
    if (c.pattern == MPI)
        make_ranks(&c);
    else if (c.pattern == PINGPONG)
        make_pings(&c);
    else
        make_copies(&c);
    int rc = make(&c, argv[1], &e);
    if (rc)
        fprintf(stderr, "make_cluster: %s\n", e.text);
    else
        printf("{\"bench\":\"make_cluster\",\"events\":%" PRIu64 ",\"threads\":%zu,\"seconds\":%.3f}\n",
            made_world_events(c.world), c.programs.n, (double)made_world_end(c.world) / 1e9);
    for (size_t i = 0; i < c.programs.n; i++)
        vec_free(&c.programs.v[i].steps);
    vec_free(&c.programs);
    made_world_free(c.world);
    return rc ? 1 : 0;
}
