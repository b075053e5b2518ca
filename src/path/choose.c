/* Finding the thread that a user names. */
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "graph/graph.h"
#include "path/path.h"

/* What follows "HOST:", or NULL. Names of hosts and threads may hold colons ("kworker/0:2"). */
static const char *after_host(const char *thread, const char *host)
{
    size_t n = strlen(host);
    return !strncmp(thread, host, n) && thread[n] == ':' ? thread + n + 1 : NULL;
}

static void find_on_host(
    const struct path_local *l, int32_t host, const char *thread, int64_t begin, int64_t end, struct path_lives *found)
{
    size_t n;
    const struct path_local_host *h = &path_local_hosts(l, &n)[host];
    const struct path_source *source = path_local_source(l);
    for (size_t r = 0; h->graph && r < graph_rows(h->graph); r++) {
        struct path_life c = {.row = {host, (int32_t)r}, .host = h->name};
        struct graph_row info;
        graph_row(h->graph, (int32_t)r, &info);
        if (!graph_row_is(h->graph, (int32_t)r, thread) || (info.idle_cpu >= 0 && !text_is_digit(*thread)) ||
            !source->life(source->arg, c.row, &c.begin, &c.end) || c.begin >= end || c.end <= begin)
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

bool path_lives_share_tid(const struct path_lives *found)
{
    for (size_t i = 1; i < found->n; i++)
        if (found->v[i].row.host != found->v[0].row.host || found->v[i].tid != found->v[0].tid)
            return false;
    return true;
}
