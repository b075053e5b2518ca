/* Filters of states: `openat`, `duration>10ms && thread=1`, `process matches "^nginx" || !(label contains poll)`. A
 * word alone is looked for in all values. What cannot be understood is looked for as it stands: people type it letter
 * by letter. */
#include <ctype.h>
#include <math.h>

#include "base/regex.h"
#include "tsp/server.h"

enum { MAX_EXPRESSIONS = 64, MAX_DEPTH = 32, MAX_NODES = 256, MAX_EXPRESSION_BYTES = 4096 };

enum node_kind {
    NODE_AND,
    NODE_OR,
    NODE_NOT,
    NODE_ANY,
    NODE_EQUAL,
    NODE_DIFFERENT,
    NODE_LESS,
    NODE_LESS_EQUAL,
    NODE_GREATER,
    NODE_GREATER_EQUAL,
    NODE_CONTAINS,
    NODE_MATCHES,
    NODE_PRESENT
};
struct node {
    int kind;
    const struct node *a, *b;
    const char *key, *value;
    double number; /* NaN: value is no number */
    const struct regex *regex;
};

/* A compiled pattern owns memory outside the arena: filter_fini frees it. */
struct filter_regexes {
    struct filter_regexes *next;
    struct regex *regex;
};

struct tsp_filter {
    size_t n;
    struct {
        int tag;
        const struct node *root;
    } parts[MAX_EXPRESSIONS];
    struct filter_regexes *regexes;
};

/* ---- compiling ---- */

struct parser {
    const char *at;
    struct arena *arena;
    int depth, nodes;
    bool wrong;
};

static const struct node *parse_or(struct parser *);

static void skip_blanks(struct parser *p)
{
    while (isspace((unsigned char)*p->at))
        p->at++;
}

static bool take(struct parser *p, const char *token)
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

static const char *take_word(struct parser *p)
{
    skip_blanks(p);
    if (*p->at == '"' || *p->at == '\'') {
        const char *end = strchr(p->at + 1, *p->at);
        if (!end) {
            p->wrong = true;
            return "";
        }
        const char *word = arena_strndup(p->arena, p->at + 1, (size_t)(end - p->at - 1));
        p->at = end + 1;
        return word;
    }
    size_t n = strcspn(p->at, " \t\r\n=!<>()&|\"'");
    p->wrong |= n == 0;
    const char *word = arena_strndup(p->arena, p->at, n);
    p->at += n;
    return word;
}

static const struct {
    const char *unit;
    double scale;
} units[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"µs", 1e3}, {"ms", 1e6}, {"s", 1e9}};
enum { N_UNITS = sizeof units / sizeof *units };

/* "10ms" in ns, "3" as it is; NaN when it is no number. */
static double number_of(const char *s)
{
    char *end;
    double v = strtod(s, &end);
    if (end == s)
        return NAN;
    while (*end == ' ')
        end++;
    for (size_t i = 0; i < N_UNITS; i++)
        if (!strcmp(end, units[i].unit))
            return v * units[i].scale;
    return NAN;
}

static struct node *new_node(struct parser *p, int kind)
{
    struct node *n = arena_new(p->arena, struct node, 1);
    p->wrong |= ++p->nodes > MAX_NODES;
    n->kind = kind;
    return n;
}

static const struct node *parse_comparison(struct parser *p)
{
    static const struct {
        const char *token;
        int kind;
    } operators[] = {{"==", NODE_EQUAL}, {"!=", NODE_DIFFERENT}, {"<=", NODE_LESS_EQUAL}, {">=", NODE_GREATER_EQUAL},
        {"=", NODE_EQUAL}, {"<", NODE_LESS}, {">", NODE_GREATER}, {"contains", NODE_CONTAINS},
        {"matches", NODE_MATCHES}};
    const char *word = take_word(p);
    struct node *n = new_node(p, NODE_ANY);
    n->value = word;
    if (take(p, "present")) {
        n->kind = NODE_PRESENT;
        n->key = word;
        return n;
    }
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (take(p, operators[i].token)) {
            n->kind = operators[i].kind;
            n->key = word;
            n->value = take_word(p);
            n->number = number_of(n->value);
            for (size_t k = 1; k < N_UNITS && !isnan(n->number); k++) /* "10 ms" */
                if (take(p, units[k].unit)) {
                    n->number *= units[k].scale;
                    break;
                }
            break;
        }
    return n;
}

static const struct node *parse_unary(struct parser *p)
{
    if (++p->depth > MAX_DEPTH)
        p->wrong = true;
    const struct node *out;
    if (p->wrong) {
        out = NULL;
    } else if (take(p, "!")) {
        struct node *n = new_node(p, NODE_NOT);
        n->a = parse_unary(p);
        out = n;
    } else if (take(p, "(")) {
        out = parse_or(p);
        p->wrong |= !take(p, ")");
    } else {
        out = parse_comparison(p);
    }
    p->depth--;
    return out;
}

static const struct node *parse_and(struct parser *p)
{
    const struct node *left = parse_unary(p);
    while (!p->wrong && take(p, "&&")) {
        struct node *n = new_node(p, NODE_AND);
        n->a = left;
        n->b = parse_unary(p);
        left = n;
    }
    return left;
}

static const struct node *parse_or(struct parser *p)
{
    const struct node *left = parse_and(p);
    while (!p->wrong && take(p, "||")) {
        struct node *n = new_node(p, NODE_OR);
        n->a = left;
        n->b = parse_and(p);
        left = n;
    }
    return left;
}

static const struct node *parse(const char *text, struct arena *a)
{
    struct parser p = {.at = text, .arena = a};
    const struct node *root = parse_or(&p);
    skip_blanks(&p);
    if (!p.wrong && !*p.at)
        return root;
    struct node *plain = arena_new(a, struct node, 1);
    plain->kind = NODE_ANY;
    plain->value = text;
    return plain;
}

/* Compiles the patterns below the node; those that cannot be are looked for as texts. */
static void compile_patterns(struct node *n, struct arena *a, struct filter_regexes **list)
{
    if (!n)
        return;
    compile_patterns((struct node *)(uintptr_t)n->a, a, list);
    compile_patterns((struct node *)(uintptr_t)n->b, a, list);
    if (n->kind != NODE_MATCHES)
        return;
    struct filter_regexes *r = arena_new(a, struct filter_regexes, 1);
    struct err e = {0};
    if (regex_compile(n->value, &r->regex, &e)) {
        n->kind = NODE_CONTAINS;
        return;
    }
    r->next = *list;
    *list = r;
    n->regex = r->regex;
}

struct tsp_filter *filter_compile(json_t *map, struct arena *a)
{
    struct tsp_filter *f = arena_new(a, struct tsp_filter, 1);
    const char *key;
    json_t *list, *item;
    json_object_foreach (map, key, list) {
        size_t i;
        int tag = atoi(key);
        json_array_foreach (list, i, item) {
            const char *text = json_string_value(item);
            if (!text || !*text || strlen(text) > MAX_EXPRESSION_BYTES || f->n == MAX_EXPRESSIONS || tag <= 0 ||
                tag > 255)
                continue;
            f->parts[f->n].tag = tag;
            f->parts[f->n].root = parse(arena_strdup(a, text), a);
            compile_patterns((struct node *)(uintptr_t)f->parts[f->n].root, a, &f->regexes);
            f->n++;
        }
    }
    return f->n ? f : NULL;
}

void filter_fini(const struct tsp_filter *f)
{
    for (struct filter_regexes *r = f ? f->regexes : NULL; r; r = r->next)
        regex_free(r->regex);
}

/* ---- matching ---- */

static bool same_key(const char *asked, const char *key)
{
    if (!strcasecmp(asked, key))
        return true;
    return (!strcasecmp(asked, "thread") && !strcasecmp(key, "tid")) ||
        (!strcasecmp(asked, "process") && !strcasecmp(key, "exec name"));
}

static bool compare_numbers(int kind, double a, double b)
{
    switch (kind) {
    case NODE_EQUAL: return a == b;
    case NODE_DIFFERENT: return a != b;
    case NODE_LESS: return a < b;
    case NODE_LESS_EQUAL: return a <= b;
    case NODE_GREATER: return a > b;
    default: return a >= b;
    }
}

static bool value_fits(const struct node *n, const char *value)
{
    if (n->kind == NODE_PRESENT)
        return true;
    if (n->kind == NODE_CONTAINS)
        return strcasestr(value, n->value) != NULL;
    if (n->kind == NODE_MATCHES)
        return regex_finds(n->regex, value, strlen(value)) == 1;
    double number = isnan(n->number) ? NAN : number_of(value);
    if (!isnan(number))
        return compare_numbers(n->kind, number, n->number);
    int order = strcasecmp(value, n->value);
    return n->kind == NODE_EQUAL ? order == 0 : n->kind == NODE_DIFFERENT && order != 0;
}

static bool fits(const struct node *n, const struct tsp_property *p, size_t count)
{
    if (n->kind == NODE_AND)
        return fits(n->a, p, count) && fits(n->b, p, count);
    if (n->kind == NODE_OR)
        return fits(n->a, p, count) || fits(n->b, p, count);
    if (n->kind == NODE_NOT)
        return !fits(n->a, p, count);
    for (size_t i = 0; i < count; i++)
        if (p[i].value &&
            (n->kind == NODE_ANY ? strcasestr(p[i].value, n->value) != NULL
                                 : same_key(n->key, p[i].key) && value_fits(n, p[i].value)))
            return true;
    return false;
}

int tsp_filter_tags(const struct tsp_query *q, const struct tsp_property *p, size_t n)
{
    int tags = 0;
    for (size_t i = 0; q->filter && i < q->filter->n; i++)
        if (!fits(q->filter->parts[i].root, p, n))
            tags |= q->filter->parts[i].tag;
    return tags;
}
