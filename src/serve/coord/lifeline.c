/* SPDX-License-Identifier: MIT */
#include "coord/lifeline.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/time.h"

/* A server that ends all connections soon after each answer would look restarted each time. After MOST_LOST times its
 * connections are not held, until it keeps one while idle. */
enum { MOST_LOST = 10, REST_NS = 500000000 };

static unsigned living(const struct lifeline *l)
{
    unsigned n = 0;
    for (unsigned i = 0; i < l->n; i++)
        n += http_connection_lives(l->held[i]);
    return n;
}

bool coord_lifeline_ended(const struct lifeline *l)
{
    return l->n && !living(l);
}

bool coord_lifeline_is_thin(const struct lifeline *l)
{
    return l->n && living(l) == 1;
}

static bool is_same(int a, int b)
{
    struct stat x, y;
    return !fstat(a, &x) && !fstat(b, &y) && x.st_ino == y.st_ino && x.st_dev == y.st_dev;
}

/* Makes room for one more: drops ended connections, and the connection itself if it is held; else the oldest. */
static void make_room(struct lifeline *l, int connection)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < l->n; i++) {
        if (http_connection_lives(l->held[i]) && !is_same(l->held[i], connection))
            l->held[kept++] = l->held[i];
        else
            close(l->held[i]);
    }
    if (kept == LIFELINES) {
        close(l->held[0]);
        l->held[0] = l->held[--kept];
    }
    l->n = kept;
}

void coord_lifeline_hold(struct lifeline *l, struct http_fetch *f)
{
    int64_t now = time_monotonic_ns();
    if (f->by_kept && now - l->rests_since_ns > REST_NS)
        l->lost = 0;
    l->rests_since_ns = now;
    if (f->connection < 0 || l->lost >= MOST_LOST || !http_connection_lives(f->connection))
        return;
    make_room(l, f->connection);
    l->held[l->n++] = f->connection;
    f->connection = -1;
}

void coord_lifeline_release(struct lifeline *l)
{
    l->lost += coord_lifeline_ended(l);
    l->rests_since_ns = time_monotonic_ns();
    while (l->n)
        close(l->held[--l->n]);
}
