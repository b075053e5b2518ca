/* SPDX-License-Identifier: MIT */
#include "base/expr.h"

#include <stdlib.h>
#include <string.h>

#include "base/expr_code.h"
#include "base/mem.h"
#include "base/text.h"

enum { LONGEST_SOURCE = 4096, DEEPEST = 64 };

/* Operator-precedence parser that emits the stack program while reading. */
struct parser {
    const char *source, *at;
    struct expr *x;
    struct err *e;
    unsigned depth; /* open parentheses and signs */
    unsigned stack; /* cells on the evaluator's stack at this point */
};

enum precedence { P_OR = 1, P_AND, P_COMPARE, P_BIT_OR, P_BIT_AND, P_ADD, P_MUL };
static const struct operator
{
    char text[3];
    uint8_t precedence, op;
}
operators[] = {
    {"||", P_OR, OP_OR},
    {"&&", P_AND, OP_AND},
    {"==", P_COMPARE, OP_EQ},
    {"!=", P_COMPARE, OP_NE},
    {"=~", P_COMPARE, OP_MATCH},
    {"!~", P_COMPARE, OP_NO_MATCH},
    {"<=", P_COMPARE, OP_LE},
    {">=", P_COMPARE, OP_GE},
    {"<", P_COMPARE, OP_LT},
    {">", P_COMPARE, OP_GT},
    {"|", P_BIT_OR, OP_BIT_OR},
    {"&", P_BIT_AND, OP_BIT_AND},
    {"+", P_ADD, OP_ADD},
    {"-", P_ADD, OP_SUB},
    {"*", P_MUL, OP_MUL},
    {"/", P_MUL, OP_DIV},
    {"%", P_MUL, OP_MOD},
};

static int fail_at(struct parser *p, const char *where, int code, const char *what)
{
    return err_set(p->e, code, "column %zu: %s", text_cells(p->source, (size_t)(where - p->source)) + 1, what);
}

static void skip_space(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r')
        p->at++;
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
static bool is_name(char c)
{
    return is_name_start(c) || text_is_digit(c) || c == '.' || c == ':';
}

/* Emits an instruction that leaves one more cell on the stack. */
static int emit_value(struct parser *p, int op, size_t arg)
{
    if (p->stack == EXPR_STACK)
        return fail_at(p, p->at, ERR_LIMIT, "too deeply nested");
    p->stack++;
    expr_emit(p->x, op, arg);
    return ERR_OK;
}

static int emit_constant(struct parser *p, struct expr_cell cell)
{
    vec_push(&p->x->constants, cell);
    return emit_value(p, OP_CONSTANT, p->x->constants.n - 1);
}

static int parse_number(struct parser *p)
{
    const char *begin = p->at;
    uint64_t v = 0;
    bool hex = begin[0] == '0' && (begin[1] == 'x' || begin[1] == 'X'), overflow = false;
    const char *s = begin + (hex ? 2 : 0), *first = s;
    for (;; s++) {
        int digit = text_is_digit(*s)                     ? *s - '0'
            : hex && (*s | 32) >= 'a' && (*s | 32) <= 'f' ? (*s | 32) - 'a' + 10
                                                          : -1;
        if (digit < 0)
            break;
        if (__builtin_mul_overflow(v, (uint64_t)(hex ? 16 : 10), &v) || __builtin_add_overflow(v, (uint64_t)digit, &v))
            overflow = true;
    }
    struct expr_cell cell = {.type = EXPR_INT, .i = v};
    if (!hex && (*s == '.' || *s == 'e' || *s == 'E')) {
        char *end;
        cell = (struct expr_cell){.type = EXPR_FLOAT, .f = strtod(begin, &end)};
        s = end;
    } else if (overflow) {
        return fail_at(p, begin, ERR_ARG, "the number needs more than 64 bits");
    }
    if (s == first || is_name(*s))
        return fail_at(p, s, ERR_ARG, "a digit is expected here");
    p->at = s;
    return emit_constant(p, cell);
}

/* Reads a quoted text into the arena. */
static int read_text(struct parser *p, char **out, size_t *n)
{
    const char *begin = p->at;
    char quote = *p->at++;
    char *t = *out = arena_alloc(&p->x->arena, strlen(p->at) + 1);
    for (; *p->at && *p->at != quote; p->at++) {
        char next = p->at[1];
        if (*p->at == '\\' && (next == '"' || next == '\'' || next == '\\')) {
            *t++ = next;
            p->at++;
        } else if (*p->at == '\\' && (next == 'n' || next == 't')) {
            *t++ = next == 'n' ? '\n' : '\t';
            p->at++;
        } else {
            *t++ = *p->at;
        }
    }
    if (!*p->at)
        return fail_at(p, begin, ERR_ARG, "the text that begins here has no closing quote");
    p->at++;
    *n = (size_t)(t - *out);
    return ERR_OK;
}

static int parse_text(struct parser *p)
{
    struct expr_cell cell = {.type = EXPR_STRING};
    char *s;
    int code = read_text(p, &s, &cell.n);
    if (code)
        return code;
    cell.s = s;
    return emit_constant(p, cell);
}

static int parse_name(struct parser *p)
{
    const char *begin = p->at;
    for (;;) {
        if (is_name(*p->at)) {
            p->at++;
        } else if (*p->at == '[' && text_is_digit(p->at[1])) {
            const char *s = p->at + 1;
            while (text_is_digit(*s))
                s++;
            if (*s != ']')
                return fail_at(p, s, ERR_ARG, "']' is expected here");
            p->at = s + 1;
        } else {
            break;
        }
    }
    return emit_value(p, OP_LOAD, expr_slot(p->x, begin, (size_t)(p->at - begin)));
}

static int parse_binary(struct parser *p, int lowest);

static int parse_operand(struct parser *p)
{
    skip_space(p);
    const char *begin = p->at;
    char c = *begin;
    if (text_is_digit(c))
        return parse_number(p);
    if (c == '"' || c == '\'')
        return parse_text(p);
    if (is_name_start(c))
        return parse_name(p);
    if (c != '(' && c != '!' && c != '-')
        return fail_at(p, begin, ERR_ARG,
            c ? "a name, number, text or '(' is expected here"
              : "the expression ends where a name, number, text or '(' is expected");

    if (p->depth == DEEPEST)
        return fail_at(p, begin, ERR_LIMIT, "too deeply nested");
    p->depth++;
    p->at++;
    int code;
    if (c == '(') {
        code = parse_binary(p, P_OR);
        skip_space(p);
        if (code == ERR_OK && *p->at != ')')
            code = fail_at(p, p->at, ERR_ARG, "')' is expected here");
        if (code == ERR_OK)
            p->at++;
    } else {
        code = parse_operand(p);
        expr_emit(p->x, c == '!' ? OP_NOT : OP_NEGATE, 0);
    }
    p->depth--;
    return code;
}

/* The pattern must be a literal, since it is compiled here. */
static int parse_pattern(struct parser *p, int op)
{
    skip_space(p);
    const char *begin = p->at;
    if (*begin != '"' && *begin != '\'')
        return fail_at(p, begin, ERR_ARG, "a regular expression in quotes is expected here");
    char *pattern;
    size_t n;
    int code = read_text(p, &pattern, &n);
    if (code)
        return code;
    code = expr_add_pattern(p->x, pattern, p->e);
    if (code) {
        err_wrap(p->e, "column %zu", text_cells(p->source, (size_t)(begin - p->source)) + 1);
        return code;
    }
    expr_emit(p->x, op, p->x->patterns.n - 1);
    return ERR_OK;
}

static const struct operator* find_operator(struct parser *p)
{
    skip_space(p);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strncmp(p->at, operators[i].text, strlen(operators[i].text)) == 0)
            return &operators[i];
    return NULL;
}

/* The right side of an operator whose left side is on the stack. */
static int parse_right(struct parser *p, const struct operator* o)
{
    if (o->op == OP_MATCH || o->op == OP_NO_MATCH)
        return parse_pattern(p, o->op);
    if (o->op == OP_AND || o->op == OP_OR) {
        size_t jump = expr_emit(p->x, o->op, 0);
        p->stack--;
        int code = parse_binary(p, o->precedence + 1);
        expr_emit(p->x, OP_TRUTH, 0);
        expr_land(p->x, jump);
        return code;
    }
    int code = parse_binary(p, o->precedence + 1);
    expr_emit(p->x, o->op, 0);
    p->stack--;
    return code;
}

/* Operators that bind at least as tightly as `lowest`; all are left-associative. */
static int parse_binary(struct parser *p, int lowest)
{
    int code = parse_operand(p);
    bool compared = false;
    const struct operator* o;
    while (code == ERR_OK && (o = find_operator(p)) && o->precedence >= lowest) {
        if (o->precedence == P_COMPARE && compared)
            return fail_at(p, p->at, ERR_ARG, "comparisons do not chain: write a < b && b < c");
        compared = o->precedence == P_COMPARE;
        p->at += strlen(o->text);
        code = parse_right(p, o);
    }
    return code;
}

int expr_compile(const char *source, struct expr **out, struct err *e)
{
    *out = NULL;
    if (strnlen(source, LONGEST_SOURCE + 1) > LONGEST_SOURCE)
        return err_set(e, ERR_LIMIT, "the expression is longer than %d bytes", LONGEST_SOURCE);
    struct expr *x = mem_zalloc(sizeof *x);
    struct parser p = {.source = source, .at = source, .x = x, .e = e};
    int code = parse_binary(&p, P_OR);
    skip_space(&p);
    if (code == ERR_OK && *p.at)
        code = fail_at(&p, p.at, ERR_ARG,
            *p.at == '=' ? "\"=\" alone means nothing: use ==" : "an operator or the end is expected here");
    if (code) {
        expr_free(x);
        err_wrap(e, "expression \"%.200s\"", source);
        return code;
    }
    *out = x;
    return ERR_OK;
}
