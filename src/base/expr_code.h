/* SPDX-License-Identifier: MIT */
/* Private to base: the programs that the compilers of expressions (expr.c, expr_filter.c) hand to their evaluator
 * (expr_eval.c). */
#ifndef WEFT_BASE_EXPR_CODE_H
#define WEFT_BASE_EXPR_CODE_H

#include "base/arena.h"
#include "base/expr.h"
#include "base/mem.h"
#include "base/regex.h"

/* Stack machine. `arg` of CONSTANT, LOAD, MATCH, SOME: position in constants, names, patterns, tests; of jumps: the
 * target instruction. */
enum expr_op {
    OP_CONSTANT, OP_LOAD, OP_SOME,
    OP_OR, OP_AND,       /* if the top decides: leave it as 1 (0) and jump; otherwise drop it and go on */
    OP_TRUTH, OP_NOT,    /* the top becomes 0 or 1 */
    OP_NEGATE, OP_MATCH, OP_NO_MATCH,
    OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE,
    OP_BIT_OR, OP_BIT_AND, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD,
    OP_CONTAINS, OP_PRESENT, /* tests only */
};
enum { EXPR_STACK = 64 };

struct expr_instruction { uint16_t op, arg; };
/* Wide enough that signed and unsigned 64-bit values mix without surprises. */
struct expr_cell { int type; union { __int128 i; double f; struct { const char *s; size_t n; }; }; };
/* Test: does any value of a name match? */
struct expr_test {
    size_t slot;             /* slot, or EXPR_ANY_NAME */
    int op;                  /* a comparison, MATCH, CONTAINS, PRESENT */
    const char *text;        /* operand */
    double number;           /* operand as a number; NaN: it is not one */
    const struct regex *pattern;
};

struct expr {
    struct arena arena;      /* memory of the texts */
    VEC(struct expr_instruction) code;
    VEC(struct expr_cell) constants;
    VEC(const char *) names;
    VEC(struct regex *) patterns;
    VEC(struct expr_test) tests;
};

size_t expr_emit(struct expr *, int op, size_t arg); /* returns the instruction's number */
void expr_land(struct expr *, size_t jump);          /* lets the jump go to the next instruction */
size_t expr_slot(struct expr *, const char *name, size_t n);
int expr_add_pattern(struct expr *, const char *pattern, struct err *); /* adds it as the last pattern */
/* "10ms" in ns, "3" as it is; NaN when it is no number. `text` may have blanks before the unit. */
double expr_number(const char *text);
/* Units of time, the first without a name; scale: ns. */
struct expr_unit { const char *name; double scale; };
enum { EXPR_UNITS = 6 };
extern const struct expr_unit expr_units[EXPR_UNITS];

#endif
