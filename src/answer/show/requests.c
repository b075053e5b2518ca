/* SPDX-License-Identifier: MIT */
/* Requests in words: parts of their paths, parts that took longer in the slow ones, missing requests. */
#include <stdio.h>

#include "base/text.h"
#include "graph/graph.h"
#include "path/requests.h"
#include "show/show.h"

enum { PARTS = 3, GREW = 2 };

void show_request_part(struct request_groups *of, const struct request_part *p, struct text *t)
{
    text_printf(t, "%s %s%s", path_request_groups_host(of, p->host), p->another ? "another " : "",
        *p->comm ? p->comm : "interrupt");
}

static void put_part(struct text *t, struct request_groups *of, const struct request_part *p)
{
    show_request_part(of, p, t);
    text_printf(t, " %s", graph_state_name(p->state));
}

void show_request_shape(struct request_groups *of, const struct request_group *g, struct text *t)
{
    for (size_t i = 0; i < g->n_shape && i < PARTS; i++) {
        text_puts(t, i ? " · " : "");
        put_part(t, of, &g->shape[i]);
    }
    if (g->n_shape > PARTS)
        text_puts(t, " · …");
}

void show_request_growth(struct request_groups *of, const struct request_group *g, struct text *t)
{
    for (size_t i = 0; i < g->n_grew && i < GREW; i++) {
        text_puts(t, i ? " · +" : "+");
        text_duration(t, g->grew[i].slow - g->grew[i].typical);
        text_putc(t, ' ');
        put_part(t, of, &g->grew[i].part);
    }
}

static const char *plural(uint64_t n)
{
    return n > 1 ? "s" : "";
}

bool show_requests_lack(const struct path_requests_lacking *l, enum show_requests_lack which, struct text *t)
{
    const uint64_t counts[] = {l->unrelated, l->unsided, l->cut, l->nobodys, l->overlapped};
    const unsigned long long n = counts[which];
    if (!n)
        return false;
    switch (which) {
    case SHOW_REQUESTS_UNRELATED:
        text_printf(t, "requests of %llu host%s are not told: nothing relates %s to the reference", n, plural(n),
            n > 1 ? "their clocks" : "its clock");
        break;
    case SHOW_REQUESTS_UNSIDED:
        text_printf(
            t, "left out: %llu connection%s of which neither a SYN nor the ports tell who is the server", n, plural(n));
        break;
    case SHOW_REQUESTS_CUT:
        text_printf(t, "left out: %llu request%s of which the beginning or the reply was not recorded", n, plural(n));
        break;
    case SHOW_REQUESTS_NOBODYS:
        text_printf(t, "left out: %llu request%s of which no thread is known", n, plural(n));
        break;
    default:
        text_printf(t,
            "%llu request%s may be several: the client sent on before it had the reply (pipelining, streams)", n,
            plural(n));
    }
    return true;
}

bool show_requests_sample(const struct request_groups *g, size_t all, struct text *t)
{
    size_t chosen = path_request_groups_chosen(g), looked = path_request_groups_looked(g);
    if (chosen < all)
        text_printf(t,
            "groups are told by the paths of %zu of %zu requests: of each machine's slowest %d, and of "
            "its others evenly",
            looked, all, REQUESTS_SLOWEST);
    else if (looked < all)
        text_printf(t, "%zu request%s in no group: a path with so many pieces is not followed", all - looked,
            all - looked > 1 ? "s are" : " is");
    else
        return false;
    return true;
}
