/* SPDX-License-Identifier: MIT */
/* Expressions that users write: one kind of program (expr_code.h), one evaluator, two grammars that compile to it.
 *
 * `--where` and tables of events, expr_compile(): C-like: == != < <= > >= =~ (regular expression) !~ && || ! ( ) + - *
 * / % & | "text" 'text' 0x1f 1.5 names (letters, digits, _ . : $ and [n]); a bare name is true when it is present and
 * not 0 or "". Comparisons with absent names are false.
 *
 * Binding, loosest first: || && comparisons | & +- * / % and the signs ! -. Unlike in C, bits bind tighter than
 * comparisons: `flags & 4 == 4` asks for bit 4. Integers are exact (signed and unsigned mix); division by 0 and sums of
 * texts are absent. A text never equals a number; =~ takes a number's decimal text. Neither =~ nor !~ holds for a text
 * on which the pattern needs more than REGEX_STEPS steps (base/regex.h). In quotes, \" \' \\ \n \t are the characters;
 * any other backslash stays, so that "\.so$" is a regular expression as written.
 *
 * Filters of views, as the trace server protocol has them, expr_compile_filter(): `openat`, `duration>10ms &&
 * thread=1`, `process matches "^nginx" || !(label contains poll)`, `cpu present`; == or =, != < <= > >=. A name may
 * have several values, of which one has to match; values are texts, compared as numbers where both are ("10ms" in ns),
 * else without regard to case. A word alone is searched in all values. Input that does not parse is searched literally,
 * since users type it letter by letter. */
#ifndef WEFT_BASE_EXPR_H
#define WEFT_BASE_EXPR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum expr_type { EXPR_ABSENT, EXPR_INT, EXPR_FLOAT, EXPR_STRING };
/* `is_unsigned`: i holds the bits of a uint64_t. Texts need not be terminated and must stay valid while expr_eval
 * runs. */
struct expr_value { int type; int64_t i; double f; const char *s; size_t n; bool is_unsigned; };

struct expr;
/* Compiles; errors (ERR_ARG, ERR_LIMIT) name the column. Limits: 4096 bytes, depth 64. */
int expr_compile(const char *source, struct expr **out, struct err *e);
void expr_free(struct expr *);
/* Distinct names used, in order of first use; a name's position is its slot. */
size_t expr_names(const struct expr *, const char *const **out);
/* The i-th comparison of a name with a constant, for warnings about impossible ones. `equality`: the operator is == or
 * !=. Returns false if there are no more. The text is not terminated and lives as long as the expression. */
struct expr_comparison { size_t slot; bool equality; struct expr_value constant; };
bool expr_comparison(const struct expr *, size_t i, struct expr_comparison *out);
/* Evaluates; `get` gives the value of a slot. Any number of threads may evaluate one expression. */
typedef void expr_get(void *arg, size_t slot, struct expr_value *out);
bool expr_eval(const struct expr *, expr_get *get, void *arg);

struct expr *expr_compile_filter(const char *source); /* never NULL */
/* Evaluates the result of expr_compile_filter. `next` returns the next value of a slot, or of any name, from position
 * *at on (0 first), and advances *at; NULL: no more. */
#define EXPR_ANY_NAME SIZE_MAX
typedef const char *expr_next(void *arg, size_t slot, size_t *at);
bool expr_eval_filter(const struct expr *, expr_next *next, void *arg);

#endif
