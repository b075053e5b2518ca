/* SPDX-License-Identifier: MIT */
/* Catalogue: results of opening traces, kept in a file so that the next opening reads only new or changed parts. Part
 * of ctf.
 *
 *
 * A catalogue covers one tree of directories (struct ctf_root). Entries of directories unchanged for long are trusted
 * without checking the directory's files, as long as the tree still has that directory under its name. A file is
 * compared with its entry when its first packet is read; ERR_LOST reports a mismatch (ctf_trace_misled). The most
 * recently written directories are compared at once. */
#ifndef WEFT_CTF_CATALOGUE_H
#define WEFT_CTF_CATALOGUE_H

#include "ctf/ctf.h"

struct ctf_catalogue;
/* Creates an empty catalogue. */
struct ctf_catalogue *ctf_catalogue_new(void);
/* Loads a catalogue. ERR_NOTFOUND, ERR_FORMAT, ERR_STALE: there is no usable one. */
int ctf_catalogue_load(const char *path, struct ctf_catalogue **out, struct err *e);
/* Saves the catalogue; call after the groups found with it have been opened. */
int ctf_catalogue_save(const struct ctf_catalogue *, const char *path, struct err *e);
/* Frees the catalogue; traces opened with it do not need it. */
void ctf_catalogue_free(struct ctf_catalogue *);
/* Returns the number of directories with traces in the tree. *read: how many had to be read (for the traces opened so
 * far) because the file had no current entry. */
size_t ctf_catalogue_dirs(const struct ctf_catalogue *, size_t *read);

/* Returns whether the trace was opened by a wrong catalogue entry. The caller then removes the catalogue's file. */
bool ctf_trace_misled(const struct ctf_trace *);

#endif
