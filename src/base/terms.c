/* SPDX-License-Identifier: MIT */
#include "base/terms.h"

#include <string.h>

void terms_add(struct terms *t, size_t column, const char *pattern)
{
    struct err e = {0};
    if (t->n == TERMS_MOST)
        return;
    struct term *added = &t->v[t->n++];
    bool means_itself = !pattern[strcspn(pattern, ".[]{}()*+?^$|\\")];
    *added = (struct term){.column = column};
    added->plain = means_itself || regex_compile(pattern, &added->regex, &e) ? pattern : NULL;
}

bool term_fits(const struct term *t, const char *cell)
{
    return t->plain ? strstr(cell, t->plain) != NULL : regex_finds(t->regex, cell, strlen(cell)) == 1;
}

bool terms_fit(
    struct terms *t, void (*cell)(void *arg, size_t row, size_t column, struct text *out), void *arg, size_t row)
{
    for (size_t i = 0; i < t->n; i++) {
        t->cell.n = 0;
        cell(arg, row, t->v[i].column, &t->cell);
        if (!term_fits(&t->v[i], text_cstr(&t->cell)))
            return false;
    }
    return t->n && !t->impossible;
}

void terms_fini(struct terms *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (!t->v[i].plain)
            regex_free(t->v[i].regex);
    text_fini(&t->cell);
}
