/* SPDX-License-Identifier: MIT */
/* Progress line on stderr, only on a terminal and only for work longer than a second. Thread-safe. */
#ifndef WEFT_BASE_PROGRESS_H
#define WEFT_BASE_PROGRESS_H

#include <stdint.h>

struct progress;
struct progress *progress_new(const char *what);     /* NULL-safe in all functions below */
struct progress *progress_silent(void);             /* shows nothing: for progress_read */
void progress_total(struct progress *, uint64_t units);
void progress_count(struct progress *, uint64_t items);  /* for small numbers: shown as "3 of 1000" */
void progress_hide(struct progress *);                /* clears the line, for other output */
void progress_add(struct progress *, uint64_t units); /* units are bytes or events; shown with rate and time left */
/* Units done and total; total: 0 while unknown. */
void progress_read(const struct progress *, uint64_t *done, uint64_t *total);
void progress_free(struct progress *);                /* clears the line */

#endif
