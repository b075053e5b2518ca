/* Private to show: what the writers share. */
#ifndef WEFT_SHOW_ROWS_H
#define WEFT_SHOW_ROWS_H

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "path/path.h"
#include "show/show.h"

/* A row of the picture: a thread (or a CPU's interrupt context) that the path visits. */
struct show_row {
    struct path_row row;
    const char *host, *comm;
    int32_t tid;
    int64_t total;           /* ns of the path on it */
    bool first_of_host;
};
struct show {
    const struct path *path;
    const struct path_source *source;
    VEC(struct show_row) rows;  /* machines in order of appearance, in each its rows in order of appearance */
    struct map index;           /* row -> position in rows */
    size_t hosts;
};

void show_init(struct show *, const struct path *, const struct path_source *);
void show_fini(struct show *);
/* Position of a row, or SIZE_MAX when the path does not visit it. */
size_t show_find(const struct show *, struct path_row);
/* "client:204 tier", "n2 interrupt". At most `n` bytes, always terminated. */
const char *show_name(const struct path_source *, struct path_row, char *buf, size_t n);

/* 0xRRGGBB of a state (reference: the project's table of state colours, for light backgrounds). */
unsigned show_color(int state);
/* A name from a trace for a terminal: control characters and broken UTF-8 become "?". At most `cells` cells, the last
 * "…" when it was cut. */
void show_text(struct text *, const char *s, size_t cells);
/* The same for XML, uncut, with markup escaped. */
void show_xml(struct text *, const char *s);

/* A pleasant distance between ticks: 1, 2 or 5 times a power of ten, at least span / count. */
int64_t show_tick(int64_t span, int count);

#endif
