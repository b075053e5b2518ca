/* SPDX-License-Identifier: MIT */
/* Fields of recorded events: read by name they are what the generic walk shows, and on both ends of a TCP connection
 * they are the same. */
#include "stream_helpers.h"

/* ---- access by name against the walk ---- */

enum { DEPTH_MAX = 16 };

struct checker {
    const struct ctf_event *ev;
    enum ctf_scope scope;
    char path[1024];
    size_t ends[DEPTH_MAX]; /* lengths of the path outside each open compound */
    int depth, lists;
    uint64_t numbers, strings, misses;
};

static void push_name(struct checker *c, const char *name)
{
    size_t n = strlen(c->path);
    snprintf(c->path + n, sizeof c->path - n, "%s%s", n ? "." : "", name);
}

static void check_leaf(void *arg, const struct ctf_value *v)
{
    struct checker *c = arg;
    struct ctf_access a;
    bool present;
    size_t n, keep = strlen(c->path);
    if (c->lists)
        return;
    push_name(c, v->name);
    if (ctf_access_find(c->ev->cls, c->scope, c->path, &a) && a.type == v->type) {
        if (v->type->kind == CTF_INT || v->type->kind == CTF_ENUM) {
            int64_t slow = ctf_read_slow(c->ev, &a, &present);
            if (!present || slow != v->v.i || ctf_read_int(c->ev, &a) != v->v.i)
                fail_msg("%s: %s is %ld, read as %ld", c->ev->cls->name, c->path, v->v.i, slow);
            c->numbers++;
        } else if (v->s) {
            const char *s = ctf_read_string(c->ev, &a, &n);
            if (s != v->s || n != v->len)
                fail_msg("%s: %s differs", c->ev->cls->name, c->path);
            c->strings++;
        }
    } else {
        c->misses++;
    }
    c->path[keep] = '\0';
}

static void check_begin(void *arg, const struct ctf_value *v)
{
    struct checker *c = arg;
    assert_true(c->depth < DEPTH_MAX);
    c->ends[c->depth++] = strlen(c->path);
    if (v->type->kind == CTF_ARRAY || v->type->kind == CTF_SEQUENCE)
        c->lists++;
    if (v->name && !c->lists)
        push_name(c, v->name);
}

static void check_end(void *arg, const struct ctf_value *v)
{
    struct checker *c = arg;
    if (v->type->kind == CTF_ARRAY || v->type->kind == CTF_SEQUENCE)
        c->lists--;
    c->path[c->ends[--c->depth]] = '\0';
}

static void check_fields(const char *below, uint64_t least)
{
    struct opened o;
    struct checker c = {0};
    struct ctf_visitor v = {check_leaf, check_begin, check_end, &c};
    open_all(&o, data_or_skip(below));
    event_vec all = read_all(o.merge);
    for (size_t i = 0; i < all.n; i++) {
        c.ev = &all.v[i];
        for (int s = 0; s < CTF_SCOPES && all.v[i].cls->item == CTF_EVENT; s++) {
            c.scope = (enum ctf_scope)s;
            ctf_visit(&all.v[i], c.scope, &v);
            assert_int_equal(c.depth, 0);
        }
    }
    assert_true(c.numbers >= least * all.n);
    assert_true(c.misses * 100 <= c.numbers); /* fields of equal name in one compound */
    vec_free(&all);
    close_all(&o);
}

static void test_fields_by_name(void **state)
{
    check_fields("traces/three-tier", 5);
    check_fields("traces/vm", 5);
    check_fields("traces/ust-live", 1);
    check_fields("traces/perf-ctf", 3);
    if (!test_have(data_path("traces-public/single-host")))
        return;
    check_fields("traces-public/single-host/bug446190", 3);
    check_fields("traces-public/single-host/flipping-endianness", 1);
    check_fields("traces-public/context-switches-ust", 1);
    check_fields("traces-public/babeltrace2-tests/succeed/multi-domains", 1);
}

/* ---- two hosts, one packet ---- */

struct key {
    int64_t seq, ack, flags;
    bool found;
};

static struct key key_at(const event_vec *all, int64_t ts)
{
    size_t lo = 0, hi = all->n;
    struct key k = {0};
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;
        if (all->v[mid].ts < ts)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (; lo < all->n && all->v[lo].ts == ts && !k.found; lo++) {
        struct ctf_access seq, ack, flags;
        const struct ctf_event *ev = &all->v[lo];
        if (strncmp(ev->cls->name, "inet_sock_local_", 16))
            continue;
        assert_true(ctf_access_find(ev->cls, CTF_PAYLOAD, "seq", &seq));
        assert_true(ctf_access_find(ev->cls, CTF_PAYLOAD, "ack_seq", &ack));
        assert_true(ctf_access_find(ev->cls, CTF_PAYLOAD, "flags", &flags));
        k.found = true;
        k.seq = ctf_read_int(ev, &seq);
        k.ack = ctf_read_int(ev, &ack);
        k.flags = ctf_read_int(ev, &flags);
    }
    return k;
}

static void test_both_ends_of_a_connection(void **state)
{
    char line[256];
    size_t matched = 0;
    FILE *f = fopen(data_or_skip("traces-public/synctraces/derived-matches.csv"), "r");
    struct opened src, dest;
    open_all(&src, data_path("traces-public/synctraces/scp_src"));
    open_all(&dest, data_path("traces-public/synctraces/scp_dest"));
    event_vec vm1 = read_all(src.merge), vm3 = read_all(dest.merge);
    while (fgets(line, sizeof line, f)) {
        char from[16], to[16];
        int64_t sent, received;
        if (sscanf(line, "%15[^,],%ld,%15[^,],%ld", from, &sent, to, &received) != 4)
            continue;
        bool forth = !strcmp(from, "VM1");
        struct key a = key_at(forth ? &vm1 : &vm3, sent), z = key_at(forth ? &vm3 : &vm1, received);
        assert_true(a.found && z.found);
        assert_true(a.seq == z.seq && a.ack == z.ack && a.flags == z.flags);
        assert_true(a.seq > 0);
        matched++;
    }
    fclose(f);
    assert_int_equal(matched, 46);
    vec_free(&vm1);
    vec_free(&vm3);
    close_all(&src);
    close_all(&dest);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_by_name),
        cmocka_unit_test(test_both_ends_of_a_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
