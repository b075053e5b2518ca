/* SPDX-License-Identifier: MIT */
/* Receiving a trace from an untrusted node: its messages are checked, and only whole traces become visible. */
#include <dirent.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../base/test.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/time.h"
#include "base/wire.h"
#include "bus/bus.h"
#include "cluster/protocol.h"
#include "place/inbox.h"
#include "place/moves.h"
#include "place/receiver.h"

enum { FILE_BYTES = 3 * MOVE_PIECE / 2 };
static char top[] = "/tmp/weft-moves-XXXXXX";
static struct bus *hub;
static const struct move_trace trace = {0x1234, 0x5678, MOVE_ALL};
static const struct move_trace excerpt = {0x1234, 0x5678, 1000, 2000};

static int drop(const char *file, const struct stat *st, int flag, struct FTW *at)
{
    (void)st;
    (void)flag;
    (void)at;
    return remove(file);
}

static int set_up(void **state)
{
    struct err e = {0};
    (void)state;
    struct bus_options o = {.url = "local:test-moves"};
    return !mkdtemp(top) || bus_open(&o, &hub, &e) ? -1 : 0;
}

static int tear_down(void **state)
{
    (void)state;
    bus_close(hub);
    return nftw(top, drop, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- a node that gives ---- */

enum lie {
    HONEST,
    BAD_PATH,
    TOO_MANY,
    ENDLESS,
    OTHER_LENGTH,
    BAD_SUM,
    BAD_WHOLE,
    GARBAGE,
    TOO_LARGE,
    NO_FILES,
    UNSORTED
};
struct giving {
    enum lie lie;
    const char *path;
    unsigned pieces;    /* number of requested pieces */
    int64_t begin, end; /* time range of the excerpt; equal: everything */
};

static uint8_t byte_at(uint64_t file, uint64_t at)
{
    return (uint8_t)(at * 31 + at / 4096 + file);
}

static void put_files(const struct giving *g, struct text *out)
{
    struct move_file v[] = {{g->path, 5, 1000000007}, {"kernel/stream", FILE_BYTES, NS_PER_S * 1000 + 7}};
    struct move_files f = {
        .name = "web", .v = v, .n = g->lie == NO_FILES ? 0 : 2, .begin = g->begin, .end = g->end, .from = ""};
    if (g->lie == TOO_LARGE)
        v[1].bytes = UINT64_C(1) << 50;
    if (g->lie == UNSORTED)
        v[0].path = "kernel/z";
    if (g->lie == GARBAGE)
        text_puts(out, "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
    else if (g->lie == TOO_MANY) {
        wire_put_string(out, "web");
        wire_put_u(out, UINT64_C(1) << 60);
    } else {
        if (f.begin == f.end) {
            f.begin = INT64_MIN;
            f.end = INT64_MAX;
        }
        place_move_files_write(&f, out);
    }
}

static void put_piece(struct giving *g, bool sum, const struct move_piece *p, struct text *out)
{
    uint64_t n = p->file ? FILE_BYTES : 5, own[2] = {0};
    uint8_t *bytes = mem_alloc(FILE_BYTES);
    for (uint64_t i = 0; i < n; i++)
        bytes[i] = byte_at(p->file, i);
    for (uint64_t at = 0; sum && at < n; at += MOVE_PIECE)
        place_move_sum(own, bytes + at, n - at < MOVE_PIECE ? n - at : MOVE_PIECE);
    if (!sum)
        place_move_sum(own, bytes + p->offset, p->length);
    own[0] ^= (!sum && g->lie == BAD_SUM) || (sum && g->lie == BAD_WHOLE);
    text_put(out, (const char *)own, sizeof own);
    g->pieces += !sum;
    if (!sum)
        text_put(out, (const char *)bytes + p->offset, p->length - (g->lie == OTHER_LENGTH));
    if (g->lie == ENDLESS)
        text_fill(out, 'x', 100000);
    free(bytes);
}

static void on_question(void *arg, struct bus_question *asked)
{
    struct giving *g = arg;
    enum cluster_question kind;
    struct move_piece p = {0};
    struct text out = {.fd = -1};
    const uint8_t *bytes = (const uint8_t *)asked->data + QUESTION_BYTES;
    assert_int_equal(cluster_question_kind(asked->data, asked->n, &kind, NULL), 0);
    if (kind == CLUSTER_FILES)
        put_files(g, &out);
    else if (!place_move_piece_read(bytes, asked->n - QUESTION_BYTES, &p, NULL))
        put_piece(g, kind == CLUSTER_SUM, &p, &out);
    bus_answer(asked, out.v, out.n, NULL);
    text_fini(&out);
}

/* ---- a node that takes ---- */

static void ignore(void *arg)
{
    (void)arg;
}

static size_t entries(const char *dir, bool hidden)
{
    size_t n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && (e->d_name[0] == '.') == hidden;
    if (d)
        closedir(d);
    return n;
}

/* Takes a part; returns the final state. */
static int take_part(const struct place_inbox *v, struct move_trace what, char why[256])
{
    struct place_receiver_options o = {hub, "weft", v, ignore, NULL};
    struct place_receiver *t = place_receiver_new(&o);
    struct move_question q = {what, "sender", true};
    int state;
    do {
        struct arena a = {0};
        struct text out = {.fd = -1};
        struct place_move_progress p;
        assert_int_equal(place_receiver_take(t, &q, &out, NULL), 0);
        assert_int_equal(place_move_progress_read(&a, out.v, out.n, &p, NULL), 0);
        state = p.state;
        snprintf(why, 256, "%s", p.text);
        text_fini(&out);
        arena_fini(&a);
        q.begin = false;
        usleep(1000);
    } while (state != PLACE_MOVE_FAILED && state != PLACE_MOVE_OPENING);
    place_receiver_free(t);
    return state;
}

static int take(const struct place_inbox *v, char why[256])
{
    return take_part(v, trace, why);
}

static struct place_inbox *open_at(const char *name, uint64_t limit, char dir[4096])
{
    struct place_inbox *v;
    struct err e = {0};
    snprintf(dir, 4096, "%s/%s", top, name);
    assert_int_equal(place_inbox_open(dir, limit, &v, &e), 0);
    return v;
}

static struct bus_service *serve(struct giving *g)
{
    struct bus_service *s;
    char subject[CLUSTER_SUBJECT];
    struct err e = {0};
    assert_int_equal(cluster_subject_of("weft", "sender", subject, &e), 0);
    assert_int_equal(bus_serve(hub, subject, NULL, on_question, g, &s, &e), 0);
    return s;
}

/* ---- tests ---- */

static void a_trace_arrives_whole(void **state)
{
    char dir[4096], why[256];
    struct place_inbox *v = open_at("whole", 0, dir);
    struct giving g = {HONEST, "kernel/metadata", 0};
    struct bus_service *s = serve(&g);
    struct arena a = {0};
    struct cluster_trace_args args = {0};
    (void)state;
    assert_int_equal(take(v, why), PLACE_MOVE_OPENING);
    assert_int_equal(entries(dir, true), 0);
    place_inbox_list(v, &a, &args);
    assert_int_equal(args.n, 1);
    assert_memory_equal(args.v[0], "web=", 4);
    const char *path = arena_printf(&a, "%s/kernel/stream", args.v[0] + 4);
    char *bytes;
    size_t n;
    struct file_stamp stamp;
    assert_int_equal(file_read(path, FILE_BYTES, &bytes, &n, NULL), 0);
    assert_int_equal(n, FILE_BYTES);
    for (size_t i = 0; i < n; i++)
        assert_int_equal((uint8_t)bytes[i], byte_at(1, i));
    assert_int_equal(file_stamp(path, &stamp, NULL), 0);
    assert_int_equal(stamp.modified_ns, NS_PER_S * 1000 + 7);
    assert_true(place_inbox_since(v, path) > 0);
    assert_true(place_inbox_has(v, trace));
    unsigned before = g.pieces;
    assert_int_equal(take(v, why), PLACE_MOVE_OPENING);
    assert_int_equal(g.pieces, before); /* already present */
    assert_false(place_inbox_put_aside(v, (struct move_trace){trace.key, trace.hash + 1, MOVE_ALL}));
    assert_true(place_inbox_put_aside(v, trace));
    assert_false(place_inbox_put_aside(v, trace));
    vec_free(&args);
    args = (struct cluster_trace_args){0};
    place_inbox_list(v, &a, &args);
    assert_int_equal(args.n, 0);
    assert_int_equal(entries(dir, true), 1); /* files still present */
    free(bytes);
    vec_free(&args);
    arena_fini(&a);
    bus_stop(s);
    place_inbox_close(v);
}

static void what_was_begun_is_gone_on_with(void **state)
{
    char dir[4096], why[256];
    struct place_inbox *v = open_at("again", 0, dir);
    struct giving g = {BAD_WHOLE, "kernel/metadata", 0};
    struct bus_service *s = serve(&g);
    (void)state;
    assert_int_equal(take(v, why), PLACE_MOVE_FAILED); /* complete, twice, with a wrong sum */
    assert_non_null(strstr(why, "is not what node sender has"));
    assert_int_equal(entries(dir, false), 0);
    assert_int_equal(entries(dir, true), 1);
    g = (struct giving){HONEST, "kernel/metadata", 0};
    assert_int_equal(take(v, why), PLACE_MOVE_OPENING);
    assert_int_equal(g.pieces, 0);
    assert_int_equal(entries(dir, false), 1);
    bus_stop(s);
    place_inbox_close(v);
}

static void lies_are_refused(void **state)
{
    static const char *const paths[] = {"../x", "/etc/passwd", "kernel/../../x", "kernel//x", "kernel/.", "a/./b",
        ".weft/chunk", "kernel/.moved", "", "kernel/", "\x01", "kernel/stream/x/../y"};
    static const enum lie lies[] = {
        TOO_MANY, ENDLESS, OTHER_LENGTH, BAD_SUM, BAD_WHOLE, GARBAGE, TOO_LARGE, NO_FILES, UNSORTED};
    char dir[4096], why[256];
    (void)state;
    struct place_inbox *v = open_at("lies", 0, dir);
    for (size_t i = 0; i < sizeof paths / sizeof *paths + sizeof lies / sizeof *lies; i++) {
        size_t n = sizeof paths / sizeof *paths;
        struct giving g = {i < n ? BAD_PATH : lies[i - n], i < n ? paths[i] : "kernel/metadata", 0};
        struct bus_service *s = serve(&g);
        assert_int_equal(take(v, why), PLACE_MOVE_FAILED);
        assert_true(*why);
        assert_int_equal(entries(dir, false), 0);
        bus_stop(s);
    }
    place_inbox_close(v);
    assert_int_equal(entries(top, true), 0); /* directory only */
}

static void a_file_in_the_way_of_a_directory_is_refused(void **state)
{
    char dir[4096], why[256];
    struct place_inbox *v = open_at("way", 0, dir);
    struct giving g = {BAD_PATH, "kernel", 0}; /* path with kernel/stream */
    struct bus_service *s = serve(&g);
    (void)state;
    assert_int_equal(take(v, why), PLACE_MOVE_FAILED);
    assert_int_equal(entries(dir, false), 0);
    bus_stop(s);
    place_inbox_close(v);
}

static void no_more_than_the_limit(void **state)
{
    char dir[4096], why[256];
    struct place_inbox *v = open_at("limit", FILE_BYTES, dir);
    struct giving g = {HONEST, "kernel/metadata", 0};
    struct bus_service *s = serve(&g);
    (void)state;
    assert_int_equal(take(v, why), PLACE_MOVE_FAILED);
    assert_non_null(strstr(why, "no room"));
    assert_int_equal(g.pieces, 0);
    assert_int_equal(entries(dir, false) + entries(dir, true), 0);
    bus_stop(s);
    place_inbox_close(v);
}

static void an_excerpt_and_all_of_it(void **state)
{
    char dir[4096], why[256];
    struct place_inbox *v = open_at("snip", 0, dir);
    struct giving g = {HONEST, "kernel/metadata", 0, 1000, 2000};
    struct bus_service *s = serve(&g);
    struct move_trace wider = excerpt;
    (void)state;
    assert_int_equal(take_part(v, excerpt, why), PLACE_MOVE_OPENING);
    assert_true(place_inbox_has(v, excerpt));
    assert_false(place_inbox_has(v, trace));
    assert_false(place_inbox_has_all(v, trace.key));
    wider.end = g.end = 3000;
    assert_int_equal(take_part(v, wider, why), PLACE_MOVE_OPENING);
    assert_true(place_inbox_has(v, wider));
    assert_int_equal(entries(dir, false), 1); /* single directory of each host */
    assert_int_equal(entries(dir, true), 1);  /* second one put aside */
    g.begin = g.end = 0;
    assert_int_equal(take(v, why), PLACE_MOVE_OPENING); /* complete trace that replaces the excerpt */
    assert_true(place_inbox_has_all(v, trace.key));
    g.begin = 1000;
    g.end = 2000;
    assert_int_equal(take_part(v, excerpt, why), PLACE_MOVE_FAILED); /* excerpts do not replace all */
    assert_non_null(strstr(why, "has all of that trace"));
    assert_true(place_inbox_has(v, trace));
    bus_stop(s);
    place_inbox_close(v);
}

/* Checks that the begun part of a whole trace is kept when an excerpt of it is requested. */
static void an_excerpt_leaves_what_is_on_its_way(void **state)
{
    char dir[4096], why[256];
    struct place_inbox *v = open_at("both", 0, dir);
    struct giving g = {BAD_WHOLE, "kernel/metadata", 0};
    struct bus_service *s = serve(&g);
    (void)state;
    assert_int_equal(take(v, why), PLACE_MOVE_FAILED);
    g = (struct giving){HONEST, "kernel/metadata", 0, 1000, 2000};
    assert_int_equal(take_part(v, excerpt, why), PLACE_MOVE_OPENING);
    g = (struct giving){HONEST, "kernel/metadata", 0};
    assert_int_equal(take(v, why), PLACE_MOVE_OPENING);
    assert_int_equal(g.pieces, 0);
    bus_stop(s);
    place_inbox_close(v);
}

static void more_than_was_asked_for_is_refused(void **state)
{
    char dir[4096], why[256];
    struct place_inbox *v = open_at("more", 0, dir);
    struct giving g = {HONEST, "kernel/metadata", 0, 1000, 2001};
    struct bus_service *s = serve(&g);
    (void)state;
    assert_int_equal(take_part(v, excerpt, why), PLACE_MOVE_FAILED);
    assert_non_null(strstr(why, "another part of a trace"));
    assert_int_equal(entries(dir, false) + entries(dir, true), 0);
    bus_stop(s);
    place_inbox_close(v);
}

/* Checks every message cut anywhere, and with any byte changed. */
static void damaged_messages(void **state)
{
    struct text t = {.fd = -1};
    struct move_file v[] = {{"kernel/metadata", 5, 7}, {"kernel/stream", 1000, -7}};
    place_move_files_write(&(struct move_files){.name = "web", .v = v, .n = 2, .begin = -7, .end = 7, .from = "a"}, &t);
    (void)state;
    for (size_t n = 0; n <= t.n; n++) {
        struct arena a = {0};
        struct move_files f;
        assert_int_equal(place_move_files_read(&a, t.v, n, &f, NULL), n < t.n ? ERR_FORMAT : 0);
        arena_fini(&a);
    }
    for (size_t i = 0; i < t.n; i++)
        for (int k = 0; k < 8; k++) {
            struct arena a = {0};
            struct move_files f;
            t.v[i] ^= (char)(1 << k);
            if (!place_move_files_read(&a, t.v, t.n, &f, NULL))
                for (size_t m = 0; m < f.n; m++)
                    assert_true(f.v[m].path[0] != '/' && f.v[m].path[0] != '.' && !strstr(f.v[m].path, "/."));
            t.v[i] ^= (char)(1 << k);
            arena_fini(&a);
        }
    text_fini(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trace_arrives_whole),
        cmocka_unit_test(what_was_begun_is_gone_on_with),
        cmocka_unit_test(lies_are_refused),
        cmocka_unit_test(a_file_in_the_way_of_a_directory_is_refused),
        cmocka_unit_test(no_more_than_the_limit),
        cmocka_unit_test(an_excerpt_and_all_of_it),
        cmocka_unit_test(an_excerpt_leaves_what_is_on_its_way),
        cmocka_unit_test(more_than_was_asked_for_is_refused),
        cmocka_unit_test(damaged_messages),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
