/* SPDX-License-Identifier: MIT */
#include "base/late.h"

#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>

static int load(struct late_library *l, struct err *e)
{
    void *library = dlopen(l->file, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return err_set(e, ERR_NOTFOUND, "cannot load a library: %s", dlerror());
    for (size_t i = 0; i < l->n; i++) {
        const void *function = dlsym(library, l->functions[i]);
        if (!function)
            return err_set(e, ERR_NOTFOUND, "%s is not the library that weft was built for: %s", l->file, dlerror());
        __atomic_store_n(&l->slots[i], function, __ATOMIC_RELEASE);
    }
    l->loaded = true;
    return 0;
}

int late_load(struct late_library *l, struct err *e)
{
    pthread_mutex_lock(&l->lock);
    int rc = l->loaded ? 0 : load(l, e);
    pthread_mutex_unlock(&l->lock);
    return rc;
}

void late_must(struct late_library *l)
{
    struct err e = {0};
    if (!late_load(l, &e))
        return;
    fprintf(stderr, "weft: %s\n", e.text);
    _exit(1);
}
