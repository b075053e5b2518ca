/* SPDX-License-Identifier: MIT */
/* Identifiers as text, "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx". */
#ifndef WEFT_TSP_UUID_H
#define WEFT_TSP_UUID_H

#include <stdbool.h>
#include <stddef.h>

enum { UUID_TEXT = 37 };

/* Version 3 (MD5) of the bytes, without a namespace: a name has the same identifier on every server. */
void tsp_uuid_of_name(const char *name, char out[UUID_TEXT]);
void tsp_uuid_random(char out[UUID_TEXT]);
bool tsp_uuid_valid(const char *);

#endif
