/* SPDX-License-Identifier: MIT */
/* Rules by which calls show the use of files by threads. Expected rows follow from the rules of the documentation
 * (docs/formats/states.md). */
#include "world.h"

enum { A = 4, B, C, D }; /* A, B: threads of one process; C: another, which D comes from */
enum { CLOEXEC = 02000000, F_SETFD = 2, F_DUPFD_CLOEXEC = 1030 };

static void begin(struct kernel_tracker *w)
{
    world_begin(w);
    w->threads[A].tgid = w->threads[B].tgid = w->threads[A].tid;
    w->threads[C].tgid = w->threads[C].tid;
    w->threads[D].tgid = w->threads[D].tid;
    world_switch(w, 100, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    world_switch(w, 100, 1, 1, B, KERNEL_LEAVE_RUNNABLE);
    world_switch(w, 100, 2, 2, C, KERNEL_LEAVE_RUNNABLE);
    world_switch(w, 100, 3, 3, D, KERNEL_LEAVE_RUNNABLE);
}

static void io(
    struct kernel_tracker *w, int64_t ts, int cpu, int what, int32_t fd, int64_t other, uint32_t flags, int64_t ret)
{
    world_io(w, ts, cpu, what, fd, other, flags, NULL);
    world_io_return(w, ts + 5, cpu, what, ret);
}

static void open_file(
    struct kernel_tracker *w, int64_t ts, int cpu, int32_t directory, const char *path, uint32_t flags, int64_t ret)
{
    world_io(w, ts, cpu, KERNEL_IO_OPEN, directory, -1, flags, path);
    world_io_return(w, ts + 5, cpu, KERNEL_IO_OPEN, ret);
}

/* Returns the thread's use of the file, as "use:begin-end+bytes " texts; "" if the store has none. */
static const char *uses(struct kernel_tracker *w, const char *name, int32_t thread)
{
    static const char *const what[] = {"", "open", "read", "write", "sync", "other"};
    static char text[1000];
    struct state_interval v[32];
    struct state_file f;
    size_t length = 0;
    text[0] = 0;
    for (size_t i = 0; i < state_files(w->store); i++) {
        state_file(w->store, i, &f);
        if (strcmp(f.name, name) != 0 || f.thread != thread)
            continue;
        size_t n = state_range(w->store, STATE_FILE_ROWS, i, w->first, w->last, v, 32);
        for (size_t k = 0; k < n; k++)
            if (v[k].amount & 7)
                length += (size_t)snprintf(text + length, sizeof text - length, "%s:%lld-%lld+%lld ",
                    what[v[k].amount & 7], (long long)v[k].begin, (long long)v[k].end,
                    (long long)v[k].amount >> STATE_FILE_USE_BITS);
    }
    return text;
}

#define check(name, thread, text) assert_string_equal(uses(&w, name, thread), text)

static void opened_read_closed(void **state)
{
    struct kernel_tracker w;
    begin(&w);
    open_file(&w, 110, 0, -100, "/a", 0, 3);
    io(&w, 120, 0, KERNEL_IO_READ, 3, -1, 0, 10);
    io(&w, 130, 0, KERNEL_IO_READ, 3, -1, 0, -11); /* failed read */
    io(&w, 140, 1, KERNEL_IO_WRITE, 3, -1, 0, 7);  /* second thread of the process */
    io(&w, 150, 0, KERNEL_IO_SYNC, 3, -1, 0, 4);   /* sync: no bytes */
    io(&w, 160, 2, KERNEL_IO_READ, 3, -1, 0, 5);   /* different process */
    io(&w, 170, 1, KERNEL_IO_CLOSE, 3, -1, 0, 0);
    io(&w, 180, 0, KERNEL_IO_READ, 3, -1, 0, 2);
    open_file(&w, 190, 0, -100, "/none", 0, -2);
    open_file(&w, 200, 0, -100, "a", 0, 4);
    open_file(&w, 210, 0, 4, "b", 0, 5);
    io(&w, 220, 0, KERNEL_IO_CLOSE, 4, -1, 0, -9);
    world_end(&w);
    check("/a", A,
        "other:110-115+0 open:115-120+0 read:120-125+10 open:125-130+0 read:130-135+0 open:135-150+0 sync:150-155+0 "
        "open:155-175+0 ");
    check("/a", B, "write:140-145+7 ");
    check("fd 3 of  (106)", C, "read:160-165+5 ");
    check("fd 3 of  (104)", A, "read:180-185+2 ");
    check("/none", A, "");
    check("a", A, "other:200-205+0 open:205-225+0 ");
    check("a/b", A, "other:210-215+0 open:215-225+0 ");
    for (size_t i = 0; i < state_files(w.store); i++) {
        struct state_file f;
        state_file(w.store, i, &f);
        if (!strcmp(f.name, "/a"))
            assert_true(f.thread == A ? f.read == 10 && f.written == 0 : f.read == 0 && f.written == 7);
    }
    world_close(&w);
}

static void duplicates(void **state)
{
    struct kernel_tracker w;
    begin(&w);
    open_file(&w, 110, 0, -100, "/a", 0, 3);
    io(&w, 120, 0, KERNEL_IO_DUP, 3, -1, 0, 7);
    io(&w, 130, 0, KERNEL_IO_CLOSE, 3, -1, 0, 0); /* 7 still is */
    io(&w, 140, 0, KERNEL_IO_HIDDEN, -1, -1, 0, 3);
    io(&w, 150, 0, KERNEL_IO_COPY, 7, 3, 0, 50); /* copy to a descriptor that is no file */
    io(&w, 160, 0, KERNEL_IO_DUP, 3, -1, 0, 7);  /* closes it */
    open_file(&w, 170, 0, -100, "/b", 0, 4);
    io(&w, 180, 0, KERNEL_IO_FCNTL, 4, F_DUPFD_CLOEXEC, 10, 11);
    open_file(&w, 190, 0, -100, "/c", CLOEXEC, 5);
    open_file(&w, 200, 0, -100, "/d", 0, 6);
    io(&w, 210, 0, KERNEL_IO_FCNTL, 5, F_SETFD, 0, 0);
    io(&w, 220, 0, KERNEL_IO_FCNTL, 6, F_SETFD, 1, 0);
    io(&w, 230, 0, KERNEL_IO_CLOSE, 4, -1, 0, 0);
    world_add(&w, (struct kernel_record){.ts = 240, .cpu = 0, .kind = KERNEL_EXEC, .ctx = KERNEL_CTX_THREAD, .row = A});
    io(&w, 250, 0, KERNEL_IO_COPY, 5, 5, 0, 3);
    io(&w, 260, 0, KERNEL_IO_CLOSE, 5, UINT32_MAX, 0, 0);
    world_end(&w);
    check("/a", A, "other:110-115+0 open:115-150+0 read:150-155+50 open:155-165+0 ");
    check("/b", A, "other:170-175+0 open:175-240+0 ");
    check("/c", A, "other:190-195+0 open:195-250+0 read:250-255+3 open:255-265+0 ");
    check("/d", A, "other:200-205+0 open:205-240+0 ");
    check("fd 3 of  (104)", A, "");
    world_close(&w);
}

static void children(void **state)
{
    struct kernel_tracker w;
    begin(&w);
    open_file(&w, 110, 2, -100, "/a", 0, 3);
    world_add(&w,
        (struct kernel_record){
            .ts = 120, .cpu = 2, .kind = KERNEL_FORK, .ctx = KERNEL_CTX_THREAD, .row = C, .u.fork = {C, D}});
    io(&w, 130, 3, KERNEL_IO_READ, 3, -1, 0, 1);
    io(&w, 140, 3, KERNEL_IO_CLOSE, 3, -1, 0, 0);
    io(&w, 150, 2, KERNEL_IO_READ, 3, -1, 0, 1);
    world_add(&w,
        (struct kernel_record){
            .ts = 160, .cpu = 2, .kind = KERNEL_EXIT, .ctx = KERNEL_CTX_THREAD, .row = C, .u.thread.row = C});
    io(&w, 170, 3, KERNEL_IO_READ, 3, -1, 0, 1);
    world_end(&w);
    check("/a", C, "other:110-115+0 open:115-150+0 read:150-155+1 open:155-160+0 ");
    check("/a", D, "read:130-135+1 ");
    check("fd 3 of  (107)", D, "read:170-175+1 ");
    world_close(&w);
}

static void losses(void **state)
{
    struct kernel_tracker w;
    begin(&w);
    open_file(&w, 110, 0, -100, "/a", 0, 3);
    world_io(&w, 120, 0, KERNEL_IO_READ, 3, -1, 0, NULL);
    world_lost(&w, 140, 0, 130, 140, 5);
    world_switch(&w, 150, 0, 0, A, KERNEL_LEAVE_RUNNABLE);
    io(&w, 160, 0, KERNEL_IO_READ, 3, -1, 0, 9);
    world_end(&w);
    check("/a", A, "other:110-115+0 open:115-120+0 read:120-130+0 open:130-165+0 ");
    check("/a (before events were lost)", A, "read:160-165+9 ");
    world_close(&w);
}

/* A close is the first that is heard of each process: room for what comes is made then. */
static void closed_first(void **state)
{
    struct kernel_tracker w;
    int64_t ts = 200;
    int32_t before = A;
    begin(&w);
    for (int32_t row = D + 1; row < WORLD_THREADS; before = row++, ts += 100) {
        w.threads[row].tgid = w.threads[row].tid;
        world_switch(&w, ts, 0, before, row, KERNEL_LEAVE_RUNNABLE);
        io(&w, ts + 10, 0, KERNEL_IO_CLOSE, 3, -1, 0, 0);
        open_file(&w, ts + 20, 0, -100, "/a", 0, 3);
        io(&w, ts + 30, 0, KERNEL_IO_CLOSE, 3, -1, 0, 0);
    }
    world_end(&w);
    check("/a", D + 1, "other:220-225+0 open:225-235+0 ");
    check("/a", D + 2, "other:320-325+0 open:325-335+0 ");
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opened_read_closed),
        cmocka_unit_test(duplicates),
        cmocka_unit_test(children),
        cmocka_unit_test(losses),
        cmocka_unit_test(closed_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
