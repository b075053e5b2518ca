/* SPDX-License-Identifier: MIT */
/* Private to ctf: field classes of CTF 2. Errors stay in the lexer; a declaration is valid only if there is none. */
#ifndef WEFT_CTF_CTF2_FIELDS_H
#define WEFT_CTF_CTF2_FIELDS_H

#include "ctf/ctf2.h"

struct ctf2_reader {
    struct tsdl_parser *p;
    struct tsdl_lexer *l;
    struct ctf2_json *j;
};
typedef VEC(struct ctf2_range) ctf2_range_list;

struct tsdl_decl *ctf2_new_decl(struct ctf2_reader *, enum ctf_kind, const char *at);
void ctf2_read_align(struct ctf2_reader *, const struct ctf2_node *, const char *name, struct tsdl_decl *);
/* Number of the property's value among the words (NULL at the end). If there is none, returns false and *out is
 * unchanged. */
bool ctf2_read_word(struct ctf2_reader *, const struct ctf2_node *, const char *name, bool needed,
    const char *const *words, int *out);
void ctf2_read_roles(struct ctf2_reader *, const struct ctf2_node *, struct tsdl_decl *);
/* Appends the ranges of an option, a label or a flag. */
void ctf2_read_ranges(struct ctf2_reader *, const struct ctf2_node *list, uint32_t option, bool is_signed,
    ctf2_range_list *);

struct tsdl_decl *ctf2_read_unsigned(struct ctf2_reader *, const struct ctf2_node *);
struct tsdl_decl *ctf2_read_signed(struct ctf2_reader *, const struct ctf2_node *);
struct tsdl_decl *ctf2_read_unsigned_leb(struct ctf2_reader *, const struct ctf2_node *);
struct tsdl_decl *ctf2_read_signed_leb(struct ctf2_reader *, const struct ctf2_node *);
struct tsdl_decl *ctf2_read_bit_array(struct ctf2_reader *, const struct ctf2_node *);
struct tsdl_decl *ctf2_read_boolean(struct ctf2_reader *, const struct ctf2_node *);
struct tsdl_decl *ctf2_read_float(struct ctf2_reader *, const struct ctf2_node *);
struct tsdl_decl *ctf2_read_bit_map(struct ctf2_reader *, const struct ctf2_node *);

#endif
