/* SPDX-License-Identifier: MIT */
#include "base/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include "base/mem.h"

enum {
    LONGEST_PATTERN = 4096,
    DEEPEST_GROUP = 64,
    MOST_MEMORY_KIB = 1024,   /* memory of one match */
    LARGEST_FAST_BYTES = 8192 /* compiled size above which making machine code takes too long */
};

struct regex {
    pcre2_code *code;
    pcre2_match_context *limits;
};

/* Match data, one per thread, since patterns are shared. */
static tss_t scratch_key;
static pcre2_general_context *memory;           /* allocator of the program for the library */
static pthread_once_t once = PTHREAD_ONCE_INIT; /* POSIX's: ThreadSanitizer does not know C11's */

static void free_scratch(void *scratch)
{
    pcre2_match_data_free(scratch);
}

static void *get_memory(size_t size, void *unused)
{
    return mem_alloc(size);
}

static void free_memory(void *p, void *unused)
{
    free(p);
}

static void prepare(void)
{
    memory = pcre2_general_context_create(get_memory, free_memory, NULL);
    if (tss_create(&scratch_key, free_scratch) != thrd_success)
        abort();
}

static pcre2_match_data *scratch_of_thread(void)
{
    pthread_once(&once, prepare);
    pcre2_match_data *scratch = tss_get(scratch_key);
    if (!scratch) {
        scratch = pcre2_match_data_create(2, memory); /* room for the match and its first group */
        tss_set(scratch_key, scratch);
    }
    return scratch;
}

static int refuse(int why, struct err *e)
{
    char text[128] = "";
    pcre2_get_error_message(why, (PCRE2_UCHAR *)text, sizeof text);
    bool large = why == PCRE2_ERROR_PARENTHESES_NEST_TOO_DEEP || why == PCRE2_ERROR_PATTERN_TOO_LARGE ||
        why == PCRE2_ERROR_PATTERN_TOO_COMPLICATED || why == PCRE2_ERROR_QUANTIFIER_TOO_BIG;
    return err_set(e, large ? ERR_LIMIT : ERR_ARG, "regular expression: %s", text);
}

static pcre2_code *compile(const char *pattern, int *why)
{
    PCRE2_SIZE where;
    pthread_once(&once, prepare);
    pcre2_compile_context *limits = pcre2_compile_context_create(memory);
    pcre2_set_max_pattern_length(limits, LONGEST_PATTERN);
    pcre2_set_parens_nest_limit(limits, DEEPEST_GROUP);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_MATCH_INVALID_UTF | PCRE2_DOTALL | PCRE2_DOLLAR_ENDONLY | PCRE2_NEVER_BACKSLASH_C, why,
        &where, limits);
    pcre2_compile_context_free(limits);
    return code;
}

int regex_compile(const char *pattern, struct regex **out, struct err *e)
{
    int why;
    *out = NULL;
    pcre2_code *code = compile(pattern, &why);
    if (!code)
        return refuse(why, e);
    size_t bytes = 0;
    pcre2_pattern_info(code, PCRE2_INFO_SIZE, &bytes);
    if (bytes <= LARGEST_FAST_BYTES)
        pcre2_jit_compile(code, PCRE2_JIT_COMPLETE); /* falls back to the interpreter */
    struct regex *r = mem_zalloc(sizeof *r);
    r->code = code;
    r->limits = pcre2_match_context_create(memory);
    pcre2_set_match_limit(r->limits, REGEX_STEPS);
    pcre2_set_depth_limit(r->limits, REGEX_STEPS);
    pcre2_set_heap_limit(r->limits, MOST_MEMORY_KIB);
    *out = r;
    return ERR_OK;
}

/* Returns >= 0 if found, else PCRE2's error number. */
static int match(const struct regex *r, const char *text, size_t n, uint32_t options, pcre2_match_data *scratch)
{
    int found = pcre2_match(r->code, (PCRE2_SPTR)text, n, 0, options, scratch, r->limits);
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
        found = pcre2_match(r->code, (PCRE2_SPTR)text, n, 0, options | PCRE2_NO_JIT, scratch, r->limits);
    return found;
}

static int answer(int found)
{
    return found >= 0 ? 1 : found == PCRE2_ERROR_NOMATCH ? 0 : -1;
}

int regex_finds(const struct regex *r, const char *text, size_t n)
{
    return answer(match(r, text, n, 0, scratch_of_thread()));
}

int regex_fits(const struct regex *r, const char *text, size_t n)
{
    return answer(match(r, text, n, PCRE2_ANCHORED | PCRE2_ENDANCHORED, scratch_of_thread()));
}

int regex_captures(const struct regex *r, const char *text, size_t n, struct regex_part *out)
{
    pcre2_match_data *scratch = scratch_of_thread();
    uint32_t groups = 0;
    int found = match(r, text, n, 0, scratch);
    if (found < 0)
        return answer(found);
    pcre2_pattern_info(r->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    const PCRE2_SIZE *at = pcre2_get_ovector_pointer(scratch) + (groups ? 2 : 0);
    bool took_part = !groups ||
        (found != 1 && at[0] != PCRE2_UNSET); /* 1: no group matched; 0: more groups than room */
    if (took_part)
        *out = (struct regex_part){at[0], at[1] < at[0] ? at[0] : at[1]}; /* \K may put the begin behind the end */
    return took_part;
}

void regex_free(struct regex *r)
{
    if (!r)
        return;
    pcre2_match_context_free(r->limits);
    pcre2_code_free(r->code);
    free(r);
}
