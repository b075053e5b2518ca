/* SPDX-License-Identifier: MIT */
/* Private to tsp: the viewer's files as tools/embed makes them: compressed with gzip, in generated code. */
#ifndef WEFT_TSP_FILES_H
#define WEFT_TSP_FILES_H

#include "tsp/server.h"

struct file { const char *path, *type, *etag; const unsigned char *data; size_t n; };
extern const struct file files_list[];
extern const size_t files_n;

#endif
