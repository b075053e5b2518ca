/* SPDX-License-Identifier: MIT */
/* Private to ctf: front end for CTF 2 metadata, a sequence of JSON objects ("fragments"). Makes the same declarations
 * as the parser of CTF 1.8's language: tsdl.h. */
#ifndef WEFT_CTF_CTF2_H
#define WEFT_CTF_CTF2_H

#include "ctf/layout.h"
#include "ctf/tsdl.h"

struct text;

/* ---- JSON ---- */

/* HUGE: an integer below -2^63 or above 2^64 - 1. */
enum ctf2_kind {
    CTF2_NULL, CTF2_FALSE, CTF2_TRUE, CTF2_INTEGER, CTF2_HUGE, CTF2_REAL, CTF2_STRING, CTF2_ARRAY, CTF2_OBJECT
};
/* Node; nodes lie in the order of the text: children directly after their parent. */
struct ctf2_node {
    uint8_t kind;
    bool negative;               /* integers: `u` is two's complement */
    uint32_t n;                  /* members, elements */
    uint32_t next;               /* number of the next node after this one and all below it */
    uint32_t key_n;
    const char *at, *end;        /* place of the value in the text */
    const char *key;             /* name, for members; not terminated */
    const char *s; size_t s_n;   /* strings; not terminated, no NUL within */
    uint64_t u;
};
struct ctf2_json {
    struct tsdl_lexer *l;        /* reports the errors */
    struct arena *arena;         /* strings with escapes */
    VEC(struct ctf2_node) nodes; /* nodes of the object parsed last */
    VEC(const struct ctf2_node *) sorted; /* members, while duplicate keys are searched */
};
enum { CTF2_JSON_DEPTH = 4 * CTF_DEPTH + 16 };
/* Parses a text of one value and white space. NULL with the error. Nodes are valid until the next call. */
const struct ctf2_node *ctf2_parse(struct ctf2_json *, const char *begin, const char *end);
void ctf2_json_fini(struct ctf2_json *);
#define CTF2_EACH(json, parent, child) \
    (const struct ctf2_node *child = (parent) + 1, *child##_end = (json)->nodes.v + (parent)->next; \
        child < child##_end; child = (json)->nodes.v + child->next)
bool ctf2_is(const struct ctf2_node *, const char *text); /* string with this content? */
/* Returns a string's content, terminated. */
char *ctf2_text(struct arena *, const struct ctf2_node *);
/* Returns a member of an object, or NULL. */
const struct ctf2_node *ctf2_get(const struct ctf2_json *, const struct ctf2_node *, const char *name);
/* Returns a member of a given kind; fails if it is another kind, or (`needed`) absent. */
const struct ctf2_node *ctf2_get_kind(struct ctf2_json *, const struct ctf2_node *, const char *name,
    enum ctf2_kind, bool needed);
/* Reads an integer from `least` to `most`; *out is unchanged if it is absent. */
void ctf2_get_count(struct ctf2_json *, const struct ctf2_node *, const char *name, bool needed, uint64_t least,
    uint64_t most, uint64_t *out);
/* Reads a string into `a`; *out is unchanged if it is absent. */
void ctf2_get_text(struct ctf2_json *, const struct ctf2_node *, const char *name, bool needed, struct arena *a,
    const char **out);
/* Checks attributes and extensions, which every fragment and field class may have. */
void ctf2_check_common(struct ctf2_json *, const struct ctf2_node *);
/* Returns the first member that is neither in `names` (NULL at the end) nor a common one; NULL: none. */
const struct ctf2_node *ctf2_unknown(const struct ctf2_json *, const struct ctf2_node *, const char *const *names);

/* ---- fragments ---- */

enum ctf2_fragment {
    CTF2_PREAMBLE, CTF2_ALIAS, CTF2_TRACE_CLASS, CTF2_CLOCK_CLASS, CTF2_STREAM_CLASS, CTF2_EVENT_CLASS,
    CTF2_UNKNOWN_FRAGMENT
};
/* Cursor over a text. Fragments are split at record separators if there are any; else each object ends at its brace. */
struct ctf2_cursor { const char *p, *end; bool separated; };
struct ctf2_cursor ctf2_cursor(const char *text, const char *end);
/* Returns the next fragment, without surrounding white space; begin is NULL at the end. */
struct tsdl_span ctf2_next(struct ctf2_cursor *);
/* Returns the fragment's type, read from its top level only. *whole: its object is closed; NULL: not asked, faster. */
enum ctf2_fragment ctf2_type(struct tsdl_span, bool *whole);

/* Splits the text into the trace's own parts and those that make the schema. Errors as tsdl_scan. */
int ctf2_scan(const char *text, size_t n, struct tsdl_scan *, struct err *e);
/* Writes the path of a place in the text: "fragment 3, payload-field-class.member-classes[0]". */
void ctf2_where(const char *text, const char *end, const char *at, char *out, size_t n);
/* Makes the declarations of the shared fragments (ctf2_classes.c). */
void ctf2_declare(struct tsdl_parser *);
/* Returns the field class of a node, or NULL after failure (ctf2_fields.c). */
struct tsdl_decl *ctf2_field_class(struct tsdl_parser *, struct ctf2_json *, const struct ctf2_node *);

/* Appends the trace's own properties, from the beginning of its metadata, as "name=value\n" lines with values as CTF
 * 1.8 spells them (ctf2_own.c). */
void ctf2_identity(const char *text, size_t n, struct text *out);

/* ---- field locations ---- */

/* Path to a field: `up` structures out from the innermost one, or from a scope's structure, then by names. No name is
 * NULL. */
struct ctf2_location {
    const char *at;
    int origin;                  /* enum ctf_scope, or -1 */
    uint32_t up, n;
    const struct tsdl_name *const *name;
};

#endif
