/* SPDX-License-Identifier: MIT */
/* Meaning of LTTng-UST's own event types. Events defined by programs say nothing about calls or memory. */
#include <string.h>

#include "stack/builder.h"

static const struct {
    const char *name;
    uint8_t kind;
} kinds[] = {
    {"lttng_ust_cyg_profile:func_entry", STACK_ENTRY},
    {"lttng_ust_cyg_profile:func_exit", STACK_EXIT},
    {"lttng_ust_cyg_profile_fast:func_entry", STACK_ENTRY},
    {"lttng_ust_cyg_profile_fast:func_exit", STACK_EXIT},
    {"lttng_ust_statedump:start", STACK_DUMP},
    {"lttng_ust_statedump:bin_info", STACK_DUMPED},
    {"lttng_ust_statedump:soinfo", STACK_DUMPED},
    {"lttng_ust_dl:dlopen", STACK_LOAD},
    {"lttng_ust_dl:dlmopen", STACK_LOAD},
    {"lttng_ust_lib:load", STACK_LOAD},
    {"lttng_ust_dl:dlclose", STACK_UNLOAD},
    {"lttng_ust_lib:unload", STACK_UNLOAD},
    {"lttng_ust_libc:malloc", STACK_ALLOC},
    {"lttng_ust_libc:calloc", STACK_ALLOC},
    {"lttng_ust_libc:memalign", STACK_ALLOC},
    {"lttng_ust_libc:posix_memalign", STACK_ALLOC},
    {"lttng_ust_libc:realloc", STACK_REALLOC},
    {"lttng_ust_libc:free", STACK_FREE},
};

static bool is_number(const struct ctf_access *a)
{
    return a->mode && (a->type->kind == CTF_INT || a->type->kind == CTF_ENUM);
}

static bool is_text(const struct ctf_access *a)
{
    return a->mode && (a->type->kind == CTF_STRING || a->type->kind == CTF_ARRAY || a->type->kind == CTF_SEQUENCE);
}

/* The first of the names that the event has as a number, or as text. Absent: mode 0. */
static bool find(
    const struct ctf_event_class *c, enum ctf_scope scope, bool text, const char *const *names, struct ctf_access *out)
{
    for (; *names; names++)
        if (ctf_access_find(c, scope, *names, out) && (text ? is_text(out) : is_number(out)))
            return true;
    *out = (struct ctf_access){0};
    return false;
}

static void find_context(const struct ctf_event_class *c, bool text, const char *name, struct ctf_access *out)
{
    const char *const names[] = {name, NULL};
    if (!find(c, CTF_STREAM_EVENT_CONTEXT, text, names, out))
        find(c, CTF_EVENT_CONTEXT, text, names, out);
}

static void bind_fields(const struct ctf_event_class *c, struct stack_class *b)
{
    static const char *const addresses[] = {"addr", NULL}, *const names[] = {"name", "func_name", NULL},
                             *const bases[] = {"baddr", NULL}, *const paths[] = {"path", "sopath", NULL},
                             *const lengths[] = {"memsz", "size", NULL}, *const pics[] = {"is_pic", NULL},
                             *const results[] = {"ptr", "out_ptr", NULL}, *const sizes[] = {"size", NULL},
                             *const counts[] = {"nmemb", NULL}, *const olds[] = {"in_ptr", NULL},
                             *const sites[] = {"call_site", NULL};
    switch (b->kind) {
    case STACK_ENTRY:
        b->has_name = find(c, CTF_PAYLOAD, true, names, &b->name);
        b->has_address = find(c, CTF_PAYLOAD, false, addresses, &b->address);
        find(c, CTF_PAYLOAD, false, sites, &b->site);
        if (!b->has_name && !b->has_address)
            b->kind = STACK_OTHER;
        break;
    case STACK_EXIT:
        b->has_address = find(c, CTF_PAYLOAD, false, addresses, &b->address);
        find(c, CTF_PAYLOAD, false, sites, &b->site);
        break;
    case STACK_LOAD:
    case STACK_DUMPED:
        b->has_pic = find(c, CTF_PAYLOAD, false, pics, &b->pic);
        if (!find(c, CTF_PAYLOAD, true, paths, &b->name) || !find(c, CTF_PAYLOAD, false, lengths, &b->size) ||
            !find(c, CTF_PAYLOAD, false, bases, &b->address))
            b->kind = STACK_OTHER;
        break;
    case STACK_UNLOAD: b->kind = find(c, CTF_PAYLOAD, false, bases, &b->address) ? STACK_UNLOAD : STACK_OTHER; break;
    case STACK_REALLOC:
        if (!find(c, CTF_PAYLOAD, false, olds, &b->old))
            b->kind = STACK_ALLOC;
        /* fall through */
    case STACK_ALLOC:
        find(c, CTF_PAYLOAD, false, counts, &b->count);
        if (!find(c, CTF_PAYLOAD, false, sizes, &b->size) || !find(c, CTF_PAYLOAD, false, results, &b->address))
            b->kind = STACK_OTHER;
        break;
    case STACK_FREE: b->kind = find(c, CTF_PAYLOAD, false, results, &b->address) ? STACK_FREE : STACK_OTHER; break;
    default: break;
    }
}

struct stack_class *stack_bind(const struct ctf_trace *t, size_t *n_classes)
{
    const struct ctf_event_class *const *classes;
    size_t n = ctf_trace_classes(t, &classes);
    struct stack_class *bound = mem_zalloc(sizeof *bound * (n + 1));
    for (size_t i = 0; i < n; i++) {
        struct stack_class *b = &bound[i];
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
            if (classes[i]->item == CTF_EVENT && !strcmp(classes[i]->name, kinds[k].name))
                b->kind = kinds[k].kind;
        bind_fields(classes[i], b);
        if (b->kind == STACK_OTHER)
            continue;
        find_context(classes[i], false, "vpid", &b->vpid);
        find_context(classes[i], false, "vtid", &b->vtid);
        find_context(classes[i], true, "procname", &b->procname);
    }
    *n_classes = n;
    return bound;
}
