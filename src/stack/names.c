/* Processes, what is in their memory, and what their functions are called. */
#include <string.h>

#include "base/file.h"
#include "base/text.h"
#include "stack/builder.h"

/* ---- processes ---- */

uint32_t stack_owner(struct stack_builder *b, int32_t pid, uint32_t name)
{
    bool fresh;
    uint64_t *index = pid >= 0 ? map_put(&b->owner_of, (uint64_t)(uint32_t)pid, &fresh)
                               : map_put(&b->owner_by_name, name, &fresh);
    if (fresh) {
        vec_push(&b->owners, ((struct stack_owner){.pid = pid, .name = name}));
        *index = b->owners.n;
    } else if (!b->owners.v[*index - 1].name) {
        b->owners.v[*index - 1].name = name;
    }
    return (uint32_t)(*index - 1);
}

/* ---- libraries ---- */

/* Addresses may mean something else from now on: functions called later are others, until they turn out to have the
 * same name. */
static void forget_addresses(struct stack_owner *o)
{
    map_fini(&o->functions);
    memset(&o->functions, 0, sizeof o->functions);
}

void stack_load(struct stack_builder *b, uint32_t owner, int64_t ts, const struct stack_library *new)
{
    struct stack_owner *o = &b->owners.v[owner];
    if (new->begin >= new->end)
        return;
    bool replaces = false;
    for (size_t i = 0; i < o->libraries.n; i++) {
        struct stack_library *l = &o->libraries.v[i];
        if (l->unloaded != INT64_MAX || l->begin >= new->end || new->begin >= l->end)
            continue;
        if (l->begin == new->begin && l->end == new->end && l->path == new->path)
            return; /* seen again, in another state dump */
        l->unloaded = ts;
        replaces = true;
    }
    struct stack_library l = *new;
    l.loaded = ts;
    l.unloaded = INT64_MAX;
    vec_push(&o->libraries, l);
    if (replaces)
        forget_addresses(o);
}

void stack_unload(struct stack_builder *b, uint32_t owner, int64_t ts, uint64_t begin)
{
    struct stack_owner *o = &b->owners.v[owner];
    for (size_t i = 0; i < o->libraries.n; i++)
        if (o->libraries.v[i].begin == begin && o->libraries.v[i].unloaded == INT64_MAX) {
            o->libraries.v[i].unloaded = ts;
            forget_addresses(o);
        }
}

/* What holds the address when the function was first seen; else what was there next: state dumps come after the first
 * calls. */
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

/* Beyond the most that the store can number, all others are one. */
static uint32_t add_function(struct stack_builder *b, const struct stack_known *f, uint64_t *index)
{
    if (b->known.n < STACK_MOST_FUNCTIONS)
        vec_push(&b->known, *f);
    *index = b->known.n;
    return (uint32_t)b->known.n - 1;
}

uint32_t stack_function_at(struct stack_builder *b, uint32_t owner, int64_t ts, uint64_t address)
{
    bool fresh;
    uint64_t *index = map_put(&b->owners.v[owner].functions, address, &fresh);
    return fresh ? add_function(b, &(struct stack_known){address, ts, owner, 0}, index) : (uint32_t)*index - 1;
}

uint32_t stack_function_named(struct stack_builder *b, uint32_t owner, int64_t ts, uint64_t address, uint32_t name)
{
    bool fresh;
    uint64_t *index = map_put(&b->owners.v[owner].named, name, &fresh);
    return fresh ? add_function(b, &(struct stack_known){address, ts, owner, name}, index) : (uint32_t)*index - 1;
}

void stack_name_function(const struct stack_builder *b, const struct stack_known *f, struct text *out)
{
    if (f->name) {
        text_puts(out, strings_get(&b->strings, f->name));
        return;
    }
    const struct stack_library *l = library_of(&b->owners.v[f->process], f);
    if (!l) {
        text_printf(out, "0x%llx", (unsigned long long)f->address);
        return;
    }
    const char *path = strings_get(&b->strings, l->path), *base = file_name(path);
    base = *base ? base : path;
    /* As debuggers of LTTng write it: + is from where the file was loaded, @ is the address in the file. */
    text_printf(out, "%s%s0x%llx", base, l->absolute ? "@" : "+",
        (unsigned long long)(l->absolute ? f->address : f->address - l->begin));
}
