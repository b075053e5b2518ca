/* SPDX-License-Identifier: MIT */
/* Directories written to while they are indexed and queried. */
#include "live_world.h"

struct followed {
    struct live_world w;
    char dir[600];
    struct ctf_trace *trace;
};

static void follow(struct followed *f)
{
    struct ctf_group *groups;
    struct err e = {0};
    size_t n;
    struct live_recording *r = &f->w.of[0];
    if (ctf_discover(f->dir, &groups, &n, &e) || ctf_trace_follow(&groups[0], NULL, &f->trace, &e) ||
        index_live_new(f->trace, r->store, &f->w.options, &r->live, &e))
        fail_msg("%s", e.text);
    ctf_groups_free(groups, n);
}

static void unfollow(struct followed *f)
{
    index_live_free(f->w.of[0].live);
    ctf_trace_close(f->trace);
}

static void append(const struct followed *f, struct fed_file *file, size_t packets)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/%s", f->dir, file->name);
    FILE *to = fopen(path, "ab");
    assert_non_null(to);
    for (; packets > 0 && file->fed < file->parts.n; packets--) {
        const struct fed_part *p = &file->parts.v[file->fed++];
        assert_int_equal(fwrite(file->bytes.v + p->at, 1, p->n, to), p->n);
    }
    assert_int_equal(fclose(to), 0);
}

static void begin_following(struct followed *f, const char *path, const char *name, const struct index_options *o)
{
    struct live_world *w = &f->w;
    struct err e = {0};
    char metadata[700];
    *f = (struct followed){.w = {.n = 1, .options = *o}};
    w->schemas = ctf_schemas_new();
    size_t n;
    if (ctf_discover(path, &w->groups, &n, &e) || ctf_trace_open(&w->groups[0], w->schemas, &w->of[0].whole, &e))
        fail_msg("%s", e.text);
    fed_load(&w->of[0].files, &w->groups[0], 32);
    snprintf(f->dir, sizeof f->dir, "%s/%s", live_stores, name);
    snprintf(w->of[0].store, sizeof w->of[0].store, "%s/.weft", f->dir);
    assert_int_equal(mkdir(f->dir, 0755), 0);
    snprintf(metadata, sizeof metadata, "%s/metadata", f->dir);
    test_write_file(metadata, w->of[0].files.metadata, w->of[0].files.metadata_n);
    /* A stream that is not there yet is not waited for. */
    for (size_t i = 0; i < w->of[0].files.files.n; i++)
        append(f, &w->of[0].files.files.v[i], 1);
    follow(f);
    ctf_groups_free(w->groups, n);
}

/* Opens the directory and finds the index made while it grew. */
static void open_followed(const struct followed *f)
{
    struct experiment *x;
    struct err e = {0};
    const char *dir = f->dir;
    const struct index_host *h;
    struct one_pass p;
    if (index_experiment_open(&dir, 1, &(struct index_options){.stores = true, .states = true}, &x, &e))
        fail_msg("%s", e.text);
    assert_int_equal(index_experiment_hosts(x, &h), 1);
    assert_false(h->built);
    assert_true(one_pass_build(&p, f->w.of[0].whole, INT64_MAX));
    assert_int_equal(h->events, p.events);
    live_same_states(p.states, h->states, f->dir);
    one_pass_free(&p);
    index_experiment_close(x);
}

static void follow_recorded(const char *below, const char *name, uint64_t memory, int restarts)
{
    const char *path = data_or_skip(below);
    struct followed f;
    struct err e = {0};
    fed_dice = test_seed(9) * 31 + memory;
    begin_following(&f, path, name, &(struct index_options){.memory = memory, .threads = 1});
    struct live_recording *r = &f.w.of[0];
    size_t left = 0, all = 0;
    for (size_t i = 0; i < r->files.files.n; i++)
        all += r->files.files.v[i].parts.n - r->files.files.v[i].fed;
    for (left = all; left > 0;) {
        struct fed_file *file = &r->files.files.v[fed_roll(r->files.files.n)];
        size_t before = file->fed;
        append(&f, file, 1 + fed_roll(3));
        left -= file->fed - before;
        if (fed_roll(3) == 0 && ctf_trace_refresh(f.trace, NULL, NULL, &e))
            fail_msg("%s", e.text);
        if (fed_roll(4) == 0)
            live_read_some(r);
        if (fed_roll(all) < 8)
            live_ask_and_compare(&f.w);
        if (restarts && fed_roll(all) < 3) {
            live_keep_none(&f.w);
            unfollow(&f);
            follow(&f);
            restarts--;
        }
    }
    if (ctf_trace_refresh(f.trace, NULL, NULL, &e) || ctf_trace_end(f.trace, &e) || index_live_end(r->live, &e))
        fail_msg("%s", e.text);
    live_ask_and_compare(&f.w);
    assert_true(f.w.answered > 0);
    live_keep_none(&f.w);
    unfollow(&f);
    open_followed(&f);
    fed_unload(&r->files);
    ctf_trace_close(r->whole);
    ctf_schemas_free(f.w.schemas);
    live_remove_tree(f.dir);
}

static void followed(void **state)
{
    follow_recorded("traces/three-tier/db", "follow1", 0, 0);
    follow_recorded("traces/three-tier/db", "follow2", 1, 2);
    follow_recorded("traces/lost-events", "follow3", 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(followed)};
    return cmocka_run_group_tests(tests, live_make_places, live_remove_places);
}
