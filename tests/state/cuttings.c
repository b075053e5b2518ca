/* SPDX-License-Identifier: MIT */
#include "cuttings.h"

#include <stdio.h>
#include <string.h>

#include "runs.h"

int cuttings_rounds(int usual)
{
    const char *set = getenv("WEFT_CUTS");
    return set ? atoi(set) : usual;
}

void cuttings_compare(const struct cuts_trace *t, const char *name, void *cuttings)
{
    static uint64_t serial;
    const struct cuttings *c = cuttings;
    const char *only = getenv("WEFT_ONLY");
    struct run one, many;
    int64_t at[CUTTINGS_MOST_CUTS];
    if (!t->times.n || (only && !strstr(name, only)))
        return;
    run_build(&one, t, NULL, 0);
    struct err e = {0};
    struct state_store *a;
    assert_int_equal(state_open(one.paths[0], &a, &e), 0);
    for (int i = 0; i < c->rounds; i++) {
        char where[256];
        uint64_t d = c->seed * 1000 + serial++;
        snprintf(where, sizeof where, "%s cutting %d", name, i);
        size_t n = cuts_random(t, d, runs_dice(&d, CUTTINGS_MOST_CUTS + 1), at);
        run_build(&many, t, at, n);
        struct state_store *b = run_open(&many, SIZE_MAX);
        c->same(&(struct pair){.a = a, .b = b, .where = where, .dice = &d});
        state_close(b);
        run_free(&many);
    }
    state_close(a);
    run_free(&one);
}

void cuttings_compare_made(struct cuttings *c, const char *what, uint64_t number, struct maker *m)
{
    struct cuts_trace t;
    char name[32];
    cuts_open_made(&t, m);
    maker_free(m);
    snprintf(name, sizeof name, "%s %d", what, (int)number);
    cuttings_compare(&t, name, c);
    cuts_close(&t);
}
