/* SPDX-License-Identifier: MIT */
/* Processes, libraries in their memory, and names of their functions. */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/order.h"
#include "base/text.h"
#include "stack/builder.h"

/* ---- processes ---- */

uint32_t stack_owner(struct stack_builder *b, int32_t pid, uint32_t name)
{
    bool fresh;
    uint64_t *index = pid >= 0 ? map_put(&b->owner_of, (uint64_t)(uint32_t)pid, &fresh)
                               : map_put(&b->owner_by_name, name, &fresh);
    if (fresh) {
        vec_push(&b->owners, ((struct stack_owner){.pid = pid, .name = pid < 0 ? name : 0, .dump_thread = -1}));
        *index = b->owners.n;
    }
    return (uint32_t)(*index - 1);
}

static int by_pid_and_name(const void *pa, const void *pb, void *arg)
{
    const struct stack_builder *b = arg;
    const struct stack_owner *x = &b->owners.v[*(const uint32_t *)pa], *y = &b->owners.v[*(const uint32_t *)pb];
    return order_of(x->pid, y->pid) ?: strcmp(strings_get(&b->strings, x->name), strings_get(&b->strings, y->name));
}

uint32_t *stack_order_owners(const struct stack_builder *b)
{
    uint32_t *order = mem_alloc(sizeof *order * (b->owners.n + 1));
    for (size_t i = 0; i < b->owners.n; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, b->owners.n, sizeof *order, by_pid_and_name, (void *)(uintptr_t)b);
    return order;
}

/* ---- libraries ---- */

/* Addresses may mean something else from now on: functions called later are others, until they turn out to have the
 * same name. */
static void forget_addresses(struct stack_owner *o)
{
    map_fini(&o->functions);
    memset(&o->functions, 0, sizeof o->functions);
}

void stack_load(struct stack_builder *b, uint32_t owner, const struct stack_library *new)
{
    struct stack_owner *o = &b->owners.v[owner];
    if (new->begin >= new->end)
        return;
    bool replaces = false;
    for (size_t i = 0; i < o->libraries.n; i++) {
        struct stack_library *l = &o->libraries.v[i];
        if (l->unloaded != UINT64_MAX || l->begin >= new->end || new->begin >= l->end)
            continue;
        if (l->begin == new->begin && l->end == new->end && l->path == new->path)
            return; /* seen again, in another state dump */
        l->unloaded = b->totals.events;
        replaces = true;
    }
    struct stack_library l = *new;
    l.loaded = b->totals.events;
    l.unloaded = UINT64_MAX;
    vec_push(&o->libraries, l);
    if (replaces)
        forget_addresses(o);
}

void stack_unload(struct stack_builder *b, uint32_t owner, uint64_t begin)
{
    struct stack_owner *o = &b->owners.v[owner];
    for (size_t i = 0; i < o->libraries.n; i++)
        if (o->libraries.v[i].begin == begin && o->libraries.v[i].unloaded == UINT64_MAX) {
            o->libraries.v[i].unloaded = b->totals.events;
            forget_addresses(o);
        }
}

void stack_unload_all(struct stack_builder *b, uint32_t owner)
{
    struct stack_owner *o = &b->owners.v[owner];
    for (size_t i = 0; i < o->libraries.n; i++)
        if (o->libraries.v[i].unloaded == UINT64_MAX)
            o->libraries.v[i].unloaded = b->totals.events;
    forget_addresses(o);
}

/* Returns the library that held the address when the function was first seen; else the next one there: state dumps come
 * after the first calls. */
static const struct stack_library *library_of(const struct stack_owner *o, const struct stack_known *f)
{
    const struct stack_library *next = NULL;
    for (size_t i = 0; i < o->libraries.n; i++) {
        const struct stack_library *l = &o->libraries.v[i];
        if (f->address < l->begin || f->address >= l->end || l->unloaded <= f->first)
            continue;
        if (l->loaded <= f->first)
            return l;
        if (!next || l->loaded < next->loaded)
            next = l;
    }
    return next;
}

/* ---- functions ---- */

/* Adds a function. Beyond the limit of the store's numbers, all others are one. */
static uint32_t add_function(struct stack_builder *b, const struct stack_known *f, uint64_t *index)
{
    if (b->known.n < STACK_MOST_FUNCTIONS)
        vec_push(&b->known, *f);
    *index = b->known.n;
    return (uint32_t)b->known.n - 1;
}

uint32_t stack_function_at(struct stack_builder *b, uint32_t owner, uint64_t address)
{
    bool fresh;
    uint64_t *index = map_put(&b->owners.v[owner].functions, address, &fresh);
    return fresh ? add_function(b, &(struct stack_known){address, b->totals.events, owner, 0}, index)
                 : (uint32_t)*index - 1;
}

uint32_t stack_function_named(struct stack_builder *b, uint32_t owner, uint64_t address, uint32_t name)
{
    bool fresh;
    uint64_t *index = map_put(&b->owners.v[owner].named, name, &fresh);
    return fresh ? add_function(b, &(struct stack_known){address, b->totals.events, owner, name}, index)
                 : (uint32_t)*index - 1;
}

void stack_put_address(struct text *out, const char *path, bool absolute, uint64_t begin, uint64_t address)
{
    const char *base = file_name(path);
    /* Notation of LTTng's debuggers: + counts from where the file was loaded, @ is the address in the file. */
    text_printf(out, "%s%s0x%llx", *base ? base : path, absolute ? "@" : "+",
        (unsigned long long)(absolute ? address : address - begin));
}

bool stack_name_function(const struct stack_builder *b, const struct stack_known *f, struct text *out)
{
    if (f->name) {
        text_puts(out, strings_get(&b->strings, f->name));
        return true;
    }
    const struct stack_library *l = library_of(&b->owners.v[f->process], f);
    if (l)
        stack_put_address(out, strings_get(&b->strings, l->path), l->absolute, l->begin, f->address);
    return l != NULL;
}
