/* Private to base: what the compiler of expressions (expr.c) hands to their evaluator (expr_eval.c). */
#ifndef WEFT_BASE_EXPR_CODE_H
#define WEFT_BASE_EXPR_CODE_H

#include "base/arena.h"
#include "base/expr.h"
#include "base/regex.h"

/* A stack machine. `arg` of CONSTANT, LOAD, MATCH: position in constants, names, patterns; of the jumps: the
 * instruction to go on with. */
enum expr_op {
    OP_CONSTANT, OP_LOAD,
    OP_OR, OP_AND,       /* the top decides: leave it as 1 (0) and jump, or drop it and go on */
    OP_TRUTH, OP_NOT,    /* the top becomes 0 or 1 */
    OP_NEGATE, OP_MATCH, OP_NO_MATCH,
    OP_EQ, OP_NE, OP_LT, OP_LE, OP_GT, OP_GE,
    OP_BIT_OR, OP_BIT_AND, OP_ADD, OP_SUB, OP_MUL, OP_DIV, OP_MOD,
};
enum { EXPR_STACK = 64 };

struct expr_instruction { uint16_t op, arg; };
/* Wide enough that signed and unsigned 64-bit values mix without surprises. */
struct expr_cell { int type; union { __int128 i; double f; struct { const char *s; size_t n; }; }; };

struct expr {
    struct arena arena;
    struct expr_instruction *code;
    size_t n_code, cap_code;
    struct expr_cell *constants;
    size_t n_constants, cap_constants;
    const char **names;
    size_t n_names, cap_names;
    struct regex **patterns;
    size_t n_patterns, cap_patterns;
};

#endif
