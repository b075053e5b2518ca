/* SPDX-License-Identifier: MIT */
/* Private to the metadata parser: steps from a metadata text to a schema.
 *
 * The text is read in three steps. The scan (tsdl_scan.c) finds the top-level blocks at memory speed and hashes
 * those that make the schema. Only if no schema has that hash, the parser (tsdl_parser.c, tsdl_types.c) makes
 * declarations in temporary memory. The resolver (tsdl_resolve.c) then makes separate types for every use of them.
 *
 * Errors are sticky: the first one stays in the lexer, which from then on only returns TSDL_END, so that all loops
 * end. */
#ifndef WEFT_CTF_TSDL_H
#define WEFT_CTF_TSDL_H

#include "base/err.h"
#include "base/mem.h"
#include "ctf/schema.h"

enum {
    TSDL_MAX_TEXT = 256 << 20,      /* bytes of metadata */
    TSDL_MAX_TYPES = 1 << 21,       /* types (each use of a named one, scopes of streams per event) and tag choices, */
    TSDL_TYPE_BYTES = 4,            /* and one more for each so many bytes of metadata */
    TSDL_MAX_COMPARED = 1 << 30,    /* names compared for lengths and tags */
    TSDL_MAX_WARNINGS = 32,         /* reported one by one; the rest is counted */
    TSDL_MAX_PATH = 16,             /* parts of a dotted name */
};

/* ---- words ---- */

/* Kinds of tokens; the kind of any other token is its character. */
enum { TSDL_END = 0, TSDL_WORD = 256, TSDL_NUMBER, TSDL_STRING, TSDL_DOTS, TSDL_TYPE_ASSIGN, TSDL_ARROW };

struct tsdl_token {
    int kind;
    const char *s; size_t n;        /* part of the text; strings with their quotes */
    uint64_t value;                 /* numbers, character constants (as TSDL_NUMBER) */
};

struct tsdl_lexer {
    const char *text, *p, *end;     /* whole text for line numbers; position after the current token; end */
    struct tsdl_token t;            /* current token */
    struct err *e;
    bool failed, truncated;         /* truncated: failed because the text ended within a comment or string */
    bool lenient;                   /* invalid escapes in strings do not fail */
    bool is_json;                   /* CTF 2 text: messages name fragment and property */
    bool is_bare;                   /* messages without a place */
    struct tsdl_odd { const char *s; size_t n; } odd; /* first invalid escape, with its backslash; n 0: none */
};

/* Starts at `from` with its first token. `e` gets "line L: …" on failure. */
void tsdl_lexer_init(struct tsdl_lexer *, const char *text, const char *from, const char *end, struct err *e);
void tsdl_next(struct tsdl_lexer *);
/* Returns the token after the current one. */
struct tsdl_token tsdl_peek(struct tsdl_lexer *);
bool tsdl_is(const struct tsdl_token *, const char *word);            /* a word with this spelling */
bool tsdl_accept(struct tsdl_lexer *, int kind);                      /* consumes the token if it is of this kind */
bool tsdl_expect(struct tsdl_lexer *, int kind, const char *where);   /* fails with "expected … " */
void tsdl_fail(struct tsdl_lexer *, const char *at, int code, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* Goes to the '}' that closes the block whose '{' is the current token; fails at the text's end. */
void tsdl_skip_block(struct tsdl_lexer *);
/* Contents of a string token with escapes replaced, or the word itself; in `a`. */
char *tsdl_text(struct arena *a, const struct tsdl_token *);
size_t tsdl_line(const char *text, const char *at);
/* Returns a token's spelling for messages, shortened. */
struct tsdl_shown { char s[48]; } tsdl_show(const struct tsdl_lexer *, const struct tsdl_token *);

/* Right side of `name = value;` */
struct tsdl_value {
    enum { TSDL_VALUE_NONE, TSDL_VALUE_NUMBER, TSDL_VALUE_TEXT, TSDL_VALUE_PATH } kind;
    bool negative;
    uint64_t u;                     /* magnitude as 64 bits of two's complement */
    struct tsdl_token t;            /* text (word or string); first token of the rest */
    const char *end;                /* end of the value */
    struct tsdl_token part[3]; size_t n_parts;  /* path: its first three parts, number of parts */
};
/* Reads the value and the ';' after it. Anything else is skipped and TSDL_VALUE_NONE. */
void tsdl_value(struct tsdl_lexer *, struct tsdl_value *);
/* Reads true, TRUE, yes, 1 … or their opposites; false if it is neither. */
bool tsdl_value_bool(const struct tsdl_value *, bool *out);
bool tsdl_value_is(const struct tsdl_value *, const char *text);
bool tsdl_uuid(const char *s, uint8_t out[16]);
/* 0 little endian, 1 big endian, 2 native, -1 none of these. */
int tsdl_byte_order(const struct tsdl_value *);

/* ---- scan ---- */

/* Returns the first byte after the '}' that closes the block whose inside begins at p; NULL if the text ends first. */
const char *tsdl_block_end(const char *p, const char *end);

struct tsdl_span { const char *begin, *end; };
/* Parts of a metadata text. In CTF 2 (ctf2.h), statements are fragments. `own`: preamble, trace class and clock
 * classes; `shared`: the rest, and the packet header's field class of the trace class. Data stream classes are in
 * both. */
struct tsdl_scan {
    bool is_ctf2;
    struct tsdl_span header;        /* CTF 2: the packet header's field class, in `shared` too; begin NULL: none */
    const char *end;                /* end of the last whole statement */
    bool cut;                       /* an incomplete statement came after it */
    size_t n_declarations;          /* stream and event blocks */
    struct tsdl_span trace;         /* block from `trace` to its '}'; begin NULL if there is none */
    struct tsdl_token uuid;         /* kind TSDL_END if not given */
    int byte_order;                 /* result of tsdl_byte_order, -1 not given */
    VEC(struct tsdl_span) own;      /* env and clock blocks, in order, each from its word to the end of its '}' */
    VEC(struct tsdl_span) shared;   /* rest without the trace's uuid: makes the schema */
};
int tsdl_scan(const char *text, size_t n, struct tsdl_scan *, struct err *e);
/* Repairs an unreadable text: adds backslashes before the double quotes within labels of enumerations on lines of their
 * own, as LTTng writes them; line numbers stay. NULL: there are no such labels. free() it. */
char *tsdl_mend_labels(const char *text, size_t n, size_t *mended_n, size_t *first_line);
void tsdl_scan_fini(struct tsdl_scan *);

/* ---- declarations ---- */

struct tsdl_decl;
struct tsdl_binding {               /* a name that means a type in some block */
    struct tsdl_binding *outer;     /* older binding of the same name */
    struct tsdl_binding *sibling;   /* previous binding of the block */
    struct tsdl_name *name;
    struct tsdl_decl *decl;
    uint32_t level;
    uint8_t space;                  /* enum tsdl_space */
};
/* FIELD: the struct being declared that has such a field. */
enum tsdl_space { TSDL_ALIAS, TSDL_STRUCT, TSDL_VARIANT, TSDL_ENUM, TSDL_FIELD };

struct tsdl_name {                  /* interned: equal spelling, equal pointer */
    struct tsdl_name *next;
    const char *s;                  /* text in the schema's arena */
    uint32_t n, hash;
    uint32_t mark, mark_value;      /* scratch marks to find duplicates and options without tables */
    struct tsdl_binding *bindings;
};

/* Path of a length or tag. home: the innermost struct around the type's declaration that has a field with the path's
 * first name before it. NULL: none; the field is then searched where the type is used. */
struct tsdl_path { const char *at; const struct tsdl_decl *home; uint32_t n; struct tsdl_name *part[]; };
enum tsdl_shown_as { TSDL_SHOWN_UNKNOWN, TSDL_SHOWN_WHOLE, TSDL_SHOWN_BARE }; /* BARE: without its first underscore */
struct tsdl_member { struct tsdl_name *name; struct tsdl_decl *type; const char *at; enum tsdl_shown_as shown; };

struct ctf2_location;
/* Option of a variant, or flag or label: values of any signedness. */
struct ctf2_range { __int128 lo, hi; uint32_t option; const char *at; };

struct tsdl_decl {                  /* like ctf_type, but references are still names; may be used many times */
    uint8_t kind, base;
    bool is_signed, big_endian, is_text;
    bool is_reversed, is_leb, is_blob, is_optional; /* CTF 2 */
    uint8_t look, encoding;
    uint16_t roles;                 /* bit per enum ctf_role; CLOCK in packet contexts, too */
    const char *media_type;
    const struct ctf2_location *location; /* CTF 2: instead of a path */
    struct ctf2_range *options;     /* CTF 2: options of variants, and of optionals that integers select */
    uint32_t n_options;
    uint32_t align_bits;            /* structs: minimum */
    int64_t size_bits;              /* integers, floats, enumerations */
    int32_t clock;
    uint32_t n;
    const char *at;
    struct tsdl_member *members;    /* struct, variant */
    struct ctf_range *ranges; struct tsdl_name **labels;
    struct tsdl_decl *element;      /* array, sequence; container of an enumeration */
    struct tsdl_path *path;         /* length of a sequence, tag of a variant (NULL: not yet given) */
    const struct tsdl_decl *copy_of; /* original of a struct copied with another alignment, or NULL */
};

struct tsdl_stream {
    uint64_t id;
    bool has_id;
    const char *at;
    struct tsdl_decl *packet_context, *event_header, *event_context;
    int32_t clock;                  /* CTF 2: number of the default clock, else -1 */
};
struct tsdl_event {
    const char *name, *model_uri, *at;
    uint64_t id, stream_id;
    bool has_id, has_stream_id;
    int64_t loglevel;
    struct tsdl_decl *context, *fields;
};

struct tsdl_parser {
    struct tsdl_lexer lex;
    struct ctf_schema *schema;      /* names and strings go to its arena */
    struct arena temp;
    const struct tsdl_scan *scan;
    struct tsdl_name **table; size_t table_n, n_names;
    uint32_t mark;
    struct tsdl_binding *block;     /* bindings of the innermost block, newest first */
    uint32_t level, depth;
    struct tsdl_decl *packet_header;
    VEC(struct tsdl_stream) streams;
    VEC(struct tsdl_event) events;
    VEC(const char *) clock_names;
    size_t n_warnings_dropped;
    VEC(struct ctf_schema_warning) warnings;
};

struct tsdl_name *tsdl_intern(struct tsdl_parser *, const char *s, size_t n);
/* Returns the interned name; NULL: no such name was interned. */
struct tsdl_name *tsdl_interned(const struct tsdl_parser *, const char *s, size_t n);
/* Interns a word, or the contents of a string. */
struct tsdl_name *tsdl_intern_token(struct tsdl_parser *, const struct tsdl_token *);
void tsdl_warn(struct tsdl_parser *, const char *at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Opens a block of names. Returns the argument for tsdl_leave. */
struct tsdl_binding *tsdl_enter(struct tsdl_parser *);
void tsdl_leave(struct tsdl_parser *, struct tsdl_binding *outer);
/* Binds a name to a type until the block is left. `at`: place of the error if the block has that name already (not for
 * fields, whose names are compared when their struct is complete). */
void tsdl_bind(struct tsdl_parser *, const char *at, struct tsdl_name *, enum tsdl_space, struct tsdl_decl *);
/* Returns the innermost type of that name, or NULL. */
struct tsdl_decl *tsdl_find(const struct tsdl_name *, enum tsdl_space);
/* Returns the innermost type of that name; fails if there is none. */
struct tsdl_decl *tsdl_look_up(struct tsdl_parser *, const char *at, const struct tsdl_name *, enum tsdl_space);
/* Parses typealias, typedef, struct, variant and enum declarations, with the ';'. False if the current token starts
 * none. */
bool tsdl_declaration(struct tsdl_parser *);
/* Parses the right side of `fields := TYPE`, without the ';'. NULL after failure. */
struct tsdl_decl *tsdl_type(struct tsdl_parser *);
/* Returns the number of a clock name in the schema. "" is the trace's only clock, for times without a mapping. */
int32_t tsdl_clock(struct tsdl_parser *, const char *name, size_t n);

/* Fills the schema from the declarations (tsdl_resolve.c). */
void tsdl_resolve(struct tsdl_parser *);

/* Makes a new schema for a text, or returns NULL with the error. ctf_schema_free it. */
struct ctf_schema *tsdl_schema_new(const char *text, const struct tsdl_scan *, struct err *e);

/* ---- sharing ---- */

struct ctf_schemas;
/* Returns the schema of the scanned text, with one more reference. `schemas` may be NULL: then the schema is the
 * caller's own. */
struct ctf_schema *ctf_schemas_get(struct ctf_schemas *, const char *text, const struct tsdl_scan *, struct err *e);
void ctf_schemas_put(struct ctf_schemas *, struct ctf_schema *);

#endif
