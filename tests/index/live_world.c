/* SPDX-License-Identifier: MIT */
#include "live_world.h"

#include <dirent.h>

#include "base/text.h"
#include "kernel/kernel.h"

void live_remove_tree(const char *path)
{
    char command[800];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

/* Stores are written often here: in memory, if there is room. */
char live_stores[512];

int live_make_places(void **state)
{
    snprintf(live_stores, sizeof live_stores, "%s/weft-live-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    return mkdtemp(live_stores) ? make_scratch(state) : -1;
}

int live_remove_places(void **state)
{
    live_remove_tree(live_stores);
    return remove_scratch(state);
}

/* Feeds metadata in portions; the live index is made as soon as they suffice. */
void live_begin(struct live_recording *r, const struct index_options *o)
{
    struct err e = {0};
    r->feed = ctf_feed_new(ctf_trace_path(r->whole), NULL);
    r->live = NULL;
    r->done = false;
    for (size_t at = 0, n; at < r->files.metadata_n; at += n) {
        n = 4096 * (1 + fed_roll(30)); /* whole packets of metadata */
        n = n < r->files.metadata_n - at ? n : r->files.metadata_n - at;
        (void)ctf_feed_metadata(r->feed, r->files.metadata + at, n, &e);
        struct ctf_trace *t = ctf_feed_trace(r->feed);
        if (!t || r->live || !kernel_host_name(t))
            continue;
        int rc = index_live_new(t, r->store, o, &r->live, &e);
        if (rc && rc != ERR_UNSUPPORTED)
            fail_msg("%s", e.text);
        r->live = rc ? NULL : r->live;
    }
    if (!r->live && index_live_new(ctf_feed_trace(r->feed), r->store, o, &r->live, &e))
        fail_msg("%s", e.text);
    for (size_t i = 0; i < r->files.files.n; i++) {
        struct fed_file *f = &r->files.files.v[i];
        f->fed = 0;
        f->known = f->ended = false;
    }
    fed_hold(r->feed, &r->files, false);
}

void live_end(struct live_recording *r)
{
    index_live_free(r->live);
    ctf_feed_free(r->feed);
}

static bool has_losses(struct ctf_trace *t)
{
    struct ctf_stream_info info;
    bool any = false;
    for (size_t i = 0; i < ctf_trace_streams(t); i++) {
        ctf_trace_stream(t, i, &info);
        any |= info.lost_events || info.lost_packets;
    }
    return any;
}

void live_open(struct live_world *w, const char *path, size_t head, const struct index_options *o)
{
    static int serial;
    struct err e = {0};
    memset(w, 0, sizeof *w);
    w->schemas = ctf_schemas_new();
    w->options = *o;
    w->beacons = true;
    if (ctf_discover(path, &w->groups, &w->n, &e))
        fail_msg("%s", e.text);
    assert_true(w->n <= MOST_TRACES);
    for (size_t i = 0; i < w->n; i++) {
        struct live_recording *r = &w->of[i];
        if (ctf_trace_open(&w->groups[i], w->schemas, &r->whole, &e))
            fail_msg("%s", e.text);
        fed_load(&r->files, &w->groups[i], head);
        snprintf(r->store, sizeof r->store, "%s/store%d-%zu", live_stores, serial, i);
        r->losses = has_losses(r->whole);
        live_begin(r, &w->options);
    }
    serial++;
}

void live_close(struct live_world *w)
{
    for (size_t i = 0; i < w->n; i++) {
        live_end(&w->of[i]);
        fed_unload(&w->of[i].files);
        ctf_trace_close(w->of[i].whole);
        live_remove_tree(w->of[i].store);
    }
    ctf_groups_free(w->groups, w->n);
    ctf_schemas_free(w->schemas);
}

static void free_kept(struct live_kept *k)
{
    index_experiment_close(k->x);
    for (size_t i = 0; i < MOST_TRACES; i++)
        one_pass_free(&k->passes[i]);
    *k = (struct live_kept){0};
}

void live_keep_none(struct live_world *w)
{
    for (size_t i = 0; i < w->n_kept; i++)
        free_kept(&w->kept[i]);
    w->n_kept = 0;
}

/* ---- asking ---- */

struct experiment *live_ask(const struct live_world *w)
{
    struct index_live *lives[MOST_TRACES];
    struct experiment *x;
    struct err e = {0};
    for (size_t i = 0; i < w->n; i++)
        lives[i] = w->of[i].live;
    if (index_live_ask(lives, NULL, w->n, &x, &e))
        fail_msg("%s", e.text);
    return x;
}

void live_ask_and_compare(struct live_world *w)
{
    struct live_kept k = {.x = live_ask(w)};
    w->asked++;
    for (size_t i = 0; i < w->n; i++) {
        k.any[i] = one_pass_build(&k.passes[i], w->of[i].whole, index_live_until(w->of[i].live));
        w->answered += k.any[i];
    }
    live_same(w, &k);
    if (w->n_kept < MOST_KEPT && fed_roll(3) == 0)
        w->kept[w->n_kept++] = k;
    else
        free_kept(&k);
}

void live_finish(struct live_world *w, const char *path)
{
    struct err e = {0};
    for (size_t i = 0; i < w->n; i++)
        if (index_live_end(w->of[i].live, &e))
            fail_msg("%s", e.text);
    live_ask_and_compare(w);
    struct experiment *x = live_ask(w);
    live_same_whole(w, x, path);
    index_experiment_close(x);
    for (size_t i = 0; i < w->n_kept; i++) {
        live_same(w, &w->kept[i]);
        free_kept(&w->kept[i]);
    }
    w->n_kept = 0;
}

/* ---- the way there ---- */

void live_feed_all(struct live_recording *r, size_t from, size_t to)
{
    for (size_t i = 0; i < r->files.files.n; i++) {
        struct fed_file *f = &r->files.files.v[i];
        for (; f->known && !f->ended && f->fed < f->parts.n && f->fed < to; f->fed++)
            if (f->fed >= from)
                assert_int_equal(
                    ctf_feed_packet(r->feed, f->line, f->bytes.v + f->parts.v[f->fed].at, f->parts.v[f->fed].n, NULL),
                    0);
    }
}

void live_open_lines(struct live_recording *r)
{
    for (size_t i = 0; i < r->files.files.n; i++) {
        r->files.files.v[i].line = ctf_feed_line(r->feed, r->files.files.v[i].name);
        r->files.files.v[i].known = true;
    }
    ctf_feed_hold(r->feed, INT64_MAX);
}

void live_read_some(struct live_recording *r)
{
    struct err e = {0};
    bool more = true;
    int64_t before = index_live_until(r->live);
    while (more && fed_roll(3))
        if (index_live_read(r->live, 1 + fed_roll(3000), &more, &e))
            fail_msg("%s", e.text);
    assert_true(index_live_until(r->live) >= before);
}

/* Killed, so to speak, and begun anew on what it left. */
void live_restart(struct live_world *w, struct live_recording *r)
{
    int64_t before, sealed;
    live_keep_none(w); /* answers use traces that are closed now */
    before = index_live_until(r->live);
    live_end(r);
    live_begin(r, &w->options);
    sealed = index_live_until(r->live);
    assert_true(sealed <= before);
}

void live_run(struct live_world *w, const char *path, int asks, int restarts)
{
    size_t open = w->n, steps = 0, all = 0;
    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < w->of[i].files.files.n; k++)
            all += w->of[i].files.files.v[k].parts.n / 2 + 2;
    while (open) {
        struct live_recording *r = &w->of[fed_roll(w->n)];
        steps++;
        if (!r->done && !fed_step(r->feed, &r->files, w->beacons && !r->losses, false)) {
            ctf_feed_end(r->feed);
            r->done = true;
            open--;
        }
        if (fed_roll(4) == 0)
            live_read_some(r);
        if (fed_roll(all) < (uint64_t)asks)
            live_ask_and_compare(w);
        else if (fed_roll(all) < (uint64_t)asks * 8) /* makes many small chunks */
            index_experiment_close(live_ask(w));
        if (restarts && !r->done && fed_roll(all) < 3) {
            live_restart(w, r);
            restarts--;
        }
    }
    live_finish(w, path);
    assert_true(w->answered > 0);
}
