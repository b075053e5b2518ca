/* SPDX-License-Identifier: MIT */
/* Private to ctf: turns declarations into types: every use gets its own types, lengths and tags find their fields. */
#ifndef WEFT_CTF_TSDL_RESOLVER_H
#define WEFT_CTF_TSDL_RESOLVER_H

#include "ctf/ctf2.h"
#include "ctf/tsdl.h"

/* Scope of slot numbers: slots of the packet header count for all, those of a stream's scopes for its events, the rest
 * for one event. The first two are numbered upwards, in order of first use, those of an event downwards from the last.
 * An event class added later that refers to one more number of a header changes no slot of earlier classes. */
enum slot_level { LEVEL_TRACE, LEVEL_STREAM, LEVEL_EVENT };

struct target {
    struct ctf_type *type;
    const char *at;
    uint32_t stream;
    uint8_t level;
};

struct resolver {
    struct tsdl_parser *p;
    struct ctf_schema *schema;
    struct {
        const struct tsdl_decl *decl;
        struct ctf_type *type;
        uint32_t index;
    } frames[CTF_DEPTH]; /* compounds being made, with the member being made */
    uint32_t depth;
    enum ctf_scope scope;                     /* current scope */
    const struct ctf_type *roots[CTF_SCOPES]; /* finished scopes */
    uint32_t stream;                          /* number of the stream whose scopes are in progress */
    uint32_t n_trace, n_event, *n_stream;     /* last slots used; n_event: number of slots of the event */
    uint32_t n_headers;                       /* maximum of n_trace and all n_stream */
    size_t event_targets;                     /* first target of the current event */
    size_t *stream_types;                     /* types in the scopes of each stream */
    size_t n_types;
    uint64_t compared; /* names, to find lengths and tags */
    VEC(struct target) targets;
    VEC(struct ctf_ref *) refs;
    VEC(struct ctf_type *) found;             /* CTF 2: fields that a location may mean */
    bool found_misses;                        /* fields found may all be absent */
};

bool resolver_count(struct resolver *, const char *at, size_t n); /* adds types; false: above the limit */
/* Makes the reference for the length of a sequence, or the tag of a variant; NULL after failure. */
struct ctf_ref *tsdl_make_ref(struct resolver *, const struct tsdl_path *, bool is_tag);
/* Maps values of the tag to options by the tag's labels. */
void tsdl_make_choices(struct resolver *, const struct tsdl_decl *, struct ctf_ref *);
/* CTF 2: makes the reference from a field location, with a variant's choices. */
struct ctf_ref *ctf2_make_ref(struct resolver *, const struct tsdl_decl *);
/* CTF 2: gives the type the declaration's roles that are valid at this place. */
bool ctf2_take_roles(struct resolver *, const struct tsdl_decl *, struct ctf_type *);
/* Gives the target of a reference the slot; 0: a new one. */
uint32_t resolver_slot(struct resolver *, struct ctf_type *, const char *at, enum ctf_scope, uint32_t slot);

#endif
