/* The one expression language: `--where`, view filters, alarms. C-like: == != < <= > >= =~ (regular expression) !~ &&
 * || ! ( ) + - * / % & | "text" 'text' 0x1f 1.5 names (letters, digits, _ . : $ and [n]); a bare name is true when it
 * is present and not 0 or "". Comparisons with absent names are false.
 *
 * Binding, loosest first: || && comparisons | & +- * / % and the signs ! -. Unlike in C, bits bind tighter than
 * comparisons: `flags & 4 == 4` asks for bit 4. Integers are exact (signed and unsigned mix); division by 0 and sums of
 * texts are absent. A text never equals a number; =~ takes a number's decimal text. Neither =~ nor !~ holds for a text
 * on which the pattern needs more than REGEX_STEPS steps (base/regex.h).
 * In quotes, \" \' \\ \n \t are the characters; any other backslash stays, so that "\.so$" is a regular expression as
 * written. */
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
/* Evaluates; `get` gives the value of a slot. Any number of threads may evaluate one expression. */
bool expr_eval(const struct expr *, void (*get)(void *arg, size_t slot, struct expr_value *out), void *arg);

#endif
