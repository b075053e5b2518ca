/* SPDX-License-Identifier: MIT */
/* Private to ctf: the front end for CTF 2 metadata, which are a sequence of JSON objects ("fragments"). It makes the
 * same declarations as the parser of CTF 1.8's language: tsdl.h. */
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
/* Nodes lie in the order of the text: children right behind their parent. */
struct ctf2_node {
    uint8_t kind;
    bool negative;               /* integers: `u` is two's complement */
    uint32_t n;                  /* members, elements */
    uint32_t next;               /* number of the node behind this one and all below it */
    uint32_t key_n;
    const char *at, *end;        /* place of the value in the text */
    const char *key;             /* of members; not terminated */
    const char *s; size_t s_n;   /* strings; not terminated, no NUL within */
    uint64_t u;
};
struct ctf2_json {
    struct tsdl_lexer *l;        /* gets the errors */
    struct arena *arena;         /* strings with escapes */
    VEC(struct ctf2_node) nodes; /* the object that was parsed last */
    VEC(const struct ctf2_node *) sorted; /* members, while double keys are looked for */
};
enum { CTF2_JSON_DEPTH = 4 * CTF_DEPTH + 16 };
/* Parses one value, which must be all there is but for white space. NULL with the error. Nodes are valid until the next
 * call. */
const struct ctf2_node *ctf2_parse(struct ctf2_json *, const char *begin, const char *end);
void ctf2_json_fini(struct ctf2_json *);
#define CTF2_EACH(json, parent, child) \
    (const struct ctf2_node *child = (parent) + 1, *child##_end = (json)->nodes.v + (parent)->next; \
        child < child##_end; child = (json)->nodes.v + child->next)
bool ctf2_is(const struct ctf2_node *, const char *text); /* a string with this content */
/* A string's content, terminated. */
char *ctf2_text(struct arena *, const struct ctf2_node *);
/* A member of an object, or NULL. */
const struct ctf2_node *ctf2_get(const struct ctf2_json *, const struct ctf2_node *, const char *name);
/* The same, of a kind; fails when it is another one, or (`needed`) absent. */
const struct ctf2_node *ctf2_get_kind(struct ctf2_json *, const struct ctf2_node *, const char *name,
    enum ctf2_kind, bool needed);
/* An integer from `least` to `most`; *out stays when it is absent. */
void ctf2_get_count(struct ctf2_json *, const struct ctf2_node *, const char *name, bool needed, uint64_t least,
    uint64_t most, uint64_t *out);
/* A string in `a`; *out stays when it is absent. */
void ctf2_get_text(struct ctf2_json *, const struct ctf2_node *, const char *name, bool needed, struct arena *a,
    const char **out);
/* Attributes and extensions, which every fragment and field class may have. */
void ctf2_check_common(struct ctf2_json *, const struct ctf2_node *);
/* The first member whose name is not one of `names` (NULL at the end) nor common; NULL: none. */
const struct ctf2_node *ctf2_unknown(const struct ctf2_json *, const struct ctf2_node *, const char *const *names);

/* ---- fragments ---- */

enum ctf2_fragment {
    CTF2_PREAMBLE, CTF2_ALIAS, CTF2_TRACE_CLASS, CTF2_CLOCK_CLASS, CTF2_STREAM_CLASS, CTF2_EVENT_CLASS,
    CTF2_UNKNOWN_FRAGMENT
};
/* Goes through a text. Where it has record separators, they separate; else each object ends where it closes. */
struct ctf2_cursor { const char *p, *end; bool separated; };
struct ctf2_cursor ctf2_cursor(const char *text, const char *end);
/* The next fragment, without white space around it; begin NULL at the end. */
struct tsdl_span ctf2_next(struct ctf2_cursor *);
/* Its type by its top level alone. *whole: its object is closed. */
enum ctf2_fragment ctf2_type(struct tsdl_span, bool *whole);

/* The scan: what of the text is the trace's own, and what the schema is made of. Errors as tsdl_scan. */
int ctf2_scan(const char *text, size_t n, struct tsdl_scan *, struct err *e);
/* "fragment 3, payload-field-class.member-classes[0]" for a place in the text. */
void ctf2_where(const char *text, const char *end, const char *at, char *out, size_t n);
/* Declarations of the shared fragments (ctf2_classes.c). */
void ctf2_declare(struct tsdl_parser *);
/* The field class of a node, or NULL after failure (ctf2_fields.c). */
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
