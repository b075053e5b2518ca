/* SPDX-License-Identifier: MIT */
/* Private to kernel: storage of a host's rows. Pieces hold versions of rows; the newest version of a row counts. */
#ifndef WEFT_KERNEL_REGISTRY_H
#define WEFT_KERNEL_REGISTRY_H

#include "base/map.h"
#include "base/mem.h"
#include "kernel/rows.h"

struct store; struct store_writer;

enum { ROWS_VERSION = 1 };

struct rows_disk_head {
    uint64_t host;
    uint64_t first, last;  /* range of saves whose versions the piece holds */
    uint64_t n_rows;       /* number of the host's rows then */
};
/* Row on disk. The tid of an idle thread is -1 - its CPU. */
struct rows_disk_row {
    int64_t birth, begin, last, death, renumbered;
    uint64_t id;
    int32_t row, tid, later_tid;
    uint32_t name;         /* position in the text */
};
_Static_assert(sizeof(struct rows_disk_row) == 64, "layout of a row");
/* Spell: the row has a tid from that time on. */
struct rows_disk_spell { int64_t from; int32_t tid, row; };
_Static_assert(sizeof(struct rows_disk_spell) == 16, "layout of a spell");
struct rows_disk_id { uint64_t id; int32_t row, zero; };
_Static_assert(sizeof(struct rows_disk_id) == 16, "layout of an id");

/* Rows ascending; spells by tid, time, row; ids ascending. Values from files are not trusted: they may be unsorted, and
 * rows may not exist. */
struct rows_piece {
    uint64_t first, last;
    uint64_t n_rows;
    const struct rows_disk_row *rows;
    const struct rows_disk_spell *spells;
    const struct rows_disk_id *ids;
    const char *text;      /* begins with a NUL and ends with one */
    size_t n, n_spells, n_ids, n_text;
    struct store *store;   /* NULL: the piece owns its arrays */
};
/* Makes a piece; takes the rows and the text (memory of the caller), and sorts. */
struct rows_piece kernel_rows_piece_make(struct rows_disk_row *rows, size_t n, char *text, size_t n_text,
    uint64_t n_rows);
void kernel_rows_piece_free(struct rows_piece *);
int kernel_rows_piece_open(const char *path, uint64_t host, struct rows_piece *out, struct err *e);
/* Checks what kernel_rows_piece_open does not read. */
int kernel_rows_piece_check(const struct rows_piece *, const char *path, struct err *e);
/* Writes the newest versions of n pieces, which are in order, as one piece. */
int kernel_rows_pieces_write(const struct rows_piece *pieces, size_t n, const char *path, uint64_t host, struct err *e);
/* Version of the row in the piece, or NULL. O(log rows) */
const struct rows_disk_row *kernel_rows_piece_row(const struct rows_piece *, int32_t row);
/* Number of its spells before (tid, from, row). */
size_t kernel_rows_piece_spells_before(const struct rows_piece *, int32_t tid, int64_t from, int32_t row);

struct kernel_rows {
    char *directory;
    uint64_t host;
    uint64_t n_rows, n_saved;        /* n_saved: number of saves */
    VEC(int32_t) ended;              /* rows ended by the last resolve */
    VEC(struct rows_piece) pieces;   /* oldest first; those without a store are unsaved */
};

#endif
