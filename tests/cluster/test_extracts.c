/* SPDX-License-Identifier: MIT */
/* Packets of a host that go over the bus in parts: however they are cut, the same store comes out, and what is no part
 * of it is refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/test.h"
#include "cluster/extracts.h"
#include "index/index.h"

static char top[] = "/tmp/weft-extracts-XXXXXX";
static struct experiment *experiment;
static const struct index_host *hosts;

static int open_traces(void **state)
{
    char command[4096], traces[4096], store[4096];
    struct err e = {0};
    (void)state;
    if (!mkdtemp(top))
        return -1;
    snprintf(command, sizeof command, "tar -xJf '%s/examples/three-tier.tar.xz' -C '%s'", WEFT_SOURCE_ROOT, top);
    snprintf(traces, sizeof traces, "%s/three-tier", top);
    snprintf(store, sizeof store, "%s/store", top);
    struct index_options o = {.store = store, .stores = true};
    const char *args[] = {traces};
    if (system(command) || index_experiment_open(args, 1, &o, &experiment, &e))
        return -1;
    return index_experiment_hosts(experiment, &hosts) < 3;
}

static int close_traces(void **state)
{
    char command[4096];
    (void)state;
    index_experiment_close(experiment);
    snprintf(command, sizeof command, "rm -r '%s'", top);
    return system(command);
}

/* Queries to the client besides the server that it talks to, and the whole answer. */
struct answer {
    uint64_t *hashes;
    struct flow_own_address *own;
    struct extract_question question;
    struct extracts *from;
    struct text bytes;
    struct extract_part part;
};

static void ask_from(struct answer *a, uint64_t from, struct text *out, struct extract_part *part)
{
    struct err e = {0};
    struct extract_question q = a->question;
    q.from = from;
    assert_int_equal(cluster_extracts_answer(a->from, hosts[0].flows, &q, out, &e), 0);
    assert_int_equal(cluster_extract_part_read(out->v, out->n, part, &e), 0);
}

static struct answer ask(void)
{
    struct answer a = {.from = cluster_extracts_new(), .bytes = {.fd = -1}};
    a.question.key = hosts[0].key;
    a.question.others.n_hashes = flow_hashes(hosts[2].flows, &a.hashes);
    a.question.others.hashes = a.hashes;
    a.question.others.n_own = flow_own_addresses(hosts[2].flows, &a.own);
    a.question.others.own = a.own;
    ask_from(&a, 0, &a.bytes, &a.part);
    assert_int_equal(a.part.n, a.part.total);
    return a;
}

static void answer_fini(struct answer *a)
{
    free(a->hashes);
    free(a->own);
    cluster_extracts_free(a->from);
    text_fini(&a->bytes);
}

static int take(struct coming *c, uint64_t serial, uint64_t total, const char *bytes, size_t n)
{
    struct text t = {.fd = -1};
    struct err e = {0};
    cluster_extract_part_write(&(struct extract_part){serial, total, bytes, n}, &t);
    int rc = cluster_incoming_take(c, t.v, t.n, &e);
    text_fini(&t);
    return rc;
}

static uint64_t packets_of(const struct flow_store *s)
{
    uint64_t n = 0;
    for (size_t f = 0; f < flow_count(s); f++)
        n += flow_sends(s, f) + flow_receives(s, f);
    return n;
}

static void in_any_parts(void **state)
{
    struct answer a = ask();
    const char *bytes = a.part.bytes;
    uint64_t seed = test_seed(8);
    uint32_t *needed;
    struct err e = {0};
    (void)state;
    size_t n = flow_needed(hosts[0].flows, &a.question.others, 1, &needed);
    uint64_t packets = 0;
    for (size_t i = 0; i < n; i++)
        packets += flow_sends(hosts[0].flows, needed[i]) + flow_receives(hosts[0].flows, needed[i]);
    assert_true(n > 0 && packets > 0);
    for (int i = 0; i < 20; i++) {
        struct coming c = {0};
        struct flow_store *s;
        uint32_t most = 1 + test_random(&seed, (uint32_t)a.part.total);
        for (uint64_t at = 0; at < a.part.total;) {
            uint64_t left = a.part.total - at, size = 1 + test_random(&seed, most);
            size = size < left ? size : left;
            assert_false(coming_is_whole(&c));
            assert_int_equal(take(&c, a.part.serial, a.part.total, bytes + at, size), 0);
            at += size;
            assert_int_equal(c.got, at);
        }
        assert_true(coming_is_whole(&c));
        if (cluster_incoming_open(&c, &s, &e))
            fail_msg("%s", e.text);
        assert_int_equal(flow_count(s), n);
        assert_int_equal(packets_of(s), packets);
        flow_close(s);
        cluster_incoming_fini(&c);
    }
    free(needed);
    answer_fini(&a);
}

/* Checks queries for a continuation: the rest is returned; beyond the end, nothing. */
static void from_anywhere(void **state)
{
    struct answer a = ask();
    (void)state;
    for (uint64_t from = 0; from <= a.part.total + 1; from += 1 + a.part.total / 13) {
        struct text t = {.fd = -1};
        struct extract_part p;
        ask_from(&a, from, &t, &p);
        assert_int_equal(p.serial, a.part.serial);
        assert_int_equal(p.n, from < a.part.total ? a.part.total - from : 0);
        assert_memory_equal(p.bytes, (const char *)a.part.bytes + from, p.n);
        text_fini(&t);
    }
    answer_fini(&a);
}

static void what_is_no_part(void **state)
{
    struct answer a = ask();
    const char *bytes = a.part.bytes;
    struct flow_store *s;
    struct err e = {0};
    (void)state;
    struct coming c = {0};
    assert_int_equal(take(&c, 1, 1000, bytes, 10), 0);
    assert_int_equal(take(&c, 2, 1000, bytes, 10), ERR_FORMAT); /* part of another answer */
    assert_int_equal(take(&c, 1, 1001, bytes, 10), ERR_FORMAT);
    assert_int_equal(take(&c, 1, 1000, bytes, 0), ERR_FORMAT);   /* empty part: endless */
    assert_int_equal(take(&c, 1, 1000, bytes, 991), ERR_FORMAT); /* more bytes than there are */
    assert_int_equal(take(&c, 1, 1000, bytes, 990), 0);
    assert_int_equal(take(&c, 1, 1000, bytes, 1), ERR_FORMAT);
    assert_true(coming_is_whole(&c));
    assert_int_equal(cluster_incoming_open(&c, &s, &e), ERR_FORMAT); /* cut off */
    cluster_incoming_fini(&c);
    assert_int_equal(take(&c, 1, UINT64_MAX, bytes, 10), ERR_LIMIT);
    cluster_incoming_fini(&c);
    assert_int_equal(cluster_incoming_take(&c, "\xff", 1, &e), ERR_FORMAT);
    cluster_incoming_fini(&c);
    answer_fini(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_any_parts), cmocka_unit_test(from_anywhere), cmocka_unit_test(what_is_no_part)};
    return cmocka_run_group_tests(tests, open_traces, close_traces);
}
