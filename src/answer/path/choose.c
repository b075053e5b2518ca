/* SPDX-License-Identifier: MIT */
/* Search of the thread that a user names. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "graph/graph.h"
#include "path/path.h"

/* Returns the part behind "HOST:", or NULL. Names of hosts and threads may contain colons ("kworker/0:2"). */
static const char *after_host(const char *thread, const char *host)
{
    size_t n = strlen(host);
    return !strncmp(thread, host, n) && thread[n] == ':' ? thread + n + 1 : NULL;
}

/* Returns whether the life had that number at the first or the last ns of [begin, end). It changes at most once, by an
 * exec. */
static bool had_number(
    const struct path_source *source, const struct path_life *c, const char *number, int64_t begin, int64_t end)
{
    int64_t first = begin > c->begin ? begin : c->begin, last = (end < c->end ? end : c->end) - 1;
    int32_t tids[2];
    const char *comm;
    source->row_name(source->arg, c->row, first, first, &tids[0], &comm);
    source->row_name(source->arg, c->row, last, last, &tids[1], &comm);
    int64_t wanted = strtoll(number, NULL, 10);
    return tids[0] == wanted || tids[1] == wanted;
}

static void find_on_host(
    const struct path_local *l, int32_t host, const char *thread, int64_t begin, int64_t end, struct path_lives *found)
{
    size_t n;
    const struct path_local_host *h = &path_local_hosts(l, &n)[host];
    const struct path_source *source = path_local_source(l);
    bool number = text_is_digit(*thread) && strspn(thread, "0123456789") == strlen(thread);
    for (size_t r = 0; h->graph && r < graph_rows(h->graph); r++) {
        struct path_life c = {.row = {host, (int32_t)r}, .host = h->name};
        struct graph_row info;
        if (!graph_row_is(h->graph, (int32_t)r, thread))
            continue;
        graph_row(h->graph, (int32_t)r, &info);
        if (!source->life(source->arg, c.row, &c.begin, &c.end) || c.begin >= end || c.end <= begin ||
            (number && !had_number(source, &c, thread, begin, end)))
            continue;
        c.tid = info.tid;
        c.name = info.name;
        vec_push(found, c);
    }
}

void path_find_lives(const struct path_local *l, const char *thread, const char *host, int64_t begin, int64_t end,
    struct path_lives *found)
{
    size_t n;
    const struct path_local_host *hosts = path_local_hosts(l, &n);
    for (int whole = 0; whole <= 1 && !found->n; whole++)
        for (size_t h = 0; h < n; h++) {
            const char *name = whole ? thread : after_host(thread, hosts[h].name);
            if (name && (!host || !strcmp(host, hosts[h].name)))
                find_on_host(l, (int32_t)h, name, begin, end, found);
        }
}

bool path_lives_are_idle(const struct path_lives *found)
{
    size_t i = 0;
    while (i < found->n && found->v[i].tid == 0)
        i++;
    return found->n && i == found->n;
}

bool path_lives_share_tid(const struct path_lives *found)
{
    for (size_t i = 1; i < found->n; i++)
        if (strcmp(found->v[i].host, found->v[0].host) != 0 || found->v[i].tid != found->v[0].tid)
            return false;
    return true;
}
