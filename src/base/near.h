/* SPDX-License-Identifier: MIT */
/* Names similar to a mistyped one. */
#ifndef WEFT_BASE_NEAR_H
#define WEFT_BASE_NEAR_H

/* The name nearest to a mistyped one, or NULL when none is near. `names` ends with NULL. */
const char *near_name(const char *typed, const char *const *names);

#endif
