/* SPDX-License-Identifier: MIT */
/* Private to views: styles of states, one table for all clients, including the viewer. */
#ifndef WEFT_VIEWS_LOOKS_H
#define WEFT_VIEWS_LOOKS_H

#include "views/view.h"

/* Colours by meaning. Hatches and dots, which the protocol's styles do not have, are in the viewer, by style key. */
#define LOOK_RUNNING "#2e9e5b"
#define LOOK_SYSCALL "#3a6ea5"
#define LOOK_PREEMPTED "#d98e04"
#define LOOK_BLOCKED "#b5524a"
#define LOOK_NETWORK "#b45cc4"
#define LOOK_BLOCK_DEVICE "#6a4fb3"
#define LOOK_TIMER "#5f8aa8"
#define LOOK_INTERRUPTED "#e0c341"
#define LOOK_STOLEN "#c62828"
#define LOOK_HYPERVISOR "#8a5a2b"
#define LOOK_UNKNOWN "#6b6b6b"
#define LOOK_IDLE "#9aa0a6"
#define LOOK_ARROW "#7d8288"

/* Colours that distinguish values. */
enum { VIEW_PALETTE = 12 };
extern const char *const view_palette[VIEW_PALETTE];

/* Style; its key is also its name to users. */
struct view_look { const char *key, *color; double height, opacity /* 0: unset */; };
/* Adds styles to an open style map; skips those without a key. */
void view_write_looks(struct tsp_answer *, const struct view_look *, size_t n);

/* Members of struct view whose styles are an array of looks. */
#define VIEW_LOOKS(array) .looks = (array), .n_looks = sizeof(array) / sizeof *(array), .style = view_looks_style
view_operation view_looks_style;

/* Style key of an enum state_value; NULL for STATE_NONE. */
const char *view_state_key(int value);
/* Adds the styles of states to an open style map: those whose bit, 1 << enum state_value, is set. */
void view_write_state_styles(struct tsp_answer *, unsigned states);
#define VIEW_STATE(value) (1u << STATE_##value)

#endif
