/* SPDX-License-Identifier: MIT */
/* The rows of a host: their registry, and the ids by which others know them. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/map.h"
#include "base/nolinks.h"
#include "index/stores.h"

uint64_t index_host_key(const struct ctf_trace *t)
{
    const char *name = kernel_host_name(t);
    const struct ctf_clock *clocks;
    const struct ctf_clock *boot = ctf_trace_clocks(t, &clocks) && clocks->has_uuid ? clocks : NULL;
    if (!name && !boot)
        name = ctf_trace_path(t);
    uint64_t key = name ? map_hash(name, strlen(name)) : 0;
    return map_mix(key + (boot ? map_hash(boot->uuid, sizeof boot->uuid) : 0));
}

void index_rows_free(struct index_rows *r)
{
    if (!r)
        return;
    vec_free(&r->of_host);
    vec_free(&r->by_host);
    kernel_rows_close(r->registry);
    free(r);
}

uint64_t index_row_id(const struct index_host *h, int32_t row)
{
    struct kernel_row r;
    return kernel_rows_get(h->rows->registry, h->rows->of_host.v[row], &r) ? r.id : 0;
}

int32_t index_row_find(const struct index_host *h, uint64_t id)
{
    if (!h->rows)
        return KERNEL_NO_ROW;
    int32_t row = kernel_rows_find(h->rows->registry, id);
    return row >= 0 && (size_t)row < h->rows->by_host.n ? h->rows->by_host.v[row] : KERNEL_NO_ROW;
}

static bool is_registry(const struct dirent *d)
{
    unsigned long long first, last;
    int end = 0;
    return sscanf(d->d_name, "rows.%llu-%llu%n", &first, &last, &end) == 2 && !d->d_name[end];
}

uint64_t index_rows_stamp(const char *dir)
{
    uint64_t sum = 0;
    DIR *list = nolinks_opendir(dir);
    for (const struct dirent *d; list && (d = readdir(list));) {
        struct file_stamp stamp;
        if (!is_registry(d))
            continue;
        char *path = mem_printf("%s/%s", dir, d->d_name);
        if (!file_stamp(path, &stamp, NULL))
            sum += map_mix(map_hash(&stamp, sizeof stamp) + map_hash(d->d_name, strlen(d->d_name)));
        free(path);
    }
    if (list)
        closedir(list);
    return sum;
}

void index_rows_forget(const char *dir)
{
    DIR *list = nolinks_opendir(dir);
    if (!list)
        return;
    for (const struct dirent *d; (d = readdir(list));)
        if (is_registry(d))
            unlinkat(dirfd(list), d->d_name, 0);
    closedir(list);
}
