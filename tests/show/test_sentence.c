/* SPDX-License-Identifier: MIT */
/* Sentence above a path: paths written by hand, with the sentence that a person would write. */
#include "../base/test.h"
#include "base/text.h"
#include "graph/graph.h"
#include "path/path.h"
#include "show/show.h"

#define MS 1000000

/* A stretch of a path: "web" 196 "tier". */
struct piece {
    const char *host;
    int32_t tid; /* -1: an interrupt */
    const char *comm;
    uint8_t state;
    int ms;
    const char *detail;
    const char *from; /* NETWORK: the sender's host */
    int reason;       /* 1 + enum path_reason; 0: none */
    const char *peer;
};

enum { MOST = 4000 };
struct told {
    struct path path;
    struct path_segment segments[MOST];
    struct path_total totals[MOST];
    struct path_gap gaps[MOST];
    const struct piece *pieces[MOST]; /* pieces by row */
    const char *hosts[MOST];
    size_t n_rows, n_hosts;
};

static const char *host_name(void *arg, int32_t host)
{
    return ((struct told *)arg)->hosts[host];
}

static void row_name(void *arg, struct path_row row, int64_t begin, int64_t end, int32_t *tid, const char **comm)
{
    const struct piece *p = ((struct told *)arg)->pieces[row.row];
    *tid = p->tid;
    *comm = p->tid < 0 ? "" : p->comm;
}

static int32_t host_of(struct told *t, const char *name)
{
    size_t i = 0;
    while (i < t->n_hosts && strcmp(t->hosts[i], name) != 0)
        i++;
    t->hosts[i] = name;
    t->n_hosts += i == t->n_hosts;
    return (int32_t)i;
}

static int32_t row_of(struct told *t, const struct piece *p)
{
    size_t i = 0;
    while (i < t->n_rows && (strcmp(t->pieces[i]->host, p->host) != 0 || t->pieces[i]->tid != p->tid))
        i++;
    t->n_rows += i == t->n_rows;
    t->pieces[i] = p;
    return (int32_t)i;
}

/* Makes a total for each piece: rows here have each state once, or of one kind. */
static void tell(struct told *t, const struct piece *pieces, size_t n, struct text *out)
{
    int64_t at = 0;
    memset(t, 0, sizeof *t);
    for (size_t i = 0; i < n; i++) {
        const struct piece *p = &pieces[i];
        struct path_row row = {host_of(t, p->host), row_of(t, p)};
        int64_t end = at + (int64_t)p->ms * MS;
        t->segments[i] = (struct path_segment){.row = row,
            .begin = at,
            .end = end,
            .state = p->state,
            .detail = p->detail,
            .sender = {p->from ? host_of(t, p->from) : -1, 0}};
        t->totals[i] = (struct path_total){.row = row, .state = p->state, .detail = p->detail, .duration = end - at};
        if (p->reason)
            t->gaps[t->path.n_gaps++] = (struct path_gap){at, end, (uint8_t)(p->reason - 1), p->peer};
        at = end;
    }
    t->path.end = at;
    t->path.segments = t->segments;
    t->path.totals = t->totals;
    t->path.gaps = t->gaps;
    t->path.n_segments = t->path.n_totals = n;
    show_sentence(&t->path, &(struct path_source){.arg = t, .host_name = host_name, .row_name = row_name}, out);
}

static struct told told;

static void expect(const char *sentence, const struct piece *pieces, size_t n)
{
    struct text out = {.fd = -1};
    tell(&told, pieces, n, &out);
    assert_string_equal(text_cstr(&out), sentence);
    text_fini(&out);
}

#define EXPECT(sentence, ...) \
    expect(sentence, (const struct piece[]){__VA_ARGS__}, sizeof((struct piece[]){__VA_ARGS__}) / sizeof(struct piece))

static void machines(void **state)
{
    (void)state;
    EXPECT(
        "100.0 ms: 60 % web computed (196 tier, 60.00 ms) · 30 % db, of which 204 tier waited for disk vda 20.00 ms · "
        "10 % network",
        {"web", 196, "tier", GRAPH_RUNNING, 60}, {"db", 204, "tier", GRAPH_BLOCK_DEVICE, 20, "vda"},
        {"db", 204, "tier", GRAPH_RUNNING, 10}, {"web", 196, "tier", GRAPH_NETWORK, 5, NULL, "db"},
        {"db", 204, "tier", GRAPH_NETWORK, 5, NULL, "web"});
    EXPECT("100.0 ms: 80 % network from db to web · 20 % web slept by itself (1 a, 20.00 ms)",
        {"web", 1, "a", GRAPH_NETWORK, 80, "10.0.0.1:1 → 10.0.0.2:2", "db"},
        {"web", 1, "a", GRAPH_TIMER, 20, "nanosleep"});
    EXPECT("100.0 ms: 94 % web waited for the CPU behind 31 gzip (1 a, 94.00 ms) · 6 % rest",
        {"web", 1, "a", GRAPH_PREEMPTED, 94, "by 31 gzip"}, {"db", 2, "b", GRAPH_RUNNING, 2},
        {"n3", 2, "b", GRAPH_RUNNING, 4});
}

static void one_machine(void **state)
{
    (void)state;
    EXPECT("100.0 ms: 55 % 12 cc, of which it computed 40.00 ms · 45 % interrupts took 45.00 ms",
        {"n", 12, "cc", GRAPH_RUNNING, 40}, {"n", 12, "cc", GRAPH_BLOCKED, 15, "futex"},
        {"n", -1, "", GRAPH_RUNNING, 45});
    EXPECT("100.0 ms: 50 % messages took 50.00 ms · 50 % 2 b waited in read 50.00 ms",
        {"n", 1, "a", GRAPH_NETWORK, 50, NULL, "n"}, {"n", 2, "b", GRAPH_BLOCKED, 50, "read"});
}

static void what_is_not_known(void **state)
{
    (void)state;
    EXPECT("100.0 ms: 70 % waited for a machine without trace: 192.0.2.1:53 · 30 % 1 a computed 30.00 ms",
        {"n", 1, "a", GRAPH_RUNNING, 30},
        {"n", 1, "a", GRAPH_NETWORK, 70, NULL, NULL, 1 + PATH_UNTRACED_PEER, "192.0.2.1:53"});
    EXPECT("100.0 ms: 70 % not known: a node is away: db (10.0.0.3) · 30 % 1 a computed 30.00 ms",
        {"n", 1, "a", GRAPH_RUNNING, 30},
        {"n", 1, "a", GRAPH_BLOCKED, 70, NULL, NULL, 1 + PATH_OFFLINE_NODE, "db (10.0.0.3)"});
    EXPECT("100.0 ms: 70 % not known: events were lost · 30 % 1 a computed 30.00 ms", {"n", 1, "a", GRAPH_RUNNING, 30},
        {"n", 1, "a", GRAPH_UNKNOWN, 70, NULL, NULL, 1 + PATH_LOST_EVENTS});
    /* Running time, which is known. */
    EXPECT("100.0 ms: 100 % 1 a computed 100.0 ms",
        {"n", 1, "a", GRAPH_RUNNING, 100, NULL, NULL, 1 + PATH_OFFLINE_NODE, "db"});
}

static const char *name_of(int i)
{
    static char names[64][8];
    snprintf(names[i % 64], sizeof names[0], "n%d", i % 64);
    return names[i % 64];
}

/* Checks twenty machines none of which did much: the sentence names the activity. Of many threads of one name none is
 * named. */
static void many(void **state)
{
    (void)state;
    static struct piece p[MOST];
    for (int i = 0; i < 20; i++) {
        p[2 * i] = (struct piece){name_of(i), i, "rank", GRAPH_RUNNING, i == 7 ? 5 : 3};
        p[2 * i + 1] = (struct piece){name_of(i), i, "rank", GRAPH_NETWORK, 2, NULL, name_of(i + 1)};
    }
    expect("102.0 ms: 61 % computed on 20 machines (most on n7, 5.000 ms) · 39 % network", p, 40);
    for (int i = 0; i < MOST; i++)
        p[i] = (struct piece){"n", i, "worker", GRAPH_RUNNING, 1};
    expect("4.000 s: 100 % 4000 × worker computed 4.000 s", p, MOST);
}

/* Checks that a share names its main part: a share of 98 % is not named by a thread that has 87 %. */
static void shares_of_what_is_named(void **state)
{
    (void)state;
    EXPECT("286.0 ms: 98 % db, of which 202 postgres slept by itself 250.0 ms · 2 % rest",
        {"db", 202, "postgres", GRAPH_TIMER, 250}, {"db", 203, "postgres", GRAPH_RUNNING, 30},
        {"web", 1, "a", GRAPH_RUNNING, 6});
    EXPECT("100.0 ms: 90 % network · 10 % web computed (1 a, 10.00 ms)", {"web", 1, "a", GRAPH_NETWORK, 80, NULL, "db"},
        {"db", 2, "b", GRAPH_NETWORK, 10, NULL, "web"}, {"web", 1, "a", GRAPH_RUNNING, 10});
}

/* Checks texts like "98 % db slept by itself (202 postgres, 250.5 ms)": the time must be that share. */
static void check_share(const char *share, double length_ms)
{
    double percent, ms = 0;
    char unit[4] = "";
    const char *open = strrchr(share, '('), *comma = open ? strrchr(open, ',') : NULL;
    if (strstr(share, "of which") || strstr(share, " machines (most") || !comma ||
        sscanf(share, "%lf %%", &percent) != 1)
        return;
    assert_int_equal(sscanf(comma + 1, "%lf %3[a-z]", &ms, unit), 2);
    ms *= !strcmp(unit, "s") ? 1000 : 1;
    double is = 100 * ms / length_ms;
    if (is < percent - 0.6 || is > percent + 0.6)
        fail_msg("%s: of %.0f ms", share, length_ms);
}

static void random_shares(void **state)
{
    (void)state;
    static const uint8_t states[] = {GRAPH_RUNNING, GRAPH_TIMER, GRAPH_BLOCKED, GRAPH_PREEMPTED, GRAPH_BLOCK_DEVICE};
    static const char *const hosts[] = {"web", "db", "client", "cache", "queue"};
    uint64_t dice = 77;
    size_t checked = 0;
    for (int round = 0; round < 20000; round++) {
        struct piece p[12];
        size_t n = 1 + test_random(&dice, 12), machines = 1 + test_random(&dice, 5);
        double length = 0;
        for (size_t i = 0; i < n; i++) {
            bool large = !test_random(&dice, 4);
            p[i] = (struct piece){hosts[test_random(&dice, (uint32_t)machines)], (int32_t)i / 2, i % 3 ? "a" : "b",
                states[test_random(&dice, 5)], 1 + (int)test_random(&dice, large ? 400 : 40)};
            length += p[i].ms;
        }
        struct text out = {.fd = -1};
        tell(&told, p, n, &out);
        char *copy = strdup(text_cstr(&out)), *rest = NULL;
        char *shares = strchr(copy, ':');
        for (char *at = shares + 2; at; at = rest) {
            rest = strstr(at, " · ");
            if (rest) {
                *rest = '\0';
                rest += strlen(" · ");
            }
            check_share(at, length);
            checked++;
        }
        free(copy);
        text_fini(&out);
    }
    assert_true(checked > 20000);
}

/* Whatever names are, a sentence has its length, and no character that a terminal would act on. */
static void long_and_wild(void **state)
{
    (void)state;
    static const char host[] = "a-machine-with-a-very-long-name.in.a.very.long.domain.example";
    struct text out = {.fd = -1};
    tell(&told,
        (const struct piece[]){{host, 1, "a\033[31m\nthread", GRAPH_BLOCK_DEVICE, 30, "a/disk/with/a/long/name/indeed"},
            {host, 2, "an other one of them", GRAPH_RUNNING, 20},
            {"another" /* host */, 1, "\xff\xfe", GRAPH_PREEMPTED, 30, "by 1 somebody-or-other"},
            {"another", 1, "\xff\xfe", GRAPH_RUNNING, 5},
            {"third", 1, "third-of-the-three", GRAPH_HYPERVISOR, 15, "msr"}},
        5, &out);
    assert_true(text_cells(out.v, out.n) <= 140);
    for (size_t i = 0; i < out.n; i++)
        assert_true((unsigned char)out.v[i] >= 0x20);
    assert_non_null(strstr(text_cstr(&out), "% third was in the hypervisor"));
    text_fini(&out);
    expect("", NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(machines), cmocka_unit_test(one_machine),
        cmocka_unit_test(what_is_not_known), cmocka_unit_test(many), cmocka_unit_test(shares_of_what_is_named),
        cmocka_unit_test(random_shares), cmocka_unit_test(long_and_wild)};
    return cmocka_run_group_tests_name("show: the sentence", tests, NULL, NULL);
}
