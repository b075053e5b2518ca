/* SPDX-License-Identifier: MIT */
/* weft info: origin, tracer, time and size of recordings. */
#include "cli/cli.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/pool.h"
#include "base/progress.h"
#include "cli/info.h"
#include "cli/traces.h"
#include "kernel/kernel.h"

/* ---- gathering ---- */

static void add_problems(struct trace_facts *f, const struct ctf_problem *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        bool known = false;
        for (size_t k = 0; k < f->problems.n && !known; k++)
            known = strcmp(f->problems.v[k].text, p[i].text) == 0;
        if (!known) {
            struct ctf_problem own = {mem_strdup(p[i].text), p[i].count, p[i].harmless};
            vec_push(&f->problems, own);
        }
    }
}

static char *tracer_of(const struct ctf_trace *t)
{
    static const char *const parts[] = {"tracer_major", "tracer_minor", "tracer_patchlevel", "tracer_patch"};
    const char *name = ctf_trace_env_string(t, "tracer_name");
    if (!name)
        return NULL;
    struct text out = {.fd = -1};
    text_puts(&out, name);
    const struct ctf_env *env;
    size_t n = ctf_trace_env(t, &env);
    bool any = false;
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        for (size_t i = 0; i < n; i++)
            if (strcmp(env[i].name, parts[k]) == 0) {
                text_putc(&out, any ? '.' : ' ');
                env[i].is_string ? text_puts(&out, env[i].string) : text_i64(&out, env[i].number);
                any = true;
            }
    return text_take(&out);
}

static void gather(const struct experiment *x, size_t source, struct trace_facts *f)
{
    const struct ctf_source *sources;
    const struct index_host *hosts;
    index_experiment_sources(x, &sources);
    index_experiment_hosts(x, &hosts);
    const struct ctf_trace *t = sources[source].trace;
    const struct ctf_clock *clocks;
    const struct ctf_problem *problems;
    f->trace = t;
    kernel_targets_bind(&f->targets, t);
    f->host = hosts[index_experiment_source_host(x, source)].name;
    f->domain = ctf_trace_env_string(t, "domain");
    f->kernel = ctf_trace_env_string(t, "kernel_release");
    if (!f->kernel)
        f->kernel = ctf_trace_env_string(t, "release");
    f->tracer = tracer_of(t);
    f->clock = ctf_trace_clocks(t, &clocks) ? clocks : NULL;
    f->n_streams = ctf_trace_streams(t);
    f->streams = mem_zalloc(sizeof *f->streams * (f->n_streams + 1));
    for (size_t i = 0; i < f->n_streams; i++) {
        struct ctf_stream_info *s = &f->streams[i].info;
        ctf_trace_stream(t, i, s);
        f->packets += s->packets;
        f->lost_events += s->lost_events;
        f->lost_packets += s->lost_packets;
        f->bytes += s->bytes;
    }
    size_t n = ctf_trace_problems(t, &problems);
    add_problems(f, problems, n);
}

struct stream_job {
    struct trace_facts *facts;
    size_t stream;
};
struct stream_count {
    struct stream_job *jobs;
    struct progress *progress;
    pthread_mutex_t lock;
};

/* Packets may be opened long before their first event; what a trace shows begins with its first event. */
static void add_times(struct trace_facts *f, struct stream_facts *s, uint64_t events, int64_t first, int64_t last)
{
    if (!events || (!s->info.begin && !s->info.end)) /* trace without a clock */
        return;
    s->timed = true;
    s->info.begin = first;
    s->info.end = last;
    f->begin = !f->has_span || first < f->begin ? first : f->begin;
    f->end = !f->has_span || last > f->end ? last : f->end;
    f->has_span = true;
}

static void add_cpu(uint8_t *set, int64_t cpu)
{
    if (cpu >= 0 && cpu < CTF_MOST_CPUS)
        set[cpu / 8] |= (uint8_t)(1 << cpu % 8);
}

/* CPUs that threads move to, but that have no events in the trace. */
static void find_missing_cpus(struct trace_facts *f)
{
    VEC(int32_t) cpus = {0};
    for (int32_t cpu = 0; cpu < CTF_MOST_CPUS; cpu++)
        if (f->goes_to[cpu / 8] & 1 << cpu % 8 && kernel_cpu_is_missing(f->trace, cpu) &&
            !kernel_missing_is_told(f->trace, cpu))
            vec_push(&cpus, cpu);
    if (cpus.n) {
        struct text words = {.fd = -1};
        kernel_missing_words(&words, f->trace, cpus.v, cpus.n);
        struct ctf_problem p = {text_cstr(&words), 1, false};
        add_problems(f, &p, 1);
        text_fini(&words);
    }
    vec_free(&cpus);
}

static void count_stream(void *arg, size_t i)
{
    struct stream_count *c = arg;
    struct trace_facts *f = c->jobs[i].facts;
    size_t stream = c->jobs[i].stream;
    struct ctf_source source = {.trace = (struct ctf_trace *)f->trace};
    struct ctf_merge *m;
    struct err e = {0};
    struct ctf_problem failed = {e.text, 1, false};
    if (ctf_merge_new(&source, 1, (struct ctf_window){INT64_MIN, INT64_MAX}, (int)stream, &m, &e) != ERR_OK) {
        pthread_mutex_lock(&c->lock);
        add_problems(f, &failed, 1);
        pthread_mutex_unlock(&c->lock);
        return;
    }
    struct ctf_event batch[1024];
    uint64_t events = 0;
    int64_t first = INT64_MAX, last = INT64_MIN;
    info_cpus goes_to = {0};
    for (size_t n; (n = ctf_merge_next(m, batch, 1024)) > 0;)
        for (size_t k = 0; k < n; k++)
            if (batch[k].cls->item == CTF_EVENT) {
                events++;
                first = batch[k].ts < first ? batch[k].ts : first;
                last = batch[k].ts > last ? batch[k].ts : last;
                add_cpu(goes_to, kernel_target_of(&f->targets, &batch[k]));
            }
    const struct ctf_problem *problems;
    size_t n = ctf_merge_problems(m, &problems);
    pthread_mutex_lock(&c->lock);
    add_times(f, &f->streams[stream], events, first, last);
    f->streams[stream].events = events;
    f->events += events;
    for (size_t k = 0; k < sizeof goes_to; k++)
        f->goes_to[k] |= goes_to[k];
    add_problems(f, problems, n);
    pthread_mutex_unlock(&c->lock);
    ctf_merge_free(m);
    progress_add(c->progress, f->streams[stream].info.bytes);
}

static void count_all(struct trace_facts *facts, size_t n)
{
    struct stream_count c = {.progress = progress_new("counting")};
    VEC(struct stream_job) jobs = {0};
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < facts[i].n_streams; k++) {
            struct stream_job j = {&facts[i], k};
            vec_push(&jobs, j);
            bytes += facts[i].streams[k].info.bytes;
        }
    c.jobs = jobs.v;
    pthread_mutex_init(&c.lock, NULL);
    progress_total(c.progress, bytes);
    pool_run(jobs.n, 0, count_stream, &c);
    progress_free(c.progress);
    pthread_mutex_destroy(&c.lock);
    vec_free(&jobs);
}

/* ---- the verb ---- */

/* Traces that could not be opened are only known by the notes about them. */
static void note_unopened(const struct experiment *x, const struct trace_facts *facts, size_t n)
{
    const struct index_note *p;
    size_t notes = index_experiment_notes(x, &p);
    for (size_t i = 0; i < notes; i++) {
        bool shown = false;
        for (size_t k = 0; k < n && !shown; k++)
            for (size_t m = 0; m < facts[k].problems.n && !shown; m++)
                shown = strstr(p[i].text, facts[k].problems.v[m].text) != NULL;
        if (!shown)
            cli_note("%s", p[i].text);
    }
}

static int run(int argc, char **argv)
{
    const char *format_name = NULL;
    bool pages = false;
    const struct cli_option options[] = {
        {"long", 'l', CLI_FLAG, NULL, "a page per trace instead of a line when there are several", &pages},
        {"format", 0, CLI_STRING, "FORMAT", "table, json or csv", &format_name},
        {0},
    };
    int n, format;
    struct err e = {0};
    int code = cli_parse(&verb_info, options, argc, argv, &n);
    if (code >= 0)
        return code;
    struct experiment *x;
    if (cli_format_parse(format_name, &format, &e) || cli_need_traces((size_t)n, &e) ||
        index_experiment_open((const char *const *)argv + 1, (size_t)n, &(struct index_options){0}, &x, &e))
        return cli_fail(&e);
    const struct ctf_source *sources;
    size_t count = index_experiment_sources(x, &sources);
    struct trace_facts *facts = mem_zalloc(sizeof *facts * (count + 1));
    for (size_t i = 0; i < count; i++)
        gather(x, i, &facts[i]);
    count_all(facts, count);
    for (size_t i = 0; i < count; i++)
        find_missing_cpus(&facts[i]);
    struct text out = TEXT_TO(STDOUT_FILENO);
    cli_info_write(&out, facts, count, format, pages);
    note_unopened(x, facts, count);
    struct cli_reading reading = {0};
    for (size_t i = 0; i < count; i++) {
        reading.events += facts[i].events;
        for (size_t k = 0; k < facts[i].problems.n; k++) {
            reading.damaged |= !facts[i].problems.v[k].harmless;
            free((char *)facts[i].problems.v[k].text);
        }
        vec_free(&facts[i].problems);
        kernel_targets_fini(&facts[i].targets);
        free(facts[i].tracer);
        free(facts[i].streams);
    }
    free(facts);
    code = cli_finish_traces(x, &out, &reading);
    index_experiment_close(x);
    return code;
}

const struct cli_verb verb_info = {
    "info", "TRACE…", "hosts, clocks, streams, events and losses of traces", "weft info examples/three-tier", run};
