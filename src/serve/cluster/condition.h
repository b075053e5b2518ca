/* SPDX-License-Identifier: MIT */
/* Private to the room: the condition of a node, a second entry in the table of nodes. It has what the first one cannot:
 * whether that entry covers all that the node was given, and what the node understands. Older releases have none. */
#ifndef WEFT_CLUSTER_CONDITION_H
#define WEFT_CLUSTER_CONDITION_H

#include "base/wire.h"
#include "cluster/missing.h"
#include "cluster/protocol.h"

enum condition_state {
    CONDITION_OPENING,       /* traces were not opened yet */
    CONDITION_OPEN,
    CONDITION_FAILED         /* last opening failed: `text` */
};
enum { MOST_PROBLEMS = 8 };
struct condition {
    const char *node, *instance, *release; /* release: of the program, or "" */
    uint64_t serial;         /* serial of the entry that it belongs to */
    unsigned oldest, newest; /* versions of questions that the node answers */
    int state;
    const char *text;
    /* Unreadable parts of the traces, at most MOST_PROBLEMS; all_problems: their full number. */
    const char *const *problems; size_t n_problems, all_problems;
};
void cluster_condition_write(const struct condition *, struct text *out);
/* Reads it; pointers lead into the arena. Unknown bytes at the end are skipped. ERR_FORMAT. */
int cluster_condition_read(struct arena *, const void *bytes, size_t n, struct condition *out, struct err *e);

/* Writes a text, cut; read without control characters, so that terminals may show it. */
void cluster_condition_put_text(struct text *, const char *);
const char *cluster_condition_take_text(struct wire_in *, struct arena *);

/* Makes the key of a node's condition from that of its entry. ERR_LIMIT. */
int cluster_condition_key(const char *entry_key, char out[CLUSTER_SUBJECT], struct err *e);
/* Returns the length of the entry's key at the begin of a condition's key; 0: not a condition's key. */
size_t cluster_condition_key_is(const char *key);

/* Entries of a node in the registry, with their revisions; NULL: absent. */
struct registration {
    const char *node;
    const struct cluster_entry *entry;
    const char *refused;     /* reason why the entry was refused, or NULL */
    bool other_version;      /* refused because of its version */
    const struct condition *condition;
    uint64_t entry_revision, condition_revision;
};
struct missing_list { struct cluster_missing *v; size_t n, cap; };
/* Adds the missing parts of the node. Texts live in the arena. */
void cluster_condition_missing(const struct registration *, struct arena *, struct missing_list *);

#endif
