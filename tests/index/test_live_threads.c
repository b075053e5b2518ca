/* SPDX-License-Identifier: MIT */
/* Recording fed by one thread while others query it: feeding, reading and querying lock the recording; answers are
 * shared without any lock, while the recording goes on. */
#include <pthread.h>

#include "graph/graph.h"
#include "live_world.h"

enum { READERS = 2, ANSWERS = 6 };

struct shared {
    struct live_world w;
    pthread_mutex_t lock; /* guards the recording: feed, live index */
    bool fed;             /* everything fed */
    int failed;
    size_t answers; /* number of answers so far */
    size_t rounds;  /* rounds of feeding */
};

/* Feeds one packet of each file after the other. */
static bool feed_next(struct live_recording *r)
{
    bool any = false;
    for (size_t i = 0; i < r->files.files.n; i++) {
        struct fed_file *f = &r->files.files.v[i];
        const struct fed_part *p = &f->parts.v[f->fed];
        if (f->fed == f->parts.n)
            continue;
        if (ctf_feed_packet(r->feed, f->line, f->bytes.v + p->at, p->n, NULL))
            return false;
        if (++f->fed == f->parts.n)
            ctf_feed_line_end(r->feed, f->line);
        any = true;
    }
    return any;
}

/* Returns how often feed_next has something. */
static size_t rounds_of(const struct live_recording *r)
{
    size_t most = 0;
    for (size_t i = 0; i < r->files.files.n; i++)
        most = r->files.files.v[i].parts.n > most ? r->files.files.v[i].parts.n : most;
    return most;
}

/* A share of it for each answer, so that some are given, and read, while it goes on. */
static bool is_ahead(struct shared *s, size_t round)
{
    pthread_mutex_lock(&s->lock);
    bool ahead = round * ANSWERS > rounds_of(&s->w.of[0]) * (s->answers + 1);
    pthread_mutex_unlock(&s->lock);
    return ahead;
}

/* Waits until the feeder's share of rounds has reached the share of answers given. */
static void wait_for_feeder(struct shared *s)
{
    for (bool behind = true; behind;) {
        pthread_mutex_lock(&s->lock);
        behind = !s->fed && !s->failed && s->rounds * ANSWERS < rounds_of(&s->w.of[0]) * s->answers + 1;
        pthread_mutex_unlock(&s->lock);
        if (behind)
            usleep(1000);
    }
}

static void *run_feeder(void *arg)
{
    struct shared *s = arg;
    struct live_recording *r = &s->w.of[0];
    struct err e = {0};
    bool more, goes_on = true;
    for (size_t round = 0; goes_on; round++) {
        while (is_ahead(s, round))
            usleep(1000);
        pthread_mutex_lock(&s->lock);
        goes_on = feed_next(r);
        if (!goes_on)
            ctf_feed_end(r->feed);
        s->failed |= index_live_read(r->live, 500, &more, &e);
        s->fed = !goes_on;
        s->rounds++;
        pthread_mutex_unlock(&s->lock);
    }
    return NULL;
}

/* ---- answers ---- */

struct reader {
    pthread_t thread;
    const struct experiment *x;
    uint64_t sum;
};

/* Reads data of all kinds from an answer. */
static void *run_reader(void *arg)
{
    struct reader *r = arg;
    const struct index_host *h;
    const struct index_note *notes;
    uint64_t events;
    for (size_t i = 0, n = index_experiment_hosts(r->x, &h); i < n; i++) {
        for (size_t row = 0; h[i].graph && row < graph_rows(h[i].graph); row++) {
            struct graph_row g;
            uint64_t id = index_row_id(&h[i], (int32_t)row);
            graph_row(h[i].graph, (int32_t)row, &g);
            r->sum += (uint64_t)index_row_find(&h[i], id) + strlen(g.name);
        }
        for (size_t k = 0; h[i].types && k < index_types(h[i].types); k++)
            r->sum += strlen(index_type(h[i].types, k, &events)->name) + events;
    }
    for (size_t i = 0, n = index_experiment_notes(r->x, &notes); i < n; i++)
        r->sum += strlen(notes[i].text);
    r->sum += index_experiment_stored_events(r->x);
    return NULL;
}

/* Compares an answer with one pass while others read it. */
static void compare(struct shared *s, struct experiment *x, int64_t until)
{
    struct reader readers[READERS];
    struct live_kept k = {.x = x};
    for (size_t i = 0; i < READERS; i++) {
        readers[i] = (struct reader){.x = x};
        assert_int_equal(pthread_create(&readers[i].thread, NULL, run_reader, &readers[i]), 0);
    }
    k.any[0] = one_pass_build(&k.passes[0], s->w.of[0].whole, until);
    s->w.answered += k.any[0];
    live_same(&s->w, &k);
    for (size_t i = 0; i < READERS; i++)
        pthread_join(readers[i].thread, NULL);
    assert_int_equal(readers[0].sum, readers[1].sum);
    one_pass_free(&k.passes[0]);
}

static void many_threads(const char *below)
{
    struct shared s = {.lock = PTHREAD_MUTEX_INITIALIZER};
    const char *path = data_or_skip(below);
    pthread_t feeder;
    bool fed = false;
    int during = 0;
    fed_dice = test_seed(33);
    live_open(&s.w, path, 32, &(struct index_options){.memory = 1, .threads = 1});
    live_open_lines(&s.w.of[0]);
    assert_int_equal(pthread_create(&feeder, NULL, run_feeder, &s), 0);
    for (int i = 0; i < ANSWERS && !fed; i++) {
        wait_for_feeder(&s);
        pthread_mutex_lock(&s.lock);
        struct experiment *x = live_ask(&s.w);
        int64_t until = index_live_until(s.w.of[0].live);
        fed = s.fed;
        s.answers++;
        during += !fed && until > INT64_MIN;
        pthread_mutex_unlock(&s.lock);
        compare(&s, x, until);
        index_experiment_close(x); /* closes it while feeding goes on */
    }
    pthread_mutex_lock(&s.lock);
    s.answers = ANSWERS;
    pthread_mutex_unlock(&s.lock);
    pthread_join(feeder, NULL);
    assert_int_equal(s.failed, 0);
    assert_true(during > 1);
    live_finish(&s.w, path);
    live_close(&s.w);
}

static void kernel(void **state)
{
    many_threads("traces/live-relayd");
}

static void user_space(void **state)
{
    many_threads("traces/ust-live");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernel), cmocka_unit_test(user_space)};
    return cmocka_run_group_tests(tests, live_make_places, live_remove_places);
}
