/* SPDX-License-Identifier: MIT */
/* Private to show: words for people. What comes from a trace is made harmless and cut. */
#ifndef WEFT_SHOW_SAYINGS_H
#define WEFT_SHOW_SAYINGS_H

#include "show/parts.h"

struct text;

enum { SAY_HOST_CELLS = 24, SAY_NAME_CELLS = 16, SAY_DETAIL_CELLS = 24 };

void say_name(struct text *, const char *name, size_t cells);
/* What was done, after who did it: "computed", "waited for disk vda". */
void say_done(struct text *, const struct show_part *);
/* "204 tier" where one thread alone did most of it, else "12 × rank"; "interrupts", "messages". */
void say_who(struct text *, const struct show_kind *);
/* That thread's time, or that of all. */
int64_t said_time(const struct show_kind *);
void say_time(struct text *, const struct show_kind *);
/* Why a wait is not explained: "not known: a node is away: db". */
void say_reason(struct text *, const struct show_part *);

#endif
