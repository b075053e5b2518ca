/* SPDX-License-Identifier: MIT */
/* Expressions and filters: the input is the source; its names get values of every kind. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/expr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void get(void *arg, size_t slot, struct expr_value *out)
{
    static const char long_text[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa/dev/sd\xff\n 17";
    static const struct expr_value values[] = {
        {.type = EXPR_INT, .i = INT64_MIN},
        {.type = EXPR_STRING, .s = "sched_switch", .n = 5},
        {.type = EXPR_ABSENT},
        {.type = EXPR_INT, .i = -1, .is_unsigned = true},
        {.type = EXPR_FLOAT, .f = -1.5e300},
        {.type = EXPR_STRING},
        {.type = EXPR_STRING, .s = long_text, .n = sizeof long_text - 1},
        {.type = EXPR_FLOAT, .f = NAN},
        {.type = EXPR_INT},
    };
    *out = values[(slot + *(size_t *)arg) % (sizeof values / sizeof *values)];
}

static const char *next(void *arg, size_t slot, size_t *at)
{
    static const char *const values[] = {"sched_switch", "12000000", "10 ms", "", "-1.5e300", "nan"};
    return *at < sizeof values / sizeof *values ? values[(*at)++] : NULL;
}

static void filter(const char *source)
{
    struct expr *x = expr_compile_filter(source);
    expr_eval_filter(x, next, NULL);
    expr_free(x);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *source = malloc(n + 1);
    if (!source)
        return 0;
    memcpy(source, data, n);
    source[n] = '\0';
    filter(source);
    struct expr *x;
    struct err e = {0};
    if (expr_compile(source, &x, &e) == ERR_OK) {
        for (size_t shift = 0; shift < 9; shift++)
            expr_eval(x, get, &shift);
        const char *const *names;
        for (size_t i = expr_names(x, &names); i-- > 0;)
            if (!*names[i])
                abort();
        expr_free(x);
    } else if (!e.text[0] || !e.code) {
        abort(); /* every refusal says why */
    }
    free(source);
    return 0;
}
