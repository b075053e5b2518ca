/* SPDX-License-Identifier: MIT */
/* Private to ctf: how declarations become types: every use gets its own types, lengths and tags find their fields. */
#ifndef WEFT_CTF_TSDL_RESOLVER_H
#define WEFT_CTF_TSDL_RESOLVER_H

#include "ctf/ctf2.h"
#include "ctf/tsdl.h"

/* Where slots are numbered: those of the packet header count for all, those of a stream's scopes for its events, the
 * rest for one event. The first two are numbered upwards, in the order in which they are needed, those of an event
 * downwards from the last: an event class that is added later, and refers to one more number of a header, changes no
 * slot of the classes before. */
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
    enum ctf_scope scope;                     /* being made */
    const struct ctf_type *roots[CTF_SCOPES]; /* made already */
    uint32_t stream;                          /* number of the stream whose scopes are being made */
    uint32_t n_trace, n_event, *n_stream;     /* last slots used; of an event: how many */
    uint32_t n_headers;                       /* the greatest of n_trace and all n_stream */
    size_t event_targets;                     /* targets from here on are of the event that is being made */
    size_t *stream_types;                     /* types in the scopes of each stream */
    size_t n_types;
    uint64_t compared; /* names, to find lengths and tags */
    VEC(struct target) targets;
    VEC(struct ctf_ref *) refs;
    VEC(struct ctf_type *) found;             /* CTF 2: the fields that a location may mean */
    bool found_misses;                        /* none of them may be there */
};

bool resolver_count(struct resolver *, const char *at, size_t n); /* types; false: more than there may be */
/* The length of a sequence, or the tag of a variant; NULL after failure. */
struct ctf_ref *tsdl_make_ref(struct resolver *, const struct tsdl_path *, bool is_tag);
/* Which value of the tag selects which option: by the tag's labels. */
void tsdl_make_choices(struct resolver *, const struct tsdl_decl *, struct ctf_ref *);
/* CTF 2: the same by a field location; a variant's with its choices. */
struct ctf_ref *ctf2_make_ref(struct resolver *, const struct tsdl_decl *);
/* CTF 2: the roles of a declaration, where they have a place, become the type's. */
bool ctf2_take_roles(struct resolver *, const struct tsdl_decl *, struct ctf_type *);
/* Gives the target of a reference the slot; 0: a new one. */
uint32_t resolver_slot(struct resolver *, struct ctf_type *, const char *at, enum ctf_scope, uint32_t slot);

#endif
