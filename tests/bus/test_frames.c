/* SPDX-License-Identifier: MIT */
/* Frames as docs/cluster-protocol.md has them, and what hostile ones do: to the parser, to a service, to an asker. */
#include <pthread.h>

#include "bus/wire.h"
#include "world.h"

static const uint8_t one_part[] = {'w', 'b', 1, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0x10, 0x27, 0, 0, 8, 7, 6, 5, 4, 3, 2, 1, 3,
    0, 0, 0, 0, 0, 0, 0, 'a', 'b', 'c'};

static void test_layout(void **state)
{
    struct frame f;
    struct err e;
    uint8_t out[FRAME_BYTES];
    assert_int_equal(bus_frame_read(one_part, sizeof one_part, &f, &e), 0);
    assert_int_equal(f.kind, FRAME_QUESTION);
    assert_int_equal(f.part, 0);
    assert_int_equal(f.parts, 1);
    assert_int_equal(f.number, 10000);
    assert_int_equal(f.id, 0x0102030405060708);
    assert_int_equal(f.whole_bytes, 3);
    assert_int_equal(f.n, 3);
    assert_memory_equal(f.data, "abc", 3);
    bus_frame_write(&f, out);
    assert_memory_equal(out, one_part, FRAME_BYTES);
}

/* Reads with the byte at `at` set to v. */
static int read_with(size_t at, uint8_t v, size_t n)
{
    uint8_t bytes[sizeof one_part];
    struct frame f;
    memcpy(bytes, one_part, sizeof bytes);
    bytes[at] = v;
    return bus_frame_read(bytes, n, &f, NULL);
}

static void test_wrong_frames(void **state)
{
    const size_t n = sizeof one_part;
    for (size_t less = 0; less < n; less++)
        assert_int_equal(read_with(0, 'w', less), ERR_FORMAT);
    assert_int_equal(read_with(0, 'W', n), ERR_FORMAT);
    assert_int_equal(read_with(2, 2, n), ERR_UNSUPPORTED);
    assert_int_equal(read_with(3, 0, n), ERR_FORMAT);
    assert_int_equal(read_with(3, 9, n), ERR_FORMAT);
    assert_int_equal(read_with(4, 1, n), ERR_FORMAT);  /* part 1 of 1 */
    assert_int_equal(read_with(8, 0, n), ERR_FORMAT);  /* part of 0 parts */
    assert_int_equal(read_with(8, 4, n), ERR_FORMAT);  /* 3 bytes in 4 parts */
    assert_int_equal(read_with(8, 2, n), ERR_FORMAT);  /* part with all bytes, the first of 2 */
    assert_int_equal(read_with(24, 4, n), ERR_FORMAT); /* a byte is missing */
    assert_int_equal(read_with(24, 2, n), ERR_FORMAT); /* part with one byte too many */
    assert_int_equal(read_with(31, 1, n), ERR_FORMAT);
}

/* Adds parts of so many bytes each ("abcdefgh…"), of a message of `parts` and `whole`. */
static int add(struct assembly *a, uint32_t part, uint32_t parts, uint64_t whole, size_t n)
{
    static const uint8_t letters[] = "abcdefghijklmnopqrstuvwxyz";
    const struct frame f = {.kind = FRAME_ANSWER,
        .part = part,
        .parts = parts,
        .id = 7,
        .whole_bytes = whole,
        .data = letters + a->n,
        .n = n};
    return bus_assembly_add(a, &f, 100, NULL);
}

static void test_assembly(void **state)
{
    struct assembly a = {0};
    assert_int_equal(add(&a, 0, 3, 10, 4), 0);
    assert_int_equal(add(&a, 1, 3, 10, 4), 0);
    assert_int_equal(add(&a, 2, 3, 10, 2), 1);
    assert_int_equal(a.n, 10);
    assert_memory_equal(a.data, "abcdefghij", 10);
    bus_assembly_free(&a);
    assert_int_equal(add(&a, 0, 1, 0, 0), 1);
    bus_assembly_free(&a);
}

/* Returns the error of a part, as the first or after the first of 3 parts, 4 of 10 bytes. */
static int refused(bool begun, uint32_t part, uint32_t parts, uint64_t whole, size_t n)
{
    struct assembly a = {0};
    if (begun)
        assert_int_equal(add(&a, 0, 3, 10, 4), 0);
    int rc = add(&a, part, parts, whole, n);
    bus_assembly_free(&a);
    return rc;
}

static void test_wrong_assembly(void **state)
{
    struct assembly a = {0};
    assert_int_equal(refused(false, 1, 3, 10, 4), ERR_FORMAT); /* begins in the middle */
    assert_int_equal(refused(false, 0, 3, 101, 4), ERR_LIMIT); /* larger than is taken */
    assert_int_equal(refused(false, 0, 3, UINT64_MAX, 4), ERR_LIMIT);
    assert_int_equal(refused(true, 0, 3, 10, 4), ERR_FORMAT); /* twice */
    assert_int_equal(refused(true, 2, 3, 10, 2), ERR_FORMAT); /* out of order */
    assert_int_equal(refused(true, 1, 4, 10, 2), ERR_FORMAT); /* different count */
    assert_int_equal(refused(true, 1, 3, 11, 4), ERR_FORMAT); /* different size */
    assert_int_equal(refused(true, 1, 3, 10, 7), ERR_FORMAT); /* part beyond the end */
    assert_int_equal(refused(true, 1, 3, 10, 6), ERR_FORMAT); /* nothing left for the last one */
    assert_int_equal(refused(true, 1, 3, 10, 5), 0);
    assert_int_equal(add(&a, 0, 3, 10, 4), 0);
    assert_int_equal(add(&a, 1, 3, 10, 4), 0);
    assert_int_equal(add(&a, 2, 3, 10, 1), ERR_FORMAT); /* the last one is too short */
    bus_assembly_free(&a);
    /* A claim alone gets no memory. */
    const struct frame huge = {
        .kind = FRAME_ANSWER, .parts = 2, .whole_bytes = UINT64_C(1) << 50, .n = 1, .data = (const uint8_t *)"x"};
    assert_int_equal(bus_assembly_add(&a, &huge, UINT64_MAX, NULL), 0);
    assert_true(a.cap < 1000);
    bus_assembly_free(&a);
}

static void test_beats(void **state)
{
    const struct beat b = {"web", "i-1", 3, 3, (const uint8_t *)"hello", 5};
    struct beat got;
    uint8_t bytes[100];
    struct frame f = {.kind = FRAME_BEAT, .parts = 1, .number = 1000, .data = bytes};
    f.n = f.whole_bytes = bus_beat_bytes(&b);
    assert_int_equal(f.n, 13);
    bus_beat_write(&b, bytes);
    assert_memory_equal(bytes, "\3web\3i-1hello", 13);
    assert_int_equal(bus_beat_read(&f, &got, NULL), 0);
    assert_int_equal(got.name_n, 3);
    assert_memory_equal(got.instance, "i-1", 3);
    assert_memory_equal(got.said, "hello", 5);
    for (f.n = 0; f.n < 8; f.n++)
        assert_int_equal(bus_beat_read(&f, &got, NULL), ERR_FORMAT);
    assert_int_equal(bus_beat_read(&f, &got, NULL), 0);
    f.number = 0;
    assert_int_equal(bus_beat_read(&f, &got, NULL), ERR_FORMAT);
    f.number = 1;
    bytes[2] = 0;
    assert_int_equal(bus_beat_read(&f, &got, NULL), ERR_FORMAT);
    bytes[0] = 0;
    assert_int_equal(bus_beat_read(&f, &got, NULL), ERR_FORMAT);
}

/* ---- messages over the bus ---- */

static void echo(void *arg, struct bus_question *q)
{
    bus_answer(q, q->data, q->n, NULL);
}

/* Checks that the service still works after invalid queries. */
static void test_hostile_asker(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct bus_service *s;
    struct bus_reply r;
    struct err e;
    uint8_t *bytes = world_bytes(1000, 5);
    assert_int_equal(bus_serve(b, "node.b", NULL, echo, NULL, &s, &e), 0);
    while (bus_ask(a, "node.b", "x", 1, in_ms(5000), &r) == ERR_NOTFOUND)
        ;
    bus_reply_free(&r);
    for (size_t n = 0; n < 1000; n += 7)
        bus_publish(a, "node.b", bytes, n, &e);
    for (size_t n = 0; n < sizeof one_part; n++) /* answers without a waiting query */
        bus_publish(a, "node.b", one_part, n, &e);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(bus_ask(a, "node.b", "abc", 3, in_ms(5000), &r), 0);
        assert_memory_equal(r.data, "abc", 3);
        bus_reply_free(&r);
    }
    bus_stop(s);
    bus_close(a);
    bus_close(b);
    free(bytes);
}

/* Common fields of the frames below: they are parts of a message of 8 bytes. */
struct part {
    enum frame_kind kind;
    uint32_t part, parts;
    uint64_t id, whole;
    size_t n;
};

static void send_part(struct bus *b, const char *subject, const char *reply, const struct part *p, int32_t number)
{
    uint8_t bytes[FRAME_BYTES + 8] = {0};
    const struct frame f = {
        .kind = p->kind, .part = p->part, .parts = p->parts, .number = number, .id = p->id, .whole_bytes = p->whole};
    bus_frame_write(&f, bytes);
    memset(bytes + FRAME_BYTES, 'x', p->n);
    assert_int_equal(b->kind->publish(b->wire, subject, reply, bytes, FRAME_BYTES + p->n, NULL), 0);
}

/* The codes of refusals that came, in order; 1 for an answer. */
struct codes {
    pthread_mutex_t lock;
    int v[32];
    unsigned n;
};

static void note_code(void *arg, const struct wire_message *m)
{
    struct codes *c = arg;
    struct frame f;
    assert_int_equal(bus_frame_read(m->data, m->n, &f, NULL), 0);
    pthread_mutex_lock(&c->lock);
    assert_true(c->n < 32);
    c->v[c->n++] = f.kind == FRAME_REFUSAL ? f.number : 1;
    pthread_mutex_unlock(&c->lock);
}

static void nothing(void *arg) {}

static unsigned count(struct codes *c)
{
    pthread_mutex_lock(&c->lock);
    unsigned n = c->n;
    pthread_mutex_unlock(&c->lock);
    return n;
}

static void test_partial_questions(void **state)
{
    world_need();
    struct bus *a = world_open(), *b = world_open();
    struct bus_service *s;
    struct wire_sub *sub;
    struct codes codes = {.lock = PTHREAD_MUTEX_INITIALIZER};
    struct bus_reply r;
    struct err e;
    const struct bus_serve_options few = {.max_open = 2};
    assert_int_equal(bus_serve(b, "node.b", &few, echo, NULL, &s, &e), 0);
    while (bus_ask(a, "node.b", "x", 1, in_ms(5000), &r) == ERR_NOTFOUND)
        ;
    bus_reply_free(&r);
    assert_int_equal(a->kind->subscribe(a->wire, "_INBOX.back.1", note_code, nothing, &codes, &sub, &e), 0);
    const struct part first = {FRAME_QUESTION, 0, 2, 1, 8, 4}, last = {FRAME_QUESTION, 1, 2, 1, 8, 4};
    send_part(a, "node.b", "_INBOX.back.1", &first, 5000);
    send_part(a, "node.b", "_INBOX.back.1", &last, 5000);
    eventually(count(&codes) == 1 && codes.v[0] == 1);
    /* Wrong order, and twice. */
    send_part(a, "node.b", "_INBOX.back.1", &last, 5000);
    send_part(a, "node.b", "_INBOX.back.1", &first, 5000);
    send_part(a, "node.b", "_INBOX.back.1", &first, 5000);
    eventually(count(&codes) == 2 && codes.v[1] == ERR_FORMAT);
    /* An answer is no question. */
    const struct part answer = {FRAME_ANSWER, 0, 1, 1, 4, 4};
    send_part(a, "node.b", "_INBOX.back.1", &answer, 5000);
    eventually(count(&codes) == 3 && codes.v[2] == ERR_FORMAT);
    const struct part huge = {FRAME_QUESTION, 0, 2, 1, UINT64_MAX, 4};
    send_part(a, "node.b", "_INBOX.back.1", &huge, 5000);
    eventually(count(&codes) == 4 && codes.v[3] == ERR_LIMIT);
    /* Two that never become whole keep others out; until their time is over. */
    struct part begun = first;
    for (begun.id = 10; begun.id < 13; begun.id++)
        send_part(a, "node.b", "_INBOX.back.1", &begun, 1000);
    eventually(count(&codes) == 5 && codes.v[4] == ERR_BUSY);
    int rc;
    int64_t begin = time_monotonic_ns();
    while (
        (rc = bus_ask(a, "node.b", "x", 1, in_ms(5000), &r)) == ERR_BUSY && time_monotonic_ns() < begin + 10 * NS_PER_S)
        sleep_ms(10);
    assert_int_equal(rc, 0);
    bus_reply_free(&r);
    assert_true(time_monotonic_ns() - begin > 500 * 1000000);
    assert_int_equal(count(&codes), 5);
    a->kind->unsubscribe(sub);
    bus_stop(s);
    bus_close(a);
    bus_close(b);
}

/* ---- hostile answers ---- */

struct liar {
    struct bus *bus;
    const struct part *parts;
};

static void lie(void *arg, const struct wire_message *m)
{
    const struct liar *l = arg;
    for (const struct part *p = l->parts; p->kind; p++)
        send_part(l->bus, m->reply, NULL, p, p->kind == FRAME_REFUSAL ? 5 : 0);
}

static void test_hostile_answers(void **state)
{
    static const struct {
        struct part parts[6];
        int code;
    } lies[] = {
        {{{FRAME_QUESTION, 0, 1, 1, 4, 4}}, ERR_FORMAT},
        {{{FRAME_BEAT, 0, 1, 1, 4, 4}}, ERR_FORMAT},
        {{{FRAME_ANSWER, 0, 1, 1, 5, 4}}, ERR_FORMAT},
        {{{FRAME_ANSWER, 1, 2, 1, 8, 4}}, ERR_FORMAT},
        {{{FRAME_ANSWER, 0, 3, 1, 8, 4}, {FRAME_ANSWER, 2, 3, 1, 8, 2}}, ERR_FORMAT},
        {{{FRAME_ANSWER, 0, 3, 1, 8, 4}, {FRAME_ANSWER, 0, 3, 1, 8, 4}}, ERR_FORMAT},
        {{{FRAME_ANSWER, 0, 2, 1, 8, 4}, {FRAME_ANSWER, 1, 2, 1, 8, 3}}, ERR_FORMAT},
        {{{FRAME_ANSWER, 0, 2, 1, 8, 4}, {FRAME_REFUSAL, 1, 2, 1, 8, 4}}, ERR_FORMAT},
        {{{FRAME_ANSWER, 0, 2, 1, UINT64_C(1) << 40, 4}}, ERR_LIMIT},
        {{{FRAME_REFUSAL, 0, 1, 1, 4, 4}}, ERR_IO},                                    /* a code that is none */
        {{{FRAME_ANSWER, 0, 2, 1, 8, 4}, {FRAME_ANSWER, 1, 2, 2, 8, 4}}, ERR_TIMEOUT}, /* half of two others' */
        {{{FRAME_ANSWER, 0, 2, 1, 8, 4}, {FRAME_ANSWER, 0, 1, 2, 4, 4}, {FRAME_ANSWER, 1, 2, 1, 8, 4}}, 0},
    };
    world_need();
    struct bus *a = world_open(), *b = world_open();
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        struct liar liar = {b, lies[i].parts};
        struct wire_sub *sub;
        struct bus_reply r;
        char subject[24];
        int rc;
        snprintf(subject, sizeof subject, "liar.%zu", i);
        assert_int_equal(b->kind->subscribe(b->wire, subject, lie, nothing, &liar, &sub, NULL), 0);
        while ((rc = bus_ask(a, subject, "?", 1, in_ms(lies[i].code == ERR_TIMEOUT ? 300 : 5000), &r)) == ERR_NOTFOUND)
            ;
        if (rc != lies[i].code)
            fail_msg("lie %zu: %d (%s), not %d", i, rc, r.text, lies[i].code);
        bus_reply_free(&r);
        b->kind->unsubscribe(sub);
    }
    bus_close(a);
    bus_close(b);
}

int main(void)
{
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_wrong_frames),
        cmocka_unit_test(test_assembly),
        cmocka_unit_test(test_wrong_assembly),
        cmocka_unit_test(test_beats),
    };
    const struct CMUnitTest both[] = {
        cmocka_unit_test(test_hostile_asker),
        cmocka_unit_test(test_partial_questions),
        cmocka_unit_test(test_hostile_answers),
    };
    return cmocka_run_group_tests_name("frames", alone, NULL, NULL) +
        world_run("hostile frames", both, sizeof both / sizeof *both, NULL, 0);
}
