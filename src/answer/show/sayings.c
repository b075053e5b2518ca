/* SPDX-License-Identifier: MIT */
#include "show/sayings.h"

#include <string.h>

#include "base/text.h"
#include "graph/graph.h"
#include "show/words.h"

void show_say_name(struct text *t, const char *name, size_t cells)
{
    show_text(t, name && *name ? name : "?", cells);
}

static void with_detail(struct text *t, const char *words, const char *link, const char *detail)
{
    text_puts(t, words);
    if (detail) {
        text_puts(t, link);
        show_text(t, detail, SAY_DETAIL_CELLS);
    }
}

void show_say_done(struct text *t, const struct show_part *p)
{
    const char *d = p->detail;
    switch (p->state) {
    case GRAPH_RUNNING: text_puts(t, p->assumed ? "polled" : p->tid < 0 ? "worked in interrupts" : "computed"); break;
    case GRAPH_PREEMPTED:
        if (d && !strncmp(d, "by ", 3))
            with_detail(t, "waited for the CPU", " behind ", d + 3);
        else
            with_detail(t, "waited for the CPU", ", ", d);
        break;
    case GRAPH_INTERRUPTED: with_detail(t, "was interrupted", " by ", d); break;
    case GRAPH_BLOCKED: with_detail(t, "waited", " in ", d); break;
    case GRAPH_TIMER: text_puts(t, "slept by itself"); break;
    case GRAPH_NETWORK: text_puts(t, "waited for messages of its own"); break;
    case GRAPH_BLOCK_DEVICE: with_detail(t, "waited for disk", " ", d); break;
    case GRAPH_USER_INPUT: text_puts(t, "waited for a user"); break;
    case GRAPH_IPI: text_puts(t, "waited for another CPU"); break;
    case GRAPH_HYPERVISOR: with_detail(t, "was in the hypervisor", ": ", d); break;
    case GRAPH_STOLEN: with_detail(t, "had its CPU stolen", " ", d); break;
    default: text_puts(t, "did what is not known");
    }
}

/* Returns whether one thread did most of it. */
static bool is_one(const struct show_kind *k)
{
    return k->part.duration > k->duration / 2;
}

void show_say_who(struct text *t, const struct show_kind *k)
{
    if (k->part.tid < 0) {
        text_puts(t, k->part.state == GRAPH_NETWORK ? "messages" : "interrupts");
        return;
    }
    if (is_one(k))
        text_printf(t, "%d ", k->part.tid);
    else
        text_printf(t, "%zu × ", k->threads);
    show_say_name(t, k->part.comm, SAY_NAME_CELLS);
}

int64_t show_said_time(const struct show_kind *k)
{
    return is_one(k) ? k->part.duration : k->duration;
}

void show_say_time(struct text *t, const struct show_kind *k)
{
    text_duration(t, show_said_time(k));
}

void show_say_reason(struct text *t, const struct show_part *p)
{
    static const struct {
        const char *words, *link;
    } reasons[] = {[PATH_NO_WAKER] = {"nobody was seen to end the wait", ": "},
        [PATH_UNTRACED_PEER] = {"waited for a machine without trace", ": "},
        [PATH_OFFLINE_NODE] = {"not known: a node is away", ": "},
        [PATH_LOST_EVENTS] = {"not known: events were lost", " on "},
        [PATH_NO_CLOCK] = {"not known: clocks are not related", ": "},
        [PATH_PENDING] = {"still being asked for", ": "}};
    with_detail(t, reasons[p->reason].words, reasons[p->reason].link, p->peer);
}
