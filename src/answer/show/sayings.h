/* SPDX-License-Identifier: MIT */
/* Private to show: words for people. Text from a trace is made safe and cut. */
#ifndef WEFT_SHOW_SAYINGS_H
#define WEFT_SHOW_SAYINGS_H

#include "show/parts.h"

struct text;

enum { SAY_HOST_CELLS = 24, SAY_NAME_CELLS = 16, SAY_DETAIL_CELLS = 24 };

void show_say_name(struct text *, const char *name, size_t cells);
/* Writes the activity, to follow its thread: "computed", "waited for disk vda". */
void show_say_done(struct text *, const struct show_part *);
/* Writes "204 tier" if one thread did most of it, else "12 × rank"; "interrupts", "messages". */
void show_say_who(struct text *, const struct show_kind *);
/* Time of the thread in show_say_who, or of all. */
int64_t show_said_time(const struct show_kind *);
void show_say_time(struct text *, const struct show_kind *);
/* Writes why a wait is unexplained: "not known: a node is away: db". */
void show_say_reason(struct text *, const struct show_part *);

#endif
