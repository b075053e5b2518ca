/* SPDX-License-Identifier: MIT */
/* Clocks of the recorded clusters from messages in parts: however they are cut, whichever part comes late, and from
 * stores that are damaged or of other traces, `sync` gives the same result as from all at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <glob.h>

#include <cmocka.h>

#include "../base/test.h"
#include "base/json.h"
#include "base/map.h"
#include "base/mem.h"
#include "clock/clock.h"
#include "flow/flow.h"
#include "index/index.h"

enum { MOST_PARTS = 12 };

struct message {
    uint32_t from, to;
    int64_t sent, received;
};

struct collected {
    VEC(struct message) v;
    uint32_t from, to;
};

struct recording {
    struct experiment *x;
    const struct index_host *hosts;
    size_t n;
    char store[64];
    struct collected all;
};

static void on_message(void *arg, int64_t sent, int64_t received)
{
    struct collected *c = arg;
    vec_push(&c->v, ((struct message){c->from, c->to, sent, received}));
}

static void collect(struct recording *r)
{
    const struct flow_store **flows = mem_alloc((r->n + 1) * sizeof *flows);
    struct flow_link *links;
    for (size_t h = 0; h < r->n; h++)
        flows[h] = r->hosts[h].flows;
    size_t n = flow_links(flows, r->n, 0, &links);
    for (size_t i = 0; i < n; i++) {
        r->all.from = links[i].a;
        r->all.to = links[i].b;
        flow_pairs(flows[links[i].a], flows[links[i].b], &links[i], 1, on_message, &r->all);
    }
    free(links);
    free(flows);
}

static void open_recording(struct recording *r, const char *name)
{
    char path[4096];
    const char *data = getenv("WEFT_DATA"), *trace = path;
    struct err e = {0};
    *r = (struct recording){.store = "/tmp/weft-sync-XXXXXX"};
    snprintf(path, sizeof path, "%s/traces/%s", data ? data : WEFT_SOURCE_ROOT "/../shared/data", name);
    if (access(path, R_OK))
        skip_without("no %s", path);
    assert_non_null(mkdtemp(r->store));
    struct index_options o = {.store = r->store, .stores = true};
    if (index_experiment_open(&trace, 1, &o, &r->x, &e))
        fail_msg("%s", e.text);
    r->n = index_experiment_hosts(r->x, &r->hosts);
    collect(r);
}

static void close_recording(struct recording *r)
{
    char command[128];
    index_experiment_close(r->x);
    vec_free(&r->all.v);
    snprintf(command, sizeof command, "rm -rf %s", r->store);
    assert_int_equal(system(command), 0);
}

static struct clock_net *net_of(const struct recording *r, double prior)
{
    struct clock_options o = clock_defaults();
    o.drift_prior_ppm = prior;
    struct clock_net *net = clock_net_new(&o);
    for (size_t h = 0; h < r->n; h++)
        clock_net_host(net, r->hosts[h].clock_name, r->hosts[h].begin, r->hosts[h].end);
    return net;
}

static char *answer(struct clock_net *net)
{
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    struct err e = {0};
    if (clock_net_solve(net, &e))
        fail_msg("%s", e.text);
    clock_net_write_json(net, &j);
    clock_net_write_table(net, &t, false);
    clock_net_write_stats(net, &t);
    char *out = mem_strdup(text_cstr(&t));
    text_fini(&t);
    clock_net_free(net);
    return out;
}

/* ---- parts ---- */

struct part {
    struct collected *of; /* results of one part */
    size_t a, b;
};

static void tell_part(void *arg, struct clock_told *to)
{
    const struct part *p = arg;
    for (size_t i = 0; i < p->of->v.n; i++) {
        const struct message *m = &p->of->v.v[i];
        if ((m->from == p->a && m->to == p->b) || (m->from == p->b && m->to == p->a))
            clock_tell(to, m->from == p->a, m->sent, m->received);
    }
}

/* Keeps the messages of one part as those of a chunk. */
static struct clock_kept *keep_part(const struct recording *r, struct collected *of, uint64_t serial)
{
    char path[96];
    struct clock_source sources[64];
    struct clock_part *all = mem_alloc(r->n * r->n * sizeof *all);
    struct clock_kept *kept = NULL;
    struct err e = {0};
    size_t n = 0;
    assert_true(r->n <= 64);
    for (size_t a = 0; a < r->n; a++) {
        sources[a] = (struct clock_source){a + 1, INT64_MAX, serial};
        for (size_t b = a + 1; b < r->n; b++) {
            all[n] = (struct clock_part){.a = a, .b = b, .told = clock_told_new(300)};
            tell_part(&(struct part){of, a, b}, all[n++].told);
        }
    }
    snprintf(path, sizeof path, "%s/part", r->store);
    if (clock_kept_save(path, 1, 300, sources, r->n, all, n, &e) || clock_kept_open(path, 1, &kept, &e))
        fail_msg("%s", e.text);
    unlink(path);
    for (size_t i = 0; i < n; i++)
        clock_told_free(all[i].told);
    free(all);
    return kept;
}

struct joined {
    struct clock_kept **parts;
    size_t n, a, b;
};

static void tell_joined(void *arg, struct clock_told *to)
{
    const struct joined *j = arg;
    for (size_t k = 0; k < j->n; k++)
        for (size_t i = 0; i < clock_kept_parts(j->parts[k]); i++) {
            struct clock_part part;
            clock_kept_part(j->parts[k], i, &part);
            if (part.a == j->a && part.b == j->b)
                clock_kept_tell(j->parts[k], i, to);
        }
}

static char *answer_of_parts(const struct recording *r, struct clock_kept **parts, size_t n, double prior)
{
    struct clock_net *net = net_of(r, prior);
    struct joined *all = mem_alloc(r->n * r->n * sizeof *all);
    size_t k = 0;
    for (size_t a = 0; a < r->n; a++)
        for (size_t b = a + 1; b < r->n; b++) {
            all[k] = (struct joined){parts, n, a, b};
            clock_net_messages(net, a, b, tell_joined, &all[k++]);
        }
    char *out = answer(net);
    free(all);
    return out;
}

static char *answer_of_messages(const struct recording *r, struct collected *of, size_t n, double prior)
{
    struct clock_net *net = net_of(r, prior);
    for (size_t k = 0; k < n; k++)
        for (size_t i = 0; i < of[k].v.n; i++)
            clock_net_message(net, of[k].v.v[i].from, of[k].v.v[i].to, of[k].v.v[i].sent, of[k].v.v[i].received);
    return answer(net);
}

static uint64_t dice(uint64_t *seed)
{
    return *seed = map_mix(*seed + 0x9e3779b97f4a7c15);
}

/* Cuts at random times of each host; a message is of the chunk in which it was sent. */
static size_t cut(const struct recording *r, struct collected *parts, uint64_t *seed)
{
    size_t n = 1 + dice(seed) % MOST_PARTS;
    uint64_t at[MOST_PARTS]; /* cuts, in parts of 2^20 */
    for (size_t k = 0; k < n; k++)
        at[k] = dice(seed) >> 44;
    for (size_t i = 0; i < r->all.v.n; i++) {
        const struct message *m = &r->all.v.v[i];
        const struct index_host *h = &r->hosts[m->from];
        uint64_t when = (uint64_t)((double)(m->sent - h->begin) / (double)(h->end - h->begin + 1) * (1 << 20));
        size_t part = 0;
        for (size_t k = 1; k < n; k++)
            part += at[k] <= when;
        vec_push(&parts[part].v, *m);
    }
    return n;
}

static void shuffle(struct clock_kept **v, size_t n, uint64_t *seed)
{
    for (size_t i = n; i > 1; i--) {
        size_t k = dice(seed) % i;
        struct clock_kept *t = v[i - 1];
        v[i - 1] = v[k];
        v[k] = t;
    }
}

static void check_cuttings(const char *name)
{
    static const double priors[] = {300, 100, -1};
    const char *asked = getenv("WEFT_CUTTINGS");
    struct recording r;
    open_recording(&r, name);
    assert_true(r.all.v.n > 20);
    char *whole[3];
    for (int p = 0; p < 3; p++)
        whole[p] = answer_of_messages(&r, &r.all, 1, priors[p]);
    for (uint64_t first = test_seed(1), seed = first; seed < first + (asked ? strtoul(asked, NULL, 10) : 5); seed++) {
        struct collected parts[MOST_PARTS] = {0};
        struct clock_kept *kept[MOST_PARTS];
        uint64_t random = seed;
        size_t n = cut(&r, parts, &random);
        for (size_t k = 0; k < n; k++)
            kept[k] = keep_part(&r, &parts[k], k);
        char *without = answer_of_messages(&r, parts, n - 1, 300), *missing = answer_of_parts(&r, kept, n - 1, 300);
        assert_string_equal(without, missing);
        shuffle(kept, n, &random);
        for (int p = 0; p < 3; p++) {
            char *cut_up = answer_of_parts(&r, kept, n, priors[p]);
            if (strcmp(cut_up, whole[p]) != 0)
                fail_msg("%s, seed %llu, prior %g: cut into %zu:\n%s\nat once:\n%s", name, (unsigned long long)seed,
                    priors[p], n, cut_up, whole[p]);
            free(cut_up);
        }
        free(without);
        free(missing);
        for (size_t k = 0; k < n; k++) {
            clock_kept_close(kept[k]);
            vec_free(&parts[k].v);
        }
    }
    for (int p = 0; p < 3; p++)
        free(whole[p]);
    close_recording(&r);
}

static void three_tier(void **state)
{
    check_cuttings("three-tier");
}
static void scp_net(void **state)
{
    check_cuttings("scp-net");
}
static void bsp(void **state)
{
    check_cuttings("bsp");
}
static void mpi(void **state)
{
    check_cuttings("mpi");
}
static void clocks(void **state)
{
    check_cuttings("clocks");
}

/* ---- kept messages by host ---- */

/* Returns the answer. from: hosts whose records are kept, by their source; to: where they are kept. */
static char *answer_of_flows(const struct recording *r, const uint64_t *hashes, bool flows, const char *from,
    const size_t *host_of, const char *to, size_t *looked_at)
{
    struct index_sync_host *hosts = mem_zalloc((r->n + 1) * sizeof *hosts);
    struct clock_net *net = net_of(r, 300);
    struct clock_kept *kept = NULL;
    struct err e = {0};
    for (size_t h = 0; h < r->n; h++)
        hosts[h] = (struct index_sync_host){.flows = flows ? r->hosts[h].flows : NULL,
            .all = {h + 1, INT64_MAX, hashes[h]},
            .sealed = {h + 1, INT64_MIN, 0}};
    if (from && clock_kept_open(from, 1, &kept, &e))
        fail_msg("%s", e.text);
    struct index_sync sync = {
        .hosts = hosts, .n = r->n, .prior_ppm = 300, .kept = kept, .host_of = host_of, .path = to, .key = 1};
    if (index_sync_flows(net, &sync, &e))
        fail_msg("%s", e.text);
    *looked_at = sync.looked_at;
    clock_kept_close(kept);
    free(hosts);
    return answer(net);
}

/* Checks that no flow is read if the messages of all hosts are kept. n2 has other records: its two pairs are
 * recomputed. n2 and n3 never talk. */
static void test_known_hosts(void **state)
{
    struct recording r;
    const uint64_t hashes[64] = {0};
    size_t looked_at, host_of[64] = {0};
    char path[96];
    open_recording(&r, "mpi");
    snprintf(path, sizeof path, "%s/kept", r.store);
    for (size_t i = 0; i < 2 * r.n; i++)
        host_of[i] = i / 2;
    char *at_once = answer_of_flows(&r, hashes, true, NULL, NULL, path, &looked_at);
    assert_int_equal(looked_at, 5);
    char *from_kept = answer_of_flows(&r, hashes, false, path, host_of, NULL, &looked_at);
    assert_int_equal(looked_at, 0);
    assert_string_equal(at_once, from_kept);
    host_of[2] = host_of[3] = SIZE_MAX;
    char *one_new = answer_of_flows(&r, hashes, true, path, host_of, NULL, &looked_at);
    assert_int_equal(looked_at, 2);
    assert_string_equal(at_once, one_new);
    for (size_t i = 0; i < 2; i++) { /* known hosts in another order */
        host_of[i] = 2;
        host_of[4 + i] = 0;
    }
    char *turned = answer_of_flows(&r, hashes, true, path, host_of, NULL, &looked_at);
    assert_int_equal(looked_at, 5);
    assert_string_equal(at_once, turned);
    free(at_once);
    free(from_kept);
    free(one_new);
    free(turned);
    close_recording(&r);
}

static char *experiment_answer(const struct recording *r, double prior)
{
    struct clock_options o = clock_defaults();
    const struct clock_net *net;
    struct err e = {0};
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    o.drift_prior_ppm = prior;
    if (index_experiment_sync(r->x, &o, &net, &e))
        fail_msg("%s", e.text);
    clock_net_write_json(net, &j);
    clock_net_write_stats(net, &t);
    char *out = mem_strdup(text_cstr(&t));
    text_fini(&t);
    return out;
}

static void remove_stores(const struct recording *r, const char *which)
{
    char pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*/%s-*", r->store, which);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    for (size_t i = 0; i < found.gl_pathc; i++)
        assert_int_equal(unlink(found.gl_pathv[i]), 0);
    globfree(&found);
}

/* Damages the only store of messages: cuts it at `size`, or changes the byte at `flip`. */
static void damage(const struct recording *r, long size, long flip)
{
    char pattern[128];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/*/messages-*", r->store);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, 1);
    if (size >= 0)
        assert_int_equal(truncate(found.gl_pathv[0], size), 0);
    if (flip >= 0) {
        FILE *f = fopen(found.gl_pathv[0], "r+");
        assert_int_equal(fseek(f, flip, SEEK_SET), 0);
        int c = getc(f);
        assert_int_equal(fseek(f, flip, SEEK_SET), 0);
        putc(c ^ 64, f);
        assert_int_equal(fclose(f), 0);
    }
    globfree(&found);
}

/* Maps are made of kept messages, of flows where these are damaged, and of flows where the prior is greater. */
static void test_stores(void **state)
{
    struct recording r;
    open_recording(&r, "three-tier");
    char *first = experiment_answer(&r, 300);
    for (long k = 0; k < 24; k++) {
        remove_stores(&r, "clocks");
        if (k)
            damage(&r, k % 2 ? 40 * k : -1, k % 2 ? -1 : 37 * k);
        char *again = experiment_answer(&r, 300);
        assert_string_equal(first, again);
        free(again);
    }
    static const double priors[] = {100, 2000, 300, -1, 5};
    for (size_t p = 0; p < 5; p++) {
        char *kept = experiment_answer(&r, priors[p]);
        remove_stores(&r, "clocks");
        remove_stores(&r, "messages");
        char *fresh = experiment_answer(&r, priors[p]);
        assert_string_equal(kept, fresh);
        free(kept);
        free(fresh);
    }
    free(first);
    close_recording(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_tier),
        cmocka_unit_test(scp_net),
        cmocka_unit_test(bsp),
        cmocka_unit_test(mpi),
        cmocka_unit_test(clocks),
        cmocka_unit_test(test_known_hosts),
        cmocka_unit_test(test_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
