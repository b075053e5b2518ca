/* SPDX-License-Identifier: MIT */
/* Streams that were cut anywhere or had bits changed: what was good before the damage is read, nothing crashes (run
 * this with sanitizers), and nothing takes longer than its bytes allow. */
#include "stream_helpers.h"

#include <dirent.h>

static struct bytes b;
static struct ctf_schemas *schemas;
static struct ctf_group group;
static char *dirs[1];

static const char metadata[] =
    "/* CTF 1.8 */\n"
    "typealias integer { size = 8; align = 8; } := uint8_t; typealias integer { size = 16; align = 8; } := uint16_t;\n"
    "typealias integer { size = 32; align = 8; } := uint32_t; typealias integer { size = 64; align = 8; } := "
    "uint64_t;\n"
    "typealias integer { size = 5; align = 1; } := uint5_t;\n"
    "trace { major = 1; minor = 8; byte_order = le; uuid = \"00000000-0000-0000-0000-000000000000\";\n"
    " packet.header := struct { uint32_t magic; uint8_t uuid[16]; uint32_t stream_id; uint64_t stream_instance_id; "
    "}; };\n"
    "clock { name = c; freq = 1000000000; };\n"
    "typealias integer { size = 27; align = 1; map = clock.c.value; } := uint27_clock;\n"
    "typealias integer { size = 64; align = 8; map = clock.c.value; } := uint64_clock;\n"
    "stream { id = 0; event.header := struct { enum : uint5_t { compact = 0 ... 30, extended = 31 } id;\n"
    "  variant <id> { struct { uint27_clock timestamp; } compact; struct { uint32_t id; uint64_clock timestamp; } "
    "extended; } v; } align(8);\n"
    " packet.context := struct { uint64_clock timestamp_begin; uint64_clock timestamp_end; uint64_t content_size; "
    "uint64_t packet_size;\n"
    "  uint64_t packet_seq_num; uint32_t events_discarded; uint32_t cpu_id; }; };\n"
    "event { name = fixed; id = 1; stream_id = 0; fields := struct { uint32_t x; }; };\n"
    "event { name = text; id = 2; stream_id = 0; fields := struct { string s; uint8_t n; uint16_t list[n]; }; };\n"
    "event { name = choice; id = 3; stream_id = 0; fields := struct { enum : uint8_t { a, b = 1 ... 9 } t; variant "
    "<t> { uint32_t a; string b; } v;\n"
    "  uint64_t m; struct { uint8_t k; uint8_t l[k]; } deep[m]; integer { size = 3; } p; integer { size = 13; "
    "signed = true; } q; uint8_t end; }; };\n"
    "event { name = far; id = 100000; stream_id = 0; fields := struct { uint8_t y; }; };\n";

static void head(uint32_t id, uint32_t ts)
{
    put(&b, id | ts << 5, 4);
}

static void events(uint32_t ts)
{
    head(1, ts), put(&b, ts, 4);
    head(2, ts + 1), put_string(&b, "some text"), put(&b, 2, 1), put(&b, 1, 2), put(&b, 2, 2);
    head(3, ts + 2), put(&b, 0, 1), put(&b, 7, 4), put(&b, 2, 8), put(&b, 1, 1), put(&b, 9, 1), put(&b, 0, 1),
        put(&b, 0xabcd, 2), put(&b, 1, 1);
    head(3, ts + 3), put(&b, 4, 1), put_string(&b, "b"), put(&b, 0, 8), put(&b, 0x1234, 2), put(&b, 2, 1);
    put(&b, 31, 1), put(&b, 100000, 4), put(&b, ts + 4, 8), put(&b, 3, 1);
}

enum { PACKETS = 4, EVENTS_EACH = 10 };

static void make_stream(void)
{
    memset(&b, 0, sizeof b);
    for (uint64_t i = 0; i < PACKETS; i++) {
        size_t at = b.n;
        put(&b, 0xC1FC1FC1, 4), b.n += 16, put(&b, 0, 4), put(&b, 5, 8);
        put(&b, 1000 * i, 8), put(&b, 1000 * i + 900, 8), put(&b, 0, 8), put(&b, 0, 8), put(&b, i, 8),
            put(&b, 3 * i, 4), put(&b, 1, 4);
        events((uint32_t)(1000 * i + 10));
        events((uint32_t)(1000 * i + 20));
        patch(&b, at + 48, (b.n - at) * 8, 8);
        b.n += 16;
        patch(&b, at + 56, (b.n - at) * 8, 8);
    }
}

/* ---- reading everything that can be read ---- */

static uint64_t sink;
static void leaf(void *arg, const struct ctf_value *v)
{
    sink += v->v.u;
    for (size_t i = 0; v->s && i < v->len; i++)
        sink += (uint8_t)v->s[i];
}
static void compound(void *arg, const struct ctf_value *v)
{
    sink += v->len;
}

static void use_event(const struct ctf_event *ev)
{
    static const char *const paths[] = {"x", "s", "list", "t", "v.a", "v.b", "m", "deep", "p", "q", "end", "y"};
    struct ctf_visitor v = {leaf, compound, compound, NULL};
    for (int s = 0; s < CTF_SCOPES; s++)
        ctf_visit(ev, (enum ctf_scope)s, &v);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        struct ctf_access a;
        bool present;
        size_t n;
        if (!ctf_access_find(ev->cls, CTF_PAYLOAD, paths[i], &a))
            continue;
        sink += (uint64_t)ctf_read_slow(ev, &a, &present) + (uint64_t)ctf_read_int(ev, &a);
        const char *s = ctf_read_string(ev, &a, &n);
        for (size_t k = 0; s && k < n; k++)
            sink += (uint8_t)s[k];
    }
}

/* Reads the trace in `group`; compares its events with `good` where that is given. */
static uint64_t read_damaged(uint64_t bytes, const event_vec *good, bool prefix)
{
    struct ctf_source source = {0};
    struct ctf_merge *m;
    struct err e = {0};
    struct ctf_event ev[16];
    uint64_t events = 0;
    size_t n;
    int rc = ctf_trace_open(&group, schemas, &source.trace, &e);
    if (rc)
        fail_msg("%s", e.text);
    assert_int_equal(ctf_merge_new(&source, 1, everything, -1, &m, &e), 0);
    while ((n = ctf_merge_next(m, ev, 16)) > 0) {
        for (size_t i = 0; i < n; i++) {
            use_event(&ev[i]);
            if (ev[i].cls->item != CTF_EVENT)
                continue;
            if (prefix && (events >= good->n || good->v[events].ts != ev[i].ts || good->v[events].cls != ev[i].cls))
                fail_msg("event %lu is not what it was", events);
            events++;
        }
    }
    assert_true(events <= bytes * 8);
    if (!prefix)
        ctf_merge_seek(m, events / 2, &e);
    ctf_merge_free(m);
    ctf_trace_close(source.trace);
    return events;
}

static int setup(void **state)
{
    if (make_scratch(state))
        return -1;
    schemas = ctf_schemas_new();
    write_text("made", "metadata", metadata);
    dirs[0] = mem_alloc(700);
    snprintf(dirs[0], 700, "%s/made", scratch);
    group = (struct ctf_group){dirs, 1};
    make_stream();
    return 0;
}

static int teardown(void **state)
{
    ctf_schemas_free(schemas);
    free(dirs[0]);
    return remove_scratch(state);
}

/* ---- tests ---- */

/* The events that end before byte n of the stream, packet by packet. */
static void test_cut_at_every_byte(void **state)
{
    struct opened o;
    write_file("made", "stream", b.v, b.n);
    open_all(&o, dirs[0]);
    event_vec all = read_all(o.merge), good = {0};
    for (size_t i = 0; i < all.n; i++)
        if (all.v[i].cls->item == CTF_EVENT)
            vec_push(&good, all.v[i]);
    assert_int_equal(good.n, PACKETS * EVENTS_EACH);
    /* Schemas differ per opening: compare classes by those of the shared schemas. */
    struct ctf_trace *t;
    const struct ctf_event_class *const *classes;
    assert_int_equal(ctf_trace_open(&group, schemas, &t, NULL), 0);
    size_t n = ctf_trace_classes(t, &classes);
    for (size_t i = 0; i < good.n; i++) {
        assert_true(good.v[i].cls->index < n);
        good.v[i].cls = classes[good.v[i].cls->index];
    }
    uint64_t before = 0;
    for (size_t cut = 0; cut <= b.n; cut++) {
        write_file("made", "stream", b.v, cut);
        uint64_t events = read_damaged(cut, &good, true);
        assert_true(events == before || events == before + 1);
        before = events;
    }
    assert_int_equal(before, good.n);
    ctf_trace_close(t);
    vec_free(&all);
    vec_free(&good);
    close_all(&o);
}

static uint64_t random_state = 88172645463325252u;
static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    return random_state ^= random_state << 17;
}

static void test_bits_changed(void **state)
{
    struct bytes *damaged = mem_alloc(sizeof *damaged);
    for (int i = 0; i < 10000; i++) {
        *damaged = b;
        for (uint64_t flips = 1 + next_random() % 4; flips > 0; flips--) {
            uint64_t bit = next_random() % (b.n * 8);
            damaged->v[bit / 8] ^= (uint8_t)(1 << bit % 8);
        }
        write_file("made", "stream", damaged->v, damaged->n);
        read_damaged(damaged->n, NULL, false);
    }
    free(damaged);
}

/* Bytes replaced by the values that hurt most: all ones, the sign bit, zero. */
static void test_bytes_replaced(void **state)
{
    static const uint8_t values[] = {0, 0x7f, 0x80, 0xff};
    for (size_t at = 0; at < b.n / PACKETS * 2; at++) {
        for (size_t i = 0; i < 4; i++) {
            uint8_t saved = b.v[at];
            b.v[at] = values[i];
            write_file("made", "stream", b.v, b.n);
            read_damaged(b.n, NULL, false);
            b.v[at] = saved;
        }
    }
}

/* A recorded trace with bits changed in one of its streams. */
static void damage_recorded(const char *below, const char *stream, int times)
{
    char command[3000], path[1400];
    snprintf(command, sizeof command, "rm -rf '%s/copy' && cp -rL '%s' '%s/copy' && chmod -R u+w '%s/copy'", scratch,
        data_or_skip(below), scratch, scratch);
    assert_int_equal(system(command), 0);
    snprintf(path, sizeof path, "%s/copy/%s", scratch, stream);
    FILE *f = fopen(path, "rb+");
    assert_non_null(f);
    uint8_t *data = mem_alloc(1 << 22);
    size_t n = fread(data, 1, 1 << 22, f);
    char *copy[1] = {dirs[0]};
    snprintf(command, sizeof command, "%s/copy", scratch);
    dirs[0] = command;
    for (int i = 0; i < times; i++) {
        size_t at = next_random() % n;
        uint8_t bad = data[at] ^ (uint8_t)(1 << next_random() % 8);
        assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
        fwrite(&bad, 1, 1, f);
        fflush(f);
        read_damaged(UINT64_MAX / 8, NULL, false);
        assert_int_equal(fseek(f, (long)at, SEEK_SET), 0);
        fwrite(&data[at], 1, 1, f);
    }
    fclose(f);
    free(data);
    dirs[0] = copy[0];
}

static void test_recorded_traces_damaged(void **state)
{
    damage_recorded("traces/ust-live/relay-dir/vm/tblive-20261121-013145/ust/uid/0/64-bit", "channel0_0", 300);
    if (!test_have(data_path("traces-public/babeltrace2-tests/succeed")))
        return;
    damage_recorded("traces-public/babeltrace2-tests/succeed/2packets", "channel0_2", 300);
    damage_recorded("traces-public/babeltrace2-tests/succeed/2packets", "index/channel0_2.idx", 300);
    damage_recorded("traces-public/babeltrace2-tests/succeed/lttng-crash", "chan_0", 300);
}

int main(void)
{
    random_state = test_seed(random_state);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cut_at_every_byte),
        cmocka_unit_test(test_bits_changed),
        cmocka_unit_test(test_bytes_replaced),
        cmocka_unit_test(test_recorded_traces_damaged),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
