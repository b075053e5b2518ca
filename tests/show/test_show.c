/* SPDX-License-Identifier: MIT */
/* Formats of the answer: JSON, CSV, terminal, SVG. WEFT_TEST_KEEP=DIR keeps the pictures. */
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/text.h"
#include "../path/fake.h"
#include "show/show.h"

#define MS 1000000
#define START 1795225053184022483

static const char *const hosts[] = {"client", "web", "db <&\"'\x01\xff>"};

/* client asks web, which works, is preempted, asks db, sleeps on a timer and answers. */
static void three_tier(struct fake *f)
{
    f->hosts = hosts;
    int32_t client = fake_add_row(f, 0, 204, "tier"), web = fake_add_row(f, 1, 196, "tier"),
            db = fake_add_row(f, 2, 209, "ti]]><er&\x02"), helper = fake_add_row(f, 1, 31, "kworker/0:2");
    fake_add(f, client, START, START + 2 * MS, GRAPH_RUNNING);
    struct fake_interval *iv = fake_add(f, client, -1, START + 80 * MS, GRAPH_NETWORK);
    iv->cause = (struct path_cause){.kind = PATH_CAUSE_NETWORK,
        .from = {1, web},
        .ts = START + 79 * MS,
        .label = "10.77.0.12:8080 → 10.77.0.11:43210"};
    fake_add(f, client, -1, START + 88 * MS, GRAPH_RUNNING);
    iv = fake_add(f, client, -1, START + 89 * MS, GRAPH_BLOCKED);
    iv->cause = (struct path_cause){.kind = PATH_CAUSE_NONE, .reason = PATH_UNTRACED_PEER, .label = "192.0.2.1:53"};
    fake_add(f, client, -1, START + 90 * MS, GRAPH_RUNNING);

    iv = fake_add(f, web, START - 5 * MS, START + 3 * MS, GRAPH_NETWORK);
    iv->cause = (struct path_cause){.kind = PATH_CAUSE_NETWORK,
        .from = {0, client},
        .ts = START + MS,
        .label = "10.77.0.11:43210 → 10.77.0.12:8080"};
    fake_add(f, web, -1, START + 10 * MS, GRAPH_RUNNING);
    fake_add(f, web, -1, START + 12 * MS, GRAPH_PREEMPTED)->detail = "by 31 kworker/0:2";
    fake_add(f, web, -1, START + 20 * MS, GRAPH_RUNNING);
    iv = fake_add(f, web, -1, START + 60 * MS, GRAPH_NETWORK);
    iv->cause = (struct path_cause){.kind = PATH_CAUSE_NETWORK,
        .from = {2, db},
        .ts = START + 59 * MS,
        .label = "10.77.0.13:7001 → 10.77.0.12:47984"};
    fake_add(f, web, -1, START + 61 * MS, GRAPH_RUNNING);
    iv = fake_add(f, web, -1, START + 70 * MS, GRAPH_TIMER);
    iv->detail = "nanosleep";
    iv = fake_add(f, web, -1, START + 74 * MS, GRAPH_BLOCKED);
    fake_cause(f, iv, PATH_CAUSE_WAKEUP, helper, START + 74 * MS);
    fake_add(f, web, -1, START + 90 * MS, GRAPH_RUNNING);
    fake_add(f, helper, START, START + 90 * MS, GRAPH_RUNNING);

    iv = fake_add(f, db, START - 5 * MS, START + 21 * MS, GRAPH_NETWORK);
    iv->cause = (struct path_cause){.kind = PATH_CAUSE_NETWORK,
        .from = {1, web},
        .ts = START + 20 * MS,
        .label = "10.77.0.12:47984 → 10.77.0.13:7001"};
    static const uint8_t states[] = {GRAPH_RUNNING, GRAPH_BLOCK_DEVICE, GRAPH_STOLEN, GRAPH_HYPERVISOR,
        GRAPH_INTERRUPTED, GRAPH_IPI, GRAPH_USER_INPUT, GRAPH_UNKNOWN};
    for (int i = 0; i < 8; i++)
        fake_add(f, db, -1, START + (25 + 4 * i) * MS, states[i])->detail = states[i] == GRAPH_BLOCK_DEVICE ? "vdb"
                                                                                                            : NULL;
    fake_add(f, db, -1, START + 90 * MS, GRAPH_RUNNING);
}

static struct path *path_of(struct fake *f, struct path_source *source)
{
    struct path *p;
    struct err e = {0};
    struct path_options options = {.begin = START, .end = START + 90 * MS};
    *source = fake_source(f);
    assert_int_equal(path_walk(source, (struct path_row){0, 0}, &options, &p, &e), 0);
    return p;
}

static void keep(const char *name, struct text *t)
{
    const char *dir = getenv("WEFT_TEST_KEEP");
    char file[4096];
    if (!dir)
        return;
    snprintf(file, sizeof file, "%s/%s", dir, name);
    FILE *out = fopen(file, "w");
    if (out) {
        fwrite(t->v, 1, t->n, out);
        fclose(out);
    }
}

static void json_answer(void **state)
{
    (void)state;
    struct fake f = {0};
    struct path_source source;
    three_tier(&f);
    struct path *p = path_of(&f, &source);
    struct text t = {.fd = -1};
    struct json j = JSON_TO(&t);
    show_json(p, &source, "local", &j);
    json_error_t error;
    json_t *root = json_loadb(t.v, t.n, 0, &error), *item;
    if (!root)
        fail_msg("%s at %d: %s", error.text, error.position, text_cstr(&t));
    json_t *query = json_object_get(root, "query");
    assert_string_equal(json_string_value(json_object_get(query, "host")), "client");
    assert_int_equal(json_integer_value(json_object_get(query, "tid")), 204);
    assert_string_equal(json_string_value(json_object_get(query, "comm")), "tier");
    int64_t begin = json_integer_value(json_object_get(query, "begin")),
            end = json_integer_value(json_object_get(query, "end")), at = begin, sum = 0;
    assert_int_equal(begin, START);
    assert_string_equal(json_string_value(json_object_get(root, "method")), "local");
    size_t i;
    json_array_foreach (json_object_get(root, "segments"), i, item) {
        assert_int_equal(json_integer_value(json_object_get(item, "begin")), at);
        at = json_integer_value(json_object_get(item, "end"));
        assert_int_equal(json_object_size(item), 7);
        assert_true(json_is_string(json_object_get(item, "detail")) || json_is_null(json_object_get(item, "detail")));
    }
    assert_int_equal(at, end);
    json_array_foreach (json_object_get(root, "totals"), i, item)
        sum += json_integer_value(json_object_get(item, "duration"));
    assert_int_equal(sum, end - begin);
    /* The messages of the conversation, each with its sender: client → web, web → db, db → web, web → client. */
    int network = 0;
    json_array_foreach (json_object_get(root, "links"), i, item)
        if (!strcmp(json_string_value(json_object_get(item, "kind")), "network")) {
            network++;
            assert_int_equal(json_object_size(json_object_get(item, "from")), 3);
        }
    assert_int_equal(network, 4);
    item = json_array_get(json_object_get(root, "unexplained"), 0);
    assert_int_equal(json_array_size(json_object_get(root, "unexplained")), 1);
    assert_string_equal(json_string_value(json_object_get(item, "reason")), "untraced-peer");
    assert_string_equal(json_string_value(json_object_get(item, "peer")), "192.0.2.1:53");
    json_t *cost = json_object_get(root, "cost");
    assert_true(json_is_array(json_object_get(cost, "nodes")) && json_is_integer(json_object_get(cost, "messages")));
    assert_true(json_is_integer(json_object_get(cost, "bytes")) && json_is_integer(json_object_get(cost, "rounds")) &&
        json_is_real(json_object_get(cost, "seconds")));
    json_decref(root);
    text_fini(&t);
    path_free(p);
    fake_fini(&f);
}

/* Columns of a line without escape sequences. */
static size_t cells_of(const char *line, size_t n)
{
    size_t cells = 0;
    for (size_t i = 0; i < n; i++) {
        if (line[i] == '\033') {
            while (line[i] != 'm')
                i++;
        } else {
            cells += ((unsigned char)line[i] & 0xc0) != 0x80;
        }
    }
    return cells;
}

static void terminal_width(void **state)
{
    (void)state;
    struct fake f = {0};
    struct path_source source;
    three_tier(&f);
    struct path *p = path_of(&f, &source);
    for (int width = 60; width <= 160; width += 10) {
        struct text t = {.fd = -1};
        struct show_style style = {.color = width % 20 == 0,
            .ascii = width % 40 == 0,
            .width = width,
            .segments = true,
            .clock_error_ns = 190000};
        show_terminal(p, &source, &style, &t);
        for (const char *line = text_cstr(&t), *next; *line; line = next + 1) {
            next = strchr(line, '\n');
            assert_non_null(next);
            if (cells_of(line, (size_t)(next - line)) > (size_t)width)
                fail_msg("wider than %d columns: %.*s", width, (int)(next - line), line);
            for (const char *c = line; c < next; c++)
                assert_true((unsigned char)*c >= 0x20 || *c == '\033');
        }
        assert_true(width < 100 || strstr(t.v, "192.0.2.1:53"));
        if (width == 110)
            keep("terminal.txt", &t);
        if (width == 100)
            keep("terminal-color.txt", &t);
        text_fini(&t);
    }
    path_free(p);
    fake_fini(&f);
}

/* Tags closed in order, attributes quoted, no character that XML forbids, no stray markup. */
static void assert_well_formed(const char *s)
{
    const char *open[32];
    size_t lengths[32], depth = 0;
    for (; *s; s++) {
        assert_true((unsigned char)*s >= 0x20 || *s == '\n');
        if (*s == '&') {
            assert_true(!strncmp(s, "&amp;", 5) || !strncmp(s, "&lt;", 4) || !strncmp(s, "&gt;", 4) ||
                !strncmp(s, "&quot;", 6) || !strncmp(s, "&#39;", 5));
        } else if (*s == '<' && s[1] == '?') {
            s = strstr(s, "?>") + 1;
        } else if (*s == '<') {
            bool closing = s[1] == '/';
            const char *name = s + 1 + closing, *end = strchr(s, '>');
            size_t n = strcspn(name, " />\n");
            assert_non_null(end);
            for (const char *c = s + 1; c < end; c++)
                assert_true(*c != '<');
            if (closing) {
                assert_true(depth > 0 && lengths[depth - 1] == n && !strncmp(open[depth - 1], name, n));
                depth--;
            } else if (end[-1] != '/') {
                assert_true(depth < 32);
                open[depth] = name;
                lengths[depth++] = n;
            }
            s = end;
        }
    }
    assert_int_equal(depth, 0);
}

static void svg_picture(void **state)
{
    (void)state;
    struct fake f = {0};
    struct path_source source;
    three_tier(&f);
    struct path *p = path_of(&f, &source);
    struct text t = {.fd = -1};
    show_svg(p, &source, &t);
    assert_well_formed(text_cstr(&t));
    assert_null(strstr(t.v, "<script"));
    assert_null(strstr(t.v, "<tier"));
    assert_non_null(strstr(t.v, "Critical path of client:204 tier"));
    assert_non_null(strstr(t.v, "#2e9e5b"));
    assert_non_null(strstr(t.v, "sent by web:196 tier"));
    keep("three-tier.svg", &t);
    text_fini(&t);
    path_free(p);
    fake_fini(&f);
}

/* Very many segments and rows: the picture stays small. */
static void svg_dense(void **state)
{
    (void)state;
    struct fake f = {0};
    enum { ROWS = 300, STEPS = 60000 };
    for (int32_t r = 0; r <= ROWS; r++)
        fake_add_row(&f, 0, 1000 + r, "worker");
    fake_add(&f, 0, START, START + 10, GRAPH_RUNNING);
    for (int32_t r = 1; r <= ROWS; r++)
        fake_add(&f, r, START, START + 100LL * STEPS, GRAPH_RUNNING);
    for (int64_t i = 0; i < STEPS; i++) {
        fake_cause(&f, fake_add(&f, 0, -1, START + 100 * i + 60, GRAPH_BLOCKED), PATH_CAUSE_WAKEUP,
            1 + (int32_t)(i * i % ROWS), START + 100 * i + 60);
        fake_add(&f, 0, -1, START + 100 * i + 110, i % 2 ? GRAPH_RUNNING : GRAPH_PREEMPTED);
    }
    struct path_source source = fake_source(&f);
    struct path_options options = {.begin = START, .end = START + 100LL * STEPS};
    struct path *p;
    struct err e = {0};
    assert_int_equal(path_walk(&source, (struct path_row){0, 0}, &options, &p, &e), 0);
    assert_true(p->n_segments > STEPS);
    struct text t = {.fd = -1};
    show_svg(p, &source, &t);
    assert_well_formed(text_cstr(&t));
    assert_true(t.n < 8000000);
    keep("dense.svg", &t);
    t.n = 0;
    struct show_style style = {.width = 100, .clock_error_ns = -1};
    show_terminal(p, &source, &style, &t);
    assert_true(t.n < 20000);
    text_fini(&t);
    path_free(p);
    fake_fini(&f);
}

static void csv(void **state)
{
    (void)state;
    struct fake f = {0};
    struct path_source source;
    three_tier(&f);
    f.rows.v[0].comm = "a \"b\", c";
    struct path *p = path_of(&f, &source);
    struct text t = {.fd = -1};
    show_csv(p, &source, &t);
    assert_true(!strncmp(text_cstr(&t),
        "host,tid,comm,begin,end,state,detail,sender_host,sender_tid,assumed\n"
        "client,204,\"a \"\"b\"\", c\",1795225053184022483,1795225053185022483,running,,,,\n"
        "web,196,tier,1795225053185022483,1795225053187022483,network,10.77.0.11:43210 → 10.77.0.12:8080,client,204,\n",
        240));
    text_fini(&t);
    path_free(p);
    fake_fini(&f);
}

/* Checks an assumed wait and another one for messages of the same host: every output distinguishes them. */
static void assumed(void **state)
{
    (void)state;
    struct fake f = {.hosts = hosts};
    int32_t rank = fake_add_row(&f, 0, 10, "rank"), slow = fake_add_row(&f, 1, 20, "slow");
    struct path_cause sent = {.kind = PATH_CAUSE_NETWORK, .from = {1, slow}, .ts = START + 39 * MS, .label = "a → b"};
    fake_add(&f, rank, START, START + 10 * MS, GRAPH_RUNNING);
    struct fake_interval *wait = fake_add(&f, rank, -1, START + 40 * MS, GRAPH_NETWORK);
    wait->assumed = true;
    wait->cause = sent;
    fake_add(&f, rank, -1, START + 50 * MS, GRAPH_RUNNING);
    sent.ts = START + 78 * MS;
    fake_add(&f, rank, -1, START + 80 * MS, GRAPH_NETWORK)->cause = sent;
    fake_add(&f, rank, -1, START + 90 * MS, GRAPH_RUNNING);
    fake_add(&f, slow, START, START + 90 * MS, GRAPH_RUNNING);
    struct path_source source;
    struct path *p = path_of(&f, &source);
    assert_int_equal(p->n_segments, 7);

    struct text t = {.fd = -1};
    struct json out = JSON_TO(&t);
    show_json(p, &source, "local", &out);
    json_t *j = json_loads(text_cstr(&t), 0, NULL);
    static const char *const lists[] = {"segments", "links", "totals"};
    static const size_t which[] = {2, 0, 3}; /* shortest of the totals */
    for (int k = 0; k < 3; k++) {
        json_t *list = json_object_get(j, lists[k]);
        for (size_t i = 0; i < json_array_size(list); i++)
            if (json_is_true(json_object_get(json_array_get(list, i), "assumed")) != (i == which[k]) ||
                (i != which[k] && json_object_get(json_array_get(list, i), "assumed")))
                fail_msg("%s %d", lists[k], (int)i);
    }
    assert_int_equal(
        json_integer_value(json_object_get(json_array_get(json_object_get(j, "totals"), 3), "duration")), MS);
    json_decref(j);

    t.n = 0;
    show_csv(p, &source, &t);
    assert_non_null(strstr(text_cstr(&t), "network,a → b,web,20,true\n"));
    assert_non_null(strstr(text_cstr(&t), "network,a → b,web,20,\n"));

    t.n = 0;
    struct show_style style = {.width = 120, .segments = true, .clock_error_ns = -1};
    show_terminal(p, &source, &style, &t);
    assert_non_null(strstr(text_cstr(&t), "assumed, a → b, 1 message\n"));
    assert_non_null(strstr(t.v, "network  a → b, 1 message\n"));
    assert_non_null(strstr(t.v, "network  assumed  from web:20 slow  a → b\n"));
    assert_non_null(strstr(t.v, "network  from web:20 slow  a → b\n"));
    assert_non_null(strstr(t.v, "assumed 1.000 ms: threads that ran until"));

    t.n = 0;
    show_svg(p, &source, &t);
    assert_well_formed(text_cstr(&t));
    keep("assumed.svg", &t);
    const char *segment = strstr(t.v, "class=\"s6 assumed\"");
    assert_non_null(segment);
    assert_true(strstr(segment, "and may have polled") < strstr(segment, "</rect>"));
    assert_non_null(strstr(t.v, "class=\"link network assumed\""));
    assert_non_null(strstr(t.v, "class=\"link network\""));
    assert_non_null(strstr(t.v, ">assumed</text>"));
    assert_non_null(strstr(t.v, "1.000 ms assumed: "));
    text_fini(&t);
    path_free(p);
    fake_fini(&f);
}

/* An interval without length, and one outside of the thread's life. */
static void empty(void **state)
{
    (void)state;
    struct fake f = {0};
    struct path_source source;
    three_tier(&f);
    path_free(path_of(&f, &source));
    struct path *p;
    struct err e = {0};
    struct path_options options = {.begin = START + 5, .end = START + 5};
    assert_int_equal(path_walk(&source, (struct path_row){0, 0}, &options, &p, &e), 0);
    assert_int_equal(p->n_segments, 0);
    struct text t = {.fd = -1};
    struct show_style style = {.width = 80};
    show_terminal(p, &source, &style, &t);
    show_svg(p, &source, &t);
    show_csv(p, &source, &t);
    text_fini(&t);
    path_free(p);
    options = (struct path_options){.begin = START + 100 * (int64_t)MS, .end = START + 101 * (int64_t)MS};
    assert_int_equal(path_walk(&source, (struct path_row){0, 0}, &options, &p, &e), ERR_NOTFOUND);
    options = (struct path_options){.begin = START + 2, .end = START + 1};
    assert_int_equal(path_walk(&source, (struct path_row){0, 0}, &options, &p, &e), ERR_ARG);
    assert_int_equal(path_walk(&source, (struct path_row){7, 0}, &options, &p, &e), ERR_ARG);
    fake_fini(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_answer),
        cmocka_unit_test(terminal_width),
        cmocka_unit_test(svg_picture),
        cmocka_unit_test(svg_dense),
        cmocka_unit_test(csv),
        cmocka_unit_test(assumed),
        cmocka_unit_test(empty),
    };
    return cmocka_run_group_tests_name("path: answers", tests, NULL, NULL);
}
