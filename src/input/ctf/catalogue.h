/* SPDX-License-Identifier: MIT */
/* What was found when traces were opened, kept in a file so that the next opening reads only what is new or changed.
 * Part of ctf.
 *
 * A catalogue is of one tree of directories (struct ctf_root). What it says of a directory that has long been the same
 * is believed without a look at the directory's files, as long as the tree still has that directory under its name; a
 * file is then compared with what is known of it when its first packet is read, and ERR_LOST says that it is another
 * one (ctf_trace_misled). The directories that were written last are compared at once. */
#ifndef WEFT_CTF_CATALOGUE_H
#define WEFT_CTF_CATALOGUE_H

#include "ctf/ctf.h"

struct ctf_catalogue;
/* That of a tree of which nothing is known. */
struct ctf_catalogue *ctf_catalogue_new(void);
/* ERR_NOTFOUND, ERR_FORMAT, ERR_STALE: there is none that can be used. */
int ctf_catalogue_load(const char *path, struct ctf_catalogue **out, struct err *e);
/* After the groups that were found with it have been opened. */
int ctf_catalogue_save(const struct ctf_catalogue *, const char *path, struct err *e);
/* Traces that were opened do not need it. */
void ctf_catalogue_free(struct ctf_catalogue *);
/* Directories with traces in the tree, and how many of them had to be read (by what was opened so far) because the file
 * did not know them as they are. */
size_t ctf_catalogue_dirs(const struct ctf_catalogue *, size_t *read);

/* Was the trace opened by what a catalogue wrongly said? Then its file is to be removed. */
bool ctf_trace_misled(const struct ctf_trace *);

#endif
