/* SPDX-License-Identifier: MIT */
/* Lists of chunks equal the store of one pass, wherever the cuts are. */
#include "../base/test.h"

#include "cut.h"
#include "ust_world.h"

static int rounds_of(int usual)
{
    const char *set = getenv("WEFT_CUTS");
    return set ? atoi(set) : usual;
}

/* Mostly in the trace, some at the time of an item and 1 ns before and after, some twice, some outside; sorted. */
static size_t random_cuts(const struct cut_trace *t, int64_t *at)
{
    size_t n = (size_t)cut_random(1, CUT_MOST);
    int64_t begin = t->times.n ? t->times.v[0] : 0, end = t->times.n ? t->times.v[t->times.n - 1] : 0;
    for (size_t i = 0; i < n; i++) {
        int64_t how = cut_random(0, 9), item = t->times.n ? t->times.v[cut_random(0, (int64_t)t->times.n - 1)] : 0;
        at[i] = how < 5 ? cut_random(begin - 1, end + 2) : how < 9 || !i ? item + how % 3 - 1 : at[i - 1];
        for (size_t k = i; k > 0 && at[k - 1] > at[k]; k--) {
            int64_t swap = at[k];
            at[k] = at[k - 1];
            at[k - 1] = swap;
        }
    }
    return n;
}

/* Checks that state carried over the last cut does not depend on earlier cuts. */
static void same_carry(const struct cut_trace *t, const struct cut_chunks *many, int64_t at)
{
    struct cut_chunks two;
    const struct text *last = &many->carried[many->n - 2];
    cut_build(t, &at, 1, CUT_ALL, &two);
    assert_int_equal(two.carried->n, last->n);
    assert_memory_equal(two.carried->v, last->v, last->n);
    cut_free(&two);
}

static void compare(const struct cut_trace *t, int rounds)
{
    struct cut_chunks one, many;
    int64_t at[CUT_MOST];
    cut_build(t, NULL, 0, CUT_ALL, &one);
    struct stack_store *a = cut_list(&one, CUT_ALL);
    for (int i = 0; i < rounds; i++) {
        size_t n = random_cuts(t, at);
        cut_build(t, at, n, CUT_ALL, &many);
        struct stack_store *b = cut_list(&many, CUT_ALL);
        cut_same(a, b);
        stack_close(b);
        same_carry(t, &many, at[n - 1]);
        cut_free(&many);
    }
    stack_close(a);
    cut_free(&one);
}

static void recorded(void **state)
{
    char data[4096];
    const char *set = getenv("WEFT_DATA");
    static const char *const below[] = {"traces-public", "traces"};
    struct cut_trace t;
    cut_seed(test_seed(3));
    for (int r = 0; r < 2; r++) {
        snprintf(data, sizeof data, "%s/%s", set ? set : WEFT_SOURCE_ROOT "/../shared/data", below[r]);
        if (!test_have(data))
            continue;
        size_t n = 0;
        for (; cut_open(&t, data, n); n++) {
            compare(&t, rounds_of(2));
            cut_close(&t);
        }
        assert_true(n > 0);
    }
}

/* ---- made traces ---- */

struct made {
    char dir[200];
    struct cut_trace trace;
};

static void make_place(struct made *m)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(m->dir, sizeof m->dir, "%s/weft-stacks-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(m->dir));
}

static void open_made(struct made *m)
{
    assert_true(cut_open(&m->trace, m->dir, 0));
}

static void remove_made(struct made *m)
{
    char command[256];
    cut_close(&m->trace);
    snprintf(command, sizeof command, "rm -rf '%s'", m->dir);
    assert_int_equal(system(command), 0);
}

static void random_library(struct ust *u, int64_t t)
{
    static const char *const paths[] = {"/lib/one.so", "/lib/two.so", "/bin/three", "four"};
    uint64_t base = 0x1000 + 0x80 * (uint64_t)cut_random(0, 7);
    const char *path = paths[cut_random(0, 3)];
    switch (cut_random(0, 3)) {
    case 0: ust_bin_info(u, t, base, 0x100, path, cut_random(0, 1)); break;
    case 1: ust_dlopen(u, t, base, 0x40 * (uint64_t)cut_random(0, 8), path); break;
    default: ust_dlclose(u, t, base); break;
    }
}

static void random_memory(struct ust *u, int64_t t)
{
    uint64_t address = 0x9000 + (uint64_t)cut_random(0, 9);
    switch (cut_random(0, 3)) {
    case 0: ust_malloc(u, t, (uint64_t)cut_random(0, 3) * 100, address); break;
    case 1: ust_realloc(u, t, address, (uint64_t)cut_random(0, 2) * 50, cut_random(0, 3) ? address + 1 : 0); break;
    default: ust_free(u, t, address); break;
    }
}

static void random_call(struct ust *u, int64_t t)
{
    static const char *const names[] = {"main", "0x1010", "one.so+0x10", ""};
    uint64_t address = 0x1000 + 0x10 * (uint64_t)cut_random(0, 40);
    switch (cut_random(0, 9)) {
    case 0: ust_named_enter(u, t, address, names[cut_random(0, 3)]); break;
    case 1: ust_fast_enter(u, t, address); break;
    case 2:
    case 3: ust_fast_exit(u, t); break;
    case 4: ust_exit(u, t, address); break;
    case 5:
    case 6: ust_exit(u, t, 0x1000); break;
    case 7: ust_enter(u, t, 0x1000); break;
    default: ust_enter(u, t, address); break;
    }
}

/* Threads of known and unknown numbers, of processes that are known by number or by name, change names; libraries come
 * and go below their functions; often several things happen at one time. */
static void random_story(struct ust *u, int events)
{
    static const char *const names[] = {"app", "tool", ""};
    int64_t t = 100;
    for (int i = 0; i < events; i++, t += cut_random(0, 3)) {
        u->cpu = (uint32_t)cut_random(0, UST_CPUS - 1);
        u->pid = cut_random(0, 5) ? (int32_t)(100 + 100 * cut_random(0, 1)) : -1;
        u->tid = cut_random(0, 5) ? (int32_t)cut_random(100, 102) : -1;
        u->name = names[cut_random(0, 9) ? u->tid % 2 == 1 : cut_random(0, 2)];
        int64_t what = cut_random(0, 39);
        if (what < 26)
            random_call(u, t);
        else if (what < 31)
            random_memory(u, t);
        else if (what < 35)
            random_library(u, t);
        else if (what < 37)
            ust_message(u, t, "nothing");
        else if (what < 39 && i > 5)
            ust_lose(u, (uint64_t)cut_random(0, 3) / 2);
        else if (cut_random(0, 9) == 0)
            t += INT64_C(5000000000);
    }
}

static void make_random(struct made *m, bool bare, int events)
{
    struct ust u;
    make_place(m);
    ust_create(&u, m->dir, "made", bare);
    random_story(&u, events);
    ust_close(&u);
    open_made(m);
}

static void made(void **state)
{
    struct made m;
    cut_seed(test_seed(4));
    for (int i = 0; i < rounds_of(5) * 8; i++) {
        make_random(&m, i % 8 == 7, i % 8 == 0 ? 6000 : 300);
        compare(&m.trace, 5);
        remove_made(&m);
    }
}

/* Checks that a process's program is known from earlier chunks. */
static void executed(void **state)
{
    struct made m;
    cut_seed(test_seed(6));
    make_place(&m);
    ust_write_exec(m.dir);
    open_made(&m);
    compare(&m.trace, 60);
    remove_made(&m);
}

/* Rows of several levels of tiles in a chunk. */
static void long_rows(void **state)
{
    struct made m;
    make_place(&m);
    cut_seed(test_seed(5));
    ust_write_random(m.dir, (uint32_t)cut_random(1, UINT32_MAX), 60000, true);
    open_made(&m);
    compare(&m.trace, 3);
    remove_made(&m);
}

/* Streams are numbered by what each recording has: a thread that one of them makes is still the same one. */
static void archives(void **state)
{
    struct made m[2];
    struct cut_chunks c;
    struct ust u;
    struct stack_thread t;
    struct stack_call call;
    char path[256];
    for (int i = 0; i < 2; i++) {
        make_place(&m[i]);
        ust_create(&u, m[i].dir, "made", true);
        u.cpu = 0;
        ust_message(&u, 50 + 250 * i, "nothing");
        u.cpu = 1;
        if (i)
            ust_exit(&u, 400, 0x10);
        else
            ust_enter(&u, 100, 0x10);
        ust_close(&u);
    }
    snprintf(path, sizeof path, "%s/channel0_0", m[1].dir);
    assert_int_equal(unlink(path), 0);
    open_made(&m[0]);
    open_made(&m[1]);
    assert_int_equal(ctf_trace_streams(m[0].trace.trace), 2);
    assert_int_equal(ctf_trace_streams(m[1].trace.trace), 1);
    cut_build_two(&m[0].trace, &m[1].trace, UST_START + 200, &c);
    struct stack_store *s = cut_list(&c, CUT_ALL);
    assert_int_equal(stack_threads(s), 1);
    stack_thread(s, 0, &t);
    assert_int_equal(t.cpu, 1);
    assert_int_equal(stack_calls(s, t.first_row), 1);
    stack_call(s, t.first_row, 0, &call);
    assert_true(call.begin == UST_START + 100 && call.end == UST_START + 400 && call.how == STACK_WHOLE);
    stack_close(s);
    cut_free(&c);
    remove_made(&m[0]);
    remove_made(&m[1]);
}

/* ---- missing chunks ---- */

static void check_calls(const struct stack_store *s, size_t row, const struct stack_call *wanted, size_t n)
{
    assert_int_equal(stack_calls(s, row), n);
    for (size_t i = 0; i < n; i++) {
        struct stack_call c;
        stack_call(s, row, i, &c);
        if (c.begin != UST_START + wanted[i].begin || c.end != UST_START + wanted[i].end || c.how != wanted[i].how)
            fail_msg("call %zu: [%lld, %lld] %d", i, (long long)(c.begin - UST_START), (long long)(c.end - UST_START),
                c.how);
    }
}

/* main and a call of it are open when recording stops, and something else happens when it goes on. */
static void make_interrupted(struct made *m)
{
    struct ust u;
    make_place(m);
    ust_create(&u, m->dir, "made", false);
    ust_enter(&u, 100, 0x10);
    ust_enter(&u, 120, 0x20);
    ust_exit(&u, 130, 0x20);
    ust_enter(&u, 150, 0x20);
    ust_exit(&u, 250, 0x20);
    ust_enter(&u, 260, 0x30);
    ust_exit(&u, 400, 0x30);
    ust_enter(&u, 410, 0x40);
    ust_exit(&u, 450, 0x40);
    ust_exit(&u, 500, 0x10);
    ust_close(&u);
    open_made(m);
}

static void not_recorded(void **state)
{
    static const int64_t at[] = {UST_START + 200, UST_START + 300};
    struct made m;
    struct cut_chunks c;
    struct stack_thread t;
    struct stack_loss loss;
    make_interrupted(&m);
    cut_build(&m.trace, at, 2, 1, &c);
    struct stack_store *s = cut_list(&c, 1);
    stack_thread(s, 0, &t);
    assert_int_equal(t.rows, 2);
    check_calls(s, t.first_row,
        (struct stack_call[]){{100, 200, 0, STACK_CUT}, {200, 410, 0, STACK_UNKNOWN}, {410, 450, 0, STACK_WHOLE},
            {450, 500, 0, STACK_UNKNOWN}},
        4);
    check_calls(s, t.first_row + 1,
        (struct stack_call[]){{120, 130, 0, STACK_WHOLE}, {150, 200, 0, STACK_CUT}, {200, 500, 0, STACK_UNKNOWN}}, 3);
    assert_int_equal(stack_losses(s), 1);
    stack_loss(s, 0, &loss);
    assert_true(loss.begin == at[0] && loss.end == at[1] && loss.count == 0 && loss.cpu == -1);
    stack_close(s);
    cut_free(&c);
    remove_made(&m);
}

/* Checks a missing file: its neighbours are unchanged; levels with calls before and after are unknown in between. */
static void file_missing(void **state)
{
    static const int64_t at[] = {UST_START + 200, UST_START + 300};
    struct made m;
    struct cut_chunks c;
    struct stack_thread t;
    make_interrupted(&m);
    cut_build(&m.trace, at, 2, CUT_ALL, &c);
    struct stack_store *s = cut_list(&c, 1);
    stack_thread(s, 0, &t);
    check_calls(s, t.first_row, (struct stack_call[]){{100, 500, 0, STACK_WHOLE}}, 1);
    check_calls(s, t.first_row + 1,
        (struct stack_call[]){{120, 130, 0, STACK_WHOLE}, {200, 260, 0, STACK_UNKNOWN}, {260, 400, 0, STACK_WHOLE},
            {410, 450, 0, STACK_WHOLE}},
        4);
    assert_int_equal(stack_losses(s), 1);
    cut_same(s, s);
    stack_close(s);
    cut_free(&c);
    remove_made(&m);
}

/* ---- damage ---- */

static void damaged_carries(void **state)
{
    struct made m;
    int loaded = 0, refused = 0;
    cut_seed(test_seed(6));
    for (int i = 0; i < rounds_of(5); i++) {
        struct cut_chunks c;
        make_random(&m, i % 4 == 3, 300);
        int64_t at = m.trace.times.v[m.trace.times.n / 2];
        cut_build(&m.trace, &at, 1, CUT_ALL, &c);
        for (int k = 0; k < 300; k++) {
            size_t n = c.carried->n, position = (size_t)cut_random(0, (int64_t)n - 1);
            char *bytes = mem_alloc(n), was = c.carried->v[position];
            memcpy(bytes, c.carried->v, n);
            static const char extremes[] = {0, (char)0xff, 0x7f, (char)0x80};
            int64_t how = cut_random(0, 9);
            bytes[position] = how < 4 ? extremes[how] : (char)(was ^ 1 << cut_random(0, 7));
            bool good = cut_go_on(&m.trace, at, bytes, how == 9 ? position : n);
            loaded += good;
            refused += !good;
            free(bytes);
        }
        cut_free(&c);
        remove_made(&m);
    }
    assert_true(loaded > 0 && refused > 0);
}

/* Checks that chunks that do not belong after each other are refused, or harmless; a missing one is harmless, too. */
static void strange_lists(void **state)
{
    struct made m;
    int refused = 0;
    cut_seed(test_seed(7));
    for (int i = 0; i < rounds_of(5); i++) {
        struct cut_chunks c;
        struct chunk v[2 * CUT_MOST];
        struct stack_store *s;
        struct err e = {0};
        int64_t at[CUT_MOST];
        make_random(&m, false, 300);
        cut_build(&m.trace, at, random_cuts(&m.trace, at), CUT_ALL, &c);
        for (int k = 0; k < 20; k++) {
            size_t n = (size_t)cut_random(2, 6);
            for (size_t x = 0; x < n; x++)
                v[x] = (struct chunk){
                    c.chunks[cut_random(0, (int64_t)c.n - 1)].path, (int64_t)x, (int64_t)x + 1, NULL, 0};
            if (stack_open_list(v, n, &s, &e)) {
                assert_int_equal(e.code, ERR_FORMAT);
                refused++;
                continue;
            }
            cut_same(s, s);
            stack_close(s);
        }
        s = cut_list(&c, (size_t)cut_random(0, (int64_t)c.n - 1));
        cut_same(s, s);
        stack_close(s);
        v[0] = c.chunks[c.n - 1];
        v[1] = c.chunks[0];
        assert_int_equal(stack_open_list(v, 2, &s, &e), ERR_FORMAT);
        cut_free(&c);
        remove_made(&m);
    }
    assert_true(refused > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded), cmocka_unit_test(made), cmocka_unit_test(executed),
        cmocka_unit_test(long_rows), cmocka_unit_test(archives), cmocka_unit_test(not_recorded),
        cmocka_unit_test(file_missing), cmocka_unit_test(damaged_carries), cmocka_unit_test(strange_lists)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
