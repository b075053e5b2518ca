/* SPDX-License-Identifier: MIT */
/* Private to the room: the condition of a node, an entry of the table of nodes beside its own entry. It says what that
 * cannot: whether it has all that the node was given, and what the node understands. Nodes of releases before
 * conditions have none. */
#ifndef WEFT_CLUSTER_CONDITION_H
#define WEFT_CLUSTER_CONDITION_H

#include "base/wire.h"
#include "cluster/missing.h"
#include "cluster/protocol.h"

enum condition_state {
    CONDITION_OPENING,       /* no traces were opened yet */
    CONDITION_OPEN,
    CONDITION_FAILED         /* the last opening failed: `text` */
};
enum { MOST_PROBLEMS = 8 };
struct condition {
    const char *node, *instance, *release; /* release: of the program, "" */
    uint64_t serial;         /* of the entry that it goes with */
    unsigned oldest, newest; /* versions of questions that the node answers */
    int state;
    const char *text;
    /* What of the traces could not be read, at most MOST_PROBLEMS; how many there are. */
    const char *const *problems; size_t n_problems, all_problems;
};
void cluster_condition_write(const struct condition *, struct text *out);
/* What it points to lives in the arena. Bytes that follow what is known here are skipped. ERR_FORMAT. */
int cluster_condition_read(struct arena *, const void *bytes, size_t n, struct condition *out, struct err *e);

/* A text, cut; read without control characters, so that terminals may show it. */
void cluster_condition_put_text(struct text *, const char *);
const char *cluster_condition_take_text(struct wire_in *, struct arena *);

/* The key of a node's condition, from its entry's. ERR_LIMIT. */
int cluster_condition_key(const char *entry_key, char out[CLUSTER_SUBJECT], struct err *e);
/* Length of the entry's key that the key of a condition begins with; 0: it is none. */
size_t cluster_condition_key_is(const char *key);

/* What the registry says of a node: entries that were read, with their revisions; NULL: there is none. */
struct registration {
    const char *node;
    const struct cluster_entry *entry;
    const char *refused;     /* why the entry was not taken, or NULL */
    bool other_version;      /* refused for its version */
    const struct condition *condition;
    uint64_t entry_revision, condition_revision;
};
struct missing_list { struct cluster_missing *v; size_t n, cap; };
/* Adds what is missing of the node. Texts live in the arena. */
void cluster_condition_missing(const struct registration *, struct arena *, struct missing_list *);

#endif
