/* SPDX-License-Identifier: MIT */
/* Process that indexes a growing recording, and is killed at any moment: sealed data are kept, and a process that
 * continues from them, or indexes the whole, gives the same result as one pass. */
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "base/time.h"
#include "index/growing.h"
#include "live_world.h"

/* Number of processes killed after they have sealed something. */
enum { KILLS = 3, MOST_TRIES = 200, PATIENCE_S = 60 };

/* Reports of the process that is killed. */
struct said {
    _Atomic int64_t sealed_until; /* INT64_MIN: nothing is sealed */
    _Atomic bool begun, ended;
};

static struct said *new_said(void)
{
    struct said *s = mmap(NULL, sizeof *s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(s != MAP_FAILED);
    s->sealed_until = INT64_MIN;
    return s;
}

static void tell(struct said *s, const struct index_live *l)
{
    const struct index_history *h = &l->sealed;
    s->sealed_until = h->chunks.n ? h->chunks.v[h->chunks.n - 1].end : INT64_MIN;
}

/* A child that does it, killed after a share of the time that one takes that is not. */
struct killing {
    void (*work)(struct said *, void *);
    void *arg;
    int64_t takes_ns; /* 0: not known yet, the first one is not killed */
};
static void kill_somewhere(struct killing *k, struct said *s)
{
    pid_t child = fork();
    int status;
    assert_true(child >= 0);
    if (!child) {
        k->work(s, k->arg);
        s->ended = true;
        _exit(0);
    }
    for (int64_t end = time_monotonic_ns() + PATIENCE_S * NS_PER_S; !s->begun && time_monotonic_ns() < end;)
        usleep(100);
    int64_t begin = time_monotonic_ns();
    if (k->takes_ns) {
        usleep((useconds_t)fed_roll((uint64_t)k->takes_ns / 1000));
        kill(child, SIGKILL);
    }
    assert_true(waitpid(child, &status, 0) == child);
    assert_true(WIFSIGNALED(status) ? k->takes_ns && WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0);
    k->takes_ns = k->takes_ns ? k->takes_ns : time_monotonic_ns() - begin + 1000;
}

/* ---- fed ---- */

struct feeding {
    const char *path;
    struct index_options options;
};

static void feed_until_killed(struct said *s, void *arg)
{
    const struct feeding *f = arg;
    struct live_world w;
    live_open(&w, f->path, 32, &f->options);
    struct live_recording *r = &w.of[0];
    struct err e = {0};
    s->begun = true;
    for (bool more = true; more;) {
        more = fed_step(r->feed, &r->files, !r->losses, false);
        if (!more)
            ctf_feed_end(r->feed);
        if (fed_roll(4) == 0)
            live_read_some(r);
        if (fed_roll(50) == 0)
            index_experiment_close(live_ask(&w));
        tell(s, r->live);
    }
    if (index_live_end(r->live, &e))
        _exit(1);
    tell(s, r->live);
}

static void fed(void **state)
{
    struct feeding f = {.path = data_or_skip("traces/live-relayd"), .options = {.memory = 1, .threads = 1}};
    struct killing k = {.work = feed_until_killed, .arg = &f};
    struct live_world w;
    size_t sealed = 0;
    fed_dice = test_seed(31);
    for (int i = 0; i < MOST_TRIES && sealed < KILLS; i++) {
        struct said *s = new_said();
        kill_somewhere(&k, s);
        live_open(&w, f.path, 32, &f.options);
        int64_t until = s->sealed_until;
        sealed += !s->ended && until > INT64_MIN;
        /* Last chunks of a complete recording may contain more than was reported: they are not continued. */
        if (until < INT64_MAX)
            assert_true(index_live_until(w.of[0].live) >= until);
        munmap(s, sizeof *s);
        live_run(&w, f.path, 1, 0);
        live_close(&w);
    }
    assert_int_equal(sealed, KILLS);
}

/* ---- followed ---- */

struct following {
    struct live_world *w; /* world of the whole recording */
    char dir[600], store[700];
    struct index_options options;
};

static void append(const struct following *f, struct fed_file *file)
{
    char path[1000];
    const struct fed_part *p = &file->parts.v[file->fed++];
    snprintf(path, sizeof path, "%s/%s", f->dir, file->name);
    FILE *to = fopen(path, "ab");
    if (!to || fwrite(file->bytes.v + p->at, 1, p->n, to) != p->n || fclose(to))
        _exit(1);
}

/* Writes the recording, and indexes it at the same time: the kill stops both. */
static void follow_until_killed(struct said *s, void *arg)
{
    const struct following *f = arg;
    struct fed_trace *t = &f->w->of[0].files;
    struct ctf_group *groups;
    struct ctf_trace *trace;
    struct index_live *live;
    struct err e = {0};
    size_t n, left = 0;
    bool more;
    if (ctf_discover(f->dir, &groups, &n, &e) || ctf_trace_follow(&groups[0], NULL, &trace, &e) ||
        index_live_new(trace, f->store, &f->options, &live, &e))
        _exit(1);
    for (size_t i = 0; i < t->files.n; i++)
        left += t->files.v[i].parts.n - t->files.v[i].fed;
    s->begun = true;
    for (; left > 0; tell(s, live)) {
        struct fed_file *file = &t->files.v[fed_roll(t->files.n)];
        if (file->fed == file->parts.n)
            continue;
        append(f, file);
        left--;
        if (ctf_trace_refresh(trace, NULL, NULL, &e) || index_live_read(live, SIZE_MAX, &more, &e))
            _exit(1);
    }
    if (ctf_trace_end(trace, &e) || index_live_end(live, &e))
        _exit(1);
}

/* Reads the current files, without incomplete packets. */
static void complete(struct following *f)
{
    struct fed_trace *t = &f->w->of[0].files;
    char path[1000];
    for (size_t i = 0; i < t->files.n; i++) {
        struct fed_file *file = &t->files.v[i];
        snprintf(path, sizeof path, "%s/%s", f->dir, file->name);
        FILE *to = fopen(path, "wb");
        assert_non_null(to);
        for (file->fed = 0; file->fed < file->parts.n; file->fed++)
            assert_int_equal(fwrite(file->bytes.v + file->parts.v[file->fed].at, 1, file->parts.v[file->fed].n, to),
                file->parts.v[file->fed].n);
        assert_int_equal(fclose(to), 0);
        file->fed = 0;
    }
}

static void begin_directory(struct following *f, int number)
{
    struct fed_trace *t = &f->w->of[0].files;
    char path[1000];
    snprintf(f->dir, sizeof f->dir, "%s/killed%d", live_stores, number);
    snprintf(f->store, sizeof f->store, "%s/.weft", f->dir);
    assert_int_equal(mkdir(f->dir, 0755), 0);
    snprintf(path, sizeof path, "%s/metadata", f->dir);
    test_write_file(path, t->metadata, t->metadata_n);
    for (size_t i = 0; i < t->files.n; i++) {
        t->files.v[i].fed = 0;
        append(f, &t->files.v[i]);
    }
}

/* Opens the recording as `weft index` does. */
static void index_as_in_one_pass(const struct following *f)
{
    struct experiment *x;
    struct one_pass p;
    struct err e = {0};
    const char *dir = f->dir;
    const struct index_host *h;
    const struct index_options o = {.stores = true, .states = true, .user_space = true, .join = true};
    if (index_experiment_open(&dir, 1, &o, &x, &e))
        fail_msg("%s", e.text);
    assert_int_equal(index_experiment_hosts(x, &h), 1);
    assert_true(one_pass_build(&p, f->w->of[0].whole, INT64_MAX));
    assert_true(h->events == p.events && h->lost_events == p.lost_events && h->begin == p.begin && h->end == p.end);
    live_same_states(p.states, h->states, f->dir);
    assert_false(index_experiment_partial(x));
    live_same_whole(f->w, x, f->dir);
    one_pass_free(&p);
    index_experiment_close(x);
}

static void followed(void **state)
{
    struct live_world w;
    struct following f = {.w = &w, .options = {.memory = 1, .threads = 1}};
    struct killing k = {.work = follow_until_killed, .arg = &f};
    size_t sealed = 0;
    fed_dice = test_seed(32);
    live_open(&w, data_or_skip("traces/live-relayd"), 32, &f.options);
    live_end(&w.of[0]); /* frees the live index; only the recording is used */
    w.of[0].live = NULL;
    w.of[0].feed = NULL;
    for (int i = 0; i < MOST_TRIES && sealed < KILLS; i++) {
        struct said *s = new_said();
        begin_directory(&f, i);
        kill_somewhere(&k, s);
        sealed += !s->ended && s->sealed_until > INT64_MIN;
        if (!s->ended)
            complete(&f);
        index_as_in_one_pass(&f);
        live_remove_tree(f.dir);
        munmap(s, sizeof *s);
    }
    assert_int_equal(sealed, KILLS);
    live_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(fed), cmocka_unit_test(followed)};
    return cmocka_run_group_tests(tests, live_make_places, live_remove_places);
}
