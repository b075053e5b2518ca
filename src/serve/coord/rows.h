/* SPDX-License-Identifier: MIT */
/* Private to coord: merging of the data of entries, and of styles. */
#ifndef WEFT_COORD_ROWS_H
#define WEFT_COORD_ROWS_H

#include "coord/gather.h"

/* Write the merged model; null: no server has data. Pieces are folded, and lines of groups added. Invalid answers are
 * dropped and noted. */
coord_merge coord_merge_states, coord_merge_series;
coord_merge coord_merge_arrows;
/* Members or items of all servers, each once. */
coord_merge coord_merge_styles, coord_merge_categories, coord_merge_marker_sets, coord_merge_annotations;
/* Writes the tooltip of the only answer. */
coord_merge coord_merge_tips;

#endif
