/* SPDX-License-Identifier: MIT */
/* Private to coord: pieces of one machine's session on several servers, as rotation leaves them. What the pieces say is
 * folded into what one server would say that has the whole session; the rest of the coordinator then sees one part, of
 * `self` of the group, whose times are those of everybody and whose ids of entries are keys.
 *
 * A key is an entry's id on the first piece that has it. Servers whose ids tell what an entry is (weft's: numbers above
 * PIECE_CONTENT) mostly agree; else entries are one when their labels and those above them are the same, and what is
 * known of their times does not forbid it. */
#ifndef WEFT_COORD_PIECES_H
#define WEFT_COORD_PIECES_H

#include "coord/merge.h"
#include "coord/times.h"

#define PIECE_CONTENT (INT64_C(1) << 32)

/* The groups of the configuration; to be called once the nodes of the configuration are there. */
void pieces_start(struct coordinator *);
void pieces_stop(struct coordinator *);

/* The group that the server's answer to the request at hand belongs to; NULL: none, it stands for itself. */
struct piece_group *piece_group_of(const struct coord_call *, const struct node *);
/* Who it is to clients: the name of its group, or its own. */
const char *machine_name(const struct node *);
/* Are the members more than pieces of one machine's session? */
bool machines_several(const struct coord_call *);

/* The key of a piece's entry, in the output at hand. */
int64_t piece_key(struct coord_call *, const struct node *, int64_t own);
/* The piece's own id of what has the key; false: it has no such entry. */
bool piece_own(struct coord_call *, const struct node *, int64_t key, int64_t *own);
void piece_note_key(struct coord_call *, const struct node *, int64_t own, int64_t key);
/* Was a tree of the output at hand seen of it? Only then are all its keys known. */
bool piece_is_known(struct coord_call *, const struct node *);
void piece_note_known(struct coord_call *, const struct node *);

/* ---- a group as it takes part in a request ---- */

/* part: its place in the fan; NULL: it has nothing to merge. lacks: nobody knows what it would say. The range is by
 * everybody's clock. */
struct coord_piece { struct node *node; struct fan_part *part; bool lacks; struct time_range range; };
/* The members of a group in order of time. whole: the times of all are known, and all can
 * have something to say. */
struct coord_pieces { struct piece_group *group; struct coord_piece *v; size_t n; bool whole; };
/* All groups that have members; asks those whose times are not known. */
size_t pieces_find(struct coord_call *, struct coord_pieces **out);
/* Of several pieces only the one that has the time is a member from now on. */
void pieces_keep(struct coord_call *, int64_t t);
/* The piece that has a time: the last that begins by then; else the first. */
size_t pieces_at(const struct coord_pieces *, int64_t t);

/* After envelopes_open, before anything is merged. */
void pieces_fold_tree(struct fan *);
/* rows of "states" or "series". */
void pieces_fold_states(struct fan *);
void pieces_fold_series(struct fan *);
/* The body that asks a piece for states: of the samples, those in its stretch, and its end if some come later. NULL: it
 * has nothing to say. */
const char *piece_states_body(struct coord_call *, const struct coord_pieces *, size_t piece, json_t *items);

/* The samples of the request, ascending; NULL: they are not known. */
const int64_t *samples_asked(struct coord_call *, size_t *n);

/* Folding: the parts of the pieces, each with its part of the fan (or NULL). */
size_t pieces_of_fan(struct fan *, struct coord_pieces **out);
/* Is nobody missing of those between two, who might know more? */
bool pieces_all_there(const struct coord_pieces *, size_t from, size_t to);
/* The text, which is moved, becomes the model of the group's first part, the others have none. */
void pieces_put(struct fan *, struct coord_pieces *, struct text *);

/* piece_cells.c: an entry's labels and metadata, of the pieces that have it. */
struct piece_entry { struct slice *of; /* by piece; at NULL: it has none */ };
struct piece_cells {
    struct coord_call *call; const struct coord_pieces *pieces;
    struct slice header[64]; size_t n; /* objects */
    struct merge_rule *rule; bool timed[64]; /* how they are merged; their labels are times */
    uint16_t (*place)[64]; size_t *n_place; /* by piece: where its columns are */
};
void piece_cells_begin(struct piece_cells *, struct coord_call *, const struct coord_pieces *);
/* root: the entry at the top above it, which tells sums. */
void piece_put_labels(struct json *, const struct piece_cells *, const struct piece_entry *,
    const struct piece_entry *root);
void piece_put_metadata(struct json *, const struct piece_cells *, const struct piece_entry *);

/* A series like another one, under another id and name (NULL: its own), with these points, written as arrays. */
void put_series_like(struct json *, struct slice series, int64_t id, const char *name, const struct text *x,
    const struct text *y);
/* Asks all for the tree of the output at hand, pieces as one. False: nobody waits any more. */
bool trees_ask(struct fan *, struct coord_call *);

#endif
