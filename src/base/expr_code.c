/* SPDX-License-Identifier: MIT */
/* Programs of expressions: functions shared by both compilers. */
#include "base/expr_code.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

size_t expr_emit(struct expr *x, int op, size_t arg)
{
    vec_push(&x->code, ((struct expr_instruction){(uint16_t)op, (uint16_t)arg}));
    return x->code.n - 1;
}

void expr_land(struct expr *x, size_t jump)
{
    x->code.v[jump].arg = (uint16_t)x->code.n;
}

size_t expr_slot(struct expr *x, const char *name, size_t n)
{
    size_t slot = 0;
    while (slot < x->names.n && (strncmp(x->names.v[slot], name, n) != 0 || x->names.v[slot][n]))
        slot++;
    if (slot == x->names.n)
        vec_push(&x->names, arena_strndup(&x->arena, name, n));
    return slot;
}

int expr_add_pattern(struct expr *x, const char *pattern, struct err *e)
{
    struct regex *r;
    int code = regex_compile(pattern, &r, e);
    if (code == ERR_OK)
        vec_push(&x->patterns, r);
    return code;
}

const struct expr_unit expr_units[EXPR_UNITS] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}};

double expr_number(const char *text)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text)
        return NAN;
    while (*end == ' ')
        end++;
    for (size_t i = 0; i < EXPR_UNITS; i++)
        if (!strcmp(end, expr_units[i].name))
            return v * expr_units[i].scale;
    return NAN;
}

static bool comparison_at(const struct expr *x, size_t at, struct expr_comparison *out)
{
    if (at + 2 >= x->code.n)
        return false;
    const struct expr_instruction *a = &x->code.v[at], *b = a + 1, *op = a + 2;
    const struct expr_instruction *load = a->op == OP_LOAD ? a : b, *constant = a->op == OP_LOAD ? b : a;
    if (load->op != OP_LOAD || constant->op != OP_CONSTANT || op->op < OP_EQ || op->op > OP_GE)
        return false;
    const struct expr_cell *c = &x->constants.v[constant->arg];
    *out = (struct expr_comparison){.slot = load->arg, .equality = op->op == OP_EQ || op->op == OP_NE};
    out->constant.type = c->type;
    if (c->type == EXPR_STRING) {
        out->constant.s = c->s;
        out->constant.n = c->n;
    } else if (c->type == EXPR_INT) {
        out->constant.i = (int64_t)c->i;
        out->constant.is_unsigned = c->i > INT64_MAX;
    } else {
        out->constant.f = c->f;
    }
    return true;
}

bool expr_comparison(const struct expr *x, size_t i, struct expr_comparison *out)
{
    for (size_t at = 0; at < x->code.n; at++)
        if (comparison_at(x, at, out) && i-- == 0)
            return true;
    return false;
}

size_t expr_names(const struct expr *x, const char *const **out)
{
    *out = x->names.v;
    return x->names.n;
}

void expr_free(struct expr *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->patterns.n; i++)
        regex_free(x->patterns.v[i]);
    vec_free(&x->patterns);
    vec_free(&x->names);
    vec_free(&x->constants);
    vec_free(&x->tests);
    vec_free(&x->code);
    arena_fini(&x->arena);
    free(x);
}
