/* SPDX-License-Identifier: MIT */
/* Requests, their owners and their groups, from stores made up here (made_stores.c). */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "../base/test.h"
#include "made_stores.h"
#include "path/requests.h"

enum { CLIENT, SERVER, PORT = 4000, MS = 1000000, ACK = FLOW_ACK };
static const struct clock_map apart = {.host = SERVER, .island = 1};

struct world {
    struct graph graphs[2];
    struct flow_store flows[2];
    struct path_local_host hosts[2];
    struct path_local *local;
    struct requests *found;
    struct path_requests_lacking lacking;
    uint32_t in, out; /* flows of the server */
    uint64_t seq[2];  /* sequence so far, of received and sent bytes */
    int32_t client, server, worker;
};

/* A connection from the client's port to the server's: what is made next is on it. */
static void connect(struct world *w, uint16_t port, uint16_t to)
{
    w->in = make_flow(&w->flows[SERVER], 1, port, 2, to);
    w->out = make_flow(&w->flows[SERVER], 2, to, 1, port);
    w->seq[0] = w->seq[1] = 5000;
}

static void begin(struct world *w)
{
    memset(w, 0, sizeof *w);
    w->client = make_row(&w->graphs[CLIENT], 10, "client", 0);
    w->server = make_row(&w->graphs[SERVER], 20, "server", 0);
    w->worker = make_row(&w->graphs[SERVER], 21, "worker-1", 0);
    connect(w, PORT, 80);
}

static struct flow_packet *last(struct world *w, bool sent)
{
    struct made_flow *f = &w->flows[SERVER].flows.v[sent ? w->out : w->in];
    return sent ? &f->sends.v[f->sends.n - 1] : &f->receives.v[f->receives.n - 1];
}

/* Adds bytes received or sent by the server: of a client that had all, and a server that got all. */
static struct flow_packet *come(struct world *w, int64_t ts, uint32_t bytes)
{
    make_receive(&w->flows[SERVER], w->in, ts, w->seq[0] += bytes, w->server);
    struct flow_packet *p = last(w, false);
    p->bytes = bytes;
    p->ack = (uint32_t)w->seq[1];
    p->flags = ACK;
    return p;
}

static struct flow_packet *go(struct world *w, int64_t ts, uint32_t bytes)
{
    make_send(&w->flows[SERVER], w->out, ts, w->seq[1] += bytes, w->server);
    struct flow_packet *p = last(w, true);
    p->bytes = bytes;
    p->ack = (uint32_t)w->seq[0];
    p->flags = ACK;
    return p;
}

static void find_of(struct world *w, const struct requests_question *q)
{
    static const char *const names[] = {"a", "b"};
    for (int i = 0; i < 2; i++) {
        const struct clock_map *map = w->hosts[i].map;
        w->hosts[i] = (struct path_local_host){names[i], &w->graphs[i], &w->flows[i], map};
        make_address(&w->flows[i], (uint8_t)(1 + i));
        make_peer(&w->flows[i], (uint8_t)(2 - i));
    }
    w->local = path_local_new(w->hosts, 2);
    w->found = path_requests_find(w->local, q);
    path_requests_lacking(w->found, &w->lacking);
}

static void find(struct world *w)
{
    find_of(w, &(struct requests_question){.begin = INT64_MIN, .end = INT64_MAX});
}

static void end(struct world *w)
{
    path_requests_free(w->found);
    path_local_free(w->local);
    for (int i = 0; i < 2; i++)
        drop(&w->graphs[i], &w->flows[i]);
}

static void expect(const struct world *w, size_t i, int64_t since, int64_t until, uint64_t in, uint64_t out)
{
    assert_true(i < path_requests_count(w->found));
    const struct served_request *r = path_requests_get(w->found, i);
    if (r->begin != since || r->end != until || r->bytes_in != in || r->bytes_out != out)
        fail_msg("request %zu is %lld-%lld, %llu in, %llu out", i, (long long)r->begin, (long long)r->end,
            (unsigned long long)r->bytes_in, (unsigned long long)r->bytes_out);
}

static void expect_count(const struct world *w, size_t n)
{
    assert_int_equal(path_requests_count(w->found), n);
}

/* ---- exchanges ---- */

static void kept_alive(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    come(&w, 100, 7);
    go(&w, 300, 20);
    come(&w, 1000, 3), come(&w, 1010, 4); /* request in two packets, reply in three */
    go(&w, 1100, 5), go(&w, 1500, 5), go(&w, 1900, 5);
    come(&w, 5000, 1);
    find(&w);
    expect_count(&w, 2); /* the third has no reply */
    expect(&w, 0, 1000, 1900, 7, 15);
    expect(&w, 1, 100, 300, 7, 20);
    assert_int_equal(path_requests_get(w.found, 0)->thread.host, SERVER);
    assert_int_equal(path_requests_get(w.found, 0)->thread.row, w.server);
    end(&w);
}

static void bare_acknowledgements(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    come(&w, 90, 0);
    come(&w, 100, 7);
    go(&w, 110, 0);
    go(&w, 300, 20);
    come(&w, 310, 0);
    go(&w, 400, 0)->flags |= FLOW_FIN;
    find(&w);
    expect_count(&w, 1);
    expect(&w, 0, 100, 300, 7, 20);
    end(&w);
}

static void sent_again(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    come(&w, 100, 7);
    come(&w, 150, 7), w.seq[0] -= 7, last(&w, false)->seq_end -= 7;
    go(&w, 300, 20);
    come(&w, 350, 7), w.seq[0] -= 7, last(&w, false)->seq_end -= 7;
    go(&w, 400, 20), w.seq[1] -= 20, last(&w, true)->seq_end -= 20;
    find(&w);
    expect_count(&w, 1);
    expect(&w, 0, 100, 300, 7, 20);
    assert_int_equal(w.lacking.cut, 0);
    end(&w);
}

static void overtaken(void **state)
{
    (void)state;
    for (int first = 0; first < 2; first++) { /* known before is where it begins, or not */
        struct world w;
        begin(&w);
        if (!first)
            come(&w, 10, 0);
        come(&w, 100, 10)->seq_end = 5020; /* the second ten bytes come first */
        come(&w, 120, 10)->seq_end = 5010;
        go(&w, 300, 40);
        come(&w, 500, 10)->seq_end = 5010; /* repetition */
        find(&w);
        expect_count(&w, 1);
        expect(&w, 0, 100, 300, 20, 40);
        assert_int_equal(path_requests_get(w.found, 0)->first_byte, 5000);
        end(&w);
    }
}

static void one_way(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    for (int i = 0; i < 100; i++)
        come(&w, 100 + i, 1000), go(&w, 100 + i, 0);
    connect(&w, PORT + 1, 80);
    for (int i = 0; i < 100; i++)
        go(&w, 100 + i, 1000);
    find(&w);
    expect_count(&w, 0);
    end(&w);
}

static void greeted(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    go(&w, 50, 30); /* "220 ready": a reply to nothing */
    come(&w, 100, 7);
    go(&w, 300, 20);
    find(&w);
    expect_count(&w, 1);
    expect(&w, 0, 100, 300, 7, 20);
    end(&w);
}

/* Checks a transfer with replies in between: it is one exchange, and continues whatever is replied meanwhile. */
static void transfer(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    for (int i = 0; i < 50; i++) {
        come(&w, 100 + 10 * i, 1000);
        if (i)
            last(&w, false)->ack -= 4; /* the last reply is still under way */
        go(&w, 105 + 10 * i, 4);
    }
    come(&w, 5000, 10);
    go(&w, 5005, 4);
    find(&w);
    expect_count(&w, 2);
    expect(&w, 0, 100, 595, 50000, 200);
    expect(&w, 1, 5000, 5005, 10, 4);
    assert_int_equal(w.lacking.overlapped, 1);
    end(&w);
}

static void lost_events(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    come(&w, 100, 7);
    w.seq[1] += 20; /* a reply that was not recorded, but the client had it */
    come(&w, 1000, 8);
    go(&w, 1100, 20);
    w.seq[0] += 9; /* bytes not recorded */
    go(&w, 2000, 20);
    come(&w, 3000, 5);
    go(&w, 3500, 6);
    find(&w);
    expect_count(&w, 2);
    expect(&w, 0, 3000, 3500, 5, 6);
    expect(&w, 1, 1000, 1100, 8, 20);
    assert_int_equal(w.lacking.cut, 2);
    end(&w);
}

/* Checks lost ends: requests acknowledged by the server arrived, whether recorded or not. If sent bytes are missing,
 * too, they may have been the reply to the recorded request, and this is the reply to the lost one. */
static void lost_tail(void **state)
{
    (void)state;
    for (int both = 0; both < 2; both++) {
        struct world w;
        begin(&w);
        come(&w, 100, 7);
        w.seq[0] += 100;
        if (both)
            w.seq[1] += 10;
        go(&w, 300, 20);
        find(&w);
        expect_count(&w, !both);
        if (!both)
            expect(&w, 0, 100, 300, 107, 20);
        assert_int_equal(w.lacking.cut, both);
        end(&w);
    }
}

static void closed(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    come(&w, 100, 7);
    go(&w, 300, 20);
    come(&w, 1000, 7)->flags |= FLOW_FIN; /* request with FIN: the FIN is a number, too */
    last(&w, false)->seq_end = ++w.seq[0];
    go(&w, 1500, 20)->flags |= FLOW_FIN;
    last(&w, true)->seq_end = ++w.seq[1];
    find(&w);
    expect_count(&w, 2);
    expect(&w, 0, 1000, 1500, 7, 20);
    expect(&w, 1, 100, 300, 7, 20);
    assert_int_equal(w.lacking.cut, 0);
    end(&w);
}

static void used_again(void **state)
{
    (void)state;
    for (int syn = 0; syn < 2; syn++) {
        struct world w;
        begin(&w);
        come(&w, 100, 7);
        go(&w, 300, 20);
        come(&w, 400, 7); /* the reply never came: the machine was cut off */
        w.seq[0] += UINT64_C(1) << 32, w.seq[1] += UINT64_C(1) << 32;
        if (syn) {
            come(&w, 900, 0)->flags = FLOW_SYN, last(&w, false)->seq_end = ++w.seq[0];
            go(&w, 910, 0)->flags = FLOW_SYN | FLOW_ACK, last(&w, true)->seq_end = ++w.seq[1];
        }
        come(&w, 1000, 7);
        go(&w, 2300, 20);
        find(&w);
        expect_count(&w, 2);
        expect(&w, 0, 1000, 2300, 7, 20);
        expect(&w, 1, 100, 300, 7, 20);
        end(&w);
    }
}

static void datagrams(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    for (uint32_t f = 0; f < w.flows[SERVER].flows.n; f++)
        w.flows[SERVER].flows.v[f].key.protocol = 17;
    come(&w, 100, 30)->seq_end = 0;
    go(&w, 200, 60)->seq_end = 0;
    come(&w, 300, 31)->seq_end = 0, come(&w, 310, 31)->seq_end = 0;
    go(&w, 500, 60)->seq_end = 0;
    find(&w);
    expect_count(&w, 2);
    expect(&w, 0, 300, 500, 62, 60);
    expect(&w, 1, 100, 200, 30, 60);
    end(&w);
}

/* ---- threads ---- */

static void handed_over(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    come(&w, 100, 7);
    go(&w, 300, 20)->row = w.worker;
    go(&w, 400, 20)->origin = FLOW_BY_RECEIVE, last(&w, true)->row = -1;
    find(&w);
    expect_count(&w, 1);
    expect(&w, 0, 100, 400, 7, 40);
    assert_int_equal(path_requests_get(w.found, 0)->thread.row, w.worker);
    assert_true(path_requests_get(w.found, 0)->by_interrupt);
    end(&w);
}

static void nobodys(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    come(&w, 100, 7)->row = -1;
    go(&w, 300, 20)->origin = FLOW_BY_RECEIVE, last(&w, true)->row = -1;
    find(&w);
    expect_count(&w, 0);
    assert_int_equal(w.lacking.nobodys, 1);
    end(&w);
}

static void passed_on(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    come(&w, 100, 7)->row = -1;
    go(&w, 300, 20)->origin = FLOW_PASSING, last(&w, true)->row = -1;
    find(&w);
    expect_count(&w, 0);
    assert_int_equal(w.lacking.nobodys, 0);
    end(&w);
}

/* ---- server side of a connection ---- */

/* Checks connections without a recorded start: sides by ports. Both hosts see a connection whose server is unknown,
 * which counts once. */
static void sides(void **state)
{
    (void)state;
    static const struct {
        uint16_t client, server;
        int requests;
    } ports[] = {{4001, 2000, 0}, {4001, 80, 1}, {80, 4001, 0}, {40000, 2000, 1}, {2000, 40000, 0}, {40000, 50000, 0}};
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
        struct world w;
        begin(&w);
        connect(&w, ports[i].client, ports[i].server);
        come(&w, 100, 7);
        go(&w, 300, 20);
        make_send(&w.flows[CLIENT], make_flow(&w.flows[CLIENT], 1, ports[i].client, 2, ports[i].server), 90, 7, 0);
        make_receive(&w.flows[CLIENT], make_flow(&w.flows[CLIENT], 2, ports[i].server, 1, ports[i].client), 310, 20, 0);
        find(&w);
        if ((int)path_requests_count(w.found) != ports[i].requests)
            fail_msg(
                "from port %d to %d: %zu requests", ports[i].client, ports[i].server, path_requests_count(w.found));
        bool alike = (ports[i].client < 32768) == (ports[i].server < 32768) &&
            (ports[i].client < 1024) == (ports[i].server < 1024);
        if (w.lacking.unsided != alike)
            fail_msg("from port %d to %d: %d", ports[i].client, ports[i].server, (int)w.lacking.unsided);
        end(&w);
    }
}

static void connected_to(void **state)
{
    (void)state;
    for (int seen = 0; seen < 3; seen++) {
        struct world w;
        begin(&w);
        if (seen == 2) { /* unrelated connection there, recorded from its beginning */
            connect(&w, 333, 50000);
            come(&w, 1, 0)->flags = FLOW_SYN;
        }
        connect(&w, 80, 50000);
        if (seen == 0)
            come(&w, 1, 0)->flags = FLOW_SYN, last(&w, false)->seq_end = ++w.seq[0];
        if (seen == 1)
            go(&w, 1, 0)->flags = FLOW_SYN | FLOW_ACK, last(&w, true)->seq_end = ++w.seq[1];
        come(&w, 100, 7);
        go(&w, 300, 20);
        find(&w);
        expect_count(&w, 1);
        end(&w);
    }
}

static void shared(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    for (uint16_t client = 0; client < 3; client++) {
        connect(&w, 41000 + client, 45000);
        come(&w, 100, 7);
        go(&w, 300 + client, 20);
    }
    find(&w);
    expect_count(&w, 3);
    end(&w);
}

/* ---- owner of a request ---- */

static void as_the_client_saw_it(void **state)
{
    (void)state;
    for (int loses = 0; loses < 2; loses++) {
        struct world w;
        struct request_client c;
        begin(&w);
        uint32_t ask = make_flow(&w.flows[CLIENT], 1, PORT, 2, 80), reply = make_flow(&w.flows[CLIENT], 2, 80, 1, PORT);
        make_send(&w.flows[CLIENT], ask, 90, 5010, w.client);
        come(&w, 100, 10);
        go(&w, 300, 10), go(&w, 310, 10);
        make_receive(&w.flows[CLIENT], reply, 330, 5010, w.client);
        if (!loses)
            make_receive(&w.flows[CLIENT], reply, 345, 5020, w.client);
        find(&w);
        expect_count(&w, 1);
        path_requests_client(w.found, 0, &c);
        assert_true(c.recorded && !c.local);
        assert_int_equal(c.thread.host, CLIENT);
        assert_int_equal(c.thread.row, w.client);
        assert_int_equal(c.begin, 90);
        assert_true(c.end == (loses ? INT64_MIN : 345));
        end(&w);
    }
}

static void strangers(void **state)
{
    (void)state;
    struct world w;
    struct request_client c;
    begin(&w);
    come(&w, 100, 10);
    go(&w, 300, 10);
    find(&w);
    path_requests_client(w.found, 0, &c);
    assert_true(!c.recorded && !c.local);
    assert_string_equal(c.address, "host1:4000");
    end(&w);
}

/* Checks a connection within one host: each packet is sent and received there. */
static void local(void **state)
{
    (void)state;
    struct world w;
    struct request_client c;
    begin(&w);
    w.in = make_flow(&w.flows[SERVER], 127, PORT, 127, 80);
    w.out = make_flow(&w.flows[SERVER], 127, 80, 127, PORT);
    make_send(&w.flows[SERVER], w.in, 99, 5010, w.worker);
    come(&w, 100, 10);
    go(&w, 300, 10);
    make_receive(&w.flows[SERVER], w.out, 301, 5010, w.worker);
    find(&w);
    expect_count(&w, 1);
    expect(&w, 0, 100, 300, 10, 10);
    path_requests_client(w.found, 0, &c);
    assert_true(c.recorded && c.local);
    assert_int_equal(c.thread.row, w.worker);
    assert_int_equal(c.begin, 99);
    assert_int_equal(c.end, 301);
    end(&w);
}

/* ---- selection ---- */

static void chosen(void **state)
{
    (void)state;
    static const struct {
        struct requests_question is;
        size_t n;
    } asked[] = {{{NULL, INT64_MIN, INT64_MAX}, 2}, {{"b", INT64_MIN, INT64_MAX}, 2}, {{"a", INT64_MIN, INT64_MAX}, 0},
        {{NULL, 301, 999}, 0}, {{NULL, 300, 999}, 1}, {{NULL, 301, 1000}, 1}, {{NULL, 150, 200}, 1}};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        struct world w;
        begin(&w);
        come(&w, 100, 7);
        go(&w, 300, 20);
        come(&w, 1000, 7);
        go(&w, 1400, 20);
        find_of(&w, &asked[i].is);
        expect_count(&w, asked[i].n);
        end(&w);
    }
}

static void unrelated(void **state)
{
    (void)state;
    struct world w;
    begin(&w);
    come(&w, 100, 7);
    go(&w, 300, 20);
    w.hosts[SERVER].map = &apart;
    find(&w);
    expect_count(&w, 0);
    assert_int_equal(w.lacking.unrelated, 1);
    end(&w);
}

/* ---- anything ---- */

/* Whatever packets there are: requests of a connection follow each other, and each has a reply. While numbers make
 * sense (packets come late and again, and that is all), no byte is in two. */
static void anything(void **state)
{
    (void)state;
    uint64_t seed = test_seed(61);
    for (int round = 0; round < 300; round++) {
        struct world w;
        int64_t at = 100;
        bool sane = round % 2;
        begin(&w);
        for (int i = 0; i < 60; i++) {
            uint64_t dice = seed = seed * 6364136223846793005 + 1442695040888963407;
            uint32_t bytes = (dice >> 33) % 4 ? (uint32_t)(dice >> 35) % 50 : 0;
            bool sent = (dice >> 45) & 1;
            struct flow_packet *p = sent ? go(&w, at, bytes) : come(&w, at, bytes);
            uint64_t back = (dice >> 50) % 100, before_it = p->seq_end - bytes - 5000;
            if ((dice >> 46) % 8 == 0)
                p->seq_end -= !sane || back < before_it ? back : before_it;
            if (!sane && (dice >> 49) % 8 == 0)
                p->ack += (uint32_t)(dice >> 51) % 64 - 32;
            if (!sane && (dice >> 57) % 16 == 0)
                p->flags = (dice >> 61) & 0x17;
            at += (int64_t)(dice >> 40) % 3;
        }
        find(&w);
        uint64_t in = 0, out = 0;
        for (size_t i = 0; i < path_requests_count(w.found); i++) {
            const struct served_request *r = path_requests_get(w.found, i),
                                        *before = i ? path_requests_get(w.found, i - 1) : r;
            assert_true(r->begin <= r->end && r->bytes_in && r->bytes_out);
            assert_true(before->end - before->begin >= r->end - r->begin);
            for (size_t k = 0; k < i; k++)
                assert_true(
                    path_requests_get(w.found, k)->end <= r->begin || r->end <= path_requests_get(w.found, k)->begin);
            in += r->bytes_in;
            out += r->bytes_out;
        }
        assert_true(!sane || (in <= w.seq[0] - 5000 && out <= w.seq[1] - 5000));
        end(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_alive),
        cmocka_unit_test(bare_acknowledgements),
        cmocka_unit_test(sent_again),
        cmocka_unit_test(overtaken),
        cmocka_unit_test(one_way),
        cmocka_unit_test(greeted),
        cmocka_unit_test(transfer),
        cmocka_unit_test(lost_events),
        cmocka_unit_test(lost_tail),
        cmocka_unit_test(closed),
        cmocka_unit_test(used_again),
        cmocka_unit_test(datagrams),
        cmocka_unit_test(handed_over),
        cmocka_unit_test(nobodys),
        cmocka_unit_test(passed_on),
        cmocka_unit_test(sides),
        cmocka_unit_test(connected_to),
        cmocka_unit_test(shared),
        cmocka_unit_test(as_the_client_saw_it),
        cmocka_unit_test(strangers),
        cmocka_unit_test(local),
        cmocka_unit_test(chosen),
        cmocka_unit_test(unrelated),
        cmocka_unit_test(anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
