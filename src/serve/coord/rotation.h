/* SPDX-License-Identifier: MIT */
/* Private to coord: pieces of one machine's session on several servers, from rotation. The answers of the pieces are
 * folded into the answer of one server with the whole session. The rest of the coordinator then sees one part, of
 * `self` of the rotation, with common times and with keys as ids of entries.
 *
 * A key is an entry's id on the first piece that has it. Servers whose ids depend on content (weft's: numbers above
 * PIECE_CONTENT) mostly agree. Otherwise entries are the same if their labels and ancestors are the same, unless their
 * known times contradict it. */
#ifndef WEFT_COORD_ROTATION_H
#define WEFT_COORD_ROTATION_H

#include "coord/entries.h"
#include "coord/experiments.h"
#include "coord/merge.h"
#include "coord/times.h"

#define PIECE_CONTENT (INT64_C(1) << 32)

/* Set up and free the configured rotations and groups; call it once the nodes of the configuration exist. */
void coord_rotations_start(struct coordinator *);
void coord_rotations_stop(struct coordinator *);

/* Returns the rotation that the server's answer to this request belongs to; NULL: none, the server stands for
 * itself. */
struct coord_virtual_node *coord_rotation_of(const struct coord_call *, const struct node *);
/* Returns the name for clients: of its rotation, or its own. */
const char *coord_machine_name(const struct node *);
/* Returns whether the members are more than pieces of one machine's session. */
bool coord_machines_several(const struct coord_call *);

/* Returns the key of a piece's entry, in the request's output. */
int64_t coord_piece_key(struct coord_call *, const struct node *, int64_t own);
/* Finds the piece's own id for the key; false: it has no such entry. */
bool coord_piece_own(struct coord_call *, const struct node *, int64_t key, int64_t *own);
void coord_piece_note_key(struct coord_call *, const struct node *, int64_t own, int64_t key);
/* Returns whether a tree of the request's output was seen from the piece. Only then are all its keys known. */
bool coord_piece_is_known(struct coord_call *, const struct node *);
void coord_piece_note_known(struct coord_call *, const struct node *);

/* ---- rotations in a request (rotation_find.c) ---- */

/* Piece. part: its answer; NULL: nothing to merge. missing: its answer is. The range is in common
 * times. */
struct coord_piece { struct node *node; struct coord_answer *part; bool missing; struct time_range range; };
/* Members of a rotation in order of time. whole: the times of all are known, and all may have data. */
struct coord_rotation { struct coord_virtual_node *of; struct coord_piece *v; size_t n; bool whole; };
/* Returns all rotations that have members; asks members whose times are unknown. */
size_t coord_rotations_find(struct coord_call *, struct coord_rotation **out);
/* Drops all members of rotations but the pieces that have the time. */
void coord_rotations_keep(struct coord_call *, int64_t t);
/* Returns the piece that has a time: the last one that begins by then; else the first. */
size_t coord_rotation_at(const struct coord_rotation *, int64_t t);

/* Folds trees; called after coord_envelopes_open, before anything is merged. */
void coord_rotation_fold_tree(struct coord_answers *);
/* Fold rows of "states" or "series". */
void coord_rotation_fold_states(struct coord_answers *);
void coord_rotation_fold_series(struct coord_answers *);
/* Returns the body that asks a piece for states: samples in its range, and its end if some samples are later. NULL: the
 * piece has nothing to report. */
const char *coord_rotation_states_body(struct coord_call *, const struct coord_rotation *, size_t piece, json_t *items);

/* Folding: returns the pieces with their answers (or NULL). */
size_t coord_rotations_of(struct coord_answers *, struct coord_rotation **out);
/* Returns whether no answer is missing from the pieces from .. to - 1, which might know more. */
bool coord_rotation_is_there(const struct coord_rotation *, size_t from, size_t to);
/* Makes the text, which is moved, the model of the rotation's first answer; the other parts get none. */
void coord_rotation_put(struct coord_answers *, struct coord_rotation *, struct text *);

/* rotation_cells.c: labels and metadata of an entry, from the pieces that have it. */
struct piece_entry { struct slice *of; /* slices by piece; at NULL: not there */ };
struct rotation_cells {
    struct coord_call *call; const struct coord_rotation *pieces;
    struct slice header[64]; size_t n; /* objects */
    struct merge_rule *rule; bool timed[64]; /* rules of the columns; their labels are times */
    uint16_t (*place)[64]; size_t *n_place; /* places of its columns, by piece */
};
void coord_rotation_cells_begin(struct rotation_cells *, struct coord_call *, const struct coord_rotation *);
/* Writes the labels. root: the topmost ancestor, which states sums. */
void coord_rotation_put_labels(struct json *, const struct rotation_cells *, const struct piece_entry *,
    const struct piece_entry *root);
void coord_rotation_put_metadata(struct json *, const struct rotation_cells *, const struct piece_entry *);

/* Writes a series with another id and name (NULL: its own) and these points, which are text of arrays. */
void coord_put_series_like(struct json *, struct slice series, int64_t id, const char *name, const struct text *x,
    const struct text *y);
#endif
