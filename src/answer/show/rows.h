/* SPDX-License-Identifier: MIT */
/* Private to show: rows of a picture. */
#ifndef WEFT_SHOW_ROWS_H
#define WEFT_SHOW_ROWS_H

#include "base/map.h"
#include "base/mem.h"
#include "path/path.h"

/* Row of the picture: a thread (or a CPU's interrupt context) on the path. */
struct show_row {
    struct path_row row;
    const char *host, *comm;
    int32_t tid;
    int64_t total;           /* ns of the path on it */
    bool first_of_host;
};
struct show_rows {
    const struct path *path;
    const struct path_source *source;
    VEC(struct show_row) rows;  /* rows by machine, both in order of appearance */
    struct map index;           /* row -> position in rows */
    size_t hosts;
};

void show_rows_init(struct show_rows *, const struct path *, const struct path_source *);
void show_rows_fini(struct show_rows *);
/* Position of a row, or SIZE_MAX if it is not on the path. */
size_t show_row_find(const struct show_rows *, struct path_row);
/* Returns whether the row is among the `most` rows with most of the path; of equals the first ones are. */
bool show_row_is_among(const struct show_rows *, size_t row, size_t most);

#endif
