/* SPDX-License-Identifier: MIT */
/* Private to coord: pieces of one machine's session on several servers, from rotation. The answers of the pieces are
 * folded into the answer of one server with the whole session. The rest of the coordinator then sees one part, of
 * `self` of the group, with common times and with keys as ids of entries.
 *
 * A key is an entry's id on the first piece that has it. Servers whose ids depend on content (weft's: numbers above
 * PIECE_CONTENT) mostly agree. Otherwise entries are the same if their labels and ancestors are the same, unless their
 * known times contradict it. */
#ifndef WEFT_COORD_PIECES_H
#define WEFT_COORD_PIECES_H

#include "coord/merge.h"
#include "coord/times.h"

#define PIECE_CONTENT (INT64_C(1) << 32)

/* Sets up the configured groups; call it once the nodes of the configuration exist. */
void pieces_start(struct coordinator *);
void pieces_stop(struct coordinator *);

/* Returns the group that the server's answer to this request belongs to; NULL: none, the server stands for itself. */
struct piece_group *piece_group_of(const struct coord_call *, const struct node *);
/* Returns the name for clients: of its group, or its own. */
const char *machine_name(const struct node *);
/* Returns whether the members are more than pieces of one machine's session. */
bool machines_several(const struct coord_call *);

/* Returns the key of a piece's entry, in the request's output. */
int64_t piece_key(struct coord_call *, const struct node *, int64_t own);
/* Finds the piece's own id for the key; false: it has no such entry. */
bool piece_own(struct coord_call *, const struct node *, int64_t key, int64_t *own);
void piece_note_key(struct coord_call *, const struct node *, int64_t own, int64_t key);
/* Returns whether a tree of the request's output was seen from the piece. Only then are all its keys known. */
bool piece_is_known(struct coord_call *, const struct node *);
void piece_note_known(struct coord_call *, const struct node *);

/* ---- groups in a request ---- */

/* Piece. part: its part of the fan; NULL: nothing to merge. lacks: its answer is missing. The range is in common
 * times. */
struct coord_piece { struct node *node; struct fan_part *part; bool lacks; struct time_range range; };
/* Members of a group in order of time. whole: the times of all are known, and all may have data. */
struct coord_pieces { struct piece_group *group; struct coord_piece *v; size_t n; bool whole; };
/* Returns all groups that have members; asks members whose times are unknown. */
size_t pieces_find(struct coord_call *, struct coord_pieces **out);
/* Drops all members of groups but the pieces that have the time. */
void pieces_keep(struct coord_call *, int64_t t);
/* Returns the piece that has a time: the last one that begins by then; else the first. */
size_t pieces_at(const struct coord_pieces *, int64_t t);

/* Folds trees; called after envelopes_open, before anything is merged. */
void pieces_fold_tree(struct fan *);
/* Fold rows of "states" or "series". */
void pieces_fold_states(struct fan *);
void pieces_fold_series(struct fan *);
/* Returns the body that asks a piece for states: samples in its range, and its end if some samples are later. NULL: the
 * piece has nothing to report. */
const char *piece_states_body(struct coord_call *, const struct coord_pieces *, size_t piece, json_t *items);

/* Returns the samples of the request, ascending; NULL: unknown. */
const int64_t *samples_asked(struct coord_call *, size_t *n);

/* Folding: returns the pieces with their parts of the fan (or NULL). */
size_t pieces_of_fan(struct fan *, struct coord_pieces **out);
/* Returns whether no answer is missing from the pieces from .. to - 1, which might know more. */
bool pieces_all_there(const struct coord_pieces *, size_t from, size_t to);
/* Makes the text, which is moved, the model of the group's first part; the other parts get none. */
void pieces_put(struct fan *, struct coord_pieces *, struct text *);

/* piece_cells.c: labels and metadata of an entry, from the pieces that have it. */
struct piece_entry { struct slice *of; /* slices by piece; at NULL: not there */ };
struct piece_cells {
    struct coord_call *call; const struct coord_pieces *pieces;
    struct slice header[64]; size_t n; /* objects */
    struct merge_rule *rule; bool timed[64]; /* rules of the columns; their labels are times */
    uint16_t (*place)[64]; size_t *n_place; /* places of its columns, by piece */
};
void piece_cells_begin(struct piece_cells *, struct coord_call *, const struct coord_pieces *);
/* Writes the labels. root: the topmost ancestor, which states sums. */
void piece_put_labels(struct json *, const struct piece_cells *, const struct piece_entry *,
    const struct piece_entry *root);
void piece_put_metadata(struct json *, const struct piece_cells *, const struct piece_entry *);

/* Writes a series with another id and name (NULL: its own) and these points, which are text of arrays. */
void put_series_like(struct json *, struct slice series, int64_t id, const char *name, const struct text *x,
    const struct text *y);
/* Asks all members for the tree of the request's output; folds pieces. False: the client is gone. */
bool trees_ask(struct fan *, struct coord_call *);

#endif
