/* SPDX-License-Identifier: MIT */
#include "base/expr.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/expr_code.h"
#include "base/order.h"

static const struct expr_cell absent = {.type = EXPR_ABSENT};

static struct expr_cell of_int(__int128 i)
{
    return (struct expr_cell){.type = EXPR_INT, .i = i};
}

static struct expr_cell of_float(double f)
{
    return (struct expr_cell){.type = EXPR_FLOAT, .f = f};
}

static struct expr_cell of_value(const struct expr_value *v)
{
    switch (v->type) {
    case EXPR_INT: return of_int(v->is_unsigned ? (__int128)(uint64_t)v->i : (__int128)v->i);
    case EXPR_FLOAT: return of_float(v->f);
    case EXPR_STRING: return (struct expr_cell){.type = EXPR_STRING, .s = v->s ? v->s : "", .n = v->s ? v->n : 0};
    }
    return absent;
}

static bool truth(const struct expr_cell *c)
{
    switch (c->type) {
    case EXPR_INT: return c->i != 0;
    case EXPR_FLOAT: return c->f != 0;
    case EXPR_STRING: return c->n != 0;
    }
    return false;
}

static bool holds(int op, int order)
{
    switch (op) {
    case OP_EQ: return order == 0;
    case OP_NE: return order != 0;
    case OP_LT: return order < 0;
    case OP_LE: return order <= 0;
    case OP_GT: return order > 0;
    default: return order >= 0;
    }
}

static double as_float(const struct expr_cell *c)
{
    return c->type == EXPR_INT ? (double)c->i : c->f;
}

/* Compares an integer with a number that is not NaN, exactly; converting the integer to a double would round it. */
static int order_mixed(__int128 i, double f)
{
    if (f >= 0x1p127)
        return -1;
    if (f < -0x1p127)
        return 1;
    __int128 whole = (__int128)f;
    if (i != whole)
        return order_of(i, whole);
    double rest = f - (double)whole; /* whole came from a double: nothing is lost on the way back */
    return order_of(0, rest);
}

static int order_numbers(const struct expr_cell *a, const struct expr_cell *b)
{
    if (a->type == EXPR_INT && b->type == EXPR_INT)
        return order_of(a->i, b->i);
    if (a->type == EXPR_INT)
        return order_mixed(a->i, b->f);
    if (b->type == EXPR_INT)
        return -order_mixed(b->i, a->f);
    return order_of(a->f, b->f);
}

static bool compare(int op, const struct expr_cell *a, const struct expr_cell *b)
{
    if (a->type == EXPR_ABSENT || b->type == EXPR_ABSENT)
        return false;
    if (a->type == EXPR_STRING && b->type == EXPR_STRING) {
        int order = memcmp(a->s, b->s, a->n < b->n ? a->n : b->n);
        if (!order)
            order = order_of(a->n, b->n);
        return holds(op, order);
    }
    if (a->type == EXPR_STRING || b->type == EXPR_STRING)
        return op == OP_NE;
    if ((a->type == EXPR_FLOAT && isnan(a->f)) || (b->type == EXPR_FLOAT && isnan(b->f)))
        return op == OP_NE;
    return holds(op, order_numbers(a, b));
}

/* Exact while the result fits; otherwise the result is a floating number. */
static struct expr_cell integer_arithmetic(int op, __int128 a, __int128 b)
{
    __int128 r;
    switch (op) {
    case OP_BIT_OR: return of_int(a | b);
    case OP_BIT_AND: return of_int(a & b);
    case OP_ADD: return __builtin_add_overflow(a, b, &r) ? of_float((double)a + (double)b) : of_int(r);
    case OP_SUB: return __builtin_sub_overflow(a, b, &r) ? of_float((double)a - (double)b) : of_int(r);
    case OP_MUL: return __builtin_mul_overflow(a, b, &r) ? of_float((double)a * (double)b) : of_int(r);
    }
    if (b == 0)
        return absent;
    if (b == -1) /* quotient by -1 is the only one that can overflow */
        return op == OP_MOD ? of_int(0) : integer_arithmetic(OP_SUB, 0, a);
    return of_int(op == OP_DIV ? a / b : a % b);
}

static struct expr_cell arithmetic(int op, const struct expr_cell *a, const struct expr_cell *b)
{
    if (a->type == EXPR_INT && b->type == EXPR_INT)
        return integer_arithmetic(op, a->i, b->i);
    if ((a->type != EXPR_INT && a->type != EXPR_FLOAT) || (b->type != EXPR_INT && b->type != EXPR_FLOAT))
        return absent;
    double x = as_float(a), y = as_float(b);
    switch (op) {
    case OP_ADD: return of_float(x + y);
    case OP_SUB: return of_float(x - y);
    case OP_MUL: return of_float(x * y);
    case OP_DIV: return y == 0 ? absent : of_float(x / y);
    case OP_MOD: return y == 0 ? absent : of_float(fmod(x, y));
    }
    return absent; /* bit operations on floating numbers */
}

/* Returns 1, 0, or -1: given up. */
static int matches(const struct regex *pattern, const struct expr_cell *c)
{
    char number[64];
    const char *s = c->s;
    size_t n = c->n;
    if (c->type == EXPR_INT) {
        bool fits = c->i >= INT64_MIN && c->i <= (__int128)UINT64_MAX;
        int length = !fits ? snprintf(number, sizeof number, "%.17g", (double)c->i)
            : c->i < 0     ? snprintf(number, sizeof number, "%lld", (long long)c->i)
                           : snprintf(number, sizeof number, "%llu", (unsigned long long)c->i);
        s = number;
        n = (size_t)length;
    } else if (c->type == EXPR_FLOAT) {
        n = (size_t)snprintf(number, sizeof number, "%.15g", c->f);
        s = number;
    }
    return regex_finds(pattern, s, n);
}

/* Texts are compared without regard to case, and are neither less nor greater than anything. */
static bool value_fits(const struct expr_test *t, const char *value)
{
    switch (t->op) {
    case OP_PRESENT: return true;
    case OP_CONTAINS: return strcasestr(value, t->text) != NULL;
    case OP_MATCH: return regex_finds(t->pattern, value, strlen(value)) == 1;
    }
    struct expr_cell a = of_float(isnan(t->number) ? NAN : expr_number(value)), b = of_float(t->number);
    if (!isnan(a.f))
        return compare(t->op, &a, &b);
    return (t->op == OP_EQ || t->op == OP_NE) && holds(t->op, strcasecmp(value, t->text));
}

static bool some_fits(const struct expr_test *t, expr_next *next, void *arg)
{
    const char *value;
    for (size_t at = 0; (value = next(arg, t->slot, &at));)
        if (value_fits(t, value))
            return true;
    return false;
}

/* Calls either `get` or `next`, depending on which compiler made the program. */
static bool run(const struct expr *x, expr_get *get, expr_next *next, void *arg)
{
    struct expr_cell stack[EXPR_STACK + 1], *top = stack; /* cell 0 stays empty; the compiler has counted the others */
    for (size_t pc = 0; pc < x->code.n; pc++) {
        const struct expr_instruction in = x->code.v[pc];
        switch (in.op) {
        case OP_CONSTANT: *++top = x->constants.v[in.arg]; break;
        case OP_LOAD: {
            struct expr_value v = {.type = EXPR_ABSENT};
            get(arg, in.arg, &v);
            *++top = of_value(&v);
            break;
        }
        case OP_SOME: *++top = of_int(some_fits(&x->tests.v[in.arg], next, arg)); break;
        case OP_OR:
        case OP_AND:
            if (truth(top) == (in.op == OP_OR)) {
                *top = of_int(in.op == OP_OR);
                pc = in.arg - (size_t)1;
            } else {
                top--;
            }
            break;
        case OP_TRUTH: *top = of_int(truth(top)); break;
        case OP_NOT: *top = of_int(!truth(top)); break;
        case OP_NEGATE: {
            struct expr_cell zero = of_int(0);
            *top = top->type == EXPR_FLOAT ? of_float(-top->f) : arithmetic(OP_SUB, &zero, top);
            break;
        }
        case OP_MATCH:
        case OP_NO_MATCH:
            *top = of_int(top->type != EXPR_ABSENT && matches(x->patterns.v[in.arg], top) == (in.op == OP_MATCH));
            break;
        case OP_EQ:
        case OP_NE:
        case OP_LT:
        case OP_LE:
        case OP_GT:
        case OP_GE:
            top--;
            *top = of_int(compare(in.op, top, top + 1));
            break;
        default: top--; *top = arithmetic(in.op, top, top + 1);
        }
    }
    return truth(top);
}

bool expr_eval(const struct expr *x, expr_get *get, void *arg)
{
    return run(x, get, NULL, arg);
}

bool expr_eval_filter(const struct expr *x, expr_next *next, void *arg)
{
    return run(x, NULL, next, arg);
}
