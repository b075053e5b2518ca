/* SPDX-License-Identifier: MIT */
/* False and true claims: at most 1 of 20 runs claims something where nothing is, whatever the durations' distribution,
 * and with jobs that depend on the one before. Planted effects are found. WEFT_CLAIM_RUNS: number of runs of each (else
 * some dozens). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "../base/test.h"
#include "base/mem.h"
#include "span/analysis.h"

enum { STAGES = 4, JOBS_MOST = 400 };
static const char *const stages[STAGES] = {"init", "fetch", "main", "store"};

static double draw(uint64_t *seed)
{
    return (test_random(seed, 1u << 30) + 0.5) / (1u << 30);
}

static double draw_normal(uint64_t *seed)
{
    return sqrt(-2 * log(draw(seed))) * cos(2 * M_PI * draw(seed));
}

/* ---- durations, in seconds ---- */

static double normal(uint64_t *seed)
{
    return fmax(60 + 8 * draw_normal(seed), 1);
}
static double lognormal(uint64_t *seed)
{
    return 60 * exp(0.4 * draw_normal(seed));
}
static double exponential(uint64_t *seed)
{
    return -60 * log(draw(seed));
}
static double pareto(uint64_t *seed)
{
    return 10 * pow(draw(seed), -1 / 1.5);
}
static double log_t(uint64_t *seed)
{
    double square = 0;
    for (int i = 0; i < 3; i++)
        square += pow(draw_normal(seed), 2);
    return 60 * exp(fmax(-12, fmin(12, 0.3 * draw_normal(seed) / sqrt(square / 3))));
}

static const struct {
    const char *name;
    double (*draw)(uint64_t *);
} kinds[] = {
    {"normal", normal}, {"lognormal", lognormal}, {"exponential", exponential}, {"Pareto", pareto}, {"log-t", log_t}};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* ---- jobs ---- */

struct jobs {
    double s[JOBS_MOST][STAGES];
    const char *site[JOBS_MOST];
    size_t n;
};

static void put_number(uint8_t *id, size_t bytes, uint64_t number)
{
    memset(id, 0, bytes);
    for (size_t i = 0; i < 8; i++)
        id[bytes - 1 - i] = (uint8_t)(number >> 8 * i);
}

/* Makes jobs, one a minute, or as soon as the one before has ended. */
static struct spans *make(const struct jobs *j)
{
    static const struct span_origin origin = {
        .service = "pilot", .resource_schema = "", .scope = "", .scope_version = "", .scope_schema = ""};
    struct spans_choice choice = {.all_keys = true};
    struct spans *s = spans_new(&choice);
    int64_t at = INT64_C(1800000000) * 1000000000;
    for (size_t i = 0; i < j->n; i++) {
        struct span_attribute site = {.key = "site", .value = {.type = SPAN_STRING}};
        struct span job = {.name = "job", .status_message = "", .state = "", .life = SPAN_ENDED, .origin = &origin};
        site.value.text.v = j->site[i] ? j->site[i] : "";
        site.value.text.n = strlen(site.value.text.v);
        put_number(job.trace_id, sizeof job.trace_id, i + 1);
        put_number(job.id, sizeof job.id, 100);
        job.begin_ns = job.end_ns = at;
        for (size_t k = 0; k < STAGES; k++) {
            struct span stage = job;
            stage.name = stages[k];
            put_number(stage.id, sizeof stage.id, k + 1);
            memcpy(stage.parent_id, job.id, sizeof job.id);
            stage.begin_ns = job.end_ns;
            stage.end_ns = job.end_ns = stage.begin_ns + (int64_t)(j->s[i][k] * 1e9);
            spans_add(s, &stage);
        }
        if (j->site[i])
            job.attributes = (struct span_attributes){&site, 1};
        spans_add(s, &job);
        at = job.end_ns + 1000000000;
    }
    spans_settle(s);
    return s;
}

static void draw_jobs(struct jobs *j, size_t n, double (*of)(uint64_t *), uint64_t *seed)
{
    *j = (struct jobs){.n = n};
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < STAGES; k++)
            j->s[i][k] = of(seed);
}

static int runs_of(int usual)
{
    const char *given = getenv("WEFT_CLAIM_RUNS");
    return given ? atoi(given) : usual;
}

/* Checks the number of claims: those of 1 of 20 runs, and three standard deviations more. */
static void check_rate(const char *what, const char *of, size_t n, int claimed, int runs)
{
    print_message("%s, %s, %zu jobs: claimed in %d of %d\n", what, of, n, claimed, runs);
    assert_true(claimed <= 0.05 * runs + 3 * sqrt(runs * 0.05 * 0.95));
}

/* ---- no effect ---- */

static void test_outliers_of_nothing(void **state)
{
    uint64_t seed = test_seed(41);
    static const size_t sizes[] = {8, 20, 60, 200};
    static struct jobs j;
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t size = 0; size < 4; size++) {
            int claimed = 0, runs = runs_of(40);
            for (int run = 0; run < runs; run++) {
                draw_jobs(&j, sizes[size], kinds[kind].draw, &seed);
                struct spans *s = make(&j);
                struct spans_outliers *o = spans_outliers(s, NULL);
                claimed += o->n > 0;
                spans_outliers_free(o);
                spans_free(s);
            }
            check_rate("outliers", kinds[kind].name, sizes[size], claimed, runs);
        }
}

static void test_changes_of_nothing(void **state)
{
    uint64_t seed = test_seed(43);
    static const double depends[] = {0, 0.3, 0.6, 0.8, 0.9};
    static const size_t sizes[] = {30, 80, 200};
    static struct jobs j;
    for (size_t d = 0; d < 5; d++)
        for (size_t size = 0; size < 3; size++) {
            char what[32];
            int claimed = 0, runs = runs_of(40);
            for (int run = 0; run < runs; run++) {
                j = (struct jobs){.n = sizes[size]};
                for (size_t k = 0; k < STAGES; k++) {
                    double x = draw_normal(&seed);
                    for (size_t i = 0; i < j.n; i++) {
                        x = depends[d] * x + sqrt(1 - depends[d] * depends[d]) * draw_normal(&seed);
                        j.s[i][k] = 60 * exp(0.3 * x);
                    }
                }
                struct spans *s = make(&j);
                struct spans_changes *c = spans_changes(s);
                claimed += c->n > 0;
                spans_changes_free(c);
                spans_free(s);
            }
            snprintf(what, sizeof what, "correlation %.1f", depends[d]);
            check_rate("changes", what, sizes[size], claimed, runs);
        }
}

static void test_sites_of_nothing(void **state)
{
    uint64_t seed = test_seed(47);
    static const char *const sites[] = {"north", "south", "east", "west", "centre"};
    static struct jobs j;
    for (size_t kind = 0; kind < KINDS; kind++)
        for (size_t n = 50; n <= 100; n += 50) {
            int claimed = 0, runs = runs_of(50);
            for (int run = 0; run < runs; run++) {
                draw_jobs(&j, n, kinds[kind].draw, &seed);
                for (size_t i = 0; i < n; i++)
                    j.site[i] = sites[test_random(&seed, run % 2 ? 2 : 5)];
                struct spans *s = make(&j);
                struct spans_factors *f = spans_factors(s);
                claimed += f->n > 0;
                spans_factors_free(f);
                spans_free(s);
            }
            check_rate("sites", kinds[kind].name, n, claimed, runs);
        }
}

/* ---- something is there ---- */

/* Checks a site of two that takes `times` as long in a stage, or in all. */
static void test_slow_site(void **state)
{
    uint64_t seed = test_seed(53);
    static struct jobs j;
    for (size_t kind = 0; kind < KINDS; kind++)
        for (double times = 2; times <= 10; times *= 5) {
            int found = 0, runs = runs_of(10);
            bool wide = kinds[kind].draw == exponential || kinds[kind].draw == pareto;
            size_t n = wide && times < 3 ? 120 : 50; /* a spread of so much hides a factor of two from anybody */
            for (int run = 0; run < runs; run++) {
                draw_jobs(&j, n, kinds[kind].draw, &seed);
                for (size_t i = 0; i < n; i++) {
                    j.site[i] = i % 2 ? "slow" : "quick";
                    for (size_t k = 0; i % 2 && k < STAGES; k++)
                        j.s[i][k] *= times;
                }
                struct spans *s = make(&j);
                struct spans_factors *f = spans_factors(s);
                found += f->n == 1 && !strcmp(spans_text(s, f->v[0].value), "slow") &&
                    !strcmp(spans_text(s, f->v[0].key), "site") && f->v[0].n == n / 2 && f->v[0].p <= 0.05;
                spans_factors_free(f);
                spans_free(s);
            }
            print_message("slow site, %s, x%g, %zu jobs: found in %d of %d\n", kinds[kind].name, times, n, found, runs);
            assert_true(found >= runs * 9 / 10);
        }
}

static void test_outliers_are_found(void **state)
{
    uint64_t seed = test_seed(59);
    static struct jobs j;
    int found = 0, runs = runs_of(20);
    for (int run = 0; run < runs; run++) {
        draw_jobs(&j, 150, lognormal, &seed);
        for (size_t i = 0; i < j.n; i++)
            for (size_t k = 0; k < STAGES; k++)
                j.s[i][k] = 60 * pow(j.s[i][k] / 60, 0.25); /* range within a factor of 1.3 */
        j.s[20][2] *= 30;
        j.s[90][2] *= 40;
        j.s[70][1] /= 100;
        struct spans *s = make(&j);
        struct spans_outliers *o = spans_outliers(s, NULL);
        size_t slow = 0, fast = 0;
        for (size_t i = 0; i < o->n; i++) {
            slow += o->v[i].what == SPANS_SLOW && !strcmp(spans_text(s, o->v[i].name), "main");
            fast += o->v[i].what == SPANS_FAST && !strcmp(spans_text(s, o->v[i].name), "fetch");
        }
        found += slow == 2 && fast == 1;
        spans_outliers_free(o);
        spans_free(s);
    }
    print_message("outliers: found in %d of %d\n", found, runs);
    assert_true(found >= runs * 9 / 10);
}

/* A step by half, of independent jobs also down again. */
static void test_changes_are_found(void **state)
{
    uint64_t seed = test_seed(61);
    static struct jobs j;
    for (double depends = 0; depends < 0.6; depends += 0.5) {
        int found = 0, runs = runs_of(20);
        for (int run = 0; run < runs; run++) {
            double x = 0;
            draw_jobs(&j, 300, normal, &seed);
            for (size_t i = 0; i < j.n; i++) {
                x = depends * x + sqrt(1 - depends * depends) * draw_normal(&seed);
                j.s[i][2] = 60 * exp(0.1 * x + (i >= 100 && (i < 200 || depends > 0) ? log(1.5) : 0));
            }
            struct spans *s = make(&j);
            struct spans_changes *c = spans_changes(s);
            size_t main = 0;
            for (size_t i = 0; i < c->n; i++)
                main += !strcmp(spans_text(s, c->v[i].name), "main");
            found += main == (depends > 0 ? 1 : 2);
            spans_changes_free(c);
            spans_free(s);
        }
        print_message("changes, correlation %.1f: found in %d of %d\n", depends, found, runs);
        assert_true(found >= runs * 8 / 10);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outliers_of_nothing),
        cmocka_unit_test(test_changes_of_nothing),
        cmocka_unit_test(test_sites_of_nothing),
        cmocka_unit_test(test_slow_site),
        cmocka_unit_test(test_outliers_are_found),
        cmocka_unit_test(test_changes_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
