/* SPDX-License-Identifier: MIT */
/* Private to tsp: the directory of uploads. */
#ifndef WEFT_TSP_UPLOADS_H
#define WEFT_TSP_UPLOADS_H

#include "tsp/model.h"

/* Names of what a killed server leaves: archives, half-unpacked directories, and directories with their final names but
 * no trace yet. A mark lies beside the latter. */
#define UPLOAD_MARK ".settling-"
#define UPLOAD_UNPACKED ".incoming-"

/* Removes what a killed server left of its uploads. Their names are free at once; the sweeper removes the files. */
void tsp_uploads_remove_unfinished(struct tsp_server *);
/* Removes the upload at `path` in the same way, once its trace is removed. Ignores other paths. With the lock held. */
void tsp_upload_remove(const struct tsp_server *, const char *path);

#endif
