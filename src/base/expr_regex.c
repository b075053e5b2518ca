#include "base/expr_regex.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 4096, DEEPEST_GROUP = 32, DEEPEST_LOOP = 2 };

/* Skips a bracket expression; s is behind '['. "]" first is a member, "[:", "[." and "[=" open inner brackets. */
static const char *skip_bracket(const char *s)
{
    if (*s == '^')
        s++;
    if (*s == ']')
        s++;
    while (*s && *s != ']') {
        if (s[0] == '[' && (s[1] == ':' || s[1] == '.' || s[1] == '=')) {
            char end[] = {s[1], ']', '\0'};
            const char *close = strstr(s + 2, end);
            if (!close)
                return s + strlen(s);
            s = close + 2;
        } else {
            s++;
        }
    }
    return *s ? s + 1 : s;
}

/* Copies that "{m,n}" makes; s is behind '{'. */
static unsigned long copies_of(const char *s)
{
    char *end;
    unsigned long low = strtoul(s, &end, 10), high = low;
    if (*end == ',')
        high = strtoul(end + 1, NULL, 10);
    if (low > high)
        high = low;
    return high < MOST_PARTS ? high + 1 : MOST_PARTS + 1;
}

static int too_large(struct err *e)
{
    return err_set(e, ERR_LIMIT, "regular expression with too many nested repetitions");
}

/* Upper bound of the parts that the pattern unfolds to, and of the paths through nested loops: each repetition multiplies what it repeats. */
static int check_size(const char *s, struct err *e)
{
    unsigned long sums[DEEPEST_GROUP + 1] = {0}, last = 0; /* finished parts of each open group; the part that an operator would repeat */
    unsigned depth = 0, loops[DEEPEST_GROUP + 1] = {0}, inner = 0; /* loops inside loops: most in each open group, and in the last part */
    while (*s) {
        char c = *s++;
        if (c == '*' || c == '?' || c == '+') {
            last = last * 2 + 1;
            inner++;
        } else if (c == '{') {
            last *= copies_of(s);
            inner++;
        } else if (c == '(') {
            if (depth == DEEPEST_GROUP)
                return too_large(e);
            sums[depth++] += last;
            sums[depth] = last = 0;
            loops[depth] = inner = 0;
        } else if (c == ')' && depth) {
            inner = loops[depth];
            last += sums[depth--] + 1;
        } else {
            sums[depth] += last;
            last = 1;
            inner = 0;
            if (c == '[')
                s = skip_bracket(s);
            if (c == '\\' && *s >= '1' && *s <= '9')
                return err_set(e, ERR_UNSUPPORTED, "regular expression with a back reference");
            if (c == '\\' && *s)
                s++;
        }
        loops[depth] = inner > loops[depth] ? inner : loops[depth];
        if (last > MOST_PARTS || sums[depth] > MOST_PARTS || inner > DEEPEST_LOOP)
            return too_large(e);
    }
    return ERR_OK;
}

int expr_regex_compile(const char *pattern, regex_t *out, struct err *e)
{
    int code = check_size(pattern, e);
    if (code)
        return code;
    int failed = regcomp(out, pattern, REG_EXTENDED | REG_NOSUB);
    if (failed) {
        char why[128];
        regerror(failed, out, why, sizeof why);
        return err_set(e, ERR_ARG, "regular expression: %s", why);
    }
    return ERR_OK;
}
