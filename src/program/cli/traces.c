/* SPDX-License-Identifier: MIT */
#include "cli/traces.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/progress.h"
#include "base/time.h"
#include "cli/cli.h"

enum { MAX_NOTES = 20 };

/* Losses and clocks are part of what the verbs show. */
static void note_problems(const struct experiment *x)
{
    const struct index_note *notes;
    size_t n = index_experiment_notes(x, &notes), shown = 0;
    for (size_t i = 0; i < n; i++) {
        if (notes[i].kind == INDEX_NOTE_LOST || notes[i].kind == INDEX_NOTE_CLOCK || shown++ >= MAX_NOTES)
            continue;
        if (notes[i].count > 1)
            cli_note("%s (%llu times)", notes[i].text, (unsigned long long)notes[i].count);
        else
            cli_note("%s", notes[i].text);
    }
    if (shown > MAX_NOTES)
        cli_note("%zu more notes like these", shown - MAX_NOTES);
}

int cli_need_traces(size_t n, struct err *e)
{
    return n ? 0 : err_set(e, ERR_ARG, "no trace given; name a directory that holds one, or try --help");
}

int cli_open_traces(char **args, size_t n, struct index_options *o, struct experiment **x, struct err *e)
{
    int rc = cli_need_traces(n, e);
    if (rc)
        return rc;
    o->progress = progress_new(o->stores ? "indexing" : "reading");
    rc = index_experiment_open((const char *const *)args, n, o, x, e);
    progress_free(o->progress);
    o->progress = NULL;
    if (!rc)
        note_problems(*x);
    return rc;
}

/* Returns whether events are known to be in missing files. */
static bool lacks_files(const struct experiment *x)
{
    const struct ctf_source *sources;
    const struct ctf_absent *absent;
    bool lacks = false;
    for (size_t i = 0, n = index_experiment_sources(x, &sources); i < n; i++)
        lacks |= ctf_trace_absent(sources[i].trace, &absent) > 0;
    return lacks;
}

int cli_finish_traces(const struct experiment *x, struct text *out, const struct cli_reading *reading)
{
    struct err e = {0};
    if (index_experiment_intact(x, &e)) {
        text_fini(out);
        return cli_fail(&e);
    }
    bool partial = index_experiment_partial(x) || (reading && reading->damaged);
    int code = cli_finish(out, partial ? CLI_PARTIAL : CLI_OK);
    if (code == CLI_PARTIAL && !lacks_files(x) && !(reading ? reading->events : index_experiment_stored_events(x))) {
        err_set(&e, ERR_FORMAT, "no event could be read; without --quiet notes say why");
        return cli_fail(&e);
    }
    return code;
}

/* "1795225268", which is 1.8 s after the epoch, was meant as seconds. */
static bool means_seconds(const char *s, const struct cli_span *span)
{
    int64_t as_is, seconds;
    char text[16];
    size_t n = strspn(s, "0123456789");
    if (!n || s[n] || n > 10)
        return false;
    snprintf(text, sizeof text, "%s.9", s);
    return !time_parse(s, 0, &as_is, NULL) && !time_parse(text, 0, &seconds, NULL) && as_is < span->first &&
        seconds >= span->first && seconds - 999999999 <= span->last;
}

static void note_window(const char *option, const char *s, bool beyond, const struct cli_span *span)
{
    struct text t = {.fd = -1};
    if (s && means_seconds(s, span)) {
        text_printf(&t, "--%s %s is in ns, since the epoch; for seconds write %s.0", option, s, s);
    } else if (s && beyond) {
        bool is_begin = !strcmp(option, "begin");
        text_printf(&t, "--%s %s: nothing lies %s it; the traces %s at [", option, s, is_begin ? "behind" : "before",
            is_begin ? "end" : "begin");
        time_write_seconds(&t, is_begin ? span->last : span->first);
        text_putc(&t, ']');
    }
    if (t.n)
        cli_note("%s", text_cstr(&t));
    text_fini(&t);
}

int cli_parse_duration(const char *option, const char *s, int64_t *ns, struct err *e)
{
    char with_sign[64] = "+";
    if (!s)
        return 0;
    strncat(with_sign, s, sizeof with_sign - 2);
    if (strspn(s, "0123456789.") == 0 || time_parse(with_sign, 0, ns, e) || *ns <= 0)
        return err_set(e, ERR_ARG, "--%s %s: give a time such as 500ms or 30s", option, s);
    return 0;
}

int cli_parse_window(
    const char *from, const char *to, const struct cli_span *span, int64_t *begin, int64_t *end, struct err *e)
{
    if (from && time_parse(from, span->first, begin, e))
        return err_wrap(e, "--begin");
    if (to && time_parse(to, span->first, end, e))
        return err_wrap(e, "--end");
    if (*begin > *end)
        return err_set(e, ERR_ARG, "--begin lies after --end");
    if (span->first <= span->last) {
        note_window("begin", from, *begin > span->last, span);
        note_window("end", to, *end < span->first, span);
    }
    return 0;
}

void cli_hosts_add(struct cli_hosts *h, const char *name, int64_t begin, int64_t end)
{
    vec_push(h, name);
    h->span.first = begin < h->span.first ? begin : h->span.first;
    h->span.last = end > h->span.last ? end : h->span.last;
}

int cli_hosts_check(const struct cli_hosts *h, const char *option, const char *wanted, struct err *e)
{
    struct text names = {.fd = -1};
    int rc = ERR_ARG;
    for (size_t i = 0; i < h->n && rc; i++) {
        rc = strcmp(h->v[i], wanted) != 0 ? ERR_ARG : 0;
        text_printf(&names, "%s%s", names.n ? ", " : "", h->v[i]);
    }
    if (rc)
        err_set(e, rc, "%s %s: no such host; there are %s", option, wanted, text_cstr(&names));
    text_fini(&names);
    return rc;
}

void cli_hosts_fini(struct cli_hosts *h)
{
    vec_free(h);
}

/* A number of ppm, or "none"; NULL leaves the default. */
static int parse_prior(const char *s, struct clock_options *o, struct err *e)
{
    if (!s)
        return 0;
    if (!strcmp(s, "none")) {
        o->drift_prior_ppm = -1;
        return 0;
    }
    char *end;
    double v = strtod(s, &end);
    if (end == s || *end || !(v >= 0) || v > 400000)
        return err_set(e, ERR_ARG, "--drift-prior %s: give parts per million, such as 200, or none", s);
    o->drift_prior_ppm = v;
    return 0;
}

int cli_clocks_parse(struct cli_clocks *c, struct err *e)
{
    struct clock_trust *trust = arena_new(&c->arena, struct clock_trust, c->trust.n + 1);
    c->options = clock_defaults();
    c->options.reference = c->reference;
    c->options.no_messages = c->no_sync;
    c->options.trust = trust;
    c->options.n_trust = c->trust.n;
    int rc = parse_prior(c->prior, &c->options, e);
    for (size_t i = 0; !rc && i < c->trust.n; i++)
        rc = clock_trust_parse(&c->arena, c->trust.v[i], &trust[i], e);
    return rc;
}

void cli_clocks_fini(struct cli_clocks *c)
{
    free(c->trust.v);
    arena_fini(&c->arena);
}

bool cli_clocks_apart(const struct cli_clocks *c)
{
    return c->no_sync && !c->trust.n;
}

int cli_sync(struct experiment *x, const struct cli_clocks *c, const struct clock_net **net, struct err *e)
{
    const struct clock_conflict *conflicts;
    int rc = index_experiment_sync(x, &c->options, net, e);
    size_t n = rc ? 0 : clock_net_conflicts(*net, &conflicts);
    for (size_t i = 0; i < n && i < MAX_NOTES; i++) {
        struct text t = {.fd = -1};
        clock_conflict_words(*net, &conflicts[i], &t);
        cli_note("%s", text_cstr(&t));
        text_fini(&t);
    }
    if (n > MAX_NOTES)
        cli_note("%zu more contradictions", n - MAX_NOTES);
    return rc;
}

int cli_relate(struct experiment *x, const struct cli_clocks *c, const struct clock_net **net, struct err *e)
{
    *net = NULL;
    int rc = cli_clocks_apart(c) ? 0 : cli_sync(x, c, net, e);
    return rc || !*net || !c->reference ? rc : clock_net_relates(*net, SIZE_MAX, e);
}
