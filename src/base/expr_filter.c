/* SPDX-License-Identifier: MIT */
/* Filters: the second compiler of expressions. Users type them letter by letter, so nothing is refused. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/expr_code.h"
#include "base/mem.h"

enum { DEEPEST = 32, MOST_NODES = 256 };

struct filter_parser {
    const char *at;
    struct expr *x;
    int depth, nodes;
    bool wrong;
};

static void parse_or(struct filter_parser *);

static void skip_blanks(struct filter_parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool take(struct filter_parser *p, const char *token)
{
    size_t n = strlen(token);
    skip_blanks(p);
    if (strncmp(p->at, token, n) ||
        (isalpha((unsigned char)token[0]) && !isspace((unsigned char)p->at[n]) && p->at[n] && p->at[n] != ')' &&
            p->at[n] != '"'))
        return false;
    p->at += n;
    return true;
}

static const char *take_word(struct filter_parser *p)
{
    skip_blanks(p);
    if (*p->at == '"' || *p->at == '\'') {
        const char *end = strchr(p->at + 1, *p->at);
        if (!end) {
            p->wrong = true;
            return "";
        }
        const char *word = arena_strndup(&p->x->arena, p->at + 1, (size_t)(end - p->at - 1));
        p->at = end + 1;
        return word;
    }
    size_t n = strcspn(p->at, " \t\r\n=!<>()&|\"'");
    p->wrong |= n == 0;
    const char *word = arena_strndup(&p->x->arena, p->at, n);
    p->at += n;
    return word;
}

static void count_node(struct filter_parser *p)
{
    p->wrong |= ++p->nodes > MOST_NODES;
}

static void emit_test(struct expr *x, struct expr_test test)
{
    expr_emit(x, OP_SOME, x->tests.n);
    vec_push(&x->tests, test);
}

/* Operand of a comparison: a word, or a number and a separate unit ("10 ms"). A pattern that does not compile is
 * searched literally. */
static void take_value(struct filter_parser *p, struct expr_test *t)
{
    struct err e = {0};
    t->text = take_word(p);
    t->number = expr_number(t->text);
    for (size_t i = 1; i < EXPR_UNITS && !isnan(t->number); i++)
        if (take(p, expr_units[i].name)) {
            t->number *= expr_units[i].scale;
            break;
        }
    if (t->op == OP_MATCH && expr_add_pattern(p->x, t->text, &e))
        t->op = OP_CONTAINS;
    else if (t->op == OP_MATCH)
        t->pattern = p->x->patterns.v[p->x->patterns.n - 1];
}

static void parse_comparison(struct filter_parser *p)
{
    static const struct {
        const char *token;
        int op;
    } operators[] = {{"present", OP_PRESENT}, {"==", OP_EQ}, {"!=", OP_NE}, {"<=", OP_LE}, {">=", OP_GE}, {"=", OP_EQ},
        {"<", OP_LT}, {">", OP_GT}, {"contains", OP_CONTAINS}, {"matches", OP_MATCH}};
    enum { OPERATORS = sizeof operators / sizeof *operators };
    struct expr_test t = {.slot = EXPR_ANY_NAME, .op = OP_CONTAINS, .text = take_word(p)};
    size_t i = 0;
    count_node(p);
    while (i < OPERATORS && !take(p, operators[i].token))
        i++;
    if (i < OPERATORS) {
        t.slot = expr_slot(p->x, t.text, strlen(t.text));
        t.op = operators[i].op;
        if (t.op != OP_PRESENT)
            take_value(p, &t);
    }
    emit_test(p->x, t);
}

static void parse_unary(struct filter_parser *p)
{
    if (++p->depth > DEEPEST)
        p->wrong = true;
    if (p->wrong) {
        ;
    } else if (take(p, "!")) {
        count_node(p);
        parse_unary(p);
        expr_emit(p->x, OP_NOT, 0);
    } else if (take(p, "(")) {
        parse_or(p);
        p->wrong |= !take(p, ")");
    } else {
        parse_comparison(p);
    }
    p->depth--;
}

static void parse_chain(struct filter_parser *p, const char *token, int op, void (*parse_side)(struct filter_parser *))
{
    parse_side(p);
    while (!p->wrong && take(p, token)) {
        size_t jump = expr_emit(p->x, op, 0);
        count_node(p);
        parse_side(p);
        expr_land(p->x, jump);
    }
}

static void parse_and(struct filter_parser *p)
{
    parse_chain(p, "&&", OP_AND, parse_unary);
}

static void parse_or(struct filter_parser *p)
{
    parse_chain(p, "||", OP_OR, parse_and);
}

struct expr *expr_compile_filter(const char *source)
{
    struct expr *x = mem_zalloc(sizeof *x);
    struct filter_parser p = {.at = source, .x = x};
    parse_or(&p);
    skip_blanks(&p);
    if (p.wrong || *p.at) {
        x->code.n = 0;
        emit_test(
            x, (struct expr_test){.slot = EXPR_ANY_NAME, .op = OP_CONTAINS, .text = arena_strdup(&x->arena, source)});
    }
    return x;
}
