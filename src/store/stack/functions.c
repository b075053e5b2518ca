/* SPDX-License-Identifier: MIT */
/* Functions of all chunks: numbered in the order of their first calls, and named. A function whose library was unknown
 * at its chunk's end is named after the next library of a later chunk at its address. */
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"
#include "stack/list.h"

/* Libraries of a process, in the order in which they were loaded. */
struct loaded {
    size_t chunk;
    const struct stack_disk_library *library;
};
struct of_process {
    VEC(struct loaded) libraries;
};

static struct of_process *gather(const struct stack_store *s, uint32_t *const *process_of)
{
    struct of_process *of = mem_zalloc(sizeof *of * (s->n_processes + 1));
    for (size_t c = 0; c < s->n_chunks; c++)
        for (size_t i = 0; i < s->chunks[c].n_libraries; i++) {
            const struct stack_disk_library *l = &s->chunks[c].libraries[i];
            vec_push(&of[process_of[c][l->process]].libraries, ((struct loaded){c, l}));
        }
    return of;
}

static const struct loaded *next_of(const struct of_process *of, size_t chunk, uint64_t address)
{
    const struct loaded *v = of->libraries.v;
    for (size_t i = search_first(k, 0, of->libraries.n, v[k].chunk > chunk); i < of->libraries.n; i++)
        if (v[i].library->begin <= address && address < v[i].library->end)
            return &v[i];
    return NULL;
}

static void name_later(
    const struct stack_store *s, const struct of_process *of, size_t chunk, uint64_t address, struct text *out)
{
    const struct loaded *l = next_of(of, chunk, address);
    if (l)
        stack_put_address(
            out, stack_text(&s->chunks[l->chunk], l->library->path), l->library->absolute, l->library->begin, address);
    else
        text_printf(out, "0x%llx", (unsigned long long)address);
}

struct numbering {
    struct stack_store *s;
    struct strings names;
    struct map numbers; /* process << 32 | name -> number + 1 */
    VEC(struct stack_function) functions;
};

static uint32_t number(struct numbering *n, uint64_t address, uint32_t process, const char *name, bool lasts)
{
    bool fresh;
    size_t length = strlen(name);
    uint64_t *at = map_put(&n->numbers, (uint64_t)process << 32 | strings_intern(&n->names, name, length), &fresh);
    if (fresh) {
        name = lasts ? name : arena_strndup(&n->s->names, name, length);
        vec_push(&n->functions, ((struct stack_function){address, process, name}));
        *at = n->functions.n;
    }
    return (uint32_t)*at - 1;
}

void stack_list_functions(struct stack_store *s, uint32_t *const *process_of)
{
    struct of_process *of = gather(s, process_of);
    struct numbering n = {.s = s};
    struct text label = {.fd = -1};
    for (size_t c = 0; c < s->n_chunks; c++) {
        const struct stack_chunk *chunk = &s->chunks[c];
        for (size_t i = 0; i < chunk->n_functions; i++) {
            const struct stack_disk_function *f = &chunk->functions[i];
            uint32_t process = process_of[c][f->process];
            const char *name = stack_text(chunk, f->name);
            label.n = 0;
            if (!f->name) {
                name_later(s, &of[process], c, f->address, &label);
                name = text_cstr(&label);
            }
            chunk->function_of[i] = number(&n, f->address, process, name, f->name != 0);
        }
    }
    s->functions = n.functions.v;
    s->n_functions = n.functions.n;
    for (size_t i = 0; i < s->n_processes; i++)
        vec_free(&of[i].libraries);
    free(of);
    strings_fini(&n.names);
    map_fini(&n.numbers);
    text_fini(&label);
}
