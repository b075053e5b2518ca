#include "cli/traces.h"

#include <stdlib.h>
#include <string.h>

#include "base/progress.h"
#include "base/time.h"
#include "cli/cli.h"

enum { MAX_NOTES = 20 };

/* Losses and clocks are part of what the verbs show. */
static void note_problems(const struct experiment *x)
{
    const struct index_note *notes;
    size_t n = experiment_notes(x, &notes), shown = 0;
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
    rc = experiment_open((const char *const *)args, n, o, x, e);
    progress_free(o->progress);
    o->progress = NULL;
    if (!rc)
        note_problems(*x);
    return rc;
}

int cli_finish_traces(const struct experiment *x, struct text *out, const struct cli_reading *reading)
{
    struct err e = {0};
    if (experiment_intact(x, &e)) {
        text_fini(out);
        return cli_fail(&e);
    }
    bool partial = experiment_partial(x) || (reading && reading->damaged);
    int code = cli_finish(out, partial ? CLI_PARTIAL : CLI_OK);
    if (code == CLI_PARTIAL && !(reading ? reading->events : experiment_stored_events(x))) {
        err_set(&e, ERR_FORMAT, "no event could be read; without --quiet notes say why");
        return cli_fail(&e);
    }
    return code;
}

int cli_parse_window(const char *from, const char *to, int64_t start, int64_t *begin, int64_t *end, struct err *e)
{
    int rc = from ? time_parse(from, start, begin, e) : 0;
    if (!rc && to)
        rc = time_parse(to, start, end, e);
    if (!rc && *begin > *end)
        rc = err_set(e, ERR_ARG, "--begin lies after --end");
    return rc;
}

int cli_drift_prior(const char *s, struct clock_options *o, struct err *e)
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
