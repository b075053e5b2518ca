/* SPDX-License-Identifier: MIT */
/* Private to ctf: parts of CTF 2 metadata that belong to one trace only. */
#ifndef WEFT_CTF_CTF2_OWN_H
#define WEFT_CTF_CTF2_OWN_H

#include "ctf/ctf.h"
#include "ctf/tsdl.h"

/* origin: equal texts, equal origins; NULL: unknown. */
struct ctf2_clock { struct ctf_clock clock; const char *origin; bool has_name; };
struct ctf2_own {
    bool has_uuid;
    uint8_t uuid[16];
    VEC(struct ctf_env) env;
    VEC(struct ctf2_clock) clocks;
    VEC(const char *) remarks;  /* harmless */
};
/* Zero-initialise; ctf2_own_fini in any case. Strings go to the arena. */
int ctf2_read_own(const char *text, size_t n, const struct tsdl_scan *, struct arena *, struct ctf2_own *out,
    struct err *e);
void ctf2_own_fini(struct ctf2_own *);

#endif
