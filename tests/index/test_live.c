/* Recordings that are fed in small portions, asked about in between: each answer is that of one pass over what happened
 * before the time that it is right up to, and stays so; the last one is that of the whole. */
#include "../ctf/fed.h"

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>

#include "../flow/same.h"
#include "../path/same.h"
#include "../stack/cut.h"
#include "../state/same.h"
#include "base/json.h"
#include "base/text.h"
#include "clock/clock.h"
#include "index/index.h"
#include "index/live.h"
#include "kernel/kernel.h"
#include "one_pass.h"

enum { MOST_TRACES = 8, MOST_KEPT = 2 };

static void remove_tree(const char *path)
{
    char command[800];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

/* Stores are written often here: in memory, if there is room. */
static char stores[512];

static int make_places(void **state)
{
    snprintf(stores, sizeof stores, "%s/weft-live-XXXXXX", access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
    return mkdtemp(stores) ? make_scratch(state) : -1;
}

static int remove_places(void **state)
{
    remove_tree(stores);
    return remove_scratch(state);
}

/* ---- a recording ---- */

struct recording {
    struct ctf_trace *whole;
    struct fed_trace files;
    struct ctf_feed *feed;
    struct index_live *live;
    char store[700];
    bool done, losses;
};

/* An answer, and what it must be for ever. */
struct kept {
    struct experiment *x;
    struct one_pass passes[MOST_TRACES];
    bool any[MOST_TRACES];
};

struct world {
    struct ctf_schemas *schemas;
    struct ctf_group *groups;
    struct recording of[MOST_TRACES];
    size_t n;
    bool beacons;
    struct index_options options;
    struct kept kept[MOST_KEPT];
    size_t n_kept;
    size_t asked, answered; /* answered: with something in it */
};

/* Metadata come in portions; the live index is made as soon as they say enough. */
static void begin_feeding(struct recording *r, const struct index_options *o)
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

static void end_feeding(struct recording *r)
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

static void open_world(struct world *w, const char *path, size_t head, const struct index_options *o)
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
        struct recording *r = &w->of[i];
        if (ctf_trace_open(&w->groups[i], w->schemas, &r->whole, &e))
            fail_msg("%s", e.text);
        fed_load(&r->files, &w->groups[i], head);
        snprintf(r->store, sizeof r->store, "%s/store%d-%zu", stores, serial, i);
        r->losses = has_losses(r->whole);
        begin_feeding(r, &w->options);
    }
    serial++;
}

static void close_world(struct world *w)
{
    for (size_t i = 0; i < w->n; i++) {
        end_feeding(&w->of[i]);
        fed_unload(&w->of[i].files);
        ctf_trace_close(w->of[i].whole);
        remove_tree(w->of[i].store);
    }
    ctf_groups_free(w->groups, w->n);
    ctf_schemas_free(w->schemas);
}

/* ---- comparing ---- */

static const char *clocks_of(const struct clock_net *net, struct text *out)
{
    struct json j = JSON_TO(out);
    clock_net_write_json(net, &j);
    return text_cstr(out);
}

/* Maps of the hosts from these flows alone. */
static void solve(const struct flow_store *const *flows, const struct index_host *hosts, size_t n, struct text *out)
{
    struct clock_options o = clock_defaults();
    struct clock_net *net = clock_net_new(&o);
    struct index_sync_host all[MOST_TRACES] = {0};
    struct index_sync sync = {.hosts = all, .n = n, .prior_ppm = o.drift_prior_ppm};
    struct err e = {0};
    for (size_t i = 0; i < n; i++) {
        all[i].flows = flows[i];
        clock_net_host(net, hosts[i].clock_name, hosts[i].begin, hosts[i].end);
    }
    if (index_sync_flows(net, &sync, &e))
        fail_msg("%s", e.text);
    clocks_of(net, out);
    clock_net_free(net);
}

static void same_states(const struct state_store *a, const struct state_store *b, const char *name)
{
    uint64_t dice = 1 + fed_roll(1000000);
    struct pair p = {.a = a, .b = b, .where = name, .dice = &dice};
    same_rows_all(&p);
    same_tables(&p);
}

static void same_world(const struct world *w, const struct kept *k)
{
    struct path_local_host one[MOST_TRACES], many[MOST_TRACES];
    const struct flow_store *of_one[MOST_TRACES], *of_many[MOST_TRACES];
    struct index_host used[MOST_TRACES];
    const struct index_trace *traces;
    const struct index_host *hosts;
    size_t n = experiment_traces(k->x, &traces), n_kernel = 0;
    experiment_hosts(k->x, &hosts);
    assert_int_equal(n, w->n);
    for (size_t i = 0; i < n; i++) {
        const struct index_host *h = &hosts[traces[i].host];
        const struct one_pass *p = &k->passes[i];
        const char *name = ctf_trace_path(w->of[i].whole);
        if (!k->any[i])
            continue;
        if (!traces[i].is_kernel) {
            cut_same(p->stacks, traces[i].stacks);
            continue;
        }
        assert_int_equal(h->events, p->events);
        assert_int_equal(h->lost_events, p->lost_events);
        assert_true(h->begin == p->begin && h->end == p->end);
        same_states(p->states, h->states, name);
        same_stores(p->flows, h->flows, (int32_t)graph_rows(p->graph));
        one[n_kernel] = (struct path_local_host){.name = h->name, .graph = p->graph, .flows = p->flows};
        many[n_kernel] = (struct path_local_host){.name = h->name, .graph = h->graph, .flows = h->flows};
        of_one[n_kernel] = p->flows;
        of_many[n_kernel] = h->flows;
        used[n_kernel++] = *h;
    }
    struct text a = {.fd = -1}, b = {.fd = -1};
    same_paths(one, many, n_kernel);
    solve(of_one, used, n_kernel, &a);
    solve(of_many, used, n_kernel, &b);
    assert_string_equal(text_cstr(&a), text_cstr(&b));
    text_fini(&a);
    text_fini(&b);
}

static void free_kept(struct kept *k)
{
    experiment_close(k->x);
    for (size_t i = 0; i < MOST_TRACES; i++)
        one_pass_free(&k->passes[i]);
    *k = (struct kept){0};
}

static void keep_none(struct world *w)
{
    for (size_t i = 0; i < w->n_kept; i++)
        free_kept(&w->kept[i]);
    w->n_kept = 0;
}

/* ---- asking ---- */

static struct experiment *ask(const struct world *w)
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

static void ask_and_compare(struct world *w)
{
    struct kept k = {.x = ask(w)};
    w->asked++;
    for (size_t i = 0; i < w->n; i++) {
        k.any[i] = one_pass_build(&k.passes[i], w->of[i].whole, index_live_until(w->of[i].live));
        w->answered += k.any[i];
    }
    same_world(w, &k);
    if (w->n_kept < MOST_KEPT && fed_roll(3) == 0)
        w->kept[w->n_kept++] = k;
    else
        free_kept(&k);
}

/* ---- what it is at the end ---- */

static void same_ids(const struct index_host *a, const struct index_host *b)
{
    assert_int_equal(a->key, b->key);
    assert_int_equal(graph_rows(a->graph), graph_rows(b->graph));
    for (size_t row = 0; row < graph_rows(a->graph); row++) {
        struct graph_row x, y;
        graph_row(a->graph, (int32_t)row, &x);
        graph_row(b->graph, (int32_t)row, &y);
        assert_string_equal(x.name, y.name);
        assert_true(x.tid == y.tid && x.tgid == y.tgid && x.begin == y.begin && x.end == y.end);
        assert_int_equal(index_row_id(a, (int32_t)row), index_row_id(b, (int32_t)row));
        assert_int_equal(index_row_find(b, index_row_id(a, (int32_t)row)), row);
    }
}

static void same_types(const struct index_types *a, const struct index_types *b)
{
    uint64_t x, y, sum = 0, other = 0;
    size_t n = index_types(a);
    assert_int_equal(n, index_types(b));
    for (size_t i = 0; i < n; i++) { /* classes may be numbered in another order */
        const char *name = index_type(a, i, &x)->name;
        for (size_t k = 0; k < n; k++)
            if (!strcmp(index_type(b, k, &y)->name, name)) {
                sum += x == y;
                break;
            }
        other++;
    }
    assert_int_equal(sum, other);
}

/* As what `weft index` makes of the directory. */
static void compare_whole(const struct world *w, struct experiment *x, const char *path)
{
    struct experiment *y;
    struct err e = {0};
    struct clock_options o = clock_defaults();
    const struct clock_net *one, *other;
    char store[700];
    snprintf(store, sizeof store, "%s/whole", stores);
    const struct index_options options = {.store = store, .stores = true, .states = true, .user_space = true};
    if (experiment_open(&path, 1, &options, &y, &e))
        fail_msg("%s", e.text);
    const struct index_trace *a, *b;
    const struct index_host *g, *h;
    size_t n = experiment_traces(x, &a), n_hosts = experiment_hosts(x, &g);
    assert_int_equal(n, experiment_traces(y, &b));
    assert_int_equal(n_hosts, experiment_hosts(y, &h));
    assert_int_equal(experiment_stored_events(x), experiment_stored_events(y));
    assert_int_equal(experiment_partial(x), experiment_partial(y));
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(a[i].is_kernel, b[i].is_kernel);
        same_types(a[i].types, b[i].types);
        if (a[i].is_kernel)
            same_ids(&h[b[i].host], &g[a[i].host]);
    }
    for (size_t i = 0; i < n_hosts; i++) {
        assert_string_equal(g[i].name, h[i].name);
        assert_true(g[i].begin == h[i].begin && g[i].end == h[i].end);
    }
    struct text p = {.fd = -1}, q = {.fd = -1};
    if (experiment_sync(x, &o, &one, &e) || experiment_sync(y, &o, &other, &e))
        fail_msg("%s", e.text);
    assert_string_equal(clocks_of(one, &p), clocks_of(other, &q));
    text_fini(&p);
    text_fini(&q);
    experiment_close(y);
    remove_tree(store);
}

static void finish(struct world *w, const char *path)
{
    struct err e = {0};
    for (size_t i = 0; i < w->n; i++)
        if (index_live_end(w->of[i].live, &e))
            fail_msg("%s", e.text);
    ask_and_compare(w);
    struct experiment *x = ask(w);
    compare_whole(w, x, path);
    experiment_close(x);
    for (size_t i = 0; i < w->n_kept; i++) {
        same_world(w, &w->kept[i]);
        free_kept(&w->kept[i]);
    }
    w->n_kept = 0;
}

/* ---- the way there ---- */

static void feed_all(struct recording *r, size_t from, size_t to)
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

static void open_lines(struct recording *r)
{
    for (size_t i = 0; i < r->files.files.n; i++) {
        r->files.files.v[i].line = ctf_feed_line(r->feed, r->files.files.v[i].name);
        r->files.files.v[i].known = true;
    }
    ctf_feed_hold(r->feed, INT64_MAX);
}

static void read_some(struct recording *r)
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
static void restart(struct world *w, struct recording *r)
{
    int64_t before, sealed;
    keep_none(w); /* their traces go */
    before = index_live_until(r->live);
    end_feeding(r);
    begin_feeding(r, &w->options);
    sealed = index_live_until(r->live);
    assert_true(sealed <= before);
}

static void run_world(struct world *w, const char *path, int asks, int restarts)
{
    size_t open = w->n, steps = 0, all = 0;
    for (size_t i = 0; i < w->n; i++)
        for (size_t k = 0; k < w->of[i].files.files.n; k++)
            all += w->of[i].files.files.v[k].parts.n / 2 + 2;
    while (open) {
        struct recording *r = &w->of[fed_roll(w->n)];
        steps++;
        if (!r->done && !fed_step(r->feed, &r->files, w->beacons && !r->losses, false)) {
            ctf_feed_end(r->feed);
            r->done = true;
            open--;
        }
        if (fed_roll(4) == 0)
            read_some(r);
        if (fed_roll(all) < (uint64_t)asks)
            ask_and_compare(w);
        else if (fed_roll(all) < (uint64_t)asks * 8) /* many small chunks */
            experiment_close(ask(w));
        if (restarts && !r->done && fed_roll(all) < 3) {
            restart(w, r);
            restarts--;
        }
    }
    finish(w, path);
    assert_true(w->answered > 0);
}

static void feed_held(struct recording *r, int64_t until)
{
    open_lines(r);
    ctf_feed_hold(r->feed, until);
    feed_all(r, 0, SIZE_MAX);
    for (size_t i = 0; i < r->files.files.n; i++)
        ctf_feed_line_end(r->feed, r->files.files.v[i].line);
}

/* All is there, but what is certain moves on by small steps, into waits, calls and packets. */
static void run_slowly(struct world *w, const char *path, int asks, int restarts)
{
    enum { STEPS = 60 };
    int64_t begin[MOST_TRACES], end[MOST_TRACES], until[MOST_TRACES];
    size_t open = w->n, steps = 0, every = STEPS * w->n / (size_t)(asks + 1);
    for (size_t i = 0; i < w->n; i++) {
        assert_true(ctf_trace_span(w->of[i].whole, &begin[i], &end[i]));
        until[i] = begin[i];
        feed_held(&w->of[i], until[i]);
    }
    while (open) {
        size_t i = fed_roll(w->n);
        struct recording *r = &w->of[i];
        if (!r->done && until[i] > end[i]) {
            ctf_feed_end(r->feed);
            r->done = true;
            open--;
        } else if (!r->done) {
            until[i] += 1 + (int64_t)fed_roll((uint64_t)(end[i] - begin[i]) / STEPS * 2);
            ctf_feed_hold(r->feed, until[i]);
        }
        if (fed_roll(2) == 0)
            read_some(r);
        if (++steps % every == 0)
            ask_and_compare(w);
        else if (fed_roll(4) == 0) /* many small chunks */
            experiment_close(ask(w));
        if (restarts && !r->done && fed_roll(STEPS / 2) == 0) {
            restart(w, r);
            feed_held(r, until[i]);
            restarts--;
        }
    }
    finish(w, path);
    assert_true(w->answered > w->n);
}

typedef void run(struct world *, const char *path, int asks, int restarts);
static void recorded_with(const char *below, run *how, uint64_t memory, int restarts)
{
    const char *path = data_or_skip(below);
    uint64_t seed = test_seed(5);
    struct world w;
    fed_dice = seed * 7919 + memory + (uint64_t)restarts;
    open_world(&w, path, 32, &(struct index_options){.memory = memory, .threads = 1});
    how(&w, path, 4, restarts);
    close_world(&w);
}

/* With little memory: chunks of a thousand events. */
static void recorded(const char *below)
{
    recorded_with(below, run_world, 1, 2);
    recorded_with(below, run_slowly, 0, 0);
    recorded_with(below, run_slowly, 1, 2);
}

#define RECORDED(name, below) \
    static void name(void **state) \
    { \
        recorded("traces/" below); \
    }
RECORDED(one_host, "live-relayd")
RECORDED(three_hosts, "three-tier")
RECORDED(disks, "three-tier-disk")
RECORDED(losses, "lost-events")
RECORDED(archives, "rotated")
RECORDED(user_space, "ust-live")
RECORDED(virtual_machine, "vm")
RECORDED(processes, "mpi")

/* ---- what goes wrong ---- */

static bool is_noted(const struct experiment *x, int kind, const char *part)
{
    const struct index_note *v;
    bool any = false;
    for (size_t i = 0, n = experiment_notes(x, &v); i < n; i++)
        any |= v[i].kind == kind && strstr(v[i].text, part);
    return any;
}

/* A line says that it is quiet, and is not: what was answered stays, what came too late is told. */
static void late(void **state)
{
    struct world w;
    struct err e = {0};
    bool more;
    fed_dice = test_seed(3);
    open_world(&w, data_or_skip("traces/live-relayd"), 32, &(struct index_options){.threads = 1});
    struct recording *r = &w.of[0];
    open_lines(r);
    struct fed_file *f = &r->files.files.v[0];
    feed_all(r, 0, f->parts.n / 2);
    int64_t begin, end;
    assert_true(ctf_trace_span(r->whole, &begin, &end));
    for (size_t i = 0; i < r->files.files.n; i++)
        ctf_feed_quiet(r->feed, r->files.files.v[i].line, end);
    struct experiment *early = ask(&w);
    const struct index_host *h;
    experiment_hosts(early, &h);
    uint64_t events = h->events;
    assert_true(events > 0 && index_live_until(r->live) == end && index_live_left_out(r->live) == 0);
    assert_false(experiment_partial(early));
    feed_all(r, 0, SIZE_MAX);
    ctf_feed_end(r->feed);
    for (more = true; more;)
        assert_int_equal(index_live_read(r->live, 1000, &more, &e), 0);
    assert_true(index_live_left_out(r->live) > 0);
    assert_int_equal(index_live_end(r->live, &e), 0);
    struct experiment *x = ask(&w);
    assert_true(experiment_partial(x) && is_noted(x, INDEX_NOTE_INPUT, "they are left out"));
    experiment_hosts(early, &h);
    assert_int_equal(h->events, events);
    experiment_close(early);
    experiment_close(x);
    close_world(&w);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit l;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &l), 0);
    l.rlim_cur = bytes < l.rlim_max ? bytes : l.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
}

/* The stores cannot be written: that is told, each time; once there is room again, all is made of what is fed again,
 * and of the chunks that were sealed. */
static void full_disk(void **state)
{
    struct world w;
    struct err e = {0};
    struct experiment *x;
    const char *path = data_or_skip("traces/live-relayd");
    signal(SIGXFSZ, SIG_IGN);
    fed_dice = test_seed(4);
    open_world(&w, path, 32, &(struct index_options){.memory = 1, .threads = 1});
    struct recording *r = &w.of[0];
    open_lines(r);
    feed_all(r, 0, r->files.files.v[0].parts.n / 2);
    experiment_close(ask(&w));
    limit_files(512);
    feed_all(r, 0, SIZE_MAX);
    assert_int_equal(index_live_ask(&r->live, NULL, 1, &x, &e), ERR_IO);
    assert_non_null(strstr(e.text, r->store));
    limit_files(RLIM_INFINITY);
    struct err again = {0};
    assert_int_equal(index_live_ask(&r->live, NULL, 1, &x, &again), ERR_IO);
    assert_string_equal(again.text, e.text);
    restart(&w, r);
    run_world(&w, path, 2, 0);
    close_world(&w);
}

/* Stores of another recording are not gone on from: as soon as that is known it is told. */
static void other_recording(void **state)
{
    struct world w;
    struct err e = {0};
    const char *path = data_or_skip("traces/live-relayd");
    fed_dice = test_seed(6);
    open_world(&w, path, 32, &(struct index_options){.memory = 1, .threads = 1});
    struct recording *r = &w.of[0];
    open_lines(r);
    feed_all(r, 0, SIZE_MAX);
    experiment_close(ask(&w));
    end_feeding(r);
    begin_feeding(r, &w.options);
    int64_t sealed = index_live_until(r->live);
    assert_true(sealed > INT64_MIN);
    open_lines(r);
    for (size_t i = 0; i < r->files.files.n; i++)
        r->files.files.v[i].fed = r->files.files.v[i].parts.n / 2; /* as if one attached late */
    feed_all(r, 0, SIZE_MAX);
    ctf_feed_end(r->feed);
    assert_int_equal(index_live_end(r->live, &e), ERR_STALE);
    end_feeding(r);
    w.options.force = true;
    begin_feeding(r, &w.options);
    assert_true(index_live_until(r->live) == INT64_MIN);
    run_world(&w, path, 2, 0);
    close_world(&w);
}

/* ---- directories that are written to ---- */

struct followed {
    struct world w;
    char dir[600];
    struct ctf_trace *trace;
};

static void follow(struct followed *f)
{
    struct ctf_group *groups;
    struct err e = {0};
    size_t n;
    struct recording *r = &f->w.of[0];
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
    struct world *w = &f->w;
    struct err e = {0};
    char metadata[700];
    *f = (struct followed){.w = {.n = 1, .options = *o}};
    w->schemas = ctf_schemas_new();
    size_t n;
    if (ctf_discover(path, &w->groups, &n, &e) || ctf_trace_open(&w->groups[0], w->schemas, &w->of[0].whole, &e))
        fail_msg("%s", e.text);
    fed_load(&w->of[0].files, &w->groups[0], 32);
    snprintf(f->dir, sizeof f->dir, "%s/%s", stores, name);
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

/* What was indexed while it grew is found by who opens the directory. */
static void open_followed(const struct followed *f)
{
    struct experiment *x;
    struct err e = {0};
    const char *dir = f->dir;
    const struct index_host *h;
    struct one_pass p;
    if (experiment_open(&dir, 1, &(struct index_options){.stores = true, .states = true}, &x, &e))
        fail_msg("%s", e.text);
    assert_int_equal(experiment_hosts(x, &h), 1);
    assert_false(h->built);
    assert_true(one_pass_build(&p, f->w.of[0].whole, INT64_MAX));
    assert_int_equal(h->events, p.events);
    same_states(p.states, h->states, f->dir);
    one_pass_free(&p);
    experiment_close(x);
}

static void follow_recorded(const char *below, const char *name, uint64_t memory, int restarts)
{
    const char *path = data_or_skip(below);
    struct followed f;
    struct err e = {0};
    fed_dice = test_seed(9) * 31 + memory;
    begin_following(&f, path, name, &(struct index_options){.memory = memory, .threads = 1});
    struct recording *r = &f.w.of[0];
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
            read_some(r);
        if (fed_roll(all) < 8)
            ask_and_compare(&f.w);
        if (restarts && fed_roll(all) < 3) {
            keep_none(&f.w);
            unfollow(&f);
            follow(&f);
            restarts--;
        }
    }
    if (ctf_trace_refresh(f.trace, NULL, NULL, &e) || ctf_trace_end(f.trace, &e) || index_live_end(r->live, &e))
        fail_msg("%s", e.text);
    ask_and_compare(&f.w);
    assert_true(f.w.answered > 0);
    keep_none(&f.w);
    unfollow(&f);
    open_followed(&f);
    fed_unload(&r->files);
    ctf_trace_close(r->whole);
    ctf_schemas_free(f.w.schemas);
    remove_tree(f.dir);
}

static void followed(void **state)
{
    follow_recorded("traces/three-tier/db", "follow1", 0, 0);
    follow_recorded("traces/three-tier/db", "follow2", 1, 2);
    follow_recorded("traces/lost-events", "follow3", 1, 1);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_host), cmocka_unit_test(three_hosts),
        cmocka_unit_test(disks), cmocka_unit_test(losses), cmocka_unit_test(archives), cmocka_unit_test(user_space),
        cmocka_unit_test(virtual_machine), cmocka_unit_test(processes), cmocka_unit_test(followed),
        cmocka_unit_test(late), cmocka_unit_test(full_disk), cmocka_unit_test(other_recording)};
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, make_places, remove_places);
}
